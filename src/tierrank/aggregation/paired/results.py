"""What a fitted `PairedTies` can say: worths, parameters, probabilities, a table."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from tierrank._types import FloatArray, IntArray
from tierrank.aggregation.games import Fixtures, side_of
from tierrank.aggregation.paired.table import PairedTable
from tierrank.aggregation.paired_likelihood import (
    Model,
    probabilities,
    side_log_worths,
    tie_parameter,
)
from tierrank.aggregation.priors import Prior, prior_from
from tierrank.aggregation.results import Shown
from tierrank.aggregation.summary import worth_table
from tierrank.tiers.arrays import offsets, preview
from tierrank.training.covariance import reach

TITLES = {
    "davidson": {"tie": "log v (ties)", "home": "first side"},
    "rao-kupper": {"tie": "log(θ − 1) (ties)", "home": "first side"},
    "bradley-terry": {"home": "first side"},
}


class PairedResults(Shown, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """The results of `PairedTies`, as attributes and methods."""

    model: Model
    ties: str | None
    home: bool
    prior: str | Prior | None
    uncertainty: str

    covariance_: FloatArray
    log_likelihood_: float
    n_parameters_: float
    n_games_: float
    n_iter_: int
    converged_: bool
    seconds_: float
    _extras: dict[str, float]  # "tie" and "home", in the order of `covariance_`
    _fixtures: Fixtures | None = None  # what was fitted; None in a model that was loaded

    @property
    def standard_errors_(self) -> FloatArray:
        """[items] of the centred log-worths."""
        return np.asarray(np.sqrt(np.diag(self.covariance_)[: len(self.items_)]))

    @property
    def tie_parameter_(self) -> float:
        """The v of "davidson", the θ of "rao-kupper"."""
        return tie_parameter(self.model, self._extra("tie"))

    @property
    def alpha_(self) -> float:
        """The logarithm of θ − 1 of "rao-kupper"."""
        return self._extra("tie", only="rao-kupper")

    @property
    def beta_(self) -> float:
        """The logarithm of v of "davidson"."""
        return self._extra("tie", only="davidson")

    @property
    def tie_standard_error_(self) -> float:
        """Of `alpha_` or `beta_`."""
        return self._extra_error("tie")

    @property
    def home_advantage_(self) -> float:
        """What is added to d for the first side: the log of a factor on its worth."""
        return self._extra("home")

    @property
    def home_standard_error_(self) -> float:
        """Of `home_advantage_`."""
        return self._extra_error("home")

    @property
    def aic_(self) -> float:
        """2 · parameters − 2 · log-likelihood."""
        return 2 * self.n_parameters_ - 2 * self.log_likelihood_

    @property
    def bic_(self) -> float:
        """log(games) · parameters − 2 · log-likelihood."""
        return float(np.log(self.n_games_)) * self.n_parameters_ - 2 * self.log_likelihood_

    def predict_proba(self, a: Any, b: Any, *, neutral: bool = False) -> tuple[Any, Any, Any]:
        """Probabilities that a wins, that they tie, and that b wins.

        Parameters
        ----------
        a, b
            a side, or a list or array of sides; one against many is fine. A tuple or frozenset is
            a team. With `home`, a is the first side.
        neutral
            whether the first side has no advantage

        Returns
        -------
        three floats, or three arrays [games]
        """
        check_is_fitted(self)
        first, second = self._sides(a), self._sides(b)
        if first.ndim and second.ndim and len(first) != len(second):
            raise ValueError(f"{len(first)} sides cannot meet {len(second)}: give as many of both")
        lead = first - second
        if self.home and not neutral:
            lead = lead + self._extra("home")
        chances = probabilities(self.model, np.asarray(lead), self._extras.get("tie", 0.0))
        win, tie, loss = (chance if chance.ndim else float(chance) for chance in chances)
        return win, tie, loss

    def summary(self, level: float = 0.95) -> PairedTable:
        """Items, best first, with standard errors and intervals, as a table to print."""
        table = worth_table(self, level, len(self.items_))
        return PairedTable(
            table.items, table.log_worths, table.standard_errors, table.lower, table.upper,
            table.worths, tuple(self._parameters(level)), level, table.note,
        )  # fmt: skip

    # -- parts ------------------------------------------------------------------------------

    def _parameters(self, level: float) -> list[tuple[str, float, float, float, float]]:
        """Those of ties, on the log scale, and of the first side."""
        found, reached = [], reach(level)
        for name, value in self._extras.items():
            error = self._extra_error(name)
            ends = value - reached * error, value + reached * error
            found.append((TITLES[self.model][name], value, error, *ends))
        return found

    def _errors_of(self, codes: IntArray) -> FloatArray:
        return self.standard_errors_[codes]

    def _note(self) -> str:
        return (
            f"PairedTies, {self.model}, {self.uncertainty}"
            + (f", ties={self.ties}" if self.ties else "")
            + (f", prior {prior_from(self.prior)}" if self.prior is not None else "")
            + f": {self.n_games_:,.10g} games of {len(self.items_)} items, "
            f"log-likelihood {self.log_likelihood_:.2f}, AIC {self.aic_:.2f}"
        )

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "log_worths_")

    def _extra(self, name: str, only: str | None = None) -> float:
        check_is_fitted(self)
        if name not in self._extras or (only is not None and self.model != only):
            raise AttributeError(f"model={self.model!r}, home={self.home} has no such parameter")
        return self._extras[name]

    def _extra_error(self, name: str) -> float:
        self._extra(name)
        at = len(self.items_) + list(self._extras).index(name)
        return float(np.sqrt(self.covariance_[at, at]))

    def _sides(self, sides: Any) -> FloatArray:
        """Log-worths of a side, [], or of several, [sides]."""
        if isinstance(sides, set | dict):
            raise ValueError(f"{preview(sides)} has no order: give a list, or a tuple for a team")
        several = isinstance(sides, list | range) or hasattr(sides, "tolist")
        several = several and getattr(sides, "ndim", 1) > 0
        names = list(sides.tolist() if hasattr(sides, "tolist") else sides) if several else [sides]
        number = {item: place for place, item in enumerate(self.items_)}
        teams = [side_of(name) for name in names]
        unknown = next((p for team in teams for p in team if p not in number), None)
        if unknown is not None:
            raise ValueError(f"{preview(unknown)} was in no game that was fitted")
        members = np.array([number[player] for team in teams for player in team], dtype=np.int64)
        worths = side_log_worths(self.log_worths_, members, offsets([len(team) for team in teams]))
        return worths if several else np.asarray(worths[0])
