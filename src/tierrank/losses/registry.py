"""Every objective by its name, as a user writes it: `pl-partition`, `p-listmle`, `ranknet`."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any, Literal, TypeVar, cast

import torch
from torch import Tensor

from tierrank import names
from tierrank.losses.reduction import Reduction, reduce
from tierrank.plackett_luce import transforms
from tierrank.plackett_luce.inputs import Scores
from tierrank.plackett_luce.scored import check_is_tiers
from tierrank.tiers import Tiers

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


def objective(name: str, family: Family, source: str) -> Callable[[Function], Function]:
    """Enter a function of (scores, tiers, *, weights, reduction) under a name.

    What all objectives need is done here, once: labels are refused where tiers belong, and the
    transforms of `torch.func` are let through.
    """
    if name not in names.OBJECTIVES:
        raise ValueError(f"enter {name!r} in tierrank.names, where the commands look for it")

    def enter(function: Function) -> Function:
        @wraps(function)
        def entered(
            scores: Any,
            tiers: Tiers,
            *,
            weights: Any = None,
            reduction: Reduction = "mean",
            **options: Any,
        ) -> Any:
            check_is_tiers(tiers)
            if isinstance(scores, Tensor) and transforms.active():
                losses = _transformed(function, Scores(scores).values, tiers, options)
                return reduce(losses, weights, reduction)
            return function(scores, tiers, weights=weights, reduction=reduction, **options)

        OBJECTIVES[name] = Entry(name, entered, family, source)
        return cast(Function, entered)

    return enter


def _transformed(
    function: Callable[..., Any], values: Tensor, tiers: Tiers, options: dict[str, Any]
) -> Tensor:
    """[lists] losses inside `torch.func`, as functions of the scores and of learned parameters."""
    learned = {n: v for n, v in options.items() if isinstance(v, Tensor) and v.ndim == 0}
    options = {n: v for n, v in options.items() if n not in learned}
    for option, value in options.items():
        transforms.refuse(f"numbers of {option}", value)
    draws = "generator" in inspect.signature(function).parameters

    def losses(x: Tensor) -> Tensor:
        if draws and not isinstance(options.get("generator"), int):  # value and derivatives: once
            seed = torch.randint(1 << 62, (), generator=options.get("generator"), device=x.device)
            options["generator"] = int(seed)
        scores = x[: values.numel()].reshape(values.shape).to(values.dtype)
        parameters = dict(zip(learned, x[values.numel() :], strict=True))
        result: Tensor = function(scores, tiers, reduction="none", **options, **parameters)
        return result

    x = torch.cat([values.reshape(-1), *(v.reshape(1) for v in learned.values())])
    return transforms.through(losses, x)


def add_module(function: Callable[..., Any], module: type) -> None:
    """Say which `nn.Module` an entered function is the heart of."""
    for name, entry in OBJECTIVES.items():
        if entry.function is function:
            OBJECTIVES[name] = replace(entry, module=module)


def find(name: str) -> Entry:
    """The objective of this name; case, hyphens and underscores do not matter."""
    return OBJECTIVES[names.objective_name(name)]
