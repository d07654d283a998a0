"""Minus the log-likelihood of games, with exact first and second derivatives; its minimum.

The point is [log-worths of the players, t of the ties, h of the first side, β of the covariates],
the last three if the model has them. A side's worth is the sum of its players' worths, so with
shares s_i = worth_i / worth of the side,

    d = lse(first) − lse(second) + h + β · x,  ∂lse/∂w_i = s_i,  ∂²lse/∂w_i∂w_j = s_i (1[i=j] − s_j)

Slopes of d are sparse but for those of the covariates, [games, covariates], which are kept apart: a
Newton step over a million games takes a product of these with themselves, by BLAS.

The loss does not change if the same number is added to all log-worths (unless a prior says where
they lie).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy.sparse import csr_array, hstack
from scipy.special import expit, log_expit

from tierrank._types import FloatArray, IntArray
from tierrank.aggregation.games import Fixtures
from tierrank.aggregation.terms import Last, MatrixHessian, OnWorths, Prior, PseudoItem, Sum
from tierrank.aggregation.votes import clustered_squares
from tierrank.errors import Argument, ArgumentError
from tierrank.losses.pairwise import PAIRS
from tierrank.names import GAME_MODELS, GameModel, check_games_ties
from tierrank.training import covariance
from tierrank.training.optim import (
    Hessian,
    Iterated,
    Minimum,
    TwiceDifferentiable,
    by_cholesky,
    newton,
)

Model = GameModel
MODELS = GAME_MODELS


def check_model(model: str, ties: str | None, home: bool, models: Sequence[str] = MODELS) -> None:
    """Refuse what is no model, or what it has no use for: a way with ties, or a first side."""
    if model not in models:
        raise ArgumentError(Argument("model"), f" is one of {', '.join(models)}, not {model!r}")
    check_games_ties(ties)
    if ties is not None and model != "bradley-terry":
        why = f": {model} has a parameter for ties" if model in MODELS else f", not for {model}"
        raise ArgumentError(
            Argument("ties", ties), " is for ", Argument("model", "bradley-terry"), why
        )
    if not isinstance(home, bool):
        raise ArgumentError(Argument("home"), f" is True or False, not {home!r}")
    if home and model not in MODELS:
        raise ArgumentError(
            Argument("home"), f" is for games ({', '.join(MODELS)}), not for {model}"
        )


# -- outcomes -------------------------------------------------------------------------------------


MOST_T = 300.0  # of which e^t and its square are numbers
AT_ONCE = 1 << 15  # meetings, so that what is computed on the way is in the cache, and little


class Derivatives(NamedTuple):
    """Log-probabilities, perhaps summed, and their derivatives by d and t: [meetings] each."""

    value: FloatArray
    d: FloatArray
    t: FloatArray
    dd: FloatArray
    dt: FloatArray
    tt: FloatArray


def derivatives(model: Model, outcome: IntArray, d: FloatArray, t: float) -> Derivatives:
    """Give the log-probabilities of outcomes (1 the first won, 0 a tie, −1 the second won)."""
    return summed_derivatives(model, np.eye(3)[1 - outcome], d, t)


def summed_derivatives(model: Model, counts: FloatArray, d: FloatArray, t: float) -> Derivatives:
    """Give [meetings] Σ_o counts_o log P(o), o a win, a tie, a loss of the first; its derivatives.

    Those of Davidson's model are below. The others' are those of pairs in `losses/pairwise.py`,
    whose winner is ahead by −x. Under Bradley-Terry, a tie that is still there counts as half a win
    and half a loss.
    """
    found = Derivatives(*np.zeros((len(Derivatives._fields), len(d))))
    for start in range(0, len(d), AT_ONCE):
        block = slice(start, start + AT_ONCE)
        if model == "davidson" and abs(t) < MOST_T:
            for whole, part in zip(found, _davidson(counts[block], d[block], t), strict=True):
                whole[block] = part
            continue
        for outcome, count in zip((1, 0, -1), counts[block].T, strict=True):
            some = np.flatnonzero(count)
            parts = _of_pairs(model, outcome, d[block][some], t)
            for whole, part in zip(found, parts, strict=True):
                whole[block][some] += count[some] * part
    return found


def _of_pairs(model: Model, outcome: int, d: FloatArray, t: float) -> Derivatives:
    """[meetings] of one and the same outcome."""
    if model == "bradley-terry":
        nothing, won = np.zeros_like(d), (1 + outcome) / 2
        first, second = (PAIRS["rao_kupper_wins"](torch.from_numpy(x), 0.0) for x in (-d, d))
        loss = won * first.loss.numpy() + (1 - won) * second.loss.numpy()
        by_d = won * first.x.numpy() - (1 - won) * second.x.numpy()
        return Derivatives(-loss, by_d, nothing, -first.xx.numpy(), nothing, nothing)
    tied, sign = outcome == 0, outcome or 1
    c, slope, bend = t, 1.0, 0.0
    if model == "rao-kupper":  # the pairs' parameter is log θ = log(1 + e^t)
        c, slope = float(np.logaddexp(0, t)), float(expit(t))
        bend = slope * float(expit(-t))
    pair = PAIRS[f"{model.replace('-', '_')}_{'ties' if tied else 'wins'}"]
    loss, by_x, by_c, xx, xc, cc = (part.numpy() for part in pair(torch.from_numpy(-sign * d), c))
    value, by_t, tt = -loss, -slope * by_c, -(slope**2 * cc + bend * by_c)
    if model == "rao-kupper" and tied:
        # beside the pairs' loss, a tie has log(1 − u²), u = 1/θ = σ(−t), u′ = −u (1 − u)
        u = expit(-t)
        value = value + (np.log1p(u) - np.logaddexp(0, -t))
        by_t = by_t + 2 * u**2 / (1 + u)
        tt = tt - 2 * u**2 * (2 + u) * (1 - u) / (1 + u) ** 2
    return Derivatives(value, sign * by_x, by_t, -xx, sign * slope * xc, tt)


class DavidsonChances(NamedTuple):
    """[meetings] what the odds 1 : h² : v h of who is ahead, who is not and a tie come to.

    With h = e^(−|d|/2) and v = e^t, of no larger t than `MOST_T`.
    """

    h: FloatArray
    odds: FloatArray  # of the latter two together
    win: FloatArray
    tie: FloatArray
    loss: FloatArray

    @classmethod
    def at(cls, d: FloatArray, t: float) -> DavidsonChances:
        """At leads d."""
        h = np.exp(np.abs(d) / -2)
        odds = h * (h + np.exp(t))
        ahead = 1 / (1 + odds)
        behind = h * h * ahead
        up = d >= 0
        win, loss = np.where(up, ahead, behind), np.where(up, behind, ahead)
        return cls(h, odds, win, np.exp(t) * h * ahead, loss)


def _davidson(counts: FloatArray, d: FloatArray, t: float) -> Derivatives:
    """An exponential family: second derivatives are (co)variances of ½, −½, 0 and of 0, 0, 1.

    Two functions a meeting, where `PAIRS` takes eight.
    """
    h, odds, win, tie, loss = DavidsonChances.at(d, t)
    wins, ties, losses = counts.T
    decided, score, games = win + loss, (win - loss) / 2, wins + ties + losses
    gap, rest = np.abs(d), np.log1p(odds)
    tied = t - gap / 2 - rest
    likely = np.exp(t) * h > 1  # then the log of its probability is small beside t and log1p(odds)
    tied[likely] = -np.log1p((1 + h[likely] ** 2) / (np.exp(t) * h[likely]))
    return Derivatives(
        value=ties * tied - (wins + losses) * rest - gap * np.where(d >= 0, losses, wins),
        d=wins * (loss + tie / 2) - losses * (win + tie / 2) - ties * score,
        t=ties * decided - (wins + losses) * tie,
        dd=-games * (win * loss + tie * decided / 4),
        dt=games * tie * score,
        tt=-games * tie * decided,
    )


def probabilities(
    model: Model, d: FloatArray, t: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Give the probabilities of a win of the first side, a tie, and a win of the second."""
    if model == "davidson" and abs(t) < MOST_T:
        return DavidsonChances.at(d, t)[2:]
    if model == "davidson":
        logs = np.stack([d / 2, np.full_like(d, t), -d / 2])
        parts = np.exp(logs - logs.max(axis=0))
        win, tie, loss = parts / parts.sum(axis=0)
        return win, tie, loss
    c = 0.0 if model == "bradley-terry" else float(np.logaddexp(0, t))  # log θ
    both = np.exp(2 * c + log_expit(d - c) + log_expit(-d - c))  # θ² · win · loss
    return expit(d - c), both * (0.0 - np.expm1(-2 * c)), expit(-d - c)


def slopes_of_counts(
    model: Model, counts: FloatArray, d: FloatArray, t: float
) -> tuple[FloatArray, FloatArray]:
    """Give [games] derivatives by d and t of Σ_o counts_o log P(o), o a win, a tie, a loss.

    Davidson's and Bradley and Terry's are exponential families: by d, half of wins − losses, less
    what is expected of it; by t, ties less those expected. Rao and Kupper's P(win) is σ(d − log θ),
    P(loss) is σ(−d − log θ), and P(tie) their product times θ² − 1.
    """
    win, tie, loss = probabilities(model, d, t)
    wins, ties, losses = counts.T
    games = wins + ties + losses
    if model != "rao-kupper":
        return (wins - losses - games * (win - loss)) / 2, ties - games * tie
    first, second = (wins + ties) * (1 - win), (losses + ties) * (1 - loss)
    c = float(np.logaddexp(0, t))  # log θ
    return first - second, expit(t) * (-2 * ties / np.expm1(-2 * c) - first - second)


def tie_parameter(model: Model, t: float) -> float:
    """Give v of Davidson, θ of Rao and Kupper, from the log scale."""
    return float(np.exp(t)) if model == "davidson" else float(1 + np.exp(t))


def starting_t(share_of_ties: float) -> float:
    """Give the t that is right for this share of ties if all sides are equal, in both models."""
    return float(np.log(2 * share_of_ties / (1 - share_of_ties)))


# -- terms ----------------------------------------------------------------------------------------


class Position(NamedTuple):
    """A point, and what follows from it for every meeting."""

    shares: Any  # sparse [sides, players] of a player in its side's worth
    design: Any  # sparse [meetings, parameters but covariates], the slopes of d
    games: Derivatives  # summed over the games of a meeting


class GamesTerm:
    """Minus the log-likelihood of games.

    Games of the same two sides on the same ground are one meeting, with one lead; a game with
    covariates is a meeting by itself.

    Parameters
    ----------
    fixtures
        the games
    model
        which of the three
    home
        whether the first side has an advantage of its own

    Attributes
    ----------
    meetings, counts
        a game of each meeting; [meetings, 3] its wins, ties and losses of the first
    """

    def __init__(self, fixtures: Fixtures, model: Model, *, home: bool = False) -> None:
        self.fixtures, self.model = fixtures, model
        some, self._meeting = fixtures.meetings()
        self.meetings = fixtures._select(some)
        ended = 3 * self._meeting + 1 - fixtures.outcome
        counts = np.bincount(ended, fixtures.weights, 3 * len(some)).astype(np.float64)
        self.counts = counts.reshape(-1, 3)
        self._played = self.counts.sum(axis=1)
        self.players = len(fixtures.players)
        self.tie_at = self.players if model != "bradley-terry" else None
        self.home_at = self.players + (self.tie_at is not None) if home else None
        self.plain = self.players + (self.tie_at is not None) + home  # all but of covariates
        self.size = self.plain + fixtures.x.shape[1]
        meetings, sides = len(some), len(fixtures.borders) - 1
        both = np.stack([self.meetings.first, self.meetings.second], axis=1)
        self._ahead = csr_array(
            (np.tile([1.0, -1.0], meetings), both.ravel(), 2 * np.arange(meetings + 1)),
            shape=(meetings, sides),
        )
        self.weight = float(fixtures.weights.sum())
        self._last = Last[Position]()
        self._fixed: tuple[Any, Any] | None = None

    def scale(self) -> FloatArray:
        """[parameters] what bounds each part of the gradient: the games a player was in."""
        sides = np.abs(self._ahead).T @ self._played
        membership = self._shares(np.zeros(self.players))
        membership.data[:] = 1.0
        scale = np.full(self.size, self.weight)
        scale[: self.players] = membership.T @ sides
        scale[self.plain :] = self._played @ np.abs(self.meetings.x)
        return scale

    def units(self) -> FloatArray:
        """[parameters] by how much one changes a lead: 1, or the size of a covariate."""
        unit = np.ones(self.size)
        squares = self._played @ self.meetings.x**2 / self.weight
        unit[self.plain :] = np.sqrt(squares)
        return unit

    def value_and_gradient(self, point: FloatArray) -> tuple[float, FloatArray]:
        """The loss, and its [parameters] first derivatives."""
        position = self._position(point)
        games = position.games
        gradient = self._gradient(position.design, games.d, games.t)
        return -float(games.value.sum()), -gradient

    def gradient_of_counts(self, counts: FloatArray, point: FloatArray) -> FloatArray:
        """[parameters] of the log-likelihood of other [meetings, 3] wins, ties and losses."""
        t = 0.0 if self.tie_at is None else float(point[self.tie_at])
        design = self._shares_and_design(point)[1]
        return self._gradient(design, *slopes_of_counts(self.model, counts, self.leads(point), t))

    def _gradient(self, design: Any, pull: FloatArray, by_t: FloatArray) -> FloatArray:
        """[parameters] from the slopes of games' log-probabilities by d and t."""
        gradient = np.empty(self.size)
        gradient[: self.plain] = design.T @ pull
        gradient[self.plain :] = self.meetings.x.T @ pull
        if self.tie_at is not None:
            gradient[self.tie_at] = by_t.sum()
        return gradient

    def hessian(self, point: FloatArray) -> Hessian:
        """Its second derivatives."""
        position = self._position(point)
        games, players = position.games, self.players
        design, x, plain = position.design, self.meetings.x, self.plain
        curved = np.zeros((self.size, self.size))
        if self._met_densely:
            curved[:players, :players] = self._of_pairs(games.dd)
        else:
            curved[:plain, :plain] = (design.T @ _scaled(design, games.dd)).toarray()
        bent = x * games.dd[:, None]
        curved[:plain, plain:] = design.T @ bent
        curved[plain:, :plain] = curved[:plain, plain:].T
        curved[plain:, plain:] = x.T @ bent
        if self.tie_at is not None:
            mixed = np.concatenate([design.T @ games.dt, x.T @ games.dt])
            curved[self.tie_at] += mixed
            curved[:, self.tie_at] += mixed
            curved[self.tie_at, self.tie_at] += games.tt.sum()
        if self.fixtures.has_teams:
            pull = self._ahead.T @ games.d  # on the log-worth of every side
            shares = position.shares
            inside = -(shares.T @ _scaled(shares, pull)).toarray()
            inside[np.diag_indices(players)] += shares.T @ pull
            curved[:players, :players] += inside
        return MatrixHessian(-curved)

    @property
    def _met_densely(self) -> bool:
        """Whether slopes of d are 1 and −1 alone, of so many pairs that these fill a table."""
        alone = self.home_at is None and not self.fixtures.has_teams
        return alone and 8 * len(self.counts) >= self.players**2

    def _of_pairs(self, curvature: FloatArray) -> FloatArray:
        """[players, players] Σ curvature · a aᵀ over meetings, a = 1 of the first, −1 of the other.

        The same as the product of the sparse slopes, in a tenth of the time.
        """
        met, players = self.meetings, self.players
        one, other = met.members[met.first], met.members[met.second]
        table = np.bincount(one * players + other, curvature, players**2).reshape(players, players)
        own = np.bincount(one, curvature, players) + np.bincount(other, curvature, players)
        return np.asarray(np.diag(own) - table - table.T)

    def outer_products(self, point: FloatArray) -> FloatArray:
        """[parameters, parameters] Σ weight · g gᵀ over games, g the gradient of one of them.

        Where games are in clusters, of sums over these: see `votes`.
        """
        slopes = self.log_probabilities(point, self.fixtures.outcome)[1]
        if self.fixtures.clusters is not None:
            curvature = self.hessian(point).diagonal()
            assert curvature is not None
            weighted = _scaled(slopes, self.fixtures.weights)
            return clustered_squares(weighted, self.fixtures.clusters, curvature)
        return np.asarray((slopes.T @ _scaled(slopes, self.fixtures.weights)).toarray())

    def log_probabilities(
        self, point: FloatArray, outcome: int | IntArray
    ) -> tuple[FloatArray, Any]:
        """[games] log-probabilities of outcomes, and their sparse [games, parameters] slopes."""
        t = 0.0 if self.tie_at is None else float(point[self.tie_at])
        seen = np.broadcast_to(outcome, self.fixtures.first.shape)
        found = derivatives(self.model, seen, self.lead(point), t)
        slopes = self._shares_and_design(point)[1]
        if len(seen) > len(self.counts):  # else each meeting is one kind of game
            slopes = slopes[self._meeting]
        if self.fixtures.covariates is not None:
            slopes = hstack([slopes, csr_array(self.fixtures.covariates)], format="csr")
        slopes = _scaled(slopes, found.d)
        if self.tie_at is None:
            return found.value, slopes
        games = np.arange(len(seen))
        ties = csr_array((found.t, (games, np.full(len(games), self.tie_at))), shape=slopes.shape)
        return found.value, slopes + ties

    # -- parts ------------------------------------------------------------------------------

    def _position(self, point: FloatArray) -> Position:
        """What all derivatives at a point share."""
        return self._last.at(point, self._found)

    def _found(self, point: FloatArray) -> Position:
        t = 0.0 if self.tie_at is None else float(point[self.tie_at])
        games = summed_derivatives(self.model, self.counts, self.leads(point), t)
        return Position(*self._shares_and_design(point), games)

    def lead(self, point: FloatArray) -> FloatArray:
        """[games] d, by how much the first side is ahead."""
        return np.asarray(self.leads(point)[self._meeting])

    def leads(self, point: FloatArray) -> FloatArray:
        """[meetings] the same."""
        met = self.meetings
        sides = side_log_worths(point[: self.players], met.members, met.borders)
        lead = sides[met.first] - sides[met.second]
        if self.home_at is not None:
            lead = lead + point[self.home_at] * met.at_home
        return np.asarray(lead + met.x @ point[self.plain :])

    def _shares_and_design(self, point: FloatArray) -> tuple[Any, Any]:
        """Of a `Position`; where every side is one player, they do not depend on the point."""
        if self._fixed is not None:
            return self._fixed
        shares = self._shares(point[: self.players])
        found = shares, self._design(shares)
        if not self.fixtures.has_teams:
            self._fixed = found
        return found

    def _shares(self, w: FloatArray) -> Any:
        """Sparse [sides, players]: the part of a side's worth that is each player's."""
        members, borders = self.fixtures.members, self.fixtures.borders
        sides = side_log_worths(w, members, borders)
        shares = np.exp(w[members] - np.repeat(sides, np.diff(borders)))
        return csr_array((shares, members, borders), shape=(len(borders) - 1, self.players))

    def _design(self, shares: Any) -> Any:
        """Sparse [meetings, parameters but covariates]: slopes of d."""
        wide = self._ahead @ shares
        rest = csr_array((wide.shape[0], self.plain - self.players))
        if self.home_at is not None:
            at_home = np.flatnonzero(self.meetings.at_home)
            where = at_home, np.full(len(at_home), self.home_at - self.players)
            rest = csr_array((self.meetings.at_home[at_home], where), shape=rest.shape)
        return hstack([wide, rest], format="csr")


class PseudoGames:
    """Minus the log-density of a `PseudoItem`, as a function of all parameters.

    It is one more player, of log-worth 0 and never at home. What everybody won and lost against it
    are games of the model: under one with ties, they could have been ties.
    """

    def __init__(self, prior: PseudoItem, games: GamesTerm) -> None:
        self.wins, self.model = prior.wins, games.model
        self.players, self.tie_at, self.size = games.players, games.tie_at, games.size

    def value_and_gradient(self, point: FloatArray) -> tuple[float, FloatArray]:
        """The value, and its [parameters] gradient."""
        played, gradient = self._log_density(point), np.zeros(self.size)
        gradient[: self.players] = -played.d
        if self.tie_at is not None:
            gradient[self.tie_at] = -played.t.sum()
        return -float(played.value.sum()), gradient

    def hessian(self, point: FloatArray) -> Hessian:
        """The second derivatives."""
        played, matrix = self._log_density(point), np.zeros((self.size, self.size))
        matrix[np.diag_indices(self.players)] = -played.dd
        if self.tie_at is not None:
            matrix[: self.players, self.tie_at] = matrix[self.tie_at, : self.players] = -played.dt
            matrix[self.tie_at, self.tie_at] = -played.tt.sum()
        return MatrixHessian(matrix)

    def _log_density(self, point: FloatArray) -> Derivatives:
        """[players] what each adds to it, as a function of its log-worth and of t."""
        w, t = point[: self.players], 0.0 if self.tie_at is None else float(point[self.tie_at])
        won, lost = (
            derivatives(self.model, np.full(self.players, outcome), w, t) for outcome in (1, -1)
        )
        return Derivatives(
            *(self.wins * (one + other) for one, other in zip(won, lost, strict=True))
        )


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


# -- the minimum, and how sure it is --------------------------------------------------------------

FAR = 0.01  # a step that promises next to nothing and yet goes so far is on its way to infinity
VANISHED = 1e-13  # part of a diagonal that is left by elimination, and is a rounding error
LITTLE = 1e-10  # curvature of a prior relative to the games: too little to be told from rounding


class PairedLoss(Sum):
    """Minus the log-likelihood of games, minus the log-density of a prior if there is one.

    Parameters
    ----------
    fixtures, model, home
        as in `GamesTerm`
    prior
        of the log-worths, or None
    """

    def __init__(
        self, fixtures: Fixtures, model: Model, *, home: bool = False, prior: Prior | None = None
    ) -> None:
        self.games, self.prior = GamesTerm(fixtures, model, home=home), prior
        terms: list[TwiceDifferentiable] = [self.games]
        if isinstance(prior, PseudoItem):
            terms.append(PseudoGames(prior, self.games))
        elif prior is not None:
            terms.append(OnWorths(prior, self.games.size - self.games.players))
        super().__init__(terms)

    def log_likelihood(self, point: FloatArray) -> float:
        """Σ weight · log P(outcome), without the prior."""
        return -self.games.value_and_gradient(point)[0]

    def scale(self) -> FloatArray:
        """[parameters] what bounds each part of the gradient, or 1 where nothing does."""
        scale = self.games.scale()
        if self.prior is not None:
            scale += self.terms[1].hessian(np.zeros(self.games.size)).matrix().diagonal()
        return np.where(scale > 0, scale, 1.0)

    def minimise(
        self, start: FloatArray, *, tol: float, max_iter: int, iterated: Iterated | None = None
    ) -> Minimum:
        """Go to the minimum.

        Where the loss is not convex (teams, or Rao-Kupper far from the minimum), steps are damped
        in proportion to `scale`. It ends where the gradient is next to nothing *and* so is the
        step: games with chances near 0 and 1 have little curvature, so that a gradient which is
        small beside their number may still be steps away from the minimum.

        Parameters
        ----------
        start
            [parameters] where to begin
        tol
            it does not end before every part of the gradient is below this times the games it is
            a sum over
        max_iter, iterated
            as in `newton`
        """
        scale = self.scale()

        def solve(point: FloatArray, gradient: FloatArray, _: float) -> FloatArray | None:
            matrix = self.hessian(point).matrix()
            return by_cholesky(matrix, gradient, shared=self._shared(matrix), damping=scale)

        # no loss of a game is negative, so that rounding is relative to their sum, not to weights
        return newton(
            self.value_and_gradient, solve, start, weight=min(self.games.weight, 1.0),
            far=FAR / self.games.units(), tol=tol * scale, max_iter=max_iter, iterated=iterated,
        )  # fmt: skip

    def _shared(self, hessian: FloatArray) -> int:
        """How many parameters, all log-worths or none, can move together without a change.

        A prior says where all log-worths lie together; but for one that says next to nothing
        beside the games, whose curvature in that direction is a rounding error.
        """
        worths = hessian[: self.games.players, : self.games.players]
        together = float(worths.sum())
        fixed = self.prior is not None and together > LITTLE * float(worths.diagonal().max())
        return 0 if fixed else self.games.players

    def covariance(
        self, end: Minimum, *, sandwich: bool, names: list[str], votes: Fixtures | None = None
    ) -> FloatArray:
        """[parameters, parameters] covariance, of the log-worths minus their mean.

        Parameters
        ----------
        end
            the minimum
        sandwich
            whether the sandwich's, and not the inverse of the information
        names
            [parameters] of all that is estimated
        votes
            the games one by one, with who voted: the sandwich is then clustered by these

        Raises
        ------
        ValueError
            if the games do not determine some parameter, naming those, or if they are too few to
            see how the estimates vary between them
        """
        games = self.games
        if sandwich and games.weight <= games.size:
            raise ArgumentError(
                f"{games.weight:g} games are too few to see how {games.size} estimates vary "
                "between games: ", Argument("uncertainty", "sandwich"),
                " needs more games than parameters",
            )  # fmt: skip
        hessian, outer = self.hessian(end.point).matrix(), None
        if sandwich:
            if votes is not None and votes.clusters is not None:
                games = GamesTerm(votes, games.model, home=games.home_at is not None)
            outer = games.outer_products(end.point)
        try:
            if end.stopped_by == "no minimum":
                raise covariance.NotDefinite
            return covariance.covariance(
                hessian.copy(), outer, worths=games.players, shifted=self._shared(hessian) > 0,
                vanished=VANISHED,
            )  # fmt: skip
        except covariance.NotDefinite:
            raise self._undetermined(hessian, names) from None

    def check_minimum(self, end: Minimum, names: list[str]) -> None:
        """Refuse, as `covariance` does, a minimum that leaves a parameter open."""
        hessian = self.hessian(end.point).matrix()
        try:
            if end.stopped_by == "no minimum":
                raise covariance.NotDefinite
            covariance.factored(hessian.copy(), self._shared(hessian), VANISHED)
        except covariance.NotDefinite:
            raise self._undetermined(hessian, names) from None

    def effective_parameters(self, point: FloatArray) -> float:
        """How many parameters the games, not the prior, decide."""
        if self.prior is None:
            return float(self.games.size - 1)
        whole, games = (term.hessian(point).matrix() for term in (self, self.games))
        return covariance.effective_parameters(whole, games)

    def _undetermined(self, hessian: FloatArray, names: list[str]) -> ArgumentError:
        """The complaint about the parameters that can move without a change of the loss."""
        players = self.games.players
        unit = self.games.units()
        which = covariance.undetermined(
            hessian / np.outer(unit, unit), self.scale() / unit,
            players if self.prior is None else 0, players,
        )  # fmt: skip
        cure: list[object] = ["Leave them out."]
        if self.prior is None:
            cure = ["Give a prior (", Argument("prior", "gaussian"), "), or leave them out."]
        return ArgumentError(
            f"the games do not determine {covariance.some([names[n] for n in which] or names)}: "
            "there is no finite best value, or several go together and only their sum shows. That "
            "is so for players who are always in one team, whose team does no better for them, or "
            "for a home advantage where the home sides always win, for a covariate that tells who "
            "wins, or that is a sum of others or of something of the items; and it looks so where "
            "weights are more than 12 digits apart. ",
            *cure,
        )
