from dataclasses import dataclass, field

import pytest

from bcfl import Objective
from bcfl.executors import Unreliable
from bcfl.protocol.answers import Failure
from bcfl.protocol.requests import Describe, Score, Train
from bcfl.protocol.statistics.predictions import Predictions

NAMES = [f"c{i}" for i in range(400)]


@dataclass
class Echo:
    asked: list = field(default_factory=list)

    def answer(self, requests, models, round):
        self.asked.extend(requests)
        return {request: request.client for request in requests}


def test_clients_drop_out_with_the_given_probability():
    asked = [Train(c, "k", Objective()) for c in NAMES]
    answers = Unreliable(Echo(), 0.3, 0).answer(asked, {}, 0)
    dropped = sum(isinstance(a, Failure) for a in answers.values())
    assert abs(dropped - 120) < 5 * (400 * 0.3 * 0.7) ** 0.5
    assert {a.kind for a in answers.values() if isinstance(a, Failure)} == {"missing"}


def test_about_half_of_those_that_drop_out_still_score():
    scores = [Score(client=c, models=("k",)) for c in NAMES]
    trainings = [Train(c, "k", Objective()) for c in NAMES]
    answers = Unreliable(Echo(), 0.5, 0).answer([*scores, *trainings], {}, 0)
    lost = {r.client for r in scores if isinstance(answers[r], Failure)}
    untrained = {r.client for r in trainings if isinstance(answers[r], Failure)}
    assert lost < untrained
    assert abs(len(lost) - len(untrained) / 2) < 5 * (len(untrained) / 4) ** 0.5


def test_the_draw_depends_on_seed_round_and_client_alone():
    asked = [Train(c, "k", Objective()) for c in NAMES]

    def dropped(requests, seed=0, round=0):
        answers = Unreliable(Echo(), 0.3, seed).answer(requests, {}, round)
        return {r.client for r, a in answers.items() if isinstance(a, Failure)}

    assert dropped(asked) == dropped(asked[::-1])
    assert dropped(asked[:50]) == dropped(asked) & set(NAMES[:50])
    assert len({frozenset(dropped(asked, *w)) for w in ((0, 0), (0, 1), (1, 0))}) == 3


def test_descriptions_and_tests_always_come():
    echo = Echo()
    asked = [
        Describe("c0"),
        Score(client="c0", models=("k",), statistic=Predictions((1.0,)), view="test"),
    ]
    assert set(Unreliable(echo, 1.0, 0).answer(asked, {}, 0).values()) == {"c0"}


def test_those_that_dropped_out_are_not_asked():
    echo = Echo()
    Unreliable(echo, 1.0, 0).answer([Train("c0", "k", Objective())], {}, 0)
    assert echo.asked == []


@pytest.mark.parametrize("probability", [-0.1, 1.1, float("nan")])
def test_a_probability_lies_between_0_and_1(probability):
    with pytest.raises(ValueError, match=f"drop_out must lie between 0 and 1, got {probability}"):
        Unreliable(Echo(), probability, 0)
