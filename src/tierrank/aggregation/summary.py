"""How worths are told: on a scale, as log-worths, ratings as in chess or shares of 1; as a table.

A rating is at + factor · (w − w_anchor), so that its interval is that of a difference: the anchor's
own is a point. Without an anchor, the middle of all items is one.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import expit

from tierrank._types import FloatArray, IntArray
from tierrank.errors import Argument, ArgumentError, check_count
from tierrank.names import check_scale
from tierrank.training.covariance import MOST_DENSE, CoefficientTable, reach

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


# -- the ranking as a table, printed or as HTML ---------------------------------------------------

SHOWN_OF_MANY = 20  # items of a table that would otherwise have more than MOST_DENSE rows


class Parameter(NamedTuple):
    """A parameter beside the worths, such as that of ties, with its interval.

    Parameters
    ----------
    name : str
        What it is, as tables call it.
    estimate : float
        Its value.
    standard_error : float
        Of the estimate.
    low, high : float
        Ends of the interval.

    See Also
    --------
    tierrank.PairedTies.parameters : Gives them.

    Examples
    --------
    >>> import tierrank as tr
    >>> games = [("a", "b", 1), ("b", "a", 1), ("a", "b", 0), ("b", "a", 0)]
    >>> (ties,) = tr.PairedTies().fit(games).parameters()
    >>> round(ties.estimate, 3)  # log v: as many ties as wins of either
    0.693
    """

    name: str
    estimate: float
    standard_error: float
    low: float
    high: float


def wald(name: str, estimate: float, error: float, level: float) -> Parameter:
    """With the interval of the normal approximation."""
    margin = reach(level) * error
    return Parameter(name, estimate, error, estimate - margin, estimate + margin)


def parameters_of(table: CoefficientTable, title: str = "{}") -> list[Parameter]:
    """The rows of a table of coefficients, each by a name made of its feature's."""
    columns = (table.coef, table.standard_errors, table.lower, table.upper)
    rows = zip(table.features, *(column.tolist() for column in columns), strict=True)
    return [Parameter(title.format(name), *row) for name, *row in rows]


@dataclass(frozen=True)
class WorthTable:
    """Items, best first, with log-worths, standard errors and intervals; printed, a table.

    Parameters
    ----------
    items : tuple
        [shown] names.
    ranks : ndarray of int
        [shown] places, from 1.
    log_worths, worths : ndarray of float
        [shown] centred log-worths; worths, which over all items sum to 1.
    standard_errors, lower, upper : ndarray of float
        [shown] of the estimates; NaN where there are none.
    level : float
        How often such an interval holds the true value.
    note : str
        What was fitted, in a few lines.
    parameters : tuple of Parameter
        What was estimated beside worths: of ties (on the log scale), of the first side, of
        features.
    coefficients : CoefficientTable, optional
        Those of features with z and p-values; None: there are none.
    of_games : bool
        Whether the fit was one to games: parameters are printed below the items, and no ranks.
    scale : Scale
        On which the table tells worths, log-worths if not asked otherwise.
    estimates : ndarray of float
        [shown] where they are on that scale.

    See Also
    --------
    tierrank.RankAggregator.summary : Gives it.

    Examples
    --------
    >>> import tierrank as tr
    >>> table = tr.RankAggregator().fit([["a", "b"], ["a", "b"], ["b", "a"]]).summary()
    >>> table.items, table.worths.round(3)
    (('a', 'b'), array([0.667, 0.333]))
    """

    items: tuple[Any, ...]
    ranks: IntArray
    log_worths: FloatArray
    worths: FloatArray
    standard_errors: FloatArray
    lower: FloatArray
    upper: FloatArray
    level: float
    note: str
    parameters: tuple[Parameter, ...] = ()
    coefficients: CoefficientTable | None = None
    of_games: bool = False
    scale: Scale = LOG_WORTHS
    estimates: FloatArray = field(default_factory=lambda: np.empty(0))

    def to_html(self) -> str:
        """Make HTML of the table, and of what was estimated beside worths; names are only text.

        Returns
        -------
        str
            Two tables at the most.

        See Also
        --------
        tierrank.RankAggregator.report : A whole page.

        Examples
        --------
        >>> import tierrank as tr
        >>> tr.RankAggregator().fit([["a", "b"], ["b", "a"]]).summary().to_html().count("<table")
        1
        """
        ends = f"{100 * self.level:g}% interval"
        rows = [
            [f"{rank}", f"<bdi>{escape(str(name))}</bdi>", *_estimate(row, self._form), *worth]
            for rank, name, row, worth in self._rows(".4g")
        ]
        note = escape(self.note).replace("\n", "<br>")
        heads = ["rank", "item", escape(self.scale.title), "std err", ends, *self._more]
        found = _html_table(heads, rows, note)
        if self.parameters:
            more = [
                [f"<bdi>{escape(name)}</bdi>", *_estimate(row)] for name, *row in self.parameters
            ]
            found += _html_table(["parameter", "estimate", "std err", ends], more)
        # a notebook would set names in TeX where they hold dollars
        return f'<div class="tex2jax_ignore mathjax_ignore">{found}</div>'

    def __str__(self) -> str:
        tails = (1 - self.level) / 2
        heads = ["rank", "item", self.scale.title, "std err", f"[{tails:.4g}",
                 f"{1 - tails:.4g}]", *self._more]  # fmt: skip
        form = self._form
        cells = [
            [f"{rank}", str(name), *(f"{value:{form}}" for value in row), *worth]
            for rank, name, row, worth in self._rows(".4f" if self.of_games else ".4g")
        ]
        note, _, shown = self.note.partition("\n")
        if self.of_games:
            cells += [["", name, *(f"{value:.4f}" for value in row), *("" for _ in self._more)]
                      for name, *row in self.parameters]  # fmt: skip
            heads, cells = heads[1:], [row[1:] for row in cells]
        lines = text_table([heads, *cells], left=0 if self.of_games else 1)
        if self.coefficients is not None:
            return "\n".join([note, str(self.coefficients), shown or "items", *lines])
        return "\n".join([self.note, *lines])

    __repr__ = __str__

    @property
    def _form(self) -> str:
        """Of numbers on the scale."""
        return {"elo": ".1f", "worth": ".4g"}.get(self.scale.name, ".4f")

    @property
    def _more(self) -> list[str]:
        """Headings beside the scale's own."""
        return [] if self.scale.name == "worth" else ["worth"]

    def _rows(self, form: str) -> Sequence[tuple[int, Any, tuple[float, ...], list[str]]]:
        numbers = zip(self.estimates, self.standard_errors, self.lower, self.upper, strict=True)
        worths = [[f"{worth:{form}}"][: len(self._more)] for worth in self.worths.tolist()]
        return list(zip(self.ranks.tolist(), self.items, numbers, worths, strict=True))


def text_table(rows: Sequence[Sequence[str]], left: int) -> list[str]:
    """Lines of cells in columns, all flush right but one."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if place == left else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _estimate(cells: Sequence[float], form: str = ".4f") -> list[str]:
    """Three cells: an estimate, its standard error, its interval; what is NaN is not there."""
    value, error, low, high = cells
    if error != error:
        return [f"{value:{form}}", "", ""]
    form = form if not error or 1e-3 <= error < 1e4 else ".4g"
    return [f"{value:{form}}", f"{error:{form}}", f"{low:{form}} to {high:{form}}"]


def _html_table(heads: Sequence[str], rows: Sequence[Sequence[str]], caption: str = "") -> str:
    """Cells are markup already."""
    head = "".join(f"<th>{each}</th>" for each in heads)
    body = "".join("<tr>" + "".join(f"<td>{c}</td>" for c in row) + "</tr>\n" for row in rows)
    title = f'<caption style="text-align:left">{caption}</caption>' if caption else ""
    return f"<table>{title}<thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table>\n"


def worth_table(
    fitted: Worths, level: float, top: int | None, scale: Scale = LOG_WORTHS
) -> WorthTable:
    """The table of a fit; standard errors only of the items that are shown, if they are many."""
    reach(level)  # refuses a wrong one
    if top is not None:
        check_count("top", top)
    size = len(fitted.items_)
    if top is None and size > MOST_DENSE:
        top = SHOWN_OF_MANY
    order = fitted._order()[:top]
    here = slice(len(order))
    found = Ratings(*(each[here] for each in _ratings(fitted, order, level, scale)))
    shown = "" if len(order) == size else f"\nthe first {len(order)} of {size:,} items"
    return WorthTable(
        tuple(fitted.items_[number] for number in order),
        np.arange(1, len(order) + 1),
        fitted.log_worths_[order],
        fitted.worths_[order],
        found.standard_error,
        found.low,
        found.high,
        level,
        fitted._note() + shown,
        tuple(fitted.parameters(level)),
        fitted._coefficients(level),
        getattr(fitted, "of_games", False),
        scale,
        found.estimate,
    )


def _ratings(fitted: Worths, order: IntArray, level: float, scale: Scale) -> Ratings:
    """Of the items that are shown, and of the anchor; without errors where the fit has none."""
    if scale.anchor is None and scale.name != "worth":
        return scale.rated(fitted.log_worths_[order], fitted._errors_of(order), level)
    size, items = len(fitted.items_), scale.with_anchor(fitted, order)
    matrix = None
    if size <= MOST_DENSE or len(items) <= MOST_DENSE:  # each is a system of equations of its own
        with suppress(ValueError):
            whole = scale.name == "worth" and size <= MOST_DENSE
            matrix = fitted.covariance(None if whole else [fitted.items_[code] for code in items])
            if whole:
                every = scale.ratings(fitted, np.arange(size), matrix, level)
                return Ratings(*(each[items] for each in every))
    return scale.ratings(fitted, items, matrix, level)
