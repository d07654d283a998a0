"""Defaults beside peers: every cell once, and tests over the queries of all sets."""

import defaults
import numpy as np
import pytest

from tierrank.metrics import holm, paired_test

RANKERS = ("linear", "lightgbm:lambdarank", "xgboost:rank:pairwise")


@pytest.fixture
def run(parts, tmp_path, capsys, monkeypatch):
    """The command on one small set; what it prints."""
    (tmp_path / "mq2008").symlink_to(parts)
    monkeypatch.setattr(defaults, "FAIR", {"refit": True, "members": 2})
    made = defaults.ranker
    monkeypatch.setattr(defaults, "ranker", lambda *given: _short(made(*given)))
    given = ["--data", str(tmp_path), "--out", str(tmp_path / "out"), "--sets", "mq2008",
             "--folds", "2", "--rankers", *RANKERS]  # fmt: skip

    def ran(*more):
        defaults.main([*given, *more])
        return capsys.readouterr().out

    return ran


def _short(ranker):
    known = ranker.get_params()
    few = {"trees": 3, "max_iter": 5, "min_rows_per_leaf": 2}
    return ranker.set_params(**{name: value for name, value in few.items() if name in known})


def test_the_table_is_of_what_is_done_and_nothing_is_done_twice(run, monkeypatch):
    first = run()
    assert all(f"{who}" in first for who in RANKERS)
    monkeypatch.setattr(defaults, "run_cell", lambda *given: pytest.fail("fitted again"))
    assert run() == run("--table") == first
    fair = run("--fair")
    assert " → " in first
    assert " → " not in fair
    assert first.partition("| ours, fair")[2] == fair.partition("| ours, fair")[2]


def test_tests_are_paired_over_all_queries_and_corrected_for_all_of_them():
    rng = np.random.default_rng(0)
    names = ("boosted", "linear", "lightgbm:lambdarank", "xgboost:rank:ndcg")
    found = {
        each: {(who, fair): rng.random(30) for who in names for fair in (False, True)}
        for each in ("a", "b")
    }
    shown = defaults.table(found)
    pooled = {who: np.concatenate([found[each][who, True] for each in found]) for who in names}
    pairs = [(one, other) for one in names[:2] for other in names[2:]]
    tests = [paired_test(pooled[one], pooled[other]) for one, other in pairs]
    corrected = holm([test.p_value for test in tests])
    for test, p in zip(tests, corrected, strict=True):
        assert f"{test.difference:+.4f} (p {test.p_value:.3f}, Holm {p:.3f})" in shown
    before, after = (found["a"]["boosted", fair].mean() for fair in (False, True))
    assert f"{before:.4f} → {after:.4f}" in shown
