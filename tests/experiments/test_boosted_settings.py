"""Experiments on settings of trees and networks: which rows they look at, and what they print."""

import boosted_settings
import neural_settings
import numpy as np
import pytest

from tierrank.data import write_letor


@pytest.fixture
def fold(tmp_path):
    for name, seed in (("train", 0), ("vali", 1), ("test", 2)):
        rng = np.random.default_rng(seed)
        qid = np.repeat(np.arange(10), 6)
        X = rng.normal(size=(60, 3)) + 100 * (name == "test")
        y = np.digitize(X[:, 0] + rng.normal(size=60), [0, 1])
        write_letor(tmp_path / f"{name}.txt", X, y, qid)
    return tmp_path


def test_it_looks_at_training_and_validation_queries_alone(fold):
    data = boosted_settings.queries_of(fold)
    assert len(data) == 120
    assert data.n_queries == 20  # both parts number theirs from 0
    assert np.abs(data.X).max() < 50
    some = boosted_settings.drawn(data, 7, seed=0)
    assert some.n_queries == 7
    with pytest.raises(ValueError, match="ask for fewer than 20"):
        boosted_settings.drawn(data, 20, seed=0)


def test_it_prints_every_candidate(fold, capsys, monkeypatch):
    few = {"a": {"trees": 3, "threads": 1}, "b": {"trees": 3, "leaves": 3, "threads": 1}}
    monkeypatch.setitem(boosted_settings.CANDIDATES, "shape", few)
    boosted_settings.main(["--data", str(fold), "--quick", "--repeats", "2"])
    printed = capsys.readouterr().out
    assert "20 queries" in printed
    assert "| b | " in printed


def test_sets_of_many_sizes_are_rows_of_one_table(fold, capsys, monkeypatch):
    few = {"a": {"trees": 3, "threads": 1}, "b": {"trees": 3, "leaves": 3, "threads": 1}}
    monkeypatch.setitem(boosted_settings.CANDIDATES, "shape", few)
    monkeypatch.setattr(boosted_settings, "BY_SIZE", ("a", "b"))
    monkeypatch.setattr(boosted_settings, "SIZES", ((fold.name, None, 1), (fold.name, 12, 2)))
    boosted_settings.main(["--data", str(fold.parent), "--quick", "--by-size"])
    lines = capsys.readouterr().out.splitlines()
    assert "| queries, rows | a | b |" in lines
    all_rows, drawn = lines[-3:-1]
    assert all_rows.startswith(f"| {fold.name}: 20, 120 | ")
    assert drawn.startswith(f"| {fold.name}: 12 drawn, 72 | ")
    assert "(p = " in all_rows


def test_networks_are_compared_in_the_same_way(fold, capsys, monkeypatch):
    few = {"the defaults": {"hidden": (4,)}, "dropout=0": {"hidden": (4,), "dropout": 0.0}}
    monkeypatch.setattr(neural_settings, "CANDIDATES", few)
    neural_settings.main(["--data", str(fold), "--quick"])
    printed = capsys.readouterr().out
    assert "20 queries" in printed
    assert "| dropout=0 | " in printed
