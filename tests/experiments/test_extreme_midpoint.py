"""The paper's midpoint rule in training, and figure 4 with it."""

import csv
import json

import extreme_sensitivity
import numpy as np
import pytest
import torch
from extreme_data import Source
from extreme_fits import Fit, Reading, Store, perform
from extreme_midpoint import MidpointLearner, Rule, fit_midpoint, padded

import reference
import tierrank as tr
from tierrank.data.synthetic import label_sets
from tierrank.extreme.learner import LabelBatches, LabelLearner
from tierrank.extreme.network import Network
from tierrank.extreme.ranker import ExtremeRanker
from tierrank.training.loop import Share


@pytest.fixture(scope="module")
def lists():
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(7, 40, generator=generator, dtype=torch.float64)
    lengths = torch.tensor([1, 4, 2, 9, 3, 3, 5])
    return scores, lengths


def short(scores, lengths):
    """Named labels, filled up with −inf, and the log-sum-exp of all others."""
    named = torch.where(torch.arange(9) < lengths[:, None], scores[:, :9], -torch.inf)
    rest = torch.where(torch.arange(40) < lengths[:, None], -torch.inf, scores)
    return named, rest


@pytest.mark.parametrize(("intervals", "shift"), [(10, 5.0), (1000, -2.0), (300, 0.0), (50, -9.0)])
def test_value_and_gradient_are_those_of_the_reference(lists, intervals, shift):
    named, rest = short(*lists)
    expected, (slopes, _) = reference.midpoint_gradient([named, rest], intervals, shift)
    log_prob, found = Rule(intervals, shift)(named, torch.logsumexp(rest, 1))
    torch.testing.assert_close(log_prob, expected, rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(found, slopes, rtol=1e-9, atol=1e-9)
    in_parts = Rule(intervals, shift)
    single, _ = in_parts(named.float(), torch.logsumexp(rest, 1).float())
    torch.testing.assert_close(single.double(), expected, rtol=1e-4, atol=1e-3)


def test_with_many_intervals_and_a_good_shift_it_is_the_likelihood(lists):
    scores, lengths = lists
    named, rest = short(scores, lengths)
    tiers = tr.Tiers.from_rankings(
        [[tuple(range(n))] for n in lengths.tolist()], items=range(40), rest="last"
    )
    leaf = scores.clone().requires_grad_()
    exact = tr.log_prob(leaf, tiers)
    (slopes,) = torch.autograd.grad(exact.sum(), leaf)
    log_prob, found = Rule(20_000, -2.0)(named, torch.logsumexp(rest, 1))
    torch.testing.assert_close(log_prob, exact.detach(), rtol=0, atol=1e-4)
    torch.testing.assert_close(
        found, torch.where(named > -torch.inf, slopes[:, :9], 0.0), rtol=0, atol=1e-4
    )


def test_lists_are_cut_into_parts_without_a_trace(lists, monkeypatch):
    named, rest = short(*lists)
    below = torch.logsumexp(rest, 1)
    whole = Rule(100, 0.0)(named, below)
    monkeypatch.setattr("extreme_midpoint.BLOCK", 2000)
    for one, other in zip(whole, Rule(100, 0.0)(named, below), strict=True):
        torch.testing.assert_close(one, other)
    with pytest.raises(ValueError, match="not 0"):
        Rule(0, 1.0)(named, below)


@pytest.mark.parametrize("shift", [60.0, 200.0, -200.0])
def test_an_unsuitable_shift_stays_finite_and_a_large_one_has_no_gradient(lists, shift):
    named, rest = short(*lists)
    log_prob, slopes = Rule(100, shift)(named.float(), torch.logsumexp(rest, 1).float())
    assert log_prob.isfinite().all()
    assert slopes.isfinite().all()
    if shift > 0:
        assert (slopes == 0).all()


def test_padding_knows_where_values_went():
    values = torch.tensor([1.0, 2.0, 3.0])
    out, where = padded(values, torch.tensor([1, 2]))
    assert out.tolist() == [[1.0, -torch.inf], [2.0, 3.0]]
    assert out[where].tolist() == values.tolist()


class Recorder:
    """Takes gradients, and changes nothing."""

    learning_rate = 1.0

    def __init__(self):
        self.parts = {}

    def begin_step(self):
        pass

    def update(self, key, rows, gradient):
        self.parts.setdefault(key, []).append(gradient.clone())

    def update_rows(self, key, rows, gradient):
        self.parts.setdefault(key, []).append(gradient.clone())

    def all(self, key):
        return torch.cat(self.parts[key])


def test_a_step_has_the_gradients_of_the_exact_one_where_the_rule_is_exact():
    train, _ = label_sets("eurlex-4k", rows=(32, 4), features=40, labels=50, features_a_row=8)
    network = Network(40, 50, (6,))
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network.reset()
    batches = LabelBatches(train.X, train.Y, None, size=32, seed=0)
    batches.begin(0)
    batch = batches.load(0, Share(), torch.device("cpu"))
    exact, rule = Recorder(), Recorder()
    loss, _ = LabelLearner(network, exact, "pl-partition").learn(batch, False)
    learner = MidpointLearner(network, rule, Rule(20_000, -3.0))
    found, _ = learner.learn(batch, False)
    assert found == pytest.approx(loss, abs=1e-3)
    assert (learner.lists, learner.lost) == (32, 0)
    for key in ("features", "feature_bias", "labels", "label_bias"):
        torch.testing.assert_close(rule.all(key), exact.all(key), rtol=1e-3, atol=1e-5)


def test_a_fit_by_the_rule_is_that_of_the_exact_likelihood_where_the_rule_is_exact(tmp_path):
    data = Source(synthetic="eurlex-4k", scale=0.02).load()
    settings = {"hidden": 8, "max_epochs": 3, "learning_rate": [1e-2], "refit": False}
    exact = ExtremeRanker(random_state=0, **settings).fit(data.train.X, data.train.Y)
    rule = {"intervals": 2000, "shift": -3.0}
    ranker, found = fit_midpoint({**settings, **rule}, 0, data.train)
    assert found["epoch"] == exact.history_.best_step
    assert abs(found["error of log P, first weights"]) < 1e-2
    assert found["lists without a gradient"] == 0
    np.testing.assert_allclose(ranker.history_.loss, exact.history_.loss, rtol=1e-3)
    same = ranker.predict(data.test.X, k=1) == exact.predict(data.test.X, k=1)
    assert same.mean() > 0.9
    fit = Fit("midpoint", 0, {**settings, **rule}, (Reading("rule"),))
    done = perform(fit, data, Store(tmp_path, data), lambda text: None)
    np.testing.assert_array_equal(done.top["rule"], ranker.predict(data.test.X, k=10))
    with pytest.raises(ValueError, match="without refit"):
        fit_midpoint({**settings, **rule, "refit": True}, 0, data.train)


def test_with_too_large_a_shift_nothing_is_learned():
    data = Source(synthetic="eurlex-4k", scale=0.02).load()
    settings = {"hidden": 8, "max_epochs": 2, "learning_rate": [1e-2], "refit": False}
    _, found = fit_midpoint({**settings, "intervals": 100, "shift": 30.0}, 0, data.train)
    assert found["lists without a gradient"] == 1
    assert found["error of log P, last weights"] < -1e6


def test_figure_4_has_all_t_and_c_beside_lines_without_them(tmp_path, monkeypatch):
    arguments = [
        "--scale", "0.02", "--quick", "--out", str(tmp_path), "--intervals", "10", "50",
        "--shifts", "-3", "5", "30", "--at", "50", "5",
    ]  # fmt: skip
    extreme_sensitivity.main(arguments)
    rules = ["T = 10, c = 5", "T = 50, c = 5", "T = 50, c = -3", "T = 50, c = 30"]
    with (tmp_path / "figure-4.csv").open(newline="") as file:
        lines = [line for line in csv.DictReader(file) if line["measure"] == "P@5"]
    assert [line["method"] for line in lines] == ["PL-Partition, exact", "RankNet", *rules]
    more = json.loads((tmp_path / "figure-4.json").read_text())
    lost = {each["method"]: each.get("lists without a gradient") for each in more["fits"]}
    assert lost["T = 50, c = 30"] == 1
    assert lost["T = 50, c = -3"] == 0
    assert "wiki10-31k-like" in more["settings"]["data"]  # what is drawn if there is no --data
    assert (tmp_path / "figure-4.png").read_bytes().startswith(b"\x89PNG")
    page = (tmp_path / "figure-4.html").read_text()
    assert all(f">{name}<" in page for name in rules)
    monkeypatch.setattr("extreme_fits.perform", lambda *given: pytest.fail("fitted again"))
    extreme_sensitivity.main(arguments)
