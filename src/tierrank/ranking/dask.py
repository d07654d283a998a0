"""Boosted trees on rows that lie on the workers of a Dask cluster.

Each worker keeps its rows, binned once, the tiers of its own queries and a booster of LightGBM or
XGBoost; the library's own network connects these, and adds up their histograms. The loop of
`Boosting` runs in the client: it asks all workers at once for a tree, and adds up the losses and
metrics that come back. So early stopping, checkpoints and Ctrl-C are those of one process, and of
the rows nothing travels once they are on their workers.
"""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from copy import copy
from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.utils.validation import validate_data

from tierrank._types import AnyArray
from tierrank.data.cluster import LOOK_AGAIN, client_of, gathered, in_two, parquet, workers_of
from tierrank.data.ranking_data import column_of, occurring
from tierrank.errors import Argument, ArgumentError
from tierrank.ranking.base import (
    TrainingRows,
    split_query_column,
    sum_and_number,
    validation_set,
)
from tierrank.ranking.boosted import Boosting, BoostingState, LocalRows, Step, torch_threads
from tierrank.ranking.derivatives import BoostingObjective, newton_step
from tierrank.ranking.features import Impute, QueryScale, Steps, steps_from
from tierrank.ranking.forest import Forest
from tierrank.tiers.arrays import group_rows, is_dask
from tierrank.training import Checkpoint, History, Watch
from tierrank.training.progress import digest, seed_from

if TYPE_CHECKING:
    from tierrank.ranking.boosted import BoostedRanker

FAREWELL = 10.0  # seconds until the scheduler has noticed that a worker is gone
LOCAL_ROWS = 100_000  # of the client, in one partition
CONNECTING = 2  # minutes for the workers of a network to find each other


def fit(
    ranker: BoostedRanker,
    X: Any,
    y: Any,
    *,
    qid: Any,
    group: Any,
    weights: Any,
    eval_set: Any,
    client: Any,
    shuffle: bool,
    checkpoint: Any,
    checkpoint_every: float,
    watch: Watch | None,
    before: BoostedRanker | None,
) -> None:
    """What `BoostedRanker.fit` does with collections of Dask, and with Parquet and a client."""
    client = client_of(client, packages=(ranker.library,))
    if group is not None:
        raise ValueError("on Dask, lists are told by qid, one a row, or by query_column: no group")
    for name, usual in (("refit", (False, "auto")), ("members", (1,))):
        if getattr(ranker, name) not in usual:
            raise ArgumentError(
                Argument(name), f"={getattr(ranker, name)!r} is for rows of one process, not for "
                "Dask: leave it out",
            )  # fmt: skip
    ranker._choose_by_size(1)
    ranker._settings()  # refuses what is wrong before anything is read
    X = _collection(X)
    taken = [each for each in (y, qid, weights) if isinstance(each, str)]
    _note_features(ranker, X, taken)
    if before is not None:
        ranker._check_same_features(before)
    _note_categories(ranker, client, X, taken)
    reader = copy(ranker)
    train = _Parts.read(client, reader, (X, y, qid, weights), shuffle, "X")
    for each in (ranker, reader):  # which the workers learn by
        each._choose_by_size(sum(about.rows for about in train.about))
    held_out, given = None, validation_set(eval_set)
    if given is not None:
        valid_X, valid_y, valid_qid = given
        if valid_qid is None and isinstance(qid, str):
            valid_qid = qid
        sides = (each if isinstance(each, str) else _collection(each, local=True)
                 for each in (valid_y, valid_qid))  # fmt: skip
        frame = _collection(valid_X, local=True)
        carried = isinstance(weights, str) and weights in getattr(frame, "columns", ())
        columns = (frame, *sides, weights if carried else None)  # which are no features
        held_out = _Parts.read(client, reader, columns, shuffle, "the X of eval_set")
    identity: dict[str, Any] = {}
    if checkpoint is not None:
        identity = {
            "estimator": type(ranker).__name__,
            "params": ranker._json_params(),
            "training data": train.digest(),
            "validation data": held_out.digest() if held_out else None,
        }
        if before is not None:
            identity["init_model"] = digest(*before.to_state()[1].values())
    _run(ranker, client, reader, train, held_out,
         Checkpoint(checkpoint, identity, every=checkpoint_every), watch, before)  # fmt: skip


def _run(
    ranker: BoostedRanker,
    client: Any,
    reader: BoostedRanker,
    train: _Parts,
    valid: _Parts | None,
    checkpoint: Checkpoint,
    watch: Watch | None,
    before: BoostedRanker | None,
) -> None:
    kept = checkpoint.load()
    seed = seed_from(ranker.random_state) if kept is None else kept[0]["seed"]
    if kept is None:
        layout = {"train": train.layout(), "valid": valid.layout() if valid else None}
        start = BoostingState(
            ranker._forest_of(before), None, None, History("tree", ranker._metric().name),
            {}, layout=layout,
        )  # fmt: skip
    else:
        start = BoostingState.from_saved(*kept)
    shards = _Shards.of(client, reader, train, valid, start.layout)
    try:
        rows = ClusterRows(shards, start, seed)
        if kept is None:
            start = replace(start, parameters=ranker._parameters_of(before, rows.parameters))
        boosting = Boosting(rows, ranker._most_trees(before), ranker.patience, seed)
        done = boosting.run(start, checkpoint, watch)
    finally:
        shards.leave()
    ranker._take(*done)


def predict(ranker: BoostedRanker, X: Any) -> Any:
    """[rows] scores of a collection, as a lazy one: each partition is scored where it lies."""
    if ranker.steps_.needs_qid and ranker.query_column is None:
        raise ValueError(
            "a feature step looks at whole queries: to predict on Dask, name their column by "
            "query_column, and let no query lie in two partitions"
        )
    if hasattr(X, "map_partitions"):
        return X.map_partitions(_scores, ranker, meta=("score", np.float64))
    return X.rechunk({1: -1}).map_blocks(_scores, ranker, drop_axis=1, dtype=np.float64)


def _scores(X: Any, ranker: BoostedRanker) -> Any:
    scores = ranker.predict(X) if len(X) else np.zeros(0)
    if not hasattr(X, "index"):
        return scores
    import pandas

    return pandas.Series(scores, index=X.index, name="score")


# -- rows in partitions -----------------------------------------------------------------------


class _Part(NamedTuple):
    """A partition's rows: [rows, features], and [rows] labels, queries, and weights if any."""

    X: Any
    y: AnyArray
    qid: AnyArray
    weights: AnyArray | None


class _About(NamedTuple):
    """What the client knows of a part."""

    rows: int
    queries: AnyArray
    dtype: Any


class _Parts:
    """Partitions on the workers, no query in two of them."""

    def __init__(self, client: Any, parts: Sequence[Any], about: Sequence[_About]) -> None:
        self.client, self.parts, self.about = client, parts, about

    @classmethod
    def read(
        cls, client: Any, ranker: BoostedRanker, columns: tuple[Any, ...], shuffle: bool, what: str
    ) -> _Parts:
        """Check the rows of each partition, and bring those of a query together.

        Parameters
        ----------
        columns
            X, y, qid and weights: X is a collection, and so are the others, or names of columns
        """
        from dask import delayed

        blocks = _blocks(columns, what)
        reader = client.scatter(ranker, hash=False)
        tasks = [delayed(_read)(reader, n, what, *block) for n, block in enumerate(blocks)]
        parts = _computed(client, tasks)
        about = gathered(client, client.map(_look, parts, pure=False))
        split = in_two([each.queries.tolist() for each in about])
        if split is None:
            return cls(client, parts, about)
        if not shuffle:
            query, one, other = split
            raise ValueError(
                f"query {query!r} has rows in the partitions {one} and {other} of {what}: keep "
                "the rows of a query together, or let shuffle=True bring them together"
            )
        parts = _shuffled(client, parts, about)
        return cls(client, parts, gathered(client, client.map(_look, parts, pure=False)))

    def digest(self) -> str:
        """Of all that they hold, in order."""
        return digest(np.array(gathered(self.client, self.client.map(_digest, self.parts))))

    def layout(self) -> list[list[int]]:
        """For each worker that is to hold some, numbers of the parts that have rows.

        It goes by the number of workers alone, so that the same fit has the same shards.
        """
        groups = _groups(self.client, len(self.parts))
        filled = [[number for number in group if self.about[number].rows] for group in groups]
        return [group for group in filled if group]


def _groups(client: Any, parts: int) -> list[list[int]]:
    """Which parts, as they follow each other, each worker is to have."""
    workers = max(len(workers_of(client)), 1)
    return [group.tolist() for group in np.array_split(np.arange(parts), workers)]


def _computed(client: Any, tasks: Sequence[Any]) -> list[Any]:
    """Futures of what the tasks give, each on the worker that is to have it."""
    futures = []
    for worker, group in zip(workers_of(client), _groups(client, len(tasks)), strict=False):
        mine = [tasks[number] for number in group]
        futures += client.compute(mine, workers=[worker], allow_other_workers=True)
    return futures


def _collection(X: Any, *, local: bool = False) -> Any:
    """Parquet by its name, and if `local` arrays and frames of this process, as Dask's."""
    if is_dask(X) or X is None:
        return X
    if isinstance(X, str | PathLike):
        return parquet(X)
    if hasattr(X, "iloc"):
        from dask.dataframe import from_pandas

        return from_pandas(X, chunksize=LOCAL_ROWS, sort=False)
    from dask.array import from_array

    return from_array(np.asarray(X), chunks=(LOCAL_ROWS, *np.shape(X)[1:]))


def _note_features(ranker: BoostedRanker, X: Any, taken: list[str]) -> None:
    """Set what scikit-learn has of the features, and the feature steps."""
    if hasattr(X, "columns"):
        named = [ranker.query_column] if isinstance(ranker.query_column, str) else []
        for name in {*taken, *named} - set(X.columns):
            raise ValueError(f"X has no column {name!r}: it has {', '.join(map(str, X.columns))}")
        like = _features(ranker, X._meta, taken)
    else:
        like = np.empty((0, X.shape[1] - (ranker.query_column is not None)))
    validate_data(ranker, like, reset=True, skip_check_array=True)
    ranker.steps_ = Steps(steps_from(ranker.features))
    for step in ranker.steps_.steps:
        plain = isinstance(step, Impute) and not isinstance(step.value, str) and not step.indicator
        if not plain and not isinstance(step, QueryScale):
            raise ValueError(
                f"{step!r} looks at all rows before the first tree, which is not done on Dask: "
                "leave it out (trees do not mind scales or missing values), or transform X first"
            )
    one = np.zeros((1, like.shape[1]))
    ranker.steps_.fit_transform(one, np.zeros(1), np.zeros(1))


def _features(ranker: BoostedRanker, frame: Any, taken: Sequence[str]) -> Any:
    """A partition without its labels, queries and weights."""
    without = frame.drop(columns=list(set(taken))) if taken else frame
    return split_query_column(without, ranker.query_column)[0]


def _note_categories(ranker: BoostedRanker, client: Any, X: Any, taken: list[str]) -> None:
    """Set the categories of all partitions, of which each may have a dictionary of its own.

    That reads the columns once more, before the fit.
    """
    from dask import delayed

    like = _features(ranker, X._meta if hasattr(X, "columns") else np.empty((0, X.shape[1])), taken)
    columns = ranker._begin_categories(like)
    if not columns:
        return
    ranker._check_for_categories(like, like, columns)
    if ranker._kept_categories is not None:
        return
    tasks = [delayed(_categories)(ranker, part, taken, columns) for part in _delayed(X)]
    for found in gathered(client, client.compute(tasks)):
        for at, words in found.items():
            ranker.categories_[at] = tuple(sorted({*ranker.categories_[at], *words}))


def _categories(
    ranker: BoostedRanker, part: Any, taken: list[str], columns: list[int]
) -> dict[int, tuple[str, ...]]:
    rows = _features(ranker, part, taken)
    return {at: occurring(column_of(rows, at)) for at in columns}


def _blocks(columns: tuple[Any, ...], what: str) -> list[tuple[Any, ...]]:
    """The partitions of X, y, qid and weights, one after the other; names and None for each."""
    X, *others = columns
    parts = _delayed(X)
    sides = []
    for name, each in zip(("y", "qid", "weights"), others, strict=True):
        if each is None or isinstance(each, str):
            sides.append([each] * len(parts))
            continue
        if not is_dask(each):
            raise ValueError(
                f"{name} is {type(each).__name__}, but {what} lies on Dask: give a collection with "
                "the same partitions, or the name of a column"
            )
        side = _delayed(each)
        if len(side) != len(parts):
            raise ValueError(
                f"{name} has {len(side)} partitions, but {what} has {len(parts)}: they go together "
                "one by one"
            )
        sides.append(side)
    return list(zip(parts, *sides, strict=True))


def _delayed(collection: Any) -> list[Any]:
    if hasattr(collection, "chunks"):  # an array: all columns of a row are together
        whole = collection.rechunk({1: -1}) if collection.ndim == 2 else collection
        return list(whole.to_delayed().ravel())
    return list(collection.to_delayed())


def _read(
    ranker: BoostedRanker, number: int, what: str, X: Any, y: Any, qid: Any, weights: Any
) -> _Part:
    """Check the rows of one partition."""
    given = [X[each] if isinstance(each, str) else each for each in (y, qid, weights)]
    taken = {each for each in (y, qid, weights) if isinstance(each, str)}
    if taken:
        X = X.drop(columns=list(taken))
    if not X.shape[0]:
        nothing = np.zeros(0)
        matrix = np.zeros((0, ranker.n_features_in_))
        return _Part(matrix, nothing, nothing, None if weights is None else nothing)
    try:
        call = "fit(X, y, qid=qid)"
        rows, (keys, _) = ranker._read(X, given[1], None, call, y=given[0], reset=False)
        query_of_row, names = group_rows(keys, len(rows[1]))
        by_row = None if weights is None else np.asarray(given[2], dtype=np.float64)
        if by_row is not None:
            if by_row.shape != keys.shape:
                raise ValueError(f"weights have shape {list(by_row.shape)}: give one a row")
            if not np.isfinite(by_row).all() or (by_row < 0).any():
                raise ValueError("weights are finite and not negative")
            by_query = np.empty(len(names))
            by_query[query_of_row] = by_row
            if (differs := by_query[query_of_row] != by_row).any():
                query = names.tolist()[query_of_row[np.argmax(differs)]]
                raise ValueError(f"the rows of query {query!r} have several weights: give them one")
    except ValueError as error:
        raise ValueError(f"partition {number} of {what}: {error}") from None
    return _Part(*rows, keys, by_row)


def _look(part: _Part) -> _About:
    return _About(len(part.y), group_rows(part.qid, len(part.y))[1], part.X.dtype)


def _digest(part: _Part) -> str:
    return digest(*part)


def _shuffled(client: Any, parts: Sequence[Any], about: Sequence[_About]) -> list[Any]:
    """Parts in which every query is whole.

    Dask's shuffle by tasks keeps the order of rows, so that the same data give the same parts, and
    a checkpoint finds them again.
    """
    from dask import delayed
    from dask.dataframe import from_delayed

    filled = [part for part, each in zip(parts, about, strict=True) if each.rows]
    dtype = np.result_type(*(each.dtype for each in about if each.rows))
    frames = client.map(_frame, filled, dtype=dtype, pure=False)
    like = gathered(client, [client.submit(_first_rows, frames[0])])[0]
    together = from_delayed(frames, meta=like).shuffle("query", shuffle_method="tasks")
    together = client.persist(together)
    return _computed(client, [delayed(_from_frame)(each) for each in together.to_delayed()])


def _frame(part: _Part, dtype: Any) -> Any:
    import pandas

    if hasattr(part.X, "indptr"):
        raise ValueError(
            "a query has rows in two partitions, and sparse rows are not shuffled: keep the rows "
            "of a query in one partition"
        )
    frame = pandas.DataFrame(np.asarray(part.X, dtype=dtype))
    frame.columns = [f"feature {number}" for number in range(part.X.shape[1])]
    frame["label"], frame["query"] = part.y, part.qid
    if part.weights is not None:
        frame["weight"] = part.weights
    return frame


def _first_rows(frame: Any) -> Any:
    return frame.iloc[:0]


def _from_frame(frame: Any) -> _Part:
    features = [name for name in frame.columns if name.startswith("feature ")]
    weights = frame["weight"].to_numpy() if "weight" in frame.columns else None
    qid = frame["query"].to_numpy()
    return _Part(frame[features].to_numpy(), frame["label"].to_numpy(), qid, weights)


def _joined(parts: Sequence[_Part]) -> _Part:
    if len(parts) == 1:
        return parts[0]
    X, y, qid, weights = zip(*parts, strict=True)
    if hasattr(X[0], "indptr"):
        from scipy.sparse import vstack

        matrix = vstack(X, format="csr")
    else:
        matrix = np.concatenate(X)
    if len({keys.dtype.kind for keys in qid}) > 1:
        qid = tuple(keys.astype(object) for keys in qid)
    return _Part(
        matrix,
        np.concatenate(y),
        np.concatenate(qid),
        None if weights[0] is None else np.concatenate(weights),
    )


# -- a worker's share -------------------------------------------------------------------------


class Shard:
    """The rows of one worker, and what grows trees on them; an actor of Dask.

    The networks of LightGBM and XGBoost belong to a thread. So every shard has a thread of its
    own: two fits at once do not meet, and shards of one fit may share a worker.
    """

    rows: LocalRows
    state: BoostingState

    def __init__(
        self, ranker: BoostedRanker, parts: Sequence[_Part], valid_parts: Sequence[_Part]
    ) -> None:
        from distributed import get_worker

        self._thread = ThreadPoolExecutor(1, thread_name_prefix="tierrank-boosting")
        self.worker = get_worker().address
        self.ranker = copy(ranker)
        if ranker.threads is None:
            self.ranker.threads = get_worker().state.nthreads
        train, valid = _joined(parts), _joined(valid_parts) if valid_parts else None
        self.train = self._prepared(train)
        self.valid = None if valid is None else self.ranker._validation(self._prepared(valid))

    def _prepared(self, part: _Part) -> TrainingRows:
        ready = self.ranker._prepared((part.X, part.y), (part.qid, None), None)
        if part.weights is None:
            return ready
        first = np.unique(group_rows(part.qid, len(part.y))[0], return_index=True)[1]
        return replace(ready, weights=part.weights[first])

    async def call(self, method: str, *args: Any) -> Any:
        """Let the shard's own thread do something."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, self._do, method, args)

    def _do(self, method: str, args: tuple[Any, ...]) -> Any:
        with torch_threads(self.ranker.threads or 1):
            return getattr(self, method)(*args)

    def about(self) -> tuple[int, float, bool]:
        """Number of lists, sum of their weights, and whether any of them teaches."""
        lists, weights = len(self.train.tiers), self.train.weights
        teaches = bool(self.train.teaches.any())
        return lists, float(lists if weights is None else weights.sum()), teaches

    def port(self) -> tuple[str, int]:
        """This machine, and a port of it that is free."""
        from distributed.comm import get_address_host

        host = get_address_host(self.worker)
        with socket.socket() as here:
            here.bind(("", 0))
            return host, here.getsockname()[1]

    def tracker(self, rank: int, shards: int) -> dict[str, Any]:
        """Let the first shard bring those together that `join` with what this gives."""
        if rank:
            return {}
        from xgboost.tracker import RabitTracker

        tracker = RabitTracker(
            n_workers=shards, host_ip=self.port()[0], sortby="task", timeout=60 * CONNECTING
        )
        tracker.start()
        threading.Thread(target=_wait_for, args=(tracker,), daemon=True).start()
        return dict(tracker.worker_args())

    def join(
        self, rank: int, network: list[dict[str, Any]], mean_weight: float, seed: int
    ) -> tuple[tuple[float, int], dict[str, float]]:
        """Bin the rows, together with the other shards.

        Returns
        -------
        tuple
            `first_slopes` and `parameters` of the objective
        """
        ranker, train, valid = self.ranker, self.train, self.valid
        valid_X = None if valid is None else valid.X
        settings = ranker._settings()
        grower = ranker._grower(train.X, valid_X, settings, network[rank])
        objective = BoostingObjective(
            ranker._objective(), train.tiers, train.weights, seed + rank, mean_weight
        )
        objective.learns = False
        metric = None if valid is None else lambda scores: sum_and_number(valid.values(scores))
        self.rows = LocalRows(grower, objective, metric, rank)
        return objective.first_slopes, objective.parameters

    def resume(self, forest: Forest, typical_slope: float) -> None:
        """Stand where these trees lead to, to the last bit: adding them up as the library did."""
        self.rows.objective.typical_slope = typical_slope
        dtype = self.ranker._score_dtype
        self.state = BoostingState(
            forest,
            forest.added_up(self.train.X, dtype),
            None if self.valid is None else forest.added_up(self.valid.X, dtype),
            History("tree", ""),
            {},
        )
        del self.train, self.valid  # the library has them, in bins

    def start(self, parameters: dict[str, float], seed: int) -> None:
        """Begin a segment."""
        self.state = replace(self.state, parameters=parameters)
        self.rows.start(self.state, seed)

    def slopes(self, parameters: dict[str, float]) -> list[float]:
        """Of the loss in the objective's own parameters."""
        return self.rows.objective.slopes(self.rows.scores, parameters)

    def derive(self, parameters: dict[str, float]) -> None:
        """Take the derivatives with these parameters."""
        self.rows.objective.parameters = parameters
        self.rows.derive()

    def look(self, parameters: dict[str, float]) -> Step:
        """Loss and metric with these parameters."""
        self.rows.objective.parameters = parameters
        return self.rows.look()

    def add_tree(self) -> bool:
        """As `LocalRows` does."""
        return self.rows.add_tree()

    def grow(self) -> Step | None:
        """As `LocalRows` does."""
        return self.rows.grow()

    def grown(self, rank: int) -> Forest | None:
        """End a segment; the first of all shards tells what grew."""
        before = len(self.state.forest)
        self.state = self.rows.state(self.state)
        forest: Forest = self.state.forest
        return forest.between(before, len(forest)) if rank == 0 else None

    def leave(self) -> None:
        """Leave the library's network."""
        self.rows.grower.leave()


def _wait_for(tracker: Any) -> None:
    with suppress(Exception):  # a shard that is gone: the others, and the client, say so
        tracker.wait_for()


# -- all workers' shares together -------------------------------------------------------------


class _Shards:
    """The shards of a fit, to be asked all at once."""

    def __init__(self, client: Any, library: str, futures: Sequence[Any], workers: list[str]):
        self.client, self.library, self.workers = client, library, workers
        gathered(client, futures, keep=True)
        self.actors = [future.result() for future in futures]

    @classmethod
    def of(
        cls,
        client: Any,
        ranker: BoostedRanker,
        train: _Parts,
        valid: _Parts | None,
        layout: dict[str, Any],
    ) -> _Shards:
        """A shard for each list of parts, on the worker that has most of them.

        Where there are fewer workers than when the fit began, some have several shards.
        """
        held = client.who_has(list(train.parts))
        here = dict.fromkeys(sorted(workers_of(client)), 0)
        futures, workers = [], []
        for rank, numbers in enumerate(layout["train"]):
            owners = [worker for number in numbers for worker in held[train.parts[number].key]]
            worker = min(here, key=lambda each: (here[each], -owners.count(each)))
            here[worker] += 1
            valid_parts = [
                valid.parts[number]
                for several in (layout["valid"] or [])[rank :: len(layout["train"])]
                for number in several
                if valid is not None
            ]
            parts = [train.parts[number] for number in numbers]
            workers.append(worker)
            futures.append(
                client.submit(
                    Shard, ranker, parts, valid_parts, actor=True, pure=False, workers=[worker]
                )
            )
        shards = cls(client, ranker.library, futures, workers)
        for source in (train, valid):
            if source is not None:
                source.parts = ()  # the shards have the rows now
        return shards

    def __len__(self) -> int:
        return len(self.actors)

    def call(self, method: str, *args: Any, ranked: bool = False) -> list[Any]:
        """What the method of each shard gives; `ranked` ones are told their number first."""
        results: list[Any] = []
        try:
            calls = [
                actor.call(method, *((rank, *args) if ranked else args))
                for rank, actor in enumerate(self.actors)
            ]
            for number, call in enumerate(calls):
                while not len(results) > number:
                    try:
                        results.append(call.result(timeout=LOOK_AGAIN))
                    except TimeoutError:
                        if call.done():
                            raise
                        self._refuse_losses(0)
                        for other in calls[number:]:
                            if other.done():
                                other.result()  # the others wait for one that failed
        except ConnectionError:
            raise
        except Exception as error:
            self._refuse_losses(FAREWELL, error)
            raise
        return results

    def _refuse_losses(self, patience: float, cause: Exception | None = None) -> None:
        """Raise a ConnectionError if a worker of the fit is gone, or within so many seconds."""
        name = {"lightgbm": "LightGBM", "xgboost": "XGBoost"}[self.library]
        until = time.monotonic() + patience
        while True:
            lost = set(self.workers) - set(workers_of(self.client))
            if lost:
                raise ConnectionError(
                    f"the worker {min(lost)} was lost, and {name} cannot go on without it: fit "
                    "again; with a checkpoint, from the last state that was kept to the same model"
                ) from cause
            if time.monotonic() >= until:
                return
            time.sleep(0.1)

    def leave(self) -> None:
        """Let go of the rows and of the library's network, whatever state they are in."""
        try:
            farewells = [actor.call("leave") for actor in self.actors]
            for each in farewells:
                each.result(timeout=FAREWELL)
        except Exception:  # a worker that is gone has left
            pass
        self.actors = []


class ClusterRows:
    """Rows of the workers of a cluster, for `Boosting`.

    Attributes
    ----------
    parameters
        the objective's own. Their Newton steps go by slopes that are summed over all shards.
    """

    def __init__(self, shards: _Shards, start: BoostingState, seed: int) -> None:
        self.shards = shards
        lists, weights, teach = zip(*shards.call("about"), strict=True)
        if not sum(weights) > 0:
            raise ValueError("weights are not all 0")
        if not any(teach):
            raise ValueError(
                "there is nothing to learn: every list that weighs more than 0 has one label only. "
                "Are y, qid and weights right?"
            )
        self.lists = lists
        joined = shards.call("join", self._network(), sum(weights) / sum(lists), seed, ranked=True)
        slopes, numbers = (sum(each) for each in zip(*(first for first, _ in joined), strict=True))
        self.parameters: dict[str, float] = joined[0][1]
        shards.call("resume", start.forest, slopes / numbers if numbers else 1.0)

    def _network(self) -> list[dict[str, Any]]:
        """What each shard opens the library's network with."""
        number = len(self.shards)
        if self.shards.library == "xgboost":
            found = self.shards.call("tracker", number, ranked=True)[0] if number > 1 else {}
            return [{**found, "dmlc_task_id": f"{rank:06d}"} for rank in range(number)]
        places: list[tuple[str, int]] = []
        while len(set(places)) < number:
            places = self.shards.call("port")
        machines = ",".join(f"{host}:{port}" for host, port in places)
        shared = {"machines": machines, "num_machines": number, "time_out": CONNECTING}
        return [{**shared, "local_listen_port": port} for _, port in places]

    def start(self, state: BoostingState, seed: int) -> None:
        self.shards.call("start", state.parameters, seed)
        self.parameters = state.parameters
        if self.parameters:
            self._improve_parameters()
            self.shards.call("derive", self.parameters)

    def grow(self) -> Step | None:
        if not self.parameters:
            steps = self.shards.call("grow")
        elif all(self.shards.call("add_tree")):
            self._improve_parameters()
            return self.look()
        else:
            return None
        return None if None in steps else self._together(steps)

    def look(self) -> Step:
        return self._together(self.shards.call("look", self.parameters))

    def _together(self, steps: list[Step]) -> Step:
        loss = np.dot(self.lists, [step.loss for step in steps]) / sum(self.lists)
        measured = [step.metric for step in steps if step.metric is not None]
        metric = None
        if measured:
            total, number = (sum(each) for each in zip(*measured, strict=True))
            metric = total / number
        return Step(float(loss), metric)

    def _improve_parameters(self) -> None:
        def slopes(parameters: dict[str, float]) -> list[float]:
            return [sum(each) for each in zip(*self.shards.call("slopes", parameters), strict=True)]

        self.parameters = newton_step(self.parameters, slopes)

    def state(self, before: BoostingState) -> BoostingState:
        grown = self.shards.call("grown", ranked=True)[0]
        forest = before.forest.followed_by(grown)
        return replace(before, forest=forest, parameters=self.parameters)
