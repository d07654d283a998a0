"""Saved models: what a stranger changed is refused, or predicts."""

from __future__ import annotations

import copy
import json
import warnings
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tierrank as tr
from tierrank import storage
from tierrank.storage import StorageError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(24, 3))
Y = RNG.integers(0, 3, size=24)
QID = np.repeat(np.arange(4), 6)
LABELS = scipy.sparse.random(24, 5, density=0.4, random_state=1, format="csr")
LISTS = [RNG.permutation(5).tolist() for _ in range(12)]
TIED = [[(0, 1), 2, (3, 4)], [2, (0, 3, 4), 1], [1, 0], [4, (1, 2)]]
GAMES = [
    (a, b, RNG.choice(["first", "second", "tie"])) for a in range(4) for b in range(4) if a != b
]


def ranked(ranker):
    return ranker.fit(X, Y, qid=QID)


MAKERS = {
    "linear": lambda: ranked(tr.LinearRanker(l2=0.1, features=["impute", "standardize"])),
    "neural": lambda: ranked(
        tr.NeuralRanker(hidden=(4,), max_epochs=2, features=["query-scale", "second-order"])
    ),
    "boosted": lambda: ranked(
        tr.BoostedRanker(trees=3, leaves=4, min_rows_per_leaf=1, min_hessian_per_leaf=0)
    ),
    "extreme": lambda: tr.ExtremeRanker(hidden=4, max_epochs=1).fit(
        scipy.sparse.csr_matrix(X), (LABELS > 0).astype(float)
    ),
    "aggregator": lambda: tr.RankAggregator(prior="gaussian:1").fit(LISTS),
    "davidson-luce": lambda: tr.DavidsonLuce(prior="pseudo-item").fit(TIED),
    "mixture": lambda: tr.RankMixture(2, starts=1, random_state=0).fit(LISTS),
    "paired": lambda: tr.PairedTies("davidson", prior="gaussian:1", home=True).fit(GAMES),
    "through time": lambda: tr.WorthsThroughTime(step="1m", variance=0.1, home=True).fit(
        GAMES, times=[f"2026-{1 + number:02d}-01" for number in range(len(GAMES))]
    ),
    "featured": lambda: tr.FeatureAggregator(l2=0.1).fit(LISTS, X[:5], items=range(5)),
    "featured network": lambda: tr.FeatureAggregator("neural", hidden=(3,), max_iter=2).fit(
        LISTS, X[:5], items=range(5)
    ),
}


def use(model):
    """What people do with a model."""
    if isinstance(model, tr.ExtremeRanker):
        return model.predict(scipy.sparse.csr_matrix(X), k=2)
    if isinstance(model, tr.RankMixture):
        str(model.summary())
        return model.group_proba(LISTS)
    if isinstance(
        model,
        (
            tr.RankAggregator,
            tr.PairedTies,
            tr.FeatureAggregator,
            tr.DavidsonLuce,
            tr.WorthsThroughTime,
        ),
    ):
        model.summary()
        str(model)
        if isinstance(model, tr.FeatureAggregator):
            model.predict(X[:5])
        if isinstance(model, tr.WorthsThroughTime):
            model.through_time()
        return model.worths_
    return model.predict(X, qid=QID)


HOSTILE = st.one_of(
    st.sampled_from([None, True, -1, 0, 3, 2**31, 2**63, 10**400, 0.5, -1e308, "", "x", "\ud800"]),
    st.sampled_from([[], {}, [1], [None], ["x"], [[]], {"a": 1}, [1e308] * 3, "x" * 10_000]),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5)
        | st.floats(allow_nan=False, allow_infinity=False),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
        max_leaves=5,
    ),
)  # fmt: skip
NUMBERS = [np.nan, np.inf, -1, 1e300, 2**31 - 1, 255, 1e18]


def places(value, at=()):
    """Where there is something to change, in what JSON holds."""
    inside = dict(enumerate(value)) if isinstance(value, list) else value
    for key, inner in inside.items() if isinstance(inside, dict) else ():
        yield (*at, key)
        yield from places(inner, (*at, key))


@st.composite
def changed_info(draw, info):
    info = copy.deepcopy(info)
    *to, last = draw(st.sampled_from(list(places(info))))
    holder = info
    for key in to:
        holder = holder[key]
    if draw(st.integers(0, 5)):
        holder[last] = draw(HOSTILE)
    else:
        del holder[last]
    return info


@st.composite
def changed_arrays(draw, arrays):
    key = draw(st.sampled_from(sorted(arrays)))
    array = arrays[key].copy()
    rest = {name: each for name, each in arrays.items() if name != key}
    match draw(st.sampled_from(["value", "value", "dtype", "shape", "short", "none", "twice"])):
        case "value" if array.size:
            at = draw(st.integers(0, array.size - 1))
            with np.errstate(all="ignore"):
                array.flat[at] = np.array(draw(st.sampled_from(NUMBERS))).astype(array.dtype)
        case "dtype":
            array = array.astype(draw(st.sampled_from(["f4", "f8", "i4", "i8", "u1", "?"])))
        case "shape":
            array = array.reshape(draw(st.sampled_from([(-1,), (1, -1), (-1, 1, 1)])))
        case "short":
            array = array[: draw(st.integers(0, 2))] if array.ndim else array
        case "none":
            return rest
        case "twice":
            rest[f"{key}2"] = array
    return {**rest, key: array}


@pytest.fixture(scope="module")
def states():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        models = {kind: make() for kind, make in MAKERS.items()}
    return {kind: (type(model).__name__, *model.to_state()) for kind, model in models.items()}


def load_and_use(folder: Path, name, info, arrays):
    """Write what a stranger forged, with checksums that fit, and do with it what people do."""
    storage.write(folder, "model", {"estimator": name, **info}, arrays)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            model = tr.load(folder)
        except StorageError:
            return
        with suppress(ValueError):  # it says what is wrong, in words
            use(model)


@pytest.mark.parametrize("kind", MAKERS)
def test_a_saved_model_does_what_it_did(kind, states, tmp_path):
    name, info, arrays = states[kind]
    storage.write(tmp_path, "model", {"estimator": name, **info}, arrays)
    loaded = tr.load(tmp_path)
    assert type(loaded).__name__ == name
    np.testing.assert_array_equal(use(loaded), use(type(loaded).from_state(info, dict(arrays))))


@pytest.mark.parametrize("kind", MAKERS)
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_a_forged_model_is_refused_or_predicts(kind, states, tmp_path, data):
    name, info, arrays = states[kind]
    info = json.loads(json.dumps(info))
    forged = data.draw(st.sampled_from(["info", "arrays", "both"]))
    if forged != "arrays":
        info = data.draw(changed_info(info))
    if forged != "info":
        arrays = data.draw(changed_arrays(arrays))
    load_and_use(tmp_path / "it", name, info, dict(arrays))


@pytest.mark.parametrize(
    ("kind", "at", "value"),
    [
        ("linear", ("params", "query_column"), 99),
        ("boosted", ("params", "query_column"), [0.5]),
        ("extreme", ("params", "hidden_dropout"), "x"),
        ("extreme", ("params", "input_dropout"), None),
        ("aggregator", ("fit", "log_likelihood_"), []),
        ("aggregator", ("fit", "aic_"), 10**400),
        ("featured", ("fit", "objective_values_"), [{}]),
        ("featured network", ("fit", "aic_"), "x"),
    ],
)
def test_what_once_was_loaded_and_then_failed(states, tmp_path, kind, at, value):
    name, info, arrays = states[kind]
    info = copy.deepcopy(info)
    info[at[0]][at[1]] = value
    load_and_use(tmp_path, name, info, dict(arrays))


@pytest.mark.parametrize("name", [[], {}, ["LinearRanker"], None, 3, "Linear", "\x1b[2J" * 100])
def test_a_kind_of_model_that_there_is_not_is_refused_in_one_line(states, tmp_path, name):
    storage.write(tmp_path, "model", {"estimator": name, **states["linear"][1]}, {})
    with pytest.raises(StorageError, match="which this tierrank lacks") as caught:
        tr.load(tmp_path)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("content", [[], None, "x", 3, {}])
def test_content_that_is_none_of_a_model_is_refused(tmp_path, content):
    storage.write(tmp_path, "model", content, {})
    with pytest.raises(StorageError):
        tr.load(tmp_path)


@pytest.mark.parametrize("feature", [-1, 99, 2**31 - 1])
def test_a_forest_that_looks_at_no_feature_is_refused_even_at_a_leaf(states, tmp_path, feature):
    name, info, arrays = states["boosted"]
    key = next(key for key in arrays if key.endswith(".feature"))
    left = arrays[key.removesuffix("feature") + "left"]
    forged = arrays[key].copy()
    forged[np.flatnonzero(left == 0)[0]] = feature
    storage.write(tmp_path, "model", {"estimator": name, **info}, {**arrays, key: forged})
    with pytest.raises(StorageError, match="looks at a feature beyond"):
        tr.load(tmp_path)


@pytest.mark.parametrize("names", [[["a"]] * 3, [{}] * 3, [None] * 3, [1, 2, 3], "abc", None])
@pytest.mark.parametrize("kind", ["linear", "neural", "boosted"])
def test_names_of_features_that_are_no_strings_are_refused(states, tmp_path, kind, names):
    name, info, arrays = states[kind]
    info = {**info, "feature_names_in": names}
    storage.write(tmp_path, "model", {"estimator": name, **info}, dict(arrays))
    with pytest.raises(StorageError, match="names of features are no list of strings"):
        tr.load(tmp_path)
