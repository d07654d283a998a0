"""Rankings or games from a file or standard input, with the columns that the options name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from tierrank.cli.options import COLUMNS, DATA, STDIN, Separator, on_disk, option, spelled
from tierrank.names import check_ranking_format, check_table_kind

if TYPE_CHECKING:
    from tierrank.data import Games, Rankings, UnclearTable
    from tierrank.data.rankings.container import PartedRankings

_ITEMS = "Tables with a row an item of a list"
_GAMES = "Tables with a row a game of two sides"
_COLUMNS = (
    "item", "rank", "score", "twice", "first", "second", "winner", "loser", "first_score",
    "second_score", "neutral", "first_rank", "second_rank", "winner_as", "weight", "separator",
)  # fmt: skip


def _column(panel: str, help: str, default: str, *names: str) -> Any:
    return option(help, *names, panel=panel, default=default, metavar="COLUMN")


@dataclass(frozen=True)
class Source:
    """How a file of rankings or games is read, and what of it is left out."""

    # fmt: off
    format: Annotated[str, option(
        "preflib, jsonl, csv, tsv or parquet, where the name does not tell.", metavar="FORMAT",
        panel=DATA)] = "auto"
    kind: Annotated[str | None, option(
        "What a row of a table is: items (an item of a list), games, preferences, paired-ranks "
        "(two items of a list, each with its rank), wide (a ranking, with a column an item and "
        "its rank in the cell), orders (a ranking, with an item in each cell, best first) or "
        "pass-fail (a model with --item, or a task with --list, and who passed in the cells).",
        metavar="KIND", panel=DATA, default="by the columns")] = None
    strict: Annotated[bool, option(
        "Refuse a PrefLib file that is otherwise read with a note of what was assumed.", "--strict",
        panel=DATA)] = False
    exclude: Annotated[list[str] | None, option(
        "Leave this item out; the rest of each list stays. Repeat for several.", metavar="ITEM",
        panel=DATA)] = None
    min_games: Annotated[float, option(
        "Leave out who is in fewer games or lists, counted until nobody is.", min=0, metavar="N",
        panel=DATA)] = 0
    component: Annotated[str, option(
        "all, or largest: keep the largest set of items whose worths the data determine.",
        metavar="WHICH", panel=DATA)] = "all"
    weight: Annotated[
        str | None, _column(DATA, "How often a list or a game was seen.", "weight, if there")
    ] = None
    rest: Annotated[str | None, option(
        "Where a list stands with the items it does not name: absent, or last, tied behind those "
        "it names.", metavar="WHERE", panel=DATA, default="as the file says, or absent")] = None
    separator: Separator = None
    list_column: Annotated[
        list[str] | None,
        _column(_ITEMS, "Which list a row belongs to; repeat if several columns say it.", "list",
                "--list"),
    ] = None
    item: Annotated[
        list[str] | None,
        _column(_ITEMS, "The item; repeat for the columns of a wide table.", "item"),
    ] = None
    rank: Annotated[
        str | None, _column(_ITEMS, "Its rank: lower is better, equal ones tie.", "rank")
    ] = None
    score: Annotated[
        str | None, _column(_ITEMS, "Or its score: higher is better, equal ones tie.", "score")
    ] = None
    missing_rank: Annotated[list[str] | None, option(
        "Rows without a rank: error, drop, or last (tied behind all others). By word: "
        "--missing-rank DNF=last --missing-rank DNS=drop.", metavar="WHAT", panel=_ITEMS,
        default="error")] = None
    twice: Annotated[str | None, option(
        "An item that a list has twice: error, or best, its best place.", metavar="WHAT",
        panel=_ITEMS, default="error")] = None
    first: Annotated[
        str | None, _column(_GAMES, "The first side.", "first, a, left, model_a, home_team or home")
    ] = None
    second: Annotated[
        str | None, _column(_GAMES, "The second.", "second, b, right, model_b, away_team or away")
    ] = None
    winner: Annotated[
        str | None,
        _column(_GAMES, "Who won: a name, a word for a side, or one for a tie.", "winner"),
    ] = None
    loser: Annotated[
        str | None,
        _column(_GAMES,
                "Of preferences: over whom the winner was preferred, in the list of --list.",
                "loser"),
    ] = None
    first_score: Annotated[
        str | None, _column(_GAMES, "Or the first side's score.", "home_score, first_score")
    ] = None
    second_score: Annotated[
        str | None, _column(_GAMES, "And the second's.", "away_score, second_score")
    ] = None
    first_wins: Annotated[
        str | None, _column(_GAMES, "Or how often the first side won.", "wins_first")
    ] = None
    second_wins: Annotated[
        str | None, _column(_GAMES, "And how often the second did.", "wins_second")
    ] = None
    tied: Annotated[str | None, _column(_GAMES, "And how often they tied.", "ties")] = None
    neutral: Annotated[
        str | None,
        _column(_GAMES, "True or false: played on neutral ground, so without what --home is for.",
                "no game was"),
    ] = None
    first_rank: Annotated[
        str | None, _column(_GAMES, "Of paired ranks: the first item's rank, in --list.", "by name")
    ] = None
    second_rank: Annotated[str | None, _column(_GAMES, "And the second's.", "by name")] = None
    winner_as: Annotated[str | None, option(
        "How winners are written, where a name could be a word: name or side.", metavar="HOW",
        panel=_GAMES, default="either")] = None
    tie_word: Annotated[list[str] | None, option(
        "Word for a tie in the column of winners. Repeat for several.", metavar="WORD",
        panel=_GAMES, default="tie, draw, equal, both, bothbad, …")] = None
    drop_word: Annotated[list[str] | None, option(
        "Word there of games that are left out, such as invalid or skip. Repeat for several.",
        metavar="WORD", panel=_GAMES)] = None
    both_lose: Annotated[list[str] | None, option(
        "Word there that neither side is good enough, such as bothbad: every game is then a "
        "choice out of three, and (neither) an item with a worth. Repeat for several.",
        metavar="WORD", panel=_GAMES)] = None
    # fmt: on

    def __post_init__(self) -> None:
        if (self.first_wins is None) != (self.second_wins is None):
            raise ValueError("give both of --first-wins and --second-wins.")
        if self.component not in ("all", "largest"):
            raise ValueError(f'--component is "all" or "largest", not {self.component!r}.')
        if self.rest not in (None, "absent", "last"):
            raise ValueError(f"--rest is absent or last, not {self.rest!r}.")
        _missing_rank(self.missing_rank or ())
        check_table_kind(self.kind)
        check_ranking_format(self.format)

    def read(
        self, file: Path, client: Any = None, *, either_way: bool = False, **keep: Sequence[str]
    ) -> Rankings | Games | PartedRankings:
        """Read a file (- is standard input); games stay games: who is named first may matter.

        With a client of Dask, its workers read Parquet and count equal lists together. Lists that
        are too many for this process stay in parts, if all of them are to be fitted; of many games
        those are equal `either_way` if it does not matter who is named first. `keep` and
        `keep_items` are columns that go along, as for `read_rankings`.
        """
        from tierrank.data.files import without_compression
        from tierrank.data.rankings.container import FEW, MOST_GAMES, PartedRankings
        from tierrank.data.rankings.reading import read_lists_or_games

        format: Any = self.format
        kind: Any = self.kind
        columns = self._columns() | {name: kept for name, kept in keep.items() if kept}
        if client is not None:
            from tierrank.data.rankings.dask import read_parted

            if file == STDIN:
                raise ValueError(
                    "- is read by one process: --dask and --workers take Parquet files."
                )
            with _advised(file, columns):
                found: Any = read_parted(
                    file, client=client, format=format, kind=kind, strict=self.strict, **columns
                )
        else:
            with on_disk(file, lists=True) as path, _advised(file, columns):
                if file == STDIN and format == "auto":
                    format = without_compression(path).suffix[1:] or "preflib"
                found = read_lists_or_games(
                    path, format=format, kind=kind, strict=self.strict, either_way=either_way,
                    **columns,
                )  # fmt: skip
        if isinstance(found, PartedRankings):
            most = MOST_GAMES if found.of_games else FEW
            if found.entries > most and not self._chooses() and self.rest is None:
                return found
            found = found.gather(either_way=either_way)
        return self._with_rest(found, file)

    def _chooses(self) -> bool:
        """Whether items may be left out."""
        return bool(self.exclude or self.min_games or self.component != "all")

    def _with_rest(self, found: Rankings | Games, file: Path) -> Rankings | Games:
        from tierrank.data import DataFileError, Games

        if self.rest is None:
            return found
        if not isinstance(found, Games):
            return replace(found, tiers=replace(found.tiers, rest=self.rest == "last"))
        if self.rest == "last":
            raise DataFileError(file, None, "--rest last is for rankings: a game has two sides.")
        return found

    def fewer(self, data: Any, ties_connect: bool | None) -> tuple[Any, str]:
        """Leave items out, and say how much went with them: "" if nothing did."""
        if not self._chooses():
            return data, ""
        from tierrank.aggregation.connectivity import leave_out
        from tierrank.data import Games

        by_word = {str(item): item for item in data.items}
        component: Any = self.component
        left = leave_out(
            data,
            exclude=[by_word.get(word, word) for word in self.exclude or ()],
            min_games=self.min_games,
            component=component,
            ties_connect=ties_connect,
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
            f"{gone:,} of {len(data.items):,} items are left out, and with them "
            f"{before - after:,.10g} of {before:,.10g} {seen}: {', '.join(names[:10])}{more}."
        )

    def _columns(self) -> dict[str, Any]:
        """Arguments of the readers of tables, as far as they were given."""
        given = {name: getattr(self, name) for name in _COLUMNS} | {
            "list": self.list_column,
            "missing_rank": _missing_rank(self.missing_rank or ()),
            "wins": self.first_wins and (self.first_wins, self.second_wins),
            "ties": self.tied,
            "tie_words": self.tie_word,
            "drop_words": self.drop_word,
            "both_lose": self.both_lose,
        }
        return {name: value for name, value in given.items() if value}


def read_features(
    path: Path, items: Sequence[Any], left: Sequence[Any]
) -> dict[Any, dict[str, float]]:
    """Features of items, from a table with the column `item` and numbers in all others.

    Parameters
    ----------
    path
        of the table
    items
        all items of the lists: the table may name no others
    left
        those of them that have to be there
    """
    import numpy as np

    from tierrank.data import DataFileError
    from tierrank.data.tables.opening import open_table
    from tierrank.data.tables.ranking_tables import refuse_row_numbers

    with open_table(path) as table:
        at_item = table.find("item", "features")
        at_features = [at for at in range(len(table.names)) if at != at_item]
        if not at_features:
            table.refuse("has no column beside item: give features of the items.")
        refuse_row_numbers(table, at_features, "take it out.")
        table.load(at_item, numbers=at_features)
        X = np.column_stack([table.floats(at, "feature") for at in at_features])
        keys = table.keys(at_item, "item")
    features = [table.names[at] for at in at_features]
    words = [str(key) for key in keys.keys[keys.codes].tolist()]
    row_of = {word: row for row, word in enumerate(words)}
    if len(row_of) < len(words):
        word = next(word for row, word in enumerate(words) if row_of[word] != row)
        raise DataFileError(path, None, f"item {word!r} has two rows: leave one of them.")
    known = {str(item) for item in items}
    if unknown := [word for word in words if word not in known]:
        what = f"has features of {_few(unknown)}, which no list names: mend or leave out the rows."
        raise DataFileError(path, None, what)
    if absent := sorted(str(item) for item in left if str(item) not in row_of):
        raise DataFileError(
            path, None,
            f"has no features of {_few(absent)}: give them, or leave the items out with --exclude.",
        )  # fmt: skip
    if not (there := np.isfinite(X)).all():
        row, column = np.argwhere(~there)[0].tolist()
        raise DataFileError(
            path, None,
            f"item {words[row]!r}: feature {features[column]!r} is {X[row, column]}: give a finite "
            "number, or leave the item out of the table and the lists (--exclude).",
        )  # fmt: skip
    rows = {item: X[row_of[str(item)]].tolist() for item in left}
    return {item: dict(zip(features, row, strict=True)) for item, row in rows.items()}


def _few(words: Sequence[str]) -> str:
    more = f" and {len(words) - 5:,} more" if len(words) > 5 else ""
    return ", ".join(map(repr, words[:5])) + more


def _missing_rank(words: Sequence[str]) -> str | dict[str, str] | None:
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


@contextmanager
def _advised(file: Path, columns: Mapping[str, Any]) -> Iterator[None]:
    """Of a table that may be read in several ways, name the commands; before - gets its name."""
    from tierrank.data import UnclearTable

    try:
        yield
    except UnclearTable as error:
        raise ValueError(_as_commands(error, file, columns)) from None


def _as_commands(error: UnclearTable, file: Path, named: Mapping[str, Any]) -> str:
    """What a table may be, as commands to copy."""
    import shlex

    from tierrank.data.rankings.usual_names import KINDS

    commands = []
    for way in error.readings:
        words = ["tierrank", "aggregate", str(file)]
        if way.needs_kind:
            words += ["--kind", way.kind]
        for part, value in {**way.columns, "separator": named.get("separator")}.items():
            if value:
                values = (value,) if isinstance(value, str) else value
                spelt = COLUMNS.get(part, (f"--{part.replace('_', '-')}",))
                options = spelt if len(spelt) == len(values) else spelt * len(values)
                words += [word for pair in zip(options, values, strict=True) for word in pair]
        commands.append(f"  {shlex.join(words)}   # {KINDS[way.kind]}")
    return "\n".join([f"{spelled(error)} Say which it is, as in", *commands])
