"""TierRank: learning to rank from tiers, by the exact Plackett-Luce likelihood."""

from importlib.metadata import version

from tierrank import data, losses, metrics
from tierrank.plackett_luce import Curvature, log_prob, log_prob_above, sample
from tierrank.tiers import Tiers

__version__ = version("tierrank")
__all__ = [
    "Curvature",
    "Tiers",
    "data",
    "log_prob",
    "log_prob_above",
    "losses",
    "metrics",
    "sample",
]
