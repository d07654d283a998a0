"""What an `ExtremeRanker` is asked to do, looked at before anything is forgotten or written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tierrank.data.multilabel import MultiLabelData
from tierrank.extreme.network import widths
from tierrank.losses.record import find_fused
from tierrank.metrics import labels as label_metrics
from tierrank.names import check_sampler
from tierrank.training.devices import device_for
from tierrank.training.settings import Course, check_count, check_size

if TYPE_CHECKING:
    from tierrank.extreme.ranker import ExtremeRanker


def checked_rates(
    ranker: ExtremeRanker, data: MultiLabelData, held_out: MultiLabelData | None
) -> list[float]:
    """Refuse settings and data that do not go together; the learning rates to try."""
    given: Any = ranker.learning_rate
    rates = list(given) if isinstance(given, (list, tuple, np.ndarray)) else [given]
    if not rates:
        raise ValueError("learning_rate is one number, or several to choose from, but not none")
    for rate in rates:
        check_size("learning_rate", rate)
    for name in ("weight_decay", "glas"):
        check_size(name, getattr(ranker, name), zero=True)
    for name in ("batch_rows", "members"):
        check_count(name, getattr(ranker, name))
    if ranker.negatives is not None:
        check_count("negatives", ranker.negatives)
    if ranker.optimiser not in ("adam", "adagrad"):
        raise ValueError(f'optimiser is "adam" or "adagrad", not {ranker.optimiser!r}')
    if ranker.updates not in ("auto", "exact", "lazy"):
        raise ValueError(f'updates is "auto", "exact" or "lazy", not {ranker.updates!r}')
    check_shares(ranker)
    check_sampler(ranker.sampler)
    widths(ranker.hidden)
    Course(ranker.max_epochs, ranker.patience)
    find_fused(ranker.objective)
    label_metrics.from_name(ranker.metric)
    device_for(ranker.accelerator)
    if data.n_labels < 2:
        raise ValueError(f"there is nothing to rank: Y has {data.n_labels} labels")
    if not data.n_features:
        raise ValueError("there is nothing to learn from: X has no features")
    judged = held_out is not None or ranker.validation > 0
    if not judged and (len(rates) != 1 or ranker.refit):
        raise ValueError(
            "without validation data there is no telling which learning rate is best, or how "
            "many epochs to refit with: give one learning_rate and refit=False, or validation "
            "or eval_set"
        )
    if held_out is not None:
        if not held_out.n_rows:
            raise ValueError("eval_set has no rows to stop by: give some, or leave it out")
        sizes, ours = ((each.n_features, each.n_labels) for each in (held_out, data))
        if sizes != ours:
            raise ValueError(
                f"eval_set has {sizes[0]} features and {sizes[1]} labels, but X and Y have "
                f"{ours[0]} and {ours[1]}"
            )
    return [float(rate) for rate in rates]


def check_shares(ranker: ExtremeRanker) -> None:
    """Refuse a dropout or a part for validation that is no share."""
    for name in ("input_dropout", "hidden_dropout", "validation"):
        check_size(name, getattr(ranker, name), zero=True)
        if getattr(ranker, name) >= 1:
            raise ValueError(f"{name} is a share below 1, not {getattr(ranker, name)!r}")


def validation_set(eval_set: Any) -> MultiLabelData:
    """The validation data."""
    try:
        X, Y = eval_set
    except (TypeError, ValueError):
        raise ValueError("eval_set is a pair, (X, Y), of rows to stop by") from None
    return MultiLabelData(X, Y)


def hold_out(
    data: MultiLabelData, share: float, seed: int
) -> tuple[MultiLabelData, MultiLabelData]:
    """Rows to learn from, and rows to stop by."""
    order = np.random.default_rng([seed, data.n_rows]).permutation(data.n_rows)
    held_out = round(share * data.n_rows)
    if not 0 < held_out < data.n_rows:
        raise ValueError(
            f"{share:g} of {data.n_rows} rows leaves none to learn from, or none to stop by: give "
            "more rows, or validation=0 with one learning rate"
        )
    return data.select(np.sort(order[held_out:])), data.select(np.sort(order[:held_out]))
