"""FedDrift over time steps in plain numpy: every cluster trains on all that was brought to it.

Jothimurugesan et al. (2023): a change of concept opens one cluster for all drifting clients
(FedDrift-Eager); the old cluster lives on, goes on training, and is found again when its concept
returns.
"""

import numpy as np
import pytest
import torch

import bcfl
from bcfl.data.view import View
from bcfl.policies.baselines.feddrift import FedDrift
from bcfl.protocol.objective import Objective
from experiments.models import linear

SIZES = (30, 20, 25)
CONCEPTS = (0, 1, 0)
STEPS, RATE, ROUNDS = 8, 0.2, 9


@pytest.fixture
def stream():
    """By client and time step, samples whose classes are turned in the second step."""
    random = np.random.default_rng(3)
    centres = random.normal(scale=2.0, size=(3, 4))

    def drawn(size, turn):
        labels = random.integers(3, size=size)
        return centres[labels] + random.normal(size=(size, 4)), (labels + turn) % 3

    return {
        f"c{index}": [drawn(size + 3 * step, turn) for step, turn in enumerate(CONCEPTS)]
        for index, size in enumerate(SIZES)
    }


@pytest.fixture
def federation(stream):
    def of(trains_on, executor):
        clients = []
        for name, steps in stream.items():
            views = {
                f"train:{step}" if step else "train": View(torch.tensor(x), torch.tensor(y))
                for step, (x, y) in enumerate(steps)
            }
            clients.append(bcfl.ClientData(name, views))
        objective = Objective(local_steps=STEPS, batch_size=1000, learning_rate=RATE, momentum=0.0)
        policy = FedDrift(
            objective=objective,
            delta=0.6,
            every=100,
            start="one",
            drifted="together",
            trains_on=trains_on,
        )
        return bcfl.Federation(
            clients,
            linear(4, 3),
            bcfl.Method(policy=policy, common_start=True),
            seed=5,
            device="cpu",
            dtype=torch.float64,
            executor=executor,
        )

    return of


def averaged(softmax, model, parts):
    """Mean by samples of what clients with samples make of a model."""
    if not parts:
        return model
    made = []
    for pieces in parts:
        inputs = np.concatenate([np.column_stack([x, np.ones(len(x))]) for x, _ in pieces])
        labels = np.concatenate([y for _, y in pieces])
        whole = [np.arange(len(labels))] * STEPS
        made.append((len(labels), softmax.trained(model, (inputs, labels), whole, RATE)))
    return sum(n * m for n, m in made) / sum(n for n, _ in made)


@pytest.mark.parametrize("executor", ["loop", "batched"])
@pytest.mark.parametrize("trains_on", ["all", "current"])
def test_rounds_against_numpy(federation, stream, states_of, softmax, trains_on, executor):
    one = federation(trains_on, executor)
    start = softmax.weights(one.initial_state().hypotheses.best.clusters[0].mean(one.model), 3)
    models, brought = [start], [[0]]
    for round, (state, _) in enumerate(states_of(one, ROUNDS)):
        step = round // 3
        if round == 3:
            models, brought = [models[0], models[0]], [[0], [1]]
        if round == 6:
            brought = [[0, 2], [1]]
        steps = [[s for s in mine if trains_on == "all" or s == step] for mine in brought]
        models = [
            averaged(softmax, model, [[own[s] for s in mine] for own in stream.values() if mine])
            for model, mine in zip(models, steps, strict=True)
        ]
        best = state.hypotheses.best
        assert best.association.labels.tolist() == [[0, 1, 0][step]] * len(SIZES)
        for ours, theirs in zip(best.clusters, models, strict=True):
            found = softmax.weights(ours.mean(one.model), 3)
            np.testing.assert_allclose(found, theirs, rtol=0, atol=1e-10)
