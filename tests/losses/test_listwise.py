"""ListNet, AttRank, RankCosine and BCE against their formulas, list by list."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.special import log_softmax, softmax
from torch.nn.functional import binary_cross_entropy_with_logits

import tierrank as tr
from partitions import ragged, value_and_gradient
from tierrank.losses import att_rank, bce, list_net, pl_lower_bound, rank_cosine

SEEDS = st.integers(0, 10**6)


def lists_of(seed):
    """Tiers, flat scores, and (scores, labels) list by list; labels may be any numbers."""
    scores, grades, lengths = ragged(seed)
    labels = np.array([-1.5, 0.0, 1.0, 3.0])[grades]
    borders = np.cumsum(lengths)[:-1]
    parts = zip(np.split(scores, borders), np.split(labels, borders), strict=True)
    return tr.Tiers.from_labels(labels, lengths=lengths), scores, list(parts)


@given(seed=SEEDS)
@settings(max_examples=25)
def test_list_net_is_its_formula(seed):
    tiers, scores, parts = lists_of(seed)
    expected = [-(softmax(labels) * log_softmax(w)).sum() for w, labels in parts]
    np.testing.assert_allclose(list_net(scores, tiers, reduction="none"), expected, rtol=1e-12)


@given(seed=SEEDS)
@settings(max_examples=25)
def test_att_rank_is_its_formula(seed):
    tiers, scores, parts = lists_of(seed)

    def formula(w, labels):
        attention = np.where(labels > 0, np.exp(labels), 0.0)
        if not attention.any():
            return 0.0
        return -(attention / attention.sum() * log_softmax(w)).sum()

    expected = [formula(*part) for part in parts]
    np.testing.assert_allclose(att_rank(scores, tiers, reduction="none"), expected, rtol=1e-12)


@given(seed=SEEDS)
@settings(max_examples=25)
def test_rank_cosine_is_its_formula(seed):
    tiers, scores, parts = lists_of(seed)

    def formula(w, labels):
        norms = np.linalg.norm(w) * np.linalg.norm(labels)
        return (1 - (w @ labels / norms if norms else 0)) / 2

    expected = [formula(*part) for part in parts]
    np.testing.assert_allclose(
        rank_cosine(scores, tiers, reduction="none"), expected, rtol=1e-12, atol=1e-15
    )


@given(seed=SEEDS)
@settings(max_examples=25)
def test_bce_is_that_of_torch(seed):
    tiers, scores, parts = lists_of(seed)
    expected = [
        binary_cross_entropy_with_logits(
            torch.tensor(w), torch.tensor(labels > 0).double(), reduction="sum"
        )
        for w, labels in parts
    ]
    np.testing.assert_allclose(bce(scores, tiers, reduction="none"), expected, rtol=1e-12)


@pytest.mark.parametrize("shared", [False, True])
def test_bce_of_a_catalogue_takes_all_that_is_named_as_relevant(shared):
    """The third list names everything: there is no rest, and all of it is relevant."""
    rng = np.random.default_rng(4)
    Y = (rng.random((4, 9)) < 0.3).astype(float)
    Y[1], Y[2] = 0, 1
    scores = torch.from_numpy(5 * rng.normal(size=9 if shared else (4, 9)))
    expected = binary_cross_entropy_with_logits(
        scores.expand(4, 9), torch.from_numpy(Y), reduction="none"
    ).sum(1)
    found = bce(scores, tr.Tiers.from_positives(csr_array(Y)), reduction="none")
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)


def test_att_rank_over_two_tiers_is_the_lower_bound():
    """As Ma et al. (2021) say of extreme classification; up to n and the constant log n!."""
    scores = np.random.default_rng(2).normal(size=9)
    tiers = tr.Tiers.from_labels([1, 0, 0, 1, 0, 1, 0, 0, 0])
    value, gradient = value_and_gradient(lambda w: att_rank(w, tiers), scores)
    bound, bound_gradient = value_and_gradient(lambda w: pl_lower_bound(w, tiers), scores)
    assert value.item() == pytest.approx((bound.item() + np.log(6)) / 3, rel=1e-13)
    torch.testing.assert_close(gradient, bound_gradient / 3)


def test_labels_matter_and_not_only_their_order():
    scores = np.array([0.5, -0.5])
    weak, strong = tr.Tiers.from_labels([1, 0]), tr.Tiers.from_labels([4, 0])
    assert list_net(scores, strong) < list_net(scores, weak)
    ranking = tr.Tiers.from_rankings([[0, 1]])  # no labels: one tier below
    assert list_net(scores, ranking) == list_net(scores, weak)


@pytest.mark.parametrize("labels", [[2, 1, 0], [0, 0, 1]])
def test_rank_cosine_can_be_learned_from_zeros(labels):
    tiers = tr.Tiers.from_labels(labels)
    value, gradient = value_and_gradient(lambda w: rank_cosine(w, tiers), np.zeros(3))
    assert value.item() == 0.5
    grades = torch.tensor(labels, dtype=torch.float64)
    torch.testing.assert_close(gradient, -grades / grades.norm() / 2)
    assert rank_cosine((-gradient).numpy(), tiers) == pytest.approx(0, abs=1e-15)


def test_large_grades_do_not_overflow():
    tiers = tr.Tiers.from_labels([2000.0, 1999.0, 0.0])
    scores = np.array([1.0, 0.0, -1.0])
    share = np.array([1, np.exp(-1)]) / (1 + np.exp(-1))
    expected = -(share * log_softmax(scores)[:2]).sum()
    for loss in (list_net, att_rank):
        assert loss(scores, tiers) == pytest.approx(expected, rel=1e-13)
