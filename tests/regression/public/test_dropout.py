"""Rounds in which no client answers, clients without test samples, more clusters than clients.

Reported to neighbouring projects: no example at all gives a model of NaN, or a division by zero.
"""

import numpy as np
import pytest
import torch

from bcfl import ClientData
from bcfl.analysis.metrics import summarise

NAMES = [
    *("fedavg", "ifca", "wecfl", "ocfl-hdbscan", "scl", "bcl", "fedgroup", "faacl", "fedsoft"),
    *("feddrift", "ewc", "apd", "fedweit", "bcfl-g", "bcfl-c-2", "bcfl-mht-4", "bcfl-asym"),
    *("ifca-cam", "ifca-finetune", "bcfl-g-w", "local"),
]
UNTRAINED = pytest.mark.filterwarnings("ignore::bcfl.rounds.UntrainedWarning")


@UNTRAINED
@pytest.mark.parametrize("name", NAMES)
def test_rounds_without_an_answer_change_no_model(clients, mlp, federation, parameters, name):
    prepared = federation(clients(), mlp(hidden=3), name, drop_out=1.0)
    run = prepared.run(rounds=2)
    start = prepared.initial_state()
    before = {p.mean(run.model).double() for h in start.hypotheses for p in h.clusters}
    known = torch.stack(sorted(before, key=lambda mean: mean.tolist()))
    for mean in parameters(run).view(-1, run.model.layout.num_parameters):
        assert bool((known == mean).all(dim=1).any())
    predicted = run.predict("c0", np.ones((2, 4), np.float32)).mean
    np.testing.assert_allclose(predicted.sum(axis=1), 1)


@UNTRAINED
@pytest.mark.parametrize("name", NAMES)
def test_few_answers_are_enough(clients, mlp, federation, parameters, name):
    options = {"client_fraction": 1 / 6, "drop_out": 0.5}
    run = federation(clients(), mlp(hidden=3), name, **options).run(rounds=3)
    assert bool(torch.isfinite(parameters(run)).all())
    probabilities = run.association_probabilities()
    seen = probabilities.any(axis=1)
    np.testing.assert_allclose(probabilities[seen].sum(axis=1), 1)


@pytest.mark.parametrize("tested", [(), (0,)], ids=["none", "one"])
@pytest.mark.parametrize("name", ["ifca", "bcfl-mht-4", "ifca-finetune", "local"])
def test_clients_without_test_samples_are_left_out_of_scores(arrays, mlp, federation, name, tested):
    clients = [
        ClientData.from_arrays(
            f"c{index}", (x[:30], y[:30]), (x[30:], y[30:]) if index in tested else None, group
        )
        for index, (x, y, group) in enumerate(arrays())
    ]
    found = federation(clients, mlp(), name).run(rounds=2).records[-1].evaluations
    assert set(found) == {f"c{index}" for index in tested}
    assert np.isnan(summarise(found)["accuracy"]) == (not tested)


def test_an_empty_test_view_is_none(arrays, mlp, federation):
    empty = np.zeros((0, 4), np.float32), np.zeros(0, np.int64)
    clients = [
        ClientData.from_arrays(f"c{index}", (x, y), empty, group)
        for index, (x, y, group) in enumerate(arrays())
    ]
    found = federation(clients, mlp(), "ifca").run(rounds=2).records[-1].evaluations
    assert sum(sums.num_samples for sums in found.values()) == 0
    assert np.isnan(summarise(found)["accuracy"])


@pytest.mark.parametrize("name", ["ifca", "wecfl", "bcfl-g", "bcfl-mht-4", "fedgroup"])
def test_more_clusters_than_clients_are_refused(clients, mlp, federation, name):
    with pytest.raises(ValueError, match=r"num_clusters|clients"):
        federation(clients(), mlp(), name, num_clusters=9)


@pytest.mark.parametrize("name", ["ifca", "bcfl-g", "bcfl-mht-4"])
def test_sizes_that_the_clients_cannot_fill_are_refused(clients, mlp, federation, name):
    with pytest.raises(ValueError, match="cluster_size"):
        federation(clients(), mlp(), name, cluster_size=(4, None))


@pytest.mark.parametrize("name", ["ifca", "bcfl-g", "bcfl-mht-4"])
def test_sizes_bind_all_clients_that_were_seen(clients, mlp, federation, name):
    run = federation(clients(), mlp(), name, cluster_size=(2, 4)).run(rounds=2)
    assert all(
        2 <= size <= 4 for hypothesis in run.hypotheses for size in hypothesis.association.sizes
    )
