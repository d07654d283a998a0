"""The experiment on simulated data: its tables, and the prior that it compares with Ewens'."""

import itertools
from math import factorial

import calibration
import numpy as np
import pytest
from scipy.stats import multivariate_normal

from tierrank.aggregation.tier_cuts import random_effects


def test_tiers_by_a_prior_on_cuts_are_the_most_probable_of_all_partitions():
    for seed in range(30):
        w = np.sort(2 * np.random.default_rng(seed).normal(size=6))[::-1]
        mean, spread = random_effects(w, np.ones(6))
        weights = {}
        for cuts in itertools.product([False, True], repeat=5):
            sizes = np.diff([0, *(1 + np.flatnonzero(cuts)), 6])
            weight = factorial(len(sizes) - 1) * factorial(6 - len(sizes)) / factorial(6)
            for tier in np.split(w, np.cumsum(sizes)[:-1]):
                covariance = np.eye(len(tier)) + spread**2
                weight *= multivariate_normal.pdf(tier, np.full(len(tier), mean), covariance)
            weights[tuple(sizes)] = weight
        assert calibration.tiers_by_cuts(w) == len(max(weights, key=weights.get))


def test_rows_are_in_as_many_tiers_as_the_model_cuts():
    X, y, qid = calibration.rows_in_tiers(np.random.default_rng(0))
    assert len(X) == len(y) == len(qid)
    for query in np.unique(qid):
        grades = np.unique(y[qid == query])
        assert grades.tolist() == list(range(min(3, (qid == query).sum())))


def test_the_tables_of_places_and_tiers_have_a_column_for_every_distance(capsys, monkeypatch):
    monkeypatch.setattr(calibration, "REPLICATES", 10)
    calibration.main(["ranks", "tiers", "--quick"])
    lines = capsys.readouterr().out.splitlines()
    tables = [line for line in lines if line.startswith("|") and "---" not in line]
    assert [line.count("|") - 1 for line in tables] == [5] * 5 + [7] * 4 + [6] * 3
    assert "20 data sets; the item of 10 whose interval held its rank least often." in lines


@pytest.mark.slow
def test_the_tables_of_fits_have_a_row_for_every_kind(capsys, monkeypatch):
    monkeypatch.setattr(calibration, "REPLICATES", 10)
    calibration.main(["coefficients", "goodness", "next-pairs", "--quick"])
    printed = capsys.readouterr().out
    for row in ("information", "sandwich", *calibration.RIGHT, "300 games that were chosen"):
        assert f"\n| {row} |" in printed


def test_a_study_that_does_not_exist_is_a_message(capsys):
    with pytest.raises(SystemExit):
        calibration.main(["rank"])
    assert "there is no study 'rank': take ranks, tiers" in capsys.readouterr().err
