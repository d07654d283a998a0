"""What measures share: rows by list, sorted once for all of them, and their names.

`read_lists` checks and groups the rows, `Lists` sorts them, once for all measures that look at it,
and `reduced` makes one number of one value a list. All of it is sorting and scanning. `from_name`
finds a measure as people write it (`ndcg@10`, `map`, `tau-b`; of labels `psp@5`), and `evaluate`
takes several of the same rows.

How sure a mean over lists is, and whether two rankers differ, say resampled lists.
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from statistics import NormalDist
from typing import Any, Literal, NamedTuple

import numpy as np

from tierrank import names
from tierrank._types import AnyArray, FloatArray, IntArray
from tierrank.tiers.arrays import (
    as_keys,
    checked_lengths,
    group_rows,
    list_of_entry,
    offsets,
    preview,
    run_starts,
    stable_order,
    to_numpy,
)

Measure = Callable[..., Any]
Gain = Literal["exp2", "linear"] | Callable[[FloatArray], Any]
Ties = Literal["average", "input"]
Empty = float | Literal["skip"]
Reduction = Literal["mean", "none"]
Generator = np.random.Generator | int

# Integers in a range up to this are sorted by one packed key, together with their list.
_NARROW = 1 << 16

# Random numbers that are held at once.
_BLOCK = 1 << 21


@dataclass(frozen=True, eq=False)
class Lists:
    """Rows of the same list side by side, lists in order of first appearance.

    Attributes
    ----------
    scores, labels
        [rows] of any kind of number, finite
    borders
        [lists + 1] list l has the rows borders[l] … borders[l + 1] − 1; none is empty
    rows
        [rows] where each row stood in the input, or None if nothing was moved
    """

    scores: AnyArray
    labels: AnyArray
    borders: IntArray
    rows: IntArray | None = None

    @cached_property
    def starts(self) -> IntArray:
        return self.borders[:-1]

    @cached_property
    def sizes(self) -> IntArray:
        return np.diff(self.borders)

    @cached_property
    def by_score(self) -> IntArray:
        """The rows list by list, the highest score first, equal ones as they come."""
        return self.best_first(self.scores)

    @cached_property
    def by_label(self) -> IntArray:
        """The same of labels."""
        return self.best_first(self.labels)

    @property
    def n_tiers(self) -> IntArray:
        """[lists] how many different labels there are."""
        first = runs(self.labels[self.by_label], self.starts)
        return np.diff(np.searchsorted(first, self.borders))

    @cached_property
    def in_order(self) -> Ranked:
        """The rows by their scores, tied ones as they come."""
        return self._ranked(np.arange(len(self.scores)))

    @cached_property
    def in_ties(self) -> Ranked:
        """The rows by their scores, the order of tied ones left to chance."""
        return self._ranked(runs(self.scores[self.by_score], self.starts))

    def ranked(self, ties: Ties) -> Ranked:
        """The rows of each list by their scores, the best first."""
        choice("ties", ties, ("average", "input"))
        return self.in_order if ties == "input" else self.in_ties

    def _ranked(self, tie_starts: IntArray) -> Ranked:
        rows = len(self.scores)
        rank = np.arange(1, rows + 1) - np.repeat(self.starts, self.sizes)
        sizes = np.diff(np.append(tie_starts, rows))
        return Ranked(self.by_score, rank, self.starts, self.sizes, tie_starts, sizes)

    def best_first(self, values: AnyArray) -> IntArray:
        """The rows list by list, the highest value first, equal ones as they come."""
        low, high, n_lists = int(values.min()), int(values.max()), len(self.starts)
        narrow = low > -_NARROW and high < _NARROW
        if narrow and (values.dtype.kind != "f" or bool(np.all(values == np.trunc(values)))):
            n_values = high - low + 1
            key = high - values.astype(np.int64)
            key += list_of_entry(self.borders) * n_values
            order = stable_order(key, n_lists * n_values)
            return np.arange(len(values)) if order is None else order
        # The complement of an integer reverses the order as the negative does, without overflow.
        order = np.argsort(-values if values.dtype.kind == "f" else ~values, kind="stable")
        if n_lists == 1:
            return order
        by_list = stable_order(list_of_entry(self.borders)[order], n_lists)
        return order if by_list is None else order[by_list]

    def name_row(self, row: int) -> str:
        """A row's label, as the user knows it: ``labels[3] = -1``."""
        given = row if self.rows is None else int(self.rows[row])
        return f"labels[{given}] = {self.labels[row]:g}"

    def refuse(self, bad: AnyArray, problem: str, remedy: str) -> None:
        """Refuse rows with [rows] bad labels."""
        if bad.any():
            raise ValueError(
                f"{self.name_row(int(np.argmax(bad)))} {problem} ({int(bad.sum())} such labels in "
                f"all): {remedy}."
            )


class Ranked(NamedTuple):
    """Lists with their rows in order, the best score first.

    Attributes
    ----------
    order
        [rows] which row of the `Lists` stands here; tied rows as they came
    rank
        [rows] rank in the list, from 1
    starts, sizes
        [lists] first row and number of rows of each list
    tie_starts, tie_sizes
        [ties] the same of each set of rows whose order is left to chance: tied scores of one
        list; single rows if ties count as they come
    """

    order: IntArray
    rank: IntArray
    starts: IntArray
    sizes: IntArray
    tie_starts: IntArray
    tie_sizes: IntArray

    @property
    def strict(self) -> bool:
        """Whether nothing is left to chance."""
        return len(self.tie_starts) == len(self.rank)

    def list_sums(self, values: AnyArray) -> FloatArray:
        """[lists] sums of [rows]."""
        return np.add.reduceat(values.astype(np.float64, copy=False), self.starts)

    def tie_sums(self, values: AnyArray) -> FloatArray:
        """[ties] sums of [rows]."""
        values = values.astype(np.float64, copy=False)
        return values if self.strict else np.add.reduceat(values, self.tie_starts)

    def by_row(self, of_ties: AnyArray) -> AnyArray:
        """[rows] of [ties]: the value of the tie that a row is in."""
        return of_ties if self.strict else np.repeat(of_ties, self.tie_sizes)

    def tie_means(self, values: AnyArray) -> FloatArray:
        """[rows] the expectation of a value at each rank, if tied rows come in random order."""
        values = values.astype(np.float64, copy=False)
        if self.strict:
            return values
        means: FloatArray = self.by_row(self.tie_sums(values) / self.tie_sizes)
        return means

    def position_in_tie(self) -> IntArray:
        """[rows] number of rows before this one in its tie."""
        return np.arange(len(self.rank)) - self.by_row(self.tie_starts)

    def within(self, k: int | None) -> AnyArray:
        """[rows] whether a row is among the first k of its list."""
        return np.full(len(self.rank), True) if k is None else self.rank <= k


def read_lists(scores: Any, labels: Any, qid: Any, lengths: Any) -> Lists:
    """Check the input of a measure, and group its rows by list.

    `evaluate` gives `Lists` for the scores and nothing else, so that measures share what they sort.
    """
    if isinstance(scores, Lists):
        return scores
    score, label = _finite_rows(scores, "scores"), _finite_rows(labels, "labels")
    if len(score) != len(label):
        raise ValueError(
            f"there are {len(score)} scores, but {len(label)} labels: give one of each a row."
        )
    rows = len(score)
    if qid is not None and lengths is not None:
        raise ValueError("qid and lengths both say which rows form a list: give one of them.")
    if not rows:
        raise ValueError("there are no rows, so there is nothing to measure.")
    if lengths is not None:
        sizes = checked_lengths(to_numpy(lengths, "lengths"), rows, "rows")
        return Lists(score, label, offsets(sizes))
    if qid is None:
        return Lists(score, label, np.array([0, rows]))
    list_of_row, keys = group_rows(as_keys(qid), rows)
    borders = offsets(np.bincount(list_of_row, minlength=len(keys)))
    order = stable_order(list_of_row, len(keys))
    if order is None:
        return Lists(score, label, borders)
    return Lists(score[order], label[order], borders, order)


def _finite_rows(values: Any, what: str) -> AnyArray:
    rows = to_numpy(values, what)
    if rows.dtype.kind == "O":
        try:
            rows = rows.astype(np.float64)
        except (TypeError, ValueError):
            raise ValueError(
                f"{what} must be numbers, not {preview(rows.ravel()[:3].tolist())}."
            ) from None
    if rows.dtype.kind == "b":
        rows = rows.view(np.uint8)
    if rows.dtype.kind not in "iuf":
        raise ValueError(f"{what} must be integers, floats or booleans, not {rows.dtype}.")
    if rows.ndim != 1:
        raise ValueError(
            f"{what} have shape {rows.shape}: give flat rows (1-D), and qid or lengths for "
            "several lists (of padded ones: scores[mask], labels[mask], lengths=mask.sum(1))."
        )
    if rows.dtype.kind == "f" and not (finite := np.isfinite(rows)).all():
        at = int(np.argmin(finite))
        kind = "NaN" if np.isnan(rows[at]) else "infinite"
        raise ValueError(
            f"{what}[{at}] is {kind} ({len(rows) - int(finite.sum())} such {what} in all): "
            "leave the row out, or give it a finite number."
        )
    return rows


def checked_k(k: int | None) -> int | None:
    """A number of ranks from 1, or None for all of them."""
    return None if k is None else checked_cutoff(k, ", or None for all")


def checked_cutoff(k: Any, otherwise: str = "") -> int:
    """A number of ranks from 1."""
    try:
        cutoff = operator.index(k)
    except TypeError:
        cutoff = 0
    if cutoff < 1:
        raise ValueError(f"k is a number of places from 1 on{otherwise}, not {k!r}.")
    return cutoff


def choice(what: str, given: Any, known: tuple[str, ...]) -> Any:
    """Refuse an option that does not exist."""
    if not isinstance(given, str) or given not in known:
        words = " or ".join(f'"{one}"' for one in known)
        raise ValueError(f"{what} is {words}, not {given!r}.")
    return given


def ratio(numerator: AnyArray, denominator: AnyArray) -> FloatArray:
    """Quotients, and 0 where the denominator is not positive (which is where `empty` rules)."""
    positive = denominator > 0
    quotient: FloatArray = numerator / np.where(positive, denominator, 1)
    return np.where(positive, quotient, 0.0)


def reduced(
    values: FloatArray, reduction: Reduction, is_empty: AnyArray | None = None, empty: Empty = 0.0
) -> Any:
    """Put `empty` where a list has nothing to measure, and take the mean if it is asked for."""
    choice("reduction", reduction, ("mean", "none"))
    if is_empty is not None:
        values = np.where(is_empty, _value_of_empty(empty), values)
        if empty == "skip" and reduction == "mean":
            values = values[~is_empty]
            if not len(values):
                raise ValueError(
                    "every list is empty (has nothing relevant, or nothing to compare), and "
                    'empty="skip" leaves them all out: there is no mean. Give them a value instead.'
                )
    return float(values.mean()) if reduction == "mean" else values


def _value_of_empty(empty: Empty) -> float:
    if empty == "skip":
        return np.nan
    try:
        return float(empty)
    except (TypeError, ValueError):
        raise ValueError(
            f'empty is a number, or "skip" to leave such lists out, not {empty!r}.'
        ) from None


def runs(values: AnyArray, starts: IntArray) -> IntArray:
    """Where runs of equal neighbours start; a run ends with its list."""
    changed = np.zeros(len(values), dtype=bool)
    changed[run_starts(values)] = True
    changed[starts] = True
    return np.flatnonzero(changed)


# -- by name --------------------------------------------------------------------------------------


def function_at(place: str) -> Measure:
    """The measure that `names` gives the place of."""
    home, _, name = place.partition(".")
    found: Measure = getattr(import_module(f"tierrank.metrics.{home}"), name)
    return found


@dataclass(frozen=True)
class Metric:
    """A measure with its options: call it with scores and labels.

    Parameters
    ----------
    name : str
        As it is shown: ``"ndcg@10"``.
    function : callable
        The measure.
    options : mapping
        What it is called with besides the rows, such as ``{"k": 10}``.
    higher_is_better : bool
        False for losses.

    See Also
    --------
    from_name : A measure by its name.

    Examples
    --------
    >>> from tierrank import metrics
    >>> metric = metrics.from_name("ndcg@2")
    >>> metric.name, dict(metric.options), metric.higher_is_better
    ('ndcg@2', {'k': 2}, True)
    """

    name: str
    function: Measure
    options: Mapping[str, Any] = field(default_factory=dict)
    higher_is_better: bool = True

    def __call__(
        self,
        scores: Any,
        labels: Any,
        *,
        qid: Any = None,
        lengths: Any = None,
        reduction: Reduction = "mean",
    ) -> Any:
        """The mean over lists, or with ``reduction="none"`` [lists] values."""
        return self.function(
            scores, labels, qid=qid, lengths=lengths, reduction=reduction, **self.options
        )


@dataclass(frozen=True)
class LabelMetric:
    """A measure of predicted labels at a k: call it with predictions and relevant labels.

    Parameters
    ----------
    name : str
        As `labels.evaluate` calls it: ``"PSP@5"``.
    k : int
        How many predictions count.
    function : callable
        The measure.
    options : mapping
        What else it is called with, such as ``{"out_of": "all"}``.

    See Also
    --------
    from_name : A measure by its name.

    Examples
    --------
    >>> from tierrank.metrics import labels
    >>> labels.from_name("psp@5").needs_propensity
    True
    """

    name: str
    k: int
    function: Measure
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def needs_propensity(self) -> bool:
        """Whether it must be called with inverse propensities; others ignore them."""
        return "inverse_propensity" in inspect.signature(self.function).parameters

    def __call__(
        self, top: Any, Y: Any, inverse_propensity: Any = None, *, reduction: Reduction = "mean"
    ) -> Any:
        """The value, or with ``reduction="none"`` [rows] values whose mean it is."""
        options = dict(self.options)
        if self.needs_propensity:
            options["inverse_propensity"] = inverse_propensity
        return self.function(top, Y, k=self.k, reduction=reduction, **options)


def from_name(name: str, **options: Any) -> Metric:
    """Find the measure of this name, cut off at a rank if it ends in @k.

    Case, hyphens and underscores do not matter. Without @k the whole list counts (also where
    the function's own default is 10).

    Parameters
    ----------
    name : str
        Such as "ndcg@10", "map" or "mrr@5".
    **options
        Go to the function.

    Returns
    -------
    Metric
        The measure, to be called with scores and labels.

    Raises
    ------
    ValueError
        There is no measure of this name; the message has those that there are.

    See Also
    --------
    evaluate : Several measures at once.
    Metric : What it gives.

    Examples
    --------
    >>> from tierrank import metrics
    >>> metric = metrics.from_name("nDCG@2", ties="input")
    >>> metric.name, metric([3.0, 2.0, 1.0], [1, 2, 0])
    ('ndcg@2', 0.7967075809)
    """
    known, k = names.metric_name(name)
    function = function_at(names.METRICS[known])
    _check_options(known, function, options, ("scores", "labels", "qid", "lengths", "reduction"))
    shown = known
    if known not in names.WHOLE_LIST:
        if k is not None and "k" in options:
            raise ValueError(f"{name!r} says where to cut off, and so does k: give one of them.")
        k = options.get("k", k)
        options["k"] = checked_k(k)
        shown = known if k is None else f"{known}@{k}"
    return Metric(shown, function, options, known != "pairwise-disagreement")


def label_metric(name: str, options: dict[str, Any]) -> LabelMetric:
    """The measure of labels of this name, which ends in @k."""
    known, k = names.label_metric_name(name)
    function = function_at(names.LABEL_METRICS[known])
    not_options = ("top", "Y", "k", "inverse_propensity", "reduction")
    _check_options(known, function, options, not_options)
    return LabelMetric(f"{known}@{k}", k, function, options)


def _check_options(
    name: str, function: Measure, options: Mapping[str, Any], not_options: tuple[str, ...]
) -> None:
    known = inspect.signature(function).parameters.keys() - set(not_options)
    for option in options:
        if option not in known:
            raise ValueError(f"{name} has no option {option!r}.")


def evaluate(
    scores: Any,
    labels: Any,
    measures: Iterable[str | Metric],
    *,
    qid: Any = None,
    lengths: Any = None,
    reduction: Reduction = "mean",
) -> dict[str, Any]:
    """Several measures of the same rows, by name: rows are checked, grouped and sorted once.

    Every value is that of the measure alone.

    Parameters
    ----------
    scores : array_like
        [rows] numbers; higher is better.
    labels : array_like
        [rows] grades; higher is better.
    measures : iterable of str or Metric
        Names, as `from_name` takes them, or what it gave.
    qid : array_like, optional
        [rows] the list of each row, in any order.
    lengths : array_like, optional
        [lists] how many rows each list has, one after the other. Without `qid` and `lengths` all
        rows are one list.
    reduction : {"mean", "none"}
        "mean" over the lists, or "none" for a value a list.

    Returns
    -------
    dict
        Values by the name of the measure.

    Raises
    ------
    ValueError
        Bad input; the message says what is wrong, and in which row.

    See Also
    --------
    from_name : A measure by its name.
    bootstrap_interval : An interval of the mean.

    Examples
    --------
    >>> from tierrank import metrics
    >>> metrics.evaluate([3.0, 2.0, 1.0], [0, 2, 1], ["ndcg@2", "mrr"])
    {'ndcg@2': 0.5212960286, 'mrr': 0.5}
    """
    chosen = [from_name(each) if isinstance(each, str) else each for each in measures]
    if twice := {each.name for each in chosen if [e.name for e in chosen].count(each.name) > 1}:
        raise ValueError(f"{', '.join(sorted(twice))} is asked for twice: leave one of them.")
    lists = read_lists(scores, labels, qid, lengths)
    return {each.name: each(lists, None, reduction=reduction) for each in chosen}


# -- how sure a mean is ---------------------------------------------------------------------------


class Interval(NamedTuple):
    """A mean over lists, and the interval around it.

    Parameters
    ----------
    mean : float
        Over the lists.
    low, high : float
        The ends.
    confidence : float
        How often such an interval holds the true mean.

    See Also
    --------
    bootstrap_interval : An interval of the mean.

    Examples
    --------
    >>> from tierrank import metrics
    >>> interval = metrics.bootstrap_interval([0.2, 0.5, 0.4, 0.9, 0.7, 0.6], generator=1)
    >>> interval.low < interval.mean < interval.high
    True
    """

    mean: float
    low: float
    high: float
    confidence: float


class PairedTest(NamedTuple):
    """The mean difference a − b, its interval, and how often chance gives as much.

    Parameters
    ----------
    difference : float
        The mean of a − b.
    low, high : float
        The ends of its interval.
    confidence : float
        Of that interval.
    p_value : float
        How often chance gives as large a difference.
    exact : bool
        Whether all sign flips were tried.

    See Also
    --------
    paired_test : Two rankers on the same lists.

    Examples
    --------
    >>> from tierrank import metrics
    >>> test = metrics.paired_test([0.9, 0.8, 0.7, 0.6], [0.5, 0.6, 0.4, 0.5])
    >>> test.p_value, test.exact
    (0.125, True)
    """

    difference: float
    low: float
    high: float
    confidence: float
    p_value: float
    exact: bool


def bootstrap_interval(
    values: Any,
    *,
    confidence: float = 0.95,
    resamples: int = 2000,
    generator: Generator = 0,
) -> Interval:
    """Bootstrap interval (BCa) of the mean over lists (Efron, 1987).

    Lists are resampled with replacement; the percentiles are corrected for bias and skewness (BCa),
    as in `scipy.stats.bootstrap`, whose numbers these are for the same generator.

    Parameters
    ----------
    values : array_like
        [lists] values, as a measure gives them with ``reduction="none"``.
    confidence : float
        How often such an interval holds the true mean.
    resamples : int
        How many times the lists are drawn.
    generator : Generator or int
        A numpy generator or a seed.

    Returns
    -------
    Interval
        The mean and the ends.

    Raises
    ------
    ValueError
        There are no values, or one is not finite.

    See Also
    --------
    paired_test : Two rankers on the same lists.
    Interval : What it gives.

    Examples
    --------
    >>> from tierrank import metrics
    >>> metrics.bootstrap_interval([0.2, 0.5, 0.4, 0.9, 0.7, 0.6], generator=1)
    Interval(mean=0.55, low=0.3833333333, high=0.7333333333, confidence=0.95)
    """
    rows = _checked_values(values, "values")
    _check_resampling(confidence, resamples)
    mean = float(rows.mean())
    if np.ptp(rows) == 0:
        return Interval(mean, mean, mean, confidence)
    means = np.sort(_resampled_means(rows, resamples, np.random.default_rng(generator)))
    low, high = np.quantile(means, _bca_levels(rows, means, mean, confidence))
    return Interval(mean, float(low), float(high), confidence)


def paired_test(
    a: Any,
    b: Any,
    *,
    confidence: float = 0.95,
    resamples: int = 10_000,
    generator: Generator = 0,
) -> PairedTest:
    """Paired randomisation test of two rankers' values on the same lists (two-sided).

    If the rankers do
    not differ, each list's difference could as well have the other sign (Smucker et al., 2007): the
    p-value is the share of sign flips whose mean is at least as far from 0. All 2^lists flips are
    tried if there are no more than `resamples` (`exact`), else `resamples` random ones and the one
    observed, so that it is never 0. The interval of the mean difference is `bootstrap_interval`'s.

    Parameters
    ----------
    a, b : array_like
        [lists] values of each ranker, as a measure gives them with ``reduction="none"``.
    confidence : float
        Of the interval of the mean difference.
    resamples : int
        How many sign flips at most; all, if there are no more.
    generator : Generator or int
        A numpy generator or a seed.

    Returns
    -------
    PairedTest
        The mean difference with its interval, and the p-value.

    Raises
    ------
    ValueError
        The two are not of the same lists, or a value is not finite.

    See Also
    --------
    bootstrap_interval : An interval of the mean.
    holm : Correct for several tests.
    PairedTest : What it gives.

    Examples
    --------
    >>> from tierrank import metrics
    >>> test = metrics.paired_test([0.9, 0.8, 0.7, 0.6], [0.5, 0.6, 0.4, 0.5])
    >>> test.difference, test.p_value  # two of the 16 flips: + + + + and − − − −
    (0.25, 0.125)
    """
    left, right = _checked_values(a, "a"), _checked_values(b, "b")
    if len(left) != len(right):
        raise ValueError(
            f"a has {len(left)} values and b has {len(right)}: give both for the same lists."
        )
    _check_resampling(confidence, resamples)
    rng = np.random.default_rng(generator)
    difference = left - right
    interval = bootstrap_interval(
        difference, confidence=confidence, resamples=resamples, generator=rng
    )
    n = len(difference)
    exact = n < 63 and 2**n <= resamples
    flips = _every_flip(n) if exact else _random_flips(n, resamples, rng)
    # Σ ± d = Σ d − 2 Σ_flipped d. Sums that differ by rounding alone are taken as equal.
    total = difference.sum()
    least = abs(total) - 1e-12 * np.abs(difference).sum()
    as_far = sum(int((np.abs(total - 2 * (flip @ difference)) >= least).sum()) for flip in flips)
    p_value = as_far / 2**n if exact else (as_far + 1) / (resamples + 1)
    return PairedTest(interval.mean, interval.low, interval.high, confidence, p_value, exact)


def holm(p_values: Any) -> FloatArray:
    """Correct the p-values of several tests for their number (Holm, 1979).

    The smallest is multiplied by how many there are, the next one by one less, and so on; none is
    above 1, nor below one that was smaller. Whoever rejects what is below 0.05 then errs anywhere
    with a probability of at most 0.05, whatever the tests have to do with each other.

    Parameters
    ----------
    p_values : array_like
        One a test.

    Returns
    -------
    ndarray of float
        Corrected p-values, in the same order.

    Raises
    ------
    ValueError
        A p-value is not between 0 and 1.

    See Also
    --------
    paired_test : Two rankers on the same lists.

    Examples
    --------
    >>> from tierrank import metrics
    >>> metrics.holm([0.01, 0.04, 0.03])
    array([0.03, 0.06, 0.06])
    """
    given: AnyArray = np.asarray(to_numpy(p_values, "p_values"), dtype=np.float64)
    if given.ndim != 1 or not ((given >= 0) & (given <= 1)).all():
        raise ValueError("p_values are numbers from 0 to 1, one a test")
    order = np.argsort(given, kind="stable")
    found = np.empty(len(given))
    scaled = given[order] * np.arange(len(given), 0, -1)
    found[order] = np.minimum(np.maximum.accumulate(scaled), 1.0)
    return found


def _resampled_means(rows: FloatArray, resamples: int, rng: np.random.Generator) -> FloatArray:
    n = len(rows)
    return np.concatenate(
        [
            rows[rng.integers(0, n, size=(block, n))].mean(axis=1)
            for block in _block_sizes(resamples, n)
        ]
    )


def _bca_levels(
    rows: FloatArray, means: FloatArray, mean: float, confidence: float
) -> tuple[float, float]:
    """The percentiles to take: Φ(z0 + (z0 + z) / (1 − acceleration · (z0 + z)))."""
    normal = NormalDist()
    below = (np.sum(means < mean) + np.sum(means <= mean)) / (2 * len(means))
    bias = normal.inv_cdf(float(np.clip(below, 0.5 / len(means), 1 - 0.5 / len(means))))
    off = rows - mean  # leaving a list out moves the mean by −off / (n − 1)
    acceleration = float((off**3).sum() / (6 * (off**2).sum() ** 1.5))

    def level(probability: float) -> float:
        z = bias + normal.inv_cdf(probability)
        return normal.cdf(bias + z / (1 - acceleration * z))

    return level((1 - confidence) / 2), level((1 + confidence) / 2)


def _every_flip(n: int) -> Iterator[FloatArray]:
    bits = np.arange(n)
    done = 0
    for block in _block_sizes(2**n, n):
        numbers = np.arange(done, done + block)[:, None]
        yield ((numbers >> bits) & 1).astype(np.float64)
        done += block


def _random_flips(n: int, resamples: int, rng: np.random.Generator) -> Iterator[FloatArray]:
    for block in _block_sizes(resamples, n):
        yield rng.integers(0, 2, size=(block, n), dtype=np.int8).astype(np.float64)


def _block_sizes(resamples: int, n: int) -> list[int]:
    block = max(_BLOCK // n, 1)
    whole, rest = divmod(resamples, block)
    return [block] * whole + [rest] * (rest > 0)


def _checked_values(values: Any, what: str) -> FloatArray:
    rows: AnyArray = to_numpy(values, what)
    if rows.ndim != 1 or rows.dtype.kind not in "biuf" or not len(rows):
        raise ValueError(
            f"{what} must be one number a list, not {rows.dtype} with shape {rows.shape}: "
            'take them with reduction="none".'
        )
    rows = rows.astype(np.float64)
    if not (finite := np.isfinite(rows)).all():
        raise ValueError(
            f"{what}[{int(np.argmin(finite))}] is {rows[int(np.argmin(finite))]} "
            f"({int((~finite).sum())} such lists in all): leave these lists out (of both rankers)."
        )
    return rows


def _check_resampling(confidence: float, resamples: int) -> None:
    if not 0 < confidence < 1:
        raise ValueError(
            f"confidence lies between 0 and 1, as 0.95 does; it is not {confidence!r}."
        )
    if operator.index(resamples) < 1:
        raise ValueError(f"resamples is a number from 1 on, not {resamples!r}.")
