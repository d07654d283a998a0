"""The `tierrank` command itself; the commands below it register here."""

from __future__ import annotations

from importlib import import_module
from typing import Annotated, Any, ClassVar

import typer
from typer.core import TyperGroup


class InOrder(TyperGroup):
    """Commands in the order in which people meet them, each loaded when it is asked for.

    Attributes
    ----------
    order
        the names of the commands
    homes
        the module of each, where importing it registers the command with `app`
    """

    order: ClassVar[tuple[str, ...]] = (
        "train", "predict", "evaluate", "compare", "export", "aggregate", "simulate", "extreme",
        "objectives", "demo",
    )  # fmt: skip
    homes: ClassVar[dict[str, str]] = {
        name: f"tierrank.cli.{name}" for name in order
    } | dict.fromkeys(("aggregate", "simulate"), "tierrank.cli.aggregation")

    def list_commands(self, ctx: Any) -> list[str]:
        """The names of the commands."""
        self._load(*self.homes)
        return list(self.order)

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

    def _load(self, *names: str) -> None:
        lacking = [name for name in names if name not in self.commands]
        for name in lacking:
            import_module(self.homes[name])
        if lacking:
            whole: Any = typer.main.get_command(app)
            self.commands.update(whole.commands)


def _as_flags(params: list[Any]) -> list[Any]:
    """Show flags as --resume, not as `--resume <bool>`."""
    for param in params:
        if getattr(param, "is_flag", False):
            param.metavar = ""
            if param.default is None:  # that of --help: typer would load pydantic to convert it
                param.default = False
    return params


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
