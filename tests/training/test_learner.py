"""The loop with a learner that has nothing to do with autograd, optimisers of torch, or Fabric."""

import contextlib
import signal

import numpy as np
import pytest
import torch

from tierrank.training import Checkpoint, History, loop
from tierrank.training.loop import Course, Diverged, Share, train
from tierrank.training.progress import only_whole_steps

RNG = np.random.default_rng(3)
X = RNG.normal(size=(23, 3))
Y = X @ [1.0, -2.0, 0.5] + 0.1 * RNG.normal(size=23)
SIZE = 5


class Rows:
    """Batches of five rows (the last has three), in an order by epoch."""

    def __len__(self):
        return 5

    def begin(self, epoch):
        self.order = np.random.default_rng(epoch).permutation(len(X))

    def load(self, step, share, device):
        chosen = self.order[SIZE * step : SIZE * step + SIZE]
        return X[chosen], Y[chosen]

    def part(self, step):
        return len(self.load(step, None, None)[0]) / len(X)


class Momentum:
    """Least squares by noisy gradients with momentum, in place and by hand."""

    share, device, first = Share(), torch.device("cpu"), True
    advice = "Try another hand."

    def __init__(self):
        self.w, self.speed = np.zeros(3), np.zeros(3)
        self.mode = "training"

    def learn(self, batch, stop):
        assert self.mode == "training"
        x, y = batch
        error = x @ self.w - y
        loss = float((error**2).mean())
        if not np.isfinite(loss):
            raise Diverged(loss)
        noise = torch.rand(3, dtype=torch.float64).numpy()
        self.speed = 0.8 * self.speed + 2 * x.T @ error / len(y) + 0.01 * noise
        self.w -= 0.05 * self.speed
        return loss, stop

    @contextlib.contextmanager
    def evaluating(self):
        self.mode = "evaluation"
        yield
        self.mode = "training"

    def agree(self, value):
        return value

    def finite(self):
        return bool(np.isfinite(self.w).all())

    def weights(self):
        return {"w": torch.from_numpy(self.w.copy())}

    def load_weights(self, weights):
        self.w = weights["w"].numpy().copy()

    def memory(self):
        return {"optimiser.speed": self.speed}

    def restore_memory(self, arrays):
        self.speed = arrays["optimiser.speed"].copy()


def run(learner, checkpoint=None, *, batches=None, course=None, **options):
    checkpoint = checkpoint or Checkpoint(None, {})
    saved = options.pop("saved", None) or checkpoint.load()
    options = {"seed": 1, "history": History("epoch", "none"), **options}
    course = course or Course(6)
    return train(learner, batches or Rows(), course, checkpoint=checkpoint, saved=saved, **options)


class Killed(BaseException):
    pass


class Dying(Checkpoint):
    """Keeps the state after each step, and dies after so many."""

    def __init__(self, folder, life):
        super().__init__(folder, {}, every=0)
        self.life = life

    def save(self, state, tensors):
        super().save(state, tensors)
        self.life -= 1
        if self.life == 0:
            raise Killed


def test_it_learns_and_the_loss_is_the_mean_over_the_rows():
    learner = Momentum()
    losses = run(learner).history.loss
    assert losses[-1] < losses[0] / 10
    still = Momentum()
    still.learn = lambda batch, stop: (float(((batch[0] @ still.w - batch[1]) ** 2).mean()), stop)
    np.testing.assert_allclose(run(still).history.loss, (Y**2).mean(), rtol=1e-12)


def test_it_goes_on_from_any_step_to_the_same_bits(tmp_path):
    whole = Momentum()
    end = run(whole)
    for life in (1, 4, 5, 6, 13, 30, 31):
        with pytest.raises(Killed):
            run(Momentum(), Dying(tmp_path / str(life), life))
        resumed = Momentum()
        later = run(resumed, Checkpoint(tmp_path / str(life), {}))
        assert resumed.w.tobytes() == whole.w.tobytes()
        assert later.history == end.history


@pytest.mark.parametrize("evaluated", [False, True])
def test_a_state_holds_what_is_needed_to_go_on_and_in_the_end_only_the_result(tmp_path, evaluated):
    evaluate = (lambda: 0.5) if evaluated else None
    with pytest.raises(Killed):
        run(Momentum(), Dying(tmp_path, 7), evaluate=evaluate)
    best = {"best.w"} if evaluated else set()
    assert set(Checkpoint(tmp_path, {}).load()[1]) == {"model.w", "optimiser.speed"} | best
    learner, again = Momentum(), Momentum()
    end = run(learner, Checkpoint(tmp_path, {}), evaluate=evaluate)
    assert bool(end.best) == evaluated
    assert set(Checkpoint(tmp_path, {}).load()[1]) == (best or {"model.w"})
    assert run(again, Checkpoint(tmp_path, {})).finished
    assert again.w.tobytes() == learner.w.tobytes()


def test_a_state_that_was_taken_on_is_not_held_for_the_rest_of_the_training(tmp_path):
    with pytest.raises(Killed):
        run(Momentum(), Dying(tmp_path, 3))
    state, arrays = Checkpoint(tmp_path, {}).load()
    run(Momentum(), saved=(state, arrays))
    assert arrays == {}


def test_the_best_epoch_comes_back_into_the_learner():
    learner, by_epoch, metrics = Momentum(), [], iter([0.1, 0.4, 0.2, 0.3])

    def evaluate():
        assert learner.mode == "evaluation"
        by_epoch.append(learner.w.copy())
        return next(metrics)

    end = run(learner, evaluate=evaluate, course=Course(50, patience=2))
    assert end.history.best_step == 2
    assert len(by_epoch) == 4
    np.testing.assert_array_equal(learner.w, by_epoch[1])


def test_a_learner_that_is_not_the_first_neither_evaluates_nor_watches_nor_saves(tmp_path):
    class Second(Momentum):
        first = False

        def agree(self, value):
            assert value is None
            return 0.25

    end = run(
        Second(),
        Checkpoint(tmp_path / "state", {}, every=0),
        evaluate=lambda: pytest.fail("evaluated"),
        watch=lambda progress: pytest.fail("watched"),
    )
    assert end.history.metric == [0.25] * 6
    assert not (tmp_path / "state").exists()


def test_ctrl_c_is_passed_on_and_obeyed_only_when_all_agree(tmp_path):
    told = []

    class Elsewhere(Momentum):
        """Another process was interrupted in the eighth step."""

        def learn(self, batch, stop):
            told.append(stop)
            loss, _ = super().learn(batch, stop)
            return loss, len(told) == 8

    end = run(Elsewhere(), Checkpoint(tmp_path, {}))
    assert not end.finished
    assert (end.epoch, end.step) == (1, 3)
    assert told == [False] * 8

    class Here(Rows):
        def load(self, step, share, device):
            if share is not None and step == 2:
                signal.raise_signal(signal.SIGINT)
            return super().load(step, share, device)

    told.clear()
    run(Elsewhere(), Checkpoint(None, {}), batches=Here(), course=Course(1))
    assert told == [False, False, True, True, True]  # until the processes agree


def test_what_a_learner_advises_is_said_when_it_goes_astray(monkeypatch):
    learner = Momentum()
    learner.w[1] = np.inf
    with pytest.raises(ValueError, match=r"epoch 1, step 1: the loss is inf\. Try another hand\.$"):
        run(learner)
    monkeypatch.setattr(learner, "learn", lambda batch, stop: (1.0, stop))
    wanted = r"epoch 1, step 5: weights are not finite any more\. Try another hand\.$"
    with pytest.raises(ValueError, match=wanted):
        run(learner)


def test_a_long_epoch_says_now_and_then_where_it_is(monkeypatch):
    class Slow(Rows):
        """Half a second a batch."""

        def load(self, step, share, device):
            if share is not None:
                now["is"] += 0.5
            return super().load(step, share, device)

    now, seen, whole = {"is": 0.0}, [], []
    monkeypatch.setattr(loop.time, "monotonic", lambda: now["is"])
    learner, metrics = Momentum(), iter([0.3, 0.2])
    learner.learn = lambda batch, stop: (2.0, stop)
    end = run(
        learner,
        batches=Slow(),
        course=Course(2),
        evaluate=metrics.__next__,
        watch=lambda progress: (seen.append(progress), only_whole_steps(whole.append)(progress)),
    )
    assert [(each.done, each.step, each.metric, each.best) for each in seen] == [
        (0, (2, 5), None, None),
        (0, (4, 5), None, None),
        (1, None, 0.3, 0.3),
        (1, (2, 5), None, 0.3),
        (1, (4, 5), None, 0.3),
        (2, None, 0.2, 0.3),
    ]
    assert [each.loss for each in seen] == pytest.approx([2.0] * 6)  # also half-way
    assert {(each.unit, each.total) for each in seen} == {("epoch", 2)}
    assert [each.done for each in whole] == [1, 2]
    assert end.history.steps == [1, 2]


def test_a_short_epoch_says_nothing_on_the_way(monkeypatch):
    monkeypatch.setattr(loop.time, "monotonic", lambda: 0.0)
    seen = []
    run(Momentum(), watch=seen.append)
    assert [each.done for each in seen] == [1, 2, 3, 4, 5, 6]
