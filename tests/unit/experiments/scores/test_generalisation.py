"""Predictions for samples that no client holds, against a plain forward pass."""

import numpy as np
import pytest
import torch
from sklearn.metrics import f1_score

from bcfl import Federation
from bcfl.analysis import metrics
from bcfl.executors import ExecutorConfig
from experiments import models, partitions
from experiments.datasets import Dataset
from experiments.scores.generalisation import HoldOut
from tests.recipes import built

SETTINGS = dict(num_clusters=2)


@pytest.fixture(scope="module")
def source():
    """Ten classes, each around a corner of its own; the last 100 samples are the source's tests."""
    random = np.random.default_rng(0)
    targets = np.concatenate([np.arange(600) % 10, np.arange(100) % 10])
    inputs = (np.eye(12)[targets] + 0.4 * random.normal(size=(700, 12))).astype(np.float32)
    return Dataset(
        name="corners", inputs=inputs, targets=targets, num_classes=10, num_native_test=100
    )


def run_of(source, part, name, **options):
    model, method = models.mlp(12, 10), built(name, **SETTINGS)
    federation = Federation(part, model, method, seed=1, device="cpu", **options)
    return federation, federation.run(2)


@pytest.mark.parametrize("name", ["wecfl", "bcfl-mh-3", "fedavg-plus", "fedsoft"])
def test_every_client_is_served_alike_there(source, name):
    part = partitions.ocfl(source, clients=6, seed=0, min_samples=4)
    federation, run = run_of(source, part, name)
    sums = HoldOut.of(source, part, federation).predicted(run.hypotheses)
    assert sorted(sums) == sorted(run.clients)
    inputs, targets = source.inputs[part.hold_out], source.targets[part.hold_out]
    scores = []
    for client in run.clients:
        if name == "fedavg-plus":
            logits = sum(
                forward(run.model, posterior, inputs) for posterior in run.hypotheses.best.clusters
            )
            predicted = logits.argmax(1)
        else:
            predicted = run.predict(client, inputs, "plug-in", by="association").mean.argmax(1)
        scores.append(f1_score(targets, predicted, average="macro"))
        assert sums[client].num_samples == 100
    assert metrics.macro_f1_per_client(sums) == pytest.approx(np.mean(scores), abs=1e-6)


def test_they_are_computed_as_the_clients_are(source):
    part = partitions.ocfl(source, clients=6, seed=0, min_samples=4)
    federation, run = run_of(source, part, "wecfl")
    mixed, _ = run_of(source, part, "wecfl", executor=ExecutorConfig(arithmetic="bfloat16"))
    one, other = (
        HoldOut.of(source, part, which).predicted(run.hypotheses)[run.clients[0]].nll
        for which in (federation, mixed)
    )
    assert one != other
    assert one == pytest.approx(other, rel=0.02)


def forward(model, posterior, inputs):
    """Logits of one hidden network, written out from its parameters."""
    mean = posterior.mean(model)
    parts = [mean[slot.start : slot.stop] for slot in model.layout.parameters]
    weight, bias = parts
    return (torch.as_tensor(inputs) @ weight.reshape(10, 12).T + bias).numpy()


def test_without_held_out_samples_there_is_nothing_to_predict(source):
    part = partitions.iid(source, clients=4, seed=0)
    federation = Federation(part, models.mlp(12, 10), built("fedavg", **SETTINGS))
    assert HoldOut.of(source, part, federation) is None
