"""How sure the coefficients of a linear ranker are: covariances."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from tierrank._types import AnyArray as Array
from tierrank.losses import find
from tierrank.ranking.linear_loss import LinearLoss

Uncertainty = Literal["information", "sandwich"]

# smallest eigenvalue of the information, scaled to a diagonal of 1, that is no rounding error
SMALLEST = {True: 1e-10, False: 1e-7}


def check_uncertainty(kind: Any, objective: str, options: dict[str, Any] | None) -> None:
    """Refuse, before anything is fitted, a kind of uncertainty that an objective does not have."""
    if kind is None:
        return
    if kind not in ("information", "sandwich"):
        raise ValueError(f'uncertainty is None, "information" or "sandwich", not {kind!r}')
    entry = find(objective)
    if entry.without_errors:
        raise ValueError(
            f"there are no standard errors for {entry.name}, which {entry.without_errors}: use "
            "uncertainty=None, or bootstrap the lists"
        )
    if kind == "information" and not entry.is_likelihood(options):
        weighted = " with alpha" if entry.likelihood else ""
        raise ValueError(
            f"{entry.name}{weighted} is no likelihood of a list, so its "
            'curvature alone says nothing of standard errors: use uncertainty="sandwich"'
        )


def covariance(loss: LinearLoss, point: Array, kind: Uncertainty, names: list[str]) -> Array:
    """[features, features] covariance of the coefficients at the minimum of a loss.

    With I the second derivatives of Σ_l weight_l loss_l + (weight/2) λ ‖coef‖² and g_l the gradient
    of one term of the sum, "information" is I⁻¹ and "sandwich" I⁻¹ (Σ_l g_l g_lᵀ) I⁻¹. The
    objective's own parameters are in both, and left out of what is given back.

    Raises
    ------
    ValueError
        if I is singular, naming the features that make it so, or if there are too few lists
    """
    told = int((loss.tiers.n_tiers > 1).sum())
    if kind == "sandwich" and told <= len(point):
        raise ValueError(
            f"{told} lists with several tiers are too few to see how {len(point)} estimates vary "
            'between lists: uncertainty="sandwich" needs more lists than features'
        )
    smallest = SMALLEST[loss.twice_differentiable]
    all_names = [*names, *loss.own_parameters(point)]
    inverse = _inverse(loss.information(point), loss.sizes(), all_names, smallest)
    if kind == "sandwich":
        parts = loss.gradients_by_list(point) @ inverse
        inverse = parts.T @ parts
    return np.asarray(inverse[: loss.features, : loss.features])


def _inverse(information: Array, sizes: Array, names: list[str], smallest: float) -> Array:
    """The inverse of a positive definite matrix, whatever the sizes of its features."""
    diagonal = np.diag(information)
    if not np.isfinite(information).all():
        raise ValueError("the information is not finite: scale the features, or give some l2")
    relative = diagonal / sizes**2
    nothing = relative <= max(1e-14 * relative.max(), np.finfo(float).tiny)  # rounding, at most
    if nothing.any():
        raise _singular(
            "say nothing, for they are constant in every list that has several tiers (or the "
            "lists are ordered perfectly, and the coefficients have no finite best value)",
            names,
            nothing,
        )
    scale = 1 / np.sqrt(diagonal)
    values, vectors = np.linalg.eigh(information * np.outer(scale, scale))
    flat = values < smallest
    if flat.any():
        involved = np.abs(vectors[:, flat]).max(axis=1) > 0.01
        raise _singular("depend on each other linearly within the lists", names, involved)
    half = vectors / np.sqrt(values) * scale[:, None]
    return np.asarray(half @ half.T)


def _singular(problem: str, names: list[str], which: Array) -> ValueError:
    found = [names[number] for number in np.flatnonzero(which)]
    more = f" and {len(found) - 10} more" if len(found) > 10 else ""
    return ValueError(
        f"there are no standard errors: {', '.join(found[:10])}{more} {problem}. Leave "
        "features out, or give some l2. The coefficients themselves are fitted."
    )
