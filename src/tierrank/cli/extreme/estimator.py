"""An `ExtremeRanker` from what is typed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from tierrank import names
from tierrank.cli.estimators import check_settings, parse_settings
from tierrank.losses.record import find_fused, fused_objectives

if TYPE_CHECKING:
    from tierrank.data import MultiLabelData
    from tierrank.extreme.ranker import ExtremeRanker

# Constructor arguments that have an option of their own.
OPTIONS = {
    "objective": "--objective",
    "hidden": "--hidden",
    "learning_rate": "--learning-rate",
    "batch_rows": "--batch",
    "max_epochs": "--epochs",
    "patience": "--patience",
    "validation": "--valid-fraction",
    "negatives": "--negatives",
    "sampler": "--sampler",
    "metric": "--metric",
    "random_state": "--seed",
}


def check_names(objective: str, metric: str | None, sampler: str | None) -> None:
    """Refuse names that there are not, before torch is loaded: that takes seconds."""
    if sampler is not None:
        names.check_sampler(sampler)
    _objective(objective)
    if metric is not None:
        names.label_metric_name(metric)


def make_ranker(settings: Iterable[str], *, with_valid: bool, **typed: Any) -> ExtremeRanker:
    """An unfitted ranker; whatever is wrong with the settings is found here, before data is read.

    Parameters
    ----------
    settings
        NAME=VALUE of arguments that have no option
    with_valid
        whether there is a file of validation data
    typed
        arguments that have one; those that are None stay at their default
    """
    from tierrank.extreme.ranker import ExtremeRanker

    params = {name: value for name, value in typed.items() if value is not None}
    more = parse_settings(settings, "--set")
    for name in more:
        if name in OPTIONS:
            raise ValueError(f"--set {name}: use {OPTIONS[name]}.")
    known = ExtremeRanker().get_params(deep=False)
    params |= check_settings(
        more, {name: value for name, value in known.items() if name not in OPTIONS}, "label"
    )
    params["objective"] = _objective(params.get("objective", known["objective"]))
    if isinstance(params.get("sampler"), str) and params.get("negatives") is None:
        raise ValueError("--sampler says how to draw labels: say how many, with --negatives.")
    ranker = ExtremeRanker(**params)
    _check(ranker, with_valid)
    return ranker


def rates(ranker: ExtremeRanker) -> list[float]:
    """The learning rates to choose from."""
    rate = ranker.learning_rate
    return list(rate) if isinstance(rate, (list, tuple)) else [float(rate)]  # type: ignore[arg-type]


def runs(ranker: ExtremeRanker) -> int:
    """Trainings that the fit is made of."""
    return len(rates(ranker)) + (ranker.members if ranker.refit else ranker.members - 1)


def rows_an_epoch(
    ranker: ExtremeRanker, data: MultiLabelData, valid: MultiLabelData | None
) -> float:
    """Rows that are learned from while the learning rate is chosen, about."""
    labelled = data.n_rows - data.describe().rows_without_label
    return labelled * (1 - ranker.validation if valid is None else 1)


def labels_a_row(ranker: ExtremeRanker, data: MultiLabelData) -> float:
    """Labels that a row is scored for in a step: all of them, or about as many as are drawn."""
    if ranker.negatives is None:
        return data.n_labels
    if ranker.sampler != "in-batch":
        return ranker.negatives
    import numpy as np

    share = np.bincount(data.Y.indices) / data.n_rows
    return float((1 - (1 - share) ** ranker.batch_rows).sum())  # different ones of a batch's


def _objective(name: str) -> str:
    try:
        return find_fused(name).name
    except ValueError:
        *others, last = fused_objectives()
        raise ValueError(
            f"--objective {name}: use {', '.join(others)} or {last}, which can do with "
            "some labels' scores at a time."
        ) from None


def _check(ranker: ExtremeRanker, with_valid: bool) -> None:
    from tierrank.data import MultiLabelData
    from tierrank.extreme.checks import checked_rates

    if not with_valid and ranker.validation == 0 and (len(rates(ranker)) > 1 or ranker.refit):
        raise ValueError(
            "without validation data there is no telling which learning rate is best, nor how many "
            "epochs to refit with: give one, as with --learning-rate 0.001, and no refit, or leave "
            "out --valid-fraction 0."
        )
    some = MultiLabelData([[1.0]], [[1, 0]])
    try:
        checked_rates(ranker, some, some if with_valid else None)
    except TypeError as error:  # a word where a number should be
        raise ValueError(f"--set: a value is of the wrong kind ({error}).") from None
