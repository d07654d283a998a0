"""How a game ends: log-probabilities of a win, a tie and a loss, and their derivatives.

Everything is a function of d, how far the first side is ahead in log-worth, and of t, the model's
parameter for ties on the log scale. Sums of positive parts throughout, so that no digits are lost,
wherever d and t lie.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tierrank.names import GAME_MODELS, GameModel

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

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
    slope, bend = _sigmoid(alpha), _sigmoid(alpha) * _sigmoid(-alpha)  # of η
    first = (outcome >= 0) * _sigmoid(eta - d)
    second = (outcome <= 0) * _sigmoid(eta + d)
    first_bend, second_bend = first * _sigmoid(d - eta), second * _sigmoid(-d - eta)
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
        dd=-(first_bend + second_bend),
        dt=(first_bend - second_bend) * slope,
        tt=tied * extra * (1 - extra)
        - (first_bend + second_bend) * slope**2
        - (first + second) * bend,
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
