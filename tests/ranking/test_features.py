"""Feature transformers: their numbers, what they refuse, and what comes back from a saved state."""

import json
import math
import tracemalloc
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import scipy.stats
import sklearn
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator
from sklearn.utils.validation import _num_samples

import tierrank as tr
from real_data import real
from tierrank.data import read_letor
from tierrank.ranking.features import (
    TRANSFORMERS,
    QueryScale,
    SecondOrder,
    Standardize,
    Steps,
    steps_from,
)

METHODS = ("minmax", "standard", "rank")


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def with_holes(X, rng, share=0.2):
    X = X.copy()
    X[rng.random(X.shape) < share] = np.nan
    return X


# scikit-learn's contract


@pytest.mark.parametrize(
    "transformer",
    [Standardize(), Standardize(mean=False), SecondOrder(), SecondOrder(0.5, max_features=2)],
    ids=str,
)
def test_scikit_learn_accepts_the_transformer(transformer):
    check_estimator(transformer, on_skip=None)


class OneQueryScale(QueryScale):
    """QueryScale as scikit-learn's checks call it, which know no queries: all rows are one."""

    def transform(self, X, *, qid=None):
        return super().transform(X, qid=np.zeros(_num_samples(X)) if qid is None else qid)


@pytest.mark.parametrize("method", METHODS)
def test_scikit_learn_accepts_query_scale_but_for_what_it_is_for(method):
    reason = "a row is scaled by the rows of its query, so half a query gives other numbers"
    failing = {"check_methods_subset_invariance": reason}
    check_estimator(OneQueryScale(method), expected_failed_checks=failing, on_skip=None)


@pytest.mark.parametrize("name", TRANSFORMERS)
def test_clones_keep_the_parameters_and_forget_the_rows(name, rng):
    transformer = TRANSFORMERS[name]()
    transformer.fit(rng.normal(size=(9, 2)), np.arange(9.0))
    copy = clone(transformer)
    assert copy.get_params() == transformer.get_params()
    assert not hasattr(copy, "n_features_in_")


def test_a_grid_search_chooses_the_threshold(rng):
    X = rng.normal(size=(200, 3))
    y = X[:, 0] * X[:, 1]
    grid = {"secondorder__threshold": [0.3, 1.0]}
    search = GridSearchCV(make_pipeline(SecondOrder(), LinearRegression()), grid).fit(X, y)
    assert search.best_params_ == {"secondorder__threshold": 0.3}
    assert search.best_score_ == pytest.approx(1.0)


def test_a_pipeline_hands_the_queries_to_those_who_need_them(rng):
    X, qid = rng.normal(size=(40, 3)), rng.integers(5, size=40)
    y = rng.normal(size=40)
    with sklearn.config_context(enable_metadata_routing=True):
        model = make_pipeline(Standardize(), QueryScale(), SecondOrder(0.0), LinearRegression())
        model.fit(X, y, qid=qid)
        predicted = model.predict(X, qid=qid)
    features = Steps([Standardize(), QueryScale(), SecondOrder(0.0)]).fit_transform(X, y, qid)
    expected = LinearRegression().fit(features, y).predict(features)
    np.testing.assert_allclose(predicted, expected, rtol=1e-9)


def test_frames_give_names_and_get_frames_back():
    frame = pd.DataFrame({"bm25": [1.0, 2.0, 4.0], "rank": [3.0, 1.0, 2.0]})
    products = SecondOrder(0.0).set_output(transform="pandas").fit(frame, [0, 1, 2])
    names = ["bm25", "rank", "bm25^2", "bm25 rank", "rank^2"]
    assert products.get_feature_names_out().tolist() == names
    out = products.transform(frame)
    assert out.columns.tolist() == names
    assert out["bm25 rank"].tolist() == [3.0, 2.0, 8.0]
    assert Standardize().fit(frame).get_feature_names_out().tolist() == ["bm25", "rank"]


# Standardize


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("holes", [False, True])
def test_standardised_features_equal_those_of_scikit_learn(rng, dtype, holes):
    X = rng.normal(size=(500, 6)) * 10.0 ** np.arange(-3, 3) + np.arange(6)
    X = (with_holes(X, rng) if holes else X).astype(dtype)
    X[:, 5] = 7
    ours = Standardize().fit(X)
    theirs = StandardScaler().fit(X.astype(np.float64))
    np.testing.assert_allclose(ours.mean_, theirs.mean_, rtol=1e-12)
    np.testing.assert_allclose(ours.scale_, theirs.scale_, rtol=1e-12)
    out = ours.transform(X)
    assert out.dtype == dtype
    tolerance = {"rtol": 1e-9, "atol": 1e-12} if dtype == np.float64 else {"rtol": 1e-6}
    np.testing.assert_allclose(out, theirs.transform(X.astype(np.float64)), **tolerance)
    only_scaled = Standardize(mean=False).fit_transform(X)
    expected = StandardScaler(with_mean=False).fit_transform(X.astype(np.float64))
    np.testing.assert_allclose(only_scaled, expected, rtol=1e-6)
    assert np.array_equal(Standardize(scale=False).fit(X).scale_, np.ones(6))


def test_many_rows_are_read_in_blocks_without_a_trace(rng):
    X = rng.normal(size=(30_000, 70))  # two blocks
    np.testing.assert_allclose(
        Standardize().fit_transform(X), StandardScaler().fit_transform(X), rtol=1e-9, atol=1e-12
    )


def test_small_differences_on_a_large_offset_are_no_constant():
    # scikit-learn's bound on rounding takes this for a constant: 2**20 rows of 1e9 ± 2**-10.
    x = np.tile([1e9 - 2**-10, 1e9 + 2**-10], 1 << 19)[:, None]
    known = Standardize().fit(x)
    assert known.mean_[0] == 1e9
    assert known.scale_[0] == pytest.approx(2**-10)
    assert known.transform(x[:2]).ravel() == pytest.approx([-1, 1])


@pytest.mark.parametrize("size", [5e-324, 1e-310, 1e-200, 1e200, 1.7e308])
def test_the_largest_and_smallest_numbers_are_standardised(size):
    X = np.array([[-size], [size], [-size], [size]])
    assert Standardize().fit_transform(X).ravel().tolist() == pytest.approx([-1, 1, -1, 1])
    shifted = np.array([[0.0], [size], [size], [size]])
    expected = StandardScaler().fit_transform([[0.0], [1.0], [1.0], [1.0]]).ravel()
    tolerance = {} if size > 1e-300 else {"abs": 2}  # numbers with one digit
    assert Standardize().fit_transform(shifted).ravel() == pytest.approx(expected, **tolerance)


def test_a_constant_feature_becomes_zero_and_a_missing_one_stays_missing():
    X = np.array([[0.1, np.nan, 3.0], [0.1, np.nan, np.nan], [0.1, np.nan, np.nan]])
    known = Standardize().fit(X)
    out = known.transform(X)
    assert out[:, 0].tolist() == [0, 0, 0]
    assert np.isnan(out[:, 1]).all()
    assert out[0, 2] == 0
    assert np.isfinite(known.mean_).all()
    assert known.scale_.tolist() == [1, 1, 1]


@pytest.mark.parametrize("holes", [False, True])
@pytest.mark.parametrize("container", [scipy.sparse.csr_matrix, scipy.sparse.csr_array])
def test_sparse_features_are_scaled_and_stay_sparse(rng, container, holes):
    dense = rng.normal(5.0, 1.0, size=(60, 5)) * (rng.random((60, 5)) < 0.4)
    dense[:, 3] = 0
    dense[:, 4] = 2
    X = container(with_holes(dense, rng) if holes else dense)
    ours, theirs = Standardize().fit(X), StandardScaler(with_mean=False).fit(X)
    assert ours.mean_.tolist() == [0] * 5
    np.testing.assert_allclose(ours.scale_, theirs.scale_, rtol=1e-12)
    out = ours.transform(X)
    assert isinstance(out, container)
    np.testing.assert_allclose(out.toarray(), theirs.transform(X).toarray(), rtol=1e-12)
    np.testing.assert_allclose(ours.transform(X.toarray()), out.toarray(), rtol=1e-12)


def test_repeated_entries_of_a_sparse_matrix_count_once():
    X = scipy.sparse.csr_array((np.array([1.0, 1.0, 4.0]), [0, 0, 0], [0, 2, 3, 3]), shape=(3, 1))
    out = Standardize().fit_transform(X)
    np.testing.assert_allclose(out.toarray().ravel(), np.array([2, 4, 0]) / np.std([2, 4, 0]))
    assert X.nnz == 3


def test_sparse_features_are_not_centred():
    X = scipy.sparse.csr_array(np.eye(3))
    with pytest.raises(ValueError, match=r"sparse data cannot be centred .* mean='auto'"):
        Standardize(mean=True).fit(X)
    with pytest.raises(ValueError, match="learned to centre, and sparse data"):
        Standardize().fit(X.toarray()).transform(X)


def test_a_value_that_overflows_is_refused():
    known = Standardize().fit([[0.0, 0.0], [1.0, 1e-9]])
    with pytest.raises(ValueError, match="feature 1 is too large for float64 once standardised"):
        known.transform([[0.0, 1e305]])
    with pytest.raises(ValueError, match="feature 1 is too large for float32 once standardised"):
        known.transform(np.array([[0.0, 1e35]], dtype=np.float32))
    scaled = Standardize(mean=False).fit([[0.0, 0.0], [1.0, 1e-9]])
    with pytest.raises(ValueError, match="feature 1 is too large"):
        scaled.transform(scipy.sparse.csr_array([[1.0, 1e305]]))


# QueryScale


def scaled_by_hand(x, method):
    """One feature of one query, without NaN."""
    if len(x) == 0 or x.min() == x.max():
        return np.zeros(len(x))
    if method == "minmax":
        return (x - x.min()) / (x.max() - x.min())
    if method == "standard":
        return (x - x.mean()) / x.std()
    return (scipy.stats.rankdata(x) - 1) / (len(x) - 1)


@given(st.data(), st.sampled_from(METHODS), st.booleans())
def test_each_query_is_scaled_as_if_alone(data, method, strings):
    rows = data.draw(st.integers(1, 25))
    numbers = st.sampled_from([-2.0, 0.0, 0.5, 1.0, 3.0, 1e6, math.nan])
    X = np.array(data.draw(st.lists(st.tuples(numbers, numbers), min_size=rows, max_size=rows)))
    qid = np.array(data.draw(st.lists(st.integers(0, 4), min_size=rows, max_size=rows)))
    expected = np.full_like(X, np.nan)
    for query in set(qid.tolist()):
        for column in range(2):
            at = np.flatnonzero((qid == query) & ~np.isnan(X[:, column]))
            expected[at, column] = scaled_by_hand(X[at, column], method)
    out = QueryScale(method).fit_transform(X, qid=qid.astype(str) if strings else qid)
    np.testing.assert_allclose(out, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_columns_are_scaled_in_blocks_without_a_trace(rng, method):
    X, qid = rng.normal(size=(40_000, 30)), rng.integers(4_000, size=40_000)  # two blocks
    out = QueryScale(method).fit(X, qid=qid).transform(X, qid=qid)
    for query in (qid[0], qid[-1]):
        for column in (0, 25, 26, 29):
            at = qid == query
            expected = scaled_by_hand(X[at, column], method)
            np.testing.assert_allclose(out[at, column], expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("size", [5e-324, 1e-200, 1e200, 1.7e308])
def test_the_largest_and_smallest_numbers_are_scaled(method, size):
    X = np.array([[-size], [0.0], [size], [1.0], [2.0], [3.0]])
    out = QueryScale(method).fit_transform(X, qid=[0, 0, 0, 1, 1, 1]).ravel()
    np.testing.assert_allclose(out[:3], scaled_by_hand(np.array([-1.0, 0.0, 1.0]), method))
    np.testing.assert_allclose(out[3:], out[:3])


def test_a_scale_without_queries_is_refused(rng):
    X, y, qid = rng.normal(size=(40, 3)), rng.integers(3, size=40), rng.integers(5, size=40)
    with pytest.raises(ValueError, match=r"write transform\(X, qid=qid\)"):
        QueryScale().fit_transform(X)
    with pytest.raises(ValueError, match="enable_metadata_routing"):  # only the ranker gets them
        make_pipeline(QueryScale(), tr.LinearRanker()).fit(X, y, linearranker__qid=qid)


def test_numbers_keep_their_kind_and_one_query_is_scaled_whole(rng):
    X = rng.normal(size=(9, 2)).astype(np.float32)
    out = QueryScale().fit(X).transform(X, qid=np.full(9, "q"))
    assert out.dtype == np.float32
    assert out.min(axis=0).tolist() == [0, 0]
    assert out.max(axis=0).tolist() == [1, 1]


@pytest.mark.parametrize(
    ("X", "qid", "message"),
    [
        ([[1.0], [2.0]], [1], r"qid has shape \(1,\), but X has 2 rows"),
        ([[1.0], [2.0]], [1, math.nan], r"qid\[1\] is missing"),
        ([[1.0], [math.inf]], [1, 1], r"X\[1, 0\] is infinite"),
        (scipy.sparse.eye_array(2, format="csr"), [1, 1], "QueryScale cannot take sparse data"),
    ],
)
def test_query_scale_refuses(X, qid, message):
    with pytest.raises(ValueError, match=message):
        QueryScale().fit(X, qid=qid)
    with pytest.raises(ValueError, match=message):
        QueryScale().fit([[1.0]]).transform(X, qid=qid)


@pytest.mark.data
def test_letor_features_are_query_scaled_already():
    path = real("mq2008", "S1.txt.xz")
    data = read_letor(path)
    # Written with six digits: the ends are exactly 0 and 1.
    out = QueryScale().fit_transform(data.X, qid=data.qid)
    np.testing.assert_allclose(out, data.X, atol=1e-6)


# SecondOrder


def exact_correlation(p, y):
    """Pearson correlation in exact arithmetic, and the deviation of p for a largest |p| of 1."""
    n, peak = len(p), max(map(abs, p))
    if not peak:
        return 0.0, 0.0
    p, y = [(v - sum(p) / n) / peak for v in p], [v - sum(y) / n for v in y]
    pp, yy, py = sum(v * v for v in p), sum(v * v for v in y), sum(map(Fraction.__mul__, p, y))
    r = math.copysign(math.sqrt(py * py / (pp * yy)), py) if pp and yy else 0.0
    return r, math.sqrt(pp / n)


@given(st.data())
def test_correlations_are_those_of_the_products_in_exact_arithmetic(data):
    rows, features = data.draw(st.integers(1, 12)), data.draw(st.integers(1, 4))
    eighths = st.integers(-8, 8).map(lambda k: k / 8)
    offset = st.sampled_from([0.0, 0.0, 3.0, 1e3, 1e6, -1e6])
    size = st.sampled_from([1.0, 1.0, 1e-3, 1e100, 1e-100])
    columns = []
    for _ in range(features):
        column = np.array(data.draw(st.lists(eighths, min_size=rows, max_size=rows)))
        columns.append((column + data.draw(offset)) * data.draw(size))
    X = np.column_stack(columns)
    grades = st.lists(st.sampled_from([0, 1, 2, 1e6]), min_size=rows, max_size=rows)
    y = np.array(data.draw(grades), dtype=np.float64)
    chosen = SecondOrder(threshold=0.0).fit(X, y)
    found = {tuple(pair): r for pair, r in zip(chosen.pairs_, chosen.correlations_, strict=True)}
    labels = [Fraction(v) for v in y]
    for i in range(features):
        for j in range(i, features):
            product = [Fraction(a) * Fraction(b) for a, b in zip(X[:, i], X[:, j], strict=True)]
            expected, deviation = exact_correlation(product, labels)
            assert deviation or (i, j) not in found
            if deviation <= 1e-14:  # constant, but for the rounding of numbers such as 1e6 × 0.001
                continue
            rounding = 1e-15 / deviation
            assert found.get((i, j), 0.0) == pytest.approx(expected, abs=1e-9 + rounding)


def test_correlations_equal_numpys(rng):
    X = rng.gamma(1.0, size=(3_000, 12)) * (rng.random((3_000, 12)) < 0.7)
    X[:, 3] += 1e6
    X[:, 4] -= 1e4
    y = rng.integers(5, size=3_000) + X[:, 0] * X[:, 5]
    chosen = SecondOrder(threshold=0.0).fit(X, y)
    for (i, j), r in zip(chosen.pairs_, chosen.correlations_, strict=True):
        assert r == pytest.approx(np.corrcoef(X[:, i] * X[:, j], y)[0, 1], abs=1e-8)
    assert len(chosen.pairs_) == 12 * 13 / 2


def test_products_above_the_threshold_are_chosen_in_order(rng):
    X = Standardize().fit_transform(rng.normal(size=(400, 6)))
    y = X[:, 1] * X[:, 4] + X[:, 2] ** 2 / 2 + rng.normal(size=400)
    every = {(i, j): np.corrcoef(X[:, i] * X[:, j], y)[0, 1] for i in range(6) for j in range(i, 6)}
    chosen = SecondOrder(threshold=0.05).fit(X, y)
    assert [tuple(pair) for pair in chosen.pairs_] == [p for p, r in every.items() if abs(r) > 0.05]
    strongest = SecondOrder(threshold=0.05, max_features=3).fit(X, y)
    best = sorted(every, key=lambda pair: -abs(every[pair]))[:3]
    assert {(1, 4), (2, 2)} <= set(best)
    assert [tuple(pair) for pair in strongest.pairs_] == sorted(best)
    products = [X[:, i] * X[:, j] for i, j in sorted(best)]
    assert np.array_equal(strongest.transform(X), np.column_stack([X, *products]))
    only = SecondOrder(threshold=0.05, max_features=3, include_first=False).fit_transform(X, y)
    assert np.array_equal(only, np.column_stack(products))


def test_constant_products_are_never_chosen(rng):
    x = rng.uniform(1, 2, size=200)
    sign = np.where(rng.random(200) < 0.5, -1.0, 1.0)
    half = np.where(sign > 0, x, 0.0)
    other = np.where(sign > 0, 0.0, x)
    X = np.column_stack([x, 1 / x, sign, half, other, np.full(200, 0.1)])
    pairs = {tuple(pair) for pair in SecondOrder(threshold=0.0).fit(X, rng.normal(size=200)).pairs_}
    assert pairs.isdisjoint({(0, 1), (2, 2), (3, 4), (5, 5)})
    assert len(pairs) == 6 * 7 / 2 - 4


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_an_interaction_on_a_large_offset_is_found(rng, dtype):
    X = (rng.normal(size=(2_000, 2)) * 100 + [1e5, -1e5]).astype(dtype)
    wide = X.astype(np.float64)
    y = wide[:, 0] + wide[:, 1] ** 2 / 1e5
    found = SecondOrder(threshold=0.0).fit(X, y)
    expected = [np.corrcoef(wide[:, i] * wide[:, j], y)[0, 1] for i, j in found.pairs_]
    assert found.pairs_.tolist() == [[0, 0], [0, 1], [1, 1]]
    np.testing.assert_allclose(found.correlations_, expected, atol=1e-9)


@pytest.mark.parametrize(("X", "y"), [([[1.0, 2.0]], [1]), ([[1.0], [2.0], [3.0]], [1, 1, 1])])
def test_where_nothing_varies_the_features_are_left_as_they_are(X, y):
    chosen = SecondOrder(threshold=0.0).fit(X, y)
    assert chosen.pairs_.shape == (0, 2)
    assert np.array_equal(chosen.transform(X), X)
    assert len(chosen.get_feature_names_out()) == len(X[0])
    assert np.array_equal(chosen.transform(scipy.sparse.csr_array(X)).toarray(), X)
    with pytest.raises(ValueError, match="no feature is left: lower the threshold"):
        SecondOrder(threshold=0.0, include_first=False).fit(X, y)


@pytest.mark.parametrize("include_first", [True, False])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_sparse_products_equal_dense_ones_and_stay_sparse(rng, include_first, dtype):
    dense = (rng.normal(size=(3_000, 8)) * (rng.random((3_000, 8)) < 0.3)).astype(dtype)
    y = rng.normal(size=3_000)
    X = scipy.sparse.csr_array(dense)
    by_dense = SecondOrder(0.01, include_first).fit(dense, y)
    by_sparse = SecondOrder(0.01, include_first).fit(X, y)
    assert len(by_dense.pairs_) > 5
    assert np.array_equal(by_dense.pairs_, by_sparse.pairs_)
    np.testing.assert_allclose(by_dense.correlations_, by_sparse.correlations_, rtol=1e-9)
    out = by_sparse.transform(X)
    assert out.format == "csr"
    assert out.dtype == dtype
    assert np.array_equal(out.toarray(), by_dense.transform(dense))
    assert out.nnz == np.count_nonzero(out.toarray())


def test_choosing_products_never_holds_them_all(rng):
    X, y = rng.normal(size=(20_000, 100)), rng.normal(size=20_000)
    tracemalloc.start()
    SecondOrder(threshold=0.5).fit(X, y)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 60e6  # the products would take 808 MB


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (
            [[1.0, 2.0], [3.0, math.nan]],
            r"X\[1, 1\] is NaN \(1 such .* fill them in",
        ),
        ([[1.0, -math.inf], [math.inf, 0.0]], r"X\[0, 1\] is infinite \(2 such values in all\)"),
        (scipy.sparse.csr_array([[0.0, 1.0], [math.nan, 0.0]]), r"X\[1, 0\] is NaN"),
    ],
)
def test_products_of_missing_and_infinite_values_are_refused(X, message):
    with pytest.raises(ValueError, match=message):
        SecondOrder().fit(X, [0, 1])


def test_a_product_that_overflows_is_refused():
    chosen = SecondOrder(0.0).fit([[1.0, 2.0], [2.0, 3.0], [0.0, 0.0]], [0, 1, 2])
    huge = np.array([[1.0, 1e200]])
    for X in (huge, scipy.sparse.csr_array(huge)):
        with pytest.raises(ValueError, match="product of features 1 and 1 is too large for float"):
            chosen.transform(X)


@pytest.mark.parametrize(
    ("transformer", "message"),
    [
        (Standardize(mean="yes"), "mean must be True, False or 'auto', not 'yes'"),
        (Standardize(scale=2), "scale must be True or False, not 2"),
        (QueryScale("max"), "unknown method 'max': use 'minmax', 'standard', 'rank'"),
        (QueryScale(["minmax"]), "unknown method"),
        (SecondOrder(threshold=math.nan), "threshold is a correlation from 0 to 1, not nan"),
        (SecondOrder(threshold="0.1"), "threshold is a correlation from 0 to 1, not '0.1'"),
        (SecondOrder(max_features=0), "max_features is a number of products from 1"),
        (SecondOrder(max_features=2.5), "max_features is a number of products from 1"),
        (SecondOrder(include_first="no"), "include_first must be True or False"),
    ],
    ids=str,
)
def test_a_wrong_parameter_is_refused(transformer, message):
    with pytest.raises(ValueError, match=message):
        transformer.fit([[1.0], [2.0]], [0, 1])


# Steps


def fitted_steps(rng, rows=60):
    X, y, qid = rng.normal(size=(rows, 3)), rng.normal(size=rows), rng.integers(6, size=rows)
    steps = Steps(steps_from(["standardize", QueryScale("standard"), SecondOrder(0.05)]))
    return steps, X, steps.fit_transform(X, y, qid), qid


def test_steps_follow_each_other(rng):
    steps, X, out, qid = fitted_steps(rng)
    by_hand = QueryScale("standard").fit_transform(Standardize().fit_transform(X), qid=qid)
    pairs = steps.steps[2].pairs_
    products = [by_hand[:, i] * by_hand[:, j] for i, j in pairs]
    assert len(pairs)
    np.testing.assert_allclose(out, np.column_stack([by_hand, *products]), rtol=1e-12)
    assert np.array_equal(steps.transform(X, qid), out)


def test_steps_know_whether_they_need_the_queries():
    assert Steps(steps_from(["standardize", "query-scale"])).needs_qid
    assert not Steps(steps_from(["standardize", "second-order"])).needs_qid


def test_no_steps_leave_the_features_untouched():
    X = object()
    steps = Steps.from_state(*Steps(steps_from(None)).to_state())
    assert len(steps) == 0
    assert steps.fit_transform(X, None, None) is X
    assert steps.transform(X) is X
    assert not steps.needs_qid


def test_steps_are_named_given_or_mixed():
    given = SecondOrder(threshold=0.3)
    one, other = steps_from(["standardize", given])
    assert isinstance(one, Standardize)
    assert other is not given
    assert other.threshold == 0.3
    assert [type(step) for step in steps_from("query-scale")] == [QueryScale]
    assert [type(step) for step in steps_from(given)] == [SecondOrder]
    with pytest.raises(
        ValueError, match="unknown features 'scale': use 'impute', 'standardize', 'query-scale', "
    ):
        steps_from(["standardize", "scale"])
    with pytest.raises(ValueError, match=r"StandardScaler.* is not a step that can be saved"):
        steps_from(StandardScaler())


def test_steps_give_arrays_whatever_scikit_learn_is_set_to(rng):
    with sklearn.config_context(transform_output="pandas"):
        steps, X, out, qid = fitted_steps(rng)
        assert type(out) is np.ndarray
        assert type(Steps.from_state(*steps.to_state()).transform(X, qid)) is np.ndarray


# Saved states


def sent(state):
    """What comes back from a file: JSON, and arrays of the same bytes."""
    info, tensors = state
    return json.loads(json.dumps(info, allow_nan=False)), {k: v.copy() for k, v in tensors.items()}


def test_a_state_gives_back_the_same_steps(rng):
    steps, X, out, qid = fitted_steps(rng)
    back = Steps.from_state(*sent(steps.to_state()))
    assert np.array_equal(back.transform(X, qid), out)
    assert [step.get_params() for step in back.steps] == [s.get_params() for s in steps.steps]
    assert back.needs_qid
    info, tensors = back.to_state()
    assert info == steps.to_state()[0]
    assert set(tensors) == {"0.mean", "0.scale", "2.pairs", "2.correlations"}


def test_a_state_keeps_numpy_parameters_and_the_names_of_features():
    frame = pd.DataFrame({"a": [1.0, 2.0, 4.0], "b": [3.0, 1.0, 2.0]})
    threshold, include = np.float32(0.25), np.bool_(True)
    fitted = SecondOrder(threshold, include, max_features=np.int64(2)).fit(frame, [0, 1, 2])
    back = SecondOrder.from_state(*sent(fitted.to_state()))
    assert back.get_feature_names_out().tolist() == fitted.get_feature_names_out().tolist()
    assert np.array_equal(back.transform(frame), fitted.transform(frame))
    with pytest.raises(ValueError, match="feature names should match"):
        back.transform(frame[["b", "a"]])


def test_what_is_not_fitted_has_no_state():
    with pytest.raises(ValueError, match="not fitted yet"):
        Standardize().to_state()


def _changed(part, key, value):
    def change(info, tensors):
        place = {"info": info, "parameters": info["parameters"], "tensors": tensors}[part]
        if value is None:
            del place[key]
        else:
            place[key] = value

    return change


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("standardize", _changed("info", "name", "second-order"), "it is that of 'second-order'"),
        ("standardize", _changed("info", "name", None), "its fields must be"),
        ("standardize", _changed("info", "code", "x"), "its fields must be"),
        ("standardize", _changed("info", "parameters", ["mean"]), "its parameters must be"),
        ("standardize", _changed("parameters", "mean", None), "its parameters must be"),
        ("standardize", _changed("parameters", "x", 1), "its parameters must be"),
        ("standardize", _changed("parameters", "mean", "no"), "mean must be True, False"),
        ("standardize", _changed("info", "n_features", 0), "n_features is 0"),
        ("standardize", _changed("info", "n_features", True), "n_features is True"),
        ("standardize", _changed("info", "n_features", "2"), "n_features is '2'"),
        ("standardize", _changed("info", "n_features", 3), r"mean has .* shape \(2,\)"),
        ("standardize", _changed("info", "feature_names", ["a"]), "1 feature_names for 2 feat"),
        ("standardize", _changed("info", "feature_names", ["a", 1]), "must be a list of texts"),
        ("standardize", _changed("info", "feature_names", "ab"), "must be a list of texts"),
        ("standardize", _changed("tensors", "mean", None), r"its arrays must be \['mean', 'sc"),
        ("standardize", _changed("tensors", "more", np.ones(2)), "its arrays must be"),
        ("standardize", _changed("tensors", "mean", np.array([1.0, np.nan])), "mean has numbers"),
        ("standardize", _changed("tensors", "mean", np.ones(2, "f4")), "mean has dtype float32"),
        ("standardize", _changed("tensors", "mean", np.ones((2, 1))), "mean has dtype"),
        ("standardize", _changed("tensors", "scale", np.array([1.0, 0.0])), "must be positive"),
        ("query-scale", _changed("parameters", "method", "x"), "unknown method 'x'"),
        ("query-scale", _changed("tensors", "mean", np.ones(2)), "its arrays must be"),
        ("second-order", _changed("tensors", "pairs", np.array([[0, 2]])), "of two of 2 feat"),
        ("second-order", _changed("tensors", "pairs", np.array([[-1, 0]])), "of two of 2 feat"),
        ("second-order", _changed("tensors", "pairs", np.array([[1, 0]])), "of two of 2 feat"),
        ("second-order", _changed("tensors", "pairs", np.array([0, 1])), "pairs has dtype"),
        ("second-order", _changed("tensors", "pairs", np.array([[0, 1.0]])), "pairs has dtype"),
        ("second-order", _changed("tensors", "pairs", np.zeros((2, 2), int)), "2 pairs, but 1"),
        ("second-order", _changed("tensors", "correlations", np.array([1.5])), "beyond 1"),
        ("second-order", _changed("tensors", "correlations", np.array([np.inf])), "not finite"),
        ("second-order", _changed("parameters", "threshold", -1), "threshold is a correlation"),
    ],
)
def test_a_damaged_state_is_refused(name, change, message):
    transformer = TRANSFORMERS[name]()
    if name == "second-order":
        transformer.max_features = 1
    transformer.fit([[1.0, 5.0], [2.0, 3.0], [4.0, 4.0]], [0, 1, 2])
    info, tensors = sent(transformer.to_state())
    change(info, tensors)
    with pytest.raises(ValueError, match=message):
        TRANSFORMERS[name].from_state(info, tensors)


@pytest.mark.parametrize(
    ("pairs", "parameters", "message"),
    [
        ([[0, 1], [0, 0]], {}, "pairs must increase"),
        ([[0, 1], [0, 1]], {}, "pairs must increase"),
        ([[0, 0], [0, 1]], {"max_features": 1}, "2 pairs, but max_features is 1"),
        (np.empty((0, 2)), {"include_first": False}, "it has no pairs"),
    ],
)
def test_chosen_pairs_that_cannot_be_are_refused(pairs, parameters, message):
    info, _ = SecondOrder(0.0).fit([[1.0, 5.0], [2.0, 3.0]], [0, 1]).to_state()
    info["parameters"] |= parameters
    pairs = np.array(pairs, dtype=np.int64)
    with pytest.raises(ValueError, match=message):
        SecondOrder.from_state(info, {"pairs": pairs, "correlations": np.full(len(pairs), 0.5)})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda info, tensors: info.update(more=1), "there must be a list of steps"),
        (lambda info, tensors: info.update(steps={}), "there must be a list of steps"),
        (lambda info, tensors: info["steps"].append(3), "step 3 is None, not 'impute'"),
        (lambda info, tensors: info["steps"][0].update(name="os.system"), "step 0 is 'os.system'"),
        (lambda info, tensors: info["steps"][0].update(name=["x"]), r"step 0 is \['x'\]"),
        (lambda info, tensors: tensors.update({"7.mean": np.ones(3)}), "'7.mean' belongs to none"),
        (lambda info, tensors: tensors.update({"mean": np.ones(3)}), "'mean' belongs to none"),
        (lambda info, tensors: tensors.update({"1.mean": np.ones(3)}), "its arrays must be"),
        (lambda info, tensors: info["steps"][1].update(n_features=9), "step 1 takes 9 features"),
    ],
)
def test_a_damaged_chain_is_refused(rng, change, message):
    info, tensors = sent(fitted_steps(rng)[0].to_state())
    change(info, tensors)
    with pytest.raises(ValueError, match=message):
        Steps.from_state(info, tensors)
