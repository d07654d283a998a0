"""Settings of networks beside the defaults, cross-validated where nothing is tested.

    python experiments/neural_settings.py --data FOLDER [--repeats 3]

As `boosted_settings.py` does: the training and validation rows of the set's first fold are cut into
five folds, and in each one a candidate learns from the others, of which a fifth say when to stop.
What stands in the test part is not used. It prints NDCG@10 of every candidate, and its difference
to the defaults with the p-value of a paired randomisation test over the queries.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from boosted_settings import FOLDS, compared, queries_of, table_of
from command import Progress, parser, run, show

from tierrank.ranking.neural import NeuralRanker

CANDIDATES: dict[str, dict[str, Any]] = {
    "the defaults": {},
    'normalisation="batch"': {"normalisation": "batch"},
    'normalisation="layer"': {"normalisation": "layer"},
    "dropout=0": {"dropout": 0.0},
    "dropout=0.3": {"dropout": 0.3},
    "hidden=(64, 32)": {"hidden": (64, 32)},
}


def experiment(chosen: argparse.Namespace) -> None:
    """Run it."""
    data = queries_of(chosen.data)
    folds = 2 if chosen.quick else FOLDS
    seeds = range(chosen.seed, chosen.seed + chosen.repeats)
    quickly = {"max_epochs": 5} if chosen.quick else {}
    candidates = {name: settings | quickly for name, settings in CANDIDATES.items()}
    with Progress(len(candidates) * folds * len(seeds)) as say:
        found = compared(data, candidates, seeds, folds, say, NeuralRanker)
    name = f"{chosen.data.name}: {data.n_queries:,} queries, {len(data):,} rows"
    show(table_of(name, found))


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the command line and run."""
    options = parser((__doc__ or "").partition("\n")[0])
    options.add_argument(
        "--repeats", type=int, default=1, metavar="N", help="cut into folds so many times (once)"
    )
    run(options, experiment, arguments)


if __name__ == "__main__":
    main()
