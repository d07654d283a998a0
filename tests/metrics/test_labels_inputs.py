"""Measures of labels: what users may give, what must not matter, and what is refused."""

import numpy as np
import pytest
import scipy.sparse
import torch

from metrics.label_definitions import random_rows
from tierrank.metrics import labels

TOP, Y = np.array([[0, 2], [1, -1], [2, 1]]), scipy.sparse.csr_array(np.eye(3, 4))
Q = np.array([1.5, 2.0, 1.0, 4.0])


def all_values(top, Y, q, ks=(1, 3, 5)):
    return labels.evaluate(top, Y, inverse_propensity=q, ks=ks)


@pytest.mark.parametrize("seed", range(5))
def test_how_labels_are_numbered_does_not_matter(seed):
    top, Y, q = random_rows(seed)
    new = np.random.default_rng(seed).permutation(Y.shape[1])
    old = np.argsort(new)
    renamed = np.where(top < 0, -1, new[top])
    expected = all_values(top, Y, q)
    assert all_values(renamed, Y[:, old], q[old]) == pytest.approx(expected, rel=1e-13)


def test_the_order_of_rows_does_not_matter():
    top, Y, q = random_rows(0)
    order = np.random.default_rng(0).permutation(len(top))
    expected = all_values(top, Y, q)
    assert all_values(top[order], Y[order], q) == pytest.approx(expected, rel=1e-13)
    for name in ("P@2", "nDCG@2", "PSP@2", "PSnDCG@2"):
        metric = labels.from_name(name)
        values, moved = (
            metric(*rows, q, reduction="none") for rows in ((top, Y), (top[order], Y[order]))
        )
        np.testing.assert_allclose(moved, values[order], rtol=1e-13)


def test_evaluate_has_what_the_measures_have():
    top, Y, q = random_rows(3)
    values = labels.evaluate(top, Y, inverse_propensity=q, ks=[4, 2], out_of="all")
    expected = {}
    for name, options in (("P", {}), ("nDCG", {}), ("PSP", {}), ("PSnDCG", {"out_of": "all"})):
        for k in (4, 2):
            expected[f"{name}@{k}"] = labels.from_name(f"{name}@{k}", **options)(top, Y, q)
    assert values == pytest.approx(expected, rel=1e-15)
    assert list(values) == list(expected)
    assert list(labels.evaluate(top, Y, ks=[1])) == ["P@1", "nDCG@1"]
    assert all(type(value) is float for value in values.values())


def test_predictions_beyond_k_do_not_matter():
    top, Y, q = random_rows(4, places=7)
    cut = top[:, :3]
    assert all_values(top, Y, q, ks=[1, 3]) == all_values(cut, Y, q, ks=[1, 3])
    missing = np.hstack([cut, np.full((len(cut), 4), -1)])
    assert all_values(missing, Y, q, ks=[1, 3]) == all_values(cut, Y, q, ks=[1, 3])


def test_every_kind_of_predictions_gives_the_same():
    top, Y, q = random_rows(5)
    expected = all_values(top, Y, q)
    for kind in (
        top.tolist(),
        top.astype(np.int8),
        top.astype(np.int32),
        np.asfortranarray(top),
        torch.tensor(top),
        torch.tensor(top, dtype=torch.int32),
    ):
        assert all_values(kind, Y, q) == expected
    whole = np.argsort(np.random.default_rng(0).random((40, 30)), axis=1)
    for unsigned in (np.uint8, np.uint64):
        assert all_values(whole.astype(unsigned), Y, q) == all_values(whole, Y, q)
    assert all_values(top, Y, torch.tensor(q, requires_grad=True)) == expected
    assert all_values(top, Y, q.tolist()) == expected


def test_every_kind_of_relevant_labels_gives_the_same_and_is_not_changed():
    top, Y, q = random_rows(6)
    expected = all_values(top, Y, q)
    propensities = labels.inverse_propensity(Y).tolist()
    rng = np.random.default_rng(0)

    for name in ("csr", "csc", "coo", "lil", "dok", "bsr", "dia"):
        other = Y.asformat(name)
        assert all_values(top, other, q) == expected
        assert (other != Y).nnz == 0
        assert other.format == name
    for one in (scipy.sparse.csr_matrix(Y), Y.astype(bool), Y.astype(np.int8), 0.001 * Y):
        assert all_values(top, one, q) == expected
        assert labels.inverse_propensity(one).tolist() == propensities

    coo = Y.tocoo()
    with_zeros = scipy.sparse.coo_array(
        (
            np.append(coo.data, np.zeros(200)),
            np.hstack([coo.coords, rng.integers(30, size=(2, 200))]),
        ),
        shape=Y.shape,
    )
    twice = np.repeat(np.arange(Y.nnz), rng.integers(1, 4, size=Y.nnz))
    rng.shuffle(twice)
    repeated = scipy.sparse.coo_array((coo.data[twice], (coo.row[twice], coo.col[twice])), Y.shape)
    messy = Y.copy()
    for start, end in zip(messy.indptr[:-1], messy.indptr[1:], strict=True):
        rng.shuffle(messy.indices[start:end])
    messy = scipy.sparse.csr_array((messy.data, messy.indices, messy.indptr), shape=Y.shape)
    for one in (with_zeros, repeated, messy):
        before = [array.copy() for array in vars(one).values() if isinstance(array, np.ndarray)]
        assert all_values(top, one, q) == expected
        assert labels.inverse_propensity(one).tolist() == propensities
        after = [array for array in vars(one).values() if isinstance(array, np.ndarray)]
        for old, new in zip(before, after, strict=True):
            np.testing.assert_array_equal(old, new)


def test_zeros_that_a_canonical_matrix_stores_are_not_relevant():
    top, Y, q = random_rows(7)
    stored = Y.copy()
    stored.data[::3] = 0
    clean = stored.copy()
    clean.eliminate_zeros()
    assert stored.has_canonical_format
    assert all_values(top, stored, q) == all_values(top, clean, q)
    assert stored.nnz == Y.nnz


def test_labels_stored_twice_do_not_overflow_to_nothing():
    data = np.full(2, 128, dtype=np.uint8)  # their sum is 256, which is 0 in 8 bits
    for make in (
        scipy.sparse.coo_array((data, ([0, 0], [1, 1])), shape=(1, 2)),
        scipy.sparse.csr_array((data, [1, 1], [0, 2]), shape=(1, 2)),
    ):
        assert labels.precision([[1]], make, k=1) == 1


def test_nothing_given_is_changed():
    top, Y, q = random_rows(8)
    given = [top, Y.data, Y.indices, Y.indptr, q]
    before = [array.copy() for array in given]
    for array in given:
        array.flags.writeable = False
    all_values(top, Y, q)
    for old, new in zip(before, given, strict=True):
        np.testing.assert_array_equal(old, new)


@pytest.mark.parametrize("block", [1, 2, 7, 50])
def test_how_rows_are_cut_into_blocks_does_not_matter(block, monkeypatch):
    top, Y, q = random_rows(9, rows=70)
    expected = all_values(top, Y, q)
    monkeypatch.setattr(labels, "_BLOCK", block)
    assert all_values(top, Y, q) == expected


def test_label_numbers_beyond_32_bits_are_found():
    far = 2**40
    Y = scipy.sparse.csr_array((np.ones(3), [5, far, far + 7], [0, 2, 3]), shape=(2, far + 8))
    top = [[far, 5], [far + 6, far + 7]]
    assert labels.precision(top, Y, k=2, reduction="none").tolist() == [1, 1 / 2]


def test_rows_with_many_labels_are_searched_to_both_ends():
    rng = np.random.default_rng(0)
    for count in (1, 2, 3, 4, 7, 8, 9, 1000):
        relevant = np.sort(rng.choice(3000, size=count, replace=False))
        Y = scipy.sparse.csr_array(
            (np.ones(2 * count), np.tile(relevant, 2), [0, count, 2 * count]), shape=(2, 3000)
        )
        top = np.tile(np.arange(3000), (2, 1))
        found = labels.look_up(top, Y, 3000).found
        assert np.flatnonzero(found[0]).tolist() == relevant.tolist()
        assert np.flatnonzero(found[1]).tolist() == relevant.tolist()


def test_a_matrix_without_anything_relevant_is_zero_where_that_has_a_meaning():
    empty = scipy.sparse.csr_array((3, 4))
    assert labels.evaluate(TOP, empty, ks=[2]) == {"P@2": 0, "nDCG@2": 0}
    for name in ("PSP@2", "PSnDCG@2"):
        with pytest.raises(ValueError, match="no row has a relevant label"):
            labels.from_name(name)(TOP, empty, Q)
    assert labels.precision([[-1], [-1]], scipy.sparse.csr_array((2, 0)), k=1) == 0


@pytest.mark.parametrize(
    ("top", "message"),
    [
        ([0, 1, 2], r"shape \(3,\): give \[rows, k\] label numbers"),
        ([[0, 1], [1]], "top cannot be read as an array"),
        ([[0.5, 0.1]] * 3, "whole, not float64: of scores, take the numbers"),
        ([[True, False]] * 3, "whole, not bool"),
        ([["a", "b"]] * 3, "whole, not <U1"),
        ([[0, 1]] * 2, "top has 2 rows, but Y has 3"),
        ([[0], [1], [2]], "top has 1 columns, but k is 2: predict at least 2"),
        ([[0, 1], [3, 4], [1, 4]], r"row 1: label 4 is out of range: labels are 0 to 3.*\(2 such"),
        ([[0, 1], [0, 1], [0, -2]], "row 2: label -2 is out of range"),
        (np.full((3, 2), 2**64 - 1, dtype=np.uint64), f"row 0: label {2**64 - 1} is out of range"),
        ([[0, 1], [-1, 2], [1, 0]], "row 1: label 2 stands after a −1, which ends a row"),
        ([[0, 1], [1, 0], [3, 3]], r"row 2: label 3 is predicted more than once.*\(1 such rows"),
        ([[0, 1, 2], [2, 1, 2], [2, 2, -1]], "row 1: label 2 is predicted more than once"),
    ],
)
def test_bad_predictions_are_refused_with_their_row(top, message):
    for measure in (labels.precision, labels.ndcg):
        with pytest.raises(ValueError, match=message):
            measure(top, Y, k=2)
    with pytest.raises(ValueError, match=message):
        labels.evaluate(top, Y, inverse_propensity=Q, ks=[2])


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (np.eye(3, 4), "must be a scipy sparse matrix .* not ndarray: wrap a dense one"),
        (scipy.sparse.coo_array([1, 0, 1]), r"must be \[rows, labels\], not of shape \(3,\)"),
        (scipy.sparse.csr_array(np.eye(3, 4) * 1j), "real numbers or booleans, not complex128"),
        (scipy.sparse.csr_array((0, 4)), "Y has no rows"),
        (-scipy.sparse.csr_array(np.eye(3, 4)), r"Y, row 0, label 0: the value is -1\.0"),
        (
            scipy.sparse.coo_array(([1.0, np.nan], ([2, 1], [3, 2])), shape=(3, 4)),
            "Y, row 1, label 2: the value is nan",
        ),
        (
            scipy.sparse.csr_array(([1.0, np.inf], ([0, 2], [0, 3])), shape=(3, 4)),
            "Y, row 2, label 3: the value is inf",
        ),
    ],
)
def test_bad_relevant_labels_are_refused(matrix, message):
    with pytest.raises(ValueError, match=message):
        labels.precision(TOP, matrix, k=2)
    with pytest.raises(ValueError, match=message):
        labels.inverse_propensity(matrix)


@pytest.mark.parametrize(
    ("q", "message"),
    [
        (None, "need inverse_propensity, one number a label: take"),
        (Q[:3], r"for each of the 4 labels of Y, not float64 of shape \(3,\)"),
        (Q[None], r"of shape \(1, 4\)"),
        (["a", "b", "c", "d"], "not <U1"),
        ([2.0, np.nan, 3.0, 1.0], r"\[1\] = nan \(1 such labels"),
        ([2.0, 1.0, np.inf, 1.0], r"\[2\] = inf"),
        (1 / Q, r"\[0\] = 0.666667 \(3 such labels in all\).*Are these the p themselves\?"),
    ],
)
def test_bad_inverse_propensities_are_refused(q, message):
    for measure in (labels.ps_precision, labels.ps_ndcg):
        with pytest.raises(ValueError, match=message):
            measure(TOP, Y, inverse_propensity=q, k=2)


def test_bad_options_are_refused():
    for k in (0, -1, 1.5, None, "3"):
        with pytest.raises(ValueError, match="k is a number of places from 1 on"):
            labels.precision(TOP, Y, k=k)
    for ks in ((), 5, None):
        with pytest.raises(ValueError, match=r"ks are numbers of places, such as \(1, 3, 5\)"):
            labels.evaluate(TOP, Y, ks=ks)
    with pytest.raises(ValueError, match="k is a number of places from 1 on, not 0"):
        labels.evaluate(TOP, Y, ks=[1, 0])
    with pytest.raises(ValueError, match='reduction is "mean" or "none"'):
        labels.precision(TOP, Y, k=2, reduction="sum")
    with pytest.raises(ValueError, match='out_of is "reachable" or "all"'):
        labels.ps_ndcg(TOP, Y, inverse_propensity=Q, k=2, out_of="some")
    for a, b in ((0, 1.5), (0.55, -1), (float("nan"), 1.5), (0.55, float("inf"))):
        with pytest.raises(ValueError, match="is a number above zero"):
            labels.inverse_propensity(Y, a, b)
    with pytest.raises(ValueError, match="Y has 2 rows; propensities need 3 or more"):
        labels.inverse_propensity(Y[:2])


@pytest.mark.parametrize(
    ("written", "name", "k", "needs_propensity"),
    [
        ("p@1", "P@1", 1, False),
        ("Precision@3", "P@3", 3, False),
        (" NDCG@10 ", "nDCG@10", 10, False),
        ("PSP@05", "PSP@5", 5, True),
        ("ps-precision@5", "PSP@5", 5, True),
        ("ps_ndcg@2", "PSnDCG@2", 2, True),
    ],
)
def test_measures_are_found_by_name(written, name, k, needs_propensity):
    metric = labels.from_name(written)
    assert (metric.name, metric.k, metric.needs_propensity) == (name, k, needs_propensity)
    top, Y, q = random_rows(0, places=10)
    assert metric(top, Y, q) == labels.evaluate(top, Y, inverse_propensity=q, ks=[k])[name]
    if needs_propensity:
        with pytest.raises(ValueError, match="need inverse_propensity"):
            metric(top, Y)
    else:
        assert metric(top, Y) == metric(top, Y, q)


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("pspp@5", "no metric of labels 'pspp@5'; did you mean 'PSP@5'"),
        ("zebra@5", "The metrics are P, nDCG, PSP, PSnDCG, each with a number of places"),
        ("psp", "'psp' does not say how many places count: write PSP@5, say"),
        ("ndcg@0", "after @ comes a number of places from 1 on, as in nDCG@5"),
        ("ndcg@five", "after @ comes a number of places"),
        ("ndcg@", "after @ comes a number of places"),
    ],
)
def test_names_that_mean_nothing_are_refused(written, message):
    with pytest.raises(ValueError, match=message):
        labels.from_name(written)


def test_options_of_named_measures_are_checked():
    with pytest.raises(ValueError, match="PSP has no option 'out_of'"):
        labels.from_name("psp@5", out_of="all")
    with pytest.raises(ValueError, match="PSnDCG has no option 'k'"):
        labels.from_name("psndcg@5", k=3)
    with pytest.raises(ValueError, match='out_of is "reachable" or "all"'):
        labels.from_name("psndcg@5", out_of="none")
