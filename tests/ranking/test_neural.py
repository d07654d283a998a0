"""NeuralRanker: what it learns, what it gives back, and that nothing stops it from doing so."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
import torch
from sklearn.base import clone

import tierrank as tr
from neural_fits import lists, long_fit, shared_fit, small
from real_data import real
from tierrank import storage
from tierrank.storage import StorageError
from tierrank.training import Checkpoint

X, Y, QID = lists()


def state(ranker):
    return {name: value.numpy() for name, value in ranker.scorer_.state_dict().items()}


def assert_same_model(one, two):
    assert state(one).keys() == state(two).keys()
    for name, value in state(one).items():
        np.testing.assert_array_equal(value, state(two)[name], err_msg=name)
    assert one.history_ == two.history_
    assert one.objective_state_ == two.objective_state_


# What it learns ------------------------------------------------------------------------------


def test_it_finds_what_no_linear_score_can():
    train, test = lists(1, 150), lists(2, 100)
    fitted = [
        small(hidden=hidden, max_epochs=15, batch_lists=16, learning_rate=0.01).fit(
            *train[:2], qid=train[2]
        )
        for hidden in ((32, 16), ())
    ]
    deep, linear = (ranker.score(*test[:2], qid=test[2]) for ranker in fitted)
    assert deep > linear + 0.05


def test_a_linear_scorer_finds_the_minimum_that_newton_finds():
    """hidden=() and full batches is the same convex problem as any optimiser's."""
    X, y, qid = lists(3, 60, features=3)
    tiers = tr.Tiers.from_labels(y, qid=qid)
    rows = torch.from_numpy(X)
    weights = torch.zeros(3, dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.LBFGS([weights], max_iter=100, tolerance_grad=1e-10)

    def closure():
        optimiser.zero_grad()
        loss = tr.losses.pl_partition(rows @ weights, tiers)
        loss.backward()
        return loss

    optimiser.step(closure)
    ranker = small(
        hidden=(), features=None, batch_lists=1000, max_epochs=200, learning_rate=0.05,
        weight_decay=0.0, dropout=0.0,
    )  # fmt: skip
    ranker.fit(X, y, qid=qid)
    found = ranker.scorer_.layers[0].weight.detach().numpy()[0]
    np.testing.assert_allclose(found, weights.detach().numpy(), atol=2e-3)
    assert ranker.history_.loss[-1] == pytest.approx(float(closure().detach()), abs=1e-4)


@pytest.mark.parametrize("name", sorted(tr.losses.OBJECTIVES))
def test_every_objective_can_be_trained_and_saved(name, tmp_path):
    few = {"pl-topk": {"k": 2}, "pmop-gibbs": {"steps": 2}, "pmop-mh": {"steps": 2}}
    ranker = small(objective=name, objective_params=few.get(name), max_epochs=8)
    ranker.fit(X, Y, qid=QID)
    assert np.isfinite(ranker.history_.loss).all()
    loaded = tr.load(tr.save(ranker, tmp_path))
    np.testing.assert_array_equal(loaded.predict(X), ranker.predict(X))
    assert loaded.objective_state_ == ranker.objective_state_
    assert bool(ranker.objective_state_) == (name in ("davidson", "rao-kupper"))


def test_how_probable_ties_are_is_learned():
    ranker = small(objective="davidson", max_epochs=30, learning_rate=0.05).fit(X, Y, qid=QID)
    assert ranker.objective_state_["beta"] != 0
    start = small(objective="davidson", objective_params={"beta": 3.0}, max_epochs=1)
    assert start.fit(X, Y, qid=QID).objective_state_["beta"] == pytest.approx(3, abs=0.1)


def test_what_an_objective_draws_has_its_seed():
    params = {"ties": "random", "generator": 5}
    one, same = (
        small(objective="listmle", objective_params=dict(params)).fit(X, Y, qid=QID)
        for _ in range(2)
    )
    assert_same_model(one, same)
    other = small(objective="listmle", objective_params={**params, "generator": 6})
    assert other.fit(X, Y, qid=QID).history_ != one.history_


# Lists ---------------------------------------------------------------------------------------


def test_lists_that_say_nothing_change_nothing():
    """A list of one row, or of one tier, has loss 0; the mean loss counts it."""
    more = np.random.default_rng(5).normal(size=(7, 4))
    plain = small(dropout=0.3, features=None).fit(X, Y, qid=QID)
    with_more = small(dropout=0.3, features=None).fit(
        np.vstack([X, more]), np.append(Y, [5, 5, 5, 2, -1, -1, 0.5]),
        qid=np.append(QID, [70, 70, 70, 71, 72, 72, 73]),
    )  # fmt: skip
    np.testing.assert_array_equal(with_more.predict(X), plain.predict(X))
    n_lists = len(np.unique(QID))
    np.testing.assert_allclose(
        with_more.history_.loss, np.array(plain.history_.loss) * n_lists / (n_lists + 4)
    )


def test_lists_of_one_tier_count_where_ties_are_claimed():
    options = {"objective": "davidson", "features": None}
    more = np.random.default_rng(5).normal(size=(3, 4))
    plain = small(**options).fit(X, Y, qid=QID)
    tied = small(**options).fit(
        np.vstack([X, more]), np.append(Y, [1, 1, 1]), qid=np.append(QID, [70, 70, 70])
    )
    assert not np.array_equal(tied.predict(X), plain.predict(X))


def test_a_weight_counts_as_copies_of_the_list_do():
    """On full batches: weights 0, 1 and 3 are lists left out, as they are, and there thrice."""
    X, y, qid = lists(4, 20)
    _, first = np.unique(qid, return_index=True)
    keys = qid[np.sort(first)]
    weight = np.random.default_rng(0).choice([0, 1, 3], len(keys))
    options = {"features": None, "batch_lists": 1000, "dropout": 0.0, "max_epochs": 5}
    weighted = small(**options).fit(X, y, qid=qid, weights=weight)
    rows, names = [], []
    for key, times in zip(keys, weight, strict=True):
        for copy in range(times):
            own = np.flatnonzero(qid == key)
            rows.append(own)
            names += [f"{key}.{copy}"] * len(own)
    rows = np.concatenate(rows)
    copied = small(**options).fit(X[rows], y[rows], qid=np.array(names))
    np.testing.assert_allclose(weighted.predict(X), copied.predict(X), atol=1e-5)
    np.testing.assert_allclose(weighted.history_.loss, copied.history_.loss, rtol=1e-5)


def test_weights_that_leave_nothing_are_refused():
    X, y = np.arange(8.0).reshape(4, 2), [1, 0, 1, 1]
    with pytest.raises(ValueError, match=r"nothing to learn.*weights"):
        small().fit(X, y, qid=[1, 1, 2, 2], weights=[0, 1])


def test_rows_may_come_in_any_form():
    _, number = np.unique(QID, return_inverse=True)
    order = np.argsort(number, kind="stable")
    sorted_X, sorted_y, group = X[order], Y[order], np.bincount(number)
    expected = small(features=None).fit(sorted_X, sorted_y, qid=number[order])
    scores = expected.predict(sorted_X)
    frame = pd.DataFrame(sorted_X, columns=list("abcd"))
    frame["query"] = [f"q{i}" for i in number[order]]
    forms = [
        (sorted_X, {"group": group}, {}),
        (sorted_X.astype(np.float32), {"group": group}, {}),
        (scipy.sparse.csr_matrix(sorted_X), {"group": group}, {}),
        (scipy.sparse.csr_array(sorted_X), {"group": group}, {}),
        (pl.DataFrame(sorted_X), {"group": group}, {}),
        (frame, {}, {"query_column": "query"}),
        (pl.from_pandas(frame), {}, {"query_column": "query"}),
        (frame.drop(columns="query"), {"qid": frame["query"]}, {}),
    ]
    for form, fit_params, options in forms:
        ranker = small(features=None, **options).fit(form, sorted_y, **fit_params)
        np.testing.assert_array_equal(ranker.predict(form), scores)
    shuffled = small(features=None).fit(sorted_X[::-1], sorted_y[::-1], qid=number[order][::-1])
    assert shuffled.predict(sorted_X).shape == scores.shape


def test_sparse_rows_are_standardised_and_learned_from():
    rows = scipy.sparse.random_array((400, 300), density=0.02, rng=1, format="csr")
    y = np.random.default_rng(1).integers(0, 3, 400)
    ranker = small().fit(rows, y, group=[20] * 20)
    np.testing.assert_allclose(ranker.predict(rows.toarray()), ranker.predict(rows), atol=1e-6)


def test_one_feature_and_one_list_are_enough():
    x = np.arange(6.0)[:, None]
    ranker = small(max_epochs=60, learning_rate=0.05).fit(x, [-2.5, 0, 0.5, 0.5, 7, 9], group=[6])
    assert ranker.score(x, [0, 1, 2, 2, 3, 4], group=[6]) == pytest.approx(1)


# Attention -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def attentive():
    ranker = small(attention_layers=2, attention_width=8, attention_heads=2, max_epochs=15)
    return ranker.fit(X, Y, qid=QID)


def test_attention_looks_at_the_rest_of_the_list(attentive):
    longest = np.bincount(QID).argmax()
    rows = X[longest == QID]
    whole = attentive.predict(rows, group=[len(rows)])
    assert attentive.scores_lists
    assert not np.allclose(attentive.predict(rows[:3], group=[3]), whole[:3], atol=1e-4)


def test_attention_does_not_look_at_other_lists_or_padding(attentive):
    together = attentive.predict(X, qid=QID)
    for key in np.unique(QID):
        own = key == QID
        np.testing.assert_allclose(
            attentive.predict(X[own], group=[own.sum()]), together[own], atol=2e-6
        )


def test_permuting_the_rows_permutes_the_scores(attentive):
    order = np.random.default_rng(9).permutation(len(X))
    scores = attentive.predict(X, qid=QID)
    np.testing.assert_allclose(
        attentive.predict(X[order], qid=QID[order]), scores[order], atol=2e-6
    )


def test_scores_do_not_depend_on_the_blocks_in_which_they_are_made(attentive, monkeypatch):
    plain = small().fit(X, Y, qid=QID)
    expected = [plain.predict(X), attentive.predict(X, qid=QID)]
    for numbers in (1, 100, 500, 1000):
        monkeypatch.setattr("tierrank.ranking.neural.NUMBERS_AT_ONCE", numbers)
        np.testing.assert_allclose(plain.predict(X), expected[0], atol=2e-6)
        np.testing.assert_allclose(attentive.predict(X, qid=QID), expected[1], atol=2e-6)


def test_attention_equals_torchs_own_encoder():
    from tierrank.ranking.neural import AttentionBlock, PaddedLists

    torch.manual_seed(0)
    block = AttentionBlock(12, 3, torch.nn.ReLU(), 0.0)
    peer = torch.nn.TransformerEncoderLayer(
        12, 3, 24, dropout=0.0, activation="relu", batch_first=True, norm_first=True
    )
    names = {
        "norm1": "norm1", "norm2": "norm2", "linear1": "feed.0", "linear2": "feed.2",
        "self_attn.out_proj": "attention.out_proj",
    }  # fmt: skip
    mine = block.state_dict()
    weights = {
        f"{theirs}.{kind}": mine[f"{ours}.{kind}"]
        for theirs, ours in names.items()
        for kind in ("weight", "bias")
    }
    for kind in ("weight", "bias"):
        weights[f"self_attn.in_proj_{kind}"] = mine[f"attention.in_proj.{kind}"]
    peer.load_state_dict(weights)
    lengths = np.array([5, 1, 7, 4, 16, 1, 9])
    x = torch.randn(int(lengths.sum()), 12, requires_grad=True)
    result = block(x, PaddedLists(lengths, x.device))
    expected = torch.cat([peer(own[None])[0] for own in x.split(lengths.tolist())])
    torch.testing.assert_close(result, expected)
    seed = torch.randn_like(result)
    ours, theirs = (torch.autograd.grad(out, x, seed)[0] for out in (result, expected))
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-4)


# Validation, precision, randomness -----------------------------------------------------------


def test_the_best_epoch_by_validation_is_kept():
    held_out = lists(8)
    ranker = small(max_epochs=200, patience=4, learning_rate=0.03, dropout=0.2)
    seen = []
    ranker.fit(X, Y, qid=QID, eval_set=[held_out], watch=seen.append)
    history = ranker.history_
    assert len(seen) == len(history.steps) == history.best_step + 4 < 200
    assert history.best_metric == max(history.metric)
    assert ranker.score(*held_out[:2], qid=held_out[2]) == pytest.approx(history.best_metric)
    assert (seen[-1].unit, seen[-1].best) == ("epoch", history.best_metric)


def test_nothing_is_dropped_when_predicting():
    ranker = small(dropout=0.5, normalisation="batch").fit(X, Y, qid=QID)
    assert not ranker.scorer_.training
    np.testing.assert_array_equal(ranker.predict(X), ranker.predict(X))
    np.testing.assert_allclose(ranker.predict(X[:1]), ranker.predict(X)[:1], atol=1e-6)


def test_bfloat16_learns_nearly_the_same():
    exact, mixed = (
        small(max_epochs=20, precision=precision, hidden=(32,)).fit(X, Y, qid=QID)
        for precision in ("32-true", "bf16-mixed")
    )
    assert mixed.predict(X).dtype == np.float32
    assert not np.array_equal(mixed.predict(X), exact.predict(X))
    np.testing.assert_allclose(mixed.history_.loss, exact.history_.loss, rtol=0.02)


def test_the_seed_is_all_the_randomness_there_is():
    before = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    one, same = (small(dropout=0.5).fit(X, Y, qid=QID) for _ in range(2))
    assert_same_model(one, same)
    assert torch.equal(torch.get_rng_state(), before[0])
    np.testing.assert_array_equal(np.random.get_state()[1], before[1])  # noqa: NPY002
    fresh = [small(random_state=None).fit(X, Y, qid=QID).predict(X) for _ in range(2)]
    assert not np.array_equal(*fresh)


def test_nothing_is_printed_or_warned_of(capfd, recwarn):
    small().fit(X, Y, qid=QID).predict(X)
    assert capfd.readouterr() == ("", "")
    assert not recwarn.list


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"hidden": 8}, "hidden is a sequence of widths"),
        ({"hidden": (8, 0)}, "hidden width"),
        ({"activation": "step"}, "activation is one of 'relu'"),
        ({"dropout": 1.0}, "dropout"),
        ({"normalisation": "instance"}, 'normalisation is "layer", "batch" or None'),
        ({"attention_layers": 1, "attention_width": 10}, "no multiple of attention_heads=4"),
        ({"attention_layers": -1}, "attention_layers"),
        ({"batch_lists": 0}, "batch_lists"),
        ({"max_epochs": 0}, "max_epochs"),
        ({"learning_rate": -1}, "learning_rate"),
        ({"precision": "16-true"}, "precision"),
        ({"accelerator": "abacus"}, "accelerator"),
        ({"objective": "pl-partitoin"}, "did you mean 'pl-partition'"),
        ({"objective_params": {"k": 3}}, "objective_params do not fit"),
        ({"features": "standardise"}, "unknown features"),
        ({"random_state": -1}, "random_state"),
    ],
)
def test_options_that_mean_nothing_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        small(**options).fit(X, Y, qid=QID)


def test_a_rate_that_is_far_too_large_is_an_error_and_no_model():
    ranker = small(learning_rate=1e30, normalisation=None, max_epochs=20, hidden=(8, 8))
    with pytest.raises(ValueError, match=r"astray in epoch \d+, step \d+.*smaller learning rate"):
        ranker.fit(X, Y, qid=QID)
    assert not hasattr(ranker, "scorer_")


def test_features_that_float32_cannot_hold_are_refused():
    with pytest.raises(ValueError, match="float32"):
        small(features=None).fit(X * 1e60, Y, qid=QID)
    assert np.isfinite(small().fit(X * 1e60, Y, qid=QID).predict(X)).all()  # standardised


# scikit-learn's tools ------------------------------------------------------------------------


def test_a_clone_is_unfitted_and_equal():
    ranker = small(hidden=[4, 4], attention_layers=1).fit(X, Y, qid=QID)
    copy = clone(ranker)
    assert copy.get_params() == ranker.get_params()
    assert not hasattr(copy, "scorer_")


# Saving --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"normalisation": "batch", "activation": "gelu"},
        {"attention_layers": 2, "attention_width": 8, "attention_heads": 2},
        {"hidden": (), "features": ["standardize", "second-order"]},
    ],
    ids=["plain", "batch", "attention", "linear"],
)
def test_a_loaded_model_gives_the_same_scores(options, tmp_path):
    ranker = small(**options).fit(X, Y, qid=QID)
    loaded = tr.load(tr.save(ranker, tmp_path / "model"))
    np.testing.assert_array_equal(loaded.predict(X, qid=QID), ranker.predict(X, qid=QID))
    assert_same_model(loaded, ranker)
    assert not loaded.scorer_.training
    assert loaded.fit(X, Y, qid=QID).predict(X, qid=QID).shape == (len(X),)


@pytest.mark.slow
def test_another_process_gives_the_same_scores(tmp_path):
    ranker = small(attention_layers=1).fit(X, Y, qid=QID)
    tr.save(ranker, tmp_path / "model")
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "qid.npy", QID)
    code = """
        import numpy as np, tierrank as tr
        X, qid = np.load("X.npy"), np.load("qid.npy")
        np.save("scores.npy", tr.load("model").predict(X, qid=qid))
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True, cwd=tmp_path)
    np.testing.assert_array_equal(np.load(tmp_path / "scores.npy"), ranker.predict(X, qid=QID))


@pytest.mark.parametrize(
    "damage",
    {
        "a missing tensor": lambda info, tensors: tensors.pop("learned.layers.0.weight"),
        "a tensor too many": lambda info, tensors: tensors.update({"learned.x": np.zeros(1)}),
        "a wrong shape": lambda info, tensors: tensors.update(
            {"learned.layers.0.weight": np.zeros((8, 3), np.float32)}
        ),
        "a wrong type": lambda info, tensors: tensors.update(
            {"learned.layers.0.weight": np.zeros((8, 4))}
        ),
        "a NaN": lambda info, tensors: tensors["learned.layers.0.weight"].fill(np.nan),
        "a negative variance": lambda info, tensors: tensors["learned.layers.1.running_var"].fill(
            -1
        ),
        "other inputs": lambda info, tensors: info["learned"].update(n_inputs=5),
        "no inputs": lambda info, tensors: info["learned"].update(n_inputs=None),
        "too many inputs": lambda info, tensors: info["learned"].update(n_inputs=10**15),
        "a huge layer": lambda info, tensors: info["params"].update(hidden=[10**12]),
        "a text for a layer": lambda info, tensors: info["params"].update(hidden=["8"]),
        "no layers": lambda info, tensors: info["params"].update(hidden=None),
        "too many blocks": lambda info, tensors: info["params"].update(attention_layers=10**9),
        "an unknown option": lambda info, tensors: info["params"].update(layers=3),
        "an unknown activation": lambda info, tensors: info["params"].update(activation="exec"),
        "no objective": lambda info, tensors: info["learned"].pop("objective"),
        "a text for a number": lambda info, tensors: info["learned"].update(objective={"a": "b"}),
    }.items(),
    ids=lambda item: item[0],
)
def test_a_hostile_state_is_refused(damage, tmp_path):
    ranker = small(normalisation="batch").fit(X, Y, qid=QID)
    info, tensors = ranker.to_state()
    tensors = {name: array.copy() for name, array in tensors.items()}
    damage[1](info, tensors)
    storage.write(tmp_path, "model", {"estimator": "NeuralRanker", **info}, tensors)
    with pytest.raises(StorageError, match="does not hold together"):
        tr.load(tmp_path)


# Stopping and going on -----------------------------------------------------------------------


class Killed(BaseException):
    pass


@pytest.mark.parametrize(
    "options",
    [
        {"dropout": 0.4, "normalisation": "batch"},
        {"dropout": 0.4, "attention_layers": 1, "attention_width": 8},
        {"objective": "davidson"},
        {"objective": "listmle", "objective_params": {"ties": "random", "generator": 3}},
        {"objective": "pmop-gibbs"},
        {"precision": "bf16-mixed", "dropout": 0.4},
    ],
    ids=["batch norm", "attention", "davidson", "draws", "samples", "bfloat16"],
)
def test_a_fit_that_is_killed_goes_on_to_the_same_model(options, tmp_path, monkeypatch):
    held_out = lists(8)
    fit_params = {"qid": QID, "eval_set": held_out, "checkpoint_every": 0}
    whole = small(**options).fit(X, Y, **fit_params)
    lives = np.random.default_rng(len(str(options)))
    save = Checkpoint.save

    def save_and_die(self, state, tensors):
        save(self, state, tensors)
        self.life = getattr(self, "life", int(lives.integers(1, 9))) - 1
        if self.life == 0:
            raise Killed

    monkeypatch.setattr(Checkpoint, "save", save_and_die)
    deaths = 0
    while True:
        ranker = small(**options)
        try:
            ranker.fit(X, Y, **fit_params, checkpoint=tmp_path)
            break
        except Killed:
            deaths += 1
            torch.rand(3)
    assert deaths > 1
    assert_same_model(ranker, whole)


def test_a_fresh_seed_is_kept_with_the_state(tmp_path, monkeypatch):
    """Without random_state, a resumed fit still is the one that was begun."""
    save = Checkpoint.save

    def save_and_die(self, state, tensors):
        save(self, state, tensors)
        if not state["finished"]:
            raise Killed

    fit_params = {"qid": QID, "checkpoint": tmp_path, "checkpoint_every": 0}
    ranker = small(random_state=None, dropout=0.3)
    monkeypatch.setattr(Checkpoint, "save", save_and_die)
    with pytest.raises(Killed):
        ranker.fit(X, Y, **fit_params)
    monkeypatch.undo()
    seed = storage.read(tmp_path, "checkpoint")[0]["state"]["seed"]
    ranker.fit(X, Y, **fit_params)
    assert_same_model(ranker, small(random_state=seed, dropout=0.3).fit(X, Y, qid=QID))


def test_ctrl_c_leaves_a_usable_model_and_a_state(tmp_path):
    held_out = lists(8)
    options = {"max_epochs": 8, "dropout": 0.3, "patience": None}

    def interrupt(progress):
        if progress.done == 4:
            signal.raise_signal(signal.SIGINT)

    stopped = small(**options)
    with pytest.raises(KeyboardInterrupt):
        stopped.fit(X, Y, qid=QID, eval_set=held_out, checkpoint=tmp_path, watch=interrupt)
    history = stopped.history_
    assert 4 <= len(history.steps) < 8
    assert stopped.score(*held_out[:2], qid=held_out[2]) == pytest.approx(history.best_metric)
    resumed = small(**options).fit(X, Y, qid=QID, eval_set=held_out, checkpoint=tmp_path)
    assert_same_model(resumed, small(**options).fit(X, Y, qid=QID, eval_set=held_out))


def test_a_state_of_other_data_is_refused(tmp_path):
    small().fit(X, Y, qid=QID, checkpoint=tmp_path)
    with pytest.raises(StorageError, match="another fit"):
        small().fit(X + 1, Y, qid=QID, checkpoint=tmp_path)


KILLED = """
    import sys
    sys.path.insert(0, TESTS)
    import torch
    torch.set_num_threads(1)
    import tierrank as tr
    from neural_fits import long_fit
    tr.save(long_fit(checkpoint="state", checkpoint_every=0), "model")
"""


def program(text):
    """Code for a process of its own, which finds what tests share."""
    return textwrap.dedent(text).replace("TESTS", repr(str(Path(__file__).parents[1])))


@pytest.mark.slow
def test_a_process_killed_at_any_moment_goes_on_to_the_same_model(tmp_path):
    code = program(KILLED)
    rng = np.random.default_rng()
    kills = 0
    for _ in range(40):
        process = subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path)
        try:
            begun = time.monotonic()
            state = tmp_path / "state" / "checkpoint.json"
            before = state.stat().st_mtime_ns if state.exists() else 0
            while process.poll() is None and kills < 3:
                if state.exists() and state.stat().st_mtime_ns != before:
                    time.sleep(rng.uniform(0, 0.3))
                    process.kill()
                    kills += 1
                    break
                assert time.monotonic() - begun < 100
                time.sleep(0.01)
            if process.wait(timeout=200) == 0:
                break
        finally:
            process.kill()
            process.wait()
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        whole = long_fit()
    finally:
        torch.set_num_threads(threads)
    assert kills
    assert_same_model(tr.load(tmp_path / "model"), whole)


# Several processes ---------------------------------------------------------------------------

SHARED = """
    import datetime, os, sys
    sys.path.insert(0, TESTS)
    import numpy as np, torch
    from neural_fits import lists, shared_fit, small
    torch.set_num_threads(1)
    small()  # loads all that a fit needs
    rank, seen = os.environ["RANK"], []
    torch.distributed.init_process_group("gloo", timeout=datetime.timedelta(seconds=15))
    torch.distributed.barrier()
    open(f"ready-{rank}", "w").close()
    ranker = shared_fit(checkpoint="state", watch=seen.append)
    found = {"loss": ranker.history_.loss, "metric": ranker.history_.metric, "seen": len(seen)}
    np.savez(f"rank{rank}.npz", scores=ranker.predict(lists()[0]), **found)
    torch.distributed.destroy_process_group()
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="gloo is told to use Linux's loopback")
def test_two_processes_learn_what_one_learns(tmp_path):
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    code = program(SHARED)
    environment = {
        "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "TORCHELASTIC_RUN_ID": "test",
        "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "GLOO_SOCKET_IFNAME": "lo",
        "OMP_NUM_THREADS": "1", "TORCHELASTIC_USE_AGENT_STORE": "False",
    }  # fmt: skip
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", code],
            cwd=tmp_path,
            env={**os.environ, **environment, "RANK": str(rank), "LOCAL_RANK": str(rank)},
            stderr=(tmp_path / f"errors-{rank}").open("w"),
        )
        for rank in range(2)
    ]
    try:
        end = time.monotonic() + 60
        while not (ready := len(list(tmp_path.glob("ready-*"))) == 2) and time.monotonic() < end:
            if any(process.poll() is not None for process in processes):
                break
            time.sleep(0.1)
        if not ready:
            pytest.skip("two processes cannot find each other here by gloo")
        for process in processes:
            process.wait(timeout=60)
    finally:
        for process in processes:
            process.kill()
            process.wait()
    errors = [(tmp_path / f"errors-{rank}").read_text() for rank in range(2)]
    assert [process.returncode for process in processes] == [0, 0], errors
    assert errors == ["", ""]  # no noise either
    alone = shared_fit()
    found = [np.load(tmp_path / f"rank{rank}.npz") for rank in range(2)]
    for each in found:
        np.testing.assert_allclose(each["scores"], alone.predict(X), atol=1e-5)
        np.testing.assert_allclose(each["loss"], alone.history_.loss, rtol=1e-5)
        np.testing.assert_allclose(each["metric"], alone.history_.metric, rtol=1e-6)
    np.testing.assert_array_equal(found[0]["scores"], found[1]["scores"])
    assert [int(each["seen"]) for each in found] == [4, 0]


# Real data -----------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.data
def test_it_ranks_mq2008_well():
    folder = real("mq2008")
    parts = [tr.data.read_letor(folder / f"S{i}.txt.xz") for i in range(1, 6)]
    train = [np.concatenate([getattr(p, name) for p in parts[:3]]) for name in ("X", "y", "qid")]
    valid, test = parts[3:]
    ranker = tr.NeuralRanker(random_state=0).fit(
        *train[:2], qid=train[2], eval_set=(valid.X, valid.y, valid.qid)
    )
    best_feature = max(
        tr.metrics.ndcg(sign * test.X[:, i], test.y, qid=test.qid, k=10)
        for i in range(test.X.shape[1])
        for sign in (-1, 1)
    )
    assert ranker.score(test.X, test.y, qid=test.qid) > best_feature
