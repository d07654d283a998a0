"""`tierrank aggregate`: who is best, by how much, and how sure that is, from a file of rankings."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from tierrank import names
from tierrank.cli import options
from tierrank.cli.options import (
    MODEL,
    Cluster,
    app,
    argument,
    explained,
    named,
    note,
    option,
    parse_named,
    spell,
    waiting,
)
from tierrank.cli.rankings import Source, read_features
from tierrank.cli.results import SHOWN, Published, Results, command_line, own_title
from tierrank.errors import ArgumentError
from tierrank.names import DAVIDSON_LUCE
from tierrank.names import GAME_MODELS as GAMES

if TYPE_CHECKING:
    from tierrank.aggregation.mixture import RankMixture
    from tierrank.aggregation.results import FittedWorths
    from tierrank.data import Games, Rankings
    from tierrank.data.rankings.container import PartedRankings
    from tierrank.report.aggregation import AggregationPage

WITH_TIES = (*GAMES, DAVIDSON_LUCE)  # models that are no objective of a list alone


@dataclass(frozen=True)
class Model:
    """What is fitted; names that there are not are refused before torch is loaded."""

    # fmt: off
    model: Annotated[str | None, option(
        "pl-partition, the exact Plackett-Luce likelihood, or another of `tierrank objectives`, "
        "perhaps with parameters, as in pl-topk:k=5; davidson-luce, to which a tie says that items "
        "are close; or, for games of two, davidson, rao-kupper or bradley-terry.",
        metavar="NAME", panel=MODEL,
        default="pl-partition, and davidson for games with ties")] = None
    prior: Annotated[str, option(
        "none; gaussian or gaussian:2, normal log-worths with that standard deviation; "
        "pseudo-item or pseudo-item:0.5, everybody won and lost so often against one more item.",
        metavar="PRIOR", panel=MODEL)] = "none"
    uncertainty: Annotated[str, option(
        "What intervals rest on: information; sandwich, which holds with enough lists even where "
        "the model is wrong; or none, without intervals and tiers.", metavar="KIND", panel=MODEL
    )] = "information"
    covariate: Annotated[list[str] | None, option(
        "Column that a vote depends on besides the items, with a coefficient that is estimated: in "
        "a table of games it adds to the first side's lead, in one of lists to the item's "
        "log-worth. \"COLUMN - COLUMN\", with blanks, is a difference. Repeat for several.",
        metavar="COLUMN", panel=MODEL)] = None
    clusters: Annotated[list[str] | None, option(
        "Column of votes that belong together, such as who voted: intervals rest on how votes "
        "vary between these. Repeat for several at once. With --groups, a voter is of one group.",
        metavar="COLUMN", panel=MODEL)] = None
    home: Annotated[bool, option(
        "Models of games: the first side has an advantage, which is estimated.", "--home",
        panel=MODEL)] = False
    ties: Annotated[str | None, option(
        "What bradley-terry does with ties: refuse, half (a win and a loss by half), or drop.",
        metavar="HOW", panel=MODEL, default="refuse")] = None
    time: Annotated[str | None, option(
        "Worths that change: the column of dates (or numbers) over which log-worths walk at "
        "random. Results are those of the last period.", metavar="COLUMN", panel=MODEL)] = None
    step: Annotated[str, option(
        "With --time: how long a period is, as in 12h, 30d, 2w, 1m, 1y; of numbers, a number.",
        metavar="LENGTH", panel=MODEL)] = "30d"
    innovation: Annotated[str, option(
        "With --time: the variance of a log-worth's change in a step, or auto: estimated.",
        metavar="VARIANCE", panel=MODEL)] = "auto"
    solver: Annotated[str, option(
        "newton, lbfgs, adagrad, or auto: what suits the data.", metavar="NAME", panel=MODEL
    )] = "auto"
    max_iter: Annotated[int | None, option(
        "Most iterations.", min=1, panel=MODEL, default="100, and 10,000 of lbfgs")] = None
    features: Annotated[Path | None, option(
        "Let log-worths be a weighted sum of features of the items: a table with a column item, "
        "and numbers in all others.", metavar="FILE", panel=MODEL)] = None
    l2: Annotated[float, option(
        "With --features: the penalty on their coefficients.", min=0, panel=MODEL)] = 0.0
    groups: Annotated[str | None, option(
        "Take the lists for those of K groups that nobody named, and rank the items in each: a "
        "number, or auto, the one from 1 to 5 with the least BIC.", metavar="K|auto", panel=MODEL
    )] = None
    # fmt: on

    def __post_init__(self) -> None:
        if self.groups is not None:
            self._check_groups()
        names.check_uncertainty(self._uncertainty)
        names.check_solver(self.solver)
        names.check_games_ties(self.ties)
        if self.model is not None and _plain(self.model) not in WITH_TIES:
            _parse_objective(self.model)
        if self.prior != "none":
            names.prior_name(self.prior)
        if self.time is None and (self.step, self.innovation) != ("30d", "auto"):
            raise ValueError("--step and --innovation are of periods: they go with --time.")
        if self.features is None:
            if self.l2:
                raise ValueError("--l2 is a penalty on coefficients: it goes with --features.")
            return
        if self.model is not None and _plain(self.model) in WITH_TIES:
            raise ValueError(
                f"--features: {_plain(self.model)} takes none; --model pl-partition does."
            )
        for name, given in (
            ("--prior", self.prior != "none"), ("--solver", self.solver != "auto"),
            ("--home", self.home), ("--ties", self.ties is not None),
            ("--time", self.time is not None),
            ("--covariate", bool(self.covariate)), ("--clusters", bool(self.clusters)),
        ):  # fmt: skip
            if given:
                more = "; --l2 keeps coefficients small" if name == "--prior" else ""
                raise ValueError(f"{name} is for worths without --features{more}: leave it out.")

    def _check_groups(self) -> None:
        """Refuse numbers of groups that are none, and what goes with one ranking only."""
        if self.groups != "auto" and not (str(self.groups).isdecimal() and int(self.groups or 0)):
            raise ValueError(f"--groups is a number from 1 on, or auto, not {self.groups}.")
        for name, given in (
            ("--features", self.features is not None), ("--solver", self.solver != "auto"),
            ("--home", self.home), ("--ties", self.ties is not None),
            ("--time", self.time is not None),
            (f"--model {self.model}", _plain(self.model or "pl-partition") != "pl-partition"),
            ("--covariate", bool(self.covariate)),
            ("one of --clusters", len(self.clusters or ()) > 1),
        ):  # fmt: skip
            if given:
                raise ValueError(
                    f"--groups is for pl-partition without features: leave out {name}."
                )

    @property
    def _uncertainty(self) -> str | None:
        return None if self.uncertainty == "none" else self.uncertainty

    @property
    def covariates(self) -> list[str | tuple[str, str]]:
        """Columns, and pairs of which the difference counts."""
        found: list[str | tuple[str, str]] = []
        for spelled in self.covariate or ():
            one, minus, other = (part.strip() for part in spelled.partition(" - "))
            found.append((one, other) if minus else one)
        return found

    def name_for(self, data: Rankings | Games | None) -> str:
        """The model's; without data, if nobody asks for one, that of one with the same options."""
        from tierrank.data import Games

        if self.groups is not None:
            return "pl-partition"
        if self.model is not None:
            return self.model
        if isinstance(data, Games) and _tied_games(data)[0] and self.features is None:
            return "davidson"
        of_games = self.home or (isinstance(data, Games) and self.covariate)
        return "bradley-terry" if of_games else "pl-partition"

    def make(
        self, data: Rankings | Games | None, *, seed: int, top_k: int | None
    ) -> FittedWorths | RankMixture:
        """An unfitted estimator; what is wrong with the options is found before data is read."""
        from tierrank.aggregation.aggregator import RankAggregator
        from tierrank.aggregation.covariates import FeatureAggregator
        from tierrank.aggregation.davidson_luce import DavidsonLuce
        from tierrank.aggregation.mixture import RankMixture
        from tierrank.aggregation.paired import PairedTies

        model = self.name_for(data)
        kind = _plain(model)
        prior = None if self.prior == "none" else self.prior
        own: dict[str, Any] = {"uncertainty": self._uncertainty}
        voted = {"covariates": self.covariates or None, "clusters": self.clusters or None}
        if self.max_iter is not None:
            own["max_iter"] = self.max_iter
        if self.groups is not None:
            own |= {} if prior is None else {"prior": prior}
            groups = None if self.groups == "auto" else int(self.groups)
            voter = next(iter(self.clusters or ()), None)
            return RankMixture(groups, clusters=voter, random_state=seed, **own)
        estimator: type[RankAggregator | PairedTies | FeatureAggregator | DavidsonLuce]
        for name, given in (("--home", self.home), ("--ties", self.ties is not None)):
            if given and kind not in GAMES:
                raise ValueError(f"{name} is for {', '.join(GAMES)}, not for {model}.")
        if kind in WITH_TIES and self.solver != "auto":
            raise ValueError(f"--solver: {kind} has one, Newton's method: leave it out.")
        if kind in GAMES and top_k is not None:
            raise ValueError(
                f"--top-k: {kind} is a model of games, and says nothing of longer lists; "
                "--model pl-partition does."
            )
        other = "--time" if self.time is not None else kind if kind == DAVIDSON_LUCE else None
        for name, values in (("--covariate", self.covariate), ("--clusters", self.clusters)):
            if values and other is not None:
                raise ValueError(f"{name} does not go with {other}: leave one of them out.")
        if self.time is not None:
            return self._through_time(kind)
        if kind in GAMES:
            estimator = PairedTies
            own |= {"model": kind, "home": self.home, "ties": self.ties, "prior": prior} | voted
        elif kind == DAVIDSON_LUCE:
            estimator, own = DavidsonLuce, own | {"prior": prior}
        else:
            objective, params = _parse_objective(model)
            own |= {
                "objective": objective, "objective_params": params or None, "random_state": seed
            }  # fmt: skip
            if self.features is None:
                estimator, own = RankAggregator, own | voted
                own |= {"solver": self.solver, "prior": prior}
            else:
                estimator, own = FeatureAggregator, own | {"l2": self.l2}
        found = estimator(**own)
        try:
            found._check()
        except TypeError as error:  # of a parameter that the objective does not have
            raise ValueError(f"--model {model}: {error}.") from None
        return found

    def _through_time(self, kind: str) -> FittedWorths:
        from tierrank.aggregation.through_time import WorthsThroughTime

        if kind not in (*GAMES, "pl-partition"):
            raise ValueError(f"--time goes with pl-partition, {', '.join(GAMES)}, not with {kind}.")
        for only, given in (
            ("--solver", self.solver != "auto"),
            ("--uncertainty", self.uncertainty != "information"),
        ):
            if given:
                raise ValueError(f"{only} is for worths that do not change: leave it out.")
        own: dict[str, Any] = {} if self.max_iter is None else {"max_iter": self.max_iter}
        if self.prior != "none":
            own["prior"] = self.prior
        if self.innovation != "auto":
            own["variance"] = _number(self.innovation, "--innovation is auto or a variance above 0")
        step = self.step if not self.step.replace(".", "", 1).isdigit() else float(self.step)
        name: Any = kind if kind in GAMES else "plackett-luce"
        ties: Any = self.ties
        found = WorthsThroughTime(
            name, time=self.time or "", step=step, home=self.home, ties=ties, **own
        )
        found._check()
        return found


@app.command()
@explained
def aggregate(
    file: Annotated[Path, argument(
        "Rankings with ties: PrefLib (.soc, .soi, .toc, .toi, .cat), JSON lines (.jsonl), or a "
        "table (.csv, .tsv, .parquet) of lists, games, preferences or rankings. Also .gz, .xz, "
        ".bz2; - for standard input. With --dask or --workers a file, a folder or a pattern of "
        "Parquet.", metavar="FILE")],
    *,
    results: Results,
    published: Published,
    model: Model,
    cluster: Cluster,
    seed: options.Seed = 0,
    threads: options.Threads = None,
    source: Source,
) -> None:  # fmt: skip
    """Rank items by what lists say of them: worths with intervals, ties used exactly.

    The log-worth of an item is how far it is from the average one. "ranks" are the places that it
    may have by its true worth; items of one tier are, for all the data say, equally good.
    """
    if source.neutral is not None and not model.home:
        raise ValueError("--neutral says where there is no home advantage: it goes with --home.")
    if results.plot is not None and model.time is None:
        raise ValueError("--plot draws worths over time: it goes with --time.")
    if results.next_pairs is not None and model.groups is not None:
        raise ValueError("--next-pairs is for one ranking of all: leave out --groups.")
    if results.by is not None:
        for option_name, given in (
            ("--groups", model.groups), ("--time", model.time), ("--save", results.save),
            ("--next-pairs", results.next_pairs),
        ):  # fmt: skip
            if given is not None:
                raise ValueError(f"{option_name} is for one ranking of all: leave out --by.")
    results.check_apart(published)
    options.use_threads(threads)
    fitted: Any = model.make(None, seed=seed, top_k=results.top_k)  # refuses what is wrong
    from tierrank.aggregation.votes import columns_of_covariates

    with cluster.client() if cluster else nullcontext() as client:
        with waiting(f"Reading {file}"):
            beside = [*(model.clusters or ()), model.time, results.by]
            data = source.read(
                file, client, either_way=not model.home,
                keep=list(dict.fromkeys(name for name in beside if name)),
                keep_items=list(columns_of_covariates(model.covariates)),
            )  # fmt: skip
        file = Path(named(file))
        if data.read_as:
            note(f"{file.name}: {data.read_as}.")
        rank = partial(
            _ranked, file=file, results=results, published=published, model=model, source=source,
            seed=seed,
        )  # fmt: skip
        if results.by is None:
            fitted, pages = rank(data)
        else:
            fitted, pages = None, _ranked_by(data, file, results.by, rank)
    for line in dict.fromkeys(line for page in pages.values() for line in page.notes):
        note(line)
    for tried in getattr(fitted, "tried_", ()):
        note(
            f"{names.counted(tried.groups, 'group')}: log-likelihood "
            f"{tried.log_likelihood:,.2f}, {tried.parameters} parameters, "
            f"AIC {tried.aic:,.1f}, BIC {tried.bic:,.1f}."
        )
    of = {} if results.by is None else {"of": results.by}
    pairs = results.chosen(fitted)  # which may be refused: before anything is written
    results.show(fitted, pages[""] if list(pages) == [""] else pages, file, published, **of)
    if pairs is not None:
        results.show_pairs(pairs)


def _ranked(
    data: Any,
    *,
    file: Path,
    results: Results,
    published: Published,
    model: Model,
    source: Source,
    seed: int,
) -> tuple[Any, dict[str, AggregationPage]]:
    """Fit, and give the fit with a page for each of its groups, or one with no name."""
    fitted = model.make(None, seed=seed, top_k=results.top_k)
    everybody = data.items
    data, left_out = source.fewer(data, None if model.model is None else fitted.ties_connect)
    if left_out:
        note(left_out)
    if model.model is None:  # by what is left: with somebody, all ties may have gone
        fitted = model.make(data, seed=seed, top_k=results.top_k)
    _look_at_games(model, fitted, data, file)
    anchor = _anchor(results.anchor, data.items)
    table = model.features
    features = () if table is None else (read_features(table, everybody, data.items),)
    about = published.about(data.items)
    _fit(fitted, data, file, *features)
    groups = {
        f"group {group.number} ({group.share_:.0%})": group
        for group in getattr(fitted, "groups_", ())
    }
    with waiting("Computing intervals"):
        return fitted, {
            name: _page(each, data, file, results, about, model, anchor, seed)
            for name, each in (groups or {"": fitted}).items()
        }


def _ranked_by(
    data: Any, file: Path, column: str, rank: Callable[[Any], tuple[Any, dict[str, Any]]]
) -> dict[str, AggregationPage]:
    """A page for each value of a column; what has no ranking of its own is told, and left out."""
    from tierrank.data import DataFileError

    if not hasattr(data, "by"):
        raise DataFileError(file, None, "--by is for lists in one process, and these are too many.")
    try:
        parts = data.by(column)
    except ValueError as error:
        raise DataFileError(file, None, str(error)) from None
    pages, why = {}, ""
    for value, part in parts.items():
        note(f"{column}: {value}.")
        try:
            pages[str(value)] = rank(part)[1][""]
        except ValueError as error:
            why = str(error).removeprefix(f"{file}: ").partition("\n")[0]
            note(f"It is left out: {why}")
    if not pages:
        raise DataFileError(file, None, f"no {column} has a ranking of its own: {why}")
    return pages


def _look_at_games(model: Model, fitted: Any, data: Rankings | Games, file: Path) -> None:
    """Refuse data that are no games to a model of games; say what becomes of ties."""
    from tierrank.data import DataFileError, Games

    name = _plain(model.name_for(data))
    tied, games = _tied_games(data)
    ties = f"{tied:,.10g} of {games:,.10g} games {'is a tie' if tied == 1 else 'are ties'}."
    if not fitted.of_games:
        if tied and not fitted.ties_connect:
            without = "" if model.features is None else ", without --features"
            note(
                f"{ties} To {name.partition(':')[0]} a tie is an order that nobody saw, so ties "
                f"say nothing; --model davidson (or rao-kupper) makes use of them{without}."
            )
    elif model.model is None and tied:
        note(f"{ties} So the model is {name}, which makes use of ties.")
    elif not games:
        raise DataFileError(
            file, None,
            f"{name} is a model of games, and here are lists of other than two items: use --model "
            "pl-partition.",
        )  # fmt: skip
    elif model.home and not isinstance(data, Games):
        what = "--home: rankings do not say who was the first; give a table with a row a game."
        raise DataFileError(file, None, what)


def _tied_games(data: Rankings | Games | PartedRankings) -> tuple[float, float]:
    """How many of the games are ties, and how many there are; 0 of 0 if lists are longer."""
    from tierrank.data import Games
    from tierrank.data.rankings.container import PartedRankings

    if isinstance(data, Games):
        tied = data.outcome == 0
    elif isinstance(data, PartedRankings):
        return data.ties() if data.of_games else (0.0, 0.0)
    elif not data.tiers.rest and bool((data.tiers.lengths == 2).all()):
        tied = (data.tiers.n_tiers == 1).cpu().numpy()
    else:
        return 0.0, 0.0
    return float(data.weights[tied].sum()), float(data.weights.sum())


def _fit(fitted: Any, data: Rankings | Games, file: Path, *features: Any) -> None:
    """Fit, and show how it goes on."""
    from sklearn.exceptions import ConvergenceWarning

    from tierrank.cli.progress import FitDisplay

    with warnings.catch_warnings():
        warnings.simplefilter("always", ConvergenceWarning)
        try:
            with FitDisplay("") as display:
                display.begin("Fitting worths")
                fitted.fit(data, *features, watch=display.watch)
        except ArgumentError as error:
            raise ValueError(f"{file}: {error.spelled(spell)}") from None
        except ValueError as error:
            raise ValueError(f"{file}: {error}") from None


def _page(
    fitted: FittedWorths,
    data: Rankings | Games,
    file: Path,
    results: Results,
    about: dict[str, Any],
    model: Model,
    anchor: Any,
    seed: int,
) -> AggregationPage:
    from tierrank.data import Games
    from tierrank.data.files import without_compression
    from tierrank.report.from_fit import facts_of, page_of

    read_as = {"read as": data.read_as} if data.read_as else {}
    return page_of(
        fitted,
        title=results.title or own_title(file) or without_compression(file).stem,
        subtitle=file.name,
        seen="games" if isinstance(data, Games) or getattr(data, "of_games", False) else "lists",
        level=results.level,
        scale=results.scale,
        anchor=anchor,
        top_k=results.top_k,
        tiers=not results.no_tiers,
        shown=results.top or SHOWN,
        settings={"file": file.name, **read_as, "seed": f"{seed}"},
        seed=seed,
        spell=spell,
        facts=facts_of(data, model.clusters or (), model.time),
        command=command_line(),
        check=results.out is not None,
        **about,
    )


def _anchor(spelled: str | None, items: Sequence[Any]) -> Any:
    """The item that `--anchor` names, and where it stands if that is said."""
    if spelled is None:
        return None
    by_word = {str(item): item for item in items}
    name, equals, at = spelled.rpartition("=")
    if spelled in by_word or not equals:
        name, at = spelled, ""
    if name not in by_word:
        guess = names.did_you_mean(name, by_word)
        raise ValueError(f"--anchor: there is no item {name!r}.{guess}")
    if not at:
        return by_word[name]
    try:
        return {by_word[name]: float(at)}
    except ValueError:
        raise ValueError(f"--anchor {spelled}: {at!r} is no rating; write ITEM=1200.") from None


def _number(text: str, what: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{what}, not {text!r}.") from None


def _plain(model: str) -> str:
    return model.strip().lower().replace("_", "-")


def _parse_objective(model: str) -> tuple[str, dict[str, Any]]:
    from tierrank.losses.record import OBJECTIVES, find

    name, params = parse_named(model, "--model")
    try:
        return find(name).name, params
    except ValueError:
        guess = names.did_you_mean(name.lower(), [*OBJECTIVES, *WITH_TIES])
        raise ValueError(
            f"there is no --model {name}.{guess} It is one of `tierrank objectives`, "
            f"{DAVIDSON_LUCE}, or, for games of two sides, {', '.join(GAMES)}."
        ) from None
