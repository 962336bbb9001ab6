import pytest

from bcfl import Federation, Objective
from bcfl.methods import build


@pytest.fixture
def run(linear, clients):
    """Two rounds of BCFL-MH on a linear model, whose clients may move."""
    settings = dict(
        num_clusters=2, objective=Objective(local_steps=3, batch_size=4), temperature=4.0
    )
    return Federation(clients, linear, build("bcfl-mh-3", **settings)).run(2)
