"""Biases of positions: clicks on what was shown where, by every ranker."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

import tierrank as tr
from tierrank.data.ranking_data import AnyArray

FEATURES, SHOWN = 3, 5
TRUE_COEF = np.array([1.0, -0.5, 0.3])
TRUE_BIAS = -np.log(np.arange(1, SHOWN + 1))


class Log:
    """Clicks drawn from the model itself: the best one or two by w + b + Gumbel."""

    def __init__(self, lists: int = 300, rows: int = 40, seed: int = 0) -> None:
        random = np.random.default_rng(seed)
        self.X = random.normal(size=(rows, FEATURES))
        self.rows = random.random((lists, rows)).argsort(1)[:, :SHOWN]
        utility = (self.X @ TRUE_COEF)[self.rows] + TRUE_BIAS
        utility += random.gumbel(size=utility.shape)
        place = (-utility).argsort(1).argsort(1)
        self.y = (place < random.integers(1, 3, size=(lists, 1))).astype(float).ravel()
        self.positions = np.tile(np.arange(1, SHOWN + 1), lists)
        self.qid = np.repeat(np.arange(lists), SHOWN)
        self.rows = self.rows.ravel()

    def fit(self, ranker: Any, **more: Any) -> Any:
        """Fit to rows that are indexed."""
        given = {"qid": self.qid, "rows": self.rows, "positions": self.positions, **more}
        return ranker.fit(self.X, self.y, **given)

    def fit_repeated(self, ranker: Any, **more: Any) -> Any:
        """Fit to rows that are written out."""
        given = {"qid": self.qid, "positions": self.positions, **more}
        return ranker.fit(self.X[self.rows], self.y, **given)


def plain_fit(log: Log, smoothing: float, objective: str = "pl-partition") -> AnyArray:
    """[features + positions − 1] the same minimum by scipy, from values alone."""
    tiers = tr.Tiers.from_labels(log.y, qid=log.qid)
    loss = tr.losses.from_name(objective, reduction="sum")
    X = log.X[log.rows]

    def value(point: AnyArray) -> float:
        bias = np.append(0.0, point[FEATURES:])
        scores = X @ point[:FEATURES] + bias[log.positions - 1]
        return float(loss(scores, tiers)) + smoothing / 2 * float((np.diff(bias) ** 2).sum())

    return np.asarray(minimize(value, np.zeros(FEATURES + SHOWN - 1), tol=1e-10).x)


@pytest.mark.parametrize("smoothing", [0.0, 5.0])
@pytest.mark.parametrize("objective", ["pl-partition", "pl-lb", "ranknet"])
def test_a_linear_fit_is_the_plain_maximum_likelihood(objective: str, smoothing: float) -> None:
    log = Log()
    ranker = tr.LinearRanker(objective, features=None, tol=0, position_smoothing=smoothing)
    log.fit(ranker)
    expected = plain_fit(log, smoothing, objective)
    np.testing.assert_allclose(ranker.coef_, expected[:FEATURES], atol=2e-6)
    np.testing.assert_allclose(ranker.position_bias_[1:], expected[FEATURES:], atol=2e-6)
    assert ranker.position_bias_[0] == 0


@pytest.mark.parametrize("kind", ["information", "sandwich"])
def test_indexed_rows_are_the_rows_written_out(kind: Any) -> None:
    log = Log()
    fits = [
        fit(tr.LinearRanker(features=None, uncertainty=kind)) for fit in (log.fit, log.fit_repeated)
    ]
    for name in ("coef_", "position_bias_", "standard_errors_", "position_standard_errors_"):
        np.testing.assert_allclose(*(getattr(fit, name) for fit in fits), atol=1e-9)


def test_standard_errors_are_those_of_differences_of_the_likelihood() -> None:
    log = Log()
    ranker = log.fit(
        tr.LinearRanker(features=None, uncertainty="information", position_smoothing=2.0)
    )
    tiers = tr.Tiers.from_labels(log.y, qid=log.qid)
    point = np.append(ranker.coef_, ranker.position_bias_[1:])
    X = log.X[log.rows]

    def value(at: AnyArray) -> float:
        bias = np.append(0.0, at[FEATURES:])
        scores = X @ at[:FEATURES] + bias[log.positions - 1]
        return -float(tr.log_prob(scores, tiers).sum()) + float((np.diff(bias) ** 2).sum())

    width = 1e-3 * np.eye(len(point))
    hessian = np.array([[
        value(point + a + b) - value(point + a - b) - value(point - a + b) + value(point - a - b)
        for a in width] for b in width]) / 4e-6  # fmt: skip
    errors = np.sqrt(np.diag(np.linalg.inv(hessian)))
    np.testing.assert_allclose(ranker.standard_errors_, errors[:FEATURES], rtol=1e-4)
    np.testing.assert_allclose(ranker.position_standard_errors_[1:], errors[FEATURES:], rtol=1e-4)


def test_equal_lists_may_be_counted_by_weight() -> None:
    log = Log(lists=60)
    weights = np.random.default_rng(1).integers(1, 4, size=60)
    counted = log.fit(tr.LinearRanker(features=None, uncertainty="information"), weights=weights)
    again = np.repeat(np.arange(60), weights)
    pick = (again[:, None] * SHOWN + np.arange(SHOWN)).ravel()
    log.y, log.rows, log.positions = log.y[pick], log.rows[pick], log.positions[pick]
    log.qid = np.repeat(np.arange(len(again)), SHOWN)
    copied = log.fit(tr.LinearRanker(features=None, uncertainty="information"))
    np.testing.assert_allclose(counted.position_bias_, copied.position_bias_, atol=1e-8)
    np.testing.assert_allclose(
        counted.position_standard_errors_, copied.position_standard_errors_, atol=1e-8
    )


@pytest.mark.parametrize(
    ("name", "bad", "message"),
    [
        ("positions", [1, 2], "one a label"),
        ("positions", np.nan, "is nan for observation 3"),
        ("positions", 0, "is 0.0 for observation 3"),
        ("positions", -1, "is -1.0 for observation 3"),
        ("positions", 1.5, "whole numbers"),
        ("positions", 1e9, "1 to 100,000"),
        ("positions", "first", "holds no numbers"),
        ("rows", 40, "0 to 39"),
        ("rows", -1, "0 to 39"),
    ],
)
def test_bad_positions_and_rows_are_refused(name: str, bad: Any, message: str) -> None:
    log = Log(lists=20)
    given = getattr(log, name).astype(object if isinstance(bad, str) else float)
    if isinstance(bad, list):
        given = bad
    else:
        given[3] = bad
    with pytest.raises(ValueError, match=message) as caught:
        log.fit(tr.LinearRanker(), **{name: given})
    assert str(caught.value).startswith(name)


def test_rows_in_several_lists_have_no_query_to_be_scaled_in() -> None:
    with pytest.raises(ValueError, match="transform X before"):
        Log(lists=20).fit(tr.LinearRanker(features="query-scale"))
