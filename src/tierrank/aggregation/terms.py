"""What a fit minimises, as a sum of terms: functions of all scores with two derivatives.

Every term is Σ_lists count · loss, or a prior. It gives value and gradient at scores [items], and
`hessian` its second derivatives there: products with vectors, the diagonal, or all of the matrix.
Terms of parts of the lists add up (`Sum`) to that of all lists, wherever the parts are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from math import isqrt
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
import torch
from scipy import sparse

from tierrank import _native
from tierrank._types import FloatArray, IntArray
from tierrank.aggregation.lists import CountedLists, largest_ties
from tierrank.errors import ArgumentError, check_count, check_size
from tierrank.losses import find, from_name
from tierrank.losses.likelihood import Ties, without_ties
from tierrank.losses.objective import Objective
from tierrank.names import prior_name
from tierrank.plackett_luce import Curvature, log_prob, operators
from tierrank.plackett_luce.lists import FlatLists
from tierrank.tiers import Tiers
from tierrank.tiers.selection import with_rest_written
from tierrank.training.optim import Hessian, TwiceDifferentiable

GRADIENT_CHUNK = 1 << 24  # numbers of a [lists, items] block of gradients
SMALL_CHUNK = 1 << 20  # the same, of items that its lists name
MATRIX_CHUNK = 1 << 24  # numbers, of tiers' matrices and items, that are kept at a time
LARGEST_TIE = 32  # items of a tier whose matrix is kept: 256 bytes an entry, at most
# scores further apart than these would leave float64's range as squared worths, or as products
STRICT_WIDEST, TIED_WIDEST = 300.0, 100.0
DIFFERENCE = 1e-5  # step of a finite difference, relative to the vector's largest number

# numbers of lists × items up to which a rest is written out: the kernels for small ties then do
MOST_WRITTEN = 5_000_000
MOST_KEPT = 100_000_000  # numbers of all matrices that small ties keep: 800 MB
MOST_BROKEN = 10_000  # ways in which the ties of a list seen more often are broken


T = TypeVar("T")


class Last(Generic[T]):
    """What was found at a point: a Hessian is asked for where the gradient was.

    Of threads that ask at once, each gets what it asked for.
    """

    def __init__(self) -> None:
        self._found: tuple[FloatArray, T] | None = None

    def at(self, point: FloatArray, find: Callable[[FloatArray], T]) -> T:
        """What `find` gives there, if it is not known."""
        found = self._found
        if found is None or not np.array_equal(found[0], point):
            self._found = found = None  # or those of two points would be there
            self._found = found = point.copy(), find(point)
        return found[1]


class ListTerm(TwiceDifferentiable, Protocol):
    """A part that is a sum over lists; `twice`: Newton's method may trust its Hessian."""

    twice: bool

    def outer_products(self, scores: FloatArray) -> FloatArray:
        """[items, items] Σ_l count_l g_l g_lᵀ, g_l the gradient of one list's loss."""


class Sum:
    """Terms added up."""

    def __init__(self, terms: Sequence[TwiceDifferentiable]) -> None:
        self.terms = terms

    def value_and_gradient(self, scores: FloatArray) -> tuple[float, FloatArray]:
        values, gradients = zip(*(term.value_and_gradient(scores) for term in self.terms),
                                strict=True)  # fmt: skip
        return float(sum(values)), np.asarray(sum(gradients))

    def hessian(self, scores: FloatArray) -> Hessian:
        return SumHessian([term.hessian(scores) for term in self.terms])


class SumHessian:
    """Second derivatives of a `Sum`."""

    def __init__(self, hessians: Sequence[Hessian]) -> None:
        self._hessians = hessians

    def product(self, vector: FloatArray) -> FloatArray:
        return np.asarray(sum(hessian.product(vector) for hessian in self._hessians))

    def diagonal(self) -> FloatArray | None:
        found = [hessian.diagonal() for hessian in self._hessians]
        parts = [part for part in found if part is not None]
        return np.asarray(sum(parts)) if len(parts) == len(found) else None

    def matrix(self) -> FloatArray:
        total = self._hessians[0].matrix()
        for hessian in self._hessians[1:]:
            total += hessian.matrix()
        return total


class MatrixHessian:
    """Second derivatives that are written out."""

    def __init__(self, matrix: FloatArray) -> None:
        self._matrix = matrix

    def product(self, vector: FloatArray) -> FloatArray:
        return self._matrix @ vector

    def diagonal(self) -> FloatArray:
        return np.diag(self._matrix)

    def matrix(self) -> FloatArray:
        return self._matrix.copy()


class DiagonalHessian:
    """A diagonal matrix of second derivatives."""

    def __init__(self, diagonal: FloatArray) -> None:
        self._diagonal = diagonal

    def product(self, vector: FloatArray) -> FloatArray:
        return self._diagonal * vector

    def diagonal(self) -> FloatArray:
        return self._diagonal

    def matrix(self) -> FloatArray:
        return np.diag(self._diagonal)


def by_columns(product: Callable[[FloatArray], FloatArray], size: int) -> FloatArray:
    """[size, size] a symmetric matrix from its products with the unit vectors."""
    out = np.empty((size, size))
    unit = np.zeros(size)
    for number in range(size):
        unit[number] = 1.0
        out[number] = product(unit)
        unit[number] = 0.0
    return np.asarray((out + out.T) / 2)


def outer_products(
    losses: Callable[[Any, Tiers], Any],
    tiers: Tiers,
    counts: FloatArray,
    scores: FloatArray,
    features: FloatArray | None = None,
) -> FloatArray:
    """[parameters, parameters] Σ_l count_l g_l g_lᵀ, g_l the gradient of one list's loss.

    The parameters are the scores; or, where these are features · coef, the coefficients. Every list
    gets scores of its own, so that its gradient is apart; and where lists leave no rest and
    features make few numbers of many, only those of items that some list of its block names.

    Parameters
    ----------
    losses
        from scores [lists, items] and tiers to one loss a list
    tiers, counts
        the lists, and how often each was seen
    scores, features
        [items], and [items, features] or None
    """
    total = np.zeros((len(scores) if features is None else features.shape[1],) * 2)
    few = features is not None and not tiers.rest
    block = max(1, GRADIENT_CHUNK // len(scores))
    if few:  # work grows with the items of a block, so blocks are small
        longest = int(tiers.lengths.max()) if len(tiers) else 1
        block = max(1, isqrt(SMALL_CHUNK // longest))
    for start in range(0, len(tiers), block):
        part, near, rows = tiers[start : start + block], scores, features
        if few and features is not None:
            part, touched = of_named_items(part)
            near, rows = scores[touched], features[touched]
        leaf = torch.from_numpy(np.tile(near, (len(part), 1))).requires_grad_()
        (slope,) = torch.autograd.grad(losses(leaf, part).sum(), leaf)
        gradient = slope.numpy() if rows is None else slope.numpy() @ rows
        weighted = gradient * np.sqrt(counts[start : start + block])[:, None]
        total += weighted.T @ weighted
    return total


def of_named_items(tiers: Tiers) -> tuple[Tiers, IntArray]:
    """Lists without a rest over a catalogue of the items that they name, and these items."""
    touched, where = np.unique(tiers.items.numpy(), return_inverse=True)
    items = torch.from_numpy(where.reshape(-1))
    return replace(tiers, items=items, n_items=len(touched), names=None), touched


def summed_squares(
    slopes: FloatArray, items: IntArray, borders: IntArray, counts: FloatArray, size: int
) -> FloatArray:
    """Σ_l count_l g_l g_lᵀ from the slopes of all entries, those of a list between two borders."""
    weighted = slopes * np.sqrt(np.repeat(counts, np.diff(borders)))
    rows = sparse.csr_array((weighted, items, borders), (len(counts), size))
    return np.asarray((rows.T @ rows).toarray())


class Exact:
    """Plackett-Luce likelihood of any tiers, with or without a rest."""

    twice = True

    def __init__(self, tiers: Tiers, counts: FloatArray) -> None:
        self.tiers, self.counts = tiers, counts
        self._counts = torch.from_numpy(counts)

    def value_and_gradient(self, scores: FloatArray) -> tuple[float, FloatArray]:
        leaf = torch.from_numpy(scores).requires_grad_()
        value = -(self._counts * log_prob(leaf, self.tiers)).sum()
        (gradient,) = torch.autograd.grad(value, leaf)
        return float(value.detach()), gradient.numpy()

    def hessian(self, scores: FloatArray) -> Hessian:
        return ExactHessian(self, scores)

    def outer_products(self, scores: FloatArray) -> FloatArray:
        def losses(values: Any, tiers: Tiers) -> Any:
            return -log_prob(values, tiers)

        return outer_products(losses, self.tiers, self.counts, scores)


class ExactHessian:
    """Second derivatives of `Exact`."""

    def __init__(self, term: Exact, scores: FloatArray) -> None:
        self._term, self._scores = term, scores
        self._curvature = Curvature(scores, term.tiers, term.counts)

    def product(self, vector: FloatArray) -> FloatArray:
        return -np.asarray(self._curvature @ vector)

    def diagonal(self) -> FloatArray:
        return -np.asarray(self._curvature.diagonal())

    def matrix(self) -> FloatArray:
        if np.ptp(self._scores) <= TIED_WIDEST:
            return matrix_by_parts(self._term.tiers, self._term.counts, self._scores)
        longest = int(self._term.tiers.lengths.max()) if len(self._term.tiers) else 0
        if self._term.tiers.rest or longest >= len(self._scores):
            return by_columns(self.product, len(self._scores))
        return self._by_lists(longest)

    def _by_lists(self, longest: int) -> FloatArray:
        """One product a place in a list, for all lists at once: row p of each list's H."""
        term, size = self._term, len(self._scores)
        lists = FlatLists(torch.from_numpy(self._scores), term.tiers)
        no_weights = lists.bottom.new_empty(0)
        assert lists.gather is not None
        starts, items = lists.layout[0].numpy(), lists.gather.numpy()
        lengths = np.diff(starts)
        owner = np.repeat(np.arange(len(lengths)), lengths)
        count = np.repeat(term.counts, lengths)
        out = np.zeros(size * size)
        nothing = torch.zeros_like(lists.bottom)
        for place in range(longest):
            there = lengths > place
            vector = torch.zeros_like(lists.rows)
            vector[torch.from_numpy(starts[:-1][there] + place)] = 1.0
            row, _ = operators.hessian_product(
                lists.rows, lists.bottom, *lists.layout, no_weights, vector, nothing
            )
            at = np.flatnonzero(there[owner])
            column = items[starts[owner[at]] + place]
            np.add.at(out, items[at] * size + column, -row.numpy()[at] * count[at])
        square = out.reshape(size, size)
        return np.asarray((square + square.T) / 2)


class Strict:
    """Plackett-Luce likelihood of strict lists, by `native/strict_lists.cpp`."""

    twice = True

    def __init__(self, tiers: Tiers, counts: FloatArray) -> None:
        self._tiers = tiers
        self.counts = counts
        self.items = tiers.items.numpy()
        self.offsets = tiers.tier_offsets[tiers.list_offsets].numpy()
        self.lists = _native.StrictLists(self.items, self.offsets, counts, tiers.n_items or 0)
        chosen = np.repeat(counts, np.diff(self.offsets))
        chosen[self.offsets[1:] - 1] = 0.0
        # [items] how often an item was chosen over others
        summed = np.bincount(self.items, chosen, tiers.n_items or 0)
        self._chosen: FloatArray = summed.astype(np.float64)

    @cached_property
    def _exact(self) -> Exact:
        """For scores too far apart for worths that all lists share."""
        return Exact(self._tiers, self.counts)

    def value_and_gradient(self, scores: FloatArray) -> tuple[float, FloatArray]:
        if np.ptp(scores) > STRICT_WIDEST:
            return self._exact.value_and_gradient(scores)
        _, _, value, gradient = self._run(scores)
        return value, gradient

    def _run(self, scores: FloatArray) -> tuple[FloatArray, FloatArray, float, FloatArray]:
        largest = scores.max()
        worth = np.exp(scores - largest)
        inverse, gradient = np.empty(len(self.items)), -self._chosen
        logs = self.lists.value_and_gradient(worth, inverse, gradient)
        return worth, inverse, logs - float(self._chosen @ (scores - largest)), gradient

    def hessian(self, scores: FloatArray) -> Hessian:
        if np.ptp(scores) > STRICT_WIDEST:
            return self._exact.hessian(scores)
        worth, inverse, _, _ = self._run(scores)
        return StrictHessian(self, worth, inverse)

    def outer_products(self, scores: FloatArray) -> FloatArray:
        if np.ptp(scores) > STRICT_WIDEST:
            return self._exact.outer_products(scores)
        worth, inverse, _, _ = self._run(scores)
        slopes = np.empty(len(self.items))
        self.lists.entry_gradients(worth, inverse, slopes)
        return summed_squares(slopes, self.items, self.offsets, self.counts, len(scores))


class StrictHessian:
    """Second derivatives of `Strict`."""

    def __init__(self, term: Strict, worth: FloatArray, inverse: FloatArray) -> None:
        self._lists, self._worth, self._inverse = term.lists, worth, inverse

    def product(self, vector: FloatArray) -> FloatArray:
        out = np.zeros_like(self._worth)
        self._lists.product(self._worth, self._inverse, vector, out)
        return out

    def diagonal(self) -> FloatArray:
        out = np.zeros_like(self._worth)
        self._lists.diagonal(self._worth, self._inverse, out)
        return out

    def matrix(self) -> FloatArray:
        out = np.zeros((len(self._worth),) * 2)
        self._lists.matrix(self._worth, self._inverse, out)
        return out + out.T


class Tied:
    """Plackett-Luce likelihood of lists without a rest.

    Of ties beyond `LARGEST_TIE`, all but a last one, the matrix takes longer than it saves.
    """

    twice = True

    def __init__(self, tiers: Tiers, counts: FloatArray) -> None:
        self.tiers, self.counts = tiers, counts
        self.items = tiers.items.numpy()
        self.list_offsets = tiers.list_offsets.numpy()
        self.lists = _native.TiedLists(
            self.items, tiers.tier_offsets.numpy(), self.list_offsets, counts, tiers.n_items or 0
        )
        self._entry_count = np.repeat(counts, tiers.lengths.numpy())
        self._last = Last[TiedLists]()

    @cached_property
    def _exact(self) -> Exact:
        """For scores too far apart."""
        return Exact(self.tiers, self.counts)

    def _at(self, scores: FloatArray) -> TiedLists:
        """The lists at these scores: a gradient is followed by second derivatives there."""
        return self._last.at(scores, partial(TiedLists, self))

    def value_and_gradient(self, scores: FloatArray) -> tuple[float, FloatArray]:
        if np.ptp(scores) > TIED_WIDEST:
            return self._exact.value_and_gradient(scores)
        lists = self._at(scores)
        gradient = np.bincount(self.items, lists.entry_gradients() * self._entry_count, len(scores))
        return -lists.log_prob, -gradient.astype(np.float64)

    def hessian(self, scores: FloatArray) -> Hessian:
        if np.ptp(scores) > TIED_WIDEST:
            return self._exact.hessian(scores)
        return self._at(scores)

    def outer_products(self, scores: FloatArray) -> FloatArray:
        if np.ptp(scores) > TIED_WIDEST:
            return self._exact.outer_products(scores)
        lists = self._at(scores)
        borders = self.tiers.tier_offsets.numpy()[self.list_offsets]
        return summed_squares(
            lists.entry_gradients(), self.items, borders, self.counts, len(scores)
        )


class TiedLists:
    """The lists at some scores: every tier's value, slopes and matrix."""

    def __init__(self, term: Tied, scores: FloatArray) -> None:
        self._lists = term.lists
        log_worth = scores - scores.max()
        self.worth = np.exp(log_worth)
        self._below, value = np.empty((2, len(term.tiers.tier_sizes)))
        self._slopes = np.empty(len(term.items))
        self._matrices = np.empty(self._lists.matrix_size)
        self._lists.terms(
            self.worth, log_worth, torch.get_num_threads(),
            self._below, value, self._slopes, self._matrices,
        )  # fmt: skip
        by_list = np.add.reduceat(value, term.list_offsets[:-1])
        self.log_prob = float(by_list @ term.counts)

    def entry_gradients(self) -> FloatArray:
        """[entries] slopes of one list's log-probability."""
        out = np.empty(len(self._slopes))
        self._lists.entry_gradients(self.worth, self._below, self._slopes, out)
        return out

    def product(self, vector: FloatArray) -> FloatArray:
        out = np.zeros(len(self.worth))
        self._lists.product(*self._known(), vector, out)
        return -out

    def diagonal(self) -> FloatArray:
        out = np.zeros(len(self.worth))
        self._lists.diagonal(*self._known(), out)
        return np.negative(out)

    def matrix(self) -> FloatArray:
        out = np.zeros((len(self.worth),) * 2)
        self._lists.matrix(*self._known(), out)
        return -(out + out.T)

    def _known(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        return self.worth, self._below, self._slopes, self._matrices


def matrix_by_parts(tiers: Tiers, counts: FloatArray, scores: FloatArray) -> FloatArray:
    """[items, items] second derivatives of lists of any kind, a few lists at a time."""
    sizes = tiers.tier_sizes.numpy().astype(np.float64)
    squares = np.concatenate([[0.0], np.cumsum(sizes**2)])[tiers.list_offsets.numpy()]
    room = np.cumsum(np.diff(squares) + tiers.full_lengths.numpy())
    total = np.zeros((len(scores),) * 2)
    for part in np.split(np.arange(len(tiers)), np.flatnonzero(np.diff(room // MATRIX_CHUNK)) + 1):
        total += Tied(with_rest_written(tiers[part]), counts[part]).hessian(scores).matrix()
    return total


class Smooth:
    """Any objective of `tierrank.losses`, by autograd, or by differences of its gradient."""

    def __init__(self, tiers: Tiers, counts: FloatArray, objective: Objective) -> None:
        self.tiers, self.counts, self.objective = tiers, counts, objective
        self._counts = torch.from_numpy(counts)
        self.twice = objective.entry.suits_newton

    def value_and_gradient(self, scores: FloatArray) -> tuple[float, FloatArray]:
        leaf, value = self._value(scores)
        (gradient,) = torch.autograd.grad(value, leaf)
        return float(value.detach()), gradient.numpy()

    def _value(self, scores: FloatArray) -> tuple[torch.Tensor, torch.Tensor]:
        leaf = torch.from_numpy(scores).requires_grad_()
        return leaf, (self._counts * self.objective(leaf, self.tiers)).sum()

    def hessian(self, scores: FloatArray) -> Hessian:
        return SmoothHessian(self, scores)

    def outer_products(self, scores: FloatArray) -> FloatArray:
        return outer_products(self.objective, self.tiers, self.counts, scores)


class SmoothHessian:
    """Second derivatives of `Smooth`."""

    def __init__(self, term: Smooth, scores: FloatArray) -> None:
        self._term, self._scores = term, scores
        if term.twice:
            self._leaf, value = term._value(scores)
            (self._slope,) = torch.autograd.grad(value, self._leaf, create_graph=True)

    def product(self, vector: FloatArray) -> FloatArray:
        if self._term.twice:
            along = torch.from_numpy(np.ascontiguousarray(vector))
            (out,) = torch.autograd.grad(self._slope, self._leaf, along, retain_graph=True)
            return np.asarray(out.numpy())
        size = DIFFERENCE / max(float(np.abs(vector).max(initial=0)), np.finfo(float).tiny)
        high, low = (
            self._term.value_and_gradient(self._scores + way * size * vector)[1] for way in (1, -1)
        )
        return np.asarray((high - low) / (2 * size))

    def diagonal(self) -> None:
        return None

    def matrix(self) -> FloatArray:
        return by_columns(self.product, len(self._scores))


# -- from lists and an objective to terms ---------------------------------------------------------


def objective_of(name: str, params: dict[str, Any] | None) -> Objective:
    """The objective as a module that gives one loss a list, of lists as `prepared` gives them.

    Raises
    ------
    ValueError
        for one that worths cannot be fitted by
    """
    if not isinstance(params, dict | None) or not isinstance(name, str):
        raise ValueError(
            f"objective is a name and objective_params a dict, not {name!r} and {params!r}"
        )
    entry, options = find(name), dict(params or {})
    found = entry.name
    if entry.stochastic:
        raise ValueError(f"the gradient of {found} is random: use pmop-fd or pmop-exact")
    if entry.tie_parameter:
        raise ValueError(
            f"{found} has a parameter for ties beside the worths: use "
            f'tierrank.PairedTies("{found}"), which estimates both'
        )
    if "reduction" in options:
        raise ValueError("the losses of lists are always summed: reduction is no option here")
    if "generator" in options:
        raise ValueError("randomness comes from random_state, not from a generator")
    if entry.exact_likelihood:
        _ = from_name(found, **options)  # refuses options that it does not have
        alpha = entry.option("alpha", options)
        return from_name("pl-partition", alpha=alpha, reduction="none").double()
    return from_name(found, **options, reduction="none").double()


def prepared(
    tiers: Tiers, counts: FloatArray, name: str, params: dict[str, Any] | None, seed: int
) -> tuple[Tiers, FloatArray]:
    """The lists as the objective sees them, before equal ones are put together.

    PL-TopK forgets what comes after the first k places. ListMLE may break ties, once for all: each
    list that was seen, in an order of its own (in `MOST_BROKEN` orders, if more often).
    """
    entry = find(name)
    if not entry.exact_likelihood:
        return tiers, counts
    if "k" in entry.options:
        k = entry.option("k", params)
        check_count("k", k)
        return tiers.top(int(k)), counts
    ties: Ties = entry.option("ties", params) or "exact"
    if ties == "random":
        ways = np.minimum(np.ceil(counts), MOST_BROKEN).astype(np.int64)
        tiers = tiers[np.repeat(np.arange(len(ways)), ways)]
        counts = np.repeat(counts / np.maximum(ways, 1), ways)
    return without_ties(tiers, ties, seed), counts


def terms_of(
    lists: CountedLists, name: str, params: dict[str, Any] | None = None
) -> list[ListTerm]:
    """The terms that Σ count · loss consists of: lists with small ties, or none, are quicker."""
    objective, entry = objective_of(name, params), find(name)
    if not entry.exact_likelihood or entry.option("alpha", params) is not None:
        return [Smooth(lists.tiers, lists.counts, objective)]
    if lists.tiers.rest and len(lists.tiers) * lists.n_items <= MOST_WRITTEN:
        lists = replace(lists, tiers=with_rest_written(lists.tiers))
    upper, last = largest_ties(lists.tiers)
    strict, small = np.maximum(upper, last) <= 1, upper <= LARGEST_TIE
    if small.any() and not strict.all():
        numbers = np.cumsum(np.where(small & ~strict, upper * lists.tiers.full_lengths.numpy(), 0))
        small &= numbers <= MOST_KEPT
    terms: list[ListTerm] = []
    for kind, chosen in ((Strict, strict), (Tied, small & ~strict), (Exact, ~small & ~strict)):
        if chosen.any():
            tiers = lists.tiers if chosen.all() else lists.tiers[np.flatnonzero(chosen)]
            terms.append(kind(tiers, lists.counts[chosen]))
    return terms


# -- what is believed of worths before any list is seen, as terms: minus a log-density ------------
#
# A prior makes the estimate finite where the lists alone do not, because some items were never
# compared, or always won. It is asked for, and never slipped in.


def _check_prior(what: str, value: float) -> None:
    """Refuse what is no finite number above 0, in words: it is a part of an argument, and none."""
    try:
        check_size(what, value)
    except ArgumentError as error:
        raise ArgumentError(str(error)) from None


@dataclass(frozen=True)
class GaussianPrior:
    """Log-worths are independent and normal, with mean 0: Σ w² / (2 scale²).

    `scale` is the standard deviation of log-worths. With 1, the worths of two items differ by a
    factor of 4 typically; with 3, the lists have nearly all the say.
    """

    scale: float = 1.0

    def __post_init__(self) -> None:
        _check_prior("the scale of a Gaussian prior", self.scale)

    def __str__(self) -> str:
        return f"gaussian:{self.scale:g}"

    @property
    def precision(self) -> float:
        """1 / scale²."""
        return self.scale**-2

    def value_and_gradient(self, scores: FloatArray) -> tuple[float, FloatArray]:
        """Minus the log-density up to a constant, and its gradient."""
        return self.precision / 2 * float(scores @ scores), self.precision * scores

    def hessian(self, scores: FloatArray) -> Hessian:
        """The second derivatives."""
        return DiagonalHessian(np.full(len(scores), self.precision))


@dataclass(frozen=True)
class PseudoItem:
    """Every item met one more item, of log-worth 0, and won and lost `wins` times each.

    The prior of R's PlackettLuce (``npseudo``, 0.5 there by default): it connects all items, and
    shrinks their worths a little towards each other. The pseudo-item itself is in no result.
    (There its worth is an estimate too, which is the same: only differences count.)
    """

    wins: float = 0.5

    def __post_init__(self) -> None:
        _check_prior("the wins of a pseudo-item", self.wins)

    def __str__(self) -> str:
        return f"pseudo-item:{self.wins:g}"

    def value_and_gradient(self, scores: FloatArray) -> tuple[float, FloatArray]:
        """wins · Σ (log(1 + e^−w) + log(1 + e^w)), and its gradient."""
        size = np.abs(scores)
        value = self.wins * float((size + 2 * np.log1p(np.exp(-size))).sum())
        return value, self.wins * np.tanh(scores / 2)

    def hessian(self, scores: FloatArray) -> Hessian:
        """The second derivatives, wins / (2 cosh²(w/2))."""
        return DiagonalHessian(self.wins / 2 / np.cosh(np.clip(scores / 2, -350, 350)) ** 2)


Prior = GaussianPrior | PseudoItem


class OnWorths:
    """A prior of log-worths, beside which there are parameters of which nothing is believed."""

    def __init__(self, prior: Prior, beside: int) -> None:
        self.prior, self._free = prior, np.zeros(beside)

    def value_and_gradient(self, point: FloatArray) -> tuple[float, FloatArray]:
        """Minus the log-density of the log-worths, and its [parameters] gradient."""
        value, slope = self.prior.value_and_gradient(point[: len(point) - len(self._free)])
        return value, np.append(slope, self._free)

    def hessian(self, point: FloatArray) -> Hessian:
        """The second derivatives."""
        own = self.prior.hessian(point[: len(point) - len(self._free)]).diagonal()
        assert own is not None
        return DiagonalHessian(np.append(own, self._free))


PRIORS: dict[str, type[Prior]] = {"gaussian": GaussianPrior, "pseudo-item": PseudoItem}


def prior_from(spelled: str | Prior | None) -> Prior | None:
    """The prior that a user means by "gaussian", "gaussian:2.5", "pseudo-item:0.5" or None."""
    if spelled is None or isinstance(spelled, GaussianPrior | PseudoItem):
        return spelled
    kind, size = prior_name(spelled)
    return PRIORS[kind]() if size is None else PRIORS[kind](size)
