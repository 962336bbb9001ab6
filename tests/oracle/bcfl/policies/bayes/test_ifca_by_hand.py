"""IFCA on four samples: losses, the choice of a cluster and one step, by hand."""

import numpy as np
import pytest
import torch

import bcfl
from bcfl.executors import LoopExecutor
from bcfl.hypotheses.posterior import from_initial
from bcfl.protocol.objective import Objective
from bcfl.protocol.requests import Score, Train
from experiments.models import linear

INPUTS = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [-1.0, 0.5]])
W0 = torch.tensor([1.0, -1.0, -1.0, 1.0], dtype=torch.float64)


def asked(labels, request_of):
    model = linear(2, 2, bias=False)
    models = [
        from_initial(model, f"k{i}", mean, torch.empty(0), 1.0)
        for i, mean in enumerate((W0, -W0 / 2, 0 * W0))
    ]
    data = bcfl.ClientData.from_arrays("c", (INPUTS, np.array(labels)))
    executor = LoopExecutor.on([data], model, 0, torch.device("cpu"), torch.float64)
    request = request_of([posterior.key for posterior in models])
    return executor.answer([request], {p.key: p for p in models}, 0)[request]


@pytest.mark.parametrize(
    ("labels", "losses", "cluster"),
    [
        ((0, 1, 0, 1), (0.248898, 1.255271, 0.693147), 0),
        ((1, 0, 1, 0), (1.998898, 0.380271, 0.693147), 1),
    ],
)
def test_losses_by_hand(labels, losses, cluster):
    answer = asked(labels, lambda keys: Score(client="c", models=tuple(keys)))
    means = [loss.total / loss.num_samples for loss in answer.values()]
    assert means == pytest.approx(losses, abs=6e-7)
    assert int(np.argmin(means)) == cluster


def test_one_step_by_hand():
    objective = Objective(local_steps=1, batch_size=10, learning_rate=0.1, momentum=0.0)
    answer = asked((0, 1, 0, 1), lambda keys: Train("c", keys[0], objective))
    expected = (1.016666, -0.991073, -1.016666, 0.991073)
    assert answer.mean.tolist() == pytest.approx(expected, abs=6e-7)
