"""RankMixture: several groups of lists, each with worths of its own.

A list comes from group k with probability π_k, and has there the exact Plackett-Luce probability
p_k of its tiers:  log p = log Σ_k π_k p_k. With responsibilities r_k = π_k p_k / p, the gradient
g_k and second derivatives H_k of log p_k by the log-worths w_k of a group, and π the softmax of
logits a (a_1 = 0),

    ∂/∂w_k = r_k g_k                 ∂²/∂w_k∂w_j = 1[k=j] r_k (H_k + g_k g_kᵀ) − r_k g_k (r_j g_j)ᵀ
    ∂/∂a_k = r_k − π_k               ∂²/∂a_k∂w_j = (1[k=j] r_k − r_k r_j) g_j
                                     ∂²/∂a_k∂a_j = 1[k=j] (r_k − π_k) − r_k r_j + π_k π_j

Where it is known who gave which lists, a voter is of one group with all of them: then p_k is the
product over a voter's lists, and g_k and H_k are sums over these.

EM (Dempster, Laird and Rubin, 1977) goes near a maximum: its M step is some steps of the usual fit
to lists that count r_k times. From there Newton's method goes to the last digit, and the second
derivatives at the end are the observed information: standard errors know that nobody said which
list is whose.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
import torch
from scipy.special import log_softmax, logsumexp, softmax
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from tierrank._types import AnyArray, FloatArray, IntArray
from tierrank.aggregation import solvers, state
from tierrank.aggregation.aggregator import RankAggregator
from tierrank.aggregation.lists import CountedLists, distinct, nothing_said, weighted_lists
from tierrank.aggregation.results import NotConverged
from tierrank.aggregation.summary import WorthTable
from tierrank.aggregation.terms import (
    GRADIENT_CHUNK,
    MatrixHessian,
    Prior,
    Sum,
    prior_from,
    terms_of,
)
from tierrank.aggregation.votes import cluster_names, read_clusters
from tierrank.data.rankings.reading import of_frame
from tierrank.errors import Argument, ArgumentError, ArgumentWarning, check_count
from tierrank.names import check_uncertainty
from tierrank.plackett_luce import log_prob
from tierrank.storage import Arrays
from tierrank.tiers import Tiers
from tierrank.training import Progress, Watch
from tierrank.training.covariance import MOST_DENSE, Kind, NotDefinite, inverse
from tierrank.training.optim import Hessian, Minimum, by_cholesky, newton
from tierrank.training.progress import Learned, seed_from

OBJECTIVE = "pl-partition"
SHORT = 15  # iterations of EM from every start, after which the best go on
SAMPLE = 500  # different lists, drawn anew for each start, that these are about
GOING_ON = 3  # starts that go on, with all lists
NEAR = 0.02  # nats that an iteration of EM still improves when Newton's method takes over
SLOW = 1e-6  # the same where parameters are too many for that
STEPS = 1  # of Newton's method in an M step
APART = 1.0  # standard deviation of the log-worths of a start about those of all lists
EXTRA = 1.0  # lists that every group has, beside those seen, that say nothing: no share is 0


class Tried(NamedTuple):
    """A number of groups, and how well they fit: the fewer of a criterion, the better."""

    groups: int
    log_likelihood: float
    parameters: int
    aic: float
    bic: float


class MixtureLoss:
    """Minus the log-likelihood of lists, and of the priors of worths and shares.

    The point is [log-worths of group 1, …, of group K, logits of the shares of groups 2 to K].

    Parameters
    ----------
    lists
        and how often each was given
    groups, prior
        how many; of the log-worths of each
    voter
        [lists] numbers from 0, in order, of who gave them; None: everybody gave one
    """

    def __init__(
        self, lists: CountedLists, groups: int, prior: Prior, voter: IntArray | None = None
    ) -> None:
        self.lists, self.groups, self.prior, self.voter = lists, groups, prior, voter
        self.size = groups * lists.n_items + groups - 1
        # [voters] how many alike there are, and where the lists of each begin
        self.alike, self.starts = lists.counts, np.arange(lists.different)
        if voter is not None:
            self.starts = np.flatnonzero(np.diff(voter, prepend=-1))
            self.alike = np.ones(len(self.starts))

    def each(self, responsibilities: FloatArray) -> FloatArray:
        """[lists, groups] from [voters, groups]."""
        return responsibilities if self.voter is None else responsibilities[self.voter]

    def of_voters(self, values: FloatArray) -> FloatArray:
        """Sums over the lists of each voter, from numbers [lists, …] of one."""
        if self.voter is None:
            return values
        counts = self.lists.counts.reshape(-1, *(1,) * (values.ndim - 1))
        return np.asarray(np.add.reduceat(values * counts, self.starts, axis=0))

    def joint(self, worths: FloatArray, log_shares: FloatArray) -> FloatArray:
        """[voters, groups] log-probability to come from a group and to give these lists."""
        logs = joint_log_prob(self.lists.tiers, worths, np.zeros(len(worths)))
        return self.of_voters(logs) + log_shares

    def parts(self, point: FloatArray) -> tuple[FloatArray, FloatArray]:
        """[groups, items] log-worths, and [groups] logs of shares."""
        worths, logits = np.split(point, [self.groups * self.lists.n_items])
        return worths.reshape(self.groups, -1), log_softmax(np.concatenate([[0.0], logits]))

    def point(self, worths: FloatArray, log_shares: FloatArray) -> FloatArray:
        """The same as one vector."""
        return np.concatenate([worths.reshape(-1), log_shares[1:] - log_shares[0]])

    def value(self, worths: FloatArray, log_shares: FloatArray) -> tuple[float, FloatArray]:
        """What is minimised, and [voters, groups] responsibilities."""
        joint = self.joint(worths, log_shares)
        total = logsumexp(joint, axis=1)
        priors = sum(self.prior.value_and_gradient(w)[0] for w in worths)
        value = priors - EXTRA * log_shares.sum() - float(self.alike @ total)
        return float(value), np.exp(joint - total[:, None])

    def drawn(self, most: int, random: np.random.Generator) -> MixtureLoss:
        """The same for so many lists drawn at random; of voters, for some with about as many."""
        lists = self.lists
        if self.voter is None:
            drawn = random.choice(lists.different, most, p=lists.counts / lists.weight)
            counts = np.bincount(drawn, minlength=lists.different).astype(np.float64)
            return MixtureLoss(lists.with_counts(counts), self.groups, self.prior)
        order = random.permutation(len(self.starts))
        sizes = np.bincount(self.voter)[order]
        some = order[: max(self.groups, int(np.searchsorted(np.cumsum(sizes), most)))]
        there = np.isin(self.voter, some)
        voter = np.unique(self.voter[there], return_inverse=True)[1]
        counts = np.where(there, lists.counts, 0.0)
        return MixtureLoss(lists.with_counts(counts), self.groups, self.prior, voter)

    def weighted(self, responsibilities: FloatArray) -> list[Sum]:
        """What each group minimises for itself, given whose the lists are."""
        counts = self.lists.counts[:, None] * self.each(responsibilities)
        return [
            Sum([*terms_of(replace(self.lists, counts=own), OBJECTIVE), self.prior])
            for own in np.ascontiguousarray(counts.T)
        ]

    def value_and_gradient(self, point: FloatArray) -> tuple[float, FloatArray]:
        """The value, and its [parameters] gradient."""
        worths, log_shares = self.parts(point)
        value, r = self.value(worths, log_shares)
        slopes = [
            own.value_and_gradient(w)[1] for own, w in zip(self.weighted(r), worths, strict=True)
        ]
        surplus = self.alike @ r + EXTRA
        by_logit = np.exp(log_shares) * surplus.sum() - surplus
        return value, np.concatenate([*slopes, by_logit[1:]])

    def hessian(self, point: FloatArray) -> Hessian:
        """The second derivatives: at a minimum, the observed information."""
        worths, log_shares = self.parts(point)
        counts, n, k = self.alike, self.lists.n_items, self.groups
        _, r = self.value(worths, log_shares)
        out = np.zeros((self.size, self.size))
        for group, (own, w) in enumerate(zip(self.weighted(r), worths, strict=True)):
            block = slice(group * n, (group + 1) * n)
            out[block, block] = own.hessian(w).matrix()
        for some, slopes in self._slopes(worths):  # [groups, voters, items]
            near, count = r[some], counts[some]
            for group in range(k):
                block, g = slice(group * n, (group + 1) * n), slopes[group]
                out[block, block] -= g.T @ (g * (count * near[:, group])[:, None])
                mixed = -near * near[:, [group]]
                mixed[:, group] += near[:, group]
                by_logit = (mixed * count[:, None]).T @ g
                out[k * n :, block] -= by_logit[1:]
                out[block, k * n :] -= by_logit[1:].T
            flat = (slopes * near.T[:, :, None]).transpose(1, 0, 2).reshape(len(near), -1)
            out[: k * n, : k * n] += flat.T @ (flat * count[:, None])
        shares, total = np.exp(log_shares), float(counts.sum())
        surplus = counts @ r
        by_shares = (
            (r.T * counts) @ r - total * np.outer(shares, shares)
            - np.diag(surplus - total * shares)
            + EXTRA * k * (np.diag(shares) - np.outer(shares, shares))
        )  # fmt: skip
        out[k * n :, k * n :] = by_shares[1:, 1:]
        return MatrixHessian((out + out.T) / 2)

    def outer_products(self, point: FloatArray) -> FloatArray:
        """[parameters, parameters] Σ count · g gᵀ over voters, g the gradient of one of them."""
        worths, log_shares = self.parts(point)
        _, r = self.value(worths, log_shares)
        out = np.zeros((self.size, self.size))
        for some, slopes in self._slopes(worths):
            near = r[some]
            flat = (slopes * near.T[:, :, None]).transpose(1, 0, 2).reshape(len(near), -1)
            rows = np.hstack([flat, (near - np.exp(log_shares))[:, 1:]])
            out += rows.T @ (rows * self.alike[some][:, None])
        return out

    def _slopes(self, worths: FloatArray) -> Any:
        """Some voters at a time: which, and [groups, voters, items] gradients of their log p_k."""
        lists, voters = self.lists, len(self.starts)
        ends = np.append(self.starts, lists.different)
        most = max(1, GRADIENT_CHUNK // worths.size)  # lists at once, but for a voter with more
        first = 0
        while first < voters:
            last = max(first + 1, int(np.searchsorted(ends, ends[first] + most, side="right")) - 1)
            some = slice(int(ends[first]), int(ends[last]))
            whole = some.stop - some.start == lists.different
            part, found = lists.tiers if whole else lists.tiers[some], []
            for w in worths:
                leaf = torch.from_numpy(np.tile(w, (len(part), 1))).requires_grad_()
                (slope,) = torch.autograd.grad(log_prob(leaf, part).sum(), leaf)
                own = slope.numpy()
                if self.voter is not None:
                    own *= lists.counts[some, None]
                    own = np.add.reduceat(own, self.starts[first:last] - some.start, axis=0)
                found.append(own)
            yield slice(first, last), np.array(found)
            first = last


def joint_log_prob(tiers: Any, worths: FloatArray, log_shares: FloatArray) -> FloatArray:
    """[lists, groups] log-probability to come from a group and to be this list."""
    return np.stack([log_prob(w, tiers) for w in worths], axis=1) + log_shares


@dataclass
class Estimate:
    """Where a fit of so many groups stands."""

    worths: FloatArray
    log_shares: FloatArray
    value: float = np.inf
    end: Minimum = field(default_factory=lambda: Minimum(np.zeros(0)))


def expectation_maximisation(
    loss: MixtureLoss, worths: FloatArray, log_shares: FloatArray, max_iter: int, enough: float
) -> Estimate:
    """EM, until an iteration improves the value by no more than `enough`."""
    value, r = loss.value(worths, log_shares)
    values = [value]
    weight = max(loss.lists.weight, 1.0)
    end = Minimum(loss.point(worths, log_shares), values)
    for _ in range(max_iter):
        surplus = loss.alike @ r + EXTRA
        log_shares = np.log(surplus / surplus.sum())
        worths = np.stack([
            solvers.minimise_smooth(
                own, "newton", w, weight=weight, longest=solvers.LONGEST, max_iter=STEPS
            ).point
            for own, w in zip(loss.weighted(r), worths, strict=True)
        ])  # fmt: skip
        value, r = loss.value(worths, log_shares)
        values.append(value)
        if values[-2] - value <= enough:
            end.stopped_by = "tolerance"
            break
    end.point = loss.point(worths, log_shares)
    return Estimate(worths, log_shares, value, end)


class MixtureGroup(RankAggregator):
    """One group of a `RankMixture`: its leaderboard, with all that a `RankAggregator` answers.

    Its lists are those of the mixture, each with the part of it that is this group's. Covariances
    are those of the mixture: they know that nobody said which list is whose.
    """

    number: int
    share_: float

    def _note(self) -> str:
        lists = f"about {self.lists_.total:,.0f} lists"
        kind = self._uncertainty_in_words()
        return f"group {self.number}, {self.share_:.1%} of all lists: {lists}, {kind}"

    def _settings(self) -> dict[str, str]:
        return {**super()._settings(), "group": f"{self.number}, {self.share_:.1%} of all lists"}

    def _in_words(self) -> tuple[str, str]:
        model, tie = super()._in_words()
        return (
            f"{model} Nobody said which list is of which group: each counts here by its "
            "probability to be of this one, so that numbers of lists are rounded."
        ), tie

    def _drawn(self, random: np.random.Generator) -> CountedLists:
        raise ValueError(
            "a group has no bootstrap of its own: nobody said which list is whose. Its standard "
            'errors know that; kind="sandwich" has those that hold where the model is wrong'
        )

    def _kind(self, kind: Kind | None) -> Kind:
        # it is that of all groups together, which was computed with the fit or never
        return super()._kind(None if self.uncertainty is None else kind)

    def _compute_covariance(self, kind: Kind) -> FloatArray:
        raise ValueError(
            "there are no standard errors of the groups: the estimate is no isolated maximum (two "
            "groups may be alike, or one empty), or has more than "
            f"{MOST_DENSE:,} parameters. Fit fewer groups"
        )


@dataclass(frozen=True)
class MixtureTable:
    """A table a group, the largest group first; printed, one below the other."""

    note: str
    groups: tuple[WorthTable, ...]

    def __str__(self) -> str:
        return "\n\n".join([self.note, *map(str, self.groups)])

    __repr__ = __str__


class RankMixture(Learned, BaseEstimator):  # type: ignore[misc]
    """Groups of lists that agree, and a leaderboard for each: a mixture of Plackett-Luce models.

    Every list is taken to come from one of some groups, nobody knows which, and to have there the
    exact Plackett-Luce probability of its tiers, ties and all. Groups are numbered by their size.

    The likelihood has several maxima: EM begins at `starts` places, and the best that it finds is
    kept. Two weak priors keep the estimates finite, where a small group never saw somebody lose:
    log-worths of a group are normal with standard deviation 3 (`prior`), and every group has one
    more list that says nothing, so that no share is 0.

    Parameters
    ----------
    groups : int, optional
        How many; None: the number from 1 to `max_groups` with the least BIC.
    max_groups : int
        Most groups that are tried.
    starts : int
        Places where EM begins, of which the best after some iterations go on.
    prior : str
        Of the log-worths of every group, as in `RankAggregator`; it can't be None.
    uncertainty : {"information", "sandwich"} or None
        "information", the observed information of the mixture, or "sandwich"; None: no groups have
        standard errors.
    clusters : str, optional
        The column that says who gave a list: then a voter is of one group with all lists, which in
        an arena tell together what a single game does not. None: every list is a voter's only one.
    max_iter : int
        Most iterations of EM from one start.
    random_state : int, optional
        A seed for the starts.

    Attributes
    ----------
    groups_ : tuple of MixtureGroup
        A leaderboard a group, the largest first: as a fitted `RankAggregator`, with `share_`.
    shares_ : ndarray of float
        [groups] parts of the lists.
    responsibilities_ : ndarray of float
        [lists, groups] probabilities that a list is of a group, given all that was fitted.
    voters_, voter_responsibilities_ : tuple and ndarray of float
        With `clusters`: who gave lists, and [voters, groups] the same of each.
    items_ : tuple
        Names of the items.
    log_likelihood_, n_parameters_, aic_, bic_ : float
        Of the lists, without the priors; groups · (items − 1) + groups − 1; the criteria, BIC with
        the logarithm of the number of lists, or of voters.
    tried_ : dict
        The same for each number of groups that was tried.
    converged_ : bool
        Whether the best start came to its end.
    n_iter_ : int
        Its iterations, of EM and then of Newton's method; `objective_values_` and `seconds_` are as
        in `RankAggregator`.

    See Also
    --------
    RankAggregator : One leaderboard for all.

    Examples
    --------
    >>> import tierrank as tr
    >>> votes = [["tea", ("milk", "cocoa")], ["tea", "milk", "cocoa"], ["cocoa", "milk", "tea"]]
    >>> mixture = tr.RankMixture(2, random_state=0).fit(votes, weights=[30, 20, 40])
    >>> [group.ranking() for group in mixture.groups_]
    [['tea', 'milk', 'cocoa'], ['cocoa', 'milk', 'tea']]
    >>> mixture.shares_.round(2)
    array([0.55, 0.45])
    >>> mixture.predict_groups([["tea", "cocoa"], ["cocoa", ("tea", "milk")]])
    array([1, 2])
    """

    of_games: ClassVar[bool] = False
    ties_connect: ClassVar[bool] = False  # a tie is an order that nobody saw

    items_: tuple[Any, ...]
    groups_: tuple[MixtureGroup, ...]
    shares_: FloatArray
    log_likelihood_: float

    def __init__(
        self,
        groups: int | None = None,
        *,
        max_groups: int = 5,
        starts: int = 10,
        prior: str | Prior = "gaussian:3",
        uncertainty: Kind | None = "information",
        clusters: str | None = None,
        max_iter: int = 500,
        random_state: int | None = None,
    ) -> None:
        self.groups = groups
        self.max_groups = max_groups
        self.starts = starts
        self.prior = prior
        self.uncertainty = uncertainty
        self.clusters = clusters
        self.max_iter = max_iter
        self.random_state = random_state

    def fit(
        self,
        rankings: Any,
        *,
        weights: Any = None,
        items: Any = None,
        rest: Literal["absent", "last"] = "absent",
        watch: Watch | None = None,
        **columns: Any,
    ) -> Self:
        """Find the groups.

        Parameters
        ----------
        rankings : Rankings, Tiers, iterable or DataFrame
            As in `RankAggregator.fit`.
        weights : array_like, optional
            [lists] how often each was seen, 0 or more.
        items : sequence or int, optional
            The catalogue, as in `RankAggregator.fit`.
        rest : {"absent", "last"}
            Whether what a list does not name is absent from it or tied in the last place.
        watch : callable, optional
            Called after every start with a `tierrank.training.Progress`.
        **columns
            Those of a frame, as in `RankAggregator.fit`.

        Returns
        -------
        RankMixture
            Itself.

        Raises
        ------
        ValueError
            An option or the data are not as they should be; the message says which and where.

        See Also
        --------
        summary : The leaderboards.

        Examples
        --------
        >>> import tierrank as tr
        >>> votes = [["tea", ("milk", "cocoa")], ["cocoa", "milk", "tea"]]
        >>> tr.RankMixture(2, random_state=0).fit(votes, weights=[30, 40]).shares_.shape
        (2,)
        """
        self._check()
        begun = time.perf_counter()
        prior = prior_from(self.prior)
        assert prior is not None
        random = np.random.default_rng(seed_from(self.random_state))
        given = of_frame(rankings, columns, weights, keep=cluster_names(self.clusters))
        tiers, counts = weighted_lists(given, weights, items, rest)
        lists, voter = distinct(tiers, counts), None
        if not lists.there:
            raise nothing_said()
        if self.clusters is not None:
            lists, voter = self._of_voters(given.beside, tiers, counts)
        if voter is None and int(lists.tiers.lengths.max()) == 2 and not lists.tiers.rest:
            warnings.warn(
                ArgumentWarning(
                    "these are games of two, one a voter: groups show only where games of three "
                    "contradict each other, and estimates hang on little. If it is known who gave "
                    "which, name that column with ", Argument("clusters"),
                ), stacklevel=2
            )  # fmt: skip
        if self.groups is not None and self.groups > lists.different:
            raise ValueError(
                f"{self.groups} groups of {lists.different} different lists: there are no more "
                "groups than different lists"
            )
        most = min(self.max_groups, lists.different)
        numbers = range(1, most + 1) if self.groups is None else [self.groups]
        alone, nothing = MixtureLoss(lists, 1, prior, voter), np.zeros((1, lists.n_items))
        all_alike = _go_on(alone, Estimate(nothing, np.zeros(1)), self.max_iter)
        found: list[tuple[Tried, Estimate]] = []
        for number in numbers:
            loss = MixtureLoss(lists, number, prior, voter)
            estimate = (
                self._best(loss, all_alike.worths[0], random, watch) if number > 1 else all_alike
            )
            found.append((_tried(loss, estimate), estimate))
        self.tried_ = [tried for tried, _ in found]
        best, estimate = min(found, key=lambda each: each[0].bic)
        if not estimate.end.converged:
            warnings.warn(
                NotConverged(
                    f"EM did not come to its end in {self.max_iter} iterations: raise ",
                    Argument("max_iter"),
                ), stacklevel=2
            )  # fmt: skip
        _, self.log_likelihood_, self.n_parameters_, self.aic_, self.bic_ = best
        self._set_groups(MixtureLoss(lists, best.groups, prior, voter), estimate)
        if voter is None:
            self.responsibilities_ = self.group_proba(tiers)
        else:
            self.responsibilities_ = self.voter_responsibilities_[self._voter_of]
        self.converged_, self.n_iter_ = estimate.end.converged, estimate.end.iterations
        self.objective_values_ = estimate.end.values
        self.seconds_ = time.perf_counter() - begun
        for group in self.groups_:
            group.seconds_ = self.seconds_
        return self

    def _of_voters(
        self, beside: Mapping[str, AnyArray], tiers: Tiers, counts: FloatArray
    ) -> tuple[CountedLists, IntArray]:
        """The lists voter by voter, and [lists] whose each is."""
        codes = read_clusters(self.clusters, beside, len(tiers), "list")
        assert codes is not None
        assert self.clusters is not None
        number = codes[:, 0]
        values, first = beside[self.clusters], np.unique(number, return_index=True)[1]
        self.voters_ = tuple(values[first].tolist())
        self._voter_of = number
        order = np.argsort(number, kind="stable")
        says = (tiers.n_tiers.numpy() > 1) & (counts > 0)
        lists = distinct(tiers[order], counts[order], different=True)
        heard, voter = np.unique(number[order][says[order]], return_inverse=True)
        self._heard = heard
        return lists, voter

    def _check(self) -> None:
        if self.groups is not None:
            check_count("groups", self.groups)
        for name in ("max_groups", "starts", "max_iter"):
            check_count(name, getattr(self, name))
        check_uncertainty(self.uncertainty)
        if len(cluster_names(self.clusters)) > 1:
            raise ArgumentError(
                Argument("clusters"), f": a list is of one voter, so give one column, not "
                f"{self.clusters!r}",
            )  # fmt: skip
        if prior_from(self.prior) is None:
            raise ArgumentError(
                Argument("prior"), " of a mixture can't be none: in a small group somebody wins "
                "always, and would have an infinite worth. A weak one is ",
                Argument("prior", "gaussian:3"),
            )  # fmt: skip

    def _best(
        self,
        loss: MixtureLoss,
        centre: FloatArray,
        random: np.random.Generator,
        watch: Watch | None,
    ) -> Estimate:
        """The best of several starts: worths of groups lie about those of all lists."""
        lists, begun = loss.lists, []
        for number in range(1, self.starts + 1):
            worths = centre + APART * random.normal(size=(loss.groups, len(centre)))
            alike = np.full(loss.groups, -np.log(loss.groups))
            some = loss
            if lists.different > SAMPLE:
                some = loss.drawn(SAMPLE, random)
            start = expectation_maximisation(some, worths, alike, SHORT, NEAR)
            if some is not loss:
                start.value = loss.value(start.worths, start.log_shares)[0]
            begun.append(start)
            if watch is not None:
                run, mean = f"{loss.groups} groups", start.value / lists.weight
                watch(Progress(number, self.starts, "start", mean, run=run))
        begun.sort(key=lambda each: each.value)
        near = [
            expectation_maximisation(loss, each.worths, each.log_shares, self.max_iter, NEAR)
            for each in begun[:GOING_ON]
        ]
        return _go_on(loss, min(near, key=lambda each: each.value), self.max_iter)

    def _set_groups(self, loss: MixtureLoss, estimate: Estimate) -> None:
        """Leaderboards, the largest group first."""
        order = np.argsort(-estimate.log_shares, kind="stable")
        worths, log_shares = estimate.worths[order], estimate.log_shares[order]
        point, lists = loss.point(worths, log_shares), loss.lists
        matrices = {}
        if loss.size <= MOST_DENSE and self.uncertainty is not None:
            try:
                bread = inverse(loss.hessian(point).matrix())
                matrices["information"] = bread
                matrices["sandwich"] = bread @ loss.outer_products(point) @ bread
            except NotDefinite:
                matrices = {}
        _, r = loss.value(worths, log_shares)
        if loss.voter is not None:
            # who gave nothing but ties of all is as likely of a group as anybody
            everybody = np.tile(np.exp(log_shares), (len(self.voters_), 1))
            everybody[self._heard] = r
            self.voter_responsibilities_ = everybody
        r = loss.each(r)
        self.shares_ = np.exp(log_shares)
        logs = joint_log_prob(lists.tiers, worths, np.zeros(len(worths)))
        self.items_ = lists.items
        n, groups = lists.n_items, []
        for number, w in enumerate(worths):
            block = slice(number * n, (number + 1) * n)
            own = lists.counts * r[:, number]
            centred = {kind: _centred(matrix[block, block]) for kind, matrix in matrices.items()}
            group = self._group(number, w - w.mean(), centred)
            often = float(own.sum())
            group.lists_ = replace(lists, counts=own, seen=round(often), total=often, silent=0.0)
            group._scores, group._prior = w, loss.prior
            group._went(estimate.end, "em")
            group.log_likelihood_, group.aic_ = float(own @ logs[:, number]), None
            groups.append(group)
        self.groups_ = tuple(groups)

    def _group(
        self, number: int, log_worths: FloatArray, covariances: Mapping[Any, FloatArray]
    ) -> MixtureGroup:
        """A leaderboard."""
        group = MixtureGroup(OBJECTIVE, prior=str(self.prior), uncertainty=self.uncertainty)
        group.number, group.share_ = number + 1, float(self.shares_[number])
        group.items_, group.log_worths_ = self.items_, log_worths
        for matrix in covariances.values():
            matrix.flags.writeable = False
        group._covariances = dict(covariances)
        return group

    # -- whose lists, and how probable --------------------------------------------------------

    def _joint(self, rankings: Any) -> FloatArray:
        check_is_fitted(self, "groups_")
        tiers = self.groups_[0]._tiers_of(rankings)
        worths = np.stack([group.log_worths_ for group in self.groups_])
        return joint_log_prob(tiers, worths, np.log(self.shares_))

    def group_proba(self, rankings: Any) -> FloatArray:
        """Compute the probabilities that lists of these items, seen or not, are of a group.

        Parameters
        ----------
        rankings : Rankings, Tiers or iterable
            Lists of these items.

        Returns
        -------
        ndarray of float
            [lists, groups] probabilities, which sum to 1 in each row.

        Raises
        ------
        ValueError
            A ranking names an item that is not known.

        See Also
        --------
        predict_groups : The most probable one.

        Examples
        --------
        >>> import tierrank as tr
        >>> votes = [["tea", ("milk", "cocoa")], ["cocoa", "milk", "tea"]]
        >>> mixture = tr.RankMixture(2, random_state=0).fit(votes, weights=[30, 40])
        >>> mixture.group_proba([["tea", "milk"]]).shape
        (1, 2)
        """
        return np.asarray(softmax(self._joint(rankings), axis=1))

    def predict_groups(self, rankings: Any) -> IntArray:
        """Find the most probable group of each list.

        Parameters
        ----------
        rankings : Rankings, Tiers or iterable
            Lists of these items.

        Returns
        -------
        ndarray of int
            [lists] groups from 1, the largest.

        Raises
        ------
        ValueError
            A ranking names an item that is not known.

        See Also
        --------
        group_proba : How probable each is.

        Examples
        --------
        >>> import tierrank as tr
        >>> votes = [["tea", ("milk", "cocoa")], ["cocoa", "milk", "tea"]]
        >>> mixture = tr.RankMixture(2, random_state=0).fit(votes, weights=[30, 40])
        >>> mixture.predict_groups([["tea", "milk", "cocoa"], ["cocoa", "milk", "tea"]])
        array([2, 1])
        """
        return np.asarray(np.argmax(self._joint(rankings), axis=1) + 1)

    def log_prob(self, rankings: Any) -> FloatArray:
        """Compute the exact log-probabilities of rankings of these items, seen or not.

        Parameters
        ----------
        rankings : Rankings, Tiers or iterable
            Lists of these items.

        Returns
        -------
        ndarray of float
            [lists] log Σ_groups share · P(list in the group).

        Raises
        ------
        ValueError
            A ranking names an item that is not known.

        See Also
        --------
        group_proba : Which group a list is of.

        Examples
        --------
        >>> import numpy as np, tierrank as tr
        >>> votes = [["tea", ("milk", "cocoa")], ["cocoa", "milk", "tea"]]
        >>> mixture = tr.RankMixture(2, random_state=0).fit(votes, weights=[30, 40])
        >>> bool(np.exp(mixture.log_prob([["tea", "milk"], ["milk", "tea"]])).sum().round(6) == 1)
        True
        """
        return np.asarray(logsumexp(self._joint(rankings), axis=1))

    def summary(self, level: float = 0.95, top: int | None = None) -> MixtureTable:
        """Make tables of the leaderboards to print.

        Parameters
        ----------
        level : float
            Of the intervals.
        top : int, optional
            How many items of each group; None for all.

        Returns
        -------
        MixtureTable
            It prints as text, and shows as HTML in a notebook.

        See Also
        --------
        tierrank.RankAggregator.summary : Of one leaderboard.

        Examples
        --------
        >>> import tierrank as tr
        >>> votes = [["tea", ("milk", "cocoa")], ["cocoa", "milk", "tea"]]
        >>> table = tr.RankMixture(2, random_state=0).fit(votes, weights=[30, 40]).summary(top=1)
        >>> "cocoa" in str(table)
        True
        """
        check_is_fitted(self, "groups_")
        note = (
            f"RankMixture: {len(self.groups_)} groups, {len(self.items_):,} items, log-likelihood "
            f"{self.log_likelihood_:,.2f}, AIC {self.aic_:,.1f}, BIC {self.bic_:,.1f}"
        )
        return MixtureTable(note, tuple(each.summary(level, top) for each in self.groups_))

    # -- saved --------------------------------------------------------------------------------

    def to_state(self) -> tuple[dict[str, Any], Arrays]:
        """What `tierrank.save` writes: estimates and covariances, without the lists."""
        check_is_fitted(self, "groups_")
        info = {
            "parameters": state.plain_setting(self.get_params()),
            "items": [state.plain_name(name) for name in self.items_],
            "tried": [list(each) for each in self.tried_],
            "groups": [
                {"fit": state.facts_of(group), "lists": state.counts_of(group.lists_)}
                for group in self.groups_
            ],
        }
        arrays = {
            "shares": self.shares_,
            "log_worths": np.stack([group.log_worths_ for group in self.groups_]),
        }
        for number, group in enumerate(self.groups_):
            for kind, matrix in group._covariances.items():
                arrays[f"{kind}.{number}"] = matrix
        return info, arrays

    @classmethod
    def from_state(cls, info: dict[str, Any], tensors: Arrays) -> Self:
        """From what `to_state` gave; raises a ValueError if it does not hold together."""
        fitted = cls(**info["parameters"])
        fitted._check()
        fitted.items_ = state.names_from(info["items"], "item")
        n, groups = len(fitted.items_), len(info["groups"])
        shapes: dict[str, tuple[int, ...]] = {"shares": (groups,), "log_worths": (groups, n)}
        for number in range(groups):
            shapes |= {f"{kind}.{number}": (n, n) for kind in state.KINDS}
        arrays = state.checked_arrays(tensors, shapes)
        fitted.shares_ = arrays["shares"]
        if not groups or (fitted.shares_ <= 0).any() or abs(fitted.shares_.sum() - 1) > 1e-6:
            raise ValueError("shares are positive and sum to 1")
        fitted.tried_ = [Tried(int(k), float(v), int(p), float(a), float(b))
                         for k, v, p, a, b in info["tried"]]  # fmt: skip
        best = next((each for each in fitted.tried_ if each.groups == groups), None)
        if best is None:
            raise ValueError(f"{groups} groups were never tried")
        _, fitted.log_likelihood_, fitted.n_parameters_, fitted.aic_, fitted.bic_ = best
        found = []
        for number, about in enumerate(info["groups"]):
            own = {kind: arrays[f"{kind}.{number}"] for kind in state.KINDS
                   if f"{kind}.{number}" in arrays}  # fmt: skip
            group = fitted._group(number, arrays["log_worths"][number], own)
            state.set_facts(group, about["fit"])
            group.lists_ = state.lists_from(fitted.items_, about["lists"])
            found.append(group)
        fitted.groups_ = tuple(found)
        first = found[0]
        fitted.converged_, fitted.n_iter_ = first.converged_, first.n_iter_
        fitted.objective_values_, fitted.seconds_ = first.objective_values_, first.seconds_
        return fitted


def _go_on(loss: MixtureLoss, near: Estimate, max_iter: int) -> Estimate:
    """From near a maximum to the maximum, by Newton's method; by EM, if parameters are many."""
    if loss.size > MOST_DENSE:
        return expectation_maximisation(loss, near.worths, near.log_shares, max_iter, SLOW)
    damping = np.full(loss.size, loss.lists.weight)

    def solve(point: FloatArray, gradient: FloatArray, _: float) -> FloatArray | None:
        return by_cholesky(loss.hessian(point).matrix(), gradient, damping=damping)

    end = newton(
        loss.value_and_gradient,
        solve,
        loss.point(near.worths, near.log_shares),
        weight=loss.lists.weight,
        max_iter=max_iter,
    )
    end.values = [*near.end.values[:-1], *end.values]
    return Estimate(*loss.parts(end.point), end.value, end)


def _centred(matrix: FloatArray) -> FloatArray:
    """The covariance of log-worths less their mean."""
    found = matrix - matrix.mean(axis=0)
    found -= found.mean(axis=1, keepdims=True)
    return np.asarray((found + found.T) / 2)


def _tried(loss: MixtureLoss, estimate: Estimate) -> Tried:
    """How well so many groups fit, without the priors."""
    joint = loss.joint(estimate.worths, estimate.log_shares)
    value = float(loss.alike @ logsumexp(joint, axis=1))
    free = loss.groups * (loss.lists.n_items - 1) + loss.groups - 1
    bic = float(np.log(loss.alike.sum())) * free - 2 * value
    return Tried(loss.groups, value, free, 2 * free - 2 * value, bic)
