"""Tables read piece by piece hold what they hold when they are read at once."""

from dataclasses import replace

import numpy as np
import pytest

import tierrank as tr
from tierrank.data import DataFileError, Games, Rankings, read_rankings
from tierrank.data.rankings import reading, streaming
from tierrank.data.rankings.container import PartedRankings
from tierrank.data.rankings.reading import read_lists_or_games

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    """Every table is large, and a piece has about 50 rows."""
    monkeypatch.setattr(streaming, "LARGE", 0)
    monkeypatch.setattr(streaming, "PIECE", 50)
    monkeypatch.setattr(streaming, "PART", 300)
    monkeypatch.setattr(streaming, "OF_GAMES", 1)


@pytest.fixture
def many(monkeypatch):
    """Lists stay in parts, however few they are."""
    monkeypatch.setattr(streaming, "FEW", 0)
    monkeypatch.setattr(reading, "FEW", 0)


def votes(lists=120, seed=0, name=str):
    """Lists of two to five of eight items, with ties, some of them alike; row after row."""
    random = np.random.default_rng(seed)
    rows = []
    for number in range(lists):
        chosen = random.choice(8, random.integers(2, 6), replace=False)
        ranks = np.sort(random.integers(1, 4, len(chosen)))
        rows += [(number, name(i + 3), rank) for i, rank in zip(chosen, ranks, strict=True)]
    return pd.DataFrame(rows, columns=["list", "item", "rank"])


def in_files(frame, folder, files=3):
    """The rows in Parquet files, which cut lists, with row groups, which cut them too."""
    folder.mkdir()
    for number, rows in enumerate(np.array_split(np.arange(len(frame)), files)):
        part = frame.iloc[rows]
        part.to_parquet(folder / f"{number}.parquet", index=False, row_group_size=37)
    return folder


def same(found, whole):
    """Whether they hold the same lists as often, over the same items in the same order."""
    assert found.items == whole.items
    one, two = (
        sorted(zip(map(repr, each.tiers.to_rankings()), each.weights.tolist(), strict=True))
        for each in (sorted_inside(found), sorted_inside(whole.together()))
    )
    assert one == two


def sorted_inside(rankings):
    """The same with the items of a tie by their numbers."""
    tiers = rankings.tiers
    tier = np.repeat(np.arange(len(tiers.tier_sizes)), tiers.tier_sizes.numpy())
    order = np.lexsort((tiers.items.numpy(), tier))
    return replace(rankings, tiers=replace(tiers, items=tiers.items[order]))


@pytest.mark.parametrize(
    ("name", "mixed"),
    [(str, False), (int, True), ("item {}".format, True)],
    ids=["digits", "integers, mixed", "words, mixed"],
)
def test_a_folder_holds_the_lists_of_its_rows(tmp_path, name, mixed):
    frame = votes(name=name)
    if mixed:  # so that lists come again and again
        frame = frame.sample(frac=1, random_state=1)
    found = read_rankings(in_files(frame, tmp_path / "votes"))
    same(found, read_rankings(frame))
    assert "list list, item item, rank rank" in found.read_as


def test_a_pattern_names_files(tmp_path):
    frame = votes()
    in_files(frame, tmp_path / "votes")
    same(read_rankings(tmp_path / "votes" / "?.parquet"), read_rankings(frame))


@pytest.mark.parametrize(
    ("mixed", "quoted", "break_"),
    [(False, False, "\n"), (True, True, "\n"), (False, True, "\r\n"), (False, False, "\r")],
)
def test_a_large_csv_file_holds_the_lists_of_its_rows(tmp_path, monkeypatch, mixed, quoted, break_):
    frame = votes(name=(lambda i: f'an "item",\nor {i}') if quoted else str)
    if mixed:
        frame = frame.sample(frac=1, random_state=1)
    file = tmp_path / "votes.csv"
    frame.to_csv(file, index=False, lineterminator=break_)
    found = read_rankings(file)
    monkeypatch.setattr(streaming, "LARGE", 10**9)
    same(found, read_rankings(file))


def test_numbers_that_are_words_in_a_later_piece_are_words(tmp_path):
    frame = votes()
    frame.loc[len(frame) - 1, "item"] = "no number"
    file = tmp_path / "votes.csv"
    frame.to_csv(file, index=False)
    found = read_rankings(file)
    assert found.items[-1] == "no number"
    assert all(isinstance(item, str) for item in found.items)
    same(found, read_rankings(frame))


def test_lists_in_parts_give_the_estimates_of_lists(tmp_path, many):
    frame = votes(300)
    one = tr.RankAggregator(uncertainty="sandwich").fit(read_rankings(frame))
    parted = read_rankings(in_files(frame, tmp_path / "votes"))
    assert isinstance(parted, PartedRankings)
    assert len(parted.parts) > 1
    two = tr.RankAggregator(uncertainty="sandwich").fit(parted)
    assert two.items_ == one.items_
    np.testing.assert_allclose(two.log_worths_, one.log_worths_, rtol=0, atol=1e-9)
    np.testing.assert_allclose(two.standard_errors_, one.standard_errors_, rtol=0, atol=1e-9)
    assert two.log_likelihood_ == pytest.approx(one.log_likelihood_, abs=1e-9)
    same(parted.gather(), read_rankings(frame))


def test_what_is_not_kept_is_made_anew(tmp_path, many, monkeypatch):
    parted = read_rankings(in_files(votes(300), tmp_path / "votes"))
    kept = tr.RankAggregator().fit(parted)
    monkeypatch.setattr("tierrank.aggregation.dask.KEPT", 0)
    anew = tr.RankAggregator().fit(parted)
    np.testing.assert_array_equal(anew.log_worths_, kept.log_worths_)
    np.testing.assert_array_equal(anew.covariance(), kept.covariance())


def test_a_fit_that_begins_with_a_sample_ends_in_the_same_place(tmp_path, many, monkeypatch):
    parted = read_rankings(in_files(votes(300), tmp_path / "votes"))
    one = tr.RankAggregator().fit(parted)
    monkeypatch.setattr("tierrank.aggregation.dask.SAMPLES", (100, 300))
    two = tr.RankAggregator().fit(parted)
    assert two.objective_values_[0] != one.objective_values_[0]
    np.testing.assert_allclose(two.log_worths_, one.log_worths_, rtol=0, atol=1e-9)


def games(rows=400, seed=0):
    random = np.random.default_rng(seed)
    first = random.integers(6, size=rows)
    second = (first + random.integers(1, 6, size=rows)) % 6
    won = random.choice(["first", "second", "tie"], rows)
    sides = {"first": [f"p{i}" for i in first], "second": [f"p{i}" for i in second]}
    return pd.DataFrame({**sides, "winner": won})


def test_games_are_counted_over_pieces(tmp_path, many):
    frame = games()
    whole = read_lists_or_games(frame)
    found = read_lists_or_games(in_files(frame, tmp_path / "games"))
    assert isinstance(found, PartedRankings)
    assert found.of_games
    assert found.entries < 2 * len(frame)
    gathered = found.gather()
    assert isinstance(gathered, Games)
    assert gathered.items == whole.items
    assert gathered.weights.sum() == len(frame)
    either_way = found.gather(either_way=True)
    assert len(either_way) == 3 * 15  # pairs of six sides, and three ends
    assert (either_way.first < either_way.second).all()
    assert either_way.weights.sum() == len(frame)
    home = [tr.PairedTies(home=True).fit(games) for games in (whole, found)]
    np.testing.assert_allclose(home[1].home_advantage_, home[0].home_advantage_, rtol=0, atol=1e-9)
    one, two = tr.PairedTies().fit(whole), tr.PairedTies().fit(found)
    np.testing.assert_allclose(two.log_worths_, one.log_worths_, rtol=0, atol=1e-9)
    one, two = tr.RankAggregator().fit(whole), tr.RankAggregator().fit(found)
    np.testing.assert_allclose(two.log_worths_, one.log_worths_, rtol=0, atol=1e-9)


def by_row_group(tables, path):
    """A file of Parquet with a row group a table, whose columns of words have dictionaries."""
    from pyarrow import parquet

    with parquet.ParquetWriter(path, tables[0].schema) as writer:
        for table in tables:
            writer.write_table(table)
    return path


def named_games(shift):
    """Rows of sides that another part of the table may not have, in another order there."""
    sides = [f"model {(7 * n + shift) % 11}" for n in range(5)]
    rows = [(a, b, end) for n, a in enumerate(sides) for b in sides[:n] for end in ("a", "b")]
    rows += [(a, b, "tie") for a, b, _ in rows[shift % 3 :: 3]]
    return list(zip(*rows, strict=True))


@pytest.mark.parametrize("kind", ["string", "large_string", "int8", "int32"])
def test_row_groups_with_other_dictionaries_hold_the_same_games(tmp_path, kind):
    import pyarrow as pa

    word = getattr(pa, kind)()
    as_type = word if "string" in kind else pa.dictionary(word, pa.string())
    columns = [named_games(shift) for shift in (0, 3, 8)]
    tables = [
        pa.table([pa.array(cells).cast(as_type) for cells in each], ["a", "b", "winner"])
        for each in columns
    ]
    found = read_lists_or_games(by_row_group(tables, tmp_path / "games.parquet"))
    whole = read_lists_or_games(
        pd.concat([pd.DataFrame(dict(zip("ab", each, strict=False)) | {"winner": each[2]})
                   for each in columns])
    ).together()  # fmt: skip
    assert found.items == whole.items
    assert_same_games(found, whole)


def assert_same_games(found, whole):
    for name in ("first", "second", "outcome", "weights"):
        np.testing.assert_array_equal(getattr(found, name), getattr(whole, name))


def test_words_of_a_dictionary_that_no_row_has_are_no_sides(tmp_path):
    import pyarrow as pa

    def column(codes, words):
        return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int8()), pa.array(words))

    words = [f"side {n}" for n in range(128)]  # as many as int8 numbers
    table = pa.table({
        "a": column([127, 5, 127], words),
        "b": column([5, 0, 0], words),
        "winner": column([2, 0, 2], ["b", "tie", "a"]),
    })  # fmt: skip
    for found in (
        read_lists_or_games(table),
        read_lists_or_games(by_row_group([table], tmp_path / "games.parquet")),
    ):
        assert found.items == ("side 127", "side 5", "side 0")
        assert sorted(zip(found.first.tolist(), found.second.tolist(), found.outcome.tolist(),
                          strict=True)) == [(0, 1, 1), (0, 2, 1), (1, 2, -1)]  # fmt: skip


def test_a_dictionary_with_a_word_twice_is_read_as_its_words():
    import pyarrow as pa

    twice = pa.DictionaryArray.from_arrays([0, 2, 1, 0], ["ann", "bob", "ann"])
    frame = pa.table({"a": twice, "b": ["cy"] * 4, "winner": ["a", "b", "a", "tie"]})
    assert read_lists_or_games(frame).items == ("ann", "cy", "bob")


@pytest.mark.parametrize("column", ["first", "second"])
def test_a_missing_side_is_named_with_its_row(tmp_path, column):
    frame = games(200)
    frame[column] = frame[column].astype(object)
    frame.loc[150, column] = None
    folder = in_files(frame, tmp_path / "games", files=1)
    with pytest.raises(DataFileError, match=r"0\.parquet, row 151: the side is missing"):
        read_lists_or_games(folder)


@pytest.mark.parametrize("number", [120, 20])
def test_of_two_faults_the_first_is_named(tmp_path, number):
    """Also where the second would be found while the first is looked for."""
    frame = games(200)
    frame.loc[number, "winner"] = "what?"
    frame.loc[150, "winner"] = "nobody"
    folder = in_files(frame, tmp_path / "games", files=1)
    with pytest.raises(DataFileError, match=rf"row {number + 1}: the winner is 'what\?'"):
        read_lists_or_games(folder)


def test_a_fault_comes_before_the_damage_behind_it(tmp_path):
    frame = games(200)
    frame.loc[120, "winner"] = "what?"
    file = in_files(frame, tmp_path / "games", files=1) / "0.parquet"
    from pyarrow import parquet

    group = parquet.ParquetFile(file).metadata.row_group(5)  # rows 186 to 200
    start = group.column(0).dictionary_page_offset
    damaged = bytearray(file.read_bytes())
    damaged[start : start + 40] = b"\xff" * 40
    file.write_bytes(damaged)
    with pytest.raises(DataFileError, match=r"row 121: the winner is 'what\?'"):
        read_lists_or_games(file)


def test_a_pair_of_sides_is_in_one_part(tmp_path, many):
    frame = games(8000)
    parted = read_lists_or_games(in_files(frame, tmp_path / "games"))
    parts = [part.unpacked() for part in parted.parts]
    assert len(parts) > 1
    assert sum(map(len, parts)) == len(read_lists_or_games(frame).together())
    pairs = [
        {tuple(sorted(pair)) for pair in zip(p.first.tolist(), p.second.tolist(), strict=True)}
        for p in parts
    ]
    assert sum(map(len, pairs)) == len(set().union(*pairs))
    tied = float((frame.winner == "tie").sum())
    assert parted.ties() == (tied, 8000.0)


def test_sides_that_come_late_are_put_beside_those_of_earlier_parts(tmp_path, many):
    """What was packed first knows fewer sides than what was packed last."""
    random = np.random.default_rng(0)
    rows = 6000
    known = 5 + np.arange(rows) // 20
    first = random.integers(known)
    second = (first + random.integers(1, known)) % known
    frame = pd.DataFrame({"first": first, "second": second}).map("p{}".format)
    frame["winner"] = random.choice(["first", "second", "tie"], rows)
    parted = read_lists_or_games(in_files(frame, tmp_path / "games"))
    assert len(parted.parts) > 1
    whole = read_lists_or_games(frame)
    found = parted.gather()
    assert found.items == whole.items
    assert_same_games(found, whole.together())


LEFT_OUT = {
    "games": (games(120), {"winner": "skip"}, {"drop_words": ["skip"]}, "every game is left out"),
    "counts": (
        pd.DataFrame({"a": ["x", "y"] * 60, "b": ["y", "x"] * 60,
                      "wins_first": np.arange(120) % 7, "wins_second": 1}),
        {"wins_first": 0, "wins_second": 0}, {}, "all counts are 0",
    ),
    "lists": (
        pd.DataFrame({"list": np.arange(120) // 2, "item": ["x", "y"] * 60,
                      "rank": [1.0, 2, 2, 1] * 30}),
        {"rank": np.nan}, {"missing_rank": "drop"}, "no row has a rank",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", LEFT_OUT)
@pytest.mark.parametrize("silent", [0, 1, 2])
def test_a_file_of_which_nothing_is_left_takes_no_others_along(tmp_path, what, silent):
    frame, nothing, options, _ = LEFT_OUT[what]
    rows = np.array_split(np.arange(len(frame)), 3)[silent]
    frame = frame.copy()
    for column, value in nothing.items():
        frame.loc[rows, column] = value
    found = read_lists_or_games(in_files(frame, tmp_path / "rows"), **options)
    whole = read_lists_or_games(frame, **options)
    assert found.items == whole.items
    assert found.read_as == whole.read_as
    if isinstance(whole, Games):
        assert_same_games(found, whole.together())
    else:
        same(found, whole)


@pytest.mark.parametrize("what", LEFT_OUT)
def test_files_of_which_nothing_is_left_are_refused_like_one_table(tmp_path, what):
    frame, nothing, options, message = LEFT_OUT[what]
    folder = in_files(frame.assign(**nothing), tmp_path / "rows")
    with pytest.raises(DataFileError, match=rf"0\.parquet: {message}"):
        read_lists_or_games(folder, **options)


@pytest.mark.parametrize("empty", [0, 2])
@pytest.mark.parametrize("frame", [games(120), votes()], ids=["games", "lists"])
def test_files_without_rows_are_passed_over(tmp_path, empty, frame):
    folder = in_files(frame, tmp_path / "rows")
    if empty == 0:
        (folder / "0.parquet").rename(folder / "3.parquet")
    frame.iloc[:0].to_parquet(folder / f"{empty}.parquet", index=False)
    expected = pd.concat(
        [pd.read_parquet(folder / f"{n}.parquet") for n in range(4 if empty == 0 else 3)]
    ).reset_index(drop=True)
    found, whole = read_lists_or_games(folder), read_lists_or_games(expected)
    if isinstance(whole, Games):
        assert_same_games(found, whole.together())
    else:
        same(found, whole)
    for file in folder.iterdir():
        frame.iloc[:0].to_parquet(file, index=False)
    with pytest.raises(DataFileError, match=r"rows: there are columns but no row"):
        read_lists_or_games(folder)


def test_few_games_are_rankings_to_who_asks_for_rankings(tmp_path):
    assert isinstance(read_rankings(in_files(games(), tmp_path / "games")), Rankings)


def test_a_fault_is_named_with_its_line_and_its_row(tmp_path):
    frame = votes()
    frame["rank"] = frame["rank"].astype(object)
    frame.loc[300, "rank"] = "last"
    file = tmp_path / "votes.csv"
    frame.to_csv(file, index=False)
    with pytest.raises(DataFileError, match=r"votes\.csv, line 302: .*'last'"):
        read_rankings(file)
    frame["rank"] = frame["rank"].replace("last", None).astype(float)
    folder = in_files(frame, tmp_path / "votes", files=2)
    row = 301 - -(-len(frame) // 2)
    with pytest.raises(DataFileError, match=rf"1\.parquet, row {row}: the rank is missing"):
        read_rankings(folder)


def test_two_schemas_are_refused_by_name(tmp_path):
    frame = votes()
    folder = in_files(frame, tmp_path / "votes")
    frame.assign(rank=frame["rank"].astype(str)).to_parquet(folder / "7.parquet", index=False)
    with pytest.raises(DataFileError, match=r"7\.parquet: the column 'rank' is of type \w+, but"):
        read_rankings(folder)
    frame.drop(columns="item").to_parquet(folder / "7.parquet", index=False)
    with pytest.raises(DataFileError, match=r"7\.parquet: has no column 'item', but .*0\.parquet"):
        read_rankings(folder)
    frame.assign(more=1).to_parquet(folder / "7.parquet", index=False)
    with pytest.raises(DataFileError, match=r"0\.parquet: has no column 'more', but .*7\.parquet"):
        read_rankings(folder)


def test_numbers_of_several_types_are_one_schema(tmp_path):
    frame = votes()
    folder = in_files(frame, tmp_path / "votes")
    second = pd.read_parquet(folder / "1.parquet")
    second.assign(rank=second["rank"].astype(float)).to_parquet(folder / "1.parquet", index=False)
    same(read_rankings(folder), read_rankings(frame))


def test_a_folder_without_tables_is_refused(tmp_path):
    with pytest.raises(DataFileError, match=r"is a folder without \.parquet files"):
        read_rankings(tmp_path)


def test_numbers_that_are_whole_in_one_piece_only_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(streaming, "PIECE", 4)
    table = pd.DataFrame(
        {
            "list": [1, 1, 2, 2, 3, 3, 4, 4],
            "item": [1.0, 2.0, 2.0, 1.0, 1.0, 2.5, 2.5, 2.0],
            "rank": [1, 2, 1, 2, 1, 2, 1, 2],
        }
    )
    table.to_parquet(tmp_path / "votes.parquet", row_group_size=4)
    with pytest.raises(ValueError, match=r"1 and 1\.0 are one item"):
        tr.data.read_rankings(tmp_path / "votes.parquet")
    table["item"] = [1.0, 2.0, 2.0, 1.0, 1.0, 3.0, 3.0, 2.0]
    table.to_parquet(tmp_path / "votes.parquet", row_group_size=4)
    assert tr.data.read_rankings(tmp_path / "votes.parquet").items == (1, 2, 3)
