from collections import Counter

import numpy as np
import pytest
import torch
from torch import nn

from bcfl import Aggregation, ClientData, Federation, Method, Model, Objective
from bcfl.data import Schedule
from bcfl.methods import fedavg
from bcfl.policies import FedAvg, LikelihoodAssociation
from bcfl.rounds.round import RoundConfig, participants

NAMES = [f"c{i}" for i in range(10)]


@pytest.mark.parametrize(
    ("share", "count"), [(1.0, 10), (0.95, 10), (0.94, 9), (0.25, 3), (0.24, 2), (0.001, 1)]
)
def test_a_share_of_the_clients_takes_part(share, count):
    chosen = participants(NAMES, share, 0, 0)
    assert len(chosen) == len(set(chosen)) == count
    assert list(chosen) == sorted(chosen)


def test_everybody_takes_part_equally_often():
    often = Counter(c for round in range(1000) for c in participants(NAMES, 0.3, 0, round))
    assert all(abs(often[c] - 300) < 5 * (1000 * 0.3 * 0.7) ** 0.5 for c in NAMES)


def test_the_draw_does_not_depend_on_the_order_of_names():
    assert participants(NAMES, 0.3, 1, 2) == participants(NAMES[::-1], 0.3, 1, 2)
    assert participants(NAMES, 0.3, 1, 2) != participants(NAMES, 0.3, 1, 3)


def test_a_round_counts_what_it_cost(linear, clients):
    method = Method(
        policy=LikelihoodAssociation(
            num_clusters=2, objective=Objective(local_steps=2, batch_size=4)
        )
    )
    (record,) = Federation(clients, linear, method).run(1).records
    ledger = record.ledger
    assert (ledger.scores_requested, ledger.scores_run) == (8, 8)
    assert (ledger.trainings_requested, ledger.trainings_run) == (4, 4)
    assert ledger.exchanges == 3
    assert ledger.bytes_down == 4 * 2 * 8 * 4
    assert set(ledger.seconds) >= {"train", "score", "server", "evaluate"}
    assert all(seconds >= 0 for seconds in ledger.seconds.values())
    assert record.info.num_candidates == 1


def test_clients_describe_themselves_once(linear, clients):
    run = Federation(clients, linear, FedAvg(Objective(local_steps=1, batch_size=4))).run(2)
    assert [record.ledger.exchanges for record in run.records] == [2, 1]
    assert run.state.client_info["c1"].num_samples == {"train": 9, "test": 4}


def test_metrics_cover_clients_that_did_not_take_part(linear, clients):
    federation = Federation(
        clients, linear, FedAvg(Objective(local_steps=1, batch_size=4)), client_fraction=0.25
    )
    (record,) = federation.run(1).records
    assert len(record.participants) == 1
    assert set(record.evaluations) == {"c0", "c1", "c2", "c3"}


def test_no_test_is_made_where_none_is_wanted(linear, clients):
    policy = FedAvg(Objective(local_steps=1, batch_size=4))
    assert not Federation(clients, linear, policy, evaluate=False).run(1).records[0].evaluations


@pytest.mark.parametrize(
    ("steps", "rounds", "reported"),
    [
        (1, 2, {0, 1}),
        (1, 5, {2, 3, 4}),
        (4, 4, {0, 1, 2, 3}),
        (2, 10, {4, 7, 8, 9}),
        (3, 6, {1, 3, 4, 5}),
    ],
)
def test_rounds_that_are_reported_are_the_last_ones_of_time_steps(steps, rounds, reported):
    config = RoundConfig(seed=0, schedule=Schedule(steps, rounds))
    assert {n for n in range(rounds) if config.reported(n)} == reported
    assert config.reported(rounds), "added after them"
    assert not RoundConfig(seed=0).reported(0)


def test_keys_of_initial_models_stay_as_they_are():
    """Random draws derive from them, so that another key changes the results of a seed."""
    model = Model(name="pinned", build=lambda: nn.Linear(3, 2), input_shape=(3,), num_outputs=2)
    client = ClientData.from_arrays("a", (np.ones((2, 3)), [0, 1]))
    (first,) = (
        Federation([client], model, fedavg(), seed=5).initial_state().hypotheses.best.clusters
    )
    assert first.key == "80b6466af9f82e4327ee"


def test_a_global_block_is_one_for_all_clusters_and_fed_by_everybody(shared_body, clients):
    """From the first model on: with a head each, all clusters compute the same features."""
    method = Method(
        policy=LikelihoodAssociation(
            num_clusters=2, objective=Objective(local_steps=3, batch_size=4)
        ),
        aggregation=Aggregation(),
    )
    federation = Federation(clients, shared_body, method)
    state = federation.initial_state()
    for _ in range(3):
        heads, bodies = zip(*(p.blocks for p in state.hypotheses.best.clusters), strict=True)
        assert bodies[0] is bodies[1]
        assert heads[0] is not heads[1]
        assert {b.key for b in heads}.isdisjoint({bodies[0].key})
        state = federation.run(state.round + 1, state=state).state
    assert state.hypotheses.best.association.sizes.sum() == 4


def test_the_global_block_is_the_mean_over_all_clients(shared_body, clients):
    """With one cluster a global block and a cluster's block are the same mean."""
    federation = Federation(clients, shared_body, FedAvg(Objective(local_steps=3, batch_size=4)))
    (one,) = federation.run(1).hypotheses.best.clusters
    plain = Federation(clients, _whole(shared_body), FedAvg(Objective(local_steps=3, batch_size=4)))
    (other,) = plain.run(1).hypotheses.best.clusters
    torch.testing.assert_close(one.mean(shared_body), other.mean(_whole(shared_body)))


def _whole(model):
    from dataclasses import replace

    from bcfl import BlockSpec

    return replace(model, blocks=(BlockSpec(),))


def test_batch_norm_statistics_are_aggregated(batch_norm, make_client):
    """Two clients whose inputs lie apart: the pooled variance holds the spread between them."""
    from bcfl import ClientData

    random = np.random.default_rng(0)
    far = [
        ClientData.from_arrays(n, (random.normal(loc, 1, (64, 3)), random.integers(0, 2, 64)))
        for n, loc in (("a", -5.0), ("b", 5.0))
    ]
    federation = Federation(
        far, batch_norm, FedAvg(Objective(local_steps=60, batch_size=32, learning_rate=0.0))
    )
    (model,) = federation.run(1).hypotheses.best.clusters
    buffers = model.buffers(batch_norm)
    weights = model.mean(batch_norm)[:12].view(4, 3)
    bias = model.mean(batch_norm)[12:16]
    hidden = torch.cat([c.views["train"].inputs.float() for c in far]) @ weights.T + bias
    torch.testing.assert_close(buffers[:4], hidden.mean(0), rtol=0.05, atol=0.05)
    torch.testing.assert_close(buffers[4:], hidden.var(0), rtol=0.1, atol=0.05)
