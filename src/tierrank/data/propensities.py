"""How likely each place of a page is looked at, from clicks alone: no features, no ranker.

A position-based user clicks row i at place p with probability θ_p r_i. Of n_ip showings c_ip were
clicked, with mean n_ip θ_p r_i. Given the C_i = Σ_p c_ip clicks of a row, each was at place p with
probability

    q_ip = n_ip θ_p / Σ_s n_is θ_s,

whatever r_i is. So with b = log θ, and b_1 = 0,

    log L(b) = Σ_ip c_ip b_p − Σ_i C_i log Σ_p n_ip exp(b_p) − (κ/2) Σ_p (b_{p+1} − b_p)²

is a Plackett-Luce likelihood of the log turned on its side, each click over all other showings of
the same row. It is concave, has no parameters of rows, and so no bias from their number or from
features that cannot say what a row is worth: its slope has mean 0 at the true b. The slopes of rows
are independent, so that with H minus the second derivatives and P those of the penalty,

    Cov(b) = H⁻¹ (n/(n − 1) Σ_i s_i s_iᵀ + P) H⁻¹,   of n rows,

holds for clicks that are no more Poisson than a coin is, and counts what is known by the penalty
alone as uncertain as it says. Of few rows a sum of squares says little; then H stands in its place,
which is right for Poisson clicks and too large for coins.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tierrank._types import AnyArray, FloatArray, IntArray
from tierrank.errors import Argument, ArgumentError

MOST_PLACES = 2_000  # second derivatives are a dense matrix
MOST_STEPS = 100
LONGEST_STEP = 1.0  # of log θ: far from the solution, Newton's would leap
CONVERGED = 1e-9
ROWS_A_PLACE = 5  # from which the squares of their slopes are their variance


@dataclass(frozen=True, eq=False)
class Propensities:
    """How likely each place is looked at, relative to the first, with standard errors.

    They come from `ClickLog.propensities`.

    Parameters
    ----------
    bias : ndarray of float
        [positions] log θ, 0 for the first.
    covariance : ndarray of float
        [positions, positions] of the biases; 0 for the first.

    See Also
    --------
    ClickLog.lists : Weighs clicks by them.

    Examples
    --------
    >>> from tierrank.data import Propensities
    >>> import numpy as np
    >>> found = Propensities(np.log([1.0, 0.5]), np.diag([0.0, 0.04]))
    >>> found.values, found.standard_errors
    (array([1. , 0.5]), array([0. , 0.2]))
    """

    bias: FloatArray
    covariance: FloatArray

    @property
    def values(self) -> FloatArray:
        """[positions] θ, where the largest is 1."""
        return np.asarray(np.exp(self.bias - self.bias.max()))

    @property
    def standard_errors(self) -> FloatArray:
        """[positions] of the biases."""
        return np.asarray(np.sqrt(np.diag(self.covariance)))

    def __repr__(self) -> str:
        shown = ", ".join(f"{value:.3g}" for value in self.values[:10])
        more = ", …" if len(self.bias) > 10 else ""
        return f"Propensities([{shown}{more}])"


def learned(row: IntArray, position: IntArray, click: AnyArray, smoothing: float) -> Propensities:
    """Propensities of the places of a log, by the likelihood above.

    Parameters
    ----------
    row, position, click
        [entries] of a log, those of sessions without a click as well
    smoothing
        κ

    Raises
    ------
    ValueError
        the log does not tell some place from another: no clicked row was shown at both
    """
    if not 0 <= smoothing < np.inf:
        raise ArgumentError(Argument("smoothing"), f" is a number from 0, not {smoothing!r}.")
    clicked = np.bincount(row, click) > 0
    if not clicked.any():
        raise ValueError("nobody clicked: is the column of clicks right?")
    keep = clicked[row]  # a row without a click says nothing here
    places = int(position.max())
    if places > MOST_PLACES:
        raise ValueError(
            f"items were shown at up to {places:,} places, and propensities are learned of "
            f"{MOST_PLACES:,} at most: lists(examined={MOST_PLACES}) leaves out what lies below"
        )
    counts = _Counts(row[keep], position[keep] - 1, click[keep], places)
    counts.check_connected(smoothing)
    steps = np.diff(np.eye(places), axis=0)
    penalty = smoothing * steps.T @ steps
    bias = np.zeros(places)
    for _ in range(MOST_STEPS):
        slopes, hessian = counts.derivatives(bias)
        slope = np.asarray(slopes.sum(0)) - penalty @ bias
        step = np.append(0.0, np.linalg.solve((hessian + penalty)[1:, 1:], slope[1:]))
        bias = bias + np.clip(step, -LONGEST_STEP, LONGEST_STEP)
        if np.abs(step).max() < CONVERGED:
            break
    else:
        raise ValueError("the propensities did not converge: give some smoothing")
    slopes, hessian = counts.derivatives(bias)
    inverse = np.zeros((places, places))
    inverse[1:, 1:] = np.linalg.inv((hessian + penalty)[1:, 1:])
    rows = slopes.shape[0]
    few = rows < ROWS_A_PLACE * places
    squares = hessian if few else rows / (rows - 1) * (slopes.T @ slopes).toarray()
    return Propensities(bias, inverse @ (squares + penalty) @ inverse)


class _Counts:
    """Showings and clicks of rows by place, of which each row has a few."""

    def __init__(self, row: IntArray, place: IntArray, click: AnyArray, places: int) -> None:
        from scipy import sparse

        values, number = np.unique(row, return_inverse=True)
        at, shape = (number.reshape(-1), place), (len(values), places)
        self.shown = sparse.csr_array((np.ones(len(row)), at), shape)
        self.clicks = sparse.csr_array((np.asarray(click, dtype=np.float64), at), shape)
        self.total = np.asarray(self.clicks.sum(1))

    def derivatives(self, bias: FloatArray) -> tuple[Any, FloatArray]:
        """[rows, positions] slopes s_ip = c_ip − C_i q_ip; minus the sum of second derivatives."""
        share = self.shown.multiply(np.exp(bias - bias.max())[None, :]).tocsr()
        share = share.multiply(1 / np.asarray(share.sum(1))[:, None]).tocsr()
        expected = share.multiply(self.total[:, None]).tocsr()
        hessian = np.diag(np.asarray(expected.sum(0))) - (share.T @ expected).toarray()
        return self.clicks - expected, hessian

    def check_connected(self, smoothing: float) -> None:
        """Refuse places that nothing links, and without a penalty those that lie at infinity.

        Whoever was clicked at p and shown at q says that θ_p is not 0 beside θ_q.
        """
        from scipy import sparse
        from scipy.sparse.csgraph import connected_components

        above, among = (self.clicks > 0).astype(np.int8), (self.shown > 0).astype(np.int8)
        links = sparse.block_array([[None, above.T], [among, None]], format="csr")
        strong = smoothing == 0
        number = connected_components(
            links, directed=True, connection="strong" if strong else "weak"
        )[1][: above.shape[1]]
        asked = np.ones(len(number), bool) if strong else np.asarray(self.clicks.sum(0)) > 0
        if (number[asked] == number[asked][0]).all():
            return
        apart = np.flatnonzero(asked & (number != number[asked][0])) + 1
        first = np.flatnonzero(asked)[0] + 1
        if strong:
            raise ValueError(
                f"the log does not bound the propensity of place {apart[0]} beside that of place "
                f"{first}: no row was clicked at one and shown at the other, in both directions, "
                "or by way of other places. Give some smoothing."
            )
        raise ValueError(
            f"the log cannot tell place {apart[0]} from place {first}: no row that was clicked was "
            "shown at both, or at places that lead from one to the other. Give propensities, or "
            'have compare="each" learn biases of places with the scores.'
        )
