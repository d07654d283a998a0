"""`tierrank simulate`: lists from known worths, which `tierrank aggregate` finds again."""

import csv
import io

import numpy as np
import pytest

from tierrank.data import read_rankings
from tierrank.data.synthetic import simulate

SMALL = ("--items", 12, "--lists", 300, "--tiers", 3, "--seed", 7)


def column(text, name):
    rows = sorted(csv.DictReader(io.StringIO(text)), key=lambda row: int(row["item"]))
    return np.array([float(row[name]) for row in rows])


@pytest.mark.parametrize(
    "name", ["lists.jsonl", "lists.csv", "lists.parquet", "lists.toc", "lists.toi.gz"]
)
def test_the_truth_is_found_again_whatever_the_format(run, tmp_path, name):
    file, truth = tmp_path / name, tmp_path / "truth.csv"
    ran = run("simulate", file, *SMALL, "--truth", truth)
    assert ran.code == 0, ran.text
    assert f"300 lists of 12 items in 3 tiers are in {file}" in ran.text
    assert ran.out == ""
    fitted = run("aggregate", file, "--csv", "-")
    assert fitted.code == 0, fitted.text
    true, found = column(truth.read_text(), "log_worth"), column(fitted.out, "log_worth")
    assert np.corrcoef(true, found)[0, 1] > 0.98
    far = (found - true) / column(fitted.out, "standard_error")
    assert np.abs(far).max() < 4  # standard errors off the truth: nothing was lost on the way
    assert true.mean() == pytest.approx(0, abs=1e-12)


def test_all_formats_hold_the_lists_of_the_generator(run, tmp_path):
    _, drawn = simulate(12, 300, tiers=3, seed=7)
    assert run("simulate", tmp_path / "lists.jsonl", *SMALL).code == 0
    assert read_rankings(tmp_path / "lists.jsonl").tiers == drawn
    assert run("simulate", tmp_path / "lists.csv", *SMALL).code == 0
    written = read_rankings(tmp_path / "lists.csv").tiers
    assert (written.lengths == 12).all()  # the last tier too
    assert (written.n_tiers == 3).all()


def test_the_seed_decides(run, tmp_path):
    one, two, other = (tmp_path / f"{name}.jsonl" for name in ("one", "two", "other"))
    run("simulate", one, *SMALL)
    run("simulate", two, *SMALL)
    run("simulate", other, *SMALL[:-1], 8)
    assert one.read_bytes() == two.read_bytes() != other.read_bytes()


def test_at_most_so_many_items_stand_above_the_rest(run, tmp_path):
    file = tmp_path / "lists.jsonl"
    assert run("simulate", file, "--items", 50, "--lists", 40, "--most-above", 6).code == 0
    assert int(read_rankings(file).tiers.lengths.max()) <= 6


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["lists.soc"], 1, ".soc files hold no tiers of this kind"),
        (["lists.txt"], 1, "the name does not say how the file is written"),
        (["lists.csv", "--items", 100_000], 1, "use .jsonl, where it is one word for all"),
        (["lists.csv", "--items", 5, "--tiers", 7], 1, "make 2 to 5 tiers, not 7"),
        (["lists.csv", "--items", 1], 2, "Invalid value for '--items'"),
        (["lists.csv", "--truth", "lists.csv"], 2, "the rankings are in this file"),
        (["/dev/null/lists.csv"], 2, "OUT: nothing can be written there"),
        ([], 2, "Missing argument 'OUT'"),
        (["lists.jsonl", "--rows", "1e8"], 2, "--rows means nothing to OUT, a file of lists"),
        (["lists.jsonl", "--games"], 2, "--games means nothing to OUT"),
        (["--out", "votes", "--lists", 5], 2, "--lists means nothing to --out, a table of --rows"),
        (["--out", "votes", "--tiers", 3], 2, "--tiers means nothing to --out"),
        (["--out", "votes", "--most-above", 3], 2, "--most-above means nothing to --out"),
        (["--out", "votes", "--rows", "inf"], 2, "--rows is a number of rows"),
        (["--out", "votes", "--rows", "nan"], 2, "Invalid value for '--rows'"),
    ],
)
def test_what_cannot_be_drawn_or_written_is_refused(
    run, tmp_path, monkeypatch, arguments, code, message
):
    monkeypatch.chdir(tmp_path)
    ran = run("simulate", *arguments)
    assert ran.code == code
    assert message in ran.text
    assert list(tmp_path.iterdir()) == []
