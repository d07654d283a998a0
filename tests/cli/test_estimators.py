"""Rankers from what is typed."""

import pytest

from tierrank.cli import estimators
from tierrank.cli.estimators import make_ranker, settings_by_kind
from tierrank.cli.options import parse_named, parse_settings, parse_value
from tierrank.ranking.features.scaling import Standardize
from tierrank.ranking.features.second_order import SecondOrder


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("5", 5),
        ("1e-3", 0.001),
        ("true", True),
        ("True", True),
        ("null", None),
        ("None", None),
        ("[64, 32]", [64, 32]),
        ('{"a": 1}', {"a": 1}),
        ('"5"', "5"),
        ("relu", "relu"),
        ("", ""),
        ("bf16-mixed", "bf16-mixed"),
    ],
)
def test_a_value_is_json_or_else_a_string(text, value):
    parsed = parse_value(text)
    assert parsed == value
    assert type(parsed) is type(value)


def test_settings_may_be_written_with_hyphens_and_blanks():
    assert parse_settings(["max-iter=5", " l2 = 0.1"], "--set") == {"max_iter": 5, "l2": 0.1}


@pytest.mark.parametrize("pair", ["trees", "=5", "trees:5"])
def test_a_setting_without_a_value_is_refused(pair):
    with pytest.raises(ValueError, match="write it as NAME=VALUE"):
        parse_settings([pair], "--set")


def test_a_setting_that_is_given_twice_is_refused():
    with pytest.raises(ValueError, match="gives l2 twice"):
        parse_settings(["l2=1", "l2=2"], "--set")


def test_a_name_may_carry_settings():
    assert parse_named("pl-topk:k=5", "--objective") == ("pl-topk", {"k": 5})
    assert parse_named("pl-topk", "--objective") == ("pl-topk", {})
    listed = parse_named("x:a=[1,2],b=two", "--objective")  # a comma inside a list parts nothing
    assert listed == ("x", {"a": [1, 2], "b": "two"})


def test_a_ranker_has_what_was_typed():
    ranker = make_ranker(
        "linear",
        objective="PL_TopK:k=3",
        features=["standardize", "second-order:threshold=0.3"],
        settings={"l2": 0.5},
        metric="map",
        seed=7,
        threads=2,  # a linear ranker has no such argument
    )
    assert (ranker.objective, ranker.objective_params) == ("pl-topk", {"k": 3})
    assert [type(step) for step in ranker.features] == [Standardize, SecondOrder]
    assert ranker.features[1].threshold == 0.3
    assert (ranker.l2, ranker.metric, ranker.random_state) == (0.5, "map", 7)


def test_features_may_be_left_to_the_ranker_or_out():
    assert make_ranker("linear").features == "standardize"
    assert make_ranker("linear", features=["none"]).features is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kind": "liner"}, "there is no model 'liner': use linear, neural, boosted"),
        ({"objective": "listmel"}, "did you mean 'listmle'"),
        ({"objective": "pl-topk:q=3"}, "objective_params do not fit pl-topk"),
        ({"objective_params": {"q": 3}}, "objective_params do not fit pl-partition"),
        ({"settings": {"max_iters": 3}}, "no such setting. Did you mean 'max_iter'"),
        ({"settings": {"metric": "map"}}, "--set metric: use --metric"),
        ({"settings": {"random_state": 1}}, "--set random_state: use --seed"),
        ({"settings": {"eval_metric": "map"}}, "--set eval_metric: use --metric"),
        ({"settings": {"early_stopping_rounds": 5}}, "linear ranker has it as --set patience=…"),
        ({"kind": "boosted", "settings": {"n_estimators": 5}}, "has it as --set trees=…"),
        ({"kind": "boosted", "settings": {"n_jobs": 5}}, "--set n_jobs: use --threads"),
        ({"objective": "Rank:NDCG"}, "no objective 'Rank:NDCG': it .* Begin with 'pl-partition'"),
        ({"objective": "lambdarank"}, "no objective 'lambdarank': it .* Begin with 'pl-partition'"),
        ({"objective": "rank:ndcg"}, "no objective 'rank:ndcg': it is lambdaloss here"),
        ({"features": ["standardise"]}, "Did you mean 'standardize'"),
        ({"features": ["second-order:limit=1"]}, "second-order:limit=1: .*limit"),
        ({"metric": "ndgc@10"}, "did you mean 'ndcg'"),
        ({"metric": "pairwise-disagreement"}, "is a loss"),
    ],
)
def test_what_cannot_be_is_refused_before_any_work(arguments, message):
    with pytest.raises(ValueError, match=message):
        make_ranker(**{"kind": "linear", **arguments})


def test_settings_go_to_the_kinds_that_have_them_or_to_the_one_named():
    own = settings_by_kind(["l2=1", "neural.patience=3", "learning_rate=0.2"], ["linear", "neural"])
    assert own == {
        "linear": {"l2": 1, "learning_rate": 0.2},
        "neural": {"patience": 3, "learning_rate": 0.2},
    }
    with pytest.raises(ValueError, match="boosted is not one of the models"):
        settings_by_kind(["boosted.trees=1"], ["linear"])


def test_without_a_boosting_library_the_default_is_a_network_and_says_so(monkeypatch, capsys):
    monkeypatch.setattr(estimators, "find_spec", lambda name: name == "lightning_fabric" or None)
    assert estimators.default_kind() == "neural"
    monkeypatch.setattr(estimators, "find_spec", lambda name: None)
    assert estimators.default_kind() == "linear"
    assert 'pip install "tierrank[boost]"' in capsys.readouterr().err
    with pytest.raises(ValueError, match="need lightgbm or xgboost, and neither is installed"):
        make_ranker("boosted")


def test_without_lightgbm_the_trees_are_those_of_xgboost(monkeypatch, capsys):
    monkeypatch.setattr(estimators, "find_spec", lambda name: name == "xgboost" or None)
    assert estimators.default_kind() == "boosted"
    assert make_ranker("boosted").library == "xgboost"
    assert "lightgbm is not installed" in capsys.readouterr().err
