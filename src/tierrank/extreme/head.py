"""The last layer of a ranker over a huge label set, and its loss, a block of labels at a time.

The scores of a batch, [lists, labels], and their gradient are never held as a whole. A first pass
over the labels finds the losses, a second one the gradients; it computes the scores again, but
for those of the first blocks, which are kept up to a fixed size. What is needed besides the
weights and whatever `update` does with their gradient does not grow with the labels.

`label_loss` and `FusedHead` are for networks of your own; `fused_losses` is under both of them, and
under every step of `tierrank.ExtremeRanker`. How objectives take the labels that a list does not
name is in `tierrank.extreme.rest`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from tierrank.extreme.rest import Block, FusedObjective, InBlock, Loss
from tierrank.losses.objective import Reduction, reduce
from tierrank.losses.record import find_fused
from tierrank.ranks import Ranks
from tierrank.tiers import Tiers
from tierrank.tiers.arrays import range_numbers

BLOCK_BYTES = 8 << 20  # of a block's scores, or its weights, whichever is more
KEPT_BYTES = 64 << 20  # of scores that are not computed a second time
GATHERED = 1 << 21  # numbers of weight rows that are copied at once: 8 MB of float32

Update = Callable[[slice, Tensor, Tensor], None]


def label_loss(
    hidden: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    tiers: Tiers,
    *,
    objective: str | FusedObjective = "pl-partition",
    weights: Any = None,
    reduction: Reduction = "mean",
) -> Tensor:
    """Compute the loss of ``hidden @ weight.T + bias`` without these scores or their gradient.

    The same value and gradients as ``losses.from_name(objective)(scores, tiers)``, to rounding,
    at any number of labels: memory grows with the weights and their gradient alone.
    Differentiable once.

    Parameters
    ----------
    hidden : Tensor
        [lists, width] what the network makes of each list.
    weight : Tensor
        [labels, width] of the last layer.
    bias : Tensor or None
        [labels] of the last layer; None for none.
    tiers : Tiers
        What each list names, over all the other labels: `Tiers.from_positives`, or
        `Tiers.from_rankings` with ``rest="last"``.
    objective : str
        One of `tierrank.extreme.FUSED`.
    weights : array_like, optional
        [lists] how much each list counts.
    reduction : {"mean", "sum", "none"}
        "mean" over the lists (by weight), "sum", or "none" for a loss a list.

    Returns
    -------
    Tensor
        The loss.

    Raises
    ------
    ValueError
        Sizes or kinds of float do not go together, or a score is NaN or infinite. Only what a
        list does not name may have the score −inf: then it is not there.

    See Also
    --------
    FusedHead : The layer with its weights.
    tierrank.losses.pl_partition : From scores that are there.
    tierrank.ExtremeRanker : A ranker that learns by it.

    Examples
    --------
    >>> import torch, tierrank as tr
    >>> from scipy.sparse import csr_array
    >>> from tierrank.extreme import label_loss
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
        objective: str | FusedObjective,
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
    """The last layer over all labels with its loss: ``head(hidden, tiers)``.

    Memory grows with the weights and their gradient, never with lists × labels: see `label_loss`.

    Parameters
    ----------
    width : int
        Numbers that the network makes of each list.
    labels : int
        How many labels there are.
    objective : str
        One of `tierrank.extreme.FUSED`.
    reduction : {"mean", "sum", "none"}
        "mean" over the lists (by weight), "sum", or "none" for a loss a list.

    See Also
    --------
    label_loss : The function.
    tierrank.ExtremeRanker : A ranker that has one.

    Examples
    --------
    >>> import torch, tierrank as tr
    >>> from scipy.sparse import csr_array
    >>> from tierrank.extreme import FusedHead
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
        self._objective = FusedObjective.of(objective)
        self.reduction: Reduction = reduction

    def forward(self, hidden: Tensor, tiers: Tiers, weights: Any = None) -> Tensor:
        """Compute the loss of a batch.

        Parameters
        ----------
        hidden : Tensor
            [lists, width] what the network makes of each list.
        tiers : Tiers
            What each list names, over all the other labels.
        weights : array_like, optional
            [lists] how much each list counts.

        Returns
        -------
        Tensor
            The loss.

        See Also
        --------
        label_loss : The function.

        Examples
        --------
        >>> import torch, tierrank as tr
        >>> from tierrank.extreme import FusedHead
        >>> tiers = tr.Tiers.from_rankings([[2, 0]], items=4, rest="last")
        >>> FusedHead(3, 4)(torch.zeros(1, 3), tiers).shape
        torch.Size([])
        """
        return label_loss(
            hidden, self.weight, self.bias, tiers, objective=self._objective, weights=weights,
            reduction=self.reduction,
        )  # fmt: skip


class Losses(NamedTuple):
    """What a first pass found, and what a second one needs."""

    by_list: Tensor
    backward: Callable[[Tensor, Update], Tensor]


def fused_losses(
    hidden: Tensor,
    weight: Tensor,
    bias: Tensor,
    tiers: Tiers,
    objective: str | Loss | FusedObjective,
    *,
    log_weights: Tensor | None = None,
    ranks: Ranks | None = None,
    first: int = 0,
    batch: int | None = None,
    lower: int | None = None,
) -> Losses:
    """[lists] losses of the scores ``hidden @ weight.T + bias``, without these.

    Parameters
    ----------
    hidden
        [lists, width]
    weight, bias
        [labels, width] and [labels]
    tiers
        a catalogue of all labels, with a rest, as `Tiers.from_positives` gives it
    objective
        a name among `FUSED`, or a function of (scores, tiers) that gives [lists] losses and in
        which the rest counts by its log-sum-exp alone; adding a number to all scores of a list
        must not change it. A `FusedObjective` that was found before saves finding it.
    log_weights
        [labels] log of how often a label counts in the rest, −inf for never; None: each once
    ranks
        processes that hold a slice of the labels each, and the same `hidden` and `tiers`: `weight`,
        `bias` and `log_weights` are of this one's labels; None: of all
    first
        the number in `tiers` of the first of these labels
    batch
        lists that the size of a block follows from, where it must be the same with other lists;
        None: those of `hidden`
    lower
        how many columns of `hidden`, the first ones, the gradient is asked for; None: all

    Returns
    -------
    Losses
        `by_list`, and `backward(by_list, update)`: given [lists] derivatives by the losses it
        returns those by `hidden`, and calls ``update(labels, by_weight, by_bias)`` for one slice
        of labels after the other. From then on it does not look at these labels' weights, so
        `update` may change them. With several ranks, slices count from `first`.
    """
    ranks = ranks or Ranks()
    entries = Entries(tiers)
    lists = len(hidden) if batch is None else batch
    slices = list(_label_blocks(lists, len(weight), weight.shape[1], hidden.element_size()))

    def scores_of(labels: slice) -> Tensor:
        return torch.addmm(bias[labels], hidden, weight[labels].T)

    def block(labels: slice, scores: Tensor) -> Block:
        of_labels = None if log_weights is None else log_weights[labels]
        named = entries.within(first + labels.start, first + labels.stop)
        return Block(scores, named, of_labels)

    kept: dict[int, Tensor] = {}
    room = KEPT_BYTES
    own = entries.within(first, first + len(weight))
    named = hidden.new_zeros(len(entries.lists))
    if len(slices) == 1:
        kept[0] = scores_of(slices[0])
        named[own.entries] = kept[0][own.lists, own.columns]
    else:
        named[own.entries] = _named_scores(hidden, weight, bias, own)
    rest = FusedObjective.of(objective).rest(ranks.sum(named), tiers)  # each is of one rank
    for labels in slices:
        one = block(labels, kept[0] if len(slices) == 1 else scores_of(labels))
        rest.add(one)
        if one.scores.nbytes <= room:
            kept[labels.start] = one.scores
            room -= one.scores.nbytes
    by_list, named_slopes = rest.losses(ranks)

    def backward(by_loss: Tensor, update: Update) -> Tensor:
        by_hidden = torch.zeros_like(hidden[:, :lower])
        by_entry = named_slopes * by_loss[entries.lists]
        for labels in slices:
            fresh = labels.start not in kept
            one = block(labels, scores_of(labels) if fresh else kept.pop(labels.start))
            if fresh:
                rest.prepare(one)
            slopes = rest.gradient(one, by_loss)
            slopes[one.named.lists, one.named.columns] = by_entry[one.named.entries]
            by_hidden.addmm_(slopes, weight[labels, :lower])
            update(labels, slopes.T @ hidden, slopes.sum(0))
        return ranks.sum(by_hidden)

    return Losses(by_list, backward)


class Entries:
    """The entries of `Tiers.items` with the list of each, sorted by label."""

    def __init__(self, tiers: Tiers) -> None:
        self.lists = range_numbers(tiers.lengths)
        self._in_order, self._entries = tiers.items.sort(stable=True)
        self._lists_in_order = self.lists[self._entries]

    def within(self, start: int, stop: int) -> InBlock:
        """Those of the labels start … stop − 1."""
        ends = torch.tensor([start, stop], device=self.lists.device)
        first, last = torch.searchsorted(self._in_order, ends).tolist()
        return InBlock(
            self._lists_in_order[first:last],
            self._in_order[first:last] - start,
            self._entries[first:last],
        )


def _named_scores(hidden: Tensor, weight: Tensor, bias: Tensor, named: InBlock) -> Tensor:
    """[entries] h · w_label + b_label of what lists name of these labels."""
    scores = bias[named.columns]
    step = max(1, GATHERED // hidden.shape[1])
    for start in range(0, len(scores), step):
        lists, labels = (part[start : start + step] for part in (named.lists, named.columns))
        scores[start : start + step] += (hidden[lists] * weight[labels]).sum(1)
    return scores


def _label_blocks(lists: int, labels: int, width: int, element: int) -> Iterator[slice]:
    """Slices that cover all labels."""
    step = max(256, BLOCK_BYTES // (element * max(lists, width, 1)))
    for start in range(0, labels, step):
        yield slice(start, min(start + step, labels))
