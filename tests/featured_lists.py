"""Lists of items with features, drawn from the Plackett-Luce model and cut into tiers."""

import numpy as np


def featured_lists(rng, log_worths, *, lists, length, tiers):
    """Lists over items 0, 1, …: each of some of them, in tiers of random sizes, best first."""
    return [drawn_list(rng, log_worths, length, tiers) for _ in range(lists)]


def drawn_list(rng, log_worths, length, tiers):
    chosen = rng.choice(len(log_worths), length, replace=False)
    noisy = log_worths[chosen] + rng.gumbel(size=length)
    # where the cuts are does not depend on the noise, so the model stays the true one
    cuts = np.sort(rng.choice(np.arange(1, length), tiers - 1, replace=False))
    return [tuple(tier.tolist()) for tier in np.split(chosen[np.argsort(-noisy)], cuts)]


def as_rows(lists, features):
    """The same data as a ranker with features takes it: X, y and qid."""
    rows = [
        (item, -place, number)
        for number, tiers in enumerate(lists)
        for place, tier in enumerate(tiers)
        for item in tier
    ]
    items, y, qid = (np.array(column) for column in zip(*rows, strict=True))
    return features[items], y, qid
