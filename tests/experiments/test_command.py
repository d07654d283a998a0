"""The experiments as programs: what a user types, and what a mistake looks like."""

import subprocess
import sys

import ordered_partitions
import position_aware
import pytest


@pytest.mark.parametrize("program", [ordered_partitions, position_aware])
def test_a_mistake_is_one_message_and_exit_code_2(program, tmp_path, capsys):
    for arguments in (
        ["--data", str(tmp_path)],
        ["--data", str(tmp_path / "absent")],
        ["--data", str(tmp_path), "--split", "2"],
    ):
        with pytest.raises(SystemExit) as stopped:
            program.main(arguments)
        assert stopped.value.code == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert ": " in line


@pytest.mark.slow
def test_it_runs_as_a_program():
    command = [sys.executable, position_aware.__file__, "--help"]
    ran = subprocess.run(command, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    for option in ("--data", "--out", "--split", "--seed", "--quick"):
        assert option in ran.stdout
