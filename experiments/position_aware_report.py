"""What Lan et al.'s (2014) comparison came to: tables, a plot and a page, beside what it prints."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from command import Outcome, machine
from page import Cell, Table, facts, page
from plots import curve_plot
from printed import IMPROVEMENTS
from scores import Figure, Scores, p_text

FEATURES = "first-order"
DEPTHS = range(1, 11)
NEW = "p-ListMLE"
REFERENCE = "ListMLE"
PAPER = "Lan, Zhu, Guo, Niu and Cheng (2014), Position-Aware ListMLE"

NOTES = (
    "Unless this is MQ2007-list or MQ2008-list, the data differ from the paper's: there every "
    "query has a full order of hundreds of documents, here it has grades with ties. Compare "
    "who is ahead, and not the values.",
    "ListMLE and p-ListMLE need a strict order: tied documents are put in a random one, once. "
    "The two rows of PL-Partition are the same objectives with the ties summed over; they are "
    "not in the paper.",
    "The paper leaves open what an iteration is, and what the stopping rule compares. Here an "
    "iteration is a pass over the training queries, in steps by the mean gradient of a batch of "
    "them; a rule is met when the mean loss changes by less, relative to the pass before.",
    "Features are standardised over the training part. All methods are trained and chosen alike; "
    "the paper trains ListNet and RankCosine as their own papers have it.",
    "NDCG has gains 2^label − 1 (or, with --gain linear, the label) and discounts 1 / log2(1 + "
    "rank); tied scores are averaged, and a query without a relevant document counts as 0. Labels "
    "of a full order run to a thousand, and 2^label overflows: all gains of a query are divided by "
    "2^(its largest label), which changes no NDCG.",
    "Figures are means over the test queries of all folds, with 95 % bootstrap intervals (BCa); "
    "p-values are those of a paired randomisation test on the same queries, two-sided.",
    "p-ListMLE's weights are 2^(n − i) − 1, divided by their sum over the list.",
)


@dataclass
class Report:
    """All that is shown of a run.

    Parameters
    ----------
    scores
        of every method, by NDCG@1 … NDCG@10
    data
        the name of the data set
    settings, notes
        how it was run, and what to know about it
    """

    scores: Scores
    data: str
    settings: dict[str, str]
    notes: list[str]

    @cached_property
    def figures(self) -> list[Figure]:
        """All means with their intervals. The paper prints none."""
        return self.scores.figures({})

    def outcome(self, choices: list[dict[str, Any]]) -> Outcome:
        """The files; `choices` says what was chosen on the validation parts."""
        curves = {
            method: [self.scores.mean(FEATURES, method, f"NDCG@{k}") for k in DEPTHS]
            for method in self._methods
        }
        plot = curve_plot(curves, f"{self.data}: test NDCG@k, means over the queries")
        about = machine()
        text = page(
            f"p-ListMLE against ListMLE, ListNet and RankCosine: {self.data}",
            [
                f"{PAPER}, section 6, run again with tierrank on {self.data}. The paper prints six "
                "improvements and a figure without numbers; the improvements stand beside ours.",
            ],
            self.tables(),
            plot,
            f"Test NDCG@1 to NDCG@10 on {self.data}, as in the paper's figure 1.",
            self.notes,
            [facts("Settings", self.settings), facts("Machine", about)],
        )
        more = {
            "experiment": "Lan et al. (2014), section 6",
            "settings": self.settings,
            "machine": about,
            "notes": self.notes,
            "printed": IMPROVEMENTS,
            "improvements": {
                other: self.scores.over((FEATURES, NEW), (FEATURES, other), "NDCG@10")._asdict()
                for other in IMPROVEMENTS
            },
            "chosen": choices,
            "by fold": self.scores.by_fold(),
        }
        return Outcome(self.figures, plot, text, more)

    def tables(self) -> list[Table]:
        """The improvements beside the printed ones, and all the curves."""
        return [self._improvements(), self._curves()]

    @property
    def _methods(self) -> list[str]:
        return list(dict.fromkeys(figure.method for figure in self.figures))

    def _improvements(self) -> Table:
        rows = []
        for other, printed in IMPROVEMENTS.items():
            here = self.scores.over((FEATURES, NEW), (FEATURES, other), "NDCG@10")
            cells = [Cell(f"{value:+.2f}%", kind="printed") for value in printed.values()]
            rows.append([Cell(other), *cells, Cell(str(here)), Cell(p_text(here.p_value))])
        columns = ["over", *next(iter(IMPROVEMENTS.values())), self.data, "p"]
        return Table(
            f"By how much {NEW} improves NDCG@10", columns, rows,
            groups=[("", 1), ("printed", 2), ("ours", 2)],
            text="Relative differences of the means. p is two-sided, from a paired randomisation "
            "test over the test queries; the paper gives none.",
        )  # fmt: skip

    def _curves(self) -> Table:
        known = {(figure.method, figure.measure): figure for figure in self.figures}
        measures = [f"NDCG@{k}" for k in DEPTHS]
        best = {m: max(known[method, m].mean for method in self._methods) for m in measures}
        rows = []
        for method in self._methods:
            cells = []
            for m in measures:
                figure = known[method, m]
                small = f"[{figure.low:.4f}, {figure.high:.4f}]" if m == measures[-1] else ""
                cells.append(Cell(f"{figure.mean:.4f}", small, best=figure.mean == best[m]))
            rows.append([Cell(method), *cells])
        kinds = ["ours" if method.startswith("PL-") else "" for method in self._methods]
        columns = ["method", *(f"@{k}" for k in DEPTHS)]
        return Table(
            f"Test NDCG@k on {self.data}", columns, rows, row_kinds=kinds,
            text="Means over the test queries, with a 95 % interval for the last. In italics: not "
            "in the paper.",
        )  # fmt: skip
