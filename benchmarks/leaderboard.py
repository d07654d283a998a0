"""Ten million games to a leaderboard, from a file of Parquet, beside other libraries.

    python benchmarks/leaderboard.py                          # about 5 minutes on 2 cores
    python benchmarks/leaderboard.py --python PATH            # of an environment with arena-rank
    python benchmarks/leaderboard.py --quick                  # 10⁵ games of 100 sides

Games are drawn by `tierrank simulate`. Each way reads the same file in a process of its own, whose
seconds and memory are those of all that it takes: start, import, reading, estimate. What each does
differs: `tierrank aggregate` has standard errors and a page, arena-rank standard errors, evalica
and choix estimates alone. All but the first two rows take a tie for half a win and half a loss, and
their log-worths are compared with ours.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
from measure import Claim, Column, Progress, Report, Table, claims_table, error, figures, main

MOST_SECONDS = 15.0
GB = 1e6  # kilobytes

READ = """
import sys
import numpy as np, pandas as pd
path, out = sys.argv[1:]
table = pd.read_parquet(path)
sides = np.unique(np.concatenate([table["first"].unique(), table["second"].unique()]))
"""
WRITE = """
w = np.asarray(w, dtype=float)
np.savez(out, items=np.asarray(sides), w=w - w.mean())
"""
# From the table to log-worths w of the sides, by each library's own functions.
PEERS = {
    "evalica, Bradley-Terry": """
import evalica
words = {"first": evalica.Winner.X, "tie": evalica.Winner.Draw, "second": evalica.Winner.Y}
xs, ys, index = evalica.indexing(xs=table["first"], ys=table["second"])
found = evalica.bradley_terry(
    table["first"], table["second"], table["winner"].map(words), index=index, tolerance=1e-9,
    limit=10_000,
)
w = np.log(found.scores.loc[sides].to_numpy())
""",
    "choix, I-LSR": """
import choix
first, second = (np.searchsorted(sides, table[name].to_numpy()) for name in ("first", "second"))
won = table["winner"].map({"first": 1.0, "tie": 0.5, "second": 0.0}).to_numpy()
n = len(sides)
wins = np.bincount(first * n + second, won, n * n).reshape(n, n)
wins += np.bincount(second * n + first, 1 - won, n * n).reshape(n, n)
w = choix.ilsr_pairwise_dense(wins, tol=1e-9, max_iter=1000)
""",
    "arena-rank, Bradley-Terry": """
from arena_rank.models.bradley_terry import BradleyTerry
from arena_rank.utils.data_utils import PairDataset
words = {"first": 1.0, "tie": 0.5, "second": 0.0}
games = PairDataset.from_pandas(
    table, competitor_cols=["first", "second"], outcome_map=words.__getitem__
)
found = BradleyTerry(len(games.competitors)).compute_ratings_and_cis(games)
w = np.asarray(found["ratings"]) / (400 / np.log(10))
sides = np.asarray(games.competitors)
""",
}
OURS = {
    "tierrank aggregate --out page.html (davidson)": ("--out", "{}.html"),
    "tierrank aggregate --no-tiers --csv (davidson)": ("--no-tiers", "--csv", "{}.csv"),
    "tierrank aggregate --model bradley-terry --ties half --no-tiers --csv": (
        "--model", "bradley-terry", "--ties", "half", "--no-tiers", "--csv", "{}.csv"
    ),
}  # fmt: skip


class Plan(NamedTuple):
    """How many games, of how many sides."""

    games: int
    sides: int


class Run(NamedTuple):
    """Seconds of a process, those of all its threads together, and its most memory, in kilobytes.

    The second does not grow with what else the machine does.
    """

    seconds: float
    computing: float
    peak: int


def run(*command: str) -> Run | str:
    """Run a command, or say why it did not."""
    begun = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert process.stderr is not None
    said = process.stderr.read().decode()
    _, status, used = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - begun
    if status:
        return said.strip().splitlines()[-1] if said.strip() else f"ended with {status}"
    return Run(seconds, used.ru_utime + used.ru_stime, used.ru_maxrss)


def csv_worths(path: Path) -> dict[str, float]:
    """Log-worths by item, of a table that `tierrank aggregate --csv` wrote."""
    import pandas as pd

    table = pd.read_csv(path)
    return dict(zip(table["item"].astype(str), table["log_worth"], strict=True))


def measure(plan: Plan, report: Report, progress: Progress) -> list[Claim]:
    """Draw, and rank in all ways."""
    rows: list[list[Any]] = []
    claims = []
    with TemporaryDirectory() as name:
        data, out = Path(name, "games.parquet"), Path(name, "found")
        progress("drawing")
        drawn = run(
            sys.executable, "-m", "tierrank", "simulate", "--out", str(data), "--rows",
            str(plan.games), "--games", "--items", str(plan.sides),
        )  # fmt: skip
        if isinstance(drawn, str):
            raise SystemExit(drawn)
        ours: dict[str, float] = {}
        for what, options in OURS.items():
            progress(what)
            given = [option.format(out) for option in options]
            done = run(sys.executable, "-m", "tierrank", "aggregate", str(data), *given)
            if isinstance(done, str):
                raise SystemExit(done)
            rows.append([what, done.seconds, done.computing, done.peak / GB, None])
            if "--out" in options:
                claims.append(Claim("games to page, seconds", done.seconds, MOST_SECONDS))
        ours = csv_worths(Path(f"{out}.csv"))
        for what, code in PEERS.items():
            progress(what)
            python = OTHER if what.startswith("arena") and OTHER else sys.executable
            done = run(python, "-c", READ + code + WRITE, str(data), f"{out}.npz")
            if isinstance(done, str):
                rows.append([f"{what}: {done}", None, None, None, None])
                continue
            with np.load(f"{out}.npz") as found:
                theirs = dict(zip(found["items"].astype(str), found["w"], strict=True))
            off = max(abs(theirs[item] - w) for item, w in ours.items())
            rows.append([what, done.seconds, done.computing, done.peak / GB, off])
    columns = [
        Column("from Parquet"), Column("seconds", figures), Column("CPU seconds", figures),
        Column("peak, GB", figures), Column("log-worths from ours", error),
    ]  # fmt: skip
    report.add(Table(f"{plan.games:,} games of {plan.sides:,} sides", columns, rows))
    report.add(claims_table(claims))
    return claims


OTHER = ""

if __name__ == "__main__":
    if "--python" in sys.argv:
        at = sys.argv.index("--python")
        OTHER = sys.argv[at + 1]
        del sys.argv[at : at + 2]
    packages = ["torch", "numpy", "pyarrow", "pandas", "evalica", "choix", "tierrank"]
    main(__doc__.splitlines()[0], packages, measure, Plan(10_000_000, 1000), Plan(100_000, 100))
