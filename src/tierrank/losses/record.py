"""One record an objective: all that other rooms ask of it, in one table and without torch.

torch takes seconds to load, and commands answer `--help` or a mistyped name without it. So an
entry names its function, which stands in the file of its family, and imports it when it is asked
for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal

from tierrank.names import hint, plain

if TYPE_CHECKING:
    from inspect import Parameter

    from tierrank.losses.objective import Objective

Family = Literal["likelihood", "listwise", "pairwise", "metric", "ordered partition"]
Hessian = Literal["exact", "upper bound", "constant"]


@dataclass(frozen=True)
class Entry:
    """One objective, and what can be said of it as a function of the scores.

    Attributes
    ----------
    name
        as users write it
    function_name, module_name
        its function, in the module of its family, and the `nn.Module` that is made of it; both
        are public names of `tierrank.losses`
    family, source
        what it belongs to, and where it was published
    likelihood
        whether it is minus a log-likelihood of what a list shows, so that the inverse information
        is a covariance
    exact_likelihood
        whether it is minus the log-probability of tiers under the Plackett-Luce model itself: of
        the first `k` places, with `ties` broken, with places weighted by `alpha`, if it has these
        options
    twice_differentiable
        whether autograd has its second derivatives; else it has the gradient, and refuses the
        second ones or gets them wrong
    hessian
        what stands for the Hessian's diagonal in boosting. Of "exact" ones it comes from the
        likelihood, or from `hessian_diagonal`. An "upper bound" leaves a concave part out; a
        "constant" is the mean size of the gradient at scores of 0, so that the first steps are
        about 1, and needs no code of its own
    stochastic
        whether the gradient is an estimate, drawn at random
    convex
        whether it is convex in the scores, or nearly; else Newton's method may not trust its second
        derivatives
    continuous
        whether it is continuous in the scores; else no line search may trust its value
    shift_invariant
        whether a constant added to all scores of a list changes nothing
    rest
        whether it takes a rest that is not written down
    fused
        what the fused head of huge label sets asks it about the rest, a block of labels at a
        time: the "log-sum-exp" of their scores, the "pairs" with each label that is named, or
        the "items", each by itself.
        None: it needs all scores at once
    needs_connection
        whether worths by it are finite only where everybody can be reached from everybody by wins,
        as where each pair's order has a probability. The others are bounded, or pull scores
        together themselves
    pointwise
        whether each item is judged by itself, as relevant or not: then one that is always relevant,
        or never, has no finite worth
    tie_parameter
        a number that is learned beside the scores: how probable ties are
    without_errors
        why its estimates have no standard errors; None: they have
    """

    name: str
    function_name: str
    module_name: str
    family: Family
    source: str
    likelihood: bool = False
    exact_likelihood: bool = False
    twice_differentiable: bool = True
    hessian: Hessian = "constant"
    stochastic: bool = False
    convex: bool = True
    continuous: bool = True
    shift_invariant: bool = True
    rest: bool = True
    fused: Literal["log-sum-exp", "pairs", "items"] | None = None
    needs_connection: bool = True
    pointwise: bool = False
    tie_parameter: str | None = None
    without_errors: str | None = None

    @property
    def suits_newton(self) -> bool:
        """Whether Newton's method may trust its second derivatives in worths."""
        return self.twice_differentiable and self.shift_invariant and self.convex

    @cached_property
    def function(self) -> Callable[..., Any]:
        """The function of (scores, tiers, *, weights, reduction) and options of its own."""
        found: Callable[..., Any] = getattr(self._home, self.function_name)
        return found

    @cached_property
    def hessian_diagonal(self) -> Callable[..., Any]:
        """The function `<function_name>_hessian` beside it: [rows] from [rows] scores, and tiers.

        The rows are sorted by list and tier. A parameter that is learned is its third argument.
        """
        found: Callable[..., Any] = getattr(self._home, f"{self.function_name}_hessian")
        return found

    @property
    def _home(self) -> ModuleType:
        return import_module(f"tierrank.losses.{self.family.replace(' ', '_')}")

    @property
    def module(self) -> type[Objective]:
        """The function as an `nn.Module` that holds its options."""
        from tierrank.losses.objective import module_of

        return module_of(self)

    @cached_property
    def options(self) -> Mapping[str, Parameter]:
        """What the function takes beside scores, tiers, weights and the reduction."""
        from inspect import signature

        shared = ("scores", "tiers", "weights", "reduction")
        parameters = signature(self.function).parameters
        return {name: given for name, given in parameters.items() if name not in shared}

    def option(self, name: str, options: Mapping[str, Any] | None) -> Any:
        """An option as it is given, or the function's own; None if it has none of this name."""
        own = self.options[name].default if name in self.options else None
        return (options or {}).get(name, own)

    @property
    def summary(self) -> str:
        """The first line of the function's documentation, without the source."""
        line = (self.function.__doc__ or "").strip().splitlines()[0]
        return re.sub(r" \([^()]*\)\.?$", "", line).rstrip(".")

    def is_likelihood(self, options: Mapping[str, Any] | None = None) -> bool:
        """Whether it is a likelihood with these options too; weighted places are none."""
        return self.likelihood and (options or {}).get("alpha") is None


_NOT_CONVEX = "is not convex: its curvature where a fit ends may be that of no minimum"

# fmt: off
OBJECTIVES: dict[str, Entry] = {entry.name: entry for entry in (
    Entry("pl-partition", "pl_partition", "PLPartition", "likelihood", "Ma et al., 2021",
          likelihood=True, exact_likelihood=True, hessian="exact", fused="log-sum-exp"),
    Entry("pl-lb", "pl_lower_bound", "PLLowerBound", "likelihood", "Hino et al., 2010",
          likelihood=True, hessian="exact", fused="log-sum-exp"),
    Entry("pl-efron", "pl_efron", "PLEfron", "likelihood", "Efron, 1977",
          likelihood=True, hessian="exact", fused="log-sum-exp"),
    Entry("pl-topk", "pl_top_k", "PLTopK", "likelihood", "Xia et al., 2009",
          likelihood=True, exact_likelihood=True, hessian="exact"),
    Entry("listmle", "list_mle", "ListMLE", "likelihood", "Xia et al., 2008",
          likelihood=True, exact_likelihood=True, hessian="exact"),
    Entry("p-listmle", "p_list_mle", "PListMLE", "likelihood", "Lan et al., 2014",
          exact_likelihood=True, hessian="exact"),

    Entry("listnet", "list_net", "ListNet", "listwise", "Cao et al., 2007",
          hessian="exact", needs_connection=False),
    Entry("attrank", "att_rank", "AttRank", "listwise", "Ai et al., 2018",
          hessian="exact", fused="log-sum-exp", needs_connection=False),
    Entry("rankcosine", "rank_cosine", "RankCosine", "listwise", "Qin et al., 2008",
          hessian="constant", convex=False,
          shift_invariant=False, needs_connection=False,
          without_errors="is blind to the scale of the scores, so that no estimate is isolated"),
    Entry("bce", "bce", "BCE", "listwise", "one-vs-rest logistic regression",
          hessian="exact", shift_invariant=False, fused="items", pointwise=True),

    Entry("pmop-fd", "pmop_fd", "PMOPFD", "ordered partition", "Tran et al., 2010",
          likelihood=True, hessian="upper bound"),
    Entry("cox-discrete", "cox_discrete", "CoxDiscrete", "ordered partition", "Cox, 1972",
          likelihood=True, hessian="exact"),
    Entry("pmop-exact", "pmop_exact", "PMOPExact", "ordered partition", "Tran et al., 2010",
          likelihood=True, twice_differentiable=False, hessian="constant", rest=False),
    Entry("pmop-gibbs", "pmop_gibbs", "PMOPGibbs", "ordered partition", "Tran et al., 2010",
          stochastic=True, hessian="constant", rest=False, needs_connection=False,
          without_errors="is fitted by a random gradient"),
    Entry("pmop-mh", "pmop_mh", "PMOPMH", "ordered partition", "Tran et al., 2010",
          stochastic=True, hessian="constant", rest=False, needs_connection=False,
          without_errors="is fitted by a random gradient"),

    Entry("ranknet", "ranknet", "RankNet", "pairwise", "Burges et al., 2005",
          twice_differentiable=False, hessian="exact", fused="pairs"),
    Entry("ranksvm", "rank_svm", "RankSVM", "pairwise", "Joachims, 2002",
          twice_differentiable=False, hessian="constant",  # it is 0 wherever there is one
          fused="pairs", needs_connection=False,
          without_errors="is not smooth: it has kinks, and no second derivatives"),
    Entry("rank-regress", "rank_regress", "RankRegress", "pairwise",
          "Tran, Phung and Venkatesh, 2010, appendix B",
          twice_differentiable=False, hessian="exact", needs_connection=False),
    Entry("rao-kupper", "rao_kupper", "RaoKupper", "pairwise", "Rao and Kupper, 1967",
          twice_differentiable=False, hessian="exact", rest=False, needs_connection=False,
          tie_parameter="alpha"),
    Entry("davidson", "davidson", "Davidson", "pairwise", "Davidson, 1970",
          twice_differentiable=False, hessian="exact", rest=False, needs_connection=False,
          tie_parameter="beta"),

    Entry("lambdaloss", "lambda_loss", "LambdaLoss", "metric", "Wang et al., 2018",
          hessian="exact",  # of the pairs, with their weights as they are
          convex=False, continuous=False,
          without_errors="jumps where items change places"),
    Entry("approx-ndcg", "approx_ndcg", "ApproxNDCG", "metric", "Qin et al., 2010",
          hessian="constant", convex=False,
          without_errors=_NOT_CONVEX),
    Entry("neural-ndcg", "neural_ndcg", "NeuralNDCG", "metric", "Pobrotyn and Białobrzeski, 2021",
          hessian="constant", convex=False,
          without_errors=_NOT_CONVEX),
    Entry("expected-ndcg", "expected_ndcg", "ExpectedNDCG", "metric", "Oosterhuis, 2021",
          hessian="constant", convex=False,
          without_errors=_NOT_CONVEX),
    Entry("pl-rank", "pl_rank", "PLRank", "metric", "Oosterhuis, 2021",
          hessian="constant", stochastic=True, convex=False,
          without_errors="is fitted by a random gradient"),
)}
# fmt: on

_BY_NDCG = "is lambdaloss here, with weighting=lambdarank"
_THEIRS = {
    "lambdarank": _BY_NDCG,
    "lambdamart": _BY_NDCG,
    "rank:ndcg": _BY_NDCG,
    "rank:map": "is lambdaloss here, with weighting=lambdarank and metric=map",
    "rank:pairwise": "is called ranknet here",
    "rank_xendcg": "is a cross entropy as listnet is, with other targets",
}


def find(name: str) -> Entry:
    """Look up the objective of this name; case, hyphens and underscores do not matter.

    Parameters
    ----------
    name : str
        As `OBJECTIVES` has it.

    Returns
    -------
    Entry
        All that is known of it.

    Raises
    ------
    ValueError
        There is no objective of this name; the message has those that there are.

    See Also
    --------
    from_name : An objective by its name.

    Examples
    --------
    >>> import tierrank as tr
    >>> tr.losses.find("PL_Partition").source
    'Ma et al., 2021'
    """
    if name in OBJECTIVES:
        return OBJECTIVES[name]
    spelled = {plain(known): known for known in OBJECTIVES}
    if plain(name) in spelled:
        return OBJECTIVES[spelled[plain(name)]]
    known = f"The objectives are {', '.join(OBJECTIVES)}"
    if (what := theirs(name)) is not None:
        raise ValueError(
            f"there is no objective {name!r}: it {what}. Begin with 'pl-partition', the exact "
            f"likelihood. {known}"
        )
    raise ValueError(f"there is no objective {name!r}{hint(name, spelled)}{known}")


def theirs(name: str) -> str | None:
    """What an objective of LightGBM or XGBoost is here; None of any other name."""
    return {plain(known): what for known, what in _THEIRS.items()}.get(plain(name))


def fused_objectives() -> tuple[str, ...]:
    """The objectives that can do with some labels' scores at a time."""
    return tuple(name for name, entry in OBJECTIVES.items() if entry.fused)


def find_fused(name: str) -> Entry:
    """The objective of labels that is meant; refuses those that need all scores at once."""
    entry = find(name)
    if not entry.fused:
        raise ValueError(
            f"{entry.name} needs all scores of a list at once, and they are computed in blocks of "
            f"labels here; the objectives for that are {', '.join(fused_objectives())}"
        )
    return entry
