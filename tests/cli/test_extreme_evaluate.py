"""`tierrank extreme evaluate`: measures of models and of files of predictions."""

import csv
import io
import json

import numpy as np
import pytest

import tierrank as tr
from extreme_files import fitted, label_sets, write_parts
from tierrank.metrics import bootstrap_interval, labels, paired_test

MEASURES = ("P", "nDCG", "PSP", "PSnDCG")


@pytest.fixture(scope="module")
def ranker():
    return fitted()


@pytest.fixture
def files(tmp_path, ranker):
    tr.save(ranker, tmp_path / "labels")
    return write_parts(tmp_path)


@pytest.fixture
def evaluate(run, files):
    def evaluate(*arguments, columns=200):
        return run("extreme", "evaluate", *arguments, columns=columns)

    return evaluate


def means(ran):
    return {each["metric"]: each["mean"] for each in json.loads(ran.out)["results"]}


def test_a_table_has_all_measures_in_percent_with_their_intervals(evaluate, files, ranker):
    ran = evaluate(files / "labels", files / "test.txt", columns=80)
    assert ran.code == 0, ran.text
    train, test = label_sets()
    top, inverse = ranker.predict(test.X), labels.inverse_propensity(train.Y)
    for measure in MEASURES:
        line = f"{measure} "
        for k in (1, 3, 5):
            metric = labels.from_name(f"{measure}@{k}")
            found = bootstrap_interval(metric(top, test.Y, inverse, reduction="none"))
            line += f"{100 * found.mean:.2f} {100 * found.low:.2f} {100 * found.high:.2f} "
        assert line in ran.text
    assert "40 rows, in percent" in ran.text
    assert max(len(line) for line in ran.out.splitlines()[1:]) <= 80


def test_json_and_csv_hold_the_values(evaluate, files, ranker):
    train, test = label_sets()
    pair = [files / "test_X.npz", "--labels", files / "test_Y.txt"]
    ran = evaluate(files / "labels", *pair, "-k", 4, "-k", 2, "--json")
    top = ranker.predict(test.X, k=4)
    inverse = labels.inverse_propensity(train.Y)
    expected = labels.evaluate(top, test.Y, inverse_propensity=inverse, ks=(2, 4))
    assert means(ran) == pytest.approx(expected, abs=1e-12)
    assert json.loads(ran.out)["rows"] == 40
    ran = evaluate(files / "labels", *pair, "-k", 4, "-k", 2, "--csv")
    rows = list(csv.DictReader(io.StringIO(ran.out)))
    assert {row["metric"]: float(row["mean"]) for row in rows} == pytest.approx(expected)
    assert evaluate(files / "labels", *pair, "--json", "--csv").code == 2


def test_propensities_are_those_of_a_and_b(evaluate, files, ranker):
    train, test = label_sets()
    ran = evaluate(files / "labels", files / "test.txt", "--a", 0.5, "--b", 0.4, "--json")
    inverse = labels.inverse_propensity(train.Y, 0.5, 0.4)
    expected = labels.evaluate(ranker.predict(test.X), test.Y, inverse_propensity=inverse)
    assert means(ran) == pytest.approx(expected, abs=1e-12)
    ran = evaluate(files / "labels", files / "test.txt", "--propensity", 1, "--json")
    top = ranker.predict(test.X, propensity=1.0)
    inverse = labels.inverse_propensity(train.Y)
    expected = labels.evaluate(top, test.Y, inverse_propensity=inverse)
    assert means(ran) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("name", ["a.txt", "a.txt.xz", "a.npz"])
def test_predictions_in_a_file_are_worth_as_much_as_their_model(run, evaluate, files, name):
    arguments = ["extreme", "predict", files / "labels", files / "test.txt", "--out", files / name]
    assert run(*arguments).code == 0
    of_model = evaluate(files / "labels", files / "test.txt", "--json")
    given = [files / "test.txt", "--train", files / "train.txt"]
    of_file = evaluate(files / name, *given, "--json")
    assert means(of_file) == means(of_model)
    ran = evaluate(files / name, files / "test.txt")
    assert "PSP" not in ran.out
    assert "give --train FILE for them" in ran.err


def test_predictions_by_hand(evaluate, files):
    (files / "truth.txt").write_text("3 1 4\n0,2 0:1\n3 0:1\n 0:1\n")
    # scores of any sign and order, equal ones by label; the second row predicts one label alone
    (files / "mine.txt").write_text("3 4\n1:-2.5 0:-1 2:-2.5\n3:0.5\n0:1 1:2\n")
    ran = evaluate(files / "mine.txt", files / "truth.txt", "-k", 1, "-k", 2, "--json")
    assert ran.code == 0, ran.text
    found = means(ran)
    assert found["P@1"] == pytest.approx(2 / 3)
    assert found["P@2"] == pytest.approx((1 / 2 + 1 / 2 + 0) / 3)
    discount = 1 / np.log2(3)
    assert found["nDCG@2"] == pytest.approx((1 / (1 + discount) + 1) / 3)


def test_rankers_are_compared_with_the_first(run, evaluate, files, ranker):
    other = fitted(random_state=1, max_epochs=1)
    tr.save(other, files / "other")
    _, test = label_sets()
    given = [files / "labels", files / "other", files / "test.txt"]
    ran = evaluate(*given, "--json", "-k", 3)
    one, two = (
        labels.precision(each.predict(test.X), test.Y, k=3, reduction="none")
        for each in (ranker, other)
    )
    first, second = (each for each in json.loads(ran.out)["results"] if each["metric"] == "P@3")
    assert first["difference"] is None
    assert second["difference"] == pytest.approx(two.mean() - one.mean())
    assert second["p_value"] == paired_test(two, one).p_value
    ran = evaluate(*given)
    assert (
        f"{files / 'other'} {100 * labels.precision(other.predict(test.X), test.Y, k=1):.2f}"
        in (ran.text)
    )
    assert evaluate(files / "labels", files / "labels", files / "test.txt").code == 1


def test_where_there_is_no_room_there_are_no_intervals(evaluate, files):
    ks = [word for k in range(1, 7) for word in ("-k", k)]
    ran = evaluate(files / "labels", files / "test.txt", *ks, columns=80)
    assert "no room for intervals" in ran.text
    assert max(len(line) for line in ran.out.splitlines()[1:]) <= 80


def test_rows_without_labels_count_as_failures(evaluate, files, ranker):
    _, test = label_sets()
    labelled = test.Y.getnnz(axis=1) > 0
    assert 0 < labelled.sum() < len(test)
    ran = evaluate(files / "labels", files / "test.txt", "--json")
    top = ranker.predict(test.X)
    of_labelled = labels.precision(top[labelled], test.Y[labelled], k=1)
    assert means(ran)["P@1"] == pytest.approx(of_labelled * labelled.mean())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["labels", "test_X.txt"], "holds features alone"),
        (["labels", "test.txt", "-k", 26], "-k is 26, but there are 25 labels"),
        (["test.txt", "labels"], "is a model. The data come last"),
        (["nowhere", "test.txt"], "there is no such model, nor a file of scores or predictions"),
        (["train_Y.txt", "test.txt"], "has predictions for 120 rows, but test.txt has 40"),
        (["test_Y.txt", "test.txt", "--propensity", 1], "leave out --propensity"),
        (["labels", "test.txt", "--train-labels", "train_Y.txt"], "those of --train"),
        (["labels", "test.txt", "--a", 0], "a is a number above zero"),
        (["labels", "more.txt"], "has 30 labels, and the model 25"),
    ],
)  # fmt: skip
def test_what_does_not_go_together_is_refused(evaluate, files, monkeypatch, arguments, message):
    (files / "more.txt").write_text("1 60 30\n29 1:1\n")
    monkeypatch.chdir(files)
    ran = evaluate(*arguments)
    assert ran.code == 1
    assert message in ran.text


def test_too_few_predictions_are_said_to_be_misses(evaluate, files):
    ran = evaluate(files / "test_Y.txt", files / "test.txt", "-k", 20)  # the truth itself
    assert ran.code == 0, ran.text
    assert "labels a row: the others of the first 20 are missed" in ran.text


def test_models_that_rank_rows_are_sent_to_other_commands(evaluate, files, model):
    ran = evaluate(model, files / "test.txt")
    assert ran.code == 1
    assert "is a LinearRanker, which ranks the rows of a query: use tierrank predict" in ran.text
