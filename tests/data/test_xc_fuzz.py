"""XC files by the thousand: round trips, damage, other readers, and the real data sets."""

import io
import lzma
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from real_data import real
from tierrank.data import (
    MultiLabelData,
    XCError,
    read_xc,
    read_xc_features,
    read_xc_split,
    write_xc,
)

# numbers ----------------------------------------------------------------------------------------


def _nearest_float32(word: str) -> np.float32:
    """By exact fractions: the nearest of three neighbours, and of two the even one."""
    exact = Fraction(word)
    near = np.float32(float(word))
    around = [np.nextafter(near, np.float32(-np.inf)), near, np.nextafter(near, np.float32(np.inf))]
    return min(around, key=lambda f: (abs(Fraction(float(f)) - exact), int(f.view(np.int32)) & 1))


def _near_halfway(x: np.float32, step: int) -> str:
    """The number between a float32 and the next, in full, or just beside it."""
    after = np.nextafter(x, np.float32(np.inf))
    middle = (Fraction(float(x)) + Fraction(float(after))) / 2
    power = middle.denominator.bit_length() - 1
    digits = middle.numerator * 5**power
    return f"{digits * 10**20 + step}e-{power + 20}"


DIGITS = st.text("0123456789", min_size=1, max_size=20)
POSITIVE = st.floats(2.0**-149, 2.0**126, width=32).map(np.float32)
NUMBERS = st.one_of(
    POSITIVE.map(str),
    st.floats(-1e38, 1e38).map(repr),
    st.builds("{}.{}".format, DIGITS, DIGITS),
    st.builds("-{}e{}".format, DIGITS, st.integers(-60, 18)),
    st.builds(_near_halfway, POSITIVE, st.sampled_from([-1, 0, 1])),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(NUMBERS, min_size=20, max_size=40))
def test_values_are_read_to_the_last_bit_of_a_float32(tmp_path_factory, words):
    path = tmp_path_factory.getbasetemp() / "numbers.txt"
    pairs = " ".join(f"{i}:{word}" for i, word in enumerate(words))
    path.write_text(f"1 {len(words)} 1\n0 {pairs}\n")
    expected = np.array([_nearest_float32(word) for word in words])
    np.testing.assert_array_equal(read_xc(path).X.data.view(np.int32), expected.view(np.int32))


# round trips ------------------------------------------------------------------------------------

FINITE = st.floats(width=32, allow_nan=False, allow_infinity=False)
RELEVANCES = st.floats(0, 1, width=32)


@st.composite
def matrices(draw, rows, values):
    columns = draw(st.integers(0, 6))
    dense = draw(arrays(np.float32, (rows, columns), elements=values))
    stored = draw(arrays(np.bool_, (rows, columns)))
    row, column = np.nonzero(stored)
    return sp.csr_matrix((dense[stored], (row, column)), shape=dense.shape)


@st.composite
def data_sets(draw, graded):
    rows = draw(st.integers(0, 6))
    relevances = RELEVANCES if graded else st.just(1.0)
    return MultiLabelData(draw(matrices(rows, FINITE)), draw(matrices(rows, relevances)))


def _assert_same(one, other):
    for mine, yours in ((one.X, other.X), (one.Y, other.Y)):
        assert mine.shape == yours.shape
        assert mine.indptr.tolist() == yours.indptr.tolist()
        assert mine.indices.tolist() == yours.indices.tolist()
        assert mine.data.view(np.int32).tolist() == yours.data.view(np.int32).tolist()


@settings(max_examples=150, deadline=None)
@given(data_sets(graded=False))
def test_one_file_is_read_back_bit_by_bit(tmp_path_factory, data):
    path = tmp_path_factory.getbasetemp() / "round.txt"
    write_xc(path, data)
    _assert_same(read_xc(path), data)


@settings(max_examples=100, deadline=None)
@given(data_sets(graded=True), st.sampled_from(["txt", "npz"]))
def test_a_pair_of_files_is_read_back_bit_by_bit(tmp_path_factory, data, end):
    folder = tmp_path_factory.getbasetemp()
    path, labels = folder / f"X.{end}", folder / f"Y.{end}"
    write_xc(path, data, labels=labels)
    _assert_same(read_xc(path, labels=labels), data)


# damage -----------------------------------------------------------------------------------------

TOGETHER = b"4 30 20\n0,3,17 1:0.5 2:-1e-3 29:16777217.5\n 4:1\r\n7:1 3:2\n19\n"
PLAIN = b"3,0 2:1 0:.5\n\n 1:1e30\n"
PAIRED = b"3 20\n2:1.0 0:0.25\n\n19:1\n"
SPLIT = b"1 4\n3 2\n12 17\n"
BYTES = st.sampled_from(list(b"0123456789:,.-+eE #nainf\t\r\n\0\xff\xef_x"))
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


def _check_matrix(matrix):
    matrix.check_format(full_check=True)
    assert matrix.has_canonical_format
    assert np.isfinite(matrix.data).all()
    arrays = (matrix.data, matrix.indices, matrix.indptr)
    assert sp.csr_matrix(arrays, shape=matrix.shape).has_canonical_format  # looked at anew


def _check_text(path, content):
    path.write_bytes(content)
    try:
        data = read_xc(path)
    except XCError as error:
        refused = error
    else:
        lines = content.removeprefix(b"\xef\xbb\xbf").split(b"\n")
        assert sum(bool(line.strip()) for line in lines) - 1 <= len(data) <= len(lines)
        for matrix in (data.X, data.Y):
            _check_matrix(matrix)
        assert (data.Y.data == 1).all()
        return
    assert f"{path}, line {refused.line}" in str(refused)
    assert 1 <= refused.line <= content.count(b"\n") + 1


@settings(max_examples=400, deadline=None)
@given(st.sampled_from([TOGETHER, PLAIN]), EDITS)
def test_a_damaged_file_is_read_or_refused_with_its_line(tmp_path_factory, content, edits):
    _check_text(tmp_path_factory.getbasetemp() / "damaged.txt", _damaged(content, edits))


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=60) | st.lists(BYTES, max_size=60).map(bytes))
def test_any_bytes_are_read_or_refused_with_their_line(tmp_path_factory, content):
    _check_text(tmp_path_factory.getbasetemp() / "bytes.txt", content)


@settings(max_examples=200, deadline=None)
@given(EDITS)
def test_a_damaged_file_of_labels_is_read_or_refused_with_its_line(tmp_path_factory, edits):
    folder = tmp_path_factory.getbasetemp()
    (folder / "fine.txt").write_bytes(b"3 1\n0:1\n\n\n")
    path, content = folder / "labels.txt", _damaged(PAIRED, edits)
    path.write_bytes(content)
    try:
        data = read_xc(folder / "fine.txt", labels=path)
    except XCError as error:
        refused = error
    else:
        _check_matrix(data.Y)
        assert (data.Y.data > 0).all()
        return
    assert str(path) in str(refused)
    assert refused.line is not None or "has 3" in str(refused)


@settings(max_examples=100, deadline=None)
@given(EDITS)
def test_a_damaged_split_is_read_or_refused_with_its_line(tmp_path_factory, edits):
    path = tmp_path_factory.getbasetemp() / "split.txt"
    path.write_bytes(_damaged(SPLIT, edits))
    try:
        rows = read_xc_split(path, column=1)
    except XCError as error:
        assert error.line is not None  # noqa: PT017
    else:
        assert (rows >= 0).all()
        assert len(np.unique(rows)) == len(rows)


def _npz(compressed):
    file = io.BytesIO()
    matrix = sp.csr_matrix(np.arange(12.0).reshape(3, 4) % 5)
    sp.save_npz(file, matrix, compressed=compressed)
    return file.getvalue()


@settings(max_examples=300, deadline=None)
@given(st.booleans(), EDITS, st.integers(0, 10_000))
def test_a_damaged_matrix_is_read_or_refused(tmp_path_factory, compressed, edits, shift):
    path = tmp_path_factory.getbasetemp() / "damaged.npz"
    whole = _npz(compressed)
    edits = [(kind, place + shift, byte) for kind, place, byte in edits]
    path.write_bytes(_damaged(whole, edits))
    try:
        matrix = read_xc_features(path)
    except XCError as error:
        assert str(error).startswith(str(path))  # noqa: PT017
    else:
        _check_matrix(matrix)


# other readers ----------------------------------------------------------------------------------


def _random(rows, columns, a_row, rng, *, at_least=0):
    counts = rng.integers(at_least, 2 * a_row, rows)
    picked = [np.sort(rng.choice(columns, count, replace=False)) for count in counts]
    indices = np.concatenate([*picked, np.empty(0, int)])
    return sp.csr_matrix(
        (np.ones(len(indices), np.float32), indices, np.append(0, counts.cumsum())),
        shape=(rows, columns),
    )


def _random_data(rng):
    X = _random(300, 200, 12, rng, at_least=1)
    X.data = (rng.standard_normal(X.nnz) * 10.0 ** rng.integers(-9, 9, X.nnz)).astype(np.float32)
    return MultiLabelData(X, _random(300, 50, 3, rng))


def _assert_same_as_scikit_learn(data, path):
    datasets = pytest.importorskip("sklearn.datasets")
    # It passes over a row with neither labels nor features.
    data = data.select(np.diff(data.X.indptr) + np.diff(data.Y.indptr) > 0)
    X, label_sets = datasets.load_svmlight_file(  # the offset skips the header
        str(path), n_features=data.n_features, dtype=np.float32, multilabel=True, zero_based=True,
        offset=1,
    )  # fmt: skip
    assert (X != data.X).nnz == 0
    rows = np.repeat(np.arange(len(label_sets)), [len(labels) for labels in label_sets])
    labels = np.concatenate([*label_sets, []]).astype(int)
    Y = sp.csr_matrix((np.ones(len(labels)), (rows, labels)), shape=data.Y.shape)
    assert (Y != data.Y).nnz == 0


def _assert_same_as_napkinxc(data, path):
    datasets = pytest.importorskip("napkinxc.datasets")
    X, Y = datasets.load_libsvm_file(str(path), labels_format="csr_matrix")
    assert X.shape[0] == Y.shape[0] == len(data)
    X.resize(data.X.shape)
    Y.resize(data.Y.shape)
    np.testing.assert_allclose(X.toarray(), data.X.toarray(), rtol=1e-6, atol=1e-38)
    np.testing.assert_array_equal(Y.toarray(), data.Y.toarray())


@pytest.mark.parametrize("same_as", [_assert_same_as_scikit_learn, _assert_same_as_napkinxc])
def test_others_read_the_same_from_random_files(tmp_path, same_as):
    data = _random_data(np.random.default_rng(5))
    assert data.describe().rows_without_label > 0
    path = tmp_path / "random.txt"
    write_xc(path, data)
    _assert_same(read_xc(path), data)
    same_as(data, path)


REAL = {
    "delicious/train": (12_920, 500, 983, 10),
    "delicious/test": (3_185, 500, 983, 4),
    "corel5k/train": (4_500, 499, 374, 0),
    "corel5k/test": (500, 499, 374, 0),
    "stackex-cooking/all": (10_491, 577, 400, 134),
}


@pytest.mark.data
@pytest.mark.parametrize("name", REAL)
def test_real_data_have_their_published_counts_and_others_read_the_same(tmp_path, name):
    path = real(f"{name}.txt.xz")
    data = read_xc(path)
    found = data.describe()
    assert (found.rows, found.features, found.labels, found.rows_without_label) == REAL[name]
    plain = tmp_path / "plain.txt"
    plain.write_bytes(lzma.decompress(path.read_bytes()))
    lines = plain.read_bytes().splitlines()[1:]
    assert data.X.nnz == sum(line.count(b":") for line in lines)
    assert data.Y.nnz == sum(
        line.partition(b" ")[0].count(b",") + 1 for line in lines if not line.startswith(b" ")
    )
    _assert_same_as_scikit_learn(data, plain)
    _assert_same_as_napkinxc(data, plain)
    write_xc(plain, data)
    _assert_same(read_xc(plain), data)


@pytest.mark.data
def test_delicious_has_19_labels_a_row():
    paths = [real(f"delicious/{part}.txt.xz") for part in ("train", "test")]
    parts = [read_xc(path) for path in paths]
    labels = sum(data.Y.nnz for data in parts)
    assert round(labels / sum(map(len, parts)), 1) == 19.0
    assert round(labels / 983, 2) == 311.61  # the XC repository's points a label
