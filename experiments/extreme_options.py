"""Options that the experiments over huge label sets share."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from extreme_data import Source

from tierrank.data.synthetic import SHAPES
from tierrank.extreme.ranker import ExtremeRanker

RATES = (1e-4, 1e-3, 1e-2)
# Section 4.2 of Ma et al. (2021), which were the defaults of `ExtremeRanker` at first.
PAPER: dict[str, Any] = {
    "features": "raw", "hidden": 256, "skip": False, "input_dropout": 0.0, "hidden_dropout": 0.0,
    "learning_rate": list(RATES), "halving": False, "batch_rows": 128, "patience": 5,
    "refit": False,
}  # fmt: skip
QUICK = {"hidden": 16, "max_epochs": 2, "learning_rate": [1e-2]}


def parser(description: str, seeds: int | None = 5) -> argparse.ArgumentParser:
    """Data, where results go, and how many fits run at once; `seeds` None: there is one fit."""
    options = argparse.ArgumentParser(description=description)
    options.add_argument(
        "--data", nargs="+", default=[], metavar="PATH",
        help="a folder of the XC repository; or files to train and test with; or features, labels, "
        "test features and test labels",
    )  # fmt: skip
    options.add_argument(
        "--synthetic", choices=tuple(SHAPES), metavar="LIKE",
        help=f"draw a set like one of {', '.join(SHAPES)}",
    )  # fmt: skip
    options.add_argument(
        "--scale", type=float, default=1.0, help="of a set that is drawn (default 1: its full size)"
    )
    options.add_argument(
        "--column", type=int, default=0, help="which split, of files of splits (default 0)"
    )
    options.add_argument("--name", help="of the data; D-1K, E-4K, W-31K and D-200K are known")
    options.add_argument(
        "--held-out", type=float, default=0.0, metavar="SHARE",
        help="judge by this share of the training rows, and leave the test rows alone: to try "
        "settings (default 0)",
    )  # fmt: skip
    options.add_argument(
        "--out", type=Path, metavar="DIR",
        help="where results and finished fits go (default out/extreme-NAME)",
    )  # fmt: skip
    options.add_argument("--threads", type=int, help="threads of one job (default: torch's choice)")
    options.add_argument("--quick", action="store_true", help="tiny networks, 2 epochs: a trial")
    options.add_argument("--seed", type=int, default=0, help="the first one (default 0)")
    if seeds is not None:
        options.add_argument("--seeds", type=int, default=seeds, help=f"how many (default {seeds})")
        options.add_argument(
            "--jobs", type=int, default=1, metavar="N",
            help="fits at once, each in a process with one thread (default 1, with all threads)",
        )  # fmt: skip
    return options


def add_training(options: argparse.ArgumentParser, rates: tuple[float, ...] = RATES) -> None:
    """How networks are trained."""
    options.add_argument(
        "--rates", type=float, nargs="+", default=list(rates), metavar="RATE",
        help="learning rates to choose from by validation (default "
        f"{' '.join(f'{rate:g}' for rate in rates)})",
    )  # fmt: skip
    options.add_argument(
        "--validation", type=float, metavar="SHARE",
        help="of the training rows, to choose and stop by (default 0.25, and 0.1 for D-200K)",
    )  # fmt: skip
    options.add_argument(
        "--set", nargs="+", default=[], metavar="NAME=VALUE",
        help="other settings of ExtremeRanker, such as hidden=512 max_epochs=50 patience=10; "
        "those of a baseline with its name, such as leml.rank=50",
    )  # fmt: skip


def source_from(chosen: argparse.Namespace) -> Source:
    """Where the data come from."""
    return Source(
        tuple(map(str, chosen.data)), chosen.synthetic, chosen.scale, name=chosen.name,
        column=chosen.column, held_out=chosen.held_out,
    )  # fmt: skip


def training_settings(chosen: argparse.Namespace, paper: str | None) -> dict[str, Any]:
    """Settings of ExtremeRanker: those of section 4.2, then --quick's, then what --set says."""
    share = chosen.validation
    if share is None:
        share = 0.1 if paper == "D-200K" else 0.25
    settings = PAPER | {"learning_rate": list(chosen.rates), "validation": share}
    if chosen.quick:
        settings |= QUICK
    return settings | named_values(chosen.set, "", ExtremeRanker())


def named_values(given: list[str], owner: str, estimator: Any) -> dict[str, Any]:
    """What --set says of an estimator: numbers, true and false, lists as in JSON, or words."""
    known = estimator.get_params(deep=False)
    found: dict[str, Any] = {}
    for text in given:
        full, equals, value = text.partition("=")
        whose, _, name = full.rpartition(".")
        if not equals:
            raise ValueError(f"--set takes NAME=VALUE, such as hidden=512, not {text!r}")
        if whose not in ("", "leml", "sleec"):
            raise ValueError(f"--set {text}: only leml and sleec have settings of their own")
        if whose != owner:
            continue
        if name not in known:
            raise ValueError(
                f"--set {text}: {type(estimator).__name__} has no setting {name!r}, but "
                f"{', '.join(sorted(known))}"
            )
        found[name] = _value(value)
    return found


def seeds_of(chosen: argparse.Namespace) -> list[int]:
    """All seeds."""
    if chosen.seeds < 1:
        raise ValueError(f"--seeds is how many, 1 or more, not {chosen.seeds}")
    return list(range(chosen.seed, chosen.seed + chosen.seeds))


def folder_of(chosen: argparse.Namespace, name: str) -> Path:
    """Where results go."""
    return chosen.out or Path("out", "extreme-" + name.replace(" ", "-"))


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
