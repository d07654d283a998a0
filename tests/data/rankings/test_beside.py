"""Columns beside lists and games: who voted, when, on what."""

import datetime as dt

import numpy as np
import pandas as pd
import polars as pl
import pytest

import tierrank as tr
from tierrank.data import read_games, read_rankings

VOTES = {
    "model_a": ["gull", "wren", "crow"],
    "model_b": ["wren", "crow", "gull"],
    "winner": ["gull", "tie", "crow"],
    "voter": ["u", "v", None],
    "length": [1.0, 2.5, 3.0],
    "day": [dt.date(2020, 1, 1), dt.date(2021, 1, 1), None],
    "number": ["07", "7", "8"],
}
RACES = pd.DataFrame(
    {
        "race": [1, 1, 2, 2, 2],
        "driver": list("abcab"),
        "position": [2, 1, 3, 1, 1],
        "day": ["x", "x", "y", "y", "y"],
        "stops": [1, 2, 3, 4, 5],
    }
)


def test_columns_of_games_go_along():
    games = read_games(pl.DataFrame(VOTES), keep=["voter", "length", "day", "number"])
    assert games.beside["voter"].tolist() == ["u", "v", None]
    assert games.beside["length"].tolist() == [1.0, 2.5, 3.0]
    assert games.beside["number"].tolist() == ["07", "7", "8"]  # 07 is another name than 7
    days = np.array(["2020-01-01", "2021-01-01", "NaT"], dtype="datetime64[us]")
    np.testing.assert_array_equal(games.beside["day"], days)
    assert games.of(np.array([2, 0])).beside["number"].tolist() == ["8", "07"]
    assert games.without(["gull"]).beside["voter"].tolist() == ["v"]
    assert games.to_rankings().beside["length"].tolist() == [1.0, 2.5, 3.0]
    assert games.together().beside == {}


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_files_keep_what_frames_keep(tmp_path, suffix):
    frame = pl.DataFrame(VOTES)
    path = tmp_path / f"votes.{suffix}"
    frame.write_csv(path) if suffix == "csv" else frame.write_parquet(path)
    found = read_rankings(path, keep=["voter", "length", "number"]).beside
    for name, values in read_games(frame, keep=list(found)).beside.items():
        assert found[name].tolist() == values.tolist()


def test_counts_of_a_row_share_its_columns():
    rows = pd.DataFrame(
        {
            "a": ["x", "y"],
            "b": ["y", "z"],
            "wins_first": [2, 0],
            "wins_second": [1, 3],
            "on": list("pq"),
        }
    )
    games = read_games(rows, first="a", second="b", wins=("wins_first", "wins_second"), keep=["on"])
    assert games.beside["on"].tolist() == ["p", "p", "q"]


def test_columns_of_lists_and_of_their_items():
    races = read_rankings(RACES, keep="day", keep_items=["stops"])
    assert races.beside["day"].tolist() == ["x", "y"]
    # in the order of tiers.items: b > a, then {a, b} > c
    assert [races.items[i] for i in races.tiers.items.tolist()] == ["b", "a", "a", "b", "c"]
    assert races.beside_items["stops"].tolist() == [2, 1, 4, 5, 3]
    assert races.of(np.array([1])).beside_items["stops"].tolist() == [4, 5, 3]
    without = races.without(["a"])
    assert without.beside["day"].tolist() == ["y"]
    assert without.beside_items["stops"].tolist() == [5, 3]


def test_rows_that_are_left_out_take_their_cells_along():
    rows = RACES.assign(position=[2, 1, None, 1, 1])
    races = read_rankings(
        rows, list="race", item="driver", rank="position", missing_rank="drop",
        keep=["day"], keep_items=["stops"],
    )  # fmt: skip
    assert races.beside_items["stops"].tolist() == [2, 1, 4, 5]
    twice = pd.concat([RACES, RACES.iloc[[3]].assign(position=2, stops=9)])
    races = read_rankings(
        twice, list="race", item="driver", rank="position", twice="best", keep_items=["stops"]
    )
    assert races.beside_items["stops"].tolist() == [2, 1, 4, 5, 3]


def test_wide_tables():
    salads = pd.DataFrame({"oil": [1, 2], "herbs": [2, 1], "salt": [2, 0], "who": ["x", "y"]})
    found = read_rankings(salads, kind="wide", keep=["who"])
    assert found.items == ("oil", "herbs", "salt")
    assert found.beside["who"].tolist() == ["x", "y"]


def test_what_cannot_be_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"row 1 of the frame: 'stops' differs .* keep_items"):
        read_rankings(RACES, keep=["stops"])
    with pytest.raises(ValueError, match=r"no column 'stop' .* did you mean 'stops'"):
        read_rankings(RACES, keep_items=["stop"])
    games = read_games(pl.DataFrame(VOTES))
    with pytest.raises(ValueError, match=r"'length' beside is of shape .* 3, one value a game"):
        tr.data.Games(
            games.names, games.first, games.second, games.outcome, games.weights,
            beside={"length": np.ones(2)},
        )  # fmt: skip
    for part in ("a", "b"):
        RACES.to_parquet(tmp_path / f"{part}.parquet")
    with pytest.raises(ValueError, match=r"keep=: lists of several files have no columns"):
        read_rankings(tmp_path, keep=["day"])
    path = tmp_path / "votes.soc"
    path.write_text("1: 1,2\n")
    with pytest.raises(ValueError, match=r"keep=: that is for tables alone"):
        read_rankings(path, keep=["day"])


@pytest.mark.parametrize("sides", [3, 400])
def test_games_come_together_however_many_sides_there_are(sides):
    random = np.random.default_rng(sides)
    first, gap = random.integers(0, sides, 500), random.integers(1, sides, 500)
    games = tr.data.Games(
        tuple(range(sides)), first, (first + gap) % sides, random.integers(-1, 2, 500),
        random.integers(1, 4, 500), random.random(500) < 0.5,
    )  # fmt: skip
    kinds = list(zip(games.first, games.second, games.outcome, games.neutral, strict=True))
    counted = dict.fromkeys(sorted(kinds), 0.0)
    for kind, weight in zip(kinds, games.weights, strict=True):
        counted[kind] += weight
    found = games.together()
    assert counted == {
        (a, b, outcome, neutral): weight
        for a, b, outcome, neutral, weight in zip(
            found.first, found.second, found.outcome, found.neutral, found.weights, strict=True
        )
    }


def test_parts_by_a_column():
    games = read_games(pl.DataFrame(VOTES), keep=["voter", "length"])
    with pytest.raises(ValueError, match=r"list 2 has no 'voter'"):
        games.by("voter")
    with pytest.raises(ValueError, match=r"only 'voter', 'length' beside .* Did you mean 'voter'"):
        games.by("voters")
    with pytest.raises(ValueError, match=r"no column beside the lists, .* keep=\['voter'\]"):
        read_games(pl.DataFrame(VOTES)).by("voter")
    races = read_rankings(RACES, keep=["day", "race"], list="race", item="driver", rank="position")
    parts = races.by("day")
    assert {day: len(part) for day, part in parts.items()} == {"x": 1, "y": 1}
    assert parts["x"].items == ("a", "b")  # no list of that day names c
    assert parts["y"].items == ("a", "b", "c")
    assert list(races.by("race")) == [1, 2]  # whole numbers, not 1.0


def test_parts_come_by_their_weight_and_hold_every_game():
    random = np.random.default_rng(0)
    first, kind = (
        random.integers(0, 20, 300),
        random.choice(["p", "q", "r"], 300, p=[0.2, 0.5, 0.3]),
    )
    games = tr.data.Games(
        tuple("abcdefghijklmnopqrst"), first, (first + random.integers(1, 20, 300)) % 20,
        random.integers(-1, 2, 300), np.ones(300), beside={"kind": kind.astype(object)},
    )  # fmt: skip
    parts = games.by("kind")
    assert list(parts) == ["q", "r", "p"]
    for name, part in parts.items():
        rows = np.flatnonzero(kind == name)
        assert [part.names[i] for i in part.first] == [games.names[i] for i in games.first[rows]]
        assert part.outcome.tolist() == games.outcome[rows].tolist()
        assert set(part.names) == {part.names[i] for i in [*part.first, *part.second]}
    fits = {name: tr.PairedTies(prior="gaussian").fit(part) for name, part in parts.items()}
    assert fits["q"].n_games_ == (kind == "q").sum()
