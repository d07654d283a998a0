"""Rows spread over ranks, each with its part: the model of one process that has them all."""

import sys

import numpy as np
import pytest

from neural_fits import learned, sharded_faults, sharded_fits, small, some_lists, weights_of_lists
from ranks import on_ranks

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="gloo is told to use loopback")

FILLED = ["impute", "standardize"]
CASES = [
    ({"features": FILLED, "batch_lists": 5}, (0, 12, 24), (0, 12, 24), False),
    ({"features": FILLED, "batch_lists": 7}, (0, 3, 24), (0, 20, 24), True),
    ({"features": FILLED}, (0, 24, 24), (0, 24, 24), False),  # a rank without lists
    ({"features": FILLED}, (0, 0, 24), (0, 0, 24), True),
    ({"features": [*FILLED, "query-scale"], "attention_layers": 1}, (0, 23, 24), (0, 1, 24), False),
    ({"features": FILLED, "objective": "davidson"}, (0, 9, 24), (0, 12, 24), False),
]  # fmt: skip


def assert_same(found, cases):
    for number, (options, _, _, weighted) in enumerate(cases):
        data = some_lists()
        alone = small(dropout=0.0, accelerator="cpu", **options).fit(
            *data[:2], qid=data[2], eval_set=some_lists(8),
            weights=weights_of_lists() if weighted else None,
        )  # fmt: skip
        wanted = learned(alone, data)
        for each in found:
            mine = each[number]
            assert mine.keys() == wanted.keys()
            np.testing.assert_allclose(mine.pop("loss"), wanted["loss"], rtol=1e-5)
            np.testing.assert_allclose(mine.pop("metric"), wanted["metric"], rtol=1e-6)
            np.testing.assert_allclose(mine.pop("scores"), wanted["scores"], atol=1e-5)
            for name, array in mine.items():  # of the feature steps
                np.testing.assert_allclose(array, wanted[name], rtol=1e-12, atol=1e-12)


@pytest.mark.slow
def test_two_ranks_with_their_parts_learn_what_one_process_learns():
    assert_same(on_ranks(2, sharded_fits, CASES), CASES)


@pytest.mark.slow
def test_three_ranks_of_which_one_has_nothing_learn_it_too():
    cases = [({"features": FILLED}, (0, 10, 10, 24), (0, 4, 24, 24), True)]
    assert_same(on_ranks(3, sharded_fits, cases), cases)


@pytest.mark.slow
def test_parts_that_do_not_go_together_are_refused_by_all_ranks():
    one, other = on_ranks(2, sharded_faults)
    assert one == other
    assert "ranks 0 and 1: keep the rows of a query together" in one[0]
    assert "different numbers of features" in one[1]
    assert "nothing to learn" in one[2]
    assert "needs all rows in one process" in one[3]
