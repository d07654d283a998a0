"""
A torch loop of your own
========================

Any network that gives a score a row, any optimiser: the loss is a function of scores and tiers.
"""

import matplotlib.pyplot as plt
import torch

import tierrank as tr

generator = torch.Generator().manual_seed(0)
X = torch.randn(2000, 5, generator=generator)
quality = X[:, 0] - X[:, 1].abs() + 0.3 * torch.randn(2000, generator=generator)
grades = torch.bucketize(quality, torch.tensor([0.0, 1.0]))
tiers = tr.Tiers.from_labels(grades, lengths=[20] * 100)

torch.manual_seed(0)
network = torch.nn.Sequential(torch.nn.Linear(5, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))
optimiser = torch.optim.Adam(network.parameters(), lr=0.01)
losses, ndcg = [], []
for _ in range(100):
    scores = network(X).squeeze(1)
    loss = tr.losses.pl_partition(scores, tiers)
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
    losses.append(loss.item())
    ndcg.append(float(tr.metrics.ndcg(scores.detach(), grades, lengths=[20] * 100)))

# %%
fig, ax = plt.subplots(figsize=(6, 3.5), layout="constrained")
ax.plot(losses, label="minus log-probability a list")
ax.set(xlabel="step", ylabel="loss")
right = ax.twinx()
right.plot(ndcg, "C1", label="NDCG@10")
right.set_ylabel("NDCG@10")
fig.legend(loc="outside upper center", ncols=2)
plt.show()
