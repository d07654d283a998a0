"""Does one worth an item explain what was seen? Pairs as observed against pairs as expected.

Of every pair that met, the wins, ties and losses of the better item stand beside what the fitted
model expects of as many games. What is asked of them:

- *Pearson's statistic* X² = Σ (observed − expected)² / expected over all cells. Its reference is χ²
  only where every pair met often; else data are drawn from the fitted model, worths are estimated
  from these anew, and X² is computed again (a parametric bootstrap). With U(θ) the gradient of the
  log-likelihood, C the inverse information at the estimate θ and P the prior's part of that
  information (0 without one), the estimate θ* from drawn data is where

      U*(θ*) − P (θ* − θ) = U(θ),     by some steps  θ* ← θ* + C (U*(θ*) − P (θ* − θ) − U(θ)).

  (One step is not enough: of 6,000 pairs that met once or twice, X² was too small by half its
  standard deviation. A step d changes X² by at most √(dᵀ C⁻¹ d) of its standard deviations, as the
  gradient of X² is cov(X², U), and steps shrink by the same factor each: so the last is known.)
- *Pairs*. s = wins − losses has the residual r = s − E s, and, as θ was fitted to s among others,
  var r = V − J C Jᵀ, with V = var s and J = ∂E s/∂θ = cov(s, U). So r/√var r is standardised. The
  p-value of a pair is the exact binomial one of its decided games, at the fitted probability; it is
  adjusted for the number of pairs by Holm's method.
- *Triples*: how often a beats b more often than not, b c, and c a. With q_ij the probability that i
  has the majority of the decided games of i and j, E = tr(q³)/3 are expected if pairs are
  independent. As fitted worths are spread wider than true ones, that is too few by a little: so
  the number less E is compared with the same of drawn data, E there being by θ*. A cycle is no
  chance only if all its three majorities are none: its p-value is the largest of the three (an
  intersection-union test), times the number of cycles that could have been.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy.sparse import csr_array
from scipy.special import betainc, chdtrc, expit

from tierrank._types import AnyArray, BoolArray, FloatArray, IntArray
from tierrank.aggregation.games import Fixtures
from tierrank.aggregation.lists import CountedLists, largest_ties
from tierrank.aggregation.paired_likelihood import GamesTerm, probabilities, side_log_worths
from tierrank.aggregation.summary import text_table
from tierrank.names import counted
from tierrank.training.optim import Hessian, one_blas_thread

MOST_DRAWS, FEWEST_DRAWS = 199, 19
GAMES_DRAWN = 5_000_000  # kinds of games, of all draws together: some seconds
PAIRS_DRAWN = 200_000_000  # the same of lists' pairs
MOST_PAIRS = 20_000_000  # pairs of all lists: 500 MB, and seconds a draw
MOST_COPIES = 2.0**53
CROWDED, FEW = 5.0, 1.0  # expected counts of cells, for χ²: in four cells of five, and in all
STEPS = 8  # towards an estimate from drawn data, at most
NEAR = 1e-6  # the square of a step in standard errors that is not worth its gradient
LEFT = 1e-9  # part of a variance that is a rounding error: the pair was fitted exactly
SIGNIFICANT = 0.05
MOST_SUMMED = 200  # games, whose binomial tails are sums
IN_CACHE = 1 << 14  # pairs at once

WIN, TIE, LOSS = range(3)
SIGN = np.array([1.0, 0.0, -1.0])  # of an outcome, in s


class PairFit(NamedTuple):
    """A pair of items as it was seen and as the model expects it, from the view of `first`.

    Parameters
    ----------
    first, second : object
        Names of the items.
    wins, ties, losses : float
        As observed.
    expected_wins, expected_ties, expected_losses : float
        As the model has them.
    residual : float
        Of wins − losses, standardised.
    p_value, adjusted_p : float
        Of the decided games, exact; and adjusted by Holm's method.

    See Also
    --------
    GoodnessOfFit.worst : Gives them.

    Examples
    --------
    >>> import tierrank as tr
    >>> games = [("rock", "scissors", 1), ("scissors", "paper", 1), ("paper", "rock", 1)] * 10
    >>> fit = tr.PairedTies("bradley-terry").fit(games).goodness()
    >>> fit.pair(0).wins + fit.pair(0).losses
    10.0
    """

    first: Any
    second: Any
    wins: float
    ties: float
    losses: float
    expected_wins: float
    expected_ties: float
    expected_losses: float
    residual: float
    p_value: float
    adjusted_p: float


class Cycle(NamedTuple):
    """Three items, each of which beat the next more often than not, and the last the first.

    `weakest` is the smallest share of decided games that one of the three won.
    """

    items: tuple[Any, Any, Any]
    weakest: float
    p_value: float
    adjusted_p: float


@dataclass(frozen=True)
class CyclicTriples:
    """Triples of items whose majorities go round in a circle.

    Parameters
    ----------
    triples : int
        How many triples met in all three pairs, with a majority in each.
    cyclic : int
        How many of them are circles.
    expected : float
        The number that is expected by the model.
    low, high : float
        The 2.5 and 97.5 percentiles of that.
    p_value : float
        How often it exceeds what is expected as much in data drawn from the model.
    worst : tuple of Cycle
        The circles that are the least chance, first; only those whose p-value, before it is
        adjusted, is at most 0.05.

    See Also
    --------
    GoodnessOfFit : Has them as `triples`.

    Examples
    --------
    >>> import tierrank as tr
    >>> games = [("rock", "scissors", 1), ("scissors", "paper", 1), ("paper", "rock", 1)] * 10
    >>> circles = tr.PairedTies("bradley-terry").fit(games).goodness().triples
    >>> circles.triples, circles.cyclic
    (1, 1)
    """

    triples: int
    cyclic: int
    expected: float
    low: float
    high: float
    p_value: float
    worst: tuple[Cycle, ...]


@dataclass(frozen=True, eq=False)
class GoodnessOfFit:
    """What was seen of pairs of items, against what the fitted model expects.

    Parameters
    ----------
    items : tuple
        Names (of teams: the sides that met).
    first, second : ndarray of int
        [pairs] numbers of the items that met; the first is the one with the larger worth.
    wins, ties, losses : ndarray of float
        [pairs] of the first, as observed. Of lists: how often it was above, in one tier with, and
        below the second.
    expected_wins, expected_ties, expected_losses : ndarray of float
        [pairs] as many games, or lists, under the model. Where the model has none for ties, these
        are as observed.
    residuals : ndarray of float
        [pairs] of wins − losses, standardised: positive where the first did better than the model
        says, and beyond ±3 rarely, if the model is right.
    p_values, adjusted_p : ndarray of float
        [pairs] of the decided games, exact; and adjusted by Holm's method, so that one below 0.05
        is there by chance in one of twenty data sets.
    statistic : float
        Pearson's, over all cells.
    degrees_of_freedom : int
        The number of free cells (of lists, whose pairs depend on each other, only a count).
    p_value : float or None
        How often the statistic is as large where the model is right; None: there is no test.
    reference : str
        Where that comes from, or why there is none, in words.
    draws : int
        Number of data sets that were drawn from the model.
    triples : CyclicTriples
        Triples that are intransitive.
    shown : int
        How many pairs are listed.

    See Also
    --------
    tierrank.RankAggregator.goodness : Gives it.

    Examples
    --------
    >>> import tierrank as tr
    >>> games = [("rock", "scissors", 1), ("scissors", "paper", 1), ("paper", "rock", 1)] * 10
    >>> fit = tr.PairedTies("bradley-terry").fit(games).goodness()
    >>> fit.statistic, fit.degrees_of_freedom, fit.p_value < 0.01
    (30.0, 1, True)
    """

    items: tuple[Any, ...]
    first: IntArray
    second: IntArray
    wins: FloatArray
    ties: FloatArray
    losses: FloatArray
    expected_wins: FloatArray
    expected_ties: FloatArray
    expected_losses: FloatArray
    residuals: FloatArray
    p_values: FloatArray
    adjusted_p: FloatArray
    statistic: float
    degrees_of_freedom: int
    p_value: float | None
    reference: str
    draws: int
    triples: CyclicTriples
    shown: int = 10

    def worst(self, number: int | None = None) -> list[PairFit]:
        """List the pairs that are furthest from the model, by p-value.

        Parameters
        ----------
        number : int, optional
            How many; `shown` of them without it.

        Returns
        -------
        list of PairFit
            The furthest first.

        See Also
        --------
        verdict : All pairs in a sentence.

        Examples
        --------
        >>> import tierrank as tr
        >>> games = [("rock", "scissors", 1), ("scissors", "paper", 1), ("paper", "rock", 1)] * 10
        >>> len(tr.PairedTies("bradley-terry").fit(games).goodness().worst(2))
        2
        """
        order = np.lexsort((-np.abs(self.residuals), self.p_values))
        return [self.pair(int(at)) for at in order[: self.shown if number is None else number]]

    def pair(self, at: int) -> PairFit:
        """Give one of the pairs, in plain numbers.

        Parameters
        ----------
        at : int
            Its place in `first` and `second`.

        Returns
        -------
        PairFit
            As it was seen, and as the model expects it.

        See Also
        --------
        worst : Those that fit worst.

        Examples
        --------
        >>> import tierrank as tr
        >>> games = [("rock", "scissors", 1), ("scissors", "paper", 1), ("paper", "rock", 1)] * 10
        >>> fit = tr.PairedTies("bradley-terry").fit(games).goodness()
        >>> round(fit.pair(0).expected_wins, 3)
        5.0
        """
        columns = (
            self.wins, self.ties, self.losses, self.expected_wins, self.expected_ties,
            self.expected_losses, self.residuals, self.p_values, self.adjusted_p,
        )  # fmt: skip
        first, second = (self.items[int(side[at])] for side in (self.first, self.second))
        return PairFit(first, second, *(float(column[at]) for column in columns))

    def verdict(self, level: float = SIGNIFICANT) -> str:
        """Say whether the data contradict the model, in a sentence.

        Parameters
        ----------
        level : float
            The p-value up to which they do: 0.05 is the least that 19 drawn data sets can give.

        Returns
        -------
        str
            With the p-value, and where it comes from.

        See Also
        --------
        worst : Which pairs do.

        Examples
        --------
        >>> import tierrank as tr
        >>> games = [("rock", "scissors", 1), ("scissors", "paper", 1), ("paper", "rock", 1)] * 10
        >>> tr.PairedTies("bradley-terry").fit(games).goodness().verdict().startswith(
        ...     "The data contra"
        ... )
        True
        """
        if self.p_value is None:
            return f"Whether the model fits cannot be tested: {self.reference}."
        found = "contradict" if self.p_value <= level else "do not contradict"
        return f"The data {found} one worth an item (p = {_small(self.p_value)}: {self.reference})."

    def to_dict(self) -> dict[str, Any]:
        """Give all but the pairs that fit, as JSON has it.

        Returns
        -------
        dict
            Plain numbers, strings and lists; names that are no text or number are text.

        See Also
        --------
        worst : The pairs in it.

        Examples
        --------
        >>> import json, tierrank as tr
        >>> games = [("rock", "scissors", 1), ("scissors", "paper", 1), ("paper", "rock", 1)] * 10
        >>> found = tr.PairedTies("bradley-terry").fit(games).goodness().to_dict()
        >>> json.loads(json.dumps(found)) == found
        True
        """

        def plain(name: Any) -> Any:
            return name if isinstance(name, str | int | float | bool) else str(name)

        triples = self.triples
        return {
            "pairs": len(self.first),
            "statistic": self.statistic,
            "degrees_of_freedom": self.degrees_of_freedom,
            "p_value": self.p_value,
            "reference": self.reference,
            "verdict": self.verdict(),
            "worst_pairs": [
                {**pair._asdict(), "first": plain(pair.first), "second": plain(pair.second)}
                for pair in self.worst()
            ],
            "cyclic_triples": {
                **{name: getattr(triples, name) for name in
                   ("triples", "cyclic", "expected", "low", "high", "p_value")},
                "worst": [
                    {**cycle._asdict(), "items": [plain(item) for item in cycle.items]}
                    for cycle in triples.worst
                ],
            },
        }  # fmt: skip

    def __str__(self) -> str:
        triples = self.triples
        rows = [["first", "second", "observed", "expected", "residual", "p", "adjusted p"]]
        for pair in self.worst():
            seen, expected = (
                "-".join(f"{value:.{digits}f}" for value in values)
                for values, digits in ((pair[2:5], 0), (pair[5:8], 1))
            )
            rows.append(
                [str(pair.first), str(pair.second), seen, expected, f"{pair.residual:+.2f}",
                 _small(pair.p_value), _small(pair.adjusted_p)]
            )  # fmt: skip
        lines = [
            f"{counted(len(self.first), 'pair')} of {len(self.items):,} items "
            f"met; Pearson's statistic is {self.statistic:.1f}, with "
            f"{_degrees(self.degrees_of_freedom)}",
            self.verdict(),
            "furthest from the model (wins-ties-losses):",
            *text_table(rows, left=0),
            f"{triples.cyclic:,} of {triples.triples:,} triples are cyclic, where the model "
            f"expects {triples.expected:.1f} ({triples.low:.0f} to {triples.high:.0f}, "
            f"p = {_small(triples.p_value)})",
        ]
        for cycle in triples.worst:
            around = " > ".join(str(item) for item in (*cycle.items, cycle.items[0]))
            lines.append(
                f"  {around}: at least {100 * cycle.weakest:.0f}% each, "
                f"p = {_small(cycle.p_value)}, adjusted {_small(cycle.adjusted_p)}"
            )
        return "\n".join(lines)

    __repr__ = __str__


def _degrees(number: int) -> str:
    return counted(number, "degree of freedom", "degrees of freedom")


def _small(p: float) -> str:
    return f"{p:.3f}" if p >= 0.0005 else f"{p:.1g}"


# -- what a fit has to say of pairs ---------------------------------------------------------------


class Expectation:
    """Pairs that met, as observed and as a fitted model expects them.

    Attributes
    ----------
    names
        of items
    first, second
        [pairs] their numbers
    observed, expected
        [pairs, 3] wins, ties and losses of the first
    variance, left
        [pairs] V, of wins − losses; and what is left of it after the fit
    trials
        [pairs] wins and losses, and the chance of a win: what p-values of pairs are of
    degrees, crowded
        free cells less parameters; whether χ² holds, where all cells are filled enough
    untestable
        why there is no test; "" where there is one
    draws
        how many data sets are drawn
    """

    names: tuple[Any, ...]
    first: IntArray
    second: IntArray
    observed: FloatArray
    expected: FloatArray
    variance: FloatArray
    left: FloatArray
    trials: tuple[FloatArray, FloatArray, FloatArray]
    degrees: int
    crowded: bool
    untestable: str
    draws: int

    def drawn(self) -> Iterator[Any]:
        """Data sets from the model, one after the other, as `compared` takes them."""
        raise NotImplementedError

    def compared(self, data: Any) -> tuple[FloatArray, FloatArray]:
        """[pairs, 3] counts of such data; and what the model refitted to them expects.

        Where there is no covariance, it is not refitted. Called from several threads.
        """
        raise NotImplementedError


def refitted(
    gradient: Callable[[FloatArray], FloatArray],
    point: FloatArray,
    covariance: FloatArray,
    pull: FloatArray,
    prior: Hessian | None,
) -> FloatArray:
    """[parameters] θ*, from U*, θ, C, U(θ) and P."""
    change, before = np.zeros_like(point), 0.0
    for _ in range(STEPS):
        left = gradient(point + change) - pull
        if prior is not None:
            left -= prior.product(change)
        step = covariance @ left
        change = change + step
        length = float(left @ step)  # dᵀ C⁻¹ d
        if length <= NEAR or length**2 <= NEAR * before:
            break
        before = length
    return point + change


class Drawing(NamedTuple):
    """How many data sets are drawn from the model, and by which numbers.

    `draws` is None for as many as are done in some seconds, 19 to 199.
    """

    draws: int | None
    random: np.random.Generator

    def number(self, cost: int, budget: int) -> int:
        """Data sets to draw, if each costs so much."""
        if self.draws is not None:
            return self.draws
        return int(np.clip(budget // max(cost, 1), FEWEST_DRAWS, MOST_DRAWS))


def goodness_of(model: Expectation, worst: int) -> GoodnessOfFit:
    """Compare what was seen with what is expected.

    Parameters
    ----------
    model
        a fit and its data, as pairs
    worst
        how many pairs and triples are listed
    """
    observed, expected = model.observed, model.expected
    statistic = pearson(observed, expected)
    untestable, crowded = model.untestable, model.crowded and _filled(expected)
    if not untestable and model.degrees <= 0:
        untestable = "there are as many parameters as pairs, and any data would fit"
    size = len(model.names)

    def far(data: Any) -> tuple[bool, float]:
        counts, refitted = model.compared(data)
        drawn = Majorities.of(counts, model.first, model.second, size)
        cycles = drawn.cyclic() - expected_cycles(counts, refitted, model)
        return pearson(counts, refitted) >= statistic, cycles

    # two data sets are compared while the next is drawn
    found: list[Future[tuple[bool, float]]] = []
    with one_blas_thread(), ThreadPoolExecutor(2) as beside:
        for data in model.drawn():
            wait(found[-2:-1])
            found.append(beside.submit(far, data))
    as_large = sum(each.result()[0] for each in found)
    excess = [each.result()[1] for each in found]
    p_value: float | None = None
    if untestable:
        reference = untestable
    elif crowded:
        p_value = float(chdtrc(model.degrees, statistic))
        reference = f"χ² with {_degrees(model.degrees)}"
    else:
        p_value = (1 + as_large) / (1 + model.draws)
        reference = f"{as_large} of {model.draws} data sets drawn from the model are as far from it"
    wins, losses, chance = model.trials
    p_values = binomial_p(wins, losses, chance)
    score = (observed - expected) @ SIGN
    sure = model.left > LEFT * model.variance
    residuals = np.where(sure, score / np.sqrt(np.where(sure, model.left, 1.0)), 0.0)
    majorities = Majorities.of(observed, model.first, model.second, size)
    return GoodnessOfFit(
        model.names, model.first, model.second,
        observed[:, WIN], observed[:, TIE], observed[:, LOSS],
        expected[:, WIN], expected[:, TIE], expected[:, LOSS],
        residuals, p_values, holm(p_values, wins + losses > 0),
        statistic, model.degrees, p_value, reference, model.draws,
        majorities.triples(
            expected_cycles(observed, expected, model), np.array(excess), model.names, worst
        ),
        worst,
    )  # fmt: skip


def pearson(observed: FloatArray, expected: FloatArray) -> float:
    """Σ (observed − expected)² / expected; a cell that cannot be filled adds nothing."""
    there = expected > 0
    difference = np.where(there, observed - expected, 0.0)
    return float((difference**2 / np.where(there, expected, 1.0)).sum())


def _filled(expected: FloatArray) -> bool:
    """Whether χ² is near enough (Cochran's rule)."""
    cells = expected[expected > 0]
    return bool(cells.min(initial=np.inf) >= FEW and (cells >= CROWDED).mean() >= 0.8)


def binomial_p(wins: FloatArray, losses: FloatArray, p: FloatArray) -> FloatArray:
    """[pairs] twice the smaller tail of Binomial(wins + losses, p); at most 1."""
    tails = at_least(wins, losses, p), at_least(losses, wins, 1 - p)
    return np.asarray(np.minimum(1.0, 2 * np.minimum(*tails)))


def at_least(wins: FloatArray, losses: FloatArray, p: Any) -> FloatArray:
    """P(X ≥ wins) for X ~ Binomial(wins + losses, p) = I_p(wins, losses + 1); 1 of no wins."""
    some = wins > 0
    return np.where(some, betainc(np.where(some, wins, 1.0), losses + 1, p), 1.0)


def holm(p_values: FloatArray, tested: BoolArray) -> FloatArray:
    """[pairs] the largest, up to each, of p times the number of pairs that are not below it."""
    order = np.flatnonzero(tested)[np.argsort(p_values[tested], kind="stable")]
    steps = p_values[order] * np.arange(len(order), 0, -1)
    adjusted = np.ones_like(p_values)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(steps))
    return adjusted


# -- who beat whom more often than not ------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Majorities:
    """[edges] the items of pairs that one of the two won more often, and how often each won."""

    above: IntArray
    below: IntArray
    wins: FloatArray
    losses: FloatArray
    size: int

    @classmethod
    def of(cls, counts: FloatArray, first: IntArray, second: IntArray, size: int) -> Majorities:
        """From [pairs, 3] counts."""
        wins, losses = counts[:, WIN], counts[:, LOSS]
        kept = np.flatnonzero(wins != losses)
        up = (wins > losses)[kept]
        one, other = first[kept], second[kept]
        return cls(
            np.where(up, one, other), np.where(up, other, one),
            np.maximum(wins, losses)[kept], np.minimum(wins, losses)[kept], size,
        )  # fmt: skip

    def chosen(self, which: BoolArray) -> Majorities:
        """Some of them."""
        return Majorities(
            self.above[which], self.below[which], self.wins[which], self.losses[which], self.size
        )

    def cyclic(self) -> int:
        """Triples a > b > c > a: the trace of A³, over 3."""
        return round(float(self._around().sum()) / 3)

    def complete(self) -> int:
        """Triples with a majority in all three pairs: the trace of (A + Aᵀ)³, over 6."""
        matrix = self._matrix()
        both = matrix + matrix.T
        square = both @ both
        around = square * both if isinstance(square, np.ndarray) else square.multiply(both)
        return round(float(around.sum(dtype=np.float64)) / 6)

    def _around(self) -> FloatArray:
        """[edges] in how many circles each is: A²[below, above]."""
        matrix = self._matrix()
        if len(self.above) == 0:
            return np.zeros(0)
        square = matrix @ matrix
        return np.asarray(square[self.below, self.above], dtype=np.float64).ravel()

    def _matrix(self) -> Any:
        """A[a, b] = 1 where a is above b."""
        ones = np.ones(len(self.above), dtype=np.float32)
        return square_of(ones, self.above, self.below, self.size)

    def triples(
        self, expected: float, excess: FloatArray, names: tuple[Any, ...], most: int
    ) -> CyclicTriples:
        """How many are circles, against those of drawn data; and which are no chance.

        Parameters
        ----------
        expected
            of independent pairs
        excess
            [draws] by how much drawn data have more than is expected of theirs
        names, most
            of items; how many circles are listed
        """
        cyclic, complete = self.cyclic(), self.complete()
        low, high = np.quantile(excess, (0.025, 0.975))
        return CyclicTriples(
            complete, cyclic, max(0.0, expected + float(excess.mean())),
            max(0.0, expected + float(low)), max(0.0, expected + float(high)),
            (1 + int((excess >= cyclic - expected).sum())) / (1 + len(excess)),
            tuple(self._circles(names, 2 * complete, most)),
        )  # fmt: skip

    def _circles(self, names: tuple[Any, ...], tests: int, most: int) -> Iterator[Cycle]:
        """The circles whose weakest majority is least by chance, one after the other.

        Majorities enter in the order of their p-values; one that closes a circle is its weakest.
        """
        chance = at_least(self.wins, self.losses, 0.5)
        strong = self.chosen(chance <= SIGNIFICANT)
        strong = strong.chosen(strong._around() > 0)
        chance = at_least(strong.wins, strong.losses, 0.5)
        beaten: dict[int, set[int]] = {}
        beating: dict[int, set[int]] = {}
        found = 0
        for at in np.argsort(chance, kind="stable"):
            a, b, p = int(strong.above[at]), int(strong.below[at]), float(chance[at])
            for c in sorted(beaten.get(b, set()) & beating.get(a, set())):
                edges = np.isin(strong.above, [a, b, c]) & np.isin(strong.below, [a, b, c])
                share = strong.wins[edges] / (strong.wins + strong.losses)[edges]
                items = (names[a], names[b], names[c])
                yield Cycle(items, float(share.min()), p, min(1.0, p * tests))
                found += 1
                if found == most:
                    return
            beaten.setdefault(a, set()).add(b)
            beating.setdefault(b, set()).add(a)


def expected_cycles(counts: FloatArray, expected: FloatArray, model: Expectation) -> float:
    """tr(q³)/3, q of as many decided games as there are, with the chances that are expected."""
    decided = counts[:, WIN] + counts[:, LOSS]
    up, down = majority_chances(decided, _share(expected[:, WIN], expected[:, LOSS]))
    pairs = np.concatenate([model.first, model.second]), np.concatenate([model.second, model.first])
    q = square_of(np.concatenate([up, down]), *pairs, len(model.names))
    if isinstance(q, np.ndarray):
        return float(np.vdot(q @ q, q.T)) / 3
    return float((q @ q).multiply(q.T).sum()) / 3


def majority_chances(games: FloatArray, p: FloatArray) -> tuple[FloatArray, FloatArray]:
    """[pairs] chances that the first, and that the second, wins more than half of its games.

    With q = 1 − p, the first wins at least k of 2k − 1 games with the chance

        I_p(k, k) = ½ + (p − ½) Σ_{j<k} C(2j, j) (p q)^j,

    as I_p(k + 1, k + 1) − I_p(k, k) is the term of j = k. Of 2k games it wins more than k with the
    same chance less half of that of a draw, C(2k, k) (p q)^k. (Up to 200 games that is within 2e-15
    of 50 digits, in a quarter of the time of the incomplete beta function.)
    """
    summed = (games <= MOST_SUMMED) & (games == np.rint(games))
    if summed.all():
        return _summed_majorities(games, p)
    up, down = np.empty_like(p), np.empty_like(p)
    up[summed], down[summed] = _summed_majorities(games[summed], p[summed])
    many, p = games[~summed], p[~summed]
    most = np.floor(many / 2) + 1
    fewer = np.maximum(many - most, 0.0)
    first = at_least(most, fewer, p)
    second, open_ = 1 - first, many % 2 != 1  # of an odd number, one of the two has it
    second[open_] = at_least(most[open_], fewer[open_], 1 - p[open_])
    up[~summed], down[~summed] = first, second
    return up, down


def _summed_majorities(games: FloatArray, p: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The same of few games, whole ones."""
    whole = games.astype(np.uint8)
    terms = (whole + 1) // 2  # k, in a byte, which numpy sorts by counting
    order = np.argsort(terms, kind="stable")[::-1]
    first = np.empty_like(p)
    drawn = np.empty_like(p)
    for start in range(0, len(p), IN_CACHE):
        block = order[start : start + IN_CACHE]
        chance, k = p[block], terms[block]
        longer = len(k) - np.searchsorted(k[::-1], np.arange(int(k.max(initial=0)) + 1), "right")
        product = 4 * chance * (1 - chance)
        term, total = np.ones(len(k)), np.zeros(len(k))
        for j, some in enumerate(longer[:-1].tolist()):  # of more terms than j
            total[:some] += term[:some]
            term[:some] *= product[:some]
            term[:some] *= 1 - 0.5 / (j + 1)
        first[block] = 0.5 + (chance - 0.5) * total
        drawn[block] = term
    draw = np.where(whole % 2 == 0, 0.5 * drawn, 0.0)
    return np.maximum(first - draw, 0.0), np.maximum(1 - first - draw, 0.0)


def square_of(values: AnyArray, rows: IntArray, columns: IntArray, size: int) -> Any:
    """[size, size], each place given once: dense where products are quicker so, else sparse."""
    if 20 * len(values) <= size**2:
        return csr_array((values, (rows, columns)), shape=(size, size))
    dense = np.zeros((size, size), dtype=values.dtype)
    dense[rows, columns] = values
    return dense


# -- games ----------------------------------------------------------------------------------------


class GamesExpectation(Expectation):
    """Games of the same two sides and the same lead are one kind, of which pairs may have several.

    A tie that "bradley-terry" counts by half is no outcome of that model, and there is no test.
    What n games are expected to be is then that wins − losses = n (2p − 1), ties being as they are;
    p-values are those of wins and half of the ties, and too large.

    Parameters
    ----------
    term
        the likelihood of the games
    point
        [parameters] the estimate
    covariance
        [parameters, parameters] C, the inverse information; None: there is none
    parameters
        how many were free
    prior
        second derivatives of a prior; None: there is none
    exact
        whether the estimate is the maximum of the likelihood alone
    drawing
        of data sets
    """

    def __init__(
        self,
        term: GamesTerm,
        point: FloatArray,
        covariance: FloatArray | None,
        *,
        parameters: float,
        prior: Hessian | None,
        exact: bool,
        drawing: Drawing,
    ) -> None:
        fixtures = term.meetings
        self._counts = term.counts
        if fixtures.covariates is not None:  # meetings of one game each
            rows, kind = _kinds(fixtures.first, fixtures.second, term.leads(point))
            self._counts = np.zeros((len(rows), 3))
            np.add.at(self._counts, kind, term.counts)
            fixtures = fixtures._select(rows)
        self._term = GamesTerm(fixtures, term.model, home=term.home_at is not None)
        self._n = self._counts.sum(axis=1)
        self._point, self._covariance, self._prior = point, covariance, prior
        self._half = term.model == "bradley-terry" and bool(self._counts[:, TIE].any())
        # the first of a pair is the better side
        worth = side_log_worths(point[: term.players], fixtures.members, fixtures.borders)
        one, other = fixtures.first, fixtures.second
        self._turned = (worth[one] < worth[other]) | ((worth[one] == worth[other]) & (one > other))
        better, worse = np.where(self._turned, (other, one), (one, other))
        pairs, self._pair = np.unique(better * len(worth) + worse, return_inverse=True)
        self.names = _side_names(fixtures)
        self.first, self.second = np.divmod(pairs, len(worth))
        # [pairs, 3] where, among [kinds, 3], the cells are if there is one kind a pair
        kind = np.empty(len(pairs), dtype=np.int64)
        kind[self._pair] = np.arange(len(self._pair))
        ends = np.where(self._turned[kind, None], [2, 1, 0], [0, 1, 2])
        self._cells = 3 * kind[:, None] + ends
        self.observed = self._by_pair(self._counts)
        self._chances = self._outcomes(point)
        fitted = self._n[:, None] * self._chances
        if self._half:
            ties = self._counts[:, TIE]
            wins = np.clip(fitted[:, WIN] - ties / 2, 0.0, self._n - ties)
            decided = fitted * (1 - ties / self._n)[:, None]
            fitted = np.stack([wins, ties, self._n - ties - wins], axis=1)
            self._chances = np.stack([decided[:, WIN], ties, decided[:, LOSS]], axis=1)
            self._chances /= self._n[:, None]
        self.expected = self._by_pair(fitted)
        wins, losses = self.observed[:, WIN], self.observed[:, LOSS]
        self.trials = wins, losses, _share(*self.expected.T[[WIN, LOSS]])
        if self._half:
            half = self.observed[:, TIE] / 2
            self.trials = wins + half, losses + half, _share(*(self.expected.T[[WIN, LOSS]] + half))
        mean = self._chances @ SIGN
        spread = self._n * (self._chances[:, WIN] + self._chances[:, LOSS] - mean**2)
        self.variance = np.bincount(self._pair, spread, len(pairs)).astype(np.float64)
        self.left = self.variance
        self.untestable = HALF if self._half else "" if covariance is not None else NO_COVARIANCE
        cells = 2 if term.model == "bradley-terry" else 3
        self.degrees = round(len(pairs) * (cells - 1) - parameters)
        whole = bool((self._n % 1 == 0).all())
        self.crowded = exact and whole and len(self._n) == len(pairs)
        self.draws = drawing.number(len(self._n), GAMES_DRAWN)
        self._random = drawing.random
        if covariance is not None:
            self.left = self.variance - self._explained(covariance)
            self._pull = self._term.gradient_of_counts(self._counts, point)

    def drawn(self) -> Iterator[FloatArray]:
        copies = np.minimum(np.ceil(self._n), MOST_COPIES)
        each = (self._n / copies)[:, None]
        for _ in range(self.draws):
            yield each * self._random.multinomial(copies.astype(np.int64), self._chances)

    def compared(self, data: FloatArray) -> tuple[FloatArray, FloatArray]:
        if self._covariance is None:
            return self._by_pair(data), self.expected
        gradient = partial(self._term.gradient_of_counts, data)
        found = refitted(gradient, self._point, self._covariance, self._pull, self._prior)
        return self._by_pair(data), self._by_pair(self._n[:, None] * self._outcomes(found))

    def _outcomes(self, point: FloatArray) -> FloatArray:
        """[kinds, 3] the model's probabilities, which sum to 1 but for rounding."""
        term = self._term
        t = 0.0 if term.tie_at is None else float(point[term.tie_at])
        win, tie, loss = probabilities(term.model, term.lead(point), t)
        whole = win + tie + loss
        return np.stack([win / whole, tie / whole, loss / whole], axis=1)

    def _explained(self, covariance: FloatArray) -> FloatArray:
        """[pairs] J C Jᵀ, J = cov(s, U) = Σ n p_o s_o ∂log p_o over outcomes o."""
        turn = np.where(self._turned, -1.0, 1.0)
        kinds = np.arange(len(self._pair))
        total = csr_array((turn, (self._pair, kinds)), shape=(len(self.first), len(kinds)))
        slopes: Any = 0
        for outcome, chance in ((1, self._chances[:, WIN]), (-1, self._chances[:, LOSS])):
            scaled = self._term.log_probabilities(self._point, outcome)[1].tocsr()
            scaled.data *= np.repeat(outcome * self._n * chance, np.diff(scaled.indptr))
            slopes = scaled + slopes
        return quadratic(total @ slopes, covariance)

    def _by_pair(self, kinds: FloatArray) -> FloatArray:
        """[pairs, 3] sums of kinds, from the view of the better side."""
        if len(kinds) == len(self.first):  # one kind a pair
            return kinds.ravel()[self._cells]
        turned = np.where(self._turned[:, None], kinds[:, ::-1], kinds)
        return np.stack(
            [np.bincount(self._pair, column, len(self.first)) for column in turned.T], axis=1
        )


NO_COVARIANCE = "the fit has no covariance by the information"
HALF = "a tie counts as half a win, which is no likelihood of what was seen; davidson has one"


def _share(part: FloatArray, rest: FloatArray) -> FloatArray:
    """Part of the whole; a half of nothing."""
    whole = part + rest
    return np.where(whole > 0, part / np.where(whole > 0, whole, 1.0), 0.5)


def _side_names(fixtures: Fixtures) -> tuple[Any, ...]:
    """[sides] a player's name, or a tuple of a team's."""
    players, borders = fixtures.players, fixtures.borders.tolist()
    teams = [
        tuple(players[code] for code in fixtures.members[start:end])
        for start, end in pairwise(borders)
    ]
    return tuple(team[0] if len(team) == 1 else team for team in teams)


def _kinds(first: IntArray, second: IntArray, lead: FloatArray) -> tuple[IntArray, IntArray]:
    """[kinds] a row of each, and [games] the kind of each: same sides, same lead."""
    order = np.lexsort((lead, second, first))
    new = np.ones(len(order), dtype=bool)
    same = [values[order][1:] == values[order][:-1] for values in (first, second, lead)]
    new[1:] = ~np.logical_and.reduce(same)
    kind = np.empty(len(order), dtype=np.int64)
    kind[order] = np.cumsum(new) - 1
    return order[new], kind


def quadratic(rows: Any, matrix: FloatArray) -> FloatArray:
    """[rows] r M rᵀ of sparse rows r, by their few entries."""
    rows = rows.tocsr()
    found = np.zeros(rows.shape[0])
    lengths = np.diff(rows.indptr)
    for length in np.unique(lengths):
        which = np.flatnonzero(lengths == length)
        at = rows.indptr[which][:, None] + np.arange(length)
        columns, values = rows.indices[at], rows.data[at]
        for a in range(length):
            for b in range(length):
                product = values[:, a] * values[:, b]
                found[which] += product * matrix[columns[:, a], columns[:, b]]
    return found


# -- lists ----------------------------------------------------------------------------------------


class ListsExpectation(Expectation):
    """Pairs of lists: who is above whom, in whatever company.

    Under Plackett-Luce the first of two items to be chosen is i with p = σ(w_i − w_j), whatever
    else is in the list. So that is P(i above j | they are not tied) where the only tie of a list
    is its last tier. Where there are ties further up, the chance to be in different tiers depends
    on who is above: there, p is the share in rankings drawn from the model and cut into tiers of
    the observed sizes (and one more, of σ, so that it is never 0; for a drawn data set, the share
    in all others, so that it knows as little of itself as the observed one does). When refitted,
    the log-odds of p change by what w_i − w_j changes, which is exact where p = σ.

    Parameters
    ----------
    lists
        without a rest that is not written down
    log_worths, covariance
        [items] and [items, items]: the estimate, and C; None: there is none
    gradient
        gives U of lists such as these, as a function of log-worths
    parameters
        how many were free
    prior
        second derivatives of a prior; None: there is none
    drawing
        of data sets
    """

    crowded = False  # pairs of a list depend on each other

    def __init__(
        self,
        lists: CountedLists,
        log_worths: FloatArray,
        covariance: FloatArray | None,
        gradient: Callable[[CountedLists], Callable[[FloatArray], FloatArray]],
        *,
        parameters: float,
        prior: Hessian | None,
        drawing: Drawing,
    ) -> None:
        copies, lengths = np.ceil(lists.counts), lists.tiers.lengths.numpy()
        needed = float(copies @ (lengths * (lengths - 1) / 2))
        if needed > MOST_PAIRS:
            raise ValueError(
                f"these lists have {needed:,.10g} pairs of items, and goodness draws all of them "
                f"again and again (limit {MOST_PAIRS:,}): give a part of the lists as data="
            )
        # a list that was seen three times is drawn three times
        which = np.repeat(np.arange(len(copies)), copies.astype(np.int64))
        weights = (lists.counts / copies)[which]
        self._lists = replace(lists, tiers=lists.tiers[which], counts=weights)
        self._w, self._covariance, self._gradient = log_worths, covariance, gradient
        self._prior = prior
        tiers = self._lists.tiers
        lengths, items = tiers.lengths.numpy(), tiers.items.numpy()
        self._list_of = np.repeat(np.arange(len(lengths)), lengths)
        self._tier_of = np.repeat(np.arange(len(tiers.tier_sizes)), tiers.tier_sizes.numpy())
        one, other = _pairs_within(lengths)
        place = np.argsort(np.argsort(-log_worths, kind="stable"))
        turned = place[items[one]] > place[items[other]]
        # [pairs of all lists] where the better and the worse item stand among all entries
        self._better, self._worse = np.where(turned, (other, one), (one, other))
        self._pair_weights = weights[self._list_of[one]]
        key = items[self._better] * len(place) + items[self._worse]
        pairs, self._pair = np.unique(key, return_inverse=True)
        self.names = lists.items
        self.first, self.second = np.divmod(pairs, len(place))
        self.observed = self._counted(self._tier_of)
        self.untestable = "" if covariance is not None else NO_COVARIANCE
        decided = self.observed[:, WIN] + self.observed[:, LOSS]
        self.degrees = round(np.count_nonzero(decided) - parameters)
        self.draws = drawing.number(max(len(self._pair), 10 * len(pairs)), PAIRS_DRAWN)
        if covariance is not None:
            self._pull = gradient(self._lists)(log_worths)
        self._results = [self._draw(drawing.random) for _ in range(self.draws)]
        self._simple = bool((largest_ties(tiers)[0] <= 1).all())
        self._sums = np.sum([counts for counts, _ in self._results], axis=0)
        chance = self._chance()
        self.expected = _given(self.observed, chance)
        self.trials = self.observed[:, WIN], self.observed[:, LOSS], chance
        # s of a decided pair is ±1
        self.variance = 4 * decided * chance * (1 - chance)
        self.left = self.variance
        if covariance is not None:
            own = np.diag(covariance)
            of_lead = own[self.first] + own[self.second]
            of_lead = of_lead - 2 * covariance[self.first, self.second]
            self.left = self.variance * (1 - self.variance / 4 * of_lead)

    def drawn(self) -> Iterator[tuple[FloatArray, FloatArray]]:
        yield from self._results

    def compared(self, data: tuple[FloatArray, FloatArray]) -> tuple[FloatArray, FloatArray]:
        counts, change = data
        return counts, _given(counts, self._chance(counts, change))

    def _chance(self, without: FloatArray | None = None, change: Any = 0.0) -> FloatArray:
        """[pairs] p, by the drawn data, but for some; the log-odds changed."""
        lead = self._w[self.first] - self._w[self.second]
        if self._simple:
            return np.asarray(expit(lead + change))
        sums = self._sums if without is None else self._sums - without
        wins, losses = sums[:, WIN] + expit(lead), sums[:, LOSS] + expit(-lead)
        return np.asarray(expit(np.log(wins) - np.log(losses) + change))

    def _draw(self, random: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """[pairs, 3] counts of lists from the model, tied as these; and by what leads change."""
        tiers = self._lists.tiers
        items = tiers.items.numpy()
        order = np.lexsort((-self._w[items] - random.gumbel(size=len(items)), self._list_of))
        tier_of = np.empty_like(self._tier_of)
        tier_of[order] = self._tier_of
        counts = self._counted(tier_of)
        if self._covariance is None:
            return counts, np.zeros(len(counts))
        drawn = replace(tiers, items=torch.from_numpy(items[order]))
        found = self._gradient(replace(self._lists, tiers=drawn))
        moved = refitted(found, self._w, self._covariance, self._pull, self._prior) - self._w
        return counts, moved[self.first] - moved[self.second]

    def _counted(self, tier_of: IntArray) -> FloatArray:
        """[pairs, 3] how often the better item is above, in one tier with, and below the other."""
        below = tier_of[self._worse] - tier_of[self._better]
        outcomes = (below > 0, below == 0, below < 0)
        return np.stack(
            [np.bincount(self._pair, self._pair_weights * each, len(self.first))
             for each in outcomes], axis=1,
        )  # fmt: skip


def _given(counts: FloatArray, chance: FloatArray) -> FloatArray:
    """[pairs, 3] what is expected of as many decided ones; ties are as they are."""
    decided = counts[:, WIN] + counts[:, LOSS]
    return np.stack([decided * chance, counts[:, TIE], decided * (1 - chance)], axis=1)


def _pairs_within(lengths: IntArray) -> tuple[IntArray, IntArray]:
    """Two entries of a list each, of all lists: every pair once."""
    ends = np.repeat(np.cumsum(lengths), lengths)
    entry = np.arange(len(ends))
    later = ends - entry - 1  # entries of its list that come after it
    one = np.repeat(entry, later)
    other = one + 1 + np.arange(len(one)) - np.repeat(np.cumsum(later) - later, later)
    return one, other
