"""`tierrank aggregate --features`: log-worths as a weighted sum of features of the items."""

import csv
import json
import re

import numpy as np
import pytest

import tierrank as tr

CARS = {"ant": [9.0, 45.0], "bee": [14.0, 90.0], "cat": [30.0, 150.0], "dog": [22.0, 70.0],
        "elk": [18.0, 110.0]}  # fmt: skip
VOTES = [["bee", ["ant", "elk"]], [["elk", "bee"], "cat", "dog"], ["cat", "elk", "dog"],
         ["ant", "dog"], ["elk", "bee", "cat"], ["bee", "dog", "ant"]] * 3  # fmt: skip


@pytest.fixture
def votes(tmp_path):
    path = tmp_path / "votes.jsonl"
    path.write_text("".join(json.dumps(vote) + "\n" for vote in VOTES))
    return path


@pytest.fixture
def cars(tmp_path):
    path = tmp_path / "cars.csv"
    rows = [f"{name},{price},{power}\n" for name, (price, power) in CARS.items()]
    path.write_text("item,price,power\n" + "".join(rows))
    return path


@pytest.fixture
def fitted():
    lists = [[tuple(tier) if isinstance(tier, list) else tier for tier in vote] for vote in VOTES]
    return tr.FeatureAggregator().fit(lists, CARS)


def test_coefficients_are_the_librarys_and_stand_in_every_output(
    run, votes, cars, fitted, tmp_path
):
    out, table = tmp_path / "report.html", tmp_path / "worths.csv"
    ran = run("aggregate", votes, "--features", cars, "--json", tmp_path / "all.json",
              "--csv", table, "--out", out, "--save", tmp_path / "model")  # fmt: skip
    assert ran.code == 0, ran.text
    found = json.loads((tmp_path / "all.json").read_text())
    coefficients = found["parameters"]
    assert [each["name"] for each in coefficients] == [
        "coefficient of price", "coefficient of power",
    ]  # fmt: skip
    for each, coef, error in zip(
        coefficients, fitted.coef_, fitted.coef_standard_errors_, strict=True
    ):
        assert each["estimate"] == pytest.approx(coef)
        assert each["standard_error"] == pytest.approx(error)
        line = rf"{each['name']}: {coef:.4f}, 95% interval .*, standard error {error:.4f}"
        assert re.search(line, ran.text)
    rows = {row["item"]: row for row in found["results"]}
    for item, w, error in zip(
        fitted.items_, fitted.log_worths_, fitted.standard_errors_, strict=True
    ):
        assert rows[item]["log_worth"] == pytest.approx(w)
        assert rows[item]["standard_error"] == pytest.approx(error)
    with (tmp_path / "worths-coefficients.csv").open(newline="") as file:
        written = list(csv.DictReader(file))
    assert float(written[1]["standard_error"]) == coefficients[1]["standard_error"]
    with table.open(newline="") as file:
        assert [row["item"] for row in csv.DictReader(file)] == fitted.ranking()
    page = out.read_text()
    section = page[page.index('<section id="parameters"') : page.index('<section id="data"')]
    assert "coefficient of price" in section
    assert f"{fitted.coef_standard_errors_[0]:.4f}" in section
    np.testing.assert_allclose(tr.load(tmp_path / "model").coef_, fitted.coef_)


def test_who_is_left_out_may_have_features(run, votes, cars):
    ran = run("aggregate", votes, "--features", cars, "--exclude", "elk", "--l2", "0.01", "--json",
              "-")  # fmt: skip
    assert ran.code == 0, ran.text
    assert len(json.loads(ran.out)["results"]) == 4


def test_names_that_are_numbers_are_found(run, tmp_path):
    votes, table = tmp_path / "votes.csv", tmp_path / "items.csv"
    votes.write_text("list,item,rank\n1,7,1\n1,8,2\n2,8,1\n2,7,2\n3,7,1\n3,8,2\n")
    table.write_text("item,x\n7,1.5\n8,0.5\n")
    ran = run("aggregate", votes, "--features", table)
    assert ran.code == 0, ran.text
    assert f"coefficient of x: {np.log(2):.4f}" in ran.text


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("item,x\nant,1\nbee,2\n", "has no features of 'cat', 'dog', 'elk': give them"),
        ("item,x\nant,1\nfox,2\n", "has features of 'fox', which no list names"),
        ("item,x\nant,1\nant,2\n", "item 'ant' has two rows"),
        ("item,x\nant,one\nbee,2\n", "line 2: the feature column 'x' has 'one'"),
        ("item,x\nant,\nbee,2\ncat,1\ndog,1\nelk,1\n", "item 'ant': feature 'x' is nan"),
        ("item\nant\n", "has no column beside item"),
        ("name,x\nant,1\n", "there is no column 'item' (for --features)"),
        (",item,x\n0,ant,1\n", "has no name of its own, as when pandas writes its row numbers"),
    ],
)
def test_what_is_wrong_with_features_is_said(run, votes, tmp_path, content, message):
    path = tmp_path / "items.csv"
    path.write_text(content)
    ran = run("aggregate", votes, "--features", path)
    assert ran.code == 1
    assert f"Error: {path}" in ran.text
    assert message in ran.text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--prior", "gaussian"], "--prior is for worths without --features; --l2 keeps"),
        (["--model", "davidson"], "--features: davidson takes none"),
        (["--home"], "--home is for worths without --features"),
        (["--solver", "lbfgs"], "--solver is for worths without --features"),
    ],
)
def test_what_does_not_go_with_features_is_refused(run, votes, cars, arguments, message):
    ran = run("aggregate", votes, "--features", cars, *arguments)
    assert ran.code == 1
    assert message in ran.text


def test_a_penalty_goes_with_features(run, votes):
    ran = run("aggregate", votes, "--l2", "1")
    assert ran.code == 1
    assert "it goes with --features" in ran.text


def test_a_table_that_is_not_there_is_named(run, votes, tmp_path):
    ran = run("aggregate", votes, "--features", tmp_path / "absent.csv")
    assert ran.code == 1
    assert "absent.csv: No such file" in ran.text
