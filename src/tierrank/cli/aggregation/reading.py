"""Rankings or games from a file or standard input, with the columns that the options name."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tierrank.cli.options import STDIN, on_disk

if TYPE_CHECKING:
    from tierrank.data import Games, Rankings, UnclearTable

_SPELT = {"wins": ("--first-wins", "--second-wins"), "ties": ("--tied",)}


def given(**options: Any) -> dict[str, Any]:
    """Those of the options that were given."""
    return {name: value for name, value in options.items() if value}


def read(
    file: Path,
    *,
    format: Any,
    kind: Any,
    strict: bool,
    rest: str | None,
    columns: Mapping[str, Any],
) -> Rankings | Games:
    """Read a file; games stay games, since who is named first may matter.

    Parameters
    ----------
    file
        or - for standard input
    format, kind, strict, columns
        as for `tierrank.data.read_rankings`
    rest
        "absent", "last", or None: as the file says
    """
    from tierrank.data import DataFileError, Games, UnclearTable
    from tierrank.data.files import without_compression
    from tierrank.data.rankings.reading import read_lists_or_games

    check_rest(rest)
    with on_disk(file, lists=True) as path:
        if file == STDIN and format == "auto":
            format = without_compression(path).suffix[1:] or "preflib"
        try:
            found = read_lists_or_games(path, format=format, kind=kind, strict=strict, **columns)
        except UnclearTable as error:
            raise ValueError(_as_commands(error, file, columns)) from None
        except DataFileError as error:
            said = str(error).replace("the format when you read", "--format")
            raise ValueError(said) from None
    if rest is None:
        return found
    if not isinstance(found, Games):
        return replace(found, tiers=replace(found.tiers, rest=rest == "last"))
    if rest == "last":
        raise DataFileError(file, None, "--rest last is for rankings: a game has two sides.")
    return found


def check_rest(rest: str | None) -> None:
    """Refuse what `--rest` cannot be."""
    if rest not in (None, "absent", "last"):
        raise ValueError(f"--rest is absent or last, not {rest!r}.")


def missing_rank(words: Sequence[str]) -> str | dict[str, str] | None:
    """What `--missing-rank` says: one word for all, or WORD=WHAT for each."""
    if not words:
        return None
    if len(words) == 1 and "=" not in words[0]:
        if words[0] not in ("error", "drop", "last"):
            raise ValueError(
                f"--missing-rank is error, drop or last, or tells words apart, as in DNF=last, not "
                f"{words[0]!r}."
            )
        return words[0]
    found = {}
    for each in words:
        word, equals, action = each.rpartition("=")
        if not equals or action not in ("drop", "last"):
            raise ValueError(
                f"--missing-rank {each}: write WORD=drop or WORD=last, or one of error, drop and "
                "last for all."
            )
        found[word] = action
    return found


def fewer(
    data: Rankings | Games,
    *,
    exclude: Sequence[str],
    min_games: float,
    component: Any,
    ties_connect: bool | None,
) -> tuple[Rankings | Games, str]:
    """Leave items out, and say how much went with them: "" if nothing did."""
    if not exclude and not min_games and component == "all":
        return data, ""
    from tierrank.aggregation.connectivity import leave_out
    from tierrank.data import Games

    by_word = {str(item): item for item in data.items}
    names = [by_word.get(word, word) for word in exclude]
    left = leave_out(
        data, exclude=names, min_games=min_games, component=component, ties_connect=ties_connect
    )
    gone = len(data.items) - len(left.items)
    if not gone:
        return left, ""
    kept = set(left.items)
    names = [str(item) for item in data.items if item not in kept]
    more = f" and {gone - 10:,} more" if gone > 10 else ""
    seen = "games" if isinstance(data, Games) else "lists"
    before, after = float(data.weights.sum()), float(left.weights.sum())
    return left, (
        f"{gone:,} of {len(data.items):,} items are left out, and with them {before - after:,.10g} "
        f"of {before:,.10g} {seen}: {', '.join(names[:10])}{more}."
    )


def _as_commands(error: UnclearTable, file: Path, named: Mapping[str, Any]) -> str:
    """What a table may be, as commands to copy."""
    from tierrank.data.rankings.detection import KINDS

    commands = []
    for way in error.readings:
        words = ["tierrank", "aggregate", str(file)]
        if way.needs_kind:
            words += ["--kind", way.kind]
        for part, value in {**way.columns, "separator": named.get("separator")}.items():
            if value:
                values = (value,) if isinstance(value, str) else value
                spelt = _SPELT.get(part, (f"--{part.replace('_', '-')}",))
                options = spelt if len(spelt) == len(values) else spelt * len(values)
                words += [word for pair in zip(options, values, strict=True) for word in pair]
        commands.append(f"  {shlex.join(words)}   # {KINDS[way.kind]}")
    return "\n".join([f"{error.place} Say which it is, as in", *commands])
