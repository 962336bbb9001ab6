from dataclasses import replace

import numpy as np
import pytest
import torch

from bcfl import Association, ClientData, Federation, Hypothesis, Objective, drive
from bcfl.data.names import TRAIN, VALIDATION
from bcfl.policies import LikelihoodAssociation, RoundContext
from bcfl.policies.bayes.association_prior import AssociationPrior
from bcfl.policies.bayes.held_out import held_out_losses
from bcfl.protocol.driving import run_exchanges
from bcfl.protocol.requests import Score
from bcfl.protocol.statistics.loss import LossSum
from bcfl.rounds.method import Method
from bcfl.trackers import MultiHypothesis

NAMES = ("a", "b", "c")
TRAINED = {"a": (10.0, 14.0), "b": (13.0, 12.0), "c": (20.0, 23.0)}
TESTED = {"a": (3.0, 2.0), "b": (5.0, 4.5), "c": (7.0, 1.0)}


@pytest.fixture
def parent(linear, newborn):
    clusters = (newborn(linear, 0), newborn(linear, 1))
    return Hypothesis(clusters=clusters, association=Association(NAMES, np.array([0, 0, -1]), 2))


@pytest.fixture
def judged(parent, context):
    """Let a policy rank; returns its exchanges and its ranking."""

    def of(policy, tested=TESTED, names=NAMES):
        keys = [posterior.key for posterior in parent.clusters]

        def answer(r):
            table = TRAINED if r.view == TRAIN else tested
            if r.client in table:
                return {k: LossSum(table[r.client][keys.index(k)], 0.0, 5) for k in r.models}

        steps = policy.associate(parent, context(names, candidates_per_parent=None))
        ranking, exchanges = drive(steps, answer, return_exchanges=True)
        return exchanges, ranking

    return of


@pytest.mark.parametrize(
    ("staying", "best", "weight"),
    [
        (None, (0, 1, 0), -(3 + 4.5 + 7) + np.log([0.5, 0.5, 0.5]).sum()),
        (0.6, (0, 1, 0), -(3 + 4.5 + 7) + np.log([0.6, 0.4, 0.5]).sum()),
        (0.9, (0, 0, 0), -(3 + 5 + 7) + np.log([0.9, 0.9, 0.5]).sum()),
    ],
)
def test_the_weight_of_the_best_is_the_likelihood_of_its_validation_samples(
    judged, staying, best, weight
):
    """Training samples and prior associate, b by a margin of 1 nat; validation samples judge."""
    prior = AssociationPrior(staying)
    policy = LikelihoodAssociation(
        num_clusters=2, objective=Objective(), temperature=1.0, judge="held_out", prior=prior
    )
    _, ranking = judged(policy)
    reference = float(ranking.reference)
    every = {tuple(c.association.labels): c.log_weight + reference for c in ranking}
    assert next(iter(every)) == best
    assert every[best] == pytest.approx(weight)
    total = np.logaddexp.reduce(list(every.values()))
    assert ranking.log_total + reference == pytest.approx(total)


@pytest.mark.parametrize("temperature", [1.0, 4.0, "mean"])
def test_differences_between_associations_are_those_of_training(judged, temperature):
    by = {
        judge: judged(
            LikelihoodAssociation(
                num_clusters=2, objective=Objective(), temperature=temperature, judge=judge
            )
        )[1]
        for judge in ("training", "held_out")
    }
    ours, theirs = ([(c.association.labels.tolist(), c.log_weight) for c in r] for r in by.values())
    assert [labels for labels, _ in ours] == [labels for labels, _ in theirs]
    shifts = [a - b for (_, a), (_, b) in zip(ours, theirs, strict=True)]
    assert shifts == pytest.approx([shifts[0]] * 8)
    assert by["training"].log_total - by["held_out"].log_total == pytest.approx(shifts[0])
    assert shifts[0] == pytest.approx(0)


def test_costs_hold_the_held_out_losses_in_all_clusters(judged, parent):
    """The other columns are for those that remember a client that is absent later."""
    prior = AssociationPrior(0.6)
    policy = LikelihoodAssociation(
        num_clusters=2, objective=Objective(), temperature=1.0, judge="held_out", prior=prior
    )
    exchanges, ranking = judged(policy, {c: TESTED[c] for c in "ac"})
    keys = tuple(posterior.key for posterior in parent.clusters)
    assert exchanges[1].requests == tuple(
        Score(client=c, models=keys, view=VALIDATION) for c in NAMES
    )
    costs = next(iter(ranking)).costs
    stayed, left = -np.log([0.6, 0.4])
    expected = [[3 + stayed, 2 + left], [stayed, left], [7 + np.log(2), 1 + np.log(2)]]
    judged_costs = costs.judged + costs.judged_offsets.sum(axis=1, keepdims=True)
    assert judged_costs.tolist() == [pytest.approx(row) for row in expected]
    assert costs.competing is costs.judged
    trained = [[TRAINED[c][k] for k in range(2)] for c in NAMES]
    assert (costs.values + costs.offsets.sum(axis=1, keepdims=True) - trained).tolist() == [
        pytest.approx(row) for row in ([stayed, left], [stayed, left], [np.log(2)] * 2)
    ]


def weight_of_best(ranking):
    return next(iter(ranking)).log_weight + float(ranking.reference)


def test_clients_that_do_not_answer_contribute_nothing(judged):
    policy = LikelihoodAssociation(
        num_clusters=2, objective=Objective(), temperature=1.0, judge="held_out"
    )
    _, ranking = judged(policy, {"b": TESTED["b"]})
    assert weight_of_best(ranking) == pytest.approx(-4.5 + 3 * np.log(0.5))
    _, ranking = judged(policy, {})
    assert weight_of_best(ranking) == pytest.approx(3 * np.log(0.5))


def test_losses_of_those_without_an_answer_are_zero(parent, context):
    keys = [posterior.key for posterior in parent.clusters]

    def answer(r):
        if r.client != "b":
            return {k: LossSum(v, 0.0, 5) for k, v in zip(keys, TESTED[r.client], strict=True)}

    steps = held_out_losses(parent, NAMES, context(NAMES))
    losses, (_,) = drive(steps, answer, return_exchanges=True)
    assert losses.tolist() == [[3, 2], [0, 0], [7, 1]]


def test_clients_known_to_have_no_validation_samples_are_not_asked(parent, context):
    known = replace(context(NAMES), num_validation={"a": 3, "b": 0})
    asked = next(held_out_losses(parent, NAMES, known)).requests
    assert [request.client for request in asked] == ["a", "c"]
    none = replace(known, num_validation=dict.fromkeys(NAMES, 0))
    assert not drive(held_out_losses(parent, NAMES, none)).any()


def test_a_run_is_judged_by_validation_samples(linear, make_client):
    """The judgement of an executor's answers, against cross-entropy on the validation view."""
    clients = []
    for index in range(4):
        data = make_client(f"c{index}", 12, index % 2)
        views = {TRAIN: data.views[TRAIN], VALIDATION: make_client(f"v{index}", 6).views[TRAIN]}
        clients.append(ClientData(data.client, views))
    policy = LikelihoodAssociation(
        num_clusters=2,
        objective=Objective(local_steps=3, batch_size=4),
        temperature=1.0,
        judge="held_out",
    )
    federation = Federation(
        clients, linear, Method(policy=policy, tracker=MultiHypothesis(16)), device="cpu"
    )
    start, after = federation.initial_state(), federation.run(1).hypotheses
    assert after.log_captured_mass == pytest.approx(0, abs=1e-9)
    modules = []
    for posterior in start.hypotheses.best.clusters:
        module = linear.module()
        torch.nn.utils.vector_to_parameters(posterior.mean(linear), module.parameters())
        modules.append(module)

    def loss(client, view, cluster):
        data = client.views[view]
        return float(
            torch.nn.functional.cross_entropy(
                modules[cluster](data.inputs), data.targets, reduction="sum"
            ).detach()
        )

    train = np.array([[loss(c, TRAIN, k) for k in range(2)] for c in clients])
    best = train.argmin(axis=1)
    assert after.best.association.labels.tolist() == best.tolist()
    tested = sum(loss(c, VALIDATION, k) for c, k in zip(clients, best, strict=True))
    ranking = _ranked(policy, federation, start)
    assert weight_of_best(ranking) == pytest.approx(-tested + 4 * np.log(0.5), rel=1e-5)


def _ranked(policy, federation, state):
    names = tuple(d.client for d in federation.clients)
    context = RoundContext(
        round=0,
        participants=names,
        num_samples=dict.fromkeys(names, 12),
        seed=0,
        model=federation.model,
        candidates_per_parent=None,
    )
    return run_exchanges(
        policy.associate(state.hypotheses.best, context),
        lambda exchange: federation.engine.answer(list(exchange.requests), exchange.models, 0),
    )


def test_other_judges_are_refused():
    with pytest.raises(ValueError, match="judge must be one of training, held_out, got 'test'"):
        LikelihoodAssociation(num_clusters=2, objective=Objective(), judge="test")
