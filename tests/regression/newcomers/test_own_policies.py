"""What a policy of one's own answers wrongly is told at once, with its class and the remedy."""

import re
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from bcfl import Association, ClientData, Federation, Method, Objective, methods
from bcfl.policies import Costs, FedAvg, Ranking, candidate, ranked
from bcfl.protocol import Exchange, Score
from bcfl.protocol.requests import Describe, Train
from bcfl.rounds import UntrainedWarning
from bcfl.trackers import Greedy

NAMES = ("c00", "c01", "c02", "c03")
OBJECTIVE = Objective(local_steps=1)


@dataclass(frozen=True)
class OwnCosts:
    """Ranks what a function of the participants says."""

    costs: Any
    num_clusters: int = 2
    objective: Objective = OBJECTIVE

    def associate(self, hypothesis, context):
        yield from ()
        return ranked(hypothesis, self.costs(), self.objective, "auto")


@dataclass(frozen=True)
class OwnRequest:
    """Sends one request and puts all clients in a given cluster."""

    request: Any
    num_clusters: int = 2
    objective: Objective = OBJECTIVE

    def associate(self, hypothesis, context):
        yield Exchange.of([self.request(hypothesis.clusters[0].key)], hypothesis.clusters)
        labels = dict.fromkeys(context.participants, 0)
        return Ranking.only(candidate(hypothesis, labels, self.objective))


@dataclass(frozen=True)
class OwnLabels:
    """Puts all clients in a given cluster, in a ranking that is made lazily."""

    label: Any
    num_clusters: int = 2
    objective: Objective = OBJECTIVE

    def associate(self, hypothesis, context):
        yield from ()
        labels = dict.fromkeys(context.participants, self.label)
        return Ranking(candidate(hypothesis, labels, self.objective) for _ in range(1))


@dataclass(frozen=True)
class AllLabels:
    """Makes one candidate of labels and an objective as they are given."""

    labels: Any
    trained: Any = OBJECTIVE
    num_clusters: int = 2
    objective: Objective = OBJECTIVE

    def associate(self, hypothesis, context):
        yield from ()
        return Ranking.only(candidate(hypothesis, self.labels, self.trained))


def run(policy):
    random = np.random.default_rng(0)
    clients = [
        ClientData.from_arrays(name, (random.normal(size=(6, 3)), [0, 1] * 3)) for name in NAMES
    ]
    federation = Federation(clients, nn.Linear(3, 2), policy, executor="loop", device="cpu")
    return federation.run(rounds=1)


def told(error):
    return "\n".join([str(error), *getattr(error, "__notes__", ())])


def costs(values, clients=NAMES, **others):
    return lambda: Costs(clients=clients, values=values, **others)


ONES = np.ones((4, 2))


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (costs(np.ones((4, 3))), "one column for each of the 2 clusters, got shape (4, 3)"),
        (costs(ONES, ("c00",) * 4), "must be distinct, got more than one of ['c00']"),
        (costs(ONES, ("c0x", *NAMES[1:])), "must be clients of the federation, got 'c0x'. Did you"),
        (costs(ONES, "abcd"), "clients of Costs must be a tuple of names, got 'abcd'"),
        (costs(np.where(np.eye(4, 2), np.nan, ONES)), "got NaN or -inf for 'c00', 'c01'"),
        (costs(np.array([[1, 2]] * 3 + [[np.inf] * 2])), "got only +inf for 'c03'"),
        (costs(-np.inf * ONES), "+inf for a cluster that a client cannot join, got NaN or -inf"),
        (costs(np.ones((2, 2))), "(clients, clusters), here 4 rows, got shape (2, 2)"),
        (costs(np.ones(4)), "(clients, clusters), here 4 rows, got shape (4,)"),
        (costs([[1.0, "a"]] * 4), "values of Costs must be real numbers, got text"),
        (costs(ONES, judged=np.ones((4, 3))), "judged of Costs must have shape (4, 2)"),
        (costs(ONES, offsets=np.ones((4, 1))), "offsets of Costs must have shape (4, 2)"),
        (costs(ONES, log_prior=np.nan * ONES), "log_prior of Costs must have shape (4, 2) and no"),
        (costs(ONES, belief_temperature=-1), "belief_temperature of Costs must be positive"),
    ],
)
def test_wrong_costs_are_errors_of_the_policy(made, message):
    with pytest.raises((TypeError, ValueError), match=re.escape(message)) as raised:
        run(OwnCosts(made))
    assert "OwnCosts.associate" in told(raised.value)


@pytest.mark.parametrize(
    "made",
    [
        costs([[0.0, 1.0]] * 4, list(NAMES)),
        costs(torch.tensor([[0.0, 1.0]] * 4)),
        costs(np.array([[0, np.inf]] * 4)),
        costs(np.array([[0, 1]] * 4), cluster_size=(0, 4)),
    ],
    ids=["lists", "tensor", "closed cluster", "whole numbers"],
)
def test_costs_are_read_from_what_numpy_reads(made):
    found = run(OwnCosts(made)).hypotheses.best.association
    assert found.labels.tolist() == [0, 0, 0, 0]


def test_costs_without_clients_change_nothing():
    with pytest.warns(UntrainedWarning, match="no client was asked to train"):
        found = run(OwnCosts(costs(np.array([]), ()))).hypotheses.best.association
    assert found.labels.tolist() == [-1, -1, -1, -1]


@pytest.mark.parametrize(
    "request_of",
    [
        lambda client: lambda key: Score(client=client, models=(key,)),
        lambda client: lambda key: Train(client, key, OBJECTIVE),
        lambda client: lambda key: Describe(client),
    ],
    ids=["score", "train", "describe"],
)
def test_requests_to_clients_that_are_not_there_are_errors_of_the_policy(request_of):
    message = "OwnRequest.associate must ask clients of the federation, got 'c0x' .* mean 'c0"
    with pytest.raises(ValueError, match=message):
        run(OwnRequest(request_of("c0x")))
    assert not run(OwnRequest(request_of("c01"))).records[0].ledger.failures


@pytest.mark.parametrize("label", [0.5, 1.0, "a", None, float("nan"), True])
def test_labels_that_are_no_whole_numbers_are_named(label):
    message = f"labels must be whole numbers from 0 to 1, got {label!r} for 'c00'"
    with pytest.raises(ValueError, match=re.escape(message)) as raised:
        run(OwnLabels(label))
    assert "OwnLabels.associate" in told(raised.value)


@pytest.mark.parametrize("label", [1, np.int64(1), np.uint8(1), torch.tensor(1)])
def test_labels_may_be_whole_numbers_of_any_library(label):
    assert run(OwnLabels(label)).hypotheses.best.association.labels.tolist() == [1] * 4


@pytest.mark.parametrize("labels", [[0] * 4, np.zeros(4, int)])
def test_labels_are_by_client(labels):
    message = r"labels must be a mapping from client to cluster, such as \{'c00': 0\}, got "
    with pytest.raises(TypeError, match=message):
        run(AllLabels(labels))


def test_the_objective_of_a_candidate_is_one():
    with pytest.raises(TypeError, match="got the class Objective; call it"):
        run(AllLabels({"c00": 0}, Objective))


def test_an_association_holds_whole_numbers():
    with pytest.raises(TypeError, match="labels must be an array of whole numbers, got float64"):
        Association(("a", "b"), np.array([0.5, 1]), 2)


def lacking(**attributes):
    return SimpleNamespace(associate=lambda hypothesis, context: None, **attributes)


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (lacking(objective=OBJECTIVE), "SimpleNamespace has no `num_clusters`"),
        (lacking(num_clusters=2), "SimpleNamespace has no `objective`"),
        (lacking(num_clusters=0, objective=OBJECTIVE), "at least 1, SimpleNamespace has 0"),
        (lacking(num_clusters="2", objective=OBJECTIVE), "SimpleNamespace has '2'"),
        (lacking(num_clusters=2, objective="sgd"), "bcfl.Objective, SimpleNamespace has 'sgd'"),
        (FedAvg, "with `associate`, got the class FedAvg; call it: FedAvg(objective)"),
        ("ifca", "got 'ifca'; a method by its name: bcfl.methods.build(name)"),
        (3, "policy must be a policy with `associate`, got 3"),
    ],
)
def test_a_method_says_what_a_policy_lacks(policy, message):
    with pytest.raises((TypeError, ValueError), match=re.escape(message)):
        Method(policy=policy)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("tracker", "greedy", "`candidates_per_parent` and `step`, such as .*, got 'greedy'"),
        ("tracker", lacking(step=len, candidates_per_parent=1.5), "SimpleNamespace has 1.5"),
        ("tracker", Greedy, r"got the class Greedy; call it: Greedy\(\)"),
        ("aggregation", "mean", "aggregation must be a bcfl.Aggregation, got 'mean'"),
        ("name", 3, "name must be text, got 3"),
        ("common_start", "yes", "common_start must be True or False, got 'yes'"),
        ("prior_precision", "a", "prior_precision must be positive and finite, got 'a'"),
        ("validation", "a", r"validation must lie in \[0, 1\), got 'a'"),
        ("starts", 1.5, "starts must be a whole number of at least 1, got 1.5"),
        ("architecture", "additive", "architecture must be a function .*, got 'additive'"),
        ("pooling", "mean", "pooling must be one of 'probabilities', 'logits', got 'mean'"),
        ("finetuned", True, "finetuned must be a bcfl.Objective or None, got True"),
    ],
)
def test_a_method_checks_its_parts(name, value, message):
    with pytest.raises((TypeError, ValueError), match=message):
        Method(policy=FedAvg(OBJECTIVE), **{name: value})


def test_a_method_is_shown_on_a_short_line():
    assert repr(methods.build("ifca")) == "Method(ifca: LikelihoodAssociation, Greedy)"
    assert len(repr(methods.build("default"))) < 100
