"""How the training of a ranker of labels is shown."""

import io
import re

import pytest
from rich.console import Console

from tierrank.cli import progress
from tierrank.cli.progress import RowsDisplay, TrainingDisplay, about, amount, size
from tierrank.training import Progress


@pytest.fixture
def shown(monkeypatch):
    """Where the displays write to: a terminal of some width, or a file."""

    def shown(width=None):
        console = Console(file=io.StringIO(), width=width or 300, force_terminal=width is not None)
        monkeypatch.setattr(progress, "stderr", lambda: console)
        return console.file

    return shown


@pytest.fixture
def clock(monkeypatch):
    """A clock that is set by hand."""
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(progress, "in_use", lambda: 2_340_000_000)
    return now


def plain(file):
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", file.getvalue())


def run_some(display, clock):
    """Four batches a minute, of 20 an epoch: 300 seconds an epoch."""
    for batch in range(1, 6):
        display.watch(
            Progress(
                3, 10, "epoch", 7.5, best=0.25, step=(batch, 20), run="learning rate 1 (1 of 3)"
            )
        )
        clock[0] += 15


def test_lines_tell_speed_memory_and_time_left(shown, clock):
    file = shown()
    with TrainingDisplay("p@5", runs=3, rows=1200, labels=50_000) as display:
        run_some(display, clock)
    line = file.getvalue().splitlines()[-1]
    assert line.startswith(
        "learning rate 1 (1 of 3): epoch 4 of at most 10  batch 5 of 20  loss 7.5000  best 0.2500  "
    )
    # 1,200 rows in 300 seconds; 6.75 epochs are left of this run, and twice 10
    assert "  rows/s 4  labels/s 200,000  memory 2.34 GB  " in line
    assert "  left: epoch 4 min, all ≤ 2.2 h  " in line
    assert pytest.approx(2.2, abs=0.05) == 26.75 * 300 / 3600


def test_a_run_that_has_ended_leaves_a_line_and_speed_is_measured_anew(shown, clock):
    file = shown()
    with TrainingDisplay("p@5", runs=2, rows=1000, labels=10) as display:
        for done in (1, 2):
            clock[0] += 2
            display.watch(Progress(done, 9, "epoch", 3.0, 0.1 * done, 0.1 * done, run="first"))
        clock[0] += 2
        display.watch(Progress(1, 9, "epoch", 2.0, 0.15, 0.15, run="second"))
        assert not any("rows/s" in part for part in display._pace(display._last))
        clock[0] += 10
        display.watch(Progress(3, 9, "epoch", 2.0, 0.16, 0.16, run="second"))
    lines = file.getvalue().splitlines()
    assert lines[0] == "first: 2 epochs  loss 3.0000  p@5 0.2000  best 0.2000 at 2  4 s"
    assert lines[1].startswith("second: epoch 3 of at most 9  loss 2.0000  p@5 0.1600")
    assert "rows/s 200  labels/s 2,000" in lines[1]
    assert "left: ≤ 30 s" in lines[1]  # 6 epochs of 5 seconds


def test_only_the_last_half_minute_counts(shown, clock):
    shown()
    with TrainingDisplay("p@5", runs=1, rows=100, labels=1) as display:
        for done, seconds in ((0, 0), (1, 100), (2, 10), (3, 10), (4, 10)):
            clock[0] += seconds
            display.watch(Progress(done, 9, "epoch", 1.0, run="slow, then fast"))
        assert display._speed.a_second == pytest.approx(3 / 30)


@pytest.mark.parametrize("width", [60, 80, 120])
def test_a_terminal_has_a_bar_and_two_lines_that_fit(shown, clock, width):
    file = shown(width)
    with TrainingDisplay("p@5", runs=3, rows=90_000, labels=1e6) as display:
        run_some(display, clock)
        assert display._bars.tasks[0].completed == 3.25
        display._bars.refresh()
    text = plain(file)
    assert all(len(line) <= width for line in text.replace("\r", "\n").splitlines())
    assert "learning rate 1 (1 of 3)" in text
    assert "batch 5 of 20  loss 7.5000  best 0.2500" in text
    assert "left: epoch 4 min, all ≤ 2.2 h" in text
    assert ("rows/s 300  labels/s 300 M  memory 2.34 GB" in text) == (width >= 80)


def test_rows_are_counted_too(shown, clock):
    file = shown()
    with RowsDisplay("predicting", 5000) as display:
        clock[0] += 8
        display.show(1000)
    assert file.getvalue() == (
        "predicting: 1,000 of 5,000 rows  rows/s 125  left: 32 s  memory 2.34 GB\n"
    )
    file = shown()
    with RowsDisplay("predicting", 5000, silent=True) as display:
        clock[0] += 8
        display.show(1000)
    assert file.getvalue() == ""


def test_numbers_are_said_as_people_say_them():
    amounts = [0.52, 18.34, 734.4, 12_444, 999_600, 1_834_000, 2.05e9]
    assert [amount(each) for each in amounts] == [
        "0.52", "18.3", "734", "12,400", "1,000,000", "1.83 M", "2.05 G",
    ]  # fmt: skip
    times = [0, 42.4, 89, 91, 750, 5000, 5500, 12_600, 200_000]
    assert [about(each) for each in times] == [
        "0 s", "42 s", "89 s", "2 min", "12 min", "83 min", "1.5 h", "3.5 h", "2.3 days",
    ]  # fmt: skip
    sizes = [1500, 45_200, 999_700, 512e6, 1.25e9]
    assert [size(each) for each in sizes] == ["1.5 kB", "45.2 kB", "1 MB", "512 MB", "1.25 GB"]
