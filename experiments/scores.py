"""Figures of the methods on the test lists of all folds, and how sure they are."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tierrank.metrics import bootstrap_interval, paired_test

Values = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Figure:
    """The mean of a measure over all test lists, with what the paper prints for it.

    Attributes
    ----------
    features, method, measure
        what it is of
    mean, low, high
        over the test lists of all folds, with its 95 % bootstrap interval
    printed
        the paper's figure, on other data; None where it has none
    over_reference, p_value
        relative difference to the reference method under the same features, and the two-sided
        p-value of a paired randomisation test; None for the reference itself
    seconds
        time to train, all folds together
    """

    features: str
    method: str
    measure: str
    mean: float
    low: float
    high: float
    printed: float | None
    over_reference: float | None
    p_value: float | None
    seconds: float


class Gain(NamedTuple):
    """A relative difference of two means, None over a mean of 0, and its p-value."""

    relative: float | None
    p_value: float

    def __str__(self) -> str:
        return "–" if self.relative is None else f"{self.relative:+.2%}"


def p_text(p_value: float, equals: str = "") -> str:
    """A p-value as it is written: three digits, and never 0."""
    return "< 0.001" if p_value < 0.001 else f"{equals}{p_value:.3f}"


class Scores:
    """Collects the value of every test list, fold by fold.

    Parameters
    ----------
    reference
        the method that the others are compared with
    resamples
        of the bootstrap and of the paired tests
    """

    def __init__(self, reference: str, resamples: int = 10_000) -> None:
        self.reference = reference
        self.resamples = resamples
        self._values: dict[tuple[str, str, str], list[Values]] = {}
        self._seconds: dict[tuple[str, str], float] = {}

    def add(self, features: str, method: str, values: Mapping[str, Values], seconds: float) -> None:
        """Note one fold's values, [lists] by measure, and the seconds of training."""
        for measure, by_list in values.items():
            self._values.setdefault((features, method, measure), []).append(by_list)
        self._seconds[features, method] = self._seconds.get((features, method), 0.0) + seconds

    def values(self, features: str, method: str, measure: str) -> Values:
        """[lists] of all folds, one after the other."""
        return np.concatenate(self._values[features, method, measure])

    def mean(self, features: str, method: str, measure: str) -> float:
        """The mean over the test lists of all folds."""
        return float(self.values(features, method, measure).mean())

    def over(self, one: tuple[str, str], other: tuple[str, str], measure: str) -> Gain:
        """By how much one is ahead of the other; both are (features, method)."""
        mine, theirs = (self.values(*who, measure) for who in (one, other))
        test = paired_test(mine, theirs, resamples=self.resamples, generator=0)
        base = float(theirs.mean())
        return Gain(test.difference / base if base else None, test.p_value)

    def figures(self, printed: Mapping[tuple[str, str, str], float]) -> list[Figure]:
        """All of them; `printed` is by method, features and measure."""
        found = []
        for features, method, measure in self._values:
            values = self.values(features, method, measure)
            # One seed for all: the same lists are drawn for every method.
            interval = bootstrap_interval(values, resamples=self.resamples, generator=0)
            gain = None
            if method != self.reference:
                gain = self.over((features, method), (features, self.reference), measure)
            found.append(
                Figure(
                    features,
                    method,
                    measure,
                    interval.mean,
                    interval.low,
                    interval.high,
                    printed.get((method, features, measure)),
                    gain and gain.relative,
                    gain and gain.p_value,
                    self._seconds[features, method],
                )
            )
        return found

    def by_fold(self) -> list[dict[str, Any]]:
        """The mean of every fold, for those who want the spread."""
        return [
            {
                "features": features, "method": method, "measure": measure,
                "folds": [float(fold.mean()) for fold in folds],
            }
            for (features, method, measure), folds in self._values.items()
        ]  # fmt: skip


def as_csv(figures: Iterable[Figure]) -> str:
    """A line a figure, under the names of its attributes; nothing stands for None."""
    text = io.StringIO()
    table = csv.DictWriter(text, [column.name for column in fields(Figure)], lineterminator="\n")
    table.writeheader()
    for figure in figures:
        table.writerow(asdict(figure))
    return text.getvalue()
