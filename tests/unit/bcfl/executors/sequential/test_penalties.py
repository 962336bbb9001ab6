"""What terms, decay and prior add to a training's gradient, against autograd on the whole loss."""

import numpy as np
import pytest
import torch
from torch.func import functional_call

from bcfl import Objective
from bcfl.architecture.layout import BODY, CLASSIFIER
from bcfl.executors.sequential.penalties import Penalties
from bcfl.executors.sgd import SgdStep, prior_pull
from bcfl.protocol.regularizers import Contrast, Proximal, Sharing
from bcfl.protocol.requests import Train

SAMPLES = 7


@pytest.fixture
def models(batch_norm, newborn):
    return {p.key: p for p in (newborn(batch_norm, seed, 2.0) for seed in range(3))}


def regularised(model, models, objective, references):
    start, *_ = models
    request = Train("c", start, objective, references)
    penalties = Penalties.of(request, model, models)
    step = SgdStep(
        objective=objective,
        anchor=models[start].mean(model),
        pull=prior_pull(objective, models[start], model, SAMPLES),
        terms=penalties.of_parameter,
    )
    return penalties, step


def live(model):
    return model.initial(9)[0]


def test_nothing_asked_is_nothing_added(batch_norm, models):
    penalties, step = regularised(batch_norm, models, Objective(), ())
    gradients = torch.zeros(batch_norm.layout.num_parameters)
    step.add_gradients(live(batch_norm), gradients)
    assert not gradients.any()
    assert penalties.of_outputs(torch.ones(2, 2), torch.ones(2, 3)) == 0.0


def test_gradients_are_those_of_the_summed_penalties(batch_norm, models):
    """Of a proximal term, a contrast of classifiers, sharing of the body, decay and the prior."""
    _, one, two = models
    regularizers = (
        Proximal(0.5),
        Contrast(0.7, 0.3, part=CLASSIFIER),
        Sharing(0.2, BODY),
    )
    objective = Objective(weight_decay=0.1, prior_weight=1.5, regularizers=regularizers)
    _, step = regularised(batch_norm, models, objective, ((), (one, two), (two,)))
    parameters = live(batch_norm)
    gradients = torch.full_like(parameters, 3.0)
    step.add_gradients(parameters, gradients)

    w, means = parameters.clone().requires_grad_(), [m.mean(batch_norm) for m in models.values()]
    classifier, body = (batch_norm.chosen(part) for part in (CLASSIFIER, BODY))
    cosines = torch.stack(
        [torch.cosine_similarity(w[classifier], m[classifier], dim=0) for m in means]
    )
    loss = 0.25 * (w - means[0]).square().sum()
    loss = loss - 0.7 * torch.log_softmax(cosines / 0.3, dim=0)[0]
    loss = loss + 0.1 * (w - means[2])[body].square().sum()
    loss = (
        loss + 0.05 * w.square().sum() + 0.5 * 1.5 / SAMPLES * 2.0 * (w - means[0]).square().sum()
    )
    (expected,) = torch.autograd.grad(loss, w)
    torch.testing.assert_close(gradients, 3.0 + expected)


def test_outputs_are_compared_with_networks_at_rest(batch_norm, models):
    """Those use their own running statistics, and receive no gradient."""
    _, one, two = models
    penalties, _ = regularised(
        batch_norm, models, Objective(regularizers=(Contrast(0.7, 0.3, "outputs"),)), ((one, two),)
    )
    inputs = torch.from_numpy(np.random.default_rng(0).normal(size=(5, 3))).float()
    outputs = torch.randn(5, 2, requires_grad=True)
    loss = penalties.of_outputs(outputs, inputs)
    module, others = batch_norm.module().eval(), []
    for posterior in models.values():
        torch.nn.utils.vector_to_parameters(posterior.mean(batch_norm), module.parameters())
        others.append(functional_call(module, dict(module.named_buffers()), (inputs,)).detach())
    cosines = torch.stack([torch.cosine_similarity(outputs, o, dim=1) for o in others], dim=1)
    expected = -0.7 * torch.log_softmax(cosines / 0.3, dim=1)[:, 0].mean()
    torch.testing.assert_close(loss, expected)
    loss.backward()
    assert outputs.grad.abs().sum() > 0


def test_each_term_needs_its_models(batch_norm, models):
    with pytest.raises(ValueError, match="zip"):
        regularised(batch_norm, models, Objective(regularizers=(Proximal(), Sharing())), ((),))
    with pytest.raises(KeyError, match="elsewhere"):
        regularised(batch_norm, models, Objective(regularizers=(Sharing(),)), (("elsewhere",),))
