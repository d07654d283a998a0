"""Rankers at their defaults beside those of other libraries, each with the same refit and members.

    python experiments/defaults.py --data DATA [--sets mq2008] [--rankers boosted] [--folds 1]
    python experiments/defaults.py --data DATA --table

DATA has mq2008, mq2007-agg, mslr-web10k-sample and lightgbm-rank. In a fold, a ranker learns from
the training part, stops (trees, epochs) by NDCG@10 of the validation part, and is judged once by
the test part; trees of peers have LightGBM's own 31 leaves and 20 rows a leaf, ours their settings
by size (a rule that `boosted_settings.py` found on training and validation parts of first folds).
In the fair comparison all trees have the settings by size, and everybody learns once more from
training and validation rows, by as many members, whose scores are averaged.

A ranker in a fold is a file in OUT: the same command again does what is not done yet, several may
run at once, and `--table` only prints. The table has the folds in which everybody is done. Tests
are paired randomisation tests over the queries of all sets; Holm's correction is for all of them.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from command import Progress, machine
from letor import METRIC, folds_of, shuffled

from tierrank._types import AnyArray
from tierrank.data import RankingData, read
from tierrank.metrics import from_name, holm, paired_test
from tierrank.ranking.blended import BlendedRanker
from tierrank.ranking.boosted import BoostedRanker
from tierrank.ranking.comparison import QueryFold, hold_out
from tierrank.ranking.features import Impute, QueryScale, Standardize
from tierrank.ranking.linear import LinearRanker
from tierrank.ranking.neural import NeuralRanker
from tierrank.ranking.peers import ALL as PEERS
from tierrank.ranking.peers import peer_from
from tierrank.storage import replace_file

SETS = ("lightgbm-rank", "mslr-web10k-sample", "mq2008", "mq2007-agg")
OURS = ("best", "boosted", "linear", "neural")
FAIR = {"refit": True, "members": 3}
THEIRS = {"leaves": 31, "min_rows_per_leaf": 20, "row_fraction": 1.0, "feature_fraction": 1.0}
SEED = 0


def ranker(name: str, missing: bool, threads: int) -> Any:
    """An unfitted ranker at its defaults."""
    if name in PEERS:
        known = BoostedRanker().get_params()
        shared = ("trees", "learning_rate", "l2", "patience", *THEIRS)
        return peer_from(name, threads=threads, **{each: known[each] for each in shared})
    if name == "boosted":
        return BoostedRanker(threads=threads, random_state=SEED)
    # what MQ2007-agg has are ranks, which its linear rankers take in each query, the missing last
    steps = [QueryScale("rank"), Impute(1.1), Standardize()]
    own = {"random_state": SEED} | ({"features": steps} if missing else {})
    if name == "best":
        return BlendedRanker(boosted={"threads": threads}, random_state=SEED)
    return (LinearRanker if name == "linear" else NeuralRanker)(**own)


def folds(data: Path, name: str, first: int | None) -> Iterator[QueryFold]:
    """The folds of a set; rows are shuffled, as their order might say something."""
    if name != "lightgbm-rank":
        yield from folds_of(data / name, SEED, first)
        return
    rng = np.random.default_rng(SEED)
    whole, test = (read(data / name / f"rank.{part}.xz") for part in ("train", "test"))
    train, valid = hold_out(whole, 0.2, SEED)
    yield QueryFold("its split", *(shuffled(part, rng) for part in (train, valid, test)))


def cell_of(out: Path, name: str, fold: str, who: str, fair: bool) -> Path:
    """Where what a ranker did in a fold is kept."""
    return out / name / fold.replace(" ", "-") / f"{who.replace(':', '-')}{'-fair' * fair}.json"


def run_cell(who: str, fair: bool, fold: QueryFold, threads: int) -> dict[str, Any]:
    """Fit and test a ranker."""
    assert fold.valid is not None
    train, valid, test = fold.train, fold.valid, fold.test
    model = ranker(who, bool(np.isnan(train.X).any()), threads)
    if fair:
        model.set_params(**FAIR)
    elif who in PEERS:
        model.set_params(**THEIRS)
    begun = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # limits of iterations are part of the protocol
        model.fit(train.X, train.y, qid=train.qid, eval_set=(valid.X, valid.y, valid.qid))
    seconds = time.perf_counter() - begun
    scores = np.asarray(model.predict(test.X, qid=test.qid), dtype=np.float64)
    return {"seconds": round(seconds, 2), "values": judged(scores, test)}


def judged(scores: AnyArray, test: RankingData) -> list[float]:
    """[queries] of the test part."""
    found = from_name(METRIC)(scores, test.y, qid=test.qid, reduction="none")
    return [float(value) for value in found]


def kinds(chosen: argparse.Namespace) -> tuple[bool, ...]:
    """Whether comparisons are fair: the one that is, and else the one at defaults after it."""
    return (True,) if chosen.fair else (True, False)


def compute(chosen: argparse.Namespace) -> None:
    """Do what is not done yet."""
    for name in chosen.sets:
        for fold in folds(chosen.data, name, chosen.folds):
            todo = [
                (who, fair)
                for fair in kinds(chosen)
                for who in chosen.rankers
                if not cell_of(chosen.out, name, fold.name, who, fair).exists()
            ]
            with Progress(len(todo)) as progress:
                for who, fair in todo:
                    done = run_cell(who, fair, fold, chosen.threads)
                    path = cell_of(chosen.out, name, fold.name, who, fair)
                    path.parent.mkdir(parents=True, exist_ok=True)
                    replace_file(path, json.dumps(done).encode())
                    mean, more = np.mean(done["values"]), ", fair" * fair
                    progress.step(f"{name}, {fold.name}, {who}{more}: {mean:.4f}")


def collect(chosen: argparse.Namespace) -> dict[str, dict[tuple[str, bool], AnyArray]]:
    """By set and by ranker, [queries] NDCG@10 in the folds in which everybody is done."""
    found: dict[str, dict[tuple[str, bool], AnyArray]] = {}
    everybody = [(who, fair) for fair in kinds(chosen) for who in chosen.rankers]
    for name in chosen.sets:
        parts: dict[tuple[str, bool], list[float]] = {}
        for fold in folds(chosen.data, name, chosen.folds):
            paths = {each: cell_of(chosen.out, name, fold.name, *each) for each in everybody}
            if not all(path.exists() for path in paths.values()):
                continue
            cells = {each: json.loads(path.read_text()) for each, path in paths.items()}
            for each, cell in cells.items():
                parts.setdefault(each, []).extend(cell["values"])
        if parts:
            found[name] = {each: np.array(values) for each, values in parts.items()}
    return found


def table(found: Mapping[str, Mapping[tuple[str, bool], AnyArray]]) -> str:
    """Means, and paired tests pooled over the sets, as Markdown."""
    sets = list(found)
    everybody = list(found[sets[0]])
    pooled = {each: np.concatenate([found[name][each] for name in sets]) for each in everybody}
    sizes = [len(found[name][everybody[0]]) for name in sets]
    heads = [f"{name} ({size:,})" for name, size in zip(sets, sizes, strict=True)]
    lines = [f"| ranker | {' | '.join(heads)} | all ({sum(sizes):,}) |"]
    lines.append("| --- " + "| ---: " * (len(sets) + 1) + "|")
    ways = sorted({fair for _, fair in everybody})
    names = dict.fromkeys(who for who, _ in everybody)
    for who in sorted(names, key=lambda who: -pooled[who, True].mean()):
        means = [
            " → ".join(f"{values[who, fair].mean():.4f}" for fair in ways)
            for values in (*(found[name] for name in sets), pooled)
        ]
        shown = f"*{who}*" if who in PEERS else who
        lines.append(f"| {shown} | {' | '.join(means)} |")
    ours = [who for who in names if who not in PEERS]
    theirs = [who for who in names if who in PEERS]
    tests = {
        (one, other): paired_test(pooled[one, True], pooled[other, True])
        for one in ours for other in theirs
    }  # fmt: skip
    corrected = dict(zip(tests, holm([test.p_value for test in tests.values()]), strict=True))
    lines += ["", f"| ours, fair, less … | {' | '.join(theirs)} |"]
    lines.append("| --- " + "| ---: " * len(theirs) + "|")
    for one in ours:
        cells = []
        for other in theirs:
            test, p = tests[one, other], corrected[one, other]
            cells.append(f"{test.difference:+.4f} (p {test.p_value:.3f}, Holm {p:.3f})")
        lines.append(f"| {one} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> None:
    """Compute, and print the tables."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    everybody = [*OURS, *PEERS]
    options.add_argument("--data", type=Path, required=True, metavar="FOLDER")
    options.add_argument("--out", type=Path, default=Path("out", "defaults"), metavar="DIR")
    options.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    options.add_argument("--rankers", nargs="+", choices=everybody, default=everybody)
    options.add_argument("--folds", type=int, help="only the first so many of a set")
    options.add_argument("--threads", type=int, default=1)
    options.add_argument("--fair", action="store_true", help="only with the same refit and members")
    options.add_argument("--table", action="store_true", help="print what is done")
    chosen = options.parse_args(arguments)
    if not chosen.table:
        compute(chosen)
    found = collect(chosen)
    if not found:
        raise SystemExit("no fold is done by everybody yet")
    print(table(found))
    print("\n" + "; ".join(f"{name}: {value}" for name, value in machine().items()))


if __name__ == "__main__":
    main()
