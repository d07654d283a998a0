"""The objectives that the native core computes in one pass, against their formulas and mpmath."""

import math
from functools import partial

import mpmath
import numpy as np
import pytest
import torch
from scipy.special import gammaln
from torch.autograd import forward_ad

import tierrank as tr
from partitions import computing, each_dtype, ragged, value_and_gradient
from tierrank import losses

LOSSES = {
    "pl-lb": losses.pl_lower_bound,
    "pl-efron": losses.pl_efron,
    "pmop-fd": losses.pmop_fd,
    "pmop-fd, backward": partial(losses.pmop_fd, direction="backward"),
    "pmop-fd, no constant": partial(losses.pmop_fd, constant=False),
    "listnet": losses.list_net,
    "attrank": losses.att_rank,
}
each_loss = pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES.keys())

RANKINGS = [[(0, 1)], [2, (0, 3)], [4, 1, 2, 0], [3], [], [(0, 1, 2, 3, 4)], [4, (3, 2, 1, 0)]]


def labelled(seed=3):
    return ragged(seed, lists=40, longest=30, grades=4)


def rows():
    scores, labels, lengths = labelled()
    return scores, tr.Tiers.from_labels(labels, lengths=lengths)


def rows_in_any_order():
    scores, labels, lengths = labelled()
    order = np.random.default_rng(1).permutation(len(scores))
    qid = np.repeat(np.arange(len(lengths)), lengths)
    return scores[order], tr.Tiers.from_labels(labels[order], qid=qid[order])


def padded(lists=9):
    rng, shape = np.random.default_rng(2), (lists, 11)
    mask = rng.random(shape) < 0.7
    mask[:, 0] = True
    return rng.normal(size=shape), tr.Tiers.from_labels(rng.integers(0, 3, shape), mask=mask)


def catalogue(rest, shared):
    rankings = RANKINGS if rest == "last" else [one for one in RANKINGS if one]
    tiers = tr.Tiers.from_rankings(rankings, items=5, rest=rest)
    shape = 5 if shared else (len(rankings), 5)
    return np.random.default_rng(4).normal(size=shape), tiers


def one_list_of_one_item():
    return np.array([2.5]), tr.Tiers.from_labels([3])


def one_tier():
    return np.array([0.5, -1.0, 2.0]), tr.Tiers.from_labels([1, 1, 1])


def nothing():
    return np.zeros(0), tr.Tiers.from_labels([])


CASES = {
    "rows": rows,
    "rows in any order": rows_in_any_order,
    "padded": padded,
    "own scores, absent": partial(catalogue, "absent", False),
    "shared scores, absent": partial(catalogue, "absent", True),
    "own scores, a rest": partial(catalogue, "last", False),
    "shared scores, a rest": partial(catalogue, "last", True),
    "one item": one_list_of_one_item,
    "one tier": one_tier,
    "no lists": nothing,
}
each_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())


def by_both(loss, scores, tiers):
    """Values and gradients, every list with a weight of its own: native, and by the formula."""
    weights = np.linspace(0.5, 2, len(tiers))
    found = []
    for kernel in ("compiled", "plain"):
        with computing(kernel):
            found.append(
                value_and_gradient(
                    lambda w: loss(w, tiers, weights=weights, reduction="none"), scores
                )
            )
    return found


@each_loss
@each_case
@each_dtype
def test_the_native_core_gives_what_the_formula_gives(loss, case, dtype):
    scores, tiers = case()
    for spread in (1.0, 30.0, 300.0):
        given = torch.from_numpy(spread * scores).to(dtype)
        native, formula = by_both(loss, given, tiers)
        close = {torch.float64: (1e-12, 1e-12), torch.float32: (2e-6, 2e-5)}[dtype]
        for ours, expected in zip(native, formula, strict=True):
            assert ours.dtype == dtype
            torch.testing.assert_close(ours, expected, rtol=close[0], atol=close[1])


# mpmath ----------------------------------------------------------------------------------------


def worth(scores):
    return mpmath.fsum(map(mpmath.exp, scores))


def exact(name, tiers):
    """The losses of one list, tiers of mpmath's numbers best first, grades 0, 1, … from below."""
    if name in ("listnet", "attrank"):
        grades = range(len(tiers) - 1, -1, -1)
        share = [mpmath.exp(g) if g > 0 or name == "listnet" else mpmath.mpf(0) for g in grades]
        total = mpmath.fsum(s * len(tier) for s, tier in zip(share, tiers, strict=True))
        lse = mpmath.log(worth([w for tier in tiers for w in tier]))
        return mpmath.fsum(
            s * (lse - w) for s, tier in zip(share, tiers, strict=True) for w in tier
        ) / (total or 1)
    loss = mpmath.mpf(0)
    if name == "pmop-fd, backward":
        tiers = [[-w for w in tier] for tier in tiers[::-1]]
    for m, tier in enumerate(tiers[:-1]):
        own, n = worth(tier), len(tier)
        below = worth([w for lower in tiers[m + 1 :] for w in lower])
        if name.startswith("pmop"):
            loss -= mpmath.log(own / (own + below))
        else:
            drawn = range(n) if name == "pl-efron" else [0] * n
            left = mpmath.fsum(mpmath.log(own * (n - k) / n + below) for k in drawn)
            loss -= mpmath.loggamma(n + 1) + mpmath.fsum(tier) - left
    return loss


@pytest.mark.parametrize("name", [name for name in LOSSES if name != "pmop-fd"])
@pytest.mark.parametrize("spread", [1.0, 50.0, 1e4])
@pytest.mark.parametrize("seed", range(3))
def test_values_and_gradients_are_those_of_mpmath(name, spread, seed):
    rng = np.random.default_rng(seed)
    labels = np.array([[2, 1, 0, 1, 2, 0], [3, 1, 1, 0, 2, 0], [0, 0, 1, 0, 1, 1]][seed])
    labels = np.unique(labels, return_inverse=True)[1]
    scores = spread * rng.uniform(-1, 1, size=6)
    constant = {"constant": False} if name.startswith("pmop") else {}

    def of_rows(*w):
        best_first = range(labels.max(), -1, -1)
        return exact(name, [[w[i] for i in np.flatnonzero(labels == g)] for g in best_first])

    with mpmath.workdps(40):
        given = [mpmath.mpf(float(w)) for w in scores]
        expected = float(of_rows(*given))
        slopes = [
            float(mpmath.diff(of_rows, given, tuple(int(i == k) for i in range(6))))
            for k in range(6)
        ]
    tiers = tr.Tiers.from_labels(labels)
    with computing("compiled"):
        value, gradient = value_and_gradient(lambda w: LOSSES[name](w, tiers, **constant), scores)
    assert value.item() == pytest.approx(expected, rel=1e-13, abs=1e-13)
    np.testing.assert_allclose(gradient, slopes, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("size", [1, 7, 8, 9, 127, 128, 129, 5000])
@pytest.mark.parametrize("below", [-40.0, 0.0, 40.0])
def test_efron_of_a_large_tier_of_equal_items_is_a_ratio_of_gamma_functions(size, below):
    """Σ_k log(B + k) = log Γ(B + n + 1) − log Γ(B + 1), k = 1 … n, for n items of worth 1."""
    tiers = tr.Tiers.from_labels([1] * size + [0])
    scores = np.zeros(size + 1)
    scores[-1] = below
    B = math.exp(below)
    terms = np.log(B + np.arange(1, size + 1))
    left = math.fsum(terms) if B > 1e6 else gammaln(B + size + 1) - gammaln(B + 1)
    assert losses.pl_efron(scores, tiers) == pytest.approx(
        left - gammaln(size + 1), rel=1e-11, abs=1e-11
    )


def test_floats_that_are_further_apart_than_a_float_holds():
    scores = torch.tensor([3e38, -3e38, 0.0, 3e38])
    for labels in ([3, 2, 1, 0], [0, 0, 0, 1]):
        tiers = tr.Tiers.from_labels(labels)
        for loss in LOSSES.values():
            native, formula = by_both(loss, scores, tiers)
            torch.testing.assert_close(native, formula)


# Long lists, and threads -----------------------------------------------------------------------


@each_loss
@each_dtype
def test_any_number_of_threads_gives_the_same_numbers_of_short_and_long_lists(loss, dtype):
    rng = np.random.default_rng(7)
    lengths = [*rng.integers(1, 60, size=1500), 200_000, 3, 150_000]
    labels = rng.integers(0, 4, size=sum(lengths))
    tiers = tr.Tiers.from_labels(labels, lengths=lengths)
    scores = torch.from_numpy(rng.normal(size=len(labels))).to(dtype)
    before = torch.get_num_threads()
    found = []
    try:
        for threads in (1, 2, 5):
            torch.set_num_threads(threads)
            found.append(value_and_gradient(lambda w: loss(w, tiers, reduction="none"), scores))
    finally:
        torch.set_num_threads(before)
    for other in found[1:]:
        for ours, expected in zip(other, found[0], strict=True):
            assert ours.equal(expected)
    with computing("plain"):
        formula = value_and_gradient(lambda w: loss(w, tiers, reduction="none"), scores)
    close = {torch.float64: (1e-11, 1e-13), torch.float32: (1e-5, 1e-5)}[dtype]
    for ours, expected in zip(found[0], formula, strict=True):
        torch.testing.assert_close(ours, expected, rtol=close[0], atol=close[1])


# Derivatives, and scores that are none ---------------------------------------------------------


@each_loss
@pytest.mark.parametrize("case", ["padded", "own scores, a rest", "shared scores, a rest"])
def test_it_can_be_differentiated_twice(loss, case):
    scores, tiers = padded(lists=2) if case == "padded" else CASES[case]()
    given = torch.from_numpy(scores).requires_grad_()

    def by_list(w):
        return loss(w, tiers, reduction="none")

    assert torch.autograd.gradcheck(by_list, given)
    assert torch.autograd.gradgradcheck(by_list, given)


@each_loss
def test_forward_mode_gives_the_derivative_in_a_direction(loss):
    scores, tiers = rows()
    w = torch.from_numpy(scores)
    direction = torch.from_numpy(np.random.default_rng(8).normal(size=len(scores)))
    with forward_ad.dual_level():
        value = loss(forward_ad.make_dual(w, direction), tiers)
        slope = forward_ad.unpack_dual(value).tangent
    expected = value_and_gradient(lambda x: loss(x, tiers), scores)[1] @ direction
    torch.testing.assert_close(slope, expected)


@each_loss
@each_case
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_score_that_is_not_finite_is_refused_in_the_words_of_the_formula(loss, case, bad):
    scores, tiers = case()
    if len(tiers) == 0:
        return
    scores = scores.copy()
    scores.reshape(-1)[int(tiers.items[-1])] = bad
    messages = []
    for kernel in ("compiled", "plain"):
        for requires_grad in (False, True):
            given = torch.from_numpy(scores).requires_grad_(requires_grad)
            with computing(kernel), pytest.raises(ValueError, match="must be finite") as error:
                loss(given, tiers)
            messages.append(str(error.value))
    assert len(set(messages)) == 1


@each_loss
def test_what_depends_on_the_tiers_alone_is_made_once(loss, monkeypatch):
    scores, tiers = rows()
    first = loss(scores, tiers)
    monkeypatch.setattr(tr.Tiers, "grades", property(lambda _: pytest.fail("made anew")))
    monkeypatch.setattr(tr.Tiers, "n_tiers", property(lambda _: pytest.fail("made anew")))
    monkeypatch.setattr(tr.Tiers, "full_lengths", property(lambda _: pytest.fail("made anew")))
    assert loss(scores, tiers) == first
