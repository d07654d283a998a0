"""The container itself: fields, equality, text, devices, and the ways back to the data."""

import copy
import dataclasses
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from tierrank.tiers import Tiers


def integers(*values):
    return torch.tensor(values, dtype=torch.int64)


@given(st.lists(st.tuples(st.integers(-3, 3), st.integers(0, 3)), max_size=12))
def test_round_trip_by_labels(pairs):
    labels, qid = [y for y, _ in pairs], np.array([q for _, q in pairs], dtype=int)
    tiers = Tiers.from_labels(labels, qid=qid)
    back = tiers.to_labels()
    assert back.dtype == torch.int64
    assert back.shape == tiers.score_shape
    assert Tiers.from_labels(back, qid=qid) == tiers
    for one in tiers:
        grades = set(one.to_labels().tolist())
        assert grades == set(range(len(grades)))


def test_round_trip_by_padded_labels():
    labels = torch.tensor([[5.0, float("nan"), 1.0], [2.0, 2.0, 7.0]])
    tiers = Tiers.from_labels(labels, mask=~labels.isnan())
    back = tiers.to_labels()
    assert back.tolist() == [[1, -1, 0], [0, 0, 1]]
    assert Tiers.from_labels(back, mask=back >= 0) == tiers


def test_round_trip_of_row_numbers_by_rankings():
    tiers = Tiers.from_labels([1, 0, 2, 0], qid=["a", "b", "a", "a"])
    assert tiers.to_rankings() == [[2, 0, 3], [1]]
    assert Tiers.from_labels([[1, 1], [0, 3]]).to_rankings() == [[(0, 1)], [3, 2]]


def test_a_catalogue_has_no_labels():
    with pytest.raises(ValueError, match=r"dense array of 1 by 2: use to_rankings\(\)"):
        Tiers.from_rankings([["a", "b"]]).to_labels()


def test_sizes():
    tiers = Tiers.from_labels([2, 2, 0, 1, 5], lengths=[4, 1])
    assert len(tiers) == 2
    assert tiers.lengths.tolist() == [4, 1]
    assert tiers.n_tiers.tolist() == [3, 1]
    assert tiers.tier_sizes.tolist() == [2, 1, 1, 1]
    assert tiers.device == torch.device("cpu")


def test_nothing_can_be_changed():
    tiers = Tiers.from_labels([1, 0], qid=["a", "a"])
    with pytest.raises(dataclasses.FrozenInstanceError):
        tiers.items = tiers.items + 1
    with pytest.raises(ValueError, match="read-only"):
        tiers.keys[0] = "b"


def test_equal_means_the_same_tiers_whatever_the_order_inside():
    one = Tiers.from_rankings([[("a", "b"), "c"]], items=["a", "b", "c"])
    assert one == Tiers.from_rankings([[("b", "a"), "c"]], items=["a", "b", "c"])
    assert one == copy.deepcopy(one)
    assert one != Tiers.from_rankings([[("a", "c"), "b"]], items=["a", "b", "c"])
    assert one != Tiers.from_rankings([["c", ("a", "b")]], items=["a", "b", "c"])
    assert one != Tiers.from_rankings([["a", "b", "c"]], items=["a", "b", "c"])
    assert one != Tiers.from_rankings([[("a", "b"), "c"]], items=["a", "b", "c", "d"])
    assert one != Tiers.from_rankings([[("a", "b"), "c"]], rest="last")
    assert one != Tiers.from_rankings([[(0, 1), 2]], items=3)
    assert one != "something else"
    keyed = Tiers.from_labels([1, 0], qid=["a", "a"])
    assert keyed != Tiers.from_labels([1, 0])
    assert keyed != Tiers.from_labels([1, 0], qid=["b", "b"])
    with pytest.raises(TypeError, match="unhashable"):
        hash(one)


def test_pickle_and_copy():
    tiers = Tiers.from_labels([1, 0, 2], qid=["a", "b", "a"])
    tiers.layout()
    for other in (pickle.loads(pickle.dumps(tiers)), copy.copy(tiers), copy.deepcopy(tiers)):
        assert other == tiers
        assert other.layout().order.tolist() == tiers.layout().order.tolist()


def test_moving_to_a_device():
    tiers = Tiers.from_labels([1, 0, 2], qid=["a", "b", "a"])
    assert tiers.to("cpu") is tiers
    moved = tiers.to("meta")
    assert moved.device.type == "meta"
    assert moved.list_offsets.device.type == "meta"
    assert moved.keys is tiers.keys
    if torch.cuda.is_available():
        on_gpu = Tiers.from_labels(torch.tensor([1, 0, 2], device="cuda"), qid=["a", "b", "a"])
        assert on_gpu.device.type == "cuda"
        assert on_gpu == tiers
        assert on_gpu[1].layout().order.device.type == "cuda"


@pytest.mark.parametrize(
    ("tiers", "text"),
    [
        (
            Tiers.from_labels([1, 3, 1, 2, 0, 0, 9], lengths=[3, 2, 2]),
            """
Tiers(3 lists, 7 rows, 2 tiers a list)
  list 0: 1 > {0, 2}
  list 1: 3 > 4
  ... 1 more""",
        ),
        (
            Tiers.from_labels([1, 3, 1, 2], qid=["x", "x", "y", "x"]),
            """
Tiers(2 lists, 4 rows, 1 to 3 tiers a list)
  'x': 1 > 3 > 0
  'y': 2""",
        ),
        (
            Tiers.from_labels([[1, 3], [0, 1]]),
            """
Tiers(2 lists, padded to 2, 2 tiers a list)
  list 0: 1 > 0
  list 1: 1 > 0""",
        ),
        (
            Tiers.from_rankings([["ann", ("bob", "cy")], ["eve"]]),
            """
Tiers(2 lists, catalogue of 4 items, 1 to 2 tiers a list)
  list 0: ann > {bob, cy}
  list 1: eve""",
        ),
        (
            Tiers.from_positives(sparse.csr_array(np.eye(1, 1_000_000))),
            """
Tiers(1 list, catalogue of 1,000,000 items, 2 tiers)
  list 0: 0 > the other 999,999""",
        ),
        (Tiers.from_labels([]), "\nTiers(0 lists, 0 rows)"),
    ],
)
def test_the_text_shows_what_was_understood(tiers, text):
    assert repr(tiers) == text.strip("\n")


def test_the_text_is_short_however_large_the_data():
    many = Tiers.from_labels(np.arange(100_000) % 1000, qid=np.arange(100_000) // 2000)
    long_names = [f"a rather long name,\nnumber {i}" * 9 for i in range(500)]
    named = Tiers.from_rankings([long_names, [tuple(long_names)]])
    for tiers in (many, named):
        lines = repr(tiers).splitlines()
        assert len(lines) <= 4
        assert max(map(len, lines)) < 250
    assert "more tiers" in repr(many)
    assert "495 more}" in repr(named)


def test_the_text_of_another_device(monkeypatch):
    tiers = Tiers.from_labels([1, 0])
    monkeypatch.setattr(Tiers, "device", torch.device("cuda", 1))
    assert repr(tiers).startswith("Tiers(1 list, 2 rows, 2 tiers, on cuda:1)")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"items": torch.tensor([0.0, 1.0])}, "items must be a 1-D int64 tensor"),
        ({"items": integers(0, 1).int()}, "items must be a 1-D int64 tensor"),
        ({"tier_offsets": integers(0, 1, 2)[None]}, "tier_offsets must be a 1-D int64 tensor"),
        ({"tier_offsets": integers(0, 1)}, "tier_offsets must begin with 0 and end with 2"),
        ({"tier_offsets": integers(1, 2)}, "tier_offsets must begin with 0 and end with 2"),
        ({"tier_offsets": integers()}, "tier_offsets must begin with 0"),
        ({"tier_offsets": integers(0, 0, 2)}, r"tier_offsets\[0:2\] = \[0, 0\]: .* at least 1"),
        ({"tier_offsets": integers(0, 3, 2)}, r"tier_offsets\[1:3\] = \[3, 2\]"),
        ({"list_offsets": integers(0, 0, 2)}, r"list_offsets\[0:2\] = \[0, 0\]"),
        ({"list_offsets": integers(0, 3)}, "list_offsets must begin with 0 and end with 2"),
        ({"items": integers(0, 2)}, "items are 0 to 2, outside of 0 to 1"),
        ({"items": integers(-1, 0)}, "items are -1 to 0, outside"),
        ({"n_items": 2}, "not both"),
        ({"score_shape": None}, "not both"),
        ({"score_shape": (3,)}, "3 rows, but 2 of them in lists"),
        ({"score_shape": (2, 1)}, "1 lists in padded scores of shape"),
        ({"rest": True}, "rest and names are for catalogues"),
        ({"names": ("a", "b")}, "rest and names are for catalogues"),
        ({"score_shape": None, "n_items": 2, "names": ("a",)}, "1 names for 2 catalogue items"),
        ({"keys": np.array([1, 2])}, "2 keys for 1 lists"),
    ],
)
def test_fields_that_do_not_fit_together_are_refused(changes, message):
    fields = {
        "items": integers(0, 1),
        "tier_offsets": integers(0, 1, 2),
        "list_offsets": integers(0, 2),
        "score_shape": (2,),
    }
    assert Tiers(**fields) == Tiers.from_labels([1, 0])
    with pytest.raises(ValueError, match=message):
        Tiers(**(fields | changes))


def test_heavy_libraries_are_imported_when_they_are_used():
    code = (
        "import sys; from tierrank.tiers import Tiers; Tiers.from_labels([1, 0]).layout();"
        "print([m for m in ('scipy', 'pandas') if m in sys.modules])"
    )
    env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=env
    )
    assert done.stdout.strip() == "[]"
