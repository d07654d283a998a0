"""The likelihood of tiers to 40 digits: what every test of accuracy compares with.

A list is a sequence of tiers of scores, best first. Scores are taken as the exact numbers that
their floats are. For a tier A over what is below it, B, with d_a = w_a − log Σ_B e^w, ::

    P(A > B) = ∫ exp(x − e^x) ∏_{a∈A} (1 − e^{−z_a}) dx,    z_a = e^{x + d_a}

over the real line. The integrand is entire, log-concave and falls off exponentially or faster, so
the trapezoidal rule converges exponentially: halving the step squares its error. Each integral is
computed with a step and with half of it, until the two agree to 1e-30 (so that the second is good
to far more); if they do not come to agree, an error is raised.

Derivatives are expectations over x, weighted by the integrand: with q_a = z_a / (e^{z_a} − 1), ::

    ∂ log P / ∂d_a = E[q_a]
    ∂² log P / ∂d_a ∂d_b = Cov(q_a, q_b) + [a = b] E[q_a (1 − q_a − z_a)]

Items of equal score are grouped, so time grows with the number of different scores. Tiers with
more than `MOST_MP` of them are computed in vectorised double-double arithmetic, which leaves about
30 digits of the value, and their gradients are float64, good to the last digits of that.
"""

from __future__ import annotations

import functools
import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from mpmath import mp, mpf

DIGITS = 55  # carried by mpmath: 15 more than are promised
MOST_MP = 400  # different scores in a tier that mpmath is given

Array = np.ndarray[Any, Any]
Pair = tuple[Array, Array]  # a double-double: the unevaluated sum of two float64 arrays


# What tests call -----------------------------------------------------------------------------


def log_prob_above_mp(d: Iterable[Any]) -> mpf:
    """log P(A > B) to 40 digits, where d holds the scores of A less log Σ_B e^w."""
    with mp.workdps(DIGITS):
        return _moments(_grouped([mpf(value) for value in _numbers(d)])).log_prob


def log_prob_mp(tiers_of_scores: Sequence[Any]) -> mpf:
    """Log-probability of one list, to 40 digits."""
    with mp.workdps(DIGITS):
        return mp.fsum(_moments(tier).log_prob for tier in _relative_tiers(tiers_of_scores))


def gradient_mp(tiers_of_scores: Sequence[Any]) -> list[Array]:
    """Gradient of a list's log-probability: an array for each tier, in the order given.

    The entries are mpf, to 40 digits; in tiers of more than `MOST_MP` different scores, float64.
    """
    return value_and_gradient_mp(tiers_of_scores)[1]


def value_and_gradient_mp(tiers_of_scores: Sequence[Any]) -> tuple[mpf, list[Array]]:
    """Log-probability of one list and its gradient, for the price of the gradient."""
    with mp.workdps(DIGITS):
        groups = [np.unique(_numbers(tier), return_inverse=True) for tier in tiers_of_scores]
        gradients = [_zeros(len(values)) for values, _ in groups]
        log_prob = mpf(0)
        for m, tier in enumerate(_relative_tiers(tiers_of_scores)):
            log_prob_of_tier, mean, *_ = _moments(tier, order=1)
            log_prob += log_prob_of_tier
            gradients[m] += mean.astype(gradients[m].dtype)
            total = mp.fdot(zip(mean, map(int, tier.counts), strict=True))
            for r in range(m + 1, len(groups)):  # ∂d_a/∂w_b = −softmax
                gradients[r] -= _times_exp(total, groups[r][0], tier.below)
        return log_prob, [g[inverse] for g, (_, inverse) in zip(gradients, groups, strict=True)]


def _zeros(n: int) -> Array:
    return np.full(n, mpf(0)) if n <= MOST_MP else np.zeros(n)


def _times_exp(factor: mpf, values: Array, shift: mpf) -> Array:
    """factor · e^(values − shift)"""
    if len(values) <= MOST_MP:
        return np.array([factor * mp.exp(mpf(value) - shift) for value in values])
    near = float(shift)  # shift − near is about 1e-16, and counts
    return float(factor) * np.exp(values - near) * (1 - float(shift - near))


def hessian_mp(tiers_of_scores: Sequence[Any]) -> Array:
    """Hessian of a list's log-probability over all its scores, tier after tier: [N, N] of mpf."""
    with mp.workdps(DIGITS):
        scores = [_numbers(tier) for tier in tiers_of_scores]
        start = np.cumsum([0] + [len(tier) for tier in scores])
        hessian = np.full((start[-1], start[-1]), mpf(0))
        for m, tier in enumerate(_relative_tiers(tiers_of_scores)):
            moments = _moments(tier, order=2)
            a, b = slice(start[m], start[m + 1]), slice(start[m + 1], None)
            upper = moments.covariance[np.ix_(tier.inverse, tier.inverse)]
            upper[np.diag_indices(len(upper))] += moments.curvature[tier.inverse]
            worth = np.array([mp.exp(mpf(w) - tier.below) for w in np.concatenate(scores[m + 1 :])])
            rows = upper.sum(axis=1)
            total = moments.mean[tier.inverse].sum()
            hessian[a, a] += upper
            hessian[a, b] -= np.outer(rows, worth)
            hessian[b, a] -= np.outer(worth, rows)
            hessian[b, b] += (rows.sum() + total) * np.outer(worth, worth) - total * np.diag(worth)
        return hessian


def relative_error(computed: Any, exact: Any) -> float:
    """Largest |computed − exact| / max(1, |exact|), entry by entry; NaN if there is one."""
    with mp.workdps(DIGITS):
        ours, right = _numbers(computed), _numbers(exact)
        if right.dtype == object:
            ours = np.array([mpf(value) for value in ours])
        return float(np.max(np.abs(ours - right) / np.maximum(1, np.abs(right))))


# Tiers of equal values -----------------------------------------------------------------------


class _Tier(NamedTuple):
    """A tier by its different values: d ascending, how many items have each, and whose is whose."""

    d: list[mpf]
    counts: Array
    inverse: Array
    below: mpf | None = None  # log Σ_B e^w


def _grouped(d: list[mpf]) -> _Tier:
    different = sorted(set(d))
    index = {value: i for i, value in enumerate(different)}
    inverse = np.array([index[value] for value in d])
    return _Tier(different, np.bincount(inverse), inverse)


def _relative_tiers(tiers_of_scores: Sequence[Any]) -> list[_Tier]:
    """Every tier but the last, best first, relative to what is below it."""
    tiers: list[_Tier] = []
    worth_below = mpf(0)
    for scores in reversed([_numbers(tier) for tier in tiers_of_scores]):
        values, inverse, counts = np.unique(scores, return_inverse=True, return_counts=True)
        if worth_below:
            below = mp.log(worth_below)
            tiers.append(_Tier([mpf(v) - below for v in values], counts, inverse, below))
        worth_below += _sum_exp(values, counts)
    return tiers[::-1]


def _sum_exp(values: Array, counts: Array) -> mpf:
    if len(values) <= MOST_MP:
        return mp.fsum(int(n) * mp.exp(mpf(v)) for v, n in zip(values, counts, strict=True))
    largest = values[-1]  # they ascend; what is e^−80 of the largest cannot be seen
    near = values > largest - 80
    total = mpf(0)
    for block in np.array_split(np.flatnonzero(near), 1 + len(values) // 20_000):
        exp = _dd_exp_minus(_two_sum(largest, -values[block]))[0]
        total += _dd_sum(_dd_mul(exp, (counts[block].astype(float), np.zeros(len(block)))))
    return total * mp.exp(mpf(largest))


def _numbers(values: Any) -> Array:
    """A flat array: of exact float64 from any floats (torch's too), else of the objects given."""
    array = np.asarray(values.detach().cpu() if hasattr(values, "detach") else values)
    return (array if array.dtype == object else array.astype(np.float64)).ravel()


# The integral --------------------------------------------------------------------------------


class _Moments(NamedTuple):
    log_prob: mpf
    mean: Array  # E[q]
    curvature: Array  # E[q (1 − q − z)]
    covariance: Array  # Cov(q, q)


def _moments(tier: _Tier, order: int = 0) -> _Moments:
    """The integral of a tier, and expectations up to an order of derivative."""
    d = np.array([float(value) for value in tier.d])
    if not np.isfinite(d).all():
        raise ValueError("the oracle takes finite scores only")
    many = len(d) > MOST_MP and order < 2
    window = _window(d, tier.counts.astype(float), drop=(30 if many else 46) * np.log(10))
    integrand = (_integrand_dd if many else _integrand_mp)(tier, order, window.log_peak)
    step, sums = _trapezoid(integrand, window, mpf(10) ** (-24 if many else -30))
    total, *expected = sums
    mean, curvature, square = (part / total for part in expected)
    log_prob = mp.log(step * total) + window.log_peak
    covariance = square - np.outer(mean, mean) if order == 2 else square
    return _Moments(log_prob, mean, curvature, covariance)


class _Window(NamedTuple):
    left: float
    mode: float
    right: float
    width: float
    log_peak: float


def _window(d: Array, counts: Array, drop: float) -> _Window:
    """Where the integrand is within e^−drop of its largest value; float64 is enough for that."""

    def log_integrand(x: float) -> float:
        z = np.exp(np.clip(x + d, -40, 700))
        log_factor = np.where(x + d < -40, x + d, np.log(-np.expm1(-z)))
        return float(x - np.exp(min(x, 700)) + (counts * log_factor).sum())

    def slope_and_bend(x: float) -> tuple[float, float]:
        z = np.exp(np.clip(x + d, -40, 6))  # e^6 = 403, where q is 0 to 170 digits
        q = z / np.expm1(z)
        bend = np.where(z < 1e-5, z / 2, q * (q + z - 1))
        return float(1 - np.exp(x) + (counts * q).sum()), float(np.exp(x) + (counts * bend).sum())

    # 0 ≤ q ≤ 1, so the slope 1 − e^x + Σ q changes sign between 0 and log(n + 1).
    mode = _bisect(lambda x: slope_and_bend(x)[0] < 0, 0.0, float(np.log1p(counts.sum())))
    peak = log_integrand(mode)
    left = right = 1.0
    while log_integrand(mode - left) > peak - drop:
        left *= 2
    while log_integrand(mode + right) > peak - drop:
        right *= 2
    left = _bisect(lambda x: log_integrand(x) > peak - drop, mode - left, mode)
    right = _bisect(lambda x: log_integrand(x) < peak - drop, mode, mode + right)
    return _Window(left, mode, right, slope_and_bend(mode)[1] ** -0.5, peak)


def _bisect(is_right: Callable[[float], bool], low: float, high: float) -> float:
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if is_right(middle) else (middle, high)
    return (low + high) / 2


# At a node, or summed over nodes: the weight, and the weight times q, q (1 − q − z) and q qᵀ.
# The parts that an order of derivative does not need are empty.
Terms = tuple[mpf, Array, Array, Array]
Integrand = Callable[[mpf], Terms]
_NOTHING = np.zeros(0)


def _trapezoid(integrand: Integrand, window: _Window, tolerance: mpf) -> tuple[mpf, Terms]:
    """A step, and the sums of the terms over the nodes: halved until it no longer matters."""

    def over_nodes(first: mpf, step: mpf) -> Terms:
        low = math.ceil((window.left - first) / step)
        high = math.floor((window.right - first) / step)
        nodes = (first + j * step for j in range(low, high + 1))
        return functools.reduce(_add, map(integrand, nodes))

    # With 2 steps to the width, the error for a Gaussian is exp(−2 π² 2²) = 5e-35; with half the
    # step, 1e-137. Where the integrand is bounded for |Im x| < π/2 it is about exp(−π² / step).
    mode = mpf(window.mode)
    step = mpf(min(window.width / 2, 0.13))
    coarse = over_nodes(mode, step)
    for _ in range(8):
        fine = _add(coarse, over_nodes(mode + step / 2, step))
        if _disagreement(coarse, fine) < tolerance:
            return step / 2, fine
        coarse, step = fine, step / 2
    raise ArithmeticError(f"the trapezoidal rule did not settle for a tier: {window}")


def _add(left: Terms, right: Terms) -> Terms:
    return left[0] + right[0], left[1] + right[1], left[2] + right[2], left[3] + right[3]


def _disagreement(coarse: Terms, fine: Terms) -> mpf:
    """How far two steps are apart, in the integral and in E[q], relative to the integral."""
    worst = abs(2 * coarse[0] / fine[0] - 1)
    if fine[1].dtype == object and len(fine[1]):
        worst = max(worst, np.abs(2 * coarse[1] - fine[1]).max() / fine[0])
    return worst


def _integrand_mp(tier: _Tier, order: int, log_scale: float) -> Integrand:
    worths = [mp.exp(value) for value in tier.d]
    counts = [int(n) for n in tier.counts]
    scale = mp.exp(-log_scale)
    enough = mpf(2.5 * DIGITS)  # from here on e^−z is below the last digit, and the factor is 1

    def evaluate(x: mpf) -> Terms:
        exp_x = mp.exp(x)
        weight = scale * exp_x * mp.exp(-exp_x)
        z, q = [], []
        for a in range(bisect_left(worths, enough / exp_x)):  # worths ascend
            z.append(exp_x * worths[a])
            factor = _one_minus_exp_minus(z[a])
            weight *= factor if counts[a] == 1 else factor ** counts[a]
            if order:
                q.append(z[a] * (1 - factor) / factor)
        if not order:
            return weight, _NOTHING, _NOTHING, _NOTHING
        first = np.full(len(worths), mpf(0))
        first[: len(q)] = [weight * q_a for q_a in q]
        if order == 1:
            return weight, first, _NOTHING, _NOTHING
        bend = np.full(len(worths), mpf(0))
        bend[: len(q)] = [weight * q_a * (1 - q_a - z_a) for q_a, z_a in zip(q, z, strict=True)]
        return weight, first, bend, np.outer(first, first) / weight

    return evaluate


def _one_minus_exp_minus(z: mpf) -> mpf:
    if z > 1e-10:  # loses ten digits at most, of the fifteen to spare
        return 1 - mp.exp(-z)
    return z * (1 - z / 2 * (1 - z / 3 * (1 - z / 4 * (1 - z / 5))))  # and z^5/720 is 1e-53


# Double-double arithmetic: T. Dekker, A floating-point technique for extending the available
# precision, Numerische Mathematik 18 (1971). About 31 digits, in plain float64 operations. ------


def _integrand_dd(tier: _Tier, order: int, log_scale: float) -> Integrand:
    # Within reach of the window, items below d = −300 have the factor z and q = 1 to all digits,
    # and those above 300 have the factor 1 and q = 0.
    low, high = bisect_left(tier.d, -300), bisect_left(tier.d, 300)
    lows = int(tier.counts[:low].sum())
    low_sum = mp.fdot(zip(tier.d[:low], map(int, tier.counts[:low]), strict=True))
    worths = _dd([mp.exp(value) for value in tier.d[low:high]])
    item = np.repeat(np.arange(high - low), tier.counts[low:high])

    def evaluate(x: mpf) -> Terms:
        exp_x = mp.exp(x)
        near = np.searchsorted(worths[0], float(80 / exp_x))  # from z = 80 on, too, the factor is 1
        z = _dd_mul((worths[0][:near], worths[1][:near]), _dd([exp_x]))
        lost, factor = _dd_exp_minus(z)
        each = item[: np.searchsorted(item, near)]
        weight = mp.exp(x - exp_x - log_scale + low_sum + lows * x)
        weight *= _dd_product((factor[0][each], factor[1][each]))
        if not order:
            return weight, _NOTHING, _NOTHING, _NOTHING
        # All terms are positive, so float64 gives the mean to its last digits.
        first = np.zeros(len(tier.d))
        first[:low] = float(weight)
        first[low : low + near] = float(weight) * (z[0] * lost[0] / factor[0])
        return weight, first, _NOTHING, _NOTHING

    return evaluate


def _two_sum(a: Array, b: Array) -> Pair:
    total = a + b
    of_b = total - a
    return total, (a - (total - of_b)) + (b - of_b)


def _fast_two_sum(large: Array, small: Array) -> Pair:
    total = large + small
    return total, small - (total - large)


def _split(a: Array) -> Pair:
    shifted = 134217729.0 * a  # 2^27 + 1
    high = shifted - (shifted - a)
    return high, a - high


def _two_product(a: Array, b: Array) -> Pair:
    product = a * b
    (a_high, a_low), (b_high, b_low) = _split(a), _split(b)
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


def _dd_add(x: Pair, y: Pair) -> Pair:
    high, error = _two_sum(x[0], y[0])
    low, rest = _two_sum(x[1], y[1])
    high, error = _fast_two_sum(high, error + low)
    return _fast_two_sum(high, error + rest)


def _dd_mul(x: Pair, y: Pair) -> Pair:
    high, error = _two_product(x[0], y[0])
    return _fast_two_sum(high, error + (x[0] * y[1] + x[1] * y[0]))


def _dd_scale(x: Pair, power_of_two: Any) -> Pair:
    return x[0] * power_of_two, x[1] * power_of_two


def _dd_exp_minus(z: Pair) -> tuple[Pair, Pair]:
    """e^−z and 1 − e^−z, each to full relative precision, for z ≥ 0."""
    z = np.minimum(z[0], 80.0), np.where(z[0] < 80, z[1], 0.0)  # e^−80 is below the last digit of 1
    k = np.rint(z[0] / _LOG_2[0])
    rest = _dd_add(_dd_mul((k, np.zeros_like(k)), _LOG_2), _dd_scale(z, -1.0))  # k log 2 − z
    # s = e^rest − 1: a series for rest / 64, then (1 + s)² − 1 six times
    small = _dd_scale(rest, 1 / 64)
    s = _INVERSE_FACTORIALS[-1]
    for inverse_factorial in _INVERSE_FACTORIALS[-2::-1]:
        s = _dd_add(_dd_mul(s, small), inverse_factorial)
    s = _dd_mul(s, small)
    for _ in range(6):
        s = _dd_add(_dd_scale(s, 2.0), _dd_mul(s, s))
    one = np.ones_like(k), np.zeros_like(k)
    lost = _dd_scale(_dd_add(one, s), 2.0**-k)
    kept = _dd_add(one, _dd_scale(lost, -1.0))
    return lost, (np.where(k == 0, -s[0], kept[0]), np.where(k == 0, -s[1], kept[1]))


def _dd_sum(x: Pair) -> mpf:
    while len(x[0]) > 1:
        x = _dd_add(*_halves(x, 0.0))
    return mpf(x[0][0]) + mpf(x[1][0])


def _dd_product(x: Pair) -> mpf:
    exponent = 0
    while True:  # powers of two are kept apart, so that nothing underflows
        high, powers = np.frexp(x[0])
        x = high, np.ldexp(x[1], -powers)
        exponent += int(powers.sum())
        if len(high) <= 1:
            return mp.ldexp(mpf(x[0][0]) + mpf(x[1][0]), exponent) if len(high) else mpf(1)
        x = _dd_mul(*_halves(x, 1.0))


def _halves(x: Pair, neutral: float) -> tuple[Pair, Pair]:
    if len(x[0]) % 2:
        x = np.append(x[0], neutral), np.append(x[1], 0.0)
    return (x[0][::2], x[1][::2]), (x[0][1::2], x[1][1::2])


def _dd(values: Sequence[mpf]) -> Pair:
    high = np.array([float(value) for value in values])
    return high, np.array([float(v - mpf(h)) for v, h in zip(values, high, strict=True)])


with mp.workdps(DIGITS):
    _LOG_2 = _dd([mp.log(2)])
    _INVERSE_FACTORIALS = [_dd([1 / mp.factorial(n)]) for n in range(1, 14)]
