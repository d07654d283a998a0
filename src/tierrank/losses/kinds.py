"""What can be said of objectives as functions: which are likelihoods, and how smooth they are."""

from __future__ import annotations

from typing import Any

from tierrank.losses import modules
from tierrank.losses.registry import find

# Minus a log-likelihood of what a list shows: the inverse information is a covariance.
LIKELIHOODS = frozenset(
    {"pl-partition", "pl-topk", "listmle", "pl-lb", "pl-efron", "cox-discrete", "pmop-fd",
     "pmop-exact"}
)  # fmt: skip

# autograd has their gradients, and refuses second derivatives or gets them wrong
ONCE_DIFFERENTIABLE = (
    modules.PMOPExact,
    modules.RankNet,
    modules.RankRegress,
    modules.RankSVM,
    modules.RaoKupper,
    modules.Davidson,
)

# gradients of these are estimates, drawn at random
STOCHASTIC = frozenset({"pmop-gibbs", "pmop-mh"})


def is_likelihood(name: str, options: dict[str, Any] | None = None) -> bool:
    """Whether the objective is minus the log-likelihood of a list; weighted places are none."""
    weighted = (options or {}).get("alpha") is not None
    return find(name).name in LIKELIHOODS and not weighted
