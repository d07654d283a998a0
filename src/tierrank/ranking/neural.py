"""A neural network that scores rows, trained on the tiers of lists by any objective.

It is a perceptron of any depth, and before it attention over the list.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any, Never, Self

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from tierrank._types import AnyArray
from tierrank.errors import check_count, check_size
from tierrank.losses.objective import Objective
from tierrank.losses.positions import PositionBias
from tierrank.ranking.base import Ranker, TrainingRows, ValidationRows, below, biases_of
from tierrank.ranking.features.base import parts_of
from tierrank.ranking.linear_loss import bias_loss, fitted_biases
from tierrank.ranking.members import Refit, mean_of
from tierrank.ranks import ALONE, Ranks
from tierrank.storage import Arrays
from tierrank.tiers import Tiers
from tierrank.tiers.arrays import group_rows
from tierrank.training import Checkpoint, History, Watch
from tierrank.training.loop import (
    Accelerator,
    AdamWSettings,
    Course,
    FabricLearner,
    ListBatch,
    ListBatches,
    Precision,
    as_float32,
    dense_rows,
    device_for,
    fabric_for,
    own_randomness,
    seed_generators,
    train,
)
from tierrank.training.perceptron import ACTIVATIONS, check_perceptron, load_weights, perceptron
from tierrank.training.progress import only_whole_steps, seed_from

NUMBERS_AT_ONCE = 1 << 22
"""Numbers of the widest layer of a block: 16 MB. Attention takes a longer list whole."""


class NeuralRanker(Ranker):
    """Scores by a perceptron, and before it, if you like, attention over the list.

    AdamW takes a few lists at a time. With `eval_set`, training ends after `patience` epochs
    without a better metric, and the best epoch's weights are kept; without it, training takes
    `max_epochs`, so choose them with care. Under ``torchrun`` every process takes its share of
    each batch; it may have all rows, or its own part of them alone (`sharded`).

    Lists that cannot teach anything are left out: those of one row or of weight 0, and those of one
    tier, unless the objective says something about ties (`davidson`, `listnet`).

    Parameters
    ----------
    objective : str
        A name of `tierrank.losses.OBJECTIVES`.
    objective_params : dict, optional
        Its options.
    hidden : sequence of int
        Widths of the hidden layers; ``()`` is a linear scorer.
    activation : {"relu", "gelu", "silu", "elu", "tanh"}
        Between the layers.
    dropout : float
        Probability with which a hidden number is left out in training.
    normalisation : {"layer", "batch"}, optional
        In each hidden layer; None: none.
    attention_layers : int
        Blocks of self-attention over the list; with any, scores depend on the whole list, and
        `predict` needs `qid` or `group`.
    attention_width, attention_heads : int
        The width that rows are projected to before, and heads of a block.
    batch_lists : int
        Lists of a batch.
    learning_rate, weight_decay : float
        Those of AdamW.
    clip : float, optional
        Bounds the norm of a batch's gradient; None: nothing does.
    max_epochs : int
        Passes over the data at most.
    patience : int, optional
        Passes without improvement; None: any.
    position_smoothing : float
        As in `LinearRanker`. The biases are learned with the weights, and at last made the best for
        the network that is kept; their standard errors take the scores for known.
    refit : bool or "auto"
        Whether to train once more, from training and validation rows, for as many epochs as were
        best. True needs an `eval_set`; "auto" does so if there is one. `history_` stays that of
        before.
    members : int
        Networks with seeds of their own, whose scores are averaged.
    features : str, transformer or list, optional
        Feature steps, by name or as transformers (see `tierrank.ranking.features`).
    precision : {"32-true", "bf16-mixed"}
        With "bf16-mixed", layers are in bfloat16, weights and losses in float32.
    accelerator : {"auto", "cpu", "cuda"}
        Where to train; "auto": on a GPU if there is one.
    metric : str
        Of `score` and of early stopping.
    query_column : str or int, optional
        Column of X that names the list of a row, instead of `qid`.
    random_state : int, optional
        Seed of the first weights, the order of the lists, dropout, and what the objective draws.

    Attributes
    ----------
    scorers_ : list of Scorer
        The networks, each a `tierrank.ranking.neural.Scorer`.
    scorer_ : Scorer
        The network, if there is one.
    objective_state_ : dict of float
        What the objective learned beside the scores, by name: how probable ties are.
    history_ : History
        The training curve; `steps_`, `n_features_in_`, `feature_names_in_`, `position_bias_` and
        `position_standard_errors_` are as in the other rankers.

    See Also
    --------
    BoostedRanker : Trees.
    LinearRanker : A weight for each feature.
    export : Writes the network as ONNX.

    Examples
    --------
    >>> import numpy as np, tierrank as tr
    >>> X = np.random.default_rng(0).normal(size=(300, 4))
    >>> y, qid = np.round(np.abs(X[:, 0])), np.arange(300) // 10  # no linear score finds this
    >>> ranker = tr.NeuralRanker(max_epochs=30, random_state=0).fit(X, y, qid=qid)
    >>> ranker.score(X, y, qid=qid) > 0.9
    True
    """

    scorers_: list[Scorer]
    objective_state_: dict[str, float]

    def __init__(
        self,
        objective: str = "pl-partition",
        *,
        objective_params: dict[str, Any] | None = None,
        hidden: Sequence[int] = (128, 64),
        activation: str = "relu",
        dropout: float = 0.1,
        normalisation: str | None = None,
        attention_layers: int = 0,
        attention_width: int = 64,
        attention_heads: int = 4,
        batch_lists: int = 16,
        learning_rate: float = 1e-3,
        weight_decay: float = 1e-2,
        clip: float | None = None,
        max_epochs: int = 100,
        patience: int | None = 10,
        position_smoothing: float = 1.0,
        refit: Refit = False,
        members: int = 1,
        features: Any = "standardize",
        precision: Precision = "32-true",
        accelerator: Accelerator = "auto",
        metric: str = "ndcg@10",
        query_column: str | int | None = None,
        random_state: int | None = None,
    ) -> None:
        self.objective = objective
        self.objective_params = objective_params
        self.hidden = hidden
        self.activation = activation
        self.dropout = dropout
        self.normalisation = normalisation
        self.attention_layers = attention_layers
        self.attention_width = attention_width
        self.attention_heads = attention_heads
        self.batch_lists = batch_lists
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.clip = clip
        self.max_epochs = max_epochs
        self.patience = patience
        self.position_smoothing = position_smoothing
        self.refit = refit
        self.members = members
        self.features = features
        self.precision = precision
        self.accelerator = accelerator
        self.metric = metric
        self.query_column = query_column
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        qid: Any = None,
        group: Any = None,
        weights: Any = None,
        positions: Any = None,
        rows: Any = None,
        eval_set: Any = None,
        checkpoint: Path | str | None = None,
        checkpoint_every: float = 20.0,
        watch: Watch | None = None,
        init_model: Self | Path | str | None = None,
        sharded: bool = False,
        **others: Never,
    ) -> Self:
        """Learn from labelled rows, those of this process or of all that `torchrun` started.

        Parameters
        ----------
        X : array_like, sparse matrix, DataFrame or RankingData
            [rows, features], as in the other rankers.
        y : array_like
            [rows] labels, higher is better; equal labels of a list are one tier.
        qid : array_like, optional
            [rows] the list of each row, in any order.
        group : array_like, optional
            [lists] sizes of lists of consecutive rows.
        weights : array_like, optional
            [lists] how much each list counts, in order of first appearance.
        positions : array_like, optional
            [labels] where each row was shown, as in the other rankers; not with `sharded`.
        rows : array_like, optional
            [labels] which row of X each label is about, as in the other rankers; not with
            `sharded`.
        eval_set : tuple or list of tuple, optional
            (X, y, qid) to stop by.
        checkpoint : path-like, optional
            A folder to keep the state in, as in the other rankers.
        checkpoint_every : float
            Seconds between two states that are kept.
        watch : callable, optional
            Called after every epoch with a `tierrank.training.Progress`.
        init_model : NeuralRanker or path-like, optional
            A fitted ranker, or the folder of a saved one, to go on from.
        sharded : bool
            Whether this process has a part of the rows, of `eval_set` too, and the other ranks have
            the others, as ``tr.data.read(path, part=(rank, ranks))`` reads them. No list may be in
            two parts; a part may be empty. Batches are then of all ranks' lists, those of the first
            rank numbered before those of the second: what is learned is what one process learns
            from the parts one after the other, to rounding (but for `dropout`, which each rank
            draws for itself, and `normalisation="batch"`, which looks at a rank's own rows). In a
            refit a part is its training lists and then its validation lists.
        **others
            None: they are refused, and the words of LightGBM and XGBoost answered with ours.

        Returns
        -------
        NeuralRanker
            Itself.

        Raises
        ------
        ValueError
            An option or the data are not as they should be; the message says which and where.

        See Also
        --------
        predict : Scores of other rows.
        tierrank.save : Keeps what was learned.

        Examples
        --------
        >>> import numpy as np, tierrank as tr
        >>> X = np.random.default_rng(0).normal(size=(100, 4))
        >>> y, qid = np.round(np.abs(X[:, 0])), np.arange(100) // 10
        >>> ranker = tr.NeuralRanker(hidden=(8,), max_epochs=2, random_state=0).fit(X, y, qid=qid)
        >>> len(ranker.scorers_)
        1
        """
        with parts_of(Ranks.join(device_for(self.accelerator)) if sharded else ALONE):
            return super().fit(
                X, y, qid=qid, group=group, weights=weights, positions=positions, rows=rows,
                eval_set=eval_set, checkpoint=checkpoint, checkpoint_every=checkpoint_every,
                watch=watch, init_model=init_model, **others,
            )  # fmt: skip

    @property
    def scorer_(self) -> Scorer:
        """The network; of several members there is not one."""
        if len(self.scorers_) > 1:
            raise ValueError(f"there are {len(self.scorers_)} networks: see scorers_")
        return self.scorers_[0]

    @property
    def scores_lists(self) -> bool:  # type: ignore[override]
        """Whether a row's score depends on the other rows of its list."""
        return bool(self.attention_layers)

    def _learn(
        self,
        train_rows: TrainingRows,
        valid: ValidationRows | None,
        checkpoint: Checkpoint,
        watch: Watch | None,
        before: Self | None,
    ) -> None:
        check_count("batch_lists", self.batch_lists)
        course = Course(self.max_epochs, self.patience)
        settings = AdamWSettings(self.learning_rate, self.weight_decay, self.clip)
        objective = self._objective()
        check_size("position_smoothing", self.position_smoothing, zero=True)
        X, shown = as_float32(train_rows.X), train_rows.shown

        def best_biases(scores: AnyArray, start: AnyArray) -> tuple[AnyArray, AnyArray]:
            loss = bias_loss(
                scores, train_rows.tiers, self._objective(), train_rows.weights, shown,
                float(self.position_smoothing),
            )  # fmt: skip
            return fitted_biases(loss, start)

        lists = lists_that_teach(train_rows, objective, self._ranks)
        bias = None
        if shown.positions is not None:
            begin = biases_of(before, shown.n_positions)
            if not hasattr(before, "position_bias_"):
                begin = best_biases(np.zeros(len(train_rows.y)), begin)[0]
            weights = train_rows.weights
            taught = len(lists) if weights is None else float(weights[lists].sum())
            smoothing = self.position_smoothing / taught
            bias = PositionBias(shown.n_positions, smoothing=smoothing, start=begin)
        fabric = fabric_for(self.accelerator, self.precision, several=self._ranks.size > 1)
        first = fabric.is_global_zero
        saved = fabric.broadcast(checkpoint.load() if first else None)
        seed = fabric.broadcast(seed_from(self.random_state) if first else 0)
        self._seed = seed = seed if saved is None else saved[0]["seed"]
        with own_randomness(fabric.device):
            seed_generators(seed, fabric.device)
            scorer = self._scorer(X.shape[1])
            if before is not None:
                self._go_on_from(before, scorer, objective)
            module = ListLoss(scorer, objective, bias)
            learner = FabricLearner(fabric, module, settings)
        batches = ListBatches(
            X,
            train_rows.tiers,
            train_rows.weights,
            size=self.batch_lists,
            lists=lists,
            seed=seed,
            ranks=self._ranks,
            shown_rows=shown.rows,
            positions=shown.positions,
        )
        evaluate = None
        if valid is not None:
            valid_X, measure = as_float32(valid.X), valid.measure
            by_list, lengths = valid.tiers.rows(slice(None)).numpy(), valid.tiers.lengths.numpy()

            def evaluate() -> float:
                return measure(score_rows(scorer, valid_X, by_list, lengths, fabric.device))

        end = train(
            learner,
            batches,
            course,
            seed=seed,
            history=History("epoch", self.metric),
            evaluate=evaluate,
            together=self._ranks.size > 1,
            checkpoint=checkpoint,
            saved=saved,
            continued=before is not None,
            watch=None if watch is None else only_whole_steps(watch),
        )
        module.cpu().eval()
        self.scorers_ = [scorer]
        if bias is not None:
            scores = score_rows(
                scorer,
                X,
                train_rows.tiers.rows(slice(None)).numpy(),
                train_rows.tiers.lengths.numpy(),
                torch.device("cpu"),
                shown.rows,
            )
            found = best_biases(scores, bias.biases().detach().numpy().astype(np.float64))
            self.position_bias_, self.position_standard_errors_ = found
        self.history_ = end.history
        self.objective_state_ = {
            name: float(value.detach()) for name, value in objective.named_parameters()
        }
        if not end.finished:
            raise KeyboardInterrupt

    def _lengthen(self, ratio: float, before: Self | None) -> bool:
        # An epoch goes through all rows, so that of more rows it has more steps.
        best = self.history_.best_step
        if best:
            self.max_epochs, self.patience = best, None
        return bool(best)

    def _average(self, learned: Sequence[Self], before: Self | None) -> None:
        self.scorers_ = [each.scorer_ for each in learned]
        self.objective_state_ = mean_of([each.objective_state_ for each in learned])

    def _go_on_from(self, before: Self, scorer: Scorer, objective: Objective) -> None:
        """Begin with the weights, and the objective's own parameters, of a ranker before."""
        if len(before.scorers_) > 1:
            raise ValueError(
                f"init_model is the mean of {len(before.scorers_)} networks, of which none can go "
                "on alone: give one that was trained with members=1"
            )
        try:
            load_weights(scorer, before._to_state()[1])
        except ValueError as error:
            raise ValueError(
                f"init_model is another network ({error}): give the same hidden, normalisation and "
                "attention"
            ) from None
        own = dict(objective.named_parameters())
        if own.keys() == before.objective_state_.keys():
            with torch.no_grad():
                for name, parameter in own.items():
                    parameter.fill_(before.objective_state_[name])

    def _scorer(self, n_features: int) -> Scorer:
        return Scorer(
            n_features,
            self.hidden,
            activation=self.activation,
            dropout=self.dropout,
            normalisation=self.normalisation,
            attention_layers=self.attention_layers,
            attention_width=self.attention_width,
            attention_heads=self.attention_heads,
        )

    def _scores(self, X: Any, queries: AnyArray) -> AnyArray:
        rows, lengths = np.arange(X.shape[0]), None
        if self.scores_lists:
            lists, _ = group_rows(queries, X.shape[0])
            rows, lengths = np.argsort(lists, kind="stable"), np.bincount(lists)
        device = device_for(self.accelerator)
        numbers = as_float32(X)
        scores = [
            score_rows(scorer.to(device), numbers, rows, lengths, device)
            for scorer in self.scorers_
        ]
        return scores[0] if len(scores) == 1 else np.mean(scores, axis=0)

    def _to_state(self) -> tuple[dict[str, Any], Arrays]:
        scorers = self.scorers_
        info = {"n_inputs": scorers[0].n_features, "objective": self.objective_state_}
        if len(scorers) > 1:
            info["networks"] = len(scorers)
        return info, {
            (f"{number}.{name}" if len(scorers) > 1 else name): value.cpu().numpy()
            for number, scorer in enumerate(scorers)
            for name, value in scorer.state_dict().items()
        }

    def _from_state(self, info: dict[str, Any], tensors: Arrays) -> None:
        n_inputs = info["n_inputs"]
        check_count("n_inputs", n_inputs)
        if n_inputs != self._width:
            raise ValueError(f"the network takes {n_inputs} features, but {self._width} come to it")
        check_count("attention_layers", self.attention_layers, least=0)
        if self.attention_layers > len(tensors):  # before a million blocks are made
            raise ValueError(f"there are no weights of {self.attention_layers} blocks")
        learned = {str(name): float(value) for name, value in info["objective"].items()}
        if not np.isfinite(list(learned.values())).all():
            raise ValueError("what the objective learned is not finite")
        networks = info.get("networks", 1)
        check_count("networks", networks)
        if networks > len(tensors):
            raise ValueError(f"there are no weights of {networks} networks")
        own = [tensors] if networks == 1 else [below(f"{n}.", tensors) for n in range(networks)]
        if sum(map(len, own)) != len(tensors):
            raise ValueError(f"there are weights of more than {networks} networks")
        scorers = []
        for weights in own:
            with torch.device("meta"):
                scorer = self._scorer(n_inputs)
            load_weights(scorer, weights)
            scorers.append(scorer.eval())
        self.scorers_, self.objective_state_ = scorers, learned


def score_rows(
    scorer: Scorer,
    X: Any,
    rows: AnyArray,
    lengths: AnyArray | None,
    device: torch.device,
    shown_rows: AnyArray | None = None,
) -> AnyArray:
    """[rows] scores, float32, a block at a time.

    Parameters
    ----------
    X
        [rows, features] from `as_float32`
    rows, lengths
        all rows, list by list, and how many each list has; without attention, in any order and None
    shown_rows
        if these are observations, the row of X that each is about
    """
    most = max(1, NUMBERS_AT_ONCE // scorer.width)
    ends = np.cumsum(lengths) if lengths is not None and scorer.scores_lists else None
    scores = np.empty(len(rows), dtype=np.float32)
    with torch.no_grad():
        for begin, end in _blocks(len(rows), ends, most):
            chosen = rows[begin:end]
            own = None
            if ends is not None and lengths is not None:
                own = lengths[
                    np.searchsorted(ends, begin, "right") : np.searchsorted(ends, end) + 1
                ]
            wanted = chosen if shown_rows is None else shown_rows[chosen]
            block = dense_rows(X, torch.from_numpy(wanted)).to(device)
            scores[chosen] = scorer(block, own).cpu().numpy()
    return scores


def _blocks(rows: int, ends: AnyArray | None, most: int) -> Iterator[tuple[int, int]]:
    """Ranges of at most so many rows, or of one list that is longer, which end where lists end."""
    begin = 0
    while begin < rows:
        end = min(begin + most, rows)
        if ends is not None:
            fits = int(np.searchsorted(ends, end, "right"))
            end = int(ends[fits - 1]) if fits and ends[fits - 1] > begin else int(ends[fits])
        yield begin, end
        begin = end


class ListLoss(nn.Module):
    """A scorer and an objective as one module, which gives the loss of a batch of lists.

    With biases of positions, their penalty is a part of it.
    """

    def __init__(
        self, scorer: Scorer, objective: Objective, bias: PositionBias | None = None
    ) -> None:
        super().__init__()
        self.scorer, self.objective, self.bias = scorer, objective, bias
        draws = objective.options.get("generator")
        self.draws = None if draws is None else operator.index(draws)

    def forward(self, X: Tensor, batch: ListBatch) -> Tensor:
        """Sum of the losses times `batch.weights`; NaN if scores are not finite."""
        scores: Tensor = self.scorer(X, batch.lengths)
        if self.draws is not None:  # anew in each step, and the same when the step is repeated
            seed = np.random.SeedSequence([self.draws, torch.initial_seed()]).generate_state(1)
            generator = torch.Generator(X.device).manual_seed(int(seed[0]))
            self.objective.options["generator"] = generator
        with torch.autocast(X.device.type, enabled=False):
            scores = scores.float()
            if self.bias is not None:
                scores = self.bias(scores, batch.positions, check=False)  # `fit` has
            total = scores.sum()
            if not torch.isfinite(total):
                return total * torch.nan
            losses: Tensor = self.objective(scores, batch.tiers)
            loss = losses @ batch.weights
            if self.bias is not None:  # the weights of a batch, over all processes, sum to 1 or so
                loss = loss + batch.weights.sum() * self.bias.penalty()
            return loss


def lists_that_teach(rows: TrainingRows, objective: Objective, ranks: Ranks) -> AnyArray:
    """Numbers of the lists whose loss depends on the scores; some rank has at least one."""
    teach = rows.tiers.lengths.numpy() > 1
    if _ignores_one_tier(objective):
        teach &= rows.tiers.n_tiers.numpy() > 1
    if rows.weights is not None:
        teach &= rows.weights > 0
    if not ranks.any(bool(teach.any())):
        raise ValueError(
            "there is nothing to learn: every list that weighs more than 0 has one label or row "
            "only. Are y, qid and weights right?"
        )
    return np.flatnonzero(teach)


def _ignores_one_tier(objective: Objective) -> bool:
    """Whether a list of one tier has loss 0 whatever the scores: asked by an example.

    A copy is asked, as an objective that draws goes on from call to call.
    """
    scores = torch.tensor([0.5, -1.0, 2.0], requires_grad=True)
    loss = deepcopy(objective)(scores, Tiers.from_labels([1, 1, 1])).sum()
    if float(loss.detach()) != 0:
        return False
    (gradient,) = torch.autograd.grad(loss, scores, allow_unused=True)
    return gradient is None or not bool(gradient.any())


# -- networks -------------------------------------------------------------------------------------


class PaddedLists:
    """Lists of different lengths, in groups of which each is padded to its longest.

    The lengths in a group differ by less than a factor of two, so less than half of what is
    computed is padding, whatever the lists.

    Parameters
    ----------
    lengths
        [lists] number of rows of each list; lists follow each other
    device
        of the rows
    """

    def __init__(self, lengths: AnyArray, device: torch.device) -> None:
        starts = np.cumsum(lengths) - lengths
        doublings = np.frexp(lengths.astype(np.float64))[1]
        self.groups: list[tuple[Tensor, Tensor | None]] = []
        places = []
        for doubling in np.unique(doublings):
            chosen = np.flatnonzero(doublings == doubling)
            column = np.arange(lengths[chosen].max())
            real = column < lengths[chosen, None]
            rows = starts[chosen, None] + np.where(real, column, 0)
            whole = bool(real.all())
            mask = None if whole else torch.from_numpy(real).to(device)
            self.groups.append((torch.from_numpy(rows).to(device), mask))
            places.append(rows[real])
        self.back = torch.from_numpy(np.argsort(np.concatenate(places))).to(device)


class ListAttention(nn.Module):
    """Multi-head attention of each row to the rows of its list, without positions.

    Attributes
    ----------
    in_proj
        Linear to queries, keys and values, which stand behind each other, each by head
    out_proj
        Linear of the heads' results, which stand behind each other
    """

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.in_proj = nn.Linear(width, 3 * width)
        self.out_proj = nn.Linear(width, width)

    def forward(self, x: Tensor, lists: PaddedLists) -> Tensor:
        """[rows, width] for [rows, width]."""
        projected = self.in_proj(x)
        found = []
        for rows, mask in lists.groups:
            count, longest = rows.shape
            parts = projected[rows].view(count, longest, 3, self.heads, -1)
            query, key, value = parts.permute(2, 0, 3, 1, 4)
            seen = scaled_dot_product_attention(
                query, key, value, None if mask is None else mask[:, None, None, :]
            )
            by_row = seen.transpose(1, 2).reshape(count, longest, -1)
            found.append(by_row.flatten(0, 1) if mask is None else by_row[mask])
        attended: Tensor = self.out_proj(torch.cat(found)[lists.back])
        return attended


class AttentionBlock(nn.Module):
    """A transformer's encoder block, normalised before each part.

    x + attention(norm1(x)), then x + feed(norm2(x)). Permuting a list permutes what comes out.

    Attributes
    ----------
    norm1, attention, norm2, feed
        LayerNorm, `ListAttention`, LayerNorm, Sequential(Linear, activation, Linear)
    dropout
        of what either part adds
    """

    def __init__(self, width: int, heads: int, activation: nn.Module, dropout: float) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attention = ListAttention(width, heads)
        self.norm2 = nn.LayerNorm(width)
        self.feed = nn.Sequential(
            nn.Linear(width, 2 * width), activation, nn.Linear(2 * width, width)
        )
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, lists: PaddedLists) -> Tensor:
        """[rows, width] for [rows, width]."""
        x = x + self.dropout(self.attention(self.norm1(x), lists))
        out: Tensor = x + self.dropout(self.feed(self.norm2(x)))
        return out


class Scorer(nn.Module):
    """One score a row.

    A row goes through `project` and `blocks` if there is attention, then through `layers`. That is
    all of it: whoever exports a scorer walks these three, in this order.

    Parameters
    ----------
    n_features
        columns of the rows
    hidden
        widths of the hidden layers; none: a linear scorer
    activation
        "relu", "gelu", "silu", "elu" or "tanh"
    dropout
        probability with which a hidden number is 0 in training
    normalisation
        "layer", "batch" or None, before each activation
    attention_layers
        blocks of attention over the list; 0: a row's score depends on nothing but the row
    attention_width, attention_heads
        of the blocks; the width is a multiple of the heads

    Attributes
    ----------
    project
        Linear(n_features, attention_width), or None without attention
    blocks
        ModuleList of `AttentionBlock`
    layers
        Sequential, a `tierrank.training.perceptron.perceptron`
    """

    def __init__(
        self,
        n_features: int,
        hidden: Sequence[int] = (),
        *,
        activation: str = "relu",
        dropout: float = 0.0,
        normalisation: str | None = None,
        attention_layers: int = 0,
        attention_width: int = 64,
        attention_heads: int = 4,
    ) -> None:
        super().__init__()
        check_perceptron(hidden, activation, dropout, normalisation)
        check_count("attention_layers", attention_layers, least=0)
        check_count("attention_width", attention_width)
        check_count("attention_heads", attention_heads)
        if attention_layers and attention_width % attention_heads:
            raise ValueError(
                f"attention_width={attention_width} is no multiple of attention_heads="
                f"{attention_heads}: every head has the same width"
            )
        self.n_features = n_features
        self.project: nn.Linear | None = None
        self.blocks = nn.ModuleList()
        width = n_features
        if attention_layers:
            self.project = nn.Linear(n_features, attention_width)
            width = attention_width
            for _ in range(attention_layers):
                active = ACTIVATIONS[activation]()
                self.blocks.append(AttentionBlock(width, attention_heads, active, dropout))
        self.layers = perceptron(
            width, hidden, activation=activation, dropout=dropout, normalisation=normalisation
        )

    @property
    def scores_lists(self) -> bool:
        """Whether a row's score depends on the other rows of its list."""
        return self.project is not None

    @property
    def width(self) -> int:
        """Numbers a row needs where the network is widest."""
        linear = (each for each in self.modules() if isinstance(each, nn.Linear))
        return max(self.n_features, *(max(each.in_features, each.out_features) for each in linear))

    def forward(self, X: Tensor, lengths: AnyArray | None = None) -> Tensor:
        """Score rows.

        Parameters
        ----------
        X
            [rows, n_features]
        lengths
            [lists] number of rows of each list, which are adjacent; only attention needs them

        Returns
        -------
        [rows] scores
        """
        x = X
        if self.project is not None:
            every = np.array([len(X)]) if lengths is None else lengths
            lists = PaddedLists(every, X.device)
            x = self.project(x)
            for block in self.blocks:
                x = block(x, lists)
        scores: Tensor = self.layers(x).squeeze(1)
        return scores
