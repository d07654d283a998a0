"""ExtremeRanker: what it learns, what it gives back, and that nothing stops it from doing so."""

import copy
import signal

import numpy as np
import pytest
import torch
from scipy.sparse import coo_matrix, csc_matrix, csr_array, csr_matrix, vstack
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import tierrank as tr
from tierrank import storage
from tierrank.extreme import FUSED
from tierrank.extreme import ranker as extreme_ranker
from tierrank.storage import StorageError
from tierrank.training import Checkpoint, History
from tierrank.training.loop import Position

TRAIN, TEST = tr.data.synthetic.label_sets(
    "eurlex-4k", rows=(80, 30), features=40, labels=20, features_a_row=8, labels_a_row=3, seed=1
)
X, Y = TRAIN.X, TRAIN.Y


def small(**options):
    """A ranker that takes no time."""
    usual = {
        "hidden": 8, "learning_rate": 0.02, "batch_rows": 16, "max_epochs": 3, "random_state": 0,
        "input_dropout": 0, "hidden_dropout": 0, "refit": False,
    }  # fmt: skip
    return tr.ExtremeRanker(**{**usual, **options})


def weights(ranker):
    return [
        {name: part.numpy() for name, part in network.state_dict().items()}
        for network in ranker.networks_
    ]


def assert_same_networks(one, two):
    assert len(one.networks_) == len(two.networks_)
    for ours, theirs in zip(weights(one), weights(two), strict=True):
        assert ours.keys() == theirs.keys()
        for name, part in ours.items():
            np.testing.assert_array_equal(part, theirs[name], err_msg=name)


def assert_same_model(one, two):
    assert_same_networks(one, two)
    assert one.history_ == two.history_
    assert one.trials_ == two.trials_
    assert one.learning_rate_ == two.learning_rate_


def scores_of(ranker, X, number=0):
    """[rows, labels] scores of one network, in float64."""
    parts = {name: part.astype(np.float64) for name, part in weights(ranker)[number].items()}
    X = ranker.features_(csr_matrix(X, dtype=np.float32)).toarray().astype(np.float64)
    sums = X @ parts["features"]
    width = len(parts["feature_bias"])
    hidden = np.maximum(sums[:, :width] + parts["feature_bias"], 0)
    layer = 0
    while f"layers.{layer}.weight" in parts:
        hidden = np.maximum(
            hidden @ parts[f"layers.{layer}.weight"].T + parts[f"layers.{layer}.bias"], 0
        )
        layer += 1
    beside = parts["labels"].shape[1] - hidden.shape[1]
    if beside:
        hidden = np.hstack([hidden, X if beside == X.shape[1] else sums[:, width:]])
    return hidden @ parts["labels"].T + parts["label_bias"]


# What it learns --------------------------------------------------------------------------------


def topical(rows, seed):
    """Rows about 2 of 12 topics: 3 of the 4 features of each, and 2 of its 3 labels."""
    rng = np.random.default_rng(seed)
    X, Y = np.zeros((rows, 48)), np.zeros((rows, 36))
    for row in range(rows):
        for topic in rng.choice(12, 2, replace=False):
            X[row, 4 * topic + rng.choice(4, 3, replace=False)] = 0.5
            Y[row, 3 * topic + rng.choice(3, 2, replace=False)] = 1
    return csr_matrix(X), csr_matrix(Y)


@pytest.mark.parametrize(
    "options",
    [
        *({"objective": name} for name in FUSED),
        {"negatives": 20},
        {"negatives": 20, "sampler": "frequency"},
        {"negatives": 1, "sampler": "in-batch"},
        {"negatives": 20, "objective": "ranknet", "sampler": "in-batch"},
        {"optimiser": "adagrad", "learning_rate": 0.1},
        {"updates": "lazy"},
        {"glas": 10.0},
        {"hidden": (32, 16)},
        {"input_dropout": 0.2, "hidden_dropout": 0.3, "weight_decay": 0.01},
        {"propensity_weights": True},
    ],
    ids=lambda options: "-".join(str(value) for value in options.values()),
)
def test_it_finds_what_popularity_cannot(options):
    train, test = topical(160, 0), topical(100, 1)
    usual = {"hidden": 24, "batch_rows": 16, "max_epochs": 8, "random_state": 0}
    ranker = tr.ExtremeRanker(**{"learning_rate": 0.02, **usual, **options}).fit(*train)
    popular = np.argsort(-np.bincount(train[1].indices, minlength=36))[:5]
    baseline = tr.metrics.labels.precision(np.tile(popular, (100, 1)), test[1], k=5)
    assert ranker.score(*test) > 2 * baseline  # 4 of 5 would be all there is


def test_the_loss_of_the_curve_is_that_of_the_objective():
    """One batch of all rows, and no step to speak of: the mean over the rows with labels."""
    ranker = small(max_epochs=1, batch_rows=1000, learning_rate=1e-30, validation=0).fit(X, Y)
    scores = scores_of(ranker, X)
    wanted = tr.losses.pl_partition(scores, tr.Tiers.from_positives(Y))
    assert ranker.history_.loss == pytest.approx([float(wanted)], rel=1e-5)


def test_propensity_weights_count_rows_by_the_mean_inverse_propensity_of_their_labels():
    ranker = small(
        max_epochs=1, batch_rows=1000, learning_rate=1e-30, validation=0, propensity_weights=True
    ).fit(X, Y)
    q = tr.metrics.labels.inverse_propensity(Y)
    by_row = np.array([q[Y[row].indices].mean() for row in range(len(TRAIN))])
    wanted = tr.losses.pl_partition(
        scores_of(ranker, X), tr.Tiers.from_positives(Y), weights=by_row
    )
    assert ranker.history_.loss == pytest.approx([float(wanted)], rel=1e-5)


def test_dropout_is_for_training_alone():
    ranker = small(input_dropout=0.5, hidden_dropout=0.5).fit(X, Y)
    np.testing.assert_array_equal(ranker.predict(X), ranker.predict(X))


def test_exact_updates_are_the_default_for_small_matrices_and_lazy_ones_differ(monkeypatch):
    exact, auto, lazy = (small(updates=kind).fit(X, Y) for kind in ("exact", "auto", "lazy"))
    assert_same_model(exact, auto)
    assert not np.array_equal(weights(exact)[0]["features"], weights(lazy)[0]["features"])
    monkeypatch.setattr(extreme_ranker, "EXACT_WEIGHTS", 40 * 8 - 1)
    assert_same_model(small().fit(X, Y), lazy)


# What is random --------------------------------------------------------------------------------


RANDOM = {
    "plain": {},
    "everything": {
        "input_dropout": 0.2, "hidden_dropout": 0.2, "negatives": 5, "sampler": "frequency",
        "glas": 1.0, "members": 2, "learning_rate": [0.001, 0.02],
    },
    "refit": {
        "refit": True, "members": 2, "hidden_dropout": 0.2, "skip": True,
        "learning_rate": [1e-4, 0.02, 0.3],
    },
}  # fmt: skip


@pytest.mark.parametrize("options", RANDOM.values(), ids=RANDOM)
def test_a_seed_gives_the_same_bits_and_another_one_others(options):
    before = torch.random.get_rng_state()
    one = small(**options).fit(X, Y)
    assert torch.equal(torch.random.get_rng_state(), before)  # it is the caller's
    torch.rand(3)
    two, other = (small(**{**options, "random_state": seed}).fit(X, Y) for seed in (0, 1))
    assert_same_model(one, two)
    assert not np.array_equal(weights(one)[0]["labels"], weights(other)[0]["labels"])


def test_without_a_seed_each_fit_is_another():
    one, two = (small(random_state=None).fit(X, Y) for _ in range(2))
    assert not np.array_equal(weights(one)[0]["labels"], weights(two)[0]["labels"])


def test_a_second_fit_forgets_the_first():
    ranker = small(members=2).fit(X, Y)
    ranker.set_params(members=1).fit(X[:40], Y[:40])
    assert_same_model(ranker, small().fit(X[:40], Y[:40]))


# Learning rates, validation, members, refit ----------------------------------------------------


def test_the_learning_rate_with_the_best_metric_is_kept():
    rates = (1e-4, 0.02, 0.3)
    ranker = small(learning_rate=rates, halving=False).fit(X, Y)
    alone = [small(learning_rate=rate).fit(X, Y) for rate in rates]
    metrics = [each.history_.best_metric for each in alone]
    assert [trial["metric"] for trial in ranker.trials_] == metrics
    assert [trial["learning_rate"] for trial in ranker.trials_] == list(rates)
    assert [trial["epoch"] for trial in ranker.trials_] == [
        each.history_.best_step for each in alone
    ]
    best = int(np.argmax(metrics))
    assert ranker.learning_rate_ == rates[best]
    assert_same_networks(ranker, alone[best])
    assert ranker.history_ == alone[best].history_


class Curves:
    """In place of training: each rate has a curve of the metric that was written down before."""

    def __init__(self, monkeypatch, by_rate):
        self.by_rate, self.epochs = by_rate, {}

        def run(runs, name, data, valid, rate, course, member, race=None):
            history = History("epoch", "p@5")
            for epoch, metric in enumerate(by_rate[rate], 1):
                history.add(epoch, 1.0, metric)
                self.epochs[rate] = epoch
                if race is not None and race.is_lost(history):
                    break
            end = Position(0, history, epoch=len(history.steps), finished=True)
            return runs.ranker._network(), end

        monkeypatch.setattr(extreme_ranker.Runs, "_run", run)


MIDDLE = [0.30, 0.40, 0.45, 0.46, 0.47, 0.48, 0.48, 0.48, 0.48]


@pytest.mark.parametrize(
    ("slow", "fast", "best", "given"),
    [
        # far behind after 1 epoch; ahead after 1 and 2, behind after 4
        ([0.01, 0.02, 0.03] * 3, [0.35, 0.42, 0.42, 0.41, 0.4], 0.02, (1, 9, 4)),
        # ahead at every rung, and in the end
        ([0.01] * 9, [0.5, 0.5, 0.5, 0.6, 0.6], 0.3, (1, 9, 5)),
        # stopped before the rung at which the other would have been ahead: there with its best
        ([0.31, 0.41, 0.42, 0.43, 0.44, 0.49], [0.1] * 9, 0.02, (4, 9, 1)),
    ],
)
def test_halving_chooses_as_the_grid_does_for_less(slow, fast, best, given, monkeypatch):
    by_rate = {1e-4: slow, 0.02: MIDDLE, 0.3: fast}
    curves = Curves(monkeypatch, by_rate)
    ranker = small(learning_rate=list(by_rate)).fit(X, Y)
    assert ranker.learning_rate_ == best
    assert tuple(curves.epochs[rate] for rate in by_rate) == given
    assert [trial["epochs"] for trial in ranker.trials_] == list(given)
    whole = small(learning_rate=list(by_rate), halving=False).fit(X, Y)
    assert [trial["epochs"] for trial in whole.trials_] == [len(c) for c in by_rate.values()]
    if max(slow) < max(MIDDLE):  # a slow rate that wins in the end is what halving gives up
        assert whole.learning_rate_ == best


def test_a_race_judges_by_the_validation_rows_alone():
    """Rows to be predicted are not there yet, and those held out do not change what is learned."""
    taught, judged = extreme_ranker.hold_out(TRAIN, 0.25, 0)
    rates = [1e-3, 0.02, 0.3]
    ranker = small(learning_rate=rates).fit(X, Y)
    again = small(learning_rate=rates, validation=0.5).fit(
        taught.X, taught.Y, eval_set=(judged.X, judged.Y)
    )
    assert [t["metric"] for t in ranker.trials_] == [t["metric"] for t in again.trials_]
    assert_same_networks(ranker, again)


def test_the_best_epoch_is_kept_and_patience_ends():
    ranker = small(max_epochs=60, patience=2, learning_rate=0.1).fit(X, Y)
    history = ranker.history_
    assert len(history.steps) < 60
    assert history.steps[-1] - history.best_step == 2
    assert history.best_metric == max(history.metric)
    shorter = small(max_epochs=history.best_step, patience=2, learning_rate=0.1).fit(X, Y)
    assert_same_networks(ranker, shorter)


def test_validation_rows_teach_nothing():
    """A quarter is held out: the rest alone, with these rows as eval_set, is the same fit."""
    order = np.random.default_rng([0, 80]).permutation(80)
    held_out, taught = np.sort(order[:20]), np.sort(order[20:])
    whole = small(metric="ndcg@3").fit(X, Y)
    parts = small(metric="ndcg@3").fit(X[taught], Y[taught], eval_set=(X[held_out], Y[held_out]))
    assert_same_model(whole, parts)
    assert whole.history_.metric_name == "ndcg@3"
    top = parts.predict(X[held_out], k=3)
    wanted = tr.metrics.labels.ndcg(top, Y[held_out], k=3)
    assert wanted == pytest.approx(parts.history_.best_metric)


@pytest.mark.parametrize("metric", ["psp@3", "psndcg@2", "p@1"])
def test_it_can_stop_by_any_metric(metric):
    ranker = small(metric=metric).fit(X, Y, eval_set=(TEST.X, TEST.Y))
    assert ranker.score(TEST.X, TEST.Y) == pytest.approx(ranker.history_.best_metric)


def test_without_validation_all_epochs_are_taken():
    ranker = small(validation=0, max_epochs=4).fit(X, Y)
    assert ranker.history_.steps == [1, 2, 3, 4]
    assert ranker.history_.metric == [None] * 4
    assert ranker.trials_ == [{"learning_rate": 0.02, "metric": None, "epoch": None, "epochs": 4}]


def test_a_refit_learns_from_all_rows_with_what_was_found_best():
    options = {"learning_rate": [0.001, 0.05], "max_epochs": 8, "patience": 2}
    first = small(**options).fit(X, Y)
    ranker = small(**options, refit=True).fit(X, Y)
    assert ranker.history_ == first.history_
    assert ranker.learning_rate_ == first.learning_rate_
    by_hand = small(
        learning_rate=first.learning_rate_, max_epochs=first.history_.best_step, validation=0
    ).fit(X, Y)
    assert_same_networks(ranker, by_hand)


@pytest.mark.parametrize("refit", [False, True])
def test_members_differ_and_their_scores_are_averaged(refit):
    ranker = small(members=3, refit=refit).fit(X, Y)
    alone = small(refit=refit).fit(X, Y)
    assert len(ranker.networks_) == 3
    np.testing.assert_array_equal(weights(ranker)[0]["labels"], weights(alone)[0]["labels"])
    by_member = [scores_of(ranker, TEST.X, number) for number in range(3)]
    assert np.abs(by_member[1] - by_member[2]).max() > 0.1
    wanted = np.mean(by_member, axis=0)
    labels, scores = ranker.predict(TEST.X, k=20, return_scores=True)
    np.testing.assert_allclose(scores, np.take_along_axis(wanted, labels, 1), atol=1e-5)
    assert (np.diff(scores, axis=1) <= 0).all()


def test_those_who_watch_are_told_which_run_it_is():
    seen = []
    small(learning_rate=[0.001, 0.02], members=2, max_epochs=2).fit(X, Y, watch=seen.append)
    assert [(each.run, each.done) for each in seen if each.step is None] == [
        ("learning rate 0.001 (1 of 2)", 1), ("learning rate 0.001 (1 of 2)", 2),
        ("learning rate 0.02 (2 of 2)", 1), ("learning rate 0.02 (2 of 2)", 2),
        ("member 2 of 2", 1), ("member 2 of 2", 2),
    ]  # fmt: skip
    assert {each.total for each in seen} == {2}


# Interrupted, and taken up again ---------------------------------------------------------------


class Killed(BaseException):
    pass


def dying(monkeypatch, life):
    """Make the next fits die after so many states were kept; None: live on."""
    left = {"life": life}
    usual = Checkpoint.save

    def save(self, state, tensors):
        usual(self, state, tensors)
        if left["life"] is not None:
            left["life"] -= 1
            if left["life"] <= 0:
                raise Killed

    monkeypatch.setattr(Checkpoint, "save", save)
    return left


RESUMED = {
    "one run": {"validation": 0, "input_dropout": 0.2},
    "rates and members": {
        "learning_rate": [0.001, 0.02], "members": 2, "max_epochs": 2, "patience": 1,
        "hidden_dropout": 0.2,
    },
    "refit": {"refit": True, "members": 2, "max_epochs": 2, "updates": "lazy", "negatives": 6},
}  # fmt: skip


@pytest.mark.parametrize("options", RESUMED.values(), ids=RESUMED)
def test_killed_at_any_step_it_ends_with_the_same_bytes(options, tmp_path, monkeypatch):
    """Each attempt dies with the second state that it keeps."""
    options = {"batch_rows": 30, **options}
    whole = small(**options).fit(X, Y)
    left = dying(monkeypatch, 2)
    deaths = 0
    while True:
        ranker = small(**options)
        try:
            ranker.fit(X, Y, checkpoint=tmp_path, checkpoint_every=0)
        except Killed:
            deaths += 1
            left["life"] = 2
            torch.rand(deaths)  # whatever happens in between
            continue
        break
    assert deaths > 4
    assert_same_model(ranker, whole)
    for part in ("networks_", "label_counts_", "n_rows_"):
        assert hasattr(ranker, part)


def test_killed_once_at_each_step_it_ends_with_the_same_bytes(tmp_path, monkeypatch):
    options = {"learning_rate": [0.001, 0.02], "max_epochs": 2, "batch_rows": 30}
    whole = small(**options).fit(X, Y)
    left = dying(monkeypatch, None)
    for life in (1, 2, 3, 4, 7, 8, 9, 11):
        left["life"] = life
        with pytest.raises(Killed):
            small(**options).fit(X, Y, checkpoint=tmp_path / str(life), checkpoint_every=0)
        left["life"] = None
        resumed = small(**options)
        resumed.fit(X, Y, checkpoint=tmp_path / str(life), checkpoint_every=0)
        assert_same_model(resumed, whole)


def test_ctrl_c_keeps_the_state_and_leaves_a_ranker_that_works(tmp_path):
    options = {"learning_rate": [0.001, 0.02], "members": 2, "max_epochs": 4}
    whole = small(**options).fit(X, Y)
    for after in (1, 3, 6, 9):
        seen = []

        def watch(progress, seen=seen, after=after):
            seen.append(progress)
            if len(seen) == after:
                signal.raise_signal(signal.SIGINT)

        ranker = small(**options)
        with pytest.raises(KeyboardInterrupt):
            ranker.fit(X, Y, checkpoint=tmp_path / str(after), watch=watch)
        assert len(seen) == after
        assert ranker.predict(TEST.X).shape == (30, 5)
        ranker = small(**options).fit(X, Y, checkpoint=tmp_path / str(after))
        assert_same_model(ranker, whole)


def test_a_watch_that_raises_stops_at_once(tmp_path):
    def watch(progress):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        small().fit(X, Y, checkpoint=tmp_path, checkpoint_every=0, watch=watch)
    assert_same_model(small().fit(X, Y, checkpoint=tmp_path), small().fit(X, Y))


def test_what_is_finished_is_not_done_again(tmp_path):
    options = {"learning_rate": [0.001, 0.02], "members": 2, "refit": True}
    first = small(**options).fit(X, Y, checkpoint=tmp_path)
    again = small(**options)
    again.fit(X, Y, checkpoint=tmp_path, watch=lambda progress: pytest.fail("it was"))
    assert_same_model(first, again)
    assert_same_model(first, small(**options).fit(X, Y))


def test_a_seed_that_nobody_gave_is_kept_with_the_state(tmp_path, monkeypatch):
    options = {"members": 2, "max_epochs": 2}
    left = dying(monkeypatch, 4)
    with pytest.raises(Killed):
        small(**options, random_state=None).fit(X, Y, checkpoint=tmp_path, checkpoint_every=0)
    left["life"] = None
    resumed = small(**options, random_state=None).fit(X, Y, checkpoint=tmp_path)
    seed = storage.read(tmp_path, "checkpoint")[0]["state"]["seed"]
    assert_same_model(resumed, small(**options, random_state=seed).fit(X, Y))


def test_learning_rates_that_print_alike_do_not_share_their_state(tmp_path):
    rates = [0.02, 0.0200000001, 0.3]
    one = small(learning_rate=rates).fit(X, Y, checkpoint=tmp_path)
    assert_same_model(one, small(learning_rate=rates).fit(X, Y))
    assert len(list(tmp_path.glob("rate-*"))) == 3


def test_the_state_of_another_fit_is_refused(tmp_path):
    small().fit(X, Y, checkpoint=tmp_path)
    others = [
        (small(hidden=9), (X, Y), {}, "hidden"),
        (small(glas=1.0, members=2), (X, Y), {}, "glas, members"),
        (small(), (2 * X, Y), {}, "training data"),
        (small(), (X, Y), {"eval_set": (TEST.X, TEST.Y)}, "validation data"),
        # a column more at the end, which no row has
        (small(), (csr_matrix((X.data, X.indices, X.indptr), shape=(80, 41)), Y), {}, "sizes"),
    ]
    for ranker, given, options, what in others:
        with pytest.raises(StorageError, match=f"of another fit .what differs: {what}"):
            ranker.fit(*given, checkpoint=tmp_path, **options)


# Rows and labels -------------------------------------------------------------------------------


def test_rows_may_come_in_any_form():
    expected = small().fit(X, Y)
    dense, twice = X.toarray(), coo_matrix(X)
    twice = coo_matrix(  # each entry in two halves
        (np.tile(twice.data / 2, 2), (np.tile(twice.row, 2), np.tile(twice.col, 2))), X.shape
    )
    unsorted = X.copy()
    for row in range(len(TRAIN)):
        part = slice(X.indptr[row], X.indptr[row + 1])
        unsorted.indices[part], unsorted.data[part] = X.indices[part][::-1], X.data[part][::-1]
    unsorted.has_sorted_indices = False
    graded = Y.copy()
    graded.data = np.arange(1, Y.nnz + 1, dtype=np.float32)
    forms = [
        (dense, Y.toarray()), (dense.astype(np.float64), csr_array(Y)), (csc_matrix(X), Y.tolil()),
        (twice, Y.astype(bool)), (unsorted, Y.astype(np.int8)), (X, graded),
    ]  # fmt: skip
    for rows, labels in forms:
        ranker = small().fit(rows, labels)
        assert_same_model(ranker, expected)
        np.testing.assert_array_equal(ranker.predict(rows), expected.predict(X))


def test_what_is_given_is_not_changed():
    rows, labels = X.copy(), Y.copy()
    rows.data.flags.writeable = rows.indices.flags.writeable = False
    small(glas=1.0).fit(rows, labels).predict(rows)
    assert (rows != X).nnz == 0
    assert (labels != Y).nnz == 0


def test_rows_without_labels_teach_nothing():
    more = np.random.default_rng(0).normal(size=(7, 40)).astype(np.float32)
    plain = small(validation=0).fit(X, Y)
    with_more = small(validation=0).fit(
        vstack([X, csr_matrix(more)]), vstack([Y, csr_matrix((7, 20))])
    )
    assert_same_model(plain, with_more)
    assert with_more.n_rows_ == 87


def test_rows_without_features_are_ranked_by_the_bias():
    rows = X.tolil()
    rows[:40] = 0
    ranker = small(batch_rows=1, max_epochs=2).fit(rows, Y)  # some batches have no feature at all
    empty = csr_matrix((3, 40))
    np.testing.assert_array_equal(
        ranker.predict(empty, k=20)[0], np.argsort(-scores_of(ranker, empty)[0], kind="stable")
    )


def test_labels_that_no_row_has_are_ranked_too():
    wide = csr_matrix((Y.data, Y.indices, Y.indptr), shape=(80, 300))
    ranker = small(max_epochs=20).fit(X, wide)
    assert not ranker.label_counts_[20:].any()
    top = ranker.predict(X, k=300)
    assert (np.sort(top, axis=1) == np.arange(300)).all()
    assert top[:, :10].max() < 20  # and they come last
    for name in ("uniform", "frequency", "in-batch"):
        small(negatives=10, sampler=name, glas=0.1).fit(X, wide)


@pytest.mark.parametrize("objective", FUSED)
def test_two_labels_are_enough(objective):
    """Of which rows may have both, one or none."""
    ranker = small(objective=objective, max_epochs=20, members=2).fit(X, Y[:, :2])
    assert ranker.predict(X, k=2).shape == (80, 2)
    top = ranker.predict(TEST.X, k=2)
    found = tr.metrics.labels.precision(
        np.pad(top, ((0, 0), (0, 3)), constant_values=-1), TEST.Y[:, :2]
    )
    assert ranker.score(TEST.X, TEST.Y[:, :2]) == found


def test_a_row_may_have_all_labels():
    full = Y.tolil()
    full[3] = 1
    for objective in ("pl-partition", "ranksvm"):
        assert np.isfinite(small(objective=objective).fit(X, full).history_.loss).all()


@pytest.mark.parametrize(("rows", "batch"), [(1, 128), (3, 1), (80, 10_000), (17, 16)])
def test_any_number_of_rows_and_any_size_of_a_batch(rows, batch):
    ranker = small(batch_rows=batch, validation=0).fit(X[:rows], Y[:rows])
    assert len(ranker.history_.loss) == 3
    for name in ("uniform", "in-batch"):
        sampled = small(batch_rows=batch, validation=0, negatives=1000, sampler=name)
        assert np.isfinite(sampled.fit(X[:rows], Y[:rows]).history_.loss).all()


# Predicting ------------------------------------------------------------------------------------


def test_predictions_are_the_labels_with_the_highest_scores():
    ranker = small(hidden=(8, 6), max_epochs=5).fit(X, Y)
    scores = scores_of(ranker, TEST.X)
    for k in (1, 5, 20):
        labels, found = ranker.predict(TEST.X, k=k, return_scores=True)
        np.testing.assert_array_equal(labels, np.argsort(-scores, axis=1)[:, :k])
        np.testing.assert_allclose(found, -np.sort(-scores, axis=1)[:, :k], atol=1e-5)
    assert ranker.predict(TEST.X).shape == (30, 5)
    assert ranker.predict(TEST.X[:0], k=2).shape == (0, 2)
    assert ranker.predict(TEST.X[:1], k=np.int64(2)).shape == (1, 2)


def test_propensity_adds_the_log_of_the_inverse_propensity():
    ranker = small(members=2).fit(X, Y)
    q = tr.metrics.labels.inverse_propensity(Y)
    np.testing.assert_allclose(ranker.inverse_propensity(), q)
    np.testing.assert_allclose(
        ranker.inverse_propensity(0.6, 2.6), tr.metrics.labels.inverse_propensity(Y, 0.6, 2.6)
    )
    scores = (scores_of(ranker, TEST.X, 0) + scores_of(ranker, TEST.X, 1)) / 2
    for strength in (0.5, 1.0, -2.0):
        boosted = scores + strength * np.log(q)
        labels, found = ranker.predict(TEST.X, k=20, propensity=strength, return_scores=True)
        np.testing.assert_allclose(found, -np.sort(-boosted, axis=1), atol=1e-5)
        np.testing.assert_array_equal(labels, np.argsort(-boosted, axis=1))


def test_the_score_is_the_metric_of_the_predictions():
    ranker = small(metric="psp@3").fit(X, Y)
    q = tr.metrics.labels.inverse_propensity(Y)
    wanted = tr.metrics.labels.ps_precision(
        ranker.predict(TEST.X, k=3), TEST.Y, inverse_propensity=q, k=3
    )
    assert ranker.score(TEST.X, TEST.Y) == wanted


def test_bad_questions_are_refused():
    with pytest.raises(NotFittedError):
        small().predict(X)
    with pytest.raises(NotFittedError):
        small().score(X, Y)
    ranker = small().fit(X, Y)
    for wrong in (0, -1, 2.5, None, True):
        with pytest.raises(ValueError, match="k is a whole number, 1 or more"):
            ranker.predict(X, k=wrong)
    with pytest.raises(ValueError, match="k is 21, but there are 20 labels"):
        ranker.predict(X, k=21)
    with pytest.raises(ValueError, match="X has 39 features, but the model was fitted to 40"):
        ranker.predict(X[:, :39])
    with pytest.raises(ValueError, match="X has nan at row 0, column 2"):
        ranker.predict(np.where(np.arange(40) == 2, np.nan, np.zeros((1, 40))))
    with pytest.raises(ValueError, match="propensity is a finite number, not nan"):
        ranker.predict(X, propensity=np.nan)
    with pytest.raises(ValueError, match="Y has 19 labels, but the model was fitted to 20"):
        ranker.score(X, Y[:, :19])


# Settings --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"learning_rate": 0.0}, "learning_rate is a number above 0, not 0.0"),
        ({"learning_rate": [0.1, np.nan]}, "learning_rate is a number above 0, not nan"),
        ({"learning_rate": "fast"}, "learning_rate is a number above 0, not 'fast'"),
        ({"learning_rate": [0.1, None]}, "learning_rate is a number above 0, not None"),
        ({"learning_rate": []}, "several to choose from, but not none"),
        ({"weight_decay": -1}, "weight_decay is a number above 0 or 0"),
        ({"glas": np.inf}, "glas is a number above 0 or 0"),
        ({"batch_rows": 0}, "batch_rows is a whole number"),
        ({"members": 1.5}, "members is a whole number"),
        ({"negatives": 0}, "negatives is a whole number"),
        ({"updates": "hasty"}, 'updates is "auto", "exact" or "lazy", not \'hasty\''),
        ({"optimiser": "sgd"}, 'optimiser is "adam" or "adagrad", not \'sgd\''),
        ({"input_dropout": 1.0}, "input_dropout is a share below 1, not 1.0"),
        ({"hidden_dropout": -0.1}, "hidden_dropout is a number above 0 or 0"),
        ({"hidden_dropout": "half"}, "hidden_dropout is a number above 0 or 0"),
        ({"validation": np.nan}, "validation is a number above 0 or 0"),
        ({"validation": 1}, "validation is a share below 1, not 1"),
        ({"sampler": "best"}, "sampler is one of uniform, frequency, in-batch, not 'best'"),
        ({"hidden": []}, "but not of none"),
        ({"hidden": (8, 0)}, "hidden is a whole number"),
        ({"max_epochs": 0}, "max_epochs is a whole number"),
        ({"patience": 0}, "patience is a whole number"),
        ({"objective": "listnet"}, "listnet needs all scores of a list at once"),
        ({"objective": "pl-partitions"}, "did you mean 'pl-partition'"),
        ({"metric": "p"}, "does not say how many places count"),
        ({"metric": "recall@5"}, "there is no metric of labels 'recall@5'"),
        ({"accelerator": "tpu"}, "accelerator is one of"),
        ({"random_state": -1}, "random_state is a whole number"),
        ({"validation": 0, "learning_rate": [0.1, 0.2]}, "no telling which learning rate is best"),
        ({"skip": 1}, "skip is True or False, not 1"),
        ({"halving": "yes"}, "halving is True or False, not 'yes'"),
        ({"features": "idf"}, 'features is "auto"'),
        ({"validation": 0.001}, "0.001 of 80 rows leaves none to learn from, or none to stop by"),
    ],
)  # fmt: skip
def test_settings_that_make_no_sense_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        small(**options).fit(X, Y)


def test_data_that_make_no_sense_are_refused():
    for rows, labels, message in (
        (X[:5], Y[:6], "X has 5 rows, but Y has 6"),
        (X, Y[:, :1], "nothing to rank: Y has 1 labels"),
        (X, Y[:, :0], "nothing to rank: Y has 0 labels"),
        (X[:, :0], Y, "nothing to learn from: X has no features"),
        (X, csr_matrix(Y.shape), "nothing to learn: no row has a label"),
        (X, -Y, "a relevance is more than"),
        (X[:0], Y[:0], "of 0 rows leaves none"),
    ):
        with pytest.raises(ValueError, match=message):
            small().fit(rows, labels)
    for eval_set, message in (
        ((X[:, :39], Y), "eval_set has 39 features and 20 labels, but X and Y have 40 and 20"),
        ((X, Y[:, :19]), "eval_set has 40 features and 19 labels"),
        ((X[:0], Y[:0]), "eval_set has no rows to stop by"),
        ([(X, Y)], "eval_set is a pair"),
        (7, "eval_set is a pair"),
    ):
        with pytest.raises(ValueError, match=message):
            small().fit(X, Y, eval_set=eval_set)
    with pytest.raises(ValueError, match="propensities need 3 or more"):
        small(propensity_weights=True, validation=0).fit(X[:2], Y[:2])


def test_settings_are_refused_before_anything_is_forgotten_or_written(tmp_path):
    ranker = small().fit(X, Y)
    ranker.set_params(optimiser="sgd")
    with pytest.raises(ValueError, match="optimiser"):
        ranker.fit(X, Y, checkpoint=tmp_path / "state")
    assert ranker.predict(X).shape == (80, 5)
    assert not (tmp_path / "state").exists()


@pytest.mark.parametrize("objective", ["pl-partition", "ranknet"])
@pytest.mark.parametrize("negatives", [None, 10])
def test_training_that_goes_astray_says_what_to_try(objective, negatives):
    ranker = small(objective=objective, negatives=negatives, learning_rate=1e30)
    with pytest.raises(ValueError, match=r"went astray in epoch 1.*smaller learning rate .*1e\+30"):
        ranker.fit(X, Y)


def test_it_is_an_estimator_of_scikit_learn():
    ranker = small(hidden=(8, 4), learning_rate=[0.1, 0.2], negatives=3)
    params = ranker.get_params()
    assert params["hidden"] == (8, 4)
    assert clone(ranker).get_params() == params
    fitted = ranker.fit(X, Y)
    assert fitted is ranker
    assert ranker.get_params() == params
    assert not hasattr(clone(ranker), "networks_")
    assert ranker.set_params(hidden=3).hidden == 3
    assert ranker.n_features_in_ == 40


# Saving ----------------------------------------------------------------------------------------


SAVED = {
    "plain": {},
    "all": {
        "members": 2, "hidden": np.array([8, 6]).tolist(), "learning_rate": np.array([0.01, 0.02]),
        "random_state": np.int64(3), "negatives": 4, "sampler": "in-batch", "refit": True,
    },
    "numpy": {"learning_rate": np.float32(0.02), "validation": np.float64(0.2)},
    "unjudged": {"validation": 0},
}  # fmt: skip


@pytest.mark.parametrize("options", SAVED.values(), ids=SAVED)
def test_a_saved_ranker_comes_back_the_same(options, tmp_path):
    ranker = small(**options).fit(X, Y)
    loaded = tr.load(tr.save(ranker, tmp_path))
    assert type(loaded) is tr.ExtremeRanker
    assert_same_model(loaded, ranker)
    for one, two in zip(
        loaded.predict(TEST.X, propensity=0.5, return_scores=True),
        ranker.predict(TEST.X, propensity=0.5, return_scores=True),
        strict=True,
    ):
        np.testing.assert_array_equal(one, two)
    assert loaded.score(TEST.X, TEST.Y) == ranker.score(TEST.X, TEST.Y)
    assert_same_networks(loaded.fit(X, Y), ranker)  # it knows all settings
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".json", ".safetensors"]


def test_an_unfitted_ranker_cannot_be_saved(tmp_path):
    with pytest.raises(NotFittedError):
        tr.save(small(), tmp_path)


def _set(container, key, value):
    container[key] = value


DAMAGE = {
    "a wrong shape": lambda info, t: _set(t, "0.labels", t["0.labels"][:, :5]),
    "a transposed matrix": lambda info, t: _set(t, "0.features", t["0.features"].T.copy()),
    "more labels than weights": lambda info, t: _set(info, "n_labels", 10**12),
    "more features than weights": lambda info, t: _set(info, "n_features_in", 10**12),
    "a huge hidden layer": lambda info, t: _set(info["params"], "hidden", 10**9),
    "no hidden layer": lambda info, t: _set(info["params"], "hidden", []),
    "another kind of float": lambda info, t: _set(t, "0.labels", t["0.labels"].astype(np.float64)),
    "nan": lambda info, t: _set(t["0.label_bias"], 3, np.nan),
    "inf": lambda info, t: _set(t["1.features"], (0, 0), -np.inf),
    "no second network": lambda info, t: [t.pop(name) for name in list(t) if name[0] == "1"],
    "half of a network": lambda info, t: t.pop("1.label_bias"),
    "a weight too many": lambda info, t: _set(t, "0.more", np.zeros(2, np.float32)),
    "a network too many": lambda info, t: _set(t, "2.labels", t["1.labels"]),
    "more networks": lambda info, t: _set(info, "networks", 3),
    "a million networks": lambda info, t: _set(info, "networks", 10**6),
    "fewer networks": lambda info, t: _set(info, "networks", 1),
    "no networks": lambda info, t: _set(info, "networks", 0),
    "no counts": lambda info, t: t.pop("label_counts"),
    "counts of other labels": lambda info, t: _set(t, "label_counts", t["label_counts"][:-1]),
    "counts as floats": lambda info, t: _set(
        t, "label_counts", t["label_counts"].astype(np.float64)
    ),
    "negative counts": lambda info, t: _set(t["label_counts"], 0, -1),
    "counts beyond the rows": lambda info, t: _set(t["label_counts"], 0, 81),
    "no rows": lambda info, t: _set(info, "n_rows", 0),
    "no learning rate": lambda info, t: _set(info, "learning_rate", "slow"),
    "no trials": lambda info, t: _set(info, "trials", [3]),
    "no history": lambda info, t: info.pop("history"),
    "a strange history": lambda info, t: _set(info["history"], "mood", "good"),
    "unknown settings": lambda info, t: _set(info["params"], "mood", "good"),
    "settings of no kind": lambda info, t: _set(info, "params", [1]),
}


@pytest.fixture(scope="module")
def saved_state():
    return small(members=2, max_epochs=1).fit(X, Y).to_state()


@pytest.mark.parametrize("damage", DAMAGE)
def test_what_does_not_hold_together_is_refused(damage, saved_state, tmp_path):
    info, tensors = saved_state
    info, tensors = copy.deepcopy(info), {name: part.copy() for name, part in tensors.items()}
    DAMAGE[damage](info, tensors)
    storage.write(tmp_path, "model", {"estimator": "ExtremeRanker", **info}, tensors)
    with pytest.raises(StorageError, match="does not hold together as a ExtremeRanker"):
        tr.load(tmp_path)


def test_a_learning_rate_that_leads_astray_has_lost_unless_all_do():
    shape = {"rows": (60, 5), "features": 20, "labels": 12, "features_a_row": 5, "labels_a_row": 2}
    train, _ = tr.data.synthetic.label_sets("eurlex-4k", **shape)
    X = train.X * np.float32(1e18)  # so that a huge step cannot be survived
    settings = {"hidden": 8, "max_epochs": 3, "random_state": 0}
    ranker = tr.ExtremeRanker(learning_rate=(1e-20, 1e30), **settings).fit(X, train.Y)
    assert ranker.learning_rate_ == 1e-20
    assert [trial["metric"] is None for trial in ranker.trials_] == [False, True]
    with pytest.raises(ValueError, match=r"went astray.*smaller learning rate"):
        tr.ExtremeRanker(learning_rate=(1e29, 1e30), **settings).fit(X, train.Y)
