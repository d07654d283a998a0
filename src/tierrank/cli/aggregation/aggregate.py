"""`tierrank aggregate`: who is best, by how much, and how sure that is, from a file of rankings."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tierrank.cli.aggregation import options
from tierrank.cli.aggregation.places import Places, said, write
from tierrank.cli.aggregation.wording import in_words, noted, spelled
from tierrank.cli.app import app
from tierrank.cli.messages import stdout
from tierrank.cli.options import RawCsv, Seed, Separator, Threads, named, use_threads
from tierrank.names import check_ranking_format, check_table_kind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tierrank.aggregation.aggregator import RankAggregator
    from tierrank.aggregation.paired import PairedTies
    from tierrank.data import Games, Rankings
    from tierrank.report.aggregation import AggregationPage
    from tierrank.report.from_fit import Parameter

SHOWN = 50  # items of the table, unless --top says otherwise

_OUT = "Results"


@app.command()
@in_words
def aggregate(
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", show_default=False,
                       help="Rankings with ties: PrefLib (.soc, .soi, .toc, .toi, .cat), JSON "
                       "lines (.jsonl), or a table (.csv, .tsv, .parquet) of lists, games, "
                       "preferences or rankings. Also .gz, .xz, .bz2; - for standard input."),
    ],
    top: Annotated[
        int | None,
        typer.Option(min=1, rich_help_panel=_OUT, show_default=f"all, or the first {SHOWN}",
                     help="Items that the table shows."),
    ] = None,
    level: Annotated[
        float, typer.Option(rich_help_panel=_OUT, help="How sure intervals are.")
    ] = 0.95,
    top_k: Annotated[
        int | None,
        typer.Option(min=1, metavar="K", rich_help_panel=_OUT, show_default=False,
                     help="Also show the probability of a place among the first K of a ranking."),
    ] = None,
    no_tiers: Annotated[
        bool,
        typer.Option("--no-tiers", rich_help_panel=_OUT,
                     help="Do not cut the ranking into tiers of items that the data do not tell "
                     "apart."),
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(metavar="REPORT.html", rich_help_panel=_OUT, show_default=False,
                     help="Write a report: one HTML file that needs no network."),
    ] = None,
    title: Annotated[
        str | None,
        typer.Option(rich_help_panel=_OUT, show_default="the name of the file",
                     help="Title of the report."),
    ] = None,
    json: Annotated[
        Path | None,
        typer.Option(metavar="FILE", rich_help_panel=_OUT, show_default=False,
                     help="Write all results as JSON; - for standard output, in place of the "
                     "table."),
    ] = None,
    csv: Annotated[
        Path | None,
        typer.Option(metavar="FILE", rich_help_panel=_OUT, show_default=False,
                     help="Write a row an item as CSV; - for standard output."),
    ] = None,
    raw_csv: RawCsv = False,
    save: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", rich_help_panel=_OUT, show_default=False,
                     help="Save the fitted model, for tierrank.load."),
    ] = None,
    model: options.Model = None,
    prior: options.Prior = "none",
    uncertainty: options.Uncertainty = "information",
    home: options.Home = False,
    ties: options.Ties = None,
    solver: options.Solver = "auto",
    max_iter: options.MaxIter = None,
    seed: Seed = 0,
    threads: Threads = None,
    format: options.Format = "auto",
    kind: options.Kind = None,
    strict: options.Strict = False,
    exclude: options.Exclude = None,
    min_games: options.MinGames = 0,
    component: options.Component = "all",
    weight: options.Weight = None,
    rest: options.Rest = None,
    separator: Separator = None,
    list_column: options.List = None,
    item: options.Item = None,
    rank: options.Rank = None,
    score: options.Score = None,
    missing_rank: options.MissingRank = None,
    twice: options.Twice = None,
    first: options.First = None,
    second: options.Second = None,
    winner: options.Winner = None,
    loser: options.Loser = None,
    first_score: options.FirstScore = None,
    second_score: options.SecondScore = None,
    first_wins: options.FirstWins = None,
    second_wins: options.SecondWins = None,
    tied: options.Tied = None,
    neutral: options.Neutral = None,
    first_rank: options.FirstRank = None,
    second_rank: options.SecondRank = None,
    winner_as: options.WinnerAs = None,
    tie_word: options.TieWord = None,
) -> None:  # fmt: skip
    """Rank items by what lists say of them: worths with intervals, ties used exactly.

    The log-worth of an item is how far it is from the average one. "ranks" are the places that it
    may have by its true worth; items of one tier are, for all the data say, equally good.
    """
    from tierrank.cli.aggregation import models, reading

    places = Places(out, json, csv, save)
    places.check()
    _check_level(level)
    if (first_wins is None) != (second_wins is None):
        raise ValueError("give both of --first-wins and --second-wins.")
    if component not in ("all", "largest"):
        raise ValueError(f'--component is "all" or "largest", not {component!r}.')
    if neutral is not None and not home:
        raise ValueError("--neutral says where there is no home advantage: it goes with --home.")
    columns = reading.given(
        list=list_column, item=item, rank=rank, score=score, twice=twice,
        missing_rank=reading.missing_rank(missing_rank or ()), first=first, second=second,
        winner=winner, loser=loser, first_score=first_score, second_score=second_score,
        wins=first_wins and (first_wins, second_wins), ties=tied, neutral=neutral,
        first_rank=first_rank, second_rank=second_rank, winner_as=winner_as, tie_words=tie_word,
        weight=weight, separator=separator,
    )  # fmt: skip
    reading.check_rest(rest)
    check_table_kind(kind)
    check_ranking_format(format)
    models.check_names(model, prior, uncertainty, solver, ties)
    use_threads(threads)
    wanted = partial(
        models.make_model, prior=prior, uncertainty=uncertainty, solver=solver, max_iter=max_iter,
        seed=seed, home=home, ties=ties, top_k=top_k,
    )  # fmt: skip
    fitted = wanted(model or models.usual(None, home=home))
    with models.waiting(f"Reading {file}"):
        data = reading.read(
            file, format=format, kind=kind, strict=strict, rest=rest, columns=columns
        )
    file = Path(named(file))
    if data.read_as:
        noted(f"{file.name}: {data.read_as}.")
    data, left_out = reading.fewer(
        data, exclude=exclude or (), min_games=min_games, component=component,
        ties_connect=None if model is None else models.ties_connect(fitted),
    )  # fmt: skip
    if left_out:
        noted(left_out)
    if model is None:  # by what is left: with somebody, all ties may have gone
        fitted = wanted(models.usual(data, home=home))
    _look_at_games(fitted, data, file, chosen=model is None)
    seconds = models.fit(fitted, data, file)
    with models.waiting("Computing intervals"):
        page, parameters = _page(
            fitted, data, file, title=title, level=level, top_k=top_k, tiers=not no_tiers,
            shown=top or SHOWN, seconds=seconds, seed=seed,
        )  # fmt: skip
    for each in page.notes:
        noted(each)
    _write(places, fitted, page, parameters, file, raw_csv)
    if not places.takes_stdout:
        _print(page, parameters, top)


def _check_level(level: float) -> None:
    if not 0 < level < 1:
        hint = f", as in --level {level / 100:g}" if 1 < level < 100 else ""
        raise typer.BadParameter(f"--level is between 0 and 1{hint}, not {level:g}")


def _look_at_games(
    fitted: RankAggregator | PairedTies, data: Rankings | Games, file: Path, *, chosen: bool
) -> None:
    """Refuse data that are no games to a model of games; say what becomes of ties.

    `chosen` is whether nobody asked for this model.
    """
    from tierrank.aggregation.paired import PairedTies
    from tierrank.cli.aggregation.models import tied_games
    from tierrank.data import DataFileError, Games

    tied, games = tied_games(data)
    ties = f"{tied:,.10g} of {games:,.10g} games are ties."
    if not isinstance(fitted, PairedTies):
        if tied:
            noted(
                f"{ties} To {fitted.objective} a tie is an order that nobody saw, so these say "
                "nothing; --model davidson (or rao-kupper) makes use of them."
            )
    elif chosen and tied:
        noted(f"{ties} So the model is {fitted.model}, which makes use of them.")
    elif not games:
        raise DataFileError(
            file, None,
            f"{fitted.model} is a model of games, and here are lists of other than two items: use "
            "--model pl-partition.",
        )  # fmt: skip
    elif fitted.home and not isinstance(data, Games):
        what = "--home: rankings do not say who was the first; give a table with a row a game."
        raise DataFileError(file, None, what)


def _page(
    fitted: RankAggregator | PairedTies,
    data: Rankings | Games,
    file: Path,
    *,
    title: str | None,
    level: float,
    top_k: int | None,
    tiers: bool,
    shown: int,
    seconds: float,
    seed: int,
) -> tuple[AggregationPage, list[Parameter]]:
    from tierrank.aggregation.paired import PairedTies
    from tierrank.data import Games
    from tierrank.data.files import without_compression
    from tierrank.report.from_fit import page_of, parameters

    read_as = {"read as": data.read_as} if data.read_as else {}
    page = page_of(
        fitted,
        title=title or without_compression(file).stem,
        subtitle=file.name,
        data=data if isinstance(fitted, PairedTies) else None,
        seen="games" if isinstance(data, Games) else "lists",
        level=level,
        top_k=top_k,
        tiers=tiers,
        shown=shown,
        seconds=seconds,
        settings={"file": file.name, **read_as, "seed": f"{seed}"},
        seed=seed,
    )
    notes = tuple(spelled(each) for each in page.notes)
    return replace(page, notes=notes), parameters(fitted, level)


def _write(
    places: Places,
    fitted: RankAggregator | PairedTies,
    page: AggregationPage,
    parameters: Sequence[Parameter],
    file: Path,
    raw_csv: bool,
) -> None:
    from tierrank.report.aggregation import page_html
    from tierrank.report.tables import worth_csv, worth_json
    from tierrank.storage import save

    if places.model is not None:
        said("The model", save(fitted, places.model))
    write(places.page, "The report", lambda: page_html(page))
    write(places.json, "JSON", lambda: worth_json(page, parameters, file=str(file)))
    write(places.csv, "CSV", lambda: worth_csv(page, raw=raw_csv))


def _print(page: AggregationPage, parameters: Sequence[Parameter], top: int | None) -> None:
    from tierrank.report.tables import summary_lines, worth_table

    console = stdout()
    shown = top or SHOWN
    console.print(worth_table(page, shown, console.width))
    if shown < len(page.rows):
        console.print(f"and {len(page.rows) - shown:,} more; --top and --csv show them")
    for line in summary_lines(page, parameters):
        console.print(line, markup=False)
