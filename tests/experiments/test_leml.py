"""Leml: the minimum it finds, the memory it takes, the labels it gives, bad input."""

import doctest
import tracemalloc

import leml
import numpy as np
import pytest
import scipy.sparse as sparse
from leml import Leml, RidgeSolver, best_columns
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

PLAIN = {"normalize": False, "intercept": False, "random_state": 0}


def small(seed=0, rows=25, features=5, labels=8):
    """Features, and labels of which the scores have rank 2, with noise; no row without labels."""
    generator = np.random.default_rng(seed)
    X = generator.standard_normal((rows, features))
    scores = X @ generator.standard_normal((features, 2)) @ generator.standard_normal((2, labels))
    Y = scores + generator.standard_normal((rows, labels)) > 1
    Y[np.arange(rows), scores.argmax(axis=1)] = True
    return X, sparse.csr_matrix(Y.astype(float))


def objective(X, Y, W, H, l2):
    """J as it is defined, with the whole matrix."""
    return ((Y.toarray() - X @ W @ H.T) ** 2).sum() + l2 * ((W**2).sum() + (H**2).sum())


# the minimum ---------------------------------------------------------------------------------


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_it_finds_the_minimum_that_another_method_finds(rank):
    """L-BFGS over W and H together, from several starts."""
    X, Y = small()
    features, labels, l2 = X.shape[1], Y.shape[1], 0.7

    def loss(point):
        W, H = np.split(point, [features * rank])
        W, H = W.reshape(features, rank), H.reshape(labels, rank)
        error = X @ W @ H.T - Y.toarray()
        slope = np.concatenate(
            [(2 * X.T @ error @ H + 2 * l2 * W).ravel(), (2 * error.T @ X @ W + 2 * l2 * H).ravel()]
        )
        return objective(X, Y, W, H, l2), slope

    starts = np.random.default_rng(1).standard_normal((5, (features + labels) * rank))
    options = {"maxiter": 5000, "ftol": 1e-15, "gtol": 1e-9}
    found = [
        minimize(loss, start, jac=True, method="L-BFGS-B", options=options) for start in starts
    ]
    best = min(found, key=lambda result: result.fun)
    W, H = np.split(best.x, [features * rank])

    model = Leml(rank=rank, l2=l2, sweeps=1000, tol=0, cg_steps=20, **PLAIN).fit(X, Y)
    assert model.objective_[-1] == pytest.approx(best.fun, rel=1e-8)
    expected = W.reshape(features, rank) @ H.reshape(labels, rank).T
    np.testing.assert_allclose(model.W_ @ model.H_.T, expected, atol=1e-5)


def test_of_full_rank_it_is_least_squares_with_the_nuclear_norm():
    """The smallest ‖W‖² + ‖H‖² of a product Z is 2 ‖Z‖∗: a convex problem, by proximal steps."""
    X, Y = small()
    targets, l2 = Y.toarray(), 1.5
    step = 1 / (2 * np.linalg.norm(X, 2) ** 2)
    Z = np.zeros((X.shape[1], Y.shape[1]))
    for _ in range(4000):
        U, values, V = np.linalg.svd(Z - step * 2 * X.T @ (X @ Z - targets), full_matrices=False)
        Z = U * np.maximum(values - 2 * l2 * step, 0) @ V
    nuclear = np.linalg.svd(Z, compute_uv=False).sum()
    expected = ((targets - X @ Z) ** 2).sum() + 2 * l2 * nuclear
    model = Leml(rank=5, l2=l2, sweeps=3000, tol=0, cg_steps=50, **PLAIN).fit(X, Y)
    assert model.objective_[-1] == pytest.approx(expected, rel=1e-7)
    np.testing.assert_allclose(model.W_ @ model.H_.T, Z, atol=1e-4)


def test_with_hardly_any_penalty_it_is_least_squares():
    X, Y = small()
    expected = np.linalg.lstsq(X, Y.toarray(), rcond=None)[0]
    model = Leml(rank=5, l2=1e-7, sweeps=200, tol=0, cg_steps=100, **PLAIN).fit(X, Y)
    np.testing.assert_allclose(model.W_ @ model.H_.T, expected, atol=1e-5)


@pytest.mark.parametrize("cg_steps", [1, 3, 50])
def test_the_objective_falls_in_every_sweep_and_is_what_it_says(cg_steps):
    X, Y = small(seed=3, rows=60, features=12, labels=20)
    options = {"rank": 4, "l2": 0.5, "tol": 0, "cg_steps": cg_steps, **PLAIN}
    model = Leml(sweeps=25, **options).fit(sparse.csr_matrix(X), Y)
    assert len(model.objective_) == 25
    assert (np.diff(model.objective_) <= 1e-10 * model.objective_[0]).all()
    assert model.objective_[-1] == pytest.approx(objective(X, Y, model.W_, model.H_, 0.5))
    first = Leml(sweeps=1, **options).fit(sparse.csr_matrix(X), Y)
    assert first.objective_[0] == pytest.approx(objective(X, Y, first.W_, first.H_, 0.5))


def test_the_tolerance_ends_the_fit():
    X, Y = small()
    model = Leml(rank=2, sweeps=1000, tol=1e-3, **PLAIN).fit(X, Y)
    gains = -np.diff(model.objective_) / model.objective_[:-1]
    assert len(model.objective_) < 1000
    assert gains[-1] < 1e-3
    assert (gains[:-1] >= 1e-3).all()


def test_the_ridge_solver_agrees_with_dense_systems():
    generator = np.random.default_rng(0)
    X = sparse.random_array((40, 9), density=0.4, rng=generator, format="csr")
    X = sparse.csr_matrix(X @ sparse.diags_array(10.0 ** np.arange(-4, 5)))  # badly scaled
    right = generator.standard_normal((9, 4))
    right[:, 2] = 0
    scales = np.array([1.0, 0.0, 3.0, 50.0])
    gram = (X.T @ X).toarray()
    expected = [
        np.linalg.solve(scale * gram + 0.3 * np.eye(9), right[:, column])
        for column, scale in enumerate(scales)
    ]
    for start in (None, generator.standard_normal((9, 4))):
        solved = RidgeSolver(X, 0.3).solve(right, scales=scales, start=start, tol=1e-13)
        np.testing.assert_allclose(solved, np.transpose(expected), rtol=1e-6, atol=1e-9)


# memory --------------------------------------------------------------------------------------


def test_a_matrix_of_rows_by_labels_is_never_held():
    rows, labels, rank = 2000, 50_000, 3
    generator = np.random.default_rng(0)
    X = sparse.csr_matrix(sparse.random_array((rows, 50), density=0.1, rng=generator))
    Y = sparse.csr_matrix(sparse.random_array((rows, labels), density=1e-4, rng=generator))
    tracemalloc.start()
    top = Leml(rank=rank, sweeps=2, random_state=0).fit(X, Y).predict(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert top.shape == (2000, 5)
    assert peak < rows * labels  # bytes: an eighth of such a matrix


# prediction ----------------------------------------------------------------------------------


def test_predictions_are_the_labels_with_the_highest_scores_best_first():
    X, Y = small(rows=40)
    model = Leml(rank=3, random_state=0).fit(X, Y)
    unit = np.hstack([X / np.linalg.norm(X, axis=1, keepdims=True), np.ones((40, 1))])
    scores = unit @ model.W_ @ model.H_.T
    top, given = model.predict(X, k=8, return_scores=True)
    assert top.dtype == np.int64
    np.testing.assert_array_equal(top, np.argsort(-scores, axis=1))
    np.testing.assert_allclose(given, -np.sort(-scores, axis=1), atol=1e-12)
    np.testing.assert_array_equal(model.predict(sparse.coo_array(X)), top[:, :5])


def test_predictions_do_not_depend_on_the_blocks(monkeypatch):
    X, Y = small(rows=40)
    model = Leml(rank=3, random_state=0).fit(X, Y)
    whole = model.predict(X, k=3)
    monkeypatch.setattr("leml.BLOCK", 20)
    np.testing.assert_array_equal(model.predict(X, k=3), whole)


def test_the_best_columns_are_those_of_a_full_sort():
    scores = np.random.default_rng(0).standard_normal((30, 11))
    for k in (1, 4, 11):
        np.testing.assert_array_equal(best_columns(scores, k), np.argsort(-scores)[:, :k])
    assert best_columns(np.array([[1.0, 2.0, 2.0, 0.0]]), 3).tolist() == [[1, 2, 0]]


def test_it_learns_what_the_frequency_of_labels_does_not_say():
    X, Y = small(seed=5, rows=600, features=10, labels=30)
    train, test = slice(0, 400), slice(400, 600)
    top = Leml(rank=4, random_state=0).fit(X[train], Y[train]).predict(X[test], k=1)
    frequent = Y[train].sum(axis=0).argmax()
    relevant = Y[test].toarray()
    assert relevant[np.arange(200), top[:, 0]].mean() > relevant[:, frequent].mean() + 0.3


def test_lengths_of_rows_do_not_matter_when_they_are_scaled():
    X, Y = small()
    lengths = np.random.default_rng(0).uniform(0.1, 10, size=(len(X), 1))
    model = Leml(rank=2, random_state=0).fit(X, Y)
    scaled = clone(model).fit(X * lengths, Y)
    np.testing.assert_allclose(scaled.H_, model.H_, atol=1e-8)


def test_a_row_without_features_gets_the_frequent_labels_by_the_intercept():
    generator = np.random.default_rng(0)
    Y = generator.random((2000, 4)) < [0.2, 0.8, 0.4, 0.6]
    X = generator.standard_normal((2000, 3))
    model = Leml(rank=4, l2=0.1, random_state=0).fit(X, sparse.csr_matrix(Y))
    top, scores = model.predict(np.zeros((1, 3)), k=4, return_scores=True)
    assert top.tolist() == [[1, 3, 2, 0]]
    shares = Y[Y.any(axis=1)].mean(axis=0)
    np.testing.assert_allclose(scores[0], shares[top[0]], atol=0.02)


# what is given -------------------------------------------------------------------------------


def test_rows_without_labels_change_nothing():
    X, Y = small()
    empty = sparse.csr_matrix((3, Y.shape[1]))
    more_X, more_Y = np.vstack([X, np.ones((3, X.shape[1]))]), sparse.vstack([Y, empty])
    model = Leml(rank=2, random_state=0).fit(X, Y)
    np.testing.assert_array_equal(clone(model).fit(more_X, more_Y).H_, model.H_)


def test_only_where_y_is_not_zero_matters_and_y_is_left_as_it_was():
    X, Y = small()
    odd = sparse.csr_matrix((7.0 * Y.data, Y.indices, Y.indptr), shape=Y.shape)
    odd.data[0] = 0.0
    odd[0, odd.indices[0]] = 0.0  # stored all the same
    kept = odd.copy()
    plain = Y.copy()
    plain.data[0] = 0
    model = Leml(rank=2, random_state=0).fit(X, odd)
    np.testing.assert_array_equal(clone(model).fit(X, plain.astype(bool)).H_, model.H_)
    assert odd.nnz == kept.nnz
    np.testing.assert_array_equal(odd.data, kept.data)


def test_the_same_seed_gives_the_same_model_and_another_seed_another():
    X, Y = small()
    model = Leml(rank=2, sweeps=2, random_state=4).fit(X, Y)
    np.testing.assert_array_equal(clone(model).fit(X, Y).W_, model.W_)
    other = clone(model).set_params(random_state=5).fit(X, Y)
    assert not np.allclose(other.W_, model.W_)


def test_those_who_watch_see_every_sweep():
    X, Y = small()
    seen = []
    model = Leml(rank=2, sweeps=4, tol=0, random_state=0).fit(X, Y, watch=seen.append)
    assert [(step.done, step.total, step.unit) for step in seen] == [
        (sweep, 4, "sweep") for sweep in (1, 2, 3, 4)
    ]
    np.testing.assert_allclose([step.loss for step in seen], model.objective_ / len(X))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rank": 0}, "rank is a whole number, 1 or more, not 0"),
        ({"sweeps": 1.5}, "sweeps is a whole number"),
        ({"cg_steps": True}, "cg_steps is a whole number"),
        ({"l2": 0.0}, "l2 is a number above 0, not 0.0"),
        ({"l2": np.inf}, "l2 is a number above 0"),
        ({"tol": -1e-3}, "tol is a number above 0 or 0"),
        ({"random_state": -1}, "random_state is a whole number"),
    ],
)
def test_settings_that_mean_nothing_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        Leml(**settings).fit(*small())


def broken(**changes):
    X, Y = small()
    return changes.get("X", X), changes.get("Y", Y)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (broken(X=np.full((25, 5), np.nan)), "X contains NaN"),
        (broken(X=np.full((25, 5), np.inf)), "X contains infinity"),
        (broken(X=np.full((25, 5), 1e200)), r"X has values beyond 1e\+100: scale the features"),
        (broken(X=np.ones(25)), "Expected 2D array"),
        (broken(X=np.ones((24, 5))), "Y has 25 rows, but X has 24: give one for each"),
        (broken(Y=sparse.csr_matrix(np.full((25, 3), np.nan))), "Y contains NaN"),
        (broken(Y=sparse.csr_matrix((25, 3))), "no row of Y has a label"),
        (broken(Y=np.ones(25)), r"Y is \[rows, labels\]"),
    ],
)
def test_bad_data_is_refused(given, message):
    with pytest.raises(ValueError, match=message):
        Leml(rank=2).fit(*given)


def test_bad_questions_are_refused():
    X, Y = small()
    model = Leml(rank=2, random_state=0)
    with pytest.raises(NotFittedError):
        model.predict(X)
    model.fit(X, Y)
    with pytest.raises(ValueError, match="k is 9, but the model knows 8 labels: ask for fewer"):
        model.predict(X, k=9)
    with pytest.raises(ValueError, match="k is a whole number, 1 or more, not 0"):
        model.predict(X, k=0)
    with pytest.raises(ValueError, match="4 features"):
        model.predict(X[:, :4])
    with pytest.raises(ValueError, match="NaN"):
        model.predict(X * np.nan)


def test_the_example_of_its_documentation():
    assert doctest.testmod(leml) == (0, 7)
