"""Minibatches of lists: every list once an epoch, whole, with its rows and its weight."""

from itertools import chain

import numpy as np
import pytest
import scipy.sparse
import torch

import tierrank as tr
from tierrank.tiers.layout import layout_of
from tierrank.training.loop import ListBatches, Share, as_float32

CPU = torch.device("cpu")
RNG = np.random.default_rng(5)
QID = RNG.permutation(np.repeat(np.arange(11), RNG.integers(1, 9, 11)))
LABELS = RNG.integers(-1, 3, len(QID)) / 2
FEATURES = RNG.normal(size=(len(QID), 3)).astype(np.float32)
TIERS = tr.Tiers.from_labels(LABELS, qid=QID)


def batches(X=None, weights=None, size=4, lists=None):
    lists = np.arange(len(TIERS)) if lists is None else lists
    X = as_float32(FEATURES if X is None else X)
    return ListBatches(X, TIERS, weights, size=size, lists=lists, seed=1)


def order_of(data, epoch):
    """The lists of an epoch, told by their first rows' features."""
    data.begin(epoch)
    found = []
    first_rows = {FEATURES[TIERS.rows([i])[0]].tobytes(): i for i in range(len(TIERS))}
    for step in range(len(data)):
        X, batch = data.load(step, Share(), CPU)
        starts = np.cumsum(batch.lengths) - batch.lengths
        found.append([first_rows[X[start].numpy().tobytes()] for start in starts])
    return found


def flat(lists):
    return sorted(chain.from_iterable(lists))


@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_array, scipy.sparse.csr_matrix])
def test_a_batch_is_what_the_selection_of_its_lists_is(form):
    data = batches(form(FEATURES))
    for step, lists in enumerate(order_of(data, 3)):
        X, batch = data.load(step, Share(), CPU)
        assert batch.tiers == tr.Tiers.from_labels(
            LABELS[TIERS.rows(lists)], lengths=TIERS.lengths[lists]
        )
        assert torch.equal(batch.tiers.grades, TIERS[lists].grades)
        for found, expected in zip(
            batch.tiers.layout(), layout_of(TIERS[lists], True), strict=True
        ):
            assert (found is expected is None) or torch.equal(found, expected)
        np.testing.assert_array_equal(X.numpy(), FEATURES[TIERS.rows(lists)])
        assert X.dtype == torch.float32
        assert batch.lengths.tolist() == TIERS.lengths[lists].tolist()


def test_an_epoch_has_every_list_once_in_an_order_of_its_own():
    data = batches()
    first, second = order_of(data, 0), order_of(data, 1)
    assert [len(lists) for lists in first] == [4, 4, 3]
    assert flat(first) == flat(second) == list(range(11))
    assert first != second
    assert order_of(data, 0) == first


def test_only_the_chosen_lists_come():
    data = batches(lists=np.array([2, 5, 7]), size=2)
    assert flat(order_of(data, 0)) == [2, 5, 7]


@pytest.mark.parametrize("processes", [2, 3, 7])
def test_the_shares_of_all_processes_make_up_the_batch(processes):
    weights = RNG.uniform(0.5, 2, len(TIERS))
    data = batches(weights=weights)
    data.begin(0)
    for step in range(len(data)):
        X, whole = data.load(step, Share(), CPU)
        parts = [data.load(step, Share(i, processes), CPU) for i in range(processes)]
        real = [(x, part) for x, part in parts if float(part.weights.sum()) > 0]
        assert torch.equal(torch.cat([x for x, _ in real]), X)
        assert torch.equal(torch.cat([part.weights for _, part in real]), whole.weights)
        assert all(len(x) > 0 for x, _ in parts)  # nobody stands idle


def test_batches_add_up_to_the_weighted_mean_over_all_lists():
    weights = RNG.uniform(0, 2, len(TIERS))
    losses = RNG.uniform(0, 9, len(TIERS))
    chosen = np.array([0, 2, 3, 5, 6, 9, 10])
    losses[np.setdiff1d(np.arange(len(TIERS)), chosen)] = 0.0
    data = batches(weights=weights, lists=chosen, size=3)
    orders = order_of(data, 2)
    total = 0.0
    for step, lists in enumerate(orders):
        batch = data.load(step, Share(), CPU)[1]
        total += float(torch.from_numpy(losses[lists]).float() @ batch.weights) * data.part(step)
    assert total == pytest.approx(np.average(losses, weights=weights), rel=1e-6)


def test_numbers_too_large_for_float32_are_refused():
    for form in (np.asarray, scipy.sparse.csr_array):
        with pytest.raises(ValueError, match="too large for the network's float32"):
            as_float32(form([[1.0, 1e200]]))
    assert as_float32(FEATURES).data_ptr() == FEATURES.ctypes.data  # no copy where none is needed
