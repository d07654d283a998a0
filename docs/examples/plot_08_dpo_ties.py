"""
Preference optimisation with tied responses
===========================================

Six responses to each prompt, rated 1 to 3. DPO wants pairs; the tiers are a likelihood as they
are, and tied responses are not pushed apart.
"""

import matplotlib.pyplot as plt
import torch

import tierrank as tr
from tierrank.preference import dpo_loss

torch.manual_seed(0)
ratings = torch.tensor([3, 2, 2, 2, 1, 1]).repeat(50)
tiers = tr.Tiers.from_labels(ratings, lengths=[6] * 50)
reference = -40 + 5 * torch.randn(300)
policy = reference.clone().requires_grad_()  # log-probabilities, in place of a language model's
optimiser = torch.optim.Adam([policy], lr=0.2)
margins = {"3 over 2": [], "2 over 1": [], "inside the 2s": []}
for _ in range(150):
    loss = dpo_loss(policy, reference, tiers, beta=0.1)
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
    reward = 0.1 * (policy.detach() - reference).reshape(50, 6)
    margins["3 over 2"].append((reward[:, 0] - reward[:, 1:4].mean(1)).mean())
    margins["2 over 1"].append((reward[:, 1:4].mean(1) - reward[:, 4:].mean(1)).mean())
    margins["inside the 2s"].append((reward[:, 1:4].amax(1) - reward[:, 1:4].amin(1)).mean())

# %%
fig, ax = plt.subplots(figsize=(6, 3.5), layout="constrained")
for name, values in margins.items():
    ax.plot(values, label=name)
ax.set(xlabel="step", ylabel="difference of implicit rewards")
ax.legend()
plt.show()
