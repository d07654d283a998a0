"""What a vote depends on besides the items, and who cast it: covariates and clusters.

A covariate x adds β · x to a lead or to a log-worth, and β is estimated beside the worths. Votes of
one voter (or on one prompt) are alike, so that they tell less than as many votes of others. With
g_v the gradient of a vote's log-likelihood, times its weight, and G clusters c, the middle of the
sandwich is

    G/(G − 1) · Σ_c (Σ_{v∈c} g_v) (Σ_{v∈c} g_v)ᵀ

and by two kinds of clusters at once: that of the first plus that of the second minus that of their
intersections, each with its own G (Cameron, Gelbach and Miller, 2011); by more, likewise.

Lists whose items have covariates have a log-worth in each list, w_i + β · x_il. Every entry of a
list is taken for an item of its own, with the score s = Z · [w, β], where a row of Z has a 1 at its
item, and the covariates x beside it. So any term of scores is one of [w, β], with the gradient Zᵀ g
and the second derivatives Zᵀ H Z; and as no two lists share an entry, g has the gradients of all
lists side by side, and H is a block a list. (For games, `paired_likelihood` has the same.)
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
import torch
from scipy.sparse import csr_array, hstack
from sklearn.utils.validation import check_is_fitted

from tierrank._types import AnyArray, FloatArray, IntArray
from tierrank.aggregation.lists import CountedLists, distinct
from tierrank.aggregation.results import FittedWorths
from tierrank.aggregation.summary import Parameter, parameters_of
from tierrank.aggregation.terms import Sum, terms_of
from tierrank.errors import Argument, ArgumentError, ArgumentWarning
from tierrank.names import did_you_mean
from tierrank.tiers import Tiers
from tierrank.tiers.arrays import is_missing, offsets, preview
from tierrank.tiers.selection import with_rest_written
from tierrank.training.covariance import (
    CoefficientTable,
    Kind,
    NotDefinite,
    coefficient_table,
    covariance,
    some,
    undetermined,
)
from tierrank.training.optim import Hessian, Iterated, Minimum, by_cholesky, newton

DENSE = 0.1  # part of a sparse matrix that is there, from which a dense one is quicker
NEGATIVE = 1e-12  # an eigenvalue relative to the largest: below minus this, it is no rounding error


class FittedVotes(FittedWorths):
    """Worths fitted beside coefficients of covariates, with standard errors by clusters."""

    covariates: Sequence[str | tuple[str, str]] | None
    clusters: str | Sequence[str] | None

    covariate_names_: tuple[str, ...]  # of a difference, "length_a - length_b"

    @property
    def coef_(self) -> FloatArray:
        """[covariates] what a unit more of each adds to the lead, or to the log-worth."""
        check_is_fitted(self)
        if not self.covariates:
            raise AttributeError(
                f"this {type(self).__name__} has no attribute 'coef_': there were no covariates"
            )
        return self._coef.copy()

    @property
    def coef_standard_errors_(self) -> FloatArray:
        """[covariates] of `coef_`."""
        return np.asarray(np.sqrt(np.diag(self._coef_covariance())))

    def _coef_covariance(self) -> FloatArray:
        """[covariates, covariates] of `coef_`."""
        size = len(self.coef_)
        return self._parameter_covariance(self._kind(None))[-size:, -size:]

    def _known_coef_covariance(self) -> FloatArray:
        """The same; NaN where there are to be no standard errors."""
        if self.uncertainty is None:
            return np.full((len(self.coef_),) * 2, np.nan)
        return self._coef_covariance()

    def _covariate_table(self, level: float) -> CoefficientTable | None:
        """Coefficients with intervals; None without covariates."""
        if not self.covariates:
            return None
        names, matrix = list(self.covariate_names_), self._known_coef_covariance()
        return coefficient_table(names, self._coef, matrix, level, "covariates")

    def _of_covariates(self, level: float) -> list[Parameter]:
        table = self._covariate_table(level)
        return [] if table is None else parameters_of(table)

    def _kind(self, kind: Kind | None) -> Kind:
        return super()._kind("sandwich" if kind is None and self.clusters else kind)

    def _uncertainty_in_words(self) -> str:
        by = cluster_names(self.clusters)
        return (
            f"sandwich clustered by {' and '.join(by)}" if by else super()._uncertainty_in_words()
        )

    def _worths_in_words(self) -> dict[str, str]:
        return {"worths": f"at 0 of {', '.join(self.covariate_names_)}"} if self.covariates else {}

    def _saved_coef(self) -> dict[str, FloatArray]:
        return {"coef": self._coef} if self.covariates else {}

    def _check_votes(self) -> None:
        """Refuse covariates and clusters that cannot be."""
        if self.covariates is not None:
            if isinstance(self.covariates, str) or not isinstance(self.covariates, Sequence):
                raise ArgumentError(
                    Argument("covariates"), " is a list of columns, or of pairs of them whose "
                    f'difference counts, as in ["turn", ("length_a", "length_b")], not '
                    f"{self.covariates!r}",
                )  # fmt: skip
            for each in self.covariates:
                pair = isinstance(each, tuple | list) and len(each) == 2
                if not all(isinstance(name, str) for name in (each if pair else [each])):
                    raise ArgumentError(
                        Argument("covariates"), " has columns, or pairs of them whose difference "
                        f"counts, and {each!r} is neither",
                    )  # fmt: skip
        if self.clusters and self.uncertainty is None:
            raise ArgumentError(
                Argument("clusters"), " say what standard errors rest on, and there are to be "
                "none: leave out ", Argument("clusters"), " or ", Argument("uncertainty"),
            )  # fmt: skip
        for what, names in (
            ("covariates", self._covariate_names()), ("clusters", cluster_names(self.clusters))
        ):  # fmt: skip
            if len(set(names)) < len(names):
                twice = next(name for name in names if names.count(name) > 1)
                raise ArgumentError(Argument(what), f" names {twice!r} twice: name each once")

    def _covariate_names(self) -> tuple[str, ...]:
        """Of those that a fit is to have."""
        return tuple(map(covariate_name, self.covariates or ()))

    def _columns_beside(self) -> list[str]:
        """Columns of votes that the fit needs."""
        return [*columns_of_covariates(self.covariates), *cluster_names(self.clusters)]


def covariate_name(covariate: str | Sequence[str]) -> str:
    """A column's own, and "a - b" of a difference."""
    return covariate if isinstance(covariate, str) else " - ".join(covariate)


def columns_of_covariates(covariates: Sequence[str | Sequence[str]] | None) -> list[str]:
    """All columns that the covariates are made of."""
    return [
        column
        for each in covariates or ()
        for column in ([each] if isinstance(each, str) else each)
    ]


def cluster_names(clusters: Any) -> tuple[str, ...]:
    """Columns that say which votes belong together."""
    if clusters is None:
        return ()
    names = (clusters,) if isinstance(clusters, str) else clusters
    if not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
        raise ArgumentError(
            Argument("clusters"), f' is a column, or several, as in ["voter", "prompt"], not '
            f"{clusters!r}",
        )  # fmt: skip
    return tuple(names)


# -- from columns to numbers ----------------------------------------------------------------------


def read_covariates(
    covariates: Sequence[str | Sequence[str]] | None,
    beside: Mapping[str, AnyArray],
    rows: int,
    row: str,
) -> FloatArray | None:
    """[rows, covariates] from columns beside games, or beside the entries of lists; None: none.

    Parameters
    ----------
    covariates
        columns, or pairs of them of which the difference is taken
    beside
        the columns that there are, [rows] each
    rows, row
        how many, and what one is called: "game"
    """
    if not covariates:
        return None
    read = {
        column: _numbers(column, _column(column, beside, "covariates"), row)
        for column in columns_of_covariates(covariates)
    }
    found = np.empty((rows, len(covariates)))
    for values, each in zip(found.T, covariates, strict=True):
        values[:] = read[each] if isinstance(each, str) else read[each[0]] - read[each[1]]
        if not values.any():
            raise ArgumentError(
                Argument("covariates"), f": {covariate_name(each)!r} is 0 in every {row}, so its "
                "coefficient has no estimate: leave it out",
            )  # fmt: skip
    return found


def read_clusters(
    clusters: Any, beside: Mapping[str, AnyArray], rows: int, row: str
) -> IntArray | None:
    """[rows, kinds of clusters] numbers from 0 of those that a row is in; None: of none."""
    names = cluster_names(clusters)
    if not names:
        return None
    found = np.empty((rows, len(names)), dtype=np.int64)
    for codes, column in zip(found.T, names, strict=True):
        values = _column(column, beside, "clusters")
        missing = _missing(values)
        if missing.any():
            at = int(np.argmax(missing))
            raise ValueError(
                f"{row} {at} has no {column!r}: a vote without it is in no cluster. Name it, or "
                "leave it out"
            )
        if values.dtype.kind == "O":  # names of several kinds cannot be sorted
            number: dict[Any, int] = {}
            codes[:] = [number.setdefault(value, len(number)) for value in values.tolist()]
        else:
            codes[:] = np.unique(values, return_inverse=True)[1]
        if rows and codes.max() == 0:
            raise ArgumentError(
                Argument("clusters"), f": all have the same {column!r}, {_cell(values, 0)}, and "
                "how estimates vary between clusters does not show in one of them",
            )  # fmt: skip
    return found


def covariates_at(
    covariates: Sequence[str | Sequence[str]] | None, given: Mapping[str, Any] | None, rows: int
) -> FloatArray | None:
    """[rows, covariates] to predict at: 0 where nothing is given.

    Parameters
    ----------
    covariates
        those of the fit
    given
        from columns to a number, or to [rows] of them
    rows
        how many
    """
    columns = columns_of_covariates(covariates)
    unknown = next((name for name in given or {} if name not in columns), None)
    if unknown is not None:
        known = f"the columns are {', '.join(map(repr, columns))}" if columns else "there are none"
        raise ArgumentError(
            Argument("covariates"), f": {unknown!r} is none of the fit: {known}.",
            did_you_mean(str(unknown), columns),
        )  # fmt: skip
    if not covariates:
        return None
    read = dict.fromkeys(columns, np.zeros(rows))
    for name, value in (given or {}).items():
        values = np.asarray(value)
        if values.shape not in ((), (rows,)):
            raise ArgumentError(
                Argument("covariates"), f": {name!r} has shape {values.shape}: give a number, or "
                f"{rows} of them",
            )  # fmt: skip
        read[name] = _numbers(name, np.broadcast_to(values, rows), "game")
    return np.column_stack(
        [read[one] if isinstance(one, str) else read[one[0]] - read[one[1]] for one in covariates]
    )


def _column(column: str, beside: Mapping[str, AnyArray], argument: str) -> AnyArray:
    if column not in beside:
        known = f"there are {', '.join(map(repr, beside))}" if beside else "there are none"
        raise ArgumentError(
            Argument(argument), f" names the column {column!r}, which is not beside the votes: "
            f"{known}.{did_you_mean(column, list(beside))} Read them with keep=[{column!r}], give "
            "a frame that has it, or set `beside` of games or lists",
        )  # fmt: skip
    return np.asarray(beside[column])


def _numbers(column: str, values: AnyArray, row: str) -> FloatArray:
    missing = _missing(values)
    if not missing.any():
        try:
            if values.dtype.kind in "mMUS":
                raise ValueError
            found = values.astype(np.float64)
        except (TypeError, ValueError):
            raise ArgumentError(
                Argument("covariates"), f": {column!r} has {_cell(values, 0)}, which is no "
                "number: make it one, for instance 1 where it is so and 0 where it is not",
            ) from None  # fmt: skip
        missing = ~np.isfinite(found)
    if missing.any():
        at = int(np.argmax(missing))
        raise ValueError(
            f"{row} {at} has {_cell(values, at)} in {column!r}: a covariate is a finite "
            "number. Mend it, or leave it out"
        )
    return found


def _cell(values: AnyArray, at: int) -> str:
    return preview(values[at : at + 1].tolist()[0])


def _missing(values: AnyArray) -> AnyArray:
    """[rows] where there is nothing: NaN, NaT, None or no letter."""
    if values.dtype.kind in "fc":
        return np.isnan(values)
    if values.dtype.kind in "mM":
        return np.isnat(values)
    if values.dtype.kind in "US":
        return np.asarray(values == values.dtype.type())
    if values.dtype.kind == "O":
        return np.array([is_missing(value) or value == "" for value in values.tolist()], dtype=bool)
    return np.zeros(values.shape, dtype=bool)


# -- votes that belong together -------------------------------------------------------------------


def check_clusters(names: Any, clusters: IntArray, parameters: int) -> None:
    """Warn of clusters that are too few to see how so many estimates vary between them."""
    for name, codes in zip(cluster_names(names), clusters.T, strict=True):
        size = len(np.unique(codes))
        if size <= parameters:
            warnings.warn(
                ArgumentWarning(
                    f"{size:,} clusters by {name!r} are no more than the {parameters:,} estimates: "
                    "how these vary between clusters shows only in part, and standard errors of "
                    "some differences are far too small. Take ", Argument("clusters"),
                    " of which there are more, or none",
                ),
                stacklevel=5,
            )  # fmt: skip


def clustered_squares(slopes: Any, clusters: IntArray, curvature: FloatArray) -> FloatArray:
    """[parameters, parameters] the middle of the sandwich.

    By several kinds of clusters, it may have negative eigenvalues where there are few of them.
    These are set to 0, in the scale in which the second derivatives have a diagonal of 1.

    Parameters
    ----------
    slopes
        sparse [votes, parameters] weight · gradient of each vote
    clusters
        [votes, kinds] numbers of the clusters
    curvature
        [parameters] the diagonal of the second derivatives
    """
    votes, kinds = clusters.shape
    total = np.zeros((slopes.shape[1],) * 2)
    for together in range(1, kinds + 1):
        for chosen in combinations(range(kinds), together):
            codes = numbered(clusters[:, chosen])
            size = int(codes.max()) + 1
            summed = csr_array((np.ones(votes), (codes, np.arange(votes))), (size, votes)) @ slopes
            sign = 1 if together % 2 else -1
            total += sign * size / (size - 1) * _squares(summed)
    if kinds == 1:
        return total
    scale = np.sqrt(np.where(curvature > 0, curvature, 1.0))
    values, vectors = np.linalg.eigh(total / np.outer(scale, scale))
    if values[0] >= -NEGATIVE * values[-1]:
        return total
    mended = (vectors * np.maximum(values, 0)) @ vectors.T
    return np.asarray(mended * np.outer(scale, scale))


def drawn_clusters(clusters: IntArray, random: np.random.Generator) -> FloatArray:
    """[votes] how often each is drawn, when as many clusters are drawn as there are.

    Raises
    ------
    ValueError
        if there are clusters of several kinds: drawing both would count what is due to neither
        three times (Owen, 2007)
    """
    if clusters.shape[1] > 1:
        raise ArgumentError(
            "a bootstrap draws clusters of one kind: fit with ", Argument("clusters"), " of one "
            "column for it, or take the standard errors of the fit, which are by all of them",
        )  # fmt: skip
    codes = numbered(clusters)
    size = int(codes.max()) + 1
    return random.multinomial(size, np.full(size, 1 / size)).astype(np.float64)[codes]


def numbered(codes: IntArray) -> IntArray:
    """[votes] the different rows by numbers from 0, without gaps."""
    found = np.unique(codes[:, 0], return_inverse=True)[1]
    for other in codes.T[1:]:
        found = np.unique(found * (int(other.max()) + 1) + other, return_inverse=True)[1]
    return found


def _squares(rows: Any) -> FloatArray:
    """rowsᵀ · rows of a sparse matrix."""
    if rows.nnz > DENSE * rows.shape[0] * rows.shape[1]:
        dense = rows.toarray()
        return np.asarray(dense.T @ dense)
    return np.asarray((rows.T @ rows).toarray())


# -- lists one by one, as functions of [w, β] -----------------------------------------------------

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
