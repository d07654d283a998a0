"""LETOR files by the thousand: round trips, damage, and another reader."""

import lzma
import struct
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from real_data import real
from tierrank.data import LetorError, RankingData, read_letor, read_letor_fold, write_letor

# numbers ----------------------------------------------------------------------------------------


def _halfway(x: float) -> str:
    """The number between a float and the next one, in full, and hard to round."""
    after = struct.unpack("d", struct.pack("q", struct.unpack("q", struct.pack("d", x))[0] + 1))[0]
    middle = (Fraction(x) + Fraction(after)) / 2
    power = max(middle.denominator.bit_length() - 1, 0)
    return f"{middle.numerator * 5**power}e-{power}"


DIGITS = st.text("0123456789", min_size=1, max_size=30)
NUMBERS = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.builds("{}{}.{}".format, st.sampled_from(["", "+", "-"]), DIGITS, DIGITS),
    st.builds("{}e{}".format, DIGITS, st.integers(-360, 270)),
    st.builds(".{}E{:+}".format, DIGITS, st.integers(-330, 300)),
    st.floats(1e-290, 1e290).map(_halfway),
    st.builds("{}.{}".format, st.integers(2**53, 2**64), st.sampled_from(["0", "5", "50001"])),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(NUMBERS, min_size=40, max_size=80))
def test_numbers_are_read_to_the_last_bit_as_python_reads_them(tmp_path_factory, words):
    path = tmp_path_factory.getbasetemp() / "numbers.txt"
    path.write_text("".join(f"{word} qid:1 1:{word}\n" for word in words))
    expected = np.array([float(word) for word in words]).view(np.int64).tolist()
    data = read_letor(path)
    assert data.X[:, 0].copy().view(np.int64).tolist() == expected
    assert data.y.view(np.int64).tolist() == expected


# round trips ------------------------------------------------------------------------------------

FLOATS = st.floats() | st.sampled_from([0.0, -0.0, 1.0, 0.1])
QIDS = st.integers(-(2**63), 2**63 - 1) | st.text(
    st.characters(codec="utf-8", exclude_characters=":#", min_codepoint=33), min_size=1
)
COMMENTS = st.text(st.characters(codec="utf-8", exclude_characters="\n\r\0")).map(
    lambda s: s.strip(" \t\x0b\x0c")
)


@st.composite
def data_sets(draw):
    rows, columns = draw(st.integers(1, 6)), draw(st.integers(0, 5))
    X = draw(arrays(np.float64, (rows, columns), elements=FLOATS))
    finite = st.floats(allow_nan=False, allow_infinity=False)
    y = draw(arrays(np.float64, rows, elements=finite))
    one_kind = draw(st.sampled_from([st.integers(-(2**63), 2**63 - 1), QIDS]))
    qid = draw(st.lists(one_kind, min_size=rows, max_size=rows))
    comments = draw(st.none() | st.lists(COMMENTS, min_size=rows, max_size=rows))
    return X, y, qid, comments


def _bits(values):
    """Bits, with one kind of NaN."""
    return np.where(np.isnan(values), np.nan, values).view(np.int64).tolist()


@settings(max_examples=150, deadline=None)
@given(data_sets(), st.booleans(), st.booleans())
def test_what_is_written_is_read_back_bit_by_bit(tmp_path_factory, data, sparse, one_based):
    X, y, qid, comments = data
    path = tmp_path_factory.getbasetemp() / "round.txt"
    given_X = scipy.sparse.csr_matrix(X) if sparse else X
    qids = np.array(qid, dtype=object)
    write_letor(path, given_X, y, qids, one_based=one_based, comments=comments)
    back = read_letor(
        path, n_features=X.shape[1], one_based=one_based, dense=not sparse,
        keep_comments=comments is not None,
    )  # fmt: skip
    if sparse:
        assert back.X.indices.tolist() == given_X.indices.tolist()
        assert back.X.indptr.tolist() == given_X.indptr.tolist()
        assert _bits(back.X.data) == _bits(given_X.data)
    else:
        assert _bits(back.X) == _bits(X)
    assert _bits(back.y) == _bits(y)
    kind = int if back.qid.dtype == np.int64 else str
    assert back.qid.tolist() == [kind(q) for q in qid]
    assert kind is int or not all(isinstance(q, int) for q in qid)
    assert back.comments == (None if comments is None else tuple(comments))


# damage -----------------------------------------------------------------------------------------

VALID = (
    b"2 qid:10 1:0.007477 2:-1e-5 3:NULL 5:12345678901234567890.5 # docid = GX-1\n"
    b"# only a comment\n\n"
    b"0 qid:10 1:1 4:0.25\r\n"
    b"1 qid:x-7 2:.5 3:inf 1:3 \n"
)
BYTES = st.sampled_from(list(b"0123456789:#.-+eE qidNULnaf\t\r\n\0\xff\xef_x"))
EDITS = st.lists(
    st.tuples(
        st.sampled_from(["delete", "insert", "replace", "repeat", "cut"]),
        st.integers(0, 10_000),
        BYTES | st.integers(0, 255),
    ),
    min_size=1,
    max_size=6,
)


def _damaged(edits):
    text = bytearray(VALID)
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


def _check_outcome(path, content, **options):
    path.write_bytes(content)
    try:
        data = read_letor(path, **options)
    except LetorError as error:
        refused = error
    else:
        _check_data(data, content)
        return
    assert refused.line is not None
    assert f"{path}, line {refused.line}" in str(refused)
    assert 1 <= refused.line <= content.count(b"\n") + 1


def _check_data(data, content):
    rows = len(data.y)
    assert isinstance(data, RankingData)
    assert data.X.shape == (rows, data.n_features)
    assert data.qid.shape == (rows,)
    assert np.isfinite(data.y).all()
    assert len(data.comments) == rows
    lines = [
        line.split(b"#")[0].strip() for line in content.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    ]
    assert rows == sum(bool(line) for line in lines)
    if scipy.sparse.issparse(data.X):
        data.X.check_format(full_check=True)


@settings(max_examples=400, deadline=None)
@given(EDITS)
def test_a_damaged_file_is_read_or_refused_with_its_line(tmp_path_factory, edits):
    path = tmp_path_factory.getbasetemp() / "damaged.txt"
    _check_outcome(path, _damaged(edits), keep_comments=True)


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=60) | st.lists(BYTES, max_size=60).map(bytes))
def test_any_bytes_are_read_or_refused_with_their_line(tmp_path_factory, content):
    path = tmp_path_factory.getbasetemp() / "bytes.txt"
    _check_outcome(path, content, keep_comments=True)


# another reader ---------------------------------------------------------------------------------


def _assert_same_as_scikit_learn(path, data, text_path=None, **options):
    datasets = pytest.importorskip("sklearn.datasets")
    X, y, qid = datasets.load_svmlight_file(
        str(text_path or path), n_features=data.n_features, query_id=True, **options
    )
    ours = data.X.toarray() if scipy.sparse.issparse(data.X) else data.X
    np.testing.assert_array_equal(ours, X.toarray())
    np.testing.assert_array_equal(data.y, y)
    if len(qid):
        np.testing.assert_array_equal(data.qid, qid)


@pytest.mark.parametrize("density", [0.02, 0.3, 1.0])
@pytest.mark.parametrize("one_based", [True, False])
def test_scikit_learn_reads_the_same_from_random_files(tmp_path, density, one_based):
    rng = np.random.default_rng(5)
    X = scipy.sparse.random(300, 40, density, format="csr", random_state=rng)
    X.data = X.data * 10.0 ** rng.integers(-300, 300, X.nnz)
    X = X.tolil()
    X[7, 0] = X[7, 39] = 1.0
    X = X.tocsr()
    path = tmp_path / "random.txt"
    write_letor(path, X, rng.integers(0, 5, 300), rng.integers(0, 20, 300), one_based=one_based)
    data = read_letor(path)
    np.testing.assert_array_equal(data.X.toarray() if density < 1 else data.X, X.toarray())
    _assert_same_as_scikit_learn(path, data)


def _counts(files):
    labels = np.concatenate([data.y for data in files])
    queries = sum(len(data.tiers()) for data in files)
    return queries, len(labels), np.unique(labels, return_counts=True)[1].tolist()


@pytest.mark.data
def test_mq2008_has_its_published_counts(unpacked):
    paths = [real(f"mq2008/S{i}.txt.xz") for i in range(1, 6)]
    files = [read_letor(path) for path in paths]
    assert _counts(files) == (784, 15_211, [12_279, 2_001, 931])
    assert {data.X.shape[1] for data in files} == {46}
    assert all(isinstance(data.X, np.ndarray) for data in files)
    _assert_same_as_scikit_learn(paths[0], files[0], unpacked(paths[0]))


@pytest.mark.data
def test_mq2007_agg_has_its_published_counts(unpacked):
    paths = [real(f"mq2007-agg/A{i}.txt.xz") for i in range(1, 6)]
    files = [read_letor(path) for path in paths]
    assert _counts(files) == (1_692, 69_623, [51_632, 14_128, 3_863])
    assert {data.X.shape[1] for data in files} == {21}
    text = unpacked(paths[0]).read_bytes()
    assert np.isnan(files[0].X).sum() == text.count(b":NULL")
    plain = unpacked(paths[0])
    plain.write_bytes(text.replace(b":NULL", b":nan"))
    _assert_same_as_scikit_learn(paths[0], files[0], plain)


@pytest.mark.data
def test_the_mslr_sample_has_its_counts(unpacked):
    fold = read_letor_fold(real("mslr-web10k-sample"))
    shapes = {part: (len(data.tiers()), *data.X.shape) for part, data in fold.items()}
    assert shapes == {"train": (54, 5_555, 136), "vali": (18, 1_734, 136), "test": (18, 1_900, 136)}
    assert {label for data in fold.values() for label in data.y} == {0, 1, 2, 3, 4}
    path = real("mslr-web10k-sample/test.txt.xz")
    _assert_same_as_scikit_learn(path, fold["test"], unpacked(path))


@pytest.mark.data
def test_lightgbms_example_has_its_counts(unpacked):
    for part, queries, rows in (("train", 201, 3_005), ("test", 50, 768)):
        path = real(f"lightgbm-rank/rank.{part}.xz")
        data = read_letor(path)
        assert (len(data.tiers()), len(data)) == (queries, rows)
        assert set(data.y) <= {0, 1, 2, 3, 4}
        sizes = path.with_suffix(".query").read_text().split()
        assert np.bincount(data.qid).tolist() == [int(size) for size in sizes]
        _assert_same_as_scikit_learn(path, data, unpacked(path))


@pytest.fixture
def unpacked(tmp_path):
    """scikit-learn does not know .xz."""

    def unpack(path):
        plain = tmp_path / path.stem
        plain.write_bytes(lzma.decompress(path.read_bytes()))
        return plain

    return unpack
