"""Multi-label data written as XC text and .npz, and .npz files that are refused."""

import io
import tracemalloc
import zipfile

import numpy as np
import pytest
import scipy.sparse as sp

from tierrank.data import MultiLabelData, XCError, read_xc, read_xc_features, write_xc
from tierrank.data import xc as writer

X = np.array([[0.1, 0, 3], [0, 0, 0], [1e-10, -2.5, 1 / 3], [0, 0, 0], [0, 16777216, 0]])
Y = np.array([[1, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 1, 0]])


@pytest.fixture
def data():
    return MultiLabelData(X, Y)


def assert_same(one, other):
    """To the last bit."""
    for mine, yours in ((one.X, other.X), (one.Y, other.Y)):
        assert mine.shape == yours.shape
        np.testing.assert_array_equal(mine.indptr, yours.indptr)
        np.testing.assert_array_equal(mine.indices, yours.indices)
        np.testing.assert_array_equal(mine.data.view(np.int32), yours.data.view(np.int32))


# Writing


def test_the_text_is_as_short_as_it_can_be(tmp_path, data):
    path = tmp_path / "new" / "data.txt"
    write_xc(path, data)
    assert path.read_text() == (
        "5 3 4\n0,2 0:0.1 2:3\n1 \n 0:1e-10 1:-2.5 2:0.33333334\n \n2 1:1.6777216e+07\n"
    )
    assert [file.name for file in path.parent.iterdir()] == ["data.txt"]


def test_a_pair_is_written_with_relevances(tmp_path, data):
    graded = MultiLabelData(data.X, data.Y * 0.5)
    write_xc(tmp_path / "X.txt", graded, labels=tmp_path / "Y.txt")
    assert (tmp_path / "Y.txt").read_text() == "5 4\n0:0.5 2:0.5\n1:0.5\n\n\n2:0.5\n"
    assert (tmp_path / "X.txt").read_text().startswith("5 3\n0:0.1 2:3\n\n0:1e-10 ")
    with pytest.raises(ValueError, match=r"relevances other than 1, such as 0\.5, .*labels="):
        write_xc(tmp_path / "data.txt", graded)
    assert not (tmp_path / "data.txt").exists()


@pytest.mark.parametrize("suffix", ["", ".gz", ".xz", ".bz2"])
def test_text_may_be_compressed(tmp_path, data, suffix):
    path = tmp_path / f"data.txt{suffix}"
    write_xc(path, data)
    first = path.read_bytes()
    assert_same(read_xc(path), data)
    write_xc(path, data)
    assert path.read_bytes() == first


@pytest.mark.parametrize("names", [("X.npz", "Y.npz"), ("X.npz", "Y.txt"), ("X.txt.gz", "Y.npz")])
def test_each_of_a_pair_has_the_format_of_its_name(tmp_path, data, names):
    path, labels = tmp_path / names[0], tmp_path / names[1]
    write_xc(path, data, labels=labels)
    assert_same(read_xc(path, labels=labels), data)
    assert (read_xc_features(path) != data.X).nnz == 0
    for file, matrix in ((path, data.X), (labels, data.Y)):
        if file.suffix == ".npz":
            assert (sp.load_npz(file) != matrix).nnz == 0


def test_empty_data_come_back(tmp_path):
    for shape in ((0, 0), (0, 5), (3, 0), (2000, 1)):
        data = MultiLabelData(sp.csr_matrix(shape), sp.csr_matrix((shape[0], 2)))
        write_xc(tmp_path / "data.txt", data)
        assert_same(read_xc(tmp_path / "data.txt"), data)
        for end in ("txt", "npz"):
            write_xc(tmp_path / f"X.{end}", data, labels=tmp_path / f"Y.{end}")
            assert_same(read_xc(tmp_path / f"X.{end}", labels=tmp_path / f"Y.{end}"), data)


def test_files_that_make_no_sense_are_refused(tmp_path, data):
    with pytest.raises(ValueError, match=r"holds one matrix: pass a second file as labels="):
        write_xc(tmp_path / "data.npz", data)
    with pytest.raises(ValueError, match=r"path and labels are both .*data\.txt"):
        write_xc(tmp_path / "data.txt", data, labels=tmp_path / "." / "data.txt")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("labels", [None, "Y.txt"])
def test_a_failure_while_writing_leaves_the_old_files(tmp_path, data, monkeypatch, labels):
    names = {"data.txt", labels} - {None}
    for name in names:
        (tmp_path / name).write_text("old")
    fails = iter([str, lambda _: 1 / 0])
    monkeypatch.setattr(writer, "_shortest", lambda value: next(fails)(value))
    with pytest.raises(ZeroDivisionError):
        write_xc(tmp_path / "data.txt", data, labels=labels and tmp_path / labels)
    assert {file.name: file.read_text() for file in tmp_path.iterdir()} == dict.fromkeys(
        names, "old"
    )


# Reading .npz


@pytest.fixture
def read_npz(tmp_path):
    """Read features from arrays, some of which are changed or left out."""
    given = sp.csr_matrix(X)
    good = {
        "format": np.array(b"csr"), "shape": np.array(X.shape), "data": given.data,
        "indices": given.indices, "indptr": given.indptr,
    }  # fmt: skip

    def read(changed=None, kind="features", **options):
        arrays = {k: v for k, v in (good | (changed or {})).items() if v is not None}
        path = tmp_path / "X.npz"
        np.savez(path, **arrays)
        if kind == "features":
            return read_xc_features(path, **options)
        (tmp_path / "X.txt").write_text("5 1\n" + "\n" * 5)
        return read_xc(tmp_path / "X.txt", labels=path, **options).Y

    return read


@pytest.mark.parametrize("dtype", ["f8", "f4", "f2", "i8", "u1", "?", ">f4", ">i2"])
def test_numbers_of_any_kind_become_float32(read_npz, dtype):
    X = read_npz({"data": np.arange(1, 7).astype(dtype)})
    assert X.dtype == np.float32
    assert X.data.tolist() == ([1.0] * 6 if dtype == "?" else [1, 2, 3, 4, 5, 6])
    assert X.data.flags.writeable


@pytest.mark.parametrize("dtype", ["i4", "i8", "u2", "u8", ">i4"])
def test_indices_may_have_any_integer_type(read_npz, dtype):
    given = sp.csr_matrix(X)
    found = read_npz({"indices": given.indices.astype(dtype), "indptr": given.indptr.astype(dtype)})
    assert found.indices.dtype == np.int32
    np.testing.assert_array_equal(found.toarray(), X.astype(np.float32))


def test_unsorted_rows_are_sorted_and_columns_may_be_added(read_npz):
    found = read_npz({"indices": np.array([2, 0, 2, 1, 0, 1])}, n_features=7)
    assert found.has_canonical_format
    assert found.shape == (5, 7)
    np.testing.assert_array_equal(found.indices, [0, 2, 0, 1, 2, 1])


def test_room_that_is_not_used_is_passed_over(read_npz):
    spare = {"data": np.append(sp.csr_matrix(X).data, np.nan)}
    spare["indices"] = np.append(sp.csr_matrix(X).indices, 0)
    np.testing.assert_array_equal(read_npz(spare).toarray(), X.astype(np.float32))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"data": None}, r"ValueError: it has no data\): write it anew"),
        ({"data": np.array([None] * 6)}, r"it has an array of object, not of numbers"),
        ({"format": np.array([{}])}, r"it has an array of object"),
        ({"data": np.ones(6) * 1j}, r"it has an array of complex128"),
        ({"data": np.array(["1"] * 6)}, r"its values are <U1, not numbers"),
        ({"data": np.ones((6, 1))}, r"its data has shape \(6, 1\) and should be flat"),
        ({"data": np.ones(5)}, r"it has 5 values for 6 indices"),
        ({"data": np.array([1, 2, 3, np.nan, 5, 6])}, r"has the value nan: give finite"),
        ({"data": np.array([1, 2, 3, 4, -np.inf, 6])}, r"has the value -inf"),
        ({"data": np.full(6, 1e39)}, r"has the value 1e\+39: .* float32"),
        ({"indices": np.array([0, 2, 0, 1, -1, 1])}, r"the index -1, which is negative"),
        ({"indices": np.array([0, 2, 0, 1, 3, 1])}, r"the index 3, but 3 columns"),
        ({"indices": np.array([0, 0, 0, 1, 2, 1])}, r"row 1: feature 0, counted from 0, stands tw"),
        ({"indices": np.array([0, 2, 1, 0, 1, 1])}, r"row 3: feature 1, counted from 0, stands tw"),
        ({"indices": np.ones(6)}, r"indices are float64 and int32, not integers"),
        ({"indptr": np.array([0, 2, 2, 5, 5])}, r"indptr has 5 numbers for 5 rows"),
        ({"indptr": np.array([0, 2, 1, 5, 5, 6])}, r"indptr does not ascend"),
        ({"indptr": np.array([1, 2, 2, 5, 5, 6])}, r"indptr does not ascend"),
        ({"indptr": np.array([0, 2, 2, 5, 5, 7])}, r"indptr does not ascend"),
        ({"indptr": np.array([0, 2, 2, 5, 5, -1])}, r"indptr does not ascend"),
        ({"shape": np.array([4, 3])}, r"indptr has 6 numbers for 4 rows"),
        ({"shape": np.array([5, 2])}, r"the index 2, but 2 columns"),
        ({"shape": np.array([5, 10**15])}, r"has 1,000,000,000,000,000 features: more than 2,147"),
        ({"shape": np.array([5, -3])}, r"its shape is \[5, -3\] and should be \[rows, columns\]"),
        ({"shape": np.array([5.0, 3.0])}, r"its shape is \[5\.0, 3\.0\]"),
        ({"shape": np.array([5])}, r"its shape is \[5\]"),
        ({"format": np.array(b"coo")}, r"format 'coo': save it with save_npz\(path, matrix\.tocsr"),
        ({"format": np.array(7)}, r"its format is not a word"),
    ],
)
def test_arrays_that_are_no_matrix_are_refused(read_npz, changed, message):
    with pytest.raises(XCError, match=rf"X\.npz.*{message}"):
        read_npz(changed)


def test_labels_of_a_matrix_are_not_negative(read_npz):
    assert read_npz({"data": np.array([1, 0, 1, 1, 1, 2])}, "labels").nnz == 5
    with pytest.raises(XCError, match=r"X\.npz, row 3: there is a negative relevance"):
        read_npz(None, "labels")


def test_other_arguments_are_checked_against_the_matrix(read_npz, tmp_path):
    with pytest.raises(XCError, match=r"has 3 features, but n_features is 2"):
        read_npz(n_features=2)
    with pytest.raises(XCError, match=r"holds features alone: give the file of their labels"):
        read_xc(tmp_path / "X.npz")
    (tmp_path / "Y.txt").write_text("1 1\n0:1\n")
    with pytest.raises(XCError, match=r"Y\.txt: has 1 rows, but X\.npz has 5"):
        read_xc(tmp_path / "X.npz", labels=tmp_path / "Y.txt")
    with pytest.raises(FileNotFoundError):
        read_xc(tmp_path / "none.npz", labels=tmp_path / "Y.txt")


def test_an_array_that_lies_about_its_size_costs_no_memory(tmp_path):
    sp.save_npz(tmp_path / "good.npz", sp.csr_matrix(X), compressed=False)
    bad = tmp_path / "bad.npz"
    with zipfile.ZipFile(tmp_path / "good.npz") as good, zipfile.ZipFile(bad, "w") as archive:
        for name in good.namelist():
            content = good.read(name)
            if name == "data.npy":
                header = io.BytesIO()
                described = {"descr": "<f8", "fortran_order": False, "shape": (10**12,)}
                np.lib.format.write_array_header_1_0(header, described)
                content = header.getvalue() + content[-48:]
            archive.writestr(name, content)
    tracemalloc.start()
    try:
        with pytest.raises(XCError, match=r"should be \(1000000000000,\) of float64, but has 48"):
            read_xc_features(bad)
        assert tracemalloc.get_traced_memory()[1] < 10**6
    finally:
        tracemalloc.stop()


def test_what_is_no_archive_is_refused(tmp_path):
    path = tmp_path / "X.npz"
    for content in (b"", b"1 2\n0:1\n", b"PK\x03\x04" + bytes(100)):
        path.write_bytes(content)
        with pytest.raises(XCError, match=r"is no sparse matrix that can be read \(BadZipFile: "):
            read_xc_features(path)
