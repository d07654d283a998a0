"""What `PairedTies` refuses before it fits anything."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tierrank.aggregation.games import Fixtures
from tierrank.aggregation.paired_likelihood import MODELS, Model
from tierrank.aggregation.priors import Prior, PseudoItem, prior_from
from tierrank.names import check_games_ties, check_uncertainty
from tierrank.training.settings import check_count, check_size

if TYPE_CHECKING:
    from tierrank.aggregation.paired.estimator import PairedTies

LARGEST_TOL = 1e-8  # so that an estimate that runs away is told from one that arrives


def check_options(options: PairedTies) -> None:
    """Refuse what the constructor was given and cannot be."""
    if options.model not in MODELS:
        raise ValueError(f"model is one of {', '.join(MODELS)}, not {options.model!r}")
    check_games_ties(options.ties)
    if options.ties is not None and options.model != "bradley-terry":
        raise ValueError(
            f"ties={options.ties!r} is for model='bradley-terry': {options.model} has a parameter "
            "for ties"
        )
    if not isinstance(options.home, bool):
        raise ValueError(f"home is True or False, not {options.home!r}")
    check_uncertainty(options.uncertainty)
    prior_from(options.prior)
    check_count("max_iter", options.max_iter)
    check_size("tol", options.tol)
    if options.tol > LARGEST_TOL:
        raise ValueError(f"tol is at most {LARGEST_TOL:g}, not {options.tol}")


def check_ties(
    fixtures: Fixtures, model: Model, ties: str | None, prior: Prior | None
) -> float:  # fmt: skip
    """Refuse ties, or the lack of them, that a model has no estimate for; gives their share."""
    tied, games = fixtures.weights[fixtures.outcome == 0].sum(), fixtures.weights.sum()
    if isinstance(prior, PseudoItem) and model != "bradley-terry":
        games += 2 * prior.wins * len(fixtures.players)  # somebody won these
    share = float(tied / games)
    if model == "bradley-terry":
        if ties == "refuse" and share:
            count = "1 game is a tie" if tied == 1 else f"{tied:g} games are ties"
            raise ValueError(
                f"{count}, for which bradley-terry has no probability: use "
                'model="davidson" or "rao-kupper", or say ties="half" (half a win and half a loss '
                'each) or ties="drop"'
            )
        if ties == "drop" and share == 1:
            raise ValueError("all games are ties, and without them there are none")
    elif share == 0:
        raise ValueError(
            f"no game is a tie, so the tie parameter of {model} has no estimate (it would be where "
            'ties have probability 0, and the model is Bradley-Terry): use model="bradley-terry"'
        )
    elif share == 1:
        raise ValueError(
            f"all games are ties, so the tie parameter of {model} has no estimate: nothing tells "
            "the items apart"
        )
    return share
