"""`label_sets`: multi-label data with the statistics of the real sets, that can be learned from."""

import numpy as np
import pytest
from scipy import sparse

import tierrank as tr
from real_data import real
from tierrank.data.synthetic import SHAPES, LatentModel, RowTopics, label_sets

# features, labels, rows to train on and to test with, labels a row: Ma et al. (2021), table 3
TABLE = {
    "delicious-1k": (500, 983, 12_920, 3_185, 19.03),
    "eurlex-4k": (5_000, 3_993, 15_539, 3_809, 5.31),
    "wiki10-31k": (101_938, 30_938, 14_146, 6_616, 18.64),
    "delicious-200k": (782_585, 205_443, 196_606, 100_095, 75.54),
}


@pytest.fixture(scope="module")
def eurlex():
    return label_sets("eurlex-4k", rows=(4000, 1000), seed=3)


def label_counts(data):
    """How many rows each label has, most frequent first."""
    return np.sort(np.bincount(data.Y.indices, minlength=data.n_labels))[::-1]


def precision(top, Y):
    rows = np.arange(len(top)).repeat(top.shape[1])
    return float(np.asarray(Y[rows, top.ravel()]).mean())


def popular(data, k=5):
    return np.argsort(-np.asarray(data.Y.sum(axis=0)).ravel(), kind="stable")[:k]


def by_neighbours(train, test, neighbours=20, k=5):
    """Labels of the nearest training rows, weighted by the cosine."""
    similar = (test.X @ train.X.T).toarray()
    nearest = np.argsort(-similar, axis=1)[:, :neighbours]
    weights = np.zeros_like(similar)
    np.put_along_axis(weights, nearest, np.take_along_axis(similar, nearest, 1), 1)
    return np.argsort(-(sparse.csr_matrix(weights) @ train.Y).toarray(), axis=1)[:, :k]


def test_the_shapes_are_those_of_the_repository():
    found = {
        name: (s.features.n, s.labels.n, *s.rows, s.labels.a_row) for name, s in SHAPES.items()
    }
    assert found == TABLE


@pytest.mark.parametrize("like", TABLE)
def test_scaled_sets_have_the_sizes_and_the_labels_a_row_of_the_table(like):
    features, labels, train_rows, test_rows, labels_a_row = TABLE[like]
    scale = 2000 / train_rows
    train, test = label_sets(like, scale=scale, labels=labels // 4, seed=1)
    for data, rows in ((train, train_rows), (test, test_rows)):
        assert data.X.shape == (round(rows * scale), round(features * scale))
        assert data.Y.shape == (round(rows * scale), labels // 4)
        sizes = np.diff(data.Y.indptr)
        assert sizes.min() >= 1
        error = sizes.std() / np.sqrt(len(sizes))
        assert sizes.mean() == pytest.approx(labels_a_row, abs=5 * error)


@pytest.mark.parametrize(("like", "features_a_row"), [("delicious-1k", 18.5), ("eurlex-4k", 236)])
def test_a_full_set_has_the_statistics_of_the_table(like, features_a_row):
    features, labels, train_rows, test_rows, labels_a_row = TABLE[like]
    train, test = label_sets(like, seed=2)
    assert train.X.shape == (train_rows, features)
    assert test.X.shape == (test_rows, features)
    assert train.Y.shape == (train_rows, labels)
    assert test.Y.shape == (test_rows, labels)
    both = (train.Y.nnz + test.Y.nnz) / (train_rows + test_rows)
    assert both == pytest.approx(labels_a_row, rel=0.01)
    assert train.X.nnz / train_rows == pytest.approx(features_a_row, rel=0.05)
    spread = SHAPES[like].labels.spread
    assert np.diff(train.Y.indptr).std() == pytest.approx(spread, rel=0.1)


def test_a_few_labels_are_frequent_and_most_are_rare(eurlex):
    counts = label_counts(eurlex[0])
    assert counts[:40].sum() > 0.15 * counts.sum()  # one in a hundred
    assert np.median(counts) < 0.5 * counts.mean()
    # a straight line on logarithmic paper, where counts are large enough to see one
    ranks = np.array([30, 60, 120, 240, 480])
    slopes = np.diff(np.log(counts[ranks])) / np.diff(np.log(ranks))
    assert slopes.max() < -0.5
    assert slopes.min() > -1.8


def test_the_numbers_of_labels_and_features_say_nothing_of_their_frequency(eurlex):
    for matrix in (eurlex[0].X, eurlex[0].Y):
        counts = np.bincount(matrix.indices, minlength=matrix.shape[1])
        correlation = np.corrcoef(counts, np.arange(len(counts)))[0, 1]
        assert abs(correlation) < 5 / np.sqrt(len(counts))


def test_matrices_are_canonical_and_features_are_positive_of_norm_1(eurlex):
    for data in eurlex:
        assert isinstance(data, tr.data.MultiLabelData)
        for matrix in (data.X, data.Y):
            assert matrix.dtype == np.float32
            assert matrix.indices.dtype == np.int32
            again = sparse.csr_matrix((matrix.data, matrix.indices, matrix.indptr), matrix.shape)
            assert again.has_canonical_format  # looked at anew: sorted, and none twice
        assert (data.Y.data == 1).all()
        assert data.X.data.min() > 0
        np.testing.assert_allclose(np.sqrt(data.X.multiply(data.X).sum(axis=1)), 1, rtol=1e-5)


def test_rare_features_have_larger_values(eurlex):
    X = eurlex[0].X
    counts = np.bincount(X.indices, minlength=X.shape[1])
    means = np.bincount(X.indices, X.data, X.shape[1]) / np.maximum(counts, 1)
    order = np.argsort(-counts)
    assert means[order[:100]].mean() < 0.7 * means[order[-1000:]].mean()


def test_neighbours_predict_better_than_popularity_and_worse_than_the_truth():
    model = LatentModel.build(np.random.default_rng(5), SHAPES["eurlex-4k"])
    generator = np.random.default_rng(6)
    train = model.draw(generator, 3000)
    about = RowTopics.draw(generator, 300, model.labels.popularity())
    test = tr.data.MultiLabelData(
        model.feature_matrix(generator, about), model.label_matrix(generator, about)
    )
    popularity = precision(np.tile(popular(train), (300, 1)), test.Y)
    neighbours = precision(by_neighbours(train, test), test.Y)
    truth = precision(np.argsort(-model.labels.worths(about), axis=1)[:, :5], test.Y)
    assert popularity < 0.1
    assert 0.25 < neighbours < truth < 0.8
    # and it is the features that they learn from
    shuffled = tr.data.MultiLabelData(test.X[generator.permutation(300)], test.Y)
    assert precision(by_neighbours(train, shuffled), test.Y) < popularity + 0.03


@pytest.mark.parametrize(
    ("like", "scale"),
    [("delicious-1k", 0.5), ("eurlex-4k", 0.1), ("wiki10-31k", 0.05), ("delicious-200k", 0.01)],
)
def test_small_sets_can_be_learned_from_too(like, scale):
    train, test = label_sets(like, scale=scale, rows=(2500, 400), seed=4)
    popularity = precision(np.tile(popular(train), (400, 1)), test.Y)
    assert precision(by_neighbours(train, test, neighbours=40), test.Y) > 1.15 * popularity


def test_train_and_test_come_from_one_model(eurlex):
    train, test = eurlex
    # that neighbours found in the training rows help says so for topics; here, for popularity
    expected = precision(np.tile(popular(train), (len(train), 1)), train.Y)
    assert precision(np.tile(popular(train), (len(test), 1)), test.Y) > 0.8 * expected


def test_the_same_seed_gives_the_same_data():
    arguments = {"like": "wiki10-31k", "scale": 0.01}
    first, again = label_sets(**arguments, seed=7), label_sets(**arguments, seed=7)
    other = label_sets(**arguments, seed=8)
    for a, b, c in zip(first, again, other, strict=True):
        for name in ("X", "Y"):
            x, y, z = getattr(a, name), getattr(b, name), getattr(c, name)
            np.testing.assert_array_equal(x.indptr, y.indptr)
            np.testing.assert_array_equal(x.indices, y.indices)
            np.testing.assert_array_equal(x.data, y.data)
            assert not np.array_equal(x.indices, z.indices)


def test_how_many_rows_test_has_does_not_change_train():
    (few, _), (many, _) = (
        label_sets("eurlex-4k", scale=0.05, rows=(300, n), seed=9) for n in (1, 200)
    )
    assert (few.Y != many.Y).nnz == 0
    assert (few.X != many.X).nnz == 0


def test_train_and_test_have_different_rows():
    train, test = label_sets("eurlex-4k", scale=0.1, rows=(500, 500), seed=10)
    assert (train.X @ test.X.T).max() < 0.999


@pytest.mark.parametrize("share", [0.0, 0.05, 0.5])
def test_as_many_rows_are_empty_as_asked_for(share):
    for data in label_sets("delicious-1k", rows=(400, 200), empty_rows=share, seed=11):
        sizes = np.diff(data.Y.indptr)
        assert (sizes == 0).sum() == share * len(data)
        assert np.diff(data.X.indptr).min() >= 1
        assert sizes[sizes > 0].mean() == pytest.approx(19, rel=0.1)


def test_means_a_row_can_be_asked_for():
    train, _ = label_sets(
        "delicious-1k",
        rows=(2000, 10),
        labels=5000,
        features=3000,
        labels_a_row=40.5,
        features_a_row=7,
        seed=12,
    )
    assert train.Y.shape == (2000, 5000)
    assert train.Y.nnz / 2000 == pytest.approx(40.5, rel=0.03)
    assert train.X.shape == (2000, 3000)
    assert train.X.nnz / 2000 == pytest.approx(7, rel=0.1)


def test_many_labels_cost_no_rows_times_labels():
    """[rows, labels] would take 32 GB here."""
    train, test = label_sets(rows=(20_000, 10), labels=400_000, features=500, labels_a_row=2)
    assert train.Y.shape == (20_000, 400_000)
    assert test.n_labels == 400_000


@pytest.mark.parametrize("labels_a_row", [1, 1.0, 1.5, 3])
def test_the_smallest_sets_are_possible(labels_a_row):
    train, test = label_sets(
        rows=(20, 1), labels=6, features=2, labels_a_row=labels_a_row, features_a_row=1
    )
    sizes = np.diff(train.Y.indptr)
    assert 1 <= sizes.min() <= sizes.max() <= 3
    assert len(test) == 1
    np.testing.assert_array_equal(train.X.data, 1)


def test_a_tiny_scale_leaves_something():
    train, test = label_sets("delicious-1k", scale=1e-6)
    assert train.X.shape == train.Y.shape == test.X.shape == (1, 2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"like": "amazon"}, "no set 'amazon' .* Choose one of delicious-1k, eurlex-4k, wiki10"),
        ({"scale": 0}, "scale is 0: give a finite number above 0"),
        ({"scale": float("inf")}, "scale is inf"),
        ({"scale": float("nan")}, "scale is nan"),
        ({"rows": (5,)}, "rows has 1 numbers: give two"),
        ({"rows": (0, 5)}, "a number of rows is 0: give at least 1"),
        ({"rows": (5, 2.5)}, "a number of rows is 2.5: give a whole number"),
        ({"labels": 1}, "labels is 1: give at least 2"),
        ({"features": "many"}, "features is 'many': give a whole number"),
        ({"labels": 11, "labels_a_row": 5.5}, "with 11 labels, give a number from 1 to 5"),
        ({"labels_a_row": 0.5}, "labels_a_row is 0.5: with 205,443 labels, give .* from 1 to 102"),
        ({"features_a_row": float("nan")}, "features_a_row is nan"),
        ({"empty_rows": 1}, "empty_rows is 1: give a share from 0 to below 1"),
        ({"empty_rows": -0.1}, "empty_rows is -0.1"),
        ({"empty_rows": float("nan")}, "empty_rows is nan"),
        ({"seed": -1}, "seed is -1: give at least 0"),
        ({"seed": None}, "seed is None: give a whole number"),
    ],
)
def test_what_cannot_be_drawn_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        label_sets(**arguments)


@pytest.mark.data
def test_delicious_is_like_the_real_one():
    theirs = tr.data.read_xc(real("delicious", "train.txt.xz"))
    ours, _ = label_sets("delicious-1k", seed=13)
    assert ours.X.shape == theirs.X.shape
    assert ours.Y.shape == theirs.Y.shape
    sizes, real_sizes = np.diff(ours.Y.indptr), np.diff(theirs.Y.indptr)
    assert sizes.mean() == pytest.approx(real_sizes.mean(), rel=0.02)
    assert sizes.std() == pytest.approx(real_sizes.std(), rel=0.1)
    assert sizes.max() == real_sizes.max()
    np.testing.assert_allclose(
        np.quantile(sizes, [0.1, 0.25, 0.5, 0.75, 0.9]),
        np.quantile(real_sizes, [0.1, 0.25, 0.5, 0.75, 0.9]),
        atol=1.5,
    )
    counts, real_counts = label_counts(ours), label_counts(theirs)
    ranks = [0, 5, 20, 50, 100, 200, 400, 600, 800, 950]
    np.testing.assert_allclose(counts[ranks], real_counts[ranks], rtol=0.3)
    words, real_words = np.diff(ours.X.indptr), np.diff(theirs.X.indptr)
    np.testing.assert_allclose(
        np.quantile(words, [0.25, 0.5, 0.75, 0.9, 0.95]),
        np.quantile(real_words, [0.25, 0.5, 0.75, 0.9, 0.95]),
        rtol=0.25,
        atol=1,
    )
