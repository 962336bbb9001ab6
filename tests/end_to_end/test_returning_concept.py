"""Data that change over time, and a concept that comes back."""

import numpy as np

from experiments.examples import returning_concept


def test_the_cluster_that_learnt_a_concept_is_reused(capsys):
    """Seed 0: all clients move to another cluster with the shifted labels, and back."""
    timeline = returning_concept.followed("bcfl-forget", 0)
    plain, shifted, again = timeline.labels[1], timeline.labels[3], timeline.labels[5]
    used = np.bincount(plain).argmax()
    assert (plain == used).mean() >= 0.8
    assert (shifted == shifted[0]).all()
    assert shifted[0] != used
    assert (again == used).all()
    assert timeline.first[4] > timeline.first[2] + 0.2
    returning_concept.main(("fedavg",), rounds_per_step=1)
    assert capsys.readouterr().out.count("clusters 0 0") == 6
