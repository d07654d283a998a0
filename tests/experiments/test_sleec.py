"""Sleec: its parts against brute force, what it learns, the labels it gives, bad input."""

import doctest

import numpy as np
import pytest
import scipy.sparse as sparse
import sleec
from leml import Leml, best_of_products, best_of_sparse, unit_rows
from scipy.optimize import minimize
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sleec import (
    Sleec,
    label_similarities,
    nearest_centres,
    singular_value_projection,
    spherical_clusters,
)

from real_data import real
from tierrank.data import read_xc

SMALL = {"rank": 6, "neighbours": 10, "voters": 7, "random_state": 0}


def topics(seed=0, rows=300, features=40, labels=50, kinds=8):
    """Rows of a few kinds, each with features and labels of its own, and noise in both."""
    generator = np.random.default_rng(seed)
    kind = generator.integers(kinds, size=rows)
    has_feature = generator.random((kinds, features)) < 0.2
    has_label = generator.random((kinds, labels)) < 0.15
    X = np.where(has_feature[kind], generator.random((rows, features)) < 0.6, 0)
    X = X + (generator.random((rows, features)) < 0.03)
    Y = has_label[kind] & (generator.random((rows, labels)) < 0.7)
    Y |= generator.random((rows, labels)) < 0.01
    Y[:, 0] |= ~Y.any(axis=1)
    return sparse.csr_matrix(X.astype(float)), sparse.csr_matrix(Y.astype(float))


def unit(array):
    lengths = np.linalg.norm(array, axis=1, keepdims=True)
    return array / np.where(lengths > 0, lengths, 1)


# singular value projection -------------------------------------------------------------------


def test_of_a_matrix_known_throughout_it_is_the_best_of_its_rank():
    """Eckart and Young: the largest eigenvalues; here some are negative, and left out."""
    generator = np.random.default_rng(0)
    half = generator.standard_normal((40, 40))
    whole = half + half.T
    values, vectors = np.linalg.eigh(whole)
    expected = (vectors[:, -5:] * values[-5:]) @ vectors[:, -5:].T
    known = sparse.csr_matrix(whole)
    Z = singular_value_projection(known, 5, generator, steps=100, tol=0)
    np.testing.assert_allclose(Z @ Z.T, expected, atol=1e-5)


def test_it_recovers_a_planted_matrix_from_the_entries_of_neighbours():
    generator = np.random.default_rng(1)
    planted = generator.random((120, 3))
    whole = planted @ planted.T
    near = np.argsort(-whole, axis=1)[:, :40]
    known = np.zeros(whole.shape, dtype=bool)
    np.put_along_axis(known, near, True, axis=1)
    known |= known.T
    similarities = sparse.csr_matrix(np.where(known, whole, 0))
    Z = singular_value_projection(similarities, 3, generator, steps=2000, tol=1e-9)
    error = np.abs(Z @ Z.T - whole)
    assert error[known].max() < 1e-3
    assert known.mean() < 0.6
    assert error[~known].mean() < 0.01 * whole[~known].mean()


def test_it_comes_as_low_as_descent_on_the_embeddings_themselves():
    _, Y = topics(rows=50)
    similarities = label_similarities(Y, 12)
    known = similarities.toarray() > 0
    whole = similarities.toarray()

    def loss(point):
        Z = point.reshape(50, 4)
        error = np.where(known, Z @ Z.T - whole, 0)
        return (error**2).sum(), (4 * error @ Z).ravel()

    generator = np.random.default_rng(0)
    starts = 0.3 * generator.standard_normal((5, 200))
    best = min(minimize(loss, start, jac=True, method="L-BFGS-B").fun for start in starts)
    Z = singular_value_projection(similarities, 4, generator, steps=1000, tol=1e-7)
    assert loss(Z.ravel())[0] < 1.1 * best  # there are several minima

    plain = np.zeros((50, 50))  # singular value projection as it is written, with a step of 1
    for _ in range(100):
        values, vectors = np.linalg.eigh(np.where(known, whole, plain))
        plain = (vectors[:, -4:] * np.maximum(values[-4:], 0)) @ vectors[:, -4:].T
    Z = singular_value_projection(similarities, 4, generator, steps=100, tol=0)
    assert loss(Z.ravel())[0] < np.where(known, plain - whole, 0).ravel() @ (plain - whole).ravel()


def test_more_steps_never_fit_worse():
    _, Y = topics(rows=80)
    similarities = label_similarities(Y, 15)

    def misfit(steps):
        Z = singular_value_projection(similarities, 5, np.random.default_rng(0), steps=steps, tol=0)
        at = similarities.nonzero()
        return np.square(similarities.toarray()[at] - (Z @ Z.T)[at]).sum()

    misfits = [misfit(steps) for steps in range(1, 25)]
    assert (np.diff(misfits) <= 1e-12).all()
    assert misfits[-1] < misfits[0] / 2


def test_the_rank_is_at_most_the_number_of_rows():
    similarities = label_similarities(sparse.csr_matrix([[1.0, 1.0], [0.0, 1.0]]), 5)
    Z = singular_value_projection(similarities, 10, np.random.default_rng(0), steps=200, tol=0)
    assert Z.shape == (2, 2)
    np.testing.assert_allclose(Z @ Z.T, [[1, np.sqrt(0.5)], [np.sqrt(0.5), 1]], atol=1e-8)


# neighbours ----------------------------------------------------------------------------------


@pytest.mark.parametrize("block", [2**22, 200])
def test_label_neighbours_are_those_of_brute_force(monkeypatch, block):
    monkeypatch.setattr("leml.BLOCK", block)
    _, Y = topics(rows=90)
    found = label_similarities(Y, 8)
    cosines = unit(Y.toarray()) @ unit(Y.toarray()).T
    given = found.toarray()
    np.testing.assert_allclose(given, given.T)
    np.testing.assert_allclose(given.diagonal(), 1)
    np.testing.assert_allclose(given[given > 0], cosines[given > 0])
    assert found.has_sorted_indices
    # a row has its own 8 nearest, and others only if they have it among theirs
    eighth = np.sort(cosines, axis=1)[:, -8]
    left_out = given == 0
    assert (
        cosines[left_out] <= np.maximum(eighth[:, None], 0)[np.nonzero(left_out)[0], 0] + 1e-9
    ).all()
    lowest = np.minimum(eighth[:, None], eighth[None, :])
    assert (cosines[given > 0] >= lowest[given > 0] - 1e-9).all()
    assert (np.count_nonzero(given, axis=1) >= np.minimum(8, (cosines > 0).sum(axis=1))).all()


def test_rows_that_share_no_label_are_not_neighbours_and_each_is_its_own():
    Y = sparse.csr_matrix([[1, 1, 0, 0]] * 5 + [[0, 0, 1, 0], [0, 0, 0, 1]], dtype=float)
    given = label_similarities(Y, 3).toarray()
    np.testing.assert_allclose(given.diagonal(), 1)
    assert (given[:5, 5:] == 0).all()
    assert given[5, 6] == 0


def test_nearest_embeddings_are_those_of_brute_force(monkeypatch):
    generator = np.random.default_rng(0)
    queries = unit(generator.standard_normal((23, 4)))
    points = unit(generator.standard_normal((31, 4)))
    distances = cdist(queries, points, "cosine")
    expected = np.argsort(distances, axis=1)[:, :6]
    for block in (2**22, 50):
        monkeypatch.setattr("leml.BLOCK", block)
        near, cosines = best_of_products(queries, points, 6)
        np.testing.assert_array_equal(near, expected)
        np.testing.assert_allclose(1 - cosines, np.take_along_axis(distances, expected, axis=1))


# clusters ------------------------------------------------------------------------------------


def test_clusters_are_at_rest_centres_are_means_and_the_nearest_ones():
    X, _ = topics(rows=200)
    rows = unit_rows(X)
    member, centres = spherical_clusters(rows, 6, np.random.default_rng(0), rounds=100)
    assert sorted(set(member)) == list(range(centres.shape[0]))
    dense = rows.toarray()
    means = unit(np.array([dense[member == number].sum(axis=0) for number in range(6)]))
    np.testing.assert_allclose(centres.toarray(), means, atol=1e-12)
    np.testing.assert_array_equal(member, (dense @ means.T).argmax(axis=1))
    np.testing.assert_array_equal(nearest_centres(rows, centres), member)


def test_rows_in_orthogonal_directions_are_told_apart():
    directions = np.repeat(np.arange(3), [4, 9, 6])
    rows = unit_rows(sparse.csr_matrix(np.eye(3)[directions] + 0.01))
    found = {
        tuple(np.unique(directions[member == number]).tolist())
        for member, centres in [
            spherical_clusters(rows, 3, np.random.default_rng(s)) for s in range(9)
        ]
        for number in range(centres.shape[0])
        if centres.shape[0] == 3
    }
    assert found == {(0,), (1,), (2,)}


def test_clusters_without_rows_are_dropped():
    rows = unit_rows(sparse.csr_matrix([[1.0, 0.0]] * 5 + [[0.0, 0.0]]))
    member, centres = spherical_clusters(rows, 50, np.random.default_rng(0))
    assert centres.shape[0] <= 2
    assert sorted(set(member)) == list(range(centres.shape[0]))


# the best labels of sparse scores ------------------------------------------------------------


@pytest.mark.parametrize("k", [1, 4, 12])
def test_the_best_labels_of_sparse_scores_are_those_of_a_full_sort(k):
    """Equal scores: the more frequent label first, then the lower number."""
    generator = np.random.default_rng(k)
    scores = generator.integers(0, 4, size=(40, 12)) * (generator.random((40, 12)) < 0.4) / 4
    scores[3] = 0
    frequency = generator.integers(0, 5, size=12)
    labels, values = best_of_sparse(sparse.csr_matrix(scores), k, frequency)
    expected = [np.lexsort((np.arange(12), -frequency, -row))[:k] for row in scores]
    np.testing.assert_array_equal(labels, expected)
    np.testing.assert_array_equal(values, np.take_along_axis(scores, labels, axis=1))
    assert labels.dtype == np.int64


# the whole -----------------------------------------------------------------------------------


@pytest.mark.parametrize("sharpness", [0, 3.5])
def test_scores_are_the_mean_shares_of_the_nearest_rows_that_have_the_label(sharpness):
    X, Y = topics()
    model = Sleec(clusters=3, learners=2, sharpness=sharpness, **SMALL).fit(X[:250], Y[:250])
    rows = X[250:].toarray()
    scores = np.zeros((50, 50))
    for learner in model.learners_:
        cluster = (unit(rows) @ learner.centres.toarray().T).argmax(axis=1)
        for row, number in enumerate(cluster):
            part = learner.parts[number]
            features = np.append(unit(rows)[row], 1.0)[part.features]
            cosines = unit(part.points) @ unit(features[None] @ part.weights)[0]
            voters = np.argsort(-cosines, kind="stable")[:7]
            weights = np.maximum(cosines[voters], 0) ** sharpness
            scores[row] += weights / weights.sum() @ Y[part.rows[voters]].toarray() / 2
    top, given = model.predict(X[250:], k=50, return_scores=True)
    expected = -np.sort(-scores, axis=1)
    # float32 may see a tie between two neighbours the other way round
    assert np.isclose(given, expected, atol=1e-5).all(axis=1).mean() > 0.9
    assert np.isclose(np.take_along_axis(scores, top, axis=1), given, atol=1e-5).mean() > 0.9


def test_it_learns_what_the_frequency_of_labels_does_not_say():
    X, Y = topics(seed=2, rows=900)
    train, test = slice(0, 600), slice(600, 900)
    relevant = Y[test].toarray()
    frequent = np.argsort(-np.asarray(Y[train].sum(axis=0)).ravel())[:3]
    model = Sleec(clusters=2, learners=2, rank=10, neighbours=20, voters=15, random_state=0)
    top = model.fit(X[train], Y[train]).predict(X[test], k=3)
    precision = np.take_along_axis(relevant, top, axis=1).mean()
    assert precision > relevant[:, frequent].mean() + 0.2
    chance = np.take_along_axis(relevant, model.predict(X[train], k=3)[:300], axis=1).mean()
    assert precision > chance + 0.2


@pytest.mark.parametrize("clusters", [1, 4, 10_000])
def test_any_number_of_clusters_will_do(clusters):
    X, Y = topics(rows=60)
    model = Sleec(clusters=clusters, learners=2, **SMALL).fit(X, Y)
    for learner in model.learners_:
        assert len(learner.parts) == learner.centres.shape[0] <= min(clusters, 60)
        members = np.concatenate([part.rows for part in learner.parts])
        np.testing.assert_array_equal(np.sort(members), np.arange(60))
    top = model.predict(X)
    assert top.shape == (60, 5)
    assert all(len(set(row)) == 5 for row in top.tolist())


def test_without_a_number_there_is_a_cluster_for_every_4000_rows(monkeypatch):
    X, Y = topics(rows=60)
    assert len(Sleec(learners=1, **SMALL).fit(X, Y).learners_[0].parts) == 1
    monkeypatch.setattr("sleec.ROWS_A_CLUSTER", 25)
    assert len(Sleec(learners=1, **SMALL).fit(X, Y).learners_[0].parts) == 3


def test_rows_without_labels_change_nothing():
    X, Y = topics(rows=60)
    model = Sleec(clusters=2, learners=2, **SMALL).fit(X, Y)
    more_X = sparse.vstack([X, X[:9]])
    more_Y = sparse.vstack([Y, sparse.csr_matrix((9, 50))])
    other = clone(model).fit(more_X, more_Y)
    np.testing.assert_array_equal(other.predict(X), model.predict(X))
    assert other.Y_.shape[0] == 60


def test_a_row_without_features_gets_labels_too():
    X, Y = topics(rows=60)
    X = sparse.csr_matrix(np.where(np.arange(60)[:, None] == 7, 0, X.toarray()))
    top = Sleec(clusters=2, learners=1, **SMALL).fit(X, Y).predict(sparse.csr_matrix((1, 40)))
    assert len(set(top[0].tolist())) == 5


def test_votes_weigh_the_same_where_no_angle_is_below_90_degrees():
    """An embedding of 0 has no angle to any other: without an intercept, a row of 0."""
    X, Y = topics(rows=60)
    model = Sleec(clusters=1, learners=1, intercept=False, sharpness=8, **SMALL).fit(X, Y)
    scores = model.predict(sparse.csr_matrix((1, 40)), k=50, return_scores=True)[1]
    np.testing.assert_allclose(scores * 7, np.round(scores * 7), atol=1e-12)
    assert scores.max() > 0


def test_where_votes_run_out_the_frequent_labels_follow():
    X = sparse.csr_matrix(np.repeat(np.eye(2), [3, 5], axis=0))
    Y = sparse.csr_matrix(np.repeat([[1, 0, 0, 0], [0, 0, 1, 1]], [3, 5], axis=0))
    model = Sleec(clusters=1, learners=1, rank=2, neighbours=3, voters=2, random_state=0).fit(X, Y)
    top, scores = model.predict(X[:1], k=4, return_scores=True)
    assert top.tolist() == [[0, 2, 3, 1]]
    assert scores.tolist() == [[1, 0, 0, 0]]


def test_predictions_do_not_depend_on_the_blocks_nor_on_how_the_rows_come(monkeypatch):
    X, Y = topics()
    model = Sleec(clusters=3, learners=2, **SMALL).fit(X, Y)
    whole, scores = model.predict(X, return_scores=True)
    np.testing.assert_array_equal(clone(model).fit(X.toarray(), Y).predict(X.toarray()), whole)
    monkeypatch.setattr("sleec.ROWS_AT_ONCE", 77)
    np.testing.assert_allclose(model.predict(X, return_scores=True)[1], scores, atol=0.03)
    assert (model.predict(X) == whole).mean() > 0.99  # float32 rounds by the shape of a product


def test_the_same_seed_gives_the_same_model_and_learners_do_not_depend_on_later_ones():
    X, Y = topics(rows=100)
    model = Sleec(clusters=3, learners=2, **SMALL).fit(X, Y)
    again = clone(model).fit(X, Y)
    one = clone(model).set_params(learners=1).fit(X, Y)
    other = clone(model).set_params(random_state=1).fit(X, Y)
    first = model.learners_[0].parts[0]
    np.testing.assert_array_equal(
        again.learners_[1].parts[0].points, model.learners_[1].parts[0].points
    )
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    np.testing.assert_array_equal(one.learners_[0].parts[0].rows, first.rows)
    rows = [part.rows.tolist() for part in other.learners_[0].parts]
    assert rows != [part.rows.tolist() for part in model.learners_[0].parts]


def test_those_who_watch_see_every_cluster():
    X, Y = topics(rows=100)
    seen = []
    model = Sleec(clusters=3, learners=2, **SMALL).fit(X, Y, watch=seen.append)
    total = sum(len(learner.parts) for learner in model.learners_)
    expected = [(done, total, "cluster") for done in range(1, total + 1)]
    assert [(step.done, step.total, step.unit) for step in seen] == expected


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"clusters": 0}, "clusters is a whole number, 1 or more, not 0"),
        ({"learners": 0}, "learners is a whole number"),
        ({"rank": 2.0}, "rank is a whole number"),
        ({"neighbours": -1}, "neighbours is a whole number"),
        ({"voters": 0}, "voters is a whole number"),
        ({"sharpness": -1}, "sharpness is a number above 0 or 0"),
        ({"steps": None}, "steps is a whole number"),
        ({"l2": 0}, "l2 is a number above 0"),
    ],
)
def test_settings_that_mean_nothing_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        Sleec(**settings).fit(*topics(rows=20))


def test_bad_data_and_bad_questions_are_refused():
    X, Y = topics(rows=20)
    model = Sleec(learners=1, **SMALL)
    with pytest.raises(NotFittedError):
        model.predict(X)
    with pytest.raises(ValueError, match="Y has 19 rows, but X has 20"):
        model.fit(X, Y[:19])
    with pytest.raises(ValueError, match="X contains NaN"):
        model.fit(X * np.nan, Y)
    with pytest.raises(ValueError, match="no row of Y has a label"):
        model.fit(X, sparse.csr_matrix(Y.shape))
    model.fit(X, Y)
    with pytest.raises(ValueError, match="k is 51, but the model knows 50 labels: ask for fewer"):
        model.predict(X, k=51)
    with pytest.raises(ValueError, match="39 features"):
        model.predict(X[:, :39])


# real data -----------------------------------------------------------------------------------


@pytest.mark.data
@pytest.mark.slow
def test_delicious_is_ranked_about_as_well_as_published():
    """With small settings; published P@1: LEML 65.67, SLEEC 67.59."""
    folder = real("delicious")
    train, test = read_xc(folder / "train.txt.xz"), read_xc(folder / "test.txt.xz")
    relevant = test.Y.toarray() > 0
    leml = Leml(rank=30, sweeps=5, random_state=0)
    sleec = Sleec(clusters=4, learners=1, rank=50, neighbours=20, steps=6, random_state=0)
    for model, published in ((leml, 0.6567), (sleec, 0.6759)):
        top = model.fit(train.X, train.Y).predict(test.X, k=1)
        assert np.take_along_axis(relevant, top, axis=1).mean() > published - 0.03


def test_the_example_of_its_documentation():
    assert doctest.testmod(sleec) == (0, 7)
