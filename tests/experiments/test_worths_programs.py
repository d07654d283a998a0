"""Figures 1 to 3 of Ma et al. (2021) and the statistics, from the command line to the files."""

import csv
import json
import subprocess
import sys

import numpy as np
import pytest
import worths_cost
import worths_recovery
import worths_statistics
from extreme_report import Report
from worths_cost import figure_2, three_figures
from worths_training import Training, data_for, mean_squared_error, train

import tierrank as tr
from tierrank.aggregation.aggregator import RankAggregator

pytestmark = pytest.mark.slow  # whole experiments


def files(folder, stem):
    """What a run leaves: CSV lines, JSON, Markdown; page and plot are there too."""
    assert (folder / f"{stem}.png").read_bytes().startswith(b"\x89PNG")
    assert (folder / f"{stem}.html").read_text().rstrip().endswith("</html>")
    with (folder / f"{stem}.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    more = json.loads((folder / f"{stem}.json").read_text())
    return lines, more, (folder / f"{stem}.md").read_text()


SMALL = ["--items", "6", "12", "--lists", "8", "30", "--seeds", "2", "--steps", "12"]


@pytest.fixture(scope="module")
def recovered(tmp_path_factory):
    out = tmp_path_factory.mktemp("recovery")
    worths_recovery.main([*SMALL, "--out", str(out)])
    return out


def test_recovery_has_the_errors_of_direct_calls(recovered):
    lines, more, _ = files(recovered, "figure-1")
    assert len(lines) == 2 * 2 * 6
    for method in ("pl-partition", "ranksvm", "pl-topk"):
        errors = []
        for seed in (0, 1):
            worths, tiers = data_for(method, 12, 30, seed)
            done = train(method, tiers, Training(steps=12), seed)
            errors.append(mean_squared_error(done.scores, worths))
        (line,) = [
            li for li in lines if (li["items"], li["lists"], li["method"]) == ("12", "30", method)
        ]
        assert float(line["mean"]) == pytest.approx(np.mean(errors))
        assert float(line["standard_error"]) == pytest.approx(np.std(errors, ddof=1) / np.sqrt(2))
    assert len(more["fits"]) == 2 * 2 * 2 * 6


def test_recovery_marks_the_lowest_and_lists_the_exceptions(recovered):
    lines, _, text = files(recovered, "figure-1")
    means = {(li["items"], li["lists"], li["method"]): float(li["mean"]) for li in lines}
    rivals = ("pl-partition", "pl-lb", "attrank", "ranknet", "ranksvm")
    exceptions = 0
    for items, lists in (("6", "8"), ("6", "30"), ("12", "8"), ("12", "30")):
        best = min(rivals, key=lambda m, cell=(items, lists): means[*cell, m])
        marked = [
            li["method"]
            for li in lines
            if (li["items"], li["lists"]) == (items, lists) and li["lowest"] == "True"
        ]
        assert marked == [best]
        ahead = [m for m in rivals if means[items, lists, m] < means[items, lists, rivals[0]]]
        exceptions += len(ahead)
    section = text[text.index("**Where PL-Partition is not the lowest**") :]
    section = section[: section.index("**The paper's claims**")]
    listed = [line for line in section.splitlines() if line.startswith("| N = ")]
    assert len(listed) == exceptions
    assert ("no cell" in section) == (exceptions == 0)


def test_figure_3_is_left_beside_figure_1(recovered):
    _, more, text = files(recovered, "figure-3")
    assert "Mean squared error" in text
    assert more["title"].startswith("Figure 3")


def test_recovery_goes_on_where_it_was(recovered, monkeypatch):
    done = []
    perform = worths_recovery.perform
    monkeypatch.setattr(
        worths_recovery, "perform", lambda cell: done.append(cell["method"]) or perform(cell)
    )
    monkeypatch.setattr(Report, "publish", lambda report, folder: None)  # plots take their time
    worths_recovery.main([*SMALL, "--out", str(recovered)])
    assert done == []
    more = [*SMALL, "--methods", "pl-partition", "pl-efron", "--out", str(recovered)]
    worths_recovery.main(more)
    assert done == ["pl-efron"] * 8


def test_time_and_memory_of_one_cell_are_measured_in_a_process(tmp_path):
    arguments = ["--items", "50", "--methods", "attrank", "--seeds", "1", "--budget", "0.05"]
    worths_cost.main([*arguments, "--out", str(tmp_path)])
    (line,), _, text = files(tmp_path, "figure-2")
    assert float(line["seconds"]) > 0
    assert 1 <= int(line["timed steps"]) <= 1000
    assert float(line["process"]) > 1e7  # torch alone is larger
    assert float(line["memory"]) < float(line["process"])
    assert "| N = 50 |" in text


def test_a_process_that_takes_too_long_is_a_gap_that_says_so():
    cell = {"method": "attrank", "items": 50, "seed": 0, "threads": 1, "budget": 1.0, "limit": 0.01}
    assert worths_cost.perform(cell) == {"failed": "more than 0.01 s"}
    good = {**cell, "items": 100, "seconds": 2.0, "timed steps": 40, "memory": 2**21, "process": 1}
    report = figure_2([{**cell, "failed": "more than 0.01 s"}, good])
    seconds, memory = report.tables
    assert [row[1].text for row in seconds.rows] == ["more than 0.01 s", "2.00"]
    assert seconds.rows[1][1].small == "40 timed"
    assert memory.rows[1][1].text == "2.00"
    assert three_figures(0.012345) == "0.0123"
    assert three_figures(1234.5) == "1,230"


def test_steps_are_adagrad_s_over_the_batches():
    _, tiers = data_for("pl-lb", 9, 40, 0)
    assert worths_cost.Steps("pl-lb", tiers).run(3, 60.0)[0] == 3
    assert worths_cost.Steps("pl-lb", tiers).run(1000, 0.0)[0] == 1  # one at least


STATISTICS = ["--items", "5", "--sizes", "60", "240", "--seeds", "2", "--lists", "80",
              "--replicates", "3", "--sets", "2", "--draws", "4"]  # fmt: skip


@pytest.fixture(scope="module")
def statistics(tmp_path_factory):
    out = tmp_path_factory.mktemp("statistics")
    worths_statistics.main([*STATISTICS, "--out", str(out)])
    return out


def test_convergence_has_the_errors_of_centred_log_worths(statistics):
    _, more, _ = files(statistics, "statistics")
    truth, tiers = tr.data.synthetic.simulate(5, 240, seed=1)
    truth = truth - truth.mean()
    (line,) = [
        c for c in more["cells"] if (c["lists"], c["method"]) == (240, "pl-partition")
    ]  # fmt: skip
    # the maximum by another way: the log-likelihood at what was found is not below its neighbours'
    found = RankAggregator().fit(tiers).log_worths_
    assert line["by seed"][1] == pytest.approx(np.mean((found - truth.numpy()) ** 2))
    best = float(tr.log_prob(found, tiers).sum())
    for move in np.random.default_rng(0).normal(scale=0.01, size=(20, 5)):
        assert float(tr.log_prob(found + move, tiers).sum()) < best
    assert set(more["slopes"]) == {"pl-partition", "pl-efron", "pl-lb"}


def test_coverage_compares_intervals_with_the_truth(statistics):
    _, more, text = files(statistics, "statistics")
    (own,) = [
        c for c in more["coverage"] if (c["objective"], c["kind"]) == ("pl-partition", "sandwich")
    ]
    hits = []
    for seed in range(3):
        truth, tiers = tr.data.synthetic.simulate(5, 80, seed=seed)
        truth = (truth - truth.mean()).numpy()
        fitted = RankAggregator(uncertainty="sandwich").fit(tiers)
        _, low, high = fitted.intervals(0.95)
        hits.append(((low <= truth) & (truth <= high))[np.argsort(-truth)])
    assert own["places"] == pytest.approx(np.mean(hits, axis=0))
    assert own["all"]["mean"] == pytest.approx(np.mean(hits))
    assert "Coverage of 95 % intervals" in text


def test_bootstrap_widths_are_set_beside_wald_widths(statistics):
    _, more, _ = files(statistics, "statistics")
    first = more["bootstrap"][0]
    _, tiers = tr.data.synthetic.simulate(5, 80, seed=0)
    fitted = RankAggregator().fit(tiers)
    low, high = fitted.bootstrap(4, random_state=0).intervals(0.95)
    _, below, above = fitted.intervals(0.95)
    np.testing.assert_allclose(first["information"]["widths"], (high - low) / (above - below))


def test_studies_can_be_asked_for_alone(tmp_path):
    worths_statistics.main([*STATISTICS, "--studies", "bootstrap", "--out", str(tmp_path)])
    lines, more, _ = files(tmp_path, "statistics")
    assert {line["study"] for line in lines} == {"bootstrap"}
    assert more["coverage"] == []


def test_a_mistake_is_one_message_and_exit_code_2(tmp_path, capsys):
    for program, arguments in (
        (worths_recovery, ["--items", "2"]),
        (worths_recovery, ["--lists", "1"]),
        (worths_recovery, ["--seeds", "0"]),
        (worths_recovery, ["--held-out", "1.5"]),
        (worths_cost, ["--items", "3"]),
        (worths_cost, ["--budget", "0"]),
        (worths_statistics, ["--sizes", "100"]),
        (worths_statistics, ["--replicates", "1"]),
    ):
        with pytest.raises(SystemExit) as stopped:
            program.main([*arguments, "--out", str(tmp_path / "out")])
        assert stopped.value.code == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert ": " in line
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("program", [worths_recovery, worths_cost, worths_statistics])
def test_it_runs_as_a_program(program):
    command = [sys.executable, program.__file__, "--help"]
    ran = subprocess.run(command, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    for option in ("--items", "--seeds", "--out"):
        assert option in ran.stdout
