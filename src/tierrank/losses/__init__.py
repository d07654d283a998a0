"""Objectives over scores and tiers, each a loss to minimise.

Every one is a function of ``(scores, tiers, *, weights=None, reduction="mean")`` and options of
its own, an `nn.Module` that holds its options, and a name in `OBJECTIVES`.

    >>> import numpy as np, tierrank as tr
    >>> scores, tiers = np.log([4.0, 2.0, 1.0]), tr.Tiers.from_labels([1, 1, 0])
    >>> tr.losses.pl_partition(scores, tiers)  # −log(4/7 · 2/3 + 2/7 · 4/5)
    array(0.49507727)
    >>> loss = tr.losses.from_name("rao-kupper")  # a module: how probable ties are is learned
    >>> [name for name, _ in loss.named_parameters()]
    ['alpha']
"""

from tierrank.losses.approximation import pl_efron, pl_lower_bound
from tierrank.losses.likelihood import list_mle, p_list_mle, pl_partition, pl_top_k
from tierrank.losses.listwise import att_rank, list_net, rank_cosine
from tierrank.losses.modules import (
    PMOPFD,
    PMOPMH,
    AttRank,
    CoxDiscrete,
    Davidson,
    ListMLE,
    ListNet,
    Objective,
    PLEfron,
    PListMLE,
    PLLowerBound,
    PLPartition,
    PLTopK,
    PMOPExact,
    PMOPGibbs,
    RankCosine,
    RankNet,
    RankRegress,
    RankSVM,
    RaoKupper,
    from_name,
)
from tierrank.losses.ordered_partition import (
    cox_discrete,
    pmop_exact,
    pmop_fd,
    pmop_gibbs,
    pmop_mh,
    sample_ordered_partitions,
)
from tierrank.losses.pairwise import davidson, rank_regress, rank_svm, ranknet, rao_kupper
from tierrank.losses.positions import gain
from tierrank.losses.registry import OBJECTIVES, find

__all__ = [
    "OBJECTIVES",
    "PMOPFD",
    "PMOPMH",
    "AttRank",
    "CoxDiscrete",
    "Davidson",
    "ListMLE",
    "ListNet",
    "Objective",
    "PLEfron",
    "PLLowerBound",
    "PLPartition",
    "PLTopK",
    "PListMLE",
    "PMOPExact",
    "PMOPGibbs",
    "RankCosine",
    "RankNet",
    "RankRegress",
    "RankSVM",
    "RaoKupper",
    "att_rank",
    "cox_discrete",
    "davidson",
    "find",
    "from_name",
    "gain",
    "list_mle",
    "list_net",
    "p_list_mle",
    "pl_efron",
    "pl_lower_bound",
    "pl_partition",
    "pl_top_k",
    "pmop_exact",
    "pmop_fd",
    "pmop_gibbs",
    "pmop_mh",
    "rank_cosine",
    "rank_regress",
    "rank_svm",
    "ranknet",
    "rao_kupper",
    "sample_ordered_partitions",
]
