"""A sum of regression trees as plain arrays: it predicts without the library that grew it.

LightGBM and XGBoost grow the trees, by settings in words that both know.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np

from tierrank._native import forest_scores, sparse_forest_scores
from tierrank._types import AnyArray
from tierrank.data.cache import blocks, folder_of, scratch_folder
from tierrank.errors import check_count, check_size, optional
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


# -- trees grown by LightGBM and XGBoost ----------------------------------------------------------

# What library_params may not have: named by arguments of the ranker, or leading to trees that a
# `Forest` cannot hold.
# fmt: off
LIGHTGBM_OURS = {
    "objective", "objective_type", "app", "application", "loss", "metric", "metrics",
    "metric_types", "boosting", "boosting_type", "boost", "linear_tree", "linear_trees",
    "categorical_feature", "cat_feature", "categorical_column", "cat_column",
    "categorical_features", "num_iterations", "num_iteration", "n_iter", "num_tree",
    "num_trees", "num_round", "num_rounds", "nrounds", "num_boost_round", "n_estimators",
    "max_iter", "learning_rate", "shrinkage_rate", "eta", "num_leaves", "num_leaf",
    "max_leaves", "max_leaf", "max_leaf_nodes", "max_depth", "min_data_in_leaf",
    "min_data_per_leaf", "min_data", "min_child_samples", "min_samples_leaf",
    "min_sum_hessian_in_leaf", "min_sum_hessian_per_leaf", "min_sum_hessian", "min_hessian",
    "min_child_weight", "lambda_l2", "reg_lambda", "lambda", "l2_regularization",
    "bagging_fraction", "sub_row", "subsample", "bagging", "feature_fraction", "sub_feature",
    "colsample_bytree", "max_bin", "max_bins", "num_threads", "num_thread", "nthread",
    "nthreads", "n_jobs", "seed", "random_seed", "random_state", "bagging_seed",
    "bagging_fraction_seed", "feature_fraction_seed", "extra_seed", "data_random_seed",
    "data_seed", "early_stopping_round", "early_stopping_rounds", "early_stopping",
    "n_iter_no_change", "num_class",
}
XGBOOST_OURS = {
    "objective", "eval_metric", "disable_default_eval_metric", "base_score", "booster",
    "tree_method", "num_class", "num_target", "multi_strategy", "num_parallel_tree",
    "process_type", "updater", "learning_rate", "eta", "max_leaves", "max_depth",
    "min_child_weight", "lambda", "reg_lambda", "subsample", "colsample_bytree", "max_bin",
    "nthread", "n_jobs", "seed", "random_state", "seed_per_iteration", "enable_categorical",
    "feature_types",
}
# fmt: on

ATTEMPTS = 10  # to find a split among rows and features that are drawn anew
CATEGORICAL, DEFAULT_LEFT, MISSING_SHIFT = 1, 2, 2  # bits of a node's decision_type
WORD = 32  # bits of LightGBM's sets


@dataclass(frozen=True)
class TreeSettings:
    """What `BoostedRanker` was told, checked."""

    learning_rate: float
    leaves: int
    depth: int | None
    min_rows_per_leaf: int | None
    min_hessian_per_leaf: float
    l2: float
    row_fraction: float
    feature_fraction: float
    bins: int
    threads: int
    library_params: dict[str, Any] = field(default_factory=dict)
    categorical: tuple[int, ...] = ()  # columns that hold codes of categories

    def __post_init__(self) -> None:
        whole = {"leaves": 2, "bins": 2, "threads": 1, "depth": 1, "min_rows_per_leaf": 1}
        for name, least in whole.items():
            value = getattr(self, name)
            if value is not None or name not in ("depth", "min_rows_per_leaf"):
                check_count(name, value, least=least)
        for name in ("l2", "min_hessian_per_leaf"):
            check_size(name, getattr(self, name), zero=True)
        for name, most in (("learning_rate", 1e6), ("row_fraction", 1), ("feature_fraction", 1)):
            check_size(name, getattr(self, name))
            if getattr(self, name) > most:
                raise ValueError(
                    f"{name} is a number above 0, up to {most:g}, not {getattr(self, name)!r}"
                )

    def checked_params(self, ours: Collection[str]) -> dict[str, Any]:
        """`library_params`, without those that are not the library's to decide."""
        for name in self.library_params:
            if name in ours:
                raise ValueError(
                    f"library_params may not have {name!r}: the ranker sets it, by an argument of "
                    "its own, or cannot do with another value"
                )
        return self.library_params


def _imported(library: str) -> Any:
    return optional(library, f'library="{library}"', "boost")


class Grower(Protocol):
    """A library that grows trees on fixed rows, from scores and derivatives that it is given."""

    def start(self, scores: AnyArray, valid_scores: AnyArray | None, seed: int) -> None:
        """Begin anew, from these scores: what was grown before is forgotten."""

    def grow(self, gradient: AnyArray, hessian: AnyArray) -> bool:
        """Add a tree; False if no split was worth it, so that there is none."""

    def scores(self) -> AnyArray:
        """[rows] scores of the training rows, trees added."""

    def valid_scores(self) -> AnyArray:
        """[rows] scores of the validation rows, trees added."""

    def forest(self) -> Forest:
        """The trees since the start."""

    def leave(self) -> None:
        """Leave the network of several machines."""


class LightGBMTrees:
    """A `Grower`.

    Histograms are built column by column: which way is faster LightGBM would find out by the
    clock, differently each time, and the other way copies all rows for every new booster.

    Among several machines (`network`, LightGBM's own parameters) the rows are a part of all rows,
    and every machine grows the same trees, call by call. The network belongs to the thread, and
    to the booster that opened it, so that one is kept.
    """

    def __init__(
        self, X: Any, valid_X: Any, settings: TreeSettings, network: dict[str, Any] | None = None
    ) -> None:
        self._library = lightgbm = _imported("lightgbm")
        self._params = lightgbm_params(settings)
        if network is not None:
            shared = {"tree_learner": "data", "pre_partition": True}
            self._params = {**shared, "num_machines": network["num_machines"], **self._params}
        self._n_features = X.shape[1]
        drawn = settings.row_fraction < 1 or settings.feature_fraction < 1
        self._attempts = ATTEMPTS if drawn else 1
        self._valid_rows = None
        self._booster: Any = None
        with self._refusals_explained():
            self._rows = lightgbm.Dataset(
                X, params=self._params, categorical_feature=list(settings.categorical)
            )
            if network is not None:  # before the bins are made, together
                # a thread is told to be quiet by the first parameters it reads, else it prints
                # the ports that a network tries
                lightgbm.Dataset(np.zeros((1, 1)), params=self._params).construct()
                self._network = lightgbm.Booster({**self._params, **network}, self._rows)
            self._rows.construct()
            if valid_X is not None:
                valid_rows = self._rows.create_valid(valid_X, params=self._params)
                self._valid_rows = valid_rows.construct()

    @contextmanager
    def _refusals_explained(self) -> Iterator[None]:
        try:
            yield
        except self._library.basic.LightGBMError as error:
            raise ValueError(f"LightGBM refuses: {error}. Are library_params right?") from error

    def start(self, scores: AnyArray, valid_scores: AnyArray | None, seed: int) -> None:
        seeds = np.random.SeedSequence(seed).generate_state(3) >> 1
        names = ("bagging_seed", "feature_fraction_seed", "extra_seed")
        self._rows.set_init_score(scores)
        params = {**self._params, **dict(zip(names, map(int, seeds), strict=True))}
        with self._refusals_explained():
            self._booster = self._library.Booster(params, self._rows)
        if self._valid_rows is not None:
            self._valid_rows.set_init_score(valid_scores)
            self._booster.add_valid(self._valid_rows, "valid")

    def grow(self, gradient: AnyArray, hessian: AnyArray) -> bool:
        with self._refusals_explained():
            return any(
                not self._booster.update(fobj=lambda scores, rows: (gradient, hessian))
                for _ in range(self._attempts)
            )

    def scores(self) -> AnyArray:
        return self._seen(self._booster.eval_train)

    def valid_scores(self) -> AnyArray:
        return self._seen(self._booster.eval_valid)

    @staticmethod
    def _seen(evaluate: Any) -> AnyArray:
        """The scores that LightGBM shows to a metric; its own array, which it will change."""
        seen: list[AnyArray] = []

        def look(scores: AnyArray, rows: Any) -> tuple[str, float, bool]:
            seen.append(scores)
            return "seen", 0.0, True

        evaluate(look)
        return seen[0].copy()

    def leave(self) -> None:
        """Leave the network."""
        self._network.free_network()

    def forest(self) -> Forest:
        return lightgbm_forest(self._booster.model_to_string(num_iteration=-1), self._n_features)


def lightgbm_params(settings: TreeSettings) -> dict[str, Any]:
    """The settings as LightGBM calls them."""
    params: dict[str, Any] = {
        "objective": "custom",
        "metric": "none",
        "verbosity": -1,
        "deterministic": True,
        "force_col_wise": True,
        "feature_pre_filter": False,
        "learning_rate": settings.learning_rate,
        "num_leaves": settings.leaves,
        "max_depth": -1 if settings.depth is None else settings.depth,
        "min_data_in_leaf": settings.min_rows_per_leaf or 20,
        "min_sum_hessian_in_leaf": settings.min_hessian_per_leaf,
        "lambda_l2": settings.l2,
        "bagging_fraction": settings.row_fraction,
        "bagging_freq": 1 if settings.row_fraction < 1 else 0,
        "feature_fraction": settings.feature_fraction,
        "max_bin": settings.bins,
        "num_threads": settings.threads,
    }
    given = settings.checked_params(LIGHTGBM_OURS)
    if given.get("force_row_wise"):
        del params["force_col_wise"]
    return {**params, **given}


def lightgbm_forest(model: str, n_features: int) -> Forest:
    """The trees of a model as LightGBM writes it down, with every digit."""
    trees = [_lightgbm_tree(text) for text in model.split("\nTree=")[1:]]
    return Forest.concatenate(n_features, trees)


def _lightgbm_tree(text: str) -> Arrays:
    """One tree; LightGBM numbers its inner nodes, and apart from them its leaves, as ~number."""
    lines = dict(line.split("=", 1) for line in text.splitlines()[1:] if "=" in line)
    leaves = _numbers(lines["leaf_value"], np.float64)
    inner = len(leaves) - 1
    if int(lines.get("is_linear", 0)):
        raise ValueError("LightGBM grew a tree with linear leaves: turn that off")

    def of_nodes(name: str, kind: Any) -> AnyArray:
        given = _numbers(lines[name], kind) if inner else np.zeros(0, kind)
        return np.concatenate([given, np.zeros(len(leaves), kind)])

    left, right = of_nodes("left_child", np.int64), of_nodes("right_child", np.int64)
    for children in (left, right):
        children[:] = np.where(children < 0, inner + ~children, children)
        children[inner:] = -1
    decision, threshold = of_nodes("decision_type", np.int64), of_nodes("threshold", np.float64)
    splits_categories = (decision & CATEGORICAL) > 0
    sets = _lightgbm_sets(lines) if splits_categories.any() else []
    return tree_arrays(
        left,
        right,
        np.concatenate([np.zeros(inner), leaves]),
        # a set's number stands for the threshold; what is missing is in none of them
        {int(node): sets[int(threshold[node])] for node in np.flatnonzero(splits_categories)},
        feature=of_nodes("split_feature", np.int64),
        threshold=np.where(splits_categories, 0.0, threshold),
        missing=np.where(splits_categories, NAN, (decision >> MISSING_SHIFT) & 3),
        default_left=((decision & DEFAULT_LEFT) > 0) & ~splits_categories,
        gain=of_nodes("split_gain", np.float64),
    )


def _lightgbm_sets(lines: dict[str, str]) -> list[AnyArray]:
    """The sets of codes that go left, which LightGBM writes as words of 32 bits, lowest first."""
    borders = _numbers(lines["cat_boundaries"], np.int64)
    words = _numbers(lines["cat_threshold"], np.uint32)
    bits = (words[:, None] >> np.arange(WORD, dtype=np.uint32)) & 1
    return [np.flatnonzero(bits[begin:end].ravel()) for begin, end in pairwise(borders.tolist())]


def _numbers(text: str, kind: Any) -> AnyArray:
    return np.asarray(text.split(), dtype=kind)


class XGBoostTrees:
    """A `Grower`. Scores, as all that XGBoost computes, are float32.

    XGBoost takes what a sparse matrix does not store for missing. So a forest that grew from a
    sparse matrix takes every 0 for missing, and one that grew from a dense one none: then it does
    not matter how the rows come that are to be scored.

    Among several machines (`network`, what XGBoost's collective is opened with) it is as with
    LightGBM: the network belongs to the thread.
    """

    def __init__(
        self, X: Any, valid_X: Any, settings: TreeSettings, network: dict[str, Any] | None = None
    ) -> None:
        self._library = xgboost = _imported("xgboost")
        self._params = xgboost_params(settings)
        self._n_features = X.shape[1]
        self._sparse = hasattr(X, "indptr")
        options: dict[str, Any] = {"nthread": settings.threads}
        if settings.categorical:
            kinds = ["c" if at in settings.categorical else "q" for at in range(self._n_features)]
            options |= {"feature_types": kinds, "enable_categorical": True}
        self._valid_rows = None
        if (folder := folder_of(X)) is not None:
            self._rows, self._valid_rows = self._external(X, valid_X, settings, folder)
            valid_X = None
        if valid_X is not None:  # without the network: some of its machines may have none
            self._valid_rows = xgboost.DMatrix(self._same_kind(valid_X), **options)
        if network is not None:
            import_module("xgboost.collective").init(**network)
        if folder is None:
            self._rows = xgboost.QuantileDMatrix(
                self._same_kind(X), max_bin=settings.bins, **options
            )
        self._booster: Any = None
        self._trees = 0

    def _external(
        self, X: Any, valid_X: Any, settings: TreeSettings, folder: Path
    ) -> tuple[Any, Any]:
        """Mapped rows: XGBoost takes them block by block, and keeps its bins in files too."""
        same_kind = self._same_kind

        class Blocks(self._library.DataIter):  # type: ignore[name-defined, misc]
            def __init__(self, X: Any) -> None:
                self.X = X
                self.left: Iterator[slice] = iter(())
                super().__init__(cache_prefix=str(Path(place.name) / "bins"), on_host=False)

            def reset(self) -> None:
                width = -(-self.X.nnz // X.shape[0]) if hasattr(X, "indptr") else X.shape[1]
                self.left = blocks(self.X.shape[0], max(width, 1))

            def next(self, take: Any) -> bool:
                if (some := next(self.left, None)) is not None:
                    take(data=same_kind(self.X[some]))
                return some is not None

        self._place = place = scratch_folder(folder, ".xgboost-")
        options = {"max_bin": settings.bins, "nthread": settings.threads}
        rows = self._library.ExtMemQuantileDMatrix(Blocks(X), **options)
        if valid_X is None:
            return rows, None
        return rows, self._library.ExtMemQuantileDMatrix(Blocks(valid_X), ref=rows, **options)

    def _same_kind(self, X: Any) -> Any:
        """Sparse without stored zeros, or dense, as the training rows are."""
        if not self._sparse:
            return X.toarray() if hasattr(X, "indptr") else X
        from scipy.sparse import csr_array

        rows = csr_array(X, copy=True)
        rows.sum_duplicates()
        rows.eliminate_zeros()
        return rows

    def start(self, scores: AnyArray, valid_scores: AnyArray | None, seed: int) -> None:
        self._rows.set_base_margin(scores.astype(np.float32))
        seen: list[Any] = [self._rows]
        if self._valid_rows is not None:
            assert valid_scores is not None
            self._valid_rows.set_base_margin(valid_scores.astype(np.float32))
            seen.append(self._valid_rows)
        params = {**self._params, "seed": seed & 0x7FFFFFFF}
        self._booster = self._library.Booster(params, seen)
        self._trees = 0

    def grow(self, gradient: AnyArray, hessian: AnyArray) -> bool:
        self._booster.boost(self._rows, self._trees, grad=gradient, hess=hessian)
        self._trees += 1
        return True

    def scores(self) -> AnyArray:
        return self._margins(self._rows)

    def valid_scores(self) -> AnyArray:
        return self._margins(self._valid_rows)

    def leave(self) -> None:
        """Leave the network."""
        import_module("xgboost.collective").finalize()

    def _margins(self, rows: Any) -> AnyArray:
        """XGBoost keeps these, and adds the trees that are new."""
        return np.asarray(self._booster.predict(rows, output_margin=True))

    def forest(self) -> Forest:
        model = json.loads(bytes(self._booster.save_raw("json")))
        return xgboost_forest(model, self._n_features, zero_is_missing=self._sparse)


def xgboost_params(settings: TreeSettings) -> dict[str, Any]:
    """The settings as XGBoost calls them."""
    if settings.min_rows_per_leaf is not None:
        raise ValueError(
            "min_rows_per_leaf is LightGBM's; XGBoost limits leaves by min_hessian_per_leaf only"
        )
    params: dict[str, Any] = {
        "base_score": 0.0,
        "disable_default_eval_metric": True,
        "verbosity": 0,
        "tree_method": "hist",
        "grow_policy": "lossguide",
        "seed_per_iteration": True,
        "learning_rate": settings.learning_rate,
        "max_leaves": settings.leaves,
        "max_depth": 0 if settings.depth is None else settings.depth,
        "min_child_weight": settings.min_hessian_per_leaf,
        "reg_lambda": settings.l2,
        "subsample": settings.row_fraction,
        "colsample_bytree": settings.feature_fraction,
        "max_bin": settings.bins,
        "nthread": settings.threads,
    }
    return {**params, **settings.checked_params(XGBOOST_OURS)}


def xgboost_forest(model: dict[str, Any], n_features: int, *, zero_is_missing: bool) -> Forest:
    """The trees of a model as XGBoost writes it as JSON, with every digit."""
    trees = model["learner"]["gradient_booster"]["model"]["trees"]
    missing = ZERO if zero_is_missing else NAN
    return Forest.concatenate(n_features, [_xgboost_tree(tree, missing) for tree in trees])


def _xgboost_tree(tree: dict[str, Any], missing: int) -> Arrays:
    """One tree; where it splits categories, those that it names go right, so sides are changed."""
    left, right = np.asarray(tree["left_children"]), np.asarray(tree["right_children"])
    condition = np.asarray(tree["split_conditions"], dtype=np.float32)  # or a leaf's value
    default_left = np.asarray(tree["default_left"]) > 0
    sets = _xgboost_sets(tree)
    changed = np.isin(np.arange(len(left)), list(sets))
    return tree_arrays(
        np.where(changed, right, left),
        np.where(changed, left, right),
        condition,
        sets,
        feature=np.asarray(tree["split_indices"]),
        threshold=np.where(changed, 0.0, last_below(condition)),
        missing=np.where(changed, NAN, missing),
        default_left=default_left ^ changed,
        gain=np.asarray(tree["loss_changes"], dtype=np.float64),
    )


def _xgboost_sets(tree: dict[str, Any]) -> dict[int, AnyArray]:
    """The codes that go right, by node."""
    codes = np.asarray(tree["categories"], dtype=np.int64)
    places = zip(tree["categories_nodes"], tree["categories_segments"], tree["categories_sizes"],
                 strict=True)  # fmt: skip
    return {node: codes[begin : begin + size] for node, begin, size in places}


def last_below(limit: AnyArray) -> AnyArray:
    """The largest float64 that, rounded to float32, is below a float32: x < limit, as x ≤ result.

    It is half-way to the float32 before, or just under that where half-way is rounded up, which
    goes by the last bit.
    """
    with np.errstate(over="ignore"):  # nothing is below the smallest
        before = np.nextafter(limit, np.float32(-np.inf))
    half_way = 0.5 * (before.astype(np.float64) + limit)
    rounds_down = before.view(np.uint32) & 1 == 0
    return np.where(rounds_down, half_way, np.nextafter(half_way, -np.inf))
