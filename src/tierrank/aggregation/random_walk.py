"""Log-worths that walk at random from period to period: the posterior mode, and how sure it is.

The unknowns are nodes: log-worths x of an item in a period in which it was seen, N of them. With s
the standard deviation of an item's first log-worth, and σ² the variance of the innovations of one
step, minus the log-density of all nodes is, but for a constant,

    Σ_first x² / (2 s²) + Σ_later (x − x_before)² / (2 σ² gap),     gap the steps between the two.

Steps in which an item was not seen need no unknowns: that part of a walk is a bridge, of variance
σ² · gap between its ends. Parameters beside the worths (of ties, of the first side) have a flat
density.

The Hessian is that of Kalman's filter in information form, and is factored in the order of time.
F is the precision [items, items] of every item's latest node by all that was seen so far. When
the items S are seen again, with q = 1 / (σ² gap), their old nodes are eliminated,

    A = F_SS + diag(q) = L Lᵀ,     V = L⁻¹ F_S,     F ← F − Vᵀ V     (Woodbury: (F⁻¹ + E q⁻¹ Eᵀ)⁻¹)

and the period's likelihood adds its second derivatives to F_SS. Nothing is approximated. A factor
takes Σ_periods |S| items² multiplications and Σ_periods |S| items = N items numbers of memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

import numpy as np
from scipy import linalg

from tierrank._types import FloatArray, IntArray
from tierrank.aggregation.games import Fixtures
from tierrank.aggregation.lists import CountedLists
from tierrank.aggregation.paired_likelihood import GamesTerm, Model
from tierrank.aggregation.terms import Sum, terms_of
from tierrank.tiers import Tiers
from tierrank.tiers.selection import equal_lists
from tierrank.training.optim import Iterated, Minimum, newton

SMALL = 1000  # items up to which a matrix is too small for several threads to gain anything
LOG_2_PI = float(np.log(2 * np.pi))
ENOUGH = 1e-2  # nats that a step gained, after which the next one gains its square


# -- who was seen when ----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Nodes:
    """Log-worths that are unknown: of each item, in each period in which it was seen.

    Attributes
    ----------
    items
        how many items there are, each of them seen
    positions
        [periods] of those in which something was seen, in steps, ascending
    item, period
        [nodes] numbers, ascending by period and then by item
    before
        [nodes] the same item's node before; −1 for its first
    gap
        [nodes] steps since then, at least 1; 0 for an item's first
    borders
        [periods + 1] ranges of nodes
    """

    items: int
    positions: IntArray
    item: IntArray
    period: IntArray
    before: IntArray
    gap: IntArray
    borders: IntArray

    @classmethod
    def of(cls, items: int, item: IntArray, position: IntArray) -> tuple[Nodes, IntArray]:
        """The nodes of items seen at positions, [seen] each; and [seen] the node of each."""
        positions, period = np.unique(position, return_inverse=True)
        keys, node = np.unique(period * items + item, return_inverse=True)
        period, item = np.divmod(keys, items)
        order = np.lexsort((period, item))
        before = np.full(len(keys), -1)
        same = item[order[1:]] == item[order[:-1]]
        before[order[1:][same]] = order[:-1][same]
        gap = np.where(before >= 0, positions[period] - positions[period[before]], 0)
        borders = np.searchsorted(period, np.arange(len(positions) + 1))
        return cls(items, positions, item, period, before, gap, borders), node

    def __len__(self) -> int:
        return len(self.item)

    @property
    def first(self) -> IntArray:
        """Nodes that are the first of their item."""
        return np.flatnonzero(self.before < 0)

    @property
    def later(self) -> IntArray:
        """All others."""
        return np.flatnonzero(self.before >= 0)

    def around(self) -> tuple[IntArray, IntArray]:
        """[items, periods] each item's latest node then, and the next one.

        At one of its nodes both are that one; where there is none on a side, they are the other.
        """
        none = len(self)
        next_ = np.full((self.items, len(self.positions)), none)
        next_[self.item, self.period] = np.arange(none)
        latest = np.where(next_ < none, next_, -1)
        np.maximum.accumulate(latest, axis=1, out=latest)
        np.minimum.accumulate(next_[:, ::-1], axis=1, out=next_[:, ::-1])
        return np.where(latest < 0, next_, latest), np.where(next_ == none, latest, next_)


class Walk:
    """Minus the log-density of nodes.

    Parameters
    ----------
    nodes
        the unknowns
    scale
        standard deviation of an item's first log-worth
    variance
        of the innovations of one step
    """

    def __init__(self, nodes: Nodes, scale: float, variance: float) -> None:
        self.nodes, self.precision = nodes, scale**-2
        self.later = nodes.later
        self.q = 1 / (variance * nodes.gap[self.later])  # precisions of what is added

    def value_and_gradient(self, x: FloatArray) -> tuple[float, FloatArray]:
        """With its constant, so that e^−value integrates to 1."""
        nodes, gradient = self.nodes, np.zeros(len(x))
        first = nodes.first
        gradient[first] = self.precision * x[first]
        added = x[self.later] - x[nodes.before[self.later]]
        pull = self.q * added
        gradient[self.later] += pull
        gradient[nodes.before[self.later]] -= pull  # a node comes before one other at most
        value = self.precision * float(x[first] @ x[first]) + float(added @ pull)
        value += len(x) * LOG_2_PI - len(first) * np.log(self.precision) - np.log(self.q).sum()
        return float(value / 2), gradient


# -- what was seen --------------------------------------------------------------------------------


class Curvature(NamedTuple):
    """Second derivatives of minus a log-likelihood by nodes and by k parameters beside them.

    `add(F, p)` adds those by the nodes of period p to the lower triangle of a matrix
    [items, items] in Fortran's order; `border` is [nodes, k], `corner` [k, k].
    """

    add: Callable[[FloatArray, int], None]
    border: FloatArray
    corner: FloatArray


class Seen(Protocol):
    """Minus the log-likelihood of what was seen, at points [nodes + k]."""

    k: int

    def value_and_gradient(self, point: FloatArray) -> tuple[float, FloatArray]:
        """The value, and its gradient."""

    def curvature(self, point: FloatArray) -> Curvature:
        """Its second derivatives."""


class SeenGames:
    """Games between nodes of the same period.

    Parameters
    ----------
    nodes
        the unknowns
    games
        with nodes for players, each kind once, ascending by node
    model, home
        as in `GamesTerm`
    """

    def __init__(self, nodes: Nodes, games: Fixtures, model: Model, *, home: bool) -> None:
        self.nodes, self.term = nodes, GamesTerm(games, model, home=home)
        self.k = self.term.size - len(nodes)
        met = self.term.meetings
        a, b = nodes.item[met.first], nodes.item[met.second]
        n = nodes.items
        low, high = np.minimum(a, b), np.maximum(a, b)
        self._places = np.stack([a, b, low], axis=1) * n + np.stack([a, b, high], axis=1)
        self._borders = np.searchsorted(met.first, nodes.borders)

    def value_and_gradient(self, point: FloatArray) -> tuple[float, FloatArray]:
        return self.term.value_and_gradient(point)

    def curvature(self, point: FloatArray) -> Curvature:
        position = self.term._position(point)
        games = position.games
        by_nodes, beside = (
            position.design[:, : len(self.nodes)],
            position.design[:, len(self.nodes) :],
        )
        curved = -games.dd
        scaled = beside.toarray() * curved[:, None]
        border, corner = by_nodes.T @ scaled, beside.T @ scaled
        if self.term.tie_at is not None:
            tie, mixed = self.term.tie_at - len(self.nodes), -games.dt
            border[:, tie] += by_nodes.T @ mixed
            crossed = beside.T @ mixed
            corner[tie] += crossed
            corner[:, tie] += crossed
            corner[tie, tie] -= games.tt.sum()
        entries = curved[:, None] * np.array([1.0, 1.0, -1.0])

        def add(matrix: FloatArray, period: int) -> None:
            which = slice(*self._borders[period : period + 2])
            np.add.at(matrix.T.reshape(-1), self._places[which], entries[which])

        return Curvature(add, border, corner)


class SeenLists:
    """Lists of nodes of the same period: exact Plackett-Luce likelihood, ties in it.

    Parameters
    ----------
    nodes
        the unknowns
    tiers, counts
        lists whose items are nodes, and how often each was seen
    period
        [lists] of each
    """

    k = 0

    def __init__(self, nodes: Nodes, tiers: Tiers, counts: FloatArray, period: IntArray) -> None:
        self.nodes, self._terms = nodes, []
        order = np.argsort(period, kind="stable")
        parts = np.split(order, np.searchsorted(period[order], np.arange(1, len(nodes.positions))))
        for start, stop, lists in zip(nodes.borders[:-1], nodes.borders[1:], parts, strict=True):
            chosen = tiers[lists]
            local = replace(
                chosen, items=chosen.items - int(start), n_items=int(stop - start), names=None
            )
            first, which = equal_lists(local)
            summed = np.bincount(which, counts[lists], len(first)).astype(np.float64)
            counted = CountedLists(local[first], summed, len(lists), float(summed.sum()), 0.0)
            self._terms.append(Sum(terms_of(counted, "pl-partition")))

    def value_and_gradient(self, point: FloatArray) -> tuple[float, FloatArray]:
        ranges = zip(self.nodes.borders[:-1], self.nodes.borders[1:], self._terms, strict=True)
        found = [term.value_and_gradient(point[start:stop]) for start, stop, term in ranges]
        return sum(value for value, _ in found), np.concatenate([slope for _, slope in found])

    def curvature(self, point: FloatArray) -> Curvature:
        def add(matrix: FloatArray, period: int) -> None:
            which = slice(*self.nodes.borders[period : period + 2])
            items = self.nodes.item[which]
            matrix[np.ix_(items, items)] += self._terms[period].hessian(point[which]).matrix()

        return Curvature(add, np.zeros((len(self.nodes), 0)), np.zeros((0, 0)))


# -- the Hessian, factored in the order of time ---------------------------------------------------


class Step(NamedTuple):
    """What elimination left of old nodes: of the items S that were seen again."""

    again: IntArray  # S
    lower: FloatArray  # L, of A
    rows: FloatArray  # V = L⁻¹ F_S


class Factor:
    """Second derivatives of `Walk` and what was seen, by the nodes, factored.

    Parameters
    ----------
    walk
        what is believed of nodes
    curvature
        of what was seen
    """

    def __init__(self, walk: Walk, curvature: Curvature) -> None:
        nodes = walk.nodes
        self.nodes, self.steps, self.log_det = nodes, [], 0.0
        n = nodes.items
        # only its lower triangle counts: BLAS then does half the work, in place
        precision = np.asfortranarray(np.diag(np.full(n, walk.precision)))
        q = np.zeros(len(nodes))
        q[walk.later] = walk.q
        for period, (start, stop) in enumerate(_pairs(nodes.borders)):
            known = nodes.gap[start:stop] > 0
            again = nodes.item[start:stop][known]
            if len(again):
                below = np.arange(n) <= again[:, None]
                rows = np.where(below, precision[again], precision[:, again].T)
                pivot = rows[:, again]
                pivot[np.diag_indices(len(again))] += q[start:stop][known]
                lower = linalg.cholesky(pivot, lower=True, overwrite_a=True, check_finite=False)
                rows = linalg.blas.dtrsm(1.0, lower, rows, lower=1)
                precision = linalg.blas.dsyrk(
                    -1.0, rows, 1.0, precision, trans=1, lower=1, overwrite_c=1
                )
                self.log_det += 2 * float(np.log(lower.diagonal()).sum())
            else:
                lower, rows = np.zeros((0, 0)), np.zeros((0, n))
            self.steps.append(Step(again, lower, rows))
            curvature.add(precision, period)
        self.last = linalg.cholesky(precision, lower=True, check_finite=False)
        self.log_det += 2 * float(np.log(self.last.diagonal()).sum())

    def solve(self, right: FloatArray) -> FloatArray:
        """[nodes, …] H⁻¹ · right."""
        nodes, out = self.nodes, np.empty_like(right)
        front = np.zeros((nodes.items, *right.shape[1:]))
        left = []
        for step, (start, stop) in zip(self.steps, _pairs(nodes.borders), strict=True):
            left.append(_solved(step.lower, front[step.again]))
            front -= step.rows.T @ left[-1]
            front[nodes.item[start:stop]] += right[start:stop]
        front = linalg.cho_solve((self.last, True), front, check_finite=False)
        for number in range(len(self.steps) - 1, -1, -1):
            step, (start, stop) = self.steps[number], nodes.borders[number : number + 2]
            out[start:stop] = front[nodes.item[start:stop]]
            front[step.again] += _solved(step.lower, left[number] - step.rows @ front, back=True)
        return out

    def last_covariance(self) -> FloatArray:
        """[items, items] of every item's last node."""
        return np.asarray(linalg.cho_solve((self.last, True), np.eye(self.nodes.items)))

    def smooth(self) -> Smoothed:
        """Variances at all nodes, backwards in time.

        The front x′ after a step gives that before it: x = M x′ + noise, M = I − E K,
        K = A⁻¹ F_S, and noise of covariance A⁻¹ on S. So C = M C′ Mᵀ + E A⁻¹ Eᵀ, of which only
        rows and columns S change; and a later node's covariance with the front, a row of G, goes
        to G Mᵀ.
        """
        nodes, n = self.nodes, self.nodes.items
        periods = len(nodes.positions)
        variance, cross = np.zeros(len(nodes)), np.zeros(len(nodes))
        rho, ahead = np.zeros((periods, n)), np.zeros((periods, n))
        c = self.last_covariance()
        g = np.zeros((n, n))  # of every item's next node, if there is one, with the front
        for number in range(periods - 1, -1, -1):
            step, (start, stop) = self.steps[number], nodes.borders[number : number + 2]
            items, again = nodes.item[start:stop], step.again
            variance[start:stop] = c[items, items]
            rho[number], ahead[number] = c.mean(axis=1), g.mean(axis=1)
            k = _solved(step.lower, step.rows, back=True)
            g[again] = c[again]
            g[:, again] -= g @ k.T
            rows = c[again] - k @ c
            known = np.flatnonzero(nodes.gap[start:stop] > 0)
            cross[start + known] = rows[np.arange(len(again)), again]
            inverse = _solved(step.lower, _solved(step.lower, np.eye(len(again))), back=True)
            corner = rows[:, again] - rows @ k.T + inverse
            c[again] = rows
            c[:, again] = rows.T
            c[np.ix_(again, again)] = (corner + corner.T) / 2
        return Smoothed(variance, cross, rho.T, ahead.T)


class Smoothed(NamedTuple):
    """Variances of nodes, given all that was seen.

    [nodes] of each, and its covariance with the node before; [items, periods] covariances of an
    item's latest node and of its next one with the average of all items' latest nodes.
    """

    variance: FloatArray
    cross: FloatArray
    latest_with_mean: FloatArray
    next_with_mean: FloatArray


def _pairs(borders: IntArray) -> Sequence[tuple[int, int]]:
    return list(zip(borders[:-1].tolist(), borders[1:].tolist(), strict=True))


def _solved(lower: FloatArray, right: FloatArray, *, back: bool = False) -> FloatArray:
    """L⁻¹ · right, or L⁻ᵀ · right."""
    if not len(lower):
        return right
    return np.asarray(
        linalg.solve_triangular(lower, right, lower=True, trans=int(back), check_finite=False)
    )


# -- the mode, and what it says -------------------------------------------------------------------


class Posterior:
    """The mode of nodes and parameters, with the normal approximation there.

    With B the Hessian by the nodes, X and D its border and corner: H⁻¹ of the nodes is
    B⁻¹ + Y S⁻¹ Yᵀ, Y = B⁻¹ X, S = D − Xᵀ Y; that of the parameters S⁻¹, and between them −Y S⁻¹.

    Attributes
    ----------
    point
        [nodes + k] the mode
    log_marginal
        Laplace's approximation to the log of the density of what was seen, nodes and parameters
        integrated out: −value + (N + k)/2 · log 2π − log det(H) / 2
    """

    def __init__(self, walk: Walk, seen: Seen, point: FloatArray) -> None:
        self.nodes, self.point = walk.nodes, point
        curvature = seen.curvature(point)
        self.factor = Factor(walk, curvature)
        self.y = self.factor.solve(curvature.border)
        schur = curvature.corner - curvature.border.T @ self.y
        self.beside = np.linalg.inv(schur)  # covariance of the parameters
        self.value = total(walk, seen, point)[0]
        log_det = self.factor.log_det + float(np.linalg.slogdet(schur)[1])
        self.log_marginal = -self.value + (len(point) * LOG_2_PI - log_det) / 2

    def at_the_end(self) -> tuple[FloatArray, FloatArray]:
        """[items] every item's last node; [items + k, items + k] covariance of these, centred."""
        nodes, n = self.nodes, self.nodes.items
        last = np.zeros(n)
        y = np.zeros((n, self.y.shape[1]))
        last[nodes.item], y[nodes.item] = self.point[: len(nodes)], self.y  # the last one stays
        covariance = np.zeros((n + len(self.beside),) * 2)
        covariance[:n, :n] = self.factor.last_covariance() + y @ self.beside @ y.T
        covariance[:n, n:] = -y @ self.beside
        covariance[n:, :n] = covariance[:n, n:].T
        covariance[n:, n:] = self.beside
        covariance[:n] -= covariance[:n].mean(axis=0)
        covariance[:, :n] -= covariance[:, :n].mean(axis=1, keepdims=True)
        return last - last.mean(), (covariance + covariance.T) / 2

    def curves(self, variance: float) -> tuple[FloatArray, FloatArray]:
        """[items, periods] log-worths and their variances, in all periods.

        They are counted from the average over all items of each one's latest node (its first,
        before that). Between two nodes, at λ of the way, the walk is a bridge,

            w = (1 − λ) x_before + λ x_next + noise of variance σ² gap λ (1 − λ),

        after the last x_last + noise of variance σ² steps, and before the first x_first.

        Parameters
        ----------
        variance
            σ² of one step
        """
        nodes, found = self.nodes, self.factor.smooth()
        latest, next_ = nodes.around()
        there, since = nodes.positions, nodes.positions[nodes.period[latest]]
        gap = nodes.positions[nodes.period[next_]] - since
        share = np.where(gap > 0, (there - since) / np.maximum(gap, 1), 0.0)
        noise = (
            np.where(gap > 0, gap * share * (1 - share), np.maximum(there - since, 0)) * variance
        )

        def along(values: FloatArray) -> FloatArray:
            ways = (1 - share) * values[latest] + share * values[next_]
            return np.asarray(ways - values[latest].mean(axis=0))

        spread = (1 - share) ** 2 * found.variance[latest] + noise
        spread += share**2 * found.variance[next_] + 2 * share * (1 - share) * found.cross[next_]
        spread -= 2 * ((1 - share) * found.latest_with_mean + share * found.next_with_mean)
        spread += found.latest_with_mean.mean(axis=0)
        ys = (
            np.stack([along(column) for column in self.y.T])
            if self.y.size
            else np.zeros((0, *spread.shape))
        )
        spread += np.einsum("aij,ab,bij->ij", ys, self.beside, ys)
        return along(self.point[: len(nodes)]), spread


def total(walk: Walk, seen: Seen, point: FloatArray) -> tuple[float, FloatArray]:
    """What is minimised, and its gradient."""
    value, gradient = seen.value_and_gradient(point)
    more, slope = walk.value_and_gradient(point[: len(walk.nodes)])
    gradient = gradient.copy()
    gradient[: len(slope)] += slope
    return value + more, gradient


def mode(
    walk: Walk,
    seen: Seen,
    start: FloatArray,
    *,
    max_iter: int,
    nearly: bool = False,
    iterated: Iterated | None = None,
) -> Minimum:
    """The minimum of `total`, by Newton's method.

    Parameters
    ----------
    walk, seen, start
        what is minimised, and where to begin
    max_iter, iterated
        as in `newton`
    nearly
        whether it may end where a step gained less than `ENOUGH`
    """
    before = np.inf
    n = len(walk.nodes)

    def solve(point: FloatArray, gradient: FloatArray, _: float) -> FloatArray:
        curvature = seen.curvature(point)
        factor = Factor(walk, curvature)
        both = factor.solve(np.column_stack([gradient[:n], curvature.border]))
        by_nodes, y = both[:, 0], both[:, 1:]
        schur = curvature.corner - curvature.border.T @ y
        values, vectors = np.linalg.eigh(schur)
        # far from the mode, Rao-Kupper's ties are not convex: go downhill all the same
        values = np.maximum(np.abs(values), 1e-8 * np.abs(np.diag(curvature.corner)).max(initial=1))
        beside = vectors @ ((vectors.T @ (gradient[n:] - curvature.border.T @ by_nodes)) / values)
        return np.concatenate([by_nodes - y @ beside, beside])

    def watch(point: FloatArray, value: float) -> bool:
        nonlocal before
        gained, before = before - value, value
        stop = iterated is not None and iterated(point, value)
        return stop or (nearly and gained < ENOUGH)

    return newton(
        lambda point: total(walk, seen, point), solve, start, max_iter=max_iter, iterated=watch
    )


# -- how far the walks go in a step ---------------------------------------------------------------

LEAST, MOST = 1e-7, 30.0  # variances of a step that are looked at
GUESS = 0.005  # where the search begins
CLOSE = 2e-3  # relative, of log σ²
NEAR, APART = 0.2, 1.0  # of log σ²: how far apart values are that tell a second derivative


class Variance(NamedTuple):
    """The variance of a step by the marginal likelihood, and the standard error of its logarithm.

    The error is None where the likelihood has no maximum between `LEAST` and `MOST`, or one so flat
    that an interval of two errors to either side would be longer than that.
    """

    value: float
    log_error: float | None
    point: FloatArray  # a mode to begin with


def estimate_variance(
    nodes: Nodes,
    seen: Seen,
    scale: float,
    start: FloatArray,
    *,
    max_iter: int,
    tried: Callable[[int, float], None] | None = None,
) -> Variance:
    """Maximise `Posterior.log_marginal` over log σ², by Brent's method.

    Parameters
    ----------
    nodes, seen, scale, start
        as in `Walk` and `mode`
    max_iter
        most steps of Newton's method at each σ²
    tried
        called after every σ² with how many there were, and minus the log-likelihood
    """
    from scipy.optimize import minimize_scalar

    point = start
    values: dict[float, float] = {}

    def loss(log_variance: float) -> float:
        nonlocal point
        inside = float(np.clip(log_variance, np.log(LEAST), np.log(MOST)))
        if inside not in values:
            walk = Walk(nodes, scale, float(np.exp(inside)))
            point = mode(walk, seen, point, max_iter=max_iter, nearly=True).point
            values[inside] = -Posterior(walk, seen, point).log_marginal
            if tried is not None:
                tried(len(values), values[inside])
        return values[inside] + (log_variance - inside) ** 2  # so that the search comes back

    guess = float(np.log(GUESS))
    found = minimize_scalar(
        loss, bracket=(guess - 1, guess), method="brent", options={"xtol": CLOSE}
    )
    best = float(np.clip(found.x, np.log(LEAST), np.log(MOST)))
    if not np.log(LEAST) + APART < best < np.log(MOST) - APART:
        return Variance(float(np.exp(best)), None, point)
    # the second derivative by a value on either side, of those that were tried where there are some
    left, right = (
        min((abs(each - best) for each in values if NEAR < way * (each - best) < APART),
            default=APART)
        for way in (-1, 1)
    )  # fmt: skip
    middle = loss(best)
    slopes = (loss(best - left) - middle) / left + (loss(best + right) - middle) / right
    curved = 2 * slopes / (left + right)
    flat = np.log(MOST / LEAST) * max(curved, 0.0) ** 0.5 < 4
    return Variance(float(np.exp(best)), None if flat else float(curved**-0.5), point)
