import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import tierrank as tr
from tierrank.aggregation.connectivity import Disconnected
from tierrank.aggregation.terms import GaussianPrior
from tierrank.data.rankings.container import Rankings
from tierrank.data.rankings.games import Games
from tierrank.training import Progress
from votes import central_hessian, drawn_rankings, log_likelihood, tiers_of


def brute_force(rankings, items, weights=None):
    """Maximum of the enumerated likelihood by scipy, and its second derivatives by differences."""

    def loss(w):
        return -log_likelihood(w - w.mean(), rankings, weights)

    found = minimize(loss, np.zeros(items), method="BFGS", options={"gtol": 1e-7}).x
    point = found - found.mean()
    return point, central_hessian(loss, point)


def test_estimates_and_standard_errors_with_ties_are_those_of_the_enumerated_likelihood():
    _, rankings = drawn_rankings(0, 5, 40, 4, most_tied=3)
    weights = np.random.default_rng(0).integers(1, 4, len(rankings))
    point, hessian = brute_force(rankings, 5, weights)
    fitted = tr.RankAggregator().fit(rankings, items=5, weights=weights)
    np.testing.assert_allclose(fitted.log_worths_, point, atol=1e-5)
    np.testing.assert_allclose(fitted.covariance(), np.linalg.pinv(hessian, 1e-6), atol=1e-4)
    assert fitted.log_likelihood_ == pytest.approx(log_likelihood(point, rankings, weights))
    assert fitted.aic_ == pytest.approx(2 * 4 - 2 * fitted.log_likelihood_)


def test_two_items_have_the_estimate_one_can_write_down():
    fitted = tr.RankAggregator().fit([["a", "b"], ["b", "a"]], weights=[30, 10])
    assert fitted.worths_.tolist() == pytest.approx([0.75, 0.25])
    assert fitted.predict_proba("a", "b") == pytest.approx(0.75)
    # var(log-odds) = 1/30 + 1/10, and a centred log-worth is half of it
    assert fitted.standard_errors_ == pytest.approx([np.sqrt(1 / 30 + 1 / 10) / 2] * 2)


def test_how_often_a_list_was_seen_is_the_same_as_writing_it_so_often():
    _, rankings = drawn_rankings(2, 6, 30, 4, most_tied=2)
    weights = np.random.default_rng(3).integers(1, 4, 30)
    often = [
        ranking for ranking, times in zip(rankings, weights, strict=True) for _ in range(times)
    ]
    one, other = tr.RankAggregator().fit(rankings, items=6, weights=weights), tr.RankAggregator().fit(often, items=6)  # fmt: skip  # noqa: E501
    np.testing.assert_allclose(one.log_worths_, other.log_worths_, atol=1e-12)
    for kind in ("information", "sandwich"):
        np.testing.assert_allclose(
            one.covariance(kind=kind), other.covariance(kind=kind), atol=1e-12
        )


def test_the_sandwich_is_the_information_where_the_model_holds_and_lists_are_many():
    _, rankings = drawn_rankings(4, 6, 20_000, 4, most_tied=2)
    fitted = tr.RankAggregator().fit(rankings, items=6)
    ratio = np.diag(fitted.covariance(kind="sandwich")) / np.diag(fitted.covariance())
    np.testing.assert_allclose(ratio, 1, atol=0.06)


def test_input_may_be_rankings_tiers_or_a_container():
    _, rankings = drawn_rankings(5, 6, 40, 4, most_tied=2)
    tiers = tiers_of(rankings, 6)
    container = tr.data.Rankings(tiers, np.ones(len(tiers)))
    fits = [tr.RankAggregator().fit(given) for given in (tiers, container)]
    fits.append(tr.RankAggregator().fit(rankings, items=6))
    for fitted in fits[1:]:
        np.testing.assert_array_equal(fitted.log_worths_, fits[0].log_worths_)


def test_names_go_with_their_worths_whatever_their_order():
    _, rankings = drawn_rankings(6, 6, 60, 5, most_tied=2)
    names = ["f", "e", "d", "c", "b", "a"]
    named = [[tuple(names[i] for i in t) if isinstance(t, tuple) else names[t] for t in r]
             for r in rankings]  # fmt: skip
    plain = tr.RankAggregator().fit(rankings, items=6)
    fitted = tr.RankAggregator().fit(named, items=sorted(names))
    np.testing.assert_allclose(fitted.log_worths_, plain.log_worths_[::-1], atol=1e-10)
    assert fitted.ranking() == [names[i] for i in plain.ranking()]


def test_items_nobody_compared_are_named_and_no_number_is_made_up():
    with pytest.raises(Disconnected, match="never compared") as caught:
        tr.RankAggregator().fit([["a", "b"], ["b", "a"], ["c", "d"], ["d", "c"]])
    assert "{a, b}" in str(caught.value)
    assert "prior" in str(caught.value)
    assert caught.value.connectivity.n_groups == 2


@pytest.mark.parametrize("objective", ["listnet", "attrank", "rank-regress", "ranksvm"])
def test_groups_never_compared_are_named_whatever_the_objective(objective):
    with pytest.raises(Disconnected, match="never compared"):
        tr.RankAggregator(objective).fit([["a", "b"], ["b", "a"], ["c", "d"], ["d", "c"]])


def test_an_objective_with_kinks_has_no_standard_errors():
    fitted = tr.RankAggregator("ranksvm").fit([["a", "b"], ["b", "a"], ["a", "b"]])
    with pytest.raises(ValueError, match="kinks"):
        fitted.covariance(kind="sandwich")


def test_an_item_that_always_wins_is_named():
    with pytest.raises(Disconnected, match="ann"):
        tr.RankAggregator().fit([["ann", "bob", "cy"], ["ann", "cy", "bob"]])


def test_a_catalogue_item_that_no_list_names_has_no_worth_without_a_prior():
    with pytest.raises(Disconnected, match="dee"):
        tr.RankAggregator().fit([["a", "b"], ["b", "a"]], items=["a", "b", "dee"])
    fitted = tr.RankAggregator(prior="gaussian").fit(
        [["a", "b"], ["b", "a"]], items=["a", "b", "dee"]
    )
    assert fitted.log_worths_.tolist() == pytest.approx([0, 0, 0], abs=1e-12)
    assert fitted.standard_errors_[2] > fitted.standard_errors_[0]


@pytest.mark.parametrize("prior", ["gaussian:0.8", "pseudo-item:0.7"])
def test_a_prior_gives_the_maximum_of_the_posterior(prior):
    _, rankings = drawn_rankings(7, 5, 8, 4, most_tied=2)
    size = float(prior.partition(":")[2])

    def loss(w):
        if prior.startswith("gaussian"):
            extra = (w**2).sum() / (2 * size**2)
        else:  # wins and losses against an item of log-worth 0
            extra = size * (np.logaddexp(0, -w) + np.logaddexp(0, w)).sum()
        return -log_likelihood(w, rankings) + extra

    found = minimize(loss, np.zeros(5), method="BFGS", options={"gtol": 1e-8}).x
    fitted = tr.RankAggregator(prior=prior).fit(rankings, items=5)
    np.testing.assert_allclose(fitted.log_worths_, found - found.mean(), atol=1e-5)
    inverse = np.linalg.inv(central_hessian(loss, found))
    centring = np.eye(5) - 1 / 5
    np.testing.assert_allclose(fitted.covariance(), centring @ inverse @ centring, atol=1e-4)


def test_under_a_prior_items_are_not_counted_as_parameters():
    fitted = tr.RankAggregator(prior="gaussian").fit([["a", "b"], ["a", "c"]])
    assert fitted.log_likelihood_ is not None
    assert fitted.aic_ is None
    assert "AIC" not in str(fitted.summary())


def test_a_pseudo_item_is_one_more_item_with_games_against_all():
    rankings, ghost = [["a", "b", "c"], ["a", "c"]], "ghost"
    games = [pair for item in "abc" for pair in ([item, ghost], [ghost, item])]
    written = tr.RankAggregator().fit([*rankings, *games], weights=[1, 1] + [0.5] * 6)
    fitted = tr.RankAggregator(prior="pseudo-item:0.5").fit(rankings)
    written_worths = written.log_worths_[:3] - written.log_worths_[:3].mean()
    np.testing.assert_allclose(fitted.log_worths_, written_worths, atol=1e-9)


def test_a_rest_in_the_last_place_is_the_same_as_writing_it():
    random = np.random.default_rng(8)
    rankings = [random.permutation(6)[:3].tolist() for _ in range(40)]
    written = [[*r, tuple(sorted(set(range(6)) - set(r)))] for r in rankings]
    one = tr.RankAggregator().fit(rankings, items=6, rest="last")
    other = tr.RankAggregator().fit(written, items=6)
    np.testing.assert_allclose(one.log_worths_, other.log_worths_, atol=1e-10)
    for kind in ("information", "sandwich"):
        np.testing.assert_allclose(
            one.covariance(kind=kind), other.covariance(kind=kind), atol=1e-10
        )


def test_other_objectives_are_the_minimum_of_their_loss():
    _, rankings = drawn_rankings(9, 6, 60, 5, most_tied=3)
    tiers = tiers_of(rankings, 6)
    names = (
        "pl-lb",
        "pl-efron",
        "cox-discrete",
        "pmop-fd",
        "listnet",
        "attrank",
        "ranknet",
        "p-listmle",
    )
    for name in names:
        fitted = tr.RankAggregator(name).fit(rankings, items=6)
        loss = tr.losses.find(name).function
        lowest = loss(fitted.log_worths_, tiers, reduction="sum")
        for step in np.random.default_rng(0).normal(scale=1e-3, size=(20, 6)):
            assert loss(fitted.log_worths_ + step, tiers, reduction="sum") >= lowest - 1e-9, name


def test_listmle_with_broken_ties_is_the_fit_of_strict_lists():
    _, rankings = drawn_rankings(10, 6, 60, 5, most_tied=3)
    broken = tr.Tiers.from_rankings(rankings, items=6).break_ties()
    one = tr.RankAggregator("listmle", objective_params={"ties": "input"}).fit(rankings, items=6)
    np.testing.assert_allclose(
        one.log_worths_, tr.RankAggregator().fit(broken).log_worths_, atol=1e-9
    )


def test_lists_seen_often_have_their_ties_broken_one_by_one():
    options = {"objective_params": {"ties": "random"}, "random_state": 0}
    fitted = tr.RankAggregator("listmle", **options).fit([[("a", "b"), "c"], ["c", ("a", "b")]],
                                                         weights=[4000, 4000])  # fmt: skip
    assert fitted.log_worths_[0] == pytest.approx(fitted.log_worths_[1], abs=0.1)


def test_ties_of_a_list_seen_very_often_are_broken_in_many_ways_but_not_in_all():
    options = {"objective_params": {"ties": "random"}, "random_state": 0}
    fitted = tr.RankAggregator("listmle", **options).fit([[("a", "b"), "c"], ["c", ("a", "b")]],
                                                         weights=[1e12, 1e12])  # fmt: skip
    assert fitted.lists_.total == pytest.approx(2e12)
    assert fitted.log_worths_[0] == pytest.approx(fitted.log_worths_[1], abs=0.1)


def test_watch_sees_every_iteration():
    seen: list[Progress] = []
    _, rankings = drawn_rankings(11, 6, 60, 4)
    fitted = tr.RankAggregator().fit(rankings, items=6, watch=seen.append)
    assert [step.done for step in seen] == list(range(1, fitted.n_iter_ + 1))
    assert len(fitted.objective_values_) == fitted.n_iter_ + 1


def test_too_few_iterations_are_said():
    _, rankings = drawn_rankings(12, 6, 60, 4)
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        assert not tr.RankAggregator(max_iter=1).fit(rankings, items=6).converged_


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"objective": "pl-partitoin"}, "did you mean 'pl-partition'"),
        ({"objective": "davidson"}, "PairedTies"),
        ({"objective": "pmop-gibbs"}, "random"),
        ({"prior": "laplace"}, "no prior"),
        ({"prior": "gaussian:x"}, "not a number"),
        ({"prior": "gaussian:-1"}, "above 0"),
        ({"solver": "sgd"}, "solver"),
        ({"uncertainty": "bayes"}, "uncertainty"),
        ({"max_iter": 0}, "max_iter"),
        ({"objective": "ranknet", "solver": "newton"}, "lbfgs"),
        ({"objective": "rankcosine", "solver": "newton"}, "lbfgs"),
        ({"objective": None}, "objective is a name"),
        ({"objective_params": [1]}, "a dict"),
        ({"objective_params": {"reduction": "mean"}}, "reduction"),
        ({"objective": "pl-topk", "objective_params": {"k": 2.5}}, "k is a whole number"),
        ({"objective": "listmle", "objective_params": {"ties": "coin"}}, "ties are"),
        ({"learning_rate": -1}, "learning_rate"),
        ({"tol": "small"}, "tol"),
        ({"batch_lists": 0}, "batch_lists"),
    ],
)
def test_wrong_settings_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        tr.RankAggregator(**options).fit([["a", "b"], ["b", "a"]])


def test_lists_that_say_nothing_are_refused():
    with pytest.raises(ValueError, match="no list says anything"):
        tr.RankAggregator().fit([[("a", "b")]])


def test_an_objective_that_is_no_likelihood_has_only_the_sandwich():
    _, rankings = drawn_rankings(13, 5, 60, 4)
    fitted = tr.RankAggregator("ranknet").fit(rankings, items=5)
    assert fitted.log_likelihood_ is None
    assert fitted.aic_ is None
    with pytest.raises(ValueError, match="sandwich"):
        _ = fitted.standard_errors_
    assert np.isfinite(fitted.covariance(kind="sandwich")).all()
    assert np.isnan(fitted.summary().standard_errors).all()


def test_it_is_an_estimator_as_scikit_learn_has_them():
    estimator = tr.RankAggregator("pl-lb", prior="gaussian:2")
    assert clone(estimator).get_params() == estimator.get_params()
    assert "pl-lb" in repr(estimator)


def test_a_saved_fit_answers_the_same_questions(tmp_path):
    _, rankings = drawn_rankings(14, 5, 60, 4, most_tied=2)
    fitted = tr.RankAggregator(prior="gaussian:2").fit(rankings, items=5)
    loaded = tr.load(tr.save(fitted, tmp_path / "model"))
    assert str(loaded.summary()) == str(fitted.summary())
    np.testing.assert_array_equal(
        loaded.covariance(kind="sandwich"), fitted.covariance(kind="sandwich")
    )
    assert loaded.predict_proba(0, [1, 2], level=0.9) == fitted.predict_proba(0, [1, 2], level=0.9)
    assert loaded.items_ == fitted.items_


def test_a_loaded_fit_says_what_it_cannot_answer(tmp_path):
    _, rankings = drawn_rankings(14, 5, 60, 4, most_tied=2)
    loaded = tr.load(tr.save(tr.RankAggregator().fit(rankings, items=5), tmp_path / "model"))
    with pytest.raises(ValueError, match="without its lists"):
        _ = loaded.connectivity_
    with pytest.raises(ValueError, match="without its lists"):
        loaded.bootstrap(5)
    assert {"connectivity_", "bootstrap", "log_worths_"} <= set(dir(loaded))  # for TAB


def test_settings_of_any_number_type_are_saved(tmp_path):
    _, rankings = drawn_rankings(14, 5, 60, 4, most_tied=2)
    options = {"objective_params": {"k": np.int64(3)}, "random_state": np.int64(1)}
    fitted = tr.RankAggregator("pl-topk", prior=GaussianPrior(2.0), **options)
    loaded = tr.load(tr.save(fitted.fit(rankings, items=5), tmp_path / "model"))
    assert loaded.objective_params == {"k": 3}
    assert loaded.prior == "gaussian:2"
    fitted.set_params(random_state=np.random.RandomState(0))
    with pytest.raises(ValueError, match="cannot be saved"):
        tr.save(fitted, tmp_path / "other")


def test_names_that_json_does_not_keep_are_not_saved(tmp_path):
    fitted = tr.RankAggregator().fit([[1.5, "b"], ["b", 1.5]])
    with pytest.raises(ValueError, match="strings or integers"):
        tr.save(fitted, tmp_path / "model")


def in_any_order(fitted):
    return dict(zip(fitted.items_, fitted.log_worths_.tolist(), strict=True))


def test_items_that_are_numbers_are_where_their_numbers_say():
    """As with choix: `log_worths_[3]` is that of item 3, whoever was named first."""
    rankings = [[3, 1, (0, 2)], [2, 3, 1], [0, 2, 1], [1, 0, 3]]
    games = [(3, 1, 1), (1, 2, 0), (2, 0, 1), (0, 3, 1), (1, 3, 1)]
    features = {0: [1.0], 1: [0.0], 2: [3.0], 3: [2.0]}
    named = {number: f"item {number}" for number in range(4)}

    def renamed(ranking):
        return [tuple(map(named.get, e)) if isinstance(e, tuple) else named[e] for e in ranking]

    by_name = in_any_order(tr.RankAggregator().fit([renamed(one) for one in rankings]))
    fitted = tr.RankAggregator().fit(rankings)
    assert fitted.items_ == (0, 1, 2, 3)
    assert fitted.log_worths_ == pytest.approx([by_name[named[i]] for i in range(4)])
    by_name = in_any_order(tr.PairedTies().fit([(named[a], named[b], o) for a, b, o in games]))
    paired = tr.PairedTies().fit(games)
    assert paired.items_ == (0, 1, 2, 3)
    assert paired.log_worths_ == pytest.approx([by_name[named[i]] for i in range(4)])
    linear = tr.FeatureAggregator().fit(rankings, features)
    assert linear.items_ == (0, 1, 2, 3)
    rows = tr.FeatureAggregator().fit(rankings, [[1.0], [0.0], [3.0], [2.0]])
    assert rows.log_worths_ == pytest.approx(linear.log_worths_)


@pytest.mark.parametrize("items", [["cy", "ann", "bob"], ["cy", "zoe", "ann", "bob"]])
def test_results_come_in_the_order_of_items(items):
    votes = [["ann", "bob", "cy"], ["bob", "cy", "ann"], ["cy", "ann"]]
    games = [(one[0], one[1], 1) for one in votes] + [("bob", "cy", 0)]
    vectors = {"ann": [1.0], "bob": [0.0], "cy": [3.0], "zoe": [2.0]}
    alone = "zoe" in items
    prior = "gaussian" if alone else None
    for estimator, data in (
        (tr.RankAggregator(prior=prior), [votes]),
        (tr.RankAggregator(prior=prior), [Rankings.from_rankings(votes)]),
        (tr.PairedTies(prior=prior), [games]),
        (tr.PairedTies(prior=prior), [Games.from_rows(games)]),
        (tr.FeatureAggregator(l2=0.1), [votes, vectors]),
    ):
        expected = in_any_order(clone(estimator).fit(*data))
        fitted = estimator.fit(*data, items=items)
        assert fitted.items_ == tuple(items)
        if not alone:
            assert in_any_order(fitted) == pytest.approx(expected, abs=1e-9)
        elif not isinstance(estimator, tr.FeatureAggregator):
            # whom nobody compared is what the prior says, and moves the mean that others have
            found = in_any_order(fitted)
            shift = found["ann"] - expected["ann"]
            assert {k: v - shift for k, v in found.items() if k != "zoe"} == pytest.approx(expected)
            with pytest.raises(Disconnected, match="zoe was never compared"):
                estimator.set_params(prior=None).fit(*data, items=items)


def test_a_file_that_was_read_can_have_its_rest_last():
    ballots = [["b", "a"], ["c"], ["a", "c"], ["b"]]
    read = Rankings.from_rankings(ballots, weights=[3, 2, 1, 1])
    fitted = tr.RankAggregator().fit(read, rest="last")
    expected = tr.RankAggregator().fit(ballots, weights=[3, 2, 1, 1], rest="last")
    assert in_any_order(fitted) == pytest.approx(in_any_order(expected), abs=1e-9)


def test_scores_against_a_threshold_are_log_odds_with_errors_of_their_own():
    votes = [["a", ("b", "c")], ["b", ("a", "c")], ["c", ("a", "b")], [("a", "b"), "c"]] * 5
    votes += [["a", ("b", "c")]] * 5
    fitted = tr.RankAggregator("bce", uncertainty="sandwich").fit(votes)
    relevant = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0], [1, 0, 0]])
    p = relevant.mean(axis=0)
    log_odds = np.log(p / (1 - p))
    np.testing.assert_allclose(fitted.log_worths_, log_odds - log_odds.mean(), atol=1e-6)
    bread, slopes = np.diag(1 / (25 * p * (1 - p))), relevant - p
    centred = np.eye(3) - 1 / 3
    expected = centred @ bread @ (5 * slopes.T @ slopes) @ bread @ centred
    np.testing.assert_allclose(fitted.covariance(), expected, atol=1e-6)


def test_who_is_never_below_a_threshold_has_no_finite_score():
    votes = [["a", "b", "c"], ["b", "a", "c"], ["c", "a", "b"]]  # a is never in the last tier
    with pytest.raises(ValueError, match=r"of a these lists say but one of the two"):
        tr.RankAggregator("bce").fit(votes)
    fitted = tr.RankAggregator("bce", prior="gaussian").fit(votes)
    assert fitted.log_worths_[0] == fitted.log_worths_.max()
    votes += [["c", "b", "a"]]
    assert tr.RankAggregator("bce").fit(votes).converged_
