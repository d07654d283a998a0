"""`tierrank evaluate`: means, intervals and differences, to read and for programs."""

import csv
import io
import json

import numpy as np
import pytest

import tierrank as tr
from tierrank import metrics
from tierrank.data import read_letor


@pytest.fixture
def other(train_once, tmp_path):
    """A second model."""
    return train_once(tmp_path / "other", "--objective", "listnet")


@pytest.fixture
def test_rows(fold):
    return read_letor(fold / "test.txt")


def per_query(model, rows, name, **options):
    scores = tr.load(model).predict(rows.X)
    return metrics.from_name(name, **options)(scores, rows.y, qid=rows.qid, reduction="none")


def test_one_model_by_the_usual_metrics(run, fold, model, test_rows):
    ran = run("evaluate", model, fold / "test.txt", columns=80)
    assert ran.code == 0
    for name in ("ndcg@1", "ndcg@5", "ndcg@10", "err", "map", "mrr"):
        interval = metrics.bootstrap_interval(per_query(model, test_rows, name))
        shown = f"{name} {interval.mean:.4f} {interval.low:.4f} {interval.high:.4f}"
        assert shown in ran.text
    assert "12 queries" in ran.text
    assert max(len(line) for line in ran.out.splitlines()) <= 80


def test_models_are_compared_with_the_first(run, fold, model, other, test_rows):
    ran = run("evaluate", model, other, fold / "test.txt", "--metric", "ndcg@5", "--json")
    assert ran.code == 0
    first, second = json.loads(ran.out)["results"]
    a, b = (per_query(each, test_rows, "ndcg@5") for each in (model, other))
    test = metrics.paired_test(b, a)
    assert first["name"] == str(model)
    assert first["difference"] is None
    assert second["mean"] == pytest.approx(b.mean())
    assert second["difference"] == pytest.approx(b.mean() - a.mean())
    assert (second["difference_low"], second["difference_high"]) == (test.low, test.high)
    assert second["p_value"] == test.p_value
    shown = run("evaluate", model, other, fold / "test.txt", "--metric", "ndcg@5").text
    assert f"{test.difference:+.4f} {test.low:+.4f} {test.high:+.4f} {test.p_value:.3f}" in shown


def test_csv_and_json_hold_the_same(run, fold, model, other):
    arguments = ["evaluate", model, other, fold / "test.txt", "--metric", "map", "--metric", "err"]
    results = json.loads(run(*arguments, "--json").out)["results"]
    rows = list(csv.DictReader(io.StringIO(run(*arguments, "--csv").out)))
    assert len(rows) == len(results) == 4
    for row, result in zip(rows, results, strict=True):
        for key, value in result.items():
            assert row[key] == ("" if value is None else str(value))


def test_scores_of_any_tool_can_be_evaluated(run, fold, model, tmp_path):
    plain, table = tmp_path / "scores.txt", tmp_path / "scores.csv"
    for file in (plain, table):
        assert run("predict", model, fold / "test.txt", "--out", file).code == 0
    ran = run("evaluate", model, plain, table, fold / "test.txt", "--json")
    assert ran.code == 0
    results = json.loads(ran.out)["results"]
    assert len(results) == 18
    for result in results:
        assert result["difference"] in (None, 0.0)


def test_a_folder_is_evaluated_by_its_test_part(run, fold, model):
    by_folder = json.loads(run("evaluate", model, fold, "--json").out)
    by_file = json.loads(run("evaluate", model, fold / "test.txt", "--json").out)
    assert by_folder["results"] == by_file["results"]


def test_conventions_reach_the_metrics(run, model, tmp_path):
    data = tmp_path / "d.txt"
    data.write_text(
        "2 qid:1 1:0.5 4:0\n1 qid:1 1:0.1\n0 qid:1 1:0.5\n0 qid:2 1:1\n0 qid:2 1:2\n"
        "1 qid:3 1:1\n0 qid:3 1:2\n"
    )
    rows = read_letor(data, n_features=4, dense=True)
    for options in (
        {"gain": "linear"},
        {"ties": "input"},
        {"empty": "skip"},
        {"empty": 1.0},
        {"gain": "linear", "ties": "input", "empty": 0.5},
    ):
        typed = [word for key, value in options.items() for word in (f"--{key}", str(value))]
        ran = run("evaluate", model, data, "--metric", "ndcg@5", "--json", *typed)
        assert ran.code == 0
        (result,) = json.loads(ran.out)["results"]
        expected = per_query(model, rows, "ndcg@5", **options)
        assert result["mean"] == pytest.approx(np.nanmean(expected))
        assert result["queries"] == (2 if options.get("empty") == "skip" else 3)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["{model}", "{data}", "--json", "--csv"], 2, "give one of them"),
        (["{model}", "{data}", "--metric", "ndgc"], 1, "'ndgc'; did you mean 'ndcg'? The metrics"),
        (["{model}", "{data}", "--metric", "speed"], 1, "no metric 'speed'. The metrics are"),
        (["{model}", "{data}", "--metric", "map", "--metric", "map"], 1, "one metric twice"),
        (["{model}", "{data}", "--metric", "tau-b", "--gain", "linear"], 1, "--gain means nothing"),
        (["{model}", "{data}", "--gain", "log"], 1, "gain"),
        (["{model}", "{data}", "--empty", "leave"], 1, "empty"),
        (["{data}", "{model}"], 1, "The data come last"),
        (["{model}", "{model}", "{data}"], 1, "is given twice"),
        (["{model}"], 2, "Missing argument"),
        (
            ["nothing", "{data}"],
            1,
            "nothing: there is no such model, nor a file of scores or predictions",
        ),
        (["{model}", "nothing.txt"], 1, "nothing.txt: No such file"),
        (["{model}", "{data}", "--fold", "1"], 1, "it has no folds"),
        (["{short}", "{data}"], 1, "has 2 scores, but the data have"),
        (["{wrong}", "{data}"], 1, "line 2: 'b' is no score"),
        (["{infinite}", "{data}"], 1, "line 1: the score is inf"),
        (["{table}", "{data}"], 1, "has no column called score"),
        (["{long}", "{data}"], 1, "cannot be read as CSV: field larger than field limit"),
    ],
)
def test_wrong_arguments_are_explained(run, fold, model, tmp_path, arguments, code, message):
    files = {"short.txt": "1\n2\n", "wrong.txt": "1\nb\n", "infinite.txt": "inf\n"}
    files |= {"table.csv": "a,b\n1,2\n", "long.csv": f"score,note\n1,{'x' * 200_000}\n"}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    places = {name.partition(".")[0]: tmp_path / name for name in files}
    places |= {"model": model, "data": fold / "test.txt"}
    ran = run("evaluate", *(each.format(**places) for each in arguments))
    assert ran.code == code
    assert message in ran.text
    assert "Traceback" not in ran.text


def test_standard_input_gives_the_data_or_the_scores(run, fold, model):
    test = fold / "test.txt"
    expected = run("evaluate", model, test, "--csv")
    assert run("evaluate", model, "-", "--csv", input=test.read_bytes()).out == expected.out
    for more in ([], ["--out", fold / "scores.csv"]):
        scores = run("predict", model, test, *more).out.encode()
        scores = scores or (fold / "scores.csv").read_bytes()
        ran = run("evaluate", "-", test, "--csv", input=scores)
        assert ran.out == expected.out.replace(str(model), "standard input")
    both = run("evaluate", "-", "-", input=scores)
    assert both.code == 1
    assert "standard input (-) is given twice" in both.err
