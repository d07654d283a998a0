"""The minimisers: known minima, the rules to stop by, and fits that are taken up again."""

import threading

import numpy as np
import pytest
from scipy.optimize import minimize, rosen, rosen_der
from scipy.special import expit
from threadpoolctl import threadpool_info, threadpool_limits

from tierrank.training.optim import (
    Journal,
    ascend,
    by_eigenvectors,
    lbfgs,
    newton,
    one_blas_thread,
)

START = np.array([-1.2, 1.0, 0.3])


def rosenbrock(point):
    return float(rosen(point)), rosen_der(point)


def logistic(seed, rows=200, columns=5):
    """Value, gradient and Hessian of a logistic regression with features of other scales."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, columns)) * np.logspace(0, 1, columns)
    sign = np.where(rng.random(rows) < expit(X[:, 0]), 1.0, -1.0)

    def function(point):
        margin = sign * (X @ point)
        return np.logaddexp(0, -margin).sum(), -X.T @ (sign * expit(-margin))

    def hessian(point):
        chance = expit(X @ point)
        return (X * (chance * (1 - chance))[:, None]).T @ X

    return function, hessian


def test_it_finds_the_minimum_as_scipy_does_alone():
    end = lbfgs(rosenbrock, START, tol=0.0, max_iter=1000)
    np.testing.assert_allclose(end.point, 1, rtol=0, atol=1e-8)
    alone = minimize(rosen, START, jac=rosen_der, method="L-BFGS-B", options={"maxiter": 7})
    ours = lbfgs(rosenbrock, START, tol=0.0, max_iter=7)
    assert (ours.iterations, ours.stopped_by) == (7, "max_iter")
    assert ours.point.tolist() == alone.x.tolist()


@pytest.mark.parametrize("tol", [1e-2, 1e-5, 1e-8])
def test_it_stops_at_the_first_iteration_that_improves_too_little(tol):
    function, _ = logistic(0)
    values = [function(np.zeros(5))[0]]
    end = lbfgs(
        function,
        np.zeros(5),
        tol=tol,
        max_iter=1000,
        iterated=lambda _, value: bool(values.append(value)),
    )
    gains = -np.diff(values) / np.maximum(np.maximum(np.abs(values[1:]), np.abs(values[:-1])), 1)
    assert end.stopped_by == "tolerance"
    assert gains[-1] <= tol
    assert (gains[:-1] > tol).all()


def test_whoever_watches_can_end_it():
    end = lbfgs(rosenbrock, START, tol=0.0, max_iter=100, iterated=lambda point, value: value < 1.0)
    assert end.stopped_by == "patience"
    assert end.value < 1.0


def test_stopped_at_any_evaluation_it_goes_on_to_the_same_bits():
    whole, seen = Journal(), []
    expected = lbfgs(
        rosenbrock, START, tol=1e-9, max_iter=100, journal=whole,
        iterated=lambda point, value: bool(seen.append((point.tolist(), value))),
    )  # fmt: skip
    evaluations = len(whole.points)
    assert evaluations > 20
    for stop in range(1, evaluations + 1):
        journal = Journal()

        def until(journal=journal, stop=stop):
            if len(journal.points) == stop:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            lbfgs(rosenbrock, START, tol=1e-9, max_iter=100, journal=journal, evaluated=until)
        again = Journal(journal.arrays())
        calls, replayed = [], []

        def counted(point, calls=calls):
            calls.append(point)
            return rosenbrock(point)

        end = lbfgs(
            counted, START, tol=1e-9, max_iter=100, journal=again,
            iterated=lambda point, value, replayed=replayed: bool(
                replayed.append((point.tolist(), value))
            ),
        )  # fmt: skip
        assert len(calls) == evaluations - stop
        assert replayed == seen
        assert end.point.tobytes() == expected.point.tobytes()


def test_a_journal_of_other_points_is_not_believed():
    journal = Journal()
    lbfgs(rosenbrock, START + 1, tol=1e-9, max_iter=100, journal=journal)
    end = lbfgs(rosenbrock, START, tol=1e-9, max_iter=100, journal=journal)
    expected = lbfgs(rosenbrock, START, tol=1e-9, max_iter=100)
    assert end.point.tobytes() == expected.point.tobytes()


def test_a_loss_that_is_not_finite_says_when():
    def breaks(point):
        value, gradient = rosenbrock(point)
        return (np.nan if value < 4 else value), gradient

    with pytest.raises(ValueError, match=r"not finite in iteration \d+ of L-BFGS: scale"):
        lbfgs(breaks, START, tol=0.0, max_iter=100)


def test_a_minimum_at_infinity_is_no_overflow():
    def towards_infinity(point):
        return float(np.logaddexp(0, -point[0])), -expit(-point)

    end = lbfgs(towards_infinity, np.zeros(1), tol=0.0, max_iter=10_000)
    assert end.stopped_by == "tolerance"
    assert 30 < end.point[0] < 1e4


# Newton's last digits ------------------------------------------------------------------------


def refined(function, hessian, start):
    def solve(point, gradient, _):
        return by_eigenvectors(hessian(point), gradient)

    return newton(function, solve, start, far=0.01)


@pytest.mark.parametrize("seed", range(5))
def test_newton_makes_the_gradient_vanish_where_lbfgs_stops_short(seed):
    function, hessian = logistic(seed)
    near = lbfgs(function, np.zeros(5), tol=1e-6, max_iter=1000)
    end = refined(function, hessian, near.point)
    assert end.stopped_by == "tolerance"
    errors = np.sqrt(np.diag(np.linalg.inv(hessian(end.point))))
    assert np.abs(function(end.point)[1] * errors).max() < 1e-12
    assert np.abs(function(near.point)[1] * errors).max() > 1e-6


def test_newton_leaves_directions_without_curvature_alone():
    function, hessian = logistic(1)

    def with_one_more(point):
        value, gradient = function(point[:5])
        return value, np.append(gradient, 0.0)

    def flat(point):
        return np.pad(hessian(point[:5]), (0, 1))

    start = np.append(lbfgs(function, np.zeros(5), tol=1e-6, max_iter=1000).point, 7.0)
    end = refined(with_one_more, flat, start)
    assert end.stopped_by == "tolerance"
    assert end.point[5] == 7.0


def test_newton_says_that_a_minimum_is_at_infinity_and_that_a_saddle_is_none():
    end = refined(
        lambda point: (float(np.logaddexp(0, -point[0])), -expit(-point)),
        lambda point: np.diag(expit(point) * expit(-point)),
        np.zeros(1),
    )
    assert end.stopped_by == "no minimum"
    saddle = refined(
        lambda point: (point[0] ** 2 - point[1] ** 2, np.array([2.0, -2.0]) * point),
        lambda point: np.diag([2.0, -2.0]),
        np.ones(2),
    )
    assert (saddle.stopped_by, saddle.iterations) == ("line search", 0)


# stochastic steps ----------------------------------------------------------------------------

TARGETS = np.random.default_rng(0).normal(size=(30, 2))


def distance(point, chosen, seed):
    """Half the mean squared distance to some targets, with noise in the gradient by the seed."""
    away = point - (TARGETS if chosen is None else TARGETS[chosen])
    noise = np.random.default_rng(seed).normal(size=2)
    return float((away**2).sum(1).mean() / 2), away.mean(0) + 0.1 * noise


def steps(gradient, start, *, done=0, total=50, batch=7, seed=3, stop=None):
    seen = []

    def stepped(point, loss):
        seen.append((point, loss))
        return len(seen) == stop

    ascend(
        gradient, start, learning_rate=0.1, lists=30, batch=batch, seed=seed, done=done,
        steps=total, stepped=stepped,
    )  # fmt: skip
    return seen


def test_steps_over_all_lists_are_plain_gradient_descent():
    seen = steps(lambda point, chosen, _: (0.0, point - TARGETS.mean(0)), np.zeros(2), batch=30)
    expected = TARGETS.mean(0) * (1 - 0.9 ** np.arange(1, 51))[:, None]
    np.testing.assert_allclose([point for point, _ in seen], expected, rtol=1e-12)


def test_steps_taken_up_again_anywhere_are_the_same():
    expected = steps(distance, np.zeros(2))
    for done in range(1, 50):
        again = steps(distance, expected[done - 1][0], done=done)
        assert [point.tolist() for point, _ in again] == [
            point.tolist() for point, _ in expected[done:]
        ]
    other = steps(distance, np.zeros(2), seed=4)
    assert other[-1][0].tolist() != expected[-1][0].tolist()


def test_every_list_is_drawn_as_often_as_any_other_and_once_a_step():
    drawn = np.zeros(30)

    def note(point, chosen, seed):
        assert len(set(chosen.tolist())) == 7
        drawn[chosen] += 1
        return 0.0, np.zeros(2)

    steps(note, np.zeros(2), total=3000)
    # binomial, 3,000 draws with chance 7/30: a deviation of 23
    assert np.abs(drawn - 700).max() < 5 * 23.2


def test_steps_end_when_asked_and_refuse_what_is_not_finite():
    assert len(steps(distance, np.zeros(2), stop=5)) == 5
    with pytest.raises(ValueError, match=r"iteration 1: try a smaller learning_rate than 0\.1"):
        steps(lambda *_: (np.nan, np.zeros(2)), np.zeros(2))


def test_one_thread_for_products_ends_though_others_asked_for_it_meanwhile():
    def threads():
        return [each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"]

    with threadpool_limits(2, user_api="blas"):
        before, inside, may_go = threads(), threading.Event(), threading.Event()

        def overlapping():
            with one_blas_thread():
                inside.set()
                may_go.wait(60)

        other = threading.Thread(target=overlapping)
        with one_blas_thread():
            other.start()
            assert inside.wait(60)
            with one_blas_thread():
                assert set(threads()) == {1}
        may_go.set()
        other.join()
        assert threads() == before
