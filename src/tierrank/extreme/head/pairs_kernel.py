"""Sums over the pairs of what lists name with a block of labels, compiled for the CPU."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numba.extending import register_jitable

from tierrank.compilation import compiled, digest
from tierrank.losses.pairwise import compiled as list_pairs
from tierrank.losses.pairwise.compiled import OPTIONS, along_row, rao_kupper_win
from tierrank.plackett_luce.kernels import elementary
from tierrank.plackett_luce.kernels.elementary import ELEMENTWISE

SOURCES = digest([Path(__file__), Path(list_pairs.__file__), Path(elementary.__file__)])
jit = partial(compiled, sources=SOURCES, nogil=True, error_model="numpy", fastmath=ELEMENTWISE)

COLUMNS = 1024  # labels whose slopes stay in the cache while all that a list names goes by


@register_jitable(**OPTIONS)
def hinge(own, other, margin):
    """max(0, margin + x) with x = w_j − w_i, and its slope, which is 0 at the corner."""
    reach = (other - own) + margin
    nothing = own - own
    loss = max(reach, nothing)
    slope = nothing + (reach > nothing)
    return loss, slope, nothing


def over_block(pair: Callable[..., Any]) -> Callable[..., Any]:
    """Compile the sums over pairs of this kind."""

    def sums(named, borders, scores, counts, parameter, lo, hi, loss, slope, out):
        """Pairs of the lists lo … hi − 1, whose labels named[borders[i] : borders[i + 1]] come up
        against scores[i], the j-th of which counts counts[j] times.

        `loss` is set by list and `slope` by what is named; `out`, if it has rows, to the slopes of
        the block's labels.
        """
        width = scores.shape[1]
        pull = np.empty(COLUMNS, scores.dtype)
        at = scores.dtype.type(parameter)
        for i in range(lo, hi):
            loss[i] = 0.0
            for a in range(borders[i], borders[i + 1]):
                slope[a] = 0.0
            for left in range(0, width, COLUMNS):
                right = min(left + COLUMNS, width)
                others = scores[i, left:right]
                pull[:] = 0
                for a in range(borders[i], borders[i + 1]):
                    part = along_row(pair, named[a], others, counts[left:right], at, pull)
                    loss[i] += part[0]
                    slope[a] -= part[1]
                if len(out):
                    out[i, left:right] = pull[: right - left]

    sums.__qualname__ = f"{pair.__name__}s_of_block"
    return jit(sums)


logistic_sums = over_block(rao_kupper_win)
hinge_sums = over_block(hinge)
