"""Connectivity: whether lists determine worths, against all pairs and against the likelihood."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

import tierrank as tr
from tierrank.aggregation.connectivity import Disconnected, connectivity, leave_out
from tierrank.data import Games, Rankings
from tierrank.losses.pairwise import davidson
from tierrank.tiers import Tiers


@st.composite
def catalogues(draw, max_items=7, max_lists=6, rest=None):
    """Tiers over a small catalogue: short lists and long ones, ties, with a rest or without."""
    n = draw(st.integers(1, max_items))
    rest = draw(st.booleans()) if rest is None else rest
    rankings = []
    for _ in range(draw(st.integers(0, max_lists))):
        order = draw(st.permutations(range(n)))[: draw(st.integers(0 if rest else 1, n))]
        ranking: list[tuple[int, ...]] = []
        for item in order:
            if ranking and draw(st.booleans()):
                ranking[-1] += (item,)
            else:
                ranking.append((item,))
        rankings.append(ranking)
    return Tiers.from_rankings(rankings, items=n, rest="last" if rest else "absent")


def edges_of_all_pairs(tiers, ties_connect=False):
    """[items, items] whether one stands above the other in some list, by looking at every pair."""
    above = np.zeros((tiers.n_items, tiers.n_items), dtype=bool)
    for ranking in tiers.to_rankings():
        levels = [set(t) if isinstance(t, tuple) else {t} for t in ranking]
        if ties_connect:
            for level in levels:
                for i in level:
                    above[i, list(level)] = True
        if tiers.rest:
            levels.append(set(range(tiers.n_items)).difference(*levels))
        for upper, lower in combinations(levels, 2):
            for i in upper:
                above[i, list(lower)] = True
    return above


def reachable(above):
    """Warshall's transitive closure; every item reaches itself."""
    reach = above | np.eye(len(above), dtype=bool)
    for middle in range(len(reach)):
        reach |= reach[:, [middle]] & reach[[middle]]
    return reach


def check_against_all_pairs(tiers, ties_connect=False):
    found = connectivity(tiers, ties_connect=ties_connect)
    above = edges_of_all_pairs(tiers, ties_connect)
    reach, touch = reachable(above), reachable(above | above.T)
    strong, group = found.components, found.groups
    assert np.array_equal(group[:, None] == group, touch)
    assert np.array_equal(strong[:, None] == strong, reach & reach.T)
    assert found.connected == reach.all()
    # Best first: whoever is above another has no larger number.
    assert (strong[:, None] <= strong)[above].all()
    assert sorted(set(strong.tolist())) == list(range(found.n_components))
    assert sorted(set(group.tolist())) == list(range(found.n_groups))
    between = above & (strong[:, None] != strong)
    for number in range(found.n_components):
        assert found.never_below[number] == (not between[:, strong == number].any())
        assert found.never_above[number] == (not between[strong == number].any())
    return found


@settings(max_examples=300)
@given(catalogues())
def test_components_and_groups_are_those_of_the_graph_of_all_pairs(tiers):
    check_against_all_pairs(tiers)


@settings(max_examples=200)
@given(catalogues())
def test_ties_connect_the_items_of_written_tiers_if_asked(tiers):
    check_against_all_pairs(tiers, ties_connect=True)


@settings(max_examples=100)
@given(st.lists(st.sets(st.integers(0, 5), max_size=6), min_size=1, max_size=8))
def test_sets_over_the_rest_nested_or_not(named):
    tiers = Tiers.from_rankings([[one] if one else [] for one in named], items=7, rest="last")
    check_against_all_pairs(tiers)


@pytest.mark.parametrize("rest", ["absent", "last"])
@pytest.mark.parametrize("lists", [5, 30, 120])
def test_larger_catalogues(rest, lists):
    rng = np.random.default_rng(lists)
    rankings = []
    for _ in range(lists):
        places = rng.integers(0, 4, size=rng.integers(1, 9))
        items = rng.choice(60, len(places), replace=False)
        levels = [tuple(items[places == place].tolist()) for place in range(4)]
        rankings.append([level for level in levels if level])
    check_against_all_pairs(Tiers.from_rankings(rankings, items=60, rest=rest))


def test_a_long_chain_of_nested_lists_over_the_rest():
    n = 40
    lists = [[tuple(range(size))] for size in range(1, n)]
    found = check_against_all_pairs(Tiers.from_rankings(lists, items=n, rest="last"))
    assert found.components.tolist() == list(range(n))
    lists.append([n - 1])  # the last stands above all others once, and closes the circle
    assert check_against_all_pairs(Tiers.from_rankings(lists, items=n, rest="last")).connected


def subsets_that_may_rise(log_likelihood, n_items):
    """Proper sets of items whose worths can be raised together for ever at no loss."""
    start = torch.linspace(-0.4, 0.5, n_items, dtype=torch.float64)
    free = []
    for size in range(1, n_items):
        for chosen in combinations(range(n_items), size):
            raised = start.clone()
            raised[list(chosen)] += 60.0
            # An item outside that once stood above one inside costs about 60.
            if log_likelihood(raised) > log_likelihood(start) - 20.0:
                free.append(set(chosen))
    return free


@settings(max_examples=60)
@given(catalogues(max_items=5, max_lists=4))
def test_the_likelihood_has_a_maximum_iff_all_items_are_connected(tiers):
    found = connectivity(tiers)
    free = subsets_that_may_rise(lambda w: float(tr.log_prob(w, tiers).sum()), tiers.n_items)
    assert found.connected == (not free)
    for number in range(1, found.n_components):
        assert set(np.flatnonzero(found.components < number).tolist()) in free


@settings(max_examples=40)
@given(catalogues(max_items=4, max_lists=4, rest=False))
def test_a_likelihood_of_ties_has_a_maximum_iff_ties_connect_all_items(tiers):
    found = connectivity(tiers, ties_connect=True)
    free = subsets_that_may_rise(
        lambda w: -float(davidson(w, tiers, reduction="sum")) if len(tiers) else 0.0, tiers.n_items
    )
    assert found.connected == (not free)


def test_the_estimate_of_connected_items_is_finite_and_of_others_runs_away():
    def fitted(rankings):
        tiers = Tiers.from_rankings(rankings, items=3)

        def loss(scores):
            w = torch.tensor(scores, requires_grad=True)
            value = -tr.log_prob(w, tiers).sum()
            value.backward()
            return value.item(), w.grad.numpy()

        return minimize(loss, np.zeros(3), jac=True, method="BFGS", options={"gtol": 1e-9})

    apart = [[0, (1, 2)], [(0, 1), 2], [1, 2]]  # 2 never stands above another
    assert not connectivity(Tiers.from_rankings(apart, items=3)).connected
    runaway = fitted(apart).x
    assert runaway[2] < runaway[:2].min() - 10
    together = [*apart, [2, 0]]
    assert connectivity(Tiers.from_rankings(together, items=3)).connected
    fit = fitted(together)
    assert np.abs(fit.x - fit.x.mean()).max() < 3
    assert np.abs(fit.jac).max() < 1e-6


def test_named_items_come_back_by_name_and_unnamed_by_number():
    rankings = [["ann", "bob"], ["bob", "ann"], ["cy", "ann"]]
    found = connectivity(Tiers.from_rankings(rankings, items=["dee", "ann", "bob", "cy"]))
    assert repr(found) == "Connectivity(4 items, 2 groups, 3 components)"
    assert [found.group_items(g) for g in range(2)] == [("dee",), ("ann", "bob", "cy")]
    assert [found.component_items(c) for c in range(3)] == [("dee",), ("cy",), ("ann", "bob")]
    numbers = connectivity(Tiers.from_rankings([[2, 0]], items=3))
    assert [numbers.component_items(c) for c in range(3)] == [(1,), (2,), (0,)]
    with pytest.raises(ValueError, match="there is no component 3: they are 0 to 2"):
        found.component_items(3)
    with pytest.raises(ValueError, match="there is no group -1"):
        found.group_items(-1)


def test_a_list_of_one_tier_says_nothing_unless_ties_connect():
    tiers = Tiers.from_rankings([[(0, 1, 2)]])
    assert connectivity(tiers).n_groups == 3
    assert connectivity(tiers, ties_connect=True).connected
    # Nobody compared the items of the rest, even where ties connect.
    over_rest = Tiers.from_rankings([[(0, 1)], []], items=4, rest="last")
    assert connectivity(over_rest, ties_connect=True).components.tolist() == [0, 0, 1, 2]


def test_a_list_of_the_whole_catalogue_has_no_rest():
    tiers = Tiers.from_rankings([[0, 1, 2], [2, 0]], items=3, rest="last")
    assert connectivity(tiers).connected


@pytest.mark.parametrize("items", [0, 1])
def test_catalogues_with_nothing_to_compare_are_connected(items):
    found = connectivity(Tiers.from_rankings([], items=items))
    assert found.connected
    assert (found.n_groups, found.n_components) == (items, items)
    assert "nothing to compare" in found.explain()


def test_rows_of_labels_are_refused():
    with pytest.raises(ValueError, match=r"rows of labels.*Tiers\.from_rankings"):
        connectivity(Tiers.from_labels([1, 0]))


def explained(rankings, limit=10, **options):
    text = connectivity(Tiers.from_rankings(rankings, **options)).explain(limit)
    return " ".join(text.split())


def test_the_explanation_of_connected_items():
    assert explained([["a", "b"], ["b", "a"]]) == (
        "Comparisons lead from each of the 2 items to every other, in both directions."
    )


def test_the_explanation_names_groups_and_what_to_do():
    text = explained(
        [["a", "b"], ["b", "a"], ["c", "d", "e"], ["e", "d", "c"]], items=[*"abcde", "f"]
    )
    assert "determine the worths of all 6 items" in text
    assert (
        "2 groups of items that were never compared with each other, directly or through others: "
        "{c, d, e}, {a, b}." in text
    )
    assert "- f was never compared with another item." in text
    assert 'prior="gaussian" or prior="pseudo-item"' in text
    assert "leave items out with leave_out (component=" in text
    assert " ".join(text.split()).endswith("exclude=), or fit each group by itself.")


def test_the_explanation_names_winners_and_losers():
    text = explained([["ann", "bob", "cy", "dee"], ["cy", "bob"], ["eve", "cy"], ["bob", "flo"]])
    assert "- ann, eve stand above others and never below one: the likelihood has no" in text
    assert "the worths would grow for ever" in text
    assert "- dee, flo stand below others and never above one" in text
    assert "- The others are connected with each other: {bob, cy}." in text
    assert text.endswith("or fit each component by itself.")
    assert "- ann stands above others" in explained([["ann", "bob", "cy"], ["cy", "bob"]])


def test_the_explanation_says_which_set_stands_above_which():
    circle = [["a", "b"], ["b", "a"], ["c", "d", "e"], ["e", "d", "c"], ["a", "e"]]
    assert "{a, b} stand above {c, d, e} and never below one of them" in explained(circle)
    longer = [*circle, ["e", "x"], ["x", "y"], ["y", "z"], ["z", "y"], ["w", "b"]]
    assert (
        "In this order of sets, no item ever stands above one of an earlier set: {a, b}, "
        "{c, d, e}, x, {y, z}." in explained(longer)
    )
    assert "w stands above others" in explained(longer)
    assert "earlier set: {a, b}, {c, d and 1 more} (the largest of 4)." in explained(longer, 2)


def test_sets_that_never_meet_are_not_said_to_stand_above_each_other():
    lists = [["a", "b"], ["b", "a"], ["c", "d"], ["d", "c"], ["a", "low"], ["top", "low"]]
    text = explained([*lists, ["top", "c"]])
    assert "stand above {c, d}" not in text
    assert "no item ever stands above one of an earlier set: {a, b}, {c, d}." in text


def test_long_sets_are_shortened_with_counts():
    pairs = [pair for i in range(0, 200, 2) for pair in ([i, i + 1], [i + 1, i])]
    text = explained(pairs, limit=3, items=300)
    assert "There are 100 groups" in text
    assert "{0, 1}, {2, 3}, {4, 5} and 97 more." in text
    assert "200, 201, 202 and 97 more were never compared with another item." in text
    stars = [
        one for i in range(0, 50, 5) for one in ([i, i + 1], [i, i + 2, i + 3], [i + 1, i + 4])
    ]
    assert "0, 5, 10 and 7 more stand above others" in explained(stars, limit=3)
    chains = [[i, i + 1, i + 2, i + 3] for i in range(0, 40, 4)]
    assert "There are such sets in 7 more groups." in explained(chains)
    assert "No item was ever compared with another: 0, 1 and 5 more." in explained([], 2, items=7)


def test_strange_names_do_not_break_the_text():
    long = "x" * 100
    text = explained([["", "two\nlines"], ["two\nlines", long]])
    assert "'' stands above others" in text
    assert f"{'x' * 37}... stands below" in text
    with pytest.raises(ValueError, match="limit = 0"):
        explained([["a", "b"]], limit=0)


@pytest.mark.slow
@pytest.mark.parametrize("rest", ["absent", "last"])
def test_a_million_items_in_a_hundred_thousand_lists(rest):
    rng = np.random.default_rng(3)
    n, lists, length = 1_000_000, 100_000, 10
    # Distinct items in each list: one of each tenth of the catalogue, in any order.
    items = rng.integers(0, n // length, (lists, length)) * length + np.arange(length)
    tiers = Tiers.from_rankings(rng.permuted(items, axis=1), items=n, rest=rest)
    found = connectivity(tiers)
    named = np.zeros(n, dtype=bool)
    named[items] = True
    if rest == "last":  # named items are above nearly all others; the unnamed never are
        assert found.n_groups == 1
        assert found.n_components == 1 + int((~named).sum())
        assert (found.components[named] == 0).all()
    else:
        assert found.n_groups >= int((~named).sum()) + 1
        assert np.array_equal(np.bincount(found.groups)[found.groups] == 1, ~named)


# -- leaving items out ----------------------------------------------------------------------------


def played(games, names):
    """How many games each side has: counted one by one."""
    return {name: sum(name in (one, two) for one, two, _ in games) for name in names}


@settings(max_examples=60)
@given(st.integers(0, 10**6), st.integers(2, 9), st.integers(1, 25), st.integers(0, 4))
def test_what_is_left_of_games_is_connected_and_everybody_has_so_many(seed, size, rows, least):
    rng = np.random.default_rng(seed)
    games = [(*rng.permutation(size)[:2].tolist(), int(rng.integers(-1, 2))) for _ in range(rows)]
    whole = Games.from_rows(games)
    try:
        left = leave_out(whole, min_games=least, component="largest")
    except ValueError:  # nobody is left
        assume(False)
    tiers = left.to_rankings().tiers
    assert connectivity(tiers, ties_connect=True).connected
    kept = [game for game in games if set(game[:2]) <= set(left.names)]
    assert len(left) == len(kept)
    assert min(played(kept, left.names).values()) >= least
    if not least:  # the largest of all sets between which wins and ties lead both ways
        reaches = np.eye(size, dtype=bool)
        for one, two, end in games:
            reaches[one, two] |= end >= 0
            reaches[two, one] |= end <= 0
        for middle in range(size):
            reaches |= np.outer(reaches[:, middle], reaches[middle])
        both = reaches & reaches.T
        assert len(left.names) == both.sum(axis=1).max()
        assert both[np.ix_(left.names, left.names)].all()


def test_who_falls_below_the_least_games_when_others_go_goes_too():
    chain = [("a", "b", 1), ("b", "c", 1), ("c", "d", 1), ("d", "e", 0)]
    ring = [("x", "y", 1), ("y", "z", 1), ("z", "x", 1)]
    left = leave_out(Games.from_rows(chain + ring), min_games=2)
    assert left.names == ("x", "y", "z")  # the chain is gone from both ends
    weighted = Games.from_rows(chain, weights=[2, 2, 2, 2])
    assert len(leave_out(weighted, min_games=2)) == 4


def test_ties_connect_games_but_not_lists_unless_asked():
    games = Games.from_rows([("a", "b", 1), ("b", "a", 1), ("b", "c", 0)])
    assert leave_out(games, component="largest").names == ("a", "b", "c")
    assert leave_out(games, component="largest", ties_connect=False).names == ("a", "b")
    rankings = games.to_rankings()
    assert leave_out(rankings, component="largest").items == ("a", "b")
    assert leave_out(rankings, component="largest", ties_connect=True).items == ("a", "b", "c")


def test_after_what_the_error_advises_the_fit_is_finite():
    votes = Rankings.from_rankings([["ann", "bob", "cy"], ["cy", "bob"], ["cy", "bob", "dee"]])
    with pytest.raises(Disconnected, match=r'leave_out \(component="largest"'):
        tr.RankAggregator().fit(votes)
    fitted = tr.RankAggregator().fit(leave_out(votes, component="largest"))
    # bob stands above cy in one list of three: log-odds of 1/2 between the two
    worth = dict(zip(fitted.items_, fitted.log_worths_, strict=True))
    assert worth["bob"] - worth["cy"] == pytest.approx(np.log(1 / 2))
    assert leave_out(votes, exclude=["ann", "dee"]).items == ("bob", "cy")


def test_what_is_left_of_numbered_items_goes_with_lists_of_the_same():
    lists = Rankings.from_rankings([[0, 1, 2], [2, 1]])
    games = Games.from_rows([(1, 2, 1), (0, 1, 0)]).to_rankings()
    joined = Tiers.concat([lists.tiers, lists.without([]).tiers, games.tiers])
    assert joined.to_rankings() == [[0, 1, 2], [2, 1]] * 2 + [[1, 2], [(0, 1)]]


def test_games_are_called_games_where_they_do_not_determine_the_worths():
    games = Games.from_rows([("a", "b", 1), ("b", "c", 0)])
    with pytest.raises(Disconnected, match=r"^The games do not determine the worths of all 3"):
        tr.PairedTies().fit(games)
    with pytest.raises(Disconnected, match=r"^The games do not determine"):
        tr.RankAggregator().fit(games)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"component": "second"}, 'component is "all" or "largest"'),
        ({"min_games": -1}, "min_games is a number of games, 0 or more"),
        ({"min_games": float("nan")}, "min_games is a number of games, 0 or more"),
        ({"min_games": 9}, "nobody is left: of 2 items"),
        ({"exclude": ["b"]}, "nobody is left: of 2 items"),
        ({"exclude": ["x"]}, "no item 'x' to leave out"),
        ({"exclude": "ab"}, r"items to leave out in a list, as in \['ab'\]"),
    ],
)
def test_what_leaves_nobody_or_makes_no_sense_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        leave_out(Rankings.from_rankings([["a", "b"]]), **options)


@pytest.mark.parametrize("data", [[["a", "b"]], pd.DataFrame({"a": [1]}), None])
def test_other_than_rankings_and_games_are_told_what_to_become(data):
    with pytest.raises(ValueError, match=r"takes Rankings or Games.*from_rankings"):
        leave_out(data, exclude=["a"])


def test_the_largest_component_is_one_of_players_not_of_teams():
    with pytest.raises(ValueError, match="single players"):
        leave_out(Games.from_rows([(("a", "b"), "c", 1)]), component="largest")
