"""The words that people choose by: objectives, metrics, feature steps, priors and models of games.

What they stand for needs torch, which takes seconds to load. So the names are here, without it, for
commands to answer a mistyped one at once; the registries take them from here, and a test compares.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from typing import Any, Literal, get_args

OBJECTIVES = (
    "pl-lb", "pl-efron", "pl-partition", "pl-topk", "listmle", "p-listmle", "listnet", "attrank",
    "rankcosine", "pmop-fd", "cox-discrete", "pmop-exact", "pmop-gibbs", "pmop-mh", "ranksvm",
    "ranknet", "rank-regress", "rao-kupper", "davidson",
)  # fmt: skip
FUSED = ("pl-partition", "pl-lb", "pl-efron", "attrank", "ranknet", "ranksvm")
"""Objectives that can do with some labels' scores at a time."""

_BY_NDCG = "weighs the pairs of ranknet by NDCG, which no objective here does"
_THEIRS = {
    "lambdarank": _BY_NDCG,
    "lambdamart": _BY_NDCG,
    "rank:ndcg": _BY_NDCG,
    "rank:map": "weighs the pairs of ranknet by MAP, which no objective here does",
    "rank:pairwise": "is called ranknet here",
    "rank_xendcg": "is a cross entropy as listnet is, with other targets",
}

METRICS = (
    "ndcg", "dcg", "err", "map", "mrr", "precision", "recall", "sharp-ndcg",
    "pairwise-disagreement", "tau-b",
)  # fmt: skip
WHOLE_LIST = ("sharp-ndcg", "pairwise-disagreement", "tau-b")
"""Metrics that cannot be cut off at a rank."""
_ALSO_METRICS = {
    "ap": "map",
    "averageprecision": "map",
    "rr": "mrr",
    "reciprocalrank": "mrr",
    "p": "precision",
    "r": "recall",
    "wpdl": "pairwise-disagreement",
    "kendalltaub": "tau-b",
}

LABEL_METRICS = ("P", "nDCG", "PSP", "PSnDCG")
_ALSO_LABEL_METRICS = {"precision": "P", "psprecision": "PSP"}

FEATURES = ("impute", "standardize", "query-scale", "second-order")
PRIORS = ("gaussian", "pseudo-item")
SOLVERS = ("auto", "newton", "lbfgs", "adagrad")
SAMPLERS = ("uniform", "frequency", "in-batch")
RANKING_FORMATS = ("auto", "preflib", "jsonl", "csv", "tsv", "parquet")

GameModel = Literal["davidson", "rao-kupper", "bradley-terry"]
GAME_MODELS: tuple[GameModel, ...] = get_args(GameModel)

TableKind = Literal["items", "games", "preferences", "paired-ranks", "wide", "orders"]
TABLE_KINDS: tuple[TableKind, ...] = get_args(TableKind)


def objective_name(name: str) -> str:
    """The objective that is meant; case, hyphens and underscores do not matter."""
    plain = {_plain(known): known for known in OBJECTIVES}
    if _plain(name) in plain:
        return plain[_plain(name)]
    known = f"The objectives are {', '.join(OBJECTIVES)}"
    if (what := theirs(name)) is not None:
        raise ValueError(
            f"there is no objective {name!r}: it {what}. Begin with 'pl-partition', the exact "
            f"likelihood. {known}"
        )
    raise ValueError(f"there is no objective {name!r}; {_hint(name, plain)}{known}")


def theirs(name: str) -> str | None:
    """What an objective of LightGBM or XGBoost is here; None of any other name."""
    return {_plain(known): what for known, what in _THEIRS.items()}.get(_plain(name))


def fused_name(objective: str) -> str:
    """The objective of labels that is meant; refuses those that need all scores at once."""
    name = objective_name(objective)
    if name not in FUSED:
        raise ValueError(
            f"{name} needs all scores of a list at once, and they are computed in blocks of "
            f"labels here; the objectives for that are {', '.join(FUSED)}"
        )
    return name


def metric_name(name: str) -> tuple[str, int | None]:
    """The metric that is meant by `nDCG@10`, and its cutoff; None without one."""
    stem, at, cutoff = name.strip().partition("@")
    plain = {_plain(known): known for known in METRICS} | _ALSO_METRICS
    found = plain.get(_plain(stem))
    if found is None:
        raise ValueError(
            f"there is no metric {name!r}; {_hint(stem, plain)}The metrics are {', '.join(METRICS)}"
        )
    if not at:
        return found, None
    if found in WHOLE_LIST:
        raise ValueError(f"{name!r}: {found} looks at the whole list and has no cutoff.")
    return found, _cutoff(cutoff, name, "ndcg@10")


def label_metric_name(name: str) -> tuple[str, int]:
    """The metric of labels that is meant by `psp@5`, and its cutoff."""
    stem, at, cutoff = name.strip().partition("@")
    plain = {_plain(known): known for known in LABEL_METRICS} | _ALSO_LABEL_METRICS
    found = plain.get(_plain(stem))
    if found is None:
        raise ValueError(
            f"there is no metric of labels {name!r}; {_hint(stem, plain, '@5')}The metrics are "
            f"{', '.join(LABEL_METRICS)}, each with a number of places, as in PSP@5."
        )
    if not at:
        raise ValueError(f"{name!r} does not say how many places count: write {found}@5, say.")
    return found, _cutoff(cutoff, name, f"{found}@5")


def feature_name(name: str) -> str:
    """The feature step that is meant, as it is typed."""
    if name not in FEATURES:
        close = difflib.get_close_matches(name, [*FEATURES, "none"], n=1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise ValueError(
            f"there are no features {name!r}.{hint} Use {', '.join(FEATURES)}, one option for "
            "each, or none."
        )
    return name


def prior_name(spelled: Any) -> tuple[str, float | None]:
    """The prior that is meant by "gaussian:2.5", and its size; None without one."""
    kind, colon, number = str(spelled).partition(":")
    if kind not in PRIORS:
        raise ValueError(
            f"there is no prior {spelled!r}: it is None, one of {', '.join(PRIORS)}, or one of "
            "them with its size, as in gaussian:2 (standard deviation of log-worths) or "
            "pseudo-item:0.5 (wins and losses)"
        )
    if not colon:
        return kind, None
    try:
        return kind, float(number)
    except ValueError:
        raise ValueError(f"{number!r}, of the prior {spelled!r}, is not a number") from None


def check_solver(solver: Any) -> None:
    """Refuse what is no solver of an aggregator."""
    if solver not in SOLVERS:
        raise ValueError(f"solver is one of {', '.join(SOLVERS)}, not {solver!r}")


def check_uncertainty(uncertainty: Any) -> None:
    """Refuse what is no kind of standard errors of an aggregator."""
    if uncertainty not in ("information", "sandwich"):
        raise ValueError(f'uncertainty is "information" or "sandwich", not {uncertainty!r}')


def check_games_ties(ties: Any) -> None:
    """Refuse what can't be done with the ties of games."""
    if ties not in (None, "refuse", "half", "drop"):
        raise ValueError(f'ties is "refuse", "half", "drop" or None, not {ties!r}')


def check_sampler(sampler: Any) -> None:
    """Refuse what is no way to draw labels."""
    if sampler not in SAMPLERS:
        raise ValueError(f"sampler is one of {', '.join(SAMPLERS)}, not {sampler!r}")


def check_ranking_format(format: Any) -> None:
    """Refuse what is no format of rankings."""
    if format not in RANKING_FORMATS:
        raise ValueError(f"format is one of {', '.join(RANKING_FORMATS)}, not {format!r}.")


def check_table_kind(kind: Any) -> None:
    """Refuse what is no kind of table; None leaves it open."""
    if kind is not None and kind not in TABLE_KINDS:
        raise ValueError(f"kind is one of {', '.join(TABLE_KINDS)}, not {kind!r}.")


def _cutoff(cutoff: str, name: str, example: str) -> int:
    if not re.fullmatch(r"[0-9]+", cutoff) or int(cutoff) < 1:
        raise ValueError(f"{name!r}: after @ comes a number of places from 1 on, as in {example}.")
    return int(cutoff)


def _hint(name: str, plain: Mapping[str, str], ending: str = "") -> str:
    close = difflib.get_close_matches(_plain(name), plain, n=1)
    return f"did you mean {plain[close[0]] + ending!r}? " if close else ""


def _plain(name: str) -> str:
    return re.sub(r"[-_\s]", "", name.lower())
