"""
A leaderboard of models from games with ties
============================================

In an arena, two models answer, and somebody says which is better, or that neither is. A tie is an
outcome of its own: Davidson's model.
"""

import matplotlib.pyplot as plt
import numpy as np

import tierrank as tr

rng = np.random.default_rng(0)
names = [f"model {letter}" for letter in "ABCDEFGH"]
strength = np.linspace(1.2, -1.2, 8)
games = []
for first, second in rng.permuted(np.tile(np.arange(8), (600, 1)), axis=1)[:, :2]:
    difference = strength[first] - strength[second] + rng.logistic()
    outcome = "tie" if abs(difference) < 0.5 else "first" if difference > 0 else "second"
    games.append((names[first], names[second], outcome))

fitted = tr.PairedTies("davidson").fit(games)
print(fitted.summary())

# %%
# Ratings as in chess, with 95 % intervals.
fitted.plot(scale="elo")
plt.show()
