"""The tracker with proposals under partial participation, beside the greedy one.

Handwritten digits, 40 clients in four true groups, a share of them in each round. The truth is the
oracle. A client that is absent counts with its last costs: without that, a proposal that gives
up an absent group may win.
"""

from dataclasses import replace

import pytest
from sklearn.metrics import adjusted_rand_score

from bcfl import Federation
from bcfl.methods import build
from experiments import datasets, models, partitions


def agreement(method, seed, share):
    digits = datasets.load("optdigits")
    clients = partitions.two_stage_dirichlet(digits, clients=40, seed=seed)
    model = models.mlp((1, 8, 8), 32, 10)
    run = Federation(
        clients, model, method, seed=seed, client_fraction=share, device="cpu", evaluate=False
    ).run(25)
    truth = [run.groups[client] for client in run.clients]
    return adjusted_rand_score(truth, run.hypotheses.best.association.labels)


def methods():
    options = dict(num_clusters=4)
    return build("bcfl-g", **options), build("bcfl-mht-8", **options)


@pytest.mark.parametrize(
    ("seed", "share"),
    [
        (5, 0.25),
        *(pytest.param(s, 0.25, marks=pytest.mark.slow) for s in (0, 2, 3, 8, 9)),
        *(pytest.param(s, 0.5, marks=pytest.mark.slow) for s in (0, 1, 4)),
    ],
)
def test_groups_are_kept_where_few_are_there(seed, share):
    greedy, tracked = (agreement(method, seed, share) for method in methods())
    assert tracked >= greedy
    assert tracked > 0.9


def test_without_a_memory_an_absent_group_is_lost():
    _, tracked = methods()
    forgetful = replace(tracked, tracker=replace(tracked.tracker, remembers=False))
    assert agreement(forgetful, 5, 0.25) < 0.9 < agreement(tracked, 5, 0.25)
