"""Every statistic of a leaderboard beside an independent computation of it, and the difference.

    python benchmarks/differences.py                     # about a minute
    python benchmarks/differences.py --python PATH       # of an environment with arena-rank
    python benchmarks/differences.py --quick             # without what is drawn often

What is independent: R's PlackettLuce (its figures are in a file), statsmodels, choix, arena-rank,
sums over all permutations or partitions, dense matrices by automatic differentiation, or data
simulated from known values. A row holds the largest difference of its numbers. Two more tables
have what arena-rank's penalty does to coefficients, and standard errors clustered by who voted, on
the votes of LLMFAO.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
from measure import Claim, Column, Progress, Report, Table, error, figures, main

import tierrank as tr
from tierrank.data import Games, read_games

DATA = Path(os.environ.get("TIERRANK_DATA", Path(__file__).parents[2] / "shared" / "data"))
NAMES = tuple("pqrst")
BOTH = [("long_a", "long_b"), "turn"]
OTHER = ""  # Python of an environment with arena-rank


class Plan(NamedTuple):
    """Data sets that are drawn, where a statistic is compared with simulation."""

    drawn: int


class Row(NamedTuple):
    """A statistic and its independent computation."""

    statistic: str
    beside: str
    data: str
    difference: float
    tolerance: float


def apart(*pairs: tuple[Any, Any]) -> float:
    """The largest difference between ours and theirs."""
    return max(float(np.abs(np.asarray(a) - np.asarray(b)).max()) for a, b in pairs)


# -- other software -------------------------------------------------------------------------------


def r_plackett_luce() -> Iterator[Row]:
    """Davidson-Luce, by R's PlackettLuce 0.4.5."""
    known = json.loads((DATA / "r-reference" / "davidson-luce.json").read_text())
    ranked = [
        [tuple(i for i, rank in enumerate(row) if rank == place) for place in sorted(set(row))]
        for row in known["simulated_ranks"]
    ]
    table = np.loadtxt(
        DATA / "plackettluce-r" / "pudding.csv", delimiter=",", skiprows=1, dtype=int
    )
    pairs: list[Any] = []
    counts: list[int] = []
    for i, j, _, won, lost, tied in table.tolist():
        pairs += [[i - 1, j - 1], [j - 1, i - 1], [(i - 1, j - 1)]]
        counts += [won, lost, tied]
    for title, lists, weights in (
        ("simulated, 80 rankings of 6", ranked, np.ones(len(ranked))),
        ("pudding", pairs, np.array(counts)),
    ):
        for pseudo in ("0", "0.5"):
            theirs = known[f"{title}, npseudo={pseudo}"]
            prior = None if pseudo == "0" else f"pseudo-item:{pseudo}"
            fitted = tr.DavidsonLuce(prior=prior).fit(lists, weights=weights, items=6)
            ours = [*fitted.log_worths_, *fitted.log_tie_prevalences_]
            data = f"{title}, {pseudo} pseudo-rankings"
            yield Row("Davidson-Luce: log-worths, log δ", "R", data, apart((ours, theirs["coef"])),
                      1e-8)  # fmt: skip
            off = abs(fitted.log_likelihood_ - theirs["log_likelihood"])
            yield Row("Davidson-Luce: log-likelihood", "R", data, off, 1e-8)
            if prior is None:  # of a prior, R's covariance knows nothing
                errors = np.sqrt(np.diag(fitted.covariance_))
                off = apart((errors, theirs["standard_errors"]))
                yield Row("Davidson-Luce: standard errors", "R", data, off, 1e-8)


def choix_estimates(random: np.random.Generator) -> Iterator[Row]:
    """Strict rankings, and games without ties, by choix."""
    import choix

    w = random.normal(size=10)
    orders = [
        np.array(some)[np.argsort(-w[some] - random.gumbel(size=len(some)))].tolist()
        for some in (random.permutation(10)[:6].tolist() for _ in range(300))
    ]
    theirs = choix.ilsr_rankings(10, orders, tol=1e-12)
    off = apart((tr.RankAggregator().fit(orders, items=10).log_worths_, theirs - theirs.mean()))
    yield Row("Plackett-Luce: log-worths", "choix", "simulated, 300 lists of 6", off, 1e-8)
    votes = votes_with_covariates()
    won = [
        (int(a), int(b)) if outcome > 0 else (int(b), int(a))
        for a, b, outcome in zip(votes.first, votes.second, votes.outcome, strict=True)
    ]
    theirs = choix.ilsr_pairwise(len(NAMES), won, tol=1e-12)
    ours = tr.PairedTies("bradley-terry").fit(votes).log_worths_
    off = apart((ours, theirs - theirs.mean()))
    yield Row("Bradley-Terry: log-worths", "choix", "simulated, 1,500 votes", off, 1e-8)


def votes_with_covariates(games: int = 1500) -> Games:
    """Votes that depend on a difference of lengths and on a turn, by voters on prompts."""
    random = np.random.default_rng(0)
    w = random.normal(size=len(NAMES))
    first = random.integers(len(w), size=games)
    second = (first + random.integers(1, len(w), size=games)) % len(w)
    beside = {
        "long_a": random.normal(100, 30, size=games),
        "long_b": random.normal(100, 30, size=games),
        "turn": random.integers(0, 2, size=games),
        "voter": random.integers(90, size=games),
        "prompt": random.integers(60, size=games),
    }
    lead = w[first] - w[second] + 0.02 * (beside["long_a"] - beside["long_b"])
    won = random.random(games) < 1 / (1 + np.exp(-lead - 0.3 * beside["turn"]))
    outcome = np.where(won, 1, -1).astype(np.int8)
    return Games(NAMES, first, second, outcome, np.ones(games), beside=beside)


def logistic_regression() -> Iterator[Row]:
    """Covariates and clusters of games, by statsmodels' GLM."""
    import statsmodels.api as sm

    games = votes_with_covariates()
    rows, size = np.arange(len(games)), len(NAMES)
    items = np.zeros((len(games), size))
    items[rows, games.first] = 1
    items[rows, games.second] -= 1
    beside = games.beside
    x = np.column_stack([items[:, 1:], beside["long_a"] - beside["long_b"], beside["turn"]])
    won = (games.outcome == 1).astype(float)
    change = np.eye(size + 2)[1:]  # differences from the first item, as a regression has them
    change[: size - 1, 0] = -1
    both = np.column_stack([beside["voter"], beside["prompt"]])
    for clusters, groups in (
        (None, None), ("voter", beside["voter"]), (["voter", "prompt"], both)
    ):  # fmt: skip
        how = {} if groups is None else {"cov_type": "cluster", "cov_kwds": {"groups": groups}}
        theirs = sm.GLM(won, x, family=sm.families.Binomial()).fit(tol=1e-14, maxiter=100, **how)
        # its factor for small samples has one part more than G/(G − 1)
        more = 1.0 if groups is None else (len(won) - 1) / (len(won) - x.shape[1])
        ours = tr.PairedTies("bradley-terry", covariates=BOTH, clusters=clusters).fit(games)
        data = "simulated, 1,500 votes"
        if groups is None:
            estimates = [*(ours.log_worths_[1:] - ours.log_worths_[0]), *ours.coef_]
            off = apart((estimates, theirs.params))
            yield Row("covariates: worths, coefficients", "statsmodels, GLM", data, off, 1e-8)
        errors = np.sqrt(np.diag(change @ ours.covariance_ @ change.T))
        off = apart((errors, np.sqrt(np.diag(theirs.cov_params()) / more)))
        what = "covariates: standard errors"
        if clusters:
            what = f"standard errors by {' and '.join(np.atleast_1d(clusters))}"
        yield Row(what, "statsmodels, GLM", data, off, 1e-8)


LONG = 30  # by which differences of lengths are divided for arena-rank, so that scales are alike
ARENA = f"""
import sys
import numpy as np
from arena_rank.models.contextual_bradley_terry import ContextualBradleyTerry
from arena_rank.utils.data_utils import ContextualPairDataset
given = np.load(sys.argv[1])
found = {{}}
for name, penalty in (("none", {{"reg": 0.0}}), ("default", {{}})):
    model = ContextualBradleyTerry(5, 2, hessian_reg=1e-7, ftol=1e-16, gtol=1e-12, **penalty)
    fitted = model.compute_ratings_and_cis(
        ContextualPairDataset(list("pqrst"), given["pairs"], given["won"], given["x"], given["one"])
    )
    w = np.asarray(model.params["ratings"])
    found |= {{
        f"{{name}} w": w - w.mean(),
        f"{{name}} coef": np.asarray(fitted["coeffs"]) / [{LONG}, 1],
        f"{{name}} errors": np.sqrt(np.asarray(fitted["variances"])) / model.alpha,
    }}
np.savez(sys.argv[2], **found)
"""


def by_arena_rank() -> dict[str, Any]:
    """Log-worths, coefficients and errors by its contextual Bradley-Terry, in a Python that has it.

    Without a penalty on the coefficients, and with the one that it has by default.
    """
    games = votes_with_covariates()
    beside = games.beside
    with TemporaryDirectory() as folder:
        given, out = (str(Path(folder, name)) for name in ("given.npz", "out.npz"))
        np.savez(
            given,
            pairs=np.column_stack([games.first, games.second]),
            won=(games.outcome + 1) / 2,
            x=np.column_stack([(beside["long_a"] - beside["long_b"]) / LONG, beside["turn"]]),
            one=np.ones(len(games)),
        )
        subprocess.run([OTHER or sys.executable, "-c", ARENA, given, out], check=True)
        with np.load(out) as found:
            return dict(found)


def arena_rank(report: Report) -> Iterator[Row]:
    """Covariates of games beside arena-rank's without its penalty; and what the penalty does."""
    theirs = by_arena_rank()
    ours = tr.PairedTies("bradley-terry", covariates=BOTH, uncertainty="sandwich").fit(
        votes_with_covariates()
    )
    off = apart((ours.log_worths_, theirs["none w"]), (ours.coef_, theirs["none coef"]))
    beside_what, data = "arena-rank, contextual", "simulated, 1,500 votes"
    yield Row("covariates: worths, coefficients", beside_what, data, off, 1e-4)
    off = apart((ours.standard_errors_, theirs["none errors"]))
    yield Row("covariates: standard errors", beside_what, data, off, 1e-4)
    rows = [
        [name, *values]
        for name, *values in zip(
            ("0.02 a word", "0.3 for the turn"),
            *(coef.tolist() for coef in (ours.coef_, theirs["none coef"], theirs["default coef"])),
            strict=True,
        )
    ]
    columns = [Column("the truth"), *(Column(name, "{:.4f}".format) for name in (
        "tierrank", "arena-rank, reg=0", "arena-rank, its default"))]  # fmt: skip
    report.add(Table("Coefficients of covariates, and a penalty", columns, rows))


def cox_regression(random: np.random.Generator) -> Iterator[Row]:
    """Covariates of items within lists, by statsmodels' stratified Cox regression."""
    import pandas as pd
    from statsmodels.duration.hazard_regression import PHReg

    w, parts = random.normal(size=5), []
    for number in range(300):
        items, place = random.choice(5, 4, replace=False), random.permutation(4) + 1.0
        rank = (-(w[items] - 0.4 * place + random.gumbel(size=4))).argsort().argsort()
        names = [NAMES[code] for code in items]
        parts.append(pd.DataFrame({"list": number, "item": names, "rank": rank, "place": place}))
    frame = pd.concat(parts, ignore_index=True)
    ours = tr.RankAggregator(covariates=["place"]).fit(frame, list="list", item="item", rank="rank")
    dummies = pd.get_dummies(frame["item"])[list(ours.items_)].to_numpy(float)[:, 1:]
    x = np.column_stack([dummies, frame["place"]])
    theirs = PHReg(frame["rank"].to_numpy(float), x, strata=frame["list"].to_numpy()).fit(disp=0)
    data = "simulated, 300 lists of 4"
    estimates = [*(ours.log_worths_[1:] - ours.log_worths_[0]), *ours.coef_]
    off = apart((estimates, theirs.params))
    yield Row("covariates of lists: worths, coefficient", "statsmodels, PHReg", data, off, 1e-6)
    off = apart((ours.coef_standard_errors_, theirs.bse[-1:]), (ours.log_likelihood_, theirs.llf))
    yield Row("covariates of lists: error, likelihood", "statsmodels, PHReg", data, off, 1e-6)


def goodness_of_fit(random: np.random.Generator) -> Iterator[Row]:
    """Pearson's statistic, residuals and p-values of pairs, by statsmodels and scipy."""
    import statsmodels.api as sm
    from scipy.stats import binomtest

    games = votes_with_covariates()
    ours = tr.PairedTies("bradley-terry").fit(games).goodness(draws=2)
    design = np.zeros((len(ours.first), len(NAMES)))
    design[np.arange(len(design)), ours.first] = 1
    design[np.arange(len(design)), ours.second] = -1
    counts = np.stack([ours.wins, ours.losses], axis=1)
    theirs = sm.GLM(counts, design[:, 1:], family=sm.families.Binomial()).fit(tol=1e-14)
    data = "simulated, 1,500 votes"
    off = apart(
        (ours.statistic, theirs.pearson_chi2),
        (ours.residuals, theirs.get_influence().resid_studentized),
    )
    yield Row("goodness: X², residuals", "statsmodels, GLM", data, off, 1e-6)
    exact = []
    for won, lost, p in zip(ours.wins, ours.losses, theirs.fittedvalues, strict=True):
        tails = [binomtest(int(won), int(won + lost), p, side).pvalue
                 for side in ("less", "greater")]  # fmt: skip
        exact.append(min(1.0, 2 * min(tails)))
    yield Row("goodness: p of pairs", "scipy, binomtest", data, apart((ours.p_values, exact)), 1e-8)


# -- sums over everything, and dense matrices -----------------------------------------------------


def strict_log_prob(w: Any, order: tuple[int, ...]) -> float:
    """Plackett and Luce's product."""
    return float(sum(w[i] - np.logaddexp.reduce(w[list(order[n:])]) for n, i in enumerate(order)))


def enumeration(random: np.random.Generator) -> Iterator[Row]:
    """Probabilities and places by sums over permutations; tiers by a sum over all cuts."""
    w = random.normal(size=7)
    orders = list(itertools.permutations(range(7)))
    chances = np.exp([strict_log_prob(w, order) for order in orders])
    tiers = [(0, 3), (1,), (2, 4, 6), (5,)]
    label = {item: place for place, tier in enumerate(tiers) for item in tier}
    fits = [all(label[a] <= label[b] for a, b in itertools.pairwise(order)) for order in orders]
    ours = float(tr.log_prob(w, tr.Tiers.from_rankings([tiers], items=7))[0])
    off = abs(ours - np.log(chances[fits].sum()))
    data = "7 items, 5,040 permutations"
    yield Row("Plackett-Luce with ties: log-probability", "enumeration", data, off, 1e-10)
    votes = [[int(item) for item in order] for order in random.permutation(orders)[:40]]
    fitted = tr.RankAggregator(prior="gaussian").fit(votes, items=7)
    chances = np.exp([strict_log_prob(fitted.log_worths_, order) for order in orders])
    places = np.argsort(orders, axis=1) + 1
    off = apart((fitted.expected_ranks().estimate, chances @ places))
    yield Row("expected ranks", "enumeration", data, off, 1e-10)
    off = apart((fitted.top_k_proba(3), chances @ (places <= 3)))
    yield Row("probabilities of the first 3", "enumeration", data, off, 1e-8)
    yield from tier_cuts(random)


def tier_cuts(random: np.random.Generator) -> Iterator[Row]:
    """P(cut) by the evidence of all 2^(N−1) ordered partitions, normal integrals written out."""
    from math import factorial

    from scipy.stats import multivariate_normal

    from tierrank.aggregation.tier_cuts import cut_into_tiers

    w, variances = random.normal(size=8), random.uniform(0.05, 0.3, size=8)
    cut = cut_into_tiers(w, variances)
    tie = (1 - 0.75) / 0.75
    rising = float(np.prod(tie + np.arange(8)))
    weights, where = [], []
    for cuts in itertools.product([False, True], repeat=7):
        weight = 1 / rising
        for tier in np.split(cut.order, np.flatnonzero(cuts) + 1):
            size = len(tier)
            spread = np.diag(variances[tier]) + cut.spread**2
            weight *= tie * factorial(size - 1)
            weight *= float(multivariate_normal(np.full(size, cut.mean), spread).pdf(w[tier]))
        weights.append(weight)
        where.append(cuts)
    theirs = np.array(weights) @ np.array(where) / sum(weights)
    off = apart((cut.cut_probabilities, theirs), (cut.log_evidence, np.log(sum(weights))))
    yield Row("tiers: P(cut), log-evidence", "enumeration", "8 items, 128 partitions", off, 1e-9)


def through_time(random: np.random.Generator) -> Iterator[Row]:
    """Mode, bands and marginal likelihood by a dense fit with an unknown an item and period."""
    import torch

    items, periods, variance, scale = 4, 6, 0.2, 2.0
    first = random.integers(items, size=60)
    second = (first + random.integers(1, items, size=60)) % items
    won = random.choice([1, -1], size=60)
    when = np.concatenate([np.zeros(20, int), np.sort(random.integers(1, periods, size=40))])
    when[-1] = periods - 1
    one, other, sign, at = (torch.from_numpy(each) for each in (first, second, won, when))

    def minus_log_density(point: Any) -> Any:
        walk = point.reshape(items, periods)
        steps = walk[:, 1:] - walk[:, :-1]
        prior = (walk[:, 0] ** 2).sum() / (2 * scale**2) + (steps**2).sum() / (2 * variance)
        prior = prior + items * np.log(scale) + steps.numel() / 2 * np.log(variance)
        lead = walk[one, at] - walk[other, at]
        return prior - torch.nn.functional.logsigmoid(sign * lead).sum()

    point = torch.zeros(items * periods, dtype=torch.float64)
    for _ in range(15):
        gradient = torch.autograd.functional.jacobian(minus_log_density, point)
        hessian = torch.autograd.functional.hessian(minus_log_density, point)
        point = point - torch.linalg.solve(hessian, gradient)
    marginal = float(-minus_log_density(point) - torch.logdet(hessian) / 2)
    walk = point.numpy().reshape(items, periods)
    covariance = torch.linalg.inv(hessian).numpy()
    rows = [(str(a), str(b), "first" if o > 0 else "second")
            for a, b, o in zip(first, second, won, strict=True)]  # fmt: skip
    fitted = tr.WorthsThroughTime(
        "bradley-terry", step=1, variance=variance, prior=f"gaussian:{scale}"
    ).fit(rows, times=when)
    found = fitted.through_time(0.95, [str(item) for item in range(items)])
    # counted from the average of all, each where it was seen last
    seen = [[max(when[((first == i) | (second == i)) & (when <= p)], default=0)
             for p in range(periods)] for i in range(items)]  # fmt: skip
    middle, error = np.zeros((items, periods)), np.zeros((items, periods))
    for item, period in itertools.product(range(items), range(periods)):
        along = np.zeros((items, periods))
        along[item, period] = 1
        for each in range(items):
            along[each, seen[each][period]] -= 1 / items
        middle[item, period] = (along * walk).sum()
        error[item, period] = np.sqrt(along.ravel() @ covariance @ along.ravel())
    data = "simulated, 60 games in 6 periods"
    off = apart((found.estimate, middle))
    yield Row("through time: log-worths", "dense, autograd", data, off, 1e-8)
    off = apart(((found.high - found.estimate) / 1.959963984540054, error))
    yield Row("through time: standard errors", "dense, autograd", data, off, 1e-8)
    off = abs(fitted.log_likelihood_ - marginal)
    yield Row("through time: marginal likelihood", "dense, autograd", data, off, 1e-8)


def next_votes(random: np.random.Generator) -> Iterator[Row]:
    """What the next games do to the errors, by the information written out."""
    games = votes_with_covariates(200)
    fitted = tr.PairedTies("bradley-terry").fit(games)
    w, size = fitted.log_worths_, len(NAMES)
    found = fitted.next_pairs(30, top=2)
    number = {name: at for at, name in enumerate(fitted.items_)}
    meetings = [(a, b, 1) for a, b in zip(games.first, games.second, strict=True)]
    meetings += [(number[pair.first], number[pair.second], pair.games) for pair in found]
    information = np.ones((size, size))  # the constant, of which games say nothing
    for a, b, often in meetings:
        p = 1 / (1 + np.exp(w[b] - w[a]))
        along = np.eye(size)[a] - np.eye(size)[b]
        information += often * p * (1 - p) * np.outer(along, along)
    centre = np.eye(size) - 1 / size
    errors = np.sqrt(np.diag(centre @ np.linalg.inv(information) @ centre))
    off = apart((found.standard_errors_after, errors))
    what, data = "next pairs: standard errors after", "simulated, 200 votes, 30 more"
    yield Row(what, "matrix, inverted", data, off, 1e-8)


# -- simulation -----------------------------------------------------------------------------------


def two_groups(random: np.random.Generator, drawn: int) -> Iterator[Row]:
    """Shares and log-worths of two groups that drew 2,000 lists with ties."""
    line = np.linspace(1.5, -1.5, 10)
    worths = np.stack([line, np.roll(line, 5)])
    whose = (random.random(2000) < 0.35).astype(int)
    lists = []
    for group in whose:
        order = np.argsort(-worths[group] - random.gumbel(size=10)).tolist()
        tiers = (order[:1], order[1:3], order[3:4], order[4:7], order[7:])
        lists.append([tuple(tier) for tier in tiers])
    mixture = tr.RankMixture(2, starts=min(drawn, 3), random_state=1).fit(lists, items=10)
    data = "simulated, 2,000 lists of 10"
    off = apart((mixture.shares_, [1 - whose.mean(), whose.mean()]))
    yield Row("two groups: shares", "what was drawn", data, off, 0.03)
    z = [(group.log_worths_ - (w - w.mean())) / group.standard_errors_
         for group, w in zip(mixture.groups_, worths, strict=True)]  # fmt: skip
    off = abs(float(np.square(z).mean()) - 1)  # over 20 log-worths, 18 of them free
    yield Row("two groups: mean square of z, less 1", "what was drawn", data, off, 1.0)
    wrong = float((mixture.predict_groups(lists) - 1 != whose).mean())
    yield Row("two groups: lists in the other group", "what was drawn", data, wrong, 0.1)


def separating(random: np.random.Generator, drawn: int) -> Iterator[Row]:
    """As many more games as are said tell two apart in four of five cases."""
    w = np.array([0.6, 0.2, -0.2, -0.6])
    first, second = np.array(list(itertools.permutations(range(4), 2))).T
    chance = 1 / (1 + np.exp(w[second] - w[first]))
    often = 10
    rows = [
        (int(one), int(other), 1 if game < often * p else -1)
        for one, other, p in zip(first, second, chance, strict=True)
        for game in range(often)
    ]
    fitted = tr.PairedTies("bradley-terry").fit(rows)
    a, b = (fitted.items_.index(item) for item in (1, 2))
    more = fitted.games_to_separate(1, 2)
    at = fitted.log_worths_
    lead = at[a] - at[b]
    separated = 0
    for _ in range(drawn):
        games = []
        for one, other in zip(first.tolist(), second.tolist(), strict=True):
            x, y = fitted.items_.index(one), fitted.items_.index(other)
            p = 1 / (1 + np.exp(at[y] - at[x]))
            won = int(random.binomial(often, p))
            games += [(one, other, 1)] * won + [(one, other, -1)] * (often - won)
        won = int(random.binomial(more, 1 / (1 + np.exp(-lead))))
        games += [(1, 2, 1)] * won + [(1, 2, -1)] * (more - won)
        again = tr.PairedTies("bradley-terry").fit(games)
        matrix = again.covariance([1, 2])
        gap = again.log_worths_[again.items_.index(1)] - again.log_worths_[again.items_.index(2)]
        error = np.sqrt(matrix[0, 0] + matrix[1, 1] - 2 * matrix[0, 1])
        separated += bool(gap > 1.959963984540054 * error)
    off = abs(separated / drawn - 0.8)
    data = f"{drawn} data sets, {more} more games"
    tolerance = 3 * np.sqrt(0.8 * 0.2 / drawn)
    yield Row("games to separate: power, less 0.8", "simulation", data, off, tolerance)


# -- who voted ------------------------------------------------------------------------------------


def clusters(report: Report) -> None:
    """By how much clusters change standard errors, on the votes of LLMFAO."""
    path = DATA / "llmfao" / "crowd-comparisons.csv.xz"
    votes = read_games(
        path, first="left", second="right", winner="winner", keep=["worker", "prompt", "id"]
    )
    plain = tr.PairedTies().fit(votes)
    rows: list[list[Any]] = [["the information", None, 1.0, 1.0, 1.0, places(plain)]]
    for name, by in (
        ("none (`uncertainty=\"sandwich\"`)", None), ("worker", "worker"),
        ("comparison shown (id)", "id"), ("worker and comparison", ["worker", "id"]),
        ("prompt", "prompt"), ("worker and prompt", ["worker", "prompt"]),
    ):  # fmt: skip
        how: dict[str, Any] = {"uncertainty": "sandwich"} if by is None else {"clusters": by}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of few clusters
            fitted = tr.PairedTies(**how).fit(votes)
        ratio = fitted.standard_errors_ / plain.standard_errors_
        low, middle, high = np.quantile(ratio, (0.1, 0.5, 0.9))
        number = len(np.unique(votes.beside[by])) if isinstance(by, str) else None
        rows.append([name, number, middle, low, high, places(fitted)])
    columns = [
        Column("clusters"), Column("how many", "{:,}".format), Column("median", figures),
        Column("10 %", figures), Column("90 %", figures), Column("places", figures),
    ]  # fmt: skip
    title = "LLMFAO: standard errors by clusters over those by the information"
    note = (
        "Median and percentiles are over the models; places are the mean length of 95 % of ranks."
    )
    report.add(Table(title, columns, rows, [note]))


def places(fitted: Any) -> float:
    """By how many places an item's rank is uncertain, on average."""
    return float(np.mean(fitted.rank_intervals() @ [-1, 1]))


def measure(plan: Plan, report: Report, progress: Progress) -> list[Claim]:
    """Compare everything."""
    parts: list[tuple[str, Callable[[np.random.Generator], Iterator[Row]]]] = [
        ("R", lambda _: r_plackett_luce()),
        ("choix", choix_estimates),
        ("statsmodels", lambda _: logistic_regression()),
        ("statsmodels", cox_regression),
        ("statsmodels", goodness_of_fit),
        ("arena-rank", lambda _: arena_rank(report)),
        ("enumeration", enumeration),
        ("dense matrices", through_time),
        ("matrices", next_votes),
        ("simulation", lambda random: two_groups(random, plan.drawn)),
        ("simulation", lambda random: separating(random, plan.drawn)),
    ]
    rows, left_out = [], []
    for seed, (name, part) in enumerate(parts):
        progress(name)
        try:
            rows += part(np.random.default_rng(seed))
        except (ImportError, FileNotFoundError, subprocess.CalledProcessError) as problem:
            left_out.append(f"{name} was left out: {str(problem).splitlines()[0]}")
    claims = [Claim(f"{row.statistic}; {row.data}", row.difference, row.tolerance) for row in rows]
    table = [
        [*row, "yes" if claim.holds else "NO"] for row, claim in zip(rows, claims, strict=True)
    ]
    columns = [
        Column("statistic"), Column("beside"), Column("data"), Column("difference", error),
        Column("tolerance", error), Column("ok"),
    ]  # fmt: skip
    report.add(Table("Statistics beside independent computations", columns, table, left_out))
    if (DATA / "llmfao").exists():
        progress("clusters")
        clusters(report)
    return claims


if __name__ == "__main__":
    if "--python" in sys.argv:
        place = sys.argv.index("--python")
        OTHER = sys.argv[place + 1]
        del sys.argv[place : place + 2]
    packages = ["torch", "numpy", "scipy", "statsmodels", "choix", "tierrank"]
    main(__doc__.splitlines()[0], packages, measure, Plan(400), Plan(20))
