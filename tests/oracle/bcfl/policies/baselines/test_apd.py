"""FedProx + APD: restored weights, sparsity and retention against numbers worked out by hand."""

import numpy as np
import pytest
import torch
from torch import nn

import bcfl
from bcfl.architecture import decomposition
from bcfl.architecture.decomposition import SHARED, decomposed, layers, refitted
from bcfl.architecture.layout import Part
from bcfl.executors.batches import training_batches
from bcfl.policies.baselines.apd import APD
from bcfl.protocol.adaptive_terms import Retention, Sparsity
from bcfl.protocol.objective import Objective
from bcfl.protocol.regularizers import Consolidation, Proximal
from experiments.models import linear

SHARED_WEIGHT = ((1.0, -2.0), (0.5, 1.5))
FIRST = ((0.2, -1.0), ((0.05, -0.0003), (0.0, 0.2)))
SECOND = ((1.0, 0.0), ((-0.1, 0.0002), (0.3, 0.0)))
RESTORED = {
    FIRST: ((0.599834, -0.538183), (0.274917, 0.603412)),
    SECOND: ((0.631059, -0.9998), (0.665529, 0.75)),
}
SIZES = (20, 33, 12)


def flat(model, shared, masks, adaptive):
    """Parameters of the one layer; the masks scale the inputs of the transposed example."""
    parameters = torch.zeros(model.layout.num_parameters, dtype=torch.float64)
    (layer,) = layers(model)
    parts = ((layer.shared, shared), (layer.mask, masks), (layer.adaptive, adaptive))
    for slot, values in parts:
        parameters[slot.start : slot.stop] = torch.tensor(values, dtype=torch.float64).reshape(-1)
    return parameters


def transposed(rows):
    return tuple(zip(*rows, strict=True))


@pytest.mark.parametrize("step", [FIRST, SECOND])
def test_restored_weights(step):
    """The example has one mask for each column; here outputs are rows."""
    model = decomposed(linear(2, 2, bias=False))
    masks, adaptive = step
    parameters = flat(model, transposed(SHARED_WEIGHT), masks, transposed(adaptive))
    module = model.module().double()
    nn.utils.vector_to_parameters(parameters, module.parameters())
    weight = module(torch.eye(2, dtype=torch.float64)).detach()
    np.testing.assert_allclose(weight, RESTORED[step], atol=1e-6)


def test_retention_of_an_earlier_step():
    """After shared += (.1 0 / 0 -.2), the earlier weights move by mask x change."""
    model = decomposed(linear(2, 2, bias=False))
    masks, adaptive = FIRST
    before = flat(model, transposed(SHARED_WEIGHT), masks, transposed(adaptive))
    now = flat(model, ((1.1, 0.5), (-2.0, 1.3)), SECOND[0], transposed(SECOND[1]))
    chosen = model.chosen(Part(SHARED))
    live = now[chosen].requires_grad_()
    term = Consolidation(100.0, Part(SHARED))
    squares = decomposition.masks(model, before).square()
    assert not squares[~chosen].any()
    loss = term.weight * term.penalty(live, live, (before[chosen], squares[chosen]))
    loss.backward()
    sigmoid = 1 / (1 + np.exp([-0.2, 1.0]))
    moved = np.array([[0.1, 0.0], [0.0, -0.2]]) * sigmoid[:, None]
    assert loss.item() == pytest.approx(50 * (moved**2).sum(), rel=1e-12)
    np.testing.assert_allclose(live.grad.reshape(2, 2), 100 * moved * sigmoid[:, None], atol=1e-12)


def test_sparsity_sums_absolute_values():
    term = Sparsity(4e-4)
    values = torch.tensor([0.05, -0.0003, 0.0, 0.2, -0.1, 0.0002, 0.3, 0.0])
    loss = term.weight * term.penalty(values, values, ())
    assert loss.item() == pytest.approx(4e-4 * 0.6505, rel=1e-5)


def soft(values, threshold):
    return np.sign(values) * np.maximum(np.abs(values) - threshold, 0)


def split(model, vector):
    """Shared weight, mask, adaptive weight and offsets of the one layer."""
    (layer,) = layers(model)
    names = {slot.name: slot for slot in model.layout.parameters}
    slots = (layer.shared, layer.mask, layer.adaptive, names[f"{layer.prefix}bias"])
    return [vector.numpy()[s.start : s.stop].reshape(s.shape).copy() for s in slots]


def test_rounds_against_numpy(turned_clients, states_of, softmax):
    """Masks, adaptive weights and offsets stay with their clients; the rest is averaged."""
    pull, sparse, rate = 0.3, 0.01, 0.1
    regularizers = (Proximal(pull, Part(SHARED)), Sparsity(sparse))
    objective = Objective(
        local_steps=4, batch_size=10, learning_rate=rate, momentum=0.0, regularizers=regularizers
    )
    clients = turned_clients(SIZES)
    one = bcfl.Federation(
        clients,
        linear(4, 3),
        bcfl.Method(
            policy=APD(objective),
            common_start=True,
            architecture=decomposed,
        ),
        seed=5,
        device="cpu",
        dtype=torch.float64,
    )
    model = one.model
    start = split(model, one.initial_state().hypotheses.best.clusters[0].mean(model))
    data, shared = softmax.arrays(clients), start[0]
    own = {client: start[1:] for client in data}
    for round, (state, _) in enumerate(states_of(one, 3)):
        updates = []
        for client, (inputs, labels) in data.items():
            weight, (mask, adaptive, offset) = shared, own[client]
            for batch in training_batches(len(labels), 10, 4, 5, round, client).numpy():
                gate = 1 / (1 + np.exp(-mask))
                whole = np.column_stack([weight * gate + adaptive, offset])
                excess = softmax.probabilities(whole, inputs[batch])
                excess[np.arange(len(batch)), labels[batch]] -= 1
                slope = excess.T @ inputs[batch] / len(batch)
                by_weight = slope[:, :-1]
                steps = (
                    by_weight * gate + pull * (weight - shared),
                    (by_weight * weight).sum(axis=1, keepdims=True) * gate * (1 - gate),
                    by_weight,
                    slope[:, -1],
                )
                weight, mask, adaptive, offset = (
                    value - rate * step
                    for value, step in zip((weight, mask, adaptive, offset), steps, strict=True)
                )
                adaptive = soft(adaptive, rate * sparse)
            own[client] = [mask, adaptive, offset]
            updates.append((len(labels), weight))
        shared = sum(n * w for n, w in updates) / sum(n for n, _ in updates)
        best = state.hypotheses.best
        for client, parts in own.items():
            ours = split(model, best.clusters[best.association.label(client)].mean(model))
            for mine, theirs in zip(ours, (shared, *parts), strict=True):
                np.testing.assert_allclose(mine, theirs, rtol=0, atol=1e-11)


def test_retention_is_the_least_over_the_earlier_adaptive_part():
    """lambda_2 / 2 (r - t)^2 + lambda_1 |t| on a grid of t, for residuals on both sides."""
    retained, sparse = 2.0, 0.3
    term = Retention(retained, sparse)
    grid = np.linspace(-2, 2, 400_001)
    shared, mask, kept = (
        np.array([0.5, -1.0, 0.2]),
        np.array([0.4, 0.9, 0.5]),
        np.array([0.25, 0.3, -0.9]),
    )
    rest = kept - shared * mask
    least = [(retained / 2 * (r - grid) ** 2 + sparse * np.abs(grid)).min() for r in rest]
    live = torch.tensor(shared, requires_grad=True)
    value = term.weight * term.penalty(live, live, (torch.tensor(kept), torch.tensor(mask)))
    value.backward()
    assert value.item() == pytest.approx(sum(least), abs=1e-9)
    best = soft(rest, sparse / retained)
    slope = -retained * (rest - best) * mask
    np.testing.assert_allclose(live.grad.numpy(), slope, atol=1e-12)


def test_refitting_ends_at_the_soft_threshold_after_a_step_of_the_mask():
    model = decomposed(linear(2, 2, bias=False))
    masks_before, adaptive = FIRST
    threshold, step_size = 0.05, 0.7
    kept = torch.zeros(model.layout.num_parameters, dtype=torch.float64)
    (layer,) = layers(model)
    weights = np.array([[0.9, -0.2], [0.1, 0.4]])
    kept[layer.shared.start : layer.shared.stop] = torch.tensor(weights).reshape(-1)
    before = flat(model, transposed(SHARED_WEIGHT), masks_before, transposed(adaptive))
    found = refitted(model, before, kept, threshold, step_size)
    shared, mask = np.array(SHARED_WEIGHT).T, np.array(masks_before)[:, None]

    def huber(mask):
        rest = weights - shared / (1 + np.exp(-mask))
        size = np.abs(rest)
        inside = size <= threshold
        return np.where(inside, rest**2 / 2, threshold * (size - threshold / 2)).sum(1)

    width = 1e-6
    slope = (huber(mask + width) - huber(mask - width)) / (2 * width)
    new = mask - step_size * slope[:, None]
    rest = weights - shared / (1 + np.exp(-new))
    np.testing.assert_allclose(found[layer.mask.start : layer.mask.stop], new[:, 0], atol=1e-8)
    np.testing.assert_allclose(
        found[layer.adaptive.start : layer.adaptive.stop].reshape(2, 2),
        soft(rest, threshold),
        atol=1e-8,
    )
