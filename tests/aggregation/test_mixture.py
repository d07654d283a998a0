"""Mixtures: groups that were drawn are found, by the right likelihood, with right errors."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import logsumexp

import tierrank as tr
from tierrank.aggregation.lists import distinct, weighted_lists
from tierrank.aggregation.mixture import MixtureLoss
from tierrank.aggregation.terms import GaussianPrior, PseudoItem

WORTHS = np.array([
    [1.5, 1.1, 0.8, 0.5, 0.1, -0.1, -0.5, -0.8, -1.1, -1.5],
    [-0.8, 0.5, -1.5, 1.5, 1.1, 0.8, -0.1, -1.1, 0.1, -0.5],
])  # fmt: skip


def drawn_lists(random, lists, share=0.35, items=10):
    """Lists with ties by the worths of two groups, and whose they are."""
    whose = (random.random(lists) < share).astype(int)
    found = []
    for group in whose:
        scores = WORTHS[group, :items] + random.gumbel(size=items)
        order = np.argsort(-scores).tolist()
        tiers = [order[:1], order[1:3], order[3:4], order[4:7], order[7:]]
        found.append([tuple(tier) for tier in tiers if tier])
    return found, whose


@pytest.fixture(scope="module")
def some():
    lists, whose = drawn_lists(np.random.default_rng(0), 300, items=6)
    mixture = tr.RankMixture(2, starts=4, random_state=0).fit(lists, items=6)
    return lists, whose, mixture


def counted(lists, items):
    return distinct(*weighted_lists(lists, None, items))


@pytest.mark.parametrize("voters", [False, True])
@pytest.mark.parametrize("prior", [GaussianPrior(3), PseudoItem(0.5)])
def test_derivatives_are_those_of_differences(prior, voters, monkeypatch):
    monkeypatch.setattr("tierrank.aggregation.mixture.GRADIENT_CHUNK", 70)  # some lists at a time
    random = np.random.default_rng(1)
    lists, _ = drawn_lists(random, 20, items=5)
    given = counted([*lists, [0, 1], [(2, 3), 4]], 5)
    voter = np.sort(random.integers(0, 6, given.different)) if voters else None
    if voter is not None:
        voter = np.unique(voter, return_inverse=True)[1]
    loss = MixtureLoss(given, 3, prior, voter)
    point = 0.7 * random.normal(size=loss.size)
    assert loss.size == 17
    _, gradient = loss.value_and_gradient(point)
    steps = 1e-5 * np.eye(17)
    values = [[loss.value_and_gradient(point + sign * step) for sign in (1, -1)] for step in steps]
    slopes = [(up[0] - down[0]) / 2e-5 for up, down in values]
    np.testing.assert_allclose(gradient, slopes, rtol=1e-6, atol=1e-6)
    rows = [(up[1] - down[1]) / 2e-5 for up, down in values]
    np.testing.assert_allclose(loss.hessian(point).matrix(), rows, rtol=1e-6, atol=1e-6)


def test_the_likelihood_is_the_sum_over_groups(some):
    lists, _, mixture = some
    by_group = [
        np.log(share) + tr.log_prob(group.log_worths_, tr.Tiers.from_rankings(lists, items=6))
        for share, group in zip(mixture.shares_, mixture.groups_, strict=True)
    ]
    expected = logsumexp(by_group, axis=0)
    np.testing.assert_allclose(mixture.log_prob(lists), expected, rtol=1e-12)
    assert mixture.log_likelihood_ == pytest.approx(expected.sum())
    np.testing.assert_allclose(mixture.responsibilities_, np.exp(by_group - expected).T, rtol=1e-9)
    assert mixture.n_parameters_ == 11
    assert mixture.aic_ == pytest.approx(22 - 2 * expected.sum())
    assert mixture.bic_ == pytest.approx(11 * np.log(300) - 2 * expected.sum())


def test_the_estimate_is_where_the_gradient_vanishes(some):
    lists, _, mixture = some
    loss = MixtureLoss(counted(lists, 6), 2, GaussianPrior(3))
    worths = np.stack([group.log_worths_ for group in mixture.groups_])
    point = loss.point(worths, np.log(mixture.shares_))
    assert np.abs(loss.value_and_gradient(point)[1]).max() < 1e-6
    assert np.linalg.eigvalsh(loss.hessian(point).matrix())[0] > 0
    assert mixture.converged_
    assert (np.diff(mixture.objective_values_) < 1e-6).all()


@pytest.mark.parametrize("kind", ["information", "sandwich"])
def test_one_group_is_the_usual_fit(some, kind):
    lists = some[0]
    one = tr.RankMixture(1, prior="gaussian:2", uncertainty=kind).fit(lists, items=6)
    usual = tr.RankAggregator(prior="gaussian:2", uncertainty=kind).fit(lists, items=6)
    (group,) = one.groups_
    np.testing.assert_allclose(group.log_worths_, usual.log_worths_, atol=1e-8)
    np.testing.assert_allclose(group.covariance(), usual.covariance(), rtol=1e-6, atol=1e-12)
    assert one.log_likelihood_ == pytest.approx(usual.log_likelihood_)
    assert one.shares_.tolist() == [1.0]
    assert one.bic_ == pytest.approx(5 * np.log(300) - 2 * usual.log_likelihood_)


def test_two_groups_are_found_in_2000_lists_with_ties():
    lists, whose = drawn_lists(np.random.default_rng(2), 2000)
    mixture = tr.RankMixture(2, starts=3, random_state=1).fit(lists, items=10)
    np.testing.assert_allclose(mixture.shares_, [0.65, 0.35], atol=0.03)
    for group, worths in zip(mixture.groups_, WORTHS, strict=True):
        assert np.abs(group.log_worths_ - worths).max() < 0.25
        assert np.abs((group.log_worths_ - worths) / group.standard_errors_).max() < 3.5
    assert (mixture.predict_groups(lists) - 1 == whose).mean() > 0.9
    known = tr.RankAggregator().fit(
        [each for each, group in zip(lists, whose, strict=True) if group == 0], items=10
    )
    larger = mixture.groups_[0].standard_errors_ / known.standard_errors_
    assert (larger > 1).all()  # nobody said which list is whose
    assert larger.max() < 1.5
    alone = tr.RankMixture(1).fit(lists, items=10)
    held_out, _ = drawn_lists(np.random.default_rng(3), 500)
    assert mixture.log_prob(held_out).mean() > alone.log_prob(held_out).mean() + 0.2


def test_the_number_of_groups_with_the_least_bic_is_taken(some):
    mixture = tr.RankMixture(max_groups=3, starts=2, random_state=0).fit(some[0], items=6)
    assert [each.groups for each in mixture.tried_] == [1, 2, 3]
    assert min(mixture.tried_, key=lambda each: each.bic).groups == len(mixture.groups_) == 2
    assert mixture.bic_ == pytest.approx(some[2].bic_, abs=1e-6)


def test_groups_are_numbered_by_size_whatever_the_seed(some):
    lists, _, mixture = some
    for seed in (1, 2):
        again = tr.RankMixture(2, starts=4, random_state=seed).fit(lists[::-1], items=6)
        assert (np.diff(again.shares_) < 0).all()
        for one, other in zip(again.groups_, mixture.groups_, strict=True):
            np.testing.assert_allclose(one.log_worths_, other.log_worths_, atol=1e-5)
    same = tr.RankMixture(2, starts=4, random_state=0).fit(lists, items=6)
    assert same.groups_[1].log_worths_.tobytes() == mixture.groups_[1].log_worths_.tobytes()


def test_groups_answer_what_an_aggregator_answers(some, tmp_path):
    group = some[2].groups_[1]
    assert len(group.ranking()) == 6
    assert group.rank_intervals().shape == (6, 2)
    assert str(group.summary()).startswith("group 2, ")
    assert "group 1, " in str(some[2].summary(top=2))
    assert "Ranking" in group.report(tmp_path / "page.html").read_text()
    with pytest.raises(ValueError, match="no bootstrap of its own"):
        group.bootstrap()


def test_weights_are_how_often_and_silent_lists_belong_to_everybody(some):
    lists = some[0][:60]
    often = np.arange(60) % 3
    one = tr.RankMixture(2, starts=2, random_state=5).fit(lists, weights=often, items=6)
    repeated = [each for each, n in zip(lists, often, strict=True) for _ in range(n)]
    other = tr.RankMixture(2, starts=2, random_state=5).fit(repeated, items=6)
    assert one.log_likelihood_ == pytest.approx(other.log_likelihood_, abs=1e-5)
    assert one.responsibilities_.shape == (60, 2)
    silent = one.group_proba([[(0, 1, 2)]])
    np.testing.assert_allclose(silent[0], one.shares_, rtol=1e-12)
    assert one.log_prob([[(0, 1, 2)]]) == pytest.approx(0)


def test_who_never_loses_has_a_finite_worth_and_a_rest_is_taken():
    mixture = tr.RankMixture(2, starts=2, random_state=0).fit(
        [["a"], ["b"], ["c", "b"]], weights=[20, 10, 3], items=["a", "b", "c", "d"], rest="last"
    )
    for group in mixture.groups_:
        assert np.isfinite(group.log_worths_).all()
    assert [group.ranking()[0] for group in mixture.groups_] == ["a", "b"]


def test_what_is_wrong_is_refused(some):
    lists = some[0][:20]
    for settings in (
        {"groups": 0}, {"groups": 1.5}, {"starts": 0}, {"max_groups": 0}, {"max_iter": 0},
        {"uncertainty": "bayes"}, {"prior": "normal"},
    ):  # fmt: skip
        with pytest.raises(ValueError, match=next(iter(settings))):
            tr.RankMixture(**settings).fit(lists)
    with pytest.raises(ValueError, match="can't be none"):
        tr.RankMixture(2, prior=None).fit(lists)
    with pytest.raises(ValueError, match="3 groups of 2 different lists"):
        tr.RankMixture(3).fit([["a", "b"], ["b", "a"], ["a", "b"]])
    with pytest.raises(ValueError, match="no list says anything"):
        tr.RankMixture(2).fit([[("a", "b")]])
    with pytest.raises(ValueError, match="not in the catalogue"):
        some[2].log_prob([["x", "y"]])


def test_it_is_saved_and_loaded(some, tmp_path):
    lists, _, mixture = some
    loaded = tr.load(tr.save(mixture, tmp_path / "model"))
    assert str(loaded.summary()) == str(mixture.summary())
    assert loaded.tried_ == mixture.tried_
    np.testing.assert_array_equal(loaded.group_proba(lists), mixture.group_proba(lists))
    for one, other in zip(loaded.groups_, mixture.groups_, strict=True):
        for kind in ("information", "sandwich"):
            np.testing.assert_allclose(one.covariance(kind=kind), other.covariance(kind=kind))


@pytest.mark.slow
def test_intervals_cover():
    """Of 60 draws of 400 lists: estimates are as far from the truth as standard errors say."""
    off = []
    for seed in range(60):
        lists, _ = drawn_lists(np.random.default_rng(100 + seed), 400)
        mixture = tr.RankMixture(2, starts=3, random_state=0).fit(lists, items=10)
        for group, worths in zip(mixture.groups_, WORTHS, strict=True):
            off.append((group.log_worths_ - worths) / group.standard_errors_)
    assert 0.92 < (np.abs(off) < 1.96).mean() < 0.975


# Voters ----------------------------------------------------------------------------------------


def arena(random, voters=60, games=40):
    """Games of two by voters of two groups, as a frame."""
    whose = (np.arange(voters) % 3 == 0).astype(int)
    voter = np.repeat(np.arange(voters), games)
    pairs = np.array([random.choice(10, 2, replace=False) for _ in voter])
    lead = np.diff(WORTHS[whose[voter][:, None], pairs], axis=1)[:, 0]
    first = random.random(len(voter)) < 1 / (1 + np.exp(lead))
    names = np.array(list("abcdefghij"))
    frame = pd.DataFrame({
        "model_a": names[pairs[:, 0]], "model_b": names[pairs[:, 1]],
        "winner": np.where(first, "model_a", "model_b"), "voter": [f"v{each}" for each in voter],
    })  # fmt: skip
    return frame.sample(frac=1, random_state=0), whose


def test_voters_of_an_arena_are_told_apart():
    frame, whose = arena(np.random.default_rng(0))
    games = tr.data.read_games(frame, keep=["voter"])
    mixture = tr.RankMixture(2, clusters="voter", starts=4, random_state=0).fit(games)
    assert mixture.shares_ == pytest.approx([2 / 3, 1 / 3], abs=0.1)
    found = mixture.voter_responsibilities_.argmax(axis=1)
    truth = whose[[int(name[1:]) for name in mixture.voters_]]
    assert (found == truth).mean() > 0.95
    for group, worths in zip(mixture.groups_, WORTHS, strict=True):
        at = [group.items_.index(name) for name in "abcdefghij"]
        assert np.corrcoef(group.log_worths_[at], worths)[0, 1] > 0.95
    rows = [mixture.voters_.index(name) for name in games.beside["voter"]]
    np.testing.assert_array_equal(mixture.responsibilities_, mixture.voter_responsibilities_[rows])
    # the likelihood is that of voters, each with all games
    by_game = np.stack([group.log_prob(games.to_rankings()) for group in mixture.groups_], axis=1)
    joint = np.log(mixture.shares_) + np.stack(
        [by_game[np.array(rows) == number].sum(axis=0) for number in range(len(mixture.voters_))]
    )
    assert mixture.log_likelihood_ == pytest.approx(logsumexp(joint, axis=1).sum())
    alone = tr.RankMixture(1, clusters="voter").fit(games)
    assert mixture.bic_ < alone.bic_
    assert mixture.bic_ == pytest.approx(
        np.log(60) * mixture.n_parameters_ - 2 * mixture.log_likelihood_
    )


def test_order_of_rows_does_not_matter():
    frame, _ = arena(np.random.default_rng(3), voters=12, games=10)
    one, two = (
        tr.RankMixture(2, clusters="voter", starts=3, random_state=0).fit(
            tr.data.read_games(rows, keep=["voter"]), items=list("abcdefghij")
        )
        for rows in (frame, frame.sort_values(["voter", "model_a"]))
    )
    assert one.log_likelihood_ == pytest.approx(two.log_likelihood_, abs=1e-6)


def test_a_voter_who_said_nothing_is_of_no_group_in_particular():
    frame, _ = arena(np.random.default_rng(1), voters=8, games=20)
    more = pd.DataFrame({"model_a": ["a"], "model_b": ["b"], "winner": ["tie"], "voter": ["mute"]})
    games = tr.data.read_games(pd.concat([frame, more]), keep=["voter"])
    mixture = tr.RankMixture(2, clusters="voter", starts=2, random_state=0).fit(games)
    at = mixture.voters_.index("mute")
    np.testing.assert_allclose(mixture.voter_responsibilities_[at], mixture.shares_)


def test_games_by_nobody_in_particular_are_warned_of():
    with pytest.warns(UserWarning, match="one a voter: groups show only where"):
        tr.RankMixture(1).fit([["a", "b"], ["b", "a"], ["a", "b"]])
    with pytest.raises(ValueError, match="a list is of one voter, so give one column"):
        tr.RankMixture(2, clusters=["voter", "prompt"]).fit([["a", "b", "c"]])
    with pytest.raises(ValueError, match="'voter'"):
        tr.RankMixture(2, clusters="voter").fit(tr.data.Rankings.from_rankings([["a", "b", "c"]]))
    with pytest.raises(ValueError, match="voter"):
        tr.RankMixture(2, clusters="voter").fit([["a", "b", "c"]])
