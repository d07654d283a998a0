"""What README promises on its first screen, by an installed tierrank alone.

`python three_doors.py` needs no test and no checkout: the builds of wheels and of the package for
conda run it, too.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path


def run(*arguments: object) -> str:
    """The command, as the installed package has it."""
    typed = [sys.executable, "-m", "tierrank", *map(str, arguments)]
    ran = subprocess.run(typed, capture_output=True, text=True)
    assert ran.returncode == 0, f"{' '.join(typed)}\n{ran.stdout}\n{ran.stderr}"
    return ran.stdout


def ranker_that_serves(folder: Path) -> None:
    import numpy as np

    import tierrank as tr

    rng = np.random.default_rng(0)
    for name in ("train.txt", "test.txt"):
        X = rng.normal(size=(600, 4)).round(3)
        grades = np.digitize(X[:, 0] - np.abs(X[:, 1]), [0, 1])
        tr.data.write_letor(folder / name, X, grades, np.repeat(np.arange(30), 20))
    run("train", folder / "train.txt", "--out", folder / "model")
    assert "ndcg@10" in run("evaluate", folder / "model", folder / "test.txt")
    test = tr.data.read(folder / "test.txt")
    score = tr.load(folder / "model").score(test.X, test.y, qid=test.qid)
    assert score > 0.8, score  # of grades that the features determine


def leaderboard_with_intervals(folder: Path) -> None:
    import tierrank as tr

    votes = [["soup", ("rice", "cake")], ["rice", "cake", "soup"], [("soup", "rice"), "cake"]]
    file = folder / "votes.jsonl"
    file.write_text("".join(f"{json.dumps(vote)}\n" for vote in votes), encoding="utf-8")
    assert "soup" in run("aggregate", file, "--out", folder / "page.html")
    assert "soup" in (folder / "page.html").read_text(encoding="utf-8")
    low, high = tr.RankAggregator().fit(votes).predict_proba("soup", "cake", level=0.95)[1:]
    assert 0 < low < high < 1


def loss_for_a_network() -> None:
    import torch

    import tierrank as tr

    tiers = tr.Tiers.from_labels([2, 1, 1, 0, 1, 0], qid=[7, 7, 7, 7, 8, 8])
    scores = torch.zeros(6, requires_grad=True)
    tr.losses.pl_partition(scores, tiers).backward()
    # of scores that are all equal: 1 − 1/4 for the best of four, and 1 − 1/2 for the best of two
    assert abs(scores.grad[0] * 2 + 3 / 4) < 1e-5, scores.grad
    assert abs(scores.grad[4] * 2 + 1 / 2) < 1e-5, scores.grad


def main() -> None:
    import tierrank as tr

    with tempfile.TemporaryDirectory() as folder:
        ranker_that_serves(Path(folder))
        leaderboard_with_intervals(Path(folder))
    loss_for_a_network()
    print(f"All three doors of tierrank {tr.__version__} open: {tr.__file__}")


if __name__ == "__main__":
    main()
