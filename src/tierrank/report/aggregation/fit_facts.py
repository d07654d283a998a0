"""What the data connect, how the fit went, and with which settings."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from datetime import datetime
from importlib.metadata import version
from typing import Literal

from tierrank.report.aggregation.content import AggregationPage, ConvergenceFacts
from tierrank.report.aggregation.markup import (
    Section,
    count,
    facts,
    length,
    number,
    significant,
    text,
)

MOST_POINTS = 400
_DOTTED = 40  # up to so many steps each has a dot


def connectivity_section(page: AggregationPage) -> Section:
    """What was compared with what, in words."""
    data = page.connectivity
    said = text(data.text) or (
        "Every item stands above every other, directly or through others, so that all worths can "
        "be compared."
        if data.strongly_connected
        else "The comparisons do not lead from every item to every other, so that some differences "
        "rest on the prior alone."
    )
    pairs = [
        ("items", f"{data.items:,}"),
        (data.seen, f"{data.lists:,}"),
        (f"distinct {data.seen}", f"{data.distinct_lists:,}"),
        ("total weight", _amount(data.total_weight)),
        (f"{data.seen} that compare nothing", f"{data.lists_without_information:,}"),
        ("groups never compared", f"{data.groups:,}" if data.groups > 1 else "none"),
        ("strongly connected components", f"{data.components:,}"),
    ]
    return Section("data", "What the data connect", f'<p class="prose">{said}</p>{facts(pairs)}')


def convergence_section(page: AggregationPage) -> Section:
    """How the fit went, and the objective step by step."""
    fit = page.convergence
    pairs = [
        ("solver", text(fit.solver)),
        ("converged", "yes" if fit.converged else '<strong class="bad">no</strong>'),
        ("stopped by", text(fit.stopped_by)),
        ("steps", f"{fit.iterations:,}"),
        ("time", duration(fit.seconds)),
    ]
    if fit.gradient_norm is not None:
        pairs.append(("norm of the gradient", significant(fit.gradient_norm)))
    if fit.log_likelihood is not None:
        pairs.append(("log-likelihood", number(fit.log_likelihood, 3)))
    if fit.aic is not None:
        pairs.append(("AIC", number(fit.aic, 3)))
    return Section("fit", "How the fit went", _curve(fit) + facts(pairs))


def settings_section(page: AggregationPage, made: datetime, *, wide: bool) -> Section:
    """Settings, notes, versions and the date."""
    pairs = [(text(name), text(value)) for name, value in page.settings.items()]
    notes = "".join(f"<li>{text(note)}</li>" for note in page.notes)
    pairs += [
        ("made", f'<time datetime="{made.isoformat()}">{made:%Y-%m-%d %H:%M} {made:%Z}</time>'),
        ("tierrank", version("tierrank")),
        ("numpy, torch", f"{version('numpy')}, {text(version('torch'))}"),
        ("Python", platform.python_version()),
    ]
    content = f'<ul class="notes">{notes}</ul>' if notes else ""
    shape: Literal["wide", "half"] = "wide" if wide else "half"
    return Section("settings", "Settings and notes", content + facts(pairs), shape)


def duration(seconds: float) -> str:
    """A time as people say it."""
    if seconds < 1:
        return f"{1000 * seconds:.3g}&nbsp;ms"
    if seconds < 120:
        return f"{seconds:.3g}&nbsp;s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}&nbsp;h {minutes}&nbsp;min" if hours else f"{minutes}&nbsp;min {rest}&nbsp;s"


def _curve(fit: ConvergenceFacts) -> str:
    """The objective against the steps: a line in a box without a shape of its own."""
    values = list(fit.history)
    if len(values) < 2:
        return ""
    steps = _thinned(len(values))
    low, high = min(values), max(values)
    half = (high / 2 - low / 2) or 1.0  # halves, as the whole may be too large for a float
    points = [(step / (len(values) - 1), (high / 2 - values[step] / 2) / half) for step in steps]
    line = " ".join(f"{100 * x:.2f},{100 * y:.2f}" for x, y in points)
    dots = "".join(
        f'<circle cx="{length(x)}" cy="{length(y)}" r="3"/>'
        for x, y in (points if len(values) <= _DOTTED else ())
    )
    last = abs(values[-1] - values[-2])
    said = (
        f"From {_amount(values[0])} to {_amount(values[-1])} in {count(len(values) - 1, 'step')}; "
        f"the last changed it by {significant(last, 2)}."
    )
    return (
        f'<figure class="curve"><div class="chart"><span class="y top">{_amount(high)}</span>'
        f'<span class="y bottom">{_amount(low)}</span>'
        '<svg role="img" aria-labelledby="curve-title curve-text">'
        '<title id="curve-title">The objective, step by step</title>'
        f'<desc id="curve-text">{said}</desc>'
        '<svg viewBox="0 0 100 100" preserveAspectRatio="none" width="100%" height="100%">'
        f'<polyline points="{line}"/></svg>{dots}</svg></div>'
        f'<div class="ends"><span>start</span><span>step {len(values) - 1:,}</span></div>'
        f"<figcaption>The objective, step by step. {said}</figcaption></figure>"
    )


def _thinned(many: int) -> Sequence[int]:
    """Some of the steps, evenly, the first and last among them."""
    if many <= MOST_POINTS:
        return range(many)
    return [round(place * (many - 1) / (MOST_POINTS - 1)) for place in range(MOST_POINTS)]


def _amount(value: float) -> str:
    """A number of any size, short: whole ones whole."""
    if abs(value) >= 1e9 or 0 < abs(value) < 0.1:
        return significant(value, 4)
    return number(value, 0 if value == int(value) else 2)
