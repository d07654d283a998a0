"""`simulate`: worths and lists with ties, as in section 4.1 of Ma et al. (2021)."""

import math

import numpy as np
import pytest
import torch

import tierrank as tr
from tierrank.data.synthetic import simulate, write_rows


@pytest.mark.parametrize(
    ("items", "lists", "tiers"), [(2, 1, 2), (6, 5, 3), (40, 30, 4), (7, 9, 7)]
)
def test_shapes(items, lists, tiers):
    log_worths, data = simulate(items, lists, tiers=tiers, seed=1)
    assert log_worths.shape == (items,)
    assert log_worths.dtype == torch.float64
    assert len(data) == lists
    assert data.n_items == items
    assert data.rest
    assert (data.n_tiers == tiers).all()
    assert tr.log_prob(log_worths, data).shape == (lists,)


def test_every_list_names_different_items():
    _, data = simulate(12, 200, tiers=5, seed=2)
    for ranking in data.to_rankings():
        named = [i for tier in ranking for i in (tier if isinstance(tier, tuple) else (tier,))]
        assert len(set(named)) == len(named) <= 11
        assert set(named) <= set(range(12))


def test_worths_sum_to_one_and_differ_by_at_most_a_factor_of_their_number():
    log_worths, _ = simulate(1000, 1, seed=3)
    assert float(log_worths.exp().sum()) == pytest.approx(1, rel=1e-12)
    spread = float(log_worths.max() - log_worths.min())
    assert 0.95 * math.log(1000) < spread <= math.log(1000)  # uniform on [0, log 1000]


@pytest.mark.parametrize("most_above", [3, 10, 19, 500])
def test_no_more_items_than_asked_for_stand_above_the_rest(most_above):
    _, data = simulate(20, 300, tiers=3, most_above=most_above, seed=4)
    largest = min(most_above, 19)
    assert int(data.lengths.max()) == largest  # of 300 lists, some reach it
    assert int(data.lengths.min()) >= 2  # two written tiers


def test_cuts_come_everywhere():
    """One cut among the places 1 … 5 of six items: each as often as the others."""
    _, data = simulate(6, 5000, tiers=2, seed=5)
    frequency = np.bincount(data.lengths, minlength=6)[1:]
    np.testing.assert_allclose(frequency, 1000, atol=4 * math.sqrt(5000 * 0.2 * 0.8))


def test_the_first_item_of_a_list_is_drawn_by_its_worth():
    log_worths, data = simulate(5, 8000, tiers=5, seed=6)  # all strict
    first = data.items[data.tier_offsets[data.list_offsets[:-1]]]
    frequency = torch.bincount(first, minlength=5) / 8000
    np.testing.assert_allclose(frequency, log_worths.exp(), atol=4 * math.sqrt(0.25 / 8000))


@pytest.mark.parametrize(("items", "tiers", "most_above"), [(9, 4, 500), (40, 4, 12), (6, 2, 500)])
def test_strict_lists_are_the_same_draws_with_their_order_kept(items, tiers, most_above):
    worths, tied = simulate(items, 50, tiers=tiers, most_above=most_above, seed=9)
    same, strict = simulate(items, 50, tiers=tiers, most_above=most_above, seed=9, strict=True)
    assert torch.equal(worths, same)
    assert strict.rest
    for with_ties, without in zip(tied.to_rankings(), strict.to_rankings(), strict=True):
        assert all(isinstance(item, int) for item in without)
        start = 0
        for tier in with_ties:
            names = tier if isinstance(tier, tuple) else (tier,)
            assert set(names) == set(without[start : start + len(names)])
            start += len(names)
        assert start == len(without)


def test_nothing_of_the_order_is_left_inside_a_tier():
    """A tier in the order of the draws would tell those who break ties by input all of it."""
    _, data = simulate(30, 40, tiers=3, seed=10)
    for ranking in data.to_rankings():
        for tier in ranking:
            assert not isinstance(tier, tuple) or tier == tuple(sorted(tier))


def test_the_same_seed_gives_the_same_data():
    worths, data = simulate(9, 20, seed=7)
    again, same = simulate(9, 20, seed=7)
    assert torch.equal(worths, again)
    assert data == same
    other, different = simulate(9, 20, seed=8)
    assert not torch.equal(worths, other)
    assert data != different


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"items": 1, "lists": 5}, "at least 2 items and 1 list, not 1 and 5"),
        ({"items": 5, "lists": 0}, "at least 2 items and 1 list, not 5 and 0"),
        ({"items": 5, "lists": 2, "tiers": 1}, "make 2 to 5 tiers, not 1"),
        ({"items": 5, "lists": 2, "tiers": 6}, "make 2 to 5 tiers, not 6"),
        ({"items": 50, "lists": 2, "tiers": 6, "most_above": 4}, "make 2 to 5 tiers, not 6"),
    ],
)
def test_what_cannot_be_simulated_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        simulate(**arguments)


@pytest.mark.parametrize(
    ("name", "message"), [("votes", "is a file"), ("v.parquet", "is a folder")]
)
def test_what_cannot_be_written_over_is_refused_before_anything_is_drawn(tmp_path, name, message):
    (tmp_path / "votes").write_text("kept")
    (tmp_path / "v.parquet").mkdir()
    with pytest.raises(ValueError, match=message):
        write_rows(tmp_path / name, iter(int, 1), print)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["v.parquet", "votes"]
    assert (tmp_path / "votes").read_text() == "kept"
