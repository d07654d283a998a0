"""
A row's labels, out of many
===========================

Sparse rows with a few labels each, out of a set that may have a million. The labels of a row
stand above all others.
"""

import matplotlib.pyplot as plt
import numpy as np

import tierrank as tr
from tierrank.data.synthetic import label_sets

train, test = label_sets(
    rows=(2000, 500), features=300, labels=200, features_a_row=15, labels_a_row=3, seed=0
)
ranker = tr.ExtremeRanker(hidden=64, learning_rate=0.01, max_epochs=15, random_state=0)
ranker.fit(train.X, train.Y)
top = ranker.predict(test.X, k=5)

# %%
# Precision at 1 to 5, beside that of always naming the most frequent labels.
frequent = np.argsort(-np.asarray(train.Y.sum(axis=0)).ravel())[:5]
always = np.tile(frequent, (len(top), 1))
ks = np.arange(1, 6)
fig, ax = plt.subplots(figsize=(6, 3.5), layout="constrained")
for name, labels in (("ExtremeRanker", top), ("most frequent labels", always)):
    ax.plot(
        ks, [tr.metrics.labels.precision(labels, test.Y, k=int(k)) for k in ks], "o-", label=name
    )
ax.set(xlabel="k", ylabel="precision at k", ylim=(0, None))
ax.legend()
plt.show()
