"""FedProx + EWC: Fisher information, penalty and whole rounds against closed forms."""

import numpy as np
import pytest
import torch

import bcfl
from bcfl.data.streams import view_name
from bcfl.executors import LoopExecutor
from bcfl.executors.batches import training_batches
from bcfl.hypotheses.posterior import from_initial
from bcfl.policies.baselines.ewc import EWC
from bcfl.protocol.objective import Objective
from bcfl.protocol.regularizers import Consolidation, Proximal
from bcfl.protocol.requests import Score
from bcfl.protocol.statistics.evidence import Evidence
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
    start = from_initial(model, "anchor", ANCHOR, torch.empty(0, dtype=torch.float64), 1.0)
    client = bcfl.ClientData.from_arrays(
        "a", (np.array([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]]), [0, 1, 0])
    )
    executor = LoopExecutor.on([client], model, 0, torch.device("cpu"), torch.float64)
    score = Score(client="a", models=(start.key,), statistic=Evidence())
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


def stream(turned_clients, softmax):
    """Clients with other samples at each of three time steps, and the same as arrays by step."""
    steps = [turned_clients(SIZES, seed) for seed in range(3)]
    clients = [
        bcfl.ClientData(
            parts[0].client,
            {view_name("train", t): part.views["train"] for t, part in enumerate(parts)},
        )
        for parts in zip(*steps, strict=True)
    ]
    return clients, [softmax.arrays(step) for step in steps]


def test_rounds_against_numpy(turned_clients, states_of, softmax):
    """Six rounds in three time steps; some clients miss the start of a step."""
    objective = Objective(
        local_steps=4,
        batch_size=10,
        learning_rate=0.1,
        momentum=0.0,
        curvature_samples=None,
        regularizers=(Proximal(PULL),),
    )
    clients, data = stream(turned_clients, softmax)
    one = bcfl.Federation(
        clients,
        linear(4, 3),
        bcfl.Method(policy=EWC(objective, WEIGHT, DECAY)),
        seed=5,
        device="cpu",
        dtype=torch.float64,
        client_fraction=0.75,
    )
    model = softmax.weights(one.initial_state().hypotheses.best.clusters[0].mean(one.model), 3)
    kept, known = {}, {}
    for round, (state, record) in enumerate(states_of(one, 6)):
        here, step = record.participants, round // 2
        for client in here:
            if known.get(client, 0) < step:
                inputs = data[step - 1][client][0]
                p = softmax.probabilities(model, inputs)
                fisher = (p * (1 - p)).T @ inputs**2 / len(inputs)
                old = DECAY * kept[client][1] if client in kept else 0.0
                kept[client], known[client] = (model, fisher + old), step
        updates = []
        for client in here:
            inputs, labels = data[step][client]
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
        (cluster,) = state.hypotheses.best.clusters
        ours = softmax.weights(cluster.mean(one.model), 3)
        np.testing.assert_allclose(ours, model, rtol=0, atol=1e-11)
    assert set(state.hypotheses.best.carried_models) == {
        f"{what} of {client}" for client in kept for what in ("anchor", "Fisher information")
    }
