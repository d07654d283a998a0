"""The page of an aggregation: one HTML file that needs nothing but a browser.

`templates/page.html` is the page; beside it are its sections, its style and its script.
A policy in it forbids the browser to fetch anything. All text is escaped as it enters the page.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import platform
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache, cached_property
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from xml.etree import ElementTree

import numpy as np

from tierrank._types import FloatArray
from tierrank.report import content
from tierrank.report.content import (
    FEW_GAMES,
    SURE_CUT,
    AggregationPage,
    Axis,
    ConnectivityFacts,
    ConvergenceFacts,
    ItemRow,
    TimeCurves,
    amount,
    axis_of,
    axis_over,
    number,
    percent,
    rating_decimals,
    share,
    significant,
)
from tierrank.storage import replace_file

if TYPE_CHECKING:
    from jinja2 import Environment


__all__ = [
    "AggregationPage",
    "ConnectivityFacts",
    "ConvergenceFacts",
    "ItemRow",
    "Look",
    "page_html",
    "write_page",
]

MOST_PLAIN = 300  # rows of the table that are there without scripts
MOST_PAIRED = 30
MOST_POINTS = 400  # of the objective's curve
MOST_CURVES = 24  # items whose way through time can be drawn
_CURVES_AT_ONCE = 6
_MOMENTS = 5  # periods that are named below them
_DOTTED = 40  # up to so many steps each has a dot
_LIMITS = {"tiers_at_once": 12, "names_at_once": 24, "most_bars": 300, "most_plain": MOST_PLAIN}
_MOST_CHARACTERS = 28  # of the names' column; longer ones take two lines
_ALWAYS = ("rank", "item", "track", "rating")  # columns that are seen at any width
_SPACE = "\N{NARROW NO-BREAK SPACE}"

# A browser drops or replaces these, and a lone surrogate cannot be written as UTF-8.
_UNWRITABLE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]"
)
# What could end the element that data stand in, and two line ends that scripts once stumbled over.
_MARKUP = re.compile("[<>&\u2028\u2029]")


def write_page(
    page: AggregationPage | Mapping[str, AggregationPage],
    path: str | Path,
    *,
    made: datetime | None = None,
    look: Look | None = None,
) -> Path:
    """Write the page, whole or not at all; gives the path.

    Parameters
    ----------
    page
        what to show; or several by name, as tabs
    path
        of the file; its folder is made where it is missing
    made
        the date on the page; now, if not given
    look
        its logo and colour
    """
    path = Path(path)
    replace_file(path, page_html(page, made=made, look=look).encode("utf-8"))
    return path


def page_html(
    page: AggregationPage | Mapping[str, AggregationPage],
    *,
    made: datetime | None = None,
    look: Look | None = None,
) -> str:
    """The page as text: HTML with its style, its script and its plots inside."""
    from markupsafe import Markup

    pages = {"": page} if isinstance(page, AggregationPage) else dict(page)
    if not pages:
        raise ValueError("a page needs at least one ranking")
    views = [_View(each, name, place) for place, (name, each) in enumerate(pages.items())]
    first, look = views[0].page, look or Look()
    environment = page_environment()
    script = _as_it_is(environment, "page.js")
    return environment.get_template("page.html").render(
        title=first.title,
        subtitle=first.subtitle,
        description=_description(first),
        views=views,
        look=look,
        data=Markup(_json({"title": first.title, "views": [view.data() for view in views]})),
        few_games=FEW_GAMES,
        sure_cut=SURE_CUT,
        line_break=Markup(" <br>"),
        always=_ALWAYS,
        **_LIMITS,
        made_at=made or datetime.now(UTC),
        version=version,
        python=platform.python_version(),
        style=_as_it_is(environment, "page.css") + Markup(look.style()),
        script=script,
        policy=_policy(script, look),
    )


@cache
def page_environment() -> Environment:
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
    return environment


def _writable(value: Any) -> Any:
    return _UNWRITABLE.sub("\ufffd", value) if type(value) is str else value


def _as_it_is(environment: Environment, name: str) -> str:
    """A file beside the templates that is none: what it holds is no text from outside."""
    from markupsafe import Markup

    assert environment.loader is not None
    return Markup(environment.loader.get_source(environment, name)[0])


def _policy(script: str, look: Look) -> str:
    """Nothing is fetched, and no script runs but ours: not even one hidden in an item's name."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    images = "img-src data:; " if look.logo else ""
    return (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; {images}"
        "base-uri 'none'; form-action 'none'"
    )


def _description(page: AggregationPage) -> str:
    """The page in a sentence, for those who share it."""
    data = page.connectivity
    best = ", ".join(row.name for row in page.rows[:3])
    return f"{data.items:,} items ranked by {data.lists:,} {data.seen}. First: {best}."


# -- data for the script ---------------------------------------------------------------------------


def _json(value: Any) -> str:
    """JSON that no name can end: signs of markup are escaped. An infinite number is 1e999."""
    if type(value) is float or type(value) is int:  # nearly all there is
        return _json_number(value)
    if isinstance(value, Mapping):
        inside = ",".join(f"{_json(str(key))}:{_json(each)}" for key, each in value.items())
        return f"{{{inside}}}"
    if isinstance(value, str):
        text = json.dumps(_writable(value), ensure_ascii=False)
        return _MARKUP.sub(lambda sign: f"\\u{ord(sign[0]):04x}", text)
    if isinstance(value, bool | None):
        return json.dumps(value)
    if isinstance(value, Iterable):
        return f"[{','.join(map(_json, value))}]"
    return _json_number(value)


def _json_number(value: Any) -> str:
    if value != value:
        return "null"
    if math.isinf(value):
        return "1e999" if value > 0 else "-1e999"
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(float(value))


def _rounded(values: Iterable[float | None]) -> list[float | None]:
    return [None if value is None else float(f"{value:.7g}") for value in values]


def _packed(errors: FloatArray) -> dict[str, Any]:
    """Standard errors above the diagonal, row by row, each in two bytes of their logarithm.

    s = least (most / least)^(k / 65535), whose relative error is below ln(most / least) / 131070:
    4e-5 where the largest is a hundred times the smallest.
    """
    upper = errors[np.triu_indices(len(errors), 1)]
    upper = np.maximum(upper, 1e-12)
    least, most = (float(upper.min()), float(upper.max())) if len(upper) else (1.0, 1.0)
    ratio = math.log(most / least) or 1.0
    steps = np.rint(np.log(upper / least) / ratio * 65535).astype("<u2")
    return {
        "exact": len(errors),
        "least": least,
        "ratio": ratio,
        "errors": base64.b64encode(steps.tobytes()).decode(),
    }


class _Column(NamedTuple):
    """A column of the table."""

    key: str  # of the script's columns, by which it is sorted
    heading: Sequence[str]  # its lines
    kind: str  # its class
    text: Callable[[int, ItemRow], str]  # of a place and a row
    first: str = "descending"  # the order of the first click; "" if it cannot be sorted


class _Band(NamedTuple):
    """Neighbours of the ranking: rows[start:stop]."""

    number: int
    start: int
    stop: int
    shade: float  # how far its colour is from that of the best: 0 to 1


@dataclass(frozen=True)
class _View:
    """A ranking on the page: what its template asks for, and what its script does."""

    page: AggregationPage
    name: str
    place: int
    tiers: list[int] = field(init=False)  # [rows] that are drawn
    provisional: list[bool] = field(init=False)
    decimals: int = field(init=False)
    axis: Axis = field(init=False)

    def __post_init__(self) -> None:
        found = {
            "tiers": self.page.clear_tiers(),
            "provisional": self.page.provisional(),
            "decimals": rating_decimals(self.page.rows),
            "axis": axis_of(self.page.rows),
        }
        for name, value in found.items():
            object.__setattr__(self, name, value)

    @property
    def prefix(self) -> str:
        """Of the ids of its elements, which the whole page shares."""
        return f"v{self.place + 1}-" if self.place else ""

    @property
    def level(self) -> str:
        return f"{100 * self.page.level:g}"

    @property
    def bands(self) -> int:
        return self.tiers[-1]

    @property
    def band_list(self) -> list[_Band]:
        starts = [place for place, tier in enumerate(self.tiers)
                  if not place or tier != self.tiers[place - 1]]  # fmt: skip
        stops = [*starts[1:], len(self.tiers)]
        last = max(1, self.bands - 1)
        return [_Band(place + 1, start, stop, place / last)
                for place, (start, stop) in enumerate(zip(starts, stops, strict=True))]  # fmt: skip

    def has(self, name: str) -> bool:
        """Whether some row has it."""
        return any(getattr(row, name) not in (None, "") for row in self.page.rows)

    @property
    def goes_beyond(self) -> bool:
        """Whether an interval does not end on the axis."""
        ends = (end for row in self.page.rows for end in row.shown[1:])
        return any(end is not None and not self.axis.holds(end) for end in ends)

    @property
    def outline(self) -> list[_Section]:
        """The sections that there is something to show in."""
        page, paired = self.page, len(self.pairs)
        sections = [_Section("ranking", "Ranking", "wide")]
        if len(page.rows) > 1 and page.pair_model is not None:
            sections.append(_Section("pick", "Pick two", "wide", scripted=True))
        if page.curves is not None and len(page.curves.periods) > 1:
            sections.append(_Section("curves", "Through time", "wide"))
        if page.tiers:
            sections.append(_Section("tiers", "Tiers", "wide"))
        if paired > 1:
            shape = "wide" if paired > 12 else "half"
            sections.append(_Section("pairs", "Who stands above whom", shape, link="Pairs"))
        if page.fit_check is not None:
            sections.append(_Section("check", "Does the model fit?", "wide", link="Model check"))
        if page.parameters:
            sections.append(_Section("parameters", "Beside the worths", link="Parameters"))
        sections += [
            _Section("data", "What the data connect", link="Data"),
            _Section("fit", "How the fit went", link="Fit"),
        ]
        # The last one fills what the others leave of two columns.
        halves = sum(section.shape == "half" for section in sections)
        shape = "half" if halves % 2 else "wide"
        return [*sections, _Section("settings", "Settings and notes", shape, link="Settings")]

    @cached_property
    def columns(self) -> list[_Column]:
        """The columns for which there are values."""
        page, level = self.page, f"{self.level}{_SPACE}%"
        games = page.connectivity.seen == "games"
        record = ("won–tied–", "lost") if games else ("above–tied–", "below")

        def plain(name: str, decimals: int) -> Callable[[int, ItemRow], str]:
            return lambda _, row: number(getattr(row, name), decimals)

        columns = [
            _Column("rank", ("rank",), "rank", lambda place, _: f"{place + 1:,}", "ascending"),
            _Column("rank_low", (level, "of ranks"), "ranks", lambda _, row: _ranks(row),
                    "ascending"),
            _Column("name", ("item",), "item", lambda _, row: row.name, "ascending"),
            _Column("group", ("group",), "group", lambda _, row: row.group, "ascending"),
            _Column("track", (), "track", lambda _, row: "", ""),
            _Column("rating", (page.rating_name,), "rating",
                    lambda _, row: number(row.shown[0], self.decimals)),
            _Column("low", (level, "interval"), "interval", lambda _, row: self.ends(row)),
            _Column("games", (page.connectivity.seen,), "games",
                    lambda _, row: "" if row.games is None else amount(row.games)),
            _Column("share", record, "record", lambda _, row: _record(row)),
            _Column("standard_error", ("standard", "error"), "extra",
                    plain("standard_error", content.decimals_of(page.rows)), "ascending"),
            _Column("worth", ("worth, %",), "extra",
                    lambda _, row: significant(100 * row.worth)),
            _Column("tier", ("tier",), "extra",
                    lambda place, _: f"{self.tiers[place]}" if self.bands > 1 else "", "ascending"),
            _Column("expected_rank", ("expected", "rank"), "extra", plain("expected_rank", 1),
                    "ascending"),
            _Column("top_k", ("in the", f"top {page.top_k}, %"), "extra",
                    lambda _, row: "" if row.top_k is None else percent(row.top_k, 1)),
        ]  # fmt: skip
        there = {"rank", "track", "rating", "name", "worth"}
        there |= {each for each in ("rank_low", "low", "group", "games", "standard_error",
                                    "expected_rank", "top_k") if self.has(each)}  # fmt: skip
        there |= {"share"} if self.has("wins") else set()
        there |= {"tier"} if self.bands > 1 else set()
        return [column for column in columns if column.key in there]

    def ends(self, row: ItemRow) -> str:
        _, low, high = row.shown
        if low is None or high is None:
            return ""
        return f"{number(low, self.decimals)} to {number(high, self.decimals)}"

    def said(self, row: ItemRow) -> str:
        """The dot and its line in words."""
        text = f"{self.page.rating_name} {number(row.shown[0], self.decimals)}"
        ends = self.ends(row)
        return f"{text}, {self.level}{_SPACE}% interval {ends}" if ends else text

    def under(self, row: ItemRow) -> str:
        """What a phone has no column for."""
        if row.games is None:
            return ""
        seen = self.page.connectivity.seen
        counted = f"{amount(row.games)} {seen[:-1] if row.games == 1 else seen}"
        return f"{counted}: {_record(row)}" if row.wins is not None else counted

    @property
    def style(self) -> str:
        """Widths of the columns, and the ticks' lines as the background that all rows share."""
        grid = []
        for tick, (place, _) in zip(self.axis.ticks, self.axis.labels(), strict=True):
            colour = "var(--zero)" if abs(tick) < 1e-12 else "var(--line)"
            grid.append(f"linear-gradient({colour},{colour}) {share(place)} 0/1px 100% no-repeat")
        longest: dict[str, int] = {}
        for column in self.columns:
            texts = (len(column.text(place, row)) for place, row in enumerate(self.page.rows))
            longest[column.kind] = max(longest.get(column.kind, 4), *texts)
        longest["item"] = min(max(longest["item"], 10), _MOST_CHARACTERS)
        longest["group"] = min(longest.get("group", 4), 16)
        sizes = "".join(f"--{kind}:{size}ch;" for kind, size in longest.items() if kind != "track")
        return f"{sizes}--grid:{','.join(grid)}"

    @cached_property
    def pairs(self) -> list[list[float]]:
        found = self.page.pairwise
        return [] if found is None else found[:MOST_PAIRED, :MOST_PAIRED].tolist()

    @property
    def curve(self) -> _Curve | None:
        return _curve(self.page.convergence.history)

    @cached_property
    def curves(self) -> _Curves | None:
        return None if self.page.curves is None else _curves(self.page.curves)

    def radius(self, games: float) -> str:
        """Of a dot whose area is its share of the games."""
        check = self.page.fit_check
        most = max((each[2] for each in check.points), default=1.0) if check else 1.0
        return f"{max(1.5, 6 * math.sqrt(games / most)):.1f}"

    def data(self) -> dict[str, Any]:
        """What the script shows: the rows by column, and what it needs of pairs."""
        page, rows = self.page, self.page.rows
        shown = [row.shown for row in rows]
        cuts = [] if page.cut_probabilities is None else [float(p) for p in page.cut_probabilities]
        columns: dict[str, Any] = {
            "name": [row.name for row in rows],
            "log_worth": [row.log_worth for row in rows],
            "rating": _rounded(value for value, _, _ in shown),
            "low": _rounded(low for _, low, _ in shown),
            "high": _rounded(high for _, _, high in shown),
            "tier": self.tiers if self.bands > 1 else [],
            "cut_below": _rounded(cuts) if self.bands > 1 else [],
            "provisional": [place for place, is_so in enumerate(self.provisional) if is_so],
            **{name: _rounded(getattr(row, name) for row in rows)
               for name in ("standard_error", "worth", "rank_low", "rank_high", "expected_rank",
                            "top_k", "games", "wins", "ties", "losses") if self.has(name)},
            **{name: [getattr(row, name) for row in rows]
               for name in ("group", "link") if self.has(name)},
        }  # fmt: skip
        if all(row.rating is None for row in rows):
            del columns["rating"]  # it is the log-worth
        return {
            "name": self.name, "prefix": self.prefix, "level": page.level, "top_k": page.top_k,
            "seen": page.connectivity.seen, "rating": page.rating_name, "decimals": self.decimals,
            "error_decimals": content.decimals_of(rows),
            "axis": [self.axis.low, self.axis.high], "columns": columns, "pairs": self._pair_data(),
        }  # fmt: skip

    def _pair_data(self) -> dict[str, Any] | None:
        from scipy.special import ndtri

        model, counts = self.page.pair_model, self.page.pair_counts
        if model is None:
            return None
        found: dict[str, Any] = {
            "kind": model.kind, "tie_says": model.tie_says, "tie": model.tie,
            "tie_variance": model.tie_variance, "z": float(ndtri((1 + self.page.level) / 2)),
            "exact": 0,
        }  # fmt: skip
        if model.tie_covariance is not None:
            found["tie_covariance"] = _rounded(model.tie_covariance.tolist())
        if model.errors is not None:
            found |= _packed(model.errors)
        if model.quasi_variances is not None:
            found["quasi_variances"] = _rounded(model.quasi_variances.tolist())
        if counts is not None:
            found["among"] = counts.among
            found["met"] = {
                name: _rounded(getattr(counts, name).tolist())
                for name in ("first", "second", "wins", "ties", "losses")
            }
        return found


def _ranks(row: ItemRow) -> str:
    if row.rank_low is None or row.rank_high is None:
        return ""
    return f"{row.rank_low:,}" + (
        "" if row.rank_low == row.rank_high else f"–{row.rank_high:,}"
    )  # fmt: skip


def _record(row: ItemRow) -> str:
    counts = (row.wins, row.ties, row.losses)
    return "–".join(amount(each) for each in counts if each is not None)


class _Section(NamedTuple):
    """A part of the page under its heading, from the macro of its name.

    On a large screen its `shape` is "wide" (the whole width) or "half". What is `scripted` is
    hidden until the script has filled it.
    """

    name: str
    heading: str
    shape: str = "half"
    link: str = ""
    scripted: bool = False


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


class _Line(NamedTuple):
    """An item's way through time in a box of 100 by 100: a line, and the area of its interval."""

    name: str
    line: str
    area: str
    last: str


class _Curves(NamedTuple):
    axis: Axis
    lines: Sequence[_Line]
    moments: Sequence[str]  # periods at equal distances, from the first to the last
    at_once: int = _CURVES_AT_ONCE


def _curves(curves: TimeCurves) -> _Curves:
    """The curves of the first items, on one axis that holds what is shown at once."""
    shown = slice(0, MOST_CURVES)
    estimate, low, high = (
        np.asarray(each, dtype=float)[shown] for each in (curves.estimate, curves.low, curves.high)
    )
    # with the areas that are there at first, but for their widest ends: of who was seen but once
    at_first = ((low[:_CURVES_AT_ONCE], 0.05), (high[:_CURVES_AT_ONCE], 0.95))
    ends = [np.nanquantile(x, share) for x, share in at_first if np.isfinite(x).any()]
    ends += [x[:_CURVES_AT_ONCE, -1] for x in (low, high)]  # where everybody looks, all of them
    held = np.hstack([estimate.ravel(), *ends])
    axis = axis_over(float(np.nanmin(held)), float(np.nanmax(held)))
    steps = max(1, len(curves.periods) - 1)

    def path(values: FloatArray, places: Sequence[int]) -> str:
        return " ".join(f"{100 * at / steps:.2f},{100 * (1 - axis.place(values[at])):.2f}"
                        for at in places)  # fmt: skip

    lines = []
    for name, e, a, b in zip(curves.items[shown], estimate, low, high, strict=True):
        there = [int(at) for at in np.flatnonzero(np.isfinite(e))]
        sure = [at for at in there if a[at] == a[at] and b[at] == b[at]]
        lines.append(_Line(
            name,
            f"M{path(e, there)}" if there else "",
            f"M{path(b, sure)} L{path(a, sure[::-1])}Z" if sure else "",
            number(float(e[there[-1]]), max(1, axis.tick_decimals + 1)) if there else "",
        ))  # fmt: skip
    named = dict.fromkeys(round(at) for at in np.linspace(0, len(curves.periods) - 1, _MOMENTS))
    return _Curves(axis, lines, [curves.periods[at] for at in named])


# -- what makes a page somebody's own: a logo, and a colour that stays readable --------------------

MOST_BYTES = 500_000  # of a logo, which is inside the page
CONTRAST = 4.5  # of text and what lies behind it: WCAG 2, level AA

# What text in the colour lies on, by day and by night: the palest and the darkest of page.css.
_BEHIND = {"light": ("#ffffff", "#f1f3f6"), "dark": ("#181c20", "#262c33")}

_SIGNATURES = {b"\x89PNG\r\n\x1a\n": "image/png", b"\xff\xd8\xff": "image/jpeg"}

RGB = tuple[float, float, float]


@dataclass(frozen=True)
class Look:
    """A logo as a data URI, and an accent colour as #rrggbb; "" for none."""

    logo: str = ""
    accent: str = ""

    @classmethod
    def of(cls, logo: str | Path | None = None, accent: str | None = None) -> Look:
        """From the file of a logo (PNG, JPEG or SVG) and a colour (#rgb or #rrggbb).

        Examples
        --------
        >>> Look.of(accent="#C03").accent
        '#cc0033'
        """
        return cls("" if logo is None else _embedded(Path(logo)), _colour(accent or ""))

    def on_paper(self) -> str:
        """The colour as it can be read on white; "" for none."""
        return _readable(self.accent, _BEHIND["light"]) if self.accent else ""

    def style(self) -> str:
        """The colour for day and night, as near to it as can be read there."""
        if not self.accent:
            return ""
        night = _readable(self.accent, _BEHIND["dark"])
        return (
            f":root{{--best:{self.on_paper()}}}\n"
            f"@media screen and (prefers-color-scheme:dark){{:root{{--best:{night}}}}}\n"
        )


def _embedded(path: Path) -> str:
    data = path.read_bytes()
    if len(data) > MOST_BYTES:
        raise ValueError(
            f"{path}: the logo has {len(data):,} bytes, and all of them are in the page: give one "
            f"of at most {MOST_BYTES:,}"
        )
    kind = next((kind for sign, kind in _SIGNATURES.items() if data.startswith(sign)), None)
    if kind is None and _is_svg(data):
        kind = "image/svg+xml"
    if kind is None:
        raise ValueError(f"{path}: the logo is no PNG, JPEG or SVG: give one of these")
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"


def _is_svg(data: bytes) -> bool:
    if b"<!DOCTYPE" in data.upper() or b"<!ENTITY" in data.upper():  # may unfold without end
        return False
    try:
        return ElementTree.fromstring(data).tag == "{http://www.w3.org/2000/svg}svg"
    except (ElementTree.ParseError, ValueError, LookupError):
        return False


def _colour(text: str) -> str:
    short = re.fullmatch(r"#([0-9a-f])([0-9a-f])([0-9a-f])", text.strip().lower())
    written = "#" + "".join(2 * each for each in short.groups()) if short else text.strip().lower()
    if text and not re.fullmatch("#[0-9a-f]{6}", written):
        raise ValueError(f"the accent colour is {text!r}: give it as #rrggbb, such as #0b5aa6")
    return written


def _readable(accent: str, behind: tuple[str, ...]) -> str:
    """The colour mixed with black or white, as little as it takes to be told from all `behind`."""
    end = 0.0 if _luminance(_rgb(behind[0])) > 0.5 else 255.0
    rgb = _rgb(accent)
    for step in range(101):
        mixed = tuple(round(c + (end - c) * step / 100) for c in rgb)
        found = f"#{mixed[0]:02x}{mixed[1]:02x}{mixed[2]:02x}"
        if all(contrast(found, each) >= CONTRAST for each in behind):
            break
    return found


def contrast(one: str, other: str) -> float:
    """The contrast of two colours by WCAG 2: from 1 to 21."""
    bright, dark = sorted((_luminance(_rgb(one)), _luminance(_rgb(other))), reverse=True)
    return (bright + 0.05) / (dark + 0.05)


def _rgb(colour: str) -> RGB:
    red, green, blue = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return red, green, blue


def _luminance(rgb: RGB) -> float:
    parts = (c / 255 for c in rgb)
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
