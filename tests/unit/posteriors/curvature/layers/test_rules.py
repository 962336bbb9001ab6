import pytest
import torch
from torch import nn

from posteriors.curvature.layers.rules import UnsupportedLayerError, layers_with_parameters
from posteriors.curvature.layers.rules import UnsupportedLayerError as FromCurvature


def test_layers_are_listed_by_name():
    network = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Sequential(nn.BatchNorm2d(2)))
    assert list(layers_with_parameters(network).values()) == ["0", "2.0"]
    assert FromCurvature is UnsupportedLayerError


def shared():
    network = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    network[1].weight = network[0].weight
    return network


class Doubled(nn.Linear):
    def forward(self, x):
        return 2 * super().forward(x)


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(()))


@pytest.mark.parametrize(
    ("network", "message"),
    [
        (nn.Sequential(nn.Linear(2, 2), nn.LSTM(2, 2)), r"'1' \(LSTM\).*supported are Linear"),
        (nn.Sequential(nn.ConvTranspose2d(1, 1, 2)), r"'0' \(ConvTranspose2d\) has parameters"),
        (Scaled(), r"the network itself \(Scaled\) has parameters"),
        (nn.Sequential(Doubled(2, 2)), r"\(Doubled\)"),
        (nn.utils.parametrizations.weight_norm(nn.Linear(2, 2)), "has parameters but no"),
        (nn.BatchNorm1d(2, track_running_stats=False), "depend on the other samples"),
        (
            nn.Sequential(nn.BatchNorm2d(2, affine=False, track_running_stats=False)),
            "depend on the other samples",
        ),
        (shared(), r"layers .0. and .1. share a parameter"),
        (nn.ReLU(), "no parameters"),
    ],
)
def test_what_has_no_exact_rule_is_refused(network, message):
    with pytest.raises(UnsupportedLayerError, match=message):
        layers_with_parameters(network)


def test_a_subclass_that_computes_the_same_is_accepted():
    class Named(nn.Linear):
        purpose = "classifier"

    assert list(layers_with_parameters(nn.Sequential(Named(2, 2))).values()) == ["0"]
