"""The network below the last layer: a dense perceptron's numbers, from sparse rows."""

import numpy as np
import pytest
import torch
from scipy.sparse import csr_matrix

from tierrank.extreme.network import Network, SparseRows, skip_width, widths


def sparse_rows(rows=9, features=20, seed=0):
    """Rows of X, of which the third and the last have no features."""
    rng = np.random.default_rng(seed)
    dense = rng.normal(size=(rows, features)) * (rng.random((rows, features)) < 0.3)
    dense[2] = dense[-1] = 0
    return csr_matrix(dense.astype(np.float32))


def network(*hidden, features=20, labels=7, seed=0, **options):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        made = Network(features, labels, hidden, **options)
        made.reset()
    return made.eval()


def perceptron(net, X):
    """The same from dense rows."""
    hidden = torch.relu(X @ net.features.to(X) + net.feature_bias.to(X))
    for layer in net.layers:
        hidden = torch.relu(hidden @ layer.weight.T.to(X) + layer.bias.to(X))
    return hidden


@pytest.mark.parametrize("hidden", [(8,), (8, 5), (8, 5, 3)])
def test_it_is_a_perceptron_on_the_dense_rows(hidden):
    X, net = sparse_rows(), network(*hidden)
    found = net(SparseRows.of(X))
    dense = torch.from_numpy(X.toarray()).double()
    assert found.shape == (9, hidden[-1])
    torch.testing.assert_close(found.double(), perceptron(net, dense), rtol=1e-5, atol=1e-6)


def test_gradients_are_those_of_the_dense_perceptron():
    X, net = sparse_rows(), network(8, 5)
    by_hidden = torch.randn(9, 5, generator=torch.Generator().manual_seed(1))
    (net(SparseRows.of(X)) * by_hidden).sum().backward()
    ours = {
        name: each.grad.clone() for name, each in net.named_parameters() if each.grad is not None
    }
    net.zero_grad()
    (perceptron(net, torch.from_numpy(X.toarray())) * by_hidden).sum().backward()
    assert set(ours) == {"features", "feature_bias", "layers.0.weight", "layers.0.bias"}
    for name, gradient in ours.items():
        torch.testing.assert_close(gradient, net.get_parameter(name).grad, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("skip", [20, 4])
@pytest.mark.parametrize("hidden", [(8,), (8, 5)])
def test_a_linear_path_leads_past_the_hidden_layers(skip, hidden):
    """Its numbers are the row itself, or combinations of it that no ReLU has seen."""
    X, net = sparse_rows(), network(*hidden, skip=skip)
    dense = torch.from_numpy(X.toarray()).double()
    features = net.features.double()
    below = torch.relu(dense @ features[:, :8] + net.feature_bias)
    for layer in net.layers:
        below = torch.relu(below @ layer.weight.T.double() + layer.bias)
    beside = dense if skip == 20 else dense @ features[:, 8:]
    wanted = torch.cat([below, beside], 1)
    found = net(SparseRows.of(X))
    assert found.shape == (9, hidden[-1] + skip)
    torch.testing.assert_close(found.double(), wanted, rtol=1e-5, atol=1e-6)
    assert not net.labels[:, hidden[-1] :].any()  # it begins at 0
    assert net.labels[:, : hidden[-1]].all()


def test_the_linear_path_is_whole_where_that_is_small():
    assert skip_width(500, 983) == 500
    assert skip_width(1024, 32768) == 1024
    assert skip_width(1024, 32769) == skip_width(1025, 10) == 128
    assert skip_width(1, 1 << 26) == 0  # one feature, and weights for each label are too many


def test_rows_know_the_features_that_they_use():
    X = sparse_rows()
    rows = SparseRows.of(X)
    assert (rows.features.diff() > 0).all()
    np.testing.assert_array_equal(rows.features, np.unique(X.indices))
    np.testing.assert_array_equal(rows.features[rows.columns], X.indices)
    np.testing.assert_array_equal(rows.values, X.data)
    np.testing.assert_array_equal(rows.starts, X.indptr[:-1])
    assert all(part.dtype == torch.int64 for part in (rows.features, rows.columns, rows.starts))


def test_rows_of_features_may_be_given():
    net, rows = network(8), SparseRows.of(sparse_rows())
    there = net.features.detach()[rows.features]
    assert torch.equal(net(rows, there), net(rows))
    doubled = net(rows, 2 * there)
    net.features.data *= 2
    assert torch.equal(doubled, net(rows))


def test_indices_of_64_bits_and_features_that_stand_twice_are_understood():
    net, X = network(8), sparse_rows()
    wide = X.copy()
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    assert torch.equal(net(SparseRows.of(wide)), net(SparseRows.of(X)))
    twice = csr_matrix((np.float32([1, 2, 4]), [3, 3, 1], [0, 3]), shape=(1, 20))
    once = csr_matrix((np.float32([4, 3]), [1, 3], [0, 2]), shape=(1, 20))
    torch.testing.assert_close(net(SparseRows.of(twice)), net(SparseRows.of(once)))


def test_rows_without_any_feature_give_the_bias():
    net = network(8)
    found = net(SparseRows.of(csr_matrix((3, 20), dtype=np.float32)))
    assert torch.equal(found, net.feature_bias.relu().expand(3, 8))
    found.sum().backward()
    assert not net.features.grad.any()
    assert net(SparseRows.of(csr_matrix((0, 20), dtype=np.float32))).shape == (0, 8)


def test_first_weights_are_those_of_linear_layers():
    """Uniform in ±1/√inputs: the variance is a third of the square of that."""
    net = network(300, 200, features=400, labels=500)
    linear = torch.nn.Linear(400, 300)
    for weights, inputs in (
        (net.features, 400),
        (net.labels, 200),
        (net.layers[0].weight, 300),
        (linear.weight, 400),
    ):
        bound = inputs**-0.5
        assert weights.abs().max() <= bound
        assert weights.abs().max() > 0.99 * bound
        assert weights.var().item() == pytest.approx(bound**2 / 3, rel=0.03)
    for bias, inputs in ((net.feature_bias, 400), (net.label_bias, 200)):
        assert bias.abs().max() <= inputs**-0.5
        assert bias.std() > 0.4 * inputs**-0.5
    assert torch.equal(net.labels, network(300, 200, features=400, labels=500).labels)
    assert not torch.equal(net.labels, network(300, 200, features=400, labels=500, seed=1).labels)


def test_dropout_leaves_out_entries_of_x_and_hidden_numbers_in_training_alone():
    X = csr_matrix(np.ones((2000, 1), dtype=np.float32))
    net = network(1, features=1, input_dropout=0.25)
    net.features.data[:], net.feature_bias.data[:] = 1, 0
    rows = SparseRows.of(X)
    assert torch.equal(net(rows), torch.ones(2000, 1))
    net.train()
    torch.manual_seed(0)
    found = net(rows)
    torch.testing.assert_close(found.unique(), torch.tensor([0, 1 / 0.75]))
    share = (found == 0).float().mean().item()  # row by row, though it is one feature
    assert abs(share - 0.25) < 4 * (0.25 * 0.75 / 2000) ** 0.5

    net = network(50, 40, features=1, hidden_dropout=0.5).train()
    hidden = net(rows)
    assert ((hidden == 0).float().mean(0) > 0.4).all()  # of the last layer, too
    net.eval()
    assert torch.equal(net(rows)[:1].expand(2000, 40), net(rows))


@pytest.mark.parametrize("probability", [0.001, 0.3, 0.9, 0.999999])
def test_dropout_keeps_the_mean_and_takes_each_number_by_itself(probability):
    net = network(4, hidden_dropout=probability).train()
    torch.manual_seed(1)
    found = net._dropout(torch.ones(401, 499), probability)  # not a multiple of four
    out = (found == 0).double()
    n, share = out.numel(), min(probability, 1 - 2**-16)
    error = (share * (1 - share) / n) ** 0.5
    assert abs(out.mean().item() - share) < 4 * error + 2**-17
    if out.mean() < 1:
        torch.testing.assert_close(found.max().item(), 1 / (1 - share), rtol=0.02, atol=0)
    for lag in (1, 2, 3, 4, 499):  # neighbours that share a draw know nothing of each other
        together = (out.flatten()[lag:] * out.flatten()[:-lag]).mean().item()
        assert abs(together - share**2) < 6 * error + 2**-16


def test_widths_are_whole_numbers_and_at_least_one():
    assert widths(256) == (256,)
    assert widths([32, 16]) == (32, 16)
    assert widths(np.int64(8)) == (8,)
    for wrong in (0, -3, 2.5, "8", [8, 0], None, True):
        with pytest.raises(ValueError, match="hidden is a whole number"):
            widths(wrong)
    with pytest.raises(ValueError, match="not of none"):
        widths([])
