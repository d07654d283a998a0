"""Weights of tiers: Σ α_m log P(S_m > all below it), its derivatives, and what is refused."""

import numpy as np
import pytest
import torch

import tierrank as tr
from partitions import computing, each_dtype, each_kernel, ragged, value_and_gradient

TOLERANCE = {torch.float64: 1e-12, torch.float32: 1e-5}

# an empty list, one that names every item in one tier, and one that names all in three
RANKINGS = [[(0, 1), 2], [3, (4, 5, 1), 0], [], [(0, 1, 2, 3, 4, 5)], [5], [(1, 3), (0, 2), (4, 5)]]
SHARED = np.array([0.3, -1.2, 0.8, 2.0, -0.5, 0.1])


def rows(seed=1, **shape):
    scores, labels, lengths = ragged(seed, **({"lists": 4, "longest": 6} | shape))
    return scores, tr.Tiers.from_labels(labels, lengths=lengths)


def padded():
    scores, labels, lengths = ragged(2, lists=3, longest=6)
    mask = np.arange(7) >= 7 - lengths[:, None]
    in_holes, padded_labels = np.zeros(mask.shape), np.zeros(mask.shape, int)
    in_holes[mask], padded_labels[mask] = scores, labels
    return in_holes, tr.Tiers.from_labels(padded_labels, mask=mask)


def catalogue(rest, per_list):
    rankings = RANKINGS if rest == "last" else [one for one in RANKINGS if one]
    tiers = tr.Tiers.from_rankings(rankings, items=6, rest=rest)
    return (np.tile(SHARED, (len(tiers), 1)) if per_list else SHARED), tiers


FORMS = {
    "rows": rows,
    "rows, large tiers": lambda: rows(lists=2, longest=14, grades=3),
    "padded": padded,
    "scores of each list, last": lambda: catalogue("last", per_list=True),
    "shared, absent": lambda: catalogue("absent", per_list=False),
    "shared, last": lambda: catalogue("last", per_list=False),
    "shared by one list, last": lambda: (SHARED, catalogue("last", per_list=False)[1][1]),
}
each_form = pytest.mark.parametrize("form", FORMS)


def problem(form, dtype=torch.float64):
    """Scores, tiers, and a weight for every written tier, some of them 0."""
    scores, tiers = FORMS[form]()
    rng = np.random.default_rng(5)
    number = len(tiers.tier_offsets) - 1
    weights = 3 * rng.random(number) * (rng.random(number) < 0.75)
    return torch.from_numpy(scores).to(dtype), tiers, weights


def above_and_below(scores, tiers):
    """For every written tier: its list, its items and those below, in the flattened scores."""
    shared = tiers.score_shape is None and scores.dim() == 1
    for number in range(len(tiers)):
        first, end = tiers.list_offsets[number : number + 2].tolist()
        shift = 0 if shared or tiers.n_items is None else number * tiers.n_items
        start, stop = tiers.tier_offsets[[first, end]].tolist()
        named = tiers.items[start:stop]
        rest = np.setdiff1d(np.arange(tiers.n_items), named) if tiers.rest else []
        for j in range(first, end):
            a, b = tiers.tier_offsets[[j, j + 1]].tolist()
            below = np.r_[tiers.items[b:stop], rest]
            yield number, tiers.items[a:b] + shift, below.astype(int) + shift


def by_definition(scores, tiers, weights):
    """[lists] Σ α log P(S_m > all below), each term by `log_prob_above`: no weights inside."""
    flat, values = scores.reshape(-1), [0.0 * scores.sum()] * len(tiers)
    terms = above_and_below(scores, tiers)
    for weight, (number, above, below) in zip(weights, terms, strict=True):
        values[number] = values[number] + weight * tr.log_prob_above(flat, above, below)
    return torch.stack(values)


# Values ----------------------------------------------------------------------------------------


@each_kernel
@each_dtype
@each_form
def test_weights_of_one_are_no_weights(kernel, dtype, form):
    scores, tiers, weights = problem(form, dtype)
    with computing(kernel):
        with_ones, without = (
            value_and_gradient(lambda w, a=a: tr.log_prob(w, tiers, tier_weights=a), scores)
            for a in (np.ones(len(weights)), None)
        )
    assert torch.equal(with_ones[0], without[0])
    assert torch.equal(with_ones[1], without[1])


@each_kernel
@each_dtype
@pytest.mark.parametrize("seed", [3, 4])
def test_a_single_weight_picks_the_term_of_its_tier(kernel, dtype, seed):
    scores, tiers = rows(seed, lists=8, longest=14)
    scores = torch.from_numpy(scores).to(dtype)
    for j, (number, above, below) in enumerate(above_and_below(scores, tiers)):
        weights = np.eye(len(tiers.tier_offsets) - 1)[j]
        expected = torch.zeros(len(tiers), dtype=dtype)
        with computing(kernel):
            expected[number] = tr.log_prob_above(scores, above, below)  # 0 with nothing below
            value = tr.log_prob(scores, tiers, tier_weights=weights)
        tolerance = TOLERANCE[dtype]
        torch.testing.assert_close(value, expected, rtol=tolerance, atol=tolerance)


@each_kernel
@each_dtype
@each_form
def test_value_and_gradient_are_the_weighted_sums_of_the_terms(kernel, dtype, form):
    scores, tiers, weights = problem(form, dtype)
    with computing(kernel):
        ours = value_and_gradient(lambda w: tr.log_prob(w, tiers, tier_weights=weights), scores)
        expected = value_and_gradient(lambda w: by_definition(w, tiers, weights), scores)
    tolerance = 10 * TOLERANCE[dtype]  # the terms are rounded one by one
    for part, its_sum in zip(ours, expected, strict=True):
        torch.testing.assert_close(part, its_sum, rtol=tolerance, atol=tolerance)


@each_kernel
def test_the_value_is_linear_in_the_weights(kernel):
    scores, tiers, weights = problem("shared, last")
    others = np.linspace(0, 1, len(weights))

    def value(weights):
        return tr.log_prob(scores, tiers, tier_weights=weights)

    with computing(kernel):
        together, one, other = value(2 * weights + 3 * others), value(weights), value(others)
    np.testing.assert_allclose(together, 2 * one + 3 * other, rtol=1e-13, atol=1e-13)


@each_kernel
def test_the_weight_of_a_last_tier_has_no_effect(kernel):
    """Unless a rest stands below it: then it is not the last."""
    labels = tr.Tiers.from_labels([1, 0, 2, 2], lengths=[2, 2])  # 0 > 1 and {2, 3}
    last, shared = (catalogue("last", per_list)[1] for per_list in (True, False))
    own_scores = np.tile(SHARED, (len(last), 1))
    with computing(kernel):
        for scores, tiers, without_effect in [
            (np.zeros(4), labels, [1, 2]),
            (own_scores, last, [5, 9]),  # lists 3 and 5 name every item
            (SHARED, shared, [5, 9]),
        ]:
            written = len(tiers.tier_offsets) - 1
            usual = tr.log_prob(scores, tiers)
            changed = [
                (tr.log_prob(scores, tiers, tier_weights=1 + 6 * unit) != usual).any()
                for unit in np.eye(written)
            ]
            assert changed == [j not in without_effect for j in range(written)]


@each_kernel
@each_dtype
def test_a_list_of_one_tier_gives_zero(kernel, dtype):
    tiers = tr.Tiers.from_labels([3, 3, 3])
    scores = torch.tensor([1.0, -2.0, 0.0], dtype=dtype)
    with computing(kernel):
        value, gradient = value_and_gradient(
            lambda w: tr.log_prob(w, tiers, tier_weights=[4.0]), scores
        )
        nothing = tr.log_prob(np.zeros(0), tr.Tiers.from_labels([]), tier_weights=[])
    assert value.tolist() == [0.0]
    assert not gradient.any()
    assert nothing.shape == (0,)


@each_kernel
@each_dtype
@each_form
def test_weights_of_zero_leave_nothing(kernel, dtype, form):
    scores, tiers, weights = problem(form, dtype)
    zeros = 0 * weights
    with computing(kernel):
        value, gradient = value_and_gradient(
            lambda w: tr.log_prob(w, tiers, tier_weights=zeros), scores
        )
        curvature = tr.Curvature(scores, tiers, tier_weights=zeros)
        results = [value, gradient, curvature.diagonal(), curvature @ torch.ones_like(scores)]
    assert all((part == 0).all() for part in results)


@each_kernel
@pytest.mark.parametrize("weights", [[0.0, 2.0, 1.0], [2.0, 0.0, 1.0], [1.0, 3.0, 0.0]])
def test_scores_of_ten_thousand_stay_finite_in_single_precision(kernel, weights):
    tiers = tr.Tiers.from_labels([2, 2, 1, 0, 0])
    upside_down = torch.tensor([-1e4, -1e4, 0.0, 1e4, 1e4])
    with computing(kernel):
        value, gradient = value_and_gradient(
            lambda w: tr.log_prob(w, tiers, tier_weights=weights), upside_down
        )
        curvature = tr.Curvature(upside_down, tiers, tier_weights=weights)
        second = [curvature.diagonal(), curvature @ torch.arange(5.0)]
    # two items 2e4 below what they should be above, and one 1e4 below two
    assert value.item() == pytest.approx(-(4e4 * weights[0] + 1e4 * weights[1]), abs=5)
    first, middle = (torch.tensor(w) for w in weights[:2])
    torch.testing.assert_close(gradient[:3], torch.stack([first, first, middle]))
    assert gradient[3:].isfinite().all()
    assert all(part.isfinite().all() for part in second)


# Derivatives -----------------------------------------------------------------------------------


@each_kernel
@each_form
def test_derivatives_are_those_of_finite_differences(kernel, form):
    scores, tiers, weights = problem(form)
    scores.requires_grad_()

    def value(scores):
        return tr.log_prob(scores, tiers, tier_weights=weights)

    with computing(kernel):
        assert torch.autograd.gradcheck(value, scores)
        assert torch.autograd.gradgradcheck(value, scores)


@each_kernel
@each_form
def test_the_curvature_is_the_weighted_sum_of_the_terms_curvatures(kernel, form):
    scores, tiers, weights = problem(form)
    of_lists = torch.linspace(0.5, 2, len(tiers), dtype=torch.float64)
    with computing(kernel):
        curvature = tr.Curvature(scores, tiers, of_lists, tier_weights=weights)
        diagonal = curvature.diagonal().reshape(-1)
        hessian = torch.autograd.functional.hessian(
            lambda flat: of_lists @ by_definition(flat.reshape(scores.shape), tiers, weights),
            scores.reshape(-1),
        )
        units = torch.eye(scores.numel(), dtype=torch.float64)
        products = torch.stack([(curvature @ u.reshape(scores.shape)).reshape(-1) for u in units])
    torch.testing.assert_close(diagonal, hessian.diagonal(), rtol=0, atol=1e-11)
    torch.testing.assert_close(products, hessian, rtol=0, atol=1e-11)


# Kinds of weights, and bad ones ----------------------------------------------------------------

TWO_LISTS = tr.Tiers.from_labels([1, 0, 2, 1, 0], lengths=[2, 3])  # 2 and 3 tiers


@pytest.mark.parametrize(
    "weights",
    [
        [2, 0, 1, 3, 0],
        np.array([2, 0, 1, 3, 0]),
        np.array([2, 0, 1, 3, 0], np.float16),
        torch.tensor([2, 0, 1, 3, 0]),
        torch.tensor([2, 0, 1, 3, 0], dtype=torch.bfloat16),
    ],
    ids=["list", "int64", "float16", "torch int64", "bfloat16"],
)
def test_weights_may_be_of_any_kind_of_number(weights):
    for scores in (np.zeros(5), torch.zeros(5)):
        value = tr.log_prob(scores, TWO_LISTS, tier_weights=weights)
        expected = [2 * np.log(1 / 2), np.log(1 / 3) + 3 * np.log(1 / 2)]
        np.testing.assert_allclose(value, expected, rtol=1e-6)
        assert type(value) is type(scores)
        assert value.dtype == scores.dtype


def evaluations(weights, scores=None):
    scores = np.zeros(5) if scores is None else scores
    return [
        lambda: tr.log_prob(scores, TWO_LISTS, tier_weights=weights),
        lambda: tr.Curvature(scores, TWO_LISTS, tier_weights=weights),
    ]


@pytest.mark.parametrize(
    ("weights", "came"),
    [([1.0] * 3, "[3]"), ([1.0] * 6, "[6]"), ([[1.0] * 5], "[1, 5]"), (1.0, "[]"), ([], "[0]")],
)
def test_weights_of_another_shape_are_refused(weights, came):
    for evaluate in evaluations(weights):
        with pytest.raises(ValueError, match="for each of the 5 written tiers") as error:
            evaluate()
        assert str(error.value).endswith(f"[5], not {came}")


@pytest.mark.parametrize("bad", [np.nan, np.inf, -0.5])
@pytest.mark.parametrize("place", [2, 4])  # the second has no effect, but is an error too
def test_weights_that_are_not_finite_or_negative_are_refused(bad, place):
    weights = np.ones(5)
    weights[place] = bad
    message = rf"finite and not negative, but tier_weights\[{place}\] is {bad}"
    for evaluate in evaluations(weights):
        with pytest.raises(ValueError, match=message):
            evaluate()


def test_weights_that_want_a_gradient_are_refused():
    weights = torch.ones(5, requires_grad=True)
    for evaluate in evaluations(weights):
        with pytest.raises(ValueError, match=r"constants and get no gradient: use \.detach\(\)"):
            evaluate()
    with torch.no_grad():
        for evaluate in evaluations(weights):
            evaluate()


@each_kernel
@pytest.mark.parametrize("place", [2, 3, 4])
def test_a_weight_of_zero_excuses_no_score_that_is_not_finite(kernel, place):
    scores = np.zeros(5)
    scores[place] = np.nan
    with computing(kernel):
        for evaluate in evaluations(np.zeros(5), scores):
            with pytest.raises(ValueError, match=rf"scores\[{place}\], in list 1, is nan"):
                evaluate()
