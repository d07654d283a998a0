"""`tierrank aggregate --time`: worths that change, from a table with dates."""

import csv
import datetime
import json

import numpy as np
import pytest

import tierrank as tr


@pytest.fixture
def matches(tmp_path):
    random = np.random.default_rng(1)
    w = np.array([1.0, 0.4, -0.4, -1.0])
    lines = ["day,left,right,winner"]
    for number in range(400):
        w = w + random.normal(0, 0.08, 4)
        one, two = random.permutation(4)[:2].tolist()
        lead = w[one] - w[two] + 0.3 + random.logistic()
        won = "tie" if abs(lead) < 0.4 else "left" if lead > 0 else "right"
        day = datetime.date(2024, 1, 1) + datetime.timedelta(2 * number)
        lines.append(f"{day},p{one},p{two},{won}")
    path = tmp_path / "matches.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_worths_that_change_are_those_that_python_gives(run, matches, tmp_path):
    ran = run("aggregate", matches, "--time", "day", "--step", "1m", "--home",
              "--json", tmp_path / "fit.json", "--csv", tmp_path / "fit.csv",
              "--out", tmp_path / "page.html", "--plot", tmp_path / "plot.png",
              "--save", tmp_path / "model")  # fmt: skip
    assert ran.code == 0, ran.text
    assert "So the model is davidson" in ran.err
    assert "σ a step (1m)" in ran.text
    fitted = tr.WorthsThroughTime(time="day", step="1m", home=True).fit(
        tr.data.read_games(matches, keep=["day"])
    )
    found = json.loads((tmp_path / "fit.json").read_text())
    assert [row["item"] for row in found["results"]] == fitted.ranking()
    assert found["fit"]["log_likelihood"] == pytest.approx(fitted.log_likelihood_)
    assert found["parameters"][0]["estimate"] == pytest.approx(fitted.variance_**0.5)
    assert found["through_time"]["periods"] == list(fitted.periods_)
    curve = found["through_time"]["curves"][0]
    expected = fitted.through_time(items=[curve["item"]])
    assert curve["low"] == pytest.approx(expected.low[0].tolist())
    rows = list(csv.DictReader((tmp_path / "fit-through-time.csv").open()))
    assert list(rows[0]) == ["item", "period", "log_worth", "low", "high"]
    assert len(rows) == len(fitted.curves_frame())
    assert rows[0]["item"] == fitted.ranking()[0]
    assert float(rows[-1]["high"]) == pytest.approx(fitted.curves_frame(
        items=[rows[-1]["item"]])["high"].iloc[-1])  # fmt: skip
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")
    page = (tmp_path / "page.html").read_text()
    assert "Through time" in page
    assert "2024-01-01 to 2026-03-09" in page
    assert tr.load(tmp_path / "model").periods_ == fitted.periods_


def test_a_given_variance_other_models_and_ratings(run, matches, tmp_path):
    ran = run("aggregate", matches, "--time", "day", "--step", "60d", "--innovation", 0.05,
              "--model", "pl-partition", "--scale", "elo", "--json", tmp_path / "fit.json",
              "--csv", tmp_path / "fit.csv")  # fmt: skip
    assert ran.code == 0, ran.text
    found = json.loads((tmp_path / "fit.json").read_text())
    assert found["settings"]["variance of a step"] == "0.05 (given)"
    assert found["settings"]["model"] == "plackett-luce"
    last = found["through_time"]["curves"][0]
    assert last["estimate"][-1] == pytest.approx(found["results"][0]["rating"])
    assert last["high"][-1] == pytest.approx(found["results"][0]["rating_high"])
    header = (tmp_path / "fit-through-time.csv").read_text().partition("\n")[0]
    assert header.strip() == "item,period,rating,low,high"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--time", "date"], "there is no column 'date'"),
        (["--time", "day", "--step", "5x"], "--step is '5x'"),
        (["--time", "day", "--step", "5"], "of dates, give --step 30d"),
        (["--time", "left"], "no date in ISO's form"),
        (["--time", "day", "--innovation", "much"], "--innovation is auto or a variance above 0"),
        (["--time", "day", "--innovation", "0"], "--innovation is a number above 0"),
        (["--time", "day", "--model", "davidson-luce"], "--time goes with pl-partition, davidson"),
        (["--time", "day", "--model", "pl-efron"], "--time goes with pl-partition, davidson"),
        (["--time", "day", "--solver", "lbfgs"], "--solver is for worths that do not change"),
        (["--time", "day", "--uncertainty", "sandwich"], "worths that do not change"),
        (["--time", "day", "--clusters", "left"], "--clusters does not go with --time"),
        (["--time", "day", "--prior", "pseudo-item"], "--prior gaussian:3"),
        (["--time", "day", "--top-k", "2", "--model", "davidson"], "--top-k"),
        (["--plot", "plot.png"], "it goes with --time"),
        (["--time", "day", "--plot", "plot.txt"], "a picture is a .png, .pdf or .svg file"),
        (["--step", "1m"], "they go with --time"),
        (["--innovation", "0.1"], "they go with --time"),
    ],
)
def test_what_cannot_be_is_refused_in_the_words_of_the_command(run, matches, options, said):
    ran = run("aggregate", matches, *options)
    assert ran.code in (1, 2)
    assert said in ran.text.replace("\n", " ")
