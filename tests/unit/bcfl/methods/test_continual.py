"""The recipes of the continual baselines run, and resume from a checkpoint with the same bits."""

from dataclasses import replace

import pytest
import torch

from bcfl import BlockSpec, Federation, Objective
from bcfl.methods import build
from bcfl.policies.baselines.apd import APD
from bcfl.policies.baselines.ewc import EWC
from bcfl.policies.baselines.feddrift import FedDrift
from bcfl.policies.baselines.fedsoft import FedSoft
from bcfl.policies.baselines.fedweit import FedWeIT
from bcfl.policies.baselines.stable_sgd import StableSGD
from bcfl.rounds.checkpoint import load, save
from tests.recipes import built

POLICIES = {
    "fedsoft": FedSoft,
    "feddrift": FedDrift,
    "ewc": EWC,
    "ssgd": StableSGD,
    "apd": APD,
    "fedweit": FedWeIT,
}


@pytest.fixture
def federation(clients, shared_body):
    model = replace(shared_body, name="two-layers", blocks=(BlockSpec(),))

    def of(name):
        method = built(name, num_clusters=2, objective=Objective(local_steps=3, batch_size=4))
        return Federation(clients, model, method, device="cpu")

    return of


def means(state):
    (hypothesis,) = state.hypotheses
    models = (*hypothesis.clusters, *hypothesis.carried_models.values())
    return [block.gaussian.mean for posterior in models for block in posterior.blocks]


@pytest.mark.parametrize("name", POLICIES)
def test_a_run_goes_on_from_a_checkpoint(name, federation, tmp_path):
    assert type(federation(name).method.policy) is POLICIES[name]
    half = federation(name).run(2)
    loaded = load(save(half.state, tmp_path))
    rest = federation(name).run(3, state=loaded)
    whole = federation(name).run(3)
    assert rest.hypotheses.best.state == whole.hypotheses.best.state
    ours, theirs = means(rest.state), means(whole.state)
    assert len(ours) == len(theirs)
    assert all(torch.equal(*pair) for pair in zip(ours, theirs, strict=True))


def test_soft_clusters_serve_in_proportion(federation):
    association = federation("fedsoft").run(1).hypotheses.best.association
    assert association.serving.sum(axis=1) == pytest.approx([1.0] * 4)
    assert (association.serving > 0).all()


def test_clients_share_some_weights_alone(federation):
    (hypothesis,) = federation("apd").run(2).hypotheses
    assert len(hypothesis.clusters) == 4
    shared, adaptive, own = (set(column) for column in zip(*_keys(hypothesis), strict=True))
    assert (len(shared), len(adaptive), len(own)) == (1, 4, 4)


def _keys(hypothesis):
    return [[block.key for block in posterior.blocks] for posterior in hypothesis.clusters]


def test_small_batches_and_dropout_are_the_regime_of_stable_sgd(federation):
    method = build("ssgd", objective=Objective(local_steps=3, batch_size=32))
    assert method.policy.objective.batch_size == 10
    dropped = federation("ssgd").model
    assert any(isinstance(part, torch.nn.Dropout) for part in dropped.module().modules())
