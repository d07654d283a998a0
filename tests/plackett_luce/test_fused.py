"""The likelihood inside torch.compile where no native core computes: operations to be fused.

Every device but the CPU is such a place; `using("plain")` makes the CPU one.
"""

import os
import shutil

import numpy as np
import pytest
import torch
from torch._dynamo.utils import counters
from torch._inductor import metrics

import tierrank as tr
from partitions import computing, ragged, value_and_gradient
from tierrank.plackett_luce.kernels import using


def batch(seed, **shape):
    """Scores and tiers; the tables of the tiers are made, because they depend on the data."""
    scores, labels, lengths = ragged(seed, **shape)
    tiers = tr.Tiers.from_labels(labels, lengths=lengths)
    tiers.tables()
    return torch.from_numpy(scores), tiers


def loss(scores, tiers):
    return -tr.log_prob(2 * scores, tiers).mean()


def both(compiled, scores, tiers):
    """Value and gradient of the loss, compiled and by the native core."""
    with computing("plain"):
        ours = value_and_gradient(lambda w: compiled(w, tiers), scores)
    return ours, value_and_gradient(lambda w: loss(w, tiers), scores)


@pytest.fixture(autouse=True)
def _forget_graphs():
    torch.compiler.reset()
    counters.clear()


def operators_in(graph):
    return [node for node in graph.graph.nodes if "tierrank" in str(node.target)]


def kept(graphs):
    """A backend that changes nothing and keeps every graph."""

    def backend(graph, _):
        graphs.append(graph)
        return graph

    return backend


@pytest.mark.parametrize(
    "sizes", [(2, 3, 3), pytest.param((9, 12, 14), marks=pytest.mark.slow)], ids=["short", "long"]
)
def test_one_graph_without_our_operator_serves_other_scores_and_other_sizes(sizes):
    """Long tiers are integrated, which makes a graph many times as large."""
    graphs = []
    compiled = torch.compile(loss, fullgraph=True, backend=kept(graphs))
    for seed, longest in enumerate(sizes):
        scores, tiers = batch(seed, lists=10 + 3 * seed, longest=longest, grades=2)
        for some in (scores.float(), -9 * scores.float()):
            ours, expected = both(compiled, some, tiers)
            torch.testing.assert_close(ours, expected, rtol=1e-5, atol=1e-4)
        assert len(graphs) <= seed + 1  # other scores need nothing new
    assert not counters["graph_break"]
    assert not any(operators_in(graph) for graph in graphs)


@pytest.mark.parametrize("backend", ["eager", pytest.param("aot_eager", marks=pytest.mark.slow)])
def test_a_graph_in_double_precision_is_as_exact(backend):
    compiled = torch.compile(loss, fullgraph=True, backend=backend)
    scores, tiers = batch(8, lists=9, longest=40, grades=4, spread=9.0)
    ours, expected = both(compiled, scores, tiers)
    torch.testing.assert_close(ours, expected, rtol=1e-12, atol=1e-11)


def test_the_choice_of_kernel_is_part_of_a_graph():
    """With the native core the operator stays in it, and compiling anew is a matter of course."""
    graphs = []
    compiled = torch.compile(loss, fullgraph=True, backend=kept(graphs))
    scores, tiers = batch(0, lists=3, longest=4, grades=2)
    plain, native = (
        both(compiled, scores, tiers)[0],
        value_and_gradient(lambda w: compiled(w, tiers), scores),
    )
    torch.testing.assert_close(plain, native)
    assert [len(operators_in(graph)) for graph in graphs] == [0, 1]


def test_in_a_graph_a_score_that_is_not_finite_makes_its_list_nan_and_no_other():
    scores, tiers = batch(3, lists=6, longest=9, grades=3)
    compiled = torch.compile(lambda w: tr.log_prob(w, tiers), fullgraph=True, backend="eager")
    first = int(tiers.lengths[0])
    with using("plain"):
        right = compiled(scores)
        for wrong in (np.nan, np.inf, -np.inf):
            some = scores.clone()
            some[first] = wrong
            found = compiled(some)
            assert found.isnan().tolist() == [False, True, False, False, False, False]
            torch.testing.assert_close(found[[0, 2, 3, 4, 5]], right[[0, 2, 3, 4, 5]])


def test_without_tables_one_graph_says_what_to_do():
    tiers = tr.Tiers.from_labels([2, 1, 1, 0])
    tiers.layout()
    compiled = torch.compile(loss, fullgraph=True, backend="eager")
    with using("plain"), pytest.raises(RuntimeError, match=r"tiers\.tables\(\)"):
        compiled(torch.zeros(4), tiers)


@pytest.mark.parametrize(
    "last", [(3, 4, 5), pytest.param((3, 4, 5, 6), marks=pytest.mark.slow)], ids=["short", "long"]
)
def test_a_graph_holds_a_rest_below_and_weights_of_tiers(last):
    rankings = [[(0, 1), 2, last], [3, 1]]
    tiers = tr.Tiers.from_rankings(rankings, items=9, rest="last")
    weights = torch.tensor([0.5, 2.0, 0.0, 1.0, 3.0])
    tiers.tables()

    def value(scores):
        return tr.log_prob(scores, tiers, tier_weights=weights)

    scores = torch.randn(2, 9, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    compiled = torch.compile(value, fullgraph=True, backend="aot_eager")
    expected = value_and_gradient(value, scores)
    with computing("plain"):
        ours = value_and_gradient(compiled, scores)
    torch.testing.assert_close(ours, expected, rtol=1e-12, atol=1e-11)


@pytest.mark.slow
@pytest.mark.skipif(
    not any(map(shutil.which, [os.environ.get("CXX", "g++"), "clang++"])),
    reason="torch's inductor needs a C++ compiler, and there is none",
)
def test_inductor_makes_few_kernels_of_it_and_the_same_numbers():
    """docs/likelihood.md quotes their number."""
    metrics.reset()
    compiled = torch.compile(loss, fullgraph=True)
    scores, tiers = batch(5, lists=8, longest=16, grades=2)
    for some in (scores.float(), -scores.float()):
        ours, expected = both(compiled, some, tiers)
        torch.testing.assert_close(ours, expected, rtol=1e-5, atol=1e-4)
    assert counters["stats"]["unique_graphs"] == 1
    assert not counters["graph_break"]
    assert 0 < metrics.generated_kernel_count < 120
