"""A problem of six clients in two hidden groups that every method solves in milliseconds."""

from functools import cache

import numpy as np
import pytest
import torch
from torch import nn

from bcfl import ClientData, Federation, Model, Objective
from bcfl.methods import RECIPES
from tests.recipes import built

NUM_CLUSTERS = 2
SIZES = (8, 3, 5, 9, 1, 4)
NAMES = [
    *(
        recipe.title.replace("-M", "-3")
        for recipe in RECIPES.values()
        if recipe.name != "bcfl-exact"
    ),
    *("bcfl-mh-3-w", "ifca-cam", "bcfl-g-cam-finetune", "wecfl-con-cks", "fesem-con-rep"),
]
"""Every method of the command line and some suffixes; `bcfl-exact` is for three clients at most."""

torch.set_num_threads(1)  # the problems are too small for more


def network():
    return nn.Sequential(nn.Linear(3, 2))


MODEL = Model(name="linear", build=network, input_shape=(3,), num_outputs=2)


def samples(random, count, group):
    x = random.normal(size=(count, 3)).astype(np.float32)
    return x, ((x[:, 0] > 0) ^ (group == 1)).astype(np.int64)


def clients_of(sizes, tested=5):
    """Clients `c0`, `c1`, ... of the given numbers of training samples, groups in turn."""
    random = np.random.default_rng(7)
    return [
        ClientData.from_arrays(
            f"c{index}",
            samples(random, size, index % 2),
            samples(random, tested, index % 2) if tested else None,
            index % 2,
        )
        for index, size in enumerate(sizes)
    ]


def recipe_of(name, **settings):
    objective = settings.pop("objective", Objective(local_steps=4, batch_size=4))
    return built(name, num_clusters=NUM_CLUSTERS, objective=objective, **settings)


def federation_of(method, sizes=SIZES, clients=None, **arguments):
    """A federation of a method or its name."""
    chosen = recipe_of(method) if isinstance(method, str) else method
    given = clients_of(sizes) if clients is None else clients
    return Federation(given, MODEL, chosen, device="cpu", **arguments)


def everything(state):
    """All numbers of a state, as bytes."""
    numbers = []
    for h in state.hypotheses:
        numbers += [h.association.labels, np.float64(h.log_weight), h.association.serving]
        for posterior in (
            *h.clusters,
            *(h.carried_models[name] for name in sorted(h.carried_models)),
        ):
            for b in posterior.blocks:
                for tensor in (b.gaussian.mean, b.gaussian.precision, b.prior.precision, b.buffers):
                    numbers.append(tensor.numpy())
    return [np.ascontiguousarray(n).tobytes() for n in numbers]


def means(hypothesis):
    """Each cluster's model as one vector."""
    return [torch.cat([b.gaussian.mean for b in p.blocks]) for p in hypothesis.clusters]


def same_models(ours, theirs):
    """Whether all models of a hypothesis are among those of another."""
    known = means(theirs)
    return all(any(torch.equal(one, other) for other in known) for one in means(ours))


@cache
def standard_run(name, rounds=4):
    """The run of a method that several laws look at, its states and their bytes, made once."""
    states, written = [], []

    def keep(state, record):
        del record
        states.append(state)
        written.append(everything(state))

    return federation_of(name).run(rounds, on_round=keep), states, written


def assert_partition(association):
    """Every client that was seen is served by clusters that are there, with shares of one."""
    serving, seen = association.serving, association.labels >= 0
    assert serving.shape == (len(association.clients), association.num_clusters)
    assert serving.min() >= 0
    np.testing.assert_allclose(serving[seen].sum(axis=1), 1, atol=1e-12)
    assert not serving[~seen].any()
    assert set(association.labels[seen]) <= set(range(association.num_clusters))
    assert (serving[seen, association.labels[seen]] == serving[seen].max(axis=1)).all()
    assert association.sizes.sum() == seen.sum()
    if association.probabilities is None:
        assert set(np.unique(serving)) <= {0.0, 1.0}


def assert_lawful(run, clients):
    """All that a run ever held is a distribution over partitions, and its models are finite."""
    assert run.clients == tuple(sorted(clients))
    for snapshot in run.state.history:
        for association in snapshot.associations:
            assert_partition(association)
        assert np.exp(snapshot.log_weights).sum() == pytest.approx(1)
        assert (np.diff(snapshot.log_weights) <= 0).all()
        assert not snapshot.log_captured_mass > 0
    for hypothesis in run.hypotheses:
        assert len(hypothesis.clusters) == hypothesis.association.num_clusters
        for posterior in hypothesis.clusters:
            for block in posterior.blocks:
                assert torch.isfinite(block.gaussian.mean).all()
                assert torch.isfinite(block.gaussian.precision).all()
                assert (block.gaussian.precision >= 0).all()


@pytest.fixture
def make_clients():
    return clients_of


@pytest.fixture
def recipe():
    return recipe_of


@pytest.fixture
def federation():
    return federation_of


@pytest.fixture(params=NAMES)
def name(request):
    """Every method that the command line offers."""
    return request.param


@pytest.fixture(name="standard_run")
def standard_run_fixture():
    """Run, states and their bytes of a method on the standard clients; made once."""
    return standard_run


@pytest.fixture(name="everything")
def everything_fixture():
    return everything


@pytest.fixture(name="same_models")
def same_models_fixture():
    return same_models


@pytest.fixture(name="assert_lawful")
def assert_lawful_fixture():
    return assert_lawful
