"""Preferences from tables: the same tiers as from the pairs themselves, and every fault's line."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tierrank.data.rankings.item_pairs import read_preferences
from tierrank.data.tables import TableError
from tierrank.tiers import Tiers

TEXT = "list,winner,loser\nb,ann,bob\na,cy,ann\nb,bob,cy\nb,ann,bob\na,cy,bob\n"


@pytest.fixture
def read(tmp_path):
    def read(text, name="preferences.csv", **options):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return read_preferences(path, **options)

    return read


def test_rows_become_the_partition_of_each_list(read):
    rankings = read(TEXT)
    assert rankings.tiers.to_rankings() == [["ann", "bob", "cy"], ["cy", ("ann", "bob")]]
    assert rankings.items == ("ann", "bob", "cy")
    assert rankings.tiers.keys.tolist() == ["b", "a"]
    assert rankings.weights.tolist() == [1.0, 1.0]


def test_other_columns_separators_formats_and_frames(read, tmp_path):
    expected = read(TEXT).tiers
    renamed = TEXT.replace("list,winner,loser", "judge,better,worse").replace(",", "\t")
    names = {"list": "judge", "winner": "better", "loser": "worse"}
    assert read(renamed, "p.tsv", **names).tiers == expected
    rows = [line.split(",") for line in TEXT.splitlines()]
    columns = dict(zip(rows[0], map(list, zip(*rows[1:], strict=True)), strict=True))
    assert read_preferences(pd.DataFrame(columns)).tiers == expected
    assert read_preferences(pl.DataFrame(columns)).tiers == expected
    pq.write_table(pa.table(columns), tmp_path / "p.parquet")
    assert read_preferences(tmp_path / "p.parquet").tiers == expected


def test_without_a_list_column_all_rows_are_one_list(read):
    text = "winner,loser\n3,1\n1,0\n3,0\n"
    rankings = read(text, list=None)
    assert rankings.tiers.to_rankings() == [[3, 1, 0]]
    assert rankings.tiers.keys is None


def test_layers(read):
    text = "list,winner,loser\n1,a,b\n1,c,d\n"
    assert read(text).tiers.to_rankings() == [[("a", "b", "c", "d")]]
    assert read(text, method="layers").tiers.to_rankings() == [[("a", "c"), ("b", "d")]]
    with pytest.raises(ValueError, match="method is"):
        read(text, method="best")


def test_many_lists_are_as_from_the_pairs_themselves():
    rng = np.random.default_rng(0)
    lists = rng.integers(0, 300, 3_000)
    pairs = np.sort(rng.integers(0, 40, (3_000, 2)), axis=1)
    kept = pairs[:, 0] < pairs[:, 1]
    lists, pairs = lists[kept], pairs[kept]
    frame = pd.DataFrame({"list": lists, "winner": pairs[:, 0], "loser": pairs[:, 1]})
    tiers = read_preferences(frame).tiers
    expected = Tiers.from_preferences([pairs[lists == key] for key in tiers.keys])

    def sets(tiers):
        return [
            [set(t) if isinstance(t, tuple) else {t} for t in one] for one in tiers.to_rankings()
        ]

    assert sets(tiers) == sets(expected)


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("list,winner,loser\nx,a,b\nx,c,c\n", 3, "winner and loser are the same item"),
        ("list,winner,loser\nx,a,b\nx,,c\n", 3, "empty"),
        ("list,winner,loser\nx,a,b\n,a,c\n", 3, "the list is empty"),
        (
            "list,winner,loser\nx,a,b\ny,a,b\ny,b,c\nz,a,c\ny,c,a\n",
            3,
            "in the list 'y', which begins here, the preferences form a cycle: a > b > c > a",
        ),
    ],
)
def test_faults_are_said_with_their_line(read, text, line, message):
    with pytest.raises(TableError, match=message) as caught:
        read(text)
    assert f"preferences.csv, line {line}: " in str(caught.value)


def test_the_first_of_many_cycles_is_found():
    n = 101
    frame = pd.DataFrame(
        {
            "list": np.repeat(np.arange(n), 2),
            "winner": ["a", "b"] * n,
            "loser": ["b", "c"] * n,
        }
    )
    frame.loc[[2 * i + 1 for i in (37, 80, 81)], "loser"] = "a"
    with pytest.raises(ValueError, match=r"in the list '37', .* cycle: a > b > a\."):
        read_preferences(frame)


def test_a_cycle_without_a_list_column(read):
    with pytest.raises(TableError, match="the preferences form a cycle: a > b > a"):
        read("winner,loser\na,b\nb,a\n", list=None)


def test_columns_are_found_by_name(read):
    with pytest.raises(TableError, match="loser"):
        read("list,winner\nx,a\n")
    with pytest.raises(TableError, match="'winner' is named for two things"):
        read(TEXT, loser="winner")
