"""Lists whose items have a log-worth of their own in each list: w_i + β · x_il.

Every entry of a list is taken for an item of its own, with the score s = Z · [w, β], where a row of
Z has a 1 at its item, and the covariates x beside it. So any term of scores is one of [w, β], with
the gradient Zᵀ g and the second derivatives Zᵀ H Z; and as no two lists share an entry, g has the
gradients of all lists side by side, and H is a block a list.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from scipy.sparse import csr_array, hstack

from tierrank._types import FloatArray, IntArray
from tierrank.aggregation.lists import CountedLists, distinct
from tierrank.aggregation.terms import DiagonalHessian, Prior, Sum, terms_of
from tierrank.errors import Argument, ArgumentError
from tierrank.tiers import Tiers
from tierrank.tiers.arrays import offsets
from tierrank.tiers.selection import with_rest_written
from tierrank.training.covariance import NotDefinite, covariance, some, undetermined
from tierrank.training.optim import Hessian, Iterated, Minimum, by_cholesky, newton

CONSTANT = 1e-12  # part of a covariate's size by which it varies within lists, and is rounding
MOST_WRITTEN = 200_000_000  # entries of lists whose rest is written out
VANISHED = 1e-12  # part of a diagonal that is left by elimination, and is a rounding error
FAR = 0.01  # a step that promises next to nothing and yet goes so far is on its way to infinity


@dataclass(frozen=True)
class Votes:
    """Lists one by one, with what is known of each besides its items.

    Attributes
    ----------
    tiers, counts
        the lists that say something, and how often each was seen
    x
        [entries, covariates], in the order of ``tiers.items``, with mean 0 in each list and of size
        1; there may be none
    unit
        [covariates] what `x` was divided by
    clusters
        [lists, kinds of clusters] numbers of those that a list is in; None: of none
    """

    tiers: Tiers
    counts: FloatArray
    x: FloatArray
    unit: FloatArray
    clusters: IntArray | None

    @classmethod
    def of(
        cls, tiers: Tiers, counts: FloatArray, x: FloatArray, names: tuple[str, ...],
        clusters: IntArray | None,
    ) -> Votes:  # fmt: skip
        """With covariates as they were given; those that do not vary within lists are refused."""
        lengths = tiers.lengths.numpy()
        sums = csr_array((np.ones(len(x)), np.arange(len(x)), offsets(lengths))) @ x
        spread = x - np.repeat(sums / lengths[:, None], lengths, axis=0)
        unit = np.sqrt(np.mean(spread**2, axis=0))
        still = unit <= CONSTANT * np.abs(x).max(axis=0, initial=0)
        if still.any():
            name = names[int(np.argmax(still))]
            raise ArgumentError(
                Argument("covariates"), f": {name!r} is the same for all items of each list, so it "
                "says nothing of who is above whom: leave it out",
            )  # fmt: skip
        return cls(tiers, counts, spread / unit, unit, clusters)

    def seen(self, often: FloatArray) -> Votes:
        """The same lists seen otherwise often; those never seen are left out."""
        there = often > 0
        entries = np.repeat(there, self.tiers.lengths.numpy())
        return replace(
            self,
            tiers=self.tiers[np.flatnonzero(there)],
            counts=often[there],
            x=self.x[entries],
            clusters=None if self.clusters is None else self.clusters[there],
        )

    def counted(self) -> CountedLists:
        """Equal lists together, whatever else is known of them."""
        return distinct(self.tiers, self.counts)


def of_entries(tiers: Tiers) -> Tiers:
    """Lists over a catalogue of their own entries."""
    size = len(tiers.items)
    return replace(tiers, items=torch.arange(size), n_items=size, names=None, keys=None)


class EntryTerm:
    """Σ count · loss of lists as a function of [log-worths, coefficients of covariates].

    Parameters
    ----------
    votes
        the lists
    name, params
        of the objective
    """

    def __init__(self, votes: Votes, name: str, params: dict[str, Any] | None) -> None:
        tiers, x = votes.tiers, votes.x
        if tiers.rest:
            if len(tiers) * (tiers.n_items or 0) > MOST_WRITTEN:
                raise ValueError(
                    "the gradients of lists that leave a rest are of all items, and these are too "
                    f"many: {len(tiers):,} lists of {tiers.n_items:,} items. Leave out clusters"
                )
            tiers = with_rest_written(tiers)
            x = np.empty((len(tiers.items), 0))  # rests have no covariates
        self.items, self.x, self.size = tiers.items.numpy(), x, tiers.n_items or 0
        self.counts, self.borders = votes.counts, offsets(tiers.lengths.numpy())
        total = float(votes.counts.sum())
        lists = CountedLists(of_entries(tiers), votes.counts, len(tiers), total, 0.0)
        parts = terms_of(lists, name, params)
        self.twice = all(part.twice for part in parts)
        self._whole = Sum(parts)

    def scores(self, point: FloatArray) -> FloatArray:
        """[entries] Z · point."""
        return np.asarray(point[self.items] + self.x @ point[self.size :])

    def gathered(self, slopes: FloatArray) -> FloatArray:
        """[parameters] Zᵀ · slopes."""
        return np.concatenate([np.bincount(self.items, slopes, self.size), self.x.T @ slopes])

    def value_and_gradient(self, point: FloatArray) -> tuple[float, FloatArray]:
        """The loss, and its [parameters] gradient."""
        value, slopes = self._whole.value_and_gradient(self.scores(point))
        return value, self.gathered(slopes)

    def hessian(self, point: FloatArray) -> Hessian:
        """The second derivatives."""
        return EntryHessian(self, self._whole.hessian(self.scores(point)))

    def slopes(self, point: FloatArray) -> Any:
        """Sparse [lists, parameters] count · gradient of each list's loss."""
        _, slopes = self._whole.value_and_gradient(self.scores(point))
        rows = csr_array((slopes, self.items, self.borders), (len(self.counts), self.size))
        if not self.x.shape[1]:
            return rows
        by_list = csr_array((slopes, np.arange(len(slopes)), self.borders))
        return hstack([rows, csr_array(by_list @ self.x)], format="csr")

    def outer_products(self, point: FloatArray) -> FloatArray:
        """[parameters, parameters] Σ_l count_l g_l g_lᵀ."""
        rows = self.slopes(point)
        rows.data /= np.sqrt(np.repeat(self.counts, np.diff(rows.indptr)))
        return np.asarray((rows.T @ rows).toarray())

    def scale(self) -> FloatArray:
        """[parameters] what bounds each part of the gradient, of losses of places in a list."""
        often = np.repeat(self.counts, np.diff(self.borders))
        bound = np.concatenate([np.bincount(self.items, often, self.size), often @ np.abs(self.x)])
        return np.where(bound > 0, bound, 1.0)


class EntryHessian:
    """Second derivatives Zᵀ H Z."""

    def __init__(self, term: EntryTerm, hessian: Hessian) -> None:
        self._term, self._hessian = term, hessian

    def product(self, vector: FloatArray) -> FloatArray:
        """Zᵀ H Z · vector."""
        return self._term.gathered(self._hessian.product(self._term.scores(vector)))

    def diagonal(self) -> FloatArray | None:
        """None: it comes no cheaper than the matrix."""
        return None

    def matrix(self) -> FloatArray:
        """All of it: a product with the p-th entries of all lists has the p-th row of each block.

        So there are as many products as the longest list has places, however many lists there are.
        """
        term = self._term
        size, x, items, borders = term.size, term.x, term.items, term.borders
        lengths = np.diff(borders)
        start = np.repeat(borders[:-1], lengths)  # [entries] where the list begins
        length = np.repeat(lengths, lengths)
        of_items = np.zeros(size * size)
        found = np.zeros((size + x.shape[1],) * 2)
        for place in range(int(lengths.max(initial=0))):
            unit = np.zeros(len(items))
            unit[(borders[:-1] + place)[lengths > place]] = 1.0
            row = self._hessian.product(unit)
            entries = np.flatnonzero(length > place)
            other = start[entries] + place
            values = row[entries]
            of_items += np.bincount(items[entries] * size + items[other], values, size * size)
            if x.shape[1]:
                bent = x[other] * values[:, None]
                rows = csr_array(
                    (np.ones(len(entries)), (items[entries], np.arange(len(entries)))),
                    (size, len(entries)),
                )
                found[:size, size:] += rows @ bent
                found[size:, size:] += x[entries].T @ bent
        found[:size, :size] = of_items.reshape(size, size)
        found[size:, :size] = found[:size, size:].T
        return np.asarray((found + found.T) / 2)


def minimise_votes(
    whole: Sum, term: EntryTerm, start: FloatArray, *, shifted: bool, max_iter: int,
    iterated: Iterated | None = None,
) -> Minimum:  # fmt: skip
    """By Newton's method with the matrix; `shifted`: only differences of log-worths count."""
    scale, shared = term.scale(), term.size if shifted else 0

    def solve(point: FloatArray, gradient: FloatArray, _: float) -> FloatArray | None:
        matrix = whole.hessian(point).matrix()
        return by_cholesky(matrix, gradient, shared=shared, damping=scale)

    weight = float(term.counts.sum())
    return newton(
        whole.value_and_gradient, solve, start, weight=weight, far=FAR, max_iter=max_iter,
        iterated=iterated,
    )  # fmt: skip


def check_votes(
    whole: Sum, term: EntryTerm, end: Minimum, names: list[str], *, shifted: bool
) -> None:
    """Refuse coefficients that the lists leave open, or that are on their way to infinity."""
    matrix = whole.hessian(end.point).matrix()
    try:
        if end.stopped_by == "no minimum":
            raise NotDefinite
        covariance(matrix.copy(), worths=term.size, shifted=shifted, vanished=VANISHED)
    except NotDefinite:
        which = undetermined(matrix, term.scale(), term.size if shifted else 0, term.size)
        raise ArgumentError(
            f"the lists do not determine {some([names[n] for n in which] or names)}: there is no "
            "finite best value, or several go together and only their sum shows. That is so for a "
            "covariate that tells who stands above whom, or that is a sum of others or of "
            "something of the items. Leave it out of ", Argument("covariates"), ".",
        ) from None  # fmt: skip


class OnWorths:
    """A prior of log-worths, of which there are coefficients beside."""

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
