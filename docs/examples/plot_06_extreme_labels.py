"""
A row's labels, out of many
===========================

Sparse rows with a few labels each, out of a set that may have a million. The labels of a row
stand above all others.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.sparse import csr_array

import tierrank as tr

rng = np.random.default_rng(0)
X = (rng.random((2500, 300)) < 0.05).astype(np.float32)
wanted = X @ rng.normal(size=(300, 500)) - np.log1p(np.arange(500)) / 2  # some are rarer
Y = np.zeros((2500, 500), dtype=np.float32)
np.put_along_axis(Y, np.argpartition(-wanted, 3, axis=1)[:, :3], 1, axis=1)  # three a row
train, test = slice(2000), slice(2000, None)
ranker = tr.ExtremeRanker(hidden=64, learning_rate=0.01, max_epochs=15, random_state=0)
ranker.fit(csr_array(X[train]), csr_array(Y[train]))
top = ranker.predict(csr_array(X[test]), k=5)

# %%
# Precision at 1 to 5, beside that of always naming the most frequent labels.
frequent = np.argsort(-Y[train].sum(axis=0))[:5]
always = np.tile(frequent, (len(top), 1))
ks = np.arange(1, 6)
fig, ax = plt.subplots(figsize=(6, 3.5), layout="constrained")
for name, labels in (("ExtremeRanker", top), ("most frequent labels", always)):
    ax.plot(
        ks,
        [tr.metrics.labels.precision(labels, csr_array(Y[test]), k=int(k)) for k in ks],
        "o-",
        label=name,
    )
ax.set(xlabel="k", ylabel="precision at k", ylim=(0, None))
ax.legend()
plt.show()
