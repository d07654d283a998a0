"""
Do the intervals cover the truth?
=================================

Lists with ties are drawn from known worths, again and again. A 95 % interval should hold the
truth in 95 % of the draws, for every item.
"""

import matplotlib.pyplot as plt
import numpy as np

import tierrank as tr
from tierrank.data.synthetic import simulate

draws, held = 100, np.zeros(10)
for seed in range(draws):
    truth, lists = simulate(10, 150, tiers=4, seed=seed)
    fitted = tr.RankAggregator().fit(lists)
    truth = np.asarray(truth - truth.mean())[np.asarray(fitted.items_, dtype=int)]
    _, low, high = fitted.intervals(0.95)
    held += (low <= truth) & (truth <= high)

# %%
# The band is where 95 % of such shares lie, if the intervals are right.
fig, ax = plt.subplots(figsize=(6, 3.5), layout="constrained")
ax.axhspan(0.9, 0.99, color="0.9")
ax.plot(np.arange(1, 11), held / draws, "o")
ax.set(xlabel="item", ylabel="share of intervals that hold the truth", ylim=(0.8, 1))
plt.show()
