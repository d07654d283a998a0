"""Objectives that are a sum over the pairs of a list.

RankNet, RankSVM and RankRegress look at the pairs of different tiers, Rao-Kupper and Davidson at
the pairs inside a tier too. Memory grows with the items in all of them. So does the time of
RankRegress, and nearly that of RankSVM; the others take every pair, a few nanoseconds each.
"""

from tierrank.losses.pairwise.hinge import rank_svm
from tierrank.losses.pairwise.logistic import ranknet
from tierrank.losses.pairwise.quadratic import rank_regress
from tierrank.losses.pairwise.ties import davidson, rao_kupper

__all__ = ["davidson", "rank_regress", "rank_svm", "ranknet", "rao_kupper"]
