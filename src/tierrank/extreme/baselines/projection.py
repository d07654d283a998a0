"""Embeddings whose inner products match given similarities where these are known."""

from __future__ import annotations

from typing import Any

import numpy as np

from tierrank._native import inner_products

Array = np.ndarray[Any, Any]

GROWTH, SHRINKAGE = 1.5, 0.5  # of the step, after one that helped and one that did not
DEPENDENT = 1e-11  # part of the largest eigenvalue below which a direction is rounding
FRESH = 10  # directions that are new in every step
FIRST_ROUNDS = 6  # of subspace iteration, for the first step: later ones start from the last


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
    import torch

    found = np.empty(len(columns))
    inner_products(starts, columns, np.ascontiguousarray(Z), found, torch.get_num_threads())
    return found
