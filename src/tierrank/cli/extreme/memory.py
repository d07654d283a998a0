"""How much memory a training will take, how much there is, and how much is in use."""

from __future__ import annotations

import os
import sys
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tierrank.extreme.ranker import ExtremeRanker

BYTES = 4  # of a weight

_MEMORY = Path("/proc/meminfo")
_MINE = Path("/proc/self/statm")


def needs(
    ranker: ExtremeRanker, n_features: int, n_labels: int, *, learning_rates: int, judged: bool
) -> dict[str, int]:
    """Bytes by what they are for, at the time when most is needed; the data come on top.

    Parameters
    ----------
    ranker
        with its settings, unfitted
    n_features, n_labels
        sizes of the first and the last layer
    learning_rates
        how many are tried
    judged
        whether there is validation data, so that the best epoch is remembered
    """
    from tierrank.extreme.network import widths

    hidden = widths(ranker.hidden)
    numbers = n_features * hidden[0] + hidden[0] + n_labels * (hidden[-1] + 1)
    numbers += sum((one + 1) * other for one, other in pairwise(hidden))
    weights = numbers * BYTES
    moments = 2 if ranker.optimiser == "adam" else 1
    # Beside the network that learns, there are those of the runs before it.
    earlier = max(int(learning_rates > 1), ranker.members - 1 + ranker.refit)
    parts = {
        "weights": weights,
        "Adam's two moments" if moments == 2 else "AdaGrad's sums": moments * weights,
        "weights of the best epoch": judged * weights,
        "weights from runs before": earlier * weights,
    }
    parts["a checkpoint, while it is written"] = weights
    return {name: size for name, size in parts.items() if size}


def available() -> int | None:
    """Bytes that programs can still have; None where the system does not say."""
    try:
        for line in _MEMORY.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    return None


def in_use() -> int | None:
    """Bytes that this process holds now, or has held at most; None where neither is known."""
    try:
        return int(_MINE.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError, AttributeError):
        pass
    try:
        import resource
    except ImportError:  # Windows
        return None
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


def size(count: float) -> str:
    """Bytes as people say them: 45.2 kB, 512 MB, 1.25 GB."""
    for least, unit in ((1e9, "GB"), (1e6, "MB")):
        if count >= 0.9995 * least:
            return f"{count / least:.3g} {unit}"
    return f"{count / 1e3:.3g} kB"
