"""Covariates of votes and clusters of voters, against statsmodels, arena-rank and plain sums."""

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
import torch
from statsmodels.duration.hazard_regression import PHReg

import tierrank as tr
from paired_games import outcomes, team_rows
from tierrank.aggregation.games import read_fixtures
from tierrank.aggregation.paired_likelihood import MODELS, GamesTerm
from tierrank.aggregation.votes import EntryTerm, Votes, clustered_squares
from tierrank.data import Rankings, read_rankings
from tierrank.data.rankings.games import Games

NAMES = tuple("pqrstu")
BOTH = [("long_a", "long_b"), "turn"]


def votes(model="bradley-terry", games=1500, seed=0, **more):
    """Games that depend on a difference of lengths and on a turn, by voters on prompts."""
    rng = np.random.default_rng(seed)
    w = rng.normal(size=len(NAMES))
    first = rng.integers(len(w), size=games)
    second = (first + rng.integers(1, len(w), size=games)) % len(w)
    beside = {
        "long_a": rng.normal(100, 30, size=games),
        "long_b": rng.normal(100, 30, size=games),
        "turn": rng.integers(0, 2, size=games),
        "voter": np.array([f"voter {number}" for number in rng.integers(90, size=games)]),
        "prompt": rng.integers(60, size=games),
    }
    lead = w[first] - w[second] + 0.02 * (beside["long_a"] - beside["long_b"])
    found = outcomes(rng, model, lead + 0.3 * beside["turn"], -0.3)
    weights = np.ones(games)
    return Games(NAMES, first, second, found.astype(np.int8), weights, beside=beside | more)


def logistic(games, **how):
    """The regression of statsmodels on differences of items, lengths and turns."""
    rows = np.arange(len(games))
    items = np.zeros((len(games), len(NAMES)))
    items[rows, games.first] = 1
    items[rows, games.second] -= 1
    beside = games.beside
    x = np.column_stack([items[:, 1:], beside["long_a"] - beside["long_b"], beside["turn"]])
    won = (games.outcome == 1).astype(float)
    fitted = sm.GLM(won, x, family=sm.families.Binomial()).fit(tol=1e-14, maxiter=100, **how)
    # its small sample factor has one part more than G/(G − 1)
    more = 1.0 if "cov_type" not in how else (len(won) - 1) / (len(won) - x.shape[1])
    return fitted.params, fitted.cov_params() / more


def against_the_first(fitted):
    """[parameters, parameters] of differences with the first item, as a regression has them."""
    matrix = fitted.covariance_
    change = np.eye(len(matrix))[1:]
    change[: len(NAMES) - 1, 0] = -1
    return change @ matrix @ change.T


# -- games ----------------------------------------------------------------------------------------


def test_covariates_of_games_are_those_of_a_logistic_regression():
    games = votes()
    fitted = tr.PairedTies("bradley-terry", covariates=BOTH).fit(games)
    params, matrix = logistic(games)
    worths = fitted.log_worths_[1:] - fitted.log_worths_[0]
    np.testing.assert_allclose([*worths, *fitted.coef_], params, rtol=1e-9)
    np.testing.assert_allclose(against_the_first(fitted), matrix, rtol=1e-7, atol=1e-11)
    assert fitted.covariate_names_ == ("long_a - long_b", "turn")
    assert [each.name for each in fitted.parameters()] == ["long_a - long_b", "turn"]
    np.testing.assert_allclose(
        [each.standard_error for each in fitted.parameters()], np.sqrt(np.diag(matrix))[-2:]
    )
    assert fitted.n_parameters_ == len(NAMES) + 1
    assert "long_a - long_b" in str(fitted.summary())
    assert fitted.described()["worths"] == "at 0 of long_a - long_b, turn"


@pytest.mark.parametrize("by", ["voter", ["voter", "prompt"]])
def test_clustered_standard_errors_are_those_of_statsmodels(by):
    games = votes()
    fitted = tr.PairedTies("bradley-terry", covariates=BOTH, clusters=by).fit(games)
    groups = [pd.factorize(games.beside[each])[0] for each in np.atleast_1d(by)]
    how = {"groups": groups[0] if len(groups) == 1 else np.column_stack(groups)}
    _, matrix = logistic(games, cov_type="cluster", cov_kwds=how)
    np.testing.assert_allclose(against_the_first(fitted), matrix, rtol=1e-8, atol=1e-14)
    assert "sandwich clustered by voter" in fitted.described()["uncertainty"]
    information = tr.PairedTies("bradley-terry", covariates=BOTH).fit(games)
    np.testing.assert_allclose(fitted.covariance(kind="information"), information.covariance())
    again = information.set_params(clusters=by, covariates=BOTH).fit(games.of(np.arange(1500)))
    np.testing.assert_array_equal(again.covariance_, fitted.covariance_)


def test_covariates_of_games_are_those_of_arena_rank():
    models = pytest.importorskip("arena_rank.models.contextual_bradley_terry")
    data = pytest.importorskip("arena_rank.utils.data_utils")
    games = votes(games=800)
    beside = games.beside
    x = np.column_stack([(beside["long_a"] - beside["long_b"]) / 30, beside["turn"]])
    pairs = np.column_stack([games.first, games.second])
    won = (games.outcome + 1) / 2
    theirs = models.ContextualBradleyTerry(
        len(NAMES), 2, reg=0.0, hessian_reg=1e-7, ftol=1e-16, gtol=1e-12
    )
    found = theirs.compute_ratings_and_cis(
        data.ContextualPairDataset(list(NAMES), pairs, won, x, np.ones(len(won)))
    )
    ours = tr.PairedTies("bradley-terry", covariates=BOTH, uncertainty="sandwich").fit(games)
    ratings = np.asarray(theirs.params["ratings"])
    np.testing.assert_allclose(ratings - ratings.mean(), ours.log_worths_, atol=1e-6)
    np.testing.assert_allclose(np.asarray(found["coeffs"]) / [30, 1], ours.coef_, atol=1e-6)
    errors = np.sqrt(np.asarray(found["variances"])) / theirs.alpha
    np.testing.assert_allclose(errors, ours.standard_errors_, atol=1e-4)


@pytest.mark.parametrize("model", MODELS)
def test_derivatives_with_covariates_are_those_by_differences(model):
    rng = np.random.default_rng(3)
    rows = team_rows(rng, model, games=60)
    games = Games.from_rows(rows)
    x = {"x": rng.normal(size=60), "y": 5 * rng.normal(size=60)}
    games = Games(games.names, games.first, games.second, games.outcome, games.weights, beside=x)
    fixtures = read_fixtures(games, None, None, home=True, covariates=["x", "y"])
    term = GamesTerm(fixtures, model, home=True)
    point = 0.3 * rng.normal(size=term.size)
    value, gradient = term.value_and_gradient(point)
    matrix, step = term.hessian(point).matrix(), 1e-6 * np.eye(term.size)
    for row, along in zip(matrix, step, strict=True):
        (high, up), (low, down) = (term.value_and_gradient(point + way * along) for way in (1, -1))
        assert (high - low) / 2e-6 == pytest.approx(gradient[along > 0][0], abs=1e-6)
        np.testing.assert_allclose((up - down) / 2e-6, row, atol=2e-5)
    assert value > 0
    seen = np.zeros((60, 3))
    seen[np.arange(60), 1 - fixtures.outcome] = fixtures.weights
    np.testing.assert_allclose(-term.gradient_of_counts(seen, point), gradient, rtol=1e-9)


def test_a_column_of_ones_is_the_home_advantage():
    games = votes("davidson", ones=np.ones(1500))
    home = tr.PairedTies("davidson", home=True).fit(games)
    ones = tr.PairedTies("davidson", covariates=["ones"]).fit(games)
    assert ones.coef_[0] == pytest.approx(home.home_advantage_, abs=1e-10)
    assert ones.coef_standard_errors_[0] == pytest.approx(home.home_standard_error_, rel=1e-8)
    np.testing.assert_allclose(ones.log_worths_, home.log_worths_, atol=1e-10)
    with pytest.raises(ValueError, match="do not determine first side, ones:"):
        tr.PairedTies("davidson", home=True, covariates=["ones"]).fit(games)


@pytest.mark.parametrize("model", MODELS)
def test_weights_are_games_so_often_and_units_do_not_matter(model):
    games = votes(model, games=400)
    often = np.random.default_rng(1).integers(0, 3, size=400)
    fitted = tr.PairedTies(model, covariates=BOTH).fit(games, often)
    repeated = games.of(np.repeat(np.arange(400), often))
    many = tr.PairedTies(model, covariates=BOTH).fit(repeated)
    np.testing.assert_allclose(fitted.coef_, many.coef_, rtol=1e-8)
    np.testing.assert_allclose(fitted.covariance_, many.covariance_, rtol=1e-8, atol=1e-14)
    in_miles = {name: games.beside[name] * 1e-9 for name in ("long_a", "long_b")}
    tiny = Games(
        NAMES, games.first, games.second, games.outcome, games.weights,
        beside=dict(games.beside) | in_miles,
    )  # fmt: skip
    again = tr.PairedTies(model, covariates=BOTH, clusters=["voter", "prompt"]).fit(tiny, often)
    first = tr.PairedTies(model, covariates=BOTH, clusters=["voter", "prompt"]).fit(games, often)
    np.testing.assert_allclose(again.coef_ * [1e-9, 1], fitted.coef_, rtol=1e-7)
    np.testing.assert_allclose(again.standard_errors_, first.standard_errors_, rtol=1e-7)


@pytest.mark.parametrize("model", MODELS)
def test_predictions_take_covariates(model):
    games = votes(model)
    fitted = tr.PairedTies(model, covariates=BOTH).fit(games)
    plain = fitted.predict_proba("p", "q")
    assert plain == fitted.predict_proba("p", "q", covariates={"turn": 0})
    at = {"long_a": [120.0, 80.0], "long_b": 100.0, "turn": 1}
    win, tie, loss = fitted.predict_proba(["p", "p"], "q", covariates=at, level=0.9)
    np.testing.assert_allclose(win.estimate + tie.estimate + loss.estimate, 1)
    assert win.estimate[0] > win.estimate[1]
    rows = {"long_a": np.array([120.0, 80.0]), "long_b": np.full(2, 100.0), "turn": np.ones(2)}
    won = Games(NAMES, [0, 0], [1, 1], [1, 1], [1, 1], beside=rows)
    np.testing.assert_allclose(fitted.log_prob(won), np.log(win.estimate))
    assert fitted.log_prob(games).sum() == pytest.approx(fitted.log_likelihood_)
    with pytest.raises(ValueError, match=r"'trun' is none of the fit.* Did you mean 'turn'"):
        fitted.predict_proba("p", "q", covariates={"trun": 1})
    with pytest.raises(ValueError, match=r"'turn' has shape \(3,\): give a number, or 1 of them"):
        fitted.predict_proba("p", "q", covariates={"turn": [1, 2, 3]})
    with pytest.raises(ValueError, match="game 0 has nan in 'turn'"):
        fitted.predict_proba("p", "q", covariates={"turn": np.nan})
    with pytest.raises(ValueError, match=r"none of the fit: there are none"):
        tr.PairedTies(model).fit(games).predict_proba("p", "q", covariates={"turn": 1})


def test_a_frame_has_covariates_and_clusters_as_columns():
    games = votes()
    frame = pd.DataFrame({name: games.beside[name] for name in games.beside})
    frame["first"] = [NAMES[code] for code in games.first]
    frame["second"] = [NAMES[code] for code in games.second]
    frame["winner"] = np.where(games.outcome > 0, frame["first"], frame["second"])
    how = {"first": "first", "second": "second", "winner": "winner"}
    model = tr.PairedTies("bradley-terry", covariates=BOTH, clusters="voter")
    found = model.fit(frame, items=NAMES, **how)
    same = tr.PairedTies("bradley-terry", covariates=BOTH, clusters="voter").fit(games)
    np.testing.assert_allclose(found.covariance_, same.covariance_, rtol=1e-9, atol=1e-15)
    frame.loc[7, "turn"] = np.nan
    with pytest.raises(ValueError, match="game 7 has nan in 'turn': a covariate is a finite"):
        model.fit(frame, **how)
    frame["voter"] = frame["voter"].where(frame.index != 9, None)
    with pytest.raises(ValueError, match="game 9 has no 'voter': a vote without it"):
        tr.PairedTies("bradley-terry", clusters="voter").fit(frame, **how)


def test_a_fit_is_saved_with_its_coefficients(tmp_path):
    games = votes("davidson")
    fitted = tr.PairedTies(covariates=BOTH, clusters=["voter", "prompt"]).fit(games)
    tr.save(fitted, tmp_path / "model")
    back = tr.load(tmp_path / "model")
    np.testing.assert_array_equal(back.coef_, fitted.coef_)
    np.testing.assert_array_equal(back.covariance_, fitted.covariance_)
    at = {"turn": 1, "long_a": 30}
    one, two = (each.predict_proba("p", "q", covariates=at) for each in (fitted, back))
    assert one == two
    assert str(back.summary()) == str(fitted.summary())
    assert fitted.goodness(worst=1) is not None
    sooner = tr.PairedTies(covariates=BOTH).fit(games, init_model=back)
    np.testing.assert_allclose(sooner.coef_, fitted.coef_, rtol=1e-8)


# -- lists ----------------------------------------------------------------------------------------


def shown_lists(lists=300, ties=False, seed=1):
    """Lists of four of five items, the higher for a place at which they were shown."""
    rng = np.random.default_rng(seed)
    w, size = rng.normal(size=5), 4
    rows = []
    for number in range(lists):
        items, place = rng.choice(5, size, replace=False), rng.permutation(size) + 1.0
        rank = (-(w[items] - 0.4 * place + rng.gumbel(size=size))).argsort().argsort()
        rows.append(pd.DataFrame({
            "list": number, "item": [NAMES[code] for code in items],
            "rank": rank // 2 if ties and number % 3 else rank, "place": place,
            "age": rng.normal(size=size), "voter": f"v{number % 40}", "prompt": number // 5,
        }))  # fmt: skip
    return pd.concat(rows, ignore_index=True)


COLUMNS = {"list": "list", "item": "item", "rank": "rank"}
KEPT = {"keep": ["voter", "prompt"], "keep_items": ["place", "age"]}


def test_covariates_of_strict_lists_are_those_of_a_stratified_cox_regression():
    frame = shown_lists()
    fitted = tr.RankAggregator(covariates=["place", "age"]).fit(frame, **COLUMNS)
    items = pd.get_dummies(frame["item"])[list(fitted.items_)].to_numpy(float)[:, 1:]
    x = np.column_stack([items, frame["place"], frame["age"]])
    cox = PHReg(frame["rank"].to_numpy(float), x, strata=frame["list"].to_numpy()).fit(disp=0)
    np.testing.assert_allclose(fitted.coef_, cox.params[-2:], rtol=1e-7)
    np.testing.assert_allclose(fitted.coef_standard_errors_, cox.bse[-2:], rtol=1e-7)
    worths = fitted.log_worths_[1:] - fitted.log_worths_[0]
    np.testing.assert_allclose(worths, cox.params[:-2], atol=1e-7)
    assert fitted.log_likelihood_ == pytest.approx(cox.llf)
    assert fitted.aic_ == pytest.approx(2 * (4 + 2) - 2 * cox.llf)
    assert "place" in str(fitted.summary())


@pytest.mark.parametrize("by", ["voter", ["voter", "prompt"], None])
def test_lists_with_ties_and_clusters_are_what_plain_sums_say(by):
    data = read_rankings(shown_lists(ties=True), **COLUMNS, **KEPT)
    fitted = tr.RankAggregator(
        covariates=["place", "age"], clusters=by, uncertainty="sandwich"
    ).fit(data)
    x = torch.from_numpy(np.column_stack([data.beside_items[name] for name in ("place", "age")]))
    which = data.tiers.items
    starts = data.tiers.tier_offsets[data.tiers.list_offsets].tolist()

    def by_list(point):
        """Each list alone, over the items that it has."""
        scores = torch.cat([point.new_zeros(1), point[:4]])[which] + x @ point[4:]
        found = []
        for number, ranking in enumerate(data.tiers.to_rankings()):
            own = dict(
                zip(which[starts[number] : starts[number + 1]].tolist(), range(4), strict=True)
            )
            order = [
                tuple(own[data.items.index(name)] for name in tier)
                if isinstance(tier, tuple)
                else own[data.items.index(tier)]
                for tier in ranking
            ]
            alone = tr.Tiers.from_rankings([order], items=4)
            found.append(tr.log_prob(scores[starts[number] : starts[number + 1]], alone))
        return torch.cat(found)

    end = np.append(fitted.log_worths_[1:] - fitted.log_worths_[0], fitted.coef_)
    point = torch.from_numpy(end)
    slopes = torch.autograd.functional.jacobian(by_list, point).numpy()
    np.testing.assert_allclose(slopes.sum(axis=0), 0, atol=1e-8)
    bread = np.linalg.inv(
        -torch.autograd.functional.hessian(lambda at: by_list(at).sum(), point).numpy()
    )

    def meat(*names):
        groups = pd.Series(list(zip(*(data.beside[name].tolist() for name in names), strict=True)))
        sums = pd.DataFrame(slopes).groupby(groups).sum().to_numpy()
        return len(sums) / (len(sums) - 1) * sums.T @ sums

    middle = slopes.T @ slopes
    if by == "voter":
        middle = meat("voter")
    elif by:
        middle = meat("voter") + meat("prompt") - meat("voter", "prompt")
    expected = bread @ middle @ bread
    np.testing.assert_allclose(fitted.coef_standard_errors_, np.sqrt(np.diag(expected))[-2:])
    np.testing.assert_allclose(by_list(point).sum(), fitted.log_likelihood_)
    np.testing.assert_allclose(fitted.log_prob(data), by_list(point))


@pytest.mark.parametrize("objective", ["pl-partition", "pl-efron", "pmop-fd", "ranknet"])
def test_lists_alone_in_their_clusters_are_the_plain_sandwich(objective):
    data = read_rankings(shown_lists(ties=True), **COLUMNS)
    own = Rankings(data.tiers, data.weights, beside={"list": np.arange(len(data))})
    plain = tr.RankAggregator(objective, uncertainty="sandwich").fit(data)
    alone = tr.RankAggregator(objective, clusters="list").fit(own)
    factor = len(data) / (len(data) - 1)
    np.testing.assert_allclose(alone.covariance(), factor * plain.covariance(), rtol=1e-6)
    np.testing.assert_array_equal(alone.log_worths_, plain.log_worths_)


def test_lists_that_leave_a_rest_have_clusters():
    rng = np.random.default_rng(0)
    ballots = [tuple(rng.choice(5, 2, replace=False).tolist()) for _ in range(200)]
    rankings = Rankings.from_rankings([[ballot] for ballot in ballots], items=5, rest="last")
    own = Rankings(rankings.tiers, rankings.weights, beside={"own": np.arange(200)})
    plain = tr.RankAggregator(uncertainty="sandwich").fit(rankings)
    alone = tr.RankAggregator(clusters="own").fit(own)
    np.testing.assert_allclose(alone.covariance(), 200 / 199 * plain.covariance(), rtol=1e-6)


def test_second_derivatives_of_entries_are_those_by_products():
    data = read_rankings(shown_lists(ties=True, lists=60), **COLUMNS, **KEPT)
    x = np.column_stack([data.beside_items[name] for name in ("place", "age")])
    term = EntryTerm(
        Votes.of(data.tiers, data.weights, x, ("place", "age"), None), "pl-partition", None
    )
    point = 0.4 * np.random.default_rng(0).normal(size=7)
    hessian, unit = term.hessian(point), np.eye(7)
    matrix = hessian.matrix()
    np.testing.assert_allclose(matrix, [hessian.product(each) for each in unit], atol=1e-9)
    for row, along in zip(matrix, 1e-5 * unit, strict=True):
        up, down = (term.value_and_gradient(point + way * along)[1] for way in (1, -1))
        np.testing.assert_allclose((up - down) / 2e-5, row, atol=1e-5)


def test_predictions_of_lists_take_covariates_of_items():
    data = read_rankings(shown_lists(), **COLUMNS, **KEPT)
    fitted = tr.RankAggregator(covariates=["place", "age"]).fit(data)
    place = {"place": {"p": 1, "q": 3}}
    lead = (
        fitted.log_worths_[fitted.items_.index("p")] - fitted.log_worths_[fitted.items_.index("q")]
    )
    chance, low, high = fitted.predict_proba("p", "q", level=0.95, covariates=place)
    assert chance == pytest.approx(1 / (1 + np.exp(-lead + 2 * fitted.coef_[0])))
    assert low < chance < high
    assert fitted.predict_proba("p", "q") == pytest.approx(1 / (1 + np.exp(-lead)))
    with pytest.raises(ValueError, match="'place' differs between items: give a mapping"):
        fitted.predict_proba("p", "q", covariates={"place": 1})
    with pytest.raises(ValueError, match="'r' has a 'place', and is neither above nor below"):
        fitted.predict_proba("p", "q", covariates={"place": {"r": 1}})
    with pytest.raises(ValueError, match="Rankings of this very catalogue"):
        fitted.log_prob([["p", "q"]])
    with pytest.raises(ValueError, match="differs from list to list with covariates"):
        fitted.goodness()


def test_lists_with_covariates_are_saved_weighted_and_begun_elsewhere(tmp_path):
    data = read_rankings(shown_lists(ties=True), **COLUMNS, **KEPT)
    fitted = tr.RankAggregator(covariates=["place"], clusters="voter", prior="gaussian:3").fit(data)
    tr.save(fitted, tmp_path / "model")
    back = tr.load(tmp_path / "model")
    assert str(back.summary()) == str(fitted.summary())
    np.testing.assert_array_equal(back.coef_standard_errors_, fitted.coef_standard_errors_)
    np.testing.assert_array_equal(
        back.covariance(kind="information"), fitted.covariance(kind="information")
    )
    sooner = tr.RankAggregator(covariates=["place"], prior="gaussian:3").fit(data, init_model=back)
    np.testing.assert_allclose(sooner.coef_, fitted.coef_, rtol=1e-6)
    often = np.arange(len(data)) % 3
    weighted = tr.RankAggregator(covariates=["place"]).fit(data, weights=often)
    repeated = tr.RankAggregator(covariates=["place"]).fit(
        data.of(np.repeat(np.arange(len(data)), often))
    )
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-7)
    np.testing.assert_allclose(weighted.covariance(), repeated.covariance(), rtol=1e-6, atol=1e-12)


# -- clusters -------------------------------------------------------------------------------------


def test_a_bootstrap_draws_voters():
    games = votes(games=3000)
    # every vote of a voter thrice: the same voters, and no more of them
    thrice = games.of(np.tile(np.arange(3000), 3))
    fitted = tr.PairedTies("bradley-terry", clusters="voter").fit(thrice)
    plain = tr.PairedTies("bradley-terry").fit(games)
    drawn = fitted.bootstrap(60, random_state=1)
    np.testing.assert_allclose(drawn.standard_errors, fitted.standard_errors_, rtol=0.35)
    np.testing.assert_allclose(fitted.standard_errors_, plain.standard_errors_, rtol=0.35)
    by_both = tr.PairedTies("bradley-terry", clusters=["voter", "prompt"]).fit(games)
    with pytest.raises(ValueError, match="a bootstrap draws clusters of one kind"):
        by_both.bootstrap(10)
    data = read_rankings(shown_lists(ties=True), **COLUMNS, **KEPT)
    for covariates in (None, ["place"]):
        lists = tr.RankAggregator(clusters="voter", covariates=covariates).fit(data)
        errors = lists.bootstrap(40).standard_errors
        np.testing.assert_allclose(errors, lists.standard_errors_, rtol=0.5)
    assert tr.RankAggregator(covariates=["place"]).fit(data).bootstrap(3).without_estimate == 0


def test_the_middle_of_a_sandwich_by_two_kinds_has_no_negative_eigenvalue():
    rng = np.random.default_rng(0)
    for _ in range(20):
        clusters = rng.integers(4, size=(30, 2))
        slopes = tr.aggregation.votes.csr_array(rng.normal(size=(30, 6)))
        middle = clustered_squares(slopes, clusters, np.ones(6))
        assert np.linalg.eigvalsh(middle)[0] > -1e-9
    alone = np.column_stack([np.arange(30), np.arange(30)])  # the same twice: once
    np.testing.assert_allclose(
        clustered_squares(slopes, alone, np.ones(6)), clustered_squares(slopes, alone[:, :1], None)
    )


def test_few_clusters_are_warned_of():
    few = votes(judge=np.arange(1500) % 5)
    with pytest.warns(UserWarning, match="5 clusters by 'judge' are no more than the 6 estimates"):
        tr.PairedTies("bradley-terry", clusters="judge").fit(few)
    with pytest.raises(ValueError, match="all have the same 'judge', 1, and how estimates vary"):
        tr.PairedTies("bradley-terry", clusters="judge").fit(votes(judge=np.ones(1500, int)))


# -- refused --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("setting", "problem"),
    [
        ({"covariates": "turn"}, "covariates is a list of columns"),
        ({"covariates": ["turn", "turn"]}, "covariates names 'turn' twice"),
        ({"covariates": [("p", "q", "c")]}, "is neither"),
        ({"covariates": [3]}, "3 is neither"),
        ({"clusters": 3}, "clusters is a column, or several"),
        ({"clusters": ["voter", "voter"]}, "clusters names 'voter' twice"),
        ({"covariates": ["length"]}, "'length'.*beside it. Read the table with keep"),
        ({"clusters": "vote"}, "'vote'.*beside it. Read the table with keep"),
        ({"covariates": ["voter"]}, "'voter' has 'voter [0-9]+', which is no number"),
        ({"covariates": ["nothing"]}, "'nothing' is 0 in every game"),
        ({"covariates": [("turn", "turn")]}, "'turn - turn' is 0 in every game"),
        ({"covariates": ["turn", "twice"]}, "do not determine turn, twice:"),
        ({"covariates": ["is_p"]}, "do not determine p, is_p:"),
        ({"covariates": ["oracle"]}, "do not determine .*oracle"),
        ({"covariates": ["infinite"]}, "game 3 has inf in 'infinite'"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused(setting, problem):
    games = votes()
    turn, infinite = games.beside["turn"], np.ones(1500)
    infinite[3] = np.inf
    is_p = (games.first == 0) * 1.0 - (games.second == 0)
    more = {
        "nothing": np.zeros(1500), "twice": 2 * turn, "is_p": is_p, "infinite": infinite,
        "oracle": 1e-3 * games.outcome,
    }  # fmt: skip
    with pytest.raises(ValueError, match=problem):
        tr.PairedTies("bradley-terry", **setting).fit(votes(**more))


@pytest.mark.parametrize(
    ("setting", "problem"),
    [
        ({"covariates": ["same"]}, "'same' is the same for all items of each list"),
        ({"covariates": ["place", "back"]}, "do not determine place, back:"),
        ({"covariates": ["of_item"]}, "do not determine .*of_item"),
        ({"covariates": ["oracle"]}, "do not determine .*oracle"),
        ({"covariates": ["place"], "solver": "adagrad"}, "covariates are not for adagrad"),
    ],
)  # fmt: skip
def test_what_cannot_be_of_lists_is_refused(setting, problem):
    frame = shown_lists()
    frame["same"] = frame["list"] * 0.1
    frame["back"] = 7 - 2 * frame["place"]
    frame["of_item"] = frame["item"].map({name: at for at, name in enumerate(NAMES)}) * 1.0
    frame["oracle"] = -frame["rank"] * 1e-3
    with pytest.raises(ValueError, match=problem):
        tr.RankAggregator(**setting).fit(frame, **COLUMNS)


def test_covariates_that_have_no_place_are_refused():
    games = votes()
    with pytest.raises(ValueError, match="of games add to the lead of the first side: fit Paired"):
        tr.RankAggregator(covariates=["turn"]).fit(games)
    with pytest.raises(ValueError, match="tables of counts have nothing beside them"):
        tr.PairedTies("bradley-terry", clusters="voter").fit_table([[0, 1], [1, 0]])
    pairs = read_rankings(shown_lists()[["list", "item", "rank", "voter"]], **COLUMNS, keep="voter")
    two = Rankings.from_rankings([["p", "q"], ["q", "p"]])
    two = Rankings(two.tiers, two.weights, beside={"turn": np.ones(2)})
    with pytest.raises(ValueError, match="rankings do not say which of two items was the first"):
        tr.PairedTies("bradley-terry", covariates=["turn"]).fit(two)
    assert len(pairs) == 300
    with pytest.raises(AttributeError, match="no attribute 'coef_': there were no covariates"):
        _ = tr.PairedTies("bradley-terry").fit(games).coef_
