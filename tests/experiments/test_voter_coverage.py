"""The experiment on intervals where voters have tastes: its table, and that clusters cover."""

import numpy as np
import pytest
import voter_coverage


def test_the_table_has_a_line_for_every_kind_of_intervals(capsys, monkeypatch):
    monkeypatch.setattr(voter_coverage, "MANY", 2000)
    voter_coverage.main(["--replicates", "2", "--voters", "30", "--votes", "10"])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("2 data sets of 30 voters with 10 votes each")
    assert sum("clusters: voter" in line for line in lines) == 4
    assert len(lines) == 4 + 3 + 3 + 5


def test_what_is_estimated_from_voters_with_tastes_is_the_fit_to_exact_chances():
    games = voter_coverage.games_of_voters(np.random.default_rng(0), 60_000, 2)
    fitted = voter_coverage.bradley_terry(clusters="voter").fit(games)
    off = (fitted.log_worths_ - voter_coverage.expected_worths(1)) / fitted.standard_errors_
    assert np.abs(off).max() < 3.5


@pytest.mark.slow
def test_clustered_intervals_cover_where_others_do_not():
    for study in voter_coverage.STUDIES:
        held = voter_coverage.coverage(study, 200, voters=100, votes=30, seed=1)
        *plain, last = [100 * parts.mean() for parts in held.values()]
        assert 93 <= last <= 97
        assert max(plain[:2]) < 91
