import copy
import dataclasses
import inspect
import pickle
import re
import sys

import numpy as np
import pytest
import torch
from scipy.stats import norm
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import tierrank as tr
from tierrank.aggregation.connectivity import Disconnected
from tierrank.aggregation.feature_worths import Unidentified
from tierrank.aggregation.lists import drawn_counts
from tierrank.aggregation.terms import GaussianPrior
from tierrank.report.tables import WORTH_COLUMNS
from tierrank.training import covariance
from votes import drawn_rankings

RANKINGS = drawn_rankings(0, 7, 150, 5, most_tied=3)[1]


@pytest.fixture(scope="module")
def fitted():
    return tr.RankAggregator().fit(RANKINGS, items=7)


def test_probabilities_of_sets_are_those_of_the_model(fitted):
    scores = fitted.log_worths_
    assert fitted.predict_proba([0, 1], {2, 3, 4}) == pytest.approx(
        np.exp(tr.log_prob_above(scores, [0, 1], [2, 3, 4]))
    )
    drawn = tr.sample(torch.from_numpy(scores), 200_000, generator=0).argsort(1)
    seen = (drawn[:, [0, 1]].max(1).values < drawn[:, [2, 3, 4]].min(1).values).double().mean()
    assert fitted.predict_proba([0, 1], [2, 3, 4]) == pytest.approx(float(seen), abs=0.005)


def test_pairwise_probabilities_agree_with_single_questions(fitted):
    matrix = fitted.pairwise_proba()
    np.testing.assert_allclose(matrix + matrix.T, 1)
    assert matrix[2, 5] == pytest.approx(fitted.predict_proba(2, 5))
    np.testing.assert_allclose(fitted.pairwise_proba([5, 2]), matrix[np.ix_([5, 2], [5, 2])])


def test_the_interval_of_a_pair_is_that_of_its_log_odds(fitted):
    p, low, high = fitted.predict_proba(0, 1, level=0.9)
    matrix = fitted.covariance()
    error = np.sqrt(matrix[0, 0] + matrix[1, 1] - 2 * matrix[0, 1])
    odds = fitted.log_worths_[0] - fitted.log_worths_[1]
    ends = 1 / (1 + np.exp(-(odds + np.array([-1, 1]) * 1.6448536269514722 * error)))
    assert (low, high) == pytest.approx(tuple(ends))
    assert low < p < high


def test_intervals_of_worths_come_from_the_delta_method(fitted):
    estimate, low, high = fitted.intervals(scale="worth")
    assert estimate.sum() == pytest.approx(1)
    matrix = fitted.covariance()
    for item in range(7):
        slope = np.eye(7)[item] - estimate
        p = estimate[item]
        margin = 1.959963984540054 * np.sqrt(slope @ matrix @ slope) / (1 - p)
        odds = np.log(p / (1 - p)) + np.array([-margin, margin])
        assert (low[item], high[item]) == pytest.approx(tuple(1 / (1 + np.exp(-odds))))


def test_log_worth_intervals_are_wald_s(fitted):
    estimate, low, high = fitted.intervals(0.9)
    np.testing.assert_allclose((low + high) / 2, estimate)
    np.testing.assert_allclose(high - low, 2 * 1.6448536269514722 * fitted.standard_errors_)


def test_expected_ranks_and_places_are_those_of_the_model(fitted):
    ranks = fitted.expected_ranks()
    assert ranks.estimate.sum() == pytest.approx(7 * 8 / 2)
    assert ((ranks.low < ranks.estimate) & (ranks.estimate < ranks.high)).all()
    drawn = tr.sample(torch.from_numpy(fitted.log_worths_), 100_000, generator=1).argsort(1)
    np.testing.assert_allclose(ranks.estimate, drawn.double().mean(0) + 1, atol=0.03)
    top = fitted.top_k_proba(3)
    np.testing.assert_allclose(top, (drawn < 3).double().mean(0), atol=0.006)
    with_ends = fitted.top_k_proba(3, level=0.95, draws=200)
    np.testing.assert_allclose(with_ends.estimate, top)
    assert ((with_ends.low < top) & (top < with_ends.high)).all()
    places = fitted.rank_intervals()
    order = np.empty(7)
    order[np.argsort(-fitted.log_worths_)] = np.arange(1, 8)
    assert ((places[:, 0] <= order) & (order <= places[:, 1])).all()


def test_log_prob_of_new_lists_is_the_likelihood(fitted):
    assert fitted.log_prob(RANKINGS).sum() == pytest.approx(fitted.log_likelihood_)
    tiers = tr.Tiers.from_rankings([[0, (1, 2)]], items=7, rest="last")
    assert fitted.log_prob(tiers) == pytest.approx(tr.log_prob(fitted.log_worths_, tiers))


def test_log_prob_of_another_catalogue_is_refused_and_of_a_container_is_not():
    votes = [["a", "b", "c"], ["b", "a", "c"], ["c", "a", "b"]]
    fitted = tr.RankAggregator().fit(votes)
    other = tr.Tiers.from_rankings([["c", "b", "a"]])  # c is its first item
    with pytest.raises(ValueError, match="another catalogue"):
        fitted.log_prob(other)
    expected = fitted.log_prob(other.to_rankings())
    same = tr.data.Rankings.from_rankings([["c", "b", "a"]], items=fitted.items_)
    assert fitted.log_prob(same) == pytest.approx(expected)


def test_near_certain_orders_have_probabilities_and_no_warnings():
    games = [[i, i + 1] for i in range(59)]
    fitted = tr.RankAggregator().fit(
        games + [game[::-1] for game in games], items=60, weights=[1e9] * 59 + [1] * 59
    )
    assert fitted.predict_proba(0, 59, level=0.95) == (1.0, 1.0, 1.0)
    assert fitted.predict_proba(59, 0, level=0.95) == pytest.approx((0, 0, 0), abs=1e-200)


def test_the_covariance_that_is_kept_cannot_be_written_over(fitted):
    with pytest.raises(ValueError, match="read-only"):
        fitted.covariance()[0, 0] = 1


def test_settings_changed_after_the_fit_do_not_change_its_errors():
    fitted = tr.RankAggregator().fit(RANKINGS, items=7)
    fitted.set_params(prior="gaussian:0.1")
    expected = tr.RankAggregator().fit(RANKINGS, items=7).standard_errors_
    np.testing.assert_array_equal(fitted.standard_errors_, expected)


def test_covariances_hold_where_counts_are_far_apart():
    # two pairs met very often, and each other once or twice: the variances of games add up
    games = [["a", "b"], ["b", "a"], ["b", "c"], ["c", "b"], ["c", "d"], ["d", "c"]]
    fitted = tr.RankAggregator().fit(games, weights=[1e9, 2e9, 1, 2, 3e9, 1e9])
    matrix = fitted.covariance()

    def variance(i, j):
        return matrix[i, i] + matrix[j, j] - 2 * matrix[i, j]

    assert variance(1, 2) == pytest.approx(1.5, rel=1e-6)
    assert variance(0, 3) == pytest.approx(1.5, rel=1e-6)


def test_columns_that_are_not_found_are_no_numbers(monkeypatch):
    fitted = tr.RankAggregator().fit(RANKINGS, items=7)
    monkeypatch.setattr("tierrank.aggregation.results.MOST_DENSE", 5)
    monkeypatch.setattr(covariance, "MOST_PRODUCTS", 1)
    with pytest.raises(ValueError, match="not found in 1 steps"):
        fitted.covariance(items=[0])


def test_quasi_variances_give_back_the_errors_of_differences(fitted):
    q, matrix = fitted.quasi_variances().values, fitted.covariance()
    variance = np.diag(matrix)
    exact = variance[:, None] + variance - 2 * matrix
    off = ~np.eye(7, dtype=bool)
    np.testing.assert_allclose((q[:, None] + q)[off], exact[off], rtol=0.2)


def test_tiers_cover_all_items_in_the_fitted_order(fitted):
    cut = fitted.tiers()
    together = [int(item) for tier in cut.tiers for item in tier]
    assert together == fitted.ranking()


def test_the_table_has_every_item_best_first(fitted):
    table = fitted.summary()
    assert list(table.items) == fitted.ranking()
    np.testing.assert_allclose(table.worths.sum(), 1)
    text = str(table)
    assert len(text.splitlines()) == 9
    assert "log-likelihood" in text
    assert "the first 3 of 7 items" in str(fitted.summary(top=3))


@pytest.mark.parametrize(
    ("question", "message"),
    [
        (lambda f: f.predict_proba("x", 1), "no item 'x'"),
        (lambda f: f.predict_proba([0, 1], [1, 2]), "disjoint"),
        (lambda f: f.intervals(1.5), "level"),
        (lambda f: f.intervals(scale="odds"), "scale"),
        (lambda f: f.top_k_proba(0), "k is a whole number"),
        (lambda f: f.summary(level=0), "level"),
        (lambda f: f.covariance(items=[99]), "no item 99"),
        (lambda f: f.covariance(kind="bayes"), "kind"),
        (lambda f: f.predict_proba([[0]], 1), "no item"),
        (lambda f: f.intervals("much"), "level"),
        (lambda f: f.summary(top=-1), "top is a whole number"),
    ],
)
def test_questions_without_an_answer_are_refused(fitted, question, message):
    with pytest.raises(ValueError, match=message):
        question(fitted)


@pytest.mark.parametrize("prior", [None, "gaussian:1.5", "pseudo-item:0.5"])
def test_beyond_the_dense_limit_some_items_are_asked_for(prior, monkeypatch):
    fitted = tr.RankAggregator(prior=prior).fit(RANKINGS, items=7)
    dense = fitted.covariance()
    fitted._covariances.clear()
    monkeypatch.setattr("tierrank.aggregation.results.MOST_DENSE", 5)
    some = fitted.covariance(items=[6, 0, 3])
    np.testing.assert_allclose(some, dense[np.ix_([6, 0, 3], [6, 0, 3])], atol=1e-8)
    with pytest.raises(ValueError, match="ask for some items"):
        fitted.covariance()
    shown = fitted.summary(top=2)
    np.testing.assert_allclose(
        shown.standard_errors, np.sqrt(np.diag(dense))[fitted._order()[:2]], atol=1e-8
    )


def test_an_estimate_that_is_no_maximum_has_no_standard_errors():
    saddle = np.diag([1.0, -1.0, 2.0])
    with pytest.raises(covariance.NotDefinite, match="prior"):
        covariance.inverse(saddle)
    flat = np.array([[1.0, 1.0], [1.0, 1.0 + 1e-15]])
    with pytest.raises(covariance.NotDefinite, match="prior"):
        covariance.inverse(flat)


def test_bootstrap_errors_are_near_those_of_the_sandwich():
    _, rankings = drawn_rankings(1, 6, 600, 5, most_tied=3)
    fitted = tr.RankAggregator(uncertainty="sandwich").fit(rankings, items=6)
    boot = fitted.bootstrap(200, random_state=0)
    np.testing.assert_allclose(boot.standard_errors, fitted.standard_errors_, rtol=0.15)
    low, high = boot.intervals(0.95)
    assert ((low < fitted.log_worths_) & (fitted.log_worths_ < high)).all()
    np.testing.assert_allclose(low, np.quantile(boot.log_worths, 0.025, axis=0))
    assert boot.without_estimate == 0
    np.testing.assert_allclose(np.diag(boot.covariance()), boot.standard_errors**2)
    again = fitted.bootstrap(5, random_state=0)
    np.testing.assert_array_equal(again.log_worths, fitted.bootstrap(5, random_state=0).log_worths)


def test_bootstrap_says_how_many_replicates_had_no_estimate():
    fitted = tr.RankAggregator().fit([["a", "b", "c"], ["c", "b", "a"], ["b", "a", "c"]])
    assert fitted.bootstrap(50).without_estimate > 0


def test_bootstrap_of_weights_that_are_no_counts():
    _, rankings = drawn_rankings(1, 6, 300, 5, most_tied=3)
    half = tr.RankAggregator(uncertainty="sandwich").fit(
        rankings, items=6, weights=np.full(300, 0.501)
    )
    boot = half.bootstrap(200, random_state=0)
    np.testing.assert_allclose(boot.standard_errors, half.standard_errors_, rtol=0.2)
    tiny = tr.RankAggregator().fit(rankings, items=6, weights=np.full(300, 1e-6))
    with pytest.raises(ValueError, match="how often each list was seen"):
        tiny.bootstrap(10)
    random = np.random.default_rng(0)
    assert drawn_counts(np.array([1.2, 1.5]), random).sum() == pytest.approx(2.7)


def test_bootstrap_leaves_the_solver_of_the_fit(monkeypatch):
    fitted = tr.RankAggregator(random_state=0, max_iter=2)
    monkeypatch.setattr("tierrank.aggregation.solvers.LARGE", 500)
    fitted.fit(RANKINGS, items=7)  # 750 entries, of which a replicate has fewer
    assert fitted.solver_ == "adagrad"
    fitted.bootstrap(2)
    assert fitted.solver_ == "adagrad"


# -- copies and pickles, as joblib and processes make them ------------------------------------

VOTES = [["ann", ("bob", "cy")], [("ann", "bob"), "cy"], ["cy", ("ann", "bob")], ["bob", "cy"]]
VOTES += [["dan", "ann", "cy"], ["cy", "dan", "bob"], ["bob", ("dan", "cy"), "ann"]]
GAMES = [
    ("ann", "bob", 1),
    ("bob", "cy", 0),
    ("cy", "ann", 1),
    ("bob", "dan", 1),
    ("dan", "cy", -1),
]
VECTORS = {"ann": [1.0, 0.2], "bob": [0.0, 1.0], "cy": [2.0, 1.5], "dan": [0.5, 0.1]}
CROWD = [[tuple(range(12)), tuple(range(12, 30))], [tuple(range(15, 30)), tuple(range(15))]]
FITS = {
    "exact": (tr.RankAggregator(), [VOTES]),
    "strict": (tr.RankAggregator(), [[["a", "b", "c"], ["c", "b", "a"], ["b", "a"]]]),
    "large ties": (tr.RankAggregator(prior="pseudo-item"), [CROWD]),
    "pl-lb": (tr.RankAggregator("pl-lb", uncertainty="sandwich"), [VOTES]),
    "ranknet": (tr.RankAggregator("ranknet", uncertainty="sandwich"), [VOTES]),
    "games": (tr.PairedTies(home=True, prior=GaussianPrior(2.0)), [GAMES]),
    "linear": (tr.FeatureAggregator(), [VOTES, VECTORS]),
    "neural": (tr.FeatureAggregator("neural", max_iter=3, random_state=0), [VOTES * 4, VECTORS]),
}
copies = pytest.mark.parametrize(
    "copied", [copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))], ids=["copy", "pickle"]
)


def same(one, other):
    """Whether two results are equal, number by number."""
    if isinstance(one, np.ndarray | float):
        np.testing.assert_array_equal(one, other)
    elif dataclasses.is_dataclass(one):
        same(vars(one), vars(other))
    elif isinstance(one, dict):
        same(tuple(one.values()), tuple(other.values()))
    elif isinstance(one, tuple | list):
        for a, b in zip(one, other, strict=True):
            same(a, b)
    else:
        assert one == other


@copies
@pytest.mark.parametrize("kind", FITS)
def test_a_copy_of_a_fit_answers_as_the_fit_does(kind, copied):
    estimator, data = FITS[kind]
    fitted = clone(estimator).fit(*data)
    twin = copied(fitted)
    assert twin.items_ == fitted.items_
    same(fitted.log_worths_, twin.log_worths_)
    first, second = fitted.items_[:2]
    same(fitted.predict_proba(first, second), twin.predict_proba(first, second))
    assert str(fitted.summary()) == str(twin.summary())
    if kind != "neural":
        same(fitted.standard_errors_, twin.standard_errors_)
    if isinstance(estimator, tr.RankAggregator):
        # what the fit had not computed when it was copied, it computes from its lists
        same(fitted.covariance(kind="sandwich"), twin.covariance(kind="sandwich"))
        same(fitted.bootstrap(4, random_state=1), twin.bootstrap(4, random_state=1))
        assert fitted.connectivity_.explain() == twin.connectivity_.explain()
    if kind == "linear":
        same(fitted.coef_covariance("sandwich"), twin.coef_covariance("sandwich"))
        new = {"eve": [1.0, 2.0], "fay": [0.0, 0.0]}
        worths = fitted.worths_of(new)
        same(worths.log_worths_, copied(worths).log_worths_)
        same(worths.standard_errors_, twin.worths_of(new).standard_errors_)
    same(fitted.log_worths_, copied(twin).fit(*data).log_worths_)


@copies
def test_copies_of_results_and_of_estimators_are_equal(copied):
    fitted = tr.RankAggregator().fit(VOTES)
    for result in (
        fitted.connectivity_,
        fitted.tiers(),
        fitted.summary(),
        fitted.intervals(),
        fitted.quasi_variances(),
        fitted.bootstrap(3),
        tr.PairedTies(prior="gaussian").fit(GAMES).summary(),
        tr.FeatureAggregator().fit(VOTES, VECTORS).summary(),
    ):
        same(result, copied(result))
    for estimator, _ in FITS.values():
        assert repr(copied(estimator)) == repr(clone(estimator)) == repr(estimator)


@copies
def test_why_there_is_no_estimate_comes_back_from_another_process(copied):
    with pytest.raises(Disconnected) as apart:
        tr.RankAggregator().fit([["a", "b"]])
    assert str(copied(apart.value)) == str(apart.value)
    assert copied(apart.value).connectivity.n_components == 2
    with pytest.raises(Disconnected, match="The games do not") as games:
        tr.PairedTies().fit([("a", "b", 1), ("b", "c", 0)])
    assert str(copied(games.value)) == str(games.value)
    with pytest.raises(Unidentified) as open_:
        tr.FeatureAggregator().fit([["a", "b"]], {"a": [1.0], "b": [1.0]})
    assert str(copied(open_.value)) == str(open_.value)
    assert copied(open_.value).features == ("x0",)


# -- before the fit ---------------------------------------------------------------------------

ESTIMATORS = [
    tr.RankAggregator, tr.PairedTies, tr.FeatureAggregator, tr.LinearRanker, tr.NeuralRanker,
    tr.BoostedRanker, tr.ExtremeRanker,
]  # fmt: skip
ARGUMENTS = {"k": 1, "path": "report.html", "X": np.zeros((2, 1)), "y": [1, 0], "qid": [1, 1]}
BEFORE = ("fit", "fit_table", "from_state")  # and what scikit-learn has: get_params, …


def ask(model, name):
    """Call a method with what it wants, or look an attribute up."""
    method = getattr(model, name)
    given = inspect.signature(method).parameters.values()
    wanted = [each.name for each in given if each.default is each.empty]
    qid = {"qid": [1, 1]} if "qid" in [each.name for each in given] else {}
    return method(*(ARGUMENTS.get(each, "ann") for each in wanted), **qid)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_whatever_is_asked_before_the_fit_says_that_there_was_none(estimator):
    model = estimator()
    documented = re.findall(r"\b[a-z][a-z_]*_\b", estimator.__doc__.partition("Attributes")[2])
    own = {
        name
        for kind in estimator.__mro__
        if kind.__module__.startswith("tierrank")
        for name in {*vars(kind), *vars(kind).get("__annotations__", {})}
        if not name.startswith(("_", "set_")) and name not in BEFORE
    }
    asked = {*documented, *own} - {*inspect.signature(estimator).parameters}
    assert len(asked) > 8
    for name in sorted(asked):
        learned = name.endswith("_")
        assert hasattr(model, name) != learned
        if learned or callable(getattr(model, name)):  # else it is a constant of the class
            with pytest.raises(NotFittedError, match="not fitted yet"):
                ask(model, name)


def test_after_a_first_fit_that_failed_there_is_none():
    ranker = tr.LinearRanker()
    with pytest.raises(ValueError, match="nothing to learn"):
        ranker.fit(np.eye(4), np.zeros(4), qid=[1, 1, 2, 2])
    with pytest.raises(NotFittedError):
        _ = ranker.coef_


def test_what_a_fit_does_not_have_is_still_said_after_it():
    fitted = tr.PairedTies().fit([*GAMES, ("dan", "ann", 1)])
    with pytest.raises(AttributeError, match="model='davidson', home=False has no such parameter"):
        _ = fitted.alpha_
    with pytest.raises(AttributeError, match="no attribute 'coef_'") as error:
        _ = fitted.coef_
    assert not isinstance(error.value, NotFittedError)


# -- frames, plots, pages, notebooks ----------------------------------------------------------

SHOWN = {
    "exact": (tr.RankAggregator(), [VOTES]),
    "games": (tr.PairedTies(), [[*GAMES, ("dan", "ann", 1)]]),
    "linear": (tr.FeatureAggregator(), [VOTES, VECTORS]),
    "neural": FITS["neural"],
}


@pytest.fixture(scope="module", params=SHOWN)
def shown(request):
    estimator, data = SHOWN[request.param]
    return clone(estimator).fit(*data)


def test_a_frame_has_the_columns_of_the_command_line(shown):
    pandas = pytest.importorskip("pandas")
    frame = shown.to_frame(level=0.9)
    assert isinstance(frame, pandas.DataFrame)
    assert tuple(frame.columns) == WORTH_COLUMNS[:7]
    order = np.argsort(-shown.log_worths_)
    assert frame["item"].tolist() == [shown.items_[code] for code in order]
    assert frame["rank"].tolist() == [1, 2, 3, 4]
    np.testing.assert_array_equal(frame["log_worth"], shown.log_worths_[order])
    np.testing.assert_array_equal(frame["worth"], shown.worths_[order])
    if getattr(shown, "model", None) == "neural":
        assert frame[["standard_error", "low", "high"]].isna().all(axis=None)
    else:
        np.testing.assert_array_equal(frame["standard_error"], shown.standard_errors_[order])
        reach = norm.ppf(0.95) * frame["standard_error"]
        np.testing.assert_allclose(frame["high"] - frame["log_worth"], reach)
        np.testing.assert_allclose(frame["log_worth"] - frame["low"], reach)
    pandas.testing.assert_frame_equal(shown.to_frame(level=0.9, top=2), frame[:2])
    assert shown.to_frame()["item"].tolist() == frame["item"].tolist()


def test_items_of_a_frame_that_are_numbers_are_numbers(fitted):
    pytest.importorskip("pandas")
    frame = fitted.to_frame()
    assert frame["item"].dtype == np.int64
    teams = tr.PairedTies(prior="gaussian").fit([(("a", "b"), "c", 1), ("c", "a", 0)])
    assert teams.to_frame()["item"].tolist() == list(teams.summary().items)


def test_a_frame_without_pandas_says_what_to_install(fitted, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="pip install pandas"):
        fitted.to_frame()


def test_a_plot_has_a_dot_and_an_interval_for_each_item(shown):
    from matplotlib.figure import Figure

    ax = Figure().add_subplot()
    assert shown.plot(ax) is ax
    order = np.argsort(-shown.log_worths_)
    labels = [tick.get_text() for tick in ax.get_yticklabels()]
    assert labels == [shown.items_[code] for code in order]
    dots = [line.get_xdata()[0] for line in ax.lines if line.get_marker() == "o"]
    np.testing.assert_array_equal(dots, shown.log_worths_[order])
    whiskers = [line.get_xdata() for line in ax.lines if line.get_linewidth() == 2]
    if getattr(shown, "model", None) == "neural":
        assert not whiskers
    else:
        half = norm.ppf(0.975) * shown.standard_errors_[order]
        np.testing.assert_allclose(np.ptp(whiskers, axis=1), 2 * half)
    top, bottom = ax.get_ylim()[::-1]
    assert top < 1 < len(order) < bottom  # the best is on top
    few = shown.plot(Figure().add_subplot(), top=2)
    assert few.get_title() == "the first 2 of 4 items"


def test_a_plot_makes_its_own_figure_and_names_are_only_text():
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    ax = tr.RankAggregator().fit([["$x^2$", "a\\frac$"], ["a\\frac$", "$x^2$"]]).plot()
    ax.figure.canvas.draw()  # a name that is no formula would be an error here
    assert ax.get_yticklabels()[0].get_text() == "$x^2$"
    pyplot.close(ax.figure)


def test_a_report_is_the_page_of_the_command_line(shown, tmp_path):
    path = shown.report(tmp_path / "report.html", title="Lunch & more", level=0.9)
    text = path.read_text(encoding="utf-8")
    assert path == tmp_path / "report.html"
    assert "<h1>Lunch &amp; more</h1>" in text
    assert all(f"<bdi>{item}</bdi>" in text for item in shown.items_)
    if getattr(shown, "model", None) == "linear":
        with pytest.raises(ValueError, match="use the report of the fitted model"):
            shown.worths_of(VECTORS).report(path)


def test_a_notebook_shows_the_table_and_runs_no_name():
    bad = "<script>alert(1)</script>"
    votes = [["ann", bad], [bad, "ann", "cy"], ["cy", "ann"]]
    for fitted in (
        tr.RankAggregator().fit(votes),
        tr.PairedTies().fit([("ann", bad, 1), (bad, "ann", 1), ("ann", bad, 0)]),
        tr.FeatureAggregator(l2=1.0).fit(
            votes, {name: {bad: float(place)} for place, name in enumerate(["cy", bad, "ann"])}
        ),
    ):
        html = fitted._repr_html_()
        assert "<script" not in html
        assert "<td><bdi>&lt;script&gt;alert(1)&lt;/script&gt;</bdi></td>" in html
        assert f"<td>{fitted.log_worths_.max():.4f}</td>" in html
        assert fitted._repr_mimebundle_() == {"text/plain": repr(fitted), "text/html": html}
    assert "log v (ties)" in tr.PairedTies().fit([*GAMES, ("dan", "ann", 1)])._repr_html_()
    many = tr.RankAggregator(prior="gaussian").fit([[60, 1]], items=61)._repr_html_()
    assert many.count("<tr>") == 51
    assert "the first 50 of 61 items" in many
    assert "RankAggregator" in tr.RankAggregator()._repr_html_()  # before the fit
