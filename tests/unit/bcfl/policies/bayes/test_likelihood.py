from fractions import Fraction

import numpy as np
import pytest

from bcfl import Association, Hypothesis, Objective, drive
from bcfl.policies import LikelihoodAssociation
from bcfl.policies.bayes.association_prior import AssociationPrior
from bcfl.protocol.requests import Score, Train
from bcfl.protocol.statistics.loss import Loss, LossSum

NAMES = ("a", "b", "c")
LOSSES = {"a": (1.0, 4.0), "b": (6.0, 2.0), "c": (3.0, 3.5)}


@pytest.fixture
def ranked(context):
    """Let a policy rank; returns what it asked, (labels, log weight) of each, and the total."""

    def of(policy, parent, losses=LOSSES, participants=NAMES):
        keys = [posterior.key for posterior in parent.clusters]

        def answer(r):
            if r.client in losses:
                return {k: LossSum(losses[r.client][keys.index(k)], 0.0, 2) for k in r.models}

        steps = policy.associate(parent, context(participants, candidates_per_parent=None))
        ranking, (exchange,) = drive(steps, answer, return_exchanges=True)
        found = list(ranking)
        labels = [(c.association.labels.tolist(), c.log_weight) for c in found]
        return exchange, labels, (found, ranking.log_total)

    return of


def relative(found):
    return [(labels, weight - found[0][1]) for labels, weight in found]


@pytest.mark.parametrize("solver", ["heap", "murty", "auto"])
@pytest.mark.parametrize(("temperature", "scale"), [(1.0, 1.0), (2.0, 0.5), ("mean", 0.5)])
def test_associations_come_in_order_of_their_summed_loss(
    parent, ranked, solver, temperature, scale
):
    policy = LikelihoodAssociation(
        num_clusters=2, objective=Objective(), temperature=temperature, solver=solver
    )
    _, found, (_, log_total) = ranked(policy, parent)
    wanted = sorted(
        (sum(LOSSES[n][i] for n, i in zip(NAMES, labels, strict=True)), list(labels))
        for labels in np.ndindex(2, 2, 2)
    )
    assert [labels for labels, _ in found] == [labels for _, labels in wanted]
    assert [w for _, w in relative(found)] == pytest.approx(
        [scale * (wanted[0][0] - loss) for loss, _ in wanted]
    )
    weights = [w for _, w in found]
    assert log_total == pytest.approx(np.logaddexp.reduce(weights))


def test_argmin_knows_the_best_alone(parent, ranked):
    policy = LikelihoodAssociation(num_clusters=2, objective=Objective(), solver="argmin")
    _, found, _ = ranked(policy, parent)
    assert [labels for labels, _ in found] == [[0, 1, 0]]


def test_every_participant_is_asked_about_every_model(parent, ranked):
    policy = LikelihoodAssociation(num_clusters=2, objective=Objective(), score_samples=7)
    exchange, _, _ = ranked(policy, parent, participants=("a", "c"))
    keys = tuple(posterior.key for posterior in parent.clusters)
    assert exchange.requests == tuple(
        Score(client=c, models=keys, statistic=Loss(), samples=7) for c in ("a", "c")
    )
    assert set(exchange.models) == set(keys)


def test_equal_models_are_asked_about_once(linear, newborn, ranked):
    same = newborn(linear, 0)
    parent = Hypothesis(clusters=(same, same), association=Association.unseen(NAMES, 2))
    exchange, found, _ = ranked(
        LikelihoodAssociation(num_clusters=2, objective=Objective()),
        parent,
        {n: (1.0, 1.0) for n in NAMES},
    )
    assert all(request.models == (same.key,) for request in exchange.requests)
    assert len(found) == 8
    assert [w for _, w in relative(found)] == [0.0] * 8


def test_those_who_do_not_answer_keep_their_place(parent, ranked):
    policy = LikelihoodAssociation(num_clusters=2, objective=Objective())
    _, found, _ = ranked(policy, parent, {"b": LOSSES["b"]})
    assert [labels for labels, _ in found] == [[-1, 1, -1], [-1, 0, -1]]


def test_without_any_answer_the_association_stays(parent, ranked):
    _, found, (_, log_total) = ranked(
        LikelihoodAssociation(num_clusters=2, objective=Objective()), parent, {}
    )
    assert found == [([-1, -1, -1], 0.0)]
    assert log_total == 0.0


def test_members_train_from_their_clusters_model(parent, ranked):
    objective = Objective(batch_size=3)
    _, _, ((best, *_), _) = ranked(
        LikelihoodAssociation(num_clusters=2, objective=objective), parent
    )
    keys = [posterior.key for posterior in parent.clusters]
    assert best.trainings == tuple(
        Train(n, keys[i], objective) for n, i in zip(NAMES, (0, 1, 0), strict=True)
    )
    assert best.contribution_weights.tolist() == [[1, 0], [0, 1], [1, 0]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_clusters": 0}, "num_clusters must be a whole number of at least 1, got 0"),
        ({"evidence": "full"}, "evidence must be one of separable, joint, .*, got 'full'"),
        ({"evidence_draws": 0}, "evidence_draws must be a whole number of at least 1, got 0"),
        ({"evidence": "joint"}, "joint evidence needs a number as temperature"),
        ({"score_samples": 0}, "score_samples must be a whole number of at least 1 or None, got 0"),
        ({"temperature": 0.0}, r"temperature must be .* positive.*, got 0\.0"),
        ({"temperature": -1.0}, "temperature must be .*positive"),
        ({"temperature": "hot"}, "temperature must be .*'mean'.*, got 'hot'"),
        ({"solver": "greedy"}, "solver must be one of .*, got 'greedy'"),
    ],
)
def test_a_policy_names_what_is_wrong(arguments, message):
    with pytest.raises(ValueError, match=message):
        LikelihoodAssociation(**{"num_clusters": 2, "objective": Objective(), **arguments})


@pytest.mark.parametrize("temperature", [1.0, 3.0, "mean"])
@pytest.mark.parametrize("offset", [2.0**20, 2.0**45])
def test_a_constant_in_all_losses_of_a_client_cancels(parent, context, temperature, offset):
    """Where the addition is exact; the reference moves by exactly the tempered constant."""
    policy = LikelihoodAssociation(
        num_clusters=2,
        objective=Objective(),
        temperature=temperature,
        prior=AssociationPrior(staying=0.7),
    )
    keys = [posterior.key for posterior in parent.clusters]

    def ranking(added):
        def answer(r):
            row = [loss + (added if r.client == "b" else 0.0) for loss in LOSSES[r.client]]
            return {k: LossSum(row[keys.index(k)], 0.0, 3) for k in r.models}

        return drive(policy.associate(parent, context(NAMES, candidates_per_parent=None)), answer)

    plain, moved = ranking(0.0), ranking(offset)
    assert moved.log_total == plain.log_total
    divisor = 3 if temperature == "mean" else Fraction(temperature)
    apart = moved.reference - plain.reference + Fraction(offset) / divisor
    assert abs(apart) < Fraction(1, 10**13)
    weights = [
        [(c.association.labels.tolist(), c.log_weight) for c in one] for one in (plain, moved)
    ]
    assert weights[0] == weights[1]
