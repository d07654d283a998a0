"""First and second derivatives by autograd: right for every form that scores can take."""

import numpy as np
import pytest
import torch
from scipy import sparse

import tierrank as tr
from partitions import computing, each_dtype, each_kernel, ragged, value_and_gradient


def padded():
    scores, labels, lengths = ragged(2, lists=3, longest=6)
    mask = np.random.default_rng(0).permuted(np.arange(7) < lengths[:, None], axis=1)
    in_holes = np.full(mask.shape, 0.5)
    in_holes[mask] = scores
    padded_labels = np.zeros(mask.shape, int)
    padded_labels[mask] = labels
    return in_holes, tr.Tiers.from_labels(padded_labels, mask=mask)


def rows():
    scores, labels, lengths = ragged(1, lists=4, longest=6)
    return scores, tr.Tiers.from_labels(labels, lengths=lengths)


def scattered_rows():
    scores, labels, lengths = ragged(1, lists=4, longest=6)
    qid = np.random.default_rng(0).permutation(np.repeat(np.arange(len(lengths)), lengths))
    return scores, tr.Tiers.from_labels(labels, qid=qid)


RANKINGS = [[(0, 1), 2], [3, (4, 5, 1), 0], [], [(0, 1, 2, 3, 4, 5)], [5], [(1, 3), (0, 2), (4, 5)]]
SHARED = np.array([0.3, -1.2, 0.8, 2.0, -0.5, 0.1])
# Item 0 has nearly all of the worth: a list that names it leaves a thin rest.
THIN = np.array([9.0, -1.2, 0.8, 1.0, -0.5, 0.1])
VERY_THIN = np.array([45.0, -1.2, 44.0, 1.0, -0.5, 0.1])


def catalogue(scores, rest, per_list=False):
    rankings = RANKINGS if rest == "last" else [one for one in RANKINGS if one]
    tiers = tr.Tiers.from_rankings(rankings, items=6, rest=rest)
    return (np.tile(scores, (len(tiers), 1)) if per_list else scores), tiers


FORMS = {
    "rows": rows,
    "rows of scattered qid": scattered_rows,
    "padded": padded,
    "scores of each list, absent": lambda: catalogue(SHARED, "absent", per_list=True),
    "scores of each list, last": lambda: catalogue(SHARED, "last", per_list=True),
    "shared, absent": lambda: catalogue(SHARED, "absent"),
    "shared, last": lambda: catalogue(SHARED, "last"),
    "shared, thin rest": lambda: catalogue(THIN, "last"),
    "shared, very thin rest": lambda: catalogue(VERY_THIN, "last"),
    "positives": lambda: (SHARED, tr.Tiers.from_positives(sparse.eye_array(6, format="csr"))),
    "one large tier": lambda: (np.linspace(-6, 4, 12), tr.Tiers.from_labels([1] * 11 + [0])),
    "one tier only": lambda: (SHARED[:4], tr.Tiers.from_labels([1, 1, 1, 1])),
}
each_form = pytest.mark.parametrize("form", FORMS)


@each_kernel
@each_form
def test_gradients_are_those_of_finite_differences(kernel, form):
    scores, tiers = FORMS[form]()
    scores = torch.from_numpy(scores).requires_grad_()
    with computing(kernel):
        assert torch.autograd.gradcheck(lambda w: tr.log_prob(w, tiers), scores)


@each_kernel
@each_form
def test_second_derivatives_are_those_of_finite_differences(kernel, form):
    scores, tiers = FORMS[form]()
    scores = torch.from_numpy(scores).requires_grad_()
    with computing(kernel):
        assert torch.autograd.gradgradcheck(lambda w: tr.log_prob(w, tiers), scores)


@each_kernel
@pytest.mark.parametrize("scores", [SHARED, THIN, VERY_THIN, 1000 * SHARED])
def test_shared_scores_with_a_rest_have_the_gradients_of_lists_written_out(kernel, scores):
    """First and second, however little of the worth a list leaves to its rest."""
    shared, tiers = catalogue(scores, "last")
    own, _ = catalogue(scores, "last", per_list=True)
    weights = torch.arange(1.0, len(tiers) + 1, dtype=torch.float64)
    vector = torch.from_numpy(np.random.default_rng(1).normal(size=6))

    def derivatives(w, direction):
        w = torch.from_numpy(w).requires_grad_()
        value = tr.log_prob(w, tiers)
        (gradient,) = torch.autograd.grad((weights * value).sum(), w, create_graph=True)
        (product,) = torch.autograd.grad((gradient * direction).sum(), w)
        return value.detach(), gradient.detach(), product

    with computing(kernel):
        value, gradient, product = derivatives(shared, vector)
        value_own, gradient_own, product_own = derivatives(own, vector.expand(own.shape))
    torch.testing.assert_close(value, value_own, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(gradient, gradient_own.sum(0), rtol=0, atol=1e-10)
    torch.testing.assert_close(product, product_own.sum(0), rtol=0, atol=1e-9)


@each_kernel
def test_the_gradient_of_a_list_is_scaled_by_what_comes_in_from_above(kernel):
    scores, tiers = rows()
    factor = torch.linspace(-2, 3, len(tiers), dtype=torch.float64)
    with computing(kernel):
        _, plain = value_and_gradient(lambda w: tr.log_prob(w, tiers), scores)
        _, scaled = value_and_gradient(lambda w: factor * tr.log_prob(w, tiers), scores)
    by_row = factor.repeat_interleave(tiers.lengths)
    torch.testing.assert_close(scaled, by_row * plain, rtol=1e-14, atol=1e-15)


def test_no_gradient_is_computed_when_none_is_wanted():
    scores, tiers = rows()
    wanted = torch.from_numpy(scores).requires_grad_()
    with torch.no_grad():
        assert not tr.log_prob(wanted, tiers).requires_grad
    with torch.inference_mode():
        inferred = tr.log_prob(wanted.detach(), tiers)
    assert not tr.log_prob(wanted.detach(), tiers).requires_grad
    differentiated = tr.log_prob(wanted, tiers)
    assert differentiated.requires_grad
    assert torch.equal(inferred, differentiated)


def test_a_backward_pass_can_be_repeated():
    scores, tiers = rows()
    scores = torch.from_numpy(scores).requires_grad_()
    loss = tr.log_prob(scores, tiers).sum()
    loss.backward(retain_graph=True)
    once = scores.grad.clone()
    loss.backward()
    assert torch.equal(scores.grad, 2 * once)


@each_kernel
def test_newton_steps_by_autograd_find_the_maximum(kernel):
    """What second derivatives are for: worths that maximise a likelihood, in a few steps."""
    tiers = tr.Tiers.from_rankings([[0, (1, 2)], [(1, 0), 2], [2, 1, 0], [1, (0, 2)]])
    scores = torch.zeros(3, dtype=torch.float64)

    def loss(w):
        return -tr.log_prob(w, tiers).sum()

    with computing(kernel):
        for _ in range(8):
            gradient = torch.autograd.functional.jacobian(loss, scores)
            hessian = torch.autograd.functional.hessian(loss, scores)
            scores = scores - torch.linalg.pinv(hessian) @ gradient
        gradient = torch.autograd.functional.jacobian(loss, scores)
    assert gradient.abs().max() < 1e-12
    assert torch.linalg.eigvalsh(hessian)[1] > 0.1


@each_kernel
@each_dtype
def test_lists_that_name_nothing_have_no_gradient(kernel, dtype):
    """Not a single row is given to the kernel then, only what is below."""
    tiers = tr.Tiers.from_rankings([[], [], []], items=4, rest="last")
    junk = [np.full(3, np.pi) for _ in range(50)]
    del junk  # memory that is not 0, for those who forget to set theirs
    for shape in ((4,), (3, 4)):
        scores = torch.ones(shape, dtype=dtype, requires_grad=True)
        with computing(kernel):
            value = tr.log_prob(scores, tiers)
            (gradient,) = torch.autograd.grad(value.sum(), scores, create_graph=True)
            assert value.tolist() == [0, 0, 0]
            assert not gradient.any()
            curvature = tr.Curvature(scores.detach(), tiers)
            assert not curvature.diagonal().any()
            assert not (curvature @ torch.ones(shape, dtype=dtype)).any()
