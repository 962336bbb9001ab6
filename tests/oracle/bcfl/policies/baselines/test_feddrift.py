"""FedDrift: distances, merges and drift against numbers worked out by hand, and whole rounds."""

import numpy as np
import pytest
import torch

import bcfl
from bcfl.policies.baselines.feddrift import FedDrift, drifting
from bcfl.policies.baselines.linkage import cluster_distances, complete_linkage
from bcfl.protocol.objective import Objective
from experiments.models import linear

LOSSES = np.array(
    [
        [0.20, 0.28, 0.95, 0.90],
        [0.27, 0.22, 1.00, 0.70],
        [1.10, 1.20, 0.30, 0.42],
        [0.80, 0.75, 0.36, 0.31],
    ]
)
DISTANCES = {(0, 1): 0.08, (0, 2): 0.80, (0, 3): 0.70, (1, 2): 0.90, (1, 3): 0.48, (2, 3): 0.12}
SIZES = (30, 20, 25, 40, 20, 35)


def test_distances_are_increases_of_loss_on_other_clusters():
    """The transposed table would give 0.90, 0.98 and 0.53 for pairs (0, 2), (1, 2) and (1, 3)."""
    distances = cluster_distances(LOSSES)
    for pair, expected in DISTANCES.items():
        assert distances[pair] == distances[pair[::-1]] == pytest.approx(expected, abs=1e-12)
    assert not np.diag(distances).any()


@pytest.mark.parametrize(
    ("delta", "groups"),
    [
        (0.05, [0, 1, 2, 3]),
        (0.10, [0, 0, 1, 2]),
        (0.25, [0, 0, 1, 1]),
        (0.89, [0, 0, 1, 1]),
        (0.95, [0, 0, 0, 0]),
    ],
)
def test_complete_linkage_merges_while_the_closest_pair_is_below_the_bound(delta, groups):
    assert complete_linkage(cluster_distances(LOSSES), delta).tolist() == groups


def test_a_client_drifts_if_its_lowest_loss_rises_by_more_than_the_bound():
    before = {"0": 0.25, "1": 0.40, "2": 0.33}
    table = np.array([[0.30, 0.90, 0.35], [0.55, 0.62, 0.70]])
    now = dict(zip("012", table.min(axis=0), strict=True))
    assert drifting(before, now, 0.2) == ["1"]


def merged(losses, sizes, delta):
    """A plain statement of the merging: groups with the sizes of their parts."""
    count = len(losses)
    table = {
        frozenset((i, j)): max(losses[i, j] - losses[i, i], losses[j, i] - losses[j, j], 0)
        for i in range(count)
        for j in range(i)
    }
    groups = [(i,) for i in range(count)]

    def far(one, other):
        return max(table[frozenset((i, j))] for i in one for j in other)

    while len(groups) > 1:
        pairs = [(far(a, b), a, b) for k, a in enumerate(groups) for b in groups[:k]]
        distance, a, b = min(pairs, key=lambda pair: pair[0])
        if not distance < delta:
            break
        groups = [g for g in groups if g not in (a, b)] + [tuple(sorted(a + b))]
    return sorted(groups)


def test_rounds_against_numpy(turned_clients, states_of, softmax):
    """One model per client, trained for a step of three rounds, then merged where alike."""
    objective = Objective(local_steps=8, batch_size=1000, learning_rate=0.2, momentum=0.0)
    clients, delta = turned_clients(SIZES), 0.6
    one = bcfl.Federation(
        clients,
        linear(4, 3),
        bcfl.Method(policy=FedDrift(objective=objective, delta=delta, every=3)),
        seed=5,
        device="cpu",
        dtype=torch.float64,
    )
    data = softmax.arrays(clients)
    names = sorted(data)
    start = softmax.weights(one.initial_state().hypotheses.best.clusters[0].mean(one.model), 3)
    whole = {client: [np.arange(len(y))] * 8 for client, (_, y) in data.items()}
    models, members = [start] * len(names), [[name] for name in names]
    for round, (state, _) in enumerate(states_of(one, 7)):
        if round in (3, 6):
            models, members = next_clusters(softmax, models, data, delta)
        models = [
            sum(len(data[c][1]) * softmax.trained(model, data[c], whole[c], 0.2) for c in inside)
            / sum(len(data[c][1]) for c in inside)
            for model, inside in zip(models, members, strict=True)
        ]
        best = state.hypotheses.best
        assert len(best.clusters) == len(models)
        for number, (ours, theirs) in enumerate(zip(best.clusters, models, strict=True)):
            assert {c for c in names if best.association.label(c) == number} == set(members[number])
            np.testing.assert_allclose(
                softmax.weights(ours.mean(one.model), 3), theirs, rtol=0, atol=1e-10
            )
    assert sorted(members) == [["c0", "c3"], ["c1", "c4"], ["c2", "c5"]]


def next_clusters(softmax, models, data, delta):
    """Associate by lowest loss, then merge; clusters in the order of their first part."""
    losses = {c: [softmax.mean_loss(m, *data[c]) for m in models] for c in data}
    inside = [
        [c for c in sorted(data) if int(np.argmin(losses[c])) == k] for k in range(len(models))
    ]
    used = [k for k, members in enumerate(inside) if members]
    sizes = [sum(len(data[c][1]) for c in inside[k]) for k in used]
    table = np.array(
        [
            [
                sum(losses[c][i] * len(data[c][1]) for c in inside[j]) / size
                for j, size in zip(used, sizes, strict=True)
            ]
            for i in used
        ]
    )
    groups = merged(table, sizes, delta)
    new = [
        sum(sizes[k] * models[used[k]] for k in group) / sum(sizes[k] for k in group)
        for group in groups
    ]
    return new, [[c for k in group for c in inside[used[k]]] for group in groups]
