"""How exact the likelihood is: against 40 digits, over all sizes and strengths of tiers.

The promise: errors of log P are at most 1e-12 in float64 and 1e-5 in float32, relative to
max(1, |log P|); errors of the gradient at most 1e-10 and 1e-4, and in each list it sums to zero
as closely. (Where a gradient is −10,000, float32 has steps of 1e-3: four roundings are granted
on top.) Nearly all scores here are float32 numbers, so that one reference serves both.
"""

import functools
import itertools

import numpy as np
import pytest
import torch
from mpmath import mp, mpf

import oracle
import tierrank as tr
from partitions import computing, each_dtype, each_kernel, rows_of_lists, value_and_gradient

TOLERANCE = {torch.float64: (1e-12, 1e-10), torch.float32: (1e-5, 1e-4)}


def single(scores):
    """Rounded to float32, as float64."""
    return np.asarray(scores, dtype=np.float32).astype(np.float64)


def assert_exact(names, value, gradient, exact, exact_gradient):
    """Compare lists whose rows follow each other; a complaint names the worst of them."""
    assert_values_exact(names, value, exact)
    assert_gradients_exact(names, gradient, exact_gradient)


def assert_values_exact(names, value, exact):
    errors = [oracle.relative_error(ours, right) for ours, right in zip(value, exact, strict=True)]
    worst_is_at_most(TOLERANCE[value.dtype][0], errors, names, "log P")


def assert_gradients_exact(names, gradient, exact):
    assert gradient.isfinite().all()
    tolerance = TOLERANCE[gradient.dtype][1]
    granted = 4 * torch.finfo(torch.float32).eps if gradient.dtype == torch.float32 else 0.0
    ours = np.split(gradient.double().numpy(), np.cumsum([len(part) for part in exact])[:-1])
    errors = [np.max(abs(a - b) - granted * abs(b)) for a, b in zip(ours, exact, strict=True)]
    worst_is_at_most(tolerance, errors, names, "the gradient")
    sums = [abs(part.sum()) - granted * abs(part).sum() for part in ours]
    worst_is_at_most(tolerance, sums, names, "the sum of the gradient")


def worst_is_at_most(tolerance, errors, names, what):
    assert np.isfinite(errors).all()
    worst = int(np.argmax(errors))
    assert errors[worst] <= tolerance, f"{what} of {names[worst]} is off by {errors[worst]:.2g}"


# Equal scores: a closed form -------------------------------------------------------------------

SIZES = (1, 2, 3, 4, 5, 6, 7, 12, 40, 150, 1000, 10_000)
HEIGHTS = range(-40, 41, 5)


@functools.cache
def equal_scores(n, d, below):
    """log P of n items of score d above some of score 0, and its gradient in an item of each.

    When k of the n are left, the next to be drawn is one of them with probability
    k e^d / (k e^d + below), so with x = below e^−d

        P = ∏_k k / (k + x) = n! Γ(1 + x) / Γ(n + 1 + x).
    """
    with mp.workdps(80):
        x = below * mp.exp(-mpf(d))
        log_prob = mp.loggamma(n + 1) + mp.loggamma(1 + x) - mp.loggamma(n + 1 + x)
        slope = x * (mp.psi(0, n + 1 + x) - mp.psi(0, 1 + x))
        return log_prob, float(slope / n), float(-slope / below)


@each_kernel
@each_dtype
@pytest.mark.parametrize("below", [1, 1000])
def test_tiers_of_equal_scores(kernel, dtype, below):
    cases = [(n, d) for n in SIZES for d in HEIGHTS]
    scores, tiers = rows_of_lists([[np.full(n, float(d)), np.zeros(below)] for n, d in cases])
    exact, above, under = zip(*(equal_scores(n, d, below) for n, d in cases), strict=True)
    exact_gradient = [
        np.repeat(pair, [n, below]) for (n, _), *pair in zip(cases, above, under, strict=True)
    ]
    with computing(kernel):
        value, gradient = value_and_gradient(
            lambda w: tr.log_prob(w, tiers), torch.from_numpy(scores).to(dtype)
        )
    names = [f"{n} items of score {d} above {below} of 0" for n, d in cases]
    assert_exact(names, value, gradient, exact, exact_gradient)


@each_dtype
@pytest.mark.parametrize("n", [300_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
def test_tiers_of_any_size(dtype, n):
    """Equal scores are the hardest: every rounding is the same, the wall of winners steepest."""
    tiers = tr.Tiers.from_labels(np.repeat([1, 0], [n, 1]))
    for d in (-40, -9, -8, 0, 2.5, 3, 4, 5, 10.5, 40):
        exact, *slopes = equal_scores(n, d, 1)
        scores = torch.from_numpy(np.repeat([d, 0.0], [n, 1])).to(dtype)
        with computing("compiled"):
            value, gradient = value_and_gradient(lambda w: tr.log_prob(w, tiers), scores)
        assert_values_exact([f"{n} items of score {d} above one of 0"], value, [exact])
        tolerance = TOLERANCE[dtype][1]
        right = torch.from_numpy(np.repeat(slopes, [n, 1]))
        torch.testing.assert_close(gradient.double(), right, rtol=tolerance, atol=tolerance)


# Everything else: the oracle -------------------------------------------------------------------


# fmt: off
BY_CHANCE = [  # whose last two Hermite coefficients are small, and the rule off by 2e-5
    5.131586, 5.1428056, 1.0645397, 5.1243343, 1.0527406, 5.15049, 1.0509449, 1.0394624, 1.1086277,
    5.1269093, 5.126653, 1.0810503, 5.113655, 5.1313806, 5.124009, 5.125116, 5.1345897, 1.0884129,
    1.0437406, 1.0601932, 1.052658, 1.0472177, 1.0703057,
]
# fmt: on


@each_dtype
def test_a_certificate_is_not_fooled_by_chance(dtype):
    scores = np.append(BY_CHANCE, 0).astype(np.float32)
    right, _ = oracle.value_and_gradient_mp([scores[:-1], scores[-1:]])
    tiers = tr.Tiers.from_labels(np.repeat([1, 0], [len(BY_CHANCE), 1]))
    value = tr.log_prob(torch.from_numpy(scores).to(dtype), tiers)
    assert_values_exact(["two clusters"], value, [right])


def mixed():
    """A tier of all kinds above one item of score 0, so that its scores are d."""
    rng = np.random.default_rng(1)
    cases = {}
    for n in (2, 5, 6, 30, 100):
        cases[f"{n} normal"] = rng.normal(size=n)
        cases[f"{n} uniform in ±40"] = rng.uniform(-40, 40, size=n)
    for n in (2, 6, 9, 100, 10_000):
        outlier = np.arange(n) == 0
        cases[f"{n} at ±40"] = np.where(np.arange(n) % 2, 40, -40)
        cases[f"{n} at −10 and 3"] = np.where(np.arange(n) % 3, 3, -10)
        cases[f"one at −40, {n - 1} at 40"] = np.where(outlier, -40, 40)
        cases[f"one at −40, {n - 1} at 0"] = np.where(outlier, -40, 0)
        cases[f"one at 40, {n - 1} at 0"] = np.where(outlier, 40, 0)
        cases[f"one at 40, {n - 1} at −40"] = np.where(outlier, 40, -40)
    cases["10000 of all integers in ±40"] = rng.integers(-40, 41, size=10_000)
    return {name: [single(tier), np.zeros(1)] for name, tier in cases.items()}


def mixed_and_large():
    """As many different scores as items: each is an integrand's factor to the oracle."""
    rng = np.random.default_rng(7)
    cases = {
        "3000 normal": rng.normal(size=3000),
        "3000 uniform in ±40": rng.uniform(-40, 40, size=3000),
        "10000 normal": rng.normal(size=10_000),
    }
    return {name: [single(tier), np.zeros(1)] for name, tier in cases.items()}


def halves(rng, n):
    """Normal numbers rounded to halves: few different ones, which makes the oracle quick."""
    return np.round(2 * rng.normal(size=n)) / 2


def many_tiers():
    rng = np.random.default_rng(2)
    cases = {
        (1, 1, 1, 1): 16,
        (2, 3, 4, 5): 1,
        (5, 4, 3, 2): 16,
        (1, 30, 1, 20): 1,
        (60, 2, 1, 1): 1,
        (6, 6, 6, 6, 6): 16,
    }
    return {
        f"tiers of {shape}, scores times {scale}": [scale * halves(rng, n) for n in shape]
        for shape, scale in cases.items()
    }


def high_and_low():
    """Scores of ±1e4, rounded to halves so that they are float32 numbers."""
    rng = np.random.default_rng(3)
    shape = (4, 1, 7, 9)
    cases = {
        f"all about {height:g}": [height + halves(rng, n) for n in shape] for height in (1e4, -1e4)
    }
    for heights in [
        (1e4, 0, -1e4), (-1e4, 0, 1e4), (0, 1e4, -1e4), (0, -1e4, 1e4), (1e4, 1e4, -1e4),
        (-1e4, 1e4, 1e4),
    ]:  # fmt: skip
        cases[f"tiers at {heights}"] = [
            h + halves(rng, n) for h, n in zip(heights, (6, 3, 8), strict=True)
        ]
    cases["single items at 1e4, 0, −1e4"] = [np.array([h]) for h in (1e4, 0.0, -1e4)]
    cases["single items at −1e4, 0, 1e4"] = [np.array([h]) for h in (-1e4, 0.0, 1e4)]
    cases["a tier of 1e4, 0 and −1e4 above 0"] = [np.repeat([1e4, 0, -1e4], 3), np.zeros(2)]
    cases["a tier of 1e4 and −1e4 above 1e4"] = [np.repeat([1e4, -1e4], 4), np.full(2, 1e4)]
    cases["1000 at −1e4 above 1e4"] = [np.full(1000, -1e4), np.full(2, 1e4)]
    cases["1000 at 1e4 above −1e4"] = [np.full(1000, 1e4), np.full(2, -1e4)]
    return cases


FAMILIES = {
    "mixed": mixed, "mixed and large": mixed_and_large, "many tiers": many_tiers,
    "high and low": high_and_low,
}  # fmt: skip
SLOW = pytest.param("mixed and large", marks=pytest.mark.slow)


def exact_value_and_gradient(tiers_of_scores):
    """log P of a list to 40 digits, and its gradient over all items, tier after tier."""
    value, gradients = oracle.value_and_gradient_mp(tiers_of_scores)
    return value, np.concatenate(gradients).astype(float)


@functools.cache
def references(family):
    lists = FAMILIES[family]()
    exact, gradients = zip(*map(exact_value_and_gradient, lists.values()), strict=True)
    return list(lists), list(lists.values()), exact, gradients


@pytest.mark.slow
@each_dtype
@each_kernel
@pytest.mark.parametrize("family", ["mixed", SLOW, "many tiers", "high and low"])
def test_against_forty_digits(kernel, dtype, family):
    names, lists, exact, exact_gradient = references(family)
    scores, tiers = rows_of_lists(lists)
    with computing(kernel):
        value, gradient = value_and_gradient(
            lambda w: tr.log_prob(w, tiers), torch.from_numpy(scores).to(dtype)
        )
    assert_exact(names, value, gradient, exact, exact_gradient)


@each_kernel
def test_scores_near_ten_thousand_keep_their_last_digits(kernel):
    """Numbers that need all of float64: what sets them apart is 1e-12 of their size."""
    scores = 1e4 + np.random.default_rng(4).normal(size=18)
    lists = np.split(scores, [5, 6, 12])
    with computing(kernel):
        value, gradient = value_and_gradient(
            lambda w: tr.log_prob(w, rows_of_lists([lists])[1]), scores
        )
    exact, exact_gradient = exact_value_and_gradient(lists)
    assert_exact(["the list"], value, gradient, [exact], [exact_gradient])


@functools.cache
def million():
    """Tiers of 100, 1, 200 and 199 items above a rest; a million items in all."""
    rng = np.random.default_rng(5)
    sizes = [100, 1, 200, 199]
    tiers = [halves(rng, n) for n in sizes]
    tiers.append(np.round(64 * rng.normal(size=1_000_000 - sum(sizes))) / 64)
    return tiers, *exact_value_and_gradient(tiers)


@each_dtype
@each_kernel
@pytest.mark.parametrize("form", ["rows", "scores of the list", "scores of two lists"])
def test_a_list_of_a_million_items(kernel, dtype, form):
    tiers_of_list, exact, exact_gradient = million()
    scores, tiers = rows_of_lists([tiers_of_list])
    lists = 2 if form == "scores of two lists" else 1  # the same list, twice
    if form != "rows":
        borders = np.cumsum([0] + [len(tier) for tier in tiers_of_list[:-1]]).tolist()
        named = [tuple(range(*ends)) for ends in itertools.pairwise(borders)]
        tiers = tr.Tiers.from_rankings([named] * lists, items=len(scores), rest="last")
    with computing(kernel):
        value, gradient = value_and_gradient(
            lambda w: tr.log_prob(w, tiers), torch.from_numpy(scores).to(dtype)
        )
    assert_exact(["the list"], value[-1:], gradient / lists, [exact], [exact_gradient])


NAMED = {
    "one item": [[0]],
    "some tiers": [[1, 2, 3], [4], [5, 6]],
    "all but one": [list(range(1, 20)), list(range(20, 40))],
}


@functools.cache
def shared_scores(height):
    """40 scores, log P of the lists in NAMED with the rest below, and the gradient of their sum."""
    scores = height + halves(np.random.default_rng(6), 40)
    exact, gradient = [], np.zeros(40)
    for named in NAMED.values():
        order = [*named, sorted(set(range(40)) - {item for tier in named for item in tier})]
        lists = [scores[tier] for tier in order]
        value, slope = exact_value_and_gradient(lists)
        exact.append(value)
        gradient[np.concatenate(order)] += slope
    return scores, exact, gradient


@each_dtype
@each_kernel
@pytest.mark.parametrize("height", [0.0, 1e4, -1e4])
def test_shared_scores_with_a_rest_at_any_height(kernel, dtype, height):
    """What stands below is one number here, and may not be rounded as a score of 1e4 is."""
    scores, exact, exact_gradient = shared_scores(height)
    rankings = [list(map(tuple, named)) for named in NAMED.values()]
    tiers = tr.Tiers.from_rankings(rankings, items=40, rest="last")
    with computing(kernel):
        value, gradient = value_and_gradient(
            lambda w: tr.log_prob(w, tiers), torch.from_numpy(scores).to(dtype)
        )
    assert_values_exact(list(NAMED), value, exact)
    assert_gradients_exact(["all lists"], gradient, [exact_gradient])


@pytest.mark.parametrize(
    ("kernel", "dtype", "n"),
    [
        ("compiled", torch.float64, 90_000),
        ("compiled", torch.float32, 700_000),
        ("plain", torch.float64, 90_000),
    ],
)
def test_a_tier_that_is_too_large_to_be_kept_in_memory(kernel, dtype, n):
    """The compiled kernel keeps 64 MB a tier: 87,381 items in float64, 699,050 in float32."""
    tiers = tr.Tiers.from_labels(np.r_[np.ones(n), np.zeros(10)])
    exact, above, under = equal_scores(n, -3, 10)
    scores = torch.from_numpy(np.repeat([-3.0, 0.0], [n, 10])).to(dtype)
    with computing(kernel):
        value, gradient = value_and_gradient(lambda w: tr.log_prob(w, tiers), scores)
    assert oracle.relative_error(value, [exact]) <= TOLERANCE[dtype][0]
    np.testing.assert_allclose(
        gradient, np.repeat([above, under], [n, 10]), rtol=TOLERANCE[dtype][1]
    )
