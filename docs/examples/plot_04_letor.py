"""
Graded documents: which objective ranks best?
=============================================

Rows with features, a grade and a query, as in LETOR. The same linear ranker with five objectives,
on test queries, with bootstrap intervals.
"""

import matplotlib.pyplot as plt
import numpy as np

import tierrank as tr

rng = np.random.default_rng(3)
X = rng.normal(size=(4000, 8))
quality = X @ rng.normal(size=8) + 2 * rng.gumbel(size=4000)
grades = np.digitize(quality, np.quantile(quality, [0.6, 0.8, 0.95]))
qid = np.repeat(np.arange(200), 20)
train, test = qid < 100, qid >= 100

objectives = ["pl-partition", "pl-lb", "listmle", "listnet", "ranknet"]
found = []
for name in objectives:
    ranker = tr.LinearRanker(name, random_state=0).fit(X[train], grades[train], qid=qid[train])
    scores = ranker.predict(X[test])
    values = tr.metrics.ndcg(scores, grades[test], qid=qid[test], reduction="none")
    found.append(tr.metrics.bootstrap_interval(values, generator=0))

# %%
fig, ax = plt.subplots(figsize=(7, 3.5), layout="constrained")
mean = np.array([each.mean for each in found])
low, high = np.array([each.low for each in found]), np.array([each.high for each in found])
ax.errorbar(mean, objectives, xerr=[mean - low, high - mean], fmt="o")
ax.set_xlabel("NDCG@10 of 100 test queries")
plt.show()
