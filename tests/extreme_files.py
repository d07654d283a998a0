"""Small files of rows with labels, and models of them, for the tests of `tierrank extreme`."""

import tierrank as tr
from tierrank.data import write_xc

SETTINGS = {
    "hidden": 8, "learning_rate": 0.02, "max_epochs": 3, "refit": False, "random_state": 0,
}  # fmt: skip


def label_sets(rows=(120, 40), **more):
    """Rows to train on and to test with; some have no label."""
    return tr.data.synthetic.label_sets(
        "eurlex-4k", rows=rows, features=60, labels=25, features_a_row=12, labels_a_row=3,
        empty_rows=0.05, seed=3, **more,
    )  # fmt: skip


def write_parts(folder):
    """Files of all formats: train.txt, train_X.txt with train_Y.txt, and both as .npz; and test."""
    for name, data in zip(("train", "test"), label_sets(), strict=True):
        write_xc(folder / f"{name}.txt", data)
        for kind in ("txt", "npz"):
            write_xc(folder / f"{name}_X.{kind}", data, labels=folder / f"{name}_Y.{kind}")
    return folder


def fitted(**settings):
    """A ranker of the training rows."""
    train, _ = label_sets()
    return tr.ExtremeRanker(**(SETTINGS | settings)).fit(train.X, train.Y)
