"""The XC repository's text files: what is read, and what is refused, where and why."""

import bz2
import gzip
import lzma
import math
import tracemalloc

import numpy as np
import pytest

from tierrank.data import XCError, read_xc, read_xc_features, read_xc_split

PACK = {"": bytes, ".gz": gzip.compress, ".xz": lzma.compress, ".bz2": bz2.compress}


@pytest.fixture
def write(tmp_path):
    def write(text, name="data.txt"):
        path = tmp_path / name
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    return write


@pytest.fixture
def read(write):
    def read(text, name="data.txt", **options):
        return read_xc(write(text, name), **options)

    return read


@pytest.fixture
def read_pair(write):
    def read_pair(features, labels, **options):
        return read_xc(write(features, "X.txt"), labels=write(labels, "Y.txt"), **options)

    return read_pair


def _lists(data):
    return data.X.toarray().tolist(), data.Y.toarray().tolist()


# Features and labels together


def test_features_and_labels_are_as_written(read):
    data = read("2 4 5\n0,3 1:0.5 2:-1e-3\n4 0:.25 3:2.\n")
    assert data.X.dtype == np.float32
    np.testing.assert_array_equal(
        data.X.toarray(), np.array([[0, 0.5, -1e-3, 0], [0.25, 0, 0, 2]], np.float32)
    )
    assert data.Y.toarray().tolist() == [[1, 0, 0, 1, 0], [0, 0, 0, 0, 1]]
    assert data.X.has_canonical_format
    assert data.Y.has_canonical_format


def test_rows_without_labels_or_features_are_kept(read):
    data = read("6 2 2\n 0:1\n0:2 1:3\n1\n\n0 \n\n")
    assert data.X.toarray().tolist() == [[1, 0], [2, 3], [0, 0], [0, 0], [0, 0], [0, 0]]
    assert data.Y.toarray().tolist() == [[0, 0], [0, 0], [0, 1], [0, 0], [1, 0], [0, 0]]
    assert data.describe().rows_without_label == 4


@pytest.mark.parametrize(
    "text",
    [
        "2 3 4\r\n0,2 1:2\r\n 2:3\r\n",
        "2\t3  4 \n0,2\t1:2\t \n\t2:3",
        "\ufeff2 3 4\n0,2 1:2\n  2:3\n\n \n\t\n",
        "02 3 4\n00,02 01:2e0\n 2:+0.3E+1",
    ],
    ids=["windows", "tabs", "mark", "digits"],
)
def test_blanks_and_line_ends_do_not_matter(read, text):
    assert _lists(read(text)) == ([[0, 2, 0], [0, 0, 3]], [[1, 0, 1, 0], [0, 0, 0, 0]])


def test_labels_and_features_in_any_order_are_sorted(read):
    data = read("2 9 9\n7,0,3 8:9 0:1 3:4\n1\n")
    assert data.X.indices.tolist() == [0, 3, 8]
    assert data.X.data.tolist() == [1, 4, 9]
    assert data.Y.indices.tolist() == [0, 3, 7, 1]


def test_without_a_header_the_largest_index_counts(read):
    data = read("1,4 2:1\n 0:1\n\n0\n\n\n")
    assert _lists(data) == (
        [[0, 0, 1], [1, 0, 0], [0, 0, 0], [0, 0, 0]],
        [[0, 1, 0, 0, 1], [0, 0, 0, 0, 0], [0, 0, 0, 0, 0], [1, 0, 0, 0, 0]],
    )
    wider = read("1,4 2:1\n", n_features=10, n_labels=20)
    assert (wider.n_features, wider.n_labels) == (10, 20)
    assert read(" 0:1\n").Y.shape == (1, 0)


def test_arguments_may_say_more_columns_than_the_header(read):
    data = read("1 3 5\n1,4 2:1\n", n_features=4, n_labels=6)
    assert (data.n_features, data.n_labels) == (4, 6)


def test_indices_may_start_at_1(read):
    assert read("1 3 2\n1 1:5 3:7\n", one_based=True).X.toarray().tolist() == [[5, 0, 7]]


def test_a_header_may_be_insisted_on_or_denied(read):
    assert len(read("1 2 3\n0 1:1\n", header=True)) == 1
    with pytest.raises(XCError, match=r"line 1, column 1: the first line is '0 1:1', but header=T"):
        read("0 1:1\n", header=True)
    with pytest.raises(XCError, match=r"line 1, column 3: '2' is not index:value"):
        read("1 2 3\n0 1:1\n", header=False)


def test_a_header_of_no_rows_is_a_data_set_without_rows(read):
    assert read("0 2 3\n").Y.shape == (0, 3)


def test_the_largest_sizes_fit(read):
    most = 2**31 - 1
    data = read(f"1 {most} {most}\n{most - 1} {most - 1}:1\n")
    assert data.X.shape == data.Y.shape == (1, most)


@pytest.mark.parametrize("suffix", PACK)
def test_compressed_files_are_told_by_their_suffix(read, suffix):
    data = read(PACK[suffix](b"1 1 1\n0 0:2\n"), name=f"data.txt{suffix}")
    assert _lists(data) == ([[2]], [[1]])


GOOD = "0,2 1:1 2:2"


@pytest.mark.parametrize(
    ("row", "column", "message"),
    [
        ("5 0:1", 1, r"label '5' is over 4, the last of 5 that start at 0: .*n_labels"),
        ("0,77,1 0:1", 3, r"label '77' is over 4"),
        ("99999999999999999999 0:1", 1, r"label '99999999999999999999' is over 4"),
        ("-1,2 0:1", 1, r"label '-1' is negative: labels start at 0"),
        ("1,x 0:1", 3, r"label 'x' is not a whole number"),
        ("1.5 0:1", 1, r"label '1\.5' is not a whole number"),
        ("1e0 0:1", 1, r"label '1e0' is not a whole number"),
        ("+1 0:1", 1, r"label '\+1' is not a whole number"),
        ("1,2:1 0:1", 3, r"'2:1' is no label: set labels and features apart"),
        ("1, 2 0:1", 3, r"a label is missing after the comma: .* without blanks"),
        ("1,", 3, r"a label is missing after the comma"),
        (",1 0:1", 1, r"a label is missing before the comma"),
        ("1,,2 0:1", 3, r"a label is missing before the comma"),
        ("1,1 0:1", 3, r"label '1' stands twice: leave one out"),
        ("2,1,3,2 0:1", 7, r"label '2' stands twice: leave one out"),
        ("1 4:1", 3, r"feature '4' is over 3, the last of 4 that start at 0: .*n_features"),
        ("1 99999999999999999999:1", 3, r"feature '9{20}' is over 3"),
        ("4:1", 1, r"feature '4' is over 3"),
        ("1 -1:1", 3, r"feature '-1' is negative"),
        ("-1:1", 1, r"feature '-1' is negative"),
        ("a:1", 1, r"feature 'a' is not a whole number"),
        ("1 a:1", 3, r"feature 'a' is not a whole number"),
        ("1 1.0:1", 3, r"feature '1\.0' is not a whole number"),
        ("1 :1", 3, r"feature '' is not a whole number"),
        (":1", 1, r"feature '' is not a whole number"),
        ("1 2", 3, r"'2' is not index:value: write a feature as 3:0\.5"),
        (" 1 2:1", 2, r"'1' is not index:value"),
        ("1 2:1 # three", 7, r"'#' is not index:value"),
        ("1 2:1#x", 6, r"'#x' is not index:value"),
        ("1 1:1 1:1", 7, r"feature '1' stands twice: leave one out"),
        ("1 3:1 0:1 3:2", 11, r"feature '3' stands twice: leave one out"),
        ("1 2:", 3, r"value '' of feature '2' is not a finite number"),
        ("1 2:x", 3, r"value 'x' of feature '2'"),
        ("1 2:nan", 3, r"value 'nan' of feature '2'"),
        ("1 2:NULL", 3, r"value 'NULL' of feature '2'"),
        ("1 2:-inf", 3, r"value '-inf' of feature '2'"),
        ("1 2:1_0", 3, r"value '1_0' of feature '2'"),
        ("1 2:1e", 3, r"value '1e' of feature '2'"),
        ("1 2:1,2", 3, r"value '1,2' of feature '2'"),
        ("1 2:1e39", 5, r"'1e39' is too large for a float32: scale it down"),
        ("1 2:-1e999", 5, r"'-1e999' is too large for a float32"),
        ("1 2:" + "x" * 99, 3, r"value 'x{40}…' of"),
        (b"1 2:1\0", 6, r"NUL byte: this is not a text file"),
        (b"1 \xff:1", 3, r"feature '\\\\xff' is not a whole number"),
    ],
)
def test_a_bad_row_is_refused_where_it_stands(read, row, column, message):
    row = row if isinstance(row, bytes) else row.encode()
    text = b"3 4 5\n" + GOOD.encode() + b"\n" + row + b"\n" + GOOD.encode() + b"\n"
    with pytest.raises(
        XCError, match=rf"data\.txt, line 3, column {column}: .*{message}"
    ) as caught:
        read(text)
    assert caught.value.line == 3


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("", {}, r", line 1: the file is empty"),
        ("\n \n", {}, r", line 1: the file is empty"),
        ("\ufeff", {}, r", line 1: the file is empty"),
        ("3 2 2\n0 0:1\n", {}, r", line 1: the header says 3 rows, but there are 1: mend"),
        ("2 2 2\n", {}, r", line 1: the header says 2 rows, but there are 0"),
        ("1 2 2\n0 0:1\n\n0 1:1\n", {}, r", line 1: the header says 1 rows, but there are 3"),
        (f"{10**15} 2 2\n0 0:1\n", {}, r"header says 1,000,000,000,000,000 rows, but there are 1"),
        (f"1 {10**15} 2\n0 0:1\n", {}, r"header says 1,000,000,000,000,000 features: more than 2,"),
        (f"1 2 {2**31}\n0 0:1\n", {}, r"header says 2,147,483,648 labels: more than 2,147,483,647"),
        ("N D L\n0 0:1\n", {}, r", line 1, column 1: label 'N' is not a whole number.* If this is "
                               r"the header, it should be three whole numbers, of rows, features "
                               r"and labels"),
        ("2 -4 5\n0 0:1\n", {}, r", line 1, column 3: '-4' is not index:value.*is the header"),
        ("2 4.0 5\n0 0:1\n", {}, r", line 1, column 3: '4\.0' is not index:value.*is the header"),
        ("2 4 5 6\n0 0:1\n", {}, r", line 1, column 3: '4' is not index:value.*is the header"),
        ("1 4\n0:1\n", {}, r", line 1, column 1: the header has two numbers.*as labels="),
        ("1 3 2\n1 0:5\n", {"one_based": True}, r", line 2, column 3: feature '0' is 0, but one_b"),
        ("1 3 2\n1 4:5\n", {"one_based": True}, r"'4' is over 3, the last of 3 that start at 1"),
        ("1 3 2\n", {"n_features": 2}, r", line 1: the header says 3 features, but n_features is"),
        ("1 3 2\n", {"n_labels": 1}, r", line 1: the header says 2 labels, but n_labels is 1"),
        ("5 1:1\n", {"n_labels": 5}, r", line 1, column 1: label '5' is over 4"),
        ("5 2147483647:1\n", {}, r", line 1, column 3: feature '2147483647' is over 2,147,483,646"),
        ("5 1:x\n", {}, r"'x' of feature '1' is not a finite number: write one\.$"),
    ],
)  # fmt: skip
def test_a_bad_file_is_refused(read, text, options, message):
    with pytest.raises(XCError, match=rf"data\.txt.*{message}"):
        read(text, **options)


def test_a_header_that_lies_costs_no_memory(write):
    path = write(f"{10**15} {2**31 - 1} {2**31 - 1}\n0 0:1\n")
    small = write("1 1 1\n0 0:1\n", "small.txt")
    read_xc(small)  # compiles
    tracemalloc.start()
    try:
        with pytest.raises(XCError, match="but there are 1"):
            read_xc(path)
        assert tracemalloc.get_traced_memory()[1] < 10**6
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("suffix", [".gz", ".xz", ".bz2"])
def test_a_damaged_archive_is_refused(read, suffix):
    whole = PACK[suffix](b"1 1 1\n0 0:2\n" * 100)
    for content in (whole[: len(whole) // 2], b"1 1 1\n0 0:2\n"):
        with pytest.raises(XCError, match=rf"data{suffix}: cannot be decompressed as {suffix}"):
            read(content, name=f"data{suffix}")
    with pytest.raises(XCError, match=f"is compressed: give its name the suffix {suffix}"):
        read(whole)


@pytest.mark.parametrize(
    "options",
    [
        {"n_features": -1}, {"n_features": 2.0}, {"n_labels": True}, {"n_labels": 2**31},
        {"one_based": "auto"}, {"header": 1}, {"header": "no"},
    ],
)  # fmt: skip
def test_bad_options_are_refused(read, options):
    with pytest.raises(ValueError, match=f"{next(iter(options))} is"):
        read("1 1 1\n0 0:1\n", **options)


def test_a_folder_is_no_file(tmp_path):
    for read in (read_xc, read_xc_features, read_xc_split):
        with pytest.raises(XCError, match="is a folder: give one of its files"):
            read(tmp_path)


# Features and labels apart


def test_a_pair_of_files_gives_features_and_relevances(read_pair):
    data = read_pair("3 2\n0:0.5\n\n1:2 0:1\n", "3 4\n2:1.0 0:0.25\n1:1.00\n\n")
    assert _lists(data) == (
        [[0.5, 0], [0, 0], [1, 2]],
        [[0.25, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 0]],
    )
    assert data.Y.has_canonical_format


def test_a_label_of_value_0_is_one_that_the_row_does_not_have(read_pair):
    data = read_pair("1 1\n0:0\n", "1 3\n0:0 2:1\n")
    assert data.Y.indices.tolist() == [2]
    assert data.X.nnz == 1


def test_a_pair_without_headers_has_a_row_a_line(read_pair):
    data = read_pair("0:1\n1:1\n", "\n3:1\n")
    assert _lists(data) == ([[1, 0], [0, 1]], [[0, 0, 0, 0], [0, 0, 0, 1]])
    wide = read_pair("2:1\n", "3:1\n", n_features=5, n_labels=6, one_based=True)
    assert (wide.X.shape, wide.X.indices.tolist(), wide.Y.shape) == ((1, 5), [1], (1, 6))


@pytest.mark.parametrize(
    ("features", "labels", "message"),
    [
        ("2 2\n0:1\n1:1\n", "1 2\n0:1\n", r"Y\.txt: has 1 rows, but X\.txt has 2: the two files"),
        ("1 2\n2:1\n", "1 2\n0:1\n", r"X\.txt, line 2, column 1: feature '2' is over 1"),
        ("1 2\n0:1\n", "1 2\n2:1\n", r"Y\.txt, line 2, column 1: label '2' is over 1, .*n_labels"),
        ("1 2\n0:1\n", "1 2\n1:1 1:1\n", r"Y\.txt, line 2, column 5: label '1' stands twice"),
        ("1 2\n0:1\n", "1 3\n2:1 0:1 2:1\n", r"Y\.txt, line 2, column 9: label '2' stands twice"),
        ("1 2\n0:1\n", "1 2\n1:1 0:-1\n", r"Y\.txt, line 2, column 5: label 0 has the value -1"),
        ("1 2\n0:1\n", "1 2\n1\n", r"Y\.txt, line 2, column 1: '1' is not index:value: write a la"),
        ("1 2\n0:1\n", "1 2\n1:nan\n", r"Y\.txt, line 2, column 1: the value 'nan' of label '1'"),
        ("1 2\n0:1\n", "1 2\n1,2 1:1\n", r"Y\.txt, line 2, column 1: '1,2' is not index:value"),
        ("1 2 3\n0:1\n", "1 2\n0:1\n", r"X\.txt, line 1, .* three numbers, and should be two .*"),
        ("1 2\n0:1\n", "2 2\n0:1\n", r"Y\.txt, line 1: the header says 2 rows, but there are 1"),
        ("1 2\n0:1\n", "", r"Y\.txt, line 1: the file is empty"),
        ("N D\n0:1\n", "1 2\n0:1\n", r"X\.txt, line 1, column 1: 'N' is not.* should be two whole"),
    ],
)  # fmt: skip
def test_a_bad_pair_is_refused(read_pair, features, labels, message):
    with pytest.raises(XCError, match=message):
        read_pair(features, labels)


def test_features_can_be_read_alone(write):
    X = read_xc_features(write("2 3\n0:1\n2:5\n"), n_features=4)
    assert X.toarray().tolist() == [[1, 0, 0, 0], [0, 0, 5, 0]]
    with pytest.raises(XCError, match=r"three numbers.* use read_xc without labels="):
        read_xc_features(write("2 3 4\n0 0:1\n1 2:5\n"))


# Splits


def test_a_split_gives_rows_counted_from_0(write, read):
    split = write("\ufeff3 1\r\n1 2\n", "trSplit.txt")
    assert read_xc_split(split).tolist() == [2, 0]
    assert read_xc_split(split, column=1).tolist() == [0, 1]
    assert read_xc_split(split).dtype == np.int64
    data = read("3 1 3\n0 0:1\n1 0:2\n2 0:3\n")
    assert data.select(read_xc_split(split)).X.toarray().tolist() == [[3], [1]]


@pytest.mark.parametrize("suffix", PACK)
def test_a_split_may_be_compressed(write, suffix):
    assert read_xc_split(write(PACK[suffix](b"2\n1\n"), f"s.txt{suffix}")).tolist() == [1, 0]


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("1 2\n0 1\n", 0, r"line 2: '0' is not the number of a row: .*start at 1"),
        ("1 2\n3 -1\n", 0, r"line 2: '-1' is not the number"),
        ("1 2\n3 1.0\n", 0, r"line 2: '1\.0' is not the number"),
        ("1 2\nx 1\n", 0, r"line 2: 'x' is not the number"),
        ("1" * 30, 0, r"line 1: '1{30}' is not the number"),
        ("1 2\n3\n", 0, r"line 2: has 1 numbers, but others have 2"),
        ("1 2\n3 1\n1 4\n", 0, r"line 3: row 1 stands on line 1 too"),
        ("1 2\n", 2, r"line 1: has 2 columns, so column is from 0 to 1, not 2"),
        ("1 2\n", -1, r"line 1: has 2 columns, so column is from 0 to 1, not -1"),
        ("", 0, r"line 1: the file is empty"),
        ("1 \0\n", 0, r"line 1: '\\x00' is not the number"),
    ],
)
def test_a_bad_split_is_refused(write, text, column, message):
    with pytest.raises(XCError, match=rf"s\.txt, {message}"):
        read_xc_split(write(text, "s.txt"), column)


def test_the_column_of_a_split_is_a_whole_number(write):
    for column in (True, 1.0, "0"):
        with pytest.raises(ValueError, match="column is a whole number"):
            read_xc_split(write("1 2\n"), column)


# Numbers


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("16777217", 16777216),  # halfway, to even
        ("16777219", 16777220),
        ("16777217.0000000000000001", 16777218),  # a float64 would lose what decides
        ("16777218.9999999999999999", 16777218),
        ("-16777217.0000000000000001", -16777218),
        ("1.4012984643248170e-45", 2.0**-149),
        ("7.006492321624085e-46", 0),
        ("7.006492321624085354618e-46", 0),
        ("7.006492321624085354619e-46", 2.0**-149),
        ("1e-400", 0),
        ("3.4028235e38", 2.0**128 - 2.0**104),
        ("0." + "0" * 5000 + "1e5001", 1),
        ("-0", -0.0),
    ],
)
def test_a_value_is_the_float32_next_to_what_is_written(read, word, expected):
    value = read(f"1 1 1\n0 0:{word}\n").X.data
    assert value.tolist() == [expected]
    assert math.copysign(1, value[0]) == math.copysign(1, expected)
