"""The partition as a value: clients, indices, splits, caps, seeds."""

from dataclasses import replace

import numpy as np
import pytest

from bcfl.data.agreement import sorted_clients
from bcfl.data.clients import ClientData
from experiments import partitions

ALL = [
    ("two-stage-dirichlet", {}),
    ("dirichlet", {}),
    ("n-class", {}),
    ("cluster-n-class", {}),
    ("rotated", {}),
    ("iid", {}),
]


def rows_of(client):
    return np.concatenate([v.inputs.numpy().ravel() for v in client.views.values()]).astype(int)


def test_a_partition_is_a_sequence_of_clients(digits):
    partition = partitions.two_stage_dirichlet(digits)
    assert len(partition) == 40
    assert all(isinstance(data, ClientData) for data in partition)
    assert sorted_clients(partition) == partition.clients
    assert partition[3].client == "client-03"
    assert [data.client for data in partition[38:]] == ["client-38", "client-39"]
    assert partition.groups is not None
    assert [partition.groups[data.client] for data in partition] == [j // 10 for j in range(40)]
    assert repr(partition) == (
        "Partition(two-stage-dirichlet of optdigits: 40 clients, 4 groups, 1797 samples, "
        "0 left out)"
    )
    assert partition.left_out == {}


def test_names_sort_as_numbers(balanced):
    partition = partitions.iid(balanced(120), clients=101)
    names = [data.client for data in partition]
    assert names[:2] == ["client-000", "client-001"]
    assert names == sorted(names)
    assert partition.groups is None
    assert "no groups" in repr(partition)


def test_class_counts_and_indices_say_what_the_clients_hold(balanced):
    data = balanced(30)
    partition = partitions.dirichlet(data, clients=7, seed=5)
    for row, client in zip(partition.class_counts(), partition, strict=True):
        rows = rows_of(client)
        assert row.tolist() == np.bincount(data.targets[rows], minlength=10).tolist()
        for view, samples in client.views.items():
            indices = partition.indices[client.client][view]
            assert samples.inputs.ravel().tolist() == indices.tolist()
            assert samples.targets.tolist() == data.targets[indices].tolist()
    assert sorted(np.concatenate([rows_of(client) for client in partition])) == list(range(300))


def test_split_into_training_and_test(balanced):
    partition = partitions.iid(balanced(10), clients=4, test_fraction=0.25)
    assert [data.num_samples for data in partition] == [{"train": 19, "test": 6}] * 4
    more = partitions.iid(balanced(10), clients=4, test_fraction=0.5)
    assert [data.num_samples for data in more] == [{"train": 13, "test": 12}] * 4
    none = partitions.iid(balanced(10), clients=4, test_fraction=0)
    assert [data.num_samples for data in none] == [{"train": 25}] * 4


def test_a_client_with_one_sample_trains_on_it_and_has_no_test_view(balanced):
    partition = partitions.iid(balanced(1), clients=7, min_samples=1)
    assert [data.num_samples for data in partition] == [{"train": 1, "test": 1}] * 3 + [
        {"train": 1}
    ] * 4


def test_cap_leaves_the_rest_out_with_the_reason(balanced):
    data = balanced(100)
    partition = partitions.two_stage_dirichlet(data, clients=8, samples_per_client=40, seed=1)
    assert partition.left_out == {"above samples_per_client": 1000 - partition.num_samples}
    sizes = [sum(client.num_samples.values()) for client in partition]
    whole = partitions.two_stage_dirichlet(data, clients=8, seed=1)
    assert sizes == [min(40, sum(client.num_samples.values())) for client in whole]
    for capped, client in zip(partition, whole, strict=True):
        assert set(rows_of(capped)) <= set(rows_of(client))


def test_kept_samples_are_drawn_from_all_of_a_client(balanced):
    partition = partitions.iid(balanced(1000), clients=1, samples_per_client=1000)
    spread = np.sqrt(1000 * 0.1 * 0.9)
    assert np.abs(partition.class_counts()[0] - 100).max() < 4 * spread


@pytest.mark.parametrize(("name", "config"), ALL)
def test_the_seed_determines_the_partition(digits, name, config):
    def held(seed):
        partition = partitions.build(name, digits, {**config, "clients": 20, "seed": seed})
        return {
            c: {v: i.tolist() for v, i in views.items()} for c, views in partition.indices.items()
        }

    first = held(1)
    np.random.default_rng().random()
    assert held(1) == first
    assert held(2) != first


@pytest.mark.parametrize(("name", "config"), ALL)
def test_default_sizes_on_the_digits(digits, name, config):
    partition = partitions.build(name, digits, config)
    assert len(partition) == 40
    assert partition.num_samples == 1797
    assert min(sum(data.num_samples.values()) for data in partition) >= 8
    assert all(data.num_samples["test"] >= 2 for data in partition)


def test_classes_may_be_empty(labelled):
    data = labelled(np.repeat([0, 1, 3], 60), classes=5)
    for name, _ in ALL:
        if name != "rotated":
            config = {"clients": 6} | ({"classes": (2, 1)} if name == "cluster-n-class" else {})
            config |= {"groups": 2} if name in ("two-stage-dirichlet", "cluster-n-class") else {}
            counts = partitions.build(name, data, config).class_counts()
            assert counts.sum(axis=0).tolist() == [60, 60, 0, 60, 0]


SPARE = "beyond the largest size that all clients can have"


def by_writers(digits):
    return replace(digits, writers=np.arange(len(digits)) % 40)


@pytest.mark.parametrize(
    ("name", "options", "reasons"),
    [
        ("writers", {"clients": 3}, {"of writers without clients"}),
        ("label-proportions", {"clients": 4, "alpha": 9.0}, {SPARE}),
        ("merged-classes", {"clients": 4}, {"beyond the share that clients of group 1 keep"}),
        ("shared-ocfl", {}, {"that no client has drawn"}),
        ("ocfl", {"disjoint": False}, {"that no client has drawn"}),
        ("ocfl", {}, {SPARE}),
        (
            "n-class",
            {"clients": 4, "drop_unused": True, "samples_per_client": 20},
            {"of classes without clients", "above samples_per_client"},
        ),
        ("label-halves", {"random_other_labels": True, "test_fraction": 0}, set()),
        (
            "label-halves",
            {"random_other_labels": True},
            {"of the other half of the classes, left out of test views"},
        ),
    ],
)
def test_samples_are_left_out_for_the_reason_that_is_told(digits, name, options, reasons):
    partition = partitions.build(name, by_writers(digits), {"seed": 0} | options)
    assert set(partition.left_out) == reasons
    assert all(partition.left_out.values())
    held = {row for views in partition.indices.values() for rows in views.values() for row in rows}
    assert len(held) + partition.num_left_out == len(digits)


def test_groups_are_named_by_what_they_hold(digits):
    names = [
        partitions.build(name, digits, {"clients": 4}).group_names
        for name in ("rotated", "noisy", "shifted-labels", "merged-classes", "label-halves", "iid")
    ]
    assert names == [
        ("rotated by 0°", "rotated by 90°", "rotated by 180°", "rotated by 270°"),
        ("without noise", "noisy"),
        ("original labels", "labels shifted by 1"),
        ("original labels", "labels 1 and 3 are 2"),
        ("classes 0 to 4", "classes 5 to 9"),
        (),
    ]
    domains = replace(digits, domains=np.arange(len(digits)) % 2, domain_names=("new", "old"))
    assert partitions.by_domain(domains, clients=2).group_names == ("new", "old")
    turned = partitions.stream(digits, clients=2, steps=2, concept="rotations")
    assert turned.group_names == names[0]
    random = partitions.label_halves(digits, clients=4, random_other_labels=True)
    assert random.group_names[1] == "classes 5 to 9, random labels for the others"
