import numpy as np
import pytest
import torch

import tierrank as tr
from tierrank.aggregation import inference
from votes import drawn_rankings

RANKINGS = drawn_rankings(0, 7, 150, 5, most_tied=3)[1]


@pytest.fixture(scope="module")
def fitted():
    return tr.RankAggregator().fit(RANKINGS, items=7)


def test_probabilities_of_sets_are_those_of_the_model(fitted):
    scores = fitted.log_worths_
    assert fitted.predict_proba([0, 1], {2, 3, 4}) == pytest.approx(
        np.exp(tr.log_prob_above(scores, [0, 1], [2, 3, 4]))
    )
    drawn = tr.sample(torch.from_numpy(scores), 200_000, generator=0).argsort(1)
    seen = (drawn[:, [0, 1]].max(1).values < drawn[:, [2, 3, 4]].min(1).values).double().mean()
    assert fitted.predict_proba([0, 1], [2, 3, 4]) == pytest.approx(float(seen), abs=0.005)


def test_pairwise_probabilities_agree_with_single_questions(fitted):
    matrix = fitted.pairwise_proba()
    np.testing.assert_allclose(matrix + matrix.T, 1)
    assert matrix[2, 5] == pytest.approx(fitted.predict_proba(2, 5))
    np.testing.assert_allclose(fitted.pairwise_proba([5, 2]), matrix[np.ix_([5, 2], [5, 2])])


def test_the_interval_of_a_pair_is_that_of_its_log_odds(fitted):
    p, low, high = fitted.predict_proba(0, 1, level=0.9)
    matrix = fitted.covariance()
    error = np.sqrt(matrix[0, 0] + matrix[1, 1] - 2 * matrix[0, 1])
    odds = fitted.log_worths_[0] - fitted.log_worths_[1]
    ends = 1 / (1 + np.exp(-(odds + np.array([-1, 1]) * 1.6448536269514722 * error)))
    assert (low, high) == pytest.approx(tuple(ends))
    assert low < p < high


def test_intervals_of_worths_come_from_the_delta_method(fitted):
    estimate, low, high = fitted.intervals(scale="worth")
    assert estimate.sum() == pytest.approx(1)
    matrix = fitted.covariance()
    for item in range(7):
        slope = np.eye(7)[item] - estimate
        factor = np.exp(1.959963984540054 * np.sqrt(slope @ matrix @ slope))
        assert (low[item], high[item]) == pytest.approx(
            (estimate[item] / factor, estimate[item] * factor)
        )


def test_log_worth_intervals_are_wald_s(fitted):
    estimate, low, high = fitted.intervals(0.9)
    np.testing.assert_allclose((low + high) / 2, estimate)
    np.testing.assert_allclose(high - low, 2 * 1.6448536269514722 * fitted.standard_errors_)


def test_expected_ranks_and_places_are_those_of_the_model(fitted):
    ranks = fitted.expected_ranks()
    assert ranks.estimate.sum() == pytest.approx(7 * 8 / 2)
    assert ((ranks.low < ranks.estimate) & (ranks.estimate < ranks.high)).all()
    drawn = tr.sample(torch.from_numpy(fitted.log_worths_), 100_000, generator=1).argsort(1)
    np.testing.assert_allclose(ranks.estimate, drawn.double().mean(0) + 1, atol=0.03)
    top = fitted.top_k_proba(3)
    np.testing.assert_allclose(top, (drawn < 3).double().mean(0), atol=0.006)
    with_ends = fitted.top_k_proba(3, level=0.95, draws=200)
    np.testing.assert_allclose(with_ends.estimate, top)
    assert ((with_ends.low < top) & (top < with_ends.high)).all()
    places = fitted.rank_intervals()
    order = np.empty(7)
    order[np.argsort(-fitted.log_worths_)] = np.arange(1, 8)
    assert ((places[:, 0] <= order) & (order <= places[:, 1])).all()


def test_log_prob_of_new_lists_is_the_likelihood(fitted):
    assert fitted.log_prob(RANKINGS).sum() == pytest.approx(fitted.log_likelihood_)
    tiers = tr.Tiers.from_rankings([[0, (1, 2)]], items=7, rest="last")
    assert fitted.log_prob(tiers) == pytest.approx(tr.log_prob(fitted.log_worths_, tiers))


def test_quasi_variances_give_back_the_errors_of_differences(fitted):
    q, matrix = fitted.quasi_variances().values, fitted.covariance()
    variance = np.diag(matrix)
    exact = variance[:, None] + variance - 2 * matrix
    off = ~np.eye(7, dtype=bool)
    np.testing.assert_allclose((q[:, None] + q)[off], exact[off], rtol=0.2)


def test_tiers_cover_all_items_in_the_fitted_order(fitted):
    cut = fitted.tiers()
    together = [int(item) for tier in cut.tiers for item in tier]
    assert together == fitted.ranking()


def test_the_table_has_every_item_best_first(fitted):
    table = fitted.summary()
    assert list(table.items) == fitted.ranking()
    np.testing.assert_allclose(table.worths.sum(), 1)
    text = str(table)
    assert len(text.splitlines()) == 9
    assert "log-likelihood" in text
    assert "the first 3 of 7 items" in str(fitted.summary(top=3))


@pytest.mark.parametrize(
    ("question", "message"),
    [
        (lambda f: f.predict_proba("x", 1), "no item 'x'"),
        (lambda f: f.predict_proba([0, 1], [1, 2]), "disjoint"),
        (lambda f: f.intervals(1.5), "level"),
        (lambda f: f.intervals(scale="odds"), "scale"),
        (lambda f: f.top_k_proba(0), "k is a whole number"),
        (lambda f: f.summary(level=0), "level"),
        (lambda f: f.covariance(items=[99]), "no item 99"),
    ],
)
def test_questions_without_an_answer_are_refused(fitted, question, message):
    with pytest.raises(ValueError, match=message):
        question(fitted)


@pytest.mark.parametrize("prior", [None, "gaussian:1.5", "pseudo-item:0.5"])
def test_beyond_the_dense_limit_some_items_are_asked_for(prior, monkeypatch):
    fitted = tr.RankAggregator(prior=prior).fit(RANKINGS, items=7)
    dense = fitted.covariance()
    fitted._covariances.clear()
    monkeypatch.setattr("tierrank.aggregation.fitted.MOST_DENSE", 5)
    some = fitted.covariance(items=[6, 0, 3])
    np.testing.assert_allclose(some, dense[np.ix_([6, 0, 3], [6, 0, 3])], atol=1e-8)
    with pytest.raises(ValueError, match="ask for some items"):
        fitted.covariance()
    shown = fitted.summary(top=2)
    np.testing.assert_allclose(
        shown.standard_errors, np.sqrt(np.diag(dense))[fitted._order()[:2]], atol=1e-8
    )


def test_an_estimate_that_is_no_maximum_has_no_standard_errors():
    class Saddle:
        def matrix(self):
            return np.diag([1.0, -1.0, 2.0])

    with pytest.raises(inference.NotDefinite, match="prior"):
        inference.inverse(Saddle(), centred=False)


def test_bootstrap_errors_are_near_those_of_the_sandwich():
    _, rankings = drawn_rankings(1, 6, 600, 5, most_tied=3)
    fitted = tr.RankAggregator(uncertainty="sandwich").fit(rankings, items=6)
    boot = fitted.bootstrap(200, random_state=0)
    np.testing.assert_allclose(boot.standard_errors, fitted.standard_errors_, rtol=0.15)
    low, high = boot.intervals(0.95)
    assert ((low < fitted.log_worths_) & (fitted.log_worths_ < high)).all()
    np.testing.assert_allclose(low, np.quantile(boot.log_worths, 0.025, axis=0))
    assert boot.without_estimate == 0
    np.testing.assert_allclose(np.diag(boot.covariance()), boot.standard_errors**2)
    again = fitted.bootstrap(5, random_state=0)
    np.testing.assert_array_equal(again.log_worths, fitted.bootstrap(5, random_state=0).log_worths)


def test_bootstrap_says_how_many_replicates_had_no_estimate():
    fitted = tr.RankAggregator().fit([["a", "b", "c"], ["c", "b", "a"], ["b", "a", "c"]])
    assert fitted.bootstrap(50).without_estimate > 0
