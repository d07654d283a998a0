"""Small fits of `NeuralRanker`, which tests also run in processes of their own."""

import os

import numpy as np

import tierrank as tr


def small(**options):
    """A ranker that takes no time."""
    usual = {"max_epochs": 3, "hidden": (8,), "batch_lists": 4, "random_state": 0}
    return tr.NeuralRanker(**{**usual, **options})


def lists(seed=0, n_lists=24, features=4, longest=8):
    """Lists of 1 to so many rows, shuffled; the label is a step of |x₀| + x₁ / 2, and noise."""
    rng = np.random.default_rng(seed)
    qid = rng.permutation(np.repeat(np.arange(n_lists), rng.integers(1, longest + 1, n_lists)))
    X = rng.normal(size=(len(qid), features))
    y = np.round(np.abs(X[:, 0]) + X[:, 1] / 2 + rng.normal(scale=0.3, size=len(qid)))
    return X, np.maximum(y, 0), qid


def long_fit(**fit_params):
    """A fit of a few hundred steps, with something random in each."""
    X, y, qid = lists()
    ranker = small(dropout=0.3, max_epochs=60, patience=None)
    return ranker.fit(X, y, qid=qid, eval_set=lists(8), **fit_params)


def shared_fit(**fit_params):
    """A fit whose last batch is one list (of 19 that teach), too few for two processes."""
    X, y, qid = lists()
    options = {"batch_lists": 6, "dropout": 0.0, "max_epochs": 4, "weight_decay": 0.1}
    ranker = small(**options, accelerator="cpu")
    return ranker.fit(X, y, qid=qid, eval_set=lists(8), **fit_params)


def part_of(data, borders, rank):
    """Rows of the lists from one border to the next, counted in order of first appearance."""
    X, y, qid = data
    _, first, number = np.unique(qid, return_index=True, return_inverse=True)
    place = np.argsort(np.argsort(first))[number]
    chosen = (place >= borders[rank]) & (place < borders[rank + 1])
    return X[chosen], y[chosen], qid[chosen]


def sharded_fits(cases):
    """What this rank learns from its part of the lists, in one fit after the other.

    A case has the constructor's options, borders of parts in the lists and in those to stop by,
    and whether lists have weights.
    """
    rank = int(os.environ["RANK"])
    found = []
    for options, borders, valid_borders, weighted in cases:
        data, valid = some_lists(), some_lists(8)
        X, y, qid = part_of(data, borders, rank)
        weights = weights_of_lists()[borders[rank] : borders[rank + 1]] if weighted else None
        ranker = small(dropout=0.0, accelerator="cpu", **options)
        ranker.fit(
            X, y, qid=qid, weights=weights, eval_set=part_of(valid, valid_borders, rank),
            sharded=True,
        )  # fmt: skip
        found.append(learned(ranker, data))
    return found


def some_lists(seed=0):
    """Lists with missing values."""
    X, y, qid = lists(seed)
    X[np.random.default_rng(seed).random(X.shape) < 0.1] = np.nan
    return X, y, qid


def weights_of_lists():
    """One a list."""
    return np.random.default_rng(5).integers(0, 4, 24).astype(float)


def learned(ranker, data):
    """The curve, the scores of rows, and what the feature steps know."""
    history, scores = ranker.history_, ranker.predict(data[0], qid=data[2])
    curve = {"loss": history.loss, "metric": history.metric}
    return {"scores": scores, **curve, **ranker.steps_.to_state()[1]}


def sharded_faults():
    """What is said of parts that do not go together."""
    rank = int(os.environ["RANK"])
    X, y, qid = lists()
    half = np.arange(len(X)) % 2 == rank
    mine = part_of((X, y, qid), (0, 12, 24), rank)
    calls = [
        lambda: small().fit(X[half], y[half], qid=qid[half], sharded=True),
        lambda: small().fit(mine[0][:, : 4 - rank], mine[1], qid=mine[2], sharded=True),
        lambda: small().fit(mine[0], 0 * mine[1], qid=mine[2], sharded=True),
        lambda: small(features="second-order").fit(*mine[:2], qid=mine[2], sharded=True),
    ]
    return [said(call) for call in calls]


def said(call):
    """What a call raises."""
    try:
        call()
    except ValueError as error:
        return str(error)
    return None
