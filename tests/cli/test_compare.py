"""`tierrank compare`: the same folds for all, a table, files and a plot."""

import csv
import json

import numpy as np
import pytest

import tierrank as tr
from tierrank import metrics
from tierrank.data import read_letor, write_letor

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture
def parts(tmp_path, simulate):
    """Five parts, as LETOR's data sets come."""
    folder = tmp_path / "parts"
    for part in range(1, 6):
        data = simulate(8, first=100 * part)
        write_letor(folder / f"S{part}.txt", data.X, data.y, data.qid)
    return folder


def test_the_folds_of_a_folder_give_what_fitting_by_hand_gives(run, parts, tmp_path):
    objectives = ["pl-partition", "listnet"]
    typed = [word for name in objectives for word in ("--objective", name)]
    ran = run("compare", parts, "--model", "linear", *typed, "--out", tmp_path / "c")
    assert ran.code == 0
    assert "40 test queries in 5 folds" in ran.text

    data = [read_letor(parts / f"S{part}.txt") for part in range(1, 6)]
    values = {}
    for objective in objectives:
        columns = []
        for fold in range(5):
            a, b, c, _, test = (data[(fold + step) % 5] for step in range(5))
            ranker = tr.LinearRanker(objective).fit(
                np.concatenate([a.X, b.X, c.X]),
                np.concatenate([a.y, b.y, c.y]),
                qid=np.concatenate([a.qid, b.qid, c.qid]),
            )
            scores = ranker.predict(test.X)
            columns.append(metrics.ndcg(scores, test.y, qid=test.qid, reduction="none"))
        values[objective] = np.concatenate(columns)
    first, second = json.loads((tmp_path / "c" / "comparison.json").read_text())["results"]
    assert first["mean"] == pytest.approx(values["pl-partition"].mean(), abs=1e-12)
    assert second["mean"] == pytest.approx(values["listnet"].mean(), abs=1e-12)
    difference = values["listnet"] - values["pl-partition"]
    assert second["difference"] == pytest.approx(difference.mean(), abs=1e-12)
    assert first["queries"] == second["queries"] == 40
    assert f"{second['mean']:.4f}" in ran.text


def test_the_files_hold_all_metrics_and_the_plot_is_a_picture(run, parts, tmp_path):
    out = tmp_path / "c"
    ran = run(
        "compare", parts / "S1.txt", "--folds", 2, "--model", "linear",
        "--objective", "pl-partition", "--objective", "pl-topk:k=2",
        "--metric", "ndcg@5", "--metric", "map", "--out", out, columns=80,
    )  # fmt: skip
    assert ran.code == 0
    table = ran.out.partition("comparison.csv")[0]
    assert max(len(line) for line in table.splitlines()) <= 80
    rows = list(csv.DictReader((out / "comparison.csv").open()))
    assert [(row["name"], row["metric"]) for row in rows] == [
        ("linear pl-partition", "ndcg@5"),
        ("linear pl-topk:k=2", "ndcg@5"),
        ("linear pl-partition", "map"),
        ("linear pl-topk:k=2", "map"),
    ]
    about = json.loads((out / "comparison.json").read_text())
    assert about["rankers"]["linear pl-topk:k=2"]["params"]["objective_params"] == {"k": 2}
    assert len(about["folds"]) == 4
    assert (out / "comparison.png").read_bytes().startswith(PNG)
    assert len(list(out.iterdir())) == 3


def test_the_same_seed_cuts_the_same_folds(run, parts):
    arguments = ["compare", parts / "S1.txt", "--folds", 3, "--model", "linear", "--seed"]
    texts = [run(*arguments, seed, columns=80).out for seed in (1, 1, 2)]  # 80: without times
    assert texts[0] == texts[1] != texts[2]


def test_kinds_are_compared_too_with_settings_of_their_own(run, parts):
    ran = run(
        "compare", parts / "S1.txt", "--folds", 2, "--model", "linear", "--model", "neural",
        "--set", "linear.l2=0.5", "--set", "neural.max_epochs=1", "--set", "hidden=[3]",
    )  # fmt: skip
    assert ran.code == 0
    assert "linear pl-partition" in ran.text
    assert "neural pl-partition" in ran.text


def test_a_ranker_that_fails_is_left_out_and_named(run, parts, tmp_path):
    ran = run(
        "compare", parts / "S1.txt", "--folds", 2, "--model", "neural", "--model", "linear",
        "--objective", "pl-partition", "--objective", "listnet",
        "--set", "neural.learning_rate=1e30", "--set", "hidden=[]", "--out", tmp_path / "c",
    )  # fmt: skip
    assert ran.code == 1
    assert "Left out: neural pl-partition. fold 1: training went astray" in ran.text
    results = json.loads((tmp_path / "c" / "comparison.json").read_text())["results"]
    assert [each["name"] for each in results] == ["linear pl-partition", "linear listnet"]
    assert results[1]["difference"] is not None  # the first of those that are left


def test_categories_are_split_and_for_boosted_trees_only(run, tmp_path):
    rng = np.random.default_rng(0)
    shop = rng.choice(["north", "south", "east", "west", "web"], 600)
    grade = np.isin(shop, ["south", "web"]).astype(int) + (rng.random(600) < 0.05)
    lines = [f"{row // 10},{grade[row]},{shop[row]},{rng.normal():.3f}" for row in range(600)]
    path = tmp_path / "shops.csv"
    path.write_text("\n".join(["qid,label,shop,price", *lines]) + "\n")
    own = 'library_params={"min_data_per_group": 5, "cat_smooth": 1}'
    typed = ["compare", path, "--folds", 2, "--categories", "shop", "--set", own]
    ran = run(*typed, "--model", "boosted", "--metric", "ndcg@5", "--out", tmp_path / "c")
    assert ran.code == 0
    (found,) = json.loads((tmp_path / "c" / "comparison.json").read_text())["results"]
    assert found["mean"] > 0.9  # the shop says nearly all
    ran = run(*typed, "--model", "boosted", "--model", "linear")
    assert ran.code == 1
    assert "--categories are for --model boosted" in ran.text


def test_peers_learn_from_the_same_folds_with_settings_of_their_own(run, parts, tmp_path):
    names = ["lightgbm:lambdarank", "xgboost:rank:pairwise"]
    typed = [word for name in names for word in ("--peer", name)]
    ran = run(
        "compare", parts / "S1.txt", "--folds", 2, "--model", "linear", *typed,
        "--set", "trees=3", "--set", "lightgbm.leaves=3", "--set", "members=2",
        "--out", tmp_path / "c", columns=140,
    )  # fmt: skip
    assert ran.code == 0
    assert "p, Holm" in ran.text
    about = json.loads((tmp_path / "c" / "comparison.json").read_text())
    assert [each["name"] for each in about["results"]] == ["linear pl-partition", *names]
    assert all(each["p_holm"] >= each["p_value"] for each in about["results"][1:])
    settings = {name: about["rankers"][name]["params"] for name in names}
    assert [settings[name]["leaves"] for name in names] == [3, "auto"]
    assert [settings[name]["members"] for name in names] == [2, 2]
    assert {each["best_step"] for each in about["folds"] if each["ranker"] in names} <= {1, 2, 3}
    assert (tmp_path / "c" / "comparison.png").read_bytes().startswith(PNG)


def test_all_peers_are_those_that_are_installed(run, parts, monkeypatch):
    from tierrank.ranking import peers

    found = peers.find_spec
    without = {"catboost", "xgboost"}
    monkeypatch.setattr(peers, "find_spec", lambda name: None if name in without else found(name))
    ran = run(
        "compare", parts / "S1.txt", "--folds", 2, "--model", "linear", "--peer", "all",
        "--set", "trees=2",
    )  # fmt: skip
    assert ran.code == 0
    assert "catboost:YetiRank needs catboost, which is not installed: pip install cat" in ran.text
    assert "lightgbm:rank_xendcg" in ran.out
    assert "xgboost:rank:ndcg" not in ran.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--peer", "lightgbm:lambdamart"], "Did you mean 'lightgbm:lambdarank'"),
        (["--peer", "xgboost:rank:ndcg", "--peer", "xgboost:rank:ndcg"], "is asked for twice"),
        (["--peer", "xgboost:rank:ndcg", "--set", "xgboost.depth=3"], "has no such setting"),
        (["--objective", "listmel"], "did you mean 'listmle'"),
        (["--objective", "listnet", "--objective", "listnet"], "is asked for twice"),
        (["--set", "boosted.trees=5"], "boosted is not one of the models"),
        (["--set", "trees=5"], "a linear ranker has no such setting"),
        (["--metric", "ndgc"], "did you mean 'ndcg'"),
        (["--folds", "50"], "8 queries make 2 to 8 folds, not 50"),
    ],
)
def test_wrong_arguments_are_explained(run, parts, arguments, message):
    ran = run("compare", parts / "S1.txt", "--model", "linear", *arguments)
    assert ran.code == 1
    assert message in ran.text
