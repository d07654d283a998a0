"""Places in a full ranking under the model: above whom, expected rank, among the first k."""

from tierrank.aggregation.places.intervals import rank_intervals, simulated_intervals
from tierrank.aggregation.places.probabilities import (
    expected_ranks,
    pairwise_probabilities,
    top_k_probabilities,
)

__all__ = [
    "expected_ranks",
    "pairwise_probabilities",
    "rank_intervals",
    "simulated_intervals",
    "top_k_probabilities",
]
