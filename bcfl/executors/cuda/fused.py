"""Convolution and pooling layers batched over models, by the Triton kernels of `tiles`.

Not timed in this version, for lack of a GPU; the tilings were chosen on an H200.
"""

# mypy: disable-error-code="no-untyped-call, no-untyped-def, misc"
# ruff: noqa: ANN001, ANN205, D102
from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.autograd import Function
from torch.nn import functional

from bcfl.executors.cuda import tiles

ELEMENTS = 1024
"""Entries per program of an elementwise kernel."""


@dataclass(frozen=True, kw_only=True)
class Tiling:
    """Tile sizes of a convolution, or of its gradient.

    Attributes:
        places: output positions per tile.
        rows: rows of the weight gradient per tile.
        span: positions that one program sums for the weight gradient.
        warps: warps per program.
        stages: pipeline stages.
    """

    places: int
    rows: int = 0
    span: int = 0
    warps: int = 4
    stages: int = 3


FORWARD = Tiling(places=128)
GRADIENT = Tiling(places=32, rows=64, span=2048)
GRADIENT_OF_FEW = Tiling(places=128, rows=32, span=2048)
"""Chosen on an H200; the last for patches with few entries."""


def precision() -> str:
    """Triton's precision of float32 products: TF32 where torch allows it, else three of them."""
    return "tf32" if torch.backends.cuda.matmul.allow_tf32 else "tf32x3"


class Convolution(Function):
    """Convolutions of many problems: (problems, images, height, width, channels).

    Weights are (problems, out channels, in channels, kernel height, kernel width) as torch has
    them, biases (problems, out channels).
    """

    @staticmethod
    def forward(ctx, x: Tensor, weight: Tensor, bias: Tensor | None, padding: tuple[int, int]):
        x = _padded(x, padding)
        ctx.save_for_backward(x, weight)
        ctx.padding, ctx.biased = padding, bias is not None
        return convolved(x, weight.permute(0, 3, 4, 2, 1).contiguous(), bias)

    @staticmethod
    def backward(ctx, grad_output: Tensor):
        x, weight = ctx.saved_tensors
        grad_output = grad_output.contiguous()
        of_x = None
        if ctx.needs_input_grad[0]:
            high, wide = weight.shape[3:]
            around = _padded(grad_output, (high - 1 - ctx.padding[0], wide - 1 - ctx.padding[1]))
            turned = weight.flip((3, 4)).permute(0, 3, 4, 1, 2).contiguous()
            of_x = convolved(around, turned, None)
        of_weight, of_bias = correlated(x, grad_output)
        return of_x, of_weight, of_bias if ctx.biased else None, None


def _padded(x: Tensor, padding: tuple[int, int]) -> Tensor:
    high, wide = padding
    return functional.pad(x, (0, 0, wide, wide, high, high)).contiguous()


def convolved(x: Tensor, matrix: Tensor, bias: Tensor | None, tiling: Tiling = FORWARD) -> Tensor:
    """(problems, images, height, width, out channels) without padding.

    Args:
        x: (problems, images, height, width, channels), contiguous float32.
        matrix: (problems, kernel height, kernel width, channels, out channels), contiguous.
        bias: (problems, out channels), or None.
        tiling: tile sizes.
    """
    problems, images, height, width, channels = x.shape
    high, wide, outputs = matrix.shape[1], matrix.shape[2], matrix.shape[4]
    y = x.new_empty(problems, images, height - high + 1, width - wide + 1, outputs)
    places = images * y.shape[2] * y.shape[3]
    tiles.convolve[(problems * -(-places // tiling.places),)](
        x,
        matrix,
        matrix if bias is None else bias.contiguous(),
        y,
        images,
        HEIGHT=height,
        WIDTH=width,
        CIN=channels,
        COUT=outputs,
        KH=high,
        KW=wide,
        M=tiling.places,
        N=_power(outputs),
        K=next((depth for depth in (32, 16) if channels % depth == 0), 32),
        BIASED=bias is not None,
        PRECISION=precision(),
        num_warps=tiling.warps,
        num_stages=tiling.stages,
    )
    return y


def correlated(
    x: Tensor, grad_output: Tensor, tiling: Tiling | None = None
) -> tuple[Tensor, Tensor]:
    """Gradients of weights (problems, out, in, height, width) and biases (problems, out).

    Args:
        x: (problems, images, height, width, channels) inputs, contiguous float32.
        grad_output: gradient at the outputs, (problems, images, height, width, out channels).
        tiling: tile sizes; None chooses by the size of the patches.
    """
    problems, images, height, width, channels = x.shape
    outputs = grad_output.shape[4]
    high, wide = height - grad_output.shape[2] + 1, width - grad_output.shape[3] + 1
    size, places = high * wide * channels, images * grad_output.shape[2] * grad_output.shape[3]
    tiling = tiling or (GRADIENT if size > GRADIENT_OF_FEW.rows else GRADIENT_OF_FEW)
    spans = -(-places // tiling.span)
    partial = x.new_empty(problems, spans, size + 1, outputs)
    tiles.correlate[(problems * spans * -(-size // tiling.rows),)](
        x,
        grad_output,
        partial,
        images,
        tiling.span,
        spans,
        HEIGHT=height,
        WIDTH=width,
        CIN=channels,
        COUT=outputs,
        KH=high,
        KW=wide,
        M=tiling.places,
        N=_power(outputs),
        K=tiling.rows,
        PRECISION=precision(),
        num_warps=tiling.warps,
        num_stages=tiling.stages,
    )
    total = partial.sum(1) if spans > 1 else partial.squeeze(1)
    of_weight = total[:, :size].view(problems, high, wide, channels, outputs)
    return of_weight.permute(0, 4, 3, 1, 2), total[:, size]


class RectifiedPool(Function):
    """ReLU and 2 x 2 maximum pooling: (..., height, width, channels) to half the size."""

    @staticmethod
    def forward(ctx, x: Tensor):
        x = x.contiguous()
        *front, height, width, channels = x.shape
        y = x.new_empty(*front, height // 2, width // 2, channels)
        winner = torch.empty_like(y, dtype=torch.int8)
        ctx.save_for_backward(winner)
        ctx.shape = x.shape
        tiles.rectify_and_pool[(-(-y.numel() // ELEMENTS),)](
            x, y, winner, y.numel(), HEIGHT=height, WIDTH=width, C=channels, BLOCK=ELEMENTS
        )
        return y

    @staticmethod
    def backward(ctx, grad_output: Tensor):
        (winner,) = ctx.saved_tensors
        height, width, channels = ctx.shape[-3:]
        covered = height % 2 == 0 and width % 2 == 0
        x = (grad_output.new_empty if covered else grad_output.new_zeros)(ctx.shape)
        count = winner.numel()
        tiles.relu_pool_backward[(-(-count // ELEMENTS),)](
            grad_output.contiguous(),
            winner,
            x,
            count,
            HEIGHT=height,
            WIDTH=width,
            C=channels,
            BLOCK=ELEMENTS,
        )
        return x


def _power(number: int) -> int:
    """The power of two from `number` on, and at least 16, the least that a product takes."""
    return max(16, 1 << (number - 1).bit_length())
