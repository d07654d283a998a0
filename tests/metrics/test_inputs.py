"""What users may give, what must not matter, and what is refused."""

import inspect
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from metrics.definitions import lists_with_ties
from tierrank import metrics
from tierrank.metrics import evaluation

SEEDS = st.integers(0, 10**6)

each_measure = pytest.mark.parametrize("name", list(metrics.MEASURES))
with_empty = pytest.mark.parametrize(
    "name", [n for n in metrics.MEASURES if n not in ("dcg", "tau-b")]
)


def values_of(name, scores, labels, **rows):
    return metrics.from_name(name)(scores, labels, reduction="none", **rows)


@each_measure
@given(seed=SEEDS)
@settings(max_examples=8)
def test_the_order_of_rows_and_lists_does_not_matter(name, seed):
    scores, labels, lengths = lists_with_ties(seed, longest=12)
    qid = np.repeat(np.arange(len(lengths)), lengths)
    expected = values_of(name, scores, labels, lengths=lengths)
    shuffled = np.random.default_rng(seed).permutation(len(scores))
    values = values_of(name, scores[shuffled], labels[shuffled], qid=qid[shuffled])
    appeared = list(dict.fromkeys(qid[shuffled].tolist()))
    np.testing.assert_allclose(values, expected[appeared], rtol=1e-13, atol=1e-14)


@each_measure
@given(seed=SEEDS)
@settings(max_examples=8)
def test_only_the_order_of_the_scores_matters(name, seed):
    scores, labels, lengths = lists_with_ties(seed, longest=12)
    expected = values_of(name, scores, labels, lengths=lengths)
    for same_order in (np.exp(scores), 1e6 * scores - 3e8, (2 * scores).astype(np.int8)):
        values = values_of(name, same_order, labels, lengths=lengths)
        assert values.tolist() == expected.tolist()


@each_measure
@given(seed=SEEDS)
@settings(max_examples=5)
def test_each_list_is_measured_as_if_alone(name, seed):
    scores, labels, lengths = lists_with_ties(seed, longest=12)
    together = values_of(name, scores, labels, lengths=lengths)
    borders = np.cumsum(lengths)[:-1]
    pairs = zip(np.split(scores, borders), np.split(labels, borders), strict=True)
    alone = [metrics.from_name(name)(*rows) for rows in pairs]
    np.testing.assert_allclose(together, alone, rtol=1e-14, atol=1e-15)
    mean = metrics.from_name(name)(scores, labels, lengths=lengths)
    assert isinstance(mean, float)
    assert mean == pytest.approx(np.mean(alone), rel=1e-14)


@each_measure
def test_every_kind_of_rows_gives_the_same(name):
    scores, labels, lengths = lists_with_ties(5)
    expected = values_of(name, scores, labels, lengths=lengths).tolist()
    keys = [("user", int(i)) for i in np.repeat(np.arange(len(lengths)), lengths)]
    tuples = np.empty(len(keys), dtype=object)
    tuples[:] = keys
    kinds = [
        (scores.tolist(), labels.tolist(), {"lengths": lengths.tolist()}),
        (scores.astype(np.float32), labels.astype(np.uint8), {"lengths": lengths}),
        (torch.tensor(scores, requires_grad=True), torch.tensor(labels), {"qid": tuples}),
        (
            torch.tensor(scores).bfloat16(),
            labels.astype(float),
            {"qid": [str(key) for key in keys]},
        ),
    ]
    for one_scores, one_labels, rows in kinds:
        assert values_of(name, one_scores, one_labels, **rows).tolist() == expected


def test_whole_numbers_beyond_the_floats_are_told_apart():
    scores = np.array([2**62, 2**62 + 1])
    assert metrics.reciprocal_rank(scores, [0, 1]) == 1
    assert metrics.reciprocal_rank(scores.astype(np.uint64), [0, 1]) == 1
    assert metrics.reciprocal_rank([np.iinfo(np.int64).min, 0], [0, 1]) == 1


def test_zero_and_minus_zero_are_tied():
    assert metrics.reciprocal_rank([0.0, -0.0], [0, 1]) == 3 / 4


@with_empty
def test_a_list_with_nothing_relevant_has_the_value_of_empty(name):
    options = {"normalize": True} if name == "pairwise-disagreement" else {}
    scores, labels, lengths = [2.0, 1.0, 2.0, 1.0], [0, 0, 1, 0], [2, 2]

    def measured(empty, reduction="none"):
        metric = metrics.from_name(name, empty=empty, **options)
        return metric(scores, labels, lengths=lengths, reduction=reduction)

    good = measured(0.0)[1]
    assert measured(0.0).tolist() == [0.0, good]
    assert measured(1.0).tolist() == [1.0, good]
    assert measured(1.0, "mean") == (1 + good) / 2
    assert np.isnan(measured("skip")[0])
    assert measured("skip", "mean") == good
    assert math.isnan(measured(math.nan, "mean"))
    with pytest.raises(ValueError, match="every list is empty"):
        metrics.from_name(name, empty="skip", **options)([1.0, 2.0], [0, 0])
    with pytest.raises(ValueError, match=r'empty is a number, or "skip"'):
        measured("drop")


def test_a_gain_of_ones_own():
    value = metrics.ndcg([2.0, 1.0], [1, 3], gain=lambda labels: labels**2)
    assert value == pytest.approx((1 + 9 / math.log2(3)) / (9 + 1 / math.log2(3)))


BAD_ROWS = {
    "NaN score": (([1.0, math.nan], [1, 0]), r"scores\[1\] is NaN"),
    "infinite score": (([math.inf, 1.0], [1, 0]), r"scores\[0\] is infinite"),
    "NaN label": (([1.0, 2.0, 3.0], [1, 0, math.nan]), r"labels\[2\] is NaN"),
    "lengths of both": (([1.0, 2.0], [1]), "2 scores, but 1 labels"),
    "2-D": (([[1.0, 2.0]], [1, 0]), r"scores have shape \(1, 2\)"),
    "words": ((["a", "b"], [1, 0]), "scores must be"),
    "missing": (([1.0, 2.0], [None, "x"]), "labels must be numbers"),
    "no rows": (([], []), "there are no rows"),
}


@pytest.mark.parametrize(("rows", "message"), BAD_ROWS.values(), ids=BAD_ROWS.keys())
@each_measure
def test_bad_rows_are_refused(name, rows, message):
    with pytest.raises(ValueError, match=message):
        metrics.from_name(name)(*rows)


BAD_LISTS = {
    "both": ({"qid": [0, 0], "lengths": [2]}, "give one of them"),
    "an empty list": ({"lengths": [2, 0]}, r"lengths\[1\] = 0 is an empty list"),
    "negative": ({"lengths": [3, -1]}, r"lengths\[1\] = -1 is negative"),
    "too few": ({"lengths": [1]}, "lengths sum to 1, but there are 2 rows"),
    "fractions": ({"lengths": [1.0, 1.0]}, "1-D integers"),
    "one qid": ({"qid": [1]}, "one qid a row"),
    "no qid": ({"qid": ["a", None]}, r"qid\[1\] is missing"),
}


@pytest.mark.parametrize(("rows", "message"), BAD_LISTS.values(), ids=BAD_LISTS.keys())
def test_bad_lists_are_refused(rows, message):
    with pytest.raises(ValueError, match=message):
        metrics.ndcg([1.0, 2.0], [0, 1], **rows)


BAD_OPTIONS = [
    (metrics.ndcg, {"k": 0}, "number of places from 1 on"),
    (metrics.recall, {"k": 2.5}, "number of places from 1 on"),
    (metrics.ndcg, {"ties": "best"}, 'ties is "average" or "input"'),
    (metrics.ndcg, {"reduction": "sum"}, 'reduction is "mean" or "none"'),
    (metrics.ndcg, {"gain": "exp"}, 'gain is "exp2", "linear" or a function'),
    (metrics.ndcg, {"gain": lambda labels: labels[:1]}, "one number a label"),
    (metrics.ndcg, {"gain": lambda labels: -labels}, r"labels\[1\] = 3 has a negative gain"),
    (
        metrics.ndcg,
        {"gain": lambda labels: np.exp2(labels * 1e4)},
        r"labels\[1\] = 3 has no finite",
    ),
    (metrics.err, {"max_grade": 2}, r"labels\[1\] = 3 is not in 0 … max_grade = 2"),
    (metrics.err, {"max_grade": 0}, "max_grade is the highest label"),
    (metrics.average_precision, {"out_of": "k"}, 'out_of is "all" or "reachable"'),
    (metrics.precision, {"relevant": math.nan}, "relevant is the least label"),
    (metrics.pairwise_disagreement, {"weight": "two"}, 'weight is "gain" or "one"'),
    (metrics.pairwise_disagreement, {"gain": lambda y: -y}, r"labels\[1\] = 3 is lower than"),
]


@pytest.mark.filterwarnings("ignore:overflow")
@pytest.mark.parametrize(("measure", "options", "message"), BAD_OPTIONS)
def test_bad_options_are_refused(measure, options, message):
    with pytest.raises(ValueError, match=message):
        measure([1.0, 2.0], [0, 3], **options)


def test_negative_labels_have_no_exponential_gain_and_the_row_is_the_users():
    scores, labels, qid = [1.0, 2.0, 3.0, 4.0], [0, 1, 0, -2], ["a", "b", "b", "a"]
    with pytest.raises(ValueError, match=r"labels\[3\] = -2 is negative.*1 such"):
        metrics.ndcg(scores, labels, qid=qid)
    assert metrics.dcg(scores, labels, gain="linear") == pytest.approx(-2 + 1 / 2)


@pytest.mark.parametrize(
    ("name", "shown", "same"),
    [
        ("nDCG@10", "ndcg@10", metrics.ndcg),
        ("ndcg", "ndcg", lambda s, y: metrics.ndcg(s, y, k=None)),
        ("MAP", "map", metrics.average_precision),
        ("rr@1", "mrr@1", lambda s, y: metrics.reciprocal_rank(s, y, k=1)),
        ("P@5", "precision@5", lambda s, y: metrics.precision(s, y, k=5)),
        ("recall@2", "recall@2", lambda s, y: metrics.recall(s, y, k=2)),
        ("err@3", "err@3", lambda s, y: metrics.err(s, y, k=3)),
        ("Sharp_NDCG", "sharp-ndcg", metrics.sharp_ndcg),
        ("wpdl", "pairwise-disagreement", metrics.pairwise_disagreement),
        ("Kendall-tau-b", "tau-b", metrics.kendall_tau_b),
    ],
)
def test_names_as_people_write_them(name, shown, same):
    rng = np.random.default_rng(1)
    scores, labels = rng.normal(size=15), rng.integers(0, 4, size=15)
    metric = metrics.from_name(name)
    assert metric.name == shown
    assert metric(scores, labels) == same(scores, labels)
    assert metric.higher_is_better == (shown != "pairwise-disagreement")


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("ndgc@10", {}, "no metric 'ndgc@10'; did you mean 'ndcg'.*The metrics are ndcg, dcg"),
        ("ndcg@", {}, "after @ comes a number"),
        ("ndcg@0", {}, "after @ comes a number"),
        ("tau-b@5", {}, "has no cutoff"),
        ("ndcg@5", {"k": 3}, "give one of them"),
        ("map", {"gain": "linear"}, "map has no option 'gain'"),
    ],
)
def test_names_that_do_not_exist(name, options, message):
    with pytest.raises(ValueError, match=message):
        metrics.from_name(name, **options)


@pytest.mark.parametrize("ties", ["average", "input"])
def test_several_measures_of_the_same_rows_are_those_of_each_alone(ties):
    rng = np.random.default_rng(2)
    scores, labels = rng.normal(size=300).round(1), rng.integers(0, 4, size=300)
    qid = rng.integers(0, 30, size=300)
    several = [
        metrics.from_name(name, ties=ties) if ties == "input" and "ties" in known else name
        for name, measure in metrics.MEASURES.items()
        for known in [inspect.signature(measure).parameters]
    ]
    several += [
        "ndcg@1",
        "ndcg@3",
        "map@2",
        metrics.from_name("dcg@2", gain=lambda y: (y - 2) ** 2),
    ]
    values = metrics.evaluate(scores, labels, several, qid=qid, reduction="none")
    assert list(values) == [each if isinstance(each, str) else each.name for each in several]
    for each, value in zip(several, values.values(), strict=True):
        alone = metrics.from_name(each) if isinstance(each, str) else each
        assert np.array_equal(value, alone(scores, labels, qid=qid, reduction="none"))
    means = metrics.evaluate(scores, labels, several, qid=qid)
    assert means["ndcg@3"] == metrics.ndcg(scores, labels, qid=qid, k=3)


def test_several_measures_group_and_sort_the_rows_once(monkeypatch):
    counted = []

    def count(owner, name):
        original = getattr(owner, name)

        def counting(*given):
            counted.append(name)
            return original(*given)

        monkeypatch.setattr(owner, name, counting)

    count(evaluation, "group_rows")
    count(evaluation.Lists, "best_first")
    several = ["ndcg@1", "ndcg", "map", "err", "sharp-ndcg", "tau-b"]
    metrics.evaluate([3.0, 2.0, 1.0, 0.5], [0, 2, 1, 1], several, qid=["a", "b", "a", "b"])
    assert counted == ["group_rows", "best_first", "best_first"]  # by scores, and by labels


def test_a_measure_that_is_asked_for_twice_is_refused():
    with pytest.raises(ValueError, match="ndcg@5 is asked for twice"):
        metrics.evaluate([1.0, 2.0], [0, 1], ["ndcg@5", "nDCG@5"])
