"""Worths that are linear in features: against other estimators, linear programs, simulation."""

import numpy as np
import pytest
from scipy.optimize import linprog, minimize
from scipy.stats import norm

import tierrank as tr
from featured_lists import as_rows, featured_lists
from tierrank.aggregation.covariates import FeatureAggregator
from tierrank.aggregation.feature_worths import FeatureTerm, Unidentified, scatter
from tierrank.aggregation.lists import distinct
from tierrank.aggregation.terms import Sum, terms_of

COEF = np.array([1.0, -0.05, 3.0])


@pytest.fixture(scope="module")
def data():
    """15 items with features of very different sizes, and 120 lists."""
    rng = np.random.default_rng(5)
    features = rng.normal(size=(15, 3)) * [1.0, 10.0, 0.1] + [0.0, 100.0, 5.0]
    return featured_lists(rng, features @ COEF, lists=120, length=6, tiers=3), features


@pytest.mark.parametrize("uncertainty", ["information", "sandwich"])
@pytest.mark.parametrize("objective", ["pl-partition", "pl-lb", "pl-efron"])
def test_it_agrees_with_the_linear_ranker_on_rows(data, objective, uncertainty):
    lists, features = data
    fitted = FeatureAggregator(objective=objective, uncertainty=uncertainty)
    fitted.fit(lists, features, items=15)
    X, y, qid = as_rows(lists, features)
    ranker = tr.LinearRanker(objective, features=None, uncertainty=uncertainty).fit(X, y, qid=qid)
    np.testing.assert_allclose(fitted.coef_, ranker.coef_, rtol=1e-8)
    np.testing.assert_allclose(fitted.coef_covariance_, ranker.covariance_, rtol=1e-6)
    table, expected = fitted.summary().coefficients, ranker.summary()
    np.testing.assert_allclose(table.z, expected.z, rtol=1e-6)
    np.testing.assert_allclose(table.p_values, expected.p_values, rtol=1e-5)


def test_it_agrees_with_the_linear_ranker_under_a_penalty_on_either_scale(data):
    lists, features = data
    X, y, qid = as_rows(lists, features)
    ranker = tr.LinearRanker(features=None, l2=0.3, uncertainty="information").fit(X, y, qid=qid)
    fitted = FeatureAggregator(l2=0.3, standardize=False).fit(lists, features, items=15)
    np.testing.assert_allclose(fitted.coef_, ranker.coef_, rtol=1e-7)
    np.testing.assert_allclose(fitted.coef_covariance_, ranker.covariance_, rtol=1e-6)
    scale = features.std(axis=0)
    ranker = tr.LinearRanker(features=None, l2=0.3, tol=0).fit(X / scale, y, qid=qid)
    fitted = FeatureAggregator(l2=0.3).fit(lists, features, items=15)
    np.testing.assert_allclose(fitted.coef_ * scale, ranker.coef_, rtol=1e-7)


def test_objectives_with_one_derivative_are_fitted_too(data):
    lists, features = data
    fitted = FeatureAggregator(objective="ranknet", uncertainty="sandwich")
    fitted.fit(lists, features, items=15)
    assert fitted.solver_ == "lbfgs"
    assert fitted.log_likelihood_ is None
    X, y, qid = as_rows(lists, features)
    ranker = tr.LinearRanker("ranknet", features=None, uncertainty="sandwich").fit(X, y, qid=qid)
    np.testing.assert_allclose(fitted.coef_, ranker.coef_, rtol=1e-4)
    np.testing.assert_allclose(fitted.coef_standard_errors_, ranker.standard_errors_, rtol=1e-4)


@pytest.mark.parametrize("uncertainty", ["information", "sandwich"])
@pytest.mark.parametrize("rest", ["absent", "last"])
def test_with_an_indicator_of_each_item_but_one_it_is_the_rank_aggregator(uncertainty, rest):
    rng = np.random.default_rng(1)
    lists = featured_lists(rng, rng.normal(size=8), lists=150, length=5, tiers=3)
    weights = rng.integers(1, 4, 150)
    indicators = np.eye(8)[:, 1:]
    fitted = FeatureAggregator(uncertainty=uncertainty)
    fitted.fit(lists, indicators, items=8, rest=rest, weights=weights)
    plain = tr.RankAggregator(uncertainty=uncertainty)
    plain.fit(lists, items=8, rest=rest, weights=weights)
    np.testing.assert_allclose(fitted.log_worths_, plain.log_worths_, atol=1e-8)
    np.testing.assert_allclose(fitted.covariance(), plain.covariance(), atol=1e-8)
    np.testing.assert_allclose(fitted.coef_, plain.log_worths_[1:] - plain.log_worths_[0])
    contrast = np.array([1, -1])  # of item 3 against item 0, which has no indicator
    variance = contrast @ plain.covariance([3, 0]) @ contrast
    np.testing.assert_allclose(fitted.coef_standard_errors_[2] ** 2, variance, rtol=1e-7)
    assert fitted.log_likelihood_ == pytest.approx(plain.log_likelihood_, abs=1e-8)
    assert fitted.aic_ == pytest.approx(plain.aic_, abs=1e-8)
    np.testing.assert_allclose(
        fitted.expected_ranks().estimate, plain.expected_ranks().estimate, atol=1e-7
    )
    assert fitted.predict_proba(1, [2, 3], level=0.9) == pytest.approx(
        plain.predict_proba(1, [2, 3], level=0.9), abs=1e-7
    )


def test_the_estimate_is_where_another_optimiser_finds_it(data):
    lists, features = data
    tiers = tr.Tiers.from_rankings(lists, items=15)
    scaled = (features - features.mean(axis=0)) / features.std(axis=0)

    def minus_log_likelihood(coef):
        return -tr.log_prob(scaled @ coef, tiers).sum()

    found = minimize(minus_log_likelihood, np.zeros(3), method="Nelder-Mead",
                     options={"xatol": 1e-9, "fatol": 1e-11, "maxiter": 2000})  # fmt: skip
    fitted = FeatureAggregator().fit(tiers, features)
    np.testing.assert_allclose(fitted.coef_ * features.std(axis=0), found.x, atol=1e-5)
    assert fitted.log_likelihood_ == pytest.approx(-found.fun, abs=1e-8)
    assert fitted.aic_ == pytest.approx(2 * 3 + 2 * found.fun, abs=1e-7)


@pytest.mark.parametrize("objective", ["pl-partition", "pl-efron", "ranknet"])
def test_derivatives_by_coefficients_are_those_of_differences(objective):
    rng = np.random.default_rng(2)
    lists = featured_lists(rng, np.zeros(6), lists=10, length=4, tiers=2)
    lists += [[[int(i)] for i in rng.permutation(6)] for _ in range(5)]
    counted = distinct(tr.Tiers.from_rankings([[tuple(t) for t in one] for one in lists]),
                       rng.uniform(0.5, 2, 15))  # fmt: skip
    features, penalty = rng.normal(size=(6, 4)), rng.uniform(size=4)
    term = FeatureTerm(Sum(terms_of(counted, objective)), features, penalty)
    coef, along = rng.normal(size=4), rng.normal(size=4)
    step = 1e-5 * along
    (high, slope_high), (low, slope_low) = (
        term.value_and_gradient(coef + way * step) for way in (1, -1)
    )
    gradient, hessian = term.value_and_gradient(coef)[1], term.hessian(coef)
    assert gradient @ along == pytest.approx((high - low) / 2e-5, rel=1e-7, abs=1e-7)
    expected = (slope_high - slope_low) / 2e-5
    np.testing.assert_allclose(hessian.product(along), expected, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(hessian.matrix() @ along, expected, rtol=1e-6, atol=1e-7)
    # more features than items takes another way
    wide = FeatureTerm(term.term, rng.normal(size=(6, 9)), np.zeros(9)).hessian(np.zeros(9))
    vector = rng.normal(size=9)
    np.testing.assert_allclose(wide.matrix() @ vector, wide.product(vector), atol=1e-6)


def test_coefficients_and_predictions_do_not_depend_on_units_and_origins(data):
    lists, features = data
    first = FeatureAggregator().fit(lists, features, items=15)
    factor, origin = np.array([1e6, 1e-6, -3.0]), np.array([1e3, 0.0, -7.0])
    moved = FeatureAggregator(standardize=False).fit(lists, features * factor + origin, items=15)
    np.testing.assert_allclose(moved.coef_ * factor, first.coef_, rtol=1e-8)
    np.testing.assert_allclose(moved.log_worths_, first.log_worths_, atol=1e-9)
    np.testing.assert_allclose(moved.standard_errors_, first.standard_errors_, rtol=1e-7)


def test_equal_lists_weights_and_silent_lists_are_counted(data):
    lists, features = data
    twice = FeatureAggregator(l2=0.01).fit(lists + lists[:40], features, items=15)
    weighted = FeatureAggregator(l2=0.01)
    weights = np.repeat([2, 1, 5], [40, 80, 1])
    weighted.fit([*lists, [(0, 1, 2)]], features, items=15, weights=weights)
    np.testing.assert_allclose(weighted.coef_, twice.coef_, rtol=1e-9)
    assert weighted.lists_.silent == 5


@pytest.mark.slow
def test_coefficients_are_found_again_and_intervals_hold_them():
    rng = np.random.default_rng(3)
    features = rng.normal(size=(12, 2))
    coef = np.array([0.8, -0.4])
    new = rng.normal(size=(3, 2)) + 1
    truth = (new - features.mean(axis=0)) @ coef
    held = {"information": [], "sandwich": []}
    predicted, estimates = [], []
    for _ in range(150):
        lists = featured_lists(rng, features @ coef, lists=80, length=5, tiers=3)
        fitted = FeatureAggregator().fit(lists, features, items=12)
        estimates.append(fitted.coef_)
        for kind, found in held.items():
            errors = np.sqrt(np.diag(fitted.coef_covariance(kind)))
            found.append(np.abs(fitted.coef_ - coef) < norm.ppf(0.975) * errors)
        scores, errors = fitted.predict(new, return_std=True)
        predicted.append(np.abs(scores - truth) < norm.ppf(0.975) * errors)
    spread = np.std(estimates, axis=0) / np.sqrt(150)
    assert (np.abs(np.mean(estimates, axis=0) - coef) < 4 * spread + 0.01).all()
    # 300 and 450 outcomes with probability 0.95: the limits are more than 3 deviations away
    assert 0.90 < np.mean(held["information"]) < 0.99
    assert 0.88 < np.mean(held["sandwich"]) < 0.99
    assert 0.90 < np.mean(predicted) < 0.99


# -- no estimate ------------------------------------------------------------------------------


def is_separable(lists, features):
    """A linear program: is there a direction that orders all pairs weakly, and one strictly?"""
    pairs = np.array(
        [
            features[above] - features[below]
            for tiers in lists
            for place, tier in enumerate(tiers)
            for above in tier
            for lower in tiers[place + 1 :]
            for below in lower
        ]
    )
    found = linprog(-pairs.sum(axis=0), A_ub=-pairs, b_ub=np.zeros(len(pairs)), bounds=(-1, 1))
    return found.fun < -1e-7


@pytest.mark.parametrize("objective", ["pl-partition", "ranknet"])
def test_lists_that_a_direction_orders_perfectly_are_found_by_the_fit_and_a_linear_program(
    objective,
):
    rng = np.random.default_rng(4)
    outcomes = []
    for number in range(40):
        features = rng.normal(size=(8, 2)).round(1)
        if number % 4 == 0:
            features = (features > 0).astype(float)  # quasi-separation: many differences are 0
        sharp = rng.choice([1.0, 4.0, 20.0])
        worths = sharp * features @ rng.normal(size=2)
        lists = featured_lists(rng, worths, lists=int(rng.integers(4, 20)), length=4, tiers=3)
        separable = is_separable(lists, features)
        try:
            FeatureAggregator(objective=objective).fit(lists, features, items=8)
            endless = False
        except Unidentified as error:
            if "no finite maximum" not in str(error):
                continue  # constant or dependent features: tested below
            endless = True
        assert endless == separable, number
        outcomes.append(separable)
    assert 8 < sum(outcomes) < len(outcomes) - 8  # both kinds were there


def test_one_list_in_a_hundred_thousand_keeps_the_maximum_finite():
    lists = [["a", "b"], ["b", "a"]]
    fitted = FeatureAggregator().fit(lists, {"a": [1.0], "b": [0.0]}, weights=[99_999, 1])
    assert fitted.coef_[0] == pytest.approx(np.log(99_999), rel=1e-9)  # log-odds
    error = 1 / np.sqrt(100_000 * 0.99999 * 0.00001)
    assert fitted.coef_standard_errors_[0] == pytest.approx(error, rel=1e-6)


def test_a_perfect_order_is_explained_and_a_penalty_helps():
    features = {name: {"price": number, "noise": number % 2} for name, number in
                zip("abcdef", range(6), strict=True)}  # fmt: skip
    lists = [["f", "d", "c"], ["e", "b", "a"], ["d", "b"], ["c", "a"], ["f", "e"]]
    with pytest.raises(Unidentified, match=r"price.* orders all lists perfectly.*l2") as raised:
        FeatureAggregator().fit(lists, features)
    assert "price" in raised.value.features
    fitted = FeatureAggregator(l2=0.01).fit(lists, features)
    place = {name: number for number, name in enumerate(fitted.ranking())}
    assert all(sorted(one, key=place.get) == one for one in lists)
    assert fitted.converged_
    assert fitted.aic_ < 2 * 2 - 2 * fitted.log_likelihood_  # less than two free coefficients


def test_features_that_do_not_differ_within_lists_are_named():
    rng = np.random.default_rng(6)
    features = {i: {"size": rng.normal(), "group": float(i > 3), "year": 0.1} for i in range(8)}
    lists = [rng.permutation(4).tolist() for _ in range(20)]
    lists += [(4 + rng.permutation(4)).tolist() for _ in range(20)]
    with pytest.raises(Unidentified, match=r"do not differ in group, year.*l2") as raised:
        FeatureAggregator().fit(lists, features)
    assert raised.value.features == ("group", "year")
    fitted = FeatureAggregator(l2=1e-3).fit(lists, features)
    np.testing.assert_allclose(fitted.coef_[1:], 0, atol=1e-9)


def test_features_that_depend_on_each_other_are_named(data):
    lists, features = data
    more = np.column_stack([features, features[:, 0] - 2 * features[:, 1] + 5])
    with pytest.raises(Unidentified, match=r"3 of their directions only.* x0, x1, x3 depend"):
        FeatureAggregator().fit(lists, more, items=15)
    with pytest.raises(Unidentified, match=r"15 features.*14 of their"):
        FeatureAggregator().fit(lists, np.eye(15), items=15)
    assert FeatureAggregator(l2=1e-3).fit(lists, np.eye(15), items=15).converged_


@pytest.mark.parametrize("rest", ["absent", "last"])
def test_the_scatter_within_lists_is_that_of_its_definition(rest):
    rng = np.random.default_rng(7)
    features = rng.normal(size=(7, 2))
    lists = featured_lists(rng, np.zeros(7), lists=9, length=3, tiers=2)
    counts = rng.uniform(1, 3, 9)
    counted = distinct(tr.Tiers.from_rankings(lists, items=7, rest=rest), counts)
    expected = 0
    for one, count in zip(lists, counts, strict=True):
        of_list = range(7) if rest == "last" else [item for tier in one for item in tier]
        rows = features[list(of_list)]
        expected = expected + count * len(rows) * np.cov(rows.T, bias=True)
    np.testing.assert_allclose(scatter(counted, features), expected, rtol=1e-12)


def test_a_likelihood_is_asked_for_where_curvature_alone_says_nothing(data):
    lists, features = data
    fitted = FeatureAggregator(objective="listnet").fit(lists, features, items=15)
    with pytest.raises(ValueError, match=r'listnet.*no likelihood.*uncertainty="sandwich"'):
        fitted.coef_standard_errors_  # noqa: B018
    assert np.isnan(fitted.summary().coefficients.standard_errors).all()
    assert np.isfinite(fitted.coef_covariance("sandwich")).all()
    weighted = FeatureAggregator(objective_params={"alpha": [1.0, 0.5]})
    weighted.fit(lists, features, items=15)
    assert weighted.log_likelihood_ is None
    with pytest.raises(ValueError, match="no likelihood"):
        weighted.covariance()
    few = FeatureAggregator(uncertainty="sandwich", l2=0.1).fit(lists[:3], features, items=15)
    with pytest.raises(ValueError, match="3 different lists are too few"):
        few.standard_errors_  # noqa: B018


@pytest.mark.parametrize("size", [1e-300, 1e-200, 1e-160, 1e160, 1e200])
@pytest.mark.parametrize("l2", [0.0, 0.1])
def test_the_unit_of_a_feature_is_nothing_to_the_ranking(size, l2):
    """Squares of such features are beyond what numbers can be; all that is asked is not."""
    rng = np.random.default_rng(5)
    rankings = [rng.permutation(6)[: rng.integers(2, 7)].tolist() for _ in range(60)]
    X = rng.normal(size=(6, 3))
    X[:, 2] += 3.0
    factor = np.array([size, 1.0, -size])
    usual = tr.FeatureAggregator(l2=l2).fit(rankings, X, items=6)
    fitted = tr.FeatureAggregator(l2=l2).fit(rankings, X * factor, items=6)
    np.testing.assert_allclose(fitted.coef_ * factor, usual.coef_, rtol=1e-9)
    np.testing.assert_allclose(fitted.log_worths_, usual.log_worths_, rtol=0, atol=1e-9)
    np.testing.assert_allclose(fitted.standard_errors_, usual.standard_errors_, rtol=1e-9)
    np.testing.assert_allclose(
        fitted.coef_standard_errors_ * np.abs(factor), usual.coef_standard_errors_, rtol=1e-9
    )
    new = rng.normal(size=(4, 3))
    for one, other in zip(
        fitted.predict(new * factor, return_std=True), usual.predict(new, return_std=True),
        strict=True,
    ):  # fmt: skip
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)
    assert fitted.worths_of(new * factor).standard_errors_ == pytest.approx(
        usual.worths_of(new).standard_errors_
    )
    np.testing.assert_allclose(fitted.covariance(), usual.covariance(), rtol=1e-8, atol=1e-12)


def test_what_numbers_cannot_hold_is_not_saved_as_something_else(tmp_path):
    rankings = [["a", "b", "c"], ["b", "a", "c"], ["c", "a", "b"]]
    features = {"a": [1e200], "b": [-2e200], "c": [0.5e200]}
    fitted = tr.FeatureAggregator().fit(rankings, features)
    loaded = tr.load(tr.save(fitted, tmp_path))
    np.testing.assert_array_equal(loaded.log_worths_, fitted.log_worths_)
    with pytest.raises(ValueError, match="has no covariance"):
        _ = loaded.standard_errors_
    tiny = {item: [x[0] * 1e-200 * 1e-180] for item, x in features.items()}
    with pytest.raises(ValueError, match="feature x0 is so small"):
        tr.FeatureAggregator(l2=0.1, standardize=False).fit(rankings, tiny)
    below = {item: [x[0] * 1e-200 * 1e-310] for item, x in features.items()}
    with pytest.raises(ValueError, match="feature x0 is so small that its coefficient is beyond"):
        tr.FeatureAggregator().fit(rankings, below)
