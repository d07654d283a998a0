"""Rao-Kupper and Davidson: games that may end in a tie."""

import math

import mpmath
import numpy as np
import pytest
import torch
from scipy.sparse import csr_array

import tierrank as tr
from partitions import computing, each_dtype, each_kernel, ragged
from tierrank.losses.pairwise import davidson, ranknet, rao_kupper

MODELS = {"rao_kupper": (rao_kupper, "alpha"), "davidson": (davidson, "beta")}
each_model = pytest.mark.parametrize(("loss", "option"), MODELS.values(), ids=MODELS.keys())

# what two items can do: i wins, a tie, j wins
OUTCOMES = {name: tr.Tiers.from_labels(y) for name, y in
            (("win", [1, 0]), ("tie", [0, 0]), ("lose", [0, 1]))}  # fmt: skip


# The models ------------------------------------------------------------------------------------


@each_model
@each_kernel
@pytest.mark.parametrize("parameter", [-20.0, -1.5, 0.0, 2.0, 20.0])
@pytest.mark.parametrize("d", [-30.0, -2.0, 0.0, 0.3, 7.0])
def test_the_three_outcomes_have_probability_one(loss, option, kernel, parameter, d):
    with computing(kernel):
        minus_log = [
            float(loss([d, 0.0], outcome, **{option: parameter})) for outcome in OUTCOMES.values()
        ]
    assert all(part >= 0 for part in minus_log)
    assert sum(math.exp(-part) for part in minus_log) == pytest.approx(1, rel=1e-14)


@each_kernel
def test_probabilities_in_figures(kernel):
    """Worths 4 and 1, θ = 3: 4/(4+3), 1/(12+1), (9−1)·4/(7·13); v = 3: 4, 1 and 3·2 of 11."""
    with computing(kernel):
        for outcome, expected in (("win", 4 / 7), ("lose", 1 / 13), ("tie", 32 / 91)):
            loss = rao_kupper([math.log(4), 0.0], OUTCOMES[outcome], alpha=math.log(2))
            assert math.exp(-loss) == pytest.approx(expected, rel=1e-14)
        for outcome, expected in (("win", 4 / 11), ("lose", 1 / 11), ("tie", 6 / 11)):
            loss = davidson([math.log(4), 0.0], OUTCOMES[outcome], beta=math.log(3))
            assert math.exp(-loss) == pytest.approx(expected, rel=1e-14)


@each_model
@each_kernel
def test_ties_of_the_last_tier_count_as_those_of_any_other(loss, option, kernel):
    """All pairs of 2 > {0, 1} > {3, 4}, one by one."""
    w = np.array([0.4, -0.3, 1.2, -0.9, 0.1])
    ties, wins = [(0, 1), (3, 4)], [(2, 0), (2, 1), (2, 3), (2, 4), (0, 3), (0, 4), (1, 3), (1, 4)]
    with computing(kernel):
        pairs = [float(loss(w[list(pair)], OUTCOMES["tie"])) for pair in ties]
        pairs += [float(loss(w[list(pair)], OUTCOMES["win"])) for pair in wins]
        assert loss(w, tr.Tiers.from_labels([1, 1, 2, 0, 0])) == pytest.approx(
            sum(pairs), rel=1e-13
        )


# Gradients -------------------------------------------------------------------------------------


@each_model
@each_kernel
@pytest.mark.parametrize("value", [-3.0, 0.2, 4.0])
def test_gradients_in_scores_and_parameter(loss, option, kernel, value):
    scores, labels, lengths = ragged(12, lists=4, longest=7)
    tiers = tr.Tiers.from_labels(labels, lengths=lengths)
    weights = np.array([1.0, 0.5, 2.0, 0.0])
    with computing(kernel):
        assert torch.autograd.gradcheck(
            lambda w, p: loss(w, tiers, weights=weights, reduction="none", **{option: p}),
            (
                torch.from_numpy(scores).requires_grad_(),
                torch.tensor(value, dtype=torch.float64, requires_grad=True),
            ),
        )


@each_model
@each_dtype
@pytest.mark.parametrize("kind", [torch.float64, torch.float32, torch.bfloat16])
def test_the_parameter_may_be_of_any_kind_of_float(loss, option, dtype, kind):
    parameter = torch.tensor(0.5, dtype=kind, requires_grad=True)
    w = torch.tensor([0.5, 0.0, 1.0], dtype=dtype)  # no gradient is asked of the scores
    result = loss(w, tr.Tiers.from_labels([1, 0, 0]), **{option: parameter})
    assert result.dtype == dtype
    assert result.item() == pytest.approx(
        loss(w, tr.Tiers.from_labels([1, 0, 0]), **{option: 0.5}).item()
    )
    result.backward()
    assert parameter.grad.dtype == kind
    assert parameter.grad.isfinite()


def derivatives(loss, option, outcome, w_i, w_j, parameter):
    """∂log P(outcome) in w_i, w_j and the parameter, by autograd."""
    w = torch.tensor([w_i, w_j], dtype=torch.float64, requires_grad=True)
    p = torch.tensor(parameter, dtype=torch.float64, requires_grad=True)
    log_prob = -loss(w, OUTCOMES[outcome], **{option: p})
    by_w, by_p = torch.autograd.grad(log_prob, (w, p))
    return (*by_w.tolist(), by_p.item())


POINTS = pytest.mark.parametrize(
    ("w_i", "w_j", "parameter"), [(0.7, -0.4, 0.3), (-1.0, 0.5, -1.2), (0.2, 0.1, 1.5)]
)


@POINTS
@each_kernel
def test_rao_kuppers_gradients_as_appendix_c_prints_them(kernel, w_i, w_j, parameter):
    """Tran, Phung and Venkatesh (2010), appendix C.

    All that concerns ties holds, and ∂ log P(i above j)/∂w_i. The other two of a win are
    misprinted: they have P_j where P_j* belongs.
    """
    i, j, e = math.exp(w_i), math.exp(w_j), math.exp(parameter)
    p_i, p_j_star = i / (i + (1 + e) * j), j / (i + (1 + e) * j)
    p_i_star, p_j = i / ((1 + e) * i + j), j / ((1 + e) * i + j)
    with computing(kernel):
        win = derivatives(rao_kupper, "alpha", "win", w_i, w_j, parameter)
        tie = derivatives(rao_kupper, "alpha", "tie", w_i, w_j, parameter)
    assert win[0] == pytest.approx(1 - p_i)
    assert win[1] == pytest.approx(-(1 + e) * p_j_star)
    assert win[1] != pytest.approx(-(1 + e) * p_j)  # as printed
    assert win[2] == pytest.approx(-p_j_star * e)
    assert win[2] != pytest.approx(-p_j * e)  # as printed
    assert tie[0] == pytest.approx(1 - p_i - (1 + e) * p_i_star)
    assert tie[1] == pytest.approx(1 - p_j - (1 + e) * p_j_star)
    assert tie[2] == pytest.approx((2 * (1 + e) / ((1 + e) ** 2 - 1) - p_i_star - p_j_star) * e)


@POINTS
@each_kernel
def test_davidsons_gradients_as_appendix_c_prints_them(kernel, w_i, w_j, parameter):
    """All hold but ∂ log P(i above j)/∂w_j, which is misprinted: it has P_i for P_j."""
    i, j, v = math.exp(w_i), math.exp(w_j), math.exp(parameter)
    total = i + j + v * math.sqrt(i * j)
    p_i, p_j, p_ij = i / total, j / total, v * math.sqrt(i * j) / total
    with computing(kernel):
        win = derivatives(davidson, "beta", "win", w_i, w_j, parameter)
        tie = derivatives(davidson, "beta", "tie", w_i, w_j, parameter)
    assert win[0] == pytest.approx(1 - p_i - 0.5 * p_ij)
    assert win[1] == pytest.approx(-(p_j + 0.5 * p_ij))
    assert win[1] != pytest.approx(-(p_i + 0.5 * p_ij))  # as printed
    assert win[2] == pytest.approx(-p_ij)
    assert tie[0] == pytest.approx(0.5 - p_i - 0.5 * p_ij)
    assert tie[1] == pytest.approx(0.5 - p_j - 0.5 * p_ij)
    assert tie[2] == pytest.approx(1 - p_ij)


# Limits and extremes ---------------------------------------------------------------------------


@each_model
@each_kernel
@each_dtype
@pytest.mark.parametrize("parameter", [-50.0, -1e4, -math.inf])
def test_without_ties_both_become_bradley_terry(loss, option, kernel, dtype, parameter):
    rng = np.random.default_rng(3)
    w = torch.from_numpy(3 * rng.normal(size=30)).to(dtype).requires_grad_()
    p = torch.tensor(parameter, dtype=torch.float64, requires_grad=True)
    tiers = tr.Tiers.from_labels(rng.permutation(30), lengths=[10, 10, 10])
    with computing(kernel):
        result = loss(w, tiers, **{option: p})
        expected = ranknet(w, tiers)
        tolerance = {torch.float64: 1e-9, torch.float32: 1e-5}[dtype]
        assert result.item() == pytest.approx(expected.item(), rel=tolerance)
        by_w, by_p = torch.autograd.grad(result, (w, p))
        (expected_by_w,) = torch.autograd.grad(expected, w)
    torch.testing.assert_close(by_w, expected_by_w, rtol=tolerance, atol=tolerance)
    assert by_p.item() == pytest.approx(0, abs=1e-9)


@each_model
def test_a_tie_cannot_be_where_ties_have_probability_zero(loss, option):
    tiers = tr.Tiers.from_labels([1, 0, 1, 1], lengths=[2, 2])
    with pytest.raises(
        ValueError, match=f"with {option} = −inf ties have probability 0, and list 1"
    ):
        loss(np.zeros(4), tiers, **{option: -math.inf})


@each_model
@each_kernel
@each_dtype
@pytest.mark.parametrize("parameter", [-1e4, -40.0, 40.0, 1e4])
@pytest.mark.parametrize("height", [0.0, 5.0, 1e4])
def test_extreme_parameters_against_forty_digits(loss, option, kernel, dtype, parameter, height):
    w = torch.tensor([height, 0.0, height / 2, 0.5], dtype=dtype, requires_grad=True)
    p = torch.tensor(parameter, dtype=torch.float64, requires_grad=True)
    with computing(kernel):
        result = loss(w, tr.Tiers.from_labels([1, 1, 0, 0]), **{option: p})
        by_w, by_p = torch.autograd.grad(result, (w, p))
    with mpmath.workdps(40):
        exact = float(_by_definition(option, [height, 0.0, height / 2, 0.5], parameter))
        above = float(_by_definition(option, [height, 0.0, height / 2, 0.5], parameter + 1e-3))
        below = float(_by_definition(option, [height, 0.0, height / 2, 0.5], parameter - 1e-3))
    assert result.item() == pytest.approx(exact, rel={torch.float64: 1e-13, torch.float32: 1e-6}[
        dtype])  # fmt: skip
    assert by_w.isfinite().all()
    if abs(exact) < 1e5:
        assert by_p.item() == pytest.approx((above - below) / 2e-3, rel=1e-4, abs=1e-4)


def _by_definition(option, w, parameter):
    """−log P of {0, 1} > {2, 3}, in numbers that do not overflow."""
    w = [mpmath.mpf(part) for part in w]
    strength = mpmath.exp(parameter)

    def log_prob(i, j, tied):
        a, b = mpmath.exp(w[i]), mpmath.exp(w[j])
        if option == "alpha":
            theta = 1 + strength
            # θ² − 1 has no digits left beside 1 where e^α is tiny
            tie = strength * (2 + strength) * a * b / ((a + theta * b) * (theta * a + b))
            return mpmath.log(tie if tied else a / (a + theta * b))
        middle = strength * mpmath.sqrt(a * b)
        return mpmath.log((middle if tied else a) / (a + b + middle))

    ties, wins = [(0, 1), (2, 3)], [(0, 2), (0, 3), (1, 2), (1, 3)]
    return -sum(log_prob(*t, True) for t in ties) - sum(log_prob(*x, False) for x in wins)


# What is refused -------------------------------------------------------------------------------


@each_model
def test_a_rest_that_is_not_written_is_refused(loss, option):
    positives = tr.Tiers.from_positives(csr_array([[0, 1, 0], [1, 0, 0]]))
    with pytest.raises(ValueError, match=r'nobody observed: leave the rest out \(rest="absent"\)'):
        loss(np.zeros(3), positives)
    written = tr.Tiers.from_rankings([[0, (1, 2)]], items=4, rest="absent")
    assert loss(np.zeros(4), written) > 0


@each_model
@pytest.mark.parametrize(
    ("value", "message"),
    [
        (math.nan, "is a number or −inf, not nan"),
        (math.inf, "is a number or −inf, not inf"),
        ([0.0, 1.0], r"is one number, not \[2\] of them"),
        (torch.zeros(1), r"is one number, not \[1\] of them"),
    ],
)
def test_a_parameter_that_is_none(loss, option, value, message):
    with pytest.raises(ValueError, match=f"{option} {message}"):
        loss(np.zeros(2), OUTCOMES["win"], **{option: value})
