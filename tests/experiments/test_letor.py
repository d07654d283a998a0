"""Every model beside LightGBM's and XGBoost's own rankers, on one protocol."""

import json

import letor
import pytest

pytest.importorskip("lightgbm")
pytest.importorskip("xgboost")


def run(parts, out, *arguments):
    letor.main(["--data", str(parts), "--out", str(out), "--quick", "--threads", "1", *arguments])
    return json.loads((out / "table.json").read_text())


def test_all_contenders_are_in_one_table_best_first(parts, tmp_path, capsys):
    table = run(parts, tmp_path, "--objectives", "pl-partition", "listmle")
    names = [standing["name"] for standing in table["standings"]]
    models = ("linear", "neural", "boosted")
    ours = {f"{model}, {name}" for model in models for name in ("pl-partition", "listmle")}
    extra = {f"boosted, {letor.POSITION_AWARE}", "boosted by XGBoost, pl-partition"}
    assert set(names) == {*ours, *extra, *letor.PEERS}
    assert table["failed"] == {}
    means = [standing["mean"] for standing in table["standings"]]
    assert means == sorted(means, reverse=True)
    assert {standing["queries"] for standing in table["standings"]} == {24}  # two folds' test parts
    printed = capsys.readouterr().out
    assert all(name in printed for name in names)
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")


def test_what_is_done_is_not_done_again(parts, tmp_path, monkeypatch, capsys):
    arguments = ("--objectives", "pl-partition", "--models", "linear", "peers")
    first = run(parts, tmp_path, *arguments)
    assert " p | seconds |" in capsys.readouterr().out
    monkeypatch.setattr(letor, "judge", lambda *given: pytest.fail("fitted again"))
    assert run(parts, tmp_path, *arguments, "--no-seconds") == first
    assert "seconds" not in capsys.readouterr().out


def test_all_trees_take_the_same_settings(parts, tmp_path):
    arguments = ("--objectives", "pl-partition", "--trees", "leaves=2", "row_fraction=0.5")
    table = run(parts, tmp_path, "--models", "boosted", "peers", *arguments)
    assert table["trees"] == {**letor.TREES, "leaves": 2, "row_fraction": 0.5}
    rankers = letor.contenders(("boosted", "peers"), ("pl-partition",), False, table["trees"])
    assert {(each.leaves, each.row_fraction) for each in rankers.values()} == {(2, 0.5)}
    with pytest.raises(SystemExit, match="2"):
        run(parts, tmp_path / "other", "--trees", "branches=2")


def test_an_unknown_objective_is_named(parts, tmp_path, capsys):
    with pytest.raises(SystemExit, match="2"):
        run(parts, tmp_path, "--objectives", "lambdamart")
    assert "there is no objective 'lambdamart'" in capsys.readouterr().err
