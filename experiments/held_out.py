"""Which model of ties, and one group of voters or several? Held-out likelihoods on real data.

    python experiments/held_out.py ties             # some minutes
    python experiments/held_out.py groups           # the same
    python experiments/held_out.py ties --quick     # the small sets

Lists are dealt into five parts; each part is predicted by a fit to the others, with normal
log-worths of standard deviation 3 in front in all models. A tie is an outcome, so a model must give
chances to all of them that sum to 1. Davidson-Luce does. Plackett-Luce says how likely the tiers
are once their sizes are known, exactly or by worths from ties that are broken at random (half a win
and half a loss each); how likely the sizes are is then told by a chain that knows no items: a tier
of t of the n items that are left has a chance in proportion to q_t, t ≤ n, q by maximum likelihood.
"""

from __future__ import annotations

import argparse
import os
import tarfile
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import tierrank as tr
from tierrank.data import Rankings, read_preflib, read_rankings
from tierrank.data.rankings.reading import read_lists_or_games
from tierrank.tiers import Tiers

DATA = Path(os.environ.get("TIERRANK_DATA", Path(__file__).parents[2] / "shared" / "data"))
FOLDS, BROKEN, PRIOR = 5, 10, "gaussian:3"
# (what it is, whether it is small, how it is read)
TIES: tuple[tuple[str, bool, Callable[[], Any]], ...] = (
    ("puddings, pairs", True, lambda: games("plackettluce-r", "pudding.csv")),
    ("LLMFAO, votes of people", False, lambda: games("llmfao", "crowd-comparisons.csv.xz")),
    ("football since 2006", False, lambda: games("football", "results.csv.xz", since="2006")),
    ("translations, German, five at a time", False,
     lambda: read_rankings(DATA / "wmt" / "wmt16.deu-eng.csv.xz")),
    ("translations, Russian, five at a time", False,
     lambda: read_rankings(DATA / "wmt" / "wmt16.rus-eng.csv.xz")),
    ("skating, judges", True, lambda: preflib("00006-skate", "00006-00000001.toc")),
    ("Vermont, ballots", True, lambda: preflib("00031-vermont", "00031-00000002.toc")),
    ("Supreme Court, who agrees", True, lambda: preflib("00075-scotus", "00075-00000001.toc")),
    ("Debian, what is not named last", True, lambda: preflib("00002-debian", "00002-00000003.toc")),
)  # fmt: skip
GROUPS: tuple[tuple[str, bool, Callable[[], Any]], ...] = (
    ("AGH, courses", True, lambda: preflib("00009-agh", "00009-00000001.soc")),
    ("Debian", True, lambda: preflib("00002-debian", "00002-00000003.soi")),
    ("cities", True, lambda: preflib("00034-cities", "00034-00000001.soi")),
    ("Supreme Court, with ties", True, lambda: preflib("00075-scotus", "00075-00000001.toc")),
    ("Burlington, with ties", False, lambda: preflib("00005-burlington", "00005-00000001.toi")),
    ("San Francisco, with ties", False, lambda: preflib("00021-sf", "00021-00000001.toi")),
    ("Oakland, with ties", False, lambda: preflib("00019-oakland", "00019-00000001.toi")),
)


def games(*parts: str, since: str = "") -> Any:
    """Games of a table; of those with dates, the later ones."""
    path = DATA.joinpath(*parts)
    if not since:
        return read_lists_or_games(path)
    import pandas as pd

    frame = pd.read_csv(path)
    later = frame[(frame["date"] >= since) & frame["home_score"].notna()]
    return read_lists_or_games(later[["home_team", "away_team", "home_score", "away_score"]])


def preflib(series: str, name: str) -> Rankings:
    """A file out of a series."""
    with tarfile.open(DATA / "preflib" / f"{series}.tar.xz") as archive:
        member = next(each for each in archive.getmembers() if each.name.endswith(name))
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, name)
            path.write_bytes(archive.extractfile(member).read())  # type: ignore[union-attr]
            return read_preflib(path).rankings


def one_by_one(data: Any) -> Tiers:
    """Every list as often as it was given; those of one item say nothing, and are left out."""
    lists = data if isinstance(data, Rankings) else data.to_rankings()
    often = np.repeat(np.arange(len(lists)), lists.weights.astype(int))
    tiers = lists.tiers[often]
    return tiers[np.flatnonzero(tiers.lengths.numpy() > 1)]


def folds(tiers: Tiers, seed: int = 0) -> Iterator[tuple[Tiers, Tiers]]:
    """To fit, and to predict."""
    part = np.random.default_rng(seed).permutation(len(tiers)) % FOLDS
    for fold in range(FOLDS):
        yield tiers[np.flatnonzero(part != fold)], tiers[np.flatnonzero(part == fold)]


# -- how likely the sizes of tiers are ------------------------------------------------------------


def stages(tiers: Tiers) -> tuple[Any, Any, Any]:
    """[stages] list, size of the next tier, items that are left; the last item is no choice."""
    sizes = tiers.tier_sizes.numpy()
    borders = tiers.list_offsets.numpy()
    which = np.repeat(np.arange(len(tiers)), np.diff(borders))
    taken = np.cumsum(sizes) - sizes
    left = tiers.lengths.numpy()[which] - (taken - taken[borders[:-1]][which])
    some = left > 1
    return which[some], sizes[some], left[some]


def size_chain(tiers: Tiers) -> Any:
    """[sizes] q of 1, 2, …, which sum to 1: by Hunter's method, and one tier of any size more."""
    _, sizes, left = stages(tiers)
    most = int(left.max())
    seen = np.bincount(sizes, minlength=most + 1)[1:] + 1 / most
    q = seen / seen.sum()
    for _ in range(200):
        until = np.cumsum(q)[left - 1]
        by_left = np.bincount(left, 1 / until, most + 1)[1:]
        q = seen / (np.cumsum(by_left[::-1])[::-1] + 1)
        q /= q.sum()
    return q


def log_prob_of_sizes(q: Any, tiers: Tiers) -> Any:
    """[lists] of their tiers' sizes."""
    which, sizes, left = stages(tiers)
    longest = max(int(left.max()), len(q))
    q = np.append(q, np.zeros(longest - len(q)))
    found = np.log(q[sizes - 1]) - np.log(np.cumsum(q)[left - 1])
    return np.bincount(which, found, len(tiers))


# -- ties -----------------------------------------------------------------------------------------


def exact(fitted_to: Tiers) -> tr.RankAggregator:
    """Plackett-Luce, to which a tie is an order that was not seen."""
    return tr.RankAggregator(prior=PRIOR, uncertainty=None).fit(fitted_to)


def half_wins(fitted_to: Tiers) -> tr.RankAggregator:
    """Plackett-Luce to ties broken at random, several times."""
    ways = [fitted_to.break_ties(at_random=True, generator=seed) for seed in range(BROKEN)]
    weights = np.full(BROKEN * len(fitted_to), 1 / BROKEN)
    return tr.RankAggregator(prior=PRIOR, uncertainty=None).fit(Tiers.concat(ways), weights=weights)


def tie_models(tiers: Tiers) -> dict[str, Any]:
    """[lists] held-out log-probabilities by each model: of tiers and sizes, and of tiers alone."""
    found: dict[str, list[Any]] = {"exact": [], "Davidson-Luce": [], "half-wins": []}
    sizes = []
    for fitted_to, held_out in folds(tiers):
        sizes.append(log_prob_of_sizes(size_chain(fitted_to), held_out))
        found["exact"].append(exact(fitted_to).log_prob(held_out))
        found["half-wins"].append(half_wins(fitted_to).log_prob(held_out))
        davidson = tr.DavidsonLuce(prior=PRIOR, uncertainty=None).fit(fitted_to)
        found["Davidson-Luce"].append(davidson.log_prob(held_out))
    of_sizes = np.concatenate(sizes)
    together = {name: np.concatenate(parts) for name, parts in found.items()}
    for name in ("exact", "half-wins"):
        together[name] = together[name] + of_sizes
    return together


def compare_ties(quick: bool) -> None:
    """Print the table."""
    print("| data | lists | items | in ties, % | exact | Davidson-Luce | half-wins | "
          "exact − Davidson-Luce | exact − half-wins |")  # fmt: skip
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for name, small, read in TIES:
        if quick and not small:
            continue
        tiers = one_by_one(read())
        found = tie_models(tiers)
        known = np.isfinite(found["Davidson-Luce"])
        tied = tiers.tier_sizes.numpy()
        share = 100 * tied[tied > 1].sum() / tied.sum()
        means = {model: float(values[known].mean()) for model, values in found.items()}
        best = max(means.values())
        cells = [f"**{mean:.4f}**" if mean == best else f"{mean:.4f}" for mean in means.values()]
        differences = [
            plus_minus((found["exact"] - found[other])[known])
            for other in ("Davidson-Luce", "half-wins")
        ]
        lists = f"{len(tiers):,}" + (f" ({(~known).sum()} left out)" if not known.all() else "")
        row = [name, lists, str(tiers.n_items), f"{share:.0f}", *cells, *differences]
        print(f"| {' | '.join(row)} |", flush=True)


def plus_minus(values: Any) -> str:
    """A mean and its standard error."""
    return f"{values.mean():+.4f} ± {values.std(ddof=1) / np.sqrt(len(values)):.4f}"


# -- groups ---------------------------------------------------------------------------------------


def compare_groups(quick: bool) -> None:
    """Print the table."""
    most = 3 if quick else 4
    heads = [f"K = {k}" for k in range(1, most + 1)]
    print(f"| data | lists | items | {' | '.join(heads)} | best − one | K by BIC |")
    print("| --- | ---: | ---: |" + " ---: |" * (most + 2))
    for name, small, read in GROUPS:
        if quick and not small:
            continue
        tiers = one_by_one(read())
        found = np.stack(
            [
                np.concatenate([mixture(k).fit(a).log_prob(b) for a, b in folds(tiers)])
                for k in range(1, most + 1)
            ]
        )
        means = found.mean(axis=1)
        cells = [f"**{m:.4f}**" if m == means.max() else f"{m:.4f}" for m in means]
        chosen = mixture(None, most).fit(tiers)
        gain = "" if means.argmax() == 0 else plus_minus(found[means.argmax()] - found[0])
        row = [name, f"{len(tiers):,}", str(tiers.n_items), *cells, gain, str(len(chosen.groups_))]
        print(f"| {' | '.join(row)} |", flush=True)


def mixture(groups: int | None, most: int = 4) -> tr.RankMixture:
    """So many groups, or as many as BIC says."""
    return tr.RankMixture(groups, max_groups=most, prior=PRIOR, uncertainty=None, random_state=0)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print one of the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("table", choices=["ties", "groups"])
    parser.add_argument("--quick", action="store_true", help="small sets alone")
    chosen = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    (compare_ties if chosen.table == "ties" else compare_groups)(chosen.quick)


if __name__ == "__main__":
    main()
