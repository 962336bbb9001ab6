"""Clusters that studies and examples print step by step: a number is one cluster at all steps."""

from types import SimpleNamespace

import numpy as np
import pytest

from bcfl import Association
from bcfl.data import Schedule
from bcfl.hypotheses import Snapshot
from experiments.examples.returning_concept import Timeline
from experiments.studies.continual import clusters


@pytest.fixture
def history():
    """One round per step: the first of three clusters is gone in the second, all clients move."""
    rows = [([0, 0, 2], 3, ()), ([1, 1, 0], 2, ((1, 2),)), ([0, 2, 2], 3, ((0, 1, -1),))]
    return [
        Snapshot(
            round=number,
            log_weights=np.zeros(1),
            associations=(Association(("a", "b", "c"), np.array(labels), count),),
            parents=((0,),),
            log_captured_mass=0.0,
            continues=continues,
        )
        for number, (labels, count, continues) in enumerate(rows, 1)
    ]


def test_the_timeline_of_a_recurring_concept(history):
    evaluation = SimpleNamespace(confusion=np.eye(2), num_samples=4)
    records = [SimpleNamespace(evaluations={"a": evaluation})] * len(history)
    run = SimpleNamespace(records=records, state=SimpleNamespace(history=history))
    timeline = Timeline.of(run, 3)
    assert timeline.labels.tolist() == [[3, 3, 1], [1, 1, 0], [0, 2, 2]]
    assert timeline.first.tolist() == timeline.last.tolist() == [0.5] * 3


def test_the_clusters_in_use_of_a_stream(history):
    restored = SimpleNamespace(state=SimpleNamespace(history=history))
    assert clusters(restored, Schedule(3, 3)) == ["3x2 1x1", "1x2 0x1", "2x2 0x1"]
