"""The references themselves: each against one that was computed in another way."""

import itertools
import math

import numpy as np
import pytest
import torch
from mpmath import mp, mpf

import oracle
from oracle import (
    gradient_mp,
    hessian_mp,
    log_prob_above_mp,
    log_prob_mp,
    relative_error,
    value_and_gradient_mp,
)
from reference import (
    enumerate_log_prob,
    intervals_needed,
    midpoint_gradient,
    midpoint_log_prob,
    subset_log_prob_above,
    theorem_constants,
)

THREE_TIERS = [[1.5, -0.25], [0.5, 0.5, -3.0], [0.75, -1.0]]


def ordered_partitions(items):
    """Every way to put items into ordered tiers."""
    if not items:
        yield []
    for size in range(1, len(items) + 1):
        for tier in itertools.combinations(items, size):
            rest = [item for item in items if item not in tier]
            yield from ([list(tier), *others] for others in ordered_partitions(rest))


def normal_scores(n, top, seed=0):
    """n standard normal scores in two tiers, the upper one of `top` items."""
    return np.split(np.random.default_rng(seed).standard_normal(n), [top])


# The 40-digit oracle, against closed forms ----------------------------------------------------


def to_40_digits(value, exact):
    return relative_error(value, exact) < 1e-40


@pytest.mark.parametrize("d", [-1e4, -40.0, -1.25, 0.0, 3.5, 40.0, 1e4])
def test_oracle_one_item(d):
    with mp.workdps(70):
        exact = -mp.log1p(mp.exp(-mpf(d)))
    assert to_40_digits(log_prob_above_mp([d]), exact)


@pytest.mark.parametrize("d", [(0.5, -0.75), (40.0, -40.0), (-38.5, -39.0), (1e4, -1e4)])
def test_oracle_two_items(d):
    with mp.workdps(70):
        a, b = mp.exp(mpf(d[0])), mp.exp(mpf(d[1]))
        exact = mp.log(a * b * (a + b + 2) / ((a + b + 1) * (a + 1) * (b + 1)))
    assert to_40_digits(log_prob_above_mp(d), exact)


@pytest.mark.parametrize("n", [3, 100, 10_000])
@pytest.mark.parametrize("d", [-40.0, -2.0, 0.0, 2.0, 40.0])
def test_oracle_equal_items(n, d):
    with mp.workdps(150):  # the difference of two logarithms loses digits
        r = mp.exp(-mpf(d))  # what is below, in items; P = ∏_{j=1..n} j / (j + r)
        exact = mp.loggamma(1 + r) + mp.loggamma(n + 1) - mp.loggamma(n + 1 + r)
    assert to_40_digits(log_prob_above_mp([d] * n), exact)


@pytest.mark.parametrize("d", [-1e4, 1e4])
def test_oracle_equal_items_at_the_ends(d):
    """n items of worth e^d → 0 over 1: n! e^{nd}. Of worth e^d → ∞: certain."""
    n = 10_000
    with mp.workdps(70):
        exact = mp.loggamma(n + 1) + n * mpf(d) if d < 0 else 0
    assert to_40_digits(log_prob_above_mp([d] * n), exact)


def test_oracle_mixed_items():
    """The recursion over subsets, in 70 digits."""
    d = [-40.0, -7.5, 0.125, 0.25, 3.0, 33.0]
    with mp.workdps(70):
        worths = [mp.exp(mpf(value)) for value in d]
        f = {(): mpf(1)}
        for size in range(1, len(d) + 1):
            for subset in itertools.combinations(range(len(d)), size):
                total = 1 + sum(worths[a] for a in subset)
                f[subset] = sum(
                    worths[a] / total * f[tuple(s for s in subset if s != a)] for a in subset
                )
        exact = mp.log(f[tuple(range(len(d)))])
    assert to_40_digits(log_prob_above_mp(d), exact)


def test_oracle_mixed_items_at_the_ends():
    """Items that always win do not matter, and 50 that always lose count as 50! e^{Σd}."""
    few = [-1.5, 0.0, 2.0]
    assert to_40_digits(log_prob_above_mp(few + [1e4] * 50), log_prob_above_mp(few))
    with mp.workdps(70):
        exact = mp.loggamma(51) - 50 * mpf(10_000)
    assert to_40_digits(log_prob_above_mp([-1e4] * 50 + [1e4] * 50), exact)


def test_oracle_of_a_list_is_the_product_over_its_tiers():
    with mp.workdps(70):
        worth = [[mp.exp(mpf(w)) for w in tier] for tier in THREE_TIERS]
        rest = sum(worth[1]) + sum(worth[2])
        exact = log_prob_above_mp(
            [mpf(w) - mp.log(rest) for w in THREE_TIERS[0]]
        ) + log_prob_above_mp([mpf(w) - mp.log(sum(worth[2])) for w in THREE_TIERS[1]])
    assert to_40_digits(log_prob_mp(THREE_TIERS), exact)
    assert log_prob_mp([[1.0, 2.0]]) == 0


@pytest.mark.slow
@pytest.mark.parametrize(("low", "high"), [(-40.0, 40.0), (30.0, 40.0), (-1e4, 1e4), (-1e4, -9e3)])
def test_oracle_for_many_scores_agrees_with_the_one_for_few(low, high, monkeypatch):
    """Double-double arithmetic, which takes over in large tiers, against mpmath."""
    rng = np.random.default_rng(1)
    top = rng.choice(rng.uniform(low, high, 20), 10_000)
    tiers = [top, rng.normal(size=3), rng.choice(rng.normal(size=20), 1_000)]
    value, gradient = value_and_gradient_mp(tiers)
    monkeypatch.setattr(oracle, "MOST_MP", 19)
    value_of_many, gradient_of_many = value_and_gradient_mp(tiers)
    assert 0 < relative_error(value_of_many, value) < 1e-29
    assert gradient_of_many[0].dtype == gradient_of_many[2].dtype == np.float64
    for many, few in zip(gradient_of_many, gradient, strict=True):
        assert relative_error(many, few) < 2e-15


@pytest.mark.slow
def test_oracle_gradient_and_hessian_are_the_derivatives():
    tiers = [[1.5, -0.25], [0.5], [0.75, -1.0]]
    gradient, hessian = np.concatenate(gradient_mp(tiers)), hessian_mp(tiers)
    assert hessian.shape == (5, 5)
    with mp.workdps(60):
        step = mpf(10) ** -10  # central differences are good to about its square
        for i in (0, 2, 4):  # one of each tier
            moved = []
            for sign in (1, -1):
                scores = np.array([mpf(w) for tier in tiers for w in tier])
                scores[i] += sign * step
                moved.append(value_and_gradient_mp(np.split(scores, [2, 3])))
            (up, slopes_up), (down, slopes_down) = moved
            slopes = (np.concatenate(slopes_up) - np.concatenate(slopes_down)) / (2 * step)
            assert relative_error(gradient[i], (up - down) / (2 * step)) < 1e-18
            assert relative_error(hessian[i], slopes) < 1e-18
        assert abs(gradient.sum()) < 1e-40
        assert np.abs(hessian.sum(axis=0)).max() < 1e-40


def test_oracle_takes_float32_as_the_numbers_they_are():
    scores = [torch.tensor([0.1, 0.2], requires_grad=True), torch.tensor([0.3])]
    exact = [[float(np.float32(0.1)), float(np.float32(0.2))], [float(np.float32(0.3))]]
    assert log_prob_mp(scores) == log_prob_mp(exact)
    assert log_prob_mp(scores) != log_prob_mp([[0.1, 0.2], [0.3]])


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_oracle_refuses_scores_that_are_not_finite(bad):
    with pytest.raises(ValueError, match="finite scores only"):
        log_prob_mp([[0.0, bad], [1.0]])


def test_oracle_refuses_to_guess():
    def jagged(x):
        return abs(x - 0.1), oracle._NOTHING, oracle._NOTHING, oracle._NOTHING

    window = oracle._Window(left=-1.0, mode=0.0, right=1.0, width=0.5, log_peak=0.0)
    with pytest.raises(ArithmeticError, match="did not settle"):
        oracle._trapezoid(jagged, window, mpf(10) ** -40)


def test_relative_error():
    assert relative_error([1.0, 300.0], [mpf(1.5), mpf(200)]) == 0.5
    assert relative_error(torch.tensor([0.5]), np.array([0.25])) == 0.25
    assert math.isnan(relative_error([0.0, math.nan], [mpf(1), mpf(1)]))


# Enumeration and subsets ----------------------------------------------------------------------


def test_enumeration_by_hand():
    """Two of worth 1 and 2 over one of worth 3: 1/6 · 2/5 + 2/6 · 1/4."""
    scores = [[math.log(1), math.log(2)], [math.log(3)]]
    assert math.exp(enumerate_log_prob(scores)) == pytest.approx(1 / 6 * 2 / 5 + 2 / 6 * 1 / 4)


@pytest.mark.parametrize("spread", [1.0, 20.0, 1000.0])
def test_enumeration_agrees_with_subsets_on_every_ordered_partition_of_five(spread):
    scores = np.random.default_rng(2).uniform(-spread, spread, 5)
    partitions = list(ordered_partitions(list(range(5))))
    assert len(partitions) == 541
    for partition in partitions:
        tiers = [scores[tier] for tier in partition]
        by_subsets = sum(
            subset_log_prob_above(tiers[m], np.concatenate(tiers[m + 1 :]))
            for m in range(len(tiers) - 1)
        )
        assert relative_error(enumerate_log_prob(tiers), by_subsets) < 1e-13


@pytest.mark.parametrize("sizes", [(2, 1, 2), (3, 2), (1, 1, 1, 1, 1), (4, 1)])
def test_probabilities_of_all_tiers_of_the_same_sizes_sum_to_one(sizes):
    scores = np.random.default_rng(3).uniform(-3, 3, 5)
    total = math.fsum(
        math.exp(enumerate_log_prob([scores[tier] for tier in partition]))
        for partition in ordered_partitions(list(range(5)))
        if tuple(map(len, partition)) == sizes
    )
    assert total == pytest.approx(1, abs=1e-13)


@pytest.mark.slow
@pytest.mark.parametrize("spread", [2.0, 20.0, 1e4])
def test_enumeration_and_subsets_agree_with_the_oracle(spread):
    rng = np.random.default_rng(4)
    tiers = [rng.uniform(-spread, spread, n) for n in (8, 3, 4)]
    assert relative_error(enumerate_log_prob(tiers), log_prob_mp(tiers)) < 1e-13
    above, below = rng.uniform(-spread, spread, 16), rng.uniform(-spread, spread, 4)
    exact = log_prob_mp([above, below])
    assert relative_error(subset_log_prob_above(above, below), exact) < 1e-13


def test_one_tier_is_certain():
    assert enumerate_log_prob([[1.0, 2.0, 3.0]]) == 0
    assert midpoint_log_prob([[1.0, 2.0, 3.0]]) == 0


@pytest.mark.parametrize(
    ("tiers", "message"),
    [
        ([np.zeros(10), [0.0]], "tier 0 has 10 items, which is 3,628,800 permutations"),
        ([], "at least one tier"),
        ([[1.0], []], "tier 1 is empty"),
        ([[1.0], [math.nan]], "tier 1 has a score that is not finite"),
        ([[math.inf], [0.0]], "tier 0 has a score that is not finite"),
        ([[[1.0]], [0.0]], r"tier 0 must be a vector of scores, not of shape \(1, 1\)"),
    ],
)
def test_enumeration_refuses(tiers, message):
    with pytest.raises(ValueError, match=message):
        enumerate_log_prob(tiers)


def test_subsets_refuse_too_many_items():
    with pytest.raises(ValueError, match="2,097,152 subsets"):
        subset_log_prob_above(np.zeros(21), [0.0])


# The midpoint rule ----------------------------------------------------------------------------


def test_midpoint_is_equation_15_as_printed():
    intervals, c = 40, 0.75
    expected = 0.0
    for m in range(2):
        below = sum(math.exp(w) for tier in THREE_TIERS[m + 1 :] for w in tier)  # e^{w_R}
        B = below * math.exp(c)
        f = [
            v ** (B - 1) * math.prod(1 - v ** math.exp(w + c) for w in THREE_TIERS[m])
            for v in ((t - 0.5) / intervals for t in range(1, intervals + 1))
        ]
        expected += math.log(B * sum(f) / intervals)
    assert float(midpoint_log_prob(THREE_TIERS, intervals, c)) == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("as_printed", [False, True])
def test_midpoint_gradient_is_lemma_2_with_equation_16(as_printed):
    tier, rest = THREE_TIERS[1:]
    intervals, c = 40, 0.75
    below = sum(map(math.exp, rest))
    B = below * math.exp(c)
    b = [math.exp(w + c) for w in tier]
    nodes = [(t - 0.5) / intervals for t in range(1, intervals + 1)]

    def integral(extra):  # the mean over nodes of the product, times something
        return sum(math.prod(1 - v**b_j for b_j in b) * extra(v) for v in nodes) / intervals

    I_m = B * integral(lambda v: v ** (B - 1))
    expected = []
    for b_i in b:
        a = b_i * B if as_printed else b_i + B
        I_mi = B**2 * integral(lambda v, a=a, b_i=b_i: v ** (a - 1) * math.log(v) / (1 - v**b_i))
        expected.append(-I_mi / I_m * (b_i / B))
    _, (upper, lower) = midpoint_gradient([tier, rest], intervals, c, as_printed=as_printed)
    assert upper.tolist() == pytest.approx(expected, rel=1e-12)
    shared = [-sum(expected) * math.exp(w) / below for w in rest]
    assert lower.tolist() == pytest.approx(shared, rel=1e-12)


@pytest.mark.parametrize("c", [1.0, 2.0])
def test_midpoint_converges_on_small_lists(c):
    value, gradient = log_prob_mp(THREE_TIERS), np.concatenate(gradient_mp(THREE_TIERS))
    errors = []
    for intervals in (500, 20_000):
        approximate, parts = midpoint_gradient(THREE_TIERS, intervals, c)
        assert approximate == midpoint_log_prob(THREE_TIERS, intervals, c)
        errors.append(relative_error(approximate, value))
        assert relative_error(torch.cat(parts), gradient) < 10 / intervals
    assert errors[1] < errors[0] / 10
    assert errors[1] < 1e-4


def test_equation_16_as_printed_is_not_the_gradient():
    """It has a product where the change of variable gives a sum, and no T mends that."""
    exact = np.concatenate(gradient_mp(THREE_TIERS))
    for intervals in (10_000, 50_000):
        _, parts = midpoint_gradient(THREE_TIERS, intervals, 1.0)
        assert relative_error(torch.cat(parts), exact) < 1e-3
        _, parts = midpoint_gradient(THREE_TIERS, intervals, 1.0, as_printed=True)
        assert relative_error(torch.cat(parts), exact) > 0.1


@pytest.mark.parametrize("seed", range(3))
def test_midpoint_with_the_paper_s_settings_is_off_by_a_nat_at_1000_items(seed):
    """T = 10,000, c = 5: what the documentation says of it. Another c mends it."""
    tiers = normal_scores(1_000, top=10, seed=seed)
    exact = float(log_prob_mp(tiers))
    assert abs(float(midpoint_log_prob(tiers)) - exact) == pytest.approx(1, abs=0.25)
    assert abs(float(midpoint_log_prob(tiers, c=-2.0)) - exact) < 1e-10


def test_midpoint_with_the_paper_s_settings_is_off_by_1000_nats_at_100000_items():
    tiers = normal_scores(100_000, top=10)
    exact = float(log_prob_mp(tiers))
    assert 1_000 < abs(float(midpoint_log_prob(tiers)) - exact) < 1_500
    assert abs(float(midpoint_log_prob(tiers, c=-2.0)) - exact) < 1e-4


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_midpoint_on_a_padded_batch_is_the_midpoint_on_each_list(dtype):
    lists = [THREE_TIERS, [[0.3], [0.1, -0.4]], [[2.0, 1.0]]]
    padded = [
        torch.tensor([[0.3, -math.inf], [1.5, -0.25], [2.0, 1.0]], dtype=dtype),
        torch.tensor([[-0.4, 0.1, -math.inf], [0.5, 0.5, -3.0], [-math.inf] * 3], dtype=dtype),
        torch.tensor([[-math.inf] * 2, [0.75, -1.0], [-math.inf] * 2], dtype=dtype),
    ]
    padded = [tier.requires_grad_() for tier in padded]
    one_by_one = [float(midpoint_log_prob(lists[i], 500, 1.0)) for i in (1, 0, 2)]
    tolerance = 1e-5 if dtype == torch.float32 else 1e-13

    value = midpoint_log_prob(padded, 500, 1.0)
    assert value.dtype == dtype
    assert value.shape == (3,)
    assert value.tolist() == pytest.approx(one_by_one, abs=tolerance)
    assert value[2] == 0

    value, gradients = midpoint_gradient(padded, 500, 1.0)
    assert value.tolist() == pytest.approx(one_by_one, abs=tolerance)
    _, alone = midpoint_gradient(lists[1], 500, 1.0)
    assert gradients[0][0].tolist() == pytest.approx([*alone[0].tolist(), 0], abs=tolerance)
    assert gradients[1][0].tolist() == pytest.approx([*alone[1].tolist()[::-1], 0], abs=tolerance)
    assert all((gradient[2] == 0).all() for gradient in gradients)
    assert sum(g.sum(-1) for g in gradients).tolist() == pytest.approx([0] * 3, abs=tolerance)

    # Autograd differentiates the rule: for a tier's own items that is equation 16 too.
    midpoint_log_prob(padded, 500, 1.0).sum().backward()
    assert all(tier.grad.isfinite().all() for tier in padded)
    assert torch.allclose(padded[0].grad, gradients[0], atol=tolerance)


def test_midpoint_does_not_depend_on_the_size_of_a_block(monkeypatch):
    whole = midpoint_gradient(THREE_TIERS)
    monkeypatch.setattr("reference._BLOCK", 1_000)
    blocks = midpoint_gradient(THREE_TIERS)
    assert float(blocks[0]) == pytest.approx(float(whole[0]), rel=1e-13)
    assert torch.allclose(torch.cat(blocks[1]), torch.cat(whole[1]), rtol=1e-12)


@pytest.mark.parametrize(
    ("tiers", "message"),
    [
        ([], "at least one tier"),
        ([torch.zeros(2), torch.zeros(2, dtype=torch.float64)], "all float32 or all float64"),
        ([torch.zeros(2, dtype=torch.int64), torch.zeros(2)], "all float32 or all float64"),
        ([torch.zeros(2, 3), torch.zeros(3, 3)], "agree in all dimensions but the last"),
        ([torch.tensor(0.0)], "agree in all dimensions but the last"),
        ([[0.0], [math.nan]], r"tier 1 has a score that is NaN or \+inf"),
        ([[math.inf], [0.0]], r"tier 0 has a score that is NaN or \+inf"),
    ],
)
def test_midpoint_refuses(tiers, message):
    with pytest.raises(ValueError, match=message):
        midpoint_log_prob(tiers)


def test_midpoint_refuses_no_intervals():
    with pytest.raises(ValueError, match="intervals must be at least 1, not 0"):
        midpoint_log_prob([[0.0], [0.0]], intervals=0)


# Theorem 1 ------------------------------------------------------------------------------------


def test_theorem_1_by_hand():
    assert intervals_needed(0.01, n_m=5, C=3.0) == math.ceil(9 * 6 / (2 * 3**0.5 * 0.01))
    expected = 6**0.5 * 3**5.5 * 25 / (0.25 * 0.01)
    assert intervals_needed(0.01, n_m=5, C=3.0, C0=0.5) == math.ceil(expected)


def test_theorem_1_keeps_its_promise():
    tiers, c = [[0.0, -0.5, 0.2], [1.0, 0.5]], 0.1
    C, C0 = theorem_constants(tiers, c)
    assert pytest.approx(math.exp(0.1) * sum(math.exp(w) for w in itertools.chain(*tiers))) == C
    assert pytest.approx(math.exp(-0.4)) == C0
    exact = math.exp(log_prob_mp(tiers))
    for error in (1e-2, 1e-3):
        intervals = intervals_needed(error, n_m=3, C=C)
        assert abs(math.exp(midpoint_log_prob(tiers, intervals, c)) - exact) < error


def test_theorem_1_asks_for_more_than_the_paper_takes():
    """At N = 1,000 standard normal scores and c = 5: ten thousand million times more."""
    C, _ = theorem_constants(normal_scores(1_000, top=10))
    assert intervals_needed(0.01, n_m=10, C=C) > 1e9 * 10_000


def test_theorem_constants_refuse():
    with pytest.raises(ValueError, match=r"assumption \(7\) fails.*take c above 0.693147"):
        theorem_constants([[0.0], [0.0]], c=0.0)
    with pytest.raises(ValueError, match="one tier"):
        theorem_constants([[0.0]])
    assert theorem_constants([[0.0], [1e4]])[0] == math.inf
    assert 0 < theorem_constants([[0.0], [1.0]])[1] < 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"error": 0.0}, "error must be above 0"),
        ({"error": math.nan}, "error must be above 0"),
        ({"n_m": 0}, "at least 1"),
        ({"C": 1.0}, "C must be above 1"),
        ({"C": math.inf}, "C must be above 1 and finite"),
        ({"C0": 1.0}, "C0 must lie between 0 and 1"),
        ({"C0": 0.0}, "C0 must lie between 0 and 1"),
    ],
)
def test_intervals_needed_refuses(arguments, message):
    with pytest.raises(ValueError, match=message):
        intervals_needed(**{"error": 0.1, "n_m": 2, "C": 3.0, **arguments})
