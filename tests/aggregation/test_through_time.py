"""Worths through time, against dense matrices, numerical integration and simulation."""

import datetime
import itertools
import random
import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import integrate

import tierrank as tr
from tierrank.aggregation.results import NotConverged
from tierrank.data import Games, Rankings
from tierrank.tiers import Tiers

WORDS = {1: "first", 0: "tie", -1: "second"}


def games_of(seed=1, items=5, games=80, periods=12, ties=True):
    random = np.random.default_rng(seed)
    first = random.integers(0, items, games)
    second = (first + random.integers(1, items, games)) % items
    outcome = random.choice([1, 0, -1] if ties else [1, -1], games)
    times = np.sort(random.integers(0, periods, games)) * 2
    names = [f"p{number}" for number in range(items)]
    rows = [(names[a], names[b], WORDS[o]) for a, b, o in zip(first, second, outcome, strict=True)]
    return rows, times


# -- an independent fit: every item in every step, dense, by autograd -----------------------------


def log_probabilities(model, d, t, outcome):
    """Of games, as the textbooks have it."""
    if model == "davidson":
        odds = torch.stack([d / 2, t.expand(d.shape), -d / 2])
        return (odds - torch.logsumexp(odds, 0)).gather(0, 1 - outcome[None])[0]
    if model == "rao-kupper":
        theta = 1 + torch.exp(t)
        win, loss = 1 / (1 + theta * torch.exp(-d)), 1 / (1 + theta * torch.exp(d))
        chances = torch.stack([win, 1 - win - loss, loss])
        return torch.log(chances.gather(0, 1 - outcome[None])[0])
    return torch.nn.functional.logsigmoid(outcome * d)


def dense_fit(model, rows, times, variance, scale, home):
    """Mode, covariance and marginal likelihood (Laplace) with an unknown for every item and step.

    Before an item is seen it walks too: what is not seen integrates out.
    """
    items = sorted({name for row in rows for name in row[:2]})
    steps = int(max(times)) + 1
    n, k = len(items), (model != "bradley-terry") + home
    both = list(zip(rows, times, strict=True))
    first = {name: min(when for row, when in both if name in row) for name in items}
    a, b = (torch.tensor([items.index(row[side]) for row in rows]) for side in (0, 1))
    outcome = torch.tensor([{"first": 1, "tie": 0, "second": -1}[row[2]] for row in rows])
    when, begun = torch.tensor(times), torch.tensor([first[name] for name in items])
    nothing = torch.zeros(1, dtype=torch.float64)

    def minus_log_density(point):
        w, extras = point[: n * steps].reshape(n, steps), point[n * steps :]
        t = extras[:1] if model != "bradley-terry" else nothing
        d = w[a, when] - w[b, when] + (extras[-1] if home else 0)
        start, change = w[torch.arange(n), begun], w[:, 1:] - w[:, :-1]
        log_density = -(start**2).sum() / (2 * scale**2) - (change**2).sum() / (2 * variance)
        log_density = log_density - n / 2 * np.log(2 * np.pi * scale**2)
        log_density = log_density - n * (steps - 1) / 2 * np.log(2 * np.pi * variance)
        return -log_density - log_probabilities(model, d, t, outcome).sum()

    point = torch.zeros(n * steps + k, dtype=torch.float64)
    for _ in range(12):
        gradient = torch.autograd.functional.jacobian(minus_log_density, point)
        hessian = torch.autograd.functional.hessian(minus_log_density, point)
        point = point - torch.linalg.solve(hessian, gradient)
    log_marginal = (
        -minus_log_density(point) + len(point) / 2 * np.log(2 * np.pi) - torch.logdet(hessian) / 2
    )
    return items, first, point.numpy(), torch.linalg.inv(hessian).numpy(), float(log_marginal)


@pytest.mark.parametrize(
    ("model", "home"), [("davidson", True), ("rao-kupper", True), ("bradley-terry", False)]
)
def test_mode_bands_and_marginal_likelihood_equal_those_of_a_dense_fit(model, home):
    rows, times = games_of(items=4, games=40, periods=5, ties=model != "bradley-terry")
    fitted = tr.WorthsThroughTime(model, step=1, variance=0.2, prior="gaussian:2", home=home).fit(
        rows, times=times
    )
    items, first, point, covariance, log_marginal = dense_fit(model, rows, times, 0.2, 2.0, home)
    n, steps = len(items), int(max(times)) + 1
    assert fitted.log_likelihood_ == pytest.approx(log_marginal, abs=1e-9)
    w = point[: n * steps].reshape(n, steps)
    got = fitted.through_time(0.95, items)
    when = {name: [t for row, t in zip(rows, times, strict=True) if name in row] for name in items}
    for column, period in enumerate(fitted.periods_):
        # from the average of all, each where it was seen last (or is seen first)
        reference = np.zeros((n, steps))
        for number, name in enumerate(items):
            seen = [t for t in when[name] if t <= period] or [first[name]]
            reference[number, max(seen)] = 1 / n
        for number, name in enumerate(items):
            own = np.zeros((n, steps))
            own[number, period] = 1
            along = np.concatenate([(own - reference).reshape(-1), np.zeros(len(point) - w.size)])
            if period < first[name]:
                assert np.isnan(got.estimate[number, column])
                continue
            assert got.estimate[number, column] == pytest.approx(along @ point, abs=1e-9)
            margin = 1.959963984540054 * np.sqrt(along @ covariance @ along)
            assert got.high[number, column] - got.estimate[number, column] == pytest.approx(
                margin, abs=1e-9
            )
    assert [each.estimate for each in fitted.parameters()] == pytest.approx(
        point[w.size :].tolist(), abs=1e-9
    )
    errors = np.sqrt(np.diag(covariance))[w.size :]
    assert [each.standard_error for each in fitted.parameters()] == pytest.approx(
        errors.tolist(), abs=1e-9
    )


def test_lists_with_ties_equal_a_dense_fit_of_their_exact_likelihood():
    random = np.random.default_rng(3)
    lists, times = [], []
    for when in np.repeat([0, 1, 4], 6):
        chosen = random.permutation(5)[: random.integers(3, 6)].tolist()
        lists.append([chosen[0], tuple(chosen[1:3]), *chosen[3:]])
        times.append(when)
    fitted = tr.WorthsThroughTime("plackett-luce", step=1, variance=0.3, prior="gaussian:1.5").fit(
        lists, times=times
    )
    n, steps = 5, 5
    tiers = Tiers.from_rankings(lists, items=range(5))
    first = [
        min(t for row, t in zip(lists, times, strict=True) if _named(row, i)) for i in range(n)
    ]

    def minus_log_density(point):
        w = point.reshape(n, steps)
        total = tr.log_prob(w.T[torch.tensor(times)], tiers).sum()
        for number in range(n):
            total = total - w[number, first[number]] ** 2 / (2 * 1.5**2)
            total = total - ((w[number, 1:] - w[number, :-1]) ** 2).sum() / (2 * 0.3)
        return -total

    point = torch.zeros(n * steps, dtype=torch.float64)
    for _ in range(20):
        leaf = point.clone().requires_grad_()
        (gradient,) = torch.autograd.grad(minus_log_density(leaf), leaf, create_graph=True)
        hessian = torch.stack(
            [torch.autograd.grad(each, leaf, retain_graph=True)[0] for each in gradient]
        )
        point = point - torch.linalg.solve(hessian, gradient.detach())
    w, covariance = point.numpy().reshape(n, steps), torch.linalg.inv(hessian).numpy()
    order = np.array(fitted.items_)
    assert fitted.log_worths_ == pytest.approx(w[order, -1] - w[:, -1].mean(), abs=1e-8)
    last = np.arange(n) * steps + steps - 1
    difference = np.zeros(n * steps)
    difference[last[order[0]]], difference[last[order[1]]] = 1, -1
    mine = fitted.covariance()
    assert mine[0, 0] + mine[1, 1] - 2 * mine[0, 1] == pytest.approx(
        difference @ covariance @ difference, abs=1e-8
    )


def _named(row, item):
    return any(item in place if isinstance(place, tuple) else item == place for place in row)


def test_marginal_likelihood_is_near_the_integral_of_two_items_in_two_periods():
    rows = [("a", "b", "first")] * 6 + [("a", "b", "second")] * 3
    rows += [("a", "b", "first")] * 2 + [("a", "b", "second")] * 7
    times = [0] * 9 + [1] * 9
    fitted = tr.WorthsThroughTime("bradley-terry", step=1, variance=0.4, prior="gaussian:1").fit(
        rows, times=times
    )

    # only differences count: d_0 ~ N(0, 2 s²), d_1 − d_0 ~ N(0, 2 σ²)
    def density(change, d):
        log = -(d**2) / 4 - np.log(4 * np.pi) / 2
        log -= change**2 / 1.6 + np.log(1.6 * np.pi) / 2
        for won, lost, lead in ((6, 3, d), (2, 7, d + change)):
            log -= won * np.log1p(np.exp(-lead)) + lost * np.log1p(np.exp(lead))
        return np.exp(log)

    integral, _ = integrate.dblquad(density, -9, 9, -9, 9, epsabs=1e-12)
    # Laplace's approximation: 0.02 nats off with 18 games
    assert fitted.log_likelihood_ == pytest.approx(np.log(integral), abs=0.04)


def test_the_estimated_variance_maximises_the_marginal_likelihood():
    rows, times = walking(seed=5, items=8, periods=12, games=40, sigma=0.5)
    fitted = tr.WorthsThroughTime(step=1).fit(rows, times=times)
    at = [
        tr.WorthsThroughTime(step=1, variance=fitted.variance_ * factor)
        .fit(rows, times=times)
        .log_likelihood_
        for factor in (0.8, 1.25)
    ]
    assert max(at) < fitted.log_likelihood_
    (sigma, *_) = fitted.parameters()
    assert sigma.estimate == fitted.variance_**0.5
    assert sigma.low < 0.5 < sigma.high


def walking(seed, items, periods, games, sigma, tie=0.5):
    """Games of Davidson's model, whose worths walk; all of them from the first period on."""
    return _walk(seed, items, periods, games, sigma, tie)[1:]


def _walk(seed, items, periods, games, sigma, tie):
    random = np.random.default_rng(seed)
    change = np.vstack([random.normal(0, 1, items), random.normal(0, sigma, (periods - 1, items))])
    w = change.cumsum(axis=0)
    first = random.integers(0, items, (periods, games))
    second = (first + random.integers(1, items, (periods, games))) % items
    when = np.repeat(np.arange(periods), games)
    d = w[when, first.ravel()] - w[when, second.ravel()]
    odds = np.stack([np.exp(d / 2), np.full_like(d, tie), np.exp(-d / 2)])
    drawn = random.random(len(d)) * odds.sum(axis=0)
    outcome = 1 - (drawn > odds[0]).astype(int) - (drawn > odds[0] + odds[1])
    rows = list(zip(first.ravel().tolist(), second.ravel().tolist(), outcome.tolist(), strict=True))
    return w, rows, when


@pytest.mark.slow
def test_variance_is_recovered_and_bands_cover_in_simulation():
    found, covered = [], []
    for seed in range(40):
        w, rows, times = _walk(seed, 15, 30, 60, 0.3, 0.5)
        fitted = tr.WorthsThroughTime(step=1).fit(rows, times=times)
        found.append(fitted.variance_**0.5)
        assert fitted.parameters()[0].standard_error < 0.2
        true = w.T[np.array(fitted.items_)]
        curves = fitted.through_time()
        true = true - true.mean(axis=0)
        covered.append(((curves.low <= true) & (true <= curves.high)).mean())
    assert np.mean(found) == pytest.approx(0.3, abs=0.03)
    assert 0.93 <= np.mean(covered) <= 0.97


def test_next_to_no_variance_is_the_fit_that_knows_no_time():
    rows, times = games_of()
    still = tr.PairedTies(prior="gaussian:3").fit(rows)
    fitted = tr.WorthsThroughTime(step=1, variance=1e-9).fit(rows, times=times)
    order = [fitted.items_.index(name) for name in still.items_]
    assert fitted.log_worths_[order] == pytest.approx(still.log_worths_, abs=1e-6)
    assert fitted.standard_errors_[order] == pytest.approx(still.standard_errors_, abs=1e-6)
    assert fitted.parameters()[0].estimate == pytest.approx(still.beta_, abs=1e-6)


def test_lists_of_two_are_games_without_ties():
    rows, times = walking(seed=4, items=5, periods=10, games=30, sigma=0.7, tie=0.0)
    lists = [[a, b] if outcome == 1 else [b, a] for a, b, outcome in rows]
    one = tr.WorthsThroughTime("plackett-luce", step=1).fit(lists, times=times)
    two = tr.WorthsThroughTime("bradley-terry", step=1).fit(rows, times=times)
    order = [two.items_.index(name) for name in one.items_]
    assert one.variance_ == pytest.approx(two.variance_, rel=1e-6)
    assert one.log_likelihood_ == pytest.approx(two.log_likelihood_, abs=1e-8)
    assert one.through_time().low == pytest.approx(
        two.through_time().low[order], abs=1e-7, nan_ok=True
    )
    assert one.predict_proba(0, 1) == pytest.approx(two.predict_proba(0, 1)[0])


def test_bands_widen_between_and_after_games_and_end_where_the_table_does():
    rows = [("a", "b", "first"), ("b", "a", "first"), ("a", "b", "tie")] * 3
    far = [("a", "b", "first"), ("b", "a", "first"), ("a", "b", "tie")] * 3
    between = [("c", "d", "first"), ("d", "c", "first"), ("c", "d", "tie")]
    times = [0] * 9 + [20] * 9 + [10] * 3 + [30] * 3
    fitted = tr.WorthsThroughTime(step=1, variance=0.2).fit(
        rows + far + between + between, times=times
    )
    assert fitted.periods_ == (0, 10, 20, 30)
    curves = fitted.through_time(items=["a", "c"])
    width = curves.high - curves.low
    assert width[0, 1] > 1.1 * max(width[0, 0], width[0, 2])
    assert width[0, 3] > width[0, 2]
    assert np.isnan(curves.estimate[1]).tolist() == [True, False, False, False]
    last = fitted.intervals()
    for got, expected in zip(fitted.through_time(), last, strict=True):
        assert got[:, -1] == pytest.approx(expected, abs=1e-12)


def test_order_of_rows_and_counts_do_not_matter():
    rows, times = games_of()
    fitted = tr.WorthsThroughTime(step=1, variance=0.1).fit(rows, times=times)
    turned = tr.WorthsThroughTime(step=1, variance=0.1).fit(rows[::-1], times=times[::-1])
    order = [turned.items_.index(name) for name in fitted.items_]
    assert turned.log_worths_[order] == pytest.approx(fitted.log_worths_, abs=1e-12)
    once = sorted(set(zip(rows, times.tolist(), strict=True)))
    counts = [sum(pair == each for pair in zip(rows, times, strict=True)) for each in once]
    counted = tr.WorthsThroughTime(step=1, variance=0.1).fit(
        [*(row for row, _ in once), ("p0", "p1", "tie")],
        [*counts, 0],
        times=[*(when for _, when in once), 999],
    )
    order = [counted.items_.index(name) for name in fitted.items_]
    assert counted.log_worths_[order] == pytest.approx(fitted.log_worths_, abs=1e-12)
    assert counted.log_likelihood_ == pytest.approx(fitted.log_likelihood_, abs=1e-9)


# -- times ----------------------------------------------------------------------------------------


def test_dates_of_all_kinds_are_the_same_periods():
    rows, times = games_of(games=30)
    days = [datetime.date(2020, 1, 15) + datetime.timedelta(int(7 * t)) for t in times]
    texts = [day.isoformat() for day in days]
    frame = pd.DataFrame(rows, columns=["first", "second", "winner"])
    frame["winner"] = frame["winner"].where(frame["winner"] == "tie", frame.apply(_winner, axis=1))
    frame["day"] = pd.to_datetime(texts)
    model = tr.WorthsThroughTime(time="day", step="2w", variance=0.1)
    expected = model.fit(rows, times=texts)
    assert expected.periods_[0] == texts[0]
    worths, periods = expected.log_worths_, expected.periods_
    zoned = [f"{text}T12:00:00+00:00" for text in texts]
    midday = [f"{text} 12:00" for text in texts]
    for given in (days, np.array(texts, dtype="datetime64[D]"), zoned, midday):
        fitted = tr.WorthsThroughTime(step="2w", variance=0.1).fit(rows, times=given)
        assert fitted.periods_ == periods
        assert fitted.log_worths_ == pytest.approx(worths, abs=1e-12)
    fitted = model.fit(frame, first="first", second="second", winner="winner")
    assert fitted.periods_ == periods
    order = [fitted.items_.index(name) for name in expected.items_]
    assert fitted.log_worths_[order] == pytest.approx(worths, abs=1e-12)


def _winner(row):
    return row[row["winner"]] if row["winner"] != "tie" else "tie"


def test_months_are_those_of_the_calendar():
    rows = [("a", "b", "first"), ("b", "a", "tie"), ("a", "b", "second")]
    times = ["2019-12-31", "2020-02-01", "2020-02-29"]
    fitted = tr.WorthsThroughTime(step="1m", variance=0.1).fit(rows, times=times)
    assert fitted.periods_ == ("2019-12", "2020-02")
    assert tr.WorthsThroughTime(step="1y", variance=0.1).fit(rows, times=times).periods_ == (
        "2019-01",
        "2020-01",
    )
    hours = ["2020-01-01T03:10", "2020-01-01T05:00", "2020-01-01T05:20"]
    fitted = tr.WorthsThroughTime(step="1h", variance=0.1).fit(rows, times=hours)
    assert fitted.periods_ == ("2020-01-01T03:10", "2020-01-01T04:10", "2020-01-01T05:10")


def test_columns_beside_games_and_rankings_say_when():
    rows, times = games_of(games=30)
    games = Games.from_rows(rows)
    beside = {"date": times.astype(float)}
    games = Games(
        games.names, games.first, games.second, games.outcome, games.weights, beside=beside
    )
    expected = tr.WorthsThroughTime(step=1, variance=0.1).fit(rows, times=times)
    fitted = tr.WorthsThroughTime(step=1, variance=0.1).fit(games)
    assert fitted.log_worths_ == pytest.approx(expected.log_worths_, abs=1e-12)
    assert fitted.log_prob(games) == pytest.approx(fitted.log_prob(rows, times=times), abs=1e-12)
    lists = games.to_rankings()
    assert isinstance(lists, Rankings)
    tr.WorthsThroughTime("plackett-luce", step=1, variance=0.1).fit(lists)


# -- predictions ----------------------------------------------------------------------------------


def test_probabilities_are_those_of_the_time_that_is_asked_for():
    rows, times = walking(seed=2, items=4, periods=8, games=30, sigma=0.6)
    fitted = tr.WorthsThroughTime(step=1, variance=0.3).fit(rows, times=times)
    curves = fitted.through_time()
    v = np.exp(fitted.parameters()[0].estimate)
    for column, when in ((2, 2), (7, 7), (7, 50)):
        d = curves.estimate[0, column] - curves.estimate[1, column]
        odds = np.array([np.exp(d / 2), v, np.exp(-d / 2)])
        got = fitted.predict_proba(fitted.items_[0], fitted.items_[1], at=when)
        assert got == pytest.approx(odds / odds.sum(), abs=1e-9)
        row = (fitted.items_[0], fitted.items_[1], "tie")
        assert fitted.log_prob([row], times=when) == pytest.approx(np.log(got[1]), abs=1e-9)
    assert fitted.predict_proba(0, 1) == fitted.predict_proba(0, 1, at=7)
    now, later = (fitted.predict_proba(0, 1, at=at, level=0.9)[0] for at in (7, 20))
    assert later.low < now.low < now.estimate < now.high < later.high
    with pytest.raises(ValueError, match="last period"):
        fitted.predict_proba(0, 1, at=3, level=0.9)
    with pytest.raises(ValueError, match="before 0"):
        fitted.predict_proba(0, 1, at=-3)
    assert fitted.pairwise_proba().shape == (4, 4)


def test_probabilities_can_be_averaged_over_what_is_not_known():
    rows, times = walking(seed=2, items=4, periods=8, games=30, sigma=0.6)
    fitted = tr.WorthsThroughTime(step=1, variance=0.3).fit(rows, times=times)
    a, b = fitted.items_[:2]
    matrix, v = fitted.covariance([a, b]), np.exp(fitted.parameters()[0].estimate)
    mean = fitted.log_worths_[0] - fitted.log_worths_[1]
    for later in (0, 5):
        spread = matrix[0, 0] + matrix[1, 1] - 2 * matrix[0, 1] + 2 * 0.3 * later
        draws = mean + np.sqrt(spread) * np.random.default_rng(0).normal(size=400_000)
        win = np.exp(draws / 2) / (np.exp(draws / 2) + v + np.exp(-draws / 2))
        (got,) = fitted.log_prob([(a, b, "first")], times=7 + later, averaged=True)
        assert np.exp(got) == pytest.approx(win.mean(), abs=2e-3)
        each = [
            fitted.log_prob([(a, b, outcome)], times=7 + later, averaged=True)[0]
            for outcome in ("first", "tie", "second")
        ]
        assert np.exp(each).sum() == pytest.approx(1, abs=1e-12)
    with pytest.raises(ValueError, match="last period"):
        fitted.log_prob(rows, times=times, averaged=True)


def test_lists_have_the_probability_of_their_time():
    lists = [["a", "b", "c"], ["c", "b", "a"], ["b", ("a", "c")]]
    fitted = tr.WorthsThroughTime("plackett-luce", step=1, variance=0.5).fit(lists, times=[0, 2, 4])
    curves = fitted.through_time().estimate
    for column, when in enumerate((0, 2, 4)):
        (expected,) = tr.log_prob(
            curves[:, column], Tiers.from_rankings([["c", "a", "b"]], items=fitted.items_)
        )
        (got,) = fitted.log_prob([["c", "a", "b"]], times=when)
        assert got == pytest.approx(float(expected), abs=1e-12)
    halfway = (curves[:, 0] + curves[:, 1]) / 2
    (expected,) = tr.log_prob(halfway, Tiers.from_rankings([["c", "a"]], items=fitted.items_))
    assert fitted.log_prob([["c", "a"]], times=[1]) == pytest.approx(float(expected), abs=1e-12)


# -- the rest of what results can do ---------------------------------------------------------------


def test_somebody_who_always_wins_has_a_finite_worth():
    rows = [("ann", "bob", "first"), ("ann", "cy", "first"), ("bob", "cy", "tie")] * 5
    fitted = tr.WorthsThroughTime(step=1, variance=0.1).fit(rows, times=np.arange(15))
    assert fitted.ranking()[0] == "ann"
    assert np.isfinite(fitted.standard_errors_).all()
    assert fitted.converged_


def test_data_that_show_no_change_are_said_to():
    rows = [("a", "b", "first"), ("b", "a", "first"), ("a", "b", "tie")] * 20
    with pytest.warns(NotConverged, match="show none"):
        fitted = tr.WorthsThroughTime(step=1).fit(rows, times=np.repeat(np.arange(20), 3))
    assert fitted.variance_ < 1e-5
    assert np.isnan(fitted.parameters()[0].standard_error)


def test_a_saved_model_is_the_same(tmp_path):
    rows, times = games_of()
    days = np.datetime64("2001-05-05") + 40 * times
    fitted = tr.WorthsThroughTime("rao-kupper", step="1m", home=True).fit(rows, times=days)
    loaded = tr.load(tr.save(fitted, tmp_path / "model"))
    assert loaded.periods_ == fitted.periods_
    for one, two in zip(loaded.through_time(), fitted.through_time(), strict=True):
        assert np.array_equal(one, two, equal_nan=True)
    assert loaded.parameters() == fitted.parameters()
    assert str(loaded.summary()) == str(fitted.summary())
    when = days[30]
    assert loaded.predict_proba("p0", "p1", at=when) == fitted.predict_proba("p0", "p1", at=when)
    assert loaded.log_prob(rows, times=days) == pytest.approx(fitted.log_prob(rows, times=days))
    with pytest.raises(ValueError, match="data="):
        loaded.compared()
    lists, _ = loaded.compared(rows and Games.from_rows(rows))
    assert lists.total == len(rows)


def test_saved_states_that_do_not_hold_together_are_refused():
    rows, times = games_of()
    fitted = tr.WorthsThroughTime(step=1, variance=0.1).fit(rows, times=times)
    info, arrays = fitted.to_state()
    for said, damaged in (
        ("periods", (info, {**arrays, "positions": arrays["positions"][::-1].copy()})),
        ("curves", (info, {**arrays, "curves": arrays["curves"][:, 1:].copy()})),
        ("variances", (info, {**arrays, "variances": -arrays["variances"]})),
        ("step", ({**info, "calendar": [2.0, "", 0.0]}, arrays)),
        ("finite", ({**info, "variance": [-1.0, None]}, arrays)),
    ):
        with pytest.raises(ValueError, match=said):
            tr.WorthsThroughTime.from_state(*damaged)


def test_tables_frames_and_pictures():
    rows, times = games_of()
    fitted = tr.WorthsThroughTime(step=1, variance=0.1).fit(rows, times=times)
    assert "variance of a step 0.1" in str(fitted.summary())
    assert list(fitted.to_frame()["item"]) == fitted.ranking()
    long = fitted.curves_frame(items=["p1", "p0"])
    assert list(long.columns) == ["item", "period", "log_worth", "low", "high"]
    assert long["item"].drop_duplicates().tolist() == ["p1", "p0"]
    assert long["log_worth"].notna().all()
    ax = fitted.plot_through_time(top=3)
    assert len(ax.texts) == 3
    assert {text.get_text() for text in ax.texts} == set(fitted.ranking()[:3])
    with pytest.raises(ValueError, match="order in time"):
        fitted.bootstrap(10)
    with pytest.raises(ValueError, match="posterior"):
        fitted.covariance(kind="sandwich")


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"model": "elo"}, "davidson"),
        ({"step": "30 fortnights"}, "30d"),
        ({"step": 0}, "above 0"),
        ({"step": True}, "above 0"),
        ({"variance": 0}, "variance"),
        ({"variance": float("nan")}, "variance"),
        ({"prior": None}, "gaussian:3"),
        ({"prior": "pseudo-item"}, "gaussian:3"),
        ({"ties": "half"}, "bradley-terry"),
        ({"model": "plackett-luce", "home": True}, "games"),
        ({"time": 3}, "column"),
        ({"max_iter": 0}, "max_iter"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings, said):
    with pytest.raises(ValueError, match=said):
        tr.WorthsThroughTime(**settings).fit([("a", "b", "tie")], times=[1])


ROWS = [("a", "b", "first"), ("b", "a", "tie")]


@pytest.mark.parametrize(
    ("rows", "step", "times", "said"),
    [
        (ROWS, "30d", [1, 2], "step as a number"),
        (ROWS, 1, ["2020-01-01", "2020-01-02"], "30d"),
        (ROWS, 1, np.array(["2020-01-01", "2020-01-02"], "datetime64[D]"), "30d"),
        (ROWS, "30d", ["2020-01-01", "yesterday"], "time 1 is .*yesterday.*ISO"),
        (ROWS, "30d", ["2020-01-01", None], "time 1"),
        (ROWS, 1, [1.0, float("nan")], "time 1 is"),
        (ROWS, 1, [1.0], "give 2 of them"),
        (ROWS, 1, [[1.0, 2.0]], "give 2 of them"),
        (ROWS, 1e-9, [0, 5000], "longer one"),
        (ROWS, "30d", None, "beside"),
        ([(("a", "b"), "c", "tie"), ("c", ("a", "b"), "first")], 1, [1, 2], "several players"),
        ([("a", "b", "first")], 1, [1], "no game is a tie"),
        ([], 1, [], "no games"),
    ],
)
def test_bad_input_has_one_clear_error(rows, step, times, said):
    with pytest.raises(ValueError, match=said):
        tr.WorthsThroughTime(step=step, variance=0.1).fit(rows, times=times)


def test_lists_that_say_nothing_are_refused_and_other_items_left_out():
    model = tr.WorthsThroughTime("plackett-luce", step=1, variance=0.1)
    with pytest.raises(ValueError, match="no list says anything"):
        model.fit([[("a", "b")]], times=[1])
    lists = Rankings.from_rankings([["a", "b"], [("b", "z")]])
    assert model.fit(lists, times=[1, 2]).items_ == ("a", "b")
    approvals = [["a"], [("a", "b")], ["c"]]
    fitted = model.fit(
        Tiers.from_rankings(approvals, items=["a", "b", "c"], rest="last"), times=[1, 2, 2]
    )
    assert set(fitted.items_) == set("abc")


def test_memory_is_refused_before_it_is_taken(monkeypatch):
    from tierrank.aggregation import through_time

    monkeypatch.setattr(through_time, "MOST_NUMBERS", 10)
    rows, times = games_of()
    with pytest.raises(ValueError, match="longer step"):
        tr.WorthsThroughTime(step=1, variance=0.1).fit(rows, times=times)


def test_ties_under_bradley_terry_are_halved_dropped_or_refused():
    rows, times = games_of()
    with pytest.raises(ValueError, match="ties"):
        tr.WorthsThroughTime("bradley-terry", step=1, variance=0.1).fit(rows, times=times)
    dropped = tr.WorthsThroughTime("bradley-terry", step=1, variance=0.1, ties="drop")
    kept = [outcome != "tie" for *_, outcome in rows]
    alone = tr.WorthsThroughTime("bradley-terry", step=1, variance=0.1).fit(
        list(itertools.compress(rows, kept)), times=times[kept]
    )
    got = dropped.fit(rows, times=times)
    order = [got.items_.index(name) for name in alone.items_]
    assert got.log_worths_[order] == pytest.approx(alone.log_worths_, abs=1e-10)
    tr.WorthsThroughTime("bradley-terry", step=1, variance=0.1, ties="half").fit(rows, times=times)


def test_nothing_warns_in_an_ordinary_fit():
    rows, times = walking(seed=1, items=6, periods=10, games=30, sigma=0.5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tr.WorthsThroughTime(step=1).fit(rows, times=times)


def test_a_flat_likelihood_of_the_variance_has_no_interval():
    draw = random.Random(0)
    games, times = [], []
    for number in range(200):
        pair, end = draw.sample("abcd", 2), draw.choice(["first", "second", "tie"])
        zone = draw.choice(["+00:00", "+02:00", "-07:00"])
        games.append((*pair, end))
        times.append(f"2024-{1 + number % 12:02d}-{1 + number % 28:02d}T10:00:00{zone}")
        if number:
            draw.choice("xy")
        if number != 7:
            draw.random()
    with pytest.warns(NotConverged, match="show none"):
        fitted = tr.WorthsThroughTime(step="30d").fit(games, times=times)
    assert fitted.variance_ > 1e-5  # where a maximum is, and says next to nothing
    assert np.isnan(fitted.parameters()[0].high)
