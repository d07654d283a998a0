"""The same numbers as other people's software, where its conventions are chosen."""

import numpy as np
import pytest

from metrics.definitions import by_list, lists_with_ties
from tierrank import metrics

SEEDS = range(5)


def lists_of_two_and_more(seed, **options):
    scores, labels, lengths = lists_with_ties(seed, **options)
    keep = np.repeat(lengths > 1, lengths)
    return scores[keep], labels[keep], lengths[lengths > 1]


@pytest.mark.parametrize("k", [None, 1, 5])
@pytest.mark.parametrize("seed", SEEDS)
def test_scikit_learn_averages_ties_with_linear_gain(seed, k):
    peer = pytest.importorskip("sklearn.metrics")
    rows = lists_of_two_and_more(seed, longest=20, levels=4)
    for measure, theirs in ((metrics.ndcg, peer.ndcg_score), (metrics.dcg, peer.dcg_score)):
        values = measure(*rows[:2], lengths=rows[2], k=k, gain="linear", reduction="none")
        others = [theirs([labels], [scores], k=k) for scores, labels in by_list(*rows)]
        np.testing.assert_allclose(values, others, rtol=1e-12, atol=1e-14)


def test_scikit_learn_gives_zero_to_a_list_with_nothing_relevant():
    peer = pytest.importorskip("sklearn.metrics")
    assert peer.ndcg_score([[0, 0]], [[2.0, 1.0]]) == 0 == metrics.ndcg([2.0, 1.0], [0, 0])


@pytest.mark.parametrize("seed", SEEDS)
def test_scikit_learns_average_precision_without_ties(seed):
    peer = pytest.importorskip("sklearn.metrics")
    rng = np.random.default_rng(seed)
    scores, labels = rng.permutation(30), rng.integers(0, 2, size=30)
    theirs = peer.average_precision_score(labels, scores)
    assert metrics.average_precision(scores, labels) == pytest.approx(theirs, rel=1e-12)


def trec_eval(scores, labels, lengths, measures):
    """pytrec_eval on lists as they are, documents named by their row."""
    peer = pytest.importorskip("pytrec_eval")
    judged, run = {}, {}
    for i, (score, label) in enumerate(by_list(scores, labels, lengths)):
        names = [f"{row:06d}" for row in range(len(score))]
        judged[str(i)] = dict(zip(names, label, strict=True))
        run[str(i)] = dict(zip(names, score, strict=True))
    results = peer.RelevanceEvaluator(judged, measures).evaluate(run)
    return [results[str(i)] for i in range(len(lengths))]


@pytest.mark.parametrize("seed", SEEDS)
def test_trec_eval_with_its_rule_for_ties(seed):
    """It orders tied documents by name, descending: here, the last row first.

    So its lists are ours with the rows reversed, ties as they come.
    """
    scores, labels, lengths = lists_with_ties(seed, longest=20, levels=4)
    names = ["ndcg", "ndcg_cut.5", "map", "map_cut.5", "recip_rank", "P.5", "recall.5"]
    theirs = trec_eval(scores, labels, lengths, set(names))
    rows = {"scores": scores[::-1], "labels": labels[::-1], "lengths": lengths[::-1]}
    options = {"ties": "input", "reduction": "none"}
    ours = {
        "ndcg": metrics.ndcg(**rows, **options, k=None, gain="linear"),
        "ndcg_cut_5": metrics.ndcg(**rows, **options, k=5, gain="linear"),
        "map": metrics.average_precision(**rows, **options),
        "map_cut_5": metrics.average_precision(**rows, **options, k=5),
        "recip_rank": metrics.reciprocal_rank(**rows, **options),
        "P_5": metrics.precision(**rows, **options, k=5),
        "recall_5": metrics.recall(**rows, **options, k=5),
    }
    for name, values in ours.items():
        others = [one[name] for one in theirs]
        np.testing.assert_allclose(values[::-1], others, rtol=1e-12, atol=1e-14, err_msg=name)


def test_trec_eval_gives_zero_to_a_list_with_nothing_relevant():
    (values,) = trec_eval(np.array([2.0, 1.0]), np.array([0, 0]), [2], {"ndcg", "map"})
    assert values == {"ndcg": 0, "map": 0}


@pytest.mark.parametrize("k", [None, 3])
def test_rax_takes_ties_as_they_come(k):
    pytest.importorskip("jax")
    rax = pytest.importorskip("rax")
    rng = np.random.default_rng(0)
    scores, labels = rng.integers(0, 4, size=(6, 8)) / 2, rng.integers(0, 3, size=(6, 8))
    labels[0] = 0  # nothing relevant: 0 for all of them
    hits = (labels > 0).astype(float)
    rows = {"lengths": [8] * 6, "k": k, "ties": "input", "reduction": "none"}
    pairs = [
        (metrics.ndcg, rax.ndcg_metric, labels),
        (metrics.dcg, rax.dcg_metric, labels),
        (metrics.average_precision, rax.ap_metric, hits),
        (metrics.reciprocal_rank, rax.mrr_metric, hits),
        (metrics.precision, rax.precision_metric, hits),
        (metrics.recall, rax.recall_metric, hits),
    ]
    for ours, theirs, y in pairs:
        values = ours(scores.ravel(), y.ravel(), **rows)
        others = theirs(scores, y.astype(float), topn=k, reduce_fn=None)
        np.testing.assert_allclose(values, others, rtol=1e-5, atol=1e-6, err_msg=ours.__name__)


@pytest.mark.parametrize("seed", SEEDS)
def test_lightgbm_takes_ties_as_they_come_and_an_empty_list_as_one(seed):
    """A booster without trees predicts the initial scores, and LightGBM evaluates them."""
    lightgbm = pytest.importorskip("lightgbm")
    scores, labels, lengths = lists_with_ties(seed, lists=30, longest=15, grades=2)
    booster_data = lightgbm.Dataset(
        np.zeros((len(scores), 1)),
        label=labels,
        group=lengths,
        init_score=scores,
        params={"verbose": -1, "feature_pre_filter": False},
    )
    booster = lightgbm.Booster(
        {
            "objective": "lambdarank",
            "metric": ["ndcg", "map"],
            "eval_at": [1, 3, 5],
            "verbose": -1,
            "num_threads": 1,
        },
        booster_data,
    )
    theirs = {name: value for _, name, value, _ in booster.eval_train()}
    rows = {"lengths": lengths, "ties": "input", "empty": 1.0}
    for k in (1, 3, 5):
        assert metrics.ndcg(scores, labels, k=k, **rows) == pytest.approx(theirs[f"ndcg@{k}"])
        ours = metrics.average_precision(scores, labels, k=k, out_of="reachable", **rows)
        assert ours == pytest.approx(theirs[f"map@{k}"])
