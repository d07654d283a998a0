"""`tierrank train` on a Dask cluster."""

import os
import signal

import numpy as np
import pandas as pd
import pytest

import tierrank as tr
from tierrank.cli import options
from tierrank.ranking.dask import ClusterRows

pytest.importorskip("distributed")
pytest.importorskip("xgboost")
pytest.importorskip("pyarrow")


def table(queries, seed):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.integers(0, 6, (12 * queries, 3)).astype(float), columns=list("abc"))
    frame["id"] = np.arange(len(frame))
    frame["label"] = np.digitize(frame["a"] + rng.normal(size=len(frame)), [2, 4])
    frame["qid"] = np.repeat(np.arange(queries), 12)
    return frame


@pytest.mark.slow
def test_workers_that_it_starts_train_on_a_folder_of_parquet(run, tmp_path):
    whole, held_out = table(20, 0), table(6, 1)
    (tmp_path / "rows").mkdir()
    for number in range(3):
        part = whole[80 * number : 80 * (number + 1)]  # which cuts queries in two
        part.to_parquet(tmp_path / "rows" / f"part-{number}.parquet", index=False)
    held_out.to_parquet(tmp_path / "valid.parquet", index=False)
    ran = run(
        "train", tmp_path / "rows", "--workers", "2", "--valid", tmp_path / "valid.parquet",
        "--drop", "id", "--set", "trees=4", "--set", "library=xgboost", "--set", "row_fraction=1",
        "--set", "feature_fraction=1", "--out", tmp_path / "model",
    )  # fmt: skip
    assert ran.code == 0, ran.text
    assert "2 Dask workers here; dashboard: http://" in ran.text
    assert "4 trees" in ran.text
    model = tr.load(tmp_path / "model")
    alone = tr.BoostedRanker(
        trees=4, library="xgboost", row_fraction=1.0, feature_fraction=1.0, random_state=0
    ).fit(
        whole[list("abc")], whole["label"], qid=whole["qid"],
        eval_set=(held_out[list("abc")], held_out["label"], held_out["qid"]),
    )  # fmt: skip
    np.testing.assert_allclose(model.history_.loss, alone.history_.loss, rtol=1e-6)
    np.testing.assert_allclose(model.history_.metric, alone.history_.metric, rtol=1e-6)
    assert list(model.feature_names_in_) == list("abc")


def test_clusters_that_are_not_there_and_options_that_do_not_go_together(
    run, tmp_path, monkeypatch
):
    monkeypatch.setattr(options, "ANSWER", 1)
    table(4, 0).to_parquet(tmp_path / "rows.parquet")
    command = ("train", tmp_path / "rows.parquet", "--out", tmp_path / "model")
    ran = run(*command, "--dask", "tcp://127.0.0.1:1")
    assert ran.code == 1
    assert "tcp://127.0.0.1:1: no Dask scheduler answered within 1 s" in ran.text
    for more, said in [
        (("--dask", "tcp://127.0.0.1:1", "--workers", "2"), "give one of them"),
        (("--workers", "2", "--model", "linear"), "are for --model boosted"),
        (("--workers", "2", "--valid-fraction", "0.1"), "--valid-fraction does not go with"),
    ]:
        ran = run(*command, *more)
        assert ran.code == 1
        assert said in ran.text
    assert not (tmp_path / "model").exists()


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_lost_worker_is_named_and_resume_goes_on_to_the_same_model(run, tmp_path, monkeypatch):
    monkeypatch.setattr("tierrank.ranking.boosted.SEGMENT", 4)
    (tmp_path / "rows").mkdir()
    whole = table(20, 0)
    for number in range(2):
        part = whole[120 * number : 120 * (number + 1)]
        part.to_parquet(tmp_path / "rows" / f"part-{number}.parquet", index=False)
    table(6, 1).to_parquet(tmp_path / "valid.parquet", index=False)
    command = (
        "train", tmp_path / "rows", "--workers", "2", "--valid", tmp_path / "valid.parquet",
        "--drop", "id", "--set", "trees=12", "--set", "library=xgboost", "--checkpoint-every", "0",
    )  # fmt: skip
    expected = run(*command, "--out", tmp_path / "whole")
    assert expected.code == 0, expected.text
    grow, grown = ClusterRows.grow, []

    def grow_or_kill(self):
        grown.append(1)
        if len(grown) == 10:
            os.kill(next(iter(self.shards.client.run(os.getpid).values())), signal.SIGKILL)
        return grow(self)

    with monkeypatch.context() as patch:
        patch.setattr(ClusterRows, "grow", grow_or_kill)
        lost = run(*command, "--out", tmp_path / "model")
    assert lost.code == 1
    assert "was lost, and XGBoost cannot go on without it" in lost.text
    assert "Traceback" not in lost.text
    resumed = run(*command, "--out", tmp_path / "model", "--resume")
    assert resumed.code == 0, resumed.text
    one, other = (tr.load(tmp_path / name) for name in ("whole", "model"))
    np.testing.assert_array_equal(
        one.predict(whole[list("abc")]), other.predict(whole[list("abc")])
    )
    assert one.history_.loss == other.history_.loss
