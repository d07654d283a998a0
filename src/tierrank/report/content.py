"""What the page of an aggregation shows: plain data, checked, that any model can fill.

And how its numbers stand in print.
"""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tierrank import names
from tierrank._types import FloatArray, IntArray

if TYPE_CHECKING:
    from tierrank.aggregation.summary import Parameter


_LINK = re.compile(r"https?://[^\s\x00-\x1f]+\Z", re.IGNORECASE)


def is_link(text: str) -> bool:
    """Whether it is an address that a name may lead to."""
    return _LINK.match(text) is not None


SURE_CUT = 0.8  # the probability from which on a cut between tiers is drawn
FEW_GAMES = 10  # with fewer an item may be provisional
WIDE = 2.0  # times as long as the median interval: so is one that is provisional


@dataclass(frozen=True)
class ItemRow:
    """One item of the ranking; what was not computed is `None`."""

    name: str
    log_worth: float
    worth: float
    low: float | None = None  # of the interval of the log-worth; may be infinite
    high: float | None = None
    standard_error: float | None = None
    tier: int | None = None  # 1 is the best
    expected_rank: float | None = None
    rank_low: int | None = None
    rank_high: int | None = None
    top_k: float | None = None  # probability of a place among the first k
    rating: float | None = None  # on the scale of the page; None: the log-worth
    rating_low: float | None = None
    rating_high: float | None = None
    games: float | None = None  # or lists, that it is in
    wins: float | None = None  # others that it stood above, beside and below in these
    ties: float | None = None
    losses: float | None = None
    group: str = ""
    link: str = ""  # of its name: http or https

    def __post_init__(self) -> None:
        where = f"the row of item {self.name!r}"
        if self.link and not is_link(self.link):
            raise ValueError(
                f"link of {where} is {self.link!r}: give an address that begins with https:// or "
                "http://, without spaces"
            )
        for name in ("log_worth", "worth", "expected_rank"):
            _finite(getattr(self, name), f"{name} of {where}")
        _probability(self.worth, f"worth of {where}")
        _probability(self.top_k, f"top_k of {where}")
        if (self.low is None) != (self.high is None):
            raise ValueError(f"{where} has one end of an interval: give both low and high, or none")
        if self.low is not None and self.high is not None and not (
            self.low <= self.log_worth <= self.high
        ):  # fmt: skip
            raise ValueError(
                f"{where} has an interval from {self.low} to {self.high} that does not hold its "
                f"log-worth, {self.log_worth}"
            )
        if self.standard_error is not None and not self.standard_error >= 0:
            raise ValueError(f"standard_error of {where} is {self.standard_error}: give 0 or more")
        if (self.rank_low is None) != (self.rank_high is None):
            raise ValueError(f"{where} has one end of an interval of ranks: give both, or none")
        if self.tier is not None and self.tier < 1:
            raise ValueError(f"tier of {where} is {self.tier}: the best tier is number 1")

    @property
    def shown(self) -> tuple[float, float | None, float | None]:
        """The rating with the ends of its interval; where there is none, the log-worth."""
        if self.rating is None:
            return self.log_worth, self.low, self.high
        return self.rating, self.rating_low, self.rating_high


@dataclass(frozen=True, eq=False)
class PairModel:
    """How a game of any two rows ends, for the page to compute when somebody picks two.

    With d the difference of their log-worths and t the parameter of ties, in log-odds:

        plackett-luce   P(win) = 1 / (1 + e^−d)
        davidson        P(win) = 1 / (1 + e^−d + e^(t − d/2)),  P(tie) = e^(t + d/2) P(loss)
        rao-kupper      P(win) = 1 / (1 + (1 + e^t) e^−d)

    Attributes
    ----------
    kind
        which of them
    tie_says
        what a tie of two says to the model, in a sentence
    tie, tie_variance, tie_covariance
        t; its variance; and [rows] its covariance with the log-worths
    errors
        [n, n] standard errors of differences of the first n rows
    quasi_variances
        [rows] q, with var(w_i − w_j) ≈ q_i + q_j, for the rows beyond
    """

    kind: str = "plackett-luce"
    tie_says: str = ""
    tie: float = 0.0
    tie_variance: float = 0.0
    tie_covariance: FloatArray | None = None
    errors: FloatArray | None = None
    quasi_variances: FloatArray | None = None

    def __post_init__(self) -> None:
        if self.kind not in ("plackett-luce", "davidson", "rao-kupper"):
            raise ValueError(
                f"kind of a PairModel is {self.kind!r}: give plackett-luce, davidson or rao-kupper"
            )


@dataclass(frozen=True, eq=False)
class PairCounts:
    """How often two rows met, and how that ended; pairs that never met are left out.

    Attributes
    ----------
    first, second
        [pairs] numbers of rows, the first the smaller
    wins, ties, losses
        [pairs] how often the first stood above, beside and below the second
    among
        the first so many rows have all their pairs here
    """

    first: IntArray
    second: IntArray
    wins: FloatArray
    ties: FloatArray
    losses: FloatArray
    among: int

    def rounded(self) -> PairCounts:
        """In whole numbers."""
        wins, ties, losses = (np.round(each) for each in (self.wins, self.ties, self.losses))
        met = wins + ties + losses > 0
        return PairCounts(
            self.first[met], self.second[met], wins[met], ties[met], losses[met], self.among
        )

    def table(self, rows: int) -> FloatArray:
        """[rows, rows, 3] wins, ties and losses of the first rows against each other."""
        found = np.zeros((rows, rows, 3))
        here = (self.second < rows) & (self.first < rows)
        one, two = self.first[here], self.second[here]
        counts = np.stack([self.wins[here], self.ties[here], self.losses[here]], axis=-1)
        found[one, two] = counts
        found[two, one] = counts[:, ::-1]
        return found


class Deviation(NamedTuple):
    """Two items whose games the model does not expect."""

    first: str
    second: str
    games: float
    observed: float  # share of the first: wins, and half of the ties
    expected: float
    residual: float  # the difference in standard errors
    adjusted_p: float  # for the number of pairs


@dataclass(frozen=True)
class FitCheck:
    """Whether the data contradict the model.

    Attributes
    ----------
    text
        what the test says, in a sentence or two
    points
        (expected share, observed share, games) of groups of pairs
    worst
        pairs that are furthest from what the model expects
    triples
        (a, b, c): a mostly beat b, b beat c, and c beat a
    triples_text
        how many there are, and how many there would be by chance
    """

    text: str
    points: tuple[tuple[float, float, float], ...] = ()
    worst: tuple[Deviation, ...] = ()
    triples: tuple[tuple[str, str, str], ...] = ()
    triples_text: str = ""


@dataclass(frozen=True, eq=False)
class TimeCurves:
    """Ratings through time.

    Attributes
    ----------
    periods
        their labels
    items
        names
    estimate, low, high
        [items, periods]; NaN where there is none
    """

    periods: tuple[str, ...]
    items: tuple[str, ...]
    estimate: FloatArray
    low: FloatArray
    high: FloatArray

    def __post_init__(self) -> None:
        shape = (len(self.items), len(self.periods))
        for name in ("estimate", "low", "high"):
            found = np.shape(getattr(self, name))
            if found != shape:
                raise ValueError(
                    f"{name} of the curves has the shape {list(found)}: give [items, periods], "
                    f"{list(shape)}"
                )


@dataclass(frozen=True)
class ConnectivityFacts:
    """What was compared with what."""

    items: int
    lists: int
    distinct_lists: int
    total_weight: float
    lists_without_information: int
    groups: int  # sets of items that were never compared with each other
    components: int  # strongly connected ones
    strongly_connected: bool
    text: str = ""
    seen: str = "lists"  # what the lists are: "lists" or "games"


@dataclass(frozen=True)
class ConvergenceFacts:
    """How the fit went."""

    solver: str
    iterations: int
    seconds: float
    converged: bool
    stopped_by: str
    history: Sequence[float] = ()  # values of the objective, which is minimised
    gradient_norm: float | None = None
    log_likelihood: float | None = None
    aic: float | None = None

    def __post_init__(self) -> None:
        for step, value in enumerate(self.history):
            _finite(value, f"value {step} of the objective's history")


@dataclass(frozen=True, eq=False)
class AggregationPage:
    """All that `page_html` shows.

    Parameters
    ----------
    title, subtitle
        what was ranked; where it comes from
    rows
        the items, best first
    connectivity, convergence
        of the data; of the fit
    level
        of all intervals, between 0 and 1
    top_k
        the k of the rows' `top_k`
    scale
        what the axis of the ranking is
    pairwise
        [n, n] P(row i above row j) for the first n rows
    cut_probabilities
        [rows − 1] probability that a row and the next stand in different tiers
    tier_criterion
        how the tiers were found, in a sentence
    parameters
        what was estimated beside the worths: of ties, of the first side, of features
    settings, notes
        what was asked for; what a reader should know
    model_text
        the model, in a sentence
    facts
        further figures for the head of the page: share of ties, voters, dates
    rating_name
        heading of the column of ratings
    pair_model, pair_counts
        what is computed of two items that are picked; how often they met
    fit_check
        whether the data contradict the model
    curves
        worths through time
    command
        the command line that makes the page again
    """

    title: str
    rows: tuple[ItemRow, ...]
    connectivity: ConnectivityFacts
    convergence: ConvergenceFacts
    subtitle: str = ""
    level: float = 0.95
    top_k: int | None = None
    scale: str = "log-worth (0 is the average item)"
    pairwise: npt.NDArray[np.floating[Any]] | None = None
    cut_probabilities: Sequence[float] | None = None
    tier_criterion: str | None = None
    parameters: tuple[Parameter, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    model_text: str = ""
    facts: Mapping[str, str] = field(default_factory=dict)
    rating_name: str = "log-worth"
    pair_model: PairModel | None = None
    pair_counts: PairCounts | None = None
    fit_check: FitCheck | None = None
    curves: TimeCurves | None = None
    command: str = ""

    def __post_init__(self) -> None:
        if not self.rows:
            raise ValueError("a page needs at least one row")
        if not 0 < self.level < 1:
            raise ValueError(f"level is {self.level}: give a number between 0 and 1, such as 0.95")
        for place, (above, below) in enumerate(
            zip(self.rows[:-1], self.rows[1:], strict=True), start=1
        ):
            if above.log_worth < below.log_worth:
                raise ValueError(
                    f"row {place} ({above.name!r}) has a smaller log-worth than row {place + 1} "
                    f"({below.name!r}): give the rows best first"
                )
        self._check_tiers()
        self._check_pairs()
        if self.top_k is None and any(row.top_k is not None for row in self.rows):
            raise ValueError("rows have a top_k, and the page does not say what k is: give top_k")

    @property
    def tiers(self) -> int:
        """How many tiers there are; 0 where nobody looked for them."""
        return len({row.tier for row in self.rows if row.tier is not None})

    def clear_tiers(self) -> list[int]:
        """[rows] numbers of the tiers whose cuts are sure enough to be drawn, from 1.

        A cut of the most probable tiers counts if its probability is at least `SURE_CUT`; tiers
        that come without probabilities are drawn as they are. All 1: the data show none.
        """
        found, number = [], 1
        for place, row in enumerate(self.rows):
            if place and row.tier != self.rows[place - 1].tier:
                cuts = self.cut_probabilities
                number += bool(cuts is None or cuts[place - 1] >= SURE_CUT)
            found.append(number)
        return found

    def provisional(self) -> list[bool]:
        """[rows] whether a later game may well move it far.

        Its interval is more than `WIDE` times as long as the median one; or it has fewer than
        `FEW_GAMES` games, and fewer than half of the median number.
        """
        lengths = [
            row.high - row.low if row.low is not None and row.high is not None else math.nan
            for row in self.rows
        ]
        known = [each for each in lengths if not math.isnan(each)]
        most = WIDE * statistics.median(known) if known else math.inf
        games = [row.games for row in self.rows if row.games is not None]
        few = min(FEW_GAMES, statistics.median(games) / 2) if games else 0
        return [
            length > most or (row.games is not None and row.games < few)
            for row, length in zip(self.rows, lengths, strict=True)
        ]

    def _check_tiers(self) -> None:
        tiers = [row.tier for row in self.rows if row.tier is not None]
        if tiers and len(tiers) != len(self.rows):
            raise ValueError("some rows have a tier and some do not: give all of them one, or none")
        if tiers != sorted(tiers):
            raise ValueError("tiers go back up along the rows: tier 1 is the best and comes first")
        if self.cut_probabilities is not None:
            if len(self.cut_probabilities) != len(self.rows) - 1:
                raise ValueError(
                    f"{len(self.cut_probabilities)} cut_probabilities for {len(self.rows)} rows: "
                    "there is one between each row and the next"
                )
            for place, value in enumerate(self.cut_probabilities, start=1):
                _probability(float(value), f"cut probability below row {place}")

    def _check_pairs(self) -> None:
        if self.pairwise is None:
            return
        shape = self.pairwise.shape
        if len(shape) != 2 or shape[0] != shape[1] or not 1 <= shape[0] <= len(self.rows):
            raise ValueError(
                f"pairwise has the shape {list(shape)}: give [n, n], n at most {len(self.rows)}"
            )
        if not ((self.pairwise >= 0) & (self.pairwise <= 1)).all():
            raise ValueError("pairwise holds something that is no probability between 0 and 1")


def _finite(value: float | None, what: str) -> None:
    if value is not None and not math.isfinite(value):
        raise ValueError(f"{what} is {value}: give a finite number")


def _probability(value: float | None, what: str) -> None:
    if value is not None and not -1e-9 <= value <= 1 + 1e-9:  # rounding is not a mistake
        raise ValueError(f"{what} is {value}: give a probability between 0 and 1")


# Numbers as they stand in print, and the axis and the decimals that items need --------------------


MINUS = "\N{MINUS SIGN}"
NO_BREAK = "\N{NO-BREAK SPACE}"

_MARGIN = 0.04  # of the axis, on each side, so that a label at its end is not cut off
_MOST_STEPS = 8


def number(value: float | None, decimals: int) -> str:
    """A number with its sign as in print; nothing where there is none."""
    if value is None:
        return ""
    if math.isinf(value):
        return "∞" if value > 0 else f"{MINUS}∞"
    if abs(value) >= 1e9:
        return significant(value)
    written = f"{value:,.{decimals}f}"
    if not float(written.replace(",", "")):
        written = written.lstrip("-")  # no "−0.00"
    return written.replace("-", MINUS)


def significant(value: float, digits: int = 3) -> str:
    """A number to some digits, however large or small it is."""
    written = f"{value:#.{digits}g}" if value else "0"
    return written.rstrip(".").replace("-", MINUS)


def digits(value: float) -> str:
    """Four decimals, or four digits of what is smaller or larger."""
    if 0 < abs(value) < 1e-3 or abs(value) >= 1e4:
        return significant(value, 4)
    return number(value, 4)


def amount(value: float) -> str:
    """A number of any size, short: whole ones whole."""
    if abs(value) >= 1e9 or 0 < abs(value) < 0.1:
        return significant(value, 4)
    return number(value, 0 if value == int(value) else 2)


def percent(value: float, decimals: int = 0) -> str:
    """A probability in percent, which is 0 or 100 only if it is exactly that."""
    least = 10.0**-decimals
    if 0 < 100 * value <= least / 2:
        return f"<{least:g}"
    if value < 1 and 100 * value >= 100 - least / 2:
        return f">{100 - least:g}"
    return f"{100 * value:.{decimals}f}"


def counted(many: int, one: str) -> str:
    """`1 item`, `1,200 items`, whose number stays with the word."""
    return names.counted(many, one).replace(" ", NO_BREAK, 1)


def share(part: float) -> str:
    """A part of a whole as CSS and SVG write it."""
    return f"{100 * part:.3f}".rstrip("0").rstrip(".") + "%"


def duration(seconds: float) -> str:
    """A time as people say it."""
    if seconds < 1:
        return f"{1000 * seconds:.3g}{NO_BREAK}ms"
    if seconds < 120:
        return f"{seconds:.3g}{NO_BREAK}s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    long, short = (f"{hours}{NO_BREAK}h", f"{minutes}{NO_BREAK}min")
    return f"{long} {short}" if hours else f"{short} {rest}{NO_BREAK}s"


def decimals_of(rows: Sequence[ItemRow]) -> int:
    """Decimals that show two digits of the usual standard error, or of the spread without one."""
    errors = [row.standard_error for row in rows if row.standard_error]
    errors = [error for error in errors if math.isfinite(error)]
    size = statistics.median(errors) if errors else rows[0].log_worth - rows[-1].log_worth
    if size <= 0:
        return 2
    return min(max(2, 1 - math.floor(math.log10(size))), 6)


def rating_decimals(rows: Sequence[ItemRow]) -> int:
    """The same of ratings, which may be hundreds: then none."""
    if all(row.rating is None for row in rows):
        return decimals_of(rows)
    margins = [(high - low) / 4 for _, low, high in (row.shown for row in rows)
               if low is not None and high is not None and 0 < high - low < math.inf]  # fmt: skip
    spread = abs(rows[0].shown[0] - rows[-1].shown[0])
    size = statistics.median(margins) if margins else spread / 100
    return min(max(0, 1 - math.floor(math.log10(size))), 6) if size > 0 else 0


@dataclass(frozen=True)
class Axis:
    """A straight line of numbers from `low` to `high`."""

    low: float
    high: float
    ticks: tuple[float, ...]
    tick_decimals: int

    def place(self, value: float) -> float:
        """Where a value stands, as a share of the axis; what is beyond stands at the end."""
        return min(max((value - self.low) / (self.high - self.low), 0.0), 1.0)

    def holds(self, value: float) -> bool:
        """Whether a value is on the axis."""
        return self.low <= value <= self.high

    def labels(self) -> list[tuple[float, str]]:
        """Place and text of each tick."""
        return [(self.place(tick), number(tick, self.tick_decimals)) for tick in self.ticks]


def axis_of(rows: Sequence[ItemRow]) -> Axis:
    """An axis that holds all ratings, and the intervals unless they dwarf the ratings.

    One item that hardly anybody saw has an interval many times as long as the ranking. If the axis
    held it, all others would be one dot; so it goes off the axis, and the plot says so.
    """
    values, lows, highs = zip(*(row.shown for row in rows), strict=True)
    least, most = min(values), max(values)
    ends = [(a, b) for a, b in zip(lows, highs, strict=True) if a is not None and b is not None]
    lengths = [b - a for a, b in ends if math.isfinite(b - a)]
    typical = statistics.median(lengths) if lengths else 0.0
    reach = max(0.5 * (most - least), 2 * typical)
    low = max(min([least, *(a for a, _ in ends)]), least - reach)
    high = min(max([most, *(b for _, b in ends)]), most + reach)
    return axis_over(low, high)


def axis_over(low: float, high: float) -> Axis:
    """An axis from one number to another, with round ticks."""
    if high - low < 1e-9 * max(1.0, abs(low), abs(high)):  # one item, or all alike
        low, high = low - 1, high + 1
    margin = _MARGIN / (1 - 2 * _MARGIN) * (high - low)
    step = _step(high - low)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    ticks = tuple(step * place for place in range(first, last + 1))
    return Axis(low - margin, high + margin, ticks, max(0, -math.floor(math.log10(step) + 1e-9)))


def _step(span: float) -> float:
    """The smallest of 1, 2, 5 times a power of ten that gives few enough ticks."""
    power = 10.0 ** math.floor(math.log10(span / _MOST_STEPS))
    return next(power * each for each in (1, 2, 5, 10) if span / (power * each) <= _MOST_STEPS)
