"""All views of a stream number clusters by their models, as checkpoints do, while clients move."""

import re

import numpy as np
import pytest

from bcfl.analysis.export import to_xarray
from experiments.reports.client_report import read_history
from experiments.reports.galleries.client_gallery import leading_clusters
from experiments.reports.galleries.gallery import all_pictures, cluster_sizes
from experiments.reports.round_history import FirstStates, of_method
from experiments.runs.files import Pair
from experiments.runs.run_folder import RunFolder

SINGLE, SEVERAL = "bcfl-forget", "bcfl-mh-3"
TABLE = {
    "name": "turns",
    "methods": [SINGLE, SEVERAL],
    "seeds": [0],
    "data": {"dataset": "optdigits"},
    "partition": {"kind": "stream", "clients": 6, "concept": "rotations", "steps": 3},
    "model": {"name": "mlp", "hidden": [16]},
    "training": {"local_steps": 10},
    "federation": {"rounds": 6, "num_clusters": 3},
}


@pytest.fixture(scope="module")
def run(run_of):
    return RunFolder.read(run_of(TABLE))


@pytest.fixture(scope="module")
def states(run):
    return FirstStates.of(run).states


@pytest.fixture(scope="module")
def histories(states):
    """Snapshots of a stream in which clients move while their clusters go on."""
    found = {method: state.history for method, state in states.items()}
    assert all(len(snapshot.associations) == 1 for snapshot in found[SINGLE])
    assert max(len(snapshot.associations) for snapshot in found[SEVERAL]) > 1
    return found


def tip_of(svg, name):
    return re.search(rf'id="[a-z]*-?{re.escape(name)}"[^>]*data-tip="([^"]*)"', svg)[1]


def labels_of(history):
    return np.stack([snapshot.associations[0].labels for snapshot in history])


@pytest.mark.parametrize("method", [SINGLE, SEVERAL])
def test_all_views_agree_with_the_labels_of_the_snapshots(run, states, histories, method):
    history = histories[method]
    labels = labels_of(history)
    assert (labels[1:] != labels[:-1]).sum(axis=1).max() >= 4
    known = leading_clusters(states)
    np.testing.assert_array_equal(known[method].labels, labels)

    sizes = cluster_sizes(run, known)[method]
    for row, own in zip(sizes, labels, strict=True):
        assert row.tolist() == np.bincount(own, minlength=sizes.shape[1]).tolist()

    slider = of_method(history, [snapshot.round for snapshot in history], None, None)
    for entry, own in zip(slider["kept"], labels, strict=True):
        text = slider["partitions"][entry["labels"][0]]
        assert text == "".join(map(str, own))

    data_set = to_xarray(history, co_association=False)
    np.testing.assert_array_equal(data_set["label"].values[:, 0], labels)


@pytest.mark.parametrize("method", [SINGLE, SEVERAL])
def test_the_history_of_a_client_is_that_of_the_snapshots(run, histories, method):
    explained = read_history(run.path, Pair(method, 0))
    for row, report in enumerate(explained.client_reports()):
        assert report.labels.tolist() == labels_of(histories[method])[:, row].tolist()
        assert report.cluster == report.labels[-1]
        for number, snapshot in enumerate(histories[method]):
            rows = zip(snapshot.weights, snapshot.memberships, strict=True)
            expected = np.zeros(report.filtered.shape[1])
            for weight, membership in rows:
                expected[: membership.shape[1]] += weight * membership[row]
            np.testing.assert_allclose(report.filtered[number], expected, atol=1e-9)


def test_the_figures_show_the_labels_of_the_snapshots(run, states, histories):
    pictures = all_pictures(run, states)
    for method, history in histories.items():
        labels = labels_of(history)
        for client in range(labels.shape[1]):
            tip = tip_of(pictures["moves"].svg, f"move-{method}-{client}")
            begins = np.flatnonzero(np.diff(labels[:, client], prepend=-1))
            for begin in begins:
                assert f"from round {begin + 1}: cluster {labels[begin, client]}" in tip
        for number, row in enumerate(labels, start=1):
            tip = tip_of(pictures["sizes"].svg, f"round-{method}-{number}")
            for cluster, size in zip(*np.unique(row, return_counts=True), strict=True):
                assert f"cluster {cluster}: {size}" in tip
