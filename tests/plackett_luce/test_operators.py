"""The torch operators: inside torch.compile, autocast, other threads and processes."""

import multiprocessing
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest
import torch
from torch import func
from torch.testing._internal.distributed.fake_pg import FakeStore

import tierrank as tr
from partitions import computing, each_dtype, each_kernel, ragged, value_and_gradient
from tierrank.plackett_luce import operators

SCORES, LABELS, LENGTHS = ragged(11, lists=9, longest=8)
TIERS = tr.Tiers.from_labels(LABELS, lengths=LENGTHS)
LAYOUT = TIERS.layout()[1:]
BOTTOM = torch.linspace(-2, 2, len(TIERS), dtype=torch.float64)
NOTHING = torch.full_like(BOTTOM, -torch.inf)
NO_WEIGHTS = torch.empty(0, dtype=torch.float64)
WEIGHTS = torch.linspace(0, 2, len(LAYOUT[2]) - 1, dtype=torch.float64)  # of the upper tiers
each_kernel_and_dtype = pytest.mark.parametrize(
    ("kernel", "dtype"),
    [
        ("compiled", torch.float64),
        ("compiled", torch.float32),
        ("plain", torch.float64),
        pytest.param("plain", torch.float32, marks=pytest.mark.slow),
    ],
    ids=["compiled-f64", "compiled-f32", "plain-f64", "plain-f32"],
)
each_weighting = pytest.mark.parametrize("weights", [NO_WEIGHTS, WEIGHTS], ids=["", "weighted"])


# The operators themselves ----------------------------------------------------------------------


def arguments(dtype, bottom, requires_grad, weights=NO_WEIGHTS):
    scores = torch.from_numpy(SCORES).to(dtype).requires_grad_(requires_grad)
    bottom = bottom.to(dtype).clone()
    if requires_grad and bottom.isfinite().all():
        bottom.requires_grad_()
    return scores, bottom, *LAYOUT, weights


@each_kernel_and_dtype
@each_weighting
@pytest.mark.parametrize("bottom", [NOTHING, BOTTOM], ids=["nothing below", "a rest below"])
@pytest.mark.parametrize("requires_grad", [False, True], ids=["value", "gradient"])
def test_the_likelihood_passes_the_checks_of_torch(kernel, dtype, weights, bottom, requires_grad):
    with computing(kernel):
        given = (*arguments(dtype, bottom, requires_grad, weights), requires_grad)
        checked = torch.library.opcheck(torch.ops.tierrank.log_prob.default, given)
    assert set(checked.values()) == {"SUCCESS"}


@each_kernel_and_dtype
@each_weighting
@pytest.mark.parametrize("requires_grad", [False, True], ids=["value", "gradient"])
def test_the_curvature_passes_the_checks_of_torch(kernel, dtype, weights, requires_grad):
    generator = torch.Generator().manual_seed(0)
    vector = torch.randn(len(SCORES), dtype=dtype, generator=generator)
    below = torch.randn(len(TIERS), dtype=dtype, generator=generator)
    # differentiable in the vectors only
    given = (
        *arguments(dtype, BOTTOM, False, weights),
        *(v.requires_grad_(requires_grad) for v in (vector, below)),
    )
    with computing(kernel):
        checked = torch.library.opcheck(torch.ops.tierrank.curvature_product.default, given)
    assert set(checked.values()) == {"SUCCESS"}


@each_kernel
@each_weighting
def test_the_likelihood_is_differentiable_in_what_stands_below(kernel, weights):
    scores, bottom, *rest = arguments(torch.float64, BOTTOM, True, weights)

    def value(scores, bottom):
        return operators.log_prob(scores, bottom, *rest, True)[0]

    with computing(kernel):
        assert torch.autograd.gradcheck(value, (scores, bottom))
        assert torch.autograd.gradgradcheck(value, (scores, bottom))


def test_a_third_derivative_is_refused_in_words():
    scores = torch.from_numpy(SCORES).requires_grad_()
    (first,) = torch.autograd.grad(tr.log_prob(scores, TIERS).sum(), scores, create_graph=True)
    (second,) = torch.autograd.grad(first.square().sum(), scores, create_graph=True)
    with pytest.raises(NotImplementedError, match="third derivative; detach the scores"):
        torch.autograd.grad(second.sum(), scores)


def test_an_operator_called_without_gradient_says_so_when_one_is_needed():
    given = arguments(torch.float64, NOTHING, True)
    with pytest.raises(RuntimeError, match="with_gradient=True"):
        operators.log_prob(*given, False)


# Inside other people's programs ----------------------------------------------------------------


class Model(torch.nn.Module):
    """A small scorer with the likelihood inside."""

    def __init__(self, dtype=torch.float32):
        super().__init__()
        with torch.random.fork_rng():
            torch.manual_seed(0)
            self.layers = torch.nn.Sequential(
                torch.nn.Linear(3, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1)
            )
        self.to(dtype)

    def forward(self, features, tiers):
        return -tr.log_prob(self.layers(features).squeeze(-1), tiers).mean()


FEATURES = torch.randn(len(SCORES), 3, generator=torch.Generator().manual_seed(1))


def loss_and_gradients(model, forward=None, tiers=TIERS, features=FEATURES):
    model.zero_grad()
    dtype = next(model.parameters()).dtype
    loss = (model if forward is None else forward)(features.to(dtype), tiers)
    loss.backward()
    return [loss.detach(), *(p.grad.clone() for p in model.parameters())]


@each_dtype
def test_a_compiled_model_gives_the_same_loss_and_gradients(dtype):
    model = Model(dtype)
    torch.compiler.reset()
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(loss_and_gradients(model, compiled), loss_and_gradients(model))


@pytest.mark.slow
@pytest.mark.skipif(
    not any(map(shutil.which, [os.environ.get("CXX", "g++"), "clang++"])),
    reason="torch's inductor needs a C++ compiler, and there is none",
)
def test_a_model_compiled_by_inductor_gives_the_same_loss_and_gradients():
    model = Model()
    torch.compiler.reset()
    compiled = torch.compile(model, fullgraph=True)
    torch.testing.assert_close(loss_and_gradients(model, compiled), loss_and_gradients(model))


def test_a_compiled_model_takes_batches_of_other_sizes():
    model = Model()
    torch.compiler.reset()
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    for some in (slice(0, 9), slice(2, 5), slice(4, 9), slice(1, 2)):
        tiers = TIERS[some]
        tiers.layout()  # depends on the data, so it is made before the graph
        batch = {"tiers": tiers, "features": FEATURES[TIERS.rows(some)]}
        torch.testing.assert_close(
            loss_and_gradients(model, compiled, **batch), loss_and_gradients(model, **batch)
        )


PADDED = tr.Tiers.from_labels([[2, 0, 1], [0, 9, 1]], mask=[[True] * 3, [True, False, True]])
ABSENT = tr.Tiers.from_rankings([[0, (1, 2)], [3, 0]], items=5)
LAST = tr.Tiers.from_rankings([[0, (1, 2)], [3]], items=5, rest="last")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tiers", "shape", "fullgraph"),
    [
        (PADDED, (2, 3), True),
        (ABSENT, (5,), True),
        (ABSENT, (2, 5), True),
        (LAST, (2, 5), True),
        (LAST, (5,), False),  # whether a rest is thin depends on the scores: the graph breaks
    ],
    ids=["padded", "shared, absent", "own, absent", "own, last", "shared, last"],
)
def test_every_form_of_scores_can_be_compiled(tiers, shape, fullgraph):
    scores = torch.randn(shape, generator=torch.Generator().manual_seed(2))
    torch.compiler.reset()
    compiled = torch.compile(
        lambda w: tr.log_prob(w, tiers), fullgraph=fullgraph, backend="aot_eager"
    )
    expected = value_and_gradient(lambda w: tr.log_prob(w, tiers), scores)
    torch.testing.assert_close(value_and_gradient(compiled, scores), expected)


def loss_of_labels(scores, labels):
    return tr.losses.pl_top_k(scores * 2, tr.Tiers.from_labels(labels), k=1)


@pytest.mark.slow
def test_tiers_built_inside_compiled_code_are_kept_out_of_the_graph_as_a_whole():
    """Or torch prints a wall of reasons, one for every look at a value."""
    torch.compiler.reset()
    torch._dynamo.utils.counters.clear()
    compiled = torch.compile(loss_of_labels, backend="aot_eager")
    scores = torch.randn((2, 3), generator=torch.Generator().manual_seed(5))
    for labels in (torch.tensor([[2, 1, 0], [1, 0, 0]]), torch.tensor([[0, 1, 0], [1, 1, 0]])):
        ours, expected = (
            value_and_gradient(partial(function, labels=labels), scores)
            for function in (compiled, loss_of_labels)
        )
        torch.testing.assert_close(ours, expected)
    reasons = torch._dynamo.utils.counters["graph_break"]
    assert reasons
    assert all("disable" in reason for reason in reasons)


def test_one_graph_with_tiers_built_inside_is_refused_with_what_to_do():
    torch.compiler.reset()
    compiled = torch.compile(loss_of_labels, fullgraph=True, backend="aot_eager")
    with pytest.raises(RuntimeError, match=r"tiers depend on values, .* build them before"):
        compiled(torch.zeros(2, 3), torch.tensor([[2, 1, 0], [1, 0, 0]]))


def test_a_compiled_model_still_refuses_scores_that_are_not_finite():
    torch.compiler.reset()
    compiled = torch.compile(lambda w: tr.log_prob(w, TIERS), fullgraph=True, backend="aot_eager")
    scores = torch.from_numpy(SCORES).clone()
    compiled(scores)
    scores[LENGTHS[0]] = torch.nan
    with pytest.raises(ValueError, match=f"in list 1 the one at row {LENGTHS[0]} is nan"):
        compiled(scores)


WRITTEN = torch.linspace(0, 2, len(TIERS.tier_offsets) - 1)  # a weight for every written tier


def weighted_log_prob(scores, weights):
    return tr.log_prob(scores, TIERS, tier_weights=weights)


def test_weights_of_tiers_can_be_compiled():
    torch.compiler.reset()
    compiled = torch.compile(weighted_log_prob, fullgraph=True, backend="aot_eager")
    scores = torch.from_numpy(SCORES)
    for weights in (WRITTEN, WRITTEN.flip(0)):
        ours, expected = (
            value_and_gradient(partial(function, weights=weights), scores)
            for function in (compiled, weighted_log_prob)
        )
        torch.testing.assert_close(ours, expected)


def test_a_compiled_model_still_refuses_weights_of_tiers_that_are_not_finite():
    torch.compiler.reset()
    compiled = torch.compile(weighted_log_prob, fullgraph=True, backend="aot_eager")
    with pytest.raises(ValueError, match="tier weights must be finite"):
        compiled(torch.from_numpy(SCORES), torch.full_like(WRITTEN, torch.nan))


@pytest.mark.parametrize(
    ("tiers", "shape"),
    [(PADDED, (2, 3)), (ABSENT, (5,)), (LAST, (5,)), (LAST, (2, 5))],
    ids=["padded", "shared, absent", "shared, last", "own, last"],
)
def test_torch_func_agrees_with_autograd(tiers, shape):
    source = torch.Generator().manual_seed(3)
    several = torch.randn((2, *shape), generator=source, dtype=torch.float64)

    def by_list(w):
        return tr.log_prob(w, tiers)

    def nonlinear(w):
        return by_list(w).exp().sum()

    close = partial(torch.testing.assert_close, rtol=1e-11, atol=1e-13)
    close(func.vmap(by_list)(several), torch.stack([by_list(w) for w in several]))
    jacobians = torch.stack([torch.autograd.functional.jacobian(by_list, w) for w in several])
    close(func.vmap(func.jacrev(by_list))(several), jacobians)
    close(func.vmap(func.jacfwd(by_list))(several), jacobians)
    hessians = torch.stack([torch.autograd.functional.hessian(nonlinear, w) for w in several])
    close(func.vmap(func.hessian(nonlinear))(several), hessians)
    close(func.vmap(func.jacrev(func.jacrev(nonlinear)))(several), hessians)
    with pytest.raises(NotImplementedError, match="third derivative"):
        func.jacrev(func.hessian(nonlinear))(several[0])


def test_torch_func_passes_through_log_prob_above():
    several = torch.randn((4, 6), generator=torch.Generator().manual_seed(4), dtype=torch.float64)

    def above(w):
        return tr.log_prob_above(w, [0, 3], [1, 4, 5])

    torch.testing.assert_close(func.vmap(above)(several), above(several))
    expected = value_and_gradient(lambda w: above(w).sum(), several)[1]
    torch.testing.assert_close(func.vmap(func.grad(above))(several), expected)


@pytest.mark.parametrize("through", [torch.func.grad, torch.func.vmap])
@pytest.mark.parametrize("of", ["log_prob", "pl_partition"])
def test_torch_func_is_told_that_tier_weights_are_constants(through, of):
    tiers, scores = tr.Tiers.from_labels([2, 1, 1, 0]), torch.zeros(4)
    ways = {
        "log_prob": lambda weights: tr.log_prob(scores, tiers, tier_weights=weights).sum(),
        "pl_partition": lambda weights: tr.losses.pl_partition(scores, tiers, alpha=weights),
    }
    given = torch.ones(3) if through is torch.func.grad else torch.ones(2, 3)
    with pytest.raises(ValueError, match="constants"):
        through(ways[of])(given)


def test_an_ensemble_of_models_learns_by_vmap():
    """The use of torch.func: one gradient for the parameters of each model."""
    models = [Model() for _ in range(3)]
    parameters, _ = func.stack_module_state(models)

    def loss(parameters):
        return func.functional_call(models[0], parameters, (FEATURES, TIERS))

    gradients = func.vmap(func.grad(loss))(parameters)
    for number, model in enumerate(models):
        expected = dict(zip(parameters, loss_and_gradients(model)[1:], strict=True))
        torch.testing.assert_close({n: g[number] for n, g in gradients.items()}, expected)


def test_autocast_computes_the_model_in_half_and_the_likelihood_in_single():
    model = Model()
    expected = loss_and_gradients(model)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        scores = model.layers(FEATURES).squeeze(-1)
        loss = -tr.log_prob(scores, TIERS).mean()
        assert scores.dtype == torch.bfloat16
        assert loss.dtype == torch.float32
        in_half = loss_and_gradients(model)
    exact = -tr.log_prob(scores.detach().double(), TIERS).mean()
    assert loss.item() == pytest.approx(float(exact), rel=1e-5)
    for half, single in zip(in_half, expected, strict=True):
        assert half.dtype == torch.float32
        torch.testing.assert_close(half, single, rtol=0.05, atol=0.01)


def test_data_parallel_training_gives_the_same_gradients():
    """One process is enough to see that its hooks find our gradients; it then needs no network."""

    def exchange_with_nobody(_, bucket):
        done = torch.futures.Future()
        done.set_result(bucket.buffer())
        return done

    model = Model()
    expected = loss_and_gradients(model)
    torch.distributed.init_process_group("fake", store=FakeStore(), rank=0, world_size=1)
    try:
        parallel = torch.nn.parallel.DistributedDataParallel(model)
        parallel.register_comm_hook(None, exchange_with_nobody)
        torch.testing.assert_close(loss_and_gradients(model, parallel), expected)
    finally:
        torch.distributed.destroy_process_group()


# Threads and processes -------------------------------------------------------------------------


def large(seed, dtype=torch.float64):
    """Enough work to be shared between threads."""
    scores, labels, lengths = ragged(seed, lists=3000, longest=20, grades=3)
    return torch.from_numpy(scores).to(dtype), tr.Tiers.from_labels(labels, lengths=lengths)


def test_any_number_of_threads_gives_the_same_numbers():
    scores, tiers = large(1)
    before = torch.get_num_threads()
    results = []
    try:
        for threads in (1, 2, 3, 1, 2):
            torch.set_num_threads(threads)
            results.append(value_and_gradient(lambda w: tr.log_prob(w, tiers), scores))
    finally:
        torch.set_num_threads(before)
    for value, gradient in results[1:]:
        assert torch.equal(value, results[0][0])
        assert torch.equal(gradient, results[0][1])


def test_several_python_threads_can_call_at_once():
    problems = [large(seed, dtype) for seed in (2, 3) for dtype in (torch.float64, torch.float32)]

    def solve(problem):
        scores, tiers = problem
        value, gradient = value_and_gradient(lambda w: tr.log_prob(w, tiers), scores)
        return value, gradient, tr.Curvature(scores, tiers).diagonal()

    alone = [solve(problem) for problem in problems]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(solve, problems * 5))
    for i, result in enumerate(together):
        for ours, expected in zip(result, alone[i % 4], strict=True):
            assert torch.equal(ours, expected)


def _in_child(connection, work):
    connection.send([np.asarray(part) for part in work()])


def in_forked_process(work):
    """What `work()` gives in a child of this process."""
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe(duplex=False)
    child = context.Process(target=_in_child, args=(there, work))
    child.start()
    there.close()
    try:
        assert here.poll(60), "the forked process hangs"
        return here.recv()
    finally:
        child.join(5)
        child.kill()


forks = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork"),
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
]


class TestAfterAFork:
    """A child process has the parent's memory, but not its threads."""

    pytestmark = forks

    def test_the_kernel_has_threads_of_its_own(self):
        scores, tiers = large(4)
        nothing = scores.new_full((len(tiers),), -torch.inf)
        given = scores, nothing, *tiers.layout()[1:], NO_WEIGHTS

        def work():  # the operator alone: torch's own threads do not survive a fork
            return operators.log_prob(*given, True)

        work()  # starts the parent's threads
        for ours, expected in zip(in_forked_process(work), work(), strict=True):
            np.testing.assert_array_equal(ours, expected)

    def test_a_data_loader_can_compute_gradients(self):
        scores, tiers = large(4)

        def work():
            return value_and_gradient(lambda w: tr.log_prob(w, tiers), scores)

        def work_as_torch_makes_its_workers_do():
            torch.set_num_threads(1)
            return work()

        received = in_forked_process(work_as_torch_makes_its_workers_do)
        for ours, expected in zip(received, work(), strict=True):
            np.testing.assert_array_equal(ours, expected)


@each_kernel
def test_scaling_by_list_multiplies_every_row_by_the_number_of_its_list(kernel):
    row_offsets = torch.tensor([0, 2, 3, 6])
    rows = torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], dtype=torch.float64, requires_grad=True)
    by_list = torch.tensor([10.0, 0.0, -1.0], dtype=torch.float64, requires_grad=True)

    def scaled(rows, by_list):
        return torch.ops.tierrank.scale_lists(rows, row_offsets, by_list)

    with computing(kernel):
        assert scaled(rows, by_list).tolist() == [10, 20, 0, -4, -5, -6]
        assert torch.autograd.gradcheck(scaled, (rows, by_list))
        assert torch.autograd.gradgradcheck(scaled, (rows, by_list))
        given = (rows, row_offsets, by_list)
        torch.library.opcheck(torch.ops.tierrank.scale_lists.default, given)
