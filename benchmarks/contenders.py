"""Every objective and its peers in torch and rax, by family: value and gradient in float32."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import peers
import rax_peers
from lists import ITEMS, Lists, best_first
from measure import Column, Table, error
from peers import Run, value_and_gradient
from torch import Tensor

from tierrank.losses import OBJECTIVES

MOST_PAIRS = 10**7  # in all lists of a case, unless one list has more
MOST_TRIPLES = 2 * 10**6
BYTES_A_PAIR = 20  # what rax and torch were seen to need for all pairs at once
MOST_BYTES = 4 * 10**9
LONGEST_SORT = 1000  # items of a list: neural-ndcg writes out all pairs
LONGEST_CUBIC = 200  # items of a list: pmop-exact refuses more

Limit = Callable[[int], int]  # how many lists of a length to take; 0 if it cannot be done


class Contender(NamedTuple):
    """A loss, how to get ready for its value and gradient, and how many lists it can take."""

    name: str
    build: Callable[[Lists], Run]
    limit: Limit
    same_as: str = ""  # the objective whose value this is, where there are no ties
    by_rax: bool = False


# How much a call may take ----------------------------------------------------------------------


def all_lists(length: int) -> int:
    return max(1, ITEMS // length)


def pairs(length: int) -> int:
    return min(all_lists(length), max(1, MOST_PAIRS // length**2))


def pair_matrices(length: int) -> int:
    return 0 if BYTES_A_PAIR * length**2 > MOST_BYTES else pairs(length)


def triples(length: int) -> int:
    return 0 if length > LONGEST_CUBIC else min(all_lists(length), MOST_TRIPLES // length**3)


def sorts(length: int) -> int:
    """Matrices of pairs, scaled fifty times."""
    return 0 if length > LONGEST_SORT else max(1, pairs(length) // 50)


def places(length: int) -> int:
    """The first ten places of every item, or sixteen draws."""
    return max(1, all_lists(length) // 10)


def none(length: int) -> int:
    return 0


LIMITS: dict[str, Limit] = {
    "ranknet": pairs,
    "rao-kupper": pairs,
    "davidson": pairs,
    "pmop-exact": triples,
    "cox-discrete": pairs,
    "lambdaloss": pairs,
    "approx-ndcg": pairs,
    "neural-ndcg": sorts,
    "expected-ndcg": places,
    "pl-rank": places,
}
OPTIONS: dict[str, dict[str, Any]] = {
    name: {"generator": 0} for name in ("pmop-gibbs", "pmop-mh", "pl-rank")
}


# Who takes part --------------------------------------------------------------------------------


def objective(name: str, strict: bool = False) -> Callable[[Lists], Run]:
    """One of ours, on tiers that are ready; `strict` means that their ties were broken."""

    def build(lists: Lists) -> Run:
        tiers = lists.tiers.break_ties() if strict else lists.tiers
        tiers.layout()
        function, options = OBJECTIVES[name].function, OPTIONS.get(name, {})
        scores = lists.scores.reshape(-1).float()
        return value_and_gradient(lambda w: function(w, tiers, reduction="sum", **options), scores)

    return build


def in_torch(loss: Callable[[Tensor, Tensor], Tensor]) -> Callable[[Lists], Run]:
    """A function of scores and labels, [lists, length] both, that gives [lists] losses."""

    def build(lists: Lists) -> Run:
        labels = lists.labels.float()
        return value_and_gradient(lambda w: loss(w, labels).sum(), lists.scores.float())

    return build


def list_mle(lists: Lists) -> Run:
    order = lists.labels.argsort(dim=1, descending=True, stable=True)
    in_order = lists.scores.float().gather(1, order)
    return value_and_gradient(lambda w: peers.list_mle(w).sum(), in_order)


def rank_net_in_blocks(lists: Lists) -> Run:
    scores = lists.scores.float()
    return lambda: peers.rank_net(scores, lists.labels)


def in_rax(name: str, loss: str, limit: Limit, same_as: str = "", **options: Any) -> Contender:
    if not rax_peers.AVAILABLE:
        limit = none
    return Contender(name, rax_peers.loss(loss, **options), limit, same_as, by_rax=True)


# The first of a family is what the others are compared with.
FIRST = {
    "likelihood": "pl-partition",
    "listwise": "listnet",
    "pairwise": "ranknet",
    "metric": "lambdaloss",
    "ordered partition": "pmop-fd",
}
PEERS = {
    "likelihood": [
        Contender("listmle, ties broken before", objective("listmle", strict=True), all_lists),
        Contender("ListMLE (torch)", list_mle, all_lists, "listmle"),
        in_rax("ListMLE (rax)", "listmle_loss", all_lists, "listmle"),
    ],
    "listwise": [
        Contender("ListNet (torch)", in_torch(peers.list_net), all_lists, "listnet"),
        in_rax(
            "ListNet (rax)", "softmax_loss", all_lists, "listnet",
            label_fn=rax_peers.softmax_of_labels,
        ),
        in_rax("unique softmax (rax)", "unique_softmax_loss", pair_matrices),
    ],
    "pairwise": [
        Contender("RankNet (torch)", in_torch(peers.rank_net_matrix), pair_matrices, "ranknet"),
        Contender("RankNet (torch, in blocks)", rank_net_in_blocks, pairs, "ranknet"),
        in_rax("RankNet (rax)", "pairwise_logistic_loss", pair_matrices, "ranknet"),
        Contender("hinge (torch)", in_torch(peers.hinge_matrix), pair_matrices, "ranksvm"),
        in_rax("hinge (rax)", "pairwise_hinge_loss", pair_matrices, "ranksvm"),
        in_rax("pairwise MSE (rax)", "pairwise_mse_loss", pair_matrices),
    ],
    "metric": [Contender("listmle", objective("listmle"), all_lists)],
    "ordered partition": [],
}  # fmt: skip


def ours(name: str) -> Contender:
    return Contender(name, objective(name), LIMITS.get(name, all_lists))


def of_family(family: str) -> list[Contender]:
    """The first, our others, then the peers."""
    others = [
        entry.name
        for entry in OBJECTIVES.values()
        if entry.family == family and entry.name != FIRST[family]
    ]
    return [*map(ours, [FIRST[family], *others]), *PEERS[family]]


def everyone() -> list[Contender]:
    return [contender for family in FIRST for contender in of_family(family)]


def with_data(contenders: Iterable[Contender], lists: Lists) -> Iterator[tuple[Contender, Lists]]:
    """Those that can take lists of this length, each with as many of them as it can take."""
    cut = cache(lists.first)  # so that tiers are built once
    for contender in contenders:
        if number := contender.limit(lists.labels.shape[1]):
            yield contender, cut(min(number, len(lists.labels)))


class Difference(NamedTuple):
    """The largest between a peer's entries and ours, relative to our largest entry."""

    value: float
    gradient: float


def differences(peers: Iterable[Contender]) -> dict[str, Difference]:
    """Of the peers that should equal an objective, on 100 lists of 10 items without ties.

    The items lie in their order, so that it does not matter whether a peer sorts them first.
    """
    lists = best_first(100, *[1] * 10)
    found = {}
    for peer in peers:
        if peer.same_as and peer.limit(10):
            mine, theirs = (one.build(lists)() for one in (ours(peer.same_as), peer))
            found[f"{peer.name} and {peer.same_as}"] = Difference(*map(_relative, mine, theirs))
    return found


def _relative(mine: Any, theirs: Any) -> float:
    mine, theirs = (np.ravel(part.tolist()) for part in (mine, theirs))  # from torch or jax
    return float(np.abs(theirs - mine).max() / np.abs(mine).max())


def agreement_table(found: Mapping[str, Difference]) -> Table:
    columns = [Column("float32, no ties"), *(Column(name, error) for name in Difference._fields)]
    rows = [[name, *difference] for name, difference in found.items()]
    return Table("Do peers agree? Largest differences, relative", columns, rows)
