"""Propensities that a log tells: against the plain likelihood, and clicks drawn from known ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

import tierrank as tr
from tierrank._types import AnyArray
from tierrank.data import ClickLog, Propensities
from tierrank.data.synthetic import simulate_clicks

LABELS = np.array([2.0, 0, 1, 0, 2, 1, 0, 0] * 20)
QUERIES = np.repeat(np.arange(20), 8)
PRODUCTION = LABELS + np.tile([0.5, 1.5, 0.0, 1.0], 40)  # knows something of what is clicked


def draw(sessions: int, seed: int, **more: Any) -> ClickLog:
    options: dict[str, Any] = {"depth": 5, "temperature": 1.0, "noise": 0.2, **more}
    return simulate_clicks(LABELS, QUERIES, PRODUCTION, sessions, seed=seed, **options)


def plain_loss(log: ClickLog, smoothing: float) -> Any:
    """From its words alone: each click over all other showings of the same row."""

    def value(rest: AnyArray) -> float:
        bias = np.append(0.0, rest)
        total = smoothing / 2 * float((np.diff(bias) ** 2).sum())
        for at in np.flatnonzero(log.click):
            others = bias[log.position[log.row == log.row[at]] - 1]
            total += float(np.log(np.exp(others).sum()) - bias[log.position[at] - 1])
        return total

    return value


@pytest.mark.parametrize("smoothing", [0.0, 3.0])
def test_they_are_the_plain_maximum_likelihood(smoothing: float) -> None:
    log = draw(150, seed=2)
    best = minimize(plain_loss(log, smoothing), np.zeros(4), tol=1e-10).x
    found = log.propensities(smoothing=smoothing)
    np.testing.assert_allclose(found.bias[1:], best, atol=1e-5)
    assert found.bias[0] == found.standard_errors[0] == 0
    np.testing.assert_allclose(found.values, np.exp(found.bias - found.bias.max()))


def test_rows_may_have_numbers_of_any_size() -> None:
    log = draw(150, seed=2)
    named = ClickLog(log.session, log.row * 10**13 + 7, log.position, log.click)
    np.testing.assert_array_equal(named.propensities().bias, log.propensities().bias)
    np.testing.assert_allclose(named.lists().weights.sum(), log.lists().weights.sum())


def test_the_likelihood_is_that_of_plackett_luce_over_the_showings_of_a_row() -> None:
    """The log on its side, for a ranker that has no features: a list a click."""
    log = draw(60, seed=3)
    y, positions, sizes = [], [], []
    for at in np.flatnonzero(log.click):
        same = np.flatnonzero(log.row == log.row[at])
        if len(same) > 1:
            y.append(same == at)
            positions.append(log.position[same])
            sizes.append(len(same))
    ranker = tr.LinearRanker(features=None, tol=0, l2=1.0, position_smoothing=1.0)
    ranker.fit(
        np.zeros((sum(sizes), 1)), np.concatenate(y).astype(float), group=sizes,
        positions=np.concatenate(positions),
    )  # fmt: skip
    np.testing.assert_allclose(log.propensities().bias, ranker.position_bias_, atol=1e-6)


@pytest.mark.parametrize("theta", [1.0, 0.5])
def test_standard_errors_are_the_spread_of_estimates_and_hold_what_they_say(theta: float) -> None:
    """Whatever rows are worth, and though no feature tells it."""
    truth = -theta * np.log(np.arange(1, 6))
    found = [draw(1500, seed=seed, eta=theta).propensities(smoothing=0.0) for seed in range(200)]
    errors = np.array([each.bias - truth for each in found])[:, 1:]
    stated = np.array([each.standard_errors for each in found])[:, 1:]
    inside = np.abs(errors) < 1.96 * stated
    assert 0.92 < inside.mean() < 0.975
    np.testing.assert_allclose(errors.std(0), stated.mean(0), rtol=0.17)
    assert (np.abs(errors.mean(0)) < 4 * errors.std(0) / np.sqrt(200) + 0.01).all()
    covariance = np.mean([each.covariance[1:, 1:] for each in found], axis=0)
    scale = np.sqrt(np.outer(np.diag(covariance), np.diag(covariance)))
    np.testing.assert_allclose(np.cov(errors.T) / scale, covariance / scale, atol=0.3)


def test_of_few_rows_errors_are_those_of_the_information_and_not_too_small() -> None:
    log = simulate_clicks([2, 0, 1, 1], [0] * 4, [0.3, 0.2, 0.1, 0.0], 300, noise=0.3, seed=1)
    found, width = log.propensities(smoothing=0.0), 1e-3 * np.eye(3)
    value, at = plain_loss(log, 0.0), found.bias[1:]
    hessian = np.array([[
        value(at + a + b) - value(at + a - b) - value(at - a + b) + value(at - a - b)
        for a in width] for b in width]) / 4e-6  # fmt: skip
    np.testing.assert_allclose(found.covariance[1:, 1:], np.linalg.inv(hessian), rtol=1e-4)
    truth, z = -np.log(np.arange(1, 5)), []
    for seed in range(100):
        some = simulate_clicks([2, 0, 1, 1], [0] * 4, [0.0] * 4, 300, noise=0.3, seed=seed)
        found = some.propensities()
        z.append((found.bias - truth)[1:] / found.standard_errors[1:])
    assert np.mean(np.abs(z) < 1.96) > 0.95


def test_a_place_that_says_nothing_is_that_of_its_neighbour_and_as_uncertain_as_a_step() -> None:
    log = draw(400, seed=5)
    more = ClickLog(
        np.append(log.session, log.session[-1]), np.append(log.row, 900),
        np.append(log.position, 6), np.append(log.click, False),
    )  # fmt: skip
    found = more.propensities(smoothing=4.0)
    assert found.bias[5] == pytest.approx(found.bias[4], abs=1e-9)
    variance = np.diag(found.covariance)
    assert variance[5] == pytest.approx(variance[4] + 1 / 4)


def test_clicks_are_weighed_by_them_unless_others_are_given() -> None:
    log = draw(500, seed=6)
    found = log.propensities()
    by_itself, given = log.lists(), log.lists(propensities=found)
    by_values = log.lists("weighed", propensities=found.values)
    for name in ("y", "rows", "group", "weights"):
        for other in (given, by_values):
            np.testing.assert_array_equal(getattr(by_itself, name), getattr(other, name))
    assert by_itself.positions is None
    weight = (1 / found.values[log.position - 1])[log.click].sum()
    assert by_itself.weights.sum() == pytest.approx(weight)
    assert len(by_itself) < len(log.lists("each")) < log.click.sum()  # orders are not told apart
    assert "0.5" in repr(Propensities(np.log([1, 0.5]), np.zeros((2, 2))))


RANKERS: list[Any] = [
    tr.LinearRanker(features=None),
    tr.BoostedRanker(trees=60, learning_rate=0.1, min_rows_per_leaf=5, random_state=0),
    tr.NeuralRanker(hidden=(8,), max_epochs=2, learning_rate=3e-3, random_state=0, features=None),
]


@pytest.mark.parametrize("ranker", RANKERS, ids=lambda each: type(each).__name__)
def test_every_ranker_learns_relevance_and_not_the_place(ranker: Any) -> None:
    random = np.random.default_rng(0)
    labels = random.integers(0, 3, size=300).astype(float)
    decoy = random.normal(size=300)  # what the production ranker sorts by
    X = np.column_stack([labels + 0.5 * random.normal(size=300), decoy])
    log = simulate_clicks(labels, np.repeat(np.arange(30), 10), decoy, 5_000, seed=1)
    weighed, naive = log.lists().arguments, log.lists("unclicked").arguments | {"positions": None}
    probes = np.column_stack([np.repeat([0.0, 2.0], 50), np.tile(np.linspace(-1.5, 1.5, 50), 2)])

    def share_of_decoy(lists: Any) -> float:
        scores = np.asarray(ranker.fit(X, **lists).predict(probes), dtype=float).reshape(2, 50)
        return float((scores[:, -10:].mean() - scores[:, :10].mean()) / np.diff(scores.mean(1))[0])

    by_place = share_of_decoy(naive)
    assert by_place > 0.4
    assert abs(share_of_decoy(weighed)) < by_place / 2


@pytest.mark.parametrize(
    ("log", "ask", "message"),
    [
        (draw(200, 1, temperature=0.0), {}, "cannot tell place 2 from place 1"),
        (draw(200, 1), {"smoothing": -1.0}, "smoothing is a number from 0"),
        (draw(200, 1), {"smoothing": np.nan}, "smoothing is a number from 0"),
        (draw(30, 1, eta=6.0), {"smoothing": 0.0}, "does not bound"),
        (draw(20, 1, noise=0.0, eta=40.0), {"smoothing": 0.0}, "does not bound|nobody clicked"),
        (ClickLog.from_arrays([0, 0], [0, 1], [1, 2], [0, 0]), {}, "nobody clicked"),
        (ClickLog.from_arrays([0, 1], [0, 0], [1, 9_999], [1, 1]), {}, "2,000 at most"),
    ],
)
def test_logs_that_cannot_tell_are_refused(log: ClickLog, ask: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        log.propensities(**ask)


def test_a_log_without_the_sessions_that_nobody_clicked_in_is_noticed() -> None:
    log = draw(200, seed=1)
    log.propensities()
    keep = np.isin(log.session, log.session[log.click])
    some = ClickLog.from_arrays(
        log.session[keep], log.row[keep], log.position[keep], log.click[keep]
    )
    with pytest.warns(UserWarning, match="every session of the log has a click"):
        some.propensities()


def test_what_goes_with_nothing_is_refused() -> None:
    log = draw(200, seed=1)
    with pytest.raises(ValueError, match="depends on the clicks"):
        log.lists(examined="last-click")
    with pytest.raises(ValueError, match="propensities go with"):
        log.lists("each", propensities=np.ones(5))
    with pytest.raises(ValueError, match="cannot tell place"):
        draw(200, 1, temperature=0.0).lists()
