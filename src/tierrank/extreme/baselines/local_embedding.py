"""One learner of SLEEC: rows in clusters, and in each an embedding that features predict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tierrank.extreme.baselines.clusters import nearest_centres
from tierrank.extreme.baselines.least_squares import RidgeSolver
from tierrank.extreme.baselines.neighbours import label_similarities
from tierrank.extreme.baselines.projection import singular_value_projection
from tierrank.extreme.baselines.top_labels import best_of_products

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class LocalEmbedding:
    """What was learned in one cluster.

    Attributes
    ----------
    rows
        [rows of the cluster] their numbers among all training rows
    features
        [features of the cluster] those that any of its rows has; the others have no weights
    weights
        [features of the cluster, rank] from features to embeddings, float32
    points
        [rows of the cluster, rank] where its rows are embedded, at distance 1 from 0, float32
    """

    rows: Array
    features: Array
    weights: Array
    points: Array

    @classmethod
    def learn(
        cls,
        X: Any,
        Y: Any,
        rows: Array,
        generator: np.random.Generator,
        *,
        rank: int,
        neighbours: int,
        l2: float,
        steps: int,
    ) -> LocalEmbedding:
        """From all training rows and the numbers of those that are in the cluster."""
        inside = X[rows]
        features = np.unique(inside.indices)
        inside = inside[:, features]
        similarities = label_similarities(Y[rows], neighbours)
        targets = singular_value_projection(similarities, rank, generator, steps=steps)
        ridge = RidgeSolver(inside, l2)
        weights = ridge.solve(ridge.transposed @ targets, tol=1e-4)
        points = _on_the_sphere(inside @ weights)
        return cls(rows, features, weights.astype(np.float32), points)

    def nearest(self, X: Any, count: int) -> tuple[Array, Array]:
        """The training rows whose embeddings are nearest by angle, and the cosines of the angles.

        Both are [rows of X, count], nearest first; fewer than count if the cluster is smaller.
        """
        embedded = _on_the_sphere(X[:, self.features] @ self.weights)
        count = min(count, len(self.rows))
        near, cosines = best_of_products(embedded, self.points, count)
        return self.rows[near], cosines


@dataclass(frozen=True)
class Learner:
    """Clusters by features and what was learned in each.

    Attributes
    ----------
    centres
        [clusters, features] CSR with rows of length 1
    parts
        one for each cluster
    """

    centres: Any
    parts: list[LocalEmbedding]

    def votes(self, unit: Any, X: Any, count: int, sharpness: float) -> tuple[Array, Array, Array]:
        """Which training rows speak for each row, and for what share: (row, training row, share).

        Parameters
        ----------
        unit
            [rows, features] CSR with rows of length 1, to find the cluster by
        X
            [rows, features] CSR, to embed
        count
            training rows a row, fewer in smaller clusters; the shares of a row add up to 1
        sharpness
            shares are in proportion to cosine^sharpness
        """
        cluster = nearest_centres(unit, self.centres)
        found = [(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))]
        for number in np.unique(cluster):
            here = np.flatnonzero(cluster == number)
            near, cosines = self.parts[number].nearest(X[here], count)
            shares = _shares(cosines, sharpness)
            found.append((np.repeat(here, near.shape[1]), near.ravel(), shares.ravel()))
        row, speaker, share = (np.concatenate(part) for part in zip(*found, strict=True))
        return row, speaker, share


def _shares(cosines: Array, sharpness: float) -> Array:
    """[rows, voters] cosine^sharpness, scaled to sum to 1 in a row; none for angles over 90°.

    Cosines are given best first. Where none is above 0 all voters are alike.
    """
    largest = np.where(cosines[:, :1] > 0, cosines[:, :1], 1.0)
    weights = (np.maximum(cosines, 0.0) / largest) ** sharpness  # 0⁰ is 1
    weights[cosines[:, 0] <= 0] = 1.0
    shares: Array = weights / weights.sum(axis=1, keepdims=True)
    return shares


def _on_the_sphere(points: Array) -> Array:
    """float32 points divided by their lengths; 0 stays 0."""
    lengths = np.sqrt(np.square(points).sum(axis=1, keepdims=True))
    scaled: Array = np.divide(points, lengths, out=np.zeros_like(points), where=lengths > 0)
    return scaled.astype(np.float32)
