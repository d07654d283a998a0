"""Matrices of who passed what."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import tierrank as tr
from tierrank.data import Rankings, UnclearTable, read_long_rankings, read_pass_fail, read_rankings

MODELS, TASKS = 5, 12


@pytest.fixture
def passes():
    """[models, tasks] 1, 0, or NaN where it was not tried."""
    random = np.random.default_rng(3)
    found = (random.random((MODELS, TASKS)) < np.linspace(0.7, 0.3, MODELS)[:, None]).astype(float)
    found[random.random((MODELS, TASKS)) < 0.15] = np.nan
    found[0, 3], found[1:, 3] = 1, np.nan  # tried by one alone
    found[:, 7] = np.nan  # and by nobody
    return found


def by_hand(passes):
    lists = {}
    for task, column in enumerate(passes.T):
        tiers = [tuple(f"m{m}" for m in np.flatnonzero(column == end)) for end in (1, 0)]
        if any(tiers):
            lists[f"t{task}"] = [tier for tier in tiers if tier]
    return lists


def as_text(passes, one, other, words=("1", "0")):
    """A row each of `one`, m or t."""
    cells = np.where(np.isnan(passes), "", np.where(passes == 1, *words))
    cells = cells if one == "m" else cells.T
    head = ",".join(
        [{"m": "model", "t": "task"}[one], *(f"{other}{i}" for i in range(len(cells[0])))]
    )
    return "\n".join([head, *(",".join([f"{one}{i}", *row]) for i, row in enumerate(cells))]) + "\n"


def listed(rankings):
    return {
        key: [set(tier) if isinstance(tier, tuple) else {tier} for tier in tiers]
        for key, tiers in zip(
            rankings.tiers.keys.tolist(), rankings.tiers.to_rankings(), strict=True
        )
    }


@pytest.mark.parametrize("words", [("1", "0"), ("true", "False"), ("PASS", "fail"), ("1.0", "0.0")])
@pytest.mark.parametrize("one", ["m", "t"])
def test_rows_may_be_models_or_tasks_in_any_words(passes, tmp_path, one, words):
    path = tmp_path / "passes.csv"
    path.write_text(as_text(passes, one, "t" if one == "m" else "m", words))
    named = {"item": "model"} if one == "m" else {"list": "task"}
    expected = {key: [set(tier) for tier in tiers] for key, tiers in by_hand(passes).items()}
    for given in ({}, named):
        assert listed(read_pass_fail(path, **given)) == expected
        assert listed(read_rankings(path, kind="pass-fail", **given)) == expected


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize("boolean", [False, True])
def test_frames_of_numbers_and_booleans(passes, make, boolean):
    whole = np.nan_to_num(passes)
    columns = {f"t{i}": whole[:, i].astype(bool if boolean else int) for i in range(TASKS)}
    found = read_pass_fail(make({"model": [f"m{i}" for i in range(MODELS)]} | columns))
    assert listed(found) == {k: [set(t) for t in v] for k, v in by_hand(whole).items()}


def test_worths_are_those_of_the_long_table(passes):
    rows = [
        (f"t{task}", f"m{model}", passes[model, task])
        for model, task in zip(*np.nonzero(~np.isnan(passes)), strict=True)
    ]
    long = read_long_rankings(pd.DataFrame(rows, columns=["list", "item", "score"]))
    wide = read_pass_fail(pd.DataFrame(
        {"model": [f"m{i}" for i in range(MODELS)]} | {f"t{i}": passes[:, i] for i in range(TASKS)}
    ))  # fmt: skip
    ours, theirs = (tr.RankAggregator(prior="gaussian").fit(each) for each in (wide, long))
    assert ours.log_likelihood_ == pytest.approx(theirs.log_likelihood_, rel=1e-12)
    at = [theirs.items_.index(item) for item in ours.items_]
    np.testing.assert_allclose(ours.log_worths_, theirs.log_worths_[at], atol=1e-9)


def test_tasks_have_weights_and_columns_beside():
    frame = pd.DataFrame({"task": ["a", "b", "c"], "x": [1, 0, None], "y": [0, 1, None],
                          "often": [2, 3, 4], "category": ["code", "math", "math"]})  # fmt: skip
    found = read_pass_fail(frame, weight="often", keep=["category"])
    assert isinstance(found, Rankings)
    assert found.weights.tolist() == [2, 3]  # nobody tried the third
    assert found.beside["category"].tolist() == ["code", "math"]


def test_a_matrix_that_nobody_named_is_shown_and_not_taken(tmp_path, passes):
    path = tmp_path / "passes.csv"
    path.write_text(as_text(passes, "m", "t"))
    with pytest.raises(UnclearTable, match="kind='pass-fail', item='model'"):
        read_rankings(path)


@pytest.mark.parametrize(
    ("text", "options", "said"),
    [
        ("model,t1\na,1\nb,maybe\n", {}, "line 3.*'maybe', which says neither passed"),
        ("model,t1\na,1\nb,2\n", {}, "line 3.*'2', which says neither"),
        ("model,t1\na,1\na,0\n", {}, "line 3.*named like another"),
        ("model,task,passed\na,t,1\n", {}, "two columns may name the rows: pass item=.*score="),
        ("x,y\n1,0\n", {}, "no column may name the rows"),
        ("model\na\n", {}, "no column beside"),
        ("model,t1\na,\n", {}, "no cell says who passed"),
        ("model,t1\na,1\n", {"keep": ["t1"]}, "keep= is for tables where a row is a task"),
        ("model,t1\na,1\n", {"item": "modell"}, "modell"),
    ],
)
def test_what_is_wrong_is_said(tmp_path, text, options, said):
    path = tmp_path / "passes.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=said):
        read_pass_fail(path, **options)
