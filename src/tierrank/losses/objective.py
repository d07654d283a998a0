"""What all objectives share: functions entered, modules, reduction, one pass of the native core."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from functools import cache, wraps
from typing import Any, ClassVar, Literal, NamedTuple, TypeVar, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd.forward_ad import unpack_dual

from tierrank import _native
from tierrank._types import AnyArray, FloatArray
from tierrank.losses.record import Entry, find
from tierrank.plackett_luce import transforms
from tierrank.plackett_luce.kernels import checked_layout, compiled_for, scale_lists
from tierrank.plackett_luce.lists import FlatLists, Scores, can_look, check_is_tiers, list_weights
from tierrank.tiers import Tiers
from tierrank.tiers.arrays import as_generator

Function = TypeVar("Function", bound=Callable[..., Any])
Reduction = Literal["mean", "sum", "none"]


# -- functions ----------------------------------------------------------------------------------


def objective(function: Function) -> Function:
    """Make an objective of a function of (scores, tiers, *, weights, reduction).

    What all of them need is done here, once: labels are refused where tiers belong, and the
    transforms of `torch.func` are let through.
    """

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

    return cast(Function, entered)


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


def reduced(given: Scores, losses: Tensor, weights: Any, reduction: Reduction) -> Any:
    """What every objective ends with: [lists] losses, reduced, and of the scores' kind."""
    return given.same_kind(reduce(losses.to(given.values.dtype), weights, reduction))


def reduce(losses: Tensor, weights: Any, reduction: Reduction) -> Tensor:
    """Weight the [lists] losses and take their mean (by total weight), their sum, or neither."""
    weighted = losses
    total: int | Tensor = len(losses)
    if weights is not None:
        by_list = list_weights(weights, losses.detach())
        weighted, total = losses * by_list, by_list.sum()
    if reduction == "none":
        return weighted
    if reduction == "sum":
        return weighted.sum()
    if reduction == "mean":
        if (isinstance(total, int) or can_look()) and not total > 0:
            raise ValueError("there is no mean over no lists, or over lists that all weigh 0")
        return weighted.mean() if weights is None else weighted.sum() / total
    raise _no_reduction(reduction)


def _no_reduction(reduction: Any) -> ValueError:
    return ValueError(f'reduction is "mean", "sum" or "none", not {reduction!r}')


# -- modules ------------------------------------------------------------------------------------


class Objective(nn.Module):
    """A function of this package with its options fixed: ``module(scores, tiers, weights)``.

    The options are the function's own. An integer as `generator` seeds one generator for all
    calls, so that each call draws anew. `RaoKupper` and `Davidson` learn how probable ties are:
    their α and β are parameters, which start from the option.

    Parameters
    ----------
    *start
        Where the parameter of ties starts, in modules that learn one.
    reduction : {"mean", "sum", "none"}
        "mean" over the lists (by weight), "sum", or "none" for a loss a list.
    **options
        Of the function; a name that it does not have is refused.

    See Also
    --------
    from_name : An objective by its name.
    PLPartition : The exact likelihood as a module.

    Examples
    --------
    >>> import torch, tierrank as tr
    >>> loss = tr.losses.PLTopK(k=2, reduction="sum")
    >>> loss
    PLTopK(k=2, reduction='sum')
    >>> loss(torch.zeros(4), tr.Tiers.from_labels([3, 2, 1, 0]))  # one of 4 · 3 beginnings
    tensor(2.4849)
    """

    entry: ClassVar[Entry]

    def __init__(self, *start: float, reduction: Reduction = "mean", **options: Any) -> None:
        super().__init__()
        entry, kind = self.entry, type(self).__name__
        for name in options:
            if name not in entry.options:
                raise TypeError(f"{kind} has no option {name!r}")
        if reduction not in ("mean", "sum", "none"):
            raise _no_reduction(reduction)
        self.reduction: Reduction = reduction
        self.options = options
        learned = entry.tie_parameter
        if len(start) > (learned is not None):
            raise TypeError(f"{kind} takes its options by name")
        if learned is not None:
            begin = start[0] if start else options.pop(learned, entry.options[learned].default)
            self.register_parameter(learned, nn.Parameter(torch.tensor(float(begin))))

    def forward(self, scores: Any, tiers: Tiers, weights: Any = None) -> Any:
        """Compute the loss; calling the module does.

        Parameters
        ----------
        scores : array_like
            A score an item, as the function takes them.
        tiers : Tiers
            The lists.
        weights : array_like, optional
            [lists] how much each list counts.

        Returns
        -------
        Tensor or ndarray
            The loss, of the kind that the scores are.

        Raises
        ------
        ValueError
            A score is NaN or infinite, or a shape is wrong.

        See Also
        --------
        from_name : Any objective by its name.

        Examples
        --------
        >>> import torch, tierrank as tr
        >>> tr.losses.PLPartition()(torch.zeros(3), tr.Tiers.from_labels([1, 0, 0]))  # log 3
        tensor(1.0986)
        """
        if isinstance(self.options.get("generator"), int):  # one for all calls, where they are
            self.options["generator"] = as_generator(
                self.options["generator"], Scores(scores).values.device
            )
        entry, options = self.entry, self.options
        if entry.tie_parameter is not None:
            options = {**options, entry.tie_parameter: getattr(self, entry.tie_parameter)}
        return entry.function(scores, tiers, **options, weights=weights, reduction=self.reduction)

    def extra_repr(self) -> str:
        given = {**self.options, "reduction": self.reduction}
        return ", ".join(f"{name}={value!r}" for name, value in given.items())


_MODULE = """Module of `{entry.function_name}`{ends}.

Parameters
----------
{parameters}
See Also
--------
{entry.function_name} : The function, with the formula.
from_name : Any objective by its name.

Examples
--------
>>> import torch, tierrank as tr
>>> loss = tr.losses.{entry.module_name}()
>>> scores = torch.tensor([1.0, 0.0, -1.0], requires_grad=True)
>>> loss(scores, tr.Tiers.from_labels([1, 0, 2])).backward()
"""


@cache
def module_of(entry: Entry) -> type[Objective]:
    """The class of an entry, which its name in `tierrank.losses` leads to."""
    learned = entry.tie_parameter
    ends = "" if learned is None else f" that learns {learned}"
    options = [
        option.replace(kind=option.POSITIONAL_OR_KEYWORD) if name == learned else option
        for name, option in entry.options.items()
    ]
    reduction = inspect.signature(entry.function).parameters["reduction"]
    told = inspect.getdoc(entry.function) or ""  # of which the options are told again
    said = dict(re.findall(r"^(\w+)( : .*\n(?:    .*\n)+)", told, flags=re.MULTILINE))
    parameters = "".join(f"{name}{said.get(name, '')}" for name in (*entry.options, "reduction"))
    body = {
        "__doc__": _MODULE.format(entry=entry, ends=ends, parameters=parameters),
        "__module__": "tierrank.losses",
        "__signature__": inspect.Signature([*options, reduction]),
        "entry": entry,
    }
    return type(entry.module_name, (Objective,), body)


def from_name(name: str, **options: Any) -> Objective:
    """Make the objective of this name, as a module.

    Case, hyphens and underscores do not matter; `OBJECTIVES` lists all of them.

    Parameters
    ----------
    name : str
        As `OBJECTIVES` has it.
    **options
        Of the function, and ``reduction``.

    Returns
    -------
    Objective
        The module.

    Raises
    ------
    ValueError
        There is no objective of this name; the message has those that there are.

    See Also
    --------
    find : All that is known of an objective.
    Objective : What all modules are.

    Examples
    --------
    >>> import tierrank as tr
    >>> tr.losses.from_name("pl-topk", k=5)
    PLTopK(k=5, reduction='mean')
    """
    return find(name).module(**options)


# -- value and gradient in one pass ---------------------------------------------------------------
#
# The native core computes for the CPU, outside of `torch.compile`. Elsewhere, and where a second
# derivative is asked for, the objective's formula in torch does.


class Pass(NamedTuple):
    """What a kernel takes, and what it fills; no gradients where none are asked for."""

    scores: AnyArray  # [rows]
    value: AnyArray  # [lists], in float64
    gradient: AnyArray | None = None  # [rows], in the scores' float
    bottom_gradient: AnyArray | None = None  # [lists], float64; none if nothing is below


Kernel = Callable[[FlatLists, Pass], bool]  # says whether all scores are finite
Formula = Callable[[Tensor], Tensor]


def in_one_pass(values: Tensor, tiers: Tiers, kernel: Kernel, formula: Formula) -> Tensor:
    """[lists] losses, in the scores' own float: minus what kernel and formula give.

    The kernel computes where it can, and the formula elsewhere.
    """
    if not native_computes(values):
        return -formula(values).to(values.dtype)
    if torch.is_grad_enabled() and values.requires_grad:
        return _OnePass.apply(values, tiers, kernel, formula)  # type: ignore[no-any-return, no-untyped-call]
    return _compute(values, tiers, kernel, formula, with_gradient=False)[0]


def fill_stages(
    choice: Literal["breslow", "efron", "subset", "subset, backward"],
    lists: FlatLists,
    arrays: Pass,
) -> bool:
    """Log-probabilities of tiers that are chosen one after the other (`native/stages.hpp`).

    Without their terms in which no score appears.
    """
    scores, value, gradient, bottom_gradient = arrays
    bottom = None if lists.rest is None else lists.bottom.numpy()
    threads = torch.get_num_threads()
    layout = checked_layout(lists.layout)
    return _native.staged_log_prob(
        choice, layout, scores, bottom, threads, value, gradient, bottom_gradient
    )


def stage_hessian(
    choice: Literal["breslow", "efron", "one draw"], rows: FloatArray, tiers: Tiers
) -> FloatArray:
    """[rows] diagonal of the Hessian of such tiers, of [rows] scores sorted by list and tier.

    For "one draw", of a subset by one of its items, without the part that is concave.
    """
    out = np.empty(len(rows))
    _native.stage_hessians(
        choice, rows, tiers.tier_offsets.numpy(), tiers.list_offsets.numpy(),
        torch.get_num_threads(), out,
    )  # fmt: skip
    return out


def shares_a_rest(values: Tensor, tiers: Tiers) -> bool:
    """Whether lists share their scores and leave part of the catalogue unwritten."""
    return tiers.rest and len(tiers) > 1 and values.dim() == 1


def native_computes(values: Tensor) -> bool:
    """Whether the native core takes these: on the CPU, outside of graphs and of forward mode."""
    return (
        not torch.compiler.is_compiling()
        and compiled_for(values.device)
        and unpack_dual(values).tangent is None  # forward mode goes through the formula
    )


def _compute(
    values: Tensor, tiers: Tiers, kernel: Kernel, formula: Formula, with_gradient: bool
) -> tuple[Tensor, FlatLists, Pass]:
    lists = FlatLists(values.detach(), tiers)
    scores = lists.rows.contiguous().numpy()
    arrays = Pass(
        scores,
        np.empty(len(tiers)),
        np.empty_like(scores) if with_gradient else None,
        np.empty(len(tiers)) if with_gradient and lists.rest is not None else None,
    )
    if not kernel(lists, arrays):
        formula(values)  # refuses the scores, in its own words
    return torch.from_numpy(-arrays.value).to(values.dtype), lists, arrays


class _OnePass(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor, tiers: Tiers, kernel: Kernel, formula: Formula) -> Tensor:
        loss, ctx.lists, ctx.arrays = _compute(values, tiers, kernel, formula, with_gradient=True)
        ctx.save_for_backward(values)
        ctx.formula = formula
        return loss

    @staticmethod
    def backward(ctx: Any, by_loss: Tensor) -> tuple[Tensor | None, ...]:
        (values,) = ctx.saved_tensors
        if torch.is_grad_enabled():  # a second derivative may be asked for
            loss = -ctx.formula(values).to(by_loss.dtype)
            (by_scores,) = torch.autograd.grad(loss, values, by_loss, create_graph=True)
        else:
            by_scores = _to_scores(ctx.lists, ctx.arrays, -by_loss)
        return by_scores, None, None, None


def _to_scores(lists: FlatLists, arrays: Pass, factor: Tensor) -> Tensor:
    """The gradients by rows and by the bottom, times a factor [lists], where the scores stand."""
    assert arrays.gradient is not None
    flat = scale_lists(torch.from_numpy(arrays.gradient), lists.layout[0], factor)
    if lists.gather is not None:
        flat = flat.new_zeros(lists.values.numel()).index_add_(0, lists.gather, flat)
    if lists.rest is not None and arrays.bottom_gradient is not None:
        by_bottom = torch.from_numpy(arrays.bottom_gradient) * factor
        flat = flat + lists.rest.spread(by_bottom).to(flat.dtype)
    return flat.view(lists.values.shape)
