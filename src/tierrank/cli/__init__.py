"""The command line: parse, call, print.

`app` is the command, and each module named like a command holds it, `extreme_…` those for huge
label sets. What they share: `options`, which also says what went wrong; `estimators` makes rankers
from what is typed, `inputs` reads rows for them and `rankings` lists and games, `train` has the way
of a training, `progress` shows how work goes on.
"""

from tierrank.__main__ import main
from tierrank.cli.options import app

__all__ = ["app", "main"]
