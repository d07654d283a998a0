"""Samples that stand for the rest: right on average, and reproducible."""

from fractions import Fraction
from itertools import combinations
from math import comb

import numpy as np
import pytest
import torch
from scipy.sparse import csr_matrix
from torch.nn.functional import softplus

import tierrank as tr
from tierrank.extreme import FUSED
from tierrank.extreme.head import fused_losses
from tierrank.extreme.samplers import Frequency, InBatch, Sample, Uniform, sampler_from
from tierrank.names import SAMPLERS

NONE = torch.tensor([], dtype=torch.int64)


def label_rows():
    """Seven rows over six labels: one that all but one row have, one that no row has."""
    rows = [[0, 1], [0], [0, 2, 3], [0, 1], [0, 4], [1, 2], [0, 3]]
    Y = np.zeros((len(rows), 6))
    for number, row in enumerate(rows):
        Y[number, row] = 1
    return csr_matrix(Y)


# Draws with replacement ------------------------------------------------------------------------


COUNTS = torch.tensor([0, 1, 3, 10, 0, 40, 2, 2])


@pytest.mark.parametrize("draws", [1, 5, 50])  # fewer than labels, and more
@pytest.mark.parametrize(
    ("make", "share"),
    [
        (lambda draws: Uniform(8, draws), np.full(8, 1 / 8)),
        (lambda draws: Frequency(COUNTS, draws), (COUNTS.numpy() + 1) ** 0.75),
        (lambda draws: Frequency(COUNTS, draws, power=0.0), np.ones(8)),
        (lambda draws: Frequency(COUNTS, draws, power=1.0), COUNTS.numpy() + 1),
    ],
    ids=["uniform", "frequency", "frequency^0", "frequency^1"],
)
def test_every_label_counts_once_on_average(make, share, draws):
    """A count of draws is binomial, so the standard error of a mean weight is known."""
    share = share / share.sum()
    sampler, times = make(draws), 1500
    torch.manual_seed(1)
    total = np.zeros(8)
    for _ in range(times):
        sample = sampler.draw(NONE, 3)
        assert (sample.labels.diff() > 0).all()
        total[sample.labels.numpy()] += sample.log_weights.double().exp().numpy()
    error = np.sqrt((1 - share) / (share * draws * times))
    assert (np.abs(total / times - 1) < 4.5 * error).all()


@pytest.mark.parametrize("name", ["uniform", "frequency"])
def test_the_weighted_sum_is_that_over_all_labels_on_average(name):
    """In Σ e^w over the rest of a list, as the head takes it."""
    Y = label_rows()
    sampler = sampler_from(name, 4, Y, 3)
    worths = np.exp(np.array([0.3, -1.0, 2.0, 0.5, -0.2, 1.0]))
    torch.manual_seed(2)
    found = np.array(
        [
            float((sample.log_weights.double().exp().numpy() * worths[sample.labels.numpy()]).sum())
            for sample in (sampler.draw(NONE, 3) for _ in range(2000))
        ]
    )
    assert abs(found.mean() - worths.sum()) < 4 * found.std() / np.sqrt(len(found))


def test_frequency_draws_popular_labels_more_often_and_every_label_sometimes():
    sampler = Frequency(COUNTS, 1000)
    torch.manual_seed(0)
    seen = torch.zeros(8)
    for _ in range(50):
        sample = sampler.draw(NONE, 1)
        weights = sample.log_weights.exp()
        share = (COUNTS[sample.labels] + 1.0) ** 0.75 / ((COUNTS + 1.0) ** 0.75).sum()
        seen[sample.labels] += weights * share * 1000  # how often it was drawn
    assert seen.argmax() == 5
    assert (seen > 0).all()
    assert seen.sum() == pytest.approx(50 * 1000, rel=1e-4)


@pytest.mark.parametrize("name", SAMPLERS)
def test_the_same_seed_draws_the_same(name):
    sampler = sampler_from(name, 5, label_rows(), 3)
    samples = []
    for seed in (7, 7, 8):
        torch.manual_seed(seed)
        samples.append(sampler.draw(torch.tensor([3, 0, 2, 0]), 3))
    assert all(torch.equal(*each) for each in zip(samples[0], samples[1], strict=True))
    if name != "in-batch":
        again = [sampler.draw(NONE, 3).labels.tolist() for _ in range(20)]
        assert len({tuple(each) for each in again}) > 1


# The labels of the other rows ------------------------------------------------------------------


@pytest.mark.parametrize("batch", range(1, 8))
def test_in_batch_every_label_of_another_row_counts_once_on_average(batch):
    """Over all batches with a list, a label that the list does not name."""
    Y = label_rows()
    rows = Y.shape[0]
    sampler = sampler_from("in-batch", 1, Y, 3)  # batches of any size come to it
    has = Y.toarray() > 0
    for number in range(rows):
        expected = np.zeros(6)
        others = [each for each in range(rows) if each != number]
        for chosen in combinations(others, batch - 1):
            named = np.concatenate([Y[row].indices for row in (number, *chosen)])
            sample = sampler.draw(torch.from_numpy(named.astype(np.int64)), batch)
            np.testing.assert_array_equal(sample.labels, np.unique(named))
            expected[sample.labels.numpy()] += sample.log_weights.double().exp().numpy()
        expected /= comb(rows - 1, batch - 1)
        met = ~has[number] & has.any(0) & (batch > 1)
        np.testing.assert_allclose(expected[met], 1, rtol=1e-6)
        assert not expected[5]  # no row has it


def test_in_batch_weights_are_exact_for_many_rows():
    rows, batch = 200_000, 128
    counts = torch.tensor([1, 2, 1000, 150_000, 199_990, 200_000])
    found = InBatch(counts, rows, batch).log_weights.exp()
    for count, weight in zip(counts.tolist(), found.tolist(), strict=True):
        have = min(count, rows - 1)
        missed = Fraction(comb(rows - 1 - have, batch - 1), comb(rows - 1, batch - 1))
        assert weight == pytest.approx(float(1 / (1 - missed)), rel=1e-4)


def test_a_batch_with_all_rows_has_every_label_for_sure():
    counts = torch.tensor([1, 3, 4, 0])
    for batch in (4, 100):
        weights = InBatch(counts, 4, batch).log_weights
        assert weights[:3].tolist() == [0, 0, 0]


@pytest.mark.parametrize("objective", FUSED)
def test_a_batch_of_one_row_has_no_rest_and_only_items_by_themselves_a_loss(objective):
    Y = label_rows()
    sampler = sampler_from("in-batch", 1, Y, 1)
    tiers = tr.Tiers.from_positives(Y[2])
    sample = sampler.draw(tiers.items, 1)
    weights = torch.full((6,), -torch.inf)
    weights[sample.labels] = sample.log_weights
    assert not weights.isnan().any()
    hidden, weight = torch.ones(1, 2), torch.randn(6, 2)
    losses = fused_losses(hidden, weight, torch.zeros(6), tiers, objective, log_weights=weights)
    own = (hidden @ weight.T)[0, tiers.items]
    expected = softplus(-own).sum().item() if objective == "bce" else 0
    assert losses.by_list.tolist() == [pytest.approx(expected, rel=1e-6)]


def test_more_draws_come_nearer_to_the_whole_rest():
    rng = np.random.default_rng(0)
    has = rng.random((5, 200)) < 0.02
    has[:, 0] = True
    tiers = tr.Tiers.from_positives(csr_matrix(has.astype(np.float32)))
    hidden = torch.randn(5, 4, generator=torch.Generator().manual_seed(1))
    weight = torch.randn(200, 4, generator=torch.Generator().manual_seed(2))
    bias = torch.zeros(200)
    whole = fused_losses(hidden, weight, bias, tiers, "pl-partition").by_list
    torch.manual_seed(3)
    errors = []
    for draws in (20, 2_000, 200_000):
        sample = Uniform(200, draws).draw(tiers.items, 5)
        weights = torch.full((200,), -torch.inf)
        weights[sample.labels] = sample.log_weights
        found = fused_losses(hidden, weight, bias, tiers, "pl-partition", log_weights=weights)
        errors.append(float((found.by_list - whole).abs().max()))
    assert errors[0] > 3 * errors[1] > 9 * errors[2]


def test_a_sample_is_labels_and_weights():
    sample = Uniform(3, 10).draw(NONE, 1)
    assert isinstance(sample, Sample)
    assert sample.labels.dtype == torch.int64
    assert sample.log_weights.dtype == torch.float32


def test_other_samplers_are_refused():
    with pytest.raises(ValueError, match="sampler is one of uniform, frequency, in-batch, not"):
        sampler_from("best", 5, label_rows(), 3)
