"""PMOP with the general potential: a subset is worth e to the mean of its items' scores."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

from tierrank.losses.objective import Reduction, objective, reduced
from tierrank.losses.ordered_partition.normaliser import MOST_ITEMS, log_normaliser
from tierrank.losses.ordered_partition.samplers import gibbs, metropolis_hastings
from tierrank.losses.ordered_partition.stages import Direction, Stages
from tierrank.plackett_luce.inputs import Scores
from tierrank.randomness import as_generator
from tierrank.tiers import Tiers

Generator = torch.Generator | int | None


@objective
def pmop_exact(
    scores: Any,
    tiers: Tiers,
    *,
    direction: Direction = "forward",
    weights: Any = None,
    reduction: Reduction = "mean",
) -> Any:
    r"""Minus the log-probability of tiers chosen by their mean score (Tran et al., 2010).

    Stage k chooses a subset of what remains, R_k, with the potential of equation 16:

    .. math:: p(X_k) = \frac{\exp(\bar f(X_k))}{\sum_{S\subseteq R_k} \exp(\bar f(S))},
              \qquad \bar f(S) = \frac1{|S|} \sum_{x\in S} f(x).

    The paper holds the sum over 2^N − 1 subsets to be intractable, and samples. It is exact here,
    in time N³ a stage: `normaliser` says how. Once differentiable.

    Parameters
    ----------
    scores
        f, as in `pmop_fd`, with or without an axis of stages
    tiers
        lists of at most 200 items, without a rest that is not written
    direction, weights, reduction
        as in `pmop_fd`; "backward" takes −f

    Examples
    --------
    >>> import numpy as np, tierrank as tr
    >>> scores = np.log([16.0, 4.0])  # Φ is 16 and 4 for one item, and √64 = 8 for both
    >>> float(np.exp(-tr.losses.pmop_exact(scores, tr.Tiers.from_labels([0, 0]))))
    0.28571428
    """
    given = Scores(scores)
    stages = Stages(given.values, tiers, direction)
    longest = int(stages.sizes.max()) if len(stages.sizes) else 0
    if longest > MOST_ITEMS:
        number = int(stages.list_of[stages.sizes.argmax()])
        raise ValueError(
            f"list {number} has {longest} items, and the exact sum over subsets takes cubic "
            f"time: at most {MOST_ITEMS} are allowed. pmop_gibbs estimates the gradient instead"
        )
    f = stages.centred
    log_sums = log_normaliser(f, stages.offsets)
    losses = stages.sum_by_list(log_sums - _mean_of_chosen(stages, f))
    return reduced(given, losses, weights, reduction)


@objective
def pmop_gibbs(
    scores: Any,
    tiers: Tiers,
    *,
    steps: int = 3,
    generator: Generator = None,
    direction: Direction = "forward",
    weights: Any = None,
    reduction: Reduction = "mean",
) -> Any:
    r"""Contrastive divergence for `pmop_exact` by Gibbs sampling (Tran et al., 2010).

    At every stage a Markov chain starts from what was observed and makes n = `steps` sweeps over
    the remaining items (algorithm 1). With the subsets S⁽ˡ⁾ after each of them, held fixed,

    .. math:: \ell = \sum_k \Big(\frac1n \sum_{l=1}^n \bar f(S_k^{(l)}) - \bar f(X_k)\Big).

    Its gradient is the estimate of section 3.4. Its value is no likelihood: it may be negative,
    and a lower one does not mean a better fit. Few steps bias the gradient towards 0, for the
    chains still remember their start.

    Parameters
    ----------
    scores, tiers, direction, weights, reduction
        as in `pmop_exact`, with any number of items
    steps
        number of sweeps; the paper has 1 to 3
    generator
        a torch generator or an integer seed; without one, torch's global generator is used
    """
    given = Scores(scores)
    stages = Stages(given.values, tiers, direction)
    chains = _chains(stages, steps, generator)
    return reduced(given, _contrast(stages, gibbs(*chains), steps), weights, reduction)


@objective
def pmop_mh(
    scores: Any,
    tiers: Tiers,
    *,
    steps: int = 3,
    generator: Generator = None,
    as_printed: bool = False,
    direction: Direction = "forward",
    weights: Any = None,
    reduction: Reduction = "mean",
) -> Any:
    """Contrastive divergence for `pmop_exact` by Metropolis-Hastings (Tran et al., 2010).

    As `pmop_gibbs`, but a step is one proposal: a size, uniform on 1 … N, and a uniform subset of
    that size.

    Parameters
    ----------
    scores, tiers, generator, direction, weights, reduction
        as in `pmop_gibbs`
    steps
        number of proposals
    as_printed
        accept with probability min(1, Φ(S)/Φ(X)), as algorithm 1 has it. The proposal is not
        symmetric, and this chain tends to Φ(S)/C(N, |S|), not to Φ(S): small and large subsets
        come too often. By default the ratio has the factor C(N, |S|)/C(N, |X|) that mends it.
    """
    given = Scores(scores)
    stages = Stages(given.values, tiers, direction)
    chains = _chains(stages, steps, generator)
    samples = metropolis_hastings(*chains, as_printed=as_printed)
    return reduced(given, _contrast(stages, samples, steps), weights, reduction)


def _chains(
    stages: Stages, steps: int, generator: Generator
) -> tuple[Tensor, Tensor, Tensor, int, torch.Generator | None]:
    """What the samplers take: a chain a stage, started from what was observed."""
    if steps < 1:
        raise ValueError(f"steps = {steps}: a chain needs at least one")
    f = stages.centred.detach()
    return f, stages.offsets, stages.chosen, steps, as_generator(generator, f.device)


def _contrast(stages: Stages, samples: Iterable[Tensor], steps: int) -> Tensor:
    """[lists] Σ_k of the mean score of what was sampled, less that of what was chosen."""
    f, stage_of = stages.centred, stages.groups.of
    share = torch.zeros_like(f)
    for subset in samples:
        size = f.new_zeros(len(stages.sizes)).index_add_(0, stage_of, subset.to(f))
        share += subset / (steps * size[stage_of])
    return stages.sum_by_list(stages.groups.sum(share * f) - _mean_of_chosen(stages, f))


def _mean_of_chosen(stages: Stages, f: Tensor) -> Tensor:
    """[stages] the mean of [entries] f over what was chosen."""
    return stages.groups.sum(f * stages.chosen) / stages.picked
