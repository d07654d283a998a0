"""Slow, plain ways to the likelihood of tiers: what the fast path is measured against.

Nothing here is used by the fast path, and nothing here uses it. A list is given as a sequence
of tiers, best first, each holding the scores of its items::

    [[1.5], [0.2, -0.3], [0.0, -1.0, 2.0]]  # one item over two over three

Exact, by sums of positive terms, for small tiers:

- :func:`enumerate_log_prob`: every order of every tier, ``n!`` terms (equation 3);
- :func:`subset_log_prob_above`: a recursion over subsets, ``2^n`` terms.

Approximate, with the faults that it has:

- :func:`midpoint_log_prob`, :func:`midpoint_gradient`: the midpoint rule (equations 15, 16);
- :func:`intervals_needed`: how many intervals that rule is proven to need (theorem 1).

Equation, theorem and appendix numbers are those of J. Ma, X. Yi, W. Tang, Z. Zhao, L. Hong,
E. Chi and Q. Mei, *Learning-to-Rank with Partitioned Preference: Fast Estimation for the
Plackett-Luce Model*, AISTATS 2021. ``w`` is a score, ``S_m`` the m-th of ``M`` tiers, ``n_m``
its size, ``R_m = S_m ∪ … ∪ S_M``, and ``w_R = log Σ_{j∈R} e^{w_j}``.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import torch

__all__ = [
    "enumerate_log_prob",
    "intervals_needed",
    "midpoint_gradient",
    "midpoint_log_prob",
    "subset_log_prob_above",
    "theorem_constants",
]

_MOST_ENUMERATED = 9  # 9! = 362,880 orders
_MOST_SUBSETS = 20  # 2^20 = 1,048,576 subsets
_BLOCK = 2**18  # items times nodes held at once: small enough for a processor's cache


# Exact: sums of positive terms ---------------------------------------------------------------


def enumerate_log_prob(tiers_of_scores: Sequence[npt.ArrayLike]) -> float:
    """Log-probability of one list, by enumerating every order of every tier but the last.

    Equation 3 (lemma 1)::

        P = ∏_{m<M} Σ_{(i_1, …, i_n) an order of S_m} ∏_l e^{w_{i_l}} / Z_l

        Z_l = Σ_{j∈R_m} e^{w_j} − Σ_{r<l} e^{w_{i_r}}

    ``Z_l`` is the worth of what is still to be placed, and is summed as such, not subtracted.

    >>> round(math.exp(enumerate_log_prob([[0.0, 0.0], [0.0, 0.0]])), 6)  # 2! 2! / 4!
    0.166667
    """
    tiers = _arrays(tiers_of_scores)
    log_prob = 0.0
    for m, tier in enumerate(tiers[:-1]):
        n = len(tier)
        if n > _MOST_ENUMERATED:
            raise ValueError(
                f"tier {m} has {n} items, which is {math.factorial(n):,} permutations; "
                f"enumeration stops at {_MOST_ENUMERATED} items. "
                f"Use subset_log_prob_above (up to {_MOST_SUBSETS} items)."
            )
        below = np.logaddexp.reduce(np.concatenate(tiers[m + 1 :]))  # w_{R_{m+1}}
        ordered = (tier - below)[np.array(list(itertools.permutations(range(n))))]  # [n!, n]
        last_first = ordered[:, ::-1]
        # log Z_l, from the last place up: what is below (0 by now), then item after item.
        remaining = np.logaddexp.accumulate(np.insert(last_first, 0, 0.0, axis=1), axis=1)[:, 1:]
        log_prob += float(np.logaddexp.reduce((last_first - remaining).sum(axis=1)))
    return log_prob


def subset_log_prob_above(above: npt.ArrayLike, below: npt.ArrayLike) -> float:
    """Log-probability that all of ``above`` beat all of ``below``, by recursion over subsets.

    With ``f(S)`` the probability that the items ``S ⊆ A`` all come before ``B``, given that only
    ``S`` and ``B`` are left, the first of them to be placed is some ``a ∈ S``::

        f(∅) = 1,    f(S) = Σ_{a∈S} e^{w_a} / (Σ_B e^w + Σ_S e^w) · f(S \\ a),    P(A > B) = f(A)

    ``2^n`` values where enumeration has ``n!`` orders, and every term is positive.

    >>> round(math.exp(subset_log_prob_above([0.0, 0.0], [0.0, 0.0])), 6)  # 2! 2! / 4!
    0.166667
    """
    tier, rest = _arrays([above, below])
    n = len(tier)
    if n > _MOST_SUBSETS:
        raise ValueError(
            f"`above` has {n} items, which is {2**n:,} subsets; this stops at {_MOST_SUBSETS} items"
        )
    scores = tier - np.logaddexp.reduce(rest)

    # log(Σ_B e^w + Σ_S e^w), relative to log Σ_B e^w, for the subset S whose bits are the index.
    total = np.zeros(1)
    for score in scores:
        total = np.concatenate([total, np.logaddexp(total, score)])

    subsets = np.arange(2**n)
    size = sum((subsets >> a) & 1 for a in range(n))
    log_f = np.full(2**n, -np.inf)
    log_f[0] = 0.0
    for k in range(1, n + 1):
        of_size_k = subsets[size == k]
        for a, score in enumerate(scores):
            has_a = of_size_k[(of_size_k >> a) & 1 == 1]
            first_is_a = score - total[has_a] + log_f[has_a ^ (1 << a)]
            log_f[has_a] = np.logaddexp(log_f[has_a], first_is_a)
    return float(log_f[-1])


# The midpoint rule ---------------------------------------------------------------------------


def midpoint_log_prob(
    tiers_of_scores: Sequence[torch.Tensor | npt.ArrayLike],
    intervals: int = 10_000,
    c: float = 5.0,
) -> torch.Tensor:
    """Log-probability by the midpoint rule on [0, 1], as printed.

    Equation 15, after the change of variable ``v = u^{exp(−c − w_{R_{m+1}})}``::

        P = ∏_{m<M} I_m,    I_m = B ∫_0^1 v^{B − 1} ∏_{i∈S_m} (1 − v^{b_i}) dv

        B = exp(w_{R_{m+1}} + c),    b_i = exp(w_i + c)

    at ``v_t = (t − 1/2)/T``, with sums of logarithms in place of products (appendix A.5). The
    paper sets ``T = 10,000`` and ``c = 5`` throughout.

    .. warning:: For comparison only. The integrand falls off over about ``1/B`` from v = 1, and
       that shrinks as a list grows; once it is less than 1/T, the rule steps over the integrand.
       With the paper's T and c, standard normal scores and a top tier of 10 items, log P is off
       by 1 at N = 1,000 and by more than 1,000 at N = 100,000. (There c = −2 mends both to 1e-5;
       other lists want another c.)

    Args:
        tiers_of_scores: tier m of every list, best tier first, each of shape ``[..., n_m]``; the
            leading dimensions are lists. Lists of different shapes are padded with −inf, which
            stands for no item.
        intervals: T, the number of intervals.
        c: the shift of all scores. The exact value does not depend on it; the rule does.

    Returns:
        One log-probability a list, of shape ``[...]``, in the data type of the scores.
    """
    tiers = _tensors(tiers_of_scores)
    log_prob = torch.zeros(tiers[0].shape[:-1], dtype=tiers[0].dtype, device=tiers[0].device)
    for m, tier in enumerate(tiers[:-1]):
        below = _logsumexp(torch.cat(tiers[m + 1 :], dim=-1))
        total = torch.full_like(below, -math.inf)
        for log_v in _log_nodes(tier, intervals):
            log_product = _log_factors(tier, log_v, c).sum(dim=-2)
            log_f = (torch.exp(below + c) - 1).unsqueeze(-1) * log_v + log_product
            total = torch.logaddexp(total, torch.logsumexp(log_f, dim=-1))
        log_integral = below + c + total - math.log(intervals)
        log_prob = log_prob + torch.where(_compared(tier, below), log_integral, 0.0)
    return log_prob


@torch.no_grad()
def midpoint_gradient(
    tiers_of_scores: Sequence[torch.Tensor | npt.ArrayLike],
    intervals: int = 10_000,
    c: float = 5.0,
    *,
    as_printed: bool = False,
) -> tuple[torch.Tensor, list[torch.Tensor]]:
    """Log-probability, and its gradient by the paper's second integral; both in one pass.

    Lemma 2, with ``I_m`` of equation 15 and ``I_{m,i}`` of equation 16::

        ∇ log P = −Σ_{m<M} 1/I_m Σ_{i∈S_m} I_{m,i} ∇ e^{w_i − w_{R_{m+1}}}

        I_{m,i} = B² ∫_0^1 ∏_{j∈S_m} (1 − v^{b_j}) · v^{a_i − 1} log v / (1 − v^{b_i}) dv

    with ``B`` and ``b`` as in :func:`midpoint_log_prob`, and ``a_i = b_i + B``. Equation 16 prints
    ``a_i = exp(w_i + w_{R_{m+1}} + 2c)``, which is the product ``b_i B`` where the change of
    variable gives the sum. That is a slip: the printed integral is not the gradient, whatever the
    number of intervals. ``as_printed=True`` computes it all the same.

    The product over ``S_m`` is shared by its items, so that this costs ``O(n_m T)``; the paper
    counts ``O(n_m² T)``. Memory does not grow with the number of intervals.

    Args:
        tiers_of_scores, intervals, c: as for :func:`midpoint_log_prob`.
        as_printed: take the exponent that the paper prints.

    Returns:
        One log-probability a list, and the gradients, in the shapes of the tiers.
    """
    tiers = _tensors(tiers_of_scores)
    log_prob = torch.zeros(tiers[0].shape[:-1], dtype=tiers[0].dtype, device=tiers[0].device)
    gradients = [torch.zeros_like(tier) for tier in tiers]
    for m, tier in enumerate(tiers[:-1]):
        below = _logsumexp(torch.cat(tiers[m + 1 :], dim=-1))
        b = torch.exp(tier + c)
        b_below = torch.exp(below + c).unsqueeze(-1)
        a = b * b_below if as_printed else b + b_below

        total = torch.full_like(below, -math.inf)  # log of T times the integral in I_m
        total_of_item = torch.full_like(tier, -math.inf)  # and in −I_{m,i}
        for log_v in _log_nodes(tier, intervals):
            log_factors = _log_factors(tier, log_v, c)
            log_product = log_factors.sum(dim=-2)
            log_f = (b_below - 1) * log_v + log_product
            log_f_of_item = (
                log_product.unsqueeze(-2)
                + (a - 1).unsqueeze(-1) * log_v
                + torch.log(-log_v)
                - log_factors
            )
            total = torch.logaddexp(total, torch.logsumexp(log_f, dim=-1))
            total_of_item = torch.logaddexp(total_of_item, torch.logsumexp(log_f_of_item, dim=-1))

        compared = _compared(tier, below)
        log_integral = below + c + total - math.log(intervals)
        log_prob += torch.where(compared, log_integral, 0.0)
        # −e^{w_i − w_R} I_{m,i} / I_m, and e^{w_i − w_R} B² / B = e^{w_i + c}
        of_item = torch.exp(tier + c + total_of_item - total.unsqueeze(-1))
        of_item = torch.where(compared.unsqueeze(-1) & (tier > -math.inf), of_item, 0.0)
        gradients[m] += of_item
        # ∇ w_R is the softmax over R_{m+1}
        shift = torch.where(compared, below, 0.0).unsqueeze(-1)
        for r in range(m + 1, len(tiers)):
            gradients[r] -= of_item.sum(dim=-1, keepdim=True) * torch.exp(tiers[r] - shift)
    return log_prob, gradients


def _log_factors(tier: torch.Tensor, log_v: torch.Tensor, c: float) -> torch.Tensor:
    """``log(1 − v^{b_i})`` for each item and node: ``[..., n_m, nodes]``."""
    # An item that is not there never loses: 1 − v^∞ = 1.
    b = torch.where(tier > -math.inf, torch.exp(tier + c), math.inf)
    return torch.log(-torch.expm1(b.unsqueeze(-1) * log_v))


def _log_nodes(tier: torch.Tensor, intervals: int) -> Iterator[torch.Tensor]:
    """Logarithms of the nodes ``(t − 1/2)/T``, the ones next to 1 first, a block at a time."""
    if intervals < 1:
        raise ValueError(f"intervals must be at least 1, not {intervals}")
    from_one = (torch.arange(intervals, dtype=torch.float64) + 0.5) / intervals
    log_v = torch.log1p(-from_one).to(tier)
    yield from log_v.split(max(1, _BLOCK // max(1, tier.numel())))


def _logsumexp(scores: torch.Tensor) -> torch.Tensor:
    """Log-sum-exp over the last dimension; −inf, with a gradient of zero, where there is none."""
    there = scores > -math.inf
    total = torch.logsumexp(torch.where(there.any(-1, keepdim=True), scores, 0.0), dim=-1)
    return torch.where(there.any(-1), total, -math.inf)


def _compared(tier: torch.Tensor, below: torch.Tensor) -> torch.Tensor:
    """Lists in which this tier has an item, and something is below it; else its factor is 1."""
    return (tier > -math.inf).any(dim=-1) & (below > -math.inf)


# How many intervals --------------------------------------------------------------------------


def intervals_needed(error: float, n_m: int, C: float, C0: float | None = None) -> int:
    """Intervals that the midpoint rule needs for an error of at most ``error``: theorem 1.

    - (a) ``C² (n_m + 1) / (2 √3 ε)`` for the integral ``I_m`` of the likelihood to be within ε;
    - (b) ``√6 C^{11/2} n_m² / (C0² ε)`` for each integral ``I_{m,i}`` of the gradient to be within
      ``ε / n_m``.

    It assumes, for every tier but the last, for some shift ``c``,

    - (7) ``2 < exp(w_{R_m} + c) < C``,
    - (8) ``a > 4``, ``a + 2b > 5`` and ``b > C0``, with ``a = exp(w_i + w_{R_{m+1}} + 2c)`` and
      ``b = exp(w_i + c)`` for every item i of the tier; for (b) only.

    The proof of (a) uses (7) for ``R_{m+1}`` as well, so for the last tier too; that of (b) takes
    n_m to be at least 9, and the exponent a as equation 16 prints it (:func:`midpoint_gradient`).
    The error is that of the probability, not of its logarithm.

    Args:
        error: ε.
        n_m: the number of items in the tier.
        C: the upper bound in (7); :func:`theorem_constants` finds it.
        C0: the lower bound in (8). If given, the answer is (b), for the gradient; else (a).

    >>> intervals_needed(1e-3, n_m=10, C=50.0)
    7938567
    >>> f"{intervals_needed(1e-3, n_m=10, C=50.0, C0=0.5):.1e}"
    '2.2e+15'
    """
    if not error > 0:
        raise ValueError(f"error must be above 0, not {error}")
    if n_m < 1:
        raise ValueError(f"n_m, the number of items in a tier, must be at least 1, not {n_m}")
    if not 1 < C < math.inf:
        raise ValueError(f"C must be above 1 and finite, not {C}")
    if C0 is None:
        return math.ceil(C**2 * (n_m + 1) / (2 * math.sqrt(3) * error))
    if not 0 < C0 < 1:
        raise ValueError(f"C0 must lie between 0 and 1, not {C0}")
    return math.ceil(math.sqrt(6) * math.pow(C, 5.5) * n_m**2 / (C0**2 * error))


def theorem_constants(
    tiers_of_scores: Sequence[npt.ArrayLike], c: float = 5.0
) -> tuple[float, float]:
    """The constants ``C`` and ``C0`` of theorem 1 for one list and a shift ``c``.

    ``C = exp(w_{R_1} + c)``, which bounds all of (7) from above, and ``C0 = exp(w_i + c)`` of the
    lowest item that is not in the last tier, kept below 1. (The theorem wants each a hair further
    out.) Raises ``ValueError`` if the lower bound in (7) does not hold.
    """
    tiers = _arrays(tiers_of_scores)
    if len(tiers) < 2:
        raise ValueError("a list of one tier has no integral to bound")
    last = float(np.logaddexp.reduce(tiers[-1])) + c
    if not last > math.log(2):
        raise ValueError(
            f"assumption (7) fails: exp(w_R + c) = {math.exp(last):.3g} for the last tier, "
            f"where it must be above 2; take c above {c + math.log(2) - last:.6g}"
        )
    first = float(np.logaddexp.reduce(np.concatenate(tiers))) + c
    lowest = float(np.concatenate(tiers[:-1]).min()) + c
    C = math.exp(first) if first < 709 else math.inf  # e^709 is about the largest float
    return C, min(math.exp(min(lowest, 0.0)), math.nextafter(1.0, 0.0))


# Input ---------------------------------------------------------------------------------------


def _arrays(tiers_of_scores: Sequence[npt.ArrayLike]) -> list[npt.NDArray[np.float64]]:
    """One list's tiers as float64 vectors, checked."""
    tiers = [np.asarray(tier, dtype=np.float64) for tier in tiers_of_scores]
    if not tiers:
        raise ValueError("a list needs at least one tier")
    for m, tier in enumerate(tiers):
        if tier.ndim != 1:
            raise ValueError(f"tier {m} must be a vector of scores, not of shape {tier.shape}")
        if not len(tier):
            raise ValueError(f"tier {m} is empty: leave it out")
        if not np.isfinite(tier).all():
            raise ValueError(f"tier {m} has a score that is not finite: {tier}")
    return tiers


def _tensors(tiers_of_scores: Sequence[torch.Tensor | npt.ArrayLike]) -> list[torch.Tensor]:
    """Tiers as tensors of one floating type (Python numbers: float64), checked."""
    tiers = [
        tier if isinstance(tier, torch.Tensor) else torch.as_tensor(np.asarray(tier) * 1.0)
        for tier in tiers_of_scores
    ]
    if not tiers:
        raise ValueError("a list needs at least one tier")
    for m, tier in enumerate(tiers):
        if tier.dtype not in (torch.float32, torch.float64) or tier.dtype != tiers[0].dtype:
            raise ValueError(
                f"scores must be all float32 or all float64: tier 0 is {tiers[0].dtype}, "
                f"tier {m} is {tier.dtype}"
            )
        if tier.ndim < 1 or tier.shape[:-1] != tiers[0].shape[:-1]:
            raise ValueError(
                f"tiers must agree in all dimensions but the last: tier 0 has shape "
                f"{tuple(tiers[0].shape)}, tier {m} has {tuple(tier.shape)}"
            )
        if not (tier < math.inf).all():  # false for NaN too
            raise ValueError(f"tier {m} has a score that is NaN or +inf (−inf stands for no item)")
    return tiers
