"""Rows with features whose tiers follow the Plackett-Luce model with linear scores."""

import numpy as np


def simulated_rows(seed, *, lists=40, longest=12, coef=(1.0, -0.5, 0.25), tiers=3, shuffled=False):
    """X, y and qid. Full rankings are drawn (by Gumbel noise) and cut at random into tiers."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(2, longest + 1, lists)
    qid = np.repeat(np.arange(lists), lengths)
    X = rng.normal(size=(len(qid), len(coef)))
    noisy = X @ np.asarray(coef) + rng.gumbel(size=len(qid))
    y = np.empty(len(qid))
    for number, length in enumerate(lengths):
        rows = np.flatnonzero(qid == number)
        # where the cuts are does not depend on the noise, so the model stays the true one
        cuts = np.sort(rng.choice(np.arange(1, length), min(tiers, length) - 1, replace=False))
        place = np.argsort(np.argsort(-noisy[rows]))
        y[rows] = len(cuts) - np.searchsorted(cuts, place, side="right")
    if shuffled:
        order = rng.permutation(len(qid))
        X, y, qid = X[order], y[order], qid[order]
    return X, y, qid
