"""FedProx + EWC: Fisher information, penalty and whole rounds against closed forms."""

import numpy as np
import pytest
import torch

import bcfl
from bcfl.consolidation import Consolidation
from bcfl.executors import LoopExecutor
from bcfl.executors.batches import training_batches
from bcfl.policies.elastic import ElasticCluster
from bcfl.policies.time_steps import TimeSteps
from bcfl.posterior import birth
from bcfl.requests import Objective, Score
from bcfl.terms import Proximal
from experiments.models import linear

FISHER = (0.155965, 0.282195, 0.155965, 0.282195)
EMPIRICAL = torch.tensor([0.117642, 0.127705] * 2, dtype=torch.float64)
ANCHOR = torch.tensor([0.5, -0.5, -0.25, 0.25], dtype=torch.float64)
WEIGHTS = torch.tensor([0.7, -0.4, -0.3, 0.5], dtype=torch.float64)
SIZES = (20, 33, 12, 41)
PULL, WEIGHT, DECAY = 0.3, 5.0, 0.9


def test_the_information_that_a_client_reports_is_exact():
    """Logits x W^T at W = (.5 -.5 / -.25 .25), samples (1, 0), (0, 2), (1, 1)."""
    model = linear(2, 2, bias=False)
    start = birth(model, "anchor", ANCHOR, torch.empty(0, dtype=torch.float64), 1.0)
    client = bcfl.ClientData.from_arrays(
        "a", (np.array([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]]), [0, 1, 0])
    )
    executor = LoopExecutor.on([client], model, 0, torch.device("cpu"), torch.float64)
    score = Score("a", (start.key,), "evidence")
    evidence = executor.answer([score], {start.key: start}, 0)[score][start.key]
    assert evidence.num_samples == 3
    np.testing.assert_allclose(evidence.curvature / 3, FISHER, atol=1e-6)


def test_the_penalty_and_its_gradient():
    term, live = Consolidation(40.0), WEIGHTS.clone().requires_grad_()
    loss = term.weight * term.penalty(live, WEIGHTS, (ANCHOR, EMPIRICAL))
    loss.backward()
    assert loss.item() == pytest.approx(0.285169, abs=2e-6)
    expected = (0.941137, 0.510822, -0.235284, 1.277054)
    np.testing.assert_allclose(live.grad, expected, atol=1e-5)
    near = Proximal(1.0)
    received = torch.tensor([0.6, -0.6, -0.2, 0.2], dtype=torch.float64)
    pull = near.penalty(live, received, ())
    pull.backward()
    assert pull.item() == pytest.approx(0.075, abs=1e-12)
    expected = (1.041137, 0.710822, -0.335284, 1.577054)
    np.testing.assert_allclose(live.grad, expected, atol=1e-5)


def test_rounds_against_numpy(turned_clients, states_of, softmax):
    """Six rounds in three time steps of static data; some clients miss the end of a step."""
    objective = Objective(4, 10, 0.1, 0.0, curvature_samples=None, terms=(Proximal(PULL),))
    clients = turned_clients(SIZES)
    one = bcfl.Federation(
        clients,
        linear(4, 3),
        bcfl.Method(ElasticCluster(objective, WEIGHT, DECAY, TimeSteps(3))),
        seed=5,
        device="cpu",
        dtype=torch.float64,
        participation=0.75,
    )
    data = softmax.arrays(clients)
    model = softmax.weights(one.initial_state().hypotheses.best.clusters[0].mean(one.model), 3)
    kept, numbers = {}, []
    for round, (state, record) in enumerate(states_of(one, 6)):
        here, remembered = record.participants, dict(kept)
        if round in (1, 3):
            for client in here:
                inputs = data[client][0]
                p = softmax.probabilities(model, inputs)
                fisher = (p * (1 - p)).T @ inputs**2 / len(inputs)
                old = DECAY * kept[client][1] if client in kept else 0.0
                remembered[client] = (model, fisher + old)
        updates = []
        for client in here:
            inputs, labels = data[client]
            weights = model
            for batch in training_batches(len(labels), 10, 4, 5, round, client).numpy():
                excess = softmax.probabilities(weights, inputs[batch])
                excess[np.arange(len(batch)), labels[batch]] -= 1
                slope = excess.T @ inputs[batch] / len(batch) + PULL * (weights - model)
                if client in kept:
                    anchor, fisher = kept[client]
                    slope = slope + WEIGHT * fisher * (weights - anchor)
                weights = weights - 0.1 * slope
            updates.append((len(labels), weights))
        model = sum(n * w for n, w in updates) / sum(n for n, _ in updates)
        kept = remembered
        numbers.append(len(kept))
        (cluster,) = state.hypotheses.best.clusters
        ours = softmax.weights(cluster.mean(one.model), 3)
        np.testing.assert_allclose(ours, model, rtol=0, atol=1e-11)
    assert numbers[:2] == [0, 3]
    assert set(state.hypotheses.best.kept) == {
        f"{what} of {client}" for client in kept for what in ("anchor", "Fisher information")
    }
