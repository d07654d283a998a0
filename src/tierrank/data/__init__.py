"""Data sets: readers, writers and generators."""

from tierrank.data import synthetic
from tierrank.data.files import DataFileError
from tierrank.data.folds import Fold, read_folds
from tierrank.data.letor import LetorError, read_letor, read_letor_fold, write_letor
from tierrank.data.multilabel import MultiLabelData, MultiLabelSummary
from tierrank.data.ranking_data import RankingData
from tierrank.data.reading import read
from tierrank.data.tables import TableError, read_table, write_table
from tierrank.data.xc import XCError, read_xc, read_xc_features, read_xc_split, write_xc

__all__ = [
    "DataFileError",
    "Fold",
    "LetorError",
    "MultiLabelData",
    "MultiLabelSummary",
    "RankingData",
    "TableError",
    "XCError",
    "read",
    "read_folds",
    "read_letor",
    "read_letor_fold",
    "read_table",
    "read_xc",
    "read_xc_features",
    "read_xc_split",
    "synthetic",
    "write_letor",
    "write_table",
    "write_xc",
]
