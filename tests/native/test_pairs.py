"""Sums over pairs: what is refused, and threads. The numbers are tested where they are used."""

import numpy as np
import pytest

from tierrank import _native


def list_pairs(**other):
    """Arguments for three items, each with those after it."""
    arguments = {
        "kind": "rao_kupper_wins",
        "scores": np.zeros(3),
        "start": np.array([1, 2, 3]),
        "stop": np.array([3, 3, 3]),
        "parameter": 0.0,
        "threads": 1,
        "loss": np.zeros(3),
        "gradient": np.zeros(3),
        "by_parameter": np.zeros(3),
    }
    return {**arguments, **other}.values()


def block_pairs(**other):
    """Arguments for two lists that name three of four labels."""
    arguments = {
        "kind": "hinges",
        "named": np.zeros(3),
        "borders": np.array([0, 1, 3]),
        "scores": np.zeros((2, 4)),
        "counts": np.ones(4),
        "parameter": 1.0,
        "threads": 1,
        "loss": np.zeros(2),
        "slope": np.zeros(3),
        "label_slope": np.zeros((2, 4)),
    }
    return {**arguments, **other}.values()


@pytest.mark.parametrize(
    "other",
    [
        {"kind": "nothing"},
        {"kind": "hinges"},
        {"scores": np.zeros(4)},
        {"scores": np.zeros(3, np.int64)},
        {"start": np.array([0, 2, 3])},
        {"start": np.array([2, 1, 3])},
        {"stop": np.array([3, 3, 4])},
        {"stop": np.array([3, 2, 3])},
        {"stop": np.array([-1, 3, 3])},
        {"loss": np.zeros(2)},
        {"loss": np.zeros(3, np.float32)},
        {"gradient": np.zeros((3, 1))},
        {"by_parameter": np.zeros(6)[::2]},
    ],
)
def test_pairs_of_lists_that_are_not_there_are_refused(other):
    _native.pair_sums(*list_pairs())
    with pytest.raises((ValueError, TypeError)):
        _native.pair_sums(*list_pairs(**other))


@pytest.mark.parametrize(
    "other",
    [
        {"kind": "davidson_wins"},
        {"named": np.zeros(2)},
        {"borders": np.array([0, 3])},
        {"borders": np.array([0, 4, 3])},
        {"borders": np.array([1, 1, 3])},
        {"scores": np.zeros((2, 5))},
        {"scores": np.zeros((4, 2)).T},
        {"counts": np.ones(3)},
        {"loss": np.zeros(1)},
        {"slope": np.zeros(2)},
        {"label_slope": np.zeros((2, 3))},
        {"label_slope": np.zeros((2, 4), np.float32)},
    ],
)
def test_pairs_with_labels_that_are_not_there_are_refused(other):
    _native.block_pair_sums(*block_pairs())
    with pytest.raises((ValueError, TypeError)):
        _native.block_pair_sums(*block_pairs(**other))


def test_nothing_has_no_pairs():
    nothing, nowhere = np.zeros(0), np.zeros(0, np.int64)
    _native.pair_sums("davidson_ties", nothing, nowhere, nowhere, 0.0, 2, nothing, nothing, nothing)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_number_of_threads_changes_no_bit(dtype):
    items = 1200
    scores = np.random.default_rng(1).normal(size=items).astype(dtype)
    start, stop = np.arange(1, items + 1), np.full(items, items)
    found = []
    for threads in (1, 2, 5):
        loss, gradient, by_parameter = np.empty((3, items))
        _native.pair_sums(
            "davidson_wins", scores, start, stop, 0.3, threads, loss, gradient, by_parameter
        )
        found.append(np.stack([loss, gradient, by_parameter]).tobytes())
    assert found[0] == found[1] == found[2]
