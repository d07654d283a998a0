"""What lets `torch.func` (grad, jacrev, jacfwd, hessian, vmap) pass through a function of scores.

Its transforms hand out tensors without values: no kernel can compute with them, and no check can
look at them. `autograd.Function` is torch's way to stop them: at the bottom, `forward` gets
ordinary tensors. So a function f of one tensor x is wrapped as a whole, and its derivatives are
taken by ordinary autograd, inside. With J the Jacobian of f and H_l the Hessian of its l-th value:

    value(x) = f,    jvp(x, v) = J v,    vjp(x, u) = Jᵀ u,    hvp(x, u, v) = Σ_l u_l H_l v

Each computes f anew, and a batch is a loop: the plain way, and only where a transform is active.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd import grad

Compute = Callable[[Tensor], Tensor]


def active() -> bool:
    """Whether we are inside a transform of `torch.func`."""
    return not torch.compiler.is_compiling() and torch._C._are_functorch_transforms_active()


def refuse(what: str, value: Any) -> None:
    """Refuse what a transform differentiates or batches, where it is a constant to us."""
    wrapped = torch._C._functorch.is_functorch_wrapped_tensor
    if isinstance(value, Tensor) and not torch.compiler.is_compiling() and wrapped(value):
        raise ValueError(
            f"{what} are constants, with no gradient and no batches: leave them out of what "
            "torch.func transforms"
        )


def through(compute: Compute, x: Tensor) -> Tensor:
    """`compute(x)`, for any transform; `compute` only ever gets ordinary tensors."""
    return _Value.of(compute, x)


def once(gradient: Tensor, message: str, *of: Tensor) -> Tensor:
    """The gradient as it was computed, of which autograd is not to believe that it is constant.

    It may be multiplied, and differentiated by what it is multiplied with. Where its own
    derivative by `of` is asked for, the message says that there is none.
    """
    return _Once.apply(gradient, message, *of)  # type: ignore[no-any-return, no-untyped-call]


class _Once(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, gradient: Tensor, message: str, *of: Tensor) -> Tensor:
        ctx.message = message
        return gradient.clone()

    @staticmethod
    def backward(ctx: Any, *_: Tensor) -> Any:
        raise NotImplementedError(ctx.message)


class _Looped(torch.autograd.Function):
    """A function of a callable and of tensors; of a batch, one slice after the other."""

    @classmethod
    def of(cls, compute: Compute, *tensors: Tensor) -> Tensor:
        return cls.apply(compute, *tensors)  # type: ignore[no-any-return, no-untyped-call]

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.compute, *tensors = inputs
        ctx.save_for_backward(*tensors)
        ctx.save_for_forward(*tensors)

    @classmethod
    def vmap(
        cls, info: Any, in_dims: tuple[int | None, ...], compute: Compute, *tensors: Tensor
    ) -> tuple[Tensor, int]:
        batches = (
            tensor.expand(info.batch_size, *tensor.shape) if at is None else tensor.movedim(at, 0)
            for tensor, at in zip(tensors, in_dims[1:], strict=True)
        )
        return torch.stack([cls.of(compute, *each) for each in zip(*batches, strict=True)]), 0


class _Value(_Looped):
    @staticmethod
    def forward(compute: Compute, x: Tensor) -> Tensor:
        return compute(x)

    @staticmethod
    def backward(ctx: Any, u: Tensor) -> tuple[None, Tensor]:
        return None, _Vjp.of(ctx.compute, *ctx.saved_tensors, u)

    @staticmethod
    def jvp(ctx: Any, _: None, dx: Tensor) -> Tensor:
        return _Jvp.of(ctx.compute, *ctx.saved_tensors, dx)


class _Vjp(_Looped):
    @staticmethod
    def forward(compute: Compute, x: Tensor, u: Tensor) -> Tensor:
        leaf, value = _value(compute, x)
        return _derivative(value, leaf, u)

    @staticmethod
    def backward(ctx: Any, v: Tensor) -> tuple[Tensor | None, ...]:
        x, u = ctx.saved_tensors
        _, by_x, by_u = ctx.needs_input_grad
        to_x = _Hvp.of(ctx.compute, x, u, v) if by_x else None
        return None, to_x, _Jvp.of(ctx.compute, x, v) if by_u else None

    @staticmethod
    def jvp(ctx: Any, _: None, dx: Tensor, du: Tensor) -> Tensor:
        x, u = ctx.saved_tensors
        return _Hvp.of(ctx.compute, x, u, dx) + _Vjp.of(ctx.compute, x, du)


class _Jvp(_Looped):
    @staticmethod
    def forward(compute: Compute, x: Tensor, v: Tensor) -> Tensor:
        leaf, value = _value(compute, x)
        u = torch.zeros_like(value, requires_grad=True)  # Jᵀ u is linear in u: its derivative is J
        return _derivative(_derivative(value, leaf, u, again=True), u, v)

    @staticmethod
    def backward(ctx: Any, u: Tensor) -> tuple[Tensor | None, ...]:
        x, v = ctx.saved_tensors
        _, by_x, by_v = ctx.needs_input_grad
        to_x = _Hvp.of(ctx.compute, x, u, v) if by_x else None
        return None, to_x, _Vjp.of(ctx.compute, x, u) if by_v else None

    @staticmethod
    def jvp(ctx: Any, *_: Any) -> Tensor:
        raise NotImplementedError(
            "forward mode over forward mode has no rule here: use torch.func.hessian, or jacrev "
            "for one of the two"
        )


class _Hvp(_Looped):
    @staticmethod
    def forward(compute: Compute, x: Tensor, u: Tensor, v: Tensor) -> Tensor:
        leaf, value = _value(compute, x)
        return _derivative(_derivative(value, leaf, u, again=True), leaf, v)

    @staticmethod
    def backward(ctx: Any, w: Tensor) -> tuple[Tensor | None, ...]:
        if ctx.needs_input_grad[1] or ctx.needs_input_grad[2]:
            raise NotImplementedError(_THIRD)
        x, u, _ = ctx.saved_tensors
        return None, None, None, _Hvp.of(ctx.compute, x, u, w)  # H is symmetric

    @staticmethod
    def jvp(ctx: Any, *_: Any) -> Tensor:
        raise NotImplementedError(_THIRD)


_THIRD = "this asks for a third derivative, and the scores can be differentiated twice"


def _value(compute: Compute, x: Tensor) -> tuple[Tensor, Tensor]:
    """A leaf of a new graph, and f of it."""
    leaf = x.detach().requires_grad_()
    with torch.enable_grad():
        return leaf, compute(leaf)


def _derivative(value: Tensor, leaf: Tensor, u: Tensor, again: bool = False) -> Tensor:
    """Jᵀ u of value by leaf, to be differentiated again or not; 0 where value is a constant."""
    if not value.requires_grad:
        return torch.zeros_like(leaf)
    with torch.enable_grad():
        return grad(value, leaf, u, create_graph=again, materialize_grads=True)[0]
