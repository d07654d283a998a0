"""Rankings or games from a file, with the columns that the options name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tierrank.data import Games, Rankings


@dataclass(frozen=True)
class Columns:
    """What the options say of a file; None, or nothing, for what they leave open.

    Attributes
    ----------
    items, games
        options of `read_long_rankings` and of `read_games`, by their names there
    preferences
        options that only `read_preferences` has
    both
        options that all of them have
    format
        "auto", or that of the file
    rest
        "absent", "last", or None: as the file says
    """

    items: Mapping[str, Any]
    games: Mapping[str, Any]
    preferences: Mapping[str, Any]
    both: Mapping[str, Any]
    format: str = "auto"
    rest: str | None = None


def given(**options: Any) -> dict[str, Any]:
    """Those of the options that were given."""
    return {name: value for name, value in options.items() if value}


def read(path: Path, how: Columns) -> Rankings | Games:
    """Read a file; games stay games, since who is named first may matter."""
    from tierrank.data import read_games, read_long_rankings, read_rankings
    from tierrank.data.files import DataFileError
    from tierrank.data.rankings.reading import FORMATS, format_of

    if how.format not in FORMATS:
        raise ValueError(f"--format is one of {', '.join(FORMATS)}, not {how.format!r}.")
    if how.rest not in (None, "absent", "last"):
        raise ValueError(f"--rest is absent or last, not {how.rest!r}.")
    if path.is_dir():
        raise DataFileError(path, None, "is a folder: give one of its files.")
    try:
        kind: Any = format_of(path) if how.format == "auto" else how.format
    except DataFileError as error:
        raise ValueError(str(error).replace("the format when you read", "--format")) from None
    if kind in ("preflib", "jsonl"):
        named = {**how.items, **how.games, **how.preferences, **how.both}
        if named:
            given = ", ".join(_spelt(name) for name in named)
            raise DataFileError(path, None, f"{given}: that is for tables alone, leave it out.")
        return _with_rest(read_rankings(path, format=kind), how.rest)
    preferred, long, weighted = _look(path, kind, how)
    if preferred:
        return _with_rest(_read_preferences(path, kind, how), how.rest)
    if how.items and how.games:
        one, two = (_spelt(next(iter(part))) for part in (how.items, how.games))
        raise DataFileError(
            path, None,
            f"{one} is for a table with a row an item, {two} for one with a row a game: leave one "
            "of them out.",
        )  # fmt: skip
    options: dict[str, Any] = {"format": kind, **how.both}
    if weighted and "wins" not in how.games:  # which count the games themselves
        options.setdefault("weight", "weight")
    if long:
        return _with_rest(read_long_rankings(path, **how.items, **options), how.rest)
    if how.rest == "last":
        raise DataFileError(path, None, "--rest last is for rankings: a game has two sides.")
    return read_games(path, **how.games, **options)


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


def _read_preferences(path: Path, kind: Any, how: Columns) -> Rankings:
    from tierrank.data import read_rankings
    from tierrank.data.files import DataFileError

    others = [
        *set(how.items) - {"list"},
        *set(how.games) - {"winner"},
        *set(how.both) - {"separator"},
    ]
    if others or len(how.items.get("list", "1")) > 1:
        wrong = ", ".join(map(_spelt, sorted(others))) or "more than one --list"
        raise DataFileError(
            path, None,
            f"a row is a preference here, with --list, --winner and --loser: leave out {wrong}.",
        )  # fmt: skip
    named = {"list": how.items["list"][0]} if "list" in how.items else {}
    chosen = {"loser": "loser", **how.preferences, **how.games, **named, **how.both}
    return read_rankings(path, format=kind, **chosen)


def _look(path: Path, kind: Any, how: Columns) -> tuple[bool, bool, bool]:
    """Whether a row is a preference, else an item of a list; whether there is a column `weight`."""
    from tierrank.data.rankings.columns import open_table

    lists = how.items.get("list", ["list"])
    winner = how.games.get("winner", "winner")
    with open_table(path, kind, how.both.get("separator")) as table:
        other = how.items or set(how.games) - {"winner"}
        preferred = bool(how.preferences) or (not other and table.has(winner, "loser"))
        usual = table.has(*lists, how.items.get("item", "item"))
        long = bool(how.items) or (not how.games and usual)
        return preferred, long, table.has("weight")


def _with_rest(rankings: Rankings, rest: str | None) -> Rankings:
    if rest is None:
        return rankings
    return replace(rankings, tiers=replace(rankings.tiers, rest=rest == "last"))


def _spelt(name: str) -> str:
    named = {"wins": "--first-wins", "ties": "--tied", "tie_words": "--tie-word"}
    return named.get(name, f"--{name.replace('_', '-')}")
