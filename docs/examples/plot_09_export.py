"""
Into the search engine: the same scores elsewhere
=================================================

Trees grown here, written in XGBoost's format with the standardising inside, and scored by XGBoost
itself.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import xgboost

import tierrank as tr

rng = np.random.default_rng(5)
X = rng.normal(size=(1000, 4)).astype(np.float32) * [1, 10, 0.1, 1]
grades = np.digitize(X[:, 0] + 0.1 * X[:, 1], [0, 1])
ranker = tr.BoostedRanker(trees=30, leaves=7, features="standardize", random_state=0, threads=1)
ranker.fit(X, grades, group=[20] * 50)
with tempfile.TemporaryDirectory() as folder:
    path = tr.export(ranker, Path(folder) / "ranker.ubj")
    there = xgboost.Booster(model_file=path)
theirs = there.predict(xgboost.DMatrix(X), output_margin=True)

# %%
fig, ax = plt.subplots(figsize=(4.5, 4.5), layout="constrained")
ax.plot(ranker.predict(X), theirs, ".")
ax.set(xlabel="predict, here", ylabel="XGBoost, on raw features")
plt.show()
