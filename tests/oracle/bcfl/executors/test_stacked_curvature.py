"""Curvatures batched over models, against Jacobians of one sample of one model."""

import pytest
import torch
from torch import nn
from torch.func import functional_call, jacrev

from bcfl import Model
from bcfl.executors.stacked.batched import network_of
from bcfl.executors.stacked.curvature import Curvatures
from bcfl.executors.stacked.samples import Samples
from experiments.models import fashion_cnn
from posteriors import diagonal_curvature

COUNTS = (1, 3, 9)


def strided():
    return nn.Sequential(
        nn.Conv2d(2, 4, (3, 2), stride=(2, 1), padding=(1, 0)),
        nn.ReLU(inplace=True),
        nn.Conv2d(4, 6, 2, groups=2, bias=False),
        nn.BatchNorm2d(6, eps=1e-3),
        nn.Tanh(),
        nn.Flatten(),
        nn.Linear(12, 3),
    )


def dilated():
    return nn.Sequential(
        nn.Conv2d(2, 4, 3, dilation=2, padding="same"),
        nn.GroupNorm(2, 4),
        nn.SiLU(),
        nn.Conv2d(4, 2, 1, padding="valid"),
        nn.AvgPool2d(2),
        nn.Flatten(),
        nn.Linear(8, 4, bias=False),
        nn.BatchNorm1d(4),
        nn.Sigmoid(),
        nn.Linear(4, 3),
    )


def convolved():
    return nn.Sequential(nn.Conv2d(2, 3, 4), nn.Flatten())


def dense():
    return nn.Sequential(nn.Flatten(), nn.Linear(32, 4), nn.Tanh(), nn.Linear(4, 3))


BUILDS = (strided, dilated, convolved, dense)


def stacked(model, dtype):
    """Three models, none of them at its initial running statistics."""
    random = torch.Generator().manual_seed(3)
    means = torch.stack([model.initial(seed)[0] for seed in range(len(COUNTS))])
    means += 0.3 * torch.randn(means.shape, generator=random)
    buffers = torch.stack([model.initial(0)[1]] * len(COUNTS))
    buffers += torch.rand(buffers.shape, generator=random)
    return means.to(dtype), buffers.to(dtype)


def drawn(model, dtype, counts=COUNTS):
    random = torch.Generator().manual_seed(4)
    total, names = sum(counts), [f"c{i}" for i in range(len(counts))]
    inputs = torch.randn(total, *model.input_shape, generator=random).to(dtype)
    if model.likelihood == "gaussian":
        targets = torch.randn(total, model.num_outputs, generator=random).to(dtype)
    else:
        targets = torch.randint(0, model.num_outputs, (total,), generator=random)
    first = [sum(counts[:i]) for i in range(len(counts))]
    chosen = [torch.arange(count) + start for count, start in zip(counts, first, strict=True)]
    samples = Samples(
        inputs,
        targets,
        dict(zip(names, first, strict=True)),
        dict(zip(names, counts, strict=True)),
    )
    return samples, chosen


def module_at(model, mean, buffers):
    module = model.build().to(mean.dtype).eval()
    nn.utils.vector_to_parameters(mean, module.parameters())
    for buffer, slot in zip(
        [b for b in module.buffers() if b.is_floating_point()], model.layout.buffers, strict=True
    ):
        buffer.copy_(buffers[slot.start : slot.stop].view(slot.shape))
    return module


def by_jacobians(model, mean, buffers, inputs, targets, kind):
    """Sum over samples of diag(J^T H J), H the loss's Hessian, or of squared loss gradients."""
    module = module_at(model, mean, buffers)
    parameters = {name: p.detach() for name, p in module.named_parameters()}
    total = torch.zeros_like(mean)
    for sample, target in zip(inputs, targets, strict=True):

        def outputs(weights, sample=sample):
            return functional_call(module, weights, sample[None])[0]

        jacobian = torch.cat([j.flatten(1) for j in jacrev(outputs)(parameters).values()], 1)
        values = outputs(parameters)
        if model.likelihood == "gaussian":
            hessian, grad_output = torch.eye(len(values), dtype=values.dtype), values - target
        else:
            p = values.softmax(0)
            hessian = p.diag() - p.outer(p)
            grad_output = p - torch.eye(len(values), dtype=values.dtype)[target]
        if kind == "ggn":
            total += torch.einsum("ip,ij,jp->p", jacobian, hessian, jacobian)
        else:
            total += (grad_output @ jacobian).square()
    return total


@pytest.mark.parametrize("memory", [1, 10**9])
@pytest.mark.parametrize("likelihood", ["categorical", "gaussian"])
@pytest.mark.parametrize("kind", ["ggn", "empirical_fisher"])
@pytest.mark.parametrize("build", BUILDS)
def test_diagonals_are_those_of_jacobians(build, kind, likelihood, memory):
    model = Model(
        name="made-up", build=build, input_shape=(2, 4, 4), num_outputs=3, likelihood=likelihood
    )
    means, buffers = stacked(model, torch.float64)
    samples, chosen = drawn(model, torch.float64)
    work = Curvatures(
        network=network_of(model), model=model, samples=samples, kind=kind, memory=memory
    )
    found = work.of(means, buffers, chosen)
    for mean, statistics, rows, curvature in zip(means, buffers, chosen, found, strict=True):
        wanted = by_jacobians(
            model, mean, statistics, samples.inputs[rows], samples.targets[rows], kind
        )
        torch.testing.assert_close(curvature, wanted, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("kind", ["ggn", "empirical_fisher"])
@pytest.mark.parametrize("norm", ["batch", "group", "none"])
@pytest.mark.parametrize(("dtype", "within"), [(torch.float64, 1e-10), (torch.float32, 1e-4)])
def test_the_network_of_the_papers(norm, kind, dtype, within):
    """In float32 within what one maximum over pixels changes that rounding tips, of thousands."""
    model = fashion_cnn(norm=norm)
    means, buffers = (part[:2] for part in stacked(model, dtype))
    samples, chosen = drawn(model, dtype, (7, 12))
    work = Curvatures(
        network=network_of(model), model=model, samples=samples, kind=kind, memory=10**8
    )
    for mean, statistics, rows, curvature in zip(
        means, buffers, chosen, work.of(means, buffers, chosen), strict=True
    ):
        module = module_at(model, mean, statistics)
        wanted = diagonal_curvature(module, samples.inputs[rows], samples.targets[rows], kind=kind)
        assert (curvature - wanted).norm() <= within * wanted.norm()
