"""The defaults of `ExtremeRanker`, now and before, beside other people's programs.

    python experiments/extreme_peers.py --data FOLDER

FOLDER holds a folder for each set: `train.txt` and `test.txt`, or `all.txt`, of which a quarter,
drawn by --seed, is then tested on. All run in one process with one thread, one after the other;
CPU seconds are of fitting alone. With --held-out, a fifth of the training rows is judged in place
of the test rows: whatever is tried should be tried like this.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from extreme_options import PAPER
from page import Cell, Table

import tierrank as tr
from tierrank.data import MultiLabelData, read_xc
from tierrank.metrics import labels as measures

SETS = ("delicious", "stackex-cooking", "corel5k")
SHOWN = ("P@1", "P@3", "P@5", "PSP@1", "PSP@3", "PSP@5")
OURS: dict[str, dict[str, Any]] = {
    "ExtremeRanker, defaults": {},
    "ExtremeRanker, defaults before": PAPER,
    "ExtremeRanker, bce": {"objective": "bce"},
    "ExtremeRanker, skip": {"skip": True},
    "ExtremeRanker, 5 members": {"members": 5},
}

Predict = Callable[[Any], Any]  # of X, [rows, 5] labels


def load(folder: Path, seed: int, held_out: bool) -> tuple[MultiLabelData, MultiLabelData]:
    """Rows to learn from, and rows to be judged by."""
    (whole, *_) = [*folder.glob("all.txt*"), None]
    if whole is not None:
        train, test = split(read_xc(whole), 1 / 4, [seed])
    else:
        train, test = (read_xc(next(folder.glob(f"{part}.txt*"))) for part in ("train", "test"))
    return split(train, 1 / 5, [seed, 1]) if held_out else (train, test)


def split(
    data: MultiLabelData, share: float, seed: Sequence[int]
) -> tuple[MultiLabelData, MultiLabelData]:
    """All rows but a share of them, and that."""
    order = np.random.default_rng(seed).permutation(data.n_rows)
    apart = int(share * data.n_rows)
    return data.select(np.sort(order[apart:])), data.select(np.sort(order[:apart]))


# Each of these fits, and gives a function that predicts ------------------------------------------


def fit_ours(settings: dict[str, Any], seed: int) -> Callable[[MultiLabelData], Predict]:
    def fit(data: MultiLabelData) -> Predict:
        return tr.ExtremeRanker(**settings, random_state=seed).fit(data.X, data.Y).predict

    return fit


def fit_svm(data: MultiLabelData) -> Predict:
    """A linear SVM for each label; those that no row has, or all, come last."""
    from sklearn.multiclass import OneVsRestClassifier
    from sklearn.svm import LinearSVC

    model = OneVsRestClassifier(LinearSVC()).fit(data.X, data.Y)
    return lambda X: np.argsort(-model.decision_function(X), 1, kind="stable")[:, :5]


def fit_napkinxc(kind: str) -> Callable[[MultiLabelData], Predict]:
    def fit(data: MultiLabelData) -> Predict:
        from napkinxc import models

        folder = tempfile.mkdtemp()
        model = getattr(models, kind)(folder, threads=1, verbose=False)
        model.fit(data.X, [list(map(int, each.indices)) for each in data.Y])
        return lambda X: filled([list(each) for each in model.predict(X, top_k=5)])

    return fit


@contextmanager
def to_stderr() -> Iterator[None]:
    """What a compiled library prints goes where progress goes."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)


def fit_omikuji(data: MultiLabelData) -> Predict:
    """Parabel of omikuji; it reads a file, in which every row has labels and features."""
    import omikuji

    kept = (np.diff(data.X.indptr) > 0) & (np.diff(data.Y.indptr) > 0)
    some = data.select(kept)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "train.txt")
        with path.open("w") as file:
            file.write(f"{some.n_rows} {some.n_features} {some.n_labels}\n")
            for x, y in zip(some.X, some.Y, strict=True):
                entries = (f"{at}:{value:.6f}" for at, value in zip(x.indices, x.data, strict=True))
                file.write(",".join(map(str, y.indices)) + " " + " ".join(entries) + "\n")
        with to_stderr():
            model = omikuji.Model.train_on_data(str(path), None, 1)

    def predict(X: Any) -> Any:
        found = []
        for x in X:
            entries = list(zip(map(int, x.indices), map(float, x.data), strict=True))
            found.append([label for label, _ in model.predict(entries, top_k=5)])
        return filled(found)

    return predict


def filled(found: Sequence[Sequence[int]]) -> Any:
    """[rows, 5] labels, and −1 where there are fewer."""
    return np.array([[*each, *[-1] * 5][:5] for each in found])


PEERS: dict[str, Callable[[MultiLabelData], Predict]] = {
    "linear SVM": fit_svm,
    "napkinXC, one vs rest": fit_napkinxc("BR"),
    "napkinXC, PLT": fit_napkinxc("PLT"),
    "omikuji, Parabel": fit_omikuji,
}


def weighted(name: str, train: Any) -> Callable[[Any], Any]:
    """tf-idf of scikit-learn, or rows as they are."""
    if name == "raw":
        return lambda X: X
    from sklearn.feature_extraction.text import TfidfTransformer

    return TfidfTransformer().fit(train).transform  # type: ignore[no-any-return]


def fit_peer(
    name: str, train: MultiLabelData, seed: int, chosen: str | None
) -> tuple[Predict, str, float]:
    """A peer on features as they are or on tf-idf, whichever does better on a quarter of the rows.

    Its seconds are those of the last fit alone.
    """
    if chosen is None:
        taught, judged = split(train, 1 / 4, [seed, 2])
        scores = {}
        for way in ("raw", "tf-idf"):
            change = weighted(way, taught.X)
            top = PEERS[name](MultiLabelData(change(taught.X), taught.Y))(change(judged.X))
            scores[way] = measures.precision(top, judged.Y, k=5)
        chosen = max(scores, key=lambda way: scores[way])
    change = weighted(chosen, train.X)
    data = MultiLabelData(change(train.X), train.Y)
    begun = time.process_time()
    predict = PEERS[name](data)
    return lambda X: predict(change(X).tocsr()), chosen, time.process_time() - begun


class Seed(NamedTuple):
    """With one seed: the measures and the seconds by name, and the features that peers took."""

    values: dict[str, list[float]]
    ways: dict[str, str]


def run_seed(
    name: str, train: MultiLabelData, test: MultiLabelData, seed: int, chosen: argparse.Namespace
) -> Seed:
    """All of them on one set, with one seed."""
    inverse = measures.inverse_propensity(train.Y)
    found = Seed({}, {})

    def judge(who: str, predict: Predict, seconds: float) -> None:
        scores = measures.evaluate(predict(test.X), test.Y, inverse_propensity=inverse)
        found.values[who] = [*(100 * scores[measure] for measure in SHOWN), seconds]
        values = (f"{each:.2f}" for each in found.values[who])
        print(f"{name}: {who}:", *values, file=sys.stderr, flush=True)

    for who in chosen.ours:
        begun = time.process_time()
        predict = fit_ours(OURS[who], seed)(train)
        judge(who, predict, time.process_time() - begun)
    for peer in PEERS:
        predict, found.ways[peer], seconds = fit_peer(peer, train, seed, chosen.peer_features)
        judge(peer, predict, seconds)
    return found


def table_of(name: str, chosen: argparse.Namespace) -> Table:
    """Means over the seeds, with the features that a peer took with one or another."""
    runs = []
    for seed in range(chosen.seed, chosen.seed + chosen.seeds):
        train, test = load(chosen.data / name, seed, chosen.held_out)
        runs.append(run_seed(name, train, test, seed, chosen))
    found = {}
    for who in runs[0].values:
        ways = " or ".join(sorted({run.ways[who] for run in runs if who in run.ways}))
        found[f"{who}, {ways}" if ways else who] = np.mean(
            [run.values[who] for run in runs], axis=0
        )
    best = [max(values[at] for values in found.values()) for at in range(len(SHOWN))]
    rows = [
        [
            Cell(who),
            *(Cell(f"{value:.2f}", best=value == best[at]) for at, value in enumerate(values[:-1])),
            Cell(f"{values[-1]:.1f}"),
        ]
        for who, values in found.items()
    ]
    judged = "held-out" if chosen.held_out else "test"
    seeds = f", mean over {chosen.seeds} seeds" * (chosen.seeds > 1)
    title = f"{name}: {len(train):,} rows, {len(test):,} {judged} rows{seeds}"
    return Table(title, ["", *SHOWN, "CPU seconds"], rows)


def main(arguments: Sequence[str] | None = None) -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--data", type=Path, required=True, metavar="FOLDER")
    options.add_argument("--sets", nargs="+", default=SETS, metavar="NAME")
    options.add_argument("--held-out", action="store_true", help="do not look at the test rows")
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--seeds", type=int, default=1, help="so many, from --seed on (1)")
    options.add_argument(
        "--ours",
        nargs="*",
        choices=OURS,
        default=list(OURS),
        help="which of ours (all)",
        metavar="NAME",
    )
    options.add_argument(
        "--peer-features", choices=("raw", "tf-idf"), help="in place of the better one"
    )
    chosen = options.parse_args(arguments)
    if fit_omikuji in PEERS.values() and find_spec("omikuji") is None:  # said before the minutes
        options.error("omikuji is not installed: pip install -c constraints.txt omikuji")
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore", message="Label not .* is present in all training examples")
    tr.ExtremeRanker(max_epochs=1).fit(np.eye(8), np.eye(8))  # what is loaded once is not counted
    tables = [table_of(name, chosen) for name in chosen.sets]
    for table in tables:
        print(f"\n{table.markdown()}")


if __name__ == "__main__":
    main()
