"""Scenarios: files, defaults, overrides, and what is refused."""

import subprocess
import sys
import tomllib
from dataclasses import fields, replace
from functools import partial
from pathlib import Path

import pytest
import tomli_w

from bcfl import methods
from experiments import partitions
from experiments.config import scenario
from experiments.config.options import check_keys
from experiments.config.sections import read_section
from experiments.config.tables import Choice, Rules

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


def test_how_inputs_are_scaled_is_said_with_the_data():
    plain = scenario.from_table(table())
    assert plain.table()["data"] == {"dataset": "optdigits"}
    assert plain.data.scaling == {}
    for said in ({"highest": 1.0}, {"scaled": False}, {"scaled": True}):
        found = scenario.from_table(table(data={"dataset": "./own"} | said), Path("/home"))
        assert found.table()["data"] == {"dataset": "/home/own"} | said
        assert found.data.scaling == said


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
            assert one.build(name).name == name
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
    assert own.partition == Choice("dirichlet", {"alpha": 0.3})
    assert own.federation == Rules()
    path.write_text(OWN.replace("clinics.npz", "clinics.NPZ"))
    assert scenario.load(path).data.dataset == str(tmp_path / "clinics.NPZ")
    path.write_text(OWN.replace("clinics.npz", "clinics.mat"))
    assert scenario.load(path).data.dataset == "clinics.mat", "of the data directories"
    (tmp_path / "clinics.mat").touch()
    assert scenario.load(path).data.dataset == str(tmp_path / "clinics.mat")


def built(federation, training=None, name="bcfl-g-w"):
    given = table(methods=[name], federation=federation, training=training or {})
    return scenario.from_table(given).build(name)


def test_options_of_the_federation_reach_the_methods_that_have_them():
    rules = {
        "num_clusters": 3,
        "score_samples": 50,
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
        "cluster_size": [2, 9],
        "solver": "murty",
        "epsilon": 0.3,
        "alpha": 0.05,
        "delta": 2,
        "first_clusters": 6,
    }
    training = {
        "local_steps": 3,
        "batch_size": 7,
        "learning_rate": 1,
        "prior_weight": 0.5,
        "curvature_samples": "none",
    }
    method = built(rules, training)
    policy = method.policy.then
    assert policy.num_clusters == 3
    assert policy.score_samples == 50
    assert policy.objective.curvature == "empirical_fisher"
    assert (policy.temperature, type(policy.temperature)) == (2.0, float)
    assert (method.aggregation.fusion, method.aggregation.memory) == ("exact", "forget")
    assert method.aggregation.decay == 0.5
    assert method.prior_precision == 4.0
    assert method.policy.rounds == 5
    assert (policy.prior.staying, method.validation) == (0.9, 0.125)
    assert (policy.cluster_size.lower, policy.cluster_size.upper) == (2, 9)
    assert policy.solver == "murty"
    testing = built(rules, training, "faacl").policy.testing
    assert (testing.epsilon, testing.alpha) == (0.3, 0.05)
    assert built(rules, training, "feddrift").policy.delta == 2.0
    assert built(rules, training, "fedavg").validation == 0.0625
    unknown = {"num_clusters": "auto", "first_clusters": 6}
    assert built(unknown, name="bcfl-mht-3").num_clusters == 6
    objective = policy.objective
    assert (objective.local_steps, objective.batch_size) == (3, 7)
    assert (objective.learning_rate, objective.prior_weight) == (1.0, 0.5)
    assert objective.curvature_samples is None


def test_tables_of_methods_say_which_are_run_and_count_more_than_shared_options():
    own = {
        "fedavg": {},
        "wecfl": {"num_clusters": 2, "clustered_layers": "classifier"},
        "ifca-cam": {"update": "joint", "objective": {"learning_rate": 0.5}},
    }
    given = table(methods=own, federation={"num_clusters": 5, "score_samples": 9})
    found = scenario.from_table(given)
    assert found.methods == ("fedavg", "wecfl", "ifca-cam")
    wecfl, cam = found.build("wecfl").policy, found.build("ifca-cam").policy.policy
    assert (wecfl.num_clusters, wecfl.part.layers) == (2, "classifier")
    assert (cam.num_clusters, cam.score_samples, len(cam.objective.phases)) == (5, 9, 1)
    assert (cam.objective.learning_rate, wecfl.objective.learning_rate) == (0.5, 0.1)
    again = scenario.from_table(tomllib.loads(tomli_w.dumps(found.table())))
    assert again == found
    assert replace(found, methods=("wecfl",)).table()["methods"] == {"wecfl": own["wecfl"]}


def test_variants_of_a_method_have_their_options_in_their_names():
    names = ["ifca@num_clusters=2", "ifca@num_clusters=3@objective.momentum=0", "wecfl"]
    found = scenario.from_table(table(methods=names, federation={"num_clusters": 9}))
    first, second, third = (found.build(name) for name in names)
    assert [method.name for method in (first, second, third)] == names
    assert [m.num_clusters for m in (first, second, third)] == [2, 3, 9]
    assert [m.policy.objective.momentum for m in (first, second)] == [0.9, 0.0]


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
        ({"method_options": {}}, "a scenario has no option 'method_options'"),
        (
            {"methods": {"ifca": {"objective": 3}}},
            r"objective of \[methods.ifca\] must be a table, .*got 3",
        ),
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
            {"methods": ["bcfl-g"], "federation": {"fusion": "exat"}},
            "must be 'precision_weighted' or 'exact' .* got 'exat'. Did you mean 'exact'",
        ),
        (
            {"methods": ["ifca"], "federation": {"score_samples": "some"}},
            "score_samples of ifca must be a whole number or none, got 'some'",
        ),
        (
            {"methods": ["bcfl-g"], "federation": {"temperature": "hot"}},
            "must be a number or 'mean' or 'auto', got 'hot'",
        ),
        ({"federation": {"num_cluster": 3}}, "no option 'num_cluster'. Did you mean 'num_clusters"),
        ({"methods": ["wefcl"]}, "unknown method 'wefcl'. Did you mean 'wecfl'"),
        (
            {"methods": {"ifca": {"weight": 1}}},
            "method 'ifca' has no option 'weight'. It has: belief_temperature, calibration,",
        ),
        ({"methods": {"ifca": 3}}, r"\[methods.ifca\] must be a table of options, got 3"),
        (
            {"methods": {"ifca": {"objective": {"learning_rat": 1}}}},
            "objective of ifca has no option 'learning_rat'. Did you mean 'learning_rate'",
        ),
        ({"methods": ["ifca@num_clusters"]}, "must be METHOD@OPTION=VALUE, got 'num_clusters'"),
        ({"methods": ["bcfl-mh-3@max_hypotheses=4"]}, "max_hypotheses must be 3, as the name"),
        ({"federation": {"rounds": 0}}, "rounds must be at least 1, got 0"),
        ({"federation": {"client_fraction": 0}}, r"client_fraction must lie in \(0, 1\], got 0"),
        ({"federation": {"client_fraction": float("nan")}}, r"client_fraction must lie in"),
        ({"federation": {"drop_out": 1.5}}, "drop_out must lie between 0 and 1, got 1.5"),
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
        scenario.from_table(table(training=training)).build("fedavg")


def test_what_each_method_decides_for_itself_is_left_to_it():
    names = ["fedavg", "bcfl-g", "bcfl-mht-3", "faacl"]
    found = scenario.from_table(table(methods=names))
    for name in names:
        assert found.build(name) == methods.build(name)


def test_an_unknown_scenario_gets_the_nearest_name():
    with pytest.raises(scenario.UnknownScenarioError, match="Did you mean 'digits-rotated'"):
        scenario.load("digits-rotatd")
    with pytest.raises(scenario.UnknownScenarioError, match=r"file 'none/own\.toml' doesn't exist"):
        scenario.load("none/own.toml")
    with pytest.raises(scenario.UnknownScenarioError, match=r"is a folder.*bcfl resume"):
        scenario.load(Path.cwd())


def test_a_broken_file_is_named(tmp_path):
    path = tmp_path / "own.toml"
    path.write_text("methods = [")
    with pytest.raises(ValueError, match=r"own\.toml is no TOML file"):
        scenario.load(path)
    path.write_text(OWN.replace("alpha", "[alpha]\nx"))
    with pytest.raises(ValueError, match=r"own\.toml: a scenario has no option 'alpha'"):
        scenario.load(path)


def test_the_warm_up_keeps_its_share_of_the_rounds():
    rules = Rules(rounds=25)
    assert rules.lasting(25) == rules
    assert rules.lasting(100).options == {"warm_up_rounds": 8}
    assert rules.lasting(3).options == {"warm_up_rounds": 1}
    without = rules.with_options(warm_up_rounds=0)
    assert without.lasting(100).options == {"warm_up_rounds": 0}
    share = rules.with_options(warm_up_rounds=0.2)
    assert share.lasting(100).options == {"warm_up_rounds": 0.2}
    with pytest.raises(ValueError, match="rounds must be at least 1, got 0"):
        rules.lasting(0)


def test_whole_numbers_serve_as_numbers_and_lists_as_tuples():
    rules = read_section(Rules, {"drop_out": 1}, "[federation]")
    assert type(rules.drop_out) is float
    given = {"temperature": 3, "cluster_size": [0, 9]}
    chosen = scenario.from_table(table(methods=["bcfl-g"], federation=given)).options("bcfl-g")
    assert type(chosen["temperature"]) is float
    assert chosen["cluster_size"] == (0, 9)


def test_reading_a_scenario_needs_no_torch():
    code = "import sys; from experiments.config.scenario import load; load('demo')"
    subprocess.run([sys.executable, "-c", f"{code}; assert 'torch' not in sys.modules"], check=True)
