"""The fast pooling against torch's: the same bits, forward and back."""

import math

import pytest
import torch
from torch import nn

from bcfl import ClientData, Model, Objective
from bcfl.clients import TRAIN
from bcfl.executors.flat_module import FlatModule
from bcfl.executors.pooling import PairwiseMaxPool2d, with_fast_pooling
from bcfl.executors.scoring import CHUNK, rows_at_once
from bcfl.executors.training import train_locally
from bcfl.posterior import birth
from bcfl.requests import Train

CPU = torch.device("cpu")


def images(*shape, dtype=torch.float32, kinds=5):
    """Whole numbers, so that many of a window are equal."""
    return torch.randint(kinds, shape, generator=torch.Generator().manual_seed(0)).to(dtype)


def values_and_gradient(layer, inputs):
    inputs = inputs.clone().requires_grad_()
    outputs = layer(inputs)
    weights = torch.randn(outputs.shape, generator=torch.Generator().manual_seed(1))
    return outputs, *torch.autograd.grad(outputs, inputs, weights.to(outputs))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    "shape", [(3, 2, 4, 6), (1, 1, 2, 2), (5, 3, 28, 28), (2, 1, 5, 7), (2, 3, 2, 8), (4, 4, 6)]
)
def test_same_bits_as_torch_with_equal_numbers_in_a_window(shape, dtype):
    inputs = images(*shape, dtype=dtype)
    ours = values_and_gradient(PairwiseMaxPool2d(2), inputs)
    theirs = values_and_gradient(nn.MaxPool2d(2), inputs)
    assert all(map(torch.equal, ours, theirs))


def test_the_first_of_equal_numbers_by_rows_gets_the_gradient():
    inputs = torch.tensor([[[[0.0, 5.0], [5.0, 0.0]]]])
    _, slopes = values_and_gradient(PairwiseMaxPool2d(2), inputs)
    assert slopes.flatten().nonzero().tolist() == [[1]]


def test_noncontiguous_and_mirrored_images():
    inputs = images(3, 6, 4, 2).permute(0, 3, 2, 1)
    ours = values_and_gradient(PairwiseMaxPool2d(2), inputs)
    theirs = values_and_gradient(nn.MaxPool2d(2), inputs)
    assert all(map(torch.equal, ours, theirs))


@pytest.mark.parametrize("value", [float("inf"), float("-inf"), float("nan")])
def test_what_is_not_finite_passes_as_in_torch(value):
    inputs = images(2, 1, 4, 4)
    inputs[0, 0, 1, 2] = inputs[1, 0, 0, 0] = value
    ours, slopes = values_and_gradient(PairwiseMaxPool2d(2), inputs)
    theirs, wanted = values_and_gradient(nn.MaxPool2d(2), inputs)
    torch.testing.assert_close(ours, theirs, rtol=0, atol=0, equal_nan=True)
    if not math.isnan(value):
        assert torch.equal(slopes, wanted)
    assert slopes.isfinite().all()


def test_several_ways_back_through_one_pass():
    inputs = images(2, 3, 4, 4).requires_grad_()
    outputs = PairwiseMaxPool2d(2)(inputs)
    plain = nn.MaxPool2d(2)(inputs)
    for i in range(3):
        weights = torch.full(outputs.shape, float(i))
        ours = torch.autograd.grad(outputs, inputs, weights, retain_graph=True)
        assert torch.equal(*ours, *torch.autograd.grad(plain, inputs, weights, retain_graph=True))


def test_only_layers_that_halve_are_replaced():
    layers = [
        nn.MaxPool2d(2), nn.MaxPool2d((2, 2), (2, 2)), nn.MaxPool2d(3), nn.MaxPool2d(2, 1),
        nn.MaxPool2d(2, padding=1), nn.MaxPool2d(2, dilation=2), nn.MaxPool2d(2, ceil_mode=True),
        nn.MaxPool2d(2, return_indices=True), nn.AvgPool2d(2),
    ]  # fmt: skip
    fast = with_fast_pooling(nn.Sequential(*layers, nn.Sequential(nn.MaxPool2d(2))))
    assert [isinstance(one, PairwiseMaxPool2d) for one in fast] == [True] * 2 + [False] * 8
    assert isinstance(fast[-1][0], PairwiseMaxPool2d)


def network():
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(4, 3, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(12, 3),
    )  # fmt: skip


def test_a_client_trains_to_the_same_bits_with_either():
    model = Model("cnn", network, (1, 8, 8), 3)
    data = ClientData.from_arrays(
        "a", (images(20, 1, 8, 8).numpy(), images(20, kinds=3).long().numpy())
    )
    born = birth(model, "k0", *model.initial(0), 1.0)
    request = Train("a", "k0", Objective(curvature="ggn", local_steps=4, batch_size=8))
    fast, plain = (
        train_locally(
            FlatModule(model, CPU, torch.float32, fast=fast), model, {"k0": born},
            data.views[TRAIN], request, (0, 0),
        )
        for fast in (True, False)
    )  # fmt: skip
    assert torch.equal(fast.mean, plain.mean)
    assert torch.equal(fast.buffers, plain.buffers)
    assert torch.equal(fast.curvature, plain.curvature)
    assert not torch.equal(fast.mean, model.initial(0)[0])


def test_large_samples_are_scored_few_at_a_time():
    assert rows_at_once(torch.empty(0, 64)) == CHUNK
    assert rows_at_once(torch.empty(3, 1, 28, 28)) == 167
    assert rows_at_once(torch.empty(3, 3, 1000, 1000)) == 1
