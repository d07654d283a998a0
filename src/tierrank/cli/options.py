"""Arguments and options that several commands have."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from tierrank.cli.messages import STDIN as STDIN

_DATA = "Data"
_MODEL = "Model"

Kind = Annotated[
    str | None,
    typer.Option("--model", metavar="KIND", rich_help_panel=_MODEL, show_default="boosted",
                 help="linear, neural or boosted."),
]  # fmt: skip
Features = Annotated[
    list[str] | None,
    typer.Option(metavar="STEP", rich_help_panel=_MODEL, show_default=False,
                 help="Feature step: impute, standardize, query-scale, second-order, perhaps with "
                 "parameters, as in second-order:threshold=0.1; none for no steps. Repeat for "
                 "several, in their order."),
]  # fmt: skip
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", rich_help_panel=_MODEL, show_default=False,
                 help="Any other constructor argument of the estimator, as in --set trees=500; "
                 "the value is JSON, or else a string. Repeat for several."),
]  # fmt: skip
Seed = Annotated[int, typer.Option(min=0, help="Seed of all that is random.")]
Threads = Annotated[
    int | None, typer.Option(min=1, show_default="all cores", help="Threads to compute with.")
]
Label = Annotated[str, typer.Option(help="Label column of a table.", rich_help_panel=_DATA)]
Query = Annotated[str, typer.Option(help="Query column of a table.", rich_help_panel=_DATA)]
Drop = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMN", rich_help_panel=_DATA, show_default=False,
                 help="Column of a table that is no feature. Repeat for several."),
]  # fmt: skip
Missing = Annotated[
    str,
    typer.Option(metavar="VALUE", rich_help_panel=_DATA,
                 help="What missing values become: keep (for boosted trees, or the step impute), "
                 "or a number."),
]  # fmt: skip
Separator = Annotated[
    str | None,
    typer.Option(metavar="CHARACTER", rich_help_panel=_DATA, show_default="as the name says",
                 help="What stands between two cells of a CSV file, as in ';'."),
]  # fmt: skip
ZeroBased = Annotated[
    bool,
    typer.Option("--zero-based", rich_help_panel=_DATA,
                 help="Feature indices of the LETOR file start at 0, even if no row has a 0."),
]  # fmt: skip
RawCsv = Annotated[
    bool,
    typer.Option("--raw-csv",
                 help="In CSV, write text as it is, also where a spreadsheet would take it for a "
                 "formula; without this it gets ' in front."),
]  # fmt: skip
ModelFolder = Annotated[
    Path, typer.Argument(metavar="MODEL", show_default=False, help="Folder of a trained model.")
]


@dataclass(frozen=True)
class Reading:
    """How data files are to be read.

    Attributes
    ----------
    label, query, drop
        columns of a table
    missing
        "keep", or a number, as typed
    zero_based
        whether the indices of a LETOR file start at 0 for sure
    separator
        what stands between two cells of a CSV file, if it is not what the name says
    weight
        the column of a table that says how much a row's list counts, which is no feature
    """

    label: str = "label"
    query: str = "qid"
    drop: tuple[str, ...] = ()
    missing: str = "keep"
    zero_based: bool = False
    separator: str | None = None
    weight: str | None = None

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


def use_threads(threads: int | None) -> None:
    """Compute with so many threads."""
    if threads is not None:
        import torch

        torch.set_num_threads(threads)


def named(file: Path) -> str:
    """What results call a file."""
    return "standard input" if file == STDIN else str(file)


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

        def called(message: Warning | str) -> str:
            return str(message).replace(str(path), "standard input")

        show = warnings.showwarning
        warnings.showwarning = lambda message, *rest: show(called(message), *rest)
        try:
            yield path
        except ValueError as error:
            raise ValueError(called(str(error))) from None
