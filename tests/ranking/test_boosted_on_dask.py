"""Boosted trees on a Dask cluster: worker processes on this machine against one process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import tierrank as tr
from dask_server import served
from tierrank.ranking import boosted
from tierrank.ranking.derivatives import BoostingObjective

distributed = pytest.importorskip("distributed")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
pd = pytest.importorskip("pandas")
pytest.importorskip("lightgbm")
pytest.importorskip("xgboost")

pytestmark = pytest.mark.timeout(240)
SIZE = 12
LIBRARIES = ("lightgbm", "xgboost")


def rows(queries=36, seed=0):
    """Features of few values, so that the bins do not depend on who makes them."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 8, size=(SIZE * queries, 4)).astype(float)
    noise = rng.normal(size=len(X))
    y = np.digitize(X[:, 0] + 0.7 * X[:, 1] + noise, [4, 8, 10])
    return X, y, np.repeat(np.arange(queries), SIZE)


X, Y, QID = rows()
HELD_OUT = rows(queries=9, seed=1)


def arrays(queries_a_part, *given):
    return [da.from_array(a, chunks=(queries_a_part * SIZE, *a.shape[1:])) for a in given]


def ranker(**settings):
    # LightGBM counts the rows of a leaf exactly in one process, and nearly among several
    if settings.get("library", "lightgbm") == "lightgbm":
        settings["min_rows_per_leaf"] = 1
    usual = {
        "trees": 12, "leaves": 8, "row_fraction": 1.0, "feature_fraction": 1.0,
        "learning_rate": 0.2, "random_state": 0, "threads": 1,
    }  # fmt: skip
    return tr.BoostedRanker(**{**usual, **settings})


@pytest.mark.parametrize("library", LIBRARIES)
def test_more_trees_for_a_model_are_those_of_one_process(client, library):
    before = ranker(library=library).fit(X, Y, qid=QID)
    more = ranker(library=library, trees=6)
    alone = more.fit(X, Y, qid=QID, eval_set=HELD_OUT, init_model=before)
    found = ranker(library=library, trees=6).fit(
        *arrays(6, X, Y), qid=arrays(6, QID)[0], eval_set=HELD_OUT, init_model=before
    )
    assert found.history_.steps == alone.history_.steps
    assert found.history_.steps[0] == 12
    np.testing.assert_allclose(found.history_.metric, alone.history_.metric, atol=1e-6)
    np.testing.assert_allclose(found.predict(X), alone.predict(X), atol=1e-6)


@pytest.fixture(scope="module")
def cluster():
    with distributed.LocalCluster(
        n_workers=3, threads_per_worker=1, processes=True, host="127.0.0.1",
        dashboard_address=":0", silence_logs=50,
    ) as cluster:  # fmt: skip
        yield cluster


@pytest.fixture
def client(cluster):
    with distributed.Client(cluster) as client:
        client.wait_for_workers(3, timeout=60)
        yield client


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("workers", [2, 3])
def test_workers_together_grow_the_trees_of_one_process(client, library, workers, monkeypatch):
    monkeypatch.setattr(boosted, "SEGMENT", 5)
    alone = ranker(library=library).fit(X, Y, qid=QID, eval_set=[HELD_OUT])
    parts = arrays(36 // workers, X, Y, QID)
    held_out = arrays(3, *HELD_OUT)
    together = ranker(library=library).fit(
        parts[0], parts[1], qid=parts[2], eval_set=[tuple(held_out)], client=client
    )
    np.testing.assert_allclose(together.predict(X), alone.predict(X), atol=1e-6)
    np.testing.assert_allclose(together.history_.loss, alone.history_.loss, rtol=1e-6)
    np.testing.assert_allclose(together.history_.metric, alone.history_.metric, rtol=1e-6)
    assert together.history_.best_step == alone.history_.best_step


@pytest.mark.parametrize("library", LIBRARIES)
def test_trees_go_by_the_number_of_rows_of_all_workers(client, library, monkeypatch):
    monkeypatch.setattr(boosted, "LEAVES", {len(Y) - 1: 3, len(Y): 5})
    X_parts, y_parts, qid_parts = arrays(6, X, Y, QID)
    usual = {"library": library, "trees": 6, "random_state": 0, "threads": 1}
    found = tr.BoostedRanker(**usual).fit(X_parts, y_parts, qid=qid_parts)
    rule = boosted.by_size(len(Y)) | ({"min_rows_per_leaf": None} if library == "xgboost" else {})
    assert found.settings_by_size_ == rule
    given = tr.BoostedRanker(**usual, **rule).fit(X_parts, y_parts, qid=qid_parts)
    assert given.settings_by_size_ == {}
    np.testing.assert_array_equal(found.predict(X), given.predict(X))
    leaves = np.add.reduceat(found.forest_.is_leaf, found.forest_.tree_offsets[:-1])
    assert leaves.max() == 5


@pytest.mark.parametrize("library", LIBRARIES)
def test_partitions_may_have_dictionaries_of_their_own(client, library):
    words = np.array(["teal", "red", "blue", "ochre", "7", "07", "pink", "grey"])
    whole = pd.DataFrame({"color": words[X[:, 0].astype(int)], "size": X[:, 1], "y": Y, "q": QID})
    whole.loc[5, "color"] = None
    parts = [whole[SIZE * 12 * n : SIZE * 12 * (n + 1)].copy() for n in range(3)]
    parts[1]["color"] = parts[1]["color"].where(parts[1]["color"] != "pink", "rose")
    whole.loc[parts[1].index, "color"] = parts[1]["color"]
    for part in parts:  # in order of appearance, so that each has other codes
        part["color"] = pd.Categorical(part["color"], part["color"].dropna().unique())
    like = parts[0][:0].assign(color=pd.Categorical([]))
    frame = dd.from_map(lambda n: parts[n], range(3), meta=like)
    options = {"library": library}
    if library == "lightgbm":
        options["library_params"] = {"min_data_per_group": 5, "cat_smooth": 1}
    together = ranker(**options).fit(frame, "y", qid="q")
    assert together.categories_ == {0: tuple(sorted([*words, "rose"]))}
    assert together.forest_.splits_categories
    rows = whole[["color", "size"]]
    scores = together.predict(frame[["color", "size"]]).compute()
    np.testing.assert_array_equal(scores, together.predict(rows.astype({"color": "category"})))
    if library == "xgboost":  # LightGBM bins a column by the rows of one worker
        alone = ranker(**options, categories=["color"]).fit(rows, Y, qid=QID)
        np.testing.assert_allclose(scores, alone.predict(rows), atol=1e-6)
    with pytest.raises(ValueError, match="column 'color' holds no numbers: name it in categories"):
        ranker(categories=None, **options).fit(frame, "y", qid="q")


@pytest.mark.parametrize("name", ["pl-partition", "ranksvm", "rao-kupper"])
def test_gradients_of_the_workers_are_those_of_one_process(name):
    weights = np.random.default_rng(2).uniform(0.5, 2, 36)
    scores = np.random.default_rng(3).normal(size=len(X))

    def objective(rows, mean_weight=None):
        tiers = tr.Tiers.from_labels(Y[rows], qid=QID[rows])
        module = tr.losses.from_name(name, reduction="none")
        own = weights[np.unique(QID[rows])]
        return BoostingObjective(module, tiers, own, 0, mean_weight)

    whole = objective(slice(None))
    cuts = [slice(0, 120), slice(120, 300), slice(300, None)]
    parts = [objective(rows, weights.mean()) for rows in cuts]
    slopes, numbers = map(sum, zip(*(part.first_slopes for part in parts), strict=True))
    for part in [whole, *parts]:
        part.learns = False
    for part in parts:
        part.typical_slope = slopes / numbers if numbers else 1.0
    expected = whole(scores)
    found = [part(scores[rows]) for part, rows in zip(parts, cuts, strict=True)]
    for kind in ("gradient", "hessian"):
        together = np.concatenate([getattr(each, kind) for each in found])
        np.testing.assert_allclose(together, getattr(expected, kind), rtol=1e-6, atol=1e-6)
    by_lists = [each.loss * len(part.tiers) for each, part in zip(found, parts, strict=True)]
    assert sum(by_lists) / 36 == pytest.approx(expected.loss, rel=1e-6)
    if whole.parameters:
        added = np.sum(
            [p.slopes(scores[r], p.parameters) for p, r in zip(parts, cuts, strict=True)], axis=0
        )
        np.testing.assert_allclose(added, whole.slopes(scores, whole.parameters), rtol=1e-6)


def test_objectives_with_parameters_weights_and_frames(client):
    weights = np.random.default_rng(2).uniform(0.5, 2, 36)
    settings = {"objective": "rao-kupper", "trees": 6}
    alone = ranker(**settings).fit(X, Y, qid=QID, weights=weights)
    frame = pd.DataFrame(X, columns=list("abcd"))
    frame["label"], frame["query"], frame["weight"] = Y, QID, weights[QID]
    parts = dd.from_pandas(frame, npartitions=3, sort=False)
    together = ranker(**settings).fit(parts, "label", qid="query", weights="weight")
    np.testing.assert_allclose(together.predict(frame[list("abcd")]), alone.predict(X), atol=1e-6)
    assert together.objective_state_ == pytest.approx(alone.objective_state_, rel=1e-6)
    assert list(together.feature_names_in_) == list("abcd")
    lazy = together.predict(parts[list("abcd")])
    assert lazy.npartitions == 3
    np.testing.assert_allclose(lazy.compute(), alone.predict(X), atol=1e-6)


def test_a_folder_of_parquet_is_read_by_the_workers(client, tmp_path):
    frame = pd.DataFrame(X, columns=list("abcd"))
    frame["label"], frame["query"] = Y, [f"q{query}" for query in QID]
    for number, start in enumerate(range(0, len(frame), 150)):  # which cuts queries in two
        frame[start : start + 150].to_parquet(tmp_path / f"part-{number}.parquet")
    alone = ranker().fit(X, Y, qid=QID)
    for name in (tmp_path, f"{tmp_path}/*.parquet"):
        together = ranker(query_column="query").fit(name, "label", client=client)
        np.testing.assert_allclose(together.predict(frame.drop(columns="label")), alone.predict(X),
                                   atol=1e-6)  # fmt: skip
    with pytest.raises(ValueError, match="no column 'relevance'"):
        ranker().fit(tmp_path, "relevance", qid="query", client=client)
    with pytest.raises(ValueError, match="cannot be read as Parquet"):
        ranker().fit(tmp_path / "nothing", "label", qid="query", client=client)


def test_a_query_in_two_partitions_is_brought_together_or_refused_by_name(client):
    parts = [da.from_array(a, chunks=(100, *a.shape[1:])) for a in (X, Y, QID)]
    with pytest.raises(ValueError, match=r"query 8 has rows in the partitions 0 and 1 of X"):
        ranker().fit(parts[0], parts[1], qid=parts[2], shuffle=False)
    together = ranker().fit(parts[0], parts[1], qid=parts[2])
    alone = ranker().fit(X, Y, qid=QID)
    np.testing.assert_allclose(together.predict(X), alone.predict(X), atol=1e-6)


@pytest.mark.parametrize("library", LIBRARIES)
def test_empty_partitions_and_more_workers_than_queries(client, library):
    some = slice(0, 2 * SIZE)
    few, y, qid = (X[some] > 3).astype(float), Y[some], QID[some]  # the values are in both queries
    settings = {"library": library, "trees": 3, "leaves": 3}
    if library == "lightgbm":
        settings["library_params"] = {"min_data_in_bin": 1}
    alone = ranker(**settings).fit(few, y, qid=qid, eval_set=[HELD_OUT])
    frame = pd.DataFrame(few, columns=list("abcd"))
    frame["label"], frame["query"] = y, qid
    whole = dd.from_pandas(frame, npartitions=2, sort=False)
    parts = dd.concat([whole.partitions[0], whole[whole.label > 99], whole.partitions[1]])
    assert parts.npartitions == 4
    held_out = pd.DataFrame(HELD_OUT[0], columns=list("abcd"))
    held_out["query"] = HELD_OUT[2]
    together = ranker(**settings, query_column="query").fit(
        parts.drop(columns="label"), parts["label"], eval_set=[(held_out, HELD_OUT[1])]
    )
    frame = frame.drop(columns="label")
    np.testing.assert_allclose(together.predict(frame), alone.predict(few), atol=1e-6)
    np.testing.assert_allclose(together.history_.metric, alone.history_.metric, rtol=1e-6)


def test_early_stopping_takes_the_tree_of_one_process(client):
    settings = {"trees": 60, "patience": 4, "learning_rate": 0.5}
    alone = ranker(**settings).fit(X, Y, qid=QID, eval_set=[HELD_OUT])
    parts = arrays(12, X, Y, QID)
    together = ranker(**settings).fit(parts[0], parts[1], qid=parts[2], eval_set=[HELD_OUT])
    assert len(alone.forest_) < 60
    assert len(together.forest_) == len(alone.forest_)
    assert together.history_.steps == alone.history_.steps


def test_objectives_that_draw_do_so_by_the_seed(client):
    parts = arrays(12, X, Y, QID)
    settings = {"objective": "listmle", "objective_params": {"ties": "random"}, "trees": 4}
    one, other = (
        ranker(**settings).fit(parts[0], parts[1], qid=parts[2]).predict(X) for _ in range(2)
    )
    np.testing.assert_array_equal(one, other)


def test_steps_by_query_go_on_and_those_over_all_rows_are_refused(client):
    parts = arrays(12, X, Y, QID)
    settings = {"features": "query-scale", "trees": 3, "library": "xgboost"}
    alone = ranker(**settings).fit(X, Y, qid=QID)
    together = ranker(**settings).fit(parts[0], parts[1], qid=parts[2])
    np.testing.assert_allclose(together.predict(X, qid=QID), alone.predict(X, qid=QID), atol=1e-6)
    with pytest.raises(ValueError, match=r"Standardize\(\) looks at all rows"):
        ranker(features="standardize").fit(parts[0], parts[1], qid=parts[2])


def test_a_saved_model_needs_no_dask(client, tmp_path):
    parts = arrays(12, X, Y, QID)
    together = ranker(trees=3).fit(parts[0], parts[1], qid=parts[2])
    tr.save(together, tmp_path / "model")
    np.save(tmp_path / "X.npy", X)
    program = (
        "import sys; sys.modules['dask'] = sys.modules['distributed'] = None\n"
        "sys.modules['lightgbm'] = None\n"
        "import numpy as np, tierrank as tr\n"
        "np.save('scores.npy', tr.load('model').predict(np.load('X.npy')))\n"
    )
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True, timeout=120)
    np.testing.assert_array_equal(np.load(tmp_path / "scores.npy"), together.predict(X))


def test_what_does_not_go_together_is_refused(client):
    parts = arrays(12, X, Y, QID)
    with pytest.raises(ValueError, match="no group"):
        ranker().fit(parts[0], parts[1], group=[SIZE] * 36)
    with pytest.raises(ValueError, match="y is ndarray, but X lies on Dask"):
        ranker().fit(parts[0], Y, qid=parts[2])
    with pytest.raises(ValueError, match="qid has 4 partitions, but X has 3"):
        ranker().fit(parts[0], parts[1], qid=arrays(9, QID)[0])
    by_row = da.from_array(np.arange(len(X), dtype=float), chunks=12 * SIZE)
    with pytest.raises(ValueError, match=r"rows of query \d+ have several weights"):
        ranker().fit(parts[0], parts[1], qid=parts[2], weights=by_row)
    wrong = X.copy()
    wrong[200, 1] = np.inf
    with pytest.raises(ValueError, match=r"partition 1 of X: .*infinite"):
        ranker().fit(arrays(12, wrong)[0], parts[1], qid=parts[2])
    with pytest.raises(ValueError, match="nothing to learn"):
        ranker().fit(parts[0], parts[1] * 0, qid=parts[2])
    with pytest.raises(ValueError, match="which rows form a list"):
        ranker().fit(parts[0], parts[1])


@pytest.mark.parametrize("name", ["refit", "members"])
def test_what_is_for_one_process_is_refused_by_name(client, name):
    settings = {"refit": True, "members": 2}
    with pytest.raises(ValueError, match=f"{name}={settings[name]} is for rows of one process"):
        ranker(**{name: settings[name]}).fit(
            *arrays(6, X, Y), qid=arrays(6, QID)[0], eval_set=HELD_OUT
        )


def test_a_client_that_is_closed_or_missing_and_other_versions(cluster, monkeypatch):
    parts = arrays(12, X, Y, QID)
    with distributed.Client(cluster, set_as_default=False) as client:
        with pytest.raises(ValueError, match="there is no Dask client"):
            ranker().fit(parts[0], parts[1], qid=parts[2])
        monkeypatch.setattr(np, "__version__", "1.0")
        with pytest.raises(ValueError, match=r"the worker at tcp://.* has numpy .* here it is 1.0"):
            ranker().fit(parts[0], parts[1], qid=parts[2], client=client)
    with pytest.raises(ValueError, match="the Dask client is closed"):
        ranker().fit(parts[0], parts[1], qid=parts[2], client=client)


@pytest.mark.slow
@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("left", [1, 2])
def test_a_killed_worker_is_named_and_the_fit_goes_on_from_its_checkpoint(
    library, left, tmp_path, monkeypatch
):
    monkeypatch.setattr(boosted, "SEGMENT", 6)
    parts = arrays(12, X, Y, QID)
    settings = {"library": library, "trees": 24, "row_fraction": 0.8, "patience": None}

    def fit(client, **options):
        return ranker(**settings).fit(
            parts[0], parts[1], qid=parts[2], eval_set=[HELD_OUT], client=client,
            checkpoint_every=0, **options,
        )  # fmt: skip

    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, host="127.0.0.1",
        dashboard_address=":0", silence_logs=50,
    ) as cluster, distributed.Client(cluster) as client:  # fmt: skip
        expected = fit(client).predict(X)
        pid = list(client.run(os.getpid).values())[1]

        def kill(progress):
            if progress.done == 15:
                os.kill(pid, signal.SIGKILL)
                if left == 1:
                    cluster.scale(1)

        with pytest.raises(ConnectionError, match=r"the worker tcp://\S+ was lost") as caught:
            fit(client, checkpoint=tmp_path / "state", watch=kill)
        assert "\n" not in str(caught.value)
        client.wait_for_workers(left, timeout=60)
        seen = []
        resumed = fit(client, checkpoint=tmp_path / "state", watch=lambda p: seen.append(p.done))
        assert seen[0] == 13
        np.testing.assert_array_equal(resumed.predict(X), expected)


@pytest.mark.slow
def test_a_scheduler_that_dies_is_said_in_one_line(tmp_path):
    parts = arrays(12, X, Y, QID)
    with served(tmp_path) as (server, address), distributed.Client(address, timeout=30) as client:

        def kill(progress):
            if progress.done == 3:
                os.killpg(server.pid, signal.SIGKILL)

        begun = time.monotonic()
        with pytest.raises(ConnectionError, match=r"is gone|was lost") as caught:
            ranker().fit(parts[0], parts[1], qid=parts[2], client=client, watch=kill)
        assert "\n" not in str(caught.value)
        assert time.monotonic() - begun < 120
