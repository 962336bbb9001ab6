"""Continual baselines are not held back where nothing has to be remembered.

In the first time step elastic weight consolidation has no penalty, and stable SGD no earlier
minimum: what is left is FedAvg with a pull to the received model, whose published strengths go
down to 0.001 (Li et al. 2020) and should be weak at usual learning rates.
"""

import pytest

from bcfl import Federation
from bcfl.analysis.metrics import micro_accuracy


@pytest.mark.parametrize("name", ["ewc", "ssgd"])
def test_static_data_are_learnt_as_by_averaging(divide, perceptron, build_method, name):
    clients = divide("iid", clients=6, samples_per_client=120)
    training = {"local_steps": 60, "batch_size": 10, "momentum": 0.0, "learning_rate": 0.1}

    def accuracy(name):
        run = Federation(clients, perceptron, build_method(name, **training), seed=0).run(3)
        return micro_accuracy(run.records[-1].evaluations)

    assert accuracy(name) > accuracy("fedavg") - 0.1
