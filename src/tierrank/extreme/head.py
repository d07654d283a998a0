"""The last layer of a ranker over a huge label set, and its loss, a block of labels at a time.

The scores of a batch, [lists, labels], and their gradient are never held as a whole. A first pass
over the labels finds the losses, a second one the gradients; it computes the scores again, but
for those of the first blocks, which are kept up to a fixed size. What is needed besides the
weights and whatever `update` does with their gradient does not grow with the labels.

`label_loss` and `FusedHead` are for networks of your own; `fused_losses` is under both of them, and
under every step of `tierrank.ExtremeRanker`.

A list's rest, the labels that it does not name, enters an objective in one of two ways. In each it
can be looked at block by block, and is never there as a whole:

- *by its log-sum-exp alone* (the likelihoods): the rest is worth as much as one label with the
  score lse(rest), so the objective of `tierrank.losses` is asked about the labels that the list
  names and that one. Its slope there is shared by the rest as by a softmax.
- *as a sum over its labels*: each block adds its own, pairs with what is named (the pairwise
  losses) or labels by themselves (`bce`).

All look at the rest twice: first for the loss and the slopes of what is named, then for the
slopes of the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from tierrank import _native
from tierrank.losses.objective import Reduction, reduce
from tierrank.losses.record import find_fused
from tierrank.plackett_luce.kernels import compiled_for
from tierrank.ranks import Ranks
from tierrank.tiers import Tiers
from tierrank.tiers.arrays import offsets, range_numbers, ranges

BLOCK_BYTES = 8 << 20  # of a block's scores, or its weights, whichever is more
KEPT_BYTES = 64 << 20  # of scores that are not computed a second time
GATHERED = 1 << 21  # numbers of weight rows that are copied at once: 8 MB of float32

Loss = Callable[[Tensor, Tiers], Tensor]  # of scores and tiers, [lists] losses
Update = Callable[[slice, Tensor, Tensor], None]

# of each pairwise loss, and its parameter: log θ of Rao and Kupper, and the margin
_KERNELS = {"ranknet": ("rao_kupper_wins", 0.0), "ranksvm": ("hinges", 1.0)}
PAIRS_AT_ONCE = 1 << 22  # that plain torch holds

NEVER = -1e30  # the score of what is no rest: far below all others, but finite


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


# -- the rest, block by block ------------------------------------------------------------------


class NotFinite(ValueError):
    """Scores that are NaN or infinite."""


class InBlock(NamedTuple):
    """What lists name of the labels of a block.

    Attributes
    ----------
    lists, columns
        [entries in the block] where it is in the block's scores
    entries
        [entries in the block] its number in `Tiers.items`
    """

    lists: Tensor
    columns: Tensor
    entries: Tensor


class Block(NamedTuple):
    """Some labels' scores.

    Attributes
    ----------
    scores
        [lists, labels] contiguous; whoever works on the block may overwrite them
    named
        what lists name of them
    log_weights
        [labels] log of how often a label counts in the rest; None: all once
    """

    scores: Tensor
    named: InBlock
    log_weights: Tensor | None


class Rest(Protocol):
    """The rest of every list of a batch, under one objective."""

    def add(self, block: Block) -> None:
        """Take in a block; its scores end up as `gradient` wants them."""

    def losses(self, ranks: Ranks) -> tuple[Tensor, Tensor]:
        """[lists] losses, once all blocks are in, and [entries] their slopes in what is named.

        Ranks have each taken in blocks of their own labels; all get the same numbers.
        """

    def prepare(self, block: Block) -> None:
        """Bring fresh scores to where `add` would leave them."""

    def gradient(self, block: Block, by_list: Tensor) -> Tensor:
        """[lists, labels] slopes of the rest times [lists] numbers; 0 where a label is named."""


class FusedObjective(NamedTuple):
    """An objective over all labels, found once and asked in every step.

    Attributes
    ----------
    loss
        of lists as they are, with all that they name
    counts
        of the rest: its "log-sum-exp", its "pairs" with what is named, or its "items"
    name
        of one that counts pairs
    """

    loss: Loss
    counts: str = "log-sum-exp"
    name: str = ""

    @classmethod
    def of(cls, objective: str | Loss | FusedObjective) -> FusedObjective:
        """By a name among `FUSED`, or of a function in which the rest's log-sum-exp counts."""
        if isinstance(objective, FusedObjective):
            return objective
        if callable(objective):
            return cls(objective)
        entry = find_fused(objective)
        assert entry.fused is not None
        return cls(entry.module(reduction="none"), entry.fused, entry.name)

    def rest(self, scores: Tensor, tiers: Tiers) -> Rest:
        """The rest of a batch, whose lists name labels with these [entries] scores."""
        if self.counts == "items":
            return ItemsRest(scores, tiers)
        if self.counts == "pairs":
            return PairwiseRest(self.name, self.loss, scores, tiers)
        return CollapsedRest(self.loss, scores, tiers)


class CollapsedRest:
    """The rest as one label whose score is its log-sum-exp."""

    def __init__(self, loss: Loss, scores: Tensor, tiers: Tiers) -> None:
        self.loss, self.scores, self.tiers = loss, scores, tiers
        self.largest = scores.new_full((len(tiers),), -torch.inf)
        self.total = scores.new_zeros(len(tiers), dtype=torch.float64)

    def prepare(self, block: Block) -> None:
        """What counts n times is as one label with score w + log n; what is named is none."""
        if block.log_weights is not None:
            block.scores.add_(block.log_weights)
        block.scores[block.named.lists, block.named.columns] = -torch.inf

    def add(self, block: Block) -> None:
        """Go on with the log-sum-exp, as (largest, Σ e^(w − largest))."""
        self.prepare(block)
        base = self._rebase(torch.maximum(self.largest, block.scores.amax(1)))
        self.total += (block.scores - base[:, None]).exp_().sum(1)

    def _rebase(self, largest: Tensor) -> Tensor:
        """Sum relative to [lists] scores from now on; gives these, or 0 with no rest so far."""
        base = torch.where(largest == -torch.inf, 0.0, largest)
        self.total *= (self.largest - base).double().exp()
        self.largest = largest
        return base

    def losses(self, ranks: Ranks) -> tuple[Tensor, Tensor]:
        """Ask the objective about short lists: what is named, and the rest as one label.

        All scores are taken relative to the rest's largest, where float32 has the most digits.
        """
        if ranks.size > 1:
            self._rebase(ranks.max(self.largest.clone()))
            self.total = ranks.sum(self.total)
        lengths, per_list = self.tiers.lengths, self.tiers.list_offsets.diff()
        list_of = range_numbers(lengths)
        finite = self.total.isfinite()  # not if any score is NaN or inf
        finite[list_of[~self.scores.isfinite()]] = False
        _refuse_infinite(finite)
        has_rest = self.total > 0
        self.base = torch.where(has_rest, self.largest, 0.0)
        one_more = has_rest.long()
        start = offsets(lengths + one_more)[:-1]
        named_at, rest_at = ranges(start, lengths), (start + lengths)[has_rest]
        short = self.scores.new_empty(len(named_at) + len(rest_at))
        short[named_at] = self.scores - self.base[list_of]
        short[rest_at] = self.total[has_rest].log().to(short)
        before = offsets(one_more)[:-1]  # rests of the lists before
        tier_ends = self.tiers.tier_offsets[1:] + before[range_numbers(per_list)]
        lists = per_list + one_more
        filled = lists > 0  # else nothing is named and nothing left
        short_tiers = Tiers(
            items=torch.arange(len(short), device=short.device),
            tier_offsets=torch.cat([tier_ends.new_zeros(1), tier_ends, rest_at + 1]).sort().values,
            list_offsets=offsets(lists[filled]),
            score_shape=(len(short),),
        )
        short_losses, slopes = _differentiated(self.loss, short, short_tiers)
        losses = short_losses.new_zeros(len(lists))
        losses[filled] = short_losses
        self.scale = torch.zeros_like(self.base)
        self.scale[has_rest] = (slopes[rest_at] / self.total[has_rest]).to(slopes)
        return losses, slopes[named_at]

    def gradient(self, block: Block, by_list: Tensor) -> Tensor:
        """∂loss/∂lse(rest) · softmax over the rest."""
        worths = block.scores.sub_(self.base[:, None]).exp_()
        return worths.mul_((self.scale * by_list)[:, None])


class PairwiseRest:
    """The rest as so many pairs with each label that is named."""

    def __init__(self, kind: str, loss: Loss, scores: Tensor, tiers: Tiers) -> None:
        self.kind, self.loss, self.scores, self.tiers = kind, loss, scores, tiers
        self.borders = offsets(tiers.lengths)
        self.by_list = scores.new_zeros(len(tiers), dtype=torch.float64)
        self.named_slopes = scores.new_zeros(len(scores), dtype=torch.float64)

    def prepare(self, block: Block) -> None:
        """What is named is no rest."""
        block.scores[block.named.lists, block.named.columns] = NEVER

    def add(self, block: Block) -> None:
        """Add the pairs of a block."""
        self.prepare(block)
        self._pairs(block, None)

    def losses(self, ranks: Ranks) -> tuple[Tensor, Tensor]:
        """Add the pairs among what is named, where that has several tiers."""
        self.by_list = ranks.sum(self.by_list)
        self.named_slopes = ranks.sum(self.named_slopes)
        _refuse_infinite(self.by_list.isfinite())
        several = self.tiers.list_offsets.diff() > 1
        if several.any():
            upper = self.tiers[several]
            rows = Tiers(
                items=torch.arange(len(upper.items), device=upper.device),
                tier_offsets=upper.tier_offsets,
                list_offsets=upper.list_offsets,
                score_shape=(len(upper.items),),
            )
            entries = several[range_numbers(self.tiers.lengths)]
            losses, slopes = _differentiated(self.loss, self.scores[entries], rows)
            self.by_list[several] += losses
            self.named_slopes[entries] += slopes
        return self.by_list.to(self.scores), self.named_slopes.to(self.scores)

    def gradient(self, block: Block, by_list: Tensor) -> Tensor:
        """Σ of the pairs' slopes, label by label."""
        out = torch.empty_like(block.scores)
        self._pairs(block, out)
        return out.mul_(by_list[:, None])

    def _pairs(self, block: Block, out: Tensor | None) -> None:
        """Sums over a block's pairs: of losses and slopes, or of the slopes by label into `out`."""
        counts = None if block.log_weights is None else block.log_weights.exp()
        losses, slopes = pair_sums(self.kind, self.scores, self.borders, block.scores, counts, out)
        if out is None:
            self.by_list += losses
            self.named_slopes += slopes


class ItemsRest:
    """The rest as labels that are each judged by themselves, by log(1 + e^w) (`losses.bce`)."""

    def __init__(self, scores: Tensor, tiers: Tiers) -> None:
        self.scores, self.lists = scores, range_numbers(tiers.lengths)
        self.by_list = scores.new_zeros(len(tiers), dtype=torch.float64)

    def prepare(self, block: Block) -> None:
        """What is named is no rest."""
        block.scores[block.named.lists, block.named.columns] = NEVER

    def add(self, block: Block) -> None:
        """Add the labels of a block."""
        self.prepare(block)
        self.by_list += _counted(softplus(block.scores), block).sum(1, dtype=torch.float64)

    def losses(self, ranks: Ranks) -> tuple[Tensor, Tensor]:
        """Add what is named, by log(1 + e^−w)."""
        by_list = ranks.sum(self.by_list)
        by_list.index_add_(0, self.lists, softplus(-self.scores.double()))
        finite = by_list.isfinite()
        finite[self.lists[~self.scores.isfinite()]] = False  # log(1 + e^−inf) is 0
        _refuse_infinite(finite)
        return by_list.to(self.scores), -torch.sigmoid(-self.scores)

    def gradient(self, block: Block, by_list: Tensor) -> Tensor:
        """σ(w), as often as a label counts."""
        return _counted(block.scores.sigmoid_(), block).mul_(by_list[:, None])


def _counted(numbers: Tensor, block: Block) -> Tensor:
    """[lists, labels] numbers, in place, times how often each label counts."""
    return numbers if block.log_weights is None else numbers.mul_(block.log_weights.exp())


def _refuse_infinite(finite: Tensor) -> None:
    """Refuse lists, [lists], that have a score which is not."""
    if not bool(finite.all()):
        raise NotFinite(
            f"scores must be finite, but list {int(finite.long().argmin())} has one that is NaN or "
            "infinite: look at hidden, weight and bias"
        )


def _differentiated(loss: Loss, scores: Tensor, tiers: Tiers) -> tuple[Tensor, Tensor]:
    """[lists] losses, and [scores] their slopes."""
    with torch.enable_grad():
        scores = scores.detach().requires_grad_()
        losses = loss(scores, tiers)
        (slopes,) = torch.autograd.grad(losses.sum(), scores, allow_unused=True)
    return losses.detach(), torch.zeros_like(scores) if slopes is None else slopes


def pair_sums(
    kind: str,
    named: Tensor,
    borders: Tensor,
    scores: Tensor,
    counts: Tensor | None,
    out: Tensor | None,
) -> tuple[Tensor, Tensor]:
    """Sums over the pairs of each list's named labels with all labels of a block.

    Parameters
    ----------
    kind
        "ranknet" or "ranksvm"
    named, borders
        [entries] scores of what the lists name, and [lists + 1] the ranges of each
    scores
        [lists, labels] of the block
    counts
        [labels] how often each counts; None: once
    out
        [lists, labels] to be set to the slopes in `scores`, or None

    Returns
    -------
    [lists] losses and [entries] slopes in what is named, in float64
    """
    counts = scores.new_ones(scores.shape[1]) if counts is None else counts.to(scores)
    if compiled_for(scores.device):
        return _compiled_pair_sums(kind, named, borders, scores, counts, out)
    return _plain_pair_sums(kind, named, borders, scores, counts, out)


def _compiled_pair_sums(
    kind: str, named: Tensor, borders: Tensor, scores: Tensor, counts: Tensor, out: Tensor | None
) -> tuple[Tensor, Tensor]:
    name, parameter = _KERNELS[kind]
    loss = torch.empty(len(borders) - 1, dtype=torch.float64)
    slope = torch.empty(len(named), dtype=torch.float64)
    _native.block_pair_sums(
        name, named.numpy(), borders.numpy(), scores.numpy(), counts.numpy(), parameter,
        torch.get_num_threads(), loss.numpy(), slope.numpy(),
        (scores.new_empty(0, 0) if out is None else out).numpy(),
    )  # fmt: skip
    return loss, slope


def _plain_pair_sums(
    kind: str, named: Tensor, borders: Tensor, scores: Tensor, counts: Tensor, out: Tensor | None
) -> tuple[Tensor, Tensor]:
    lists = range_numbers(borders.diff())
    loss = scores.new_zeros(len(borders) - 1, dtype=torch.float64)
    slope = scores.new_zeros(len(named), dtype=torch.float64)
    if out is not None:
        out.zero_()
    step = max(1, PAIRS_AT_ONCE // max(scores.shape[1], 1))
    for start in range(0, len(named), step):
        some = slice(start, start + step)
        x = scores[lists[some]] - named[some, None]
        pair_loss = softplus(x) if kind == "ranknet" else (1 + x).clamp(min=0)
        pair_slope = x.sigmoid() if kind == "ranknet" else (1 + x > 0).to(x)
        pair_slope *= counts
        loss.index_add_(0, lists[some], (pair_loss.double() @ counts.double()))
        slope[some] = -pair_slope.sum(1, dtype=torch.float64)
        if out is not None:
            out.index_add_(0, lists[some], pair_slope)
    return loss, slope
