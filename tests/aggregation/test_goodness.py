"""Goodness of fit, against statsmodels, scipy, enumeration, and data that fit or do not."""

import itertools
import json

import numpy as np
import pytest
import statsmodels.api as sm
from scipy.special import expit
from scipy.stats import binom, binomtest
from statsmodels.stats.multitest import multipletests

import tierrank as tr
from tierrank.aggregation.goodness import Majorities, at_least, majority_chances
from tierrank.data import Games


def played(random, items=8, games=900, *, circle=0.0, ties=0.7):
    """Games by Davidson's model; `circle` makes 0 beat 1, 1 beat 2, and 2 beat 0."""
    w = 0.8 * random.normal(size=items)
    first = random.integers(items, size=games)
    second = (first + random.integers(1, items, size=games)) % items
    among = (first < 3) & (second < 3)
    turn = np.where((second - first) % 3 == 1, 1, -1) * among
    d = w[first] - w[second] + circle * turn
    chances = np.stack([np.exp(d / 2), np.full(games, ties), np.exp(-d / 2)], axis=1)
    chances /= chances.sum(axis=1, keepdims=True)
    outcome = 1 - (random.random(games)[:, None] > chances.cumsum(axis=1)).sum(axis=1)
    return Games(range(items), first, second, outcome.astype(np.int8), np.ones(games))


def ranked(random, lists, of, sizes, items=10):
    """Lists by Plackett-Luce, cut into tiers of these sizes."""
    w, cuts = 0.8 * random.normal(size=items), np.cumsum(sizes)[:-1]
    found = []
    for _ in range(lists):
        some = random.permutation(items)[:of]
        order = some[np.argsort(-w[some] - random.gumbel(size=of))]
        found.append([tuple(tier.tolist()) for tier in np.split(order, cuts)])
    return found


def test_residuals_and_statistic_are_those_of_statsmodels():
    games = played(np.random.default_rng(0), ties=0.0)
    found = tr.PairedTies("bradley-terry").fit(games).goodness(draws=2)
    design = np.zeros((len(found.first), 8))
    design[np.arange(len(design)), found.first] = 1
    design[np.arange(len(design)), found.second] = -1
    counts = np.stack([found.wins, found.losses], axis=1)
    theirs = sm.GLM(counts, design[:, 1:], family=sm.families.Binomial()).fit(tol=1e-14)
    assert found.statistic == pytest.approx(theirs.pearson_chi2, rel=1e-9)
    assert found.degrees_of_freedom == theirs.df_resid
    studentized = theirs.get_influence().resid_studentized
    np.testing.assert_allclose(found.residuals, studentized, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(found.expected_wins, theirs.fittedvalues * counts.sum(axis=1))


def test_observed_pairs_are_counted_from_the_better_item():
    fitted = tr.PairedTies().fit(played(np.random.default_rng(1)))
    games, found = fitted._fixtures.to_games(), fitted.goodness(draws=2)
    seen = np.zeros((8, 8, 3))
    for one, other, outcome, often in zip(
        games.first, games.second, games.outcome, games.weights, strict=True
    ):
        seen[one, other, 1 - outcome] += often
        seen[other, one, 1 + outcome] += often
    ours = np.stack([found.wins, found.ties, found.losses], axis=1)
    np.testing.assert_array_equal(ours, seen[found.first, found.second])
    assert (fitted.log_worths_[found.first] >= fitted.log_worths_[found.second]).all()
    items = fitted.items_
    one, other = [items[i] for i in found.first], [items[i] for i in found.second]
    chances = np.stack(fitted.predict_proba(one, other), axis=1)
    theirs = chances * ours.sum(axis=1, keepdims=True)
    expected = np.stack([found.expected_wins, found.expected_ties, found.expected_losses], axis=1)
    np.testing.assert_allclose(expected, theirs, rtol=1e-12)
    assert found.statistic == pytest.approx(((ours - theirs) ** 2 / theirs).sum())


def test_p_values_of_pairs_are_exact_and_adjusted_by_holm():
    found = tr.PairedTies().fit(played(np.random.default_rng(2), circle=2.0)).goodness(draws=2)
    for at in range(len(found.first)):
        decided = int(found.wins[at] + found.losses[at])
        p = found.expected_wins[at] / (found.expected_wins[at] + found.expected_losses[at])
        tails = [
            binomtest(int(found.wins[at]), decided, p, side).pvalue for side in ("less", "greater")
        ]
        assert found.p_values[at] == pytest.approx(min(1, 2 * min(tails)), rel=1e-9)
    theirs = multipletests(found.p_values, method="holm")[1]
    np.testing.assert_allclose(found.adjusted_p, theirs, rtol=1e-12)
    assert {found.worst(3)[n].p_value for n in range(3)} == set(np.sort(found.p_values)[:3])


def test_the_tail_of_a_binomial_is_a_beta():
    assert at_least(np.array([0.0]), np.array([4.0]), 0.3) == 1
    assert at_least(np.array([3.0]), np.array([2.0]), 0.3) == pytest.approx(
        binomtest(3, 5, 0.3, "greater").pvalue
    )


@pytest.mark.parametrize("games", [0, 1, 2, 3, 17, 40, 199, 200, 201, 1000])
def test_chances_of_a_majority_are_sums_of_the_binomial(games):
    p = np.array([0.0, 1e-9, 0.2, 0.45, 0.5, 0.51, 0.999, 1.0])
    whole = np.arange(games + 1)
    chances = binom.pmf(whole, games, p[:, None])
    expected = [
        chances[:, 2 * whole > games].sum(axis=1), chances[:, 2 * whole < games].sum(axis=1)
    ]  # fmt: skip
    found = majority_chances(np.full(len(p), float(games)), p)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13)


def test_pairs_of_any_number_of_games_have_chances_of_their_own():
    games = np.array([3.0, 1000.0, 2.5, 0.0, 200.0, 4.0])
    p = np.array([0.6, 0.51, 0.7, 0.3, 0.4, 0.5])
    up, down = majority_chances(games, p)
    one_by_one = [majority_chances(games[[n]], p[[n]]) for n in range(len(games))]
    np.testing.assert_array_equal(up, [each[0][0] for each in one_by_one])
    np.testing.assert_array_equal(down, [each[1][0] for each in one_by_one])
    assert up[2] == at_least(np.array([2.0]), np.array([0.5]), 0.7)  # of weights, as of games


@pytest.mark.parametrize("size", [6, 60])  # dense, and sparse
def test_circles_are_those_that_one_finds_by_looking_at_all_triples(size):
    random = np.random.default_rng(3)
    pairs = np.array(list(itertools.combinations(range(size), 2)))
    pairs = pairs[random.permutation(len(pairs))[: 14 if size == 6 else 170]]
    counts = random.integers(0, 4, size=(len(pairs), 3)).astype(float)
    found = Majorities.of(counts, *pairs.T, size)
    above = {(a, b) for a, b in zip(found.above.tolist(), found.below.tolist(), strict=True)}
    both = above | {(b, a) for a, b in above}
    triples = list(itertools.combinations(range(size), 3))
    complete = [t for t in triples if all(p in both for p in itertools.combinations(t, 2))]
    circles = [
        (a, b, c) for a, b, c in complete
        if {(a, b), (b, c), (c, a)} <= above or {(b, a), (c, b), (a, c)} <= above
    ]  # fmt: skip
    assert found.complete() == len(complete) > 0
    assert found.cyclic() == len(circles)


def test_a_circle_that_is_no_chance_is_found_and_named():
    found = tr.PairedTies().fit(played(np.random.default_rng(4), games=6000, circle=2.0)).goodness()
    assert found.p_value < 1e-6
    assert "contradict one worth" in found.verdict()
    first = found.triples.worst[0]
    assert set(first.items) == {0, 1, 2}
    place = first.items.index(0)
    assert first.items[(place + 1) % 3] == 1  # 0 beat 1, who beat 2, who beat 0
    assert first.adjusted_p < 0.01
    assert found.triples.p_value < 0.05
    assert {(pair.first, pair.second) for pair in found.worst(3)} <= set(
        itertools.permutations(range(3), 2)
    )
    weakest = min(
        max(p.wins, p.losses) / (p.wins + p.losses)
        for p in map(found.pair, range(len(found.first))) if {p.first, p.second} <= {0, 1, 2}
    )  # fmt: skip
    assert first.weakest == pytest.approx(weakest)


@pytest.mark.parametrize("options", [{}, {"model": "rao-kupper"}, {"home": True}])
def test_some_steps_lead_to_the_estimate_from_drawn_games(options):
    games = played(np.random.default_rng(5), games=3000)
    fitted = tr.PairedTies(**options).fit(games)
    from tierrank.aggregation.goodness import Drawing

    model = fitted._expectation(None, Drawing(1, np.random.default_rng(6)))
    (data,) = model.drawn()
    _, expected = model.compared(data)
    again = fitted._expectation(None, Drawing(1, np.random.default_rng(6)))
    copies = np.random.default_rng(6).multinomial(again._n.astype(int), again._chances)
    fixtures = again._term.fixtures
    rows = [
        (one, other, outcome, copies[kind, 1 - outcome], home)
        for kind, (one, other, home) in enumerate(
            zip(fixtures.first, fixtures.second, fixtures.at_home, strict=True)
        )
        for outcome in (1, 0, -1)
        if copies[kind, 1 - outcome]
    ]
    one, other, outcome, often, _ = (np.array(column) for column in zip(*rows, strict=True))
    drawn = Games(range(8), one, other, outcome.astype(np.int8), often.astype(float))
    refitted = tr.PairedTies(**options).fit(drawn, items=range(8))
    point = refitted._point
    theirs = again._by_pair(again._n[:, None] * again._outcomes(point))
    moved = np.abs(theirs - model.expected).max()
    assert np.abs(theirs - expected).max() < 1e-3 * moved


def test_strict_lists_are_expected_as_their_pairs():
    lists = ranked(np.random.default_rng(7), 60, 5, [1] * 5)
    fitted = tr.RankAggregator(prior="gaussian").fit(lists)
    found = fitted.goodness(draws=20)
    above = np.zeros((10, 10))
    for ranking in lists:
        for (a,), (b,) in itertools.combinations(ranking, 2):
            above[fitted.items_.index(a), fitted.items_.index(b)] += 1
    np.testing.assert_array_equal(found.wins, above[found.first, found.second])
    np.testing.assert_array_equal(found.losses, above[found.second, found.first])
    w = fitted.log_worths_
    chance = expit(w[found.first] - w[found.second])
    np.testing.assert_allclose(found.expected_wins, (found.wins + found.losses) * chance)
    assert not found.ties.any()


def test_lists_with_ties_are_expected_as_enumerated():
    random = np.random.default_rng(8)
    lists = ranked(random, 80, 4, [2, 1, 1], items=4)
    fitted = tr.RankAggregator(prior="gaussian").fit(lists)
    found = fitted.goodness(draws=400)
    w, names = fitted.log_worths_, fitted.items_
    above = np.zeros((4, 4))  # P(i in a better tier than j)
    for order in itertools.permutations(range(4)):
        tiers = [tuple(names[i] for i in order[:2]), *((names[i],) for i in order[2:])]
        if order[0] < order[1]:
            p = np.exp(fitted.log_prob([tiers])[0])
            for a, b in [(0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]:
                above[order[a], order[b]] += p
    share = above / (above + above.T + np.eye(4))
    decided = found.wins + found.losses
    theirs = share[found.first, found.second]
    np.testing.assert_allclose(found.expected_wins / decided, theirs, atol=0.015)
    plain = expit(w[found.first] - w[found.second])
    assert np.abs(theirs - plain).max() > 0.02  # the ties do matter
    np.testing.assert_array_equal(found.expected_ties, found.ties)


def test_lists_of_two_are_games_without_ties():
    games = played(np.random.default_rng(9), ties=0.0)
    by_lists = tr.RankAggregator().fit(games).goodness(draws=5)
    by_games = tr.PairedTies("bradley-terry").fit(games).goodness(draws=5)
    assert by_lists.statistic == pytest.approx(by_games.statistic, rel=1e-6)
    np.testing.assert_allclose(by_lists.residuals, by_games.residuals, atol=1e-5)
    assert by_lists.reference == by_games.reference == "χ² with 21 degrees of freedom"


def test_few_games_are_compared_with_drawn_ones_and_not_with_chi_square():
    found = (
        tr.PairedTies(prior="gaussian")
        .fit(played(np.random.default_rng(10), items=12, games=200))
        .goodness(draws=30)
    )
    assert found.draws == 30
    assert found.reference.endswith("of 30 data sets drawn from the model are as far from it")
    assert 1 / 31 <= found.p_value <= 1
    assert found.verdict().startswith("The data do not contradict one worth an item (p = 0.")
    assert repr(found) == repr(
        tr.PairedTies(prior="gaussian")
        .fit(played(np.random.default_rng(10), items=12, games=200))
        .goodness(draws=30)
    )  # the same seed


def test_as_few_data_sets_as_are_ever_drawn_can_contradict_a_model():
    """Of very many pairs only 19 are drawn, and none of them is as far off as these circles."""
    around = [(a, b, 1) for a in range(9) for b in ((a + step) % 9 for step in (1, 2, 3, 4))]
    found = tr.PairedTies("bradley-terry", prior="gaussian").fit(around * 3).goodness(draws=19)
    assert found.p_value == 1 / 20
    assert found.verdict().startswith("The data contradict one worth an item (p = 0.050: 0 of 19")
    assert found.verdict(0.04).startswith("The data do not contradict")


def test_it_prints_and_is_json():
    found = tr.PairedTies().fit(played(np.random.default_rng(4), circle=2.0)).goodness()
    said = str(found).splitlines()
    assert said[0].startswith("28 pairs of 8 items met; Pearson's statistic is ")
    assert said[3].split()[:4] == ["first", "second", "observed", "expected"]
    known = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert known["pairs"] == 28
    assert len(known["worst_pairs"]) == 10
    assert known["cyclic_triples"]["cyclic"] == found.triples.cyclic
    assert known["verdict"] == found.verdict()


def test_a_loaded_model_takes_its_data_again(tmp_path):
    games = played(np.random.default_rng(11))
    lists = ranked(np.random.default_rng(12), 60, 5, [1, 2, 2])
    for fitted, data in (
        (tr.PairedTies(uncertainty="sandwich").fit(games), games),
        (tr.RankAggregator(prior="gaussian").fit(lists), lists),
    ):
        tr.save(fitted, tmp_path / type(fitted).__name__)
        loaded = tr.load(tmp_path / type(fitted).__name__)
        with pytest.raises(ValueError, match="give them as data="):
            loaded.goodness()
        ours, theirs = loaded.goodness(data, draws=5), fitted.goodness(draws=5)
        assert ours.statistic == pytest.approx(theirs.statistic)
        np.testing.assert_allclose(ours.residuals, theirs.residuals)


def test_what_has_no_test_says_why():
    games = played(np.random.default_rng(13))
    half = tr.PairedTies("bradley-terry", ties="half").fit(games).goodness(draws=5)
    assert half.p_value is None
    assert "half a win" in half.verdict()
    score = half.wins - half.losses
    np.testing.assert_allclose(half.expected_ties, half.ties)
    assert np.abs(score - half.expected_wins + half.expected_losses).max() < 30
    json.dumps(half.to_dict(), allow_nan=False)
    two = tr.PairedTies("bradley-terry").fit([("a", "b", 1), ("b", "a", 1)]).goodness(draws=5)
    assert two.p_value is None
    assert "as many parameters as pairs" in two.verdict()
    assert two.residuals.tolist() == [0.0]  # fitted exactly
    lists = ranked(np.random.default_rng(14), 60, 5, [1] * 5)
    other = tr.RankAggregator("ranknet").fit(lists).goodness(draws=5)
    assert other.p_value is None
    assert "no covariance" in other.reference


def test_teams_and_a_rest_are_pairs_too():
    teams = [(("a", "b"), "c", 1), (("a", "c"), "b", 0), ("c", ("a", "b"), 1), ("a", "b", 1)] * 5
    found = tr.PairedTies(prior="gaussian").fit(teams).goodness(draws=5)
    assert {("a", "b"), "c"} in [{pair.first, pair.second} for pair in found.worst()]
    votes = [["a"], ["b", "a"], ["c"], ["a", "c"]] * 3
    fitted = tr.RankAggregator(prior="gaussian").fit(votes, items=["a", "b", "c"], rest="last")
    found = fitted.goodness(draws=5)
    seen = {
        (pair.first, pair.second): (pair.wins, pair.ties, pair.losses) for pair in found.worst()
    }
    assert seen["a", "b"] == (6, 3, 3)
    assert seen["a", "c"] == (9, 0, 3)


def test_wrong_arguments_are_refused():
    fitted = tr.PairedTies().fit(played(np.random.default_rng(0)))
    with pytest.raises(ValueError, match="draws"):
        fitted.goodness(draws=0)
    with pytest.raises(ValueError, match="worst"):
        fitted.goodness(worst=-1)
    with pytest.raises(ValueError, match="lacks"):
        fitted.goodness([("x", 1, 1)])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("draw", "fit"),
    [
        (lambda r: played(r, items=12, games=300), lambda: tr.PairedTies(prior="gaussian:3")),
        (lambda r: played(r), tr.PairedTies),
        (lambda r: ranked(r, 60, 5, [1] * 5), lambda: tr.RankAggregator(prior="gaussian:3")),
        (lambda r: ranked(r, 100, 6, [2, 2, 2]), lambda: tr.RankAggregator(prior="gaussian:3")),
    ],
    ids=["few games", "games", "lists", "tied lists"],
)
def test_a_right_model_is_rarely_contradicted(draw, fit):
    random = np.random.default_rng(15)
    found = [
        fit().fit(draw(random)).goodness(draws=59, random_state=n) for n in range(200)
    ]  # fmt: skip
    p = np.array([each.p_value for each in found])
    assert 0.005 <= (p <= 0.05).mean() <= 0.10  # 0.05 ± 3 standard errors
    assert 0.40 <= (p <= 0.5).mean() <= 0.60
    assert (np.array([each.adjusted_p.min() for each in found]) <= 0.05).mean() <= 0.08
    assert (np.array([each.triples.p_value for each in found]) <= 0.05).mean() <= 0.10
    residuals = np.concatenate([each.residuals for each in found])
    assert residuals.std() == pytest.approx(1, abs=0.09)
    assert residuals.mean() == pytest.approx(0, abs=0.05)
