"""Davidson-Luce: R's figures, all subsets one by one, and Davidson's model of games."""

import json

import numpy as np
import pytest

import subsets
import tierrank as tr
from real_data import real
from tierrank.aggregation.connectivity import Disconnected
from tierrank.aggregation.davidson_luce import DavidsonLuceLoss, DavidsonLuceTerm
from tierrank.aggregation.terms import GaussianPrior, PseudoItem

VOTES = [
    ["ann", ("bob", "cy")],
    [("ann", "bob"), "cy"],
    ["cy", ("ann", "bob")],
    ["bob", "cy", "ann"],
]
WEIGHTS = [5, 3, 2, 1]


def random_lists(random, items, lists, shortest=1, most=4):
    """Lists of various lengths, in tiers of up to `most` items."""
    found = []
    for _ in range(lists):
        left = random.permutation(items)[: random.integers(shortest, items + 1)].tolist()
        tiers = []
        while left:
            size = int(random.integers(1, most + 1))
            tiers.append(tuple(left[:size]))
            left = left[size:]
        found.append(tiers)
    return found


def labels_of(tiers):
    """Items of one list, and a label for each, the higher the better."""
    items = [item for tier in tiers for item in tier]
    return items, [-place for place, tier in enumerate(tiers) for _ in tier]


def by_enumeration(w, log_ties, lists):
    """[lists] log-probabilities, by a sum over all subsets at every choice."""

    def potential(f):
        return log_ties.get(len(f), -np.inf) + np.mean(f)

    found = []
    for tiers in lists:
        items, labels = labels_of(tiers)
        found.append(subsets.log_prob(w[items], labels, potential))
    return np.array(found)


@pytest.mark.parametrize("spread", [0.5, 3.0, 40.0])
def test_probabilities_are_those_of_all_subsets_one_by_one(spread):
    random = np.random.default_rng(int(spread))
    lists = random_lists(random, 7, 40)
    w, log_ties = random.normal(size=7) * spread, {1: 0.0, 2: 0.3, 3: -1.1, 4: 2.0}
    tiers = tr.Tiers.from_rankings(lists, items=7)
    term = DavidsonLuceTerm(tiers, np.ones(40), (2, 3, 4))
    point = np.array([*w, 0.3, -1.1, 2.0])
    expected = by_enumeration(w, log_ties, lists)
    np.testing.assert_allclose(term.log_probabilities(point), expected, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("sizes", [(2,), (3,), (2, 4)])
def test_sizes_that_no_tie_has_are_left_out(sizes):
    random = np.random.default_rng(5)
    lists = [[tuple(tier)] if len(tier) in sizes else [(item,) for item in tier]
             for tier in ([0, 1], [0, 1, 2], [1, 2, 3, 4], [2, 4], [0, 3, 4])]  # fmt: skip
    lists += [[(4,), *lists[0]], [(3,), (4,), *lists[1]]]
    w, values = random.normal(size=5), random.normal(size=len(sizes))
    term = DavidsonLuceTerm(tr.Tiers.from_rankings(lists, items=5), np.ones(7), sizes)
    expected = by_enumeration(w, {1: 0.0, **dict(zip(sizes, values, strict=True))}, lists)
    np.testing.assert_allclose(term.log_probabilities(np.array([*w, *values])), expected)


def test_a_stage_has_probabilities_that_sum_to_one():
    fitted = tr.DavidsonLuce().fit(VOTES, weights=WEIGHTS)
    everything = subsets.ordered_partitions(3)
    lists = [[tuple(np.array(fitted.items_)[row == tier]) for tier in range(max(row) + 1)]
             for row in everything]  # fmt: skip
    chances = np.exp(fitted.log_prob(lists))
    assert chances.sum() == pytest.approx(1)
    assert chances.min() == 0.0  # all three tied, which nobody saw


@pytest.mark.parametrize("prior", [None, GaussianPrior(0.7), PseudoItem(0.3)])
def test_derivatives_are_those_of_differences(prior):
    random = np.random.default_rng(2)
    tiers = tr.Tiers.from_rankings(random_lists(random, 6, 30), items=6)
    loss = DavidsonLuceLoss(tiers, random.uniform(0.5, 2, 30), (2, 3, 4), prior)
    point = random.normal(size=9)
    _, gradient = loss.value_and_gradient(point)
    step = 1e-5 * np.eye(9)
    for way, slope in zip(step, gradient, strict=True):
        values = [loss.value_and_gradient(point + sign * way)[0] for sign in (1, -1)]
        assert (values[0] - values[1]) / 2e-5 == pytest.approx(slope, rel=1e-6, abs=1e-6)
    matrix = loss.hessian(point).matrix()
    rows = [
        (loss.value_and_gradient(point + way)[1] - loss.value_and_gradient(point - way)[1]) / 2e-5
        for way in step
    ]
    np.testing.assert_allclose(matrix, rows, rtol=1e-6, atol=1e-6)
    vector = random.normal(size=9)
    np.testing.assert_allclose(loss.hessian(point).product(vector), matrix @ vector, rtol=1e-10)
    assert np.linalg.eigvalsh(matrix)[0] > (-1e-10 if prior is None else 1e-3)


def test_the_matrix_in_parts_is_the_matrix(monkeypatch):
    tiers = tr.Tiers.from_rankings(random_lists(np.random.default_rng(3), 9, 25), items=9)
    term = DavidsonLuceTerm(tiers, np.ones(25), (2, 3, 4))
    point = np.linspace(-1, 1, 12)
    whole = term.hessian(point).matrix()
    monkeypatch.setattr("tierrank.aggregation.davidson_luce.BATCH", 1)
    np.testing.assert_allclose(term.hessian(point).matrix(), whole, rtol=1e-12, atol=1e-13)


def test_gradients_of_lists_add_up_to_the_sandwichs_middle():
    random = np.random.default_rng(4)
    lists = random_lists(random, 5, 12, most=3)
    counts, point = random.uniform(0.5, 2, 12), random.normal(size=7)
    tiers = tr.Tiers.from_rankings(lists, items=5)
    middle = np.zeros((7, 7))
    for number in range(12):
        one = DavidsonLuceTerm(tiers[number : number + 1], np.ones(1), (2, 3))
        gradient = one.value_and_gradient(point)[1]
        middle += counts[number] * np.outer(gradient, gradient)
    found = DavidsonLuceTerm(tiers, counts, (2, 3)).outer_products(point)
    np.testing.assert_allclose(found, middle, rtol=1e-10, atol=1e-12)


# -- R --------------------------------------------------------------------------------------------


def r_data(name):
    """R's figures, and the lists that they are of."""
    figures = json.loads(real("r-reference", "davidson-luce.json").read_text())
    if name.startswith("simulated"):
        lists = [
            [tuple(i for i, r in enumerate(row) if r == place) for place in sorted(set(row))]
            for row in figures["simulated_ranks"]
        ]
        return figures[name], lists, np.ones(len(lists))
    rows = np.loadtxt(real("plackettluce-r", "pudding.csv"), delimiter=",", skiprows=1, dtype=int)
    lists, counts = [], []
    for first, second, _, won, lost, tied in rows:
        i, j = int(first) - 1, int(second) - 1
        lists += [[i, j], [j, i], [(i, j)]]
        counts += [won, lost, tied]
    return figures[name], lists, np.array(counts)


@pytest.mark.data
@pytest.mark.parametrize("pseudo", ["0", "0.5"])
@pytest.mark.parametrize("data", ["simulated, 80 rankings of 6", "pudding"])
def test_estimates_errors_and_likelihood_are_those_of_r(data, pseudo):
    figures, lists, counts = r_data(f"{data}, npseudo={pseudo}")
    prior = None if pseudo == "0" else f"pseudo-item:{pseudo}"
    fitted = tr.DavidsonLuce(prior=prior).fit(lists, weights=counts, items=6)
    found = [*fitted.log_worths_, *fitted.log_tie_prevalences_]
    np.testing.assert_allclose(found, figures["coef"], atol=1e-8)
    assert fitted.log_likelihood_ == pytest.approx(figures["log_likelihood"], abs=1e-8)
    assert [1, *fitted.tie_sizes_] == figures["tie_orders"]
    # R leaves the pseudo-rankings out of its covariance
    tiers = tr.Tiers.from_rankings(lists, items=6)
    alone = DavidsonLuceLoss(tiers, counts.astype(float), fitted.tie_sizes_, None)
    errors = np.sqrt(np.diag(alone.covariance(np.array(found), sandwich=False)))
    np.testing.assert_allclose(errors, figures["standard_errors"], atol=1e-8)
    if prior is None:
        np.testing.assert_allclose(np.sqrt(np.diag(fitted.covariance_)), errors, rtol=1e-8)
        assert fitted.n_parameters_ == figures["df"]
        parameters = fitted.parameters()
        assert parameters[0].standard_error == pytest.approx(figures["standard_errors"][6])
        assert parameters[1].estimate == pytest.approx(np.exp(parameters[0].estimate))
    else:
        assert (np.sqrt(np.diag(fitted.covariance_)) < errors).all()
        assert fitted.n_parameters_ < figures["df"]


# -- Davidson's games -----------------------------------------------------------------------------


@pytest.mark.parametrize("prior", [None, "gaussian:0.8", "pseudo-item:0.5"])
@pytest.mark.parametrize("uncertainty", ["information", "sandwich"])
def test_lists_of_two_are_davidsons_games(prior, uncertainty):
    random = np.random.default_rng(8)
    first, second = random.integers(5, size=(2, 200))
    apart = first != second
    outcome = random.choice([1, 0, -1], size=200, p=[0.5, 0.3, 0.2])
    games = tr.Tiers.from_rankings(
        [[i, j] if won > 0 else [j, i] if won < 0 else [(i, j)]
         for i, j, won in zip(*(a[apart].tolist() for a in (first, second, outcome)), strict=True)],
        items=5,
    )  # fmt: skip
    one = tr.PairedTies(prior=prior, uncertainty=uncertainty).fit(games)
    other = tr.DavidsonLuce(prior=prior, uncertainty=uncertainty).fit(games)
    assert one.items_ == other.items_
    np.testing.assert_allclose(other.log_worths_, one.log_worths_, atol=1e-10)
    np.testing.assert_allclose(other.log_tie_prevalences_, [one.beta_], atol=1e-10)
    np.testing.assert_allclose(other.covariance_, one.covariance_, rtol=1e-7, atol=1e-12)
    assert other.log_likelihood_ == pytest.approx(one.log_likelihood_, rel=1e-12)
    assert other.aic_ == pytest.approx(one.aic_, rel=1e-10)
    np.testing.assert_allclose(
        other.predict_proba(0, 3, level=0.9), one.predict_proba(0, 3, level=0.9), rtol=1e-8
    )
    np.testing.assert_allclose(other.log_prob(games), one.log_prob(games), rtol=1e-9)
    np.testing.assert_allclose(other.pairwise_proba(), one.pairwise_proba(), rtol=1e-9)


def test_without_ties_it_is_plackett_luce():
    random = np.random.default_rng(1)
    lists = [random.permutation(5)[: random.integers(2, 6)].tolist() for _ in range(60)]
    one = tr.RankAggregator().fit(lists, items=5)
    other = tr.DavidsonLuce().fit(lists, items=5)
    np.testing.assert_allclose(other.log_worths_, one.log_worths_, atol=1e-8)
    np.testing.assert_allclose(other.standard_errors_, one.standard_errors_, rtol=1e-6)
    assert other.log_likelihood_ == pytest.approx(one.log_likelihood_)
    assert (other.tie_sizes_, other.parameters()) == ((), [])
    assert other.predict_proba(0, 1)[1] == 0.0
    np.testing.assert_allclose(
        other.predict_proba(0, 1, level=0.9)[0], one.predict_proba(0, 1, level=0.9), rtol=1e-6
    )


# -- as an estimator ------------------------------------------------------------------------------


def drawn_lists(random, w, log_ties, lists):
    """Lists drawn from the model, by its probabilities of all subsets."""
    found = []
    for _ in range(lists):
        left, tiers = list(range(len(w))), []
        while len(left) > 1:
            ways = [s for s in subsets.subsets(left) if len(s) in log_ties]
            chances = subsets.softmax([log_ties[len(s)] + w[list(s)].mean() for s in ways])
            tiers.append(ways[random.choice(len(ways), p=chances)])
            left = [item for item in left if item not in tiers[-1]]
        found.append(tiers + [tuple(left)] * bool(left))
    return found


def test_what_lists_were_drawn_by_is_found_again():
    random = np.random.default_rng(6)
    w, log_ties = np.array([1.0, 0.4, 0.0, -0.5, -0.9]), {1: 0.0, 2: -0.5, 3: -1.2}
    fitted = tr.DavidsonLuce().fit(drawn_lists(random, w, log_ties, 600), items=5)
    assert fitted.tie_sizes_ == (2, 3)
    error = np.sqrt(np.diag(fitted.covariance_))
    off = np.array([*fitted.log_worths_, *fitted.log_tie_prevalences_]) - [*w, -0.5, -1.2]
    assert np.abs(off / error).max() < 3
    np.testing.assert_allclose(
        np.diag(fitted.covariance(kind="sandwich")), np.diag(fitted.covariance()), rtol=0.3
    )
    drawn = fitted.bootstrap(40)
    np.testing.assert_allclose(drawn.standard_errors, fitted.standard_errors_, rtol=0.4)
    assert drawn.without_estimate == 0


def test_counts_order_and_names_do_not_matter():
    fitted = tr.DavidsonLuce().fit(VOTES, weights=WEIGHTS)
    again = tr.DavidsonLuce().fit(
        [[t[::-1] if isinstance(t, tuple) else t for t in vote]
         for vote, often in zip(VOTES[::-1], WEIGHTS[::-1], strict=True) for _ in range(often)],
        items=fitted.items_,
    )  # fmt: skip
    np.testing.assert_allclose(again.log_worths_, fitted.log_worths_, atol=1e-12)
    np.testing.assert_allclose(again.covariance_, fitted.covariance_, rtol=1e-9)
    warm = tr.DavidsonLuce().fit(VOTES, weights=WEIGHTS, init_model=fitted)
    np.testing.assert_allclose(warm.log_worths_, fitted.log_worths_, atol=1e-12)


def test_large_ties_and_distant_worths_stay_finite():
    """Binomial coefficients of 300 over 150 are beyond 1e88, their weights apart by e^1000."""
    random = np.random.default_rng(0)
    lists = [[tuple(range(150)), *range(150, 300)], [*range(300)], [tuple(range(200, 300)), 0]]
    tiers = tr.Tiers.from_rankings(lists, items=300)
    term = DavidsonLuceTerm(tiers, np.ones(3), (100, 150))
    point = np.concatenate([np.linspace(800, -800, 300), [-200.0, -300.0]])
    value, gradient = term.value_and_gradient(point)
    assert np.isfinite([value, *gradient]).all()
    assert np.isfinite(term.hessian(point).product(random.normal(size=302))).all()
    assert abs(gradient[:300].sum()) < 1e-9
    equal = DavidsonLuceTerm(
        tr.Tiers.from_rankings([[tuple(range(150))]], items=150), np.ones(1), (150,)
    )
    assert equal.log_probabilities(np.zeros(151)) == pytest.approx(-np.log(151))  # δ = 1: 150 + 1


def test_it_is_saved_and_loaded(tmp_path):
    fitted = tr.DavidsonLuce(prior="pseudo-item:0.5").fit(VOTES, weights=WEIGHTS)
    loaded = tr.load(tr.save(fitted, tmp_path / "model"))
    assert str(loaded.summary()) == str(fitted.summary())
    assert loaded.parameters() == fitted.parameters()
    np.testing.assert_array_equal(loaded.log_prob(VOTES), fitted.log_prob(VOTES))
    np.testing.assert_array_equal(
        loaded.covariance(kind="sandwich"), fitted.covariance(kind="sandwich")
    )
    assert loaded.predict_proba("ann", "bob", level=0.9) == fitted.predict_proba(
        "ann", "bob", level=0.9
    )
    with pytest.raises(ValueError, match="no bootstrap here"):
        loaded.bootstrap()
    assert loaded.compared(VOTES)[0].different == 4
    with pytest.raises(ValueError, match="give them as data="):
        loaded.compared()


def test_the_page_shows_how_frequent_ties_are(tmp_path):
    page = tr.DavidsonLuce().fit(VOTES, weights=WEIGHTS).report(tmp_path / "page.html").read_text()
    assert "davidson-luce" in page
    assert "log δ2 (ties of 2)" in page


@pytest.mark.parametrize(
    ("lists", "prior", "message"),
    [
        ([["a", ("b", "c")]], None, "a stands above others and never below one"),
        ([["a", "b"], ["c", "d"], ["b", "a"], ["d", "c"]], None, "do not determine the worths"),
        ([[("a", "b")]] * 3, None, "how frequent ties are.*Give a prior"),
        ([[("a", "b")]] * 3, "gaussian", "how frequent ties are.*Take another prior"),
        ([["a"], ["b"]], None, "no list says anything"),
        ([["a", "a"]], None, "twice|two"),
    ],
)
def test_lists_without_an_estimate_are_refused(lists, prior, message):
    with pytest.raises(ValueError, match=message):
        tr.DavidsonLuce(prior=prior).fit(lists)


def test_ordered_by_thresholds_it_has_no_finite_estimate():
    """Neighbours tie and others do not: with worths further and further apart, all of it fits."""
    with pytest.raises(ValueError, match="how frequent ties are"):
        tr.DavidsonLuce().fit([["a", "b"], [("a", "c")], [("c", "b")]] * 4)


def test_wrong_settings_and_a_rest_are_refused():
    tiers = tr.Tiers.from_rankings([["a", "b"], ["b", "c"]], items=["a", "b", "c"], rest="last")
    with pytest.raises(ValueError, match="leave a rest"):
        tr.DavidsonLuce().fit(tiers)
    with pytest.raises(ValueError, match="leave a rest"):
        tr.DavidsonLuce().fit([["a", "b"]], rest="last")
    for settings in ({"prior": "normal"}, {"uncertainty": "bayes"}, {"max_iter": 0}):
        with pytest.raises(ValueError, match=next(iter(settings))):
            tr.DavidsonLuce(**settings).fit(VOTES)
    fitted = tr.DavidsonLuce().fit(VOTES, weights=WEIGHTS)
    with pytest.raises(ValueError, match="there is no item 'dan'"):
        fitted.predict_proba("ann", "dan")
    with pytest.raises(ValueError, match="with itself"):
        fitted.predict_proba("ann", "ann")
    with pytest.raises(Disconnected):
        tr.DavidsonLuce().fit(VOTES, items=["ann", "bob", "cy", "dan"])
    shrunk = tr.DavidsonLuce(prior="gaussian").fit(VOTES, items=["ann", "bob", "cy", "dan"])
    assert shrunk.standard_errors_[3] > shrunk.standard_errors_[:3].max()
