"""Worths that are a perceptron of features."""

import numpy as np
import pytest
import torch

import tierrank as tr
from featured_lists import featured_lists
from tierrank.aggregation.covariates import FeatureAggregator
from tierrank.aggregation.feature_worths import held_out


def curved(features):
    """A function that no line is near to."""
    return 2 * np.sin(2 * features[:, 0]) - features[:, 1] ** 2


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    features = rng.uniform(-2, 2, size=(60, 2))
    return featured_lists(rng, curved(features), lists=600, length=6, tiers=6), features


@pytest.fixture(scope="module")
def fitted(data):
    return FeatureAggregator("neural", random_state=1, max_iter=500).fit(*data, items=60)


def test_a_network_finds_a_curved_function_that_a_line_does_not(data, fitted):
    lists, features = data
    straight = FeatureAggregator().fit(lists, features, items=60)
    assert fitted.log_likelihood_ > straight.log_likelihood_ + 100
    new = np.random.default_rng(1).uniform(-2, 2, size=(200, 2))
    truth = curved(new)
    assert np.corrcoef(fitted.predict(new), truth)[0, 1] > 0.97
    assert np.corrcoef(straight.predict(new), truth)[0, 1] < 0.8


def test_without_hidden_layers_and_held_out_lists_it_comes_to_the_linear_estimate(data):
    lists, features = data
    settings = {"l2": 0.01, "validation_fraction": 0}
    network = FeatureAggregator(
        "neural", hidden=(), learning_rate=0.05, max_iter=300, random_state=0, **settings
    ).fit(lists[:100], features, items=60)
    straight = FeatureAggregator(l2=0.01).fit(lists[:100], features, items=60)
    np.testing.assert_allclose(network.log_worths_, straight.log_worths_, atol=1e-3)
    assert network.stopped_by_ == "max_iter"
    assert network.n_iter_ == 300


def test_its_results_are_those_of_worths(data, fitted):
    lists, features = data
    assert fitted.log_worths_.mean() == pytest.approx(0, abs=1e-12)
    np.testing.assert_allclose(fitted.predict(features), fitted.log_worths_, atol=1e-12)
    np.testing.assert_allclose(fitted.predict(features[7:8]), fitted.log_worths_[7], atol=1e-12)
    odds = np.exp(fitted.log_worths_[3] - fitted.log_worths_[4])
    assert fitted.predict_proba(3, 4) == pytest.approx(odds / (1 + odds))
    tiers = tr.Tiers.from_rankings(lists, items=60)
    exact = tr.log_prob(fitted.log_worths_, tiers).sum()
    assert fitted.log_likelihood_ == pytest.approx(exact, rel=1e-9)
    worths = fitted.worths_of(features[:5])
    assert worths.predict_proba(3, 4) == pytest.approx(fitted.predict_proba(3, 4))
    assert np.isnan(fitted.summary().standard_errors).all()
    assert fitted.summary().coefficients is None
    assert not hasattr(fitted, "coef_")


def test_it_has_no_standard_errors_and_says_so(fitted):
    for ask in (
        fitted.covariance,
        fitted.intervals,
        lambda: fitted.standard_errors_,
        lambda: fitted.predict(np.zeros((1, 2)), return_std=True),
    ):
        with pytest.raises(ValueError, match='network has no standard errors: use model="linear"'):
            ask()


def test_the_best_step_by_the_held_out_lists_is_kept_and_patience_ends_it(data):
    lists, features = data
    noisy = FeatureAggregator("neural", hidden=(64,), patience=20, learning_rate=0.05,
                              random_state=3)  # fmt: skip
    told = []
    noisy.fit(lists[:60], features, items=60, watch=told.append)
    history = noisy.history_
    assert noisy.stopped_by_ == "patience"
    assert noisy.converged_
    assert history.best_step == np.argmax(history.metric) + 1 == noisy.n_iter_ - 20
    assert [progress.metric for progress in told] == history.metric
    again = FeatureAggregator("neural", hidden=(64,), max_iter=history.best_step,
                              learning_rate=0.05, random_state=3)  # fmt: skip
    again.fit(lists[:60], features, items=60)
    np.testing.assert_allclose(again.log_worths_, noisy.log_worths_, atol=1e-5)


def test_the_same_seed_gives_the_same_network_and_torch_keeps_its_own_randomness(data):
    lists, features = data
    torch.manual_seed(5)
    before = torch.rand(1)
    torch.manual_seed(5)
    first, second, other = (
        FeatureAggregator("neural", max_iter=10, random_state=seed).fit(
            lists[:50], features, items=60
        )
        for seed in (1, 1, 2)
    )
    assert torch.rand(1) == before
    np.testing.assert_array_equal(first.log_worths_, second.log_worths_)
    assert np.abs(first.log_worths_ - other.log_worths_).max() > 1e-3


def test_features_are_standardised_unless_told_otherwise(data):
    lists, features = data
    settings = {"model": "neural", "max_iter": 10, "random_state": 0}
    first = FeatureAggregator(**settings).fit(lists[:50], features, items=60)
    large = FeatureAggregator(**settings).fit(lists[:50], features * 1e4 + 3, items=60)
    np.testing.assert_allclose(large.log_worths_, first.log_worths_, atol=1e-4)
    raw = FeatureAggregator(standardize=False, **settings).fit(lists[:50], features, items=60)
    assert np.abs(raw.log_worths_ - first.log_worths_).max() > 1e-3


def test_a_refit_with_another_model_forgets_the_first(data):
    lists, features = data
    fitted = FeatureAggregator().fit(lists[:50], features, items=60)
    fitted.set_params(model="neural", max_iter=3, random_state=0)
    fitted.fit(lists[:50], features, items=60)
    assert not hasattr(fitted, "coef_")
    assert hasattr(fitted, "network_")


@pytest.mark.parametrize("whole", [True, False])
def test_lists_are_held_out_by_how_often_they_were_seen(whole):
    rng = np.random.default_rng(0)
    counts = rng.integers(1, 50, 40).astype(float) + (0 if whole else 0.5)
    shares = [held_out(counts, 0.2, rng) for _ in range(400)]
    assert all(((share >= 0) & (share <= counts)).all() for share in shares)
    if whole:
        assert {share.sum() for share in shares} == {round(0.2 * counts.sum())}
    else:
        assert all(((share == 0) | (share == counts)).all() for share in shares)
    mean = np.mean(shares, axis=0) / counts
    np.testing.assert_allclose(mean, 0.2, atol=0.12)


def test_too_few_lists_to_hold_some_out_are_refused():
    with pytest.raises(ValueError, match="validation_fraction=0"):
        FeatureAggregator("neural").fit([["a", "b"]], {"a": [1.0], "b": [0.0]})
    fitted = FeatureAggregator("neural", validation_fraction=0, max_iter=5, random_state=0)
    assert fitted.fit([["a", "b"]], {"a": [1.0], "b": [0.0]}).n_iter_ == 5


def test_a_loss_that_runs_away_is_an_error(data):
    lists, features = data
    wild = FeatureAggregator("neural", learning_rate=1e30, random_state=0)
    with pytest.raises(ValueError, match="lower learning_rate"):
        wild.fit(lists[:20], features, items=60)
