"""Ranking over huge label sets: what a row's labels say against all the others.

`tierrank.ExtremeRanker` is the estimator. `label_loss` and `FusedHead` are its last layer for
networks of your own.
"""

from tierrank.extreme.head import FusedHead, label_loss
from tierrank.losses.record import fused_objectives

FUSED = fused_objectives()

__all__ = ["FUSED", "FusedHead", "label_loss"]
