"""SLEEC: local embeddings that keep near label vectors near, and votes of nearest neighbours."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from tierrank.extreme.baselines.clusters import spherical_clusters
from tierrank.extreme.baselines.inputs import checked_k, checked_labels, prepared
from tierrank.extreme.baselines.local_embedding import Learner, LocalEmbedding
from tierrank.extreme.baselines.top_labels import best_of_sparse
from tierrank.training import Progress, Watch
from tierrank.training.settings import check_count, check_size, seed_from

Array = np.ndarray[Any, Any]

ROWS_A_CLUSTER = 4000  # where the number of clusters is not given
ROWS_AT_ONCE = 1024  # in prediction: their votes are held together


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
    >>> from tierrank.extreme.baselines import Sleec
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
