"""Every objective by its name, as a user writes it: `pl-partition`, `p-listmle`, `ranknet`."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar

Family = Literal["likelihood", "listwise", "pairwise", "ordered partition"]
Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True)
class Entry:
    """One objective: its name, the function, its family, where it was published, its module."""

    name: str
    function: Callable[..., Any]
    family: Family
    source: str
    module: Any = None

    @property
    def summary(self) -> str:
        """The first line of the function's documentation, without the source."""
        line = (self.function.__doc__ or "").strip().splitlines()[0]
        return re.sub(r" \([^()]*\)\.?$", "", line).rstrip(".")


OBJECTIVES: dict[str, Entry] = {}

_BY_NDCG = "weighs the pairs of ranknet by NDCG, which no objective here does"
THEIRS = {
    "lambdarank": _BY_NDCG,
    "rank:ndcg": _BY_NDCG,
    "rank:map": "weighs the pairs of ranknet by MAP, which no objective here does",
    "rank:pairwise": "is called ranknet here",
    "rank_xendcg": "is a cross entropy as listnet is, with other targets",
}
"""What the objectives of LightGBM and XGBoost are, to those who look for them here."""


def objective(name: str, family: Family, source: str) -> Callable[[Function], Function]:
    """Enter a function of (scores, tiers, *, weights, reduction) under a name."""

    def enter(function: Function) -> Function:
        OBJECTIVES[name] = Entry(name, function, family, source)
        return function

    return enter


def add_module(function: Callable[..., Any], module: type) -> None:
    """Say which `nn.Module` an entered function is the heart of."""
    for name, entry in OBJECTIVES.items():
        if entry.function is function:
            OBJECTIVES[name] = replace(entry, module=module)


def find(name: str) -> Entry:
    """The objective of this name; case, hyphens and underscores do not matter."""
    plain = {_plain(known): entry for known, entry in OBJECTIVES.items()}
    if _plain(name) in plain:
        return plain[_plain(name)]
    if name in THEIRS:
        raise ValueError(
            f"there is no objective {name!r}: it {THEIRS[name]}. Begin with 'pl-partition', the "
            f"exact likelihood. The objectives are {', '.join(OBJECTIVES)}"
        )
    close = difflib.get_close_matches(_plain(name), plain, n=1)
    hint = f"did you mean {plain[close[0]].name!r}? " if close else ""
    raise ValueError(
        f"there is no objective {name!r}; {hint}The objectives are {', '.join(OBJECTIVES)}"
    )


def _plain(name: str) -> str:
    return re.sub(r"[-_\s]", "", name.lower())
