"""`tierrank extreme train`: from files of rows and labels to a model.

What all three commands read comes first: where rows, labels and models are, and columns fitted.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from tierrank import names
from tierrank.cli import options
from tierrank.cli.estimators import OPTIONS, as_options, checked_settings
from tierrank.cli.options import (
    DATA,
    INTERRUPTED,
    Caching,
    argument,
    available,
    explained,
    extreme,
    note,
    option,
    parse_settings,
    process_number,
    stdout,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from tierrank.cli.train import TrainingFolder
    from tierrank.data import MultiLabelData
    from tierrank.extreme.ranker import ExtremeRanker

# Arguments of `ExtremeRanker` that have an option of their own.
_LABEL_OPTIONS = {
    "objective": "--objective",
    "hidden": "--hidden",
    "learning_rate": "--learning-rate",
    "batch_rows": "--batch",
    "max_epochs": "--epochs",
    "patience": "--patience",
    "validation": "--valid-fraction",
    "negatives": "--negatives",
    "sampler": "--sampler",
    "metric": "--metric",
    "random_state": "--seed",
}

BYTES = 4  # of a weight

_MODEL = options.MODEL
_VALID = options.VALID

FEATURES_AND_LABELS = (
    "Text of the XC repository, with features and labels (also .gz, .xz, .bz2); or features alone, "
    "as text or .npz, with --labels."
)
Data = Annotated[Path, argument(FEATURES_AND_LABELS, metavar="DATA")]
Propensity = Annotated[float, option(
    "Add so many times log(1/p) to the score of a label of propensity p: with 1, rare labels rise "
    "as PSP counts them.", metavar="WEIGHT")]  # fmt: skip


@dataclass(frozen=True)
class Rows:
    """Which rows of a file are meant, and how to read them."""

    # fmt: off
    split: Annotated[Path | None, option(
        "Take only the rows of DATA that this file numbers, from 1.", metavar="FILE", panel=DATA
    )] = None
    split_column: Annotated[int, option(
        "Which column of the split file, from 0.", min=0, metavar="N", panel=DATA)] = 0
    one_based: Annotated[bool, option(
        "Features in text files are numbered from 1, as LIBSVM does; labels never are.",
        "--one-based", panel=DATA)] = False
    # fmt: on


@dataclass(frozen=True)
class LabelledRows(Rows):
    """The same of rows with labels."""

    # fmt: off
    labels: Annotated[Path | None, option(
        "The labels of DATA, if they are in a file of their own.", metavar="FILE", panel=DATA
    )] = None
    # fmt: on

    def of_other(self, labels: Path | None) -> LabelledRows:
        """How to read all rows of another file, whose labels may be apart."""
        return LabelledRows(one_based=self.one_based, labels=labels)


@dataclass(frozen=True)
class Parts:
    """What to learn from, and what to stop by if that is apart."""

    train: MultiLabelData
    valid: MultiLabelData | None = None

    def named(self) -> dict[str, MultiLabelData]:
        """The parts that there are, by name."""
        parts = {"train": self.train, "valid": self.valid}
        return {name: part for name, part in parts.items() if part is not None}


def read_labelled(path: Path, how: LabelledRows, cached: Caching | None = None) -> MultiLabelData:
    """Read rows and their labels."""
    from tierrank.data import read_xc

    files = [path] if how.labels is None else [path, how.labels]
    cache = cached is not None and cached.cache_for(*files)
    data = read_xc(path, labels=how.labels, one_based=how.one_based, cache=cache)
    return _chosen(data, path, how)


def read_rows(path: Path, how: Rows) -> Any:
    """Read features, as [rows, features] CSR; labels may be there and are passed over."""
    from scipy.sparse import csr_matrix

    from tierrank.data import MultiLabelData
    from tierrank.data.xc import read_xc_rows

    X = read_xc_rows(path, one_based=how.one_based)
    return _chosen(MultiLabelData(X, csr_matrix((X.shape[0], 1))), path, how).X


def load_model(folder: Path) -> ExtremeRanker:
    """The model of a folder; refuses those that rank rows, not labels."""
    import tierrank
    from tierrank.extreme.ranker import ExtremeRanker

    model = tierrank.load(folder)
    if not isinstance(model, ExtremeRanker):
        raise ValueError(
            f"{folder}: is a {type(model).__name__}, which ranks the rows of a query: use tierrank "
            "predict or tierrank evaluate, without extreme."
        )
    return model


def for_model(matrix: Any, columns: int, path: Path, what: str) -> Any:
    """Features or labels of a file with as many columns as a model knows."""
    there = matrix.shape[1]
    if there > columns:
        raise ValueError(
            f"{path}: has {there:,} {what}, and the model {columns:,}: give data of the same kind "
            f"as it was trained on, or train it with --n-{what} {there}."
        )
    if there < columns:
        note(f"{path} has {there:,} {what}, and the model {columns:,}: no row has the others.")
    return widened(matrix, columns)


def widened(matrix: Any, columns: int) -> Any:
    """A CSR matrix with so many columns; those that it lacked are empty."""
    from scipy.sparse import csr_matrix

    if matrix.shape[1] == columns:
        return matrix
    shape = (matrix.shape[0], columns)
    wider = csr_matrix((matrix.data, matrix.indices, matrix.indptr), shape=shape)
    wider.has_canonical_format = True  # as those of the readers are: no need to look again
    return wider


def read_parts(
    train: tuple[Path, LabelledRows],
    valid: tuple[Path, LabelledRows] | None,
    *,
    n_features: int | None,
    n_labels: int | None,
    cached: Caching,
) -> Parts:
    """Read training and validation data, and give both as many features and labels.

    Parameters
    ----------
    train, valid
        the file of each, and how to read it
    n_features, n_labels
        how many there are, if more than in the files
    cached
        whether text is read into arrays on the disk
    """
    from tierrank.cli.progress import converting
    from tierrank.data import MultiLabelData

    sources = [train] if valid is None else [train, valid]
    with converting():
        read = [read_labelled(path, how, cached) for path, how in sources]
    paths = [path for path, _ in sources]
    features = _most("features", [each.n_features for each in read], paths, n_features)
    labels = _most("labels", [each.n_labels for each in read], paths, n_labels)
    return Parts(
        *(MultiLabelData(widened(each.X, features), widened(each.Y, labels)) for each in read)
    )


def _most(what: str, found: list[int], paths: list[Path], asked: int | None) -> int:
    most = max(found)
    if asked is not None and asked < most:
        raise ValueError(
            f"--n-{what} is {asked:,}, but there are {most:,} in the files: give as many or more."
        )
    if asked is None and min(found) < most:
        said = ", ".join(f"{path} has {n:,}" for path, n in zip(paths, found, strict=True))
        note(f"the files differ in {what}: {said}. No row of the one has the others.")
    return most if asked is None else asked


def _chosen(data: MultiLabelData, path: Path, how: Rows) -> MultiLabelData:
    """The rows of the split, or all."""
    if how.split is not None:
        from tierrank.data import read_xc_split

        rows = read_xc_split(how.split, how.split_column)
        try:
            data = data.select(rows)
        except ValueError as error:
            raise ValueError(f"{how.split}: {error}") from None
    if not len(data):
        raise ValueError(f"{path}: has no rows.")
    return data


@extreme.command()
@explained
def train(
    data: Data,
    out: options.Out,
    *,
    how: LabelledRows,
    cached: options.Caching,
    n_features: Annotated[int | None, option(
        "How many features there are, if other files have more.", "--n-features", min=1,
        panel="Data", default="as in the files")] = None,
    n_labels: Annotated[int | None, option(
        "How many labels there are, if other files have more.", "--n-labels", min=1, panel="Data",
        default="as in the files")] = None,
    valid: Annotated[Path | None, option(
        "Validation data, to choose the learning rate and the epoch by.", metavar="FILE",
        panel=_VALID)] = None,
    valid_labels: Annotated[Path | None, option(
        "Their labels, if they are in a file of their own.", metavar="FILE", panel=_VALID)] = None,
    valid_fraction: Annotated[float | None, option(
        "Without --valid: the share of the rows that is held out for it; 0 learns from all, to "
        "the last epoch.", min=0, max=0.9, panel=_VALID, default="0.25")] = None,
    metric: Annotated[str | None, option(
        "What is measured: p, ndcg, psp or psndcg, at so many places.", panel=_VALID,
        default="p@5")] = None,
    objective: Annotated[str, option(
        "What to minimise: pl-partition, pl-lb, pl-efron, attrank, ranknet or ranksvm.",
        metavar="NAME", panel=_MODEL)] = "pl-partition",
    hidden: Annotated[list[int] | None, option(
        "Width of the hidden layer. Repeat for several layers.", metavar="WIDTH", panel=_MODEL,
        default="256")] = None,
    learning_rate: Annotated[list[float] | None, option(
        "Learning rate. Repeat for several to choose from.", metavar="RATE", panel=_MODEL,
        default="0.001, 0.004, 0.016")] = None,
    epochs: Annotated[int | None, option(
        "Passes over the rows, at most.", min=1, panel=_MODEL, default="100")] = None,
    patience: Annotated[int | None, option(
        "Epochs without a better metric that end it.", min=1, metavar="EPOCHS", panel=_MODEL,
        default="3")] = None,
    batch: Annotated[int | None, option(
        "Rows of a step.", min=1, metavar="ROWS", panel=_MODEL, default="256")] = None,
    negatives: Annotated[int | None, option(
        "Draw so many labels in a step to stand for those a row does not have.", min=1,
        metavar="LABELS", panel=_MODEL, default="all labels")] = None,
    sampler: Annotated[str | None, option(
        "How they are drawn: uniform, frequency or in-batch.", metavar="NAME", panel=_MODEL,
        default="uniform")] = None,
    settings: Annotated[list[str] | None, option(
        "Any other constructor argument of ExtremeRanker, as in --set members=3 or --set "
        "features=raw. Repeat for several.", "--set", metavar="NAME=VALUE", panel=_MODEL
    )] = None,
    seed: options.Seed = 0,
    threads: options.Threads = None,
    resume: options.Resume = False,
    overwrite: options.Overwrite = False,
    checkpoint_every: Annotated[float, option(
        "Time between two checkpoints; ten times as long as writing one takes, if that is longer.",
        min=0, metavar="SECONDS")] = 20.0,
    data_ranks: Annotated[int, option(
        "Under torchrun: parts that the rows of a step are in; the processes divided by it share "
        "the labels.", min=1, metavar="RANKS")] = 1,
) -> None:  # fmt: skip
    """Train a ranker of labels on rows that have some of them, and save it.

    Ctrl-C stops after the step at hand and leaves a model that can be used; --resume then goes on
    to the very model that an undisturbed run would have given, also after a crash.

    torchrun --nproc-per-node=2 -m tierrank extreme train … shares the labels among processes. What
    torchrun starts once more (--max-restarts) goes on by itself.
    """
    options.check_choice(resume=resume, overwrite=overwrite)
    if valid is not None and valid_fraction is not None:
        raise ValueError("--valid gives the validation data: leave out --valid-fraction.")
    if valid is None and valid_labels is not None:
        raise ValueError("--valid-labels are those of --valid: give that as well.")
    check_label_names(objective, metric, sampler)

    from tierrank.cli.train import TrainingFolder, after_restart, train_into

    options.use_threads(threads)
    ranker = make_label_ranker(
        settings or (),
        with_valid=valid is not None,
        objective=objective,
        hidden=hidden if hidden is None or len(hidden) > 1 else hidden[0],
        learning_rate=learning_rate,
        max_epochs=epochs,
        patience=patience,
        batch_rows=batch,
        negatives=negatives,
        sampler=sampler,
        validation=valid_fraction,
        metric=metric,
        random_state=seed,
    )
    folder = TrainingFolder(out, several_runs=True)
    resume, overwrite = after_restart(folder, resume=resume, overwrite=overwrite)
    read = partial(
        read_parts,
        (data, how),
        None if valid is None else (valid, how.of_other(valid_labels)),
        n_features=n_features,
        n_labels=n_labels,
        cached=cached,
    )
    fit = partial(_fit, every=checkpoint_every, data_ranks=data_ranks)
    if process_number() > 0:
        if not (resume and folder.state == "finished"):
            _help_first(folder, ranker, read(), fit)
        return
    train_into(
        folder,
        ranker,
        resume=resume,
        overwrite=overwrite,
        read=read,
        describe=partial(_describe, data_ranks=data_ranks),
        fit=fit,
        summarise=_summarise,
        unit="epoch",
    )


def _help_first(
    folder: TrainingFolder,
    ranker: ExtremeRanker,
    parts: Parts,
    fit: Callable[[ExtremeRanker, Parts, Path], None],
) -> None:
    """Hold some of the labels while the first of `torchrun`'s processes says and saves all."""
    import typer

    import tierrank
    from tierrank.cli.train import has_steps

    try:
        fit(ranker, parts, folder.checkpoint)
    except KeyboardInterrupt:
        if has_steps(ranker):
            tierrank.save(ranker, folder.path)
        raise typer.Exit(INTERRUPTED) from None
    tierrank.save(ranker, folder.path)
    _score_of_several(ranker, parts)


def _fit(
    ranker: ExtremeRanker, parts: Parts, checkpoint: Path, *, every: float, data_ranks: int
) -> None:
    from contextlib import nullcontext

    from tierrank.cli.progress import TrainingDisplay

    data, valid = parts.train, parts.valid
    display = TrainingDisplay(
        ranker.metric,
        runs=_runs(ranker, valid is not None),
        rows=_rows_an_epoch(ranker, data, valid),
        labels=_labels_a_row(ranker, data),
    )
    shown = display if process_number() == 0 else nullcontext()
    with shown, as_options(_LABEL_OPTIONS):
        ranker.fit(
            data.X,
            data.Y,
            eval_set=None if valid is None else (valid.X, valid.Y),
            checkpoint=checkpoint,
            checkpoint_every=every,
            watch=display.watch,
            data_ranks=data_ranks,
        )


def _runs(ranker: ExtremeRanker, with_valid: bool) -> int:
    """Trainings that the fit is made of."""
    return len(rates(ranker)) + ranker.members - (not ranker._refits(with_valid))


def _rows_an_epoch(
    ranker: ExtremeRanker, data: MultiLabelData, valid: MultiLabelData | None
) -> float:
    """Rows that are learned from while the learning rate is chosen, about."""
    labelled = data.n_rows - data.describe().rows_without_label
    return labelled * (1 - ranker.validation if valid is None else 1)


def _labels_a_row(ranker: ExtremeRanker, data: MultiLabelData) -> float:
    """Labels that a row is scored for in a step: all of them, or about as many as are drawn."""
    if ranker.negatives is None:
        return data.n_labels
    if ranker.sampler != "in-batch":
        return ranker.negatives
    import numpy as np

    share = np.bincount(data.Y.indices) / data.n_rows
    return float((1 - (1 - share) ** ranker.batch_rows).sum())  # different ones of a batch's


def _describe(ranker: ExtremeRanker, parts: Parts, *, data_ranks: int) -> None:
    """Say what there is to learn from, how, and what it takes."""
    from tierrank.report.tables import plain_table

    data = parts.train
    table = plain_table(
        f"{data.n_labels:,} labels, {data.n_features:,} features",
        "part", "rows", "features a row", "labels a row", "no label", "labels unseen",
    )  # fmt: skip
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
    halving = ", dropped when behind" * (ranker.halving and len(rates(ranker)) > 1)
    console.print(f"ExtremeRanker by {ranker.objective}, learning rate{several} {tried}{halving}")
    from tierrank.extreme.network import Features

    learned = Features.learned(data.X, ranker.features)
    console.print(f"{learned.sentence}{', linear path beside' * ranker.skip}", markup=False)
    if judged:
        by = "valid" if parts.valid is not None else f"{ranker.validation:.0%} of the rows"
        console.print(f"The best epoch by {ranker.metric} on {by} is kept.", markup=False)
    _show_memory(ranker, data, judged, data_ranks, parts.valid is not None)


def _summarise(ranker: ExtremeRanker, parts: Parts, seconds: float) -> None:
    """Say how the training went."""
    from tierrank.cli.progress import duration
    from tierrank.report.tables import plain_table

    history = ranker.history_
    console = stdout()
    table = plain_table()
    for column in ("learning rate", f"valid {ranker.metric}", "best epoch", "epochs", ""):
        table.add_column(column, justify="right", overflow="fold")
    for trial in ranker.trials_:
        rate, found = trial["learning_rate"], trial["metric"]
        kept = "kept" if rate == ranker.learning_rate_ else ""
        value = "went astray" if found is None else f"{found:.4f}"
        epochs = (f"{trial.get(name) or ''}" for name in ("epoch", "epochs"))
        table.add_row(f"{rate:g}", value, *epochs, kept)
    if history.best_metric is not None:
        console.print(table)
    score = _score_of_several(ranker, parts)
    if score is not None:
        console.print(f"All of it together: valid {ranker.metric} {score:.4f}", markup=False)
    epoch = history.best_step or history.steps[-1]
    what = f"learning rate {ranker.learning_rate_:g}, {history.unit} {epoch:,}"
    more = f", {ranker.members} networks" * (ranker.members > 1)
    more += ", learned once more from all rows" * ranker._refits(parts.valid is not None)
    console.print(f"Kept with it: {ranker.features_.sentence}", markup=False)
    console.print(f"Kept: {what}{more}; {duration(seconds)}", markup=False)


def _score_of_several(ranker: ExtremeRanker, parts: Parts) -> float | None:
    """The metric of networks that were not judged as they are, or together, while they learned."""
    if parts.valid is None or ranker.members == 1:
        return None
    return ranker.score(parts.valid.X, parts.valid.Y)


def _show_memory(
    ranker: ExtremeRanker, data: MultiLabelData, judged: bool, data_ranks: int, with_valid: bool
) -> None:
    from tierrank.cli.progress import size
    from tierrank.report.tables import plain_table

    launched = os.environ if "TORCHELASTIC_RUN_ID" in os.environ else {}
    ranks, here = (int(launched.get(name, 1)) for name in ("WORLD_SIZE", "LOCAL_WORLD_SIZE"))
    parts = needs(
        ranker, data.n_features, data.n_labels, learning_rates=len(rates(ranker)), judged=judged,
        holders=max(1, ranks // data_ranks), with_valid=with_valid,
    )  # fmt: skip
    table = plain_table(None, "memory for", "at most")
    for name, count in parts.items():
        table.add_row(name, size(count))
    total, free = here * sum(parts.values()), available()
    table.add_row("together" if here == 1 else f"of {here} processes, together", size(total))
    if free is not None:
        table.add_row("(free now)", size(free))
    stdout().print(table)
    if free is not None and total > free:
        note(f"that is more than the {size(free)} that are free: fewer --hidden, or fewer "
             "features and labels, take less.")  # fmt: skip


def needs(
    ranker: ExtremeRanker,
    n_features: int,
    n_labels: int,
    *,
    learning_rates: int,
    judged: bool,
    holders: int = 1,
    with_valid: bool = False,
) -> dict[str, int]:
    """Bytes by what they are for, at the time when most is needed; the data come on top.

    Parameters
    ----------
    ranker
        with its settings, unfitted
    n_features, n_labels
        sizes of the first and the last layer
    learning_rates
        how many are tried
    judged
        whether there is validation data, so that the best epoch is remembered
    holders
        processes that share the labels, and the features if they are large
    with_valid
        whether that is a file of its own, so that no rows are held out
    """
    from tierrank.extreme.network import SPREAD_FEATURES, skip_width, widths

    hidden = widths(ranker.hidden)
    skip = skip_width(n_features, n_labels) if ranker.skip else 0
    combined = skip if skip < n_features else 0
    features, own_labels = n_features * (hidden[0] + combined), -(-n_labels // holders)
    if features > SPREAD_FEATURES:
        features = -(-n_features // holders) * (hidden[0] + combined)
    numbers = features + hidden[0] + own_labels * (hidden[-1] + skip + 1)
    numbers += sum((one + 1) * other for one, other in pairwise(hidden))
    weights = numbers * BYTES
    moments = 2 if ranker.optimiser == "adam" else 1
    # Beside the network that learns, there are those of the runs before it.
    earlier = max(
        int(learning_rates > 1), ranker.members - 1 + (judged and ranker._refits(with_valid))
    )
    parts = {
        "weights": weights,
        "Adam's two moments" if moments == 2 else "AdaGrad's sums": moments * weights,
        "weights of the best epoch": judged * weights,
        "weights from runs before": earlier * weights,
    }
    parts["a checkpoint, while it is written"] = weights
    return {name: size for name, size in parts.items() if size}


def check_label_names(objective: str, metric: str | None, sampler: str | None) -> None:
    """Refuse names that there are not, before torch is loaded: that takes seconds."""
    if sampler is not None:
        names.check_sampler(sampler)
    _fused_objective(objective)
    if metric is not None:
        names.label_metric_name(metric)


def make_label_ranker(settings: Iterable[str], *, with_valid: bool, **typed: Any) -> ExtremeRanker:
    """An unfitted ranker; whatever is wrong with the settings is found here, before data is read.

    Parameters
    ----------
    settings
        NAME=VALUE of arguments that have no option
    with_valid
        whether there is a file of validation data
    typed
        arguments that have one; those that are None stay at their default
    """
    from tierrank.extreme.ranker import ExtremeRanker

    params = {name: value for name, value in typed.items() if value is not None}
    known = ExtremeRanker().get_params(deep=False)
    given = parse_settings(settings, "--set")
    params |= checked_settings(given, known, "label", OPTIONS | _LABEL_OPTIONS)
    params["objective"] = _fused_objective(params.get("objective", known["objective"]))
    if isinstance(params.get("sampler"), str) and params.get("negatives") is None:
        raise ValueError("--sampler says how to draw labels: say how many, with --negatives.")
    ranker = ExtremeRanker(**params)
    _check_rates(ranker, with_valid)
    return ranker


def rates(ranker: ExtremeRanker) -> list[float]:
    """The learning rates to choose from."""
    rate = ranker.learning_rate
    return list(rate) if isinstance(rate, (list, tuple)) else [float(rate)]  # type: ignore[arg-type]


def _fused_objective(name: str) -> str:
    from tierrank.losses.record import find_fused, fused_objectives

    try:
        return find_fused(name).name
    except ValueError:
        *others, last = fused_objectives()
        raise ValueError(
            f"--objective {name}: use {', '.join(others)} or {last}, which can do with "
            "some labels' scores at a time."
        ) from None


def _check_rates(ranker: ExtremeRanker, with_valid: bool) -> None:
    from tierrank.data import MultiLabelData
    from tierrank.extreme.ranker import checked_rates

    if not with_valid and ranker.validation == 0 and len(rates(ranker)) > 1:
        raise ValueError(
            "without validation data there is no telling which learning rate is best: give one, as "
            "with --learning-rate 0.001, or leave out --valid-fraction 0."
        )
    some = MultiLabelData([[1.0]], [[1, 0]])
    try:
        with as_options(_LABEL_OPTIONS):
            checked_rates(ranker, some, some if with_valid else None)
    except TypeError as error:  # a word where a number should be
        raise ValueError(f"--set: a value is of the wrong kind ({error}).") from None
