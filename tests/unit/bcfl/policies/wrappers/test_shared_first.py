"""The warm-up of CAM: all clients train the shared network alone."""

import pytest
import torch

from bcfl import Association, Hypothesis, Objective, drive
from bcfl.architecture.additive import OWN, SHARED, additive
from bcfl.policies.wrappers.shared_first import SharedFirst, silenced
from bcfl.protocol.regularizers import Proximal

SHARED_ALONE = Objective(phases=((SHARED,),))


@pytest.fixture
def both(linear):
    return additive(linear)


@pytest.fixture
def parent(both, newborn):
    clusters = (newborn(both, 0), newborn(both, 1))
    return Hypothesis(clusters=clusters, association=Association.unseen(("a", "b", "c"), 2))


def test_all_clients_train_one_model_without_regularizers(parent, context):
    objective = Objective(phases=((SHARED,),), regularizers=(Proximal(),))
    (chosen,) = drive(SharedFirst(2, objective).associate(parent, context(("a", "c"))))
    assert chosen.association.labels.tolist() == [0, -1, 0]
    (start,) = chosen.models
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
        SharedFirst(2, Objective(phases=phases))
