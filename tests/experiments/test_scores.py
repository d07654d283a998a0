"""Means over the test lists of all folds, and what they are compared with."""

import csv
import io

import numpy as np
import pytest
import scipy.stats
from scores import Scores, as_csv


@pytest.fixture
def values():
    random = np.random.default_rng(0)
    old = [random.random(30), random.random(50)]
    return {"old": old, "new": [part + 0.1 * random.normal(size=len(part)) + 0.05 for part in old]}


@pytest.fixture
def scores(values):
    collected = Scores("old", resamples=2000)
    for method, folds in values.items():
        for fold in folds:
            collected.add("first-order", method, {"ERR": fold}, 1.5)
    return collected


def test_a_figure_is_the_mean_over_all_lists_with_an_interval(scores, values):
    by_method = {figure.method: figure for figure in scores.figures({})}
    for method, folds in values.items():
        figure, pooled = by_method[method], np.concatenate(folds)
        assert figure.mean == pytest.approx(pooled.mean(), rel=1e-12)
        assert figure.seconds == 3.0
        expected = scipy.stats.bootstrap(
            [pooled], np.mean, n_resamples=20_000, rng=1
        ).confidence_interval
        assert (figure.low, figure.high) == pytest.approx(tuple(expected), abs=0.005)


def test_differences_are_to_the_reference_on_the_same_lists(scores, values):
    old, new = (np.concatenate(values[name]) for name in ("old", "new"))
    figures = {figure.method: figure for figure in scores.figures({})}
    assert (figures["old"].over_reference, figures["old"].p_value) == (None, None)
    assert figures["new"].over_reference == pytest.approx(new.mean() / old.mean() - 1, rel=1e-9)
    paired = scipy.stats.ttest_rel(new, old).pvalue
    assert figures["new"].p_value == pytest.approx(max(paired, 1 / 2001), abs=0.01)
    assert str(scores.over(("first-order", "new"), ("first-order", "old"), "ERR"))[0] == "+"


def test_a_reference_of_zeros_has_no_relative_difference():
    scores = Scores("old", resamples=50)
    for method, value in (("old", 0.0), ("new", 1.0)):
        scores.add("x", method, {"ERR": np.full(5, value)}, 0.0)
    gain = scores.over(("x", "new"), ("x", "old"), "ERR")
    assert (gain.relative, str(gain)) == (None, "–")


def test_the_file_has_a_line_a_figure_and_reads_back(scores):
    figures = scores.figures({("new", "first-order", "ERR"): 0.5})
    lines = list(csv.DictReader(io.StringIO(as_csv(figures))))
    assert [line["method"] for line in lines] == ["old", "new"]
    assert [line["printed"] for line in lines] == ["", "0.5"]
    assert [float(line["mean"]) for line in lines] == [figure.mean for figure in figures]


def test_folds_are_kept_apart_for_those_who_ask(scores, values):
    old, _ = scores.by_fold()
    assert old["folds"] == pytest.approx([fold.mean() for fold in values["old"]])
