"""Results as tables: to read on a terminal, and as CSV and JSON for other programs.

Standings of rankers by metrics; and fitted rankings, from the plain data of `AggregationPage`, so
that they say the same as the report.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from tierrank.names import counted
from tierrank.ranking.comparison import Standing, best_mean
from tierrank.report.content import AggregationPage, ItemRow, decimals_of, percent
from tierrank.training import History

if TYPE_CHECKING:
    from rich.table import Table
STANDING_COLUMNS = tuple(field.name for field in fields(Standing))
WORTH_COLUMNS = (
    "rank", "item", "log_worth", "standard_error", "low", "high", "worth", "tier", "cut_below",
    "rank_low", "rank_high", "expected_rank", "top_k",
)  # fmt: skip
RATING_COLUMNS = ("rating", "rating_low", "rating_high")  # where a scale is asked for
PARAMETER_COLUMNS = ("name", "estimate", "standard_error", "low", "high")

# What spreadsheets take for a formula, or may after they dropped what stands before it; numbers
# that are text are harmless.
_FORMULA = re.compile(r"(?![+-]?[0-9]+(\.[0-9]+)?\Z)[=+\-@＝＋－＠\x00-\x1f]")
_MARKS = re.compile(r'[,"\r\n]')

# A terminal would obey these, or write backwards from there.
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def plain_table(title: str | None = None, *columns: str) -> Table:
    """An empty table with a line below its headings and little else.

    Of columns that are given, the first is of words, and the others of numbers.
    """
    from rich import box
    from rich.table import Table

    table = Table(
        title=title, title_justify="left", box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False,
        collapse_padding=True,
    )  # fmt: skip
    for number, column in enumerate(columns):
        table.add_column(column, justify="right" if number else "left", overflow="fold")
    return table


def keep_what_fits(
    table: Table,
    columns: Mapping[str, tuple[str, int]],
    width: int | None,
    first_to_go: Sequence[str],
) -> list[str]:
    """Choose the columns that have room side by side, and let the table say which have none.

    Parameters
    ----------
    table
        gets a line below it, if columns are left out
    columns
        heading and needed width of each, in their order
    width
        of the terminal; None for any
    first_to_go
        the columns that may be left out, the least important first
    """
    kept = list(columns)
    for name in first_to_go:
        needed = sum(columns[each][1] for each in kept) + len(GAP) * (len(kept) - 1)
        if width is None or needed <= width:
            break
        if name in kept:
            kept.remove(name)
    gone = dict.fromkeys(head for name, (head, _) in columns.items() if name not in kept)
    if gone:
        table.caption = f"No room for {', '.join(gone)}: a wider terminal shows all."
        table.caption_justify = "left"
    return kept


GAP = "  "  # between two columns
LEAST = 12  # characters of a name, which goes on in the next line


def standings_table(
    standings: Sequence[Standing],
    *,
    title: str,
    heading: str = "ranker",
    more: Mapping[str, Mapping[str, str]] | None = None,
    width: int | None = None,
) -> Table:
    """One row a ranker and metric; differences where there is more than one ranker.

    Parameters
    ----------
    standings
        in the order in which they are shown, those of a metric together
    title, heading
        of the table, and of the rankers' column
    more
        further columns: heading, then cell by ranker
    width
        of the terminal, where the least important columns give way; None for any
    """
    from rich.markup import escape

    rankers = {each.name for each in standings}
    metrics = {each.metric for each in standings}
    table = plain_table(title)
    if len(rankers) == 1:
        _one_ranker(table, standings)
        return table
    more = more or {}
    rows = [_cells(each, more) for each in standings]
    headings = {
        "mean": "mean" if len(metrics) > 1 else standings[0].metric, "interval": "95% interval",
        "difference": "− first", "its interval": "95% interval", "p": "p",
        **({"Holm": "p, Holm"} if len(rankers) > 2 else {}),
    } | {column: column for column in more}  # fmt: skip
    wide = {
        name: (text, max(len(text), *(len(row[name]) for row in rows)))
        for name, text in headings.items()
    }
    columns = {"name": (heading, LEAST)} | wide
    to_go = [*more, "interval", "p", "its interval", "Holm", "difference"]
    kept = keep_what_fits(table, columns, width, to_go)[1:]
    table.add_column(heading, overflow="fold", min_width=LEAST)
    for name in kept:
        table.add_column(headings[name], justify="right", no_wrap=True)
    metric: str | None = None
    for each, row in zip(standings, rows, strict=True):
        if each.metric != metric and len(metrics) > 1:
            table.add_section()
            table.add_row(f"[bold]{each.metric}[/]")
        metric = each.metric
        best = best_mean([other for other in standings if other.metric == metric])
        shown = row | {"mean": f"[bold]{row['mean']}[/]" if each.mean == best else row["mean"]}
        table.add_row(escape(each.name), *(shown[name] for name in kept))
    return table


def _cells(each: Standing, more: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    difference, interval, p, p_holm = _difference(each)
    return {
        "mean": f"{each.mean:.4f}", "interval": _mean_interval(each), "difference": difference,
        "its interval": interval, "p": p, "Holm": p_holm,
    } | {column: cells.get(each.name, "") for column, cells in more.items()}  # fmt: skip


def _one_ranker(table: Table, standings: Sequence[Standing]) -> None:
    table.add_column("metric", overflow="fold")
    table.add_column("mean", justify="right", no_wrap=True)
    table.add_column("95% interval", justify="right", no_wrap=True)
    for each in standings:
        table.add_row(each.metric, f"{each.mean:.4f}", _mean_interval(each))


def csv_text(rows: Iterable[Iterable[Any]], *, raw: bool = False) -> str:
    """Rows as CSV; None is an empty cell.

    Text that a spreadsheet would take for a formula gets ' in front and is quoted, as OWASP
    recommends, unless `raw`. Numbers stay as they are.

    Examples
    --------
    >>> print(csv_text([["item", "log_worth"], ["=1+1", -0.5], ["a, b", None]]), end="")
    item,log_worth
    "'=1+1",-0.5
    "a, b",
    """

    def cell(value: Any) -> str:
        if not isinstance(value, str):
            return "" if value is None else str(value)
        formula = not raw and _FORMULA.match(value)
        if not formula and not _MARKS.search(value):
            return value
        safe = f"'{value}" if formula else value
        return '"' + safe.replace('"', '""') + '"'

    return "".join(",".join(map(cell, row)) + "\n" for row in rows)


def standings_csv(standings: Sequence[Standing], *, raw: bool = False) -> str:
    """A row a ranker and metric, under the names of `Standing`; what is not there is empty."""
    rows = ([getattr(each, name) for name in STANDING_COLUMNS] for each in standings)
    return csv_text([STANDING_COLUMNS, *rows], raw=raw)


def standings_json(standings: Sequence[Standing], **about: Any) -> str:
    """What it is about, and the standings."""
    whole = {**about, "results": [each.to_json() for each in standings]}
    return json.dumps(whole, indent=1, allow_nan=False, ensure_ascii=False) + "\n"


def curve_csv(history: History) -> str:
    """The training curve, a row a step; what is not there is empty."""
    heading = [history.unit, "loss", f"valid {history.metric_name}"]
    return csv_text([heading, *zip(history.steps, history.loss, history.metric, strict=True)])


def _difference(each: Standing) -> list[str]:
    if each.difference is None or each.p_value is None:
        return ["", "", "", ""]
    low, high = each.difference_low, each.difference_high
    p, p_holm = (
        "" if value is None else "<0.001" if value < 0.001 else f"{value:.3f}"
        for value in (each.p_value, each.p_holm)
    )
    return [f"{each.difference:+.4f}", f"{low:+.4f} {high:+.4f}", p, p_holm]


def _mean_interval(each: Standing) -> str:
    return f"{each.low:.4f} {each.high:.4f}"


def worth_table(
    page: AggregationPage, top: int | None = None, width: int | None = None
) -> Table:  # fmt: skip
    """The ranking, best first, with the columns for which there are values.

    Parameters
    ----------
    page
        what to show
    top
        how many items; None for all
    width
        of the terminal, where the least important columns give way; None for any
    """
    from rich.cells import cell_len
    from rich.text import Text

    rows = page.rows[:top]
    rated = any(row.rating is not None for row in rows)
    decimals = _rating_decimals(rows) if rated else decimals_of(rows)
    estimate = page.rating_name if rated else "log-worth"
    columns: dict[str, list[str]] = {
        "rank": [f"{rank:,}" for rank in range(1, len(rows) + 1)],
        "item": [printable(row.name) for row in rows],
        estimate: [_number(row.shown[0], decimals) for row in rows],
        f"{100 * page.level:g}% interval": [_interval(row, decimals) for row in rows],
        **({} if estimate == "worth" else {"worth": [f"{row.worth:#.3g}" for row in rows]}),
        "tier": [f"{row.tier or ''}" for row in rows],
        "ranks": [_ranks(row) for row in rows],
        f"top {page.top_k}": [
            "" if row.top_k is None else f"{percent(row.top_k, 1)}%" for row in rows
        ],
    }
    columns = {heading: cells for heading, cells in columns.items() if any(cells)}
    wide = {name: max(map(cell_len, [name, *cells])) for name, cells in columns.items()}
    wide["item"] = 10  # longer ones go on in the next line
    needed = {name: (name, number) for name, number in wide.items()}
    place, interval = f"top {page.top_k}", f"{100 * page.level:g}% interval"
    table = plain_table()
    kept = keep_what_fits(
        table, needed, width, ["worth", "ranks", "tier", place, "rank", interval, estimate]
    )
    for heading in kept:
        if heading == "item":
            table.add_column(heading, overflow="fold", min_width=wide["item"])
        else:
            table.add_column(heading, justify="right", no_wrap=True)
    for cells in zip(*(columns[heading] for heading in kept), strict=True):
        table.add_row(*(Text(cell) for cell in cells))
    return table


def parameter_csv(page: AggregationPage, *, raw: bool = False) -> str:
    """A row a parameter beside the worths; what is not there is empty."""
    rows = ([None if cell != cell else cell for cell in each] for each in page.parameters)
    return csv_text([PARAMETER_COLUMNS, *rows], raw=raw)


def summary_lines(page: AggregationPage) -> list[str]:
    """What was fitted and how it went, for below the table."""
    data, fit = page.connectivity, page.convergence
    lists = f"{counted(data.lists, data.seen[:-1])}, {data.distinct_lists:,} different"
    if data.total_weight != data.lists:
        lists += f", of weight {data.total_weight:g}"
    if data.lists_without_information:
        silent = data.lists_without_information
        lists += f"; {silent:,} {'is one tie and says' if silent == 1 else 'are one tie and say'}"
        lists += " nothing"
    prior = page.settings.get("prior", "none")
    model = page.settings.get("model", "")
    model += "" if prior == "none" else f", prior {prior}"
    if fit.log_likelihood is not None:
        model += f": log-likelihood {_plain(fit.log_likelihood)}"
        model += "" if fit.aic is None else f", AIC {_plain(fit.aic)}"
    ended = "converged" if fit.converged else f"not converged, stopped by {fit.stopped_by}"
    unit = ("pass", "passes") if fit.solver == "adagrad" else ("iteration",)
    steps = counted(fit.iterations, *unit)
    lines = [
        f"{counted(data.items, 'item')}; {lists}",
        model,
        f"{fit.solver}: {steps} in {_seconds(fit.seconds)}, {ended}",
    ]
    level = f"{100 * page.level:g}%"
    for each in page.parameters:
        line = f"{each.name}: {_digits(each.estimate)}"
        if each.standard_error == each.standard_error:  # a fit may have none
            line += f", {level} interval {_digits(each.low)} to {_digits(each.high)}"
            line += f", standard error {_digits(each.standard_error)}"
        lines.append(line)
    scale = page.scale[:1].upper() + page.scale[1:]
    if any(row.low is not None for row in page.rows[:1]):
        scale += f"; {level} intervals by the {page.settings.get('uncertainty', '')}"
    lines.append(scale)
    if page.tiers == 1:
        lines.append("1 tier: the data do not tell the items apart")
    elif page.tiers:
        lines.append(
            f"{page.tiers:,} tiers: the most probable cuts of the ranking into items of equal worth"
        )
    return lines


def worth_csv(
    page: AggregationPage | Mapping[str, AggregationPage], *, raw: bool = False, of: str = "group"
) -> str:
    """A row an item, best first, under `WORTH_COLUMNS`; what is not there is empty.

    Where another scale than log-worths is asked for, `RATING_COLUMNS` follow. Several pages stand
    one after the other, with their names in a first column `of`.
    """
    if isinstance(page, AggregationPage):
        records = list(_records(page))
    else:
        records = [{of: name, **row} for name, own in page.items() for row in _records(own)]
    return csv_text([list(records[0]), *(row.values() for row in records)], raw=raw)


def curves_csv(
    page: AggregationPage | Mapping[str, AggregationPage], *, of: str = "group", raw: bool = False
) -> str:
    """A row an item and period: log-worth or rating, and the ends of its band.

    Those of an item begin with the period in which it was first seen. Of several pages, the name of
    each comes first, as `of`.
    """
    several = isinstance(page, Mapping)
    pages = page if isinstance(page, Mapping) else {"": page}
    rows: list[list[Any]] = []
    for name, own in pages.items():
        if own.curves is None:
            continue
        bands = np.stack([own.curves.estimate, own.curves.low, own.curves.high], axis=-1)
        for item, of_item in zip(own.curves.items, bands.tolist(), strict=True):
            rows += [
                [name] * several + [item, period, *row]
                for period, row in zip(own.curves.periods, of_item, strict=True)
                if row[0] == row[0]
            ]
    rated = any(own.rating_name == "rating" for own in pages.values())
    head = ["item", "period", "rating" if rated else "log_worth", "low", "high"]
    return csv_text([[of] * several + head, *rows], raw=raw)


def worth_json(
    page: AggregationPage | Mapping[str, AggregationPage], *, of: str = "group", **about: Any
) -> str:
    """What it is about, how the fit went, and the items, best first, under `WORTH_COLUMNS`.

    Of several pages, a list of these, each with its name as `of`.
    """
    if isinstance(page, AggregationPage):
        whole = {**about, **_facts(page)}
    else:
        whole = {**about, "pages": [{of: name, **_facts(own)} for name, own in page.items()]}
    return json.dumps(_finite(whole), indent=1, allow_nan=False, ensure_ascii=False) + "\n"


def _facts(page: AggregationPage) -> dict[str, Any]:
    data, fit = asdict(page.connectivity), asdict(page.convergence)
    facts = {
        "settings": dict(page.settings),
        "level": page.level,
        "top_k": page.top_k,
        "scale": page.scale,
        "data": data,
        "fit": {**fit, "history": list(fit["history"])},
        "parameters": [each._asdict() for each in page.parameters],
        "tier_criterion": page.tier_criterion,
        "notes": list(page.notes),
        "results": list(_records(page)),
    }
    if page.curves is not None:
        numbers = zip(page.curves.estimate, page.curves.low, page.curves.high, strict=True)
        facts["through_time"] = {
            "periods": list(page.curves.periods),
            "curves": [
                {"item": name, "estimate": e.tolist(), "low": low.tolist(), "high": high.tolist()}
                for name, (e, low, high) in zip(page.curves.items, numbers, strict=True)
            ],
        }
    return facts


def printable(text: str) -> str:
    """Text that a terminal shows and does not obey."""
    return _UNPRINTABLE.sub("\ufffd", text) if text.strip() else "(no name)"


def _records(page: AggregationPage) -> Iterator[dict[str, Any]]:
    rated = any(row.rating is not None for row in page.rows)
    columns = (*WORTH_COLUMNS, *RATING_COLUMNS) if rated else WORTH_COLUMNS
    cuts: Sequence[float | None] = [None] * len(page.rows)
    if page.cut_probabilities is not None:
        cuts = [*(float(each) for each in page.cut_probabilities), None]
    for rank, (row, cut) in enumerate(zip(page.rows, cuts, strict=True), start=1):
        own = vars(row)
        given = {"rank": rank, "item": row.name, "cut_below": cut}
        yield {name: given[name] if name in given else own[name] for name in columns}


def _finite(value: Any) -> Any:
    """The same without infinite numbers, which JSON has no word for: null."""
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _interval(row: ItemRow, decimals: int) -> str:
    _, low, high = row.shown
    if low is None or high is None:
        return ""
    return f"{_number(low, decimals)} to {_number(high, decimals)}"


def _rating_decimals(rows: Sequence[ItemRow]) -> int:
    """None of ratings by the hundred; more of shares."""
    return max(0, 3 - math.floor(math.log10(max(abs(row.shown[0]) for row in rows) or 1.0)))


def _ranks(row: ItemRow) -> str:
    if row.rank_low is None or row.rank_high is None:
        return ""
    return f"{row.rank_low:,}" + ("" if row.rank_low == row.rank_high else f"-{row.rank_high:,}")


def _number(value: float, decimals: int) -> str:
    written = f"{value:.{decimals}f}"
    return written if float(written) else written.lstrip("-")  # no "-0.00"


def _digits(value: float) -> str:
    """Four decimals, or as many digits of what is smaller or larger."""
    return f"{value:.4g}" if 0 < abs(value) < 1e-3 or abs(value) >= 1e4 else _number(value, 4)


def _plain(value: float) -> str:
    return f"{value:,.2f}"


def _seconds(seconds: float) -> str:
    return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:,.0f} s"
