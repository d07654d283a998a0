"""A sum of regression trees as plain arrays: it predicts without the library that grew it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
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
    right otherwise; `missing` says when it goes where `default_left` points instead. At a node that
    splits categories the column holds codes, 0, 1, 2, …: those that `categories` has of the node go
    left, all others right, and NaN where `default_left` points.

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
    category_counts
        [nodes] how many codes of categories go left; 0 at a leaf, and where a threshold decides
    categories
        these codes, node after node, rising within a node
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
    category_counts: AnyArray = field(default_factory=lambda: np.zeros(0, np.int32))
    categories: AnyArray = field(default_factory=lambda: np.zeros(0, np.int32))

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
    OF_CATEGORIES: ClassVar[dict[str, Any]] = {"category_counts": np.int32, "categories": np.int32}

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
        known = [name for name in (*cls.KINDS, *cls.OF_CATEGORIES) if name in arrays]
        return cls(n_features, **{name: arrays[name] for name in known})

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
        if any(len(part.get("categories", ())) for part in parts):
            counts = [part.get("category_counts", np.zeros_like(part["feature"])) for part in parts]
            codes = [part["categories"] for part in parts if "categories" in part]
            arrays["category_counts"] = np.concatenate(counts).astype(np.int32)
            arrays["categories"] = np.concatenate(codes).astype(np.int32)
        return cls(n_features, **arrays)

    def arrays(self) -> Arrays:
        """All arrays, by name; those of categories if some are split."""
        names = (*self.KINDS, *self.OF_CATEGORIES) if self.splits_categories else self.KINDS
        return {name: getattr(self, name) for name in names}

    @property
    def splits_categories(self) -> bool:
        """Whether there is a node that does."""
        return len(self.categories) > 0

    def __len__(self) -> int:
        return len(self.tree_offsets) - 1

    def first(self, trees: int) -> Forest:
        """The forest of the first trees alone."""
        return self.between(0, trees)

    def between(self, begin: int, end: int) -> Forest:
        """The forest of the trees begin … end − 1."""
        offsets = self.tree_offsets[begin : end + 1]
        nodes = slice(offsets[0], offsets[-1])
        arrays = {name: array[nodes] for name, array in self.arrays().items()}
        if self.splits_categories:
            ends = np.concatenate([[0], np.cumsum(self.category_counts)])
            arrays["categories"] = self.categories[ends[nodes.start] : ends[nodes.stop]]
        if begin:
            left = arrays["left"]
            arrays["left"] = np.where(left > 0, left - offsets[0], 0).astype(np.int32)
        arrays["tree_offsets"] = offsets - offsets[0]
        return Forest(self.n_features, **arrays)

    def followed_by(self, other: Forest) -> Forest:
        """The trees of this forest, then those of another."""
        return Forest.concatenate(self.n_features, [self.arrays(), other.arrays()])

    @classmethod
    def mean(cls, forests: Sequence[Forest]) -> Forest:
        """One forest whose scores are the mean of theirs: all their trees, with leaves divided."""
        parts = [{**each.arrays(), "value": each.value / len(forests)} for each in forests]
        return cls.concatenate(forests[0].n_features, parts)

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
        codes = (self.category_counts, self.categories) if self.splits_categories else ()
        steps = len(out) * len(self) * DEPTH
        threads = torch.get_num_threads() if steps >= WORTH_SHARING else 1
        if not hasattr(X, "indptr"):
            forest_scores(X, *arrays, out, threads, *codes)
            return out
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
        rows = (X.data, X.indices, X.indptr)
        sparse_forest_scores(*rows, self.n_features, *arrays, out, threads, *codes)
        return out

    def added_up(self, X: Any, dtype: Any) -> AnyArray:
        """[rows] scores to the last bit as a library has them that adds tree by tree in `dtype`."""
        total = np.zeros(X.shape[0], dtype)
        for number in range(len(self)):
            total += self.between(number, number + 1).predict(X).astype(dtype)
        return total


def _check(forest: Forest) -> None:
    """Refuse arrays that a walk could leave, or never come back from."""
    offsets = forest.tree_offsets
    for name, wanted in (forest.KINDS | forest.OF_CATEGORIES).items():
        array = getattr(forest, name)
        if not isinstance(array, np.ndarray) or array.ndim != 1:
            raise ValueError(f"the forest's {name} is no flat array")
        if array.dtype != wanted:
            raise ValueError(f"the forest's {name} holds {array.dtype}, not {np.dtype(wanted)}")
    nodes = len(forest.feature)
    if any(len(getattr(forest, name)) != nodes for name in forest.KINDS if name != "tree_offsets"):
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
    _check_categories(forest)


def _check_categories(forest: Forest) -> None:
    counts, codes = forest.category_counts, forest.categories
    if not len(counts) and not len(codes):
        return
    if len(counts) != len(forest.left) or (counts < 0).any() or counts.sum() != len(codes):
        raise ValueError("the forest's category_counts do not go with its nodes and categories")
    split = counts > 0
    if (split & ((forest.left == 0) | (forest.missing != NAN))).any():
        raise ValueError("the forest has categories at a leaf, or at a node where 0 is missing")
    node = np.repeat(np.arange(len(counts)), counts)
    falls = (codes[1:] <= codes[:-1]) & (node[1:] == node[:-1])
    if (codes < 0).any() or falls.any():
        raise ValueError("the forest has categories below 0, or that do not rise within a node")


def tree_arrays(
    left: AnyArray,
    right: AnyArray,
    value: AnyArray,
    categories: Mapping[int, AnyArray] | None = None,
    /,
    **inner: AnyArray,
) -> Arrays:
    """One tree as `Forest.concatenate` takes it: numbered level by level, children side by side.

    Parameters
    ----------
    left, right
        [nodes] children of each node, or −1 at a leaf; the root is node 0
    value
        [nodes] of which those of the leaves count
    categories
        by node, where categories are split, the codes that go left
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
    if categories:
        of_nodes = [np.sort(categories.get(node, np.zeros(0, np.int32))) for node in order]
        arrays["category_counts"] = np.array([len(codes) for codes in of_nodes])
        arrays["categories"] = np.concatenate(of_nodes)
    return arrays
