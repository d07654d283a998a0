"""Parts of data, cut between queries and never through one."""

from __future__ import annotations

from typing import Any

import numpy as np

from tierrank.data.ranking_data import RankingData
from tierrank.tiers.labels import group_rows

Array = np.ndarray[Any, Any]


def hold_out(data: RankingData, fraction: float, seed: int) -> tuple[RankingData, RankingData]:
    """Split off a share of the queries, drawn at random.

    Parameters
    ----------
    data
        rows of at least two queries
    fraction
        the share of the queries to hold out, between 0 and 1; at least one, and not all
    seed
        the same seed draws the same queries

    Returns
    -------
    rest, held_out
        both with their rows in the order of `data`
    """
    if not 0 < fraction < 1:
        raise ValueError(f"the share to hold out lies between 0 and 1; it is not {fraction}.")
    query, count = _numbered(data)
    if count < 2:
        raise ValueError(
            "there is one query only, and none can be held out of it: give validation data, or "
            "learn without."
        )
    held = np.zeros(count, dtype=bool)
    size = min(max(round(fraction * count), 1), count - 1)
    held[np.random.default_rng(seed).permutation(count)[:size]] = True
    return select(data, ~held[query]), select(data, held[query])


def split_folds(data: RankingData, folds: int, seed: int) -> list[tuple[RankingData, RankingData]]:
    """Cut the queries at random into folds: for each, all the others' rows, and its own."""
    query, count = _numbered(data)
    if not 2 <= folds <= count:
        raise ValueError(
            f"{count} queries make 2 to {count} folds, not {folds}."
            if count > 1
            else "there is one query only, and it cannot be cut into folds. Is the query right?"
        )
    fold_of = np.empty(count, dtype=np.int64)
    fold_of[np.random.default_rng(seed).permutation(count)] = np.arange(count) % folds
    own = fold_of[query]
    return [(select(data, own != fold), select(data, own == fold)) for fold in range(folds)]


def select(data: RankingData, rows: Array) -> RankingData:
    """The rows that a mask names, in the same order."""
    comments = data.comments
    if comments is not None:
        comments = tuple(comments[row] for row in np.flatnonzero(rows))
    return RankingData(data.X[rows], data.y[rows], data.qid[rows], comments, data.feature_names)


def _numbered(data: RankingData) -> tuple[Array, int]:
    """[rows] the number of each row's query, and how many there are."""
    query, keys = group_rows(data.qid, len(data))
    return query, len(keys)
