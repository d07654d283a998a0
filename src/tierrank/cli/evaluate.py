"""`tierrank evaluate`: how well models, or scores of any other tool, rank labelled rows."""

from __future__ import annotations

import csv
import io
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from tierrank.cli import options
from tierrank.cli.app import app
from tierrank.cli.options import argument, explained, option, stdout
from tierrank.names import metric_name

if TYPE_CHECKING:
    from tierrank._types import FloatArray
    from tierrank.data import RankingData
    from tierrank.metrics import Metric

DEFAULT_METRICS = ("ndcg@1", "ndcg@5", "ndcg@10", "err", "map", "mrr")

_CONVENTIONS = "Conventions"


@app.command()
@explained
def evaluate(
    rankers: Annotated[list[Path], argument(
        "Folder of a trained model, or a file with one score a line (or, in a .csv, a score "
        "column), or - for scores on standard input. The others are compared with the first.",
        metavar="RANKER...")],
    data: Annotated[Path, argument(
        "Labelled rows: a file, or a folder with train, vali and test files, of which test is "
        "taken; or - for standard input.", metavar="DATA")],
    metric: Annotated[list[str] | None, option(
        "What to measure, as in ndcg@10. Repeat for several.", default=", ".join(DEFAULT_METRICS)
    )] = None,
    *,
    written: options.Standings,
    gain: Annotated[str | None, option(
        "What a label is worth: exp2 (2^label − 1), or linear.", panel=_CONVENTIONS,
        default="exp2")] = None,
    ties: Annotated[str | None, option(
        "Equal scores: average over their orders, or input order.", panel=_CONVENTIONS,
        default="average")] = None,
    empty: Annotated[str | None, option(
        "The value of a query with nothing relevant: a number, or skip.", panel=_CONVENTIONS,
        default="0")] = None,
    fold: options.Fold = None,
    how: options.Reading,
    seed: options.Seed = 0,
    threads: options.Threads = None,
) -> None:  # fmt: skip
    """Measure rankers on labelled rows: means over queries with 95% bootstrap intervals.

    With several rankers, the differences to the first one too, with intervals and the p-value of
    a paired randomisation test.
    """
    for name in metric or ():
        metric_name(name)  # before torch is loaded

    from tierrank import metrics
    from tierrank.ranking.comparison import standings
    from tierrank.report.tables import standings_table

    options.use_threads(threads)
    conventions = {"gain": gain, "ties": ties, "empty": _number_or_word(empty)}
    measures = _measures(metric or list(DEFAULT_METRICS), conventions, asked=bool(metric))
    values: dict[str, dict[str, FloatArray]] = {}
    options.check_rankers(rankers, data)
    if data == options.STDIN and data in rankers:
        raise ValueError("standard input (-) is given twice: for scores and for the data.")
    with options.on_disk(data) as file:
        source = _Source(file, fold, how)
        for ranker in rankers:
            rows, scores = _scored(ranker, source)
            values[options.named(ranker)] = metrics.evaluate(
                scores, rows.y, measures, qid=rows.qid, reduction="none"
            )
    found = standings(values, seed=seed)
    chosen = {key: value for key, value in conventions.items() if value is not None}
    if not written.write(found, data=options.named(data), conventions=chosen):
        queries = max(each.queries for each in found)
        title = f"{options.named(data)}: {queries:,} quer{'ies' if queries != 1 else 'y'}"
        console = stdout()
        console.print(standings_table(found, title=title, width=console.width))


class _Source:
    """The data, read as each ranker wants them."""

    def __init__(self, path: Path, fold: int | None, how: options.Reading) -> None:
        if fold is not None and not path.is_dir():
            raise ValueError(f"{path}: is a file, so it has no folds: leave out --fold.")
        self.path = path
        self._fold = fold
        self._how = how
        self._read: dict[tuple[str, ...], RankingData] = {}

    def rows(self, names: tuple[str, ...] = ()) -> RankingData:
        """All rows, of a table with these columns."""
        from tierrank.cli.inputs import read_file, read_fold

        if names not in self._read:
            if self.path.is_dir():
                test = read_fold(self.path, self._fold, self._how, names or None).test
                assert test is not None
                self._read[names] = test
            else:
                self._read[names] = read_file(self.path, self._how, names or None)
        return self._read[names]


def _scored(ranker: Path, source: _Source) -> tuple[RankingData, FloatArray]:
    from tierrank.cli.inputs import column_names, load_ranker, scores_of, with_columns

    if ranker.is_dir():
        model = load_ranker(ranker)
        rows = source.rows(column_names(model))
        rows = with_columns(rows, int(model.n_features_in_), source.path)
        return rows, scores_of(model, rows)
    rows = source.rows()
    with options.on_disk(ranker) as file:
        return rows, read_scores(file, len(rows))


def read_scores(path: Path, rows: int) -> FloatArray:
    """Read one score a line, or the score column of a CSV file; as many as there are rows."""
    import numpy as np

    from tierrank.data.files import DataFileError, read_bytes, without_compression

    text = read_bytes(path).decode("utf-8-sig", errors="replace")
    if without_compression(path).suffix.lower() == ".csv":
        lines = list(csv.reader(io.StringIO(text)))
        if not lines or "score" not in lines[0]:
            raise DataFileError(path, 1, "has no column called score: name one so.")
        place = lines[0].index("score")
        cells = [(number, line[place] if place < len(line) else "")
                 for number, line in enumerate(lines[1:], start=2) if line]  # fmt: skip
    else:
        cells = list(enumerate(text.splitlines(), start=1))
    scores = np.empty(len(cells))
    for row, (number, cell) in enumerate(cells):
        try:
            scores[row] = float(cell)
        except ValueError:
            raise DataFileError(path, number, f"{cell[:40]!r} is no score: give a number a "
                                "line.") from None  # fmt: skip
        if not math.isfinite(scores[row]):
            raise DataFileError(path, number, f"the score is {cell.strip()}: give finite ones.")
    if len(scores) != rows:
        raise DataFileError(
            path, None, f"has {len(scores):,} scores, but the data have {rows:,} rows: give one "
            "a row, in the same order.",
        )  # fmt: skip
    return scores


def _measures(names: list[str], conventions: dict[str, Any], *, asked: bool) -> list[Metric]:
    """Metrics with the conventions that each of them knows."""
    import inspect

    from tierrank import metrics

    measures = []
    used: set[str] = set()
    for name in names:
        known = inspect.signature(metrics.from_name(name).function).parameters
        own = {key: value for key, value in conventions.items()
               if value is not None and key in known}  # fmt: skip
        used |= own.keys()
        measures.append(metrics.from_name(name, **own))
    for key, value in conventions.items():
        if asked and value is not None and key not in used:
            raise ValueError(f"--{key} means nothing to {', '.join(names)}: leave it out.")
    if len({each.name for each in measures}) < len(measures):
        raise ValueError("--metric names one metric twice: leave one of them.")
    return measures


def _number_or_word(text: str | None) -> float | str | None:
    if text is None:
        return None
    try:
        return float(text)
    except ValueError:
        return text
