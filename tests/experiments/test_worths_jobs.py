"""Cells are computed once: kept, found again, and never lost because another one failed."""

import json
import math

import pytest
from worths_jobs import Store, run_cells, title

pytestmark = pytest.mark.slow  # whole experiments

CELLS = [{"method": "root", "number": number} for number in (1, 4, 9)]


def roots(calls):
    """Square roots, with a note of what was asked for."""

    def perform(cell):
        calls.append(cell["number"])
        if cell["number"] < 0:
            raise ValueError("negative")
        return {"root": math.sqrt(cell["number"])}

    return perform


def test_what_is_done_is_not_done_again(tmp_path):
    calls = []
    assert run_cells(CELLS[:2], roots(calls), Store(tmp_path)) == [{"root": 1.0}, {"root": 2.0}]
    assert run_cells(CELLS, roots(calls), Store(tmp_path))[2] == {"root": 3.0}
    assert calls == [1, 4, 9]


def test_other_settings_are_another_cell(tmp_path):
    store = Store(tmp_path)
    store.write({**CELLS[0], "training": {"steps": 5}}, {"root": 7.0})
    assert store.read({**CELLS[0], "training": {"steps": 5}}) == {"root": 7.0}
    assert store.read({**CELLS[0], "training": {"steps": 6}}) is None
    (file,) = (tmp_path / "cells").iterdir()
    assert file.name.startswith("root-number-1-")
    assert json.loads(file.read_text())["cell"]["training"] == {"steps": 5}


def test_a_failure_does_not_stop_the_others(tmp_path):
    cells = [CELLS[0], {"method": "root", "number": -1}, CELLS[2]]
    with pytest.raises(ValueError, match="these failed:\nroot, number -1: negative"):
        run_cells(cells, roots([]), Store(tmp_path))
    assert Store(tmp_path).read(CELLS[2]) == {"root": 3.0}


def test_a_broken_file_is_named(tmp_path):
    store = Store(tmp_path)
    store.write(CELLS[0], {"root": 1.0})
    store.path(CELLS[0]).write_text("{")
    with pytest.raises(ValueError, match="is no result of this program: remove it"):
        run_cells(CELLS, roots([]), store)


def test_an_interrupt_keeps_what_is_done(tmp_path, capsys):
    def perform(cell):
        if cell["number"] == 4:
            raise KeyboardInterrupt
        return {"root": 1.0}

    with pytest.raises(SystemExit) as stopped:
        run_cells(CELLS, perform, Store(tmp_path))
    assert stopped.value.code == 130
    assert "the same command goes on" in capsys.readouterr().out
    assert Store(tmp_path).read(CELLS[0]) == {"root": 1.0}


def test_no_jobs_are_too_few(tmp_path):
    with pytest.raises(ValueError, match="--jobs is how many run at once, 1 or more, not 0"):
        run_cells(CELLS, roots([]), Store(tmp_path), jobs=0)


def test_processes_give_what_one_gives_in_the_order_of_the_cells(tmp_path):
    found = run_cells(CELLS, title_length, Store(tmp_path), jobs=2)
    assert found == [{"length": len(title(cell))} for cell in CELLS]


def title_length(cell):
    """Something that another process can import."""
    return {"length": len(title(cell))}
