"""Tiers from preferences: the finest partition that the graph proves, and nothing more."""

from itertools import combinations, pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tierrank.tiers import Tiers


def reachable(edges):
    """All (u, v) with a path from u to v."""
    nodes = {node for edge in edges for node in edge}
    paths = set(edges)
    for middle in nodes:
        paths |= {(u, v) for u, m in paths if m == middle for n, v in paths if n == middle}
    return nodes, paths


def ordered_partitions(nodes):
    """Every way to sort the nodes into tiers."""
    if not nodes:
        yield []
        return
    for size in range(1, len(nodes) + 1):
        for top in combinations(sorted(nodes), size):
            for lower in ordered_partitions(nodes - set(top)):
                yield [set(top), *lower]


def finest_by_brute_force(edges):
    nodes, paths = reachable(edges)

    def is_proved(partition):
        return all(
            (u, v) in paths
            for i, tier in enumerate(partition)
            for lower in partition[i + 1 :]
            for u in tier
            for v in lower
        )

    return max(filter(is_proved, ordered_partitions(nodes)), key=len)


def finest_by_cuts(edges):
    """The same where there are too many partitions: cut off every set that is above all else."""
    nodes, paths = reachable(edges)
    below = {node: sum((node, other) in paths for other in nodes) for node in nodes}
    order = sorted(nodes, key=lambda node: -below[node])
    tiers, start = [], 0
    for end in range(1, len(order) + 1):
        if all((u, v) in paths for u in order[:end] for v in order[end:]):
            tiers.append(set(order[start:end]))
            start = end
    return tiers


def layers_by_hand(edges):
    nodes = {node for edge in edges for node in edge}
    layer = dict.fromkeys(nodes, 0)
    for _ in nodes:
        for u, v in edges:
            layer[v] = max(layer[v], layer[u] + 1)
    return [{n for n in nodes if layer[n] == i} for i in range(max(layer.values()) + 1)]


@st.composite
def acyclic(draw, max_nodes):
    """Edges of an acyclic graph, sparse or dense; the numbers of the nodes say nothing."""
    n = draw(st.integers(2, max_nodes))
    names = draw(st.permutations(range(n)))
    pairs = [(names[i], names[j]) for i in range(n) for j in range(i + 1, n)]
    dropped = draw(st.sets(st.sampled_from(pairs), max_size=draw(st.sampled_from([2, len(pairs)]))))
    edges = [pair for pair in pairs if pair not in dropped]
    return draw(st.permutations(edges)) if edges else [pairs[0]]


def as_sets(tiers):
    return [[set(t) if isinstance(t, tuple) else {t} for t in one] for one in tiers.to_rankings()]


def test_exact_on_every_acyclic_graph_of_four_items():
    pairs = list(combinations(range(4), 2))
    graphs = [list(edges) for n in range(1, 7) for edges in combinations(pairs, n)]
    assert as_sets(Tiers.from_preferences(graphs)) == [finest_by_brute_force(g) for g in graphs]


@settings(max_examples=40)  # brute force is slow
@given(st.lists(acyclic(5), max_size=4))
def test_exact_is_the_finest_of_all_ordered_partitions_that_paths_prove(graphs):
    assert as_sets(Tiers.from_preferences(graphs)) == [finest_by_brute_force(g) for g in graphs]


@given(st.lists(acyclic(10), min_size=1, max_size=3))
def test_exact_on_larger_graphs(graphs):
    arrays = [np.array(g) for g in graphs]
    assert as_sets(Tiers.from_preferences(arrays)) == [finest_by_cuts(g) for g in graphs]


@given(st.lists(acyclic(8), min_size=1, max_size=3))
def test_layers_are_longest_paths(graphs):
    tiers = Tiers.from_preferences(graphs, method="layers")
    assert as_sets(tiers) == [layers_by_hand(g) for g in graphs]


@given(st.integers(1, 5).flatmap(lambda m: st.lists(st.integers(1, 4), min_size=2, max_size=m + 1)))
def test_the_preferences_of_tiers_lead_back_to_them(sizes):
    borders = np.cumsum([0, *sizes])
    tiers = [list(range(a, b)) for a, b in pairwise(borders)]
    neighbours = [(u, v) for upper, lower in pairwise(tiers) for u in upper for v in lower]
    assert as_sets(Tiers.from_preferences([neighbours])) == [[set(t) for t in tiers]]


def test_nothing_is_invented():
    apart = [("a", "b"), ("c", "d")]  # a against d was never played
    assert as_sets(Tiers.from_preferences([apart])) == [[{"a", "b", "c", "d"}]]
    assert as_sets(Tiers.from_preferences([apart], method="layers")) == [[{"a", "c"}, {"b", "d"}]]


def test_a_list_has_the_items_that_its_preferences_mention():
    tiers = Tiers.from_preferences(
        [[("b", "a")], [("c", "a"), ("c", "a")]], items=["a", "b", "c", "d"]
    )
    assert tiers.to_rankings() == [["b", "a"], ["c", "a"]]
    assert (tiers.n_items, tiers.rest, tiers.names) == (4, False, ("a", "b", "c", "d"))
    assert Tiers.from_preferences([[("b", "a")]]).names == ("b", "a")


@pytest.mark.parametrize("make", [np.array, torch.tensor])
def test_arrays_of_integers(make):
    one, two = make([[3, 1], [1, 0]]), make([[0, 2]])
    tiers = Tiers.from_preferences([one, two])
    assert tiers.to_rankings() == [[3, 1, 0], [0, 2]]
    assert (tiers.n_items, tiers.names) == (4, None)
    assert Tiers.from_preferences([one], items=9).n_items == 9
    assert Tiers.from_preferences([one], items=[3, 2, 1, 0]).items.tolist() == [0, 2, 3]
    assert Tiers.from_preferences(make([[[3, 1], [1, 0]], [[0, 2], [0, 2]]])) == tiers


def test_mixed_and_lazy_input():
    tiers = Tiers.from_preferences(pair for pair in [np.array([[3, 1]]), [[1, 3]], iter([(3, 4)])])
    assert tiers.to_rankings() == [[3, 1], [1, 3], [3, 4]]
    of_arrays = Tiers.from_preferences([[np.array([3, 1]), torch.tensor([1, 0])]])
    assert of_arrays.to_rankings() == [[3, 1, 0]]
    words = Tiers.from_preferences([np.array([["x", "y"]])])
    assert words.to_rankings() == [["x", "y"]]
    of_tuples = Tiers.from_preferences([[((1, "a"), (2, "b"))]])
    assert of_tuples.names == ((1, "a"), (2, "b"))


def test_data_frames():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"winner": ["a", "b"], "loser": ["b", "c"]})
    assert Tiers.from_preferences([frame]).to_rankings() == [["a", "b", "c"]]


def test_no_preferences_are_an_empty_tiers():
    assert len(Tiers.from_preferences([])) == 0
    assert Tiers.from_preferences([], items=3, method="layers").n_items == 3


@pytest.mark.parametrize("method", ["exact", "layers"])
def test_a_long_chain_and_a_large_complete_graph(method):
    n = 50_000
    chain = np.stack([np.arange(n), np.arange(1, n + 1)], axis=1)[::-1]
    upper = np.stack(np.triu_indices(200, 1), axis=1)
    tiers = Tiers.from_preferences([chain, upper], method=method)
    assert tiers.n_tiers.tolist() == [n + 1, 200]
    assert tiers.items.tolist() == [*range(n + 1), *range(200)]


def test_many_lists_are_as_if_each_were_alone():
    rng = np.random.default_rng(3)
    pairs = np.sort(rng.integers(0, 12, (300, 30, 2)), axis=2)
    pairs[..., 1] += 1
    together = Tiers.from_preferences(pairs, items=13)
    alone = Tiers.concat([Tiers.from_preferences([one], items=13) for one in pairs])
    assert together == alone
    assert as_sets(together)[:20] == [
        finest_by_cuts([tuple(p) for p in one.tolist()]) for one in pairs[:20]
    ]


@pytest.mark.parametrize(
    ("lists", "message"),
    [
        (
            [[("x", "y")], [("a", "b"), ("b", "c"), ("c", "a"), ("c", "d"), ("e", "a")]],
            "list 1: the preferences form a cycle: a > b > c > a\\.",
        ),
        ([[("a", "b"), ("b", "b")]], "list 0: the preferences form a cycle: b > b\\."),
        ([[("b", "a"), ("a", "b")], [("b", "a"), ("a", "b")]], "list 0: .* cycle: b > a > b\\."),
        ([np.array([[2, 1], [1, 2]])], "list 0: the preferences form a cycle: 1 > 2 > 1\\."),
    ],
)
@pytest.mark.parametrize("method", ["exact", "layers"])
def test_a_cycle_is_named(lists, message, method):
    with pytest.raises(ValueError, match=message):
        Tiers.from_preferences(lists, method=method)


def test_a_long_cycle_is_shortened():
    ring = np.stack([np.arange(1000), np.roll(np.arange(1000), -1)], axis=1)
    with pytest.raises(ValueError, match=r"0 > 1 > 2 > 3 > 4 > \.\.\. 991 more \.\.\. > 996 > 997"):
        Tiers.from_preferences([ring])


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=12))
def test_the_named_cycle_is_a_cycle_of_the_preferences(edges):
    _, paths = reachable(edges)
    if all(u != v for u, v in paths):
        assert as_sets(Tiers.from_preferences([edges])) == [finest_by_cuts(edges)]
        return
    with pytest.raises(ValueError, match="form a cycle") as caught:
        Tiers.from_preferences([edges])
    words = str(caught.value).split("cycle: ")[1].split(".")[0].split(" > ")
    walk = [int(word) for word in words]
    assert len(walk) > 1
    assert walk[0] == walk[-1]
    assert len(set(walk)) == len(walk) - 1
    assert set(pairwise(walk)) <= set(edges)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"pairs": [[("a", "b")], []]}, "list 1: there are no preferences"),
        ({"pairs": [np.zeros((0, 2), dtype=int)]}, "list 0: there are no preferences"),
        ({"pairs": [("a", "b"), ("b", "c")]}, r"list 0: 'a' at place 0 is not a pair .* \[pairs\]"),
        ({"pairs": [("ab", "bc")]}, "list 0: 'ab' at place 0 is not a pair"),
        ({"pairs": [[("a", "b")], [("a", "b"), ("a", "b", "c")]]}, "list 1: .* at place 1 is not"),
        ({"pairs": [[{"a", "b"}]]}, "list 0: .* is not a pair"),
        ({"pairs": np.array([[1, 2], [2, 3]])}, r"list 0: 1 at place 0 is not a pair"),
        ({"pairs": [np.array([[1, 2, 3]])]}, r"list 0: \[1, 2, 3\] at place 0 is not a pair"),
        ({"pairs": "ab"}, "preferences must be one sequence a list"),
        ({"pairs": 3}, "preferences must be one sequence a list"),
        ({"pairs": [3]}, "list 0: 3 is not a sequence"),
        ({"pairs": [[("a", ["b"])]]}, "list 0: item .* not hashable"),
        ({"pairs": [[("a", "b")]], "items": ["a"]}, "list 0: item 'b' is not in the catalogue"),
        ({"pairs": [np.array([[0, 5]])], "items": 5}, "list 0: item 5 is not in the catalogue"),
        ({"pairs": [np.array([[0, -1]])]}, "list 0: item -1 is not in the catalogue"),
        ({"pairs": [[("a", "b")]], "method": "fast"}, 'method must be "exact" or "layers"'),
    ],
)
def test_bad_input_is_refused_and_the_message_says_where(arguments, message):
    with pytest.raises(ValueError, match=message):
        Tiers.from_preferences(**arguments)
