"""The likelihood of games: its value from the plain formulas, its derivatives by differences."""

import mpmath
import numpy as np
import pytest

from tierrank.aggregation.games import read_fixtures
from tierrank.aggregation.paired_likelihood import (
    MODELS,
    GamesTerm,
    PairedLoss,
    derivatives,
    probabilities,
)
from tierrank.aggregation.terms import GaussianPrior, PseudoItem, Sum

each_model = pytest.mark.parametrize("model", MODELS)


def chances(model, first, second, tie):
    """Win, tie and loss by the formulas of Tran et al. (2010), equations 18 and 19, from worths."""
    if model == "davidson":
        v = mpmath.exp(tie)
        total = first + second + v * mpmath.sqrt(first * second)
        return first / total, v * mpmath.sqrt(first * second) / total, second / total
    if model == "rao-kupper":
        theta = 1 + mpmath.exp(tie)
        one, two = first + theta * second, theta * first + second
        return first / one, (theta**2 - 1) * first * second / (one * two), second / two
    return first / (first + second), mpmath.mpf(0), second / (first + second)


@each_model
@pytest.mark.parametrize("d", [-700.0, -40.0, -1.3, 0.0, 1e-9, 2.0, 60.0])
@pytest.mark.parametrize("t", [-50.0, -2.0, 0.0, 0.4, 30.0])
def test_probabilities_are_those_of_the_formulas_at_40_digits(model, d, t):
    with mpmath.workdps(400):  # e^700 and 1 in one sum
        expected = chances(model, mpmath.exp(d), mpmath.mpf(1), mpmath.mpf(t))
        logs = [float(mpmath.log(chance)) if chance else -np.inf for chance in expected]
        expected = [float(chance) for chance in expected]
    found = probabilities(model, np.array([d]), t)
    np.testing.assert_allclose([float(f[0]) for f in found], expected, rtol=1e-12, atol=1e-300)
    for outcome, log in zip((1, 0, -1), logs, strict=True):
        if model != "bradley-terry" or outcome:
            value = derivatives(model, np.array([outcome]), np.array([d]), t).value[0]
            np.testing.assert_allclose(value, log, rtol=1e-12, atol=1e-15)


@each_model
def test_derivatives_of_outcomes_are_those_of_mpmath(model):
    for d in (-3.0, -0.2, 0.0, 0.7, 5.0):
        for t in (-1.5, 0.3, 2.0):
            for place, outcome in enumerate((1, 0, -1)):
                if model == "bradley-terry" and outcome == 0:
                    continue

                def log(x, y, place=place):
                    return mpmath.log(chances(model, mpmath.exp(x), mpmath.mpf(1), y)[place])

                found = derivatives(model, np.array([outcome]), np.array([d]), t)
                with mpmath.workdps(40):
                    orders = [(0, 0), (1, 0), (0, 1), (2, 0), (1, 1), (0, 2)]
                    expected = [float(mpmath.diff(log, (d, t), order)) for order in orders]
                np.testing.assert_allclose(
                    [float(part[0]) for part in found], expected, rtol=1e-11, atol=1e-13
                )


@pytest.mark.parametrize("model", ["davidson", "rao-kupper"])
@pytest.mark.parametrize("lead", [-25.0, 12.0, 35.0])
def test_first_derivatives_keep_their_digits_where_an_outcome_is_all_but_sure(model, lead):
    """Wins of weight 1e10 against one loss leave a slope of 1e-10 each, and it has to be right."""
    t = -abs(lead) / 2
    for place, outcome in enumerate((1, 0, -1)):

        def log(x, y, place=place):
            return mpmath.log(chances(model, mpmath.exp(x), mpmath.mpf(1), y)[place])

        found = derivatives(model, np.array([outcome]), np.array([lead]), t)
        with mpmath.workdps(80):
            expected = [float(mpmath.diff(log, (lead, t), order)) for order in ((1, 0), (0, 1))]
        np.testing.assert_allclose([found.d[0], found.t[0]], expected, rtol=1e-9, atol=0)


def random_rows(seed, *, teams, games=40, players=6, ties=True):
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(games):
        order = rng.permutation(players).tolist()
        sizes = rng.integers(1, 4, size=2) if teams else [1, 1]
        sides = [tuple(order[: sizes[0]]), tuple(order[3 : 3 + sizes[1]])]
        sides = [side if len(side) > 1 else side[0] for side in sides]
        rows.append((*sides, int(rng.integers(-1, 2)) if ties else int(rng.choice([-1, 1]))))
    return rows


def loss_of(model, seed, *, teams, home=True, prior=None):
    rows = random_rows(seed, teams=teams)
    rng = np.random.default_rng(seed)
    neutral = rng.random(len(rows)) < 0.3 if home else None
    fixtures = read_fixtures(rows, rng.uniform(0.5, 3, len(rows)), neutral, home=home)
    loss = PairedLoss(fixtures.counted(), model, home=home, prior=prior)
    return loss, rng.normal(size=loss.games.size)


@each_model
@pytest.mark.parametrize("teams", [False, True])
@pytest.mark.parametrize("prior", [None, GaussianPrior(0.7), PseudoItem(0.5)])
def test_gradient_and_hessian_are_those_of_differences(model, teams, prior):
    loss, point = loss_of(model, 3, teams=teams, prior=prior)
    step = 1e-4
    shifts = step * np.eye(len(point))

    def difference(function):  # fourth order
        return np.array([
            (8 * (function(point + s) - function(point - s))
             - function(point + 2 * s) + function(point - 2 * s)) / (12 * step)
            for s in shifts
        ])  # fmt: skip

    def value(point):
        return loss.value_and_gradient(point)[0]

    def gradient(point):
        return loss.value_and_gradient(point)[1]

    np.testing.assert_allclose(gradient(point), difference(value), atol=2e-10)
    hessian = loss.hessian(point)
    np.testing.assert_allclose(hessian.matrix(), difference(gradient), atol=2e-9)
    np.testing.assert_allclose(hessian.product(point), hessian.matrix() @ point, atol=1e-10)
    np.testing.assert_allclose(hessian.diagonal(), hessian.matrix().diagonal(), atol=1e-10)


@each_model
def test_terms_of_parts_of_the_games_add_up(model):
    loss, point = loss_of(model, 4, teams=True, prior=PseudoItem(0.5))
    games, home = loss.games.fixtures, np.arange(len(loss.games.fixtures.first)) % 3
    parts = [GamesTerm(games._select(home == part), model, home=True) for part in range(3)]
    whole = Sum([*parts, loss.terms[1]])
    for one, other in zip(
        whole.value_and_gradient(point), loss.value_and_gradient(point), strict=True
    ):
        np.testing.assert_allclose(one, other, atol=1e-10)
    np.testing.assert_allclose(
        whole.hessian(point).matrix(), loss.hessian(point).matrix(), atol=1e-10
    )


@each_model
@pytest.mark.parametrize("teams", [False, True])
def test_the_value_is_the_sum_over_the_rows_as_they_were_given(model, teams):
    rows = random_rows(5, teams=teams, ties=model != "bradley-terry")
    rng = np.random.default_rng(5)
    weights, neutral = rng.uniform(0.5, 3, len(rows)), rng.random(len(rows)) < 0.3
    fixtures = read_fixtures(rows, weights, neutral, home=True)
    loss = PairedLoss(fixtures.counted(), model, home=True)
    games = loss.games
    point = rng.normal(size=games.size)
    worth = dict(zip(fixtures.players, np.exp(point[: games.players]), strict=True))
    t = point[games.tie_at] if games.tie_at is not None else 0.0
    total = 0.0
    for (a, b, outcome), weight, away in zip(rows, weights, neutral, strict=True):
        first, second = (
            sum(worth[p] for p in (side if isinstance(side, tuple) else (side,))) for side in (a, b)
        )
        first = first if away else first * np.exp(point[games.home_at])
        total += weight * np.log(float(chances(model, first, second, t)[1 - outcome]))
    np.testing.assert_allclose(loss.log_likelihood(point), total, rtol=1e-12)


@pytest.mark.parametrize("teams", [False, True])
def test_the_sandwich_has_the_outer_products_of_the_games_gradients(teams):
    rows = random_rows(8, teams=teams)
    weights = np.random.default_rng(8).uniform(0.5, 3, len(rows))
    fixtures = read_fixtures(rows, weights, None, home=True)
    term = GamesTerm(fixtures.counted(), "davidson", home=True)
    point = np.random.default_rng(9).normal(size=term.size)
    total = np.zeros((term.size, term.size))
    for game in range(len(rows)):
        alone = GamesTerm(fixtures._select(np.array([game])), "davidson", home=True)
        gradient = alone.value_and_gradient(point)[1]
        total += np.outer(gradient, gradient) / weights[game]
    np.testing.assert_allclose(term.outer_products(point), total, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("model", ["davidson", "rao-kupper", "bradley-terry"])
def test_games_of_several_blocks_have_the_derivatives_of_each(model, monkeypatch):
    rng = np.random.default_rng(0)
    outcome, lead = rng.integers(-1, 2, 20), rng.normal(size=20)
    each = [derivatives(model, outcome[at : at + 1], lead[at : at + 1], 0.3) for at in range(20)]
    monkeypatch.setattr("tierrank.aggregation.paired_likelihood.AT_ONCE", 7)
    found = derivatives(model, outcome, lead, 0.3)
    for name in found._fields:
        expected = np.concatenate([getattr(one, name) for one in each])
        np.testing.assert_allclose(getattr(found, name), expected, rtol=1e-12, atol=1e-14)
