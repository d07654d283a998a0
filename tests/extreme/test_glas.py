"""The regulariser GLaS: its formula, its gradient, and its two ways of counting."""

import numpy as np
import pytest
import torch
from scipy.sparse import csr_matrix

from tierrank.extreme import learner
from tierrank.extreme.learner import Glas


def label_sets(rows=40, labels=9, seed=0):
    rng = np.random.default_rng(seed)
    return csr_matrix((rng.random((rows, labels)) < 0.3).astype(np.float32))


def formula(Y, labels, vectors, strength):
    """As Guo et al. print it, by counting rows."""
    has = Y.toarray() > 0
    total = 0.0
    for a, i in enumerate(labels):
        for b, j in enumerate(labels):
            both = (has[:, i] & has[:, j]).sum()
            wanted = (both / has[:, j].sum() + both / has[:, i].sum()) / 2
            total = total + (vectors[a] @ vectors[b] - wanted) ** 2
    return strength * total / len(labels) ** 2


@pytest.fixture(params=["dense", "sparse"])
def either_way(request, monkeypatch):
    if request.param == "sparse":
        monkeypatch.setattr(learner, "GLAS_DENSE", 0)


def test_value_and_gradient_are_those_of_the_formula(either_way):
    Y, labels = label_sets(), torch.tensor([0, 2, 3, 7])
    vectors = torch.randn(4, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    vectors.requires_grad_()
    wanted = formula(Y, labels.tolist(), vectors, 2.5)
    value, gradient = Glas(Y, 2.5).gradient(labels, vectors.detach())
    assert value == pytest.approx(wanted.item(), rel=1e-6)
    torch.testing.assert_close(
        gradient, *torch.autograd.grad(wanted, vectors), rtol=1e-6, atol=1e-7
    )


def test_the_gradient_is_that_of_finite_differences(either_way):
    Y, labels = label_sets(), torch.tensor([1, 4, 8])
    regulariser = Glas(Y, 1.0)
    vectors = torch.randn(3, 2, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    _, gradient = regulariser.gradient(labels, vectors)
    for place in np.ndindex(3, 2):
        step = torch.zeros_like(vectors)
        step[place] = 1e-5
        up, down = (regulariser.gradient(labels, vectors + s * step)[0] for s in (1, -1))
        assert gradient[place].item() == pytest.approx((up - down) / 2e-5, rel=1e-6, abs=1e-9)


def test_the_target_is_symmetric_and_its_diagonal_is_one(either_way):
    target = Glas(label_sets(), 1.0).target(torch.arange(9))
    assert torch.equal(target, target.T)
    torch.testing.assert_close(target.diagonal(), torch.ones(9), rtol=1e-6, atol=0)
    assert target.min() >= 0
    assert target.max() <= 1


def test_labels_that_always_or_never_come_together(either_way):
    Y = csr_matrix([[1, 1, 0], [1, 1, 0], [0, 0, 1]], dtype=np.float32)
    target = Glas(Y, 1.0).target(torch.arange(3))
    assert target.tolist() == [[1, 1, 0], [1, 1, 0], [0, 0, 1]]


def test_a_relevance_counts_as_having_the_label(either_way):
    """Relevances are no counts: P(i | j) would not be a share."""
    Y = label_sets()
    graded = Y.copy()
    graded.data = np.random.default_rng(1).integers(1, 6, Y.nnz).astype(np.float32)
    labels = torch.arange(9)
    assert torch.equal(Glas(graded, 1.0).target(labels), Glas(Y, 1.0).target(labels))


def test_both_ways_of_counting_agree(monkeypatch):
    Y, labels = label_sets(200, 30), torch.tensor([0, 5, 6, 11, 29])
    dense = Glas(Y, 1.0)
    monkeypatch.setattr(learner, "GLAS_DENSE", 29)
    sparse = Glas(Y, 1.0)
    assert dense.together is not None
    assert sparse.together is None
    assert torch.equal(dense.target(labels), sparse.target(labels))


def test_a_step_looks_at_the_labels_of_its_batch_or_some_of_them(monkeypatch):
    regulariser = Glas(label_sets(), 1.0)
    named = torch.tensor([3, 0, 3, 8, 1, 1])
    assert regulariser.labels(named).tolist() == [0, 1, 3, 8]
    monkeypatch.setattr(learner, "GLAS_LABELS", 3)
    seen = set()
    for seed in range(20):
        torch.manual_seed(seed)
        some = regulariser.labels(named)
        assert len(some) == 3
        assert (some.diff() > 0).all()
        torch.manual_seed(seed)
        assert torch.equal(regulariser.labels(named), some)
        seen.add(tuple(some.tolist()))
    assert len(seen) == 4  # all of the ways to leave one out
