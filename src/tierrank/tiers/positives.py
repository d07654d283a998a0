"""Tiers from a sparse matrix of positives: what is set, over all the rest."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from tierrank.tiers.arrays import AnyArray, IntArray, Parts, device_of, list_of_entry, offsets


def parts_from_positives(matrix: Any) -> Parts:
    """Build the fields of `Tiers.from_positives`, which says what the argument means."""
    csr = _canonical_csr(matrix)
    n_lists, n_items = csr.shape
    if n_lists and not n_items:
        raise ValueError("the matrix has no columns: there are no items to rank.")
    row_offsets = csr.indptr.astype(np.int64)
    columns = csr.indices.astype(np.int64)  # a copy, always: the matrix remains the user's
    values: AnyArray = csr.data
    _check_values(values, columns, row_offsets)
    if not values.all():
        positive = values != 0
        row_offsets = offsets(np.bincount(list_of_entry(row_offsets)[positive], minlength=n_lists))
        columns = columns[positive]
    # One tier for every row that has a positive, so their starts are the tiers' borders.
    has_positive = np.diff(row_offsets) > 0
    return Parts(
        items=columns,
        tier_offsets=np.append(row_offsets[:-1][has_positive], len(columns)),
        list_offsets=offsets(has_positive),
        n_items=int(n_items),
        rest=True,
        device=device_of(matrix),
    )


def _canonical_csr(matrix: Any) -> Any:
    """Rows of sorted columns, each stored once; a new matrix unless it is so already."""
    from scipy import sparse  # takes a while to import, so only where it is used

    if isinstance(matrix, Tensor) and matrix.layout != torch.strided:
        matrix = _from_torch(matrix, sparse)
    if not sparse.issparse(matrix):
        raise ValueError(
            f"from_positives takes a sparse matrix, not {type(matrix).__name__}: "
            "wrap a dense one in scipy.sparse.csr_array(matrix)."
        )
    if matrix.ndim != 2:
        raise ValueError(f"the matrix must be [lists, items], not of shape {matrix.shape}.")
    if matrix.dtype.kind not in "biuf":
        raise ValueError(f"the matrix must hold real numbers or booleans, not {matrix.dtype}.")
    if matrix.format == "csr" and matrix.has_canonical_format:
        return matrix
    # Widened, or the sum of what is stored twice could overflow and seem negative; and not by
    # astype, which first sums what is stored twice, slowly, in the matrix of the user.
    wide = np.result_type(matrix.dtype, np.int64)
    if matrix.format in ("csr", "csc"):
        csr = matrix.tocsr(copy=True)
        csr.data = csr.data.astype(wide)
    else:
        coo = matrix.tocoo()
        csr = sparse.csr_array((coo.data.astype(wide), (coo.row, coo.col)), shape=matrix.shape)
    csr.sum_duplicates()
    return csr


def _from_torch(tensor: Tensor, sparse: Any) -> Any:
    shape = tuple(tensor.shape)
    tensor = tensor.detach().cpu()
    if tensor.dtype in (torch.bfloat16, torch.float16):  # not known to numpy, or to scipy
        tensor = tensor.float()
    if tensor.layout == torch.sparse_coo and tensor.dense_dim() == 0 and tensor.dim() == 2:
        index = tensor._indices().numpy()  # as stored: scipy sums what is stored twice
        return sparse.coo_array((tensor._values().numpy(), (index[0], index[1])), shape=shape)
    if tensor.layout == torch.sparse_csr and tensor.dim() == 2:
        pieces = (tensor.values(), tensor.col_indices(), tensor.crow_indices())
        return sparse.csr_array(tuple(piece.numpy() for piece in pieces), shape=shape)
    if tensor.layout == torch.sparse_csc and tensor.dim() == 2:
        pieces = (tensor.values(), tensor.row_indices(), tensor.ccol_indices())
        return sparse.csc_array(tuple(piece.numpy() for piece in pieces), shape=shape)
    raise ValueError(
        f"a sparse tensor with layout {tensor.layout} and shape {shape} is not a sparse "
        "[lists, items] matrix: convert it with .to_sparse_csr()."
    )


def _check_values(values: AnyArray, columns: IntArray, row_offsets: IntArray) -> None:
    if values.dtype.kind in "bu" or not len(values):
        return
    if values.min() >= 0 and np.isfinite(values.max()):  # false for NaN as well
        return
    at = int(np.argmax(~((values >= 0) & np.isfinite(values))))
    row = int(np.searchsorted(row_offsets, at, side="right")) - 1
    raise ValueError(
        f"row {row}, column {columns[at]}: the value is {values[at]}. A positive must be a "
        "finite number above zero: drop the entry, or mark it as you mean it."
    )
