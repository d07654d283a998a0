"""Rankings in long form: what is read, what is refused with its line, and round trips."""

import bz2
import gzip
import lzma
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from real_data import real
from tierrank.data import DataFileError, TableError
from tierrank.data.rankings.container import Rankings
from tierrank.data.rankings.item_pairs import read_paired_ranks
from tierrank.data.rankings.long_tables import read_long_rankings, write_long_rankings
from tierrank.tiers import Tiers

PACK = {"": bytes, ".gz": gzip.compress, ".xz": lzma.compress, ".bz2": bz2.compress}


@pytest.fixture
def read(tmp_path):
    def read(text, name="data.csv", **options):
        path = tmp_path / name
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return read_long_rankings(path, **options)

    return read


def test_equal_ranks_tie_and_rows_of_a_list_need_not_be_adjacent(read):
    found = read("list,rank,item\nb,1,ann\na,2,ann\nb,7,cy\na,1,bob\nb,7,dee\n")
    assert found.tiers.to_rankings() == [["ann", ("cy", "dee")], ["bob", "ann"]]
    assert found.tiers.keys.tolist() == ["b", "a"]
    assert found.items == ("ann", "cy", "bob", "dee")
    assert (found.weights.tolist(), found.tiers.rest) == ([1, 1], False)


def test_higher_scores_are_better(read):
    found = read("list,item,score\n1,10,0.5\n1,30,-2\n1,20,.5e0\n1,40,1e3\n")
    assert found.tiers.to_rankings() == [[40, (10, 20), 30]]
    assert found.items == (10, 30, 20, 40)
    assert found.tiers.keys.tolist() == [1]


def test_columns_are_called_as_the_user_says(read):
    text = "race;who;place;n\noslo;ann;1;2.5\noslo;bob;2;2.5\nrome;bob;1;1\n"
    found = read(text, list="race", item="who", rank="place", weight="n", separator=";")
    assert found.tiers.to_rankings() == [["ann", "bob"], ["bob"]]
    assert found.weights.tolist() == [2.5, 1]
    by_score = read(text, list="race", item="who", score="place", separator=";")
    assert by_score.tiers.to_rankings()[0] == ["bob", "ann"]


def test_several_columns_together_can_name_a_list(read):
    text = "year,race,item,rank\n1950,oslo,a,1\n1951,oslo,a,2\n1950,rome,b,1\n1951,oslo,b,1\n"
    found = read(text, list=("year", "race"))
    assert found.tiers.keys.tolist() == ["1950 / oslo", "1951 / oslo", "1950 / rome"]
    assert found.tiers.to_rankings() == [["a"], ["b", "a"], ["b"]]
    with pytest.raises(TableError, match="two lists would be called 'a / b / c'"):
        read("x,y,item,rank\na / b,c,i,1\na,b / c,i,1\n", list=["x", "y"])


@pytest.mark.parametrize("suffix", PACK)
def test_compressed_and_tab_separated_files_are_told_by_their_suffix(read, suffix):
    found = read(PACK[suffix](b"list\titem\trank\n1\ta,b\t1\n"), name=f"data.TSV{suffix}")
    assert found.items == ("a,b",)


def test_the_rest_and_a_catalogue_can_be_stated(read):
    text = "list,item,rank\n1,2,1\n2,0,1\n2,2,2\n"
    found = read(text, rest="last", items=4)
    assert (found.tiers.rest, found.items) == (True, (0, 1, 2, 3))
    assert found.tiers.full_lengths.tolist() == [4, 4]
    assert read(text, items=["2", "0", "x"]).tiers.to_rankings() == [["2"], ["0", "2"]]
    with pytest.raises(TableError, match=r"line 3: the item '0' is not in the catalogue"):
        read(text, items=[2, 5])
    with pytest.raises(ValueError, match='rest is "absent" or "last"'):
        read(text, rest="first")


# frames and Parquet ------------------------------------------------------------------------------

COLUMNS = {
    "list": ["x", "y", "x", "x", "y"],
    "item": [7, 8, 8, 9, 9],
    "rank": [1, 2, 2, None, 1],
    "weight": [2, 1, 2, 2, 1],
}


@pytest.mark.parametrize(
    "make",
    [
        lambda columns: pd.DataFrame(columns, index=[5, 5, 7, 8, 9]),
        lambda columns: pd.DataFrame(columns).convert_dtypes(),
        lambda columns: pd.DataFrame(columns).astype(object),
        lambda columns: pd.DataFrame(columns).astype({"list": "category"}),
        pl.DataFrame,
        pa.table,
    ],
    ids=["pandas", "nullable", "objects", "categories", "polars", "pyarrow"],
)
def test_frames_of_every_kind_give_the_same(make):
    found = read_long_rankings(make(COLUMNS), weight="weight", missing_rank="last")
    assert found.tiers.to_rankings() == [[7, 8, 9], [9, 8]]
    assert found.tiers.keys.tolist() == ["x", "y"]
    assert found.weights.tolist() == [2, 1]
    dropped = read_long_rankings(make(COLUMNS), missing_rank="drop")
    assert dropped.tiers.to_rankings() == [[7, 8], [9, 8]]
    with pytest.raises(ValueError, match="row 3 of the frame: the rank is missing"):
        read_long_rankings(make(COLUMNS))
    words = {**COLUMNS, "rank": ["1", "2", "2", "DNF", "1"]}
    found = read_long_rankings(make(words), missing_rank={"dnf": "last"})
    assert found.tiers.to_rankings() == [[7, 8, 9], [9, 8]]


def test_parquet_files_are_read_and_their_rows_named_in_errors(tmp_path):
    path = tmp_path / "data.parquet"
    pl.DataFrame(COLUMNS).write_parquet(path)
    found = read_long_rankings(path, missing_rank="last", weight="weight")
    assert found.tiers.to_rankings() == [[7, 8, 9], [9, 8]]
    with pytest.raises(TableError, match=r"data.parquet, row 4: the rank is missing") as error:
        read_long_rankings(path)
    assert (error.value.row, error.value.line) == (4, None)
    with pytest.raises(TableError, match=r"no column 'runner' \(for item\)"):
        read_long_rankings(path, item="runner")
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(TableError, match="cannot be read as Parquet"):
        read_long_rankings(path)


# missing ranks, and items that stand twice -------------------------------------------------------

RACE = "list,item,rank\n1,a,2\n1,b,DNF\n1,c,1\n1,d,\n1,e,dnf\n2,a,DNS\n"


def test_those_without_a_rank_are_tied_last_or_left_out(read):
    assert read(RACE, missing_rank="last").tiers.to_rankings() == [
        ["c", "a", ("b", "d", "e")], ["a"],
    ]  # fmt: skip
    dropped = read(RACE, missing_rank="drop")
    assert dropped.tiers.to_rankings() == [["c", "a"]]
    assert (dropped.items, dropped.tiers.keys.tolist()) == (("a", "c"), [1])
    by_word = read(RACE, missing_rank={"DNF": "last", "DNS": "drop", "": "drop"})
    assert by_word.tiers.to_rankings() == [["c", "a", ("b", "e")]]


def test_missing_scores_are_last_too(read):
    text = "list,item,score\n1,a,\n1,b,-5\n1,c,3\n1,d,NA\n"
    assert read(text, missing_rank="last").tiers.to_rankings() == [["c", "b", ("a", "d")]]


@pytest.mark.parametrize(
    ("text", "option", "message"),
    [
        (RACE, "error", r"line 3: the rank is 'DNF', which is not a number: .*missing_rank="),
        (RACE, {"DNF": "last"}, r'line 5: the rank is missing: .*"drop"'),
        (RACE, {"": "last"}, "line 3: the rank is 'DNF'"),
        (RACE.replace("dnf", "1O"), "last", r"line 6: the rank is '1O'.*\(DNF, DNS, "),
        ("list,item,rank\n1,a,\n1,b,2\n", "error", "line 2: the rank is missing"),
        ("list,item,score\n1,a,1\n1,b,nan\n", "error", "line 3: the score is missing"),
        ("list,item,score\n1,a,1\n1,b,inf\n", "last", "line 3: the score is infinite"),
        ("list,item,rank\n1,a,1\n1,b,1e999\n", "drop", "line 3: the rank is '1E999'"),
        ("list,item,rank\n1,a,DNF\n1,b,\n", "drop", "no row has a rank: nothing is left"),
        ("list,item,rank\n1,a,TRUE\n1,b,DNF\n", "last", "line 2: the rank is 'TRUE'"),
    ],
)
def test_a_rank_that_is_none_is_refused_with_its_line(read, text, option, message):
    with pytest.raises(TableError, match=message):
        read(text, missing_rank=option)


def test_an_unknown_way_with_missing_ranks_is_refused(read):
    for option in ("first", {"DNF": "first"}, {3: "last"}):
        with pytest.raises(ValueError, match=r'missing_rank .*"drop" or "last"'):
            read(RACE, missing_rank=option)


def test_an_item_that_stands_twice_is_refused_or_keeps_its_best_place(read):
    text = "list,item,rank\n1,a,3\n1,b,2\n2,a,1\n1,a,1\n1,b,2\n"
    with pytest.raises(TableError, match=r"line 5: the item 'a' stands in the list '1' twice"):
        read(text)
    assert read(text, twice="best").tiers.to_rankings() == [["a", "b"], ["a"]]
    with pytest.raises(ValueError, match='twice is "error" or "best"'):
        read(text, twice="worst")


# what is refused ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("list,item\n1,a\n", {}, r"line 1: there is no column called rank or score: pass rank="),
        ("list,item,p,q\n1,a,1,1\n", {"rank": "p", "score": "q"}, "both order the lists"),
        ("list,item,place\n1,a,1\n", {"rank": "plaec"}, "did you mean 'place'"),
        ("lst,item,rank\n1,a,1\n", {}, "no column called list: pass list= .* are 'lst', 'item'"),
        ("List,item,rank\n1,a,1\n", {"list": "list"}, r"\(for list\): did you mean 'List'"),
        ("list,item,rank\n1,a,1\n", {"item": "list"}, "'list' is named for two things"),
        ("list,item,rank\n1,a,1\n", {"list": ()}, "list names no column"),
        ("list,item,rank,rank\n1,a,1,1\n", {}, "two columns are called 'rank'"),
        ("list;item;rank\n1;a;1\n", {}, r'pass separator=";"\?'),
        ("list,item,rank\n", {}, "columns but no row"),
        ("list,item,rank\n1,a,1\n,b,1\n", {}, "line 3: the list is empty"),
        ("list,item,rank\n1,a,1\n1, ,1\n", {}, "line 3: the item is empty"),
        ("list,item,rank\n1,a,1\nNA,b,1\n", {}, "line 3: the list is NA, which stands for a miss"),
        ("list,item,rank\n1,a,1\n1, None,2\n", {}, "line 3: the item is None, which stands for"),
        ("list,item,rank\n1,a,1\n1,b\n", {}, "line 3: this row has 2 cells"),
        ("list,item,rank,n\n1,a,1,2\n1,b,2,3\n", {"weight": "n"}, "line 3: the weight differs"),
        ("list,item,rank,n\n1,a,1,0\n", {"weight": "n"}, "line 2: the weight is missing, or not"),
        ("list,item,rank,n\n1,a,1,\n", {"weight": "n"}, "line 2: the weight is missing, or not"),
        ("list,item,rank,n\n1,a,1,x\n", {"weight": "n"}, "the weight column 'n' has 'x'"),
        (b"list,item,rank\n1,\xff,1\n", {}, "line 2: the byte 0xff is not UTF-8"),
    ],
)
def test_what_is_wrong_is_said_with_the_file_and_line(read, text, options, message):
    with pytest.raises(TableError, match=message) as error:
        read(text, **options)
    assert str(error.value).startswith(str(error.value.path))


def test_a_folder_and_a_name_without_suffix_are_refused(tmp_path, read):
    with pytest.raises(DataFileError, match="is a folder"):
        read_long_rankings(tmp_path)
    with pytest.raises(DataFileError, match="no suffix of a table"):
        read("x", name="data.txt")
    assert len(read("list,item,rank\n1,a,1\n", name="data.txt", format="csv")) == 1
    with pytest.raises(ValueError, match="is not a frame"):
        read_long_rankings({"list": [1]})


# writing -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a.csv", "a.tsv.xz", "a.parquet"])
def test_a_table_says_list_item_rank_and_weight(tmp_path, name):
    rankings = Rankings.from_rankings([["b", ("a", "c"), "d"], ["c"]], weights=[3, 0.5])
    write_long_rankings(rankings, tmp_path / name)
    if name.endswith("parquet"):
        rows = pl.read_parquet(tmp_path / name).rows()
    else:
        rows = pd.read_csv(tmp_path / name, sep="\t" if "tsv" in name else ",")
        assert list(rows) == ["list", "item", "rank", "weight"]
        rows = [tuple(row) for row in rows.values.tolist()]
    assert rows == [
        (1, "b", 1, 3), (1, "a", 2, 3), (1, "c", 2, 3), (1, "d", 4, 3), (2, "c", 1, 0.5),
    ]  # fmt: skip


NAMES = st.lists(
    st.integers(-(2**63), 2**63 - 1)
    | st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1).filter(str.strip)
    | st.text(' ,"\t\r\n7é', min_size=1).filter(str.strip),
    min_size=1,
    max_size=6,
    unique_by=str,
)


@st.composite
def any_rankings(draw):
    names = draw(NAMES)
    lists = []
    for _ in range(draw(st.integers(1, 5))):
        order = draw(st.permutations(names))[: draw(st.integers(1, len(names)))]
        cuts = sorted(draw(st.sets(st.integers(1, len(order)))) | {len(order)})
        lists.append([
            tuple(order[a:b]) for a, b in zip([0, *cuts[:-1]], cuts, strict=True)
        ])  # fmt: skip
    weights = draw(
        st.lists(st.floats(1e-300, 1e300), min_size=len(lists), max_size=len(lists))
        | st.just([1.0] * len(lists))
    )
    return Rankings.from_rankings(lists, weights=weights)


def _as_text(rankings):
    return [
        [sorted(map(str, tie)) if isinstance(tie, tuple) else [str(tie)] for tie in ranking]
        for ranking in rankings.tiers.to_rankings()
    ]


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet"])
@settings(max_examples=40, deadline=None)
@given(rankings=any_rankings())
def test_what_is_written_is_read_back(tmp_path_factory, suffix, rankings):
    path = tmp_path_factory.getbasetemp() / f"round{suffix}"
    write_long_rankings(rankings, path)
    back = read_long_rankings(path, weight="weight")
    assert _as_text(back) == _as_text(rankings)
    assert back.weights.tolist() == rankings.weights.tolist()
    if suffix == ".parquet" and len(set(map(type, rankings.items))) == 1:
        assert set(back.items) <= set(rankings.items)


def test_keys_and_a_rest_come_back(tmp_path, read):
    rankings = read("list,item,rank\nx,a,1\ny,b,1\ny,c,1\n", rest="last", items=list("abcd"))
    write_long_rankings(rankings, tmp_path / "again.csv")
    back = read_long_rankings(tmp_path / "again.csv", rest="last", items=list("abcd"))
    assert back.tiers == rankings.tiers


def test_what_cannot_be_written_is_refused_and_leaves_no_file(tmp_path):
    def rankings(lists, **options):
        return Rankings.from_rankings(lists, **options)

    def with_keys(*keys):
        tiers = Tiers(
            items=torch.tensor([0, 0]),
            tier_offsets=torch.tensor([0, 1, 2]),
            list_offsets=torch.tensor([0, 1, 2]),
            n_items=1,
            keys=np.array(keys, dtype=object),
        )
        return Rankings(tiers, np.ones(2))

    for bad, message in [
        (rankings([]), "there are no lists"),
        (rankings([["a"], []], rest="last"), "list 1 names no item"),
        (rankings([["a", 1.5]]), "the name of item 1 is 1.5"),
        (rankings([[" "]]), "the name of item 0 is ' '"),
        (rankings([["a", "NA"]]), "in CSV the item 'NA' is a missing value"),
        (with_keys("x", "null"), "in CSV the list 'null' is a missing value"),
        (rankings([["\ud800"]]), "the name of item 0 is"),
        (rankings([["1", 1]]), "an integer and a string are both '1'"),
        (rankings([[2**63]]), "integers of 64 bits"),
        (with_keys("x", "x"), "two lists have the same key"),
        (with_keys("x", ("y",)), "the key of list 1 is"),
    ]:
        with pytest.raises(ValueError, match=message):
            write_long_rankings(bad, tmp_path / "bad.csv")
    with pytest.raises(TableError, match="no suffix of a table"):
        write_long_rankings(rankings([["a"]]), tmp_path / "bad.txt")
    assert list(tmp_path.iterdir()) == []


def test_a_name_that_is_a_word_for_what_is_missing_comes_back_from_parquet(tmp_path):
    rankings = Rankings.from_rankings([["NA", "None"], ["None", "NA"]])
    write_long_rankings(rankings, tmp_path / "named.parquet")
    back = read_long_rankings(tmp_path / "named.parquet")
    assert back.tiers.to_rankings() == rankings.tiers.to_rankings()


# damage ------------------------------------------------------------------------------------------

BYTES = st.sampled_from(list(b'0123,,,,,"".-+eE NAnfDNF\t\r\n\n\n\n\0\xff'))


@settings(max_examples=200, deadline=None)
@given(st.lists(BYTES, max_size=60).map(bytes), st.sampled_from(["error", "drop", "last"]))
def test_any_rows_are_read_or_refused_with_their_line(tmp_path_factory, content, missing):
    path = tmp_path_factory.getbasetemp() / "any.csv"
    path.write_bytes(b"list,item,rank\n1,a,1\n" + content)
    try:
        found = read_long_rankings(path, missing_rank=missing)
    except TableError as error:
        refused = error
    else:
        _check_lists(found)
        return
    assert refused.path == path
    assert refused.line is not None


def _check_lists(found):
    assert len(found) >= 1
    for ranking in found.tiers.to_rankings():
        items = [name for tie in ranking for name in (tie if isinstance(tie, tuple) else (tie,))]
        assert len(items) == len(set(items)) > 0


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_ranks_and_scores_order_as_pandas_orders_them(data):
    rows = data.draw(st.integers(1, 30))
    frame = pd.DataFrame({
        "list": data.draw(st.lists(st.integers(0, 3), min_size=rows, max_size=rows)),
        "item": data.draw(st.permutations(range(rows))),
        "score": data.draw(st.lists(st.sampled_from([-1.5, 0, 2, 2.5]), min_size=rows,
                                    max_size=rows)),
    })  # fmt: skip
    expected = {}
    for key, rows_of in frame.groupby("list", sort=False):
        dense = rows_of["score"].rank(method="dense", ascending=False)
        expected[key] = [
            set(rows_of["item"][dense == place]) for place in range(1, int(dense.max()) + 1)
        ]
    frame["rank"] = frame.groupby("list")["score"].rank(method="min", ascending=False)
    for option in ({"score": "score"}, {"rank": "rank"}):
        tiers = read_long_rankings(frame, **option).tiers
        found = {
            key: [set(tie) if isinstance(tie, tuple) else {tie} for tie in ranking]
            for key, ranking in zip(tiers.keys.tolist(), tiers.to_rankings(), strict=True)
        }
        assert found == expected
        assert list(found) == list(expected)


# pairs with ranks --------------------------------------------------------------------------------

PAIRS = "id,one,r1,two,r2\n7,a,2,b,1\n7,a,2,c,2\n8,c,1,a,4\n7,b,1,c,2\n"
NAMED = {"list": "id", "first": "one", "first_rank": "r1", "second": "two", "second_rank": "r2"}


def test_a_ranking_written_as_pairs_is_one_list(tmp_path):
    path = tmp_path / "pairs.csv"
    path.write_text(PAIRS)
    found = read_paired_ranks(path, **NAMED)
    assert found.tiers.to_rankings() == [["b", ("a", "c")], ["c", "a"]]
    assert found.tiers.keys.tolist() == [7, 8]
    assert (found.items, found.weights.tolist()) == (("a", "b", "c"), [1, 1])
    again = read_paired_ranks(pd.read_csv(path), **NAMED)
    assert again.tiers == found.tiers
    assert again.items == found.items


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("7,b,1,c,2", "7,b,1,c,3", "the item 'c' has rank 3 here and 2 in an earlier row"),
        ("7,b,1,c,2", "7,b,1,b,1", "an item is compared with itself"),
        ("7,b,1,c,2", "7,b,1,c,", "the rank is missing"),
    ],
)
def test_pairs_that_are_no_ranking_are_refused(tmp_path, old, new, message):
    path = tmp_path / "pairs.csv"
    path.write_text(PAIRS.replace(old, new))
    with pytest.raises(TableError, match=f"line 5: {message}"):
        read_paired_ranks(path, **NAMED)
    with pytest.raises(ValueError, match=f"^row 3 of the frame: {message}"):
        read_paired_ranks(pd.read_csv(path), **NAMED)


def test_columns_of_pairs_must_fit_together(tmp_path):
    path = tmp_path / "pairs.csv"
    path.write_text(PAIRS)
    with pytest.raises(TableError, match="'one' is named for two things"):
        read_paired_ranks(path, **(NAMED | {"second": "one"}))


# real data ---------------------------------------------------------------------------------------


@pytest.mark.data
def test_formula_1_has_1160_races_of_860_drivers():
    path = real("f1", "race_results.csv.xz")
    named = {"list": ("season", "race"), "item": "driverId", "rank": "position"}
    found = read_long_rankings(path, **named, missing_rank="last", twice="best")
    assert (len(found), len(found.items)) == (1160, 860)
    rows = pd.read_csv(path, dtype=str)
    assert len(rows) == 27_533
    rows["place"] = pd.to_numeric(rows["position"], errors="coerce")
    best = rows.fillna({"place": math.inf}).groupby(["season", "race", "driverId"])["place"].min()
    assert int(found.tiers.lengths.sum()) == len(best)
    for number in (0, 5, 700, 1159):
        tiers = found.tiers[[number]]
        season, race = tiers.keys[0].split(" / ")
        places = best[season, race]
        ties = [set(tie) if isinstance(tie, tuple) else {tie} for tie in tiers.to_rankings()[0]]
        assert ties == [set(places.index[places == place]) for place in sorted(set(places))]
    finished = read_long_rankings(path, **named, missing_rank="drop", twice="best")
    assert int(finished.tiers.lengths.sum()) == int(np.isfinite(best).sum())


@pytest.mark.data
@pytest.mark.parametrize(("language", "pairs"), [("deu", 20_937), ("rus", 27_353)])
def test_judgements_of_wmt_are_rankings_written_as_pairs(language, pairs):
    path = real("wmt", f"wmt16.{language}-eng.csv.xz")
    found = read_paired_ranks(
        path, list="rankingID", first="system1Id", first_rank="system1rank", second="system2Id",
        second_rank="system2rank",
    )  # fmt: skip
    rows = pd.read_csv(path)
    assert len(rows) == pairs
    assert len(found) == rows["rankingID"].nunique()
    assert len(found.items) == pd.concat([rows["system1Id"], rows["system2Id"]]).nunique()
    sizes = found.tiers.lengths.numpy()
    assert int((sizes * (sizes - 1) // 2).sum()) == pairs  # every two of a list were compared
    tied = rows["system1rank"] == rows["system2rank"]
    in_ties = found.tiers.tier_sizes.numpy()
    assert int((in_ties * (in_ties - 1) // 2).sum()) == int(tied.sum())


# numbers that float64 cannot tell apart -----------------------------------------------------------

LARGE = [9007199254740993, 9007199254740992, 9007199254740994]  # 2^53 + 1, 2^53, 2^53 + 2


def test_ranks_and_scores_beyond_2_to_the_53_are_compared_as_integers(read):
    text = "list,item,rank\n" + "".join(f"1,{n},{r}\n" for n, r in zip("abc", LARGE, strict=True))
    assert read(text).tiers.to_rankings() == [["b", "a", "c"]]
    assert read(text.replace("rank", "score")).tiers.to_rankings() == [["c", "a", "b"]]
    late = read(text + "1,d,DNF\n", missing_rank="last")
    assert late.tiers.to_rankings() == [["b", "a", "c", "d"]]


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pd", "pl", "pa"])
def test_large_integers_and_decimals_of_frames_are_compared_exactly(make):
    columns = {"list": [1, 1, 1], "item": ["a", "b", "c"]}
    found = read_long_rankings(make({**columns, "rank": LARGE}))
    assert found.tiers.to_rankings() == [["b", "a", "c"]]
    close = [Decimal("1.00000000000000000001"), Decimal("1"), Decimal("1.00000000000000000001")]
    found = read_long_rankings(make({**columns, "rank": close}))
    assert found.tiers.to_rankings() == [["b", ("a", "c")]]


def test_decimals_that_differ_late_are_two_and_the_same_written_otherwise_is_one(read):
    scores = {"a": "0.10000000000000000001", "b": "0.1", "c": "1.0e-1", "d": "0.100000000000000000"}
    text = "list,item,score\n" + "".join(f"1,{item},{score}\n" for item, score in scores.items())
    assert read(text).tiers.to_rankings() == [["a", ("b", "c", "d")]]


LONG = st.decimals(-5, 5, places=25) | st.integers(2**53, 2**53 + 9)


@settings(max_examples=50)
@given(st.lists(LONG, min_size=2, max_size=9))
def test_any_long_numbers_stand_in_the_order_that_exact_arithmetic_gives(tmp_path_factory, numbers):
    path = tmp_path_factory.getbasetemp() / "long-numbers.csv"
    rows = "".join(f"1,{i},{number}\n" for i, number in enumerate(numbers))
    path.write_text(f"list,item,rank\n{rows}")
    (ranking,) = read_long_rankings(path).tiers.to_rankings()
    tiers = [tier if isinstance(tier, tuple) else (tier,) for tier in ranking]
    exact = [{Fraction(numbers[item]) for item in tier} for tier in tiers]
    assert all(len(each) == 1 for each in exact)
    assert [min(each) for each in exact] == sorted(set(map(Fraction, numbers)))
