"""`build` may hand out one and the same pretrained network, which no federation trains.

Reported to neighbouring projects: two instances share a network, and the first spoils the second.
"""

import copy

import pytest
import torch
from torch import nn


@pytest.fixture
def pretrained():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(5)
        return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))


def flat(network):
    return torch.cat([p.detach().flatten().clone() for p in network.parameters()])


@pytest.mark.parametrize("executor", ["loop", "batched"])
@pytest.mark.parametrize("name", ["fedavg", "wecfl", "bcfl-g"])
def test_it_gives_the_models_that_copies_give(
    clients, mlp, federation, parameters, pretrained, executor, name
):
    copied = copy.deepcopy(pretrained)
    builds = (lambda: pretrained, lambda: copy.deepcopy(copied))
    runs = [federation(clients(), mlp(b), name, executor=executor).run(rounds=3) for b in builds]
    assert torch.equal(*map(parameters, runs))


@pytest.mark.parametrize("executor", ["loop", "batched"])
@pytest.mark.parametrize("name", ["fedavg", "wecfl", "bcfl-g"])
def test_it_stays_as_it_was(clients, mlp, federation, pretrained, executor, name):
    before = flat(pretrained)
    run = federation(clients(), mlp(lambda: pretrained), name, executor=executor).run(rounds=2)
    run.predict("c0", torch.ones(2, 4))
    assert torch.equal(flat(pretrained), before)


def test_two_runs_of_one_seed_are_equal(clients, mlp, federation, parameters, pretrained):
    def once():
        return parameters(federation(clients(), mlp(lambda: pretrained), "ifca").run(rounds=2))

    assert torch.equal(once(), once())
