"""The last layer of a ranker over a huge label set, and its loss, a block of labels at a time."""

from tierrank.extreme.head.function import FusedHead, label_loss
from tierrank.losses.record import fused_objectives

FUSED = fused_objectives()

__all__ = ["FUSED", "FusedHead", "label_loss"]
