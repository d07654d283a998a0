"""`tierrank extreme train`: what it reads, prints and leaves behind."""

import csv
import json
from collections import Counter

import numpy as np
import pytest

import tierrank as tr
from extreme_files import SETTINGS, fitted, label_sets, write_parts
from real_data import real
from tierrank.cli import extreme_train as command
from tierrank.cli.progress import in_use
from tierrank.data import files as data_files
from tierrank.data import write_xc

PNG = b"\x89PNG\r\n\x1a\n"
QUICK = ["--hidden", 8, "--learning-rate", 0.02, "--epochs", 3, "--set", "refit=false"]


@pytest.fixture
def files(tmp_path):
    return write_parts(tmp_path)


@pytest.fixture
def train(run, files):
    def train(*arguments, out="model"):
        return run("extreme", "train", *arguments, "--out", files / out)

    return train


def content(folder):
    manifest = (folder / "model.json").read_bytes()
    return manifest, (folder / json.loads(manifest)["tensors"]["file"]).read_bytes()


def test_the_model_in_the_folder_is_the_estimators(train, files):
    ran = train(files / "train.txt", *QUICK)
    assert ran.code == 0, ran.text
    ranker = fitted()
    tr.save(ranker, files / "expected")
    # learning rates come as a list from the command line: all else is the same
    info, arrays = tr.load(files / "model").to_state()
    expected_info, expected = tr.load(files / "expected").to_state()
    assert info.pop("params") | {"learning_rate": 0.02} == expected_info.pop("params")
    assert info == expected_info
    assert arrays.keys() == expected.keys()
    assert all(np.array_equal(arrays[name], expected[name]) for name in arrays)


def test_it_says_what_there_is_and_how_it_went(train, files):
    rates = ["--learning-rate", 0.02, "--learning-rate", 0.001]
    ran = train(files / "train.txt", "--hidden", 8, "--epochs", 2, *rates, "--metric", "ndcg@3")
    data, _ = label_sets()
    of = data.describe()
    assert "25 labels, 60 features" in ran.text
    assert (
        f"train {of.rows} {of.features_a_row:.1f} {of.labels_a_row:.1f} {of.rows_without_label} "
        f"{of.labels_never_seen} " in ran.text
    )
    assert "by pl-partition, learning rates 0.02, 0.001, dropped when behind" in ran.text
    assert ran.text.count("features: l2 (sparse, real values)") == 2  # before, and of the model
    assert "The best epoch by ndcg@3 on 25% of the rows is kept" in ran.text
    ranker = tr.load(files / "model")
    for trial in ranker.trials_:
        kept = "kept " * (trial["learning_rate"] == ranker.learning_rate_)
        epochs = f"{trial['epoch']} {trial['epochs']}"
        shown = f"{trial['learning_rate']:g} {trial['metric']:.4f} {epochs} {kept}"
        assert shown in ran.text
    assert f"Kept: learning rate {ranker.learning_rate_:g}, epoch" in ran.text
    assert f"The model is in {files / 'model'}" in ran.text


def test_a_learning_rate_that_went_astray_is_named(train, files):
    rates = ["--learning-rate", 0.02, "--learning-rate", 1e38]
    ran = train(files / "train.txt", "--hidden", 8, "--epochs", 2, *rates)
    assert ran.code == 0, ran.text
    assert "1e+38 went astray" in ran.text
    assert "Kept: learning rate 0.02" in ran.text


@pytest.mark.usefixtures("drawn_curves")
def test_the_curve_lies_beside_the_model_and_no_checkpoint_does(train, files):
    assert train(files / "train.txt", *QUICK).code == 0
    out = files / "model"
    names = sorted(path.name.split("-")[0] for path in out.iterdir())
    assert names == ["curve.csv", "curve.png", "model", "model.json"]
    assert (out / "curve.png").read_bytes().startswith(PNG)
    history = tr.load(out).history_
    rows = list(csv.reader((out / "curve.csv").open()))
    assert rows[0] == ["epoch", "loss", "valid p@5"]
    assert [float(row[1]) for row in rows[1:]] == history.loss
    assert [float(row[2]) for row in rows[1:]] == history.metric


def test_all_formats_give_the_same_model(train, files):
    assert train(files / "train.txt", *QUICK, out="one").code == 0
    for kind in ("txt", "npz"):
        pair = [files / f"train_X.{kind}", "--labels", files / f"train_Y.{kind}"]
        assert train(*pair, *QUICK, out=kind).code == 0
        assert content(files / kind) == content(files / "one")


def test_validation_data_may_be_a_file(train, files):
    valid = [files / "test_X.npz", "--valid-labels", files / "test_Y.txt"]
    ran = train(files / "train.txt", *QUICK, "--valid", *valid)
    assert ran.code == 0, ran.text
    ranker = tr.load(files / "model")
    _, test = label_sets()
    assert ranker.history_.best_metric == pytest.approx(ranker.score(test.X, test.Y), abs=1e-12)
    assert "valid 40 " in ran.text
    assert f"{ranker.history_.best_metric:.4f}" in ran.text


def test_files_without_a_header_get_as_many_columns_as_any_of_them_has(train, files):
    def without_header(name):
        lines = (files / f"{name}.txt").read_text().splitlines(keepends=True)
        (files / f"bare {name}.txt").write_text("".join(lines[1:]))
        return files / f"bare {name}.txt"

    (files / "short.txt").write_text("1,3 0:1 5:0.5\n2 1:1\n")  # 4 labels, 6 features
    bare = without_header("train")
    ran = train(bare, *QUICK, "--valid", files / "short.txt")
    assert ran.code == 0, ran.text
    assert f"the files differ in features: {bare} has 60, {files / 'short.txt'} has 6." in ran.text
    assert "the files differ in labels" in ran.text
    ran = train(files / "short.txt", *QUICK, "--valid-fraction", 0, "--n-features", 60,
                "--n-labels", 25, out="wide")  # fmt: skip
    assert ran.code == 0, ran.text
    assert "differ" not in ran.text
    assert run_top(files / "wide") == (2, 5)


def run_top(folder):
    _, test = label_sets()
    return tr.load(folder).predict(test.X[:2], k=5).shape


def test_a_split_file_chooses_rows(train, files):
    data, _ = label_sets()
    rows = np.random.default_rng(0).permutation(120)[:80]
    lines = [f"{1 + row} {1 + other}\n" for other, row in enumerate(rows)]
    (files / "split.txt").write_text("".join(lines))
    write_xc(files / "chosen.txt", data.select(rows))
    split = ["--split", files / "split.txt", "--split-column"]
    assert train(files / "train.txt", *QUICK, *split, 0, out="split").code == 0
    assert train(files / "chosen.txt", *QUICK, out="chosen").code == 0
    assert content(files / "split") == content(files / "chosen")
    refused = train(files / "train.txt", *QUICK, *split, 2, out="no")
    assert refused.code == 1
    assert "split.txt, line 1: has 2 columns" in refused.text
    (files / "split.txt").write_text("1\n500\n")
    refused = train(files / "train.txt", *QUICK, *split, 0, out="no")
    assert refused.code == 1
    assert "split.txt: rows[1] is 499, but there are 120 rows" in refused.text


def test_options_reach_the_estimator(train, files):
    ran = train(
        files / "train.txt", "--objective", "rank-svm", "--hidden", 6, "--hidden", 5, "--epochs", 2,
        "--patience", 1, "--batch", 32, "--negatives", 7, "--sampler", "frequency",
        "--learning-rate", 0.01, "--valid-fraction", 0.4, "--metric", "psp@3", "--seed", 5,
        "--set", "members=2", "--set", "optimiser=adagrad", "--set", "refit=true",
    )  # fmt: skip
    assert ran.code == 0, ran.text
    params = tr.load(files / "model").get_params()
    expected = {
        "objective": "ranksvm", "hidden": [6, 5], "max_epochs": 2, "patience": 1, "batch_rows": 32,
        "negatives": 7, "sampler": "frequency", "learning_rate": [0.01], "validation": 0.4,
        "metric": "psp@3", "random_state": 5, "members": 2, "optimiser": "adagrad", "refit": True,
    }  # fmt: skip
    assert {name: params[name] for name in expected} == expected
    assert "2 networks, learned once more from all rows" in ran.text


def test_several_networks_are_judged_together(train, files):
    ran = train(files / "train.txt", *QUICK, "--valid", files / "test.txt", "--set", "members=2")
    assert ran.code == 0, ran.text
    _, test = label_sets()
    score = tr.load(files / "model").score(test.X, test.Y)
    assert f"All of it together: valid p@5 {score:.4f}" in ran.text


def test_without_validation_data_all_epochs_are_taken(train, files):
    ran = train(files / "train.txt", *QUICK, "--valid-fraction", 0)
    assert ran.code == 0, ran.text
    ranker = tr.load(files / "model")
    assert ranker.history_.steps == [1, 2, 3]
    assert ranker.trials_[0]["metric"] is None
    assert "valid p@5" not in ran.text
    assert "Kept: learning rate 0.02, epoch 3;" in ran.text


@pytest.mark.parametrize(
    ("settings", "rates", "judged", "best", "earlier", "moments"),
    [
        ({}, 1, True, 1, 1, 2),
        ({"refit": False}, 1, True, 1, 0, 2),
        ({}, 3, True, 1, 1, 2),
        ({"optimiser": "adagrad", "hidden": [7, 5]}, 1, False, 0, 0, 1),
        ({"members": 3, "hidden": [4, 4, 9]}, 3, True, 1, 3, 2),
        ({"skip": True}, 3, True, 1, 1, 2),
        ({"members": 2, "refit": True}, 1, True, 1, 2, 2),
    ],
)
def test_memory_is_that_of_the_networks_and_of_what_adam_remembers(
    settings, rates, judged, best, earlier, moments
):
    from tierrank.extreme.learner import RowOptimiser

    ranker = tr.ExtremeRanker(**({"hidden": 6} | settings))
    ranker.n_features_in_, ranker.n_labels_ = 11, 13
    parameters = {name: each.detach() for name, each in ranker._network().named_parameters()}
    weights = sum(each.nbytes for each in parameters.values())
    optimiser = RowOptimiser(parameters, name=ranker.optimiser, learning_rate=1.0)
    remembered = sum(each.nbytes for part in optimiser.moments.values() for each in part.values())
    assert remembered == moments * weights
    found = list(command.needs(ranker, 11, 13, learning_rates=rates, judged=judged).values())
    expected = [weights, remembered, best * weights, earlier * weights]
    assert found[:-1] == [each for each in expected if each]
    assert found[-1] == weights  # a checkpoint is written from a copy


def test_too_little_memory_is_said_beforehand(train, files, monkeypatch):
    monkeypatch.setattr(command, "available", lambda: 5000)
    ran = train(files / "train.txt", *QUICK)
    assert ran.code == 0
    assert "that is more than the 5 kB that are free" in ran.text
    monkeypatch.setattr(command, "available", lambda: None)  # where the system does not say
    ran = train(files / "train.txt", *QUICK, out="other")
    assert ran.code == 0
    assert "free" not in ran.text


def test_memory_in_use_grows_with_what_is_held():
    before = in_use()
    held = np.ones(20_000_000)  # 160 MB: too large for room that was given back before
    assert in_use() - before > 0.9 * held.nbytes
    assert command.available() > held.nbytes


def test_a_file_is_opened_once(train, files, monkeypatch):
    opened, read_bytes = Counter(), data_files.read_bytes

    def read(path, *rest):
        opened[path.name] += 1
        return read_bytes(path, *rest)

    monkeypatch.setattr(data_files, "read_bytes", read)
    parts = [
        files / "train_X.txt",
        "--labels",
        files / "train_Y.txt",
        "--valid",
        files / "test.txt",
    ]
    assert train(*parts, *QUICK).code == 0
    assert opened == {"train_X.txt": 1, "train_Y.txt": 1, "test.txt": 1}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train_X.txt"], "holds features alone: give the file of their labels as --labels"),
        (["train_X.npz"], "holds features alone: give the file of their labels as --labels"),
        (["train.txt", "--labels", "train_Y.txt"],
         "this holds features and labels: leave out --labels, or give the file of the features"),
        (["train_X.txt", "--labels", "test_Y.txt"], "has 40 rows, but train_X.txt has 120"),
        (["nowhere.txt"], "nowhere.txt: No such file or directory"),
        (["."], "is a folder: give one of its files"),
        (["train.txt", "--valid", "test_X.txt"],
         "test_X.txt, line 1, column 1: the header has two numbers, and should be three"),
        (["train.txt", "--valid-labels", "test_Y.txt"], "those of --valid: give that as well"),
        (["train.txt", "--valid", "test.txt", "--valid-fraction", "0.2"],
         "leave out --valid-fraction"),
        (["train.txt", "--valid-fraction", "0"], "give one, as with --learning-rate 0.001"),
        (["train.txt", "--n-labels", "7"], "--n-labels is 7, but there are 25 in the files"),
        (["train.txt", "--objective", "listmle"], "--objective listmle: use pl-partition, pl-lb"),
        (["train.txt", "--objective", "softmax"], "--objective softmax: use pl-partition, pl-lb"),
        (["train.txt", "--metric", "p"], "does not say how many places count"),
        (["train.txt", "--sampler", "uniform"], "say how many, with --negatives"),
        (["train.txt", "--negatives", "5", "--sampler", "best"], "sampler is one of uniform"),
        (["train.txt", "--set", "hidden=8"], "--set hidden: use --hidden"),
        (["train.txt", "--set", "max_epochs=8"], "--set max_epochs: use --epochs"),
        (["train.txt", "--set", "member=8"], "Did you mean 'members'?"),
        (["train.txt", "--set", "members=many"], "members is a whole number, 1 or more"),
        (["train.txt", "--learning-rate", "-1"], "--learning-rate is a number above 0"),
    ],
)  # fmt: skip
def test_what_does_not_go_together_is_refused(train, files, monkeypatch, arguments, message):
    monkeypatch.chdir(files)
    ran = train(*arguments)
    assert ran.code == 1
    assert message in ran.text
    assert not (files / "model").exists()


def test_a_refused_fit_leaves_nothing(train, files):
    (files / "unlabelled.txt").write_text("4 2 3\n 0:1\n 1:1\n 0:2\n 0:3\n")
    ran = train(files / "unlabelled.txt", *QUICK)
    assert ran.code == 1
    assert "no row has a label" in ran.text
    assert not (files / "model").exists()


def test_a_model_is_not_replaced_unless_that_is_said(train, files):
    assert train(files / "train.txt", *QUICK).code == 0
    before = content(files / "model")
    ran = train(files / "train.txt", *QUICK, "--seed", 1)
    assert ran.code == 1
    assert "holds a model. Choose another --out, or add --overwrite" in ran.text
    assert content(files / "model") == before
    assert "nothing to go on with" in train(files / "train.txt", *QUICK, "--resume").text
    assert train(files / "train.txt", *QUICK, "--seed", 1, "--overwrite").code == 0
    assert content(files / "model") != before
    assert train(files / "train.txt", "--resume", "--overwrite").code == 2


def test_the_commands_are_listed_in_the_order_of_use(run):
    assert "extreme" in run("--help").text
    text = run("extreme", "--help").text
    assert text.index("train ") < text.index("predict ") < text.index("evaluate ")


def test_what_is_printed_fits_a_terminal(run, files):
    arguments = ["extreme", "train", files / "train.txt", *QUICK, "--out", files / "m"]
    ran = run(*arguments, columns=80)
    assert max(map(len, ran.out.splitlines()[:-1])) <= 80  # the last one names the folder


@pytest.mark.slow
@pytest.mark.data
def test_delicious_from_file_to_measures(run, tmp_path):
    folder = real("delicious")
    ran = run(
        "extreme", "train", folder / "train.txt.xz", "--learning-rate", 0.01, "--epochs", 1,
        "--hidden", SETTINGS["hidden"], "--out", tmp_path / "m",
    )  # fmt: skip
    assert ran.code == 0
    assert "983 labels, 500 features" in ran.text
    assert "train 12,920 18.5 19.0 " in ran.text
    ran = run("extreme", "evaluate", tmp_path / "m", folder / "test.txt.xz", "--json")
    values = {each["metric"]: each["mean"] for each in json.loads(ran.out)["results"]}
    assert values["P@1"] > 0.3  # the most frequent label alone has 0.41


def test_a_full_disk_is_one_line_that_names_the_path_and_leaves_nothing(train, files, full_disk):
    assert train(files / "train.txt", *QUICK, out="whole").code == 0
    with full_disk(at=200):
        ran = train(files / "train.txt", *QUICK)
    assert ran.code == 1
    assert ran.err.endswith(f"Error: {files / 'model' / 'checkpoint'}: File too large\n")
    assert not (files / "model").exists()
