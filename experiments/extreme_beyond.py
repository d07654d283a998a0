"""Beyond Ma et al. (2021): wide networks with dropout, averages, propensities, GLaS; Delicious-1K.

    python experiments/extreme_beyond.py --data FOLDER [--members 5] [--propensity 0.5 1]
    python experiments/extreme_beyond.py --data FOLDER --held-out 0.25    # to try settings

Networks of 2,048 hidden numbers with dropout of 0.3 on the input and 0.6 on the hidden layer,
fitted once more to all training rows for as many epochs as was best on a quarter of them. A table
has them alone and averaged, as they are and with the labels' propensities in the prediction, with
variants of training; beside what is published of trees, SLEEC and LEML.

Finished fits are kept in DIR/fits: the same command goes on where it was stopped.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from command import run
from extreme_figures import Figures
from extreme_fits import Fit, Reading, Store, run_fits
from extreme_options import (
    QUICK,
    add_training,
    folder_of,
    named_values,
    parser,
    seeds_of,
    source_from,
    training_settings,
)
from extreme_report import (
    SEEDS_NOTES,
    Report,
    choice_table,
    methods_plot,
    notes_for,
    printed_cell,
    printed_for,
    value_cell,
)
from page import Cell, Table
from printed import LEADERS, SIX, XML

from tierrank.extreme.ranker import ExtremeRanker

WIDE = {
    "hidden": 2048,
    "input_dropout": 0.3,
    "hidden_dropout": 0.6,
    "max_epochs": 200,
    "patience": 10,
    "refit": True,
}
VARIANTS = ("plain", "glas", "propensity-weights", "both")
PEERS = ("SLEEC", "LEML")


def variant_settings(name: str, glas: float) -> dict[str, Any]:
    """What a variant changes."""
    changed: dict[str, Any] = {}
    if name in ("glas", "both"):
        changed["glas"] = glas
    if name in ("propensity-weights", "both"):
        changed["propensity_weights"] = True
    return changed


def readings_of(label: str, members: int, propensities: Sequence[float]) -> tuple[Reading, ...]:
    """Alone and averaged, each with every strength of propensities."""
    crowds = [("alone", 1)] + [(f"average of {members}", members)] * (members > 1)
    return tuple(
        Reading(f"{label}, {words}" + f", τ = {power:g}" * (power != 0), count, power)
        for words, count in crowds
        for power in dict.fromkeys([0.0, *propensities])
    )


def fits_of(chosen: argparse.Namespace, paper: str | None) -> list[Fit]:
    """A fit for each objective, variant and seed."""
    settings = training_settings(chosen, paper)
    settings |= WIDE | {"members": chosen.members}
    if chosen.quick:
        settings |= QUICK
    settings |= named_values(chosen.set, "", ExtremeRanker())
    if chosen.hidden is not None:
        settings["hidden"] = chosen.hidden
    found = []
    for seed in seeds_of(chosen):
        for objective in chosen.objectives:
            for variant in chosen.variants:
                label = objective + f" + {variant}" * (variant != "plain")
                found.append(
                    Fit(
                        "network",
                        seed,
                        {"objective": objective, **settings}
                        | variant_settings(variant, chosen.glas),
                        readings_of(label, chosen.members, chosen.propensity),
                    )
                )
    return found


def result_table(figures: Figures, title: str) -> Table:
    """Ours, then what is published; bold is what is ahead of all that is published."""
    published = {
        method: [figures.printed.get((method, m)) for m in SIX] for method in _peers(figures)
    }
    best = [_highest(figures, measure) for measure in SIX]
    rows = []
    for method in figures.methods:
        cells = [
            value_cell(figures[method, m], top is not None and figures[method, m].mean > top)
            for m, top in zip(SIX, best, strict=True)
        ]
        rows.append([Cell(method), *cells])
    kinds = ["ours"] * len(rows)
    for method, values in published.items():
        if any(value is not None for value in values):
            rows.append([Cell(f"{method}, published"), *map(printed_cell, values)])
            kinds.append("")
    return Table(
        title, ["", *SIX], rows, row_kinds=kinds,
        text="Bold is ahead of everything published in its column. τ: so many times log(1/p) is "
        "added to a label's score, p its propensity.",
    )  # fmt: skip


def ahead_table(figures: Figures, peers: Sequence[str]) -> Table:
    """By how much ours are ahead of the best of those peers; bold where they are."""
    rows = []
    for method in figures.methods:
        cells = []
        for measure in SIX:
            top = _highest(figures, measure, peers)
            ahead = None if top is None else figures.mean(method, measure) - top
            text = "–" if ahead is None else f"{ahead:+.2f}"
            cells.append(Cell(text, best=ahead is not None and ahead > 0))
        rows.append([Cell(method), *cells])
    title = f"Ahead of the best of {' and '.join(peers)}, as published, by"
    return Table(title, ["", *SIX], rows)


def _peers(figures: Figures) -> list[str]:
    return list(dict.fromkeys(["PL-Partition", *PEERS, *_leaders()]))


def _leaders() -> list[str]:
    return list(dict.fromkeys(method for _, method, _ in LEADERS))


def _highest(figures: Figures, measure: str, peers: Sequence[str] | None = None) -> float | None:
    known = [figures.printed.get((peer, measure)) for peer in peers or _peers(figures)]
    return max((value for value in known if value is not None), default=None)


def experiment(chosen: argparse.Namespace) -> None:
    """Fit what is not there yet; write and print what came of it."""
    source = source_from(chosen)
    data = source.load()
    folder = folder_of(chosen, data.name)
    fits = fits_of(chosen, data.paper)
    done = run_fits(fits, source, data, Store(folder, data), chosen.jobs)
    figures = Figures(data, done, printed_for(data.paper))
    settings = {key: value for key, value in fits[0].settings.items() if key != "objective"}
    seeds = figures.all[0].seeds
    report = Report(
        "beyond" + "-held-out" * bool(chosen.held_out),
        f"Beyond the paper: {data.name}",
        [
            "Networks as in section 4.2 of Ma et al. (2021), but wider, with dropout, and learning "
            "from all training rows; beside what is published for this data set."
        ],
        [
            result_table(figures, f"{data.name}, {seeds} seeds, {len(data.test):,} {data.judged}"),
            ahead_table(figures, PEERS),
            ahead_table(figures, _leaders()),
        ],
        methods_plot(figures, figures.methods, SIX, {m: _highest(figures, m) for m in SIX}),
        f"Means over the seeds on {data.name}.",
        {
            **data.facts(),
            "seeds": ", ".join(map(str, seeds_of(chosen))),
            **{key: str(value) for key, value in settings.items()},
            "GLaS, where it says so": f"{chosen.glas:g}",
            **({"quick": "a trial, whose figures mean nothing"} if chosen.quick else {}),
        },
        notes_for(data, *SEEDS_NOTES, *_notes()),
        figures.to_csv(),
        {"figures": figures.to_json(), "fits": [_facts(each) for each in done]},
        [choice_table([(e.fit.readings[0].name, e.fit.seed, e.found, e.seconds) for e in done])],
    )
    report.publish(folder)


def _notes() -> list[str]:
    sets = sorted({data for data, _, _ in LEADERS} & {data for data, _, _ in XML})
    return [
        "Published figures are the XML repository's, of one run each, and have no interval.",
        f"Trees are known here for {', '.join(sets)} alone: FastXML for P and PfastreXML for PSP.",
        "All rows are shown, and none of them was chosen by the test rows; --held-out judges by "
        "training rows, for choosing.",
    ]


def _facts(done: Any) -> dict[str, Any]:
    return {
        "readings": list(done.top), "seed": done.fit.seed, "settings": dict(done.fit.settings),
        "seconds": done.seconds, **done.found,
    }  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line."""
    options = parser(__doc__.split("\n")[0], seeds=3)
    add_training(options, rates=(1e-3,))
    options.add_argument("--hidden", type=int, nargs="+", help="width, or widths (default 2048)")
    options.add_argument("--members", type=int, default=5, help="networks to average (default 5)")
    options.add_argument(
        "--propensity", type=float, nargs="*", default=[0.5, 1.0], metavar="TAU",
        help="how many times log(1/p) to add in prediction (default 0.5 1; 0 is always there)",
    )  # fmt: skip
    options.add_argument(
        "--variants", nargs="+", choices=VARIANTS, default=list(VARIANTS[:3]),
        help="of training (default plain glas propensity-weights)",
    )  # fmt: skip
    options.add_argument(
        "--glas", type=float, default=1.0, help="strength of the regulariser (default 1)"
    )
    options.add_argument(
        "--objectives", nargs="+", default=["pl-partition"], metavar="NAME",
        help="what networks learn by (default pl-partition)",
    )  # fmt: skip
    run(options, experiment, arguments)


if __name__ == "__main__":
    main()
