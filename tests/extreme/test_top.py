"""The best labels in blocks: those that sorting all scores gives, ties and all."""

import numpy as np
import pytest
import torch
from scipy.sparse import csr_matrix
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter

from tierrank.extreme import network as top
from tierrank.extreme.network import Network, padded, top_labels

ROWS, FEATURES, LABELS = 11, 6, 23


def rows(seed=0, n=ROWS):
    rng = np.random.default_rng(seed)
    return csr_matrix(rng.integers(-1, 2, (n, FEATURES)).astype(np.float32))


def network(seed=0, labels=LABELS):
    """Of small whole numbers: scores are exact in any order of sums, and many are equal."""
    generator = torch.Generator().manual_seed(seed)
    made = Network(FEATURES, labels, (4,))
    for part in made.parameters():
        part.data = torch.randint(-1, 2, part.shape, generator=generator).float()
    return made.eval()


def all_scores(networks, X, offset=None):
    total = 0
    for each in networks:
        parts = {name: part.detach().numpy() for name, part in each.named_parameters()}
        hidden = np.maximum(X.toarray() @ parts["features"] + parts["feature_bias"], 0)
        total = total + hidden @ parts["labels"].T + parts["label_bias"]
    scores = (total / len(networks)).astype(np.float32)
    return scores if offset is None else scores + offset.numpy()


def sorted_labels(scores):
    """By score, and equal ones by label."""
    return np.argsort(-scores, axis=1, kind="stable")


@pytest.mark.parametrize("block", [1, 3, 5, 22, 23, 1 << 14])
@pytest.mark.parametrize("at_once", [1, 4, 256])
def test_they_are_the_first_of_all_labels_by_score_and_then_by_label(block, at_once, monkeypatch):
    monkeypatch.setattr(top, "BLOCK", block)
    monkeypatch.setattr(top, "ROWS", at_once)
    X, net = rows(), network()
    scores = all_scores([net], X)
    order = sorted_labels(scores)
    ties = np.take_along_axis(scores, order, 1)
    assert (ties[:, 4] == ties[:, 5]).any()  # and so they decide who is among the first
    for k in (1, 2, 5, 9, 22, 23):
        labels, found = top_labels([net], X, k)
        np.testing.assert_array_equal(labels, order[:, :k])
        np.testing.assert_array_equal(found, ties[:, :k])


@pytest.mark.parametrize("block", [4, 1 << 14])
@pytest.mark.parametrize("members", [2, 3])
def test_scores_of_several_networks_are_averaged(members, block, monkeypatch):
    monkeypatch.setattr(top, "BLOCK", block)
    X, several = rows(1), [network(seed) for seed in range(members)]
    scores = all_scores(several, X)
    labels, found = top_labels(several, X, 6)
    np.testing.assert_array_equal(labels, sorted_labels(scores)[:, :6])
    np.testing.assert_allclose(found, np.take_along_axis(scores, labels, 1), rtol=1e-6)


@pytest.mark.parametrize("block", [4, 1 << 14])
@pytest.mark.parametrize("members", [1, 2])
def test_an_offset_is_added_once_to_every_label(members, block, monkeypatch):
    monkeypatch.setattr(top, "BLOCK", block)
    X, several = rows(2), [network(seed) for seed in range(members)]
    offset = torch.randint(-4, 5, (LABELS,), generator=torch.Generator().manual_seed(0)).float()
    scores = all_scores(several, X, offset)
    labels, found = top_labels(several, X, 7, offset=offset)
    np.testing.assert_array_equal(labels, sorted_labels(scores)[:, :7])
    np.testing.assert_array_equal(found, np.take_along_axis(scores, labels, 1))


@pytest.mark.parametrize("block", [7, 1 << 14])
def test_where_all_scores_are_equal_the_first_labels_come_first(block, monkeypatch):
    monkeypatch.setattr(top, "BLOCK", block)
    net = network(labels=5000)
    for part in net.parameters():
        part.data[:] = 0
    labels, found = top_labels([net], rows(), 5)
    assert (labels == np.arange(5)).all()
    assert not found.any()


def test_real_scores_are_found_as_well():
    net = Network(FEATURES, 3000, (16,)).eval()
    torch.manual_seed(0)
    net.reset()
    X = rows(3)
    scores = all_scores([net], X)
    labels, found = top_labels([net], X, 10)
    np.testing.assert_allclose(found, -np.sort(-scores, axis=1)[:, :10], atol=1e-6)
    np.testing.assert_allclose(np.take_along_axis(scores, labels, 1), found, atol=1e-6)


def test_no_rows_have_no_labels():
    labels, scores = top_labels([network()], rows()[:0], 3)
    assert labels.shape == scores.shape == (0, 3)


def test_kinds_of_numbers_are_fixed():
    labels, scores = top_labels([network()], rows(), 3)
    assert labels.dtype == np.int64
    assert scores.dtype == np.float32


def test_scores_of_all_labels_are_never_there(monkeypatch):
    class Largest(TorchDispatchMode):
        size = 0

        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            result = function(*args, **(kwargs or {}))
            for each in tree_iter(result):
                if isinstance(each, torch.Tensor) and not each._is_view():
                    self.size = max(self.size, each.numel())
            return result

    monkeypatch.setattr(top, "BLOCK", 100)
    monkeypatch.setattr(top, "ROWS", 16)
    net = network(labels=2000)
    with Largest() as largest:
        top_labels([net], rows(n=64), 5)
    assert largest.size == 16 * 100


def test_predictions_are_filled_up_where_there_are_too_few_labels():
    labels = np.array([[1, 0], [0, 1]])
    assert padded(labels, 4).tolist() == [[1, 0, -1, -1], [0, 1, -1, -1]]
    assert padded(labels, 2).tolist() == padded(labels, 1).tolist() == labels.tolist()
