"""Defaults beside other programs: who is judged by which rows."""

import extreme_peers
import numpy as np
import pytest

import tierrank as tr
from tierrank.data import write_xc


@pytest.fixture
def sets(tmp_path):
    """One set with test rows, and one without."""
    train, test = tr.data.synthetic.label_sets(
        "eurlex-4k", rows=(80, 30), features=40, labels=20, features_a_row=8, labels_a_row=3, seed=1
    )
    for folder, name, data in (("a", "train", train), ("a", "test", test), ("b", "all", train)):
        (tmp_path / folder).mkdir(exist_ok=True)
        write_xc(tmp_path / folder / f"{name}.txt", data)
    return tmp_path


def test_a_set_without_test_rows_is_split_by_the_seed(sets):
    train, test = extreme_peers.load(sets / "b", 0, held_out=False)
    assert (len(train), len(test)) == (60, 20)
    again, _ = extreme_peers.load(sets / "b", 0, held_out=False)
    other, _ = extreme_peers.load(sets / "b", 1, held_out=False)
    np.testing.assert_array_equal(train.X.toarray(), again.X.toarray())
    assert not np.array_equal(train.X.toarray(), other.X.toarray())


def test_held_out_rows_are_training_rows(sets):
    train, judged = extreme_peers.load(sets / "a", 0, held_out=True)
    known = {row.tobytes() for row in extreme_peers.load(sets / "a", 0, False)[0].X.toarray()}
    assert (len(train), len(judged)) == (64, 16)
    assert {row.tobytes() for row in judged.X.toarray()} <= known


def test_each_has_a_row_and_the_best_is_bold(sets, monkeypatch, capsys):
    popular = {
        "popular": lambda data: (
            lambda X: np.tile(
                np.argsort(-np.bincount(data.Y.indices, minlength=20))[:5], (X.shape[0], 1)
            )
        )
    }
    monkeypatch.setattr(extreme_peers, "PEERS", popular)
    small = {"hidden": 4, "max_epochs": 1, "learning_rate": 0.01}
    monkeypatch.setattr(extreme_peers, "OURS", {"ours": small})
    extreme_peers.main(["--data", str(sets), "--sets", "a", "b"])
    text = capsys.readouterr().out
    assert "**a: 80 rows, 30 test rows**" in text
    assert "**b: 60 rows, 20 test rows**" in text
    assert text.count("| ours |") == text.count("| popular, ") == 2
    assert text.count("**") >= 4 + 2 * 2 * 6


def test_several_seeds_are_averaged(sets, monkeypatch, capsys):
    monkeypatch.setattr(extreme_peers, "PEERS", {})
    small = {"hidden": 4, "max_epochs": 1, "learning_rate": 0.01}
    monkeypatch.setattr(extreme_peers, "OURS", {"ours": small, "left out": small})
    given = ["--data", str(sets), "--sets", "a", "--ours", "ours", "--seed", "3"]
    shown = []
    for more in (["--seeds", "2"], [], ["--seed", "4"]):
        extreme_peers.main([*given, *more])
        text = capsys.readouterr().out
        (line,) = (each for each in text.splitlines() if each.startswith("| ours |"))
        shown.append([float(cell.strip("* ")) for cell in line.split("|")[2:8]])
        assert "left out" not in text
        assert ("mean over 2 seeds" in text) == bool(more[:1] == ["--seeds"])
    both, one, other = np.array(shown)
    assert (one != other).any()
    np.testing.assert_allclose(both, (one + other) / 2, atol=0.0101)
