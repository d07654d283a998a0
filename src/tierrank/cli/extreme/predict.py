"""`tierrank extreme predict`: the best labels of rows."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from tierrank.cli import options as common
from tierrank.cli.extreme import options
from tierrank.cli.extreme.app import extreme
from tierrank.cli.messages import explained, stderr


@extreme.command()
@explained
def predict(
    model: common.ModelFolder,
    data: Annotated[
        Path,
        typer.Argument(metavar="DATA", show_default=False,
                       help="Features, as text or .npz; or text of the XC repository with labels, "
                       "which are passed over."),
    ],
    k: Annotated[int, typer.Option("-k", min=1, help="Labels for a row.")] = 5,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", show_default="standard output",
                     help="Where to write. A name that ends in .npz gets a sparse matrix of "
                     "scores; text is compressed by .gz, .xz or .bz2."),
    ] = None,
    scores: Annotated[
        bool,
        typer.Option("--scores/--no-scores",
                     help="Header and label:score, or nothing but labels."),
    ] = True,
    propensity: options.Propensity = 0.0,
    split: options.Split = None,
    split_column: options.SplitColumn = 0,
    one_based: options.OneBased = False,
    threads: common.Threads = None,
) -> None:  # fmt: skip
    """Write the best labels of every row, best first.

    A line a row, `label:score label:score …`, after a header with the numbers of rows and labels:
    the score files of the XC repository. Scores are log-worths, so any real numbers.
    """
    from tierrank.cli.extreme import predictions
    from tierrank.cli.extreme.inputs import for_model, load_model, read_rows
    from tierrank.data.files import writing

    npz = out is not None and out.suffix.lower() == ".npz"
    if npz and not scores:
        raise typer.BadParameter("an .npz file holds scores: leave out --no-scores")
    common.use_threads(threads)
    ranker = load_model(model)
    predictions.check(ranker, k, propensity)
    source = options.Source(data, None, split, split_column, one_based)
    X = for_model(read_rows(source), ranker.n_features_in_, data, "features")
    silent = out is None and sys.stdout.isatty()
    blocks = predictions.predicted(ranker, X, k, propensity, silent=silent)
    rows, n_labels = X.shape[0], ranker.n_labels_
    if out is None:
        for text in predictions.lines(blocks, rows, n_labels, scores=scores):
            sys.stdout.write(text)
        sys.stdout.flush()
        return
    with writing(out) as file:
        if npz:
            from scipy.sparse import save_npz

            save_npz(file, predictions.matrix(blocks, n_labels))
        else:
            for text in predictions.lines(blocks, rows, n_labels, scores=scores):
                file.write(text.encode())
    stderr().print(f"{k} labels a row, of {rows:,} rows, are in {out}", markup=False,
                   soft_wrap=True)  # fmt: skip
