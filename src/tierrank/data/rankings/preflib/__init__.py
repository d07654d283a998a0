"""PrefLib's files of votes: soc, soi, toc, toi and cat.

`reader` and `writer` are what users call, and `container` is what they get. `header` knows the
lines ``# KEY: value``, `orders` splits the lines ``count: 6,11,{1,2}``, `checks` says which lists
a type of file may hold, and `merging` counts the equal lists of rankings that come from elsewhere.
"""

from tierrank.data.rankings.errors import PrefLibError
from tierrank.data.rankings.preflib.container import PrefLib, Style
from tierrank.data.rankings.preflib.reader import read_preflib
from tierrank.data.rankings.preflib.writer import write_preflib

__all__ = ["PrefLib", "PrefLibError", "Style", "read_preflib", "write_preflib"]
