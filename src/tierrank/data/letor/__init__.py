"""LETOR and svmlight ranking files, read and written.

`reader` and `writer` are what users call; `parsing` runs the compiled pass over the file's bytes
(`native/letor.hpp`). `data.text` is what it shares with other formats.
"""

from tierrank.data.letor.errors import LetorError
from tierrank.data.letor.reader import read_letor, read_letor_files, read_letor_fold
from tierrank.data.letor.writer import write_letor

__all__ = ["LetorError", "read_letor", "read_letor_files", "read_letor_fold", "write_letor"]
