"""Which objective when only the order matters: held-out lists by likelihood, and pair by pair.

    python experiments/order_or_probabilities.py --data DATA
    python experiments/order_or_probabilities.py --data DATA --sets agh wmt

DATA has the archives of PrefLib in `preflib/`, and `wmt/`. Voters are dealt into five parts; every
method is fitted to four of them and judged by the fifth. Its scores are multiplied by one number,
the one that makes the lists of the fit most probable, so that nobody is blamed for a scale. Then a
held-out list has

    log-likelihood   exact, under the Plackett-Luce model with these scores, in nats
    accuracy         the part of its pairs that the scores put as the voter did, tied scores half

and methods are compared with the exact likelihood, voter by voter: the mean difference, and 1.96
standard errors of it.
"""

from __future__ import annotations

import argparse
import fnmatch
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from command import Progress, machine
from scipy.optimize import minimize_scalar

import tierrank as tr
from tierrank import metrics
from tierrank._types import FloatArray
from tierrank.data import Rankings, read_rankings

PARTS = 5
LEAST = 10  # lists of a set
SETS = {  # by name: what the lists are, the archive or folder, its files
    "agh": ("strict, complete", "00009-agh", "*.soc"),
    "breakfast": ("strict, complete", "00035-breakfast", "*.soc"),
    "f1seasons": ("strict, who finished", "00052-f1seasons", "*.soi"),
    "debian": ("strict, who was named", "00002-debian", "*.soi"),
    "glasgow": ("strict, who was named", "00008-glasgow", "*.soi"),
    "cities": ("strict, six of many", "00034-cities", "*.soi"),
    "debian, others last": ("one tie, of who was not named", "00002-debian", "*.toc"),
    "education": ("tiers", "00032-education", "*.toc"),
    "vermont": ("two tiers, approved or not", "00031-vermont", "*.toc"),
    "poster": ("two tiers, yes and no", "00033-poster", "*.cat"),
    "scotus": ("two or three tiers", "00075-scotus", "*.toc"),
    "wmt": ("five graded, with ties", "wmt", "*.csv.xz"),
}


def by_objective(objective: str, lists: Rankings, prior: str) -> FloatArray:
    """[items] log-worths."""
    return tr.RankAggregator(objective, prior=prior, uncertainty=None).fit(lists).log_worths_


def by_borda(lists: Rankings, prior: str) -> FloatArray:
    """[items] the part of the others in its lists that an item beats on average, a tie half."""
    tiers, size = lists.tiers, len(lists.items)
    sizes, lengths = tiers.tier_sizes.numpy(), tiers.lengths.numpy()
    before = np.repeat(tiers.tier_offsets[:-1].numpy(), sizes)  # entries in better tiers …
    before -= np.repeat(np.cumsum(lengths) - lengths, lengths)  # … of the same list
    others = np.repeat(lengths, lengths) - 1
    beaten = others - before - (np.repeat(sizes, sizes) - 1) / 2
    weight = np.where(others > 0, np.repeat(lists.weights, lengths) / np.maximum(others, 1), 0.0)
    items = tiers.items.numpy()
    most = np.bincount(items, weight * others, size)
    found = np.bincount(items, weight * beaten, size)
    return np.divide(found, most, out=np.full(size, 0.5), where=most > 0)


METHODS: dict[str, Callable[[Rankings, str], FloatArray]] = {
    "pl-partition": partial(by_objective, "pl-partition"),
    "ranknet": partial(by_objective, "ranknet"),
    "Borda": by_borda,
}


class Judged(NamedTuple):
    """Held-out lists one by one."""

    likelihood: FloatArray
    accuracy: FloatArray


def judged(lists: Rankings, scores: FloatArray) -> Judged:
    """[different lists] of each."""
    tiers = lists.tiers
    label = np.repeat(tiers.grades.numpy(), tiers.tier_sizes.numpy())
    wrong, right = (  # each with the pairs whose scores are tied
        metrics.pairwise_disagreement(
            sign * scores[tiers.items.numpy()], label, lengths=tiers.lengths.numpy(), weight="one",
            normalize=True, reduction="none",
        )
        for sign in (1, -1)
    )  # fmt: skip
    return Judged(np.asarray(tr.log_prob(scores, tiers)), (1 - wrong + right) / 2)


def rescaled(lists: Rankings, scores: FloatArray) -> FloatArray:
    """Times the number that makes these lists most probable."""
    centred = scores - scores.mean()
    unit = centred / max(centred.std(), 1e-12)

    def loss(log_factor: float) -> float:
        log_p = np.asarray(tr.log_prob(np.exp(log_factor) * unit, lists.tiers))
        return -float(lists.weights @ log_p)

    return np.asarray(np.exp(minimize_scalar(loss, bounds=(-5, 3)).x) * unit)


def held_out(lists: Rankings, prior: str, random: np.random.Generator) -> dict[str, Judged]:
    """By method, [voters] what their lists have when they were left out of the fit."""
    voter = np.repeat(np.arange(len(lists)), np.round(lists.weights).astype(int))
    part = random.permutation(len(voter)) % PARTS
    found: dict[str, list[Judged]] = {name: [] for name in METHODS}
    for out in range(PARTS):
        counts = np.bincount(voter[part != out], minlength=len(lists))
        seen = lists.of(np.flatnonzero(counts))
        seen = replace(seen, weights=counts[counts > 0].astype(np.float64))
        unseen = voter[part == out]
        for name, method in METHODS.items():
            each = judged(lists, rescaled(seen, method(seen, prior)))
            found[name].append(Judged(*(values[unseen] for values in each)))
    return {
        name: Judged(*map(np.concatenate, zip(*each, strict=True))) for name, each in found.items()
    }


def read(data: Path, archive: str, files: str) -> Iterator[Rankings]:
    """Lists that order something, of all files with enough of them."""
    with tempfile.TemporaryDirectory() as temporary:
        paths = sorted((data / archive).glob(files))
        if not paths:
            with tarfile.open(data / "preflib" / f"{archive}.tar.xz") as tar:
                for member in tar.getmembers():
                    if fnmatch.fnmatch(member.name, files):
                        path = Path(temporary, Path(member.name).name)
                        path.write_bytes(tar.extractfile(member).read())  # type: ignore[union-attr]
                        paths.append(path)
        for path in sorted(paths):
            lists = read_rankings(path)
            lists = lists.of(np.flatnonzero(lists.tiers.n_tiers.numpy() > 1))
            if len(lists.items) > 2 and lists.weights.sum() >= LEAST:
                yield lists


def difference(one: FloatArray, other: FloatArray, digits: int) -> str:
    """The mean difference, and 1.96 standard errors."""
    d = one - other
    return f"{d.mean():+.{digits}f} ± {1.96 * d.std(ddof=1) / np.sqrt(len(d)):.{digits}f}"


def main() -> None:
    """Print a table."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--data", type=Path, required=True, metavar="FOLDER")
    options.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    options.add_argument(
        "--prior", default="gaussian:3", help="of all objectives: somebody may never lose"
    )
    options.add_argument("--seed", type=int, default=0)
    chosen = options.parse_args()
    first, *others = METHODS
    rows = []
    with Progress(len(chosen.sets)) as progress:
        for name in chosen.sets:
            what, *where = SETS[name]
            random = np.random.default_rng(chosen.seed)
            sets = [held_out(lists, chosen.prior, random) for lists in read(chosen.data, *where)]
            every = {
                method: Judged(
                    *map(np.concatenate, zip(*(one[method] for one in sets), strict=True))
                )
                for method in METHODS
            }
            own, voters = every[first], len(every[first].likelihood)
            row = [f"{name}: {what}", f"{len(sets)}", f"{voters:,}"]
            row += [f"{own.likelihood.mean():.3f}", f"{100 * own.accuracy.mean():.2f} %"]
            for method in others:
                row.append(difference(every[method].likelihood, own.likelihood, 3))
                row.append(difference(100 * every[method].accuracy, 100 * own.accuracy, 2))
            rows.append(row)
            progress.step(name)
    heads = ["lists", "sets", "voters", f"{first}: nats", "pairs"]
    heads += [head for method in others for head in (f"{method}: nats", "pairs")]
    for row in [heads, ["---"] + ["---:"] * (len(heads) - 1), *rows]:
        print(f"| {' | '.join(row)} |")
    print("\n" + "; ".join(f"{name}: {value}" for name, value in machine().items()))


if __name__ == "__main__":
    main()
