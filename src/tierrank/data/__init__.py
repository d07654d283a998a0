"""Data sets: readers, writers and generators."""

from tierrank.data import synthetic
from tierrank.data.letor import (
    LetorError,
    RankingData,
    read_letor,
    read_letor_fold,
    write_letor,
)

__all__ = [
    "LetorError",
    "RankingData",
    "read_letor",
    "read_letor_fold",
    "synthetic",
    "write_letor",
]
