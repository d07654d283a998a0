"""One door for files of rankings: every format is found by its name, or by what is asked for."""

import gzip

import pytest

from tierrank.data import DataFileError, UnclearTable
from tierrank.data.rankings import (
    Rankings,
    read_jsonl_rankings,
    read_preferences,
    read_rankings,
    write_rankings,
)
from tierrank.tiers import Tiers

LISTS = [["ann", ("bob", "cy")], ["cy", "ann", "bob"]]
RANKINGS = Rankings.from_rankings(LISTS, weights=[3, 1])

PREFLIB = """\
# DATA TYPE: toc
# ALTERNATIVE NAME 1: ann
# ALTERNATIVE NAME 2: bob
# ALTERNATIVE NAME 3: cy
3: 1,{2,3}
1: 3,1,2
"""
JSONL = '{"ranking": ["ann", ["bob", "cy"]], "weight": 3}\n["cy", "ann", "bob"]\n'
LONG = "list,item,rank,weight\nx,ann,1,3\nx,bob,2,3\nx,cy,2,3\ny,cy,1,1\ny,ann,2,1\ny,bob,3,1\n"
GAMES = "first,second,winner\nann,bob,ann\nbob,cy,tie\n"


@pytest.fixture
def read(tmp_path):
    def read(text, name, **options):
        path = tmp_path / name
        path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
        return read_rankings(path, **options)

    return read


def _lists(rankings):
    return rankings.tiers.to_rankings()


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (PREFLIB, "votes.toc"),
        (PREFLIB, "votes.TOC.gz"),
        (JSONL, "votes.jsonl"),
        (JSONL, "votes.ndjson.gz"),
        (LONG, "votes.csv"),
        (LONG.replace(",", "\t"), "votes.tsv.gz"),
    ],
)
def test_the_name_says_the_format(read, text, name):
    rankings = read(text, name)
    assert _lists(rankings) == LISTS
    assert rankings.weights.tolist() == [3, 1]


@pytest.mark.parametrize(
    ("text", "format"), [(PREFLIB, "preflib"), (JSONL, "jsonl"), (LONG, "csv")]
)
def test_the_format_can_be_given(read, text, format):
    assert _lists(read(text, "votes.txt", format=format)) == LISTS


def test_tables_of_games_are_told_from_those_of_items_by_their_columns(read):
    assert _lists(read(GAMES, "games.csv")) == [["ann", "bob"], [("bob", "cy")]]
    weighted = "a,b,winner,weight\nann,bob,b,4\n"
    rankings = read(weighted, "games.csv")
    assert (_lists(rankings), rankings.weights.tolist()) == ([["bob", "ann"]], [4])


def test_columns_can_be_named(read):
    text = LONG.replace("list,item,rank,weight", "race,driver,place,times")
    rankings = read(text, "x.csv", list="race", item="driver", rank="place", weight="times")
    assert (_lists(rankings), rankings.weights.tolist()) == (LISTS, [3, 1])
    text = "p,q,who\nann,bob,bob\n"
    assert _lists(read(text, "x.csv", first="p", second="q", winner="who")) == [["bob", "ann"]]


def test_what_is_named_decides_where_a_table_could_be_both(read):
    both = "list,item,rank,first,second,winner\n1,x,1,ann,bob,ann\n1,y,2,bob,cy,cy\n"
    with pytest.raises(UnclearTable, match="it is not clear what a row is") as caught:
        read(both, "x.csv")
    assert [reading.kind for reading in caught.value.readings] == ["items", "games"]
    assert _lists(read(both, "x.csv", kind="items")) == [["x", "y"]]
    assert _lists(read(both, "x.csv", rank="rank")) == [["x", "y"]]
    assert _lists(read(both, "x.csv", winner="winner")) == [["ann", "bob"], ["cy", "bob"]]
    with pytest.raises(DataFileError, match="leave one of them out"):
        read(both, "x.csv", rank="rank", winner="winner")


def test_other_options_reach_the_readers_of_tables(read):
    text = LONG.replace("x,cy,2,3", "x,cy,,3")
    assert _lists(read(text, "x.csv", missing_rank="drop"))[0] == ["ann", "bob"]
    scores = "home,away,h,g\nann,bob,1,2\n"
    options = {"first": "home", "second": "away", "first_score": "h", "second_score": "g"}
    assert _lists(read(scores, "x.csv", **options)) == [["bob", "ann"]]
    assert _lists(read(LONG.replace(",", ";"), "x.csv", separator=";")) == LISTS


def test_columns_of_files_that_have_none_are_refused(read):
    for text, name in ((PREFLIB, "votes.toc"), (JSONL, "votes.jsonl")):
        for options in ({"rank": "rank"}, {"winner": "w"}, {"weight": "w"}, {"rest": "last"}):
            with pytest.raises(DataFileError, match="for tables alone"):
                read(text, name, **options)


def test_a_warning_about_a_file_is_for_the_line_that_reads_it(tmp_path):
    (tmp_path / "votes.toc").write_text("# NUMBER VOTERS: 9\n" + PREFLIB)
    with pytest.warns(UserWarning, match="9") as caught:
        read_rankings(tmp_path / "votes.toc")
    assert caught[0].filename == __file__


def test_a_name_without_a_known_suffix_is_refused_with_all_formats(read, tmp_path):
    for name in ("votes.txt", "votes", "votes.dat.gz"):
        with pytest.raises(DataFileError) as caught:
            read(JSONL, name)
        assert ".soc, .soi, .toc, .toi, .cat, .jsonl, .ndjson, .csv, .tsv, .parquet" in str(
            caught.value
        )
        with pytest.raises(DataFileError, match="let it end in one of"):
            write_rankings(RANKINGS, tmp_path / name)
    with pytest.raises(ValueError, match="format is one of auto, preflib, jsonl, csv"):
        read(JSONL, "votes.jsonl", format="json")
    with pytest.raises(DataFileError, match="is a folder"):
        read_rankings(tmp_path)
    with pytest.raises(FileNotFoundError):
        read_rankings(tmp_path / "nothing.jsonl")


@pytest.mark.parametrize(
    "name",
    ["v.toc", "v.toi.xz", "v.jsonl", "v.ndjson.bz2", "v.csv", "v.tsv", "v.csv.gz", "v.parquet"],
)
def test_what_is_written_is_read_back(tmp_path, name):
    path = tmp_path / name
    write_rankings(RANKINGS, path)
    back = read_rankings(path)
    assert _lists(back) == LISTS
    assert back.weights.tolist() == [3, 1]
    assert back.items == RANKINGS.items


def test_a_file_of_another_type_than_the_lists_is_refused(tmp_path):
    with pytest.raises(ValueError, match="list 0: there is a tie, but soc is for strict orders"):
        write_rankings(RANKINGS, tmp_path / "v.soc")
    with pytest.raises(DataFileError, match="categories have names"):
        write_rankings(RANKINGS, tmp_path / "v.cat")
    assert not list(tmp_path.iterdir())


def test_the_rest_is_kept_by_json_lines_and_written_out_by_preflib(tmp_path):
    tiers = Tiers.from_rankings([["b"], []], items=["a", "b", "c"], rest="last")
    rankings = Rankings(tiers, [1.0, 2.0])
    write_rankings(rankings, tmp_path / "v.jsonl")
    assert read_jsonl_rankings(tmp_path / "v.jsonl").tiers == tiers
    write_rankings(rankings, tmp_path / "v.toc")
    assert _lists(read_rankings(tmp_path / "v.toc")) == [["b", ("a", "c")], [("a", "b", "c")]]


def test_a_table_of_winners_and_losers_becomes_ordered_partitions(tmp_path):
    file = tmp_path / "tastings.csv"
    file.write_text("list,winner,loser\n1,a,b\n1,a,c\n2,c,a\n2,b,a\n")
    assert read_rankings(file).tiers.to_rankings() == [["a", ("b", "c")], [("b", "c"), "a"]]
    other = tmp_path / "judged.csv"
    other.write_text("judge,better,worse\nkim,a,b\nlee,b,a\n")
    found = read_rankings(other, list="judge", winner="better", loser="worse")
    assert found.tiers.to_rankings() == [["a", "b"], ["b", "a"]]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("lists.csv", "list,item,rank\na,2,1\na,0,2\nb,1,1\nb,2,2\n"),
        ("games.csv", "winner,loser\n2,0\n1,2\n"),
        ("lists.jsonl", "[2, 0]\n[1, 2]\n"),
        ("wide.csv", "2,0,1\n1,2,\n2,,1\n"),
    ],
)
def test_items_that_are_the_integers_from_0_on_are_their_own_numbers(tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text)
    if name == "games.csv":
        tiers = read_preferences(path, list=None, winner="winner", loser="loser").tiers
        assert tiers.to_rankings() == [[1, 2, 0]]
    else:
        tiers = read_rankings(path, kind="wide" if name == "wide.csv" else None).tiers
        assert tiers.to_rankings() == [[2, 0], [1, 2]]
    assert (tiers.names or tuple(range(tiers.n_items))) == (0, 1, 2)
