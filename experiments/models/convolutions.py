"""Convolutional networks of the papers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Literal

from torch import nn

from bcfl import Model
from bcfl.runtime import check_whole

Norm = Literal["batch", "group", "none"]
Shape = tuple[int, int, int]


def fashion_cnn(classes: int = 10, norm: Norm = "batch") -> Model:
    """Convolutional network for Fashion-MNIST images (1, 28, 28).

    Two blocks of 5x5 convolution (16, then 32 channels), normalisation, ReLU and 2x2 max pooling,
    and a linear classifier on 7 * 7 * 32 features.

    Args:
        classes: number of classes.
        norm: `batch` (BatchNorm2d, as published), `group` (GroupNorm of 4 groups, no running
            statistics) or `none`.

    Raises:
        ValueError: the norm is unknown, or there is no class.

    References:
        Ma, Long, Zhou, Jiang, Zhang (2022), and the network table of the BCFL paper. The published
        tables print 16 channels for the second BatchNorm; the convolution before it has 32.
    """
    return _of("fashion-cnn", (1, 28, 28), _fashion_cnn, classes, norm=norm)


def fashion_cnn_gn(classes: int = 10) -> Model:
    """Network of `experiments.models.fashion_cnn` with group normalisation.

    Args:
        classes: number of classes.

    Raises:
        ValueError: there is no class.
    """
    return fashion_cnn(classes, "group")


def tissue_cnn(classes: int = 8, norm: Norm = "batch") -> Model:
    """Convolutional network for TissueMNIST (1, 28, 28): the layers of `fashion_cnn`.

    Args:
        classes: number of classes.
        norm: see `experiments.models.fashion_cnn`.

    Raises:
        ValueError: the norm is unknown, or there is no class.

    References:
        Ma (2023), table A.4. It prints convolutions without padding, which leave 4 * 4 * 32
        features; its classifier has 7 * 7 * 32, those of a padding of 2.
    """
    return _of("tissue-cnn", (1, 28, 28), _fashion_cnn, classes, norm=norm)


def cifar_cnn(classes: int = 10) -> Model:
    """Convolutional network for CIFAR-10 images (3, 32, 32).

    Two blocks of 5x5 convolution (6, then 16 channels), ReLU and 2x2 max pooling, and layers of
    120, 84 and the classes on 5 * 5 * 16 features.

    Args:
        classes: number of classes.

    Raises:
        ValueError: there is no class.

    References:
        Ma (2023), table A.2, and table 6 of the BCFL paper, which prints 6 channels for the second
        convolution; the layer after it has 400 = 5 * 5 * 16 inputs.
    """
    return _of("cifar-cnn", (3, 32, 32), partial(_lenet, padding=0), classes)


def path_cnn(classes: int = 9) -> Model:
    """Convolutional network for PathMNIST images (3, 28, 28): the layers of `cifar_cnn`.

    Args:
        classes: number of classes.

    Raises:
        ValueError: there is no class.

    References:
        Ma (2023), table A.3. Its convolutions leave 4 * 4 * 16 features of 28 x 28 pixels; the
        layer after them has 400 = 5 * 5 * 16, those of a padding of 2 before the first convolution.
    """
    return _of("path-cnn", (3, 28, 28), partial(_lenet, padding=2), classes)


def digits_five_cnn(classes: int = 10, norm: Norm = "batch", width: int = 64) -> Model:
    """Convolutional network for Digits-Five images (3, 28, 28).

    Three 5x5 convolutions (64, 64, 128 channels), pooling after the first two, and layers of 3072,
    2048 and the classes on 7 * 7 * 128 features; normalisation and ReLU after all but the last.

    Args:
        classes: number of classes.
        norm: see `experiments.models.fashion_cnn`; `group` and `none` concern the linear layers
            too.
        width: channels of the first convolution, to which all others and the hidden features are in
            proportion; 64 is the published network. A multiple of 4 with norm `group`.

    Raises:
        ValueError: the norm is unknown, or there is no class or channel.

    References:
        BCFL paper, table 3. Its pooling over 3x3 with stride 3 would leave 3 * 3 * 128 features;
        the layer after it has 6272 = 7 * 7 * 128, those of a stride of 2 and a padding of 1.
    """
    check_whole("width", width, 1)
    return _of("digits-five-cnn", (3, 28, 28), _digits_five_cnn, classes, norm=norm, width=width)


def ocfl_cnn(classes: int = 10) -> Model:
    """Convolutional network for MNIST and Fashion-MNIST images (1, 28, 28) without pooling.

    Three 5x5 convolutions (16, 32, 32 channels) with ReLU, and layers of 1000, 250, 100 and the
    classes on 28 * 28 * 32 features with dropout of 0.2 before each; 25 million parameters.

    Args:
        classes: number of classes.

    Raises:
        ValueError: there is no class.

    References:
        OCFL paper, section IV: a network "inspired by tiny-VGG"; sizes as in the released code.
    """
    return _of("ocfl-cnn", (1, 28, 28), _ocfl_cnn, classes)


def faacl_cnn(classes: int = 10) -> Model:
    """Convolutional network for MNIST images (1, 28, 28).

    Two blocks of 3x3 convolution (32, then 64 channels), ReLU and 2x2 max pooling, dropout of 0.5,
    and a linear classifier on 7 * 7 * 64 features.

    Args:
        classes: number of classes.

    Raises:
        ValueError: there is no class.

    References:
        FAACL thesis; sizes as in the released code.
    """
    return _of("faacl-cnn", (1, 28, 28), _faacl_cnn, classes)


def _of(
    name: str, shape: Shape, build: Callable[..., nn.Module], classes: int, **options: Norm | int
) -> Model:
    """A model of a network with an image shape; `build` takes the classes and the options."""
    norm = options.get("norm", "none")
    if norm not in ("batch", "group", "none"):
        raise ValueError(f"norm must be 'batch', 'group' or 'none', got {norm!r}")
    check_whole("classes", classes, 1)
    return Model(
        name=name,
        build=partial(build, classes, **options),
        input_shape=shape,
        num_outputs=classes,
        config={"classes": classes, **options},
    )


def _lenet(classes: int, padding: int) -> nn.Module:
    return nn.Sequential(
        *(nn.Conv2d(3, 6, kernel_size=5, padding=padding), nn.ReLU(), nn.MaxPool2d(2, 2)),
        *(nn.Conv2d(6, 16, kernel_size=5), nn.ReLU(), nn.MaxPool2d(2, 2)),
        nn.Flatten(),
        *(nn.Linear(400, 120), nn.ReLU()),
        *(nn.Linear(120, 84), nn.ReLU()),
        nn.Linear(84, classes),
    )


def _digits_five_cnn(classes: int, norm: Norm, width: int) -> nn.Module:
    layers: list[nn.Module] = []
    channels = ((3, width, True), (width, width, True), (width, 2 * width, False))
    for channels_in, channels_out, pools in channels:
        layers.append(nn.Conv2d(channels_in, channels_out, kernel_size=5, padding=2))
        layers += [*_normalisation(channels_out, norm), nn.ReLU()]
        layers += [nn.MaxPool2d(3, stride=2, padding=1)] if pools else []
    layers.append(nn.Flatten())
    for inputs, outputs in ((7 * 7 * 2 * width, 48 * width), (48 * width, 32 * width)):
        layers.append(nn.Linear(inputs, outputs))
        layers += [nn.BatchNorm1d(outputs)] if norm == "batch" else _normalisation(outputs, norm)
        layers.append(nn.ReLU())
    return nn.Sequential(*layers, nn.Linear(32 * width, classes))


def _ocfl_cnn(classes: int) -> nn.Module:
    layers: list[nn.Module] = []
    for channels_in, channels_out in ((1, 16), (16, 32), (32, 32)):
        layers += [nn.Conv2d(channels_in, channels_out, kernel_size=5, padding=2), nn.ReLU()]
    layers.append(nn.Flatten())
    for inputs, outputs in ((25088, 1000), (1000, 250), (250, 100)):
        layers += [nn.Dropout(0.2), nn.Linear(inputs, outputs), nn.ReLU()]
    return nn.Sequential(*layers, nn.Dropout(0.2), nn.Linear(100, classes))


def _faacl_cnn(classes: int) -> nn.Module:
    return nn.Sequential(
        *(nn.Conv2d(1, 32, kernel_size=3, padding=1), nn.ReLU(), nn.MaxPool2d(2, 2)),
        *(nn.Conv2d(32, 64, kernel_size=3, padding=1), nn.ReLU(), nn.MaxPool2d(2, 2)),
        *(nn.Flatten(), nn.Dropout(0.5), nn.Linear(7 * 7 * 64, classes)),
    )


def _fashion_cnn(classes: int, norm: Norm) -> nn.Module:
    blocks = [*_convolution(1, 16, norm), *_convolution(16, 32, norm)]
    return nn.Sequential(*blocks, nn.Flatten(), nn.Linear(7 * 7 * 32, classes))


def _convolution(channels_in: int, channels_out: int, norm: Norm) -> list[nn.Module]:
    return [
        nn.Conv2d(channels_in, channels_out, kernel_size=5, padding=2),
        *_normalisation(channels_out, norm),
        nn.ReLU(),
        nn.MaxPool2d(2, 2),
    ]


def _normalisation(channels: int, norm: Norm) -> list[nn.Module]:
    if norm == "batch":
        return [nn.BatchNorm2d(channels)]
    return [nn.GroupNorm(4, channels)] if norm == "group" else []
