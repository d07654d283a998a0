"""The page as a whole: one file, and a policy in it that forbids the browser to fetch anything."""

from __future__ import annotations

import base64
import hashlib
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path

from tierrank.report.aggregation.content import AggregationPage
from tierrank.report.aggregation.fit_facts import (
    connectivity_section,
    convergence_section,
    duration,
    settings_section,
)
from tierrank.report.aggregation.item_table import table_section
from tierrank.report.aggregation.markup import text
from tierrank.report.aggregation.pair_matrix import matrix_section
from tierrank.report.aggregation.ranking_plot import ranking_section
from tierrank.report.aggregation.tier_summary import tiers_section
from tierrank.storage import replace_file


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
    made = made or datetime.now(UTC)
    sections = [
        ranking_section(page),
        table_section(page),
        matrix_section(page),
        tiers_section(page),
        connectivity_section(page),
        convergence_section(page),
    ]
    there = [section for section in sections if section is not None]
    # The last one fills what the others leave of two columns.
    halves = sum(section.shape == "half" for section in there)
    there.append(settings_section(page, made, wide=halves % 2 == 0))
    links = "".join(f'<a href="#{each.name}">{each.name.capitalize()}</a>' for each in there)
    script = _file("page.js")
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_policy(script)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{text(page.title)}</title>\n"
        f"<style>{_file('page.css')}</style></head>\n<body>\n"
        f"<header><h1>{text(page.title)}</h1>{_subtitle(page)}{_facts(page)}{_warnings(page)}"
        f'<nav aria-label="On this page">{links}</nav></header>\n'
        f"<main>\n{''.join(section.html() for section in there)}</main>\n"
        f"<script>{script}</script>\n</body></html>\n"
    )


def _policy(script: str) -> str:
    """Nothing is fetched, and no script runs but ours: not even one hidden in an item's name."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; "
        "base-uri 'none'; form-action 'none'"
    )


def _file(name: str) -> str:
    return files("tierrank.report.aggregation").joinpath(name).read_text(encoding="utf-8")


def _subtitle(page: AggregationPage) -> str:
    return f'<p class="subtitle">{text(page.subtitle)}</p>' if page.subtitle else ""


def _facts(page: AggregationPage) -> str:
    """The few figures to see first."""
    data, fit = page.connectivity, page.convergence
    pairs = [("items", f"{data.items:,}"), (data.seen, f"{data.lists:,}")]
    if page.tiers:
        pairs.append(("tiers", f"{page.tiers:,}"))
    no = '<span class="bad">no</span>'
    pairs.append(("connected", "yes" if data.strongly_connected else no))
    pairs.append(("converged", "yes" if fit.converged else no))
    pairs.append(("fitted in", duration(fit.seconds)))
    tiles = "".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in pairs)
    return f'<dl class="tiles">{tiles}</dl>'


def _warnings(page: AggregationPage) -> str:
    """What makes the numbers below doubtful."""
    warnings = []
    if not page.convergence.converged:
        warnings.append(
            f"The fit did not converge (stopped by: {text(page.convergence.stopped_by)}). "
            "Its numbers are where it stopped, not the best fit."
        )
    if not page.connectivity.strongly_connected:
        warnings.append(
            "The data alone do not compare every item with every other: see "
            '<a href="#data">what the data connect</a>.'
        )
    return "".join(f'<p class="warning" role="note">{warning}</p>' for warning in warnings)
