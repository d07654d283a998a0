"""Two kernels, compiled and plain: chosen by themselves, and giving the same numbers."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import tierrank as tr
from partitions import computing, each_dtype, each_kernel, ragged
from tierrank.plackett_luce import kernels, operators
from tierrank.plackett_luce.kernels import kernel_for, plain, using

CPU = torch.device("cpu")


# Which one computes ----------------------------------------------------------------------------


def test_the_choice_is_made_by_the_device():
    assert kernel_for(CPU) is kernels
    assert kernel_for(torch.device("meta")) is plain
    assert kernel_for(torch.device("cuda")) is plain


def test_a_choice_holds_inside_its_block_only():
    with using("plain"):
        assert kernel_for(CPU) is plain
        with using("compiled"):
            assert kernel_for(CPU) is kernels
        with using("auto"):
            assert kernel_for(CPU) is kernels
        assert kernel_for(CPU) is plain
    assert kernel_for(CPU) is kernels


def test_a_choice_ends_with_an_error_too():
    with pytest.raises(KeyError), using("plain"):
        raise KeyError
    assert kernel_for(CPU) is kernels


def test_an_unknown_choice_is_refused():
    with pytest.raises(ValueError, match="not 'fast'"), using("fast"):
        pass


def test_the_compiled_kernel_refuses_other_devices():
    with using("compiled"), pytest.raises(ValueError, match="for the CPU, and the scores are on"):
        kernel_for(torch.device("cuda"))


# The same numbers ------------------------------------------------------------------------------


def problem(seed, **shape):
    """Arguments of the operators: ragged lists, some of which have something below them all."""
    scores, labels, lengths = ragged(seed, **shape)
    rng = np.random.default_rng(seed)
    bottom = np.where(rng.random(len(lengths)) < 0.5, -np.inf, 3 * rng.normal(size=len(lengths)))
    layout = tr.Tiers.from_labels(labels, lengths=lengths).layout()[1:]
    return torch.from_numpy(scores), torch.from_numpy(bottom), layout


NO_WEIGHTS = torch.empty(0, dtype=torch.float64)


def some_weights(layout, seed=0):
    """Tier weights for a layout, one in four of them 0."""
    rng = np.random.default_rng(seed)
    number = len(layout[2]) - 1
    return torch.from_numpy(3 * rng.random(number) * (rng.random(number) < 0.75))


def everything(scores, bottom, layout, weights=NO_WEIGHTS):
    """Value (twice), two gradients, a Hessian product of two parts, a diagonal of two parts."""
    generator = torch.Generator().manual_seed(0)
    vector, below = (
        torch.randn(len(part), generator=generator).to(scores) for part in (scores, bottom)
    )
    return [
        operators.log_prob(scores, bottom, *layout, weights, False)[0],
        *operators.log_prob(scores, bottom, *layout, weights, True),
        *operators.hessian_product(scores, bottom, *layout, weights, vector, below),
        *operators.hessian_diagonal(scores, bottom, layout, weights),
    ]


def assert_same(ours, theirs, value, gradient, product):
    """Values relative to max(1, |log P|); the others relative to max(1, their largest entry)."""
    for a, b in zip(ours[:2], theirs[:2], strict=True):
        torch.testing.assert_close(a, b, rtol=value, atol=value)
    tolerances = [gradient] * 2 + [product] * 4
    for a, b, tolerance in zip(ours[2:], theirs[2:], tolerances, strict=True):
        size = max(1.0, float(b.abs().max()))
        torch.testing.assert_close(a, b, rtol=0, atol=tolerance * size)


SHAPES = st.sampled_from(
    [
        {"lists": 15, "longest": 10, "grades": 3},
        {"lists": 15, "longest": 10, "grades": 20},  # mostly single items
        {"lists": 15, "longest": 3, "grades": 1},  # no upper tier
        {"lists": 3, "longest": 200, "grades": 2},
        {"lists": 6, "longest": 40, "grades": 4, "spread": 25.0},
    ]
)


@given(seed=st.integers(0, 10**6), shape=SHAPES, weighted=st.booleans())
@settings(max_examples=40)
def test_both_kernels_agree(seed, shape, weighted):
    scores, bottom, layout = problem(seed, **shape)
    given_ = scores, bottom, layout, some_weights(layout, seed) if weighted else NO_WEIGHTS
    with computing("compiled"):
        compiled = everything(*given_)
    with computing("plain"):
        in_torch = everything(*given_)
    assert_same(compiled, in_torch, value=1e-13, gradient=1e-11, product=1e-9)


@given(seed=st.integers(0, 10**6), shape=SHAPES, weighted=st.booleans())
@settings(max_examples=10)
def test_both_kernels_agree_in_single_precision(seed, shape, weighted):
    scores, bottom, layout = problem(seed, **shape)
    weights = some_weights(layout, seed) if weighted else NO_WEIGHTS
    given_ = scores.float(), bottom.float(), layout, weights
    with computing("compiled"):
        compiled = everything(*given_)
    with computing("plain"):
        in_torch = everything(*given_)
    assert_same(compiled, in_torch, value=1e-5, gradient=1e-4, product=1e-3)


@each_kernel
@each_dtype
def test_every_list_is_its_own_problem(kernel, dtype):
    """What stands before a list, or behind it, does not change a bit of its numbers."""
    scores, bottom, layout = problem(3, lists=30)
    scores, bottom = scores.to(dtype), bottom.to(dtype)
    twice = [torch.cat([part, part]) for part in (scores, bottom)]
    rows, order, tiers, lists = layout
    layout_twice = (
        torch.cat([rows, rows[1:] + rows[-1]]),
        torch.cat([order, order + rows[-1]]),
        torch.cat([tiers, tiers[1:] + tiers[-1]]),
        torch.cat([lists, lists[1:] + lists[-1]]),
    )
    with computing(kernel):
        value, gradient, _ = operators.log_prob(scores, bottom, *layout, NO_WEIGHTS, True)
        values, gradients, _ = operators.log_prob(*twice, *layout_twice, NO_WEIGHTS, True)
    torch.testing.assert_close(values, torch.cat([value, value]), rtol=1e-14, atol=1e-14)
    torch.testing.assert_close(gradients, torch.cat([gradient, gradient]), rtol=1e-14, atol=1e-14)


# Large problems --------------------------------------------------------------------------------


def many_lists():
    return problem(4, lists=4000, longest=20)


def one_list_of_few_large_tiers():
    return problem(5, lists=1, longest=40_000, grades=3)


def a_long_last_tier():
    """More than two segments, with upper items in each."""
    rows = 2 * (1 << 16) + 5000
    rng = np.random.default_rng(6)
    labels = np.zeros(rows)
    labels[rng.permutation(rows)[:400]] = rng.integers(1, 5, size=400)
    tiers = tr.Tiers.from_labels(labels)
    return torch.from_numpy(rng.normal(size=rows)), torch.tensor([2.0]).double(), tiers.layout()[1:]


def long_and_short_lists():
    scores, bottom, layout = a_long_last_tier()
    some, bottoms, short = problem(7, lists=50)
    rows, order, tiers, lists = layout
    return (
        torch.cat([some, scores, some]),
        torch.cat([bottoms, bottom, bottoms]),
        tuple(
            torch.cat([a, b[skip:] + a[-1] if skip else b + at, c[skip:] + end])
            for a, b, c, at, end, skip in [
                (short[0], rows, short[0], 0, short[0][-1] + rows[-1], 1),
                (short[1], order, short[1], len(some), len(some) + len(scores), 0),
                (short[2], tiers, short[2], 0, short[2][-1] + tiers[-1], 1),
                (short[3], lists, short[3], 0, short[3][-1] + lists[-1], 1),
            ]
        ),
    )


LARGE = [many_lists, one_list_of_few_large_tiers, a_long_last_tier, long_and_short_lists]
each_large = pytest.mark.parametrize("make", LARGE, ids=[make.__name__ for make in LARGE])


@each_large
@pytest.mark.parametrize("weighted", [False, True], ids=["", "weighted"])
def test_both_kernels_agree_on_large_problems(make, weighted):
    scores, bottom, layout = make()
    given_ = scores, bottom, layout, some_weights(layout) if weighted else NO_WEIGHTS
    with computing("compiled"):
        compiled = everything(*given_)
    with computing("plain"):
        in_torch = everything(*given_)
    assert_same(compiled, in_torch, value=1e-12, gradient=1e-10, product=1e-9)


@each_large
@each_dtype
def test_the_number_of_threads_does_not_change_a_bit(make, dtype):
    scores, bottom, layout = make()
    given_ = scores.to(dtype), bottom.to(dtype), layout, some_weights(layout)
    threads = torch.get_num_threads()
    try:
        results = []
        for number in (1, 2, 5):
            torch.set_num_threads(number)
            with using("compiled"):
                results.append(everything(*given_))
    finally:
        torch.set_num_threads(threads)
    for other in results[1:]:
        for ours, expected in zip(other, results[0], strict=True):
            assert torch.equal(ours, expected)


def test_the_work_of_large_problems_is_shared_out():
    """Or the test above would say nothing: threads get ranges that cover all lists once.

    A list of more than two segments is not among them: it is shared out by its segments.
    """
    shared = []
    for make in LARGE:
        _, _, layout = make()
        ranges = kernels.checked_layout(layout).ranges
        long = np.flatnonzero(layout[0].diff().numpy() > 1 << 17)
        lists = np.concatenate([np.arange(*ends) for ends in [(0, 0), *ranges]])
        np.testing.assert_array_equal(
            np.sort(np.r_[lists, long]), np.arange(len(layout[0]) - 1), err_msg=make.__name__
        )
        shared.append(len(ranges) > 1 or len(long) > 0)
    assert shared == [True, False, True, True]


def test_a_tier_beyond_the_scratch_memory_has_the_same_curvature():
    """100,000 items: in float64 block by block, in float32 at once. All have other scores."""
    n = 100_000
    scores = torch.cat([torch.linspace(-8, 4, n, dtype=torch.float64), torch.zeros(5).double()])
    tiers = tr.Tiers.from_labels(np.r_[np.ones(n), np.zeros(5)])
    vector = torch.from_numpy(np.random.default_rng(8).normal(size=n + 5))
    with using("compiled"):
        blocks, at_once = (
            tr.Curvature(scores.to(d), tiers) for d in (torch.float64, torch.float32)
        )
        diagonal, product = blocks.diagonal(), blocks @ vector
        np.testing.assert_allclose(at_once.diagonal(), diagonal, rtol=1e-3, atol=1e-6)
        np.testing.assert_allclose(at_once @ vector, product, rtol=1e-3, atol=1e-4)
    assert product.sum() == pytest.approx(0, abs=1e-9)
    assert (blocks @ torch.ones(n + 5)).abs().max() < 1e-9
