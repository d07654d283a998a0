"""The training loop: the same as one written by hand, and the same wherever it was stopped."""

import contextlib
import signal

import numpy as np
import pytest
import torch
from torch import nn

from tierrank.training import Checkpoint, History
from tierrank.training.loop import (
    AdamWSettings,
    Course,
    FabricLearner,
    Share,
    device_for,
    fabric_for,
    train,
)
from tierrank.training.progress import only_whole_steps, seed_from

X = torch.randn(22, 3, generator=torch.Generator().manual_seed(1))
Y = X.sum(1) + torch.randn(22, generator=torch.Generator().manual_seed(2))


class Rows:
    """Batches of four rows (the last has two), in an order by epoch."""

    def __init__(self, rows=22):
        self.rows = rows

    def __len__(self):
        return (self.rows + 3) // 4

    def begin(self, epoch):
        self.order = torch.from_numpy(np.random.default_rng(epoch).permutation(self.rows))

    def of(self, step):
        return self.order[4 * step : 4 * step + 4]

    def load(self, step, share, device):
        chosen = self.of(step)
        return X[chosen], Y[chosen]

    def part(self, step):
        return len(self.of(step)) / self.rows


class Regression(nn.Module):
    def __init__(self, dropout=0.0, normalised=False):
        super().__init__()
        norm = [nn.BatchNorm1d(5)] if normalised else []
        layers = [nn.Linear(3, 5), *norm, nn.ReLU(), nn.Dropout(dropout), nn.Linear(5, 1)]
        self.layers = nn.Sequential(*layers)

    def forward(self, x, y):
        return (self.layers(x).squeeze(1) - y).square().mean()


def model(**options):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return Regression(**options)


def run(
    module,
    checkpoint=None,
    *,
    batches=None,
    course=None,
    clip=None,
    precision="32-true",
    **options,
):
    checkpoint = checkpoint or Checkpoint(None, {})
    learner = FabricLearner(fabric_for("cpu", precision), module, AdamWSettings(0.01, 0.1, clip))
    options = {"seed": 7, "history": History("epoch", "none"), **options}
    batches, course = batches or Rows(), course or Course(4)
    saved = checkpoint.load()
    end = train(learner, batches, course, checkpoint=checkpoint, saved=saved, **options)
    module.cpu().eval()
    return end


def weights(module):
    return {name: value.numpy().copy() for name, value in module.state_dict().items()}


def assert_same(one, two):
    assert one.keys() == two.keys()
    for name in one:
        np.testing.assert_array_equal(one[name], two[name], err_msg=name)


@pytest.mark.parametrize("clip", [None, 0.5])
def test_it_does_what_a_loop_by_hand_does(clip):
    ours, by_hand, rows = model(), model(), Rows()
    end = run(ours, clip=clip)
    matrices = [each for each in by_hand.parameters() if each.dim() > 1]
    vectors = [each for each in by_hand.parameters() if each.dim() == 1]
    groups = [{"params": matrices}, {"params": vectors, "weight_decay": 0.0}]
    optimiser = torch.optim.AdamW(groups, lr=0.01, weight_decay=0.1)
    losses = []
    for epoch in range(4):
        rows.begin(epoch)
        total = 0.0
        for step in range(len(rows)):
            loss = by_hand(*rows.load(step, None, None))
            optimiser.zero_grad()
            loss.backward()
            if clip is not None:
                nn.utils.clip_grad_norm_(by_hand.parameters(), clip)
            optimiser.step()
            total += loss.item() * len(rows.of(step))
        losses.append(total / 22)
    for name, value in weights(by_hand).items():
        np.testing.assert_allclose(weights(ours)[name], value, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(end.history.loss, losses, rtol=1e-5)
    assert end.history.steps == [1, 2, 3, 4]


class Killed(BaseException):
    pass


class Dying(Checkpoint):
    """Keeps the state after each step, and dies after so many."""

    def __init__(self, folder, life):
        super().__init__(folder, {"fit": 1}, every=0)
        self.life = life

    def save(self, state, tensors):
        super().save(state, tensors)
        self.life -= 1
        if self.life == 0:
            raise Killed


def scripted(metrics):
    """A validation metric that takes these values, by epoch."""
    history = History("epoch", "scripted")
    return {"history": history, "evaluate": lambda: metrics[len(history.steps)]}


def test_it_goes_on_from_any_step_to_the_same_weights(tmp_path):
    options = {"dropout": 0.3, "normalised": True}
    whole = model(**options)
    end = run(whole)
    steps = 4 * len(Rows())
    for life in (1, 2, 5, 6, 7, 11, 12, 16, steps - 1, steps, steps + 1):
        folder = tmp_path / str(life)
        with pytest.raises(Killed):
            run(model(**options), Dying(folder, life))
        torch.rand(life)  # whatever happens in between
        resumed = Regression(**options)  # with other weights
        later = run(resumed, Dying(folder, -1))
        assert_same(weights(resumed), weights(whole))
        assert later.history == end.history


def test_it_goes_on_after_many_deaths_with_the_best_weights_in_hand(tmp_path):
    metrics = [0.1, 0.5, 0.3, 0.4]
    whole = model(dropout=0.3)
    run(whole, **scripted(metrics))
    for _ in range(100):
        checkpoint = Dying(tmp_path / "state", 2)
        saved = checkpoint.load()
        resumed = model(dropout=0.3) if saved is None else Regression(dropout=0.3)
        values = iter(metrics[0 if saved is None else len(saved[0]["history"]["steps"]) :])
        try:
            end = run(resumed, checkpoint, evaluate=values.__next__)
        except Killed:
            continue
        break
    assert end.finished
    assert end.history.metric == metrics
    assert_same(weights(resumed), weights(whole))


def test_a_finished_state_is_not_trained_on(tmp_path):
    first = model(dropout=0.3)
    run(first, Checkpoint(tmp_path, {}))
    again = Regression(dropout=0.3)
    end = run(
        again, Checkpoint(tmp_path, {}), batches=None, watch=lambda progress: pytest.fail("it was")
    )
    assert end.finished
    assert_same(weights(again), weights(first))
    assert not again.training


def test_the_best_epoch_is_kept_and_patience_ends(tmp_path):
    module, seen = model(), []
    options = scripted([0.2, 0.7, 0.6, 0.7, 0.9])
    by_epoch = []
    options["watch"] = only_whole_steps(
        lambda progress: (seen.append(progress), by_epoch.append(weights(module)))
    )
    end = run(module, course=Course(50, patience=2), **options)
    assert end.history.metric == [0.2, 0.7, 0.6, 0.7]
    assert (end.history.best_step, end.history.best_metric) == (2, 0.7)
    assert [(each.done, each.total, each.best) for each in seen] == [
        (1, 50, 0.2), (2, 50, 0.7), (3, 50, 0.7), (4, 50, 0.7),
    ]  # fmt: skip
    assert_same(weights(module), by_epoch[1])
    assert not module.training


def test_without_patience_it_goes_on():
    options = scripted([0.9, 0.1, 0.1, 0.1])
    assert len(run(model(), **options).history.steps) == 4


def test_evaluation_sees_no_dropout_and_no_gradients():
    module = model(dropout=0.5)

    def evaluate():
        assert not module.training
        assert not torch.is_grad_enabled()
        return 0.0

    run(module, evaluate=evaluate)


def test_ctrl_c_leaves_a_state_that_goes_on_to_the_same_weights(tmp_path):
    class Interrupting(Rows):
        def load(self, step, share, device):
            if step == 2:
                signal.raise_signal(signal.SIGINT)
            return super().load(step, share, device)

    whole = model(dropout=0.3)
    run(whole)
    handler = signal.getsignal(signal.SIGINT)
    stopped = run(model(dropout=0.3), Checkpoint(tmp_path, {}, every=1e9), batches=Interrupting())
    assert signal.getsignal(signal.SIGINT) is handler
    assert not stopped.finished
    assert (stopped.epoch, stopped.step) == (0, 3)  # the step that was under way is whole
    resumed = Regression(dropout=0.3)
    assert run(resumed, Checkpoint(tmp_path, {})).finished
    assert_same(weights(resumed), weights(whole))


def test_torchs_generators_are_left_alone():
    torch.manual_seed(11)
    expected = torch.rand(3)
    torch.manual_seed(11)
    run(model(dropout=0.5))
    assert torch.equal(torch.rand(3), expected)


def test_the_seed_decides_about_dropout():
    one, same, other = (model(dropout=0.5) for _ in range(3))
    run(one)
    run(same)
    run(other, seed=8)
    assert_same(weights(one), weights(same))
    assert not np.array_equal(weights(one)["layers.0.weight"], weights(other)["layers.0.weight"])


def test_a_loss_that_is_not_finite_says_when_and_what_to_try(tmp_path):
    class Poisoned(Rows):
        def load(self, step, share, device):
            x, y = super().load(step, share, device)
            return (x, y * torch.nan) if step == 3 else (x, y)

    wanted = (
        r"astray in epoch 1, step 4: the loss is nan\. "
        r"Try a smaller learning rate \(it is 0\.01\), or scale the features\.$"
    )
    module, three_steps = model(), model()
    with pytest.raises(ValueError, match=wanted):
        run(module, batches=Poisoned())
    with contextlib.suppress(Killed):
        run(three_steps, Dying(tmp_path, 3))
    assert_same(weights(module), weights(three_steps))  # the fourth step touched nothing


def test_weights_that_are_not_finite_are_never_kept():
    class AtTheEdge(Regression):
        def forward(self, x, y):  # the loss is 0, its derivative 0 · ∞
            return (0 * self.layers[0](x)).sqrt().sum()

    with pytest.raises(ValueError, match="not finite"):
        run(AtTheEdge(), batches=Rows(4))


def test_nothing_is_printed_logged_or_warned_of(capfd, caplog, recwarn):
    with caplog.at_level("INFO"):
        run(model(), precision="bf16-mixed")
    assert capfd.readouterr() == ("", "")
    assert not caplog.records
    assert not recwarn.list


def test_bfloat16_keeps_weights_in_float32():
    class Watching(Regression):
        def forward(self, x, y):
            assert self.layers[0](x).dtype == torch.bfloat16
            return super().forward(x, y)

    module = Watching()
    end = run(module, precision="bf16-mixed", course=Course(30))
    assert {value.dtype for value in module.state_dict().values()} == {torch.float32}
    assert end.history.loss[-1] < end.history.loss[0]


USUAL = {Course: {"max_epochs": 4}, AdamWSettings: {"learning_rate": 0.01, "weight_decay": 0.1}}


@pytest.mark.parametrize(
    ("kind", "given", "message"),
    [
        (Course, {"max_epochs": 0}, "max_epochs is a whole number, 1 or more, not 0"),
        (Course, {"max_epochs": 2.5}, "max_epochs"),
        (Course, {"patience": 0}, "patience"),
        (AdamWSettings, {"learning_rate": 0}, "learning_rate is a number above 0, not 0"),
        (AdamWSettings, {"learning_rate": float("nan")}, "learning_rate"),
        (AdamWSettings, {"learning_rate": "fast"}, "learning_rate"),
        (AdamWSettings, {"weight_decay": -1}, "weight_decay is a number above 0 or 0"),
        (AdamWSettings, {"clip": float("inf")}, "clip"),
    ],
)
def test_settings_that_mean_nothing_are_refused(kind, given, message):
    with pytest.raises(ValueError, match=message):
        kind(**{**USUAL[kind], **given})


def test_unknown_devices_and_precisions_are_refused():
    with pytest.raises(ValueError, match="accelerator is one of 'auto', 'cpu', 'cuda'"):
        device_for("tpu")
    with pytest.raises(ValueError, match="precision is '32-true' or 'bf16-mixed'"):
        fabric_for("cpu", "16-mixed")
    if not torch.cuda.is_available():
        assert device_for("auto").type == "cpu"
        with pytest.raises(ValueError, match="no GPU here"):
            device_for("cuda")


def test_seeds():
    assert seed_from(5) == seed_from(np.int64(5)) == 5
    assert seed_from(None) != seed_from(None)
    with pytest.raises(ValueError, match="random_state"):
        seed_from(-1)


def test_a_share_is_all_by_default():
    assert Share() == (0, 1)
