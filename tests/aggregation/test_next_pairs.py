"""Which pairs to ask next: against inverses written out, and games that are then played."""

import itertools

import numpy as np
import pytest
from scipy.special import ndtr

import tierrank as tr
from tierrank.aggregation.paired_likelihood import GamesTerm, PairedLoss
from tierrank.data import Games


def play(random, w, first, second, ties=0.7):
    d = w[first] - w[second]
    chances = np.stack([np.exp(d / 2), np.full(len(d), ties), np.exp(-d / 2)], axis=1)
    chances /= chances.sum(axis=1, keepdims=True)
    outcome = 1 - (random.random(len(d))[:, None] > chances.cumsum(axis=1)).sum(axis=1)
    return outcome.astype(np.int8)


def arena(random, items=8, games=400, ties=0.7):
    w = random.normal(size=items)
    first = random.integers(items, size=games)
    second = (first + random.integers(1, items, size=games)) % items
    outcome = play(random, w, first, second, ties)
    return w, Games(range(items), first, second, outcome, np.ones(games))


def with_expected_games(fitted, asked):
    """[parameters, parameters] covariance after games that end as often as the model expects."""
    loss = fitted._loss(fitted._fixtures)
    information = loss.hessian(fitted._point).matrix()
    for one, other, games in asked:
        chances = fitted.predict_proba(one, other, neutral=True)
        for outcome, chance in zip((1, 0, -1), chances, strict=True):
            if not chance:
                continue
            term = fitted._games_of([one], [other], 1, neutral=True, x=None)
            slope = term.log_probabilities(fitted._point, outcome)[1].toarray()[0]
            information = information + games * chance * np.outer(slope, slope)
    assert isinstance(loss, PairedLoss)
    assert isinstance(loss.games, GamesTerm)
    return np.linalg.pinv(information, rcond=1e-12)


def differences(matrix, items):
    own = np.diag(matrix)[:items]
    return own[:, None] + own - 2 * matrix[:items, :items]


def open_variance(fitted, matrix, top):
    """Σ h var over pairs that have one of the first, or both, by hand."""
    items, w = len(fitted.items_), fitted.log_worths_
    now, then = (differences(each, items) for each in (fitted._game_covariance()[0], matrix))
    first = set(np.argsort(-w)[:top].tolist())
    total = weight = 0.0
    for i in range(items):
        for j in range(i):
            if i in first or j in first:
                h = 2 * ndtr(-abs(w[i] - w[j]) / np.sqrt(now[i, j]))
                total, weight = total + h * then[i, j], weight + h
    return total / weight


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"model": "rao-kupper"},
        {"home": True},
        {"prior": "gaussian"},
        {"model": "bradley-terry"},
    ],
    ids=str,
)
def test_the_covariance_after_a_batch_is_that_of_the_information_with_its_games(options):
    ties = 0.0 if options.get("model") == "bradley-terry" else 0.7
    fitted = tr.PairedTies(**options).fit(arena(np.random.default_rng(0), ties=ties)[1])
    found = fitted.next_pairs(30, top=3)
    assert sum(pair.games for pair in found) == found.games == 30
    matrix = with_expected_games(fitted, [(p.first, p.second, p.games) for p in found])
    size = len(fitted.items_)
    centre = np.eye(size) - 1 / size
    errors = np.sqrt(np.diag(centre @ matrix[:size, :size] @ centre))
    # the inverse of a matrix that is singular along (1, …, 1) is right up to that direction
    np.testing.assert_allclose(found.standard_errors_after, errors, rtol=2e-3)
    np.testing.assert_allclose(found.after, open_variance(fitted, matrix, 3), rtol=1e-6)
    np.testing.assert_allclose(
        found.before, open_variance(fitted, fitted._game_covariance()[0], 3), rtol=1e-9
    )
    total = sum(pair.reduction for pair in found)
    assert total == pytest.approx(1 - found.after / found.before, rel=1e-9)


@pytest.mark.parametrize("model", ["davidson", "bradley-terry"])
def test_the_first_pair_is_the_best_of_all_pairs(model):
    random = np.random.default_rng(1)
    fitted = tr.PairedTies(model).fit(
        arena(random, items=6, ties=0.7 if model == "davidson" else 0.0)[1]
    )
    (pair,) = fitted.next_pairs(1, top=2)
    left = {
        (one, other): open_variance(fitted, with_expected_games(fitted, [(one, other, 1)]), 2)
        for one in range(6)
        for other in range(one)
    }
    assert {pair.first, pair.second} == set(min(left, key=left.get))


def test_lists_are_asked_by_pairs_too():
    votes = [
        ["a", "b", ("c", "d")],
        ["b", "a", "c", "d"],
        ["c", "d", "a", "b"],
        ["d", "a", "b"],
    ] * 4
    fitted = tr.RankAggregator().fit(votes)
    found = fitted.next_pairs(10, top=2)
    information = np.linalg.pinv(fitted.covariance())
    for pair in found:
        a = np.zeros(4)
        a[fitted.items_.index(pair.first)], a[fitted.items_.index(pair.second)] = 1, -1
        p = fitted.predict_proba(pair.first, pair.second)
        assert pair.probability == pytest.approx(p)
        information += pair.games * p * (1 - p) * np.outer(a, a)
    errors = np.sqrt(np.diag(np.linalg.pinv(information)))
    np.testing.assert_allclose(found.standard_errors_after, errors, rtol=1e-9)


def test_games_that_were_chosen_make_the_first_places_surer_than_random_ones():
    random = np.random.default_rng(2)
    chosen, drawn = [], []
    for _ in range(8):
        w, games = arena(random, items=20, games=800)
        fitted = tr.PairedTies().fit(games)
        found = fitted.next_pairs(200, top=4)
        often = [pair.games for pair in found]
        ask = [np.repeat([getattr(p, side) for p in found], often) for side in ("first", "second")]
        first = random.integers(20, size=200)
        by_chance = [first, (first + random.integers(1, 20, size=200)) % 20]
        best = np.argsort(-w)[:5]
        for results, (one, other) in ((chosen, ask), (drawn, by_chance)):
            more = Games(range(20), one, other, play(random, w, one, other), np.ones(200))
            again = tr.PairedTies().fit(Games.concatenate([games, more]))
            variances = differences(again.covariance(), 20)
            results.append(np.mean([variances[i, j] for i, j in itertools.pairwise(best)]))
    assert np.mean(chosen) < 0.75 * np.mean(drawn)
    assert found.after < found.before


def test_nobody_is_asked_about_what_is_known():
    games = [("a", "b", 1)] * 5 + [("b", "a", 1)] * 4 + [("b", "z", 1)] * 400 + [("z", "b", 1)]
    fitted = tr.PairedTies("bradley-terry").fit(games)
    found = fitted.next_pairs(50, top=1)
    assert [{pair.first, pair.second} for pair in found] == [{"a", "b"}]
    assert found.pairs[0].games == 50


def test_many_games_are_chosen_several_at_once():
    fitted = tr.PairedTies().fit(arena(np.random.default_rng(3))[1])
    found = fitted.next_pairs(1001)
    assert sum(pair.games for pair in found) == 1001
    assert found.top == 7  # of 8 items, the order of the first 7 is that of all
    assert "1,001 games that tell most about the first 7 places" in str(found)


@pytest.mark.parametrize("model", ["davidson", "bradley-terry"])
def test_so_many_games_separate_two_items_as_often_as_asked_for(model):
    random, ties = np.random.default_rng(4), 0.7 if model == "davidson" else 0.0
    fitted = tr.PairedTies(model).fit(arena(random, items=4, games=200, ties=ties)[1])
    needed = {
        pair: fitted.games_to_separate(*pair) for pair in itertools.pairwise(fitted.ranking())
    }
    first, second = min(needed, key=lambda pair: needed[pair] or np.inf)
    more = needed[first, second]
    assert 10 < more < 2000
    games, w, separated = fitted._fixtures.to_games(), fitted.log_worths_, 0
    code = [fitted.items_.index(item) for item in (first, second)]
    for _ in range(120):
        outcome = play(
            random, w, *np.repeat(np.array(code)[:, None], more, axis=1),
            ties=np.exp(fitted.beta_) if ties else 0.0,
        )  # fmt: skip
        new = Games(games.names, *np.repeat(np.array(code)[:, None], more, axis=1), outcome,
                    np.ones(more))  # fmt: skip
        again = tr.PairedTies(model).fit(Games.concatenate([games, new]))
        variance = differences(again.covariance(), 4)[code[0], code[1]]
        lead = again.log_worths_[code[0]] - again.log_worths_[code[1]]
        separated += abs(lead) > 1.96 * np.sqrt(variance)
    assert separated / 120 == pytest.approx(0.8, abs=0.11)  # three standard errors
    assert fitted.games_to_separate(first, second, power=0.95) > more
    assert fitted.games_to_separate(first, second, level=0.99) > more
    assert fitted.games_to_separate(second, first) == more


def test_what_is_separated_needs_no_games():
    fitted = tr.PairedTies("bradley-terry").fit([("a", "b", 1)] * 90 + [("b", "a", 1)] * 10)
    assert fitted.games_to_separate("a", "b") == 0


def test_wrong_questions_are_refused(tmp_path):
    fitted = tr.PairedTies("bradley-terry").fit([("a", "b", 1), ("b", "a", 1)])
    with pytest.raises(ValueError, match="number"):
        fitted.next_pairs(0)
    with pytest.raises(ValueError, match="top"):
        fitted.next_pairs(1, top=0)
    with pytest.raises(ValueError, match="name two"):
        fitted.games_to_separate("a", "a")
    with pytest.raises(ValueError, match="power"):
        fitted.games_to_separate("a", "b", power=1)
    with pytest.raises(ValueError, match="there is no item 'c'"):
        fitted.games_to_separate("a", "c")
    with pytest.raises(ValueError, match="no number of games"):
        fitted.games_to_separate("a", "b")
    tr.save(fitted, tmp_path / "model")
    assert str(tr.load(tmp_path / "model").next_pairs(5)) == str(fitted.next_pairs(5))
