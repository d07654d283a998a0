"""
An election with short ballots
==============================

Voters rank as many candidates as they like. Those whom a ballot does not name are below those
whom it does (``rest="last"``), in an unknown order.
"""

import matplotlib.pyplot as plt
import numpy as np

import tierrank as tr

rng = np.random.default_rng(2)
names = ["Adams", "Blake", "Chen", "Diaz", "Evans", "Fox"]
liked = np.array([1.0, 0.8, 0.2, 0.0, -0.7, -1.3])
ballots = []
for _ in range(500):
    order = np.argsort(-(liked + rng.gumbel(size=6)))
    ballots.append([names[i] for i in order[: rng.integers(1, 5)]])

whole = tr.RankAggregator().fit(ballots, items=names, rest="last")
named = tr.RankAggregator().fit(ballots, items=names)  # takes the others for absent

# %%
# What a ballot leaves out says something: without it, the worths are wrong.
fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
place = np.arange(6)
for shift, fitted, label in ((-0.1, whole, "others are below"), (0.1, named, "others are absent")):
    at, low, high = fitted.intervals()
    ax.errorbar(place + shift, at, yerr=[at - low, high - at], fmt="o", label=label)
ax.plot(place, liked - liked.mean(), "kx", label="truth")
ax.set_xticks(place, names)
ax.set_ylabel("log-worth")
ax.legend()
plt.show()
