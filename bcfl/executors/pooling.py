"""Max pooling of 2 x 2 windows on a CPU, several times as fast as torch's own.

Torch looks for the place of each maximum one window after the other. Here maxima are taken of whole
rows and columns at a time, and their places, which only the way back needs, are found when it is
gone: both by vector instructions. Values and gradients have the same bits as torch's.
"""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor, nn

SIDE = 2
LARGEST_PLANE = 2**24
"""Places are counted in float32, which is exact below this number of pixels."""


class PairwiseMaxPool2d(nn.MaxPool2d):
    """Max pooling that takes the fast way where there is one, and torch's elsewhere."""

    def forward(self, inputs: Tensor) -> Tensor:
        """(samples, channels, height, width) to half the height and width."""
        height, width = inputs.shape[-2:]
        fits = inputs.ndim == 4 and height % SIDE == width % SIDE == 0 and inputs.numel() > 0
        if fits and inputs.device.type == "cpu" and height * width < LARGEST_PLANE:
            return cast(Tensor, _Pairwise.apply(inputs))  # type: ignore[no-untyped-call]
        return cast(Tensor, super().forward(inputs))


def with_fast_pooling(module: nn.Module) -> nn.Module:
    """Put the fast pooling in place of the layers of torch that do the same.

    Args:
        module: a network, changed in place; its parameters and buffers stay what they are.

    Returns:
        The network.
    """
    if _halves(module):
        return PairwiseMaxPool2d(SIDE)
    for name, child in list(module.named_children()):
        setattr(module, name, with_fast_pooling(child))
    return module


def _halves(module: nn.Module) -> bool:
    """Whether a layer takes the maxima of windows of 2 x 2 that do not overlap."""
    return (
        type(module) is nn.MaxPool2d
        and module.kernel_size in (SIDE, (SIDE, SIDE))
        and module.stride in (SIDE, (SIDE, SIDE))
        and module.padding in (0, (0, 0))
        and module.dilation in (1, (1, 1))
        and not (module.return_indices or module.ceil_mode)
    )


class _Pairwise(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, inputs: Tensor) -> Tensor:  # noqa: ANN401
        rows = torch.maximum(inputs[..., ::2, :], inputs[..., 1::2, :])
        largest = torch.maximum(rows[..., ::2], rows[..., 1::2])
        ctx.save_for_backward(inputs, largest)
        ctx.places = None
        return largest

    @staticmethod
    def backward(ctx: Any, slopes: Tensor) -> Tensor:  # noqa: ANN401
        inputs, largest = ctx.saved_tensors
        if ctx.places is None:
            ctx.places = _places(inputs.detach(), largest.detach())  # kept for the next column
        window, zero, one = [SIDE, SIDE], [0, 0], [1, 1]
        found = torch.ops.aten.max_pool2d_with_indices_backward(
            slopes, inputs, window, window, zero, one, False, ctx.places
        )
        return cast(Tensor, found)


def _places(inputs: Tensor, largest: Tensor) -> Tensor:
    """Where the first largest number of each window is in its plane, counted by rows.

    The four numbers of a window are looked at in the order top left, top right, bottom left,
    bottom right, as torch does, so that equal numbers are told apart in the same way. Comparisons
    with NaN are false: its gradient goes to the first place.
    """
    height, width = inputs.shape[-2:]
    pixels = torch.arange(height * width, dtype=torch.float32).view(height, width)
    places = pixels[::2, ::2].expand(largest.shape).contiguous()
    passed = torch.ones_like(places)
    below = torch.empty_like(places)
    for row, column, step in ((0, 0, 1), (0, 1, width - 1), (1, 0, 1)):
        torch.lt(inputs[..., row::2, column::2].contiguous(), largest, out=below)
        passed.mul_(below)
        places.add_(passed, alpha=step)
    return places.int().long()  # two steps, which are faster than one
