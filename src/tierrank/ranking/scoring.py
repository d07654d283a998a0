"""Scores of many rows, in blocks of bounded memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from tierrank.ranking.networks import Array, Scorer
from tierrank.tiers import Tiers
from tierrank.training.batches import dense_rows

NUMBERS_AT_ONCE = 1 << 22
"""Numbers of the widest layer of a block: 16 MB. Attention takes a longer list whole."""


def score_rows(
    scorer: Scorer, X: Any, rows: Array, lengths: Array | None, device: torch.device
) -> Array:
    """[rows] scores, float32, a block at a time.

    Parameters
    ----------
    X
        [rows, features] from `as_float32`
    rows, lengths
        all rows, list by list, and how many each list has; without attention, in any order and None
    """
    most = max(1, NUMBERS_AT_ONCE // scorer.width)
    ends = np.cumsum(lengths) if lengths is not None and scorer.scores_lists else None
    scores = np.empty(len(rows), dtype=np.float32)
    with torch.no_grad():
        for begin, end in _blocks(len(rows), ends, most):
            chosen = rows[begin:end]
            own = None
            if ends is not None and lengths is not None:
                own = lengths[
                    np.searchsorted(ends, begin, "right") : np.searchsorted(ends, end) + 1
                ]
            block = dense_rows(X, torch.from_numpy(chosen)).to(device)
            scores[chosen] = scorer(block, own).cpu().numpy()
    return scores


def list_by_list(tiers: Tiers) -> tuple[Array, Array]:
    """All rows, list by list, and how many each list has."""
    return tiers.rows(slice(None)).numpy(), tiers.lengths.numpy()


def _blocks(rows: int, ends: Array | None, most: int) -> Iterator[tuple[int, int]]:
    """Ranges of at most so many rows, or of one list that is longer, which end where lists end."""
    begin = 0
    while begin < rows:
        end = min(begin + most, rows)
        if ends is not None:
            fits = int(np.searchsorted(ends, end, "right"))
            end = int(ends[fits - 1]) if fits and ends[fits - 1] > begin else int(ends[fits])
        yield begin, end
        begin = end
