"""The optimisers that go over a matrix in parts: torch's own, step by step."""

import numpy as np
import pytest
import torch

from tierrank.extreme import learner
from tierrank.extreme.learner import RowOptimiser

ROWS, WIDTH, STEPS = 23, 5, 12


def start(seed=0):
    generator = torch.Generator().manual_seed(seed)
    return {
        "matrix": torch.randn(ROWS, WIDTH, generator=generator),
        "vector": torch.randn(ROWS, generator=generator),
    }


def gradients(step):
    generator = torch.Generator().manual_seed(100 + step)
    return {name: torch.randn(part.shape, generator=generator) for name, part in start().items()}


def touched(step):
    """Some rows, ascending; in one step none, in another all."""
    rng = np.random.default_rng(step)
    chosen = {3: np.arange(0), 5: np.arange(ROWS)}.get(step)
    if chosen is None:
        chosen = np.flatnonzero(rng.random(ROWS) < 0.3)
    return torch.from_numpy(chosen)


def assert_near(ours, theirs, near=2e-6):
    for name, part in theirs.items():
        torch.testing.assert_close(ours[name], part.detach(), rtol=near, atol=near / 10)


def torch_parameters():
    return {name: part.requires_grad_() for name, part in start().items()}


def torch_step(optimiser, parameters, slopes):
    for name, part in parameters.items():
        part.grad = slopes[name]
    optimiser.step()


def decaying(parameters):
    return [
        {"params": [parameters["matrix"]], "weight_decay": 0.1},
        {"params": [parameters["vector"]], "weight_decay": 0.0},
    ]


PEERS = {  # of whole gradients: ours, torch's
    "adam": ({"name": "adam"}, lambda p: torch.optim.Adam(p.values(), lr=0.03)),
    "adamw": (
        {"name": "adam", "weight_decay": 0.1}, lambda p: torch.optim.AdamW(decaying(p), lr=0.03)
    ),
    "lazy adam": ({"name": "adam", "lazy": True}, lambda p: torch.optim.Adam(p.values(), lr=0.03)),
    "adagrad": ({"name": "adagrad"}, lambda p: torch.optim.Adagrad(p.values(), lr=0.03)),
}  # fmt: skip


@pytest.mark.parametrize("cut", [1, 7, ROWS])
@pytest.mark.parametrize("peer", PEERS)
def test_whole_gradients_lead_where_torch_goes_however_they_are_cut(peer, cut):
    options, make = PEERS[peer]
    ours, theirs = start(), torch_parameters()
    optimiser, reference = RowOptimiser(ours, learning_rate=0.03, **options), make(theirs)
    for step in range(STEPS):
        slopes = gradients(step)
        optimiser.begin_step()
        for name, slope in slopes.items():
            for first in range(0, ROWS, cut):
                rows = slice(first, min(first + cut, ROWS))
                optimiser.update(name, rows, slope[rows])
        torch_step(reference, theirs, slopes)
        assert_near(ours, theirs)


@pytest.mark.parametrize("block", [1, 4 * WIDTH, 1 << 21])
@pytest.mark.parametrize("weight_decay", [0.0, 0.1])
def test_exact_rows_are_adam_with_zeros_elsewhere(block, weight_decay, monkeypatch):
    monkeypatch.setattr(learner, "BLOCK", block)
    ours, theirs = start(), torch_parameters()
    optimiser = RowOptimiser(ours, name="adam", learning_rate=0.03, weight_decay=weight_decay)
    groups = decaying(theirs) if weight_decay else list(theirs.values())
    reference = torch.optim.AdamW(groups, lr=0.03, weight_decay=weight_decay)
    for step in range(STEPS):
        rows, slopes = touched(step), gradients(step)
        optimiser.begin_step()
        whole = {}
        for name, slope in slopes.items():
            optimiser.update_rows(name, rows, slope[rows])
            whole[name] = torch.zeros_like(slope)
            whole[name][rows] = slope[rows]
        torch_step(reference, theirs, whole)
        assert_near(ours, theirs)


@pytest.mark.parametrize("peer", ["SparseAdam", "Adagrad"])
def test_rows_of_a_batch_lead_where_torch_goes_with_sparse_gradients(peer):
    """AdaGrad with zeros elsewhere is the same, so it is exact."""
    adam = peer == "SparseAdam"
    ours, theirs = start(), torch_parameters()
    optimiser = RowOptimiser(
        ours, name="adam" if adam else "adagrad", learning_rate=0.03, lazy=adam
    )
    reference = getattr(torch.optim, peer)(theirs.values(), lr=0.03)
    dense = torch_parameters()
    with_zeros = torch.optim.Adagrad(dense.values(), lr=0.03)
    for step in range(STEPS):
        rows, slopes = touched(step), gradients(step)
        before = {name: part.clone() for name, part in ours.items()}
        optimiser.begin_step()
        sparse, whole = {}, {}
        for name, slope in slopes.items():
            optimiser.update_rows(name, rows, slope[rows])
            sparse[name] = torch.sparse_coo_tensor(
                rows[None], slope[rows], slope.shape, check_invariants=True
            )
            whole[name] = sparse[name].to_dense()
            skipped = np.setdiff1d(np.arange(ROWS), rows)
            assert torch.equal(ours[name][skipped], before[name][skipped])
        torch_step(reference, theirs, sparse)
        # SparseAdam adds its ε before it corrects for the start, Adam after: with gradients of
        # size 1 that is 3e-7 of a step
        assert_near(ours, theirs, 1e-5 if adam else 2e-6)
        if not adam:
            torch_step(with_zeros, dense, whole)
            assert_near(ours, dense)


def test_lazy_rows_do_not_decay_until_they_are_touched():
    ours = start()
    optimiser = RowOptimiser(ours, name="adam", learning_rate=0.5, weight_decay=0.1, lazy=True)
    optimiser.begin_step()
    optimiser.update_rows("matrix", torch.tensor([2]), torch.zeros(1, WIDTH))
    decayed = start()["matrix"]
    decayed[2] *= 1 - 0.5 * 0.1
    torch.testing.assert_close(ours["matrix"], decayed)


def test_a_gradient_in_any_layout_means_the_same():
    """As a transposed product has it."""
    one, two = start(), start()
    slope = gradients(0)["matrix"]
    turned = slope.T.contiguous().T
    assert not turned.is_contiguous()
    for ours, each in ((one, slope), (two, turned)):
        optimiser = RowOptimiser(ours, name="adam", learning_rate=0.1)
        optimiser.begin_step()
        optimiser.update("matrix", slice(0, ROWS), each)
    assert torch.equal(one["matrix"], two["matrix"])


@pytest.mark.parametrize(
    "options", [{"name": "adam"}, {"name": "adam", "lazy": True}, {"name": "adagrad"}]
)
def test_what_it_remembers_is_all_it_needs_to_go_on_to_the_same_bits(options):
    def run(optimiser, steps):
        for step in steps:
            optimiser.begin_step()
            rows, slopes = touched(step), gradients(step)
            optimiser.update_rows("matrix", rows, slopes["matrix"][rows])
            optimiser.update("vector", slice(None), slopes["vector"])

    ours = start()
    whole = RowOptimiser(ours, learning_rate=0.03, **options)
    run(whole, range(6))
    memory = {name: np.array(part) for name, part in whole.memory().items()}
    assert all(name.startswith("optimiser.") for name in memory)
    again = {name: part.clone() for name, part in ours.items()}
    run(whole, range(6, STEPS))

    resumed = RowOptimiser(again, learning_rate=0.03, **options)
    resumed.restore(memory)
    run(resumed, range(6, STEPS))
    for name, part in ours.items():
        assert torch.equal(again[name], part)
    assert resumed.memory().keys() == whole.memory().keys()
    for name, part in whole.memory().items():
        np.testing.assert_array_equal(resumed.memory()[name], part)


def test_memory_is_restored_as_a_copy():
    ours = start()
    optimiser = RowOptimiser(ours, name="adam", learning_rate=0.1)
    optimiser.begin_step()
    optimiser.update("vector", slice(None), torch.ones(ROWS))
    memory = {name: np.array(part) for name, part in optimiser.memory().items()}
    other = RowOptimiser(start(), name="adam", learning_rate=0.1)
    other.restore(memory)
    other.begin_step()
    other.update("vector", slice(None), torch.ones(ROWS))
    np.testing.assert_array_equal(
        memory["optimiser.mean.vector"], optimiser.memory()["optimiser.mean.vector"]
    )


def test_other_optimisers_are_refused():
    with pytest.raises(ValueError, match='optimiser is "adam" or "adagrad", not \'sgd\''):
        RowOptimiser(start(), name="sgd", learning_rate=0.1)
