"""How entries of X are weighted: as scikit-learn does it, and by what the rows are."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix, random_array
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.preprocessing import normalize

import tierrank as tr
from tierrank.data import read_xc, write_xc
from tierrank.extreme import network
from tierrank.extreme.network import Features

RNG = np.random.default_rng(0)


def counts(rows=40, columns=30, seed=0):
    """Counts; the first row is empty, and no row has the last feature."""
    drawn = np.random.default_rng(seed).poisson(0.4, size=(rows, columns)).astype(np.float32)
    drawn[0] = drawn[:, -1] = 0
    return csr_matrix(drawn)


def reals():
    return csr_matrix(random_array((40, 30), density=0.2, rng=1, dtype=np.float32))


@pytest.mark.parametrize("at_once", [7, 1 << 22])
def test_tf_idf_is_that_of_scikit_learn(at_once, monkeypatch):
    monkeypatch.setattr(network, "AT_ONCE", at_once)
    train, test = counts(), counts(seed=1)
    wanted = TfidfTransformer().fit(train).transform(test).toarray()
    learned = Features.learned(train, "auto")
    assert (learned.weighting, learned.reason) == ("tf-idf", "counts")
    np.testing.assert_allclose(learned(test).toarray(), wanted, rtol=1e-6)
    assert learned(test).dtype == np.float32


def test_a_stored_zero_is_no_entry():
    train = counts()
    stored = train.copy()
    stored.data = stored.data.copy()
    stored.data[5] = 0
    wanted = TfidfTransformer().fit(csr_matrix(stored.toarray())).idf_
    np.testing.assert_allclose(Features.learned(stored, "tf-idf").idf, wanted, rtol=1e-6)


def test_rows_of_length_1_are_those_of_scikit_learn():
    X = reals() * np.float32(-3)
    found = Features.learned(X, "l2")(X)
    np.testing.assert_allclose(found.toarray(), normalize(X).toarray(), rtol=1e-6)
    huge = csr_matrix(np.array([[3e30, 4e30]], np.float32))
    np.testing.assert_allclose(Features("l2")(huge).toarray(), [[0.6, 0.8]], rtol=1e-6)


@pytest.mark.parametrize(
    ("X", "weighting", "reason"),
    [
        (counts(), "tf-idf", "counts"),
        (counts().sign(), "raw", "there or not"),
        (counts().sign() * np.float32(0.5), "raw", "there or not"),
        (reals(), "l2", "sparse, real values"),
        (-counts(), "l2", "sparse, real values"),
        (csr_matrix(RNG.normal(size=(9, 4))), "raw", "dense"),
        (csr_matrix(RNG.poisson(5, size=(9, 4)) + 1), "raw", "dense"),
        (csr_matrix((3, 4)), "raw", "there or not"),
        (csr_matrix((3, 4))[:0], "raw", "dense"),
    ],
)
def test_the_rows_decide(X, weighting, reason, monkeypatch):
    X = X.astype(np.float32)
    for at_once in (5, 1 << 22):
        monkeypatch.setattr(network, "AT_ONCE", at_once)
        learned = Features.learned(X, "auto")
        assert (learned.weighting, learned.reason) == (weighting, reason)


def test_what_is_asked_for_is_done():
    X = counts()
    for name in ("tf-idf", "l2", "raw"):
        assert Features.learned(X, name).weighting == name
    assert Features.learned(X, "raw")(X) is X
    with pytest.raises(ValueError, match=r'features is "auto", "tf-idf", "l2" or "raw", not .idf.'):
        tr.ExtremeRanker(features="idf").fit(X, X)


# In the ranker ---------------------------------------------------------------------------------


def labelled(rows=60):
    rng = np.random.default_rng(2)
    return counts(rows), csr_matrix((rng.random((rows, 12)) < 0.2).astype(np.float32))


def fitted(X, Y, **options):
    usual = {"hidden": 6, "learning_rate": 0.02, "max_epochs": 2, "random_state": 0}
    return tr.ExtremeRanker(**{**usual, **options}).fit(X, Y)


def test_a_ranker_on_counts_is_one_on_their_tf_idf():
    X, Y = labelled()
    found = fitted(X, Y)
    weighted = csr_matrix(TfidfTransformer().fit_transform(X), dtype=np.float32)
    wanted = fitted(weighted, Y, features="raw")
    assert found.features_.sentence == "features: tf-idf (counts)"
    np.testing.assert_allclose(found.history_.loss, wanted.history_.loss, rtol=1e-4)
    ours, theirs = (
        ranker.predict(rows, k=12, return_scores=True)
        for ranker, rows in ((found, X), (wanted, weighted))
    )
    np.testing.assert_array_equal(ours[0], theirs[0])
    np.testing.assert_allclose(ours[1], theirs[1], rtol=1e-3, atol=1e-4)


def test_the_weighting_is_saved_with_the_model(tmp_path):
    X, Y = labelled()
    ranker = fitted(X, Y)
    tr.save(ranker, tmp_path)
    again = tr.load(tmp_path)
    np.testing.assert_array_equal(again.features_.idf, ranker.features_.idf)
    assert again.features_.sentence == ranker.features_.sentence
    new = counts(seed=5).sign()  # there or not: the model still weights as it learned to
    found, wanted = (each.predict(new, return_scores=True) for each in (ranker, again))
    for one, two in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize(
    "damage",
    [
        lambda info, tensors: info.update(features=["idf", ""]),
        lambda info, tensors: info.update(features=["raw", ""]),
        lambda info, tensors: tensors.pop("idf"),
        lambda info, tensors: tensors.update(idf=tensors["idf"][:-1]),
        lambda info, tensors: tensors.update(idf=-tensors["idf"]),
        lambda info, tensors: tensors.update(idf=np.full_like(tensors["idf"], np.inf)),
    ],
)
def test_a_weighting_that_does_not_hold_together_is_refused(damage):
    info, tensors = fitted(*labelled()).to_state()
    damage(info, tensors)
    with pytest.raises(ValueError, match=r"weighting of features|idf"):
        tr.ExtremeRanker.from_state(info, tensors)


def test_models_from_before_are_as_they_were(tmp_path):
    """They have no word of a weighting, of a linear path or of a race between rates."""
    ranker = fitted(*labelled(), features="raw", skip=False)
    info, tensors = ranker.to_state()
    for name in ("features", "skip", "halving"):
        del info["params"][name]
    del info["features"]
    again = tr.ExtremeRanker.from_state(info, tensors)
    X = counts(seed=5)
    np.testing.assert_array_equal(again.predict(X), ranker.predict(X))
    assert (again.features, again.skip, again.halving) == ("raw", False, False)


def test_mapped_rows_give_the_same_model(tmp_path):
    X, Y = labelled()
    write_xc(tmp_path / "train.txt", tr.data.MultiLabelData(X, Y))
    data = read_xc(tmp_path / "train.txt", cache=tmp_path / "cache")
    mapped, here = fitted(data.X, data.Y), fitted(X, Y)
    assert mapped.features_.weighting == "tf-idf"
    np.testing.assert_array_equal(mapped.features_.idf, here.features_.idf)
    both = (ranker.networks_[0].parameters() for ranker in (mapped, here))
    for one, two in zip(*both, strict=True):
        np.testing.assert_array_equal(one, two)
