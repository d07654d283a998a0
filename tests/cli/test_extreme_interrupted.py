"""Ctrl-C in `tierrank extreme train`: what is left can be used, and --resume goes on."""

import json
import os
import random
import time

import pytest

import tierrank as tr
from extreme_files import label_sets, write_parts
from killable import processes, run_command
from tierrank.cli.progress import TrainingDisplay
from tierrank.training import loop

SETTINGS = [
    "--hidden", 8, "--learning-rate", 0.02, "--learning-rate", 0.005, "--epochs", 3, "--batch", 32,
    "--set", "members=2", "--set", "hidden_dropout=0.3", "--threads", 1, "--checkpoint-every", 0,
]  # fmt: skip


@pytest.fixture
def arguments(tmp_path):
    return ["extreme", "train", write_parts(tmp_path) / "train.txt", *SETTINGS]


@pytest.fixture
def press_ctrl_c(ctrl_c_when, monkeypatch):
    """Press it when the display is told so many times."""
    monkeypatch.setattr(loop, "LOOK_EVERY", 1e9)  # only after epochs, however slow the machine
    return ctrl_c_when(TrainingDisplay)


def content(folder):
    manifest = (folder / "model.json").read_bytes()
    return manifest, (folder / json.loads(manifest)["tensors"]["file"]).read_bytes()


@pytest.mark.parametrize("epoch", [2, 5, 8])  # of the first rate, the second, the second member
def test_ctrl_c_leaves_a_usable_model_and_resuming_gives_the_same_one(
    run, arguments, tmp_path, press_ctrl_c, monkeypatch, epoch
):
    whole, stopped = tmp_path / "whole", tmp_path / "stopped"
    assert run(*arguments, "--out", whole).code == 0

    with monkeypatch.context():
        press_ctrl_c(epoch)
        ran = run(*arguments, "--out", stopped)
        assert ran.code == 130
        assert f"The model so far is in {stopped}" in ran.text
        assert "To go on: tierrank" in ran.text
    assert (stopped / "checkpoint" / "checkpoint.json").is_file()
    _, test = label_sets()
    assert tr.load(stopped).predict(test.X, k=3).shape == (40, 3)

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


def test_stopped_in_the_first_epoch_of_the_second_rate_it_leaves_the_first_ones_model(
    run, arguments, tmp_path, press_ctrl_c, monkeypatch
):
    press_ctrl_c(9 + 1)  # the second rate's first batch, after three epochs of three batches
    monkeypatch.setattr(loop, "LOOK_EVERY", 0)
    ran = run(*arguments, "--out", tmp_path / "m")
    assert ran.code == 130
    ranker = tr.load(tmp_path / "m")
    assert ranker.learning_rate_ == 0.02
    assert ranker.history_.steps == [1, 2, 3]


def test_before_the_first_epoch_is_done_there_is_no_model_yet(
    run, arguments, tmp_path, press_ctrl_c, monkeypatch
):
    out = tmp_path / "m"
    press_ctrl_c(1)
    monkeypatch.setattr(loop, "LOOK_EVERY", 0)  # after each batch
    ran = run(*arguments, "--out", out)
    assert ran.code == 130
    assert "Stopped before the first epoch was done" in ran.text
    assert not (out / "model.json").exists()
    monkeypatch.undo()
    assert run(*arguments, "--out", out, "--resume").code == 0
    assert (out / "model.json").exists()


def test_a_second_ctrl_c_ends_at_once(run, arguments, tmp_path, press_ctrl_c):
    press_ctrl_c(1, times=2)
    ran = run(*arguments, "--out", tmp_path / "m")
    assert ran.code == 130
    assert "Traceback" not in ran.text
    assert "To go on:" in ran.text


def test_a_checkpoint_of_other_settings_is_refused(run, arguments, tmp_path, press_ctrl_c):
    press_ctrl_c(2)
    assert run(*arguments, "--out", tmp_path / "m").code == 130
    ran = run(*arguments, "--patience", 2, "--out", tmp_path / "m", "--resume")
    assert ran.code == 1
    assert "holds a checkpoint of another fit" in ran.text
    assert (tmp_path / "m" / "checkpoint" / "checkpoint.json").is_file()  # still there
    assert run(*arguments, "--patience", 2, "--out", tmp_path / "m", "--overwrite").code == 0


def test_what_killed_processes_left_is_swept_away(run, arguments, tmp_path):
    out = tmp_path / "m"
    (out / "checkpoint" / "rate-0.02-0").mkdir(parents=True)
    (out / "checkpoint" / "rate-0.02-0" / ".checkpoint.json.77.part").write_bytes(b"{")
    (out / ".model.json.77.part").write_bytes(b"{")
    ran = run(*arguments, "--out", out, "--resume")
    assert ran.code == 0, ran.text
    assert "begins anew" in ran.text
    assert not list(out.rglob("*.part"))


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes that can be forked")
def test_killed_at_random_moments_and_resumed_it_gives_the_same_model(arguments, tmp_path):
    context = processes()

    def start(out, *more):
        words = [str(each) for each in (*arguments, "--out", out, *more)]
        process = context.Process(target=run_command, args=(words,))
        process.start()
        return process

    for warm_up in ("first", "whole"):  # the first time, the server imports
        begun = time.monotonic()
        process = start(tmp_path / warm_up)
        process.join()
        assert process.exitcode == 0
        took = time.monotonic() - begun
    out = tmp_path / "killed"
    chance = random.Random("killed extreme")
    for _ in range(4):
        process = start(out, "--resume")
        process.join(chance.uniform(0.3, 1) * took)
        process.kill()
        process.join()
    process = start(out, "--resume")
    process.join()
    assert process.exitcode == 0
    assert content(out) == content(tmp_path / "whole")
    left = sorted(path.name.split("-")[0] for path in out.iterdir())
    assert left == ["curve.csv", "curve.png", "model", "model.json"]
