"""PairedTies beside others: plain likelihoods under scipy, choix, evalica, published estimates."""

import csv
import json
import lzma
from collections import Counter

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from real_data import real
from tierrank.aggregation.paired import PairedTies
from tierrank.data.rankings.games import Games
from tierrank.losses.pairwise import davidson, rao_kupper

both_models = pytest.mark.parametrize("model", ["davidson", "rao-kupper"])


def opened(name):
    path = real(*name.split("/"))
    packed = path.suffix == ".xz"
    return lzma.open(path, "rt", encoding="utf-8") if packed else path.open(encoding="utf-8")


def pudding():
    wins, ties = np.zeros((6, 6)), np.zeros((6, 6))
    with opened("plackettluce-r/pudding.csv") as file:
        for row in csv.DictReader(file):
            i, j = int(row["i"]) - 1, int(row["j"]) - 1
            wins[i, j], wins[j, i] = float(row["w_ij"]), float(row["w_ji"])
            ties[i, j] = ties[j, i] = float(row["t_ij"])
    return wins, ties


def football(since="2006", least=120):
    """Matches of teams that play often, and which of them were on neutral ground."""
    with opened("football/results.csv.xz") as file:
        rows = [row for row in csv.DictReader(file) if row["date"] >= since]
    rows = [row for row in rows if row["home_score"].isdigit() and row["away_score"].isdigit()]
    while True:
        played = Counter(team for row in rows for team in (row["home_team"], row["away_team"]))
        rare = {team for team, matches in played.items() if matches < least}
        if not rare:
            break
        rows = [row for row in rows if not rare & {row["home_team"], row["away_team"]}]
    games = [
        (
            row["home_team"],
            row["away_team"],
            int(np.sign(int(row["home_score"]) - int(row["away_score"]))),
        )
        for row in rows
    ]
    return games, np.array([row["neutral"] == "TRUE" for row in rows])


def votes():
    words = {"left": "first", "right": "second", "tie": "tie"}
    with opened("llmfao/crowd-comparisons.csv.xz") as file:
        return [(row["left"], row["right"], words[row["winner"]]) for row in csv.DictReader(file)]


def plain_fit(model, games, *, home=False, neutral=None):
    """Estimates and standard errors from the likelihood as the books print it.

    Gradients by torch's autograd, second derivatives by differences of them, minimised by scipy's
    L-BFGS and two Newton steps; the pseudo-inverse gives the covariance of centred log-worths.
    Equal games are counted first.
    """
    items = len(games.names)
    ground = np.zeros(len(games), dtype=bool) if neutral is None else neutral
    rows = np.stack([games.first, games.second, games.outcome, ground]).astype(np.int64)
    rows, which = np.unique(rows, axis=1, return_inverse=True)
    first, second, outcome, away = torch.from_numpy(rows)
    weights = torch.from_numpy(np.bincount(which.ravel(), games.weights))
    at_home = 1.0 - away.double()
    has_tie = model != "bradley-terry"

    def loss(point):
        p, q = point[:items].exp()[first], point[:items].exp()[second]
        if home:
            p = p * torch.exp(point[items + has_tie] * at_home)
        if model == "davidson":
            tie = point[items].exp() * torch.sqrt(p * q)
            chance = torch.where(outcome == 1, p, torch.where(outcome == 0, tie, q)) / (p + q + tie)
        elif model == "rao-kupper":
            theta = 1 + point[items].exp()
            tie = (theta**2 - 1) * p * q / ((p + theta * q) * (theta * p + q))
            lost = q / (theta * p + q)
            won = p / (p + theta * q)
            chance = torch.where(outcome == 1, won, torch.where(outcome == 0, tie, lost))
        else:
            chance = torch.where(outcome == 1, p, q) / (p + q)
        return -(weights * chance.log()).sum()

    def both(point):
        leaf = torch.tensor(point, requires_grad=True)
        value = loss(leaf)
        return float(value.detach()), torch.autograd.grad(value, leaf)[0].numpy()

    def hessian(point, step=1e-3):
        shifts = step * np.eye(len(point))
        rows = [
            (8 * (both(point + s)[1] - both(point - s)[1])
             - both(point + 2 * s)[1] + both(point - 2 * s)[1]) / (12 * step)
            for s in shifts
        ]  # fmt: skip
        return (np.array(rows) + np.array(rows).T) / 2

    start = np.zeros(items + has_tie + home)
    point = minimize(both, start, jac=True, method="L-BFGS-B", options={"maxiter": 5000}).x
    for _ in range(2):
        point = point - np.linalg.pinv(hessian(point), hermitian=True, rcond=1e-9) @ both(point)[1]
    covariance = np.linalg.pinv(hessian(point), hermitian=True, rcond=1e-9)
    point[:items] -= point[:items].mean()
    return point, covariance, -both(point)[0]


def assert_same(fitted, expected, tolerance=1e-6):
    point, covariance, log_likelihood = expected
    items = len(fitted.items_)
    errors = np.sqrt(np.diag(covariance))
    np.testing.assert_allclose(fitted.log_worths_, point[:items], rtol=0, atol=tolerance)
    np.testing.assert_allclose(fitted.standard_errors_, errors[:items], rtol=0, atol=tolerance)
    np.testing.assert_allclose(fitted.covariance_, covariance, rtol=0, atol=tolerance)
    assert list(fitted._extras.values()) == pytest.approx(point[items:], abs=tolerance)
    assert fitted.log_likelihood_ == pytest.approx(log_likelihood, rel=1e-12)
    assert fitted.converged_


def simulated(seed, items=8, games=400, ties=True):
    rng = np.random.default_rng(seed)
    rows = []
    while len(rows) < games:
        a, b = rng.choice(items, size=2, replace=False).tolist()
        lead = 0.25 * (a - b) + rng.logistic()
        rows.append((a, b, 0 if ties and abs(lead) < 0.6 else int(np.sign(lead))))
    return Games.from_rows(rows, names=range(items))


@pytest.mark.parametrize("model", ["davidson", "rao-kupper", "bradley-terry"])
@pytest.mark.parametrize("home", [False, True])
def test_estimates_and_standard_errors_are_those_of_scipy_and_differences(model, home):
    for seed in range(3):
        games = simulated(seed, ties=model != "bradley-terry")
        fitted = PairedTies(model, home=home).fit(games)
        assert_same(fitted, plain_fit(model, games, home=home), 1e-8)


@pytest.mark.data
@both_models
def test_pudding_is_fitted_as_scipy_fits_it(model):
    wins, ties = pudding()
    assert (wins.sum() + ties.sum() / 2, ties.sum() / 2) == (745, 202)
    fitted = PairedTies(model).fit_table(wins, ties)
    rows = [(i, j, 1, wins[i, j]) for i in range(6) for j in range(6) if i != j]
    rows += [(i, j, 0, ties[i, j]) for i in range(6) for j in range(i)]
    games = Games.from_rows([row[:3] for row in rows], names=range(6), weights=[r[3] for r in rows])
    assert_same(fitted, plain_fit(model, games), 1e-8)


@pytest.mark.data
def test_pudding_has_the_published_worths():
    """As R's PlackettLuce prints them after the seven iterations of Davidson (1970)."""
    fitted = PairedTies("davidson").fit_table(*pudding())
    worths = [0.1388005, 0.1729985, 0.1617420, 0.1653930, 0.1586805, 0.2023855]
    np.testing.assert_allclose(fitted.worths_, worths, rtol=0, atol=5e-5)
    assert fitted.tie_parameter_ == pytest.approx(0.7468147, abs=5e-5)


@pytest.mark.data
def test_pudding_with_half_a_pseudo_ranking_is_that_of_r():
    """R's PlackettLuce(npseudo = 0.5): log-worths, the tie parameter and the log-likelihood.

    Its standard errors leave the pseudo-rankings out, so those are not compared.
    """
    with opened("r-reference/davidson-luce.json") as file:
        expected = json.load(file)["pudding, npseudo=0.5"]
    fitted = PairedTies("davidson", prior="pseudo-item:0.5").fit_table(*pudding())
    np.testing.assert_allclose(fitted.log_worths_, expected["coef"][:6], rtol=0, atol=1e-6)
    assert fitted.beta_ == pytest.approx(expected["coef"][6], abs=1e-6)
    assert fitted.tie_parameter_ == pytest.approx(0.7386, abs=5e-5)
    assert fitted.log_likelihood_ == pytest.approx(expected["log_likelihood"], abs=1e-6)


@pytest.mark.data
@pytest.mark.slow
@both_models
def test_football_with_home_advantage_is_fitted_as_scipy_fits_it(model):
    rows, neutral = football()
    games = Games.from_rows(rows)
    assert len(games.names) > 50
    assert len(games) > 5000
    fitted = PairedTies(model, home=True).fit(games, neutral=neutral)
    assert_same(fitted, plain_fit(model, games, home=True, neutral=neutral))
    assert fitted.home_advantage_ > 10 * fitted.home_standard_error_


@pytest.mark.data
@both_models
@pytest.mark.parametrize("home", [False, True])
def test_votes_on_language_models_are_fitted_as_scipy_fits_them(model, home):
    games = Games.from_rows(votes())
    assert (len(games), int((games.outcome == 0).sum())) == (8931, 3471)
    fitted = PairedTies(model, home=home).fit(games)
    assert_same(fitted, plain_fit(model, games, home=home))


@both_models
def test_the_log_likelihood_is_that_of_the_objective_of_the_same_name(model):
    games = simulated(4)
    fitted = PairedTies(model).fit(games)
    tiers, scores = games.to_rankings().tiers, fitted.log_worths_
    expected = (
        davidson(scores, tiers, beta=fitted.beta_, reduction="sum")
        if model == "davidson"
        else rao_kupper(scores, tiers, alpha=fitted.alpha_, reduction="sum")
    )
    assert -fitted.log_likelihood_ == pytest.approx(float(expected), rel=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_bradley_terry_is_that_of_choix(seed):
    choix = pytest.importorskip("choix")
    games = simulated(seed, items=12, games=600, ties=False)
    pairs = [
        (a, b) if outcome > 0 else (b, a)
        for a, b, outcome in zip(
            games.first.tolist(), games.second.tolist(), games.outcome.tolist(), strict=True
        )
    ]
    fitted = PairedTies("bradley-terry").fit(games)
    spectral = choix.ilsr_pairwise(12, pairs, tol=1e-12, max_iter=1000)
    np.testing.assert_allclose(fitted.log_worths_, spectral - spectral.mean(), rtol=0, atol=1e-8)
    by_newton = choix.opt_pairwise(12, pairs, method="Newton-CG", tol=1e-10)
    np.testing.assert_allclose(fitted.log_worths_, by_newton - by_newton.mean(), rtol=0, atol=1e-6)


def test_ties_as_half_wins_are_those_of_evalica():
    evalica = pytest.importorskip("evalica")
    games = simulated(2)
    winners = {1: evalica.Winner.X, 0: evalica.Winner.Draw, -1: evalica.Winner.Y}
    found = evalica.bradley_terry(
        games.first.tolist(),
        games.second.tolist(),
        [winners[outcome] for outcome in games.outcome.tolist()],
        tolerance=1e-12,
        limit=100_000,
        solver="naive",
    )
    logs = np.log(found.scores.sort_index().to_numpy())
    fitted = PairedTies("bradley-terry", ties="half").fit(games)
    np.testing.assert_allclose(fitted.log_worths_, logs - logs.mean(), rtol=0, atol=1e-6)
