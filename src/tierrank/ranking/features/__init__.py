"""Features before ranking: scikit-learn transformers that travel with the saved model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Self

from sklearn.base import clone

from tierrank._types import AnyArray
from tierrank.ranking.features.base import FeatureTransformer, State
from tierrank.ranking.features.scaling import Impute, QueryScale, Standardize
from tierrank.ranking.features.second_order import SecondOrder

__all__ = [
    "TRANSFORMERS",
    "Impute",
    "QueryScale",
    "SecondOrder",
    "Standardize",
    "Steps",
    "steps_from",
]

TRANSFORMERS: dict[str, type[FeatureTransformer]] = {
    transformer.state_name: transformer
    for transformer in (Impute, Standardize, QueryScale, SecondOrder)
}
"""The transformers that travel with a saved model, by name."""


class Steps:
    """Transformers applied one after the other; none at all gives the features as they are.

    Parameters
    ----------
    steps
        transformers of this package, fitted or not; they are not copied
    """

    def __init__(self, steps: Iterable[FeatureTransformer] = ()) -> None:
        self.steps = list(steps)

    def __len__(self) -> int:
        return len(self.steps)

    def __repr__(self) -> str:
        return f"Steps({self.steps!r})"

    @property
    def needs_qid(self) -> bool:
        """Whether `transform` must know which rows belong to the same query."""
        return any(step.needs_qid for step in self.steps)

    @property
    def fills_missing(self) -> bool:
        """Whether NaN goes in and none comes out."""
        return any(isinstance(step, Impute) for step in self.steps)

    def fit_transform(self, X: Any, y: Any = None, qid: Any = None) -> Any:
        """Fit each step to what those before it made of X, and give what the last one makes."""
        for step in self.steps:
            X = step.fit_transform(X, y, qid=qid)
        return X

    def transform(self, X: Any, qid: Any = None) -> Any:
        """Apply the fitted steps."""
        for step in self.steps:
            X = step.transform(X, qid=qid)
        return X

    def to_state(self) -> State:
        """Give all that the fitted steps know: what JSON can hold, and arrays."""
        infos, tensors = [], {}
        for number, step in enumerate(self.steps):
            info, arrays = step.to_state()
            infos.append(info)
            tensors.update({f"{number}.{name}": array for name, array in arrays.items()})
        return {"steps": infos}, tensors

    @classmethod
    def from_state(cls, info: dict[str, Any], tensors: dict[str, AnyArray]) -> Self:
        """Build the fitted chain whose state this is; whatever does not fit is refused."""
        damaged = "the saved feature steps are damaged or of another version"
        infos = info.get("steps") if isinstance(info, dict) and set(info) == {"steps"} else None
        if not isinstance(infos, list):
            raise ValueError(f"{damaged}: there must be a list of steps.")
        arrays: list[dict[str, AnyArray]] = [{} for _ in infos]
        for key, array in tensors.items():
            owner, _, own_name = key.partition(".")
            if owner not in map(str, range(len(infos))):
                raise ValueError(f"{damaged}: the array {key!r} belongs to none of them.")
            arrays[int(owner)][own_name] = array
        steps: list[FeatureTransformer] = []
        for number, (each, own) in enumerate(zip(infos, arrays, strict=True)):
            name = each.get("name") if isinstance(each, dict) else None
            if not isinstance(name, str) or name not in TRANSFORMERS:
                raise ValueError(f"{damaged}: step {number} is {name!r}, not {_known()}.")
            step = TRANSFORMERS[name].from_state(each, own)
            if steps and step.n_features_in_ != steps[-1].n_features_out_:
                raise ValueError(
                    f"{damaged}: step {number} takes {step.n_features_in_} features, but the one "
                    f"before it gives {steps[-1].n_features_out_}."
                )
            steps.append(step.set_output(transform="default"))
        return cls(steps)


def steps_from(
    spec: str | FeatureTransformer | Sequence[str | FeatureTransformer] | None,
) -> list[FeatureTransformer]:
    """Make unfitted steps of what a user names.

    Parameters
    ----------
    spec
        None for no steps; or one of "impute", "standardize", "query-scale" and "second-order", a
        transformer of this package, or a sequence of them

    Returns
    -------
    list
        new transformers: those given are copied with their parameters, and stay as they are

    Examples
    --------
    >>> steps_from(["standardize", SecondOrder(threshold=0.1)])
    [Standardize(), SecondOrder(threshold=0.1)]
    """
    if spec is None:
        return []
    return [_step(each) for each in (spec if isinstance(spec, list | tuple) else [spec])]


def _step(spec: Any) -> FeatureTransformer:
    if isinstance(spec, str):
        if spec not in TRANSFORMERS:
            raise ValueError(f"unknown features {spec!r}: use {_known()}.")
        transformer = TRANSFORMERS[spec]()
    elif type(spec) in TRANSFORMERS.values():
        transformer = clone(spec)
    else:
        raise ValueError(
            f"{spec!r} is not a step that can be saved with a ranker: use {_known()}, or put "
            "other transformers before the ranker in a scikit-learn Pipeline."
        )
    # The next step, and the ranker, want arrays, whatever scikit-learn is set to.
    ready: FeatureTransformer = transformer.set_output(transform="default")
    return ready


def _known() -> str:
    return ", ".join(map(repr, TRANSFORMERS))
