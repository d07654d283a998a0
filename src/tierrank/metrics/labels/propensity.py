"""How likely a relevant label is to have been noticed: the model of Jain et al. (2016)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tierrank._types import IntArray
from tierrank.metrics.inputs import FloatArray
from tierrank.metrics.labels.inputs import read_relevant


def inverse_propensity(Y: Any, a: float = 0.55, b: float = 1.5) -> FloatArray:
    """[labels] inverse propensities 1 / p, from the labels of the training data.

        1 / p_l = 1 + C (N_l + b)^−a,   C = (ln N − 1) (b + 1)^a

    for N rows, of which N_l have the label l. It is napkinXC's `Jain_et_al_inverse_propensity`, and
    the repository's `inv_propensity`; both sum the values of Y where this counts rows, which is the
    same for zeros and ones. The values of a and b that results are published with:

    ============================  ====  ===
    data                             a    b
    ============================  ====  ===
    WikiLSHTC-325K, Wikipedia      0.5  0.4
    Amazon                         0.6  2.6
    all others                    0.55  1.5
    ============================  ====  ===

    Parameters
    ----------
    Y
        [rows, labels] scipy sparse matrix or array; what is above zero is relevant. Rows without
        labels count in N. There must be 3 rows or more: for fewer, C is negative.
    a, b
        the model's parameters, above zero

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> from tierrank.metrics import labels
    >>> labels.inverse_propensity(csr_array([[1, 0, 1], [1, 0, 0], [1, 0, 0], [0, 0, 0]]))
    array([1.27958798, 1.51160547, 1.38629436])
    """
    relevant = read_relevant(Y)
    counts = np.bincount(relevant.labels, minlength=relevant.n_labels)
    return inverse_propensity_of_counts(counts, len(relevant.counts), a, b)


def inverse_propensity_of_counts(
    counts: IntArray, rows: int, a: float = 0.55, b: float = 1.5
) -> FloatArray:
    """The same from [labels] the number of rows that have each, of so many rows in all."""
    for name, value in (("a", a), ("b", b)):
        if not 0 < value < math.inf:
            raise ValueError(f"{name} is a number above zero, as 0.55 and 1.5 are, not {value!r}.")
    if rows < 3:
        raise ValueError(
            f"Y has {rows} rows; propensities need 3 or more, and mean little for a few: give the "
            "labels of all training data."
        )
    c = (math.log(rows) - 1) * (b + 1) ** a
    inverse: FloatArray = 1 + c * (counts + b) ** -a
    return inverse
