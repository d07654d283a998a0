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

# Ma et al. (2021), table 3: features, labels, rows to train on and rows to test with.
XML_SETS: dict[str, tuple[int, int, int, int]] = {
    "D-1K": (500, 983, 12_920, 3_185),
    "E-4K": (5_000, 3_993, 15_539, 3_809),
    "W-31K": (101_938, 30_938, 14_146, 6_616),
    "D-200K": (782_585, 205_443, 196_606, 100_095),
}
"""Sizes by the paper's name of the data set."""

XML_METHODS = ("PL-Partition", "PL-LB", "RankNet", "RankSVM")
XML_PLACES = (1, 3, 5, 10)

# Ma et al. (2021), tables 1 and 4, in per cent: a line a measure, at k = 1, 3, 5 and 10; in each
# group the four methods.
_XML_TABLES = {
    ("D-1K", "P"): (
        (66.72, 66.12, 64.11, 61.95), (61.30, 60.13, 58.46, 57.05),
        (56.63, 54.72, 53.60, 52.74), (47.61, 45.76, 45.62, 44.57),
    ),
    ("D-1K", "PSP"): (
        (33.22, 30.36, 32.02, 31.03), (34.23, 31.69, 32.76, 31.61),
        (35.02, 31.82, 32.85, 32.20), (35.26, 31.91, 33.27, 32.71),
    ),
    ("D-1K", "nDCG"): (
        (66.72, 66.12, 64.11, 61.95), (62.78, 61.57, 60.00, 58.24),
        (59.25, 57.51, 56.29, 55.01), (52.48, 50.70, 50.23, 49.08),
    ),
    ("D-1K", "PSnDCG"): (
        (33.22, 30.36, 32.02, 31.03), (36.01, 33.26, 34.34, 33.29),
        (37.58, 34.55, 35.77, 34.87), (39.48, 36.09, 37.43, 36.52),
    ),
    ("E-4K", "P"): (
        (78.12, 66.46, 77.57, 76.46), (62.81, 51.58, 63.05, 61.88),
        (51.75, 41.35, 52.55, 50.95), (33.79, 26.99, 34.36, 32.56),
    ),
    ("E-4K", "PSP"): (
        (41.93, 34.55, 42.81, 42.71), (43.46, 34.37, 45.55, 45.69),
        (45.70, 34.44, 48.61, 47.43), (57.13, 42.50, 60.83, 57.50),
    ),
    ("E-4K", "nDCG"): (
        (78.12, 66.46, 77.57, 76.46), (66.40, 55.16, 66.56, 65.32),
        (59.66, 48.71, 59.86, 58.61), (57.34, 46.78, 57.78, 56.35),
    ),
    ("E-4K", "PSnDCG"): (
        (41.93, 34.55, 42.81, 42.71), (47.61, 38.18, 49.83, 49.87),
        (50.51, 39.19, 52.98, 52.50), (50.76, 39.19, 53.33, 52.72),
    ),
    ("W-31K", "P"): (
        (85.97, 80.73, 82.35, 80.88), (73.07, 54.14, 67.33, 60.30),
        (63.01, 44.88, 56.96, 50.81), (47.69, 31.36, 42.47, 37.50),
    ),
    ("W-31K", "PSP"): (
        (13.01, 9.24, 12.90, 12.55), (13.46, 7.61, 12.95, 12.18),
        (14.03, 7.62, 13.18, 12.20), (15.70, 7.61, 14.90, 13.04),
    ),
    ("W-31K", "nDCG"): (
        (85.97, 80.73, 82.35, 80.88), (76.08, 59.79, 70.88, 64.39),
        (68.40, 51.85, 62.81, 56.67), (56.17, 40.24, 50.71, 45.56),
    ),
    ("W-31K", "PSnDCG"): (
        (13.01, 9.24, 12.90, 12.55), (14.41, 8.72, 14.07, 13.32),
        (15.98, 9.25, 15.31, 14.33), (18.98, 10.22, 17.99, 16.46),
    ),
    ("D-200K", "P"): (
        (47.58, 40.38, 41.93, 41.41), (42.09, 37.40, 38.92, 38.46),
        (39.23, 35.65, 36.94, 36.67), (35.11, 32.40, 33.66, 33.44),
    ),
    ("D-200K", "PSP"): (
        (8.72, 6.79, 7.06, 7.13), (9.19, 7.74, 8.17, 8.13),
        (9.82, 8.46, 8.93, 8.92), (11.01, 9.75, 10.20, 10.21),
    ),
    ("D-200K", "nDCG"): (
        (47.58, 40.38, 41.93, 41.41), (43.32, 37.85, 39.68, 39.24),
        (41.07, 36.50, 38.09, 37.77), (37.69, 33.99, 35.55, 35.20),
    ),
    ("D-200K", "PSnDCG"): (
        (8.72, 6.79, 7.06, 7.13), (9.98, 8.27, 8.67, 8.70),
        (10.98, 9.27, 9.79, 9.79), (12.51, 10.83, 11.39, 11.42),
    ),
}  # fmt: skip

# The same paper's table 2, from the XML repository: P@1, P@3, P@5, PSP@1, PSP@3 and PSP@5.
_XML_EMBEDDINGS = {
    ("D-1K", "SLEEC"): (67.59, 61.38, 56.56, 32.11, 33.21, 33.83),
    ("D-1K", "LEML"): (65.67, 60.55, 56.08, 30.73, 32.43, 33.26),
    ("E-4K", "SLEEC"): (79.26, 64.30, 52.33, 34.25, 39.83, 42.76),
    ("E-4K", "LEML"): (63.40, 50.35, 41.28, 24.10, 27.20, 29.09),
    ("W-31K", "SLEEC"): (85.88, 72.98, 62.70, 11.14, 11.86, 12.40),
    ("W-31K", "LEML"): (73.47, 62.43, 54.35, 9.41, 10.07, 10.55),
    ("D-200K", "SLEEC"): (47.85, 42.21, 39.43, 7.17, 8.16, 8.96),
    ("D-200K", "LEML"): (40.73, 37.71, 35.84, 6.06, 7.24, 8.10),
}

SIX = ("P@1", "P@3", "P@5", "PSP@1", "PSP@3", "PSP@5")
"""What table 2 has, and the leaderboard of the XML repository."""

XML: dict[tuple[str, str, str], float] = {
    (data, method, f"{measure}@{k}"): values[i][j]
    for (data, measure), values in _XML_TABLES.items()
    for i, k in enumerate(XML_PLACES)
    for j, method in enumerate(XML_METHODS)
} | {
    (data, method, measure): value
    for (data, method), values in _XML_EMBEDDINGS.items()
    for measure, value in zip(SIX, values, strict=True)
}
"""Tables 1, 2 and 4 of Ma et al. (2021), in per cent, by data set, method and measure."""

# The best trees on that leaderboard, for what each is best at.
LEADERS: dict[tuple[str, str, str], float] = {
    ("D-1K", "FastXML", "P@1"): 69.61,
    ("D-1K", "FastXML", "P@3"): 64.12,
    ("D-1K", "FastXML", "P@5"): 59.27,
    ("D-1K", "PfastreXML", "PSP@1"): 34.57,
    ("D-1K", "PfastreXML", "PSP@3"): 34.80,
    ("D-1K", "PfastreXML", "PSP@5"): 35.86,
}
"""In per cent, by data set, method and measure."""
