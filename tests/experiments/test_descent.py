"""Stochastic gradient descent for several learning rates at once."""

from functools import partial

import numpy as np
import pytest
from descent import descend

from tierrank import Tiers, losses

LOSS = partial(losses.list_net, reduction="none")


@pytest.fixture
def rows():
    random = np.random.default_rng(0)
    qid = np.repeat(np.arange(9), 4)
    return random.normal(size=(36, 3)), random.integers(0, 3, 36), qid


def listnet(X, y, qid, coef):
    """Mean loss a list and its gradient, written out."""
    total, slope = 0.0, np.zeros(X.shape[1])
    for query in np.unique(qid):
        x, grades = X[qid == query], y[qid == query]
        scores = x @ coef
        p = np.exp(grades) / np.exp(grades).sum()
        q = np.exp(scores) / np.exp(scores).sum()
        total -= (p * np.log(q)).sum()
        slope += x.T @ (q - p)
    return total / len(np.unique(qid)), slope / len(np.unique(qid))


def test_with_one_batch_it_is_gradient_descent(rows):
    X, y, qid = rows
    (stop,) = descend(
        X, Tiers.from_labels(y, qid=qid), LOSS,
        rates=[0.1], tolerances=[0.0], passes=20, batch=100, seed=0,
    )  # fmt: skip
    coef = np.zeros(3)
    for _ in range(20):
        coef -= 0.1 * listnet(X, y, qid, coef)[1]
    assert stop.passes == 20
    np.testing.assert_allclose(stop.coef, coef, rtol=1e-10)


def test_a_rule_stops_at_the_first_pass_that_changes_less(rows):
    X, y, qid = rows
    tolerances = [0.01, 0.003, 0.001]
    stops = descend(
        X, Tiers.from_labels(y, qid=qid), LOSS,
        rates=[0.1], tolerances=tolerances, passes=200, batch=100, seed=0,
    )  # fmt: skip
    coef, curve = np.zeros(3), []
    for _ in range(200):
        loss, slope = listnet(X, y, qid, coef)
        curve.append(loss)
        coef -= 0.1 * slope
    change = -np.diff(curve) / np.array(curve[:-1])
    expected = [int(np.argmax(change < tolerance)) + 2 for tolerance in tolerances]
    assert [stop.passes for stop in stops] == expected
    assert expected[0] < expected[1] < expected[2] < 200


@pytest.mark.parametrize("name", ["listmle", "p-listmle", "rankcosine", "pl-partition"])
def test_rates_do_not_notice_each_other(rows, name):
    X, y, qid = rows
    tiers = Tiers.from_labels(y, qid=qid)
    plan = {"tolerances": [0.01, 1e-9], "passes": 8, "batch": 4, "seed": 5}
    loss = losses.from_name(name, reduction="none")
    together = descend(X, tiers, loss, rates=[0.1, 0.01, 0.5], **plan)
    alone = [s for rate in (0.1, 0.01, 0.5) for s in descend(X, tiers, loss, rates=[rate], **plan)]
    assert [stop[:3] for stop in together] == [stop[:3] for stop in alone]
    for one, other in zip(together, alone, strict=True):
        np.testing.assert_allclose(one.coef, other.coef, rtol=1e-9)


def test_a_rate_that_diverges_is_left_out(rows):
    X, y, qid = rows
    plan = {"tolerances": [1e-3], "passes": 5, "batch": 4, "seed": 0}
    tiers = Tiers.from_labels(y, qid=qid)
    stops = descend(X, tiers, LOSS, rates=[1e200, 0.1], **plan)
    assert [stop.rate for stop in stops] == [0.1]
    with pytest.raises(ValueError, match="scale the features"):
        descend(X, tiers, LOSS, rates=[1e200], **plan)


def test_each_pass_is_told(rows):
    X, y, qid = rows
    seen = []
    descend(
        X, Tiers.from_labels(y, qid=qid), LOSS,
        rates=[0.1], tolerances=[0.0], passes=3, batch=4, seed=0, watch=seen.append,
    )  # fmt: skip
    assert seen == [1, 2, 3]
