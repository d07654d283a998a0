"""Whether comparisons determine all worths, and if not, in words, why."""

from tierrank.aggregation.connectivity.components import Connectivity, connectivity

__all__ = ["Connectivity", "connectivity"]
