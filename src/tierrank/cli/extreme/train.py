"""`tierrank extreme train`: from files of rows and labels to a model."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from tierrank.cli import options as common
from tierrank.cli.extreme import options
from tierrank.cli.extreme.app import extreme
from tierrank.cli.messages import INTERRUPTED, explained, note, stderr, stdout

if TYPE_CHECKING:
    from tierrank.cli.extreme.inputs import Parts
    from tierrank.cli.model_folder import TrainingFolder
    from tierrank.extreme.ranker import ExtremeRanker

_MODEL = "Model"
_VALID = "Validation"


@extreme.command()
@explained
def train(
    data: Annotated[
        Path,
        typer.Argument(metavar="DATA", show_default=False, help=options.FEATURES_AND_LABELS),
    ],
    out: Annotated[
        Path,
        typer.Option(show_default=False, help="Folder for the model, its curve and checkpoints."),
    ],
    labels: options.Labels = None,
    split: options.Split = None,
    split_column: options.SplitColumn = 0,
    one_based: options.OneBased = False,
    n_features: Annotated[
        int | None,
        typer.Option("--n-features", min=1, rich_help_panel="Data", show_default="as in the files",
                     help="How many features there are, if other files have more."),
    ] = None,
    n_labels: Annotated[
        int | None,
        typer.Option("--n-labels", min=1, rich_help_panel="Data", show_default="as in the files",
                     help="How many labels there are, if other files have more."),
    ] = None,
    valid: Annotated[
        Path | None,
        typer.Option(metavar="FILE", rich_help_panel=_VALID, show_default=False,
                     help="Validation data, to choose the learning rate and the epoch by."),
    ] = None,
    valid_labels: Annotated[
        Path | None,
        typer.Option(metavar="FILE", rich_help_panel=_VALID, show_default=False,
                     help="Their labels, if they are in a file of their own."),
    ] = None,
    valid_fraction: Annotated[
        float | None,
        typer.Option(min=0, max=0.9, rich_help_panel=_VALID, show_default="0.25",
                     help="Without --valid: the share of the rows that is held out for it; 0 "
                     "learns from all, to the last epoch."),
    ] = None,
    metric: Annotated[
        str | None,
        typer.Option(rich_help_panel=_VALID, show_default="p@5",
                     help="What is measured: p, ndcg, psp or psndcg, at so many places."),
    ] = None,
    objective: Annotated[
        str,
        typer.Option(metavar="NAME", rich_help_panel=_MODEL,
                     help="What to minimise: pl-partition, pl-lb, pl-efron, attrank, ranknet or "
                     "ranksvm."),
    ] = "pl-partition",
    hidden: Annotated[
        list[int] | None,
        typer.Option(metavar="WIDTH", rich_help_panel=_MODEL, show_default="256",
                     help="Width of the hidden layer. Repeat for several layers."),
    ] = None,
    learning_rate: Annotated[
        list[float] | None,
        typer.Option(metavar="RATE", rich_help_panel=_MODEL, show_default="1e-4, 1e-3, 1e-2",
                     help="Learning rate. Repeat for several to choose from."),
    ] = None,
    epochs: Annotated[
        int | None,
        typer.Option(min=1, rich_help_panel=_MODEL, show_default="100",
                     help="Passes over the rows, at most."),
    ] = None,
    patience: Annotated[
        int | None,
        typer.Option(min=1, metavar="EPOCHS", rich_help_panel=_MODEL, show_default="5",
                     help="Epochs without a better metric that end it."),
    ] = None,
    batch: Annotated[
        int | None,
        typer.Option(min=1, metavar="ROWS", rich_help_panel=_MODEL, show_default="128",
                     help="Rows of a step."),
    ] = None,
    negatives: Annotated[
        int | None,
        typer.Option(min=1, metavar="LABELS", rich_help_panel=_MODEL, show_default="all labels",
                     help="Draw so many labels in a step to stand for those a row does not have."),
    ] = None,
    sampler: Annotated[
        str | None,
        typer.Option(metavar="NAME", rich_help_panel=_MODEL, show_default="uniform",
                     help="How they are drawn: uniform, frequency or in-batch."),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", rich_help_panel=_MODEL, show_default=False,
                     help="Any other constructor argument of ExtremeRanker, as in --set members=3 "
                     "or --set hidden_dropout=0.5. Repeat for several."),
    ] = None,
    seed: common.Seed = 0,
    threads: common.Threads = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with a training that was stopped.")
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the model or training that is in --out.")
    ] = False,
    checkpoint_every: Annotated[
        float,
        typer.Option(min=0, metavar="SECONDS",
                     help="Time between two checkpoints; ten times as long as writing one takes, "
                     "if that is longer."),
    ] = 20.0,
) -> None:  # fmt: skip
    """Train a ranker of labels on rows that have some of them, and save it.

    Ctrl-C stops after the step at hand and leaves a model that can be used; --resume then goes on
    to the very model that an undisturbed run would have given, also after a crash.
    """
    from tierrank.cli.extreme.estimator import check_names, make_ranker

    if resume and overwrite:
        raise typer.BadParameter("--resume goes on, --overwrite begins anew: give one of them")
    if valid is not None and valid_fraction is not None:
        raise ValueError("--valid gives the validation data: leave out --valid-fraction.")
    if valid is None and valid_labels is not None:
        raise ValueError("--valid-labels are those of --valid: give that as well.")
    if "TORCHELASTIC_RUN_ID" in os.environ and os.environ.get("WORLD_SIZE") != "1":
        raise ValueError("this works in one process, with --threads: start it without torchrun.")
    check_names(objective, metric, sampler)

    from tierrank.cli.extreme import summary
    from tierrank.cli.extreme.inputs import read_parts
    from tierrank.cli.model_folder import TrainingFolder

    common.use_threads(threads)
    ranker = make_ranker(
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
    folder.check(resume=resume, overwrite=overwrite)
    if resume and folder.state == "finished":
        stdout().print(f"{out} holds a finished model: there is nothing to go on with.")
        return
    parts = read_parts(
        options.Source(data, labels, split, split_column, one_based),
        None if valid is None else options.Source(valid, valid_labels, one_based=one_based),
        n_features=n_features,
        n_labels=n_labels,
    )
    summary.describe(ranker, parts)
    if resume and not folder.has_checkpoint:
        note(f"{out} has no checkpoint to go on from: the training begins anew.")
    folder.begin(anew=not resume)
    begun = time.monotonic()
    try:
        stopped = _fit(ranker, parts, folder.checkpoint, checkpoint_every)
        if stopped:
            _leave(ranker, folder)
        folder.save(ranker, _title(ranker))
    except (ValueError, OSError):
        folder.abandon()
        raise
    folder.finish()
    summary.tell(ranker, parts, out, time.monotonic() - begun)


def _fit(ranker: ExtremeRanker, parts: Parts, checkpoint: Path, every: float) -> bool:
    """Fit; say whether Ctrl-C ended it."""
    from tierrank.cli.extreme.estimator import labels_a_row, rows_an_epoch, runs
    from tierrank.cli.extreme.progress import TrainingDisplay

    data, valid = parts.train, parts.valid
    display = TrainingDisplay(
        ranker.metric,
        runs=runs(ranker),
        rows=rows_an_epoch(ranker, data, valid),
        labels=labels_a_row(ranker, data),
    )
    with display:
        try:
            ranker.fit(
                data.X,
                data.Y,
                eval_set=None if valid is None else (valid.X, valid.Y),
                checkpoint=checkpoint,
                checkpoint_every=every,
                watch=display.watch,
            )
        except KeyboardInterrupt:
            return True
    return False


def _leave(ranker: ExtremeRanker, folder: TrainingFolder) -> NoReturn:
    """Save what there is, and say how to go on."""
    from tierrank.cli.model_folder import command_to_go_on

    console = stderr()
    if hasattr(ranker, "networks_") and ranker.history_.steps:
        folder.save(ranker, _title(ranker))
        console.print(f"Stopped. The model so far is in {folder.path}", markup=False)
    else:
        console.print("Stopped before the first epoch was done.", markup=False)
    console.print(f"To go on: {command_to_go_on()}", markup=False, soft_wrap=True)
    raise typer.Exit(INTERRUPTED)


def _title(ranker: ExtremeRanker) -> str:
    return f"ExtremeRanker, {ranker.objective}"
