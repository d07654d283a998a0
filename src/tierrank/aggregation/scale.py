"""The scale on which worths are told: log-worths, ratings as in chess, or shares of 1.

A rating is at + factor · (w − w_anchor), so that its interval is that of a difference: the anchor's
own is a point. Without an anchor, the middle of all items is one.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import expit

from tierrank._types import FloatArray, IntArray
from tierrank.errors import Argument, ArgumentError
from tierrank.names import check_scale
from tierrank.training.covariance import reach

if TYPE_CHECKING:
    from tierrank.aggregation.results import Worths

ELO = 400 / np.log(10)  # points of a log-worth: 400 of them are odds of 10 to 1
_MIDDLE = {"log-worth": 0.0, "elo": 1000.0}


class Ratings(NamedTuple):
    """[items] estimates on a scale, their standard errors, and the ends of intervals.

    What there is none of is NaN.
    """

    estimate: FloatArray
    standard_error: FloatArray
    low: FloatArray
    high: FloatArray


@dataclass(frozen=True)
class Scale:
    """How worths are told.

    Attributes
    ----------
    name
        "log-worth"; "elo", 400 / ln 10 points a log-worth; "worth", the probability to be the
        first of all
    anchor
        the item that stands at `at`; None: the middle of all does
    at
        0 of log-worths and 1000 of ratings, if not given
    """

    name: str = "log-worth"
    anchor: Any = None
    at: float = 0.0

    @property
    def title(self) -> str:
        """What a column or an axis of it is called."""
        return "rating" if self.name == "elo" else self.name

    @property
    def explained(self) -> str:
        """The same with where it begins."""
        if self.name == "worth":
            return "worth (probability to be the first of all)"
        if self.anchor is None:
            return f"{self.title} ({self.at:,.6g} is the average item)"
        return f"{self.title} ({self.anchor} is {self.at:,.6g})"

    @property
    def factor(self) -> float:
        """Points of a log-worth."""
        return ELO if self.name == "elo" else 1.0

    def ratings(
        self, fitted: Worths, items: IntArray, matrix: FloatArray | None, level: float
    ) -> Ratings:
        """Of some items of a fit.

        Parameters
        ----------
        fitted
            whose items they are
        items
            numbers of them; the anchor is one, if there is one
        matrix
            [items, items] covariance of their centred log-worths; None: there is none
        level
            how often an interval holds the true value
        """
        reached = reach(level)
        w = fitted.log_worths_[items]
        none = np.full(len(w), np.nan)
        if self.name == "worth":
            worths = fitted.worths_[items]
            if matrix is None or len(items) < len(fitted.items_):  # it takes the sum of all
                return Ratings(worths, none, none, none)
            # log worth_i = w_i − lse(w), whose gradient is e_i − worths
            along = matrix @ worths
            relative = np.sqrt(np.maximum(np.diag(matrix) - 2 * along + worths @ along, 0))
            # by log-odds, whose ends are probabilities: ∂ log-odds / ∂ log worth = 1 / (1 − worth)
            miss = np.maximum(1 - worths, np.finfo(float).tiny)
            odds, margin = np.log(worths) - np.log(miss), reached * relative / miss
            return Ratings(worths, worths * relative, expit(odds - margin), expit(odds + margin))
        variance = none if matrix is None else np.diag(matrix)
        if self.anchor is not None:
            place = int(np.flatnonzero(items == fitted._codes([self.anchor])[0])[0])
            w = w - w[place]
            if matrix is not None:
                variance = variance + matrix[place, place] - 2 * matrix[:, place]
                variance[place] = 0.0
        return self.rated(w, np.sqrt(np.maximum(variance, 0)), level)

    def rated(self, log_worths: FloatArray, errors: FloatArray, level: float) -> Ratings:
        """Of log-worths beside the anchor's, or the average, and their standard errors."""
        estimate, error = self.at + self.factor * log_worths, self.factor * errors
        margin = reach(level) * error
        return Ratings(estimate, error, estimate - margin, estimate + margin)

    def with_anchor(self, fitted: Worths, items: IntArray) -> IntArray:
        """These items, and the anchor if it is not among them."""
        if self.anchor is None:
            return items
        code = fitted._codes([self.anchor])
        return items if code[0] in items else np.concatenate([items, code])


LOG_WORTHS = Scale()


def scale_from(name: str | Scale, anchor: Any = None) -> Scale:
    """The scale that a user means.

    Parameters
    ----------
    name
        "log-worth", "elo" or "worth"
    anchor
        an item, or an item and where it stands, as in ``{"ann": 1200}``
    """
    if isinstance(name, Scale):
        return name
    check_scale(name)
    if name == "worth":
        if anchor is not None:
            raise ArgumentError(
                Argument("anchor"), ": worths sum to 1 and have none. It is for ",
                Argument("scale", "elo"), " and log-worths",
            )  # fmt: skip
        return Scale(name)
    at: Any = _MIDDLE[name]
    if isinstance(anchor, Mapping):
        if len(anchor) != 1:
            raise ArgumentError(Argument("anchor"), f" is one item, not {len(anchor)}")
        [(anchor, at)] = anchor.items()
    if not isinstance(anchor, Hashable):
        raise ArgumentError(
            Argument("anchor"), f" is {anchor!r}: give an item, or one with its rating in a mapping"
        )
    if isinstance(at, bool) or not isinstance(at, int | float | np.number) or not np.isfinite(at):
        raise ArgumentError(Argument("anchor"), f" stands at {at!r}: give a finite number")
    return Scale(name, anchor, float(at))
