"""Tran et al. (2010), table 1, from a folder of files to the page."""

import numpy as np
import ordered_partitions
import pytest
from folds import DataSet
from ordered_partitions import METHODS, Matrices, first_order, measured, second_order
from printed import BASELINES, MEASURES, ORDERS, PMOP, TABLE_1

from tierrank.data import RankingData


@pytest.fixture(scope="module")
def left(run_quickly, parts):
    return run_quickly(ordered_partitions, parts)


@pytest.mark.slow
def test_the_table_has_all_methods_with_the_printed_figures_beside_ours(left):
    out, lines, more, page = left
    assert {(line["method"], line["features"], line["measure"]) for line in lines} == {
        (method, order, measure) for method in METHODS for order in ORDERS for measure in MEASURES
    }
    assert {*BASELINES, *PMOP, "PL-Partition"} <= set(METHODS)
    for line in lines:
        assert 0 <= float(line["low"]) <= float(line["mean"]) <= float(line["high"]) <= 1
        printed = TABLE_1.get((line["method"], line["features"], line["measure"]))
        assert line["printed"] == ("" if printed is None else repr(printed))
        if printed is not None:
            assert f">{printed:.4f}<" in page
        assert f"{float(line['mean']):.4f}" in page
    assert more["figures"][0]["method"] == lines[0]["method"]
    assert (out / "plot.png").read_bytes().startswith(b"\x89PNG")
    assert {path.name for path in out.iterdir()} == {
        "table.csv", "table.json", "plot.png", "page.html",
    }  # fmt: skip
    for words in ("data differ", "Machine", "Settings", "Rank Regress", "What the paper concludes"):
        assert words in page


def test_products_are_what_ranks_where_only_products_matter(left):
    _, lines, more, _ = left
    assert set(more["products"]) == {"Fold1", "Fold2"}
    assert all(number >= 1 for number in more["products"].values())
    gain = {
        (line["method"], line["features"]): float(line["mean"])
        for line in lines
        if line["measure"] == "NDCG@5"
    }
    for method in ("RankNet", "PMOP-FD", "PL-Partition", "PairTies-D"):
        assert gain[method, "second-order"] > gain[method, "first-order"] + 0.1


def test_a_threshold_that_no_product_reaches_is_said(run_quickly, parts, monkeypatch, capsys):
    fast = dict.fromkeys(METHODS, METHODS["RankNet"])
    monkeypatch.setattr(ordered_partitions, "METHODS", fast)
    _, lines, more, page = run_quickly(ordered_partitions, parts, "--threshold", "0.99")
    assert set(more["products"].values()) == {0}
    assert "No product has a correlation beyond 0.99 in Fold1, Fold2" in page
    first, second = (
        [line["mean"] for line in lines if line["features"] == order] for order in ORDERS
    )
    assert first == second
    said = capsys.readouterr()
    assert "page.html" in said.out
    assert "48/48" in said.err  # two folds, two kinds of features, twelve methods


def test_products_are_chosen_by_the_training_part_alone(parts):
    fold = next(iter(DataSet(parts, 0.1, 0)))
    first = first_order(fold)
    np.testing.assert_allclose(first.train.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(first.train.std(axis=0), 1)
    second = second_order(first, fold.train.y, 0.15, None)
    chosen = [
        (i, j)
        for i in range(4)
        for j in range(i, 4)
        if abs(np.corrcoef(first.train[:, i] * first.train[:, j], fold.train.y)[0, 1]) > 0.15
    ]
    assert (0, 1) in chosen
    expected = np.column_stack(
        [first.test, *(first.test[:, i] * first.test[:, j] for i, j in chosen)]
    )
    np.testing.assert_allclose(second.test, expected, rtol=1e-12)


def test_products_that_do_not_fit_into_memory_are_refused(parts, monkeypatch):
    fold = next(iter(DataSet(parts, 0.1, 0)))
    monkeypatch.setattr(ordered_partitions, "_memory", lambda: 1000)
    with pytest.raises(ValueError, match="--max-products"):
        second_order(first_order(fold), fold.train.y, 0.15, None)


def test_the_strongest_products_can_be_kept_alone(parts):
    fold = next(iter(DataSet(parts, 0.1, 0)))
    second = second_order(first_order(fold), fold.train.y, 0.0, 3)
    assert isinstance(second, Matrices)
    assert second.train.shape[1] == 4 + 3


def test_measures_are_those_of_the_paper():
    data = RankingData(np.zeros((3, 1)), np.array([0.0, 2.0, 1.0]), np.zeros(3))
    values = measured(np.array([3.0, 2.0, 1.0]), data, 4)
    v = [0, 3 / 16, 1 / 16]
    assert values["ERR"][0] == pytest.approx(v[1] / 2 + (1 - v[1]) * v[2] / 3)
    assert values["NDCG@1"][0] == 0
    ideal = 3 + 1 / np.log2(3)
    assert values["NDCG@5"][0] == pytest.approx((3 / np.log2(3) + 1 / 2) / ideal)


def test_the_printed_table_is_the_papers():
    # its own claims: PMOP-MH beats ListMLE by 1.82 %, and the best of each column is in bold
    ratio = TABLE_1["PMOP-MH", ORDERS[0], "ERR"] / TABLE_1["ListMLE", ORDERS[0], "ERR"]
    assert round(100 * (ratio - 1), 2) == 1.82
    bold = {
        (order, measure): max(BASELINES + PMOP, key=lambda m: TABLE_1[m, order, measure])
        for order in ORDERS
        for measure in MEASURES
    }
    assert list(bold.values()) == ["PMOP-MH", "PMOP-MH", "PMOP-Gibbs"] + ["PMOP-FD"] * 3
