"""The additive model of an architecture: two networks, a global and a cluster block."""

import pytest
import torch

from bcfl.architecture.additive import OWN, SHARED, additive
from bcfl.architecture.layout import CLASSIFIER, Part


def test_an_additive_model_has_twice_the_parameters(linear):
    both = additive(linear)
    assert both.layout.num_parameters == 2 * linear.layout.num_parameters
    assert {b.name: b.scope for b in both.blocks} == {SHARED: "global", OWN: "cluster"}
    assert (both.num_outputs, both.input_shape, both.likelihood) == (2, (3,), "categorical")
    assert both.name == "additive-linear"


def test_both_networks_have_different_initial_values(linear):
    mean, buffers = additive(linear).initial(0)
    parts = additive(linear).split(mean, buffers)
    assert not torch.equal(parts[SHARED][0], parts[OWN][0])


def test_outputs_are_summed(linear):
    module = additive(linear).module()
    inputs = torch.randn(4, 3)
    torch.testing.assert_close(module(inputs), module.shared(inputs) + module.own(inputs))


def test_running_statistics_are_apart(batch_norm):
    both = additive(batch_norm)
    assert both.layout.num_buffers == 2 * batch_norm.layout.num_buffers
    mean, buffers = both.initial(0)
    parts = both.split(mean, buffers)
    assert len(parts[SHARED][1]) == len(parts[OWN][1]) == batch_norm.layout.num_buffers


def test_each_has_a_classifier_of_its_own(batch_norm):
    both = additive(batch_norm)
    sizes = [int(both.chosen(Part(block, CLASSIFIER.layers)).sum()) for block in (SHARED, OWN, "")]
    one = int(batch_norm.chosen(CLASSIFIER).sum())
    assert sizes == [one, one, 2 * one]


def test_a_model_of_several_blocks_is_refused(shared_body):
    with pytest.raises(ValueError, match="got blocks head, body"):
        additive(shared_body)
