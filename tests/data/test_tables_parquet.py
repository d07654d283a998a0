"""Parquet files: what is read and what is refused, with its row."""

import datetime
import decimal
import math

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tierrank as tr
from tierrank.data import (
    RankingData,
    TableError,
    read_table,
    write_table,
)


@pytest.fixture
def read(tmp_path):
    def read(text, name="data.csv", **options):
        path = tmp_path / name
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return read_table(path, **options)

    return read


@pytest.fixture
def read_columns(tmp_path):
    """From a Parquet file with these columns, and label and qid unless they are given."""

    def read_columns(columns, **options):
        path = tmp_path / "data.parquet"
        rows = len(next(iter(columns.values())))
        given = {"label": [1] * rows, "qid": [1] * rows} | columns
        pq.write_table(pa.table(given), path)
        return read_table(path, **options)

    return read_columns


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pa.array([1, None, 3], pa.int8()), [1, math.nan, 3]),
        (pa.array([1, None, 2**53], pa.uint64()), [1, math.nan, 2**53]),
        (pa.array([0.5, math.nan, math.inf], pa.float16()), [0.5, math.nan, math.inf]),
        (pa.array([0.1, None, 3], pa.float32()), [float(np.float32(0.1)), math.nan, 3]),
        (pa.array([True, None, False]), [1, math.nan, 0]),
        (pa.nulls(3), [math.nan] * 3),
        (pa.array([decimal.Decimal("1.25"), None, 2]), [1.25, math.nan, 2]),
        (pa.array([5, None, 5]).dictionary_encode(), [5, math.nan, 5]),
    ],
    ids=str,
)
def test_parquet_numbers_of_any_type_become_floats(read_columns, column, expected):
    np.testing.assert_array_equal(read_columns({"x": column}).X[:, 0], expected)


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pa.array([3, 1, 3], pa.uint8()), [3, 1, 3]),
        (pa.array([3, 2**63, 3], pa.uint64()), ["3", str(2**63), "3"]),
        (pa.array([3.0, 1.0, 3.0]), [3, 1, 3]),
        (pa.array([3.5, 1.0, 3.5]), ["3.5", "1.0", "3.5"]),
        (pa.array(["7", "07", "a\0"]), ["7", "07", "a\0"]),
        (pa.array(["b", "a", "b"]).dictionary_encode(), ["b", "a", "b"]),
        (pa.array([b"b", b"a", b"b"]), ["b", "a", "b"]),
        (pa.array([True, False, True]), ["True", "False", "True"]),
        (pa.array([decimal.Decimal("1.50"), decimal.Decimal("2.00")]), ["1.50", "2.00"]),
        (pa.array([datetime.date(2024, 1, d) for d in (3, 1)]), ["2024-01-03", "2024-01-01"]),
    ],
    ids=str,
)  # fmt: skip
def test_parquet_queries_of_any_plain_type_become_keys(read_columns, column, expected):
    assert read_columns({"qid": column}).qid.tolist() == expected


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"label": [1.0, None]}, r"row 2: the label is missing"),
        ({"label": [math.inf, 1.0]}, r"row 1: the label is infinite"),
        ({"label": ["a", "b"]}, r"parquet: the label column 'label' is of type 'string', not"),
        ({"qid": ["a", None]}, r"row 2: the query is missing"),
        ({"qid": [1.0, math.nan]}, r"row 2: the query is missing"),
        ({"qid": [math.inf, 1.0]}, r"row 1: the query is inf"),
        ({"qid": ["a", ""]}, r"row 2: the query is empty"),
        ({"qid": [[1], [2]]}, r"parquet: the query column is of type"),
        ({"x": ["a", "b"]}, r"parquet: the feature column 'x' is of type 'string'.*drop"),
        ({"x": [[1], [2]]}, r"feature column 'x' is of type 'list"),
        ({"x": [datetime.date(2024, 1, 1)] * 2}, r"feature column 'x' is of type 'date32"),
        ({"x": [1, 2**53 + 1]}, r"row 2: the feature column 'x' has 9007199254740993, over 2\^53"),
        ({"Label": [1, 2], "__index_level_0__": [1, 2]}, r"column 4, called '__index_level_0__'"),
        ({"x": pa.array([], pa.int8())}, r"columns but no row"),
        ({"qid": pa.array([b"\xff", b"a"])}, r"cannot be read as Parquet \(.*[Uu][Tt][Ff]"),
    ],
)  # fmt: skip
def test_bad_parquet_columns_are_refused_with_their_row(read_columns, columns, message):
    with pytest.raises(TableError, match=message) as caught:
        read_columns(columns)
    assert caught.value.line is None
    assert (caught.value.row is not None) == ("row " in message.split(":")[0])


def test_bad_parquet_files_are_refused(read, tmp_path):
    pq.write_table(pa.table({"label": [1.0] * 99, "qid": [1] * 99}), tmp_path / "whole.parquet")
    whole = (tmp_path / "whole.parquet").read_bytes()
    with pytest.raises(TableError, match="the file is empty"):
        read(b"", name="data.parquet")
    with pytest.raises(TableError, match="is not a Parquet file"):
        read("label,qid\n1,1\n", name="data.parquet")
    with pytest.raises(TableError, match=r"cannot be read as Parquet \(.*cut short"):
        read(whole[: len(whole) // 2], name="data.parquet")
    with pytest.raises(TableError, match=r"no column 'grade'.*'label', 'qid'"):
        read(whole, name="data.parquet", label="grade")


def test_a_parquet_column_may_have_a_dot_in_its_name(read_columns):
    columns = {"a.b": [1.5, 2.5], "a": [{"b": 1}, {"b": 2}]}
    assert read_columns(columns, drop=["a"]).X.tolist() == [[1.5], [2.5]]


def test_a_changed_byte_in_a_written_page_is_noticed(tmp_path):
    path = tmp_path / "data.parquet"
    X = np.random.default_rng(0).standard_normal((500, 1))
    write_table(path, RankingData(X, np.arange(500.0), np.arange(500)))
    content = bytearray(path.read_bytes())
    content[content.find(X[100, 0].tobytes())] ^= 1
    path.write_bytes(content)
    with pytest.raises(TableError, match="cannot be read as Parquet"):
        read_table(path)


def test_words_of_parts_that_are_more_together_than_their_numbers_count():
    def part(first):
        names = [f"player {n}" for n in range(first, first + 100)]
        return pa.DictionaryArray.from_arrays(pa.array(range(100), pa.int8()), names)

    sides = pa.chunked_array([part(0), part(100)])
    winners = pa.array(["first"] * 200)
    games = tr.data.read_games(pa.table({"first": sides, "second": ["z"] * 200, "winner": winners}))
    assert len(games) == 200
    assert games.names[:2] == ("player 0", "z")
    assert len(games.names) == 201
