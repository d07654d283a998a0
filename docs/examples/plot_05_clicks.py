"""
Clicks, and the bias of positions
=================================

What stands on top is looked at more. Rows that were shown at several places tell by how much; a
click at a place that few look at then weighs more.
"""

import matplotlib.pyplot as plt
import numpy as np

import tierrank as tr

rng = np.random.default_rng(4)
X = rng.normal(size=(2_000, 3))  # 200 queries of ten rows
attractive = 1 / (1 + np.exp(-X @ [1.0, 0.5, 0.0]))
query = rng.integers(200, size=6_000)  # of each session
rows = 10 * query[:, None] + np.arange(10)
# an old ranker sorts each page by the third feature, and mixes a little
order = np.argsort(-X[rows, 2] + rng.normal(size=rows.shape), axis=1)
rows = np.take_along_axis(rows, order, axis=1)
places = np.tile(np.arange(1, 11), (6_000, 1))
clicked = rng.random(rows.shape) < attractive[rows] / places

log = tr.data.ClickLog.from_arrays(
    np.repeat(np.arange(6_000), 10), rows.ravel(), places.ravel(), clicked.ravel()
)
seen = log.propensities()
naive = tr.LinearRanker(features=None)
naive.fit(X, **log.lists("unclicked").arguments | {"positions": None})
honest = tr.LinearRanker(features=None).fit(X, **log.lists().arguments)

# %%
# The third feature only decided where a row was shown. Naively it is given a weight.
fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
place = np.arange(3)
left.bar(place - 0.2, naive.coef_, 0.4, label="positions ignored")
left.bar(place + 0.2, honest.coef_, 0.4, label="clicks weighed")
left.set_xticks(place, ["matters", "matters half", "old ranker's"])
left.set_ylabel("weight")
left.legend()
at = np.arange(1, 11)
right.plot(at, 1 / at, label="true")
low, high = (np.exp(seen.bias + sign * 1.96 * seen.standard_errors) for sign in (-1, 1))
right.errorbar(
    at, seen.values, [seen.values - low, high - seen.values], fmt="o", capsize=3, label="learned"
)
right.set(xlabel="place", ylabel="how likely it is looked at", yscale="log")
right.legend()
plt.show()
