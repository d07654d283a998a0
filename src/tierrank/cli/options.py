"""Arguments and options that several commands have."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from tierrank.cli.messages import STDIN as STDIN
from tierrank.cli.messages import said, spelled

STDOUT = Path("-")

DATA = "Data"
MODEL = "Model"
VALID = "Validation"

Kind = Annotated[
    str | None,
    typer.Option("--model", metavar="KIND", rich_help_panel=MODEL, show_default="boosted",
                 help="linear, neural or boosted."),
]  # fmt: skip
Features = Annotated[
    list[str] | None,
    typer.Option(metavar="STEP", rich_help_panel=MODEL, show_default=False,
                 help="Feature step: impute, standardize, query-scale, second-order, perhaps with "
                 "parameters, as in second-order:threshold=0.1; none for no steps. Repeat for "
                 "several, in their order."),
]  # fmt: skip
Valid = Annotated[
    Path | None,
    typer.Option(metavar="FILE", rich_help_panel=VALID, show_default=False,
                 help="Validation data: the best step by them is kept."),
]  # fmt: skip
Seed = Annotated[int, typer.Option(min=0, help="Seed of all that is random.")]
Threads = Annotated[
    int | None, typer.Option(min=1, show_default="all cores", help="Threads to compute with.")
]
Fold = Annotated[
    int | None,
    typer.Option(min=1, rich_help_panel=DATA, show_default=False,
                 help="Which fold of a folder that has several."),
]  # fmt: skip
Separator = Annotated[
    str | None,
    typer.Option(metavar="CHARACTER", rich_help_panel=DATA, show_default="as the name says",
                 help="What stands between two cells of a CSV file, as in ';'."),
]  # fmt: skip
RawCsv = Annotated[
    bool,
    typer.Option("--raw-csv",
                 help="In CSV, write text as it is, also where a spreadsheet would take it for a "
                 "formula; without this it gets ' in front."),
]  # fmt: skip
AsJson = Annotated[bool, typer.Option("--json", help="Write JSON.")]
AsCsv = Annotated[bool, typer.Option("--csv", help="Write CSV.")]
ModelFolder = Annotated[
    Path, typer.Argument(metavar="MODEL", show_default=False, help="Folder of a trained model.")
]
Out = Annotated[
    Path,
    typer.Option(show_default=False, help="Folder for the model, its curve and checkpoints."),
]
Resume = Annotated[bool, typer.Option("--resume", help="Go on with a training that was stopped.")]
Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Replace the model or training that is in --out.")
]


@dataclass(frozen=True)
class Reading:
    """How files of labelled rows are to be read."""

    # fmt: off
    label: Annotated[
        str, typer.Option(help="Label column of a table.", rich_help_panel=DATA)
    ] = "label"
    query: Annotated[
        str, typer.Option(help="Query column of a table.", rich_help_panel=DATA)
    ] = "qid"
    drop: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", rich_help_panel=DATA, show_default=False,
                     help="Column of a table that is no feature. Repeat for several."),
    ] = None
    missing: Annotated[
        str,
        typer.Option(metavar="VALUE", rich_help_panel=DATA, help="What missing values become: "
                     "keep (for boosted trees, or the step impute), or a number."),
    ] = "keep"
    separator: Separator = None
    zero_based: Annotated[
        bool,
        typer.Option("--zero-based", rich_help_panel=DATA, help="Feature indices of the LETOR "
                     "file start at 0, even if no row has a 0."),
    ] = False
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
