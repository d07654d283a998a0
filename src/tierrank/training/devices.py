"""Where a model is trained: one device, or one a process under `torchrun`, by Lightning Fabric."""

from __future__ import annotations

import contextlib
import logging
import os
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, get_args

import torch

from tierrank.errors import optional
from tierrank.ranks import Ranks
from tierrank.training.settings import Accelerator, Precision

if TYPE_CHECKING:
    from lightning_fabric import Fabric


def fabric_for(accelerator: Accelerator, precision: Precision, *, several: bool = False) -> Fabric:
    """A Fabric whose processes, if `torchrun` started several, have found each other.

    The number of processes is that of `torchrun`; without it, there is one, unless `several` says
    that another launcher started them.
    """
    if precision not in get_args(Precision):
        known = " or ".join(map(repr, get_args(Precision)))
        raise ValueError(f"precision is {known}, not {precision!r}")
    optional("lightning_fabric", "training a network", "neural")
    from lightning_fabric import Fabric
    from lightning_fabric.plugins.environments.lightning import LightningEnvironment
    from lightning_fabric.plugins.environments.torchelastic import TorchElasticEnvironment

    several = several or "TORCHELASTIC_RUN_ID" in os.environ  # torchrun started this process
    processes = int(os.environ["WORLD_SIZE"]) if several else 1
    here = int(os.environ.get("LOCAL_WORLD_SIZE", processes)) if several else 1
    if processes > 1:
        Ranks.join(device_for(accelerator))  # a group of our own, which a restart finds anew
    with _quiet():
        fabric = Fabric(
            accelerator=device_for(accelerator).type,
            devices=here,
            num_nodes=processes // here,
            precision=precision,
            # Named, so that a cluster's variables do not make Fabric look for other processes.
            plugins=[TorchElasticEnvironment() if several else LightningEnvironment()],
        )
        fabric.launch()
    return fabric


def device_for(accelerator: Accelerator) -> torch.device:
    """The device that a name stands for: "auto" is a GPU of CUDA if there is one, else the CPU."""
    if accelerator not in get_args(Accelerator):
        known = ", ".join(map(repr, get_args(Accelerator)))
        raise ValueError(f"accelerator is one of {known}, not {accelerator!r}")
    there = torch.cuda.is_available()
    if accelerator == "cuda" and not there:
        raise ValueError('accelerator="cuda", but torch sees no GPU here: try "auto" or "cpu"')
    return torch.device("cpu" if accelerator == "cpu" or not there else "cuda")


@contextlib.contextmanager
def own_randomness(device: torch.device) -> Iterator[None]:
    """Leave torch's global generators as they were, whatever is drawn from them inside."""
    here = [torch.cuda.current_device()] if device.type == "cuda" else []
    with torch.random.fork_rng(devices=here):
        yield


def seed_generators(seed: int, device: torch.device) -> None:
    """Seed what draws on a device; `torch.manual_seed` would take 30 times as long."""
    torch.default_generator.manual_seed(seed)
    if device.type == "cuda":
        torch.cuda.manual_seed(seed)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep Fabric from announcing precision, processes and unused devices."""
    logger = logging.getLogger("lightning_fabric")
    before = logger.level
    logger.setLevel(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*available but not used.*")
            yield
    finally:
        logger.setLevel(before)
