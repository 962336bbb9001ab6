from dataclasses import replace

import pytest

from bcfl import Objective
from bcfl.federation import Ledger
from bcfl.model import BlockSpec
from bcfl.requests import Describe, Score, Train


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
        Score("a", ("k", "m")), Train("a", "k", Objective()), Train("b", "k", Objective())
    )
    assert ledger.bytes_down == 3 * 168
    assert (ledger.scores_asked, ledger.trainings_asked) == (2, 2)


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
    assert sent(Score("a", ("k", "m"))).bytes_up == 2 * 8
    assert sent(Score("a", ("k",), "evidence")).bytes_up == 8 + 2 * 4 * 34


def test_a_support_test_sends_two_models_down_and_two_numbers_up(sent):
    ledger = sent(Score("a", ("k", "m"), "support"), Score("a", ("m", "k"), "support"))
    assert (ledger.bytes_down, ledger.bytes_up) == (2 * 168, 2 * 2 * 8)


def test_descriptions_cost_nothing(sent):
    ledger = sent(Describe("a"))
    assert (ledger.bytes_down, ledger.bytes_up) == (0, 0)


def test_references_are_sent_once_and_held_while_they_are_named(batch_norm, newborn):
    models = {key: newborn(batch_norm, seed) for seed, key in enumerate("klmn")}
    refers = Train("a", "k", Objective(), (("m",),))
    first = Ledger.of(batch_norm)
    first.send(refers, models)
    assert first.bytes_down == 2 * 168

    second = Ledger.of(batch_norm, first.still_held())
    second.send(Train("a", "l", Objective(), (("m",),)), models)
    second.send(Train("b", "l", Objective(), (("m",),)), models)
    assert second.bytes_down == (1 + 2) * 168
    assert second.parameters_run == 4 * 34

    third = Ledger.of(batch_norm, second.still_held())  # b is absent
    third.send(Train("a", "l", Objective(), (("n",),)), models)
    fourth = Ledger.of(batch_norm, third.still_held())
    for client in "ab":
        fourth.send(Train(client, "k", Objective(), (("m",),)), models)
    assert fourth.bytes_down == (2 + 1) * 168


def test_blocks_that_nobody_trains_are_held(linear, newborn):
    still = replace(linear, blocks=(BlockSpec(held=True),))
    models = {"k": newborn(still, 0)}
    ledger = Ledger.of(still)
    ledger.send(Train("a", "k", Objective()), models)
    again = Ledger.of(still, ledger.still_held())
    again.send(Train("a", "k", Objective()), models)
    assert ledger.bytes_down > 0
    assert again.bytes_down == 0
