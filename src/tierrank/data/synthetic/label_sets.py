"""Extreme multi-label data with the statistics of the real sets, for tests at scale."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from operator import index
from typing import TYPE_CHECKING, Any

import numpy as np

from tierrank.data.synthetic.shapes import SHAPES, Occurrence, Shape
from tierrank.data.synthetic.topics import ROWS_AT_A_TIME, RowTopics, TopicMixture

if TYPE_CHECKING:
    from tierrank.data.multilabel import MultiLabelData


def label_sets(
    like: str = "delicious-200k",
    *,
    scale: float = 1.0,
    rows: tuple[int, int] | None = None,
    features: int | None = None,
    labels: int | None = None,
    features_a_row: float | None = None,
    labels_a_row: float | None = None,
    empty_rows: float = 0.0,
    seed: int = 0,
) -> tuple[MultiLabelData, MultiLabelData]:
    """Draw rows to train on and rows to test with, like those of a set of the XC repository.

    A row is about three topics, with weights. Labels and features belong to three topics each,
    and a little to none. The labels of a row are drawn one by one, without replacement, by their
    worths in it: popularity times affinity to its topics. So, given the topics, the probability of
    a row's labels before all others is that of the Plackett-Luce model, exactly, and what a
    learner has to find out from the features are the topics. Features are drawn in the same way,
    until there are enough different ones; their values are (1 + log times drawn) · log(1 + 1 /
    frequency), in each row divided by their norm.

    Matched to the real set: the numbers of rows, features and labels, exactly, and the mean number
    of labels a row. Numbers of labels and features a row spread, and their frequencies follow a
    power law with a head and a long tail (Zipf-Mandelbrot): fitted to the data for Delicious-1K,
    assumed for the other three, as is their mean number of features a row.

    Not matched: which labels go together, the order of labels and features (here it is random), and
    how well labels can be predicted, though that is of the same order. Unlike in the real sets,
    some labels have no row at all. The features of the real Delicious-1K are all 0 or 1.

    Time and memory go with the number of entries, never with rows × labels.

    Parameters
    ----------
    like
        "delicious-1k", "eurlex-4k", "wiki10-31k" or "delicious-200k"
    scale
        multiplies the numbers of rows, features and labels that are not given
    rows
        how many to train on and to test with
    features, labels
        how many there are
    features_a_row, labels_a_row
        the mean number of them that a row has, from 1 to half of all. If not given: as in the real
        set, but at most a fifth of the features and a tenth of the labels.
    empty_rows
        share of the rows that have no label; the other rows have at least one
    seed
        the same seed gives the same data

    Returns
    -------
    train, test

    Examples
    --------
    >>> train, test = label_sets("eurlex-4k", scale=0.05, seed=1)
    >>> train.X.shape, train.Y.shape
    ((777, 250), (777, 200))
    >>> test.X.shape, test.Y.shape
    ((190, 250), (190, 200))
    """
    shape = _shape(like, scale, rows, features, labels, features_a_row, labels_a_row)
    if not 0 <= empty_rows < 1:
        raise ValueError(f"empty_rows is {empty_rows}: give a share from 0 to below 1.")
    seeds = np.random.SeedSequence(_whole(seed, "seed", 0)).spawn(3)
    of_model, of_train, of_test = (np.random.default_rng(each) for each in seeds)
    model = LatentModel.build(of_model, shape)
    train, test = shape.rows
    return model.draw(of_train, train, empty_rows), model.draw(of_test, test, empty_rows)


@dataclass(frozen=True)
class LatentModel:
    """What the rows of a set are drawn from; train and test share it."""

    shape: Shape
    labels: TopicMixture
    features: TopicMixture

    @classmethod
    def build(cls, generator: np.random.Generator, shape: Shape) -> LatentModel:
        """Put labels and features into topics; a popular topic has more features."""
        labels = TopicMixture.build(
            generator, shape.labels.shares(), shape.labels.background, shape.topics
        )
        features = TopicMixture.build(
            generator,
            shape.features.shares(),
            shape.features.background,
            shape.topics,
            labels.popularity(),
        )
        return cls(shape, labels, features)

    def draw(self, generator: np.random.Generator, rows: int, empty: float = 0.0) -> MultiLabelData:
        """Draw new rows; a share `empty` of them has no labels."""
        from tierrank.data.multilabel import MultiLabelData

        about = RowTopics.draw(generator, rows, self.labels.popularity())
        Y = self.label_matrix(generator, about, round(empty * rows))
        return MultiLabelData(self.feature_matrix(generator, about), Y)

    def label_matrix(self, generator: np.random.Generator, about: RowTopics, empty: int = 0) -> Any:
        """CSR [rows, labels] of ones; `empty` rows, chosen at random, have none."""
        rows = len(about.topics)
        sizes = self.shape.labels.sizes(generator, rows)
        sizes[generator.choice(rows, empty, replace=False)] = 0
        offsets, labels, values = self.labels.draw(generator, about, sizes)
        values[:] = 1  # however often it was drawn
        return _csr(values, labels, offsets, self.shape.labels.n)

    def feature_matrix(self, generator: np.random.Generator, about: RowTopics) -> Any:
        """CSR [rows, features] of frequencies in the row times rarity, of norm 1 in every row."""
        rows = len(about.topics)
        sizes = self.shape.features.sizes(generator, rows)
        offsets, features, values = self.features.draw(generator, about, sizes)
        frequency = self.shape.features.a_row * self.features.average_worths()
        rarity = np.log1p(1 / frequency).astype(np.float32)
        # in place and in parts: these are the largest arrays there are
        for first in range(0, rows, ROWS_AT_A_TIME):
            ends = offsets[first : first + ROWS_AT_A_TIME + 1]
            part = values[ends[0] : ends[-1]]
            np.log(part, out=part)
            part += 1
            part *= rarity[features[ends[0] : ends[-1]]]
            norms = np.sqrt(np.add.reduceat(part * part, ends[:-1] - ends[0]))
            part /= norms.repeat(np.diff(ends))
        return _csr(values, features, offsets, self.shape.features.n)


def _csr(values: Any, columns: Any, offsets: Any, n_columns: int) -> Any:
    """Make a canonical matrix of rows whose columns differ, but are in any order."""
    from scipy.sparse import csr_matrix  # takes a while, so only where it is used

    matrix = csr_matrix((values, columns, offsets), shape=(len(offsets) - 1, n_columns))
    matrix.sort_indices()
    matrix.has_canonical_format = True
    return matrix


def _shape(
    like: str,
    scale: float,
    rows: tuple[int, int] | None,
    features: int | None,
    labels: int | None,
    features_a_row: float | None,
    labels_a_row: float | None,
) -> Shape:
    """Check the sizes that were asked for, and fill in the others."""
    if like not in SHAPES:
        raise ValueError(f"there is no set {like!r} to be like. Choose one of {', '.join(SHAPES)}.")
    model = SHAPES[like]
    if not (isfinite(scale) and scale > 0):
        raise ValueError(f"scale is {scale}: give a finite number above 0.")
    if rows is None:
        rows = (max(round(model.rows[0] * scale), 1), max(round(model.rows[1] * scale), 1))
    elif len(rows) != 2:
        raise ValueError(f"rows has {len(rows)} numbers: give two, to train on and to test with.")
    train, test = (_whole(number, "a number of rows", 1) for number in rows)
    return model.resized(
        (train, test),
        _resized(model.labels, "labels", labels, labels_a_row, scale, at_most=1 / 10),
        _resized(model.features, "features", features, features_a_row, scale, at_most=1 / 5),
    )


def _resized(
    model: Occurrence, name: str, n: int | None, a_row: float | None, scale: float, at_most: float
) -> Occurrence:
    n = max(round(model.n * scale), 2) if n is None else _whole(n, name, 2)
    if a_row is None:
        a_row = max(min(model.a_row, n * at_most), 1.0)
    elif not 1 <= a_row <= n // 2:
        raise ValueError(
            f"{name}_a_row is {a_row}: with {n:,} {name}, give a number from 1 to {n // 2}."
        )
    return model.resized(n, float(a_row))


def _whole(value: Any, name: str, least: int) -> int:
    try:
        number = index(value)
    except TypeError:
        raise ValueError(f"{name} is {value!r}: give a whole number.") from None
    if number < least:
        raise ValueError(f"{name} is {number}: give at least {least}.")
    return number
