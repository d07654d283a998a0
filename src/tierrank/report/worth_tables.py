"""A fitted ranking as a table to read on a terminal, and as CSV and JSON for other programs.

All from the plain data of `AggregationPage`, so that they say the same as the report.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from tierrank.report.aggregation.axis import decimals_of
from tierrank.report.aggregation.content import AggregationPage, ItemRow
from tierrank.report.tables import csv_text, keep_what_fits, plain_table

if TYPE_CHECKING:
    from rich.table import Table

    from tierrank.report.aggregation.from_fit import Parameter

COLUMNS = (
    "rank", "item", "log_worth", "standard_error", "low", "high", "worth", "tier", "cut_below",
    "rank_low", "rank_high", "expected_rank", "top_k",
)  # fmt: skip

# A terminal would obey these, or write backwards from there.
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


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
    decimals = decimals_of(rows)
    columns: dict[str, list[str]] = {
        "rank": [f"{rank:,}" for rank in range(1, len(rows) + 1)],
        "item": [printable(row.name) for row in rows],
        "log-worth": [_number(row.log_worth, decimals) for row in rows],
        f"{100 * page.level:g}% interval": [_interval(row, decimals) for row in rows],
        "worth": [f"{row.worth:#.3g}" for row in rows],
        "tier": [f"{row.tier or ''}" for row in rows],
        "ranks": [_ranks(row) for row in rows],
        f"top {page.top_k}": ["" if row.top_k is None else percent(row.top_k) for row in rows],
    }
    columns = {heading: cells for heading, cells in columns.items() if any(cells)}
    wide = {name: max(map(cell_len, [name, *cells])) for name, cells in columns.items()}
    wide["item"] = 10  # longer ones go on in the next line
    needed = {name: (name, number) for name, number in wide.items()}
    place, interval = f"top {page.top_k}", f"{100 * page.level:g}% interval"
    table = plain_table()
    kept = keep_what_fits(
        table, needed, width, ["worth", "ranks", "tier", place, "rank", interval, "log-worth"]
    )
    for heading in kept:
        if heading == "item":
            table.add_column(heading, overflow="fold", min_width=wide["item"])
        else:
            table.add_column(heading, justify="right", no_wrap=True)
    for cells in zip(*(columns[heading] for heading in kept), strict=True):
        table.add_row(*(Text(cell) for cell in cells))
    return table


def summary_lines(page: AggregationPage, parameters: Sequence[Parameter] = ()) -> list[str]:
    """What was fitted and how it went, for below the table."""
    data, fit = page.connectivity, page.convergence
    lists = f"{_count(data.lists, data.seen[:-1])}, {data.distinct_lists:,} different"
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
    steps = _count(fit.iterations, "pass" if fit.solver == "adagrad" else "iteration")
    lines = [
        f"{_count(data.items, 'item')}; {lists}",
        model,
        f"{fit.solver}: {steps} in {_seconds(fit.seconds)}, {ended}",
    ]
    level = f"{100 * page.level:g}%"
    lines += [
        f"{each.name}: {_number(each.estimate, 4)}, {level} interval {_number(each.low, 4)} to "
        f"{_number(each.high, 4)}"
        for each in parameters
    ]
    scale = "0 is the average item"
    if any(row.low is not None for row in page.rows[:1]):
        scale += f"; {level} intervals by the {page.settings.get('uncertainty', '')}"
    lines.append(f"Log-worths: {scale}")
    if page.tiers == 1:
        lines.append("1 tier: the data do not tell the items apart")
    elif page.tiers:
        lines.append(
            f"{page.tiers:,} tiers: the most probable cuts of the ranking into items of equal worth"
        )
    return lines


def worth_csv(page: AggregationPage, *, raw: bool = False) -> str:
    """A row an item, best first, under `COLUMNS`; what is not there is empty."""
    rows = ([row[name] for name in COLUMNS] for row in _records(page))
    return csv_text([COLUMNS, *rows], raw=raw)


def worth_json(
    page: AggregationPage, parameters: Sequence[Parameter] = (), **about: Any
) -> str:  # fmt: skip
    """What it is about, how the fit went, and the items, best first, under `COLUMNS`."""
    data, fit = asdict(page.connectivity), asdict(page.convergence)
    whole = {
        **about,
        "settings": dict(page.settings),
        "level": page.level,
        "top_k": page.top_k,
        "data": data,
        "fit": {**fit, "history": list(fit["history"])},
        "parameters": [each._asdict() for each in parameters],
        "tier_criterion": page.tier_criterion,
        "notes": list(page.notes),
        "results": list(_records(page)),
    }
    return json.dumps(_finite(whole), indent=1, allow_nan=False, ensure_ascii=False) + "\n"


def printable(text: str) -> str:
    """Text that a terminal shows and does not obey."""
    return _UNPRINTABLE.sub("\ufffd", text) if text.strip() else "(no name)"


def percent(value: float) -> str:
    """A probability in percent, which is 0 or 100 only if it is exactly that."""
    if 0 < value < 0.0005:
        return "<0.1%"
    if 0.9995 <= value < 1:
        return ">99.9%"
    return f"{100 * value:.1f}%"


def _records(page: AggregationPage) -> Iterator[dict[str, Any]]:
    cuts: Sequence[float | None] = [None] * len(page.rows)
    if page.cut_probabilities is not None:
        cuts = [*(float(each) for each in page.cut_probabilities), None]
    for rank, (row, cut) in enumerate(zip(page.rows, cuts, strict=True), start=1):
        own = vars(row)
        given = {"rank": rank, "item": row.name, "cut_below": cut}
        yield {name: given[name] if name in given else own[name] for name in COLUMNS}


def _finite(value: Any) -> Any:
    """The same without infinite numbers, which JSON has no word for: null."""
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _interval(row: ItemRow, decimals: int) -> str:
    if row.low is None or row.high is None:
        return ""
    return f"{_number(row.low, decimals)} to {_number(row.high, decimals)}"


def _ranks(row: ItemRow) -> str:
    if row.rank_low is None or row.rank_high is None:
        return ""
    return f"{row.rank_low:,}" + ("" if row.rank_low == row.rank_high else f"-{row.rank_high:,}")


def _number(value: float, decimals: int) -> str:
    written = f"{value:.{decimals}f}"
    return written if float(written) else written.lstrip("-")  # no "-0.00"


def _plain(value: float) -> str:
    return f"{value:,.2f}"


def _count(number: int, what: str) -> str:
    more = "passes" if what == "pass" else f"{what}s"
    return f"{number:,} {what if number == 1 else more}"


def _seconds(seconds: float) -> str:
    return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:,.0f} s"
