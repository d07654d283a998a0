"""Bad input is refused in words that say what, where and what to do; it never becomes a NaN."""

import functools
import math

import numpy as np
import pytest
import torch

import tierrank as tr
from partitions import computing, each_dtype, each_kernel

TWO_LISTS = tr.Tiers.from_labels([2, 1, 1, 0, 0, 1, 0], lengths=[5, 2])
refused = functools.partial(pytest.raises, ValueError)
each_bad = pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])


# Scores that are not finite --------------------------------------------------------------------


@each_kernel
@each_dtype
@each_bad
@pytest.mark.parametrize("gradient", [False, True], ids=["value", "gradient"])
@pytest.mark.parametrize(("row", "number"), [(0, 0), (2, 0), (4, 0), (5, 1), (6, 1)])
def test_a_score_that_is_not_finite_is_named(kernel, dtype, bad, gradient, row, number):
    """Whether it stands in the first tier, in one between, or in the last."""
    scores = torch.zeros(7, dtype=dtype)
    scores[row] = bad
    with computing(kernel), refused(
        match=rf"scores must be finite, but scores\[{row}\], in list {number}, is {bad}"
    ):  # fmt: skip
        tr.log_prob(scores.requires_grad_(gradient), TWO_LISTS)


@each_kernel
@each_bad
def test_in_a_list_of_one_tier_too(kernel, bad):
    tiers = tr.Tiers.from_labels([1, 0, 1, 1], lengths=[2, 2])
    with computing(kernel), refused(match=r"scores\[3\], in list 1, is"):
        tr.log_prob(np.array([0.0, 0.0, 0.0, bad]), tiers)


@each_kernel
def test_scattered_rows_are_named_by_their_own_number(kernel):
    tiers = tr.Tiers.from_labels([1, 1, 0, 0], qid=["b", "a", "b", "a"])
    with computing(kernel), refused(match=r"scores\[1\], in list 1, is nan"):
        tr.log_prob(np.array([0.0, np.nan, 0.0, 0.0]), tiers)


@each_kernel
@pytest.mark.parametrize("mask", [None, [[True, True, True], [False, True, True]]])
def test_padded_scores_are_named_by_row_and_column(kernel, mask):
    tiers = tr.Tiers.from_labels([[1, 0, 0], [0, 1, 0]], mask=mask)
    scores = np.zeros((2, 3))
    scores[1, 2] = np.inf
    with computing(kernel), refused(match=r"scores\[1, 2\], in list 1, is inf"):
        tr.log_prob(scores, tiers)


RANKINGS = [["ann", ("bob", "cy")], ["bob", "ann"]]


@each_kernel
@each_bad
@pytest.mark.parametrize("rest", ["absent", "last"])
def test_scores_of_named_items_are_given_with_the_name(kernel, bad, rest):
    tiers = tr.Tiers.from_rankings(RANKINGS, items=["ann", "bob", "cy", "dee"], rest=rest)
    own = np.zeros((2, 4))
    own[1, 1] = bad
    shared = own[1]
    with computing(kernel):
        with pytest.raises(
            ValueError, match=rf"scores\[1, 1\] \(item 'bob'\), in list 1, is {bad}"
        ):
            tr.log_prob(own, tiers)
        with refused(match=rf"scores\[1\] \(item 'bob'\).* is {bad}"):
            tr.log_prob(shared, tiers)


@each_kernel
@each_bad
def test_a_score_of_the_rest_counts_and_one_of_an_absent_item_does_not(kernel, bad):
    """Item dee is in no list: with rest="last" it is below all others."""
    catalogue = {"items": ["ann", "bob", "cy", "dee"]}
    absent = tr.Tiers.from_rankings(RANKINGS, **catalogue)
    last = tr.Tiers.from_rankings(RANKINGS, **catalogue, rest="last")
    own = np.zeros((2, 4))
    own[:, 3] = bad
    with computing(kernel):
        np.testing.assert_allclose(np.exp(tr.log_prob(own, absent)), [1 / 3, 1 / 2])
        np.testing.assert_allclose(np.exp(tr.log_prob(own[0], absent)), [1 / 3, 1 / 2])
        with pytest.raises(
            ValueError, match=rf"scores\[0, 3\] \(item 'dee'\), in list 0, is {bad}"
        ):
            tr.log_prob(own, last)
        with refused(match=rf"scores\[3\] \(item 'dee'\).* is {bad}"):
            tr.log_prob(own[0], last)


@each_kernel
@each_bad
@pytest.mark.parametrize("at", [0, 70_000, 150_000])
def test_anywhere_in_a_long_list(kernel, bad, at):
    """Of 150,001 items: in the piece of a thread, and in its last row."""
    labels = np.zeros(150_001)
    labels[[7, 80_000]] = [1, 2]
    scores = np.zeros(150_001)
    scores[at] = bad
    with (
        computing(kernel),
        refused(match=rf"scores\[{at}\], in list 0, is {bad}"),
    ):
        tr.log_prob(scores, tr.Tiers.from_labels(labels))


@each_kernel
def test_the_largest_numbers_there_are_give_no_nan(kernel):
    """Finite scores have a finite or an honest answer, however far apart."""
    tiers = tr.Tiers.from_labels([1, 1, 0])
    with computing(kernel):
        for size in (1e30, 1e300):
            up = tr.log_prob(np.array([size, size, -size]), tiers)
            assert up[0] == pytest.approx(0, abs=1e-12)
            down = tr.log_prob(np.array([size, -size, size]), tiers)
            assert down[0] == pytest.approx(-2 * size, rel=1e-12)


# Scores of the wrong shape or kind -------------------------------------------------------------


@pytest.mark.parametrize("shape", [(), (6,), (8,), (7, 1), (1, 7), (2, 7)])
def test_scores_for_flat_labels_need_their_shape(shape):
    with refused(match=r"labels of shape \[7\], so the scores need that shape, not"):
        tr.log_prob(np.zeros(shape), TWO_LISTS)


@pytest.mark.parametrize("shape", [(6,), (3, 2), (2, 4), (1, 2, 3)])
def test_scores_for_padded_labels_need_their_shape(shape):
    tiers = tr.Tiers.from_labels([[1, 0, 0], [0, 1, 0]])
    with refused(match=r"labels of shape \[2, 3\], so the scores need that shape"):
        tr.log_prob(np.zeros(shape), tiers)


@pytest.mark.parametrize("rest", ["absent", "last"])
@pytest.mark.parametrize("shape", [(), (3,), (5,), (2, 3), (3, 4), (4, 2), (2, 4, 1)])
def test_scores_for_a_catalogue_are_shared_or_one_row_a_list(shape, rest):
    tiers = tr.Tiers.from_rankings([[0, 1], [2]], items=4, rest=rest)
    with refused(match=r"2 lists over 4 items need scores of shape \[4\].* or \[2, 4\], not"):
        tr.log_prob(np.zeros(shape), tiers)


@pytest.mark.parametrize(
    "scores",
    [
        torch.zeros(7, dtype=torch.int64),
        torch.zeros(7, dtype=torch.bool),
        torch.zeros(7, dtype=torch.complex64),
        np.zeros(7, np.complex128),
        np.zeros(7, bool),
        np.array(["0"] * 7),
        [None] * 7,
    ],
    ids=["torch ints", "torch bools", "torch complex", "complex", "bools", "strings", "None"],
)
@pytest.mark.parametrize(
    "function",
    [
        lambda scores: tr.log_prob(scores, TWO_LISTS),
        lambda scores: tr.log_prob_above(scores, [0], [1]),
        lambda scores: tr.Curvature(scores, TWO_LISTS),
        lambda scores: tr.sample(scores, 1),
    ],
    ids=["log_prob", "log_prob_above", "Curvature", "sample"],
)
def test_scores_are_real_numbers(scores, function):
    with pytest.raises(TypeError, match=r"^scores are "):
        function(scores)


def test_scores_on_another_device_name_the_cure():
    """Meta tensors are on a device that every machine has."""
    scores = torch.zeros(7, device="meta")
    with refused(match=r'on meta and the tiers on cpu: use tiers.to\("meta"\)'):
        tr.log_prob(scores, TWO_LISTS)


# Sets of items ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("above", "below", "message"),
    [
        ([0, 1], [1, 2], "item 1 is both above and below"),
        ([0, 4], [1], "item 4 is not among 0 … 3"),
        ([0], [-1], "item -1 is not among 0 … 3"),
        ([0, 0], [1], "named twice"),
        ([0.0, 1.0], [2], "integer indices or a boolean mask, not torch.float64"),
        ([[0, 1]], [2], r"1-D array, not of shape \[1, 2\]"),
        (0, [2], r"1-D array, not of shape \[\]"),
        ([True, False], [2], "mask over 4 items needs that length, not 2"),
        ([True, False, False, False], [0], "item 0 is both above and below"),
    ],
)
def test_sets_that_make_no_sense_are_refused(above, below, message):
    with refused(match=message):
        tr.log_prob_above(np.zeros(4), above, below)


def test_a_single_number_has_no_items():
    with refused(match="not a single number"):
        tr.log_prob_above(np.array(1.0), [], [])


@pytest.mark.parametrize(
    ("scores", "where"),
    [
        (np.array([0.0, 0.0, 0.0, np.nan]), r"scores\[3\]"),
        (np.array([[0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, np.nan]]), r"scores\[1, 3\]"),
    ],
)
def test_a_score_of_a_set_that_is_not_finite_is_named_by_its_own_index(scores, where):
    with refused(match=where):
        tr.log_prob_above(scores, [1], [3])


@pytest.mark.parametrize("function", [tr.log_prob, tr.Curvature])
@pytest.mark.parametrize("labels", [[1, 0], np.array([1, 0]), torch.tensor([1, 0]), None])
def test_labels_where_tiers_belong_are_refused_with_what_to_write(function, labels):
    with pytest.raises(ValueError, match=r"must be a Tiers, not .*Tiers.from_labels\(labels"):
        function(np.zeros(2), labels)
