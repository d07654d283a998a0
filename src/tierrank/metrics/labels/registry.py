"""The measures of labels by their names: `p@1`, `ndcg@3`, `psp@5`, `psndcg@5`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tierrank import names
from tierrank.metrics.inputs import Reduction, choice
from tierrank.metrics.labels.measures import ndcg, precision, ps_ndcg, ps_precision

MEASURES: dict[str, Callable[..., Any]] = {
    "P": precision,
    "nDCG": ndcg,
    "PSP": ps_precision,
    "PSnDCG": ps_ndcg,
}

_PROPENSITY_SCORED = ("PSP", "PSnDCG")


@dataclass(frozen=True)
class LabelMetric:
    """A measure at a k: call it with predictions and relevant labels.

    Attributes
    ----------
    name
        as `evaluate` calls it: ``"PSP@5"``
    k
        how many predictions count
    needs_propensity
        whether it must be called with inverse propensities; others ignore them
    options
        what else the measure is called with, such as ``{"out_of": "all"}``
    """

    name: str
    k: int
    needs_propensity: bool
    options: Mapping[str, Any] = field(default_factory=dict)

    def __call__(
        self, top: Any, Y: Any, inverse_propensity: Any = None, *, reduction: Reduction = "mean"
    ) -> Any:
        """The value, or with ``reduction="none"`` [rows] values whose mean it is."""
        options = dict(self.options)
        if self.needs_propensity:
            options["inverse_propensity"] = inverse_propensity
        measure = MEASURES[self.name.partition("@")[0]]
        return measure(top, Y, k=self.k, reduction=reduction, **options)


def from_name(name: str, **options: Any) -> LabelMetric:
    """The measure of this name, which ends in @k. Case, hyphens and underscores do not matter.

    `options` go to the function: psndcg has `out_of`, the others none.

        >>> from scipy.sparse import csr_array
        >>> from tierrank.metrics import labels
        >>> metric = labels.from_name("ndcg@1")
        >>> metric.name, metric.k, metric.needs_propensity
        ('nDCG@1', 1, False)
        >>> metric([[1], [0]], csr_array([[0, 1], [0, 1]]))
        0.5
    """
    known, k = names.label_metric_name(name)
    for option in options:
        if (known, option) != ("PSnDCG", "out_of"):
            raise ValueError(f"{known} has no option {option!r}.")
        choice("out_of", options["out_of"], ("reachable", "all"))
    return LabelMetric(f"{known}@{k}", k, known in _PROPENSITY_SCORED, dict(options))
