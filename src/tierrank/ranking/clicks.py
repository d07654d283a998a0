"""Click logs as lists of tiers: what was shown where, what a click says of it, and who looks where.

How likely each place of a page is looked at is learned from clicks alone: no features, no ranker. A
position-based user clicks row i at place p with probability θ_p r_i. Of n_ip showings c_ip were
clicked, with mean n_ip θ_p r_i. Given the C_i = Σ_p c_ip clicks of a row, each was at place p with
probability

    q_ip = n_ip θ_p / Σ_s n_is θ_s,

whatever r_i is. So with b = log θ, and b_1 = 0,

    log L(b) = Σ_ip c_ip b_p − Σ_i C_i log Σ_p n_ip exp(b_p) − (κ/2) Σ_p (b_{p+1} − b_p)²

is a Plackett-Luce likelihood of the log turned on its side, each click over all other showings of
the same row. It is concave, has no parameters of rows, and so no bias from their number or from
features that cannot say what a row is worth: its slope has mean 0 at the true b. The slopes of rows
are independent, so that with H minus the second derivatives and P those of the penalty,

    Cov(b) = H⁻¹ (n/(n − 1) Σ_i s_i s_iᵀ + P) H⁻¹,   of n rows,

holds for clicks that are no more Poisson than a coin is, and counts what is known by the penalty
alone as uncertain as it says. Of few rows a sum of squares says little; then H stands in its place,
which is right for Poisson clicks and too large for coins.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from tierrank._types import AnyArray, BoolArray, FloatArray, IntArray
from tierrank.errors import Argument, ArgumentError, check_count, check_size
from tierrank.tiers import Tiers
from tierrank.tiers.arrays import as_keys, group_rows, is_missing, whole_numbers
from tierrank.training.covariance import covariance
from tierrank.training.optim import by_cholesky, newton

Compare = Literal["weighed", "unclicked", "each", "skip-above"]
FEW_SESSIONS = 30  # of which each may well have a click by chance


@dataclass(frozen=True, eq=False)
class ClickLists:
    """Lists that a click log says: what `fit` of a ranker takes, and `Tiers`.

    ``ranker.fit(X, **lists.arguments)`` learns from them. They come from `ClickLog.lists`.

    Parameters
    ----------
    y : ndarray of float
        [observations] 1 for what was clicked, over 0.
    rows : ndarray of int
        [observations] which row of X each is about.
    positions : ndarray of int or None
        [observations] where it was shown, from 1; None where clicks are weighed, which corrects for
        the places already.
    group : ndarray of int
        [lists] how many observations each has.
    weights : ndarray of float
        [lists] how much each counts: how often it was seen, or the sum of its inverse propensities.
    effective_sample_size : float
        (Σ weight)² / Σ weight² over the clicks before equal lists were counted together: how many
        clicks of equal weight would say as much.
    clipped : float
        Share of the clicks whose inverse propensity was clipped.

    See Also
    --------
    ClickLog : The log that they come from.
    tierrank.BoostedRanker : Learns from them.

    Examples
    --------
    >>> from tierrank.data import ClickLog
    >>> log = ClickLog.from_arrays([0, 0, 0], row=[4, 2, 7], position=[1, 2, 3], click=[0, 1, 0])
    >>> lists = log.lists("each")
    >>> lists.rows, lists.y, lists.positions
    (array([4, 2, 7]), array([0., 1., 0.]), array([1, 2, 3]))
    """

    y: FloatArray
    rows: IntArray
    positions: IntArray | None
    group: IntArray
    weights: FloatArray
    effective_sample_size: float
    clipped: float = 0.0

    @property
    def arguments(self) -> dict[str, Any]:
        """Get what `fit` takes, by name: y, rows, positions, group and weights."""
        names = ("y", "rows", "positions", "group", "weights")
        return {name: getattr(self, name) for name in names}

    def tiers(self) -> Tiers:
        """Build `Tiers` of the lists, with one score an observation.

        Returns
        -------
        Tiers
            A list of two tiers each.

        See Also
        --------
        tierrank.losses.pl_partition : A loss of them.

        Examples
        --------
        >>> from tierrank.data import ClickLog
        >>> log = ClickLog.from_arrays(
        ...     [0, 0, 0], row=[4, 2, 7], position=[1, 2, 3], click=[0, 1, 0]
        ... )
        >>> log.lists("each").tiers()
        Tiers(1 list, 3 rows, 2 tiers)
          list 0: 1 > {0, 2}
        """
        return Tiers.from_labels(self.y, lengths=self.group)

    def __len__(self) -> int:
        return len(self.group)

    def __repr__(self) -> str:
        return (
            f"ClickLists({len(self):,} lists, {len(self.y):,} observations, "
            f"effective sample size {self.effective_sample_size:,.0f})"
        )


@dataclass(frozen=True, eq=False)
class ClickLog:
    """One entry an item that was shown, in sessions, with the place and whether it was clicked.

    Entries are sorted by session and place. A session without a click says nothing here. Build it
    with `from_frame` or `from_arrays`, which sort and check.

    Parameters
    ----------
    session : ndarray of int
        [entries] numbers of sessions, from 0.
    row : ndarray of int
        [entries] the row of X that was shown.
    position : ndarray of int
        [entries] its place, from 1; no two entries of a session have the same.
    click : ndarray of bool
        [entries] whether it was clicked.

    See Also
    --------
    ClickLists : What it says, as lists.
    tierrank.data.synthetic.simulate_clicks : A log of simulated people.

    Examples
    --------
    >>> from tierrank.data import ClickLog
    >>> log = ClickLog.from_arrays(
    ...     session=["u", "u", "v"], row=[0, 1, 1], position=[1, 2, 1], click=[0, 1, 1]
    ... )
    >>> log.n_sessions, log.click
    (2, array([False,  True,  True]))
    """

    session: IntArray
    row: IntArray
    position: IntArray
    click: BoolArray

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        session: str = "session",
        item: str = "item",
        position: str = "position",
        click: str = "click",
        items: Any = None,
    ) -> ClickLog:
        """Take a pandas or polars frame, or a mapping of columns, one row an item shown.

        Parameters
        ----------
        frame : DataFrame or mapping
            The log, in any order.
        session, item, position, click : str
            Its columns: the session (one page shown once), the item, its place from 1, and 0 or 1.
        items : array_like, optional
            [rows of X] the item that each row of X is about; None: items are numbers of rows of X.

        Returns
        -------
        ClickLog
            The log, sorted.

        Raises
        ------
        ValueError
            A column is missing, a place is not a whole number from 1, two entries of a session have
            the same place, or an item is not among `items`.

        See Also
        --------
        ClickLog.from_arrays : From columns without names.

        Examples
        --------
        >>> from tierrank.data import ClickLog
        >>> log = ClickLog.from_frame(
        ...     {
        ...         "session": ["u", "u", "u", "v", "v"],
        ...         "item": ["b", "a", "c", "a", "b"],
        ...         "position": [1, 2, 3, 1, 2],
        ...         "click": [0, 1, 0, 1, 0],
        ...     },
        ...     items=["a", "b", "c"],
        ... )
        >>> log.lists("each").tiers()
        Tiers(2 lists, 5 rows, 2 tiers a list)
          list 0: 0 > 1
          list 1: 3 > {2, 4}
        """
        names = {"session": session, "item": item, "position": position, "click": click}
        there = list(getattr(frame, "column_names", getattr(frame, "columns", frame)))
        columns = {}
        for what, name in names.items():
            if name not in there:
                raise ArgumentError(
                    f"the log has no column {name!r}, but {', '.join(map(str, there))}: say which "
                    "it is by ", Argument(what), ".",
                )  # fmt: skip
            columns[what] = np.asarray(frame[name])
        shown = columns["item"]
        if items is not None:
            shown = _places(shown, np.asarray(items))
        return cls.from_arrays(columns["session"], shown, columns["position"], columns["click"])

    @classmethod
    def from_arrays(cls, session: Any, row: Any, position: Any, click: Any) -> ClickLog:
        """Check columns of entries in any order, and sort them by session and place.

        Parameters
        ----------
        session : array_like
            [entries] the session of each: numbers, strings or anything else that sorts.
        row : array_like
            [entries] the row of X that was shown.
        position : array_like
            [entries] its place, from 1.
        click : array_like
            [entries] 0 or 1.

        Returns
        -------
        ClickLog
            The log, sorted.

        Raises
        ------
        ValueError
            The columns differ in length, or a value is not of its kind; the message says which
            entry.

        See Also
        --------
        ClickLog.from_frame : From a frame with names.

        Examples
        --------
        >>> from tierrank.data import ClickLog
        >>> log = ClickLog.from_arrays([7, 7], row=[3, 5], position=[2, 1], click=[1, 0])
        >>> log.row, log.position
        (array([5, 3]), array([1, 2]))
        """
        number = _sorted_sessions(as_keys(session))
        count = len(number)
        rows = whole_numbers("row", row, count, 0)
        places = whole_numbers("position", position, count, 1)
        clicks = whole_numbers("click", click, count, 0, 1).astype(bool)
        order = np.lexsort((places, number))
        log = cls(number[order], rows[order], places[order], clicks[order])
        same = log.session[1:] == log.session[:-1]
        twice = same & (log.position[1:] == log.position[:-1])
        if twice.any():
            at = order[int(twice.argmax())]
            raise ValueError(
                f"session {np.asarray(session)[at]!r} shows two items at position {places[at]}: "
                "give each page that was shown a session of its own"
            )
        return log

    @property
    def n_sessions(self) -> int:
        """How many sessions there are."""
        return int(self.session[-1]) + 1 if len(self.session) else 0

    def lists(
        self,
        compare: Compare = "weighed",
        *,
        examined: Literal["last-click"] | int | Any = None,
        propensities: Any = None,
        clip: float = 100.0,
    ) -> ClickLists:
        """Make lists of two tiers of what the clicks say; equal lists are counted together.

        Parameters
        ----------
        compare : {"weighed", "unclicked", "each", "skip-above"}
            "weighed": a click over all else that was shown, a list a click, which weighs 1 over the
            propensity of its place; "each": the same unweighted, with positions, so that a ranker
            learns their biases with its scores; "unclicked": all that was clicked over all that was
            not, a list a session, with positions; "skip-above": a click over what was not clicked
            and stood above it, a list a click.
        examined : "last-click", int or array_like, optional
            How far a page was looked at. What lies below is left out: it is not worse, it was not
            seen. None: all of it; a number of places; "last-click": down to the last click; or
            [sessions] a number for each, in sorted order.
        propensities : Propensities or array_like, optional
            [positions] the probability that each place is looked at, for "weighed". None: they are
            learned from the log, by the method of that name.
        clip : float
            Largest such weight, of one click; it bounds the variance, and biases.

        Returns
        -------
        ClickLists
            What `fit` takes.

        Raises
        ------
        ValueError
            An option is none of those above, a propensity is not in (0, 1], one that is needed is
            missing, or the log does not tell one place from another.

        See Also
        --------
        ClickLog.propensities : Learns how likely each place is looked at.
        tierrank.losses.PositionBias : Learns the bias of places together with the scores.

        Examples
        --------
        >>> from tierrank.data import ClickLog
        >>> log = ClickLog.from_arrays(
        ...     [0, 0, 0], row=[4, 2, 7], position=[1, 2, 3], click=[0, 1, 0]
        ... )
        >>> log.lists("skip-above").rows  # the click, and what stood above it
        array([4, 2])
        >>> log.lists(propensities=[1.0, 0.5, 0.2]).weights  # 1 / 0.5
        array([2.])
        """
        if compare not in ("weighed", "unclicked", "each", "skip-above"):
            raise ValueError(
                f'compare is "weighed", "unclicked", "each" or "skip-above", not {compare!r}'
            )
        if propensities is not None and compare != "weighed":
            raise ArgumentError(
                Argument("propensities"), f' go with compare="weighed", not {compare!r}.'
            )
        log = self._examined(examined)
        inverse = None
        if compare == "weighed":
            if propensities is None:
                if isinstance(examined, str):
                    raise ValueError(
                        f'examined="{examined}" depends on the clicks, so that no propensities can '
                        "be learned of what is left: give them, or another compare"
                    )
                propensities = log.propensities()
            if isinstance(propensities, Propensities):
                propensities = propensities.values
            inverse = 1 / _propensities(propensities, log.position)
        if compare == "unclicked":
            pieces = _Pieces(np.arange(len(log.session)), log.session, log.click)
        else:
            pieces = log._a_list_a_click(above_only=compare == "skip-above")
        weights = np.ones(int(pieces.list.max(initial=-1)) + 1)
        clipped = 0.0
        if inverse is not None:
            if not clip >= 1:
                raise ArgumentError(Argument("clip"), f" is a number from 1, not {clip!r}.")
            given = inverse[pieces.entry[pieces.above]]  # in the order of the lists
            weights = np.minimum(given, clip)
            clipped = float((given > clip).mean()) if len(given) else 0.0
        return log._counted(pieces, weights, clipped, positions=inverse is None)

    def propensities(self, *, smoothing: float = 1.0) -> Propensities:
        """Learn how likely each place is looked at, from rows that were shown at several.

        A click is compared with all other showings of the same row, so that it does not matter
        what a row is worth; docs/clicks.md has the likelihood. It is for clicks that come about
        each on its own, by what is looked at and what it is worth.

        Parameters
        ----------
        smoothing : float
            Precision of the steps between the biases of adjacent places, a random walk; 0 is
            maximum likelihood.

        Returns
        -------
        Propensities
            With standard errors.

        Raises
        ------
        ValueError
            The log does not tell one place from another.

        Warns
        -----
        UserWarning
            Every session has a click, as if the others had been left out.

        See Also
        --------
        ClickLog.lists : Weighs clicks by them.

        Examples
        --------
        >>> from tierrank.data.synthetic import simulate_clicks
        >>> log = simulate_clicks([2, 0, 1], [7] * 3, [0.2, 0.3, 0.0], 40_000, noise=0.3, seed=1)
        >>> log.propensities().values.round(2)  # 1, 1/2, 1/3
        array([1.  , 0.5 , 0.34])
        """
        found = learned(self.row, self.position, self.click, smoothing)
        clicked = np.unique(self.session[self.click])
        if len(clicked) == self.n_sessions >= FEW_SESSIONS:
            warnings.warn(
                "every session of the log has a click. If those without one were left out, "
                "propensities are biased towards each other: what was shown to no avail counts, "
                'too. If a user always clicks, compare="unclicked" learns biases of places with '
                "the scores.",
                stacklevel=2,
            )
        return found

    def _examined(self, examined: Any) -> ClickLog:
        if examined is None:
            return self
        if isinstance(examined, str):
            if examined != "last-click":
                raise ValueError(f'examined is "last-click" or numbers, not {examined!r}')
            last = np.zeros(self.n_sessions, dtype=np.int64)
            np.maximum.at(last, self.session[self.click], self.position[self.click])
        else:
            given = np.asarray(examined)
            if not given.ndim:  # for all
                given = np.broadcast_to(given, self.n_sessions)
            last = whole_numbers(
                "examined", given, self.n_sessions, 0, each="session", where="for session"
            )
        keep = self.position <= last[self.session]
        hidden = ~keep & self.click
        if hidden.any():
            at = int(hidden.argmax())
            raise ValueError(
                f"session number {self.session[at]} has a click at position {self.position[at]}, "
                f"below the last place examined, {last[self.session[at]]}"
            )
        return ClickLog(*(getattr(self, name)[keep] for name in self.__dataclass_fields__))

    def _a_list_a_click(self, *, above_only: bool) -> _Pieces:
        """Each click beside the other entries of its session, or those above that are unclicked."""
        starts = np.searchsorted(self.session, np.arange(self.n_sessions + 1))
        clicks = np.flatnonzero(self.click)
        first = starts[self.session[clicks]]
        end = clicks + 1 if above_only else starts[self.session[clicks] + 1]
        sizes = end - first
        number = np.repeat(np.arange(len(clicks)), sizes)
        within = np.arange(len(number)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        entry = first[number] + within
        above = entry == clicks[number]
        if above_only:
            keep = above | ~self.click[entry]
            entry, number, above = entry[keep], number[keep], above[keep]
        return _Pieces(entry, number, above)

    def _counted(
        self, pieces: _Pieces, weights: FloatArray, clipped: float, *, positions: bool
    ) -> ClickLists:
        """Lists that say something, equal ones once, with the sum of their weights."""
        count = len(weights)
        above = np.bincount(pieces.list, pieces.above, count)
        size = np.bincount(pieces.list, minlength=count)
        tells = (above > 0) & (above < size)
        if not tells.any():
            raise ValueError(
                "no session tells one item from another: is the column of clicks right?"
            )
        total, squares = weights[tells].sum(), np.square(weights[tells]).sum()
        codes = self.row[pieces.entry] * 2 + pieces.above
        starts = np.cumsum(size) - size
        kept: list[tuple[AnyArray, AnyArray, AnyArray]] = []
        for length in np.unique(size[tells]):
            lists = np.flatnonzero(tells & (size == length))
            entries = starts[lists][:, None] + np.arange(length)
            if positions:
                table = np.hstack([codes[entries], self.position[pieces.entry[entries]]])
            else:  # the same items in another order are the same list
                order = np.argsort(codes[entries], axis=1)
                entries = np.take_along_axis(entries, order, axis=1)
                table = codes[entries]
            _, first, same = np.unique(table, axis=0, return_index=True, return_inverse=True)
            summed = np.bincount(same.reshape(-1), weights[lists])
            kept.append((entries[first].ravel(), np.full(len(first), length), summed))
        chosen, group, counts = (np.concatenate(part) for part in zip(*kept, strict=True))
        entry = pieces.entry[chosen]
        return ClickLists(
            pieces.above[chosen].astype(np.float64),
            self.row[entry],
            self.position[entry] if positions else None,
            group,
            counts,
            float(total**2 / squares),
            clipped,
        )


class _Pieces(NamedTuple):
    """Entries of a log, the list that each goes to (sorted), and whether it is above."""

    entry: IntArray
    list: IntArray
    above: BoolArray


def _sorted_sessions(keys: AnyArray) -> IntArray:
    """[entries] the number of each one's session, in sorted order."""
    if keys.ndim != 1:
        raise ArgumentError(Argument("session"), f" has shape {list(keys.shape)}: give one column.")
    missing = keys != keys  # NaN, of decimals and of dates
    if keys.dtype.kind == "O":
        missing = np.fromiter(map(is_missing, keys.tolist()), dtype=bool, count=len(keys))
    if missing.any():
        raise ArgumentError(
            Argument("session"), f" is missing in entry {int(missing.argmax())} (counted from 0), "
            f"and in {int(missing.sum()):,} in all: leave them out, or say which page each was "
            "shown on.",
        )  # fmt: skip
    try:
        return np.unique(keys, return_inverse=True)[1].reshape(-1)
    except TypeError:
        raise ArgumentError(
            Argument("session"), " has values that do not sort, such as numbers beside text: give "
            "all as text.",
        ) from None  # fmt: skip


def _places(keys: AnyArray, known: AnyArray) -> IntArray:
    """The place of each key among those known."""
    if known.ndim != 1 or not len(known) or any(map(is_missing, known.tolist())):
        raise ArgumentError(Argument("items"), " is the item of each row of X: give one a row.")
    try:
        values, first, counts = np.unique(known, return_index=True, return_counts=True)
        at = np.minimum(np.searchsorted(values, keys), len(values) - 1)
    except TypeError:
        raise ArgumentError(
            "items of the log, and ", Argument("items"), ", have values that do not sort, such as "
            "numbers or missing ones beside text: give all as text, and leave out what is missing.",
        ) from None  # fmt: skip
    if (counts > 1).any():
        twice = values[counts > 1][0]
        raise ArgumentError(
            Argument("items"), f" has {twice!r} twice: give each row one of its own."
        )
    absent = values[at] != keys
    if absent.any():
        raise ArgumentError(
            f"item {keys[absent].tolist()[0]!r} of the log is not among ", Argument("items"),
            f", and {int(absent.sum()):,} entries are of such: leave them out, or give their rows.",
        )  # fmt: skip
    return np.asarray(first[at])


def _propensities(given: Any, positions: IntArray) -> FloatArray:
    try:
        values = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise ArgumentError(Argument("propensities"), " are no numbers.") from None
    most = int(positions.max(initial=0))
    if values.ndim != 1 or len(values) < most:
        raise ArgumentError(
            Argument("propensities"),
            f" has shape {list(values.shape)}, but items were shown at {most:,} places: give one a "
            "place, the first first.",
        )
    if not ((values >= np.finfo(np.float64).tiny) & (values <= 1)).all():
        raise ArgumentError(Argument("propensities"), " are probabilities above 0, up to 1.")
    return np.asarray(values[positions - 1])


# -- how likely each place is looked at -----------------------------------------------------------

MOST_PLACES = 2_000  # second derivatives are a dense matrix
ROWS_A_PLACE = 5  # from which the squares of their slopes are their variance


@dataclass(frozen=True, eq=False)
class Propensities:
    """How likely each place is looked at, relative to the first, with standard errors.

    They come from `ClickLog.propensities`.

    Parameters
    ----------
    bias : ndarray of float
        [positions] log θ, 0 for the first.
    covariance : ndarray of float
        [positions, positions] of the biases; 0 for the first.

    See Also
    --------
    ClickLog.lists : Weighs clicks by them.

    Examples
    --------
    >>> from tierrank.data import Propensities
    >>> import numpy as np
    >>> found = Propensities(np.log([1.0, 0.5]), np.diag([0.0, 0.04]))
    >>> found.values, found.standard_errors
    (array([1. , 0.5]), array([0. , 0.2]))
    """

    bias: FloatArray
    covariance: FloatArray

    @property
    def values(self) -> FloatArray:
        """[positions] θ, where the largest is 1."""
        return np.asarray(np.exp(self.bias - self.bias.max()))

    @property
    def standard_errors(self) -> FloatArray:
        """[positions] of the biases."""
        return np.asarray(np.sqrt(np.diag(self.covariance)))

    def __repr__(self) -> str:
        shown = ", ".join(f"{value:.3g}" for value in self.values[:10])
        more = ", …" if len(self.bias) > 10 else ""
        return f"Propensities([{shown}{more}])"


def learned(row: IntArray, position: IntArray, click: AnyArray, smoothing: float) -> Propensities:
    """Propensities of the places of a log, by the likelihood above.

    Parameters
    ----------
    row, position, click
        [entries] of a log, those of sessions without a click as well
    smoothing
        κ

    Raises
    ------
    ValueError
        the log does not tell some place from another: no clicked row was shown at both
    """
    if not 0 <= smoothing < np.inf:
        raise ArgumentError(Argument("smoothing"), f" is a number from 0, not {smoothing!r}.")
    number = np.unique(row, return_inverse=True)[1].reshape(-1)
    clicked = np.bincount(number, click) > 0
    if not clicked.any():
        raise ValueError("nobody clicked: is the column of clicks right?")
    keep = clicked[number]  # a row without a click says nothing here
    places = int(position.max())
    if places > MOST_PLACES:
        raise ValueError(
            f"items were shown at up to {places:,} places, and propensities are learned of "
            f"{MOST_PLACES:,} at most: lists(examined={MOST_PLACES}) leaves out what lies below"
        )
    counts = _Counts(row[keep], position[keep] - 1, click[keep], places)
    counts.check_connected(smoothing)
    steps = np.diff(np.eye(places), axis=0)
    penalty = smoothing * steps.T @ steps
    if places == 1:
        return Propensities(np.zeros(1), np.zeros((1, 1)))
    clicks = float(counts.total.sum())
    damping = np.full(places - 1, clicks)

    def function(point: FloatArray) -> tuple[float, FloatArray]:
        bias = np.append(0.0, point)
        held = penalty @ bias
        value = float(bias @ held) / 2 - counts.log_likelihood(bias)
        return value, (held - np.asarray(counts.derivatives(bias)[0].sum(0)))[1:]

    def solve(point: FloatArray, gradient: FloatArray, _: float) -> FloatArray | None:
        hessian = counts.derivatives(np.append(0.0, point))[1]
        return by_cholesky((hessian + penalty)[1:, 1:], gradient, damping=damping)

    end = newton(function, solve, np.zeros(places - 1), weight=clicks)
    if not end.converged:
        raise ValueError("the propensities did not converge: give some smoothing")
    bias = np.append(0.0, end.point)
    slopes, hessian = counts.derivatives(bias)
    rows = slopes.shape[0]
    few = rows < ROWS_A_PLACE * places
    squares = hessian if few else rows / (rows - 1) * (slopes.T @ slopes).toarray()
    found = np.zeros((places, places))
    found[1:, 1:] = covariance(
        (hessian + penalty)[1:, 1:], (squares + penalty)[1:, 1:], vanished=0.0
    )
    return Propensities(bias, found)


class _Counts:
    """Showings and clicks of rows by place, of which each row has a few."""

    def __init__(self, row: IntArray, place: IntArray, click: AnyArray, places: int) -> None:
        from scipy import sparse

        values, number = np.unique(row, return_inverse=True)
        at, shape = (number.reshape(-1), place), (len(values), places)
        self.shown = sparse.csr_array((np.ones(len(row)), at), shape)
        self.clicks = sparse.csr_array((np.asarray(click, dtype=np.float64), at), shape)
        self.total = np.asarray(self.clicks.sum(1))

    def log_likelihood(self, bias: FloatArray) -> float:
        """Σ_ip c_ip b_p − Σ_i C_i log Σ_p n_ip exp(b_p)."""
        largest = bias.max()
        shown = np.log(self.shown @ np.exp(bias - largest)) + largest
        return float(np.asarray(self.clicks.sum(0)) @ bias - self.total @ shown)

    def derivatives(self, bias: FloatArray) -> tuple[Any, FloatArray]:
        """[rows, positions] slopes s_ip = c_ip − C_i q_ip; minus the sum of second derivatives."""
        share = self.shown.multiply(np.exp(bias - bias.max())[None, :]).tocsr()
        share = share.multiply(1 / np.asarray(share.sum(1))[:, None]).tocsr()
        expected = share.multiply(self.total[:, None]).tocsr()
        hessian = np.diag(np.asarray(expected.sum(0))) - (share.T @ expected).toarray()
        return self.clicks - expected, hessian

    def check_connected(self, smoothing: float) -> None:
        """Refuse places that nothing links, and without a penalty those that lie at infinity.

        Whoever was clicked at p and shown at q says that θ_p is not 0 beside θ_q.
        """
        from scipy import sparse
        from scipy.sparse.csgraph import connected_components

        above, among = (self.clicks > 0).astype(np.int8), (self.shown > 0).astype(np.int8)
        links = sparse.block_array([[None, above.T], [among, None]], format="csr")
        strong = smoothing == 0
        number = connected_components(
            links, directed=True, connection="strong" if strong else "weak"
        )[1][: above.shape[1]]
        asked = np.ones(len(number), bool) if strong else np.asarray(self.clicks.sum(0)) > 0
        if (number[asked] == number[asked][0]).all():
            return
        apart = np.flatnonzero(asked & (number != number[asked][0])) + 1
        first = np.flatnonzero(asked)[0] + 1
        if strong:
            raise ValueError(
                f"the log does not bound the propensity of place {apart[0]} beside that of place "
                f"{first}: no row was clicked at one and shown at the other, in both directions, "
                "or by way of other places. Give some smoothing."
            )
        raise ValueError(
            f"the log cannot tell place {apart[0]} from place {first}: no row that was clicked was "
            "shown at both, or at places that lead from one to the other. Give propensities, or "
            'have compare="each" learn biases of places with the scores.'
        )


# -- clicks drawn from known models of a user, on what a production ranker shows -------------------

ClickModel = Literal["position-based", "cascade", "plackett-luce"]


def attraction(
    labels: Any, positions: Any, *, noise: float = 0.1, trust: float = 0.0, top: float | None = None
) -> FloatArray:
    """Probability of a click on what is looked at: ε_p + (1 − ε_p) (2^grade − 1) / (2^top − 1).

    ε_p = noise · p^−trust is that of an irrelevant item: with trust above 0, users believe what
    stands on top to be relevant.
    """
    grades = np.asarray(labels, dtype=np.float64)
    highest = float(grades.max()) if top is None else top
    lowest = np.exp2(-highest)  # times 2^highest, which may overflow, it is 1
    relevance = (np.exp2(grades - highest) - lowest) / (1 - lowest)
    error = noise * np.asarray(positions, dtype=np.float64) ** -trust
    return np.asarray(error + (1 - error) * relevance)


def simulate_clicks(
    labels: Any,
    qid: Any,
    scores: Any,
    sessions: int,
    *,
    model: ClickModel = "position-based",
    depth: int = 10,
    temperature: float = 0.5,
    eta: float = 1.0,
    noise: float = 0.1,
    trust: float = 0.0,
    stop: float = 1.0,
    clicks: int = 1,
    seed: int = 0,
) -> ClickLog:
    """Draw sessions of queries alike, whose first places a production ranker fills.

    It ranks by score + temperature · Gumbel: at 0 always alike, so that no log can tell place from
    item. An item has the `attraction` a, and place p is looked at with propensity θ_p = p^−eta:

    "position-based"
        a click with probability θ_p a, each on its own
    "cascade"
        down from the top: a click with probability a; after one, the user leaves with probability
        `stop`, and else looks at the next
    "plackett-luce"
        so many `clicks`, the first of a ranking by log a + log θ_p + Gumbel: "clicked over not
        clicked" then has the likelihood of the rankers with `positions`, exactly

    Parameters
    ----------
    labels : array_like
        [rows] grades.
    qid : array_like
        [rows] queries.
    scores : array_like
        [rows] those of the production ranker.
    sessions : int
        How many.
    model : {"position-based", "cascade", "plackett-luce"}
        How people click, as above.
    depth : int
        Places of a page.
    temperature : float
        How much the production ranker varies what it shows.
    eta : float
        How fast attention falls with the place.
    noise, trust : float
        Of `attraction`.
    stop : float
        With "cascade", the probability to leave after a click.
    clicks : int
        With "plackett-luce", how many a session has.
    seed : int
        Of all that is drawn.

    Returns
    -------
    ClickLog
        What was shown, and what was clicked.

    Raises
    ------
    ValueError
        A number is out of its range, or no label is above 0.

    See Also
    --------
    tierrank.data.ClickLog.lists : What the clicks say.

    Examples
    --------
    >>> from tierrank.data.synthetic import simulate_clicks
    >>> log = simulate_clicks([2, 0, 1, 0], [7, 7, 7, 7], [0.1, 0.9, 0.5, 0.2], 1000, seed=1)
    >>> log.n_sessions, int(log.position.max())
    (1000, 4)
    """
    grades, base = np.asarray(labels, dtype=np.float64), np.asarray(scores, dtype=np.float64)
    if grades.shape != base.shape or grades.ndim != 1 or not len(grades):
        raise ValueError("labels and scores are [rows], with at least one")
    if not (np.isfinite(base).all() and np.isfinite(grades).all() and grades.max() > 0):
        raise ValueError("labels and scores are finite, and some label is above 0")
    if grades.min() < 0:
        raise ValueError(f"labels are grades from 0, not {grades.min()}")
    if model not in ("position-based", "cascade", "plackett-luce"):
        raise ValueError(f'model is "position-based", "cascade" or "plackett-luce", not {model!r}')
    for name, number in (("sessions", sessions), ("depth", depth), ("clicks", clicks)):
        check_count(name, number)
    for name, size in (("temperature", temperature), ("eta", eta), ("trust", trust)):
        check_size(name, size, zero=True)
    for name, share in (("noise", noise), ("stop", stop)):
        if not 0 <= share <= 1:
            raise ArgumentError(Argument(name), f" is a probability, not {share!r}")
    random = np.random.default_rng(seed)
    query = group_rows(np.asarray(qid), len(grades))[0]
    rows = np.argsort(query, kind="stable")
    sizes = np.bincount(query)
    starts = np.cumsum(sizes) - sizes
    drawn = np.sort(random.integers(len(sizes), size=sessions))
    # all rows of each session's query, in the order of the perturbed scores
    session = np.repeat(np.arange(sessions), sizes[drawn])
    within = np.arange(len(session)) - np.repeat(
        np.cumsum(sizes[drawn]) - sizes[drawn], sizes[drawn]
    )
    row = rows[starts[drawn][session] + within]
    order = np.lexsort((-(base[row] + temperature * random.gumbel(size=len(row))), session))
    shown = order[within < depth]  # place by place, since `within` counts a session's rows
    session, row, position = session[shown], row[shown], within[within < depth] + 1
    appeal = attraction(grades[row], position, noise=noise, trust=trust, top=float(grades.max()))
    uniform = random.random(len(row))
    if model == "cascade":
        click = _cascade(session, position, uniform < appeal, random.random(len(row)) < stop)
    elif model == "position-based":
        click = uniform < appeal * position**-eta
    else:
        with np.errstate(divide="ignore"):
            value = np.log(appeal) - eta * np.log(position) + random.gumbel(size=len(row))
        best = np.lexsort((-value, session))
        click = np.zeros(len(row), dtype=bool)
        click[best[position <= clicks]] = True
    return ClickLog(session, row, position, click)


def _cascade(
    session: AnyArray, position: AnyArray, attracted: AnyArray, leaves: AnyArray
) -> AnyArray:
    """Which attractive items are reached: those that no user left above."""
    ends = np.cumsum(attracted & leaves)
    before: AnyArray = ends - (attracted & leaves)  # up to the entry above, over all sessions
    at_start: AnyArray = before[position == 1][session]
    return np.asarray(attracted & (before == at_start))
