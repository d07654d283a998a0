"""Clicks drawn from known models of a user, on what a production ranker shows."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from tierrank._types import AnyArray, FloatArray
from tierrank.data.clicks import ClickLog
from tierrank.tiers.build import group_rows

ClickModel = Literal["position-based", "cascade", "plackett-luce"]


def attraction(
    labels: Any, positions: Any, *, noise: float = 0.1, trust: float = 0.0, top: float | None = None
) -> FloatArray:
    """Probability of a click on what is looked at: ε_p + (1 − ε_p) (2^grade − 1) / (2^top − 1).

    ε_p = noise · p^−trust is that of an irrelevant item: with trust above 0, users believe what
    stands on top to be relevant.
    """
    grades = np.asarray(labels, dtype=np.float64)
    highest = float(grades.max()) if top is None else top
    relevance = (2**grades - 1) / (2**highest - 1)
    error = noise * np.asarray(positions, dtype=np.float64) ** -trust
    return np.asarray(error + (1 - error) * relevance)


def simulate_clicks(
    labels: Any,
    qid: Any,
    scores: Any,
    sessions: int,
    *,
    model: ClickModel = "position-based",
    depth: int = 10,
    temperature: float = 0.5,
    eta: float = 1.0,
    noise: float = 0.1,
    trust: float = 0.0,
    stop: float = 1.0,
    clicks: int = 1,
    seed: int = 0,
) -> ClickLog:
    """Draw sessions of queries alike, whose first places a production ranker fills.

    It ranks by score + temperature · Gumbel: at 0 always alike, so that no log can tell place from
    item. An item has the `attraction` a, and place p is looked at with propensity θ_p = p^−eta:

    "position-based"
        a click with probability θ_p a, each on its own
    "cascade"
        down from the top: a click with probability a; after one, the user leaves with probability
        `stop`, and else looks at the next
    "plackett-luce"
        so many `clicks`, the first of a ranking by log a + log θ_p + Gumbel: "clicked over not
        clicked" then has the likelihood of the rankers with `positions`, exactly

    Parameters
    ----------
    labels : array_like
        [rows] grades.
    qid : array_like
        [rows] queries.
    scores : array_like
        [rows] those of the production ranker.
    sessions : int
        How many.
    model : {"position-based", "cascade", "plackett-luce"}
        How people click, as above.
    depth : int
        Places of a page.
    temperature : float
        How much the production ranker varies what it shows.
    eta : float
        How fast attention falls with the place.
    noise, trust : float
        Of `attraction`.
    stop : float
        With "cascade", the probability to leave after a click.
    clicks : int
        With "plackett-luce", how many a session has.
    seed : int
        Of all that is drawn.

    Returns
    -------
    ClickLog
        What was shown, and what was clicked.

    Raises
    ------
    ValueError
        A number is out of its range, or no label is above 0.

    See Also
    --------
    tierrank.data.ClickLog.lists : What the clicks say.

    Examples
    --------
    >>> from tierrank.data.synthetic import simulate_clicks
    >>> log = simulate_clicks([2, 0, 1, 0], [7, 7, 7, 7], [0.1, 0.9, 0.5, 0.2], 1000, seed=1)
    >>> log.n_sessions, int(log.position.max())
    (1000, 4)
    """
    grades, base = np.asarray(labels, dtype=np.float64), np.asarray(scores, dtype=np.float64)
    if grades.shape != base.shape or grades.ndim != 1 or not len(grades):
        raise ValueError("labels and scores are [rows], with at least one")
    if not (np.isfinite(base).all() and np.isfinite(grades).all() and grades.max() > 0):
        raise ValueError("labels and scores are finite, and some label is above 0")
    if model not in ("position-based", "cascade", "plackett-luce"):
        raise ValueError(f'model is "position-based", "cascade" or "plackett-luce", not {model!r}')
    if sessions < 1 or depth < 1 or clicks < 1 or not (temperature >= 0 and 0 <= noise <= 1):
        raise ValueError("sessions, depth and clicks are from 1, temperature from 0, noise 0 to 1")
    random = np.random.default_rng(seed)
    query = group_rows(np.asarray(qid), len(grades))[0]
    rows = np.argsort(query, kind="stable")
    sizes = np.bincount(query)
    starts = np.cumsum(sizes) - sizes
    drawn = np.sort(random.integers(len(sizes), size=sessions))
    # all rows of each session's query, in the order of the perturbed scores
    session = np.repeat(np.arange(sessions), sizes[drawn])
    within = np.arange(len(session)) - np.repeat(
        np.cumsum(sizes[drawn]) - sizes[drawn], sizes[drawn]
    )
    row = rows[starts[drawn][session] + within]
    order = np.lexsort((-(base[row] + temperature * random.gumbel(size=len(row))), session))
    shown = order[within < depth]  # place by place, since `within` counts a session's rows
    session, row, position = session[shown], row[shown], within[within < depth] + 1
    appeal = attraction(grades[row], position, noise=noise, trust=trust, top=float(grades.max()))
    uniform = random.random(len(row))
    if model == "cascade":
        click = _cascade(session, position, uniform < appeal, random.random(len(row)) < stop)
    elif model == "position-based":
        click = uniform < appeal * position**-eta
    else:
        with np.errstate(divide="ignore"):
            value = np.log(appeal) - eta * np.log(position) + random.gumbel(size=len(row))
        best = np.lexsort((-value, session))
        click = np.zeros(len(row), dtype=bool)
        click[best[position <= clicks]] = True
    return ClickLog(session, row, position, click)


def _cascade(
    session: AnyArray, position: AnyArray, attracted: AnyArray, leaves: AnyArray
) -> AnyArray:
    """Which attractive items are reached: those that no user left above."""
    ends = np.cumsum(attracted & leaves)
    before: AnyArray = ends - (attracted & leaves)  # up to the entry above, over all sessions
    at_start: AnyArray = before[position == 1][session]
    return np.asarray(attracted & (before == at_start))
