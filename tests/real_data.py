"""Where the real data sets are; tests that need one are skipped, saying so, where it is absent."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

DATA = Path(os.environ.get("TIERRANK_DATA", Path(__file__).parents[2] / "shared" / "data"))


def real(*parts: str) -> Path:
    """The path of a data set, or a skipped test."""
    path = DATA.joinpath(*parts)
    if not path.exists():
        pytest.skip(f"there is no {path}: set TIERRANK_DATA to where the data sets are")
    return path
