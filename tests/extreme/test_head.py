"""The fused head: what the scores of all labels at once would give, without these scores."""

import gc
import threading
import weakref

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter

import tierrank as tr
from tierrank.extreme import FUSED, FusedHead, label_loss
from tierrank.extreme import head as fused
from tierrank.extreme.head import fused_losses
from tierrank.plackett_luce import kernels

LABELS, WIDTH = 700, 6  # three blocks, where blocks are as small as can be


def naive(hidden, weight, bias, tiers, objective, **options):
    """The objective of all scores, held as a whole."""
    scores = hidden @ weight.T if bias is None else hidden @ weight.T + bias
    return tr.losses.from_name(objective, reduction="none")(scores, tiers, **options)


def layer(tiers, *, seed=0, scale=1.0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    shapes = (len(tiers), WIDTH), (tiers.n_items, WIDTH), (tiers.n_items,)
    return [
        (scale**0.5 * torch.randn(*shape, generator=generator, dtype=torch.float64))
        .to(dtype)
        .requires_grad_()
        for shape in shapes
    ]


def with_gradients(loss, parts, by_list):
    """[lists] losses, and the gradients of their sum with these factors."""
    losses = loss(*parts)
    return [losses.detach(), *torch.autograd.grad(losses, parts, by_list.to(losses))]


def sets(labels=LABELS, seed=0):
    """Few labels, one, none, all but one, all, and many."""
    rng = np.random.default_rng(seed)
    sizes = [3, 1, 0, labels - 1, labels, 2, labels // 2, 0, 5]
    rows = [np.sort(rng.choice(labels, size, replace=False)) for size in sizes]
    columns, borders = np.concatenate(rows), np.cumsum([0, *sizes])
    matrix = csr_matrix((np.ones(len(columns)), columns, borders), shape=(len(sizes), labels))
    return tr.Tiers.from_positives(matrix)


def rankings(labels=LABELS, seed=0):
    """Several tiers above the rest; nothing but the rest; a ranking of all labels."""
    rng = np.random.default_rng(seed)
    order = [rng.permutation(labels).tolist() for _ in range(5)]
    lists = [
        [order[0][0], tuple(order[0][1:4]), order[0][4]],
        [],
        [tuple(order[2][:2]), tuple(order[2][2:9])],
        [tuple(order[3][: labels // 2]), tuple(order[3][labels // 2 :])],
        [order[4][0], tuple(order[4][1 : labels - 1])],
    ]
    return tr.Tiers.from_rankings(lists, items=labels, rest="last")


KINDS = {"sets": sets, "rankings": rankings}
SIZES = {  # of a block and of what is kept, in bytes
    "one block": (1 << 30, 1 << 30),
    "three, all kept": (1, 1 << 30),
    "three, none kept": (1, 0),
    "three, one kept": (1, 256 * 8 * 9),
}


@pytest.fixture(params=SIZES, ids=lambda name: name.replace(" ", "-"))
def any_blocks(request, monkeypatch):
    block, kept = SIZES[request.param]
    monkeypatch.setattr(fused, "BLOCK_BYTES", block)
    monkeypatch.setattr(fused, "KEPT_BYTES", kept)
    monkeypatch.setattr(fused, "GATHERED", 17 * WIDTH if block == 1 else 1 << 21)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("objective", FUSED)
def test_losses_and_gradients_are_those_of_all_scores_at_once(objective, kind, any_blocks):
    tiers = KINDS[kind]()
    parts = layer(tiers)
    by_list = torch.linspace(-1, 2, len(tiers))
    wanted = with_gradients(lambda *p: naive(*p, tiers, objective), parts, by_list)
    ours = with_gradients(
        lambda *p: label_loss(*p, tiers, objective=objective, reduction="none"), parts, by_list
    )
    for one, two in zip(ours, wanted, strict=True):
        torch.testing.assert_close(one, two, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("objective", FUSED)
def test_float32_is_as_near_to_the_truth_as_all_scores_in_float32(objective, kind, monkeypatch):
    monkeypatch.setattr(fused, "BLOCK_BYTES", 1)
    tiers = KINDS[kind]()
    parts = layer(tiers, dtype=torch.float32)
    exact = [part.detach().double().requires_grad_() for part in parts]
    by_list = torch.linspace(-1, 2, len(tiers))
    truth = with_gradients(lambda *p: naive(*p, tiers, objective), exact, by_list)
    usual = with_gradients(lambda *p: naive(*p, tiers, objective), parts, by_list)
    ours = with_gradients(
        lambda *p: label_loss(*p, tiers, objective=objective, reduction="none"), parts, by_list
    )
    for one, other, right in zip(ours, usual, truth, strict=True):
        assert one.dtype == torch.float32
        size = float(right.abs().max())
        error, usual_error = (float((each - right).abs().max()) for each in (one, other))
        assert error <= max(2 * usual_error, 1e-6 * size)


@settings(max_examples=50)
@given(st.data())
def test_any_small_catalogue(data):
    labels, lists = data.draw(st.integers(1, 6)), data.draw(st.integers(0, 4))
    tiered = st.lists(st.integers(0, 3), min_size=labels, max_size=labels)
    grades = data.draw(st.lists(tiered, min_size=lists, max_size=lists))
    rows = [
        [tuple(j for j in range(labels) if row[j] == grade) for grade in (3, 2, 1) if grade in row]
        for row in grades
    ]  # grade 0 is the rest
    tiers = tr.Tiers.from_rankings(rows, items=labels, rest="last")
    objective = data.draw(st.sampled_from(FUSED))
    parts = layer(
        tiers, seed=data.draw(st.integers(0, 99)), scale=data.draw(st.sampled_from([1, 40]))
    )
    by_list = torch.ones(lists)
    wanted = with_gradients(lambda *p: naive(*p, tiers, objective), parts, by_list)
    ours = with_gradients(
        lambda *p: label_loss(*p, tiers, objective=objective, reduction="none"), parts, by_list
    )
    for one, two in zip(ours, wanted, strict=True):
        torch.testing.assert_close(one, two, rtol=1e-10, atol=1e-10)


# Labels that count more or less than once ------------------------------------------------------


@pytest.mark.parametrize("objective", FUSED)
def test_a_label_that_counts_n_times_is_as_n_labels(objective, any_blocks):
    """What a list names stands there once, whatever its count."""
    rows = [[0, (3, 555)], [311], [], [(2, 6, 208)], [699], [tuple(range(LABELS))]]
    counts = torch.randint(4, (LABELS,), generator=torch.Generator().manual_seed(1))
    tiers = tr.Tiers.from_rankings(rows, items=LABELS, rest="last")
    assert set(counts[tiers[:5].items].tolist()) == {0, 1, 2, 3}  # of what is named, too
    hidden, weight, bias = layer(tiers)
    by_list = torch.linspace(0.5, 2, len(rows), dtype=torch.float64)

    inputs = hidden.detach(), weight.detach(), bias.detach()
    losses = fused_losses(*inputs, tiers, objective, log_weights=counts.double().log())
    by_weight, by_bias = torch.full_like(weight, torch.nan), torch.full_like(bias, torch.nan)

    def collect(labels, weight_part, bias_part):
        by_weight[labels], by_bias[labels] = weight_part, bias_part

    by_hidden = losses.backward(by_list, collect)

    wanted = []
    for number, row in enumerate(rows):
        named = set(tiers[number].items.tolist())
        copies = [j for j in range(LABELS) for _ in range(1 if j in named else int(counts[j]))]
        place = {label: at for at, label in enumerate(copies)}
        parts = [tuple(place[j] for j in (t if isinstance(t, tuple) else (t,))) for t in row]
        one = tr.Tiers.from_rankings([parts], items=len(copies), rest="last")
        wanted.append(
            naive(hidden[number : number + 1], weight[copies], bias[copies], one, objective)
        )
    wanted = torch.cat(wanted)
    torch.testing.assert_close(losses.by_list, wanted.detach(), rtol=1e-10, atol=1e-10)
    gradients = torch.autograd.grad(wanted @ by_list, (hidden, weight, bias))
    for one, two in zip((by_hidden, by_weight, by_bias), gradients, strict=True):
        torch.testing.assert_close(one, two, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("objective", FUSED)
def test_counts_that_leave_no_rest_leave_no_loss(objective):
    tiers = tr.Tiers.from_positives(csr_matrix([[1, 0, 1, 0], [0, 1, 1, 1]]))
    hidden, weight, bias = (part.detach() for part in layer(tiers))
    never = torch.full((4,), -torch.inf, dtype=torch.float64)
    losses = fused_losses(hidden, weight, bias, tiers, objective, log_weights=never)
    if objective == "bce":  # what is named is judged by itself
        named = torch.tensor([[1, 0, 1, 0], [0, 1, 1, 1]])
        wanted = (named * torch.nn.functional.softplus(-(hidden @ weight.T + bias))).sum(1)
        torch.testing.assert_close(losses.by_list, wanted)
        return
    assert losses.by_list.tolist() == [0, 0]
    slopes = []
    slopes += [losses.backward(torch.ones(2).double(), lambda _, *both: slopes.extend(both))]
    assert len(slopes) == 3
    assert not any(each.any() for each in slopes)


# Scores at the edge ----------------------------------------------------------------------------


@pytest.mark.parametrize("height", [-1e4, 1e4])
@pytest.mark.parametrize("objective", FUSED)
def test_digits_are_kept_where_scores_are_big_and_near_each_other(objective, height, monkeypatch):
    """Width 1 and hidden 1, so that float32 holds the scores exactly, and no sum rounds them."""
    monkeypatch.setattr(fused, "BLOCK_BYTES", 1)
    tiers = sets()
    generator = torch.Generator().manual_seed(3)
    near = torch.randint(-4096, 4096, (LABELS, 1), generator=generator) / 1024
    weight = (near + height).float().requires_grad_()
    hidden = torch.ones(len(tiers), 1, requires_grad=True)
    by_list = torch.ones(len(tiers))
    wanted = with_gradients(
        lambda h, w: naive(h, w, None, tiers, objective), (hidden, weight), by_list
    )
    ours = with_gradients(
        lambda h, w: label_loss(h, w, None, tiers, objective=objective, reduction="none"),
        (hidden, weight),
        by_list,
    )
    for one, two in zip((ours[0], ours[2]), (wanted[0], wanted[2]), strict=True):
        torch.testing.assert_close(one, two, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("objective", FUSED)
def test_scores_that_are_far_apart_neither_overflow_nor_vanish(objective, dtype, monkeypatch):
    monkeypatch.setattr(fused, "BLOCK_BYTES", 1)
    tiers = sets()
    parts = layer(tiers, scale=4e3, dtype=dtype)
    assert (parts[0] @ parts[1].T).abs().max() > 1e4
    by_list = torch.ones(len(tiers))
    exact = [part.detach().double().requires_grad_() for part in parts]
    wanted = with_gradients(lambda *p: naive(*p, tiers, objective), exact, by_list)
    ours = with_gradients(
        lambda *p: label_loss(*p, tiers, objective=objective, reduction="none"), parts, by_list
    )
    near = 1e-10 if dtype == torch.float64 else 1e-6
    torch.testing.assert_close(ours[0].double(), wanted[0], rtol=near, atol=1e-25)
    for one, two in zip(ours[1:], wanted[1:], strict=True):
        assert float((one - two).norm() / two.norm()) < 20 * near


@pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf])
@pytest.mark.parametrize("objective", FUSED)
def test_scores_that_are_not_finite_are_refused(objective, value):
    tiers = tr.Tiers.from_positives(csr_matrix([[0, 1, 0, 0, 0], [1, 0, 0, 0, 0]]))
    for label in range(3):  # named by one list, by the other, by none
        hidden, weight, bias = (part.detach() for part in layer(tiers))
        bias[label] = value
        if value == -torch.inf and label == 2:
            continue  # there the answer is another one
        number = 1 if value == -torch.inf and label == 0 else 0
        with pytest.raises(ValueError, match=f"must be finite, but list {number} has one"):
            label_loss(hidden, weight, bias, tiers, objective=objective)


@pytest.mark.parametrize("objective", FUSED)
def test_a_label_with_score_minus_infinity_is_not_there(objective):
    matrix = csr_matrix([[0, 1, 0, 0, 1, 0], [1, 0, 0, 1, 0, 0]])
    tiers, fewer = (
        tr.Tiers.from_positives(matrix),
        tr.Tiers.from_positives(matrix[:, [0, 1, 3, 4, 5]]),
    )
    hidden, weight, bias = layer(tiers)
    there = [0, 1, 3, 4, 5]
    off = torch.zeros(6, dtype=torch.float64)
    off[2] = -torch.inf
    by_list = torch.ones(2)
    wanted = with_gradients(
        lambda h, w, b: naive(h, w[there], b[there], fewer, objective),
        (hidden, weight, bias),
        by_list,
    )
    ours = with_gradients(
        lambda h, w, b: label_loss(h, w, b + off, tiers, objective=objective, reduction="none"),
        (hidden, weight, bias),
        by_list,
    )
    for one, two in zip(ours, wanted, strict=True):
        torch.testing.assert_close(one, two, rtol=1e-10, atol=1e-10)


# The function ----------------------------------------------------------------------------------


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("objective", ["pl-partition", "ranknet"])
def test_weights_of_lists_and_reductions_are_those_of_the_losses(objective, reduction, weighted):
    tiers = sets(20)
    parts = layer(tiers)
    weights = np.arange(len(tiers)) / 4 if weighted else None
    scores = parts[0] @ parts[1].T + parts[2]
    loss = tr.losses.from_name(objective, reduction=reduction)
    wanted = loss(scores, tiers, weights=weights)
    ours = label_loss(*parts, tiers, objective=objective, weights=weights, reduction=reduction)
    torch.testing.assert_close(ours, wanted, rtol=1e-10, atol=1e-10)
    gradients = (torch.autograd.grad(each.sum(), parts) for each in (ours, wanted))
    for one, two in zip(*gradients, strict=True):
        torch.testing.assert_close(one, two, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("objective", FUSED)
def test_without_a_bias_there_is_none(objective):
    tiers = rankings(30)
    hidden, weight, _ = layer(tiers)
    by_list = torch.ones(len(tiers))
    wanted = with_gradients(
        lambda h, w: naive(h, w, None, tiers, objective), (hidden, weight), by_list
    )
    ours = with_gradients(
        lambda h, w: label_loss(h, w, None, tiers, objective=objective, reduction="none"),
        (hidden, weight),
        by_list,
    )
    for one, two in zip(ours, wanted, strict=True):
        torch.testing.assert_close(one, two, rtol=1e-10, atol=1e-10)


def test_a_batch_of_no_lists_has_no_losses_and_no_mean():
    tiers = sets(5)[:0]
    parts = layer(tiers)
    for objective in FUSED:
        losses = label_loss(*parts, tiers, objective=objective, reduction="none")
        assert losses.shape == (0,)
        by_hidden, by_weight, _ = torch.autograd.grad(losses.sum(), parts)
        assert by_hidden.shape == (0, WIDTH)
        assert not by_weight.any()
    with pytest.raises(ValueError, match="no mean over no lists"):
        label_loss(*parts, tiers)


def test_what_does_not_fit_is_refused():
    tiers = tr.Tiers.from_positives(csr_matrix([[1, 0, 1, 0, 0], [0, 0, 0, 1, 0]]))
    hidden, weight, bias = torch.ones(2, 3), torch.ones(5, 3), torch.zeros(5)
    with pytest.raises(ValueError, match=r"\[lists, width\].*not \[2, 1\], \[5, 3\] and \[5\]"):
        label_loss(hidden[:, :1], weight, bias, tiers)  # it would broadcast
    with pytest.raises(ValueError, match=r"\[lists, width\].*not \[3\], \[5, 3\] and \[5\]"):
        label_loss(hidden[0], weight, bias, tiers)
    with pytest.raises(ValueError, match=r"\[labels\], not \[2, 3\], \[5, 3\] and \[5, 1\]"):
        label_loss(hidden, weight, bias[:, None], tiers)
    with pytest.raises(ValueError, match="5 labels need as many biases, not 1"):
        label_loss(hidden, weight, bias[:1], tiers)
    with pytest.raises(ValueError, match="3 lists over 5 labels need that many lists"):
        label_loss(torch.ones(3, 3), weight, bias, tiers)
    with pytest.raises(ValueError, match="2 lists over 4 labels need that many"):
        label_loss(hidden, weight[:4], bias[:4], tiers)
    absent = tr.Tiers.from_rankings([[0, 1], [2]], items=5)
    with pytest.raises(ValueError, match="with a rest"):
        label_loss(hidden, weight, bias, absent)
    with pytest.raises(ValueError, match=r"all float32 or all float64.*use \.float\(\)"):
        label_loss(hidden.double(), weight, bias, tiers)
    with pytest.raises(ValueError, match=r"all float32 or all float64.*bfloat16"):
        label_loss(hidden.bfloat16(), weight.bfloat16(), None, tiers)
    with pytest.raises(ValueError, match="reduction"):
        label_loss(hidden, weight, bias, tiers, reduction="middle")
    with pytest.raises(ValueError, match="need as many weights"):
        label_loss(hidden, weight, bias, tiers, weights=[1.0])


@pytest.mark.parametrize("objective", sorted(set(tr.losses.OBJECTIVES) - set(FUSED)))
def test_objectives_that_need_all_scores_are_refused_with_those_that_do_not(objective):
    tiers = tr.Tiers.from_positives(csr_matrix([[1, 0, 1]]))
    with pytest.raises(ValueError, match=rf"{objective} needs all scores.*pl-partition, pl-lb"):
        label_loss(torch.ones(1, 2), torch.ones(3, 2), None, tiers, objective=objective)
    with pytest.raises(ValueError, match=f"{objective} needs all scores"):
        FusedHead(2, 3, objective=objective)


def test_names_are_found_however_they_are_written():
    tiers = sets(20)
    hidden, weight, bias = layer(tiers)
    one, two = (
        label_loss(hidden, weight, bias, tiers, objective=name) for name in ("PL_Efron", "pl-efron")
    )
    assert torch.equal(one, two)
    with pytest.raises(ValueError, match="did you mean 'ranknet'"):
        label_loss(hidden, weight, bias, tiers, objective="rank-nets")


def test_it_can_be_gone_back_through_once():
    tiers = sets(20)
    parts = layer(tiers)
    loss = label_loss(*parts, tiers)
    loss.backward()
    with pytest.raises(RuntimeError, match="second time"):
        loss.backward()
    once = [part.grad.clone() for part in parts]
    loss = label_loss(*parts, tiers)
    loss.backward(retain_graph=True)
    loss.backward()  # the scores that were kept are gone: they are computed again
    for part, before in zip(parts, once, strict=True):
        torch.testing.assert_close(part.grad, 3 * before)
    loss = label_loss(*parts, tiers)
    with pytest.raises(NotImplementedError, match="once: leave out create_graph"):
        torch.autograd.grad(loss, parts[0], create_graph=True)


@pytest.mark.parametrize("which", [0, 1, 2])
def test_a_change_between_forward_and_backward_is_noticed(which):
    tiers = sets(20)
    parts = layer(tiers)
    loss = label_loss(*parts, tiers)
    with torch.no_grad():
        parts[which].add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_autocast_does_not_take_digits_away():
    tiers = sets()
    parts = layer(tiers, dtype=torch.float32)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        inside = label_loss(*parts, tiers)
        slopes = torch.autograd.grad(inside, parts)
    outside = label_loss(*parts, tiers)
    assert torch.equal(inside, outside)
    for one, two in zip(slopes, torch.autograd.grad(outside, parts), strict=True):
        torch.testing.assert_close(one, two, rtol=0, atol=0)


# The module ------------------------------------------------------------------------------------


def test_the_module_is_a_linear_layer_with_its_loss():
    tiers = sets(20)
    torch.manual_seed(0)
    head = FusedHead(WIDTH, 20, objective="pl-lb", reduction="sum")
    torch.manual_seed(0)
    linear = torch.nn.Linear(WIDTH, 20)
    assert {name: tuple(each.shape) for name, each in head.named_parameters()} == {
        "weight": (20, WIDTH),
        "bias": (20,),
    }
    linear.load_state_dict(head.state_dict())
    hidden = torch.randn(len(tiers), WIDTH)
    weights = torch.rand(len(tiers))
    loss = tr.losses.from_name("pl-lb", reduction="sum")(linear(hidden), tiers, weights=weights)
    ours = head(hidden, tiers, weights)
    torch.testing.assert_close(ours, loss, rtol=1e-5, atol=1e-5)
    loss.backward()
    ours.backward()
    torch.testing.assert_close(head.weight.grad, linear.weight.grad, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(head.bias.grad, linear.bias.grad, rtol=1e-4, atol=1e-5)


def test_the_module_learns_with_an_optimiser_of_torch():
    tiers = sets(20)
    torch.manual_seed(0)
    head, hidden = FusedHead(WIDTH, 20), torch.randn(len(tiers), WIDTH)
    optimiser = torch.optim.SGD(head.parameters(), lr=0.1)
    values = []
    for _ in range(5):
        optimiser.zero_grad()
        loss = head(hidden, tiers)
        loss.backward()
        optimiser.step()
        values.append(loss.item())
    assert values == sorted(values, reverse=True)


# Memory ----------------------------------------------------------------------------------------


class Alive(TorchDispatchMode):
    """Notes the largest tensor that comes into being, and the most bytes at one time."""

    def __init__(self):
        super().__init__()
        self.made, self.largest, self.peak = [], 0, 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        given = {id(each) for each in tree_iter((args, kwargs)) if isinstance(each, torch.Tensor)}
        result = function(*args, **(kwargs or {}))
        for each in tree_iter(result):
            if isinstance(each, torch.Tensor) and id(each) not in given and not each._is_view():
                self.largest = max(self.largest, each.numel())
                self.made.append(weakref.ref(each))
        self.peak = max(self.peak, self.bytes())
        return result

    def bytes(self):
        """What is there now."""
        self.made = [each for each in self.made if each() is not None]
        return sum(each().nbytes for each in self.made)


@pytest.fixture(autouse=True, scope="module")
def warm():
    """What the first call of all loads, under a mode, keeps some tensors for good."""
    with Alive():
        losses = fused_losses(
            torch.randn(64, 4), torch.randn(9, 4), torch.zeros(9), long_lists(9), "pl-partition"
        )
        losses.backward(torch.ones(64), lambda *part: None)
    del losses
    gc.collect()


def long_lists(labels, lists=64, named=5):
    rng = np.random.default_rng(0)
    columns = [np.sort(rng.choice(labels, named, replace=False)) for _ in range(lists)]
    return tr.Tiers.from_positives(
        csr_matrix(
            (np.ones(named * lists), np.concatenate(columns), np.arange(lists + 1) * named),
            shape=(lists, labels),
        )
    )


@pytest.mark.parametrize("objective", ["pl-partition", "pl-efron", "attrank", "ranknet", "ranksvm"])
def test_memory_of_a_step_does_not_grow_with_the_labels(objective, monkeypatch):
    kept = 3 * 64 * 512 * 4
    monkeypatch.setattr(fused, "BLOCK_BYTES", 64 * 512 * 4)
    monkeypatch.setattr(fused, "KEPT_BYTES", kept)
    found = {}
    for labels in (5_000, 20_000):
        tiers = long_lists(labels)
        hidden, weight, bias = torch.randn(64, 4), torch.randn(labels, 4), torch.zeros(labels)
        by_list = torch.ones(64)
        gc.disable()  # nothing hangs in a cycle
        try:
            with Alive() as alive:
                losses = fused_losses(hidden, weight, bias, tiers, objective)
                after_forward = alive.bytes()
                losses.backward(by_list, lambda *part: None)
                after_backward = alive.bytes()
        finally:
            gc.enable()
        assert alive.largest <= 64 * 512 < 64 * labels / 9
        assert kept <= after_forward < kept + 50_000
        assert after_backward < 50_000
        found[labels] = alive.peak
    assert found[20_000] < 1.05 * found[5_000]
    assert found[20_000] < kept + 4 * 64 * 512 * 4


def test_the_function_holds_the_gradient_of_the_weights_and_no_scores(monkeypatch):
    monkeypatch.setattr(fused, "BLOCK_BYTES", 64 * 512 * 4)
    monkeypatch.setattr(fused, "KEPT_BYTES", 0)
    labels = 20_000
    tiers = long_lists(labels)
    hidden, weight, bias = torch.randn(64, 4), torch.randn(labels, 4), torch.zeros(labels)
    for part in (hidden, weight, bias):
        part.requires_grad_()
    with Alive() as alive:
        label_loss(hidden, weight, bias, tiers).backward()
    assert alive.largest == weight.numel() < 64 * labels / 9


def test_losses_that_nobody_goes_back_through_are_let_go():
    tiers = sets()
    parts = layer(tiers)
    gc.disable()
    try:
        with Alive() as alive:
            loss = label_loss(*parts, tiers)
            assert alive.bytes() > len(tiers) * LABELS * 8  # all of the scores are kept
            del loss
            assert alive.bytes() < 50_000
    finally:
        gc.enable()


# Ways to compute -------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("objective", ["ranknet", "ranksvm"])
def test_pairs_are_the_same_compiled_and_in_plain_torch(objective, dtype, monkeypatch):
    monkeypatch.setattr(fused, "PAIRS_AT_ONCE", 1000)  # so that lists come in parts
    tiers = sets()
    parts = layer(tiers, dtype=dtype)
    by_list = torch.linspace(-1, 2, len(tiers))

    def loss(*p):
        return label_loss(*p, tiers, objective=objective, reduction="none")

    with kernels.using("plain"):
        plain = with_gradients(loss, parts, by_list)
    with kernels.using("compiled"):
        compiled = with_gradients(loss, parts, by_list)
    near = 1e-11 if dtype == torch.float64 else 2e-5
    for one, two in zip(plain, compiled, strict=True):
        assert float((one - two).abs().max()) <= near * float(two.abs().max())


@pytest.mark.parametrize("objective", ["pl-partition", "ranknet"])
def test_several_threads_do_not_disturb_each_other(objective):
    tiers = sets()
    parts = layer(tiers)
    by_list = torch.ones(len(tiers))

    def loss(*p):
        return label_loss(*p, tiers, objective=objective, reduction="none")

    wanted, found = with_gradients(loss, parts, by_list), []

    def work():
        found.extend(with_gradients(loss, parts, by_list) for _ in range(5))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 20
    for each in found:
        for one, two in zip(each, wanted, strict=True):
            torch.testing.assert_close(one, two, rtol=0, atol=0)
