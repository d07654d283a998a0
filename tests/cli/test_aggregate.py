"""`tierrank aggregate`: from a file to a ranking with intervals, and what it refuses."""

import csv
import gzip
import io
import json
import shlex

import numpy as np
import pytest

import tierrank as tr
from tierrank.cli.progress import FitDisplay
from tierrank.data import Rankings, write_rankings
from votes import drawn_rankings

FILES = ("votes.csv", "votes.tsv.gz", "votes.parquet", "votes.jsonl", "votes.toi")


@pytest.fixture(scope="module")
def rankings():
    _, found = drawn_rankings(seed=5, items=7, lists=200, length=4, most_tied=2)
    named = [
        [tuple(f"item {i}" for i in tier) if isinstance(tier, tuple) else f"item {tier}"
         for tier in ranking]
        for ranking in found
    ]  # fmt: skip
    return Rankings.from_rankings(named)


@pytest.fixture
def votes(rankings, tmp_path):
    write_rankings(rankings, tmp_path / "votes.csv")
    return tmp_path / "votes.csv"


@pytest.fixture
def games(tmp_path):
    random = np.random.default_rng(1)
    lines = ["left,right,winner"]
    for _ in range(400):
        one, two = random.permutation(4)[:2].tolist()
        lead = two - one + 0.8 + 2 * random.logistic()
        lines.append(f"p{one},p{two}," + ("tie" if abs(lead) < 1 else "left" if lead > 0 else
                                          "right"))  # fmt: skip
    path = tmp_path / "games.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def records(text):
    return list(csv.DictReader(io.StringIO(text)))


def numbers(rows, name):
    return np.array([float(row[name]) for row in rows])


# -- what it says -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FILES)
def test_every_format_gives_the_worths_that_python_gives(run, rankings, tmp_path, name):
    write_rankings(rankings, tmp_path / name)
    ran = run("aggregate", tmp_path / name, "--csv", "-")
    assert ran.code == 0, ran.text
    rows = records(ran.out)
    fitted = tr.RankAggregator().fit(rankings)
    assert [row["item"] for row in rows] == fitted.ranking()
    order = np.argsort(-fitted.log_worths_)
    np.testing.assert_allclose(numbers(rows, "log_worth"), fitted.log_worths_[order], atol=1e-9)
    np.testing.assert_allclose(
        numbers(rows, "standard_error"), fitted.standard_errors_[order], rtol=1e-6
    )
    np.testing.assert_allclose(numbers(rows, "high"), fitted.intervals().high[order], rtol=1e-6)
    assert numbers(rows, "worth").sum() == pytest.approx(1)
    assert [int(row["rank"]) for row in rows] == list(range(1, 8))


def test_the_table_is_read_in_80_columns_and_says_what_was_fitted(run, votes, rankings):
    ran = run("aggregate", votes, "--top-k", 2, columns=80)
    assert ran.code == 0
    assert ran.err == (
        "Note: votes.csv: a row is an item of a list: list list, item item, rank rank, weight "
        "weight.\n"
    )
    lines = ran.out.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0].split() == ["rank", "item", "log-worth", "95%", "interval", "worth", "tier",
                                "ranks", "top", "2"]  # fmt: skip
    fitted = tr.RankAggregator().fit(rankings)
    best = fitted.ranking()[0]
    assert lines[2].split()[:3] == ["1", *best.split()]
    assert f"{fitted.top_k_proba(2).max():.1%}" in lines[2]
    assert f"log-likelihood {fitted.log_likelihood_:.2f}, AIC {fitted.aic_:.2f}" in ran.text
    assert f"7 items; 200 lists, {len(fitted.lists_.tiers)} different pl-partition" in ran.text
    assert "converged" in ran.text
    assert "the most probable cuts of the ranking" in ran.text


def test_long_names_fold_and_a_terminal_is_safe_from_them(run, tmp_path):
    long, nasty = "a very long name " * 8, "red\x1b[31m [bold]x[/] \u202eback"
    path = tmp_path / "votes.jsonl"
    lines = [[long, nasty, "c"], [nasty, "c", long], ["c", long, nasty]]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    ran = run("aggregate", path, columns=80)
    assert ran.code == 0
    assert max(map(len, ran.out.splitlines())) <= 80
    assert "\x1b" not in ran.out
    assert "\u202e" not in ran.out
    assert "[bold]x[/]" in ran.text


def test_of_many_items_the_first_are_shown(run, tmp_path):
    _, found = drawn_rankings(seed=1, items=60, lists=900, length=6, most_tied=2)
    write_rankings(Rankings.from_rankings(found), tmp_path / "votes.jsonl")
    ran = run("aggregate", tmp_path / "votes.jsonl")
    assert len([line for line in ran.out.splitlines() if " to " in line]) == 50
    assert "and 10 more; --top and --csv show them" in ran.text
    assert "more; --top" not in run("aggregate", tmp_path / "votes.jsonl", "--top", 60).text


def test_json_has_all_there_is(run, votes, rankings, tmp_path):
    ran = run("aggregate", votes, "--json", tmp_path / "new" / "fit.json", "--level", 0.9)
    assert ran.code == 0
    assert "rank item log-worth 90% interval" in ran.text  # the table is there too
    found = json.loads((tmp_path / "new" / "fit.json").read_text())
    fitted = tr.RankAggregator().fit(rankings)
    assert found["fit"]["log_likelihood"] == pytest.approx(fitted.log_likelihood_)
    assert found["data"]["lists"] == 200
    assert found["level"] == 0.9
    assert [row["item"] for row in found["results"]] == fitted.ranking()
    assert "most probable" in found["tier_criterion"]
    cuts = [row["cut_below"] for row in found["results"]]
    np.testing.assert_allclose(cuts[:-1], fitted.tiers().cut_probabilities, atol=1e-6)
    assert cuts[-1] is None
    piped = run("aggregate", votes, "--json", "-", "--level", 0.9)
    assert json.loads(piped.out)["results"] == found["results"]


def test_a_saved_model_is_the_fit(run, votes, rankings, tmp_path):
    assert run("aggregate", votes, "--save", tmp_path / "model").code == 0
    loaded = tr.load(tmp_path / "model")
    assert loaded.ranking() == tr.RankAggregator().fit(rankings).ranking()
    assert loaded.standard_errors_.shape == (7,)


# -- models -------------------------------------------------------------------------------------


def test_games_with_ties_are_davidsons_unless_another_model_is_asked_for(run, games, tmp_path):
    tied = games.read_text().count(",tie")
    ran = run("aggregate", games, "--json", tmp_path / "fit.json")
    assert ran.code == 0
    assert "games.csv: a row is a game of two sides: first left, second right" in ran.err
    assert f"Note: {tied} of 400 games are ties. So the model is davidson" in ran.err
    assert "4 items; 400 games, " in ran.out
    found = json.loads((tmp_path / "fit.json").read_text())
    assert (found["settings"]["model"], found["data"]["seen"]) == ("davidson", "games")
    assert found["data"]["lists"] == 400
    assert found["settings"]["read as"].startswith("a row is a game")
    expected = tr.PairedTies().fit(tr.data.read_games(games))
    assert found["fit"]["log_likelihood"] == pytest.approx(expected.log_likelihood_)
    assert "ties." not in run("aggregate", games, "--model", "davidson").err
    asked = run("aggregate", games, "--model", "pl-partition")
    assert f"Note: {tied} of 400 games are ties. To pl-partition a tie is an order" in asked.err
    assert "--model davidson" in asked.err
    assert f"400 games, 12 different; {tied} are one tie and say nothing" in asked.text


def test_pairs_to_ask_next_are_those_that_python_gives(run, games, tmp_path):
    found = tmp_path / "out.csv"
    ran = run("aggregate", games, "--next-pairs", 30, "--next-top", 2, "--csv", found)
    assert ran.code == 0, ran.text
    pairs = tr.PairedTies().fit(tr.data.read_games(games)).next_pairs(30, top=2)
    assert str(pairs) in ran.out
    rows = records((tmp_path / "out-next-pairs.csv").read_text())
    assert [(row["first"], row["second"], int(row["games"])) for row in rows] == [
        pair[:3] for pair in pairs
    ]
    assert "30 games that tell most" not in run("aggregate", games, "--csv", "-").text


def test_what_is_wrong_with_a_prior_is_said_without_an_option_that_there_is_not(run, games):
    ran = run("aggregate", games, "--prior", "gaussian:-1")
    assert ran.err == "Error: the scale of a Gaussian prior is a number above 0, not -1.0\n"


def test_where_pairs_cannot_be_chosen_nothing_is_written(run, games, tmp_path):
    before = sorted(tmp_path.iterdir())
    files = {"--out": "page.html", "--csv": "out.csv", "--save": "model"}
    named = [word for name, file in files.items() for word in (name, tmp_path / file)]
    ran = run("aggregate", games, "--next-pairs", 30, "--uncertainty", "none", *named)
    assert ran.code == 1
    assert "standard errors" in ran.text
    assert ran.out == ""
    assert sorted(tmp_path.iterdir()) == before


def test_what_becomes_of_words_for_outcomes_is_chosen_and_said(run, games, tmp_path):
    text = games.read_text()
    games.write_text(text + "p0,p1,bothbad\n" * 9 + "p1,p2,bad input\n" * 2 + "p2,p3,skip\n")
    refused = run("aggregate", games)
    assert refused.code
    assert 'or say what it means: --tie-word "bad input" (a tie), --drop-word "bad input"' in (
        refused.text
    )
    dropped = ["--drop-word", "skip", "--drop-word", "bad input"]
    page = tmp_path / "page.html"
    ran = run("aggregate", games, *dropped, "--out", page)
    assert ran.code == 0, ran.text
    said = '9 games said "bothbad", taken as ties; 1 game said "skip", left out'
    assert said in ran.text
    assert "taken as ties" in page.read_text()
    ran = run("aggregate", games, *dropped, "--both-lose", "bothbad", "--csv", "-")
    assert ran.code == 0, ran.text
    assert "(neither)" in [row["item"] for row in records(ran.out)]
    assert "taken as wins of (neither) over both" in ran.err


def test_ties_of_games_by_the_million_are_not_lost(run, games, monkeypatch):
    tied = games.read_text().count(",tie")
    for name, value in (("LARGE", 0), ("FEW", 0), ("PART", 50)):
        monkeypatch.setattr(f"tierrank.data.rankings.streaming.{name}", value)
    monkeypatch.setattr("tierrank.data.rankings.reading.FEW", 0)
    ran = run("aggregate", games)
    assert f"Note: {tied} of 400 games are ties. So the model is davidson" in ran.err
    monkeypatch.setattr("tierrank.data.rankings.container.MOST_GAMES", 0)
    ran = run("aggregate", games)
    assert ran.code == 0
    assert f"Note: {tied} of 400 games are ties. To pl-partition a tie is an order" in ran.err
    asked = run("aggregate", games, "--model", "davidson")
    assert asked.code == 0
    assert "davidson" in asked.text


def test_games_without_ties_stay_with_the_model_of_lists_but_are_called_games(run, games, tmp_path):
    games.write_text("".join(line for line in games.open() if ",tie" not in line))
    ran = run("aggregate", games, "--out", tmp_path / "report.html")
    assert "pl-partition: log-likelihood" in ran.out
    assert " games, 12 different" in ran.out
    report = (tmp_path / "report.html").read_text()
    assert "<dt>games</dt>" in report
    assert "<dt>lists</dt>" not in report
    home = run("aggregate", games, "--home")
    assert "bradley-terry: log-likelihood" in home.out


@pytest.mark.parametrize("model", ["davidson", "rao-kupper", "bradley-terry"])
def test_models_of_games_give_what_python_gives(run, games, model, tmp_path):
    more = ["--ties", "half"] if model == "bradley-terry" else []
    ran = run("aggregate", games, "--model", model, "--home", *more,
              "--json", tmp_path / "fit.json")  # fmt: skip
    assert ran.code == 0, ran.text
    found = json.loads((tmp_path / "fit.json").read_text())
    ties = "half" if more else None
    fitted = tr.PairedTies(model, home=True, ties=ties).fit(tr.data.read_games(games))
    by_name = dict(zip(fitted.items_, fitted.log_worths_, strict=True))
    for row in found["results"]:
        assert row["log_worth"] == pytest.approx(by_name[row["item"]])
    assert found["parameters"][-1]["estimate"] == pytest.approx(fitted.home_advantage_)
    assert f"first side: {fitted.home_advantage_:.4f}, 95% interval" in ran.text


def test_davidson_luce_gives_what_python_gives(run, votes, games, rankings, tmp_path):
    ran = run("aggregate", votes, "--model", "davidson_luce", "--prior", "pseudo-item",
              "--json", tmp_path / "fit.json", "--save", tmp_path / "model")  # fmt: skip
    assert ran.code == 0, ran.text
    found = json.loads((tmp_path / "fit.json").read_text())
    fitted = tr.DavidsonLuce(prior="pseudo-item").fit(rankings)
    by_name = dict(zip(fitted.items_, fitted.log_worths_, strict=True))
    for row in found["results"]:
        assert row["log_worth"] == pytest.approx(by_name[row["item"]])
    assert found["parameters"][1]["estimate"] == pytest.approx(fitted.tie_prevalences_[0])
    assert "log δ2 (ties of 2):" in ran.text
    assert "davidson-luce, prior pseudo-item:0.5: log-likelihood" in ran.text
    assert tr.load(tmp_path / "model").tie_sizes_ == (2,)
    ran = run("aggregate", games, "--model", "davidson-luce")
    assert (ran.code, "say nothing" in ran.err) == (0, False)


def test_groups_give_what_python_gives(run, votes, rankings, tmp_path):
    ran = run("aggregate", votes, "--groups", "2", "--top", "3", "--out", tmp_path / "page.html",
              "--json", tmp_path / "fit.json", "--csv", tmp_path / "fit.csv",
              "--save", tmp_path / "model")  # fmt: skip
    assert ran.code == 0, ran.text
    mixture = tr.RankMixture(2, random_state=0).fit(rankings)
    pages = json.loads((tmp_path / "fit.json").read_text())["pages"]
    assert len(pages) == len(mixture.groups_) == 2
    for page, group in zip(pages, mixture.groups_, strict=True):
        name = f"group {group.number} ({group.share_:.0%})"
        assert page["group"] == name
        assert name in ran.out
        by_name = dict(zip(group.items_, group.log_worths_, strict=True))
        for row in page["results"]:
            assert row["log_worth"] == pytest.approx(by_name[row["item"]])
        assert name in (tmp_path / "page.html").read_text()
    lines = (tmp_path / "fit.csv").read_text().splitlines()
    assert lines[0].startswith("group,rank,item,log_worth")
    assert len(lines) == 1 + 2 * len(mixture.items_)
    assert f"Note: 2 groups: log-likelihood {mixture.log_likelihood_:,.2f}" in ran.err
    np.testing.assert_allclose(tr.load(tmp_path / "model").shares_, mixture.shares_)


def test_any_objective_can_be_the_model(run, votes, rankings):
    for name, params in {"pl-lb": {}, "pl-topk:k=2": {"k": 2}}.items():
        ran = run("aggregate", votes, "--model", name, "--csv", "-", "--no-tiers")
        fitted = tr.RankAggregator(name.partition(":")[0], objective_params=params).fit(rankings)
        expected = np.sort(fitted.log_worths_)[::-1]
        rows = records(ran.out)
        np.testing.assert_allclose(numbers(rows, "log_worth"), expected, atol=1e-8)
        assert {row["tier"] for row in rows} == {""}


def test_without_standard_errors_a_note_says_what_to_do(run, votes):
    ran = run("aggregate", votes, "--model", "ranknet")
    assert ran.code == 0
    assert "use --uncertainty sandwich" in ran.text
    assert "interval" not in ran.out
    assert "95% interval" in run(
        "aggregate", votes, "--model", "ranknet", "--uncertainty", "sandwich"
    ).text  # fmt: skip


def test_a_fit_that_does_not_end_is_noted_in_the_words_of_the_command(run, votes):
    ran = run("aggregate", votes, "--max-iter", 1)
    assert ran.code == 0
    assert "raise --max-iter, or give a prior, for instance --prior gaussian" in ran.text
    assert "not converged, stopped by max_iter" in ran.text


def test_the_rest_counts_as_last_if_asked(run, tmp_path):
    path = tmp_path / "votes.toi"
    votes = [["a", "b"], ["b", "c"], ["c", "a"], ["a"]]
    write_rankings(Rankings.from_rankings(votes, items=["a", "b", "c", "d"]), path)
    refused = run("aggregate", path)
    assert refused.code == 1
    assert "d was never compared with another item" in refused.text
    ran = run("aggregate", path, "--rest", "last", "--prior", "pseudo-item", "--csv", "-")
    assert ran.code == 0
    assert records(ran.out)[-1]["item"] == "d"


# -- which table it is ----------------------------------------------------------------------------

RACES = """\
season,race,order,position,driverId,constructorId,laps
1950,monza,1,1,ann,red,9
1950,monza,2,2,bob,red,9
1950,monza,3,DNF,cy,blue,5
1951,monza,1,1,cy,blue,9
1951,monza,2,2,bob,blue,9
1951,monza,3,DNF,ann,red,7
1951,rome,1,1,bob,red,8
1951,rome,2,2,ann,blue,8
"""


def test_a_table_of_races_is_answered_with_commands_that_work_when_copied(run, tmp_path):
    path = tmp_path / "f1 races.csv"
    path.write_text(RACES)
    ran = run("aggregate", path)
    assert ran.code == 1
    assert "it is not clear what a row is" in ran.text
    assert "--first" not in ran.text
    commands = [line.partition("   #")[0] for line in ran.err.splitlines()[1:]]
    assert len(commands) == 2
    assert "--list season --list race --item driverId --rank order" in commands[0]
    assert "--rank position --missing-rank last" in commands[1]
    for command in commands:
        program, *arguments = shlex.split(command)
        assert program == "tierrank"
        again = run(*arguments)
        assert again.code == 0, again.text
        assert "3 items; 3 lists" in again.text


def test_commands_for_counted_games_and_unknown_tables_are_spelt_out(run, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("first,second,a,b,wins_first,wins_second\nx,y,x,y,1,2\ny,x,y,x,1,1\n")
    ran = run("aggregate", path)
    wins = "--first-wins wins_first --second-wins wins_second"
    assert f"--first first --second second {wins}" in ran.text
    assert f"--first a --second b {wins}" in ran.text
    path.write_text("p,q\n1,2\n")
    ran = run("aggregate", path)
    assert "no usual columns say what a row is: the columns are 'p', 'q'." in ran.text
    assert "--list COLUMN --item COLUMN --rank COLUMN # a row is an item of a list" in ran.text
    assert f"tierrank aggregate {path} --kind wide # a row is a ranking" in ran.text


def test_wide_tables_and_paired_ranks_are_read_and_what_was_taken_is_said(run, tmp_path):
    pairs = [("oil", "rye"), ("rye", "dill"), ("oil", "dill")]
    ranks = [
        {"oil": 1, "rye": 2, "dill": 3}, {"oil": 2, "rye": 1, "dill": 2},
        {"oil": 2, "rye": 1, "dill": 1},
    ]  # fmt: skip
    lists = [["oil", "rye", "dill"], ["rye", ("dill", "oil")], [("dill", "rye"), "oil"]]
    fitted = tr.RankAggregator().fit(lists)
    tables = {
        "wide": "oil,rye,dill\n" + "1,2,3\n2,1,2\n2,1,1\n" * 8,
        "paired-ranks": "vote,item1,item2,rank1,rank2\n" + "".join(
            f"{vote},{one},{two},{given[one]},{given[two]}\n"
            for vote, given in enumerate(ranks) for one, two in pairs
        ),
    }  # fmt: skip
    for kind, text in tables.items():
        path = tmp_path / "votes.csv"
        path.write_text(text)
        ran = run("aggregate", path, "--csv", "-")
        assert ran.code == 0, ran.text
        worths = dict(zip(fitted.items_, fitted.log_worths_, strict=True))
        for row in records(ran.out):
            assert float(row["log_worth"]) == pytest.approx(worths[row["item"]], abs=1e-8)
        assert "Note: votes.csv: a row is " in ran.err
        assert run("aggregate", path, "--kind", kind, "--csv", "-").out == ran.out
    path.write_text("1st,2nd,3rd\na,b,\nb,c,a\nc,a,\na,c,\n")
    assert "--kind orders" in run("aggregate", path).text
    ran = run("aggregate", path, "--kind", "orders")
    assert ran.code == 0
    assert "3 items; 4 lists" in ran.text


def test_commands_to_copy_have_the_items_and_the_separator_that_were_given(run, tmp_path):
    path = tmp_path / "races.csv"
    path.write_text(RACES.replace(",", ";"))

    def command(*given):
        ran = run("aggregate", path, "--separator", ";", *given)
        assert ran.code == 1
        return shlex.split(ran.err.splitlines()[1].partition("   #")[0])[1:]

    again = run(*command())
    assert again.code == 0, again.text
    items = ["--item", "driverId", "--item", "race"]
    assert command(*items)[2:] == ["--kind", "wide", *items, "--separator", ";"]


@pytest.mark.parametrize(
    "name", ["votes.csv", "votes.tsv.xz", "votes.jsonl.bz2", "votes.toi", "votes.toi.gz"]
)
def test_standard_input_is_read_in_any_format_of_text(run, rankings, tmp_path, name):
    write_rankings(rankings, tmp_path / name)
    expected = run("aggregate", tmp_path / name, "--csv", "-")
    piped = run("aggregate", "-", "--csv", "-", input=(tmp_path / name).read_bytes())
    assert piped.code == 0, piped.text
    assert piped.out == expected.out


def test_standard_input_has_no_other_name_in_what_is_said(run):
    ran = run("aggregate", "-", input=b"list,item,rank\n1,a,1\n1,b,x\n")
    assert ran.code == 1
    assert ran.text.startswith("Error: standard input, line 3: the rank is 'X'")
    given = run("aggregate", "-", "--format", "jsonl", input=b"a,b\n")
    assert given.code == 1
    assert "standard input, line 1" in given.text
    asked = run("aggregate", "-", input=RACES.encode())
    assert "tierrank aggregate - --list season --list race" in asked.text
    damaged = run("aggregate", "-", input=gzip.compress(RACES.encode())[:30])
    assert damaged.code == 1
    assert damaged.text.startswith("Error: standard input: cannot be decompressed")


@pytest.mark.filterwarnings("default")  # which the command shows as a note
def test_what_is_assumed_of_a_preflib_file_is_noted_by_its_name_or_refused(run, tmp_path):
    names = "".join(f"# ALTERNATIVE NAME {number}: {name}\n" for number, name in enumerate("abc"))
    text = f"# DATA TYPE: toc\n{names}3: {{0,1}},2\n2: 2,{{1,0}}\n1: 1,2,0\n"
    path = tmp_path / "votes.toc"
    path.write_text(text)
    for file, name in (path, path), ("-", "standard input"):
        ran = run("aggregate", file, input=text)
        assert ran.code == 0, ran.text
        assert f"Note: {name}: line 2: ALTERNATIVE NAME is counted from 0" in ran.err
        refused = run("aggregate", file, "--strict", input=text)
        assert refused.code == 1
        assert f"Error: {name}, line 2: ALTERNATIVE NAME 0" in refused.err


# -- leaving items out ----------------------------------------------------------------------------


def test_what_the_error_advises_is_what_the_options_do(run, tmp_path):
    path = tmp_path / "votes.jsonl"
    lists = [["ann", "bob", "cy"], ["cy", "bob"], ["cy", "bob", "dee"], ["eve", "bob"]]
    path.write_text("".join(json.dumps(each) + "\n" for each in lists))
    ran = run("aggregate", path)
    assert ran.code == 1
    assert "leave items out (--component largest, --min-games or --exclude)" in ran.text
    ran = run("aggregate", path, "--component", "largest", "--csv", "-")
    assert ran.code == 0, ran.text
    assert "3 of 5 items are left out, and with them 1 of 4 lists: ann, dee, eve." in ran.err
    rows = records(ran.out)
    assert [row["item"] for row in rows] == ["cy", "bob"]
    gap = float(rows[0]["log_worth"]) - float(rows[1]["log_worth"])
    assert gap == pytest.approx(np.log(2))  # cy above bob twice, below once
    named = run("aggregate", path, *("--exclude", "ann", "--exclude", "dee", "--exclude", "eve"),
                "--csv", "-")  # fmt: skip
    assert named.out == ran.out
    assert run("aggregate", path, "--min-games", 2, "--csv", "-").out == ran.out
    assert "no item 'bbo' to leave out. Did you mean 'bob'" in run(
        "aggregate", path, "--exclude", "bbo"
    ).text  # fmt: skip


def test_ties_keep_a_component_together_where_the_model_makes_use_of_them(run, tmp_path):
    path = tmp_path / "games.csv"
    path.write_text("a,b,winner\n1,2,1\n1,2,2\n2,3,tie\n1,2,1\n")
    ran = run("aggregate", path, "--component", "largest")
    assert "3 items; 4 games" in ran.text
    ran = run("aggregate", path, "--component", "largest", "--model", "pl-partition")
    assert "1 of 3 items are left out, and with them 1 of 4 games: 3." in ran.err
    assert "2 items; 3 games" in ran.text


LEFT = (["--exclude", "w"], ["--min-games", 2], ["--component", "largest"])


@pytest.mark.parametrize("left", LEFT, ids=lambda left: left[0])
@pytest.mark.parametrize("home", [[], ["--home"]], ids=["", "home"])
def test_the_model_is_chosen_by_the_games_that_are_left(run, tmp_path, left, home):
    """Whoever is left out takes the only tie along."""
    path = tmp_path / "games.csv"
    rows = ["x,y,x", "y,z,y", "z,x,z", "x,z,z", "y,x,y", "z,y,y"]
    # A tie joins those who played it: it goes only with a component of its own.
    last = ["w,x,w", "v,w,tie"] if "--component" in left else ["w,x,tie"]
    path.write_text("\n".join(["a,b,winner", *rows, *last]) + "\n")
    ran = run("aggregate", path, *left, *home)
    assert ran.code == 0, ran.text
    assert "left out" in ran.err
    assert "are ties" not in ran.err
    assert f"{'bradley-terry' if home else 'pl-partition'}: log-likelihood" in ran.out


def test_ties_are_counted_among_the_games_that_are_left(run, tmp_path):
    path = tmp_path / "games.csv"
    path.write_text("a,b,winner\nx,y,x\nx,y,tie\ny,x,y\nw,x,tie\n")
    ran = run("aggregate", path, "--exclude", "w")
    assert ran.code == 0, ran.text
    assert "1 of 3 games is a tie. So the model is davidson" in ran.err


def test_neutral_ground_has_no_home_advantage(run, games, tmp_path):
    rng = np.random.default_rng(0)
    lines = games.read_text().split()
    ground = rng.random(len(lines) - 1) < 0.4
    rows = [f"{line},{away}" for line, away in zip(lines[1:], ground, strict=True)]
    games.write_text("\n".join([f"{lines[0]},ground", *rows]))
    ran = run("aggregate", games, "--home", "--neutral", "ground", "--json", "-")
    assert ran.code == 0, ran.text
    fitted = tr.PairedTies(home=True).fit(tr.data.read_games(games), neutral=ground)
    found = json.loads(ran.out)
    assert found["parameters"][-1]["estimate"] == pytest.approx(fitted.home_advantage_)
    everywhere = json.loads(run("aggregate", games, "--home", "--json", "-").out)
    assert everywhere["parameters"][-1]["estimate"] != pytest.approx(fitted.home_advantage_)


# -- Ctrl-C ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("look", [1, 2])
def test_ctrl_c_leaves_nothing_half_written(run, votes, tmp_path, ctrl_c_when, look):
    ctrl_c_when(FitDisplay)(look)
    out = tmp_path / "out"
    ran = run("aggregate", votes, "--out", out / "report.html", "--json", out / "fit.json",
              "--save", out / "model")  # fmt: skip
    assert ran.code == 130
    assert ran.text.strip().endswith("Stopped.")
    assert list(out.iterdir()) == []


def test_csv_makes_formulas_text_unless_it_is_to_be_raw(run, tmp_path):
    path = tmp_path / "votes.jsonl"
    path.write_text('["=1+1", "@ann", "-7"]\n["-7", "@ann", "=1+1"]\n["@ann", "-7", "=1+1"]\n')
    ran = run("aggregate", path, "--csv", "-")
    rows = {row["item"]: row for row in csv.DictReader(io.StringIO(ran.out))}
    assert rows.keys() == {"'=1+1", "'@ann", "-7"}  # a number is no formula
    assert float(rows["'=1+1"]["log_worth"]) < 0
    ran = run("aggregate", path, "--csv", "-", "--raw-csv")
    assert {row["item"] for row in csv.DictReader(io.StringIO(ran.out))} == {"=1+1", "@ann", "-7"}


@pytest.mark.parametrize("option", ["--out", "--json", "--csv", "--save"])
def test_a_full_disk_is_one_line_that_names_the_path(run, votes, tmp_path, full_disk, option):
    assert run("aggregate", votes, option, tmp_path / "whole.html").code == 0
    with full_disk(at=200):
        ran = run("aggregate", votes, option, tmp_path / "it.html")
    assert ran.code == 1
    assert ran.err.endswith(f"Error: {tmp_path / 'it.html'}: File too large\n")
    assert not (tmp_path / "it.html").is_file()
    assert not list(tmp_path.rglob("*.part"))


def test_a_matrix_of_passes_is_ranked_by_tasks(run, tmp_path):
    path = tmp_path / "passes.csv"
    path.write_text("model,t1,t2,t3,t4\nant,1,0,1,1\nbee,0,1,1,0\ncat,0,0,1,1\ndog,1,,0,1\n")
    ran = run("aggregate", path)
    assert ran.code == 1
    assert "--kind pass-fail --item model" in ran.text
    ran = run("aggregate", path, "--kind", "pass-fail", "--prior", "gaussian")
    assert ran.code == 0, ran.text
    assert "4 items; 4 lists" in ran.text
