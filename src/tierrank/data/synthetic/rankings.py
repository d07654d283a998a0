"""Lists with ties drawn from a known model, to see whether an estimate finds it."""

from __future__ import annotations

import torch
from torch import Tensor

from tierrank.plackett_luce import sample
from tierrank.tiers import Tiers
from tierrank.tiers.arrays import range_numbers


def simulate(
    items: int,
    lists: int,
    *,
    tiers: int = 4,
    most_above: int = 500,
    seed: int = 0,
    strict: bool = False,
) -> tuple[Tensor, Tiers]:
    """Worths and tiers as in section 4.1 of Ma et al. (2021).

    Log-worths are uniform on [0, log items], less a constant. Each list is a full ranking drawn
    from that model, cut at random into `tiers` tiers, of which the last, the rest, is not
    written down. At most `most_above` items stand above it. Inside a tier items stand by their
    number, so that nothing of their order is left.

    Parameters
    ----------
    items, lists
        how many
    tiers
        of each list, with the rest
    most_above
        items above the rest
    seed
        of worths and lists
    strict
        keep the order of the items above the rest, from the same draws: what an oracle would know

    Returns
    -------
    [items] true log-worths, normalised so that worths sum to 1 (float64), and the `Tiers`

    Examples
    --------
    >>> log_worths, tiers = simulate(items=6, lists=2, tiers=3, seed=1)
    >>> round(float(log_worths.exp().sum()), 6)
    1.0
    >>> len(tiers), tiers.n_items
    (2, 6)
    """
    if items < 2 or lists < 1:
        raise ValueError(f"needs at least 2 items and 1 list, not {items} and {lists}")
    reach = min(items - 1, most_above)
    if not 2 <= tiers <= reach + 1:
        raise ValueError(
            f"{items} items with at most {most_above} above the rest make 2 to {reach + 1} tiers, "
            f"not {tiers}"
        )
    generator = torch.Generator().manual_seed(seed)
    log_worths = torch.log(torch.tensor(float(items))) * torch.rand(
        items, generator=generator, dtype=torch.float64
    )
    log_worths = log_worths.log_softmax(0)
    rankings = sample(log_worths, lists, k=reach, generator=generator)
    # tiers − 1 different cuts among the places 1 … reach, for every list
    keys = torch.rand((lists, reach), generator=generator)
    cuts = keys.topk(tiers - 1, dim=1).indices.add_(1).sort(1).values
    above = cuts[:, -1]
    entries = rankings[torch.arange(reach) < above[:, None]]
    zero = torch.zeros(1, dtype=torch.int64)
    if strict:
        tier_offsets = torch.arange(len(entries) + 1)
        list_offsets = torch.cat([zero, above.cumsum(0)])
    else:
        ends = cuts + (above.cumsum(0) - above)[:, None]
        tier_offsets = torch.cat([zero, ends.reshape(-1)])
        list_offsets = torch.arange(lists + 1) * (tiers - 1)
        entries = _sorted_inside(entries, tier_offsets.diff(), items)
    return log_worths, Tiers(
        items=entries,
        tier_offsets=tier_offsets,
        list_offsets=list_offsets,
        n_items=items,
        rest=True,
    )


def _sorted_inside(entries: Tensor, sizes: Tensor, items: int) -> Tensor:
    """The items of every tier by their number; `sizes` are those of the tiers."""
    return (range_numbers(sizes) * items + entries).sort().values % items
