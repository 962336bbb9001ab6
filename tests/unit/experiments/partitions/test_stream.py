"""Streams: views by time step, concepts over time."""

from itertools import pairwise

import numpy as np
import pytest

from bcfl.data.streams import num_steps
from experiments import partitions
from experiments.datasets import Dataset
from experiments.partitions.stream import concepts_over_time


@pytest.fixture(scope="module")
def images():
    targets = np.arange(2000) % 10
    inputs = np.arange(2000, dtype=np.float32)[:, None] / 2000
    return Dataset(name="images", inputs=inputs, targets=targets, num_classes=10)


def test_each_step_has_its_own_samples_under_its_concept(images):
    partition = partitions.stream(images, clients=10, steps=4, order="multi-task", seed=3)
    every = [rows for views in partition.indices.values() for rows in views.values()]
    assert len(np.unique(np.concatenate(every))) == sum(map(len, every)) == 2000
    for data in partition:
        assert set(data.views) == {
            *("train", "train:1", "train:2", "train:3"),
            *("test", "test:1", "test:2", "test:3"),
        }
        for step, concept in enumerate(partition.concepts[data.client]):
            for part in ("train", "test"):
                name = f"{part}:{step}" if step else part
                rows = partition.indices[data.client][name]
                seen = data.views[name].targets.numpy()
                assert (seen == (images.targets[rows] + concept) % 10).all()
                assert len(rows) > 0
        assert data.group == partition.concepts[data.client][0]
    assert num_steps(partition) == 4
    for step in range(4):
        assert partition.groups_at(step) == {
            name: seen[step] for name, seen in partition.concepts.items()
        }
    assert partition.class_counts().sum() == 2000


def test_orders_of_concepts():
    sequential = concepts_over_time(3, 6, "sequential", 0)
    assert sequential.tolist() == [[0, 0, 1, 1, 0, 0]] * 3
    drawn = concepts_over_time(400, 10, "multi-task", 0)
    assert set(np.unique(drawn)) == {0, 1}
    switches = drawn[:, 1:] != drawn[:, :-1]
    # 3,600 fair coins: five standard deviations.
    assert abs(switches.mean() - 0.5) < 5 * 0.5 / 60
    assert abs(drawn[:, 0].mean() - 0.5) < 5 * 0.5 / 20


def test_steps_of_merged_labels_have_a_quarter_of_the_samples(images):
    partition = partitions.stream(images, clients=4, concept="merged-labels", steps=4)
    for data in partition:
        for step, concept in enumerate(partition.concepts[data.client]):
            rows = [
                partition.indices[data.client][f"{part}:{step}" if step else part]
                for part in ("train", "test")
            ]
            assert sum(map(len, rows)) == (round(125 / 4) if concept else 125)
            labels = data.views[f"train:{step}" if step else "train"].targets.numpy()
            assert bool(np.isin(labels, [1, 3]).any()) is not bool(concept)
    assert partition.num_samples + partition.num_left_out == 2000


def test_steps_of_half_the_classes_leave_the_others_out(images):
    partition = partitions.stream(images, clients=4, concept="label-halves", steps=4)
    for data in partition:
        for step, concept in enumerate(partition.concepts[data.client]):
            labels = data.views[f"train:{step}" if step else "train"].targets.numpy()
            assert ((labels >= 5) == bool(concept)).all()
    (reason,) = partition.left_out
    assert "concept" in reason
    assert partition.num_samples + partition.num_left_out == 2000
    capped = partitions.stream(images, clients=4, steps=4, samples_per_client=100)
    assert capped.left_out == {"above samples_per_client": 400}


@pytest.mark.parametrize("concept", ["noisy", "merged-labels"])
def test_other_concepts(images, concept):
    partition = partitions.stream(images, clients=4, concept=concept, steps=3, order="sequential")
    data, last = partition[0], partition.concepts[partition[0].client].index(1)
    seen, rows = data.views[f"train:{last}"], partition.indices[data.client][f"train:{last}"]
    if concept == "noisy":
        assert (seen.inputs.numpy() != images.inputs[rows]).any()
    else:
        assert not np.isin(seen.targets.numpy(), (1, 3)).any()


def test_clients_of_a_stream_can_be_run(images):
    from bcfl import Federation, methods
    from experiments import models

    partition = partitions.stream(images, clients=4, steps=2)
    run = Federation(partition, models.linear(1, 10), methods.build("wecfl", num_clusters=2)).run(2)
    assert run.state.round == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"steps": 0}, "steps must be a whole number of at least 1"),
        ({"steps": 30}, "steps=30 of clients=20 with min_samples=8 require 4800 samples"),
        ({"concept": "noise"}, "unknown concept 'noise'"),
        ({"order": "random"}, "order must be 'sequential' or 'multi-task', got 'random'"),
    ],
)
def test_refused(images, options, message):
    with pytest.raises(ValueError, match=message):
        partitions.build("stream", images, options)


def test_noise_of_a_stream_can_be_the_authors():
    """The same pattern for sample i of each client, step and view, on standardised pixels."""
    random = np.random.default_rng(0)
    inputs = random.random((600, 1, 4, 4)).astype(np.float32)
    images = Dataset(name="images", inputs=inputs, targets=np.arange(600) % 10, num_classes=10)
    options = {"clients": 3, "steps": 4, "concept": "noisy", "noise": (0.0, 0.6), "seed": 1}
    honest = partitions.build("stream", images, options)
    leaking = partitions.build("stream", images, {**options, "by_index": True})
    scaled = partitions.build("stream", images, {**options, "by_index": True, "standardised": True})
    for partition, shared in ((honest, False), (leaking, True)):
        patterns = [
            np.isin(client.views[view].inputs[0].numpy(), (0, 1))
            for client in partition
            for view in ("train:2", "test:2", "train:3")
        ]
        assert all((pattern == patterns[0]).all() for pattern in patterns) == shared
    for partition, low, share in ((honest, 0, 0.3), (scaled, -1, 0.3 + 0.4 * 0.21)):
        noisy = np.concatenate([client.views["train:2"].inputs for client in partition])
        assert (noisy.min(), noisy.max()) == (low, 1)
        assert (noisy == low).mean() == pytest.approx(share, abs=0.04)
    clean = np.concatenate([client.views["train"].inputs for client in scaled])
    assert abs(clean.mean()) < 0.1
    assert clean.std() == pytest.approx(1, abs=0.1)
    with pytest.raises(ValueError, match="of the concept 'noisy', got concept 'shifted-labels'"):
        partitions.stream(images, clients=3, steps=2, by_index=True)


def test_random_labels_of_the_other_half_are_in_training_only(images):
    """Each step of a client has all classes, and tests on those of its concept."""
    partition = partitions.stream(images, clients=4, steps=4, concept="random-label-halves")
    for client in partition:
        for step, concept in enumerate(partition.concepts[client.client]):
            train, test = (f"{part}:{step}" if step else part for part in ("train", "test"))
            rows = partition.indices[client.client]
            truth = images.targets[rows[train]]
            own = (truth >= 5) == bool(concept)
            seen = client.views[train].targets.numpy()
            assert (seen[own] == truth[own]).all()
            assert (seen[~own] != truth[~own]).any()
            tested = client.views[test].targets.numpy()
            assert (tested == images.targets[rows[test]]).all()
            assert ((tested >= 5) == bool(concept)).all()


@pytest.mark.parametrize("order", ["sequential", "multi-task"])
def test_images_turn_from_step_to_step(order):
    random = np.random.default_rng(0)
    inputs = random.random((1600, 1, 4, 4)).astype(np.float32)
    images = Dataset(name="images", inputs=inputs, targets=np.arange(1600) % 10, num_classes=10)
    options = {"clients": 8, "steps": 8, "concept": "rotations", "order": order, "seed": 2}
    partition = partitions.build("stream", images, options)
    seen = set()
    for client in partition:
        plan = partition.concepts[client.client]
        if order == "sequential":
            assert plan == (0, 0, 1, 1, 2, 2, 3, 3)
        assert all((now - before) % 4 in (0, 1) for before, now in pairwise(plan))
        for step, turns in enumerate(plan):
            view = f"train:{step}" if step else "train"
            expected = inputs[partition.indices[client.client][view]]
            for _ in range(turns):
                expected = np.flip(expected.swapaxes(-1, -2), axis=-2)
            np.testing.assert_array_equal(client.views[view].inputs.numpy(), expected)
            seen.add(turns)
    assert seen == {0, 1, 2, 3}
    flat = Dataset(
        name="f", inputs=inputs.reshape(1600, 16), targets=images.targets, num_classes=10
    )
    with pytest.raises(ValueError, match="rotations need square images"):
        partitions.build("stream", flat, options)


def test_clients_that_change_together_share_a_concept(images):
    together = partitions.stream(images, clients=4, steps=3, order="sequential", seed=1)
    assert together.shares_group
    apart = partitions.stream(images, clients=10, steps=3, order="multi-task", seed=3)
    assert not apart.shares_group
    assert not partitions.iid(images, clients=4, seed=0).shares_group
