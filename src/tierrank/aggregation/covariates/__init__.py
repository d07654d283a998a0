"""Worths as a function of item features, linear or neural: also for items that no list names."""

from tierrank.aggregation.covariates.estimator import FeatureAggregator
from tierrank.aggregation.covariates.worths import ItemWorths

__all__ = ["FeatureAggregator", "ItemWorths"]
