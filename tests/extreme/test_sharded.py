"""Labels spread over ranks: the numbers of one process, whatever the number of ranks."""

import sys

import numpy as np
import pytest
import torch

import tierrank as tr
from extreme_files import write_parts
from ranks import killed_once, on_ranks
from sharded_work import (
    CPU,
    LABELS,
    best_labels,
    command,
    diverging,
    features_spread,
    fit,
    losses_and_gradients,
    own_rows,
    refused,
    several_fits,
    stepped,
    steps,
    two_labels,
)
from tierrank.extreme import FUSED
from tierrank.extreme.network import Network
from tierrank.extreme.sharding import Shards
from tierrank.ranks import Ranks
from tierrank.training.loop import own_randomness, seed_generators

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="gloo is told to use loopback")


def assert_near(found, wanted, dtype):
    near = 1e-10 if dtype == "torch.float64" else 2e-5
    np.testing.assert_allclose(found, wanted, rtol=near, atol=near * max(1, np.abs(wanted).max()))


@pytest.mark.parametrize("ranks", [2, 3])
def test_losses_gradients_and_best_labels_are_those_of_one_process(ranks):
    found, wanted = on_ranks(ranks, losses_and_gradients), losses_and_gradients()
    assert {objective for objective, *_ in wanted} == set(FUSED)
    for case, parts in wanted.items():
        dtype = case[2]
        for each in found:
            assert_near(each[case][0], parts[0], dtype)
            assert_near(each[case][1], parts[1], dtype)
            np.testing.assert_array_equal(each[case][1], found[0][case][1])
        for number in (2, 3):  # each rank's are of its labels
            assert_near(
                np.concatenate([each[case][number] for each in found]), parts[number], dtype
            )


@pytest.mark.parametrize("ranks", [2, 3])
def test_the_best_labels_are_merged_with_equal_scores_by_label(ranks):
    wanted = best_labels()
    for each in on_ranks(ranks, best_labels):
        for (labels, scores), (wanted_labels, wanted_scores) in zip(each, wanted, strict=True):
            np.testing.assert_array_equal(labels, wanted_labels)
            np.testing.assert_allclose(scores, wanted_scores, rtol=1e-5, atol=1e-5)


DOUBLE = {"dtype": torch.float64}
LONG = [
    ((100,), {"input_dropout": 0.1, "hidden_dropout": 0.2, **DOUBLE}),
    ((100,), {"input_dropout": 0.1, "hidden_dropout": 0.2}),
    ((100,), {"input_dropout": 0.1, "hidden_dropout": 0.2, "spread": True}),
]
SHORT = [
    *(((3, objective), DOUBLE) for objective in FUSED),
    *(((3, objective), {"sampler": "uniform", **DOUBLE}) for objective in FUSED),
    ((3,), {"sampler": "frequency", "glas": 5.0, "hidden_dropout": 0.2, **DOUBLE}),
    ((3,), {"sampler": "in-batch", "optimiser": "adagrad", **DOUBLE}),
    ((3,), {"glas": 5.0, "labels": 5000, **DOUBLE}),  # pairs are counted step by step
    ((3,), {"labels": 5, "a_row": 1, "sampler": "uniform", **DOUBLE}),
    ((3,), {"skip": 15, "input_dropout": 0.1, **DOUBLE}),  # as many as there are features
    ((3,), {"skip": 4, "sampler": "uniform", **DOUBLE}),
    *(((3,), {"spread": True, "input_dropout": 0.2, "optimiser": name, **DOUBLE})
      for name in ("adam", "adagrad")),
    ((3,), {"spread": True, "sampler": "frequency", "skip": 4, **DOUBLE}),
    ((3,), {"spread": True, "skip": 15, "rows": 2, "batch": 1, **DOUBLE}),  # few features a batch
]  # fmt: skip
MESH = [
    ((3,), {"batch": 3, **DOUBLE}),  # the last batch has two rows
    ((3,), {"batch": 1, "hidden_dropout": 0.2, **DOUBLE}),  # a rank has none
    ((3, "ranknet"), {"sampler": "frequency", "glas": 5.0, **DOUBLE}),
    ((3,), {"batch": 3, "spread": True, "input_dropout": 0.2, **DOUBLE}),
]


@pytest.mark.parametrize(
    ("ranks", "data_ranks", "cases"),
    [(2, 1, LONG), (3, 1, SHORT), (2, 1, SHORT), (4, 2, MESH), (3, 3, MESH)],
    ids=["100 steps", "three ranks", "two ranks", "a mesh", "rows alone"],
)
def test_steps_are_those_of_one_process(ranks, data_ranks, cases):
    on_each = [(arguments, options | {"data_ranks": data_ranks}) for arguments, options in cases]
    found, wanted = on_ranks(ranks, stepped, on_each), stepped(cases)
    holders = ranks // data_ranks
    for number, (losses, arrays, sent) in enumerate(wanted):
        double = "dtype" in cases[number][1]
        near = {"rtol": 1e-9, "atol": 1e-9} if double else {"rtol": 1e-5, "atol": 1e-5}
        shared = ["labels", "label_bias", *["features"] * cases[number][1].get("spread", False)]
        assert sent == 0
        ours = [each[number] for each in found]
        for each in ours:
            np.testing.assert_allclose(each[0], losses, **near)
            assert each[0] == ours[0][0]
        for name, array in arrays.items():
            parts = [each[1][name] for each in ours]
            if name.rpartition(".")[2] in shared:
                np.testing.assert_allclose(np.concatenate(parts[:holders]), array, **near)
                for rank, part in enumerate(parts):
                    np.testing.assert_array_equal(part, parts[rank % holders])
            else:
                for part in parts:  # to the bit, although they are not sent
                    np.testing.assert_array_equal(part, parts[0])
                np.testing.assert_allclose(parts[0], array, **near)


def test_a_step_sends_the_same_bytes_whatever_the_number_of_labels():
    few, many = 2_000, 50_000
    cases = [
        ((2, objective), {"labels": labels, "sampler": sampler, "a_row": 4})
        for objective in ("pl-partition", "ranknet")
        for sampler in (None, "uniform")
        for labels in (few, many)
    ]
    (found, _) = on_ranks(2, stepped, cases)
    sent = [each[2] for each in found]
    for one, other in zip(sent[::2], sent[1::2], strict=True):
        assert one > 0
        assert other == pytest.approx(one, rel=0.05)
    # float32 of batch · (hidden + max) and the labels of its rows, float64 sums, loss and stop
    at_most = 4 * 8 * (5 + 1) + 4 * 8 * 5 + 8 * (8 + 2)
    assert 0.8 * at_most < sent[0] <= at_most


def test_spread_features_send_the_first_layer_of_a_batch_besides():
    cases = [((2,), {"labels": 2_000, "rows": 16, "spread": spread}) for spread in (False, True)]
    (found, _) = on_ranks(2, stepped, cases)
    held, spread = found
    assert spread[2] - held[2] == 4 * 8 * 8  # float32 of batch · hidden
    assert len(spread[1]["features"]) == len(held[1]["features"]) // 2  # 7 of 15


def test_where_one_rank_goes_astray_or_is_asked_to_stop_all_know():
    for each in on_ranks(2, diverging):
        assert each == [True, True, False, "the loss is nan"] * 2


@pytest.mark.parametrize("ranks", [1, 2, 3, 7])
def test_first_weights_are_the_slices_of_what_one_process_draws(ranks, monkeypatch):
    monkeypatch.setattr("tierrank.extreme.network.DRAWN", 64)

    def drawn(rank=0, ranks=1):
        some = Ranks()
        some.rank, some.size = rank, ranks
        with own_randomness(CPU):
            seed_generators(3, CPU)
            network = Network(11, LABELS, (6, 4), ranks=some)
            network.reset()
            return {**{n: p.detach() for n, p in network.named_parameters()}, "next": torch.rand(3)}

    whole = drawn()
    for spread, sizes in (
        (False, {"labels": LABELS, "label_bias": LABELS}),
        (True, {"labels": LABELS, "label_bias": LABELS, "features": 11}),
    ):
        for rank in range(ranks):
            with features_spread(spread):
                found = drawn(rank, ranks)
            for name, part in found.items():
                size = sizes.get(name)
                own = (
                    slice(None)
                    if size is None
                    else slice(size * rank // ranks, size * (rank + 1) // ranks)
                )
                torch.testing.assert_close(part, whole[name][own], rtol=0, atol=0)


def test_one_process_is_alone():
    shards = Shards.join(CPU)
    assert shards.labels.part(5) == slice(0, 5)
    assert shards.labels.agree("this") == "this"
    assert shards.sent == 0
    steps(2)


# Fits ------------------------------------------------------------------------------------------


def assert_same_fit(found, wanted):
    for rank, each in enumerate(found):
        np.testing.assert_allclose(each["loss"], wanted["loss"], rtol=1e-5)
        np.testing.assert_allclose(each["metric"], wanted["metric"], rtol=1e-6)
        np.testing.assert_array_equal(each["top"], wanted["top"])
        np.testing.assert_allclose(each["scores"], wanted["scores"], atol=2e-5)
        for name, array in each["held"].items():
            np.testing.assert_array_equal(array, found[0]["held"][name])
        assert each["score"] == pytest.approx(wanted["score"])
        assert each["same"]
        assert (each["told"] > 0) == (rank == 0)


def assert_same_model(one, other):
    (info, arrays), (other_info, others) = tr.load(one).to_state(), tr.load(other).to_state()
    assert info["params"] == other_info["params"]
    assert arrays.keys() == others.keys()
    for name, array in arrays.items():
        assert array.dtype == others[name].dtype
        np.testing.assert_allclose(array, others[name], atol=2e-5, err_msg=name)


def test_fits_and_saved_models_are_those_of_one_process(tmp_path):
    whole = fit(tmp_path / "alone")
    calls = [
        ((tmp_path / "spread",), {}),
        ((tmp_path / "refit",), {"refit": True, "members": 1}),
        ((tmp_path / "features",), {"spread": True}),
    ]
    first, second, third = zip(*on_ranks(2, several_fits, calls), strict=True)
    assert_same_fit(first, whole)
    assert_same_model(tmp_path / "spread", tmp_path / "alone")
    files = sorted(path.suffix for path in (tmp_path / "spread").iterdir())
    assert files == [".json", ".safetensors"]
    assert_same_fit(second, fit(tmp_path / "refit alone", refit=True, members=1))
    assert_same_model(tmp_path / "refit", tmp_path / "refit alone")
    assert_same_fit(third, whole)
    assert_same_model(tmp_path / "features", tmp_path / "alone")
    assert set(third[0]["held"]) == {"feature_bias"}


def test_rows_are_shared_too_in_a_mesh_of_data_and_labels(tmp_path):
    state = {"data_ranks": 2, "checkpoint": tmp_path / "state", "spread": True}
    calls = [((tmp_path / "mesh",), state)]
    assert_same_fit([one for (one,) in on_ranks(4, several_fits, calls)], fit(tmp_path / "alone"))
    assert_same_model(tmp_path / "mesh", tmp_path / "alone")


@pytest.mark.parametrize(("ranks", "spread"), [(1, True), (3, False), (3, True)])
def test_a_checkpoint_of_two_ranks_is_gone_on_with_by_others(tmp_path, ranks, spread):
    whole = fit(tmp_path / "whole")
    state = tmp_path / "state"
    options = {"checkpoint": state, "spread": spread}
    for at in (2, 3):  # in the first training, and in a later one
        stopped = on_ranks(2, several_fits, [((), {"stop_at": at, **options})])
        assert stopped == [["stopped"], ["stopped"]]
    assert list(state.rglob("labels-*.safetensors"))
    call = ((tmp_path / "model",), options)
    if ranks == 1:
        found = [fit(*call[0], **call[1])]
    else:
        found = [one for (one,) in on_ranks(ranks, several_fits, [call])]
    assert_same_fit(found, whole)
    assert_same_model(tmp_path / "model", tmp_path / "whole")


def test_a_checkpoint_of_one_process_is_gone_on_with_by_two(tmp_path):
    whole = fit(tmp_path / "whole")
    state = tmp_path / "state"
    options = {"checkpoint": state, "spread": True}
    assert fit(stop_at=2, **options) == "stopped"
    calls = [((tmp_path / "model",), options)]
    assert_same_fit([one for (one,) in on_ranks(2, several_fits, calls)], whole)


def test_what_ranks_cannot_share_is_refused():
    assert "data_ranks=3 does not divide the 2 processes" in on_ranks(2, refused, 3)[0]
    assert "data_ranks=2 does not divide the 1 processes" in refused(2)
    assert "data_ranks is a whole number" in refused(0)
    for said in on_ranks(3, two_labels):
        assert "3 processes share the labels, but there are 2: start fewer processes" in said
    for said in on_ranks(2, own_rows):
        assert "give all of them the same X and Y" in said


# The command -----------------------------------------------------------------------------------


def test_the_command_under_torchrun_trains_the_model_of_one_process(tmp_path):
    write_parts(tmp_path)
    arguments = [
        "extreme", "train", tmp_path / "train.txt", "--hidden", 8, "--learning-rate", 0.02,
        "--epochs", 2, "--set", "members=2", "--valid", tmp_path / "test.txt",
    ]  # fmt: skip
    arguments = [str(each) for each in arguments]
    launched = {"TORCHELASTIC_RUN_ID": "test"}
    first, other = on_ranks(2, command, [*arguments, "--out", str(tmp_path / "two")], **launched)
    assert first[0] == other[0] == 0, (first, other)
    assert "of 2 processes, together" in first[1]
    assert f"The model is in {tmp_path / 'two'}" in first[1]
    assert "All of it together: valid p@5" in first[1]
    assert other[1] == ""
    assert command([*arguments, "--out", str(tmp_path / "one")])[0] == 0
    assert_same_model(tmp_path / "two", tmp_path / "one")
    assert not (tmp_path / "two" / "checkpoint").exists()
    # what is finished stays as it is, also when torchrun starts it once more
    again = launched | {"TORCHELASTIC_RESTART_COUNT": "1"}
    found = on_ranks(2, command, [*arguments, "--out", str(tmp_path / "two")], **again)
    assert [code for code, _ in found] == [0, 0]
    assert "nothing to go on with" in found[0][1]


@pytest.mark.slow
def test_a_rank_that_is_killed_under_torchrun_comes_back_and_goes_on(tmp_path):
    write_parts(tmp_path)
    words = [
        "extreme", "train", tmp_path / "train.txt", "--hidden", 8, "--learning-rate", 0.002,
        "--epochs", 25, "--batch", 4, "--valid-fraction", 0, "--checkpoint-every", 0.2,
    ]  # fmt: skip
    arguments = [str(each) for each in words]
    said = killed_once(arguments, tmp_path / "killed", "labels-*.safetensors")
    assert "begins anew" not in said
    assert command([*arguments, "--out", str(tmp_path / "whole")])[0] == 0
    one, other = (tr.load(tmp_path / name) for name in ("killed", "whole"))
    np.testing.assert_allclose(one.history_.loss, other.history_.loss, rtol=1e-3)
    assert one.history_.steps == other.history_.steps == list(range(1, 26))
