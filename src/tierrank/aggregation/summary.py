"""The ranking as a table, printed or as HTML."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tierrank._types import FloatArray, IntArray
from tierrank.training.covariance import MOST_DENSE, CoefficientTable, reach
from tierrank.training.settings import check_count

if TYPE_CHECKING:
    from tierrank.aggregation.results import Worths

SHOWN_OF_MANY = 20  # items of a table that would otherwise have more than MOST_DENSE rows


class Parameter(NamedTuple):
    """A parameter beside the worths, such as that of ties, with its interval."""

    name: str
    estimate: float
    standard_error: float
    low: float
    high: float


@dataclass(frozen=True)
class WorthTable:
    """Items, best first, with log-worths, standard errors and intervals; printed, a table.

    Attributes
    ----------
    items
        [shown] names
    ranks
        [shown] places, from 1
    log_worths, worths
        [shown] centred log-worths; worths, which over all items sum to 1
    standard_errors, lower, upper
        [shown] of the log-worths; NaN where there are none
    level
        how often such an interval holds the true value
    note
        what was fitted, in a few lines
    parameters
        what was estimated beside worths: of ties (on the log scale), of the first side, of features
    coefficients
        those of features with z and p-values; None: there are none
    of_games
        whether the fit was one to games: parameters are printed below the items, and no ranks
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

    def to_html(self) -> str:
        """The table as HTML, and one of what was estimated beside worths; names are only text."""
        ends = f"{100 * self.level:g}% interval"
        rows = [
            [f"{rank}", f"<bdi>{escape(str(name))}</bdi>", *_estimate(*row), f"{worth:.4g}"]
            for rank, name, row, worth in self._rows()
        ]
        note = escape(self.note).replace("\n", "<br>")
        found = _html_table(["rank", "item", "log-worth", "std err", ends, "worth"], rows, note)
        if self.parameters:
            more = [
                [f"<bdi>{escape(name)}</bdi>", *_estimate(*row)] for name, *row in self.parameters
            ]
            found += _html_table(["parameter", "estimate", "std err", ends], more)
        # a notebook would set names in TeX where they hold dollars
        return f'<div class="tex2jax_ignore mathjax_ignore">{found}</div>'

    def __str__(self) -> str:
        tails = (1 - self.level) / 2
        heads = ["rank", "item", "log-worth", "std err", f"[{tails:.4g}", f"{1 - tails:.4g}]",
                 "worth"]  # fmt: skip
        form = ".4f" if self.of_games else ".4g"
        cells = [
            [f"{rank}", str(name), *(f"{value:.4f}" for value in row), f"{worth:{form}}"]
            for rank, name, row, worth in self._rows()
        ]
        note, _, shown = self.note.partition("\n")
        if self.of_games:
            cells += [["", name, *(f"{value:.4f}" for value in row), ""]
                      for name, *row in self.parameters]  # fmt: skip
            heads, cells = heads[1:], [row[1:] for row in cells]
        lines = text_table([heads, *cells], left=0 if self.of_games else 1)
        if self.coefficients is not None:
            return "\n".join([note, str(self.coefficients), shown or "items", *lines])
        return "\n".join([self.note, *lines])

    __repr__ = __str__

    def _rows(self) -> Sequence[tuple[int, Any, tuple[float, float, float, float], float]]:
        numbers = zip(self.log_worths, self.standard_errors, self.lower, self.upper, strict=True)
        return list(
            zip(self.ranks.tolist(), self.items, numbers, self.worths.tolist(), strict=True)
        )


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


def _estimate(value: float, error: float, low: float, high: float) -> list[str]:
    """Three cells: an estimate, its standard error, its interval; what is NaN is not there."""
    if error != error:
        return [f"{value:.4f}", "", ""]
    form = ".4f" if 1e-3 <= error < 1e4 else ".4g"
    return [f"{value:{form}}", f"{error:{form}}", f"{low:{form}} to {high:{form}}"]


def _html_table(heads: Sequence[str], rows: Sequence[Sequence[str]], caption: str = "") -> str:
    """Cells are markup already."""
    head = "".join(f"<th>{each}</th>" for each in heads)
    body = "".join("<tr>" + "".join(f"<td>{c}</td>" for c in row) + "</tr>\n" for row in rows)
    title = f'<caption style="text-align:left">{caption}</caption>' if caption else ""
    return f"<table>{title}<thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table>\n"


def worth_table(fitted: Worths, level: float, top: int | None) -> WorthTable:
    """The table of a fit; standard errors only of the items that are shown, if they are many."""
    reached = reach(level)
    if top is not None:
        check_count("top", top)
    size = len(fitted.items_)
    if top is None and size > MOST_DENSE:
        top = SHOWN_OF_MANY
    order = fitted._order()[:top]
    errors = fitted._errors_of(order)
    estimate = fitted.log_worths_[order]
    margin = reached * errors
    shown = "" if len(order) == size else f"\nthe first {len(order)} of {size:,} items"
    return WorthTable(
        tuple(fitted.items_[number] for number in order),
        np.arange(1, len(order) + 1),
        estimate,
        fitted.worths_[order],
        errors,
        estimate - margin,
        estimate + margin,
        level,
        fitted._note() + shown,
        tuple(fitted.parameters(level)),
        fitted._coefficients(level),
        getattr(fitted, "of_games", False),
    )
