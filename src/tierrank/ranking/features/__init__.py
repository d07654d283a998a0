"""Features before ranking: scikit-learn transformers that travel with the saved model."""

from tierrank.ranking.features.impute import Impute
from tierrank.ranking.features.query_scale import QueryScale
from tierrank.ranking.features.second_order import SecondOrder
from tierrank.ranking.features.standardize import Standardize
from tierrank.ranking.features.steps import TRANSFORMERS, Steps, steps_from

__all__ = [
    "TRANSFORMERS",
    "Impute",
    "QueryScale",
    "SecondOrder",
    "Standardize",
    "Steps",
    "steps_from",
]
