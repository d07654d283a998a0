"""Click logs: what they say as lists, and simulated ones against the probabilities they state."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pyarrow
import pytest

import tierrank as tr
from tierrank.data import ClickLog
from tierrank.data.synthetic import simulate_clicks
from tierrank.ranking.clicks import attraction


def page(*clicks: int, places: int = 4, session: int = 0) -> ClickLog:
    """One session that shows rows 10, 11, … with clicks at these places."""
    position = np.arange(1, places + 1)
    return ClickLog.from_arrays(
        np.full(places, session), position + 9, position, np.isin(position, clicks)
    )


def said(lists: Any) -> set[tuple[frozenset[int], frozenset[int], float]]:
    """Each list as (rows above, rows below, weight)."""
    ends = np.cumsum(lists.group)
    found = set()
    for start, end, weight in zip(ends - lists.group, ends, lists.weights, strict=True):
        rows, above = lists.rows[start:end], lists.y[start:end] > 0
        found.add((frozenset(rows[above].tolist()), frozenset(rows[~above].tolist()), weight))
    return found


def those(*given: tuple[set[int], set[int], float]) -> Any:
    return {(frozenset(above), frozenset(below), weight) for above, below, weight in given}


def test_what_two_clicks_of_four_say() -> None:
    log = page(2, 3)
    assert said(log.lists("unclicked")) == those(({11, 12}, {10, 13}, 1))
    assert said(log.lists("each")) == those(({11}, {10, 12, 13}, 1), ({12}, {10, 11, 13}, 1))
    assert said(log.lists("skip-above")) == those(({11}, {10}, 1), ({12}, {10}, 1))
    assert said(log.lists("unclicked", examined="last-click")) == those(({11, 12}, {10}, 1))
    assert said(log.lists("unclicked", examined=3)) == those(({11, 12}, {10}, 1))
    assert said(log.lists("unclicked", examined=[4])) == said(log.lists("unclicked"))


def test_skip_above_says_the_preferences_of_each_click_over_what_was_skipped() -> None:
    lists = simulate_clicks([2, 1, 0, 0, 1], [0] * 5, [0.0] * 5, 200, seed=3).lists("skip-above")
    ends = np.cumsum(lists.group)
    assert lists.positions is not None
    for start, end in zip(ends - lists.group, ends, strict=True):
        places, above = lists.positions[start:end], lists.y[start:end] > 0
        assert above.sum() == 1
        assert (places[~above] < places[above]).all()


def test_inverse_propensities_are_clipped_and_weigh_each_click() -> None:
    lists = page(2, 4).lists(propensities=[1.0, 0.5, 0.25, 0.1], clip=5.0)
    assert said(lists) == those(({11}, {10, 12, 13}, 2), ({13}, {10, 11, 12}, 5))
    assert lists.positions is None
    assert lists.clipped == 0.5
    assert lists.effective_sample_size == pytest.approx(7**2 / (2**2 + 5**2))


def test_equal_sessions_are_counted_together_and_order_matters() -> None:
    frame = pd.DataFrame({
        "session": [1, 1, 2, 2, 3, 3, 4, 4], "item": list("abababba"),
        "position": [1, 2, 1, 2, 2, 1, 1, 2], "click": [1, 0, 1, 0, 1, 0, 0, 0],
    })  # fmt: skip
    lists = ClickLog.from_frame(frame, items=["b", "a"]).lists("unclicked")
    assert sorted(lists.weights) == [1, 2]
    assert set(lists.rows) == {0, 1}
    assert lists.effective_sample_size == pytest.approx(3)
    assert len(lists.tiers()) == 2


def test_counted_lists_teach_what_all_lists_teach() -> None:
    random = np.random.default_rng(0)
    X = random.normal(size=(6, 2))
    log = simulate_clicks(random.integers(0, 3, 6), [0, 0, 0, 1, 1, 1], [0.0] * 6, 400, seed=2)
    counted = tr.LinearRanker(tol=0).fit(X, **log.lists("unclicked").arguments)
    told = np.isin(log.session, np.flatnonzero(_tells(log)))
    plain = tr.LinearRanker(tol=0).fit(
        X, log.click[told].astype(float), qid=log.session[told], rows=log.row[told],
        positions=log.position[told],
    )  # fmt: skip
    assert len(log.lists("unclicked")) < _tells(log).sum() / 4
    np.testing.assert_allclose(counted.coef_, plain.coef_, atol=1e-6)
    np.testing.assert_allclose(counted.position_bias_, plain.position_bias_, atol=1e-6)


def _tells(log: ClickLog) -> Any:
    clicks, sizes = np.bincount(log.session, log.click), np.bincount(log.session)
    return (clicks > 0) & (clicks < sizes)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"position": [0, 1]}, "position is 0 in entry 0"),
        ({"position": [1, 1]}, "two items at position 1"),
        ({"position": [1.0, np.nan]}, "position is nan"),
        ({"click": [0, 2]}, "click is 2 in entry 1"),
        ({"row": [0, -1]}, "row is -1"),
        ({"row": [0]}, "has shape"),
        ({"row": [0, 1e300]}, r"row is 1e\+300"),
        ({"session": [5.0, np.nan]}, "session is missing in entry 1"),
        ({"session": ["a", None]}, "session is missing in entry 1"),
        ({"session": np.array([None, 3], dtype=object)}, "session is missing in entry 0"),
        ({"session": [[5], [5]]}, "session has shape"),
        ({"session": [5, "a"]}, "do not sort"),
        ({"position": np.array(["2026-01-01", "2026-01-02"], "M8[D]")}, "position holds no num"),
        ({"click": [1 + 1j, 0]}, "click holds no numbers, but complex"),
    ],
)
def test_bad_logs_are_refused(change: dict[str, Any], message: str) -> None:
    good: dict[str, Any] = {"session": [5, 5], "row": [0, 1], "position": [1, 2], "click": [0, 1]}
    with pytest.raises(ValueError, match=message):
        ClickLog.from_arrays(**good | change)


def test_bad_questions_are_refused() -> None:
    log = page(4)
    for message, ask in {
        "compare is": lambda: log.lists("all"),  # type: ignore[arg-type]
        "below the last place examined": lambda: log.lists("unclicked", examined=2),
        "examined is": lambda: log.lists("unclicked", examined="half"),
        "one a place": lambda: log.lists(propensities=[1.0]),
        "probabilities": lambda: log.lists(propensities=[1.0, 0.5, 0.5, 0.0]),
        "examined has shape": lambda: log.lists("each", examined=[3, 3]),
        "are no numbers": lambda: log.lists(propensities=["a"] * 4),
        "probabilities above": lambda: log.lists(propensities=[1, 1, 1, 1e-320], clip=np.inf),
        "smoothing": lambda: log.propensities(smoothing=-1),
        "items is the item": lambda: ClickLog.from_frame(
            {"session": [1], "item": ["z"], "position": [1], "click": [1]}, items=[]
        ),
        "clip": lambda: log.lists(propensities=np.ones(4), clip=0.5),
        "no session tells": lambda: page().lists("unclicked"),
        "no column 'page'": lambda: ClickLog.from_frame({"item": [1]}, session="page"),
        "is not among items": lambda: ClickLog.from_frame(
            {"session": [1], "item": ["z"], "position": [1], "click": [1]}, items=["a"]
        ),
        "items, have values that do not sort": lambda: ClickLog.from_frame(
            {"session": [1, 1], "item": ["a", None], "position": [1, 2], "click": [0, 1]},
            items=["a", "b"],
        ),
        "and items, have values": lambda: ClickLog.from_frame(
            {"session": [1], "item": ["a"], "position": [1], "click": [1]},
            items=np.array(["a", 1], dtype=object),
        ),
    }.items():
        with pytest.raises(ValueError, match=message):
            ask()


LABELS = np.array([2, 0, 1, 0, 2.0])


@pytest.mark.parametrize("trust", [0.0, 1.0])
def test_position_based_clicks_have_the_probability_that_is_stated(trust: float) -> None:
    options: dict[str, Any] = {"eta": 0.7, "noise": 0.3, "trust": trust, "depth": 3, "seed": 1}
    log = simulate_clicks(LABELS, [0] * 5, [0, 1, 0.5, 0, 0], 60_000, **options)
    appeal = attraction(LABELS[log.row], log.position, noise=0.3, trust=trust, top=2)
    _same_rates(log, appeal * log.position**-0.7)


def test_grades_may_be_so_high_that_their_gain_is_no_number() -> None:
    found = attraction([5000, 4999, 4998, 0], 1, noise=0.1)
    np.testing.assert_allclose(found, 0.1 + 0.9 * np.array([1, 0.5, 0.25, 0]))


def test_cascade_clicks_have_the_probability_that_is_stated() -> None:
    log = simulate_clicks(
        LABELS, [0] * 5, [0.0] * 5, 60_000, model="cascade", stop=0.6, noise=0.2, depth=4, seed=1
    )
    appeal = attraction(LABELS[log.row], log.position, noise=0.2, top=2).reshape(-1, 4)
    reached = np.cumprod(1 - 0.6 * appeal, axis=1) / (1 - 0.6 * appeal)  # by no leaving above
    _same_rates(log, (appeal * reached).ravel())


def _same_rates(log: ClickLog, expected: Any) -> None:
    """By row and place, within 4 standard errors, and so with several things at once."""
    for row in range(5):
        for place in range(1, int(log.position.max()) + 1):
            here = (log.row == row) & (log.position == place)
            p, n = expected[here].mean(), here.sum()
            assert abs(log.click[here].mean() - p) < 4.2 * np.sqrt(p * (1 - p) / n) + 1e-12


def test_plackett_luce_clicks_and_the_production_ranker_follow_their_models() -> None:
    log = simulate_clicks(
        LABELS, [0] * 5, [0, 1, 0.5, 0, 0], 40_000, model="plackett-luce", eta=1.0, depth=5,
        temperature=0.5, seed=1,
    )  # fmt: skip
    assert (np.bincount(log.session, log.click) == 1).all()
    worth = attraction(LABELS[log.row], log.position, top=2) / log.position
    share = worth.reshape(-1, 5)
    _same_rates(log, (share / share.sum(1, keepdims=True)).ravel())
    first = np.bincount(log.row[log.position == 1], minlength=5) / 40_000
    chance = np.exp(np.array([0, 1, 0.5, 0, 0]) / 0.5)
    np.testing.assert_allclose(first, chance / chance.sum(), atol=0.01)


def test_biases_of_plackett_luce_clicks_are_found_within_their_standard_errors() -> None:
    random = np.random.default_rng(4)
    labels = random.integers(0, 3, size=90).astype(float)
    X = np.eye(3)[labels.astype(int)][:, 1:]
    log = simulate_clicks(
        labels, np.repeat(np.arange(10), 9), labels, 6_000, model="plackett-luce", clicks=2, depth=6
    )
    ranker = tr.LinearRanker(features=None, uncertainty="information", position_smoothing=0.0)
    lists = log.lists("unclicked")
    ranker.fit(X, **lists.arguments)
    z = (ranker.position_bias_ + np.log(np.arange(1, 7)))[1:] / ranker.position_standard_errors_[1:]
    assert np.abs(z).max() < 3
    true = np.diff(np.log(attraction([0, 1, 2], 1, top=2)))[0], np.log(1 / 0.1)
    assert (np.abs(ranker.coef_ - true) < 3 * ranker.standard_errors_).all()


def test_position_based_clicks_each_on_its_own_have_log_propensities_as_biases() -> None:
    """A click over all else, by softmax: P(click) = θ r makes w = log r and b = log θ, whatever r.

    Clicked over not clicked is another statistic, and only nearly so.
    """
    labels = np.tile([2.0, 1.0, 0.0, 0.0, 1.0], 8)
    log = simulate_clicks(labels, np.repeat(np.arange(8), 5), labels, 30_000, noise=0.3, depth=5)
    X = np.eye(3)[labels.astype(int)][:, 1:]
    ranker = tr.LinearRanker(features=None, uncertainty="information", position_smoothing=0.0)
    ranker.fit(X, **log.lists("each").arguments)
    np.testing.assert_allclose(ranker.position_bias_, -np.log(np.arange(1, 6)), atol=0.06)
    appeal = np.log(attraction([0, 1, 2], 1, noise=0.3, top=2))
    np.testing.assert_allclose(ranker.coef_, appeal[1:] - appeal[0], atol=0.06)
    together = tr.LinearRanker(features=None, tol=0, position_smoothing=0.0)
    together.fit(X, **log.lists("unclicked").arguments)
    assert together.position_bias_[1] < -np.log(2) - 0.1


@pytest.mark.parametrize(
    "change",
    [
        {"model": "random"}, {"depth": 0}, {"depth": 2.5}, {"temperature": -1}, {"noise": 2},
        {"temperature": np.inf}, {"eta": np.nan}, {"eta": -1}, {"trust": np.nan}, {"stop": np.nan},
        {"labels": [0.0, 0.0]}, {"labels": [1.0, -1.0]},
    ],
)  # fmt: skip
def test_bad_simulations_are_refused(change: dict[str, Any]) -> None:
    given: dict[str, Any] = {"labels": [1, 0], "qid": [0, 0], "scores": [0, 0], "sessions": 3}
    with pytest.raises(ValueError, match=r"model|whole number|above 0|probability|from 0"):
        simulate_clicks(**given | change)


def test_a_table_of_arrow_is_a_log() -> None:
    table = pyarrow.table({"session": [5, 5], "item": [0, 1], "position": [1, 2], "click": [0, 1]})
    assert ClickLog.from_frame(table).lists("each").rows.tolist() == [0, 1]
