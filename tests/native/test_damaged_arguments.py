"""Every function of the compiled core, with each of its arrays damaged in turn: it answers with an
error, or computes something, but never steps outside of memory. `make test-native` runs this with a
build that stops at such a step.
"""

import numpy as np
import pytest

from tierrank import _native


def i64(*values):
    return np.array(values, dtype=np.int64)


def i32(*values):
    return np.array(values, dtype=np.int32)


def trees():
    return {
        "tree_offsets": i64(0, 3),
        "feature": i32(1, 0, 0),
        "threshold": np.array([1.0, 0.0, 0.0]),
        "left": i32(1, 0, 0),
        "missing": np.zeros(3, dtype=np.uint8),
        "default_left": np.zeros(3, dtype=bool),
        "value": np.array([0.0, 5.0, 7.0]),
        "out": np.zeros(2),
    }


LAYOUT = {  # a list of seven rows with tiers of one and five items, and two rows without a tier
    "row_offsets": i64(0, 7, 9),
    "order": i64(2, 0, 1, 3, 4, 6),
    "tier_offsets": i64(0, 1, 6),
    "list_offsets": i64(0, 2, 2),
}
STRICT = {"items": i64(0, 2, 1, 1, 0), "offsets": i64(0, 3, 5), "counts": np.ones(2), "n_items": 3}
GENERATOR = np.random.default_rng(0).bit_generator  # its capsule does not keep it alive
TIED = {
    "items": i64(0, 2, 1, 3, 1, 0),
    "tier_offsets": i64(0, 2, 4, 5, 6),
    "list_offsets": i64(0, 2, 4),
    "counts": np.ones(2),
    "n_items": 4,
}


def made(kind, fields):
    return lambda **damaged: kind(*(fields | damaged).values())


def method(kind, fields, name):
    held = kind(*fields.values())
    return lambda **given: getattr(held, name)(*given.values())


def called(function):
    return lambda **given: function(*given.values())


def cases():
    """Name, function and arguments that are as they should be."""
    yield "Layout", made(_native.Layout, LAYOUT), LAYOUT
    layout = _native.Layout(*LAYOUT.values())
    for kind in (np.float32, np.float64):
        scores = np.linspace(-1, 1, 9).astype(kind)
        yield f"log_prob {kind.__name__}", called(_native.log_prob), {
            "layout": layout, "scores": scores, "bottom": np.zeros(2), "weights": np.ones(2),
            "threads": 2, "log_prob": np.empty(2, kind), "gradient": np.empty(9, kind),
            "bottom_gradient": np.empty(2), "diagonal": np.empty(9),
        }  # fmt: skip
        yield f"staged_log_prob {kind.__name__}", called(_native.staged_log_prob), {
            "choice": "efron", "layout": layout, "scores": scores, "bottom": np.zeros(2),
            "threads": 2, "value": np.empty(2), "gradient": np.empty(9, kind),
            "bottom_gradient": np.empty(2),
        }  # fmt: skip
        yield f"cross_entropy {kind.__name__}", called(_native.cross_entropy), {
            "layout": layout, "scores": scores, "grades": np.array([2.0, 1.0, 0.0, 1.0]),
            "grade_offsets": i64(0, 2, 4), "above_0": True, "threads": 2, "value": np.empty(2),
            "gradient": np.empty(9, kind),
        }  # fmt: skip
        yield f"hessian_product {kind.__name__}", called(_native.hessian_product), {
            "layout": layout, "scores": scores, "bottom": np.zeros(2), "weights": np.ones(2),
            "threads": 2, "vector": np.ones(9), "bottom_vector": np.ones(2), "out": np.empty(9),
            "bottom_out": np.empty(2),
        }  # fmt: skip
        yield f"scale_lists {kind.__name__}", called(_native.scale_lists), {
            "row_offsets": i64(0, 7, 9), "rows": scores, "by_list": np.ones(2, kind),
            "out": np.empty(9, kind),
        }  # fmt: skip
        for pairs in ("rao_kupper_wins", "davidson_ties", "davidson_hessians"):
            yield f"pair_sums {pairs} {kind.__name__}", called(_native.pair_sums), {
                "kind": pairs, "scores": scores[:5].copy(), "start": i64(2, 2, 5, 5, 5),
                "stop": i64(5, 5, 5, 5, 5), "parameter": 0.5, "threads": 2, "loss": np.empty(5),
                "gradient": np.empty(5), "by_parameter": np.empty(5),
            }  # fmt: skip
        yield f"block_pair_sums {kind.__name__}", called(_native.block_pair_sums), {
            "kind": "hinges", "named": scores[:3].copy(), "borders": i64(0, 1, 3),
            "scores": np.zeros((2, 5), kind), "counts": np.ones(5, kind), "parameter": 1.0,
            "threads": 2, "loss": np.empty(2), "slope": np.empty(3),
            "label_slope": np.empty((2, 5), kind),
        }  # fmt: skip
    metric = {
        "offsets": i64(0, 5, 9), "scores": np.linspace(-1, 1, 9), "gains": np.linspace(1, 0, 9),
        "threads": 2, "value": np.empty(2), "gradient": np.empty(9),
    }  # fmt: skip
    yield "approx_ndcg", called(_native.approx_ndcg), {"temperature": 1.0, **metric}
    yield "expected_dcg", called(_native.expected_dcg), {"k": 3, "fineness": 1.0, **metric}
    for weighting in ("lambdarank", "ndcg-loss1", "ndcg-loss2++"):
        yield f"lambda_loss {weighting}", called(_native.lambda_loss), {
            "weighting": weighting, "metric": "ndcg", "k": 4, "sigma": 1.0, "mu": 10.0,
            "offsets": metric["offsets"], "tiers": i64(0, 0, 1, 2, 2, 3, 4, 4, 4), **metric,
            "hessian": np.empty(9),
        }  # fmt: skip
    yield "scan_letor", called(_native.scan_letor), {
        "text": b"1 qid:1 1:2 3:4 # c\n0 qid:1 2:1\n", "missing": 0.0, "labels": np.empty(2),
        "qids": i64(0, 0), "spans": np.empty((2, 3), np.int64),
        "comments": np.empty((2, 2), np.int64),
        "row_ends": i64(0, 0, 0), "indices": i32(0, 0, 0), "values": np.empty(3),
    }  # fmt: skip
    yield "spread", called(_native.spread), {
        "row_ends": i64(0, 2, 3), "indices": i32(0, 2, 1), "base": 0, "values": np.ones(3),
        "matrix": np.zeros((2, 3)),
    }  # fmt: skip
    yield "scan_xc", called(_native.scan_xc), {
        "text": b"1,2 0:1 3:1\n0:2\n", "start": 0, "with_labels": True, "base": 0, "n_features": 4,
        "n_labels": 3, "label_ends": i64(0, 0, 0), "labels": i32(0, 0), "row_ends": i64(0, 0, 0),
        "indices": i32(0, 0, 0), "values": np.empty(3, np.float32),
    }  # fmt: skip
    yield "kahn", called(_native.kahn), {
        "node_offsets": i64(0, 3), "edge_offsets": i64(0, 2, 3, 3), "below": i64(1, 2, 2),
        "waiting": i64(0, 1, 2), "order": i64(0, 0, 0), "layer": i64(0, 0, 0),
    }  # fmt: skip
    yield "nest_lists", called(_native.nest_lists), {
        "by_size": i64(1, 0), "list_starts": i64(0, 2, 3), "items": i32(0, 1, 2),
        "joined": i32(0, 0, 0), "link": i32(0, 0), "edge_list": i32(0, 0, 0),
        "edge_item": i32(0, 0, 0),
    }  # fmt: skip
    yield "forest_scores", called(_native.forest_scores), {
        "X": np.array([[0.0, 9.0], [2.0, 0.5]]), **trees(), "threads": 2,
    }  # fmt: skip
    yield "forest_scores of categories", called(_native.forest_scores), {
        "X": np.array([[0.0, 9.0], [2.0, 0.5]]), **trees(), "threads": 2,
        "category_counts": i32(2, 0, 0), "categories": i32(0, 2),
    }  # fmt: skip
    for index in (np.int32, np.int64):
        yield f"sparse_forest_scores {index.__name__}", called(_native.sparse_forest_scores), {
            "data": np.ones(3), "indices": np.array([0, 1, 1], index),
            "indptr": np.array([0, 2, 3], index), "n_features": 2, **trees(), "threads": 2,
        }  # fmt: skip
    yield "draw_rows", called(_native.draw_rows), {
        "bit_generator": GENERATOR.capsule, "offsets": i64(0, 1),
        "topics": i64([0, 1]), "running_weights": np.array([[0.5, 1.0]]),
        "topic_offsets": i64(0, 2, 3), "members": i32(0, 1, 2),
        "running_worths": np.array([0.0, 1.0, 2.0, 3.0]),
        "last_place": i64(-1, -1, -1), "items": i32(0), "times": np.zeros(1, np.float32),
    }  # fmt: skip
    yield "inner_products", called(_native.inner_products), {
        "starts": i64(0, 1, 2), "columns": i64(1, 0), "Z": np.ones((2, 9)), "out": np.empty(2),
        "threads": 2,
    }  # fmt: skip
    for draws in ("breslow", "efron", "one draw"):
        yield f"stage_hessians {draws}", called(_native.stage_hessians), {
            "kind": draws, "rows": np.linspace(0, 1, 5), "tier_offsets": i64(0, 2, 3, 5),
            "list_offsets": i64(0, 2, 3), "threads": 2, "out": np.empty(5),
        }  # fmt: skip

    yield "StrictLists", made(_native.StrictLists, STRICT), STRICT
    worth, entries, square = np.array([1.0, 2.0, 3.0]), np.full(5, 0.1), np.zeros((3, 3))
    for name, given in {
        "value_and_gradient": {"worth": worth, "inverse": entries, "gradient": np.zeros(3)},
        "product": {"worth": worth, "inverse": entries, "vector": worth, "out": np.zeros(3)},
        "diagonal": {"worth": worth, "inverse": entries, "out": np.zeros(3)},
        "matrix": {"worth": worth, "inverse": entries, "out": square},
        "entry_gradients": {"worth": worth, "inverse": entries, "slopes": np.zeros(5)},
    }.items():
        yield f"StrictLists.{name}", method(_native.StrictLists, STRICT, name), given

    yield "TiedLists", made(_native.TiedLists, TIED), TIED
    worth, slopes, square = np.full(4, 0.5), np.full(6, 0.1), np.zeros((4, 4))
    known = {"worth": worth, "below": np.ones(4), "slopes": slopes}
    matrices = np.ones(_native.TiedLists(*TIED.values()).matrix_size)
    for name, given in {
        "terms": {"worth": worth, "log_worth": np.log(worth), "threads": 2, "below": np.empty(4),
                  "value": np.empty(4), "slopes": np.empty(6), "matrices": matrices},
        "entry_gradients": {**known, "out": np.zeros(6)},
        "product": {**known, "matrices": matrices, "vector": worth, "out": np.zeros(4)},
        "diagonal": {**known, "matrices": matrices, "out": np.zeros(4)},
        "matrix": {**known, "matrices": matrices, "out": square},
    }.items():  # fmt: skip
        yield f"TiedLists.{name}", method(_native.TiedLists, TIED, name), given


def damages(array):
    """The array with other lengths, layouts, types and numbers."""
    yield array[:0]
    yield array[:-1]
    yield np.concatenate([array, array])
    yield array.reshape(1, *array.shape)
    yield np.repeat(array, 2, axis=0)[::2]
    yield array[::-1]
    yield array.astype(np.int16)
    yield array.astype(np.complex128)
    yield array.astype(object)
    if array.ndim == 2:
        yield array[:, :0].copy()
        yield array[:, :-1].copy()
        yield np.asfortranarray(array)
        yield array.ravel()
    numbers = [0, 1, -1, 2, 7]
    if array.dtype.kind == "f":
        numbers += [np.nan, np.inf, -np.inf, 1e300, -1e300, 5e-324]
    elif array.dtype.kind == "i":
        numbers += [np.iinfo(array.dtype).max, np.iinfo(array.dtype).min, 2**31 - 1]
    with np.errstate(over="ignore"):
        for number in numbers:
            if array.dtype.kind in "fi" or number >= 0:
                yield np.full_like(array, number)
                for place in {0, array.size // 2, array.size - 1}:
                    changed = array.copy()
                    changed.flat[place] = number
                    yield changed
    yield array[::-1].copy()


CASES = list(cases())


def copied(fields):
    return {k: v.copy() if isinstance(v, np.ndarray) else v for k, v in fields.items()}


@pytest.mark.parametrize(("function", "fields"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::numpy.exceptions.ComplexWarning")
def test_damaged_arrays_never_lead_outside_of_memory(function, fields):
    function(**copied(fields))
    refused = 0
    for name, array in fields.items():
        if not isinstance(array, np.ndarray):
            continue
        for damaged in damages(array):
            try:
                function(**(copied(fields) | {name: damaged}))
            except (ValueError, TypeError, RuntimeError, MemoryError):
                refused += 1
    assert refused > 0


def test_every_function_of_the_core_is_damaged_here():
    tried = {name.split()[0].split(".")[0] for name, *_ in CASES}
    harmless = {"instructions", "all_instructions", "tally_xc"}  # take no arrays
    bound = {
        name
        for name, value in vars(_native).items()
        if callable(value) and not name.startswith("_") and not name.endswith(("Fault", "Pass"))
    }
    assert bound == tried | harmless
