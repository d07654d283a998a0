"""Where in a folder the files of its folds are, told by their names."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from tierrank.data.files import SUFFIXES, DataFileError

N_PARTS = 5  # of LETOR's data sets that come in numbered parts

_ROLES = (("train",), ("vali", "valid", "val", "validation"), ("test",))
_TEXTS = (".txt", ".svm", ".svmlight", ".letor", ".csv", ".tsv")
_ENDS = (*(text + end for text in _TEXTS for end in ("", *SUFFIXES)), ".parquet")
_FOLD = re.compile(r"fold[ _-]?(\d+)", re.IGNORECASE)
_PART = re.compile(r"([A-Za-z])(\d+)")


def fold_folders(folder: Path) -> list[Path]:
    """Give Fold1, Fold2, … in order; none if there is none."""
    by_number: dict[int, list[Path]] = {}
    for path in folder.iterdir():
        if path.is_dir() and (found := _FOLD.fullmatch(path.name)):
            by_number.setdefault(int(found[1]), []).append(path)
    numbers = sorted(by_number)
    if numbers and numbers != list(range(numbers[0], numbers[0] + len(numbers))):
        listed = ", ".join(map(str, numbers))
        raise DataFileError(folder, None, f"has folds {listed}: one between them is missing.")
    return [_only(folder, by_number[number]) for number in numbers]


def train_valid_test(folder: Path) -> list[Path] | None:
    """Give the three files of a fold; None if there is not even one to train on."""
    files: list[Path] = []
    for names in _ROLES:
        wanted = {name + end for name in names for end in _ENDS}
        found = [path for path in _files(folder) if path.name.lower() in wanted]
        if not found and not files:
            return None
        if not found:
            what = f"has no {' or '.join(names)} file, with one of {', '.join(_TEXTS)}, .parquet."
            raise DataFileError(folder, None, what)
        files.append(_only(folder, found))
    return files


def numbered_parts(folder: Path) -> list[Path]:
    """Give five files that are called by a letter and the numbers 1 to 5."""
    parts: dict[str, dict[int, list[Path]]] = {}
    for path in _files(folder):
        stem, _, end = path.name.partition(".")
        if (found := _PART.fullmatch(stem)) and f".{end.lower()}" in _ENDS:
            parts.setdefault(found[1], {}).setdefault(int(found[2]), []).append(path)
    if not parts:
        raise DataFileError(
            folder,
            None,
            "has no folds: they are folders Fold1, Fold2, …, or one train, vali and test file, or "
            f"{N_PARTS} parts such as S1.txt to S{N_PARTS}.txt.",
        )
    if len(parts) > 1:
        letters = " and ".join(sorted(parts))
        raise DataFileError(folder, None, f"has parts {letters}: give each a folder of its own.")
    ((letter, by_number),) = parts.items()
    if sorted(by_number) != list(range(1, N_PARTS + 1)):
        there = ", ".join(f"{letter}{number}" for number in sorted(by_number))
        what = f"has the parts {there}: folds need {letter}1 to {letter}{N_PARTS}, and no other."
        raise DataFileError(folder, None, what)
    return [_only(folder, by_number[number]) for number in sorted(by_number)]


def _files(folder: Path) -> Iterable[Path]:
    return (path for path in folder.iterdir() if path.is_file())


def _only(folder: Path, paths: list[Path]) -> Path:
    if len(paths) > 1:
        names = " and ".join(sorted(path.name for path in paths))
        raise DataFileError(folder, None, f"has both {names}: leave one of them.")
    return paths[0]
