import pytest

from bcfl.methods import build
from experiments.commands.overrides import overridden
from experiments.config import scenario

OPTIONS = (
    *("methods", "rounds", "seeds", "clusters", "cluster-size"),
    *("epsilon", "alpha", "delta", "decay", "data-dir", "posterior"),
)


def changed(**given):
    return overridden(scenario.load("demo"), dict.fromkeys(OPTIONS) | given)


def test_nothing_given_changes_nothing():
    assert changed() == scenario.load("demo")


def test_margin_and_level_reach_the_support_tests():
    settings = changed(epsilon=0.25, alpha=0.02).settings()
    for name in ("faacl", "faacl-h"):
        testing = build(name, settings).policy.testing
        assert (testing.epsilon, testing.alpha) == (0.25, 0.02)
    testing = build("c-faacl", settings).policy.policy.testing
    assert (testing.epsilon, testing.alpha) == (0.25, 0.02)


def test_delta_reaches_feddrift():
    assert build("feddrift", changed(delta=1.5).settings()).policy.delta == 1.5


def test_posterior_reaches_the_objective_of_bayesian_methods_alone():
    settings = changed(posterior="laplace-full").settings()
    assert build("bcfl-g", settings).policy.objective.posterior == "laplace-full"
    assert build("wecfl", settings).policy.objective.posterior == "laplace-diag"
    with pytest.raises(
        ValueError, match=r"unknown posterior 'laplace-fall'\. Did you mean 'laplace-full'"
    ):
        changed(posterior="laplace-fall")


def test_decay_reaches_the_memory_that_forgets():
    aggregation = build("bcfl-forget", changed(decay=0.5).settings()).aggregation
    assert (aggregation.memory, aggregation.decay) == ("forget", 0.5)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"epsilon": -0.1}, "epsilon must be finite and at least 0, got -0.1"),
        ({"epsilon": float("nan")}, "epsilon must be finite and at least 0, got nan"),
        ({"alpha": 1.0}, "alpha must lie between 0 and 1, got 1.0"),
        ({"delta": 0.0}, "delta must be positive and finite, got 0.0"),
        ({"decay": 1.1}, "decay must be between 0 and 1, got 1.1"),
    ],
)
def test_numbers_out_of_range(given, message):
    with pytest.raises(ValueError, match=message):
        changed(**given).settings()
