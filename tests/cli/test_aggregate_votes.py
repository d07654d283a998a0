"""`tierrank aggregate --covariate --clusters`: what a vote depends on, and who cast it."""

import json
import re

import numpy as np
import pandas as pd
import pytest

import tierrank as tr


@pytest.fixture
def votes(tmp_path):
    rng = np.random.default_rng(0)
    games = 400
    first = rng.integers(4, size=games)
    second = (first + rng.integers(1, 4, size=games)) % 4
    long_a, long_b = rng.normal(size=(2, games)).round(3)
    lead = second - first + long_a - long_b + 2 * rng.logistic(size=games)
    frame = pd.DataFrame({
        "left": [f"p{code}" for code in first], "right": [f"p{code}" for code in second],
        "winner": np.where(lead > 0, "left", "right"), "long_a": long_a, "long_b": long_b,
        "turn": rng.integers(0, 2, games), "voter": rng.integers(0, 40, games),
    })  # fmt: skip
    frame.to_csv(tmp_path / "votes.csv", index=False)
    return tmp_path / "votes.csv"


def test_games_have_covariates_and_clusters(run, votes):
    ran = run("aggregate", votes, "--covariate", "long_a - long_b", "--covariate", "turn",
              "--clusters", "voter", "--json", "-")  # fmt: skip
    assert ran.code == 0, ran.text
    found = json.loads(ran.out)
    fitted = tr.PairedTies(
        "bradley-terry", covariates=[("long_a", "long_b"), "turn"], clusters="voter"
    ).fit(pd.read_csv(votes), first="left", second="right", winner="winner")
    parameters = {each["name"]: each for each in found["parameters"]}
    for name, coef, error in zip(
        fitted.covariate_names_, fitted.coef_, fitted.coef_standard_errors_, strict=True
    ):
        assert parameters[name]["estimate"] == pytest.approx(coef)
        assert parameters[name]["standard_error"] == pytest.approx(error)
    assert found["settings"]["uncertainty"] == "sandwich clustered by voter"


def test_a_report_has_coefficients(run, votes, tmp_path):
    ran = run("aggregate", votes, "--covariate", "turn", "--clusters", "voter",
              "--out", tmp_path / "page.html")  # fmt: skip
    assert ran.code == 0, ran.text
    assert "turn" in ran.text
    page = (tmp_path / "page.html").read_text()
    assert "turn" in page
    assert re.search(r"<dt>voters</dt>\s*<dd>40</dd>", page)
    assert "turns" not in page  # what a vote depends on is no figure for the head


def test_lists_have_covariates_of_items(run, tmp_path):
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({
        "list": np.repeat(np.arange(80), 3),
        "item": np.concatenate([rng.choice(["p", "q", "r", "s"], 3, False) for _ in range(80)]),
        "rank": np.concatenate([rng.permutation(3) for _ in range(80)]),
        "place": rng.normal(size=240), "voter": np.repeat(np.arange(80) % 20, 3),
    })  # fmt: skip
    frame.to_csv(tmp_path / "lists.csv", index=False)
    ran = run("aggregate", tmp_path / "lists.csv", "--covariate", "place", "--clusters", "voter",
              "--json", "-")  # fmt: skip
    assert ran.code == 0, ran.text
    fitted = tr.RankAggregator(covariates=["place"], clusters="voter").fit(
        frame, list="list", item="item", rank="rank"
    )
    (place,) = json.loads(ran.out)["parameters"]
    assert place["estimate"] == pytest.approx(fitted.coef_[0])
    assert place["standard_error"] == pytest.approx(fitted.coef_standard_errors_[0])


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (["--covariate", "lenght_a"], "there is no column 'lenght_a' (for --covariate)"),
        (["--clusters", "vter"], "there is no column 'vter'"),
        (["--covariate", "turn", "--covariate", "turn"], "--covariate names 'turn' twice"),
        (
            ["--covariate", "turn", "--model", "pl-partition"],
            "--covariate of games add to the lead",
        ),
    ],
)
def test_what_cannot_be_is_refused_in_words_of_the_command(run, votes, given, problem):
    ran = run("aggregate", votes, *given)
    assert ran.code == 1, ran.text
    assert problem in ran.text
