import pytest

from bcfl.methods import RECIPES, UnknownMethodError, build
from bcfl.policies import FedAvg, KMeansAssociation, LikelihoodAssociation, WarmUp
from bcfl.trackers import Consensus, Exact, Greedy, MultiHypothesis
from tests.recipes import built


@pytest.mark.parametrize(
    ("name", "policy", "tracker", "common_start"),
    [
        ("fedavg", FedAvg, Greedy(), True),
        ("ifca", LikelihoodAssociation, Greedy(), False),
        ("fesem", KMeansAssociation, Greedy(), True),
        ("wecfl", KMeansAssociation, Greedy(), True),
        ("bcfl-g", LikelihoodAssociation, Greedy(), False),
        ("bcfl-c-3", LikelihoodAssociation, Consensus(3), False),
        ("bcfl-mh-12", LikelihoodAssociation, MultiHypothesis(12), False),
        ("bcfl-exact", LikelihoodAssociation, Exact(), False),
    ],
)
def test_a_name_gives_its_recipe(name, policy, tracker, common_start):
    method = built(name, num_clusters=3)
    assert method.name == name
    assert type(method.policy) is policy
    assert method.tracker == tracker
    assert method.common_start is common_start
    assert method.num_clusters == (1 if name == "fedavg" else 3)
    assert hash(method.policy) is not None


def test_flat_methods_report_counts_and_the_others_curvature():
    assert build("ifca").policy.objective.curvature == "samples"
    assert build("bcfl-g").policy.objective.curvature == "ggn"
    assert build("fesem").policy.weighting == "equal"
    assert build("wecfl").policy.weighting == "samples"


def test_a_warm_up_comes_first():
    method = build("bcfl-mh-3-w", num_clusters=2, warm_up_rounds=4)
    assert method.name == "bcfl-mh-3-w"
    assert isinstance(method.policy, WarmUp)
    assert isinstance(method.policy.first, KMeansAssociation)
    assert (method.policy.rounds, method.policy.first.weighting) == (4, "equal")
    assert method.policy.first.objective == method.policy.then.objective


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("bcfl-mh6", "Did you mean 'bcfl-mh-6'?"),
        ("bcfl-m-3", "Did you mean 'bcfl-"),
        ("fedavgg", "Did you mean 'fedavg'?"),
        ("wefcl", "Did you mean 'wecfl'?"),
        ("ifca-cma", "Did you mean 'ifca-cam'?"),
        ("bcfl_g-w", "Did you mean 'bcfl-g-w'?"),
        ("BCFL-G", "All: bcfl list methods"),
        ("", "All: bcfl list methods"),
    ],
)
def test_an_unknown_name_is_met_with_the_nearest(name, hint):
    with pytest.raises(UnknownMethodError, match=f"unknown method '{name}'") as error:
        build(name)
    assert hint in str(error.value)
    assert str(error.value).endswith("All: bcfl list methods")


@pytest.mark.parametrize("name", ["bcfl-mh-0", "bcfl-c-0"])
def test_a_number_in_a_name_is_at_least_1(name):
    with pytest.raises(ValueError, match="must be a whole number of at least 1, got 0"):
        build(name)


@pytest.mark.parametrize("suffix", ["w", "cam", "con-para", "con-rep", "cks", "con-cks"])
def test_one_cluster_has_nothing_that_needs_several(suffix):
    with pytest.raises(ValueError, match=r"method 'fedavg' starts with one cluster: suffix -"):
        build(f"fedavg-{suffix}")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"num_clusters": 0}, "num_clusters must be a whole number of at least 1, got 0"),
        ({"temperature": -1.0}, r"temperature must be .*positive.*, got -1\.0"),
        ({"score_samples": 0}, "score_samples must be a whole number of at least 1 or None, got 0"),
        ({"prior_precision": 0.0}, r"prior_precision must be positive.*, got 0\.0"),
        ({"curvature": "full"}, "curvature of bcfl-g-w must be 'samples' or .*, got 'full'"),
        ({"warm_up_rounds": -1}, "rounds must be at least 0, got -1"),
    ],
)
def test_settings_out_of_range_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        build("bcfl-g-w", **settings)


def test_every_recipe_is_described():
    for recipe in RECIPES.values():
        name = recipe.title.replace("-M", "-2")
        assert build(name).name == name
        assert recipe.description
        assert recipe.paper or recipe.name in ("local", "centralised")
