"""Which pairs to ask next, and how many games it takes to tell two items apart.

A game between i and j adds to the information of all parameters what it tells of d = w_i − w_j and
of a tie parameter t, if there is one. With a = e_i − e_j, A = [a, e_t] and K the 2 × 2 expected
information of a game about (d, t) (p (1 − p) of d alone, without ties), the covariance C becomes

    C' = (C⁻¹ + A K Aᵀ)⁻¹ = C − C A G Aᵀ C,     G = (K⁻¹ + S)⁻¹,  S = Aᵀ C A,
    G = (K + |K| adj S) / (1 + tr(K S) + |K| |S|),

the last also where K is singular. What is to become small is

    F(C) = Σ h_ij var(w_i − w_j) = tr(C L),     h_ij = 2 Φ(−|w_i − w_j| / √var(w_i − w_j)),

over the pairs with one item, or both, among the first k: how much the orders matter is how open
they are, as the estimates stand. L is the Laplacian of h. With M = C L C and Q = Aᵀ M A, a game
makes F smaller by tr(G Q), exactly. Pairs are chosen one after the other, each with C and M as all
before have left them: C' as above, and M' = C' L C' likewise, both of rank 2.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri

from tierrank._types import FloatArray, IntArray
from tierrank.aggregation.summary import text_table
from tierrank.errors import check_count
from tierrank.training.covariance import reach

if TYPE_CHECKING:
    from tierrank.aggregation.results import FittedWorths

MOST_CANDIDATES = 200_000  # pairs that are looked at again after every choice: all, of 632 items
MOST_ROUNDS = 200  # choices; of more games than these, some are of the same pair at once
MOST_GAMES = 2**62


class NextPair(NamedTuple):
    """A pair to ask next: how often, how probable a win of `first` is, and how much it tells.

    Parameters
    ----------
    first, second : object
        Names of the items.
    games : int
        How many games.
    probability : float
        How probable a win of `first` is.
    reduction : float
        The part of the variance of all that is open which these games take away.

    See Also
    --------
    NextPairs : All of them.

    Examples
    --------
    >>> import tierrank as tr
    >>> fitted = tr.RankAggregator().fit([["a", "b"], ["a", "b"], ["b", "a"]])
    >>> (pair,) = fitted.next_pairs(6)
    >>> pair.games, round(pair.probability, 3)
    (6, 0.667)
    """

    first: Any
    second: Any
    games: int
    probability: float
    reduction: float


@dataclass(frozen=True, eq=False)
class NextPairs:
    """Pairs to ask next; iterated, `NextPair`, those first that are to be asked first.

    Parameters
    ----------
    pairs : tuple of NextPair
        The different pairs.
    games : int
        How many games they are together.
    top : int
        How many first places are to become sure.
    before, after : float
        The mean variance of the differences that are open among the first places, weighted by how
        open their order is: as it stands, and as it will be after these games.
    standard_errors_before, standard_errors_after : ndarray of float
        [items] of the centred log-worths.

    See Also
    --------
    tierrank.RankAggregator.next_pairs : Gives them.

    Examples
    --------
    >>> import tierrank as tr
    >>> fitted = tr.RankAggregator().fit([["a", "b"], ["a", "b"], ["b", "a"]])
    >>> found = fitted.next_pairs(6)
    >>> found.games, found.after < found.before
    (6, True)
    """

    pairs: tuple[NextPair, ...]
    games: int
    top: int
    before: float
    after: float
    standard_errors_before: FloatArray
    standard_errors_after: FloatArray

    def __len__(self) -> int:
        return len(self.pairs)

    def __iter__(self) -> Iterator[NextPair]:
        return iter(self.pairs)

    def lines(self, most: int | None = None) -> list[str]:
        """Write the lines that are printed, of the first pairs or of all.

        Parameters
        ----------
        most : int, optional
            How many pairs; None for all.

        Returns
        -------
        list of str
            A headline, and a line a pair.

        See Also
        --------
        tierrank.RankAggregator.next_pairs : Chooses them.

        Examples
        --------
        >>> import tierrank as tr
        >>> fitted = tr.RankAggregator().fit([["a", "b"], ["a", "b"], ["b", "a"]])
        >>> fitted.next_pairs(6).lines()[-1].split()[:3]
        ['a', 'b', '6']
        """
        rows = [["first", "second", "games", "P(first wins)", "reduction"]]
        rows += [
            [str(pair.first), str(pair.second), f"{pair.games}", f"{pair.probability:.2f}",
             f"{100 * pair.reduction:.1f}%"]
            for pair in self.pairs[:most]
        ]  # fmt: skip
        more = len(self.pairs) - len(rows) + 1
        rest = [f"and {more:,} more pairs"] if more else []
        places = "place" if self.top == 1 else f"{self.top} places"
        return [
            f"{self.games:,} games that tell most about the first {places}: the mean variance of "
            f"differences whose order is open goes from {self.before:.4g} to {self.after:.4g}",
            *text_table(rows, left=0),
            *rest,
        ]

    def __str__(self) -> str:
        return "\n".join(self.lines())

    __repr__ = __str__


class GameInformation(NamedTuple):
    """Expected information of a game about (d, t): [pairs] each; 0 of t where there is none."""

    dd: FloatArray
    dt: FloatArray
    tt: FloatArray

    def times(self, games: float) -> GameInformation:
        """Of several games."""
        return GameInformation(games * self.dd, games * self.dt, games * self.tt)


def _gathered(k: GameInformation, s: GameInformation) -> GameInformation:
    """G = (K⁻¹ + S)⁻¹, also where K is singular."""
    of_k, of_s = (m.dd * m.tt - m.dt**2 for m in (k, s))
    scale = 1 + k.dd * s.dd + 2 * k.dt * s.dt + k.tt * s.tt + of_k * of_s
    return GameInformation(
        (k.dd + of_k * s.tt) / scale, (k.dt - of_k * s.dt) / scale, (k.tt + of_k * s.dd) / scale
    )


def _about(matrix: FloatArray, one: IntArray, other: IntArray, t: int | None) -> GameInformation:
    """[pairs] Aᵀ matrix A."""
    own = np.diag(matrix)
    dd = own[one] + own[other] - 2 * matrix[one, other]
    if t is None:
        return GameInformation(dd, np.zeros_like(dd), np.zeros_like(dd))
    return GameInformation(dd, matrix[one, t] - matrix[other, t], np.full_like(dd, matrix[t, t]))


def next_pairs(fitted: FittedWorths, number: int, top: int) -> NextPairs:
    """Choose so many games, greedily; see `FittedWorths.next_pairs`."""
    check_count("number", number)
    check_count("top", top)
    items = len(fitted.items_)
    if items < 2:
        raise ValueError("there is one item, and so no pair to ask about")
    top = min(top, items - 1)
    c, t = fitted._game_covariance()
    c = c.copy()
    laplacian, weight = _open_orders(fitted.log_worths_, c, top)
    m = np.zeros_like(c)
    m[:items] = laplacian @ c[:items]
    m = c[:, :items] @ m[:items]
    before = float(np.sum(c[:items, :items] * laplacian))
    errors_before = np.sqrt(np.diag(c)[:items])
    one, other = np.triu_indices(items, 1)
    k = fitted._game_information(fitted.log_worths_[one] - fitted.log_worths_[other])
    if len(one) > MOST_CANDIDATES:
        gains = _gains(k, c, m, one, other, t)
        kept = np.sort(np.argpartition(-gains, MOST_CANDIDATES)[:MOST_CANDIDATES])
        one, other, k = one[kept], other[kept], GameInformation(*(part[kept] for part in k))
    asked: dict[int, list[float]] = {}  # games, and by how much F fell
    rounds = min(number, MOST_ROUNDS)
    for games in np.diff(np.arange(rounds + 1) * number // rounds).tolist():
        several = k.times(games)
        gains = _gains(several, c, m, one, other, t)
        best = int(np.argmax(gains))
        seen = asked.setdefault(best, [0, 0.0])
        seen[0] += games
        seen[1] += float(gains[best])
        chosen = GameInformation(*(part[best : best + 1] for part in several))
        c, m = _after(chosen, c, m, int(one[best]), int(other[best]), t)
    w = fitted.log_worths_
    found = []
    for pair, (games, gain) in asked.items():
        better, worse = int(one[pair]), int(other[pair])
        if w[better] < w[worse]:
            better, worse = worse, better
        names = fitted.items_[better], fitted.items_[worse]
        chance = fitted._win_chance(float(w[better] - w[worse]))
        found.append(NextPair(*names, int(games), chance, gain / before if before else 0.0))
    after = float(np.sum(c[:items, :items] * laplacian))
    errors = np.sqrt(np.maximum(np.diag(c)[:items], 0.0))
    return NextPairs(
        tuple(found), number, top, before / weight, after / weight, errors_before, errors
    )


def _open_orders(w: FloatArray, c: FloatArray, top: int) -> tuple[FloatArray, float]:
    """[items, items] L, and Σ h: how open the orders between the first and all are."""
    items = len(w)
    first = np.argsort(-w, kind="stable")[:top]
    own = np.diag(c)[:items]
    variance = np.maximum(own[first][:, None] + own - 2 * c[first, :items], 0.0)
    distance = np.abs(w[first][:, None] - w)
    sure = variance <= 0  # an item and itself
    h = np.zeros((items, items))
    h[first] = np.where(sure, 0.0, 2 * ndtr(-distance / np.sqrt(np.where(sure, 1.0, variance))))
    h = np.maximum(h, h.T)  # a pair of two of the first counts once
    np.fill_diagonal(h, 0.0)
    weight = float(h.sum() / 2)
    if weight < np.finfo(float).tiny:
        raise ValueError(f"the order of the first {top} is as sure as it can be: raise top")
    return np.diag(h.sum(axis=1)) - h, weight


def _gains(
    k: GameInformation, c: FloatArray, m: FloatArray, one: IntArray, other: IntArray, t: int | None
) -> FloatArray:
    """[pairs] tr(G Q): by how much F becomes smaller."""
    s, q = (_about(matrix, one, other, t) for matrix in (c, m))
    if t is None:
        return np.asarray(k.dd * q.dd / (1 + k.dd * s.dd))
    g = _gathered(k, s)
    return np.asarray(g.dd * q.dd + 2 * g.dt * q.dt + g.tt * q.tt)


def _after(
    k: GameInformation, c: FloatArray, m: FloatArray, one: int, other: int, t: int | None
) -> tuple[FloatArray, FloatArray]:
    """C' = C − U G Uᵀ, U = C A; M' = C' L C' = M − U G Vᵀ − V G Uᵀ + U G Q G Uᵀ, V = M A."""
    pair = np.array([one]), np.array([other])
    g, q = _gathered(k, _about(c, *pair, t)), _about(m, *pair, t)
    gathered, middle = (
        np.array([[each.dd[0], each.dt[0]], [each.dt[0], each.tt[0]]]) for each in (g, q)
    )
    u, v = (
        np.stack([matrix[:, one] - matrix[:, other],
                  np.zeros(len(c)) if t is None else matrix[:, t]], axis=1)
        for matrix in (c, m)
    )  # fmt: skip
    crossed = u @ gathered @ v.T
    squared = u @ (gathered @ middle @ gathered) @ u.T
    return c - u @ gathered @ u.T, m - crossed - crossed.T + squared


def games_to_separate(fitted: FittedWorths, a: Any, b: Any, level: float, power: float) -> int:
    """How many more games of two items; see `FittedWorths.games_to_separate`.

    With v the variance of d = w_a − w_b now and v_n after n games, the estimate will then be normal
    about d with variance v_n (1 − v_n / v), which is what new games add. It is told from 0 with
    this power if d − z √v_n ≥ z' √(v_n (1 − v_n / v)), z and z' the quantiles of level and power.
    """
    one, other = fitted._codes([a, b])
    if one == other:
        raise ValueError(f"{a!r} is one item: name two")
    if not 0 < power < 1:
        raise ValueError(f"power is between 0 and 1, not {power}")
    z, needed = reach(level), float(ndtri(power))
    lead = np.array([fitted.log_worths_[one] - fitted.log_worths_[other]])
    if not lead[0]:
        raise ValueError(f"{a!r} and {b!r} have the same estimate: no number of games tells them")
    c, t = fitted._game_covariance([a, b])
    k, s = fitted._game_information(lead), _about(c, np.array([0]), np.array([1]), t)
    now, distance = float(s.dd[0]), abs(float(lead[0]))

    def told(games: int) -> bool:
        """Whether so many suffice."""
        g = _gathered(k.times(games), s)
        taken = g.dd * s.dd**2 + 2 * g.dt * s.dd * s.dt + g.tt * s.dt**2
        later = max(now - float(taken[0]), 0.0)
        return bool(
            distance - z * later**0.5 >= needed * (later * max(1 - later / now, 0.0)) ** 0.5
        )

    if told(0):
        return 0
    few, many = 0, 1
    while not told(many):
        few, many = many, 2 * many
        if many > MOST_GAMES:
            raise ValueError(f"{a!r} and {b!r} are too close: no number of games tells them apart")
    while many - few > 1:
        middle = (few + many) // 2
        few, many = (few, middle) if told(middle) else (middle, many)
    return many
