"""`tierrank train` and `tierrank extreme train` on files that are larger than the memory."""

import json

import numpy as np
import pytest

from extreme_files import write_parts
from tierrank.cli import options
from tierrank.data import cache, write_letor

BOOSTED = ("--model", "boosted", "--set", "trees=5")


@pytest.fixture
def file(tmp_path):
    X = np.random.default_rng(0).normal(size=(300, 4))
    write_letor(tmp_path / "train.txt", X, np.digitize(X[:, 0], [0, 1]), np.repeat(range(30), 10))
    return tmp_path / "train.txt"


def content(folder):
    manifest = (folder / "model.json").read_bytes()
    return manifest, (folder / json.loads(manifest)["tensors"]["file"]).read_bytes()


def kept_beside(file):
    return (file.with_name(f"{file.name}.cache") / "cache.json").exists()


@pytest.mark.parametrize("model", [BOOSTED, ("--model", "neural", "--set", "max_epochs=2")])
def test_the_same_model_from_memory_and_from_a_cache(run, tmp_path, file, model):
    assert run("train", file, *model, "--out", tmp_path / "a").code == 0
    assert not kept_beside(file)
    ran = run("train", file, *model, "--out", tmp_path / "b", "--cache")
    assert ran.code == 0, ran.text
    assert kept_beside(file)
    assert content(tmp_path / "a") == content(tmp_path / "b")


def test_a_file_that_would_not_fit_is_kept_on_the_disk(run, tmp_path, file, monkeypatch):
    monkeypatch.setattr(options, "available", lambda: 3 * file.stat().st_size)
    ran = run("train", file, *BOOSTED, "--out", tmp_path / "a", "--no-cache")
    assert ran.code == 0
    assert not kept_beside(file)
    ran = run("train", file, *BOOSTED, "--out", tmp_path / "b")
    assert "train.txt may not fit into memory" in ran.err
    assert kept_beside(file)
    assert content(tmp_path / "a") == content(tmp_path / "b")
    monkeypatch.setattr(options, "available", lambda: None)  # where the system does not say
    assert "may not fit" not in run("train", file, *BOOSTED, "--out", tmp_path / "c").err


def test_what_can_be_had_is_what_the_system_and_the_limits_say():
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_DATA)
    assert (options.available() or 0) > 2**20
    resource.setrlimit(resource.RLIMIT_DATA, (2**40 if before[1] < 0 else before[1], before[1]))
    try:
        assert (options.available() or 0) <= 2**40
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, before)


def test_another_folder_for_the_arrays(run, tmp_path, file):
    ran = run("train", file, *BOOSTED, "--out", tmp_path / "a", "--cache-folder", tmp_path / "big")
    assert ran.code == 0
    assert (tmp_path / "big" / "train.txt.cache" / "cache.json").exists()
    assert not kept_beside(file)


def test_a_place_where_nothing_can_be_written_is_one_line_with_the_option(run, tmp_path, file):
    (tmp_path / "train.txt.cache").write_text("")
    ran = run("train", file, *BOOSTED, "--out", tmp_path / "a", "--cache")
    assert ran.code == 1
    assert "nothing can be written there" in ran.err
    assert "by --cache-folder." in ran.err
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize(
    "arguments", [("--no-cache", "--cache-folder", "x"), ("--cache", "--workers", 2)]
)
def test_options_that_do_not_go_together(run, tmp_path, file, arguments):
    ran = run("train", file, *BOOSTED, "--out", tmp_path / "a", *arguments)
    assert ran.code != 0
    assert "--cache" in ran.err


def test_a_table_with_weights_from_a_cache(run, tmp_path):
    rows = [f"{n // 10},{n % 3},{n * 7 % 11},{n // 10 + 1},{n % 5}" for n in range(200)]
    table = tmp_path / "a.csv"
    table.write_text("qid,label,x,w,z\n" + "\n".join(rows))
    common = ("train", table, *BOOSTED, "--weight-column", "w")
    assert run(*common, "--out", tmp_path / "a").code == 0
    ran = run(*common, "--out", tmp_path / "b", "--cache")
    assert ran.code == 0, ran.text
    assert kept_beside(table)
    assert content(tmp_path / "a") == content(tmp_path / "b")


def test_how_far_the_conversion_is(run, tmp_path, file, monkeypatch):
    monkeypatch.setattr(cache, "PIECE", 1000)
    monkeypatch.setattr(cache, "KEPT", 1)
    monkeypatch.setattr("tierrank.cli.progress.SECONDS_BETWEEN_LINES", 0.0)
    ran = run("train", file, *BOOSTED, "--out", tmp_path / "a", "--cache")
    assert "converting train.txt: " in ran.err
    assert f" of {file.stat().st_size / 1e3:.3g} kB" in ran.err


def test_a_label_ranker_learns_the_same_from_a_cache(run, tmp_path):
    file = write_parts(tmp_path) / "train.txt"
    quick = ("--hidden", 8, "--learning-rate", 0.02, "--epochs", 2)
    assert run("extreme", "train", file, *quick, "--out", tmp_path / "a").code == 0
    ran = run("extreme", "train", file, *quick, "--out", tmp_path / "b", "--cache")
    assert ran.code == 0, ran.text
    assert kept_beside(file)
    assert content(tmp_path / "a") == content(tmp_path / "b")
