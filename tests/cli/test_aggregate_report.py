"""Real votes and races through `tierrank aggregate`, and its report in a real browser."""

import csv
import io
import re
import sys
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
        "ranking", "pick", "tiers", "pairs", "check", "parameters", "data", "fit", "settings",
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


VOTES = "list,item,rank\n1,ann,1\n1,bob,2\n2,bob,1\n2,cy,2\n3,cy,1\n3,ann,2\n4,ann,1\n4,cy,2\n"


@pytest.fixture
def votes(tmp_path):
    file = tmp_path / "votes.csv"
    file.write_text(VOTES)
    return file


def test_a_page_has_links_groups_a_logo_a_colour_and_a_card(run, votes, tmp_path):
    items = tmp_path / "items.csv"
    items.write_text("item,link,group\nann,https://example.com/a?b=1&c,north\nbob,,south\nzoe,,x\n")
    logo = tmp_path / "logo.svg"
    logo.write_text('<svg xmlns="http://www.w3.org/2000/svg"/>')
    out, card = tmp_path / "page.html", tmp_path / "card.png"
    ran = run("aggregate", votes, "--out", out, "--items", items, "--logo", logo,
              "--accent", "#c03", "--card", card)  # fmt: skip
    assert ran.code == 0, ran.text
    page = out.read_text()
    assert '<a href="https://example.com/a?b=1&amp;c" rel="noopener nofollow"><bdi>ann' in page
    assert '<td class="group">south</td>' in page
    assert "data:image/svg+xml;base64," in page
    assert "--best:#cc0033" in page
    assert card.read_bytes().startswith(b"\x89PNG")
    assert f"The card is in {card}" in ran.text


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--items", "items.csv"), "items.csv, line 2: the link is 'javascript:alert(1)': give"),
        (("--items", "other.csv"), "names none of the items, such as ann"),
        (("--items", "bare.csv"), "neither a column link nor one group"),
        (("--items", "none.csv"), "none.csv"),
        (("--accent", "blue"), "give it as #rrggbb"),
        (("--logo", "bare.csv"), "no PNG, JPEG or SVG"),
        (("--card", "card.jpg"), "a picture is a .png"),
    ],
)
def test_what_a_page_cannot_have_is_refused(run, votes, tmp_path, monkeypatch, options, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "items.csv").write_text("item,link\nann,javascript:alert(1)\n")
    (tmp_path / "other.csv").write_text("item,link\nzoe,https://example.com\n")
    (tmp_path / "bare.csv").write_text("item,colour\nann,red\n")
    ran = run("aggregate", votes, "--out", tmp_path / "page.html", *options)
    assert ran.code != 0
    assert said in ran.text
    assert not (tmp_path / "page.html").exists()


def test_the_title_is_the_one_that_the_file_has(run, tmp_path):
    file = tmp_path / "00001.soc"
    file.write_text(
        "# FILE NAME: 00001.soc\n# TITLE: Lunch <b>\n# DATA TYPE: soc\n# NUMBER ALTERNATIVES: 2\n"
        "# NUMBER VOTERS: 3\n# NUMBER UNIQUE ORDERS: 2\n# ALTERNATIVE NAME 1: soup\n"
        "# ALTERNATIVE NAME 2: salad\n2: 1,2\n1: 2,1\n"
    )
    out = tmp_path / "page.html"
    assert run("aggregate", file, "--out", out).code == 0
    assert "<h1>Lunch &lt;b&gt;</h1>" in out.read_text()


def test_the_page_has_the_command_that_makes_it_without_folders(run, votes, tmp_path, monkeypatch):
    out = tmp_path / "page.html"
    words = ["aggregate", str(votes), f"--out={out}", "--title", "ann/bob, a vote", "--seed=3"]
    monkeypatch.setattr(sys, "argv", ["/usr/bin/tierrank", *words])
    assert run(*words).code == 0
    page = re.sub(r"</?span>", "", out.read_text())
    files = "tierrank aggregate votes.csv --out=page.html"
    assert f"{files} --title &#39;ann/bob, a vote&#39; --seed=3" in page
    assert str(tmp_path) not in page
