"""Click logs as lists of tiers: what was shown where, and what a click says of it."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from tierrank._types import AnyArray, BoolArray, FloatArray, IntArray
from tierrank.data.propensities import Propensities, learned
from tierrank.errors import Argument, ArgumentError
from tierrank.tiers import Tiers

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
        there = list(getattr(frame, "columns", frame))
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
        number = np.unique(np.asarray(session), return_inverse=True)[1].reshape(-1)
        count = len(number)
        rows = _whole("row", row, count, 0)
        places = _whole("position", position, count, 1)
        clicks = _whole("click", click, count, 0, 1).astype(bool)
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
            given = np.broadcast_to(np.asarray(examined), self.n_sessions)
            last = _whole("examined", given, self.n_sessions, 0)
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


def _places(keys: AnyArray, known: AnyArray) -> IntArray:
    """The place of each key among those known."""
    values, first, counts = np.unique(known, return_index=True, return_counts=True)
    if (counts > 1).any():
        twice = values[counts > 1][0]
        raise ArgumentError(
            Argument("items"), f" has {twice!r} twice: give each row one of its own."
        )
    at = np.minimum(np.searchsorted(values, keys), len(values) - 1)
    absent = values[at] != keys
    if absent.any():
        raise ArgumentError(
            f"item {keys[absent][0]!r} of the log is not among ", Argument("items"),
            f", and {int(absent.sum()):,} entries are of such: leave them out, or give their rows.",
        )  # fmt: skip
    return np.asarray(first[at])


def _whole(name: str, given: Any, count: int, least: int, most: int | None = None) -> IntArray:
    values = np.asarray(given)
    if values.shape != (count,):
        raise ArgumentError(
            Argument(name), f" has shape {list(values.shape)}, but there are {count:,} entries."
        )
    try:
        numbers = values.astype(np.float64)
    except (TypeError, ValueError):
        raise ArgumentError(Argument(name), " holds no numbers.") from None
    wrong = ~(np.isfinite(numbers) & (numbers >= least) & (numbers == np.floor(numbers)))
    if most is not None:
        wrong |= numbers > most
    if wrong.any():
        at = int(wrong.argmax())
        limit = f"{least} or more" if most is None else f"{least} to {most}"
        raise ArgumentError(
            Argument(name), f" is {values[at]} in entry {at} (counted from 0): give whole numbers, "
            f"{limit}.",
        )  # fmt: skip
    return numbers.astype(np.int64)


def _propensities(given: Any, positions: IntArray) -> FloatArray:
    values = np.asarray(given, dtype=np.float64)
    most = int(positions.max(initial=0))
    if values.ndim != 1 or len(values) < most:
        raise ArgumentError(
            Argument("propensities"),
            f" has shape {list(values.shape)}, but items were shown at {most:,} places: give one a "
            "place, the first first.",
        )
    if not ((values > 0) & (values <= 1)).all():
        raise ArgumentError(Argument("propensities"), " are probabilities above 0, up to 1.")
    return np.asarray(values[positions - 1])
