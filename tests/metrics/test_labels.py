"""Measures of labels: by hand, by their definitions, and as other people's software has them."""

import lzma
import math

import numpy as np
import pytest
import scipy.sparse

from metrics import label_definitions
from metrics.label_definitions import label_lists, random_rows, rankings
from real_data import real
from tierrank import metrics
from tierrank.metrics import labels

SHAPES = [
    {},
    {"rows": 1, "n_labels": 1, "places": 1, "relevant": 1.0},
    {"rows": 25, "n_labels": 4, "places": 6},  # fewer labels than places
    {"rows": 60, "n_labels": 200, "places": 12, "relevant": 0.3},
    {"rows": 300, "n_labels": 2000, "places": 5, "relevant": 0.002},
    {"rows": 90, "n_labels": 10, "places": 5, "relevant": 0.05},  # nearly all rows are empty
]
each_shape = pytest.mark.parametrize("shape", SHAPES, ids=str)
each_seed = pytest.mark.parametrize("seed", range(4))

# Two rows. Labels 0 and 3 are relevant in the first, found in second place; label 1 in the other,
# which has one prediction only, and it is right.
SMALL = np.array([[2, 3, 1], [1, -1, -1]]), scipy.sparse.csr_array([[1, 0, 0, 1], [0, 1, 0, 0]])
WEIGHTS = np.array([5.0, 3.0, 1.0, 2.0])
SECOND, THIRD = 1 / math.log2(3), 1 / 2


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("P@1", [0, 1]),
        ("P@2", [1 / 2, 1 / 2]),
        ("P@3", [1 / 3, 1 / 3]),
        ("nDCG@1", [0, 1]),
        ("nDCG@2", [SECOND / (1 + SECOND), 1]),
        ("nDCG@3", [SECOND / (1 + SECOND), 1]),
        ("PSP@1", [0, 2 * 3 / (5 + 3)]),
        ("PSP@3", [2 * 2 / (7 + 3), 2 * 3 / (7 + 3)]),
    ],
)
def test_values_by_hand(name, rows):
    values = labels.from_name(name)(*SMALL, WEIGHTS, reduction="none")
    np.testing.assert_allclose(values, rows, rtol=1e-15)


@pytest.mark.parametrize("out_of", ["reachable", "all"])
def test_psndcg_by_hand(out_of):
    first, second = (1 + SECOND, 1) if out_of == "reachable" else (1 + SECOND + THIRD,) * 2
    best = (5 + 2 * SECOND) / first + 3 / second
    expected = 2 * np.array([2 * SECOND / first, 3 / second]) / best
    options = {"k": 3, "inverse_propensity": WEIGHTS, "out_of": out_of}
    np.testing.assert_allclose(
        labels.ps_ndcg(*SMALL, reduction="none", **options), expected, rtol=1e-15
    )
    assert labels.ps_ndcg(*SMALL, **options) == pytest.approx(expected.mean(), rel=1e-15)


@each_shape
@each_seed
def test_every_row_has_the_value_of_the_definition(shape, seed):
    top, Y, _ = random_rows(seed, **shape)
    predicted, relevant = rankings(top), label_lists(Y)
    for k in {1, 3, top.shape[1]} & set(range(top.shape[1] + 1)):
        for measure, definition in (
            (labels.precision, label_definitions.precision),
            (labels.ndcg, label_definitions.ndcg),
        ):
            expected = [definition(p, t, k) for p, t in zip(predicted, relevant, strict=True)]
            values = measure(top, Y, k=k, reduction="none")
            np.testing.assert_allclose(values, expected, rtol=1e-14)
            assert measure(top, Y, k=k) == pytest.approx(np.mean(expected), rel=1e-14)


@each_shape
@each_seed
def test_propensity_scored_measures_are_ratios_of_sums(shape, seed):
    top, Y, q = random_rows(seed, **shape)
    predicted, relevant = rankings(top), label_lists(Y)
    for k in {1, 3, top.shape[1]} & set(range(top.shape[1] + 1)):
        for measure, options, definition in (
            (labels.ps_precision, {}, label_definitions.ps_precision),
            (labels.ps_ndcg, {}, label_definitions.ps_ndcg),
            (labels.ps_ndcg, {"out_of": "all"}, label_definitions.ps_ndcg),
        ):
            found, best = definition(predicted, relevant, q, k, **options)
            value = measure(top, Y, inverse_propensity=q, k=k, **options)
            assert value == pytest.approx(found.sum() / best.sum(), rel=1e-13)
            rows = measure(top, Y, inverse_propensity=q, k=k, reduction="none", **options)
            np.testing.assert_allclose(rows, len(found) * found / best.sum(), rtol=1e-13)
            assert value == pytest.approx(rows.mean(), rel=1e-14)


@each_shape
@each_seed
def test_napkinxc_has_the_same_values(shape, seed):
    peer = pytest.importorskip("napkinxc.metrics")
    top, Y, q = random_rows(seed, **shape)
    predicted, relevant, k = rankings(top), label_lists(Y), top.shape[1]
    theirs = {
        "P": peer.precision_at_k(relevant, predicted, k=k),
        "nDCG": peer.ndcg_at_k(relevant, predicted, k=k),
        "PSP": peer.psprecision_at_k(relevant, predicted, q, k=k, normalize=True),
        "PSnDCG": peer.psndcg_at_k(relevant, predicted, q, k=k, normalize=True),
    }
    places = range(1, k + 1)
    ours = labels.evaluate(top, Y, inverse_propensity=q, ks=places)
    assert list(ours) == [f"{name}@{place}" for name in theirs for place in places]
    for name, values in theirs.items():
        mine = [ours[f"{name}@{place}"] for place in places]
        np.testing.assert_allclose(mine, values, rtol=1e-12, atol=1e-15, err_msg=name)


def test_napkinxc_counts_rows_without_labels_as_zero():
    """They lower P and nDCG, and add nothing to either sum of the propensity-scored measures."""
    peer = pytest.importorskip("napkinxc.metrics")
    Y = scipy.sparse.csr_array([[1, 0, 0], [0, 0, 0]])
    top, q = [[0, 1], [2, 1]], np.array([4.0, 2.0, 3.0])
    values = labels.evaluate(top, Y, inverse_propensity=q, ks=[1, 2])
    assert values["P@1"] == peer.precision_at_k([[0], []], top, k=1)[0] == 1 / 2
    assert values["nDCG@2"] == peer.ndcg_at_k([[0], []], top, k=2)[1] == 1 / 2
    assert values["PSP@2"] == peer.psprecision_at_k([[0], []], top, q, k=2)[1] == 1
    assert values["PSnDCG@2"] == peer.psndcg_at_k([[0], []], top, q, k=2)[1] == 1


@each_seed
def test_scikit_learns_ndcg_where_all_rows_have_labels(seed):
    peer = pytest.importorskip("sklearn.metrics")
    rng = np.random.default_rng(seed)
    scores = rng.permuted(np.tile(np.arange(20.0), (50, 1)), axis=1)
    Y = rng.random((50, 20)) < 0.2
    Y[np.arange(50), rng.integers(20, size=50)] = True
    top = np.argsort(-scores, axis=1)
    for k in (1, 5, 20):
        ours = labels.ndcg(top, scipy.sparse.csr_array(Y), k=k)
        assert ours == pytest.approx(peer.ndcg_score(Y, scores, k=k), rel=1e-12)


@pytest.mark.parametrize(("a", "b"), [(0.55, 1.5), (0.5, 0.4), (0.6, 2.6)])
def test_inverse_propensities_are_napkinxcs(a, b):
    peer = pytest.importorskip("napkinxc.metrics")
    rng = np.random.default_rng(0)
    dense = rng.random((70, 40)) < rng.random(40) ** 3
    dense[:, [3, 39]] = False  # labels that are never seen
    dense[5] = False
    ours = labels.inverse_propensity(scipy.sparse.csr_array(dense), a, b)
    theirs = peer.Jain_et_al_inverse_propensity(dense.astype(int), a, b)
    assert ours.dtype == np.float64
    np.testing.assert_allclose(ours, theirs, rtol=1e-14)
    # A label that is never seen: 1 + (ln N − 1) ((b + 1) / b)^a
    assert ours[39] == pytest.approx(1 + (math.log(70) - 1) * ((b + 1) / b) ** a, rel=1e-14)
    assert ours.argmax() in (3, 39)


def test_a_label_that_one_row_has_weighs_the_logarithm_of_the_rows():
    """N_l = 1: 1 + (ln N − 1) (b + 1)^a (1 + b)^−a = ln N, whatever a and b are."""
    Y = scipy.sparse.csr_array((np.ones(1), ([4], [0])), shape=(50, 1))
    assert labels.inverse_propensity(Y, 0.3, 7.0) == pytest.approx([math.log(50)], rel=1e-15)


def test_the_best_predictions_have_the_value_one():
    _, Y, q = random_rows(1, n_labels=30, places=5)
    Y = Y[Y.sum(axis=1) >= 5]
    order = np.argsort(-Y.toarray() * q, axis=1)
    for k in (1, 4, 5):
        values = labels.evaluate(order[:, :5], Y, inverse_propensity=q, ks=[k])
        assert list(values.values()) == pytest.approx([1] * 4, rel=1e-14)


@pytest.mark.parametrize("out_of", ["reachable", "all"])
@each_seed
def test_equal_weights_leave_plain_measures(seed, out_of):
    """Where all rows have k labels or more, and all labels the same propensity."""
    top, Y, _ = random_rows(seed, n_labels=40, places=5, relevant=0.3)
    enough = Y.sum(axis=1) >= 5
    top, Y, q = top[enough], Y[enough], np.full(40, 3.7)
    values = labels.evaluate(top, Y, inverse_propensity=q, out_of=out_of)
    for k in (1, 3, 5):
        assert values[f"PSP@{k}"] == pytest.approx(values[f"P@{k}"], rel=1e-13)
        assert values[f"PSnDCG@{k}"] == pytest.approx(values[f"nDCG@{k}"], rel=1e-13)


def test_values_of_rows_go_into_intervals_and_tests():
    top, Y, q = random_rows(2, rows=80)
    other = np.random.default_rng(0).permuted(top, axis=1)
    other = np.take_along_axis(other, np.argsort(other < 0, axis=1, kind="stable"), axis=1)
    for name in ("P@3", "nDCG@3", "PSP@3", "PSnDCG@3"):
        metric = labels.from_name(name)
        rows, others = (metric(one, Y, q, reduction="none") for one in (top, other))
        interval = metrics.bootstrap_interval(rows)
        assert interval.mean == pytest.approx(metric(top, Y, q), rel=1e-14)
        assert interval.low < interval.mean < interval.high
        difference = metrics.paired_test(rows, others).difference
        assert difference == pytest.approx(metric(top, Y, q) - metric(other, Y, q), abs=1e-14)


def delicious(part):
    """[rows, labels] of the Delicious data: after the header, labels come first in a line."""
    path = real("delicious", f"{part}.txt.xz")
    with lzma.open(path, "rt") as file:
        rows, _, n_labels = (int(size) for size in next(file).split())
        fields = [line.split(" ", 1)[0] for line in file]
    named = [[int(label) for label in field.split(",")] if field else [] for field in fields]
    borders = np.cumsum([0] + [len(row) for row in named])
    found = np.concatenate([np.array(row, dtype=int) for row in named])
    return scipy.sparse.csr_matrix((np.ones(len(found)), found, borders), shape=(rows, n_labels))


@pytest.mark.data
def test_delicious_with_napkinxcs_propensities_and_measures():
    peer = pytest.importorskip("napkinxc.metrics")
    train, test = delicious("train"), delicious("test")
    assert train.shape == (12920, 983)
    assert test.shape == (3185, 983)
    q = labels.inverse_propensity(train)
    np.testing.assert_allclose(q, peer.Jain_et_al_inverse_propensity(train), rtol=1e-14)
    popular = np.argsort(-train.sum(axis=0).A1, kind="stable")[:5]
    top = np.random.default_rng(0).permuted(np.tile(popular, (3185, 1)), axis=1)
    ours = labels.evaluate(top, test, inverse_propensity=q, ks=range(1, 6))
    truth = [test[row].indices.tolist() for row in range(3185)]
    for name, theirs in (
        ("P", peer.precision_at_k(truth, top.tolist())),
        ("nDCG", peer.ndcg_at_k(truth, top.tolist())),
        ("PSP", peer.psprecision_at_k(truth, top.tolist(), q)),
        ("PSnDCG", peer.psndcg_at_k(truth, top.tolist(), q)),
    ):
        mine = [ours[f"{name}@{k}"] for k in range(1, 6)]
        np.testing.assert_allclose(mine, theirs, rtol=1e-12, err_msg=name)
