"""Objectives over scores and tiers, each a loss to minimise."""

from tierrank.losses.likelihood import list_mle, pl_lower_bound, pl_partition

__all__ = ["list_mle", "pl_lower_bound", "pl_partition"]
