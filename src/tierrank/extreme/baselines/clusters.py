"""Rows in clusters by the angles between them: spherical k-means on sparse rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from tierrank.extreme.baselines.inputs import unit_rows
from tierrank.extreme.baselines.top_labels import blocks

Array = np.ndarray[Any, Any]


def spherical_clusters(
    rows: Any, clusters: int, generator: np.random.Generator, *, rounds: int = 10
) -> tuple[Array, Any]:
    """Which cluster each row is in, and the centres of the clusters.

    It starts from distinct rows drawn at random. A cluster that loses its last row is dropped, so
    that there may be fewer than asked for, as there are when many rows are alike.

    Parameters
    ----------
    rows
        [rows, features] CSR with rows of length 1, or empty ones, which go to the first cluster
    clusters
        how many, at most one a row
    generator
        of the first centres
    rounds
        most rounds of assigning and averaging

    Returns
    -------
    member
        [rows] numbers of clusters
    centres
        [clusters, features] CSR with rows of length 1: as sparse as the rows of a cluster together
    """
    count = rows.shape[0]
    seeds = generator.choice(count, size=min(clusters, count), replace=False)
    centres = unit_rows(rows[np.sort(seeds)])
    member = nearest_centres(rows, centres)
    for _ in range(rounds):
        member = np.unique(member, return_inverse=True)[1]  # numbers without gaps
        ones = np.ones(count)
        belongs = sparse.csr_array((ones, (member, np.arange(count))))
        centres = unit_rows(belongs @ rows)
        before, member = member, nearest_centres(rows, centres)
        if np.array_equal(before, member):
            break
    left, member = np.unique(member, return_inverse=True)
    return member, centres[left]


def nearest_centres(rows: Any, centres: Any) -> Array:
    """[rows] the centre with the smallest angle to each row."""
    nearest = np.empty(rows.shape[0], dtype=np.int64)
    transposed = centres.T.tocsr()
    for block in blocks(rows.shape[0], centres.shape[0]):
        nearest[block] = (rows[block] @ transposed).toarray().argmax(axis=1)
    return nearest
