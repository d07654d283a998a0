"""`tierrank export`: the scorer for other programs."""

import json

import numpy as np
import pytest

import tierrank as tr
from tierrank.data import read_letor


@pytest.fixture
def boosted_model(fold, tmp_path):
    """A model of a few trees, of the folder."""
    pytest.importorskip("lightgbm")
    data = read_letor(fold / "train.txt")
    ranker = tr.BoostedRanker(trees=5, min_rows_per_leaf=2, threads=1, random_state=0)
    return tr.save(ranker.fit(data.X, data.y, qid=data.qid), tmp_path / "boosted")


def test_onnxruntime_gives_the_scores_of_the_model(run, fold, model, tmp_path):
    runtime = pytest.importorskip("onnxruntime")
    ran = run("export", model, tmp_path / "scorer.onnx")
    assert ran.code == 0, ran.text
    assert f"The scorer is in {tmp_path / 'scorer.onnx'}" in ran.text
    X = read_letor(fold / "test.txt").X
    session = runtime.InferenceSession(tmp_path / "scorer.onnx")
    (entry,) = session.get_inputs()
    dtype = np.float64 if "double" in entry.type else np.float32
    (scores,) = session.run(None, {entry.name: X.astype(dtype)})
    assert np.allclose(np.ravel(scores), tr.load(model).predict(X), rtol=1e-4, atol=1e-5)


def test_the_file_must_be_called_onnx(run, model, tmp_path):
    ran = run("export", model, tmp_path / "scorer.bin")
    assert ran.code == 2
    assert "something.onnx" in ran.text


@pytest.mark.parametrize(
    ("name", "to", "reader"),
    [
        ("scorer.ubj", None, "xgboost"),
        ("scorer.json", "xgboost-json", "xgboost"),
        ("scorer.txt", None, "lightgbm"),
    ],
)
def test_other_libraries_give_the_scores_of_the_model(
    name, to, reader, run, fold, boosted_model, tmp_path
):
    library = pytest.importorskip(reader)
    ran = run("export", boosted_model, tmp_path / name, *([] if to is None else ["--to", to]))
    assert ran.code == 0, ran.text
    assert f"The scorer is in {tmp_path / name}" in ran.text
    X = read_letor(fold / "test.txt").X.astype(np.float32)
    booster = library.Booster(model_file=tmp_path / name)
    scores = booster.predict(library.DMatrix(X) if reader == "xgboost" else X.astype(np.float64))
    assert np.allclose(scores, tr.load(boosted_model).predict(X), rtol=1e-5, atol=1e-6)


def test_solr_gets_features_by_the_names_of_a_file(run, boosted_model, tmp_path):
    width = tr.load(boosted_model).n_features_in_
    names = tmp_path / "names.txt"
    names.write_text("".join(f"feature_{n}\n" for n in range(width)))
    out = tmp_path / "scorer.json"
    ran = run("export", boosted_model, out, "--to", "solr", "--feature-names", names)
    assert ran.code == 0, ran.text
    assert f"Its features are in {tmp_path / 'scorer.features.json'}" in ran.text
    features = json.loads((tmp_path / "scorer.features.json").read_text())
    assert features[-1]["name"] == f"feature_{width - 1}"


def test_what_is_wrong_is_said_in_the_words_of_the_command(run, model, boosted_model, tmp_path):
    names = tmp_path / "names.txt"
    names.write_text("one\n")
    for arguments, code, message in (
        ([boosted_model, "m.json"], 2, "--to xgboost-json, --to xgboost-dump, --to solr"),
        ([boosted_model, "m.ubj", "--to", "solar"], 2, "--to is one of onnx"),
        ([boosted_model, tmp_path], 1, "is a folder; give the name of a file"),
        ([boosted_model, tmp_path, "--to", "solr"], 1, "is a folder; give the name of a file"),
        ([tmp_path / "none", "m.ubj"], 1, "none"),
        ([model, "m.ubj"], 1, "a LinearRanker has none of"),
        ([boosted_model, "m.ubj", "--feature-names", names], 1, "--feature-names, one for each"),
        ([boosted_model, "m.ubj", "--feature-names", tmp_path / "no.txt"], 1, "No such file"),
        ([boosted_model, "m.ubj", "--missing-as-zero"], 1, "--missing-as-zero is for --to ranklib"),
    ):
        ran = run("export", *arguments)
        assert ran.code == code, ran.text
        assert message in " ".join(ran.text.split()), ran.text
        assert "Traceback" not in ran.text


def test_a_file_of_names_may_be_of_any_editor_and_is_not_written_over(run, boosted_model, tmp_path):
    width, names = tr.load(boosted_model).n_features_in_, tmp_path / "names.txt"
    names.write_bytes(("\ufeff" + "".join(f"fäature_{n}\r\n" for n in range(width))).encode())
    out = tmp_path / "scorer.json"
    ran = run("export", boosted_model, out, "--to", "solr", "--feature-names", names)
    assert ran.code == 0, ran.text
    features = json.loads((tmp_path / "scorer.features.json").read_text("utf-8"))
    assert [each["name"] for each in features] == [f"fäature_{n}" for n in range(width)]
    names.write_bytes(names.read_bytes().decode("utf-8-sig").encode("latin-1"))
    for arguments, code, message in (
        ([out], 1, "names.txt: is not UTF-8"),
        ([names], 2, "is what is read, give another file to write"),
    ):
        ran = run("export", boosted_model, *arguments, "--to", "solr", "--feature-names", names)
        assert ran.code == code, ran.text
        assert message in ran.text
