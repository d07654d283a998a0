"""LETOR and svmlight ranking files, read and written.

`reader` and `writer` are what users call; `parsing` runs the compiled pass of `kernel` over the
bytes that `files` gives it, and `decimals` reads its numbers.
"""

from tierrank.data.letor.files import LetorError
from tierrank.data.letor.reader import RankingData, read_letor, read_letor_fold
from tierrank.data.letor.writer import write_letor

__all__ = ["LetorError", "RankingData", "read_letor", "read_letor_fold", "write_letor"]
