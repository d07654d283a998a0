"""LightGBM trains by our objectives, and measures by our metrics."""

from __future__ import annotations

from typing import Any

import numpy as np

from tierrank._types import AnyArray
from tierrank.integrations.boosting import BoosterMetric, BoosterObjective, GradedRows


def objective(name: str = "pl-partition", *, seed: int = 0, **options: Any) -> LightGBMObjective:
    """Make an objective for LightGBM: exact gradients and Hessians of tied lists.

    The trees are those of `BoostedRanker` with the same settings (docs/integrations.md has the
    names), without row or feature sampling to the last digit.

    Parameters
    ----------
    name : str
        Of `tierrank.losses.OBJECTIVES`.
    seed : int
        For objectives that draw something.
    **options
        Those of the objective (``alpha=…``, ``k=…``).

    Returns
    -------
    LightGBMObjective
        A function for ``LGBMRanker(objective=…)``, ``DaskLGBMRanker(objective=…)``, and
        ``lightgbm.train({"objective": …}, …)`` with a group in the data set. Row weights are lists'
        weights here, so they must be equal within a list; they multiply its loss as they are.

    Raises
    ------
    ValueError
        There is no such objective.

    See Also
    --------
    metric : A metric to stop by.
    tierrank.BoostedRanker : The same trees, with settings for rankings.

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
    """Make a metric of `tierrank.metrics` for ``eval_metric=`` or ``feval=`` of LightGBM.

    Ties in the scores and lists with nothing relevant count as they do with us
    (``metric("ndcg@10", empty="skip")``). Validation weights weigh the lists.

    Parameters
    ----------
    name : str
        As `tierrank.metrics.from_name` takes it.
    **options
        Those of the metric.

    Returns
    -------
    LightGBMMetric
        A function that LightGBM calls.

    Raises
    ------
    ValueError
        There is no such metric or option.

    See Also
    --------
    objective : An objective to train by.
    tierrank.metrics.from_name : The metric alone.

    Examples
    --------
    >>> from tierrank.integrations.lightgbm import metric
    >>> labels, scores, sizes = [1.0, 2.0, 0.0], [3.0, 2.0, 1.0], [3]
    >>> metric("ndcg@2")(labels, scores, None, sizes)
    ('ndcg@2', 0.7967075809, True)
    """
    return LightGBMMetric(name, options)


class LightGBMObjective(BoosterObjective):
    """An objective of ours as LightGBM calls it; `objective` makes it.

    It is called as (scores, dataset) by `train` and `cv`, and by estimators as (labels, scores,
    weight, group), and gives [rows] gradients and Hessian diagonals of the sum over the lists.

    Parameters
    ----------
    name : str
        Of `tierrank.losses.OBJECTIVES`.
    options : dict
        Those of the objective.
    seed : int
        For objectives that draw something.

    See Also
    --------
    objective : Makes it.

    Examples
    --------
    >>> from tierrank.integrations.lightgbm import objective
    >>> gradient, hessian = objective()([1.0, 0.0], [0.0, 0.0], None, [2])
    >>> gradient, hessian
    (array([-0.5, 0.5], dtype=float32), array([0.25, 0.25], dtype=float32))
    """

    def __call__(
        self, labels: Any, scores: Any, weight: Any = None, group: Any = None
    ) -> tuple[AnyArray, AnyArray]:
        return self.derivatives(*_read(labels, scores, weight, group))


class LightGBMMetric(BoosterMetric):
    """A metric of ours as LightGBM calls it; `metric` makes it.

    It is called as (scores, dataset) by `train` and `cv`, and by estimators as (labels, scores,
    weight, group), and gives its name, its value and whether higher is better.

    Parameters
    ----------
    name : str
        As `tierrank.metrics.from_name` takes it.
    options : dict
        Those of the metric.

    See Also
    --------
    metric : Makes it.

    Examples
    --------
    >>> from tierrank.integrations.lightgbm import metric
    >>> metric("mrr")([0.0, 1.0], [2.0, 1.0], None, [2])
    ('mrr', 0.5, True)
    """

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
