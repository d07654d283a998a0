"""Held-out likelihoods: chances of all outcomes sum to 1, and the program prints its table."""

import itertools

import held_out
import numpy as np
import pytest

from tierrank.tiers import Tiers


def outcomes(items):
    """All ordered partitions."""
    if not items:
        yield []
    for size in range(1, len(items) + 1):
        for tier in itertools.combinations(items, size):
            for rest in outcomes([item for item in items if item not in tier]):
                yield [tier if size > 1 else tier[0], *rest]


def test_chances_of_all_outcomes_sum_to_one(monkeypatch):
    every = list(outcomes([0, 1, 2, 3]))
    assert len(every) == 75
    random = np.random.default_rng(0)
    seen = Tiers.from_rankings([every[at] for at in random.integers(75, size=400)], items=4)
    held = Tiers.from_rankings(every, items=4)
    monkeypatch.setattr(held_out, "folds", lambda tiers: iter([(seen, held)]))
    for log_prob in held_out.tie_models(seen).values():
        assert np.exp(log_prob).sum() == pytest.approx(1, abs=1e-9)


def test_the_chain_of_sizes_is_the_most_likely_one():
    seen = Tiers.from_rankings([[0, 1, 2], [(0, 1), 2], [2, (0, 1)], [(0, 1, 2)], [0, 1]], items=3)
    q = held_out.size_chain(seen)

    def likelihood(logits):
        p = np.exp(logits) / np.exp(logits).sum()
        return held_out.log_prob_of_sizes(p, seen).sum() + np.log(p).sum() / 3

    at = np.log(q)
    for direction in np.eye(3):
        for step in (-1e-3, 1e-3):
            assert likelihood(at + step * direction) <= likelihood(at)


@pytest.mark.data
@pytest.mark.parametrize("table", ["ties", "groups"])
def test_a_table_has_a_row_for_every_set(table, capsys, monkeypatch):
    if not held_out.DATA.joinpath("preflib").exists():
        pytest.skip("there is no PrefLib: set TIERRANK_DATA to where the data sets are")
    name = table.upper()
    monkeypatch.setattr(held_out, name, getattr(held_out, name)[:1])
    held_out.main([table, "--quick"])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert len({line.count("|") for line in lines}) == 1
