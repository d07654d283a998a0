"""Models that version 0.1 saved still load, and say what they said then.

The folders in `saved_by_0.1` were written by 0.1, one of each kind, and so were the numbers beside
them: what the model had predicted and estimated before it was saved.
"""

import json
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse

import tierrank as tr

FOLDER = Path(__file__).parent / "saved_by_0.1"
RANKERS = ["linear", "linear-steps", "neural", "neural-attention", "boosted-lightgbm",
           "boosted-xgboost"]  # fmt: skip
EXTREME = ["extreme", "extreme-members"]
WORTHS = ["aggregator", "aggregator-prior", "paired-davidson", "paired-rao-kupper",
          "paired-bradley-terry", "features-linear", "features-neural"]  # fmt: skip


def loaded(name):
    """The model, and what it said when it was saved."""
    said = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return tr.load(FOLDER / name), said


def test_every_saved_model_is_looked_at():
    assert sorted(path.name for path in FOLDER.iterdir() if path.is_dir()) == sorted(
        RANKERS + EXTREME + WORTHS
    )


@pytest.mark.parametrize("name", RANKERS)
def test_a_ranker_has_the_same_scores(name):
    model, said = loaded(name)
    X = np.array(said["X"], dtype=np.float64)  # None, a missing value, is NaN
    rtol = 1e-5 if "neural" in name else 1e-10
    found = model.predict(X, qid=said["qid"])
    np.testing.assert_allclose(found, said["predict"], rtol=rtol, atol=rtol)
    estimates = {"coef_", "standard_errors_", "covariance_", "feature_importances_"} & set(said)
    for attribute in estimates:
        np.testing.assert_allclose(getattr(model, attribute), said[attribute], rtol=1e-10)
    assert len(estimates) >= ("neural" not in name)


@pytest.mark.parametrize("name", EXTREME)
def test_a_ranker_of_labels_has_the_same_labels(name):
    model, said = loaded(name)
    top = model.predict(scipy.sparse.csr_matrix(said["X"]), k=4)
    np.testing.assert_array_equal(top, said["predict"])
    np.testing.assert_allclose(model.inverse_propensity(), said["inverse_propensity"], rtol=1e-10)


ESTIMATES = {
    "log_worths": lambda model: model.log_worths_,
    "worths": lambda model: model.worths_,
    "log_likelihood": lambda model: model.log_likelihood_,
    "standard_errors": lambda model: model.standard_errors_,
    "aic": lambda model: model.aic_,
    "covariance": lambda model: model.covariance(),
    "intervals": lambda model: np.transpose(model.intervals()[:3]),
    "coef": lambda model: model.coef_,
    "coef_standard_errors": lambda model: model.coef_standard_errors_,
    "tie_parameter": lambda model: model.tie_parameter_,
    "tie_standard_error": lambda model: model.tie_standard_error_,
    "home_advantage": lambda model: model.home_advantage_,
    "home_standard_error": lambda model: model.home_standard_error_,
    "games": lambda model: [model.predict_proba("x", "y")],
    "new": lambda model: model.predict([[0.5, 0.5], [-1.0, 2.0]]),
}


@pytest.mark.parametrize("name", WORTHS)
def test_an_aggregator_has_the_same_worths_and_errors(name):
    model, said = loaded(name)
    assert list(model.items_) == said.pop("items")
    assert said["aic"] is not None or model.aic_ is None  # there is none under a prior
    for key, value in said.items():
        if value is None:
            continue
        np.testing.assert_allclose(
            ESTIMATES[key](model), value, rtol=1e-10, atol=1e-12, err_msg=f"{name}: {key}"
        )
    assert ("standard_errors" in said) == (name != "features-neural")


@pytest.mark.parametrize("name", RANKERS + EXTREME + WORTHS)
def test_saved_again_it_is_the_same_model(name, tmp_path):
    model, _ = loaded(name)
    again = tr.load(tr.save(model, tmp_path / "again"))
    assert repr(again.get_params()) == repr(model.get_params())
    if name in WORTHS:
        np.testing.assert_array_equal(again.log_worths_, model.log_worths_)
