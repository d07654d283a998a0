"""Minus the log-likelihood of games, with exact first and second derivatives.

The point is [log-worths of the players, t of the ties, h of the first side], the last two if the
model has them. A side's worth is the sum of its players' worths, so with shares
s_i = worth_i / worth of the side,

    d = lse(first) − lse(second) + h,     ∂lse/∂w_i = s_i,     ∂²lse/∂w_i∂w_j = s_i (1[i=j] − s_j).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from tierrank._types import FloatArray, IntArray
from tierrank.aggregation.games import Fixtures
from tierrank.aggregation.priors import Prior, PseudoItem
from tierrank.names import GAME_MODELS, GameModel

Model = GameModel
MODELS = GAME_MODELS


class Derivatives(NamedTuple):
    """Log-probability of every game's outcome, and its derivatives by d and t: [games] each."""

    value: FloatArray
    d: FloatArray
    t: FloatArray
    dd: FloatArray
    dt: FloatArray
    tt: FloatArray


def derivatives(model: Model, outcome: IntArray, d: FloatArray, t: float) -> Derivatives:
    """Give the log-probabilities of outcomes (1 the first won, 0 a tie, −1 the second won)."""
    if model == "davidson":
        return _davidson(outcome, d, t)
    if model == "rao-kupper":
        return _rao_kupper(outcome, d, t)
    return _bradley_terry(outcome, d)


def probabilities(
    model: Model, d: FloatArray, t: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Give the probabilities of a win of the first side, a tie, and a win of the second."""
    if model == "bradley-terry":
        win, loss = _sigmoid(d), _sigmoid(-d)
        return win, np.zeros_like(win), loss
    win, tie, loss = (
        np.exp(derivatives(model, np.full(d.shape, outcome), d, t).value) for outcome in (1, 0, -1)
    )
    return win, tie, loss


def tie_parameter(model: Model, t: float) -> float:
    """Give v of Davidson, θ of Rao and Kupper, from the log scale."""
    return float(np.exp(t)) if model == "davidson" else float(1 + np.exp(t))


def starting_t(share_of_ties: float) -> float:
    """Give the t that is right for this share of ties if all sides are equal, in both models."""
    return float(np.log(2 * share_of_ties / (1 - share_of_ties)))


def _davidson(outcome: IntArray, d: FloatArray, t: float) -> Derivatives:
    """P(win) : P(tie) : P(loss) = e^{d/2} : e^t : e^{−d/2}, v = e^t: an exponential family."""
    value = -np.logaddexp(
        0,  # how likely the two other outcomes are, relative to the one that was
        np.where(
            outcome == 0,
            np.logaddexp(d / 2, -d / 2) - t,
            np.logaddexp(-outcome * d, t - outcome * d / 2),
        ),
    )
    log_mass = np.logaddexp(np.logaddexp(d / 2, -d / 2), t)
    win, tie, loss = np.exp(d / 2 - log_mass), np.exp(t - log_mass), np.exp(-d / 2 - log_mass)
    lead = (win - loss) / 2
    return Derivatives(
        value=value,
        # outcome/2 − lead and [tied] − tie, without the 1 − 1 that a sure outcome would have
        d=np.where(outcome == 0, -lead, outcome * (np.where(outcome > 0, loss, win) + tie / 2)),
        t=np.where(outcome == 0, win + loss, -tie),
        dd=-(win * loss + tie * (win + loss) / 4),
        dt=tie * lead,
        tt=-tie * (win + loss),
    )


def _rao_kupper(outcome: IntArray, d: FloatArray, t: float) -> Derivatives:
    """P(win) = σ(d − η), P(loss) = σ(−d − η), P(tie) = (θ² − 1) P(win) P(loss), θ = 1 + e^t = e^η.

    A game that the first side did not lose has the term log P(win), one that it did not win has
    log P(loss), and a tie, which has both, also log(θ² − 1) = t + log(2 + e^t). The value of a
    tie is better taken as log(1 − θ^−2) + log σ(η − d) + log σ(η + d), all small where it is.
    """
    alpha = np.asarray(t)
    eta = np.logaddexp(0, alpha)
    slope, slope_t = _sigmoid(alpha), _sigmoid(alpha) * _sigmoid(-alpha)  # of η
    first = (outcome >= 0) * _sigmoid(eta - d)
    second = (outcome <= 0) * _sigmoid(eta + d)
    first_dd, second_dd = first * _sigmoid(d - eta), second * _sigmoid(-d - eta)
    tied = (outcome == 0).astype(np.float64)
    extra = _sigmoid(alpha - np.log(2))
    return Derivatives(
        value=np.where(
            outcome == 0,
            np.log1p(_sigmoid(-alpha))
            - np.logaddexp(0, -alpha)
            - np.logaddexp(0, d - eta)
            - np.logaddexp(0, -d - eta),
            -np.logaddexp(0, eta - outcome * d),
        ),
        d=first - second,
        t=tied * (1 + extra) - (first + second) * slope,
        dd=-(first_dd + second_dd),
        dt=(first_dd - second_dd) * slope,
        tt=tied * extra * (1 - extra)
        - (first_dd + second_dd) * slope**2
        - (first + second) * slope_t,
    )


def _bradley_terry(outcome: IntArray, d: FloatArray) -> Derivatives:
    """P(win) = σ(d). A tie that is still there counts as half a win and half a loss."""
    won = (1 + outcome) / 2
    win, loss = _sigmoid(d), _sigmoid(-d)
    nothing = np.zeros_like(d)
    return Derivatives(
        value=-(won * np.logaddexp(0, -d) + (1 - won) * np.logaddexp(0, d)),
        d=won * loss - (1 - won) * win,
        t=nothing,
        dd=-win * loss,
        dt=nothing,
        tt=nothing,
    )


def _sigmoid(x: FloatArray) -> FloatArray:
    """1 / (1 + e^−x), with all its digits for large negative x, and no overflow."""
    return np.asarray(np.exp(-np.logaddexp(0, -x)))


class Position(NamedTuple):
    """A point, and what follows from it for every game."""

    shares: Any  # sparse [sides, players] of a player in its side's worth
    design: Any  # sparse [games, parameters], the slopes of d
    games: Derivatives


class PairedLoss:
    """Minus the log-likelihood, minus the log-density of a prior if there is one.

    A pseudo-item is one more player, of log-worth 0 and never at home. What everybody won and lost
    against it are games of the model: under one with ties, they could have been ties.

    Parameters
    ----------
    fixtures
        the games
    model
        which of the three
    home
        whether the first side has an advantage of its own
    prior
        of the log-worths, or None
    """

    def __init__(
        self, fixtures: Fixtures, model: Model, *, home: bool = False, prior: Prior | None = None
    ) -> None:
        self.fixtures, self.model, self.prior = fixtures, model, prior
        self.players = len(fixtures.players)
        self.tie_at = self.players if model != "bradley-terry" else None
        self.home_at = self.players + (self.tie_at is not None) if home else None
        self.size = self.players + (self.tie_at is not None) + home
        at = {"tie": self.tie_at, "home": self.home_at}
        self.extras = {name: place for name, place in at.items() if place is not None}
        games, sides = len(fixtures.first), len(fixtures.borders) - 1
        each = np.arange(games)
        self._meetings = csr_array(
            (
                np.repeat([1.0, -1.0], games),
                (np.tile(each, 2), np.concatenate([fixtures.first, fixtures.second])),
            ),
            shape=(games, sides),
        )
        self.weight = float(fixtures.weights.sum())
        # where every side is one player, these do not depend on the point
        alone = None if fixtures.has_teams else self._shares(np.zeros(self.players))
        self._fixed = None if alone is None else (alone, self._design(alone))

    def scale(self) -> FloatArray:
        """[parameters] what bounds each part of the gradient: the games a player was in."""
        sides = np.abs(self._meetings).T @ self.fixtures.weights
        membership = self._shares(np.zeros(self.players))
        membership.data[:] = 1.0
        scale = np.full(self.size, self.weight)
        scale[: self.players] = membership.T @ sides
        if self.prior is not None:
            believed = self._log_prior(np.zeros(self.size))
            scale[: self.players] -= believed.dd
            if self.tie_at is not None:
                scale[self.tie_at] -= believed.tt.sum()
        return scale

    def value(self, point: FloatArray) -> float:
        """The loss."""
        loss = -self.log_likelihood(point)
        if self.prior is not None:
            loss -= float(self._log_prior(point).value.sum())
        return loss

    def log_likelihood(self, point: FloatArray) -> float:
        """Σ weight · log P(outcome), without the prior."""
        lead = self.lead(point)
        parts = derivatives(self.model, self.fixtures.outcome, lead, self._t(point))
        return float(self.fixtures.weights @ parts.value)

    def _position(self, point: FloatArray) -> Position:
        """What all derivatives at a point share."""
        games = derivatives(self.model, self.fixtures.outcome, self.lead(point), self._t(point))
        if self._fixed is not None:
            return Position(*self._fixed, games)
        shares = self._shares(point[: self.players])
        return Position(shares, self._design(shares), games)

    def gradient(self, point: FloatArray) -> FloatArray:
        """[parameters] first derivatives of the loss."""
        position = self._position(point)
        weights = self.fixtures.weights
        gradient = np.asarray(-(position.design.T @ (weights * position.games.d)))
        if self.tie_at is not None:
            gradient[self.tie_at] = -(weights @ position.games.t)
        if self.prior is not None:
            believed = self._log_prior(point)
            gradient[: self.players] -= believed.d
            if self.tie_at is not None:
                gradient[self.tie_at] -= believed.t.sum()
        return gradient

    def hessian(self, point: FloatArray, *, prior: bool = True) -> FloatArray:
        """[parameters, parameters] second derivatives of the loss, or without its prior."""
        position = self._position(point)
        games, weights, players = position.games, self.fixtures.weights, self.players
        design = position.design
        curved = (design.T @ _scaled(design, weights * games.dd)).toarray()
        if self.tie_at is not None:
            mixed = design.T @ (weights * games.dt)
            curved[self.tie_at] += mixed
            curved[:, self.tie_at] += mixed
            curved[self.tie_at, self.tie_at] += weights @ games.tt
        if self.fixtures.has_teams:
            pull = self._meetings.T @ (weights * games.d)  # on the log-worth of every side
            shares = position.shares
            inside = -(shares.T @ _scaled(shares, pull)).toarray()
            inside[np.diag_indices(players)] += shares.T @ pull
            curved[:players, :players] += inside
        hessian = -curved
        if prior and self.prior is not None:
            believed = self._log_prior(point)
            hessian[np.diag_indices(players)] -= believed.dd
            if self.tie_at is not None:
                hessian[:players, self.tie_at] -= believed.dt
                hessian[self.tie_at, :players] -= believed.dt
                hessian[self.tie_at, self.tie_at] -= believed.tt.sum()
        return np.asarray(hessian)

    def variability(self, point: FloatArray) -> FloatArray:
        """[parameters, parameters] Σ weight · g gᵀ over games, g the gradient of one of them."""
        slopes = self._slopes(self._position(point))
        return np.asarray((slopes.T @ _scaled(slopes, self.fixtures.weights)).toarray())

    def log_probabilities(self, point: FloatArray, outcome: int) -> tuple[FloatArray, FloatArray]:
        """[games] log-probabilities of one outcome, and their [games, parameters] slopes."""
        outcomes = np.full(len(self.fixtures.first), outcome)
        games = derivatives(self.model, outcomes, self.lead(point), self._t(point))
        slopes = self._slopes(self._position(point)._replace(games=games))
        return games.value, np.asarray(slopes.toarray())

    # -- parts ------------------------------------------------------------------------------

    def _t(self, point: FloatArray) -> float:
        return 0.0 if self.tie_at is None else float(point[self.tie_at])

    def _log_prior(self, point: FloatArray) -> Derivatives:
        """[players] what each adds to the log-density, as a function of its log-worth and of t."""
        w, nothing = point[: self.players], np.zeros(self.players)
        if isinstance(self.prior, PseudoItem):
            won, lost = (
                derivatives(self.model, np.full(self.players, outcome), w, self._t(point))
                for outcome in (1, -1)
            )
            both = zip(won, lost, strict=True)
            return Derivatives(*(self.prior.wins * (one + other) for one, other in both))
        assert self.prior is not None
        precision = np.full(self.players, self.prior.precision)
        return Derivatives(
            -precision * w**2 / 2, -precision * w, nothing, -precision, nothing, nothing
        )

    def lead(self, point: FloatArray) -> FloatArray:
        """[games] d, by how much the first side is ahead."""
        sides = side_log_worths(point[: self.players], self.fixtures.members, self.fixtures.borders)
        lead = sides[self.fixtures.first] - sides[self.fixtures.second]
        if self.home_at is not None:
            lead = lead + point[self.home_at] * self.fixtures.at_home
        return np.asarray(lead)

    def _shares(self, w: FloatArray) -> Any:
        """Sparse [sides, players]: the part of a side's worth that is each player's."""
        members, borders = self.fixtures.members, self.fixtures.borders
        sides = side_log_worths(w, members, borders)
        shares = np.exp(w[members] - np.repeat(sides, np.diff(borders)))
        return csr_array((shares, members, borders), shape=(len(borders) - 1, self.players))

    def _design(self, shares: Any) -> Any:
        """Sparse [games, parameters]: slopes of d."""
        wide = (self._meetings @ shares).tocoo()
        rows, columns, values = [wide.row], [wide.col], [wide.data]
        if self.home_at is not None:
            at_home = np.flatnonzero(self.fixtures.at_home)
            rows.append(at_home)
            columns.append(np.full(len(at_home), self.home_at))
            values.append(self.fixtures.at_home[at_home])
        return csr_array(
            (np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))),
            shape=(len(self.fixtures.first), self.size),
        )

    def _slopes(self, position: Position) -> Any:
        """Sparse [games, parameters]: the gradient of every game's log-probability."""
        slopes = _scaled(position.design, position.games.d)
        if self.tie_at is None:
            return slopes
        games = np.arange(len(self.fixtures.first))
        ties = csr_array(
            (position.games.t, (games, np.full(len(games), self.tie_at))), shape=slopes.shape
        )
        return slopes + ties


def side_log_worths(w: FloatArray, members: IntArray, borders: IntArray) -> FloatArray:
    """[sides] log Σ e^w over the members of every side."""
    if len(members) == len(borders) - 1:
        return np.asarray(w[members])
    values = w[members]
    top = np.maximum.reduceat(values, borders[:-1])
    sums = np.add.reduceat(np.exp(values - np.repeat(top, np.diff(borders))), borders[:-1])
    return np.asarray(top + np.log(sums))


def _scaled(rows: Any, factors: FloatArray) -> Any:
    """Sparse rows, each times its factor."""
    scaled = rows.copy()
    scaled.data *= np.repeat(factors, np.diff(rows.indptr))
    return scaled
