"""Rankings of items with ties: the container, and readers and writers of files.

`read_rankings` and `write_rankings` are the one door; behind it are PrefLib's files, JSON lines,
and tables of several kinds, in files or frames: `reading` finds out which.
"""

from tierrank.data.rankings.container import Rankings
from tierrank.data.rankings.games import Games, read_games
from tierrank.data.rankings.item_pairs import read_paired_ranks, read_preferences
from tierrank.data.rankings.jsonl import (
    JsonLinesError,
    read_jsonl_rankings,
    write_jsonl_rankings,
)
from tierrank.data.rankings.long_tables import read_long_rankings, write_long_rankings
from tierrank.data.rankings.preflib import PrefLib, PrefLibError
from tierrank.data.rankings.preflib_text import read_preflib, write_preflib
from tierrank.data.rankings.reading import read_rankings, write_rankings
from tierrank.data.rankings.usual_names import UnclearTable
from tierrank.data.rankings.wide_tables import read_pass_fail, read_wide_rankings

__all__ = [
    "Games",
    "JsonLinesError",
    "PrefLib",
    "PrefLibError",
    "Rankings",
    "UnclearTable",
    "read_games",
    "read_jsonl_rankings",
    "read_long_rankings",
    "read_paired_ranks",
    "read_pass_fail",
    "read_preferences",
    "read_preflib",
    "read_rankings",
    "read_wide_rankings",
    "write_jsonl_rankings",
    "write_long_rankings",
    "write_preflib",
    "write_rankings",
]
