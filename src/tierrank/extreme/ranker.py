"""A network that ranks all labels of a huge set, trained on the label sets of rows."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from tierrank._types import FloatArray
from tierrank.data.multilabel import MultiLabelData, canonical_csr
from tierrank.errors import Argument, ArgumentError, check_count, check_size
from tierrank.extreme.learner import (
    Glas,
    LabelBatches,
    LabelLearner,
    OptimiserName,
    RowOptimiser,
)
from tierrank.extreme.network import (
    Features,
    FeaturesName,
    Network,
    check_features,
    padded,
    skip_width,
    top_labels,
    widths,
)
from tierrank.extreme.samplers import Name as SamplerName
from tierrank.extreme.samplers import Sampler, sampler_from
from tierrank.extreme.sharding import ShardedCheckpoint, Shards, SpreadRows
from tierrank.losses.record import find_fused
from tierrank.metrics import labels as label_metrics
from tierrank.names import check_sampler
from tierrank.ranks import ALONE, Ranks
from tierrank.storage import Arrays
from tierrank.training import Checkpoint, History, Watch
from tierrank.training.loop import (
    Accelerator,
    Course,
    Evaluate,
    Position,
    WentAstray,
    device_for,
    own_randomness,
    seed_generators,
    train,
)
from tierrank.training.perceptron import load_weights
from tierrank.training.progress import Learned, digest, member_seed, named, seed_from

EXACT_WEIGHTS = 1 << 25  # of a matrix that Adam goes over in each step, by updates="auto"

Updates = Literal["auto", "exact", "lazy"]

# What models did that were saved before these settings were there.
BEFORE = {"features": "raw", "skip": False, "halving": False}


class ExtremeRanker(Learned, BaseEstimator):  # type: ignore[misc]
    """Ranks all labels for a row by a perceptron on sparse features.

    Each row says that its labels stand above all the others. By default it is a hidden layer of 256
    with ReLU and dropout, learned by Adam with batches of 256; a quarter of the rows says which
    learning rate is best and when to stop, and then all rows are learned from. Section 4.2 of Ma
    et al. (2021) has ``features="raw", input_dropout=0, hidden_dropout=0, halving=False,
    learning_rate=(1e-4, 1e-3, 1e-2), batch_rows=128, patience=5, refit=False``.

    Loss and gradient of the last layer are computed in blocks of labels, and the optimiser follows
    on the heels of the gradient: memory is that of the weights, three times with Adam (four with
    validation data, for the best epoch's), and little besides. A step looks at all labels, or with
    `negatives` at a sample that stands for those a row does not have.

    Started as several processes, the ranks of ``torchrun`` or of any launcher that
    `torch.distributed` knows, each holds a slice of the labels. All of them then call `fit`,
    `predict`, `score` and `tierrank.save`, with the same arguments, and learn what one would have.

    Parameters
    ----------
    objective : str
        "pl-partition", "pl-lb", "pl-efron", "attrank", "bce", "ranknet" or "ranksvm".
    features : {"auto", "tf-idf", "l2", "raw"}
        How entries of X are weighted: "tf-idf", "l2" (rows of length 1), "raw" (as they are), or
        "auto": tf-idf of counts, rows of length 1 of other sparse numbers, and dense ones or ones
        that are all the same as they are; decided by, and learned from, the rows of `fit`.
    hidden : int or sequence of int
        Width of the hidden layer, or widths of several.
    skip : bool
        Whether a linear path leads from the features to the labels beside the hidden layers: a
        weight for each pair of them up to 1,024 features and 33 million pairs, else a product of
        two matrices, of rank 128.
    input_dropout, hidden_dropout : float
        Probability with which an entry of X, or a hidden number, is left out in training.
    learning_rate : float or sequence of float
        One, or several to choose from by the validation metric.
    halving : bool
        Whether of several rates one is dropped after 1, 2, 4, … epochs if another had done better
        by then: successive halving, one rate after the other, the middle one first. Else each has
        a whole run.
    optimiser : {"adam", "adagrad"}
        What takes the steps.
    updates : {"auto", "exact", "lazy"}
        How Adam treats rows of a matrix that a batch does not touch (features that no row of the
        batch has, labels that were not sampled). "exact" goes over all of them, for they move on by
        their momentum; "lazy" leaves them as they are, which is not Adam, but takes time only for
        what the batch touches; "auto" is exact up to 33 million weights of such a matrix. AdaGrad
        is exact either way.
    weight_decay : float
        Decoupled, as in AdamW, of matrices alone.
    batch_rows : int
        Rows of a batch.
    max_epochs : int
        Passes over the rows at most.
    patience : int
        Passes without a better metric at most.
    validation : float
        Share of the rows that is held out to stop by, if there is no `eval_set`; 0: none, and all
        of `max_epochs` are taken.
    refit : bool
        Whether to learn once more, from all rows, with the learning rate and for the number of
        epochs that were found best; nothing is to be done where no rows were held out.
    members : int
        Networks with seeds of their own, whose scores are averaged.
    negatives : int, optional
        Labels to draw in each step in place of the whole rest; None: the whole rest.
    sampler : {"uniform", "frequency", "in-batch"}
        "uniform", "frequency" (by count^0.75) or "in-batch" (the other rows' labels; `negatives`
        then only has to be given).
    glas : float
        Strength of the regulariser of Guo et al. (2019), `tierrank.extreme.learner.Glas`; 0: none.
    propensity_weights : bool
        Whether a row counts as much as the mean inverse propensity of its labels, so that those
        with rare labels count more.
    metric : str
        Of early stopping and `score`, such as "p@5", "ndcg@3", "psp@1" or "psndcg@5".
    accelerator : {"auto", "cpu", "cuda"}
        Where to train; "auto": on a GPU if there is one.
    random_state : int, optional
        Seed of first weights, the split, the order of rows, dropout and samples.

    Attributes
    ----------
    networks_ : list of Network
        The trained networks.
    history_ : History
        The training curve of the run that was kept, a `tierrank.training.History`.
    trials_ : list of dict
        One entry for each learning rate: rate, best metric, best epoch, and epochs it was given.
    features_ : Features
        The weighting of features: `weighting`, `idf`, and `reason` for it.
    learning_rate_ : float
        The one that was chosen.
    label_counts_ : ndarray of int
        [labels] rows of the training data that have each label.
    n_rows_ : int
        How many rows there were: with the counts, what inverse propensities follow from.
    n_features_in_, n_labels_ : int
        Sizes.

    See Also
    --------
    tierrank.data.read_xc : Data of the extreme classification repository.
    tierrank.metrics.labels.evaluate : All measures of predicted labels.
    tierrank.extreme.FusedHead : Its last layer, for networks of your own.

    Examples
    --------
    >>> import tierrank as tr
    >>> train, test = tr.data.synthetic.label_sets(
    ...     "eurlex-4k", rows=(400, 100), features=200, labels=50, features_a_row=30, seed=1
    ... )
    >>> ranker = tr.ExtremeRanker(learning_rate=1e-2, max_epochs=20, random_state=0)
    >>> top = ranker.fit(train.X, train.Y).predict(test.X, k=3)
    >>> top.shape
    (100, 3)
    """

    networks_: list[Network]
    history_: History
    trials_: list[dict[str, float | int | None]]
    _shards = Shards()

    def __init__(
        self,
        objective: str = "pl-partition",
        *,
        features: FeaturesName = "auto",
        hidden: int | Sequence[int] = 256,
        skip: bool = False,
        input_dropout: float = 0.1,
        hidden_dropout: float = 0.3,
        learning_rate: float | Sequence[float] = (1e-3, 4e-3, 1.6e-2),
        halving: bool = True,
        optimiser: OptimiserName = "adam",
        updates: Updates = "auto",
        weight_decay: float = 0.0,
        batch_rows: int = 256,
        max_epochs: int = 100,
        patience: int = 3,
        validation: float = 0.25,
        refit: bool = True,
        members: int = 1,
        negatives: int | None = None,
        sampler: SamplerName = "uniform",
        glas: float = 0.0,
        propensity_weights: bool = False,
        metric: str = "p@5",
        accelerator: Accelerator = "auto",
        random_state: int | None = None,
    ) -> None:
        self.objective = objective
        self.features = features
        self.hidden = hidden
        self.skip = skip
        self.input_dropout = input_dropout
        self.hidden_dropout = hidden_dropout
        self.learning_rate = learning_rate
        self.halving = halving
        self.optimiser = optimiser
        self.updates = updates
        self.weight_decay = weight_decay
        self.batch_rows = batch_rows
        self.max_epochs = max_epochs
        self.patience = patience
        self.validation = validation
        self.refit = refit
        self.members = members
        self.negatives = negatives
        self.sampler = sampler
        self.glas = glas
        self.propensity_weights = propensity_weights
        self.metric = metric
        self.accelerator = accelerator
        self.random_state = random_state

    # -- fitting ----------------------------------------------------------------------------

    def fit(
        self,
        X: Any,
        Y: Any,
        *,
        eval_set: Any = None,
        checkpoint: Path | str | None = None,
        checkpoint_every: float = 20.0,
        watch: Watch | None = None,
        data_ranks: int = 1,
    ) -> Self:
        """Learn from rows and their labels. Rows without a label teach nothing.

        Parameters
        ----------
        X : array_like or sparse matrix
            [rows, features]: sparse or dense.
        Y : sparse matrix
            [rows, labels]: sparse; what is set is a label of the row.
        eval_set : tuple, optional
            (X, Y) to stop by, in place of a share of the rows.
        checkpoint : path-like, optional
            A folder to keep the state in, now and then and on Ctrl-C. If there is a state of this
            very fit, it goes on from there, to the same result as without the stop.
        checkpoint_every : float
            Seconds between two states that are kept, at least.
        watch : callable, optional
            Called in long epochs and after each one with a `tierrank.training.Progress`; of several
            processes, by the first.
        data_ranks : int
            Of several processes, parts that the rows of a batch are in; the processes divided by
            it share the labels. It pays where batches are large.

        Returns
        -------
        ExtremeRanker
            Itself.

        Raises
        ------
        ValueError
            An option or the data are not as they should be; the message says which and where.

        See Also
        --------
        predict : The best labels of other rows.
        tierrank.save : Keeps what was learned.

        Examples
        --------
        >>> import tierrank as tr
        >>> train, test = tr.data.synthetic.label_sets(
        ...     "eurlex-4k", rows=(300, 50), features=100, labels=30, features_a_row=20, seed=1
        ... )
        >>> ranker = tr.ExtremeRanker(learning_rate=1e-2, max_epochs=3, random_state=0)
        >>> ranker.fit(train.X, train.Y, eval_set=(test.X, test.Y)).n_labels_
        30
        """
        data = MultiLabelData(X, Y)
        held_out = None if eval_set is None else validation_set(eval_set)
        rates = checked_rates(self, data, held_out)
        if hasattr(self, "networks_"):
            del self.networks_  # a fit that fails does not leave half of another one
        self.n_features_in_, self.n_labels_ = data.n_features, data.n_labels
        self.n_rows_ = data.n_rows
        self.label_counts_ = np.bincount(data.Y.indices, minlength=data.n_labels)
        plan = self._plan(checkpoint, checkpoint_every, data, held_out)
        shards = self._shards = Shards.join(device_for(self.accelerator), data_ranks)
        shards.check_data(data)
        self.features_ = Features.learned(data.X, self.features)
        known = plan.load()
        seed = seed_from(self.random_state) if known is None else int(known[0]["seed"])
        seed = shards.everyone.agree(seed)
        if known is None and shards.everyone.rank == 0:
            plan.save({"seed": seed}, {})
        taught = data
        if held_out is None and self.validation:
            taught, held_out = hold_out(data, self.validation, seed)
        runs = Runs(self, plan, seed, watch, shards)
        runs.choose_rate(taught, held_out, rates)
        if self._refits(eval_set is not None):
            runs.refit(data)
        else:
            runs.add_members(taught, held_out)
        return self

    def _refits(self, with_eval_set: bool) -> bool:
        """Whether there are rows that were held out, and are to be learned from in the end."""
        return bool(self.refit and self.validation and not with_eval_set)

    def _plan(
        self,
        folder: Path | str | None,
        every: float,
        data: MultiLabelData,
        held_out: MultiLabelData | None,
    ) -> Checkpoint:
        """Where the seed is kept, and what the fit is of."""
        if folder is None:
            return Checkpoint(None, {})
        identity = {
            "estimator": type(self).__name__,
            "params": self._json_params(),
            "sizes": [*data.X.shape, data.n_labels],
            "training data": digest(data.X, data.Y),
            "validation data": None if held_out is None else digest(held_out.X, held_out.Y),
        }
        return Checkpoint(folder, identity, every=every)

    # -- using ------------------------------------------------------------------------------

    def predict(
        self, X: Any, k: int = 5, *, propensity: float = 0.0, return_scores: bool = False
    ) -> Any:
        """Predict the best labels of rows.

        Parameters
        ----------
        X : array_like or sparse matrix
            [rows, features]: sparse or dense.
        k : int
            How many labels.
        propensity : float
            Adds so many times log(1/p) to the score of every label, p being its propensity (`labels
            .inverse_propensity`). With 1, labels are ranked by what the propensity-scored measures
            count: rare ones rise.
        return_scores : bool
            Whether to give [rows, k] scores as well.

        Returns
        -------
        ndarray of int
            [rows, k] label numbers, best first; with `return_scores` also their [rows, k] scores.

        Raises
        ------
        ValueError
            X has another number of columns than in `fit`, or k is none of 1 to the number of
            labels.

        See Also
        --------
        score : How good they are.

        Examples
        --------
        >>> import tierrank as tr
        >>> train, test = tr.data.synthetic.label_sets(
        ...     "eurlex-4k", rows=(300, 50), features=100, labels=30, features_a_row=20, seed=1
        ... )
        >>> ranker = tr.ExtremeRanker(learning_rate=1e-2, max_epochs=3, random_state=0)
        >>> top, scores = ranker.fit(train.X, train.Y).predict(test.X, k=2, return_scores=True)
        >>> bool((scores[:, 0] >= scores[:, 1]).all())
        True
        """
        check_is_fitted(self, "networks_")
        check_count("k", k)
        if k > self.n_labels_:
            raise ValueError(f"k is {k}, but there are {self.n_labels_} labels: ask for fewer")
        rows = self._rows(X)
        device = device_for(self.accelerator)
        offset = None
        if not np.isfinite(propensity):
            raise ValueError(f"propensity is a finite number, not {propensity!r}")
        if propensity:
            boost = propensity * np.log(self.inverse_propensity())
            offset = torch.from_numpy(boost.astype(np.float32)).to(device)
        networks = [network.to(device).eval() for network in self.networks_]
        labels, scores = top_labels(
            networks, rows, k, offset=offset, ranks=self._shards.labels, weighted=self.features_
        )
        return (labels, scores) if return_scores else labels

    def inverse_propensity(self, a: float = 0.55, b: float = 1.5) -> FloatArray:
        """Compute inverse propensities, by how many training rows have each label.

        Parameters
        ----------
        a, b : float
            Of the model of Jain et al. (2016), above zero.

        Returns
        -------
        ndarray of float
            [labels] 1/p.

        See Also
        --------
        tierrank.metrics.labels.inverse_propensity : The formula.

        Examples
        --------
        >>> import tierrank as tr
        >>> train, test = tr.data.synthetic.label_sets(
        ...     "eurlex-4k", rows=(300, 50), features=100, labels=30, features_a_row=20, seed=1
        ... )
        >>> ranker = tr.ExtremeRanker(learning_rate=1e-2, max_epochs=1, refit=False, random_state=0)
        >>> ranker.fit(train.X, train.Y).inverse_propensity().shape
        (30,)
        """
        check_is_fitted(self, "label_counts_")
        return label_metrics.inverse_propensity_of_counts(self.label_counts_, self.n_rows_, a, b)

    def score(self, X: Any, Y: Any) -> float:
        """Measure the predictions of these rows by `metric`.

        Parameters
        ----------
        X : array_like or sparse matrix
            [rows, features] as in `fit`.
        Y : sparse matrix
            [rows, labels] their labels.

        Returns
        -------
        float
            The metric; propensities are those of the training data.

        See Also
        --------
        tierrank.metrics.labels.evaluate : All measures at once.

        Examples
        --------
        >>> import tierrank as tr
        >>> train, test = tr.data.synthetic.label_sets(
        ...     "eurlex-4k", rows=(300, 50), features=100, labels=30, features_a_row=20, seed=1
        ... )
        >>> ranker = tr.ExtremeRanker(
        ...     learning_rate=1e-2, max_epochs=3, metric="p@1", random_state=0
        ... )
        >>> 0 < ranker.fit(train.X, train.Y).score(test.X, test.Y) <= 1
        True
        """
        check_is_fitted(self, "networks_")
        metric = label_metrics.from_name(self.metric)
        data = MultiLabelData(X, Y)
        if data.n_labels != self.n_labels_:
            raise ValueError(
                f"Y has {data.n_labels} labels, but the model was fitted to {self.n_labels_}"
            )
        top = self.predict(data.X, k=min(metric.k, self.n_labels_))
        propensity = self.inverse_propensity() if metric.needs_propensity else None
        return float(metric(padded(top, metric.k), data.Y, propensity))

    def _rows(self, X: Any) -> Any:
        rows = canonical_csr(X, "X")
        if rows.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X has {rows.shape[1]} features, but the model was fitted to {self.n_features_in_}"
            )
        return rows

    # -- saving -----------------------------------------------------------------------------

    def to_state(self) -> tuple[dict[str, Any], Arrays]:
        """The fitted ranker as JSON and arrays."""
        check_is_fitted(self, "networks_")
        info = {
            "params": self._json_params(),
            "n_features_in": self.n_features_in_,
            "n_labels": self.n_labels_,
            "n_rows": self.n_rows_,
            "features": [self.features_.weighting, self.features_.reason],
            "networks": len(self.networks_),
            "learning_rate": self.learning_rate_,
            "trials": self.trials_,
            "history": self.history_.to_json(),
        }
        tensors: Arrays = {"label_counts": self.label_counts_.astype(np.int64)}
        if self.features_.idf is not None:
            tensors["idf"] = self.features_.idf
        for number, network in enumerate(self.networks_):
            for name, value in network.state_dict().items():
                tensors[f"{number}.{name}"] = value.cpu().numpy()
                if self._shards.everyone.size > 1 and name in network.spread:
                    spread: Any = SpreadRows(value, network.spread[name], self._shards)
                    tensors[f"{number}.{name}"] = spread
        return info, tensors

    @classmethod
    def from_state(cls, info: dict[str, Any], tensors: Arrays) -> Self:
        """The ranker that `to_state` wrote down; raises a ValueError if it does not fit."""
        ranker = cls(**BEFORE | info["params"])
        check_shares(ranker)
        for name in ("n_features_in", "n_labels", "n_rows", "networks"):
            check_count(name, info[name])
        if info["networks"] > len(tensors):  # before a million networks are made
            raise ValueError(f"there are no weights of {info['networks']} networks")
        ranker.n_features_in_, ranker.n_labels_ = info["n_features_in"], info["n_labels"]
        ranker.n_rows_ = info["n_rows"]
        counts = tensors["label_counts"]
        if counts.dtype != np.int64 or counts.shape != (ranker.n_labels_,):
            raise ValueError(f"the counts of labels are {counts.dtype} of shape {counts.shape}")
        if counts.min() < 0 or counts.max() > ranker.n_rows_:
            raise ValueError("a label was counted on less than 0 or more than all rows")
        ranker.label_counts_ = counts
        weighting, reason = info.get("features", ("raw", "the only way there was"))
        idf = tensors.pop("idf", None)
        ranker.features_ = Features.saved(weighting, idf, str(reason), ranker.n_features_in_)
        check_size("learning_rate", info["learning_rate"])
        ranker.learning_rate_ = info["learning_rate"]
        ranker.trials_ = [dict(trial) for trial in info["trials"]]
        ranker.history_ = History.from_json(info["history"])
        ranker.networks_ = []
        for number in range(info["networks"]):
            with torch.device("meta"):
                network = ranker._network()
            prefix = f"{number}."
            own = {
                name.removeprefix(prefix): array
                for name, array in tensors.items()
                if name.startswith(prefix)
            }
            load_weights(network, own)
            ranker.networks_.append(network.eval())
        if len(tensors) != 1 + sum(len(each.state_dict()) for each in ranker.networks_):
            raise ValueError(f"there are weights of more than {info['networks']} networks")
        return ranker

    def _network(self, ranks: Ranks = ALONE) -> Network:
        return Network(
            self.n_features_in_,
            self.n_labels_,
            widths(self.hidden),
            skip=skip_width(self.n_features_in_, self.n_labels_) if self.skip else 0,
            input_dropout=self.input_dropout,
            hidden_dropout=self.hidden_dropout,
            ranks=ranks,
        )

    def _json_params(self) -> dict[str, Any]:
        """The constructor's arguments, as JSON takes them."""
        return json.loads(json.dumps(self.get_params(deep=False), default=_plain))  # type: ignore[no-any-return]


def _plain(value: Any) -> Any:
    """Numbers and arrays of numpy as Python's."""
    if isinstance(value, (np.generic, np.ndarray)):
        return value.tolist()
    raise ValueError(f"{value!r} cannot be written down as JSON: give numbers, strings or lists")


# -- the trainings of a fit ---------------------------------------------------------------------
# One after the other: learning rates to choose from, members, a refit. Each has a checkpoint of its
# own in a folder of the fit's, and one that is finished is not done again. Settings and data are
# looked at first, before anything is forgotten or written.


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
