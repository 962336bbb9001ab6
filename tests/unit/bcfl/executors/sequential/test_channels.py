"""Another layout of images changes nothing but rounding, and is seen by every layer."""

import pytest
import torch
from torch import nn

from bcfl import ClientData, Model, Objective
from bcfl.architecture.additive import AdditiveNetwork
from bcfl.architecture.evaluation import CHUNK, rows_at_once
from bcfl.data.names import TRAIN
from bcfl.executors import LoopExecutor
from bcfl.executors.sequential.flat_module import FlatModule
from bcfl.executors.sequential.training import train_locally
from bcfl.hypotheses.posterior import from_initial
from bcfl.protocol.requests import Train
from posteriors import diagonal_curvature
from posteriors.networks.channels import as_convolutions_like_it, channels_last, read_channels_last

CPU = torch.device("cpu")


def network(channels):
    return nn.Sequential(
        nn.Conv2d(channels, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(4, 3, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(12, 3),
    )  # fmt: skip


def images(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("shape", [(3, 1, 4, 6), (3, 2, 4, 6), (1, 1, 1, 1), (0, 1, 2, 2)])
def test_values_stay_and_channels_are_neighbours(shape):
    plain = images(*shape)
    by_pixels = channels_last(plain)
    assert torch.equal(by_pixels, plain)
    assert by_pixels.stride(1) == 1
    assert by_pixels.is_contiguous(memory_format=torch.channels_last)


def test_a_slice_of_larger_images_is_read_right():
    whole = images(5, 1, 6, 8)
    part = whole[1:4, :, 1:5, 2:6]
    assert torch.equal(channels_last(part), part)
    assert torch.equal(channels_last(part.transpose(2, 3)), part.transpose(2, 3))


@pytest.mark.parametrize("channels", [1, 2])
def test_layers_pass_the_layout_on(channels):
    module = network(channels)
    read_channels_last(module)
    seen = []
    for layer in list(module)[:7]:
        layer.register_forward_hook(
            lambda *call: seen.append(call[2].is_contiguous(memory_format=torch.channels_last))
        )
    module(images(4, channels, 8, 8))
    assert seen == [True] * 7


def test_a_network_without_convolutions_is_left_alone():
    seen = []
    module = nn.Sequential(nn.Flatten(), nn.Linear(32, 2))
    read_channels_last(module)
    module[0].register_forward_pre_hook(lambda _, arguments: seen.append(arguments[0].stride()))
    module(images(3, 2, 4, 4))
    assert seen == [(32, 16, 4, 1)]


class Viewing(nn.Module):
    """A network as people write them: its forward pass counts on the usual layout."""

    def __init__(self):
        super().__init__()
        self.convolution, self.linear = nn.Conv2d(1, 4, 3, padding=1), nn.Linear(64, 3)

    def forward(self, inputs):
        features = nn.functional.max_pool2d(self.convolution(inputs).relu(), 2)
        return self.linear(features.view(-1, 64))


def test_a_network_of_ones_own_may_count_on_the_usual_layout():
    model = Model(name="viewing", build=Viewing, input_shape=(1, 8, 8), num_outputs=3)
    executor = LoopExecutor.on([data_of(1)], model, 0, CPU, torch.float32)
    born = from_initial(model, "k0", *model.initial(0), 1.0)
    request = Train("a", "k0", Objective(curvature="ggn", local_steps=2, batch_size=8))
    (answer,) = executor.answer([request], {"k0": born}, 0).values()
    assert answer.curvature.isfinite().all()
    assert diagonal_curvature(Viewing(), images(3, 1, 8, 8), torch.zeros(3).long()).min() >= 0


@pytest.mark.parametrize(
    "module",
    [
        nn.Sequential(nn.Conv2d(2, 4, 3, groups=2), nn.Flatten()),
        nn.Sequential(nn.Conv2d(2, 4, 3), Viewing()),
        nn.Sequential(nn.Conv2d(2, 4, 3), nn.Flatten()).double(),
    ],
)
def test_where_it_does_not_pay_or_may_break_the_layout_stays(module):
    inputs = images(3, 2, 5, 5).to(next(module.parameters()))
    assert as_convolutions_like_it(module, inputs) is inputs


def test_the_additive_network_is_taken_for_torchs():
    module = AdditiveNetwork(lambda: network(2))
    assert as_convolutions_like_it(module, images(3, 2, 8, 8)).stride(1) == 1


def data_of(channels):
    targets = torch.arange(20) % 3
    return ClientData.from_arrays("a", (images(20, channels, 8, 8).numpy(), targets.numpy()))


@pytest.mark.parametrize("channels", [1, 2])
def test_a_client_trains_to_the_same_model_with_either(channels):
    model = Model(
        name="cnn", build=lambda: network(channels), input_shape=(channels, 8, 8), num_outputs=3
    )
    view = data_of(channels).views[TRAIN]
    born = from_initial(model, "k0", *model.initial(0), 1.0)
    request = Train("a", "k0", Objective(curvature="ggn", local_steps=4, batch_size=8))
    by_pixels, plain = (
        train_locally(
            FlatModule(model, CPU, torch.float32, channels_last=either), model, {"k0": born},
            view, request, (0, 0),
        )
        for either in (True, False)
    )  # fmt: skip
    assert not torch.equal(by_pixels.mean, plain.mean)
    for ours, usual in zip(
        (by_pixels.mean, by_pixels.buffers, by_pixels.curvature),
        (plain.mean, plain.buffers, plain.curvature),
        strict=True,
    ):
        assert (ours - usual).norm() <= 1e-5 * usual.norm()


@pytest.mark.parametrize("posterior", ["laplace-last-layer", "laplace-full"])
def test_local_posteriors_of_images_of_two_channels(posterior):
    model = Model(name="cnn", build=lambda: nn.Sequential(
        nn.Conv2d(2, 2, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(18, 3)
    ), input_shape=(2, 8, 8), num_outputs=3)  # fmt: skip
    executor = LoopExecutor.on([data_of(2)], model, 0, CPU, torch.float32)
    born = from_initial(model, "k0", *model.initial(0), 1.0)
    objective = Objective(curvature="ggn", local_steps=2, batch_size=8, posterior=posterior)
    (answer,) = executor.answer([Train("a", "k0", objective)], {"k0": born}, 0).values()
    assert answer.curvature.isfinite().all()


def test_large_samples_are_scored_few_at_a_time():
    assert rows_at_once(torch.empty(0, 64)) == CHUNK
    assert rows_at_once(torch.empty(3, 1, 28, 28)) == 167
    assert rows_at_once(torch.empty(3, 3, 1000, 1000)) == 1
