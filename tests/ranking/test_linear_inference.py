"""Standard errors of LinearRanker: survival software, differences, and simulation."""

import numpy as np
import pytest
import scipy.sparse
import torch
from scipy.stats import norm

import tierrank as tr
from real_data import real
from simulated_rows import simulated_rows

each_approximation = pytest.mark.parametrize(
    ("objective", "ties"), [("pl-lb", "breslow"), ("pl-efron", "efron")]
)


def cox_regression(X, y, qid, ties, **options):
    """A query is a stratum, a tier a set of tied deaths, the last tier is censored."""
    regression = pytest.importorskip("statsmodels.duration.hazard_regression")
    stratum = np.unique(qid, return_inverse=True)[1]
    last = np.full(stratum.max() + 1, np.inf)
    np.minimum.at(last, stratum, y)
    status = (y > last[stratum]).astype(int)
    model = regression.PHReg(y.max() + 1 - y, X, status=status, strata=stratum, ties=ties)
    return model.fit(**options)


@each_approximation
@pytest.mark.parametrize("seed", range(6))
def test_coefficients_and_standard_errors_are_those_of_cox_regression(objective, ties, seed):
    rng = np.random.default_rng(seed)
    X, y, qid = simulated_rows(
        seed, lists=30, longest=15, tiers=4, coef=rng.normal(size=5), shuffled=True
    )
    X = X * np.logspace(-1, 2, 5)
    expected = cox_regression(X, y, qid, ties)
    ranker = tr.LinearRanker(objective, features=None, uncertainty="information")
    ranker.fit(X, y, qid=qid)
    np.testing.assert_allclose(ranker.coef_, expected.params, rtol=0, atol=1e-9)
    np.testing.assert_allclose(ranker.standard_errors_, expected.bse, rtol=1e-8)
    np.testing.assert_allclose(ranker.covariance_, expected.cov_params(), rtol=1e-7, atol=1e-12)
    table = ranker.summary()
    np.testing.assert_allclose(table.z, expected.tvalues, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(table.p_values, expected.pvalues, rtol=1e-6, atol=1e-12)
    ends = np.column_stack([table.lower, table.upper])
    np.testing.assert_allclose(ends, expected.conf_int(), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_the_sandwich_is_that_of_cox_regression_with_lists_as_groups(seed):
    X, y, qid = simulated_rows(seed, lists=30)
    expected = cox_regression(X, y, qid, "breslow", groups=qid)
    ranker = tr.LinearRanker("pl-lb", features=None, uncertainty="sandwich").fit(X, y, qid=qid)
    np.testing.assert_allclose(ranker.standard_errors_, expected.bse, rtol=1e-8)


def conditional_logit(X, y, qid):
    """Every choice of a tier out of what remains is a group: its cases against the others.

    R's ``clogit`` and ``coxph(ties="exact")`` maximise this likelihood, too.
    """
    models = pytest.importorskip("statsmodels.discrete.conditional_models")
    rows, cases, groups = [], [], []
    for number, (query, label) in enumerate(
        sorted(set(zip(qid.tolist(), y.tolist(), strict=True)))
    ):
        left = np.flatnonzero((qid == query) & (y <= label))
        if (y[left] < label).any():
            rows.append(left)
            cases.append(y[left] == label)
            groups.append(np.full(len(left), number))
    rows = np.concatenate(rows)
    return models.ConditionalLogit(
        np.concatenate(cases).astype(int), X[rows], groups=np.concatenate(groups)
    )


@pytest.mark.parametrize("seed", range(3))
def test_cox_discrete_has_the_coefficients_and_errors_of_conditional_logistic_regression(seed):
    rng = np.random.default_rng(seed)
    X, y, qid = simulated_rows(seed, lists=25, longest=12, tiers=4, coef=rng.normal(size=3))
    model = conditional_logit(X, y, qid)
    expected = model.fit(method="newton", maxiter=100, tol=1e-13, disp=False)
    ranker = tr.LinearRanker("cox-discrete", features=None, uncertainty="information")
    ranker.fit(X, y, qid=qid)
    np.testing.assert_allclose(ranker.coef_, expected.params, rtol=0, atol=1e-8)
    np.testing.assert_allclose(model.score(ranker.coef_), 0, atol=1e-7)
    tiers = tr.Tiers.from_labels(y, qid=qid)
    loss = tr.losses.cox_discrete(X @ ranker.coef_, tiers, reduction="sum")
    assert -loss == pytest.approx(model.loglike(ranker.coef_), rel=1e-12)
    # its second derivatives are differences of its gradient
    np.testing.assert_allclose(ranker.standard_errors_, expected.bse, rtol=1e-6)


def test_cox_discrete_has_the_published_figures_of_conditional_logistic_regression():
    """A small example with two and three cases a group, and Stata's clogit for it."""
    y = np.array([0, 1, 0, 1, 0, 1, 0, 1, 1, 1])
    qid = np.array([0, 0, 0, 1, 1, 1, 2, 2, 2, 2])
    X = np.array([[0, 1, 0, 0, 1, 1, 0, 0, 1, 0], [0, 0, 1, 0, 0, 1, 0, 1, 1, 1]], float).T
    ranker = tr.LinearRanker("cox-discrete", features=None, uncertainty="information")
    one = ranker.fit(X[:, :1], y, qid=qid)
    assert one.coef_[0] == pytest.approx(0.9272407, rel=1e-6)
    assert one.standard_errors_[0] == pytest.approx(1.295155, rel=1e-6)
    both = ranker.fit(X, y, qid=qid)
    np.testing.assert_allclose(both.coef_, [1.011074, 1.236758], rtol=1e-6)
    np.testing.assert_allclose(both.standard_errors_, [1.420784, 1.361738], rtol=1e-6)


@pytest.mark.data
@pytest.mark.slow
@each_approximation
def test_coefficients_of_mq2008_are_those_of_cox_regression(objective, ties):
    path = real("mq2008", "S1.txt.xz")
    data = tr.data.read_letor(path)
    stratum = np.unique(data.qid, return_inverse=True)[1]
    sums = np.zeros((stratum.max() + 1, 46))
    np.add.at(sums, stratum, data.X)
    within = data.X - (sums / np.bincount(stratum)[:, None])[stratum]
    columns = []  # those that vary within queries and are not nearly a sum of others
    for column in range(46):
        chosen = within[:, [*columns, column]]
        spread = chosen.std(axis=0)
        if spread.min() > 1e-9 and np.linalg.cond(chosen / spread) < 30:
            columns.append(column)
    assert len(columns) > 15
    X = np.ascontiguousarray(data.X[:, columns])
    expected = cox_regression(X, data.y, data.qid, ties)
    ranker = tr.LinearRanker(objective, features=None, uncertainty="information")
    ranker.fit(X, data.y, qid=data.qid)
    np.testing.assert_allclose(ranker.coef_, expected.params, rtol=0, atol=1e-6)
    np.testing.assert_allclose(ranker.standard_errors_, expected.bse, rtol=1e-6)


# every objective -----------------------------------------------------------------------------


def numerical(function, point, width=1e-4):
    """[…, parameters] central differences of the values of a function."""
    return np.stack(
        [
            (function(point + step) - function(point - step)) / (2 * width)
            for step in width * np.eye(len(point))
        ],
        axis=-1,
    )


@pytest.mark.parametrize("l2", [0.0, 0.02])
@pytest.mark.parametrize(
    "objective",
    [name for name, entry in tr.losses.OBJECTIVES.items() if not entry.without_errors],
)
def test_the_sandwich_is_what_differences_of_the_losses_give(objective, l2):
    X, y, qid = simulated_rows(2, lists=25, longest=7)
    y = y + 1  # attrank looks at grades above 0
    weights = np.random.default_rng(0).uniform(0.5, 2, 25)
    ranker = tr.LinearRanker(objective, features=None, l2=l2, tol=0.0, uncertainty="sandwich")
    ranker.fit(X, y, qid=qid, weights=weights)
    tiers = tr.Tiers.from_labels(y, qid=qid)
    function = tr.losses.OBJECTIVES[objective].function
    own = list(ranker.objective_state_)

    def losses(point):
        options = {name: torch.tensor(value) for name, value in zip(own, point[3:], strict=True)}
        scores = torch.from_numpy(X @ point[:3])
        return weights * function(scores, tiers, **options, reduction="none").numpy()

    point = np.append(ranker.coef_, list(ranker.objective_state_.values()))
    by_list = numerical(losses, point)
    hessian = numerical(lambda at: numerical(losses, at).sum(0), point, width=1e-3)
    hessian[:3, :3] += weights.sum() * l2 * np.eye(3)
    bread = np.linalg.inv(hessian)
    expected = (bread @ by_list.T @ by_list @ bread)[:3, :3]
    np.testing.assert_allclose(ranker.covariance_, expected, rtol=1e-4, atol=1e-8)


@pytest.mark.parametrize("objective", ["pl-partition", "pl-topk", "listmle"])
def test_the_information_is_the_curvature_of_the_likelihood(objective):
    X, y, qid = simulated_rows(5)
    options = {"objective_params": {"k": 3}} if objective == "pl-topk" else {}
    ranker = tr.LinearRanker(objective, features=None, uncertainty="information", **options)
    ranker.fit(X, y, qid=qid)
    tiers = tr.Tiers.from_labels(y, qid=qid)
    tiers = tiers.top(3) if objective == "pl-topk" else tiers
    curvature = tr.Curvature(X @ ranker.coef_, tiers)
    information = -X.T @ np.column_stack([curvature @ column for column in X.T.copy()])
    np.testing.assert_allclose(ranker.covariance_, np.linalg.inv(information), rtol=1e-9)
    sparse = tr.LinearRanker(objective, features=None, uncertainty="information", **options)
    sparse.fit(scipy.sparse.csr_array(X), y, qid=qid)
    np.testing.assert_allclose(sparse.covariance_, ranker.covariance_, rtol=1e-9)


def test_a_penalty_adds_to_the_information():
    X, y, qid = simulated_rows(6)
    ranker = tr.LinearRanker(features=None, uncertainty="information", l2=0.1).fit(X, y, qid=qid)
    curvature = tr.Curvature(X @ ranker.coef_, tr.Tiers.from_labels(y, qid=qid))
    information = -X.T @ np.column_stack([curvature @ column for column in X.T.copy()])
    information += 40 * 0.1 * np.eye(3)
    np.testing.assert_allclose(ranker.covariance_, np.linalg.inv(information), rtol=1e-9)


# simulation ----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_the_true_coefficients_are_found_to_within_their_standard_errors(seed):
    coef = np.array([1.0, -0.5, 0.25, 0.0])
    X, y, qid = simulated_rows(seed, lists=1500, longest=15, coef=coef, tiers=4)
    ranker = tr.LinearRanker(features=None, uncertainty="information").fit(X, y, qid=qid)
    assert ranker.standard_errors_.max() < 0.03
    assert (np.abs(ranker.coef_ - coef) < 4 * ranker.standard_errors_).all()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["information", "sandwich"])
def test_intervals_hold_the_truth_as_often_as_they_say(kind):
    coef = np.array([0.8, -0.4])
    held = []
    for seed in range(200):
        X, y, qid = simulated_rows(seed, lists=60, longest=8, coef=coef)
        table = tr.LinearRanker(features=None, uncertainty=kind).fit(X, y, qid=qid).summary()
        held += ((table.lower <= coef) & (coef <= table.upper)).tolist()
    # 400 of them, not quite independent: a deviation of 1.1 %; and small lists, so a little bias
    assert 0.91 < np.mean(held) < 0.985


# bad input and the table ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"objective": "ranksvm"}, "ranksvm, which is not smooth"),
        ({"objective": "rankcosine"}, "rankcosine, which is blind to the scale"),
        ({"objective": "pmop-gibbs"}, "pmop-gibbs, which is fitted by a random gradient"),
        ({"objective": "ranknet"}, 'ranknet is no likelihood .* uncertainty="sandwich"'),
        ({"objective": "p-listmle"}, "p-listmle is no likelihood"),
        ({"objective_params": {"alpha": "gain"}}, "pl-partition with alpha is no likelihood"),
    ],
)
def test_objectives_without_an_information_are_refused(options, message):
    X, y, qid = simulated_rows(0)
    with pytest.raises(ValueError, match=message):
        tr.LinearRanker(uncertainty="information", **options).fit(X, y, qid=qid)


def test_features_that_cannot_be_told_apart_are_named():
    X, y, qid = simulated_rows(0)
    ranker = tr.LinearRanker(features=None, uncertainty="information")
    with pytest.raises(ValueError, match=r"x1, x3 depend on each other linearly within the lists"):
        ranker.fit(np.column_stack([X, 2 * X[:, 1] + qid]), y, qid=qid)
    assert len(ranker.coef_) == 4
    with pytest.raises(ValueError, match=r"errors: x3 say nothing, .* constant in every list"):
        ranker.fit(np.column_stack([X, qid]), y, qid=qid)
    with pytest.raises(ValueError, match="a summary needs standard errors: fit with"):
        ranker.summary()


def test_a_sandwich_needs_more_lists_than_features():
    X, y, qid = simulated_rows(0, lists=3)
    with pytest.raises(ValueError, match="3 lists with several tiers are too few"):
        tr.LinearRanker(uncertainty="sandwich", l2=0.1).fit(X, y, qid=qid)
    X, y, qid = simulated_rows(0, lists=30)
    with pytest.raises(ValueError, match="2 lists with several tiers are too few"):
        tr.LinearRanker(uncertainty="sandwich", l2=0.1).fit(
            X, y, qid=qid, weights=np.arange(30) < 2
        )


def test_patience_and_uncertainty_do_not_go_together():
    X, y, qid = simulated_rows(0)
    ranker = tr.LinearRanker(uncertainty="information", patience=3)
    ranker.fit(X, y, qid=qid)  # without validation data there is nothing to be patient about
    with pytest.raises(ValueError, match="patience stops before it"):
        ranker.fit(X, y, qid=qid, eval_set=(X, y, qid))


def test_the_table_reads_as_statisticians_know_it():
    X, y, qid = simulated_rows(0)
    ranker = tr.LinearRanker(features=None, uncertainty="information").fit(X, y, qid=qid)
    table = ranker.summary(level=0.9)
    lines = str(table).splitlines()
    assert lines[0] == "LinearRanker, pl-partition, information"
    assert lines[1].split() == ["feature", "coef", "std", "err", "z", "P>|z|", "[0.05", "0.95]"]
    name, *numbers = lines[3].split()
    coef, error = ranker.coef_[1], ranker.standard_errors_[1]
    reach = norm.ppf(0.95) * error
    p_value = 2 * norm.sf(abs(coef / error))
    expected = [coef, error, coef / error, p_value, coef - reach, coef + reach]
    assert name == "x1"
    np.testing.assert_allclose([float(number) for number in numbers], expected, atol=6e-3)
    with pytest.raises(ValueError, match="level is between 0 and 1"):
        ranker.summary(level=95)


def test_a_new_fit_forgets_the_old_standard_errors():
    X, y, qid = simulated_rows(0)
    ranker = tr.LinearRanker(uncertainty="information").fit(X, y, qid=qid)
    assert hasattr(ranker, "standard_errors_")
    ranker.set_params(uncertainty=None).fit(X, y, qid=qid)
    assert not hasattr(ranker, "standard_errors_")
