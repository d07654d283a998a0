"""Training language models on responses in tiers: DPO and reward models, with ties.

Direct preference optimisation (Rafailov et al., 2023) takes r = β (log π − log π_ref) for a
response's reward, and maximises the probability that the chosen one of a pair is preferred. With
any number of responses a prompt in tiers S₁ > S₂ > … (best, acceptable, bad; correct over
incorrect), that is the exact Plackett-Luce likelihood of the tiers under the same rewards.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tierrank.losses.objective import Reduction
from tierrank.losses.record import Entry, find
from tierrank.plackett_luce.lists import can_look, check_finite, check_is_tiers
from tierrank.tiers import Tiers
from tierrank.tiers.arrays import range_numbers


def dpo_loss(
    policy_logps: Tensor,
    reference_logps: Tensor | None,
    tiers: Tiers,
    *,
    beta: float = 0.1,
    objective: str = "pl-partition",
    objective_params: dict[str, Any] | None = None,
    lengths: Any = None,
    margin: Any = 0.0,
    label_smoothing: float = 0.0,
    weights: Any = None,
    reduction: Reduction = "mean",
) -> Tensor:
    r"""Direct preference optimisation for responses in tiers.

    .. math:: -\log P(S_1 > \dots > S_M) \quad\text{at rewards}\quad
              r_i = \beta \, (\log\pi_i - \log\pi^\text{ref}_i)

    Two responses, one of them better: that is DPO, to the last digit.

    Parameters
    ----------
    policy_logps : Tensor
        Log-probabilities of the responses (sums over their tokens), in the shape of the labels
        that `tiers` was built from: ``[responses]`` or padded ``[prompts, width]``.
    reference_logps : Tensor or None
        Those of the reference, in the same shape. Without one (None) the policy's own are the
        rewards, as in SimPO.
    tiers : Tiers
        A list a prompt: ``Tiers.from_labels(ratings, lengths=responses_of_each_prompt)``.
    beta : float
        How strongly rewards tell responses apart.
    objective : str
        A name of `tierrank.losses.OBJECTIVES`. For pairs that may tie, "davidson" (DPO-D) or
        "rao-kupper" (DPO-RK) with how probable ties are: to Plackett-Luce a prompt whose responses
        are all tied says nothing, and it is refused.
    objective_params : dict, optional
        Its options, such as ``{"beta": log ν}`` of "davidson" and ``{"alpha": …}`` of "rao-kupper".
    lengths : array_like, optional
        Tokens of each response, to divide its log-probabilities by (Meng et al., 2024).
    margin : float or array_like
        By how much the reward of a tier should be above that of the next, γ in SimPO; or, in the
        shape of the scores, what is taken off each reward.
    label_smoothing : float
        How probable it is that an order was noted the wrong way round, ε (cDPO): (1 − ε) · loss + ε
        · loss of the tiers in reverse, under the same rewards less margins.
    weights : array_like, optional
        [prompts] how much each counts.
    reduction : {"mean", "sum", "none"}
        "mean" over the prompts (by weight), "sum", or "none" for a loss a prompt.

    Returns
    -------
    Tensor
        The loss; differentiable in `policy_logps`.

    Raises
    ------
    ValueError
        A log-probability is NaN or infinite, shapes differ, or a prompt has one tier only.

    See Also
    --------
    reward_loss : Of a reward model.
    objective_for : Which objective the data ask for.
    tierrank.integrations.transformers.TieredDPOTrainer : Trains by it.

    Examples
    --------
    >>> import torch, tierrank as tr
    >>> from tierrank.preference import dpo_loss
    >>> tiers = tr.Tiers.from_labels([2, 1, 1, 0, 1, 0], lengths=[4, 2])  # two prompts
    >>> policy = torch.tensor([-10.0, -12.0, -11.0, -15.0, -9.0, -9.5])
    >>> reference = torch.tensor([-11.0, -12.0, -11.5, -14.0, -9.0, -9.0])
    >>> dpo_loss(policy, reference, tiers, beta=0.1)
    tensor(1.4841)
    """
    check_is_tiers(tiers)
    rewards = implicit_rewards(
        policy_logps, reference_logps, beta=beta, lengths=lengths, tiers=tiers
    )
    return _loss(
        rewards, tiers, objective, objective_params, margin, label_smoothing, weights, reduction
    )


def implicit_rewards(
    policy_logps: Tensor,
    reference_logps: Tensor | None,
    *,
    beta: float,
    lengths: Any = None,
    tiers: Tiers | None = None,
) -> Tensor:
    """Compute the rewards of responses, β (log π − log π_ref), a token if `lengths` are given.

    Parameters
    ----------
    policy_logps : Tensor
        Log-probabilities of the responses, as in `dpo_loss`.
    reference_logps : Tensor or None
        Those of the reference; None for none.
    beta : float
        How strongly rewards tell responses apart, β.
    lengths : array_like, optional
        Tokens of each response, to divide by.
    tiers : Tiers, optional
        Of padded log-probabilities, they say which are of responses, and must be finite.

    Returns
    -------
    Tensor
        In the shape of the log-probabilities.

    Raises
    ------
    ValueError
        A log-probability is NaN or infinite, or shapes differ.

    See Also
    --------
    dpo_loss : The loss under these rewards.

    Examples
    --------
    >>> import torch
    >>> from tierrank.preference import implicit_rewards
    >>> implicit_rewards(torch.tensor([-10.0, -12.0]), torch.tensor([-11.0, -12.0]), beta=0.1)
    tensor([0.1000, 0.0000])
    """
    if not (isinstance(beta, int | float) and 0 < beta < float("inf")):
        raise ValueError(f"beta is a positive number, not {beta!r}")
    if not isinstance(policy_logps, Tensor):
        raise TypeError(f"policy_logps are a tensor, not {type(policy_logps).__name__}")
    rewards = policy_logps
    if reference_logps is not None:
        if reference_logps.shape != policy_logps.shape:
            raise ValueError(
                f"policy_logps have shape {list(policy_logps.shape)} and reference_logps "
                f"{list(reference_logps.shape)}: one of each for every response"
            )
        rewards = rewards - reference_logps.detach()
    if lengths is not None:
        tokens = torch.as_tensor(lengths, device=rewards.device)
        if tokens.shape != rewards.shape:
            raise ValueError(
                f"lengths have shape {list(tokens.shape)}, but there are log-probabilities of "
                f"shape {list(rewards.shape)}: give the number of tokens of each response"
            )
        if can_look() and not bool(((tokens >= 0) & (tokens < torch.inf)).all()):
            raise ValueError("lengths are numbers of tokens, finite and none of them negative")
        # what stands in padding is never looked at, so it may be 0
        rewards = rewards / tokens.clamp(min=1)
    rewards = beta * rewards
    try:
        _check_finite("rewards", rewards, tiers)
    except ValueError:  # whose fault is it?
        for name, values in ("policy_logps", policy_logps), ("reference_logps", reference_logps):
            if values is not None:
                _check_finite(name, values, tiers)
        raise
    return rewards


def reward_loss(
    rewards: Tensor,
    tiers: Tiers,
    *,
    objective: str = "pl-partition",
    objective_params: dict[str, Any] | None = None,
    margin: Any = 0.0,
    label_smoothing: float = 0.0,
    weights: Any = None,
    reduction: Reduction = "mean",
) -> Tensor:
    """Negative log-likelihood of responses in tiers, under the rewards of a reward model.

    Two responses a prompt: −log σ(r_chosen − r_rejected − margin), as Bradley-Terry reward models
    are trained.

    Parameters
    ----------
    rewards : Tensor
        One a response, ``[responses]`` or padded ``[prompts, width]``.
    tiers : Tiers
        A list a prompt.
    objective : str
        A name of `tierrank.losses.OBJECTIVES`, as in `dpo_loss`.
    objective_params : dict, optional
        Its options.
    margin : float or array_like
        By how much the reward of a tier should be above that of the next.
    label_smoothing : float
        How probable it is that an order was noted the wrong way round.
    weights : array_like, optional
        [prompts] how much each counts.
    reduction : {"mean", "sum", "none"}
        "mean" over the prompts (by weight), "sum", or "none" for a loss a prompt.

    Returns
    -------
    Tensor
        The loss; differentiable in `rewards`.

    Raises
    ------
    ValueError
        A reward is NaN or infinite, shapes differ, or a prompt has one tier only.

    See Also
    --------
    dpo_loss : Without a reward model.

    Examples
    --------
    >>> import torch, tierrank as tr
    >>> from tierrank.preference import reward_loss
    >>> tiers = tr.Tiers.from_labels([5, 3, 3, 1])  # stars of four responses to one prompt
    >>> reward_loss(torch.tensor([1.0, 0.5, 0.0, -1.0]), tiers)
    tensor(1.1462)
    """
    check_is_tiers(tiers)
    _check_finite("rewards", rewards, tiers)
    return _loss(
        rewards, tiers, objective, objective_params, margin, label_smoothing, weights, reduction
    )


def _loss(
    rewards: Tensor,
    tiers: Tiers,
    objective: str,
    objective_params: dict[str, Any] | None,
    margin: Any,
    label_smoothing: float,
    weights: Any,
    reduction: Reduction,
) -> Tensor:
    """`reward_loss` of rewards that are finite."""
    entry = find(objective)
    if entry.tie_parameter is None:
        _refuse_single_tiers(tiers, entry)
    if not 0 <= label_smoothing < 0.5:
        raise ValueError(f"label_smoothing is from 0 to below 0.5, not {label_smoothing!r}")
    options = {**(objective_params or {}), "weights": weights, "reduction": reduction}
    rewards = _with_margin(rewards, tiers, margin)
    loss: Tensor = entry.function(rewards, tiers, **options)
    if label_smoothing:
        turned = tiers.kept("worst first", lambda: _worst_first(tiers))
        other = entry.function(rewards, turned, **options)
        loss = (1 - label_smoothing) * loss + label_smoothing * other
    return loss


def objective_for(tiers: Tiers) -> str:
    """Choose an objective for all data: "davidson" for pairs of which some tie, or "pl-partition".

    Ask it once, of all prompts: the two give a pair without a tie another probability.

    Parameters
    ----------
    tiers : Tiers
        A list a prompt.

    Returns
    -------
    str
        A name of `tierrank.losses.OBJECTIVES`.

    See Also
    --------
    dpo_loss : Takes it.

    Examples
    --------
    >>> import tierrank as tr
    >>> from tierrank.preference import objective_for
    >>> objective_for(tr.Tiers.from_labels([1, 0, 1, 1], lengths=[2, 2]))
    'davidson'
    >>> objective_for(tr.Tiers.from_labels([1, 0, 1, 1]))
    'pl-partition'
    """
    pairs_only = bool((tiers.lengths == 2).all())
    return "davidson" if pairs_only and bool((tiers.n_tiers == 1).any()) else "pl-partition"


def _with_margin(rewards: Tensor, tiers: Tiers, margin: Any) -> Tensor:
    """Rewards, less the margin for every tier that stands below; or less one of their own."""
    if isinstance(margin, int | float):
        if not 0 <= margin < float("inf"):
            raise ValueError(f"margin is a number, 0 or more, not {margin!r}")
        if margin == 0:
            return rewards
        below = tiers.to_labels().clamp(min=0)  # tiers below each response
        return rewards - margin * below.to(rewards)
    off = torch.as_tensor(margin, device=rewards.device)
    if off.shape != rewards.shape:
        raise ValueError(
            f"margin has shape {list(off.shape)}, but the rewards {list(rewards.shape)}: give a "
            "number, or one for each response"
        )
    return rewards - off.to(rewards)


def _worst_first(tiers: Tiers) -> Tiers:
    """The same lists with their tiers in reverse."""
    labels = tiers.to_labels()
    turned = torch.where(labels < 0, labels, labels.max() - labels)
    if labels.dim() == 2:
        return Tiers.from_labels(turned, ignore_label=-1).to(tiers.device)
    list_of = torch.empty_like(tiers.items)
    list_of[tiers.items] = range_numbers(tiers.lengths)
    return Tiers.from_labels(turned, qid=list_of).to(tiers.device)


def _refuse_single_tiers(tiers: Tiers, entry: Entry) -> None:
    if not can_look():
        return
    if (tiers.n_tiers < 2).any():
        single = (tiers.n_tiers < 2).nonzero()[:, 0]
        first = int(single[0])
        name = first if tiers.keys is None else tiers.keys[first]
        raise ValueError(
            f"prompt {name} has one tier only ({int(tiers.lengths[first])} responses, all tied), "
            f"which says nothing to {entry.name}; {len(single)} of {len(tiers)} prompts are such. "
            'Leave them out; or, for pairs that may tie, take objective="davidson" or "rao-kupper"'
        )


def _check_finite(what: str, values: Tensor, tiers: Tiers | None) -> None:
    """Refuse NaN and infinite numbers by their place; holes of padded lists are not looked at."""
    if not isinstance(values, Tensor):
        raise TypeError(f"{what} are a tensor, not {type(values).__name__}")
    if not can_look() or values.detach().isfinite().all():
        return
    holes = None
    if values.dim() == 2:
        if tiers is None or tiers.score_shape != tuple(values.shape):
            return  # holes may be anything, and which are holes is not known
        holes = (tiers.to_labels() < 0).to(values.device)
    check_finite(values, what=what, holes=holes)
