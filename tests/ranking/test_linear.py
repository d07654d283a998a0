"""LinearRanker: the minimum it finds, the input it takes, stopping, resuming, saving."""

import os
import signal
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
import sklearn
import torch
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning

import tierrank as tr
from simulated_rows import simulated_rows
from tierrank import storage
from tierrank.storage import StorageError
from tierrank.training import Checkpoint

DETERMINISTIC = [
    name
    for name, entry in tr.losses.OBJECTIVES.items()
    if entry.continuous and not entry.stochastic
]
SMOOTH = [name for name in DETERMINISTIC if name not in ("ranksvm", "rankcosine")]


def tiny(seed=0, **options):
    return simulated_rows(seed, lists=8, longest=5, **options)


# the minimum ---------------------------------------------------------------------------------


@pytest.mark.parametrize("l2", [0.0, 0.05])
def test_coefficients_minimise_the_loss_as_another_method_finds_it(l2):
    """Nelder-Mead, which knows no gradient, on the likelihood itself."""
    X, y, qid = simulated_rows(3, coef=(0.8, -0.6))
    tiers = tr.Tiers.from_labels(y, qid=qid)

    def loss(coef):
        return -tr.log_prob(X @ coef, tiers).mean() + l2 / 2 * coef @ coef

    options = {"xatol": 1e-9, "fatol": 1e-15, "maxiter": 2000}
    expected = minimize(loss, np.zeros(2), method="Nelder-Mead", options=options)
    ranker = tr.LinearRanker(features=None, l2=l2, tol=0.0).fit(X, y, qid=qid)
    np.testing.assert_allclose(ranker.coef_, expected.x, rtol=0, atol=1e-6)
    assert ranker.history_.loss[-1] == pytest.approx(expected.fun, rel=1e-12)
    assert ranker.stopped_by_ == "tolerance"


@pytest.mark.parametrize("objective", SMOOTH)
def test_no_step_in_any_direction_improves_any_objective(objective):
    """Differences of the loss itself around the minimum, its own parameter too."""
    X, y, qid = simulated_rows(4, longest=8)
    weights = np.random.default_rng(0).integers(0, 4, 40)
    ranker = tr.LinearRanker(objective, features=None, l2=0.01, tol=0.0)
    ranker.fit(X, y, qid=qid, weights=weights)
    tiers = tr.Tiers.from_labels(y, qid=qid)
    function = tr.losses.OBJECTIVES[objective].function

    def loss(coef, own):
        mean = function(X @ coef, tiers, **own, weights=weights.astype(float))
        return float(mean) + 0.005 * coef @ coef

    own = ranker.objective_state_
    assert set(own) == {"rao-kupper": {"alpha"}, "davidson": {"beta"}}.get(objective, set())
    best = loss(ranker.coef_, own)
    assert best == pytest.approx(ranker.history_.loss[-1], rel=1e-12)
    for step in (1e-3, -1e-3):
        for direction in np.eye(3):
            assert loss(ranker.coef_ + step * direction, own) > best
        for name, value in own.items():
            assert loss(ranker.coef_, {name: value + step}) > best


@pytest.mark.parametrize("objective", [*tr.losses.OBJECTIVES])
def test_every_objective_learns_the_direction(objective):
    X, y, qid = simulated_rows(5, lists=60)
    steps = None if objective in DETERMINISTIC else 80
    ranker = tr.LinearRanker(objective, max_iter=steps, random_state=0).fit(X, y, qid=qid)
    true = np.array([1.0, -0.5, 0.25]) * X.std(axis=0)
    cosine = ranker.coef_ @ true / np.linalg.norm(true) / np.linalg.norm(ranker.coef_)
    assert cosine > 0.9
    assert np.isfinite(ranker.predict(X)).all()


@pytest.fixture(scope="module")
def ordered_partitions():
    """Lists of four rows whose tiers are drawn from pmop-exact, and the coefficients."""
    rng = np.random.default_rng(0)
    coef = np.array([2.0, -1.0])
    X = rng.normal(size=(150, 4, 2))
    y = np.concatenate([
        tr.losses.sample_ordered_partitions(one @ coef, 1, potential="mean", generator=number)
        .to_labels().numpy()[0]
        for number, one in enumerate(X)
    ])  # fmt: skip
    return X.reshape(-1, 2), y, np.repeat(np.arange(150), 4), coef


@pytest.mark.slow
@pytest.mark.parametrize("objective", ["pmop-gibbs", "pmop-mh"])
def test_the_stochastic_objectives_find_the_model_that_they_estimate(objective, ordered_partitions):
    """The direction, and the exact fit, with long chains."""
    X, y, qid, coef = ordered_partitions
    exact = tr.LinearRanker("pmop-exact", features=None, tol=0.0).fit(X, y, qid=qid)
    ranker = tr.LinearRanker(
        objective, features=None, objective_params={"steps": 10}, max_iter=200,
        learning_rate=0.5, random_state=1,
    ).fit(X, y, qid=qid)  # fmt: skip
    np.testing.assert_allclose(ranker.coef_, exact.coef_, rtol=0, atol=0.5)
    cosine = ranker.coef_ @ coef / np.linalg.norm(coef) / np.linalg.norm(ranker.coef_)
    assert cosine > 0.97


def test_ties_broken_at_random_are_broken_once():
    X, y, qid = simulated_rows(6)
    options = {"objective_params": {"ties": "random"}, "tol": 0.0, "features": None}
    one, same, other = (
        tr.LinearRanker("listmle", random_state=seed, **options).fit(X, y, qid=qid)
        for seed in (1, 1, 2)
    )
    assert one.coef_.tolist() == same.coef_.tolist() != other.coef_.tolist()
    strict = tr.Tiers.from_labels(y, qid=qid).break_ties(at_random=True, generator=1)
    again = tr.LinearRanker(tol=0.0, features=None)
    again.fit(X, strict.to_labels().numpy(), qid=qid)
    np.testing.assert_allclose(one.coef_, again.coef_, rtol=1e-10)


# input ---------------------------------------------------------------------------------------


def test_row_order_and_names_of_queries_do_not_matter():
    X, y, qid = simulated_rows(7)
    expected = tr.LinearRanker(tol=0.0).fit(X, y, qid=qid)
    order = np.random.default_rng(0).permutation(len(y))
    names = np.array([f"query {number}" for number in qid])[order]
    shuffled = tr.LinearRanker(tol=0.0).fit(X[order], y[order], qid=names)
    np.testing.assert_allclose(shuffled.coef_, expected.coef_, rtol=1e-10)
    lengths = np.bincount(qid)
    grouped = tr.LinearRanker(tol=0.0).fit(X, y, group=lengths)
    assert grouped.coef_.tolist() == expected.coef_.tolist()
    np.testing.assert_allclose(shuffled.predict(X), expected.predict(X), rtol=1e-9)


def test_frames_sparse_matrices_and_float32_give_the_same_model():
    X, y, qid = simulated_rows(8)
    X[np.random.default_rng(1).random(X.shape) < 0.6] = 0
    X = X.astype(np.float32).astype(np.float64)
    expected = tr.LinearRanker(features=None, tol=0.0).fit(X, y, qid=qid)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    for given in (
        frame,
        pl.from_pandas(frame),
        scipy.sparse.csr_matrix(X),
        scipy.sparse.coo_array(X),
        X.astype(np.float32),
        np.asfortranarray(X),
    ):
        ranker = tr.LinearRanker(features=None, tol=0.0).fit(given, y, qid=qid)
        np.testing.assert_allclose(ranker.coef_, expected.coef_, rtol=0, atol=1e-10)
        np.testing.assert_allclose(ranker.predict(given), expected.predict(X), atol=1e-10)
    named = tr.LinearRanker(uncertainty="information").fit(frame, y, qid=qid)
    assert named.summary().features == ["a", "b", "c"]


@pytest.mark.parametrize("solver", ["lbfgs", "sgd"])
def test_sparse_features_are_never_made_dense(solver):
    rng = np.random.default_rng(0)
    X = scipy.sparse.random_array((400, 200_000), density=5e-5, rng=rng, format="csr")
    y, qid = rng.integers(0, 3, 400), np.repeat(np.arange(40), 10)
    ranker = tr.LinearRanker(solver=solver, tol=1.0, l2=1e-3, random_state=0)
    ranker.set_params(max_iter=3 if solver == "sgd" else None)
    ranker.fit(X, y, qid=qid)  # dense, X would take 640 MB
    assert ranker.predict(X).shape == (400,)


def test_weights_count_lists():
    X, y, qid = simulated_rows(9, lists=6)
    weights = np.array([0, 2, 1, 0, 3, 1])
    rows = np.concatenate(
        [
            np.flatnonzero(qid == number)
            for number, times in enumerate(weights)
            for _ in range(times)
        ]
    )
    copies = np.repeat(np.arange(weights.sum()), np.bincount(qid)[np.repeat(np.arange(6), weights)])
    options = {"features": None, "tol": 0.0, "l2": 0.1, "uncertainty": "information"}
    weighted = tr.LinearRanker(**options).fit(X, y, qid=qid, weights=weights)
    copied = tr.LinearRanker(**options).fit(X[rows], y[rows], qid=copies)
    np.testing.assert_allclose(weighted.coef_, copied.coef_, rtol=1e-9)
    np.testing.assert_allclose(weighted.covariance_, copied.covariance_, rtol=1e-9)


@pytest.mark.parametrize("objective", [*tr.losses.OBJECTIVES])
def test_odd_lists_are_learned_from(objective):
    """One feature; lists of one row and of one tier; labels that are negative and no integers."""
    X = np.array([[1.0], [0.0], [2.0], [5.0], [1.0], [3.0], [0.5]])
    y = np.array([0.5, -2.5, 0.5, 7.0, 1.0, 1.0, -1.0])
    qid = ["b", "b", "b", "a", "c", "c", "d"]
    if tr.losses.find(objective).family == "metric":
        y = np.maximum(y, 0)  # negative labels have no gain
    steps = None if objective in DETERMINISTIC else 50
    ranker = tr.LinearRanker(objective, l2=0.1, max_iter=steps, random_state=0)
    ranker.fit(X, y, qid=qid, weights=[1, 0, 2, 1])
    assert np.isfinite(ranker.coef_).all()


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1, 0], "every list that weighs more than 0 has one label only"),
        ([1e308, 1e308], "weights are finite.*so is their sum"),
        ([np.inf, 1], "weights are finite"),
    ],
)
def test_weights_that_leave_nothing_to_learn_are_refused(weights, message):
    X, y = np.arange(8.0).reshape(4, 2), [1, 1, 0, 1]
    for ranker in (tr.LinearRanker(), tr.BoostedRanker(threads=1)):
        with pytest.raises(ValueError, match=message):
            ranker.fit(X, y, qid=[1, 1, 2, 2], weights=weights)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"l2": -1.0}, "l2 is a number that is not negative"),
        ({"tol": np.nan}, "tol is a number that is not negative"),
        ({"learning_rate": 0.0}, "learning_rate is a number that is positive"),
        ({"max_iter": 0}, "max_iter is an integer from 1"),
        ({"batch_lists": 1.5}, "batch_lists is an integer from 1"),
        ({"patience": -3}, "patience is an integer from 1"),
        ({"solver": "newton"}, 'solver is "auto", "lbfgs" or "sgd"'),
        ({"objective": "pl-partitoin"}, "did you mean 'pl-partition'"),
        ({"objective": "pmop-mh", "solver": "lbfgs"}, "gradient of pmop-mh is random"),
        ({"objective_params": {"k": 3}}, "objective_params do not fit pl-partition"),
        ({"objective": "pmop-mh", "objective_params": {"generator": 3}}, "from random_state"),
        ({"objective": "pmop-mh", "random_state": -1}, "random_state is a whole number"),
        ({"uncertainty": "yes"}, 'uncertainty is None, "information" or "sandwich"'),
        ({"uncertainty": "sandwich", "solver": "sgd"}, "about the minimum"),
    ],
)
def test_wrong_settings_are_refused(options, message):
    X, y, qid = tiny()
    with pytest.raises(ValueError, match=message):
        tr.LinearRanker(**options).fit(X, y, qid=qid)


def test_a_failed_fit_is_no_model():
    X, y, qid = tiny()
    ranker = tr.LinearRanker(features=None, solver="sgd", max_iter=5).fit(X, y, qid=qid)
    with pytest.raises(ValueError, match=r"not finite in iteration \d+: try a smaller learning"):
        ranker.set_params(learning_rate=1e300).fit(X * 1e10, y, qid=qid)
    with pytest.raises(sklearn.exceptions.NotFittedError):
        ranker.predict(X)


# the rules to stop by ------------------------------------------------------------------------


def test_it_stops_by_the_relative_improvement_of_the_summed_loss():
    X, y, qid = simulated_rows(10)
    ranker = tr.LinearRanker().fit(X, y, qid=qid)
    summed = 40 * np.array(ranker.history_.loss)
    gains = -np.diff(summed) / summed[:-1]
    assert ranker.stopped_by_ == "tolerance"
    assert gains[-1] <= 1e-5
    assert (gains[:-1] > 1e-5).all()
    assert ranker.n_iter_ == len(ranker.history_.steps) < 100


def test_it_stops_after_100_iterations_without_a_word():
    rng = np.random.default_rng(0)
    X, y, qid = rng.normal(size=(400, 40)), rng.integers(0, 3, 400), np.repeat(np.arange(20), 20)
    X = X @ (rng.normal(size=(40, 40)) * np.logspace(0, 4, 40))  # hardly to be told apart
    ranker = tr.LinearRanker("listnet", tol=1e-14).fit(X, y, qid=qid)
    assert (ranker.n_iter_, ranker.stopped_by_) == (100, "max_iter")
    with pytest.warns(ConvergenceWarning, match="max_iter") as caught:
        tr.LinearRanker("listnet", tol=1e-14, max_iter=5).fit(X, y, qid=qid)
    assert caught[0].filename == __file__


def test_lists_that_can_be_ordered_perfectly():
    X = np.tile(np.arange(4.0), 3)[:, None]
    y, qid = (X[:, 0] > 1).astype(int), np.repeat([0, 1, 2], 4)
    ranker = tr.LinearRanker().fit(X, y, qid=qid)
    assert ranker.score(X, y, qid=qid) == 1
    assert 1 < ranker.coef_[0] < 100
    with pytest.warns(ConvergenceWarning, match="orders the lists perfectly"):
        assert tr.LinearRanker(tol=0.0).fit(X, y, qid=qid).stopped_by_ == "no minimum"
    with pytest.raises(ValueError, match="no standard errors: some direction"):
        tr.LinearRanker(uncertainty="information").fit(X, y, qid=qid)
    assert tr.LinearRanker(tol=0.0, l2=1e-3).fit(X, y, qid=qid).stopped_by_ == "tolerance"


def test_features_that_say_nothing_have_coefficient_0():
    X, y, qid = tiny()
    ranker = tr.LinearRanker().fit(np.zeros_like(X), y, qid=qid)
    assert ranker.coef_.tolist() == [0, 0, 0]
    assert len(ranker.history_.loss) == 1


@pytest.mark.parametrize("solver", ["lbfgs", "sgd"])
def test_patience_keeps_the_best_iterate(solver):
    X, y, qid = simulated_rows(11, lists=10)
    valid = simulated_rows(12, lists=30)
    options = {"solver": solver, "features": None, "random_state": 0, "learning_rate": 0.5}
    options["max_iter"] = 200 if solver == "sgd" else None
    ranker = tr.LinearRanker(patience=20 if solver == "sgd" else 2, **options)
    ranker.fit(X, y, qid=qid, eval_set=valid)
    history = ranker.history_
    assert ranker.stopped_by_ == "patience"
    measured = [metric for metric in history.metric if metric is not None]
    assert history.best_metric == max(measured)
    assert ranker.score(valid[0], valid[1], qid=valid[2]) == pytest.approx(max(measured), rel=1e-12)
    # without patience, validation data are only measured
    to_the_end = tr.LinearRanker(**options).fit(X, y, qid=qid, eval_set=valid)
    assert to_the_end.coef_.tolist() == tr.LinearRanker(**options).fit(X, y, qid=qid).coef_.tolist()
    assert to_the_end.history_.best_step is not None


def test_steps_of_all_lists_are_gradient_descent():
    X, y, qid = simulated_rows(13, lists=5)
    ranker = tr.LinearRanker(solver="sgd", features=None, max_iter=20, batch_lists=None, l2=0.1)
    ranker.fit(X, y, qid=qid)
    tiers, coef = tr.Tiers.from_labels(y, qid=qid), torch.zeros(3, dtype=torch.float64)
    for _ in range(20):
        point = coef.clone().requires_grad_()
        loss = tr.losses.pl_partition(torch.from_numpy(X) @ point, tiers)
        (loss + 0.05 * point.square().sum()).backward()
        coef = coef - 0.1 * point.grad
    np.testing.assert_allclose(ranker.coef_, coef, rtol=1e-12)


# stopping and resuming -----------------------------------------------------------------------

FITS = {
    "lbfgs": {"objective": "davidson"},
    "last digit": {"objective": "pl-efron", "tol": 0.0},
    "patience": {"objective": "pl-partition", "patience": 3},
    "random ties": {"objective": "listmle", "objective_params": {"ties": "random"}},
    "sgd": {"objective": "pmop-gibbs", "max_iter": 12, "batch_lists": 3, "patience": 10},
}


@pytest.mark.parametrize("fit", FITS)
def test_stopped_at_any_step_it_goes_on_to_the_same_model(fit, tmp_path, monkeypatch):
    """A process that dies right after a checkpoint, at every checkpoint that there is."""
    X, y, qid = tiny(1)
    options = {**FITS[fit], "features": None, "random_state": 4}
    arguments = {"qid": qid, "eval_set": tiny(2)}
    expected = tr.LinearRanker(**options).fit(X, y, **arguments)
    save, saves = Checkpoint.save, 0

    def save_and_die(self, state, tensors):
        nonlocal saves
        save(self, state, tensors)
        saves += 1
        if saves == stop:
            raise SystemExit

    monkeypatch.setattr(Checkpoint, "save", save_and_die)
    for stop in range(1, 1000):
        saves = 0
        folder = tmp_path / str(stop)
        try:
            tr.LinearRanker(**options).fit(X, y, **arguments, checkpoint=folder, checkpoint_every=0)
        except SystemExit:
            pass
        else:
            break
        for _ in range(2):  # the second time, from a finished state
            resumed = tr.LinearRanker(**options).fit(X, y, **arguments, checkpoint=folder)
            assert resumed.coef_.tobytes() == expected.coef_.tobytes()
            assert resumed.objective_state_ == expected.objective_state_
            assert resumed.history_ == expected.history_
            assert resumed.stopped_by_ == expected.stopped_by_
    assert stop > 10


def test_a_fit_without_a_seed_is_taken_up_with_the_one_it_had(tmp_path):
    X, y, qid = tiny(1)
    ranker = tr.LinearRanker("pmop-mh", max_iter=30)
    seen = []

    def until_ten(progress):
        seen.append(progress)
        if progress.done == 10:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        ranker.fit(X, y, qid=qid, checkpoint=tmp_path, watch=until_ten)
    assert ranker.n_iter_ == 10
    assert ranker.stopped_by_ == "interruption"
    assert np.isfinite(ranker.predict(X)).all()  # a usable model, as far as it came
    seed = storage.read(tmp_path, "checkpoint")[0]["state"]["seed"]
    resumed = tr.LinearRanker("pmop-mh", max_iter=30).fit(X, y, qid=qid, checkpoint=tmp_path)
    whole = tr.LinearRanker("pmop-mh", max_iter=30, random_state=seed).fit(X, y, qid=qid)
    assert resumed.coef_.tobytes() == whole.coef_.tobytes()
    assert [progress.done for progress in seen] == list(range(1, 11))


def test_ctrl_c_between_two_evaluations_leaves_a_model_and_a_checkpoint(tmp_path):
    X, y, qid = simulated_rows(14)
    ranker = tr.LinearRanker(tol=0.0)
    with pytest.raises(KeyboardInterrupt):
        ranker.fit(
            X, y, qid=qid, checkpoint=tmp_path,
            watch=lambda progress: progress.done < 3 or os.kill(os.getpid(), signal.SIGINT),
        )  # fmt: skip
    assert ranker.n_iter_ == 3
    steps = []
    ranker.fit(
        X, y, qid=qid, checkpoint=tmp_path, watch=lambda progress: steps.append(progress.done)
    )
    assert ranker.coef_.tobytes() == tr.LinearRanker(tol=0.0).fit(X, y, qid=qid).coef_.tobytes()
    assert steps == list(range(4, ranker.n_iter_ + 1))  # what was shown is not shown again


def test_a_checkpoint_of_another_fit_is_refused(tmp_path):
    X, y, qid = tiny()
    tr.LinearRanker().fit(X, y, qid=qid, checkpoint=tmp_path)
    with pytest.raises(StorageError, match="another fit"):
        tr.LinearRanker(l2=0.5).fit(X, y, qid=qid, checkpoint=tmp_path)


KILLED = """
import os, sys
import tierrank as tr
from simulated_rows import simulated_rows
folder, stop, objective = sys.argv[1], int(sys.argv[2]), sys.argv[3]
X, y, qid = simulated_rows(15)
ranker = tr.LinearRanker(objective, random_state=2, tol=1e-9)
watch = lambda progress: os.kill(os.getpid(), 9) if progress.done == stop else None
ranker.set_params(max_iter=40 if objective == "pmop-mh" else None)
ranker.fit(X, y, qid=qid, checkpoint=folder, checkpoint_every=0, watch=watch)
tr.save(ranker, folder + "/model")
"""


@pytest.mark.slow
@pytest.mark.parametrize("objective", ["pl-partition", "pmop-mh"])
def test_a_killed_process_leaves_what_another_one_ends(objective, tmp_path):
    def run(folder, stop):
        command = [sys.executable, "-c", KILLED, str(folder), str(stop), objective]
        paths = os.pathsep.join(path for path in sys.path if path)
        return subprocess.run(command, env={**os.environ, "PYTHONPATH": paths}).returncode

    assert run(tmp_path / "whole", 0) == 0
    expected = tr.load(tmp_path / "whole" / "model")
    for stop in (4, 7):
        assert run(tmp_path / "killed", stop) == -9
    assert run(tmp_path / "killed", 0) == 0
    model = tr.load(tmp_path / "killed" / "model")
    assert model.coef_.tobytes() == expected.coef_.tobytes()
    assert model.history_ == expected.history_


# saving --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {"uncertainty": "sandwich"},
        {"objective": "davidson"},
        {"objective": "pl-topk", "objective_params": {"k": 2}, "features": None},
        {"features": ["query-scale", "second-order"], "patience": 3},
    ],
)
def test_a_saved_model_predicts_the_same_bits(options, tmp_path):
    X, y, qid = simulated_rows(16, shuffled=True)
    ranker = tr.LinearRanker(**options).fit(X, y, qid=qid)
    loaded = tr.load(tr.save(ranker, tmp_path))
    assert loaded.predict(X, qid=qid).tobytes() == ranker.predict(X, qid=qid).tobytes()
    assert loaded.history_ == ranker.history_
    assert loaded.objective_state_ == ranker.objective_state_
    assert (loaded.n_iter_, loaded.stopped_by_) == (ranker.n_iter_, ranker.stopped_by_)
    assert loaded.get_params()["objective"] == ranker.objective
    if "uncertainty" in options:
        assert str(loaded.summary()) == str(ranker.summary())
    np.testing.assert_array_equal(loaded.fit(X, y, qid=qid).coef_, ranker.coef_)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda info, arrays: arrays.update({"learned.coef": np.zeros(2)}),
        lambda info, arrays: arrays.update({"learned.coef": np.zeros((3, 1))}),
        lambda info, arrays: arrays.update({"learned.coef": np.zeros(3, dtype=np.float32)}),
        lambda info, arrays: arrays.update({"learned.coef": np.array([0, np.nan, 0])}),
        lambda info, arrays: arrays.update({"learned.covariance": np.eye(2)}),
        lambda info, arrays: arrays.update({"learned.covariance": -np.eye(3)}),
        lambda info, arrays: arrays.update({"learned.other": np.zeros(3)}),
        lambda info, arrays: arrays.pop("learned.coef"),
        lambda info, arrays: info["learned"].pop("n_iter"),
        lambda info, arrays: info["learned"].update(objective_state={}),
        lambda info, arrays: info["learned"].update(objective_state={"beta": "1e999"}),
        lambda info, arrays: info["learned"].update(objective_state=[1.0]),
        lambda info, arrays: info["params"].update(objective="none"),
        lambda info, arrays: info["params"].update(other=1),
        lambda info, arrays: info.update(n_features_in=5),
    ],
)
def test_a_hostile_state_is_refused(spoil, tmp_path, monkeypatch):
    X, y, qid = tiny()
    ranker = tr.LinearRanker("davidson", features=None).fit(X, y, qid=qid)
    info, arrays = ranker.to_state()
    spoil(info, arrays)
    monkeypatch.setattr(tr.LinearRanker, "to_state", lambda self: (info, arrays))
    tr.save(ranker, tmp_path)
    with pytest.raises(StorageError, match="does not hold together"):
        tr.load(tmp_path)
