"""The network: sparse rows in, [rows, width] hidden numbers out, and then the best labels.

Before the network sees them, entries of X are weighted (`Features`): tf-idf, unit rows, or as they
are.

    tf-idf   x_f · idf_f, with idf_f = 1 + log((1 + rows) / (1 + rows that have f)), then as l2
    l2       x / ‖x‖

which is what scikit-learn's `TfidfTransformer` does, to rounding. Rows are weighted when a batch is
loaded, so that X stays as it was given, also where it is mapped from a file.

Labels are ranked in blocks of rows and of labels: scores of all are never there.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import torch
from scipy.sparse import csr_matrix
from torch import Tensor, nn
from torch.nn.functional import embedding_bag

from tierrank._types import AnyArray
from tierrank.errors import Argument, ArgumentError, check_count
from tierrank.ranks import ALONE, Ranks

Weighting = Literal["tf-idf", "l2", "raw"]
FeaturesName = Literal["auto", "tf-idf", "l2", "raw"]

DENSE = 0.5  # share of entries from which on a matrix is a dense one
AT_ONCE = 1 << 22  # values that are looked at together
ROWS = 256  # that labels are ranked for at once
BLOCK = 1 << 14  # labels whose scores are there at once
FULL_FEATURES, FULL_WEIGHTS = 1 << 10, 1 << 25  # of a linear path with a weight for each pair
RANK = 128  # of a linear path beyond that
DRAWN = 1 << 21  # weights of other ranks that are drawn at once
SPREAD_FEATURES = 1 << 25  # weights of features that are spread over ranks, as labels are
CHANCES = 1 << 16  # steps in which dropout takes its probability


class Features:
    """A weighting of entries, and what it learned of the training rows.

    Parameters
    ----------
    weighting
        "tf-idf", "l2" or "raw"
    idf
        [features] float32 factors of tf-idf; None with the others
    reason
        why it was chosen, in a few words
    """

    def __init__(self, weighting: Weighting, idf: AnyArray | None = None, reason: str = "") -> None:
        self.weighting, self.idf, self.reason = weighting, idf, reason

    @classmethod
    def learned(cls, X: Any, name: FeaturesName) -> Features:
        """The weighting of this name for [rows, features] CSR training rows; "auto" looks at them.

        Values that are whole numbers, not all the same, are counts: tf-idf. Where all that is
        stored is the same number, features are there or not; that, and a matrix of which half or
        more is filled, stays as given. Other sparse values: rows of length 1.
        """
        weighting, reason = (name, "asked for") if name != "auto" else _judged(X)
        if weighting != "tf-idf":
            return cls(weighting, None, reason)
        have = np.zeros(X.shape[1], np.int64)
        for start in range(0, X.nnz, AT_ONCE):
            some = slice(start, start + AT_ONCE)
            have += np.bincount(X.indices[some][X.data[some] != 0], minlength=X.shape[1])
        idf = 1 + np.log((1 + X.shape[0]) / (1 + have))
        return cls("tf-idf", idf.astype(np.float32), reason)

    @classmethod
    def saved(cls, weighting: Any, idf: AnyArray | None, reason: str, n_features: int) -> Features:
        """From what was written down; raises a ValueError if it does not fit."""
        if weighting not in get_args(Weighting) or (idf is None) != (weighting != "tf-idf"):
            raise ValueError(f"there is no weighting of features {weighting!r} as it is written")
        if idf is not None and not (
            idf.dtype == np.float32 and idf.shape == (n_features,) and (idf >= 1).all()
            and np.isfinite(idf).all()
        ):  # fmt: skip
            raise ValueError(f"the idf are not {n_features} finite numbers of at least 1")
        return cls(weighting, idf, reason)

    def __call__(self, rows: Any) -> Any:
        """Some rows of X, weighted; they stay as they are."""
        if self.weighting == "raw":
            return rows
        values = rows.data if self.idf is None else rows.data * self.idf[rows.indices]
        sizes = np.diff(rows.indptr)
        of_row = np.repeat(np.arange(len(sizes)), sizes)
        squares = np.bincount(of_row, np.square(values, dtype=np.float64), minlength=len(sizes))
        norms = np.sqrt(np.where(squares > 0, squares, 1.0))
        values = (values / norms[of_row]).astype(np.float32)
        return csr_matrix((values, rows.indices, rows.indptr), shape=rows.shape)

    @property
    def sentence(self) -> str:
        """What is done, and why."""
        return f"features: {self.weighting} ({self.reason})"


def check_features(name: Any) -> None:
    """Refuse a weighting that there is not."""
    if name not in get_args(FeaturesName):
        what = f' is "auto", "tf-idf", "l2" or "raw", not {name!r}'
        raise ArgumentError(Argument("features"), what)


def _judged(X: Any) -> tuple[Weighting, str]:
    """What suits these rows, and why."""
    rows, features = X.shape
    if X.nnz >= DENSE * rows * features:
        return "raw", "dense"
    first, same, whole = X.data[0] if X.nnz else 1, True, True
    for start in range(0, X.nnz, AT_ONCE):
        values = X.data[start : start + AT_ONCE]
        same = same and bool((values == first).all())
        whole = whole and bool((values >= 0).all() and (values == np.rint(values)).all())
        if not (same or whole):
            return "l2", "sparse, real values"
    return ("raw", "there or not") if same else ("tf-idf", "counts")


class SparseRows(NamedTuple):
    """Some rows of X, on the features that they have.

    Attributes
    ----------
    features
        [used] the numbers of the features that any of the rows has, ascending
    columns, values
        [entries] which of `features`, and its value; row by row
    starts
        [rows] where the entries of a row start
    """

    features: Tensor
    columns: Tensor
    values: Tensor
    starts: Tensor

    @classmethod
    def of(cls, X: Any) -> SparseRows:
        """From a CSR matrix of float32."""
        features, columns = np.unique(X.indices, return_inverse=True)
        starts = X.indptr[:-1].astype(np.int64)
        parts = features.astype(np.int64), columns.reshape(-1), X.data, starts
        return cls(*(torch.from_numpy(np.ascontiguousarray(part)) for part in parts))

    def within(self, own: slice) -> SparseRows:
        """The same rows, but for the entries of other features."""
        here = rows_within(self.features, own)
        mine = (self.columns >= here.start) & (self.columns < here.stop)
        before = torch.cat([self.starts.new_zeros(1), mine.cumsum(0)])
        return SparseRows(
            self.features[here], self.columns[mine] - here.start, self.values[mine],
            before[self.starts],
        )  # fmt: skip

    def to(self, device: torch.device) -> SparseRows:
        """The same there."""
        return SparseRows(*(part.to(device) for part in self))


def widths(hidden: int | Sequence[int]) -> tuple[int, ...]:
    """Widths of the hidden layers, of which there is at least one."""
    several = tuple(hidden) if isinstance(hidden, Sequence) else (hidden,)
    for width in several:
        check_count("hidden", width)
    if not several:
        raise ValueError("hidden is the width of the hidden layer, or of several, but not of none")
    return several


def skip_width(n_features: int, n_labels: int) -> int:
    """By how many numbers a row reaches the labels beside the hidden layers: all, if few."""
    if n_features <= FULL_FEATURES and n_features * n_labels <= FULL_WEIGHTS:
        return n_features
    return min(RANK, n_features - 1)


class Network(nn.Module):
    """A perceptron on sparse rows: Σ value · row of `features`, ReLU, and further layers.

    Beside the hidden layers, a linear path may lead from the features to the labels: the last layer
    then sees the row itself after its last hidden numbers, or `skip` linear combinations of it,

        scores = labels · [hidden layers of x, x]        or    labels · [hidden layers of x, A x]

    so that whatever holds for the last layer (blocks, samples, ranks) holds for both paths. The
    linear one begins at 0.

    Parameters
    ----------
    n_features, n_labels
        sizes of the first and the last layer
    hidden
        widths of the layers between
    skip
        numbers by which a row reaches the labels beside the hidden layers: as many as there are
        features for the row itself, fewer for combinations (columns of `features` behind those of
        the first hidden layer), 0 for none
    input_dropout, hidden_dropout
        probability with which an entry of X, or a hidden number, is left out in training
    ranks
        that share the labels; and the features, from so many weights on that they take more memory
        than a further sum a step is worth

    Attributes
    ----------
    spread
        of each parameter that the ranks share, how many rows all of them have
    own
        the labels that are here
    """

    def __init__(
        self,
        n_features: int,
        n_labels: int,
        hidden: Sequence[int],
        *,
        skip: int = 0,
        input_dropout: float = 0.0,
        hidden_dropout: float = 0.0,
        ranks: Ranks = ALONE,
    ) -> None:
        super().__init__()
        self.n_labels = n_labels
        self.own = ranks.part(n_labels)
        self.spread = {"labels": n_labels, "label_bias": n_labels}
        self.input_dropout, self.hidden_dropout = input_dropout, hidden_dropout
        self.skip, self.combined = skip, skip if skip < n_features else 0
        width = hidden[0] + self.combined
        if n_features * width > SPREAD_FEATURES:
            self.spread["features"] = n_features
        self._feature_ranks = ranks if "features" in self.spread else ALONE
        self._own_features = self._feature_ranks.part(n_features)
        self.n_features = n_features
        self.features = nn.Parameter(torch.empty(_length(self._own_features), width))
        self.feature_bias = nn.Parameter(torch.empty(hidden[0]))
        self.layers = nn.ModuleList(nn.Linear(*pair) for pair in pairwise(hidden))
        self.labels = nn.Parameter(torch.empty(_length(self.own), hidden[-1] + skip))
        self.label_bias = nn.Parameter(torch.empty(_length(self.own)))

    def reset(self) -> None:
        """Draw first weights as `nn.Linear` does, uniform in ±1/√inputs.

        Those of other ranks are drawn too, in the same order, and let go.
        """
        bound = self.n_features**-0.5
        _draw_rows(self.features, bound, self._own_features, self.n_features)
        nn.init.uniform_(self.feature_bias, -bound, bound)
        bound = (self.labels.shape[1] - self.skip) ** -0.5
        for part in (self.labels, self.label_bias):
            _draw_rows(part, bound, self.own, self.n_labels)
        with torch.no_grad():
            self.labels[:, self.labels.shape[1] - self.skip :].zero_()

    def begin_at(self, scores: AnyArray) -> None:
        """Let each of [labels], those of all ranks, begin with this score as its bias."""
        with torch.no_grad():
            self.label_bias.copy_(torch.from_numpy(scores[self.own]))

    def used(self, rows: SparseRows) -> Tensor:
        """Which rows of ``self.features`` they use, ascending."""
        if self._feature_ranks.size == 1:
            return rows.features
        own = self._own_features
        used: Tensor = rows.features[rows_within(rows.features, own)] - own.start
        return used

    def forward(self, rows: SparseRows, features: Tensor | None = None) -> Tensor:
        """[rows, width] hidden numbers, and behind them those of the linear path.

        `features` are the rows of ``self.features`` that are `used`, if they are there already.
        """
        if features is None:
            features = self.features.index_select(0, self.used(rows))
        values = self._dropout(rows.values, self.input_dropout)  # the same on all ranks
        here = rows._replace(values=values)
        if self._feature_ranks.size > 1:
            here = here.within(self._own_features)
        hidden = embedding_bag(
            here.columns, features, here.starts, mode="sum", per_sample_weights=here.values
        )
        if self._feature_ranks.size > 1:
            hidden = _SumOverRanks.apply(hidden, self._feature_ranks)  # type: ignore[no-untyped-call]
        width = hidden.shape[1] - self.combined
        linear = hidden[:, width:]
        hidden = self._activated(hidden[:, :width] + self.feature_bias)
        for layer in self.layers:
            hidden = self._activated(layer(hidden))
        if self.skip > self.combined:
            linear = hidden.new_zeros(len(hidden), self.skip)
            entries = torch.diff(rows.starts, append=rows.starts.new_tensor([len(values)]))
            row = torch.repeat_interleave(entries)
            linear[row, rows.features[rows.columns]] = values
        return torch.cat([hidden, linear], 1) if self.skip else hidden

    @property
    def learned(self) -> int:
        """How many of the last layer's columns weights lead to; behind them are features."""
        return self.labels.shape[1] - (self.skip - self.combined)

    def _activated(self, hidden: Tensor) -> Tensor:
        return self._dropout(hidden.relu(), self.hidden_dropout)

    def _dropout(self, numbers: Tensor, probability: float) -> Tensor:
        """In training, each number 0 with this probability, and else divided by the other one.

        torch draws 64 bits for each, one after the other; here four numbers share them, and so the
        probability is a multiple of 1/65,536. They are drawn on the CPU, so that all ranks and
        devices leave out the same.
        """
        below = min(round(probability * CHANCES), CHANCES - 1)
        if not self.training or not below:
            return numbers
        words = torch.empty(numbers.numel() // 4 + 1, dtype=torch.int64, device="cpu")
        words.random_(-(1 << 63), None)
        drawn = words.view(torch.int16)[: numbers.numel()].view(numbers.shape)
        kept = (drawn >= below - CHANCES // 2).to(numbers)
        return numbers * kept.mul_(CHANCES / (CHANCES - below))


def top_labels(
    networks: Sequence[Network],
    X: Any,
    k: int,
    *,
    offset: Tensor | None = None,
    ranks: Ranks | None = None,
    weighted: Features | None = None,
) -> tuple[AnyArray, AnyArray]:
    """[rows, k] labels, best first, and their scores; equal scores by label.

    Parameters
    ----------
    networks
        whose scores are averaged; on one device, in evaluation mode
    X
        [rows, features] CSR of float32
    k
        not more than there are labels
    offset
        [labels] added to all scores, or None
    ranks
        those that hold the other labels, and ask the same; None: all labels are here
    weighted
        of the entries of some rows, or None: they are taken as they are
    """
    weighted = weighted or Features("raw")
    own, ranks = networks[0].own, ranks or Ranks()
    offset = None if offset is None else offset[own]
    device = networks[0].labels.device
    labels = np.empty((X.shape[0], k), dtype=np.int64)
    scores = np.empty((X.shape[0], k), dtype=np.float32)
    with torch.no_grad():
        for start in range(0, X.shape[0], ROWS):
            some = slice(start, start + ROWS)
            rows = SparseRows.of(weighted(X[some])).to(device)
            best, which = _of_rows(networks, [network(rows) for network in networks], k, offset)
            if ranks.size > 1:  # lower labels are with lower ranks, so equal scores stay by label
                best, which = _padded(best, k, -torch.inf), _padded(which + own.start, k, -1)
                best, order = _in_order(ranks.side_by_side(best), k)
                which = ranks.side_by_side(which).gather(1, order)
            scores[some], labels[some] = best.cpu().numpy(), which.cpu().numpy()
    return labels, scores


class _SumOverRanks(torch.autograd.Function):
    """Σ over ranks, all of which know the slopes in it: they are those in each summand."""

    @staticmethod
    def forward(_: Any, summand: Tensor, ranks: Ranks) -> Tensor:
        return ranks.sum(summand.clone())

    @staticmethod
    def backward(_: Any, slopes: Tensor) -> tuple[Tensor, None]:
        return slopes, None


def rows_within(rows: Tensor, some: slice) -> slice:
    """Where, in rows that ascend, those of a slice are."""
    ends = torch.tensor([some.start, some.stop], device=rows.device)
    return slice(*torch.searchsorted(rows, ends).tolist())


def _length(some: slice) -> int:
    return int(some.stop - some.start)


def _draw_rows(part: Tensor, bound: float, own: slice, rows: int) -> None:
    """Draw a slice of the rows of a parameter, uniform in ±bound."""
    width = part.shape[1:].numel()
    _draw_and_drop(own.start * width)
    nn.init.uniform_(part, -bound, bound)
    _draw_and_drop((rows - own.stop) * width)


def _draw_and_drop(count: int) -> None:
    """Leave torch's generator as so many uniform draws would."""
    for start in range(0, count, DRAWN):
        torch.empty(min(DRAWN, count - start)).uniform_()


def _of_rows(
    networks: Sequence[Network], hidden: list[Tensor], k: int, offset: Tensor | None
) -> tuple[Tensor, Tensor]:
    best = hidden[0].new_empty(len(hidden[0]), 0)
    which = torch.empty(len(best), 0, dtype=torch.int64, device=best.device)
    for start in range(0, len(networks[0].labels), BLOCK):
        block = slice(start, start + BLOCK)
        scores = torch.addmm(networks[0].label_bias[block], hidden[0], networks[0].labels[block].T)
        for network, one in zip(networks[1:], hidden[1:], strict=True):
            scores += network.label_bias[block]
            scores.addmm_(one, network.labels[block].T)
        if len(networks) > 1:
            scores /= len(networks)
        if offset is not None:
            scores += offset[block]
        found, at = _first(scores, k)
        best, which = torch.cat([best, found], 1), torch.cat([which, at + start], 1)
        if best.shape[1] > k:  # of equal scores, those of lower labels are in front
            best, order = _in_order(best, k)
            which = which.gather(1, order)
    best, order = _in_order(best, k)
    return best, which.gather(1, order)


def _first(scores: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """[rows, up to k] the highest scores of each row and their columns; equal ones by column."""
    if scores.shape[1] <= k:
        return _in_order(scores, k)
    found, at = scores.topk(k + 1)
    tied = found[:, k] == found[:, k - 1]  # topk does not say which of them it takes
    at, order = at[:, :k].sort(1)
    found, order = _in_order(found.gather(1, order), k)
    at = at.gather(1, order)
    if tied.any():
        found[tied], at[tied] = _in_order(scores[tied], k)
    return found, at


def _in_order(scores: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k highest of each row, or all, and their columns; equal ones stay in their order."""
    ordered, at = scores.sort(dim=1, descending=True, stable=True)
    return ordered[:, :k], at[:, :k]


def _padded(numbers: Tensor, k: int, value: float) -> Tensor:
    return nn.functional.pad(numbers, (0, k - numbers.shape[1]), value=value)


def padded(labels: AnyArray, k: int) -> AnyArray:
    """[rows, k or more] the labels, with −1 behind them where there are no more."""
    missing = max(k - labels.shape[1], 0)
    return np.pad(labels, ((0, 0), (0, missing)), constant_values=-1)
