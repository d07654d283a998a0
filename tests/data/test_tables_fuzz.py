"""Tables by the thousand: round trips, damage, and other readers."""

import csv
import io
import math
import string

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tierrank.data import RankingData, TableError, read_table, write_table

# round trips -------------------------------------------------------------------------------------

FLOATS = st.floats() | st.sampled_from([0.0, -0.0, 1.0, 0.1, math.inf])
INTEGERS = st.integers(-(2**63), 2**63 - 1)
WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1)
WORDS = (WORDS | st.text(' ,"\t\r\n7é', min_size=1)).filter(str.strip)


@st.composite
def data_sets(draw):
    rows, columns = draw(st.integers(1, 6)), draw(st.integers(0, 5))
    X = draw(arrays(np.float64, (rows, columns), elements=FLOATS))
    y = draw(arrays(np.float64, rows, elements=st.floats(allow_nan=False, allow_infinity=False)))
    if draw(st.booleans()):
        qid = np.array(draw(st.lists(INTEGERS, min_size=rows, max_size=rows)), dtype=np.int64)
    else:
        qid = np.empty(rows, dtype=object)
        qid[:] = draw(st.lists(WORDS, min_size=rows, max_size=rows))
    names = draw(st.none() | st.lists(WORDS, min_size=columns, max_size=columns, unique=True))
    if names is not None:
        names = tuple(f"{name}." for name in names)  # so that none is label or qid
    return RankingData(X, y, qid, feature_names=names)


def _bits(values):
    """Bits, with one kind of NaN."""
    return np.where(np.isnan(values), np.nan, values).view(np.int64).tolist()


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet"])
@settings(max_examples=120, deadline=None)
@given(data=data_sets())
def test_what_is_written_is_read_back_bit_by_bit(tmp_path_factory, suffix, data):
    path = tmp_path_factory.getbasetemp() / f"round{suffix}"
    write_table(path, data)
    back = read_table(path)
    assert _bits(back.X) == _bits(data.X)
    assert _bits(back.y) == _bits(data.y)
    assert [str(q) for q in back.qid.tolist()] == [str(q) for q in data.qid.tolist()]
    if suffix == ".parquet":
        assert back.qid.dtype == data.qid.dtype
    names = tuple(f"f{i + 1}" for i in range(data.n_features))
    assert back.feature_names == (data.feature_names or names)


DIGITS = st.text("0123456789", min_size=1, max_size=30)
NUMBERS = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.builds("{}{}.{}".format, st.sampled_from(["", "+", "-"]), DIGITS, DIGITS),
    st.builds("{}e{}".format, DIGITS, st.integers(-360, 270)),
    st.builds(".{}E{:+}".format, DIGITS, st.integers(-330, 300)),
    st.builds("{}.{}".format, st.integers(2**53, 2**64), st.sampled_from(["0", "5", "50001"])),
)


@pytest.mark.parametrize("by", ["pyarrow", "python"])
@settings(max_examples=60, deadline=None)
@given(words=st.lists(NUMBERS, min_size=40, max_size=80))
def test_numbers_are_read_to_the_last_bit_as_python_reads_them(tmp_path_factory, by, words):
    path = tmp_path_factory.getbasetemp() / "numbers.csv"
    # what makes pyarrow give up: truth in a column, and blanks around the numbers of another
    row = "{0},1,{0},1\n" if by == "pyarrow" else " {0},1,{0} ,true\n"
    path.write_text("label,qid,x,y\n" + "".join(row.format(word) for word in words))
    expected = np.array([float(word) for word in words]).view(np.int64).tolist()
    data = read_table(path)
    assert data.X[:, 0].copy().view(np.int64).tolist() == expected
    assert data.y.view(np.int64).tolist() == expected


# damage ------------------------------------------------------------------------------------------

VALID = (
    b'label,qid,"x ""1""",flag\n'
    b'2,"a, b",0.007477,true\n'
    b"\n"
    b'0,"two\r\nlines",-1e-5,\r\n'
    b"1,c,NULL,FALSE\n"
    b"1,d,inf,false\n"
)
BYTES = st.sampled_from(list(b'0123456789,,,"""..-+eE truefalsNULabc;\t\r\n\r\n\0\xff\xef_x'))
EDITS = st.lists(
    st.tuples(
        st.sampled_from(["delete", "insert", "replace", "repeat", "cut"]),
        st.integers(0, 10_000),
        BYTES | st.integers(0, 255),
    ),
    min_size=1,
    max_size=6,
)


def _damaged(content, edits):
    text = bytearray(content)
    for kind, place, byte in edits:
        at = place % (len(text) + 1)
        if kind == "delete":
            del text[at : at + 1]
        elif kind == "insert":
            text.insert(at, byte)
        elif kind == "replace":
            text[at : at + 1] = bytes([byte])
        elif kind == "repeat":
            text[at:at] = text[at : at + byte]
        else:
            del text[at:]
    return bytes(text)


def _rows_by_python(content):
    """Cells by the csv module of Python; it gives nothing for an empty line."""
    text = content.decode().removeprefix("\ufeff")
    return [row for row in csv.reader(io.StringIO(text, newline="")) if row]


def _check_outcome(path, content):
    path.write_bytes(content)
    try:
        data = read_table(path)
    except TableError as error:
        refused = error
    else:
        _check_data(data, _rows_by_python(content))
        return
    lines = len(content.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n"))
    assert 1 <= refused.line <= lines
    assert f"{path}, line {refused.line}: " in str(refused)


def _check_data(data, rows):
    header, *cells = rows
    assert len(data) == len(cells)
    assert np.isfinite(data.y).all()
    columns = dict(zip(header, zip(*cells, strict=True), strict=True))
    assert [str(q) for q in data.qid.tolist()] == list(columns["qid"])
    for name, found in [("label", data.y), *zip(data.feature_names, data.X.T, strict=True)]:
        for cell, value in zip(columns[name], found, strict=True):
            assert _same(cell.strip(" \t"), value)


def _same(cell, value):
    if math.isnan(value):
        return cell in ("", "NULL", "NA", "N/A", "None") or cell.lower().endswith("nan")
    if cell.lower() in ("true", "false"):
        return value == (cell.lower() == "true")
    return float(cell) == value and set(cell) <= set(string.digits + "+-.eEinftyINFTY")


@settings(max_examples=500, deadline=None)
@given(EDITS)
def test_a_damaged_file_is_read_or_refused_with_its_line(tmp_path_factory, edits):
    path = tmp_path_factory.getbasetemp() / "damaged.csv"
    _check_outcome(path, _damaged(VALID, edits))


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=60) | st.lists(BYTES, max_size=60).map(bytes))
def test_any_bytes_are_read_or_refused_with_their_line(tmp_path_factory, content):
    path = tmp_path_factory.getbasetemp() / "bytes.csv"
    _check_outcome(path, content)


@settings(max_examples=300, deadline=None)
@given(st.lists(BYTES, max_size=60).map(bytes))
def test_any_bytes_after_a_header_are_read_or_refused_with_their_line(tmp_path_factory, content):
    path = tmp_path_factory.getbasetemp() / "rows.csv"
    _check_outcome(path, b"qid,label\n" + content)


@pytest.fixture(scope="module")
def parquet(tmp_path_factory):
    path = tmp_path_factory.mktemp("parquet") / "whole.parquet"
    rng = np.random.default_rng(1)
    qid = np.array(["a", "b"] * 20, dtype=object)
    data = RankingData(rng.random((40, 3)), rng.integers(0, 3, 40).astype(float), qid)
    write_table(path, data)
    return path.read_bytes(), data


@settings(max_examples=300, deadline=None)
@given(edits=EDITS)
def test_a_damaged_parquet_file_is_read_or_refused(tmp_path_factory, parquet, edits):
    whole, data = parquet
    path = tmp_path_factory.getbasetemp() / "damaged.parquet"
    path.write_bytes(_damaged(whole, edits))
    try:
        found = read_table(path)
    except TableError as error:
        refused = error
    else:
        assert np.isfinite(found.y).all()
        assert found.X.shape == (len(found), found.n_features)
        assert len(found.qid) == len(found) <= len(data)
        return
    assert refused.path == path
    assert str(refused).startswith(str(path))


@settings(max_examples=100, deadline=None)
@given(content=st.binary(max_size=80), ends=st.booleans())
def test_any_bytes_are_no_parquet_file(tmp_path_factory, content, ends):
    path = tmp_path_factory.getbasetemp() / "bytes.parquet"
    path.write_bytes(b"PAR1" + content + b"PAR1" if ends else content)
    with pytest.raises(TableError, match=r"bytes\.parquet: "):
        read_table(path)
