"""The demo, the list of objectives, and what holds for the command as a whole."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import tierrank
from tierrank.cli.demo import OBJECTIVES as OBJECTIVES_OF_THE_DEMO
from tierrank.losses import OBJECTIVES

PNG = b"\x89PNG\r\n\x1a\n"
FULL = Path("/dev/full")


def test_the_demo_prints_a_table_of_errors_and_saves_a_plot(run, tmp_path):
    plot = tmp_path / "new folder" / "errors.png"
    arguments = ["demo", "--lists", "40", "--items", "6", "--out", plot]
    ran = run(*arguments)
    assert ran.code == 0
    assert "40 lists of 6 items in 4 tiers" in ran.text
    for name in OBJECTIVES_OF_THE_DEMO:
        errors = re.search(rf"{re.escape(name)}((?: \d+\.\d{{4}})+)", ran.text)
        assert errors, f"no row for {name} in: {ran.text}"
        assert len(errors[1].split()) == 3  # for 2, 10 and 40 lists
    assert plot.read_bytes().startswith(PNG)
    assert [path.name for path in plot.parent.iterdir()] == ["errors.png"]  # nothing half-written
    assert run(*arguments) == ran  # the same seed, the same numbers


def test_with_examples_the_demo_does_three_jobs_and_leaves_a_page(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ran = run("demo", "--lists", "40", "--items", "6", "--examples", "made")
    assert ran.code == 0
    page = (tmp_path / "made" / "index.html").read_text(encoding="utf-8")
    assert "made/index.html" in ran.text
    for target in re.findall(r'(?:href|src)="([^"]+)"', page):
        assert (tmp_path / "made" / target).is_file()
    scores = [float(value) for value in re.findall(r"<td>ndcg@10</td><td>([\d.]+)</td>", page)]
    assert scores[0] > 0.8  # of grades that features nearly determine
    first, *_, last = re.findall(r"<td>\d+</td><td>([\d.]+)</td><td>[\d.]+</td>", page)
    assert float(last) < float(first)  # the loss of the network
    test = tierrank.data.read(tmp_path / "made" / "test.txt")
    assert len(tierrank.load(tmp_path / "made" / "ranker").predict(test.X)) == len(test.y)


def test_the_demo_finds_the_worths_and_the_exact_likelihood_finds_them_best(run, tmp_path):
    text = run("demo", "--lists", 2000, "--items", 8, "--out", tmp_path / "plot.png").text
    last = {
        name: float(re.search(rf"{name} \([\w ]+\)(?: \d+\.\d+)* (\d+\.\d+)", text)[1])
        for name in ("PL-Partition", "PL-LB", "ListMLE")
    }
    assert last["PL-Partition"] < 0.1
    assert last["PL-Partition"] < min(last["PL-LB"], last["ListMLE"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["demo", "--items", "2"], "Invalid value for '--items'"),
        (["demo", "--lists", "3"], "Invalid value for '--lists'"),
        (["demo", "--tiers", "1"], "Invalid value for '--tiers'"),
        (["demo", "--items", "5", "--tiers", "6"], "5 items make at most as many tiers, not 6"),
        (["demo", "--items", "many"], "Invalid value for '--items'"),
        (["demo", "--out", "errors.xyz"], "a picture is a .png, .pdf or .svg file"),
        (["demo", "--out", "/dev/null/errors.png"], "--out: nothing can be written there"),
        (["demo", "--colour", "red"], "No such option"),
        (["fly"], "No such command 'fly'"),
    ],
)
def test_wrong_arguments_are_explained(run, arguments, message):
    ran = run(*arguments)
    assert ran.code == 2
    assert message in ran.text


@pytest.mark.parametrize(
    "command", ["", "train", "evaluate", "aggregate", "compare", "extreme", "extreme train"]
)
def test_flags_are_shown_without_a_value(run, command):
    ran = run(*command.split(), "--help")
    assert ran.code == 0
    assert "--help Show this message" in ran.text
    assert "bool" not in ran.text


def test_version(run):
    ran = run("--version")
    assert (ran.code, ran.text) == (0, f"tierrank {tierrank.__version__} ")


def test_help_names_the_commands_in_the_order_in_which_people_meet_them(run):
    ran = run("--help")
    assert ran.code == 0
    named = ["train", "predict", "evaluate", "compare", "export", "objectives", "demo"]
    places = [ran.text.index(f" {name} ") for name in named]
    assert places == sorted(places)


@pytest.mark.parametrize(
    ("command", "named"),
    [
        ("demo", ["--items", "--lists", "--tiers", "--seed", "--out"]),
        ("train", ["DATA", "--model", "--objective", "--valid", "--out", "--resume", "--set"]),
        ("predict", ["MODEL", "DATA", "--out"]),
        ("evaluate", ["RANKER", "DATA", "--metric", "--json", "--csv", "--gain", "--empty"]),
        ("compare", ["DATA", "--model", "--objective", "--folds", "--out"]),
        ("export", ["MODEL", "OUT", "--to", "--feature-names"]),
    ],
)
def test_help_of_a_command_names_its_options(run, command, named):
    ran = run(command, "--help")
    assert ran.code == 0
    for option in named:
        assert option in ran.text


def test_without_a_command_the_help_is_shown(run):
    assert "demo" in run().text


def test_the_objectives_are_listed_by_family(run):
    ran = run("objectives")
    assert ran.code == 0
    for name, entry in OBJECTIVES.items():
        assert f" {name} " in ran.text
        assert entry.summary in ran.text
    for family in ("likelihood", "listwise", "pairwise", "ordered partition"):
        assert f" {family} " in ran.text


def test_an_objective_is_explained(run):
    ran = run("objectives", "PL_TopK")
    assert ran.code == 0
    assert "pl-topk: tierrank.losses.pl_top_k(scores, tiers, k=10, weights=None" in ran.text
    assert "Negative log-probability of the first k places alone" in ran.text


def test_an_unknown_objective_is_met_with_the_nearest(run):
    ran = run("objectives", "rank-nte")
    assert ran.code == 2
    assert "there is no objective 'rank-nte'; did you mean 'ranknet'?" in ran.text


@pytest.mark.slow
@pytest.mark.skipif(not FULL.exists(), reason="needs /dev/full")
@pytest.mark.parametrize("arguments", [["objectives"], ["objectives", "pl-partition"]])
def test_standard_output_on_a_full_disk_is_one_line(arguments):
    command = [sys.executable, "-m", "tierrank", *arguments]
    with FULL.open("w") as full:
        ran = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert ran.returncode == 1
    assert re.fullmatch(r"Error: .*No space left on device\n", ran.stderr)


@pytest.mark.skipif(sys.platform == "win32", reason="needs a shell of POSIX")
@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_stream_that_is_closed_is_as_one_that_nobody_reads(closed):
    command = f"{sys.executable} -m tierrank objectives pl-partition {closed}"
    ran = subprocess.run(command, shell=True, capture_output=True, text=True)
    assert ran.returncode == 0
    assert ran.stderr == ""


@pytest.mark.parametrize(
    "typed", [("--csv", "votes.jsonl"), ("--features", "a.csv", "--json", "a.csv"),
              ("--csv", "link"), ("--plot", "votes.jsonl")]
)  # fmt: skip
def test_no_command_writes_over_what_it_reads(run, tmp_path, monkeypatch, typed):
    monkeypatch.chdir(tmp_path)
    votes = '["ann", "bob"]\n["bob", "ann"]\n'
    Path("votes.jsonl").write_text(votes)
    Path("a.csv").write_text("item,x\nann,1\nbob,2\n")
    Path("link").symlink_to("votes.jsonl")
    ran = run("aggregate", "votes.jsonl", *typed)
    assert ran.code == 2
    assert f"{typed[-1]}: is what is read, give another file to write" in ran.text
    assert Path("votes.jsonl").read_text() == votes
    assert Path("a.csv").read_text() == "item,x\nann,1\nbob,2\n"
