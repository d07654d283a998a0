"""Where results go: checked before the work, written whole after it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from tierrank.cli.messages import stderr

if TYPE_CHECKING:
    from collections.abc import Callable

STDOUT = Path("-")


@dataclass(frozen=True)
class Places:
    """Files and folders that results are written to; None for what is not wanted.

    Attributes
    ----------
    page, json, csv
        files; of the last two one may be `STDOUT`
    model
        a folder
    """

    page: Path | None = None
    json: Path | None = None
    csv: Path | None = None
    model: Path | None = None

    def check(self) -> None:
        """Refuse what cannot be written to, or would be written twice."""
        if self.page is not None and self.page.suffix.lower() not in (".html", ".htm"):
            raise typer.BadParameter(f"--out: the report is a .html file, and {self.page} is none")
        if self.json == STDOUT and self.csv == STDOUT:
            raise typer.BadParameter(
                "--json - and --csv - would both write to standard output: name a file for one"
            )
        named = {"--out": self.page, "--json": self.json, "--csv": self.csv}
        seen: dict[Path, str] = {}
        for option, path in named.items():
            if path is None or path == STDOUT:
                continue
            check_file(path, option)
            other = seen.setdefault(path.absolute(), option)
            if other != option:
                raise typer.BadParameter(f"{other} and {option} would write the same file, {path}")
        if self.model is not None and self.model.exists() and not self.model.is_dir():
            raise typer.BadParameter(f"--save takes a folder, and {self.model} is a file")

    @property
    def takes_stdout(self) -> bool:
        """Whether standard output is for another program."""
        return STDOUT in (self.json, self.csv)


def check_file(path: Path, option: str) -> None:
    """Refuse a place where no file can be written: better known before the work than after it."""
    if path.is_dir():
        raise typer.BadParameter(f"{option}: {path} is a folder, give the name of a file")
    if path.exists() and not path.is_file():
        return  # a device or a pipe
    from tempfile import TemporaryFile

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        raise typer.BadParameter(
            f"{option}: nothing can be written there: {path}: {error.strerror}"
        ) from None


def write(path: Path | None, what: str, content: Callable[[], str]) -> None:
    """Write text to a file, whole or not at all, and say so; or to standard output."""
    from tierrank.storage import replace_file

    if path is None:
        return
    if path == STDOUT:
        typer.echo(content(), nl=False)
        return
    replace_file(path, content().encode("utf-8", errors="backslashreplace"))
    said(what, path)


def said(what: str, path: Path) -> None:
    """Say where something is."""
    stderr().print(f"{what} is in {path}", markup=False, soft_wrap=True)
