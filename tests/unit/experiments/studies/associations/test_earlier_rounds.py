"""The study of what earlier rounds leave in a cavity, at a reduced size."""

from dataclasses import replace

import pytest
import torch

from experiments.studies.associations import earlier_rounds as study


def test_rows_of_one_seed(monkeypatch, capsys):
    monkeypatch.setattr(study, "CLIENTS", 8)
    study.main(["8", "1", "2", "2"])
    rows = [line.split("|")[1:-1] for line in capsys.readouterr().out.splitlines()[2:]]
    assert [(row[2].strip(), int(row[3])) for row in rows] == [
        ("cluster", 8),
        ("cavity", 8),
        ("cavity", 2),
        ("trained anew", 2),
    ]
    assert all(float(cell) > 0 for row in rows for cell in row[4:])


def test_after_one_round_the_cavity_has_seen_nothing_of_the_client():
    """In the first round there are no earlier ones: training samples are better by the cluster."""
    clients = study.divided(8, 0)
    run = study.trained(clients, 0, 1)
    losses = [study.with_the_client(run, client) for client in clients]
    cluster, cavity = (sum(pair[k][0] for pair in losses) for k in (0, 1))
    assert cluster < cavity


def test_losses_are_means_per_sample():
    clients = study.divided(8, 0)
    run = study.trained(clients, 0, 1)
    best, client = run.hypotheses.best, clients[0]
    cluster = best.clusters[best.association.label(client.client)]
    views = dict(client.views)
    single = [
        study.log_loss(run, cluster, _with(client, views["test"].take(torch.tensor([k]))), "test")
        for k in range(study.TESTED)
    ]
    whole = study.log_loss(run, cluster, client, "test")
    assert whole == pytest.approx(sum(single) / study.TESTED, rel=1e-5)


def _with(client, view):
    return replace(client, views={**client.views, "test": view})
