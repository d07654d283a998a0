"""The page of an aggregation: one HTML file that needs nothing but a browser.

`templates/page.html` is the page; beside it are its sections, its style and its script.
A policy in it forbids the browser to fetch anything. All text is escaped as it enters the page.
"""

from __future__ import annotations

import base64
import hashlib
import platform
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tierrank.report import content
from tierrank.report.content import (
    AggregationPage,
    Axis,
    ConnectivityFacts,
    ConvergenceFacts,
    ItemRow,
    axis_of,
    decimals_of,
    number,
    percent,
    share,
)
from tierrank.storage import replace_file

if TYPE_CHECKING:
    from jinja2 import Environment

__all__ = [
    "AggregationPage",
    "ConnectivityFacts",
    "ConvergenceFacts",
    "ItemRow",
    "page_html",
    "write_page",
]

MOST_ITEMS = 10_000  # of the table
MOST_DRAWN = 2_000
DRAWN_AT_ONCE = 50
MOST_PAIRED = 30
MOST_POINTS = 400  # of the objective's curve
_DOTTED = 40  # up to so many steps each has a dot
_TIERS = {"tiers_at_once": 12, "names_at_once": 24, "most_names": 2_000, "most_bars": 300}
_MOST_CHARACTERS = 34  # of the names' column; longer ones take two lines

# A browser drops or replaces these, and a lone surrogate cannot be written as UTF-8.
_UNWRITABLE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]"
)


def write_page(page: AggregationPage, path: str | Path, *, made: datetime | None = None) -> Path:
    """Write the page, whole or not at all; gives the path.

    Parameters
    ----------
    page
        what to show
    path
        of the file; its folder is made where it is missing
    made
        the date on the page; now, if not given
    """
    path = Path(path)
    replace_file(path, page_html(page, made=made).encode("utf-8"))
    return path


def page_html(page: AggregationPage, *, made: datetime | None = None) -> str:
    """The page as text: HTML with its style, its script and its plots inside."""
    environment = _environment()
    script = _as_it_is(environment, "page.js")
    tiers = _tiers(page)
    pairs = [] if page.pairwise is None else page.pairwise[:MOST_PAIRED, :MOST_PAIRED].tolist()
    return environment.get_template("page.html").render(
        page=page,
        data=page.connectivity,
        fit=page.convergence,
        level=f"{100 * page.level:g}",
        outline=_outline(page, len(pairs)),
        plots=_plots(page, tiers),
        columns=_columns(page),
        most_items=MOST_ITEMS,
        pairs=pairs,
        tiers=tiers,
        cuts=None if page.cut_probabilities is None else [*map(float, page.cut_probabilities)],
        **_TIERS,
        curve=_curve(page.convergence.history),
        made=made or datetime.now(UTC),
        version=version,
        python=platform.python_version(),
        style=_as_it_is(environment, "page.css"),
        script=script,
        policy=_policy(script),
    )


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("tierrank.report"),
        autoescape=True,
        finalize=_writable,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    filters = (
        "number", "significant", "digits", "amount", "percent", "counted", "share", "duration",
    )  # fmt: skip
    environment.filters.update({name: getattr(content, name) for name in filters})
    environment.filters["whole"] = "{:,}".format
    environment.filters["exact"] = lambda value: "" if value is None else repr(float(value))
    return environment


def _writable(value: Any) -> Any:
    return _UNWRITABLE.sub("\ufffd", value) if type(value) is str else value


def _as_it_is(environment: Environment, name: str) -> str:
    """A file beside the templates that is none: what it holds is no text from outside."""
    from markupsafe import Markup

    assert environment.loader is not None
    return Markup(environment.loader.get_source(environment, name)[0])


def _policy(script: str) -> str:
    """Nothing is fetched, and no script runs but ours: not even one hidden in an item's name."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; "
        "base-uri 'none'; form-action 'none'"
    )


class _Section(NamedTuple):
    """A part of the page under its heading, from the macro of its name.

    On a large screen its `shape` is "wide" (the whole width), "half", or "tall" (half the width,
    and as high as two halves beside it).
    """

    name: str
    heading: str
    shape: str = "half"


def _outline(page: AggregationPage, paired: int) -> list[_Section]:
    """The sections that there is something to show in."""
    sections = [_Section("ranking", "Ranking", "wide"), _Section("items", "All items", "wide")]
    if paired > 1:
        shape = "wide" if paired > 12 else "half"
        sections.append(_Section("pairs", "Who stands above whom", shape))
    if page.tiers:
        sections.append(_Section("tiers", "Tiers", "tall" if page.tiers > 4 else "half"))
    if page.parameters:
        sections.append(_Section("parameters", "Beside the worths"))
    sections += [_Section("data", "What the data connect"), _Section("fit", "How the fit went")]
    # The last one fills what the others leave of two columns.
    halves = sum(section.shape == "half" for section in sections)
    sections.append(_Section("settings", "Settings and notes", "half" if halves % 2 else "wide"))
    return sections


class _Tier(NamedTuple):
    """Neighbours of the ranking: rows[start:stop]."""

    number: int | None  # None of all items together, where nobody looked for tiers
    place: int  # 1 of the first
    start: int
    stop: int
    shade: float  # how far its colour is from that of the best: 0 to 1


def _tiers(page: AggregationPage) -> list[_Tier]:
    tiers: list[_Tier] = []
    start = 0
    for tier, members in groupby(page.rows, key=lambda row: row.tier):
        stop = start + len(list(members))
        shade = len(tiers) / (page.tiers - 1) if page.tiers > 1 else 0.0
        tiers.append(_Tier(tier, len(tiers) + 1, start, stop, shade))
        start = stop
    return tiers


class _Line(NamedTuple):
    """An item of the plot, and its numbers as text."""

    rank: int
    row: ItemRow
    value: str
    interval: str


@dataclass(frozen=True)
class _Plot:
    """The ranking as people know it from arenas: a name, a dot with its interval, a number.

    Each row is HTML with a small SVG whose coordinates are shares of its width. So text keeps its
    size and dots stay round on any screen, names can be searched, and rows may be of any height.
    """

    lines: Sequence[_Line]
    axis: Axis
    bands: Sequence[tuple[_Tier, Sequence[_Line]]]

    @property
    def goes_beyond(self) -> bool:
        """Whether an interval does not end on the axis."""
        ends = (end for line in self.lines for end in (line.row.low, line.row.high))
        return any(end is not None and not self.axis.holds(end) for end in ends)

    @property
    def style(self) -> str:
        """Widths of the columns, and the ticks' lines as the background that all rows share."""
        grid = []
        for tick, (place, _) in zip(self.axis.ticks, self.axis.labels(), strict=True):
            colour = "var(--zero)" if abs(tick) < 1e-12 else "var(--line)"
            grid.append(f"linear-gradient({colour},{colour}) {share(place)} 0/1px 100% no-repeat")
        widths = {
            "ranks": len(f"{self.lines[-1].rank:,}"),
            "names": min(max(8, *(len(line.row.name) for line in self.lines), 0), _MOST_CHARACTERS),
            "values": max(len(line.value) for line in self.lines),
            "intervals": max(len(line.interval) for line in self.lines),
        }
        sizes = "".join(f"--{name}:{size}ch;" for name, size in widths.items())
        return f"{sizes}--grid:{','.join(grid)}"


def _plots(page: AggregationPage, tiers: Sequence[_Tier]) -> list[_Plot]:
    """The plot; beyond some items, the others unfold, on an axis of their own."""
    whole, last = len(page.rows), min(len(page.rows), MOST_DRAWN)
    # A fold that hides a handful is a nuisance.
    first = whole if whole <= DRAWN_AT_ONCE + 10 else DRAWN_AT_ONCE
    decimals = decimals_of(page.rows)
    lines = [
        _Line(rank, row, number(row.log_worth, decimals), " to ".join(_ends(row, decimals)))
        for rank, row in enumerate(page.rows[:last], start=1)
    ]
    plots = []
    for start, stop in ((0, first), (first, last)):
        if start < stop:
            bands = [
                (tier, lines[max(start, tier.start) : min(stop, tier.stop)])
                for tier in tiers
                if tier.start < stop and start < tier.stop
            ]
            plots.append(_Plot(lines[start:stop], axis_of(page.rows[start:stop]), bands))
    return plots


class _Column(NamedTuple):
    """A column of the table of items."""

    heading: Sequence[str]  # its lines
    value: Callable[[ItemRow], float | None]  # what it is sorted by
    shown: Callable[[ItemRow], Sequence[str]]  # a number, or the two ends of a range
    first_order: str = "descending"  # of the first click


def _columns(page: AggregationPage) -> list[_Column]:
    """The columns for which there are values."""
    decimals = decimals_of(page.rows)
    level = f"{100 * page.level:g}\N{NARROW NO-BREAK SPACE}%"
    columns = [
        _Column(("log-worth",), lambda row: row.log_worth,
                lambda row: [number(row.log_worth, decimals)]),
        _Column((level, "interval"), lambda row: row.low, lambda row: _ends(row, decimals)),
        _Column(("standard", "error"), lambda row: row.standard_error,
                lambda row: [number(row.standard_error, decimals)], "ascending"),
        _Column(("worth, %",), lambda row: row.worth,
                lambda row: [content.significant(100 * row.worth)]),
        _Column(("tier",), lambda row: row.tier, lambda row: [number(row.tier, 0)], "ascending"),
        _Column(("expected", "rank"), lambda row: row.expected_rank,
                lambda row: [number(row.expected_rank, 1)], "ascending"),
        _Column((level, "of ranks"), lambda row: row.rank_low, _rank_ends, "ascending"),
        _Column(("in the", f"top {page.top_k}, %"), lambda row: row.top_k,
                lambda row: [] if row.top_k is None else [percent(row.top_k, 1)]),
    ]  # fmt: skip
    return [each for each in columns if any(each.value(row) is not None for row in page.rows)]


def _ends(row: ItemRow, decimals: int) -> list[str]:
    return [] if row.low is None else [number(row.low, decimals), number(row.high, decimals)]


def _rank_ends(row: ItemRow) -> list[str]:
    return [] if row.rank_low is None else [number(row.rank_low, 0), number(row.rank_high, 0)]


class _Curve(NamedTuple):
    """The objective, step by step, in a box from 0 to 1 whose top is its highest value."""

    first: float
    last: float
    last_change: float
    low: float
    high: float
    steps: int
    points: Sequence[tuple[float, float]]
    dotted: bool


def _curve(history: Sequence[float]) -> _Curve | None:
    """Some of the steps, evenly, the first and last among them; none where there is no curve."""
    values = list(history)
    steps = len(values) - 1
    if steps < 1:
        return None
    low, high = min(values), max(values)
    half = (high / 2 - low / 2) or 1.0  # halves, as the whole may be too large for a float
    shown = min(len(values), MOST_POINTS)
    places = [round(place * steps / (shown - 1)) for place in range(shown)]
    points = [(place / steps, (high / 2 - values[place] / 2) / half) for place in places]
    last_change = abs(values[-1] - values[-2])
    return _Curve(
        values[0], values[-1], last_change, low, high, steps, points, len(values) <= _DOTTED
    )
