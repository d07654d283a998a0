"""Real votes and races through `tierrank aggregate`, and its report in a real browser."""

import csv
import io
import tarfile

import numpy as np
import pytest

import browser
from real_data import real


def records(text):
    return list(csv.DictReader(io.StringIO(text)))


def numbers(rows, name):
    return np.array([float(row[name]) for row in rows])


@pytest.fixture(scope="module")
def chromium():
    path = browser.find()
    if path is None:
        pytest.skip("there is no chromium here, to see the page in a real browser")
    with browser.Browser(path) as running:
        yield running


def seen(chromium, report, width):
    with chromium.open(report, width=width) as tab:
        assert tab.complaints() == []
        assert len(tab.requests()) == 1  # itself, and nothing from elsewhere
        wide = tab.run("document.documentElement.scrollWidth")
        assert wide <= width
        return tab.run("""({
            title: document.querySelector("h1").textContent,
            sections: [...document.querySelectorAll("section")].map((each) => each.id),
            names: [...document.querySelectorAll(".main bdi")].map((each) => each.textContent),
            dots: document.querySelectorAll("circle.dot").length,
            settings: document.querySelector("#settings").textContent,
            parameters: document.querySelector("#parameters")?.textContent,
        })""")


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.data
def test_the_report_of_votes_on_language_models_opens_in_a_browser(
    run, chromium, tmp_path, width
):  # fmt: skip
    votes = real("llmfao", "crowd-comparisons.csv.xz")
    report = tmp_path / "report.html"
    ran = run("aggregate", votes, "--model", "davidson", "--out", report, "--csv", "-",
              "--title", "Language models")  # fmt: skip
    assert ran.code == 0
    assert f"The report is in {report}" in ran.text
    page = seen(chromium, report, width)
    assert page["title"] == "Language models"
    assert page["sections"] == [
        "ranking", "pick", "tiers", "pairs", "parameters", "data", "fit", "settings",
    ]  # fmt: skip
    assert page["names"] == [row["item"] for row in records(ran.out)]
    assert len(page["names"]) == page["dots"] == 59
    assert "davidson" in page["settings"]
    assert "log v (ties)" in page["parameters"]


@pytest.mark.data
def test_the_report_of_a_preflib_file_opens_in_a_browser(run, chromium, tmp_path):
    with tarfile.open(real("preflib", "00006-skate.tar.xz")) as archive:
        name = sorted(each for each in archive.getnames() if each.endswith(".toc"))[0]
        archive.extract(name, tmp_path, filter="data")
    report = tmp_path / "report.html"
    ran = run("aggregate", tmp_path / name, "--prior", "gaussian:2", "--top-k", 3, "--out", report,
              "--csv", "-")  # fmt: skip
    assert ran.code == 0, ran.text
    page = seen(chromium, report, 1280)
    assert page["names"] == [row["item"] for row in records(ran.out)]
    assert "gaussian:2" in page["settings"]
    assert numbers(records(ran.out), "top_k").sum() == pytest.approx(3)


@pytest.mark.data
def test_columns_of_other_names_and_words_for_missing_ranks(run):
    races = real("f1", "race_results.csv.xz")
    ran = run("aggregate", races, "--list", "season", "--list", "race", "--item", "driverId",
              "--rank", "position", "--missing-rank", "last", "--twice", "best",
              "--prior", "pseudo-item", "--no-tiers", "--top", 3)  # fmt: skip
    assert ran.code == 0, ran.text
    assert "860 items; 1,160 lists" in ran.text
    assert "Intervals of ranks were left out" in ran.text
