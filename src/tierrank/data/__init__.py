"""Data sets: readers, writers and generators."""

from tierrank.data import synthetic
from tierrank.data.clicks import ClickLists, ClickLog
from tierrank.data.files import DataFileError
from tierrank.data.letor import LetorError, read_letor, read_letor_fold, write_letor
from tierrank.data.multilabel import MultiLabelData, MultiLabelSummary
from tierrank.data.propensities import Propensities
from tierrank.data.ranking_data import RankingData
from tierrank.data.rankings import (
    Games,
    JsonLinesError,
    PrefLib,
    PrefLibError,
    Rankings,
    UnclearTable,
    read_games,
    read_jsonl_rankings,
    read_long_rankings,
    read_paired_ranks,
    read_pass_fail,
    read_preferences,
    read_preflib,
    read_rankings,
    read_wide_rankings,
    write_jsonl_rankings,
    write_long_rankings,
    write_preflib,
    write_rankings,
)
from tierrank.data.reading import Fold, read, read_folds
from tierrank.data.tables import TableError, read_table, write_table
from tierrank.data.xc import XCError, read_xc, read_xc_features, read_xc_split, write_xc

__all__ = [
    "ClickLists",
    "ClickLog",
    "DataFileError",
    "Fold",
    "Games",
    "JsonLinesError",
    "LetorError",
    "MultiLabelData",
    "MultiLabelSummary",
    "PrefLib",
    "PrefLibError",
    "Propensities",
    "RankingData",
    "Rankings",
    "TableError",
    "UnclearTable",
    "XCError",
    "read",
    "read_folds",
    "read_games",
    "read_jsonl_rankings",
    "read_letor",
    "read_letor_fold",
    "read_long_rankings",
    "read_paired_ranks",
    "read_pass_fail",
    "read_preferences",
    "read_preflib",
    "read_rankings",
    "read_table",
    "read_wide_rankings",
    "read_xc",
    "read_xc_features",
    "read_xc_split",
    "synthetic",
    "write_jsonl_rankings",
    "write_letor",
    "write_long_rankings",
    "write_preflib",
    "write_rankings",
    "write_table",
    "write_xc",
]
