"""Data of the experiments over huge label sets: files in all their formats, and drawn sets."""

import numpy as np
import pytest
from extreme_data import Source, read_parts
from printed import SIX, XML, XML_METHODS, XML_SETS
from scipy.sparse import save_npz

from real_data import real
from tierrank.data import MultiLabelData, write_xc
from tierrank.data.synthetic import label_sets


@pytest.fixture(scope="module")
def parts():
    return label_sets("eurlex-4k", rows=(40, 20), features=30, labels=12, features_a_row=5)


def same(one, other):
    for left, right in ((one.X, other.X), (one.Y, other.Y)):
        assert left.shape == right.shape
        assert abs(left - right).nnz == 0
    return True


def agree(found, parts):
    return all(same(one, other) for one, other in zip(found, parts, strict=True))


def test_a_folder_may_hold_any_of_the_repositorys_formats(parts, tmp_path):
    train, test = parts
    old, named, pair, npz, split = (tmp_path / name for name in "abcde")
    for folder in (old, named, pair, npz, split):
        folder.mkdir()
    write_xc(old / "train.txt.gz", train)
    write_xc(old / "test.txt.gz", test)
    write_xc(named / "eurlex_train.txt", train)
    write_xc(named / "eurlex_test.txt", test)
    for data, start in ((train, "trn"), (test, "tst")):
        write_xc(pair / f"{start}_X_Xf.txt", data, labels=pair / f"{start}_X_Y.txt")
        save_npz(npz / f"X.{start}.npz", data.X)
        save_npz(npz / f"Y.{start}.npz", data.Y)
    order = np.random.default_rng(0).permutation(60)
    rows = np.argsort(order)  # where each row of both went
    both = MultiLabelData(
        np.vstack([train.X.toarray(), test.X.toarray()])[order],
        np.vstack([train.Y.toarray(), test.Y.toarray()])[order],
    )
    write_xc(split / "tags_data.txt", both)
    for name, places in (("trSplit", rows[:40]), ("tstSplit", rows[40:])):
        text = "".join(f"{place + 1} {place + 1}\n" for place in places)
        (split / f"tags_{name}.txt").write_text(text)
    for folder in (old, named, pair, npz):
        assert agree(read_parts([folder]), parts), folder
    assert agree(read_parts([split], column=1), parts)


def test_files_may_be_named_one_by_one(parts, tmp_path):
    train, test = parts
    names = [tmp_path / name for name in ("a.txt", "b.txt", "c.txt", "d.txt", "e.txt", "f.txt")]
    write_xc(names[0], train)
    write_xc(names[1], test)
    write_xc(names[2], train, labels=names[3])
    write_xc(names[4], test, labels=names[5])
    assert agree(read_parts(names[:2]), parts)
    assert agree(read_parts(names[2:]), parts)
    data = Source(tuple(map(str, names[:2]))).load()
    assert data.name == "a"
    assert data.paper is None


def test_files_without_header_get_the_same_columns(tmp_path):
    (tmp_path / "train.txt").write_text("0,11 0:1 3:2\n2 1:1\n4 0:1\n")
    (tmp_path / "test.txt").write_text("1 7:1\n")
    data = Source((str(tmp_path),)).load()
    assert data.train.X.shape == (3, 8)
    assert data.test.X.shape == (1, 8)
    assert data.train.Y.shape == (3, 12)
    assert data.test.Y.shape == (1, 12)


def test_what_cannot_be_read_is_said(parts, tmp_path):
    train, _ = parts
    with pytest.raises(ValueError, match=r"Looked for train\.txt"):
        read_parts([tmp_path])
    write_xc(tmp_path / "a_train.txt", train)
    write_xc(tmp_path / "b_train.txt", train)
    with pytest.raises(ValueError, match=r"a_train\.txt, b_train\.txt could all be meant"):
        read_parts([tmp_path])
    with pytest.raises(ValueError, match="is no folder"):
        read_parts([tmp_path / "a_train.txt"])
    with pytest.raises(ValueError, match="has 3 files"):
        read_parts([tmp_path] * 3)
    with pytest.raises(ValueError, match="give --data with a folder"):
        Source().load()
    with pytest.raises(ValueError, match="not both"):
        Source(("a",), "eurlex-4k").load()
    (tmp_path / "few.txt").write_text("0 0:1\n1 1:1\n")
    few = str(tmp_path / "few.txt")
    with pytest.raises(ValueError, match="has 2 labels, but"):
        Source((few, few)).load()


def test_held_out_rows_are_training_rows_and_the_test_rows_are_left_alone():
    source = Source(synthetic="eurlex-4k", scale=0.01)
    whole = source.load()
    tried = Source(synthetic="eurlex-4k", scale=0.01, held_out=0.25).load()
    assert tried.judged == "held-out training rows"
    assert tried.test.n_rows == round(0.25 * whole.train.n_rows)

    def rows(data):
        return {tuple(row) for row in data.X.toarray().tolist()}

    assert rows(tried.train) | rows(tried.test) == rows(whole.train)
    assert not rows(tried.train) & rows(tried.test)
    assert tried.digest() != whole.digest()
    assert source.load().digest() == whole.digest()
    with pytest.raises(ValueError, match="leaves none"):
        Source(synthetic="eurlex-4k", scale=0.01, held_out=1.0).load()


def test_a_drawn_set_is_like_one_of_the_papers():
    data = Source(synthetic="wiki10-31k", scale=0.002).load()
    assert (data.name, data.paper, data.drawn) == ("wiki10-31k-like", "W-31K", True)
    assert "drawn at random" in data.facts()["data"]


@pytest.mark.data
def test_delicious_is_known_by_its_sizes():
    folder = real("delicious")
    data = Source((str(folder),)).load()
    assert (data.name, data.paper, data.drawn) == ("D-1K", "D-1K", False)
    facts = data.facts()
    assert facts["training rows"] == "12,920, of which 10 have no label"
    assert facts["test rows"] == "3,185, of which 4 have no label"


def test_the_printed_tables_are_whole_and_agree_with_each_other():
    assert len(XML) == 4 * (4 * 16 + 2 * 6)
    for data in XML_SETS:
        for method in XML_METHODS:
            assert XML[data, method, "P@1"] == XML[data, method, "nDCG@1"]
            assert XML[data, method, "PSP@1"] == XML[data, method, "PSnDCG@1"]
            at = [XML[data, method, f"P@{k}"] for k in (1, 3, 5, 10)]
            assert at == sorted(at, reverse=True)
        for measure in ("P@5", "PSP@5", "nDCG@5", "PSnDCG@5"):  # what the paper concludes
            assert XML[data, "PL-Partition", measure] > XML[data, "PL-LB", measure]
        assert all(XML[data, "SLEEC", measure] > XML[data, "LEML", measure] for measure in SIX)
