"""Strict lists: what is refused. The numbers are tested with the terms of the aggregator."""

import numpy as np
import pytest

from tierrank import _native

ITEMS, OFFSETS, COUNTS = np.array([2, 0, 1, 2]), np.array([0, 3, 4]), np.ones(2)


@pytest.mark.parametrize(
    ("items", "offsets", "counts", "n_items"),
    [
        (np.array([2, 0, 1, 3]), OFFSETS, COUNTS, 3),
        (np.array([2, 0, 1, -1]), OFFSETS, COUNTS, 3),
        (ITEMS, np.array([0, 3, 5]), COUNTS, 3),
        (ITEMS, np.array([1, 3, 4]), COUNTS, 3),
        (ITEMS, np.array([0, 5, 4]), COUNTS, 3),
        (ITEMS, np.array([0, 4, 4]), COUNTS, 3),  # a list without an entry
        (ITEMS, OFFSETS, np.ones(1), 3),
        (ITEMS, OFFSETS, np.ones(3), 3),
        (ITEMS, np.zeros(0, np.int64), np.zeros(0), 3),
        (ITEMS, OFFSETS, COUNTS, -1),
    ],
)
def test_lists_that_lead_elsewhere_are_refused(items, offsets, counts, n_items):
    with pytest.raises(ValueError, match=r"must|need"):
        _native.StrictLists(items, offsets, counts, n_items)


@pytest.mark.parametrize(
    ("method", "shapes"),
    [
        ("value_and_gradient", [3, 4, 3]),
        ("product", [3, 4, 3, 3]),
        ("diagonal", [3, 4, 3]),
        ("matrix", [3, 4, (3, 3)]),
        ("entry_gradients", [3, 4, 4]),
    ],
)
def test_arrays_of_other_lengths_are_refused(method, shapes):
    call = getattr(_native.StrictLists(ITEMS, OFFSETS, COUNTS, 3), method)
    call(*map(np.ones, shapes))
    for place, shape in enumerate(shapes):
        for wrong in (2, 5) if isinstance(shape, int) else ((3, 2), (4, 3), (2, 3), 3):
            others = [np.ones(wrong if k == place else shapes[k]) for k in range(len(shapes))]
            with pytest.raises((ValueError, TypeError)):
                call(*others)
    with pytest.raises(TypeError):  # a converted copy would be filled, and lost
        call(*map(np.ones, shapes[:-1]), np.ones(shapes[-1], np.float32))


@pytest.mark.parametrize(
    ("kind", "tier_offsets", "list_offsets", "length"),
    [
        ("never", [0, 1, 4], [0, 2], 4),
        ("efron", [0, 1, 5], [0, 2], 4),
        ("efron", [0, 5, 4], [0, 2], 4),
        ("efron", [0, 1, 4], [0, 3], 4),
        ("efron", [0, 1, 4], [], 4),
        ("efron", [0, 1, 4], [0, 2], 3),
    ],
)
def test_stages_that_lead_elsewhere_are_refused(kind, tier_offsets, list_offsets, length):
    rows, good = np.zeros(4), (np.array([0, 1, 4]), np.array([0, 2]))
    _native.stage_hessians("efron", rows, *good, 1, np.zeros(4))
    tiers, lists = (np.array(part, dtype=np.int64) for part in (tier_offsets, list_offsets))
    with pytest.raises(ValueError, match=r"must|begin|draws|result"):
        _native.stage_hessians(kind, rows, tiers, lists, 1, np.zeros(length))
