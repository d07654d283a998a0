"""The last layer of a ranker over a huge label set, and its loss, a block of labels at a time."""

from tierrank.extreme.head.function import FusedHead, label_loss
from tierrank.names import FUSED

__all__ = ["FUSED", "FusedHead", "label_loss"]
