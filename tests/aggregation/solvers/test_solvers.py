import numpy as np
import pytest
from scipy import sparse

import tierrank as tr
from tierrank.aggregation.likelihood import terms_of
from tierrank.aggregation.lists import distinct, weighted_lists
from tierrank.aggregation.solvers import newton
from tierrank.aggregation.terms import Sum
from tierrank.aggregation.terms.priors import DiagonalBend
from votes import drawn_rankings, tiers_of


def counted(*given):
    return distinct(*weighted_lists(*given))


class MatrixBend(DiagonalBend):
    def __init__(self, matrix):
        super().__init__(np.diag(matrix).copy())
        self.whole = matrix

    def product(self, vector):
        return self.whole @ vector


def laplacian(seed, size):
    random = np.random.default_rng(seed)
    weights = sparse.random_array((size, size), density=0.3, rng=random).toarray()
    weights = weights + weights.T + np.diag(np.ones(size - 1), 1) + np.diag(np.ones(size - 1), -1)
    np.fill_diagonal(weights, 0)
    return np.diag(weights.sum(0)) - weights


def test_solving_within_vectors_of_mean_zero_is_the_pseudo_inverse():
    matrix = laplacian(0, 30)
    right = np.random.default_rng(1).normal(size=30)
    found, positive = newton.solve(MatrixBend(matrix), right, 1e-12)
    assert positive
    np.testing.assert_allclose(found, np.linalg.pinv(matrix) @ right, atol=1e-9)


def test_negative_curvature_is_noticed_and_gives_a_way_down():
    matrix = np.diag([1.0, -2.0, 3.0])
    right = np.array([0.0, 1.0, 0.0])
    found, positive = newton.solve(MatrixBend(matrix), right, 1e-12, centred=False)
    assert not positive
    assert found @ right > 0


def test_newton_comes_to_the_point_where_the_gradient_vanishes_to_rounding():
    lists = counted(tiers_of(drawn_rankings(3, 20, 300, 6, most_tied=3)[1], 20))
    descent = newton.minimise(Sum(terms_of(lists, "pl-partition")), np.zeros(20))
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
