"""LightGBM trains by our objectives, and measures by our metrics."""

from __future__ import annotations

from typing import Any

import numpy as np

from tierrank._types import AnyArray
from tierrank.integrations.boosting import BoosterMetric, BoosterObjective, GradedRows


def objective(name: str = "pl-partition", *, seed: int = 0, **options: Any) -> LightGBMObjective:
    """An objective for LightGBM: exact gradients and Hessians of tied lists.

    The trees are those of `BoostedRanker` with the same settings (docs/integrations.md has the
    names), without row or feature sampling to the last digit.

    Parameters
    ----------
    name, options
        a name of `tierrank.losses.OBJECTIVES`, and its options (``alpha=…``, ``k=…``)
    seed
        for objectives that draw something

    Returns
    -------
    A function for ``LGBMRanker(objective=…)``, ``DaskLGBMRanker(objective=…)``, and
    ``lightgbm.train({"objective": …}, …)`` with a group in the data set. Row weights are lists'
    weights here, so they must be equal within a list; they multiply its loss as they are.

    Examples
    --------
    >>> import lightgbm, numpy as np
    >>> from tierrank.integrations.lightgbm import metric, objective
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 3))
    >>> y = np.digitize(X[:, 0], [0, 1])
    >>> sizes = [10] * 40
    >>> ranker = lightgbm.LGBMRanker(objective=objective(), n_estimators=20, verbosity=-1)
    >>> ranker = ranker.fit(X, y, group=sizes)
    >>> metric("ndcg@5")(y, ranker.predict(X), None, sizes)
    ('ndcg@5', 1.0, True)
    """
    return LightGBMObjective(name, options, seed)


def metric(name: str = "ndcg@10", **options: Any) -> LightGBMMetric:
    """A metric of `tierrank.metrics` for ``eval_metric=`` or ``feval=`` of LightGBM.

    Ties in the scores and lists with nothing relevant count as they do with us
    (``metric("ndcg@10", empty="skip")``). Validation weights weigh the lists.
    """
    return LightGBMMetric(name, options)


class LightGBMObjective(BoosterObjective):
    """Called as (scores, dataset) by `train` and `cv`, and by estimators as below."""

    def __call__(
        self, labels: Any, scores: Any, weight: Any = None, group: Any = None
    ) -> tuple[AnyArray, AnyArray]:
        return self.derivatives(*_read(labels, scores, weight, group))


class LightGBMMetric(BoosterMetric):
    """Called as (scores, dataset) by `train` and `cv`, and by estimators as below."""

    def __call__(
        self, labels: Any, scores: Any, weight: Any = None, group: Any = None
    ) -> tuple[str, float, bool]:
        value = self.value(*_read(labels, scores, weight, group))
        return self.metric.name, value, self.metric.higher_is_better


def _read(labels: Any, scores: Any, weight: Any, group: Any) -> tuple[AnyArray, GradedRows]:
    """Scores and rows of either call."""
    if hasattr(scores, "get_group"):  # lightgbm.train: scores and a Dataset
        scores, data = labels, scores
        labels, weight, group = data.get_label(), data.get_weight(), data.get_group()
    if group is None:
        raise ValueError(
            "which rows form a list? Give LightGBM the sizes of the lists: Dataset(X, y, "
            "group=…), and for estimators fit(X, y, group=…, eval_group=…)"
        )
    lengths = np.asarray(group, dtype=np.int64)
    by_list = None if weight is None else _weights_of_lists(np.asarray(weight), lengths)
    return scores, GradedRows(np.asarray(labels), lengths, by_list)


def _weights_of_lists(weights: AnyArray, lengths: AnyArray) -> AnyArray:
    """[lists] the weight of each list, which all of its rows have."""
    starts = np.cumsum(lengths) - lengths
    first: AnyArray = weights[np.minimum(starts, len(weights) - 1)]
    other = weights != np.repeat(first, lengths)
    if other.any():
        row = int(np.argmax(other))
        place = int(np.searchsorted(starts, row, side="right")) - 1
        raise ValueError(
            f"the rows of list {place} have different weights ({first[place]:g} and, row {row}, "
            f"{weights[row]:g}): a list counts as a whole, so give all its rows the same"
        )
    return first
