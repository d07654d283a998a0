"""The same maximum likelihood estimates as choix, wherever there are no ties."""

import csv
import tarfile

import choix
import numpy as np
import pytest

import tierrank as tr
from real_data import real
from tierrank.aggregation.connectivity import connectivity
from votes import drawn_rankings


def centred(values):
    return values - np.mean(values)


@pytest.mark.parametrize(
    ("items", "lists", "length"), [(5, 100, 5), (10, 100, 4), (60, 500, 8), (30, 400, 2)]
)
def test_random_rankings_have_choix_estimates(items, lists, length):
    _, rankings = drawn_rankings(items, items, lists, length)
    fitted = tr.RankAggregator().fit(rankings, items=items)
    by_ilsr = choix.ilsr_rankings(items, rankings, tol=1e-10, max_iter=1000)
    np.testing.assert_allclose(fitted.log_worths_, centred(by_ilsr), atol=1e-6)
    if items <= 10:  # a loop over all places of all lists, for every value
        by_newton = choix.opt_rankings(items, rankings, alpha=0, method="Newton-CG", tol=1e-10)
        np.testing.assert_allclose(fitted.log_worths_, centred(by_newton), atol=1e-6)


def test_a_faint_prior_is_that_of_choix():
    _, rankings = drawn_rankings(5, 5, 60, 4)
    fitted = tr.RankAggregator(prior=f"gaussian:{0.02**-0.5}").fit(rankings, items=5)
    expected = choix.opt_rankings(5, rankings, alpha=0.01, method="Newton-CG", tol=1e-10)
    np.testing.assert_allclose(fitted.log_worths_, centred(expected), atol=1e-6)


def nascar():
    """36 races of 43 drivers, and how many drivers there are."""
    with real("plackettluce-r", "nascar.csv").open() as file:
        rows = [[int(float(cell)) for cell in row[1:]] for row in list(csv.reader(file))[1:]]
    return rows


@pytest.mark.data
@pytest.mark.slow  # choix loops over all places of all races, for every value
def test_nascar_has_choix_estimates():
    races = nascar()
    # some drivers were last in their only race: they have no finite worth
    with pytest.raises(ValueError, match="never above"):
        tr.RankAggregator().fit(races)
    hopeless = never_ahead(races)
    kept = [[driver for driver in race if driver not in hopeless] for race in races]
    drivers = sorted({driver for race in kept for driver in race})
    numbers = {driver: number for number, driver in enumerate(drivers)}
    fitted = tr.RankAggregator().fit(kept, items=drivers)
    coded = [[numbers[driver] for driver in race] for race in kept]
    estimate = choix.ilsr_rankings(len(drivers), coded, tol=1e-10, max_iter=10_000)
    np.testing.assert_allclose(fitted.log_worths_, centred(estimate), atol=1e-6)
    # its default has a faint prior, 1e-6 Σ w²: without it, and with it
    start = estimate + 0.01 * np.random.default_rng(0).normal(size=len(drivers))
    options = {"method": "Newton-CG", "tol": 1e-10, "initial_params": start}
    other = choix.opt_rankings(len(drivers), coded, alpha=0, **options)
    np.testing.assert_allclose(fitted.log_worths_, centred(other), atol=1e-6)
    other = choix.opt_rankings(len(drivers), coded, alpha=0.01, **options)
    faint = tr.RankAggregator(prior=f"gaussian:{0.02**-0.5}").fit(kept, items=drivers)
    np.testing.assert_allclose(faint.log_worths_, centred(other), atol=1e-6)


def never_ahead(races):
    """Drivers whom nobody ever finished behind, found again after each is left out."""
    gone: set[int] = set()
    while True:
        left = [[driver for driver in race if driver not in gone] for race in races]
        ahead = {driver for race in left for driver in race[:-1]}
        found = {driver for race in left for driver in race} - ahead
        if not found:
            return gone
        gone |= found


@pytest.mark.data
@pytest.mark.parametrize(
    ("series", "member"),
    [
        ("00009-agh", "00009-00000001.soc"),
        ("00052-f1seasons", "00052-00000050.soi"),
        ("00012-shirt", "00012-00000001.soc"),
        ("00004-netflix", "00004-00000101.soc"),
    ],
)
def test_strict_preflib_orders_have_choix_estimates(series, member, tmp_path):
    with tarfile.open(real("preflib", f"{series}.tar.xz")) as tar:
        found = next(name for name in tar.getnames() if name.endswith(member))
        path = tmp_path / member
        path.write_bytes(tar.extractfile(found).read())
    rankings = tr.data.read_rankings(path)
    prior = None
    lists = rankings.tiers
    codes = Coded(lists, rankings.weights)
    if not connectivity(lists).connected:
        prior = "pseudo-item"  # the same games against one more item, for choix
    fitted = tr.RankAggregator(prior=prior).fit(rankings)
    estimate = codes.choix_estimate(prior)
    np.testing.assert_allclose(fitted.log_worths_, centred(estimate), atol=1e-6)


class Coded:
    """Rankings of item numbers as often as they were given, as choix takes them."""

    def __init__(self, tiers, weights):
        self.items = tiers.n_items
        starts = tiers.tier_offsets[tiers.list_offsets].numpy()
        items = tiers.items.numpy()
        self.rankings = [
            items[start:end].tolist()
            for start, end, weight in zip(starts[:-1], starts[1:], weights, strict=True)
            for _ in range(int(weight))
        ]

    def choix_estimate(self, prior):
        if prior is None:
            return choix.ilsr_rankings(self.items, self.rankings, tol=1e-10, max_iter=1000)
        # half a win and half a loss each are one each, if all else is counted twice
        ghost = self.items
        games = [pair for item in range(ghost) for pair in ([item, ghost], [ghost, item])]
        both = [*self.rankings, *self.rankings, *games]
        return choix.ilsr_rankings(ghost + 1, both, tol=1e-10, max_iter=10_000)[:ghost]


def test_games_without_ties_have_evalica_s_estimates():
    import evalica

    random = np.random.default_rng(0)
    truth = random.normal(size=8)
    sides = np.array([random.choice(8, 2, replace=False) for _ in range(800)])
    won = random.random(800) < 1 / (1 + np.exp(truth[sides[:, 1]] - truth[sides[:, 0]]))
    rankings = np.where(won[:, None], sides, sides[:, ::-1])
    fitted = tr.RankAggregator().fit(rankings, items=8)
    result = evalica.bradley_terry(
        sides[:, 0].tolist(), sides[:, 1].tolist(),
        [evalica.Winner.X if first else evalica.Winner.Y for first in won],
        tolerance=1e-12, limit=100_000,
    )  # fmt: skip
    estimate = np.log([result.scores[item] for item in range(8)])
    np.testing.assert_allclose(fitted.log_worths_, centred(estimate), atol=1e-6)
