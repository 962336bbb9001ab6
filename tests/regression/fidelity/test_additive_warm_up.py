"""What clients train and are tested on in the warm-up of clustered additive modelling.

Ma et al. (2023), algorithm 1: (1) rounds of FedAvg on the shared network for IFCA, (2) local
training of the clients' own networks for FeSEM.
"""

import numpy as np
import pytest
import torch
from torch.nn.utils import vector_to_parameters

from bcfl import Federation


@pytest.mark.parametrize(
    ("name", "trained", "resting"),
    [
        ("ifca-cam", "shared", "own"),
        ("fesem-cam", "own", "shared"),
    ],
)
def test_block_that_is_warmed_up(divide, perceptron, build_method, watch, name, trained, resting):
    clients = divide("two-stage-dirichlet", groups=2, clients=6, samples_per_client=20)
    recipe = build_method(name, num_clusters=2, local_steps=1, warm_up=2)
    _, _, trainings = watch(clients, perceptron, recipe, 2)
    assert len(trainings) == 12
    assert all(request.objective.trains(trained) for _, request, _ in trainings)
    assert not any(request.objective.trains(resting) for _, request, _ in trainings)


def correct(model, mean, clients):
    """Test samples that the network of a parameter vector classifies rightly."""
    network = model.build().eval()
    vector_to_parameters(mean, network.parameters())
    with torch.no_grad():
        return sum(
            int((network(c.views["test"].inputs).argmax(1) == c.views["test"].targets).sum())
            for c in clients
        )


def test_clients_are_tested_on_the_shared_network(divide, perceptron, build_method):
    clients = divide("two-stage-dirichlet", groups=2, clients=6, samples_per_client=40)
    recipe = build_method("ifca-cam", num_clusters=2, warm_up=2)
    run = Federation(clients, perceptron, recipe, seed=0).run(2)
    cluster = run.hypotheses.best.clusters[0]
    parts = run.model.split(cluster.mean(run.model), cluster.buffers(run.model))
    blocks = {name: parameters for name, (parameters, _) in parts.items()}
    alone = run.model.join({**blocks, "own": torch.zeros_like(blocks["own"])})
    tested = run.records[-1].evaluations.values()
    assert sum(int(np.trace(sums.confusion)) for sums in tested) == correct(
        run.model, alone, clients
    )
