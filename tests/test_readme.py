"""The commands of README.md, as they stand there, after what `make demo` does."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^tierrank .*", README, flags=re.MULTILINE)


def typed(line, folder):
    """Run a line in a shell that finds the command, as with the .venv activated."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    ran = subprocess.run(
        line, shell=True, cwd=folder, env={**os.environ, "PATH": path},
        capture_output=True, text=True,
    )  # fmt: skip
    assert ran.returncode == 0, f"{line}\n{ran.stdout}\n{ran.stderr}"
    return ran


@pytest.mark.slow
@pytest.mark.timeout(1200)  # a dozen commands, each of which loads torch
def test_every_command_works_as_typed_after_the_demo(tmp_path):
    assert len(COMMANDS) >= 9
    typed("tierrank demo --lists 40 --items 6 --examples demo", tmp_path)
    for line in COMMANDS:
        assert typed(line, tmp_path).stdout or "--out" in line
    made = {"model", "model.onnx", "labels-model", "top.txt", "report.html"}
    assert made <= {path.name for path in (tmp_path / "demo").iterdir()}


def test_make_demo_installs_all_that_the_commands_need_and_says_how_to_go_on(tmp_path):
    ran = subprocess.run(
        ["make", "--dry-run", "demo", f"VENV={tmp_path / '.venv'}"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "-e '.[plots,neural,boost,tables,export,distributed]'" in ran.stdout
    assert "tierrank demo --examples demo" in ran.stdout
    assert f"source {tmp_path / '.venv'}/bin/activate" in ran.stdout
    assert re.search(r"echo .*(tierrank train .*?)\"", ran.stdout)[1] in README


@pytest.mark.slow
def test_the_table_of_errors_is_what_the_demo_prints(tmp_path):
    printed = typed("tierrank demo", tmp_path).stdout
    rows = re.findall(r"^\| (PL-\w+|ListMLE) \([^)]*\) \|([\d. |]+)$", README, flags=re.MULTILINE)
    assert len(rows) == 4
    for name, figures in rows:
        said = re.search(rf"{name} \([^)]*\)([^\n]*)", printed)[1]
        assert re.findall(r"\d\.\d{4}", said) == re.findall(r"\d\.\d{4}", figures)
