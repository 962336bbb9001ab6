"""C-FAACL on streams of labels that are shifted, and shifted back."""

import numpy as np
import torch
from torch import nn

from bcfl import ClientData, Federation, Model, Objective
from bcfl.data.streams import view_name
from bcfl.data.view import View
from tests.recipes import built

NETWORK = Model(
    name="mlp",
    build=lambda: nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3)),
    input_shape=(4,),
    num_outputs=3,
)


def drawn(random, count, shift):
    x = random.normal(size=(count, 4)).astype(np.float32)
    labels = (x[:, :3].argmax(axis=1) + shift) % 3
    return View(torch.from_numpy(x), torch.from_numpy(labels))


def streaming(plan, seed=0):
    """One client for each row; labels are shifted by its entry in each time step."""
    random, clients = np.random.default_rng(seed), []
    for name, row in enumerate(plan):
        views = {}
        for step, shift in enumerate(row):
            views[view_name("train", step)] = drawn(random, 80, shift)
            views[view_name("test", step)] = drawn(random, 50, shift)
        clients.append(ClientData(f"c{name}", views, row[0]))
    return clients


def run(plan, rounds_per_step, name="c-faacl"):
    settings = dict(num_clusters=2, objective=Objective(local_steps=15, batch_size=10), epsilon=0.5)
    method = built(name, **settings)
    federation = Federation(streaming(plan), NETWORK, method, device="cpu")
    return federation.run(rounds_per_step * len(plan[0]))


def labels_at_ends(found, steps):
    each = len(found.records) // steps
    ends = found.records[each - 1 :: each]
    return [record.snapshot.associations[0].labels.tolist() for record in ends]


def test_the_cluster_that_learnt_a_recurring_concept_is_reused():
    found = run([[0, 0, 1, 1, 0]] * 4, 4)
    plain, again, shifted, still, back = labels_at_ends(found, 5)
    assert plain == again == back == [0] * 4
    assert shifted == still == [1] * 4
    facts = found.records[16].info.facts
    assert facts["new_concepts"] == 0
    assert facts["recognised_by_device"] + facts["recognised_by_others"] == 4


def test_a_concept_that_only_others_had_is_recognised():
    """In the second time step the devices swap their concepts."""
    found = run([[0, 1], [0, 1], [1, 0], [1, 0]], 4)
    assert labels_at_ends(found, 2) == [[0, 0, 1, 1], [1, 1, 0, 0]]
    assert found.records[4].info.facts["recognised_by_others"] == 4


def test_one_time_step_is_hierarchical_faacl():
    plan = [[0], [1], [0], [1]]
    ours, theirs = run(plan, 6), run(plan, 6, "faacl-h")
    for mine, other in zip(
        ours.hypotheses.best.clusters, theirs.hypotheses.best.clusters, strict=True
    ):
        assert torch.equal(mine.mean(NETWORK), other.mean(NETWORK))
    assert labels_at_ends(ours, 1) == labels_at_ends(theirs, 1)
