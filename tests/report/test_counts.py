"""Records of items and pairs, against counting by hand."""

import numpy as np
import pytest

from tierrank.aggregation.lists import distinct, weighted_lists
from tierrank.report import from_fit
from tierrank.report.from_fit import item_records, pair_counts

ITEMS = 7


def drawn(rest):
    """Lists with ties, how often each was seen, and what follows from them, pair by pair."""
    random = np.random.default_rng(0)
    lists = []
    for _ in range(60):
        left, tiers = random.permutation(ITEMS)[: random.integers(1, ITEMS + 1)].tolist(), []
        while left:
            size = int(random.integers(1, 3))
            tiers.append(tuple(left[:size]))
            left = left[size:]
        lists.append(tiers)
    often = random.integers(1, 4, len(lists))
    seen, above, beside = np.zeros(ITEMS), np.zeros((ITEMS, ITEMS)), np.zeros((ITEMS, ITEMS))
    for tiers, times in zip(lists, often, strict=True):
        named = {item for tier in tiers for item in tier}
        others = tuple(set(range(ITEMS)) - named)
        tiers = [*tiers, others] if rest == "last" and others else tiers
        if len(tiers) < 2:
            continue
        for place, tier in enumerate(tiers):
            for item in tier:
                seen[item] += times
                beside[item, [other for other in tier if other != item]] += times
                above[item, [other for below in tiers[place + 1 :] for other in below]] += times
    return distinct(*weighted_lists(lists, often, items=ITEMS, rest=rest)), seen, above, beside


@pytest.mark.parametrize("rest", ["absent", "last"])
def test_records_of_items_and_pairs_are_those_counted_by_hand(rest, monkeypatch):
    lists, seen, above, beside = drawn(rest)
    found = item_records(lists)
    expected = np.stack([seen, above.sum(1), beside.sum(1), above.sum(0)], axis=1)
    np.testing.assert_allclose(found, expected)
    order = np.random.default_rng(1).permutation(ITEMS)
    square = np.ix_(order, order)
    table = np.stack([above[square], beside[square], above.T[square]], axis=-1)
    pairs = pair_counts(lists, order)
    assert pairs.among == ITEMS
    np.testing.assert_allclose(pairs.table(ITEMS), table)
    monkeypatch.setattr(from_fit, "MOST_PAIRS", 4)  # there is room for the first three rows
    fewer = pair_counts(lists, order)
    assert fewer.among == 3
    np.testing.assert_allclose(fewer.table(3), table[:3, :3])
    monkeypatch.setattr(from_fit, "MOST_MET", 4)
    assert pair_counts(lists, order) is None
