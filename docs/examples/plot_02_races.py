"""
Races: podiums, and drivers that do not finish
==============================================

A race is a list, best first. Those who did not finish are tied behind all others: nobody knows in
which order they would have come.
"""

import matplotlib.pyplot as plt
import numpy as np

import tierrank as tr

rng = np.random.default_rng(1)
drivers = [f"driver {number:02}" for number in range(1, 17)]
pace = np.linspace(2, -1, 16)
races = []
for _ in range(22):
    order = np.argsort(-(pace + rng.gumbel(size=16)))
    out = rng.random(16) < 0.15
    finished = [drivers[i] for i in order if not out[i]]
    retired = tuple(drivers[i] for i in order if out[i])
    races.append([*finished, retired] if retired else finished)

fitted = tr.RankAggregator(prior="gaussian:2").fit(races)
chance = fitted.top_k_proba(3)

# %%
# The probability of a place on the podium of the next race.
fig, ax = plt.subplots(figsize=(7, 4.5), layout="constrained")
order = np.argsort(-chance)
ax.bar([str(fitted.items_[i]) for i in order], chance[order])
ax.tick_params(axis="x", rotation=90)
ax.set(ylabel="probability of a podium", ylim=(0, 1))
plt.show()
