"""Pages of aggregations, for tests of the report."""

import numpy as np

from tierrank.report.aggregation import (
    AggregationPage,
    ConnectivityFacts,
    ConvergenceFacts,
    ItemRow,
)
from tierrank.report.content import PairCounts, PairModel


def made_page(items=12, *, names=None, intervals=True, tiers=True, pairs=True, **changes):
    """A page of items with falling log-worths, as a fit would fill it."""
    rng = np.random.default_rng(items)
    scores = np.sort(rng.normal(size=items))[::-1]
    scores -= scores.mean()
    errors = rng.uniform(0.1, 0.25, size=items)
    worths = np.exp(scores) / np.exp(scores).sum()
    above = 1 / (1 + np.exp(scores[None, :] - scores[:, None]))
    cuts = 1 - np.exp(-((np.diff(scores) / 0.1) ** 2))
    tier = 1 + np.concatenate([[0], np.cumsum(cuts > 0.5)])
    rows = [
        ItemRow(
            name=names[item] if names else f"item {item + 1}",
            log_worth=float(scores[item]),
            worth=float(worths[item]),
            expected_rank=float(0.5 + above[:, item].sum()),
            top_k=float(worths[item]),
            tier=int(tier[item]) if tiers else None,
            games=float(20 + 7 * item % 30),
            wins=float(5 + item % 9),
            ties=3.0,
            losses=float(12 + 7 * item % 30 - item % 9),
            **interval(scores[item], errors[item], item + 1, items) if intervals else {},
        )
        for item in range(items)
    ]
    shown = min(items, 30)
    one, two = np.triu_indices(shown, 1)
    spread = np.sqrt(errors[:shown, None] ** 2 + errors[None, :shown] ** 2)
    content = {
        "title": "Trees",
        "subtitle": "trees.toc",
        "rows": tuple(rows),
        "top_k": 1,
        "pairwise": above[:shown, :shown] if pairs else None,
        "cut_probabilities": cuts if tiers else None,
        "tier_criterion": "The most probable cuts." if tiers else None,
        "connectivity": ConnectivityFacts(items, 40, 30, 40.0, 2, 1, 1, True),
        "convergence": ConvergenceFacts(
            "Newton", 4, 0.02, True, "gradient", (90.5, 60.25, 55.0, 54.5), 1e-11, -54.5, 131.0
        ),
        "settings": {"objective": "pl-partition", "prior": "none"},
        "notes": ("Two lists compare nothing.",),
        "pair_model": PairModel(tie_says="A tie says nothing.", errors=spread),
        "pair_counts": PairCounts(
            one[::2], two[::2], 1.0 + one[::2], 2.0 + 0 * one[::2], 3.0 + two[::2], shown
        ),
    }
    return AggregationPage(**(content | changes))


def interval(score, error, rank, items):
    return {
        "low": float(score - 2 * error),
        "high": float(score + 2 * error),
        "standard_error": float(error),
        "rank_low": max(1, rank - 2),
        "rank_high": min(items, rank + 2),
    }
