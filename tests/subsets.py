"""Subsets and ordered partitions, one by one: what the PMOP models are checked against.

A subset is a tuple of items, a potential a function from the scores of a subset to log Φ.
"""

import itertools
import math

import numpy as np


def mean_of_worths(f):
    """log Φ of equation 15: the mean of e^f."""
    return np.logaddexp.reduce(f) - math.log(len(f))


def mean_of_scores(f):
    """log Φ of equation 16."""
    return np.mean(f)


def subsets(items):
    """Every subset that is not empty."""
    items = tuple(items)
    sizes = range(1, len(items) + 1)
    return [s for size in sizes for s in itertools.combinations(items, size)]


def softmax(values):
    values = np.exp(np.asarray(values) - np.max(values))
    return values / values.sum()


def choice_probabilities(f, potential, items=None):
    """{subset: probability} of one stage, over all subsets of the items."""
    every = subsets(range(len(f)) if items is None else items)
    return dict(zip(every, softmax([potential(f[list(s)]) for s in every]), strict=True))


def ordered_partitions(n):
    """[partitions, n] labels of all ordered partitions of n items: 1, 3, 13, 75, 541, …"""
    labels = itertools.product(range(n), repeat=n)
    return np.array([row for row in labels if set(row) == set(range(max(row) + 1))])


def stages_of(labels, direction="forward"):
    """(what is chosen, out of what) for each stage of one list of labels."""
    labels = np.asarray(labels)
    grades = np.unique(labels)
    left = np.ones(len(labels), dtype=bool)
    for grade in grades if direction == "backward" else grades[::-1]:
        yield tuple(np.flatnonzero(labels == grade)), tuple(np.flatnonzero(left))
        left &= labels != grade


def log_prob(scores, labels, potential, direction="forward"):
    """Of one list, by summing over all subsets at each stage; scores are [items(, stages)]."""
    scores = np.asarray(scores, dtype=np.float64) * (-1 if direction == "backward" else 1)
    total = 0.0
    for stage, (chosen, left) in enumerate(stages_of(labels, direction)):
        f = scores if scores.ndim == 1 else scores[:, stage]
        total += math.log(choice_probabilities(f, potential, left)[chosen])
    return total
