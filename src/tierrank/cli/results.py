"""What `tierrank aggregate` computes and shows, and where it goes: table, files, page and card."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tierrank import names
from tierrank.cli import options
from tierrank.cli.options import STDIN, STDOUT, option, said, stdout, waiting, write

if TYPE_CHECKING:
    from tierrank.aggregation.next_pairs import NextPairs
    from tierrank.aggregation.results import FittedWorths
    from tierrank.report.aggregation import AggregationPage, Look

SHOWN = 50  # items of the table, unless --top says otherwise

_OUT, _PAGE = "Results", "The report"
_TITLE = re.compile(rb"^#\s*TITLE:[ \t]*(.*?)[ \t\r]*$", re.MULTILINE)


@dataclass(frozen=True)
class Published:
    """How the page looks, and what it says of the items beside their worths."""

    # fmt: off
    items: Annotated[Path | None, option(
        "A table with a column item, and link (where a name leads to, http or https) or group (by "
        "which the page can be filtered), or both.", metavar="FILE", panel=_PAGE)] = None
    logo: Annotated[Path | None, option(
        "A PNG, JPEG or SVG beside the title; it is put into the page.", metavar="FILE",
        panel=_PAGE)] = None
    accent: Annotated[str | None, option(
        "Colour of dots and links, as in #0b5aa6; darkened or lightened as far as it takes to be "
        "read.", metavar="COLOUR", panel=_PAGE)] = None
    card: Annotated[Path | None, option(
        "Also draw a picture for sharing, 1200 × 630.", metavar="CARD.png", panel=_PAGE)] = None
    # fmt: on

    def __post_init__(self) -> None:
        if self.card is not None:
            options.check_picture(self.card, "--card", (".png",))
        if self.logo is not None or self.accent is not None:
            self.look()  # refuses a bad one before the work
        if self.items is not None:
            self.items.stat()  # refuses one that is not there

    def look(self) -> Look:
        """Logo and colour, read and checked."""
        from tierrank.report.aggregation import Look

        return Look.of(self.logo, self.accent)

    def about(self, names: Any) -> dict[str, Any]:
        """`links` and `groups` of these items, as far as the table names them."""
        if self.items is None:
            return {}
        from tierrank.data import DataFileError
        from tierrank.data.files import shown
        from tierrank.data.tables.opening import open_table
        from tierrank.report.content import is_link

        with open_table(self.items) as table:
            at_item = table.find("item", "items")
            columns = {each: table.find(each, "items") for each in ("link", "group")
                       if each in table.names}  # fmt: skip
            if not columns:
                table.refuse("has neither a column link nor one group beside item: give one.")
            table.load(at_item, *columns.values())
            keys = table.keys(at_item, "item")
            words = [str(key) for key in keys.keys[keys.codes].tolist()]
            found = {}
            for each, at in columns.items():
                codes, values = table.distinct(at, each)
                texts = ["" if value is None else str(value).strip() for value in values]
                for code, text in enumerate(texts):
                    if each == "link" and text and not is_link(text):
                        table.refuse(
                            f"the link is {shown(text)}: give an address that begins with https:// "
                            "or http://, without spaces.", row=int((codes == code).argmax()), at=at,
                        )  # fmt: skip
                found[f"{each}s"] = {
                    word: texts[code] for word, code in zip(words, codes.tolist(), strict=True)
                }
        if not set(words) & {str(name) for name in names}:
            raise DataFileError(
                self.items, None,
                f"names none of the items, such as {names[0]!s}: its column item has {words[0]!r}.",
            )  # fmt: skip
        return found

    def draw_card(self, page: AggregationPage) -> None:
        """Write the card, if one is asked for."""
        if self.card is None:
            return
        from tierrank.report.plots import card_png
        from tierrank.storage import replace_file

        replace_file(self.card, card_png(page, self.look()))
        said("The card", self.card)


@dataclass(frozen=True)
class Results:
    """What is computed and shown, and where it goes: checked before the work."""

    # fmt: off
    top: Annotated[int | None, option(
        "Items that the table shows.", min=1, panel=_OUT, default=f"all, or the first {SHOWN}"
    )] = None
    level: Annotated[float, option("How sure intervals are.", panel=_OUT)] = 0.95
    by: Annotated[str | None, option(
        "One ranking for each value of a column, such as a category or a language: a table each, "
        "and tabs of the report.", metavar="COLUMN", panel=_OUT)] = None
    scale: Annotated[str, option(
        "How worths are told: log-worth; elo, ratings as in chess, 400 / ln 10 points a log-worth; "
        "or worth, the probability to be the first of all.", metavar="NAME", panel=_OUT
    )] = "log-worth"
    anchor: Annotated[str | None, option(
        "The item at 0, and at 1000 of ratings, or ITEM=RATING; intervals are of the difference "
        "from it.", metavar="ITEM", panel=_OUT, default="the average item")] = None
    top_k: Annotated[int | None, option(
        "Also show the probability of a place among the first K of a ranking.", min=1, metavar="K",
        panel=_OUT)] = None
    no_tiers: Annotated[bool, option(
        "Do not cut the ranking into tiers of items that the data do not tell apart.", "--no-tiers",
        panel=_OUT)] = False
    out: Annotated[Path | None, option(
        "Write a report: one HTML file that needs no network.", metavar="REPORT.html", panel=_OUT
    )] = None
    title: Annotated[str | None, option(
        "Title of the report.", panel=_OUT, default="the file's own, or its name")] = None
    json: Annotated[Path | None, option(
        "Write all results as JSON; - for standard output, in place of the table.", metavar="FILE",
        panel=_OUT)] = None
    csv: Annotated[Path | None, option(
        "Write a row an item as CSV; - for standard output.", metavar="FILE", panel=_OUT)] = None
    raw_csv: options.RawCsv = False
    plot: Annotated[Path | None, option(
        "With --time: draw the log-worths of the first items over time, as .png, .svg or .pdf.",
        metavar="FILE", panel=_OUT)] = None
    next_pairs: Annotated[int | None, option(
        "Also say which pairs to ask next, in N games, to be surest of the first places; with "
        "--csv FILE.csv they are in FILE-next-pairs.csv.", min=1, metavar="N", panel=_OUT)] = None
    next_top: Annotated[int, option(
        "With --next-pairs: how many first places.", min=1, metavar="K", panel=_OUT)] = 10
    save: Annotated[Path | None, option(
        "Save the fitted model, for tierrank.load.", metavar="FOLDER", panel=_OUT)] = None
    # fmt: on

    def __post_init__(self) -> None:
        if self.out is not None and self.out.suffix.lower() not in (".html", ".htm"):
            raise typer.BadParameter(f"--out: the report is a .html file, and {self.out} is none")
        if self.json == STDOUT and self.csv == STDOUT:
            raise typer.BadParameter(
                "--json - and --csv - would both write to standard output: name a file for one"
            )
        if self.plot is not None:
            options.check_picture(self.plot, "--plot")
        for name, path in self.files.items():
            options.check_file(path, name)
        if self.save is not None and self.save.exists() and not self.save.is_dir():
            raise typer.BadParameter(f"--save takes a folder, and {self.save} is a file")
        names.check_scale(self.scale)
        if self.anchor is not None and self.scale == "worth":
            raise ValueError(
                "--anchor: worths sum to 1 and have none. It is for --scale elo and log-worths."
            )
        if not 0 < self.level < 1:
            hint = f", as in --level {self.level / 100:g}" if 1 < self.level < 100 else ""
            raise typer.BadParameter(f"--level is between 0 and 1{hint}, not {self.level:g}")

    @property
    def files(self) -> dict[str, Path]:
        """What is written beside the table, by option."""
        files = {"--out": self.out, "--json": self.json, "--csv": self.csv, "--plot": self.plot}
        return {name: path for name, path in files.items() if path is not None and path != STDOUT}

    def check_apart(self, published: Published) -> None:
        """Refuse two options that would write the same file."""
        seen: dict[Path, str] = {}
        card = {} if published.card is None else {"--card": published.card}
        for name, path in (self.files | card).items():
            other = seen.setdefault(path.absolute(), name)
            if other != name:
                raise typer.BadParameter(f"{other} and {name} would write the same file, {path}")

    def chosen(self, fitted: FittedWorths) -> NextPairs | None:
        """The pairs to ask next, if anybody wants to know."""
        if self.next_pairs is None:
            return None
        with waiting("Choosing pairs"):
            return fitted.next_pairs(self.next_pairs, top=self.next_top)

    def show(
        self,
        fitted: Any,
        page: AggregationPage | Mapping[str, AggregationPage],
        file: Path,
        published: Published,
        *,
        of: str = "group",
    ) -> None:
        """Write what was asked for, and print the table unless standard output is taken.

        Several pages, each with a name of a kind `of`, are tabs, rows and tables.
        """
        from tierrank.report import tables
        from tierrank.report.aggregation import page_html

        if self.save is not None:
            from tierrank.storage import save

            said("The model", save(fitted, self.save))
        pages = page if isinstance(page, Mapping) else {"": page}
        write(self.out, "The report", lambda: page_html(page, look=published.look()))
        published.draw_card(next(iter(pages.values())))
        write(self.json, "JSON", lambda: tables.worth_json(page, of=of, file=str(file)))
        write(self.csv, "CSV", lambda: tables.worth_csv(page, of=of, raw=self.raw_csv))
        if hasattr(fitted, "coef_") and self.csv not in (None, STDOUT):
            beside = self.csv.with_name(f"{self.csv.stem}-coefficients.csv")
            write(beside, "CSV of coefficients", lambda: tables.parameter_csv(pages[""]))
        if self.plot is not None:
            from tierrank.report.plots import plot_through_time

            plot_through_time(self.plot, fitted, level=self.level, title=self.title or file.stem)
            said("The plot", self.plot)
        through_time = any(each.curves is not None for each in pages.values())
        if through_time and self.csv not in (None, STDOUT):
            beside = self.csv.with_name(f"{self.csv.stem}-through-time.csv")
            write(beside, "CSV of curves",
                  lambda: tables.curves_csv(page, of=of, raw=self.raw_csv))  # fmt: skip
        if STDOUT in (self.json, self.csv):
            return
        console = stdout()
        shown = self.top or SHOWN
        for number, (name, each) in enumerate(pages.items()):
            if number:
                console.print()
            if name:
                console.print(tables.printable(name), markup=False)
            console.print(tables.worth_table(each, shown, console.width))
            if shown < len(each.rows):
                console.print(f"and {len(each.rows) - shown:,} more; --top and --csv show them")
            for line in tables.summary_lines(each):
                console.print(line, markup=False)

    def show_pairs(self, found: NextPairs) -> None:
        """Print and write the pairs to ask next."""
        from tierrank.aggregation.next_pairs import NextPair
        from tierrank.report.tables import csv_text, printable

        if self.csv not in (None, STDOUT):
            beside = self.csv.with_name(f"{self.csv.stem}-next-pairs.csv")
            rows = [NextPair._fields, *found]
            write(beside, "CSV of pairs", lambda: csv_text(rows, raw=self.raw_csv))
        if STDOUT not in (self.json, self.csv):
            for line in found.lines(self.top or SHOWN):
                stdout().print(printable(line), markup=False, soft_wrap=True)


def own_title(file: Path) -> str:
    """What a file of PrefLib calls itself; "" where there is nothing."""
    from tierrank.data.files import read_bytes, without_compression
    from tierrank.data.rankings.preflib import SUFFIXES

    if file == STDIN or without_compression(file).suffix not in SUFFIXES or not file.is_file():
        return ""
    found = _TITLE.search(read_bytes(file)[:100_000])
    return found[1].decode("utf-8", errors="replace") if found else ""


def command_line() -> str:
    """What was typed, with files by their names: folders are nobody's business."""
    program = Path(sys.argv[0])
    if program.stem not in ("tierrank", "__main__"):
        return ""
    return shlex.join(["tierrank", *map(_without_folders, sys.argv[1:])])


def _without_folders(word: str) -> str:
    """A file that somebody typed, also as in --out=FILE, by its name; all else as it is."""
    option, equals, value = word.partition("=") if word.startswith("--") else ("", "", word)
    path = Path(value)
    somewhere = path.parent != Path() and path.parent.is_dir()
    return f"{option}{equals}{path.name}" if somewhere else word
