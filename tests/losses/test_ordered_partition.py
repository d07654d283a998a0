"""The PMOP objectives: probabilities over ordered partitions, and their gradients."""

import itertools
import math

import mpmath
import numpy as np
import pytest
import torch
from scipy.sparse import csr_array

import tierrank as tr
from partitions import computing, each_dtype, ragged, value_and_gradient
from subsets import (
    choice_probabilities,
    log_prob,
    mean_of_scores,
    mean_of_worths,
    ordered_partitions,
    stages_of,
    subsets,
)
from tierrank.losses import find, list_mle
from tierrank.losses import subsets as losses_subsets
from tierrank.losses.ordered_partition import (
    cox_discrete,
    pmop_exact,
    pmop_fd,
    pmop_gibbs,
    pmop_mh,
)

POTENTIAL = {pmop_fd: mean_of_worths, pmop_exact: mean_of_scores}
LOSSES = {"fd": pmop_fd, "exact": pmop_exact, "gibbs": pmop_gibbs, "mh": pmop_mh}
each_loss = pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES.keys())
each_model = pytest.mark.parametrize("loss", POTENTIAL, ids=["fd", "exact"])
each_direction = pytest.mark.parametrize("direction", ["forward", "backward"])
each_sampled = pytest.mark.parametrize("loss", [pmop_gibbs, pmop_mh], ids=["gibbs", "mh"])

SCORES, LABELS, LENGTHS = ragged(41, lists=7, longest=7)
TIERS = tr.Tiers.from_labels(LABELS, lengths=LENGTHS)
BORDERS = np.cumsum(LENGTHS)[:-1]


@pytest.fixture(autouse=True)
def one_thread():
    """For tiny tensors a second one only waits."""
    with computing("plain"):
        yield


def seeded(loss):
    """The loss as a function of scores, tiers and options that always draws the same."""
    if loss in (pmop_gibbs, pmop_mh):
        return lambda *args, **options: loss(*args, generator=0, **options)
    return loss


def by_list(*arrays):
    return zip(*(np.split(array, BORDERS) for array in arrays), strict=True)


# Probabilities ---------------------------------------------------------------------------------


@each_model
@each_direction
@pytest.mark.parametrize("stages", [None, 4, 6], ids=["one score", "4 stages", "6 stages"])
def test_the_75_ordered_partitions_of_4_items_have_probabilities_that_sum_to_1(
    loss, direction, stages
):
    labels = ordered_partitions(4)
    assert len(labels) == 75
    scores = np.random.default_rng(1).normal(size=(4,) if stages is None else (4, stages))
    scores = 2 * np.tile(scores, (75, *[1] * scores.ndim))
    each = loss(scores, tr.Tiers.from_labels(labels), direction=direction, reduction="none")
    assert np.exp(-each).sum() == pytest.approx(1, rel=1e-13)
    assert each.std() > 0.1  # and not because all are the same


@each_model
@each_direction
@pytest.mark.parametrize("by_stage", [False, True])
def test_a_list_has_the_probability_that_enumeration_gives(loss, direction, by_stage):
    scores = SCORES
    if by_stage:
        scores = np.random.default_rng(2).normal(size=(len(SCORES), 5))
    each = loss(scores, TIERS, direction=direction, reduction="none")
    expected = [
        -log_prob(f, labels, POTENTIAL[loss], direction) for f, labels in by_list(scores, LABELS)
    ]
    np.testing.assert_allclose(each, expected, rtol=1e-12, atol=1e-13)


def test_pmop_fd_by_hand():
    """Worths 3, 2 and 1: {a, b} first, then {c}."""
    scores, tiers = np.log([3.0, 2.0, 1.0]), tr.Tiers.from_labels([1, 1, 0])
    # the seven subsets: 3 + 2 + 1 + (3 + 2)/2 + (3 + 1)/2 + (2 + 1)/2 + (3 + 2 + 1)/3
    assert pmop_fd(scores, tiers) == pytest.approx(-math.log(2.5 / 14), rel=1e-14)
    assert pmop_fd(scores, tiers, constant=False) == pytest.approx(-math.log(5 / 6), rel=1e-14)
    # backward, worths 1/3, 1/2 and 1: {c} out of three, {a, b} out of two
    first, second = 1 / (7 / 3 * (1 + 1 / 2 + 1 / 3)), (5 / 12) / (5 / 6 + 5 / 12)
    loss = pmop_fd(scores, tiers, direction="backward")
    assert loss == pytest.approx(-math.log(first * second), rel=1e-14)
    # a worth a stage: 3, 2 and 1, then only c is left
    staged = np.stack([scores, [9.0, -9.0, 5.0]], axis=1)
    assert pmop_fd(staged, tiers) == pytest.approx(-math.log(2.5 / 14), rel=1e-14)


def test_pmop_exact_by_hand():
    """Worths 16, 4 and 1: {b} out of three, then {a, c} out of two."""
    scores, tiers = np.log([16.0, 4.0, 1.0]), tr.Tiers.from_labels([0, 1, 0])
    first = 4 / (16 + 4 + 1 + math.sqrt(64) + math.sqrt(16) + math.sqrt(4) + 4)
    second = math.sqrt(16) / (16 + 1 + math.sqrt(16))
    assert pmop_exact(scores, tiers) == pytest.approx(-math.log(first * second), rel=1e-14)


@pytest.mark.parametrize("n", range(1, 11))
def test_the_constant_of_the_paper_is_the_sum_over_all_subsets(n):
    """Appendix A: Σ_S (1/|S|) Σ_{x∈S} φ(x) = C Σ φ(x), with C = (2^N − 1)/N."""
    worths = np.random.default_rng(n).exponential(size=n)
    over_subsets = sum(worths[list(s)].mean() for s in subsets(range(n)))
    assert over_subsets == pytest.approx((2**n - 1) / n * worths.sum(), rel=1e-12)
    # item 0 first, then all others: the constants of both stages
    tiers = tr.Tiers.from_labels(np.arange(n) == 0)
    constants = (2**n - 1) / n * max(2 ** (n - 1) - 1, 1)
    scores = np.log(worths)
    added = pmop_fd(scores, tiers) - pmop_fd(scores, tiers, constant=False)
    assert added == pytest.approx(math.log(constants), rel=1e-12, abs=1e-14)


def test_the_constant_of_long_lists():
    tiers = tr.Tiers.from_labels(np.zeros(5000))
    assert pmop_fd(np.zeros(5000), tiers) == pytest.approx(5000 * math.log(2), rel=1e-14)
    one = csr_array(([1.0], ([0], [7])), shape=(1, 1_000_000))
    scores, tiers = np.zeros(1_000_000, dtype=np.float32), tr.Tiers.from_positives(one)
    whole = 2 * math.log(2) * 1e6 - math.log(2)  # 1 of 2^1000000 − 1, then 1 of 2^999999 − 1
    assert pmop_fd(scores.astype(float), tiers) == pytest.approx(whole, rel=1e-14)
    assert pmop_fd(scores, tiers, constant=False) == pytest.approx(math.log(1e6), rel=1e-6)


@each_direction
def test_the_constant_never_reaches_the_gradient(direction):
    _, gradient = value_and_gradient(lambda w: pmop_fd(w, TIERS, direction=direction), SCORES)
    _, without = value_and_gradient(
        lambda w: pmop_fd(w, TIERS, direction=direction, constant=False), SCORES
    )
    torch.testing.assert_close(gradient, without, rtol=0, atol=0)


def test_pmop_fd_without_ties_differs_from_list_mle_by_a_constant():
    rng = np.random.default_rng(3)
    scores = 2 * rng.normal(size=(5, 8))
    tiers = tr.Tiers.from_labels(rng.permuted(np.tile(np.arange(8), (5, 1)), axis=1))
    value, gradient = value_and_gradient(lambda w: pmop_fd(w, tiers, reduction="none"), scores)
    plackett_luce, expected = value_and_gradient(
        lambda w: list_mle(w, tiers, reduction="none"), scores
    )
    torch.testing.assert_close(gradient, expected, rtol=1e-11, atol=1e-13)
    constant = sum(math.log((2**n - 1) / n) for n in range(1, 9))
    torch.testing.assert_close(value - plackett_luce, torch.full((5,), constant).double())


# Directions and stages -------------------------------------------------------------------------


@each_loss
@pytest.mark.parametrize("by_stage", [False, True])
def test_backward_is_forward_on_reversed_labels_and_negated_scores(loss, by_stage):
    loss = seeded(loss)
    # single items and no others in a tier, so that the samplers see them in the same order
    labels = np.array([[2, 0, 1, 4, 3], [1, 4, 3, 0, 2]])
    scores = np.random.default_rng(4).normal(size=(2, 5, 5) if by_stage else (2, 5))
    backward = loss(scores, tr.Tiers.from_labels(labels), direction="backward", reduction="none")
    mirrored = loss(-scores, tr.Tiers.from_labels(-labels), reduction="none")
    np.testing.assert_allclose(backward, mirrored, rtol=1e-13)
    forward = loss(scores, tr.Tiers.from_labels(labels), reduction="none")
    assert (abs(backward - forward) > 1e-3).all()  # another model


@each_loss
@each_direction
def test_the_same_score_at_each_stage_is_one_score(loss, direction):
    loss = seeded(loss)
    staged = np.repeat(SCORES[:, None], 4, axis=1)
    one = loss(SCORES, TIERS, direction=direction, reduction="none")
    each = loss(staged, TIERS, direction=direction, reduction="none")
    np.testing.assert_allclose(each, one, rtol=1e-13, atol=1e-13)


@each_loss
def test_a_stage_looks_at_its_own_scores_only(loss):
    """Two tiers: stages 0 and 1. What later stages hold, and stage 1 for the first tier, is never
    looked at."""
    tiers = tr.Tiers.from_labels([1, 0, 0])
    scores = np.array([[0.5, np.nan, np.nan], [0.1, 0.7, np.inf], [-0.3, -0.2, np.nan]])
    value, gradient = value_and_gradient(lambda w: seeded(loss)(w, tiers), scores)
    assert value.isfinite()
    assert gradient[:, 2].count_nonzero() == 0
    assert gradient[0, 1] == 0
    bad = scores.copy()
    bad[2, 1] = np.nan
    with pytest.raises(ValueError, match=r"scores\[2, 1\], in list 0, is nan"):
        seeded(loss)(bad, tiers)


@each_loss
def test_catalogue_scores_are_shared_or_not_with_stages_or_not(loss):
    """Without a rest. Written out as rows, both are the same."""
    rankings = [[3, (0, 4)], [(1, 2), 0, 3], [(0, 1, 2, 3, 4)]]
    tiers = tr.Tiers.from_rankings(rankings, items=5)
    rows = tr.Tiers.from_labels([1, 0, 0, 2, 2, 1, 0, 0, 0, 0, 0, 0], lengths=[3, 4, 5])
    named = [3, 0, 4, 1, 2, 0, 3, 0, 1, 2, 3, 4]
    scores = np.random.default_rng(5).normal(size=(5, 4))
    for given in (scores[:, 0], scores):
        expected = seeded(loss)(given[named], rows, reduction="none")
        np.testing.assert_allclose(
            seeded(loss)(given, tiers, reduction="none"), expected, rtol=1e-13
        )
        each = np.tile(given, (3, *[1] * given.ndim))
        np.testing.assert_allclose(
            seeded(loss)(each, tiers, reduction="none"), expected, rtol=1e-13
        )


@each_loss
@pytest.mark.parametrize(
    ("scores", "message"),
    [
        ((6, 2), r"list 1 has 3 tiers.* 3 stages, but the last axis of \[6, 2\] has 2"),
        ((6, 0), r"list 1 has 3 tiers.* 3 stages, but the last axis of \[6, 0\] has 0"),
        ((7, 3), r"shape \[7, 3\] have one axis more .* labels of shape \[6\].* not \[7\]"),
        ((7,), r"labels of shape \[6\], so the scores need that shape, not \[7\]"),
        ((6, 3, 1), r"labels of shape \[6\], so the scores need that shape, not \[6, 3, 1\]"),
    ],
)
def test_scores_that_do_not_fit_are_refused(loss, scores, message):
    tiers = tr.Tiers.from_labels([1, 0, 0, 1, 2, 0], lengths=[2, 4])
    with pytest.raises(ValueError, match=message):
        loss(np.zeros(scores), tiers)


@each_loss
def test_an_unknown_direction_is_refused(loss):
    with pytest.raises(ValueError, match=r'"forward" .* or "backward" .*, not .up.'):
        loss(SCORES, TIERS, direction="up")


# The rest of a catalogue -----------------------------------------------------------------------


@each_direction
@pytest.mark.parametrize("scores", [[0.3, -1.2, 0.8, 2.0], [9.0, -1.2, 0.8, 1.0]])
def test_a_rest_that_is_not_written_counts_as_if_it_were(direction, scores):
    """(The second scores leave list 0 a rest of little worth, forward.)"""
    scores = np.array(scores)
    rankings = [[(0, 1)], [2, (0, 3)], [], [(0, 1, 2, 3)], [0, 1, 2], [3, (0, 1, 2)]]
    tiers = tr.Tiers.from_rankings(rankings, items=4, rest="last")
    labels = np.array(
        [[1, 1, 0, 0], [1, 0, 2, 1], [0, 0, 0, 0], [0, 0, 0, 0], [3, 2, 1, 0], [0, 0, 0, 1]]
    )
    tiled = np.tile(scores, (6, 1))
    for constant in (True, False):
        options = {"constant": constant, "direction": direction, "reduction": "none"}
        value, gradient = value_and_gradient(
            lambda w, options=options: pmop_fd(w, tr.Tiers.from_labels(labels), **options), tiled
        )
        for given, expected in ((scores, gradient.sum(0)), (tiled, gradient)):
            each, found = value_and_gradient(
                lambda w, options=options: pmop_fd(w, tiers, **options), given
            )
            torch.testing.assert_close(each, value, rtol=1e-12, atol=1e-12)
            torch.testing.assert_close(found, expected, rtol=1e-11, atol=1e-12)


@each_direction
def test_positives_over_all_the_rest(direction):
    rng = np.random.default_rng(6)
    positive = rng.random((5, 9)) < [[0.3], [0.1], [0.0], [1.0], [0.6]]
    tiers, written = tr.Tiers.from_positives(csr_array(positive)), tr.Tiers.from_labels(positive)
    scores = rng.normal(size=9)
    tiled = np.tile(scores, (5, 1))
    expected = pmop_fd(tiled, written, direction=direction, reduction="none")
    for given in (scores, tiled):
        each = pmop_fd(given, tiers, direction=direction, reduction="none")
        np.testing.assert_allclose(each, expected, rtol=1e-12)


@pytest.mark.parametrize("loss", [pmop_exact, pmop_gibbs, pmop_mh])
@pytest.mark.parametrize("shape", [(4,), (1, 4), (4, 2)])
def test_the_general_potential_wants_the_rest_written(loss, shape):
    tiers = tr.Tiers.from_rankings([[0]], items=4, rest="last")
    with pytest.raises(ValueError, match=r"a rest that is not written down\. Only pmop_fd"):
        loss(np.zeros(shape), tiers)


def test_pmop_fd_wants_the_rest_written_where_scores_have_stages():
    tiers = tr.Tiers.from_rankings([[0]], items=4, rest="last")
    with pytest.raises(ValueError, match="one score an item for all stages"):
        pmop_fd(np.zeros((4, 2)), tiers)


# The exact sum over subsets --------------------------------------------------------------------


@each_direction
def test_the_gradient_of_pmop_exact_is_the_enumerated_one_of_equation_13(direction):
    """Mean of x over the chosen, less its expectation over all subsets; here x is a unit vector."""
    sign = {"forward": 1, "backward": -1}[direction]
    _, gradient = value_and_gradient(
        lambda w: pmop_exact(w, TIERS, direction=direction, reduction="sum"), SCORES
    )
    for w, labels, found in by_list(SCORES, LABELS, gradient.numpy()):
        expected = np.zeros(len(w))
        for chosen, left in stages_of(labels, direction):
            expected[list(chosen)] -= sign / len(chosen)
            for s, p in choice_probabilities(sign * w, mean_of_scores, left).items():
                expected[list(s)] += sign * p / len(s)
        np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-13)


@each_loss
@each_direction
@pytest.mark.parametrize("by_stage", [False, True])
def test_gradients_are_those_of_finite_differences(loss, direction, by_stage):
    """With the same seed, samples stay the same: a difference of 1e-6 flips no comparison here."""
    tiers = tr.Tiers.from_labels([1, 0, 2, 1, 0, 1, 0, 0], lengths=[4, 1, 3])
    scores = np.random.default_rng(7).normal(size=(8, 3) if by_stage else 8)
    assert torch.autograd.gradcheck(
        lambda w: seeded(loss)(w, tiers, direction=direction, reduction="none"),
        torch.from_numpy(scores).requires_grad_(),
    )


def exactly(scores, chosen):
    """−log p of choosing the first `chosen` items, in 40 digits, by enumeration."""
    with mpmath.workdps(40):
        f = [mpmath.mpf(x) for x in scores]
        terms = [mpmath.exp(mpmath.fsum(f[i] for i in s) / len(s)) for s in subsets(range(len(f)))]
        return float(mpmath.log(mpmath.fsum(terms)) - mpmath.fsum(f[:chosen]) / chosen)


@pytest.mark.parametrize("spread", [0.0, 1e-3, 1.0, 40.0, 700.0, 1e4])
def test_pmop_exact_is_accurate_for_scores_of_any_spread(spread):
    scores = 1e3 + spread * np.random.default_rng(8).normal(size=11)
    tiers = tr.Tiers.from_labels(np.arange(11) < 3)
    expected = exactly(scores, 3) + exactly(scores[3:], 8)
    assert pmop_exact(scores, tiers) == pytest.approx(expected, rel=1e-12)


def test_pmop_exact_of_many_tied_scores_counts_subsets():
    tiers = tr.Tiers.from_labels(np.arange(200) < 50)
    value, gradient = value_and_gradient(lambda w: pmop_exact(w, tiers), np.full(200, 3.0))
    assert value.item() == pytest.approx(350 * math.log(2), rel=1e-13)
    # an average subset has the mean of all that remains
    expected = np.full(200, 1 / 200)
    expected[:50] -= 1 / 50  # and the last tier is just that
    np.testing.assert_allclose(gradient, expected, rtol=1e-11, atol=1e-15)


def test_blocks_do_not_change_pmop_exact(monkeypatch):
    expected = value_and_gradient(lambda w: pmop_exact(w, TIERS, reduction="none"), SCORES)
    monkeypatch.setattr(losses_subsets, "BLOCK", 600)  # a chain or two at a time
    in_blocks = value_and_gradient(lambda w: pmop_exact(w, TIERS, reduction="none"), SCORES)
    for one, other in zip(in_blocks, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-14)


def test_long_lists_are_too_much_for_pmop_exact():
    tiers = tr.Tiers.from_labels(np.zeros(206), lengths=[5, 201])
    with pytest.raises(ValueError, match=r"list 1 has 201 items.* cubic .* pmop_gibbs"):
        pmop_exact(np.zeros(206), tiers)


def test_pmop_exact_refuses_to_be_differentiated_twice():
    """Rather than to take its gradient for constant."""
    scores = torch.from_numpy(SCORES).requires_grad_()
    loss = pmop_exact(scores.square(), TIERS)
    (gradient,) = torch.autograd.grad(loss, scores, create_graph=True)
    with pytest.raises(RuntimeError, match="once, not twice"):
        gradient.sum().backward()


# Cox's discrete likelihood ---------------------------------------------------------------------


def by_subsets(w, labels):
    """−log-likelihood, with every subset of a tier's size one by one."""
    loss = 0.0
    for label in sorted(set(labels.tolist()), reverse=True):
        left = np.flatnonzero(labels <= label)
        tier = np.flatnonzero(labels == label)
        sums = [w[list(s)].sum() for s in itertools.combinations(left, len(tier))]
        loss += np.logaddexp.reduce(sums) - w[tier].sum()
    return loss


@pytest.mark.parametrize("scale", [1.0, 50.0, 1e4])
def test_cox_discrete_is_the_sum_over_all_subsets_of_a_tiers_size(scale):
    losses = cox_discrete(scale * SCORES, TIERS, reduction="none")
    expected = [by_subsets(*each) for each in by_list(scale * SCORES, LABELS)]
    np.testing.assert_allclose(losses, expected, rtol=1e-13, atol=1e-13)


def test_cox_discrete_refuses_a_list_whose_stages_no_memory_would_hold():
    tiers = tr.Tiers.from_rankings([list(range(10_000))])
    with pytest.raises(ValueError, match="pl_partition, which is linear"):
        tr.losses.cox_discrete(torch.zeros(10_000), tiers)


def test_the_probabilities_of_cox_discrete_over_tiers_of_given_sizes_sum_to_1():
    w = np.array([0.4, -1.2, 0.3, 2.0, -0.7])
    labels = np.array(sorted(set(itertools.permutations([2, 1, 1, 0, 0]))))
    tiers = tr.Tiers.from_labels(labels)
    losses = cox_discrete(np.tile(w, (len(labels), 1)), tiers, reduction="none")
    assert len(labels) == 30
    assert np.exp(-losses).sum() == pytest.approx(1, rel=1e-13)


@pytest.mark.parametrize("picked", [1, 2, 30, 118, 119])
@pytest.mark.parametrize("scale", [0.0, 1.0, 100.0])
def test_cox_discrete_of_a_long_list_is_that_of_forty_digits(picked, scale):
    """The polynomial ∏ (1 + e^w t) written out; its gradient, by leaving one factor out."""
    w = scale * np.random.default_rng(picked).normal(size=120)
    labels = (np.arange(120) % 120 < picked).astype(int)
    with mpmath.workdps(40):
        worths = [mpmath.exp(x) for x in w]

        def coefficient(factors, degree):
            total = [mpmath.mpf(1)] + [mpmath.mpf(0)] * degree
            for x in factors:
                for k in range(degree, 0, -1):
                    total[k] += total[k - 1] * x
            return total[degree]

        whole = coefficient(worths, picked)
        expected = float(mpmath.log(whole) - sum(map(mpmath.mpf, w[:picked])))
        with_it = [
            float(worths[i] * coefficient(worths[:i] + worths[i + 1 :], picked - 1) / whole)
            for i in (0, 60, 119)
        ]
    value, gradient = value_and_gradient(
        lambda w: cox_discrete(w, tr.Tiers.from_labels(labels)), torch.from_numpy(w)
    )
    assert value.item() == pytest.approx(expected, rel=1e-13, abs=1e-13)
    np.testing.assert_allclose(
        gradient[[0, 60, 119]], np.array(with_it) - labels[[0, 60, 119]], atol=1e-12
    )


@pytest.mark.parametrize("far", [1e15, 1e17, 1.7e308])
def test_cox_discrete_keeps_the_digits_of_items_beside_some_that_are_far_away(far):
    """The best is certain, and then two of two thousand are chosen that are all alike."""
    scores = torch.full((2001,), -far, dtype=torch.float64)
    scores[0] = far
    labels = np.array([2, 1, 1] + [0] * 1998)
    value, gradient = value_and_gradient(
        lambda w: cox_discrete(w, tr.Tiers.from_labels(labels)), scores
    )
    assert value.item() == pytest.approx(math.log(math.comb(2000, 2)), rel=1e-13)
    np.testing.assert_allclose(gradient[1:], 2 / 2000 - labels[1:], rtol=1e-10)


def test_cox_discrete_can_be_differentiated_twice():
    scores = torch.from_numpy(SCORES).requires_grad_()
    assert torch.autograd.gradgradcheck(lambda w: cox_discrete(w, TIERS, reduction="none"), scores)


def test_cox_discrete_is_the_likelihood_where_every_tier_but_the_last_has_one_item():
    tiers = tr.Tiers.from_labels([3, 2, 1, 0, 0, 0])
    w = torch.tensor([0.3, -1.0, 2.0, 0.5, 0.1, -0.4], dtype=torch.float64)
    ours, exact = (
        value_and_gradient(lambda w, f=f: f(w, tiers), w) for f in (cox_discrete, list_mle)
    )
    torch.testing.assert_close(ours, exact, rtol=1e-13, atol=1e-13)


def test_cox_discrete_refuses_a_sum_that_no_memory_would_hold():
    tiers = tr.Tiers.from_labels(np.arange(20_000) % 2)
    with pytest.raises(ValueError, match=r"tier of 10000 out of 20000 .* pl_partition"):
        cox_discrete(np.zeros(20_000), tiers)


# Edges -----------------------------------------------------------------------------------------


@each_loss
@each_direction
@each_dtype
def test_scores_of_ten_thousand_give_finite_values_and_gradients(loss, direction, dtype):
    tiers = tr.Tiers.from_labels([2, 2, 1, 0, 0])
    for scores in ([1e4, 1e4, 0, -1e4, -1e4], [-1e4, 1e4, -1e4, 1e4, 0], [1e4] * 5, [-1e4] * 5):
        value, gradient = value_and_gradient(
            lambda w: seeded(loss)(w, tiers, direction=direction), torch.tensor(scores, dtype=dtype)
        )
        assert value.isfinite()
        assert value.dtype == dtype
        assert gradient.isfinite().all()
    # near 1e4, differences still count
    apart = torch.tensor([0.5, 0.25, 0.0, -0.5, 1.0], dtype=dtype)
    values = [
        value_and_gradient(lambda w: seeded(loss)(w, tiers, direction=direction), apart + height)
        for height in (0, -1e4, 1e4)
    ]
    for value, gradient in values[1:]:
        torch.testing.assert_close(value, values[0][0], rtol=1e-6, atol=1e-6)
        torch.testing.assert_close(gradient, values[0][1], rtol=1e-6, atol=1e-6)


@each_loss
def test_one_item_is_certain(loss):
    value, gradient = value_and_gradient(
        lambda w: seeded(loss)(w, tr.Tiers.from_labels([3])), np.array([2.5])
    )
    assert value == 0
    assert gradient == 0


@each_direction
def test_one_tier_is_one_of_all_subsets(direction):
    tiers = tr.Tiers.from_labels([1, 1, 1])
    scores = np.array([0.5, -1.0, 2.0])
    value, gradient = value_and_gradient(lambda w: pmop_fd(w, tiers, direction=direction), scores)
    assert value.item() == pytest.approx(math.log(7), rel=1e-14)
    assert gradient.abs().max() < 1e-15
    # but by equation 16 the scores matter
    _, gradient = value_and_gradient(lambda w: pmop_exact(w, tiers, direction=direction), scores)
    assert gradient.abs().max() > 0.1
    assert gradient.sum().item() == pytest.approx(0, abs=1e-15)


@each_loss
def test_no_lists_at_all(loss):
    none = tr.Tiers.from_labels([])
    for scores in (np.zeros(0), np.zeros((0, 3))):
        for direction in ("forward", "backward"):
            each = loss(scores, none, direction=direction, reduction="none")
            assert each.shape == (0,)


@each_loss
def test_padding_and_weights(loss):
    labels = np.array([[1, 0, 7, 0], [0, 1, 2, 1], [5, 7, 7, 7]])
    mask = np.array([[1, 1, 0, 1], [1, 1, 1, 1], [1, 0, 0, 0]], dtype=bool)
    scores = np.random.default_rng(9).normal(size=(3, 4))
    padded = np.where(mask, scores, np.nan)
    tiers = tr.Tiers.from_labels(labels, mask=mask)
    rows = tr.Tiers.from_labels(labels[mask], lengths=[3, 4, 1])
    expected = seeded(loss)(scores[mask], rows, reduction="none")
    np.testing.assert_allclose(seeded(loss)(padded, tiers, reduction="none"), expected, rtol=1e-14)
    weighted = seeded(loss)(padded, tiers, weights=[2.0, 0.5, 1.0])
    assert weighted == pytest.approx((2 * expected[0] + expected[1] / 2 + expected[2]) / 3.5)


@pytest.mark.parametrize(
    ("loss", "options"),
    [(pmop_fd, {}), (pmop_gibbs, {"steps": 1, "generator": 0}), (pmop_mh, {"generator": 0})],
)
@pytest.mark.parametrize("grades", [2000, 5, 1])
def test_lists_of_two_thousand_items(loss, options, grades):
    rng = np.random.default_rng(10)
    labels = rng.permutation(2000) % grades
    tiers = tr.Tiers.from_labels(labels)
    value, gradient = value_and_gradient(
        lambda w: loss(w, tiers, **options), torch.from_numpy(rng.normal(size=2000)).float()
    )
    assert value.isfinite()
    assert gradient.isfinite().all()
    assert gradient.sum().item() == pytest.approx(0, abs=1e-4)


def test_the_objectives_are_known_by_name():
    for name, loss in LOSSES.items():
        entry = find(f"pmop-{name}")
        assert entry.function is loss
        assert entry.family == "ordered partition"
