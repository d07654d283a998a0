"""What fitting needs whatever the model: checkpoints, progress, interruption, optimisers."""

from tierrank.training.checkpoint import Checkpoint
from tierrank.training.interruption import Interruption
from tierrank.training.progress import History, Progress, Watch

__all__ = ["Checkpoint", "History", "Interruption", "Progress", "Watch"]
