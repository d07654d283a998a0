"""The fused head for networks of your own: a function, and the same as a module."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from tierrank.extreme.head.fused import fused_losses
from tierrank.losses.objective import Reduction, reduce
from tierrank.losses.record import find_fused
from tierrank.tiers import Tiers


def label_loss(
    hidden: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    tiers: Tiers,
    *,
    objective: str = "pl-partition",
    weights: Any = None,
    reduction: Reduction = "mean",
) -> Tensor:
    """The loss of ``hidden @ weight.T + bias`` without holding these scores or their gradient.

    The same value and gradients as ``losses.from_name(objective)(scores, tiers)``, to rounding,
    at any number of labels: memory grows with the weights and their gradient alone.
    Differentiable once.

    Parameters
    ----------
    hidden
        [lists, width] what the network makes of each list
    weight, bias
        [labels, width] and [labels] of the last layer; the bias may be None
    tiers
        what each list names, over all the other labels: `Tiers.from_positives`, or
        `Tiers.from_rankings` with ``rest="last"``
    objective
        one of `tierrank.extreme.FUSED`
    weights, reduction
        as in `losses.pl_partition`

    Raises
    ------
    ValueError
        sizes or kinds of float do not go together, or a score is NaN or infinite. Only what a
        list does not name may have the score −inf: then it is not there.

    Examples
    --------
    >>> import torch, tierrank as tr
    >>> from scipy.sparse import csr_array
    >>> tiers = tr.Tiers.from_positives(csr_array([[1, 0, 1, 0], [0, 0, 0, 1]]))
    >>> hidden, weight = torch.ones(2, 3), torch.zeros(4, 3)
    >>> label_loss(hidden, weight, None, tiers, reduction="none")  # log 6 and log 4
    tensor([1.7918, 1.3863])
    """
    if bias is None:
        bias = weight.new_zeros(weight.shape[:1])
    _check(hidden, weight, bias, tiers)
    losses: Tensor = _LabelLosses.apply(hidden, weight, bias, tiers, objective)  # type: ignore[no-untyped-call]
    return reduce(losses, weights, reduction)


def _check(hidden: Tensor, weight: Tensor, bias: Tensor, tiers: Tiers) -> None:
    """Refuse what does not go together."""
    shapes = [list(part.shape) for part in (hidden, weight, bias)]
    if [len(shape) for shape in shapes] != [2, 2, 1] or shapes[0][1] != shapes[1][1]:
        raise ValueError(
            f"hidden, weight and bias are [lists, width], [labels, width] and [labels], not "
            f"{shapes[0]}, {shapes[1]} and {shapes[2]}"
        )
    lists, labels = len(hidden), len(weight)
    if len(bias) != labels:
        raise ValueError(f"{labels} labels need as many biases, not {len(bias)}")
    if not (tiers.rest and tiers.n_items == labels and len(tiers) == lists):
        raise ValueError(
            f"{lists} lists over {labels} labels need that many lists of Tiers over that many "
            "items, with a rest, as Tiers.from_positives gives them"
        )
    kinds = {hidden.dtype, weight.dtype, bias.dtype}
    if len(kinds) > 1 or not kinds <= {torch.float32, torch.float64}:
        raise ValueError(
            f"hidden, weight and bias are all float32 or all float64, not {hidden.dtype}, "
            f"{weight.dtype} and {bias.dtype}: use .float()"
        )


class _LabelLosses(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        weight: Tensor,
        bias: Tensor,
        tiers: Tiers,
        objective: str,
    ) -> Tensor:
        inputs = hidden.detach(), weight.detach(), bias.detach()
        with torch.autocast(hidden.device.type, enabled=False):  # sums over labels need float32
            losses = fused_losses(*inputs, tiers, objective)
        ctx.save_for_backward(hidden, weight, bias)  # so that a change in between is noticed
        ctx.backward_pass = losses.backward
        return losses.by_list

    @staticmethod
    def backward(ctx: Any, by_list: Tensor) -> tuple[Tensor | None, ...]:
        if torch.is_grad_enabled():  # torch's once_differentiable would let a constant pass
            raise NotImplementedError(
                "label_loss can be differentiated once: leave out create_graph=True"
            )
        _, weight, bias = ctx.saved_tensors
        by_weight, by_bias = torch.empty_like(weight), torch.empty_like(bias)

        def update(labels: slice, weight_part: Tensor, bias_part: Tensor) -> None:
            by_weight[labels], by_bias[labels] = weight_part, bias_part

        with torch.autocast(weight.device.type, enabled=False):
            by_hidden = ctx.backward_pass(by_list, update)
        return by_hidden, by_weight, by_bias, None, None


class FusedHead(nn.Module):
    """The last layer over all labels with its loss: ``head(hidden, tiers)``; see `label_loss`.

    Examples
    --------
    >>> import torch, tierrank as tr
    >>> from scipy.sparse import csr_array
    >>> tiers = tr.Tiers.from_positives(csr_array([[1, 0, 1, 0], [0, 0, 0, 1]]))
    >>> head = FusedHead(3, 4)
    >>> loss = head(torch.ones(2, 3), tiers)
    >>> loss.backward()
    >>> head.weight.grad.shape
    torch.Size([4, 3])
    """

    def __init__(
        self,
        width: int,
        labels: int,
        *,
        objective: str = "pl-partition",
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__()
        layer = nn.Linear(width, labels)
        self.weight, self.bias = layer.weight, layer.bias
        self.objective = find_fused(objective).name
        self.reduction: Reduction = reduction

    def forward(self, hidden: Tensor, tiers: Tiers, weights: Any = None) -> Tensor:
        """The loss of a batch."""
        return label_loss(
            hidden, self.weight, self.bias, tiers, objective=self.objective, weights=weights,
            reduction=self.reduction,
        )  # fmt: skip
