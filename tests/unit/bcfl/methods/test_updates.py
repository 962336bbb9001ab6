import pytest

from bcfl.methods import RECIPES, UnknownOptionError, build
from bcfl.policies.updates.bipartition import RecursiveBipartition
from bcfl.policies.updates.clustering_temperature import AtRound, TemperatureRise
from bcfl.policies.updates.fedgroup import FedGroup
from bcfl.policies.updates.one_shot import OneShotClustering
from bcfl.policies.updates.update_clustering import (
    AffinityClustering,
    AgglomerativeClustering,
    HDBSCANClustering,
    KMeansClustering,
    MeanShiftClustering,
)
from tests.recipes import built

ONE_SHOT = {
    "ocfl-hdbscan": HDBSCANClustering(0.2, "together"),
    "ocfl-meanshift": MeanShiftClustering(),
    "ocfl-affinity": AffinityClustering("similarity"),
    "ocfl-kmeans": KMeansClustering(3),
    "bcl": AgglomerativeClustering(0.4, "average", "distance"),
}
EVERY = [*ONE_SHOT, "scl", "fedgroup"]


@pytest.mark.parametrize("name", ONE_SHOT)
def test_one_shot_methods_differ_in_trigger_and_clustering(name):
    policy = built(name, num_clusters=3).policy
    assert type(policy) is OneShotClustering
    assert policy.clustering == ONE_SHOT[name]
    assert policy.trigger == (AtRound(0.4) if name == "bcl" else TemperatureRise(2.0, "rise"))
    assert policy.objective.curvature == "uniform"


def test_the_shot_can_be_at_a_fixed_round_or_several():
    policy = built("ocfl-hdbscan", num_clusters=3, shot_round=0.2, norm=3.0, shots=2).policy
    assert policy.trigger == AtRound(0.2, 3.0)
    assert policy.shots == 2


def test_bipartition_is_by_absolute_lengths_and_the_exact_linkage():
    policy = build("scl").policy
    assert type(policy) is RecursiveBipartition
    assert (policy.scale, policy.linkage, policy.first_round) == ("absolute", "single", 0.4)
    assert (policy.mean_norm, policy.client_norm) == (0.35, 0.35)
    assert policy.objective.curvature == "uniform"
    assert build("scl", scale="relative").policy.scale == "relative"


def test_the_cold_start_is_unweighted_and_the_rounds_are_not():
    policy = build("fedgroup", num_clusters=5).policy
    assert type(policy) is FedGroup
    assert policy.groups == 5
    assert policy.objective.curvature == "samples"
    assert policy.cold_start.curvature == "uniform"
    assert (policy.cold_start.local_steps, policy.cold_start.batch_size) == (50, 10)


@pytest.mark.parametrize("name", EVERY)
def test_all_start_from_one_model_and_say_what_they_are(name):
    method = build(name)
    assert (method.name, method.num_clusters, method.common_start) == (name, 1, True)
    assert name in RECIPES
    with pytest.raises(UnknownOptionError, match=f"{name!r} has no option 'cluster_size'"):
        build(name, cluster_size=(1, 3))
    with pytest.raises(ValueError, match="one cluster"):
        build(f"{name}-w")


@pytest.mark.parametrize("name", ["ocfl-kmeans", "fedgroup"])
def test_methods_that_must_be_told_k_say_so(name):
    with pytest.raises(ValueError, match="num_clusters"):
        build(name, num_clusters="auto")
