"""Biases of positions: clicks on what was shown where, by every ranker."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning
from torch.utils._python_dispatch import TorchDispatchMode

import tierrank as tr
from tierrank._types import AnyArray
from tierrank.ranking.features.base import parts_of
from tierrank.ranks import Ranks

FEATURES, SHOWN = 3, 5
TRUE_COEF = np.array([1.0, -0.5, 0.3])
TRUE_BIAS = -np.log(np.arange(1, SHOWN + 1))


class Log:
    """Clicks drawn from the model itself: the best one or two by w + b + Gumbel."""

    def __init__(self, lists: int = 300, rows: int = 40, seed: int = 0) -> None:
        random = np.random.default_rng(seed)
        self.X = random.normal(size=(rows, FEATURES))
        self.rows = random.random((lists, rows)).argsort(1)[:, :SHOWN]
        utility = (self.X @ TRUE_COEF)[self.rows] + TRUE_BIAS
        utility += random.gumbel(size=utility.shape)
        place = (-utility).argsort(1).argsort(1)
        self.y = (place < random.integers(1, 3, size=(lists, 1))).astype(float).ravel()
        self.positions = np.tile(np.arange(1, SHOWN + 1), lists)
        self.qid = np.repeat(np.arange(lists), SHOWN)
        self.rows = self.rows.ravel()

    def fit(self, ranker: Any, **more: Any) -> Any:
        """Fit to rows that are indexed."""
        given = {"qid": self.qid, "rows": self.rows, "positions": self.positions, **more}
        return ranker.fit(self.X, self.y, **given)

    def fit_repeated(self, ranker: Any, **more: Any) -> Any:
        """Fit to rows that are written out."""
        given = {"qid": self.qid, "positions": self.positions, **more}
        return ranker.fit(self.X[self.rows], self.y, **given)


def plain_fit(log: Log, smoothing: float, objective: str = "pl-partition") -> AnyArray:
    """[features + positions − 1] the same minimum by scipy, from values alone."""
    tiers = tr.Tiers.from_labels(log.y, qid=log.qid)
    loss = tr.losses.from_name(objective, reduction="sum")
    X = log.X[log.rows]

    def value(point: AnyArray) -> float:
        bias = np.append(0.0, point[FEATURES:])
        scores = X @ point[:FEATURES] + bias[log.positions - 1]
        return float(loss(scores, tiers)) + smoothing / 2 * float((np.diff(bias) ** 2).sum())

    return np.asarray(minimize(value, np.zeros(FEATURES + SHOWN - 1), tol=1e-10).x)


@pytest.mark.parametrize("smoothing", [0.0, 5.0])
@pytest.mark.parametrize("objective", ["pl-partition", "pl-lb", "ranknet"])
def test_a_linear_fit_is_the_plain_maximum_likelihood(objective: str, smoothing: float) -> None:
    log = Log()
    ranker = tr.LinearRanker(objective, features=None, tol=0, position_smoothing=smoothing)
    log.fit(ranker)
    expected = plain_fit(log, smoothing, objective)
    np.testing.assert_allclose(ranker.coef_, expected[:FEATURES], atol=2e-6)
    np.testing.assert_allclose(ranker.position_bias_[1:], expected[FEATURES:], atol=2e-6)
    assert ranker.position_bias_[0] == 0


@pytest.mark.parametrize("kind", ["information", "sandwich"])
def test_indexed_rows_are_the_rows_written_out(kind: Any) -> None:
    log = Log()
    fits = [
        fit(tr.LinearRanker(features=None, uncertainty=kind)) for fit in (log.fit, log.fit_repeated)
    ]
    for name in ("coef_", "position_bias_", "standard_errors_", "position_standard_errors_"):
        np.testing.assert_allclose(*(getattr(fit, name) for fit in fits), atol=1e-9)


def test_standard_errors_are_those_of_differences_of_the_likelihood() -> None:
    log = Log()
    ranker = log.fit(
        tr.LinearRanker(features=None, uncertainty="information", position_smoothing=2.0)
    )
    tiers = tr.Tiers.from_labels(log.y, qid=log.qid)
    point = np.append(ranker.coef_, ranker.position_bias_[1:])
    X = log.X[log.rows]

    def value(at: AnyArray) -> float:
        bias = np.append(0.0, at[FEATURES:])
        scores = X @ at[:FEATURES] + bias[log.positions - 1]
        return -float(tr.log_prob(scores, tiers).sum()) + float((np.diff(bias) ** 2).sum())

    width = 1e-3 * np.eye(len(point))
    hessian = np.array([[
        value(point + a + b) - value(point + a - b) - value(point - a + b) + value(point - a - b)
        for a in width] for b in width]) / 4e-6  # fmt: skip
    errors = np.sqrt(np.diag(np.linalg.inv(hessian)))
    np.testing.assert_allclose(ranker.standard_errors_, errors[:FEATURES], rtol=1e-4)
    np.testing.assert_allclose(ranker.position_standard_errors_[1:], errors[FEATURES:], rtol=1e-4)


def test_equal_lists_may_be_counted_by_weight() -> None:
    log = Log(lists=60)
    weights = np.random.default_rng(1).integers(1, 4, size=60)
    counted = log.fit(tr.LinearRanker(features=None, uncertainty="information"), weights=weights)
    again = np.repeat(np.arange(60), weights)
    pick = (again[:, None] * SHOWN + np.arange(SHOWN)).ravel()
    log.y, log.rows, log.positions = log.y[pick], log.rows[pick], log.positions[pick]
    log.qid = np.repeat(np.arange(len(again)), SHOWN)
    copied = log.fit(tr.LinearRanker(features=None, uncertainty="information"))
    np.testing.assert_allclose(counted.position_bias_, copied.position_bias_, atol=1e-8)
    np.testing.assert_allclose(
        counted.position_standard_errors_, copied.position_standard_errors_, atol=1e-8
    )


@pytest.mark.parametrize(
    ("name", "bad", "message"),
    [
        ("positions", [1, 2], "one a label"),
        ("positions", np.nan, "is nan for observation 3"),
        ("positions", 0, "is 0.0 for observation 3"),
        ("positions", -1, "is -1.0 for observation 3"),
        ("positions", 1.5, "whole numbers"),
        ("positions", 1e9, "1 to 100,000"),
        ("positions", "first", "holds no numbers"),
        ("rows", 40, "0 to 39"),
        ("rows", -1, "0 to 39"),
    ],
)
def test_bad_positions_and_rows_are_refused(name: str, bad: Any, message: str) -> None:
    log = Log(lists=20)
    given = getattr(log, name).astype(object if isinstance(bad, str) else float)
    if isinstance(bad, list):
        given = bad
    else:
        given[3] = bad
    with pytest.raises(ValueError, match=message) as caught:
        log.fit(tr.LinearRanker(), **{name: given})
    assert str(caught.value).startswith(name)


def test_rows_in_several_lists_have_no_query_to_be_scaled_in() -> None:
    with pytest.raises(ValueError, match="transform X before"):
        Log(lists=20).fit(tr.LinearRanker(features="query-scale"))


def small(kind: str, **more: Any) -> Any:
    if kind == "neural":
        return tr.NeuralRanker(hidden=(8,), max_epochs=3, random_state=0, **more)
    whole = {"row_fraction": 1.0, "feature_fraction": 1.0}
    tree = {"trees": 30, "leaves": 4, "learning_rate": 0.1, "random_state": 0}
    return tr.BoostedRanker(library=kind, **whole | tree | more)  # type: ignore[arg-type]


KINDS = ["lightgbm", "xgboost", "neural"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("objective", ["pl-partition", "ranknet", "rao-kupper"])
def test_the_biases_are_the_best_for_the_scores_that_are_learned(kind: str, objective: str) -> None:
    log = Log(lists=150, rows=200)
    ranker = log.fit(small(kind, objective=objective))
    scores = np.asarray(ranker.predict(log.X), dtype=float)[log.rows]
    assert scores.std() > 0.05
    tiers = tr.Tiers.from_labels(log.y, qid=log.qid)
    loss = tr.losses.from_name(objective, reduction="sum")
    own = list(loss.parameters())

    def value(point: AnyArray) -> float:
        bias = np.append(0.0, point[: SHOWN - 1])
        for parameter, given in zip(own, point[SHOWN - 1 :], strict=True):
            parameter.data.fill_(given)
        total = loss.double()(torch.from_numpy(scores + bias[log.positions - 1]), tiers)
        return float(total.detach()) + 0.5 * float((np.diff(bias) ** 2).sum())

    best = minimize(value, [0.0] * (SHOWN - 1) + [float(each.detach()) for each in own]).x
    np.testing.assert_allclose(ranker.position_bias_[1:], best[: SHOWN - 1], atol=2e-4)
    assert (ranker.position_standard_errors_[1:] > 0.05).all()
    assert ranker.position_standard_errors_[0] == 0


@pytest.mark.parametrize("kind", ["xgboost", "neural"])
def test_indexed_rows_train_as_if_written_out(kind: str) -> None:
    log = Log(lists=100, rows=150)
    seen = np.isin(np.arange(150), log.rows)  # what nobody saw has features, and so bins, too
    log.X, log.rows = log.X[seen], (np.cumsum(seen) - 1)[log.rows]
    more = {"features": None} if kind == "neural" else {}
    both = [fit(small(kind, **more)) for fit in (log.fit, log.fit_repeated)]
    np.testing.assert_allclose(*(each.position_bias_ for each in both), atol=1e-3)
    np.testing.assert_allclose(*(each.predict(log.X) for each in both), atol=1e-2)


def test_trees_and_biases_find_what_clicks_were_drawn_from() -> None:
    log = Log(lists=4000)
    ranker = log.fit(small("lightgbm", min_rows_per_leaf=1, feature_fraction=1.0))
    z = (ranker.position_bias_ - TRUE_BIAS)[1:] / ranker.position_standard_errors_[1:]
    assert np.abs(z).max() < 3.5
    assert np.corrcoef(ranker.predict(log.X), log.X @ TRUE_COEF)[0, 1] > 0.97


@pytest.mark.parametrize("kind", KINDS)
def test_biases_are_saved_and_a_later_fit_without_positions_has_none(
    kind: str, tmp_path: Path
) -> None:
    log = Log(lists=60, rows=100)
    ranker = log.fit(small(kind))
    tr.save(ranker, tmp_path)
    again = tr.load(tmp_path)
    np.testing.assert_array_equal(again.position_bias_, ranker.position_bias_)
    np.testing.assert_array_equal(again.position_standard_errors_, ranker.position_standard_errors_)
    log.fit(ranker, positions=None)
    assert not hasattr(ranker, "position_bias_")


def test_a_state_of_rows_is_none_of_the_same_numbers_as_positions(tmp_path: Path) -> None:
    X, y, qid = np.arange(8.0).reshape(4, 2), [1, 0, 1, 0], [1, 1, 2, 2]
    tr.LinearRanker().fit(X, y, qid=qid, rows=[1, 2, 3, 1], checkpoint=tmp_path)
    with pytest.raises(ValueError, match=r"another fit.*training data"):
        tr.LinearRanker().fit(X, y, qid=qid, positions=[1, 2, 3, 1], checkpoint=tmp_path)


def test_a_stopped_fit_goes_on_to_the_same_biases(tmp_path: Path) -> None:
    log = Log(lists=100, rows=200)
    whole = log.fit(small("lightgbm").set_params(trees=60))

    def stop(progress: Any) -> None:
        if progress.done == 40:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        log.fit(small("lightgbm").set_params(trees=60), checkpoint=tmp_path, watch=stop)
    resumed = log.fit(small("lightgbm").set_params(trees=60), checkpoint=tmp_path)
    np.testing.assert_array_equal(resumed.position_bias_, whole.position_bias_)
    np.testing.assert_array_equal(resumed.predict(log.X), whole.predict(log.X))


@pytest.mark.parametrize("kind", KINDS)
def test_a_position_that_was_never_clicked_or_seen_once_is_held_by_its_neighbours(
    kind: str,
) -> None:
    log = Log(lists=100, rows=200)
    log.positions[-1], log.positions[4] = 9, 7  # and 6 and 8 were never seen
    log.y[[-1, 4]] = 0
    ranker = log.fit(small(kind))
    bias = ranker.position_bias_
    assert len(bias) == 9
    assert np.isfinite(bias).all()
    np.testing.assert_allclose(bias[5], (bias[4] + bias[6]) / 2, atol=1e-4)


@pytest.mark.parametrize("kind", ["lightgbm", "neural"])
def test_without_smoothing_a_position_without_a_click_is_named_as_endless(kind: str) -> None:
    log = Log(lists=100, rows=200)
    log.y[log.positions == SHOWN] = 0
    with pytest.warns(ConvergenceWarning, match="position_smoothing"):
        log.fit(small(kind, position_smoothing=0.0))


@pytest.mark.parametrize("kind", ["lightgbm", "neural"])
def test_objectives_that_are_not_smooth_are_refused(kind: str) -> None:
    with pytest.raises(ValueError, match="positions do not go with ranksvm"):
        Log(lists=20).fit(small(kind, objective="ranksvm"))


def test_dask_is_refused_by_name() -> None:
    log = Log(lists=20)
    with pytest.raises(ValueError, match="positions do not go with Dask"):
        tr.BoostedRanker().fit(log.X, log.y, qid=log.qid, positions=log.positions, client=object())


def test_position_bias_as_a_module_adds_and_is_learned() -> None:
    log = Log(lists=400)
    tiers, bias = tr.Tiers.from_labels(log.y, qid=log.qid), tr.losses.PositionBias(SHOWN)
    scores = torch.from_numpy((log.X @ TRUE_COEF)[log.rows]).float()
    places = torch.from_numpy(log.positions)
    descent = torch.optim.LBFGS(bias.parameters(), max_iter=60, line_search_fn="strong_wolfe")

    def loss() -> torch.Tensor:
        descent.zero_grad()
        value = tr.losses.pl_partition(bias(scores, places), tiers)
        value.backward()
        return value

    descent.step(loss)  # type: ignore[no-untyped-call]
    assert bias.biases()[0] == 0
    np.testing.assert_allclose(bias.biases().detach().numpy(), TRUE_BIAS, atol=0.5)
    smooth = tr.losses.PositionBias(3, smoothing=2.0, start=[1.0, 2.0, 4.0])
    assert float(smooth.penalty().detach()) == pytest.approx(1.0 + 4.0)
    with pytest.raises(ValueError, match="shape"):
        tr.losses.PositionBias(3, start=[0.0])
    for wrong in ([0, 1, 2], [1, 2, 4]):
        with pytest.raises(ValueError, match="positions are from 1 to 3"):
            smooth(torch.zeros(3), torch.tensor(wrong))
    with pytest.raises(ValueError, match=r"shape \[2\], and scores \[3\]"):
        smooth(torch.zeros(3), torch.tensor([1, 2]))
    with pytest.raises(ValueError, match=r"whole numbers, not torch\.float32"):
        smooth(torch.zeros(3), torch.tensor([1.0, 2.0, 3.0]))
    for kind in (torch.uint8, torch.int16, torch.int64):  # of a mask, bytes have the look
        found = smooth(torch.zeros(3), torch.tensor([3, 1, 1], dtype=kind))
        assert found.tolist() == [3.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("positions", "options"),
    [(2.5, {}), (0, {}), (2, {"smoothing": np.nan}), (2, {"smoothing": -1.0}),
     (2, {"start": [0.0, np.nan]})],
)  # fmt: skip
def test_a_position_bias_that_cannot_be_is_refused(positions: Any, options: Any) -> None:
    with pytest.raises(ValueError, match=r"positions|smoothing|start"):
        tr.losses.PositionBias(positions, **options)


@pytest.mark.parametrize("kind", KINDS)
def test_a_log_of_one_place_has_no_biases_to_learn(kind: str) -> None:
    log = Log(lists=60, rows=50)
    log.positions[:] = 1
    ranker = log.fit(small(kind))
    assert ranker.position_bias_.tolist() == [0.0]
    assert np.isfinite(ranker.predict(log.X)).all()


class NeverWaits(TorchDispatchMode):
    """Refuses whatever brings a number from the device to Python."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        assert func is not torch.ops.aten._local_scalar_dense.default
        return func(*args, **(kwargs or {}))


def test_positions_are_looked_at_unless_somebody_has_looked_at_them() -> None:
    bias = tr.losses.PositionBias(3, start=[0.0, -1.0, -2.0])
    scores, places = torch.zeros(3), torch.tensor([3, 1, 2])
    with NeverWaits():
        found = bias(scores, places, check=False)
        with pytest.raises(AssertionError):
            bias(scores, places)
    assert found.tolist() == bias(scores, places).tolist() == [-2.0, 0.0, -1.0]


def test_a_step_of_the_neural_ranker_does_not_look_at_positions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked: list[bool] = []
    add = tr.losses.PositionBias.forward

    def forward(self: Any, scores: Any, positions: Any, *, check: bool = True) -> Any:
        looked.append(check)
        return add(self, scores, positions, check=check)

    monkeypatch.setattr(tr.losses.PositionBias, "forward", forward)
    log = Log(lists=20)
    log.fit(small("neural"))
    assert looked
    assert not any(looked)
    with pytest.raises(ValueError, match="positions is 0"):
        log.fit(small("neural"), positions=log.positions - 1)


def test_parts_of_several_processes_are_refused_by_name() -> None:
    two = Ranks()
    two.size = 2
    refused = pytest.raises(ValueError, match="positions and rows do not go with sharded=True")
    with parts_of(two), refused:
        Log(lists=20).fit(tr.LinearRanker())
