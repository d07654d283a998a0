"""Every PrefLib file has an estimate, by maximum likelihood or, where there is none, a prior."""

import tarfile

import numpy as np
import pytest

import tierrank as tr
from real_data import DATA, real
from tierrank.aggregation.connectivity import Disconnected

SERIES = sorted(path.name for path in (DATA / "preflib").glob("*.tar.xz"))
MANY = ("00004", "00006", "00008", "00052", "00075")  # files, or votes
KINDS = (".soc", ".soi", ".toc", ".toi", ".cat")


@pytest.mark.data
@pytest.mark.parametrize(
    "series",
    [
        pytest.param(name, marks=pytest.mark.slow) if name.startswith(MANY) else name
        for name in SERIES or ["none"]
    ],
)
def test_every_preflib_file_fits(series, tmp_path):
    with tarfile.open(real("preflib", series)) as tar:
        members = [member for member in tar.getmembers() if member.name.endswith(KINDS)]
        assert members
        for member in members:
            path = tmp_path / member.name.rpartition("/")[2]
            path.write_bytes(tar.extractfile(member).read())
            check_fit(tr.data.read_rankings(path), path.name)
            path.unlink()


def check_fit(rankings, name):
    if not (rankings.tiers.n_tiers > 1).any():
        with pytest.raises(ValueError, match="no list says anything"):
            tr.RankAggregator().fit(rankings)
        return
    try:
        fitted = tr.RankAggregator().fit(rankings)
    except Disconnected:
        fitted = tr.RankAggregator(prior="pseudo-item").fit(rankings)
        assert not fitted.connectivity_.connected, name
    assert fitted.converged_, name
    assert fitted.gradient_norm_ < 1e-6 * max(1.0, rankings.weights.sum()), name
    assert np.isfinite(fitted.log_worths_).all(), name
    assert (fitted.standard_errors_ > 0).all(), name


@pytest.mark.data
def test_skaters_of_r_s_package_fit():
    check_fit(tr.data.read_rankings(real("plackettluce-r", "skaters.toc")), "skaters")
