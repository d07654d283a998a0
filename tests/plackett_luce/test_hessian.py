"""`Curvature`: the Hessian's diagonal and products, for boosting and standard errors."""

import functools

import numpy as np
import pytest
import torch

import oracle
import tierrank as tr
from partitions import computing, each_dtype, each_kernel, ragged, rows_of_lists
from tierrank import _native

RANKINGS = [[(0, 1), 2], [3, (4, 5, 1), 0], [], [(0, 1, 2, 3, 4, 5)], [5], [(1, 3), (0, 2), (4, 5)]]
SHARED = np.array([0.3, -1.2, 0.8, 2.0, -0.5, 0.1])


def padded():
    scores, labels, lengths = ragged(22, lists=3, longest=6)
    mask = np.arange(7) >= 7 - lengths[:, None]
    in_holes, padded_labels = np.full(mask.shape, np.nan), np.zeros(mask.shape, int)
    in_holes[mask], padded_labels[mask] = scores, labels
    return in_holes, tr.Tiers.from_labels(padded_labels, mask=mask)


def rows(scattered=False):
    scores, labels, lengths = ragged(21, lists=5, longest=7)
    qid = np.repeat(np.arange(len(lengths)), lengths)
    if scattered:
        qid = np.random.default_rng(0).permutation(qid)
    return scores, tr.Tiers.from_labels(labels, qid=qid)


def catalogue(scores, rest, per_list=False):
    rankings = RANKINGS if rest == "last" else [one for one in RANKINGS if one]
    tiers = tr.Tiers.from_rankings(rankings, items=6, rest=rest)
    return (np.tile(scores, (len(tiers), 1)) if per_list else scores), tiers


def with_strong_item(score):
    """A list that names item 0 leaves little to its rest."""
    return np.r_[score, SHARED[1:]]


FORMS = {
    "rows": rows,
    "rows of scattered qid": lambda: rows(scattered=True),
    "padded": padded,
    "scores of each list, absent": lambda: catalogue(SHARED, "absent", per_list=True),
    "scores of each list, last": lambda: catalogue(SHARED, "last", per_list=True),
    "shared, absent": lambda: catalogue(SHARED, "absent"),
    "shared, last": lambda: catalogue(SHARED, "last"),
    "shared, thin rest": lambda: catalogue(with_strong_item(9.0), "last"),
    "shared, very thin rest": lambda: catalogue(with_strong_item(45.0), "last"),
}
each_form = pytest.mark.parametrize("form", FORMS)


def hessian_by_autograd(scores, tiers, weights, tier_weights):
    """[numbers, numbers] of Σ weight · log P, over the flattened scores that are not NaN."""
    there = ~torch.isnan(scores.reshape(-1))

    def total(real):
        flat = scores.reshape(-1).clone()
        flat[there] = real
        value = tr.log_prob(flat.reshape(scores.shape), tiers, tier_weights=tier_weights)
        return (weights * value).sum()

    return torch.autograd.functional.hessian(total, scores.reshape(-1)[there]), there


@each_kernel
@each_form
@pytest.mark.parametrize("weighted", [False, True], ids=["", "weighted"])
def test_diagonal_and_products_are_those_of_the_hessian(kernel, form, weighted):
    scores, tiers = FORMS[form]()
    scores = torch.from_numpy(scores)
    weights, tier_weights = torch.ones(len(tiers)), None
    if weighted:
        weights = torch.linspace(0.0, 3.0, len(tiers), dtype=torch.float64)
        tier_weights = torch.linspace(2.0, 0.0, len(tiers.tier_sizes), dtype=torch.float64)
    # what a list names is subtracted from sums over all items, which costs digits
    tolerance = 1e-9 if "thin" in form else 1e-12
    with computing(kernel):
        curvature = tr.Curvature(scores, tiers, weights if weighted else None, tier_weights)
        hessian, there = hessian_by_autograd(scores, tiers, weights, tier_weights)
        diagonal = curvature.diagonal()
        assert diagonal.shape == scores.shape
        expected = torch.zeros(len(there), dtype=torch.float64)
        expected[there] = hessian.diagonal()
        torch.testing.assert_close(diagonal.reshape(-1), expected, rtol=0, atol=tolerance)
        for column, at in enumerate(there.nonzero()[:, 0]):
            unit = torch.zeros(len(there), dtype=torch.float64)
            unit[at] = 1.0
            product = curvature @ unit.reshape(scores.shape)
            assert product.shape == scores.shape
            expected[there] = hessian[:, column]
            torch.testing.assert_close(product.reshape(-1), expected, rtol=0, atol=tolerance)


@functools.cache
def with_exact_hessian(shape):
    """Tiers of float32 scores, and the 40-digit Hessian."""
    rng = np.random.default_rng(shape)
    lists = [np.float32(3 * rng.normal(size=n)).astype(np.float64) for n in shape]
    return lists, oracle.hessian_mp(lists).astype(np.float64)


@each_kernel
@each_dtype
@pytest.mark.parametrize("shape", [(1, 2), (3, 2), (2, 1, 3), (1, 1, 1, 2), (6, 2, 3), (9, 1)])
def test_the_hessian_equals_the_one_of_forty_digits(kernel, dtype, shape):
    lists, exact = with_exact_hessian(shape)
    scores, tiers = rows_of_lists([lists])
    with computing(kernel):
        curvature = tr.Curvature(torch.from_numpy(scores).to(dtype), tiers)
        ours = torch.stack([curvature @ unit for unit in torch.eye(len(scores))])
        diagonal = curvature.diagonal()
    assert ours.dtype == diagonal.dtype == dtype
    tolerance = {torch.float64: 1e-12, torch.float32: 1e-5}[dtype]
    np.testing.assert_allclose(ours, exact, rtol=0, atol=tolerance)
    np.testing.assert_allclose(diagonal, exact.diagonal(), rtol=0, atol=tolerance)


@each_kernel
def test_the_hessian_is_symmetric_has_zero_row_sums_and_is_negative_semidefinite(kernel):
    scores, tiers = catalogue(SHARED, "last")
    with computing(kernel):
        curvature = tr.Curvature(scores, tiers)
        hessian = np.stack([curvature @ unit for unit in np.eye(6)])
        flat = curvature @ np.full(6, 3.7)
    np.testing.assert_allclose(hessian, hessian.T, atol=1e-14)
    np.testing.assert_allclose(hessian.sum(1), 0, atol=1e-14)
    np.testing.assert_allclose(flat, 0, atol=1e-13)  # a constant changes nothing
    values = np.linalg.eigvalsh(hessian)
    assert values[-1] == pytest.approx(0, abs=1e-14)
    assert values[-2] < -0.1


@each_kernel
def test_the_diagonal_of_a_large_tier_is_never_positive(kernel):
    """All strengths at once: where an item's own curvature vanishes, rounding may not show."""
    scores = np.r_[np.linspace(-40, 40, 400), np.zeros(3)]
    tiers = tr.Tiers.from_labels(np.r_[np.ones(400), np.zeros(3)])
    with computing(kernel):
        diagonal = tr.Curvature(scores, tiers).diagonal()
    assert np.isfinite(diagonal).all()
    assert (diagonal <= 0).all()


@each_kernel
def test_equal_scores_have_a_closed_form(kernel):
    """n items of score d above one of score 0: log P = Σ_k log k − log(k + e^−d), in d."""
    n, d = 2000, -2.0
    tiers = tr.Tiers.from_labels(np.r_[np.ones(n), 0])
    with computing(kernel):
        curvature = tr.Curvature(np.r_[np.full(n, d), 0.0], tiers)
        along = np.r_[np.ones(n), 0.0]  # moves d
        product = curvature @ along
        last = curvature.diagonal()[-1]
    x = np.exp(-d)
    second = -sum(x * k / (k + x) ** 2 for k in range(1, n + 1))
    assert along @ product == pytest.approx(second, rel=1e-9)
    assert product[-1] == pytest.approx(-second, rel=1e-9)
    assert last == pytest.approx(second, rel=1e-9)  # to lower 0 is to raise d


@each_kernel
def test_scores_of_ten_thousand(kernel):
    """Far apart, nothing is uncertain; near each other, their height does not matter."""
    tiers = tr.Tiers.from_labels([2, 2, 1, 0, 0])
    heights = np.array([1e4, 1e4, 0.0, -1e4, -1e4])
    differences = np.array([0.5, 0.0, -0.25, 1.0, 0.75])
    vector = np.array([1.0, -2.0, 0.5, 3.0, -1.0])
    with computing(kernel):
        apart = tr.Curvature(heights, tiers)
        np.testing.assert_array_less(abs(apart.diagonal()), 1e-20)
        np.testing.assert_array_less(abs(apart @ vector), 1e-20)
        low, high = (tr.Curvature(h + differences, tiers) for h in (0.0, 1e4))
        np.testing.assert_allclose(high.diagonal(), low.diagonal(), atol=1e-14)
        np.testing.assert_allclose(high @ vector, low @ vector, atol=1e-14)


@each_kernel
def test_a_list_of_one_tier_has_no_curvature(kernel):
    with computing(kernel):
        curvature = tr.Curvature(np.array([1.0, -2.0, 0.0]), tr.Tiers.from_labels([3, 3, 3]))
        assert not curvature.diagonal().any()
        assert not (curvature @ np.array([1.0, 2.0, 3.0])).any()
        none = tr.Curvature(np.zeros(0), tr.Tiers.from_labels([]))
        assert none.diagonal().shape == (none @ np.zeros(0)).shape == (0,)


def test_numpy_gives_numpy_and_torch_gives_torch():
    tiers = tr.Tiers.from_labels([1, 0, 0])
    for dtype in (np.float32, np.float64):
        ours = tr.Curvature(np.zeros(3, dtype), tiers)
        for result in (ours.diagonal(), ours @ np.ones(3), ours @ [1, 2, 3]):
            assert isinstance(result, np.ndarray)
            assert result.dtype == dtype
    half = tr.Curvature(torch.zeros(3, dtype=torch.bfloat16), tiers)
    assert half.diagonal().dtype == torch.float32
    assert isinstance(half @ np.ones(3), torch.Tensor)
    np.testing.assert_allclose(half.diagonal(), np.full(3, -2 / 9), rtol=1e-6)


def test_scores_that_want_a_gradient_are_taken_as_numbers():
    scores = torch.zeros(3, requires_grad=True)
    curvature = tr.Curvature(scores, tr.Tiers.from_labels([1, 0, 0]))
    assert not curvature.diagonal().requires_grad
    assert not (curvature @ torch.ones(3)).requires_grad


@pytest.mark.parametrize("weights", [[1.0], [1.0, 1.0, 1.0], [[1.0, 1.0]], 2.0])
def test_weights_of_another_shape_are_refused(weights):
    tiers = tr.Tiers.from_labels([1, 0, 1, 0], lengths=[2, 2])
    with pytest.raises(ValueError, match="2 lists need as many weights"):
        tr.Curvature(np.zeros(4), tiers, weights)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_weights_that_are_not_finite_are_refused(bad):
    tiers = tr.Tiers.from_labels([1, 0, 1, 0], lengths=[2, 2])
    with pytest.raises(ValueError, match="weights"):
        tr.Curvature(np.zeros(4), tiers, [1.0, bad])


@pytest.mark.parametrize("vector", [np.zeros(2), np.zeros((3, 1)), 1.0])
def test_vectors_of_another_shape_are_refused(vector):
    curvature = tr.Curvature(np.zeros(3), tr.Tiers.from_labels([1, 0, 0]))
    with pytest.raises(ValueError, match=r"the vector needs the scores' shape \[3\], not"):
        curvature @ vector


def test_scores_that_are_not_finite_are_refused():
    with pytest.raises(ValueError, match=r"scores\[1\], in list 0, is nan"):
        tr.Curvature(np.array([0.0, np.nan, 0.0]), tr.Tiers.from_labels([1, 0, 0]))


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_the_diagonal_beside_a_gradient_is_filled_where_a_worth_is_beyond_the_float(kind):
    """An item 800 below the best has no worth left in any float, nor a second derivative."""
    layout = _native.Layout(*(np.array(part) for part in ([0, 3], [0], [0, 1], [0, 1])))
    scores, gradient = np.array([0, -1, -800], dtype=kind), np.full(3, 7, dtype=kind)
    diagonal = np.full(3, 7.0)
    _native.log_prob(
        layout, scores, None, None, 1, np.empty(1, dtype=kind), gradient, None, diagonal
    )
    p = np.exp(-1) / (1 + np.exp(-1))
    np.testing.assert_allclose(gradient, [p, -p, 0], rtol=1e-6, atol=1e-30)
    np.testing.assert_allclose(diagonal, [-p * (1 - p), -p * (1 - p), 0], rtol=1e-6, atol=1e-30)
