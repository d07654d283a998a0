"""Every measure against its definition: by hand, in input order, and over all orders of ties."""

import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metrics import definitions
from metrics.definitions import by_list, expected, in_input_order, lists_with_ties
from tierrank import metrics

SEEDS = st.integers(0, 10**6)

MEASURES = {
    "dcg": (metrics.dcg, definitions.dcg, {"k": None}),
    "dcg@2": (metrics.dcg, definitions.dcg, {"k": 2}),
    "ndcg": (metrics.ndcg, definitions.ndcg, {"k": None}),
    "ndcg@3": (metrics.ndcg, definitions.ndcg, {"k": 3}),
    "sharp-ndcg": (metrics.sharp_ndcg, definitions.sharp_ndcg, {}),
    "err": (metrics.err, definitions.err, {}),
    "err@3": (metrics.err, definitions.err, {"k": 3}),
    "err@1, grades to 3": (metrics.err, definitions.err, {"k": 1, "max_grade": 3}),
    "precision": (metrics.precision, definitions.precision, {"k": None}),
    "precision@4": (metrics.precision, definitions.precision, {"k": 4, "relevant": 2}),
    "recall@2": (metrics.recall, definitions.recall, {"k": 2, "relevant": 3}),
    "map": (metrics.average_precision, definitions.average_precision, {"relevant": 2}),
    "map@3": (metrics.average_precision, definitions.average_precision, {"k": 3}),
    "map@2 of 2": (
        metrics.average_precision,
        definitions.average_precision,
        {"k": 2, "out_of": "reachable"},
    ),
    "mrr": (metrics.reciprocal_rank, definitions.reciprocal_rank, {"relevant": 3}),
    "mrr@2": (metrics.reciprocal_rank, definitions.reciprocal_rank, {"k": 2, "relevant": 2}),
}
each_measure = pytest.mark.parametrize(
    ("measure", "definition", "options"), MEASURES.values(), ids=MEASURES.keys()
)


@each_measure
@given(seed=SEEDS)
@settings(max_examples=15)
def test_averaged_ties_are_the_mean_over_all_orders(measure, definition, options, seed):
    scores, labels, lengths = lists_with_ties(seed)
    values = measure(scores, labels, lengths=lengths, reduction="none", **options)
    one = partial(definition, **options)
    means = [expected(one, *rows) for rows in by_list(scores, labels, lengths)]
    np.testing.assert_allclose(values, means, rtol=1e-13, atol=1e-14)


@each_measure
@given(seed=SEEDS)
@settings(max_examples=15)
def test_ties_in_input_order_are_the_definition(measure, definition, options, seed):
    scores, labels, lengths = lists_with_ties(seed, longest=15)
    values = measure(scores, labels, lengths=lengths, ties="input", reduction="none", **options)
    one = partial(definition, **options)
    by_hand = [in_input_order(one, *rows) for rows in by_list(scores, labels, lengths)]
    np.testing.assert_allclose(values, by_hand, rtol=1e-13, atol=1e-14)


def test_the_small_case_by_hand():
    scores, labels = [0.1, 0.9, 0.5, 0.3], [2, 0, 1, 0]  # in order of the scores: 0, 1, 0, 2
    best = 3 + 1 / math.log2(3)
    value = 1 / math.log2(3) + 3 / math.log2(5)
    assert metrics.dcg(scores, labels) == pytest.approx(value, rel=1e-15)
    assert metrics.ndcg(scores, labels) == pytest.approx(value / best, rel=1e-15)
    linear = (1 / math.log2(3) + 2 / math.log2(5)) / (2 + 1 / math.log2(3))
    assert metrics.ndcg(scores, labels, gain="linear") == pytest.approx(linear, rel=1e-15)
    assert metrics.ndcg(scores, labels, k=2) == pytest.approx(1 / math.log2(3) / best, rel=1e-15)
    assert metrics.sharp_ndcg(scores, labels) == pytest.approx((2 * 1 + 0 * 3) / (3 * 3 + 2 * 1))
    assert metrics.err(scores, labels) == pytest.approx(1 / 16 / 2 + 15 / 16 * 3 / 16 / 4)
    assert metrics.precision(scores, labels, k=2) == 1 / 2
    assert metrics.precision(scores, labels) == 2 / 10
    assert metrics.recall(scores, labels, k=3) == 1 / 2
    assert metrics.average_precision(scores, labels) == pytest.approx((1 / 2 + 2 / 4) / 2)
    assert metrics.reciprocal_rank(scores, labels) == 1 / 2
    assert metrics.reciprocal_rank(scores, labels, relevant=2) == 1 / 4
    # wrong: 2 below 0, 1 and 0; 1 below 0
    assert metrics.pairwise_disagreement(scores, labels) == 3 + 2 + 3 + 1
    assert metrics.pairwise_disagreement(scores, labels, weight="one") == 4
    assert metrics.kendall_tau_b(scores, labels) == pytest.approx((1 - 4) / math.sqrt(6 * 5))


def test_large_ties_are_the_mean_over_many_random_orders():
    """What enumeration cannot reach: ties of hundreds, of every size, some without relevance."""
    rng = np.random.default_rng(3)
    lengths = np.array([1, 400, 37, 250])
    rows = lengths.sum()
    scores, labels = rng.integers(0, 3, size=rows), rng.integers(0, 5, size=rows)
    labels[1:401] = rng.random(400) < 0.02
    for measure, _, options in MEASURES.values():
        if options.get("max_grade") == 3:
            continue
        values = measure(scores, labels, lengths=lengths, reduction="none", **options)
        sampled = [
            measure(
                scores + rng.random(rows) / 2, labels, lengths=lengths, reduction="none", **options
            )
            for _ in range(150)
        ]
        spread = np.std(sampled, axis=0) / math.sqrt(len(sampled))
        assert (abs(values - np.mean(sampled, axis=0)) <= 4.5 * spread + 1e-12).all(), measure


def test_err_of_a_tie_is_cut_off_only_where_nothing_is_left():
    """Equal rows: every order is the same, so the whole tie has a closed form."""
    rows = 3000
    for grade in (1, 4):
        stop = (2**grade - 1) / 16
        alone = math.fsum(stop * (1 - stop) ** i / (i + 1) for i in range(rows))
        value = metrics.err(np.zeros(rows), np.full(rows, grade))
        assert value == pytest.approx(alone, rel=1e-14)


@given(seed=SEEDS)
@settings(max_examples=25)
def test_pairwise_disagreement_is_its_sum_over_pairs(seed):
    scores, labels, lengths = lists_with_ties(seed, longest=20, levels=6)
    lists = by_list(scores, labels, lengths)
    value = metrics.pairwise_disagreement(scores, labels, lengths=lengths, reduction="none")
    assert value.tolist() == [definitions.pairwise_disagreement(*rows) for rows in lists]
    counts = metrics.pairwise_disagreement(
        scores, labels, lengths=lengths, weight="one", reduction="none"
    )
    by_pairs = [definitions.pairwise_disagreement(*rows, weight=lambda a, b: 1) for rows in lists]
    assert counts.tolist() == by_pairs


@given(seed=SEEDS, weight=st.sampled_from(["gain", "one"]))
@settings(max_examples=25)
def test_normalised_disagreement_is_one_for_the_worst_scores(seed, weight):
    scores, labels, lengths = lists_with_ties(seed, longest=20, levels=6)

    def share(s):
        return metrics.pairwise_disagreement(
            s, labels, lengths=lengths, weight=weight, normalize=True, empty=-1, reduction="none"
        )  # fmt: skip

    apart = np.array([len(set(rows)) > 1 for _, rows in by_list(scores, labels, lengths)])
    assert share(-labels).tolist() == np.where(apart, 1.0, -1.0).tolist()
    assert share(labels).tolist() == np.where(apart, 0.0, -1.0).tolist()
    assert share(np.zeros_like(scores)).tolist() == np.where(apart, 1.0, -1.0).tolist()


@given(seed=SEEDS)
@settings(max_examples=25)
def test_disagreement_and_sharp_ndcg_sum_to_the_best(seed):
    """Theorem 3 of Lan et al. (2014), for scores without ties."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 30))
    scores, labels = rng.permutation(n), rng.integers(0, 5, size=n)
    labels[0] = 1
    best = sum((n - i) * (2**r - 1) for i, r in enumerate(sorted(labels, reverse=True), start=1))
    sharp = metrics.sharp_ndcg(scores, labels)
    assert best * (1 - sharp) == pytest.approx(metrics.pairwise_disagreement(scores, labels))


@given(seed=SEEDS, levels=st.sampled_from([2, 5, 1000]), grades=st.sampled_from([2, 5, 1000]))
@settings(max_examples=25)
def test_kendall_tau_b_is_scipys(seed, levels, grades):
    stats = pytest.importorskip("scipy.stats")
    scores, labels, lengths = lists_with_ties(
        seed, lists=8, longest=40, levels=levels, grades=grades
    )
    values = metrics.kendall_tau_b(scores, labels, lengths=lengths, empty=np.nan, reduction="none")
    theirs = [
        stats.kendalltau(*rows).statistic if len(rows[0]) > 1 else np.nan
        for rows in by_list(scores, labels, lengths)
    ]
    np.testing.assert_allclose(values, theirs, rtol=1e-12, atol=1e-12)
