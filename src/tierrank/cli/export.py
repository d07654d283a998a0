"""`tierrank export`: a model for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tierrank.cli import options
from tierrank.cli.app import app
from tierrank.cli.messages import explained, stdout


@app.command()
@explained
def export(
    model: options.ModelFolder,
    out: Annotated[
        Path, typer.Argument(metavar="OUT.onnx", show_default=False, help="The file to write.")
    ],
) -> None:
    """Write the scorer of a model as ONNX, for onnxruntime and what else reads it."""
    if out.suffix.lower() != ".onnx":
        raise typer.BadParameter(f"the file is called something.onnx, and {out} is not")

    from tierrank.cli.model_folder import load_ranker
    from tierrank.ranking.export import to_onnx

    to_onnx(load_ranker(model), out)
    stdout().print(f"The scorer is in {out}", markup=False, soft_wrap=True)
