"""What a vote depends on besides the items, and who cast it: covariates and clusters.

A covariate x adds β · x to a lead or to a log-worth, and β is estimated beside the worths. Votes of
one voter (or on one prompt) are alike, so that they tell less than as many votes of others. With
g_v the gradient of a vote's log-likelihood, times its weight, and G clusters c, the middle of the
sandwich is

    G/(G − 1) · Σ_c (Σ_{v∈c} g_v) (Σ_{v∈c} g_v)ᵀ

and by two kinds of clusters at once: that of the first plus that of the second minus that of their
intersections, each with its own G (Cameron, Gelbach and Miller, 2011); by more, likewise.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from sklearn.utils.validation import check_is_fitted

from tierrank._types import AnyArray, FloatArray, IntArray
from tierrank.aggregation.results import FittedWorths
from tierrank.aggregation.summary import Parameter
from tierrank.errors import Argument, ArgumentError, ArgumentWarning
from tierrank.names import did_you_mean
from tierrank.tiers.arrays import is_missing, preview
from tierrank.training.covariance import Kind, reach

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
        check_is_fitted(self, "log_worths_")
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

    def _of_covariates(self, level: float) -> list[Parameter]:
        """Coefficients with intervals."""
        if not self.covariates:
            return []
        errors = np.sqrt(np.diag(self._known_coef_covariance()))
        margin = reach(level) * errors
        numbers = self._coef, errors, self._coef - margin, self._coef + margin
        return [
            Parameter(name, *row)
            for name, *row in zip(
                self.covariate_names_, *(each.tolist() for each in numbers), strict=True
            )
        ]

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
