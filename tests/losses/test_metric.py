"""Objectives for a metric, against the metrics, enumeration, draws, and other libraries."""

import itertools
from functools import partial
from math import log, log2

import numpy as np
import pytest
import torch

import tierrank as tr
from simulated_rows import simulated_rows
from tierrank import losses, metrics
from tierrank.losses import metric as module
from tierrank.ranking.derivatives import BoostingObjective

WEIGHTINGS = ("ndcg-loss1", "ndcg-loss2", "ndcg-loss2++", "lambdarank", "ranknet")
NDCG_LIKE = {
    "approx-ndcg": losses.approx_ndcg,
    "neural-ndcg": losses.neural_ndcg,
    "expected-ndcg": losses.expected_ndcg,
}


def ragged_lists(seed, lengths=(7, 1, 12, 2, 5), tied=False):
    rng = np.random.default_rng(seed)
    labels, scores = rng.integers(0, 4, sum(lengths)), rng.normal(size=sum(lengths))
    scores = np.round(scores) if tied else scores
    return scores, labels, tr.Tiers.from_labels(labels, lengths=lengths)


# LambdaLoss ------------------------------------------------------------------------------------


def lambda_by_definition(scores, labels, weighting, metric, k, sigma, mu):
    """Pair by pair, and what a swap changes by the metric itself; for scores without ties."""
    n = len(scores)
    rank = np.empty(n, int)
    rank[np.argsort(-scores)] = np.arange(1, n + 1)
    most = n if k is None else k
    gains = 2.0**labels - 1
    discount = [1 / log2(1 + r) if r <= most else 0.0 for r in range(1, n + 1)]
    best = np.sort(gains)[::-1] @ discount

    def measured(order_scores):
        options = {} if metric in ("mrr", "map") else {"k": most}
        name = {"map": "average_precision", "mrr": "reciprocal_rank"}.get(metric, metric)
        if metric == "mrr":
            options = {"k": None}
        return getattr(metrics, name)(order_scores, labels, **options)

    total = 0.0
    for i, j in itertools.permutations(range(n), 2):
        if min(rank[i], rank[j]) > most or (labels[i] <= labels[j] and weighting != "ndcg-loss1"):
            continue
        swapped = scores.copy()
        swapped[[i, j]] = scores[[j, i]]
        m = abs(rank[i] - rank[j])
        swap = abs(measured(swapped) - measured(scores))
        near = (1 / log2(1 + m) - 1 / log2(2 + m)) * (gains[i] - gains[j]) / best if best else 0.0
        weight = {
            "ndcg-loss1": gains[i] / best * discount[rank[i] - 1] if best else 0.0,
            "ndcg-loss2": near,
            "ndcg-loss2++": mu * near + swap,
            "lambdarank": swap,
            "ranknet": 1.0,
        }[weighting]
        total += weight * log2(1 + np.exp(-sigma * (scores[i] - scores[j])))
    return total


@pytest.mark.parametrize("k", [None, 1, 3])
@pytest.mark.parametrize("weighting", WEIGHTINGS)
def test_lambda_loss_is_what_the_paper_defines(weighting, k):
    for seed in range(5):
        scores, labels, _ = ragged_lists(seed, (9,))
        got = losses.lambda_loss(
            scores, tr.Tiers.from_labels(labels), weighting=weighting, k=k, sigma=1.5, mu=4.0
        )
        expected = lambda_by_definition(scores, labels, weighting, "ndcg", k, 1.5, 4.0)
        assert got == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("metric", "k"), [("map", None), ("mrr", None), ("precision", 3)])
def test_lambdarank_weighs_pairs_by_what_a_swap_changes_in_the_metric(metric, k):
    for seed in range(8):
        scores, labels, _ = ragged_lists(seed, (9,))
        labels = np.maximum(labels - 2, 0) if seed % 2 else labels
        options = {"weighting": "lambdarank", "metric": metric, "k": k}
        got = losses.lambda_loss(scores, tr.Tiers.from_labels(labels), **options)
        expected = lambda_by_definition(scores, labels, *options.values(), 1.0, 1.0)
        assert got == pytest.approx(expected, rel=1e-12, abs=1e-14)


@pytest.mark.parametrize("weighting", WEIGHTINGS)
def test_items_of_equal_score_and_tier_share_their_slopes(weighting):
    """Moved apart by a hair in every order, worse tiers first, the slopes are these on average."""
    scores, labels = np.array([0.0, 1.0, 1.0, 1.0, 1.0, 2.0]), np.array([2, 1, 1, 0, 1, 0])
    tiers = tr.Tiers.from_labels(labels)

    def slopes(w):
        w = torch.tensor(w, requires_grad=True)
        losses.lambda_loss(w, tiers, weighting=weighting).backward()
        return w.grad.numpy()

    orders = [
        slopes(scores + 1e-9 * np.array([0, *places[:2], 4, places[2], 0]))
        for places in itertools.permutations([1, 2, 3])
    ]
    np.testing.assert_allclose(slopes(scores), np.mean(orders, axis=0), atol=1e-7)


def test_the_hessian_for_boosting_is_that_of_the_pairs():
    scores, _, tiers = ragged_lists(3)
    for options in ({}, {"weighting": "lambdarank", "k": 3}, {"likelihood": 0.5}):
        objective = losses.from_name("lambdaloss", reduction="none", **options)
        found = BoostingObjective(objective, tiers, None, 0)(scores)
        w = torch.tensor(scores, requires_grad=True)
        loss = losses.lambda_loss(w, tiers, reduction="sum", **options)
        (slope,) = torch.autograd.grad(loss, w, create_graph=True)
        second = [torch.autograd.grad(s, w, retain_graph=True)[0][i] for i, s in enumerate(slope)]
        np.testing.assert_allclose(found.gradient, slope.detach(), rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(found.hessian, torch.stack(second), rtol=1e-4, atol=1e-6)


# Expected NDCG ---------------------------------------------------------------------------------


def expected_by_enumeration(scores, labels, k):
    """1 − E[NDCG@k], order by order."""
    worth, gains = np.exp(scores - scores.max()), 2.0**labels - 1
    discount = [1 / log2(2 + r) if r < k else 0.0 for r in range(len(scores))]
    best, total = np.sort(gains)[::-1] @ discount, 0.0
    for order in itertools.permutations(range(len(scores))):
        placed = worth[list(order)]
        chance = np.prod(placed / placed[::-1].cumsum()[::-1])
        total += chance * (gains[list(order)] @ discount)
    return 1 - total / best


@pytest.mark.parametrize("spread", [0.0, 1.0, 8.0, 40.0])
@pytest.mark.parametrize("k", [1, 2, 3, 10])
def test_expected_ndcg_is_the_mean_over_all_orders(k, spread):
    rng = np.random.default_rng(k)
    for n in range(2, 7):
        scores, labels = spread * rng.normal(size=n), rng.integers(0, 4, n)
        labels[0] = labels[1] + 1
        got = losses.expected_ndcg(scores, tr.Tiers.from_labels(labels), k=k)
        assert got == pytest.approx(expected_by_enumeration(scores, labels, k), abs=1e-13)


def test_expected_ndcg_of_seven_items():
    scores, labels = (
        np.array([0.3, -2.0, 1.1, 0.0, 4.0, -0.5, 0.3]),
        np.array([3, 2, 0, 1, 0, 4, 0]),
    )
    for k in (3, 7):
        got = losses.expected_ndcg(scores, tr.Tiers.from_labels(labels), k=k)
        assert got == pytest.approx(expected_by_enumeration(scores, labels, k), abs=1e-13)


def drawn_ndcg(scores, labels, k, draws, seed):
    """Mean of 1 − NDCG@k over drawn rankings, and its standard error."""
    rng, gains = np.random.default_rng(seed), 2.0**labels - 1
    discount = 1 / np.log2(np.arange(2, k + 2))
    best, values = np.sort(gains)[::-1][:k] @ discount, []
    for _ in range(draws // 10_000):
        keys = scores + rng.gumbel(size=(10_000, len(scores)))
        top = np.argpartition(-keys, k - 1, axis=1)[:, :k]
        top = np.take_along_axis(top, np.argsort(-np.take_along_axis(keys, top, 1), axis=1), 1)
        values.append(1 - gains[top] @ discount / best)
    values = np.concatenate(values)
    return values.mean(), values.std() / len(values) ** 0.5


@pytest.mark.parametrize("draws", [20_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
def test_expected_ndcg_of_a_hundred_items_is_the_mean_of_draws(draws):
    rng = np.random.default_rng(4)
    scores, labels = 2 * rng.normal(size=100), rng.integers(0, 5, 100)
    for k in (5, 10):
        mean, error = drawn_ndcg(scores, labels, k, draws, k)
        got = losses.expected_ndcg(scores, tr.Tiers.from_labels(labels), k=k)
        assert abs(got - mean) < 4 * error


@pytest.mark.parametrize("k", [1, 4, 10, 50, None])
def test_the_nodes_of_long_lists_suffice(k):
    """With steps of half the length, all that is computed stays."""
    rng = np.random.default_rng(5)
    for spread in (0.0, 1.0, 10.0):
        scores = np.sort(spread * rng.normal(size=120))
        gains, most = rng.random(120), k or 120
        found = []
        for fineness in (1.0, 0.5):
            value, gradient = np.empty(1), np.empty(120)
            module._native.expected_dcg(
                most, fineness, np.array([0, 120]), scores, gains, 1, value, gradient
            )
            found.append(np.append(value, gradient))
        np.testing.assert_allclose(found[0], found[1], rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("k", [1, 3, None])
def test_expected_ndcg_can_be_differentiated_twice(k):
    _, _, tiers = ragged_lists(6, (5, 3))
    scores = torch.randn(8, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda w: losses.expected_ndcg(w, tiers, k=k), scores)
    assert torch.autograd.gradgradcheck(lambda w: losses.expected_ndcg(w, tiers, k=k), scores)


def test_draws_of_pl_rank_have_the_gradient_of_expected_ndcg_on_average():
    scores, _, tiers = ragged_lists(7)

    def slopes(loss, **options):
        w = torch.tensor(scores, requires_grad=True)
        loss(w, tiers, k=4, reduction="sum", **options).backward()
        return w.grad.numpy()

    drawn = [slopes(losses.pl_rank, samples=50, generator=seed) for seed in range(100)]
    error = np.std(drawn, axis=0) / 10
    assert (
        np.abs(np.mean(drawn, axis=0) - slopes(losses.expected_ndcg)) <= 4 * error + 1e-12
    ).all()


# All of them -----------------------------------------------------------------------------------


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize(
    ("name", "options"),
    [
        *(("lambdaloss", {"weighting": weighting}) for weighting in WEIGHTINGS),
        *(("lambdaloss", {"weighting": "lambdarank", "metric": m}) for m in ("map", "mrr")),
        ("lambdaloss", {"weighting": "lambdarank", "metric": "precision", "k": 2}),
        ("lambdaloss", {"k": 3, "gain": "linear"}),
        ("approx-ndcg", {"temperature": 0.3}),
        ("expected-ndcg", {"k": 3}),
        ("expected-ndcg", {"k": None, "gain": "linear"}),
    ],
)
def test_the_kernel_and_the_formula_in_torch_agree(name, options, tied, monkeypatch):
    scores, _, tiers = ragged_lists(8, tied=tied)
    found = []
    for native in (True, False):
        monkeypatch.setattr(module, "native_computes", lambda _, native=native: native)
        monkeypatch.setattr(module, "CELLS", 200)  # several blocks
        w = torch.tensor(scores, requires_grad=True)
        value = losses.find(name).function(w, tiers, reduction="none", **options)
        found.append((value.detach(), torch.autograd.grad(value.sum(), w)[0]))
    torch.testing.assert_close(found[0], found[1], rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("name", NDCG_LIKE)
@pytest.mark.parametrize("apart", [1e6, 1e302])
def test_scores_far_apart_have_the_loss_of_ndcg_itself(name, apart):
    scores, labels, tiers = ragged_lists(9)
    for k in (None,) if name == "approx-ndcg" else (None, 3):
        options = {} if name == "approx-ndcg" else {"k": k}
        got = NDCG_LIKE[name](apart * scores, tiers, reduction="none", **options)
        lengths = tiers.lengths.numpy()
        ndcg = metrics.ndcg(scores, labels, lengths=lengths, k=k, empty=1.0, reduction="none")
        np.testing.assert_allclose(got, 1 - ndcg, atol=1e-9)


@pytest.mark.parametrize("name", ["lambdaloss", "pl-rank", *NDCG_LIKE])
def test_where_every_order_is_as_good_there_is_no_loss(name):
    tiers = tr.Tiers.from_labels([2, 2, 2, 0, 0, 0, 0], lengths=[3, 4])
    w = torch.randn(7, requires_grad=True)
    value = losses.find(name).function(w, tiers, reduction="none")
    value.sum().backward()
    assert value.tolist() == [0, 0]
    assert w.grad.tolist() == [0] * 7


@pytest.mark.parametrize("name", ["lambdaloss", *NDCG_LIKE])
def test_labels_are_gains_and_not_only_an_order(name):
    loss, scores = losses.find(name).function, np.array([0.3, 0.1, 0.5])
    near, far = (loss(scores, tr.Tiers.from_labels(labels)) for labels in ([2, 1, 0], [9, 1, 0]))
    assert near != pytest.approx(far, rel=0.01)
    # without labels, a grade is the number of tiers below
    ranking = tr.Tiers.from_rankings([[0, 1, 2]])
    assert loss(scores, ranking) == pytest.approx(near, rel=1e-14)
    # and no label is too large
    huge = loss(scores, tr.Tiers.from_labels([3000, 2999, 0]))
    assert huge == pytest.approx(loss(scores, tr.Tiers.from_labels([60, 59, 0])), rel=1e-12)


@pytest.mark.parametrize("name", ["lambdaloss", *NDCG_LIKE])
def test_the_likelihood_can_be_added(name):
    scores, _, tiers = ragged_lists(10)
    loss = losses.find(name).function
    alone = loss(scores, tiers, reduction="none")
    both = loss(scores, tiers, likelihood=0.25, reduction="none")
    likelihood = losses.pl_partition(scores, tiers, reduction="none")
    np.testing.assert_allclose(both, alone + 0.25 * likelihood, rtol=1e-14)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("lambdaloss", {"weighting": "ndcg"}, "weighting is one of .*lambdarank"),
        ("lambdaloss", {"metric": "err"}, "metric is one of"),
        ("lambdaloss", {"metric": "map"}, 'made for NDCG; for map use weighting="lambdarank"'),
        ("lambdaloss", {"sigma": 0.0}, "sigma is a positive number"),
        ("approx-ndcg", {"temperature": -1.0}, "temperature is a positive number"),
        ("expected-ndcg", {"k": 0}, "k is a whole number from 1 on"),
        ("expected-ndcg", {"k": 2.5}, "k is a whole number"),
        ("expected-ndcg", {"gain": "cubic"}, 'gain is one of "exp2", "linear"'),
        ("expected-ndcg", {"likelihood": -1.0}, "likelihood is a number from 0 on"),
        ("neural-ndcg", {"scalings": -1}, "scalings is a whole number from 0 on"),
        ("pl-rank", {"samples": 0}, "samples is a whole number from 1 on"),
    ],
)
def test_options_that_make_no_sense_are_refused(name, options, message):
    with pytest.raises(ValueError, match=message):
        losses.find(name).function([1.0, 0.0], tr.Tiers.from_labels([1, 0]), **options)


@pytest.mark.parametrize("name", ["lambdaloss", "pl-rank", *NDCG_LIKE])
def test_negative_grades_have_no_gain(name):
    with pytest.raises(ValueError, match=r"list 1 has a tier of grade -2, .*raise the labels"):
        losses.find(name).function(np.zeros(4), tr.Tiers.from_labels([1, 0, 1, -2], lengths=[2, 2]))


@pytest.mark.parametrize("name", ["lambdaloss", "expected-ndcg", "approx-ndcg"])
@pytest.mark.parametrize("ranker", [tr.LinearRanker, tr.NeuralRanker, tr.BoostedRanker])
def test_rankers_learn_by_them(ranker, name):
    if ranker is tr.BoostedRanker:
        pytest.importorskip("lightgbm")
    X, y, qid = simulated_rows(3, lists=20, longest=6)
    fitted = ranker(name, objective_params={"likelihood": 0.1}, random_state=0)
    fitted.fit(X, y.astype(int), qid=qid)
    assert fitted.score(X, y, qid=qid) > 0.8


# Other libraries -------------------------------------------------------------------------------


def test_rax_agrees():
    rax, jax = pytest.importorskip("rax"), pytest.importorskip("jax")
    scores, labels, _ = ragged_lists(11, (8,))
    tiers, n = tr.Tiers.from_labels(labels), len(scores)
    ranks = partial(rax.utils.approx_ranks, step_fn=lambda x: jax.nn.sigmoid(x / 0.7))
    approx = losses.approx_ndcg(scores, tiers, temperature=0.7)
    assert 1 - approx == pytest.approx(float(rax.ndcg_metric(scores, labels, rank_fn=ranks)), 1e-5)
    weights = {"lambdarank": rax.dcg_lambdaweight, "ndcg-loss2": rax.dcg2_lambdaweight}
    for weighting, weight in weights.items():  # rax: times n, in natural logarithms
        options = {"lambdaweight_fn": partial(weight, normalize=True), "reduce_fn": jax.numpy.sum}
        theirs = rax.pairwise_logistic_loss(scores, labels, **options)
        ours = losses.lambda_loss(scores, tiers, weighting=weighting)
        assert n * log(2) * ours == pytest.approx(float(theirs), 1e-5)


def test_tf_rankings_published_values_of_approx_ndcg():
    """Its temperature is 0.1, and its loss minus NDCG; lists without gain are 0 in both."""
    scores = np.array([[1.4, -2.8, -0.4], [0.0, 1.8, 10.2], [1.0, 1.2, -3.2]])
    tiers = tr.Tiers.from_labels([[0, 2, 1], [1, 0, 3], [0, 0, 0]])
    found = losses.approx_ndcg(scores, tiers, temperature=0.1, reduction="none")
    first = (3 / log(4) + 1 / log(3)) / (3 / log(2) + 1 / log(3))
    second = (7 / log(2) + 1 / log(4)) / (7 / log(2) + 1 / log(3))
    np.testing.assert_allclose(found, [1 - first, 1 - second, 0], atol=5e-6)


def test_all_ranks_published_values():
    """Of its LambdaLoss and ApproxNDCG, and of NeuralNDCG, which at a low temperature is NDCG."""
    tiers = tr.Tiers.from_labels([0.5, 0.3, 0.5])
    ranknet = losses.lambda_loss([0.5, 0.3, 0.5], tiers, weighting="ranknet")
    assert log(2) * ranknet == pytest.approx(1.1962778568, rel=1e-6)
    approx = losses.approx_ndcg([0.5, 0.3, 0.5], tiers)
    assert 1 - approx == pytest.approx(0.8499219417, rel=1e-6)
    scores = np.array([0.5, 0.2, 0.1, 0.4, 1.0, -1.0, 0.63])
    labels = np.array([1, 2, 2, 4, 1, 4, 3])
    for k in (None, 3):
        options = {"temperature": 0.001, "k": k}
        found = losses.neural_ndcg(scores, tr.Tiers.from_labels(labels), **options)
        assert 1 - found == pytest.approx(metrics.ndcg(scores, labels, k=k), rel=1e-6)
