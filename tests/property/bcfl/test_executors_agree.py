"""Batched or sequential, in any order and in any chunks: the same answers."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from bcfl import ClientData, Model, Objective
from bcfl.executors import BatchedExecutor, LoopExecutor
from bcfl.hypotheses.posterior import from_initial
from bcfl.protocol.requests import Score, Train
from bcfl.protocol.statistics.best_counts import BestModels
from bcfl.protocol.statistics.evidence import Evidence
from bcfl.protocol.statistics.loss import Loss
from bcfl.protocol.statistics.predictions import Predictions

CPU = torch.device("cpu")
DENSE = Model(
    name="dense",
    build=lambda: nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 3)),
    input_shape=(4,),
    num_outputs=3,
)
IMAGES = Model(
    name="images",
    build=lambda: nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1),
        nn.GroupNorm(2, 4),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(4, 3),
    ),
    input_shape=(1, 2, 2),
    num_outputs=3,
)
NORMALISED = Model(
    name="normalised",
    build=lambda: nn.Sequential(
        nn.Conv2d(1, 3, 2),
        nn.BatchNorm2d(3, momentum=0.3, eps=1e-3),
        nn.Tanh(),
        nn.Flatten(),
        nn.Linear(12, 5),
        nn.BatchNorm1d(5),
        nn.Tanh(),
        nn.Linear(5, 3),
    ),
    input_shape=(1, 3, 3),
    num_outputs=3,
)
REGRESSION = Model(
    name="regression",
    build=lambda: nn.Sequential(nn.Linear(4, 2)),
    input_shape=(4,),
    num_outputs=2,
    likelihood="gaussian",
)
LABELS = replace(REGRESSION, name="labels", likelihood="bernoulli")
MODELS = {model.name: model for model in (DENSE, IMAGES, NORMALISED, REGRESSION, LABELS)}

sizes = st.lists(st.integers(1, 40), min_size=1, max_size=6)
objectives = st.builds(
    Objective,
    local_steps=st.integers(1, 4),
    batch_size=st.sampled_from([1, 3, 8, 32, 100]),
    momentum=st.sampled_from([0.0, 0.9]),
    weight_decay=st.sampled_from([0.0, 0.01]),
    prior_weight=st.sampled_from([0.0, 1.0]),
    curvature=st.sampled_from(["samples", "uniform", "ggn", "empirical_fisher"]),
    curvature_samples=st.sampled_from([None, 5]),
)


def clients_of(counts, model):
    random = np.random.default_rng([*counts])

    def draw(count):
        inputs = random.normal(size=(count, *model.input_shape))
        if model.likelihood == "gaussian":
            return inputs, random.normal(size=(count, model.num_outputs))
        if model.likelihood == "bernoulli":
            return inputs, random.integers(0, 2, (count, model.num_outputs)).astype(float)
        return inputs, random.integers(0, model.num_outputs, count)

    return [ClientData.from_arrays(f"c{i}", draw(n), draw(n)) for i, n in enumerate(counts)]


def executors(model, clients, **options):
    loop = LoopExecutor.on(clients, model, 7, CPU, torch.float64)
    return loop, BatchedExecutor.on(clients, model, 7, CPU, torch.float64, **options)


def born(model, count=3):
    """Models of distinct parameters and running statistics."""
    initial = [[part.double() for part in model.initial(index)] for index in range(count)]
    posteriors = [
        from_initial(model, f"k{index}", mean, buffers + 0.2 * index, 2.0)
        for index, (mean, buffers) in enumerate(initial)
    ]
    return {posterior.key: posterior for posterior in posteriors}


@pytest.mark.parametrize("name", MODELS)
@settings(max_examples=15, deadline=None)
@given(counts=sizes, objective=objectives, memory=st.sampled_from([1, 20_000, None]))
def test_trainings_are_those_of_the_loop(name, counts, objective, memory):
    model = MODELS[name]
    clients, models = clients_of(counts, model), born(model)
    asked = [Train(data.client, key, objective) for data in clients for key in models]
    loop, batched = executors(model, clients, memory=memory)
    assert all(batched.supports(request) for request in asked)
    wanted, found = loop.answer(asked, models, 2), batched.answer(asked, models, 2)
    for request in asked:
        one, other = wanted[request], found[request]
        torch.testing.assert_close(other.mean, one.mean, rtol=1e-9, atol=1e-11)
        torch.testing.assert_close(other.curvature, one.curvature, rtol=1e-8, atol=1e-11)
        torch.testing.assert_close(other.buffers, one.buffers, rtol=1e-9, atol=1e-11)
        assert other.num_samples == one.num_samples


@settings(max_examples=15, deadline=None)
@given(counts=sizes, random=st.randoms(use_true_random=False), memory=st.sampled_from([1, 9_000]))
def test_order_changes_no_bit_and_batching_only_rounding(counts, random, memory):
    clients, models = clients_of(counts, DENSE), born(DENSE)
    objective = Objective(local_steps=3, batch_size=8, curvature="ggn")
    asked = [Train(data.client, key, objective) for data in clients for key in models]
    asked += [Score(client=data.client, models=tuple(models)) for data in clients]
    whole = executors(DENSE, clients)[1].answer(asked, models, 1)
    mixed = executors(DENSE, clients)[1].answer(random.sample(asked, len(asked)), models, 1)
    some = random.sample(asked, random.randint(1, len(asked)))
    part = executors(DENSE, clients, memory=memory)[1].answer(some, models, 1)
    for request in some:
        if isinstance(request, Score):
            assert mixed[request] == whole[request]
            for key in models:
                assert part[request][key].total == pytest.approx(whole[request][key].total, 1e-13)
        else:
            one, twin, other = whole[request], mixed[request], part[request]
            assert torch.equal(twin.mean, one.mean)
            assert torch.equal(twin.curvature, one.curvature)
            torch.testing.assert_close(other.mean, one.mean, rtol=1e-12, atol=1e-14)
            torch.testing.assert_close(other.curvature, one.curvature, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", MODELS)
@settings(max_examples=10, deadline=None)
@given(counts=sizes, samples=st.sampled_from([None, 4]), memory=st.sampled_from([1, None]))
def test_scores_are_those_of_the_loop(name, counts, samples, memory):
    model = MODELS[name]
    clients, models = clients_of(counts, model), born(model)
    keys = tuple(models)
    asked = [
        Score(client=data.client, models=keys[i % 2 :], statistic=Loss(), samples=samples)
        for i, data in enumerate(clients)
    ]
    loop, batched = executors(model, clients, memory=memory)
    wanted, found = loop.answer(asked, models, 0), batched.answer(asked, models, 0)
    for request in asked:
        assert list(found[request]) == list(request.models)
        for key in request.models:
            one, other = wanted[request][key], found[request][key]
            assert other.total == pytest.approx(one.total, rel=1e-10)
            assert other.standard_error == pytest.approx(one.standard_error, rel=1e-8, abs=1e-12)
            assert other.num_samples == one.num_samples


@pytest.mark.parametrize("pooling", ["probabilities", "logits"])
def test_predictions_are_those_of_the_loop(pooling):
    clients, models = clients_of([5, 1, 20], DENSE), born(DENSE, 2)
    asked = [
        Score(
            client=data.client,
            models=tuple(models),
            statistic=Predictions((0.25, 0.75), pooling),
            view="test",
        )
        for data in clients
    ]
    asked += [
        Score(client=data.client, models=tuple(models), statistic=BestModels()) for data in clients
    ]
    loop, batched = executors(DENSE, clients)
    wanted, found = loop.answer(asked, models, 0), batched.answer(asked, models, 0)
    for request in asked[:3]:
        assert found[request].nll == pytest.approx(wanted[request].nll, rel=1e-10)
        np.testing.assert_array_equal(found[request].confusion, wanted[request].confusion)
    for request in asked[3:]:
        np.testing.assert_array_equal(found[request].counts, wanted[request].counts)


@pytest.mark.parametrize("name", MODELS)
@settings(max_examples=8, deadline=None)
@given(counts=sizes, samples=st.sampled_from([None, 4]), memory=st.sampled_from([1, 9_000, None]))
def test_evidence_is_that_of_the_loop(name, counts, samples, memory):
    model = MODELS[name]
    clients, models = clients_of(counts, model), born(model)
    keys = tuple(models)
    asked = [
        Score(
            client=data.client,
            models=keys[i % 2 :],
            statistic=Evidence(),
            view=view,
            samples=samples,
        )
        for i, data in enumerate(clients)
        for view in ("train", "test")
    ]
    loop, batched = executors(model, clients, memory=memory)
    mixes = batched.network.mixes_samples
    assert all(batched.supports(request) is not mixes for request in asked)
    wanted, found = loop.answer(asked, models, 0), batched.answer(asked, models, 0)
    for request in asked:
        assert list(found[request]) == list(request.models)
        for key in request.models:
            one, other = wanted[request][key], found[request][key]
            assert other.log_likelihood == pytest.approx(one.log_likelihood, rel=1e-10)
            torch.testing.assert_close(other.gradient, one.gradient, rtol=1e-8, atol=1e-10)
            torch.testing.assert_close(other.curvature, one.curvature, rtol=1e-8, atol=1e-10)
            assert other.num_samples == one.num_samples
