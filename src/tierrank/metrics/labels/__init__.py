"""Measures of extreme multi-label ranking, from the labels that were predicted first.

A row (a document) has a few relevant labels out of a thousand to a million. All measures are
functions of ``(top, Y, *, k=5, reduction="mean")``; the propensity-scored ones also take
``inverse_propensity=``. They never need the scores of all labels. The definitions, and whose they
are, stand in ``docs/extreme-metrics.md``.

    >>> from scipy.sparse import csr_array
    >>> from tierrank.metrics import labels
    >>> Y = csr_array([[1, 0, 1, 0], [0, 1, 0, 0], [0, 0, 1, 1]])
    >>> top = [[2, 3], [1, 0], [1, 2]]  # two predicted labels a row, the best first
    >>> labels.precision(top, Y, k=2)
    0.5
    >>> labels.precision(top, Y, k=2, reduction="none")
    array([0.5, 0.5, 0.5])
    >>> q = labels.inverse_propensity(Y)  # usually of the training labels
    >>> labels.evaluate(top, Y, inverse_propensity=q, ks=[1])
    {'P@1': 0.6666666667, 'nDCG@1': 0.6666666667, 'PSP@1': 0.6616..., 'PSnDCG@1': 0.6616...}

Arguments that they share
-------------------------
top
    [rows, at least k] whole numbers, the predicted labels, best first: a numpy array, a tensor or
    lists. −1 stands for "no more predictions", only at the end of a row, and counts as a miss.
Y
    [rows, labels] scipy sparse matrix or array; what is above zero is relevant, whatever its value.
    It is not changed. A row without relevant labels counts, with the value 0.
k
    how many of the predictions count
inverse_propensity
    [labels] 1 / p of each label, as the function `inverse_propensity` gives them
reduction
    ``"mean"``: a float; ``"none"``: [rows] values with that mean

Bad input raises a `ValueError` that says what is wrong, and in which row.
"""

from tierrank.metrics.labels.measures import evaluate, ndcg, precision, ps_ndcg, ps_precision
from tierrank.metrics.labels.propensity import (
    inverse_propensity,
    inverse_propensity_of_counts,
)
from tierrank.metrics.labels.registry import LabelMetric, from_name

__all__ = [
    "LabelMetric",
    "evaluate",
    "from_name",
    "inverse_propensity",
    "inverse_propensity_of_counts",
    "ndcg",
    "precision",
    "ps_ndcg",
    "ps_precision",
]
