"""`tierrank train`: what it reads, prints and leaves behind."""

import csv
import json
import sys
from collections import Counter

import numpy as np
import pandas as pd
import pytest

import tierrank as tr
from real_data import real
from tierrank.data import files, read_letor, write_letor
from tierrank.data.tables import write_table
from tierrank.ranking.comparison import hold_out

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


def test_a_file_is_opened_once_and_its_tiers_are_built_once(run, fold, tmp_path, monkeypatch):
    opened, built = Counter(), []
    read_bytes, from_labels = files.read_bytes, tr.Tiers.from_labels

    def read(path, *rest):
        opened[path.name] += 1
        return read_bytes(path, *rest)

    def build(labels, **more):
        built.append(len(labels))
        return from_labels(labels, **more)

    monkeypatch.setattr(files, "read_bytes", read)
    monkeypatch.setattr(tr.Tiers, "from_labels", build)
    parts = [fold / "train.txt", "--valid", fold / "vali.txt"]
    assert run("train", *parts, "--model", "linear", "--out", tmp_path / "m").code == 0
    assert opened == {"train.txt": 1, "vali.txt": 1}
    assert built == [len(read_letor(fold / name)) for name in ("train.txt", "vali.txt")]


def test_a_setting_is_called_as_it_is_typed(run, fold, tmp_path):
    typed = ["train", fold / "train.txt", "--model", "neural", "--out", tmp_path / "m"]
    ran = run(*typed, "--set", "max_epochs=0")
    assert ran.code == 1
    assert "--set max_epochs is a whole number, 1 or more, not 0" in ran.text


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


def test_a_dense_validation_file_of_fewer_features_is_another_data_set(run, fold, tmp_path):
    one = "1 qid:1 1:0.5\n0 qid:1 1:0.1\n"
    (tmp_path / "one.txt").write_text(one)
    ran = run("train", fold / "train.txt", "--valid", tmp_path / "one.txt", "--out", tmp_path / "m")
    assert ran.code == 1
    assert "one.txt: has 1 feature, but train.txt has 4, and the file is dense" in ran.text
    assert not (tmp_path / "m").exists()
    (fold / "vali.txt").write_text(one)
    ran = run("train", fold, "--out", tmp_path / "m")
    assert ran.code == 1
    assert "vali.txt: has 1 feature, but train.txt has 4, and the file is dense" in ran.text


@pytest.mark.filterwarnings("default")  # which the command shows as a note
def test_a_sparse_validation_file_has_the_same_columns_even_if_it_names_fewer(run, fold, tmp_path):
    valid = tmp_path / "valid.txt"
    valid.write_text("1 qid:1 1:0.5\n0 qid:1 2:0.1\n")  # features 3 and 4 are 0
    ran = run(
        "train", fold / "train.txt", "--valid", valid, "--model", "linear",
        "--out", tmp_path / "m",
    )  # fmt: skip
    assert ran.code == 0
    assert "Note: valid.txt has 2 features, and train.txt 4: the file is sparse" in ran.err
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
    assert "best at epoch" in ran.text
    assert "from train and valid" in ran.text
    words = ran.text.split()
    assert words[words.index("train") + 2] == "24"  # queries
    ran = run(*arguments, "--valid-fraction", 0, "--out", tmp_path / "b")
    assert ran.code == 0
    assert "held out" not in ran.text
    assert tr.load(tmp_path / "b").history_.best_step is None


@pytest.mark.filterwarnings("always:no split was possible")
def test_too_few_rows_for_a_tree_are_no_crash(run, tmp_path):
    (tmp_path / "t.csv").write_text("qid,label,a,b\n1,1,0.5,\n1,0,,2\n1,2,1,3\n2,0,7,1\n2,1,2,\n")
    own = ("--valid-fraction", 0, "--set", "min_rows_per_leaf=20")
    ran = run("train", tmp_path / "t.csv", *own, "--out", tmp_path / "m")
    assert ran.code == 0, ran.text
    assert "no split was possible" in ran.text
    assert "0 trees" in ran.text
    assert (tr.load(tmp_path / "m").predict(pd.DataFrame({"a": [1.0], "b": [2.0]})) == 0).all()


@pytest.mark.parametrize("kind", ["linear", "neural"])
def test_a_missing_value_is_met_with_the_step_that_fills_it_in(run, tmp_path, simulate, kind):
    data = simulate(20)
    data.X[3, 1] = np.nan
    write_table(tmp_path / "t.csv", data)
    arguments = ["train", tmp_path / "t.csv", "--model", kind, "--out", tmp_path / "m"]
    ran = run(*arguments)
    assert ran.code == 1
    assert "X[3, 1] is NaN (1 such values in all)" in ran.text
    assert "--features impute --features standardize" in ran.text
    assert "HistGradientBoosting" not in ran.text
    assert not (tmp_path / "m").exists()
    own = ["--features", "impute", "--features", "standardize", "--set", "l2=0.1"]
    if kind == "linear":
        assert run(*arguments, *own).code == 0


@pytest.mark.parametrize("kind", ["linear", "boosted"])
def test_labels_that_the_metric_cannot_measure_are_refused_before_the_fit(
    run, tmp_path, simulate, monkeypatch, kind
):
    monkeypatch.setattr("tierrank.ranking.base.Ranker.fit", lambda *_, **__: pytest.fail("fitted"))
    data = simulate(20)
    data.y[5] = -1
    write_table(tmp_path / "t.csv", data)
    arguments = ["train", tmp_path / "t.csv", "--model", kind, "--out", tmp_path / "m"]
    ran = run(*arguments, "--valid-fraction", 0)
    assert ran.code == 1
    assert "ndcg@10 cannot measure train: labels[5] = -1 is negative" in ran.text
    assert not (tmp_path / "m").exists()
    ran = run("compare", tmp_path / "t.csv", "--model", kind)
    assert ran.code == 1
    assert "= -1 is negative" in ran.text


@pytest.mark.parametrize("command", ["train", "predict", "evaluate", "compare"])
def test_a_message_names_options_that_the_command_has(run, model, tmp_path, simulate, command):
    """The model is of a LETOR file, so it takes a table's columns as they stand."""
    frame = pd.DataFrame(simulate(12).X).add_prefix("x").assign(qid=simulate(12).qid)
    frame = frame.assign(label=simulate(12).y)
    frame.assign(note="text").to_csv(tmp_path / "words.csv", index=False)
    frame.to_csv(tmp_path / "semicolons.csv", index=False, sep=";")
    before, after = {
        "train": (["train", "--overwrite"], ["--model", "linear", "--out", tmp_path / "m"]),
        "compare": (["compare"], ["--model", "linear", "--folds", 2]),
    }.get(command, ([command, model], []))
    for file, said, remedy in (
        ("words.csv", "leave the column out by --drop", ["--drop", "note"]),
        ("semicolons.csv", 'pass --separator ";"?', ["--separator", ";"]),
    ):
        ran = run(*before, tmp_path / file, *after)
        assert ran.code == 1
        assert said in ran.text
        ran = run(
            *before, tmp_path / file, *after, *remedy, *(["--overwrite"] * (command == "train"))
        )
        assert ran.code == 0, ran.text


def weighted_table(path, data, weights):
    """A table with a column `importance` between the features."""
    frame = pd.DataFrame(data.X, columns=data.feature_names)
    frame.insert(2, "importance", weights(data.qid))
    frame.assign(qid=data.qid, label=data.y).to_csv(path, index=False)


def test_a_column_says_how_much_each_query_counts_and_is_no_feature(run, tmp_path, simulate):
    data, valid = simulate(20), simulate(9, first=100)
    weighted_table(tmp_path / "train.csv", data, lambda qid: 1 + qid % 3)
    write_table(tmp_path / "valid.csv", valid)  # which needs no weights
    own = ["--model", "linear", "--weight-column", "importance"]
    arguments = ["train", tmp_path / "train.csv", *own, "--valid", tmp_path / "valid.csv"]
    ran = run(*arguments, "--out", tmp_path / "m")
    assert ran.code == 0, ran.text
    assert "4 features" in ran.text
    weights = 1 + np.arange(20) % 3
    expected = tr.LinearRanker(random_state=0).fit(data.X, data.y, qid=data.qid, weights=weights)
    found = tr.load(tmp_path / "m")
    np.testing.assert_array_equal(found.coef_, expected.coef_)
    assert found.feature_names_in_.tolist() == list(data.feature_names)
    unweighted = tr.LinearRanker().fit(data.X, data.y, qid=data.qid)
    assert not np.allclose(found.coef_, unweighted.coef_, rtol=1e-3)


def test_weights_stay_with_their_queries_when_some_are_held_out_or_in_a_folder(
    run, tmp_path, simulate
):
    folder = tmp_path / "fold"
    folder.mkdir()
    data = simulate(20)
    others = simulate(6, first=50)
    for name, part in {"train": data, "vali": others, "test": others}.items():
        weighted_table(folder / f"{name}.csv", part, lambda qid: 1 + qid % 3)
    own = ["--model", "linear", "--weight-column", "importance", "--missing", "7"]
    assert run("train", folder, *own, "--out", tmp_path / "a").code == 0
    whole = tr.LinearRanker(random_state=0)
    whole.fit(data.X, data.y, qid=data.qid, weights=1 + np.arange(20) % 3)
    np.testing.assert_array_equal(tr.load(tmp_path / "a").coef_, whole.coef_)
    ran = run("train", folder / "train.csv", *own, "--valid-fraction", 0.5, "--out", tmp_path / "b")
    assert ran.code == 0, ran.text
    kept, _ = hold_out(data, 0.5, 0)
    weights = 1 + np.unique(kept.qid) % 3
    half = tr.LinearRanker(random_state=0).fit(kept.X, kept.y, qid=kept.qid, weights=weights)
    np.testing.assert_array_equal(tr.load(tmp_path / "b").coef_, half.coef_)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (lambda qid: np.where(qid == 7, -1.5, 1), "the weight of query 7 (-1.5) is not a finite"),
        (lambda qid: np.where(qid == 7, np.nan, 1), "the weight of query 7 (nan) is not a finite"),
        (lambda qid: np.arange(len(qid)), "the weight of query 0 (1) differs between"),
        (np.zeros_like, "weights are finite, not negative, and not all 0"),
    ],
)
def test_weights_that_cannot_be_are_refused_with_their_query(
    run, tmp_path, simulate, weights, message
):
    weighted_table(tmp_path / "t.csv", simulate(20), weights)
    arguments = ["train", tmp_path / "t.csv", "--model", "linear", "--out", tmp_path / "m"]
    ran = run(*arguments, "--weight-column", "importance", "--missing", "1")
    assert ran.code == 1
    assert message in ran.text
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize("model", ["linear", "boosted", "neural"])
def test_a_column_says_where_a_row_was_shown_and_is_no_feature(run, tmp_path, simulate, model):
    data, valid = simulate(20), simulate(9, first=100)
    places = np.arange(len(data)) % 4 + 1
    frame = pd.DataFrame(data.X, columns=data.feature_names)
    frame.insert(1, "place", places)
    frame.assign(qid=data.qid, label=data.y).to_csv(tmp_path / "t.csv", index=False)
    write_table(tmp_path / "valid.csv", valid)  # which needs no places
    own = ["--model", model, "--position-column", "place", "--out", tmp_path / "m"]
    few = {"linear": [], "boosted": ["--set", "trees=5"], "neural": ["--set", "max_epochs=2"]}
    arguments = ["train", tmp_path / "t.csv", "--valid", tmp_path / "valid.csv", *own, *few[model]]
    ran = run(*arguments)
    assert ran.code == 0, ran.text
    found = tr.load(tmp_path / "m")
    assert found.position_bias_.shape == (4,)
    assert found.feature_names_in_.tolist() == list(data.feature_names)
    if model == "linear":
        same = tr.LinearRanker().fit(data.X, data.y, qid=data.qid, positions=places)
        np.testing.assert_array_equal(found.position_bias_, same.position_bias_)


def test_places_that_cannot_be_are_refused_by_the_name_of_the_option(run, fold, tmp_path, simulate):
    own = ["--model", "linear", "--position-column", "importance", "--out", tmp_path / "m"]
    weighted_table(tmp_path / "t.csv", simulate(9), np.zeros_like)
    ran = run("train", tmp_path / "t.csv", *own)
    assert ran.code == 1
    assert "--position-column is 0.0 for observation 0" in ran.text
    ran = run("train", fold, *own)
    assert "is no table, so it has no columns for --position-column" in ran.text


def test_weights_are_a_column_of_a_table(run, fold, tmp_path, simulate):
    own = ["--model", "linear", "--weight-column", "importanse", "--out", tmp_path / "m"]
    for data in (fold, fold / "train.txt"):
        ran = run("train", data, *own)
        assert ran.code == 1
        assert "is no table, so it has no columns for --weight-column" in ran.text
    weighted_table(tmp_path / "t.csv", simulate(9), np.ones_like)
    ran = run("train", tmp_path / "t.csv", *own)
    assert "no column 'importanse' (for --weight-column): did you mean 'importance'" in ran.text


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


def test_a_training_goes_on_from_a_model_and_refuses_other_columns(run, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    label = np.digitize(X[:, 0] + X[:, 1], [0, 1])

    def table(name, order):
        lines = [",".join(["qid", "label", *(f"f{k}" for k in order)])]
        lines += [
            ",".join(map(str, [row // 6, label[row], *X[row, order]])) for row in range(len(X))
        ]
        (tmp_path / name).write_text("\n".join(lines) + "\n")
        return tmp_path / name

    same, other = table("same.csv", [0, 1, 2]), table("other.csv", [2, 1, 0])
    more = ["--model", "boosted", "--set", "trees=5", "--valid-fraction", "0"]
    assert run("train", same, "--out", tmp_path / "old", *more).code == 0
    go_on = [*more, "--init-model", tmp_path / "old"]
    assert run("train", same, "--out", tmp_path / "new", *go_on).code == 0
    assert len(tr.load(tmp_path / "new").forest_) == 10
    ran = run("train", other, "--out", tmp_path / "wrong", *go_on)
    assert ran.code == 1
    assert "feature 1 is 'f2', but of init_model it was 'f0'" in ran.text
    ran = run("train", same, "--out", tmp_path / "none", *more, "--init-model", tmp_path / "not")
    assert ran.code == 1
    assert "not" in ran.text


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
        (["--set", "l2=much"], 1, "--set l2: 'much' is no number, as l2=0.0 has one"),
        (["--metric", "ndgc"], 1, "did you mean 'ndcg'"),
        (["--features", "scaled"], 1, "there are no features 'scaled'"),
        (["--fold", "1"], 1, "is a file, so it has no folds"),
        (["--drop", "a"], 1, "is no table"),
        (["--label", "grade"], 1, "is no table, so it has no columns for --label"),
        (["--query", "session"], 1, "is no table, so it has no columns for --query"),
        (["--valid", "."], 1, ".: is a folder: give one of its files."),
        (["--features", "impute:by=1"], 1, "has no parameter 'by'. It has value, indicator"),
        (["--init-model", "nowhere"], 1, "nowhere: there is no such folder"),
        (["--valid", "nowhere.txt"], 1, "nowhere.txt"),
        (["--valid", "x.csv"], 1, "one is a table and one is not"),
        (["--valid", "x", "--valid-fraction", "0.2"], 1, "leave out --valid-fraction"),
        (["--valid-fraction", "2"], 2, "--valid-fraction"),
        (["--seed", "-1"], 2, "--seed"),
        (["--threads", "0"], 2, "--threads"),
    ],
)
def test_wrong_arguments_are_explained(run, fold, tmp_path, monkeypatch, arguments, code, message):
    monkeypatch.chdir(tmp_path)
    for name in ("x", "x.csv"):  # a file that is not there is refused before all else
        (tmp_path / name).touch()
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


def test_a_library_that_is_missing_leaves_nothing_to_resume(run, fold, tmp_path, monkeypatch):
    typed = ["train", fold / "train.txt", "--model", "neural", "--out", tmp_path / "model"]
    monkeypatch.setitem(sys.modules, "lightning_fabric", None)  # importing it fails
    ran = run(*typed, "--set", "max_epochs=1")
    assert ran.code == 1
    assert 'pip install "tierrank[neural]"' in ran.text
    assert not (tmp_path / "model").exists()


@pytest.mark.data
def test_a_fold_of_mq2008_is_ranked_better_than_by_chance(run, tmp_path):
    folder = real("mq2008")
    out = tmp_path / "m"
    assert run("train", folder, "--fold", 1, "--model", "linear", "--out", out).code == 0
    ran = run("evaluate", out, folder, "--fold", 1, "--metric", "ndcg@10", "--json")
    (result,) = json.loads(ran.out)["results"]
    assert result["queries"] == 156  # of part S5
    test = read_letor(folder / "S5.txt.xz")
    chance = tr.metrics.ndcg(np.zeros(len(test)), test.y, qid=test.qid, ties="average")
    assert result["low"] > chance


def test_a_refit_is_said_and_measured_by_nothing_it_has_learned_from(run, fold, tmp_path):
    arguments = ["train", fold, "--model", "boosted", "--set", "trees=20", "--set", "leaves=4"]
    ran = run(*arguments, "--out", tmp_path / "refit", "--members", 2)
    assert ran.code == 0
    assert "then all is learned once more from train and valid (--no-refit: it is not)" in ran.text
    before = run(*arguments, "--out", tmp_path / "before", "--no-refit")
    assert "learned once more" not in before.text
    ranker, plain = tr.load(tmp_path / "refit"), tr.load(tmp_path / "before")
    assert plain.history_.refit is None
    history = ranker.history_
    assert (history.best_step, history.best_metric) == (
        plain.history_.best_step,
        plain.history_.best_metric,
    )
    assert f"valid, before the refit {history.best_metric:.4f}" in ran.text
    assert f"valid {history.best_metric:.4f}" in before.text
    assert f"best at tree {history.best_step}, then {history.refit} from" in ran.text
    assert "mean of 2 models" in ran.text
    assert len(ranker.forest_) == 2 * history.refit
    test = read_letor(fold / "test.txt")
    assert f"test {ranker.score(test.X, test.y, qid=test.qid):.4f}" in ran.text


def test_a_refit_without_validation_data_is_refused_by_the_options_name(run, fold, tmp_path):
    arguments = ["train", fold / "train.txt", "--model", "linear", "--out", tmp_path / "m"]
    ran = run(*arguments, "--refit")
    assert ran.code != 0
    assert "--refit learns once more" in ran.text
    for name in ("refit=true", "members=2"):
        ran = run(*arguments, "--set", name)
        assert f"use --{name.partition('=')[0]}." in ran.text


def test_the_best_model_is_a_blend_of_three(run, fold, tmp_path):
    small = ["--set", 'boosted={"trees": 10, "threads": 1}', "--set", 'neural={"max_epochs": 2}']
    ran = run("train", fold, "--model", "best", *small, "--out", tmp_path / "m")
    assert ran.code == 0, ran.text
    ranker = tr.load(tmp_path / "m")
    assert list(ranker.weights_) == ["boosted", "linear", "neural"]
    assert f"weights of standardised scores: boosted {ranker.weights_['boosted']:.3f}" in ran.text
    assert f"valid, before the refit {ranker.history_.best_metric:.4f}" in ran.text
    test = read_letor(fold / "test.txt")
    assert f"test {ranker.score(test.X, test.y, qid=test.qid):.4f}" in ran.text
