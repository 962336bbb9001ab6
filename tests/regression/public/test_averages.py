"""Means over clients weigh by samples, and their bits depend on no order.

Reported to neighbouring projects: the mean of federated averaging takes no weights, and sums in the
order in which clients answer.
"""

from dataclasses import dataclass

import numpy as np
import pytest
import torch

from bcfl import ClientData
from bcfl.rounds.round import RoundConfig, server_round


@dataclass(frozen=True)
class Backwards:
    """Gives the answers in the opposite order."""

    executor: object

    def answer(self, requests, models, round):
        outcomes = self.executor.answer(requests[::-1], models, round)
        return dict(reversed(outcomes.items()))


@pytest.fixture
def unequal(arrays):
    """Clients of 4, 8, 16, ... training samples."""
    return [
        ClientData.from_arrays(f"c{i}", (x[: 4 * 2**i], y[: 4 * 2**i]), None, group)
        for i, (x, y, group) in enumerate(arrays(5, num_samples=64))
    ]


def test_the_mean_is_that_of_all_samples(unequal, mlp, federation, parameters):
    """After one step from a common model, the mean of the clients' models by their samples."""
    single = [
        parameters(federation([data], mlp(), "fedavg", evaluate=False).run(rounds=1))
        for data in unequal
    ]
    sizes = torch.tensor([4.0, 8, 16, 32, 64]).double()
    expected = (sizes[:, None] * torch.stack(single)).sum(0) / sizes.sum()
    found = parameters(federation(unequal, mlp(), "fedavg", evaluate=False).run(rounds=1))
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["fedavg", "ifca", "wecfl", "bcfl-mh-3", "faacl"])
def test_bits_depend_on_no_order_of_clients_or_answers(clients, mlp, federation, name):
    setups = [federation(data, mlp(), name) for data in (clients(), clients()[::-1])]
    states = []
    for setup, wrap in zip(setups, (lambda executor: executor, Backwards), strict=True):
        state = setup.initial_state()
        for _ in range(2):
            state, _ = server_round(
                setup.method, setup.model, wrap(setup.engine), state, RoundConfig(seed=setup.seed)
            )
        states.append([p.mean(setup.model).numpy() for h in state.hypotheses for p in h.clusters])
    for ours, theirs in zip(*states, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_participants_depend_on_the_seed_alone(clients, mlp, federation):
    def chosen(seed):
        run = federation(clients(), mlp(), "fedavg", seed=seed, client_fraction=0.5).run(rounds=6)
        return [record.participants for record in run.records]

    assert chosen(3) == chosen(3)
    assert chosen(3) != chosen(4)


@pytest.mark.parametrize("executor", ["loop", "batched"])
def test_clients_smaller_than_a_batch_train_on_all_their_samples(
    arrays, mlp, federation, parameters, executor
):
    """A client of 3 samples and batches of 32: as many steps as for whole batches."""
    x, y, group = arrays(1)[0]
    data = [ClientData.from_arrays("small", (x[:3], y[:3]), None, group)]
    setup = federation(data, mlp(), "fedavg", executor=executor, evaluate=False)
    start = setup.initial_state().hypotheses.best.clusters[0].mean(setup.model).double()
    assert float((parameters(setup.run(rounds=1)) - start).norm()) > 1e-3
