"""Objectives, clusterability and step sizes (Ma 2023, chapter 3) against plain numpy."""

import numpy as np
import pytest
from torch import nn

from bcfl import ClientData, Federation, Model, Objective, methods

RATE, CLASSES, FEATURES = 0.3, 3, 4
NAMES = ("objective_c", "clusterability", "step_size_bound", "descent_margin", "objective_f")


def softmax():
    return Model(
        name="softmax",
        build=lambda: nn.Linear(FEATURES, CLASSES),
        input_shape=(FEATURES,),
        num_outputs=CLASSES,
    )


@pytest.fixture
def samples():
    random = np.random.default_rng(1)
    groups = {}
    for index, n in enumerate((5, 9, 14, 7)):
        inputs = random.normal(size=(n, FEATURES)).astype(np.float32)
        targets = (inputs[:, : CLASSES - 1].argmax(axis=1) + index % 2) % CLASSES
        groups[f"client {index}"] = (inputs, targets)
    return groups


@pytest.fixture
def federation(samples):
    def of(name, **arguments):
        options = arguments.pop("options", {})
        clients = [ClientData.from_arrays(c, part, None) for c, part in samples.items()]
        training = Objective(local_steps=1, batch_size=50, learning_rate=RATE, momentum=0.0)
        method = methods.build(name, objective=training, **options)
        return Federation(clients, softmax(), method, seed=3, **arguments)

    return of


def loss_and_gradient(vector, inputs, targets):
    """Summed cross-entropy, and the gradient of its mean, in the layout of a linear layer."""
    weight, bias = vector[: CLASSES * FEATURES].reshape(CLASSES, FEATURES), vector[-CLASSES:]
    logits = inputs @ weight.T + bias
    logits = logits - logits.max(axis=1, keepdims=True)
    logs = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    errors = (np.exp(logs) - np.eye(CLASSES)[targets]) / len(targets)
    gradient = np.concatenate([(errors.T @ inputs).ravel(), errors.sum(axis=0)])
    return -logs[np.arange(len(targets)), targets].sum(), gradient


def expected(before, labels, samples):
    """Everything of one round in which each client takes one step from its cluster's model."""
    sizes = {c: len(y) for c, (_, y) in samples.items()}
    total = sum(sizes.values())
    gradients = {c: loss_and_gradient(before[labels[c]], *samples[c])[1] for c in samples}
    c_value = f_value = slope = 0.0
    spread, apart = [], []
    for cluster in set(labels.values()):
        members = [c for c in samples if labels[c] == cluster]
        mass = sum(sizes[c] for c in members)
        mean = sum(sizes[c] / mass * gradients[c] for c in members)
        centre = before[cluster] - RATE * mean
        slope += mass / total * mean @ mean
        for c in members:
            local = before[cluster] - RATE * gradients[c]
            c_value += sizes[c] / total * np.sum((local - centre) ** 2)
            spread.append(np.linalg.norm(mean - gradients[c]) / np.linalg.norm(mean))
            apart.append(np.linalg.norm(local - centre))
            f_value += loss_and_gradient(centre, *samples[c])[0] / total
    steepest = max(gradient @ gradient for gradient in gradients.values())
    margin = (slope - max(spread) * steepest) / slope
    return c_value, max(spread), min(apart) / np.sqrt(steepest), margin, f_value


@pytest.mark.parametrize(("name", "options"), [("fedavg", {}), ("ifca", {"num_clusters": 2})])
def test_measures_of_a_round(federation, samples, name, options):
    one = federation(name, options=options, objectives=True)
    start = one.initial_state().hypotheses.best.clusters
    before = [cluster.mean(one.model).double().numpy() for cluster in start]
    run = one.run(1)
    labels = run.hypotheses.best.association.by_client
    assert set(labels.values()) == set(range(len(start)))
    facts = run.records[0].info.facts
    np.testing.assert_allclose(
        [facts[measure] for measure in NAMES], expected(before, labels, samples), rtol=1e-4
    )


def test_nothing_is_measured_unless_asked_for(federation):
    assert not set(NAMES) & set(federation("fedavg").run(1).records[0].info.facts)


def test_equal_clients_are_clusterable(samples):
    """B = 0, 𝒞 = 0 and no positive step size bound for copies of one client."""
    part = samples["client 2"]
    clients = [ClientData.from_arrays(name, part, None) for name in "abc"]
    training = Objective(local_steps=1, batch_size=50, learning_rate=RATE, momentum=0.0)
    method = methods.fedavg(objective=training)
    facts = Federation(clients, softmax(), method, objectives=True).run(1).records[0].info.facts
    assert facts["clusterability"] == pytest.approx(0, abs=1e-5)
    assert facts["objective_c"] == pytest.approx(0, abs=1e-9)
    assert facts["step_size_bound"] == pytest.approx(0, abs=1e-5)
    assert facts["descent_margin"] == pytest.approx(1, abs=1e-5)


def test_clients_with_more_steps_have_no_larger_gradients():
    """Copies of one sample have the same gradient, in one step of an epoch or in four."""
    inputs, targets = np.ones((1, FEATURES), dtype=np.float32), np.zeros(1, dtype=np.int64)
    clients = [
        ClientData.from_arrays(f"{n} samples", (inputs.repeat(n, axis=0), targets.repeat(n)), None)
        for n in (5, 20)
    ]
    training = Objective(local_epochs=1.0, batch_size=5, learning_rate=1e-4, momentum=0.0)
    one = Federation(clients, softmax(), methods.fedavg(objective=training), objectives=True)
    facts = one.run(1).records[0].info.facts
    assert facts["clusterability"] == pytest.approx(0, abs=1e-2)
    assert facts["descent_margin"] == pytest.approx(1, abs=1e-2)
