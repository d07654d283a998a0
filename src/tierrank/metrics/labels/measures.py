"""P@k, nDCG@k, and both with labels weighted by inverse propensity."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import numpy as np

from tierrank._types import IntArray
from tierrank.metrics.inputs import FloatArray, Reduction, choice, finish, ratio
from tierrank.metrics.labels.hits import Hits, WeightedHits, look_up, weigh
from tierrank.metrics.labels.inputs import checked_places

OutOf = Literal["reachable", "all"]


def precision(top: Any, Y: Any, *, k: int = 5, reduction: Reduction = "mean") -> Any:
    """Share of relevant labels among the first k: their number / k.

    The arguments are those of `tierrank.metrics.labels`. Missing predictions are misses, and a row
    with fewer than k relevant labels cannot reach 1, as in the repository and in napkinXC's
    `precision_at_k`.

        >>> from scipy.sparse import csr_array
        >>> from tierrank.metrics import labels
        >>> labels.precision([[2, 0, 1]], csr_array([[1, 0, 1, 1]]), k=3)
        0.6666666667
    """
    k = checked_places(k)
    return finish(precision_of_rows(look_up(top, Y, k), k), reduction)


def ndcg(top: Any, Y: Any, *, k: int = 5, reduction: Reduction = "mean") -> Any:
    """Discounted hits, over those of the best k predictions.

        nDCG@k = Σ_{i ≤ k} hit_i / log2(1 + i)  /  Σ_{i ≤ min(k, n)} 1 / log2(1 + i)

    for a row with n relevant labels; 0 for n = 0. The arguments are those of
    `tierrank.metrics.labels`. It is the repository's nDCG, and napkinXC's `ndcg_at_k`.

        >>> from scipy.sparse import csr_array
        >>> from tierrank.metrics import labels
        >>> labels.ndcg([[1, 2, 0]], csr_array([[1, 0, 1, 0]]), k=3)  # (0.631 + 0.5) / (1 + 0.631)
        0.6934264036
    """
    k = checked_places(k)
    return finish(ndcg_of_rows(look_up(top, Y, k), k), reduction)


def ps_precision(
    top: Any, Y: Any, *, inverse_propensity: Any, k: int = 5, reduction: Reduction = "mean"
) -> Any:
    """Propensity-scored precision: what was found, over the most that k predictions could find.

        PSP@k = Σ_rows Σ_{i ≤ k} hit_i q_i  /  Σ_rows (sum of the k highest q of relevant labels)

    where q is the inverse propensity of a label. The arguments are those of
    `tierrank.metrics.labels`. It is a ratio of sums over all rows: with ``reduction="none"`` a
    row's value is rows · its numerator / the sum of all denominators, which may exceed 1. It is
    the repository's PSP, and napkinXC's `psprecision_at_k`.

        >>> from scipy.sparse import csr_array
        >>> from tierrank.metrics import labels
        >>> Y, q = csr_array([[1, 1, 0], [0, 0, 1]]), [2.0, 5.0, 3.0]
        >>> labels.ps_precision([[0], [2]], Y, inverse_propensity=q, k=1)  # (2 + 3) / (5 + 3)
        0.625
        >>> labels.ps_precision([[0], [2]], Y, inverse_propensity=q, k=1, reduction="none")
        array([0.5 , 0.75])
    """
    k = checked_places(k)
    hits = weigh(look_up(top, Y, k), inverse_propensity)
    return finish(ps_precision_of_rows(hits, k), reduction)


def ps_ndcg(
    top: Any,
    Y: Any,
    *,
    inverse_propensity: Any,
    k: int = 5,
    out_of: OutOf = "reachable",
    reduction: Reduction = "mean",
) -> Any:
    """Propensity-scored nDCG: discounted, what was found over the most that could be found.

        PSnDCG@k = Σ_rows PSDCG@k / c  /  Σ_rows (highest PSDCG@k) / c
        PSDCG@k = Σ_{i ≤ k} hit_i q_i / log2(1 + i)

    where q is the inverse propensity of a label. With ``out_of="reachable"``,
    c = Σ_{i ≤ min(k, n)} 1 / log2(1 + i) for a row with n relevant labels: napkinXC's
    `psndcg_at_k`, and pyxclib's. With ``"all"``, c has all k terms, is the same for all rows and
    cancels: the repository's text and scripts. The two differ where rows have fewer than k relevant
    labels. The other arguments are those of `tierrank.metrics.labels`. As in `ps_precision`,
    ``reduction="none"`` gives rows · numerator / the sum of all denominators.

        >>> from scipy.sparse import csr_array
        >>> from tierrank.metrics import labels
        >>> Y, q = csr_array([[1, 1, 0], [0, 0, 1]]), [2.0, 5.0, 3.0]
        >>> labels.ps_ndcg([[0, 1], [1, 2]], Y, inverse_propensity=q, k=2)
        0.7388...
        >>> labels.ps_ndcg([[0, 1], [1, 2]], Y, inverse_propensity=q, k=2, out_of="all")
        0.7609...
    """
    k = checked_places(k)
    hits = weigh(look_up(top, Y, k), inverse_propensity)
    return finish(ps_ndcg_of_rows(hits, k, out_of), reduction)


def evaluate(
    top: Any,
    Y: Any,
    *,
    inverse_propensity: Any = None,
    ks: Iterable[int] = (1, 3, 5),
    out_of: OutOf = "reachable",
) -> dict[str, float]:
    """All measures at all ks, by their names, such as ``"P@1"`` and ``"nDCG@5"``.

    ``"PSP@k"`` and ``"PSnDCG@k"`` are there if there are inverse propensities. The predictions are
    looked up once; `top` has at least max(ks) columns. The other arguments are those of
    `tierrank.metrics.labels`, and `out_of` that of `ps_ndcg`.
    """
    places = _checked_ks(ks)
    hits = look_up(top, Y, max(places))
    values = {f"P@{k}": precision_of_rows(hits, k) for k in places}
    values |= {f"nDCG@{k}": ndcg_of_rows(hits, k) for k in places}
    if inverse_propensity is not None:
        weighted = weigh(hits, inverse_propensity)
        values |= {f"PSP@{k}": ps_precision_of_rows(weighted, k) for k in places}
        values |= {f"PSnDCG@{k}": ps_ndcg_of_rows(weighted, k, out_of) for k in places}
    return {name: float(of_rows.mean()) for name, of_rows in values.items()}


def precision_of_rows(hits: Hits, k: int) -> FloatArray:
    """[rows] P@k."""
    values: FloatArray = hits.found[:, :k].sum(axis=1) / k
    return values


def ndcg_of_rows(hits: Hits, k: int) -> FloatArray:
    """[rows] nDCG@k."""
    return ratio(hits.found[:, :k] @ _discount(k), _reachable(hits.relevant.counts, k))


def ps_precision_of_rows(hits: WeightedHits, k: int) -> FloatArray:
    """[rows] values whose mean is PSP@k."""
    return _of_best(hits.gains[:, :k].sum(axis=1), hits.best[:, :k].sum(axis=1))


def ps_ndcg_of_rows(hits: WeightedHits, k: int, out_of: OutOf) -> FloatArray:
    """[rows] values whose mean is PSnDCG@k."""
    choice("out_of", out_of, ("reachable", "all"))
    discount = _discount(k)
    dcg, best_dcg = hits.gains[:, :k] @ discount, hits.best[:, :k] @ discount
    if out_of == "reachable":
        reachable = _reachable(hits.counts, k)
        dcg, best_dcg = ratio(dcg, reachable), ratio(best_dcg, reachable)
    return _of_best(dcg, best_dcg)


def _discount(k: int) -> FloatArray:
    discount: FloatArray = 1 / np.log2(np.arange(2, k + 2))
    return discount


def _reachable(counts: IntArray, k: int) -> FloatArray:
    """[rows] the DCG@k of the best predictions: a sum over the first min(k, n) ranks."""
    of_count = np.append(0.0, np.cumsum(_discount(k)))
    return of_count[np.minimum(counts, k)]


def _of_best(reached: FloatArray, best: FloatArray) -> FloatArray:
    """Values whose mean is the ratio of the sums."""
    total = best.sum()
    if not total:
        raise ValueError(
            "no row has a relevant label, so there is no best value to divide by: propensity-"
            "scored measures need rows with labels."
        )
    values: FloatArray = reached * (len(reached) / total)
    return values


def _checked_ks(ks: Any) -> list[int]:
    try:
        places = [checked_places(k) for k in ks]
    except TypeError:
        places = []
    if not places:
        raise ValueError(f"ks are numbers of places, such as (1, 3, 5), not {ks!r}.")
    return places
