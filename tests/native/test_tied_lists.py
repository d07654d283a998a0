"""Lists with ties: what is refused, and threads. The numbers are tested with the aggregator."""

import numpy as np
import pytest

from tierrank import _native

ITEMS, TIERS, LISTS = np.array([2, 0, 1, 2]), np.array([0, 2, 3, 4]), np.array([0, 2, 3])
COUNTS = np.ones(2)


@pytest.mark.parametrize(
    ("items", "tiers", "lists", "counts"),
    [
        (np.array([2, 0, 1, 3]), TIERS, LISTS, COUNTS),
        (np.array([2, 0, 1, -1]), TIERS, LISTS, COUNTS),
        (ITEMS, np.array([0, 2, 3, 5]), LISTS, COUNTS),
        (ITEMS, np.array([0, 2, 2, 4]), LISTS, COUNTS),  # a tier without an item
        (ITEMS, np.zeros(0, np.int64), LISTS, COUNTS),
        (ITEMS, TIERS, np.array([0, 2, 4]), COUNTS),
        (ITEMS, TIERS, np.array([0, 3, 3]), COUNTS),  # a list without a tier
        (ITEMS, TIERS, np.array([0, 4, 3]), COUNTS),
        (ITEMS, TIERS, LISTS, np.ones(3)),
    ],
)
def test_lists_that_lead_elsewhere_are_refused(items, tiers, lists, counts):
    with pytest.raises(ValueError, match=r"must|need"):
        _native.TiedLists(items, tiers, lists, counts, 3)


@pytest.mark.parametrize(
    ("method", "shapes"),
    [
        ("terms", [3, 3, None, 3, 3, 4, 4]),
        ("entry_gradients", [3, 3, 4, 4]),
        ("product", [3, 3, 4, 4, 3, 3]),
        ("diagonal", [3, 3, 4, 4, 3]),
        ("matrix", [3, 3, 4, 4, (3, 3)]),
    ],
)
def test_arrays_of_other_lengths_are_refused(method, shapes):
    lists = _native.TiedLists(ITEMS, TIERS, LISTS, COUNTS, 3)
    assert lists.matrix_size == 4  # only the first tier of the first list has one

    def arrays(given):
        return [1 if shape is None else np.ones(shape) for shape in given]

    call = getattr(lists, method)
    call(*arrays(shapes))
    for place, shape in enumerate(shapes):
        if shape is None:
            continue
        for wrong in (2, 5) if isinstance(shape, int) else ((3, 2), (4, 3), 3):
            with pytest.raises((ValueError, TypeError)):
                call(*arrays([*shapes[:place], wrong, *shapes[place + 1 :]]))
    with pytest.raises(TypeError):  # a converted copy would be filled, and lost
        call(*arrays(shapes[:-1]), np.ones(shapes[-1], np.float32))


def test_the_number_of_threads_changes_no_bit():
    random = np.random.default_rng(1)
    sizes = np.tile([1, 3, 9, 20, 7], 100)
    items = np.concatenate([random.permutation(60)[:40] for _ in range(100)])
    tiers, lists = np.r_[0, np.cumsum(sizes)], np.arange(101) * 5
    known = _native.TiedLists(items, tiers, lists, np.ones(100), 60)
    log_worth = -random.exponential(3.0, 60)
    found = []
    for threads in (1, 2, 5):
        below, value = np.empty((2, len(sizes)))
        slopes, matrices = np.empty(len(items)), np.empty(known.matrix_size)
        known.terms(np.exp(log_worth), log_worth, threads, below, value, slopes, matrices)
        found.append([part.tobytes() for part in (below, value, slopes, matrices)])
    assert found[0] == found[1] == found[2]
