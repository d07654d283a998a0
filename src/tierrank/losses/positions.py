"""What the place where an item was shown adds to its score."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from tierrank.errors import check_count, check_size


class PositionBias(nn.Module):
    """Scores plus a bias of each position, which is learned: score_i + b[position_i].

    For clicks, whose likelihood is that of what was seen: train a network through it, and rank by
    the network alone. The first position has b = 0, since a constant changes nothing. It is
    identified where the same items were shown in several orders.

    Parameters
    ----------
    positions : int
        How many there are.
    smoothing : float
        The factor κ of the penalty (κ/2) Σ (b_{p+1} − b_p)², which `penalty` gives, to be
        added to a loss.
    start : array_like, optional
        [positions] biases to begin with; all 0 if not given.

    See Also
    --------
    PLPartition : The exact likelihood as a module.
    tierrank.data.ClickLog : Lists from a log of clicks.

    Examples
    --------
    >>> import torch, tierrank as tr
    >>> bias = tr.losses.PositionBias(3, start=[0.0, -1.0, -2.0])
    >>> scores, shown_at = torch.tensor([2.0, 3.0, 5.0]), torch.tensor([1, 3, 2])
    >>> bias(scores, shown_at).tolist()
    [2.0, 1.0, 4.0]
    >>> loss = tr.losses.PLPartition()(bias(scores, shown_at), tr.Tiers.from_labels([0, 0, 1]))
    """

    def __init__(self, positions: int, *, smoothing: float = 0.0, start: Any = None) -> None:
        super().__init__()
        check_count("positions", positions)
        check_size("smoothing", smoothing, zero=True)
        given = torch.zeros(positions) if start is None else torch.as_tensor(start).float()
        if given.shape != (positions,):
            raise ValueError(f"start has shape {list(given.shape)}, not [{positions}]")
        if not bool(given.isfinite().all()):
            raise ValueError(f"start is finite, not {given.tolist()}")
        self.smoothing = float(smoothing)
        self.rest = nn.Parameter(given[1:] - given[0])

    def biases(self) -> Tensor:
        """Compute the biases b, with 0 first.

        Returns
        -------
        Tensor
            [positions] numbers, which the parameters can be learned through.

        See Also
        --------
        penalty : What keeps adjacent ones alike.

        Examples
        --------
        >>> import tierrank as tr
        >>> tr.losses.PositionBias(3, start=[0.0, -1.0, -2.0]).biases().tolist()
        [0.0, -1.0, -2.0]
        """
        return torch.cat([self.rest.new_zeros(1), self.rest])

    def penalty(self) -> Tensor:
        """Compute the penalty (κ/2) Σ (b_{p+1} − b_p)².

        Returns
        -------
        Tensor
            A number to add to the loss.

        See Also
        --------
        biases : What it keeps alike.

        Examples
        --------
        >>> import tierrank as tr
        >>> tr.losses.PositionBias(3, smoothing=2.0, start=[0.0, -1.0, -3.0]).penalty().item()
        5.0
        """
        return self.smoothing / 2 * self.biases().diff().square().sum()

    def forward(self, scores: Tensor, positions: Tensor, *, check: bool = True) -> Tensor:
        """Add the biases to the scores; calling the module does.

        To look at positions is to wait for the device that they are on, and a position of 0 would
        be taken for the last one without a word. ``check=False`` is for who has looked at all of
        them once, before the first step.

        Parameters
        ----------
        scores : Tensor
            A score an item.
        positions : Tensor
            In the same shape, where each was shown, from 1.
        check : bool
            Whether to look at the positions.

        Returns
        -------
        Tensor
            The scores with the biases added.

        Raises
        ------
        ValueError
            Shapes differ, or a position is no whole number or out of range.

        See Also
        --------
        biases : What is added.

        Examples
        --------
        >>> import torch, tierrank as tr
        >>> bias = tr.losses.PositionBias(3, start=[0.0, -1.0, -2.0])
        >>> bias(torch.tensor([2.0, 3.0]), torch.tensor([1, 3])).tolist()
        [2.0, 1.0]
        """
        biases = self.biases().to(scores)
        if positions.shape != scores.shape:
            raise ValueError(
                f"positions have shape {list(positions.shape)}, and scores {list(scores.shape)}"
            )
        kind = positions.dtype
        if kind.is_floating_point or kind.is_complex or kind == torch.bool:
            raise ValueError(f"positions are whole numbers, not {kind}")
        positions = positions.long()  # bytes would be taken for a mask
        if check and positions.numel():
            least, most = (int(end) for end in positions.aminmax())
            if least < 1 or most > len(biases):
                raise ValueError(
                    f"positions are from 1 to {len(biases)}, not from {least} to {most}: they "
                    f"count from 1, and PositionBias was made for {len(biases)}"
                )
        return scores + biases[positions - 1]
