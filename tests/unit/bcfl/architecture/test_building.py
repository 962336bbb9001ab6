"""Calls of what builds networks: only a call without its arguments is said to lack them."""

from functools import partial

import pytest
import torch
from torch import nn

from bcfl.architecture import Model
from bcfl.architecture.building import built


def model(build):
    return Model(name="mine", build=build, input_shape=(3,), num_outputs=2)


@pytest.mark.parametrize(
    "build", [nn.Linear, partial(nn.Linear, 3), lambda size: nn.Linear(size, 2)]
)
def test_a_call_that_lacks_arguments_is_told_apart(build):
    with pytest.raises(ValueError, match=r"'mine' must be built without arguments: .* missing"):
        built(build, "mine")


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: nn.Linear(3, 2) / 0, r"its code raised TypeError: unsupported operand"),
        (
            lambda: nn.Linear(3),
            r"its code raised TypeError: .* missing 1 required .*'out_features'",
        ),
        (lambda: 1 / 0, r"its code raised ZeroDivisionError: division by zero"),
    ],
)
def test_an_error_in_the_code_of_a_network_is_passed_on(build, message):
    with pytest.raises(ValueError, match=r"model 'mine' cannot be built: " + message) as raised:
        built(build, "mine")
    assert type(raised.value.__cause__).__name__ in message
    with pytest.raises(ValueError, match=message):
        model(build).module()


@pytest.mark.parametrize("layer", [nn.LazyLinear(2), nn.LazyBatchNorm1d()])
def test_layers_that_wait_for_samples_are_named(layer):
    network = nn.Sequential(nn.Linear(3, 2), layer)
    message = rf"'mine' must have layers of known sizes, but {type(layer).__name__} takes"
    with pytest.raises(ValueError, match=message):
        built(lambda: network, "mine")
    with pytest.raises(ValueError, match=message):
        repr(model(lambda: network))


def test_layers_that_have_seen_a_sample_are_ready():
    def network():
        made = nn.Sequential(nn.LazyLinear(4), nn.Linear(4, 2))
        made(torch.zeros(1, 3))
        return made

    assert model(network).layout.num_parameters == 3 * 4 + 4 + 4 * 2 + 2
