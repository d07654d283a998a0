"""Errors over a grid: who is lowest, where PL-Partition is not, and the tables that say so."""

import csv
import io
import math
import statistics

import pytest
from worths_grid import Grid, estimate
from worths_recovery import behind_table, claims_table, error_table
from worths_statistics import (
    bootstrap_table,
    convergence_table,
    coverage_of,
    coverage_table,
    slopes,
)

# by items, lists and method, for two seeds
VALUES = {
    (10, 100, "pl-partition"): (3.0, 4.0),
    (10, 100, "pl-lb"): (6.0, 8.0),
    (10, 100, "ranknet"): (2.0, 4.4),  # lower on average, in one seed of two
    (10, 100, "ranksvm"): (5.0, 5.0),
    (10, 100, "pl-topk"): (1.0, 1.0),
    (100, 100, "pl-partition"): (0.3, 0.4),
    (100, 100, "pl-lb"): (0.6, 0.4),
    (100, 100, "ranknet"): (0.5, 0.6),
    (100, 100, "ranksvm"): (0.5, 0.4),
    (100, 100, "pl-topk"): (0.1, 0.1),
}


@pytest.fixture
def grid():
    return Grid(
        (items, lists, method, seed, value)
        for (items, lists, method), values in VALUES.items()
        for seed, value in enumerate(values)
    )


def test_means_have_standard_errors_of_the_mean():
    values = [1.0, 2.0, 4.0]
    mean, error = estimate(values)
    assert mean == pytest.approx(7 / 3)
    assert error == pytest.approx(statistics.stdev(values) / math.sqrt(3))
    assert estimate([5.0]) == (5.0, None)


def test_the_oracle_does_not_compete(grid):
    assert grid.lowest(10, 100) == "ranknet"
    assert grid.lowest(100, 100) == "pl-partition"


def test_cells_where_pl_partition_is_not_the_lowest_are_listed(grid):
    (cell,) = grid.behind()
    assert (cell.items, cell.lists, cell.method) == (10, 100, "ranknet")
    assert cell.difference.mean == pytest.approx(0.3)  # of 1 and −0.4
    assert cell.difference.error == pytest.approx(0.7)
    assert cell.seeds == 1
    assert cell.ratio == pytest.approx(3.5 / 3.2)


def test_the_table_marks_the_lowest_of_every_row(grid):
    table = error_table(grid)
    names = table.columns
    for row, lowest in zip(table.rows, ("RankNet", "PL-Partition"), strict=True):
        marked = [name for name, cell in zip(names, row, strict=True) if cell.best]
        assert lowest in marked
        assert set(marked) <= {lowest, "lowest"}
        assert row[-1].text == lowest
    assert table.rows[0][1].text == "3.50e+00 ± 5e-01"
    assert [row[0].text for row in error_table(grid, [100]).rows] == ["N = 100, n = 100"]


def test_the_tables_name_what_contradicts_the_paper(grid):
    (row,) = behind_table(grid).rows
    assert [cell.text for cell in row] == [
        "N = 10, n = 100", "RankNet", "+3.00e-01 ± 7e-01", "1.09", "1 of 2",
    ]  # fmt: skip
    first, second = claims_table(grid).rows
    assert first[1].text == "in 1 of 2 cells; not at N = 10, n = 100"
    # 7 against 3.2 and 5; 0.5 against 0.55 and 0.45
    assert second[1].text == (
        "N = 10: above both in 1 of 1 cells; N = 100: above both in 0 of 1 cells"
    )


def test_no_cell_is_said_to_be_none():
    grid = Grid([(10, 5, "pl-partition", 0, 1.0), (10, 5, "pl-lb", 0, 2.0)])
    assert behind_table(grid).rows[0][0].text == "no cell"
    (only,) = claims_table(grid).rows  # without pairwise methods there is nothing to compare
    assert only[1].text == "in 1 of 1 cells"


def test_the_csv_has_a_line_a_cell_and_method(grid):
    lines = list(csv.DictReader(io.StringIO(grid.to_csv())))
    assert len(lines) == 10
    (best,) = [li for li in lines if li["items"] == "10" and li["lowest"] == "True"]
    assert (best["method"], float(best["mean"]), best["seeds"]) == ("ranknet", 3.2, "2")


def test_slopes_are_those_of_each_seed_on_log_scales():
    sizes, factors = (100, 1000, 10_000), (2.0, 3.0)
    exact = [(4, n, "pl-partition", s, c / n) for n in sizes for s, c in enumerate(factors)]
    root = [(4, n, "pl-lb", s, c / math.sqrt(n)) for n in sizes for s, c in enumerate(factors)]
    grid = Grid([*exact, *root])
    found = slopes(grid)
    assert found["pl-partition"].mean == pytest.approx(-1)
    assert found["pl-lb"].mean == pytest.approx(-0.5)
    assert found["pl-lb"].error == pytest.approx(0, abs=1e-12)
    table = convergence_table(grid)
    assert [cell.text for cell in table.rows[0][-2:]] == ["-1.00 ± 0.00", "-1.00"]
    assert [cell.text for cell in table.rows[1][-2:]] == ["-0.50 ± 0.00", "-0.50"]


def test_coverage_counts_items_over_data_sets():
    parts = [
        {"objective": "pl-partition", "without": 1,
         "covered": {"information": ["1110", "1111"], "sandwich": ["1111", "1111"]}},
        {"objective": "pl-partition", "without": 0,
         "covered": {"information": ["0111"], "sandwich": ["1111"]}},
    ]  # fmt: skip
    information, sandwich = coverage_of(parts)
    assert information.all.mean == pytest.approx(10 / 12)
    assert information.all.error == pytest.approx(statistics.stdev([0.75, 1, 0.75]) / math.sqrt(3))
    assert information.places == pytest.approx([2 / 3, 1, 1, 2 / 3])
    assert (information.replicates, information.without) == (3, 1)
    assert sandwich.all.mean == 1
    table = coverage_table([information, sandwich._replace(all=estimate([0.94, 0.96]))])
    assert [row[3].text for row in table.rows] == ["no", "yes"]
    assert table.rows[0][1].text.startswith("83.3")
    assert table.rows[0][2].text == "66.7 to 100.0"


def test_bootstrap_ratios_are_over_items_and_data_sets():
    ratios = {"widths": [1.0, 1.2], "standard errors": [0.9, 1.1]}
    even = {"widths": [1.0, 0.96], "standard errors": [1.0, 1.0]}
    table = bootstrap_table([{"information": ratios, "sandwich": even}])
    first, second = ([cell.text for cell in row] for row in table.rows)
    assert first == ["information", "1.100", "1.000 to 1.200", "1.000", "1 of 2"]
    assert second[-1] == "2 of 2"
