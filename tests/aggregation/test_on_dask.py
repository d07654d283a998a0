"""Lists and games on the workers of a real Dask cluster give what one process gives."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tierrank as tr
from dask_server import served
from tierrank.aggregation.connectivity import Disconnected
from tierrank.aggregation.dask import PartedLists
from tierrank.data.rankings import reading
from tierrank.data.rankings.container import PartedRankings

pd = pytest.importorskip("pandas")
dd = pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("distributed")

pytestmark = [pytest.mark.timeout(300), pytest.mark.filterwarnings("ignore:the frame was taken so")]


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """Two workers, each a process of its own."""
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, host="127.0.0.1"
        ) as cluster,
        distributed.Client(cluster) as found,
    ):
        yield found


@pytest.fixture
def many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lists stay on the workers, however few they are."""
    monkeypatch.setattr(reading, "FEW", 0)


def votes(lists: int = 400, items: int = 12, seed: int = 0) -> Any:
    """Rows of lists of four with ties, some of them alike, in an order in which lists are mixed."""
    random = np.random.default_rng(seed)
    worth = random.normal(size=items)
    rows = []
    for number in range(lists):
        chosen = random.choice(items, 4, replace=False)
        value = np.round(worth[chosen] + random.gumbel(size=4))
        ranks = np.unique(-value, return_inverse=True)[1] + 1
        rows += [(number, f"item {i}", rank) for i, rank in zip(chosen, ranks, strict=True)]
    rows += [
        (lists + extra, f"item {place}", place + 1) for extra in range(50) for place in (0, 1, 2)
    ]
    frame = pd.DataFrame(rows, columns=["list", "item", "rank"])
    return frame.sample(frac=1, random_state=seed).reset_index(drop=True)


def test_lists_on_workers_give_the_estimates_of_one_process(client: Any, many: None) -> None:
    frame = votes()
    one = tr.RankAggregator().fit(frame)
    parted = tr.RankAggregator().fit(dd.from_pandas(frame, npartitions=3))
    assert isinstance(parted.lists_, PartedLists)
    assert parted.items_ == one.items_
    np.testing.assert_allclose(parted.log_worths_, one.log_worths_, rtol=0, atol=1e-9)
    assert parted.log_likelihood_ == pytest.approx(one.log_likelihood_, abs=1e-9)
    for kind in ("information", "sandwich"):
        np.testing.assert_allclose(
            parted.covariance(kind=kind), one.covariance(kind=kind), rtol=0, atol=1e-9
        )
    assert parted.lists_.total == one.lists_.total == 450
    assert parted.lists_.silent == one.lists_.silent
    assert parted.lists_.seen == one.lists_.seen
    assert parted.converged_


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings",
    [
        {"prior": "gaussian"},
        {"prior": "pseudo-item:0.5"},
        {"objective": "pl-topk", "objective_params": {"k": 2}},
        {"objective": "pl-efron"},
        {"objective": "ranknet", "uncertainty": "sandwich"},
    ],
    ids=str,
)
def test_priors_and_other_objectives(client: Any, many: None, settings: dict[str, Any]) -> None:
    frame = votes()
    one = tr.RankAggregator(**settings).fit(frame)
    parted = tr.RankAggregator(**settings).fit(dd.from_pandas(frame, npartitions=3))
    np.testing.assert_allclose(parted.log_worths_, one.log_worths_, rtol=0, atol=1e-9)


def test_lists_that_are_few_come_here_and_are_fitted_as_ever(client: Any) -> None:
    frame = votes()
    fitted = tr.RankAggregator().fit(dd.from_pandas(frame, npartitions=4))
    one = tr.RankAggregator().fit(frame)
    assert not isinstance(fitted.lists_, PartedLists)
    np.testing.assert_allclose(fitted.log_worths_, one.log_worths_, rtol=0, atol=1e-9)
    assert fitted.lists_.total == one.lists_.total


@pytest.mark.slow
def test_a_bootstrap_draws_lists_where_they_lie(client: Any, many: None) -> None:
    parted = tr.RankAggregator().fit(dd.from_pandas(votes(items=5), npartitions=3))
    lists = parted.lists_
    assert isinstance(lists, PartedLists)
    drawn = lists.drawn(np.random.default_rng(4))
    before, after = (
        [part.unpacked() for part in client.gather(list(each.parts))] for each in (lists, drawn)
    )
    assert sum(part.weights.sum() for part in after) == lists.weight == drawn.weight
    seen = {repr(ranking) for part in before for ranking in part.tiers.to_rankings()}
    for part in after:
        assert set(map(repr, part.tiers.to_rankings())) <= seen
    found = parted.bootstrap(3, random_state=1)
    assert found.without_estimate == 0
    assert 0.2 < (found.standard_errors / parted.standard_errors_).mean() < 2
    np.testing.assert_array_equal(
        found.log_worths[:2], parted.bootstrap(2, random_state=1).log_worths
    )


def test_what_is_not_connected_is_named_as_in_one_process(client: Any, many: None) -> None:
    frame = pd.DataFrame(
        {
            "list": [1, 1, 2, 2, 3, 3, 4, 4],
            "item": ["ann", "bob", "ann", "cy", "bob", "cy", "cy", "bob"],
            "rank": [1, 2, 1, 2, 1, 2, 1, 2],
        }
    )
    with pytest.raises(Disconnected) as one:
        tr.RankAggregator().fit(frame)
    with pytest.raises(Disconnected) as parted:
        tr.RankAggregator().fit(dd.from_pandas(frame, npartitions=4))
    assert str(parted.value) == str(one.value)


@pytest.mark.slow
def test_files_of_parquet_are_read_by_the_workers(client: Any, many: None, tmp_path: Path) -> None:
    frame = votes()
    for number in range(3):
        frame.iloc[number::3].to_parquet(tmp_path / f"part-{number}.parquet")
    (tmp_path / "ordered").mkdir()
    frame.to_parquet(tmp_path / "ordered" / "all.parquet")
    one = tr.RankAggregator().fit(frame)
    for source in (f"{tmp_path}/part-*.parquet", tmp_path / "ordered"):
        rankings = tr.data.read_rankings(source, client=client)
        assert isinstance(rankings, PartedRankings)
        assert "list list, item item, rank rank" in rankings.read_as or not rankings.read_as
        assert "450 lists of 12 items" in repr(rankings)
        fitted = tr.RankAggregator().fit(rankings)
        by_name = dict(zip(fitted.items_, fitted.log_worths_, strict=True))
        expected = dict(zip(one.items_, one.log_worths_, strict=True))
        assert by_name == pytest.approx(expected, abs=1e-9)


def games(rows: int = 600) -> Any:
    random = np.random.default_rng(3)
    worth = random.normal(size=8)
    first = random.integers(8, size=rows)
    second = (first + random.integers(1, 8, size=rows)) % 8
    lead = worth[first] - worth[second] + random.logistic(size=rows)
    outcome = np.where(lead > 0.5, "first", np.where(lead < -0.5, "second", "tie"))
    return pd.DataFrame({"first": first + 100, "second": second + 100, "outcome": outcome})


def test_games_are_counted_where_they_lie(client: Any) -> None:
    frame = games()
    columns = {"first": "first", "second": "second", "winner": "outcome"}
    one = tr.PairedTies("davidson").fit(frame, **columns)
    parted = tr.PairedTies("davidson").fit(dd.from_pandas(frame, npartitions=3), **columns)
    assert parted.items_ == one.items_
    np.testing.assert_allclose(parted.log_worths_, one.log_worths_, rtol=0, atol=1e-9)
    np.testing.assert_allclose(parted.standard_errors_, one.standard_errors_, rtol=0, atol=1e-9)


def test_worths_by_features(client: Any, many: None) -> None:
    frame = votes()
    features = {f"item {i}": [float(i), float(i % 3)] for i in range(12)}
    one = tr.FeatureAggregator(uncertainty="sandwich").fit(frame, features)
    parted = tr.FeatureAggregator(uncertainty="sandwich")
    parted.fit(dd.from_pandas(frame, npartitions=3), features)
    assert isinstance(parted.lists_, PartedLists)
    np.testing.assert_allclose(parted.coef_, one.coef_, rtol=0, atol=1e-9)
    for kind in ("information", "sandwich"):
        np.testing.assert_allclose(
            parted.coef_covariance(kind), one.coef_covariance(kind), rtol=0, atol=1e-9
        )
    assert parted.log_likelihood_ == pytest.approx(one.log_likelihood_, abs=1e-9)
    drawn = parted.bootstrap(3, random_state=0).log_worths
    assert (np.abs(drawn - one.log_worths_) < 5 * one.standard_errors_).all()
    assert (np.ptp(drawn, axis=0) > 0).all()
    same = {item: [1.0] for item in features}
    with pytest.raises(ValueError, match="do not differ in x0"):
        tr.FeatureAggregator().fit(dd.from_pandas(frame, npartitions=3), same)


def test_a_partition_of_which_nothing_is_left_takes_no_others_along(client: Any) -> None:
    rows = [("a", "b", "first"), ("b", "c", "tie"), ("c", "a", "first")] * 4
    frame = pd.DataFrame(rows, columns=["first", "second", "winner"])
    frame.loc[frame.index[:4], "winner"] = "skip"  # all of the first partition
    parted = tr.data.read_rankings(dd.from_pandas(frame, npartitions=3), drop_words=["skip"])
    assert len(parted) == 8
    ours, whole = parted.gather(), tr.data.read_games(frame, drop_words=["skip"])
    names = ours.names
    found = {
        (names[one], names[other], int(end)): float(often)
        for one, other, end, often in zip(
            ours.first, ours.second, ours.outcome, ours.weights, strict=True
        )
    }
    assert found == {("a", "b", 1): 2.0, ("b", "c", 0): 3.0, ("c", "a", 1): 3.0}
    assert sorted(names) == sorted(whole.names)


@pytest.mark.slow
def test_partitions_without_rows_and_fewer_lists_than_parts(client: Any, many: None) -> None:
    frame = pd.DataFrame({"list": [1, 1, 2, 2], "item": ["a", "b", "b", "a"], "rank": [1, 2, 1, 2]})
    empty = dd.from_pandas(frame, npartitions=4)
    some = empty[empty["list"] < 10]
    none = dd.concat([some, empty[empty["list"] > 10]])
    fitted = tr.RankAggregator().fit(none)
    np.testing.assert_allclose(fitted.log_worths_, 0, atol=1e-12)
    with pytest.raises(ValueError, match="no partition has a row"):
        tr.RankAggregator().fit(empty[empty["list"] > 10], list="list", item="item", rank="rank")


@pytest.mark.slow
def test_a_worker_that_dies_takes_nothing_along(client: Any, many: None) -> None:
    frame = votes()
    expected = tr.RankAggregator().fit(frame)
    killed: list[int] = []

    def kill(progress: Any) -> None:
        if not killed:
            killed.append(next(iter(client.run(os.getpid).values())))
            os.kill(killed[0], signal.SIGKILL)

    parted = tr.RankAggregator().fit(dd.from_pandas(frame, npartitions=3), watch=kill)
    assert killed
    np.testing.assert_allclose(parted.log_worths_, expected.log_worths_, rtol=0, atol=1e-9)
    np.testing.assert_allclose(
        parted.standard_errors_, expected.standard_errors_, rtol=0, atol=1e-9
    )


def test_what_cannot_be_is_refused_in_one_line(client: Any, many: None) -> None:
    frame = dd.from_pandas(votes(), npartitions=2)
    with pytest.raises(ValueError, match="weights in a column"):
        tr.RankAggregator().fit(frame, weights=np.ones(450))
    with pytest.raises(ValueError, match="give items= to read_rankings"):
        tr.RankAggregator().fit(frame, items=["item 0", "item 1"])
    with pytest.raises(ValueError, match="adagrad"):
        tr.RankAggregator(solver="adagrad").fit(frame)
    with pytest.raises(ValueError, match="not a str"):
        tr.data.read_rankings(frame, client="tcp://127.0.0.1:1")
    with pytest.raises(ValueError, match="not among the items"):
        tr.data.read_rankings(frame, items=["item 0"])


def test_workers_of_another_version_are_named(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = dd.from_pandas(votes(), npartitions=2)
    monkeypatch.setattr(np, "__version__", "1.0")
    with pytest.raises(ValueError, match=r"the worker at tcp://.* has numpy .* here it is 1\.0"):
        tr.RankAggregator().fit(frame)


def test_what_is_not_for_a_cluster_is_refused_by_name(client: Any, tmp_path: Path) -> None:
    frame = dd.from_pandas(votes(), npartitions=2)
    given = {"format": "csv", "strict": True, "max_expansion": 10.0, "separator": ";"}
    for name, value in given.items():
        with pytest.raises(ValueError, match=f"^{name} is not for a cluster") as caught:
            tr.data.read_rankings(frame, client=client, **{name: value})
        assert "\n" not in str(caught.value)
    votes().to_parquet(tmp_path / "0.parquet")
    votes().drop(columns="item").to_parquet(tmp_path / "1.parquet")
    with pytest.raises(ValueError, match=r"1\.parquet: has no column 'item'"):
        tr.data.read_rankings(tmp_path, client=client)


@pytest.mark.slow
def test_a_scheduler_that_dies_is_said_in_one_line(tmp_path: Path, many: None) -> None:
    with served(tmp_path) as (server, address), distributed.Client(address, timeout=30) as client:

        def kill(progress: Any) -> None:
            if progress.done == 2:
                os.killpg(server.pid, signal.SIGKILL)

        votes().to_parquet(tmp_path / "votes.parquet")
        lists = tr.data.read_rankings(tmp_path / "votes.parquet", client=client)
        fitted = tr.RankAggregator()
        with pytest.raises(ConnectionError, match="is gone") as caught:
            fitted.fit(lists, watch=kill)
        assert "\n" not in str(caught.value)
        assert not hasattr(fitted, "log_worths_")


def test_a_saved_fit_needs_no_cluster(client: Any, many: None, tmp_path: Path) -> None:
    parted = tr.RankAggregator().fit(dd.from_pandas(votes(), npartitions=2))
    tr.save(parted, tmp_path / "model")
    loaded = tr.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.log_worths_, parted.log_worths_)
    np.testing.assert_allclose(loaded.standard_errors_, parted.standard_errors_)
    with pytest.raises(ValueError, match="saved without its lists"):
        loaded.bootstrap(2)
