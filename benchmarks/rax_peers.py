"""The losses of rax as contenders, where it is installed (the extra `bench`).

They are compiled for the shape of the lists, which have one length, before anything is timed.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import torch
from lists import Lists
from peers import Run
from torch import Tensor

AVAILABLE = find_spec("rax") is not None
PACKAGES = ["jax", "rax"] if AVAILABLE else []


def use_threads(threads: int) -> None:
    """Let jax have no more threads than torch: it takes as many as there are cores to run on.

    To be called before the first loss, in this process or in those that it starts.
    """
    if hasattr(os, "sched_setaffinity"):  # only Linux has it
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])


def loss(name: str, **options: Any) -> Callable[[Lists], Run]:
    """A loss of rax, summed over the lists, and its gradient, in float32."""

    def build(lists: Lists) -> Run:
        os.environ.setdefault("JAX_PLATFORMS", "cpu")
        import jax
        import rax

        function = getattr(rax, name)
        scores, labels = (_to_jax(part) for part in (lists.scores, lists.labels))
        both = jax.value_and_grad(lambda w, y: function(w, y, reduce_fn=jax.numpy.sum, **options))
        compiled = jax.jit(both).lower(scores, labels).compile()
        return lambda: jax.block_until_ready(compiled(scores, labels))

    return build


def softmax_of_labels(labels: Any, where: Any) -> Any:
    """What makes ListNet of the softmax loss."""
    import jax

    return jax.nn.softmax(labels, where=where)


def _to_jax(values: Tensor) -> Any:
    import jax

    return jax.numpy.asarray(values.to(torch.float32).numpy())
