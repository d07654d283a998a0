"""PrefLib files: what is read, what is refused, and what is written."""

import bz2
import dataclasses
import gzip
import lzma

import numpy as np
import pytest

from tierrank.data.rankings import PrefLib, PrefLibError, Rankings, read_preflib, write_preflib

PACK = {"": bytes, ".gz": gzip.compress, ".xz": lzma.compress, ".bz2": bz2.compress}

FULL = """\
# FILE NAME: 00099-00000001.toi
# TITLE: Lunch: a vote
# DESCRIPTION: 
# DATA TYPE: toi
# MODIFICATION TYPE: original
# RELATES TO: 00099-00000002.toc
# RELATED FILES: 00099-00000002.toc,00099-00000003.cat
# PUBLICATION DATE: 2013-08-17
# MODIFICATION DATE: 2022-09-16
# WEATHER: rain
# NUMBER ALTERNATIVES: 4
# NUMBER VOTERS: 10
# NUMBER UNIQUE ORDERS: 3
# ALTERNATIVE NAME 1: soup, hot
# ALTERNATIVE NAME 2: Käse
# ALTERNATIVE NAME 3: "rice"
# ALTERNATIVE NAME 4: cake
7: 3,{1,2}
2: {2,1},4,3
1: 4
"""  # noqa: W291

CATEGORIES = """\
# TITLE: Which?
# DATA TYPE: cat
# NUMBER ALTERNATIVES: 3
# NUMBER VOTERS: 6
# NUMBER UNIQUE PREFERENCES: 4
# NUMBER CATEGORIES: 3
# CATEGORY NAME 1: Yes
# CATEGORY NAME 2: Maybe
# CATEGORY NAME 3: No
# ALTERNATIVE NAME 1: a
# ALTERNATIVE NAME 2: b
# ALTERNATIVE NAME 3: c
3: {1,2}, {}, 3
1: {}, {}, {1,2,3}
1: {3}, 2, {}
1: {}, 2, {}
"""

SMALL = """\
# DATA TYPE: toi
# ALTERNATIVE NAME 1: a
# ALTERNATIVE NAME 2: b
# ALTERNATIVE NAME 3: c
"""


@pytest.fixture
def read(tmp_path):
    def read(text, name="votes.txt", **options):
        path = tmp_path / name
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return read_preflib(path, **options)

    return read


@pytest.fixture
def written(tmp_path):
    def written(preflib, name="written.txt"):
        write_preflib(preflib, tmp_path / name)
        return (tmp_path / name).read_bytes().decode()

    return written


# reading ----------------------------------------------------------------------------------------


def test_orders_are_rankings_of_the_alternatives_with_counts(read):
    rankings = read(FULL).rankings
    assert rankings.items == ("soup, hot", "Käse", '"rice"', "cake")
    assert rankings.tiers.to_rankings() == [
        ['"rice"', ("soup, hot", "Käse")],
        [("Käse", "soup, hot"), "cake", '"rice"'],
        ["cake"],
    ]
    assert rankings.weights.tolist() == [7, 2, 1]
    assert not rankings.tiers.rest


def test_every_field_of_the_header_is_an_attribute(read):
    votes = read(FULL)
    assert votes.file_name == "00099-00000001.toi"
    assert votes.title == "Lunch: a vote"
    assert votes.description == ""
    assert votes.data_type == "toi"
    assert votes.modification_type == "original"
    assert votes.relates_to == "00099-00000002.toc"
    assert votes.related_files == ("00099-00000002.toc", "00099-00000003.cat")
    assert (votes.publication_date, votes.modification_date) == ("2013-08-17", "2022-09-16")
    assert (votes.number_alternatives, votes.number_voters, votes.number_unique_orders) == (
        4,
        10,
        3,
    )
    assert votes.alternative_names == votes.rankings.items
    assert votes.other == {"WEATHER": "rain"}
    assert list(votes.header) == [line for line in FULL.splitlines() if line.startswith("#")]
    assert repr(votes) == (
        "PrefLib(toi, 'Lunch: a vote': 4 alternatives, 10 voters, 3 unique orders)"
    )


def test_categories_are_tiers_and_empty_ones_are_none(read):
    votes = read(CATEGORIES)
    assert votes.categories == ("Yes", "Maybe", "No")
    assert votes.rankings.tiers.to_rankings() == [
        [("a", "b"), "c"],
        [("a", "b", "c")],
        ["c", "b"],
        ["b"],
    ]
    assert votes.tier_categories.tolist() == [0, 2, 2, 0, 1, 1]


def test_orders_that_nobody_gave_are_kept_but_are_no_rankings(read, written):
    text = SMALL + "2: 1,2,3\n0: 3,2,1\n1: 2,1\n0: 2\n"
    votes = read(text)
    assert votes.rankings.tiers.to_rankings() == [["a", "b", "c"], ["b", "a"]]
    assert votes.rankings.weights.tolist() == [2, 1]
    assert (votes.number_voters, votes.number_unique_orders) == (3, 4)
    assert written(votes).endswith("2: 1,2,3\n0: 3,2,1\n1: 2,1\n0: 2\n")


def test_names_that_are_shared_or_missing_are_told_apart_by_number(read, written):
    names = ["Lee", "Kim", "Lee", "", "Lee (3)"]
    text = "".join(f"# ALTERNATIVE NAME {i}: {name}\n" for i, name in enumerate(names, 1))
    text = f"# DATA TYPE: soc\n{text}5: 4,3,2,1,5\n"
    votes = read(text)
    assert votes.rankings.items == ("Lee (1)", "Kim", "Lee (3) (3)", "(4)", "Lee (3)")
    assert votes.alternative_names == tuple(names)
    assert set(text.splitlines()) <= set(written(votes).splitlines())


@pytest.mark.parametrize("packed", PACK)
def test_compressed_files_are_looked_through(tmp_path, packed):
    path = tmp_path / f"votes.toi{packed}"
    path.write_bytes(PACK[packed](FULL.encode()))
    votes = read_preflib(path)
    assert votes.title == "Lunch: a vote"
    write_preflib(votes, tmp_path / f"again.toi{packed}")
    again = (tmp_path / f"again.toi{packed}").read_bytes()
    unpack = {".gz": gzip.decompress, ".xz": lzma.decompress, ".bz2": bz2.decompress}
    assert unpack.get(packed, bytes)(again).decode() == FULL


@pytest.mark.parametrize(
    "body",
    ["2: 1,{2,3}\n1: 3", "2 :1 ,{ 2 , 3 }\r\n\r\n1:\t3\r\n", "\n02: 01,{2,3}  \n \n1: {3}\n\n"],
)
def test_blanks_empty_lines_and_line_ends_do_not_matter(read, body):
    header = SMALL.replace("\n", "\r\n") if "\r" in body else "\ufeff" + SMALL
    votes = read(header + body)
    assert votes.rankings.tiers.to_rankings() == [["a", ("b", "c")], ["c"]]
    assert votes.rankings.weights.tolist() == [2, 1]


def test_the_type_is_said_by_the_name_where_the_header_does_not(read):
    text = SMALL.replace("# DATA TYPE: toi\n", "") + "1: 1,2,3\n"
    assert read(text, "votes.soc").data_type == "soc"
    assert read(text, "votes.TOI").data_type == "toi"


def test_bytes_that_are_not_utf8_survive(read, tmp_path):
    votes = read((SMALL + "1: 1,2\n").encode().replace(b"1: a", b"1: M\xfcller"))
    assert votes.rankings.items[0] == "M\udcfcller"
    write_preflib(votes, tmp_path / "again.toi")
    assert b"# ALTERNATIVE NAME 1: M\xfcller\n" in (tmp_path / "again.toi").read_bytes()


def test_orders_in_several_chunks_are_as_in_one(read, monkeypatch):
    rng = np.random.default_rng(3)
    lines = []
    for count in rng.integers(1, 99, 200):
        order = [str(item) for item in rng.permutation(3)[: rng.integers(1, 4)] + 1]
        lines.append(f"{count}: " + (",".join(order) if rng.random() < 0.5 else "{1,3},{2}"))
    text = SMALL + "\n".join(lines) + "\n"
    whole = read(text)
    monkeypatch.setattr("tierrank.data.rankings.preflib_text._CHUNK", 50)
    parts = read(text)
    assert parts.orders == whole.orders
    assert parts.counts.tolist() == whole.counts.tolist()
    assert parts.style == whole.style
    with pytest.raises(PrefLibError, match="line 205, column 1:"):
        read(text + "x\n")


# what is refused --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "line", "message"),
    [
        ("1: 1,2\n1: 1,x\n", 6, "'x' does not belong here. An order is a line such as"),
        ("1: 1,é\n", 5, "'é' does not belong here"),
        ("1: 1,2\n# TITLE: late\n", 6, "a header line (they come before all orders)"),
        ("1,2,3\n", 5, "',' stands where a colon behind the count should"),
        (": 1,2\n", 5, "':' stands where a count should"),
        ("1: 1: 2\n", 5, "':' stands where a comma or the end of the line should"),
        ("1: 1,,2\n", 5, "',' stands where an alternative should"),
        ("1: 1,\n", 5, "the end of the line stands where an alternative should"),
        ("1: 1 22\n", 5, "'22' stands where a comma or the end of the line should"),
        ("1: {1,{2}\n", 5, "'{' stands where an alternative should"),
        ("1: {1,2\n1: 3\n", 5, "the end of the line stands where a comma or a closing brace"),
        ("1: 1,2}\n", 5, "'}' stands where a comma or the end of the line should"),
        ("1: {1,2},{}\n", 5, "there are empty braces"),
        ("1: 1\n1:\n", 6, "the order is empty: leave the line out"),
        ("1: 1\n1: 4\n", 6, "there is no alternative 4: they are 1 to 3"),
        ("1: 1\n1: 0\n", 6, "there is no alternative 0"),
        ("1: 1\n\n1: {1,2},1\n", 7, "alternative 1 (a) stands twice in the order"),
        ("1: 2,2\n", 5, "alternative 2 (b) stands twice"),
        ("1: 1234567890123456\n", 5, "the number '1234567890123456' is too large"),
        ("", None, "there is no order behind the header that anyone gave"),
        ("0: 1\n", None, "there is no order behind the header that anyone gave"),
        ("1: 1\0\n", 5, "there is a NUL byte"),
    ],
)
def test_an_order_that_is_none_is_refused_with_its_line(read, body, line, message):
    with pytest.raises(PrefLibError) as caught:
        read(SMALL + body, strict=True)
    assert message in str(caught.value)
    assert caught.value.line == line
    assert "votes.txt" in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("NUMBER VOTERS: 10", "NUMBER VOTERS: 11", 12, "is 11, but there are 10 voters"),
        ("NUMBER VOTERS: 10", "NUMBER VOTERS: ten", 12, "is 'ten', but should be a whole number"),
        ("UNIQUE ORDERS: 3", "UNIQUE ORDERS: 4", 13, "is 4, but there are 3 lines of orders"),
        ("ALTERNATIVES: 4", "ALTERNATIVES: 5", 11, "but there are 4 lines ALTERNATIVE NAME"),
        ("NAME 4: cake", "NAME 5: cake", 17, "ALTERNATIVE NAME 5: number them from 1 to 4"),
        ("NAME 4: cake", "NAME 1: cake", 17, "NAME 1 stands here and in line 14"),
        ("TYPE: toi", "TYPE: soi", 18, "there is a tie, but soi is for strict orders"),
        ("TYPE: toi", "TYPE: toc", 18, "1 of 4 alternatives are missing, but toc is for complete"),
        ("TYPE: toi", "TYPE: wmd", 4, "the data type 'wmd' is not one of soc, soi, toc, toi, cat"),
        ("TYPE: toi", "TYPE: cat", None, "there is no line # CATEGORY NAME 1"),
        ("# WEATHER: rain", "# WEATHER", 10, "'# WEATHER' is no header line: # KEY: value"),
        ("# WEATHER: rain", "# : rain", 10, "'# : rain' is no header line"),
        ("# DATA TYPE: toi\n", "", None, "DATA TYPE is missing"),
    ],
)
def test_a_header_that_does_not_fit_is_refused_with_its_line(read, old, new, line, message):
    assert FULL.count(old) == 1
    with pytest.raises(PrefLibError) as caught:
        read(FULL.replace(old, new), strict=True)
    assert message in str(caught.value)
    assert caught.value.line == line


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("1: {3}, 2, {}", "1: {3}, 2", 15, "there are 2 groups for 3 categories"),
        ("1: {3}, 2, {}", "1: {3}, 2, {}, {}", 15, "there are 4 groups for 3 categories"),
        ("1: {3}, 2, {}", "1: {}, {}, {}", 15, "no category has an alternative"),
        ("CATEGORIES: 3", "CATEGORIES: 2", 6, "but there are 3 lines CATEGORY NAME"),
        ("PREFERENCES: 4", "PREFERENCES: 5", 5, "but there are 4 lines of orders"),
    ],
)
def test_categories_that_do_not_fit_are_refused_with_their_line(read, old, new, line, message):
    with pytest.raises(PrefLibError) as caught:
        read(CATEGORIES.replace(old, new), strict=True)
    assert message in str(caught.value)
    assert caught.value.line == line


def test_a_file_without_header_or_with_a_wrong_name_is_refused(read):
    with pytest.raises(PrefLibError, match="from before 2022"):
        read("3\n1,a\n2,b\n3,c\n2,2,1\n2,1,2\n")
    with pytest.raises(PrefLibError, match="there is no header"):
        read("")
    with pytest.raises(PrefLibError, match=r"line 4: the data type is toi, but .* in .toc"):
        read(FULL, "votes.toc")
    with pytest.raises(PrefLibError, match="there is no line # ALTERNATIVE NAME 1"):
        read("# TITLE: x\n1: 1\n", "votes.soc")


# what is read with a warning ---------------------------------------------------------------------


POLIS = """# DATA TYPE: cat
# NUMBER ALTERNATIVES: 3
# NUMBER VOTERS: 6
# NUMBER UNIQUE PREFERENCES: 3
# NUMBER CATEGORIES: 2
# CATEGORY NAME 0: Agree
# CATEGORY NAME 1: Disagree
# ALTERNATIVE NAME 0: a
# ALTERNATIVE NAME 1: b
# ALTERNATIVE NAME 2: c
3: {0, 2}, 1
2: {}, {0, 1}
1: {}, {}
"""


def assumed(read, text, message, name="votes.txt"):
    """Read with one warning that says so; strictly, it is refused."""
    with pytest.warns(UserWarning, match=message) as caught:
        votes = read(text, name)
    (warning,) = caught
    assert warning.filename == __file__  # where the reader was called
    with pytest.raises(PrefLibError):
        read(text, name, strict=True)
    return votes


def test_names_and_orders_that_count_from_0_are_taken_so(read):
    votes = assumed(read, POLIS, "line 8: ALTERNATIVE NAME is counted from 0")
    assert votes.alternative_names == ("a", "b", "c")
    assert votes.categories == ("Agree", "Disagree")
    assert votes.rankings.tiers.to_rankings() == [[("a", "c"), "b"], [("a", "b")]]
    assert votes.rankings.weights.tolist() == [3, 2]


def test_empty_ballots_are_left_out(read):
    votes = assumed(read, POLIS, "line 13: no category has an alternative: it was left out")
    assert votes.number_voters == 5
    votes = assumed(read, SMALL + "2: 1,2\n7:\n1: 3\n", "line 6: the order is empty.* of 7 voters")
    assert votes.rankings.tiers.to_rankings() == [["a", "b"], ["c"]]
    with pytest.raises(PrefLibError, match="no order behind the header"):
        read(SMALL + "7:\n")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "NUMBER VOTERS: 10",
            "NUMBER VOTERS: 11",
            "line 12: .* is 11, but there are 10 voters",
        ),
        ("UNIQUE ORDERS: 3", "UNIQUE ORDERS: 4", "line 13: .* is 4, but there are 3 lines"),
        ("ALTERNATIVES: 4", "ALTERNATIVES: 5", "line 11: .* is 5, but there are 4 lines"),
    ],
)
def test_what_is_there_counts_where_the_header_says_otherwise(read, written, old, new, message):
    votes = assumed(read, FULL.replace(old, new), message)
    assert votes.orders == read(FULL).orders
    assert votes.counts.tolist() == read(FULL).counts.tolist()
    assert written(votes) == FULL


def test_orders_from_0_under_names_from_1_need_an_order_that_shows_it(read):
    votes = assumed(read, SMALL + "2: 0\n1: 2,{0,1}\n", "count alternatives from 0, though")
    assert votes.rankings.tiers.to_rankings() == [["a"], ["c", ("a", "b")]]
    with pytest.raises(PrefLibError, match="line 6: there is no alternative 0: they are 1 to 3"):
        read(SMALL + "2: 1,2\n1: 0,1\n")  # as well a slip of the pen
    with pytest.raises(PrefLibError, match=r"alternative 0 \(a\) stands twice"):
        read(SMALL + "1: 0,1,0\n")


def test_what_was_assumed_is_what_is_written(read, written):
    votes = assumed(read, POLIS, "from 0")
    text = written(votes)
    again = read(text, strict=True)
    assert again.orders == votes.orders
    assert again.counts.tolist() == votes.counts.tolist()
    assert again.categories == votes.categories
    assert written(again) == text
    assert text.endswith("3: {1, 3}, 2\n2: {}, {1, 2}\n")


# writing ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", [FULL, CATEGORIES], ids=["toi", "cat"])
def test_what_was_read_is_written_as_it_was(read, written, text):
    assert written(read(text)) == text


def test_changed_fields_are_written_and_all_else_stays(read, written):
    votes = dataclasses.replace(
        read(FULL), title="Dinner", related_files=(), other={"WEATHER": "sun", "PLACE": "here"}
    )
    new = FULL.replace("Lunch: a vote", "Dinner").replace("WEATHER: rain", "WEATHER: sun")
    new = new.replace(": 00099-00000002.toc,00099-00000003.cat", ": ")
    new = new.replace("NAME 4: cake\n", "NAME 4: cake\n# PLACE: here\n")
    assert written(votes) == new


def test_rankings_from_elsewhere_are_written_with_a_whole_header(read, written):
    rankings = Rankings.from_rankings(
        [["ann", ("bob", "cy")], ["cy"], ["ann", ("cy", "bob")]], weights=[3, 1, 2]
    )
    votes = PrefLib.from_rankings(rankings, title="A vote", publication_date="2026-01-31")
    text = written(votes)
    assert text.splitlines() == [
        "# FILE NAME: ", "# TITLE: A vote", "# DESCRIPTION: ", "# DATA TYPE: toi",
        "# MODIFICATION TYPE: original", "# RELATES TO: ", "# RELATED FILES: ",
        "# PUBLICATION DATE: 2026-01-31", "# MODIFICATION DATE: ", "# NUMBER ALTERNATIVES: 3",
        "# NUMBER VOTERS: 6", "# NUMBER UNIQUE ORDERS: 2", "# ALTERNATIVE NAME 1: ann",
        "# ALTERNATIVE NAME 2: bob", "# ALTERNATIVE NAME 3: cy", "5: 1,{2,3}", "1: 3",
    ]  # fmt: skip
    back = read(text)
    assert back.rankings.tiers == votes.rankings.tiers
    assert back.rankings.weights.tolist() == [5, 1]


@pytest.mark.parametrize(
    ("lists", "expected"),
    [
        ([["a", "b", "c"], ["c", "b", "a"]], "soc"),
        ([["a", "b", "c"], ["c", "b"]], "soi"),
        ([["a", "b", "c"], ["c", ("b", "a")]], "toc"),
        ([["a", "b", "c"], [("c", "b")]], "toi"),
    ],
)
def test_the_type_is_the_narrowest_that_holds_the_lists(lists, expected):
    assert PrefLib.from_rankings(Rankings.from_rankings(lists)).data_type == expected


def test_a_rest_is_written_out_as_the_last_tier(written):
    lists = [["c"], [], ["b", "a", "d"], [("b", "a"), "d", "c"]]
    rankings = Rankings.from_rankings(lists, items=list("abcd"), rest="last")
    votes = PrefLib.from_rankings(rankings)
    assert votes.data_type == "toc"
    orders = written(votes).splitlines()[-4:]
    assert orders == ["1: 3,{1,2,4}", "1: {1,2,3,4}", "1: 2,1,4,3", "1: {2,1},4,3"]


def test_tiers_become_categories_when_asked_for(read, written):
    rankings = Rankings.from_rankings([["a", ("b", "c")], [("a", "b", "c")]])
    votes = PrefLib.from_rankings(rankings, data_type="cat", categories=["Yes", "No"])
    text = written(votes)
    assert "# NUMBER UNIQUE PREFERENCES: 2\n# NUMBER CATEGORIES: 2\n# CATEGORY NAME 1: Yes" in text
    assert text.endswith("1: 1,{2,3}\n1: {1,2,3},{}\n")
    assert read(text).rankings.tiers == rankings.tiers
    with pytest.raises(ValueError, match="tiers are in categories 0 to 1, but there are 1 cat"):
        PrefLib.from_rankings(rankings, data_type="cat", categories=["Yes"])
    with pytest.raises(ValueError, match="give categories for data_type='cat', and for no other"):
        PrefLib.from_rankings(rankings, data_type="cat")


@pytest.mark.parametrize(
    ("lists", "options", "message"),
    [
        ([["a", "b"], [("a", "b")]], {"data_type": "soc"}, "list 1: there is a tie"),
        ([["a", "b"], ["a"]], {"data_type": "toc"}, "list 1: 1 of 2 alternatives are missing"),
        ([["a", "b"]], {"data_type": "abc"}, "data_type is one of soc, soi"),
        ([["a", "b"]], {"title": "two\nlines"}, "has a line break"),
        ([["a", "b "]], {}, "the name 'b ' has a line break, or blanks at an end"),
        ([["a", ""]], {}, "two items have the same name"),
        ([["1", 1]], {}, "two items have the same name"),
        ([["a", "\ud800"]], {}, "cannot be written in UTF-8"),
        ([["a"]], {"other": {"lower": "x"}}, "other has the key 'lower'"),
        ([["a"]], {"other": {"TITLE": "x"}}, "other has the key 'TITLE'"),
    ],
)
def test_what_the_format_cannot_hold_is_refused(lists, options, message):
    with pytest.raises(ValueError, match=message):
        PrefLib.from_rankings(Rankings.from_rankings(lists), **options)


def test_weights_that_are_no_whole_numbers_are_refused():
    rankings = Rankings.from_rankings([["a"], ["b"]], weights=[1, 2.5])
    with pytest.raises(ValueError, match=r"the weight of list 1 is 2.5: PrefLib has whole"):
        PrefLib.from_rankings(rankings)


def test_parts_that_do_not_fit_together_are_refused(read):
    votes = read(FULL)
    for change, message in (
        ({"counts": votes.counts[:2]}, "give one int64 for each of 3 orders"),
        ({"counts": -votes.counts}, "counts are 0 or more"),
        ({"orders": votes.orders[:0], "counts": votes.counts[:0]}, "not all of them are 0"),
        ({"alternative_names": ("x",) * 4}, "are not the same: make both anew"),
        ({"data_type": "cat", "categories": ("x",)}, "give tier_categories"),
    ):
        with pytest.raises(ValueError, match=message):
            dataclasses.replace(votes, **change)
    sorted_in = read(CATEGORIES)
    with pytest.raises(ValueError, match="must grow within a list"):
        dataclasses.replace(sorted_in, tier_categories=np.array([2, 0, 2, 0, 1, 1]))


def test_a_name_with_another_type_is_refused_and_no_file_appears(read, tmp_path):
    with pytest.raises(ValueError, match=r"the data type is toi: let the name end in .toi"):
        write_preflib(read(FULL), tmp_path / "votes.soc.gz")
    assert not (tmp_path / "votes.soc.gz").exists()
