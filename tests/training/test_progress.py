"""Checkpoints, Ctrl-C, and the training curve."""

from __future__ import annotations

import signal
import threading

import numpy as np
import pytest
from scipy.sparse import csr_array

from tierrank.storage import StorageError
from tierrank.training import Checkpoint, History, Interruption, progress
from tierrank.training.progress import digest


def test_a_state_comes_back(tmp_path):
    kept = Checkpoint(tmp_path / "c", {"data": "x", "params": {"a": (1, 2)}})
    assert kept.load() is None
    kept.save({"step": 3}, {"w": np.ones(2)})
    again = Checkpoint(tmp_path / "c", {"data": "x", "params": {"a": (1, 2)}})
    state, arrays = again.load()
    assert state == {"step": 3}
    np.testing.assert_array_equal(arrays["w"], [1.0, 1.0])


def test_the_state_of_another_fit_is_refused_and_says_what_differs(tmp_path):
    params = {"l2": 0.1, "trees": 5}
    Checkpoint(tmp_path / "c", {"data": "x", "seed": 1, "params": params}).save({}, {})
    other = {"data": "y", "seed": 1, "params": {**params, "l2": 0.2}}
    with pytest.raises(StorageError, match=r"another fit \(what differs: data, l2\)"):
        Checkpoint(tmp_path / "c", other).load()


def test_without_a_folder_nothing_is_kept():
    nowhere = Checkpoint(None, {}, every=0.0)
    nowhere.save({"step": 1}, {})
    assert not nowhere.due
    assert nowhere.load() is None


def test_it_is_due_after_the_time_given(tmp_path):
    assert Checkpoint(tmp_path, {}, every=0.0).due
    assert not Checkpoint(tmp_path, {}, every=1e6).due


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands still but for what is said to take time, and savings of 4 seconds."""
    now = {"is": 100.0}

    def pass_time(seconds):
        now["is"] += seconds

    monkeypatch.setattr(progress.time, "monotonic", lambda: now["is"])
    monkeypatch.setattr(progress.storage, "write", lambda *_: pass_time(4.0))
    return pass_time


def test_a_state_that_takes_long_to_keep_is_kept_less_often(tmp_path, clock):
    kept = Checkpoint(tmp_path, {}, every=20.0)
    clock(19.9)
    assert not kept.due
    clock(0.1)
    assert kept.due
    for _ in range(2):
        kept.save({}, {})
        clock(39.9)
        assert not kept.due
        clock(0.1)
        assert kept.due


def test_a_state_that_is_quickly_kept_waits_as_long_as_it_was_told(tmp_path, clock):
    kept = Checkpoint(tmp_path, {}, every=50.0)
    kept.save({}, {})
    clock(49.9)
    assert not kept.due
    clock(0.1)
    assert kept.due


def test_who_wants_all_states_gets_them_however_long_they_take(tmp_path, clock):
    kept = Checkpoint(tmp_path, {}, every=0.0)
    kept.save({}, {})
    assert kept.due


def test_digests_tell_arrays_apart():
    base = np.arange(6.0)
    seen = {
        digest(base),
        digest(base.reshape(2, 3)),
        digest(base.astype(np.float32)),
        digest(base, None),
        digest(None, base),
        digest(np.array(["a", "bc"])),
        digest(np.array(["ab", "c"])),
        digest(np.array(["ab", "c"], dtype=object)),
        digest(csr_array(base.reshape(2, 3))),
        digest(csr_array(base.reshape(3, 2))),
    }
    assert len(seen) == 10
    assert digest(base[::-1]) == digest(base[::-1].copy())


def test_ctrl_c_waits_for_the_end_of_a_step():
    with Interruption() as interruption:
        signal.raise_signal(signal.SIGINT)
        assert interruption.asked  # and no KeyboardInterrupt came
        with pytest.raises(KeyboardInterrupt):  # but the second one does not wait
            signal.raise_signal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def test_ctrl_c_is_left_alone_off_the_main_thread():
    seen = []

    def enter() -> None:
        with Interruption() as interruption:
            seen.append(interruption.asked)

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert seen == [False]


def test_the_curve_knows_its_best_step():
    history = History("tree", "ndcg@10")
    better = [history.add(step, 1.0, metric) for step, metric in enumerate([0.1, 0.3, 0.3, 0.2], 1)]
    assert better == [True, True, False, False]  # the first of two equals
    assert (history.best_step, history.best_metric, history.since_best()) == (2, 0.3, 2)
    assert History.from_json(history.to_json()) == history
    last = history.progress(9)
    assert (last.done, last.total, last.metric, last.best) == (4, 9, 0.2, 0.3)


def test_a_curve_without_validation_data_has_no_best_step():
    history = History("epoch", "ndcg@10")
    assert not history.add(1, 0.5, None)
    assert history.since_best() == 0
    assert history.best_step is None
