"""How trees are to be grown, in words that both libraries know."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any, Protocol

from tierrank.ranking.boosting.forest import Forest
from tierrank.ranking.inputs import Array
from tierrank.training.settings import check_count, check_size


@dataclass(frozen=True)
class TreeSettings:
    """What `BoostedRanker` was told, checked."""

    learning_rate: float
    leaves: int
    depth: int | None
    min_rows_per_leaf: int | None
    min_hessian_per_leaf: float
    l2: float
    row_fraction: float
    feature_fraction: float
    bins: int
    threads: int
    library_params: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        whole = {"leaves": 2, "bins": 2, "threads": 1, "depth": 1, "min_rows_per_leaf": 1}
        for name, least in whole.items():
            value = getattr(self, name)
            if value is not None or name not in ("depth", "min_rows_per_leaf"):
                check_count(name, value, least=least)
        for name in ("l2", "min_hessian_per_leaf"):
            check_size(name, getattr(self, name), zero=True)
        for name, most in (("learning_rate", 1e6), ("row_fraction", 1), ("feature_fraction", 1)):
            if not 0 < getattr(self, name) <= most:
                raise ValueError(
                    f"{name} is a number above 0, up to {most:g}, not {getattr(self, name)!r}"
                )

    def checked_params(self, ours: Collection[str]) -> dict[str, Any]:
        """`library_params`, without those that are not the library's to decide."""
        for name in self.library_params:
            if name in ours:
                raise ValueError(
                    f"library_params may not have {name!r}: the ranker sets it, by an argument of "
                    "its own, or cannot do with another value"
                )
        return self.library_params


class Grower(Protocol):
    """A library that grows trees on fixed rows, from scores and derivatives that it is given."""

    def start(self, scores: Array, valid_scores: Array | None, seed: int) -> None:
        """Begin anew, from these scores: what was grown before is forgotten."""

    def grow(self, gradient: Array, hessian: Array) -> bool:
        """Add a tree; False if no split was worth it, so that there is none."""

    def scores(self) -> Array:
        """[rows] scores of the training rows, trees added."""

    def valid_scores(self) -> Array:
        """[rows] scores of the validation rows, trees added."""

    def forest(self) -> Forest:
        """The trees since the start."""
