"""`tierrank extreme predict`: the best labels, in formats that other tools read."""

import gzip
import sys

import numpy as np
import pytest
import scipy.sparse

import tierrank as tr
from extreme_files import fitted, label_sets, write_parts
from tierrank.cli import extreme_predict as predictions
from tierrank.data import read_xc_features, write_xc


@pytest.fixture(scope="module")
def ranker():
    return fitted()


@pytest.fixture
def files(tmp_path, ranker):
    tr.save(ranker, tmp_path / "labels")
    return write_parts(tmp_path)


@pytest.fixture
def predict(run, files):
    def predict(*arguments):
        return run("extreme", "predict", files / "labels", *arguments)

    return predict


@pytest.fixture
def top(ranker):
    """Labels and scores as the estimator gives them."""
    _, test = label_sets()
    return ranker.predict(test.X, k=5, return_scores=True)


def rows_of(lines):
    """Labels and scores of `label:score` lines."""
    pairs = [[pair.split(":") for pair in line.split()] for line in lines]
    labels = np.array([[int(label) for label, _ in row] for row in pairs])
    return labels, np.array([[np.float32(score) for _, score in row] for row in pairs])


def test_a_line_a_row_has_the_estimators_labels_and_scores_to_the_last_bit(predict, files, top):
    ran = predict(files / "test.txt")
    assert ran.code == 0, ran.text
    header, *lines = ran.out.splitlines()
    assert header == "40 25"
    labels, scores = rows_of(lines)
    assert np.array_equal(labels, top[0])
    assert np.array_equal(scores, top[1])
    assert ran.err == ""


@pytest.mark.parametrize("name", ["test_X.txt", "test_X.npz"])
def test_features_alone_will_do(predict, files, name):
    assert predict(files / name).out == predict(files / "test.txt").out


def test_files_without_a_header_are_read_with_or_without_labels(predict, files):
    for name in ("test.txt", "test_X.txt"):
        lines = (files / name).read_text().splitlines(keepends=True)
        (files / name).write_text("".join(lines[1:]))
    ran = predict(files / "test.txt")
    assert ran.code == 0, ran.text
    assert len(ran.out.splitlines()) == 41
    assert predict(files / "test_X.txt").out == ran.out


def test_files_hold_the_same_as_standard_output(predict, files, top):
    text = predict(files / "test.txt", "-k", 3).out
    for name in ("a.txt", "a.txt.gz", "a.npz"):
        ran = predict(files / "test.txt", "-k", 3, "--out", files / name)
        assert ran.code == 0, ran.text
        assert f"3 labels a row, of 40 rows, are in {files / name}" in ran.text
    assert (files / "a.txt").read_text() == text
    assert gzip.decompress((files / "a.txt.gz").read_bytes()).decode() == text
    matrix = scipy.sparse.load_npz(files / "a.npz")
    expected = np.zeros((40, 25), dtype=np.float32)
    np.put_along_axis(expected, top[0][:, :3], top[1][:, :3], axis=1)
    assert np.array_equal(matrix.toarray(), expected)
    for name in ("a.txt", "a.npz"):  # and our own reader takes both
        assert np.array_equal(read_xc_features(files / name).toarray(), expected)


def test_labels_may_come_alone(predict, files, top):
    ran = predict(files / "test.txt", "--no-scores", "-k", 2)
    assert ran.out == "".join(f"{first} {second}\n" for first, second in top[0][:, :2])
    assert predict(files / "test.txt", "--no-scores", "--out", files / "a.npz").code == 2


def test_rare_labels_rise_by_propensity(predict, files, ranker):
    _, test = label_sets()
    ran = predict(files / "test.txt", "--propensity", 1)
    labels, scores = rows_of(ran.out.splitlines()[1:])
    every, plain = ranker.predict(test.X, k=25, return_scores=True)
    dense = np.empty_like(plain)
    np.put_along_axis(dense, every, plain, axis=1)
    dense += np.log(ranker.inverse_propensity())
    assert scores == pytest.approx(np.take_along_axis(dense, labels, axis=1), abs=1e-5)
    assert scores == pytest.approx(-np.sort(-dense, axis=1)[:, :5], abs=1e-5)


def test_a_split_chooses_rows(predict, files, top):
    (files / "split.txt").write_text("7\n1\n")
    ran = predict(files / "test.txt", "--split", files / "split.txt", "--no-scores")
    assert ran.out.splitlines() == [" ".join(map(str, top[0][row])) for row in (6, 0)]


def test_rows_come_in_blocks_that_do_not_change_them(run, tmp_path, ranker, monkeypatch):
    monkeypatch.setattr(predictions, "_SCORES", 1)  # so that a block is as small as can be
    _, test = label_sets(rows=(10, 700))
    tr.save(ranker, tmp_path / "model")
    write_xc(tmp_path / "many.txt", test)
    blocks = list(predictions.predicted(ranker, test.X, 4, 0.0, silent=True))
    assert [len(labels) for labels, _ in blocks] == [256, 256, 188]
    ran = run("extreme", "predict", tmp_path / "model", tmp_path / "many.txt", "-k", 4)
    labels, scores = rows_of(ran.out.splitlines()[1:])
    expected = ranker.predict(test.X, k=4, return_scores=True)
    assert np.array_equal(labels, expected[0])
    assert np.array_equal(scores, expected[1])


def test_data_of_another_shape_are_refused_or_filled_up(predict, files):
    (files / "wide.txt").write_text("1 61 25\n0 60:1\n")
    ran = predict(files / "wide.txt")
    assert ran.code == 1
    assert "has 61 features, and the model 60: give data of the same kind" in ran.text
    assert "--n-features 61" in ran.text
    (files / "narrow.txt").write_text("1 2 25\n0 1:1\n")
    (files / "same.txt").write_text("1 60 25\n0 1:1\n")
    ran = predict(files / "narrow.txt")
    assert ran.code == 0
    assert "has 2 features, and the model 60" in ran.err
    assert ran.out == predict(files / "same.txt").out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-k", 26], "-k is 26, but there are 25 labels"),
        (["--propensity", "nan"], "--propensity is a finite number"),
    ],
)
def test_what_cannot_be_predicted_is_refused_before_anything_is_written(
    predict, files, arguments, message
):
    ran = predict(files / "test.txt", *arguments)
    assert ran.code == 1
    assert message in ran.text
    assert ran.out == ""
    assert predict(files / "test.txt", *arguments, "--out", files / "a.txt").code == 1
    assert not (files / "a.txt").exists()


def test_a_file_that_cannot_be_read_leaves_no_file(predict, files):
    (files / "bad.txt").write_text("2 60 25\n0 1:1\n1 7:x\n")
    ran = predict(files / "bad.txt", "--out", files / "a.txt")
    assert ran.code == 1
    assert "bad.txt, line 3" in ran.text
    assert not list(files.glob("*a.txt*"))


def test_other_models_are_sent_to_other_commands(run, files, model):
    ran = run("extreme", "predict", model, files / "test.txt")
    assert ran.code == 1
    assert "is a LinearRanker, which ranks the rows of a query: use tierrank predict" in ran.text
    ran = run("extreme", "predict", files / "nowhere", files / "test.txt")
    assert ran.code == 1
    assert "there is no such folder" in ran.text


@pytest.mark.parametrize("command", ["predict", "evaluate", "export"])
def test_models_that_rank_labels_are_sent_to_these_commands(run, files, fold, command):
    given = {"export": files / "a.onnx"}.get(command, fold / "test.txt")
    ran = run(command, files / "labels", given)
    assert ran.code == 1
    assert "is an ExtremeRanker, which ranks labels: use tierrank extreme predict" in ran.text


def test_a_bar_does_not_catch_what_goes_to_standard_output(shown_on_terminal):
    from tierrank.cli.progress import RowsDisplay

    before = sys.stdout
    with RowsDisplay("predicting", 1000) as display:
        display.show(200)
        assert sys.stdout is before
        display._bars.refresh()
    assert "200 of 1,000 rows" in shown_on_terminal.getvalue()


@pytest.fixture
def shown_on_terminal(monkeypatch):
    import io

    from rich.console import Console

    from tierrank.cli import progress

    console = Console(file=io.StringIO(), width=100, force_terminal=True, color_system=None)
    monkeypatch.setattr(progress, "stderr", lambda: console)
    return console.file


def test_the_data_are_not_written_over(predict, files):
    text = (files / "test.txt").read_bytes()
    ran = predict(files / "test.txt", "--out", files / "test.txt")
    assert ran.code == 2
    assert "is what is read, give another file to write" in ran.text
    assert (files / "test.txt").read_bytes() == text
