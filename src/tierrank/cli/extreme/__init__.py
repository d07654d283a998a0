"""`tierrank extreme`: the commands for rows with a few labels out of very many.

Each module named like a command holds it. What they share: `options` and `inputs` for the files,
`progress` and `memory` for what is shown meanwhile, `predictions` for files of predicted labels.
"""

from tierrank.cli.extreme import evaluate, predict, train
from tierrank.cli.extreme.app import extreme

__all__ = ["evaluate", "extreme", "predict", "train"]
