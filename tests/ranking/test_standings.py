"""How rankers stand on the same lists."""

import numpy as np
import pytest
from scipy.stats import bootstrap, permutation_test
from statsmodels.stats.multitest import multipletests

from tierrank.ranking.comparison import Standing, best_mean, standings


def values(seed, lists=40):
    return np.random.default_rng(seed).random(lists)


def test_means_and_intervals_are_those_of_scipy():
    (standing,) = standings({"a": {"map": values(0)}})
    interval = bootstrap(
        (values(0),), np.mean, n_resamples=2000, rng=np.random.default_rng(0)
    ).confidence_interval
    assert standing.mean == pytest.approx(values(0).mean())
    assert (standing.low, standing.high) == pytest.approx(tuple(interval))
    assert standing.difference is None
    assert standing.p_value is None
    assert standing.queries == 40


def test_differences_are_paired_and_to_the_first():
    a, b = values(0, 12), values(1, 12)
    first, second = standings({"a": {"map": a}, "b": {"map": b}})
    assert second.difference == pytest.approx((b - a).mean())
    exact = permutation_test(
        (b, a), lambda x, y: np.mean(x - y), permutation_type="samples", n_resamples=np.inf
    )
    assert second.p_value == pytest.approx(exact.pvalue)
    assert second.difference_low < second.difference < second.difference_high
    assert first.difference is None


def test_p_values_are_corrected_by_holm_for_the_comparisons_of_a_metric():
    columns = {name: {"map": values(i), "err": values(i + 9)} for i, name in enumerate("abcd")}
    found = standings(columns)
    for metric in ("map", "err"):
        first, *others = [each for each in found if each.metric == metric]
        assert first.p_holm is None
        expected = multipletests([each.p_value for each in others], method="holm")[1]
        assert [each.p_holm for each in others] == pytest.approx(expected)


def test_metrics_come_one_after_the_other_with_all_rankers():
    columns = {name: {"map": values(i), "err": values(i + 9)} for i, name in enumerate("abc")}
    found = standings(columns)
    assert [(each.metric, each.name) for each in found] == [
        (metric, name) for metric in ("map", "err") for name in "abc"
    ]


def test_lists_without_a_value_are_left_out_for_all():
    a, b = values(0), values(1)
    a[3] = b[5] = np.nan
    _, second = standings({"a": {"map": a}, "b": {"map": b}})
    there = ~(np.isnan(a) | np.isnan(b))
    assert second.queries == 38
    assert second.mean == pytest.approx(b[there].mean())
    assert second.difference == pytest.approx((b - a)[there].mean())


def test_no_value_at_all_is_refused():
    with pytest.raises(ValueError, match="map has no value in any list"):
        standings({"a": {"map": np.full(3, np.nan)}})


@pytest.mark.parametrize(("metric", "best"), [("ndcg@10", 0.7), ("pairwise-disagreement", 0.2)])
def test_the_best_is_the_largest_unless_the_metric_is_a_loss(metric, best):
    found = [Standing("a", metric, 5, mean, 0.0, 1.0) for mean in (0.3, 0.7, 0.2)]
    assert best_mean(found) == best
