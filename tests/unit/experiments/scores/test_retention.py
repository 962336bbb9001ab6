from dataclasses import replace

import numpy as np
import pytest
import torch

from bcfl import Association, ClientData, Hypothesis
from bcfl.data.view import View
from bcfl.hypotheses.posterior import from_initial
from experiments.models import linear
from experiments.scores.retention import Retention

MODEL = linear(1, 2, bias=False)
SIGN = torch.tensor([1.0, -1.0])
"""Class 0 for positive inputs; its negative is the other concept."""


def view(flipped, count=4):
    inputs = torch.tensor([[1.0], [-1.0], [2.0], [-2.0]])[:count]
    return View(inputs, (inputs[:, 0] < 0).long() ^ flipped)


def client(name, *concepts):
    views = {}
    for step, flipped in enumerate(concepts):
        suffix = f":{step}" if step else ""
        views |= {f"train{suffix}": view(flipped), f"test{suffix}": view(flipped, 3)}
    return ClientData(name, views)


def hypothesis(labels, *means):
    models = [
        from_initial(MODEL, f"{index}", mean, torch.zeros(0), 1.0)
        for index, mean in enumerate(means)
    ]
    names = tuple("ab"[: len(labels)])
    return Hypothesis(
        clusters=tuple(models), association=Association(names, np.array(labels), len(models))
    )


def test_one_model_knows_the_concept_that_it_was_trained_on_last():
    clients = [client("a", 0, 1, 1), client("b", 0, 1, 1)]
    found = Retention.of(MODEL, hypothesis([0, 0], -SIGN), clients)
    assert (found.served, found.kept) == (0.5, 0.5)


def test_clusters_keep_what_the_serving_one_does_not_know():
    clients = [client("a", 0, 0, 1), client("b", 1, 0, 1)]
    found = Retention.of(MODEL, hypothesis([1, 1], SIGN, -SIGN), clients)
    assert found.served == pytest.approx(1 / 4)
    assert found.kept == 1.0


def test_clients_that_nobody_serves_count_for_what_is_kept_alone():
    clients = [client("a", 0, 1), client("b", 1, 1)]
    found = Retention.of(MODEL, hypothesis([-1, 0], SIGN, -SIGN), clients)
    assert (found.served, found.kept) == (0.0, 1.0)


def test_what_a_client_keeps_of_a_time_step_predicts_it():
    """Though another model fits the memory better."""
    clients = [client("a", 0, 1), client("b", 0, 1)]
    now = hypothesis([0, 1], SIGN, -SIGN)
    own = {"model of a at time step 0": now.clusters[1]}
    found = Retention.of(MODEL, replace(now, carried_models=own), clients)
    assert found.kept == 0.5
    assert found.kept_by_step == (0.5,)


def test_backward_transfer_is_the_change_since_the_end_of_the_step():
    clients = [client("a", 0, 1, 1), client("b", 0, 1, 1)]
    found = Retention.of(MODEL, hypothesis([0, 0], -SIGN), clients)
    assert found.kept_by_step == (0.0, 1.0)
    assert found.backward_transfer([0.75, 0.5, 0.9]) == pytest.approx((-0.75 + 0.5) / 2)


def test_one_time_step_has_no_past():
    found = Retention.of(MODEL, hypothesis([0, 0], SIGN), [client("a", 0), client("b", 1)])
    assert np.isnan([found.served, found.kept]).all()
