"""The tracker with proposals finds groups where the greedy one stays in a wrong basin.

Handwritten digits, 40 clients in four true groups, no warm-up. The truth is the oracle.
"""

from dataclasses import replace

import pytest
from sklearn.metrics import adjusted_rand_score

from bcfl import Federation, Objective
from bcfl.methods import build
from experiments.datasets import load
from experiments.models import build_for
from experiments.partitions import iid, rotated, two_stage_dirichlet
from tests.recipes import built

ROUNDS = 15


def digits(kind, seed):
    samples = load("optdigits")
    if kind == "rotated":
        return samples, rotated(samples, 4, 40, seed)
    if kind == "alike":
        return samples, iid(samples, 40, seed)
    return samples, two_stage_dirichlet(samples, 4, 40, alpha=(0.1, 10), seed=seed)


def run_of(name, kind, seed, num_clusters=4, first=8):
    samples, partition = digits(kind, seed)
    model = build_for(samples, "mlp", {"hidden": [32]})
    settings = dict(
        num_clusters=num_clusters, objective=Objective(local_steps=10), first_clusters=first
    )
    federation = Federation(
        partition.clients, model, built(name, **settings), seed=seed, device="cpu", evaluate=False
    )
    return federation.run(ROUNDS)


def agreement(run):
    """Adjusted Rand index between the true groups and the clusters of the best hypothesis."""
    truth = [run.groups[client] for client in run.clients]
    return adjusted_rand_score(truth, run.hypotheses.best.association.labels)


def trainings(run):
    return sum(record.ledger.trainings_run for record in run.records)


@pytest.mark.parametrize(
    ("kind", "seed"),
    [
        ("rotated", 3),
        ("label skew", 0),
        pytest.param("rotated", 8, marks=pytest.mark.slow),
        pytest.param("label skew", 3, marks=pytest.mark.slow),
    ],
)
def test_groups_are_found_where_greed_is_stuck(kind, seed):
    greedy, tracked = (run_of(name, kind, seed) for name in ("bcfl-g", "bcfl-mht-8"))
    assert agreement(greedy) < 0.9
    assert agreement(tracked) == 1.0
    assert trainings(tracked) <= 1.5 * trainings(greedy)
    assert len(tracked.hypotheses) <= 8


def test_without_proposals_it_is_stuck_too():
    """What the piece is for: the same tracker without it ends where greed does."""
    samples, partition = digits("label skew", 0)
    model = build_for(samples, "mlp", {"hidden": [32]})
    method = build("bcfl-mht-8", num_clusters=4, objective=Objective(local_steps=10, batch_size=32))
    method = replace(method, tracker=replace(method.tracker, proposals=()))
    run = Federation(partition.clients, model, method, seed=0, device="cpu", evaluate=False).run(
        ROUNDS
    )
    assert agreement(run) < 0.9


def test_clusters_that_are_too_many_stay_empty():
    """Training samples like a fifth cluster, but no group's local models fall into two."""
    run = run_of("bcfl-mht-8", "label skew", 1, 6)
    assert agreement(run) == 1.0
    assert sorted(run.hypotheses.best.association.sizes) == [0, 0, 10, 10, 10, 10]


def test_clients_that_are_all_alike_stay_in_one_cluster():
    """More clusters would fit the training samples better, but not the held-out ones."""
    run = run_of("bcfl-mht-8", "alike", 0, "auto", first=1)
    assert any(snapshot.proposals for snapshot in run.state.history)
    for snapshot in run.state.history:
        assert [a.num_clusters for a in snapshot.associations] == [1] * len(snapshot.associations)


def test_of_eight_clusters_of_clients_that_are_all_alike_one_is_left_with_clients():
    run = run_of("bcfl-mht-8", "alike", 0, "auto")
    assert run.state.history[0].associations[0].num_clusters == 8
    assert (run.hypotheses.best.association.sizes > 0).sum() == 1


def test_deaths_find_the_number_of_groups():
    run = run_of("bcfl-mht-8", "rotated", 1, "auto")
    assert run.state.history[0].associations[0].num_clusters == 8
    assert run.hypotheses.best.association.num_clusters == 4
    assert agreement(run) == 1.0


def test_births_find_the_number_of_groups():
    run = run_of("bcfl-mht-8", "rotated", 1, "auto", first=1)
    assert run.state.history[0].associations[0].num_clusters == 1
    assert run.hypotheses.best.association.num_clusters == 4
    assert agreement(run) == 1.0
