"""
Clicks, and the bias of positions
=================================

What stands on top is looked at more. A bias a position, learned with the weights, takes that out
of them.
"""

import matplotlib.pyplot as plt
import numpy as np

import tierrank as tr

rng = np.random.default_rng(4)
X = rng.normal(size=(20_000, 3))
relevance = X @ [1.0, 0.5, 0.0]
shown = np.empty(20_000, dtype=int)  # an old ranker has sorted each page, by the third feature
qid = np.repeat(np.arange(2000), 10)
for query in range(2000):
    rows = slice(10 * query, 10 * query + 10)
    shown[rows] = 1 + np.argsort(np.argsort(-X[rows, 2] + rng.normal(size=10)))
seen = rng.random(20_000) < 1 / shown
clicks = (seen & (rng.random(20_000) < 1 / (1 + np.exp(-relevance)))).astype(int)

naive = tr.LinearRanker(features=None).fit(X, clicks, qid=qid)
honest = tr.LinearRanker(features=None).fit(X, clicks, qid=qid, positions=shown)

# %%
# The third feature only decided where a row was shown. Without positions it is given a weight.
fig, ax = plt.subplots(figsize=(6, 3.5), layout="constrained")
place = np.arange(3)
ax.bar(place - 0.2, naive.coef_, 0.4, label="positions ignored")
ax.bar(place + 0.2, honest.coef_, 0.4, label="positions given")
ax.set_xticks(place, ["matters", "matters half", "old ranker's"])
ax.set_ylabel("weight")
ax.legend()
plt.show()
