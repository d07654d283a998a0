"""XGBoost trains by our objectives, and measures by our metrics."""

from __future__ import annotations

from typing import Any

import numpy as np

from tierrank._types import AnyArray
from tierrank.integrations.boosting import BoosterMetric, BoosterObjective, GradedRows


def objective(name: str = "pl-partition", *, seed: int = 0, **options: Any) -> XGBoostObjective:
    """An objective for XGBoost: exact gradients and Hessians of tied lists.

    The trees are those of `BoostedRanker` with the same settings (docs/integrations.md has the
    names; among them ``base_score=0``).

    Parameters
    ----------
    name, options
        a name of `tierrank.losses.OBJECTIVES`, and its options (``alpha=…``, ``k=…``)
    seed
        for objectives that draw something

    Returns
    -------
    A function for ``xgboost.train(…, obj=…)`` and ``xgboost.dask.train``, with ``qid`` or groups
    in the DMatrix. Weights are XGBoost's own for ranking, one a list. (`XGBRanker` refuses
    functions.)

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
    """A metric of `tierrank.metrics` for ``custom_metric=`` of ``xgboost.train``.

    Ties in the scores and lists with nothing relevant count as they do with us
    (``metric("ndcg@10", empty="skip")``). To stop by it, tell XGBoost that higher is better:
    ``callbacks=[xgboost.callback.EarlyStopping(rounds=50, maximize=True)]``.
    """
    return XGBoostMetric(name, options)


class XGBoostObjective(BoosterObjective):
    """Called by `xgboost.train` at every tree."""

    def __call__(self, scores: AnyArray, data: Any) -> tuple[AnyArray, AnyArray]:
        return self.derivatives(scores, _rows(data))


class XGBoostMetric(BoosterMetric):
    """Called by `xgboost.train` after every tree."""

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
