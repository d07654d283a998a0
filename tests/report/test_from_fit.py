"""From a fit to its page: the numbers are the fit's own, and what is missing is explained."""

import numpy as np
import pytest
from scipy.stats import norm

import tierrank as tr
from tierrank.aggregation.paired import PairedTies
from tierrank.report import from_fit
from tierrank.report.aggregation import _curves, page_html
from tierrank.report.from_fit import page_of
from votes import drawn_rankings


@pytest.fixture(scope="module")
def fitted():
    _, rankings = drawn_rankings(seed=3, items=8, lists=300, length=5, most_tied=3)
    return tr.RankAggregator().fit(rankings)


@pytest.fixture(scope="module")
def games():
    random = np.random.default_rng(0)
    strong = dict(zip("abcde", (1.0, 0.5, 0.0, -0.5, -1.0), strict=True))
    rows = []
    for _ in range(600):
        one, two = random.permutation(list(strong))[:2].tolist()
        lead = strong[one] - strong[two] + 0.3 + random.logistic()
        rows.append((one, two, 0 if abs(lead) < 0.5 else int(np.sign(lead))))
    return tr.data.Games.from_rows(rows)


def column(page, name):
    return np.array([getattr(row, name) for row in page.rows], dtype=float)


def test_rows_have_the_estimates_best_first(fitted):
    page = page_of(fitted, title="Votes", level=0.9, top_k=3)
    order = np.argsort(-fitted.log_worths_)
    assert [row.name for row in page.rows] == [str(fitted.items_[code]) for code in order]
    for name, values in {
        "log_worth": fitted.log_worths_,
        "worth": fitted.worths_,
        "standard_error": fitted.standard_errors_,
        "low": fitted.log_worths_ - norm.ppf(0.95) * fitted.standard_errors_,
        "high": fitted.log_worths_ + norm.ppf(0.95) * fitted.standard_errors_,
        "expected_rank": fitted.expected_ranks().estimate,
        "top_k": fitted.top_k_proba(3),
        "tier": fitted.tiers().tier_of + 1,
        "rank_low": fitted.rank_intervals(level=0.9)[:, 0],
        "rank_high": fitted.rank_intervals(level=0.9)[:, 1],
    }.items():
        np.testing.assert_allclose(column(page, name), values[order], rtol=1e-12)
    assert column(page, "top_k").sum() == pytest.approx(3)
    assert column(page, "expected_rank").sum() == pytest.approx(8 * 9 / 2)
    assert page.level == 0.9
    page_html(page)


def test_pairs_data_and_convergence_are_the_fits(fitted):
    page = page_of(fitted, title="Votes", settings={"file": "votes.toc"}, notes=("A note.",))
    names = [row.name for row in page.rows]
    for i, above in enumerate(fitted.ranking()):
        for j, below in enumerate(fitted.ranking()):
            if i != j:
                assert page.pairwise[i, j] == pytest.approx(fitted.predict_proba(above, below))
    assert len(page.pairwise) == len(names) == 8
    assert page.connectivity.lists == 300
    assert page.connectivity.distinct_lists == len(fitted.lists_.tiers) < 300
    assert page.connectivity.strongly_connected
    assert page.convergence.log_likelihood == fitted.log_likelihood_
    assert list(page.convergence.history) == fitted.objective_values_
    assert page.settings["model"] == "pl-partition"
    assert page.settings["file"] == "votes.toc"
    assert page.notes == ("A note.",)
    assert page.cut_probabilities == fitted.tiers().cut_probabilities.tolist()


def test_tiers_can_be_left_out(fitted):
    page = page_of(fitted, title="Votes", tiers=False)
    assert page.tiers == 0
    assert page.cut_probabilities is None
    assert page.rows[0].rank_low is not None


def test_a_fit_without_standard_errors_says_why(fitted):
    _, rankings = drawn_rankings(seed=3, items=8, lists=300, length=5)
    by_pairs = tr.RankAggregator("ranknet").fit(rankings)
    page = page_of(by_pairs, title="Votes")
    assert all(row.low is None and row.tier is None for row in page.rows)
    assert "ranknet is no likelihood" in page.notes[0]
    assert page.convergence.aic is None
    page_html(page)


def test_of_many_items_only_the_first_have_intervals(fitted, monkeypatch):
    whole = page_of(fitted, title="Votes")
    monkeypatch.setattr(from_fit, "MOST_DENSE", 7)
    page = page_of(fitted, title="Votes", shown=3)
    assert [row.low is None for row in page.rows] == [False] * 3 + [True] * 5
    assert page.rows[1].low == pytest.approx(whole.rows[1].low, rel=1e-9)
    assert page.tiers == 0
    assert "only the first 3 have intervals" in page.notes[0]
    sandwich = tr.RankAggregator(uncertainty="sandwich").fit([["a", "b"], ["b", "a"]] * 3)
    monkeypatch.setattr(from_fit, "MOST_DENSE", 1)
    assert 'uncertainty="sandwich" takes' in page_of(sandwich, title="Votes").notes[0]


def test_intervals_of_ranks_stop_where_they_take_long(fitted, monkeypatch):
    monkeypatch.setattr(from_fit, "MOST_RANKED", 7)
    page = page_of(fitted, title="Votes")
    assert page.rows[0].rank_low is None
    assert page.rows[0].low is not None
    assert "Intervals of ranks were left out" in page.notes[0]


@pytest.mark.parametrize("model", ["davidson", "rao-kupper"])
def test_games_have_a_page_too(games, model):
    fitted = PairedTies(model, home=True).fit(games)
    page = page_of(fitted, title="Games", data=games, seconds=0.5)
    order = np.argsort(-fitted.log_worths_)
    np.testing.assert_allclose(column(page, "log_worth"), fitted.log_worths_[order])
    np.testing.assert_allclose(column(page, "standard_error"), fitted.standard_errors_[order])
    np.testing.assert_allclose(page.pairwise + page.pairwise.T, 1)
    first, second = page.rows[0].name, page.rows[1].name
    win, _, loss = fitted.predict_proba(first, second, neutral=True)
    assert page.pairwise[0, 1] == pytest.approx(win / (win + loss))
    assert page.connectivity.lists == 600
    assert page.connectivity.lists_without_information == 0
    assert page.convergence.seconds == 0.5
    ties, home = page.parameters
    assert home.estimate == fitted.home_advantage_
    assert home.high - home.estimate == pytest.approx(norm.ppf(0.975) * fitted.home_standard_error_)
    assert page.settings[ties.name].startswith(f"{ties.estimate:.4f}, from")
    page_html(page)


def test_what_a_page_cannot_be_made_of_is_refused(fitted, games, tmp_path):
    of_games = PairedTies().fit(games)
    loaded = tr.load(tr.save(of_games, tmp_path / "games"))
    with pytest.raises(ValueError, match="not its games: give them as data="):
        page_of(loaded, title="Games")
    assert page_of(loaded, title="Games", data=games).rows == page_of(of_games, title="Games").rows
    doubles = PairedTies(prior="gaussian").fit([(("a", "b"), "c", 1), ("c", "a", 0)])
    with pytest.raises(ValueError, match="here teams were"):
        page_of(doubles, title="Doubles")
    with pytest.raises(ValueError, match="says nothing of the first 3"):
        page_of(of_games, title="Games", data=games, top_k=3)
    loaded = tr.load(tr.save(fitted, tmp_path / "model"))
    with pytest.raises(ValueError, match="not its lists: give them as data="):
        page_of(loaded, title="Votes")
    _, rankings = drawn_rankings(seed=3, items=8, lists=300, length=5, most_tied=3)
    again = page_of(loaded, title="Votes", data=rankings)
    assert again.rows == page_of(fitted, title="Votes").rows
    assert again.connectivity.lists == 300


def test_what_a_prior_decides_is_said(fitted):
    shrunk = tr.RankAggregator(prior="gaussian:2").fit([["ann", "bob"], ["bob", "cy"]])
    page = page_of(shrunk, title="Votes")
    assert not page.connectivity.strongly_connected
    assert "ann stands above others" in page.connectivity.text
    assert "What to do" not in page.connectivity.text
    assert page.connectivity.text.endswith("What the lists leave open, the prior decides.")
    assert page.settings["prior"] == "gaussian:2"


def test_a_fit_to_features_has_a_page_with_its_coefficients():
    lists = [["a", "b"], ["b", "a"], ["c", "d"], ["d", "c"], ["b", "a"]]  # two groups
    features = {"a": [1.0, 0.2], "b": [0.0, 1.0], "c": [2.0, 1e-9], "d": [1.5, 3.0]}
    fitted = tr.FeatureAggregator(l2=0.1).fit(lists, features)
    page = page_of(fitted, title="Features", top_k=2)
    np.testing.assert_allclose(column(page, "log_worth"), np.sort(fitted.log_worths_)[::-1])
    assert page.rows[0].low is not None
    assert page.settings["coefficient of x0"].startswith(f"{fitted.coef_[0]:.4f}, from")
    assert page.connectivity.groups == 2
    assert "the features decide" in page.connectivity.text
    assert "coefficient of x1" in page_html(page)
    network = tr.FeatureAggregator("neural", max_iter=3, random_state=0).fit(lists * 4, features)
    page = page_of(network, title="Network")
    assert page.rows[0].low is None
    assert "a network has no standard errors" in page.notes[0]
    page_html(page)


def test_a_group_has_whole_lists_and_says_why():
    votes = [["a", "b", "c"], ["a", "c", "b"]] * 9 + [["c", "b", "a"], ["b", "c", "a"]] * 5
    mixture = tr.RankMixture(2, starts=2, random_state=0).fit(votes)
    group = mixture.groups_[0]
    assert not float(group.lists_.total).is_integer()
    page = page_of(group, title="A group", check=True)
    for row in page.rows:
        assert all(float(each).is_integer() for each in (row.games, row.wins, row.losses))
    assert page.rows[0].games == round(group.lists_.total)
    counts = page.pair_counts
    assert all(np.array_equal(each, np.round(each)) for each in (counts.wins, counts.losses))
    assert "numbers of lists are rounded" in page.model_text
    assert "rounded" not in page_of(tr.RankAggregator().fit(votes), title="All").model_text


def test_curves_have_room_for_their_bands():
    rows = [("a", "b", 1), ("b", "c", 1), ("c", "a", 1), ("a", "b", -1)] * 6
    fitted = tr.WorthsThroughTime("bradley-terry", step=1, variance=0.3).fit(
        rows, times=np.repeat(range(6), 4)
    )
    page = page_of(fitted, title="Time")
    axis = _curves(page.curves).axis
    inside = (page.curves.high <= axis.high) & (page.curves.low >= axis.low)
    assert inside.mean() > 0.85  # the estimates alone would leave most ends outside


VOTES = [["a", ("b", "c")], ["b", "a", "c"], ["c", ("a", "b")], [("a", "c"), "b"]]
GAMES = [("a", "b", 1), ("b", "a", 1), ("a", "b", 0), ("b", "c", 1), ("c", "a", 1), ("c", "b", 0)]
YEARS = [2001, 2001, 2002, 2002, 2003, 2003]


@pytest.mark.parametrize(
    ("fit", "model", "tie"),
    [
        (lambda: tr.RankAggregator().fit(VOTES), "exact with ties", "an order that nobody saw"),
        (
            lambda: tr.RankAggregator("ranknet").fit(VOTES),
            "Worths by ranknet",
            "the objective to decide",
        ),
        (lambda: tr.DavidsonLuce().fit(VOTES), "Davidson-Luce", "it says that items are close"),
        (lambda: tr.PairedTies().fit(GAMES), "Davidson's model", "an outcome of its own"),
        (
            lambda: tr.PairedTies("rao-kupper").fit(GAMES),
            "Rao and Kupper",
            "too small to be noticed",
        ),
        (
            lambda: tr.PairedTies("bradley-terry", ties="half", home=True, prior="gaussian:2").fit(
                GAMES
            ),
            "estimated and taken out. A prior (gaussian:2) keeps worths",
            "half a win and half a loss",
        ),
        (
            lambda: tr.WorthsThroughTime(step=1, variance=0.1).fit(GAMES, times=YEARS),
            "Worths change from period to period",
            "an outcome of its own",
        ),
        (
            lambda: tr.FeatureAggregator().fit(VOTES, {"a": [1.0], "b": [0.5], "c": [0.2]}),
            "sums of the items' features",
            "an order that nobody saw",
        ),
    ],
)
def test_a_page_says_what_its_model_takes_for_true_and_what_a_tie_tells_it(fit, model, tie):
    page = page_of(fit(), title="All")
    assert model in page.model_text
    assert page.pair_model is not None
    assert tie in page.pair_model.tie_says
