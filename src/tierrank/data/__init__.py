"""Data sets: readers, writers and generators."""

from typing import TYPE_CHECKING

from tierrank.data import synthetic
from tierrank.data.files import DataFileError
from tierrank.data.letor import LetorError, read_letor, read_letor_fold, write_letor
from tierrank.data.multilabel import MultiLabelData, MultiLabelSummary
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

if TYPE_CHECKING:
    from tierrank.ranking.clicks import ClickLists, ClickLog, Propensities

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

if not TYPE_CHECKING:  # to type checkers, a name that is not above is a mistake

    def __getattr__(name: str) -> object:
        """Logs of clicks learn propensities, so their home is further right than `training`."""
        if name not in ("ClickLists", "ClickLog", "Propensities"):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
        from tierrank.ranking import clicks

        return getattr(clicks, name)


def __dir__() -> list[str]:
    return __all__
