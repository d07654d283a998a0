"""Rankings as JSON lines: what is read, what is refused, and what comes back after writing."""

import gzip
import json
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tierrank.data.rankings import (
    JsonLinesError,
    Rankings,
    read_jsonl_rankings,
    write_jsonl_rankings,
)
from tierrank.tiers import Tiers


@pytest.fixture
def read(tmp_path):
    def read(*lines, name="votes.jsonl"):
        path = tmp_path / name
        path.write_bytes(b"\n".join(x.encode() if isinstance(x, str) else x for x in lines))
        return read_jsonl_rankings(path)

    return read


# reading ----------------------------------------------------------------------------------------


def test_arrays_are_rankings_and_arrays_in_them_ties(read):
    rankings = read('["ann", ["bob", "cy"]]', '["cy"]', '[["bob"], "ann"]')
    assert rankings.items == ("ann", "bob", "cy")
    assert rankings.tiers.to_rankings() == [["ann", ("bob", "cy")], ["cy"], ["bob", "ann"]]
    assert rankings.weights.tolist() == [1, 1, 1]
    assert not rankings.tiers.rest


def test_objects_have_a_weight(read):
    rankings = read(
        '{"ranking": ["a", "b"], "weight": 3}', '["b"]', '{"weight": 0.5, "ranking": ["a"]}'
    )
    assert rankings.weights.tolist() == [3, 1, 0.5]


def test_names_keep_their_type(read):
    names = read('[1, "1", 2.5, -7, ""]').items
    assert names == (1, "1", 2.5, -7, "")
    assert [type(name) for name in names] == [int, str, float, int, str]


def test_the_first_line_may_give_all_items_and_the_rest(read):
    rankings = read('{"items": ["a", "b", "c"], "rest": "last"}', '["c"]', "[]")
    assert rankings.tiers == Tiers.from_rankings([["c"], []], items=["a", "b", "c"], rest="last")
    numbers = read('{"items": 4}', "[3, 0]")
    assert numbers.tiers == Tiers.from_rankings([[3, 0]], items=4)
    assert numbers.tiers.names is None


def test_every_line_may_say_where_the_rest_is(read):
    all_last = read('{"ranking": ["a"], "rest": "last"}', '{"ranking": ["b", "c"], "rest": "last"}')
    assert all_last.tiers.rest
    mixed = read('{"ranking": ["b"], "rest": "last"}', '["a", "c"]')
    assert mixed.tiers.to_rankings() == [["b", ("a", "c")], ["a", "c"]]
    assert not mixed.tiers.rest
    mixed = read(
        '{"items": 3, "rest": "last"}', "[1]", '{"ranking": [2], "rest": "absent"}', "[2,1,0]"
    )
    assert mixed.tiers.to_rankings() == [[1, (0, 2)], [2], [2, 1, 0]]


def test_empty_lines_windows_line_ends_marks_and_compression_do_not_matter(read, tmp_path):
    assert read("\ufeff\r", '["é", "b"]\r', "", '  ["b"]  ').tiers.to_rankings() == [
        ["é", "b"],
        ["b"],
    ]
    packed = tmp_path / "votes.jsonl.gz"
    packed.write_bytes(gzip.compress(b'["a"]\n'))
    assert read_jsonl_rankings(packed).items == ("a",)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('["a", "b"', "this is not JSON"),
        ("a > b", "this is not JSON"),
        ('"a"', '"a" is no array: a line is a ranking such as'),
        ("7", "7 is no array"),
        ("null", "null is no array"),
        ("[]", "the ranking is empty: leave it out"),
        ('["a", []]', "a tie is empty"),
        ('["a", [["b"], "c"]]', "A tie is one array in the ranking, and holds no other"),
        ('["a", null]', "null is no item: items are strings or numbers"),
        ('["a", true]', "true is no item"),
        ('["a", {"b": 1}]', '{"b": 1} is no item'),
        ('["a", NaN]', "NaN is no item and no weight"),
        ("[-Infinity]", "-Infinity is no item"),
        ('["a", 1e999]', "Infinity is no item"),
        ('["a", "b", "a"]', 'item "a" is in the ranking twice'),
        ('["a", ["b", "b"]]', 'item "b" is in the ranking twice'),
        ("[1, 1.0]", "item 1 is in the ranking twice"),
        ('{"weight": 2}', 'the object has no "ranking"'),
        ('{"ranking": "ab"}', '"ab" is no array'),
        ('{"ranking": ["a"], "weigth": 2}', 'key "weigth" is none of ranking, rest, weight'),
        ('{"ranking": ["a"], "ranking": ["b"]}', "a key stands twice"),
        ('{"ranking": ["a"], "weight": 0}', "the weight is 0: weights are positive"),
        ('{"ranking": ["a"], "weight": true}', "the weight is true"),
        ('{"ranking": ["a"], "weight": "3"}', 'the weight is "3"'),
        ('{"ranking": ["a"], "weight": 1e999}', "the weight is Infinity"),
        ('{"ranking": ["a"], "weight": 1' + "0" * 400 + "}", "the weight is 1000"),
        ('{"ranking": ["a"], "rest": "first"}', 'rest is "first": it is "absent" or "last"'),
        ('{"ranking": ["a"], "rest": ["b"]}', 'rest is ["b"]'),
        ('{"items": ["a"]}', 'a line with "items" comes first'),
        ("[" * 100_000, "arrays are nested too deeply"),
        ("[1" + "0" * 5000 + "]", "this is not JSON"),
        (b'["\xff"]', "the byte 0xff is not UTF-8"),
    ],
)
def test_a_line_that_is_no_ranking_is_refused_with_its_number(read, line, message):
    with pytest.raises(JsonLinesError) as caught:
        read('["x", "y"]', "", line, '["z"]')
    assert message in str(caught.value)
    assert caught.value.line == 3
    assert "votes.jsonl" in str(caught.value)


@pytest.mark.parametrize(
    ("header", "line", "message"),
    [
        ('{"items": ["a", "a"]}', 1, 'items has "a" twice'),
        ('{"items": []}', 1, "items is []: give the number of items, or their names"),
        ('{"items": 0}', 1, "items is 0"),
        ('{"items": true}', 1, "items is true"),
        ('{"items": "ab"}', 1, 'items is "ab"'),
        ('{"items": ["a", ["b"]]}', 1, '["b"] is no item'),
        ('{"items": ["a"], "weight": 2}', 1, 'the key "weight" is none of items, rest'),
        ('{"items": ["a"], "rest": 1}', 1, "rest is 1"),
        ('{"items": ["a"]}', 2, 'item "b" is not among the "items" of the first line'),
        ('{"items": 9}', 2, 'item "a" is not among the "items"'),
    ],
)
def test_a_first_line_that_does_not_fit_is_refused(read, header, line, message):
    with pytest.raises(JsonLinesError) as caught:
        read(header, '["a", "b"]')
    assert message in str(caught.value)
    assert caught.value.line == line


def test_numbers_outside_of_the_catalogue_are_refused(read):
    for line in ("[3]", "[-1]", "[0, 1.0]"):
        with pytest.raises(JsonLinesError, match=r'line 2: item .* is not among the "items"'):
            read('{"items": 3}', line)


def test_a_file_without_rankings_is_refused(read):
    for lines in ([""], ['{"items": 3}']):
        with pytest.raises(JsonLinesError, match="there are no rankings"):
            read(*lines)


def test_a_rest_that_is_too_large_to_write_out_is_refused(read):
    with pytest.raises(JsonLinesError, match="give all lists the same rest"):
        read('{"items": 1000000000}', '{"ranking": [3], "rest": "last"}', "[4]")


# writing ----------------------------------------------------------------------------------------


def test_files_are_lines_of_json(tmp_path):
    path = tmp_path / "votes.jsonl"
    rankings = Rankings.from_rankings(
        [["ann", ("bob", "Käse")], ["bob"]], items=["bob", "ann", "Käse", "dee"], weights=[2, 1]
    )
    write_jsonl_rankings(rankings, path)
    assert path.read_text(encoding="utf-8").splitlines() == [
        '{"items": ["bob", "ann", "Käse", "dee"], "rest": "absent"}',
        '{"weight": 2, "ranking": ["ann", ["bob", "Käse"]]}',
        '["bob"]',
    ]


NAMES = st.text() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)


@st.composite
def rankings(draw):
    names = draw(st.none() | st.lists(NAMES, min_size=1, max_size=5, unique=True))
    items = list(range(4)) if names is None else names
    rest = draw(st.sampled_from(["absent", "last"]))
    lists = []
    for _ in range(draw(st.integers(1, 4))):
        order = draw(st.permutations(items))
        length = draw(st.integers(0 if rest == "last" else 1, len(order)))
        inner = draw(st.sets(st.integers(1, len(order))))
        ends = [0, *sorted(b for b in inner if b < length), length]
        lists.append([tuple(order[a:b]) for a, b in pairwise(ends) if b > a])
    weights = draw(
        st.lists(
            st.floats(0, allow_infinity=False, exclude_min=True),
            min_size=len(lists), max_size=len(lists),
        )
    )  # fmt: skip
    items = 4 if names is None else names
    return Rankings.from_rankings(lists, items=items, weights=weights, rest=rest)


@settings(max_examples=150, deadline=None)
@given(rankings())
def test_what_is_written_is_read_back(tmp_path_factory, votes):
    path = tmp_path_factory.getbasetemp() / "round.jsonl"
    write_jsonl_rankings(votes, path)
    for line in path.read_bytes().splitlines():
        json.loads(line)
    back = read_jsonl_rankings(path)
    assert back.tiers == votes.tiers
    assert [*map(type, back.items)] == [*map(type, votes.items)]
    assert back.weights.tolist() == votes.weights.tolist()


def test_names_of_numpy_and_lone_surrogates_come_back(tmp_path):
    names = [np.int64(3), np.str_("x"), np.float32(0.5), "\ud800"]
    path = tmp_path / "votes.jsonl"
    write_jsonl_rankings(Rankings.from_rankings([names]), path)
    assert read_jsonl_rankings(path).items == (3, "x", 0.5, "\ud800")


@pytest.mark.parametrize("name", [None, True, np.inf, b"a", frozenset()])
def test_names_that_json_does_not_have_are_refused_and_no_file_appears(tmp_path, name):
    tiers = Tiers.from_rankings([[0, 1]], items=2)
    tiers = Tiers(
        items=tiers.items, tier_offsets=tiers.tier_offsets, list_offsets=tiers.list_offsets,
        n_items=2, names=("a", name),
    )  # fmt: skip
    with pytest.raises(ValueError, match="JSON lines hold items that are strings or finite"):
        write_jsonl_rankings(Rankings(tiers, [1.0]), tmp_path / "votes.jsonl")
    assert not list(tmp_path.iterdir())


# damage -----------------------------------------------------------------------------------------

PIECES = st.sampled_from(
    [b"[", b"]", b"{", b"}", b'"a"', b'"b"', b"1", b"-2.5", b", ", b": ", b"null", b"true", b"NaN",
     b'"ranking"', b'"weight"', b'"rest"', b'"last"', b'"items"', b"\n", b'["a", ["b", 1]]\n',
     b'{"items": ["a", "b", 1], "rest": "last"}\n', b'{"ranking": ["a"], "weight": 2}\n', b"\xff",
     b'"\\ud800"', b"1e999", b"\0", b"\x85", b'{"items": 3}\n', b"[2, [0, 1]]\n", b"[]\n"]
)  # fmt: skip


@settings(max_examples=500, deadline=None)
@given(st.lists(PIECES, max_size=10).map(b"".join) | st.binary(max_size=40))
def test_any_bytes_are_read_or_refused(tmp_path_factory, content):
    path = tmp_path_factory.getbasetemp() / "damaged.jsonl"
    path.write_bytes(content)
    try:
        votes = read_jsonl_rankings(path)
    except JsonLinesError:
        return
    write_jsonl_rankings(votes, path)
    back = read_jsonl_rankings(path)
    assert back.tiers == votes.tiers
    assert back.weights.tolist() == votes.weights.tolist()
