"""What the papers print, so that our figures can stand beside it."""

from __future__ import annotations

MEASURES = ("ERR", "NDCG@1", "NDCG@5")
ORDERS = ("first-order", "second-order")

# Tran, Phung and Venkatesh (2010), table 1: ERR, NDCG@1 and NDCG@5 with first-order features, then
# the same with second-order features.
_TABLE_1 = {
    "Rank Regress": (0.4882, 0.6830, 0.6672, 0.4971, 0.7021, 0.6752),
    "RankNet": (0.4919, 0.6903, 0.6698, 0.5049, 0.7183, 0.6836),
    "Ranking SVM": (0.4868, 0.6797, 0.6662, 0.4970, 0.7009, 0.6733),
    "ListMLE": (0.4955, 0.6993, 0.6705, 0.5030, 0.7172, 0.6810),
    "PairTies-D": (0.4941, 0.6944, 0.6725, 0.5013, 0.7131, 0.6786),
    "PairTies-RK": (0.4946, 0.6970, 0.6716, 0.5030, 0.7136, 0.6793),
    "PMOP-FD": (0.5038, 0.7137, 0.6762, 0.5086, 0.7272, 0.6858),
    "PMOP-Gibbs": (0.5037, 0.7105, 0.6792, 0.5040, 0.7124, 0.6706),
    "PMOP-MH": (0.5045, 0.7139, 0.6790, 0.5053, 0.7122, 0.6713),
}

TABLE_1: dict[tuple[str, str, str], float] = {
    (method, order, measure): values[3 * i + j]
    for method, values in _TABLE_1.items()
    for i, order in enumerate(ORDERS)
    for j, measure in enumerate(MEASURES)
}
"""By method, order of the features, and measure."""

BASELINES = ("Rank Regress", "RankNet", "Ranking SVM", "ListMLE", "PairTies-D", "PairTies-RK")
PMOP = ("PMOP-FD", "PMOP-Gibbs", "PMOP-MH")

# Lan et al. (2014), section 6: by how many per cent p-ListMLE improves NDCG@10. Figure 1 has the
# curves, but no numbers are printed.
IMPROVEMENTS: dict[str, dict[str, float]] = {
    "ListMLE": {"MQ2007-list": 0.95, "MQ2008-list": 0.54},
    "ListNet": {"MQ2007-list": 0.85, "MQ2008-list": 0.22},
    "RankCosine": {"MQ2007-list": 1.48, "MQ2008-list": 0.32},
}
"""By whom p-ListMLE is compared with, and data set."""
