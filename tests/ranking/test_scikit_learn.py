"""Rankers under scikit-learn's tools: the contract, qid on its way through them, or a refusal."""

import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    cross_val_predict,
    cross_val_score,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator, parametrize_with_checks
from sklearn.utils.validation import _num_samples

import neural_fits
import tierrank as tr
from simulated_rows import simulated_rows

pytest.importorskip("lightgbm", reason="lightgbm is not installed")
pytest.importorskip("xgboost", reason="xgboost is not installed")

X, Y, QID = simulated_rows(17, lists=18, shuffled=True)
CV = GroupKFold(3)


def boosted(library="lightgbm", **options):
    usual = {"trees": 12, "leaves": 6, "learning_rate": 0.2, "threads": 1, "random_state": 0}
    if library == "lightgbm":
        usual["min_rows_per_leaf"] = 3
    return tr.BoostedRanker(library=library, **{**usual, **options})


RANKERS = [
    tr.LinearRanker(l2=0.1),
    tr.LinearRanker(l2=0.1, features=["query-scale", "standardize"]),
    neural_fits.small(),
    neural_fits.small(attention_layers=1, attention_width=8),
    boosted(),
]
EACH = pytest.mark.parametrize("ranker", RANKERS, ids=str)
GRIDS = {
    tr.LinearRanker: {"l2": [0.01, 1.0]},
    tr.NeuralRanker: {"hidden": [(), (4,)]},
    tr.BoostedRanker: {"leaves": [2, 6]},
}


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def by_hand(ranker):
    """The scores of the folds, with every list where it belongs."""
    return [
        clone(ranker).fit(X[a], Y[a], qid=QID[a]).score(X[b], Y[b], qid=QID[b])
        for a, b in CV.split(X, Y, QID)
    ]


# The contract --------------------------------------------------------------------------------


class OneList:
    """A ranker as scikit-learn's checks call it, which know no lists: all rows are one.

    A ranker by itself refuses such calls, since nearly always a qid was forgotten.
    """

    def fit(self, X, y, *, qid=None, group=None, weights=None, eval_set=None):
        more = {"weights": weights, "eval_set": eval_set}
        return super().fit(X, y, qid=qid, group=_all(X, qid, group), **more)

    def predict(self, X, *, qid=None, group=None):
        return super().predict(X, qid=qid, group=_all(X, qid, group))

    def score(self, X, y, *, qid=None, group=None):
        return super().score(X, y, qid=qid, group=_all(X, qid, group))


def _all(X, qid, group):
    rows = _num_samples(X)
    return [rows] if qid is None and group is None and rows else group


class OneLinear(OneList, tr.LinearRanker):
    pass


class OneNeural(OneList, tr.NeuralRanker):
    pass


class OneBoosted(OneList, tr.BoostedRanker):
    pass


class OneBlended(OneList, tr.BlendedRanker):
    pass


ALIKE = {
    tr.LinearRanker: OneLinear,
    tr.NeuralRanker: OneNeural,
    tr.BoostedRanker: OneBoosted,
    tr.BlendedRanker: OneBlended,
}


def of_one_list(ranker):
    return ALIKE[type(ranker)](**ranker.get_params(deep=False))


@parametrize_with_checks(
    [
        of_one_list(ranker)
        for ranker in (
            tr.LinearRanker(),
            tr.LinearRanker("pmop-gibbs", max_iter=3, random_state=0),
            boosted(trees=3, min_rows_per_leaf=1),
            tr.BlendedRanker(boosted={"trees": 3, "threads": 1}, neural=False, random_state=0),
            boosted("xgboost", trees=3),
            neural_fits.small(),
            neural_fits.small(normalisation="batch", dropout=0.3, clip=1.0),
        )
    ]
)
@pytest.mark.filterwarnings("ignore:no split was possible")
def test_scikit_learns_contract_holds(estimator, check):
    check(estimator)


def test_attention_breaks_the_contract_only_where_a_score_is_its_lists():
    """What is left out of a list changes its other scores."""
    ranker = of_one_list(neural_fits.small(attention_layers=1, attention_width=8))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of checks that do not apply
        results = check_estimator(ranker, on_fail=None)
    failed = {each["check_name"] for each in results if each["status"] == "failed"}
    assert "check_methods_subset_invariance" in failed
    # Sums over a list in another order: the same to 1e-6, but scikit-learn asks for 1e-7.
    assert failed <= {"check_methods_subset_invariance", "check_methods_sample_order_invariance"}


# A qid that was forgotten --------------------------------------------------------------------


@EACH
def test_a_ranker_refuses_rows_of_which_nobody_says_the_lists(ranker):
    with pytest.raises(ValueError, match=r"Write fit\(X, y, qid=qid\).*\[len\(X\)\] if all are"):
        clone(ranker).fit(X, Y)
    with pytest.raises(ValueError, match=r"Write eval_set=\[\(X, y, qid\)\]"):
        clone(ranker).fit(X, Y, qid=QID, eval_set=[(X, Y)])
    fitted = clone(ranker).fit(X, Y, qid=QID)
    with pytest.raises(ValueError, match=r"Write score\(X, y, qid=qid\).*query_column"):
        fitted.score(X, Y)
    if fitted.scores_lists or fitted.steps_.needs_qid:
        with pytest.raises(ValueError, match=r"Write predict\(X, qid=qid\)"):
            fitted.predict(X)
    else:
        np.testing.assert_array_equal(fitted.predict(X), fitted.predict(X, qid=QID))


@EACH
def test_one_list_is_a_group_of_all_rows(ranker):
    fitted = clone(ranker).fit(X, Y, group=[len(X)])
    zeros = clone(ranker).fit(X, Y, qid=np.zeros(len(X)))
    np.testing.assert_allclose(
        fitted.predict(X, group=[len(X)]), zeros.predict(X, qid=[7] * len(X))
    )
    assert fitted.score(X, Y, group=[len(X)]) == zeros.score(X, Y, qid=["a"] * len(X))


@EACH
def test_without_routing_no_tool_gives_a_number(ranker):
    with pytest.raises(ValueError, match=r"Write fit\(X, y, qid=qid\)"):
        cross_val_score(ranker, X, Y, groups=QID, cv=CV)
    with pytest.raises(ValueError, match=r"Write fit\(X, y, qid=qid\)"):
        GridSearchCV(ranker, GRIDS[type(ranker)], cv=CV).fit(X, Y, groups=QID)
    with pytest.warns(UserWarning, match=r"Write score\(X, y, qid=qid\)"):  # but can be fitted
        found = cross_val_score(ranker, X, Y, groups=QID, cv=CV, params={"qid": QID})
    assert np.isnan(found).all()
    pipeline = make_pipeline(StandardScaler(), ranker)
    pipeline.fit(X, Y, **{f"{pipeline.steps[1][0]}__qid": QID})
    with pytest.raises(ValueError, match=r"Write score\(X, y, qid=qid\)"):
        pipeline.score(X, Y)


@EACH
def test_validation_labels_that_the_metric_refuses_are_refused_before_the_fit(ranker, monkeypatch):
    clone(ranker).fit(X, Y - 1, qid=QID)  # which are tiers like any others
    monkeypatch.setattr(type(ranker), "_learn", lambda *_: pytest.fail("fitted"))
    with pytest.raises(ValueError, match=r"labels\[\d+\] = -1 is negative"):
        clone(ranker).fit(X, Y, qid=QID, eval_set=(X, Y - 1, QID))


@EACH
def test_a_number_that_is_missing_or_infinite_is_said_with_its_place_and_cure(ranker):
    holes = X.copy()
    holes[4, 1] = np.nan
    if not ranker.allows_missing:
        with pytest.raises(ValueError, match=r'X\[4, 1\] is NaN .*features=\["impute", "stand'):
            clone(ranker).fit(holes, Y, qid=QID)
        steps = ["impute", *np.atleast_1d(ranker.features)]
        clone(ranker).set_params(features=steps).fit(holes, Y, qid=QID)
    holes[4, 1] = -np.inf
    with pytest.raises(ValueError, match=r"X\[4, 1\] is infinite"):
        clone(ranker).fit(holes, Y, qid=QID)


# Queries in a column -------------------------------------------------------------------------


@EACH
def test_a_column_carries_the_queries_through_tools_that_know_x_and_y_alone(ranker):
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(query=[f"q{key}" for key in QID])
    own = clone(ranker).set_params(query_column="query")
    found = cross_val_score(own, frame, Y, groups=QID, cv=CV, error_score="raise")
    np.testing.assert_allclose(found, by_hand(ranker), rtol=1e-12)
    search = GridSearchCV(own, GRIDS[type(ranker)], cv=CV).fit(frame, Y, groups=QID)
    assert len(search.best_estimator_.feature_names_in_) == 3
    assert search.predict(frame).shape == Y.shape
    own.fit(frame, Y, eval_set=[(frame, Y)])


@EACH
def test_ranking_data_say_their_queries_to_fit_predict_and_score(ranker):
    data = tr.data.RankingData(X, Y, QID)
    own = clone(ranker).fit(data, Y)
    assert own.score(data, Y) == clone(ranker).fit(X, Y, qid=QID).score(X, Y, qid=QID)
    assert own.score(data, Y, group=[len(Y)]) == own.score(X, Y, group=[len(Y)])


# Routed queries ------------------------------------------------------------------------------


@EACH
@pytest.mark.usefixtures("routing")
def test_routed_queries_reach_fit_and_score_unasked(ranker):
    routed = {"qid": QID, "groups": QID}
    found = cross_val_score(ranker, X, Y, cv=CV, params=routed)
    np.testing.assert_allclose(found, by_hand(ranker), rtol=1e-12)
    if ranker.scores_lists or "query-scale" in (ranker.features or ()):
        # scikit-learn hands nothing to predict here, which a score by its list needs
        with pytest.raises(ValueError, match=r"Write predict\(X, qid=qid\)"):
            cross_val_predict(ranker, X, Y, cv=CV, params=routed)
        return
    scores = cross_val_predict(ranker, X, Y, cv=CV, params=routed)
    for train, test in CV.split(X, Y, QID):
        alone = clone(ranker).fit(X[train], Y[train], qid=QID[train])
        np.testing.assert_array_equal(scores[test], alone.predict(X[test]))


@EACH
@pytest.mark.usefixtures("routing")
def test_a_grid_search_over_folds_of_whole_queries_takes_qid(ranker):
    ((name, values),) = GRIDS[type(ranker)].items()
    search = GridSearchCV(ranker, {name: values}, cv=CV).fit(X, Y, qid=QID, groups=QID)
    for number, value in enumerate(values):
        folds = [search.cv_results_[f"split{fold}_test_score"][number] for fold in range(3)]
        np.testing.assert_allclose(folds, by_hand(clone(ranker).set_params(**{name: value})))
    whole = clone(ranker).set_params(**search.best_params_).fit(X, Y, qid=QID)
    assert search.score(X, Y, qid=QID) == pytest.approx(whole.score(X, Y, qid=QID))


@EACH
@pytest.mark.usefixtures("routing")
def test_a_pipeline_hands_qid_to_its_ranker(ranker):
    pipeline = make_pipeline(StandardScaler(), ranker).fit(X, Y, qid=QID)
    scaled = StandardScaler().fit_transform(X)
    alone = clone(ranker).fit(scaled, Y, qid=QID)
    assert pipeline.score(X, Y, qid=QID) == alone.score(scaled, Y, qid=QID)
    np.testing.assert_array_equal(pipeline.predict(X, qid=QID), alone.predict(scaled, qid=QID))
    found = cross_val_score(pipeline, X, Y, cv=CV, params={"qid": QID, "groups": QID})
    assert np.isfinite(found).all()
    with pytest.raises(ValueError, match=r"Write score\(X, y, qid=qid\)"):
        pipeline.score(X, Y)


@pytest.mark.usefixtures("routing")
def test_sizes_of_lists_do_not_survive_folds_and_say_so():
    order = np.argsort(QID, kind="stable")
    sizes = np.bincount(QID)
    ranker = tr.LinearRanker().set_fit_request(group=True, qid=False).set_score_request(group=True)
    with pytest.raises(ValueError, match=r"cuts data by row.*give it qid"):
        cross_val_score(ranker, X[order], Y[order], cv=3, params={"group": sizes})
