import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

import tierrank as tr
from tierrank.aggregation.lists import distinct, weighted_lists
from tierrank.aggregation.solvers import minimise_smooth
from tierrank.aggregation.terms import MatrixHessian, Sum, terms_of
from tierrank.training import optim
from votes import drawn_rankings, tiers_of


def counted(*given):
    return distinct(*weighted_lists(*given))


def laplacian(seed, size):
    random = np.random.default_rng(seed)
    weights = sparse.random_array((size, size), density=0.3, rng=random).toarray()
    weights = weights + weights.T + np.diag(np.ones(size - 1), 1) + np.diag(np.ones(size - 1), -1)
    np.fill_diagonal(weights, 0)
    return np.diag(weights.sum(0)) - weights


def test_solving_within_vectors_of_mean_zero_is_the_pseudo_inverse():
    matrix = laplacian(0, 30)
    right = np.random.default_rng(1).normal(size=30)
    found, positive, _ = optim.conjugate_gradients(MatrixHessian(matrix), right, 1e-12)
    assert positive
    np.testing.assert_allclose(found, np.linalg.pinv(matrix) @ right, atol=1e-9)


def test_negative_curvature_is_noticed_and_gives_a_way_down():
    matrix = np.diag([1.0, -2.0, 3.0])
    right = np.array([0.0, 1.0, 0.0])
    found, positive, _ = optim.conjugate_gradients(
        MatrixHessian(matrix), right, 1e-12, centred=False
    )
    assert not positive
    assert found @ right > 0


def test_newton_comes_to_the_point_where_the_gradient_vanishes_to_rounding():
    lists = counted(tiers_of(drawn_rankings(3, 20, 300, 6, most_tied=3)[1], 20))
    whole = Sum(terms_of(lists, "pl-partition"))
    descent = minimise_smooth(whole, "newton", np.zeros(20), centred=True, max_iter=100)
    assert descent.stopped_by == "tolerance"
    assert descent.gradient_norm < 1e-10
    assert descent.iterations < 15
    assert np.all(np.diff(descent.values) <= 1e-9)


def test_all_solvers_find_the_same_worths():
    _, rankings = drawn_rankings(4, 12, 400, 5, most_tied=3)
    options = {"newton": {}, "lbfgs": {}, "adagrad": {"tol": 1e-7, "max_iter": 60}}
    found = {
        solver: tr.RankAggregator(solver=solver, random_state=0, **more).fit(rankings).log_worths_
        for solver, more in options.items()
    }
    np.testing.assert_allclose(found["lbfgs"], found["newton"], atol=1e-5)
    np.testing.assert_allclose(found["adagrad"], found["newton"], atol=0.1)


@pytest.mark.slow
@pytest.mark.parametrize("rest", ["absent", "last"])
@pytest.mark.parametrize("prior", ["gaussian:0.7", "pseudo-item:2"])
def test_stochastic_steps_meet_the_prior_as_newton_does(rest, prior):
    _, rankings = drawn_rankings(5, 12, 300, 4, most_tied=2)
    more = {"items": 14, "rest": rest}  # two items that no list names
    exact = tr.RankAggregator(prior=prior).fit(rankings, **more)
    steps = tr.RankAggregator(
        prior=prior, solver="adagrad", random_state=0, tol=1e-7, max_iter=60
    ).fit(rankings, **more)
    value, other = exact.objective_values_[-1], min(steps.objective_values_)
    assert value <= other < value * (1 + 1e-3)
    if rest == "absent":  # else two items that never won still creep towards their place
        np.testing.assert_allclose(steps.log_worths_, exact.log_worths_, atol=0.1)


def test_stochastic_steps_depend_on_the_seed_and_on_nothing_else():
    _, rankings = drawn_rankings(6, 8, 60, 4, most_tied=2)

    def fit(seed):
        return tr.RankAggregator(solver="adagrad", random_state=seed, max_iter=3).fit(rankings)

    assert (fit(1).log_worths_ == fit(1).log_worths_).all()
    assert (fit(1).log_worths_ != fit(2).log_worths_).any()


def test_heavy_lists_are_drawn_more_often():
    rankings, weights = [["a", "b"], ["b", "a"]], [3000, 1000]
    fitted = tr.RankAggregator(solver="adagrad", random_state=0, tol=1e-7, max_iter=600).fit(
        rankings, weights=weights
    )
    assert fitted.predict_proba("a", "b") == pytest.approx(0.75, abs=0.03)


def chain(items, weight):
    """Neighbours met `weight` times one way and once the other: a log-worth of log(weight) each."""
    down = [[i, i + 1] for i in range(items - 1)]
    return down + [pair[::-1] for pair in down], [weight] * (items - 1) + [1.0] * (items - 1)


@pytest.mark.parametrize("scale", [1e-40, 1e-20, 1e-9, 1.0, 1e9, 1e15, 1e30])
def test_the_unit_of_weights_does_not_matter(scale):
    rankings = [["a", ("b", "c")], ["b", "a", "c"], ["c", ("a", "b")], ["b", "c", "a"]]
    weights = np.array([3.0, 1, 1, 2])
    expected = tr.RankAggregator().fit(rankings, weights=weights)
    fitted = tr.RankAggregator().fit(rankings, weights=weights * scale)
    assert fitted.converged_
    np.testing.assert_allclose(fitted.log_worths_, expected.log_worths_, atol=1e-9)
    np.testing.assert_allclose(
        fitted.standard_errors_ * np.sqrt(scale), expected.standard_errors_, rtol=1e-9
    )


@pytest.mark.parametrize(("weight", "accuracy"), [(1e4, 1e-10), (1e8, 1e-7), (1e12, 1e-3)])
def test_weights_far_apart_give_log_worths_far_apart(weight, accuracy):
    fitted = tr.RankAggregator().fit([["a", "b"], ["b", "a"]], weights=[weight, 1])
    assert np.ptp(fitted.log_worths_) == pytest.approx(np.log(weight), abs=accuracy)
    # var(log-odds) = 1 / weight + 1, and a centred log-worth is half of it
    assert fitted.standard_errors_ == pytest.approx(np.sqrt(1 + 1 / weight) / 2, rel=accuracy)


def test_weights_too_far_apart_for_float64_are_no_estimate():
    with pytest.warns(ConvergenceWarning, match="too far apart"):
        tr.RankAggregator().fit([["a", "b"], ["b", "a"]], weights=[1e17, 1])


def test_a_long_chain_of_games_has_the_estimate_one_can_write_down():
    items, weight = 400, 2.0
    rankings, weights = chain(items, weight)
    fitted = tr.RankAggregator().fit(rankings, items=items, weights=weights)
    assert fitted.converged_
    np.testing.assert_allclose(np.diff(fitted.log_worths_), -np.log(weight), atol=1e-9)
    matrix = fitted.covariance()
    variance = matrix[0, 0] + matrix[-1, -1] - 2 * matrix[0, -1]
    assert variance == pytest.approx((items - 1) * (1 + 1 / weight), rel=1e-8)


def test_what_conjugate_gradients_did_not_reach_is_said_and_solved_otherwise():
    matrix = laplacian(2, 40)
    right = np.random.default_rng(3).normal(size=40)
    assert not optim.conjugate_gradients(MatrixHessian(matrix), right, 1e-12, most=2).reached
    found = optim.by_cholesky(matrix, right - right.mean(), shared=40)
    np.testing.assert_allclose(found - found.mean(), np.linalg.pinv(matrix) @ right, atol=1e-9)


def test_no_item_overshoots_to_where_chances_are_flat():
    # Whole steps of Newton's method carry items without losses far up: from there they came no more
    random = np.random.default_rng(2)
    worths = 3 * random.normal(size=20_000)
    chosen = random.integers(0, 20_000, (20_000, 10))
    chosen = chosen[[len(set(row)) == 10 for row in chosen.tolist()]]
    order = np.argsort(-(worths[chosen] + random.gumbel(size=chosen.shape)), axis=1)
    fitted = tr.RankAggregator(prior="pseudo-item:0.1").fit(
        np.take_along_axis(chosen, order, axis=1), items=20_000
    )
    assert fitted.converged_
    assert fitted.gradient_norm_ < 1e-8


def test_large_ties_among_small_lists_are_fitted_to_rounding():
    random = np.random.default_rng(0)
    items = 5000
    rankings: list = [random.permutation(items)[:5].tolist() for _ in range(200)]
    for size in (880, 490, 1100, 620, 250):
        order = random.permutation(items).tolist()
        rankings.append([tuple(order[:size]), tuple(order[size:])])
    fitted = tr.RankAggregator(prior="pseudo-item").fit(rankings, items=items)
    assert fitted.converged_
    assert fitted.gradient_norm_ < 1e-8


def test_a_minimum_at_infinity_is_no_convergence():
    # AttRank's attention to ann goes to 1, and nothing ends it
    with pytest.warns(ConvergenceWarning, match="no minimum"):
        fitted = tr.RankAggregator("attrank").fit(
            [["ann", "bob"], ["ann", "cy"], ["cy", "bob"], ["bob", "cy"]]
        )
    assert not fitted.converged_


def test_an_objective_that_is_not_convex_is_left_to_lbfgs():
    _, rankings = drawn_rankings(0, 6, 60, 4, most_tied=3)
    fitted = tr.RankAggregator("rankcosine").fit(rankings, items=6)
    assert fitted.solver_ == "lbfgs"
    assert fitted.gradient_norm_ < 1e-6
    with pytest.raises(ValueError, match="no standard errors"):
        fitted.covariance(kind="sandwich")
