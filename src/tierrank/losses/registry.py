"""Every objective by its name, as a user writes it: `pl-partition`, `p-listmle`, `ranknet`."""

from __future__ import annotations

import difflib
import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any, Literal, TypeVar, cast

import torch
from torch import Tensor

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

_BY_NDCG = "weighs the pairs of ranknet by NDCG, which no objective here does"
THEIRS = {
    "lambdarank": _BY_NDCG,
    "lambdamart": _BY_NDCG,
    "rank:ndcg": _BY_NDCG,
    "rank:map": "weighs the pairs of ranknet by MAP, which no objective here does",
    "rank:pairwise": "is called ranknet here",
    "rank_xendcg": "is a cross entropy as listnet is, with other targets",
}
"""What the objectives of LightGBM and XGBoost are, to those who look for them here."""


def objective(name: str, family: Family, source: str) -> Callable[[Function], Function]:
    """Enter a function of (scores, tiers, *, weights, reduction) under a name.

    What all objectives need is done here, once: labels are refused where tiers belong, and the
    transforms of `torch.func` are let through.
    """

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
    plain = {_plain(known): entry for known, entry in OBJECTIVES.items()}
    if _plain(name) in plain:
        return plain[_plain(name)]
    if (known := theirs(name)) is not None:
        raise ValueError(
            f"there is no objective {name!r}: it {known}. Begin with 'pl-partition', the "
            f"exact likelihood. The objectives are {', '.join(OBJECTIVES)}"
        )
    close = difflib.get_close_matches(_plain(name), plain, n=1)
    hint = f"did you mean {plain[close[0]].name!r}? " if close else ""
    raise ValueError(
        f"there is no objective {name!r}; {hint}The objectives are {', '.join(OBJECTIVES)}"
    )


def theirs(name: str) -> str | None:
    """What an objective of LightGBM or XGBoost is here; None of any other name."""
    return {_plain(known): what for known, what in THEIRS.items()}.get(_plain(name))


def _plain(name: str) -> str:
    return re.sub(r"[-_\s]", "", name.lower())
