"""The accumulated association probability of BCFL is that of the mixture of associations.

"A Bayesian framework for clustered federated learning", figure 4: the probability that two clients
share a cluster, over associations. Labels of clusters do not matter for it.
"""

import itertools

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy
from torch.nn.utils import vector_to_parameters

from bcfl import Federation

CLIENTS, CLUSTERS, KEPT = 5, 2, 3


def losses(federation, clients):
    """(clients, clusters) mean training loss under each cluster's first model, nats per sample."""
    hypothesis = federation.initial_state().hypotheses.best
    network = federation.model.build().eval()
    table = np.zeros((len(clients), CLUSTERS))
    for column, cluster in enumerate(hypothesis.clusters):
        vector_to_parameters(cluster.mean(federation.model), network.parameters())
        for row, client in enumerate(clients):
            view = client.views["train"]
            with torch.no_grad():
                table[row, column] = float(cross_entropy(network(view.inputs), view.targets))
    return table


def shared(table):
    """(clients, clients) probability of sharing a cluster, over the best associations."""
    rows = np.arange(CLIENTS)
    every = np.array(list(itertools.product(range(CLUSTERS), repeat=CLIENTS)))
    costs = np.array([table[rows, labels].sum() for labels in every])
    best = np.argsort(costs)[:KEPT]
    weights = np.exp(costs[best].min() - costs[best])
    same = every[best][:, :, None] == every[best][:, None, :]
    return np.tensordot(weights / weights.sum(), same, 1)


@pytest.mark.parametrize("name", [f"bcfl-mh-{KEPT}", f"bcfl-c-{KEPT}"])
def test_probability_of_sharing_a_cluster(divide, perceptron, build_method, name):
    clients = divide("two-stage-dirichlet", groups=2, clients=CLIENTS, samples_per_client=20)
    recipe = build_method(name, num_clusters=CLUSTERS)
    federation = Federation(clients, perceptron, recipe, seed=0)
    right = shared(losses(federation, clients))
    graph = federation.run(1).accumulated_association_graph()
    for one, other in itertools.combinations(range(CLIENTS), 2):
        edge = graph.get_edge_data(clients[one].client, clients[other].client, {})
        assert edge.get("probability", 0.0) == pytest.approx(right[one, other], abs=1e-5)
