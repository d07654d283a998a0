"""What is fitted, from what is typed; and the fit, with a display of how it goes on."""

from __future__ import annotations

import difflib
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tierrank import names
from tierrank.cli.estimators import parse_named
from tierrank.cli.messages import stderr
from tierrank.losses import OBJECTIVES, find
from tierrank.names import GAME_MODELS as GAMES

if TYPE_CHECKING:
    from tierrank.aggregation.aggregator import RankAggregator
    from tierrank.aggregation.paired import PairedTies
    from tierrank.data import Games, Rankings


def check_names(
    model: str | None, prior: str, uncertainty: str, solver: str, ties: str | None
) -> None:
    """Refuse names that there are not, before torch is loaded: that takes seconds."""
    names.check_uncertainty(uncertainty)
    names.check_solver(solver)
    names.check_games_ties(ties)
    if model is not None and _plain(model) not in GAMES:
        _parse_objective(model)
    if prior != "none":
        names.prior_name(prior)


def make_model(
    model: str,
    *,
    prior: str,
    uncertainty: str,
    solver: str,
    max_iter: int | None,
    seed: int,
    home: bool,
    ties: str | None,
    top_k: int | None,
) -> RankAggregator | PairedTies:
    """An unfitted estimator; what is wrong with the options is found before data is read."""
    own_prior = None if prior == "none" else prior
    kind = _plain(model)
    if kind in GAMES:
        if top_k is not None:
            raise ValueError(
                f"--top-k: {kind} is a model of games, and says nothing of longer lists; --model "
                "pl-partition does."
            )
        if solver != "auto":
            raise ValueError(f"--solver: {kind} has one, Newton's method: leave it out.")
        return _of_games(kind, own_prior, uncertainty, max_iter, home, ties)
    for option, given in (("--home", home), ("--ties", ties is not None)):
        if given:
            raise ValueError(f"{option} is for {', '.join(GAMES)}, not for {model}.")
    return _of_lists(model, own_prior, uncertainty, solver, max_iter, seed)


def usual(data: Rankings | Games | None, *, home: bool) -> str:
    """The model if nobody asks for one; without data, one that has the same options."""
    from tierrank.data import Games

    if isinstance(data, Games) and tied_games(data)[0]:
        return "davidson"
    return "bradley-terry" if home else "pl-partition"


def ties_connect(fitted: RankAggregator | PairedTies) -> bool:
    """Whether a tie says that two items are about equal."""
    from tierrank.aggregation.paired import PairedTies

    return isinstance(fitted, PairedTies) and fitted.ties != "drop"


def _of_games(
    kind: Any, prior: str | None, uncertainty: Any, max_iter: int | None, home: bool, ties: Any
) -> PairedTies:
    from tierrank.aggregation.paired import PairedTies
    from tierrank.aggregation.paired.checks import check_options

    most = {} if max_iter is None else {"max_iter": max_iter}
    found = PairedTies(
        kind, ties=ties, home=home, prior=prior, uncertainty=uncertainty, **most
    )  # fmt: skip
    check_options(found)
    return found


def _of_lists(
    model: str, prior: str | None, uncertainty: Any, solver: Any, max_iter: int | None, seed: int
) -> RankAggregator:
    from tierrank.aggregation.aggregator import RankAggregator

    objective, params = _parse_objective(model)
    found = RankAggregator(
        objective,
        objective_params=params or None,
        prior=prior,
        uncertainty=uncertainty,
        solver=solver,
        max_iter=max_iter,
        random_state=seed,
    )
    try:
        found._check()
    except TypeError as error:  # of a parameter that the objective does not have
        raise ValueError(f"--model {model}: {error}.") from None
    return found


def _plain(model: str) -> str:
    return model.strip().lower().replace("_", "-")


def _parse_objective(model: str) -> tuple[str, dict[str, Any]]:
    name, params = parse_named(model, "--model")
    try:
        return find(name).name, params
    except ValueError:
        close = difflib.get_close_matches(name.lower(), [*OBJECTIVES, *GAMES], n=1)
        hint = f" Did you mean {close[0]}?" if close else ""
        raise ValueError(
            f"there is no --model {name}.{hint} It is one of `tierrank objectives`, or, for games "
            f"of two sides, {', '.join(GAMES)}."
        ) from None


def fit(model: RankAggregator | PairedTies, data: Rankings | Games, file: Path) -> float:
    """Fit, and show it; gives the seconds it took."""
    from sklearn.exceptions import ConvergenceWarning

    from tierrank.aggregation.paired import PairedTies
    from tierrank.cli.progress import FitDisplay

    begun = time.monotonic()
    with warnings.catch_warnings():
        warnings.simplefilter("always", ConvergenceWarning)
        try:
            if isinstance(model, PairedTies):
                with waiting("Fitting worths"):
                    model.fit(data)
            else:
                with FitDisplay("") as display:
                    display.begin("Fitting worths")
                    model.fit(data, watch=display.watch)
        except ValueError as error:
            raise ValueError(f"{file}: {error}") from None
    return time.monotonic() - begun


def tied_games(data: Rankings | Games) -> tuple[float, float]:
    """How many of the games are ties, and how many there are; 0 of 0 if lists are longer."""
    from tierrank.data import Games

    if isinstance(data, Games):
        tied = data.outcome == 0
    elif not data.tiers.rest and bool((data.tiers.lengths == 2).all()):
        tied = (data.tiers.n_tiers == 1).cpu().numpy()
    else:
        return 0.0, 0.0
    return float(data.weights[tied].sum()), float(data.weights.sum())


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """Say on a terminal what takes its time."""
    console = stderr()
    if not console.is_terminal:
        yield
        return
    with console.status(what):
        yield
