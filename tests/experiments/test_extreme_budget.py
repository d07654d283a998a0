"""Networks that train in turns, each for the same time."""

import csv
import json

import extreme_budget
import numpy as np
import pytest
import torch
from extreme_budget import Contender, compete, turn_ends, warm_up

from tierrank.data.synthetic import label_sets
from tierrank.extreme.ranker import ExtremeRanker
from tierrank.metrics import labels

pytestmark = pytest.mark.slow  # whole experiments

SETTINGS = {"hidden": 8, "learning_rate": 1e-2, "validation": 0.0}


@pytest.fixture(scope="module")
def parts():
    return label_sets("eurlex-4k", rows=(300, 60), features=60, labels=40, features_a_row=10)


def test_steps_are_those_of_the_estimator(parts):
    train, test = parts
    contender = Contender.of("pl-lb", SETTINGS, train, 5)
    ranker = ExtremeRanker("pl-lb", max_epochs=2, random_state=5, **SETTINGS)
    ranker.fit(train.X, train.Y)
    while contender.steps < 2 * len(contender.batches):
        contender.train(contender.seconds + 1e-9)  # a step at a time
    for mine, theirs in zip(
        contender.learner.network.parameters(), ranker.networks_[0].parameters(), strict=True
    ):
        torch.testing.assert_close(mine, theirs, rtol=0, atol=0)
    contender.judge(test, ranker.inverse_propensity())
    (point,) = contender.points
    top = ranker.predict(test.X, k=5)
    np.testing.assert_array_equal(contender.top, top)
    assert point["values"]["P@3"] == pytest.approx(100 * labels.precision(top, test.Y, k=3))


def test_everyone_has_the_same_time_and_takes_turns(parts, monkeypatch):
    train, test = parts
    clock = iter(np.arange(0.0, 1e6, 0.5))  # half a second passes between two looks
    monkeypatch.setattr("extreme_budget.time.perf_counter", lambda: next(clock))
    contenders = [Contender.of(name, SETTINGS, train, 0) for name in ("pl-partition", "pl-lb")]
    inverse = labels.inverse_propensity(train.Y)
    compete(contenders, 6.0, 2.0, test, inverse)
    for each in contenders:
        assert [point["seconds"] for point in each.points] == [2.0, 4.0, 6.0]
        assert [point["steps"] for point in each.points] == [4, 8, 12]
    assert list(turn_ends(10, 4)) == [5, 10]
    assert list(turn_ends(1, 60)) == [1]


class Listening:
    """A sampler that notes what it draws."""

    def __init__(self, sampler, drawn):
        self.sampler, self.drawn = sampler, drawn

    def draw(self, named, *more):
        sample = self.sampler.draw(named, *more)
        self.drawn.append((named.tolist(), sample.labels.tolist()))
        return sample


def test_those_that_compete_start_alike_and_draw_alike(parts):
    train, _ = parts
    settings = {**SETTINGS, "negatives": 8, "sampler": "frequency"}
    one, other = (Contender.of(name, settings, train, 3) for name in ("pl-partition", "pl-lb"))
    for mine, theirs in zip(
        one.learner.network.parameters(), other.learner.network.parameters(), strict=True
    ):
        assert torch.equal(mine, theirs)
    drawn = {}
    for each in (one, other):
        drawn[each.name] = []
        each.learner.sampler = Listening(each.learner.sampler, drawn[each.name])
        each.train(1e-9)
    assert drawn["PL-Partition"]
    assert drawn["PL-Partition"] == drawn["PL-LB"]
    warm_up(["pl-partition"], settings)


def test_curves_and_the_last_points_are_shown_and_kept(tmp_path, monkeypatch):
    arguments = [
        "--scale", "0.002", "--minutes", "0.01", "--turn", "0.3", "--quick", "--out", str(tmp_path),
        "--rates", "0.001", "0.01", "--test-rows", "50",
    ]  # fmt: skip
    extreme_budget.main(arguments)
    with (tmp_path / "budget.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    assert [(line["method"], line["learning rate"]) for line in lines] == [
        (method, rate)
        for rate in ("0.001", "0.01")
        for method in ("PL-Partition", "PL-LB")
        for _ in range(2)  # turns
    ]
    assert all(float(line["seconds"]) >= 0.3 for line in lines)
    more = json.loads((tmp_path / "budget.json").read_text())
    last = more["rounds"][1]["points"]["PL-LB"][-1]
    assert last["seconds"] >= 0.6
    page = (tmp_path / "budget.html").read_text()
    assert f">{last['values']['P@5']:.2f}<" in page
    assert (tmp_path / "budget.png").read_bytes().startswith(b"\x89PNG")
    monkeypatch.setattr(extreme_budget, "compete", lambda *given: pytest.fail("trained again"))
    extreme_budget.main(arguments)
    assert json.loads((tmp_path / "budget.json").read_text())["rounds"] == more["rounds"]


def test_nothing_to_spend_is_refused(capsys):
    with pytest.raises(SystemExit, match="2"):
        extreme_budget.main(["--minutes", "0"])
    assert "numbers above 0" in capsys.readouterr().err
