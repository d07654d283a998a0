"""Value, gradient and curvature of every kind of term against each other and brute force."""

import numpy as np
import pytest

import tierrank as tr
from tierrank.aggregation.lists import distinct, weighted_lists
from tierrank.aggregation.terms import (
    Exact,
    GaussianPrior,
    Last,
    PseudoItem,
    Smooth,
    Strict,
    Sum,
    Tied,
    by_columns,
    prepared,
    terms_of,
)
from votes import central_hessian, drawn_rankings, log_likelihood, tiers_of


def counted(*given):
    return distinct(*weighted_lists(*given))


RANDOM = np.random.default_rng(1)
ITEMS = 6
STRICT = drawn_rankings(0, ITEMS, 12, 4)[1]
TIED = drawn_rankings(1, ITEMS, 12, 5, most_tied=3)[1]
COUNTS = RANDOM.integers(1, 5, 12).astype(float)
POINT = RANDOM.normal(size=ITEMS)


def rest_tiers():
    return tr.Tiers.from_rankings([[0, 1], [(2, 3), 4], [5]], items=ITEMS, rest="last")


def smooth(objective):
    return Smooth(tiers_of(TIED, ITEMS), COUNTS, objective(reduction="none"))


TERMS = {
    "strict": lambda: Strict(tiers_of(STRICT, ITEMS), COUNTS),
    "exact, strict lists": lambda: Exact(tiers_of(STRICT, ITEMS), COUNTS),
    "tied": lambda: Tied(tiers_of(TIED, ITEMS), COUNTS),
    "tied, strict lists": lambda: Tied(tiers_of(STRICT, ITEMS), COUNTS),
    "exact, ties": lambda: Exact(tiers_of(TIED, ITEMS), COUNTS),
    "exact, rest": lambda: Exact(rest_tiers(), np.array([2.0, 1.0, 3.0])),
    "pl-lb": lambda: smooth(tr.losses.PLLowerBound),
    "pmop-fd": lambda: smooth(tr.losses.PMOPFD),
    "ranknet": lambda: smooth(tr.losses.RankNet),
    "gaussian": lambda: GaussianPrior(0.7),
    "pseudo-item": lambda: PseudoItem(0.8),
    "sum": lambda: Sum([Strict(tiers_of(STRICT, ITEMS), COUNTS), PseudoItem(0.8)]),
}


def test_what_follows_from_a_point_is_found_once_and_is_that_of_this_point():
    last, asked = Last(), []

    def find(point):
        asked.append(point.tolist())
        if point[0] == 1:
            last.at(np.array([2.0]), find)  # as another thread may, meanwhile
        return float(point[0])

    point = np.array([1.0])
    assert [last.at(point, find), last.at(point, find)] == [1.0, 1.0]
    point[0] = 3.0  # whoever moves on in place is not told of where it was
    assert last.at(point, find) == 3.0
    assert asked == [[1.0], [2.0], [3.0]]


@pytest.mark.parametrize("rankings", [STRICT, TIED], ids=["strict", "tied"])
def test_the_value_is_minus_the_log_likelihood_by_enumeration(rankings):
    lists = counted(tiers_of(rankings, ITEMS), COUNTS)
    value = Sum(terms_of(lists, "pl-partition")).value_and_gradient(POINT)[0]
    assert value == pytest.approx(-log_likelihood(POINT, rankings, COUNTS), rel=1e-12)


@pytest.mark.parametrize("name", TERMS)
def test_gradients_are_finite_differences_of_the_value(name):
    term = TERMS[name]()
    gradient = term.value_and_gradient(POINT)[1]
    for item in range(ITEMS):
        step = np.zeros(ITEMS)
        step[item] = 1e-5
        high, low = (term.value_and_gradient(POINT + way * step)[0] for way in (1, -1))
        assert gradient[item] == pytest.approx((high - low) / 2e-5, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("name", TERMS)
def test_second_derivatives_are_those_of_the_value_in_all_three_forms(name):
    term = TERMS[name]()
    expected = central_hessian(lambda w: term.value_and_gradient(w)[0], POINT)
    hessian = term.hessian(POINT)
    matrix = hessian.matrix()
    np.testing.assert_allclose(matrix, expected, atol=2e-5)
    np.testing.assert_array_equal(matrix, matrix.T)
    vector = RANDOM.normal(size=ITEMS)
    np.testing.assert_allclose(hessian.product(vector), matrix @ vector, atol=1e-6)
    if (diagonal := hessian.diagonal()) is not None:
        np.testing.assert_allclose(diagonal, np.diag(matrix), atol=1e-12)


@pytest.mark.parametrize("scale", [1.0, 30.0, 140.0, 400.0, 900.0])
@pytest.mark.parametrize(
    ("quick", "exact"), [("strict", "exact, strict lists"), ("tied", "exact, ties")]
)
def test_quick_terms_agree_with_the_exact_one_however_far_apart_the_scores_are(quick, exact, scale):
    point = scale * np.linspace(-1, 1, ITEMS)
    one, other = TERMS[quick](), TERMS[exact]()
    (value, gradient), (expected, slope) = (term.value_and_gradient(point) for term in (one, other))
    assert value == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(gradient, slope, atol=1e-11)
    np.testing.assert_allclose(
        one.hessian(point).matrix(), other.hessian(point).matrix(), atol=1e-11
    )
    vector = RANDOM.normal(size=ITEMS)
    np.testing.assert_allclose(
        one.hessian(point).product(vector), other.hessian(point).product(vector), atol=1e-10
    )


@pytest.mark.parametrize("size", [2, 3, 5, 6, 12, 32])
def test_ties_of_every_size_have_the_derivatives_of_the_general_kernel(size):
    random = np.random.default_rng(size)
    items = size + 8
    rankings = []
    for _ in range(5):
        order = random.permutation(items).tolist()
        rankings.append([order[0], tuple(order[1 : size + 1]), tuple(order[size + 1 :])])
    tiers, counts = tiers_of(rankings, items), random.uniform(0.5, 3, 5)
    point = 3 * random.normal(size=items)
    one, other = Tied(tiers, counts), Exact(tiers, counts)
    found, expected = one.value_and_gradient(point), other.value_and_gradient(point)
    assert found[0] == pytest.approx(expected[0], rel=1e-12)
    np.testing.assert_allclose(found[1], expected[1], atol=1e-11)
    for vector in (random.normal(size=items), np.eye(items)[0]):
        np.testing.assert_allclose(
            one.hessian(point).product(vector), other.hessian(point).product(vector), atol=1e-10
        )
    np.testing.assert_allclose(
        one.hessian(point).diagonal(), other.hessian(point).diagonal(), atol=1e-10
    )
    columns = by_columns(other.hessian(point).product, items)
    for term in (one, other):
        np.testing.assert_allclose(term.hessian(point).matrix(), columns, atol=1e-10)


def test_the_matrix_of_a_rest_is_that_of_its_products(monkeypatch):
    tiers = tr.Tiers.from_rankings(
        [[0, (1, 2)], [(3, 4, 5), 6], [7], [(0, 2, 4, 6, 8, 9), 1]], items=12, rest="last"
    )
    point = 2 * np.random.default_rng(5).normal(size=12)
    term = Exact(tiers, np.array([2.0, 1.0, 3.0, 0.5]))
    columns = by_columns(term.hessian(point).product, 12)
    np.testing.assert_allclose(term.hessian(point).matrix(), columns, atol=1e-12)
    monkeypatch.setattr("tierrank.aggregation.terms.MATRIX_CHUNK", 40)  # a few lists at a time
    np.testing.assert_allclose(term.hessian(point).matrix(), columns, atol=1e-12)


@pytest.mark.parametrize(
    "name", ["strict", "tied", "exact, ties", "exact, rest", "pl-lb", "ranknet"]
)
def test_outer_products_are_sums_over_single_lists(name):
    term = TERMS[name]()
    tiers = term._tiers if isinstance(term, Strict) else term.tiers
    total = np.zeros((ITEMS, ITEMS))
    for number, count in enumerate(term.counts):
        one = np.ones(1)
        part = (
            Smooth(tiers[[number]], one, term.objective)
            if isinstance(term, Smooth)
            else Exact(tiers[[number]], one)
        )
        gradient = part.value_and_gradient(POINT)[1]
        total += count * np.outer(gradient, gradient)
    np.testing.assert_allclose(term.outer_products(POINT), total, atol=1e-10)


def test_a_constant_added_to_all_scores_changes_no_list():
    for name in ("strict", "tied", "exact, ties", "exact, rest", "pl-lb"):
        term = TERMS[name]()
        value, gradient = term.value_and_gradient(POINT)
        assert term.value_and_gradient(POINT + 5)[0] == pytest.approx(value, rel=1e-12)
        assert abs(gradient.sum()) < 1e-10
        assert np.abs(term.hessian(POINT).product(np.ones(ITEMS))).max() < 1e-10


def test_an_objective_is_taken_apart_into_strict_and_tied_lists(monkeypatch):
    lists = counted(tiers_of(STRICT + TIED, ITEMS))
    kinds = [type(term) for term in terms_of(lists, "pl-partition")]
    assert kinds == [Strict, Tied]
    rest = counted(rest_tiers())
    assert [type(term) for term in terms_of(rest, "pl-partition")] == [Tied]
    monkeypatch.setattr("tierrank.aggregation.terms.MOST_WRITTEN", 0)
    assert [type(term) for term in terms_of(rest, "pl-partition")] == [Exact]
    wide = counted(tr.Tiers.from_rankings([[tuple(range(40)), 40]]))
    assert [type(term) for term in terms_of(wide, "pl-partition")] == [Exact]
    monkeypatch.setattr("tierrank.aggregation.terms.MOST_KEPT", 40)
    kinds = [type(term) for term in terms_of(lists, "pl-partition")]
    assert kinds == [Strict, Tied, Exact]
    tiers = prepared(lists.tiers, lists.counts, "listmle", {"ties": "input"}, 0)[0]
    broken = terms_of(counted(tiers), "listmle", {"ties": "input"})
    assert [type(term) for term in broken] == [Strict]
    assert [type(term) for term in terms_of(lists, "pl-lb")] == [Smooth]
