"""An objective that is added by the recipe of CONTRIBUTING.md works behind every door."""

import pickle

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

import tierrank as tr
from simulated_rows import simulated_rows
from tierrank.cli import app
from tierrank.data import write_letor
from tierrank.losses import OBJECTIVES, listwise
from tierrank.losses.objective import objective
from tierrank.losses.record import Entry

# one function …


@objective
def quartic(scores, tiers, *, power=4, weights=None, reduction="mean"):
    """Distance of scores and grades to a high power (Nobody, 2026).

    Σ_j (w_j − grade of j)^power + the same squared.
    """
    given = listwise.Scores(scores)
    lists = listwise._GradedLists(given.values, tiers)
    apart = lists.entries - lists.of_entries(lists.grades)
    losses = lists.list.sum(apart**power + apart**2)
    return listwise.reduced(given, losses, weights, reduction)


# … and one entry


@pytest.fixture(autouse=True)
def entry(monkeypatch):
    entry = Entry(
        "quartic", "quartic", "Quartic", "listwise", "Nobody, 2026",
        shift_invariant=False, needs_connection=False,
    )  # fmt: skip
    monkeypatch.setattr(listwise, "quartic", quartic, raising=False)
    monkeypatch.setitem(OBJECTIVES, "quartic", entry)
    yield entry
    for name in ("quartic", "Quartic"):  # as they are kept once they have been asked for
        vars(tr.losses).pop(name, None)


@pytest.fixture
def rows():
    X, y, qid = simulated_rows(3, lists=20, longest=6)
    return X, y.astype(int), qid


def run(*arguments):
    env = {"COLUMNS": "200", "NO_COLOR": "1"}
    ran = CliRunner().invoke(app, [str(each) for each in arguments], env=env)
    assert ran.exit_code == 0, ran.output
    return ran.output


def test_it_is_a_loss():
    tiers = tr.Tiers.from_labels([2, 0])
    assert tr.losses.quartic([1.0, 2.0], tiers) == 1 + 1 + 16 + 4
    assert tr.losses.quartic([1.0, 2.0], tiers, power=6) == 1 + 1 + 64 + 4
    with pytest.raises(ValueError, match="must be a Tiers"):
        tr.losses.quartic([1.0, 2.0], np.array([2, 0]))


def test_it_is_a_module(entry):
    module = tr.losses.from_name("Quartic", power=2, reduction="sum")
    assert type(module) is tr.losses.Quartic is entry.module
    assert repr(module) == "Quartic(power=2, reduction='sum')"
    scores = torch.tensor([1.0, 2.0], requires_grad=True)
    module(scores, tr.Tiers.from_labels([2, 0])).backward()
    assert scores.grad.tolist() == [-4.0, 8.0]
    again = pickle.loads(pickle.dumps(module))
    assert type(again) is type(module)
    assert again.options == {"power": 2}
    with pytest.raises(TypeError, match="Quartic has no option 'k'"):
        tr.losses.Quartic(k=3)


def test_a_mistyped_name_finds_it():
    with pytest.raises(ValueError, match=r"did you mean 'quartic'\?.*pl-rank, quartic"):
        tr.losses.find("quatric")


@pytest.mark.parametrize("ranker", [tr.LinearRanker, tr.NeuralRanker, tr.BoostedRanker])
def test_rankers_learn_by_it(ranker, rows):
    if ranker is tr.BoostedRanker:
        pytest.importorskip("lightgbm")
    X, y, qid = rows
    fitted = ranker("quartic", objective_params={"power": 2}, random_state=0).fit(X, y, qid=qid)
    assert fitted.score(X, y, qid=qid) > 0.8
    assert fitted.history_.loss[-1] < fitted.history_.loss[0]


def test_a_linear_ranker_has_standard_errors_by_it(rows):
    X, y, qid = rows
    fitted = tr.LinearRanker("quartic", uncertainty="sandwich").fit(X, y, qid=qid)
    assert (fitted.standard_errors_ > 0).all()
    with pytest.raises(ValueError, match="quartic is no likelihood"):
        tr.LinearRanker("quartic", uncertainty="information").fit(X, y, qid=qid)


def test_worths_are_fitted_by_it():
    """Grades are 1 of the winner and 0 of the loser: their mean is best, by powers of 2 alone."""
    fitted = tr.RankAggregator("quartic", objective_params={"power": 2}, uncertainty="sandwich")
    fitted.fit([["a", "b"], ["b", "c"], ["a", "c"], ["b", "a"]])
    assert fitted.items_ == ("a", "b", "c")
    expected = np.array([2 / 3, 2 / 3, 0]) - 4 / 9
    np.testing.assert_allclose(fitted.log_worths_, expected, atol=1e-6)


def test_commands_know_it(rows, tmp_path):
    assert "Distance of scores and grades to a high power" in run("objectives")
    assert "tierrank.losses.quartic(scores, tiers, power=4" in run("objectives", "quartic")
    X, y, qid = rows
    write_letor(tmp_path / "train.txt", X, y, qid)
    run("train", tmp_path / "train.txt", "--out", tmp_path / "model", "--model", "linear",
        "--objective", "quartic:power=2")  # fmt: skip
    model = tr.load(tmp_path / "model")
    assert (model.objective, model.objective_params) == ("quartic", {"power": 2})
    (tmp_path / "votes.jsonl").write_text('["a", "b"]\n["b", "a"]\n["a", "c"]\n["c", "b"]\n')
    run("aggregate", tmp_path / "votes.jsonl", "--model", "quartic", "--uncertainty", "sandwich")
