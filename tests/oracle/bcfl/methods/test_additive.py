"""CAM (Ma et al. 2023) by hand: summed logits, orders of training, partial steps."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import bcfl
from bcfl.architecture.additive import OWN, SHARED, AdditiveNetwork, additive
from bcfl.executors.sequential.flat_module import FlatModule
from bcfl.executors.sequential.training import train_locally
from bcfl.hypotheses.association import Association
from bcfl.hypotheses.hypothesis import Hypothesis
from bcfl.hypotheses.posterior import from_initial
from bcfl.policies.policy import candidate
from bcfl.protocol.answers import Trained
from bcfl.protocol.objective import Objective
from bcfl.protocol.regularizers import Proximal
from bcfl.protocol.requests import Train
from experiments.models import linear
from posteriors.curvature.likelihood import negative_log_likelihood


def test_logits_are_summed():
    h, f = torch.tensor([[1.0], [0.0], [-1.0]]), torch.tensor([[-0.5], [2.0], [0.25]])
    network = AdditiveNetwork(lambda: torch.nn.Linear(1, 3, bias=False))
    network.load_state_dict({"shared.weight": h, "own.weight": f})
    one, target = torch.ones(1, 1), torch.tensor([1])
    losses = [
        negative_log_likelihood(part(one), target, "categorical", "mean").item()
        for part in (network, network.shared, network.own)
    ]
    assert losses == pytest.approx([0.252359, 1.407606, 0.227820], abs=5e-7)


@pytest.mark.parametrize(
    ("phases", "against", "shared", "own"),
    [
        (((OWN,), (SHARED,)), "start", 1.9485, 1.4485),
        (((SHARED,), (OWN,)), "start", 1.9485, 1.4485),
        (((SHARED,), (OWN,)), "updated", 1.9485, 1.1914565),
        (((OWN,), (SHARED,)), "updated", 1.6914565, 1.4485),
        (((OWN, SHARED),), "start", 1.854, 1.354),
        ((), "start", 1.854, 1.354),
    ],
)
def test_orders_of_training_by_hand(phases, against, shared, own):
    """Three steps of rate 0.1 on 1/2 (g + t - 5)^2 from g = 1 and t = 0.5."""
    model = additive(linear(1, 1, likelihood="gaussian", bias=False))
    data = bcfl.ClientData.from_arrays("c", (np.ones((1, 1)), np.full((1, 1), 5.0)))
    values = torch.tensor([1.0, 0.5], dtype=torch.float64)
    start = from_initial(model, "start", values, torch.empty(0), 1.0)
    objective = Objective(
        local_steps=3, batch_size=1, learning_rate=0.1, momentum=0.0, phases=phases, against=against
    )
    workspace = FlatModule(model, torch.device("cpu"), torch.float64)
    request = Train("c", start.key, objective)
    reply = train_locally(
        workspace, model, {start.key: start}, data.views["train"], request, (0, 0)
    )
    assert reply.mean.tolist() == pytest.approx([shared, own], abs=1e-12)


@pytest.mark.parametrize(("share", "expected"), [(1.0, 1.430689), (0.25, 0.744731)])
def test_the_pull_to_the_centroid(share, expected):
    """Equation 13 with lambda 0.1 and centroid 0.2; 0.25 is its printed n_i / n."""
    centroid = torch.tensor([0.2], dtype=torch.float64)
    t = torch.tensor([0.5], dtype=torch.float64)
    term = Proximal(0.1)
    for _ in range(3):
        live = t.clone().requires_grad_()
        loss = share * 0.5 * (1 + live - 5).square().sum()
        (loss + term.weight * term.penalty(live, centroid, ())).backward()
        t = t - 0.1 * live.grad
    assert t.item() == pytest.approx(expected, abs=5e-7)


@pytest.mark.parametrize(("partial", "expected"), [(True, (2, 1.2)), (False, (3.5, 1.5))])
def test_a_partial_step(partial, expected):
    """Equation 6: 10 and 30 of 100 samples feed the first cluster."""
    model = linear(2, 1, likelihood="gaussian", bias=False)
    clusters = [from_initial(model, f"k{k}", torch.ones(2), torch.empty(0), 1.0) for k in range(2)]
    parent = Hypothesis(
        clusters=tuple(clusters), association=Association.unseen(("a", "b", "c"), 2)
    )
    chosen = candidate(parent, {"a": 0, "b": 0, "c": 1}, Objective())
    answers = {"a": (10, (2.0, 0.0)), "b": (30, (4.0, 2.0)), "c": (60, (7.0, 7.0))}
    replies = {}
    for training in chosen.trainings:
        count, mean = answers[training.client]
        weight = torch.tensor(float(count))
        replies[training] = Trained(
            mean=torch.tensor(mean), buffers=torch.empty(0), curvature=weight, num_samples=count
        )
    made, _ = bcfl.Aggregation().combine(
        model, parent, replace(chosen, partial=partial), replies, {}, 0
    )
    np.testing.assert_allclose(made[0].mean(model), expected, rtol=1e-6)
