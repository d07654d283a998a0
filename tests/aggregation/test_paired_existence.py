"""PairedTies: teams, games that leave something open, and priors."""

import warnings

import numpy as np
import pytest
from scipy.optimize import linprog

from paired_games import league, team_rows
from tierrank.aggregation.paired import PairedTies
from tierrank.aggregation.paired_likelihood import derivatives
from tierrank.data.rankings.games import Games

each_model = pytest.mark.parametrize("model", ["davidson", "rao-kupper", "bradley-terry"])
both_models = pytest.mark.parametrize("model", ["davidson", "rao-kupper"])


# -- teams ----------------------------------------------------------------------------------


@each_model
def test_teams_tell_how_good_their_players_are(model):
    rng = np.random.default_rng(9)
    truth = np.array([0.8, 0.3, 0.0, -0.2, -0.9])
    fitted = PairedTies(model).fit(team_rows(rng, model, w=truth))
    found = fitted.log_worths_[[fitted.items_.index(player) for player in range(5)]]
    errors = fitted.standard_errors_[[fitted.items_.index(player) for player in range(5)]]
    assert (np.abs(found - truth) < 3.5 * errors).all()
    assert errors.max() < 0.35


def test_a_team_is_who_plays_in_it():
    rng = np.random.default_rng(10)
    rows = team_rows(rng, "davidson", games=300)
    mixed = [
        (
            frozenset(a) if k % 3 else a[::-1],
            b[0] if len(b) == 1 else b,
            outcome,
        )
        for k, (a, b, outcome) in enumerate(rows)
    ]
    one, two = PairedTies().fit(rows), PairedTies().fit(mixed)
    places = [two.items_.index(player) for player in one.items_]
    np.testing.assert_allclose(two.log_worths_[places], one.log_worths_, atol=1e-8)
    np.testing.assert_allclose(two.standard_errors_[places], one.standard_errors_, atol=1e-8)


def test_teams_that_never_change_are_one_item():
    """Two of a team that always play together: only their sum shows."""
    rows = [(("a", "b"), "c", "first"), ("c", ("a", "b"), "first"), (("a", "b"), "c", "tie")] * 3
    with pytest.raises(ValueError, match=r"do not determine a, b.*prior"):
        PairedTies().fit(rows)
    shared = PairedTies(prior="gaussian").fit(rows)
    assert shared.log_worths_[0] == pytest.approx(shared.log_worths_[1])


def test_a_player_who_adds_nothing_to_a_team_is_named():
    """With b the team of a does worse than a alone, so the worth of b would be below nothing."""
    alone = [("a", "c", 1)] * 8 + [("a", "c", -1)] * 4 + [("a", "c", 0)] * 3
    helped = [(("a", "b"), "c", 1)] * 4 + [(("a", "b"), "c", -1)] * 8 + [(("a", "b"), "c", 0)] * 3
    with pytest.raises(ValueError, match="do not determine b:"):
        PairedTies().fit(alone + helped)
    assert PairedTies(prior="gaussian").fit(alone + helped).converged_


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ((("a", "b"), ("b", "c"), 1), "game 0: 'b' plays on both sides"),
        ((("a", "a"), "b", 1), "has a player twice"),
        (((), "b", 1), "empty team"),
        ((("a", "b"), ("b", "a"), 1), "plays on both sides"),
    ],
)
def test_teams_that_make_no_sense_are_refused(row, message):
    with pytest.raises(ValueError, match=message):
        PairedTies().fit([row, ("a", "b", 0)])


# -- when there is an estimate --------------------------------------------------------------


def separated(games, items, *, ties, home):
    """Whether some direction of the parameters never lowers the likelihood: a linear program.

    Along it a win needs d ≥ τ, a tie |d| ≤ τ, τ ≥ 0 the direction of the tie parameter (0 without
    one). The common shift of all log-worths is no such direction. A linear function drawn at random
    vanishes on none of them.
    """
    rows = []
    for a, b, outcome in games:
        d = np.zeros(items + 2)
        d[a] += 1
        d[b] -= 1
        d[items + 1] = float(home)
        threshold = np.zeros(items + 2)
        threshold[items] = 1
        if outcome:
            rows.append(threshold - outcome * d)
        else:
            rows += [d - threshold, -d - threshold]
    fixed, free = [(0, 0)], [(-1, 1)]
    bounds = fixed + free * (items - 1) + ([(0, 1)] if ties else fixed) + (free if home else fixed)
    goal = np.random.default_rng(0).normal(size=items + 2)
    for sign in (1, -1):
        found = linprog(sign * goal, np.array(rows), np.zeros(len(rows)), bounds=bounds)
        assert found.status == 0
        if found.fun < -1e-7:
            return True
    return False


@each_model
@pytest.mark.parametrize("home", [False, True])
def test_it_refuses_exactly_those_games_that_have_no_finite_estimate(model, home):
    rng = np.random.default_rng(11)
    seen = []
    for _ in range(40):
        items = int(rng.integers(2, 5))
        rows = []
        for _ in range(int(rng.integers(3, 14))):
            a, b = rng.choice(items, size=2, replace=False).tolist()
            rows.append(
                (a, b, int(rng.choice([-1, 1] if model == "bradley-terry" else [-1, 0, 1])))
            )
        drawn = [outcome == 0 for *_, outcome in rows]
        expected = separated(rows, items, ties=model != "bradley-terry", home=home)
        expected |= model != "bradley-terry" and (all(drawn) or not any(drawn))
        try:
            fitted = PairedTies(model, home=home).fit(Games.from_rows(rows, names=range(items)))
            assert fitted.converged_
            seen.append(False)
        except ValueError:
            seen.append(True)
        assert seen[-1] == expected, rows
    assert 5 < sum(seen) < 38


def test_who_always_wins_and_who_never_met_the_others_is_named():
    with pytest.raises(ValueError, match="ann stands above others and never below"):
        PairedTies("bradley-terry").fit([("ann", "bob", 1), ("bob", "cy", 1), ("cy", "bob", 1)])
    apart = [("a", "b", 1), ("b", "a", 1), ("c", "d", 1), ("d", "c", 1)]
    with pytest.raises(ValueError, match="never compared"):
        PairedTies("bradley-terry").fit(apart)
    fitted = PairedTies("bradley-terry", prior="gaussian:1.5").fit(apart[:3])
    assert fitted.log_worths_[2] > 0 > fitted.log_worths_[3]


def test_home_sides_that_always_win_are_told():
    rows = [("a", "b", 1), ("b", "a", 1), ("b", "c", 1), ("c", "b", 1)]
    with pytest.raises(ValueError, match=r"do not determine.* first side:"):
        PairedTies("bradley-terry", home=True).fit(rows)


@both_models
def test_no_ties_or_nothing_but_ties_is_told(model):
    with pytest.raises(ValueError, match=r"no game is a tie.*bradley-terry"):
        PairedTies(model).fit([("a", "b", 1), ("b", "a", 1)])
    with pytest.raises(ValueError, match="all games are ties"):
        PairedTies(model, prior="gaussian").fit([("a", "b", 0), ("b", "c", 0)])


@pytest.mark.parametrize("prior", ["gaussian:0.8", "pseudo-item:2"])
def test_a_prior_shrinks_and_counts_fewer_parameters(prior):
    rng = np.random.default_rng(12)
    games = league(rng, "davidson", rng.normal(size=6), rounds=4)
    free, shrunk = PairedTies().fit(games), PairedTies(prior=prior).fit(games)
    assert np.ptp(shrunk.log_worths_) < np.ptp(free.log_worths_)
    assert (shrunk.standard_errors_ < free.standard_errors_).all()
    assert shrunk.log_likelihood_ < free.log_likelihood_
    assert 1 < shrunk.n_parameters_ < free.n_parameters_ == 6
    assert shrunk.log_worths_.mean() == pytest.approx(0, abs=1e-12)


def with_ghost(games, wins):
    """The same games, and of every item so many wins and losses against one more, the last."""
    items = len(games.names)
    each = np.repeat(np.arange(items), 2)
    return Games(
        (*games.names, "ghost"),
        np.concatenate([games.first, each]),
        np.concatenate([games.second, np.full(2 * items, items)]),
        np.concatenate([games.outcome, np.tile([1, -1], items)]).astype(np.int8),
        np.concatenate([games.weights, np.full(2 * items, wins)]),
    )


@each_model
def test_a_pseudo_item_is_an_item_whose_games_could_have_been_ties(model):
    rng = np.random.default_rng(13)
    games = league(rng, model, rng.normal(size=4), rounds=4)
    fitted = PairedTies(model, prior="pseudo-item:0.7").fit(games)
    explicit = PairedTies(model).fit(with_ghost(games, 0.7))
    w = explicit.log_worths_[:4]
    np.testing.assert_allclose(fitted.log_worths_, w - w.mean(), atol=1e-9)
    assert fitted._extras == pytest.approx(explicit._extras, abs=1e-9)
    centre = np.eye(5 + len(explicit._extras))
    centre[:4, :4] -= 1 / 4  # against the mean of the four, without the ghost
    kept = [0, 1, 2, 3, *range(5, len(centre))]
    covariance = (centre.T @ explicit.covariance_ @ centre)[np.ix_(kept, kept)]
    np.testing.assert_allclose(fitted.covariance_, covariance, atol=1e-9)


@both_models
def test_nothing_but_ties_has_an_estimate_beside_a_pseudo_item(model):
    games = Games.from_rows([("a", "b", 0), ("b", "c", 0)], weights=[5, 7])
    fitted = PairedTies(model, prior="pseudo-item:0.4").fit(games)
    explicit = PairedTies(model).fit(with_ghost(games, 0.4))
    np.testing.assert_allclose(fitted.log_worths_, 0, atol=1e-9)
    assert fitted.tie_parameter_ == pytest.approx(explicit.tie_parameter_, rel=1e-9)


# -- weights that are far apart --------------------------------------------------------------


@each_model
@pytest.mark.parametrize("often", [1e6, 1e9, 1e10, 1e14])
def test_a_lead_is_right_however_sure_it_is(model, often):
    """One loss among so many wins, and one tie: the estimates have closed forms."""
    rows, weights = [("a", "b", 1), ("a", "b", -1)], [often, 1.0]
    if model != "bradley-terry":
        rows, weights = [*rows, ("a", "b", 0)], [*weights, 1.0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted = PairedTies(model).fit(rows, weights=weights)
    shares = np.array(weights) / sum(weights)
    if model == "rao-kupper":  # d − η and −d − η are the log-odds of a win and of a loss
        win, loss = np.log(shares[0]) - np.log(shares[1:].sum()), np.log(shares[1])
        loss -= np.log1p(-shares[1])
        expected, eta = (win - loss) / 2, -(win + loss) / 2
        assert fitted.alpha_ == pytest.approx(np.log(np.expm1(eta)), abs=1e-8)
    else:  # an exponential family: every outcome has the chance with which it was seen
        expected = np.log(often)
    assert np.subtract(*fitted.log_worths_) == pytest.approx(expected, abs=1e-8)
    assert fitted.converged_
    chances = fitted.predict_proba("a", "b")
    seen = [shares[0], shares[2] if len(shares) > 2 else 0.0, shares[1]]
    np.testing.assert_allclose(chances, seen, rtol=1e-7)


@pytest.mark.parametrize("prior", ["gaussian", "pseudo-item"])
@pytest.mark.parametrize("weight", [1e10, 1e14, 1e18])
@pytest.mark.parametrize("model", ["bradley-terry", "davidson", "rao-kupper"])
def test_a_prior_that_says_nothing_beside_the_games_changes_nothing(model, weight, prior):
    games = [("a", "b", 1), ("b", "a", 1), ("c", "b", 1), ("b", "c", 1), ("b", "c", 1)]
    games += [("a", "c", 0)] * (model != "bradley-terry")
    alone = PairedTies(model).fit(games)
    beside = PairedTies(model, prior=prior).fit(games, weights=[weight] * len(games))
    np.testing.assert_allclose(beside.log_worths_, alone.log_worths_, atol=1e-8)
    errors = beside.standard_errors_ * np.sqrt(weight)
    np.testing.assert_allclose(errors, alone.standard_errors_, rtol=1e-5)


@each_model
def test_chains_of_light_games_between_heavy_ones_are_determined(model):
    """Two pairs of rivals that met each other five times, themselves 1e10 times."""
    rows = [("a", "b", 1), ("a", "b", -1), ("c", "d", 1), ("c", "d", -1), ("b", "c", 1)]
    rows, weights = [*rows, ("c", "b", 1)], [1e10, 2e10, 1e10, 3e10, 1, 4]
    if model != "bradley-terry":
        rows, weights = [*rows, ("a", "b", 0), ("c", "d", 0)], [*weights, 1e10, 1e10]
    fitted = PairedTies(model).fit(rows, weights=weights)
    w = dict(zip(fitted.items_, fitted.log_worths_, strict=True))
    # a tie parameter that the heavy games fix, and light ones without a tie: win against loss
    lead, t = w["b"] - w["c"], next(iter(fitted._extras.values()), 0.0)
    slope = [float(derivatives(model, np.array([o]), np.array([lead]), t).d[0]) for o in (1, -1)]
    assert slope[0] + 4 * slope[1] == pytest.approx(0, abs=1e-5)
    assert 0.3 < fitted.standard_errors_.min() < fitted.standard_errors_.max() < 0.7
    with pytest.raises(ValueError, match="12 digits apart"):
        PairedTies(model).fit(rows, weights=[w * 1e7 if w > 9 else w for w in weights])
