"""Numbers of the baselines of asymmetric clustering against plain restatements.

"Asymmetric clustering in federated continual learning", algorithms 3 and 6 and chapter 4; FedDrift
(Jothimurugesan et al. 2023), FedSoft (Ruan and Joe-Wong 2022), elastic weight consolidation
(Kirkpatrick et al. 2017), stable SGD (Mirzadeh et al. 2020).
"""

import numpy as np
import pytest
import torch

from bcfl import Objective
from bcfl.policies.baselines.feddrift import drifting
from bcfl.policies.baselines.fedsoft import importances
from bcfl.policies.baselines.linkage import cluster_distances, complete_linkage
from bcfl.policies.baselines.stable_sgd import StableSGD
from bcfl.policies.faacl.faacl import num_levels, paired
from bcfl.policies.faacl.mutual_merge import Clustering, merge_mutual
from bcfl.policies.faacl.support import Support
from bcfl.protocol.regularizers import Consolidation
from bcfl.protocol.statistics.best_counts import BestCounts

LOSSES = np.array(
    [
        [0.20, 0.28, 0.95, 0.90],
        [0.27, 0.22, 1.00, 0.70],
        [1.10, 1.20, 0.30, 0.42],
        [0.80, 0.75, 0.36, 0.31],
    ]
)


def test_mutual_supporters_merge_once():
    """0 and 1 merge; of their supporters only 2 supported both."""
    pairs = [(0, 1), (0, 2), (0, 3), (1, 0), (1, 2), (2, 0), (2, 1)]
    before = Clustering(
        (("a",), ("b",), ("c",), ("d",)),
        (0, 1, 2, 3),
        (0,) * 4,
        Support(dict.fromkeys(pairs, 0.01)),
    )
    after = merge_mutual(before, np.random.default_rng(0))
    assert after.members == (("a", "b"), ("c",), ("d",))
    assert set(after.support.p_values) == {(0, 1), (1, 0)}


@pytest.mark.parametrize("devices", [2, 3, 5, 7, 16, 20])
def test_partitions_are_joined_in_the_least_number_of_levels(devices):
    partitions, levels = tuple(range(devices)), 1
    while len(set(partitions)) > 1:
        partitions, levels = paired(partitions), levels + 1
    assert levels == num_levels(devices) == int(np.ceil(np.log2(devices))) + 1


def test_distances_of_clusters():
    right = np.zeros((4, 4))
    for i in range(4):
        for j in range(4):
            excesses = LOSSES[i, j] - LOSSES[i, i], LOSSES[j, i] - LOSSES[j, j]
            right[i, j] = max(*excesses, 0)
    np.testing.assert_allclose(cluster_distances(LOSSES), right, atol=1e-12)


@pytest.mark.parametrize("bound", [0.12, 0.25, 0.85, 0.95])
def test_merging_stops_at_the_bound(bound):
    """Greedy complete linkage by hand: the closest pair merges while strictly below the bound."""
    distances = cluster_distances(LOSSES)
    groups = [{index} for index in range(4)]
    while len(groups) > 1:
        apart, a, b = min(
            (max(distances[i, j] for i in one for j in other), a, b)
            for a, one in enumerate(groups)
            for b, other in enumerate(groups)
            if a < b
        )
        if not apart < bound:
            break
        groups[a] |= groups.pop(b)
    labels = complete_linkage(distances, bound)
    assert {frozenset(np.flatnonzero(labels == label)) for label in set(labels.tolist())} == {
        frozenset(group) for group in groups
    }


def test_clients_that_drift():
    before, now = {"a": 0.25, "b": 0.40, "c": 0.33}, {"a": 0.30, "b": 0.62, "c": 0.35}
    assert drifting(before, now, 0.2) == [c for c in before if now[c] - before[c] > 0.2] == ["b"]


def test_importance_is_the_share_of_samples_that_a_cluster_fits_best():
    losses = np.random.default_rng(0).exponential(size=(3, 40))
    losses[2] += 10
    shares = np.bincount(losses.argmin(axis=0), minlength=3) / 40
    right = np.where(shares == 0, 1e-4, shares)
    np.testing.assert_allclose(importances(BestCounts.of(losses), 1e-4), right, rtol=1e-12)


def test_consolidation_is_half_the_squared_distance_weighted_by_fisher_information():
    live, anchor, fisher = np.random.default_rng(0).random((3, 4))
    right = 0.5 * (fisher * (live - anchor) ** 2).sum()
    tensors = [torch.tensor(one) for one in (live, anchor, fisher)]
    measured = Consolidation(40.0).penalty(tensors[0], tensors[0], tensors[1:])
    assert float(measured) == pytest.approx(right, rel=1e-12)


@pytest.mark.parametrize(("decay", "step"), [(0.4, 0), (0.4, 1), (0.8, 0), (0.8, 9), (0.4, 30)])
def test_rate_falls_with_the_time_step(decay, step):
    right = max(0.1 * decay ** (step + 1), 5e-5)
    assert StableSGD(Objective(learning_rate=0.1), decay).rate(step) == pytest.approx(right)
