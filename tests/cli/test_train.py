"""`tierrank train`: what it reads, prints and leaves behind."""

import csv
import json
import os
from pathlib import Path

import numpy as np
import pytest

import tierrank as tr
from tierrank.data import read_letor, write_letor
from tierrank.data.tables import write_table

DATA = Path(os.environ.get("TIERRANK_DATA", Path(__file__).parents[3] / "shared" / "data"))
PNG = b"\x89PNG\r\n\x1a\n"


def test_the_model_in_the_folder_is_the_estimators(run, fold, tmp_path):
    out = tmp_path / "model"
    ran = run("train", fold / "train.txt", "--model", "linear", "--set", "l2=0.5", "--out", out)
    assert ran.code == 0
    data = read_letor(fold / "train.txt")
    ranker = tr.LinearRanker(l2=0.5, random_state=0).fit(data.X, data.y, qid=data.qid)
    assert np.array_equal(tr.load(out).predict(data.X), ranker.predict(data.X))
    score = ranker.score(data.X, data.y, qid=data.qid)
    assert f"train {score:.4f}" in ran.text
    assert f"The model is in {out}" in ran.text
    assert f"train {len(data):,} 30 " in ran.text
    assert "4 features" in ran.text


def test_the_curve_lies_beside_the_model_and_no_checkpoint_does(fold, model):
    names = sorted(path.name.split("-")[0] for path in model.iterdir())
    assert names == ["curve.csv", "curve.png", "model", "model.json"]
    assert (model / "curve.png").read_bytes().startswith(PNG)
    history = tr.load(model).history_
    rows = list(csv.reader((model / "curve.csv").open()))
    assert rows[0] == ["iteration", "loss", "valid ndcg@10"]
    assert [int(row[0]) for row in rows[1:]] == history.steps
    assert [float(row[1]) for row in rows[1:]] == history.loss
    assert {row[2] for row in rows[1:]} == {""}  # nothing was held out


def test_a_folder_gives_training_validation_and_test_data(run, fold, tmp_path):
    ran = run("train", fold, "--model", "linear", "--out", tmp_path / "m", "--metric", "map")
    assert ran.code == 0
    ranker = tr.load(tmp_path / "m")
    parts = {
        name: read_letor(fold / f"{file}.txt")
        for name, file in {"train": "train", "valid": "vali", "test": "test"}.items()
    }
    for name, part in parts.items():
        assert f"{name} {ranker.score(part.X, part.y, qid=part.qid):.4f}" in ran.text
    valid = parts["valid"]
    assert ranker.history_.metric[-1] == pytest.approx(
        ranker.score(valid.X, valid.y, qid=valid.qid), abs=1e-12
    )


def test_a_fold_of_several_must_be_chosen(run, tmp_path, simulate):
    for part in range(1, 6):
        data = simulate(6, first=100 * part)
        write_letor(tmp_path / "parts" / f"S{part}.txt", data.X, data.y, data.qid)
    arguments = ["train", tmp_path / "parts", "--model", "linear", "--out", tmp_path / "m"]
    ran = run(*arguments)
    assert ran.code == 1
    assert "has 5 folds. Choose one, as with --fold 1" in ran.text
    assert "has folds 1 to 5, and no fold 6" in run(*arguments, "--fold", 6).text
    ran = run(*arguments, "--fold", 2)
    assert ran.code == 0
    assert "train" in ran.text
    assert " 18 " in ran.text  # queries of three parts


def test_a_validation_file_has_the_same_columns_even_if_it_names_fewer(run, fold, tmp_path):
    valid = tmp_path / "valid.txt"
    valid.write_text("1 qid:1 1:0.5\n0 qid:1 1:0.1\n")  # features 2 to 4 are 0
    ran = run(
        "train", fold / "train.txt", "--valid", valid, "--model", "linear",
        "--out", tmp_path / "m",
    )  # fmt: skip
    assert ran.code == 0
    assert "valid 2 1 " in ran.text
    assert tr.load(tmp_path / "m").history_.best_metric is not None


def test_a_share_of_the_queries_is_held_out(run, fold, tmp_path):
    arguments = ["train", fold / "train.txt", "--model", "linear", "--valid-fraction", "0.3"]
    for seed in (1, 1, 2):
        ran = run(*arguments, "--seed", seed, "--out", tmp_path / "m", "--overwrite")
        assert ran.code == 0
    assert "valid" in ran.text
    words = ran.text.split()
    assert words[words.index("train") + 2] == "21"
    assert words[words.index("valid") + 2] == "9"


def test_a_network_holds_out_a_fifth_unless_told_otherwise(run, fold, tmp_path):
    arguments = ["train", fold / "train.txt", "--model", "neural", "--set", "max_epochs=2"]
    ran = run(*arguments, "--set", "hidden=[4]", "--out", tmp_path / "a")
    assert ran.code == 0
    assert "20% of the queries are held out to know when to stop" in ran.text
    assert "kept as of epoch" in ran.text
    words = ran.text.split()
    assert words[words.index("train") + 2] == "24"  # queries
    ran = run(*arguments, "--valid-fraction", 0, "--out", tmp_path / "b")
    assert ran.code == 0
    assert "held out" not in ran.text
    assert tr.load(tmp_path / "b").history_.best_step is None


def test_a_table_gives_its_names_to_the_model(run, tmp_path, simulate):
    table = tmp_path / "train.csv"
    write_table(table, simulate(20), label="grade", query="question")
    lines = table.read_text().splitlines()
    lines = [f"{line},{'note' if row == 0 else 'text'}" for row, line in enumerate(lines)]
    table.write_text("\n".join(lines))
    arguments = ["train", table, "--model", "linear", "--out", tmp_path / "m", "--label", "grade"]
    ran = run(*arguments)
    assert ran.code == 1
    assert "'qid'" in ran.text
    assert "--query" in run("train", "--help").text
    ran = run(*arguments, "--query", "question")
    assert ran.code == 1
    assert "'note'" in ran.text
    ran = run(*arguments, "--query", "question", "--drop", "note")
    assert ran.code == 0
    assert tr.load(tmp_path / "m").feature_names_in_.tolist() == ["x0", "x1", "x2", "x3"]


def test_missing_values_can_be_filled(run, tmp_path):
    file = tmp_path / "train.txt"
    file.write_text("1 qid:1 1:0.5 2:NULL\n0 qid:1 1:0.1 2:1\n1 qid:2 1:1 2:2\n0 qid:2 1:2 2:3\n")
    arguments = ["train", file, "--model", "linear", "--set", "l2=1", "--out", tmp_path / "m"]
    ran = run(*arguments)
    assert ran.code == 1
    assert "NaN" in ran.text
    assert run(*arguments, "--missing", "some").code == 1
    assert run(*arguments, "--missing", "0", "--overwrite").code == 0


def test_a_model_is_not_replaced_unless_asked(run, fold, model):
    before = (model / "model.json").read_bytes()
    arguments = ["train", fold / "train.txt", "--model", "linear", "--out", model]
    ran = run(*arguments, "--objective", "listnet")
    assert ran.code == 1
    assert "holds a model. Choose another --out, or add --overwrite" in ran.text
    assert (model / "model.json").read_bytes() == before
    assert run(*arguments, "--objective", "listnet", "--overwrite").code == 0
    assert tr.load(model).objective == "listnet"
    assert len(list(model.glob("*.safetensors"))) == 1


def test_resuming_a_finished_training_does_nothing(run, fold, model):
    before = {path: path.stat().st_mtime_ns for path in model.iterdir()}
    ran = run("train", fold / "train.txt", "--model", "linear", "--out", model, "--resume")
    assert ran.code == 0
    assert "holds a finished model" in ran.text
    assert {path: path.stat().st_mtime_ns for path in model.iterdir()} == before


def test_resuming_nothing_begins_and_says_so(run, fold, tmp_path):
    ran = run("train", fold, "--model", "linear", "--out", tmp_path / "new", "--resume")
    assert ran.code == 0
    assert "has no checkpoint to go on from: the training begins anew" in ran.text
    assert tr.load(tmp_path / "new")


def test_the_same_command_gives_the_same_files(run, fold, tmp_path):
    for name in ("a", "b"):
        out = tmp_path / name
        assert run("train", fold, "--model", "linear", "--out", out).code == 0
    a, b = ({path.name: path.read_bytes() for path in (tmp_path / x).iterdir()} for x in "ab")
    assert a.keys() == b.keys()
    assert [name for name in a if a[name] != b[name] and name != "curve.png"] == []
    manifest = json.loads(a["model.json"])
    assert "time" not in json.dumps(manifest)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--resume", "--overwrite"], 2, "give one of them"),
        (["--model", "liner"], 1, "there is no model 'liner': use linear, neural, boosted"),
        (["--objective", "listmel"], 1, "did you mean 'listmle'"),
        (["--objective-param", "k"], 1, "write it as NAME=VALUE"),
        (["--objective-param", "k=3"], 1, "do not fit pl-partition"),
        (["--set", "trees=5"], 1, "a linear ranker has no such setting"),
        (["--metric", "ndgc"], 1, "did you mean 'ndcg'"),
        (["--features", "scaled"], 1, "there are no features 'scaled'"),
        (["--fold", "1"], 1, "is a file, so it has no folds"),
        (["--drop", "a"], 1, "is no table"),
        (["--valid", "nowhere.txt"], 1, "nowhere.txt"),
        (["--valid", "x.csv"], 1, "one is a table and one is not"),
        (["--valid", "x", "--valid-fraction", "0.2"], 1, "leave out --valid-fraction"),
        (["--valid-fraction", "2"], 2, "--valid-fraction"),
        (["--seed", "-1"], 2, "--seed"),
        (["--threads", "0"], 2, "--threads"),
    ],
)
def test_wrong_arguments_are_explained(run, fold, tmp_path, arguments, code, message):
    train = ["train", fold / "train.txt", "--out", tmp_path / "m"]
    kind = [] if "--model" in arguments else ["--model", "linear"]
    ran = run(*train, *kind, *arguments)
    assert ran.code == code
    assert message in ran.text
    assert "Traceback" not in ran.text
    assert not (tmp_path / "m").exists()  # nothing was begun


def test_files_that_do_not_serve_are_explained(run, fold, tmp_path):
    arguments = ["--model", "linear", "--out", tmp_path / "m"]
    ran = run("train", tmp_path / "nowhere.txt", *arguments)
    assert ran.code == 1
    assert "nowhere.txt" in ran.text
    bad = tmp_path / "bad.txt"
    bad.write_text("1 qid:1 1:2\n1 qid:1 1:x\n")
    ran = run("train", bad, *arguments)
    assert ran.code == 1
    assert f"{bad}, line 2" in ran.text
    assert run("train", tmp_path, *arguments).code == 1
    bad.write_text("1 qid:1 1:2\n1 qid:1 1:3\n")
    assert "there is nothing to learn" in run("train", bad, *arguments).text
    assert not (tmp_path / "m").exists()  # and so nothing to resume
    assert (
        "is a folder that has its own validation part"
        in run("train", fold, "--valid", bad, *arguments).text
    )
    occupied = tmp_path / "file"
    occupied.write_text("")
    ran = run("train", fold, "--model", "linear", "--out", occupied)
    assert ran.code == 1
    assert "is a file, but a model is a folder" in ran.text


def test_a_full_disk_is_one_line_that_names_the_path_and_leaves_nothing(
    run, fold, tmp_path, model, full_disk
):
    out = tmp_path / "full"
    train = ["train", fold, "--model", "linear", "--out"]
    with full_disk(at=200):
        ran = run(*train, out)
        again = run(*train, model, "--overwrite")
        scores = run("predict", model, fold / "test.txt", "--out", tmp_path / "scores.csv")
    assert (ran.code, again.code, scores.code) == (1, 1, 1)
    assert ran.err == f"Error: {out / 'checkpoint'}: File too large\n"
    assert scores.err == f"Error: {tmp_path / 'scores.csv'}: File too large\n"
    assert not out.exists()
    assert not (tmp_path / "scores.csv").exists()
    assert not list(tmp_path.rglob("*.part"))
    tr.load(model)


@pytest.mark.data
def test_a_fold_of_mq2008_is_ranked_better_than_by_chance(run, tmp_path):
    folder = DATA / "mq2008"
    if not folder.is_dir():
        pytest.skip(f"there is no {folder}: set TIERRANK_DATA to where the data sets are")
    out = tmp_path / "m"
    assert run("train", folder, "--fold", 1, "--model", "linear", "--out", out).code == 0
    ran = run("evaluate", out, folder, "--fold", 1, "--metric", "ndcg@10", "--json")
    (result,) = json.loads(ran.out)["results"]
    assert result["queries"] == 156  # of part S5
    test = read_letor(folder / "S5.txt.xz")
    chance = tr.metrics.ndcg(np.zeros(len(test)), test.y, qid=test.qid, ties="average")
    assert result["low"] > chance
