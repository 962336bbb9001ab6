"""Scenarios: files, defaults, overrides, and what is refused."""

import tomllib
from dataclasses import fields, replace
from functools import partial

import pytest
import tomli_w

from bcfl import methods
from experiments import partitions
from experiments.config import scenario
from experiments.config.options import check_keys
from experiments.config.sections import read_section
from experiments.config.tables import ExecutorConfig, Rules

OWN = """
methods = ["fedavg", "bcfl-mh-6"]

[data]
dataset = "clinics.npz"

[partition]
kind = "dirichlet"
alpha = 0.3

[model]
name = "mlp"
hidden = [64]
"""


def table(**changes):
    built = {
        "name": "own",
        "methods": ["fedavg"],
        "data": {"dataset": "optdigits"},
        "partition": {"kind": "iid"},
        "model": {"name": "mlp"},
    }
    return built | changes


def test_the_scenarios_of_the_package_are_whole_and_name_known_methods():
    names = [one.name for one in scenario.available()]
    assert len(set(names)) == len(names)
    assert {
        *("demo", "collapse", "digits-label-skew", "digits-rotated", "fashion-label-skew"),
        *("fashion-190-skewed", "fashion-200-dirichlet", "fashion-200-n-class"),
        *("fashion-200-cluster-dirichlet", "fashion-200-cluster-n-class"),
        *(f"ocfl-mnist-{a}-balanced-{n}" for a in ("separate", "overlapping") for n in (15, 30)),
        *(f"ocfl-mnist-{a}-imbalanced-{n}" for a in ("separate", "overlapping") for n in (15, 30)),
        *(f"faacl-mnist-{name}" for name in ("s0", "s1", "s2", "a0", "a1", "a2")),
        *(f"faacl-mnist-{name}-sequential" for name in ("s1", "s2", "a1", "a2")),
        *(f"faacl-mnist-{name}-multi-task" for name in ("s1", "s2", "a1", "a2")),
    } <= set(names)
    for one in scenario.available():
        assert one == scenario.load(one.name)
        assert one.description
        for name in one.methods:
            assert methods.build(name, one.settings()).name == name
        options = partitions.PARTITIONS[one.partition.name]
        also = [option.name for option in fields(partitions.Split)]
        check_keys(one.name, partial(options, None), one.partition.options, also)


def test_the_resolved_table_reads_back_as_the_same_scenario():
    for one in scenario.available():
        again = tomllib.loads(tomli_w.dumps(one.table()))
        assert scenario.from_table(again) == one


def test_a_file_of_ones_own_takes_its_name_and_its_paths_from_where_it_lies(tmp_path):
    path = tmp_path / "clinics.toml"
    path.write_text(OWN)
    own = scenario.load(path)
    assert own.name == "clinics"
    assert own.data.dataset == str(tmp_path / "clinics.npz")
    assert own.seeds == (0,)
    assert own.partition == ExecutorConfig("dirichlet", {"alpha": 0.3})
    assert own.federation == Rules()


def test_numbers_reach_the_settings_of_methods():
    rules = {
        "num_clusters": 3,
        "score_samples": 50,
        "curvature_samples": "all",
        "curvature": "empirical_fisher",
        "temperature": 2,
        "staying": 0.9,
        "validation": 0.125,
        "calibration": 0.0625,
        "fusion": "exact",
        "memory": "forget",
        "decay": 0.5,
        "prior_precision": 4,
        "warm_up_rounds": 5,
        "min_cluster_size": 2,
        "max_cluster_size": 9,
        "solver": "murty",
        "epsilon": 0.3,
        "alpha": 0.05,
        "delta": 2,
        "first_clusters": 6,
    }
    training = {"local_steps": 3, "batch_size": 7, "learning_rate": 1, "prior_weight": 0.5}
    settings = scenario.from_table(table(federation=rules, training=training)).settings()
    assert settings.num_clusters == 3
    assert settings.score_samples == 50
    assert settings.curvature == "empirical_fisher"
    assert (settings.temperature, type(settings.temperature)) == (2.0, float)
    assert (settings.aggregation.fusion, settings.aggregation.memory) == ("exact", "forget")
    assert settings.aggregation.decay == 0.5
    assert settings.prior_precision == 4.0
    assert settings.warm_up_rounds == 5
    assert settings.calibration == 0.0625
    assert (settings.staying, settings.validation) == (0.9, 0.125)
    assert (settings.cluster_size.lower, settings.cluster_size.upper) == (2, 9)
    assert settings.solver == "murty"
    assert (settings.epsilon, settings.alpha, settings.delta) == (0.3, 0.05, 2.0)
    assert settings.first_clusters == 6
    objective = settings.objective
    assert (objective.local_steps, objective.batch_size) == (3, 7)
    assert (objective.learning_rate, objective.prior_weight) == (1.0, 0.5)
    assert objective.curvature_samples is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"metods": ["x"]}, r"a scenario has no option 'metods'\. Did you mean 'methods'\?"),
        ({"trainign": {}}, "Did you mean 'training'"),
        (
            {"training": {"learning_rat": 1}},
            "no option 'learning_rat'. Did you mean 'learning_rate",
        ),
        ({"federation": {"round": 3}}, "no option 'round'. Did you mean 'rounds'"),
        ({"data": {"dataset": "optdigits", "dir": "x"}}, "no option 'dir'"),
        ({"data": {}}, r"\[data\] lacks dataset"),
        ({"data": "optdigits"}, r"\[data\] must be a table"),
        (
            {"federation": {"rounds": 2, "seeds": [0]}},
            r"seeds stands in \[federation\]; it belongs",
        ),
        ({"partition": {"kind": "iid", "seed": 3}}, "takes no seed"),
        ({"partition": {"clients": 3}}, r"\[partition\] must be a table with kind ="),
        ({"model": {"name": 3}}, r"\[model\] must be a table with name ="),
        (
            {"training": {"local_steps": 2.5}},
            "local_steps of .training. must be a whole number, got",
        ),
        ({"training": {"local_steps": True}}, "local_steps of .training. must be a whole number"),
        ({"training": {"momentum": "0.9"}}, "momentum of .training. must be a number, got '0.9'"),
        (
            {"federation": {"fusion": "exat"}},
            "must be 'precision_weighted' or 'exact' or 'literal'",
        ),
        ({"federation": {"score_samples": "some"}}, "must be a whole number or 'all', got 'some'"),
        (
            {"federation": {"temperature": "hot"}},
            "must be a number or 'default' or 'mean' or 'auto', got 'hot'",
        ),
        ({"federation": {"rounds": 0}}, "rounds must be at least 1, got 0"),
        ({"federation": {"client_fraction": 0}}, r"client_fraction must lie in \(0, 1\], got 0"),
        ({"federation": {"client_fraction": float("nan")}}, r"client_fraction must lie in"),
        ({"federation": {"drop_out": 1.5}}, "drop_out must lie between 0 and 1, got 1.5"),
        ({"federation": {"warm_up_rounds": -1}}, "warm_up_rounds must be at least 0"),
        ({"federation": {"checkpoint_every": 0}}, "checkpoint_every must be at least 1"),
        ({"methods": []}, "methods must hold at least one"),
        ({"methods": "fedavg"}, "methods of a scenario must be a list, each of it text"),
        ({"methods": ["ifca", "ifca"]}, "methods must differ from each other, got 'ifca' 2 times"),
        ({"seeds": [0, 1.5]}, "seeds of a scenario must be a list, each of it a whole number"),
        ({"seeds": [-1]}, "seeds must be at least 0, got -1"),
        ({"name": "../escape"}, "name must be letters"),
    ],
)
def test_what_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        scenario.from_table(table(**changes))


@pytest.mark.parametrize("missing", ["data", "partition", "model", "methods"])
def test_what_cannot_be_left_out(missing):
    left = {key: value for key, value in table().items() if key != missing}
    with pytest.raises(ValueError, match=f"a scenario lacks {missing}"):
        scenario.from_table(left)


@pytest.mark.parametrize(
    ("training", "message"),
    [({"learning_rate": -1}, "learning_rate must be"), ({"batch_size": 0}, "batch_size must be")],
)
def test_numbers_out_of_range_are_refused_when_methods_are_built(training, message):
    with pytest.raises(ValueError, match=message):
        scenario.from_table(table(training=training)).settings()


def test_what_each_method_decides_for_itself_is_left_to_it():
    own = methods.Settings()
    settings = scenario.from_table(table()).settings()
    assert settings == own
    assert scenario.from_table(table(federation={"num_clusters": "auto"})).settings() == replace(
        own, num_clusters="auto"
    )


def test_an_unknown_scenario_gets_the_nearest_name():
    with pytest.raises(scenario.UnknownScenarioError, match="Did you mean 'digits-rotated'"):
        scenario.load("digits-rotatd")
    with pytest.raises(scenario.UnknownScenarioError, match=r"file 'none/own\.toml' doesn't exist"):
        scenario.load("none/own.toml")


def test_a_broken_file_is_named(tmp_path):
    path = tmp_path / "own.toml"
    path.write_text("methods = [")
    with pytest.raises(ValueError, match=r"own\.toml is no TOML file"):
        scenario.load(path)
    path.write_text(OWN.replace("alpha", "[alpha]\nx"))
    with pytest.raises(ValueError, match=r"own\.toml: a scenario has no option 'alpha'"):
        scenario.load(path)


def test_the_warm_up_keeps_its_share_of_the_rounds():
    rules = Rules(rounds=25, warm_up_rounds=2)
    assert rules.lasting(25) == rules
    assert rules.lasting(100).warm_up_rounds == 8
    assert rules.lasting(3).warm_up_rounds == 1
    assert replace(rules, warm_up_rounds=0).lasting(100).warm_up_rounds == 0
    with pytest.raises(ValueError, match="rounds must be at least 1, got 0"):
        rules.lasting(0)


def test_whole_numbers_serve_as_numbers_and_lists_as_tuples():
    rules = read_section(Rules, {"decay": 1, "temperature": 3}, "[federation]")
    assert type(rules.decay) is float
    assert type(rules.temperature) is float
