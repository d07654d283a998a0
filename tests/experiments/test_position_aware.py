"""Lan et al.'s (2014) comparison, from a folder of files to the page."""

import numpy as np
import position_aware
import pytest
from position_aware import METHODS, ndcg, relative_gains

from tierrank import metrics
from tierrank.data import RankingData


@pytest.fixture(scope="module")
def left(run_quickly, parts):
    return run_quickly(position_aware, parts)


def test_the_curves_of_all_methods_stand_beside_what_is_printed(left):
    _, lines, more, page = left
    assert {(line["method"], line["measure"]) for line in lines} == {
        (method, f"NDCG@{k}") for method in METHODS for k in range(1, 11)
    }
    assert {"p-ListMLE", "ListMLE", "ListNet", "RankCosine"} < set(METHODS)
    for line in lines:
        assert f"{float(line['mean']):.4f}" in page
    mean = {line["method"]: float(line["mean"]) for line in lines if line["measure"] == "NDCG@10"}
    printed = {"ListMLE": (0.95, 0.54), "ListNet": (0.85, 0.22), "RankCosine": (1.48, 0.32)}
    for other, (first, second) in printed.items():
        assert list(more["printed"][other].values()) == [first, second]
        assert f">+{first:.2f}%<" in page
        assert f">+{second:.2f}%<" in page
        ours = mean["p-ListMLE"] / mean[other] - 1
        assert more["improvements"][other]["relative"] == pytest.approx(ours, rel=1e-9)
        assert f">{ours:+.2%}<" in page


def test_rate_and_rule_are_chosen_for_every_fold_and_method(left):
    chosen = left.more["chosen"]
    assert [(choice["fold"], choice["method"]) for choice in chosen] == [
        (fold, method) for fold in ("Fold1", "Fold2") for method in METHODS
    ]
    for choice in chosen:
        assert choice["learning rate"] in (0.1, 0.01)
        assert choice["tolerance"] in (0.1, 0.01)
        assert 1 <= choice["passes"] <= 5


def test_the_same_seed_gives_the_same_figures(left, run_quickly, parts):
    again = run_quickly(position_aware, parts)
    for one, other in zip(left.lines, again.lines, strict=True):
        assert {**one, "seconds": ""} == {**other, "seconds": ""}


def test_full_orders_of_a_long_list_are_ranked(run_quickly, tmp_path, write_rows):
    random = np.random.default_rng(0)
    path = tmp_path / "list.txt"
    X = random.normal(size=(6 * 1100, 2))
    y = np.concatenate([x[:, 0].argsort().argsort() for x in np.split(X, 6)])
    write_rows(path, X, y, np.repeat(np.arange(6), 1100))
    lines = run_quickly(position_aware, path, "--split", "0.3").lines
    mean = {(line["method"], line["measure"]): float(line["mean"]) for line in lines}
    assert np.isfinite(list(mean.values())).all()
    assert mean["ListMLE", "NDCG@10"] > 0.5


def test_gains_of_small_labels_are_those_of_ndcg():
    random = np.random.default_rng(0)
    y, qid = random.integers(0, 5, 60).astype(float), np.repeat(["a", "b", "c"], 20)
    scores = random.integers(0, 9, 60).astype(float)
    data = RankingData(np.zeros((60, 1)), y, qid)
    for k in (1, 3, 10):
        expected = metrics.ndcg(scores, y, qid=qid, k=k, reduction="none")
        np.testing.assert_allclose(ndcg(scores, data, k, "exp2"), expected, rtol=1e-12)
        expected = metrics.ndcg(scores, y, qid=qid, k=k, gain="linear", reduction="none")
        np.testing.assert_allclose(ndcg(scores, data, k, "linear"), expected, rtol=1e-12)


def test_gains_of_large_labels_do_not_overflow():
    y = np.arange(3000.0)
    gains = relative_gains(y, np.zeros(3000), "exp2")
    assert gains[-1] == 1.0
    np.testing.assert_allclose(gains[-50:-1] / gains[-49:], 0.5, rtol=1e-12)
    data = RankingData(np.zeros((3000, 1)), y, np.zeros(3000))
    assert ndcg(y, data, 10, "exp2")[0] == 1.0
    swapped = y.copy()
    swapped[[-1, -2]] = swapped[[-2, -1]]
    # gains 1/2 and 1 in place of 1 and 1/2; the eight below are 2^-2 … 2^-9
    discount = 1 / np.log2(np.arange(2, 12))
    best = (0.5 ** np.arange(10)) @ discount
    expected = 1 - (1 - 0.5) * (discount[0] - discount[1]) / best
    assert ndcg(swapped, data, 10, "exp2")[0] == pytest.approx(expected)


def test_a_query_without_anything_relevant_counts_as_zero():
    data = RankingData(np.zeros((2, 1)), np.zeros(2), np.zeros(2))
    assert ndcg(np.array([1.0, 2.0]), data, 10, "exp2").tolist() == [0.0]
