"""Intervals and tests against scipy's, and how often they are right."""

import numpy as np
import pytest

from tierrank import metrics
from tierrank.metrics import evaluation


@pytest.mark.parametrize("n", [5, 40, 300])
@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_the_interval_is_scipys_for_the_same_generator(n, confidence):
    stats = pytest.importorskip("scipy.stats")
    values = np.random.default_rng(n).exponential(size=n)
    ours = metrics.bootstrap_interval(
        values, confidence=confidence, resamples=999, generator=np.random.default_rng(7)
    )
    theirs = stats.bootstrap(
        (values,),
        np.mean,
        confidence_level=confidence,
        n_resamples=999,
        method="BCa",
        rng=np.random.default_rng(7),
    ).confidence_interval
    assert ours.mean == pytest.approx(values.mean(), rel=1e-15)
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), rel=1e-9)


def test_smaller_blocks_change_no_interval_and_hardly_a_p_value(monkeypatch):
    a, b = np.random.default_rng(0).random((2, 50))
    options = {"resamples": 500, "generator": 3}
    whole = metrics.bootstrap_interval(a, **options), metrics.paired_test(a, b, **options)
    monkeypatch.setattr(evaluation, "_BLOCK", 64 * 50)
    assert metrics.bootstrap_interval(a, **options) == whole[0]
    assert metrics.paired_test(a, b, **options).p_value == pytest.approx(whole[1].p_value, abs=0.05)


def test_the_same_seed_gives_the_same_result():
    a, b = np.random.default_rng(0).random((2, 50))
    assert metrics.bootstrap_interval(a) == metrics.bootstrap_interval(a)
    assert metrics.paired_test(a, b, generator=5) == metrics.paired_test(a, b, generator=5)
    assert metrics.bootstrap_interval(a) != metrics.bootstrap_interval(a, generator=1)


def test_the_interval_covers_the_mean_as_often_as_it_says():
    rng = np.random.default_rng(2)
    covered = 0
    for _ in range(300):
        found = metrics.bootstrap_interval(
            rng.beta(2, 1, size=40), confidence=0.9, resamples=400, generator=rng
        )
        covered += found.low <= 2 / 3 <= found.high
    assert 0.85 <= covered / 300 <= 0.95


@pytest.mark.parametrize("seed", range(4))
def test_few_lists_are_tested_exactly_as_scipy_does(seed):
    stats = pytest.importorskip("scipy.stats")
    a, b = np.random.default_rng(seed).integers(0, 6, size=(2, 9)) / 5  # with equal sums
    ours = metrics.paired_test(a, b)
    theirs = stats.permutation_test(
        (a - b,), np.mean, permutation_type="samples", n_resamples=np.inf
    )
    assert ours.exact
    assert ours.p_value == pytest.approx(theirs.pvalue, rel=1e-12)
    assert ours.difference == pytest.approx((a - b).mean())


def test_many_lists_are_tested_by_random_flips():
    stats = pytest.importorskip("scipy.stats")
    rng = np.random.default_rng(1)
    a = rng.random(400)
    b = a + rng.normal(0.01, 0.1, size=400)
    ours = metrics.paired_test(a, b)
    assert not ours.exact
    assert ours.p_value == pytest.approx(stats.ttest_rel(a, b).pvalue, abs=0.02)
    assert ours.low < ours.difference < ours.high
    clear = metrics.paired_test(a, a + 1, resamples=99)
    assert clear.p_value == 1 / 100  # no random flip is as far, and it is never 0


def test_rankers_that_do_not_differ():
    a = np.linspace(0, 1, 30)
    assert metrics.paired_test(a, a)[:3] == (0, 0, 0)
    assert metrics.paired_test(a, a).p_value == 1
    assert metrics.bootstrap_interval([0.5]) == (0.5, 0.5, 0.5, 0.95)


@pytest.mark.parametrize("n", [0, 1, 2, 30])
def test_holms_correction_is_statsmodels(n):
    multitest = pytest.importorskip("statsmodels.stats.multitest")
    p = np.random.default_rng(n).random(n) ** 4
    p[: n // 3] = p[n // 3 : 2 * (n // 3)]  # some are equal
    expected = multitest.multipletests(p, method="holm")[1] if n else []
    np.testing.assert_allclose(metrics.holm(p), expected)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: metrics.holm([0.5, 1.5]), "from 0 to 1"),
        (lambda: metrics.holm([0.5, np.nan]), "from 0 to 1"),
        (lambda: metrics.bootstrap_interval([]), "one number a list"),
        (lambda: metrics.bootstrap_interval(0.5), 'reduction="none"'),
        (lambda: metrics.bootstrap_interval([0.5, np.nan]), r"values\[1\] is nan"),
        (lambda: metrics.bootstrap_interval([0.5, 1], confidence=95), "between 0 and 1"),
        (lambda: metrics.bootstrap_interval([0.5, 1], resamples=0), "a number from 1 on"),
        (lambda: metrics.paired_test([0.5, 1], [1]), "a has 2 values and b has 1"),
        (lambda: metrics.paired_test([0.5, 1], [1, np.inf]), r"b\[1\] is inf"),
    ],
)
def test_bad_values_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
