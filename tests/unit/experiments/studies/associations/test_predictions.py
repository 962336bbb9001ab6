"""The study of predictions under uncertain associations at a reduced size."""

import numpy as np
import pytest

from experiments.studies.association_posterior import clients_of
from experiments.studies.associations import predictions as study


@pytest.fixture(scope="module")
def found():
    clients = clients_of("rotated", 8, 0, study.TESTED)
    assert {len(client.views["test"]) for client in clients} == {study.TESTED}
    return study.losses(study.trained("bcfl-race-2", clients, seed=0, rounds=3), clients)


def test_each_way_predicts(found):
    assert found.shape == (len(study.WAYS), 2)
    assert (found[:, 0] > 0).all()
    assert ((found[:, 1] >= 0) & (found[:, 1] <= 1)).all()
    assert found[0, 0] != found[2, 0]


def test_differences_are_from_the_leading_hypothesis(found):
    text = study.row("bcfl-race-2", 8, np.array([found, found]))
    gain = found[2, 0] - found[0, 0]
    assert f"{gain:+.3f} ± 0.000" in text
    assert text.count("|") == 2 * len(study.WAYS) + 3
