"""XGBoost trains by our objectives, and measures by our metrics."""

from __future__ import annotations

from typing import Any

import numpy as np

from tierrank._types import AnyArray
from tierrank.integrations.boosting import BoosterMetric, BoosterObjective, GradedRows


def objective(name: str = "pl-partition", *, seed: int = 0, **options: Any) -> XGBoostObjective:
    """Make an objective for XGBoost: exact gradients and Hessians of tied lists.

    The trees are those of `BoostedRanker` with the same settings (docs/integrations.md has the
    names; among them ``base_score=0``).

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
    XGBoostObjective
        A function for ``xgboost.train(…, obj=…)`` and ``xgboost.dask.train``, with ``qid`` or
        groups in the DMatrix. Weights are XGBoost's own for ranking, one a list; `XGBRanker`
        refuses functions.

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
    >>> import numpy as np, xgboost
    >>> from tierrank.integrations.xgboost import metric, objective
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 3))
    >>> y = np.digitize(X[:, 0], [0, 1])
    >>> rows = xgboost.DMatrix(X, y, qid=np.repeat(np.arange(40), 10))
    >>> seen = {}
    >>> booster = xgboost.train(
    ...     {"disable_default_eval_metric": 1},
    ...     rows,
    ...     20,
    ...     obj=objective(),
    ...     custom_metric=metric("ndcg@5"),
    ...     evals=[(rows, "train")],
    ...     evals_result=seen,
    ...     verbose_eval=False,
    ... )
    >>> seen["train"]["ndcg@5"][-1]
    1.0
    """
    return XGBoostObjective(name, options, seed)


def metric(name: str = "ndcg@10", **options: Any) -> XGBoostMetric:
    """Make a metric of `tierrank.metrics` for ``custom_metric=`` of ``xgboost.train``.

    Ties in the scores and lists with nothing relevant count as they do with us
    (``metric("ndcg@10", empty="skip")``). To stop by it, tell XGBoost that higher is better:
    ``callbacks=[xgboost.callback.EarlyStopping(rounds=50, maximize=True)]``.

    Parameters
    ----------
    name : str
        As `tierrank.metrics.from_name` takes it.
    **options
        Those of the metric.

    Returns
    -------
    XGBoostMetric
        A function that XGBoost calls.

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
    >>> import numpy as np, xgboost
    >>> from tierrank.integrations.xgboost import metric
    >>> rows = xgboost.DMatrix(np.zeros((3, 1)), [1, 2, 0], qid=[7, 7, 7])
    >>> metric("ndcg@2")(np.array([3.0, 2.0, 1.0]), rows)
    ('ndcg@2', 0.7967075809)
    """
    return XGBoostMetric(name, options)


class XGBoostObjective(BoosterObjective):
    """An objective of ours as `xgboost.train` calls it at every tree; `objective` makes it.

    It is called as (scores, DMatrix), and gives [rows] gradients and Hessian diagonals of the sum
    over the lists.

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
    >>> import numpy as np, xgboost
    >>> from tierrank.integrations.xgboost import objective
    >>> rows = xgboost.DMatrix(np.zeros((2, 1)), [1, 0], qid=[7, 7])
    >>> objective()(np.zeros(2), rows)
    (array([-0.5, 0.5], dtype=float32), array([0.25, 0.25], dtype=float32))
    """

    def __call__(self, scores: AnyArray, data: Any) -> tuple[AnyArray, AnyArray]:
        return self.derivatives(scores, _rows(data))


class XGBoostMetric(BoosterMetric):
    """A metric of ours as `xgboost.train` calls it after every tree; `metric` makes it.

    It is called as (scores, DMatrix), and gives its name and its value.

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
    >>> import numpy as np, xgboost
    >>> from tierrank.integrations.xgboost import metric
    >>> metric("mrr")(np.array([2.0, 1.0]), xgboost.DMatrix(np.zeros((2, 1)), [0, 1], qid=[7, 7]))
    ('mrr', 0.5)
    """

    def __call__(self, scores: AnyArray, data: Any) -> tuple[str, float]:
        return self.metric.name, self.value(scores, _rows(data))


def _rows(data: Any) -> GradedRows:
    lengths = np.diff(data.get_uint_info("group_ptr").astype(np.int64))
    if not len(lengths) and data.num_row():
        raise ValueError(
            "which rows form a list? Give the DMatrix qid=…, the list of each row, or "
            "set_group(…), the sizes of lists of consecutive rows"
        )
    weights = data.get_weight()
    return GradedRows(data.get_label(), lengths, weights if len(weights) else None)
