"""Every measure by its name, as people write it: `ndcg@10`, `map`, `mrr@5`, `tau-b`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tierrank import names
from tierrank.metrics.cascade import err, reciprocal_rank
from tierrank.metrics.discounted import dcg, ndcg, sharp_ndcg
from tierrank.metrics.inputs import Reduction, checked_k
from tierrank.metrics.pairs import kendall_tau_b, pairwise_disagreement
from tierrank.metrics.relevance import average_precision, precision, recall

MEASURES: dict[str, Callable[..., Any]] = {
    "ndcg": ndcg,
    "dcg": dcg,
    "err": err,
    "map": average_precision,
    "mrr": reciprocal_rank,
    "precision": precision,
    "recall": recall,
    "sharp-ndcg": sharp_ndcg,
    "pairwise-disagreement": pairwise_disagreement,
    "tau-b": kendall_tau_b,
}


@dataclass(frozen=True)
class Metric:
    """A measure with its options: call it with scores and labels.

    Attributes
    ----------
    name
        as it is shown: ``"ndcg@10"``
    function
        the measure
    options
        what it is called with besides the rows, such as ``{"k": 10}``
    higher_is_better
        False for losses
    """

    name: str
    function: Callable[..., Any]
    options: Mapping[str, Any] = field(default_factory=dict)
    higher_is_better: bool = True

    def __call__(
        self,
        scores: Any,
        labels: Any,
        *,
        qid: Any = None,
        lengths: Any = None,
        reduction: Reduction = "mean",
    ) -> Any:
        """The mean over lists, or with ``reduction="none"`` [lists] values."""
        return self.function(
            scores, labels, qid=qid, lengths=lengths, reduction=reduction, **self.options
        )


def from_name(name: str, **options: Any) -> Metric:
    """The measure of this name, cut off at a rank if it ends in @k.

    Case, hyphens and underscores do not matter. Without @k the whole list counts (also where
    the function's own default is 10). `options` go to the function.

        >>> from tierrank import metrics
        >>> metric = metrics.from_name("nDCG@2", ties="input")
        >>> metric.name, metric([3.0, 2.0, 1.0], [1, 2, 0])
        ('ndcg@2', 0.7967075809)
    """
    known, k = names.metric_name(name)
    function = MEASURES[known]
    accepted = inspect.signature(function).parameters
    for option in options:
        if option not in accepted or option in ("scores", "labels", "qid", "lengths", "reduction"):
            raise ValueError(f"{known} has no option {option!r}.")
    shown = known
    if known not in names.WHOLE_LIST:
        if k is not None and "k" in options:
            raise ValueError(f"{name!r} says where to cut off, and so does k: give one of them.")
        k = options.get("k", k)
        options["k"] = checked_k(k)
        shown = known if k is None else f"{known}@{k}"
    return Metric(shown, function, options, function is not pairwise_disagreement)
