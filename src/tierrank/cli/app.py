"""The `tierrank` command itself, and `tierrank extreme`; the commands below register here."""

from __future__ import annotations

from importlib import import_module
from typing import Annotated, Any, ClassVar

import typer
from typer.core import TyperGroup


class Lazily(TyperGroup):
    """Commands in the order in which people meet them, each loaded when it is asked for.

    Attributes
    ----------
    homes
        the module of each command, where importing it registers the command
    """

    homes: ClassVar[dict[str, str]] = {
        "train": "train",
        "predict": "predict",
        "evaluate": "evaluate",
        "compare": "compare",
        "export": "predict",
        "aggregate": "aggregate",
        "simulate": "demo",
        "extreme": "app",
        "objectives": "objectives",
        "demo": "demo",
    }

    def list_commands(self, ctx: Any) -> list[str]:
        """The names of the commands."""
        self._load(*self.homes)
        return list(self.homes)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of a name; None if there is none, and then all are there to guess from."""
        self._load(*([cmd_name] if cmd_name in self.homes else self.homes))
        command = super().get_command(ctx, cmd_name)
        if command is not None:
            _as_flags(command.get_params(ctx))
        return command

    def get_params(self, ctx: Any) -> list[Any]:
        """The options of the group itself."""
        return _as_flags(super().get_params(ctx))

    def _registered(self) -> Any:
        return typer.main.get_command(app)

    def _load(self, *names: str) -> None:
        lacking = [name for name in names if name not in self.commands]
        for name in lacking:
            import_module(f"tierrank.cli.{self.homes[name]}")
        if lacking:
            self.commands.update(self._registered().commands)


class _LazilyExtreme(Lazily):
    homes: ClassVar[dict[str, str]] = {
        "train": "extreme.train", "predict": "extreme.predict", "evaluate": "extreme.predict",
    }  # fmt: skip

    def _registered(self) -> Any:
        return typer.main.get_command(extreme)


def _as_flags(params: list[Any]) -> list[Any]:
    """Show flags as --resume, not as `--resume <bool>`."""
    for param in params:
        if getattr(param, "is_flag", False):
            param.metavar = ""
            if param.name == "help":  # typer would load pydantic to convert None
                param.default = False
    return params


app = typer.Typer(
    cls=Lazily,
    rich_markup_mode="markdown",
    no_args_is_help=True,
    add_completion=False,
    help="Learning to rank from tiers: lists of items in ordered groups, by the exact "
    "Plackett-Luce likelihood.",
)
extreme = typer.Typer(
    cls=_LazilyExtreme,
    rich_markup_mode="markdown",
    no_args_is_help=True,
    help="Ranking over huge label sets: rows with a few labels out of thousands to millions.",
)
app.add_typer(extreme, name="extreme")


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


@extreme.callback()
def _extreme() -> None:
    pass
