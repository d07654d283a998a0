"""Commands in processes of their own that start fast and can be killed at any moment.

A server imports everything once and forks; it computes nothing itself, so that no thread is there
to be lost by forking.
"""

import multiprocessing
import os
import sys

_IMPORTED = (
    "tierrank.cli",
    "tierrank.cli.inputs",
    "tierrank.cli.train",
    "tierrank.cli.progress",
    "tierrank.ranking.linear",
    "tierrank.ranking.neural",
    "tierrank.ranking.boosted",
    "tierrank.extreme.ranker",
    "lightgbm",
    "lightning_fabric",
    "matplotlib.figure",
    "scipy.optimize",
)


def processes():
    """A multiprocessing context whose processes have all imports behind them."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(_IMPORTED))
    return context


def run_command(arguments):
    """Run `tierrank` in silence; the exit code is the process's."""
    sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: PTH123, SIM115
    from tierrank.cli import app

    app(arguments)
