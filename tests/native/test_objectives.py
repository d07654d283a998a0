"""What the objectives' kernels are given is checked before it is followed."""

import numpy as np
import pytest

from tierrank import _native


def layout():
    """Two lists: {1} > {0, 2}, and {3} > {4}."""
    return _native.Layout(*(np.array(part) for part in ([0, 3, 5], [1, 3], [0, 1, 2], [0, 1, 2])))


STAGES = {
    "choice": "breslow",
    "scores": np.zeros(5),
    "bottom": np.full(2, -np.inf),
    "threads": 1,
    "value": np.empty(2),
    "gradient": np.empty(5),
    "bottom_gradient": np.empty(2),
}
ENTROPIES = {
    "scores": np.zeros(5),
    "grades": np.log([2.0, 1.0, 4.0]),  # the second list's last tier has none: 0
    "grade_offsets": np.array([0, 2, 3]),
    "above_0": False,
    "threads": 1,
    "value": np.empty(2),
    "gradient": np.empty(5),
}


def test_one_item_over_the_others_by_hand():
    assert _native.staged_log_prob(layout=layout(), **STAGES)
    np.testing.assert_allclose(STAGES["value"], -np.log([3, 2]))
    np.testing.assert_allclose(STAGES["gradient"], [-1 / 3, 2 / 3, -1 / 3, 1 / 2, -1 / 2])
    assert _native.cross_entropy(layout=layout(), **ENTROPIES)
    np.testing.assert_allclose(ENTROPIES["value"], -np.log([3, 2]))
    np.testing.assert_allclose(
        ENTROPIES["gradient"], [1 / 4 - 1 / 3, 1 / 2 - 1 / 3, 1 / 4 - 1 / 3, 0.3, -0.3], rtol=1e-13
    )


def test_they_say_whether_all_scores_are_finite():
    bad = {"scores": np.array([0.0, 0.0, 0.0, np.inf, 0.0])}
    assert not _native.staged_log_prob(layout=layout(), **(STAGES | bad))
    assert np.isnan(STAGES["value"]).tolist() == [False, True]
    assert not _native.cross_entropy(layout=layout(), **(ENTROPIES | bad))
    assert np.isnan(ENTROPIES["value"]).tolist() == [False, True]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"choice": "lottery"}, "no tiers are chosen by lottery"),
        ({"scores": np.zeros(4)}, "one score a row"),
        ({"bottom": np.zeros(3)}, "one bottom a list"),
        ({"value": np.empty(1)}, "one value a list"),
        ({"gradient": np.empty(4)}, "one slope a row"),
        ({"bottom_gradient": np.empty(3)}, "one slope a list"),
        ({"bottom_gradient": None}, "go together"),
    ],
)
def test_stages_of_another_shape_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        _native.staged_log_prob(layout=layout(), **(STAGES | changes))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"scores": np.zeros(6)}, "one score a row"),
        ({"grades": np.zeros(4)}, "grade_offsets must rise from 0 to the number of grades"),
        ({"grade_offsets": np.array([0, 3])}, "one number more than there are lists"),
        ({"grade_offsets": np.array([0, 4, 3])}, "grade_offsets must rise"),
        ({"grade_offsets": np.array([0, 0, 3])}, "one grade an upper tier"),
        ({"value": np.empty(3)}, "one value a list"),
        ({"gradient": np.empty(1)}, "one slope a row"),
    ],
)
def test_cross_entropies_of_another_shape_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        _native.cross_entropy(layout=layout(), **(ENTROPIES | changes))
