"""The words that people choose by: metrics, feature steps, priors, models of games and others.

What they stand for needs torch, which takes seconds to load. So the names are here, without it, for
commands to answer a mistyped one at once; the registries take them from here, or a test compares.
(Those of objectives stand with all else that is known of them: `tierrank.losses.record`.)
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import Any, Literal, get_args

from tierrank.errors import Argument, ArgumentError

METRICS = {
    "ndcg": "measures.ndcg",
    "dcg": "measures.dcg",
    "err": "measures.err",
    "map": "measures.average_precision",
    "mrr": "measures.reciprocal_rank",
    "precision": "measures.precision",
    "recall": "measures.recall",
    "sharp-ndcg": "measures.sharp_ndcg",
    "pairwise-disagreement": "pairs.pairwise_disagreement",
    "tau-b": "pairs.kendall_tau_b",
}
"""The metrics of scored rows, and where in `tierrank.metrics` their functions are."""
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

LABEL_METRICS = {
    "P": "labels.precision",
    "nDCG": "labels.ndcg",
    "PSP": "labels.ps_precision",
    "PSnDCG": "labels.ps_ndcg",
}
"""The same of predicted labels."""
_ALSO_LABEL_METRICS = {"precision": "P", "psprecision": "PSP"}

FEATURES = ("impute", "standardize", "query-scale", "second-order")
PRIORS = ("gaussian", "pseudo-item")
SCALES = ("log-worth", "elo", "worth")
SOLVERS = ("auto", "newton", "lbfgs", "adagrad")
SAMPLERS = ("uniform", "frequency", "in-batch")
RANKING_FORMATS = ("auto", "preflib", "jsonl", "csv", "tsv", "parquet")
EXPORTS = {
    "onnx": ".onnx",
    "xgboost-json": ".json",
    "xgboost-ubj": ".ubj",
    "xgboost-dump": ".json",
    "lightgbm": ".txt",
    "ranklib": ".xml",
    "solr": ".json",
}
"""The formats that rankers are exported to, and how their files usually end."""

GameModel = Literal["davidson", "rao-kupper", "bradley-terry"]
GAME_MODELS: tuple[GameModel, ...] = get_args(GameModel)
DAVIDSON_LUCE = "davidson-luce"
"""The model of lists that has parameters for ties."""

TableKind = Literal[
    "items", "games", "preferences", "paired-ranks", "wide", "orders", "pass-fail"
]  # fmt: skip
TABLE_KINDS: tuple[TableKind, ...] = get_args(TableKind)

THEIR_WORDS = {
    "n_estimators": "trees", "num_iterations": "trees", "num_boost_round": "trees",
    "num_trees": "trees", "iterations": "trees", "eta": "learning_rate",
    "num_leaves": "leaves", "max_leaves": "leaves", "max_depth": "depth",
    "min_child_samples": "min_rows_per_leaf", "min_data_in_leaf": "min_rows_per_leaf",
    "min_child_weight": "min_hessian_per_leaf", "min_sum_hessian_in_leaf": "min_hessian_per_leaf",
    "reg_lambda": "l2", "lambda_l2": "l2", "l2_leaf_reg": "l2",
    "subsample": "row_fraction", "bagging_fraction": "row_fraction",
    "colsample_bytree": "feature_fraction", "max_bin": "bins",
    "early_stopping_rounds": "patience", "early_stopping_round": "patience",
    "eval_metric": "metric", "n_jobs": "threads", "num_threads": "threads", "nthread": "threads",
    "seed": "random_state",
    "reg_alpha": "library_params", "lambda_l1": "library_params", "gamma": "library_params",
    "min_split_gain": "library_params", "min_gain_to_split": "library_params",
    "categorical_feature": "categories", "cat_features": "categories",
    "enable_categorical": "categories",
}  # fmt: skip
"""What LightGBM, XGBoost and CatBoost call the arguments of our rankers."""

THEIR_FIT_WORDS = {
    "sample_weight": "weights, one a list, in order of first appearance",
    "eval_group": "eval_set=[(X, y, qid)]",
    "eval_qid": "eval_set=[(X, y, qid)]",
    "groups": "qid, one a row, or group, one size a list",
    "position": "positions, one a row, counted from 1",
    "eval_metric": "the constructor's metric",
    "eval_at": "the constructor's metric, as in metric='ndcg@5'",
    "early_stopping_rounds": "the constructor's patience",
    "callbacks": "watch, which is called after every step",
    "verbose": "watch, which is called after every step",
    "xgb_model": "init_model",
    "categorical_feature": "the constructor's categories",
    "cat_features": "the constructor's categories",
}
"""What they call the arguments of `fit`, and what to write."""


def metric_name(name: str) -> tuple[str, int | None]:
    """The metric that is meant by `nDCG@10`, and its cutoff; None without one."""
    stem, at, cutoff = name.strip().partition("@")
    spelled = {plain(known): known for known in METRICS} | _ALSO_METRICS
    found = spelled.get(plain(stem))
    if found is None:
        raise ValueError(
            f"there is no metric {name!r}{hint(stem, spelled)}The metrics are {', '.join(METRICS)}"
        )
    if not at:
        return found, None
    if found in WHOLE_LIST:
        raise ValueError(f"{name!r}: {found} looks at the whole list and has no cutoff.")
    return found, _cutoff(cutoff, name, "ndcg@10")


def label_metric_name(name: str) -> tuple[str, int]:
    """The metric of labels that is meant by `psp@5`, and its cutoff."""
    stem, at, cutoff = name.strip().partition("@")
    spelled = {plain(known): known for known in LABEL_METRICS} | _ALSO_LABEL_METRICS
    found = spelled.get(plain(stem))
    if found is None:
        raise ValueError(
            f"there is no metric of labels {name!r}{hint(stem, spelled, '@5')}The metrics are "
            f"{', '.join(LABEL_METRICS)}, each with a number of places, as in PSP@5."
        )
    if not at:
        raise ValueError(f"{name!r} does not say how many places count: write {found}@5, say.")
    return found, _cutoff(cutoff, name, f"{found}@5")


def feature_name(name: str) -> str:
    """The feature step that is meant, as it is typed."""
    if name not in FEATURES:
        guess = did_you_mean(name, [*FEATURES, "none"])
        raise ValueError(
            f"there are no features {name!r}.{guess} Use {', '.join(FEATURES)}, one option for "
            "each, or none."
        )
    return name


def prior_name(spelled: Any) -> tuple[str, float | None]:
    """The prior that is meant by "gaussian:2.5", and its size; None without one."""
    kind, colon, number = str(spelled).partition(":")
    if kind not in PRIORS:
        raise ValueError(
            f"there is no prior {spelled!r}: it is none, one of {', '.join(PRIORS)}, or one of "
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
    check_one_of("solver", solver, SOLVERS)


def check_uncertainty(uncertainty: Any) -> None:
    """Refuse what is no kind of standard errors of an aggregator."""
    if uncertainty not in ("information", "sandwich", None):
        raise ArgumentError(
            Argument("uncertainty"), f' is "information", "sandwich" or None, not {uncertainty!r}'
        )


def check_scale(scale: Any) -> None:
    """Refuse what is no scale of worths."""
    check_one_of("scale", scale, SCALES)


def check_games_ties(ties: Any) -> None:
    """Refuse what can't be done with the ties of games."""
    if ties not in (None, "refuse", "half", "drop"):
        raise ArgumentError(Argument("ties"), f' is "refuse", "half", "drop" or None, not {ties!r}')


def check_sampler(sampler: Any) -> None:
    """Refuse what is no way to draw labels."""
    check_one_of("sampler", sampler, SAMPLERS)


def check_ranking_format(format: Any) -> None:
    """Refuse what is no format of rankings."""
    check_one_of("format", format, RANKING_FORMATS)


def check_table_kind(kind: Any) -> None:
    """Refuse what is no kind of table; None leaves it open."""
    if kind is not None:
        check_one_of("kind", kind, TABLE_KINDS)


def check_one_of(name: str, given: Any, known: Sequence[str]) -> None:
    """Refuse a value of an argument that is none of those that there are."""
    if given not in known:
        raise ArgumentError(Argument(name), f" is one of {', '.join(known)}, not {given!r}")


def export_format(to: Any, path: Any) -> str:
    """The format that is meant, or that the ending of a path says."""
    if to is not None:
        if to not in EXPORTS:
            guess = did_you_mean(str(to), EXPORTS)
            raise ArgumentError(
                Argument("to"), f" is one of {', '.join(EXPORTS)}, not {to!r}.{guess}"
            )
        return str(to)
    ending = PurePath(path).suffix.lower()
    found = [name for name, usual in EXPORTS.items() if usual == ending]
    if len(found) == 1:
        return found[0]
    if found:
        raise ArgumentError(
            f"{path}: several formats end in {ending}; say which, by ",
            *(part for name in found for part in (Argument("to", name), ", ")), "…",
        )  # fmt: skip
    names = ", ".join(f"something{usual} ({name})" for name, usual in EXPORTS.items()
                      if list(EXPORTS.values()).count(usual) == 1)  # fmt: skip
    raise ArgumentError(
        f"{path}: its ending says no format. Call the file {names}, or say ", Argument("to"),
        f": one of {', '.join(EXPORTS)}",
    )  # fmt: skip


def _cutoff(cutoff: str, name: str, example: str) -> int:
    if not re.fullmatch(r"[0-9]+", cutoff) or int(cutoff) < 1:
        raise ValueError(f"{name!r}: after @ comes a number of places from 1 on, as in {example}.")
    return int(cutoff)


def counted(number: int, one: str, several: str = "") -> str:
    """How many there are of what: `1 list`, `1,200 lists`, `3 queries`."""
    return f"{number:,} {one if number == 1 else several or f'{one}s'}"


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A question after the nearest of known words, behind a blank; nothing if none is near."""
    close = difflib.get_close_matches(word, list(known), n=1)
    return f" Did you mean {close[0]!r}?" if close else ""


def hint(name: str, known: Mapping[str, str], ending: str = "") -> str:
    """The end of a sentence: a question after the nearest of known names, if one is near.

    They stand behind their `plain` spellings.
    """
    close = difflib.get_close_matches(plain(name), known, n=1)
    return f"; did you mean {known[close[0]] + ending!r}? " if close else ". "


def plain(name: str) -> str:
    """A name without what does not matter in it: case, hyphens, underscores, blanks."""
    return re.sub(r"[-_\s]", "", name.lower())
