"""`tierrank evaluate` on a Dask cluster."""

import csv
import io
from contextlib import nullcontext

import numpy as np
import pandas as pd
import pytest

import tierrank as tr
from tierrank.cli import options

pytest.importorskip("distributed")
pytest.importorskip("pyarrow")


def table(queries=40, seed=0):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(2, 9, queries)
    frame = pd.DataFrame(rng.normal(size=(lengths.sum(), 3)), columns=list("abc"))
    frame["label"] = np.digitize(frame["a"] + rng.normal(size=len(frame)), [0, 1])
    frame["qid"] = np.repeat(rng.permutation(queries), lengths)
    return frame


@pytest.fixture
def models(tmp_path):
    frame = table(seed=1)
    for name, columns in (("one", list("abc")), ("two", list("cb"))):
        ranker = tr.LinearRanker(l2=0.1).fit(frame[columns], frame["label"], qid=frame["qid"])
        tr.save(ranker, tmp_path / name)
    return tmp_path / "one", tmp_path / "two"


@pytest.mark.slow
def test_workers_find_the_figures_of_one_process(run, tmp_path, models):
    whole = table()
    whole.to_parquet(tmp_path / "all.parquet", index=False)
    (tmp_path / "cut").mkdir()
    (tmp_path / "kept").mkdir()
    for number in range(3):
        size = -(-len(whole) // 3)
        part = whole[size * number : size * (number + 1)]  # which cuts queries in two
        part.to_parquet(tmp_path / "cut" / f"{number}.parquet", index=False)
        kept = whole[whole["qid"] % 3 == number]
        kept.to_parquet(tmp_path / "kept" / f"{number}.parquet", index=False)
    more = ("--metric", "ndcg@3", "--metric", "mrr", "--csv", "--raw-csv")
    alone = run("evaluate", *models, tmp_path / "all.parquet", *more)
    assert alone.code == 0, alone.text
    for folder in ("cut", "kept"):
        ran = run("evaluate", *models, tmp_path / folder, *more, "--workers", "2")
        assert ran.code == 0, ran.text
        assert "2 Dask workers here; dashboard: http://" in ran.text
        one, two = (list(csv.DictReader(io.StringIO(each.out))) for each in (alone, ran))
        assert len(one) == len(two) > 1
        for here, there in zip(one, two, strict=True):
            for column, value in here.items():
                try:
                    expected = float(value)
                except ValueError:
                    assert there[column] == value
                    continue
                if folder == "cut" or column in ("mean", "value", "queries"):  # else other draws
                    assert float(there[column]) == pytest.approx(expected, abs=1e-12), column


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--fold", "1"), "--fold does not go with --dask and --workers"),
        (("--separator", ";"), "--separator does not go with --dask and --workers"),
        (("--query", "no"), "there is no column 'no' (for --query)"),
    ],
)
def test_what_does_not_go_together_is_refused(run, tmp_path, monkeypatch, models, more, said):
    monkeypatch.setattr(options.Cluster, "client", lambda self: nullcontext("a client"))
    monkeypatch.setattr("tierrank.data.cluster.client_of", lambda client: client)
    table().to_parquet(tmp_path / "all.parquet", index=False)
    ran = run("evaluate", *models, tmp_path / "all.parquet", "--workers", "1", *more)
    assert ran.code == 1
    assert said in ran.text


def test_files_of_scores_and_standard_input_are_for_one_process(run, tmp_path, models):
    (tmp_path / "scores.txt").write_text("1\n2\n")
    table().to_parquet(tmp_path / "all.parquet", index=False)
    ran = run("evaluate", tmp_path / "scores.txt", tmp_path / "all.parquet", "--workers", "1")
    assert ran.code == 1
    assert "take models, not files of scores" in ran.text
    ran = run("evaluate", models[0], "-", "--workers", "1")
    assert ran.code == 1
    assert "- (standard input) does not go with" in ran.text
