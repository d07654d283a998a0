"""LEML: scores of low rank, fitted to all entries of the label matrix by squared loss.

Below it stands what it shares with SLEEC: checked input, least squares, the best labels of rows.
"""

from __future__ import annotations

import operator
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from tierrank._types import AnyArray as Array
from tierrank.errors import check_count, check_size
from tierrank.training import Progress, Watch
from tierrank.training.progress import seed_from

LARGEST = 1e100  # the squares of larger features may not be finite
BLOCK = 2**22  # scores held at once


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
    >>> from leml import Leml
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


class RidgeSolver:
    """Solves (s_j XᵀX + λ) v_j = b_j for all columns j together.

    Only products with X are formed, never XᵀX: time and memory go with the non-zeros of X and
    with features × columns. Each column has steps of its own, so that it ends as early as it would
    alone, and one product with X serves them all. The diagonal preconditions, because features
    that most rows have stand beside features that few have.

    Parameters
    ----------
    X
        [rows, features] CSR, float64
    l2
        λ, above 0
    """

    def __init__(self, X: Any, l2: float) -> None:
        self.X = X
        self.transposed = X.T.tocsr()  # products by rows of either are the fast ones
        self.l2 = l2
        self._squares = np.asarray(X.multiply(X).sum(axis=0)).reshape(-1, 1)

    def solve(
        self,
        right: Array,
        *,
        scales: Array | float = 1.0,
        start: Array | None = None,
        tol: float = 1e-6,
        max_steps: int = 200,
    ) -> Array:
        """[features, columns] the solutions.

        Parameters
        ----------
        right
            [features, columns] b
        scales
            [columns] s, not negative
        start
            [features, columns] where to begin; 0 without
        tol
            a column ends when its residual is at most this part of its b
        max_steps
            most steps. Every one of them lowers the quadratic whose minimum is sought, so that
            fewer than convergence takes are still an improvement on `start`.
        """
        solution = np.zeros_like(right) if start is None else start.copy()
        residual = right - self._product(solution, scales) if start is not None else right.copy()
        enough = tol * np.linalg.norm(right, axis=0)
        diagonal = self._squares * scales + self.l2
        direction = residual / diagonal
        size = (residual * direction).sum(axis=0)
        for _ in range(max_steps):
            going = np.linalg.norm(residual, axis=0) > enough
            if not going.any():
                break
            image = self._product(direction, scales)
            curvature = (direction * image).sum(axis=0)
            going &= curvature > 0  # or the direction is 0 but for rounding
            step = np.divide(size, curvature, out=np.zeros_like(size), where=going)
            solution += step * direction
            residual -= step * image
            preconditioned = residual / diagonal
            previous, size = size, (residual * preconditioned).sum(axis=0)
            turn = np.divide(size, previous, out=np.zeros_like(size), where=going)
            direction = preconditioned + turn * direction
        return solution

    def _product(self, columns: Array, scales: Array | float) -> Array:
        product: Array = self.transposed @ (self.X @ columns)
        return product * scales + self.l2 * columns


def checked_labels(Y: Any, rows: int) -> Any:
    """[rows, labels] CSR of 1.0 where a row has a label: where Y has anything but 0.

    Y itself is not changed.
    """
    if not sparse.issparse(Y) and getattr(Y, "ndim", 2) != 2:
        raise ValueError(f"Y is [rows, labels], best a scipy sparse matrix, not {Y.ndim}-D")
    Y = sparse.csr_matrix(check_array(Y, accept_sparse="csr", input_name="Y"), copy=True)
    if Y.shape[0] != rows:
        raise ValueError(f"Y has {Y.shape[0]:,} rows, but X has {rows:,}: give one for each")
    Y.sum_duplicates()
    Y.eliminate_zeros()
    Y.data = np.ones(Y.nnz)
    if Y.nnz == 0:
        raise ValueError("there is nothing to learn: no row of Y has a label")
    return Y


def checked_k(k: Any, labels: int) -> int:
    """How many labels a row are wanted."""
    check_count("k", k)
    number = operator.index(k)
    if number > labels:
        raise ValueError(f"k is {number}, but the model knows {labels} labels: ask for fewer")
    return number


def prepared(X: Any, *, normalize: bool, intercept: bool) -> Any:
    """X as CSR float64: rows of length 1 if wished, and then a column of ones if wished."""
    rows = sparse.csr_matrix(X, dtype=np.float64)
    if rows.nnz and max(rows.data.max(), -rows.data.min()) > LARGEST:
        raise ValueError(f"X has values beyond {LARGEST:g}: scale the features")
    if normalize:
        rows = unit_rows(rows)
    if intercept:
        ones = sparse.csr_matrix(np.ones((rows.shape[0], 1)))
        rows = sparse.hstack([rows, ones], format="csr")
    return rows


def unit_rows(rows: Any) -> Any:
    """A CSR matrix with each row divided by its length; empty rows stay as they are."""
    lengths = np.sqrt(np.asarray(rows.multiply(rows).sum(axis=1)).ravel())
    scale = np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0)
    return sparse.csr_matrix(sparse.diags_array(scale) @ rows)


def blocks(rows: int, columns: int) -> list[slice]:
    """Slices of rows, so that rows × columns of one are about `BLOCK` numbers, 1 row at least."""
    height = max(1, BLOCK // max(1, columns))
    return [slice(begin, min(begin + height, rows)) for begin in range(0, rows, height)]


def best_columns(scores: Array, k: int) -> Array:
    """[rows, k] columns with the highest scores, best first.

    Of equal ones that are found, the first is first; which are found at the k-th rank is open.
    """
    if k < scores.shape[1]:
        found = np.sort(np.argpartition(scores, -k, axis=1)[:, -k:], axis=1)
    else:
        found = np.broadcast_to(np.arange(scores.shape[1]), scores.shape)
    order = np.argsort(-np.take_along_axis(scores, found, axis=1), axis=1, kind="stable")
    return np.take_along_axis(found, order, axis=1)


def best_of_products(left: Array, right: Array, k: int) -> tuple[Array, Array]:
    """[rows, k] columns of left · rightᵀ with the highest numbers, best first, and these.

    Parameters
    ----------
    left
        [rows, rank]
    right
        [labels, rank]
    k
        at most the number of labels
    """
    labels = np.empty((len(left), k), dtype=np.int64)
    scores = np.empty((len(left), k))
    for block in blocks(len(left), len(right)):
        product = left[block] @ right.T
        labels[block] = best_columns(product, k)
        scores[block] = np.take_along_axis(product, labels[block], axis=1)
    return labels, scores


def best_of_sparse(scores: Any, k: int, frequency: Array) -> tuple[Array, Array]:
    """[rows, k] labels with the highest scores, best first, and these; scores are not negative.

    Of equal scores the more frequent label is first, and labels without a score have 0: a row with
    fewer than k scores goes on with the labels that are most frequent of all.

    Parameters
    ----------
    scores
        [rows, labels] scipy sparse
    k
        at most the number of labels
    frequency
        [labels] how many rows have each
    """
    rows = scores.shape[0]
    frequent = np.argsort(-frequency, kind="stable")
    rank = np.empty_like(frequent)
    rank[frequent] = np.arange(len(frequent))
    # every row gets the k most frequent labels, with 0 if they had no score: enough to fill it up
    given = scores.tocoo()
    row = np.concatenate([given.row, np.repeat(np.arange(rows), k)])
    label = np.concatenate([given.col, np.tile(frequent[:k], rows)])
    value = np.concatenate([given.data, np.zeros(rows * k)])
    filled = sparse.coo_array((value, (row, label)), shape=scores.shape).tocsr()
    row = np.repeat(np.arange(rows), np.diff(filled.indptr))
    order = np.lexsort((rank[filled.indices], -filled.data, row))
    chosen = order[filled.indptr[:-1, None] + np.arange(k)]
    return filled.indices[chosen].astype(np.int64), filled.data[chosen]
