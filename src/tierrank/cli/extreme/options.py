"""Arguments and options that several of the commands have."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

_DATA = "Data"

Labels = Annotated[
    Path | None,
    typer.Option(metavar="FILE", rich_help_panel=_DATA, show_default=False,
                 help="The labels of DATA, if they are in a file of their own."),
]  # fmt: skip
Split = Annotated[
    Path | None,
    typer.Option(metavar="FILE", rich_help_panel=_DATA, show_default=False,
                 help="Take only the rows of DATA that this file numbers, from 1."),
]  # fmt: skip
SplitColumn = Annotated[
    int,
    typer.Option(min=0, metavar="N", rich_help_panel=_DATA,
                 help="Which column of the split file, from 0."),
]  # fmt: skip
OneBased = Annotated[
    bool,
    typer.Option("--one-based", rich_help_panel=_DATA,
                 help="Features in text files are numbered from 1, as LIBSVM does; labels never "
                 "are."),
]  # fmt: skip
Propensity = Annotated[
    float,
    typer.Option(metavar="WEIGHT",
                 help="Add so many times log(1/p) to the score of a label of propensity p: with "
                 "1, rare labels rise as PSP counts them."),
]  # fmt: skip

FEATURES_AND_LABELS = (
    "Text of the XC repository, with features and labels (also .gz, .xz, .bz2); or features alone, "
    "as text or .npz, with --labels."
)


@dataclass(frozen=True)
class Source:
    """Where rows are, and how to read them.

    Attributes
    ----------
    data, labels
        the file, and that of the labels if they are apart
    split, split_column
        which rows to take; None: all
    one_based
        whether features in text are numbered from 1
    """

    data: Path
    labels: Path | None = None
    split: Path | None = None
    split_column: int = 0
    one_based: bool = False
