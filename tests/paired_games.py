"""Games drawn from the models of ties, and the comparison of two fits to them."""

import numpy as np
import pytest

from tierrank.data.rankings.games import Games


def outcomes(rng, model, lead, t):
    """Outcomes of games, from the formulas."""
    if model == "davidson":
        three = np.column_stack(
            [np.exp(lead / 2), np.full_like(lead, np.exp(t)), np.exp(-lead / 2)]
        )
        three /= three.sum(axis=1, keepdims=True)
    else:
        theta = 1.0 if model == "bradley-terry" else 1 + np.exp(t)
        win, loss = 1 / (1 + theta * np.exp(-lead)), 1 / (1 + theta * np.exp(lead))
        three = np.column_stack([win, 1 - win - loss, loss])
    return 1 - (rng.random(len(lead))[:, None] > three.cumsum(axis=1)[:, :2]).sum(axis=1)


def league(rng, model, w, *, rounds=20, t=-0.3, home=0.0, names=None):
    """Everybody meets everybody, so often at home and as often away."""
    items = len(w)
    first, second = (np.tile(side, rounds) for side in np.nonzero(~np.eye(items, dtype=bool)))
    outcome = outcomes(rng, model, w[first] - w[second] + home, t)
    names = tuple(range(items)) if names is None else names
    return Games(names, first, second, outcome.astype(np.int8), np.ones(len(first)))


def close(found, expected, tolerance=1e-8):
    np.testing.assert_allclose(found.log_worths_, expected.log_worths_, rtol=0, atol=tolerance)
    np.testing.assert_allclose(found.covariance_, expected.covariance_, rtol=0, atol=tolerance)
    assert found._extras == pytest.approx(expected._extras, abs=tolerance)
    assert found.log_likelihood_ == pytest.approx(expected.log_likelihood_, rel=1e-10)


def team_rows(rng, model, games=1500, t=-0.3, w=(0.8, 0.3, 0.0, -0.2, -0.9)):
    """Teams of one to three of five players, with outcomes of the model."""
    worth = np.exp(np.array(w))
    sides, leads = [], []
    for _ in range(games):
        order = rng.permutation(len(w)).tolist()
        one, two = rng.integers(1, 3, size=2)
        a, b = tuple(order[:one]), tuple(order[one : one + two])
        sides.append((a, b))
        leads.append(np.log(worth[list(a)].sum() / worth[list(b)].sum()))
    found = outcomes(rng, model, np.array(leads), t)
    return [(a, b, int(o)) for (a, b), o in zip(sides, found, strict=True)]
