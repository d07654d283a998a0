"""What a user relies on from every objective: one matrix of properties over all of them."""

import itertools
import math
from functools import partial
from math import e, log, log2, sqrt

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array
from torch import func

import tierrank as tr
from partitions import each_dtype, ragged, value_and_gradient
from tierrank import losses
from tierrank.losses import OBJECTIVES

# Options that make an objective fit a small list, or the same each time.
OPTIONS = {
    "pl-topk": {"k": 2},
    "pmop-gibbs": {"generator": 0},
    "pmop-mh": {"generator": 0},
    "pl-rank": {"generator": 0},
}
NO_TIES_IN_REST = {"rao-kupper", "davidson"}  # every pair of the rest would be a tie
NO_REST = NO_TIES_IN_REST | {"pmop-exact", "pmop-gibbs", "pmop-mh"}
# Their draws follow the order of lists and items: only the expectation is the same in any order.
DRAWN = {"pmop-gibbs", "pmop-mh", "pl-rank"}
FEWER = {"pmop-gibbs": {"steps": 1}, "pmop-mh": {"steps": 1}, "neural-ndcg": {"scalings": 5}}
NAMES = sorted(OBJECTIVES)

each = pytest.mark.parametrize("name", NAMES)
each_fixed = pytest.mark.parametrize("name", [name for name in NAMES if name not in DRAWN])

SCORES, LABELS, LENGTHS = ragged(31, lists=6, longest=8)
TIERS = tr.Tiers.from_labels(LABELS, lengths=LENGTHS)
WEIGHTS = np.array([0.5, 2.0, 0.0, 1.0, 3.0, 0.25])


def loss_of(name):
    """The function of this name, with its options."""

    def loss(scores, tiers, **more):
        return OBJECTIVES[name].function(scores, tiers, **OPTIONS.get(name, {}), **more)

    return loss


# By hand ---------------------------------------------------------------------------------------

# Worths 4, 2, 1, 1 of items a, b, c, d; observed: a > {b, c} > d.
WORTHS = np.array([4.0, 2.0, 1.0, 1.0])
OBSERVED = [2, 1, 1, 0]


def geometric_means(*worths):
    """Σ over the non-empty subsets of their geometric means: the normaliser of equation 16."""
    subsets = itertools.chain.from_iterable(
        itertools.combinations(worths, size) for size in range(1, len(worths) + 1)
    )
    return sum(math.prod(subset) ** (1 / len(subset)) for subset in subsets)


def D(place):
    """NDCG's discount."""
    return 1 / log2(1 + place)


BEST = 3 * D(1) + D(2) + D(3)


def chance(worths, order):
    """Of an order, under the Plackett-Luce model."""
    return math.prod(worths[i] / sum(worths[j] for j in order[r:]) for r, i in enumerate(order))


def smooth_sort(w):
    """NeuralSort, scaled to rows and columns of sum 1."""
    n = len(w)
    spread = np.abs(w[:, None] - w).sum(1)
    P = np.array([np.exp((n + 1 - 2 * r) * w - spread) for r in range(1, n + 1)])
    P /= P.sum(1, keepdims=True)
    for _ in range(50):
        P /= P.sum(0)
        P /= P.sum(1, keepdims=True)
    return P


BY_HAND = {
    # a is drawn first out of 8, then b and c in either order before d
    "pl-partition": -log(4 / 8 * (2 / 4 * 1 / 2 + 1 / 4 * 2 / 3)),
    "listmle": -log(4 / 8 * (2 / 4 * 1 / 2 + 1 / 4 * 2 / 3)),
    "pl-topk": -log(4 / 8 * (2 / 4 * 1 / 2 + 1 / 4 * 2 / 3)),  # k = 2 reaches into {b, c}
    "pl-lb": -log(4 / 8 * 2 * (2 / 4) * (1 / 4)),
    "pl-efron": -log(4 / 8 * 2 * 2 * 1 / (4 * (4 - 3 / 2))),
    # α = 7, 3, 1, 0 by place, so 7 for a and (3 + 1)/2 for {b, c}, over a sum of 11
    "p-listmle": -(7 * log(4 / 8) + 2 * log(2 / 4 * 1 / 2 + 1 / 4 * 2 / 3)) / 11,
    "listnet": -(e**2 * log(4 / 8) + e * log(2 / 8) + e * log(1 / 8) + log(1 / 8))
    / (e**2 + e + e + 1),
    "attrank": -(e**2 * log(4 / 8) + e * log(2 / 8) + e * log(1 / 8)) / (e**2 + e + e),
    # grades (2, 1, 1, 0) and scores (2, 1, 0, 0) · log 2
    "rankcosine": (1 - 5 / sqrt(6 * 5)) / 2,
    # a, b and c have a grade above 0; odds are worths
    "bce": -log(4 / 5 * 2 / 3 * 1 / 2 * (1 - 1 / 2)),
    # a > b, a > c, a > d, b > d, c > d
    "ranknet": log(6 / 4) + log(5 / 4) + log(5 / 4) + log(3 / 2) + log(2 / 1),
    "ranksvm": (1 - log(2)) + 0 + 0 + (1 - log(2)) + 1,
    "rank-regress": (1 - log(2)) ** 2 + 2 * (1 - log(4)) ** 2 + (1 - log(2)) ** 2 + 1,
    # θ = 2; the last factor is the tie of b and c
    "rao-kupper": -log(4 / 8 * 4 / 6 * 4 / 6 * 2 / 4 * 1 / 3 * (3 * 2 / (4 * 5))),
    # v = 1
    "davidson": -log(
        4 / (6 + sqrt(8)) * (4 / 7) ** 2 * 2 / (3 + sqrt(2)) * 1 / 3 * sqrt(2) / (3 + sqrt(2))
    ),
    # {b, c} out of {b, c}, {b, d} and {c, d}
    "cox-discrete": -log(4 / 8 * 2 * 1 / (2 * 1 + 2 * 1 + 1 * 1)),
    # C = 15/4, then 7/3 with a subset of two, then 1
    "pmop-fd": -log(4 / 8 * 4 / 15 * 3 / 4 * 3 / 7 / 2),
    "pmop-exact": -log(
        4 / geometric_means(4, 2, 1, 1) * sqrt(2) / geometric_means(2, 1, 1) * 1 / 1
    ),
    # gains 3, 1, 1, 0; c and d, with equal scores, are placed d, c: the worse tier first
    "lambdaloss": sum(
        gap * (10 * (D(m) - D(m + 1)) + D(above) - D(above + m)) * log2(1 + worse / better)
        for gap, above, m, better, worse in [
            (2, 1, 1, 4, 2),
            (2, 1, 3, 4, 1),
            (3, 1, 2, 4, 1),
            (1, 2, 1, 2, 1),
            (1, 3, 1, 1, 1),
        ]
    )
    / BEST,
    # ranks 1 + Σ of the others' chances to win
    "approx-ndcg": 1
    - (
        3 * D(1 + 2 / 6 + 1 / 5 + 1 / 5)
        + D(1 + 4 / 6 + 1 / 3 + 1 / 3)
        + D(1 + 4 / 5 + 2 / 3 + 1 / 2)
    )
    / BEST,
    "expected-ndcg": 1
    - sum(
        chance([4, 2, 1, 1], order) * sum([3, 1, 1, 0][i] * D(r + 1) for r, i in enumerate(order))
        for order in itertools.permutations(range(4))
    )
    / BEST,
    "neural-ndcg": 1
    - (smooth_sort(np.log(WORTHS)) @ [3, 1, 1, 0]) @ [D(1), D(2), D(3), D(4)] / BEST,
}


@each_fixed
@each_dtype
def test_a_small_case_by_hand(name, dtype):
    scores = torch.from_numpy(np.log(WORTHS)).to(dtype)
    loss = loss_of(name)(scores, tr.Tiers.from_labels(OBSERVED))
    tolerance = {torch.float64: 1e-13, torch.float32: 1e-6}[dtype]
    assert loss.item() == pytest.approx(BY_HAND[name], rel=tolerance)


@pytest.mark.parametrize(
    ("name", "differences"),
    [
        # a sweep meets a first, which must stay as the only member, and then d
        ("pmop-gibbs", [0, log(2) - log(4)]),
        ("pmop-mh", [0, log(2) - log(4), log(1) - log(4)]),
    ],
)
def test_a_small_case_of_sampled_partitions(name, differences):
    """Mean of f over what was drawn, {a}, {a, d} or {d}, less that over {a}, which was observed."""
    f, tiers = np.log(WORTHS[[0, 3]]), tr.Tiers.from_labels([1, 0])
    loss = OBJECTIVES[name].function
    drawn = {round(float(loss(f, tiers, steps=1, generator=seed)), 12) for seed in range(60)}
    assert drawn == {round(difference, 12) for difference in differences}


# Numbers ---------------------------------------------------------------------------------------


@each
def test_the_gradient_is_that_of_finite_differences(name):
    lists = [1, 2, 3]  # four tiers, two tiers, a single item
    tiers, weights = TIERS[lists], torch.from_numpy(WEIGHTS[[1, 2, 4]])
    scores = torch.from_numpy(SCORES)[TIERS.rows(lists)].requires_grad_()
    assert torch.autograd.gradcheck(lambda w: loss_of(name)(w, tiers), scores)
    assert torch.autograd.gradcheck(
        lambda w: loss_of(name)(w, tiers, weights=weights, reduction="none"), scores
    )


@each
@pytest.mark.parametrize(
    "scores",
    [
        [1e4, -1e4, 1e4, -1e4, 0.0, 1e4],
        [-1e4, 1e4, -1e4, 1e4, 1e4, 0.0],
        [1e4] * 6,
        [-1e4] * 6,
        [1e4, 1e4 - 1, 1e4 - 2, 1e4 + 1, 1e4 + 2, 1e4],
    ],
)
def test_scores_of_ten_thousand_in_single_precision(name, scores):
    tiers = tr.Tiers.from_labels([2, 1, 0, 1, 2, 0])
    value, gradient = value_and_gradient(
        lambda w: loss_of(name)(w, tiers), torch.tensor(scores, dtype=torch.float32)
    )
    assert value.isfinite()
    assert gradient.isfinite().all()
    exact, exact_gradient = value_and_gradient(
        lambda w: loss_of(name)(w, tiers), torch.tensor(scores, dtype=torch.float64)
    )
    torch.testing.assert_close(value.double(), exact, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(gradient.double(), exact_gradient, rtol=1e-4, atol=1e-4)


@each
def test_single_precision_is_close_to_double(name):
    exact, exact_gradient = value_and_gradient(lambda w: loss_of(name)(w, TIERS), SCORES)
    value, gradient = value_and_gradient(
        lambda w: loss_of(name)(w, TIERS), torch.from_numpy(SCORES).float()
    )
    torch.testing.assert_close(value.double(), exact, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(gradient.double(), exact_gradient, rtol=1e-4, atol=1e-5)


@each
@each_dtype
def test_a_list_of_two_thousand(name, dtype):
    rng = np.random.default_rng(5)
    scores = torch.from_numpy(rng.normal(size=2000)).to(dtype)
    tiers = tr.Tiers.from_labels(rng.integers(0, 5, size=2000))
    more = FEWER.get(name, {})
    if name == "pmop-exact":
        with pytest.raises(ValueError, match="pmop_gibbs"):
            loss_of(name)(scores, tiers)
        return
    value, gradient = value_and_gradient(lambda w: loss_of(name)(w, tiers, **more), scores)
    assert value.isfinite()
    assert gradient.isfinite().all()
    assert gradient.count_nonzero() > 1000


@each
def test_a_strict_list_of_two_thousand(name):
    if name in NO_REST - NO_TIES_IN_REST:
        pytest.skip("takes Σ N_k, two million entries: for the benchmark")
    rng = np.random.default_rng(6)
    tiers = tr.Tiers.from_labels(rng.permutation(2000))
    scores = torch.from_numpy(rng.normal(size=2000)).float()
    more = FEWER.get(name, {})
    value, gradient = value_and_gradient(lambda w: loss_of(name)(w, tiers, **more), scores)
    assert value.isfinite()
    assert gradient.isfinite().all()


# What changes nothing --------------------------------------------------------------------------


@each
@pytest.mark.parametrize("junk", [math.nan, math.inf, 1e30])
def test_padding_is_never_looked_at(name, junk):
    labels = [[1, 0, 7, 1], [0, 1, 2, 9]]
    mask = np.array([[True, True, False, True], [True, True, True, False]])
    scores = np.array([[0.5, 0.25, junk, -1.0], [0.0, 1.0, -1.0, junk]])
    padded = loss_of(name)(scores, tr.Tiers.from_labels(labels, mask=mask), reduction="none")
    flat = loss_of(name)(
        scores[mask], tr.Tiers.from_labels(np.array(labels)[mask], lengths=[3, 3]), reduction="none"
    )
    np.testing.assert_allclose(padded, flat, rtol=1e-14)
    given = torch.from_numpy(scores).requires_grad_()
    loss_of(name)(given, tr.Tiers.from_labels(labels, mask=mask)).backward()
    assert (given.grad[~torch.from_numpy(mask)] == 0).all()


@each_fixed
def test_the_order_of_the_items_does_not_matter(name):
    order = np.random.default_rng(7).permutation(len(SCORES))
    qid = np.repeat(np.arange(6), LENGTHS)
    tiers = tr.Tiers.from_labels(LABELS, qid=qid)
    shuffled = tr.Tiers.from_labels(LABELS[order], qid=qid[order])
    value, gradient = value_and_gradient(lambda w: loss_of(name)(w, tiers), SCORES)
    other, other_gradient = value_and_gradient(lambda w: loss_of(name)(w, shuffled), SCORES[order])
    torch.testing.assert_close(other, value, rtol=1e-12, atol=0)
    torch.testing.assert_close(other_gradient, gradient[order], rtol=1e-9, atol=1e-12)


@each_fixed
def test_the_order_of_the_lists_does_not_matter_nor_what_they_are_batched_with(name):
    together = loss_of(name)(SCORES, TIERS, reduction="none")
    for order in ([3, 1, 5, 0, 2, 4], [2], [5, 4]):
        part = TIERS[order]
        alone = loss_of(name)(SCORES[TIERS.rows(order).numpy()], part, reduction="none")
        np.testing.assert_allclose(alone, together[order], rtol=1e-12, atol=1e-13)


@each_fixed
def test_a_constant_added_to_all_scores_changes_nothing(name):
    if not OBJECTIVES[name].shift_invariant:  # an angle, or odds, are seen from the scores' zero
        assert loss_of(name)(SCORES + 5, TIERS) != pytest.approx(loss_of(name)(SCORES, TIERS))
        return
    value, gradient = value_and_gradient(lambda w: loss_of(name)(w, TIERS), SCORES)
    moved, moved_gradient = value_and_gradient(lambda w: loss_of(name)(w, TIERS), SCORES + 5)
    torch.testing.assert_close(moved, value, rtol=1e-11, atol=0)
    torch.testing.assert_close(moved_gradient, gradient, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize(
    "name",
    [
        "pl-efron",
        *(
            pytest.param(name, marks=pytest.mark.slow)
            for name in ("ranknet", "p-listmle", "listnet", "pmop-fd")
        ),
    ],
)
def test_a_compiled_model_has_the_same_loss(name):
    model, features = torch.nn.Linear(3, 1), torch.randn(len(SCORES), 3)

    def loss(features):
        return loss_of(name)(model(features).squeeze(-1), TIERS)

    value, expected = torch.compile(loss, backend="aot_eager")(features), loss(features)
    torch.testing.assert_close(value, expected)
    torch.testing.assert_close(
        torch.autograd.grad(value, model.weight), torch.autograd.grad(expected, model.weight)
    )


ONCE = {"pmop-exact", "ranknet", "rao-kupper", "davidson"}


@each
def test_torch_func_agrees_with_autograd(name):
    lists = [2, 3, 5]  # two tiers, a single item, four tiers
    tiers, weights = TIERS[lists], torch.from_numpy(WEIGHTS[lists])

    def mean(w):
        return loss_of(name)(w, tiers, weights=weights)

    def by_list(w):
        return loss_of(name)(w, tiers, reduction="none")

    w = torch.from_numpy(SCORES)[TIERS.rows(lists)]
    several = torch.stack([w, w.flip(0), 0 * w])
    jacobian = torch.autograd.functional.jacobian(by_list, w)
    close = partial(torch.testing.assert_close, rtol=1e-12, atol=1e-14)
    close(func.grad(mean)(w), value_and_gradient(mean, w)[1])
    close(func.jacrev(by_list)(w), jacobian)
    close(func.jacfwd(by_list)(w), jacobian)
    close(func.vmap(by_list)(several), torch.stack([by_list(one) for one in several]))
    gradients = torch.stack([value_and_gradient(mean, one.numpy())[1] for one in several])
    close(func.vmap(func.grad(mean))(several), gradients)
    if name in ONCE:
        with pytest.raises(NotImplementedError, match="once, not twice"):
            func.hessian(mean)(w)
        return
    hessian = torch.autograd.functional.hessian(mean, w)
    close(func.hessian(mean)(w), hessian)
    close(func.jacrev(func.jacrev(mean))(w), hessian)


@pytest.mark.parametrize("name", ["rao-kupper", "davidson"])
def test_torch_func_reaches_the_number_that_says_how_probable_ties_are(name):
    module = losses.from_name(name)
    (parameter,) = dict(module.named_parameters())
    w, tie = torch.from_numpy(SCORES), torch.tensor([0.3, -0.7], dtype=torch.float64)

    def loss(w, tie):
        return loss_of(name)(w, TIERS, **{parameter: tie})

    got = func.vmap(func.grad(loss, argnums=(0, 1)), in_dims=(None, 0))(w, tie)
    for number, value in enumerate(tie):
        leaves = w.clone().requires_grad_(), value.clone().requires_grad_()
        expected = torch.autograd.grad(loss(*leaves), leaves)
        torch.testing.assert_close((got[0][number], got[1][number]), expected)


@pytest.mark.parametrize("name", ["davidson", "rao-kupper"])
def test_torch_func_calls_a_module_with_another_number_for_ties(name):
    module, tiers = losses.from_name(name), tr.Tiers.from_labels([1, 1, 0])
    scores = torch.tensor([0.3, -0.2, 0.1])
    module(scores, tiers).backward()
    ((parameter, value),) = module.named_parameters()
    found = torch.func.grad(
        lambda number: torch.func.functional_call(module, {parameter: number}, (scores, tiers))
    )(value.detach())
    torch.testing.assert_close(found, value.grad)


def test_torch_func_takes_weights_that_differ_from_one_of_a_batch_to_the_next():
    weights, w = torch.from_numpy(np.stack([WEIGHTS, WEIGHTS[::-1]])), torch.from_numpy(SCORES)
    got = func.vmap(lambda each: losses.pl_partition(w, TIERS, weights=each))(weights)
    assert got.tolist() == [float(losses.pl_partition(w, TIERS, weights=one)) for one in weights]


def test_torch_func_draws_once_for_a_value_and_its_derivatives():
    """Without that, the value would be of one draw and the gradient of another."""
    w, tiers = torch.from_numpy(SCORES), tr.Tiers.from_labels(LABELS, lengths=LENGTHS)
    loss = losses.from_name("pmop-gibbs", generator=3, reduction="sum")
    for _ in range(5):
        gradient, value = func.grad_and_value(loss)(w, tiers)
        assert float(gradient @ w) == pytest.approx(float(value), rel=1e-12)  # linear in w


@each
@pytest.mark.parametrize("labels", [OBSERVED, np.array(OBSERVED), torch.tensor(OBSERVED)])
def test_labels_where_tiers_belong_are_refused_with_what_to_write(name, labels):
    for loss in (loss_of(name), losses.from_name(name, **OPTIONS.get(name, {}))):
        with pytest.raises(ValueError, match=r"must be a Tiers, not .*Tiers.from_labels\(labels"):
            loss(np.log(WORTHS), labels)


# Lists without much in them --------------------------------------------------------------------


@each
def test_a_list_of_one_item(name):
    value, gradient = value_and_gradient(
        lambda w: loss_of(name)(w, tr.Tiers.from_labels([1])), np.array([3.0])
    )
    if name == "bce":  # it is relevant
        assert value == pytest.approx(log(1 + e**-3))
        assert gradient.tolist() == pytest.approx([-1 / (1 + e**3)])
        return
    assert value == pytest.approx(0, abs=1e-15)
    assert gradient.tolist() == [0]


@each_fixed
def test_a_list_of_one_tier(name):
    """Nothing is claimed, so there is nothing to lose; except where ties are claimed."""
    tiers = tr.Tiers.from_labels([0, 0, 0])
    scores = np.log([4.0, 2.0, 1.0])
    value, gradient = value_and_gradient(lambda w: loss_of(name)(w, tiers), scores)
    claims = {
        "listnet": -(log(4 / 7) + log(2 / 7) + log(1 / 7)) / 3,
        "rankcosine": 0.5,  # no grade, no angle
        "bce": log(5 * 3 * 2),  # none is relevant
        "rao-kupper": -log(3 * 8 / (8 * 10) * 3 * 4 / (6 * 9) * 3 * 2 / (4 * 5)),
        "davidson": -log(sqrt(8) / (6 + sqrt(8)) * 2 / (5 + 2) * sqrt(2) / (3 + sqrt(2))),
        "pmop-fd": log(7),  # one of seven subsets
        "pmop-exact": -log(2 / geometric_means(4, 2, 1)),
    }
    assert value.item() == pytest.approx(claims.get(name, 0), rel=1e-13, abs=1e-15)
    claims_nothing = name not in claims or name in ("rankcosine", "pmop-fd")
    assert gradient.abs().max() < 1e-15 if claims_nothing else gradient.abs().max() > 0.01


@each
def test_scores_that_are_all_alike(name):
    value, gradient = value_and_gradient(lambda w: loss_of(name)(w, TIERS), np.zeros(len(SCORES)))
    assert value.isfinite()
    assert gradient.isfinite().all()
    # and they can be learned from: better items are to gain
    top = tr.Tiers.from_labels([2, 1, 1, 0])
    _, gradient = value_and_gradient(lambda w: loss_of(name)(w, top), np.zeros(4))
    if name not in DRAWN:
        assert gradient[0] < gradient[3]
        assert gradient[1] == pytest.approx(gradient[2].item(), abs=1e-14)


@each
def test_no_lists_have_a_sum_but_no_mean(name):
    none = tr.Tiers.from_labels([])
    assert loss_of(name)(np.zeros(0), none, reduction="none").shape == (0,)
    assert loss_of(name)(np.zeros(0), none, reduction="sum") == 0
    with pytest.raises(ValueError, match="no mean over no lists"):
        loss_of(name)(np.zeros(0), none)


# Weights, reduction and kind -------------------------------------------------------------------


@each
def test_a_loss_is_reduced_to_its_mean_unless_asked_otherwise(name):
    loss = loss_of(name)
    by_list = loss(SCORES, TIERS, reduction="none")
    assert by_list.shape == (6,)
    assert loss(SCORES, TIERS) == pytest.approx(by_list.mean(), rel=1e-14)
    assert loss(SCORES, TIERS, reduction="mean") == pytest.approx(by_list.mean(), rel=1e-14)
    assert loss(SCORES, TIERS, reduction="sum") == pytest.approx(by_list.sum(), rel=1e-14)


@each
def test_weights_say_how_much_each_list_counts(name):
    loss = loss_of(name)
    by_list = loss(SCORES, TIERS, reduction="none")
    weighted = loss(SCORES, TIERS, weights=WEIGHTS, reduction="none")
    np.testing.assert_allclose(weighted, WEIGHTS * by_list, rtol=1e-14)
    total = (WEIGHTS * by_list).sum()
    assert loss(SCORES, TIERS, weights=WEIGHTS, reduction="sum") == pytest.approx(total, rel=1e-13)
    mean = loss(SCORES, TIERS, weights=WEIGHTS)
    assert mean == pytest.approx(total / 6.75, rel=1e-13)
    for other in (10 * WEIGHTS, list(WEIGHTS), torch.from_numpy(WEIGHTS).float()):
        assert loss(SCORES, TIERS, weights=other) == pytest.approx(mean, rel=1e-13)
    whole = np.array([1, 2, 0, 1, 3, 1])
    expected = (whole * by_list).sum() / 8
    assert loss(SCORES, TIERS, weights=whole) == pytest.approx(expected, rel=1e-13)


@each
def test_a_list_of_weight_zero_has_no_gradient(name):
    _, gradient = value_and_gradient(lambda w: loss_of(name)(w, TIERS, weights=WEIGHTS), SCORES)
    rows = np.repeat(np.arange(6), LENGTHS)
    assert gradient[rows == 2].count_nonzero() == 0
    assert gradient[rows == 4].count_nonzero() > 0


@each
@each_dtype
def test_a_loss_keeps_the_kind_of_the_scores(name, dtype):
    given = torch.from_numpy(SCORES).to(dtype)
    for reduction in ("mean", "sum", "none"):
        result = loss_of(name)(given, TIERS, weights=WEIGHTS, reduction=reduction)
        assert isinstance(result, torch.Tensor)
        assert result.dtype == dtype
        in_numpy = loss_of(name)(given.numpy(), TIERS, weights=WEIGHTS, reduction=reduction)
        assert isinstance(in_numpy, np.ndarray)
        assert in_numpy.dtype == given.numpy().dtype
        np.testing.assert_array_equal(in_numpy, result)


@each
def test_half_precision_is_computed_in_single(name):
    half = torch.from_numpy(SCORES).to(torch.bfloat16).requires_grad_()
    result = loss_of(name)(half, TIERS)
    assert result.dtype == torch.float32
    exact = loss_of(name)(half.detach().double(), TIERS).item()
    assert result.item() == pytest.approx(exact, rel=1e-5, abs=1e-6)
    result.backward()
    assert half.grad.dtype == torch.bfloat16
    assert half.grad.isfinite().all()


# Catalogues ------------------------------------------------------------------------------------

RANKINGS = [[(0, 1)], [2, (0, 3)], [4, 1, 2, 0], [3], [], [(0, 1, 2, 3, 4)]]


def written_out(rankings, items):
    """The same lists, with the rest as a tie in the last place."""
    full = []
    for ranking in rankings:
        named = {i for place in ranking for i in (place if isinstance(place, tuple) else (place,))}
        rest = tuple(i for i in range(items) if i not in named)
        full.append([*ranking, rest] if rest else ranking)
    return tr.Tiers.from_rankings(full, items=items)


@each_fixed
@pytest.mark.parametrize("scores", ["shared", "own"])
def test_a_rest_is_the_same_written_or_not(name, scores):
    given = np.random.default_rng(8).normal(size=5 if scores == "shared" else (6, 5))
    rest = tr.Tiers.from_rankings(RANKINGS, items=5, rest="last")
    if name in NO_REST:
        with pytest.raises(ValueError, match="rest"):
            loss_of(name)(given, rest)
        return
    out = written_out(RANKINGS, 5)
    if name == "bce":  # all that is named is relevant, the last of a whole list too
        some = (rest.lengths < 5).nonzero()[:, 0]
        rest, out = rest[some], out[some]
        given = given if scores == "shared" else given[some]
    value, gradient = value_and_gradient(lambda w: loss_of(name)(w, rest, reduction="none"), given)
    expected, expected_gradient = value_and_gradient(
        lambda w: loss_of(name)(w, out, reduction="none"), given
    )
    torch.testing.assert_close(value, expected, rtol=1e-12, atol=1e-13)
    torch.testing.assert_close(gradient, expected_gradient, rtol=1e-10, atol=1e-12)


@each
def test_a_rest_of_many_labels(name):
    """Positives over all others, as in extreme classification; a row without any too."""
    rng = np.random.default_rng(9)
    positives = csr_array((rng.random((4, 1500)) < 0.004).astype(int))
    positives = csr_array(positives.toarray() * np.array([[1], [1], [0], [1]]))
    tiers = tr.Tiers.from_positives(positives)
    scores = torch.from_numpy(rng.normal(size=(4, 1500))).float()
    if name in NO_REST:
        with pytest.raises(ValueError, match="rest"):
            loss_of(name)(scores, tiers)
        return
    value, gradient = value_and_gradient(
        lambda w: loss_of(name)(w, tiers, reduction="none"), scores
    )
    assert value.isfinite().all()
    assert gradient.isfinite().all()
    assert gradient[0].count_nonzero() > (2 if name == "ranksvm" else 1000)


@each
def test_an_item_that_no_list_names_is_never_looked_at(name):
    tiers = tr.Tiers.from_rankings([[0, (1, 2)]], items=4)
    clean, junk = np.array([0.5, 0.25, 0.0, 0.0]), np.array([0.5, 0.25, 0.0, np.nan])
    assert loss_of(name)(junk, tiers) == loss_of(name)(clean, tiers)


# Bad input -------------------------------------------------------------------------------------


@each
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("at", [(0, 0), (1, 1), (1, 2)])
def test_a_score_that_is_not_finite_is_named(name, bad, at):
    scores = np.zeros((2, 3))
    scores[at] = bad
    with pytest.raises(ValueError, match=rf"scores\[{at[0]}, {at[1]}\].* is {bad}"):
        loss_of(name)(scores, tr.Tiers.from_labels([[2, 1, 0], [0, 1, 1]]))


@each
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"reduction": "median"}, '"mean", "sum" or "none", not \'median\''),
        ({"weights": np.ones(5)}, "6 lists need as many weights"),
        ({"weights": np.ones((6, 1))}, "6 lists need as many weights"),
        ({"weights": [1, 1, 1, 1, 1, -1]}, "not negative"),
        ({"weights": [1, 1, 1, 1, 1, math.nan]}, "finite"),
        ({"weights": [1, 1, 1, 1, 1, math.inf]}, "finite"),
        ({"weights": np.zeros(6)}, "no mean"),
    ],
)
def test_what_makes_no_sense_is_refused(name, options, message):
    with pytest.raises(ValueError, match=message):
        loss_of(name)(SCORES, TIERS, **options)


@each
def test_scores_of_another_shape_are_refused(name):
    with pytest.raises(ValueError, match=r"shape"):
        loss_of(name)(SCORES[:-1], TIERS)
    with pytest.raises(TypeError, match="float"):
        loss_of(name)(torch.ones(len(SCORES), dtype=torch.int64), TIERS)


# Names and modules -----------------------------------------------------------------------------


def test_every_objective_is_in_the_matrix_and_public():
    assert set(NAMES) == set(BY_HAND) | DRAWN
    for entry in OBJECTIVES.values():
        assert getattr(losses, entry.function.__name__) is entry.function
        assert getattr(losses, entry.module.__name__) is entry.module
        assert entry.summary
        assert entry.source
        assert entry.source.split(" et al")[0].split(",")[0] in entry.function.__doc__


@each
def test_the_module_is_the_function(name):
    module = losses.from_name(name, **OPTIONS.get(name, {}))
    assert isinstance(module, torch.nn.Module)
    assert isinstance(module, OBJECTIVES[name].module)
    scores = torch.from_numpy(SCORES)
    expected = loss_of(name)(scores, TIERS, weights=WEIGHTS)
    assert module(scores, TIERS, WEIGHTS).item() == pytest.approx(expected.item(), rel=1e-14)
    by_list = losses.from_name(name, reduction="none", **OPTIONS.get(name, {}))
    assert by_list(scores, TIERS).shape == (6,)


def test_a_module_shows_its_options_and_refuses_others():
    assert repr(losses.PLTopK(k=3)) == "PLTopK(k=3, reduction='mean')"
    assert repr(losses.PListMLE(ties="input", reduction="sum")) == (
        "PListMLE(ties='input', reduction='sum')"
    )
    with pytest.raises(TypeError, match="PLPartition has no option 'k'"):
        losses.PLPartition(k=3)
    with pytest.raises(TypeError, match="RankNet has no option 'weights'"):
        losses.RankNet(weights=[1])
    with pytest.raises(ValueError, match="reduction"):
        losses.RankNet(reduction="average")


@pytest.mark.parametrize(("name", "parameter"), [("rao-kupper", "alpha"), ("davidson", "beta")])
def test_how_probable_ties_are_can_be_learned(name, parameter):
    """Two of three comparisons of equal items are ties: so is P(tie) of the best parameter."""
    module = losses.from_name(name)
    assert [key for key, _ in module.named_parameters()] == [parameter]
    tiers = tr.Tiers.from_labels([[1, 1], [0, 0], [1, 0]])
    optimiser = torch.optim.LBFGS(module.parameters(), max_iter=100, tolerance_grad=1e-9)

    def closure():
        optimiser.zero_grad()
        loss = module(torch.zeros(3, 2), tiers)
        loss.backward()
        return loss

    optimiser.step(closure)
    # −(2 log P(tie) + log P(win))/3 with P(win) = (1 − P(tie))/2 is least at P(tie) = 2/3
    least = -(2 * log(2 / 3) + log(1 / 6)) / 3
    assert module(torch.zeros(3, 2), tiers).item() == pytest.approx(least, abs=1e-6)


def test_a_module_draws_anew_each_time_it_is_called():
    tiers = tr.Tiers.from_labels(np.zeros(50))
    scores = torch.linspace(-3, 3, 50)
    module = losses.ListMLE(ties="random", generator=3)
    drawn = [module(scores, tiers).item() for _ in range(3)]
    assert len(set(drawn)) == 3
    again = losses.ListMLE(ties="random", generator=3)
    assert [again(scores, tiers).item() for _ in range(3)] == drawn


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        ("pl-partition", "pl-partition"),
        ("PL_Partition", "pl-partition"),
        ("p-listmle", "p-listmle"),
        ("pListMLE", "p-listmle"),
        ("RankNet", "ranknet"),
        ("pl_top_k", "pl-topk"),
    ],
)
def test_names_are_found_however_they_are_spelled(spelling, name):
    assert losses.find(spelling).name == name


def test_an_unknown_name_is_met_with_the_known_ones():
    with pytest.raises(ValueError, match=r"no objective 'list-mel'; did you mean 'listmle'\?"):
        losses.find("list-mel")
    with pytest.raises(ValueError, match=r"The objectives are .*pl-partition"):
        losses.from_name("lambdamart")
