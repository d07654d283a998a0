"""Ma et al.'s (2021) figure 4: how P@5 depends on T and c of the midpoint rule.

    python experiments/extreme_sensitivity.py                    # a drawn set like W-31K, smaller
    python experiments/extreme_sensitivity.py --data FOLDER      # W-31K itself, or another set

Networks learn by the paper's numerical integration with T intervals and a shift c, by the exact
likelihood, which has neither, and by RankNet. T is varied with c = 5, and c with T = 10,000.

Finished fits are kept in DIR/fits: the same command goes on where it was stopped.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from command import run
from extreme_figures import Figures
from extreme_fits import Done, Fit, Reading, Store, run_fits
from extreme_options import (
    add_training,
    folder_of,
    parser,
    seeds_of,
    source_from,
    training_settings,
)
from extreme_report import (
    PAPER,
    SEEDS_NOTES,
    Curve,
    Report,
    difference_cell,
    notes_for,
    sensitivity_plot,
    value_cell,
)
from page import Cell, Table

MEASURE = "P@5"
EXACT, RANKNET = "PL-Partition, exact", "RankNet"
LIKE, SCALE = "wiki10-31k", 0.2
NOTES = (
    "The likelihood does not depend on c; the rule does. Its integrand falls off from v = 1 over "
    "about 1/B, B = e^(w_B + c), w_B being the log-sum-exp of all scores below. Where that is less "
    "than 1/T (T too small, or c too large), the sum is little more than its first term, and log P "
    "is far too low. Where B is below 1 (c too small), the integrand has a pole at v = 0, which "
    "the rule does not see.",
    "The error is the median over 512 training lists of the rule's log P minus the exact one.",
    "Training goes by the gradient alone. If the sum is its first term, the gradient is right in "
    "kind all the same: near 1 for a label with e^(w + c) below T, and near 0 above. So much of "
    "the error does no harm, until no label is below: then nothing is learned. 'Lists without a "
    "gradient' are those of training whose labels have less than 0.001 in all.",
    "A shift of all scores is what the biases of the last layer can learn, so a network can make "
    "up for c to some extent.",
    "The gradient is that of lemma 2 with a = b_i + B; equation 16 prints a product for the sum, "
    "which is not the gradient of the likelihood.",
    "The paper's figure has no numbers, and its text does not say which T and c it has.",
)


def fits_of(chosen: argparse.Namespace, paper: str | None) -> list[Fit]:
    """The exact likelihood, RankNet, and the rule with every T and c."""
    settings = training_settings(chosen, paper)
    found = []
    for seed in seeds_of(chosen):
        for name, objective in ((EXACT, "pl-partition"), (RANKNET, "ranknet")):
            found.append(
                Fit("network", seed, {"objective": objective, **settings}, (Reading(name),))
            )
        for intervals, shift in rules_of(chosen):
            own = {**settings, "intervals": intervals, "shift": shift}
            found.append(Fit("midpoint", seed, own, (Reading(rule_name(intervals, shift)),)))
    return found


def rules_of(chosen: argparse.Namespace) -> list[tuple[int, float]]:
    """All (T, c), each once."""
    across = [(intervals, chosen.at[1]) for intervals in chosen.intervals]
    down = [(int(chosen.at[0]), shift) for shift in chosen.shifts]
    return list(dict.fromkeys([*across, *down]))


def rule_name(intervals: int, shift: float) -> str:
    """A row's name."""
    return f"T = {intervals:,}, c = {shift:g}"


def result_table(figures: Figures, done: Sequence[Done], title: str) -> Table:
    """P@5 of all, and what went wrong with the rule."""
    rows = []
    for method in figures.methods:
        over = (
            Cell("–") if method == EXACT else difference_cell(figures.over(method, EXACT, MEASURE))
        )
        own = [each.found for each in done if method in each.top]
        rows.append(
            [
                Cell(method),
                value_cell(figures[method, MEASURE]),
                over,
                *(Cell(_average(own, name, style)) for name, style in (
                    ("error of log P, first weights", "+.2f"),
                    ("error of log P, last weights", "+.2f"),
                    ("lists without a gradient", ".1%"),
                )),
            ]
        )  # fmt: skip
    columns = [
        "", f"{MEASURE}, per cent", "to the exact one", "error of log P, first weights",
        "error, last weights", "lists without a gradient",
    ]  # fmt: skip
    return Table(title, columns, rows)


def _average(found: Sequence[Any], name: str, style: str) -> str:
    values = [each[name] for each in found if each.get(name) is not None]
    return format(sum(values) / len(values), style) if values else "–"


def curve_of(figures: Figures, x: Sequence[float], names: Sequence[str]) -> Curve:
    """P@5 of some rules."""
    own = [figures[name, MEASURE] for name in names]
    return Curve(x, [figure.mean for figure in own], [figure.deviation or 0.0 for figure in own])


def experiment(chosen: argparse.Namespace) -> None:
    """Fit what is not there yet; write and print what came of it."""
    if not chosen.data and not chosen.synthetic:
        chosen.synthetic, chosen.scale = LIKE, chosen.scale * SCALE
    source = source_from(chosen)
    data = source.load()
    folder = folder_of(chosen, data.name)
    fits = fits_of(chosen, data.paper)
    done = run_fits(fits, source, data, Store(folder, data), chosen.jobs)
    figures = Figures(data, done)
    intervals, shifts = sorted(set(chosen.intervals)), sorted(set(chosen.shifts))
    plot = sensitivity_plot(
        curve_of(figures, intervals, [rule_name(each, chosen.at[1]) for each in intervals]),
        curve_of(figures, shifts, [rule_name(int(chosen.at[0]), each) for each in shifts]),
        {name: figures.mean(name, MEASURE) for name in (EXACT, RANKNET)},
        data.name,
    )
    seeds = figures.all[0].seeds
    caption = (
        f"{MEASURE} on {data.name} against T, with c = {chosen.at[1]:g}, and against c, with "
        f"T = {chosen.at[0]:,.0f}. The lines have neither."
    )
    title = f"{data.name}, {len(data.test):,} {data.judged}, {seeds} seed{'s' * (seeds != 1)}"
    report = Report(
        "figure-4" + "-held-out" * bool(chosen.held_out),
        f"Sensitivity to T and c: {data.name}",
        [f"{PAPER}, figure 4, run again with tierrank."],
        [result_table(figures, done, title)],
        plot,
        caption,
        {
            **data.facts(),
            "seeds": ", ".join(map(str, seeds_of(chosen))),
            **{key: str(value) for key, value in fits[0].settings.items() if key != "objective"},
            **({"quick": "a trial, whose figures mean nothing"} if chosen.quick else {}),
        },
        notes_for(data, *SEEDS_NOTES, *NOTES),
        figures.to_csv(),
        {
            "figures": [each for each in figures.to_json() if each["measure"] == MEASURE],
            "fits": [
                {"method": next(iter(each.top)), "seed": each.fit.seed, **each.found}
                for each in done
            ],
        },
    )
    report.publish(folder)


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line."""
    options = parser(__doc__.split("\n")[0], seeds=1)
    add_training(options, rates=(1e-3,))
    options.add_argument(
        "--intervals", type=int, nargs="+", default=[10, 100, 1000, 10_000], metavar="T",
        help="numbers of intervals (default 10 100 1000 10000)",
    )  # fmt: skip
    options.add_argument(
        "--shifts", type=float, nargs="+", default=[-10.0, -5.0, 0.0, 5.0, 10.0, 15.0, 20.0],
        metavar="C", help="shifts of the scores (default -10 -5 0 5 10 15 20)",
    )  # fmt: skip
    options.add_argument(
        "--at", type=float, nargs=2, default=[10_000, 5.0], metavar=("T", "C"),
        help="what stays when the other is varied (default 10000 5, as in the paper)",
    )  # fmt: skip
    run(options, experiment, arguments)


if __name__ == "__main__":
    main()
