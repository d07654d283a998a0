"""Frames of pandas, polars and pyarrow: what is taken and what is refused."""

import math

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from tierrank.data import (
    RankingData,
)

COLUMNS = {
    "qid": ["b", "a", "b"],
    "label": [1, 0, 2],
    "i": [1, None, 3],
    "f": [0.5, math.nan, math.inf],
    "t": [True, None, False],
    "url": ["x", "y", "z"],
}
EXPECTED = [[1, 0.5, 1], [math.nan, math.nan, math.nan], [3, math.inf, 0]]


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame(COLUMNS, index=[5, 5, 7]),
        pd.DataFrame(COLUMNS).convert_dtypes(),
        pd.DataFrame(COLUMNS).convert_dtypes(dtype_backend="pyarrow"),
        pd.DataFrame(COLUMNS).astype(object),
        pl.DataFrame(COLUMNS, strict=False),
        pl.DataFrame(COLUMNS, strict=False).with_columns(pl.col("qid").cast(pl.Categorical)),
        pa.table(COLUMNS),
    ],
    ids=["pandas", "nullable", "arrow-backed", "objects", "polars", "categories", "pyarrow"],
)
def test_frames_of_every_kind_give_the_same(frame):
    data = RankingData.from_frame(frame, drop=["url"])
    np.testing.assert_array_equal(data.X, EXPECTED)
    assert (data.X.dtype, data.feature_names) == (np.float64, ("i", "f", "t"))
    assert (data.y.tolist(), data.qid.tolist()) == ([1, 0, 2], ["b", "a", "b"])
    filled = RankingData.from_frame(frame, features=["t", "i"], missing=-1)
    assert filled.X.tolist() == [[1, 1], [-1, -1], [0, 3]]


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pd", "pl", "pa"])
@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"label": [1.0, math.nan]}, "row 1 of the frame: the label is missing"),
        ({"label": [math.inf, 1.0]}, "row 0 of the frame: the label is infinite"),
        ({"qid": [None, "a"]}, "row 0 of the frame: the query is missing"),
        ({"qid": ["a", " "]}, "row 1 of the frame: the query is empty"),
        ({"qid": [[1], [2]]}, "the query column is of type"),
        ({"x": ["a", "b"]}, "the feature column 'x' is of type .*drop"),
        ({"x": [1, -(2**60)]}, r"row 1 of the frame: .* has -1152921504606846976, over 2\^53"),
        ({"label": [], "qid": []}, "columns but no row|is of type"),
    ],
)
def test_what_is_wrong_with_a_frame_is_said_with_the_row(make, columns, message):
    with pytest.raises(ValueError, match=message):
        RankingData.from_frame(make({"label": [1, 2], "qid": [1, 2]} | columns))


def test_integer_queries_of_frames_stay_integers():
    for make in (pd.DataFrame, pl.DataFrame, pa.table):
        qid = RankingData.from_frame(make({"label": [1, 2], "qid": [7, -3]})).qid
        assert (qid.tolist(), qid.dtype) == ([7, -3], np.int64)


def test_queries_that_only_look_the_same_are_refused():
    with pytest.raises(
        ValueError, match=r"row 1 of the frame: the queries 1 \(int\) and '1' \(str\)"
    ):
        RankingData.from_frame(pd.DataFrame({"label": [1, 2, 3], "qid": [1, "1", "a"]}))


def test_what_is_no_frame_is_refused():
    with pytest.raises(ValueError, match=r"LazyFrame is not a frame: .*collect"):
        RankingData.from_frame(pl.LazyFrame({"label": [1]}))
    for thing in ({"label": [1]}, np.ones((2, 2)), pd.Series([1])):
        with pytest.raises(ValueError, match="is not a frame"):
            RankingData.from_frame(thing)
    with pytest.raises(ValueError, match="two columns are called 'label'"):
        RankingData.from_frame(pd.DataFrame([[1, 2]], columns=["label", "label"]))
