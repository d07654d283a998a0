"""How far the cheap stand-ins for the exact likelihood are from it, as tiers grow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import torch
from lists import Lists, best_first
from measure import Column, Table, figures
from peers import value_and_gradient
from torch import Tensor

from tierrank.losses import OBJECTIVES

NAMES = {"pl-lb": "PL-LB", "pl-efron": "PL-Efron"}
BELOW = {1: "as many items", 10: "10 times as many items"}


class Distance(NamedTuple):
    """Of an approximation from the exact value and gradient: means over lists."""

    nats: float  # by which log P is too low
    nats_an_item: float  # of the tier
    gradient: float  # ‖g − exact g‖ / ‖exact g‖
    cosine: float  # between the gradients


Distances = dict[int, dict[str, Distance]]  # by the size of the tier, and the approximation


def log_prob_and_gradient(name: str, lists: Lists) -> tuple[Tensor, Tensor]:
    """[lists] log-probabilities by an objective, and their gradients, [lists, length]."""
    loss, tiers = OBJECTIVES[name].function, lists.tiers
    run = value_and_gradient(
        lambda w: -loss(w, tiers, reduction="none"), lists.scores.reshape(-1), [len(tiers)]
    )
    value, gradient = run()
    return value.detach(), gradient.view(lists.scores.shape)


def distances(size: int, below: int, number: int) -> dict[str, Distance]:
    """On lists of a tier of this size and standard normal scores, in float64."""
    lists = best_first(number, size, size * below)
    exact, exact_gradient = log_prob_and_gradient("pl-partition", lists)
    found = {}
    for name in NAMES:
        value, gradient = log_prob_and_gradient(name, lists)
        nats = float((exact - value).mean())
        relative = (gradient - exact_gradient).norm(dim=1) / exact_gradient.norm(dim=1)
        cosine = torch.cosine_similarity(gradient, exact_gradient, dim=1)
        found[name] = Distance(nats, nats / size, float(relative.mean()), float(cosine.mean()))
    return found


def tables(sizes: Sequence[int], number: int) -> Iterator[Table]:
    """One for each share of items below."""
    columns = [Column("tier size", "{:,}".format)]
    for written in NAMES.values():
        columns += [
            Column(f"{written}: nats too low", figures),
            Column("nats an item", figures),
            Column("gradient error", "{:.2%}".format),
            Column("cosine", "{:.4f}".format),
        ]
    for below, written in BELOW.items():
        found = {size: distances(size, below, number) for size in sizes}
        rows = [
            [size, *(d for name in NAMES for d in by_name[name])] for size, by_name in found.items()
        ]
        title = f"How far from the exact likelihood: a tier over {written}"
        yield Table(title, columns, rows, [note(found), f"Means over {number} lists. {ABOUT}"])


ABOUT = (
    "Standard normal scores, float64. Nats an item are those of the tier; the gradient error is "
    "‖g − exact g‖ / ‖exact g‖."
)


def note(found: Distances) -> str:
    """What the numbers say, in words."""
    return " ".join(_in_words(found, name) for name in NAMES)


def _in_words(found: Mapping[int, Mapping[str, Distance]], name: str) -> str:
    nats, errors = (
        sorted(getattr(by_name[name], field) for by_name in found.values())
        for field in ("nats_an_item", "gradient")
    )
    return (
        f"{NAMES[name]} is {figures(nats[0])} to {figures(nats[-1])} nats an item too low, and its "
        f"gradient is off by {errors[0]:.1%} to {errors[-1]:.1%}."
    )
