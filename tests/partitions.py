"""Lists with ties for the tests of the likelihood, and the definition they are checked against.

A list is written in one of two ways: as `labels` (an array, higher is better), or as tiers of
scores (a sequence of arrays, best first), which is what the oracles take.
"""

import itertools
from contextlib import contextmanager

import numpy as np
import pytest
import torch

from tierrank import Tiers
from tierrank.plackett_luce.kernels import using

each_kernel = pytest.mark.parametrize("kernel", ["compiled", "plain"])
each_dtype = pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=["f64", "f32"])


@contextmanager
def computing(kernel):
    """`using(kernel)`, the compiled one with several threads, so that they are tested.

    Plain torch has one: for tiny tensors a second one only waits.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1 if kernel == "plain" else max(2, threads))
    try:
        with using(kernel):
            yield
    finally:
        torch.set_num_threads(threads)


def compositions(n):
    """Every way to write n as an ordered sum: the sizes of the tiers."""
    for cuts in itertools.product([False, True], repeat=n - 1):
        ends = [i + 1 for i, cut in enumerate(cuts) if cut] + [n]
        yield tuple(np.diff([0, *ends]).tolist())


def every_partition(scores, shapes=None):
    """All ordered partitions of the items into tiers of these sizes (default: any sizes).

    Gives [partitions, items] labels, and log-probabilities by the definition: each is the sum,
    over all full rankings that keep its tiers in order, of ∏ e^w / Σ_remaining e^w.
    """
    n = len(scores)
    rankings = np.array(list(itertools.permutations(range(n))))
    placed = np.asarray(scores, dtype=np.float64)[rankings]
    remaining = np.logaddexp.accumulate(placed[:, ::-1], axis=1)[:, ::-1]
    log_prob = (placed - remaining).sum(axis=1)
    labels, sums = [], []
    for shape in shapes or compositions(n):
        label_of_place = np.repeat(np.arange(len(shape))[::-1], shape)
        by_item = np.empty_like(rankings)
        np.put_along_axis(by_item, rankings, label_of_place[None, :], axis=1)
        code = by_item @ (n ** np.arange(n))
        _, first, which = np.unique(code, return_index=True, return_inverse=True)
        total = np.full(len(first), -np.inf)
        np.logaddexp.at(total, which, log_prob)
        labels.append(by_item[first])
        sums.append(total)
    return np.concatenate(labels), np.concatenate(sums)


def tiers_of_scores(scores, labels):
    """The scores of one list, tier by tier, best first."""
    scores, labels = np.asarray(scores), np.asarray(labels)
    return [scores[labels == label] for label in np.unique(labels)[::-1]]


def rows_of_lists(lists):
    """Flat scores and `Tiers` of lists that are given as tiers of scores."""
    scores = np.concatenate([np.concatenate(tiers) for tiers in lists])
    labels = [np.repeat(np.arange(len(tiers))[::-1], [len(t) for t in tiers]) for tiers in lists]
    return scores, Tiers.from_labels(np.concatenate(labels), lengths=[len(part) for part in labels])


def ragged(seed, lists=20, longest=12, grades=4, spread=3.0):
    """Random lists of 1 to `longest` items: flat scores, labels and lengths.

    Few grades in short lists give everything that can occur: lists of one tier, single items,
    strict orders, large ties.
    """
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, longest + 1, size=lists)
    scores = spread * rng.normal(size=lengths.sum())
    return scores, rng.integers(0, grades, size=lengths.sum()), lengths


def value_and_gradient(function, scores):
    """A function of a tensor, and the gradient of its sum; both detached."""
    scores = torch.as_tensor(scores).detach().clone().requires_grad_()
    value = function(scores)
    (gradient,) = torch.autograd.grad(value.sum(), scores)
    return value.detach(), gradient
