"""`tierrank aggregate` on a Dask cluster."""

import json

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("distributed")
pytest.importorskip("pyarrow")


def races():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"race": np.repeat(np.arange(60), 4), "place": np.tile([1, 2, 2, 3], 60)})
    frame["driver"] = np.concatenate([rng.choice(list("abcdef"), 4, False) for _ in range(60)])
    return frame.sample(frac=1, random_state=0)


@pytest.mark.slow
def test_workers_that_it_starts_count_lists_over_files(run, tmp_path):
    whole = races()
    whole.to_parquet(tmp_path / "all.parquet", index=False)
    (tmp_path / "parts").mkdir()
    for number in range(3):
        part = whole.iloc[80 * number : 80 * (number + 1)]  # which cuts races in two
        part.to_parquet(tmp_path / "parts" / f"{number}.parquet", index=False)
    found = {}
    for name, file, more in (
        ("one", tmp_path / "all.parquet", ()),
        ("two", tmp_path / "parts", ("--workers", "2")),
    ):
        ran = run(
            "aggregate", file, *more, "--list", "race", "--item", "driver", "--rank", "place",
            "--json", tmp_path / f"{name}.json", "--out", tmp_path / f"{name}.html",
        )  # fmt: skip
        assert ran.code == 0, ran.text
        assert ("Dask workers here" in ran.text) == bool(more)
        rows = json.loads((tmp_path / f"{name}.json").read_text())["results"]
        found[name] = {row["item"]: (row["log_worth"], row["standard_error"]) for row in rows}
    assert set(found["one"]) == set(found["two"]) == set("abcdef")
    for item, numbers in found["one"].items():
        assert found["two"][item] == pytest.approx(numbers, abs=1e-9)


def test_a_cluster_and_the_start_of_one_are_not_asked_for_together(run, tmp_path):
    races().to_parquet(tmp_path / "all.parquet")
    ran = run(
        "aggregate", tmp_path / "all.parquet", "--workers", "2", "--dask", "tcp://127.0.0.1:1"
    )
    assert ran.code != 0
    assert "give one of them" in ran.text
