"""Plots: files that are whole, and what is drawn in them."""

import pytest

from tierrank.ranking.comparison import Standing
from tierrank.report import plots
from tierrank.training import History

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture
def drawn(monkeypatch):
    """The figures that were saved."""
    figures = []
    save = plots.save

    def keep(figure, path):
        figures.append(figure)
        save(figure, path)

    monkeypatch.setattr(plots, "save", keep)
    return figures


def history(metric=True, steps=5):
    made = History("tree", "ndcg@10")
    for step in range(1, steps + 1):
        made.add(step, 10.0 / step, 1 - abs(step - 3) / 10 if metric else None)
    return made


def test_the_curve_shows_loss_and_metric_and_names_the_best_step(tmp_path, drawn):
    plots.plot_curve(tmp_path / "curve.png", history(), title="BoostedRanker")
    assert (tmp_path / "curve.png").read_bytes().startswith(PNG)
    (figure,) = drawn
    left, right = figure.axes
    assert left.lines[0].get_ydata().tolist() == [10.0 / step for step in range(1, 6)]
    assert right.lines[0].get_ydata().tolist() == [1 - abs(step - 3) / 10 for step in range(1, 6)]
    assert left.get_title() == "BoostedRanker: best ndcg@10 1.0000 at tree 3"
    assert (left.get_xlabel(), right.get_ylabel()) == ("tree", "validation ndcg@10")


@pytest.mark.parametrize("steps", [1, 400])
def test_without_validation_data_there_is_one_curve(tmp_path, drawn, steps):
    plots.plot_curve(tmp_path / "curve.png", history(metric=False, steps=steps), title="x")
    (figure,) = drawn
    assert len(figure.axes) == 1
    assert len(figure.axes[0].lines[0].get_xdata()) == steps


def test_steps_without_a_value_are_passed_over(tmp_path, drawn):
    made = history()
    made.loss[1] = made.metric[0] = None
    plots.plot_curve(tmp_path / "curve.png", made, title="x")
    left, right = drawn[0].axes
    assert left.lines[0].get_xdata().tolist() == [1, 3, 4, 5]
    assert right.lines[0].get_xdata().tolist() == [2, 3, 4, 5]


def test_standings_are_dots_with_intervals_the_first_on_top(tmp_path, drawn):
    standings = [
        Standing("a", "map", 9, 0.5, 0.4, 0.6),
        Standing("b" * 60, "map", 9, 0.7, 0.65, 0.8),
    ]
    plots.plot_standings(tmp_path / "c.png", standings, title="folds")
    assert (tmp_path / "c.png").read_bytes().startswith(PNG)
    (axes,) = drawn[0].axes
    heights = dict(zip([t.get_text() for t in axes.get_yticklabels()], axes.get_yticks()))  # noqa: B905
    assert list(heights.values()) == [2, 1]
    assert max(len(name) for name in heights) == 40
    intervals = [line.get_xdata() for line in axes.lines if len(line.get_xdata()) == 2]
    assert [0.4, 0.6] in [list(ends) for ends in intervals]
    assert {text.get_text() for text in axes.texts} == {"0.5000", "0.7000"}


def test_differences_are_a_forest_about_the_first(tmp_path, drawn):
    standings = [
        Standing("a $b", "map", 9, 0.5, 0.4, 0.6),
        Standing("b", "map", 9, 0.7, 0.65, 0.8, 0.2, 0.1, 0.3, 0.001, 0.002),
        Standing("c $", "map", 9, 0.45, 0.4, 0.5, -0.05, -0.15, 0.05, 0.3, 0.3),
    ]
    plots.plot_differences(tmp_path / "c.png", standings, title="1 $ of 2 $")
    assert (tmp_path / "c.png").read_bytes().startswith(PNG)
    (axes,) = drawn[0].axes
    heights = dict(zip([t.get_text() for t in axes.get_yticklabels()], axes.get_yticks()))  # noqa: B905
    assert heights == {"b": 2, "c $": 1}
    ends = {tuple(line.get_xdata()): line.get_color() for line in axes.lines}
    assert ends[0.1, 0.3] == plots.METRIC_COLOUR  # beyond chance
    assert ends[-0.15, 0.05] == plots.LOSS_COLOUR
    texts = [text.get_text() for text in axes.texts]
    assert texts[:6] == ["+0.2000", "0.7000", "0.002", "-0.0500", "0.4500", "0.300"]
    assert "higher is better" in axes.get_xlabel()


def test_one_ranker_alone_is_drawn_by_its_mean(tmp_path, drawn):
    plots.plot_differences(
        tmp_path / "c.png", [Standing("a", "map", 9, 0.5, 0.4, 0.6)], title="folds"
    )
    assert drawn[0].axes[0].get_xlabel() == "map, with 95% interval"


def test_a_plot_that_cannot_be_drawn_leaves_nothing_behind(tmp_path):
    with pytest.raises(ValueError, match="xyz"):
        plots.plot_curve(tmp_path / "curve.xyz", history(), title="x")
    assert list(tmp_path.iterdir()) == []


def test_dollars_in_a_name_or_a_title_are_no_formula(tmp_path, drawn):
    wrong = r"$\frac$"  # which cannot be set as one
    plots.plot_curve(tmp_path / "curve.png", history(), title=wrong)
    standing = Standing(wrong, "map", 9, 0.5, 0.4, 0.6)
    plots.plot_standings(tmp_path / "standings.png", [standing], title=wrong)
    assert [label.get_text() for label in drawn[1].axes[0].get_yticklabels()] == [wrong]
    for figure in drawn:
        assert figure.axes[0].get_title().startswith(r"\$\frac\$")
