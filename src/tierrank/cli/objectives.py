"""`tierrank objectives`: what can be learned by."""

from __future__ import annotations

from typing import Annotated

import typer

from tierrank.cli.options import app, argument, explained


@app.command()
@explained
def objectives(
    name: Annotated[str | None, argument("One of them, to read how it is defined.")] = None,
) -> None:
    """List the objectives by the names that commands and models take, or explain one."""
    from tierrank.losses import OBJECTIVES, find

    if name is not None:
        try:
            find(name)  # before torch is loaded
        except ValueError as error:
            raise typer.BadParameter(str(error)) from None

    from inspect import getdoc, signature
    from itertools import groupby
    from operator import attrgetter

    from rich.console import Console
    from rich.table import Table

    family_of = attrgetter("family")
    if name is not None:
        entry = find(name)
        call = ", ".join(
            str(option.replace(annotation=option.empty))
            for option in signature(entry.function).parameters.values()
        )
        typer.echo(f"{entry.name}: tierrank.losses.{entry.function.__name__}({call})\n")
        typer.echo(getdoc(entry.function))
        return
    table = Table(title="Objectives over scores and tiers")
    for column in ("name", "what it is", "source"):
        table.add_column(column, no_wrap=column == "name", overflow="fold")
    families = groupby(sorted(OBJECTIVES.values(), key=family_of), key=family_of)
    for family, entries in families:
        table.add_section()
        table.add_row(f"[bold]{family}[/]")
        for entry in entries:
            table.add_row(entry.name, entry.summary, entry.source)
    Console().print(table)
