"""The measures of labels as their definitions say, slow and plain, and random rows for them."""

import math

import numpy as np
import scipy.sparse


def random_rows(seed, rows=40, n_labels=30, places=7, relevant=0.15):
    """Top predictions with ends of all lengths, and rows with none to many relevant labels."""
    rng = np.random.default_rng(seed)
    density = relevant * rng.choice([0, 0.3, 1, 3], size=(rows, 1))
    Y = rng.random((rows, n_labels)) < density
    Y[rng.integers(rows), rng.integers(n_labels)] = True  # or there is no best value to reach
    top = np.full((rows, places), -1)
    for row in range(rows):
        given = min(n_labels, rng.choice([places, rng.integers(0, places + 1)]))
        # Half of the rows favour what is relevant, so that there is something to find.
        order = np.argsort(rng.random(n_labels) - (row % 2) * 0.4 * Y[row])
        top[row, :given] = order[:given]
    q = 1 + rng.exponential(size=n_labels)
    return top, scipy.sparse.csr_array(Y.astype(np.float32)), q


def rankings(top):
    """Lists of the labels that were predicted, as other libraries take them."""
    return [[int(label) for label in row if label >= 0] for row in np.asarray(top)]


def label_lists(Y):
    """Lists of the relevant labels."""
    return [np.flatnonzero(row).tolist() for row in Y.toarray()]


def precision(predicted, relevant, k):
    return sum(label in relevant for label in predicted[:k]) / k


def dcg(weights):
    return sum(weight / math.log2(1 + i) for i, weight in enumerate(weights, start=1))


def ndcg(predicted, relevant, k):
    best = dcg([1] * min(k, len(relevant)))
    return dcg([label in relevant for label in predicted[:k]]) / best if relevant else 0.0


def ps_precision(predicted, relevant, q, k):
    """Numerators and denominators a row, whose sums the measure divides."""
    pairs = []
    for ranking, truth in zip(predicted, relevant, strict=True):
        found = sum(q[label] for label in ranking[:k] if label in truth)
        pairs.append((found, sum(sorted((q[label] for label in truth), reverse=True)[:k])))
    return np.array(pairs).T


def ps_ndcg(predicted, relevant, q, k, out_of="reachable"):
    """Numerators and denominators a row, whose sums the measure divides."""
    pairs = []
    for ranking, truth in zip(predicted, relevant, strict=True):
        found = dcg([q[label] if label in truth else 0 for label in ranking[:k]])
        best = dcg(sorted((q[label] for label in truth), reverse=True)[:k])
        norm = dcg([1] * (min(k, len(truth)) if out_of == "reachable" else k))
        pairs.append((found / norm, best / norm) if truth else (0, 0))
    return np.array(pairs).T
