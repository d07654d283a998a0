"""Several models in place of one: members whose scores are averaged, and a refit on all rows.

Early stopping spends the validation rows on one number, how long to learn. A refit learns once
more from training and validation rows together, for as long as was best. What was measured on the
validation rows stays what it is, a measurement of the model before: the curve is kept, and says by
`History.refit` that another model followed.

Members differ by their seeds. Where a seed decides nothing (L-BFGS; trees that see all rows and
features), all but the first learn from a bootstrap sample of the lists, by weights: a list that is
drawn twice counts twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from tierrank._types import AnyArray
from tierrank.data.cache import stacked
from tierrank.errors import Argument, ArgumentError, check_count
from tierrank.ranks import ALONE, Ranks
from tierrank.tiers.arrays import group_rows
from tierrank.training import Checkpoint, Watch
from tierrank.training.progress import member_seed, named

if TYPE_CHECKING:
    from tierrank.ranking.base import Ranker, TrainingRows, ValidationRows
    from tierrank.ranking.peers import TreePeer

Refit = bool | Literal["auto"]
Rows = tuple[tuple[Any, AnyArray], tuple[Any, AnyArray | None]]  # (X, y), (qid, lengths)


def will_refit(ranker: Ranker | TreePeer, *, validated: bool, clicks: bool) -> bool:
    """Check the settings; whether a refit is to follow.

    Parameters
    ----------
    validated
        whether there is an `eval_set`
    clicks
        whether rows come with positions, which an `eval_set` does not have, so that nothing is
        learned from both
    """
    check_count("members", ranker.members)
    refit = ranker.refit
    if not isinstance(refit, bool | np.bool_) and refit != "auto":
        raise ArgumentError(Argument("refit"), f' is True, False or "auto", not {refit!r}')
    for name, several in (("refit", refit is True), ("members", ranker.members > 1)):
        if clicks and several:
            raise ArgumentError(
                Argument(name), " does not go with positions and rows, which an eval_set does not "
                "have: leave it out",
            )  # fmt: skip
    if refit == "auto":
        return validated and not clicks and ranker._keeps_best
    if refit and not validated:
        raise ArgumentError(
            Argument("refit"), " learns once more from training and validation rows, but there are "
            "no validation rows: give an eval_set, or leave it out",
        )  # fmt: skip
    return bool(refit)


def together(
    train: Rows, valid: Rows, weights: Any = None, ranks: Ranks = ALONE
) -> tuple[Rows, AnyArray | None]:
    """Training rows, then validation rows; no list of one is a list of the other.

    The `eval_set` has no weights, so each of its lists weighs as much as a training list on
    average.
    """
    queries: list[AnyArray] = []
    counts: list[int] = []
    for (X, _), (qid, lengths) in (train, valid):
        if lengths is not None:
            qid = np.repeat(np.arange(len(lengths)), lengths)
        number, names = group_rows(qid, X.shape[0])
        queries.append(number + sum(counts))
        counts.append(len(names))
    X = stacked(train[0][0], valid[0][0])
    y = np.concatenate([train[0][1], valid[0][1]])
    if weights is not None:
        own = np.asarray(weights, dtype=np.float64)
        total, number = np.sum(ranks.gather((own.sum(), len(own))), axis=0)
        weights = np.concatenate([own, np.full(counts[1], total / number)])
    return ((X, y), (np.concatenate(queries), None)), weights


def learn(
    ranker: Ranker,
    model: Ranker,
    train: TrainingRows,
    valid: ValidationRows | None,
    refit: tuple[Rows, AnyArray | None] | None,
    checkpoint: Checkpoint,
    watch: Watch | None,
    before: Ranker | None,
) -> None:
    """After the first model, learn the others, and let the ranker be their mean.

    Stopped by Ctrl-C, the ranker is the mean of those that are done; before there are any, it is
    the first.

    Parameters
    ----------
    ranker, model
        what the first was learned by, and a copy of it that knows the categories of all rows
    train, valid
        what the first was learned from
    refit
        all rows, as `together` gave them, to learn all members anew from; None: no refit
    checkpoint
        that of the first model; the others keep their states in folders below
    """
    from tierrank.ranking.features import Steps, steps_from

    learned = [model]
    if refit is not None:
        rows, weights = refit
        if before is None:
            model.steps_ = Steps(steps_from(ranker.features))
        every = model._prepared(*rows, weights, fit=before is None)
        all_rows, first_rows = np.sum(ranker._ranks.gather((len(every.y), len(train.y))), axis=0)
        if not model._lengthen(float(all_rows / first_rows), before):
            return  # nothing was learned beyond what was known before
        train, valid, learned = every, None, []

    def take() -> None:
        if learned:
            ranker._average(learned, before)
            ranker.steps_ = model.steps_
            if refit is not None:
                ranker.history_.refit = learned[0].history_.steps[-1]

    try:
        for number in range(len(learned), ranker.members):
            member = copy(model)
            member.random_state = member_seed(ranker._seed, number)
            same = not number or ranker._draws(train)
            seen = train if same else resampled(train, member.random_state)
            kind = "member" if refit is None else "refit"
            name = f"{kind} {number + 1} of {ranker.members}" if ranker.members > 1 else kind
            kept = Checkpoint(
                checkpoint.folder and checkpoint.folder / f"{kind}-{number}",
                checkpoint.identity,
                every=checkpoint.every,
            )
            member._learn(seen, valid, kept, named(watch, name), before)
            learned.append(member)
    except KeyboardInterrupt:
        take()
        raise
    except BaseException:
        del ranker.history_  # a fit that fails does not leave half of another one
        raise
    take()


def mean_of(states: Sequence[dict[str, float]]) -> dict[str, float]:
    """What objectives learned beside the scores, averaged by name."""
    return {name: float(np.mean([state[name] for state in states])) for name in states[0]}


def resampled(rows: TrainingRows, seed: int) -> TrainingRows:
    """A bootstrap sample of the lists, by weights."""
    own = np.ones(len(rows.tiers)) if rows.weights is None else rows.weights
    return replace(rows, weights=own * times_drawn(rows.teaches, seed))


def times_drawn(teaches: AnyArray, seed: int) -> AnyArray:
    """[lists] how often each is in a bootstrap sample, in which some list teaches something."""
    rng = np.random.default_rng(seed)
    lists = len(teaches)
    while True:
        times = np.bincount(rng.integers(lists, size=lists), minlength=lists)
        if times[teaches].any():
            return times
