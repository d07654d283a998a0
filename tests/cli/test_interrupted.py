"""Ctrl-C: what is left is a model that can be used, and --resume goes on to the same result."""

import json

import pytest

import tierrank as tr
from tierrank.cli.progress import FitDisplay

SETTINGS = {
    "linear": ["--set", "tol=0", "--set", "max_iter=40"],
    "neural": ["--set", "max_epochs=6", "--set", "hidden=[6]", "--set", "batch_lists=4"],
    "boosted": ["--set", "trees=120", "--set", "row_fraction=0.7", "--set", "patience=null"],
}


@pytest.fixture
def press_ctrl_c(ctrl_c_when):
    """Press it at a step."""
    return ctrl_c_when(FitDisplay)


def content(folder):
    manifest = (folder / "model.json").read_bytes()
    tensors = folder / json.loads(manifest)["tensors"]["file"]
    return manifest, tensors.read_bytes()


@pytest.mark.parametrize("kind", SETTINGS)
def test_ctrl_c_leaves_a_usable_model_and_resuming_gives_the_same_one(
    run, fold, tmp_path, kind, press_ctrl_c, monkeypatch
):
    arguments = ["train", fold, "--model", kind, "--threads", 1, "--checkpoint-every", 0]
    arguments += SETTINGS[kind]
    whole, stopped = tmp_path / "whole", tmp_path / "stopped"
    assert run(*arguments, "--out", whole).code == 0

    with monkeypatch.context():
        press_ctrl_c({"linear": 3, "neural": 2, "boosted": 70}[kind])
        ran = run(*arguments, "--out", stopped)
        assert ran.code == 130
        assert f"The model so far is in {stopped}" in ran.text
        assert "To go on: tierrank" in ran.text
        assert "--resume" in ran.text
    assert (stopped / "checkpoint" / "checkpoint.json").is_file()
    assert tr.load(stopped).history_.steps
    assert run("evaluate", stopped, fold / "test.txt").code == 0
    assert content(stopped) != content(whole)

    refused = run(*arguments, "--out", stopped)
    assert refused.code == 1
    assert "holds an unfinished training. Add --resume to go on with it" in refused.text
    monkeypatch.undo()
    resumed = run(*arguments, "--out", stopped, "--resume")
    assert resumed.code == 0, resumed.text
    assert "begins anew" not in resumed.text
    assert content(stopped) == content(whole)
    assert (stopped / "curve.csv").read_bytes() == (whole / "curve.csv").read_bytes()
    assert not (stopped / "checkpoint").exists()
    assert len(list(stopped.glob("*.safetensors"))) == 1


def test_a_checkpoint_of_other_settings_is_refused(run, fold, tmp_path, press_ctrl_c):
    arguments = ["train", fold, "--model", "linear", "--out", tmp_path / "m"]
    press_ctrl_c(2)
    assert run(*arguments, "--set", "tol=0").code == 130
    ran = run(*arguments, "--set", "tol=0", "--set", "l2=3", "--resume")
    assert ran.code == 1
    assert "holds a checkpoint of another fit" in ran.text
    assert (tmp_path / "m" / "checkpoint" / "checkpoint.json").is_file()  # still there
    assert run(*arguments, "--set", "l2=3", "--overwrite").code == 0
    assert tr.load(tmp_path / "m").l2 == 3


def test_a_second_ctrl_c_ends_at_once(run, fold, tmp_path, press_ctrl_c):
    press_ctrl_c(1, times=2)
    ran = run("train", fold, "--model", "linear", "--set", "tol=0", "--out", tmp_path / "m")
    assert ran.code == 130
    assert "Traceback" not in ran.text
    assert "To go on:" in ran.text


def test_ctrl_c_ends_a_comparison(run, fold, tmp_path, press_ctrl_c):
    press_ctrl_c(2)
    ran = run("compare", fold, "--model", "linear", "--out", tmp_path / "c")
    assert ran.code == 130
    assert "Stopped" in ran.text
    assert list((tmp_path / "c").iterdir()) == []
