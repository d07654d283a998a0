"""`tierrank evaluate`: how well models, or scores of any other tool, rank labelled rows."""

from __future__ import annotations

import csv
import io
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from tierrank.cli import options
from tierrank.cli.options import Cluster, app, argument, explained, option, stdout
from tierrank.errors import ArgumentError
from tierrank.names import counted, metric_name

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
        "taken; or - for standard input. With --dask or --workers a file or a folder of Parquet.",
        metavar="DATA")],
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
    cluster: Cluster,
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
    if cluster:
        _check_for_cluster(rankers, data, fold, how)
        with cluster.client() as client:
            values = _on_cluster(rankers, data, how, measures, client)
    else:
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
        queries = counted(max(each.queries for each in found), "query", "queries")
        title = f"{options.named(data)}: {queries}"
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
        self._read: dict[tuple[tuple[str, ...], ...], RankingData] = {}

    def rows(self, names: tuple[str, ...] = (), categories: tuple[str, ...] = ()) -> RankingData:
        """All rows, of a table with these columns, some of which hold categories."""
        from tierrank.cli.inputs import read_file, read_fold

        key = (names, categories)
        if key not in self._read:
            how, features = self._how, names or None
            if self.path.is_dir():
                fold = read_fold(self.path, self._fold, how, features, categories=categories)
                assert fold.test is not None
                self._read[key] = fold.test
            else:
                self._read[key] = read_file(self.path, how, features, categories=categories)
        return self._read[key]


def _scored(ranker: Path, source: _Source) -> tuple[RankingData, FloatArray]:
    from tierrank.cli.inputs import (
        category_names,
        column_names,
        load_ranker,
        scores_of,
        with_columns,
    )

    if ranker.is_dir():
        model = load_ranker(ranker)
        rows = source.rows(column_names(model), category_names(model))
        rows = with_columns(rows, int(model.n_features_in_), source.path)
        return rows, scores_of(model, rows)
    rows = source.rows()
    with options.on_disk(ranker) as file:
        return rows, read_scores(file, len(rows))


# -- on a cluster -----------------------------------------------------------------------------


def _check_for_cluster(
    rankers: list[Path], data: Path, fold: int | None, how: options.Reading
) -> None:
    given = {"--fold": fold, "--separator": how.separator, "--zero-based": how.zero_based or None,
             "- (standard input)": data if data == options.STDIN else None}  # fmt: skip
    for name, value in given.items():
        if value is not None:
            raise ValueError(f"{name} does not go with --dask and --workers: leave it out.")
    for ranker in rankers:
        if not ranker.is_dir():
            raise ValueError(f"{ranker}: --dask and --workers take models, not files of scores.")


def _on_cluster(
    rankers: list[Path], data: Path, how: options.Reading, measures: list[Metric], client: Any
) -> dict[str, dict[str, FloatArray]]:
    """[queries] values of each ranker: a partition is scored and measured where it lies.

    Queries with rows in several partitions are brought together first. They come in order of first
    appearance, as in one process, so that intervals are drawn alike.
    """
    import numpy as np

    from tierrank.cli.inputs import load_ranker
    from tierrank.cli.progress import RowsDisplay
    from tierrank.data.cluster import client_of, gathered, in_two, parquet
    from tierrank.data.tables.opening import absent

    client, frame = client_of(client), parquet(data)
    if how.query not in frame.columns:
        columns = list(map(str, frame.columns))
        raise ArgumentError(f"{data}: ", *absent(how.query, columns, "--query"))
    found = gathered(client, client.map(_queries, client.compute(frame[[how.query]].to_delayed())))
    if in_two([names for names, _ in found]):
        frame = frame.shuffle(how.query, shuffle_method="tasks")  # which keeps the order of rows
    models = {options.named(ranker): load_ranker(ranker) for ranker in rankers}
    sent = client.submit(dict, models, pure=False)
    parts = client.compute(frame.to_delayed())
    tasks = client.map(_measured, parts, models=sent, how=how, measures=measures, pure=False)
    del parts
    with RowsDisplay("measuring", sum(rows for _, rows in found)) as display:
        done = 0
        for task in tasks:
            done += gathered(client, [client.submit(_rows_of, task, pure=False)])[0]
            display.show(done)
    several = [each for each in gathered(client, tasks) if each.queries]
    order = dict.fromkeys(name for names, _ in found for name in names)
    place = {name: number for number, name in enumerate(order)}
    places = np.argsort([place[name] for each in several for name in each.queries])
    return {
        name: {
            each.name: np.concatenate([part.values[name][each.name] for part in several])[places]
            for each in measures
        }
        for name in models
    }


def _queries(frame: Any) -> tuple[list[Any], int]:
    """The queries of a partition in order of first appearance, and its rows."""
    return frame.iloc[:, 0].drop_duplicates().tolist(), len(frame)


class _Measured(NamedTuple):
    """Of a partition: its queries, its rows, and the values of all measures of each ranker."""

    queries: list[Any]
    rows: int
    values: dict[str, dict[str, FloatArray]]


def _measured(
    frame: Any, models: dict[str, Any], how: options.Reading, measures: list[Metric]
) -> _Measured:
    from tierrank import metrics
    from tierrank.cli.inputs import column_names, scores_of, with_columns
    from tierrank.data import RankingData

    values: dict[str, dict[str, FloatArray]] = {}
    for name, model in models.items() if len(frame) else ():
        names, fill = column_names(model), how.fill()
        rows = RankingData.from_frame(
            frame, label=how.label, query=how.query, features=names or None,
            drop=() if names else tuple(how.drop or ()), missing="keep" if fill is None else fill,
        )  # fmt: skip
        rows = with_columns(rows, int(model.n_features_in_), Path("a partition"))
        scores = scores_of(model, rows)
        values[name] = metrics.evaluate(scores, rows.y, measures, qid=rows.qid, reduction="none")
    return _Measured(frame[how.query].drop_duplicates().tolist(), len(frame), values)


def _rows_of(measured: _Measured) -> int:
    return measured.rows


def read_scores(path: Path, rows: int) -> FloatArray:
    """Read one score a line, or the score column of a CSV file; as many as there are rows."""
    import numpy as np

    from tierrank.data.files import DataFileError, read_bytes, without_compression

    text = read_bytes(path).decode("utf-8-sig", errors="replace")
    if without_compression(path).suffix.lower() == ".csv":
        try:
            lines = list(csv.reader(io.StringIO(text)))
        except csv.Error as error:
            raise DataFileError(path, None, f"cannot be read as CSV: {error}.") from None
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
