"""The objectives over pairs, beside a direct sum over all pairs of every list."""

import itertools
import math
from fractions import Fraction
from functools import cache, partial

import mpmath
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import random_array

import tierrank as tr
from partitions import computing, each_dtype, each_kernel, ragged, value_and_gradient
from tierrank.losses import find
from tierrank.losses.pairwise import davidson, rank_regress, rank_svm, ranknet, rao_kupper

SEEDS = st.integers(0, 10**6)
TOLERANCE = {torch.float64: 1e-11, torch.float32: 2e-5}

ALPHA, BETA = 0.4, -0.7
THETA, V = 1 + math.exp(ALPHA), math.exp(BETA)

# −log P, or the loss, of "i above j" and of "i and j are tied", as functions of d = w_i − w_j
DEFINITIONS = {
    "ranknet": (ranknet, lambda d: torch.log1p(torch.exp(-d)), None),
    "rank_svm": (rank_svm, lambda d: torch.relu(1 - d), None),
    "rank_regress": (rank_regress, lambda d: (1 - d) ** 2, None),
    "rao_kupper": (
        partial(rao_kupper, alpha=ALPHA),
        lambda d: -torch.log(d.exp() / (d.exp() + THETA)),
        lambda d: (
            -torch.log((THETA**2 - 1) * d.exp() / ((d.exp() + THETA) * (THETA * d.exp() + 1)))
        ),
    ),
    "davidson": (
        partial(davidson, beta=BETA),
        lambda d: -torch.log(d.exp() / (d.exp() + 1 + V * torch.sqrt(d.exp()))),
        lambda d: -torch.log(V * torch.sqrt(d.exp()) / (d.exp() + 1 + V * torch.sqrt(d.exp()))),
    ),
}
LOSSES = {name: loss for name, (loss, _, _) in DEFINITIONS.items()}
IGNORE_TIES = [name for name, (_, _, tie) in DEFINITIONS.items() if tie is None]
each_loss = pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES.keys())
each_name = pytest.mark.parametrize("name", DEFINITIONS)
each_without_ties = pytest.mark.parametrize("name", IGNORE_TIES)


def direct(name, scores, labels, lengths):
    """[lists] sums over all pairs, by the definition."""
    _, win, tie = DEFINITIONS[name]
    losses = []
    for w, y in zip(scores.split(list(lengths)), np.split(labels, np.cumsum(lengths)[:-1]),
                    strict=True):  # fmt: skip
        d, y = w[:, None] - w[None, :], torch.from_numpy(y)
        loss = win(d[y[:, None] > y[None, :]]).sum()
        if tie is not None:
            loss = loss + tie(d[(y[:, None] == y[None, :]).triu(1)]).sum()
        losses.append(loss)
    return torch.stack(losses)


# Value and gradient ----------------------------------------------------------------------------


@each_name
@each_kernel
@each_dtype
@settings(max_examples=15)
@given(seed=SEEDS, spread=st.sampled_from([0.3, 3.0]), grades=st.sampled_from([2, 4, 12]))
def test_every_pair_counts_once(name, kernel, dtype, seed, spread, grades):
    scores, labels, lengths = ragged(seed, lists=8, spread=spread, grades=grades)
    scores = torch.from_numpy(scores).to(dtype)
    tiers = tr.Tiers.from_labels(labels, lengths=lengths)
    with computing(kernel):
        value, gradient = value_and_gradient(
            lambda w: LOSSES[name](w, tiers, reduction="none"), scores
        )
    exact, exact_gradient = value_and_gradient(
        lambda w: direct(name, w, labels, lengths), scores.double()
    )
    tolerance = TOLERANCE[dtype]
    torch.testing.assert_close(value.double(), exact, rtol=tolerance, atol=tolerance)
    torch.testing.assert_close(gradient.double(), exact_gradient, rtol=tolerance, atol=tolerance)


@cache
def two_thousand_items(name, dtype, grades):
    """Scores and labels of a list, and the value and gradient of all its two million pairs."""
    rng = np.random.default_rng(5)
    labels = rng.permutation(2000) % grades
    scores = torch.from_numpy(rng.normal(size=2000)).to(dtype)
    exact = value_and_gradient(lambda w: direct(name, w, labels, [2000]).sum(), scores.double())
    return scores, labels, *exact


@each_name
@each_kernel
@each_dtype
@pytest.mark.parametrize("grades", [1, 5, 2000])
def test_a_list_of_two_thousand_items(name, kernel, dtype, grades):
    """Many tiles and several blocks of pairs; up to as many tiers as items."""
    scores, labels, exact, exact_gradient = two_thousand_items(name, dtype, grades)
    tiers = tr.Tiers.from_labels(labels)
    with computing(kernel):
        value, gradient = value_and_gradient(lambda w: LOSSES[name](w, tiers), scores)
    assert value.item() == pytest.approx(exact.item(), rel=TOLERANCE[dtype], abs=1e-12)
    scale = exact_gradient.abs().max().item()
    torch.testing.assert_close(
        gradient.double(), exact_gradient, rtol=0, atol=scale * TOLERANCE[dtype]
    )


@each_name
@each_kernel
def test_gradients_are_those_of_the_value(name, kernel):
    scores, labels, lengths = ragged(8, lists=4, longest=7)
    tiers = tr.Tiers.from_labels(labels, lengths=lengths)
    with computing(kernel):
        assert torch.autograd.gradcheck(
            lambda w: LOSSES[name](w, tiers, reduction="none"),
            torch.from_numpy(scores).requires_grad_(),
        )


@pytest.mark.parametrize("name", ["ranknet", "rao_kupper", "davidson"])
@each_kernel
def test_a_second_derivative_is_refused_and_not_silently_zero(name, kernel):
    w = torch.tensor([0.5, -0.5, 0.0], requires_grad=True)
    with computing(kernel):
        loss = LOSSES[name](w, tr.Tiers.from_labels([1, 0, 0]))
    (gradient,) = torch.autograd.grad(loss, w, create_graph=True)
    with pytest.raises(NotImplementedError, match="differentiated once"):
        torch.autograd.grad(gradient.square().sum(), w)


# Small cases -----------------------------------------------------------------------------------

# two tiers: items 0 and 3 over items 1 and 2
TIERS = tr.Tiers.from_labels([1, 0, 0, 1])
W = [3.0, 1.0, 2.5, 2.0]


@each_kernel
def test_ranknet_in_figures(kernel):
    with computing(kernel):
        log1p_exps = [math.log1p(math.exp(x)) for x in (1 - 3, 2.5 - 3, 1 - 2, 2.5 - 2)]
        assert ranknet(W, TIERS) == pytest.approx(sum(log1p_exps), rel=1e-14)


def test_rank_svm_in_figures():
    assert rank_svm(W, TIERS) == 0 + (1 - 0.5) + 0 + (1 + 0.5)
    value, gradient = value_and_gradient(lambda w: rank_svm(w, TIERS), torch.tensor(W))
    assert value == 2
    assert gradient.tolist() == [-1, 0, 2, -1]


@pytest.mark.parametrize("far", [[1e15], [-1e15], [1e15, -3e16], [1e15, 1e15 + 1.25], [1.7e308]])
@given(seed=SEEDS)
@settings(max_examples=15)
def test_rank_svm_keeps_the_digits_of_items_beside_some_that_are_far_away(far, seed):
    """Exact, in rational numbers; far items are above all others or below them, as they should."""
    rng = np.random.default_rng(seed)
    near, labels = rng.normal(size=9), rng.integers(0, 3, 9)
    scores = np.concatenate([near, far])
    labels = np.concatenate([labels, np.where(np.array(far) > 0, 3, -1)])
    exact = sum(
        max(Fraction(0), 1 - (Fraction(scores[i]) - Fraction(scores[j])))
        for i, j in itertools.permutations(range(len(scores)), 2)
        if labels[i] > labels[j]
    )
    order = rng.permutation(len(scores))
    value = rank_svm(scores[order], tr.Tiers.from_labels(labels[order]))
    assert abs(Fraction(float(value)) - exact) <= exact * Fraction(1, 10**14)


def test_rank_svm_counts_equal_scores_where_a_1_would_be_rounded_away():
    value, gradient = value_and_gradient(
        lambda w: rank_svm(w, tr.Tiers.from_labels([2, 1, 1])), np.full(3, 1e17)
    )
    assert value.item() == 2
    assert gradient.tolist() == [-2, 1, 1]


def test_rank_svm_has_no_slope_where_a_pair_just_keeps_its_distance():
    value, gradient = value_and_gradient(
        lambda w: rank_svm(w, tr.Tiers.from_labels([2, 1, 0])), torch.tensor([2.0, 1.0, 0.0])
    )
    assert value == 0
    assert gradient.tolist() == [0, 0, 0]


def test_rank_regress_in_figures():
    assert rank_regress(W, TIERS) == pytest.approx(
        (1 - 2) ** 2 + (1 - 0.5) ** 2 + (1 - 1) ** 2 + (1 + 0.5) ** 2, rel=1e-14
    )


def test_rank_regress_of_tiers_exactly_one_apart():
    tiers = tr.Tiers.from_labels([1, 0, 0, 1, 0])
    assert rank_regress([5.0, 4.0, 4.0, 5.0, 4.0], tiers) == pytest.approx(0, abs=1e-27)
    # three tiers cannot all be 1 apart: the outer two cost (1 − 2)² each
    assert rank_regress([2.0, 1.0, 0.0], tr.Tiers.from_labels([2, 1, 0])) == pytest.approx(1)


@each_without_ties
@each_kernel
def test_pairs_inside_a_tier_are_ignored(name, kernel):
    loss = LOSSES[name]
    with computing(kernel):
        value, gradient = value_and_gradient(
            lambda w: loss(w, tr.Tiers.from_labels([1, 1, 1])), torch.tensor([1e4, 0.1, -1e4])
        )
    assert value == 0
    assert gradient.tolist() == [0, 0, 0]


@each_loss
@each_kernel
def test_a_single_item_has_no_pairs(loss, kernel):
    with computing(kernel):
        value, gradient = value_and_gradient(
            lambda w: loss(w, tr.Tiers.from_labels([3])), torch.tensor([17.0])
        )
    assert value == 0
    assert gradient.tolist() == [0]


@each_loss
@each_kernel
def test_no_lists_have_a_sum_but_no_mean(loss, kernel):
    none = tr.Tiers.from_labels([])
    with computing(kernel):
        assert loss(np.zeros(0), none, reduction="none").shape == (0,)
        value, gradient = value_and_gradient(
            lambda w: loss(w, none, reduction="sum"), torch.zeros(0)
        )
    assert value == 0
    assert gradient.shape == (0,)
    with pytest.raises(ValueError, match="no mean over no lists"):
        loss(np.zeros(0), none)


# Extreme scores --------------------------------------------------------------------------------


@each_loss
@each_kernel
@each_dtype
@pytest.mark.parametrize("sign", [1, -1])
def test_scores_of_ten_thousand_stay_finite(loss, kernel, dtype, sign):
    scores = sign * torch.tensor([1e4, -1e4, 0.0, 1e4, -1e4, 1.0], dtype=dtype)
    with computing(kernel):
        value, gradient = value_and_gradient(
            lambda w: loss(w, tr.Tiers.from_labels([2, 1, 0, 1, 0, 2])), scores
        )
    assert value.isfinite()
    assert gradient.isfinite().all()
    assert gradient.sum().item() == pytest.approx(0, abs=1e-3)


@each_name
@each_kernel
@each_dtype
@pytest.mark.parametrize("height", [-1e4, 1e4])
def test_only_differences_count_even_at_ten_thousand(name, kernel, dtype, height):
    labels = np.array([2, 1, 0, 1, 0, 2, 0])
    differences = torch.tensor([0.5, 0.0, -0.25, 1.0, 0.75, 0.25, 1.75])
    tiers = tr.Tiers.from_labels(labels)
    with computing(kernel):
        value, gradient = value_and_gradient(
            lambda w: LOSSES[name](w, tiers), (differences + height).to(dtype)
        )
    exact, exact_gradient = value_and_gradient(
        lambda w: direct(name, w, labels, [7]).sum(), differences.double()
    )
    tolerance = {torch.float64: 1e-11, torch.float32: 1e-5}[dtype]
    assert value.item() == pytest.approx(exact.item(), rel=tolerance)
    torch.testing.assert_close(gradient.double(), exact_gradient, rtol=tolerance, atol=tolerance)


@each_name
@each_kernel
def test_tied_scores(name, kernel):
    labels = np.array([2, 1, 0, 1, 0, 2, 0])
    with computing(kernel):
        value, gradient = value_and_gradient(
            lambda w: LOSSES[name](w, tr.Tiers.from_labels(labels)), torch.full((7,), 3.5).double()
        )
    exact, exact_gradient = value_and_gradient(
        lambda w: direct(name, w, labels, [7]).sum(), torch.zeros(7).double()
    )
    assert value.item() == pytest.approx(exact.item(), rel=1e-13)
    torch.testing.assert_close(gradient, exact_gradient, rtol=0, atol=1e-12)


@each_kernel
@each_dtype
def test_a_pair_that_is_all_but_certain_has_a_loss_of_its_own_size(kernel, dtype):
    """log(1 + e^−d), not 0, where e^−d is below the last digit of 1."""
    with computing(kernel):
        loss = ranknet(torch.tensor([40.0, 0.0, 0.0], dtype=dtype), tr.Tiers.from_labels([1, 0, 0]))
    assert loss.item() == pytest.approx(2 * math.exp(-40), rel=1e-5)


def test_rank_regress_keeps_its_digits_for_scores_far_from_zero():
    """Against 40 digits; (Σw)² and Σw² alone would leave none of the digits of a loss of 1e-9."""
    labels = [1, 1, 1, 0, 0]
    scores = np.array([1e4 + 1, 1e4 + 1 + 1e-6, 1e4 + 1 - 2e-6, 1e4, 1e4 + 3e-6])
    with mpmath.workdps(40):
        exact = sum(
            (1 - (mpmath.mpf(a) - mpmath.mpf(b))) ** 2 for a in scores[:3] for b in scores[3:]
        )
        loss = rank_regress(scores, tr.Tiers.from_labels(labels))
        assert float(abs(loss - exact) / exact) < 1e-5


# Shapes, orders, threads -----------------------------------------------------------------------


@each_loss
@each_kernel
def test_the_order_of_items_and_lists_changes_nothing(loss, kernel):
    scores, labels, lengths = ragged(4, lists=9)
    which = np.repeat(np.arange(9), lengths)
    shuffled = np.random.default_rng(4).permutation(len(scores))
    with computing(kernel):
        each = loss(scores, tr.Tiers.from_labels(labels, qid=which), reduction="none")
        tiers = tr.Tiers.from_labels(labels[shuffled], qid=which[shuffled])
        again = loss(scores[shuffled], tiers, reduction="none")
    np.testing.assert_allclose(again, each[tiers.keys], rtol=1e-12, atol=1e-13)


@each_loss
@each_kernel
def test_padding_is_never_looked_at(loss, kernel):
    labels = [[1, 0, 7], [0, 1, 2]]
    tiers = tr.Tiers.from_labels(labels, mask=[[True, True, False], [True] * 3])
    padded = torch.tensor([[0.5, 0.25, math.nan], [0.0, 1.0, -1.0]])
    with computing(kernel):
        value, gradient = value_and_gradient(lambda w: loss(w, tiers, reduction="none"), padded)
        alone = [
            loss(w, tr.Tiers.from_labels(y)).item()
            for w, y in (([0.5, 0.25], [1, 0]), ([0.0, 1.0, -1.0], [0, 1, 2]))
        ]
    np.testing.assert_allclose(value, alone, rtol=1e-6)
    assert gradient[0, 2] == 0


@each_without_ties
@each_kernel
@each_dtype
def test_positives_over_all_others_of_a_catalogue(name, kernel, dtype):
    """Own and shared scores, with the rest written out or not: all the same."""
    rng = np.random.default_rng(6)
    positives = random_array((6, 5000), density=1e-3, format="csr", rng=rng)
    tiers = tr.Tiers.from_positives(positives)
    shared = torch.from_numpy(rng.normal(size=5000)).to(dtype)
    own = torch.from_numpy(rng.normal(size=(6, 5000))).to(dtype)
    written = tr.Tiers.from_labels((positives.toarray() != 0).astype(int))
    with computing(kernel):
        for scores, dense in ((own, own), (shared, shared.expand(6, 5000))):
            value, gradient = value_and_gradient(
                lambda w: LOSSES[name](w, tiers, reduction="none"), scores
            )
            exact, by_list = value_and_gradient(
                lambda w: LOSSES[name](w, written, reduction="none"), dense
            )
            torch.testing.assert_close(value, exact)
            summed = by_list if scores.ndim == 2 else by_list.sum(0)
            torch.testing.assert_close(gradient, summed, rtol=1e-4, atol=1e-4)


@each_name
@pytest.mark.parametrize("lists", [1, 300])
def test_the_number_of_threads_changes_nothing_but_rounding(name, lists):
    rng = np.random.default_rng(7)
    labels, scores = rng.integers(0, 4, 6000), torch.from_numpy(rng.normal(size=6000))
    tiers = tr.Tiers.from_labels(labels, lengths=[6000 // lists] * lists)
    before, results = torch.get_num_threads(), []
    try:
        for threads in (1, 2, 5):
            torch.set_num_threads(threads)
            results.append(
                value_and_gradient(lambda w: LOSSES[name](w, tiers, reduction="none"), scores)
            )
    finally:
        torch.set_num_threads(before)
    for value, gradient in results[1:]:
        torch.testing.assert_close(value, results[0][0], rtol=1e-13, atol=0)
        torch.testing.assert_close(gradient, results[0][1], rtol=1e-11, atol=1e-11)


@each_loss
def test_weights_reductions_and_kinds(loss):
    scores, labels, lengths = ragged(31, lists=6, longest=8)
    tiers = tr.Tiers.from_labels(labels, lengths=lengths)
    weights = np.array([0.5, 2.0, 0.0, 1.0, 3.0, 0.25])
    each = loss(scores, tiers, reduction="none")
    assert isinstance(each, np.ndarray)
    assert (each >= 0).all()
    assert loss(scores, tiers) == pytest.approx(each.mean(), rel=1e-14)
    assert loss(scores, tiers, weights=weights, reduction="sum") == pytest.approx(
        (weights * each).sum(), rel=1e-14
    )
    half = torch.from_numpy(scores).bfloat16().requires_grad_()
    result = loss(half, tiers)
    assert result.dtype == torch.float32
    result.backward()
    assert half.grad.dtype == torch.bfloat16
    scores[3] = np.nan
    with pytest.raises(ValueError, match=r"scores\[3\].* is nan"):
        loss(scores, tiers)


def test_the_names_of_the_objectives():
    for name, function in (
        ("ranknet", ranknet), ("ranksvm", rank_svm), ("rank-regress", rank_regress),
        ("rao-kupper", rao_kupper), ("davidson", davidson),
    ):  # fmt: skip
        assert find(name).function is function
        assert find(name).family == "pairwise"


def test_the_second_derivative_of_rank_regress_is_that_of_its_pairs():
    labels = torch.tensor([2, 0, 1, 1, 0, 2])
    tiers = tr.Tiers.from_labels(labels)
    scores = torch.tensor([0.3, -1.0, 2.0, 0.1, 0.0, 5.0], dtype=torch.float64)
    ours = torch.autograd.functional.hessian(lambda w: rank_regress(w, tiers), scores)
    # (1 − (w_i − w_j))² bends by 2 in w_i and w_j, and by −2 between them
    pairs = (labels[:, None] != labels).double()
    torch.testing.assert_close(ours, 2 * (torch.diag(pairs.sum(0)) - pairs))
