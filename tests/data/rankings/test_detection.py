"""What a table holds: taken where names and values agree, shown where they leave it open."""

import itertools

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from real_data import real
from tierrank.data import Games, Rankings, TableError, UnclearTable, read_rankings
from tierrank.data.rankings.reading import read_lists_or_games


@pytest.fixture
def read(tmp_path):
    def read(text, **options):
        path = tmp_path / "data.csv"
        path.write_text(text)
        return read_lists_or_games(path, **options)

    return read


def lists(found):
    rankings = found.to_rankings() if isinstance(found, Games) else found
    return rankings.tiers.to_rankings()


RACES = "raceId,driverId,positionOrder\n1,ann,1\n1,bob,2\n1,cy,3\n2,cy,1\n2,ann,2\n"


@pytest.mark.parametrize(
    ("text", "expected", "read_as"),
    [
        (
            RACES,
            [["ann", "bob", "cy"], ["cy", "ann"]],
            "an item of a list: list raceId, item driverId, rank positionOrder",
        ),
        (
            "query,docid,rank\n1,x,1\n1,y,2\n2,y,1\n2,x,2\n",
            [["x", "y"], ["y", "x"]],
            "an item of a list: list query, item docid, rank rank",
        ),
        (
            "voter,candidate,points,age\nx,a,3,40\nx,b,1,40\ny,b,9,30\ny,a,2.5,30\n",
            [["a", "b"], ["b", "a"]],
            "an item of a list: list voter, item candidate, score points",
        ),
        (  # the races have the same names every year
            "year,race,driver,place\n50,rome,a,1\n50,rome,b,2\n51,rome,b,1\n51,rome,a,2\n",
            [["a", "b"], ["b", "a"]],
            "list year, race, item driver, rank place",
        ),
        (  # a weight is taken where it is called so
            "player1,player2,score1,score2,weight\nx,y,3,1,2\ny,x,1,1,1\n",
            [["x", "y"], [("y", "x")]],
            "first player1, second player2, first score score1, second score score2, weight weight",
        ),
        (
            "Team A,Team B,Result\nx,y,Team A\ny,z,draw\nz,x,z\n",
            [["x", "y"], [("y", "z")], ["z", "x"]],
            "a game of two sides: first Team A, second Team B, winner Result",
        ),
        (
            "i,j,w_ij,w_ji,t_ij\n1,2,0,1,0\n2,3,1,0,0\n3,1,0,0,4\n",
            [[2, 1], [2, 3], [(3, 1)]],
            "first i, second j, wins w_ij, w_ji, ties t_ij",
        ),
        (
            "judge,rankingID,system1Id,system1rank,system2Id,system2rank\n"
            "k,1,a,1,b,2\nk,1,a,1,c,2\nk,1,b,2,c,2\nk,2,a,2,b,1\n",
            [["a", ("b", "c")], ["b", "a"]],
            "two items of a list, each with its rank: list rankingID, first system1Id",
        ),
        (
            "list,winner,loser\n1,a,b\n1,a,c\n2,c,a\n",
            [["a", ("b", "c")], ["c", "a"]],
            "a preference of one item over another: list list, winner winner, loser loser",
        ),
        (
            "oil,salt,herbs,rye\n" + "1,2,3,4\n2,2,1,0\n1,1,3,\n" * 4,
            [["oil", "salt", "herbs", "rye"], ["herbs", ("oil", "salt")],
             [("oil", "salt"), "herbs"]] * 4,
            "a ranking, a column an item, a cell its rank: item oil, salt, herbs, rye",
        ),
    ],
)  # fmt: skip
def test_a_table_is_taken_for_what_its_names_and_values_say_and_that_is_stated(
    read, text, expected, read_as
):
    found = read(text)
    assert lists(found) == expected
    assert read_as in found.read_as
    assert f"read as: {found.read_as}" in repr(found)


def test_nothing_is_stated_where_everything_was_named(read):
    named = {"list": "raceId", "item": "driverId", "rank": "positionOrder"}
    assert read(RACES, **named).read_as == ""
    assert "rank positionOrder" in read(RACES, list="raceId", item="driverId").read_as


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pd", "pl", "pa"])
def test_frames_are_read_as_files_are(make, read):
    columns = {"raceId": [1, 1, 1, 2, 2], "driverId": ["ann", "bob", "cy", "cy", "ann"],
               "positionOrder": [1, 2, 3, 1, 2]}  # fmt: skip
    found = read_rankings(make(columns))
    assert lists(found) == lists(read(RACES))
    assert found.read_as == read(RACES).read_as
    wide = make({"oil": [1, 2] * 10, "salt": [2, 1] * 10, "rye": [2, 0] * 10})
    assert lists(read_rankings(wide)) == [["oil", ("salt", "rye")], ["salt", "oil"]] * 10
    with pytest.raises(UnclearTable, match=r"^no usual columns say what a row is: the columns are"):
        read_rankings(make({"x": ["p"], "y": ["q"]}))


# -- unsure ---------------------------------------------------------------------------------------

F1 = (
    "season,race,order,position,driverId,constructorId\n"
    "1950,monza,1,1,ann,red\n1950,monza,2,2,bob,red\n1950,monza,3,DNF,cy,blue\n"
    "1951,monza,1,1,cy,blue\n1951,monza,2,2,bob,red\n1951,monza,3,DNF,ann,red\n"
)


def test_where_several_columns_may_be_meant_all_readings_are_shown_and_each_works(read):
    with pytest.raises(UnclearTable) as caught:
        read(F1)
    found = caught.value.readings
    seasons = {"list": ("season", "race"), "item": "driverId"}
    assert [dict(each.columns) for each in found] == [
        {**seasons, "rank": "order"},
        {**seasons, "rank": "position", "missing_rank": "last"},
    ]
    assert "line 1: it is not clear what a row is: the columns are 'season'" in str(caught.value)
    assert "list=('season', 'race'), item='driverId', rank='order'" in str(caught.value)
    for each in found:
        assert lists(read(F1, kind=each.kind, **each.columns))[0][0] == "ann"


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        # One column a place: 1, 2, 3 may be ranks of items so called, or items in these places.
        ("1,2,3\n1,2,3\n3,1,2\n", ["wide", "orders"]),
        ("1st,2nd,3rd\nann,bob,cy\ncy,ann,\n", ["orders"]),
        # Two rows of grades may look like ranks.
        ("maths,music,sports\n1,2,2\n2,1,3\n", ["wide"]),
        # Who is better is one judge's preference, or a game that somebody won.
        ("judge,better,worse\nk,a,b\nl,b,a\n", ["games", "preferences"]),
        ("winner_name,loser_name,winner_id\nann,bob,1\nbob,cy,2\n", ["games", "preferences"]),
        # Names and numbers of the same people.
        ("winner_id,winner_name,loser_id,loser_name\n1,x,2,y\n2,y,1,x\n", ["games"] * 2),
        # Of how many games, or of how many such lists?
        ("list,winner,loser,weight\n1,a,b,3\n1,b,c,3\n", ["games", "preferences"]),
        # Both order a list.
        ("race,driver,rank,score\n1,x,1,9\n1,y,2,8\n2,x,1,5\n2,y,2,7\n", ["items"] * 2),
        # Three are no sides of a game.
        ("first,second,third\nann,bob,cy\ncy,ann,bob\n", ["orders"]),
        ("race,first,second,third\nrome,ann,bob,cy\noslo,cy,ann,bob\n", ["orders"]),
        ("id,a,b,c\n7,1,2,9\n8,3,2,1\n", ["wide", "orders"]),
        # Two columns may be the result, or the sides.
        ("player1,player2,winner,left,right,a,b\nx,y,x,x,y,y,x\ny,x,x,y,x,x,y\n", ["games"] * 2),
    ],
)  # fmt: skip
def test_where_two_kinds_are_possible_both_are_shown(read, text, kinds):
    with pytest.raises(UnclearTable) as caught:
        read(text)
    assert [each.kind for each in caught.value.readings] == kinds
    for each in caught.value.readings:
        kind = {"kind": each.kind} if each.needs_kind else {}
        assert isinstance(read(text, **kind, **each.columns), Rankings | Games)
        assert ", ".join(f"{part}={value!r}" for part, value in (
            kind | {part: value for part, value in each.columns.items() if value}
        ).items()) in str(caught.value)  # fmt: skip


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("white,black,result\nx,y,1-0\ny,x,0-1\n", "line 2: the winner is '1-0', which is not"),
        ("home,away,result\nx,y,H\ny,x,D\n", "line 2: the winner is 'H', which is not the name"),
        ("team_1,team_2,score_1,score_2\nx,y,1,2\ny,x,,1\n", "line 3: the score is missing"),
        ("race,driver,position\n1,x,1st\n1,y,2nd\n", "line 2: the rank is '1ST', which is not"),
        ("race,driver,position\nr,a,1\nr,a,2\nr,a,3\nr,b,4\n", "line 3: .*'a' stands in the list"),
    ],
)
def test_what_is_wrong_in_the_only_reading_is_said_with_its_line(read, text, message):
    with pytest.raises(TableError, match=message):
        read(text)


def test_items_that_are_named_may_be_ranked_or_in_order_and_the_cells_decide(read):
    names = ["choice1", "choice2", "choice3"]
    for cells, kinds in (("3,1,2\n1,3,2\n", ["wide", "orders"]), ("30,10,20\n", ["orders"])):
        with pytest.raises(UnclearTable) as caught:
            read("choice1,choice2,choice3\n" + cells, item=names)
        assert [each.kind for each in caught.value.readings] == kinds
    found = read("oil,salt,rye,no\n" + "3,1,2,7\n1,3,2,8\n" * 10, item=["oil", "salt", "rye"])
    assert lists(found) == [["salt", "rye", "oil"], ["oil", "rye", "salt"]] * 10
    assert found.read_as.endswith("a cell its rank: item oil, salt, rye")
    with pytest.raises(UnclearTable, match=r"kind='wide', item=\('oil', 'salt'\)"):
        read("oil,salt,rye\n3,1,2\n", item=["oil", "salt"])


@pytest.mark.parametrize(
    "text",
    [
        "race,driver,position\nr,a,71\nr,b,82\ns,a,9\ns,b,30\n",  # no ranks: larger than the lists
        "race,driver,position\nr,a,1.5\nr,b,1.2\n",
        "race,driver,position\nr,a,1\ns,b,1\nt,c,1\n",  # lists of one
        "player1,player2,winner_name\nx,y,x\nz,w,z\n",  # nobody plays on both sides
        "winner_id,loser_name\n1,ann\n2,bob\n",
        "judge,winner_id,loser_id\nk,1,7\nk,2,8\n",
        "a_x,b_x,c_x\n0,1,1\n1,0,0\n",  # flags
        "p,q,r\n1,2,5\n2,1,3\n",  # beyond the number of columns
        "age,height,weight\n31,170,60\n25,180,70\n",
        "variety_a,variety_b,variety_c,best,worst\nx,y,z,A,C\ny,z,x,B,A\n",  # three sides
    ],
)
def test_names_alone_or_values_alone_are_not_enough(read, text):
    with pytest.raises(UnclearTable, match="Say which it is, as in:"):
        read(text)


def test_values_that_do_not_bear_out_the_only_reading_are_said_to_be_why(read):
    with pytest.raises(UnclearTable, match=r"usual names, but .* \(ranks from 1 to the length"):
        read("race,driver,position\nr,a,0\nr,b,1\ns,b,0\ns,a,1\n")


def test_a_table_that_nothing_is_known_of_shows_how_each_kind_is_asked_for(read):
    with pytest.raises(UnclearTable) as caught:
        read("one,two\n1,2\n")
    for call in ("list='COLUMN', item='COLUMN', rank='COLUMN'", "first='COLUMN'", "kind='wide'"):
        assert call in str(caught.value)


def test_a_column_that_is_missing_from_a_known_kind_is_named(read):
    with pytest.raises(TableError, match="no column says how a game ended: pass winner="):
        read("a,b,date\nx,y,3\n")
    with pytest.raises(TableError, match="no column called rank or score: pass rank="):
        read("race,driver,laps\nr,a,3\n")
    with pytest.raises(TableError, match="no two columns of ranks: pass first_rank="):
        read("list,first,second\n1,x,y\n", kind="paired-ranks")


def test_a_kind_that_is_asked_for_takes_only_its_own_columns(read):
    with pytest.raises(TableError, match="a row is a game of two sides, and rank= is not for that"):
        read(F1, kind="games", rank="order")
    with pytest.raises(TableError, match="rank= is for a table where a row is an item of a list, "):
        read(F1, rank="order", first="driverId")
    with pytest.raises(ValueError, match="kind is one of items, games, preferences, paired-ranks"):
        read(F1, kind="lists")
    with pytest.raises(TypeError, match="there is no option 'places'"):
        read(F1, places="order")


def test_winners_and_losers_without_lists_are_games_if_they_go_in_a_circle(read):
    acyclic = read("winner,loser\na,b\nb,c\n")
    assert lists(acyclic) == [["a", "b", "c"]]
    assert acyclic.read_as.endswith("winner winner, loser loser, all rows of one list")
    circle = read("winner,loser\na,b\nb,c\nc,a\n")
    assert lists(circle) == [["a", "b"], ["b", "c"], ["c", "a"]]
    assert circle.read_as == "a row is a game of two sides: winner winner, loser loser"
    assert lists(read("winner,loser\na,b\nb,c\n", kind="games")) == [["a", "b"], ["b", "c"]]


@pytest.mark.parametrize("named", [{}, {"winner": "winner", "loser": "loser"}])
def test_winners_and_losers_that_are_counted_are_games_and_no_row_is_lost(read, named):
    weighted = read("winner,loser,weight\na,b,3\nb,c,2\na,c,1\n", **named)
    assert lists(weighted) == [["a", "b"], ["b", "c"], ["a", "c"]]
    assert weighted.weights.tolist() == [3, 2, 1]
    again = read("winner,loser\na,b\nb,c\na,b\n", **named)
    assert lists(again) == [["a", "b"], ["b", "c"], ["a", "b"]]
    for found in (weighted, again):
        assert "a row is a game of two sides: winner winner, loser loser" in found.read_as


def test_winners_and_losers_are_columns_of_one_kind(read):
    people = read("winner_name,loser_name,winner_id\nann,bob,1\nbob,ann,2\n")
    assert lists(people) == [["ann", "bob"], ["bob", "ann"]]
    assert people.read_as.endswith("winner winner_name, loser loser_name")
    people = read("winner,loser_id,loser_name\nann,2,bob\nbob,1,ann\n")
    assert people.read_as.endswith("winner winner, loser loser_name")


# -- wide tables ----------------------------------------------------------------------------------


def test_any_table_of_proper_ranks_is_wide_and_gives_its_rankings_back(read):
    rng = np.random.default_rng(3)
    names = ["oil", "salt", "rye", "dill"]
    expected, rows = [], []
    for ties in 2 * list(itertools.product([False, True], repeat=3)):
        order = rng.permutation(4).tolist()
        tiers = [[order[0]]]
        for item, tied in zip(order[1:], ties, strict=True):
            if tied:
                tiers[-1].append(item)
            else:
                tiers.append([item])
        rank = {item: place for place, tier in enumerate(tiers, 1) for item in tier}
        rows.append(",".join(str(rank[item]) for item in range(4)))
        expected.append([frozenset(names[item] for item in tier) for tier in tiers])
    found = read("\n".join([",".join(names), *rows]))
    as_sets = [
        [frozenset(tier if isinstance(tier, tuple) else (tier,)) for tier in one]
        for one in lists(found)
    ]
    assert as_sets == expected


def test_columns_of_a_wide_table_can_be_named_and_row_numbers_are_none(read):
    text = ',age,list,oil,salt,weight\n"1",30,ann,1,2,3\n"2",40,bob,2,1,1\n'
    found = read(text, kind="wide", item=["oil", "salt"])
    assert (lists(found), found.weights.tolist()) == ([["oil", "salt"], ["salt", "oil"]], [3, 1])
    assert found.tiers.keys.tolist() == ["ann", "bob"]
    assert lists(read('"",x,y\n"1",2,1\n', kind="wide")) == [["y", "x"]]
    with pytest.raises(TableError, match="'oil' is named for two things"):
        read(text, kind="wide", item=["oil", "salt"], list="oil")


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        ("x,y\n1,-2\n", "wide", "line 2: the rank is negative or infinite"),
        ("x,y\n1,2\n0,\n", "wide", "line 3: the row ranks nothing"),
        ("x,y\n1,two\n", "wide", "line 2: the rank column 'y' has 'two'"),
        ("x\n1\n", "wide", "two columns at least"),
        ("x,y\na,b\nc,c\n", "orders", "line 3: the item 'c' stands in the list '1' twice"),
        ("x,y\n,\n", "orders", "no cell names an item"),
    ],
)
def test_what_is_no_ranking_in_a_wide_table_is_refused_with_its_line(read, text, kind, message):
    with pytest.raises(TableError, match=message):
        read(text, kind=kind)


# -- real data ------------------------------------------------------------------------------------


@pytest.mark.data
def test_races_are_asked_about_with_readings_that_work():
    path = real("f1", "race_results.csv.xz")
    with pytest.raises(UnclearTable) as caught:
        read_rankings(path)
    seasons = ("season", "race")
    assert [each.columns["rank"] for each in caught.value.readings] == ["order", "position"]
    for each in caught.value.readings:
        assert (each.columns["list"], each.columns["item"]) == (seasons, "driverId")
        assert len(read_rankings(path, **each.columns)) == pd.read_csv(path).groupby(
            [*seasons]
        ).ngroups  # fmt: skip


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "counted", "read_as"),
    [
        ("football/results.csv.xz", 49_520, "first home_team, second away_team, first score home"),
        ("llmfao/crowd-comparisons.csv.xz", 8_931, "first left, second right, winner winner"),
        ("wmt/wmt16.deu-eng.csv.xz", 1_341, "list rankingID, first system1Id, second system2Id"),
        ("plackettluce-r/pudding.csv", 45, "first i, second j, wins w_ij, w_ji, ties t_ij"),
        ("plackettluce-r/salad.csv", 32, "a cell its rank: item A, B, C, D"),
    ],
)
def test_real_tables_are_taken_for_what_they_are(name, counted, read_as):
    found = read_lists_or_games(real(*name.split("/")))
    assert len(found) == counted
    assert read_as in found.read_as


@pytest.mark.data
def test_finishing_orders_of_nascar_are_read_and_never_taken_for_ranks():
    path = real("plackettluce-r", "nascar.csv")
    with pytest.raises(UnclearTable, match="kind='orders'"):
        read_rankings(path)
    found = read_rankings(path, kind="orders")
    rows = pd.read_csv(path, index_col=0)
    assert [[float(item) for item in one] for one in lists(found)] == [
        row[~np.isnan(row)].tolist() for row in rows.to_numpy()
    ]


def test_items_of_orders_that_are_the_integers_from_0_on_are_their_own_numbers(read):
    found = read("1st,2nd,3rd\n2,0,1\n1,2,0\n", kind="orders")
    assert (found.items, lists(found)) == ((0, 1, 2), [[2, 0, 1], [1, 2, 0]])
