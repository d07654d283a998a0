"""BoostedRanker: what it learns, what it gives back, and that nothing stops it from doing so."""

import inspect
import json
import os
import signal
import subprocess
import sys
import textwrap
import warnings
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
from sklearn.base import clone

import tierrank as tr
from real_data import real
from tierrank import storage
from tierrank.losses import OBJECTIVES
from tierrank.names import THEIR_FIT_WORDS, THEIR_WORDS
from tierrank.ranking import boosted
from tierrank.training import Checkpoint

pytest.importorskip("lightgbm", reason="lightgbm is not installed")
pytest.importorskip("xgboost", reason="xgboost is not installed")

LIBRARIES = pytest.mark.parametrize("library", ["lightgbm", "xgboost"])


def small(library="lightgbm", **options):
    usual = {
        "trees": 12, "leaves": 6, "row_fraction": 1.0, "feature_fraction": 1.0,
        "learning_rate": 0.2, "threads": 1, "random_state": 0,
    }  # fmt: skip
    if library == "lightgbm":
        usual["min_rows_per_leaf"] = 3
    return tr.BoostedRanker(library=library, **{**usual, **options})


def lists(seed=0, n_lists=60, features=4, longest=12, missing=0.0):
    """Lists of 1 to so many rows, shuffled; the label is a step of |x₀| + x₁, and noise."""
    rng = np.random.default_rng(seed)
    qid = rng.permutation(np.repeat(np.arange(n_lists), rng.integers(1, longest + 1, n_lists)))
    X = rng.normal(size=(len(qid), features))
    y = np.round(np.abs(X[:, 0]) + X[:, 1] + rng.normal(scale=0.3, size=len(qid)))
    X[rng.random(X.shape) < missing] = np.nan
    return X, np.maximum(y, 0), qid


X, Y, QID = lists()
VALID = lists(seed=1)


def assert_same_model(one, two):
    for name, array in one.forest_.arrays().items():
        np.testing.assert_array_equal(array, two.forest_.arrays()[name], err_msg=name)
    assert one.history_ == two.history_
    assert one.objective_state_ == two.objective_state_


# What goes in ------------------------------------------------------------------------------


@LIBRARIES
def test_every_kind_of_table_gives_the_same_scores(library):
    order = np.argsort(QID, kind="stable")
    rows, labels, qid = X[order], Y[order], QID[order]
    reference = small(library).fit(rows, labels, qid=qid)
    expected = reference.predict(rows)
    sizes = np.unique(qid, return_counts=True)[1]
    names = [f"f{i}" for i in range(4)]
    for given, how in [
        (pd.DataFrame(rows, columns=names), {"qid": pd.Series(qid)}),
        (pl.DataFrame(rows, schema=names), {"qid": pl.Series(qid)}),
        (rows, {"group": sizes}),
        (rows.tolist(), {"qid": [f"q{q}" for q in qid]}),
        (np.asfortranarray(rows), {"qid": qid}),
    ]:
        ranker = small(library).fit(given, labels, **how)
        np.testing.assert_array_equal(ranker.predict(given), expected)
    np.testing.assert_array_equal(reference.predict(scipy.sparse.csr_array(rows)), expected)


@LIBRARIES
def test_sparse_rows_train_and_predict_like_dense_ones(library):
    sparse_X = np.where(np.abs(X) < 0.5, 0.0, X)
    matrix = scipy.sparse.csr_array(sparse_X)
    ranker = small(library).fit(matrix, Y, qid=QID, eval_set=(sparse_X, Y, QID))
    np.testing.assert_array_equal(ranker.predict(matrix), ranker.predict(sparse_X))
    assert ranker.history_.best_metric == pytest.approx(ranker.score(matrix, Y, qid=QID))
    if library == "lightgbm":  # for XGBoost, zeros of a sparse matrix are missing
        dense = small(library).fit(sparse_X, Y, qid=QID, eval_set=(matrix, Y, QID))
        assert_same_model(ranker, dense)


# What is learned -----------------------------------------------------------------------------


@LIBRARIES
def test_boosting_learns_what_no_line_can(library):
    ranker = small(library, trees=60).fit(X, Y, qid=QID)
    test_X, test_y, test_qid = lists(seed=2)
    by_chance = tr.metrics.ndcg(np.zeros(len(test_y)), test_y, qid=test_qid)
    assert ranker.score(test_X, test_y, qid=test_qid) > by_chance + 0.15
    assert set(np.argsort(ranker.feature_importances_)[2:]) == {0, 1}
    assert ranker.feature_importances_.sum() == pytest.approx(1)


@LIBRARIES
def test_the_training_loss_falls_and_is_that_of_the_scores(library):
    ranker = small(library, trees=30).fit(X, Y, qid=QID)
    loss = ranker.history_.loss
    assert ranker.history_.steps == list(range(1, 31))
    assert all(after < before for before, after in pairwise(loss))
    tiers = tr.Tiers.from_labels(Y, qid=QID)
    assert loss[-1] == pytest.approx(float(tr.losses.pl_partition(ranker.predict(X), tiers)), 1e-5)


@pytest.mark.parametrize("name", sorted(OBJECTIVES))
def test_every_objective_can_be_boosted(name):
    few = QID < 20
    ranker = small(objective=name, trees=8, learning_rate=0.3).fit(X[few], Y[few], qid=QID[few])
    by_chance = tr.metrics.ndcg(np.zeros(few.sum()), Y[few], qid=QID[few])
    assert ranker.score(X[few], Y[few], qid=QID[few]) > by_chance + 0.1
    assert set(ranker.objective_state_) == {"rao-kupper": {"alpha"}, "davidson": {"beta"}}.get(
        name, set()
    )
    if OBJECTIVES[name].hessian != "constant":
        assert ranker.history_.loss[-1] < ranker.history_.loss[0]


@LIBRARIES
def test_missing_values_are_told_apart_by_what_they_mean(library):
    rng = np.random.default_rng(0)
    values = rng.normal(size=(400, 2))
    labels = (rng.random(400) < 0.3).astype(float)
    values[labels == 1, 0] = np.nan  # who is missing is relevant
    ranker = small(library).fit(values, labels, group=[10] * 40)
    scores = ranker.predict(values)
    assert scores[labels == 1].min() > scores[labels == 0].max()


@LIBRARIES
def test_early_stopping_keeps_the_trees_up_to_the_best(library):
    ranker = small(library, trees=300, patience=8)
    ranker.fit(X, Y, qid=QID, eval_set=[VALID])
    history = ranker.history_
    assert len(history.steps) == history.best_step + 8 < 300
    assert len(ranker.forest_) == history.best_step
    assert history.best_metric == max(history.metric)
    assert ranker.score(VALID[0], VALID[1], qid=VALID[2]) == pytest.approx(history.best_metric)
    for trees in (1, 5):  # the curve is that of the shorter forests
        scores = ranker.forest_.first(trees).predict(VALID[0])
        expected = tr.metrics.ndcg(scores, VALID[1], qid=VALID[2], k=10)
        assert history.metric[trees - 1] == pytest.approx(expected)


@LIBRARIES
def test_without_patience_and_without_validation_data_all_trees_are_grown(library):
    assert len(small(library, trees=70).fit(X, Y, qid=QID).forest_) == 70
    patient = small(library, trees=70, patience=None).fit(X, Y, qid=QID, eval_set=VALID)
    assert len(patient.history_.steps) == 70


@LIBRARIES
def test_weights_of_lists_count(library):
    first = np.unique(QID, return_index=True)[1]
    keys = QID[np.sort(first)]  # in order of first appearance
    weights = np.where(keys % 2, 0.0, 1.0)
    ranker = small(library).fit(X, Y, qid=QID, weights=weights)
    other = Y.copy()
    other[QID % 2 == 1] = other[QID % 2 == 1][::-1]  # of lists that do not count
    assert_same_model(ranker, small(library).fit(X, other, qid=QID, weights=weights))
    assert_same_model(ranker, small(library).fit(X, Y, qid=QID, weights=8 * weights))


@LIBRARIES
def test_odd_lists_are_taken(library):
    values = np.arange(12.0)[:, None]
    labels = [-1.5, 2.25, -1.5, 0, 0, 0, 3, 1, 2, 1, 1, -7]
    ranker = small(library, metric="tau-b").fit(values, labels, qid=list("aabbbccddefg"))
    assert np.isfinite(ranker.predict(values)).all()


@LIBRARIES
def test_the_same_seed_gives_the_same_trees_and_another_seed_others(library):
    options = {"row_fraction": 0.7, "feature_fraction": 0.6, "trees": 60}
    one, same = (small(library, **options).fit(X, Y, qid=QID) for _ in range(2))
    assert_same_model(one, same)
    other = small(library, **options, random_state=1).fit(X, Y, qid=QID)
    assert not np.array_equal(one.predict(X), other.predict(X))
    free = [small(library, **options, random_state=None).fit(X, Y, qid=QID) for _ in range(2)]
    assert not np.array_equal(free[0].predict(X), free[1].predict(X))


@LIBRARIES
def test_segments_are_no_different_from_one_long_run(library, monkeypatch):
    """Without anything drawn, new boosters from old scores grow the trees that one would."""
    cut = small(library, trees=20)
    monkeypatch.setattr(boosted, "SEGMENT", 7)
    cut.fit(X, Y, qid=QID)
    monkeypatch.setattr(boosted, "SEGMENT", 20)
    whole = small(library, trees=20).fit(X, Y, qid=QID)
    np.testing.assert_allclose(cut.predict(X), whole.predict(X), rtol=1e-5, atol=1e-6)


@LIBRARIES
def test_the_library_says_nothing(library, capfd):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        small(library).fit(X, Y, qid=QID, eval_set=VALID).predict(X)
    seen = capfd.readouterr()
    assert (seen.out, seen.err) == ("", "")


@LIBRARIES
def test_features_that_say_nothing_are_warned_about(library):
    with pytest.warns(UserWarning, match="no split was possible"):
        ranker = small(library).fit(np.ones((40, 2)), np.arange(40) % 3, group=[8] * 5)
    assert len(set(ranker.predict(np.ones((3, 2))))) == 1


# Bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"library": "catboost"}, 'library is "lightgbm" or "xgboost"'),
        ({"objective": "pl-partitoin"}, "did you mean 'pl-partition'"),
        ({"objective_params": {"beta": 1}}, "objective_params do not fit"),
        ({"trees": 0}, "trees is a whole number, 1 or more, not 0"),
        ({"trees": 2.5}, "trees is a whole number"),
        ({"patience": 0}, "patience is a whole number"),
        ({"leaves": 1}, "leaves is a whole number, 2 or more, not 1"),
        ({"depth": 0}, "depth is a whole number"),
        ({"bins": 1}, "bins is a whole number"),
        ({"threads": 0}, "threads is a whole number"),
        ({"min_rows_per_leaf": 0}, "min_rows_per_leaf is a whole number"),
        ({"learning_rate": 0}, "learning_rate is a number above 0"),
        ({"learning_rate": float("nan")}, "learning_rate is a number above 0"),
        ({"l2": -1}, "l2 is a number above 0 or 0, not -1"),
        ({"row_fraction": 1.5}, "row_fraction is a number above 0, up to 1, not 1.5"),
        ({"feature_fraction": 0}, "feature_fraction is a number above 0"),
        ({"random_state": -1}, "random_state is a whole number"),
        ({"library_params": {"boosting": "dart"}}, "may not have 'boosting'"),
        ({"library_params": {"bagging_seed": 3}}, "may not have 'bagging_seed'"),
        ({"library_params": {"max_delta_step": "far"}}, "LightGBM refuses: .*library_params"),
    ],
)
def test_what_makes_no_sense_is_refused(options, complaint):
    with pytest.raises(ValueError, match=complaint):
        small(**options).fit(X, Y, qid=QID)


def test_xgboost_refuses_a_limit_that_it_does_not_have():
    with pytest.raises(ValueError, match="min_hessian_per_leaf"):
        small("xgboost", min_rows_per_leaf=5).fit(X, Y, qid=QID)
    with pytest.raises(ValueError, match="may not have 'booster'"):
        small("xgboost", library_params={"booster": "gblinear"}).fit(X, Y, qid=QID)


@pytest.mark.parametrize(
    ("word", "ours"),
    [
        ("n_estimators", "write trees"),
        ("num_leaves", "write leaves"),
        ("max_depth", "write depth"),
        ("early_stopping_rounds", "write patience"),
        ("eval_metric", "write metric"),
        ("reg_lambda", "write l2"),
        ("subsample", "write row_fraction"),
        ("n_jobs", "write threads"),
        ("reg_alpha", r"write library_params=\{'reg_alpha': 5\}"),
        ("nonsense", "unexpected keyword argument 'nonsense'"),
    ],
)
def test_the_libraries_words_are_answered_with_ours(word, ours):
    with pytest.raises(TypeError, match=ours):
        tr.BoostedRanker(**{word: 5})


def test_a_subclass_may_have_a_word_of_the_libraries_as_its_own():
    class Mine(tr.BoostedRanker):
        def __init__(self, *, trees=3, threads=1, n_jobs=1):
            super().__init__(trees=trees, threads=threads)
            self.n_jobs = n_jobs

    assert clone(Mine(n_jobs=2)).n_jobs == 2


@pytest.mark.parametrize(
    ("word", "ours"),
    [
        ("sample_weight", "write weights, one a list"),
        ("eval_group", r"write eval_set=\[\(X, y, qid\)\]"),
        ("eval_qid", r"write eval_set=\[\(X, y, qid\)\]"),
        ("early_stopping_rounds", "the constructor's patience"),
        ("eval_at", "metric='ndcg@5'"),
        ("nonsense", "fit has no argument 'nonsense'$"),
    ],
)
def test_the_libraries_words_for_fit_are_answered_with_ours(word, ours):
    with pytest.raises(TypeError, match=ours):
        small().fit(X, Y, qid=QID, **{word: 5})


def test_every_answer_names_an_argument_that_there_is():
    assert set(THEIR_WORDS.values()) <= set(tr.BoostedRanker().get_params())
    assert not set(THEIR_WORDS) & set(tr.BoostedRanker().get_params())
    assert not set(THEIR_FIT_WORDS) & set(inspect.signature(tr.BoostedRanker.fit).parameters)


@pytest.mark.parametrize(
    "name",
    ["lambdarank", "LambdaRank", "lambda-mart", "rank:ndcg", "rank_xendcg", "rank:pairwise"],
)
def test_the_libraries_objectives_are_answered_with_ours(name):
    with pytest.raises(ValueError, match=f"no objective '{name}': it .*(ranknet|listnet)"):
        small(objective=name).fit(X, Y, qid=QID)


@LIBRARIES
def test_a_step_too_large_ends_in_an_error_that_says_what_to_try(library):
    with pytest.raises(ValueError, match=r"after \d+ trees: try a smaller learning_rate"):
        small(library, objective="rank-regress", learning_rate=1e6, trees=100, l2=0).fit(
            X, Y, qid=QID
        )


def test_further_parameters_reach_the_library():
    limited = small(library_params={"max_delta_step": 0.01}, trees=1).fit(X, Y, qid=QID)
    assert np.abs(limited.predict(X)).max() <= 0.2 * 0.01 * (1 + 1e-6)
    limited = small("xgboost", library_params={"max_delta_step": 0.01}, trees=1)
    assert np.abs(limited.fit(X, Y, qid=QID).predict(X)).max() <= 0.2 * 0.01 * (1 + 1e-6)


@LIBRARIES
def test_depth_and_leaves_limit_the_trees(library):
    ranker = small(library, depth=1, leaves=10).fit(X, Y, qid=QID)
    assert (np.diff(ranker.forest_.tree_offsets) == 3).all()
    ranker = small(library, leaves=4).fit(X, Y, qid=QID)
    assert (np.diff(ranker.forest_.tree_offsets) == 7).all()


# Saved models --------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_saved_model_needs_no_library_in_another_process(tmp_path):
    values, labels, qid = lists(seed=3, missing=0.1)
    np.save(tmp_path / "rows.npy", values)
    rankers = {library: small(library) for library in ("lightgbm", "xgboost")}
    for library, ranker in rankers.items():
        ranker.fit(values, labels, qid=qid, eval_set=(values, labels, qid))
        again = tr.load(tr.save(ranker, tmp_path / library))
        assert_same_model(ranker, again)
        assert again.get_params() == ranker.get_params()
        np.testing.assert_array_equal(again.predict(values), ranker.predict(values))
    code = """
    import sys
    sys.modules["lightgbm"] = sys.modules["xgboost"] = None  # an import would fail
    import numpy as np, tierrank as tr
    for library in ("lightgbm", "xgboost"):
        np.save(f"{library}.npy", tr.load(library).predict(np.load("rows.npy")))
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True, cwd=tmp_path)
    for library, ranker in rankers.items():
        scores = np.load(tmp_path / f"{library}.npy")
        np.testing.assert_array_equal(scores, ranker.predict(values))


def test_a_saved_model_carries_its_feature_steps(tmp_path):
    from tierrank.ranking.features import SecondOrder

    ranker = small(features=[SecondOrder(threshold=0.0)]).fit(X, Y, qid=QID)
    again = tr.load(tr.save(ranker, tmp_path))
    assert again.forest_.n_features > X.shape[1]
    np.testing.assert_array_equal(again.predict(X), ranker.predict(X))


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("saved") / "model"
    tr.save(small().fit(X, Y, qid=QID), folder)
    return storage.read(folder, "model")


def damaged_tensor(name, value, place=0):
    def change(info, tensors):
        tensors[f"learned.{name}"] = tensors[f"learned.{name}"].copy()
        tensors[f"learned.{name}"][place] = value

    return change


@pytest.mark.parametrize(
    "change",
    [
        damaged_tensor("value", np.nan),
        damaged_tensor("threshold", np.nan),
        damaged_tensor("left", 10**6),
        damaged_tensor("left", -3),
        damaged_tensor("feature", 4),
        damaged_tensor("missing", 9),
        damaged_tensor("tree_offsets", 1),
        lambda info, tensors: tensors.pop("learned.left"),
        lambda info, tensors: tensors.update({"learned.value": np.zeros((3, 3))}),
        lambda info, tensors: info["learned"].update(n_features="4"),
        lambda info, tensors: info["learned"].update(n_features=7),
        lambda info, tensors: info["learned"].pop("objective_state"),
        lambda info, tensors: info["learned"].update(objective_state={"alpha": "import os"}),
        lambda info, tensors: info["learned"].update(objective_state=[1]),
        lambda info, tensors: info.update(learned=None),
        lambda info, tensors: info["params"].update(unknown=1),
    ],
)
def test_a_hostile_state_is_refused(saved, change, tmp_path):
    info, tensors = json.loads(json.dumps(saved[0])), dict(saved[1])
    change(info, tensors)
    storage.write(tmp_path / "model", "model", info, tensors)
    with pytest.raises(ValueError, match="does not hold together"):
        tr.load(tmp_path / "model")


# Stopped and taken up again ------------------------------------------------------------------

SAMPLED = {"row_fraction": 0.7, "feature_fraction": 0.7, "trees": 40, "patience": 30}
KILLED = """
    import os, sys
    sys.path[:0] = [{here!r}, os.path.dirname({here!r})]
    import test_boosted as t
    from tierrank.ranking import boosted
    boosted.SEGMENT = 6
    t.Checkpoint.due = property(lambda self: True)

    def watch(progress):
        if progress.done == {at}:
            os.kill(os.getpid(), {signal})

    t.small({library!r}, **{options!r}).fit(
        t.X, t.Y, qid=t.QID, eval_set=t.VALID, checkpoint={folder!r}, watch=watch
    )
"""


@pytest.fixture
def short_segments(monkeypatch):
    monkeypatch.setattr(boosted, "SEGMENT", 6)
    monkeypatch.setattr(Checkpoint, "due", property(lambda self: True))


def killed_fit(library, folder, at, options, number=signal.SIGKILL):
    code = KILLED.format(
        here=str(Path(__file__).parent), at=at, signal=int(number), library=library,
        options=options, folder=str(folder),
    )  # fmt: skip
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True
    )


@pytest.mark.slow
@LIBRARIES
@pytest.mark.usefixtures("short_segments")
def test_a_killed_fit_is_taken_up_to_the_same_result(library, tmp_path):
    whole = small(library, **SAMPLED).fit(X, Y, qid=QID, eval_set=VALID)
    for at in (3, 12, 21):
        done = killed_fit(library, tmp_path / "kept", at, SAMPLED)
        assert done.returncode == -signal.SIGKILL, done.stderr
    seen = []
    again = small(library, **SAMPLED).fit(
        X, Y, qid=QID, eval_set=VALID, checkpoint=tmp_path / "kept",
        watch=lambda progress: seen.append(progress.done),
    )  # fmt: skip
    assert seen[0] == 19  # after the third segment
    assert_same_model(whole, again)
    np.testing.assert_array_equal(whole.predict(X), again.predict(X))


class Stop(Exception):
    """Thrown by a watch."""


@LIBRARIES
@pytest.mark.parametrize("objective", ["pl-partition", "davidson", "pmop-gibbs"])
@pytest.mark.usefixtures("short_segments")
def test_a_fit_that_broke_off_is_taken_up_to_the_same_result(library, objective, tmp_path):
    few = QID < 25
    data = {"X": X[few], "y": Y[few], "qid": QID[few]}
    make = {**SAMPLED, "trees": 20, "objective": objective}
    whole = small(library, **make).fit(**data)
    for at in (4, 9, 17):

        def watch(progress, at=at):
            if progress.done == at:
                raise Stop

        with pytest.raises(Stop):
            small(library, **make).fit(**data, checkpoint=tmp_path, watch=watch)
    assert_same_model(whole, small(library, **make).fit(**data, checkpoint=tmp_path))
    finished = small(library, **make).fit(**data, checkpoint=tmp_path, watch=watch)
    assert_same_model(whole, finished)  # nothing is computed again, so nobody stops it


@LIBRARIES
@pytest.mark.usefixtures("short_segments")
def test_a_fit_without_a_seed_goes_on_with_the_one_it_drew(library, tmp_path):
    make = {**SAMPLED, "random_state": None, "trees": 12}

    def watch(progress):
        if progress.done == 7:
            raise Stop

    with pytest.raises(Stop):
        small(library, **make).fit(X, Y, qid=QID, checkpoint=tmp_path / "one", watch=watch)
    kept = storage.read(tmp_path / "one", "checkpoint")
    storage.write(tmp_path / "two", "checkpoint", *kept)
    one, two = (
        small(library, **make).fit(X, Y, qid=QID, checkpoint=tmp_path / name)
        for name in ("one", "two")
    )
    assert_same_model(one, two)


@LIBRARIES
def test_ctrl_c_leaves_a_model_and_a_checkpoint(library, tmp_path):
    make = {**SAMPLED, "trees": 120}
    whole = small(library, **make).fit(X, Y, qid=QID)
    stopped = small(library, **make)

    def watch(progress):
        if progress.done == 60:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        stopped.fit(X, Y, qid=QID, checkpoint=tmp_path, watch=watch)
    assert len(stopped.forest_) == len(stopped.history_.steps) == 60
    np.testing.assert_array_equal(stopped.predict(X), whole.forest_.first(60).predict(X))
    seen = []
    again = clone(stopped).fit(
        X, Y, qid=QID, checkpoint=tmp_path, watch=lambda progress: seen.append(progress.done)
    )
    assert seen[0] == 60 // boosted.SEGMENT * boosted.SEGMENT + 1
    assert_same_model(whole, again)


def test_a_checkpoint_of_another_fit_is_refused(tmp_path):
    small().fit(X, Y, qid=QID, checkpoint=tmp_path)
    with pytest.raises(storage.StorageError, match=r"another fit \(what differs: leaves"):
        small(leaves=7).fit(X, Y, qid=QID, checkpoint=tmp_path)
    with pytest.raises(storage.StorageError, match="training data"):
        small().fit(X, Y[::-1], qid=QID, checkpoint=tmp_path)


# Settings by size ----------------------------------------------------------------------------


@LIBRARIES
def test_trees_go_by_the_size_of_the_data_and_say_so(library, tmp_path):
    usual = {"library": library, "trees": 5, "threads": 1, "random_state": 0}
    one = tr.BoostedRanker(**usual).fit(X, Y, qid=QID)
    rule = {
        "leaves": 7,
        "min_rows_per_leaf": len(Y) // 40 if library == "lightgbm" else None,
        "row_fraction": 0.7,
        "feature_fraction": 0.5,
    }
    assert one.settings_by_size_ == rule
    two = tr.BoostedRanker(**usual, **rule).fit(X, Y, qid=QID)
    assert two.settings_by_size_ == {}
    assert_same_model(one, two)
    tr.save(one, tmp_path / "model")
    assert tr.load(tmp_path / "model").settings_by_size_ == rule
    three = tr.BoostedRanker(**usual, leaves=5).fit(X, Y, qid=QID)
    assert "leaves" not in three.settings_by_size_
    counts = np.add.reduceat(three.forest_.is_leaf, three.forest_.tree_offsets[:-1])
    assert counts.max() == 5


def test_the_rule_by_size_has_smaller_trees_for_fewer_rows():
    found = [boosted.by_size(rows) for rows in (80, 20_000, 20_001, 100_000, 1_000_000)]
    assert [each["leaves"] for each in found] == [7, 7, 15, 15, 31]
    assert [each["min_rows_per_leaf"] for each in found] == [2, 50, 50, 50, 50]


def test_a_refit_keeps_the_trees_of_the_size_whose_number_was_best(monkeypatch):
    monkeypatch.setattr(boosted, "LEAVES", {len(Y): 4})  # one row more has larger trees
    usual = {"trees": 8, "threads": 1, "random_state": 0, "refit": True}
    ranker = tr.BoostedRanker(**usual).fit(X, Y, qid=QID, eval_set=VALID)
    assert ranker.settings_by_size_["leaves"] == 4
    counts = np.add.reduceat(ranker.forest_.is_leaf, ranker.forest_.tree_offsets[:-1])
    assert counts.max() == 4
    assert ranker.leaves == "auto"


@pytest.mark.parametrize("name", ["bins", "learning_rate", "l2"])
def test_what_does_not_go_by_size_is_refused(name):
    with pytest.raises(ValueError, match=f"{name} is a"):
        tr.BoostedRanker(**{name: "auto"}).fit(X, Y, qid=QID)


# Real data -----------------------------------------------------------------------------------


@pytest.mark.data
@pytest.mark.slow
@LIBRARIES
def test_boosting_ranks_real_queries_much_better_than_chance(library):
    folder = real("mq2008")
    train, valid, test = (tr.data.read_letor(folder / f"S{i}.txt.xz") for i in (1, 4, 5))
    ranker = tr.BoostedRanker(library=library, leaves=8, trees=60, random_state=0)
    ranker.fit(train.X, train.y, qid=train.qid, eval_set=(valid.X, valid.y, valid.qid))
    by_chance = tr.metrics.ndcg(np.zeros(len(test.y)), test.y, qid=test.qid)
    assert ranker.score(test.X, test.y, qid=test.qid) > by_chance + 0.1
