from dataclasses import replace

import numpy as np
import pytest
import torch

from bcfl import Association, Hypothesis, Objective, drive
from bcfl.architecture.decomposition import SHARED, decomposed, layers, restarted
from bcfl.architecture.layout import Part
from bcfl.policies import Continue, Given
from bcfl.policies.baselines.apd import APD
from bcfl.protocol.regularizers import Consolidation, Sparsity

NAMES = ("a", "b", "c")
TWO = APD(Objective(), 3.0)


@pytest.fixture
def model(linear):
    return decomposed(linear)


@pytest.fixture
def parent(model, newborn):
    clusters = tuple(newborn(model, seed) for seed in range(3))
    return Hypothesis(clusters=clusters, association=Association(NAMES, np.array([0, 1, -1]), 3))


@pytest.fixture
def associated(context, model):
    """Let a policy associate; a time step has two rounds."""

    def of(policy, hypothesis, round):
        here = replace(context(NAMES, round), step=round // 2, model=model)
        (chosen,) = drive(policy.associate(hypothesis, here))
        return chosen

    return of


def test_within_a_time_step_every_client_goes_on_alone(parent, associated):
    chosen = associated(TWO, parent, 1)
    assert chosen.origins == (Continue(0), Continue(1), Continue(2))
    assert chosen.contribution_weights.tolist() == np.eye(3).tolist()
    assert not chosen.carried_models
    assert not any(training.objective.regularizers for training in chosen.trainings)


def test_a_new_time_step_starts_masks_and_adaptive_parts_anew(model, parent, associated):
    chosen = associated(TWO, parent, 2)
    first, _, last = (origin.model for origin in chosen.origins)
    assert all(isinstance(origin, Given) for origin in chosen.origins)
    assert last is parent.clusters[2]
    (layer,) = layers(model)
    old, new = parent.clusters[0].mean(model), first.mean(model)
    assert first.blocks[0] is parent.clusters[0].blocks[0]
    assert torch.equal(
        new[layer.adaptive.start : layer.adaptive.stop],
        old[layer.shared.start : layer.shared.stop] / 3,
    )
    assert not torch.equal(
        new[layer.mask.start : layer.mask.stop], old[layer.mask.start : layer.mask.stop]
    )
    assert [t.start for t in chosen.trainings] == [o.model.key for o in chosen.origins]


def test_who_was_there_before_is_held(model, parent, associated):
    chosen = associated(TWO, parent, 2)
    names = {f"{w} of {c} at time step 0" for w in ("model", "squared masks") for c in "ab"}
    assert set(chosen.carried_models) == names
    held, _, free = chosen.trainings
    assert held.objective.regularizers == (Consolidation(3.0, Part(SHARED)),)
    assert held.references == (
        tuple(
            chosen.carried_models[f"{w} of a at time step 0"].key
            for w in ("model", "squared masks")
        ),
    )
    assert not free.objective.regularizers
    assert {m for t in chosen.trainings for m in t.models} == {m.key for m in chosen.models}
    assert chosen.state == {"step": 1}
    later = replace(parent, carried_models=chosen.carried_models, state=chosen.state)
    assert associated(TWO, later, 3).trainings[0].objective == held.objective
    assert associated(TWO, later, 3).origins[0] == Continue(0)


def test_parts_are_blocks(model, linear):
    assert [(block.name, block.scope) for block in model.blocks] == [
        ("shared", "global"),
        ("adaptive", "client"),
        ("own", "client"),
    ]
    sizes = {name: sum(s.stop - s.start for s in p) for name, (p, _) in model.block_slots.items()}
    assert sizes == {"shared": 6, "adaptive": 6, "own": 4}
    with pytest.raises(ValueError, match="model must have a single block to be decomposed"):
        decomposed(model)


def test_networks_with_convolutions_and_norms_are_decomposed(batch_norm):
    model = decomposed(batch_norm)
    (first, second) = layers(model)
    assert (first.mask.shape, second.mask.shape) == ((4, 1), (2, 1))
    assert len(model.block_slots["own"][1]) == 2
    assert model.module()(torch.zeros(5, 3)).shape == (5, 2)


def test_restarting_depends_on_the_seed_alone(model):
    mean, _ = model.initial(0)
    assert torch.equal(restarted(model, mean, 3), restarted(model, mean, 3))
    assert not torch.equal(restarted(model, mean, 3), restarted(model, mean, 4))


def test_bad_numbers():
    with pytest.raises(ValueError, match="weight must be positive and finite, got 0"):
        APD(Objective(), 0.0)
    with pytest.raises(ValueError, match="weight must be positive and finite, got -1"):
        Sparsity(-1.0)
