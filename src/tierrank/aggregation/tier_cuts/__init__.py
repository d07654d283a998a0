"""A fitted ranking cut into tiers of items that the data do not tell apart."""

from tierrank.aggregation.tier_cuts.cuts import TierCut, cut_into_tiers

__all__ = ["TierCut", "cut_into_tiers"]
