"""Arguments and options that several commands have."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tierrank.cli.messages import STDIN as STDIN
from tierrank.cli.messages import said, spelled

if TYPE_CHECKING:
    from tierrank.ranking.comparison import Standing

STDOUT = Path("-")


def option(
    help: str, *names: str, panel: str | None = None, default: str | bool = True, **more: Any
) -> Any:
    """An option: what it is for, its names if they are not its parameter's, its panel, what to show
    as its default, and limits or a metavar.
    """
    return typer.Option(*names, help=help, rich_help_panel=panel, show_default=default, **more)


def argument(help: str, **more: Any) -> Any:
    """An argument of a command."""
    return typer.Argument(help=help, **more)


DATA = "Data"
MODEL = "Model"
VALID = "Validation"

# fmt: off
Kind = Annotated[str | None, option(
    "linear, neural or boosted.", "--model", metavar="KIND", panel=MODEL, default="boosted")]
Features = Annotated[list[str] | None, option(
    "Feature step: impute, standardize, query-scale, second-order, perhaps with parameters, as in "
    "second-order:threshold=0.1; none for no steps. Repeat for several, in their order.",
    metavar="STEP", panel=MODEL)]
Valid = Annotated[Path | None, option(
    "Validation data: the best step by them is kept.", metavar="FILE", panel=VALID)]
Seed = Annotated[int, option("Seed of all that is random.", min=0)]
Threads = Annotated[int | None, option("Threads to compute with.", min=1, default="all cores")]
Fold = Annotated[int | None, option("Which fold of a folder that has several.", min=1, panel=DATA)]
Separator = Annotated[str | None, option(
    "What stands between two cells of a CSV file, as in ';'.", metavar="CHARACTER", panel=DATA,
    default="as the name says")]
RawCsv = Annotated[bool, option(
    "In CSV, write text as it is, also where a spreadsheet would take it for a formula; without "
    "this it gets ' in front.", "--raw-csv")]
ModelFolder = Annotated[Path, argument("Folder of a trained model.", metavar="MODEL")]
Out = Annotated[Path, option("Folder for the model, its curve and checkpoints.")]
Resume = Annotated[bool, option("Go on with a training that was stopped.", "--resume")]
Overwrite = Annotated[
    bool, option("Replace the model or training that is in --out.", "--overwrite")
]
# fmt: on


@dataclass(frozen=True)
class Reading:
    """How files of labelled rows are to be read."""

    # fmt: off
    label: Annotated[str, option("Label column of a table.", panel=DATA)] = "label"
    query: Annotated[str, option("Query column of a table.", panel=DATA)] = "qid"
    drop: Annotated[list[str] | None, option(
        "Column of a table that is no feature. Repeat for several.", metavar="COLUMN", panel=DATA
    )] = None
    missing: Annotated[str, option(
        "What missing values become: keep (for boosted trees, or the step impute), or a number.",
        metavar="VALUE", panel=DATA)] = "keep"
    separator: Separator = None
    zero_based: Annotated[bool, option(
        "Feature indices of the LETOR file start at 0, even if no row has a 0.", "--zero-based",
        panel=DATA)] = False
    # fmt: on

    def __post_init__(self) -> None:
        self.fill()  # refuses what is no number

    def fill(self) -> float | None:
        """What missing values become; None to keep them."""
        if self.missing == "keep":
            return None
        try:
            return float(self.missing)
        except ValueError:
            raise ValueError(f"--missing is keep or a number, not {self.missing!r}.") from None

    @property
    def weight(self) -> str | None:
        """The column of a table that says how much a row's list counts, which is no feature."""
        return None

    def columns(self) -> dict[str, object]:
        """What is said of columns that only a table has, by option."""
        return {"--drop": self.drop, "--separator": self.separator, "--weight-column": self.weight}


@dataclass(frozen=True)
class Standings:
    """How the standings of rankers are written, if not as a table to read."""

    as_json: Annotated[bool, option("Write JSON.", "--json")] = False
    as_csv: Annotated[bool, option("Write CSV.", "--csv")] = False
    raw_csv: RawCsv = False

    def __post_init__(self) -> None:
        if self.as_json and self.as_csv:
            raise typer.BadParameter("--json or --csv: give one of them")

    def write(self, standings: Sequence[Standing], **about: Any) -> bool:
        """Write them, with what they are about; False if a table is wanted."""
        from tierrank.report.tables import standings_csv, standings_json

        if self.as_json:
            typer.echo(standings_json(standings, **about), nl=False)
        elif self.as_csv:
            typer.echo(standings_csv(standings, raw=self.raw_csv), nl=False)
        return self.as_json or self.as_csv


def check_rankers(rankers: Sequence[Path], data: Path) -> None:
    """Refuse a ranker that is given twice, and a model where the data should be."""
    if (data / "model.json").is_file():
        raise ValueError(f"{data}: is a model. The data come last: RANKER... DATA.")
    for number, ranker in enumerate(rankers):
        if ranker in rankers[:number]:
            raise ValueError(f"{named(ranker)} is given twice.")


def check_choice(*, resume: bool, overwrite: bool) -> None:
    """Refuse to go on and to begin anew."""
    if resume and overwrite:
        raise typer.BadParameter("--resume goes on, --overwrite begins anew: give one of them")


def use_threads(threads: int | None) -> None:
    """Compute with so many threads."""
    if threads is not None:
        import torch

        torch.set_num_threads(threads)


def named(file: Path) -> str:
    """What results call a file."""
    return "standard input" if file == STDIN else str(file)


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


def suffix_of(start: bytes, lists: bool = False) -> str:
    """How the name of a file would end, by how it begins; LETOR's, scores' and PrefLib's: "".

    `lists` is whether it has lists or games, and no rows or scores.
    """
    if start.startswith(b"PAR1"):
        return ".parquet"
    lines = start.removeprefix(b"\xef\xbb\xbf").splitlines()
    filled = (each.lstrip(b" ") for each in lines if each.strip())
    line = next((each for each in filled if lists or not each.startswith(b"#")), b"")
    if lists and line.startswith((b"[", b"{")):
        return ".jsonl"
    if line.startswith(b"#") if lists else _is_row_or_score(line):
        return ""
    return ".tsv" if b"\t" in line and b"," not in line else ".csv"


def _is_row_or_score(line: bytes) -> bool:
    """Whether it is LETOR's, or one number; so is nothing."""
    try:
        float(line.split()[0] if line else 0)
        return True
    except ValueError:
        return b"qid:" in line


@contextmanager
def on_disk(file: Path, lists: bool = False) -> Iterator[Path]:
    """The path to read from; standard input (-) is kept in a file for so long.

    Its name ends as it begins (`suffix_of`), and messages call it standard input.
    """
    if file != STDIN:
        yield file
        return
    from tierrank.data.files import beginning
    from tierrank.storage import replace_file

    content = sys.stdin.buffer.read()
    start, packed = beginning(content)
    with TemporaryDirectory() as folder, warnings.catch_warnings():
        path = Path(folder, f"standard input{suffix_of(start, lists)}{packed}")
        replace_file(path, content)  # which names it, if there is no room

        def called(message: object) -> str:
            return spelled(message).replace(str(path), "standard input")

        show = warnings.showwarning
        warnings.showwarning = lambda message, *rest: show(called(message), *rest)
        try:
            yield path
        except ValueError as error:
            raise ValueError(called(error)) from None
