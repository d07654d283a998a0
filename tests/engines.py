"""What search engines make of exported files, from their public sources, and rows that are hard.

XGBoost and LightGBM read theirs themselves. Solr's MultipleAdditiveTreesModel, LinearModel and
NeuralNetworkModel, RankLib's Ensemble and Split, and NaiveAdditiveDecisionTree of the learning-to-
rank plugin of Elasticsearch and OpenSearch are written down here, in float32 where they have it.
"""

import json
from xml.etree import ElementTree

import numpy as np

from tierrank.ranking.features import Standardize


def make_rows(rows=300, missing=0.0):
    """Columns of several sizes, one with ties and one with zeros, labels, and lists of 15."""
    rng = np.random.default_rng(rows)
    X = rng.normal(size=(rows, 5)) * [1.0, 10.0, 1e-3, 2.0, 1.0] + [0.0, 1e3, 0.0, 5.0, 0.0]
    X[:, 3] = np.round(X[:, 3])
    X[rng.random(rows) < 0.5, 4] = 0.0
    y = np.digitize(X[:, 0] + X[:, 0] * X[:, 4] + rng.normal(size=rows), [0.0, 1.5])
    X[rng.random(X.shape) < missing] = np.nan
    return X, y, np.arange(rows) // 15


def hard_rows(ranker, X):
    """Rows made harder for trees: most on a threshold or next to one, a tenth missing, some 0."""
    rng = np.random.default_rng(1)
    forest, steps = ranker.forest_, ranker.steps_.steps
    X, rows, dtype = X.copy(), len(X), X.dtype
    for feature in range(X.shape[1]):
        own = forest.threshold[(forest.left > 0) & (forest.feature == feature)]
        own = own[np.abs(own) < 1e30]
        for step in reversed(steps):
            if isinstance(step, Standardize):
                own = own * step.scale_[feature] + step.mean_[feature]
        if len(own):
            at = rng.choice(own, rows).astype(dtype)
            for _ in range(2):
                side = np.where(rng.random(rows) < 0.5, np.inf, -np.inf).astype(dtype)
                at = np.where(rng.random(rows) < 0.5, np.nextafter(at, side), at)
            X[:, feature] = np.where(rng.random(rows) < 0.6, at, X[:, feature])
    X[rng.random(X.shape) < 0.1] = np.nan
    X[rng.random(X.shape) < 0.05] = 0.0
    X[np.abs(X) < 1e-30] = 0.0  # LightGBM and Solr take them for 0
    return X


# -- what the engines compute ---------------------------------------------------------------------


def walked(node, X, look):
    """[rows] float32 leaves of one nested tree; look(node, X) gives a leaf or (left?, children)."""
    seen = look(node, X)
    if isinstance(seen, np.float32):
        return np.full(len(X), seen)
    left, *children = seen
    out = np.empty(len(X), np.float32)
    for rows, child in zip((left, ~left), children, strict=True):
        if rows.any():
            out[rows] = walked(child, X[rows], look)
    return out


def summed(trees, X, look):
    """[rows] the sum in float32, one tree after the other."""
    total = np.zeros(len(X), np.float32)
    for tree in trees:
        total += walked(tree, X, look)
    return total


def by_solr(path, X):
    model = json.loads(path.read_text())
    names = [feature["name"] for feature in model["features"]]
    X = X.astype(np.float32)
    for column, feature in enumerate(model["features"]):
        if "norm" in feature:
            assert feature["norm"]["class"] == "org.apache.solr.ltr.norm.StandardNormalizer"
            params = feature["norm"]["params"]
            with np.errstate(over="ignore"):
                X[:, column] = (X[:, column] - np.float32(params["avg"])) / np.float32(
                    params["std"]
                )
    kind, params = model["class"].rpartition(".")[2], model["params"]
    if kind == "LinearModel":
        total = np.zeros(len(X), np.float32)
        for column, name in enumerate(names):
            total += X[:, column] * np.float32(params["weights"][name])
        return total
    if kind == "NeuralNetworkModel":
        for layer in params["layers"]:
            out = np.tile(np.float32(layer["bias"]), (len(X), 1))
            for column in range(X.shape[1]):
                out += np.float32(layer["matrix"])[:, column] * X[:, [column]]
            X = {"relu": lambda x: np.where(x < 0, np.float32(0), x), "identity": np.asarray,
                 "tanh": np.tanh}[layer["activation"]](out)  # fmt: skip
        assert X.shape[1] == 1
        return X[:, 0]
    assert kind == "MultipleAdditiveTreesModel"
    assert params["isNullSameAsZero"] is False

    def look(node, X):
        assert all(isinstance(node[key], str) for key in ("value", "threshold") if key in node)
        if "feature" not in node:
            return np.float32(node["value"])
        x = X[:, names.index(node["feature"])]
        threshold = np.float32(np.float32(node["threshold"]) + np.float32(1e-6))
        left = np.where(np.isnan(x), node["missing"] == "left", x <= threshold)
        return left, node["left"], node["right"]

    assert all(tree["weight"] == "1.0" for tree in params["trees"])
    return summed([tree["root"] for tree in params["trees"]], X, look)


def by_ranklib(path, X):
    lines = path.read_text().splitlines()
    assert lines[0] == "## LambdaMART"
    # RankLib joins trimmed lines: there is no text between tags, which it does not expect
    root = ElementTree.fromstring("".join(x.strip() for x in lines if not x.startswith("#")))
    X = np.nan_to_num(X.astype(np.float32))

    def look(node, X):
        if node[0].tag == "output":
            return np.float32(node[0].text)
        assert [each.tag for each in node] == ["feature", "threshold", "split", "split"]
        assert [each.get("pos") for each in node[2:]] == ["left", "right"]
        x = X[:, int(node[0].text) - 1]
        return x <= np.float32(node[1].text), node[2], node[3]

    assert root.tag == "ensemble"
    assert [tree.get("id") for tree in root] == [str(n + 1) for n in range(len(root))]
    assert all(float(tree.get("weight")) == 1 for tree in root)
    return summed([tree[0] for tree in root], X, look)


def by_plugin(path, X):
    X = X.astype(np.float32)

    def look(node, X):
        if "leaf" in node:
            return np.float32(node["leaf"])
        assert [child["nodeid"] for child in node["children"]] == [node["yes"], node["no"]]
        assert isinstance(node["depth"], int)
        x = X[:, int(node["split"].removeprefix("f"))]
        missing = node["missing"] == node["yes"]
        left = np.where(np.isnan(x), missing, np.float32(node["split_condition"]) > x)
        return left, *node["children"]

    return summed(json.loads(path.read_text()), X, look)


def by_xgboost(path, X):
    import xgboost

    return xgboost.Booster(model_file=path).predict(xgboost.DMatrix(X))


def by_lightgbm(path, X):
    import lightgbm

    return lightgbm.Booster(model_file=path).predict(X)


READERS = {
    "xgboost-json": by_xgboost,
    "xgboost-ubj": by_xgboost,
    "xgboost-dump": by_plugin,
    "lightgbm": by_lightgbm,
    "ranklib": by_ranklib,
    "solr": by_solr,
}


def precision(to):
    """The type of numbers that a format compares, and the largest relative difference."""
    return (np.float64, 1e-13) if to == "lightgbm" else (np.float32, 2e-6)
