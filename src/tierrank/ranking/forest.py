"""A sum of regression trees as plain arrays: it predicts without the library that grew it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from tierrank._native import forest_scores, sparse_forest_scores
from tierrank._types import AnyArray
from tierrank.storage import Arrays

# what is missing at a node
NOTHING, ZERO, NAN = 0, 1, 2

# what LightGBM takes for zero, where zeros are missing: a float32, compared as a float64
NEARLY_ZERO = float(np.float32(1e-35))

DEPTH = 8  # steps from a root to a leaf, more or less
WORTH_SHARING = 1 << 18  # steps from which threads share the rows


@dataclass(frozen=True, eq=False)
class Forest:
    """Trees whose leaves are added up.

    Nodes of all trees stand one after the other, those of a tree level by level from its root.
    At an inner node a row goes left if ``X[row, feature] <= threshold``, compared in float64, and
    right otherwise; `missing` says when it goes where `default_left` points instead.

    Attributes
    ----------
    n_features
        columns of X
    tree_offsets
        [trees + 1] tree t has the nodes tree_offsets[t] … tree_offsets[t + 1] − 1, root first
    feature
        [nodes] which column an inner node looks at; 0 at a leaf
    threshold
        [nodes] the largest value that goes left; 0 at a leaf
    left
        [nodes] number of the left child among all nodes, and 0 at a leaf. The right child is
        the next one, ``left + 1``.
    missing
        [nodes] what is missing here: 0 nothing, and NaN counts as 0; 1 zero and NaN; 2 NaN
    default_left
        [nodes] whether what is missing goes left
    value
        [nodes] what a leaf adds to the score; 0 at an inner node
    gain
        [nodes] by how much the split improved the objective, as the library counts it
    """

    n_features: int
    tree_offsets: AnyArray
    feature: AnyArray
    threshold: AnyArray
    left: AnyArray
    missing: AnyArray
    default_left: AnyArray
    value: AnyArray
    gain: AnyArray

    KINDS: ClassVar[dict[str, Any]] = {
        "tree_offsets": np.int64,
        "feature": np.int32,
        "threshold": np.float64,
        "left": np.int32,
        "missing": np.uint8,
        "default_left": np.bool_,
        "value": np.float64,
        "gain": np.float64,
    }

    def __post_init__(self) -> None:
        _check(self)

    @classmethod
    def empty(cls, n_features: int) -> Forest:
        """No tree: every score is 0."""
        arrays = {name: np.zeros(0, kind) for name, kind in cls.KINDS.items()}
        arrays["tree_offsets"] = np.zeros(1, np.int64)
        return cls(n_features, **arrays)

    @classmethod
    def from_arrays(cls, n_features: int, arrays: Arrays) -> Forest:
        """From what `arrays` gave; raises a ValueError where it does not hold together."""
        missing = [name for name in cls.KINDS if name not in arrays]
        if missing:
            raise ValueError(f"the forest has no array {', '.join(missing)}")
        return cls(n_features, **{name: arrays[name] for name in cls.KINDS})

    @classmethod
    def concatenate(cls, n_features: int, parts: Sequence[Arrays]) -> Forest:
        """Trees one after the other, from the arrays of trees or of forests."""
        if not parts:
            return cls.empty(n_features)
        shift = np.cumsum([0, *(len(part["feature"]) for part in parts)])[:-1]
        moved = [
            {
                **part,
                "left": np.where(part["left"] > 0, part["left"] + start, 0),
                "tree_offsets": part["tree_offsets"][1:] + start,
            }
            for part, start in zip(parts, shift, strict=True)
        ]
        arrays = {
            name: np.concatenate([part[name] for part in moved]).astype(kind)
            for name, kind in cls.KINDS.items()
        }
        arrays["tree_offsets"] = np.concatenate([np.zeros(1, np.int64), arrays["tree_offsets"]])
        return cls(n_features, **arrays)

    def arrays(self) -> Arrays:
        """All arrays, by name."""
        return {name: getattr(self, name) for name in self.KINDS}

    def __len__(self) -> int:
        return len(self.tree_offsets) - 1

    def first(self, trees: int) -> Forest:
        """The forest of the first trees alone."""
        return self.between(0, trees)

    def between(self, begin: int, end: int) -> Forest:
        """The forest of the trees begin … end − 1."""
        offsets = self.tree_offsets[begin : end + 1]
        arrays = {name: array[offsets[0] : offsets[-1]] for name, array in self.arrays().items()}
        if begin:
            left = arrays["left"]
            arrays["left"] = np.where(left > 0, left - offsets[0], 0).astype(np.int32)
        arrays["tree_offsets"] = offsets - offsets[0]
        return Forest(self.n_features, **arrays)

    def followed_by(self, other: Forest) -> Forest:
        """The trees of this forest, then those of another."""
        return Forest.concatenate(self.n_features, [self.arrays(), other.arrays()])

    @property
    def is_leaf(self) -> AnyArray:
        """[nodes]"""
        return np.asarray(self.left == 0)

    def importances(self) -> AnyArray:
        """[features] the share of each feature in all gain; all 0 if there was none."""
        inner = ~self.is_leaf
        total = np.bincount(
            self.feature[inner],
            weights=np.maximum(self.gain[inner], 0.0),
            minlength=self.n_features,
        )
        return np.asarray(total / total.sum() if total.sum() > 0 else total)

    def predict(self, X: Any) -> AnyArray:
        """[rows] sums over the trees, in float64; X is dense or a CSR matrix.

        What a CSR matrix does not store is 0.
        """
        if X.shape[1] != self.n_features:
            raise ValueError(
                f"the forest was grown from {self.n_features} features, but X has {X.shape[1]}"
            )
        import torch

        out = np.zeros(X.shape[0])
        if not len(self):
            return out
        if X.dtype not in (np.float32, np.float64):
            X = X.astype(np.float64)
        arrays = (
            self.tree_offsets, self.feature, self.threshold, self.left, self.missing,
            self.default_left, self.value,
        )  # fmt: skip
        steps = len(out) * len(self) * DEPTH
        threads = torch.get_num_threads() if steps >= WORTH_SHARING else 1
        if not hasattr(X, "indptr"):
            forest_scores(X, *arrays, out, threads)
            return out
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
        sparse_forest_scores(X.data, X.indices, X.indptr, self.n_features, *arrays, out, threads)
        return out

    def added_up(self, X: Any, dtype: Any) -> AnyArray:
        """[rows] scores to the last bit as a library has them that adds tree by tree in `dtype`."""
        total = np.zeros(X.shape[0], dtype)
        for number in range(len(self)):
            total += self.between(number, number + 1).predict(X).astype(dtype)
        return total


def _check(forest: Forest) -> None:
    """Refuse arrays that a walk could leave, or never come back from."""
    arrays = forest.arrays()
    offsets = forest.tree_offsets
    for name, array in arrays.items():
        if not isinstance(array, np.ndarray) or array.ndim != 1:
            raise ValueError(f"the forest's {name} is no flat array")
        if array.dtype != forest.KINDS[name]:
            kind = np.dtype(forest.KINDS[name])
            raise ValueError(f"the forest's {name} holds {array.dtype}, not {kind}")
    nodes = len(forest.feature)
    if any(len(array) != nodes for name, array in arrays.items() if name != "tree_offsets"):
        raise ValueError("the forest's arrays have different numbers of nodes")
    if not isinstance(forest.n_features, int) or forest.n_features < 1:
        raise ValueError(f"a forest looks at 1 feature or more, not {forest.n_features!r}")
    if not len(offsets) or offsets[0] != 0 or offsets[-1] != nodes or (np.diff(offsets) < 1).any():
        raise ValueError("the forest's tree_offsets do not cut its nodes into trees")
    inner = np.flatnonzero(forest.left)
    child = forest.left[inner].astype(np.int64)
    end = np.repeat(offsets[1:], np.diff(offsets))[inner]
    # Children come after their parent, in the same tree, and have no other: a walk always ends.
    if (child <= inner).any() or (child + 1 >= end).any():
        raise ValueError("the forest has a node whose children are not below it in its tree")
    if len(np.unique(np.concatenate([child, child + 1]))) != nodes - len(forest):
        raise ValueError("the forest has a node without a parent, or with two")
    if (forest.feature < 0).any() or (forest.feature >= forest.n_features).any():
        raise ValueError(f"the forest looks at a feature beyond its {forest.n_features}")
    if np.isnan(forest.threshold).any() or (forest.missing > 2).any():
        raise ValueError("the forest has a threshold that is NaN, or an unknown kind of missing")
    if not np.isfinite(forest.value).all() or not np.isfinite(forest.gain).all():
        raise ValueError("the forest has a leaf or a gain that is not finite")


def tree_arrays(left: AnyArray, right: AnyArray, value: AnyArray, **inner: AnyArray) -> Arrays:
    """One tree as `Forest.concatenate` takes it: numbered level by level, children side by side.

    Parameters
    ----------
    left, right
        [nodes] children of each node, or −1 at a leaf; the root is node 0
    value
        [nodes] of which those of the leaves count
    inner
        [nodes] the other arrays of a `Forest`, of which those of inner nodes count
    """
    order, children = [0], []
    for node in order:  # grows as it goes
        is_leaf = left[node] < 0
        children.append(0 if is_leaf else len(order))
        if not is_leaf:
            order.extend((int(left[node]), int(right[node])))
        if len(order) > len(left):
            raise ValueError("the nodes do not form a tree")
    is_inner = left[order] >= 0
    arrays = {name: np.where(is_inner, array[order], 0) for name, array in inner.items()}
    arrays["value"] = np.where(is_inner, 0.0, value[order])
    arrays["left"] = np.asarray(children)
    arrays["tree_offsets"] = np.array([0, len(order)])
    return arrays
