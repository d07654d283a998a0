"""Whether comparisons determine all worths, and if not, in words, why."""

from tierrank.aggregation.connectivity.components import (
    Connectivity,
    Disconnected,
    connectivity,
    leave_out,
)

__all__ = ["Connectivity", "Disconnected", "connectivity", "leave_out"]
