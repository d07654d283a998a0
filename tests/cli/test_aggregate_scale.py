"""`tierrank aggregate --scale elo --anchor NAME=RATING`: table, CSV, JSON and page."""

import csv
import json

import numpy as np
import pytest

import tierrank as tr


@pytest.fixture
def votes(tmp_path):
    path = tmp_path / "votes.csv"
    rows = ["ann,bob,ann"] * 7 + ["ann,bob,bob"] * 3 + ["bob,cy,bob"] * 6 + ["bob,cy,cy"] * 4
    path.write_text("\n".join(["a,b,winner", *rows, "ann,cy,ann", "ann,cy,cy"]) + "\n")
    return path


def test_ratings_are_in_all_that_is_written(run, votes, tmp_path):
    found = run(
        "aggregate", votes, "--scale", "elo", "--anchor", "bob=1200", "--csv", tmp_path / "w.csv",
        "--json", tmp_path / "w.json", "--out", tmp_path / "w.html",
    )  # fmt: skip
    assert "rating" in found.text
    assert "1200" in found.text
    assert "Rating (bob is 1,200); 95% intervals" in found.text
    fitted = tr.RankAggregator().fit(tr.data.read_rankings(votes))
    estimate, low, high = fitted.intervals(scale="elo", anchor={"bob": 1200})
    with (tmp_path / "w.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["item"] for row in rows] == fitted.ranking()
    for row in rows:
        at = fitted.items_.index(row["item"])
        expected = [fitted.log_worths_[at], estimate[at], low[at], high[at]]
        columns = ("log_worth", "rating", "rating_low", "rating_high")
        np.testing.assert_allclose([float(row[name]) for name in columns], expected, rtol=1e-9)
    written = json.loads((tmp_path / "w.json").read_text())
    assert written["scale"] == "rating (bob is 1,200)"
    assert written["results"][0]["rating"] == pytest.approx(estimate.max())
    assert "bob is 1,200" in (tmp_path / "w.html").read_text()


def test_without_a_scale_all_is_as_it_was(run, votes, tmp_path):
    assert "Log-worth (0 is the average item)" in run("aggregate", votes).text
    run("aggregate", votes, "--csv", tmp_path / "w.csv")
    assert "rating" not in (tmp_path / "w.csv").read_text()


def test_an_item_may_have_an_equals_sign_in_its_name(run, tmp_path):
    path = tmp_path / "votes.csv"
    path.write_text("a,b,winner\nx=1,y,x=1\nx=1,y,y\n")
    assert (
        "Rating (x=1 is 1,000)" in run("aggregate", path, "--scale", "elo", "--anchor", "x=1").text
    )
    found = run("aggregate", path, "--scale", "elo", "--anchor", "x=1=1500")
    assert "Rating (x=1 is 1,500)" in found.text


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--scale", "chess"], "--scale is one of log-worth, elo, worth"),
        (["--scale", "worth", "--anchor", "bob"], "worths sum to 1 and have none"),
        (["--scale", "elo", "--anchor", "bobb"], "there is no item 'bobb'. Did you mean 'bob'"),
        (["--scale", "elo", "--anchor", "bob=high"], "'high' is no rating; write ITEM=1200"),
    ],
)
def test_what_is_wrong_is_said(run, votes, given, said):
    found = run("aggregate", votes, *given)
    assert found.code != 0
    assert said.lower() in found.text.lower()
