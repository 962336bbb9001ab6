"""The warm-up of CAM: all clients train the shared network alone."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from bcfl import Association, Hypothesis, Objective, drive
from bcfl.architecture.additive import OWN, SHARED, additive
from bcfl.architecture.layout import Part
from bcfl.policies import FedAvg, KMeansAssociation
from bcfl.policies.origins import continued
from bcfl.policies.wrappers.additive_warm_up import LocalFirst, SharedFirst, silenced
from bcfl.protocol.answers import Trained
from bcfl.protocol.regularizers import Proximal

SHARED_ALONE = Objective(phases=((SHARED,),))


@pytest.fixture
def both(linear):
    return additive(linear)


@pytest.fixture
def parent(both, newborn):
    clusters = (newborn(both, 0), newborn(both, 1))
    return Hypothesis(clusters=clusters, association=Association.unseen(("a", "b", "c"), 2))


def shared_first(objective):
    return SharedFirst(policy=FedAvg(Objective()), alone=objective, rounds=2)


def test_all_clients_train_one_model_without_regularizers(parent, context):
    objective = Objective(phases=((SHARED,),), regularizers=(Proximal(),))
    (chosen,) = drive(shared_first(objective).associate(parent, context(("a", "c"))))
    assert chosen.association.labels.tolist() == [0, -1, 0]
    start, other = chosen.models
    assert [origin.posterior(parent) for origin in chosen.origins] == [start, other]
    assert other is parent.clusters[1]
    assert {t.start for t in chosen.trainings} == {start.key}
    assert {t.objective for t in chosen.trainings} == {SHARED_ALONE}
    assert start.key not in {posterior.key for posterior in parent.clusters}


def test_a_silent_network_adds_nothing_and_is_marked(both, parent, linear):
    posterior = silenced(parent.clusters[0], OWN)
    blocks = {block.name: block for block in posterior.blocks}
    assert (blocks[SHARED].is_zero, blocks[OWN].is_zero) == (False, True)
    assert blocks[SHARED] is parent.clusters[0].blocks[0]
    module, shared = both.module(), linear.module()
    torch.nn.utils.vector_to_parameters(posterior.mean(both), module.parameters())
    torch.nn.utils.vector_to_parameters(blocks[SHARED].gaussian.mean, shared.parameters())
    inputs = torch.randn(4, 3)
    torch.testing.assert_close(module(inputs), shared(inputs))


def test_equal_networks_fall_silent_under_one_name(parent):
    keys = [silenced(p, OWN).key for p in (parent.clusters[0], *parent.clusters)]
    assert keys[0] == keys[1] != keys[2]


@pytest.mark.parametrize("phases", [(), ((OWN,),), ((SHARED,), (OWN,)), ((OWN, SHARED),)])
def test_the_objective_leaves_the_silent_network_alone(phases):
    with pytest.raises(ValueError, match="objective must train other blocks than 'own' alone"):
        shared_first(Objective(phases=phases))


@pytest.fixture
def local_first(both):
    def of(rounds):
        kmeans = KMeansAssociation(
            num_clusters=2, objective=Objective(phases=((OWN,),)), part=Part(OWN)
        )
        return LocalFirst(policy=FedAvg(Objective()), first=kmeans, rounds=rounds)

    return of


def answer_at(both, values):
    """Each client's own network has one value in all its parameters."""
    size = both.layout.num_parameters

    def answer(request):
        mean = torch.full((size,), values[request.client])
        return Trained(
            mean=mean, buffers=torch.empty(0), curvature=torch.tensor(1.0), num_samples=1
        )

    return answer


def test_each_client_trains_its_own_network_without_the_shared_one(
    both, parent, context, local_first
):
    (chosen,) = drive(local_first(3).associate(parent, context(("a", "c"))))
    assert chosen.association.labels.tolist() == [0, -1, 2]
    assert {t.objective.phases for t in chosen.trainings} == {((OWN,),)}
    for origin in chosen.origins:
        model = origin.posterior(parent)
        assert [block.is_zero for block in model.blocks] == [True, False]


def test_clients_that_miss_the_last_round_join_the_nearest_cluster(
    both, parent, context, local_first
):
    values = {"a": 0.0, "b": 4.0, "c": 5.0}
    model = parent.clusters[0]
    alone = [
        model.with_parameters(both, name, torch.full_like(model.mean(both), v), model.buffers(both))
        for name, v in values.items()
    ]
    association = Association(("a", "b", "c"), np.arange(3), 3)
    before = replace(parent, clusters=tuple(alone), association=association)
    here = replace(context(("a", "c")), model=both)
    (chosen,) = drive(local_first(1).associate(before, here), answer_at(both, values))
    labels = chosen.association.by_client
    assert labels["b"] == labels["c"] != labels["a"]
    assert continued(chosen.origins, len(before.clusters)) == (-1, -1)
    assert len({origin.posterior(before).key for origin in chosen.origins}) == 1


def test_the_other_network_comes_back_after_the_warm_up(both, parent, context, local_first):
    (warm,) = drive(local_first(2).associate(parent, context(("a",))))
    clusters = tuple(origin.posterior(parent) for origin in warm.origins)
    after = replace(parent, clusters=clusters, carried_models=warm.carried_models)
    policy = replace(local_first(2), rounds=0)
    (chosen,) = drive(policy.associate(after, context(("a",))))
    assert chosen.origins[0].posterior(after).blocks[0] is parent.clusters[0].blocks[0]
    assert chosen.carried_models == {}
