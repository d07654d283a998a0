"""Fits are done once, kept, taken up again, and may run in several processes."""

import os
import signal
from dataclasses import replace

import extreme_fits
import numpy as np
import pytest
import torch
from extreme_data import Source
from extreme_figures import Figures
from extreme_fits import Fit, Reading, Store, perform, run_fits
from leml import Leml

from tierrank.extreme.ranker import ExtremeRanker
from tierrank.metrics import labels

pytestmark = pytest.mark.slow  # whole experiments

SOURCE = Source(synthetic="eurlex-4k", scale=0.02)
SETTINGS = {"hidden": 8, "max_epochs": 4, "learning_rate": [1e-2]}


@pytest.fixture(scope="module")
def data():
    return SOURCE.load()


@pytest.fixture(autouse=True)
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)  # as processes have
    yield
    torch.set_num_threads(before)


def network(seed=0, name="PL-Partition", **settings):
    return Fit("network", seed, {**SETTINGS, **settings}, (Reading(name),))


def silent(text):
    pass


def test_a_fit_is_that_of_the_estimator_with_these_settings(data, tmp_path):
    store = Store(tmp_path, data)
    done = perform(network(seed=3), data, store, silent)
    ranker = ExtremeRanker(random_state=3, **SETTINGS).fit(data.train.X, data.train.Y)
    np.testing.assert_array_equal(done.top["PL-Partition"], ranker.predict(data.test.X, k=10))
    assert done.found["learning rate"] == 1e-2
    assert done.found["epoch"] == ranker.history_.best_step
    fit = Fit("leml", 3, {"rank": 5, "sweeps": 2}, (Reading("LEML"),))
    done = perform(fit, data, store, silent)
    leml = Leml(rank=5, sweeps=2, random_state=3).fit(data.train.X, data.train.Y)
    np.testing.assert_array_equal(done.top["LEML"], leml.predict(data.test.X, k=10))


def test_readings_of_one_fit_are_its_networks_and_propensities(data, tmp_path):
    readings = (Reading("alone", 1), Reading("all"), Reading("rare first", None, 2.0))
    fit = replace(network(members=2), readings=readings)
    top = perform(fit, data, Store(tmp_path, data), silent).top
    ranker = ExtremeRanker(random_state=0, members=2, **SETTINGS)
    ranker.fit(data.train.X, data.train.Y)
    np.testing.assert_array_equal(top["all"], ranker.predict(data.test.X, k=10))
    rare = ranker.predict(data.test.X, k=10, propensity=2.0)
    np.testing.assert_array_equal(top["rare first"], rare)
    ranker.networks_ = ranker.networks_[:1]
    np.testing.assert_array_equal(top["alone"], ranker.predict(data.test.X, k=10))
    assert not np.array_equal(top["alone"], top["all"])


def test_what_is_done_is_read_and_other_settings_or_data_are_not_taken_for_it(data, tmp_path):
    store = Store(tmp_path, data)
    fit = network()
    assert store.read(fit) is None
    done = perform(fit, data, store, silent)
    again = store.read(fit)
    np.testing.assert_array_equal(again.top["PL-Partition"], done.top["PL-Partition"])
    assert again.found == done.found
    assert again.seconds == pytest.approx(done.seconds, abs=0.01)
    assert store.read(network(seed=1)) is None
    assert store.read(network(hidden=9)) is None
    assert store.read(network(name="another")) is None
    other = Source(synthetic="eurlex-4k", scale=0.02, seed=1).load()
    assert Store(tmp_path, other).read(fit) is None


def test_a_fit_that_was_cut_short_goes_on_from_its_state(data, tmp_path):
    store = Store(tmp_path, data)
    fit = network(max_epochs=6, learning_rate=[1e-3, 1e-2], halving=False, refit=False)
    said = []

    def interrupt(text):
        said.append(text)
        if "2 of 2" in text and "epoch 3" in text:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        perform(fit, data, store, interrupt)
    assert store.read(fit) is None
    (state,) = store.states.iterdir()
    said_again = []
    done = perform(fit, data, store, said_again.append)
    assert not state.exists()
    assert all("2 of 2" in text for text in said_again)
    assert len(said_again) < len(said)
    whole = perform(fit, data, Store(tmp_path / "other", data), silent)
    np.testing.assert_array_equal(done.top["PL-Partition"], whole.top["PL-Partition"])
    assert done.found == whole.found


def test_only_what_is_missing_is_done(data, tmp_path, monkeypatch, capsys):
    store = Store(tmp_path, data)
    first = run_fits([network()], SOURCE, data, store, 1)
    both = run_fits([network(), network(seed=1)], SOURCE, data, store, 1)
    assert "seed 0: done before" in capsys.readouterr().err
    np.testing.assert_array_equal(both[0].top["PL-Partition"], first[0].top["PL-Partition"])
    monkeypatch.setattr(extreme_fits, "perform", lambda *given: pytest.fail("fitted again"))
    again = run_fits([network(seed=1), network()], SOURCE, data, store, 1)
    assert [done.fit.seed for done in again] == [1, 0]


def test_one_that_fails_does_not_keep_the_others_from_being_done(data, tmp_path):
    store = Store(tmp_path, data)
    fits = [network(name="bad", learning_rate=[-1.0]), network()]
    with pytest.raises(ValueError, match="bad, seed 0: learning_rate is a number above 0"):
        run_fits(fits, SOURCE, data, store, 1)
    assert store.read(fits[1]) is not None
    with pytest.raises(ValueError, match="1 or more, not 0"):
        run_fits(fits, SOURCE, data, store, 0)


def test_processes_find_the_same_as_one(data, tmp_path):
    before = dict(os.environ)  # processes of one thread each leave our own threads alone
    fits = [network(), network(seed=1), network(name="bad", learning_rate=[-1.0])]
    with pytest.raises(ValueError, match="bad, seed 0"):
        run_fits(fits, SOURCE, data, Store(tmp_path, data), 2)
    here = run_fits(fits[:2], SOURCE, data, Store(tmp_path / "here", data), 1)
    for each in here:
        there = Store(tmp_path, data).read(each.fit)
        np.testing.assert_array_equal(there.top["PL-Partition"], each.top["PL-Partition"])
        assert there.found == each.found
    for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        assert os.environ.get(variable) == before.get(variable)


def test_figures_are_means_and_deviations_over_seeds_in_per_cent(data, tmp_path):
    fits = [network(seed, name, hidden=h) for seed in range(3) for name, h in (("a", 8), ("b", 4))]
    done = run_fits(fits, SOURCE, data, Store(tmp_path, data), 1)
    figures = Figures(data, done, {("a", "PSP@5"): 12.5})
    assert figures.methods == ["a", "b"]
    inverse = labels.inverse_propensity(data.train.Y)
    values = {"a": [], "b": []}
    rows = {"a": [], "b": []}
    for each in done:
        (name, top), *_ = each.top.items()
        psp = labels.ps_precision(top, data.test.Y, inverse_propensity=inverse, k=5)
        values[name].append(100 * psp)
        rows[name].append(labels.precision(top, data.test.Y, k=3, reduction="none"))
    figure = figures["a", "PSP@5"]
    assert figure.mean == pytest.approx(np.mean(values["a"]))
    assert figure.deviation == pytest.approx(np.std(values["a"], ddof=1))
    assert (figure.printed, figure.seeds) == (12.5, 3)
    assert figures["b", "PSP@5"].printed is None
    assert figure.low < figure.mean < figure.high
    ahead = figures.over("a", "b", "PSP@5")
    apart = np.subtract(values["a"], values["b"])
    assert ahead.mean == pytest.approx(apart.mean())
    assert ahead.deviation == pytest.approx(apart.std(ddof=1))
    ahead = figures.over("a", "b", "P@3")
    apart = 100 * (np.mean(rows["a"], axis=0) - np.mean(rows["b"], axis=0))
    assert ahead.mean == pytest.approx(apart.mean())
    z = abs(apart.mean()) / (np.sqrt(np.mean(apart**2) / len(apart)))  # of flipped signs
    from scipy.stats import norm

    assert ahead.p_value == pytest.approx(2 * norm.sf(z), abs=0.06)
    assert figures.best("P@3") == ("a" if ahead.mean > 0 else "b")


def test_one_seed_has_no_deviation(data, tmp_path):
    done = run_fits([network()], SOURCE, data, Store(tmp_path, data), 1)
    figure = Figures(data, done)["PL-Partition", "P@1"]
    assert figure.deviation is None
    assert figure.seeds == 1
