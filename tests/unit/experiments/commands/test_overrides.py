import pytest

from bcfl.methods import UnknownMethodError, UnknownOptionError
from experiments.commands.overrides import overridden
from experiments.config import scenario


def changed(**given):
    return overridden(scenario.load("demo"), {k.replace("_", "-"): v for k, v in given.items()})


def test_nothing_given_changes_nothing():
    assert changed() == scenario.load("demo")


def test_margin_and_level_reach_the_support_tests():
    found = changed(methods="faacl,faacl-h,c-faacl,ifca", epsilon=0.25, alpha=0.02)
    for name in ("faacl", "faacl-h"):
        testing = found.build(name).policy.testing
        assert (testing.epsilon, testing.alpha) == (0.25, 0.02)
    testing = found.build("c-faacl").policy.policy.testing
    assert (testing.epsilon, testing.alpha) == (0.25, 0.02)


def test_delta_reaches_feddrift():
    assert changed(methods="feddrift", delta=1.5).build("feddrift").policy.delta == 1.5


def test_posterior_reaches_the_objective_of_bayesian_methods_alone():
    found = changed(posterior="laplace-full")
    assert found.build("bcfl-g").policy.objective.posterior == "laplace-full"
    assert found.build("wecfl").policy.objective.posterior == "laplace-diag"
    with pytest.raises(ValueError, match=r"got 'laplace-fall'\. Did you mean 'laplace-full'"):
        changed(posterior="laplace-fall")


def test_decay_reaches_the_memory_that_forgets_and_no_other_decay():
    found = changed(methods="bcfl-forget,ewc,ssgd", decay=0.5)
    aggregation = found.build("bcfl-forget").aggregation
    assert (aggregation.memory, aggregation.decay) == ("forget", 0.5)
    assert found.build("ewc").policy.decay == 0.9
    assert found.build("ssgd").policy.decay == 0.8


def test_number_and_sizes_of_clusters_reach_the_methods_that_have_them():
    found = changed(clusters="3", cluster_size="2,all")
    assert found.build("wecfl").policy.num_clusters == 3
    assert found.build("fedavg").num_clusters == 1
    sizes = found.build("bcfl-g").policy.cluster_size
    assert (sizes.lower, sizes.upper) == (2, None)
    assert changed(methods="bcfl-mht-3", clusters="auto").build("bcfl-mht-3").finds_number
    with pytest.raises(ValueError, match="num_clusters of ifca must be a whole number, got 'auto'"):
        changed(methods="ifca", clusters="auto")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"methods": "faacl", "epsilon": -0.1}, "epsilon must be finite and at least 0, got -0.1"),
        ({"methods": "faacl", "epsilon": float("nan")}, "epsilon must be finite and .*, got nan"),
        ({"methods": "faacl", "alpha": 1.0}, "alpha must lie between 0 and 1, got 1.0"),
        ({"methods": "feddrift", "delta": 0.0}, "delta must be positive and finite, got 0.0"),
        ({"methods": "bcfl-forget", "decay": 1.1}, "decay must be between 0 and 1, got 1.1"),
    ],
)
def test_numbers_out_of_range(given, message):
    with pytest.raises(ValueError, match=message):
        changed(**given).build(given["methods"])


def test_an_option_that_no_method_of_the_run_has_is_refused():
    with pytest.raises(ValueError, match="no method of this run has an option 'epsilon'; it has"):
        changed(epsilon=0.5)


def test_options_of_one_method_are_set_as_toml_or_text():
    texts = [
        "ifca.num_clusters=7",
        "wecfl.clustered_layers=classifier",
        "bcfl-mht-8.moves=[]",
        "bcfl-mht-8.near_copies=none",
        "bcfl-g.objective.learning_rate=0.5",
        "bcfl-g.objective.momentum=0",
    ]
    found = changed(set=texts)
    assert found.build("ifca").num_clusters == 7
    assert found.build("wecfl").policy.num_clusters == 4
    assert found.build("wecfl").policy.part.layers == "classifier"
    assert len(found.build("bcfl-mht-8").tracker.proposals) == 0
    assert found.build("bcfl-mht-8").tracker.near_copies is None
    objective = found.build("bcfl-g").policy.objective
    assert (objective.learning_rate, objective.momentum) == (0.5, 0.0)
    assert found.build("ifca").policy.objective.learning_rate == 0.1


@pytest.mark.parametrize("option", ["set", "grid"])
@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        (
            "ifca",
            ValueError,
            r"must be METHOD.OPTION=V(ALUE|1,V2), such as ifca.num_clusters=3(,4)?, got",
        ),
        ("ifca.num_clusters", ValueError, "must be METHOD.OPTION=V(ALUE|1,V2), such as"),
        ("ifca.num_clusters=", ValueError, "must be METHOD.OPTION=V(ALUE|1,V2), such as"),
        ("ifac.num_clusters=3", UnknownMethodError, "unknown method 'ifac'. Did you mean 'ifca'"),
        ("scl.linkage=single", ValueError, "'scl', which is not a method of this run.* It has:"),
        (
            "ifca.num_cluster=3",
            UnknownOptionError,
            "'ifca' has no option 'num_cluster'. Did you mean 'num_clusters'",
        ),
        ("ifca.objective=3", UnknownOptionError, "objective of 'ifca' is a table"),
        ("ifca.objective.speed=3", ValueError, "objective of ifca.* has no option 'speed'"),
        ("ifca.num_clusters=few", ValueError, "num_clusters of ifca.* must be a whole number"),
    ],
)
def test_what_cannot_be_set(option, text, error, message):
    with pytest.raises(error, match=message):
        changed(**{option: [text]})


def test_grids_make_variants_of_the_product_and_set_samples_aside():
    grids = ["ifca.num_clusters=2,3", "ifca.solver=argmin,heap", "bcfl-mht-8.moves=[],['split']"]
    found = changed(methods="fedavg,ifca,bcfl-mht-8", grid=grids)
    assert found.methods == (
        "fedavg",
        "ifca@num_clusters=2@solver=argmin",
        "ifca@num_clusters=2@solver=heap",
        "ifca@num_clusters=3@solver=argmin",
        "ifca@num_clusters=3@solver=heap",
        "bcfl-mht-8@moves=[]",
        'bcfl-mht-8@moves=["split"]',
    )
    last = found.build("ifca@num_clusters=3@solver=heap")
    assert (last.num_clusters, last.policy.solver, last.validation) == (3, "heap", 0.2)
    assert found.build("fedavg").validation == 0
    assert found.build('bcfl-mht-8@moves=["split"]').validation == 0.2


def test_methods_that_set_samples_aside_keep_their_share():
    found = changed(methods="faacl", grid=["faacl.epsilon=0.1,0.7"], set=["faacl.validation=0.4"])
    assert [found.build(name).validation for name in found.methods] == [0.4, 0.4]
    own = changed(methods="ifca", grid=["ifca.num_clusters=2,3"], set=["ifca.calibration=0.1"])
    assert own.build("ifca@num_clusters=2").validation == 0.1


@pytest.mark.parametrize("methods", ["wecfl,,ifca", "wecfl,", ","])
def test_nothing_at_one_side_of_a_comma_is_refused(methods):
    with pytest.raises(ValueError, match="has nothing at one side of a comma"):
        changed(methods=methods)
