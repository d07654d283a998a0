"""Steps of learning: those of naive torch, with all scores and an optimiser of its own."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from scipy.sparse import csr_matrix

import tierrank as tr
from tierrank.extreme import head
from tierrank.extreme.learner import Glas, LabelBatches, LabelLearner, RowOptimiser
from tierrank.extreme.network import Network
from tierrank.extreme.samplers import Sample, Uniform
from tierrank.training.loop import Diverged, Share

ROWS, FEATURES, LABELS = 20, 15, 600
CPU = torch.device("cpu")


def data(labels=LABELS, seed=0):
    """The third row has no features, the fifth no labels."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(ROWS, FEATURES)) * (rng.random((ROWS, FEATURES)) < 0.3)
    Y = rng.random((ROWS, labels)) < 6 / labels
    Y[:, 0] |= ~Y.any(1)
    X[2], Y[4] = 0, 0
    return csr_matrix(X.astype(np.float32)), csr_matrix(Y.astype(np.float32))


def network(hidden=(8,), labels=LABELS, seed=0, skip=0):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        made = Network(FEATURES, labels, hidden, skip=skip)
        made.reset()
    return made


def learner(net, objective="pl-partition", sampler=None, glas=None, **options):
    parameters = {name: each.detach() for name, each in net.named_parameters()}
    usual = {"name": "adam", "learning_rate": 0.01}
    optimiser = RowOptimiser(parameters, **{**usual, **options})
    return LabelLearner(net, optimiser, objective, sampler, glas)


def batches(X, Y, weights=None, size=8):
    made = LabelBatches(X, Y, weights, size=size, seed=3)
    made.begin(0)
    return [made.load(step, Share(), CPU) for step in range(len(made))]


def naive_loss(net, rows, tiers, weights, objective):
    """All scores at once, from dense rows."""
    X = torch.zeros(len(tiers), FEATURES)
    borders = [*rows.starts.tolist(), len(rows.columns)]
    for number, (first, last) in enumerate(pairwise(borders)):
        X[number, rows.features[rows.columns[first:last]]] = rows.values[first:last]
    width = len(net.feature_bias)
    hidden = torch.relu(X @ net.features[:, :width] + net.feature_bias)
    for layer in net.layers:
        hidden = torch.relu(layer(hidden))
    own = hidden.shape[1]
    scores = hidden @ net.labels[:, :own].T + net.label_bias
    if net.skip:  # a linear model beside it
        scores = scores + (X if net.skip == FEATURES else X @ net.features[:, width:]) @ (
            net.labels[:, own:].T
        )
    return tr.losses.from_name(objective, reduction="none")(scores, tiers) @ weights


def parameters(net):
    return {name: each.detach().clone() for name, each in net.named_parameters()}


def assert_same(one, two, **near):
    assert one.keys() == two.keys()
    for name, part in one.items():
        torch.testing.assert_close(part, two[name], msg=lambda text, n=name: f"{n}: {text}", **near)


# Steps -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("objective", "hidden", "options"),
    [
        ("bce", (8,), {}),
        ("pl-partition", (8,), {"skip": FEATURES}),
        ("pl-partition", (8, 5), {"skip": 4, "weight_decay": 0.2}),
        ("bce", (8,), {"skip": FEATURES, "name": "adagrad"}),
        ("pl-partition", (8,), {}),
        ("pl-partition", (8, 5), {"weight_decay": 0.2}),
        ("pl-lb", (8,), {}),
        ("pl-efron", (8,), {}),
        ("attrank", (8,), {}),
        ("ranknet", (8,), {}),
        ("ranksvm", (8, 5), {}),
        ("pl-partition", (8,), {"name": "adagrad"}),
    ],
)
def test_steps_are_those_of_naive_torch(objective, hidden, options, monkeypatch):
    monkeypatch.setattr(head, "BLOCK_BYTES", 1)
    skip = options.pop("skip", 0)
    ours, theirs = network(hidden, skip=skip), network(hidden, skip=skip)
    ours_learning = learner(ours, objective, **options)
    matrices = [each for each in theirs.parameters() if each.dim() > 1]
    vectors = [each for each in theirs.parameters() if each.dim() == 1]
    if "name" in options:
        optimiser = torch.optim.Adagrad(theirs.parameters(), lr=0.01)
    else:
        decay = options.get("weight_decay", 0.0)
        groups = [{"params": matrices}, {"params": vectors, "weight_decay": 0.0}]
        optimiser = torch.optim.AdamW(groups, lr=0.01, weight_decay=decay)
    X, Y = data()
    weights = np.linspace(0.5, 2, ROWS)
    for batch in batches(X, Y, weights) * 2:
        wanted = naive_loss(theirs, *batch, objective)
        optimiser.zero_grad()
        wanted.backward()
        optimiser.step()
        loss, stop = ours_learning.learn(batch, False)
        assert loss == pytest.approx(wanted.item(), rel=1e-5)
        assert stop is False
    # where a gradient is nearly 0, Adam makes a step of its rounding
    assert_same(parameters(ours), parameters(theirs), rtol=1e-4, atol=2e-5)


def test_an_objective_is_looked_up_once_and_not_in_every_step(monkeypatch):
    looked_up = []

    def find(name, find=head.find_fused):
        looked_up.append(name)
        return find(name)

    monkeypatch.setattr(head, "find_fused", find)
    learning = learner(network(), "ranknet")
    for batch in batches(*data()):
        learning.learn(batch, False)
    assert looked_up == ["ranknet"]


def test_the_regulariser_adds_its_gradient(monkeypatch):
    monkeypatch.setattr(head, "BLOCK_BYTES", 1)
    X, Y = data()
    regulariser = Glas(Y, 30.0)
    ours, sampled, theirs = network(), network(), network()
    learning = learner(ours, glas=regulariser, name="adagrad")
    sampled_learning = learner(sampled, sampler=AllLabels(LABELS), glas=regulariser, name="adagrad")
    optimiser = torch.optim.Adagrad(theirs.parameters(), lr=0.01)
    for batch in batches(X, Y):
        labels = batch[1].items.unique()
        vectors = theirs.labels[labels]
        error = vectors @ vectors.T - regulariser.target(labels)
        loss = naive_loss(theirs, *batch, "pl-partition")
        optimiser.zero_grad()
        (loss + 30 * error.square().mean()).backward()
        optimiser.step()
        found, _ = learning.learn(batch, False)
        assert found == pytest.approx(loss.item(), rel=1e-5)  # what is told is the loss alone
        sampled_learning.learn(batch, False)
    assert_same(parameters(ours), parameters(theirs), rtol=1e-4, atol=1e-5)
    assert_same(parameters(sampled), parameters(theirs), rtol=1e-4, atol=1e-5)
    plain = network()
    without = learner(plain, name="adagrad")
    for batch in batches(X, Y):
        without.learn(batch, False)
    assert not torch.allclose(plain.labels, theirs.labels, atol=1e-3)


class AllLabels:
    """Every label, once."""

    def __init__(self, labels):
        self.labels = labels

    def draw(self, named, lists):
        return Sample(torch.arange(self.labels), torch.zeros(self.labels))


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("objective", ["pl-partition", "attrank", "ranknet", "ranksvm"])
def test_a_sample_of_all_labels_is_the_whole_rest(objective, lazy):
    whole, sampled = network(), network()
    one = learner(whole, objective, lazy=lazy)
    two = learner(sampled, objective, AllLabels(LABELS), lazy=lazy)
    for batch in batches(*data()):
        assert one.learn(batch, False) == two.learn(batch, False)
    assert_same(parameters(whole), parameters(sampled), rtol=0, atol=0)


@pytest.mark.parametrize("lazy", [False, True])
def test_a_sampled_step_touches_what_is_drawn_and_what_is_named(lazy):
    net = network()
    before = parameters(net)
    torch.manual_seed(0)
    sampler = Uniform(LABELS, 10)
    learning = learner(net, sampler=sampler, lazy=lazy)
    batch = batches(*data())[0]
    torch.manual_seed(5)
    learning.learn(batch, False)
    torch.manual_seed(5)
    there = torch.cat([sampler.draw(batch[1].items, 8).labels, batch[1].items]).unique()
    moved = (net.labels != before["labels"]).any(1).nonzero()[:, 0]
    assert torch.equal(moved, there)
    assert len(there) < LABELS / 4
    used = (net.features != before["features"]).any(1).nonzero()[:, 0]
    assert set(used.tolist()) <= set(batch[0].features.tolist())


@pytest.mark.parametrize("objective", ["pl-partition", "ranknet"])
def test_more_negatives_than_labels_may_be_drawn(objective):
    X, Y = data(labels=5)
    learning = learner(network(labels=5), objective, Uniform(5, 1000))
    for batch in batches(X, Y):
        loss, _ = learning.learn(batch, False)
        assert np.isfinite(loss)


def test_features_that_a_batch_lacks_wait_if_lazy_and_else_go_on_by_their_momentum():
    X, Y = data()
    two = batches(X, Y)[:2]
    for lazy in (True, False):
        net = network()
        learning = learner(net, lazy=lazy)
        learning.learn(two[0], False)
        before = net.features.detach().clone()
        learning.learn(two[1], False)
        absent = np.setdiff1d(two[0][0].features, two[1][0].features)
        assert len(absent)
        moved = (net.features.detach() != before)[absent].any(1)
        assert moved.any() != lazy


def test_rows_without_any_feature_are_learned_from():
    X, Y = data()
    net = network()
    before = parameters(net)
    learning = learner(net)
    learning.learn(batches(csr_matrix(X.shape, dtype=np.float32), Y)[0], False)
    assert torch.equal(net.features, before["features"])
    assert not torch.equal(net.label_bias, before["label_bias"])
    assert not torch.equal(net.feature_bias, before["feature_bias"])


@pytest.mark.parametrize("sampled", [False, True])
@pytest.mark.parametrize("objective", ["pl-partition", "pl-lb", "ranknet"])
@pytest.mark.parametrize("label", [0, 599])  # named, and not
def test_a_loss_that_is_not_finite_is_told_before_anything_changes(objective, label, sampled):
    net = network()
    net.label_bias.data[label] = torch.nan
    before = parameters(net)
    learning = learner(net, objective, AllLabels(LABELS) if sampled else None)
    with pytest.raises(Diverged, match="the loss is nan"):
        learning.learn(batches(*data())[0], False)
    assert learning.optimiser.step == 0
    for name, part in parameters(net).items():
        assert torch.equal(part.nan_to_num(), before[name].nan_to_num())
    assert not learning.finite()


# What the loop asks ----------------------------------------------------------------------------


def test_evaluation_is_without_dropout_and_gradients():
    net = network()
    learning = learner(net)
    assert net.training
    with learning.evaluating():
        assert not net.training
        assert not torch.is_grad_enabled()
    assert net.training
    assert torch.is_grad_enabled()
    with pytest.raises(KeyError), learning.evaluating():
        raise KeyError
    assert net.training


def test_weights_are_copies_and_come_back():
    net = network()
    learning = learner(net)
    kept = learning.weights()
    learning.learn(batches(*data())[0], False)
    assert not torch.equal(kept["labels"], net.labels)
    learning.load_weights(kept)
    assert_same(parameters(net), kept, rtol=0, atol=0)
    assert learning.finite()
    # the optimiser still holds the very same memory
    assert learning.optimiser.parameters["labels"].data_ptr() == net.labels.data_ptr()


@pytest.mark.parametrize("options", [{}, {"lazy": True}, {"name": "adagrad"}])
def test_weights_and_memory_are_all_it_takes_to_go_on(options):
    steps = batches(*data()) * 2
    whole = network()
    learning = learner(whole, sampler=Uniform(LABELS, 50), **options)
    for number, batch in enumerate(steps):
        if number == 3:
            weights = learning.weights()
            memory = {name: np.array(part) for name, part in learning.memory().items()}
        torch.manual_seed(number)
        learning.learn(batch, False)
    resumed = network(seed=9)
    learning = learner(resumed, sampler=Uniform(LABELS, 50), **options)
    learning.load_weights(weights)
    learning.restore_memory(memory)
    for number, batch in enumerate(steps[3:], 3):
        torch.manual_seed(number)
        learning.learn(batch, False)
    assert_same(parameters(resumed), parameters(whole), rtol=0, atol=0)


# Batches ---------------------------------------------------------------------------------------


def test_an_epoch_takes_every_row_with_labels_once_in_an_order_of_its_own():
    X, Y = data()
    X = csr_matrix(np.diag(np.arange(1.0, ROWS + 1)).astype(np.float32))  # a row tells its number
    made = LabelBatches(X, Y, None, size=8, seed=3)
    assert len(made) == 3
    orders = []
    for epoch in (0, 1, 0):
        made.begin(epoch)
        seen = []
        for step in range(3):
            rows, tiers, weights = made.load(step, Share(), CPU)
            numbers = rows.values.long() - 1
            assert len(tiers) == len(numbers) == len(weights)
            for number, one in zip(numbers.tolist(), range(len(tiers)), strict=True):
                np.testing.assert_array_equal(tiers[one].items, Y[number].indices)
            seen += numbers.tolist()
        orders.append(seen)
    assert sorted(orders[0]) == [row for row in range(ROWS) if row != 4]
    assert orders[0] == orders[2] != orders[1]
    assert sum(made.part(step) for step in range(3)) == pytest.approx(1)


def test_weights_of_rows_have_mean_one_over_the_rows_that_teach():
    X, Y = data()
    given = np.linspace(1, 3, ROWS)
    made = LabelBatches(X, Y, given, size=8, seed=3)
    made.begin(0)
    total = sum(
        made.part(step) * made.load(step, Share(), CPU)[2].sum().item() for step in range(len(made))
    )
    assert total == pytest.approx(1)
    teaching = np.delete(given, 4)
    np.testing.assert_allclose(made.weights, teaching / teaching.mean(), rtol=1e-6)


def test_a_batch_may_be_larger_than_the_data():
    made = LabelBatches(*data(), None, size=1000, seed=3)
    made.begin(0)
    assert len(made) == 1
    assert made.part(0) == 1
    assert len(made.load(0, Share(), CPU)[1]) == ROWS - 1


def test_rows_that_teach_nothing_are_refused():
    X, Y = data()
    for rows in (slice(4, 5), slice(0, 0)):
        with pytest.raises(ValueError, match="nothing to learn: no row has a label"):
            LabelBatches(X[rows], Y[rows], None, size=8, seed=3)
