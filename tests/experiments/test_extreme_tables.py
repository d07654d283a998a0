"""Tables of Ma et al. (2021) over huge label sets, and beyond them, from files to the page."""

import csv
import json
import subprocess
import sys
from html.parser import HTMLParser
from types import SimpleNamespace

import extreme_beyond
import extreme_budget
import extreme_fits
import extreme_sensitivity
import extreme_tables
import numpy as np
import pytest
from extreme_options import PAPER, QUICK, named_values
from leml import Leml
from printed import LEADERS, XML

from tierrank.data import write_xc
from tierrank.data.synthetic import label_sets
from tierrank.extreme.ranker import ExtremeRanker
from tierrank.metrics import labels

pytestmark = pytest.mark.slow  # whole experiments

FOUR = ("PL-Partition", "PL-LB", "RankNet", "RankSVM")


@pytest.fixture(scope="module")
def parts():
    return label_sets("eurlex-4k", rows=(160, 60), features=60, labels=30, features_a_row=10)


@pytest.fixture(scope="module")
def folder(parts, tmp_path_factory):
    folder = tmp_path_factory.mktemp("data") / "tags"
    folder.mkdir()
    for name, part in zip(("train.txt", "test.txt"), parts, strict=True):
        write_xc(folder / name, part)
    return folder


@pytest.fixture(scope="module")
def run(folder, tmp_path_factory):
    """Runs a program quickly, and reads what it leaves."""
    shared = tmp_path_factory.mktemp("out")

    def run(program, stem, *arguments, out=None):
        out = out or shared
        program.main(["--data", str(folder), "--out", str(out), "--quick", *arguments])
        with (out / f"{stem}.csv").open(newline="") as file:
            lines = {(line["method"], line["measure"]): line for line in csv.DictReader(file)}
        page = (out / f"{stem}.html").read_text()
        Closed(page)
        assert (out / f"{stem}.png").read_bytes().startswith(b"\x89PNG")
        more = json.loads((out / f"{stem}.json").read_text())
        text = (out / f"{stem}.md").read_text()
        return SimpleNamespace(folder=out, lines=lines, more=more, page=page, text=text)

    return run


class Closed(HTMLParser):
    """Checks that tags are closed in order, and that the page asks nobody for anything."""

    def __init__(self, text):
        super().__init__()
        self.open = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        assert all(value.startswith("data:") for name, value in attrs if name in ("src", "href"))
        if tag not in ("meta", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def first(run):
    return run(extreme_tables, "tables-1-4", "--name", "D-1K", "--seeds", "2")


def direct(parts, maker, seeds=(0, 1)):
    """Per cent of every measure, a row a seed, by calls of one's own."""
    train, test = parts
    inverse = labels.inverse_propensity(train.Y)
    found = []
    for seed in seeds:
        top = maker(seed).fit(train.X, train.Y).predict(test.X, k=10)
        found.append(labels.evaluate(top, test.Y, inverse_propensity=inverse, ks=(1, 3, 5, 10)))
    return {name: np.array([100 * each[name] for each in found]) for name in found[0]}


def test_tables_1_and_4_have_what_the_estimator_gives_beside_what_is_printed(first, parts):
    assert {method for method, _ in first.lines} == set(FOUR)
    for method, name in (("PL-Partition", "pl-partition"), ("RankNet", "ranknet")):
        values = direct(
            parts,
            lambda seed, name=name: ExtremeRanker(name, random_state=seed, **PAPER | QUICK),
        )
        assert len(values) == 16
        for measure, by_seed in values.items():
            line = first.lines[method, measure]
            assert float(line["mean"]) == pytest.approx(by_seed.mean())
            assert float(line["deviation"]) == pytest.approx(by_seed.std(ddof=1))
            assert float(line["printed"]) == XML["D-1K", method, measure]
            text = f"{by_seed.mean():.2f} ± {by_seed.std(ddof=1):.2f}"
            assert text in first.page
            assert text in first.text
            assert f">{XML['D-1K', method, measure]:.2f}<" in first.page


def test_the_best_of_every_row_is_named(first):
    rows = [line.split(" | ") for line in first.text.splitlines() if line.startswith("| P@5 ")]
    (row,) = rows
    means = {method: float(first.lines[method, "P@5"]["mean"]) for method in FOUR}
    best = max(means, key=means.get)
    assert row[-2] == best
    assert row[-1].rstrip(" |") == "PL-Partition"  # 56.63 is the highest printed
    bold = [cell for cell in row if cell.startswith("**")]
    assert bold == [f"**{row[1 + 2 * FOUR.index(best)].strip('*')}**", "**56.63**"]


def test_differences_are_paired_by_seeds(first, parts):
    settings = PAPER | QUICK
    one, other = (
        direct(parts, lambda seed, name=name: ExtremeRanker(name, random_state=seed, **settings))
        for name in ("pl-partition", "pl-lb")
    )
    known = {(each["to"], each["measure"]): each for each in first.more["differences"]}
    assert {to for to, _ in known} == set(FOUR[1:])
    for measure in ("P@1", "PSP@5"):
        apart = one[measure] - other[measure]
        assert known["PL-LB", measure]["mean"] == pytest.approx(apart.mean())
        assert known["PL-LB", measure]["deviation"] == pytest.approx(apart.std(ddof=1))
        assert 0 < known["PL-LB", measure]["p_value"] <= 1


def test_the_same_command_does_nothing_again(first, run, monkeypatch):
    monkeypatch.setattr(extreme_fits, "perform", lambda *given: pytest.fail("fitted again"))
    again = run(extreme_tables, "tables-1-4", "--name", "D-1K", "--seeds", "2")
    assert again.lines == first.lines


def test_table_2_runs_sleec_and_leml_and_shares_fits(first, run, parts, monkeypatch):
    done = []
    perform = extreme_fits.perform
    monkeypatch.setattr(
        extreme_fits, "perform", lambda fit, *rest: done.append(fit.kind) or perform(fit, *rest)
    )
    left = run(extreme_tables, "table-2", "--name", "D-1K", "--seeds", "2", "--table", "2")
    assert sorted(done) == ["leml", "leml", "sleec", "sleec"]
    assert {method for method, _ in left.lines} == {"PL-Partition", "SLEEC", "LEML"}
    values = direct(parts, lambda seed: Leml(rank=5, sweeps=2, random_state=seed))
    line = left.lines["LEML", "PSP@3"]
    assert float(line["mean"]) == pytest.approx(values["PSP@3"].mean())
    assert float(line["printed"]) == 32.43
    assert float(left.lines["SLEEC", "P@1"]["printed"]) == 67.59
    assert left.lines["PL-Partition", "P@5"] == first.lines["PL-Partition", "P@5"]


def test_settings_reach_networks_and_baselines(run, tmp_path):
    arguments = ("--seeds", "1", "--methods", "pl-efron", "leml", "--set", "hidden=[6,4]",
                 "metric=psp@1", "leml.rank=3")  # fmt: skip
    left = run(extreme_tables, "tables-1-4", *arguments, out=tmp_path)
    network, leml = left.more["fits"]
    assert (network["settings"]["hidden"], network["settings"]["metric"]) == ([6, 4], "psp@1")
    assert leml["settings"] == {"rank": 3, "sweeps": 2}
    assert all(line["printed"] == "" for line in left.lines.values())  # not a set of the paper
    assert named_values(["leml.l2=0.5"], "", ExtremeRanker()) == {}
    for wrong in ("hidden", "depth=3", "svm.c=1", "leml.depth=3"):
        with pytest.raises(ValueError, match="--set"):
            named_values([wrong], "leml" if "leml" in wrong else "", Leml())


def test_held_out_rows_do_not_touch_what_the_test_rows_gave(run, parts, tmp_path):
    arguments = ("--seeds", "1", "--methods", "pl-partition", "--held-out", "0.25")
    left = run(extreme_tables, "tables-1-4-held-out", *arguments, out=tmp_path)
    assert left.more["settings"]["held-out training rows"].startswith("40,")
    assert not (tmp_path / "tables-1-4.csv").exists()


def test_beyond_shows_networks_alone_and_averaged_with_propensities(run, parts):
    arguments = ("--name", "D-1K", "--seeds", "2", "--members", "2", "--propensity", "0.5",
                 "--variants", "plain", "both", "--glas", "0.1", "--hidden", "12")  # fmt: skip
    left = run(extreme_beyond, "beyond", *arguments)
    methods = list(dict.fromkeys(method for method, _ in left.lines))
    assert methods == [
        f"pl-partition{variant}, {crowd}{power}"
        for variant in ("", " + both")
        for crowd in ("alone", "average of 2")
        for power in ("", ", τ = 0.5")
    ]
    settings = {
        **PAPER,
        **extreme_beyond.WIDE,
        "hidden": [12],
        "max_epochs": 2,
        "members": 2,
        "learning_rate": [1e-2],
    }
    assert (settings["input_dropout"], settings["hidden_dropout"], settings["refit"]) == (
        0.3,
        0.6,
        True,
    )
    makers = {
        "pl-partition, average of 2": {},
        "pl-partition + both, average of 2": {"glas": 0.1, "propensity_weights": True},
    }
    for method, more in makers.items():
        values = direct(
            parts, lambda seed, more=more: ExtremeRanker(random_state=seed, **settings, **more)
        )
        for measure in ("P@5", "PSP@3"):
            assert float(left.lines[method, measure]["mean"]) == pytest.approx(
                values[measure].mean()
            )
    for value in (*LEADERS.values(), XML["D-1K", "SLEEC", "P@3"]):
        assert f">{value:.2f}<" in left.page
    # far behind after two epochs, and it says so
    for best in (67.59, 69.61):
        behind = best - float(left.lines[methods[0], "P@1"]["mean"])
        assert f">-{behind:.2f}<" in left.page


def test_a_mistake_is_one_message_and_exit_code_2(folder, tmp_path, capsys):
    programs = (extreme_tables, extreme_beyond, extreme_sensitivity, extreme_budget)
    for program in programs:
        for arguments in (
            ["--data", str(tmp_path)],
            ["--data", str(tmp_path / "absent")],
            ["--data", str(folder), "--set", "hidden"],
            ["--data", str(folder), "--synthetic", "eurlex-4k"],
        ):
            with pytest.raises(SystemExit) as stopped:
                program.main([*arguments, "--out", str(tmp_path / "out"), "--quick"])
            assert stopped.value.code == 2
            (line,) = capsys.readouterr().err.splitlines()
            assert ": " in line
    with pytest.raises(SystemExit, match="2"):
        extreme_tables.main(["--data", str(folder), "--seeds", "0"])
    assert not (tmp_path / "out").exists()


def test_it_runs_as_a_program():
    command = [sys.executable, extreme_tables.__file__, "--help"]
    ran = subprocess.run(command, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    for option in ("--data", "--synthetic", "--table", "--methods", "--rates", "--seeds", "--jobs"):
        assert option in ran.stdout
