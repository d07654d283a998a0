"""`tierrank aggregate --by COLUMN`: a ranking for each category, from one file."""

import csv
import json

import numpy as np
import pytest

import tierrank as tr


@pytest.fixture
def votes(tmp_path):
    random = np.random.default_rng(1)
    rows = ["a,b,winner,lang"]
    for lang, games in (("de", 100), ("en", 200), ("fr", 2)):
        for _ in range(games):
            a, b = random.choice(["ann", "bob", "cy", "dee"], 2, replace=False)
            end = random.choice([a, b, "tie"]) if lang != "fr" else "tie"
            rows.append(f"{a},{b},{end},{lang}")
    path = tmp_path / "votes.csv"
    path.write_text("\n".join(rows) + "\n")
    return path


def test_a_ranking_for_each_category(run, votes, tmp_path):
    found = run(
        "aggregate", votes, "--by", "lang", "--csv", tmp_path / "w.csv", "--json",
        tmp_path / "w.json", "--out", tmp_path / "w.html",
    )  # fmt: skip
    assert found.code == 0, found.text
    assert "lang: fr. Note: 2 of 2 games are ties" in found.text
    assert "It is left out: all games are ties" in found.text
    with (tmp_path / "w.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert list(dict.fromkeys(row["lang"] for row in rows)) == ["en", "de"]  # most games first
    games = tr.data.read_games(votes, keep=["lang"]).by("lang")
    for lang in ("en", "de"):
        alone = tr.PairedTies().fit(games[lang])
        worths = {row["item"]: float(row["log_worth"]) for row in rows if row["lang"] == lang}
        assert worths == pytest.approx(dict(zip(alone.items_, alone.log_worths_, strict=True)))
    text = (tmp_path / "w.json").read_text()
    assert json.loads(text)
    page = (tmp_path / "w.html").read_text()
    assert "en" in page
    assert "de" in page


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--by", "langs"], "no column 'langs' (for --by"),
        (["--by", "lang", "--groups", "2"], "--groups is for one ranking of all: leave out --by"),
        (["--by", "lang", "--save", "folder"], "--save is for one ranking of all"),
    ],
)
def test_what_does_not_go_with_it_is_said(run, votes, given, said):
    found = run("aggregate", votes, *given)
    assert found.code != 0
    assert said in found.text


def test_categories_without_any_ranking(run, tmp_path):
    path = tmp_path / "votes.csv"
    path.write_text("a,b,winner,lang\nann,bob,ann,en\nann,bob,bob,\n")
    assert "list 1 has no 'lang'" in run("aggregate", path, "--by", "lang").text
    path.write_text("a,b,winner,lang\nann,bob,ann,en\nann,bob,bob,de\n")
    said = run("aggregate", path, "--by", "lang").text
    assert "no lang has a ranking of its own: The games do not" in said
