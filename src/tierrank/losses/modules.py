"""The objectives as `torch.nn.Module`: options are fixed once, and ties may be learned."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from tierrank.losses import (
    approximation,
    likelihood,
    listwise,
    ordered_partition,
    pairwise,
)
from tierrank.losses.reduction import Reduction
from tierrank.losses.registry import add_module, find
from tierrank.plackett_luce.inputs import Scores
from tierrank.randomness import as_generator
from tierrank.tiers import Tiers


class Objective(nn.Module):
    """A function of this package with its options fixed: ``module(scores, tiers, weights)``.

    The options are the function's own. An integer as `generator` seeds one generator for all
    calls, so that each call draws anew.

    Examples
    --------
    >>> import torch, tierrank as tr
    >>> loss = tr.losses.PLTopK(k=2, reduction="sum")
    >>> loss
    PLTopK(k=2, reduction='sum')
    >>> loss(torch.zeros(4), tr.Tiers.from_labels([3, 2, 1, 0]))  # one of 4 · 3 beginnings
    tensor(2.4849)
    """

    function: ClassVar[Callable[..., Any]]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "function" in cls.__dict__:
            add_module(cls.function, cls)

    def __init__(self, *, reduction: Reduction = "mean", **options: Any) -> None:
        super().__init__()
        known = inspect.signature(type(self).function).parameters
        for name in options:
            if name not in known or name in ("scores", "tiers", "weights"):
                raise TypeError(f"{type(self).__name__} has no option {name!r}")
        if reduction not in ("mean", "sum", "none"):
            raise ValueError(f'reduction is "mean", "sum" or "none", not {reduction!r}')
        self.reduction: Reduction = reduction
        self.options = options

    def forward(self, scores: Any, tiers: Tiers, weights: Any = None) -> Any:
        """The loss; scores, tiers and weights as the function takes them."""
        if isinstance(self.options.get("generator"), int):  # one for all calls, where they are
            self.options["generator"] = as_generator(
                self.options["generator"], Scores(scores).values.device
            )
        return type(self).function(
            scores, tiers, **self.options, weights=weights, reduction=self.reduction
        )

    def extra_repr(self) -> str:
        given = {**self.options, "reduction": self.reduction}
        return ", ".join(f"{name}={value!r}" for name, value in given.items())


def from_name(name: str, **options: Any) -> Objective:
    """The objective of this name as a module, for instance ``from_name("pl-topk", k=5)``.

    Case, hyphens and underscores do not matter; `OBJECTIVES` lists all of them.
    """
    module: type[Objective] = find(name).module
    return module(**options)


class _PairedTies(Objective):
    """An objective with one number to learn beside the scores: how probable ties are."""

    parameter: ClassVar[str]

    def __init__(self, start: float, reduction: Reduction) -> None:
        super().__init__(reduction=reduction)
        self.register_parameter(self.parameter, nn.Parameter(torch.tensor(float(start))))

    def forward(self, scores: Any, tiers: Tiers, weights: Any = None) -> Any:
        tie = {self.parameter: getattr(self, self.parameter)}
        return type(self).function(scores, tiers, **tie, weights=weights, reduction=self.reduction)


class PLPartition(Objective):
    """`pl_partition` as a module."""

    function = staticmethod(likelihood.pl_partition)


class PLLowerBound(Objective):
    """`pl_lower_bound` as a module."""

    function = staticmethod(approximation.pl_lower_bound)


class PLEfron(Objective):
    """`pl_efron` as a module."""

    function = staticmethod(approximation.pl_efron)


class PLTopK(Objective):
    """`pl_top_k` as a module."""

    function = staticmethod(likelihood.pl_top_k)


class ListMLE(Objective):
    """`list_mle` as a module."""

    function = staticmethod(likelihood.list_mle)


class PListMLE(Objective):
    """`p_list_mle` as a module."""

    function = staticmethod(likelihood.p_list_mle)


class ListNet(Objective):
    """`list_net` as a module."""

    function = staticmethod(listwise.list_net)


class AttRank(Objective):
    """`att_rank` as a module."""

    function = staticmethod(listwise.att_rank)


class RankCosine(Objective):
    """`rank_cosine` as a module."""

    function = staticmethod(listwise.rank_cosine)


class RankNet(Objective):
    """`ranknet` as a module."""

    function = staticmethod(pairwise.ranknet)


class RankSVM(Objective):
    """`rank_svm` as a module."""

    function = staticmethod(pairwise.rank_svm)


class RankRegress(Objective):
    """`rank_regress` as a module."""

    function = staticmethod(pairwise.rank_regress)


class RaoKupper(_PairedTies):
    """`rao_kupper` as a module that learns α: θ = 1 + e^α."""

    function = staticmethod(pairwise.rao_kupper)
    parameter = "alpha"
    alpha: Tensor

    def __init__(self, alpha: float = 0.0, *, reduction: Reduction = "mean") -> None:
        super().__init__(alpha, reduction)


class Davidson(_PairedTies):
    """`davidson` as a module that learns β: v = e^β."""

    function = staticmethod(pairwise.davidson)
    parameter = "beta"
    beta: Tensor

    def __init__(self, beta: float = 0.0, *, reduction: Reduction = "mean") -> None:
        super().__init__(beta, reduction)


class CoxDiscrete(Objective):
    """`cox_discrete` as a module."""

    function = staticmethod(ordered_partition.cox_discrete)


class PMOPFD(Objective):
    """`pmop_fd` as a module."""

    function = staticmethod(ordered_partition.pmop_fd)


class PMOPExact(Objective):
    """`pmop_exact` as a module."""

    function = staticmethod(ordered_partition.pmop_exact)


class PMOPGibbs(Objective):
    """`pmop_gibbs` as a module."""

    function = staticmethod(ordered_partition.pmop_gibbs)


class PMOPMH(Objective):
    """`pmop_mh` as a module."""

    function = staticmethod(ordered_partition.pmop_mh)
