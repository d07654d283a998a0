"""How often items, and pairs of them, stood above, beside and below each other."""

from __future__ import annotations

import numpy as np

from tierrank._types import FloatArray, IntArray
from tierrank.aggregation.lists import CountedLists
from tierrank.report.content import PairCounts

MOST_ROWS = 1_000  # whose pairs are counted: in a square table of them
MOST_PAIRS = 20_000  # that a page has room for
MOST_MET = 50_000_000  # pairs within all lists, which are gone through one by one


def item_records(lists: CountedLists) -> FloatArray:
    """[items, 4] lists that an item is in; others that it stood above, beside and below there."""
    tiers, size = lists.tiers, lists.n_items
    items, sizes = tiers.items.numpy(), tiers.tier_sizes.numpy()
    per_list = np.asarray(tiers.lengths.numpy(), dtype=np.int64)
    list_of = np.repeat(np.arange(len(tiers)), tiers.list_offsets.diff().numpy())
    starts = np.concatenate([[0], np.cumsum(per_list)[:-1]])
    better = tiers.tier_offsets.numpy()[:-1] - starts[list_of]
    unnamed = (size - per_list) * tiers.rest
    worse = per_list[list_of] - better - sizes + unnamed[list_of]
    found = np.zeros((size, 4))
    by_entry = np.repeat(np.arange(len(sizes)), sizes)
    for column, values in enumerate((np.ones(len(sizes)), worse, sizes - 1, better)):
        weighted = (values * lists.counts[list_of])[by_entry]
        found[:, column] = np.bincount(items, weighted, size)
    if tiers.rest:  # a list that does not name an item has it tied with the others, behind all
        entry_list = list_of[by_entry]
        for column, each in ((0, np.ones(len(tiers))), (2, unnamed - 1.0), (3, 1.0 * per_list)):
            where = each * lists.counts
            found[:, column] += where.sum() - np.bincount(items, where[entry_list], size)
    return found


def pair_counts(lists: CountedLists, order: IntArray) -> PairCounts | None:
    """How pairs of rows met, of as many of the first rows as there is room for.

    Parameters
    ----------
    lists
        what was compared
    order
        [items] numbers of the items, best first: the rows
    """
    tiers = lists.tiers
    rows = min(len(order), MOST_ROWS)
    place = np.full(lists.n_items, rows)
    place[order[:rows]] = np.arange(rows)
    sizes = tiers.tier_sizes.numpy()
    tier_of = np.repeat(np.arange(len(sizes)), sizes)
    list_of = np.repeat(np.arange(len(tiers)), tiers.list_offsets.diff().numpy())[tier_of]
    at = place[tiers.items.numpy()]
    kept = at < rows
    at, tier_of, list_of = at[kept], tier_of[kept], list_of[kept]
    length = np.bincount(list_of, minlength=len(tiers))
    if float((length.astype(float) ** 2).sum()) / 2 > MOST_MET:
        return None
    # Each entry with all that follow in its list: these stand beside or below it.
    ends = np.cumsum(length)[list_of]
    following = ends - np.arange(len(at)) - 1
    one = np.repeat(np.arange(len(at)), following)
    within = np.arange(len(one)) - np.repeat(np.cumsum(following) - following, following)
    two = one + 1 + within
    weights = lists.counts[list_of[one]]
    tied = tier_of[one] == tier_of[two]

    def table(which: IntArray) -> FloatArray:
        codes = at[one[which]] * rows + at[two[which]]
        counted: FloatArray = np.bincount(codes, weights[which], rows * rows).astype(np.float64)
        return counted.reshape(rows, rows)

    above, beside = table(np.flatnonzero(~tied)), table(np.flatnonzero(tied))
    beside += beside.T
    if tiers.rest:
        from scipy.sparse import csr_array

        named = csr_array((np.ones(len(at)), (list_of, at)), shape=(len(tiers), rows))
        both = (named.T @ (named * lists.counts[:, None])).toarray()
        alone = np.asarray(named.T @ lists.counts)
        above += alone[:, None] - both
        beside += lists.counts.sum() - alone[:, None] - alone[None, :] + both
    upper = np.triu(above + above.T + beside, 1) > 0
    per_row = np.cumsum(upper.sum(axis=0))
    among = int(np.searchsorted(per_row, MOST_PAIRS, side="right"))
    first, second = np.nonzero(upper[:among, :among])
    return PairCounts(
        first, second, above[first, second], beside[first, second], above[second, first], among
    )
