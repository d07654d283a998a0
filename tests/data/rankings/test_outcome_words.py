"""What becomes of words in the column of winners that name no side."""

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize

import tierrank as tr
from tierrank.data import Games, Rankings, read_games, read_rankings
from tierrank.data.rankings import reading, streaming

ROWS = [
    ("x", "y", "x"), ("y", "z", "bothbad"), ("z", "x", "tie"), ("x", "z", "skip"),
    ("y", "x", "y"), ("z", "y", "bothbad"), ("x", "y", "Skip "), ("y", "z", "draw"),
    ("z", "x", "z"), ("x", "z", "x"),
]  # fmt: skip


@pytest.fixture
def frame():
    return pd.DataFrame(ROWS, columns=["left", "right", "winner"])


@pytest.fixture
def votes(frame, tmp_path):
    frame.to_csv(tmp_path / "votes.csv", index=False)
    return tmp_path / "votes.csv"


def test_words_for_games_that_are_left_out(frame):
    games = read_games(frame, drop_words=["skip"], keep=["winner"])
    assert len(games) == 8
    assert games.outcome.tolist() == [1, 0, 0, 1, 0, 0, 1, 1]
    assert games.beside["winner"].tolist() == [
        row[2] for row in ROWS if row[2].strip().lower() != "skip"
    ]
    assert games.read_as == (
        '1 game said "Skip ", left out; 2 games said "bothbad", taken as ties; '
        '1 game said "skip", left out'
    )


def test_a_word_for_a_tie_may_be_left_out_and_plain_ties_need_no_remark(frame):
    games = read_games(frame, drop_words=["skip", "bothbad"])
    assert games.outcome.tolist() == [1, 0, 1, 0, 1, 1]
    assert "draw" not in games.read_as
    assert '2 games said "bothbad", left out' in games.read_as


def test_where_both_lose_every_game_is_a_choice_out_of_three(frame):
    found = read_games(frame, drop_words=["skip"], both_lose=["bothbad"], keep=["left"])
    assert isinstance(found, Rankings)
    neither = "(neither)"
    assert found.tiers.to_rankings() == [
        ["x", ("y", neither)], [neither, ("y", "z")], [("z", "x"), neither], ["y", ("x", neither)],
        [neither, ("z", "y")], [("y", "z"), neither], ["z", ("x", neither)], ["x", ("z", neither)],
    ]  # fmt: skip
    assert found.items == ("x", "y", "z", neither)
    assert '2 games said "bothbad", taken as wins of (neither) over both' in found.read_as
    assert found.beside["left"].tolist() == ["x", "y", "z", "y", "z", "y", "z", "x"]


def test_worths_are_those_of_a_discrete_choice_with_the_option_to_take_none(frame):
    found = read_games(frame, drop_words=["skip"], both_lose=["bothbad"])
    fitted = tr.RankAggregator().fit(found)

    def loss(free):
        w = dict(zip(found.items, np.exp([*free, 0.0]), strict=True))
        total = 0.0
        for first, second, said in ROWS:
            a, b, n = w[first], w[second], w["(neither)"]
            chance = {
                first: a / (a + b + n), second: b / (a + b + n), "bothbad": n / (a + b + n),
                "tie": a * b / (a + b + n) * (1 / (b + n) + 1 / (a + n)),
            }  # fmt: skip
            said = "tie" if said == "draw" else said
            if said.strip().lower() != "skip":
                total -= np.log(chance[said])
        return total

    theirs = minimize(loss, np.zeros(3), method="BFGS", options={"gtol": 1e-9})
    ours = fitted.log_worths_ - fitted.log_worths_[-1]
    np.testing.assert_allclose(ours[:3], theirs.x, atol=1e-6)
    assert fitted.log_likelihood_ == pytest.approx(-theirs.fun)


def test_rankings_and_estimators_take_the_words_too(frame, votes):
    lists = read_rankings(votes, drop_words=["skip"], both_lose=["bothbad"])
    assert len(lists) == 8
    assert lists.read_as.startswith("a row is a game of two sides: first left, second right")
    assert "(neither) over both" in lists.read_as
    with pytest.warns(UserWarning, match="left out"):
        fitted = tr.PairedTies().fit(frame, drop_words=["skip"])
    assert fitted.n_games_ == 8
    with (
        pytest.warns(UserWarning, match="over both"),
        pytest.raises(ValueError, match="RankAggregator"),
    ):
        tr.PairedTies().fit(frame, drop_words=["skip"], both_lose=["bothbad"])


def test_remarks_of_pieces_add_up(tmp_path, monkeypatch):
    random = np.random.default_rng(0)
    words = random.choice(["left", "right", "tie", "bothbad", "skip"], size=3000)
    first = random.integers(5, size=3000)
    second = (first + random.integers(1, 5, size=3000)) % 5
    path = tmp_path / "votes.parquet"
    frame = pd.DataFrame({"left": first, "right": second, "winner": words})
    frame.to_parquet(path, row_group_size=500)
    whole = read_rankings(path, drop_words=["skip"], both_lose=["bothbad"])
    monkeypatch.setattr(streaming, "LARGE", 1000)
    monkeypatch.setattr(streaming, "PIECE", 500)
    assert reading.in_pieces(path) == [path]
    pieces = read_rankings(path, drop_words=["skip"], both_lose=["bothbad"])
    assert pieces.read_as == whole.read_as
    assert f'{(words == "skip").sum()} games said "skip", left out' in pieces.read_as
    assert pieces.weights.sum() == len(whole)
    games = reading.read_lists_or_games(path, drop_words=["skip", "skp"])
    assert isinstance(games, Games)
    assert games.read_as.endswith('; no game said "skp"')
    assert 'no game said "skip"' not in games.read_as
    assert f'{(words == "bothbad").sum()} games said "bothbad", taken as ties' in games.read_as
    assert games.weights.sum() == (words != "skip").sum()


def test_an_unknown_word_is_refused_with_what_it_may_mean(frame):
    with pytest.raises(ValueError, match=r"drop_words=\['skip'\] \(leave such games out\)"):
        read_games(frame)


def test_what_cannot_be_is_refused(frame):
    with pytest.raises(ValueError, match="drop_words is a list of words"):
        read_games(frame, drop_words="skip")
    with pytest.raises(ValueError, match="both_lose is a list of words"):
        read_games(frame, both_lose="skip")
    with pytest.raises(ValueError, match="'skip' is to mean two things"):
        read_games(frame, drop_words=["skip"], both_lose=["Skip"])
    with pytest.raises(ValueError, match="'skip' is to mean two things"):
        read_games(frame, drop_words=["skip"], tie_words=["skip"])
    words = [word.strip() for word in frame["winner"].unique()]
    with pytest.raises(ValueError, match="every game is left out"):
        read_games(frame.iloc[[3, 6]], drop_words=words)
    scores = pd.DataFrame({"home": ["x"], "away": ["y"], "home_score": [1], "away_score": [0]})
    with pytest.raises(ValueError, match="drop_words are words in a column of winners"):
        read_games(scores, drop_words=["skip"])
    taken = frame.replace("x", "(neither)")
    with pytest.raises(ValueError, match="a side is called"):
        read_games(taken, drop_words=["skip"], both_lose=["bothbad"])
    neutral = frame.assign(neutral=True)
    with pytest.raises(ValueError, match="neutral ground"):
        read_games(neutral, drop_words=["skip"], both_lose=["bothbad"], neutral="neutral")


def test_words_that_no_game_said_are_named():
    votes = pd.DataFrame(
        {"left": ["a", "b", "a"], "right": ["b", "a", "b"], "winner": ["left", "skip", "tie"]}
    )
    found = read_games(votes, drop_words=["Skip", "skp"], tie_words=["tie", "evne"])
    assert found.read_as == '1 game said "skip", left out; no game said "skp"; no game said "evne"'
    assert 'no game said "bad"' in read_games(votes, drop_words=["skip"], both_lose=["bad"]).read_as
