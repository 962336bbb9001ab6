"""Laws of every partition, on drawn data sets."""

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from experiments import partitions
from experiments.datasets import Dataset


@st.composite
def data_sets(draw):
    classes = draw(st.integers(1, 6))
    sizes = draw(st.lists(st.integers(0, 40), min_size=classes, max_size=classes))
    assume(sum(sizes) > 0)
    targets = np.repeat(np.arange(classes), sizes)
    targets = np.random.default_rng(draw(st.integers(0, 99))).permutation(targets)
    inputs = np.arange(len(targets), dtype=np.float32)[:, None, None] + np.zeros((1, 2, 2))
    return Dataset(
        name="drawn",
        inputs=inputs.astype(np.float32),
        targets=targets.astype(np.int64),
        num_classes=classes,
    )


@st.composite
def splits(draw, data):
    clients = draw(st.integers(1, min(12, len(data))))
    minimum = draw(st.integers(1, min(8, len(data) // clients)))
    cap = draw(st.one_of(st.none(), st.integers(minimum, 30)))
    return {
        "clients": clients,
        "seed": draw(st.integers(0, 5)),
        "min_samples": minimum,
        "test_fraction": draw(st.sampled_from([0, 0.1, 0.25, 0.9])),
        "samples_per_client": cap,
    }


PLAIN = ("two-stage-dirichlet", "dirichlet", "n-class", "cluster-n-class", "rotated", "iid")
"""Partitions that use every sample once and change no label."""
ALPHAS = st.sampled_from([0.01, 0.1, 1, 10, 1000])


def own_options(draw, name, data, clients):
    present = len(np.unique(data.targets))
    if name == "two-stage-dirichlet":
        groups = draw(st.integers(1, min(3, clients)))
        return {"groups": groups, "alpha": (draw(ALPHAS), draw(ALPHAS))}
    if name == "dirichlet":
        return {"alpha": draw(ALPHAS)}
    if name == "n-class":
        return {"classes_per_client": draw(st.integers(1, present)), "drop_unused": True}
    if name == "cluster-n-class":
        of_group = draw(st.integers(1, present))
        classes = (of_group, draw(st.integers(1, of_group)))
        return {
            "groups": draw(st.integers(1, min(3, clients))),
            "classes": classes,
            "drop_unused": True,
        }
    if name == "rotated":
        return {"groups": draw(st.sampled_from([g for g in (1, 2, 4) if g <= clients]))}
    return {}


UNREACHABLE = ("none of 1000 draws", "each of 1000 draws", "min_samples=", "cannot all have")


def check_every_sample_is_used_once(partition, data, config):
    held_rows = np.concatenate(
        [rows for views in partition.indices.values() for rows in views.values()]
    )
    assert len(np.unique(held_rows)) == len(held_rows) == partition.num_samples
    assert len(held_rows) + partition.num_left_out == len(data)
    assert all(partition.left_out.values())
    if config["samples_per_client"] is None and "drop_unused" not in config:
        assert sorted(held_rows) == list(range(len(data)))


def check_clients(partition, data, config):
    names = [client.client for client in partition]
    assert names == sorted(set(names))
    assert len(names) == config["clients"]
    cap = config["samples_per_client"] or len(data)
    for client in partition:
        sizes = client.num_samples
        assert config["min_samples"] <= sum(sizes.values()) <= cap
        assert sizes["train"] >= 1
        assert ("test" in sizes) == (sum(sizes.values()) > 1 and config["test_fraction"] > 0)
        for view, samples in client.views.items():
            held = partition.indices[client.client][view]
            assert samples.inputs[:, 0, 0].numpy().astype(int).tolist() == held.tolist()
            assert samples.targets.tolist() == data.targets[held].tolist()


def check_groups(partition, config):
    if "groups" not in config:
        assert partition.groups is None
        return
    members = np.bincount([partition.groups[client.client] for client in partition])
    assert len(members) == config["groups"]
    assert members.max() - members.min() <= 1


def check_same(partition, again):
    for client, views in partition.indices.items():
        for view, rows in views.items():
            np.testing.assert_array_equal(again.indices[client][view], rows)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_laws(draws):
    data = draws.draw(data_sets())
    config = draws.draw(splits(data))
    name = draws.draw(st.sampled_from(PLAIN))
    config |= own_options(draws.draw, name, data, config["clients"])
    partition, refusal = None, ""
    try:
        partition = partitions.build(name, data, config)
    except ValueError as error:
        refusal = str(error)
    if refusal:
        # Sets of classes and groups can be out of reach; the other partitions always exist.
        assert name in ("two-stage-dirichlet", "n-class", "cluster-n-class")
        assert any(text in refusal for text in UNREACHABLE)
    assume(partition is not None)
    check_every_sample_is_used_once(partition, data, config)
    check_clients(partition, data, config)
    check_groups(partition, config)
    check_same(partition, partitions.build(name, data, dict(reversed(config.items()))))
