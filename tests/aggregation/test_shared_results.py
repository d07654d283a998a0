"""What all aggregators can be asked: of games and of features too, and that it is right."""

import numpy as np
import pytest
import torch
from scipy.stats import norm

import tierrank as tr
from paired_games import league, team_rows

each_model = pytest.mark.parametrize("model", ["davidson", "rao-kupper", "bradley-terry"])
WORTHS = np.array([0.9, 0.3, 0.0, -0.4, -0.8])


def fitted_league(model, **options):
    rng = np.random.default_rng(3)
    names = ("a", "b", "c", "d", "e")
    games = league(rng, model, WORTHS, rounds=25, home=0.4, names=names)
    return tr.PairedTies(model, home=True, **options).fit(games)


def chances(model, point, first, second, at_home):
    """Win, tie and loss by the plain formulas, from [log-worths, tie, home]."""
    worth = np.exp(point[:5])
    one = worth[list(first)].sum() * np.exp(at_home * point[-1])
    two = worth[list(second)].sum()
    if model == "davidson":
        tie = np.exp(point[5]) * np.sqrt(one * two)
        return np.array([one, tie, two]) / (one + tie + two)
    if model == "rao-kupper":
        theta = 1 + np.exp(point[5])
        win, loss = one / (one + theta * two), two / (two + theta * one)
        return np.array([win, 1 - win - loss, loss])
    return np.array([one, 0, two]) / (one + two)


@each_model
@pytest.mark.parametrize("uncertainty", ["information", "sandwich"])
def test_intervals_of_outcomes_are_those_of_the_delta_method(model, uncertainty):
    """Log-odds and their slopes from the plain formulas, by differences."""
    fitted = fitted_league(model, uncertainty=uncertainty)
    point = np.array([*fitted.log_worths_, *(each.estimate for each in fitted.parameters())])
    reach = norm.ppf(0.95)
    for sides, codes, neutral in (
        (("a", "d"), ([0], [3]), False),
        (("e", "b"), ([4], [1]), True),
        ((("a", "c"), frozenset({"b", "d", "e"})), ([0, 2], [1, 3, 4]), False),
    ):
        found = fitted.predict_proba(*sides, neutral=neutral, level=0.9)
        expected = chances(model, point, *codes, not neutral)
        for place, (estimate, low, high) in enumerate(found):
            assert estimate == pytest.approx(expected[place], rel=1e-10, abs=1e-15)
            if model == "bradley-terry" and place == 1:
                assert (low, high) == (0.0, 0.0)
                continue

            def log_odds(at, place=place, codes=codes, neutral=neutral):
                p = chances(model, at, *codes, not neutral)
                return np.log(p[place] / (p.sum() - p[place]))

            step = 1e-5 * np.eye(len(point))
            slope = [(log_odds(point + s) - log_odds(point - s)) / 2e-5 for s in step]
            error = np.sqrt(slope @ fitted.covariance_ @ slope)
            ends = 1 / (1 + np.exp(-(log_odds(point) + reach * error * np.array([-1, 1]))))
            np.testing.assert_allclose([low, high], ends, rtol=1e-6)
    many = fitted.predict_proba(["a", "b"], "c", level=0.9)
    one = fitted.predict_proba("b", "c", level=0.9)
    np.testing.assert_allclose([each.high[1] for each in many], [each.high for each in one])


@each_model
def test_both_kinds_of_covariance_are_there_whichever_was_asked_for(model):
    one = fitted_league(model)
    other = fitted_league(model, uncertainty="sandwich")
    for kind, fit in (("information", one), ("sandwich", other)):
        matrix = fit.covariance_[:5, :5]
        np.testing.assert_allclose(one.covariance(kind=kind), matrix, rtol=1e-8, atol=1e-12)
        np.testing.assert_allclose(other.covariance(kind=kind), matrix, rtol=1e-8, atol=1e-12)
    np.testing.assert_array_equal(
        one.covariance(["d", "a"]), one.covariance_[np.ix_([3, 0], [3, 0])]
    )
    with pytest.raises(ValueError, match="kind is"):
        one.covariance(kind="bayes")


def test_intervals_ranks_and_tiers_of_games_come_from_their_covariance():
    fitted = fitted_league("davidson")
    estimate, low, high = fitted.intervals(0.9)
    np.testing.assert_allclose(high - low, 2 * norm.ppf(0.95) * fitted.standard_errors_)
    np.testing.assert_array_equal(estimate, fitted.log_worths_)
    worth, low, high = fitted.intervals(scale="worth")
    step = 1e-6 * np.eye(5)

    def log_worths(w):
        return w - np.log(np.exp(w).sum())

    for item in range(5):
        slope = [
            (log_worths(fitted.log_worths_ + s) - log_worths(fitted.log_worths_ - s))[item] / 2e-6
            for s in step
        ]
        p = worth[item]
        margin = norm.ppf(0.975) * np.sqrt(slope @ fitted.covariance() @ slope) / (1 - p)
        odds = np.log(p / (1 - p)) + np.array([-margin, margin])
        assert (low[item], high[item]) == pytest.approx(tuple(1 / (1 + np.exp(-odds))))
    q, variance = fitted.quasi_variances().values, np.diag(fitted.covariance())
    exact = variance[:, None] + variance - 2 * fitted.covariance()
    off = ~np.eye(5, dtype=bool)
    np.testing.assert_allclose((q[:, None] + q)[off], exact[off], rtol=0.1)
    order = np.empty(5)
    order[np.argsort(-fitted.log_worths_)] = np.arange(1, 6)
    ranks = fitted.rank_intervals()
    assert ((ranks[:, 0] <= order) & (order <= ranks[:, 1])).all()
    cut = [fitted.items_[item] for tier in fitted.tiers().tiers for item in tier]
    assert cut == fitted.ranking()


def test_ranks_of_games_are_those_of_rankings_drawn_by_the_worths():
    fitted = fitted_league("davidson")
    drawn = tr.sample(torch.from_numpy(fitted.log_worths_), 100_000, generator=1).argsort(1)
    ranks = fitted.expected_ranks(draws=200)
    np.testing.assert_allclose(ranks.estimate, drawn.double().mean(0) + 1, atol=0.03)
    assert ((ranks.low < ranks.estimate) & (ranks.estimate < ranks.high)).all()
    np.testing.assert_allclose(
        fitted.top_k_proba(2), (drawn < 2).double().mean(0).numpy(), atol=0.006
    )
    # Davidson's games that somebody wins are Bradley-Terry's, and so is a ranking's order of two
    np.testing.assert_allclose(
        fitted.pairwise_proba(), tr.RankAggregator.pairwise_proba(fitted), rtol=1e-12
    )


@each_model
def test_who_beats_whom_is_in_games_that_somebody_wins(model):
    fitted = fitted_league(model)
    win, _, loss = fitted.predict_proba("b", "d", neutral=True)
    assert fitted.pairwise_proba(["b", "d"])[0, 1] == pytest.approx(win / (win + loss))


@each_model
def test_the_log_probabilities_of_games_add_up_to_the_likelihood(model):
    rng = np.random.default_rng(5)
    rows = team_rows(rng, model, games=200)
    fitted = tr.PairedTies(model).fit(rows)
    assert fitted.log_prob(rows).shape == (200,)
    assert fitted.log_prob(rows).sum() == pytest.approx(fitted.log_likelihood_)


@pytest.mark.slow
@pytest.mark.parametrize("teams", [False, True])
def test_the_bootstrap_of_games_has_the_errors_of_the_sandwich(teams):
    rng = np.random.default_rng(6)
    data = (
        team_rows(rng, "davidson", games=900)
        if teams
        else league(rng, "davidson", WORTHS, rounds=50)
    )
    fitted = tr.PairedTies(uncertainty="sandwich").fit(data)
    boot = fitted.bootstrap(150, random_state=0)
    assert boot.without_estimate == 0
    np.testing.assert_allclose(boot.standard_errors, fitted.standard_errors_, rtol=0.25)
    np.testing.assert_allclose(boot.log_worths.mean(axis=1), 0, atol=1e-12)
    again = fitted.bootstrap(3, random_state=0)
    np.testing.assert_array_equal(again.log_worths, boot.log_worths[:3])


def test_replicates_of_games_without_an_estimate_are_counted():
    games = [("a", "b", 1), ("b", "a", 1), ("a", "b", 0), ("b", "c", 1), ("c", "a", 1)]
    assert tr.PairedTies().fit(games).bootstrap(60).without_estimate > 0


@pytest.mark.slow
def test_the_bootstrap_of_features_has_the_errors_of_the_sandwich():
    rng = np.random.default_rng(7)
    X = rng.normal(size=(8, 2))
    w = X @ [1.0, -0.5]
    lists = [
        sorted(rng.choice(8, 4, replace=False).tolist(), key=lambda i: -w[i] - rng.gumbel())
        for _ in range(300)
    ]
    fitted = tr.FeatureAggregator(uncertainty="sandwich").fit(lists, X, items=8)
    boot = fitted.bootstrap(150, random_state=0)
    np.testing.assert_allclose(boot.standard_errors, fitted.standard_errors_, rtol=0.25)
    network = tr.FeatureAggregator("neural", hidden=(2,), max_iter=3, random_state=0)
    assert network.fit(lists, X, items=8).bootstrap(2).log_worths.shape == (2, 8)
    assert fitted.connectivity_.connected


def test_games_tell_how_the_fit_went_and_whoever_watches():
    rng = np.random.default_rng(8)
    games = league(rng, "davidson", WORTHS)
    seen = []
    fitted = tr.PairedTies().fit(games, watch=seen.append)
    assert [each.done for each in seen] == list(range(1, fitted.n_iter_ + 1))
    assert (fitted.solver_, fitted.stopped_by_, fitted.converged_) == ("newton", "tolerance", True)
    assert len(fitted.objective_values_) == fitted.n_iter_ + 1
    assert np.all(np.diff(fitted.objective_values_) <= 1e-9)
    assert fitted.objective_values_[-1] == pytest.approx(-fitted.log_likelihood_)
    assert fitted.gradient_norm_ < 1e-6


def test_a_page_can_ask_every_fit_the_same(tmp_path):
    votes = [["a", "b", "c"], ["b", "a", "c"], ["c", "a", "b"]]
    games = [("a", "b", 1), ("b", "c", 0), ("c", "a", 1), ("b", "a", 1)]
    features = {"a": [1.0], "b": [0.5], "c": [0.0]}
    for fitted, of_games, decided in (
        (tr.RankAggregator(prior="gaussian").fit(votes), False, "prior"),
        (tr.RankAggregator().fit(votes), False, None),
        (tr.PairedTies().fit(games), True, None),
        (tr.FeatureAggregator(l2=0.1).fit(votes, features), False, "features"),
    ):
        assert (fitted.of_games, fitted.decided_by) == (of_games, decided)
        assert fitted.ties_connect == of_games
        lists, connected = fitted.compared()
        assert lists.total == len(games if of_games else votes)
        assert connected.connected
        assert fitted.described()["model"]
        loaded = tr.load(tr.save(fitted, tmp_path / "model"))
        assert loaded.described() == fitted.described()
        assert loaded.objective_values_ == fitted.objective_values_
        assert loaded.parameters() == fitted.parameters()
        what = "games" if of_games else "lists"
        with pytest.raises(ValueError, match=f"but not its {what}: give them as data="):
            loaded.compared()
        with pytest.raises(ValueError, match=f"saved without its {what}"):
            loaded.bootstrap(2)


def test_games_that_release_0_1_saved_are_read():
    """It kept no more of how the fit went than whether it came to its end."""
    fitted = fitted_league("davidson")
    info, arrays = fitted.to_state()
    del info["fit"]
    old = tr.PairedTies.from_state(info, arrays)
    assert str(old.summary()) == str(fitted.summary())
    assert (old.solver_, old.stopped_by_, old.n_iter_) == ("newton", "tolerance", fitted.n_iter_)
    assert old.aic_ == fitted.aic_
    with pytest.raises(ValueError, match="no covariance of kind 'sandwich' here"):
        old.covariance(kind="sandwich")


LISTS = [["a", "b", ("c", "d")], ["b", "a", "d", "c"], ["d", "c", "a", "b"], ["c", ("a", "d"), "b"]]


def without_errors(uncertainty):
    """Every estimator, fitted, with what it needs."""
    rng = np.random.default_rng(0)
    games = league(rng, "davidson", WORTHS, rounds=4, home=0.4, names=("a", "b", "c", "d", "e"))
    features = {item: rng.normal(size=1) for item in "abcd"}
    mixture = tr.RankMixture(1, starts=1, uncertainty=uncertainty).fit(LISTS)
    return [
        tr.RankAggregator(uncertainty=uncertainty).fit(LISTS),
        tr.PairedTies("davidson", home=True, uncertainty=uncertainty).fit(games),
        tr.FeatureAggregator(uncertainty=uncertainty).fit(LISTS, features),
        tr.DavidsonLuce(uncertainty=uncertainty).fit(LISTS),
        mixture.groups_[0],
    ]


def test_without_uncertainty_worths_are_the_same_and_no_covariance_is_computed(tmp_path):
    for fitted, usual in zip(without_errors(None), without_errors("information"), strict=True):
        assert not fitted._covariances
        np.testing.assert_array_equal(fitted.log_worths_, usual.log_worths_)
        assert fitted.ranking() == usual.ranking()
        for ask in (
            fitted.covariance, fitted.intervals, fitted.tiers, fitted.rank_intervals,
            fitted.expected_ranks, fitted.quasi_variances, fitted.next_pairs,
            lambda it=fitted: it.standard_errors_,
        ):  # fmt: skip
            with pytest.raises(ValueError, match=r'without\. Fit with uncertainty="information"'):
                ask()
        frame = fitted.to_frame()
        assert frame["standard_error"].isna().all()
        assert not frame["log_worth"].isna().any()
        assert "no standard errors" in str(fitted.summary())
        assert all(np.isnan(each.standard_error) for each in fitted.parameters())
        fitted.report(tmp_path / "page.html")
        assert not fitted._covariances
        if not hasattr(fitted, "share_"):  # a mixture is saved as a whole
            loaded = tr.load(tr.save(fitted, tmp_path / type(fitted).__name__))
            np.testing.assert_array_equal(loaded.log_worths_, fitted.log_worths_)
            assert not loaded._covariances
            assert str(loaded.summary()) == str(fitted.summary())
            with pytest.raises(ValueError, match="Fit with uncertainty"):
                loaded.covariance()
            matrix = fitted.covariance(kind="sandwich")  # who asks for it has it all the same
            np.testing.assert_array_equal(matrix, usual.covariance(kind="sandwich"))


def test_without_uncertainty_games_that_leave_something_open_are_still_refused():
    games = [(("a", "b"), ("c", "d"), 1), (("c", "d"), ("a", "b"), 1)] * 3
    for uncertainty in ("information", None):
        with pytest.raises(ValueError, match="a, b"):
            tr.PairedTies("bradley-terry", uncertainty=uncertainty).fit(games)


def test_clusters_need_uncertainty():
    with pytest.raises(ValueError, match="clusters say what standard errors rest on"):
        tr.RankAggregator(clusters="voter", uncertainty=None).fit(LISTS)
