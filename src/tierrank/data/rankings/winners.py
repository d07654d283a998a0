"""Who won, from a column that says so: by name, by side, or with a word for a tie."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

from tierrank.data.rankings.columns import Fetched
from tierrank.data.rankings.games import FIRST, SECOND, TIE, OutcomeArray
from tierrank.data.rankings.sides import Sides
from tierrank.data.text import shown

WinnerAs = Literal["either", "name", "side"]

TIE_WORDS = (
    "tie", "tied", "draw", "drawn", "equal", "both", "bothbad", "both_bad", "tie (bothbad)",
)  # fmt: skip
SIDE_WORDS = (
    ("first", "second"), ("a", "b"), ("left", "right"), ("model_a", "model_b"), ("home", "away"),
)  # fmt: skip

_UNKNOWN = 2


class Winners(NamedTuple):
    """The column of winners, and how they are written."""

    position: int
    written_as: WinnerAs
    tie_words: Sequence[str]
    column_names: tuple[str, str]  # of the two sides, which are words for them too


def outcomes(fetched: Fetched, sides: Sides, how: Winners) -> OutcomeArray:
    """[rows] who won; a word that is unknown, or that means two things, is refused."""
    winner = fetched.keys(how.position, "winner", missing=())  # None may be a word for a tie
    known = _vocabulary(how)
    number = {str(name): i for i, name in enumerate(sides.names)}
    words = [str(word) for word in winner.keys.tolist()]
    named = np.array([number.get(word, -1) for word in words], dtype=np.int64)[winner.codes]
    said = np.array([known.get(_plain(word), _UNKNOWN) for word in words], dtype=np.int8)
    by_word = said[winner.codes]
    by_name = np.full(fetched.rows, _UNKNOWN, dtype=np.int8)
    if how.written_as != "side":
        by_name[named == sides.first] = FIRST
        by_name[named == sides.second] = SECOND
        # A word that is also a name, be it of a side that did not play here: which is meant?
        names = {_plain(name) for name in number}
        like_a_name = np.array([_plain(word) in names for word in words])[winner.codes]
        two_things = (by_word != _UNKNOWN) & like_a_name & (by_word != by_name)
        if two_things.any():
            row = int(two_things.argmax())
            fetched.refuse(row, how.position, _ambiguous(words[winner.codes[row]]))
    found: OutcomeArray = np.where(by_name == _UNKNOWN, by_word, by_name)
    unknown = found == _UNKNOWN
    if unknown.any():
        row = int(unknown.argmax())
        two = tuple(str(sides.names[side[row]]) for side in (sides.first, sides.second))
        what = _strange(words[winner.codes[row]], two, how.written_as, known)
        fetched.refuse(row, how.position, what)
    return found


def _vocabulary(how: Winners) -> dict[str, int]:
    """What each word means; one that would mean two things, as with columns b and a, is none."""
    meanings: dict[str, set[int]] = {}
    pairs = [] if how.written_as == "name" else [*SIDE_WORDS, how.column_names]
    words = [(word, TIE) for word in how.tie_words]
    words += [said for one, two in pairs for said in ((one, FIRST), (two, SECOND))]
    for word, outcome in words:
        meanings.setdefault(_plain(word), set()).add(outcome)
    return {word: meant.pop() for word, meant in meanings.items() if len(meant) == 1}


def _plain(word: str) -> str:
    return word.strip().lower()


def _ambiguous(word: str) -> str:
    return (
        f"the winner {shown(word)} is the name of a side, and also a word for a side or for a tie: "
        'rename the side, or pass winner_as="name" or winner_as="side", or other tie_words.'
    )


def _strange(word: str, names: tuple[str, ...], written_as: WinnerAs, known: dict[str, int]) -> str:
    ways = []
    if written_as != "side":
        ways.append(f"the name of a side ({shown(names[0])}, {shown(names[1])})")
    ways += [
        f"a word for {what} ({', '.join(w for w, meant in known.items() if meant == outcome)})"
        for what, outcome in (("the first", FIRST), ("the second", SECOND), ("a tie", TIE))
        if outcome in known.values()
    ]
    return (
        f"the winner is {shown(word)}, which is not {', nor '.join(ways)}: mend it, or name your "
        "words for a tie with tie_words."
    )
