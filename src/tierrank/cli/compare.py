"""`tierrank compare`: several objectives and models on the same folds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tierrank.cli import options
from tierrank.cli.options import (
    INTERRUPTED,
    app,
    argument,
    can_draw,
    explained,
    note,
    option,
    stderr,
    stdout,
)
from tierrank.names import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tierrank.metrics import Metric
    from tierrank.ranking.base import Ranker
    from tierrank.ranking.comparison import Comparison, Parts, Standing
    from tierrank.ranking.peers import TreePeer


@app.command()
@explained
def compare(
    data: Annotated[Path, argument(
        "A file, which is cut into folds by query; or a folder with folds of its own (Fold1, "
        "Fold2, …, or parts such as S1 to S5).", metavar="DATA")],
    objective: Annotated[list[str] | None, option(
        "Objective, perhaps with parameters, as in pl-topk:k=5. Repeat for several; the others "
        "are compared with the first.", metavar="NAME", panel="Model", default="pl-partition"
    )] = None,
    model: Annotated[list[str] | None, option(
        "linear, neural or boosted. Repeat for several.", metavar="KIND", panel="Model",
        default="boosted")] = None,
    peer: Annotated[list[str] | None, option(
        "A ranker of another library, which learns from the same rows and stops by the same "
        "metric: lightgbm:lambdarank, lightgbm:rank_xendcg, xgboost:rank:ndcg, "
        "xgboost:rank:pairwise, catboost:YetiRank, catboost:QuerySoftMax, or all that are "
        "installed. Repeat for several.", metavar="NAME|all", panel="Model")] = None,
    features: options.Features = None,
    settings: Annotated[list[str] | None, option(
        "Constructor argument of the estimators that have it, or of one kind or library, as in "
        "boosted.trees=500 or lightgbm.leaves=15. Repeat for several.", "--set",
        metavar="NAME=VALUE", panel="Model")] = None,
    metric: Annotated[list[str] | None, option(
        "What to measure; fits stop by the first. Repeat for several.", default="ndcg@10")] = None,
    folds: Annotated[int, option("Folds that a file is cut into.", min=2)] = 5,
    valid_fraction: Annotated[float, option(
        "Share of the training queries of a file that fits stop by.", min=0.01, max=0.9)] = 0.2,
    out: Annotated[Path | None, option(
        "Write comparison.csv, .json and .png there.", metavar="FOLDER")] = None,
    raw_csv: options.RawCsv = False,
    *,
    how: options.Categorical,
    seed: options.Seed = 0,
    threads: options.Threads = None,
) -> None:  # fmt: skip
    """Train and test every model with every objective, and peers, on the same folds.

    Means are over the test queries of all folds, with 95% bootstrap intervals; differences to the
    first, on the same queries, come with the p-value of a paired randomisation test, as it is and
    corrected for the number of comparisons (Holm). The plot shows them with their intervals.
    """
    from tierrank.cli.estimators import check_names, default_kind

    kinds = model or [default_kind()]
    objectives, named = objective or ["pl-partition"], metric or ["ndcg@10"]
    check_names(kinds, objectives, features or (), named)
    peers = _peers(peer or ())
    if others := [name for name in (*kinds, *peers) if name != "boosted"]:
        if how.categories:
            raise ValueError(
                "--categories are for --model boosted: others take numbers, so leave out "
                f"{', '.join(others)}."
            )
        how = replace(how, categories=[])

    from tierrank import metrics

    options.use_threads(threads)
    measures = [metrics.from_name(name) for name in named]
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)  # better refused now than after the work
    rankers = _rankers(
        kinds, objectives, peers, settings or [],
        features=features or (), metric=measures[0].name, seed=seed, threads=threads,
    )  # fmt: skip
    parts = _folds(data, folds, valid_fraction, how, seed)
    comparison = _run(rankers, parts, measures)
    standings = comparison.standings(seed=seed)
    _show(data, comparison, standings, len(parts))
    if out is not None:
        _write(out, data, rankers, comparison, standings, raw_csv)
    if comparison.failures:
        raise typer.Exit(1)


def _peers(asked: Sequence[str]) -> list[str]:
    """The peers that are meant; names that there are not are refused, and what is not installed."""
    if not asked:
        return []
    from tierrank.ranking.peers import ALL, parse_peer

    if "all" not in asked:
        for name in asked:
            parse_peer(name)
        if len(set(asked)) < len(asked):
            twice = next(name for name in asked if asked.count(name) > 1)
            raise ValueError(f"--peer {twice} is asked for twice: leave one of them.")
        return list(asked)
    found = []
    for name in ALL:
        try:
            parse_peer(name)
            found.append(name)
        except ValueError as error:
            note(f"{error}. It is left out.")
    return found


def _rankers(
    kinds: Sequence[str],
    objectives: Sequence[str],
    peers: Sequence[str],
    settings: Sequence[str],
    **shared: Any,
) -> dict[str, Ranker | TreePeer]:
    """Every kind with every objective, by a name that says what sets it apart; then the peers."""
    from tierrank.cli.estimators import make_peer, make_ranker, settings_by_kind

    own = settings_by_kind(settings, kinds, peers)
    rankers: dict[str, Ranker | TreePeer] = {}
    for kind in kinds:
        for objective in objectives:
            name = f"{kind} {objective}"
            if name in rankers:
                raise ValueError(f"{name} is asked for twice: leave one of them.")
            rankers[name] = make_ranker(kind, objective=objective, settings=own[kind], **shared)
    shared.pop("features")  # trees of peers see what the data have
    for name in peers:
        rankers[name] = make_peer(name, settings=own[name.partition(":")[0]], **shared)
    return rankers


def _folds(
    data: Path, folds: int, valid_fraction: float, how: options.Reading, seed: int
) -> Sequence[Parts]:
    from tierrank.cli.inputs import folds_of, read_file
    from tierrank.ranking.comparison import query_folds

    if data.is_dir():
        return folds_of(data, how)
    return query_folds(read_file(data, how), folds, valid_fraction=valid_fraction, seed=seed)


def _run(
    rankers: dict[str, Ranker | TreePeer], folds: Sequence[Parts], measures: Sequence[Metric]
) -> Comparison:
    from tierrank.cli.progress import FitDisplay, duration
    from tierrank.ranking.comparison import Comparison
    from tierrank.ranking.comparison import compare as results_of
    from tierrank.training import Watch

    comparison = Comparison()
    first = measures[0].name
    with FitDisplay(first, fits=len(rankers) * len(folds)) as display:

        def starting(name: str, fold: str) -> Watch:
            display.begin(f"{fold} {name}")
            return display.watch

        try:
            for result in results_of(rankers, folds, measures, starting=starting):
                comparison.add(result)
                how = result.failure or f"{first} {result.values[first].mean():.4f}"
                display.end(f"{result.fold} {result.name}: {how}  {duration(result.seconds)}")
        except KeyboardInterrupt:
            stderr().print("Stopped: nothing is kept of a comparison that is not complete.")
            raise typer.Exit(INTERRUPTED) from None
    return comparison


def _show(data: Path, comparison: Comparison, standings: Sequence[Standing], folds: int) -> None:
    from tierrank.cli.progress import duration
    from tierrank.report.tables import standings_table

    queries = counted(max(each.queries for each in standings), "test query", "test queries")
    title = f"{data}: {queries} in {counted(folds, 'fold')}"
    times = {name: duration(seconds) for name, seconds in comparison.seconds().items()}
    console = stdout()
    console.print(
        standings_table(
            standings,
            title=title,
            heading="model, objective",
            more={"fits": times},
            width=console.width,
        )
    )
    for name, why in comparison.failures.items():
        stderr().print(f"Left out: {name}. {why}", style="red", markup=False, soft_wrap=True)


def _write(
    out: Path,
    data: Path,
    rankers: dict[str, Ranker | TreePeer],
    comparison: Comparison,
    standings: Sequence[Standing],
    raw_csv: bool,
) -> None:
    from tierrank.report.plots import plot_differences
    from tierrank.report.tables import standings_csv, standings_json
    from tierrank.storage import replace_file

    first = [each for each in standings if each.metric == standings[0].metric]
    about = {
        "data": str(data),
        "rankers": {
            name: {"estimator": type(ranker).__name__, "params": ranker._json_params()}
            for name, ranker in rankers.items()
        },
        "folds": [
            {"ranker": each.name, "fold": each.fold, "best_step": each.best_step,
             "failure": each.failure, "seconds": each.seconds,
             "means": {metric: float(column.mean()) for metric, column in each.values.items()}}
            for each in comparison.results
        ],
    }  # fmt: skip
    replace_file(out / "comparison.csv", standings_csv(standings, raw=raw_csv).encode())
    replace_file(out / "comparison.json", standings_json(standings, **about).encode())
    made = "comparison.csv and .json"
    if can_draw():
        title = f"{data.name}, test queries of all folds"
        plot_differences(out / "comparison.png", first, title=title)
        made = "comparison.csv, .json and .png"
    stdout().print(f"{made} are in {out}", markup=False, soft_wrap=True)
