"""Scores as callers give them, and beside tiers as kernels and objectives take them.

`Scores` are torch or numpy, and go back to what they came as. `ScoredLists` checks that they fit
the tiers, `FlatLists` lays them out in rows, list by list, `Rest` is what a list of a catalogue
leaves unwritten, and `upper_tier_weights` picks the weights of tiers that have a term.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tierrank.plackett_luce import transforms
from tierrank.tiers import Tiers
from tierrank.tiers.arrays import range_numbers

KEPT = 2.0**-10  # of the worth of all items: where less remains, a rest is summed by itself


class Scores:
    """The caller's scores as a torch tensor of float32 or float64, and the way back."""

    def __init__(self, scores: Any) -> None:
        self.is_torch = isinstance(scores, Tensor)
        values = scores if self.is_torch else _from_numpy(scores)
        if values.dtype in (torch.float16, torch.bfloat16):
            values = values.float()
        if values.dtype not in (torch.float32, torch.float64):
            raise TypeError(
                f"scores are float32, float64 or half precision, not {values.dtype}: use .float()"
            )
        self.values: Tensor = values

    def same_kind(self, result: Tensor) -> Any:
        """The result as torch or numpy, as the scores came."""
        return result if self.is_torch else result.detach().numpy()


def can_look() -> bool:
    """Whether tensors have values to look at: not while they are compiled or transformed."""
    return not (torch.compiler.is_compiling() or transforms.active())


def check_finite(
    values: Tensor,
    items: Tensor | None = None,
    *,
    what: str = "scores",
    holes: Tensor | None = None,
) -> None:
    """Refuse NaN and infinite numbers, by index, but for those in holes.

    `items` says which item the last axis holds.
    """
    bad = ~values.detach().isfinite()
    if holes is not None:
        bad = bad & ~holes
    if bad.any():
        index = bad.nonzero()[0].tolist()
        value = float(values.detach()[tuple(index)])
        if items is not None:
            index[-1] = int(items[index[-1]])
        raise ValueError(f"{what} must be finite, but {what}{index} is {value}")


class NonFiniteScore(ValueError):
    """A score is NaN or infinite: `position` among the rows, list by list."""

    def __init__(self, list_number: int, position: int, value: float) -> None:
        super().__init__(
            f"the scores must be finite, but in list {list_number} the one at row {position} "
            f"is {value}"
        )
        self.list_number, self.position, self.value = list_number, position, value

    def __reduce__(self) -> tuple[Any, ...]:  # another process may have raised it
        return type(self), (self.list_number, self.position, self.value)

    @classmethod
    def find(cls, scores: Tensor, row_offsets: Tensor) -> NonFiniteScore:
        position = int((~scores.isfinite()).nonzero()[0, 0])
        list_number = int(torch.searchsorted(row_offsets, position, right=True)) - 1
        return cls(list_number, position, float(scores.detach()[position]))


def why_nan(scores: Tensor, row_offsets: Tensor, tier_weights: Tensor | None) -> ValueError:
    """The complaint about a log-probability that is NaN."""
    if tier_weights is not None and not tier_weights.isfinite().all():
        # checked before, but not inside torch.compile
        return ValueError("tier weights must be finite and not negative, but one is not finite")
    return NonFiniteScore.find(scores, row_offsets)


def wide_dtype(device: torch.device) -> torch.dtype:
    """The float in which long sums are taken: float64 where the device has it."""
    return torch.float32 if device.type == "mps" else torch.float64


def list_weights(weights: Any, like: Tensor) -> Tensor:
    """[lists] checked weights of lists, of the kind of `like` [lists]; all 1 if there are none."""
    if weights is None:
        return torch.ones_like(like)
    values = Scores(weights).values.to(like)
    if values.shape != like.shape:
        raise ValueError(f"{len(like)} lists need as many weights, not {list(values.shape)}")
    if can_look() and not ((values >= 0) & values.isfinite()).all():
        raise ValueError("weights of lists must be finite and not negative")
    return values


def _from_numpy(scores: Any) -> Tensor:
    array = np.asarray(scores)
    if array.dtype.kind in "iu":
        array = array.astype(np.float64)
    if array.dtype.kind != "f":
        raise TypeError(f"scores are real numbers, not {array.dtype}")
    if array.dtype.itemsize > 8:
        array = array.astype(np.float64)
    # a copy where torch could not share the memory as it is (read-only, reversed, big-endian)
    return torch.from_numpy(np.require(array, array.dtype.newbyteorder("="), ["C", "W"]))


# -- beside tiers ------------------------------------------------------------------------------


class ScoredLists:
    """Scores that fit the tiers, by device and shape.

    Attributes
    ----------
    values, tiers
        as given
    own
        whether every list has scores of its own, and does not share them with the others
    """

    def __init__(self, values: Tensor, tiers: Tiers) -> None:
        check_is_tiers(tiers)
        if values.device != tiers.device:
            raise ValueError(
                f"the scores are on {values.device} and the tiers on {tiers.device}: "
                f'use tiers.to("{values.device}")'
            )
        self.values, self.tiers = values, tiers
        # scores shared by one list are that list's own
        self.own = _has_own_scores(values, tiers) or len(tiers) == 1

    @property
    def written(self) -> Tensor:
        """[entries] the flat index of the score of every written item, by list and tier."""
        if self.tiers.n_items is None or not self.own:
            return self.tiers.items
        return self.tiers.items + self.tiers.n_items * range_numbers(self.tiers.lengths)

    def not_finite(self, flat: int, where: str = "") -> ValueError:
        """The complaint about one score, named as the caller knows it."""
        index = [int(i) for i in np.unravel_index(flat, tuple(self.values.shape))]
        names = self.tiers.names
        item = "" if names is None else f" (item {names[index[-1]]!r})"
        value = float(self.values.detach()[tuple(index)])
        return ValueError(f"scores must be finite, but scores{index}{item}{where} is {value}")


def check_is_tiers(tiers: Any) -> None:
    """Refuse labels, or anything else, where tiers belong."""
    if not isinstance(tiers, Tiers):
        raise ValueError(
            f"tiers must be a Tiers, not {type(tiers).__name__}. From labels, write "
            "tr.Tiers.from_labels(labels, qid=…), or lengths=…; from padded 2-D labels, "
            "tr.Tiers.from_labels(labels, mask=…)."
        )


def _has_own_scores(values: Tensor, tiers: Tiers) -> bool:
    """Whether every list has scores of its own; an error if the shape fits neither way."""
    shape = tuple(values.shape)
    if tiers.score_shape is not None:
        if shape == tiers.score_shape:
            return True
        raise ValueError(
            f"the tiers were built from labels of shape {list(tiers.score_shape)}, so the "
            f"scores need that shape, not {list(shape)}"
        )
    if shape == (tiers.n_items,):
        return False
    if shape == (len(tiers), tiers.n_items):
        return True
    raise ValueError(
        f"{len(tiers)} lists over {tiers.n_items} items need scores of shape [{tiers.n_items}], "
        f"shared by all lists, or [{len(tiers)}, {tiers.n_items}], not {list(shape)}"
    )


class FlatLists(ScoredLists):
    """Rows of scores laid out list by list, and what stands below each list.

    Attributes
    ----------
    rows
        [rows] scores, so that each list is one range
    bottom
        [lists] lse of the catalogue's rest under shared scores, else −inf; in float64, because
        one number near ±1e4 must still tell scores apart
    layout
        row_offsets, order, tier_offsets and list_offsets of `Layout`
    gather
        row i is flat score gather[i]; None if row i is flat score i
    rest
        where the bottom comes from, if it is not −inf
    """

    def __init__(self, values: Tensor, tiers: Tiers) -> None:
        super().__init__(values, tiers)
        self.gather, *layout = tiers.layout(self.own)
        self.layout = tuple(layout)
        flat = values if values.dim() == 1 else values.reshape(-1)
        self.rows = flat if self.gather is None else flat.index_select(0, self.gather)
        self.rest: Rest | None = None
        if tiers.rest and not self.own and len(tiers):
            bad = ~values.isfinite()
            if bad.any():
                raise self.not_finite(int(bad.nonzero()[0, 0]))
            wide = values.to(wide_dtype(values.device))
            self.rest = Rest(wide, tiers.items, self.layout[0])

    @property
    def bottom(self) -> Tensor:
        if self.rest is not None:
            return self.rest.log_sum
        wide = wide_dtype(self.values.device)
        return self.values.new_full((len(self.tiers),), -torch.inf, dtype=wide)

    def problem(self, tier_weights: Tensor | None) -> tuple[Any, ...]:
        """What a kernel takes: rows, bottom or None, layout, weights of the upper tiers or None."""
        bottom = None if self.rest is None else self.rest.log_sum
        return self.rows, bottom, self.layout, tier_weights

    def check_finite(self) -> None:
        """The complaint that `log_prob` would make."""
        if not torch.compiler.is_compiling() and not self.rows.isfinite().all():
            raise self.located(NonFiniteScore.find(self.rows, self.layout[0]))

    def located(self, error: NonFiniteScore) -> ValueError:
        """A kernel's complaint about a score, in the caller's indices."""
        flat = error.position if self.gather is None else int(self.gather[error.position])
        return self.not_finite(flat, f", in list {error.list_number},")


class Rest:
    """The rests of all lists, under scores [items] (in float64, whatever they were).

    A list that names k of N items leaves N − k below them. Summing those for each list would cost
    lists × N; instead every e^w is summed once, and what a list names is taken off:

        Σ_{rest of l} e^w = Σ_all e^w − Σ_{named by l} e^w.

    The subtraction costs digits when the list names nearly all of the worth. Where less than
    `KEPT` of it remains, the rest of that list is summed by itself.

    `items` and `offsets` say what each list names. Everything is differentiable in `scores`.
    """

    def __init__(self, scores: Tensor, items: Tensor, offsets: Tensor) -> None:
        self.scores, self.items, self.offsets = scores, items, offsets
        self.lists = len(offsets) - 1
        self.list_of = torch.repeat_interleave(offsets.diff(), output_size=len(items))
        self.largest = scores.detach().max()
        self.worth = (scores - self.largest).exp()
        total = self.worth.sum()
        left = total - self._named(self.worth)
        self.empty = offsets.diff() == len(scores)
        self.thin = ((left.detach() < KEPT * total.detach()) & ~self.empty).nonzero()[:, 0]
        self.log_sum = self.largest + left.clamp(min=torch.finfo(left.dtype).tiny).log()
        self.log_sum = torch.where(self.empty, -torch.inf, self.log_sum)
        if len(self.thin):
            self.log_sum = self.log_sum.index_put(
                (self.thin,), self._thin_scores.logsumexp(1), accumulate=False
            )

    def _named(self, values: Tensor) -> Tensor:
        """[lists] Σ over what each list names of values [items]."""
        return values.new_zeros(self.lists).index_add(0, self.list_of, values[self.items])

    @cached_property
    def _thin_scores(self) -> Tensor:
        """[thin lists, items] the scores, −inf where the list names the item."""
        place = torch.full_like(self.offsets[1:], -1)
        place[self.thin] = torch.arange(len(self.thin), device=place.device)
        row = place[self.list_of]
        named = torch.zeros(
            (len(self.thin), len(self.scores)), dtype=torch.bool, device=self.scores.device
        )
        named[row[row >= 0], self.items[row >= 0]] = True
        return self.scores.masked_fill(named, -torch.inf)

    @cached_property
    def _thin_softmax(self) -> Tensor:
        return self._thin_scores.softmax(1)

    def _scale(self, by_list: Tensor, power: int) -> Tensor:
        """[lists] by_list / (Σ_rest e^(w − largest))^power, 0 for empty and thin lists."""
        scaled = by_list * (-power * (self.log_sum - self.largest)).exp()
        scaled = torch.where(self.empty, 0.0, scaled)
        scaled[self.thin] = 0.0
        return scaled

    def mean(self, values: Tensor) -> Tensor:
        """[lists] the mean of values [items] over each list's rest, weighted by worth."""
        weighted = self.worth * values
        mean = (weighted.sum() - self._named(weighted)) * self._scale(
            torch.ones_like(self.log_sum), 1
        )
        if len(self.thin):
            mean[self.thin] = self._thin_softmax @ values
        return mean

    def spread(self, by_list: Tensor, power: int = 1) -> Tensor:
        """[items] Σ_l by_list_l · softmax_l^power, the softmax over the rest of l."""
        scaled = self._scale(by_list, power)
        named = torch.zeros_like(self.worth).index_add(0, self.items, scaled[self.list_of])
        spread = self.worth**power * (scaled.sum() - named)
        if len(self.thin):
            spread = spread + by_list[self.thin] @ self._thin_softmax**power
        return spread


def upper_tier_weights(tier_weights: Any, tiers: Tiers, per_list: bool) -> Tensor:
    """[upper tiers] checked weights of the tiers that have a term in `tiers.layout(per_list)`.

    They are picked from weights of all written tiers: which of these are upper ones depends on
    the layout, and a caller need not know it. Empty, which stands for all 1, if there are none.
    """
    wide = wide_dtype(tiers.device)
    if tier_weights is None:
        return torch.empty(0, dtype=wide, device=tiers.device)
    if not isinstance(tier_weights, Tensor):
        tier_weights = torch.from_numpy(np.array(tier_weights, dtype=np.float64))
    _check_weights(tier_weights, len(tiers.tier_offsets) - 1)
    layout = tiers.layout(per_list)
    n_upper = len(layout.tier_offsets) - 1
    # An upper tier stands as many places further on as lists before it left out their last tier.
    # (Not repeat_interleave: it wakes torch's threads, and they would keep ours waiting.)
    left_out = tiers.list_offsets.diff() - layout.list_offsets.diff()
    steps = left_out.new_zeros(n_upper + 1).index_add(0, layout.list_offsets[1:], left_out)
    place = torch.arange(n_upper, device=tiers.device) + steps.cumsum(0)[:-1]
    upper: Tensor = tier_weights.detach().to(tiers.device, wide).index_select(0, place)
    return upper


def _check_weights(weights: Tensor, written: int) -> None:
    if weights.shape != (written,):
        raise ValueError(
            f"tier_weights needs one weight for each of the {written} written tiers, "
            f"[{written}], not {list(weights.shape)}"
        )
    if torch.is_grad_enabled() and weights.requires_grad:
        raise ValueError("tier weights are constants and get no gradient: use .detach()")
    transforms.refuse("tier weights", weights)
    if torch.compiler.is_compiling():
        return
    bad = ~((weights >= 0) & weights.isfinite())
    if bad.any():
        first = int(bad.nonzero()[0, 0])
        raise ValueError(
            f"tier weights must be finite and not negative, but tier_weights[{first}] is "
            f"{float(weights[first])}"
        )
