"""What a training over labels says before it begins, and when it has ended."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tierrank.cli.extreme.estimator import rates
from tierrank.cli.extreme.memory import available, needs, size
from tierrank.cli.messages import note, stdout
from tierrank.cli.progress import duration
from tierrank.report.tables import plain_table

if TYPE_CHECKING:
    from tierrank.cli.extreme.inputs import Parts
    from tierrank.data import MultiLabelData
    from tierrank.extreme.ranker import ExtremeRanker


def describe(ranker: ExtremeRanker, parts: Parts) -> None:
    """Say what there is to learn from, how, and what it takes."""
    data = parts.train
    table = plain_table(f"{data.n_labels:,} labels, {data.n_features:,} features")
    for column in ("part", "rows", "features a row", "labels a row", "no label", "labels unseen"):
        side: Any = "left" if column == "part" else "right"
        table.add_column(column, justify=side, overflow="fold")
    for name, part in parts.named().items():
        of = part.describe()
        table.add_row(
            name, f"{of.rows:,}", f"{of.features_a_row:.1f}", f"{of.labels_a_row:.1f}",
            f"{of.rows_without_label:,}", f"{of.labels_never_seen:,}",
        )  # fmt: skip
    console = stdout()
    console.print(table)
    judged = parts.valid is not None or ranker.validation > 0
    tried = ", ".join(f"{rate:g}" for rate in rates(ranker))
    several = "s" * (len(rates(ranker)) > 1)
    console.print(f"ExtremeRanker by {ranker.objective}, learning rate{several} {tried}")
    if judged:
        by = "valid" if parts.valid is not None else f"{ranker.validation:.0%} of the rows"
        console.print(f"The best epoch by {ranker.metric} on {by} is kept.", markup=False)
    _show_memory(ranker, data, judged)


def tell(ranker: ExtremeRanker, parts: Parts, folder: Path, seconds: float) -> None:
    """Say how the training went, and where the model is."""
    history = ranker.history_
    console = stdout()
    table = plain_table()
    for column in ("learning rate", f"valid {ranker.metric}", "best epoch", ""):
        table.add_column(column, justify="right", overflow="fold")
    for trial in ranker.trials_:
        rate, found = trial["learning_rate"], trial["metric"]
        kept = "kept" if rate == ranker.learning_rate_ else ""
        value = "went astray" if found is None else f"{found:.4f}"
        table.add_row(f"{rate:g}", value, f"{trial['epoch'] or ''}", kept)
    if history.best_metric is not None:
        console.print(table)
    if parts.valid is not None and (ranker.refit or ranker.members > 1):
        score = ranker.score(parts.valid.X, parts.valid.Y)
        console.print(f"All of it together: valid {ranker.metric} {score:.4f}", markup=False)
    epoch = history.best_step or history.steps[-1]
    what = f"learning rate {ranker.learning_rate_:g}, {history.unit} {epoch:,}"
    more = f", {ranker.members} networks" * (ranker.members > 1)
    more += ", learned once more from all rows" * ranker.refit
    console.print(f"Kept: {what}{more}; {duration(seconds)}", markup=False)
    console.print(f"The model is in {folder}", markup=False, soft_wrap=True)


def _show_memory(ranker: ExtremeRanker, data: MultiLabelData, judged: bool) -> None:
    parts = needs(
        ranker, data.n_features, data.n_labels, learning_rates=len(rates(ranker)), judged=judged
    )
    table = plain_table()
    table.add_column("memory for")
    table.add_column("at most", justify="right")
    for name, count in parts.items():
        table.add_row(name, size(count))
    total, free = sum(parts.values()), available()
    table.add_row("together", size(total))
    if free is not None:
        table.add_row("(free now)", size(free))
    stdout().print(table)
    if free is not None and total > free:
        note(f"that is more than the {size(free)} that are free: fewer --hidden, or fewer "
             "features and labels, take less.")  # fmt: skip
