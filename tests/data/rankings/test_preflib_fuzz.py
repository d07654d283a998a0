"""PrefLib files by the thousand: round trips, and damage."""

from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tierrank.data.rankings import PrefLib, PrefLibError, Rankings, read_preflib, write_preflib

TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\n\0")).map(str.strip)
COUNTS = st.integers(1, 10**13) | st.integers(1, 3)


@st.composite
def rankings(draw):
    n_items = draw(st.integers(1, 6))
    rest = draw(st.booleans())
    lists = draw(
        st.lists(st.permutations(range(n_items)).flatmap(_cut(0 if rest else 1)), min_size=1)
    )
    weights = draw(st.lists(COUNTS, min_size=len(lists), max_size=len(lists)))
    names = draw(st.lists(TEXT.filter(bool), min_size=n_items, max_size=n_items, unique=True))
    lists = [[tuple(names[i] for i in tier) for tier in one] for one in lists]
    return Rankings.from_rankings(
        lists, items=names, weights=weights, rest="last" if rest else "absent"
    )


def _cut(at_least):
    """Strategy for the tiers of a list that begins like a permutation."""

    def cut(order):
        def tiers(drawn):
            length, borders = drawn
            ends = [0, *sorted(b for b in borders if b < length), length]
            return [order[a:b] for a, b in pairwise(ends) if b > a]

        lengths = st.integers(at_least, len(order))
        return st.tuples(lengths, st.sets(st.integers(1, len(order)))).map(tiers)

    return cut


def _as_sets(tiers):
    """Each list with its rest, as the reader of a file should see it."""
    everything = set(tiers.names)
    result = []
    for ranking in tiers.to_rankings():
        sets = [frozenset(t if isinstance(t, tuple) else (t,)) for t in ranking]
        left = everything.difference(*sets)
        result.append((*sets, frozenset(left)) if tiers.rest and left else tuple(sets))
    return result


@settings(max_examples=100, deadline=None)
@given(rankings(), TEXT, TEXT)
def test_rankings_come_back_with_equal_ones_counted_together(tmp_path_factory, votes, title, more):
    path = tmp_path_factory.getbasetemp() / "round.txt"
    preflib = PrefLib.from_rankings(votes, title=title, description=more)
    write_preflib(preflib, path)
    back = read_preflib(path)
    expected = {}
    for order, weight in zip(_as_sets(votes.tiers), votes.weights.tolist(), strict=True):
        expected[order] = expected.get(order, 0) + weight
    found = dict(zip(_as_sets(back.orders), back.rankings.weights.tolist(), strict=True))
    assert list(found.items()) == list(expected.items())
    assert (back.title, back.description, back.data_type) == (title, more, preflib.data_type)
    assert back.rankings.items == votes.items
    first = path.read_bytes()
    write_preflib(back, path)
    assert path.read_bytes() == first


HEADER = b"# DATA TYPE: %b\n# ALTERNATIVE NAME 1: a\n# ALTERNATIVE NAME 2: b\n"
CATEGORIES = b"# CATEGORY NAME 1: yes\n# CATEGORY NAME 2: no\n"
TYPES = st.sampled_from([b"soc", b"soi", b"toc", b"toi", b"cat"])
PIECES = st.sampled_from(
    [b"1", b"2", b"3", b"0", b"12", b":", b": ", b",", b", ", b"{", b"}", b"{1,2}", b"{}", b"\n",
     b"\n\n", b" ", b"\r\n", b"\t", b"# X: y\n", b"#", b"\xff", b"1: 1,2\n", b"2: {1,2}\n"]
)  # fmt: skip


def _valid_or_refused(path, content):
    path.write_bytes(content)
    refused = None
    try:
        votes = read_preflib(path)
    except PrefLibError as error:
        refused = error
    if refused is not None:
        assert str(path) in str(refused)
        assert refused.line is None or 1 <= refused.line <= content.count(b"\n") + 1
        return
    assert votes.number_voters == votes.rankings.weights.sum() > 0
    for ranking in votes.rankings.tiers.to_rankings():
        names = [n for tier in ranking for n in (tier if isinstance(tier, tuple) else (tier,))]
        assert 0 < len(set(names)) == len(names)
    assert np.isfinite(votes.rankings.weights).all()
    again = path.with_suffix(".again")
    write_preflib(votes, again)
    back = read_preflib(again, strict=True)
    assert (back.orders, back.counts.tolist()) == (votes.orders, votes.counts.tolist())
    assert back.alternative_names == votes.alternative_names


@settings(max_examples=400, deadline=None)
@given(TYPES, st.lists(PIECES, max_size=12).map(b"".join))
def test_any_orders_are_read_or_refused(tmp_path_factory, data_type, body):
    header = HEADER % data_type + (CATEGORIES if data_type == b"cat" else b"")
    _valid_or_refused(tmp_path_factory.getbasetemp() / "orders.txt", header + body)


KEYS = st.sampled_from(
    [b"# DATA TYPE: toi\n", b"# ALTERNATIVE NAME 1: a\n", b"# ALTERNATIVE NAME 2: a\n",
     b"# ALTERNATIVE NAME 02:\n", b"# NUMBER VOTERS: 1\n", b"# NUMBER ALTERNATIVES: 2\n",
     b"#NUMBER UNIQUE ORDERS : 1 \n", b"# TITLE: \xff\xc3\n", b"# x: y\r\n", b"#\n", b"\n",
     b" # alternative name 1: \x1c\n", b"\xef\xbb\xbf", b"1: 1\n", b"# CATEGORY NAME 1: c\n",
     b"# DATA TYPE: CAT\n", b"# ALTERNATIVE NAME 3: a (1)\r\r\n", b"# FILE NAME: a\x85b\n"]
)  # fmt: skip


@settings(max_examples=400, deadline=None)
@given(st.lists(KEYS, max_size=8).map(b"".join) | st.binary(max_size=60))
def test_any_header_is_read_or_refused(tmp_path_factory, content):
    _valid_or_refused(tmp_path_factory.getbasetemp() / "header.txt", content + b"1: 1\n")
