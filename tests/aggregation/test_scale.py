"""Ratings as in chess, anchors, shares of 1: the scale on which worths are told."""

import numpy as np
import pytest

import tierrank as tr

VOTES = [
    ["ann", ("bob", "cy")],
    [("ann", "bob"), "cy"],
    ["cy", ("ann", "bob")],
    ["bob", "cy", "ann"],
]
Z = 1.959963984540054


@pytest.fixture(scope="module")
def fitted():
    return tr.RankAggregator().fit(VOTES, weights=[5, 3, 2, 1])


def test_four_hundred_points_are_odds_of_ten_to_one(fitted):
    rating = dict(zip(fitted.items_, fitted.intervals(scale="elo").estimate, strict=True))
    assert np.mean(list(rating.values())) == pytest.approx(1000)
    expected = 1 / (1 + 10 ** ((rating["bob"] - rating["ann"]) / 400))
    assert fitted.predict_proba("ann", "bob") == pytest.approx(expected)


def test_an_anchor_is_a_point_and_the_others_are_told_by_their_difference(fitted):
    estimate, low, high = fitted.intervals(scale="elo", anchor={"cy": 1200})
    at = fitted.items_.index("cy")
    assert low[at] == estimate[at] == high[at] == 1200
    matrix = fitted.covariance()
    for item in range(3):
        slope = np.eye(3)[item] - np.eye(3)[at]
        error = 400 / np.log(10) * np.sqrt(slope @ matrix @ slope)
        assert high[item] - low[item] == pytest.approx(2 * Z * error)
        lead = fitted.log_worths_[item] - fitted.log_worths_[at]
        assert estimate[item] == pytest.approx(1200 + 400 / np.log(10) * lead)
    middle = fitted.intervals(scale="elo", anchor="cy").estimate
    np.testing.assert_allclose(middle, estimate - 200)
    np.testing.assert_allclose(
        fitted.intervals(anchor="cy").estimate, fitted.log_worths_ - fitted.log_worths_[at]
    )


def test_tables_and_frames_follow(fitted):
    lines = str(fitted.summary(scale="elo", anchor={"bob": 1200})).splitlines()
    assert lines[1].split()[:3] == ["rank", "item", "rating"]
    assert lines[3].split() == ["2", "bob", "1200.0", "0.0", "1200.0", "1200.0", "0.2572"]
    frame = fitted.to_frame(scale="elo", anchor={"bob": 1200}, top=1)
    assert list(frame) == [
        "rank", "item", "rating", "log_worth", "standard_error", "low", "high", "worth"
    ]  # fmt: skip
    estimate, low, high = fitted.intervals(scale="elo", anchor={"bob": 1200})
    at = fitted.items_.index("ann")
    assert frame.loc[0, ["rating", "low", "high"]].tolist() == pytest.approx(
        [estimate[at], low[at], high[at]]
    )
    assert "worth" not in str(fitted.summary(scale="worth")).splitlines()[1].split()[3:]
    assert fitted.to_frame(anchor="bob").log_worth.iloc[1] == 0


def test_worths_have_intervals_that_are_probabilities():
    sure = tr.RankAggregator().fit([["a", "b"], ["b", "a"]], weights=[3, 1])
    worth, low, high = sure.intervals(scale="worth", level=0.999)
    assert ((low > 0) & (high < 1) & (low < worth) & (worth < high)).all()


def test_plots_say_what_the_axis_is(fitted):
    ax = fitted.plot(scale="elo", anchor={"bob": 1200})
    assert "rating (bob is 1,200)" in ax.get_xlabel()
    assert min(ax.get_xlim()) > 800


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"scale": "chess"}, "scale is one of log-worth, elo, worth, not 'chess'"),
        ({"scale": "worth", "anchor": "ann"}, "worths sum to 1 and have none"),
        ({"anchor": "dee"}, "no item 'dee'"),
        ({"anchor": {"ann": float("nan")}}, "anchor stands at nan: give a finite number"),
        ({"anchor": {"ann": 1, "bob": 2}}, "anchor is one item, not 2"),
        ({"anchor": ["ann"]}, "give an item, or one with its rating in a mapping"),
    ],
)
def test_what_is_no_scale_is_refused(fitted, given, said):
    with pytest.raises(ValueError, match=said):
        fitted.summary(**given)
