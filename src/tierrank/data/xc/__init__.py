"""The formats of the Extreme Classification Repository, read and written.

`reader`, `splits` and `writer` are what users call; `parsing` runs the compiled pass over a text's
bytes (`native/xc.hpp`), `faults` words what it stumbles over, and `npz` reads scipy's files.
"""

from tierrank.data.xc.errors import XCError
from tierrank.data.xc.reader import read_xc, read_xc_features
from tierrank.data.xc.splits import read_xc_split
from tierrank.data.xc.writer import write_xc

__all__ = ["XCError", "read_xc", "read_xc_features", "read_xc_split", "write_xc"]
