"""The experiment on clicks: what it prints, and that a run which is there is not computed again."""

import clicks
import numpy as np
import pytest

from tierrank.data import write_letor


@pytest.fixture
def data(tmp_path):
    folder = tmp_path / "few"
    for fold in (1, 2):
        (folder / f"Fold{fold}").mkdir(parents=True)
        for name, seed in (("train", fold), ("vali", 5), ("test", 6)):
            rng = np.random.default_rng(seed)
            X = rng.normal(size=(160, 3))
            y = np.digitize(X[:, 0] + rng.normal(size=160), [0, 1])
            path = folder / f"Fold{fold}" / f"{name}.txt"
            write_letor(path, X, y, np.repeat(np.arange(20), 8))
    return folder


def test_it_compares_what_clicks_teach_and_goes_on_where_it_stopped(
    data, tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr(clicks, "TREES", 3)
    options = ["--data", str(data), "--out", str(tmp_path / "out"), "--folds", "1", "2"]
    clicks.main([*options, "--sizes", "300", "600"])
    printed = capsys.readouterr().out
    for row in ("boosted, weighed", "linear, oracle", "LightGBM, `position`", "from the log"):
        assert f"| {row} |" in printed
    assert (tmp_path / "out" / "few-position-based.svg").exists()
    table = printed[printed.index("## ") :]
    assert (tmp_path / "out" / "few-position-based.md").read_text().strip() == table.strip()

    monkeypatch.setattr(clicks, "Run", None)  # nothing is left to be computed
    clicks.main([*options, "--sizes", "300", "600"])
    assert capsys.readouterr().out == table


def test_part_of_the_way_is_between_naive_and_oracle(tmp_path, capsys):
    kept = {
        f"{kind}, {name}": [value, value]
        for kind in ("linear", "boosted")
        for name, value in (("naive", 0.4), ("weighed", 0.55), ("oracle", 0.6))
    }
    for fold in (1, 2):
        path = tmp_path / f"few-position-based-{fold}-100-0.json"
        path.write_text(clicks.json.dumps({"ndcg": kept, "biases": {}}))
    clicks.main(["--data", "few", "--out", str(tmp_path), "--table"])
    assert "| boosted, weighed | .5500 (75) |" in capsys.readouterr().out


def test_biases_of_many_logs_lie_about_the_simulators_as_they_say(data, capsys):
    clicks.main(["--data", str(data), "--folds", "1", "2", "--sizes", "2000", "--coverage", "40"])
    cells = [line.strip("| ").split(" | ") for line in capsys.readouterr().out.splitlines()]
    by_place = {line[0]: line for line in cells if len(line) == 5}
    mean, error = (float(part.replace("−", "-")) for part in by_place["2"][1].split(" ± "))
    assert abs(mean) < 4 * error
    spread, stated = map(float, by_place["2"][2:4])
    assert spread == pytest.approx(40**0.5 * error, rel=0.01)
    assert spread == pytest.approx(stated, rel=0.4)
    assert [*by_place][-2:] == ["all", "together"]


def test_coverage_is_what_intervals_hold():
    truth = np.array([0.0, -1.0, -2.0])
    covariance = np.diag([0.0, 1.0, 4.0])
    off = [(0.0, 0.0)] * 3 + [(2.0, 3.0)]  # standard errors 1 and 2: outside, inside
    found = [clicks.Propensities(truth + np.append(0.0, each), covariance) for each in off]
    table = "\n".join(clicks.spread(found, truth))
    assert "| 2 | +0.5000 ± 0.5000 | 1.0000 | 1.0000 | 75.0 ± 25.0 |" in table
    assert "| 3 | +0.7500 ± 0.7500 | 1.5000 | 2.0000 | 100.0 ± 0.0 |" in table
    assert "| all |  |  |  | 87.5 ± 12.5 |" in table
    assert "| together |  |  |  | 75.0 ± 25.0 |" in table  # 4 + 9/4 is above 5.99
