"""DavidsonLuce: worths from lists in which a tie is an outcome of its own.

From the items R that are left, the next tier S of t = |S| items is chosen with weight

    δ_t (∏_{i∈S} α_i)^{1/t},     δ_1 = 1,     over all S ⊆ R of a size that ties have,

so the sum over all S of size t is δ_t e_t(α^{1/t}), an elementary symmetric polynomial of the roots
of the worths (Turner, van Etten, Firth and Kosmidis, 2020; Davidson, 1970, for two items).

**The sums.** Taking the items of R in one by one, from the last of the list up, with x = α^{1/t}:

    e_k ← e_k + x e_{k−1},     here as logarithms:  L_k ← log(e^{L_k} + e^{L_{k−1} + w/t}).

One pass from the bottom meets every R of a list on its way: Σ_t t steps an item, whatever the
number of subsets. r_k = e^{L_{k−1} + w/t − L_k(new)} is the probability that the item is in a
subset of size k of the items so far, chosen with those weights.

**Derivatives.** Chances flow down again: where a tier was chosen, size t takes its probability P_t
into the state k = t, and each item passes A_k r_k on to k − 1 and leaves A_k (1 − r_k). Then
∂ log Z/∂w = Σ A_k r_k / t: how much of an item is in what is chosen. The derivative of both passes
along a vector has only products of such probabilities, so that nothing can overflow. Minus the
log-likelihood is convex in (w, log δ): log Z is the normaliser of an exponential family.
"""

from __future__ import annotations

import time
import warnings
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
import torch
from scipy.sparse import csr_array
from scipy.special import gammaln, logsumexp
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from tierrank._types import BoolArray, FloatArray
from tierrank.aggregation import state
from tierrank.aggregation.connectivity import Connectivity, Disconnected, connectivity
from tierrank.aggregation.lists import CountedLists, distinct, weighted_lists
from tierrank.aggregation.paired_likelihood import FAR
from tierrank.aggregation.results import (
    IN_WORDS,
    Estimates,
    NotConverged,
    OfLists,
    log_odds_interval,
    worths_before,
)
from tierrank.aggregation.solvers import watched
from tierrank.aggregation.summary import Parameter, wald
from tierrank.aggregation.terms import MatrixHessian, OnWorths, Prior, PseudoItem, Sum, prior_from
from tierrank.data.rankings.games import Games
from tierrank.data.rankings.reading import of_frame
from tierrank.errors import Argument, ArgumentError, check_count
from tierrank.names import check_uncertainty
from tierrank.storage import Arrays
from tierrank.tiers import Tiers
from tierrank.training import Watch
from tierrank.training.covariance import (
    MOST_DENSE,
    Kind,
    covariance,
    effective_parameters,
    reach,
)
from tierrank.training.optim import (
    Hessian,
    Minimum,
    TwiceDifferentiable,
    by_cholesky,
    by_products,
    newton,
)

TOLERANCE = 1e-11  # of every part of the gradient, relative to the choices it is a sum over
BATCH = 1 << 22  # numbers of the derivatives along several vectors at a time
MOST_STATES = 500_000_000  # numbers of all lists' probabilities r and A: 4 GB


class DavidsonLuceTerm:
    """Minus the log-likelihood of lists, as a function of [log-worths, log δ of the ties' sizes].

    Parameters
    ----------
    tiers
        lists without a rest; those of fewer than two items say nothing
    counts
        [lists] how often each was seen
    sizes
        of the ties that there are, ascending, without 1
    """

    def __init__(self, tiers: Tiers, counts: FloatArray, sizes: tuple[int, ...]) -> None:
        self.counts, self.sizes = counts, sizes
        self.items = tiers.n_items or 0
        self.size = self.items + len(sizes)
        lengths = tiers.lengths.numpy()
        # Lists are sorted by length, and entries stand place by place, from the bottom: those of
        # place p in the first `alive[p]` lists, from `starts[p]` on.
        order = np.argsort(-lengths, kind="stable")
        longest = int(lengths.max(initial=0))
        self.alive = np.searchsorted(-lengths[order], -np.arange(longest), side="left")
        self.starts = np.concatenate([[0], np.cumsum(self.alive)])
        place = np.repeat(np.arange(longest), self.alive)
        rank = np.arange(self.starts[-1]) - self.starts[place]
        self.list_of = order[rank]
        ends = tiers.tier_offsets.numpy()[tiers.list_offsets.numpy()]
        entry = ends[self.list_of + 1] - 1 - place
        self.item = tiers.items.numpy()[entry]
        tier_sizes = tiers.tier_sizes.numpy()
        tied = np.repeat(tier_sizes, tier_sizes)[entry]
        first = np.zeros(ends[-1], bool)
        first[tiers.tier_offsets.numpy()[:-1]] = True
        # a choice from one item is none
        self.chosen: BoolArray = first[entry] & (place > 0)
        # what a tier's item adds to log P: w / t
        self.share = np.where((tied == 1) & (place == 0), 0.0, 1 / np.maximum(tied, 1))
        self.place, self.weight = place, float(counts.sum())
        orders = np.array([1, *sizes])
        self.which = np.searchsorted(orders, tied[self.chosen])  # size of each choice, by number
        if not np.isin(tied[self.chosen], orders).all():
            raise ValueError(f"the ties have other sizes than {sizes}")
        # states (t, k), k = 0 .. t, for one t after the other
        self.ends = np.cumsum(orders + 1) - 1  # of k = t
        self.root = np.repeat(1 / orders, orders + 1)[:, None]  # 1 / t
        self.begin = np.concatenate([[0], self.ends[:-1] + 1])  # of k = 0
        states = len(self.root)
        if states * len(entry) > MOST_STATES:
            raise ValueError(
                f"ties of up to {orders[-1]} items in lists of {len(entry):,} entries take too "
                "much memory as outcomes: leave out the lists with the largest ties, or fit a "
                "RankAggregator, to which they are orders that nobody saw"
            )
        self._last: tuple[bytes, Passes] | None = None

    def at(self, point: FloatArray) -> Passes:
        """The passes at a point, which value, gradient and second derivatives share."""
        key = point.tobytes()
        if self._last is None or self._last[0] != key:
            self._last = None  # or two of them would be there
            self._last = key, Passes(self, point)
        return self._last[1]

    def scale(self) -> FloatArray:
        """[parameters] what bounds each part of the gradient."""
        scale = np.full(self.size, self.weight)
        scale[: self.items] = np.bincount(self.item, self.counts[self.list_of], self.items)
        return np.where(scale > 0, scale, 1.0)

    def start(self) -> FloatArray:
        """[parameters] equal worths, and δ about right for the sizes seen, Σ C(|R|, t) possible."""
        left = self.place[self.chosen] + 1.0
        counts = self.counts[self.list_of[self.chosen]]
        seen = np.bincount(self.which, counts, len(self.sizes) + 1)
        rate = []
        for size, often in zip((1, *self.sizes), seen, strict=True):
            there = left >= size
            ways = gammaln(left[there] + 1) - gammaln(left[there] - size + 1) - gammaln(size + 1)
            rate.append(np.log(max(often, 0.5)) - logsumexp(ways, b=counts[there]))
        return np.concatenate([np.zeros(self.items), np.array(rate[1:]) - rate[0]])

    def log_probabilities(self, point: FloatArray) -> FloatArray:
        """[lists] log-probabilities."""
        return self.at(point).log_prob

    def value_and_gradient(self, point: FloatArray) -> tuple[float, FloatArray]:
        """The value, and its [parameters] gradient."""
        slopes, by_ties = self.at(point).slopes()
        summed = np.bincount(self.item, slopes * self.counts[self.list_of], self.items)
        gradient = np.concatenate([summed, self.counts @ by_ties])
        return -float(self.counts @ self.at(point).log_prob), -gradient

    def hessian(self, point: FloatArray) -> Hessian:
        """The second derivatives."""
        return DavidsonLuceHessian(self, self.at(point))

    def list_gradients(self, point: FloatArray) -> Any:
        """Sparse [lists, parameters]: the gradient of every list's log-probability."""
        slopes, by_ties = self.at(point).slopes()
        shape = (len(self.counts), self.size)
        wide = csr_array((slopes, (self.list_of, self.item)), shape=shape)
        rows, columns = np.nonzero(by_ties)
        return wide + csr_array((by_ties[rows, columns], (rows, self.items + columns)), shape=shape)

    def outer_products(self, point: FloatArray) -> FloatArray:
        """[parameters, parameters] Σ count · g gᵀ over lists, g the gradient of one of them."""
        rows = self.list_gradients(point)
        weighted = rows.multiply(self.counts[:, None]).tocsr()
        return np.asarray((rows.T @ weighted).toarray())


class Passes:
    """Up and down through all lists at a point: probabilities of subsets and of their items."""

    def __init__(self, term: DavidsonLuceTerm, point: FloatArray) -> None:
        self.term = term
        w, log_tie = point[term.item], np.concatenate([[0.0], point[term.items :]])[:, None]
        states, entries = len(term.root), len(w)
        self.r = np.zeros((states, entries))  # the item is in the subset, given its size
        self.p = np.zeros((len(log_tie), entries))  # of sizes, where a tier was chosen
        log_z = np.zeros(entries)
        sums = np.full((states, len(term.counts)), -np.inf)
        sums[term.begin] = 0.0
        for here, block in self._blocks():
            before = sums[:, here]
            with_it = np.vstack([np.full(before.shape[1], -np.inf), before[:-1]]) + (
                term.root * w[block]
            )
            with_it[term.begin] = -np.inf
            after = np.logaddexp(before, with_it)
            there = after > -np.inf
            self.r[:, block][there] = np.exp(with_it[there] - after[there])
            sums[:, here] = after
            weights = log_tie + after[term.ends]
            top = logsumexp(weights, axis=0)
            self.p[:, block] = np.exp(weights - top) * term.chosen[block]
            log_z[block] = top
        gained = term.share * w
        gained[term.chosen] += log_tie[term.which, 0] - log_z[term.chosen]
        self.log_prob: FloatArray = np.bincount(term.list_of, gained, len(term.counts)).astype(
            np.float64
        )
        self.a = np.zeros((states, entries))  # of subsets of a size, before an item leaves
        flow = np.zeros((states, len(term.counts)))
        for here, block in self._blocks(down=True):
            flow[term.ends, here] += self.p[:, block]
            self.a[:, block] = flow[:, here]
            leaves = flow[:, here] * self.r[:, block]
            flow[:, here] -= leaves
            flow[:-1, here] += leaves[1:]

    def _blocks(self, *, down: bool = False) -> list[tuple[slice, slice]]:
        """For every place from the bottom, or from the top: its lists and its entries."""
        found = [
            (slice(0, alive), slice(start, start + alive))
            for alive, start in zip(self.term.alive, self.term.starts[:-1], strict=True)
        ]
        return found[::-1] if down else found

    def slopes(self) -> tuple[FloatArray, FloatArray]:
        """[entries] and [lists, sizes] derivatives of log-probabilities by w and log δ."""
        term = self.term
        by_worth = term.share - (self.a * self.r * term.root).sum(axis=0)
        surplus = -self.p
        surplus[term.which, np.flatnonzero(term.chosen)] += 1.0
        by_tie = [np.bincount(term.list_of, row, len(term.counts)) for row in surplus[1:]]
        shape = (len(term.sizes), len(term.counts))
        return by_worth, np.asarray(by_tie, dtype=np.float64).reshape(shape).T

    def along(self, v: FloatArray, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Derivatives of minus the `slopes` along vectors: [entries, n], and [entries, sizes, n].

        v [entries, n] moves the log-worth of every entry, u [sizes, n] all log δ.
        """
        term, several = self.term, v.shape[1]
        u = np.concatenate([np.zeros((1, several)), u])[:, None]
        root = term.root[:, :, None]
        by_r = np.empty((*self.r.shape, several))
        by_p = np.empty((*self.p.shape, several))
        sums = np.zeros((len(root), len(term.counts), several))
        for here, block in self._blocks():
            before, r, p = sums[:, here], self.r[:, block, None], self.p[:, block, None]
            # log of "with it" less log of "without it"
            gap = root * v[block] - before
            gap[1:] += before[:-1]
            by_r[:, block] = r * (1 - r) * gap
            before += r * gap
            weights = u + before[term.ends]
            by_p[:, block] = p * (weights - (p * weights).sum(axis=0))
        out = np.empty_like(v)
        flow = np.zeros_like(sums)
        for here, block in self._blocks(down=True):
            flow[term.ends, here] += by_p[:, block]
            leaves = flow[:, here] * self.r[:, block, None]
            leaves += self.a[:, block, None] * by_r[:, block]
            out[block] = (leaves * root).sum(axis=0)
            flow[:, here] -= leaves
            flow[:-1, here] += leaves[1:]
        return out, by_p[1:].transpose(1, 0, 2)


class DavidsonLuceHessian:
    """Second derivatives of `DavidsonLuceTerm`."""

    def __init__(self, term: DavidsonLuceTerm, passes: Passes) -> None:
        self._term, self._passes = term, passes
        self._count = term.counts[term.list_of]

    def product(self, vector: FloatArray) -> FloatArray:
        term = self._term
        v, u = vector[term.item][:, None], vector[term.items :][:, None]
        by_worth, by_tie = self._passes.along(v, u)
        summed = np.bincount(term.item, by_worth[:, 0] * self._count, term.items)
        return np.concatenate([summed, self._count @ by_tie[:, :, 0]])

    def diagonal(self) -> None:
        return None

    def matrix(self) -> FloatArray:
        """One vector a place in a list, for all lists at once: these columns of each list's own."""
        term = self._term
        n, entries = term.items, len(term.item)
        out = np.zeros((term.size, term.size))
        flat = np.zeros(n * n)
        batch = max(1, BATCH // max(1, entries * len(term.root)))
        for start in range(0, len(term.alive), batch):
            places = np.arange(start, min(start + batch, len(term.alive)))
            v = (term.place[:, None] == places).astype(np.float64)
            by_worth, _ = self._passes.along(v, np.zeros((len(term.sizes), len(places))))
            lists = np.arange(entries) - term.starts[term.place]  # as they are sorted
            for number, place in enumerate(places):
                there = lists < term.alive[place]
                column = term.item[term.starts[place] + lists[there]]
                flat += np.bincount(
                    term.item[there] * n + column,
                    by_worth[there, number] * self._count[there], n * n,
                )  # fmt: skip
        out[:n, :n] = flat.reshape(n, n)
        for number in range(len(term.sizes)):
            unit = np.zeros(term.size)
            unit[n + number] = 1.0
            out[n + number] = out[:, n + number] = self.product(unit)
        return np.asarray((out + out.T) / 2)


class PseudoLists:
    """Minus the log-density of a `PseudoItem`, as a function of all parameters.

    It is one more item, of log-worth 0: what everybody won and lost against it are lists of two,
    which could have been ties.
    """

    def __init__(self, prior: PseudoItem, items: int, sizes: tuple[int, ...]) -> None:
        self.items = items
        each, one_more = np.arange(items), np.full(items, items)
        pairs = np.concatenate([np.stack([each, one_more], 1), np.stack([one_more, each], 1)])
        tiers = Tiers(
            items=torch.from_numpy(pairs.reshape(-1)),
            tier_offsets=torch.arange(4 * items + 1),
            list_offsets=torch.arange(0, 4 * items + 1, 2),
            n_items=items + 1,
        )
        self._lists = DavidsonLuceTerm(tiers, np.full(2 * items, prior.wins), sizes)

    def value_and_gradient(self, point: FloatArray) -> tuple[float, FloatArray]:
        """The value, and its [parameters] gradient."""
        value, gradient = self._lists.value_and_gradient(np.insert(point, self.items, 0.0))
        return value, np.delete(gradient, self.items)

    def hessian(self, point: FloatArray) -> Hessian:
        """The second derivatives."""
        wide = self._lists.hessian(np.insert(point, self.items, 0.0)).matrix()
        return MatrixHessian(np.delete(np.delete(wide, self.items, 0), self.items, 1))


class DavidsonLuceLoss(Sum):
    """Minus the log-likelihood of lists, minus the log-density of a prior if there is one."""

    def __init__(
        self, tiers: Tiers, counts: FloatArray, sizes: tuple[int, ...], prior: Prior | None
    ) -> None:
        self.lists = DavidsonLuceTerm(tiers, counts, sizes)
        self.shared = self.lists.items if prior is None else 0
        terms: list[TwiceDifferentiable] = [self.lists]
        if isinstance(prior, PseudoItem):
            terms.append(PseudoLists(prior, self.lists.items, sizes))
        elif prior is not None:
            terms.append(OnWorths(prior, len(sizes)))
        super().__init__(terms)

    def minimise(self, start: FloatArray, max_iter: int, iterated: Any = None) -> Minimum:
        """Go to the minimum; "no minimum" where some parameter is infinite there."""
        scale = self.lists.scale()

        def solve(point: FloatArray, gradient: FloatArray, tightness: float) -> FloatArray | None:
            hessian = self.hessian(point)
            if len(point) > MOST_DENSE:
                return by_products(hessian, gradient, tightness, centred=False)
            return by_cholesky(hessian.matrix(), gradient, shared=self.shared, damping=scale)

        return newton(
            self.value_and_gradient, solve, start, weight=min(self.lists.weight, 1.0), far=FAR,
            tol=TOLERANCE * scale, max_iter=max_iter, iterated=iterated,
        )  # fmt: skip

    def covariance(self, point: FloatArray, *, sandwich: bool) -> FloatArray:
        """[parameters, parameters] covariance, of the log-worths minus their mean."""
        outer = self.lists.outer_products(point) if sandwich else None
        matrix = self.hessian(point).matrix()
        return covariance(matrix, outer, worths=self.lists.items, shifted=self.shared > 0)

    def effective_parameters(self, point: FloatArray) -> float:
        """How many parameters the lists, not the prior, decide."""
        if self.shared:
            return float(self.lists.size - 1)
        whole, lists = (each.hessian(point).matrix() for each in (self, self.lists))
        return effective_parameters(whole, lists)


class DavidsonLuce(OfLists, BaseEstimator):  # type: ignore[misc]
    """Worths of items from lists in which a tie says "about equal", by maximum likelihood.

    The Davidson-Luce model of R's PlackettLuce (Turner, van Etten, Firth and Kosmidis, 2020): from
    what is left of a list, the next tier S of t items is chosen with probability proportional to
    δ_t (∏ worths of S)^{1/t}, among all subsets of every size that ties have. A size that no tie
    has, has no δ. The last item that is left is no choice; a tie in the last place is one.

    `RankAggregator` takes ties for orders that nobody saw; here they are outcomes, which say that
    items are close, and how often is estimated. Of lists of two it is "davidson" of `PairedTies`.
    Time grows with the entries of the lists times the squares of the ties' sizes.

    Parameters
    ----------
    prior : str, optional
        None for maximum likelihood; "gaussian" or "gaussian:2", normal log-worths with that
        standard deviation (1 if not given); "pseudo-item" or "pseudo-item:0.5", the prior of R's
        PlackettLuce: every item won and lost so many times against one more item.
    max_iter : int
        Most steps of Newton's method.
    uncertainty : {"information", "sandwich"} or None
        "information", the inverse of the observed information (with the prior's, which R leaves
        out); or "sandwich", which holds with enough lists even where the model is wrong;
        None: there are to be no standard errors.

    Attributes
    ----------
    items_ : tuple
        Names of the items.
    log_worths_, worths_, standard_errors_ : ndarray of float
        [items] log-worths with mean 0; worths, which sum to 1; standard errors of `log_worths_`.
    tie_sizes_ : tuple of int
        Sizes t of the ties that there are.
    log_tie_prevalences_, tie_prevalences_ : ndarray of float
        [sizes] log δ_t and δ_t. With equal worths, a tie of one given set of t items is δ_t times
        as probable as one given item alone.
    covariance_ : ndarray of float
        [items + sizes, items + sizes] of the centred log-worths and log δ.
    log_likelihood_, aic_, n_parameters_ : float
        Of the lists, without the prior; Akaike's criterion; free parameters (with a prior, those
        that the lists decide).
    lists_ : CountedLists
        The lists as they were fitted.
    connectivity_ : Connectivity
        Which items they compare.
    converged_ : bool
        Whether the fit came to its end; `solver_`, `n_iter_`, `stopped_by_`, `objective_values_`,
        `gradient_norm_` and `seconds_` are as in `RankAggregator`, whose other results are there
        too. Ranks and probabilities of places are those of rankings without ties.

    See Also
    --------
    RankAggregator : Ties that are orders nobody saw.
    PairedTies : Games of two sides.

    Examples
    --------
    >>> import tierrank as tr
    >>> votes = [
    ...     ["ann", ("bob", "cy")],
    ...     [("ann", "bob"), "cy"],
    ...     ["cy", ("ann", "bob")],
    ...     ["bob", "cy", "ann"],
    ... ]
    >>> fitted = tr.DavidsonLuce().fit(votes, weights=[5, 3, 2, 1])
    >>> print(fitted.summary())
    DavidsonLuce, information: 3 items, 11 lists, δ2 1.69, log-likelihood -26.63, AIC 59.26
    rank  item  log-worth  std err   [0.025  0.975]   worth
       1  ann      0.8680   0.5184  -0.1481  1.8841  0.6476
       2  bob     -0.4056   0.4756  -1.3377  0.5266  0.1812
       3  cy      -0.4625   0.4952  -1.4330  0.5080  0.1712
    >>> [f"{chance:.3f}" for chance in fitted.predict_proba("ann", "bob")]
    ['0.460', '0.411', '0.129']
    """

    items_: tuple[Any, ...]
    tie_sizes_: tuple[int, ...]
    log_tie_prevalences_: FloatArray
    log_likelihood_: float
    n_parameters_: float
    _point: FloatArray  # where the minimum is: a prior says where all log-worths lie together

    def __init__(
        self,
        *,
        prior: str | Prior | None = None,
        max_iter: int = 100,
        uncertainty: Kind | None = "information",
    ) -> None:
        self.prior = prior
        self.max_iter = max_iter
        self.uncertainty = uncertainty

    def fit(
        self,
        rankings: Any,
        *,
        weights: Any = None,
        items: Any = None,
        rest: Literal["absent", "last"] = "absent",
        watch: Watch | None = None,
        init_model: Any = None,
        **columns: Any,
    ) -> Self:
        """Estimate the worths of all items, and how frequent ties are.

        Parameters
        ----------
        rankings : Rankings, Tiers, iterable or DataFrame
            As in `RankAggregator.fit`.
        weights : array_like, optional
            [lists] how often each was seen, 0 or more.
        items : sequence or int, optional
            The catalogue, as in `RankAggregator.fit`.
        rest : {"absent"}
            What a list does not name took no part. A rest in the "last" place is refused, as nobody
            called its items equal.
        watch : callable, optional
            Called after every iteration with a `tierrank.training.Progress`.
        init_model : estimator, path-like or mapping, optional
            Where to begin, as in `RankAggregator.fit`.
        **columns
            Those of a frame, as in `RankAggregator.fit`.

        Returns
        -------
        DavidsonLuce
            Itself.

        Raises
        ------
        Disconnected
            Without a prior, if there is no finite estimate: it says which items are why.
        ValueError
            An option or the data are not as they should be; the message says which and where.

        See Also
        --------
        summary : What was found.

        Examples
        --------
        >>> import tierrank as tr
        >>> votes = [["ann", ("bob", "cy")], ["bob", "ann", "cy"], ["cy", "ann"]]
        >>> tr.DavidsonLuce().fit(votes, weights=[5, 2, 1]).tie_sizes_
        (2,)
        """
        self._check()
        begun = time.perf_counter()
        prior = prior_from(self.prior)
        lists = _lists(of_frame(rankings, columns, weights), weights, items, rest)
        found = None
        if prior is None:
            found = self._connected(lists)
            if not found.connected:
                raise Disconnected(found, "games" if isinstance(rankings, Games) else "lists")
        sizes = _tie_sizes(lists.tiers)
        loss = DavidsonLuceLoss(lists.tiers, lists.counts, sizes, prior)
        start = loss.lists.start()
        if init_model is not None:
            start[: lists.n_items] = worths_before(init_model, lists.items)
        end = loss.minimise(start, self.max_iter, watched(watch, self.max_iter, lists.weight))
        if end.stopped_by == "no minimum":
            raise _undetermined(self.prior)
        if not end.converged:
            warnings.warn(
                NotConverged(
                    f"the fit did not come to its end in {end.iterations} steps: raise ",
                    Argument("max_iter"), ", or give a prior",
                ), stacklevel=2
            )  # fmt: skip
        w, log_ties = np.split(end.point, [lists.n_items])
        self.items_, self.lists_, self._numbers_of = lists.items, lists, None
        self.tie_sizes_ = sizes
        self.log_worths_, self.log_tie_prevalences_ = w - w.mean(), log_ties
        self._connectivity, self._covariances = found, {}
        self.log_likelihood_ = -loss.lists.value_and_gradient(end.point)[0]
        self._point = end.point
        self.n_parameters_ = loss.effective_parameters(end.point)
        self.aic_ = 2 * self.n_parameters_ - 2 * self.log_likelihood_
        self._went(end, "newton")
        self.seconds_ = time.perf_counter() - begun
        return self

    def _check(self) -> None:
        prior_from(self.prior)
        check_uncertainty(self.uncertainty)
        check_count("max_iter", self.max_iter)

    # -- how sure, and how frequent ties are --------------------------------------------------

    @property
    def tie_prevalences_(self) -> FloatArray:
        """[sizes] δ."""
        return np.exp(self.log_tie_prevalences_)

    @property
    def covariance_(self) -> FloatArray:
        """[items + sizes, items + sizes] of centred log-worths and log δ."""
        check_is_fitted(self)
        return self._parameter_covariance(self._kind(None))

    def parameters(self, level: float = 0.95) -> list[Parameter]:
        """List the log δ of every size of ties, and δ itself, with intervals (one by the other).

        Parameters
        ----------
        level : float
            Of the intervals.

        Returns
        -------
        list of Parameter
            Two a size.

        See Also
        --------
        summary : Shows them below the worths.

        Examples
        --------
        >>> import tierrank as tr
        >>> votes = [["ann", ("bob", "cy")], ["bob", "ann", "cy"], ["cy", "ann"]]
        >>> len(tr.DavidsonLuce().fit(votes, weights=[5, 2, 1]).parameters())
        2
        """
        check_is_fitted(self)
        reach(level)  # refuses a wrong one
        found: list[Parameter] = []
        try:
            variances = np.diag(self.covariance_)[len(self.items_) :]
        except ValueError:  # there are none
            variances = np.full(len(self.tie_sizes_), np.nan)
        for size, log_tie, error in zip(
            self.tie_sizes_, self.log_tie_prevalences_, np.sqrt(variances), strict=True
        ):
            log = wald(f"log δ{size} (ties of {size})", float(log_tie), float(error), level)
            value, low, high = (float(np.exp(at)) for at in (log.estimate, log.low, log.high))
            found += [log, Parameter(f"δ{size}", value, value * log.standard_error, low, high)]
        return found

    def _compute_covariance(self, kind: Kind) -> FloatArray:
        self._ask_lists(f"covariance of kind {kind!r}")
        return self._loss(self.lists_).covariance(self._point, sandwich=kind == "sandwich")

    def _loss(self, lists: CountedLists) -> DavidsonLuceLoss:
        return DavidsonLuceLoss(lists.tiers, lists.counts, self.tie_sizes_, prior_from(self.prior))

    # -- chances ------------------------------------------------------------------------------

    def predict_proba(self, a: Any, b: Any, *, level: float | None = None) -> tuple[Any, Any, Any]:
        """Compute the probabilities that a is above b, that they tie, and that b is above a.

        Of a list of these two: in a longer one, they depend on who else takes part.

        Parameters
        ----------
        a, b : object
            Names of two items.
        level : float, optional
            With it, each probability comes as three numbers, with the ends of an interval of this
            level (by the normal approximation on the scale of log-odds).

        Returns
        -------
        tuple
            Three probabilities; with `level` each of them as three numbers.

        Raises
        ------
        ValueError
            An item is not known.

        See Also
        --------
        log_prob : Of whole lists.

        Examples
        --------
        >>> import tierrank as tr
        >>> votes = [["ann", ("bob", "cy")], ["bob", "ann", "cy"], ["cy", "ann"]]
        >>> fitted = tr.DavidsonLuce().fit(votes, weights=[5, 2, 1])
        >>> round(sum(fitted.predict_proba("ann", "bob")), 6)
        1.0
        """
        check_is_fitted(self)
        first, second = (int(self._codes([name])[0]) for name in (a, b))
        if first == second:
            raise ValueError(f"{a!r} does not compare with itself")
        ties = 2 in self.tie_sizes_
        outcomes = [[first, second], [(first, second)] if ties else [first], [second, first]]
        term = DavidsonLuceTerm(
            Tiers.from_rankings(outcomes, items=len(self.items_)), np.ones(3), self.tie_sizes_
        )
        point = np.concatenate([self.log_worths_, self.log_tie_prevalences_])
        log_p = np.where([True, ties, True], term.log_probabilities(point), -np.inf)
        chances = np.exp(log_p)
        if level is None:
            win, tie, loss = chances.tolist()
            return win, tie, loss
        slopes = term.list_gradients(point).toarray()
        variance = ((slopes @ self.covariance_) * slopes).sum(axis=1)
        low, high = log_odds_interval(log_p, chances.sum() - chances, variance, level)
        found = [
            Estimates(*ends)
            for ends in zip(chances.tolist(), low.tolist(), high.tolist(), strict=True)
        ]
        return found[0], found[1], found[2]

    def log_prob(self, rankings: Any) -> FloatArray:
        """Compute the log-probabilities of lists of these items, seen or not.

        They are −inf for a list with a tie of a size that no fitted list had, and 0 for one of
        fewer than two items.

        Parameters
        ----------
        rankings : Rankings, Tiers or iterable
            As `Tiers.from_rankings` takes them, of these items; or `tierrank.data.Rankings` or a
            `Tiers` of this very catalogue.

        Returns
        -------
        ndarray of float
            [lists] log-probabilities.

        Raises
        ------
        ValueError
            A ranking names an item that is not known.

        See Also
        --------
        predict_proba : Of two items.

        Examples
        --------
        >>> import tierrank as tr
        >>> votes = [["ann", ("bob", "cy")], ["bob", "ann", "cy"], ["cy", "ann"]]
        >>> fitted = tr.DavidsonLuce().fit(votes, weights=[5, 2, 1])
        >>> fitted.log_prob([[("ann", "bob", "cy")]])  # no list had a tie of three
        array([-inf])
        """
        check_is_fitted(self)
        tiers = self._tiers_of(rankings)
        _refuse_rest(tiers)
        sizes = tiers.tier_sizes.numpy()
        unknown = np.flatnonzero(~np.isin(sizes, (1, *self.tie_sizes_)))
        known = np.ones(len(tiers), bool)
        known[np.searchsorted(tiers.list_offsets.numpy(), unknown, side="right") - 1] = False
        found = np.full(len(tiers), -np.inf)
        some = tiers[np.flatnonzero(known)]
        point = np.concatenate([self.log_worths_, self.log_tie_prevalences_])
        term = DavidsonLuceTerm(some, np.ones(len(some)), self.tie_sizes_)
        found[known] = term.log_probabilities(point)
        return found

    # -- the lists again ----------------------------------------------------------------------

    def _counted(self, data: Any) -> CountedLists:
        return _lists(data)

    def _connected(self, lists: CountedLists) -> Connectivity:
        return connectivity(lists.tiers, ties_connect=True)

    def _refit(self, lists: CountedLists, seed: int) -> FloatArray | None:
        if self.prior is None and not self._connected(lists).connected:
            return None
        if _tie_sizes(lists.tiers) != self.tie_sizes_:
            return None
        end = self._loss(lists).minimise(self._point, self.max_iter)
        return end.point[: len(self.items_)] if end.converged else None

    @property
    def ties_connect(self) -> bool:
        """Whether a tie says that two items are about equal."""
        return True

    def _settings(self) -> dict[str, str]:
        return {
            "model": "davidson-luce",
            "prior": str(prior_from(self.prior) or "none"),
            "uncertainty": self._uncertainty_in_words(),
            "who stands above whom": "in lists without ties",
        }

    def _in_words(self) -> tuple[str, str]:
        return IN_WORDS["davidson-luce"]

    def _note(self) -> str:
        prior = "" if self.prior is None else f", prior {prior_from(self.prior)}"
        ties = "".join(
            f", δ{size} {value:.3g}"
            for size, value in zip(self.tie_sizes_, self.tie_prevalences_, strict=True)
        )
        return (
            f"DavidsonLuce, {self._uncertainty_in_words()}{prior}: {len(self.items_):,} items, "
            f"{self.lists_.total:g} lists{ties or ', no ties'}, "
            f"log-likelihood {self.log_likelihood_:.4g}, AIC {self.aic_:.4g}"
        )

    # -- saved --------------------------------------------------------------------------------

    def to_state(self) -> tuple[dict[str, Any], Arrays]:
        """What `tierrank.save` writes: estimates and covariances, without the lists."""
        info = self._saved(tie_sizes=list(self.tie_sizes_), n_parameters=self.n_parameters_)
        arrays = {"log_worths": self.log_worths_, "log_ties": self.log_tie_prevalences_}
        for kind in state.kinds_of(self):
            arrays[kind] = self._parameter_covariance(kind)
        return info, arrays

    @classmethod
    def from_state(cls, info: dict[str, Any], tensors: Arrays) -> Self:
        """From what `to_state` gave; raises a ValueError if it does not hold together."""
        fitted = cls._restored(info)
        sizes = info["tie_sizes"]
        if not all(type(size) is int and size > 1 for size in sizes) or sorted(set(sizes)) != sizes:
            raise ValueError(f"sizes of ties are {sizes!r}")
        fitted.tie_sizes_ = tuple(sizes)
        size = len(fitted.items_) + len(sizes)
        shapes = dict.fromkeys(state.KINDS, (size, size)) | {
            "log_worths": (len(fitted.items_),), "log_ties": (len(sizes),)
        }  # fmt: skip
        arrays = state.checked_arrays(tensors, shapes)
        fitted.log_worths_, fitted.log_tie_prevalences_ = arrays["log_worths"], arrays["log_ties"]
        fitted._covariances = state.covariances_from(arrays)
        fitted.n_parameters_ = float(info["n_parameters"])
        return fitted


def _lists(
    rankings: Any,
    weights: Any = None,
    items: Any = None,
    rest: Literal["absent", "last"] = "absent",
) -> CountedLists:
    """The lists that say something, each different one once: those of two items or more."""
    tiers, counts = weighted_lists(rankings, weights, items, rest)
    _refuse_rest(tiers)
    said = tiers.lengths.numpy() > 1
    found = distinct(tiers, np.where(said, counts, 0.0), ties_speak=True)
    if not found.there:
        raise ValueError(
            "no list says anything: all are empty, of one item, or of weight 0. Give lists of two "
            "items or more."
        )
    return replace(found, total=float(counts.sum()), silent=float(counts[~said].sum()))


def _refuse_rest(tiers: Tiers) -> None:
    if tiers.rest:
        raise ArgumentError(
            "these lists leave a rest, items tied in the last place because nobody named them, and "
            "to davidson-luce a tie says that items are close: read them with ",
            Argument("rest", "absent"), ", or fit a RankAggregator, to which ties are orders that "
            "nobody saw",
        )  # fmt: skip


def _tie_sizes(tiers: Tiers) -> tuple[int, ...]:
    sizes = np.unique(tiers.tier_sizes.numpy())
    return tuple(sizes[sizes > 1].tolist())


def _undetermined(prior: Any) -> ArgumentError:
    cure: list[object] = ["Give a prior (", Argument("prior", "pseudo-item"), ")"]
    if prior is not None:
        cure = ["Take another prior (", Argument("prior", "pseudo-item"), ")"]
    return ArgumentError(
        "the lists do not determine how frequent ties are: there is no finite best value. That is "
        "so where everything that could be a tie of some size is one, or where only the most "
        "distant items are told apart, without an exception. ", *cure, ", or fit a RankAggregator, "
        "to which ties are orders that nobody saw",
    )  # fmt: skip
