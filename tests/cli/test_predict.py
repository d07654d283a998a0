"""`tierrank predict`: scores, as they are and as a table."""

import csv
import gzip
import re
import shutil

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

import tierrank as tr
from tierrank.cli import inputs
from tierrank.data import read_letor, write_letor
from tierrank.data.tables import write_table


@pytest.fixture(scope="module")
def trained_on_a_table(run, tmp_path_factory, simulate):
    """A folder with a table, and a linear model of it."""
    folder = tmp_path_factory.mktemp("table")
    write_table(folder / "train.csv", simulate(25))
    arguments = ["train", folder / "train.csv", "--model", "linear"]
    assert run(*arguments, "--out", folder / "table model").code == 0
    return folder


@pytest.fixture
def table_model(trained_on_a_table, tmp_path):
    """A linear model that was trained on train.csv beside it."""
    shutil.copytree(trained_on_a_table, tmp_path, dirs_exist_ok=True)
    return tmp_path / "table model"


def test_scores_are_written_to_the_last_bit_in_the_order_of_the_rows(run, fold, model):
    ran = run("predict", model, fold / "test.txt")
    assert ran.code == 0
    data = read_letor(fold / "test.txt")
    expected = tr.load(model).predict(data.X)
    assert [float(line) for line in ran.out.splitlines()] == expected.tolist()
    assert ran.err == ""


def test_a_file_holds_the_same_as_standard_output(run, fold, model, tmp_path):
    ran = run("predict", model, fold / "test.txt", "--out", tmp_path / "new" / "scores.txt")
    assert ran.code == 0
    assert ran.out == ""
    assert (tmp_path / "new" / "scores.txt").read_text() == run(
        "predict", model, fold / "test.txt"
    ).out
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["scores.txt"]


def test_a_query_that_looks_like_a_formula_is_text_in_csv(run, table_model, tmp_path):
    table = pd.read_csv(tmp_path / "train.csv")
    table["qid"] = "=" + table["qid"].astype(str)
    table.to_csv(tmp_path / "new.csv", index=False)
    arguments = ["predict", table_model, tmp_path / "new.csv", "--out", tmp_path / "r.csv"]
    for more, prefix in ([], "'"), (["--raw-csv"], ""):
        assert run(*arguments, *more).code == 0
        rows = list(csv.DictReader((tmp_path / "r.csv").open()))
        assert [row["qid"] for row in rows] == [f"{prefix}{qid}" for qid in table["qid"]]
        assert any(float(row["score"]) < 0 for row in rows)


def test_a_csv_file_has_the_rank_in_the_query_too(run, model, tmp_path):
    # Rows of a query are not adjacent, and two of them have the same features.
    rng = np.random.default_rng(3)
    X = rng.normal(size=(12, 4))
    X[9] = X[3]
    qid = np.array([7, 5, 7, 5, 5, 7, 7, 7, 5, 5, 5, 7])
    write_letor(tmp_path / "d.txt", X, np.zeros(12), qid)
    assert run("predict", model, tmp_path / "d.txt", "--out", tmp_path / "r.csv").code == 0
    rows = list(csv.DictReader((tmp_path / "r.csv").open()))
    assert list(rows[0]) == ["qid", "row", "score", "rank"]
    assert [int(row["qid"]) for row in rows] == qid.tolist()
    assert [int(row["row"]) for row in rows] == list(range(1, 13))
    scores = [float(row["score"]) for row in rows]
    for query in (5, 7):
        own = [i for i in range(12) if qid[i] == query]
        best_first = sorted(own, key=lambda i: (-scores[i], i))
        assert [int(rows[i]["rank"]) for i in best_first] == list(range(1, len(own) + 1))


def test_columns_of_a_table_are_found_by_name(run, table_model, tmp_path, simulate):
    data = simulate(6, first=50)
    expected = tr.load(table_model).predict(pd.DataFrame(data.X, columns=data.feature_names))
    order = [2, 0, 3, 1]
    text = ["note,x2,qid,x0,x3,label,x1"]
    for x, y, qid in zip(data.X[:, order], data.y, data.qid, strict=True):
        cells = [repr(float(value)) for value in x]
        text.append(f"words,{cells[0]},{qid},{cells[1]},{cells[2]},{y},{cells[3]}")
    (tmp_path / "shuffled.csv").write_text("\n".join(text))
    ran = run("predict", table_model, tmp_path / "shuffled.csv")
    assert ran.code == 0
    assert [float(line) for line in ran.out.splitlines()] == expected.tolist()
    assert ran.err == ""


def test_a_table_that_lacks_a_column_is_refused_by_its_name(run, table_model, tmp_path, simulate):
    write_table(tmp_path / "few.csv", simulate(3, features=3))
    ran = run("predict", table_model, tmp_path / "few.csv")
    assert ran.code == 1
    assert "x3" in ran.text


@pytest.mark.filterwarnings("default")  # which the command shows as a note
def test_a_sparse_letor_file_may_lack_the_last_features_but_not_have_more(run, model, tmp_path):
    (tmp_path / "less.txt").write_text("0 qid:1 2:0.5\n0 qid:1 1:0.1\n")
    ran = run("predict", model, tmp_path / "less.txt")
    assert ran.code == 0
    expected = tr.load(model).predict(np.array([[0, 0.5, 0, 0], [0.1, 0, 0, 0]]))
    assert [float(line) for line in ran.out.splitlines()] == expected.tolist()
    assert "has 2 features, and the model 4: the file is sparse, so the others are 0" in ran.err
    (tmp_path / "more.txt").write_text("0 qid:1 5:0.5\n0 qid:1 1:0.1\n")
    ran = run("predict", model, tmp_path / "more.txt")
    assert ran.code == 1
    assert "has 5 features, but the model was fitted to 4" in ran.text


@pytest.mark.parametrize("command", ["predict", "evaluate"])
def test_a_dense_letor_file_of_fewer_features_is_another_data_set(run, model, tmp_path, command):
    (tmp_path / "one.txt").write_text("0 qid:1 1:0.5\n1 qid:1 1:0.1\n")
    ran = run(command, model, tmp_path / "one.txt")
    assert ran.code == 1
    assert "has 1 feature, but the model has 4, and the file is dense" in ran.text
    assert "as index:0" in ran.text
    (tmp_path / "zero.txt").write_text("0 qid:1 1:0.5 4:0\n1 qid:1 1:0.1\n")  # the way that it says
    assert run(command, model, tmp_path / "zero.txt").code == 0


def test_indices_may_start_at_zero(run, model, tmp_path):
    (tmp_path / "zero.txt").write_text("0 qid:1 1:0.5\n0 qid:1 3:0.1\n")
    expected = tr.load(model).predict(np.array([[0, 0.5, 0, 0], [0, 0, 0, 0.1]]))
    ran = run("predict", model, tmp_path / "zero.txt", "--zero-based")
    assert [float(line) for line in ran.out.splitlines()] == expected.tolist()


@pytest.mark.parametrize("most", [1, 40, 1 << 26])
@pytest.mark.parametrize("steps", [["standardize"], ["query-scale"], ["none"]])
def test_sparse_rows_have_the_scores_of_dense_ones(
    run, fold, tmp_path, simulate, monkeypatch, steps, most
):
    monkeypatch.setattr(inputs, "DENSE_CELLS", most)
    typed = [word for step in steps for word in ("--features", step)]
    out = tmp_path / "m"
    assert run("train", fold, "--model", "linear", *typed, "--out", out).code == 0
    data = simulate(8, first=5000)
    X = np.where(np.abs(data.X) > 1, data.X, 0)
    shuffled = np.random.default_rng(0).permutation(len(X))
    qid = data.qid[shuffled]
    write_letor(tmp_path / "sparse.txt", scipy.sparse.csr_matrix(X[shuffled]), data.y, qid)
    assert not isinstance(read_letor(tmp_path / "sparse.txt").X, np.ndarray)
    ran = run("predict", out, tmp_path / "sparse.txt")
    assert ran.code == 0, ran.text
    expected = tr.load(out).predict(X[shuffled], qid=qid)
    scores = [float(line) for line in ran.out.splitlines()]
    assert scores == pytest.approx(expected.tolist(), abs=1e-12)


def test_what_is_no_model_is_refused(run, fold, model, tmp_path):
    ran = run("predict", tmp_path / "nowhere", fold / "test.txt")
    assert ran.code == 1
    assert "there is no such folder" in ran.text
    ran = run("predict", fold, fold / "test.txt")
    assert ran.code == 1
    assert "model.json: is missing" in ran.text
    (tensors,) = model.glob("*.safetensors")
    tensors.write_bytes(tensors.read_bytes()[:-1] + b"\0")
    ran = run("predict", model, fold / "test.txt")
    assert ran.code == 1
    assert "does not have the bytes that were written" in ran.text


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_table_needs_no_labels(run, table_model, tmp_path, simulate, suffix):
    data = simulate(5, first=70)
    write_table(tmp_path / f"labelled{suffix}", data)
    frame = pd.DataFrame(data.X, columns=data.feature_names).assign(qid=data.qid)
    write = {".csv": frame.to_csv, ".parquet": frame.to_parquet}[suffix]
    write(tmp_path / f"bare{suffix}", index=False)
    labelled = run("predict", table_model, tmp_path / f"labelled{suffix}")
    bare = run("predict", table_model, tmp_path / f"bare{suffix}")
    assert labelled.code == bare.code == 0, bare.text
    assert labelled.out == bare.out
    assert len(bare.out.splitlines()) == len(data)


@pytest.mark.parametrize("suffix", ["letor", "csv", "tsv", "parquet"])
def test_standard_input_is_scored_as_a_file_is(
    run, tmp_path, simulate, fold, model, table_model, suffix
):
    if suffix == "letor":
        model, file = model, fold / "test.txt"
    else:
        model, file = table_model, tmp_path / f"new.{suffix}"
        write_table(file, simulate(5, first=500))
    piped = run("predict", model, "-", input=file.read_bytes())
    assert piped.code == 0
    assert piped.out == run("predict", model, file).out
    if suffix != "parquet":  # which is compressed as it is
        packed = run("predict", model, "-", input=gzip.compress(file.read_bytes()))
        assert packed.code == 0, packed.text
        assert packed.out == piped.out


@pytest.mark.parametrize("content", [b"", b"1 qid:1 1:x\n", b"a,b\n1,2\n", b"bad qid:1 1:1\n"])
def test_what_is_wrong_with_standard_input_is_said_of_it(run, model, content):
    ran = run("predict", model, "-", input=content)
    assert ran.code == 1
    assert ran.err.startswith("Error: standard input")
    assert ran.err.count("\n") == 1


def test_standard_input_that_finds_no_room_is_one_line_that_names_it(run, model, fold, full_disk):
    content = (fold / "test.txt").read_bytes()
    with full_disk(at=200):
        ran = run("predict", model, "-", input=content)
    assert ran.code == 1
    assert re.fullmatch(r"Error: \S+/standard input: File too large\n", ran.err)


def test_the_data_are_not_written_over(run, fold, model, tmp_path):
    text = (fold / "test.txt").read_bytes()
    (tmp_path / "link.txt").symlink_to(fold / "test.txt")
    for data, out in (("test.txt", "test.txt"), ("test.txt", "../link.txt")):
        ran = run("predict", model, fold / data, "--out", fold / out)
        assert ran.code == 2
        assert "is what is read, give another file to write" in ran.text
    assert (fold / "test.txt").read_bytes() == text


def test_a_place_where_nothing_can_be_written_is_refused_before_the_work(run, fold, model):
    ran = run("predict", model, fold / "test.txt", "--out", fold)
    assert ran.code == 2
    assert "is a folder, give the name of a file" in ran.text
