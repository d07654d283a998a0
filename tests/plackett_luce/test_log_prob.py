"""What `log_prob` and `log_prob_above` give: the right numbers, whatever form the data come in."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import reference
import tierrank as tr
from partitions import (
    compositions,
    computing,
    each_dtype,
    each_kernel,
    every_partition,
    ragged,
    tiers_of_scores,
    value_and_gradient,
)

SEEDS = st.integers(0, 10**6)


def rankings_of(labels):
    """Items 0, 1, … by label, as `Tiers.from_rankings` takes them."""
    return [tuple(np.flatnonzero(labels == label).tolist()) for label in np.unique(labels)[::-1]]


# Equal to the definition ---------------------------------------------------------------------


@each_kernel
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 6])
def test_every_ordered_partition_of_up_to_six_items_equals_enumeration(n, kernel):
    for seed in range(3):
        scores = np.random.default_rng([n, seed]).uniform(-20, 20, size=n)
        labels, exact = every_partition(scores)
        assert len(labels) == {1: 1, 2: 3, 3: 13, 4: 75, 5: 541, 6: 4683}[n]
        with computing(kernel):
            ours = tr.log_prob(np.tile(scores, (len(labels), 1)), tr.Tiers.from_labels(labels))
        np.testing.assert_array_less(abs(ours - exact), 1e-11 * np.maximum(1, abs(exact)))


@each_kernel
@pytest.mark.parametrize("n", [7, 8])
def test_sampled_partitions_of_seven_and_eight_items_equal_enumeration(n, kernel):
    rng = np.random.default_rng(n)
    scores = rng.uniform(-20, 20, size=n)
    shapes = list(compositions(n))
    sampled = [shapes[i] for i in rng.permutation(len(shapes))[:12]] + [(n - 1, 1), (1, n - 1)]
    labels, exact = every_partition(scores, sampled)
    some = rng.permutation(len(labels))[:3000]
    labels, exact = labels[some], exact[some]
    with computing(kernel):
        ours = tr.log_prob(np.tile(scores, (len(labels), 1)), tr.Tiers.from_labels(labels))
    np.testing.assert_array_less(abs(ours - exact), 1e-11 * np.maximum(1, abs(exact)))


def test_the_enumeration_of_the_paper_agrees_with_the_definition():
    scores = np.array([1.5, -3.0, 0.25, 7.0, -0.5])
    labels, exact = every_partition(scores, [(2, 2, 1), (1, 3, 1), (4, 1)])
    paper = [reference.enumerate_log_prob(tiers_of_scores(scores, row)) for row in labels]
    np.testing.assert_allclose(paper, exact, rtol=1e-13, atol=1e-13)


@each_kernel
def test_equal_scores_count_the_orders(kernel):
    with computing(kernel):
        value = tr.log_prob(np.full(9, 3.25), tr.Tiers.from_labels([2, 2, 2, 1, 1, 0, 0, 0, 0]))
    ways = math.factorial(3) * math.factorial(2) * math.factorial(4)
    assert value[0] == pytest.approx(math.log(ways / math.factorial(9)), rel=1e-14)


@each_kernel
@given(seed=SEEDS, shape=st.sampled_from([(2, 2, 1), (1, 4), (4, 1), (3, 2), (1, 1, 3), (2, 3)]))
@settings(max_examples=25)
def test_all_ways_to_split_items_into_tiers_of_given_sizes_have_probability_one(
    kernel, seed, shape
):
    scores = 4 * np.random.default_rng(seed).normal(size=5)
    labels, _ = every_partition(np.zeros(5), [shape])
    with computing(kernel):
        log_prob = tr.log_prob(np.tile(scores, (len(labels), 1)), tr.Tiers.from_labels(labels))
    assert np.exp(log_prob).sum() == pytest.approx(1, abs=1e-13)


@each_kernel
@each_dtype
def test_a_strict_ranking_has_the_product_of_the_choices(kernel, dtype):
    worth = torch.arange(1, 301, dtype=dtype)
    with computing(kernel):
        value, gradient = value_and_gradient(
            lambda w: tr.log_prob(w, tr.Tiers.from_labels(np.arange(300))), worth.log()
        )
    # the best item has worth 300, and those that remain have 1 + … + k = k (k + 1) / 2
    k = np.arange(1, 301)
    exact = (np.log(k) - np.log(k * (k + 1) / 2)).sum()
    choices = 1 / (k * (k + 1) / 2)  # item k is in the choices from 300 down to its own
    exact_gradient = 1 - k * choices[::-1].cumsum()[::-1]
    exact_gradient[0] = -choices[1:].sum()  # the last choice is none
    tolerance = {torch.float64: 1e-13, torch.float32: 1e-6}[dtype]
    assert float(value) == pytest.approx(exact, rel=tolerance)
    np.testing.assert_allclose(gradient, exact_gradient, atol=tolerance)


@each_kernel
def test_a_list_with_one_tier_has_log_probability_zero_and_no_gradient(kernel):
    labels, qid = [1, 1, 1, 0, 2, 1], [0, 0, 0, 1, 2, 2]
    tiers = tr.Tiers.from_labels(labels, qid=qid)
    scores = torch.tensor([3.0, -900.0, 1e4, 5.0, 0.0, 0.0], dtype=torch.float64)
    with computing(kernel):
        value, gradient = value_and_gradient(lambda w: tr.log_prob(w, tiers), scores)
    np.testing.assert_allclose(value, [0, 0, -math.log(2)], rtol=1e-15)
    np.testing.assert_allclose(gradient, [0, 0, 0, 0, 0.5, -0.5], rtol=1e-15)
    assert value[0] == 0
    assert gradient[:4].count_nonzero() == 0


# Nothing depends on how the data are written ---------------------------------------------------


@each_kernel
@given(seed=SEEDS, constant=st.floats(-1000, 1000))
@settings(max_examples=20)
def test_adding_a_constant_to_all_scores_changes_nothing(kernel, seed, constant):
    scores, labels, lengths = ragged(seed)
    scores = np.round(scores * 2**20) / 2**20  # so that the sum is exact
    constant = round(constant * 2**20) / 2**20
    tiers = tr.Tiers.from_labels(labels, lengths=lengths)
    with computing(kernel):
        value, gradient = value_and_gradient(lambda w: tr.log_prob(w, tiers), scores)
        moved, moved_gradient = value_and_gradient(
            lambda w: tr.log_prob(w, tiers), scores + constant
        )
    np.testing.assert_allclose(moved, value, rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(moved_gradient, gradient, atol=1e-12)


@each_kernel
@given(seed=SEEDS)
@settings(max_examples=20)
def test_the_order_of_the_rows_changes_nothing(kernel, seed):
    """Permuting all rows, with their qid, permutes items inside tiers, lists and tiers alike."""
    scores, labels, lengths = ragged(seed)
    qid = np.repeat(np.arange(len(lengths)), lengths)
    shuffled = np.random.default_rng(seed).permutation(len(scores))
    tiers = tr.Tiers.from_labels(labels, qid=qid)
    other = tr.Tiers.from_labels(labels[shuffled], qid=qid[shuffled])
    with computing(kernel):
        value, gradient = value_and_gradient(lambda w: tr.log_prob(w, tiers), scores)
        again, gradient_again = value_and_gradient(
            lambda w: tr.log_prob(w, other), scores[shuffled]
        )
    np.testing.assert_allclose(again, value.numpy()[other.keys], rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(gradient_again, gradient[shuffled], atol=1e-12)


@each_kernel
@given(seed=SEEDS)
@settings(max_examples=10)
def test_items_inside_a_tier_can_be_permuted(kernel, seed):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 3, size=15)
    scores = 3 * rng.normal(size=15)
    inside = scores.copy()
    for label in range(3):
        inside[labels == label] = rng.permutation(scores[labels == label])
    tiers = tr.Tiers.from_labels(labels)
    with computing(kernel):
        np.testing.assert_allclose(
            tr.log_prob(inside, tiers), tr.log_prob(scores, tiers), rtol=1e-14, atol=1e-14
        )


@each_kernel
@given(seed=SEEDS, junk=st.sampled_from([0.0, 1e30, -1e30, math.nan, math.inf, -math.inf]))
@settings(max_examples=20)
def test_padding_changes_nothing_whatever_stands_in_it(kernel, seed, junk):
    scores, labels, lengths = ragged(seed)
    rng = np.random.default_rng(seed)
    mask = np.arange(20) < lengths[:, None]
    mask = rng.permuted(mask, axis=1)  # holes anywhere
    padded, padded_labels = np.full(mask.shape, junk), rng.integers(0, 9, size=mask.shape)
    padded[mask], padded_labels[mask] = scores, labels
    with computing(kernel):
        value, gradient = value_and_gradient(
            lambda w: tr.log_prob(w, tr.Tiers.from_labels(labels, lengths=lengths)), scores
        )
        tiers = tr.Tiers.from_labels(padded_labels, mask=mask)
        again, gradient_again = value_and_gradient(lambda w: tr.log_prob(w, tiers), padded)
    np.testing.assert_allclose(again, value, rtol=1e-14, atol=1e-14)
    np.testing.assert_allclose(gradient_again[torch.from_numpy(mask)], gradient, atol=1e-14)
    assert gradient_again[torch.from_numpy(~mask)].count_nonzero() == 0


@each_kernel
@given(seed=SEEDS)
@settings(max_examples=10)
def test_lists_can_be_batched_or_taken_one_by_one(kernel, seed):
    scores, labels, lengths = ragged(seed, lists=8)
    tiers = tr.Tiers.from_labels(labels, lengths=lengths)
    with computing(kernel):
        value, gradient = value_and_gradient(lambda w: tr.log_prob(w, tiers), scores)
        ends = lengths.cumsum()
        for i, rows in enumerate(np.split(np.arange(len(scores)), ends[:-1])):
            one = tr.Tiers.from_labels(labels[rows])
            alone, gradient_alone = value_and_gradient(
                lambda w, one=one: tr.log_prob(w, one), scores[rows]
            )
            np.testing.assert_allclose(alone[0], value[i], rtol=1e-14, atol=1e-14)
            np.testing.assert_allclose(gradient_alone, gradient[rows], atol=1e-14)


@each_kernel
@given(seed=SEEDS)
@settings(max_examples=10)
def test_single_precision_agrees_with_double(kernel, seed):
    scores, labels, lengths = ragged(seed)
    single = torch.from_numpy(scores).float()
    tiers = tr.Tiers.from_labels(labels, lengths=lengths)
    with computing(kernel):
        value, gradient = value_and_gradient(lambda w: tr.log_prob(w, tiers), single)
        exact, exact_gradient = value_and_gradient(lambda w: tr.log_prob(w, tiers), single.double())
    assert value.dtype == gradient.dtype == torch.float32
    assert exact.dtype == exact_gradient.dtype == torch.float64
    assert ((value - exact).abs() <= 1e-5 * exact.abs().clamp(min=1)).all()
    np.testing.assert_allclose(gradient, exact_gradient, atol=1e-4)


# Catalogues ------------------------------------------------------------------------------------


def catalogue(seed, lists=12, items=9):
    """Labels [lists, items], where the lowest grade 0 stands for the rest; and shared scores."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 4, size=(lists, items))
    labels[0], labels[1] = 0, np.arange(1, items + 1)  # names nothing; names all
    return labels, 2 * rng.normal(size=items)


@each_kernel
@given(seed=SEEDS)
@settings(max_examples=15)
def test_a_rest_in_last_place_equals_writing_the_last_tier_out(kernel, seed):
    labels, scores = catalogue(seed)
    items = labels.shape[1]
    named = [rankings_of(row)[: len(np.unique(row)) - (row == 0).any()] for row in labels]
    rest = tr.Tiers.from_rankings(named, items=items, rest="last")
    written = tr.Tiers.from_labels(labels)
    per_list = np.tile(scores, (len(labels), 1))
    with computing(kernel):
        value, gradient = value_and_gradient(lambda w: tr.log_prob(w, written), per_list)
        as_rest, rest_gradient = value_and_gradient(lambda w: tr.log_prob(w, rest), per_list)
        shared, shared_gradient = value_and_gradient(lambda w: tr.log_prob(w, rest), scores)
    assert value[0] == 0
    np.testing.assert_allclose(as_rest, value, rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(rest_gradient, gradient, atol=1e-12)
    np.testing.assert_allclose(shared, value, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(shared_gradient, gradient.sum(0), atol=1e-10)


@each_kernel
@given(seed=SEEDS)
@settings(max_examples=15)
def test_shared_scores_equal_the_same_scores_for_every_list(kernel, seed):
    labels, scores = catalogue(seed)
    rankings = [[tuple(tier) for tier in rankings_of(row)][:3] for row in labels]
    tiers = tr.Tiers.from_rankings(rankings, items=labels.shape[1])  # what is not named is absent
    with computing(kernel):
        own, own_gradient = value_and_gradient(
            lambda w: tr.log_prob(w, tiers), np.tile(scores, (len(labels), 1))
        )
        shared, gradient = value_and_gradient(lambda w: tr.log_prob(w, tiers), scores)
    np.testing.assert_allclose(shared, own, rtol=1e-14, atol=1e-14)
    np.testing.assert_allclose(gradient, own_gradient.sum(0), atol=1e-13)


@pytest.mark.parametrize("scores_shape", ["shared", "per list"])
def test_positives_over_the_rest(scores_shape):
    positives = sparse.csr_array([[0, 1, 0, 1], [0, 0, 0, 0], [1, 1, 1, 1], [0, 0, 1, 0]])
    worth = np.array([1.0, 2.0, 3.0, 4.0])
    scores = np.log(worth if scores_shape == "shared" else np.tile(worth, (4, 1)))
    value = tr.log_prob(scores, tr.Tiers.from_positives(positives))
    two_first = 2 / 10 * 4 / 8 + 4 / 10 * 2 / 6
    np.testing.assert_allclose(np.exp(value), [two_first, 1, 1, 3 / 10], rtol=1e-14)


def test_preferences():
    tiers = tr.Tiers.from_preferences([[("a", "b"), ("a", "c")], [("c", "a")]])
    worth = {"a": 2.0, "b": 3.0, "c": 5.0}
    scores = np.log([worth[name] for name in tiers.names])
    np.testing.assert_allclose(np.exp(tr.log_prob(scores, tiers)), [2 / 10, 5 / 7], rtol=1e-14)


@each_kernel
def test_no_lists_give_no_values(kernel):
    with computing(kernel):
        for tiers, shape in [
            (tr.Tiers.from_labels([]), (0,)),
            (tr.Tiers.from_labels(np.zeros((0, 5))), (0, 5)),
            (tr.Tiers.from_rankings([], items=4), (4,)),
            (tr.Tiers.from_rankings([], items=4, rest="last"), (4,)),
            (tr.Tiers.from_rankings([], items=4, rest="last"), (0, 4)),
        ]:
            value, gradient = value_and_gradient(
                lambda w, tiers=tiers: tr.log_prob(w, tiers), torch.ones(shape)
            )
            assert value.shape == (0,)
            assert gradient.shape == shape
            assert gradient.count_nonzero() == 0


# Kinds of numbers in and out -------------------------------------------------------------------

TIERS = tr.Tiers.from_labels([2, 1, 1, 0])
EXPECTED = [-math.log(12)]  # equal scores: one of 12 ways to split four


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_numpy_in_numpy_out(dtype):
    value = tr.log_prob(np.zeros(4, dtype), TIERS)
    assert isinstance(value, np.ndarray)
    assert value.dtype == dtype
    np.testing.assert_allclose(value, EXPECTED, rtol=1e-6)


@each_dtype
def test_torch_in_torch_out(dtype):
    value = tr.log_prob(torch.zeros(4, dtype=dtype), TIERS)
    assert isinstance(value, torch.Tensor)
    assert value.dtype == dtype
    np.testing.assert_allclose(value, EXPECTED, rtol=1e-6)


@pytest.mark.parametrize(
    "scores",
    [
        [0, 0, 0, 0],
        [0.0, 0.0, 0.0, 0.0],
        np.zeros(4, int),
        np.zeros(4, np.float16),
        np.zeros(4, ">f8"),
        np.zeros(4, np.longdouble),
        np.zeros(8)[::-2],
        np.broadcast_to(np.float64(0), (4,)),
    ],
    ids=["ints", "floats", "int64", "float16", "big-endian", "longdouble", "strided", "read-only"],
)
def test_any_real_numbers_are_taken(scores):
    np.testing.assert_allclose(tr.log_prob(scores, TIERS), EXPECTED, rtol=1e-6)


def test_scores_need_not_be_contiguous_and_are_not_changed():
    scores, labels, _ = ragged(5, lists=4)
    square = torch.from_numpy(scores[:16].reshape(4, 4))
    tiers = tr.Tiers.from_labels(labels[:16].reshape(4, 4))
    kept = square.clone()
    value, gradient = value_and_gradient(lambda w: tr.log_prob(w.T, tiers), square)
    expected, expected_gradient = value_and_gradient(
        lambda w: tr.log_prob(w, tiers), square.T.contiguous()
    )
    assert torch.equal(value, expected)
    assert torch.equal(gradient, expected_gradient.T)
    assert torch.equal(square, kept)


@each_kernel
@pytest.mark.parametrize("half", [torch.float16, torch.bfloat16])
def test_half_precision_is_computed_in_single_and_its_gradient_comes_back_in_half(kernel, half):
    scores, labels, lengths = ragged(6)
    tiers = tr.Tiers.from_labels(labels, lengths=lengths)
    given_ = torch.from_numpy(scores).to(half)
    with computing(kernel):
        value, gradient = value_and_gradient(lambda w: tr.log_prob(w, tiers), given_)
        single, single_gradient = value_and_gradient(
            lambda w: tr.log_prob(w, tiers), given_.float()
        )
    assert value.dtype == torch.float32
    assert torch.equal(value, single)
    assert gradient.dtype == half
    assert torch.equal(gradient, single_gradient.to(half))


# P(A > B) --------------------------------------------------------------------------------------


@each_kernel
@given(seed=SEEDS)
@settings(max_examples=15)
def test_above_equals_the_recursion_over_subsets(kernel, seed):
    rng = np.random.default_rng(seed)
    scores = 5 * rng.normal(size=12)
    items = rng.permutation(12)
    a, b = items[: rng.integers(1, 8)], items[8 : rng.integers(9, 13)]
    with computing(kernel):
        value = tr.log_prob_above(scores, a, b)
    assert value.shape == ()
    exact = reference.subset_log_prob_above(scores[a], scores[b])
    assert float(value) == pytest.approx(exact, rel=1e-12, abs=1e-12)


def test_what_is_in_neither_set_does_not_matter():
    scores = np.array([0.5, -1.0, 2.0, 0.0])
    with_others = tr.log_prob_above(np.r_[scores, 7.0, -1e4, np.nan], [0, 1], [2, 3])
    assert with_others == tr.log_prob_above(scores, [0, 1], [2, 3])


@given(seed=SEEDS)
@settings(max_examples=25)
def test_above_keeps_the_rules_of_probability(seed):
    w = 4 * np.random.default_rng(seed).normal(size=4)

    def p(above, below):
        return float(np.exp(tr.log_prob_above(w, above, below)))

    assert p([0], [1]) == pytest.approx(1 / (1 + np.exp(w[1] - w[0])), rel=1e-13)
    assert p([0], [1]) + p([1], [0]) == pytest.approx(1, abs=1e-14)
    # one of three is the first, and one is the last
    assert p([0], [1, 2]) + p([1], [0, 2]) + p([2], [0, 1]) == pytest.approx(1, abs=1e-14)
    assert p([0, 1], [2]) + p([0, 2], [1]) + p([1, 2], [0]) == pytest.approx(1, abs=1e-14)
    # both precede item 2, or one does, or none
    one = p([0], [2]) + p([1], [2]) - 2 * p([0, 1], [2])
    assert p([0, 1], [2]) + one + p([2], [0, 1]) == pytest.approx(1, abs=1e-14)


def test_sets_can_be_written_in_many_ways():
    scores = np.log([1.0, 2.0, 3.0, 4.0])
    exact = tr.log_prob_above(scores, [0, 3], [2])
    np.testing.assert_allclose(np.exp(exact), 1 / 8 * 4 / 7 + 4 / 8 * 1 / 4, rtol=1e-14)
    mask = np.array([True, False, False, True])
    for above in ({0, 3}, frozenset([3, 0]), (3, 0), np.array([0, 3], np.uint8), mask,
                  torch.tensor([3, 0]), torch.from_numpy(mask), range(0, 4, 3)):  # fmt: skip
        assert tr.log_prob_above(scores, above, [2]) == exact
    assert tr.log_prob_above(scores, mask, np.array([False, False, True, False])) == exact


def test_batches_of_scores():
    scores = torch.randn(2, 3, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    value = tr.log_prob_above(scores, [1, 4], [0, 2])
    assert value.shape == (2, 3)
    for i in range(2):
        for j in range(3):
            alone = tr.log_prob_above(scores[i, j], [1, 4], [0, 2])
            assert float(alone) == pytest.approx(float(value[i, j]), rel=1e-14)
    assert tr.log_prob_above(torch.zeros(0, 5), [1], [0]).shape == (0,)


@pytest.mark.parametrize(("above", "below"), [([], [0, 1]), ([2], []), ([], []), (set(), [0])])
def test_an_empty_set_claims_nothing(above, below):
    scores = torch.randn(4, 3, generator=torch.Generator().manual_seed(2))
    value = tr.log_prob_above(scores, above, below)
    assert value.dtype == torch.float32
    assert torch.equal(value, torch.zeros(4))
    assert tr.log_prob_above(np.zeros(3), above, below) == 0.0


@each_kernel
def test_above_is_differentiable_twice(kernel):
    scores = torch.tensor([0.5, -1.0, 2.0, 0.3], dtype=torch.float64, requires_grad=True)
    with computing(kernel):

        def function(w):
            return tr.log_prob_above(w, [0, 3], [2])

        assert torch.autograd.gradcheck(function, scores)
        assert torch.autograd.gradgradcheck(function, scores)
        _, gradient = value_and_gradient(function, scores)
    assert gradient[1] == 0
    assert gradient.sum() == pytest.approx(0, abs=1e-15)
