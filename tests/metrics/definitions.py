"""The measures as their definitions say, for the labels of one list in order, the best first.

Slow and plain: loops over ranks, all orders of tied scores, all pairs. `expected` is what
``ties="average"`` must give.
"""

import itertools
import math

import numpy as np


def exp2_gain(label):
    return 2.0**label - 1


def dcg(labels, k=None, gain=exp2_gain):
    return sum(gain(label) / math.log2(1 + i) for i, label in enumerate(labels[:k], start=1))


def ndcg(labels, k=None, gain=exp2_gain):
    best = dcg(sorted(labels, key=gain, reverse=True), k, gain)
    return dcg(labels, k, gain) / best if best else 0.0


def sharp_ndcg(labels, gain=exp2_gain):
    def total(ordered):
        return sum((len(ordered) - i) * gain(r) for i, r in enumerate(ordered, start=1))

    best = total(sorted(labels, reverse=True))
    return total(labels) / best if best else 0.0


def err(labels, k=None, max_grade=4):
    value, going_on = 0.0, 1.0
    for i, label in enumerate(labels[:k], start=1):
        stop = (2**label - 1) / 2**max_grade
        value += going_on * stop / i
        going_on *= 1 - stop
    return value


def precision(labels, k=None, relevant=1):
    return sum(label >= relevant for label in labels[:k]) / (k or len(labels))


def recall(labels, k=None, relevant=1):
    total = sum(label >= relevant for label in labels)
    return sum(label >= relevant for label in labels[:k]) / total if total else 0.0


def average_precision(labels, k=None, relevant=1, out_of="all"):
    hits = [label >= relevant for label in labels]
    total = sum(hits) if k is None or out_of == "all" else min(sum(hits), k)
    ranks = [i for i, hit in enumerate(hits[:k], start=1) if hit]
    return sum(sum(hits[:i]) / i for i in ranks) / total if total else 0.0


def reciprocal_rank(labels, k=None, relevant=1):
    return next((1 / i for i, r in enumerate(labels[:k], start=1) if r >= relevant), 0.0)


def pairwise_disagreement(scores, labels, weight=lambda a, b: exp2_gain(a) - exp2_gain(b)):
    rows = list(zip(scores, labels, strict=True))
    return sum(weight(a, b) for s, a in rows for t, b in rows if a > b and s <= t)


def in_input_order(measure, scores, labels):
    """The measure with tied rows as they come."""
    return measure([labels[i] for i in sorted(range(len(scores)), key=lambda i: -scores[i])])


def expected(measure, scores, labels):
    """The mean of a measure over every order of the rows that agrees with the scores."""
    levels = sorted(set(scores), reverse=True)
    ties = [[r for s, r in zip(scores, labels, strict=True) if s == level] for level in levels]
    orders = itertools.product(*(itertools.permutations(tie) for tie in ties))
    return math.fsum(values := [measure(list(itertools.chain(*order))) for order in orders]) / len(
        values
    )


def lists_with_ties(seed, lists=12, longest=6, levels=3, grades=4):
    """Random short lists, many scores tied: flat scores, labels, lengths."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, longest + 1, size=lists)
    rows = lengths.sum()
    return rng.integers(0, levels, size=rows) / 2, rng.integers(0, grades, size=rows), lengths


def by_list(scores, labels, lengths):
    """One pair of Python lists (scores, labels) a list."""
    borders = np.cumsum(lengths)[:-1]
    pairs = zip(np.split(scores, borders), np.split(labels, borders), strict=True)
    return [(one.tolist(), other.tolist()) for one, other in pairs]
