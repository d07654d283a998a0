"""Every PrefLib file that there is: read as a plain parser reads it, and written back as it was."""

import json
import tarfile
from collections import Counter
from pathlib import Path

import pytest

from real_data import DATA, real
from tierrank.data.rankings import read_preflib, write_preflib

SUFFIXES = {".soc", ".soi", ".toc", ".toi", ".cat"}
SERIES = [
    "00002-debian", "00003-nasa", "00004-netflix", "00005-burlington", "00006-skate",
    "00008-glasgow", "00009-agh", "00010-ski", "00012-shirt", "00016-aspen", "00019-oakland",
    "00021-sf", "00031-vermont", "00032-education", "00033-poster", "00034-cities",
    "00035-breakfast", "00038-project", "00052-f1seasons", "00064-eurovision", "00075-scotus",
]  # fmt: skip
MANY = {"00008-glasgow", "00021-sf", "00052-f1seasons", "00075-scotus"}  # files, or votes

pytestmark = pytest.mark.data


def _series(name):
    path = real("preflib", f"{name}.tar.xz")
    with tarfile.open(path) as tar:
        for member in tar:
            if Path(member.name).suffix in SUFFIXES:
                yield Path(member.name).name, tar.extractfile(member).read()


def _plainly(content):
    """Names, counts and orders, where every tier is a list; an order is nearly JSON already."""
    lines = content.decode().splitlines()
    names = [line.split(": ", 1)[1] for line in lines if line.startswith("# ALTERNATIVE NAME ")]
    counts, orders = [], []
    for line in lines:
        if not line.startswith("#"):
            count, order = line.split(":")
            tiers = json.loads(f"[{order}]".replace("{", "[").replace("}", "]"))
            counts.append(int(count))
            orders.append([tier if isinstance(tier, list) else [tier] for tier in tiers])
    return names, counts, orders


def _check(path, content):
    path.write_bytes(content)
    votes = read_preflib(path)
    names, counts, orders = _plainly(content)
    given = [
        [[names[item - 1] for item in tier] for tier in order if tier]
        for count, order in zip(counts, orders, strict=True)
        if count
    ]
    found = [
        [list(tier) if isinstance(tier, tuple) else [tier] for tier in ranking]
        for ranking in votes.rankings.tiers.to_rankings()
    ]
    assert found == given, path.name
    assert votes.rankings.items == tuple(names), path.name
    assert votes.rankings.weights.tolist() == [count for count in counts if count], path.name
    if path.suffix == ".cat":
        numbers = [i for order in orders for i, tier in enumerate(order) if tier]
        assert votes.tier_categories.tolist() == numbers, path.name
    write_preflib(votes, path)
    assert path.read_bytes() == content, path.name


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow) if name in MANY else name for name in SERIES],
)
def test_every_file_of_a_series_is_read_and_written_back_to_the_byte(tmp_path, name):
    for file_name, content in _series(name):
        _check(tmp_path / file_name, content)


def test_the_skaters_of_another_package_are_read_and_written_back_to_the_byte(tmp_path):
    path = real("plackettluce-r", "skaters.toc")
    _check(tmp_path / "skaters.toc", path.read_bytes())


def test_no_file_is_left_out():
    assert sorted(path.name for path in (DATA / "preflib").glob("*")) == [
        f"{name}.tar.xz" for name in SERIES if (DATA / "preflib").exists()
    ]
    suffixes = Counter(Path(file).suffix for name in SERIES for file, _ in _series(name))
    assert suffixes == {".soc": 297, ".soi": 186, ".toc": 265, ".toi": 28, ".cat": 154}
