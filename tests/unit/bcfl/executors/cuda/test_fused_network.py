"""Our convolutions against torch's, on a GPU or in Triton's interpreter (TRITON_INTERPRET=1)."""

import os

import pytest
import torch
from torch import nn
from torch.nn import functional

from bcfl import Model
from bcfl.executors.cuda import fused_network
from bcfl.executors.cuda.fused_network import FusedNetwork, has_triton
from bcfl.executors.stacked.grouped import GroupedNetwork
from bcfl.executors.stacked.network import Stacked, weights_of
from experiments.models import fashion_cnn

runs = torch.cuda.is_available() or os.environ.get("TRITON_INTERPRET") == "1"
needs_triton = pytest.mark.skipif(
    not (has_triton() and runs), reason="needs Triton, and a GPU or TRITON_INTERPRET=1"
)
pytestmark = pytest.mark.filterwarnings("ignore:Conversion of an array:DeprecationWarning")
PLACE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def of_layers(*layers, shape=(1, 6, 6)):
    return Model(
        name="made-up", build=lambda: nn.Sequential(*layers), input_shape=shape, num_outputs=2
    )


@pytest.mark.parametrize(
    "layers",
    [
        (nn.Flatten(), nn.Linear(36, 2)),
        (nn.Conv2d(1, 2, 3, stride=2), nn.Flatten(), nn.Linear(8, 2)),
        (nn.Conv2d(1, 2, 3, dilation=2), nn.Flatten(), nn.Linear(8, 2)),
        (nn.Conv2d(1, 2, 3, padding="same"), nn.Flatten(), nn.Linear(72, 2)),
        (nn.Conv2d(1, 2, 3, padding=1, padding_mode="circular"), nn.Flatten(), nn.Linear(72, 2)),
        (nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Flatten(), nn.Linear(32, 2)),
        (nn.Conv2d(1, 2, 3), nn.ReLU(), nn.MaxPool2d(3), nn.Flatten(), nn.Linear(2, 2)),
        (nn.Conv2d(1, 2, 3), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(8, 2)),
    ],
)
def test_other_layers_are_left_to_torch(layers, monkeypatch):
    monkeypatch.setattr(fused_network, "has_triton", lambda: True)
    assert FusedNetwork.of(of_layers(*layers)) is None


def test_convolutions_are_ours_where_triton_is_installed(monkeypatch):
    model = fashion_cnn(norm="none")
    monkeypatch.setattr(fused_network, "has_triton", lambda: True)
    assert isinstance(FusedNetwork.of(model), FusedNetwork)
    monkeypatch.setattr(fused_network, "has_triton", lambda: False)
    assert FusedNetwork.of(model) is None


def test_more_images_than_the_kernels_count_are_left_to_torch(monkeypatch):
    """Places, and zeros around images, are counted in 32 bits."""
    model = fashion_cnn(norm="none")
    monkeypatch.setattr(fused_network, "has_triton", lambda: True)
    fused = FusedNetwork.of(model)
    convolutions = [module for module in model.module().modules() if type(module) is nn.Conv2d]
    first, second = (max(one.in_channels, one.out_channels) for one in convolutions)
    assert fused.numbers == max(32 * 32 * first, 18 * 18 * second)
    monkeypatch.setattr(fused_network, "MOST_NUMBERS", 2 * fused.numbers)
    parameters = torch.stack([model.initial(seed)[0] for seed in range(2)])
    stacked = Stacked(weights_of(model.layout, parameters))
    inputs, found = torch.randn(2, 3, 1, 28, 28), []
    for network in (fused, fused.plain):
        gradients = torch.empty_like(parameters)
        into = weights_of(model.layout, gradients)
        network.gradients(stacked, inputs, lambda outputs: outputs.softmax(2), into)
        found.append((gradients, network.outputs(stacked, inputs)))
    for ours, theirs in zip(*found, strict=True):
        assert torch.equal(ours, theirs)
    counted = []
    monkeypatch.setattr(
        FusedNetwork,
        "_outputs",
        lambda self, weights, some: (
            counted.append(some.shape[1]) or torch.zeros(*some.shape[:2], 10)
        ),
    )
    one = Stacked(weights_of(model.layout, parameters[:1]))
    assert fused.outputs_of_one(one, inputs).shape == (2, 3, 10)
    assert counted == [2, 2, 2]


@needs_triton
@pytest.mark.parametrize(
    ("channels", "outputs", "height", "width", "kernel", "padding"),
    [(1, 4, 6, 6, 5, 2), (16, 32, 6, 8, 5, 2), (3, 5, 5, 7, 3, 0), (32, 16, 6, 6, 3, 1)],
)
def test_a_convolution_and_its_gradients(channels, outputs, height, width, kernel, padding):
    from bcfl.executors.cuda.fused import Convolution

    random = torch.Generator().manual_seed(0)

    def number(*shape):
        return torch.randn(*shape, generator=random).to(PLACE).requires_grad_()

    problems = 3
    x = number(problems, 2, height, width, channels)
    weight = number(problems, outputs, channels, kernel, kernel)
    bias = number(problems, outputs)
    found = Convolution.apply(x, weight, bias, (padding, padding))
    exact = torch.stack(
        [
            functional.conv2d(
                x[i].double().permute(0, 3, 1, 2),
                weight[i].double(),
                bias[i].double(),
                padding=padding,
            ).permute(0, 2, 3, 1)
            for i in range(problems)
        ]
    )
    grad_output = number(*exact.shape).detach()
    assert (found - exact).norm() <= 1e-6 * exact.norm()
    ours = torch.autograd.grad(found, (x, weight, bias), grad_output)
    theirs = torch.autograd.grad(exact, (x, weight, bias), grad_output.double())
    for one, other in zip(ours, theirs, strict=True):
        assert (one - other).norm() <= 1e-6 * other.norm()


@needs_triton
@pytest.mark.parametrize("shape", [(2, 3, 4, 6, 5), (1, 2, 5, 7, 16)])
def test_relu_with_pooling_and_its_gradient(shape):
    from bcfl.executors.cuda.fused import RectifiedPool

    random = torch.Generator().manual_seed(0)
    x = torch.randn(shape, generator=random).to(PLACE).requires_grad_()
    found = RectifiedPool.apply(x)
    images = x.flatten(0, 1).permute(0, 3, 1, 2)
    exact = functional.max_pool2d(images.relu(), 2).permute(0, 2, 3, 1).reshape(found.shape)
    grad_output = torch.randn(exact.shape, generator=random).to(PLACE)
    assert torch.equal(found, exact)
    (ours,) = torch.autograd.grad(found, x, grad_output)
    assert torch.equal(ours, torch.autograd.grad(exact, x, grad_output)[0])


@needs_triton
def test_what_is_not_a_number_stays_so():
    from bcfl.executors.cuda.fused import RectifiedPool

    x = torch.zeros(4, 1, 2, 2, 1, device=PLACE)
    for corner in range(4):
        x[corner, 0, corner // 2, corner % 2] = torch.nan
    assert RectifiedPool.apply(x).isnan().all()


@needs_triton
def test_the_network_of_the_papers():
    model = fashion_cnn(norm="none")
    fused, grouped = FusedNetwork.of(model), GroupedNetwork.of(model)
    random = torch.Generator().manual_seed(0)
    parameters = torch.stack([model.initial(seed)[0] for seed in range(2)]).to(PLACE)
    inputs = torch.randn(2, 3, 1, 28, 28, generator=random).to(PLACE)
    stacked = Stacked(weights_of(model.layout, parameters))
    one = Stacked(weights_of(model.layout, parameters[:1]))
    found = []
    for network in (fused, grouped):
        gradients = torch.empty_like(parameters)
        into = weights_of(model.layout, gradients)
        network.gradients(stacked, inputs, lambda outputs: outputs.softmax(2), into)
        outputs = network.outputs(stacked, inputs)
        found.append((gradients, outputs, network.outputs_of_one(one, inputs)))
    for ours, theirs in zip(*found, strict=True):
        assert (ours - theirs).norm() <= 1e-5 * theirs.norm()
