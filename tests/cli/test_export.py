"""`tierrank export`: the scorer for other programs."""

import numpy as np
import pytest

import tierrank as tr
from tierrank.data import read_letor


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
