"""`tierrank predict` and `tierrank export`: a trained model used, here or elsewhere."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tierrank.cli import options
from tierrank.cli.options import app, argument, explained, option, stderr, stdout
from tierrank.names import EXPORTS, export_format

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tierrank._types import FloatArray, IntArray
    from tierrank.data import RankingData

_BLOCK = 1 << 14  # rows that become text at once


@app.command()
@explained
def predict(
    model: options.ModelFolder,
    data: Annotated[Path, argument(
        "LETOR or svmlight file, or a CSV or Parquet table, which needs no label column; - for "
        "standard input.", metavar="DATA")],
    out: Annotated[Path | None, option(
        "Where to write. A name that ends in .csv gets the columns qid, row, score and rank.",
        metavar="FILE", default="standard output")] = None,
    raw_csv: options.RawCsv = False,
    *,
    how: options.Reading,
    threads: options.Threads = None,
) -> None:  # fmt: skip
    """Score rows: one number a line, in the order of the rows; higher is better in a query."""
    from tierrank.cli.inputs import load_ranker, read_for_model, scores_of
    from tierrank.storage import replace_file

    if out is not None:
        options.check_file(out, "--out")
    options.use_threads(threads)
    ranker = load_ranker(model)
    with options.on_disk(data) as file:
        rows = read_for_model(file, ranker, how)
    scores = scores_of(ranker, rows)
    if out is None:
        for block in _lines(scores):
            sys.stdout.write(block)
        sys.stdout.flush()
        return
    table = out.suffix.lower() == ".csv"
    text = _csv(rows, scores, raw_csv) if table else "".join(_lines(scores))
    replace_file(out, text.encode())
    stderr().print(f"{len(scores):,} scores are in {out}", markup=False, soft_wrap=True)


def _lines(scores: FloatArray) -> Iterator[str]:
    """Scores as Python writes them: read again, they are the same to the last bit."""
    for start in range(0, len(scores), _BLOCK):
        yield "".join(f"{score!r}\n" for score in scores[start : start + _BLOCK].tolist())


def _csv(rows: RankingData, scores: FloatArray, raw: bool) -> str:
    from tierrank.report.tables import csv_text

    numbers = range(1, len(scores) + 1)
    ranks = ranks_of(rows, scores).tolist()
    cells = zip(rows.qid.tolist(), numbers, scores.tolist(), ranks, strict=True)
    return csv_text([["qid", "row", "score", "rank"], *cells], raw=raw)


def ranks_of(rows: RankingData, scores: FloatArray) -> IntArray:
    """[rows] the place of each row in its query, from 1; of equal scores the first row is first."""
    import numpy as np

    from tierrank.tiers.arrays import group_rows

    query, keys = group_rows(rows.qid, len(rows))
    order = np.lexsort((-scores, query))  # stable
    starts = np.concatenate([[0], np.cumsum(np.bincount(query, minlength=len(keys)))])
    ranks = np.empty(len(rows), dtype=np.int64)
    ranks[order] = np.arange(len(rows)) - starts[query[order]] + 1
    return ranks


@app.command()
@explained
def export(
    model: options.ModelFolder,
    out: Annotated[Path, argument("The file to write.", metavar="OUT")],
    to: Annotated[str | None, option(
        f"Format: {', '.join(EXPORTS)}.", metavar="FORMAT",
        default="as the ending of OUT says")] = None,
    feature_names: Annotated[Path | None, option(
        "File of what the engine calls the features, a name a line.", metavar="FILE",
        default="names of the columns, or f0, f1, …")] = None,
    missing_as_zero: Annotated[bool, option(
        "For ranklib: features are never missing, or are 0 then.", "--missing-as-zero")] = False,
) -> None:  # fmt: skip
    """Write the scorer of a model for other programs: ONNX, or what search engines read."""
    try:
        to = to if out.is_dir() else export_format(to, out)
    except ValueError as error:
        raise typer.BadParameter(options.spelled(error)) from None
    names = None if feature_names is None else _names(feature_names)

    from tierrank.cli.inputs import load_ranker
    from tierrank.ranking.export import export as write

    write(load_ranker(model), out, to, feature_names=names, missing_as_zero=missing_as_zero)
    stdout().print(f"The scorer is in {out}", markup=False, soft_wrap=True)
    if to == "solr":
        beside = out.with_suffix(".features.json")
        stdout().print(f"Its features are in {beside}", markup=False, soft_wrap=True)


def _names(file: Path) -> list[str]:
    """The names in a file, a line each."""
    from tierrank.data.files import DataFileError, read_bytes

    try:
        return read_bytes(file).decode("utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise DataFileError(
            file, None, f"is not UTF-8 ({error.reason}): save it as that."
        ) from None
