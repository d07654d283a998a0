"""Small fits of `NeuralRanker`, which tests also run in processes of their own."""

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
