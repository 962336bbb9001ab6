from dataclasses import replace

import numpy as np
import pytest
import torch

from bcfl import Association, Hypothesis, Objective, drive
from bcfl.policies.updates.fedgroup import FedGroup, group
from bcfl.protocol.answers import Trained

OBJECTIVE = Objective()
COLD = Objective(local_steps=50, batch_size=10, curvature="uniform")
NAMES = tuple("abcdef")
EAST, NORTH = (1.0, 0.1), (0.1, 1.0)
UPDATES = {"a": EAST, "b": NORTH, "c": EAST, "d": NORTH, "e": (0.8, 0.3), "f": (0.2, 0.9)}
POLICY = FedGroup(groups=2, objective=OBJECTIVE, cold_start=COLD)


@pytest.fixture
def parent(linear, newborn):
    return Hypothesis(clusters=(newborn(linear, 0),), association=Association.unseen(NAMES, 1))


@pytest.fixture
def after(linear, context):
    """What a policy makes of clients whose updates begin with given numbers, and what it asked."""

    def of(policy, hypothesis, updates, round=0, participants=NAMES):
        models = {p.key: p for p in (*hypothesis.clusters, *hypothesis.carried_models.values())}

        def answer(request):
            if request.client in updates:
                mean = models[request.start].mean(linear).clone()
                mean[:2] += torch.tensor(updates[request.client])
                return Trained(
                    mean=mean, buffers=torch.empty(0), curvature=torch.ones(()), num_samples=2
                )

        steps = policy.associate(hypothesis, context(participants, round))
        (chosen,), exchanges = drive(steps, answer, return_exchanges=True)
        return chosen, [exchange.requests for exchange in exchanges]

    return of


def grouped(parent, chosen, linear):
    """The hypothesis after a cold start, its models at the plain means."""
    start = parent.clusters[0]
    clusters = []
    for number, update in enumerate((EAST, NORTH)):
        mean = start.mean(linear).clone()
        mean[:2] += torch.tensor(update)
        block = start.blocks[0]
        moved = replace(block, key=f"group {number}", gaussian=replace(block.gaussian, mean=mean))
        clusters.append(replace(start, blocks=(moved,)))
    return Hypothesis(
        clusters=tuple(clusters),
        association=chosen.association,
        state=chosen.state,
        carried_models=chosen.carried_models,
    )


def test_the_cold_start_groups_the_founders(parent, after):
    chosen, (asked,) = after(POLICY, parent, UPDATES)
    assert {t.objective for t in asked} == {COLD}
    assert chosen.association.labels.tolist() == [0, 1, 0, 1, 0, 1]
    assert chosen.contribution_weights.tolist() == [[1, 0], [0, 1]] * 3
    assert set(chosen.answers) == set(asked) == set(chosen.trainings)
    assert chosen.state == {"grouped": True}


def test_after_the_cold_start_groups_train_on_their_own(parent, after, linear):
    chosen, _ = after(POLICY, parent, UPDATES)
    then = grouped(parent, chosen, linear)
    later, asked = after(POLICY, then, dict.fromkeys(NAMES, EAST), 1)
    assert asked == []
    assert later.association.labels.tolist() == [0, 1, 0, 1, 0, 1]
    assert {t.objective for t in later.trainings} == {OBJECTIVE}
    assert [t.start for t in later.trainings] == ["group 0", "group 1"] * 3


def test_newcomers_train_from_the_first_model_and_join_the_nearest_group(parent, after, linear):
    chosen, _ = after(POLICY, parent, UPDATES, participants=tuple("abcd"))
    assert chosen.association.labels.tolist() == [0, 1, 0, 1, -1, -1]
    then = grouped(parent, chosen, linear)
    later, (asked,) = after(POLICY, then, UPDATES, 1, participants=tuple("aef"))
    assert [(t.client, t.start, t.objective) for t in asked] == [
        (name, parent.clusters[0].key, COLD) for name in "ef"
    ]
    assert later.association.labels.tolist() == [0, 1, 0, 1, 0, 1]
    assert later.state == {"grouped": True}
    assert later.carried_models == {}


def test_directions_stay_those_of_the_cold_start(parent, after, linear):
    """Wherever the groups' models go afterwards."""
    chosen, _ = after(POLICY, parent, UPDATES, participants=tuple("abcd"))
    then = grouped(parent, chosen, linear)
    later, _ = after(POLICY, then, UPDATES, 1, participants=tuple("abcd"))
    swapped = Hypothesis(
        clusters=then.clusters[::-1],
        association=later.association,
        state=later.state,
        carried_models=later.carried_models,
    )
    last, _ = after(POLICY, swapped, UPDATES, 2, participants=("e",))
    assert last.association.label("e") == 0


def test_a_cold_start_without_answers_is_tried_again(parent, after):
    chosen, _ = after(POLICY, parent, {})
    assert chosen.state == {}
    assert chosen.association.num_clusters == 1
    again, _ = after(POLICY, replace(parent, state=chosen.state), UPDATES, 1)
    assert again.state == {"grouped": True}


def test_founders_are_drawn_from_the_seed(context):
    few = replace(POLICY, founders=2)
    drawn = few.sampled_founders(context(NAMES))
    assert len(drawn) == 4
    assert list(drawn) == sorted(set(drawn))
    assert drawn == few.sampled_founders(context(NAMES))
    assert POLICY.sampled_founders(context(NAMES)) == NAMES
    seeds = {few.sampled_founders(replace(context(NAMES), seed=seed)) for seed in range(20)}
    assert len(seeds) > 3


@pytest.mark.parametrize("dissimilarity", ["edc", "madc"])
def test_fewer_or_equal_updates_leave_groups_out(dissimilarity):
    assert group(np.ones((1, 1)), 3, dissimilarity, 0).tolist() == [0]
    found = group(np.eye(2), 3, dissimilarity, 0)
    assert len(set(found)) == 2
    assert group(np.zeros((3, 3)), 2, dissimilarity, 0).tolist() == [0, 0, 0]


@pytest.mark.parametrize("dissimilarity", ["edc", "madc"])
def test_a_founder_that_does_not_move_has_a_group(parent, after, dissimilarity):
    updates = {**UPDATES, "f": (0.0, 0.0)}
    chosen, _ = after(replace(POLICY, dissimilarity=dissimilarity), parent, updates)
    assert (chosen.association.labels >= 0).all()


def test_groups_must_fit_the_clients():
    POLICY.check(1, 2, 1)
    with pytest.raises(ValueError, match="groups must be at most the number of clients, 1, got 2"):
        POLICY.check(1, 1, 1)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"groups": 0}, "groups must be a whole number of at least 1, got 0"),
        ({"founders": 0}, "founders must be a whole number of at least 1, got 0"),
        ({"dissimilarity": "cosine"}, "dissimilarity must be 'edc' or 'madc', got 'cosine'"),
    ],
)
def test_a_policy_names_what_is_wrong(changed, message):
    with pytest.raises(ValueError, match=message):
        replace(POLICY, **changed)
