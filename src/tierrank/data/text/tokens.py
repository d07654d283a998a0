"""Small steps through the bytes of a text that ends with a newline; for numba."""

from __future__ import annotations

import numpy as np
from numba.extending import register_jitable

from tierrank.data.text.decimals import OPTIONS


@register_jitable(**OPTIONS)
def is_blank(byte):
    """Blanks and tabs, and the \\r of Windows' line ends; not the newline."""
    return byte == 32 or (byte >= 9 and byte <= 13 and byte != 10)


@register_jitable(**OPTIONS)
def skip_blanks(text, at):
    """Go to the next token, comment or end of line."""
    while is_blank(text[at]):
        at += 1
    return at


@register_jitable(error_model="numpy")
def noted(left, count, entry, start, end):
    """Add a number that is left to Python; the array grows when it must."""
    if count == len(left):
        grown = np.empty((2 * len(left), 3), dtype=np.int64)
        for i in range(count):
            for j in range(3):
                grown[i, j] = left[i, j]
        left = grown
    left[count, 0], left[count, 1], left[count, 2] = entry, start, end
    return left
