"""`tierrank train`: from a file to a model; and what `tierrank extreme train` shares with it.

That is a folder, and the way of a training. In the folder are the model, its curve, and the
checkpoint while the training is unfinished. The folder `checkpoint` is made before the first step
and goes, by one rename, after the finished model is saved. So a process may be killed at any
moment, and the next one knows what there is to do.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol, TypeVar

import typer

import tierrank
from tierrank import storage
from tierrank.cli import options
from tierrank.cli.estimators import OPTIONS, as_options, check_names, default_kind, make_ranker
from tierrank.cli.options import (
    INTERRUPTED,
    Cluster,
    app,
    argument,
    can_draw,
    explained,
    note,
    option,
    parse_settings,
    process_number,
    stderr,
    stdout,
)
from tierrank.names import counted
from tierrank.storage import Savable

if TYPE_CHECKING:
    from tierrank.cli.inputs import Parts
    from tierrank.ranking.base import Ranker
    from tierrank.ranks import Ranks
    from tierrank.training import History

State = Literal["absent", "unfinished", "finished"]
OWN_OPTIONS = {"refit": "--refit", "members": "--members"}  # of this command alone
HELD_OUT = 0.2  # of the queries, for rankers that need to know when to stop


@dataclass(frozen=True)
class TrainingData(options.Caching, options.Categorical):
    """Which rows are learned from and stopped by, and how they are read."""

    # fmt: off
    valid: options.Valid = None
    valid_fraction: Annotated[float | None, option(
        "Without --valid: the share of the queries that is held out for it; 0 learns from all, to "
        "the last step.", min=0, max=0.9, panel=options.VALID,
        default=f"{HELD_OUT}, and 0 for linear")] = None
    fold: options.Fold = None
    weight_column: Annotated[str | None, option(
        "Column of a table that says how much a row's query counts in training, the same in all "
        "rows of the query. It is no feature.", metavar="COLUMN", panel=options.DATA)] = None
    position_column: Annotated[str | None, option(
        "Column of a table that says where a row was shown, from 1, when its label, a click, came "
        "about. What a place adds is learned with the model, and left out when it ranks. It is no "
        "feature.", metavar="COLUMN", panel=options.DATA)] = None
    # fmt: on

    @property
    def weight(self) -> str | None:
        """The column of weights."""
        return self.weight_column

    @property
    def position(self) -> str | None:
        """The column of positions."""
        return self.position_column


@app.command()
@explained
def train(
    data: Annotated[Path, argument(
        "LETOR or svmlight file, CSV or Parquet table (also .gz, .xz, .bz2); or a folder with "
        "train, vali and test files. With --dask or --workers a file or a folder of Parquet.",
        metavar="DATA")],
    out: options.Out,
    *,
    model: options.Kind = None,
    objective: Annotated[str, option(
        "What to minimise: see tierrank objectives. Parameters may follow, as in pl-topk:k=5.",
        metavar="NAME", panel="Model")] = "pl-partition",
    objective_param: Annotated[list[str] | None, option(
        "Parameter of the objective, as in k=5. Repeat for several.", metavar="NAME=VALUE",
        panel="Model")] = None,
    features: options.Features = None,
    settings: Annotated[list[str] | None, option(
        "Any other constructor argument of the estimator, as in --set trees=500; the value is "
        "JSON, or else a string. Repeat for several.", "--set", metavar="NAME=VALUE",
        panel="Model")] = None,
    metric: Annotated[str, option(
        "What is measured, as in ndcg@10 or map.", panel=options.VALID)] = "ndcg@10",
    how: TrainingData,
    cluster: Cluster,
    refit: Annotated[bool | None, option(
        "Once the validation queries have told when to stop, learn once more from them and the "
        "training queries together. What is measured on them is of the model before.",
        "--refit/--no-refit", panel=options.VALID,
        default="refit, if validation data decide when to stop")] = None,
    members: Annotated[int, option(
        "Models with seeds of their own, whose scores are averaged.", min=1, panel="Model")] = 1,
    init_model: Annotated[Path | None, option(
        "Go on from a model of the same kind that was trained before: more trees, more epochs.",
        metavar="FOLDER", panel="Model")] = None,
    seed: options.Seed = 0,
    threads: options.Threads = None,
    resume: options.Resume = False,
    overwrite: options.Overwrite = False,
    checkpoint_every: Annotated[float, option(
        "Time between two checkpoints.", min=0, metavar="SECONDS")] = 20.0,
) -> None:  # fmt: skip
    """Train a ranker on labelled rows, and save it.

    Ctrl-C stops after the step at hand and leaves a model that can be used; --resume then goes on
    to the very model that an undisturbed run would have given, also after a crash.

    torchrun --nproc-per-node=2 -m tierrank train … --model neural shares the queries among
    processes, each of which reads its own part of the files. What torchrun starts once more
    (--max-restarts) goes on by itself.
    """
    options.check_choice(resume=resume, overwrite=overwrite)
    kind = model or default_kind()
    check_names([kind], [objective], features or (), [metric])
    objective_params = parse_settings(objective_param or (), "--objective-param")
    more = parse_settings(settings or (), "--set")
    for name in OWN_OPTIONS:
        if name in more:
            raise ValueError(f"--set {name}: use {OWN_OPTIONS[name]}.")

    from tierrank.ranks import ALONE, Ranks

    options.use_threads(threads)
    ranker = make_ranker(
        kind,
        objective=objective,
        objective_params=objective_params,
        features=features or (),
        settings={**more, "refit": "auto" if refit is None else refit, "members": members},
        metric=metric,
        seed=seed,
        threads=threads,
    )
    if kind != "boosted":
        if how.categories:
            raise ValueError("--categories are for --model boosted: other models take numbers.")
        how = replace(how, categories=[])
    folder = TrainingFolder(out, several_runs=kind == "best")
    resume, overwrite = after_restart(folder, resume=resume, overwrite=overwrite)
    if cluster:
        _check_for_cluster(kind, how)
        course = {"resume": resume, "overwrite": overwrite}
        with cluster.client() as client:
            train_into(
                folder, ranker, **course, read=lambda: client, describe=_describe_cluster,
                fit=partial(_fit_on_cluster, data, how, checkpoint_every, init_model),
                summarise=_summarise_course, unit="step",
            )  # fmt: skip
        return
    helps = process_number() > 0  # started by torchrun to help the first, which says and saves all
    finished = resume and folder.state == "finished"
    if helps and (kind != "neural" or finished):
        return
    shared = kind == "neural" and options.by_torchrun() and not finished
    if shared and how.position:
        raise ValueError("--position-column does not go with torchrun: train in one process.")
    ranks = Ranks.join() if shared else ALONE
    read = partial(_read, data, kind, how, seed, ranks)
    kept: dict[str, Any] = {
        "checkpoint": folder.checkpoint, "checkpoint_every": checkpoint_every,
        "init_model": init_model,
    }  # fmt: skip
    if helps:
        try:
            folder.check(resume=resume, overwrite=overwrite)
        except ValueError:  # which the first says
            raise typer.Exit(1) from None
        parts = read()
        _describe(ranker, parts, ranks)
        _fit(ranker, parts, ranks, **kept)
        _summarise(ranker, parts, 0.0, ranks)
        return

    def shown(ranker: Ranker, parts: Parts, checkpoint: Path) -> None:
        from tierrank.cli.progress import FitDisplay

        with FitDisplay(ranker.metric) as display:
            display.begin(kind)
            _fit(ranker, parts, ranks, **kept, watch=display.watch)

    train_into(
        folder, ranker, resume=resume, overwrite=overwrite, read=read,
        describe=partial(_describe, ranks=ranks), fit=shown,
        summarise=partial(_summarise, ranks=ranks), unit="step",
    )  # fmt: skip


def _read(data: Path, kind: str, how: TrainingData, seed: int, ranks: Ranks) -> Parts:
    from tierrank.cli.progress import converting

    with converting():
        return _read_parts(data, kind, how, seed, ranks)


def _read_parts(data: Path, kind: str, how: TrainingData, seed: int, ranks: Ranks) -> Parts:
    from tierrank.cli.inputs import Parts, read_fold, read_train_and_valid
    from tierrank.ranking.comparison import hold_out

    valid, fraction = how.valid, how.valid_fraction
    part = (ranks.rank, ranks.size) if ranks.size > 1 else None
    if data.is_dir():
        if valid is not None or fraction is not None:
            raise ValueError(
                f"{data}: is a folder that has its own validation part: leave out --valid and "
                "--valid-fraction, or give the training file."
            )
        return read_fold(data, how.fold, how, part=part)
    if how.fold is not None:
        raise ValueError(f"{data}: is a file, so it has no folds: leave out --fold.")
    if valid is not None:
        if fraction is not None:
            raise ValueError("--valid gives the validation data: leave out --valid-fraction.")
        return read_train_and_valid(data, valid, how, part)
    parts = read_train_and_valid(data, None, how, part)
    share = fraction if fraction is not None else 0.0 if kind == "linear" else HELD_OUT
    if share == 0:
        return parts
    if fraction is None and sum(ranks.gather(parts.train.n_queries)) < 2:
        note("there is one query only: nothing is held out, and the last step is kept.")
        return parts
    kept, held_out = hold_out(parts.train, share, seed, ranks)
    if fraction is None:
        note(f"{share:.0%} of the queries are held out to know when to stop; --valid FILE gives "
             "others, --valid-fraction 0 learns from all.")  # fmt: skip
    return Parts(kept, held_out, weights=parts.weights)


def _describe(ranker: Ranker, parts: Parts, ranks: Ranks) -> None:
    from tierrank import metrics
    from tierrank.cli.inputs import lists_of
    from tierrank.report.tables import plain_table

    metric = metrics.from_name(ranker.metric)
    table = plain_table(
        counted(parts.train.n_features, "feature"),
        "part", "rows", "queries", "rows a query", "tiers a query", "one tier only",
    )  # fmt: skip
    for name, part in parts.named().items():
        own = [0, 0, 0, 0]
        if len(part):
            counts = lists_of(part, name, metric).n_tiers
            own = [len(part), len(counts), int(counts.sum()), int((counts == 1).sum())]
        rows, queries, tiers, single = map(sum, zip(*ranks.gather(own), strict=True))
        table.add_row(
            name, f"{rows:,}", f"{queries:,}", f"{rows / queries:.1f}", f"{tiers / queries:.1f}",
            f"{single:,}",
        )  # fmt: skip
    if ranks.rank:
        return
    console = stdout()
    console.print(table)
    stops = parts.valid is not None and ranker._keeps_best
    judged = f"; the best step by {ranker.metric} on valid is kept" if stops else ""
    if parts.valid is not None and (ranker.refit is True or (ranker.refit == "auto" and stops)):
        judged += ", then all is learned once more from train and valid (--no-refit: it is not)"
    console.print(f"{type(ranker).__name__} by {objective_of(ranker)}{judged}", markup=False)
    if ranks.size > 1:
        console.print(f"{ranks.size} processes, each with its part of the queries")


def _fit(ranker: Ranker, parts: Parts, ranks: Ranks, **more: Any) -> None:
    if ranks.size > 1:
        more["sharded"] = True
    train, valid = parts.train, parts.valid
    held_out = None if valid is None else (valid, valid.y, valid.qid)
    weights = parts.list_weights()
    with as_options({**OPTIONS, **OWN_OPTIONS}):
        ranker.fit(
            train, train.y, qid=train.qid, weights=weights, positions=train.positions,
            eval_set=held_out, **more,
        )  # fmt: skip


def _summarise(ranker: Ranker, parts: Parts, seconds: float, ranks: Ranks) -> None:
    from tierrank import metrics
    from tierrank.cli.inputs import scores_of
    from tierrank.ranking.base import sum_and_number
    from tierrank.report.tables import plain_table

    metric = metrics.from_name(ranker.metric)
    table = plain_table(None, "part", metric.name)
    for name, part in parts.named().items():
        if name == "valid" and ranker.history_.refit is not None:  # it has learned from these since
            table.add_row("valid, before the refit", f"{ranker.history_.best_metric:.4f}")
            continue
        own = (0.0, 0)
        if len(part):
            scores = scores_of(ranker, part)
            own = sum_and_number(metric(scores, part.y, qid=part.qid, reduction="none"))
        total, number = map(sum, zip(*ranks.gather(own), strict=True))
        table.add_row(name, f"{total / number:.4f}")
    if ranks.rank:
        return
    stdout().print(table)
    _summarise_course(ranker, parts, seconds)


def _summarise_course(ranker: Ranker, data: Any, seconds: float) -> None:
    from tierrank.cli.progress import duration

    trees = getattr(ranker, "rankers_", {}).get("boosted", ranker)
    if chosen := getattr(trees, "settings_by_size_", None):
        told = ", ".join(f"{name} {value}" for name, value in chosen.items() if value is not None)
        stdout().print(f"trees by the size of the data: {told}", markup=False)
    if weights := getattr(ranker, "weights_", None):
        shares = ", ".join(f"{name} {weight:.3f}" for name, weight in weights.items())
        stdout().print(
            f"weights of standardised scores: {shares}; {duration(seconds)}", markup=False
        )
        return
    history = ranker.history_
    steps = history.steps[-1] if history.steps else 0  # no split was possible, and that was said
    done = counted(steps, history.unit)
    kept = history.best_step is not None and ranker._keeps_best
    word = "kept as of" if history.refit is None else "best at"
    best = f", {word} {history.unit} {history.best_step:,}" if kept else ""
    if history.refit is not None:
        best += f", then {history.refit:,} from train and valid"
    several = f"; mean of {ranker.members} models" if ranker.members > 1 else ""
    stdout().print(f"{done}{best}{several}; {duration(seconds)}", markup=False)


# -- on a cluster -----------------------------------------------------------------------------


def _check_for_cluster(kind: str, how: TrainingData) -> None:
    if kind != "boosted":
        raise ValueError("--dask and --workers are for --model boosted: networks run by torchrun.")
    given = {"--valid-fraction": how.valid_fraction, "--fold": how.fold,
             "--separator": how.separator, "--zero-based": how.zero_based or None,
             "--cache": how.cache or None, "--cache-folder": how.cache_folder,
             "--missing": how.fill(), "--position-column": how.position}  # fmt: skip
    for name, value in given.items():
        if value is not None:
            raise ValueError(f"{name} does not go with --dask and --workers: leave it out.")


def _describe_cluster(ranker: Ranker, client: Any) -> None:
    stdout().print(f"{type(ranker).__name__} by {objective_of(ranker)}", markup=False)


def _fit_on_cluster(
    data: Path,
    how: TrainingData,
    checkpoint_every: float,
    init_model: Path | None,
    ranker: Any,
    client: Any,
    kept: Path,
) -> None:
    from tierrank.cli.progress import FitDisplay
    from tierrank.data.cluster import parquet

    def rows(path: Path) -> Any:
        frame = parquet(path)
        return frame.drop(columns=[name for name in how.drop or () if name in frame.columns])

    if how.valid is None:
        note("without --valid FILE the last tree is kept.")
    held_out = None if how.valid is None else (rows(how.valid), how.label, how.query)
    if how.categories is not None:
        ranker.set_params(categories=how.categories)
    with FitDisplay(ranker.metric) as display:
        display.begin("boosted")
        ranker.fit(
            rows(data),
            how.label,
            qid=how.query,
            weights=how.weight,
            eval_set=held_out,
            checkpoint=kept,
            checkpoint_every=checkpoint_every,
            init_model=init_model,
            watch=display.watch,
            client=client,
        )


# -- the way of a training ----------------------------------------------------------------------


class Fitted(Savable, Protocol):
    """A model that can be saved, and that knows how its training went."""

    objective: str
    history_: History


Model = TypeVar("Model", bound=Fitted)
Data = TypeVar("Data")


def train_into(
    folder: TrainingFolder,
    ranker: Model,
    *,
    resume: bool,
    overwrite: bool,
    read: Callable[[], Data],
    describe: Callable[[Model, Data], None],
    fit: Callable[[Model, Data, Path], None],
    summarise: Callable[[Model, Data, float], None],
    unit: str,
) -> None:
    """Train in a folder: look what is there, read, fit, save, and say how it went.

    Ctrl-C leaves the model so far, and says how to go on with it.

    Parameters
    ----------
    folder
        where the model goes
    ranker
        what is trained
    resume, overwrite
        what to do with an earlier training in the folder
    read
        gives the data
    describe
        says what there is to learn from
    fit
        fits, with its checkpoints in the folder that it is given
    summarise
        says how it went, and in how many seconds
    unit
        what a step is called
    """
    folder.check(resume=resume, overwrite=overwrite)
    if resume and folder.state == "finished":
        stdout().print(f"{folder.path} holds a finished model: there is nothing to go on with.")
        return
    data = read()
    describe(ranker, data)
    if resume and not folder.has_checkpoint:
        note(f"{folder.path} has no checkpoint to go on from: the training begins anew.")
    folder.begin(anew=not resume)
    begun = time.monotonic()
    try:
        try:
            fit(ranker, data, folder.checkpoint)
        except KeyboardInterrupt:
            console = stderr()
            if has_steps(ranker):
                folder.save(ranker)
                console.print(f"Stopped. The model so far is in {folder.path}", markup=False)
            else:
                console.print(f"Stopped before the first {unit} was done.", markup=False)
            console.print(f"To go on: {_command_to_go_on()}", markup=False, soft_wrap=True)
            raise typer.Exit(INTERRUPTED) from None
        folder.save(ranker)
    except typer.Exit:
        raise
    except Exception:
        folder.abandon()
        raise
    folder.drop_checkpoint()
    summarise(ranker, data, time.monotonic() - begun)
    stdout().print(f"The model is in {folder.path}", markup=False, soft_wrap=True)


def after_restart(folder: TrainingFolder, *, resume: bool, overwrite: bool) -> tuple[bool, bool]:
    """Whether to resume or overwrite: what torchrun starts once more goes on by itself."""
    if int(os.environ.get("TORCHELASTIC_RESTART_COUNT", 0)):
        resume = resume or folder.state == "unfinished" or not overwrite
    return resume, overwrite and not resume


def has_steps(ranker: Any) -> bool:
    """Whether a fit that was stopped left a model."""
    return bool(getattr(getattr(ranker, "history_", None), "steps", None))


def objective_of(ranker: Any) -> str:
    """The objective with its parameters, as in `pl-topk (k=5)`."""
    own = getattr(ranker, "objective_params", None) or {}
    params = ", ".join(f"{key}={value}" for key, value in own.items())
    return f"{ranker.objective} ({params})" if params else str(ranker.objective)


class TrainingFolder:
    """Where a training keeps what it makes.

    Parameters
    ----------
    path
        the folder; it need not exist
    several_runs
        whether a fit is made of several trainings, which keep their states in folders of their
        own below `checkpoint`
    """

    def __init__(self, path: Path, *, several_runs: bool = False) -> None:
        self.path = path
        self.checkpoint = path / "checkpoint"
        self.several_runs = several_runs

    @property
    def state(self) -> State:
        """What an earlier run left."""
        if self.checkpoint.is_dir():
            return "unfinished"
        return "finished" if storage.exists(self.path, "model") else "absent"

    @property
    def has_checkpoint(self) -> bool:
        """Whether an unfinished run got as far as to keep a state."""
        return any(storage.exists(folder, "checkpoint") for folder in self._states())

    def check(self, *, resume: bool, overwrite: bool) -> None:
        """Refuse to touch what an earlier run left, unless the user said so."""
        if self.path.exists() and not self.path.is_dir():
            raise ValueError(f"{self.path}: is a file, but a model is a folder: choose another.")
        if resume or overwrite:
            return
        if self.state == "unfinished":
            raise ValueError(
                f"{self.path}: holds an unfinished training. Add --resume to go on with it, or "
                "--overwrite to begin anew."
            )
        if self.state == "finished":
            raise ValueError(
                f"{self.path}: holds a model. Choose another --out, or add --overwrite."
            )

    def begin(self, *, anew: bool) -> None:
        """Mark the training as unfinished; a model that is there stays until it is replaced."""
        self._sweep()
        if anew:
            self.drop_checkpoint()
        self.checkpoint.mkdir(parents=True, exist_ok=True)

    def save(self, ranker: Fitted) -> None:
        """Save a model and its curve; each file appears whole."""
        from tierrank.report.plots import plot_curve
        from tierrank.report.tables import curve_csv

        tierrank.save(ranker, self.path)
        storage.replace_file(self.path / "curve.csv", curve_csv(ranker.history_).encode())
        title = f"{type(ranker).__name__}, {objective_of(ranker)}"
        if can_draw():
            plot_curve(self.path / "curve.png", ranker.history_, title=title)

    def abandon(self) -> None:
        """The fit, or its model, was refused: without a kept state nothing is left to resume."""
        if not self.has_checkpoint:
            self.drop_checkpoint()
            if not any(self.path.iterdir()):
                self.path.rmdir()

    def _states(self) -> list[Path]:
        """Folders in which a training keeps its state."""
        if not self.several_runs:
            return [self.checkpoint]
        return [each for each in self.checkpoint.glob("*") if each.is_dir()]

    def drop_checkpoint(self) -> None:
        """Leave nothing to resume, as when the model is saved."""
        old = self.path / ".checkpoint.old"
        shutil.rmtree(old, ignore_errors=True)
        if self.checkpoint.is_dir():
            self.checkpoint.rename(old)
            shutil.rmtree(old, ignore_errors=True)

    def _sweep(self) -> None:
        """Remove what killed processes were writing."""
        for folder in {self.path, self.checkpoint, *self._states()}:
            storage.sweep(folder, "model", "curve", "checkpoint")
        shutil.rmtree(self.path / ".checkpoint.old", ignore_errors=True)


def _command_to_go_on() -> str:
    """The command that was typed, as it goes on with what was stopped."""
    kept = [each for each in sys.argv[1:] if each not in ("--overwrite", "--resume")]
    return shlex.join(["tierrank", *kept, "--resume"])
