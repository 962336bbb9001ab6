"""Each distinct request is sent once, however many hypotheses ask."""

from dataclasses import dataclass, field

import pytest
import torch

from bcfl import Objective
from bcfl.protocol.answers import Failure, Trained
from bcfl.protocol.requests import Describe, Exchange, Score, Train
from bcfl.protocol.statistics.loss import LossSum
from bcfl.rounds.exchange import RoundExchange
from bcfl.rounds.ledger import failed_in_test, with_remedy

OBJECTIVE = Objective()


@dataclass
class Recording:
    """Answers everything but what `failing` clients are asked, and notes what it was asked."""

    failing: tuple = ()
    batches: list = field(default_factory=list)

    def answer(self, requests, models, round):
        self.batches.append(tuple(requests))
        return {r: self._one(r) for r in requests}

    def _one(self, request):
        if request.client in self.failing:
            return Failure("crashed", "out of memory")
        if isinstance(request, Train):
            return Trained(
                mean=torch.ones(8), buffers=torch.empty(0), curvature=torch.ones(()), num_samples=3
            )
        return {key: LossSum(float(len(key)), 0.0, 3) for key in request.models}


def conversation(models, *batches):
    """A generator that asks batch after batch and returns all replies."""
    got = []
    for batch in batches:
        got.append((yield Exchange(tuple(batch), models)))
    return got


@pytest.fixture
def talk(linear, newborn):
    names = ("k", "longer", "other", "m")
    models = {name: newborn(linear, seed) for seed, name in enumerate(names)}

    def of(executor, *batches):
        exchange = RoundExchange(executor, linear, 0)
        return exchange.drive(conversation(models, *batches)), exchange.ledger

    return of


def test_equal_trainings_are_sent_once(talk):
    executor = Recording()
    training = Train("a", "k", OBJECTIVE)
    other = Train("a", "k", Objective(local_steps=3))
    replies, ledger = talk(executor, [training, Train("a", "k", Objective()), other, training])
    assert executor.batches == [(training, other)]
    assert set(replies[0]) == {training, other}
    assert (ledger.trainings_requested, ledger.trainings_run, ledger.exchanges) == (4, 2, 1)


def test_pairs_of_client_and_model_are_shared_between_hypotheses(talk):
    executor = Recording()
    first, second = (
        Score(client="a", models=("k", "longer")),
        Score(client="a", models=("longer", "other")),
    )
    replies, ledger = talk(executor, [first, second, Score(client="b", models=("k",))])
    assert executor.batches == [
        (Score(client="a", models=("k", "longer", "other")), Score(client="b", models=("k",)))
    ]
    assert {k: s.total for k, s in replies[0][first].items()} == {"k": 1.0, "longer": 6.0}
    assert {k: s.total for k, s in replies[0][second].items()} == {"longer": 6.0, "other": 5.0}
    assert (ledger.scores_requested, ledger.scores_run) == (5, 4)


def test_scores_of_different_kinds_are_kept_apart(talk):
    executor = Recording()
    asked = [
        Score(client="a", models=("k",)),
        Score(client="a", models=("k",), samples=3),
        Score(client="a", models=("k",), view="test"),
    ]
    replies, _ = talk(executor, asked)
    assert set(executor.batches[0]) == set(asked)
    assert set(replies[0]) == set(asked)


def test_what_was_answered_before_is_not_asked_again(talk):
    executor = Recording()
    replies, ledger = talk(
        executor,
        [Score(client="a", models=("k",))],
        [Score(client="a", models=("k", "m"))],
        [Score(client="a", models=("m",))],
    )
    assert executor.batches == [
        (Score(client="a", models=("k",)),),
        (Score(client="a", models=("m",)),),
    ]
    assert set(replies[1][Score(client="a", models=("k", "m"))]) == {"k", "m"}
    assert replies[2][Score(client="a", models=("m",))]["m"].total == 1.0
    assert ledger.exchanges == 2


def test_a_failure_is_reported_once_and_not_asked_again(talk):
    executor = Recording(failing=("a",))
    scores = [Score(client="a", models=("k", "m")), Score(client="b", models=("k",))]
    replies, ledger = talk(executor, scores, scores, [Score(client="a", models=("m",))])
    assert executor.batches == [tuple(scores)]
    assert [set(r) for r in replies] == [{scores[1]}, {scores[1]}, set()]
    assert ledger.failures == ["a: out of memory, when scoring models on view 'train' (crashed)"]


@pytest.mark.parametrize(
    ("request_", "work"),
    [
        (Train("a", "k", OBJECTIVE), "when training on view 'train'"),
        (Train("a", "k", OBJECTIVE, views=("train", "memory")), "on view 'train' and 'memory'"),
        (
            Score(client="a", models=("k",), view="validation"),
            "scoring models on view 'validation'",
        ),
        (Score(client="a", models=("k",), view="test"), "when tested on view 'test'"),
        (Describe("a"), "when describing its samples"),
    ],
)
def test_a_failure_says_in_which_kind_of_work(talk, request_, work):
    _, ledger = talk(Recording(failing=("a",)), [request_])
    (failure,) = ledger.failures
    assert failure.startswith("a: out of memory, ")
    assert failure.endswith(f"{work} (crashed)")
    assert failed_in_test(failure) == ("test" in work)


def test_failures_have_the_usual_remedy():
    index = "a: IndexError: index out of range in self, at net.py:5 in forward, when ... (crashed)"
    assert "below its `num_embeddings`" in with_remedy(index)
    assert "scale inputs" in with_remedy("a: the mean is not finite (invalid)")
    assert with_remedy("a: KeyError: 1 (crashed)") == "a: KeyError: 1 (crashed)"


def test_a_request_without_an_answer_is_missing(talk):
    class Silent:
        def answer(self, requests, models, round):
            return {}

    replies, ledger = talk(Silent(), [Describe("a")])
    assert replies == [{}]
    assert ledger.failures == ["a: no answer (missing)"]


def test_requests_go_out_sorted_by_client(talk):
    executor = Recording()
    talk(executor, [Train(c, "k", OBJECTIVE) for c in ("b", "c", "a")])
    assert [r.client for r in executor.batches[0]] == ["a", "b", "c"]


def test_nothing_to_ask_is_no_exchange(talk):
    executor = Recording()
    replies, ledger = talk(executor, [])
    assert (replies, executor.batches, ledger.exchanges) == ([{}], [], 0)
