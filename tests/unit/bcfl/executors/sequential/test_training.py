"""Local training against torch.optim.SGD and closed forms."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from bcfl import Model, Objective
from bcfl.executors.batches import training_batches
from bcfl.executors.sequential.flat_module import FlatModule
from bcfl.executors.sequential.training import train_locally
from bcfl.hypotheses.posterior import Block, Posterior
from bcfl.protocol.requests import Train
from posteriors import DiagonalGaussian

CPU = torch.device("cpu")
WHEN = (5, 2)


@pytest.fixture
def train(newborn, make_client):
    def of(model, objective, samples=11, start=None, client=None):
        data = client or make_client("c1", samples)
        start = start or newborn(model)
        view = data.views["train"]
        workspace = FlatModule(model, CPU, torch.float32)
        return train_locally(
            workspace,
            model,
            {start.key: start},
            view,
            Train(data.client, start.key, objective),
            WHEN,
        )

    return of


def with_torch(model, start, data, objective, penalty=None):
    """The same steps by torch's own optimiser on a module of its own."""
    module = model.build()
    nn.utils.vector_to_parameters(start.mean(model), module.parameters())
    optimiser = torch.optim.SGD(
        module.parameters(),
        lr=objective.learning_rate,
        momentum=objective.momentum,
        weight_decay=objective.weight_decay,
    )
    view = data.views["train"]
    for batch in training_batches(
        len(view), objective.batch_size, objective.local_steps, *WHEN, data.client
    ):
        optimiser.zero_grad()
        loss = functional.cross_entropy(module(view.inputs[batch]), view.targets[batch])
        if penalty is not None:
            loss = loss + penalty(nn.utils.parameters_to_vector(module.parameters()))
        loss.backward()
        optimiser.step()
    return nn.utils.parameters_to_vector(module.parameters()).detach(), module


@pytest.mark.parametrize("batch_size", [1, 4, 11, 500])
@pytest.mark.parametrize("momentum", [0.0, 0.9])
@pytest.mark.parametrize("weight_decay", [0.0, 0.05])
def test_steps_are_those_of_torch(
    linear, train, newborn, make_client, batch_size, momentum, weight_decay
):
    objective = Objective(
        local_steps=12,
        batch_size=batch_size,
        learning_rate=0.3,
        momentum=momentum,
        weight_decay=weight_decay,
    )
    trained = train(linear, objective)
    wanted, _ = with_torch(linear, newborn(linear), make_client("c1", 11), objective)
    torch.testing.assert_close(trained.mean, wanted)
    assert trained.num_samples == 11


@pytest.fixture
def under_prior(shared_body, newborn):
    """A model with a prior whose precision differs between parameters."""
    born = newborn(shared_body)
    blocks = []
    for index, block in enumerate(born.blocks):
        mean = block.gaussian.mean
        prior = DiagonalGaussian(mean, torch.linspace(0.5, 2 + index, len(mean)))
        blocks.append(
            Block(
                key=f"k{index}",
                name=block.name,
                gaussian=prior,
                base=prior,
                prior=prior,
                buffers=block.buffers,
            )
        )
    return Posterior(tuple(blocks))


def test_the_prior_steps_are_implicit(shared_body, train, under_prior, make_client):
    """The gradient of half the weighted squared distance is that after the step.

    A step minimises the loss, linear around the old parameters, plus the prior term, plus the
    squared length of the step over twice the learning rate.
    """
    precision = under_prior.prior_precision(shared_body)
    anchor = under_prior.mean(shared_body)
    objective = Objective(
        local_steps=8,
        batch_size=4,
        learning_rate=0.1,
        momentum=0.9,
        weight_decay=0.01,
        prior_weight=0.7,
    )
    data = make_client("c1", 11)
    view, pull = data.views["train"], 0.7 / 11 * precision
    module = shared_body.build()
    parameters, velocity = anchor.clone(), torch.zeros_like(anchor)
    for batch in training_batches(11, 4, 8, *WHEN, "c1"):
        nn.utils.vector_to_parameters(parameters, module.parameters())
        loss = functional.cross_entropy(module(view.inputs[batch]), view.targets[batch])
        gradients = torch.autograd.grad(loss, list(module.parameters()))
        gradient = nn.utils.parameters_to_vector(gradients) + 0.01 * parameters
        before, old = parameters, velocity
        parameters = (before - 0.1 * (gradient + 0.9 * old) + 0.1 * pull * anchor) / (
            1 + 0.1 * pull
        )
        velocity = (before - parameters) / 0.1
    trained = train(shared_body, objective, start=under_prior, client=data)
    torch.testing.assert_close(trained.mean, parameters, rtol=1e-4, atol=1e-5)


def test_no_prior_is_too_sharp_for_the_learning_rate(linear, train, newborn):
    """An explicit step would diverge: learning rate x precision / samples is far above 2."""
    sharp = newborn(linear, precision=1e9)
    objective = Objective(local_steps=30, learning_rate=1.0, momentum=0.9, prior_weight=1.0)
    trained = train(linear, objective, start=sharp)
    torch.testing.assert_close(trained.mean, sharp.mean(linear), rtol=1e-5, atol=1e-6)


def test_running_statistics_are_those_of_torch(batch_norm, train, newborn, make_client):
    objective = Objective(local_steps=6, batch_size=4, learning_rate=0.1)
    trained = train(batch_norm, objective)
    wanted, module = with_torch(batch_norm, newborn(batch_norm), make_client("c1", 11), objective)
    torch.testing.assert_close(trained.mean, wanted)
    statistics = torch.cat([module[1].running_mean, module[1].running_var])
    torch.testing.assert_close(trained.buffers, statistics)


@pytest.mark.parametrize(("samples", "batch_size"), [(1, 4), (5, 1)])
def test_a_batch_of_one_keeps_the_running_statistics(
    batch_norm, train, newborn, samples, batch_size
):
    trained = train(batch_norm, Objective(local_steps=3, batch_size=batch_size), samples=samples)
    assert torch.equal(trained.buffers, newborn(batch_norm).buffers(batch_norm))
    assert not torch.equal(trained.mean, newborn(batch_norm).mean(batch_norm))


def test_the_starting_model_is_left_as_it_was(batch_norm, train, newborn):
    start = newborn(batch_norm)
    mean, buffers = start.mean(batch_norm).clone(), start.buffers(batch_norm).clone()
    train(batch_norm, Objective(local_steps=5, batch_size=4), start=start)
    assert torch.equal(start.mean(batch_norm), mean)
    assert torch.equal(start.buffers(batch_norm), buffers)


def test_flat_curvatures_are_numbers(linear, train):
    assert train(linear, Objective(curvature="samples")).curvature.tolist() == 11.0
    assert train(linear, Objective(curvature="uniform")).curvature.tolist() == 1.0


def test_the_generalised_gauss_newton_of_logistic_regression(linear, train, make_client):
    trained = train(linear, Objective(curvature="ggn"))
    x = make_client("c1", 11).views["train"].inputs.double()
    weights, bias = trained.mean[:6].view(2, 3).double(), trained.mean[6:].double()
    p = (x @ weights.T + bias).softmax(1)
    spread = (p * (1 - p)).T
    wanted = torch.cat([(spread @ x.square()).flatten(), spread.sum(1)])
    torch.testing.assert_close(trained.curvature.double(), wanted, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    "drawing", [{"curvature_samples": 4}, {"curvature": "mc_ggn"}], ids=["subset", "targets"]
)
def test_curvature_with_draws_is_unbiased(linear, newborn, make_client, drawing):
    """Over many rounds it averages to the curvature of all samples; a round draws once."""
    data, start = make_client("c1", 12), newborn(linear)
    workspace = FlatModule(linear, CPU, torch.float32)
    still = Objective(
        local_steps=1, batch_size=4, learning_rate=0.0, curvature="ggn", curvature_samples=None
    )

    def curvature(objective, round):
        request = Train("c1", start.key, objective)
        return train_locally(
            workspace, linear, {start.key: start}, data.views["train"], request, (0, round)
        ).curvature.double()

    few = replace(still, **drawing)
    drawn = torch.stack([curvature(few, round) for round in range(400)])
    assert torch.equal(drawn[0], curvature(few, 0))
    assert not torch.equal(drawn[0], drawn[1])
    error = drawn.std(0) / 400**0.5
    assert ((drawn.mean(0) - curvature(still, 0)).abs() < 5 * error).all()


def test_regression_descends_half_the_squared_error(regression, train):
    random = np.random.default_rng(0)
    x, y = random.normal(size=(9, 3)).astype(np.float32), random.normal(size=9).astype(np.float32)
    from bcfl import ClientData

    data = ClientData.from_arrays("c1", (x, y))
    trained = train(
        regression,
        Objective(local_steps=4000, batch_size=100, learning_rate=0.1, momentum=0.0),
        client=data,
    )
    design = np.column_stack([x, np.ones(9)])
    wanted, *_ = np.linalg.lstsq(design, y, rcond=None)
    np.testing.assert_allclose(trained.mean, wanted, atol=1e-3)


def test_dropout_depends_on_seed_round_and_client_alone(train):
    model = Model(
        name="dropout",
        build=lambda: nn.Sequential(nn.Dropout(0.5), nn.Linear(3, 2)),
        input_shape=(3,),
        num_outputs=2,
    )
    torch.manual_seed(1)
    first = train(model, Objective(local_steps=3, batch_size=4))
    before = torch.get_rng_state()
    again = train(model, Objective(local_steps=3, batch_size=4))
    assert torch.equal(first.mean, again.mean)
    assert torch.equal(before, torch.get_rng_state())
