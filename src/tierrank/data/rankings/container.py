"""The container: rankings with ties, each with how often it was given."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from tierrank.tiers import Tiers

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class Rankings:
    """Rankings with ties, each with how often it was given.

    What the readers of rankings give and the writers take. ``len(rankings)`` is the number of
    lists.

    Attributes
    ----------
    tiers
        the lists, over a catalogue of items (`Tiers.from_rankings`, `Tiers.from_preferences`)
    weights
        [lists] positive and finite: how often each list was given (read-only)

    Examples
    --------
    >>> Rankings.from_rankings([["ann", ("bob", "cy")], ["cy", "ann"]], weights=[3, 1])
    Rankings(2 lists of weight 4, 3 items)
      3 × ann > {bob, cy}
      1 × cy > ann
    """

    tiers: Tiers
    weights: FloatArray

    def __post_init__(self) -> None:
        if not isinstance(self.tiers, Tiers) or self.tiers.n_items is None:
            raise ValueError(
                "tiers must be a Tiers over a catalogue of items, as Tiers.from_rankings gives it: "
                "rows of labels are no rankings of items that lists share."
            )
        object.__setattr__(self, "weights", _checked(self.weights, len(self.tiers)))

    @classmethod
    def from_rankings(
        cls,
        rankings: Any,
        items: Any = None,
        weights: Any = None,
        rest: Literal["absent", "last"] = "absent",
    ) -> Rankings:
        """Build from rankings of named items, best first, where a tuple or set is a tie.

        Parameters
        ----------
        rankings, items, rest
            as in `Tiers.from_rankings`
        weights
            [lists] how often each was given; None for once

        Examples
        --------
        >>> Rankings.from_rankings([[2], [0, 1]], items=4, rest="last")
        Rankings(2 lists of weight 2, 4 items)
          1 × 2 > the other 3
          1 × 0 > 1 > the other 2
        """
        tiers = Tiers.from_rankings(rankings, items=items, rest=rest)
        return cls(tiers, np.ones(len(tiers)) if weights is None else weights)

    @property
    def items(self) -> tuple[Any, ...]:
        """The names of the items, or their numbers 0, 1, ... if they have none."""
        if self.tiers.names is not None:
            return self.tiers.names
        return tuple(range(self.tiers.n_items or 0))

    def __len__(self) -> int:
        return len(self.tiers)

    def __repr__(self) -> str:
        lists, items = _count(len(self), "list"), _count(self.tiers.n_items or 0, "item")
        # The tiers show a few lists themselves, one a line: "  list 0: a > b".
        shown = repr(replace(self.tiers[:_LISTS_SHOWN], keys=None)).splitlines()[1:]
        weights = [short(weight) for weight in self.weights[:_LISTS_SHOWN].tolist()]
        width = max(map(len, weights), default=0)
        lines = [f"Rankings({lists} of weight {short(float(self.weights.sum()))}, {items})"]
        for weight, line in zip(weights, shown, strict=False):
            lines.append(f"  {weight:>{width}} × {line.partition(': ')[2]}")
        if len(self) >= len(lines):
            lines.append(f"  ... {len(self) - len(lines) + 1:,} more")
        return "\n".join(lines)


_LISTS_SHOWN = 2


def _checked(weights: Any, lists: int) -> FloatArray:
    """Give the weights as a read-only copy in float64."""
    try:
        values = np.array(weights, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"weights must be numbers, one a list: {error}.") from None
    if values.shape != (lists,):
        raise ValueError(
            f"weights have shape {values.shape}, but there are {lists} lists: give one a list."
        )
    bad = ~(np.isfinite(values) & (values > 0))
    if bad.any():
        at = int(bad.argmax())
        raise ValueError(
            f"the weight of list {at} is {values[at]}: weights are positive and finite. Leave out "
            "lists that nobody gave."
        )
    values.flags.writeable = False
    return values


def short(value: float) -> str:
    """A weight as people write it: whole numbers without a fraction."""
    return f"{value:,.0f}" if value.is_integer() and value < 1e15 else f"{value:.6g}"


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" + ("" if number == 1 else "s")
