"""Ordered partitions chosen subset by subset: the PMOP models of Tran, Phung and Venkatesh (2010).

A stage chooses a subset X_k of what remains, R_k, with probability Φ(X_k) / Σ_{S⊆R_k} Φ(S), over
all 2^N_k − 1 subsets that are not empty. The two potentials Φ of the paper are the mean of e^w
(`pmop_fd`, linear) and e to the mean of w (`pmop_exact`, cubic; `pmop_gibbs` and `pmop_mh`,
estimates of its gradient). `cox_discrete` chooses among subsets of one size, by the product of e^w.
"""

from tierrank.losses.ordered_partition.full_decomposition import pmop_fd
from tierrank.losses.ordered_partition.given_size import cox_discrete
from tierrank.losses.ordered_partition.mean_potential import pmop_exact, pmop_gibbs, pmop_mh
from tierrank.losses.ordered_partition.simulation import sample_ordered_partitions

__all__ = [
    "cox_discrete",
    "pmop_exact",
    "pmop_fd",
    "pmop_gibbs",
    "pmop_mh",
    "sample_ordered_partitions",
]
