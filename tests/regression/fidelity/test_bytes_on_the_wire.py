"""Bytes that clients download and upload, in models of four bytes a parameter.

"Asymmetric clustering in federated continual learning", table 3.7: FedAvg and FedGroup move one
model down and one up, IFCA and FedSoft the K centres down and one model up. What a client has
(its own last model, its Fisher information) need not be sent to it.
"""

import pytest

from bcfl import Federation
from bcfl.data.streams import Schedule

CLIENTS, CLUSTERS, COUNTS = 6, 3, 64


@pytest.fixture
def traffic(divide, perceptron, build_method):
    """(models down, models up) per client in the last of some rounds."""

    def of(name, rounds):
        clients = divide("two-stage-dirichlet", groups=2, clients=CLIENTS, samples_per_client=20)
        recipe = build_method(name, num_clusters=CLUSTERS, local_steps=1)
        record = Federation(clients, perceptron, recipe, seed=0).run(rounds).records[-1]
        size = 4 * perceptron.layout.num_parameters * CLIENTS
        return record.ledger.bytes_down / size, record.ledger.bytes_up / size

    return of


@pytest.mark.parametrize(
    ("name", "rounds", "down"),
    [
        ("fedavg", 2, 1),
        ("fedgroup", 2, 1),
        ("ifca", 1, CLUSTERS),
        ("fedsoft", 1, CLUSTERS),
        ("fedsoft", 2, CLUSTERS),
    ],
)
def test_models_per_client(traffic, perceptron, name, rounds, down):
    small = COUNTS / (4 * perceptron.layout.num_parameters)
    measured_down, measured_up = traffic(name, rounds)
    assert measured_down == pytest.approx(down, abs=small)
    assert measured_up == pytest.approx(1, abs=small)


def test_consolidation_costs_what_averaging_does(divide, perceptron, build_method):
    clients = divide("stream", steps=2, clients=4, samples_per_client=60)
    rounds = 4
    moved = {}
    for name in ("fedavg", "ewc"):
        recipe = build_method(name, local_steps=1)
        ledgers = [r.ledger for r in Federation(clients, perceptron, recipe).run(rounds).records]
        moved[name] = [(ledger.bytes_down, ledger.bytes_up) for ledger in ledgers]
    assert Schedule.of(clients, rounds).num_steps == 2
    for (down, up), (other_down, other_up) in zip(moved["ewc"], moved["fedavg"], strict=True):
        assert down == pytest.approx(other_down, abs=4 * COUNTS)
        assert up == pytest.approx(other_up, abs=4 * COUNTS)
