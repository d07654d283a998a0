"""Rows to be ranked: what every reader of ranking files gives, and every ranker takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from tierrank._types import AnyArray, FloatArray
from tierrank.tiers import Tiers
from tierrank.tiers.labels import group_rows

Missing = float | Literal["keep"]


@dataclass(frozen=True, eq=False)
class RankingData:
    """Rows with features and a graded label, each of a query.

    Attributes
    ----------
    X
        [rows, n_features] float64: a numpy array, or a scipy `csr_matrix` with sorted indices
    y
        [rows] float64 labels, higher is better
    qid
        [rows] the query of each row: int64, or strings if not all are integers
    comments
        [rows] what followed the `#`, stripped, "" for nothing; None if they were not kept
    feature_names
        [n_features] the names of the columns of `X`, if they have any
    """

    X: Any
    y: FloatArray
    qid: AnyArray
    comments: tuple[str, ...] | None = None
    feature_names: tuple[str, ...] | None = None

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        label: str = "label",
        query: str = "qid",
        features: Sequence[str] | None = None,
        drop: Sequence[str] = (),
        missing: Missing = "keep",
    ) -> RankingData:
        """Take a pandas or polars frame, or a pyarrow table.

        The arguments are those of `read_table`; so is what is refused, with the row counted
        from 0, as a `ValueError`.

        Examples
        --------
        >>> import pandas as pd
        >>> frame = pd.DataFrame({"query": ["a", "b", "a"], "grade": [0, 1, 2], "x": [5, None, 7]})
        >>> data = RankingData.from_frame(frame, label="grade", query="query")
        >>> data.feature_names
        ('x',)
        >>> data.tiers()
        Tiers(2 lists, 3 rows, 1 to 2 tiers a list)
          'a': 2 > 0
          'b': 1
        """
        from tierrank.data.tables.ranking_tables import Wanted, from_frame

        return from_frame(frame, Wanted(label, query, features, drop), missing)

    @property
    def n_features(self) -> int:
        """Number of columns of `X`."""
        return int(self.X.shape[1])

    @property
    def n_queries(self) -> int:
        """Number of different `qid`."""
        return len(group_rows(self.qid, len(self))[1])

    def __len__(self) -> int:
        return len(self.y)

    def __repr__(self) -> str:
        kind = "dense" if isinstance(self.X, np.ndarray) else "sparse"
        queries = self.n_queries
        return (
            f"RankingData({len(self):,} row{'s' * (len(self) != 1)}, "
            f"{queries:,} {'query' if queries == 1 else 'queries'}, "
            f"{self.n_features:,} {kind} feature{'s' * (self.n_features != 1)})"
        )

    def tiers(self) -> Tiers:
        """One list a query, in order of first appearance: `Tiers.from_labels(y, qid=qid)`."""
        return Tiers.from_labels(self.y, qid=self.qid)


def fill_value(missing: Missing) -> float:
    """What a missing value becomes, as a number."""
    if isinstance(missing, str):
        if missing != "keep":
            raise ValueError(f'missing is "keep", for NaN, or a number, not {missing!r}.')
        return float("nan")
    return float(missing)
