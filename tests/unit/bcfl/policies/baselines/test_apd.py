from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from bcfl import Association, Hypothesis, Objective, drive
from bcfl.architecture.decomposition import SHARED, composed, decomposed, layers, restarted
from bcfl.architecture.fedweit import transferring
from bcfl.architecture.layout import Part
from bcfl.policies import Continue, Given
from bcfl.policies.baselines.apd import APD
from bcfl.protocol.adaptive_terms import Retention, Sparsity
from bcfl.protocol.regularizers import Consolidation

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


@pytest.mark.parametrize(
    ("policy", "term"),
    [
        (TWO, Consolidation(3.0, Part(SHARED))),
        (APD(Objective(), 3.0, 0.6), Retention(3.0, 0.6)),
    ],
)
def test_who_was_there_before_is_held(parent, associated, policy, term):
    chosen = associated(policy, parent, 2)
    kept = {f"model of {c} at time step 0" for c in "ab"}
    assert kept <= set(chosen.carried_models)
    held, _, free = chosen.trainings
    assert held.objective.regularizers == (term,)
    (references,) = held.references
    assert held.held == references
    assert len(set(references)) == 2
    assert not free.objective.regularizers
    assert {m for t in chosen.trainings for m in t.models} == {m.key for m in chosen.models}
    assert chosen.state == {"step": 1}
    later = replace(parent, carried_models=chosen.carried_models, state=chosen.state)
    assert associated(policy, later, 3).trainings[0].objective == held.objective
    assert associated(policy, later, 3).origins[0] == Continue(0)


def test_earlier_parts_that_are_fixed_stay_as_they_were(parent, associated):
    chosen = associated(TWO, parent, 2)
    assert chosen.carried_models["model of a at time step 0"] is parent.clusters[0]
    assert set(chosen.carried_models) == {f"model of {c} at time step 0" for c in "ab"}


def test_an_earlier_step_is_predicted_with_todays_shared_parameters(
    model, parent, associated, newborn
):
    chosen = associated(TWO, parent, 2)
    today = tuple(newborn(model, seed) for seed in (5, 6, 7))
    later = replace(parent, clusters=today, carried_models=chosen.carried_models)
    shared, *own = later.at_step(model, "a", 0).blocks
    assert shared is today[0].blocks[0]
    assert own == list(parent.clusters[0].blocks[1:])
    assert later.at_step(model, "a", 1) is None
    assert later.at_step(model, "c", 0) is None


def test_earlier_parts_that_are_trained_restore_the_earlier_weights(
    model, parent, associated, newborn
):
    policy = APD(Objective(), 100.0, 4e-4)
    before = associated(policy, parent, 2)
    today = tuple(newborn(model, seed) for seed in (5, 6, 7))
    later = replace(
        parent, clusters=today, carried_models=before.carried_models, state=before.state
    )
    after = associated(policy, later, 3)
    restored = replace(later, carried_models=after.carried_models).at_step(model, "a", 0)
    kept = composed(model, parent.clusters[0].mean(model))
    found = composed(model, restored.mean(model))
    torch.testing.assert_close(found, kept, rtol=0, atol=4.1e-6)
    assert not torch.allclose(restored.mean(model), parent.clusters[0].mean(model), atol=1e-2)


def test_earlier_masks_take_as_long_a_step_by_epochs_as_by_steps(model, parent, associated):
    """Clients whose samples are one batch take one step in each epoch."""
    found = []
    for length in ({"local_steps": 3}, {"local_epochs": 3.0}, {"local_steps": 4}):
        policy = APD(Objective(learning_rate=1.0, **length), 100.0, 0.5)
        before = associated(policy, parent, 2)
        later = replace(parent, carried_models=before.carried_models, state=before.state)
        later = replace(later, clusters=parent.clusters[::-1])
        kept = associated(policy, later, 3).carried_models["model of a at time step 0"]
        found.append(kept.mean(model))
    assert torch.equal(found[0], found[1])
    assert not torch.equal(found[0], found[2])


def test_small_adaptive_parts_are_left_out_when_predicting(linear):
    module = decomposed(linear, least=0.1).module()
    (layer,) = [m for m in module.modules() if hasattr(m, "parametrizations")]
    adaptive = layer.parametrizations.weight.original2
    with torch.no_grad():
        adaptive.fill_(0.05)
    trained = layer.weight
    module.eval()
    torch.testing.assert_close(trained - layer.weight, torch.full_like(adaptive, 0.05))


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


@pytest.mark.parametrize("divided", [decomposed, transferring])
def test_a_network_of_one_layer_is_decomposed(linear, divided):
    alone = divided(replace(linear, build=lambda: nn.Linear(3, 2)))
    inside = divided(linear)
    (layer,) = layers(alone)
    assert layer.prefix == ""
    assert [len(b.prefixes) for b in alone.blocks] == [len(b.prefixes) for b in inside.blocks]
    mean, _ = alone.initial(0)
    fresh = restarted(alone, mean + 1.0, 3)
    torch.testing.assert_close(fresh, restarted(inside, mean + 1.0, 3), rtol=0, atol=0)
    assert alone.module()(torch.zeros(5, 3)).shape == (5, 2)


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
