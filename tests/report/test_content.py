"""What a page refuses to show, and how numbers and axes are written."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tierrank.report.aggregation import ConvergenceFacts, ItemRow
from tierrank.report.content import axis_of, decimals_of, duration, number, percent, significant


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"log_worth": math.nan}, "log_worth of the row of item 'a' is nan"),
        ({"worth": 1.5}, "worth of the row of item 'a' is 1.5: give a probability"),
        ({"low": 0.1}, "one end of an interval"),
        ({"low": 0.5, "high": 1.0}, "does not hold its log-worth"),
        ({"low": math.nan, "high": 1.0}, "does not hold its log-worth"),
        ({"standard_error": -1.0}, "standard_error .* give 0 or more"),
        ({"rank_low": 1}, "one end of an interval of ranks"),
        ({"tier": 0}, "the best tier is number 1"),
        ({"top_k": -0.5}, "top_k .* give a probability"),
        ({"expected_rank": math.inf}, "expected_rank .* give a finite number"),
    ],
)
def test_a_row_that_cannot_be_is_refused(values, message):
    with pytest.raises(ValueError, match=message):
        ItemRow(**{"name": "a", "log_worth": 0.0, "worth": 0.5, **values})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rows": ()}, "at least one row"),
        ({"level": 95}, "between 0 and 1, such as 0.95"),
        ({"top_k": None}, "give top_k"),
        ({"cut_probabilities": [0.5]}, "1 cut_probabilities for 4 rows"),
        ({"cut_probabilities": [0.5, 2.0, 0.5]}, "below row 2 is 2.0"),
        ({"pairwise": np.full((5, 5), 0.5)}, r"shape \[5, 5\]: give \[n, n\], n at most 4"),
        ({"pairwise": np.full((2, 3), 0.5)}, r"shape \[2, 3\]"),
        ({"pairwise": np.full((2, 2), np.nan)}, "no probability"),
    ],
)
def test_a_page_that_contradicts_itself_is_refused(make_page, changes, message):
    with pytest.raises(ValueError, match=message):
        make_page(4, **changes)


def test_rows_come_best_first_and_tiers_with_them(make_page):
    rows = make_page(4).rows
    with pytest.raises(ValueError, match=r"row 1 \('item 4'\) has a smaller log-worth than row 2"):
        make_page(4, rows=rows[::-1])
    untiered = [dataclasses.replace(row, tier=None) for row in rows]
    with pytest.raises(ValueError, match="all of them one, or none"):
        make_page(4, rows=(rows[0], *untiered[1:]))
    turned = [dataclasses.replace(row, tier=4 - place) for place, row in enumerate(rows)]
    with pytest.raises(ValueError, match="tier 1 is the best"):
        make_page(4, rows=tuple(turned))


def test_a_history_with_a_number_that_is_none_is_refused():
    with pytest.raises(ValueError, match="value 1 of the objective's history is nan"):
        ConvergenceFacts("Newton", 2, 0.1, True, "gradient", (1.0, math.nan))


@given(
    st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=20),
    st.lists(st.floats(0, 1e7), min_size=20, max_size=20),
)
def test_every_log_worth_is_on_the_axis_and_ticks_are_few_even_and_inside(scores, errors):
    rows = [
        ItemRow("a", score, 0.5, low=score - error, high=score + error)
        for score, error in zip(sorted(scores, reverse=True), errors, strict=False)
    ]
    axis = axis_of(rows)
    assert all(axis.holds(row.log_worth) for row in rows)
    assert all(axis.holds(tick) for tick in axis.ticks)
    assert 2 <= len(axis.ticks) <= 9
    steps = np.diff(axis.ticks)
    assert np.allclose(steps, steps[0])
    assert [float(label.replace("−", "-").replace(",", "")) for _, label in axis.labels()] == (
        pytest.approx(list(axis.ticks), abs=steps[0] / 100)
    )
    assert np.allclose(
        np.diff([place for place, _ in axis.labels()]), steps / (axis.high - axis.low)
    )


def test_intervals_of_the_usual_length_are_on_the_axis_and_one_endless_one_is_not(make_page):
    rows = make_page(12).rows
    axis = axis_of(rows)
    assert all(axis.holds(end) for row in rows for end in (row.low, row.high))
    endless = dataclasses.replace(rows[5], low=-math.inf, high=1e9)
    cut_off = axis_of([*rows[:5], endless, *rows[6:]])
    assert not cut_off.holds(endless.low)
    assert not cut_off.holds(endless.high)
    assert (cut_off.place(endless.low), cut_off.place(endless.high)) == (0, 1)
    assert cut_off.high - cut_off.low < 2.5 * (axis.high - axis.low)


def test_numbers_show_two_digits_of_their_error(make_page):
    rows = make_page(5).rows
    for error, decimals in [(3.0, 2), (0.2, 2), (0.02, 3), (0.002, 4), (1e-12, 6)]:
        changed = [dataclasses.replace(row, standard_error=error) for row in rows]
        assert decimals_of(changed) == decimals


def test_numbers_are_written_as_in_print():
    assert [number(value, 2) for value in (-1.234, 1234.5, -0.001, math.inf, -math.inf)] == [
        "−1.23", "1,234.50", "0.00", "∞", "−∞",
    ]  # fmt: skip
    assert [significant(value) for value in (100.0, 6.8, 0.00012345, 0, -2e-9)] == [
        "100", "6.80", "0.000123", "0", "−2.00e−09",
    ]  # fmt: skip
    assert [duration(seconds) for seconds in (0.0312, 2.5, 125, 7260)] == [
        "31.2\xa0ms", "2.5\xa0s", "2\xa0min 5\xa0s", "2\xa0h 1\xa0min",
    ]  # fmt: skip


def test_a_probability_is_0_or_100_percent_only_if_it_is_certain():
    assert [percent(p) for p in (0, 1e-9, 0.004, 0.006, 0.5, 0.994, 0.996, 1 - 1e-9, 1)] == [
        "0", "<1", "<1", "1", "50", "99", ">99", ">99", "100",
    ]  # fmt: skip
    assert [percent(p, 1) for p in (1e-9, 0.5, 0.9999)] == ["<0.1", "50.0", ">99.9"]
    assert [percent(p) for p in (0.005, 0.995)] == ["<1", ">99"]
