"""Costs in units of FedAvg, from real runs: Table 7.6 of the thesis of WeCFL, with 10 clusters."""

import pytest

import bcfl
from bcfl.federation import Setting, server_round
from bcfl.methods import Settings, build
from experiments.costs import RelativeCost, relative_cost
from experiments.models import linear

ROUNDS, CLUSTERS, CLIENTS = 10, 10, 12


@pytest.fixture
def cost():
    """All models are scored in each round, also those of empty clusters, which do not change."""

    def of(name, **settings):
        objective = bcfl.Objective(local_steps=1, batch_size=100)
        clients = [
            bcfl.ClientData.from_arrays(f"c{i:02}", ([[float(i), 1.0, -float(i), 2.0]], [i % 3]))
            for i in range(CLIENTS)
        ]
        model = linear(4, 3)
        method = build(name, Settings(CLUSTERS, objective, **settings))
        one = bcfl.Federation(clients, model, method, device="cpu", evaluates=False)
        state, records = one.initial_state(), []
        for _ in range(ROUNDS):
            state, record = server_round(
                one.recipe, one.model, one.engine, state, Setting(0, evaluates=False)
            )
            records.append(record)
        return relative_cost(records, model)

    return of


def test_fedavg_is_the_unit(cost):
    assert cost("fedavg") == cost("fedprox") == RelativeCost(1, 1, 1)


@pytest.mark.parametrize("name", ["ifca", "fedavg-plus", "fedprox-plus"])
def test_ten_models_cost_ten_times_as_much(cost, name):
    assert cost(name) == RelativeCost(10, 10, 10)


@pytest.mark.parametrize(("warm_up", "times"), [(0, 11), (1, 10), (3, 8), (5, 6)])
def test_ifca_cam_is_cheaper_the_longer_its_warm_up(cost, warm_up, times):
    """Eleven models in each round but those of the warm-up, in which one is enough.

    So with 10 rounds here as with 100 there: shares of the run decide.
    """
    expected = RelativeCost(11, pytest.approx(times), pytest.approx(times))
    assert cost("ifca-cam", additive_warm_up=warm_up) == expected


def test_kmeans_methods_send_one_model_to_each_client(cost):
    assert cost("wecfl") == RelativeCost(1, 1, 1)


def test_rounds_without_anybody_cannot_be_compared():
    with pytest.raises(ValueError, match="records must hold a round with participants, got none"):
        relative_cost((), linear(4, 3))
