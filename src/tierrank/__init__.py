"""TierRank: learning to rank from tiers, by the exact Plackett-Luce likelihood.

Rankers with features, fitted as scikit-learn estimators:

    BoostedRanker      trees of LightGBM or XGBoost
    BlendedRanker      all three of these in one score
    LinearRanker       a weight for each feature, with standard errors
    NeuralRanker       perceptrons, and attention over the list
    ExtremeRanker      the best labels of a row, out of up to millions

Worths of items, from what was observed of them:

    RankAggregator     from rankings with ties
    DavidsonLuce       from rankings in which a tie says that items are close
    PairedTies         from games of two sides that may end in a tie
    WorthsThroughTime  from games or rankings over time, as worths that change
    FeatureAggregator  from rankings and features of the items
    RankMixture        groups of rankings that agree, with worths for each

The likelihood itself:

    Tiers              lists of items in ordered tiers
    log_prob           log-probability of tiers under scores, one a list
    log_prob_above     log-probability that one set of items precedes another
    Curvature          second derivatives of the likelihood, without autograd
    sample             rankings drawn from the model

Parts, and models on the disk:

    losses             objectives over scores and tiers: `losses.pl_partition` and others
    metrics            how well scores rank labels: `metrics.ndcg` and others
    data               files read and written: `data.read`, `data.read_rankings` and others
    save               save a fitted model to a folder
    load               load it again
    export             write a ranker for other programs: ONNX, XGBoost, LightGBM, RankLib, Solr
    native_info        how the compiled core was built, and which instructions it uses
"""

from importlib import import_module
from importlib.util import find_spec

# Type checkers take it for true, by its name; editors that complete, for what may be true, a bool.
# (To load the module typing takes longer than this one.)
TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from tierrank import data, losses, metrics
    from tierrank.aggregation.aggregator import RankAggregator
    from tierrank.aggregation.covariates import FeatureAggregator
    from tierrank.aggregation.davidson_luce import DavidsonLuce
    from tierrank.aggregation.mixture import RankMixture
    from tierrank.aggregation.paired import PairedTies
    from tierrank.aggregation.through_time import WorthsThroughTime
    from tierrank.extreme.ranker import ExtremeRanker
    from tierrank.plackett_luce import Curvature, log_prob, log_prob_above, sample
    from tierrank.plackett_luce.kernels import native_info
    from tierrank.ranking.blended import BlendedRanker
    from tierrank.ranking.boosted import BoostedRanker
    from tierrank.ranking.export import export
    from tierrank.ranking.linear import LinearRanker
    from tierrank.ranking.neural import NeuralRanker
    from tierrank.storage import load, save
    from tierrank.tiers import Tiers

    __version__: str

__all__ = [
    "BlendedRanker",
    "BoostedRanker",
    "Curvature",
    "DavidsonLuce",
    "ExtremeRanker",
    "FeatureAggregator",
    "LinearRanker",
    "NeuralRanker",
    "PairedTies",
    "RankAggregator",
    "RankMixture",
    "Tiers",
    "WorthsThroughTime",
    "data",
    "export",
    "load",
    "log_prob",
    "log_prob_above",
    "losses",
    "metrics",
    "native_info",
    "sample",
    "save",
]

# All comes when it is asked for: torch takes seconds to load, which no typing mistake on the
# command line is worth.
_HOMES = {
    "BlendedRanker": "tierrank.ranking.blended",
    "BoostedRanker": "tierrank.ranking.boosted",
    "Curvature": "tierrank.plackett_luce",
    "DavidsonLuce": "tierrank.aggregation.davidson_luce",
    "ExtremeRanker": "tierrank.extreme.ranker",
    "FeatureAggregator": "tierrank.aggregation.covariates",
    "LinearRanker": "tierrank.ranking.linear",
    "NeuralRanker": "tierrank.ranking.neural",
    "PairedTies": "tierrank.aggregation.paired",
    "RankAggregator": "tierrank.aggregation.aggregator",
    "RankMixture": "tierrank.aggregation.mixture",
    "Tiers": "tierrank.tiers",
    "WorthsThroughTime": "tierrank.aggregation.through_time",
    "export": "tierrank.ranking.export",
    "load": "tierrank.storage",
    "log_prob": "tierrank.plackett_luce",
    "log_prob_above": "tierrank.plackett_luce",
    "native_info": "tierrank.plackett_luce.kernels",
    "sample": "tierrank.plackett_luce",
    "save": "tierrank.storage",
}

if not TYPE_CHECKING:  # to type checkers, a name that is not above is a mistake

    def __getattr__(name: str) -> object:
        if name == "__version__":
            from importlib.metadata import version

            found: object = version("tierrank")
        elif name in _HOMES:
            found = getattr(import_module(_HOMES[name]), name)
        elif not name.startswith("_") and find_spec(f"tierrank.{name}"):
            return import_module(f"tierrank.{name}")  # which makes it an attribute by itself
        else:
            raise AttributeError(f"module 'tierrank' has no attribute {name!r}", name=name)
        globals()[name] = found
        return found


def __dir__() -> list[str]:
    return [*__all__, *(name for name in globals() if name.startswith("__"))]
