"""Costs in units of FedAvg, from real runs: Table 7.6 of the thesis of WeCFL, with 10 clusters."""

import pytest

import bcfl
from bcfl.analysis import rows
from bcfl.rounds.round import RoundConfig, server_round
from experiments.models import linear
from experiments.reports import compare
from experiments.runs import summary
from experiments.scores.costs import RelativeCost, models_used, over_rounds
from tests.recipes import built

ROUNDS, CLUSTERS, CLIENTS = 10, 10, 12


@pytest.fixture
def rounds():
    """All models are scored in each round, also those of empty clusters, which do not change."""

    def of(name, **settings):
        objective = bcfl.Objective(local_steps=1, batch_size=100)
        clients = [
            bcfl.ClientData.from_arrays(f"c{i:02}", ([[float(i), 1.0, -float(i), 2.0]], [i % 3]))
            for i in range(CLIENTS)
        ]
        model = linear(4, 3)
        method = built(name, num_clusters=CLUSTERS, objective=objective, **settings)
        one = bcfl.Federation(clients, model, method, device="cpu", evaluate=False)
        state, seen = one.initial_state(), []
        for _ in range(ROUNDS):
            state, record = server_round(
                one.method, one.model, one.engine, state, RoundConfig(seed=0, evaluate=False)
            )
            seen.append((state, record))
        return seen, model

    return of


@pytest.fixture
def cost(rounds):
    def of(name, **settings):
        seen, model = rounds(name, **settings)
        return RelativeCost(**over_rounds([models_used(record, model) for _, record in seen]))

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
    assert cost("ifca-cam", warm_up=warm_up) == expected


def test_tables_show_the_costs_of_the_paper(rounds):
    """Storage, communication and computation of Table 7.6: 1; 10; 11, 8 and 8."""

    def metrics(name, **settings):
        seen, model = rounds(name, **settings)
        lines = [
            rows.round_row(record, None, 0.0, used=models_used(record, model)) for _, record in seen
        ]
        return {key: summary.over_seeds([value]) for key, value in summary.of_seed(lines).items()}

    results = {
        "fedavg": metrics("fedavg"),
        "ifca": metrics("ifca"),
        "ifca-cam": metrics("ifca-cam", warm_up=3),
    }
    head, *lines = compare.aligned(results)[: 1 + len(results)]
    assert head.index("down ×") < head.index("peak ×") < head.index("nets ×")
    assert [line.split()[-6:-3] for line in lines] == [
        ["1.0", "1.0", "1.0"],
        ["10.0", "10.0", "10.0"],
        ["8.0", "11.0", "8.0"],
    ]
    assert r"down $\times$ & peak $\times$ & nets $\times$ \\" in compare.latex(results)[2]


def test_rounds_without_costs_are_unknown(rounds):
    seen, model = rounds("fedavg")
    with_costs, without_costs = (
        [rows.round_row(record, None, 0.0, used=models_used(record, unit)) for _, record in seen]
        for unit in (model, None)
    )
    assert summary.of_seed(without_costs)["storage"] is None
    assert summary.of_seed([*without_costs, *with_costs])["communication"] == 1
    new = {k: summary.over_seeds([v]) for k, v in summary.of_seed(with_costs).items()}
    old = {name: found for name, found in new.items() if name != "storage"}
    lines = compare.aligned({"new": new, "old": old})
    assert [line.split()[-6:-3] for line in lines[1:3]] == [
        ["1.0", "1.0", "1.0"],
        ["1.0", compare.UNKNOWN, "1.0"],
    ]
    assert compare.aligned({"old": old})[1].split()[-5:-3] == ["1.0", "1.0"]


def test_kmeans_methods_send_one_model_to_each_client(cost):
    assert cost("wecfl") == RelativeCost(1, 1, 1)
