"""How often intervals, tests and tiers are right, on data whose truth is known.

    python experiments/calibration.py ranks tiers     # of places, and of items that are equal
    python experiments/calibration.py coefficients    # intervals of LinearRanker
    python experiments/calibration.py goodness --data FOLDER    # the test of a model that is right
    python experiments/calibration.py next-pairs      # what games that were chosen are worth
    python experiments/calibration.py --quick         # all of it, on a tenth of the data sets

`voter_coverage.py` has intervals of worths where voters have tastes of their own.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from command import show
from page import Cell, Table
from scipy.special import gammaln
from scipy.stats import norm

import tierrank as tr
from tierrank._types import AnyArray
from tierrank.aggregation.item_ranks import rank_intervals
from tierrank.aggregation.tier_cuts import Potentials, cut_into_tiers, random_effects
from tierrank.data import Games, read_games

LEVEL = 0.95
SHARE = 0.1  # of the data sets, with --quick


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], text: str) -> Table:
    """Of cells that are written already."""
    return Table(title, columns, [[Cell(each) for each in row] for row in rows], text=text)


def percent(share: float) -> str:
    return f"{100 * share:.1f}"


# Places --------------------------------------------------------------------------------------

RANKED = 10
DISTANCES = (0.2, 0.5, 1.0, 2.0)  # between neighbours, in standard errors of an item


def ranks(replicates: int, seed: int) -> Iterator[Table]:
    """Intervals of ranks: estimates are independent, with equal standard errors, less their mean.

    Intervals of an item hold its rank or not; the least covered item is what is looked at.
    """
    replicates = 20 * replicates
    truth, covariance = np.arange(1, RANKED + 1), np.eye(RANKED) - 1 / RANKED
    rows: list[list[str]] = []
    for method in ("differences", "draws"):
        held, length = [f'`method="{method}"`: held, %'], ["mean number of ranks in it"]
        for distance in DISTANCES:
            random = np.random.default_rng(seed)
            found = np.stack([
                rank_intervals(
                    random.standard_normal(RANKED) - distance * truth, covariance, method=method,
                    level=LEVEL, seed=number,
                )
                for number in range(replicates)
            ])  # fmt: skip
            inside = (found[..., 0] <= truth) & (truth <= found[..., 1])
            held.append(percent(inside.mean(axis=0).min()))
            length.append(f"{(found[..., 1] - found[..., 0] + 1).mean():.1f}")
        rows += [held, length]
    columns = ["distance of neighbours, in standard errors", *map("{:g}".format, DISTANCES)]
    said = (
        f"{replicates:,} data sets; the item of {RANKED} whose interval held its rank least often"
    )
    yield table("95 % intervals of ranks", columns, rows, said)


# Tiers ---------------------------------------------------------------------------------------

EQUAL = (2, 3, 5, 10, 20, 50)  # items
APART = (2, 3, 4, 5, 8)  # two tiers, in standard errors of an item
MEMBERS = 10  # of each of them


def tiers_by_cuts(w: AnyArray) -> int:
    """How many tiers there are by a prior on the cuts of the given order: each gap of N items is a
    cut with probability ρ, and ρ is uniform, so that K tiers have the prior

        ∫ ρ^(K−1) (1 − ρ)^(N−K) dρ = (K − 1)! (N − K)! / N!.

    The evidence of a tier is that of `cut_into_tiers`, for variances of 1.
    """
    items = len(w)
    mean, spread = random_effects(w, np.ones(items))
    evidence = Potentials(
        precision=np.arange(items + 1.0),
        pull=np.concatenate([[0.0], np.cumsum(np.sort(w)[::-1] - mean)]),
        log_sizes=np.zeros(items + 1),
        squared=spread**2,
    )
    best = np.full((items + 1, items + 1), -np.inf)  # by the number of tiers, and where they end
    best[0, 0] = 0.0
    for end in range(1, items + 1):
        of_last = evidence(np.arange(end), end)
        best[1:, end] = (best[:-1, :end] + of_last).max(axis=1)
    number = np.arange(1, items + 1)
    prior = gammaln(number) + gammaln(items - number + 1) - gammaln(items + 1)
    return int(number[(best[1:, -1] + prior).argmax()])


def tiers(replicates: int, seed: int) -> Iterator[Table]:
    """Tiers among equal items, and two tiers that are told apart: independent estimates."""
    replicates = 10 * replicates
    ways: dict[str, Callable[[AnyArray], int]] = {
        "prior on cuts of the given order": tiers_by_cuts,
        "Ewens, `prior_tie=0.5`": lambda w: len(
            cut_into_tiers(w, np.ones(len(w)), prior_tie=0.5).tiers
        ),
        "Ewens, `prior_tie=0.75`, the default": lambda w: len(
            cut_into_tiers(w, np.ones(len(w))).tiers
        ),
    }
    rows = []
    for name, count in ways.items():
        random = np.random.default_rng(seed)
        split = [
            np.mean([count(random.standard_normal(items)) > 1 for _ in range(replicates)])
            for items in EQUAL
        ]
        rows.append([name, *(f"{100 * share:.0f} %" for share in split)])
    said = f"{replicates:,} data sets of equal items"
    title = "More than one tier found among equal items"
    yield table(title, ["items", *map(str, EQUAL)], rows, said)
    label = np.repeat([1, 0], MEMBERS)
    told, right = ["told apart, %"], ["all members put right, %"]
    for distance in APART:
        random = np.random.default_rng(seed)
        found = [
            cut_into_tiers(distance * label + random.standard_normal(2 * MEMBERS), np.ones(20))
            for _ in range(replicates)
        ]
        told.append(f"{100 * np.mean([len(cut.tiers) > 1 for cut in found]):.0f}")
        exact = [np.array_equal(cut.tier_of, 1 - label) for cut in found]
        right.append(f"{100 * np.mean(exact):.0f}")
    columns = ["distance, in standard errors", *map(str, APART)]
    said = f"{replicates:,} data sets"
    yield table(f"Two tiers of {MEMBERS}", columns, [told, right], said)


# Coefficients --------------------------------------------------------------------------------

COEFFICIENTS = np.array([1.0, -0.5, 0.25])
LISTS, LONGEST = 60, 8


def rows_in_tiers(random: np.random.Generator) -> tuple[AnyArray, AnyArray, AnyArray]:
    """X, y and qid of short lists: orders by the model, cut at places that do not depend on it."""
    lengths = random.integers(2, LONGEST + 1, LISTS)
    X = random.normal(size=(lengths.sum(), len(COEFFICIENTS)))
    score = X @ COEFFICIENTS + random.gumbel(size=len(X))
    y = np.empty(len(X))
    for rows in np.split(np.arange(len(X)), np.cumsum(lengths)[:-1]):
        places = np.arange(1, len(rows))
        cuts = random.choice(places, min(2, len(places)), replace=False)
        y[rows] = (np.argsort(np.argsort(score[rows]))[:, None] >= cuts).sum(axis=1)
    return X, y, np.repeat(np.arange(LISTS), lengths)


def coefficients(replicates: int, seed: int) -> Iterator[Table]:
    """Intervals of the coefficients of `LinearRanker`."""
    replicates = 10 * replicates
    reach, rows = norm.ppf((1 + LEVEL) / 2), []
    for kind in ("information", "sandwich"):
        random, held = np.random.default_rng(seed), []
        for _ in range(replicates):
            X, y, qid = rows_in_tiers(random)
            fitted = tr.LinearRanker(features=None, uncertainty=kind).fit(X, y, qid=qid)
            off = np.abs(fitted.coef_ - COEFFICIENTS)
            held.append((off <= reach * fitted.standard_errors_).mean())
        error = 100 * np.std(held, ddof=1) / np.sqrt(replicates)
        rows.append([kind, percent(float(np.mean(held))), f"{error:.1f}"])
    said = f"{replicates:,} data sets of {LISTS} lists of 2 to {LONGEST} rows in up to three tiers"
    yield table("95 % intervals of coefficients", ["by", "held, %", "±"], rows, said)


# Goodness of fit -----------------------------------------------------------------------------

TIES = 0.7  # Davidson's ν


def played(random: np.random.Generator, w: AnyArray, first: AnyArray, second: AnyArray) -> AnyArray:
    """1, 0 or −1 of games that end as Davidson's model has it."""
    lead = (w[first] - w[second]) / 2
    chances = np.stack([np.exp(lead), np.full(len(lead), TIES), np.exp(-lead)], axis=1)
    chances /= chances.sum(axis=1, keepdims=True)
    drawn = random.random(len(lead))[:, None]
    return np.asarray(1 - (drawn > chances.cumsum(axis=1)).sum(axis=1), dtype=np.int8)


def pairs(random: np.random.Generator, items: int, games: int) -> tuple[AnyArray, AnyArray]:
    """Two sides each."""
    first = random.integers(items, size=games)
    return first, (first + random.integers(1, items, size=games)) % items


def games_of(random: np.random.Generator, items: int, games: int) -> Games:
    """Of random pairs."""
    w = 0.8 * random.normal(size=items)
    first, second = pairs(random, items, games)
    outcome = played(random, w, first, second)
    return Games(range(items), first, second, outcome, np.ones(games))


def lists_of(random: np.random.Generator, lists: int, sizes: Sequence[int]) -> list[Any]:
    """By the Plackett-Luce model over ten items, cut into tiers of these sizes."""
    w, cuts = 0.8 * random.normal(size=10), np.cumsum(sizes)[:-1]
    found = []
    for _ in range(lists):
        some = random.permutation(10)[: sum(sizes)]
        order = some[np.argsort(-w[some] - random.gumbel(size=len(some)))]
        found.append([tuple(tier.tolist()) for tier in np.split(order, cuts)])
    return found


class RightModel(NamedTuple):
    """Data, and the model that they are drawn from."""

    draw: Callable[[np.random.Generator], Any]
    fit: Callable[[], Any]


RIGHT = {
    "300 games of 12 items": RightModel(
        lambda random: games_of(random, 12, 300), lambda: tr.PairedTies(prior="gaussian:3")
    ),
    "900 games of 8 items": RightModel(lambda random: games_of(random, 8, 900), tr.PairedTies),
    "60 strict lists of 5": RightModel(
        lambda random: lists_of(random, 60, [1] * 5),
        lambda: tr.RankAggregator(prior="gaussian:3"),
    ),
    "100 lists of 6 in three tiers": RightModel(
        lambda random: lists_of(random, 100, [2, 2, 2]),
        lambda: tr.RankAggregator(prior="gaussian:3"),
    ),
}


def goodness(replicates: int, seed: int) -> Iterator[Table]:
    """How often `goodness()` contradicts a right model at 0.05."""
    replicates = 3 * replicates
    rows = []
    for name, model in RIGHT.items():
        random = np.random.default_rng(seed)
        found = [
            model.fit().fit(model.draw(random)).goodness(draws=99, random_state=number)
            for number in range(replicates)
        ]
        contradicted = np.mean([each.p_value <= 0.05 for each in found])
        residuals = np.concatenate([each.residuals for each in found])
        pair = np.mean([each.adjusted_p.min() <= 0.05 for each in found])
        rows.append([name, percent(contradicted), percent(pair), f"{residuals.std():.2f}"])
    columns = ["data", "contradicted, %", "a pair named, %", "standard deviation of residuals"]
    said = f"{replicates} data sets each, tested at 0.05 by 99 draws"
    yield table("A right model tested", columns, rows, said)


def goodness_of_votes(folder: Path) -> Table:
    """The votes of llmfao, of which nobody knows the truth."""
    votes = read_games(
        folder / "llmfao" / "crowd-comparisons.csv.xz", first="left", second="right",
        winner="winner",
    )  # fmt: skip
    found = tr.PairedTies().fit(votes).goodness()
    row = [
        f"{len(votes.names)}", f"{votes.weights.sum():,.0f}", f"{len(found.first):,}",
        f"{found.statistic:,.0f}", f"{found.draws}", f"{found.p_value:.3f}",
        f"{found.adjusted_p.min():.2f}",
    ]  # fmt: skip
    columns = ["models", "games", "pairs", "statistic", "draws", "p", "least adjusted p of a pair"]
    return table("The votes of llmfao, by Davidson's model", columns, [row], "")


# Games that were chosen ----------------------------------------------------------------------

ARENA, BEFORE, MORE, TOP = 40, 2000, 300, 5  # models, games, more games, first places


class Told(NamedTuple):
    """Of differences between neighbours among the true first: variance, squared error, and how many
    intervals held them; and how many of the first were found.
    """

    variance: float
    error: float
    held: float
    found: int

    @classmethod
    def by(cls, fitted: tr.PairedTies, w: AnyArray) -> Told:
        best = np.argsort(-w)[: TOP + 1]
        matrix, at, one, other = fitted.covariance(), fitted.log_worths_, best[:-1], best[1:]
        variance = matrix[one, one] + matrix[other, other] - 2 * matrix[one, other]
        error = (at[one] - at[other] - w[one] + w[other]) ** 2
        held = error <= norm.ppf((1 + LEVEL) / 2) ** 2 * variance
        found = set(np.argsort(-at)[:TOP]) & set(best[:TOP])
        return cls(variance.mean(), error.mean(), 100 * held.mean(), len(found))


def next_pairs(replicates: int, seed: int) -> Iterator[Table]:
    """More games of an arena: of pairs that were chosen for the first places, or of random ones."""
    replicates = 4 * replicates
    told: dict[str, list[Told]] = {
        "before": [], f"{MORE} games of random pairs": [], f"{MORE} games that were chosen": []
    }  # fmt: skip
    for number in range(replicates):
        random = np.random.default_rng([seed, number])
        w = random.normal(size=ARENA)
        first, second = pairs(random, ARENA, BEFORE)
        ones = np.ones(BEFORE)
        games = Games(range(ARENA), first, second, played(random, w, first, second), ones)
        fitted = tr.PairedTies().fit(games)
        asked = fitted.next_pairs(MORE, top=TOP)
        often = [pair.games for pair in asked]
        chosen = [
            np.repeat([getattr(p, side) for p in asked], often) for side in ("first", "second")
        ]
        for name, more in zip(told, (None, pairs(random, ARENA, MORE), chosen), strict=True):
            if more is None:
                told[name].append(Told.by(fitted, w))
                continue
            new = Games(range(ARENA), *more, played(random, w, *more), np.ones(MORE))
            again = tr.PairedTies().fit(Games.concatenate([games, new]))
            told[name].append(Told.by(again, w))
    rows = []
    for name, found in told.items():
        means, errors = np.mean(found, axis=0), np.std(found, axis=0) / np.sqrt(len(found))
        cells = [
            f"{mean:.{digits}f} ± {error:.{digits}f}"
            for mean, error, digits in zip(means, errors, (3, 3, 1, 2), strict=True)
        ]
        rows.append([name, *cells])
    columns = ["", "variance of a difference", "squared error", "95 % intervals held, %",
               f"of the true first {TOP}, found"]  # fmt: skip
    said = f"{replicates} arenas of {ARENA} models and {BEFORE:,} games"
    yield table(f"{MORE} more games", columns, rows, said)


# The run -------------------------------------------------------------------------------------

STUDIES: dict[str, Callable[[int, int], Iterator[Table]]] = {
    "ranks": ranks, "tiers": tiers, "coefficients": coefficients, "goodness": goodness,
    "next-pairs": next_pairs,
}  # fmt: skip
REPLICATES = 100  # of the slowest study; others have several times as many


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the tables of the studies that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("studies", nargs="*", metavar="STUDY", help=f"{', '.join(STUDIES)} (all)")
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="goodness: which has llmfao/")
    parser.add_argument("--seed", type=int, default=0, help="of all that is drawn (default 0)")
    parser.add_argument("--quick", action="store_true", help="a tenth of the data sets: a trial")
    chosen = parser.parse_args(arguments)
    if unknown := set(chosen.studies) - set(STUDIES):
        parser.error(f"there is no study {unknown.pop()!r}: take {', '.join(STUDIES)}")
    replicates = int(REPLICATES * SHARE) if chosen.quick else REPLICATES
    for name in chosen.studies or STUDIES:
        for each in STUDIES[name](replicates, chosen.seed):
            show(each)
            if each.text:
                print(f"{each.text}.\n")
        if name == "goodness" and chosen.data is not None:
            show(goodness_of_votes(chosen.data))


if __name__ == "__main__":
    main()
