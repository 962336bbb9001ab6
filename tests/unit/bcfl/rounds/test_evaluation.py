import numpy as np
import pytest

from bcfl import Association, Hypothesis, HypothesisSet, Objective, drive
from bcfl.protocol.answers import Trained
from bcfl.protocol.requests import Score, Train
from bcfl.rounds.evaluation import evaluate, evaluate_finetuned, served_mixture

NAMES = ("a", "b")


@pytest.fixture
def hypotheses(linear, newborn):
    models = [newborn(linear, seed) for seed in range(3)]
    soft = np.array([[0.5, 0.5], [0.0, 0.0]])
    parts = [
        Hypothesis(
            clusters=(models[0], models[1]),
            association=Association(NAMES, np.array([1, -1]), 2),
            log_weight=np.log(0.6),
        ),
        Hypothesis(
            clusters=(models[1], models[2]),
            association=Association(NAMES, np.array([0, -1]), 2, soft),
            log_weight=np.log(0.4),
        ),
    ]
    return models, HypothesisSet.weighted(parts, 1, 0.0)


def test_a_client_is_served_by_a_mixture_over_all_hypotheses(hypotheses):
    models, kept = hypotheses
    mixture = {m.key: p for m, p in served_mixture(kept, "a").items()}
    assert mixture == pytest.approx({models[1].key: 0.6 + 0.2, models[2].key: 0.2})


def test_a_client_never_seen_is_served_by_all_models(hypotheses):
    models, kept = hypotheses
    mixture = {m.key: p for m, p in served_mixture(kept, "b").items()}
    wanted = {models[0].key: 0.3, models[1].key: 0.3 + 0.2, models[2].key: 0.2}
    assert mixture == pytest.approx(wanted)


def test_clients_are_asked_for_their_test_samples(hypotheses, linear):
    models, kept = hypotheses
    exchange = next(evaluate(kept, NAMES, linear))
    first, second = exchange.requests
    assert isinstance(first, Score)
    assert (first.client, first.statistic.name, first.view) == ("a", "predictions", "test")
    assert sum(second.statistic.weights) == pytest.approx(1)
    assert set(exchange.models) == {m.key for m in models}


def test_those_who_do_not_answer_are_left_out(hypotheses, linear):
    _, kept = hypotheses
    second = next(evaluate(kept, NAMES, linear)).requests[1]
    assert drive(evaluate(kept, NAMES, linear), {second: "sums"}) == {"b": "sums"}


@pytest.mark.parametrize("view", ["test", "validation"])
def test_finetuned_models_are_scored_on_the_samples_that_were_named(hypotheses, linear, view):
    _, kept = hypotheses
    steps = evaluate_finetuned(kept, NAMES, Objective(), linear, view)
    trainings = next(steps).requests
    assert all(isinstance(request, Train) for request in trainings)
    mean, buffers = linear.initial(9)
    reply = Trained(mean=mean, buffers=buffers, curvature=mean**2, num_samples=3)
    scores = steps.send(dict.fromkeys(trainings, reply)).requests
    assert [score.view for score in scores] == [view, view]
