"""The `tierrank extreme` command; the commands below it register here."""

from __future__ import annotations

from typing import ClassVar

import typer

from tierrank.cli.app import InOrder, app


class _InOrder(InOrder):
    order = ("train", "predict", "evaluate")
    homes: ClassVar[dict[str, str]] = {}  # all are loaded with the group


extreme = typer.Typer(
    cls=_InOrder,
    rich_markup_mode="markdown",
    no_args_is_help=True,
    help="Ranking over huge label sets: rows with a few labels out of thousands to millions.",
)
app.add_typer(extreme, name="extreme")


@extreme.callback()
def _extreme() -> None:
    pass
