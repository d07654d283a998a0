"""The `tierrank` command itself; the commands below it register here."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

COMMANDS = (
    "train", "predict", "evaluate", "compare", "export", "aggregate", "simulate", "extreme",
    "objectives", "demo",
)  # fmt: skip


class InOrder(TyperGroup):
    """Commands are shown in the order in which people meet them."""

    order: tuple[str, ...] = COMMANDS

    def list_commands(self, ctx: Any) -> list[str]:
        """The names of the commands."""
        return list(self.order)


app = typer.Typer(
    cls=InOrder,
    rich_markup_mode="markdown",
    no_args_is_help=True,
    add_completion=False,
    help="Learning to rank from tiers: lists of items in ordered groups, by the exact "
    "Plackett-Luce likelihood.",
)


def _version(wanted: bool) -> None:
    if wanted:
        from tierrank import __version__

        typer.echo(f"tierrank {__version__}")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


def main() -> None:
    """The `tierrank` command."""
    app()
