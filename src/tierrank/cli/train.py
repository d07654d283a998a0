"""`tierrank train`: from a file to a model."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from tierrank.cli import options
from tierrank.cli.app import app
from tierrank.cli.messages import INTERRUPTED, explained, note, process_number, stderr, stdout

if TYPE_CHECKING:
    from tierrank.cli.inputs import Parts
    from tierrank.cli.model_folder import TrainingFolder
    from tierrank.ranking.base import Ranker

HELD_OUT = 0.2  # of the queries, for rankers that need to know when to stop

_VALID = "Validation"


@app.command()
@explained
def train(
    data: Annotated[
        Path,
        typer.Argument(metavar="DATA", show_default=False,
                       help="LETOR or svmlight file, CSV or Parquet table (also .gz, .xz, .bz2); "
                       "or a folder with train, vali and test files."),
    ],
    out: Annotated[
        Path,
        typer.Option(show_default=False, help="Folder for the model, its curve and checkpoints."),
    ],
    model: options.Kind = None,
    objective: Annotated[
        str,
        typer.Option(metavar="NAME", rich_help_panel="Model",
                     help="What to minimise: see tierrank objectives. Parameters may follow, as "
                     "in pl-topk:k=5."),
    ] = "pl-partition",
    objective_param: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", rich_help_panel="Model", show_default=False,
                     help="Parameter of the objective, as in k=5. Repeat for several."),
    ] = None,
    features: options.Features = None,
    settings: options.Settings = None,
    valid: Annotated[
        Path | None,
        typer.Option(metavar="FILE", rich_help_panel=_VALID, show_default=False,
                     help="Validation data: the best step by them is kept."),
    ] = None,
    valid_fraction: Annotated[
        float | None,
        typer.Option(min=0, max=0.9, rich_help_panel=_VALID,
                     show_default=f"{HELD_OUT}, and 0 for linear",
                     help="Without --valid: the share of the queries that is held out for it; 0 "
                     "learns from all, to the last step."),
    ] = None,
    metric: Annotated[
        str, typer.Option(rich_help_panel=_VALID, help="What is measured, as in ndcg@10 or map.")
    ] = "ndcg@10",
    fold: Annotated[
        int | None,
        typer.Option(min=1, rich_help_panel="Data", show_default=False,
                     help="Which fold of a folder that has several."),
    ] = None,
    label: options.Label = "label",
    query: options.Query = "qid",
    drop: options.Drop = None,
    weight_column: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", rich_help_panel="Data", show_default=False,
                     help="Column of a table that says how much a row's query counts in training, "
                     "the same in all rows of the query. It is no feature."),
    ] = None,
    missing: options.Missing = "keep",
    separator: options.Separator = None,
    zero_based: options.ZeroBased = False,
    seed: options.Seed = 0,
    threads: options.Threads = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with a training that was stopped.")
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the model or training that is in --out.")
    ] = False,
    checkpoint_every: Annotated[
        float, typer.Option(min=0, metavar="SECONDS", help="Time between two checkpoints.")
    ] = 20.0,
) -> None:  # fmt: skip
    """Train a ranker on labelled rows, and save it.

    Ctrl-C stops after the step at hand and leaves a model that can be used; --resume then goes on
    to the very model that an undisturbed run would have given, also after a crash.
    """
    from tierrank.cli.estimators import check_names, default_kind, make_ranker, parse_settings

    if resume and overwrite:
        raise typer.BadParameter("--resume goes on, --overwrite begins anew: give one of them")
    kind = model or default_kind()
    check_names([kind], [objective], features or (), [metric])
    objective_params = parse_settings(objective_param or (), "--objective-param")
    more = parse_settings(settings or (), "--set")
    how = options.Reading(
        label, query, tuple(drop or ()), missing, zero_based, separator, weight_column
    )

    from tierrank import metrics
    from tierrank.cli.inputs import check_labels
    from tierrank.cli.model_folder import TrainingFolder
    from tierrank.cli.progress import FitDisplay

    options.use_threads(threads)
    ranker = make_ranker(
        kind,
        objective=objective,
        objective_params=objective_params,
        features=features or (),
        settings=more,
        metric=metric,
        seed=seed,
        threads=threads,
    )
    if process_number() > 0:  # started by torchrun to help the first, which says and saves all
        if kind == "neural":
            _fit(ranker, _read(data, valid, valid_fraction, fold, kind, how, seed))
        return
    folder = TrainingFolder(out)
    folder.check(resume=resume, overwrite=overwrite)
    if resume and folder.state == "finished":
        stdout().print(f"{out} holds a finished model: there is nothing to go on with.")
        return
    parts = _read(data, valid, valid_fraction, fold, kind, how, seed)
    check_labels(metrics.from_name(metric), parts.named())
    _describe(parts, ranker)
    if resume and not folder.has_checkpoint:
        note(f"{out} has no checkpoint to go on from: the training begins anew.")
    folder.begin(anew=not resume)
    begun = time.monotonic()
    try:
        with FitDisplay(ranker.metric) as display:
            display.begin(kind)
            stopped = _fit(
                ranker,
                parts,
                checkpoint=folder.checkpoint,
                checkpoint_every=checkpoint_every,
                watch=display.watch,
            )
        if stopped:
            _leave(ranker, folder)
        folder.save(ranker, _title(ranker))
    except (ValueError, OSError):
        folder.abandon()
        raise
    folder.finish()
    _summarise(ranker, parts, folder, time.monotonic() - begun)


def _read(
    data: Path,
    valid: Path | None,
    fraction: float | None,
    fold: int | None,
    kind: str,
    how: options.Reading,
    seed: int,
) -> Parts:
    from tierrank.cli.inputs import Parts, read_fold, read_train_and_valid
    from tierrank.ranking.comparison import hold_out

    if data.is_dir():
        if valid is not None or fraction is not None:
            raise ValueError(
                f"{data}: is a folder that has its own validation part: leave out --valid and "
                "--valid-fraction, or give the training file."
            )
        return read_fold(data, fold, how)
    if fold is not None:
        raise ValueError(f"{data}: is a file, so it has no folds: leave out --fold.")
    if valid is not None:
        if fraction is not None:
            raise ValueError("--valid gives the validation data: leave out --valid-fraction.")
        return read_train_and_valid(data, valid, how)
    parts = read_train_and_valid(data, None, how)
    share = fraction if fraction is not None else 0.0 if kind == "linear" else HELD_OUT
    if share == 0:
        return parts
    if fraction is None and parts.train.n_queries < 2:
        note("there is one query only: nothing is held out, and the last step is kept.")
        return parts
    kept, held_out = hold_out(parts.train, share, seed)
    if fraction is None:
        note(f"{share:.0%} of the queries are held out to know when to stop; --valid FILE gives "
             "others, --valid-fraction 0 learns from all.")  # fmt: skip
    return Parts(kept, held_out, weights=parts.weights)


def _describe(parts: Parts, ranker: Ranker) -> None:
    from tierrank.report.tables import plain_table

    features = parts.train.n_features
    table = plain_table(f"{features:,} feature{'s' * (features != 1)}")
    for column in ("part", "rows", "queries", "rows a query", "tiers a query", "one tier only"):
        side: Any = "left" if column == "part" else "right"
        table.add_column(column, justify=side, overflow="fold")
    for name, part in parts.named().items():
        tiers = part.tiers()
        lists, counts = len(tiers), tiers.n_tiers
        table.add_row(
            name, f"{len(part):,}", f"{lists:,}", f"{len(part) / lists:.1f}",
            f"{float(counts.sum()) / lists:.1f}", f"{int((counts == 1).sum()):,}",
        )  # fmt: skip
    console = stdout()
    console.print(table)
    stops = parts.valid is not None and _keeps_best(ranker)
    judged = f"; the best step by {ranker.metric} on valid is kept" if stops else ""
    console.print(f"{type(ranker).__name__} by {_objective(ranker)}{judged}", markup=False)


def _fit(ranker: Ranker, parts: Parts, **more: Any) -> bool:
    """Fit; say whether Ctrl-C ended it."""
    train, valid = parts.train, parts.valid
    held_out = None if valid is None else (valid.X, valid.y, valid.qid)
    stopped = False
    try:
        ranker.fit(
            train.X,
            train.y,
            qid=train.qid,
            weights=parts.list_weights(),
            eval_set=held_out,
            **more,
        )
    except KeyboardInterrupt:
        stopped = True
    if train.feature_names is not None:
        _remember_names(ranker, train.feature_names)
    return stopped


def _leave(ranker: Ranker, folder: TrainingFolder) -> NoReturn:
    """Save what there is, and say how to go on."""
    from tierrank.cli.model_folder import command_to_go_on

    console = stderr()
    try:
        folder.save(ranker, _title(ranker))
        console.print(f"Stopped. The model so far is in {folder.path}", markup=False)
    except (AttributeError, ValueError):  # stopped before there was anything to save
        console.print("Stopped before the first step was done.", markup=False)
    console.print(f"To go on: {command_to_go_on()}", markup=False, soft_wrap=True)
    raise typer.Exit(INTERRUPTED)


def _remember_names(ranker: Ranker, names: tuple[str, ...]) -> None:
    """Columns of other files are found by these, whatever their order."""
    import numpy as np

    ranker.feature_names_in_ = np.asarray(names, dtype=object)


def _summarise(ranker: Ranker, parts: Parts, folder: TrainingFolder, seconds: float) -> None:
    from tierrank import metrics
    from tierrank.cli.inputs import scores_of
    from tierrank.cli.progress import duration
    from tierrank.report.tables import plain_table

    metric = metrics.from_name(ranker.metric)
    table = plain_table()
    table.add_column("part")
    table.add_column(metric.name, justify="right")
    for name, part in parts.named().items():
        value = metric(scores_of(ranker, part), part.y, qid=part.qid)
        table.add_row(name, f"{value:.4f}")
    history = ranker.history_
    console = stdout()
    console.print(table)
    steps = history.steps[-1] if history.steps else 0  # no split was possible, and that was said
    done = f"{steps:,} {history.unit}{'s' * (steps != 1)}"
    kept = history.best_step is not None and _keeps_best(ranker)
    best = f", kept as of {history.unit} {history.best_step:,}" if kept else ""
    console.print(f"{done}{best}; {duration(seconds)}", markup=False)
    console.print(f"The model is in {folder.path}", markup=False, soft_wrap=True)


def _keeps_best(ranker: Ranker) -> bool:
    """Whether validation data decide which step is kept; else it is the last."""
    return type(ranker).__name__ != "LinearRanker" or ranker.get_params()["patience"] is not None


def _title(ranker: Ranker) -> str:
    return f"{type(ranker).__name__}, {_objective(ranker)}"


def _objective(ranker: Ranker) -> str:
    params = ", ".join(f"{key}={value}" for key, value in (ranker.objective_params or {}).items())
    return f"{ranker.objective} ({params})" if params else ranker.objective
