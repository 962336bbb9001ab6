from dataclasses import replace

import pytest

from bcfl import Objective
from bcfl.architecture.model import BlockSpec
from bcfl.protocol.requests import Describe, Score, Train
from bcfl.protocol.statistics.evidence import Evidence
from bcfl.protocol.statistics.support import PairedSupport
from bcfl.rounds.ledger import Ledger


@pytest.fixture
def sent(batch_norm, newborn):
    """34 parameters and 8 running statistics: 168 bytes a model."""
    models = {key: newborn(batch_norm, seed) for seed, key in enumerate("km")}

    def of(*requests):
        ledger = Ledger()
        for request in requests:
            ledger.ask(request)
            ledger.send(request, models)
            ledger.receive(request, batch_norm)
        return ledger

    return of


def test_a_model_goes_down_once_per_client(sent):
    ledger = sent(
        Score(client="a", models=("k", "m")),
        Train("a", "k", Objective()),
        Train("b", "k", Objective()),
    )
    assert ledger.bytes_down == 3 * 168
    assert (ledger.scores_requested, ledger.trainings_requested) == (2, 2)


def test_a_trained_model_comes_up_with_its_precision_where_it_has_one(sent):
    flat = sent(Train("a", "k", Objective())).bytes_up
    laplace = sent(Train("a", "k", Objective(curvature="ggn"))).bytes_up
    assert flat == 168 + 8
    assert laplace - flat == 4 * 34


def test_the_prior_of_a_penalised_training_goes_down_too(sent):
    plain = sent(Train("a", "k", Objective())).bytes_down
    penalised = sent(Train("a", "k", Objective(prior_weight=1.0))).bytes_down
    assert plain == 168
    assert penalised - plain == 4 * 34


def test_scores_come_up_as_numbers_and_evidence_as_vectors(sent):
    assert sent(Score(client="a", models=("k", "m"))).bytes_up == 2 * 8
    assert sent(Score(client="a", models=("k",), statistic=Evidence())).bytes_up == 8 + 2 * 4 * 34


def test_a_support_test_sends_two_models_down_and_two_numbers_up(sent):
    ledger = sent(
        Score(client="a", models=("k", "m"), statistic=PairedSupport()),
        Score(client="a", models=("m", "k"), statistic=PairedSupport()),
    )
    assert (ledger.bytes_down, ledger.bytes_up) == (2 * 168, 2 * 2 * 8)


def test_what_a_client_has_is_not_sent_and_what_it_keeps_is_not_reported(sent):
    ledger = sent(
        Train("a", "k", Objective(), (("m",),), held=("k",)),
        Score(client="b", models=("k", "m"), statistic=PairedSupport(), held=("m",)),
        Score(client="b", models=("k",), statistic=Evidence(), reported=False),
    )
    assert (ledger.bytes_down, ledger.bytes_up) == (2 * 168, 168 + 8 + 2 * 8)
    assert ledger.parameters_run == 4 * 34


def test_descriptions_cost_nothing(sent):
    ledger = sent(Describe("a"))
    assert (ledger.bytes_down, ledger.bytes_up) == (0, 0)


@pytest.fixture
def rounds(batch_norm, newborn):
    """Ledgers of rounds in which clients do some trainings, or do not answer."""
    models = {key: newborn(batch_norm, seed) for seed, key in enumerate("klmn")}

    def of(before, *trainings, silent=()):
        cached = frozenset() if before is None else before.cached_after()
        ledger = Ledger.of(batch_norm, cached)
        for training in trainings:
            ledger.send(training, models)
            if training.client not in silent:
                ledger.receive(training, batch_norm)
        return ledger

    return of


def refers(client, start, *references):
    return Train(client, start, Objective(), (references,))


def test_references_are_sent_once_and_kept_while_they_are_named(rounds):
    first = rounds(None, refers("a", "k", "m"))
    second = rounds(first, refers("a", "l", "m"), refers("b", "l", "m"))
    third = rounds(second, refers("a", "l", "n"))  # b is absent
    fourth = rounds(third, refers("a", "k", "m"), refers("b", "k", "m"))
    assert first.bytes_down == 2 * 168
    assert second.bytes_down == (1 + 2) * 168
    assert second.parameters_run == 4 * 34
    assert fourth.bytes_down == (2 + 1) * 168


def test_a_model_that_is_start_and_reference_is_kept(rounds):
    first = rounds(None, refers("a", "k", "k"))
    assert first.bytes_down == 168
    assert rounds(first, refers("a", "l", "k")).bytes_down == 168


def test_who_does_not_answer_keeps_what_it_had(rounds):
    first = rounds(None, refers("a", "k", "m"))
    second = rounds(first, refers("a", "l", "n"), silent="a")
    third = rounds(second, refers("a", "k", "m"))
    assert third.bytes_down == 168
    assert rounds(second, refers("a", "k", "n")).bytes_down == 2 * 168


def test_blocks_that_nobody_trains_are_kept(linear, newborn):
    still = replace(linear, blocks=(BlockSpec(frozen=True),))
    models, training = {"k": newborn(still, 0)}, Train("a", "k", Objective())
    ledger = Ledger.of(still)
    ledger.send(training, models)
    ledger.receive(training, still)
    again = Ledger.of(still, ledger.cached_after())
    again.send(training, models)
    assert ledger.bytes_down > 0
    assert again.bytes_down == 0
