"""Features before ranking: scikit-learn transformers that travel with the saved model."""

from tierrank.ranking.features.base import TRANSFORMERS, Steps, steps_from
from tierrank.ranking.features.scaling import Impute, QueryScale, Standardize
from tierrank.ranking.features.second_order import SecondOrder

__all__ = [
    "TRANSFORMERS",
    "Impute",
    "QueryScale",
    "SecondOrder",
    "Standardize",
    "Steps",
    "steps_from",
]
