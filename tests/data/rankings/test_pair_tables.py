"""Tables of games: winners by name, side and word, scores, counts, and what is refused."""

import math

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from real_data import real
from tierrank.data import TableError
from tierrank.data.rankings.games import read_games


@pytest.fixture
def read(tmp_path):
    def read(text, name="data.csv", **options):
        path = tmp_path / name
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return read_games(path, **options)

    return read


def test_sides_and_winners_are_read_in_order_of_appearance(read):
    games = read("first,second,winner\nbob,ann,ann\nann,cy,tie\ncy,bob,first\nbob,cy,second\n")
    assert games.names == ("bob", "ann", "cy")
    assert games.first.tolist() == [0, 1, 2, 0]
    assert games.second.tolist() == [1, 2, 0, 2]
    assert games.outcome.tolist() == [-1, 0, 1, -1]
    assert games.weights.tolist() == [1, 1, 1, 1]
    assert games.to_rankings().tiers.to_rankings() == [
        ["ann", "bob"], [("ann", "cy")], ["cy", "bob"], ["cy", "bob"],
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("header", "words"),
    [
        ("first,second", ("first", "second")),
        ("a,b", ("a", "b")),
        ("left,right", ("left", "Right ")),
        ("model_a,model_b", ("model_a", "model_b")),
        ("home_team,away_team", ("home", "AWAY")),
        ("home_team,away_team", ("home_team", "away_team")),
        ("home,away", ("home", "away")),
    ],
)
def test_usual_columns_and_words_are_known(read, header, words):
    one, two = words
    games = read(f"{header},winner\nx,y,{one}\nx,y,{two}\ny,x,x\nx,y,Draw\n")
    assert games.outcome.tolist() == [1, -1, -1, 0]


def test_what_the_columns_are_called_is_a_word_too(read):
    text = "player_1,player_2,result\nx,y,player_1\nx,y,player_2\n"
    games = read(text, first="player_1", second="player_2", winner="result")
    assert games.outcome.tolist() == [1, -1]


@pytest.mark.parametrize("word", ["tie", "DRAW", " equal", "both", "bothbad", "tie (bothbad)"])
def test_words_for_a_tie_are_known_and_can_be_replaced(read, word):
    text = f"a,b,winner\nx,y,{word}\n"
    assert read(text).outcome.tolist() == [0]
    with pytest.raises(TableError, match=r"a word for a tie \(remis\)"):
        read(text, tie_words=["Remis"])
    assert read("a,b,winner\nx,y,REMIS\n", tie_words=["Remis"]).outcome.tolist() == [0]
    assert read("a,b,winner\nx,y,None\n", tie_words=["none"]).outcome.tolist() == [0]


def test_sides_that_are_numbers_stay_numbers_and_others_are_words(read):
    games = read("a,b,winner\n2,1,1\n1,3,tie\n")
    assert (games.names, games.outcome.tolist()) == ((2, 1, 3), [-1, 0])
    mixed = read("a,b,winner\n2,x,2\n1,07,07\n1,7,a\n")
    assert mixed.names == ("2", "x", "1", "07", "7")
    assert mixed.outcome.tolist() == [1, -1, 1]


def test_the_higher_score_wins(read):
    text = "home_team,away_team,home_score,away_score\nx,y,2,1\ny,x,0,0\nx,z,0.5,1e1\n"
    assert read(text).outcome.tolist() == [1, 0, -1]
    swapped = read(
        text, first="away_team", second="home_team", first_score="away_score",
        second_score="home_score",
    )  # fmt: skip
    assert swapped.outcome.tolist() == [-1, 0, 1]


def test_counts_become_weights_and_zeros_nothing(read):
    text = "a,b,wins_first,wins_second,ties\nx,y,3,0,2.5\nz,y,0,1,0\n"
    games = read(text)
    rows = zip(
        [games.names[i] for i in games.first], [games.names[i] for i in games.second],
        games.outcome.tolist(), games.weights.tolist(), strict=True,
    )  # fmt: skip
    assert sorted(rows) == [("x", "y", 0, 2.5), ("x", "y", 1, 3), ("z", "y", -1, 1)]
    named = read(text, wins=("wins_second", "wins_first"))
    assert named.outcome.tolist() == [-1, 1]


def test_a_weight_says_how_often_a_row_was_seen(read):
    games = read("a,b,winner,n\nx,y,x,3\nx,y,tie,0.5\n", weight="n")
    assert games.weights.tolist() == [3, 0.5]
    assert games.to_rankings().weights.tolist() == [3, 0.5]


COLUMNS = {"left": ["x", "y"], "right": ["y", "z"], "winner": ["left", "tie"], "n": [2, 1]}


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pd", "pl", "pa"])
def test_frames_and_parquet_files_give_the_same(make, tmp_path):
    def check(games):
        assert games.names == ("x", "y", "z")
        assert games.outcome.tolist() == [1, 0]
        assert games.weights.tolist() == [2, 1]

    check(read_games(make(COLUMNS), weight="n"))
    pl.DataFrame(COLUMNS).write_parquet(tmp_path / "games.parquet")
    check(read_games(tmp_path / "games.parquet", weight="n"))
    with pytest.raises(ValueError, match="row 1 of the frame: the winner is 'who'"):
        read_games(make(COLUMNS | {"winner": ["left", "who"]}))
    with pytest.raises(ValueError, match="row 0 of the frame: the winner is missing"):
        read_games(make(COLUMNS | {"winner": [None, "tie"]}))
    pl.DataFrame(COLUMNS | {"winner": ["left", "who"]}).write_parquet(tmp_path / "bad.parquet")
    with pytest.raises(TableError, match=r"bad.parquet, row 2: the winner is 'who'"):
        read_games(tmp_path / "bad.parquet")


# winners that mean two things, or nothing --------------------------------------------------------


@pytest.mark.parametrize(
    "rows",
    [
        "x,y,x\nleft,y,left\ny,left,left\n",  # by name the second, by word the first
        "x,y,x\nleft,y,y\ny,x,left\n",  # a side that does not even play here
        "x,y,x\ntie,y,y\ntie,y,tie\n",
        "x,y,x\nTie,y,y\nx,y,tie\n",
    ],
)
def test_a_side_called_like_a_word_is_refused_where_it_matters(read, rows):
    with pytest.raises(TableError, match=r"line 4: the winner '\w+' is the name of a side, and"):
        read("first,second,winner\n" + rows)


def test_a_side_called_like_a_word_does_no_harm_where_both_agree(read):
    assert read("a,b,winner\na,b,a\na,b,b\na,c,c\n").outcome.tolist() == [1, -1, -1]


def test_winners_can_be_said_to_be_names_or_sides_only(read):
    text = "first,second,winner\nb,a,a\na,b,a\nc,b,c\n"
    with pytest.raises(TableError, match=r'line 2: .*winner_as="name"'):
        read(text)
    assert read(text, winner_as="name").outcome.tolist() == [-1, 1, 1]
    with pytest.raises(TableError, match="line 2: the winner is 'first', which is not the name"):
        read("first,second,winner\nx,y,first\n", winner_as="name")
    sides = "first,second,winner\nb,a,a\nx,tie,tie\n"
    assert read(sides, winner_as="side").outcome.tolist() == [1, 0]
    with pytest.raises(TableError, match="line 2: the winner is 'x', which is not a word for the"):
        read("first,second,winner\nx,y,x\n", winner_as="side")
    with pytest.raises(ValueError, match="winner_as is one of"):
        read(text, winner_as="word")


def test_columns_called_against_the_words_are_words_for_neither(read):
    with pytest.raises(TableError, match="line 2: the winner is 'a', which is not"):
        read("b,a,winner\nx,y,a\n", first="b", second="a")


def test_an_unknown_word_is_refused_with_its_line_and_the_words_known(read):
    with pytest.raises(TableError) as error:
        read('a,b,winner\n"two\nlines",y,a\n\nx,y,nobody\n')
    assert error.value.line == 5
    text = str(error.value)
    assert "the winner is 'nobody', which is not the name of a side ('x', 'y'), nor" in text
    assert "a word for the first (first, a, left, model_a, home)" in text
    assert "a word for the second (second, b, right, model_b, away)" in text
    assert "a tie (tie, tied, draw, drawn, equal, both, " in text


# what is refused ---------------------------------------------------------------------------------

SCORED = "a,b,home_score,away_score\nx,y,1,2\n"
COUNTED = "a,b,w,v,t\nx,y,1,2,3\n"
BOTH_SCORES = {"first_score": "home_score", "second_score": "away_score"}


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("p,q,winner\na,b,a\n", {}, r"line 1: there are no two columns for the sides \(first and"),
        ("a,b\nx,y\n", {}, r"line 1: no column says how a game ended: .*'a', 'b'"),
        ("a,b,winner\nx,y,x\n", {"first": "a"}, "pass both of first= and second="),
        ("a,b,winner\nx,y,x\n", {"first": "A", "second": "b"}, "did you mean 'a'"),
        ("a,b,winner\nx,y,x\n", {"winner": "won"}, r"no column 'won' \(for winner\)"),
        ("a,b,winner\nx,y,x\n", {"winner": "a"}, "'a' is named for two things"),
        (SCORED, {"first_score": "home_score"}, "pass both of first_score= and second_score="),
        (SCORED, {"winner": "a", **BOTH_SCORES}, "pass one of them"),
        (COUNTED, {"wins": ("w",)}, "wins names two columns"),
        (COUNTED, {"wins": "wv"}, "wins names two columns"),
        (COUNTED, {"ties": "t"}, "pass wins= too"),
        (COUNTED, {"wins": ("w", "v"), "weight": "t"}, "weight and wins both say how often"),
        (COUNTED.replace("2", "-2"), {"wins": ("w", "v")}, "line 2: the count is missing, neg"),
        ("a,b,w,v\nx,y,0,0\n", {"wins": ("w", "v")}, "all counts are 0"),
        (SCORED + "x,y,,1\n", {}, "line 3: the score is missing or infinite"),
        (SCORED + "x,y,2,inf\n", {}, "line 3: the score is missing or infinite"),
        (SCORED + "x,y,2,two\n", {}, "line 3: the score column 'away_score' has 'two'"),
        ("a,b,winner\nx,y,x\ny,y,y\n", {}, "line 3: a side plays against itself"),
        ("a,b,winner\nx,y,x\n,y,y\n", {}, "line 3: the side is empty"),
        ("a,b,winner\nx,y,x\nx,NA,x\n", {}, "line 3: the side is NA, which stands for a missing"),
        ("a,b,winner\nx,y,x\nx,y,NA\n", {}, "line 3: the winner is 'NA', which is not the name"),
        ("a,b,winner\nx,y,x\nx,y,\n", {}, "line 3: the winner is empty"),
        ("a,b,winner,n\nx,y,x,1\nx,y,x,0\n", {"weight": "n"}, "line 3: the weight is missing, or"),
        ("a,b,winner\n", {}, "columns but no row"),
        ("a;b;winner\nx;y;x\n", {}, r'pass separator=";"\?'),
    ],
)
def test_what_is_wrong_is_said_with_the_file_and_line(read, text, options, message):
    with pytest.raises(TableError, match=message) as error:
        read(text, **options)
    assert str(error.value).startswith(str(error.value.path))


def test_tie_words_are_several(read):
    with pytest.raises(ValueError, match="tie_words is a list of words"):
        read("a,b,winner\nx,y,x\n", tie_words="tie")


BYTES = st.sampled_from(list(b'xxyyzab,,,,,,"t\n\n\n\n\r \0\xff')) | st.sampled_from(list(b"tie"))


@settings(max_examples=200, deadline=None)
@given(st.lists(BYTES, max_size=40).map(bytes))
def test_any_rows_are_read_or_refused_with_their_line(tmp_path_factory, content):
    path = tmp_path_factory.getbasetemp() / "any.csv"
    path.write_bytes(b"a,b,winner\nx,y,tie\n" + content)
    try:
        games = read_games(path)
    except TableError as error:
        refused = error
    else:
        assert (games.first != games.second).all()
        assert set(games.outcome.tolist()) <= {1, 0, -1}
        return
    assert refused.path == path
    assert refused.line is not None


# real data ---------------------------------------------------------------------------------------


@pytest.mark.data
@pytest.mark.parametrize(("who", "votes", "tied"), [("crowd", 8931, 3471), ("gpt4", 3236, None)])
def test_votes_on_language_models_are_counted(who, votes, tied):
    path = real("llmfao", f"{who}-comparisons.csv.xz")
    games = read_games(path)
    rows = pd.read_csv(path)
    assert len(games) == votes
    assert int((games.outcome == 0).sum()) == (tied or int((rows["winner"] == "tie").sum()))
    assert [games.names[i] for i in games.first] == rows["left"].tolist()
    assert [games.names[i] for i in games.second] == rows["right"].tolist()
    assert games.outcome.tolist() == rows["winner"].map({"left": 1, "tie": 0, "right": -1}).tolist()


@pytest.mark.data
def test_football_has_49520_matches_of_337_teams_and_11258_draws():
    path = real("football", "results.csv.xz")
    games = read_games(path)
    assert (len(games), len(games.names)) == (49_520, 337)
    assert int((games.outcome == 0).sum()) == 11_258
    rows = pd.read_csv(path)
    home = rows["home_score"] > rows["away_score"]
    assert int((games.outcome == 1).sum()) == int(home.sum())
    assert len(games.to_rankings()) == 49_520


@pytest.mark.data
def test_puddings_were_compared_745_times_with_202_ties():
    path = real("plackettluce-r", "pudding.csv")
    games = read_games(path, first="i", second="j", wins=("w_ij", "w_ji"), ties="t_ij")
    rows = pd.read_csv(path)
    assert games.weights.sum() == 745 == rows["r_ij"].sum()
    assert games.weights[games.outcome == 0].sum() == 202
    assert games.weights[games.outcome == 1].sum() == rows["w_ij"].sum()
    assert sorted(games.names) == [1, 2, 3, 4, 5, 6]
    assert math.isclose(games.to_rankings().weights.sum(), 745)


def test_scores_beyond_2_to_the_53_are_compared_as_integers(read):
    text = "a,b,home_score,away_score\nx,y,9007199254740993,9007199254740992\ny,x,1,1.0\n"
    assert read(text).outcome.tolist() == [1, 0]


def test_neutral_ground_is_a_column_of_true_and_false(read):
    text = "a,b,winner,ground\nx,y,x,TRUE\ny,x,tie,False\n"
    assert read(text, neutral="ground").neutral.tolist() == [True, False]
    counted = "a,b,wins_first,wins_second,ground\nx,y,2,1,1\ny,x,1,0,0\n"
    assert read(counted, neutral="ground").neutral.tolist() == [True, True, False]
    with pytest.raises(TableError, match="line 3: write true or false"):
        read(text.replace("False", "NA"), neutral="ground")
    with pytest.raises(TableError, match=r"line 2: write true or false \(or 1 or 0\): .* 'yes'"):
        read(text.replace("TRUE", "yes").replace("False", "no"), neutral="ground")
    assert read(text).neutral is None


def test_winner_and_loser_can_be_the_two_sides(read):
    games = read("won,lost,weight\nx,y,2\nz,x,1\n", winner="won", loser="lost", weight="weight")
    assert (games.names, games.outcome.tolist()) == (("x", "y", "z"), [1, 1])
    assert games.weights.tolist() == [2, 1]
    with pytest.raises(TableError, match="they are the sides: leave out the others"):
        read("won,lost\nx,y\n", winner="won", loser="lost", first="won", second="lost")
