"""One page of HTML that holds everything: tables, the plot, settings. It asks no network."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from html import escape
from typing import NamedTuple

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 68rem; margin: 2rem auto; padding: 0 1rem;
  color: #222; background: #fff; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.2rem; margin-top: 2.2rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .7rem; text-align: right; white-space: nowrap; }
th:first-child, td:first-child, .words td { text-align: left; white-space: normal; }
.words th { text-align: left; }
thead th { border-bottom: 2px solid #444; } tbody tr:nth-child(even) { background: #f4f4f4; }
td small { color: #666; }
td.printed { color: #666; border-right: 1px solid #ccc; }
tr.ours td:first-child { font-style: italic; }
b { color: #0b5394; }
img { max-width: 100%; height: auto; }
"""


class Cell(NamedTuple):
    """A cell of a table: what it says, smaller print after it, and how it looks."""

    text: str
    small: str = ""
    kind: str = ""  # a class of the style sheet
    best: bool = False

    def html(self) -> str:
        text = f"<b>{escape(self.text)}</b>" if self.best else escape(self.text)
        small = f" <small>{escape(self.small)}</small>" if self.small else ""
        return f"<td{_class(self.kind)}>{text}{small}</td>"


class Table(NamedTuple):
    """A table with a heading. `groups` are headings over several columns, with their widths."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    groups: Sequence[tuple[str, int]] = ()
    text: str = ""
    kind: str = ""
    row_kinds: Sequence[str] = ()  # a class of the style sheet for each row

    def html(self) -> str:
        heads = []
        if self.groups:
            heads.append(
                "".join(f'<th colspan="{n}">{escape(name)}</th>' for name, n in self.groups)
            )
        heads.append("".join(f"<th>{escape(name)}</th>" for name in self.columns))
        kinds = self.row_kinds or [""] * len(self.rows)
        body = [
            f"<tr{_class(kind)}>{''.join(cell.html() for cell in row)}</tr>"
            for row, kind in zip(self.rows, kinds, strict=True)
        ]
        return "\n".join(
            [
                f"<h2>{escape(self.title)}</h2>",
                *([f"<p>{escape(self.text)}</p>"] if self.text else []),
                f'<div class="wide"><table{_class(self.kind)}>',
                "<thead>",
                *(f"<tr>{head}</tr>" for head in heads),
                "</thead>",
                "<tbody>",
                *body,
                "</tbody>",
                "</table></div>",
            ]
        )

    def markdown(self) -> str:
        """The table as the docs have it; the best is bold."""
        heads = [name for name, width in self.groups for _ in range(width)]
        heads = heads or [""] * len(self.columns)
        names = [f"{head} {name}".strip() for head, name in zip(heads, self.columns, strict=True)]
        rows = [names, ["---", *["---:"] * (len(names) - 1)]]
        for row in self.rows:
            texts = [
                f"{cell.text} {f'({cell.small})' if cell.small else ''}".strip() for cell in row
            ]
            rows.append([f"**{t}**" if c.best else t for t, c in zip(texts, row, strict=True)])
        lines = [f"| {' | '.join(cells)} |" for cells in rows]
        return "\n".join([f"**{self.title}**", "", *lines, ""])


def _class(kind: str) -> str:
    return f' class="{escape(kind)}"' if kind else ""


def facts(title: str, known: Mapping[str, str]) -> Table:
    """A table of names and what they are."""
    rows = [[Cell(name), Cell(value)] for name, value in known.items()]
    return Table(title, ["what", "which"], rows, kind="words")


def page(
    title: str,
    introduction: Sequence[str],
    tables: Sequence[Table],
    plot: bytes,
    caption: str,
    notes: Sequence[str],
    about: Sequence[Table],
) -> str:
    """The whole page.

    Parameters
    ----------
    introduction
        paragraphs
    tables
        results, ours beside the printed ones
    plot, caption
        a PNG, and what it shows
    notes
        what a reader must know to judge the figures
    about
        settings and machine, at the end
    """
    image = base64.b64encode(plot).decode("ascii")
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(title)}</title>",
            f"<style>{STYLE}</style>",
            "</head>",
            "<body>",
            f"<h1>{escape(title)}</h1>",
            *(f"<p>{escape(text)}</p>" for text in introduction),
            *(table.html() for table in tables),
            "<h2>Plot</h2>",
            f'<p><img src="data:image/png;base64,{image}" alt="{escape(caption)}"></p>',
            f"<p>{escape(caption)}</p>",
            "<h2>Notes</h2>",
            "<ul>",
            *(f"<li>{escape(note)}</li>" for note in notes),
            "</ul>",
            *(table.html() for table in about),
            "</body>",
            "</html>",
            "",
        ]
    )
