"""Images laid out by pixels, which convolutions on a CPU read sooner than by channels."""

from __future__ import annotations

import torch
from torch import Tensor, nn


def read_channels_last(module: nn.Module) -> None:
    """Let a convolutional network see its images as in `as_convolutions_like_it`, from now on.

    Args:
        module: the network; what it computes stays the same but for rounding.
    """
    if _convolves(module):
        module.register_forward_pre_hook(_by_pixels)


def as_convolutions_like_it(module: nn.Module, inputs: Tensor) -> Tensor:
    """Inputs with the channels of a pixel side by side, where that pays.

    Layers keep the layout of what they read, so it holds for the whole network. On a CPU the
    training of two convolutions with pooling then takes some seven tenths of the time in float32.
    On a GPU, in other types, with convolutions of groups of channels, and where a layer is not
    torch's own, which may count on the usual layout as `Tensor.view` does, nothing changes.

    Args:
        module: the network; a class of its own may say `any_layout = True` to be taken for torch's.
        inputs: (samples, ...), images as (samples, channels, height, width).
    """
    return _laid_out(inputs) if _convolves(module) else inputs


def _laid_out(inputs: Tensor) -> Tensor:
    fits = inputs.ndim == 4 and inputs.device.type == "cpu" and inputs.dtype == torch.float32
    return channels_last(inputs) if fits else inputs


def channels_last(images: Tensor) -> Tensor:
    """(samples, channels, height, width) by pixels.

    A single channel lies the same way in both layouts, and torch takes it for the usual one; only
    its strides tell.
    """
    if images.shape[1] > 1:
        return images.contiguous(memory_format=torch.channels_last)
    height, width = images.shape[-2:]
    return images.contiguous().as_strided(images.shape, (height * width, 1, width, 1))


def _convolves(module: nn.Module) -> bool:
    """Whether all layers take any layout, and some are convolutions, all of them dense."""
    layers = list(module.modules())
    convolutions = [layer for layer in layers if isinstance(layer, nn.Conv2d)]
    return (
        all(map(_takes_any_layout, layers))
        and bool(convolutions)
        and all(layer.groups == 1 for layer in convolutions)
    )


def _takes_any_layout(layer: nn.Module) -> bool:
    return type(layer).__module__.startswith("torch.nn.") or getattr(layer, "any_layout", False)


def _by_pixels(_: nn.Module, arguments: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    inputs, *others = arguments
    return (_laid_out(inputs), *others)
