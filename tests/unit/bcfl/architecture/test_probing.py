"""Networks as users have them, as models."""

import pytest
import torch
from torch import nn

from bcfl.architecture import Model, as_model

SAMPLES, CLASSES = torch.zeros(2, 3), torch.zeros(2, dtype=torch.int64)


class Network(nn.Linear):
    def __init__(self):
        super().__init__(3, 5)


@pytest.mark.parametrize("network", [Network, Network(), lambda: nn.Linear(3, 5)])
def test_modules_and_what_builds_them_are_models(network):
    model = as_model(network, SAMPLES, CLASSES)
    assert (model.input_shape, model.num_outputs, model.likelihood) == ((3,), 5, "categorical")
    assert model.module() is not model.module()
    assert as_model(model, SAMPLES, CLASSES) is model
    assert as_model(network, SAMPLES, torch.zeros(2)).likelihood == "gaussian"


def test_probing_changes_neither_mode_nor_random_state():
    network = nn.Sequential(nn.Linear(3, 5), nn.Dropout())
    before = torch.get_rng_state()
    assert isinstance(as_model(network, SAMPLES, CLASSES), Model)
    assert network.training
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize(
    ("network", "error", "message"),
    [
        (nn.Linear(4, 5), ValueError, r"'Linear' does not take samples of shape \(3,\): Runtime"),
        (nn.Linear, ValueError, "'Linear' must be built without arguments"),
        (lambda: 3, ValueError, "must build a torch.nn.Module, got one of type int"),
        (
            nn.Sequential(nn.Linear(3, 3), nn.Flatten(0)),
            ValueError,
            r"must give \(samples, outputs\) numbers, got \(3,\)",
        ),
        (nn.Identity(), ValueError, "must have parameters that can be trained, it has none"),
        ("mlp", TypeError, "model must be a bcfl.Model, a torch.nn.Module, or a function"),
    ],
)
def test_what_is_no_network_for_the_samples_is_refused(network, error, message):
    with pytest.raises(error, match=message):
        as_model(network, SAMPLES, CLASSES)


def test_networks_of_images_say_that_the_axis_of_channels_is_missing():
    network = nn.Sequential(nn.Conv2d(1, 2, 3), nn.Flatten(), nn.Linear(72, 3))
    with pytest.raises(ValueError, match=r"axis of channels: .* of shape \(1, 8, 8\)"):
        as_model(network, torch.zeros(2, 8, 8), CLASSES)


@pytest.mark.parametrize(
    ("layer", "size", "shape", "first"),
    [
        (nn.Conv1d(3, 2, 3), 12, (8, 3), r"\(3, 8\)"),
        (nn.Conv2d(3, 2, 3), 72, (8, 8, 3), r"\(3, 8, 8\)"),
    ],
)
def test_channels_in_the_last_axis_are_told(layer, size, shape, first):
    network = nn.Sequential(layer, nn.Flatten(), nn.Linear(size, 3))
    samples = torch.zeros(2, *shape)
    with pytest.raises(ValueError, match=rf"the first one of a sample, {first}: `numpy\.moveaxis"):
        as_model(network, samples, CLASSES)
    assert as_model(network, samples.moveaxis(-1, 1), CLASSES).num_outputs == 3
    with pytest.raises(ValueError, match="does not take samples") as other:
        as_model(network, torch.zeros(2, *shape[:-1], 5), CLASSES)
    assert "moveaxis" not in str(other.value)


def test_weights_in_place_of_a_network_are_told_in_one_line():
    weights = nn.Linear(300, 300).state_dict()
    with pytest.raises(TypeError, match="or a function that builds one, got ") as caught:
        as_model(weights, SAMPLES, CLASSES)
    assert len(str(caught.value)) < 400
