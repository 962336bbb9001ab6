from dataclasses import replace

import numpy as np
import pytest
import torch

from bcfl import Association, Hypothesis, Objective, drive
from bcfl.policies.updates.bipartition import RecursiveBipartition, bipartition
from bcfl.protocol.answers import Trained

OBJECTIVE = Objective(curvature="uniform")
NAMES = tuple(f"client {number}" for number in range(1, 10))
POLICY = RecursiveBipartition(objective=OBJECTIVE, mean_norm=0.4, client_norm=1.6, first_round=0)


@pytest.fixture
def parent(linear, newborn):
    """Clients 1 to 4 in cluster 0, clients 5 to 9 in cluster 1."""
    clusters = (newborn(linear, 0), newborn(linear, 1))
    return Hypothesis(
        clusters=clusters, association=Association(NAMES, np.array([0] * 4 + [1] * 5), 2)
    )


@pytest.fixture
def after(linear, context):
    """What a policy makes of clients whose updates begin with given numbers."""

    def of(policy, hypothesis, updates, round=0, participants=NAMES):
        starts = {p.key: p.mean(linear) for p in hypothesis.clusters}

        def answer(request):
            mean = starts[request.start].clone()
            mean[:2] += torch.tensor(updates[request.client])
            return Trained(
                mean=mean, buffers=torch.empty(0), curvature=torch.ones(()), num_samples=2
            )

        steps = policy.associate(hypothesis, replace(context(participants, round), num_rounds=10))
        (chosen,), (_,) = drive(steps, answer, return_exchanges=True)
        return chosen

    return of


def updates_of(*pairs):
    return dict(zip(NAMES, pairs, strict=True))


SECOND_SPLITS = updates_of(
    *[(2.0, 0.0)] * 4, (3.0, 0.0), (-2.0, 0.0), (3.0, 0.1), (-2.0, 0.1), (-2.0, -0.1)
)
BOTH_SPLIT = {
    **SECOND_SPLITS,
    **dict(zip(NAMES[:4], [(0.0, 2.0), (0.0, -2.0), (0.1, 2.0), (0.1, -2.0)], strict=True)),
}


def test_a_second_split_names_clients_and_not_positions(parent, after):
    """Positions 0 and 2 of clients 5 to 9 are clients 5 and 7."""
    chosen = after(POLICY, parent, SECOND_SPLITS)
    groups = [set(np.flatnonzero(chosen.association.labels == i) + 1) for i in range(3)]
    assert groups == [{1, 2, 3, 4}, {6, 8, 9}, {5, 7}]
    assert sorted(t.client for t in chosen.trainings) == list(NAMES)
    assert chosen.contribution_weights.sum(axis=1).tolist() == [1.0] * 9
    assert [origin.posterior(parent) for origin in chosen.origins] == [
        parent.clusters[i] for i in (0, 1, 1)
    ]


def test_several_clusters_may_split_in_a_round_each_once(parent, after):
    chosen = after(POLICY, parent, BOTH_SPLIT)
    groups = [set(np.flatnonzero(chosen.association.labels == i) + 1) for i in range(4)]
    assert groups == [{1, 3}, {6, 8, 9}, {2, 4}, {5, 7}]
    assert chosen.association.sizes.sum() == 9


@pytest.mark.parametrize(
    ("changed", "splits"),
    [
        ({}, True),
        ({"mean_norm": 0.0}, False),
        ({"client_norm": 3.1}, False),
        ({"min_members": 6}, False),
        ({"min_members": 5}, True),
        ({"first_round": 4}, False),
        ({"first_round": 3}, True),
        ({"first_round": 0.4}, False),
        ({"first_round": 0.3}, True),
        ({"linkage": "complete"}, True),
    ],
)
def test_a_cluster_splits_if_its_mean_stands_still_and_its_clients_do_not(
    parent, after, changed, splits
):
    chosen = after(replace(POLICY, **changed), parent, SECOND_SPLITS, round=3)
    assert chosen.association.num_clusters == 2 + splits


def test_a_cluster_of_two_stays(linear, newborn, after):
    pair = Hypothesis(
        clusters=(newborn(linear, 0),),
        association=Association(NAMES, np.array([0, 0] + [-1] * 7), 1),
    )
    updates = dict(zip(NAMES, [(2.0, 0.0), (-2.0, 0.0)], strict=False))
    chosen = after(POLICY, pair, updates, participants=NAMES[:2])
    assert chosen.association.num_clusters == 1


def test_relative_lengths_are_shares_of_the_longest_update(parent, after):
    """Scaled updates split alike; the longest update of the first round is remembered."""
    policy = replace(POLICY, mean_norm=0.1, client_norm=0.5, scale="relative")
    for scale in (1e-3, 1.0, 1e3):
        scaled = {c: (x * scale, y * scale) for c, (x, y) in SECOND_SPLITS.items()}
        chosen = after(policy, parent, scaled)
        assert chosen.association.num_clusters == 3
        assert chosen.state["longest"] == pytest.approx(np.hypot(3, 0.1) * scale, rel=1e-3)
    later = replace(parent, state={"longest": 7.0})
    assert after(policy, later, SECOND_SPLITS).association.num_clusters == 2
    assert after(policy, later, SECOND_SPLITS).state == {"longest": 7.0}


def test_absent_members_of_a_divided_cluster_wait(parent, after):
    present = tuple(name for name in NAMES if name != NAMES[5])
    chosen = after(replace(POLICY, mean_norm=0.6), parent, SECOND_SPLITS, participants=present)
    assert chosen.state["waiting"] == {NAMES[5]: 0}
    assert chosen.state["divisions"] == [[1, [1, 2]]]
    assert chosen.carried_models == {"0 divided": parent.clusters[1]}


def test_a_zero_update_belongs_to_one_half():
    vectors = np.array([[2.0, 0], [2, 0.1], [0, 0], [-2, 0], [-2, 0.1]])
    for linkage in ("single", "complete"):
        halves = bipartition(vectors @ vectors.T, linkage)
        assert halves[0] == halves[1] != halves[3] == halves[4]
        assert set(halves) == {0, 1}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"mean_norm": -1.0}, "mean_norm must be at least 0, got -1.0"),
        ({"client_norm": float("nan")}, "client_norm must be at least 0, got nan"),
        (
            {"first_round": 1.5},
            "first_round must be a whole number from 0 or a share below 1, got 1.5",
        ),
        ({"min_members": 1}, "min_members must be a whole number of at least 2, got 1"),
        ({"linkage": "average"}, "linkage must be 'single' or 'complete', got 'average'"),
        ({"scale": "log"}, "scale must be 'absolute' or 'relative', got 'log'"),
    ],
)
def test_a_policy_names_what_is_wrong(changed, message):
    with pytest.raises(ValueError, match=message):
        replace(POLICY, **changed)
