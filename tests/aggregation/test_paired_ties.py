"""PairedTies: what it is given and what it gives back."""

import numpy as np
import pytest
from scipy.stats import norm

from paired_games import close, league, team_rows
from tierrank.aggregation.games import read_fixtures
from tierrank.aggregation.paired import PairedTies
from tierrank.aggregation.paired_likelihood import PairedLoss
from tierrank.data.rankings.games import Games

each_model = pytest.mark.parametrize("model", ["davidson", "rao-kupper", "bradley-terry"])


@each_model
def test_rows_games_lists_and_tables_give_the_same(model):
    rng = np.random.default_rng(0)
    games = league(rng, model, np.array([0.5, 0.0, -0.2, 0.4]), names=("a", "b", "c", "d"))
    fitted = PairedTies(model).fit(games)
    words = {1: "first", 0: "tie", -1: "second"}
    rows = [
        (games.names[i], games.names[j], words[int(o)])
        for i, j, o in zip(games.first, games.second, games.outcome, strict=True)
    ]
    wins, ties = np.zeros((4, 4)), np.zeros((4, 4))
    for i, j, o in zip(games.first, games.second, games.outcome, strict=True):
        if o == 0:
            ties[[i, j], [j, i]] += 1
        else:
            wins[(i, j) if o > 0 else (j, i)] += 1
    rankings = games.to_rankings()
    for other in (
        PairedTies(model).fit(rows),
        PairedTies(model).fit(iter(rows)),
        PairedTies(model).fit(rankings),
        PairedTies(model).fit(rankings.tiers),
        PairedTies(model).fit_table(wins, ties, names=["a", "b", "c", "d"]),
    ):
        assert other.items_ == ("a", "b", "c", "d")
        assert other.n_games_ == len(games)
        close(other, fitted)


@each_model
@pytest.mark.parametrize("uncertainty", ["information", "sandwich"])
def test_a_weight_is_a_repetition(model, uncertainty):
    rng = np.random.default_rng(1)
    games = league(rng, model, np.array([0.5, 0.0, -0.2]), rounds=10)
    times = rng.integers(1, 4, len(games))
    again = np.repeat(np.arange(len(games)), times)
    rows = [(int(games.first[g]), int(games.second[g]), int(games.outcome[g])) for g in again]
    repeated = PairedTies(model, home=True, uncertainty=uncertainty).fit(
        Games.from_rows(rows, names=range(3))
    )
    fit = PairedTies(model, home=True, uncertainty=uncertainty).fit
    close(fit(games, weights=times), repeated)
    counted = Games(games.names, games.first, games.second, games.outcome, times.astype(float))
    close(fit(counted), repeated)
    assert repeated.n_games_ == times.sum()


@each_model
def test_names_and_their_order_do_not_matter(model):
    rng = np.random.default_rng(2)
    games = league(rng, model, rng.normal(size=5), home=0.4)
    fitted = PairedTies(model, home=True).fit(games)
    order = rng.permutation(5)
    place = np.argsort(order)
    shuffled = rng.permutation(len(games))
    other = PairedTies(model, home=True).fit(
        Games(
            tuple(f"team {number}" for number in order),
            place[games.first][shuffled],
            place[games.second][shuffled],
            games.outcome[shuffled],
            games.weights[shuffled],
        )
    )
    assert other.items_ == tuple(f"team {number}" for number in order)
    np.testing.assert_allclose(other.log_worths_, fitted.log_worths_[order], atol=1e-9)
    np.testing.assert_allclose(other.standard_errors_, fitted.standard_errors_[order], atol=1e-9)
    assert other.home_advantage_ == pytest.approx(fitted.home_advantage_, abs=1e-9)


@each_model
def test_results_belong_together(model):
    rng = np.random.default_rng(3)
    fitted = PairedTies(model, home=True).fit(league(rng, model, rng.normal(size=5), home=0.5))
    assert fitted.log_worths_.mean() == pytest.approx(0, abs=1e-12)
    assert fitted.worths_.sum() == pytest.approx(1)
    np.testing.assert_allclose(np.diff(np.log(fitted.worths_)), np.diff(fitted.log_worths_))
    np.testing.assert_allclose(fitted.covariance_[:5].sum(axis=0), 0, atol=1e-12)
    np.testing.assert_array_equal(fitted.covariance_, fitted.covariance_.T)
    extras = [] if model == "bradley-terry" else [fitted.tie_standard_error_]
    errors = [*fitted.standard_errors_, *extras, fitted.home_standard_error_]
    np.testing.assert_allclose(errors, np.sqrt(np.diag(fitted.covariance_)))
    free = 4 + len(extras) + 1
    assert fitted.n_parameters_ == free
    assert fitted.aic_ == pytest.approx(2 * free - 2 * fitted.log_likelihood_)
    assert fitted.bic_ == pytest.approx(np.log(400) * free - 2 * fitted.log_likelihood_)
    if model == "davidson":
        assert fitted.tie_parameter_ == pytest.approx(np.exp(fitted.beta_))
    elif model == "rao-kupper":
        assert fitted.tie_parameter_ == pytest.approx(1 + np.exp(fitted.alpha_))
    for name in {"alpha_": "rao-kupper", "beta_": "davidson"}.items():
        assert hasattr(fitted, name[0]) == (model == name[1])


@each_model
@pytest.mark.parametrize("teams", [False, True])
def test_the_gradient_is_nothing_at_the_end(model, teams):
    rng = np.random.default_rng(4)
    rows = team_rows(rng, model) if teams else league(rng, model, rng.normal(size=6), rounds=50)
    fitted = PairedTies(model).fit(rows)
    loss = PairedLoss(read_fixtures(rows, None, None, home=False), model)
    point = np.array([*fitted.log_worths_, *fitted._extras.values()])
    assert fitted.converged_
    assert np.abs(loss.value_and_gradient(point)[1]).max() < 1e-8
    assert np.linalg.eigvalsh(loss.hessian(point).matrix())[1] > 0  # but for the one flat direction


@each_model
def test_predictions_are_those_of_the_formulas(model):
    rng = np.random.default_rng(5)
    names = ("a", "b", "c")
    fitted = PairedTies(model, home=True).fit(
        league(rng, model, np.array([0.5, 0, -0.5]), home=0.3, names=names)
    )
    a, b, c = np.exp(fitted.log_worths_)
    h = np.exp(fitted.home_advantage_)
    for first, second, sides, neutral in (
        (a * h, b, ("a", "b"), False),
        (a, c, ("a", "c"), True),
        (c * h, a + b, ("c", ("b", "a")), False),
        ((a + b) * h, c, (frozenset({"a", "b"}), "c"), False),
    ):
        if model == "davidson":
            v = fitted.tie_parameter_ * np.sqrt(first * second)
            expected = np.array([first, v, second]) / (first + v + second)
        elif model == "rao-kupper":
            theta = fitted.tie_parameter_
            win, loss = first / (first + theta * second), second / (theta * first + second)
            expected = [win, 1 - win - loss, loss]
        else:
            expected = [first / (first + second), 0, second / (first + second)]
        found = fitted.predict_proba(*sides, neutral=neutral)
        assert all(isinstance(chance, float) for chance in found)
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-15)
    many = fitted.predict_proba(["a", "b"], np.array(["c", "c"]))
    one = [fitted.predict_proba(side, "c") for side in "ab"]
    np.testing.assert_allclose(np.column_stack(many), one)
    np.testing.assert_allclose(np.column_stack(fitted.predict_proba(["a", "b"], "c")), one)
    with pytest.raises(ValueError, match="'zoe' was in no game"):
        fitted.predict_proba("a", ["b", "zoe"])
    with pytest.raises(ValueError, match="2 sides cannot meet 3"):
        fitted.predict_proba(["a", "b"], ["a", "b", "c"])
    with pytest.raises(ValueError, match="has no order"):
        fitted.predict_proba({"a", "b"}, "c")


@each_model
@pytest.mark.slow
def test_intervals_cover_the_truth_as_often_as_they_say(model):
    rng = np.random.default_rng(6)
    w, home, t = np.array([0.9, 0.4, 0.1, -0.3, -1.1]), 0.4, -0.5
    truth = np.array([*w, *([] if model == "bradley-terry" else [t]), home])
    reach = norm.ppf(0.975)
    points, inside = [], {"information": [], "sandwich": []}
    for _ in range(150):
        games = league(rng, model, w, rounds=15, t=t, home=home)
        for kind, hits in inside.items():
            fitted = PairedTies(model, home=True, uncertainty=kind).fit(games)
            point = np.array([*fitted.log_worths_, *fitted._extras.values()])
            hits.append(np.abs(point - truth) < reach * np.sqrt(np.diag(fitted.covariance_)))
        points.append(point)
    for hits in inside.values():  # a standard error of about 1.8 % each, and less in the mean
        assert np.mean(hits, axis=0).min() > 0.89
        assert 0.93 < np.mean(hits) < 0.97
    bias = np.mean(points, axis=0) - truth
    assert (np.abs(bias) < 4 * np.std(points, axis=0) / np.sqrt(150) + 0.02).all()


def test_home_advantage_on_neutral_ground_is_none():
    rng = np.random.default_rng(7)
    w = np.array([0.5, 0.0, -0.5])
    at_home = league(rng, "davidson", w, rounds=400, home=0.8)
    away = league(rng, "davidson", w, rounds=400)
    both = Games(
        at_home.names,
        *(np.concatenate([getattr(at_home, n), getattr(away, n)])
          for n in ("first", "second", "outcome", "weights")),
    )  # fmt: skip
    neutral = np.repeat([False, True], [len(at_home), len(away)])
    fitted = PairedTies(home=True).fit(both, neutral=neutral)
    assert abs(fitted.home_advantage_ - 0.8) < 4 * fitted.home_standard_error_ < 0.4
    np.testing.assert_allclose(fitted.log_worths_, w, atol=0.15)


# -- ties in Bradley-Terry ------------------------------------------------------------------


def test_half_wins_are_wins_of_half_the_weight_and_dropped_ties_are_gone():
    rng = np.random.default_rng(8)
    games = league(rng, "davidson", np.array([0.4, 0.0, -0.3]))
    tied = games.outcome == 0
    split = Games(
        games.names,
        np.concatenate([games.first, games.first[tied]]),
        np.concatenate([games.second, games.second[tied]]),
        np.concatenate([np.where(tied, 1, games.outcome), -np.ones(tied.sum())]).astype(np.int8),
        np.concatenate([np.where(tied, 0.5, 1.0), np.full(tied.sum(), 0.5)]),
    )
    close(
        PairedTies("bradley-terry", ties="half").fit(games), PairedTies("bradley-terry").fit(split)
    )
    dropped = PairedTies("bradley-terry", ties="drop").fit(games)
    won = Games(
        games.names, *(getattr(games, n)[~tied] for n in ("first", "second", "outcome", "weights"))
    )
    close(dropped, PairedTies("bradley-terry").fit(won))
    with pytest.raises(ValueError, match=r"games are ties.*davidson"):
        PairedTies("bradley-terry").fit(games)
    with pytest.raises(ValueError, match="all games are ties, and without them"):
        PairedTies("bradley-terry", ties="drop").fit([("a", "b", "tie")])


def test_of_no_games_there_is_nothing_to_say():
    fitted = PairedTies().fit([("a", "b", 1), ("b", "a", 1), ("a", "b", 0)])
    assert [len(each) for each in fitted.predict_proba([], [])] == [0, 0, 0]
