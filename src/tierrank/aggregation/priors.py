"""What is believed of worths before any list is seen, as terms: minus a log-density.

A prior makes the estimate finite where the lists alone do not, because some items were never
compared, or always won. It is asked for, and never slipped in.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tierrank._types import FloatArray
from tierrank.names import prior_name
from tierrank.training.optim import Hessian
from tierrank.training.settings import check_size


@dataclass(frozen=True)
class GaussianPrior:
    """Log-worths are independent and normal, with mean 0: Σ w² / (2 scale²).

    `scale` is the standard deviation of log-worths. With 1, the worths of two items differ by a
    factor of 4 typically; with 3, the lists have nearly all the say.
    """

    scale: float = 1.0

    def __post_init__(self) -> None:
        check_size("the scale of a Gaussian prior", self.scale)

    def __str__(self) -> str:
        return f"gaussian:{self.scale:g}"

    @property
    def precision(self) -> float:
        """1 / scale²."""
        return self.scale**-2

    def value_and_gradient(self, scores: FloatArray) -> tuple[float, FloatArray]:
        """Minus the log-density up to a constant, and its gradient."""
        return self.precision / 2 * float(scores @ scores), self.precision * scores

    def hessian(self, scores: FloatArray) -> Hessian:
        """The second derivatives."""
        return DiagonalHessian(np.full(len(scores), self.precision))


@dataclass(frozen=True)
class PseudoItem:
    """Every item met one more item, of log-worth 0, and won and lost `wins` times each.

    The prior of R's PlackettLuce (``npseudo``, 0.5 there by default): it connects all items, and
    shrinks their worths a little towards each other. The pseudo-item itself is in no result.
    (There its worth is an estimate too, which is the same: only differences count.)
    """

    wins: float = 0.5

    def __post_init__(self) -> None:
        check_size("the wins of a pseudo-item", self.wins)

    def __str__(self) -> str:
        return f"pseudo-item:{self.wins:g}"

    def value_and_gradient(self, scores: FloatArray) -> tuple[float, FloatArray]:
        """wins · Σ (log(1 + e^−w) + log(1 + e^w)), and its gradient."""
        size = np.abs(scores)
        value = self.wins * float((size + 2 * np.log1p(np.exp(-size))).sum())
        return value, self.wins * np.tanh(scores / 2)

    def hessian(self, scores: FloatArray) -> Hessian:
        """The second derivatives, wins / (2 cosh²(w/2))."""
        return DiagonalHessian(self.wins / 2 / np.cosh(np.clip(scores / 2, -350, 350)) ** 2)


class DiagonalHessian:
    """A diagonal matrix of second derivatives."""

    def __init__(self, diagonal: FloatArray) -> None:
        self._diagonal = diagonal

    def product(self, vector: FloatArray) -> FloatArray:
        """H · vector."""
        return self._diagonal * vector

    def diagonal(self) -> FloatArray:
        """The diagonal."""
        return self._diagonal

    def matrix(self) -> FloatArray:
        """All of it."""
        return np.diag(self._diagonal)


Prior = GaussianPrior | PseudoItem
PRIORS: dict[str, type[Prior]] = {"gaussian": GaussianPrior, "pseudo-item": PseudoItem}


def prior_from(spelled: str | Prior | None) -> Prior | None:
    """The prior that a user means by "gaussian", "gaussian:2.5", "pseudo-item:0.5" or None."""
    if spelled is None or isinstance(spelled, GaussianPrior | PseudoItem):
        return spelled
    kind, size = prior_name(spelled)
    return PRIORS[kind]() if size is None else PRIORS[kind](size)
