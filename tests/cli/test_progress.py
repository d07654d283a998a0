"""How a fit is shown: a bar on a terminal, lines elsewhere."""

import io
import re

import pytest
from rich.console import Console

from tierrank.cli import progress
from tierrank.cli.progress import FitDisplay, duration
from tierrank.training import Progress


@pytest.fixture
def shown(monkeypatch):
    """Where the display writes to: a terminal of some width, or a file."""

    def shown(width=None):
        console = Console(file=io.StringIO(), width=width or 200, force_terminal=width is not None)
        monkeypatch.setattr(progress, "stderr", lambda: console)
        return console.file

    return shown


def steps(display, count, total):
    for number in range(1, count + 1):
        metric = 0.5 if number > 3 else number / 10
        display.watch(
            Progress(number, total, "tree", 1 / number, metric, 0.5 if number > 3 else metric)
        )


def test_elsewhere_than_on_a_terminal_there_are_lines_now_and_then(shown, monkeypatch):
    file = shown()
    clock = iter(range(0, 1000, 2))  # two seconds a look
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))
    with FitDisplay("ndcg@10") as display:
        display.begin("boosted")
        steps(display, 9, 100)
    lines = file.getvalue().splitlines()
    assert 2 <= len(lines) <= 4
    assert lines[-1].startswith("boosted: tree 9 of at most 100  loss 0.1111  ndcg@10 0.5000  best")
    assert "best 0.5000 at 4" in lines[-1]  # the first step that had it
    assert "\x1b" not in file.getvalue()


@pytest.mark.parametrize("width", [60, 80, 120])
def test_on_a_terminal_a_bar_says_as_much_as_there_is_room_for(shown, width):
    file = shown(width)
    with FitDisplay("ndcg@10", fits=2) as display:
        display.begin("fold 1 boosted pl-partition")
        steps(display, 40, 50)
        display._bars.refresh()
        display.end("not shown")
    plain = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", file.getvalue())
    assert all(len(line) <= width for line in plain.replace("\r", "\n").splitlines())
    assert "40/50" in plain
    assert ("best 0.5000" in plain) == (width >= 80)
    assert ("loss" in plain) == (width >= 120)
    assert "not shown" not in plain


def test_a_fit_that_goes_on_does_not_claim_to_know_where_the_best_was(shown, monkeypatch):
    file = shown()
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0)
    with FitDisplay("map") as display:
        display.begin("neural")
        display.watch(Progress(7, 9, "epoch", 0.1, 0.3, 0.6))
    assert "best 0.6000  " in file.getvalue()


def test_on_the_way_through_an_epoch_lines_count_batches_and_keep_the_last_metric(
    shown, monkeypatch
):
    file = shown()
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0)
    with FitDisplay("map") as display:
        display.begin("large")
        display.watch(Progress(0, 9, "epoch", 0.9, step=(3, 1536)))
        display.watch(Progress(1, 9, "epoch", 0.5, 0.3, 0.3))
        display.watch(Progress(1, 9, "epoch", 0.4, best=0.3, step=(1200, 1536)))
        display.begin("next")
        display.watch(Progress(0, 9, "epoch", 0.9, step=(1, 2)))
    lines = file.getvalue().splitlines()
    assert lines[0].startswith("large: epoch 0 of at most 9  batch 3 of 1,536  loss 0.9000  ")
    assert "best" not in lines[0]
    assert lines[1].startswith("large: epoch 1 of at most 9  loss 0.5000  map 0.3000  best")
    assert lines[2].startswith(
        "large: epoch 1 of at most 9  batch 1,200 of 1,536  loss 0.4000  map 0.3000  "
        "best 0.3000 at 1  "
    )
    assert "map" not in lines[3]


def test_on_the_way_through_an_epoch_the_bar_moves(shown):
    file = shown(100)
    with FitDisplay("map") as display:
        display.begin("large")
        display.watch(Progress(2, 4, "epoch", 0.4, best=0.3, step=(30, 40)))
        assert display._bars.tasks[0].completed == 2.75
        display._bars.refresh()
    plain = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", file.getvalue())
    assert "2/4" in plain
    assert "batch 30 of 40" in plain


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.0123, "0.012 s"), (3.2, "3.2 s"), (59.4, "59 s"), (200, "3 min 20 s"), (7500, "2 h 5 min")],
)
def test_durations_are_said_as_people_say_them(seconds, text):
    assert duration(seconds) == text
