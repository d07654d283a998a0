"""`tierrank extreme evaluate`: how good the first labels of models, or of other tools, are."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tierrank.cli import options
from tierrank.cli.app import extreme
from tierrank.cli.extreme.inputs import Data, LabelledRows, Propensity
from tierrank.cli.messages import explained, note, stdout
from tierrank.cli.options import argument, option

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from tierrank._types import IntArray
    from tierrank.data import MultiLabelData
    from tierrank.ranking.comparison import Standing

_PROPENSITIES = "Propensities"
_CELL = 22  # characters of a value with its interval, and what keeps it from the next


@extreme.command()
@explained
def evaluate(
    rankers: Annotated[list[Path], argument(
        "Folder of a trained model, or a file of predictions, as tierrank extreme predict writes "
        "it. The others are compared with the first.", metavar="RANKER...")],
    data: Data,
    *,
    how: LabelledRows,
    k: Annotated[list[int] | None, option(
        "How many labels count. Repeat for several.", "-k", min=1, default="1, 3, 5")] = None,
    written: options.Standings,
    propensity: Propensity = 0.0,
    train: Annotated[Path | None, option(
        "Training data that propensities are counted on.", metavar="FILE", panel=_PROPENSITIES,
        default="what the first model was trained on")] = None,
    train_labels: Annotated[Path | None, option(
        "Their labels, if they are in a file of their own.", metavar="FILE", panel=_PROPENSITIES
    )] = None,
    a: Annotated[float, option("Of the propensity model.", "--a", panel=_PROPENSITIES)] = 0.55,
    b: Annotated[float, option("Of the propensity model.", "--b", panel=_PROPENSITIES)] = 1.5,
    seed: options.Seed = 0,
    threads: options.Threads = None,
) -> None:  # fmt: skip
    """Measure the first labels of rows: P, nDCG, PSP and PSnDCG, with 95% bootstrap intervals.

    Rows without labels count, with 0. With several rankers, --json and --csv have the differences
    to the first one too, with intervals and the p-value of a paired randomisation test.
    """
    from tierrank.cli.extreme.inputs import read_labelled

    if train is None and train_labels is not None:
        raise ValueError("--train-labels are those of --train: give that as well.")
    options.check_rankers(rankers, data)
    options.use_threads(threads)
    places = sorted(set(k or (1, 3, 5)))
    rows = read_labelled(data, how)
    counts = None
    if train is not None:
        counts = _counted(read_labelled(train, how.of_other(train_labels)))
    first: dict[str, _First] = {}
    for ranker in rankers:
        found = _first_labels(ranker, rows, data, max(places), propensity)
        first[str(ranker)] = found
        counts = counts or found.counts
    results = _standings(first, rows, places, counts, (a, b), seed)
    about = {"data": str(data), "rows": len(rows), "propensity": propensity, "a": a, "b": b}
    if not written.write(results, **about):
        _show(results, f"{data}: {len(rows):,} row{'s' * (len(rows) != 1)}, in percent", places)


@dataclass(frozen=True)
class _Counts:
    """Training rows that have each label, and how many rows there were."""

    labels: IntArray
    rows: int


@dataclass(frozen=True)
class _First:
    """What a ranker predicts: [rows, k] labels, out of how many; and what it was trained on."""

    top: IntArray
    n_labels: int
    counts: _Counts | None = None


def _counted(data: MultiLabelData) -> _Counts:
    import numpy as np

    return _Counts(np.bincount(data.Y.indices, minlength=data.n_labels), len(data))


def _first_labels(
    ranker: Path, rows: MultiLabelData, path: Path, k: int, propensity: float
) -> _First:
    import numpy as np

    from tierrank.cli.extreme import predict as predictions
    from tierrank.cli.extreme.inputs import for_model, load_model

    if ranker.is_dir():
        model = load_model(ranker)
        predictions.check(model, k, propensity)
        X = for_model(rows.X, model.n_features_in_, path, "features")
        for_model(rows.Y, model.n_labels_, path, "labels")
        blocks = predictions.predicted(model, X, k, propensity)
        top = np.concatenate([labels for labels, _ in blocks])
        return _First(top, model.n_labels_, _Counts(model.label_counts_, model.n_rows_))
    if propensity:
        raise ValueError(f"{ranker}: is a file of predictions: leave out --propensity.")
    top, n_labels = predictions.read_top(ranker, k)
    if len(top) != len(rows):
        raise ValueError(
            f"{ranker}: has predictions for {len(top):,} rows, but {path} has {len(rows):,}: give "
            "those for the same rows, in the same order."
        )
    if (most := int((top >= 0).sum(1).max())) < k:
        note(f"{ranker} has at most {most} labels a row: the others of the first {k} are missed.")
    return _First(top, n_labels)


def _standings(
    first: dict[str, _First],
    rows: MultiLabelData,
    places: list[int],
    counts: _Counts | None,
    model: tuple[float, float],
    seed: int,
) -> list[Standing]:
    """All rankers by all measures, measure after measure."""
    import numpy as np

    from tierrank.cli.extreme.inputs import widened
    from tierrank.metrics import labels as label_metrics
    from tierrank.ranking.comparison import standings

    measures = ["P", "nDCG"]
    n_labels = max(rows.n_labels, *(each.n_labels for each in first.values()))
    inverse = None
    if counts is not None:
        n_labels = max(n_labels, len(counts.labels))
        of_all = np.pad(counts.labels, (0, n_labels - len(counts.labels)))
        inverse = label_metrics.inverse_propensity_of_counts(of_all, counts.rows, *model)
        measures += ["PSP", "PSnDCG"]
    else:
        note("PSP and PSnDCG count by how rare labels are in training: give --train FILE for them.")
    Y = widened(rows.Y, n_labels)
    results = []
    for measure in measures:
        for k in places:
            metric = label_metrics.from_name(f"{measure}@{k}")
            values = {
                name: {metric.name: metric(each.top, Y, inverse, reduction="none")}
                for name, each in first.items()
            }
            results += standings(values, seed=seed)
    return results


def _show(results: Sequence[Standing], title: str, places: list[int]) -> None:
    console = stdout()
    names = list(dict.fromkeys(each.name for each in results))
    heading = 8 if len(names) == 1 else max(8, *map(len, names))
    with_intervals = heading + _CELL * len(places) <= console.width
    console.print(_table(results, title, names, with_intervals))
    if not with_intervals:
        note("there is no room for intervals: --json and --csv have them.")


def _table(
    results: Sequence[Standing], title: str, names: list[str], with_intervals: bool
) -> Table:
    """A row a measure and ranker, a column a number of places; the best in bold."""
    from rich.markup import escape

    from tierrank.report.tables import plain_table

    by = {(each.metric, each.name): each for each in results}
    metrics = list(dict.fromkeys(each.metric for each in results))
    measures = list(dict.fromkeys(metric.partition("@")[0] for metric in metrics))
    places = list(dict.fromkeys(metric.partition("@")[2] for metric in metrics))
    table = plain_table(title)
    table.add_column("" if len(names) == 1 else "ranker", overflow="fold")
    for place in places:
        table.add_column(f"@{place}", justify="right", no_wrap=True)
    for measure in measures:
        if len(names) > 1:
            table.add_section()
            table.add_row(f"[bold]{measure}[/]")
        for name in names:
            cells = []
            for place in places:
                metric = f"{measure}@{place}"
                best = max(by[metric, other].mean for other in names)
                bold = len(names) > 1 and by[metric, name].mean == best
                cells.append(_cell(by[metric, name], with_intervals, bold=bold))
            table.add_row(measure if len(names) == 1 else escape(name), *cells)
    return table


def _cell(each: Standing, with_interval: bool, *, bold: bool) -> str:
    value = f"{100 * each.mean:.2f}"
    value = f"[bold]{value}[/]" if bold else value
    return f"{value}  {100 * each.low:.2f} {100 * each.high:.2f}" if with_interval else value
