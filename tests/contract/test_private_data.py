"""What a run can do needs no more of its clients than answers to requests."""

import gc
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
import torch

from bcfl import ClientData, Federation, Objective, PredictionRule, Run
from bcfl.executors import LoopExecutor
from bcfl.methods import build
from bcfl.protocol.answers import Failure
from bcfl.protocol.requests import Describe, Score, Train
from bcfl.rounds.evaluation import evaluate, evaluate_finetuned
from experiments import models
from posteriors.predictive import TuningGrid

GRID = TuningGrid((1.0, 100.0), (0.5, 1.0, 2.0))
OBJECTIVE = Objective(local_steps=3, batch_size=8)


ELSEWHERE = {}
"""Executors by address: a test's network."""


class Remote:
    """Reaches clients elsewhere: what it holds is a way to them, not their samples."""

    def __init__(self, executor):
        self.address = id(self)
        ELSEWHERE[self.address] = executor

    def answer(self, requests, models, round):
        assert all(isinstance(request, Describe | Score | Train) for request in requests)
        return ELSEWHERE[self.address].answer(requests, models, round)


@dataclass
class Silent:
    """Answers nothing, and notes what it was asked."""

    asked: list = field(default_factory=list)

    def answer(self, requests, models, round):
        self.asked += requests
        return {request: Failure("missing", "gone") for request in requests}


def clients():
    random, found = np.random.default_rng(0), []
    for index in range(4):
        x = random.normal(3.0 * (-1) ** index, 1, size=(30, 3)).astype(np.float32)
        y = ((x[:, 0] > 0) ^ (index % 2)).astype(np.int64)
        found.append(ClientData.from_arrays(f"c{index}", (x[:20], y[:20]), (x[20:], y[20:])))
    return found


@pytest.fixture(scope="module")
def local():
    settings = dict(num_clusters=2, objective=OBJECTIVE, calibration=0.3, temperature=10.0)
    return Federation(clients(), models.mlp(3, 6, 2), build("bcfl-mh-3", **settings)).run(3)


@pytest.fixture(scope="module")
def remote(local):
    return replace(local, executor=Remote(local.executor))


def reachable(start):
    """All objects that can be reached from one, but for classes, modules and functions."""
    kinds = (type, type(gc), type(reachable))
    seen, waiting = {}, [start]
    while waiting:
        value = waiting.pop()
        if id(value) in seen or isinstance(value, kinds):
            continue
        seen[id(value)] = value
        waiting += gc.get_referents(value)
    return list(seen.values())


def test_no_sample_can_be_reached_from_a_run(local, remote):
    assert any(isinstance(value, ClientData) for value in reachable(local))
    held = [value for value in reachable(remote) if isinstance(value, ClientData | torch.Tensor)]
    assert not any(isinstance(value, ClientData) for value in held)
    assert not any(value.ndim == 2 and value.shape[1:] == (3,) for value in held)


@pytest.mark.parametrize(
    "predictive",
    [None, "linearised", PredictionRule(predictive="monte-carlo", prior_precision=50.0)],
)
def test_predictions_and_ood_scores_are_those_of_a_local_run(local, remote, predictive):
    x = clients()[0].views["test"].inputs
    one, other = (run.predict("c1", x, predictive) for run in (local, remote))
    np.testing.assert_array_equal(other.mean, one.mean)
    np.testing.assert_array_equal(other.ood_score, one.ood_score)


def test_predictions_for_a_newcomer_are_those_of_a_local_run(local, remote):
    view = clients()[2].views["test"]
    one, other = (
        run.predict_new(view.inputs, (view.inputs, view.targets)) for run in (local, remote)
    )
    np.testing.assert_array_equal(other.mean, one.mean)
    np.testing.assert_array_equal(other.ood_score, one.ood_score)


@pytest.mark.parametrize("name", ["plug-in", "monte-carlo", "linearised", "probit", "bridge"])
def test_tuning_is_that_of_a_local_run(local, remote, name):
    assert remote.tuned(name, grid=GRID) == local.tuned(name, grid=GRID)
    assert remote.rule == local.rule


def test_evaluations_are_those_of_a_local_run(local, remote):
    def nlls(run, steps):
        return {client: sums.nll for client, sums in run.ask(steps).items()}

    served = [
        nlls(run, evaluate(run.hypotheses, run.clients, run.model)) for run in (local, remote)
    ]
    assert served[0] == served[1]
    assert served[0] == {c: sums.nll for c, sums in local.records[-1].evaluations.items()}
    finetuned = [
        nlls(run, evaluate_finetuned(run.hypotheses, run.clients, OBJECTIVE, run.model))
        for run in (local, remote)
    ]
    assert finetuned[0] == finetuned[1] != served[0]


def test_a_run_without_reachable_clients_still_predicts(local):
    silent = Silent()
    run = replace(local, executor=silent)
    prediction = run.predict("c0", np.zeros((2, 3), np.float32))
    assert prediction.ood_score is None
    assert run.rule == PredictionRule()
    assert {request.client for request in silent.asked} == set(run.clients)


def test_a_restored_state_needs_only_an_executor(local):
    executor = Remote(
        LoopExecutor.on(clients(), local.model, 0, torch.device("cpu"), torch.float32)
    )
    run = Run(model=local.model, state=local.state, records=(), groups={}, executor=executor)
    x = clients()[0].views["test"].inputs
    assert run.predict("c0", x, "plug-in").ood_score.shape == (10,)
