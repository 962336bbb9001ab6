"""Methods that cluster by updates find the groups of a small split of handwritten digits."""

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from bcfl import ClientData, Federation, Objective
from bcfl.rounds import checkpoint
from experiments import models
from experiments.datasets import load
from tests.recipes import built

CLASSES = ((0, 1, 2, 3), (4, 5, 6), (7, 8, 9))
OVERLAPPING = ((0, 1, 2, 3, 8, 9), (4, 5, 6, 7, 8, 9), (0, 1, 2, 3, 4, 5))


def split(classes, per_group, seed, train=60, test=20):
    """Clients that hold their group's classes in equal shares; no two clients share a sample."""
    digits = load("optdigits")
    random = np.random.default_rng(seed)
    targets = np.asarray(digits.targets)
    left = {c: random.permutation(np.flatnonzero(targets == c)).tolist() for c in range(10)}
    clients = []
    for group, held in enumerate(classes):
        for _ in range(per_group):
            rows = [left[held[i % len(held)]].pop() for i in range(train + test)]
            rows = random.permutation(rows)
            x, y = digits.inputs[rows].reshape(-1, 64), targets[rows]
            name = f"client-{len(clients):02}"
            clients.append(
                ClientData.from_arrays(name, (x[:train], y[:train]), (x[train:], y[train:]), group)
            )
    return clients


@pytest.fixture
def followed():
    """ARI, number of clusters and test accuracy after each round."""

    def of(name, clients, rounds, seed=0, options=None, **arguments):
        settings = dict(num_clusters=3, objective=Objective(local_steps=10), **(options or {}))
        truth = [client.group for client in clients]
        seen = []

        def look(state, record):
            association = state.hypotheses.best.association
            confusion = sum(sums.confusion for sums in record.evaluations.values())
            seen.append(
                (
                    adjusted_rand_score(truth, association.labels),
                    association.num_clusters,
                    np.trace(confusion) / confusion.sum(),
                    record.info.facts.get("clustering_temperature"),
                )
            )

        model = models.mlp(64, 32, 10)
        method = built(name, **settings)
        federation = Federation(clients, model, method, seed=seed, device="cpu", **arguments)
        federation.run(rounds, on_round=look)
        return seen

    return of


@pytest.mark.parametrize("seed", [0, 1])
def test_one_shot_clustering_finds_the_groups_within_three_rounds(followed, seed):
    seen = followed("ocfl-hdbscan", split(CLASSES, 5, seed), 4, seed)
    assert seen[0][:2] == (0.0, 1)
    assert seen[2][0] >= 0.9
    assert seen[2][1] == seen[3][1] == 3
    shot = next(round for round, row in enumerate(seen) if row[1] > 1)
    temperatures = [row[3] for row in seen]
    assert temperatures[shot] > temperatures[shot - 1]
    assert None not in temperatures
    assert seen[3][2] > seen[0][2]


@pytest.mark.parametrize("name", ["ocfl-affinity", "ocfl-kmeans", "ocfl-meanshift", "fedgroup"])
def test_other_clusterings_find_the_groups_too(followed, name):
    ari, clusters, accuracy, _ = followed(name, split(CLASSES, 5, 0), 3)[-1]
    assert ari >= 0.85
    assert clusters >= 3
    assert accuracy > 0.9


@pytest.mark.parametrize(
    ("name", "rounds", "least", "options"),
    [("bcl", 5, 0.85, {}), ("scl", 12, 0.5, {"scale": "relative"})],
)
def test_schedules_follow_the_number_of_rounds(followed, name, rounds, least, options):
    """Nothing is clustered before 40 % of the run; SCL then splits one cluster after another."""
    seen = followed(name, split(OVERLAPPING, 4, 0), rounds, options=options)
    waiting = round(0.4 * rounds)
    assert [row[1] for row in seen[:waiting]] == [1] * waiting
    assert seen[-1][1] > 1
    assert seen[-1][0] >= least


def test_late_clients_find_their_group(followed):
    clients = split(OVERLAPPING, 4, 0)
    seen = followed("ocfl-kmeans", clients, 14, client_fraction=0.6)
    assert seen[-1][0] == 1.0
    assert max(row[1] for row in seen) == 3


def test_a_resumed_run_keeps_late_clients(tmp_path):
    """Models that late clients are compared with survive a checkpoint."""
    clients = split(CLASSES, 3, 0)
    settings = dict(num_clusters=3, objective=Objective(local_steps=10))
    for name in ("ocfl-kmeans", "fedgroup"):
        method = built(name, **settings)
        federation = Federation(
            clients, models.mlp(64, 16, 10), method, device="cpu", client_fraction=0.5
        )
        half = federation.run(3)
        assert half.hypotheses.best.carried_models
        loaded = checkpoint.load(checkpoint.save(half.state, tmp_path / name))
        through, resumed = federation.run(7), federation.run(7, state=loaded)
        assert not through.hypotheses.best.carried_models
        for one, other in zip(through.state.history, resumed.state.history, strict=True):
            assert (one.associations[0].labels == other.associations[0].labels).all()
        first, second = through.hypotheses.best.clusters, resumed.hypotheses.best.clusters
        assert [p.key for p in first] == [p.key for p in second]
