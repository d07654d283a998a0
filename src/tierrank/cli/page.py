"""Options of the page that `tierrank aggregate --out` writes: its look, and what items are."""

from __future__ import annotations

import re
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from tierrank.cli import options
from tierrank.cli.options import STDIN, option, said

if TYPE_CHECKING:
    from tierrank.report.aggregation import AggregationPage
    from tierrank.report.look import Look

_PAGE = "The report"
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
        self.look()  # refuses a bad one before the work

    def look(self) -> Look:
        """Logo and colour, read and checked."""
        from tierrank.report.look import Look

        return Look.of(self.logo, self.accent)

    def about(self, names: Any) -> dict[str, Any]:
        """`links` and `groups` of these items, as far as the table names them."""
        if self.items is None:
            return {}
        from tierrank.data import DataFileError
        from tierrank.data.tables.opening import open_table

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
    words = [Path(word).name if "/" in word and not word.startswith("-") else word
             for word in sys.argv[1:]]  # fmt: skip
    return shlex.join(["tierrank", *words])
