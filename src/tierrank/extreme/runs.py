"""The trainings of one fit, one after the other: learning rates to choose from, members, a refit.

Each has a checkpoint of its own in a folder of the fit's. One that is finished is not done again.
Settings and data are looked at first, before anything is forgotten or written.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tierrank.data.multilabel import MultiLabelData
from tierrank.errors import Argument, ArgumentError, check_count, check_size
from tierrank.extreme.features import check_features
from tierrank.extreme.learner import Glas, LabelBatches, LabelLearner
from tierrank.extreme.network import Network, padded, top_labels, widths
from tierrank.extreme.optimisers import RowOptimiser
from tierrank.extreme.samplers import Sampler, sampler_from
from tierrank.extreme.sharding import ShardedCheckpoint, Shards
from tierrank.losses.record import find_fused
from tierrank.metrics import labels as label_metrics
from tierrank.names import check_sampler
from tierrank.training import Checkpoint, History, Watch
from tierrank.training.loop import (
    Course,
    Evaluate,
    Position,
    WentAstray,
    device_for,
    own_randomness,
    seed_generators,
    train,
)
from tierrank.training.progress import member_seed, named

if TYPE_CHECKING:
    from tierrank.extreme.ranker import ExtremeRanker

EXACT_WEIGHTS = 1 << 25  # of a matrix that Adam goes over in each step, by updates="auto"


class Runs:
    """Fills in what an `ExtremeRanker` learns.

    Parameters
    ----------
    ranker
        whose settings hold; it knows the sizes and counts of the training data already
    plan
        where the fit keeps its seed, and below which each run keeps its state
    seed
        of the first run; further members have others that follow from it
    watch
        told of every run's progress
    shards
        the ranks that learn together
    """

    def __init__(
        self,
        ranker: ExtremeRanker,
        plan: Checkpoint,
        seed: int,
        watch: Watch | None,
        shards: Shards,
    ) -> None:
        self.ranker, self.plan, self.seed, self.shards = ranker, plan, seed, shards
        self.watch = watch if shards.everyone.rank == 0 else None
        self.course = Course(ranker.max_epochs, ranker.patience)

    def choose_rate(
        self, data: MultiLabelData, valid: MultiLabelData | None, rates: list[float]
    ) -> None:
        """Train with every rate, and keep the network that does best on the validation data.

        With `halving`, the rate in the middle comes first, then its neighbours; whichever is behind
        at a rung, after 1, 2, 4, … epochs, goes no further. That is successive halving with one
        worker: memory is that of one network, and the best so far. A rate that leads astray has
        lost, unless all do.
        """
        ranker, best = self.ranker, -np.inf
        race = Race() if ranker.halving and len(rates) > 1 else None
        order = rates if race is None else sorted(rates, key=_from_the_middle(rates))
        ranker.trials_ = []
        for number, rate in enumerate(order):
            name = f"learning rate {rate:g}" + f" ({number + 1} of {len(rates)})" * (len(rates) > 1)
            try:
                network, end = self._run(name, data, valid, rate, self.course, 0, race)
            except WentAstray:
                lost = {"learning_rate": rate, "metric": None, "epoch": None, "epochs": None}
                ranker.trials_.append(lost)
                if number == len(rates) - 1 and not hasattr(ranker, "networks_"):
                    raise
                continue
            found = end.history.best_metric
            trial = {"learning_rate": rate, "metric": found, "epoch": end.history.best_step}
            ranker.trials_.append(trial | {"epochs": end.epoch})
            if race is not None:
                race.finish(end.history)
            # Stopped in its first epoch, a run has no metric, and no claim to be the best.
            if not hasattr(ranker, "networks_") or (found is not None and found > best):
                best = -np.inf if found is None else found
                ranker.networks_, ranker.history_ = [network], end.history
                ranker.learning_rate_ = rate
            del network  # or a runner-up would be there as long as the next one learns
            _stop_if_interrupted(end)
        tried = {trial["learning_rate"]: trial for trial in ranker.trials_}
        ranker.trials_ = [tried[rate] for rate in rates]

    def add_members(self, data: MultiLabelData, valid: MultiLabelData | None) -> None:
        """Train further networks in the same way, with seeds of their own."""
        self._add(data, valid, self.course, range(1, self.ranker.members))

    def refit(self, data: MultiLabelData) -> None:
        """Train all members from the start on all rows, as long as was best before."""
        assert self.ranker.history_.best_step is not None
        course = Course(self.ranker.history_.best_step)
        first = self.ranker.networks_
        self.ranker.networks_ = []
        try:
            self._add(data, None, course, range(self.ranker.members))
        finally:
            self.ranker.networks_ = self.ranker.networks_ or first

    def _add(
        self, data: MultiLabelData, valid: MultiLabelData | None, course: Course, members: range
    ) -> None:
        for member in members:
            name = f"member {member + 1} of {self.ranker.members}"
            network, end = self._run(name, data, valid, self.ranker.learning_rate_, course, member)
            if end.epoch:
                self.ranker.networks_.append(network)
            _stop_if_interrupted(end)

    def _run(
        self,
        name: str,
        data: MultiLabelData,
        valid: MultiLabelData | None,
        rate: float,
        course: Course,
        member: int,
        race: Race | None = None,
    ) -> tuple[Network, Position]:
        """Train one network."""
        ranker = self.ranker
        folder = None
        if self.plan.folder is not None:
            kind = "refit" if course.patience is None else f"rate-{rate!r}"
            folder = Path(self.plan.folder) / f"{kind}-{member}"
        seed = member_seed(self.seed, member)
        device = device_for(ranker.accelerator)
        with own_randomness(device):
            seed_generators(seed, device)
            network = ranker._network(self.shards.labels)
            network.reset()
            if find_fused(ranker.objective).fused == "items":
                network.begin_at(_log_odds(data))
            network.to(device)
        checkpoint = ShardedCheckpoint(
            self.shards, network.spread, folder, self.plan.identity, every=self.plan.every
        )
        learner = self._learner(network, rate, data)
        batches = LabelBatches(
            data.X, data.Y, self._row_weights(data), size=ranker.batch_rows, seed=seed,
            weighted=ranker.features_,
        )  # fmt: skip
        end = train(
            learner,
            batches,
            course,
            seed=seed,
            history=History("epoch", ranker.metric),
            evaluate=None if valid is None else self._evaluation(network, valid),
            checkpoint=checkpoint,
            saved=checkpoint.load(),
            give_up=None if race is None else race.is_lost,
            watch=named(self.watch, name),
        )
        end.best = {}  # the network has these weights now
        network.requires_grad_(False).cpu().eval()
        return network, end

    def _learner(self, network: Network, rate: float, data: MultiLabelData) -> LabelLearner:
        ranker = self.ranker
        return LabelLearner(
            network,
            self._optimiser(network, rate),
            ranker.objective,
            self._sampler(data),
            Glas(data.Y, ranker.glas) if ranker.glas else None,
            self.shards,
        )

    def _optimiser(self, network: Network, rate: float) -> RowOptimiser:
        ranker = self.ranker
        sparse = [network.n_features * network.features.shape[1]]
        if ranker.negatives is not None:
            sparse.append(network.n_labels * network.labels.shape[1])  # on all ranks
        lazy = ranker.updates == "lazy" or (
            ranker.updates == "auto" and max(sparse) > EXACT_WEIGHTS
        )
        parameters = {name: value.detach() for name, value in network.named_parameters()}
        return RowOptimiser(
            parameters,
            name=ranker.optimiser,
            learning_rate=rate,
            weight_decay=ranker.weight_decay,
            lazy=lazy,
        )

    def _sampler(self, data: MultiLabelData) -> Sampler | None:
        ranker = self.ranker
        if ranker.negatives is None:
            return None
        labelled = data.Y[np.diff(data.Y.indptr) > 0]
        return sampler_from(ranker.sampler, ranker.negatives, labelled, ranker.batch_rows)

    def _row_weights(self, data: MultiLabelData) -> np.ndarray[Any, Any] | None:
        """[rows] the mean inverse propensity of a row's labels, if rows are to count by it."""
        if not self.ranker.propensity_weights:
            return None
        total = (data.Y != 0) @ self.ranker.inverse_propensity()
        return np.asarray(total / np.maximum(np.diff(data.Y.indptr), 1))

    def _evaluation(self, network: Network, valid: MultiLabelData) -> Evaluate:
        metric = label_metrics.from_name(self.ranker.metric)
        propensity = self.ranker.inverse_propensity() if metric.needs_propensity else None
        k = min(metric.k, valid.n_labels)

        def evaluate() -> float:
            top, _ = top_labels(
                [network], valid.X, k, ranks=self.shards.labels, weighted=self.ranker.features_
            )
            return float(metric(padded(top, metric.k), valid.Y, propensity))

        return evaluate


class Race:
    """Successive halving, one run after the other: rungs are after 1, 2, 4, … epochs.

    A run that has done worse by a rung than another one had by then goes no further. One that
    stopped by itself before the rung is there with its best.
    """

    def __init__(self) -> None:
        self.curves: list[list[float]] = []  # the best metric so far, by epoch

    def is_lost(self, history: History) -> bool:
        """Whether a run has come to a rung, and is behind there."""
        epoch, reached = history.steps[-1], history.best_metric
        if epoch & (epoch - 1) or reached is None:
            return False
        return any(curve[min(epoch, len(curve)) - 1] > reached for curve in self.curves)

    def finish(self, history: History) -> None:
        """Take in a run that has come to its end."""
        metric = [found for found in history.metric if found is not None]
        if metric:
            self.curves.append(list(accumulate(metric, max)))


def _from_the_middle(rates: list[float]) -> Callable[[float], int]:
    """How far a rate is from the middle one, by its place among those given."""
    places = {rate: place for place, rate in enumerate(rates)}
    return lambda rate: abs(places[rate] - (len(rates) - 1) // 2)


def _log_odds(data: MultiLabelData) -> np.ndarray[Any, Any]:
    """[labels] log-odds that a row has each, with half a row more of either kind.

    Where labels are judged by themselves, the first epochs would else go into learning that all are
    rare, and the metric would not move.
    """
    have = np.bincount(data.Y.indices, minlength=data.n_labels) + 0.5
    return np.log(have / (data.n_rows + 1 - have)).astype(np.float32)


def _stop_if_interrupted(end: Position) -> None:
    if not end.finished:
        raise KeyboardInterrupt


def checked_rates(
    ranker: ExtremeRanker, data: MultiLabelData, held_out: MultiLabelData | None
) -> list[float]:
    """Refuse settings and data that do not go together; the learning rates to try."""
    given: Any = ranker.learning_rate
    rates = list(given) if isinstance(given, (list, tuple, np.ndarray)) else [given]
    if not rates:
        raise ValueError("learning_rate is one number, or several to choose from, but not none")
    for rate in rates:
        check_size("learning_rate", rate)
    for name in ("weight_decay", "glas"):
        check_size(name, getattr(ranker, name), zero=True)
    for name in ("batch_rows", "members"):
        check_count(name, getattr(ranker, name))
    if ranker.negatives is not None:
        check_count("negatives", ranker.negatives)
    if ranker.optimiser not in ("adam", "adagrad"):
        raise ValueError(f'optimiser is "adam" or "adagrad", not {ranker.optimiser!r}')
    if ranker.updates not in ("auto", "exact", "lazy"):
        raise ValueError(f'updates is "auto", "exact" or "lazy", not {ranker.updates!r}')
    check_features(ranker.features)
    for name in ("skip", "halving", "refit", "propensity_weights"):
        if not isinstance(getattr(ranker, name), (bool, np.bool_)):
            raise ArgumentError(Argument(name), f" is True or False, not {getattr(ranker, name)!r}")
    check_shares(ranker)
    check_sampler(ranker.sampler)
    widths(ranker.hidden)
    Course(ranker.max_epochs, ranker.patience)
    find_fused(ranker.objective)
    label_metrics.from_name(ranker.metric)
    device_for(ranker.accelerator)
    if data.n_labels < 2:
        raise ValueError(f"there is nothing to rank: Y has {data.n_labels} labels")
    if not data.n_features:
        raise ValueError("there is nothing to learn from: X has no features")
    judged = held_out is not None or ranker.validation > 0
    if not judged and len(rates) != 1:
        raise ValueError(
            "without validation data there is no telling which learning rate is best: give one "
            "learning_rate, or validation or eval_set"
        )
    if held_out is not None:
        if not held_out.n_rows:
            raise ValueError("eval_set has no rows to stop by: give some, or leave it out")
        sizes, ours = ((each.n_features, each.n_labels) for each in (held_out, data))
        if sizes != ours:
            raise ValueError(
                f"eval_set has {sizes[0]} features and {sizes[1]} labels, but X and Y have "
                f"{ours[0]} and {ours[1]}"
            )
    return [float(rate) for rate in rates]


def check_shares(ranker: ExtremeRanker) -> None:
    """Refuse a dropout or a part for validation that is no share."""
    for name in ("input_dropout", "hidden_dropout", "validation"):
        check_size(name, getattr(ranker, name), zero=True)
        if getattr(ranker, name) >= 1:
            raise ValueError(f"{name} is a share below 1, not {getattr(ranker, name)!r}")


def validation_set(eval_set: Any) -> MultiLabelData:
    """The validation data."""
    try:
        X, Y = eval_set
    except (TypeError, ValueError):
        raise ValueError("eval_set is a pair, (X, Y), of rows to stop by") from None
    return MultiLabelData(X, Y)


def hold_out(
    data: MultiLabelData, share: float, seed: int
) -> tuple[MultiLabelData, MultiLabelData]:
    """Rows to learn from, and rows to stop by."""
    order = np.random.default_rng([seed, data.n_rows]).permutation(data.n_rows)
    held_out = round(share * data.n_rows)
    if not 0 < held_out < data.n_rows:
        raise ValueError(
            f"{share:g} of {data.n_rows} rows leaves none to learn from, or none to stop by: give "
            "more rows, or validation=0 with one learning rate"
        )
    return data.select(np.sort(order[held_out:])), data.select(np.sort(order[:held_out]))
