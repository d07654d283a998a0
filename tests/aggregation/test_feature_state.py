"""A saved FeatureAggregator comes back whole, or not at all."""

import numpy as np
import pytest

import tierrank as tr
from featured_lists import featured_lists
from tierrank.aggregation.covariates import FeatureAggregator
from tierrank.storage import StorageError


@pytest.fixture(params=["linear", "neural"])
def fitted(request):
    rng = np.random.default_rng(0)
    features = {f"item {i}": {"a": rng.normal(), "b": rng.normal()} for i in range(10)}
    worths = np.array([value["a"] for value in features.values()])
    numbers = featured_lists(rng, worths, lists=40, length=4, tiers=3)
    lists = [[tuple(f"item {i}" for i in tier) for tier in one] for one in numbers]
    model = FeatureAggregator(request.param, hidden=(8, 4), max_iter=60, random_state=0)
    return model.fit(lists, features)


def test_it_comes_back_with_all_its_results(fitted, tmp_path):
    back = tr.load(tr.save(fitted, tmp_path))
    new = {"x": {"b": 1.0, "a": 2.0}, "y": {"a": 0.0, "b": -1.0}}
    np.testing.assert_array_equal(back.log_worths_, fitted.log_worths_)
    np.testing.assert_array_equal(back.predict(new), fitted.predict(new))
    assert str(back.summary()) == str(fitted.summary())
    assert back.get_params() == fitted.get_params()
    assert back.items_ == fitted.items_
    assert back.feature_names_ == ("a", "b")
    for name in ("log_likelihood_", "aic_", "n_iter_", "converged_", "stopped_by_", "solver_",
                 "objective_values_", "seconds_"):  # fmt: skip
        assert getattr(back, name) == getattr(fitted, name)
    assert back.lists_.total == 40
    if fitted.model == "linear":
        for kind in ("information", "sandwich"):
            np.testing.assert_array_equal(back.covariance(kind=kind), fitted.covariance(kind=kind))
        np.testing.assert_array_equal(
            back.expected_ranks(draws=10).low, fitted.expected_ranks(draws=10).low
        )
    else:
        assert back.history_.loss == fitted.history_.loss
    again = tr.load(tr.save(back, tmp_path))
    np.testing.assert_array_equal(again.log_worths_, fitted.log_worths_)


def damaged(state, fitted):
    """States that do not hold together, one at a time."""
    info, arrays = state

    def changed(**new):
        return info, {**arrays, **new}

    wrong = [
        ({**info, "items": info["items"][:-1]}, arrays),
        ({**info, "items": ["item 0"] * 10}, arrays),
        ({**info, "features": ["a"]}, arrays),
        ({**info, "parameters": {**info["parameters"], "l2": -1}}, arrays),
        ({**info, "parameters": {**info["parameters"], "model": "tree"}}, arrays),
        changed(features=arrays["features"] * np.nan),
        changed(scale=np.zeros(2)),
        changed(other=np.zeros(2)),
        (info, {name: array for name, array in arrays.items() if name != "mean"}),
    ]
    if fitted.model == "linear":
        wrong += [
            changed(coef=np.zeros(3)),
            changed(coef=arrays["coef"].astype(np.float32)),
            changed(information=-arrays["information"]),
            changed(sandwich=np.zeros((2, 3))),
        ]
    else:
        (first, *_) = (name for name in arrays if name.startswith("network."))
        wrong += [
            changed(**{first: arrays[first][:1]}),
            (info, {name: array for name, array in arrays.items() if name != first}),
            ({**info, "parameters": {**info["parameters"], "hidden": [8]}}, arrays),
        ]
    return wrong


def test_what_does_not_hold_together_is_refused(fitted, tmp_path):
    for number, (info, arrays) in enumerate(damaged(fitted.to_state(), fitted)):
        folder = tmp_path / str(number)
        tr.storage.write(folder, "model", {"estimator": "FeatureAggregator", **info}, arrays)
        with pytest.raises(StorageError, match="does not hold together"):
            tr.load(folder)


def test_only_plain_names_are_saved(tmp_path):
    fitted = FeatureAggregator(l2=0.1).fit([[1.5, 2.5]], {1.5: [1.0], 2.5: [0.0]})
    with pytest.raises(ValueError, match="strings or integers"):
        tr.save(fitted, tmp_path)


def test_a_covariance_that_was_not_saved_is_asked_for_in_vain(tmp_path):
    few = FeatureAggregator(l2=0.1).fit([["a", "b"]], {"a": [1.0], "b": [0.0]})
    back = tr.load(tr.save(few, tmp_path))  # one list is too few for the sandwich
    assert np.isfinite(back.covariance()).all()
    with pytest.raises(ValueError, match="fit again"):
        back.covariance(kind="sandwich")
