"""Data and models for commands: files and folders read, columns fitted to a model."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import tierrank
from tierrank._types import AnyArray, FloatArray
from tierrank.cli.options import Reading
from tierrank.data import RankingData, read, read_folds
from tierrank.data.cache import blocks, empty_like
from tierrank.data.files import is_table
from tierrank.data.letor import check_fewer, read_letor_files
from tierrank.data.ranking_data import Categories, Part
from tierrank.data.tables.opening import absent
from tierrank.errors import ArgumentError
from tierrank.metrics.evaluation import Lists, read_lists
from tierrank.tiers.arrays import group_rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tierrank.data.reading import Fold
    from tierrank.metrics import Metric
    from tierrank.ranking.base import Ranker

DENSE_CELLS = 1 << 26  # of sparse rows that are filled up at once: half a GB


@dataclass(frozen=True)
class Parts:
    """What to learn from, to stop by and to be judged by; and how much queries count, by key."""

    train: RankingData
    valid: RankingData | None = None
    test: RankingData | None = None
    weights: dict[Any, float] | None = None

    def list_weights(self) -> list[float] | None:
        """How much each list of `train` counts."""
        if self.weights is None:
            return None
        keys = group_rows(self.train.qid, len(self.train))[1]
        return [self.weights[key] for key in keys.tolist()]

    def named(self) -> dict[str, RankingData]:
        """The parts that there are, by name."""
        parts = {"train": self.train, "valid": self.valid, "test": self.test}
        return {name: part for name, part in parts.items() if part is not None}


def read_file(
    path: Path,
    how: Reading,
    features: tuple[str, ...] | None = None,
    *,
    labelled: bool = True,
    weighted: bool = True,
    part: Part | None = None,
    categories: Categories | None = None,
) -> RankingData:
    """Read a file; of a table the columns of these names, or all, and perhaps no labels.

    Columns hold categories as `how` says, if `categories` does not.
    """
    fill = _fill(how) if weighted else how.fill()
    options: dict[str, Any] = {"label": how.label if labelled else None, "query": how.query}
    options["part"] = part
    if is_table(path):
        dropped = _dropped(how, features)
        options |= {"features": features, "drop": dropped, "separator": how.separator}
        options["categories"] = how.categorical if categories is None else categories
    else:
        _refuse_columns(path, how)
        if how.zero_based:
            options["one_based"] = False
    options["cache"] = how.cache_for(path)
    return _not_empty(read(path, missing="keep" if fill is None else fill, **options), path, part)


def read_train_and_valid(
    train: Path, valid: Path | None, how: Reading, part: Part | None = None
) -> Parts:
    """Read a training file, and a validation file with the same columns."""
    if valid is not None and is_table(train) != is_table(valid):
        raise ValueError(f"{train} and {valid}: one is a table and one is not; give one kind.")
    if valid is None or is_table(train):
        rows, weights = _without_weights(read_file(train, how, part=part), how, train)
        if valid is None:
            return Parts(rows, weights=weights)
        held_out = read_file(
            valid, how, rows.feature_names, weighted=False, part=part,
            categories=tuple(rows.categories or ()),
        )  # fmt: skip
        return Parts(rows, held_out, weights=weights)
    _refuse_columns(train, how)
    fill = how.fill()
    both = read_letor_files(
        [train, valid],
        one_based=False if how.zero_based else "auto",
        missing=np.nan if fill is None else fill,
        cache=how.cache_for(train, valid),
        part=part,
    )
    return Parts(_not_empty(both[0], train, part), _not_empty(both[1], valid, part))


def lists_of(part: RankingData, name: str, metric: Metric) -> Lists:
    """The rows by list; refuses labels that a metric cannot measure, such as negative ones."""
    try:
        lists = read_lists(np.zeros(len(part)), part.y, part.qid, None)
        metric(lists, None)
    except ValueError as error:
        raise ValueError(f"{metric.name} cannot measure {name}: {error}") from None
    return lists


def folds_of(
    folder: Path,
    how: Reading,
    features: tuple[str, ...] | None = None,
    part: Part | None = None,
    categories: Categories | None = None,
) -> list[Fold]:
    """The folds in a folder."""
    if how.zero_based:
        raise ValueError("--zero-based is for a single file, not for a folder.")
    fill = _fill(how)
    return read_folds(
        folder, label=how.label, query=how.query, features=features,
        drop=_dropped(how, features),
        missing="keep" if fill is None else fill, separator=how.separator, part=part,
        cache=how.cache_for(*(file for file in folder.rglob("*.*") if file.suffix != ".npy")),
        categories=how.categorical if categories is None else categories,
    )  # fmt: skip


def read_fold(
    folder: Path,
    fold: int | None,
    how: Reading,
    features: tuple[str, ...] | None = None,
    part: Part | None = None,
    categories: Categories | None = None,
) -> Parts:
    """Read train, validation and test of a folder's only fold, or of the one that is chosen."""
    folds = folds_of(folder, how, features, part, categories)
    if fold is None:
        if len(folds) > 1:
            raise ValueError(
                f"{folder}: has {len(folds)} folds. Choose one, as with --fold 1; tierrank "
                "compare goes through all of them."
            )
        fold = 1
    if not 1 <= fold <= len(folds):
        raise ValueError(f"{folder}: has folds 1 to {len(folds)}, and no fold {fold}.")
    chosen = folds[fold - 1]
    train, weights = _without_weights(chosen.train, how, folder)
    valid, test = (
        None if part is None else _without_weights(part, how, folder)[0]
        for part in (chosen.valid, chosen.test)
    )
    return Parts(train, valid, test, weights)


def _without_weights(
    data: RankingData, how: Reading, path: Path
) -> tuple[RankingData, dict[Any, float] | None]:
    """Take columns that are no features out: the rest, and the weight of each query.

    Positions stay with the rows.
    """
    if how.position is not None:
        data, places = _without_column(data, how, path, how.position, "--position-column")
        data = replace(data, positions=places)
    if how.weight is None:
        return data, None
    data, column = _without_column(data, how, path, how.weight, "--weight-column")
    query, keys = group_rows(data.qid, len(data))
    own = column[np.unique(query, return_index=True)[1]]  # of the first row of each
    for wrong, what in (
        (~(np.isfinite(column) & (column >= 0)), "is not a finite number, 0 or more"),
        (column != own[query], "differs between its rows: give all rows of a query the same"),
    ):
        if wrong.any():
            key, weight = data.qid[row := int(wrong.argmax())], column[row]
            raise ValueError(f"{path}: the weight of query {key} ({weight:g}) {what}.")
    return data, dict(zip(keys.tolist(), own.tolist(), strict=True))


def _without_column(
    data: RankingData, how: Reading, path: Path, name: str, option: str
) -> tuple[RankingData, AnyArray]:
    """Take a column out of the features, and fill in what is missing in the others."""
    names = data.feature_names or ()
    if not names:
        _refuse_columns(path, how)
    if name not in names:
        raise ArgumentError(f"{path}: ", *absent(name, names, option))
    if name in (data.categories or ()):
        raise ValueError(f"{path}: the column of {option}, {name!r}, holds categories.")
    place = names.index(name)
    column = np.array(data.X[:, place])
    X = empty_like(data.X, (len(data), data.n_features - 1))
    fill = how.fill()
    if how.weight in names and how.weight != name:  # whose missing values are not to be filled in
        fill = None
    for rows in blocks(*data.X.shape):
        block = np.delete(data.X[rows], place, axis=1)
        X[rows] = block if fill is None else np.where(np.isnan(block), fill, block)
    return replace(data, X=X, feature_names=(*names[:place], *names[place + 1 :])), column


def _fill(how: Reading) -> float | None:
    """What missing values become; but weights and positions are not to be filled in."""
    return None if how.weight or how.position else how.fill()


def _dropped(how: Reading, features: tuple[str, ...] | None) -> tuple[str, ...]:
    return tuple(how.drop or ()) if features is None else ()


def _refuse_columns(path: Path, how: Reading) -> None:
    """Refuse what is said of columns, where a file is LETOR."""
    for option, value in how.columns().items():
        if value:
            raise ValueError(f"{path}: is no table, so it has no columns for {option}.")


def load_ranker(folder: Path) -> Ranker:
    """The model of a folder that ranks rows; refuses one that ranks labels."""
    ranker = tierrank.load(folder)
    if type(ranker).__name__ == "ExtremeRanker":
        raise ValueError(
            f"{folder}: is an ExtremeRanker, which ranks labels: use tierrank extreme predict or "
            "tierrank extreme evaluate."
        )
    found: Ranker = ranker
    return found


def column_names(ranker: Ranker) -> tuple[str, ...]:
    """The names of the columns that a model was fitted to; () if they had none."""
    return tuple(str(name) for name in getattr(ranker, "feature_names_in_", ()))


def category_names(ranker: Ranker) -> tuple[str, ...]:
    """The names of those columns that hold categories."""
    names = column_names(ranker)
    return tuple(names[at] for at in getattr(ranker, "categories_", ())) if names else ()


def read_for_model(path: Path, ranker: Ranker, how: Reading) -> RankingData:
    """Read a file with the columns that a model was fitted to, to score its rows.

    A table's columns are found by name, if the model knows names; labels are not looked at then,
    and need not be there.
    """
    names = column_names(ranker)
    own = category_names(ranker)
    data = read_file(path, how, names or None, labelled=not names, categories=own)
    return with_columns(data, int(ranker.n_features_in_), path)


def with_columns(data: RankingData, columns: int, path: Path) -> RankingData:
    """Check the number of features against a model's; a sparse LETOR file may have fewer."""
    if data.n_features == columns:
        return data
    if data.n_features > columns or data.feature_names is not None:
        there = f"{data.n_features:,} feature{'s' * (data.n_features != 1)}"
        raise ValueError(
            f"{path}: has {there}, but the model was fitted to {columns:,}: "
            "give data with the same columns as the training data had."
        )
    check_fewer(path, data.n_features, columns, "the model", dense=isinstance(data.X, np.ndarray))
    wider = data.X.copy()
    wider.resize(len(data), columns)
    return replace(data, X=wider)


def scores_of(ranker: Ranker, data: RankingData) -> FloatArray:
    """[rows] scores; the columns are those of the model."""
    with warnings.catch_warnings():
        # The columns were found by name already, in `read_for_model`.
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        if isinstance(data.X, np.ndarray) or not len(ranker.steps_):
            return ranker.predict(data, qid=data.qid)
        # Steps that learned from dense rows may not take sparse ones: the file alone decides what
        # is read. So rows are filled up, some whole queries at a time.
        scores = np.empty(len(data))
        for rows in _query_blocks(data, DENSE_CELLS // max(data.n_features, 1)):
            scores[rows] = ranker.predict(data.X[rows].toarray(), qid=data.qid[rows])
        return scores


def _query_blocks(data: RankingData, most: int) -> Iterator[AnyArray]:
    """Row numbers, in blocks of whole queries and not many more than `most` rows."""
    query, keys = group_rows(data.qid, len(data))
    order = np.argsort(query, kind="stable")
    ends = np.cumsum(np.bincount(query, minlength=len(keys)))
    start = 0
    while start < len(order):
        first = int(np.searchsorted(ends, start, side="right"))
        last = int(np.searchsorted(ends, start + most, side="right")) - 1
        end = int(ends[max(first, last)])
        yield order[start:end]
        start = end


def _not_empty(data: RankingData, path: Path, part: Part | None = None) -> RankingData:
    if not len(data) and part is None:
        raise ValueError(f"{path}: has no rows.")
    return data
