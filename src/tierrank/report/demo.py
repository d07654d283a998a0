"""The page that `tierrank demo` leaves: three doors, what each needs, and what came out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tierrank.report.aggregation import page_environment
from tierrank.storage import replace_file


@dataclass(frozen=True)
class Door:
    """One of the jobs: lines of code, a table of results, and a file or a picture beside it."""

    title: str
    code: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    said: str
    link: str = ""
    link_text: str = ""
    picture: str = ""
    alt: str = ""


def write_demo_page(path: Path, doors: Sequence[Door]) -> None:
    """Write the page, whole or not at all."""
    page = page_environment().get_template("demo.html").render(doors=doors)
    replace_file(path, page.encode())
