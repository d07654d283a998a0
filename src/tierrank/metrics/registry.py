"""Every measure by its name, as people write it: `ndcg@10`, `map`, `tau-b`; of labels `psp@5`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from tierrank import names
from tierrank.metrics.lists import Reduction, checked_k, read_lists

Measure = Callable[..., Any]


def _function(place: str) -> Measure:
    """The function that `names` gives the place of."""
    home, _, name = place.partition(".")
    found: Measure = getattr(import_module(f"tierrank.metrics.{home}"), name)
    return found


MEASURES: dict[str, Measure] = {name: _function(place) for name, place in names.METRICS.items()}
"""Measures of scored rows by name."""


@dataclass(frozen=True)
class Metric:
    """A measure with its options: call it with scores and labels.

    Parameters
    ----------
    name : str
        As it is shown: ``"ndcg@10"``.
    function : callable
        The measure.
    options : mapping
        What it is called with besides the rows, such as ``{"k": 10}``.
    higher_is_better : bool
        False for losses.

    See Also
    --------
    from_name : A measure by its name.

    Examples
    --------
    >>> from tierrank import metrics
    >>> metric = metrics.from_name("ndcg@2")
    >>> metric.name, dict(metric.options), metric.higher_is_better
    ('ndcg@2', {'k': 2}, True)
    """

    name: str
    function: Measure
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


@dataclass(frozen=True)
class LabelMetric:
    """A measure of predicted labels at a k: call it with predictions and relevant labels.

    Parameters
    ----------
    name : str
        As `labels.evaluate` calls it: ``"PSP@5"``.
    k : int
        How many predictions count.
    function : callable
        The measure.
    options : mapping
        What else it is called with, such as ``{"out_of": "all"}``.

    See Also
    --------
    from_name : A measure by its name.

    Examples
    --------
    >>> from tierrank.metrics import labels
    >>> labels.from_name("psp@5").needs_propensity
    True
    """

    name: str
    k: int
    function: Measure
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def needs_propensity(self) -> bool:
        """Whether it must be called with inverse propensities; others ignore them."""
        return "inverse_propensity" in inspect.signature(self.function).parameters

    def __call__(
        self, top: Any, Y: Any, inverse_propensity: Any = None, *, reduction: Reduction = "mean"
    ) -> Any:
        """The value, or with ``reduction="none"`` [rows] values whose mean it is."""
        options = dict(self.options)
        if self.needs_propensity:
            options["inverse_propensity"] = inverse_propensity
        return self.function(top, Y, k=self.k, reduction=reduction, **options)


def from_name(name: str, **options: Any) -> Metric:
    """Find the measure of this name, cut off at a rank if it ends in @k.

    Case, hyphens and underscores do not matter. Without @k the whole list counts (also where
    the function's own default is 10).

    Parameters
    ----------
    name : str
        Such as "ndcg@10", "map" or "mrr@5".
    **options
        Go to the function.

    Returns
    -------
    Metric
        The measure, to be called with scores and labels.

    Raises
    ------
    ValueError
        There is no measure of this name; the message has those that there are.

    See Also
    --------
    evaluate : Several measures at once.
    Metric : What it gives.

    Examples
    --------
    >>> from tierrank import metrics
    >>> metric = metrics.from_name("nDCG@2", ties="input")
    >>> metric.name, metric([3.0, 2.0, 1.0], [1, 2, 0])
    ('ndcg@2', 0.7967075809)
    """
    known, k = names.metric_name(name)
    function = MEASURES[known]
    _check_options(known, function, options, ("scores", "labels", "qid", "lengths", "reduction"))
    shown = known
    if known not in names.WHOLE_LIST:
        if k is not None and "k" in options:
            raise ValueError(f"{name!r} says where to cut off, and so does k: give one of them.")
        k = options.get("k", k)
        options["k"] = checked_k(k)
        shown = known if k is None else f"{known}@{k}"
    return Metric(shown, function, options, known != "pairwise-disagreement")


def label_metric(name: str, options: dict[str, Any]) -> LabelMetric:
    """The measure of labels of this name, which ends in @k."""
    known, k = names.label_metric_name(name)
    function = _function(names.LABEL_METRICS[known])
    not_options = ("top", "Y", "k", "inverse_propensity", "reduction")
    _check_options(known, function, options, not_options)
    return LabelMetric(f"{known}@{k}", k, function, options)


def _check_options(
    name: str, function: Measure, options: Mapping[str, Any], not_options: tuple[str, ...]
) -> None:
    known = inspect.signature(function).parameters.keys() - set(not_options)
    for option in options:
        if option not in known:
            raise ValueError(f"{name} has no option {option!r}.")


def evaluate(
    scores: Any,
    labels: Any,
    measures: Iterable[str | Metric],
    *,
    qid: Any = None,
    lengths: Any = None,
    reduction: Reduction = "mean",
) -> dict[str, Any]:
    """Several measures of the same rows, by name: rows are checked, grouped and sorted once.

    Every value is that of the measure alone.

    Parameters
    ----------
    scores : array_like
        [rows] numbers; higher is better.
    labels : array_like
        [rows] grades; higher is better.
    measures : iterable of str or Metric
        Names, as `from_name` takes them, or what it gave.
    qid : array_like, optional
        [rows] the list of each row, in any order.
    lengths : array_like, optional
        [lists] how many rows each list has, one after the other. Without `qid` and `lengths` all
        rows are one list.
    reduction : {"mean", "none"}
        "mean" over the lists, or "none" for a value a list.

    Returns
    -------
    dict
        Values by the name of the measure.

    Raises
    ------
    ValueError
        Bad input; the message says what is wrong, and in which row.

    See Also
    --------
    from_name : A measure by its name.
    bootstrap_interval : An interval of the mean.

    Examples
    --------
    >>> from tierrank import metrics
    >>> metrics.evaluate([3.0, 2.0, 1.0], [0, 2, 1], ["ndcg@2", "mrr"])
    {'ndcg@2': 0.5212960286, 'mrr': 0.5}
    """
    chosen = [from_name(each) if isinstance(each, str) else each for each in measures]
    if twice := {each.name for each in chosen if [e.name for e in chosen].count(each.name) > 1}:
        raise ValueError(f"{', '.join(sorted(twice))} is asked for twice: leave one of them.")
    lists = read_lists(scores, labels, qid, lengths)
    return {each.name: each(lists, None, reduction=reduction) for each in chosen}
