"""Rankers from what is typed: kinds, objectives, feature steps and settings by name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from inspect import signature
from typing import TYPE_CHECKING, Any

from tierrank import names
from tierrank.cli.options import note, parse_named, parse_settings
from tierrank.errors import Argument, ArgumentError

if TYPE_CHECKING:
    from tierrank.ranking.base import Ranker
    from tierrank.ranking.peers import TreePeer

KINDS = {"linear": "LinearRanker", "neural": "NeuralRanker", "boosted": "BoostedRanker",
         "best": "BlendedRanker"}  # fmt: skip

# Constructor arguments that have an option of their own; the others are given by --set.
OPTIONS = {
    "positions": "--position-column",
    "objective": "--objective",
    "objective_params": "--objective-param, or --objective NAME:PARAM=VALUE",
    "features": "--features",
    "metric": "--metric",
    "random_state": "--seed",
    "threads": "--threads",
    "query_column": "--query",
}


@contextmanager
def as_options(options: Mapping[str, str] = OPTIONS) -> Iterator[None]:
    """Let complaints about constructor arguments speak of the options that they are here."""
    try:
        yield
    except ArgumentError as error:

        def spell(argument: Argument) -> str:
            value = "" if argument.value is None else f"={argument.value}"
            return options.get(argument.name, f"--set {argument.name}{value}")

        raise ValueError(error.spelled(spell)) from None


def check_kinds(kinds: Iterable[str]) -> None:
    """Refuse kinds of rankers that there are not."""
    for kind in kinds:
        if kind not in KINDS:
            raise ValueError(f"there is no model {kind!r}: use {', '.join(KINDS)}.")


def check_names(
    kinds: Iterable[str],
    objectives: Iterable[str],
    features: Iterable[str],
    metrics: Iterable[str],
) -> None:
    """Refuse names that there are not, before torch is loaded: that takes seconds."""
    check_kinds(kinds)
    for objective in objectives:
        _parse_objective(objective)
    for step in _steps(features):
        _parse_step(step)
    for metric in metrics:
        names.metric_name(metric)


def ranker_class(kind: str) -> type[Ranker]:
    """The class of a kind of ranker."""
    import tierrank

    check_kinds([kind])
    found: type[Ranker] = getattr(tierrank, KINDS[kind])
    return found


def default_kind() -> str:
    """Boosted trees where a library for them is there, as they do best; else a network, or less."""
    if find_spec("lightgbm") or find_spec("xgboost"):
        return "boosted"
    kind = "neural" if find_spec("lightning_fabric") else "linear"
    note(
        f"neither lightgbm nor xgboost is installed, so a {kind} ranker is trained. For boosted "
        'trees: pip install "tierrank[boost]"'
    )
    return kind


def make_ranker(
    kind: str,
    *,
    objective: str = "pl-partition",
    objective_params: Mapping[str, Any] | None = None,
    features: Iterable[str] = (),
    settings: Mapping[str, Any] | None = None,
    metric: str = "ndcg@10",
    seed: int | None = 0,
    threads: int | None = None,
) -> Ranker:
    """An unfitted ranker; whatever is wrong with the arguments is found here, before data is read.

    Parameters
    ----------
    kind
        "linear", "neural" or "boosted"
    objective, objective_params
        the objective, perhaps with parameters (`pl-topk:k=5`), and more of them
    features
        names of feature steps, perhaps with parameters; ("none",) for no steps; () for the
        default of the kind
    settings
        further constructor arguments
    metric, seed, threads
        the validation metric, the seed, and the number of threads (None: all)
    """
    ranker_type = ranker_class(kind)
    known = ranker_type().get_params(deep=False)
    params = checked_settings(settings or {}, known, kind)
    params["objective"], own = _parse_objective(objective)
    if own or objective_params:
        params["objective_params"] = {**own, **(objective_params or {})}
    params["metric"] = _checked_metric(metric)
    params["random_state"] = seed
    if features := list(features):
        params["features"] = [_step(each) for each in _steps(features)] or None
    if threads is not None and "threads" in known:
        params["threads"] = threads
    if kind == "boosted" and "library" not in params and not find_spec("lightgbm"):
        _use_xgboost(params)
    ranker = ranker_type(**params)
    ranker._objective()  # raises if the parameters do not fit it
    return ranker


def make_peer(
    name: str, *, settings: Mapping[str, Any], metric: str, seed: int | None, threads: int | None
) -> TreePeer:
    """An unfitted peer; arguments as in `make_ranker`."""
    from tierrank.ranking.peers import peer_from

    peer = peer_from(name, metric=_checked_metric(metric), random_state=seed, threads=threads)
    known = peer.get_params(deep=False)
    return peer.set_params(**checked_settings(settings, known, name))  # type: ignore[no-any-return]


def checked_settings(
    settings: Mapping[str, Any],
    known: Mapping[str, Any],
    kind: str,
    options: Mapping[str, str] = OPTIONS,
) -> dict[str, Any]:
    """Settings whose names the ranker knows and that have no option of their own.

    What is a share or a rate if not given takes no word.
    """
    for name, value in settings.items():
        ours = names.THEIR_WORDS.get(name, name)
        if ours in options:
            raise ValueError(f"--set {name}: use {options[ours]}.")
        if ours != name and ours in known:
            its = f'{{"{name}": …}}' if ours == "library_params" else "…"
            raise ValueError(f"--set {name}: a {kind} ranker has it as --set {ours}={its}.")
        if name not in known:
            free = [each for each in known if each not in options]
            guess = names.did_you_mean(name, free)
            raise ValueError(
                f"--set {name}: a {kind} ranker has no such setting.{guess} "
                f"It has {', '.join(free)}."
            )
        usual = known[name]
        if isinstance(value, str) and isinstance(usual, float):
            raise ValueError(f"--set {name}: {value!r} is no number, as {name}={usual} has one.")
    return dict(settings)


def settings_by_kind(
    pairs: Iterable[str], kinds: Iterable[str], peers: Iterable[str] = ()
) -> dict[str, dict[str, Any]]:
    """NAME=VALUE for every kind that has such a setting, KIND.NAME=VALUE for one kind.

    A library of peers is a kind, too.
    """
    known = {kind: ranker_class(kind)().get_params(deep=False) for kind in kinds}
    if peers := list(peers):
        from tierrank.ranking.peers import CLASSES

        libraries = dict.fromkeys(name.partition(":")[0] for name in peers)
        known |= {library: CLASSES[library]().get_params(deep=False) for library in libraries}
    own: dict[str, dict[str, Any]] = {kind: {} for kind in known}
    for name, value in parse_settings(pairs, "--set").items():
        kind, dot, setting = name.partition(".")
        if dot:
            if kind not in known:
                raise ValueError(
                    f"--set {name}: {kind} is not one of the models that are compared."
                )
            own[kind][setting] = value
            continue
        takers = [kind for kind in known if name in known[kind]]
        for kind in takers or known:  # if none has it, making the first says what there is
            own[kind].setdefault(name, value)
    return own


def _parse_objective(text: str) -> tuple[str, dict[str, Any]]:
    from tierrank.losses.record import find, theirs

    # A name of another library may have a colon of its own; it is answered as it is.
    foreign = theirs(text) is not None
    name, own = (text, {}) if foreign else parse_named(text, "--objective")
    return find(name).name, own


def _checked_metric(name: str) -> str:
    from tierrank import metrics

    metric = metrics.from_name(name)
    if not metric.higher_is_better:
        raise ValueError(f"{metric.name} is a loss: training stops by a metric that should grow.")
    return name


def _steps(features: Iterable[str]) -> list[str]:
    """The steps that are asked for: "none" alone is no step."""
    steps = list(features)
    return [] if steps == ["none"] else steps


def _parse_step(text: str) -> tuple[str, dict[str, Any]]:
    name, params = parse_named(text, "--features")
    return names.feature_name(name), params


def _step(text: str) -> Any:
    from tierrank.ranking.features import TRANSFORMERS

    name, params = _parse_step(text)
    known = signature(TRANSFORMERS[name]).parameters
    for each in params:
        if each not in known:
            has = f"It has {', '.join(known)}" if known else "It has none"
            raise ValueError(f"--features {text}: {name} has no parameter {each!r}. {has}.")
    return TRANSFORMERS[name](**params)


def _use_xgboost(params: dict[str, Any]) -> None:
    if not find_spec("xgboost"):
        raise ValueError(
            "boosted trees need lightgbm or xgboost, and neither is installed: "
            'pip install "tierrank[boost]", or choose --model neural or linear.'
        )
    note("lightgbm is not installed, so the trees are xgboost's.")
    params["library"] = "xgboost"
