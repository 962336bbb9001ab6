"""FedProx (Li et al. 2020) by hand: three steps on 1/2 ||x - a||^2."""

import numpy as np
import pytest
import torch

import bcfl
from bcfl.executors.sequential.flat_module import FlatModule
from bcfl.executors.sequential.training import train_locally
from bcfl.hypotheses.posterior import from_initial
from bcfl.protocol.objective import Objective
from bcfl.protocol.regularizers import Proximal
from bcfl.protocol.requests import Train
from experiments.models import linear

ROOT = np.sqrt(2.0)


def trained(start, target, objective):
    """Train on two samples whose mean loss is 1/2 ||x - target||^2."""
    model = linear(2, 1, likelihood="gaussian", bias=False)
    data = bcfl.ClientData.from_arrays("c", (ROOT * np.eye(2), ROOT * np.array(target)[:, None]))
    first = from_initial(
        model, "start", torch.tensor(start, dtype=torch.float64), torch.empty(0), 1.0
    )
    workspace = FlatModule(model, torch.device("cpu"), torch.float64)
    request = Train("c", first.key, objective, ((),) * len(objective.regularizers))
    reply = train_locally(
        workspace, model, {first.key: first}, data.views["train"], request, (0, 0)
    )
    return reply.mean.tolist()


@pytest.mark.parametrize(
    ("rho", "expected"), [(0.0, (2.028, 0.458)), (0.95, (1.942405, 0.5863925))]
)
def test_three_steps_by_hand(rho, expected):
    regularizers = (Proximal(rho),) if rho else ()
    objective = Objective(
        local_steps=3, batch_size=10, learning_rate=0.1, momentum=0.9, regularizers=regularizers
    )
    assert trained([1.0, 2.0], [3.0, -1.0], objective) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(("rho", "left"), [(0.95, 0.961013), (230.0, 0.219513)])
def test_what_the_pull_alone_leaves_of_an_offset(rho, left):
    """Ten steps of rate 0.001 with momentum 0.9."""
    offset, velocity = torch.tensor([1.0], dtype=torch.float64), 0.0
    for _ in range(10):
        live = offset.clone().requires_grad_()
        (rho * Proximal(rho).penalty(live, torch.zeros(1, dtype=torch.float64), ())).backward()
        velocity = 0.9 * velocity + live.grad
        offset = offset - 0.001 * velocity
    assert offset.item() == pytest.approx(left, abs=5e-7)
