"""Measures of how well scores rank labelled rows.

All of them are functions of ``(scores, labels, *, qid=None, lengths=None, reduction="mean")`` and
of some of the options below. They give a float, the mean over lists, or with
``reduction="none"`` [lists] values in order of the lists' first appearance.

    >>> from tierrank import metrics
    >>> scores, labels = [3.0, 2.0, 1.0, 0.5, 0.4], [0, 2, 1, 1, 0]
    >>> metrics.ndcg(scores, labels, qid=["a", "a", "a", "b", "b"])
    0.8295009024
    >>> metrics.from_name("mrr@5")(scores, labels, lengths=[3, 2])
    0.75
    >>> metrics.evaluate(scores, labels, ["ndcg@1", "map"], lengths=[3, 2])  # sorted once
    {'ndcg@1': 0.5, 'map': 0.7916666667}

Arguments that they share
-------------------------
scores, labels
    [rows] numbers in numpy arrays, tensors or lists; higher is better
qid, lengths
    which rows form a list: [rows] the list of each row, in any order; or [lists] how many rows
    each list has, one after the other. With neither, all rows are one list.
k
    only the first k ranks count; None: all of them
gain
    what a label is worth: ``"exp2"``, 2^label − 1; ``"linear"``, the label; or a function of an
    array of labels
ties
    what becomes of tied scores: ``"average"`` is the exact expectation over all orders of the tied
    rows, in closed form; ``"input"`` takes them as they come, as LightGBM and rax do
empty
    the value of a list with nothing relevant in it (each measure says when): a number, or
    ``"skip"`` to leave the list out of the mean (NaN with ``reduction="none"``)
relevant
    the least label that is relevant

Bad input raises a `ValueError` that says what is wrong, and in which row.

Measures of rankings over huge label sets, from the labels predicted first, are in
`tierrank.metrics.labels`.
"""

from tierrank import names
from tierrank.metrics import labels
from tierrank.metrics.evaluation import (
    Interval,
    Measure,
    Metric,
    PairedTest,
    bootstrap_interval,
    evaluate,
    from_name,
    function_at,
    holm,
    paired_test,
)
from tierrank.metrics.measures import (
    average_precision,
    dcg,
    err,
    ndcg,
    precision,
    recall,
    reciprocal_rank,
    sharp_ndcg,
)
from tierrank.metrics.pairs import kendall_tau_b, pairwise_disagreement

__all__ = [
    "MEASURES",
    "Interval",
    "Metric",
    "PairedTest",
    "average_precision",
    "bootstrap_interval",
    "dcg",
    "err",
    "evaluate",
    "from_name",
    "holm",
    "kendall_tau_b",
    "labels",
    "ndcg",
    "paired_test",
    "pairwise_disagreement",
    "precision",
    "recall",
    "reciprocal_rank",
    "sharp_ndcg",
]

MEASURES: dict[str, Measure] = {name: function_at(place) for name, place in names.METRICS.items()}
"""Measures of scored rows by name."""
