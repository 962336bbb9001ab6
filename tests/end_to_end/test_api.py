"""The library as its users meet it: imports, a run in a few lines, a policy of one's own."""

import subprocess
import sys
from dataclasses import dataclass

import networkx as nx
import numpy as np
import pytest
import torch

from bcfl import ClientData, Federation, Method, Objective, methods
from bcfl.policies import Ranking, candidate
from bcfl.protocol.requests import Exchange, Score
from bcfl.trackers import Consensus, MultiHypothesis
from experiments import models
from tests.recipes import built

torch.set_num_threads(1)  # the problems are too small for more

HEAVY = ("laplace", "pyro", "sklearn", "matplotlib", "experiments")


def test_importing_loads_nothing_heavy():
    code = (
        "import sys, bcfl, bcfl.methods, bcfl.rounds.checkpoint, bcfl.analysis.graphs\n"
        "from bcfl import *\n"
        "assert all(hasattr(bcfl, name) for name in bcfl.__all__)\n"
        f"print(sorted(n for n in {HEAVY!r} if n in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.fixture
def clients():
    """Eight clients; in one half of them a positive first feature means class 1, else class 0."""
    random = np.random.default_rng(0)
    made = []
    for index in range(8):
        x = random.normal(size=(60, 3)).astype(np.float32)
        y = ((x[:, 0] > 0) ^ (index % 2 == 1)).astype(np.int64)
        made.append(
            ClientData.from_arrays(f"client-{index}", (x[:40], y[:40]), (x[40:], y[40:]), index % 2)
        )
    return made


@dataclass(frozen=True)
class CoinFlips:
    """A policy of one's own: each client joins the better of two clusters that it draws."""

    num_clusters: int
    objective: Objective

    def associate(self, hypothesis, context):
        """Score two random clusters per client."""
        random = np.random.default_rng([context.seed, context.round])
        keys = [posterior.key for posterior in hypothesis.clusters]
        drawn = {c: random.permutation(len(keys))[:2] for c in context.participants}
        asked = [Score(client=c, models=tuple(keys[i] for i in two)) for c, two in drawn.items()]
        replies = yield Exchange.of(asked, hypothesis.clusters)
        labels = {
            score.client: keys.index(min(losses, key=lambda key: losses[key].total))
            for score, losses in replies.items()
        }
        return Ranking.only(candidate(hypothesis, labels, self.objective))


def test_a_custom_policy_can_replace_a_method(clients):
    policy = CoinFlips(3, Objective(local_steps=5, learning_rate=0.3))
    run = Federation(clients, models.mlp(3, 2), policy, seed=1, device="cpu").run(4)
    assert run.hypotheses.best.association.sizes.sum() == 8
    assert run.records[0].ledger.scores_run == 16
    again = Federation(clients, models.mlp(3, 2), policy, seed=1, device="cpu").run(4)
    assert [r.snapshot.associations[0].labels.tolist() for r in run.records] == [
        r.snapshot.associations[0].labels.tolist() for r in again.records
    ]


@pytest.mark.parametrize("tracker", [Consensus(3), MultiHypothesis(3)])
def test_a_custom_policy_runs_under_every_tracker(clients, tracker):
    method = Method(policy=CoinFlips(2, Objective(local_steps=2)), tracker=tracker)
    run = Federation(clients, models.mlp(3, 2), method, device="cpu").run(2)
    assert len(run.hypotheses) == 1
    np.testing.assert_allclose(run.association_probabilities().sum(axis=1), 1)


@pytest.mark.parametrize(
    "name", ["wecfl", "bcfl-g-w", "bcfl-c-3-w", "bcfl-mh-3-w", "bcfl-mht-4-w", "fesem", "ifca-w"]
)
def test_the_true_groups_are_found_and_served_better_than_by_one_model(clients, name):
    settings = dict(num_clusters=2, objective=Objective(local_steps=20, learning_rate=0.3))
    run = Federation(clients, models.mlp(3, 2), built(name, **settings), device="cpu").run(6)
    labels = run.hypotheses.best.association.labels
    groups = np.array([run.groups[c] for c in run.clients])
    assert len({(a, b) for a, b in zip(labels, groups, strict=True)}) == 2
    one = Federation(clients, models.mlp(3, 2), built("fedavg", **settings), device="cpu")
    assert accuracy(run) > 0.9
    assert accuracy(one.run(6)) < 0.7
    graph = run.association_graph(min_probability=0.5)
    assert {frozenset(part) for part in nx.connected_components(graph)} == {
        frozenset(c for c in run.clients if run.groups[c] == g) for g in (0, 1)
    }


def accuracy(run):
    confusion = sum(sums.confusion for sums in run.records[-1].evaluations.values())
    return np.trace(confusion) / confusion.sum()


def test_a_run_in_a_few_lines_has_all_documented_results(clients):
    settings = dict(num_clusters=2, objective=Objective(local_steps=5), temperature=2.0)
    federation = Federation(
        clients, models.mlp(3, 4, 2), methods.build("bcfl-mh-4", **settings), seed=3, device="cpu"
    )
    run = federation.run(rounds=3)
    assert run.association_probabilities().shape == (8, 2)
    assert run.association_entropy().shape == (8,)
    assert run.association_graph().number_of_nodes() == 8
    assert run.hypothesis_tree().number_of_nodes() >= 4
    prediction = run.predict("client-3", clients[3].views["test"].inputs)
    assert prediction.mean.shape == (20, 2)
    np.testing.assert_allclose(
        prediction.entropy, prediction.data_uncertainty + prediction.association_uncertainty
    )


def test_running_leaves_the_global_random_states_alone(clients):
    before = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    settings = dict(num_clusters=2, objective=Objective(local_steps=2))
    Federation(clients, models.mlp(3, 2), methods.build("bcfl-c-2-w", **settings)).run(3)
    assert torch.equal(before[0], torch.get_rng_state())
    assert (before[1] == np.random.get_state()[1]).all()  # noqa: NPY002
