"""PairedTies: the table, the state that is saved, and what is refused."""

import json

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.exceptions import ConvergenceWarning

from paired_games import league
from tierrank import Tiers
from tierrank.aggregation.connectivity import Disconnected
from tierrank.aggregation.paired import PairedTies
from tierrank.data.rankings.container import Rankings

each_model = pytest.mark.parametrize("model", ["davidson", "rao-kupper", "bradley-terry"])


def test_the_summary_is_best_first_with_the_parameters_below():
    rng = np.random.default_rng(14)
    games = league(rng, "rao-kupper", np.array([-0.5, 0.8, 0.0]), home=0.2, names=("x", "y", "z"))
    fitted = PairedTies("rao-kupper", home=True).fit(games)
    table = fitted.summary(level=0.9)
    assert table.items == ("y", "z", "x")
    np.testing.assert_allclose(table.log_worths, fitted.log_worths_[[1, 2, 0]])
    reach = norm.ppf(0.95) * fitted.standard_errors_[[1, 2, 0]]
    np.testing.assert_allclose(table.upper - table.log_worths, reach)
    np.testing.assert_allclose(table.log_worths - table.lower, reach)
    tie, home = table.parameters
    assert tie[1:3] == (fitted.alpha_, fitted.tie_standard_error_)
    assert home[1:3] == (fitted.home_advantage_, fitted.home_standard_error_)
    lines = str(table).splitlines()
    assert lines[0].startswith("PairedTies, rao-kupper, information: 120 games of 3 items")
    assert lines[1].split() == ["item", "log-worth", "std", "err", "[0.05", "0.95]", "worth"]
    assert [line.split()[0] for line in lines[2:]] == ["y", "z", "x", "log(θ", "first"]
    with pytest.raises(ValueError, match="level is between 0 and 1"):
        fitted.summary(level=95)


@each_model
@pytest.mark.parametrize("prior", [None, "gaussian:0.1234567891234", "pseudo-item"])
def test_the_state_comes_back_through_json(model, prior):
    rng = np.random.default_rng(15)
    games = league(rng, model, rng.normal(size=4), names=("a", "b", 3, np.int64(4)))
    fitted = PairedTies(model, home=True, prior=prior).fit(games)
    info, arrays = fitted.to_state()
    again = PairedTies.from_state(json.loads(json.dumps(info, allow_nan=False)), arrays)
    assert again.items_ == ("a", "b", 3, 4)
    assert again.to_state()[0] == info
    assert str(again.summary()) == str(fitted.summary())
    assert again.predict_proba("a", ["b", 3])[0].tolist() == (
        fitted.predict_proba("a", ["b", 3])[0].tolist()
    )
    refitted = again.fit(games)
    np.testing.assert_array_equal(refitted.log_worths_, fitted.log_worths_)


def test_a_damaged_state_is_refused():
    rng = np.random.default_rng(16)
    fitted = PairedTies().fit(league(rng, "davidson", rng.normal(size=3)))
    info, arrays = fitted.to_state()
    for changed, kept, message in (
        ({**info, "items": [0, 1]}, arrays, "has shape"),
        ({**info, "items": [0, 1, 1]}, arrays, "there twice"),
        ({**info, "items": [0, 1, True]}, arrays, "strings or integers"),
        ({**info, "extras": {"tie": float("nan")}}, arrays, "not finite"),
        ({**info, "extras": {"tie": 0.1, "home": 0.2}}, arrays, "the parameters are"),
        ({**info, "log_likelihood": float("inf")}, arrays, "not finite"),
        (info, {**arrays, "log_worths": arrays["log_worths"] * np.nan}, "not finite"),
        (info, {**arrays, "covariance": -arrays["covariance"]}, "negative"),
        (info, {"log_worths": arrays["log_worths"]}, "in place of"),
        (info, {**arrays, "covariance": arrays["covariance"].astype(np.float32)}, "dtype"),
        ({**info, "params": {**info["params"], "model": "elo"}}, arrays, "model is one of"),
    ):
        with pytest.raises(ValueError, match=message):
            PairedTies.from_state(changed, kept)


def test_names_that_json_lacks_cannot_be_saved():
    fitted = PairedTies().fit([(1.5, "b", 1), ("b", 1.5, 1), (1.5, "b", 0)])
    with pytest.raises(ValueError, match=r"1\.5 is a float"):
        fitted.to_state()


THREE = [("a", "b", 1), ("b", "a", 1), ("a", "b", 0)]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model": "elo"}, "model is one of davidson"),
        ({"ties": "half"}, 'ties="half" is for model="bradley-terry"'),
        ({"model": "bradley-terry", "ties": "both"}, 'ties is "refuse"'),
        ({"home": "yes"}, "home is True or False"),
        ({"prior": "flat"}, "there is no prior 'flat'"),
        ({"tol": 0.0}, "tol is a number above 0"),
        ({"tol": 1e-3}, "tol is at most"),
        ({"max_iter": 0}, "max_iter is a whole number"),
        ({"uncertainty": "none"}, 'uncertainty is "information"'),
    ],
)
def test_settings_that_make_no_sense_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        PairedTies(**options).fit(THREE)


@pytest.mark.parametrize(
    ("games", "extra", "message"),
    [
        ([], {}, "there are no games"),
        ([("a", "b", "won")], {}, "outcome is 'won'"),
        ([("a", "a", 1)], {}, "plays against itself"),
        (THREE, {"weights": [1, 2]}, "give 3 of them"),
        (THREE, {"weights": [1, 2, -1]}, r"weights\[2\] is -1"),
        (THREE, {"weights": [0, 0, 0]}, "of a weight above 0"),
        (THREE, {"weights": ["1", "2", "3"]}, "weights are .*: give 3 of them, one number a game"),
        (THREE, {"weights": [1e308, 1, 1]}, r"the largest weight is 1e\+308: .* a game was seen"),
        (THREE, {"weights": [1e-60] * 3}, "the largest weight is 1e-60"),
        (THREE, {"items": ["a"]}, "items= lacks 'b'"),
        (THREE, {"weights": [1, np.nan, 1]}, r"weights\[1\] is nan"),
        (THREE, {"neutral": [True, False, True]}, "goes with home=True"),
        (Tiers.from_rankings([["a", "b"], ["a", "b", "c"]]), {}, "list 1 has 3 items"),
        (Tiers.from_rankings([["a"]], items=["a", "b"], rest="last"), {}, "without a rest"),
        (Tiers.from_labels([1, 0]), {}, "lists of two items of a catalogue"),
    ],
)
def test_games_that_make_no_sense_are_refused(games, extra, message):
    with pytest.raises(ValueError, match=message):
        PairedTies().fit(games, **extra)


def test_home_needs_to_know_who_was_at_home():
    with pytest.raises(ValueError, match="which of two items was the first"):
        PairedTies(home=True).fit(Rankings.from_rankings([["a", "b"], ["b", "a"]]))
    with pytest.raises(ValueError, match="who was at home"):
        PairedTies(home=True).fit_table([[0, 1], [1, 0]], [[0, 1], [1, 0]])
    with pytest.raises(ValueError, match="3 booleans"):
        PairedTies(home=True).fit(THREE, neutral=[1, 0, 1])


@pytest.mark.parametrize(
    ("wins", "ties", "names", "message"),
    [
        ([[0, 1]], None, None, r"wins have shape \(1, 2\)"),
        ([[0, -1], [1, 0]], None, None, r"wins\[0, 1\] is -1"),
        ([[1, 1], [1, 0]], None, None, "nobody plays against itself"),
        ([[0, 1], [1, 0]], [[0, 2], [1, 0]], None, "must be symmetric"),
        ([[0, 1], [1, 0]], [[0]], None, "give tables of the same items"),
        ([[0, 1], [1, 0]], [[0, 1], [1, 0]], ["a"], "1 names for tables of 2 items"),
        ([[0, 0], [0, 0]], None, None, "there are no games"),
    ],
)
def test_tables_that_make_no_sense_are_refused(wins, ties, names, message):
    with pytest.raises(ValueError, match=message):
        PairedTies().fit_table(wins, ties, names)


def test_too_few_steps_are_told():
    rng = np.random.default_rng(17)
    games = league(rng, "davidson", 2 * rng.normal(size=5))
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        fitted = PairedTies(max_iter=1).fit(games)
    assert (fitted.n_iter_, fitted.converged_) == (1, False)


def test_the_sandwich_needs_more_games_than_parameters():
    with pytest.raises(ValueError, match="3 games are too few to see how 3 estimates vary"):
        PairedTies(uncertainty="sandwich").fit(THREE)


def test_what_is_not_fitted_says_so():
    for ask in (lambda p: p.summary(), lambda p: p.predict_proba("a", "b"), lambda p: p.to_state()):
        with pytest.raises(ValueError, match="not fitted"):
            ask(PairedTies())


@each_model
def test_games_of_weight_0_were_not_played(model):
    """As with RankAggregator: they say nothing, and who is in no other needs a prior."""
    rng = np.random.default_rng(16)
    games = league(rng, model, np.array([0.4, 0.0, -0.4]), rounds=5, names=("a", "b", "c"))
    rows = [
        (games.names[first], games.names[second], int(outcome))
        for first, second, outcome in zip(games.first, games.second, games.outcome, strict=True)
    ]
    kept = rng.random(len(rows)) < 0.8
    fitted = PairedTies(model).fit(rows, weights=kept.astype(float))
    expected = PairedTies(model).fit([row for row, there in zip(rows, kept, strict=True) if there])
    assert fitted.items_ == expected.items_
    np.testing.assert_array_equal(fitted.log_worths_, expected.log_worths_)
    np.testing.assert_array_equal(fitted.covariance_, expected.covariance_)
    assert fitted.n_games_ == expected.n_games_ == kept.sum()
    more, weights = [*rows, ("d", "a", 1)], [*np.ones(len(rows)), 0.0]
    with pytest.raises(Disconnected, match="d was never compared"):
        PairedTies(model).fit(more, weights=weights)
    assert PairedTies(model, prior="gaussian").fit(more, weights=weights).items_[-1] == "d"


def test_players_of_teams_come_in_the_order_of_items():
    rows = [((2, 1), 0, 1), (0, (1, 2), 1), ((0, 2), 1, 0), (2, 1, 1), (1, 0, -1), (2, 0, 0)] * 5
    fitted = PairedTies().fit(rows)
    assert fitted.items_ == (0, 1, 2)
    turned = PairedTies().fit(rows, items=[2, 1, 0])
    assert turned.items_ == (2, 1, 0)
    np.testing.assert_allclose(turned.log_worths_, fitted.log_worths_[::-1], atol=1e-9)
