"""Figures of fits with several seeds, from the labels that they predict, in per cent."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from extreme_data import DataSet
from extreme_fits import Done

from tierrank.metrics import bootstrap_interval, labels, paired_test

Values = npt.NDArray[np.float64]

PLACES = (1, 3, 5, 10)
KINDS = ("P", "PSP", "nDCG", "PSnDCG")
DRAWS = 20_000_000  # random numbers of a bootstrap or a test, about


@dataclass(frozen=True)
class Figure:
    """A measure of one method.

    Attributes
    ----------
    method, measure
        what it is of
    mean, deviation
        over the seeds; there is no standard deviation of one seed
    low, high
        95 % bootstrap interval of the mean over the test rows, each with its mean over the seeds
    seeds
        how many
    printed
        what the paper or the repository says of the real set; None where they say nothing
    seconds
        of training, on average
    """

    method: str
    measure: str
    mean: float
    deviation: float | None
    low: float
    high: float
    seeds: int
    printed: float | None
    seconds: float


class Difference(NamedTuple):
    """By how much one method is ahead, in percentage points.

    `mean` and `deviation` are over the seeds, `low` and `high` a 95 % interval and `p_value` the
    two-sided p of a paired randomisation test over the test rows.
    """

    mean: float
    deviation: float | None
    low: float
    high: float
    p_value: float


class Figures:
    """All measures of finished fits.

    Parameters
    ----------
    data
        whose test rows the predictions are for
    done
        the fits; those that share the name of a reading are seeds of one method
    printed
        in per cent, by method and measure
    """

    def __init__(
        self,
        data: DataSet,
        done: Iterable[Done],
        printed: Mapping[tuple[str, str], float] | None = None,
    ) -> None:
        self.printed = dict(printed or {})
        self.measures = [f"{kind}@{k}" for kind in KINDS for k in PLACES]
        inverse = data.inverse_propensity()
        self._values: dict[tuple[str, str], list[Values]] = {}
        self._seconds: dict[str, list[float]] = {}
        self._differences: dict[tuple[str, str, str], Difference] = {}
        for each in done:
            for name, top in each.top.items():
                for measure in self.measures:
                    rows = labels.from_name(measure)(top, data.test.Y, inverse, reduction="none")
                    self._values.setdefault((name, measure), []).append(100 * rows)
                self._seconds.setdefault(name, []).append(each.seconds)

    @property
    def methods(self) -> list[str]:
        """Names, in the order of the fits."""
        return list(self._seconds)

    def by_seed(self, method: str, measure: str) -> list[float]:
        """A value for each seed."""
        return [float(rows.mean()) for rows in self._values[method, measure]]

    def rows(self, method: str, measure: str) -> Values:
        """[test rows] means over the seeds."""
        return np.asarray(np.mean(self._values[method, measure], axis=0))

    def mean(self, method: str, measure: str) -> float:
        """The mean over the seeds."""
        return float(np.mean(self.by_seed(method, measure)))

    @cached_property
    def all(self) -> list[Figure]:
        """Every method's measures."""
        return [self._figure(m, measure) for m in self.methods for measure in self.measures]

    @cached_property
    def _by_name(self) -> dict[tuple[str, str], Figure]:
        return {(figure.method, figure.measure): figure for figure in self.all}

    def __getitem__(self, what: tuple[str, str]) -> Figure:
        """The figure of a method and a measure."""
        return self._by_name[what]

    def best(self, measure: str, among: Sequence[str] | None = None) -> str:
        """Which method has the highest mean."""
        return max(among or self.methods, key=lambda method: self.mean(method, measure))

    def over(self, one: str, other: str, measure: str) -> Difference:
        """By how much one is ahead of the other; seeds are paired, and so are test rows."""
        what = (one, other, measure)
        if what not in self._differences:
            mine, theirs = self.by_seed(one, measure), self.by_seed(other, measure)
            rows = self.rows(one, measure), self.rows(other, measure)
            test = paired_test(*rows, resamples=_resamples(len(rows[0])), generator=0)
            apart = _deviation(np.subtract(mine, theirs)) if len(mine) == len(theirs) else None
            mean = float(np.mean(mine) - np.mean(theirs))
            self._differences[what] = Difference(mean, apart, test.low, test.high, test.p_value)
        return self._differences[what]

    def known_differences(self) -> list[dict[str, Any]]:
        """All differences that were asked for."""
        return [
            {"of": one, "to": other, "measure": measure, **difference._asdict()}
            for (one, other, measure), difference in self._differences.items()
        ]

    def to_json(self) -> list[dict[str, Any]]:
        """All figures, with the value of every seed."""
        return [
            {**asdict(figure), "by seed": self.by_seed(figure.method, figure.measure)}
            for figure in self.all
        ]

    def to_csv(self) -> str:
        """A line a figure, under the names of its attributes; nothing stands for None."""
        text = io.StringIO()
        names = [column.name for column in fields(Figure)]
        table = csv.DictWriter(text, names, lineterminator="\n")
        table.writeheader()
        table.writerows(asdict(figure) for figure in self.all)
        return text.getvalue()

    def _figure(self, method: str, measure: str) -> Figure:
        rows, seeds = self.rows(method, measure), self.by_seed(method, measure)
        # One seed for all: the same rows are drawn for every method.
        interval = bootstrap_interval(rows, resamples=_resamples(len(rows)), generator=0)
        return Figure(
            method, measure, float(np.mean(seeds)), _deviation(seeds), interval.low, interval.high,
            len(seeds), self.printed.get((method, measure)),
            round(float(np.mean(self._seconds[method])), 2),
        )  # fmt: skip


def _deviation(values: Any) -> float | None:
    return float(np.std(values, ddof=1)) if len(values) > 1 else None


def _resamples(rows: int) -> int:
    return int(np.clip(DRAWS // max(rows, 1), 200, 2000))
