"""LEML: scores of low rank, fitted to all entries of the label matrix by squared loss."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from tierrank.extreme.baselines.inputs import checked_k, checked_labels, prepared
from tierrank.extreme.baselines.least_squares import RidgeSolver
from tierrank.extreme.baselines.top_labels import best_of_products
from tierrank.training import Progress, Watch
from tierrank.training.settings import check_count, check_size, seed_from

Array = np.ndarray[Any, Any]


class Leml(BaseEstimator):  # type: ignore[misc]
    """Low-rank empirical risk minimisation for multi-label learning (Yu et al., ICML 2014).

    The scores of all labels are X W Hᵀ, and W [features, rank] and H [labels, rank] minimise

        J = ‖Y − X W Hᵀ‖² + λ (‖W‖² + ‖H‖²)

    over all rows × labels entries. They take turns. H has a closed form, one rank × rank system
    for all labels. W is least squares, solved by conjugate gradients. Only products of sparse
    matrices with thin ones are formed, never a matrix of rows × labels: memory goes with
    (rows + features + labels) × rank. J falls with every turn, to a point where neither W nor H
    alone can improve it.

    Rows without labels are left out: they say nothing about the order of labels.

    Parameters
    ----------
    rank
        columns of W and H
    l2
        λ, above 0
    sweeps
        most turns of H and W
    tol
        the fit ends when a sweep lowers J by less than this part of it; 0 goes through all sweeps
    cg_steps
        most conjugate gradient steps a sweep
    normalize
        scale the rows of X to length 1
    intercept
        add a feature that is 1 in every row (after scaling; it is penalised as the others are).
        The published method has neither this nor `normalize`; both help on the data tried.
    random_state
        a seed for where H begins

    Attributes
    ----------
    W_
        [features, rank], with a last row for the intercept if there is one
    H_
        [labels, rank]
    objective_
        [sweeps] J after each sweep
    n_features_in_, n_labels_
        how many features and labels were seen

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_matrix
    >>> from tierrank.extreme.baselines import Leml
    >>> X = csr_matrix(np.repeat(np.eye(3), 4, axis=0))
    >>> Y = csr_matrix(np.repeat([[1, 1, 0, 0, 0], [0, 0, 1, 1, 0], [0, 0, 0, 1, 1]], 4, axis=0))
    >>> model = Leml(rank=3, l2=0.1, random_state=0).fit(X, Y)
    >>> np.sort(model.predict(X[::4], k=2)).tolist()
    [[0, 1], [2, 3], [3, 4]]
    """

    W_: Array
    H_: Array
    objective_: Array
    n_labels_: int

    def __init__(
        self,
        rank: int = 100,
        *,
        l2: float = 3.0,
        sweeps: int = 20,
        tol: float = 1e-4,
        cg_steps: int = 10,
        normalize: bool = True,
        intercept: bool = True,
        random_state: int | None = None,
    ) -> None:
        self.rank = rank
        self.l2 = l2
        self.sweeps = sweeps
        self.tol = tol
        self.cg_steps = cg_steps
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
            called after every sweep with a `tierrank.training.Progress`, whose loss is J / rows
        """
        self._check_settings()
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64)
        Y = checked_labels(Y, X.shape[0])
        told = np.flatnonzero(np.diff(Y.indptr))
        Y = Y[told]
        X = prepared(X[told], normalize=self.normalize, intercept=self.intercept)
        Y_transposed = Y.T.tocsr()
        ridge = RidgeSolver(X, float(self.l2))
        generator = np.random.default_rng(seed_from(self.random_state))
        H = generator.standard_normal((Y.shape[1], self.rank))
        W = np.zeros((X.shape[1], self.rank))
        history: list[float] = []
        for sweep in range(self.sweeps):
            W, H = self._improve_W(ridge, Y @ H, W, H)
            embedded = X @ W
            gram = embedded.T @ embedded
            correlation = Y_transposed @ embedded
            H = np.linalg.solve(gram + self.l2 * np.eye(self.rank), correlation.T).T
            # ‖Y − A Hᵀ‖² = ‖Y‖² − 2 ⟨Yᵀ A, H⟩ + ⟨Aᵀ A, Hᵀ H⟩ with A = X W
            loss = Y.nnz - 2 * (correlation * H).sum() + (gram * (H.T @ H)).sum()
            history.append(float(loss + self.l2 * (np.square(W).sum() + np.square(H).sum())))
            if watch is not None:
                watch(Progress(sweep + 1, self.sweeps, "sweep", history[-1] / len(told)))
            if sweep and history[-2] - history[-1] < self.tol * history[-2]:
                break
        self.W_, self.H_, self.objective_ = W, H, np.array(history)
        self.n_labels_ = Y.shape[1]
        return self

    def _improve_W(self, ridge: RidgeSolver, YH: Array, W: Array, H: Array) -> tuple[Array, Array]:
        """A better W for this H; both turned, which leaves W Hᵀ and the penalty as they are.

        The condition XᵀX W (HᵀH) + λ W = Xᵀ Y H couples the columns of W. With HᵀH = Q diag(s) Qᵀ
        the columns of W Q are independent: s_j XᵀX v_j + λ v_j = (Xᵀ Y H Q)_j.
        """
        scales, turn = np.linalg.eigh(H.T @ H)
        W = ridge.solve(
            ridge.transposed @ (YH @ turn),
            scales=np.maximum(scales, 0.0),
            start=W @ turn,
            max_steps=self.cg_steps,
        )
        return W, H @ turn

    def predict(self, X: Any, k: int = 5, *, return_scores: bool = False) -> Any:
        """[rows, k] labels, best first; with `return_scores` also their [rows, k] scores.

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
        X = prepared(X, normalize=self.normalize, intercept=self.intercept)
        labels, scores = best_of_products(X @ self.W_, self.H_, k)
        return (labels, scores) if return_scores else labels

    def _check_settings(self) -> None:
        for name in ("rank", "sweeps", "cg_steps"):
            check_count(name, getattr(self, name))
        check_size("l2", self.l2)
        check_size("tol", self.tol, zero=True)
