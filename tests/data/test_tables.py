"""CSV files: what is read and what is refused, with its line."""

import bz2
import gzip
import lzma
import math
import sys
import tracemalloc

import numpy as np
import pandas as pd
import pytest

from tierrank.data import (
    DataFileError,
    LetorError,
    RankingData,
    TableError,
    read_letor,
    read_table,
    write_table,
)

PACK = {"": bytes, ".gz": gzip.compress, ".xz": lzma.compress, ".bz2": bz2.compress}


@pytest.fixture
def read(tmp_path):
    def read(text, name="data.csv", **options):
        path = tmp_path / name
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return read_table(path, **options)

    return read


def test_columns_are_found_by_name(read):
    data = read("x,grade,q,y\n0.5,2,b,3\n-1e-3,0,a,.25\n4,1.5,b,5.\n", label="grade", query="q")
    assert data.X.tolist() == [[0.5, 3.0], [-0.001, 0.25], [4.0, 5.0]]
    assert data.y.tolist() == [2.0, 0.0, 1.5]
    assert data.qid.tolist() == ["b", "a", "b"]
    assert (data.feature_names, data.comments) == (("x", "y"), None)
    assert (len(data), data.n_features, data.n_queries) == (3, 2, 2)
    assert str(data.tiers()).splitlines()[1:] == ["  'b': 0 > 2", "  'a': 1"]
    assert data.X.flags.c_contiguous
    assert (data.X.dtype, data.y.dtype) == (np.float64, np.float64)


def test_features_are_chosen_and_ordered_or_dropped(read):
    text = "label,qid,a,b,url\n1,1,2,3,http\n"
    chosen = read(text, features=["b", "a"])
    assert (chosen.X.tolist(), chosen.feature_names) == ([[3, 2]], ("b", "a"))
    left = read(text, drop=["url", "a"])
    assert (left.X.tolist(), left.feature_names) == ([[3]], ("b",))
    assert read(text, features=[]).X.shape == (1, 0)


@pytest.mark.parametrize(
    "text",
    [
        "label,qid,x\r\n1,1,2\r\n0,1,3\r\n",
        "label,qid,x\r1,1,2\r0,1,3",
        "\ufefflabel,qid,x\n1,1,2\n0,1,3",
        "\n\nlabel,qid,x\n\n1,1,2\n\n\n0,1,3\n\n",
        '"label","qid","x"\n"1","1","2"\n"0","1","3"\n',
        "label,qid,x\n+1,1, 2e0 \n0.0,1,\t+0.3E+1\n",
    ],
    ids=["windows", "mac", "mark", "empty lines", "quotes", "signs"],
)
def test_line_ends_quotes_and_blanks_do_not_matter(read, text):
    data = read(text)
    assert (data.X.tolist(), data.y.tolist(), data.qid.tolist()) == ([[2], [3]], [1, 0], [1, 1])


@pytest.mark.parametrize("suffix", PACK)
def test_compressed_and_tab_separated_files_are_told_by_their_suffix(read, suffix):
    text = b"label\tqid\tx\n1\ta,b\t2\n"
    data = read(PACK[suffix](text), name=f"data.TSV{suffix}")
    assert (data.X.tolist(), data.qid.tolist()) == ([[2]], ["a,b"])
    assert read(PACK[suffix](b"label,qid,x\n1,1,2\n"), name=f"a.csv{suffix}").X.tolist() == [[2]]


def test_another_separator_can_be_given(read):
    assert read("label;qid;x\n1;1;2\n", separator=";").X.tolist() == [[2]]
    for separator in ("", ";;", '"', "\n"):
        with pytest.raises(ValueError, match="separator is one character"):
            read("label;qid;x\n1;1;2\n", separator=separator)


def test_empty_cells_and_words_for_nothing_are_missing(read):
    cells = ["", "NA", "N/A", "NULL", "null", "NaN", "nan", "None", '""', " ", " NA "]
    text = "label,qid,x\n" + "".join(f"1,1,{cell}\n" for cell in cells) + "1,1,7\n"
    assert np.isnan(read(text).X[:, 0]).tolist() == [True] * len(cells) + [False]
    assert read(text, missing=-1.5).X[:, 0].tolist() == [-1.5] * len(cells) + [7]
    with pytest.raises(ValueError, match='missing is "keep"'):
        read(text, missing="drop")


def test_true_and_false_are_1_and_0(read):
    data = read("label,qid,x,y\nTrue,1,true,1\nfalse,1,,2\nFALSE,1,False,3\n")
    np.testing.assert_array_equal(data.X, [[1, 1], [math.nan, 2], [0, 3]])
    assert data.y.tolist() == [1, 0, 0]


def test_infinite_features_are_read_as_written(read):
    data = read("label,qid,x,y\n1,1,inf,1\n1,1,-Infinity,2\n1,1,-0,3\n")
    assert data.X.tolist() == [[math.inf, 1], [-math.inf, 2], [0, 3]]
    assert math.copysign(1, data.X[2, 0]) == -1


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["-9223372036854775808", "0", "9223372036854775807"], [-(2**63), 0, 2**63 - 1]),
        (["3", "9223372036854775808"], ["3", "9223372036854775808"]),
        (["7", "07"], ["7", "07"]),
        (["7", "7.0"], ["7", "7.0"]),
        (["-0", "0"], ["-0", "0"]),
        (["NAN", "none"], ["NAN", "none"]),
        (["é", "a b", " a b"], ["é", "a b", " a b"]),
    ],
)
def test_queries_are_integers_if_all_are_and_never_run_together(read, words, expected):
    assert read("label,qid\n" + "".join(f"1,{word}\n" for word in words)).qid.tolist() == expected


@pytest.mark.parametrize("word", ["NA", "N/A", "None", "null", "NaN", "<NA>", " NA "])
@pytest.mark.parametrize("other", ["1", "shoes"])
def test_a_query_that_is_missing_by_a_word_is_refused_with_its_line(read, word, other):
    with pytest.raises(TableError, match=rf"line 4: the query is {word.strip()}, which stands for"):
        read(f"label,qid\n1,{other}\n0,{other}\n1,{word}\n")


def test_quoted_cells_may_hold_anything(read):
    data = read('label,"q\n""id""",x\n1,"a,""b""\r\nc",2\n1,d"e,3\n', query='q\n"id"')
    assert data.qid.tolist() == ['a,"b"\r\nc', 'd"e']


def test_rows_and_cells_may_be_longer_than_a_block(read):
    names = ",".join(f"f{i}" for i in range(2_000))
    row = ",".join(["0." + "3" * 700] * 2_000)
    data = read(f"label,qid,{names}\n1,1,{row}\n2,2,{row}\n")
    assert (data.X == 1 / 3).all()
    assert data.X.shape == (2, 2_000)
    data = read('label,qid,x\n1,"' + "é\n" * 2_000_000 + '",2\n1,b,3\n')
    assert [len(q) for q in data.qid] == [4_000_000, 1]


def test_many_rows_are_split_as_by_pandas_and_read_as_by_python(read, tmp_path):
    rng = np.random.default_rng(3)
    rows = 20_000  # several of pyarrow's blocks
    frame = pd.DataFrame(
        rng.standard_normal((rows, 4)) * 10.0 ** rng.integers(-300, 300, (rows, 4))
    )
    frame.columns = list("abcd")
    frame = frame.mask(rng.random((rows, 4)) < 0.1)
    frame["label"] = rng.integers(0, 5, rows)
    frame["qid"] = [f"q {i}, é" for i in rng.integers(0, 999, rows)]
    frame["flag"] = rng.random(rows) < 0.5
    frame.to_csv(tmp_path / "data.csv", index=False)
    again = pd.read_csv(tmp_path / "data.csv", dtype=str, keep_default_na=False)
    data = read_table(tmp_path / "data.csv")
    assert data.feature_names == ("a", "b", "c", "d", "flag")
    word = {"": math.nan, "True": 1.0, "False": 0.0}
    for name, column in zip(data.feature_names, data.X.T, strict=True):
        expected = [word[cell] if cell in word else float(cell) for cell in again[name]]
        np.testing.assert_array_equal(column, expected)
    assert data.y.tolist() == [float(cell) for cell in again["label"]]
    assert data.qid.tolist() == again["qid"].tolist()


HEADER = "label,qid,x,y\n"
ROW = "1,1,2,3\n"


@pytest.mark.parametrize(
    ("bad", "line", "message"),
    [
        (",1,2,3", 3, "the label is missing"),
        ("nan,1,2,3", 3, "the label is missing"),
        ("-inf,1,2,3", 3, "the label is infinite"),
        ("1e999,1,2,3", 3, r"label column 'label' has '1e999', too large for a float64: scale"),
        ("good,1,2,3", 3, r"label column 'label' has 'good', which is not a number\.$"),
        ("true,1,2,3", 3, r"label column 'label' has 'true', which is not a number"),
        ("1,,2,3", 3, "the query is empty"),
        ('1,"  ",2,3', 3, "the query is empty"),
        ("1,1,2,x", 3, r"feature column 'y' has 'x', which is not a number\. .*drop"),
        ("1,1,1_0,3", 3, r"feature column 'x' has '1_0'"),
        ("1,1,0x1p3,3", 3, r"feature column 'x' has '0x1p3'"),
        ("1,1,٣,3", 3, r"feature column 'x' has '٣'"),
        ("1,1,1e400,3", 3, r"feature column 'x' has '1e400', too large for a float64: scale"),
        ("1,1," + "x" * 99 + ",3", 3, r"has 'x{40}…'"),
        ("1,1,2020-01-01,3", 3, r"has '2020-01-01'"),
        ("1,1,2", 3, r"this row has 3 cells, but the header has 4: mend"),
        ("1,1,2,3,", 3, r"this row has 5 cells, but the header has 4"),
        ("  ", 3, r"this row has 1 cell, but the header has 4"),
        ('1,1,"2,3', 3, r"a quote is opened here and never closed"),
        ('1,"a\n\nb",2,z', 5, r"feature column 'y' has 'z'"),
        ('1,"a\r\nb",2,3\n\n\n1,1,2,w', 7, r"feature column 'y' has 'w'"),
        (b"1,\xe9,2,3", 3, r"byte 0xe9 is not UTF-8: save"),
        (b"1,1,2,3\0", 3, r"NUL byte: this is not a text file"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_a_bad_row_is_refused_with_its_line(read, bad, line, message, newline):
    bad = bad if isinstance(bad, bytes) else bad.encode()
    if b"\r" not in bad:
        bad = bad.replace(b"\n", newline.encode())
    head, row = (text.replace("\n", newline).encode() for text in (HEADER, ROW))
    with pytest.raises(TableError, match=rf"data\.csv, line {line}: .*{message}") as caught:
        read(head + row + bad + newline.encode() + row)
    assert (caught.value.line, caught.value.path.name, caught.value.row) == (line, "data.csv", None)


def test_a_column_of_truth_stays_one(read):
    with pytest.raises(TableError, match=r"line 4: .*'x' has '2' after true or false"):
        read("label,qid,x\n1,1,\n1,1,true\n1,1,2\n")


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("", {}, "the file is empty"),
        ("\ufeff\n\r\n", {}, "the file is empty"),
        ("label,qid,x", {}, "there are columns but no row"),
        ("label,qid,x\n\n", {}, "there are columns but no row"),
        ("label,qid,x,x\n1,1,1,1\n", {}, "two columns are called 'x'"),
        ("Label,qid,x\n", {}, r"no column 'label' .*: did you mean 'Label'\? .*'qid', 'x'"),
        ("label,query_id,x\n", {"query": "queryid"}, r"no column 'queryid'.*mean 'query_id'\?"),
        ("label,qid\n", {"features": ["price"]}, r"no column 'price' \(for features\)"),
        ("label,qid\n", {"drop": ["price"]}, r"no column 'price' \(for drop\)"),
        ("label,qid,x\n", {"drop": ["qid"]}, "drop names the label or the query"),
        ("label,qid,x\n", {"features": ["qid"]}, "features names 'qid', which is"),
        ("label,qid,x\n", {"features": ["x", "x"]}, "features names 'x', which is"),
        ("label,qid,x\n", {"query": "label"}, "label and query are both 'label'"),
        (",label,qid,x\n0,1,1,1\n", {}, r"column 1, called '', has no name.*drop=\[''\]"),
        ("label;qid;x\n1;1;2\n", {}, r"The header has no ',': pass separator=\";\"\?"),
        ("1,1,2\n0,1,3\n", {}, "The first line holds numbers: it must be a header"),
        ('label,qid,"x\n1,1,2\n', {}, "a quote is opened here and never closed"),
        ("label,qid,x\n1,1,2\n".encode("utf-16"), {}, "is UTF-16: save it as UTF-8"),
    ],
)  # fmt: skip
def test_a_bad_header_or_file_is_refused(read, text, options, message):
    with pytest.raises(TableError, match=rf"data\.csv, line \d+: .*{message}"):
        read(text, **options)


@pytest.mark.parametrize("option", ["features", "drop"])
def test_names_in_one_string_are_refused(read, option):
    with pytest.raises(ValueError, match=f"{option} is a list"):
        read("label,qid,x\n1,1,1\n", **{option: "x"})


def test_a_long_list_of_columns_is_cut(read):
    names = ",".join(f"c{i}" for i in range(100))
    with pytest.raises(TableError, match=r"'c29' and 70 more\.$"):
        read(names + "\n")


@pytest.mark.parametrize("suffix", [".gz", ".xz", ".bz2"])
def test_a_damaged_archive_is_refused(read, suffix):
    whole = PACK[suffix](HEADER.encode() + ROW.encode() * 1000)
    for content in (whole[: len(whole) // 2], HEADER.encode()):
        with pytest.raises(TableError, match=rf"cannot be decompressed as {suffix}"):
            read(content, name=f"data.csv{suffix}")
    with pytest.raises(TableError, match=f"is compressed: give its name the suffix {suffix}"):
        read(whole)


def test_what_is_no_table_by_its_name_is_refused(read, tmp_path):
    with pytest.raises(TableError, match=r"has no suffix of a table"):
        read("label,qid\n1,1\n", name="data.txt")
    with pytest.raises(TableError, match=r"Parquet compresses inside: unpack"):
        read(b"", name="data.parquet.gz")
    with pytest.raises(TableError, match="is a folder"):
        read_table(tmp_path)
    with pytest.raises(FileNotFoundError):
        read_table(tmp_path / "absent.csv")
    with pytest.raises(FileNotFoundError):
        read_table(tmp_path / "absent.parquet")


def test_without_pyarrow_the_error_says_how_to_get_it(read, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(TableError, match=r'pip install "tierrank\[tables\]"'):
        read("label,qid\n1,1\n")
    with pytest.raises(TableError, match=r'pip install "tierrank\[tables\]"'):
        write_table(tmp_path / "out.csv", RankingData(np.ones((1, 1)), np.ones(1), np.ones(1, int)))
    assert not (tmp_path / "out.csv").exists()


def test_errors_of_all_formats_have_one_base(read, tmp_path):
    with pytest.raises(DataFileError) as of_table:
        read("label\n")
    (tmp_path / "a.txt").write_text("x")
    with pytest.raises(DataFileError) as of_letor:
        read_letor(tmp_path / "a.txt")
    assert (of_table.type, of_letor.type) == (TableError, LetorError)
    assert issubclass(DataFileError, ValueError)


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_rows_that_are_only_to_be_scored_need_no_label(tmp_path, suffix):
    data = RankingData(
        np.array([[1.0, 2.0], [3.0, np.nan]]), np.array([1.0, 2.0]), np.array([5, 5])
    )
    write_table(tmp_path / f"t{suffix}", data)
    read = read_table(tmp_path / f"t{suffix}", label=None, features=["f2", "f1"])
    assert np.array_equal(read.X, data.X[:, ::-1], equal_nan=True)
    assert read.y.tolist() == [0.0, 0.0]
    assert read.qid.tolist() == [5, 5]
    everything = read_table(tmp_path / f"t{suffix}", label=None)
    assert everything.feature_names == ("label", "f1", "f2")


def test_a_header_of_nothing_but_separators_does_not_take_the_memory(read):
    cells = 100_000
    tracemalloc.start()
    try:
        with pytest.raises(TableError, match="two columns are called ''"):
            read("," * cells)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 50 * cells
