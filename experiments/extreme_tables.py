"""Ma et al. (2021), tables 1, 2 and 4: PL-Partition beside others on extreme multi-label data.

    python experiments/extreme_tables.py --data FOLDER              # tables 1 and 4
    python experiments/extreme_tables.py --data FOLDER --table 2    # with SLEEC and LEML
    python experiments/extreme_tables.py --synthetic eurlex-4k      # without files

Ma et al. (2021), section 4.2: a network with one hidden layer of 256, Adam, batches of 128; a
quarter of the training rows (a tenth for D-200K) to choose the learning rate from 1e-4, 1e-3 and
1e-2 and to stop by. docs/extreme-experiments.md says more.

Finished fits are kept in DIR/fits: the same command goes on where it was stopped, and the two
tables share what they can.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from command import run
from extreme_data import DataSet
from extreme_figures import Figures
from extreme_fits import Done, Fit, Reading, Store, run_fits
from extreme_options import (
    add_training,
    folder_of,
    named_values,
    parser,
    seeds_of,
    source_from,
    training_settings,
)
from extreme_report import (
    PAPER,
    SEEDS_NOTES,
    Report,
    choice_table,
    difference_table,
    measure_table,
    methods_plot,
    notes_for,
    printed_for,
)
from leml import Leml
from page import Table
from printed import SIX, XML_PLACES
from sleec import Sleec

NEW = "PL-Partition"
NETWORKS = {
    "pl-partition": NEW,
    "pl-lb": "PL-LB",
    "ranknet": "RankNet",
    "ranksvm": "RankSVM",
    "pl-efron": "PL-Efron",
    "attrank": "AttRank",
}
BASELINES = {"sleec": "SLEEC", "leml": "LEML"}
METHODS = NETWORKS | BASELINES
TABLES = {
    "1": ("pl-partition", "pl-lb", "ranknet", "ranksvm"),
    "2": ("pl-partition", "sleec", "leml"),
    "4": ("pl-partition", "pl-lb", "ranknet", "ranksvm"),
}
CONTENTS = {
    "1": [f"{kind}@{k}" for kind in ("P", "PSP") for k in XML_PLACES],
    "2": SIX,
    "4": [f"{kind}@{k}" for kind in ("nDCG", "PSnDCG") for k in XML_PLACES],
}
QUICK_BASELINES = {"sleec": {"learners": 1, "rank": 5}, "leml": {"rank": 5, "sweeps": 2}}


def fits_of(chosen: argparse.Namespace, paper: str | None) -> list[Fit]:
    """A fit for each method and seed; those with the same seed hold out the same rows."""
    settings = training_settings(chosen, paper)
    own = {
        name: (QUICK_BASELINES[name] if chosen.quick else {})
        | named_values(chosen.set, name, maker())
        for name, maker in (("sleec", Sleec), ("leml", Leml))
    }
    found = []
    for seed in seeds_of(chosen):
        for method in methods_of(chosen):
            readings = (Reading(METHODS[method]),)
            if method in BASELINES:
                found.append(Fit(method, seed, own[method], readings))
            else:
                found.append(Fit("network", seed, {"objective": method, **settings}, readings))
    return found


def methods_of(chosen: argparse.Namespace) -> list[str]:
    """Those that were named, or those of the tables."""
    return list(chosen.methods or dict.fromkeys(m for t in chosen.table for m in TABLES[t]))


def tables_of(
    figures: Figures, data: DataSet, wanted: Sequence[str], named: Sequence[str] | None = None
) -> list[Table]:
    """The paper's tables, and by how much PL-Partition is ahead.

    A table has its own methods, or those that were named.
    """
    tables = []
    for number in wanted:
        measures = [measure for measure in CONTENTS[number] if measure in figures.measures]
        methods = [METHODS[name] for name in named or TABLES[number]]
        title = f"Table {number}: {data.name}, per cent"
        text = f"{figures.all[0].seeds} seeds, {len(data.test):,} {data.judged}."
        tables.append(measure_table(figures, title, measures, methods, text))
    others = [method for method in figures.methods if method != NEW]
    if NEW in figures.methods and others:
        tables.append(difference_table(figures, NEW, others, SIX))
    return tables


def experiment(chosen: argparse.Namespace) -> None:
    """Fit what is not there yet; write and print what came of it."""
    source = source_from(chosen)
    data = source.load()
    folder = folder_of(chosen, data.name)
    fits = fits_of(chosen, data.paper)
    done = run_fits(fits, source, data, Store(folder, data), chosen.jobs)
    figures = Figures(data, done, printed_for(data.paper))
    wanted = sorted(set(chosen.table))
    name = "table" + "s" * (len(wanted) > 1)
    words = f"{name} {' and '.join(wanted)}"
    report = Report(
        f"{name}-{'-'.join(wanted)}" + "-held-out" * bool(chosen.held_out),
        f"PL-Partition over huge label sets: {data.name}, {words}",
        [f"{PAPER}, {words}, run again with tierrank. What the paper prints stands beside ours."],
        tables_of(figures, data, wanted, chosen.methods),
        methods_plot(figures, figures.methods, SIX),
        f"Means over the seeds on {data.name}, and crosses where the paper prints a value.",
        {**data.facts(), **words_of(fits, chosen)},
        notes_for(data, *SEEDS_NOTES, *_own_notes(chosen)),
        figures.to_csv(),
        {
            "figures": figures.to_json(),
            "differences": figures.known_differences(),
            "fits": [_facts(each) for each in done],
        },
        [choice_table([(e.fit.readings[0].name, e.fit.seed, e.found, e.seconds) for e in done])],
    )
    report.publish(folder)


def words_of(fits: Sequence[Fit], chosen: argparse.Namespace) -> dict[str, str]:
    """The settings, in words."""
    found = {"seeds": ", ".join(dict.fromkeys(str(fit.seed) for fit in fits))}
    for fit in fits:
        name = fit.readings[0].name
        words = ", ".join(f"{key}={value}" for key, value in fit.settings.items())
        found.setdefault(name, words or "as it is by default")
    if chosen.quick:
        found["quick"] = "a trial, whose figures mean nothing"
    return found


def _own_notes(chosen: argparse.Namespace) -> list[str]:
    notes = [
        "Learning rate and epoch are chosen by P@5 of the validation rows, unless --set metric "
        "says otherwise; the paper does not say by what.",
    ]
    if set(methods_of(chosen)) & set(BASELINES):
        notes.append(
            "SLEEC and LEML are tierrank's own, with their default settings, and learn from all "
            "training rows; the printed figures are the XML repository's, of their authors' code."
        )
    return notes


def _facts(done: Done) -> dict[str, Any]:
    return {
        "method": done.fit.readings[0].name, "seed": done.fit.seed,
        "settings": dict(done.fit.settings), "seconds": done.seconds, **done.found,
    }  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line."""
    options = parser(__doc__.split("\n")[0])
    add_training(options)
    options.add_argument(
        "--table", nargs="+", choices=tuple(TABLES), default=["1", "4"],
        help="which to make (default 1 4, which are of the same fits)",
    )  # fmt: skip
    options.add_argument(
        "--methods", nargs="+", choices=tuple(METHODS), metavar="METHOD",
        help=f"of {', '.join(METHODS)}; by default those of the tables",
    )  # fmt: skip
    run(options, experiment, arguments)


if __name__ == "__main__":
    main()
