"""What tests of labels spread over ranks do: the same on each of several, and in one process."""

import contextlib
import io
import os
import signal
from unittest import mock

import numpy as np
import torch
from scipy.sparse import csr_matrix

import tierrank as tr
from tierrank.extreme import FUSED, head, network
from tierrank.extreme.head import fused_losses
from tierrank.extreme.learner import Glas, LabelBatches, LabelLearner, RowOptimiser
from tierrank.extreme.network import Network, top_labels
from tierrank.extreme.samplers import sampler_from
from tierrank.extreme.sharding import Shards
from tierrank.training.loop import Diverged, Share, own_randomness, seed_generators

CPU = torch.device("cpu")
LISTS, LABELS, WIDTH, ROWS, FEATURES = 9, 700, 6, 26, 15
KINDS = (torch.float64, torch.float32)


def features_spread(spread=True):
    """Features over ranks, as if they were large."""
    return mock.patch.object(network, "SPREAD_FEATURES", 0 if spread else 1 << 25)


@contextlib.contextmanager
def small_blocks():
    """Several blocks of labels on each rank."""
    before, head.BLOCK_BYTES = head.BLOCK_BYTES, 1
    try:
        yield
    finally:
        head.BLOCK_BYTES = before


def label_rows(rows=ROWS, labels=LABELS, a_row=6, seed=0):
    """Rows and labels; some labels are common, and the last third is never seen."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, FEATURES)) * (rng.random((rows, FEATURES)) < 0.3)
    Y = np.zeros((rows, labels), np.float32)
    for row in Y:
        row[rng.integers(labels * 2 // 3, size=a_row)] = 1
    Y[:, 0] = rng.random(rows) < 0.5
    return csr_matrix(X.astype(np.float32)), csr_matrix(Y)


def tier_kinds():
    """Sets of labels, and several tiers above the rest."""
    rng = np.random.default_rng(1)
    sizes = [3, 1, 0, LABELS - 1, LABELS, 2, LABELS // 2, 0, 5]
    columns = [np.sort(rng.choice(LABELS, size, replace=False)) for size in sizes]
    matrix = csr_matrix(
        (np.ones(sum(sizes)), np.concatenate(columns), np.cumsum([0, *sizes])), (LISTS, LABELS)
    )
    order = [rng.permutation(LABELS).tolist() for _ in range(LISTS)]
    ranked = [[one[0], tuple(one[1:4]), one[4]] for one in order]
    return {
        "sets": tr.Tiers.from_positives(matrix),
        "tiers": tr.Tiers.from_rankings(ranked, items=LABELS, rest="last"),
    }


def losses_and_gradients():
    """Of all objectives, with all labels and a sample: losses, slopes in hidden, weight, bias."""
    shards = Shards.join(CPU)
    own = shards.labels.part(LABELS)
    generator = torch.Generator().manual_seed(0)
    found = {}
    for kind, dtype in [(kind, dtype) for kind in tier_kinds() for dtype in KINDS]:
        tiers = tier_kinds()[kind]
        shapes = (LISTS, WIDTH), (LABELS, WIDTH), (LABELS,), (LISTS,)
        generator.manual_seed(0)
        hidden, weight, bias, by_list = (
            torch.randn(*shape, generator=generator, dtype=torch.float64).to(dtype)
            for shape in shapes
        )
        counts = torch.randint(3, (LABELS,), generator=generator).to(dtype).log()
        for objective in FUSED:
            for log_weights in (None, counts):
                with small_blocks():
                    losses = fused_losses(
                        hidden, weight[own], bias[own], tiers, objective,
                        log_weights=None if log_weights is None else log_weights[own],
                        ranks=shards.labels, first=own.start,
                    )  # fmt: skip
                by_weight, by_bias = torch.zeros_like(weight[own]), torch.zeros_like(bias[own])

                def update(labels, of_weight, of_bias, by_weight=by_weight, by_bias=by_bias):
                    by_weight[labels], by_bias[labels] = of_weight, of_bias

                by_hidden = losses.backward(by_list, update)
                sampled = log_weights is not None
                found[objective, kind, str(dtype), sampled] = [
                    each.numpy() for each in (losses.by_list, by_hidden, by_weight, by_bias)
                ]
    return found


def best_labels():
    """Of few labels and many, with equal scores, an offset and two networks."""
    shards = Shards.join(CPU)
    found = []
    for labels, k, spread in ((LABELS, 5, False), (7, 7, True), (7, 3, False)):
        networks = [_network(labels, shards, seed=seed, spread=spread) for seed in (0, 1)]
        for each in networks:
            with torch.no_grad():
                each.labels.mul_(4).round_()
                each.label_bias.round_()
        offset = torch.linspace(0, 1, labels)
        for some, extra in ((networks[:1], None), (networks, None), (networks[:1], offset)):
            X = label_rows(300)[0]
            found.append(top_labels(some, X, k, offset=extra, ranks=shards.labels))
    return found


def _network(
    labels, shards, *, seed=0, hidden=(8, 5), dtype=torch.float32, spread=False, **options
):
    with own_randomness(CPU), features_spread(spread):
        seed_generators(seed, CPU)
        made = Network(FEATURES, labels, hidden, ranks=shards.labels, **options)
        made.reset()
    return made.to(dtype)


def steps(
    count, objective="pl-partition", *, data_ranks=1, labels=LABELS, sampler=None, glas=0.0,
    dtype=torch.float32, optimiser="adam", batch=8, rows=ROWS, a_row=6, **options,
):  # fmt: skip
    """Losses of so many steps, weights and moments after them, and bytes put together a step."""
    shards = Shards.join(CPU, data_ranks)
    X, Y = label_rows(rows, labels, a_row)
    learned = _network(labels, shards, dtype=dtype, **options)
    parameters = {name: each.detach() for name, each in learned.named_parameters()}
    learner = LabelLearner(
        learned,
        RowOptimiser(parameters, name=optimiser, learning_rate=0.01, weight_decay=0.01),
        objective,
        None if sampler is None else sampler_from(sampler, 40, Y, batch),
        Glas(Y, glas) if glas else None,
        shards,
    )
    batches = LabelBatches(X, Y, np.linspace(0.5, 2, rows), size=batch, seed=3)
    losses = []
    with small_blocks(), own_randomness(CPU):
        for step in range(count):
            epoch, step = divmod(step, len(batches))
            if step == 0:
                batches.begin(epoch)
            seed_generators(1000 * epoch + step, CPU)
            rows_, tiers, weights = batches.load(step, Share(), CPU)
            rows_ = rows_._replace(values=rows_.values.to(dtype))
            losses.append(learner.learn((rows_, tiers, weights.to(dtype)), False)[0])
    arrays = {name: each.detach().numpy() for name, each in learned.named_parameters()}
    return losses, arrays | learner.memory(), shards.sent / count


def stepped(cases):
    """`steps` of several cases."""
    return [steps(*arguments, **options) for arguments, options in cases]


def diverging():
    """What is raised where one rank's weights are not finite any more, and who asked to stop."""
    shards = Shards.join(CPU)
    X, Y = label_rows()
    said = []
    for spoiled in (np.nan, np.inf):
        astray = _network(LABELS, shards)
        parameters = {name: each.detach() for name, each in astray.named_parameters()}
        optimiser = RowOptimiser(parameters, name="adam", learning_rate=0.01)
        learner = LabelLearner(astray, optimiser, "pl-partition", shards=shards)
        batches = LabelBatches(X, Y, None, size=8, seed=3)
        batches.begin(0)
        batch = batches.load(0, Share(), CPU)
        said.append(learner.learn(batch, shards.everyone.rank == 1)[1])
        said.append(learner.finite())
        if shards.everyone.rank == 1:
            with torch.no_grad():
                astray.labels[-1] = spoiled
        said.append(learner.finite())
        try:
            learner.learn(batch, False)
        except Diverged as error:
            said.append(str(error))
    return said


# Fits ------------------------------------------------------------------------------------------

SETTINGS = {
    "hidden": (8,), "learning_rate": (0.02, 0.01), "max_epochs": 3, "batch_rows": 32,
    "hidden_dropout": 0.2, "input_dropout": 0.1, "members": 2, "refit": False, "random_state": 0,
}  # fmt: skip


def data():
    return tr.data.synthetic.label_sets(
        "eurlex-4k", rows=(120, 40), features=60, labels=25, features_a_row=12, labels_a_row=3,
        empty_rows=0.05, seed=3,
    )  # fmt: skip


def fit(folder=None, *, spread=False, **options):
    """`fitted`, with features spread or not."""
    with features_spread(spread):
        return fitted(folder, **options)


def fitted(folder=None, *, stop_at=None, checkpoint=None, data_ranks=1, **settings):
    """A fit, saved; stopped by Ctrl-C on the first rank when it is told so many times."""
    train, test = data()
    ranker = tr.ExtremeRanker(**(SETTINGS | settings))
    told = []

    def watch(progress):
        told.append(progress)
        if len(told) == stop_at:
            os.kill(os.getpid(), signal.SIGINT)

    try:
        ranker.fit(
            train.X, train.Y, checkpoint=checkpoint, checkpoint_every=0, watch=watch,
            data_ranks=data_ranks,
        )  # fmt: skip
    except KeyboardInterrupt:
        return "stopped"
    if folder is not None:
        tr.save(ranker, folder)
    top, scores = ranker.predict(test.X, k=4, propensity=0.5, return_scores=True)
    return {
        "loss": ranker.history_.loss, "metric": ranker.history_.metric, "told": len(told),
        "top": top, "scores": scores, "score": ranker.score(test.X, test.Y),
        "held": {
            name: value.numpy()
            for name, value in ranker.networks_[0].state_dict().items()
            if name not in ranker.networks_[0].spread
        },
        "same": folder is None or (tr.load(folder).predict(test.X) == ranker.predict(test.X)).all(),
    }  # fmt: skip


def several_fits(calls):
    return [fit(*arguments, **options) for arguments, options in calls]


def own_rows():
    try:
        rows = 3 + int(os.environ["RANK"])
        tr.ExtremeRanker(learning_rate=0.1, validation=0).fit([[1.0]] * rows, [[1, 0]] * rows)
    except ValueError as error:
        return str(error)
    return None


def two_labels():
    try:
        tr.ExtremeRanker(learning_rate=0.1, validation=0).fit([[1.0]] * 3, [[1, 0]] * 3)
    except ValueError as error:
        return str(error)
    return None


def refused(data_ranks=1, **settings):
    try:
        fit(data_ranks=data_ranks, **settings)
    except ValueError as error:
        return str(error)
    return None


def command(arguments):
    """The exit code of `tierrank`, and what it printed."""
    from tierrank.cli import app

    with contextlib.redirect_stdout(io.StringIO()) as out:
        try:
            app(arguments)
        except SystemExit as end:
            return end.code or 0, out.getvalue()
    return 0, out.getvalue()
