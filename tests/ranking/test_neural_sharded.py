"""Rows spread over ranks, each with its part: the model of one process that has them all."""

import sys
import warnings
from itertools import pairwise

import numpy as np
import pytest
import torch
from scipy.sparse import csr_matrix

import tierrank as tr
from neural_fits import (
    learned,
    lists,
    sharded_faults,
    sharded_fits,
    small,
    some_lists,
    weights_of_lists,
)
from ranks import killed_once, on_ranks, on_threads
from sharded_work import command
from tierrank.ranking.base import check_parts
from tierrank.ranking.comparison import hold_out
from tierrank.ranking.features.base import column_statistics, parts_of
from tierrank.ranks import ALONE
from tierrank.tiers import Tiers
from tierrank.training.loop import ListBatches, Share, as_float32

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="gloo is told to use loopback")

FILLED = ["impute", "standardize"]
CASES = [
    ({"features": FILLED, "batch_lists": 5}, (0, 12, 24), (0, 12, 24), False),
    ({"features": FILLED, "batch_lists": 7}, (0, 3, 24), (0, 20, 24), True),
    ({"features": FILLED}, (0, 24, 24), (0, 24, 24), False),  # a rank without lists
    ({"features": FILLED}, (0, 0, 24), (0, 0, 24), True),
    ({"features": [*FILLED, "query-scale"], "attention_layers": 1}, (0, 23, 24), (0, 1, 24), False),
    ({"features": FILLED, "objective": "davidson"}, (0, 9, 24), (0, 12, 24), False),
    ({"features": FILLED, "refit": True, "members": 2}, (0, 24, 24), (0, 0, 24), True),
]  # fmt: skip


# What ranks compute together, by threads ---------------------------------------------------------


def test_a_batch_is_the_same_lists_whatever_the_parts():
    X, y, qid = lists(n_lists=30, longest=5)
    by_list = np.argsort(qid, kind="stable")
    X, y, lengths = X[by_list], y[by_list], np.bincount(qid)
    weights = np.random.default_rng(1).random(30)
    teach = np.flatnonzero(lengths > 1)
    ends = np.concatenate([[0], np.cumsum(lengths)])

    def batches(ranks, begin, end):
        rows = slice(ends[begin], ends[end])
        own = teach[(teach >= begin) & (teach < end)] - begin
        tiers = Tiers.from_labels(y[rows], lengths=lengths[begin:end])
        matrix = as_float32(X[rows])
        some = ListBatches(
            matrix,
            tiers,
            weights[begin:end],
            size=4,
            lists=own,
            seed=3,
            ranks=ranks,
        )
        found = []
        for epoch in range(2):
            some.begin(epoch)
            for step in range(len(some)):
                features, batch = some.load(step, Share(), torch.device("cpu"))
                found.append((some.part(step), *_by_row(features, batch)))
        return found

    whole = batches(ALONE, 0, 30)
    for borders in ((0, 15, 30), (0, 30, 30), (0, 2, 9, 30)):
        parts = list(pairwise(borders))
        found = on_threads(
            len(parts), lambda ranks, parts=parts: batches(ranks, *parts[ranks.rank])
        )
        for step, (part, *rows) in enumerate(whole):
            together = np.concatenate([each[step][1] for each in found])
            assert all(each[step][0] == pytest.approx(part, rel=1e-12) for each in found)
            np.testing.assert_allclose(_sorted(together), _sorted(rows[0]), rtol=1e-6)


def _by_row(features, batch):
    """[rows, features and weight of the list], of the lists that count."""
    weights = np.repeat(batch.weights.numpy(), batch.lengths)
    rows = np.column_stack([features.numpy(), weights])
    return [rows[weights > 0]]


def _sorted(rows):
    return rows[np.lexsort(rows.T)]


@pytest.mark.parametrize("form", [np.asarray, csr_matrix])
def test_statistics_of_columns_are_those_of_all_rows(form):
    rng = np.random.default_rng(0)
    X = np.where(rng.random((50, 6)) < 0.5, rng.normal(1e6, 1.0, (50, 6)), 0.0)
    X[rng.random(X.shape) < 0.1] = np.nan
    X[:, 4], X[:, 5] = 7.0, np.nan
    X[:9, 3] = np.nan  # all that the first rank has
    wanted = column_statistics(form(X))
    borders = (0, 9, 9, 50)

    def statistics(ranks):
        with parts_of(ranks):
            return column_statistics(form(X[borders[ranks.rank] : borders[ranks.rank + 1]]))

    for each in on_threads(3, statistics):
        for name, numbers in each._asdict().items():
            np.testing.assert_allclose(numbers, getattr(wanted, name), rtol=1e-12, err_msg=name)


def test_a_share_of_all_queries_is_held_out():
    X, y, qid = lists()
    order = np.argsort(qid, kind="stable")
    data = tr.data.RankingData(X[order], y[order], qid[order])
    wanted = hold_out(data, 0.3, 5)
    parts = on_threads(3, lambda ranks: hold_out(data.part((ranks.rank, 3)), 0.3, 5, ranks))
    for number in (0, 1):
        found = np.concatenate([each[number].X for each in parts])
        np.testing.assert_array_equal(found, wanted[number].X)


def test_a_query_in_two_parts_is_refused_by_name():
    qids = [np.array(["a", "b"]), np.array(["c", "7"]), np.array([9, 7])]
    X = np.zeros((2, 3))
    on_threads(2, lambda ranks: check_parts(X, qids[ranks.rank], ranks))
    with pytest.raises(ValueError, match="query 7 has rows in the parts of ranks 1 and 2"):
        on_threads(3, lambda ranks: check_parts(X, qids[ranks.rank], ranks))
    with pytest.raises(ValueError, match="different numbers of features"):
        on_threads(2, lambda ranks: check_parts(X[:, ranks.rank :], None, ranks))


# Processes ---------------------------------------------------------------------------------------


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


# The command -------------------------------------------------------------------------------------


def write_lists(folder):
    """A file of LETOR and one of Parquet with the same rows, and one to stop by."""
    import pyarrow as pa
    from pyarrow import parquet

    for name, seed in (("train", 0), ("valid", 8)):
        X, y, qid = lists(seed, n_lists=60)
        order = np.argsort(qid, kind="stable")
        X, y, qid = X[order], y[order], qid[order]
        tr.data.write_letor(folder / f"{name}.txt", X, y, qid)
        columns = {f"x{i}": X[:, i] for i in range(X.shape[1])}
        table = pa.table({"qid": qid, "label": y, **columns})
        parquet.write_table(table, folder / f"{name}.parquet", row_group_size=20)


def training(folder, kind, *more):
    """What is typed."""
    words = ["train", folder / f"train.{kind}", "--model", "neural", "--set", "dropout=0",
             "--set", "hidden=[8]", "--no-refit", *more]  # fmt: skip
    return [str(each) for each in words]


def assert_same_model(one, other):
    one, other = tr.load(one), tr.load(other)
    X = lists(3)[0]
    np.testing.assert_allclose(one.history_.loss, other.history_.loss, rtol=1e-5)
    np.testing.assert_allclose(one.history_.metric, other.history_.metric, rtol=1e-6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some know the names of columns
        np.testing.assert_allclose(one.predict(X), other.predict(X), atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["txt", "parquet"])
def test_the_command_under_torchrun_trains_the_model_of_one_process(tmp_path, kind):
    write_lists(tmp_path)
    held_out = ["--valid", tmp_path / "valid.txt"] if kind == "txt" else []
    arguments = training(tmp_path, kind, "--set", "max_epochs=4", *held_out)
    launched = {"TORCHELASTIC_RUN_ID": "test"}
    two = [*arguments, "--out", str(tmp_path / "two")]
    first, other = on_ranks(2, command, two, **launched)
    assert first[0] == other[0] == 0, (first, other)
    assert "2 processes, each with its part of the queries" in first[1]
    assert other[1] == ""
    code, said = command([*arguments, "--out", str(tmp_path / "one")])
    assert code == 0
    tables = [text.partition("NeuralRanker")[0] for text in (first[1], said)]
    assert tables[0] == tables[1]  # of all rows, not of the first rank's
    measured = [text.partition("ndcg@10\n")[2].partition(" epochs")[0] for text in (first[1], said)]
    assert measured[0] == measured[1]
    assert_same_model(tmp_path / "two", tmp_path / "one")
    assert not (tmp_path / "two" / "checkpoint").exists()
    code = [code for code, _ in on_ranks(2, command, two, **launched)]
    assert code == [1, 1]  # there is a model, and both end
    found = on_ranks(2, command, two, **launched, TORCHELASTIC_RESTART_COUNT="1")
    assert [code for code, _ in found] == [0, 0]
    assert "nothing to go on with" in found[0][1]


@pytest.mark.slow
def test_a_rank_that_is_killed_under_torchrun_comes_back_and_goes_on(tmp_path):
    write_lists(tmp_path)
    arguments = training(
        tmp_path, "txt", "--set", "max_epochs=60", "--set", "patience=null",
        "--valid", tmp_path / "valid.txt", "--checkpoint-every", 0.2,
    )  # fmt: skip
    said = killed_once(arguments, tmp_path / "killed", "checkpoint*.safetensors")
    assert "begins anew" not in said
    assert command([*arguments, "--out", str(tmp_path / "whole")])[0] == 0
    one, other = (tr.load(tmp_path / name) for name in ("killed", "whole"))
    assert one.history_.steps == other.history_.steps == list(range(1, 61))
    np.testing.assert_allclose(one.history_.loss, other.history_.loss, rtol=1e-3)
