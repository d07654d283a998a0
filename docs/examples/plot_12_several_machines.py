"""
Several machines, the same result
=================================

Votes that lie in pieces on the workers of a Dask cluster are counted where they lie. The worths
are those of one machine.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from dask import dataframe as dd
from distributed import Client, LocalCluster

import tierrank as tr

rng = np.random.default_rng(7)
strength = np.linspace(1, -1, 12)
first, second = rng.integers(12, size=(2, 3000))
apart = first != second
first, second = first[apart], second[apart]
won = strength[first] - strength[second] + rng.logistic(size=len(first)) > 0
games = pd.DataFrame(
    {"model_a": first, "model_b": second, "winner": np.where(won, "model_a", "model_b")}
)
here = tr.PairedTies("bradley-terry").fit(games)
with (
    LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None
    ) as cluster,
    Client(cluster),
):
    there = tr.PairedTies("bradley-terry").fit(dd.from_pandas(games, npartitions=4))

# %%
fig, ax = plt.subplots(figsize=(4.5, 4.5), layout="constrained")
ax.plot(here.log_worths_, there.log_worths_, "o")
ax.set(xlabel="log-worth, one machine", ylabel="log-worth, two workers")
plt.show()
