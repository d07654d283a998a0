"""Options that say which columns of a table are what, and what is fitted."""

from __future__ import annotations

from typing import Annotated

import typer

_FILE = "Data"
_ITEMS = "Tables with a row an item of a list"
_GAMES = "Tables with a row a game of two sides"
_MODEL = "Model"


def _column(panel: str, help: str, default: str, *names: str) -> typer.models.OptionInfo:
    option: typer.models.OptionInfo = typer.Option(
        *names, metavar="COLUMN", rich_help_panel=panel, show_default=default, help=help
    )
    return option


Format = Annotated[
    str,
    typer.Option(metavar="FORMAT", rich_help_panel=_FILE,
                 help="preflib, jsonl, csv, tsv or parquet, where the name does not tell."),
]  # fmt: skip
Kind = Annotated[
    str | None,
    typer.Option(metavar="KIND", rich_help_panel=_FILE, show_default="by the columns",
                 help="What a row of a table is: items (an item of a list), games, preferences, "
                 "paired-ranks (two items of a list, each with its rank), wide (a ranking, with a "
                 "column an item and its rank in the cell) or orders (a ranking, with an item in "
                 "each cell, best first)."),
]  # fmt: skip
Strict = Annotated[
    bool,
    typer.Option("--strict", rich_help_panel=_FILE,
                 help="Refuse a PrefLib file that is otherwise read with a note of what was "
                 "assumed."),
]  # fmt: skip
Exclude = Annotated[
    list[str] | None,
    typer.Option(metavar="ITEM", rich_help_panel=_FILE, show_default=False,
                 help="Leave this item out; the rest of each list stays. Repeat for several."),
]  # fmt: skip
MinGames = Annotated[
    float,
    typer.Option(min=0, metavar="N", rich_help_panel=_FILE,
                 help="Leave out who is in fewer games or lists, counted until nobody is."),
]  # fmt: skip
Component = Annotated[
    str,
    typer.Option(metavar="WHICH", rich_help_panel=_FILE,
                 help="all, or largest: keep the largest set of items whose worths the data "
                 "determine."),
]  # fmt: skip
Rest = Annotated[
    str | None,
    typer.Option(metavar="WHERE", rich_help_panel=_FILE, show_default="as the file says, or absent",
                 help="Where a list stands with the items it does not name: absent, or last, tied "
                 "behind those it names."),
]  # fmt: skip
Weight = Annotated[
    str | None, _column(_FILE, "How often a list or a game was seen.", "weight, if there")
]

List = Annotated[
    list[str] | None,
    _column(_ITEMS, "Which list a row belongs to; repeat if several columns say it.", "list",
            "--list"),
]  # fmt: skip
Item = Annotated[
    list[str] | None,
    _column(_ITEMS, "The item; repeat for the columns of a wide table.", "item"),
]
Rank = Annotated[str | None, _column(_ITEMS, "Its rank: lower is better, equal ones tie.", "rank")]
Score = Annotated[
    str | None, _column(_ITEMS, "Or its score: higher is better, equal ones tie.", "score")
]
MissingRank = Annotated[
    list[str] | None,
    typer.Option(metavar="WHAT", rich_help_panel=_ITEMS, show_default="error",
                 help="Rows without a rank: error, drop, or last (tied behind all others). By "
                 "word: --missing-rank DNF=last --missing-rank DNS=drop."),
]  # fmt: skip
Twice = Annotated[
    str | None,
    typer.Option(metavar="WHAT", rich_help_panel=_ITEMS, show_default="error",
                 help="An item that a list has twice: error, or best, its best place."),
]  # fmt: skip

First = Annotated[
    str | None,
    _column(_GAMES, "The first side.", "first, a, left, model_a, home_team or home"),
]
Second = Annotated[
    str | None,
    _column(_GAMES, "The second.", "second, b, right, model_b, away_team or away"),
]
Winner = Annotated[
    str | None,
    _column(_GAMES, "Who won: a name, a word for a side, or one for a tie.", "winner"),
]
FirstScore = Annotated[
    str | None, _column(_GAMES, "Or the first side's score.", "home_score, first_score")
]
SecondScore = Annotated[
    str | None, _column(_GAMES, "And the second's.", "away_score, second_score")
]
Loser = Annotated[
    str | None,
    _column(_GAMES, "Of preferences: over whom the winner was preferred, in the list of --list.",
            "loser"),
]  # fmt: skip
FirstWins = Annotated[str | None, _column(_GAMES, "Or how often the first side won.", "wins_first")]
SecondWins = Annotated[str | None, _column(_GAMES, "And how often the second did.", "wins_second")]
Tied = Annotated[str | None, _column(_GAMES, "And how often they tied.", "ties")]
Neutral = Annotated[
    str | None,
    _column(_GAMES, "True or false: played on neutral ground, so without what --home is for.",
            "no game was"),
]  # fmt: skip
FirstRank = Annotated[
    str | None, _column(_GAMES, "Of paired ranks: the first item's rank, in --list.", "by name")
]
SecondRank = Annotated[str | None, _column(_GAMES, "And the second's.", "by name")]
WinnerAs = Annotated[
    str | None,
    typer.Option(metavar="HOW", rich_help_panel=_GAMES, show_default="either",
                 help="How winners are written, where a name could be a word: name or side."),
]  # fmt: skip
TieWord = Annotated[
    list[str] | None,
    typer.Option(metavar="WORD", rich_help_panel=_GAMES, show_default="tie, draw, equal, both, …",
                 help="Word for a tie in the column of winners. Repeat for several."),
]  # fmt: skip

Model = Annotated[
    str | None,
    typer.Option(metavar="NAME", rich_help_panel=_MODEL,
                 show_default="pl-partition, and davidson for games with ties",
                 help="pl-partition, the exact Plackett-Luce likelihood, or another of `tierrank "
                 "objectives`, perhaps with parameters, as in pl-topk:k=5; or, for games of two, "
                 "davidson, rao-kupper or bradley-terry."),
]  # fmt: skip
Home = Annotated[
    bool,
    typer.Option("--home", rich_help_panel=_MODEL,
                 help="Models of games: the first side has an advantage, which is estimated."),
]  # fmt: skip
Ties = Annotated[
    str | None,
    typer.Option(metavar="HOW", rich_help_panel=_MODEL, show_default="refuse",
                 help="What bradley-terry does with ties: refuse, half (a win and a loss by "
                 "half), or drop."),
]  # fmt: skip
Prior = Annotated[
    str,
    typer.Option(metavar="PRIOR", rich_help_panel=_MODEL,
                 help="none; gaussian or gaussian:2, normal log-worths with that standard "
                 "deviation; pseudo-item or pseudo-item:0.5, everybody won and lost so often "
                 "against one more item."),
]  # fmt: skip
Uncertainty = Annotated[
    str,
    typer.Option(metavar="KIND", rich_help_panel=_MODEL,
                 help="What intervals rest on: information, or sandwich, which holds with enough "
                 "lists even where the model is wrong."),
]  # fmt: skip
Solver = Annotated[
    str,
    typer.Option(metavar="NAME", rich_help_panel=_MODEL,
                 help="newton, lbfgs, adagrad, or auto: what suits the data."),
]  # fmt: skip
MaxIter = Annotated[
    int | None,
    typer.Option(min=1, rich_help_panel=_MODEL, show_default="100, and 10,000 of lbfgs",
                 help="Most iterations."),
]  # fmt: skip
