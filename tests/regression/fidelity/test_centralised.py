"""Centralised training is the bound of one model for each true group.

"Asymmetric clustering in federated continual learning", tables 3.2 to 3.6: Centralize has [2]
models where there are two groups.
"""

import pytest

from bcfl import Federation
from bcfl.analysis.metrics import ari, micro_accuracy


@pytest.mark.parametrize(
    ("partition", "name"), [("iid", "centralised"), ("shifted-labels", "centralised-groups")]
)
def test_one_model_for_each_group(divide, perceptron, build_method, partition, name):
    """`centralised` is one model for all, whatever they disagree on."""
    clients = divide(partition, clients=6, samples_per_client=150)
    run = Federation(clients, perceptron, build_method(name), seed=0).run(6)
    groups = [client.group or 0 for client in clients]
    labels = run.hypotheses.best.association.labels
    assert ari(groups, labels) == 1.0
    assert micro_accuracy(run.records[-1].evaluations) > 0.8
