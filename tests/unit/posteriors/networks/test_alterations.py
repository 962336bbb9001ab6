"""Hooks and methods of a single layer are seen; those of its class are not."""

import pytest
from torch import nn

from posteriors.networks.alterations import is_altered


def with_forward(layer):
    layer.forward = lambda x: x


def with_train(layer):
    layer.train = lambda mode=True: layer


CHANGES = {
    "forward": with_forward,
    "train": with_train,
    "forward hook": lambda layer: layer.register_forward_hook(lambda *_: None),
    "forward pre-hook": lambda layer: layer.register_forward_pre_hook(lambda *_: None),
    "backward hook": lambda layer: layer.register_full_backward_hook(lambda *_: None),
    "backward pre-hook": lambda layer: layer.register_full_backward_pre_hook(lambda *_: None),
    "gradient hook": lambda layer: layer.bias.register_hook(lambda g: g),
    "accumulation hook": lambda layer: layer.weight.register_post_accumulate_grad_hook(
        lambda _: None
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_changes_of_one_layer_are_seen(name):
    layer, other = nn.Linear(2, 2), nn.Linear(2, 2)
    CHANGES[name](layer)
    assert is_altered(layer)
    assert not is_altered(other)
    assert not is_altered(nn.Sequential(layer))


def test_a_removed_hook_changes_nothing():
    layer = nn.Linear(2, 2)
    layer.register_forward_hook(lambda *_: None).remove()
    layer.weight.register_hook(lambda g: g).remove()
    assert not is_altered(layer)
