"""What LightGBM and XGBoost have in common: they call a function at every tree, with all rows.

Tiers and lists are made of a data set once, and found again by its labels, lengths and weights.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from tierrank import losses, metrics
from tierrank._types import AnyArray
from tierrank.ranking.base import checked_weights
from tierrank.ranking.derivatives import BoostingObjective
from tierrank.tiers import Tiers

KEPT = 16  # data sets at a time: the folds of a cross-validation take turns

Made = TypeVar("Made")


class GradedRows(NamedTuple):
    """Rows as a library has them: lists one after another.

    Attributes
    ----------
    labels
        [rows]
    lengths
        [lists] rows of each
    weights
        [lists], or None
    """

    labels: AnyArray
    lengths: AnyArray
    weights: AnyArray | None

    def same(self, other: GradedRows) -> bool:
        """Whether all numbers are equal."""
        if (self.weights is None) != (other.weights is None):
            return False
        pairs = zip(self, other, strict=True)
        return all(a is b or np.array_equal(a, b) for a, b in pairs)  # type: ignore[arg-type]


class OnceADataSet(Generic[Made]):
    """What is made of rows, made once and kept while they come again; not copied with its owner."""

    def __init__(self, make: Callable[[GradedRows], Made]) -> None:
        self._make = make
        self._kept: list[tuple[GradedRows, Made]] = []

    def __call__(self, rows: GradedRows) -> Made:
        for place, (known, made) in enumerate(self._kept):
            if known.same(rows):
                self._kept.insert(0, self._kept.pop(place))  # the one used last comes first
                return made
        made = self._make(rows)
        copies = GradedRows(*(None if a is None else np.array(a) for a in rows))  # type: ignore[arg-type]
        self._kept = [(copies, made), *self._kept[: KEPT - 1]]
        return made


class BoosterObjective:
    """An objective of ours by its name, for a library that asks for derivatives at every tree."""

    def __init__(self, name: str, options: dict[str, Any], seed: int) -> None:
        self.name, self.options, self.seed = name, options, seed
        losses.from_name(name, **options, reduction="none")  # what is wrong is said now
        self._forget()

    def derivatives(self, scores: AnyArray, rows: GradedRows) -> tuple[AnyArray, AnyArray]:
        """Compute gradients and the Hessian diagonal of the sum over the lists, by weight.

        Parameters
        ----------
        scores : array_like
            [rows] scores of the trees so far.
        rows : GradedRows
            Labels, lengths and weights of the lists.

        Returns
        -------
        tuple of ndarray
            [rows] gradient and [rows] Hessian diagonal, in float32.

        Raises
        ------
        ValueError
            A score is NaN or infinite.

        See Also
        --------
        tierrank.losses.from_name : The objective alone.

        Examples
        --------
        >>> import numpy as np
        >>> from tierrank.integrations.boosting import GradedRows
        >>> from tierrank.integrations.lightgbm import objective
        >>> rows = GradedRows(np.array([1.0, 0.0]), np.array([2]), None)
        >>> objective().derivatives(np.zeros(2), rows)
        (array([-0.5, 0.5], dtype=float32), array([0.25, 0.25], dtype=float32))
        """
        if not len(scores):  # a worker of a cluster may have none
            return np.zeros(0, np.float32), np.zeros(0, np.float32)
        found = self._of(rows)(np.asarray(scores).reshape(-1))
        return found.gradient, found.hessian

    def _begin(self, rows: GradedRows) -> BoostingObjective:
        tiers = Tiers.from_labels(rows.labels, lengths=rows.lengths)
        objective = losses.from_name(self.name, **self.options, reduction="none")
        weights = checked_weights(rows.weights, tiers)
        return BoostingObjective(objective, tiers, weights, self.seed, mean_weight=1.0)

    def _forget(self) -> None:
        self._of = OnceADataSet(self._begin)

    def __getstate__(self) -> dict[str, Any]:  # copied, and sent to workers, without any rows
        return {name: value for name, value in vars(self).items() if name != "_of"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._forget()

    def __repr__(self) -> str:
        options = "".join(f", {name}={value!r}" for name, value in self.options.items())
        return f"objective({self.name!r}{options})"


class BoosterMetric:
    """A metric of ours by its name, with its conventions for ties and empty lists."""

    def __init__(self, name: str, options: dict[str, Any]) -> None:
        self.metric = metrics.from_name(name, **options)

    def value(self, scores: AnyArray, rows: GradedRows) -> float:
        """Compute the mean over the lists, by weight.

        Parameters
        ----------
        scores : array_like
            [rows] scores of the trees so far.
        rows : GradedRows
            Labels, lengths and weights of the lists.

        Returns
        -------
        float
            The metric.

        See Also
        --------
        tierrank.metrics.from_name : The metric alone.

        Examples
        --------
        >>> import numpy as np
        >>> from tierrank.integrations.boosting import GradedRows
        >>> from tierrank.integrations.lightgbm import metric
        >>> rows = GradedRows(np.array([0.0, 1.0]), np.array([2]), None)
        >>> metric("mrr").value(np.array([2.0, 1.0]), rows)
        0.5
        """
        scores = np.asarray(scores).reshape(-1)
        if rows.weights is None:
            return float(self.metric(scores, rows.labels, lengths=rows.lengths))
        by_list = self.metric(scores, rows.labels, lengths=rows.lengths, reduction="none")
        there = np.isfinite(by_list)  # not those that are left out as empty
        return float(np.average(by_list[there], weights=rows.weights[there]))

    def __repr__(self) -> str:
        return f"metric({self.metric.name!r})"
