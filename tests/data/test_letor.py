"""LETOR files: what is read, what is refused, and what comes back after writing."""

import bz2
import gzip
import lzma
import math

import numpy as np
import pytest
import scipy.sparse

from tierrank.data import LetorError, read_letor, read_letor_fold, write_letor

PACK = {"": bytes, ".gz": gzip.compress, ".xz": lzma.compress, ".bz2": bz2.compress}


@pytest.fixture
def read(tmp_path):
    def read(text, name="data.txt", **options):
        path = tmp_path / name
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return read_letor(path, **options)

    return read


def test_labels_queries_and_features_are_as_written(read):
    data = read("2 qid:7 1:0.5 2:3\n0 qid:7 1:-1e-3 2:.25\n1.5 qid:3 1:4 2:5.\n")
    assert data.X.tolist() == [[0.5, 3.0], [-0.001, 0.25], [4.0, 5.0]]
    assert data.y.tolist() == [2.0, 0.0, 1.5]
    assert data.qid.tolist() == [7, 7, 3]
    assert (data.X.dtype, data.y.dtype, data.qid.dtype) == (np.float64, np.float64, np.int64)
    assert (len(data), data.n_features, data.comments) == (3, 2, None)
    assert repr(data) == "RankingData(3 rows, 2 queries, 2 dense features)"


def test_rows_of_a_query_need_not_be_adjacent(read):
    tiers = read("0 qid:b 1:1\n1 qid:a 1:1\n2 qid:b 1:1\n0 qid:a 1:1\n").tiers()
    assert str(tiers).splitlines()[1:] == ["  'b': 2 > 0", "  'a': 1 > 3"]


@pytest.mark.parametrize(
    "text",
    [
        "1 qid:1 1:2\r\n0 qid:1 1:3\r\n",
        "1\tqid:1\t1:2\n0 qid:1  1:3",
        "\ufeff1 qid:1 1:2 \n0 qid:1 1:3\t \n",
        "\n# a comment\n\n1 qid:1 1:2#x\n   \n  # 3 qid:9 1:1\n  0 qid:1 1:3 # qid:4\n\n",
        "+1 qid:1 01:2e0\n0.0 qid:01 1:+0.3E+1",
    ],
    ids=["windows", "tabs", "mark", "comments", "signs"],
)
def test_blanks_comments_and_line_ends_do_not_matter(read, text):
    data = read(text)
    assert (data.X.tolist(), data.y.tolist(), data.qid.tolist()) == ([[2], [3]], [1, 0], [1, 1])


def test_comments_are_kept_when_asked_for(read):
    data = read(b"1 qid:1 1:2 #docid = \xc3\xa9\xff \r\n0 qid:1\n1 qid:1#\n", keep_comments=True)
    assert data.comments == ("docid = é\udcff", "", "")


def test_null_and_nan_are_missing(read):
    text = "1 qid:1 1:NULL 2:nan\n0 qid:1 1:5 2:NaN\n"
    assert np.isnan(read(text).X).tolist() == [[True, True], [False, True]]
    assert read(text, missing=-1.0).X.tolist() == [[-1, -1], [5, -1]]


def test_infinite_features_are_read_as_written(read):
    assert read("1 qid:1 1:inf 2:-Infinity\n").X.tolist() == [[math.inf, -math.inf]]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["-9223372036854775808", "-2", "9223372036854775807"], [-(2**63), -2, 2**63 - 1]),
        (["3", "9223372036854775808"], ["3", "9223372036854775808"]),
        (["3", "-9223372036854775809"], ["3", "-9223372036854775809"]),
        (["3", "q-4", "é"], ["3", "q-4", "é"]),
    ],
)
def test_qid_are_integers_or_else_strings(read, words, expected):
    assert read("".join(f"1 qid:{word} 1:1\n" for word in words)).qid.tolist() == expected


def test_indices_in_any_order_are_sorted(read):
    data = read("1 qid:1 9:9 1:1 4:4\n0 qid:1\n0 qid:1 4:7 2:5\n", dense=False)
    assert data.X.has_sorted_indices
    assert data.X.indices.tolist() == [0, 3, 8, 1, 3]
    assert data.X.data.tolist() == [1, 4, 9, 5, 7]
    assert data.X.shape == (3, 9)


def test_indices_start_at_1_unless_0_occurs(read):
    assert read("1 qid:1 1:1 2:2\n").X.tolist() == [[1, 2]]
    assert read("1 qid:1 1:1 2:2\n", one_based=False).X.tolist() == [[0, 1, 2]]
    assert read("1 qid:1 1:1 2:2\n0 qid:1 0:5\n", dense=True).X.tolist() == [[0, 1, 2], [5, 0, 0]]


def test_a_given_number_of_features_widens(read):
    assert read("1 qid:1 1:1\n", n_features=3, dense=True).X.tolist() == [[1, 0, 0]]
    assert read("1 qid:1\n", n_features=0).X.shape == (1, 0)


def test_the_smaller_of_dense_and_sparse_is_chosen(read):
    two_thirds = "1 qid:1 1:1 2:2 3:-0\n1 qid:1 3:1\n"
    assert isinstance(read(two_thirds).X, np.ndarray)
    assert np.signbit(read(two_thirds).X).tolist() == [[False, False, True], [False] * 3]
    less = read("1 qid:1 1:1 2:2 3:3\n1 qid:1\n").X
    assert scipy.sparse.issparse(less)
    assert less.toarray().tolist() == [[1, 2, 3], [0, 0, 0]]
    assert isinstance(read(two_thirds, dense=False).X, scipy.sparse.csr_matrix)


def test_the_largest_index_fits(read):
    assert read("1 qid:1 2147483647:1\n").X.shape == (1, 2**31 - 1)
    assert read("1 qid:1 2147483647:1 0:1\n").X.shape == (1, 2**31)


@pytest.mark.parametrize("suffix", PACK)
def test_compressed_files_are_told_by_their_suffix(read, suffix):
    assert read(PACK[suffix](b"1 qid:1 1:2\n"), name=f"data.txt{suffix}").X.tolist() == [[2]]


ROW = "1 qid:1 1:1 2:2\n"


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("qid:1 1:2", "line 2, column 1", r"label is missing.*'qid:1'"),
        ("1:2 2:3", "line 2, column 1", r"label is missing"),
        ("good qid:1", "line 2, column 1", r"label 'good' is not a finite number: write"),
        ("nan qid:1", "line 2, column 1", r"label 'nan' is not a finite"),
        ("-inf qid:1", "line 2, column 1", r"label '-inf' is not a finite"),
        ("NULL qid:1", "line 2, column 1", r"label 'NULL' is not a finite"),
        ("1e999 qid:1", "line 2, column 1", r"'1e999' is too large for a float64"),
        ("1 1:2", "line 2, column 1", r"this row has no qid, but others have"),
        ("1 qid: 1:2", "line 2, column 3", r"'qid:' is no qid"),
        ("1 qid:3:4 1:2", "line 2, column 3", r"'qid:3:4' is no qid"),
        (b"1 qid:\xff 1:2", "line 2, column 7", r"is not UTF-8"),
        ("1 qid:1 1:2 qid:3", "line 2, column 13", r"'qid:3' must follow the label directly"),
        ("1 qid:1 a:2", "line 2, column 9", r"index 'a' is not a whole number"),
        ("1 qid:1 1.5:2", "line 2, column 9", r"index '1.5' is not a whole number"),
        ("1 qid:1 :2", "line 2, column 9", r"index '' is not a whole number"),
        ("1 qid:1 -1:2", "line 2, column 9", r"index '-1' is negative"),
        ("1 qid:1 7", "line 2, column 9", r"'7' is not index:value: .* # before a comment"),
        ("1 qid:1 2147483648:1", "line 2, column 9", r"'2147483648' is over 2,147,483,647"),
        ("1 qid:1 99999999999999999999:1", "line 2, column 9", r"is over 2,147,483,647"),
        ("1 qid:1 3:1 3:1", "line 2, column 13", r"feature '3' stands twice"),
        ("1 qid:1 3:1 1:1 3:1", "line 2, column 1", r"feature 3 stands twice"),
        ("1 qid:1 3:x", "line 2, column 9", r"value 'x' of feature '3' is not a number"),
        ("1 qid:1 3: 4", "line 2, column 9", r"value '' of feature '3' is not a number"),
        ("1 qid:1 3:1_0", "line 2, column 9", r"value '1_0' of feature"),
        ("1 qid:1 3:0x1p3", "line 2, column 9", r"value '0x1p3' of feature"),
        ("1 qid:1 3:1e", "line 2, column 9", r"value '1e' of feature"),
        ("1 qid:1 3:.", "line 2, column 9", r"value '\.' of feature"),
        ("1 qid:1 3:1e400", "line 2, column 11", r"'1e400' is too large for a float64: scale"),
        ("1 qid:1 3:" + "x" * 99, "line 2, column 9", r"value 'x{40}…' of"),
        (b"1 qid:1 3:1\0", "line 2, column 12", r"NUL byte: this is not a text file"),
    ],
)
def test_a_bad_row_is_refused_where_it_stands(read, text, place, message):
    text = text if isinstance(text, bytes) else text.encode()
    with pytest.raises(LetorError, match=rf"data\.txt, {place}: .*{message}") as caught:
        read(ROW.encode() + text + b"\n" + ROW.encode())
    assert caught.value.line == 2
    assert caught.value.path.name == "data.txt"


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("1 qid:1 1:2\n1 qid:1 0:1\n", {"one_based": True}, r"line 2, column 9: .*is 0.*False"),
        ("1 qid:1 1:2\n1 qid:1 4:1\n", {"n_features": 3}, r"line 2, column 9: .*4 is over 3, the"),
        ("1 qid:1 0:2 3:1\n", {"n_features": 3}, r"line 1, .*3 is over 2, the last of 3 "),
        ("", {}, r"line 1: the file has no rows"),
        ("\n# nothing\n", {}, r"line 1: the file has no rows"),
        ("1 1:2\n", {}, r"line 1: no row has a qid, and there is no data\.txt\.query beside"),
    ],
)  # fmt: skip
def test_a_bad_file_is_refused(read, text, options, message):
    with pytest.raises(LetorError, match=rf"data\.txt, {message}"):
        read(text, **options)


@pytest.mark.parametrize(
    "options", [{"one_based": 1}, {"one_based": "no"}, {"n_features": -1}, {"n_features": 2.0}]
)
def test_bad_options_are_refused(read, options):
    with pytest.raises(ValueError, match=f"{next(iter(options))} is"):
        read("1 qid:1 1:1\n", **options)


@pytest.mark.parametrize("suffix", [".gz", ".xz", ".bz2"])
def test_a_damaged_archive_is_refused(read, suffix):
    whole = PACK[suffix](b"1 qid:1 1:2\n" * 100)
    for content in (whole[: len(whole) // 2], b"1 qid:1 1:2\n"):
        with pytest.raises(LetorError, match=rf"data{suffix}: cannot be decompressed as {suffix}"):
            read(content, name=f"data{suffix}")
    with pytest.raises(LetorError, match=f"is compressed: give its name the suffix {suffix}"):
        read(whole)


@pytest.mark.parametrize(
    ("start", "how"), [(b"\x28\xb5\x2f\xfd", "by zstd"), (b"PK\x03\x04", "in a zip archive")]
)
def test_what_is_packed_in_another_way_is_refused_by_its_name(read, start, how):
    with pytest.raises(LetorError, match=rf"is packed {how}: unpack it, or pack it as \.gz"):
        read(start + bytes(range(40)), name="data.txt")


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be"])
def test_text_that_a_shell_of_windows_wrote_is_refused_by_its_encoding(read, encoding):
    text = "\ufeff" * (encoding == "utf-16-be") + ROW
    with pytest.raises(
        LetorError, match=r"data\.txt, line 1: the text is UTF-16: save it as UTF-8"
    ):
        read(text.encode(encoding))


def test_a_folder_is_no_file(tmp_path):
    with pytest.raises(LetorError, match=r"is a folder: .*read_letor_fold"):
        read_letor(tmp_path)


# LightGBM's .query files


@pytest.mark.parametrize("name", ["rank.train", "rank.train.gz"])
def test_a_query_file_stands_in_for_qid(read, tmp_path, name):
    (tmp_path / "rank.train.query").write_text("2\r\n1\n\n")
    text = b"1 1:2\n# one\n0 1:3\n2 1:4\n"
    data = read(gzip.compress(text) if name.endswith("gz") else text, name=name)
    assert data.qid.tolist() == [0, 0, 1]
    assert read("1 qid:8 1:2\n", name="rank.train").qid.tolist() == [8]


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ("2\n2\n", r"data\.txt\.query: its counts sum to 4, but data\.txt has 3 rows"),
        ("2\nx\n", r"data\.txt\.query, line 2: 'x' is not the number of rows"),
        ("0\n3\n", r"data\.txt\.query, line 1: '0' is not the number of rows"),
        ("3\n-1\n", r"data\.txt\.query, line 2: '-1' is not the number of rows"),
    ],
)
def test_a_query_file_that_does_not_fit_is_refused(read, tmp_path, counts, message):
    (tmp_path / "data.txt.query").write_text(counts)
    with pytest.raises(LetorError, match=message):
        read("1 1:2\n0 1:3\n2 1:4\n")


# Folds


def test_the_parts_of_a_fold_agree_on_their_columns(tmp_path):
    (tmp_path / "train.txt").write_text("1 qid:1 1:3\n0 qid:1 2:1\n")
    (tmp_path / "vali.txt.gz").write_bytes(gzip.compress(b"1 qid:2 3:1\n"))
    (tmp_path / "test.txt.xz").write_bytes(lzma.compress(b"1 qid:3 0:1\n0 qid:3 2:1\n"))
    with pytest.warns(UserWarning, match="has 3 features") as warned:
        fold = read_letor_fold(tmp_path)
    said = "has 3 features, and vali.txt.gz 4: the file is sparse, so the others are 0."
    assert [str(each.message) for each in warned] == [f"train.txt {said}", f"test.txt.xz {said}"]
    assert list(fold) == ["train", "vali", "test"]
    assert [data.n_features for data in fold.values()] == [4, 4, 4]
    assert all(scipy.sparse.issparse(data.X) for data in fold.values())
    assert fold["train"].X.toarray().tolist() == [[0, 3, 0, 0], [0, 0, 1, 0]]
    (tmp_path / "vali.txt.gz").unlink()
    assert list(read_letor_fold(tmp_path)) == ["train", "test"]


def test_a_dense_part_of_a_fold_with_fewer_features_is_refused(tmp_path):
    (tmp_path / "train.txt").write_text("1 qid:1 1:1 2:2 3:1\n0 qid:1 1:3 2:1 3:5\n")
    (tmp_path / "vali.txt").write_text("1 qid:2 1:1 2:2\n0 qid:2 1:3\n")
    with pytest.raises(LetorError, match=r"vali\.txt: has 2 features, but train\.txt has 3"):
        read_letor_fold(tmp_path)
    vali = read_letor_fold(tmp_path, n_features=3)["vali"]  # whoever says how many there are
    assert vali.X.tolist() == [[1, 2, 0], [3, 0, 0]]


def test_a_fold_without_its_files_is_refused(tmp_path):
    with pytest.raises(LetorError, match=r"has no train\.txt"):
        read_letor_fold(tmp_path)
    (tmp_path / "train.txt").write_text(ROW)
    (tmp_path / "train.txt.gz").write_bytes(gzip.compress(ROW.encode()))
    with pytest.raises(LetorError, match=r"has both train\.txt and train\.txt\.gz"):
        read_letor_fold(tmp_path)
    with pytest.raises(LetorError, match="is not a folder"):
        read_letor_fold(tmp_path / "train.txt")


# Writing


def test_the_text_is_as_short_as_it_can_be(tmp_path):
    path = tmp_path / "new" / "data.txt"
    X = np.array([[0.1, 3.0, -0.0], [math.nan, 1e300, math.inf]])
    write_letor(path, X, [2, 0.5], [7, 8], comments=["doc = 1", ""])
    assert path.read_text() == (
        "2 qid:7 1:0.1 2:3 3:-0 # doc = 1\n0.5 qid:8 1:NaN 2:1e+300 3:inf\n"
    )
    write_letor(path, scipy.sparse.csr_matrix([[0, 1 / 3], [0, 0]]), [12345, 0], ["a", "b"],
                one_based=False, precision=3)  # fmt: skip
    assert path.read_text() == "12345 qid:a 1:0.333\n0 qid:b\n"
    assert [file.name for file in path.parent.iterdir()] == ["data.txt"]


def test_sparse_entries_in_any_order_and_twice_are_written_once(tmp_path):
    X = scipy.sparse.coo_matrix(([1.0, 2.0, 3.0], ([0, 0, 0], [2, 0, 2])), shape=(1, 3))
    write_letor(tmp_path / "data.txt", X, [1], [1])
    assert (tmp_path / "data.txt").read_text() == "1 qid:1 1:2 3:4\n"


@pytest.mark.parametrize("suffix", PACK)
def test_what_is_written_compressed_is_read_back(tmp_path, suffix):
    path = tmp_path / f"data.txt{suffix}"
    write_letor(path, np.arange(6).reshape(3, 2), [1, 2, 3], [1, 1, 2])
    assert read_letor(path).X.tolist() == [[0, 1], [2, 3], [4, 5]]
    first = path.read_bytes()
    assert first.startswith(PACK[suffix](b"")[:2])
    write_letor(path, np.arange(6).reshape(3, 2), [1, 2, 3], [1, 1, 2])
    assert path.read_bytes() == first


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"y": [1, math.nan]}, "label of row 1 is nan"),
        ({"y": [[1, 2]]}, r"y has shape \(1, 2\)"),
        ({"y": ["a", "b"]}, "y is of type"),
        ({"y": [1, 2**60]}, r"y has integers over 2\^53"),
        ({"y": [], "X": np.zeros((0, 2)), "qid": []}, "there are no rows"),
        ({"X": [1, 2]}, r"X has shape \(2,\)"),
        ({"X": [[1], [2], [3]]}, "X has 3 rows, but there are 2 labels"),
        ({"X": [[1j], [2]]}, "X is of type complex128"),
        ({"qid": [1]}, "2 labels but 1 qid"),
        ({"qid": [1.0, 2.0]}, r"qid of row 0 is 1\.0: write integers or strings"),
        ({"qid": ["a", "b c"]}, "qid of row 1 is 'b c'"),
        ({"qid": ["a", "\ud800"]}, "qid of row 1 is .*UTF-8"),
        ({"qid": ["", "b"]}, "qid of row 0 is ''"),
        ({"qid": [[1, 2]]}, r"qid has shape \(1, 2\)"),
        ({"comments": ["a"]}, "2 labels but 1 comments"),
        ({"comments": ["a", "b\nc"]}, "comment of row 1 is"),
        ({"precision": 0}, "precision is from 1 to 17"),
    ],
)
def test_what_cannot_be_written_is_refused_and_leaves_no_file(tmp_path, changed, message):
    given = {"X": [[1.0], [2.0]], "y": [1, 0], "qid": [1, 1]} | changed
    with pytest.raises(ValueError, match=message):
        write_letor(tmp_path / "data.txt", **given)
    assert list(tmp_path.iterdir()) == []


def test_a_failure_while_writing_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "data.txt"
    path.write_text("old")
    monkeypatch.setattr("tierrank.data.letor._row", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write_letor(path, [[1.0]], [1], [1])
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
