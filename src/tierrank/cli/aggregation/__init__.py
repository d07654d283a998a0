"""The commands on rankings: `aggregate` and `simulate`.

Each module named like a command holds it. What they share: `options` and `reading` for files of
rankings, `models` for what is fitted, `places` for where results go, `wording` for what Python
calls otherwise.
"""

from tierrank.cli.aggregation import aggregate, simulate

__all__ = ["aggregate", "simulate"]
