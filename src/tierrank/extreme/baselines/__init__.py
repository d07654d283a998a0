"""Embedding methods that others published, to compare with: `Leml` and `Sleec`."""

from tierrank.extreme.baselines.leml import Leml
from tierrank.extreme.baselines.sleec import Sleec

__all__ = ["Leml", "Sleec"]
