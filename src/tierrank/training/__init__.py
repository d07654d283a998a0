"""What fitting needs whatever the model: checkpoints, progress, interruption, optimisers."""

from tierrank.training.progress import Checkpoint, History, Interruption, Progress, Watch

__all__ = ["Checkpoint", "History", "Interruption", "Progress", "Watch"]
