"""
Who is told apart from whom?
============================

Places are not facts. The data say which ranks an item may have, and how many groups of equal
worth they support.
"""

import matplotlib.pyplot as plt
import numpy as np

import tierrank as tr

rng = np.random.default_rng(6)
worth = np.repeat([1.0, 0.0, -1.0], 4)  # three groups of four
lists = [np.argsort(-(worth + rng.gumbel(size=12))).tolist() for _ in range(150)]
fitted = tr.RankAggregator().fit(lists)
ranks = fitted.rank_intervals()
cut = fitted.tiers()

# %%
fig, ax = plt.subplots(figsize=(6, 4.5), layout="constrained")
row = 0
for number, tier in enumerate(cut.tiers):
    for item in tier:
        low, high = ranks[item]
        ax.plot([low, high], [row, row], f"C{number}", linewidth=6, solid_capstyle="round")
        ax.text(12.6, row, f"item {fitted.items_[item]}", va="center")
        row += 1
ax.set(xlabel="ranks that it may have, 95 %", xlim=(0.5, 14.5), yticks=[])
ax.invert_yaxis()
plt.show()
