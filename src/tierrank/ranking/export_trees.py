"""Trees in the formats of other libraries: XGBoost, LightGBM, RankLib and Solr.

A forest is first brought into the terms that all of them have: splits of raw features, with the
feature steps folded in, at the largest value that goes left, and a side for what is missing. The
formats differ in how they write a split, and in what they compare:

    xgboost, its dump    x < t in float32
    lightgbm             x <= t in float64
    ranklib              x <= t in float32, and what is missing is 0
    solr                 x <= t + 1e-6 in float32, the sum rounded too
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any
from xml.etree import ElementTree

import numpy as np

from tierrank._types import AnyArray
from tierrank.errors import Argument
from tierrank.ranking.export import ExportError
from tierrank.ranking.features import Impute, Standardize, Steps
from tierrank.ranking.forest import NAN, NEARLY_ZERO, NOTHING, ZERO, Forest, tree_arrays

LARGEST = float(np.finfo(np.float32).max)
SLACK = np.float32(1e-6)
"""What Solr's MultipleAdditiveTreesModel adds to every threshold (its NODE_SPLIT_SLACK)."""

Scorer = Callable[[AnyArray], AnyArray]


# -- steps folded into splits ---------------------------------------------------------------------


def folded(forest: Forest, steps: Steps, dtype: Any, to: str) -> Forest:
    """The forest that does to raw rows of this dtype what the steps and the forest do.

    Each threshold is the largest number of the dtype that goes left, found by bisection over
    the numbers there are: steps and splits are monotone, so no row goes another way. What is
    missing is NaN at every node; nodes that send 0 elsewhere keep that, if the format can.
    """
    inner = np.flatnonzero(forest.left)
    by_category = splits_categories(forest)[inner]
    if by_category.any() and to not in ("lightgbm", "xgboost-json", "xgboost-ubj"):
        raise ExportError(
            f"trees that split categories are not exported to {to}: use ", Argument("to", "onnx"),
            ", ", Argument("to", "xgboost-json"), ", …, which take codes of them",
        )  # fmt: skip
    path = _Path(steps, forest.feature[inner], dtype, to)
    kind, threshold = forest.missing[inner], forest.threshold[inner]
    default_left = forest.default_left[inner]
    if to == "lightgbm" and (by_category & default_left).any():
        raise ExportError(
            "lightgbm sends a missing category right, and these trees, of XGBoost, send some left: "
            "use ", Argument("to", "xgboost-json"), " or ", Argument("to", "onnx"),
        )  # fmt: skip

    # A node where zeros are missing is like any other if they go where their value would.
    astray = (kind == ZERO) & (default_left != (threshold >= 0))
    if astray.any() and (to != "lightgbm" or len(steps)):
        raise ExportError(
            f"{to} cannot carry trees that take zeros for missing, and send them another way "
            f"than their value ({int(astray.sum())} of {len(inner)} splits, such as one on "
            f"feature {path.feature[np.argmax(astray)]}): train with a dense matrix "
            "(X.toarray()) and without zero_as_missing, or use ", Argument("to", "onnx"),
        )  # fmt: skip

    def goes_left(x: AnyArray) -> AnyArray:
        value = path.value(x)
        absent = np.isnan(value)
        value = np.where(absent & (kind != NAN), 0.0, value)
        absent = (absent & (kind == NAN)) | ((kind == ZERO) & (np.abs(value) <= NEARLY_ZERO))
        return np.where(absent & ~astray, default_left, value <= threshold)

    nan = np.full(len(inner), np.nan, dtype)
    arrays = forest.arrays()
    cut = largest_left(goes_left, len(inner), dtype)
    extreme = ~by_category & (np.abs(cut) >= LARGEST)
    if dtype == np.float32 and extreme.any():
        wide = folded(forest, steps, np.float64, to).threshold[inner]
        beyond = extreme & (np.abs(wide) < 1e300)  # past that, they stand for infinity
        if beyond.any():
            at = int(np.argmax(beyond))
            raise ExportError(
                f"{to} compares float32 numbers, and a split of feature {path.feature[at]} is at "
                f"{wide[at]:g}: train on the feature in another unit, or use ",
                Argument("to", "lightgbm"),
            )
    for name, values in {
        "feature": path.feature,
        "threshold": np.where(by_category, 0.0, cut),
        "missing": np.where(astray, ZERO, NAN),
        "default_left": np.where(astray, default_left, goes_left(nan)),
    }.items():
        arrays[name] = arrays[name].copy()
        arrays[name][inner] = values
    arrays["missing"][forest.is_leaf] = NOTHING
    return Forest.from_arrays(path.n_features or forest.n_features, arrays)


def splits_categories(forest: Forest) -> AnyArray:
    """[nodes] whether a node splits categories."""
    counts = forest.category_counts if forest.splits_categories else np.zeros_like(forest.left)
    return np.asarray(counts > 0)


def sets_of(forest: Forest, nodes: slice) -> dict[int, AnyArray]:
    """The codes that go left, by the number of a node among these."""
    if not forest.splits_categories:
        return {}
    counts = forest.category_counts[nodes]
    begin = int(forest.category_counts[: nodes.start].sum())
    ends = begin + np.cumsum(counts)
    return {
        int(node): forest.categories[ends[node] - counts[node] : ends[node]]
        for node in np.flatnonzero(counts)
    }


class _Path:
    """How numbers of a raw feature come to nodes, through the steps that look at one feature.

    Attributes
    ----------
    feature
        [nodes] the raw feature behind the column that each node looks at
    n_features
        how many there are; 0 without steps
    """

    def __init__(self, steps: Steps, column: AnyArray, dtype: Any, to: str) -> None:
        self._dtype = dtype
        self._steps: list[tuple[Any, AnyArray, AnyArray]] = []
        for step in reversed(steps.steps):
            refuse_step(step, to)
            indicator = column >= step.n_features_in_
            if isinstance(step, Impute) and indicator.any():
                place = np.where(indicator, column - step.n_features_in_, 0)
                column = np.where(indicator, step.indicated_[place], column)
            self._steps.insert(0, (step, column, indicator))
        self.feature = column
        self.n_features = steps.steps[0].n_features_in_ if len(steps) else 0

    def value(self, x: AnyArray) -> AnyArray:
        """[nodes] what a node sees of [nodes] raw numbers, rounded where `predict` rounds."""
        with np.errstate(over="ignore"):
            for step, column, indicator in self._steps:
                if isinstance(step, Impute):
                    absent = np.isnan(x)
                    x = np.where(indicator, absent, np.where(absent, step.values_[column], x))
                else:
                    x = step.scaled(x, column)
                x = x.astype(self._dtype)
        return x


def refuse_step(step: Any, to: str) -> None:
    """Refuse a step that has no counterpart in a format, with what to do."""
    if isinstance(step, Impute | Standardize):
        return
    why = {
        "QueryScale": "which depends on the other rows of a query",
        "SecondOrder": "which multiplies features",
    }[type(step).__name__]
    raise ExportError(
        f"{to} cannot carry the step {type(step).__name__}, {why}: use ", Argument("to", "onnx"),
        ", or train without it, on features that are computed so before they come to the engine",
    )  # fmt: skip


def largest_left(goes_left: Callable[[AnyArray], AnyArray], nodes: int, dtype: Any) -> AnyArray:
    """[nodes] the largest finite number for which a falling condition holds; −inf if none does.

    Bisection over the integers that order the floats of the dtype as they are ordered.
    """
    kind: Any = {4: np.int32, 8: np.int64}[np.dtype(dtype).itemsize]
    negative = np.iinfo(kind).min

    def number(key: AnyArray) -> AnyArray:
        return np.where(key >= 0, key, negative - key).astype(kind).view(dtype)

    last = np.array(np.finfo(dtype).max, dtype).view(kind).astype(kind)
    low, high = np.full(nodes, -last, kind), np.full(nodes, last, kind)
    always, never = goes_left(number(high)), ~goes_left(number(low))
    for _ in range(8 * np.dtype(dtype).itemsize):
        middle = (low >> 1) + (high >> 1) + (low & high & 1)  # no sum that overflows
        left = goes_left(number(middle))
        low, high = np.where(left, middle, low), np.where(left, high, middle)
    found = number(low).astype(np.float64)
    return np.where(always, np.finfo(dtype).max, np.where(never, -np.inf, found))


def missing_is_zero(forest: Forest, *, accepted: bool) -> Forest:
    """A folded forest where what is missing goes where 0 goes; refused where it does not yet."""
    left = forest.threshold >= 0
    other = ~forest.is_leaf & (forest.default_left != left)
    if other.any() and not accepted:
        raise ExportError(
            f"ranklib takes what is missing for 0, and {int(other.sum())} splits, such as one on "
            f"feature {forest.feature[np.argmax(other)]}, send it another way: use ",
            Argument("missing_as_zero"), " if your features are never missing, or are 0 then, or ",
            Argument("to", "solr"), ", ", Argument("to", "xgboost-json"), ", …",
        )  # fmt: skip
    return Forest.from_arrays(forest.n_features, {**forest.arrays(), "default_left": left})


def with_a_tree(forest: Forest) -> Forest:
    """The forest, or one leaf of 0 if there is no tree: not all readers take none."""
    if len(forest):
        return forest
    arrays = {name: np.zeros(1, kind) for name, kind in Forest.KINDS.items()}
    arrays["tree_offsets"] = np.array([0, 1])
    return Forest.from_arrays(forest.n_features, arrays)


def nested(
    forest: Forest, split: Callable[[int, Any, Any], Any], leaf: Callable[[int], Any]
) -> list[Any]:
    """Each tree from its leaves up, by what makes something of a node: of its two children too.

    Children come after their parent, so that all is made when the last node is first.
    """
    made: list[Any] = [None] * len(forest.left)
    for node in reversed(range(len(made))):
        child = int(forest.left[node])
        made[node] = split(node, made[child], made[child + 1]) if child else leaf(node)
    return [made[root] for root in forest.tree_offsets[:-1]]


def from_nested(
    n_features: int, roots: Sequence[Any], look: Callable[[Any], Any], missing: int = NAN
) -> Forest:
    """A forest from nested nodes, to see what was written.

    Parameters
    ----------
    look
        gives a leaf's value, or (feature, largest value that goes left, whether what is missing
        goes left, left child, right child)
    missing
        what is missing at a node
    """
    trees = []
    for root in roots:
        nodes, left, split = [root], [], []
        for node in nodes:  # grows as it goes
            seen = look(node)
            is_leaf = isinstance(seen, float)
            left.append(-1 if is_leaf else len(nodes))
            split.append((0, 0.0, False, seen) if is_leaf else (*seen[:3], 0.0))
            nodes.extend(() if is_leaf else seen[3:])
        child = np.array(left)
        feature, threshold, default_left, value = map(np.array, zip(*split, strict=True))
        same = {"missing": np.full(len(nodes), missing), "gain": np.zeros(len(nodes))}
        trees.append(
            tree_arrays(
                child, child + 1, value, feature=feature, threshold=threshold,
                default_left=default_left, **same,
            )
        )  # fmt: skip
    return Forest.concatenate(n_features, trees)


def rounded(values: AnyArray) -> AnyArray:
    """As float32, the infinite as the last that is finite: JSON knows no other."""
    with np.errstate(over="ignore"):
        return np.clip(values.astype(np.float32), -LARGEST, LARGEST)


def next_above(values: AnyArray, dtype: Any) -> AnyArray:
    """The next numbers of a dtype."""
    with np.errstate(over="ignore"):
        return np.asarray(np.nextafter(values.astype(dtype), np.array(np.inf, dtype)))


# -- XGBoost --------------------------------------------------------------------------------------


def mirrored(forest: Forest) -> Forest:
    """The forest with sides changed where categories are split: those that are named go right.

    All others go left, as XGBoost has it. The nodes change places, not only what leads to them:
    XGBoost takes the right child for the one that follows the left.
    """
    if not forest.splits_categories:
        return forest
    changed = splits_categories(forest)
    order, child = np.arange(len(changed)), forest.left[changed]
    order[child], order[child + 1] = child + 1, child
    sets = sets_of(forest, slice(0, len(changed)))
    arrays = {**forest.arrays(), "default_left": forest.default_left ^ changed}
    offsets, _ = arrays.pop("tree_offsets"), arrays.pop("categories")
    arrays = {name: array[order] for name, array in arrays.items()}
    codes = np.concatenate([sets[node] for node in order.tolist() if node in sets])
    return Forest.from_arrays(
        forest.n_features, {**arrays, "tree_offsets": offsets, "categories": codes}
    )


def to_xgboost(forest: Forest, names: Sequence[str], form: str) -> bytes:
    """As XGBoost writes it: "json", "ubj", or "dump", the JSON of the nodes alone."""
    import xgboost

    # What there is beside the trees is the installed version's own: it reads older ones.
    width = forest.n_features
    rows = xgboost.DMatrix(np.zeros((1, width)), label=[0], qid=[0])
    model = json.loads(
        xgboost.train({"objective": "rank:pairwise", "base_score": 0.0}, rows, 0).save_raw("json")
    )
    if list(names) != [f"f{n}" for n in range(width)]:  # what XGBoost calls those without names
        model["learner"]["feature_names"] = list(names)
        model["learner"]["feature_types"] = ["float"] * width
    forest = mirrored(forest)
    by_category = splits_categories(forest)
    if by_category.any():
        coded = np.isin(np.arange(width), forest.feature[by_category])
        model["learner"]["feature_types"] = np.where(coded, "c", "float").tolist()
    # x <= c in float32 is x < the next after c
    above = rounded(next_above(forest.threshold, np.float32))
    condition = np.where(forest.is_leaf, rounded(forest.value), above)
    trees = []
    for number, begin in enumerate(forest.tree_offsets[:-1]):
        here = slice(begin, forest.tree_offsets[number + 1])
        left = np.where(forest.left[here] > 0, forest.left[here] - begin, -1)
        inner = np.flatnonzero(left > 0)
        parent = np.full(len(left), 2**31 - 1)
        parent[left[inner]] = parent[left[inner] + 1] = inner
        sets = sets_of(forest, here)
        sizes = np.array([len(codes) for codes in sets.values()], int)
        trees.append(
            {
                "id": number,
                "tree_param": {
                    "num_deleted": "0", "num_feature": str(width), "num_nodes": str(len(left)),
                    "size_leaf_vector": "1",
                },
                "left_children": left.tolist(),
                "right_children": np.where(left > 0, left + 1, -1).tolist(),
                "parents": parent.tolist(),
                "split_indices": forest.feature[here].tolist(),
                "split_conditions": condition[here].tolist(),
                "split_type": by_category[here].astype(int).tolist(),
                "default_left": forest.default_left[here].astype(int).tolist(),
                "base_weights": rounded(forest.value[here]).tolist(),
                "loss_changes": rounded(forest.gain[here]).tolist(),
                "sum_hessian": [0.0] * len(left),
                "categories": [int(code) for codes in sets.values() for code in codes],
                "categories_nodes": list(sets),
                "categories_segments": (np.cumsum(sizes) - sizes).tolist(),
                "categories_sizes": sizes.tolist(),
            }
        )  # fmt: skip
    content = model["learner"]["gradient_booster"]["model"]
    content["gbtree_model_param"]["num_trees"] = str(len(trees))
    content["iteration_indptr"] = list(range(len(trees) + 1))
    content["tree_info"] = [0] * len(trees)
    content["trees"] = trees
    whole = xgboost.Booster(model_file=bytearray(json.dumps(model).encode()))
    if form == "dump":
        return ("[\n" + ",\n".join(whole.get_dump(dump_format="json")) + "\n]\n").encode()
    return bytes(whole.save_raw(form))


def from_xgboost(data: bytes, names: Sequence[str]) -> Scorer:
    """What XGBoost makes of it."""
    import xgboost

    booster = xgboost.Booster({"nthread": 1}, model_file=bytearray(data))
    return lambda X: np.asarray(booster.inplace_predict(X, validate_features=False))


def from_dump(data: bytes, names: Sequence[str]) -> Scorer:
    """What the LTR plugin makes of it, and Vespa: `split_condition > x` goes to the first child."""
    place = {name: number for number, name in enumerate(names)}

    def look(node: dict[str, Any]) -> Any:
        if "leaf" in node:
            return float(node["leaf"])
        below = np.nextafter(np.float32(node["split_condition"]), np.float32(-np.inf))
        missing_left = node["missing"] == node["yes"]
        return (place[node["split"]], float(below), missing_left, *node["children"])

    return from_nested(len(names), json.loads(data), look).predict


# -- LightGBM -------------------------------------------------------------------------------------


def to_lightgbm(forest: Forest, names: Sequence[str]) -> bytes:
    """As LightGBM writes it: inner nodes and leaves are numbered apart, a leaf n is ~n."""
    largest = np.finfo(np.float64).max
    threshold = np.clip(forest.threshold, -largest, largest)
    by_category = splits_categories(forest)
    decision = (forest.missing.astype(int) << 2) + 2 * forest.default_left + by_category
    trees = []
    for number, begin in enumerate(forest.tree_offsets[:-1]):
        here = slice(begin, forest.tree_offsets[number + 1])
        leaf = forest.left[here] == 0
        place = np.where(leaf, ~(np.cumsum(leaf) - 1), np.cumsum(~leaf) - 1)
        left = (forest.left[here] - begin)[~leaf]
        sets = [as_words(codes) for codes in sets_of(forest, here).values()]
        own = threshold[here].copy()
        own[by_category[here]] = np.arange(len(sets))  # the number of a set, for a threshold
        lines = {
            "Tree": number,
            "num_leaves": int(leaf.sum()),
            "num_cat": len(sets),
            "split_feature": forest.feature[here][~leaf],
            "split_gain": forest.gain[here][~leaf],
            "threshold": own[~leaf],
            "decision_type": decision[here][~leaf],
            "left_child": place[left],
            "right_child": place[left + 1],
            "leaf_value": forest.value[here][leaf],
            "is_linear": 0,
            "shrinkage": 1,
        }
        if sets:
            lines["cat_boundaries"] = np.cumsum([0, *map(len, sets)])
            lines["cat_threshold"] = np.concatenate(sets)
        text = "".join(
            f"{name}={value if isinstance(value, int) else ' '.join(map(repr, value.tolist()))}\n"
            for name, value in lines.items()
        )
        trees.append(text + "\n\n")
    head = {
        "version": "v4",
        "num_class": 1,
        "num_tree_per_iteration": 1,
        "label_index": 0,
        "max_feature_idx": forest.n_features - 1,
        "objective": "custom",
        "feature_names": " ".join(names),
        "feature_infos": " ".join(["[-1e+308:1e+308]"] * forest.n_features),
        "tree_sizes": " ".join(str(len(tree)) for tree in trees),
    }
    header = "".join(f"{name}={value}\n" for name, value in head.items())
    return f"tree\n{header}\n{''.join(trees)}end of trees\n".encode()


def as_words(codes: AnyArray) -> AnyArray:
    """A set as words of 32 bits, lowest first."""
    bits = np.zeros((int(codes.max()) // 32 + 1, 32), np.int64)
    bits.flat[codes] = 1
    return np.asarray((bits << np.arange(32)).sum(axis=1))


def from_lightgbm(data: bytes, names: Sequence[str]) -> Scorer:
    """What LightGBM makes of it, to which a number of up to 1e-35 is 0."""
    import lightgbm

    booster = lightgbm.Booster(model_str=data.decode())
    return lambda X: np.asarray(booster.predict(X, num_threads=1))


# -- RankLib --------------------------------------------------------------------------------------


def to_ranklib(forest: Forest, names: Sequence[str]) -> bytes:
    """As RankLib writes a LambdaMART ensemble: features are numbered from 1."""
    threshold, value = rounded(forest.threshold), rounded(forest.value)

    def split(node: int, left: list[str], right: list[str]) -> list[str]:
        return [
            f"<feature> {forest.feature[node] + 1} </feature>",
            f"<threshold> {threshold[node]} </threshold>",
            *('<split pos="left">', *left, "</split>"),
            *('<split pos="right">', *right, "</split>"),
        ]

    def leaf(node: int) -> list[str]:
        return [f"<output> {value[node]} </output>"]

    lines = ["## LambdaMART", f"## No. of trees = {len(forest)}", "", "<ensemble>"]
    for number, tree in enumerate(nested(forest, split, leaf), start=1):
        lines += [f'<tree id="{number}" weight="1.0">', "<split>", *tree, "</split>", "</tree>"]
    return "\n".join([*lines, "</ensemble>", ""]).encode()


def from_ranklib(data: bytes, names: Sequence[str]) -> Scorer:
    """What RankLib makes of it: lines that begin with # left out, `x <= threshold` goes left."""
    text = "".join(line for line in data.decode().splitlines() if not line.startswith("#"))

    def look(node: Any) -> Any:
        first = node[0]
        if first.tag == "output":
            return float(np.float32(first.text))
        return (int(first.text) - 1, float(np.float32(node[1].text)), False, node[2], node[3])

    roots = [tree[0] for tree in ElementTree.fromstring(text)]  # our own text: no bomb
    return from_nested(len(names), roots, look, missing=NOTHING).predict
