"""Do intervals cover where voters have tastes of their own: with clusters, and without?

    python experiments/voter_coverage.py
    python experiments/voter_coverage.py --replicates 100

A voter has log-worths of its own: those of everybody plus normal ones; and so, in the third study,
has a prompt. What a fit estimates is then not the average log-worth but where the expected
likelihood is largest: for games, the fit to exact chances; for lists, that to very many voters. A
95 % interval is to hold that.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit

import tierrank as tr
from tierrank.data import Rankings
from tierrank.data.rankings.games import Games
from tierrank.tiers import Tiers

ITEMS = 8
WORTHS = np.linspace(-1.2, 1.2, ITEMS)
TASTE = 0.8  # standard deviation of a voter's own log-worths, and of a prompt's
LENGTH = 3  # items of a list
MANY = 200_000  # voters who tell where the expected likelihood of lists is largest
Fit = Callable[..., Any]


class Study(NamedTuple):
    """How votes are drawn, what they are fitted by, and what should come out."""

    name: str
    draw: Callable[[np.random.Generator, int, int], Any]
    truth: Callable[[], Any]
    estimator: Fit
    kinds: Mapping[str, dict[str, Any]]


PLAIN = {"information": {}, "sandwich": {"uncertainty": "sandwich"}}
BY_VOTER = PLAIN | {"clusters: voter": {"clusters": "voter"}}
BY_BOTH = BY_VOTER | {
    "clusters: prompt": {"clusters": "prompt"},
    "clusters: voter and prompt": {"clusters": ["voter", "prompt"]},
}


def games_of_voters(random: np.random.Generator, voters: int, votes: int) -> Games:
    """Every voter judges so many pairs."""
    return _games(random, voters, votes, prompts=0)


def games_on_prompts(random: np.random.Generator, voters: int, votes: int) -> Games:
    """The same, where each game is about one of as many prompts as there are voters."""
    return _games(random, voters, votes, prompts=voters)


def _games(random: np.random.Generator, voters: int, votes: int, prompts: int) -> Games:
    voter = np.repeat(np.arange(voters), votes)
    first = random.integers(ITEMS, size=len(voter))
    second = (first + random.integers(1, ITEMS, size=len(voter))) % ITEMS
    own = WORTHS + TASTE * random.normal(size=(voters, ITEMS))
    lead = own[voter, first] - own[voter, second]
    beside = {"voter": voter}
    if prompts:
        beside["prompt"] = random.integers(prompts, size=len(voter))
        theirs = TASTE * random.normal(size=(prompts, ITEMS))
        lead = lead + theirs[beside["prompt"], first] - theirs[beside["prompt"], second]
    won = np.where(random.random(len(voter)) < expit(lead), 1, -1).astype(np.int8)
    names = tuple(range(ITEMS))
    return Games(names, first, second, won, np.ones(len(voter)), beside=beside)


def lists_of_voters(random: np.random.Generator, voters: int, votes: int) -> Rankings:
    """Every voter ranks a few items so many times, the last two tied in every second list."""
    voter = np.repeat(np.arange(voters), votes)
    own = WORTHS + TASTE * random.normal(size=(voters, ITEMS))
    shown = random.permuted(np.tile(np.arange(ITEMS), (len(voter), 1)), axis=1)[:, :LENGTH]
    score = np.take_along_axis(own[voter], shown, axis=1) + random.gumbel(size=shown.shape)
    ranked = np.take_along_axis(shown, (-score).argsort(axis=1), axis=1).tolist()
    tied = random.random(len(voter)) < 0.5
    orders = [
        [best, (one, two)] if both else [best, one, two]
        for (best, one, two), both in zip(ranked, tied, strict=True)
    ]
    tiers = Tiers.from_rankings(orders, items=ITEMS)
    return Rankings(tiers, np.ones(len(voter)), beside={"voter": voter})


def expected_worths(effects: int) -> Any:
    """[items] the fit of Bradley-Terry to exact chances, over so many normal effects an item."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    lead = np.subtract.outer(WORTHS, WORTHS)
    spread = TASTE * np.sqrt(2 * effects)
    chances = (expit(lead[..., None] + spread * nodes) * weights).sum(axis=-1) / weights.sum()
    np.fill_diagonal(chances, 0.0)
    return tr.PairedTies("bradley-terry").fit_table(chances).log_worths_


def many_voters() -> Any:
    """[items] the fit to lists of very many voters."""
    return tr.RankAggregator().fit(lists_of_voters(np.random.default_rng(0), MANY, 1)).log_worths_


def bradley_terry(**settings: Any) -> tr.PairedTies:
    """The model of games."""
    return tr.PairedTies("bradley-terry", **settings)


STUDIES = (
    Study("games, tastes of voters", games_of_voters, lambda: expected_worths(1), bradley_terry,
          BY_VOTER),
    Study("lists with ties, tastes of voters", lists_of_voters, many_voters, tr.RankAggregator,
          BY_VOTER),
    Study("games, tastes of voters and prompts", games_on_prompts, lambda: expected_worths(2),
          bradley_terry, BY_BOTH),
)  # fmt: skip


def coverage(study: Study, replicates: int, voters: int, votes: int, seed: int) -> dict[str, Any]:
    """[replicates] the part of the items whose interval holds the truth, by kind of intervals."""
    truth = study.truth()
    held: dict[str, list[float]] = {kind: [] for kind in study.kinds}
    for replicate in range(replicates):
        data = study.draw(np.random.default_rng([seed, replicate]), voters, votes)
        for kind, settings in study.kinds.items():
            _, low, high = study.estimator(**settings).fit(data).intervals(0.95)
            held[kind].append(float(((low <= truth) & (truth <= high)).mean()))
    return {kind: np.array(parts) for kind, parts in held.items()}


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--replicates", type=int, default=500, help="data sets (default 500)")
    parser.add_argument("--voters", type=int, default=100, help="of a data set (default 100)")
    parser.add_argument("--votes", type=int, default=30, help="of a voter (default 30)")
    parser.add_argument("--seed", type=int, default=0, help="of all that is drawn (default 0)")
    chosen = parser.parse_args(arguments)
    print(
        f"{chosen.replicates} data sets of {chosen.voters} voters with {chosen.votes} votes each, "
        f"{ITEMS} items, tastes with a standard deviation of {TASTE:g}\n"
    )
    print("| votes | intervals by | cover, per cent | within 93 to 97 |")
    print("| --- | --- | ---: | --- |")
    for study in STUDIES:
        found = coverage(study, **vars(chosen))
        for kind, held in found.items():
            mean = 100 * held.mean()
            error = 100 * held.std(ddof=1) / np.sqrt(len(held)) if len(held) > 1 else np.nan
            inside = "yes" if 93 <= mean <= 97 else "no"
            print(f"| {study.name} | {kind} | {mean:.1f} ± {error:.1f} | {inside} |")


if __name__ == "__main__":
    main()
