"""Samples of the PMOP models: Markov chains over subsets, and whole ordered partitions."""

import math

import numpy as np
import pytest
import torch
from scipy import stats

import tierrank as tr
from partitions import computing, value_and_gradient
from subsets import (
    choice_probabilities,
    log_prob,
    mean_of_scores,
    mean_of_worths,
    ordered_partitions,
    softmax,
    stages_of,
    subsets,
)
from tierrank.losses import ordered_partition
from tierrank.losses.ordered_partition import (
    pmop_exact,
    pmop_fd,
    pmop_gibbs,
    pmop_mh,
    sample_ordered_partitions,
)
from tierrank.losses.subsets import gibbs, metropolis_hastings

F = np.array([1.5, -0.7, 0.2, 2.0, -1.1])
METHODS = {
    "gibbs": (gibbs, pmop_gibbs, {}),
    "mh": (metropolis_hastings, pmop_mh, {}),
    "printed": (metropolis_hastings, pmop_mh, {"as_printed": True}),
}
each_method = pytest.mark.parametrize("method", METHODS)
each_potential = pytest.mark.parametrize("potential", ["sum", "mean"])
each_direction = pytest.mark.parametrize("direction", ["forward", "backward"])


@pytest.fixture(autouse=True)
def one_thread():
    """For tiny tensors a second one only waits."""
    with computing("plain"):
        yield


def assert_as_probable(codes, probabilities):
    """Chi-square of drawn cells 0, 1, …: so far off once in a thousand times, if all is right."""
    counts = np.bincount(np.asarray(codes), minlength=len(probabilities))
    assert len(counts) == len(probabilities)
    probabilities = np.asarray(probabilities)
    assert (counts[probabilities == 0] == 0).all()
    possible = probabilities > 0
    assert (len(codes) * probabilities[possible]).min() > 5  # what the test asks for
    if possible.sum() > 1:
        result = stats.chisquare(counts[possible], len(codes) * probabilities[possible])
        assert result.pvalue > 1e-3


def code(members):
    """[..., items] a subset as a number: item i is bit i."""
    members = np.asarray(members)
    return (members << np.arange(members.shape[-1])).sum(-1)


def by_code(probabilities, items):
    """{subset: probability} as an array over codes; 0 for the empty set."""
    result = np.zeros(2**items)
    for subset, p in probabilities.items():
        result[sum(1 << i for i in subset)] = p
    return result


def target(method, f):
    """What a chain tends to; Φ(S)/C(N, |S|) for Metropolis-Hastings as printed."""
    p = choice_probabilities(f, mean_of_scores)
    if method == "printed":
        p = {s: p / math.comb(len(f), len(s)) for s, p in p.items()}
        p = {s: value / sum(p.values()) for s, value in p.items()}
    return by_code(p, len(f))


# Transitions by enumeration, over codes ---------------------------------------------------------


def potential_of(c, f):
    inside = [i for i in range(len(f)) if c >> i & 1]
    return math.exp(f[inside].mean()) if inside else 0.0


def gibbs_kernel(f):
    kernel = np.eye(2 ** len(f))
    for i in range(len(f)):
        step = np.zeros_like(kernel)
        for c in range(1, len(kernel)):
            with_i, without = c | 1 << i, c & ~(1 << i)
            total = potential_of(with_i, f) + potential_of(without, f)
            step[c, with_i] = potential_of(with_i, f) / total
            step[c, without] += potential_of(without, f) / total
        kernel = kernel @ step
    return kernel


def mh_kernel(f, as_printed):
    n, kernel = len(f), np.zeros((2 ** len(f),) * 2)
    ways = [math.comb(n, c.bit_count()) for c in range(2**n)]
    for c in range(1, 2**n):
        for s in range(1, 2**n):
            ratio = potential_of(s, f) / potential_of(c, f)
            if not as_printed:
                ratio *= ways[s] / ways[c]
            kernel[c, s] += min(1, ratio) / (n * ways[s])
        kernel[c, c] += 1 - kernel[c].sum()
    return kernel


def kernel_of(method, f):
    return gibbs_kernel(f) if method == "gibbs" else mh_kernel(f, method == "printed")


@each_method
def test_the_target_is_what_a_chain_leaves_as_it_is(method):
    """Of the printed one, it is not Φ: so algorithm 1 has the wrong acceptance."""
    kernel, f = kernel_of(method, F), target(method, F)
    np.testing.assert_allclose(f @ kernel, f, atol=1e-15)
    wanted = target("gibbs", F)
    assert np.abs(wanted @ kernel - wanted).max() < 1e-15 or method == "printed"
    assert np.abs(wanted @ mh_kernel(F, True) - wanted).max() > 1e-3


# The samplers -----------------------------------------------------------------------------------

SIZES = [2, 5, 1, 4]  # chains of different lengths, mixed


def run(method, steps, chains=3000, seed=1):
    """{size: [steps, chains] codes} of chains over the first items of F that start from item 0."""
    sampler, _, options = METHODS[method]
    sizes = torch.tensor(SIZES * chains)
    offsets = torch.nn.functional.pad(sizes.cumsum(0), (1, 0))
    f = torch.from_numpy(np.concatenate([F[:n] for n in SIZES] * chains))
    start = torch.zeros(len(f), dtype=torch.bool)
    start[offsets[:-1]] = True
    generator = torch.Generator().manual_seed(seed)
    steps = torch.stack(list(sampler(f, offsets, start, steps, generator, **options))).numpy()
    first = np.cumsum([0, *SIZES])
    steps = steps.reshape(len(steps), chains, first[-1])
    return {n: code(steps[..., a : a + n]) for n, a in zip(SIZES, first[:-1], strict=True)}


@each_method
def test_long_chains_come_to_their_target(method):
    for n, codes in run(method, steps=50).items():
        assert_as_probable(codes[-1], target(method, F[:n]))


@each_method
def test_single_steps_are_those_of_the_enumerated_kernel(method):
    for n, codes in run(method, steps=2, seed=2).items():
        kernel = kernel_of(method, F[:n])
        assert_as_probable(codes[0], kernel[1])
        if n < 5:  # also from wherever the first step led, all together
            both = codes[0] * 2**n + codes[1]
            joint = (kernel[1][:, None] * kernel).ravel()
            rare = (joint > 0) & (joint * len(both) < 10)
            pooled = np.append(np.where(rare, 0, joint), joint[rare].sum())
            both = np.where(rare[both], len(joint), both)
            assert_as_probable(both, pooled)


@each_method
def test_extreme_scores_leave_only_the_best_or_what_is_tied(method):
    sampler, _, options = METHODS[method]
    f = torch.tensor([-1e4, 1e4, -1e4, 0, 0, 1e-300], dtype=torch.float64)
    start = torch.tensor([True, False, True, False, True, True])
    offsets = torch.tensor([0, 3, 5, 6])
    *_, last = sampler(f, offsets, start, 100, torch.Generator().manual_seed(0), **options)
    assert last.tolist()[:3] == [False, True, False]
    assert last[3:5].any()
    assert last[5]  # an only member stays


# The estimated gradients ------------------------------------------------------------------------

LIST, LABELS = np.array([0.9, -0.4, 1.6, -1.2]), np.array([1, 0, 2, 1])


def shares(c, items):
    """The gradient of the mean over a subset, by code."""
    inside = np.array([c >> i & 1 for i in range(items)])
    return inside / max(inside.sum(), 1)


def expected_gradient(method, steps, direction):
    """Of the loss of LIST: chains from the observed subset, by the enumerated kernels."""
    sign = {"forward": 1, "backward": -1}[direction]
    gradient = np.zeros(len(LIST))
    for chosen, left in stages_of(LABELS, direction):
        # what is chosen comes first in a chain, then the next tier, …; backward, all reversed
        order = sorted(left, key=lambda i: -LABELS[i])[::sign]
        kernel = kernel_of(method, sign * LIST[order])
        every = np.array([shares(c, len(order)) for c in range(len(kernel))])
        now = np.zeros(len(kernel))
        now[2 ** len(chosen) - 1] = 1
        gradient[order] -= sign * now @ every
        for _ in range(steps):
            now = now @ kernel
            gradient[order] += sign * now @ every / steps
    return gradient


def drawn_gradients(method, steps, direction, lists, seed):
    """[lists, items] for so many copies of LIST."""
    _, loss, options = METHODS[method]
    tiers = tr.Tiers.from_labels(np.tile(LABELS, (lists, 1)))
    options = options | {"steps": steps, "direction": direction, "generator": seed}
    return value_and_gradient(
        lambda w: loss(w, tiers, reduction="sum", **options), np.tile(LIST, (lists, 1))
    )[1].numpy()


@each_method
@each_direction
def test_the_gradient_after_three_steps_has_the_enumerated_mean(method, direction):
    drawn = drawn_gradients(method, 3, direction, 10_000, seed=3)
    error = drawn.std(0) / 100
    assert error.max() < 0.01
    expected = expected_gradient(method, 3, direction)
    assert (abs(drawn.mean(0) - expected) < 4.5 * error + 1e-12).all()


@each_method
def test_many_steps_give_the_exact_gradient_unless_accepted_as_printed(method):
    """What is left of the start after so many steps is known from the enumerated kernel."""
    _, exact = value_and_gradient(lambda w: pmop_exact(w, tr.Tiers.from_labels(LABELS)), LIST)
    exact = exact.numpy()
    bias = abs(expected_gradient(method, 150, "forward") - exact)
    drawn = drawn_gradients(method, 150, "forward", 500, seed=4)
    error = abs(drawn.mean(0) - exact)
    noise = 4.5 * drawn.std(0) / math.sqrt(500)
    assert noise.max() < 0.03
    assert (error < bias + noise).all()
    if method == "printed":
        assert bias.max() > 0.05
        assert (error > noise).any()
    else:
        assert bias.max() < 0.02


def test_the_loss_is_the_mean_of_what_was_sampled_less_that_of_what_was_observed():
    loss = pmop_gibbs(LIST[:3], tr.Tiers.from_labels([1, 0, 1]), steps=4, generator=5)
    chains = [[0, 2, 1], [1]]  # {0, 2} out of three, then {1}
    f = torch.from_numpy(LIST[np.concatenate(chains)])
    offsets, start = torch.tensor([0, 3, 4]), torch.tensor([True, True, False, True])
    sampled = gibbs(f, offsets, start, 4, torch.Generator().manual_seed(5))
    first = np.mean([f[:3][subset[:3]].mean() for subset in sampled])
    assert loss == pytest.approx(first - (LIST[0] + LIST[2]) / 2, rel=1e-12)


@each_method
def test_the_same_seed_gives_the_same_gradient(method):
    _, loss, options = METHODS[method]
    tiers = tr.Tiers.from_labels(np.arange(40) % 3)
    scores = np.random.default_rng(6).normal(size=40)

    def gradient(generator):
        return value_and_gradient(lambda w: loss(w, tiers, generator=generator, **options), scores)

    assert torch.equal(gradient(7)[1], gradient(torch.Generator().manual_seed(7))[1])
    assert not torch.equal(gradient(7)[1], gradient(8)[1])
    torch.manual_seed(0)
    once, again = gradient(None)[1], gradient(None)[1]
    torch.manual_seed(0)
    assert torch.equal(gradient(None)[1], once)
    assert not torch.equal(again, once)


@pytest.mark.parametrize("loss", [pmop_gibbs, pmop_mh])
def test_a_chain_without_steps_is_refused(loss):
    with pytest.raises(ValueError, match="steps = 0"):
        loss(LIST, tr.Tiers.from_labels(LABELS), steps=0)


# Ordered partitions -----------------------------------------------------------------------------

FOUR = np.array([0.8, -0.5, 0.1, 0.4])
MODEL = {"sum": (mean_of_worths, pmop_fd), "mean": (mean_of_scores, pmop_exact)}


def assert_partitions_as_probable(tiers, scores, potential, direction):
    every = ordered_partitions(4)
    probabilities = np.zeros(4**4)
    for labels in every:
        model = MODEL[potential][0]
        probabilities[labels @ 4 ** np.arange(4)] = np.exp(
            log_prob(scores, labels, model, direction)
        )
    assert (probabilities > 0).sum() == 75
    assert_as_probable(tiers.to_labels().numpy() @ 4 ** np.arange(4), probabilities)


@each_potential
@each_direction
@pytest.mark.parametrize("stages", [False, True])
def test_all_75_partitions_of_4_items_come_as_often_as_they_should(potential, direction, stages):
    scores = FOUR
    if stages:
        scores = np.stack([FOUR, -FOUR, FOUR[::-1], 0 * FOUR], axis=1)
    tiers = sample_ordered_partitions(
        scores, 30_000, potential=potential, direction=direction, generator=8
    )
    assert_partitions_as_probable(tiers, scores, potential, direction)


@pytest.mark.parametrize("way", ["sum", "mean", "gibbs"])
def test_a_constant_changes_no_partition_however_large_it_is(way, monkeypatch):
    if way == "gibbs":
        monkeypatch.setattr(ordered_partition, "MOST_ITEMS", 3)
    scores, potential = np.array([0.0, 1.0, 2.0, 1.0]), "sum" if way == "sum" else "mean"
    tiers = sample_ordered_partitions(scores + 4e15, 20_000, potential=potential, generator=18)
    assert_partitions_as_probable(tiers, scores, potential, "forward")


def test_long_lists_are_drawn_by_gibbs_sampling(monkeypatch):
    monkeypatch.setattr(ordered_partition, "MOST_ITEMS", 3)
    monkeypatch.setattr(ordered_partition, "exact_subsets", None)
    tiers = sample_ordered_partitions(FOUR, 20_000, potential="mean", sweeps=20, generator=9)
    assert_partitions_as_probable(tiers, FOUR, "mean", "forward")


def test_blocks_do_not_change_what_is_drawn(monkeypatch):
    monkeypatch.setattr(ordered_partition, "rows_in_a_block", lambda items: 3)
    tiers = sample_ordered_partitions(FOUR, 20_000, potential="mean", generator=10)
    assert_partitions_as_probable(tiers, FOUR, "mean", "forward")
    monkeypatch.setattr(ordered_partition, "BLOCK", 20_000)
    tiers = sample_ordered_partitions(FOUR, 20_001, generator=10)
    assert len(tiers) == 20_001
    assert_partitions_as_probable(tiers, FOUR, "sum", "forward")


@each_potential
def test_at_the_scores_that_drew_them_the_mean_gradient_is_zero(potential):
    scores = np.random.default_rng(11).normal(size=8)
    tiers = sample_ordered_partitions(scores, 2000, potential=potential, generator=12)
    _, gradient = value_and_gradient(
        lambda w: MODEL[potential][1](w, tiers, reduction="sum"), np.tile(scores, (2000, 1))
    )
    z = gradient.mean(0) / gradient.std(0) * math.sqrt(2000)
    assert z.abs().max() < 4


def test_sizes_of_tiers_say_nothing_of_the_scores():
    """Under PMOP-FD the first is Binomial(N, 1/2), given that it is not 0."""
    for scores in (np.zeros(6), np.array([50.0, 3, 0, -2, 1, -50])):
        tiers = sample_ordered_partitions(scores, 10_000, generator=13)
        first = tiers.tier_sizes[tiers.list_offsets[:-1]].numpy()
        p = stats.binom.pmf(np.arange(7), 6, 0.5) * (np.arange(7) > 0)
        assert_as_probable(first, p / p.sum())


@each_potential
def test_drawn_lists_are_labels_from_0_and_repeatable(potential):
    scores = torch.linspace(-2, 2, 9)
    tiers = sample_ordered_partitions(scores, 50, potential=potential, generator=14)
    assert len(tiers) == 50
    assert tiers.score_shape == (50, 9)
    labels = tiers.to_labels()
    assert torch.equal(tiers.labels, tiers.grades)
    assert (tiers.labels[tiers.list_offsets[1:] - 1] == 0).all()  # the last tier
    assert (labels.amax(1) + 1 == tiers.n_tiers).all()
    again = sample_ordered_partitions(scores.numpy(), 50, potential=potential, generator=14)
    assert tiers == again
    other = sample_ordered_partitions(scores, 50, potential=potential, generator=15)
    assert tiers != other
    assert len(sample_ordered_partitions(scores, 0, potential=potential)) == 0
    one = sample_ordered_partitions(np.array([3.0]), 4, potential=potential)
    assert one.n_tiers.tolist() == [1] * 4


@pytest.mark.parametrize(("potential", "items"), [("sum", 2000), ("mean", 100), ("mean", 201)])
def test_partitions_of_long_lists(potential, items):
    scores = np.linspace(-3, 3, items).astype(np.float32)
    tiers = sample_ordered_partitions(scores, 5, potential=potential, sweeps=2, generator=16)
    assert (tiers.lengths == items).all()
    first = tiers.tier_sizes[tiers.list_offsets[:-1]].double()
    assert (abs(first - items / 2) < 5 * math.sqrt(items) / 2).all()  # about Binomial(N, 1/2)


def test_partitions_by_scores_of_ten_thousand():
    scores = np.linspace(-1e4, 1e4, 9).astype(np.float32)
    # the best that is left is worth so much more that it is chosen alone …
    alone = sample_ordered_partitions(scores, 20, potential="mean", generator=17)
    assert (alone.to_labels() == torch.arange(9)).all()
    # … or with any others, of which none is worth anything
    labels = sample_ordered_partitions(scores, 20, potential="sum", generator=17).to_labels()
    assert (labels[:, -1] == labels.amax(1)).all()
    assert (labels.amax(1) < 8).any()


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((FOUR, -1), {}, "n = -1 is negative"),
        ((np.zeros(0), 1), {}, r"not of shape \[0\]"),
        ((np.zeros((2, 2, 2)), 1), {}, r"not of shape \[2, 2, 2\]"),
        ((np.zeros((4, 3)), 1), {}, "4 stages, not for 3"),
        ((np.array([0, np.nan]), 1), {}, r"scores\[1\] is nan"),
        ((FOUR, 1), {"potential": "max"}, '"sum" .* or "mean" .*, not .max.'),
        ((FOUR, 1), {"direction": "up"}, "direction"),
        ((FOUR, 1), {"sweeps": 0}, "sweeps = 0"),
    ],
)
def test_what_cannot_be_drawn_is_refused(arguments, options, message):
    with pytest.raises(ValueError, match=message):
        sample_ordered_partitions(*arguments, **options)


def test_the_helpers_agree_with_the_numbers_of_the_paper():
    """Section 3.1: 1, 13 and 541 ordered partitions of 1, 3 and 5 items."""
    assert [len(ordered_partitions(n)) for n in (1, 2, 3, 4, 5)] == [1, 3, 13, 75, 541]
    assert len(subsets(range(7))) == 2**7 - 1
    np.testing.assert_allclose(softmax([0, math.log(3)]), [0.25, 0.75])
