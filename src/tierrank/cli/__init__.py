"""The command line: parse, call, print.

`app` is the command, and each module named like a command holds it; `aggregation` holds those on
rankings, `extreme` those for huge label sets. What they share: `estimators` makes rankers from
options, `inputs` reads data for them, `progress` shows how a fit goes on, `messages` says what went
wrong.
"""

from tierrank.__main__ import main
from tierrank.cli.app import app

__all__ = ["app", "main"]
