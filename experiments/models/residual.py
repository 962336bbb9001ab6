"""Residual networks."""

from __future__ import annotations

from functools import partial

from torch import Tensor, nn

from bcfl import Model
from bcfl.runtime import check_whole

DEPTHS = (3, 4, 6, 3)
WIDTHS = (64, 128, 256, 512)


def resnet34(classes: int = 10) -> Model:
    """ResNet-34 for images (3, 32, 32): a 3x3 convolution in place of the stem, 21 million weights.

    Args:
        classes: number of classes.

    Raises:
        ValueError: there is no class.

    References:
        He, Zhang, Ren, Sun (2016), with the stem of their networks for CIFAR-10; OCFL paper,
        section IV.
    """
    check_whole("classes", classes, 1)
    return Model(
        name="resnet34",
        build=partial(_ResNet34, classes),
        input_shape=(3, 32, 32),
        num_outputs=classes,
        config={"classes": classes},
    )


class _Block(nn.Module):
    """Two 3x3 convolutions and a shortcut, projected where the size changes."""

    any_layout = True

    def __init__(self, channels_in: int, channels_out: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels_in, channels_out, 3, stride, padding=1, bias=False)
        self.first_norm = nn.BatchNorm2d(channels_out)
        self.first_relu = nn.ReLU()
        self.second = nn.Conv2d(channels_out, channels_out, 3, padding=1, bias=False)
        self.second_norm = nn.BatchNorm2d(channels_out)
        self.shortcut = nn.Sequential()
        if stride > 1 or channels_in != channels_out:
            projection = nn.Conv2d(channels_in, channels_out, 1, stride, bias=False)
            self.shortcut = nn.Sequential(projection, nn.BatchNorm2d(channels_out))
        self.relu = nn.ReLU()

    def forward(self, inputs: Tensor) -> Tensor:
        hidden = self.first_relu(self.first_norm(self.first(inputs)))
        outputs: Tensor = self.relu(self.second_norm(self.second(hidden)) + self.shortcut(inputs))
        return outputs


class _ResNet34(nn.Sequential):
    any_layout = True

    def __init__(self, classes: int) -> None:
        layers: list[nn.Module] = [
            nn.Conv2d(3, WIDTHS[0], 3, padding=1, bias=False),
            nn.BatchNorm2d(WIDTHS[0]),
            nn.ReLU(),
        ]
        channels = WIDTHS[0]
        for depth, width in zip(DEPTHS, WIDTHS, strict=True):
            for index in range(depth):
                layers.append(_Block(channels, width, stride=1 + (index == 0 and width > channels)))
                channels = width
        super().__init__(
            *layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes)
        )
