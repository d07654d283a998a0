"""Games of two sides that may end in a tie: Bradley-Terry, Rao-Kupper and Davidson."""

from tierrank.aggregation.paired.estimator import PairedTies
from tierrank.aggregation.paired.table import PairedTable

__all__ = ["PairedTable", "PairedTies"]
