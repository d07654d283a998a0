"""SLEEC: local embeddings that keep near label vectors near, and votes of nearest neighbours."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from leml import (
    RidgeSolver,
    best_columns,
    best_of_products,
    best_of_sparse,
    blocks,
    checked_k,
    checked_labels,
    prepared,
    unit_rows,
)
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from tierrank._native import inner_products
from tierrank._types import AnyArray as Array
from tierrank.errors import check_count, check_size
from tierrank.training import Progress, Watch
from tierrank.training.progress import seed_from

ROWS_A_CLUSTER = 4000  # where the number of clusters is not given
ROWS_AT_ONCE = 1024  # in prediction: their votes are held together

GROWTH, SHRINKAGE = 1.5, 0.5  # of the step, after one that helped and one that did not
DEPENDENT = 1e-11  # part of the largest eigenvalue below which a direction is rounding
FRESH = 10  # directions that are new in every step
FIRST_ROUNDS = 6  # of subspace iteration, for the first step: later ones start from the last


class Sleec(BaseEstimator):  # type: ignore[misc]
    """Sparse local embeddings for extreme classification (Bhatia et al., NIPS 2015).

    1. Clusters of rows, by the angles between their features (spherical k-means).
    2. In each, embeddings Z of its rows whose inner products match those of the label vectors
       (of length 1), but only between rows that are nearest neighbours in labels:
       singular value projection on ‖P(Y Yᵀ − Z Zᵀ)‖².
    3. Weights V from features to embeddings, by ridge regression: ‖X V − Z‖² + λ ‖V‖².
    4. A new row goes to the nearest cluster and is embedded by its V. The rows of the cluster
       that are nearest to it, embedded by V as well, vote: a label's score is the share of them
       that have it, or of their weights, with `sharpness`.
    5. Several learners, with clusters from different starts; the score is their mean.

    It differs from the published method in three points. V has an L2 penalty only, and not also
    an L1 penalty on X V, which makes their embeddings sparse and prediction faster. Neighbours in
    the embedding are nearest by angle, not by distance, and there is an intercept: both rank
    better on the data tried.

    Rows without labels are left out: they have no neighbours and no votes.

    Parameters
    ----------
    clusters
        of each learner, at most; None: one for every 4,000 rows
    learners
        clusterings whose scores are averaged
    rank
        dimensions of the embeddings
    neighbours
        nearest in labels that a row's embedding looks at, the row itself among them
    voters
        nearest in the embedding that vote
    sharpness
        a vote weighs cosine^sharpness, the cosine of the angle in the embedding. 0: all weigh the
        same, as published. Larger ones may rank much better: try 8, and more voters.
    l2
        λ, above 0
    steps
        most steps of the singular value projection
    normalize
        scale the rows of X to length 1 (the clusters are by angles in any case)
    intercept
        add a feature that is 1 in every row (after scaling; it is penalised as the others are)
    random_state
        a seed for the clusters and the projection

    Attributes
    ----------
    learners_
        one `Learner` each, with its clusters
    Y_
        [training rows with labels, labels] CSR: the labels that vote
    n_features_in_, n_labels_
        how many features and labels were seen

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_matrix
    >>> from sleec import Sleec
    >>> X = csr_matrix(np.repeat(np.eye(3), 4, axis=0))
    >>> Y = csr_matrix(np.repeat([[1, 1, 0, 0, 0], [0, 0, 1, 1, 0], [0, 0, 0, 1, 1]], 4, axis=0))
    >>> model = Sleec(clusters=1, rank=3, neighbours=4, voters=4, random_state=0).fit(X, Y)
    >>> np.sort(model.predict(X[::4], k=2)).tolist()
    [[0, 1], [2, 3], [3, 4]]
    """

    learners_: list[Learner]
    Y_: Any
    n_labels_: int

    def __init__(
        self,
        clusters: int | None = None,
        learners: int = 5,
        rank: int = 100,
        neighbours: int = 50,
        *,
        voters: int = 40,
        sharpness: float = 0.0,
        l2: float = 3.0,
        steps: int = 15,
        normalize: bool = True,
        intercept: bool = True,
        random_state: int | None = None,
    ) -> None:
        self.clusters = clusters
        self.learners = learners
        self.rank = rank
        self.neighbours = neighbours
        self.voters = voters
        self.sharpness = sharpness
        self.l2 = l2
        self.steps = steps
        self.normalize = normalize
        self.intercept = intercept
        self.random_state = random_state

    def fit(self, X: Any, Y: Any, watch: Watch | None = None) -> Self:
        """Learn from rows of features and their labels.

        Parameters
        ----------
        X
            [rows, features], scipy sparse or dense
        Y
            [rows, labels], scipy sparse; a row has the labels at which it is not 0
        watch
            called after every cluster with a `tierrank.training.Progress`
        """
        self._check_settings()
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64)
        Y = checked_labels(Y, X.shape[0])
        told = np.flatnonzero(np.diff(Y.indptr))
        Y, unit, X = Y[told], *self._both_forms(X[told])
        clusters = self.clusters or math.ceil(len(told) / ROWS_A_CLUSTER)
        # learner 1 is the same however many follow
        generators = np.random.default_rng(seed_from(self.random_state)).spawn(self.learners)
        clusterings = [spherical_clusters(unit, clusters, generator) for generator in generators]
        total = sum(centres.shape[0] for _, centres in clusterings)
        done = 0
        learners = []
        for (cluster, centres), generator in zip(clusterings, generators, strict=True):
            parts = []
            for number in range(centres.shape[0]):
                parts.append(
                    LocalEmbedding.learn(
                        X,
                        Y,
                        np.flatnonzero(cluster == number),
                        generator,
                        rank=self.rank,
                        neighbours=self.neighbours,
                        l2=float(self.l2),
                        steps=self.steps,
                    )
                )
                done += 1
                if watch is not None:
                    watch(Progress(done, total, "cluster"))
            learners.append(Learner(centres, parts))
        self.learners_, self.Y_, self.n_labels_ = learners, Y, Y.shape[1]
        return self

    def predict(self, X: Any, k: int = 5, *, return_scores: bool = False) -> Any:
        """[rows, k] labels, best first; with `return_scores` also their [rows, k] scores.

        Of labels with the same score, and of those without votes, the more frequent is first.

        Parameters
        ----------
        X
            [rows, features], as in `fit`
        k
            how many labels a row
        return_scores
            give (labels, scores)
        """
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        k = checked_k(k, self.n_labels_)
        self._check_votes()
        frequency = np.asarray(self.Y_.sum(axis=0)).ravel()
        labels = np.empty((X.shape[0], k), dtype=np.int64)
        scores = np.empty((X.shape[0], k))
        for begin in range(0, X.shape[0], ROWS_AT_ONCE):
            block = slice(begin, begin + ROWS_AT_ONCE)
            labels[block], scores[block] = best_of_sparse(self._scores(X[block]), k, frequency)
        return (labels, scores) if return_scores else labels

    def _scores(self, X: Any) -> Any:
        """[rows, labels] CSR: the mean over learners of the share of votes for the label."""
        unit, X = self._both_forms(X)
        votes = [
            learner.votes(unit, X, self.voters, float(self.sharpness)) for learner in self.learners_
        ]
        row, speaker, share = (np.concatenate(part) for part in zip(*votes, strict=True))
        shape = (X.shape[0], self.Y_.shape[0])
        together = sparse.coo_array((share / len(votes), (row, speaker)), shape=shape)
        return together.tocsr() @ self.Y_

    def _both_forms(self, X: Any) -> tuple[Any, Any]:
        """The rows for the clusters, of length 1, and the rows for the embeddings."""
        return (
            prepared(X, normalize=True, intercept=False),
            prepared(X, normalize=self.normalize, intercept=self.intercept),
        )

    def _check_settings(self) -> None:
        for name in ("learners", "rank", "neighbours", "steps"):
            check_count(name, getattr(self, name))
        if self.clusters is not None:
            check_count("clusters", self.clusters)
        check_size("l2", self.l2)
        self._check_votes()

    def _check_votes(self) -> None:
        """Also before predicting: these may change after the fit."""
        check_count("voters", self.voters)
        check_size("sharpness", self.sharpness, zero=True)


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


def label_similarities(Y: Any, count: int) -> Any:
    """Cosines between the label vectors of rows, where one is among the other's nearest.

    Parameters
    ----------
    Y
        [rows, labels] CSR, every row with a label
    count
        how many nearest each row has, itself among them; rows that share no label are not near

    Returns
    -------
    similarities
        [rows, rows] symmetric CSR with sorted indices and a full diagonal
    """
    unit = unit_rows(Y)
    rows = unit.shape[0]
    count = min(count, rows)
    transposed = unit.T.tocsr()
    parts = []
    for block in blocks(rows, rows):
        cosines = (unit[block] @ transposed).toarray()
        own = (np.arange(len(cosines)), np.arange(rows)[block])
        cosines[own] = np.inf  # first, whatever the rounding and however many are alike
        near = best_columns(cosines, count)
        cosines[own] = 1.0
        values = np.take_along_axis(cosines, near, axis=1)
        starts = np.arange(0, values.size + 1, count)
        parts.append(
            sparse.csr_matrix((values.ravel(), near.ravel(), starts), shape=(len(near), rows))
        )
    directed = sparse.vstack(parts, format="csr")
    directed.eliminate_zeros()
    similarities = directed.maximum(directed.T).tocsr()
    similarities.sort_indices()
    return similarities


def singular_value_projection(
    similarities: Any,
    rank: int,
    generator: np.random.Generator,
    *,
    steps: int = 60,
    tol: float = 1e-3,
) -> Array:
    """[rows, rank] embeddings Z that minimise f = ‖P(G − Z Zᵀ)‖², P keeping the known entries.

    The singular value projection of Jain, Meka and Dhillon (2010) for symmetric matrices: a step
    along the gradient, M + η P(G − M) with M = Z Zᵀ, and back to the nearest positive semidefinite
    matrix of the rank, by its largest eigenvalues. M is never formed. Steps that do not lower f
    are taken back and halved (η ≤ 1 lowers it unless M is at rest, but larger ones often do too,
    and far more), so f falls in every step that counts.

    The eigenvectors are sought in the span of Z, P(G − M) Z and a few random directions: the span
    keeps getting better from step to step, and a full decomposition a step would take most of the
    time.

    Parameters
    ----------
    similarities
        [rows, rows] symmetric CSR with sorted indices: G at the entries that are known
    rank
        columns of Z; those beyond the number of positive eigenvalues are 0
    generator
        of the random directions
    steps
        most steps
    tol
        a step that lowers f by less than this part of it is the last
    """
    rows = similarities.shape[0]
    rank = min(rank, rows)
    starts, columns = (x.astype(np.int64) for x in (similarities.indptr, similarities.indices))
    residual = similarities.copy()
    Z = np.zeros((rows, rank))
    loss, step = float(np.square(residual.data).sum()), 1.0
    basis = _leading_directions(residual, min(rows, rank + FRESH), generator)
    for _ in range(steps):
        candidate = _projected(Z, residual, step, basis)
        difference = similarities.data - _inner_products(starts, columns, candidate)
        candidate_loss = float(np.square(difference).sum())
        if not candidate_loss < loss:
            step *= SHRINKAGE
            if step < 0.1:  # the steps that always help do not: M is at rest
                break
            continue
        gain, loss = 1 - candidate_loss / loss, candidate_loss
        Z, residual.data = candidate, difference
        if gain < tol:
            break
        step *= GROWTH
        fresh = generator.standard_normal((rows, FRESH))
        basis = _orthonormal(np.hstack([Z, residual @ np.hstack([Z, fresh])]))
    return Z


def _projected(Z: Array, residual: Any, step: float, basis: Array) -> Array:
    """Z Zᵀ + step · residual on the span of the basis, cut to its largest eigenvalues: its root."""
    inside = basis.T @ Z
    small = inside @ inside.T + step * (basis.T @ (residual @ basis))
    values, vectors = np.linalg.eigh((small + small.T) / 2)
    width = Z.shape[1]
    values, vectors = values[::-1][:width], vectors[:, ::-1][:, :width]
    root: Array = basis @ (vectors * np.sqrt(np.maximum(values, 0.0)))
    return root


def _leading_directions(matrix: Any, width: int, generator: np.random.Generator) -> Array:
    """An orthonormal basis near the eigenvectors with the largest |eigenvalues|."""
    basis = _orthonormal(generator.standard_normal((matrix.shape[0], width)))
    for _ in range(FIRST_ROUNDS):
        basis = _orthonormal(matrix @ basis)
    return basis


def _orthonormal(columns: Array) -> Array:
    """[rows, at most columns] an orthonormal basis of the columns' span, up to rounding.

    By the eigenvectors of the columns' inner products: a QR decomposition takes several times as
    long. The second time mends the rounding of the first.
    """
    basis = columns
    for _ in range(2):
        lengths = np.sqrt(np.square(basis).sum(axis=0))
        basis = basis[:, lengths > 0] / lengths[lengths > 0]
        values, vectors = np.linalg.eigh(basis.T @ basis)
        real = values > DEPENDENT * values[-1:]
        basis = basis @ (vectors[:, real] / np.sqrt(values[real]))
    return basis


def _inner_products(starts: Array, columns: Array, Z: Array) -> Array:
    """Z_i · Z_j for the entries i, j of a symmetric pattern, in the order of the pattern."""
    found = np.empty(len(columns))
    inner_products(starts, columns, np.ascontiguousarray(Z), found, torch.get_num_threads())
    return found
