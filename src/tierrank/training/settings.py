"""How a model is trained, whatever it is."""

from __future__ import annotations

import math
import operator
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from tierrank.errors import Argument, ArgumentError

Accelerator = Literal["auto", "cpu", "cuda"]
Precision = Literal["32-true", "bf16-mixed"]


@dataclass(frozen=True)
class Course:
    """How long to train, whatever learns.

    Attributes
    ----------
    max_epochs
        passes over the data, at most
    patience
        epochs without a better validation metric that end it; None: never
    """

    max_epochs: int
    patience: int | None = None

    def __post_init__(self) -> None:
        check_count("max_epochs", self.max_epochs)
        if self.patience is not None:
            check_count("patience", self.patience)


@dataclass(frozen=True)
class AdamWSettings:
    """Of AdamW.

    Attributes
    ----------
    learning_rate, weight_decay
        only matrices decay (not biases, norms, or what an objective learns)
    clip
        longest gradient, by its norm; None: any
    """

    learning_rate: float
    weight_decay: float
    clip: float | None = None

    def __post_init__(self) -> None:
        check_size("learning_rate", self.learning_rate)
        check_size("weight_decay", self.weight_decay, zero=True)
        if self.clip is not None:
            check_size("clip", self.clip)


class Learned:
    """What `fit` sets, such as `coef_`, raises scikit-learn's `NotFittedError` before it.

    That is an `AttributeError` too, so `hasattr` is False as ever; and whatever asks for such an
    attribute, a property or a method, needs no check of its own.
    """

    # what a fit sets when it has come to its end; None: there is none that sets something before
    _last_learned: ClassVar[str | None] = None

    def __dir__(self) -> Iterable[str]:
        """All names, for TAB; scikit-learn's would ask for all values too, and compute them."""
        return object.__dir__(self)

    if not TYPE_CHECKING:  # a type checker would take it that every attribute is there

        def __getattr__(self, name: str) -> Any:
            """Called where there is no such attribute, or a property raised `AttributeError`."""
            learned = name.endswith("_") and not name.startswith("_")
            own, last = vars(self), self._last_learned
            if learned and not (last in own if last else any(each.endswith("_") for each in own)):
                from sklearn.exceptions import NotFittedError

                raise NotFittedError(
                    f"this {type(self).__name__} is not fitted yet, so it has no {name}: call fit"
                )
            return object.__getattribute__(self, name)  # raises what it raised before


def check_count(name: str, value: int, *, least: int = 1) -> None:
    """Refuse what is no whole number from `least` on."""
    try:
        fits = operator.index(value) >= least and not isinstance(value, bool)
    except TypeError:
        fits = False
    if not fits:
        what = f" is a whole number, {least} or more, not {value!r}"
        raise ArgumentError(Argument(name), what)


def check_size(name: str, value: float, *, zero: bool = False) -> None:
    """Refuse what is no finite number above 0 (or 0, if that has a meaning)."""
    try:
        fits = math.isfinite(value) and (value > 0 or (zero and value == 0))
    except TypeError:
        fits = False
    if not fits:
        what = f" is a number above 0{' or 0' if zero else ''}, not {value!r}"
        raise ArgumentError(Argument(name), what)


def member_seed(seed: int, member: int) -> int:
    """The seed of one of several models of a fit: for the first its own, then what follows."""
    if not member:
        return seed
    return int(np.random.SeedSequence([seed, member]).generate_state(1)[0])


def seed_from(random_state: Any) -> int:
    """A seed: the given one, one drawn from a `RandomState`, or a fresh one for None."""
    if random_state is None:
        return secrets.randbits(32)
    if isinstance(random_state, np.random.RandomState):  # as scikit-learn allows
        return int(random_state.randint(2**31))
    check_count("random_state", random_state, least=0)
    return operator.index(random_state)
