"""A training that is killed at a random moment and resumed gives the same model."""

import json
import os
import random
import subprocess
import sys
import time

import pytest

from killable import processes, run_command
from tierrank import storage

# How often each kind is killed; more for a thorough look.
RUNS = int(os.environ.get("TIERRANK_KILLED_RUNS", "3"))

SETTINGS = {
    "linear": ["--set", "tol=0", "--set", "max_iter=60", "--objective", "rao-kupper"],
    "neural": ["--set", "max_epochs=8", "--set", "batch_lists=4", "--set", "dropout=0.2"],
    "boosted": ["--set", "trees=200", "--set", "patience=null", "--set", "row_fraction=0.7",
                "--set", "feature_fraction=0.7"],
}  # fmt: skip


def content(folder):
    manifest = (folder / "model.json").read_bytes()
    tensors = folder / json.loads(manifest)["tensors"]["file"]
    return manifest, tensors.read_bytes()


def check_that_all_is_whole(out):
    """What has its final name can be read; what has not is a hidden .part that nobody reads."""
    refit = out / "checkpoint" / "refit-0"
    for folder, name in (
        (out, "model"), (out / "checkpoint", "checkpoint"), (refit, "checkpoint"),
    ):  # fmt: skip
        if storage.exists(folder, name):
            storage.read(folder, name)
    for path in out.rglob("*"):
        known = path == refit or path.name.startswith(
            ("model", "checkpoint", "curve", ".checkpoint.old")
        )
        assert known or (path.name.startswith(".") and path.suffix == ".part"), path
    curve = out / "curve.csv"
    if curve.exists():
        assert curve.read_text().endswith("\n")
    plot = out / "curve.png"
    if plot.exists():
        assert plot.read_bytes().endswith(b"IEND\xaeB`\x82")


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes that can be forked")
@pytest.mark.parametrize("kind", SETTINGS)
def test_killed_at_random_moments_and_resumed_it_gives_the_same_model(kind, fold, tmp_path):
    arguments = ["train", str(fold), "--model", kind, "--threads", "1", "--checkpoint-every", "0"]
    arguments += SETTINGS[kind]
    context = processes()

    def start(out, *more):
        process = context.Process(
            target=run_command, args=([*arguments, "--out", str(out), *more],)
        )
        process.start()
        return process

    for warm_up in ("first", "whole"):  # the first time, the server imports
        begun = time.monotonic()
        process = start(tmp_path / warm_up)
        process.join()
        assert process.exitcode == 0
        took = time.monotonic() - begun
    expected = content(tmp_path / "whole")

    chance = random.Random(f"killed {kind}")
    for attempt in range(RUNS):
        out = tmp_path / f"killed {attempt}"
        for _ in range(2):
            process = start(out, "--resume")
            process.join(chance.uniform(0.05, 1) * took)
            process.kill()
            process.join()
            if out.exists():
                check_that_all_is_whole(out)
        process = start(out, "--resume")
        process.join()
        assert process.exitcode == 0
        check_that_all_is_whole(out)
        assert content(out) == expected
        left = sorted(path.name.split("-")[0] for path in out.iterdir())
        assert left == ["curve.csv", "curve.png", "model", "model.json"]


def test_what_killed_processes_left_is_swept_away(run, fold, tmp_path):
    out = tmp_path / "m"
    (out / "checkpoint").mkdir(parents=True)
    (out / ".checkpoint.old").mkdir()
    for name in (".model.json.77.part", "checkpoint/.checkpoint.json.77.part"):
        (out / name).write_bytes(b"{")
    (out / ".mine.part").write_text("mine")
    ran = run("train", fold, "--model", "linear", "--out", out, "--resume")
    assert ran.code == 0
    assert "begins anew" in ran.text
    assert sorted(path.name.split("-")[0] for path in out.iterdir()) == [
        ".mine.part", "curve.csv", "curve.png", "model", "model.json",
    ]  # fmt: skip


@pytest.mark.slow
def test_a_pipe_that_is_closed_early_is_no_error(fold, model):
    code = f"{sys.executable} -m tierrank predict {model} {fold / 'train.txt'} | head -n 1"
    ran = subprocess.run(code, shell=True, capture_output=True, text=True, check=True)
    assert float(ran.stdout)
    assert ran.stderr == ""
