"""The command line: what it prints, what it writes, and what it says to wrong arguments."""

import re

import pytest
import torch
from typer.testing import CliRunner

import tierrank
from tierrank.cli import app
from tierrank.demo import OBJECTIVES as OBJECTIVES_OF_THE_DEMO
from tierrank.losses import OBJECTIVES

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture(autouse=True)
def _one_thread():
    """The problems are tiny: a second thread would only wait."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def run(*arguments):
    """Exit code, and the words of all that was printed, without boxes, colours and line breaks."""
    result = CliRunner().invoke(app, list(arguments), env={"COLUMNS": "200", "NO_COLOR": "1"})
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    plain = re.sub(r"\x1b\[[0-9;]*m", "", result.output)
    return result.exit_code, re.sub(r"[\s│╭╮╰╯─]+", " ", plain)


def test_the_demo_prints_a_table_of_errors_and_saves_a_plot(tmp_path):
    plot = tmp_path / "new folder" / "errors.png"
    arguments = ["demo", "--lists", "40", "--items", "6", "--out", str(plot)]
    code, text = run(*arguments)
    assert code == 0
    assert "40 lists of 6 items in 4 tiers" in text
    for name in OBJECTIVES_OF_THE_DEMO:
        errors = re.search(rf"{re.escape(name)}((?: \d+\.\d{{4}})+)", text)
        assert errors, f"no row for {name} in: {text}"
        assert len(errors[1].split()) == 3  # for 2, 10 and 40 lists
    assert plot.read_bytes().startswith(PNG)
    assert [path.name for path in plot.parent.iterdir()] == ["errors.png"]  # nothing half-written
    assert run(*arguments) == (0, text)  # the same seed, the same numbers


def test_the_demo_finds_the_worths_and_the_exact_likelihood_finds_them_best(tmp_path):
    _, text = run("demo", "--lists", "2000", "--items", "8", "--out", str(tmp_path / "plot.png"))
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
        (["demo", "--out", "errors.xyz"], "a plot is a .png, .pdf or .svg file"),
        (["demo", "--out", "/dev/null/errors.png"], "no plot can be saved there"),
        (["demo", "--colour", "red"], "No such option"),
        (["fly"], "No such command 'fly'"),
    ],
)
def test_wrong_arguments_are_explained(arguments, message):
    code, text = run(*arguments)
    assert code == 2
    assert message in text


def test_version():
    assert run("--version") == (0, f"tierrank {tierrank.__version__} ")


def test_help_names_the_commands_and_their_options():
    code, text = run("--help")
    assert code == 0
    assert "demo" in text
    code, text = run("demo", "--help")
    assert code == 0
    for option in ("--items", "--lists", "--tiers", "--seed", "--out"):
        assert option in text


def test_without_a_command_the_help_is_shown():
    _, text = run()
    assert "demo" in text


def test_the_objectives_are_listed_by_family():
    code, text = run("objectives")
    assert code == 0
    for name, entry in OBJECTIVES.items():
        assert f" {name} " in text
        assert entry.summary in text
    for family in ("likelihood", "listwise", "pairwise", "ordered partition"):
        assert f" {family} " in text


def test_an_objective_is_explained():
    code, text = run("objectives", "PL_TopK")
    assert code == 0
    assert "pl-topk: tierrank.losses.pl_top_k(scores, tiers, k=10, weights=None" in text
    assert "Minus the log-probability of the first k places alone" in text


def test_an_unknown_objective_is_met_with_the_nearest():
    code, text = run("objectives", "rank-nte")
    assert code == 2
    assert "there is no objective 'rank-nte'; did you mean 'ranknet'?" in text
