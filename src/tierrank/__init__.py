"""TierRank: learning to rank from tiers, by the exact Plackett-Luce likelihood."""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from tierrank import data, losses, metrics
from tierrank.plackett_luce import Curvature, log_prob, log_prob_above, sample
from tierrank.saving import load, save
from tierrank.tiers import Tiers

if TYPE_CHECKING:
    from tierrank.aggregation.aggregator import RankAggregator
    from tierrank.aggregation.covariates import FeatureAggregator
    from tierrank.aggregation.paired import PairedTies
    from tierrank.extreme.ranker import ExtremeRanker
    from tierrank.ranking.boosted import BoostedRanker
    from tierrank.ranking.linear import LinearRanker
    from tierrank.ranking.neural import NeuralRanker

__version__ = version("tierrank")
__all__ = [
    "BoostedRanker",
    "Curvature",
    "ExtremeRanker",
    "FeatureAggregator",
    "LinearRanker",
    "NeuralRanker",
    "PairedTies",
    "RankAggregator",
    "Tiers",
    "data",
    "load",
    "log_prob",
    "log_prob_above",
    "losses",
    "metrics",
    "sample",
    "save",
]

# Estimators load scikit-learn, so they come when they are asked for.
_LATER = {
    "BoostedRanker": "tierrank.ranking.boosted",
    "ExtremeRanker": "tierrank.extreme.ranker",
    "FeatureAggregator": "tierrank.aggregation.covariates",
    "LinearRanker": "tierrank.ranking.linear",
    "NeuralRanker": "tierrank.ranking.neural",
    "PairedTies": "tierrank.aggregation.paired",
    "RankAggregator": "tierrank.aggregation.aggregator",
}


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return getattr(import_module(_LATER[name]), name)
    raise AttributeError(f"module 'tierrank' has no attribute {name!r}")
