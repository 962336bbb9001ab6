"""Triton kernels for convolutions batched over problems, each with weights of its own.

Images lie as (problems, images, height, width, channels), with their padding around them. A
convolution is a matrix product of patches (images x places, kernel height x kernel width x
channels) with weights, for each problem; the patches are never written out, each tile of the
product gathers its own. Strides are 1.

Needs `triton`, so this module is imported only where a GPU is used. With TRITON_INTERPRET=1 the
kernels run on a CPU, slowly, as they do in the tests. Not timed in this version, for lack
of a GPU.
"""

# mypy: disable-error-code="no-untyped-call, no-untyped-def, misc, untyped-decorator"
# ruff: noqa: ANN001, ANN201, ANN202, D403, PLR0124, PLR0913, PLR0917
from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def convolve(
    x,
    w,
    b,
    y,
    images,
    HEIGHT: tl.constexpr,
    WIDTH: tl.constexpr,
    CIN: tl.constexpr,
    COUT: tl.constexpr,
    KH: tl.constexpr,
    KW: tl.constexpr,
    M: tl.constexpr,
    N: tl.constexpr,
    K: tl.constexpr,
    BIASED: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """y = x * w + b: a tile of M places and all N >= COUT output channels of one problem.

    x is (problems, images, HEIGHT, WIDTH, CIN), w (problems, KH, KW, CIN, COUT), b (problems,
    COUT), y (problems, images, HEIGHT - KH + 1, WIDTH - KW + 1, COUT).
    """
    SIZE: tl.constexpr = KH * KW * CIN
    WIDE: tl.constexpr = WIDTH - KW + 1
    AREA: tl.constexpr = (HEIGHT - KH + 1) * WIDE
    tiles = tl.cdiv(images * AREA, M)
    problem = (tl.program_id(0) // tiles).to(tl.int64)
    m = (tl.program_id(0) % tiles) * M + tl.arange(0, M)
    n = tl.arange(0, N)
    real = m < images * AREA
    place = m % AREA
    corner = ((m // AREA * HEIGHT + place // WIDE) * WIDTH + place % WIDE) * CIN
    x += problem * images * HEIGHT * WIDTH * CIN
    w += problem * SIZE * COUT
    total = tl.zeros((M, N), dtype=tl.float32)
    if CIN % K == 0:
        c = tl.arange(0, K)
        for tap in range(KH * KW):
            start = corner + (tap // KW * WIDTH + tap % KW) * CIN
            for first in tl.static_range(0, CIN, K):
                patch = tl.load(
                    x + start[:, None] + (first + c)[None, :], mask=real[:, None], other=0.0
                )
                matrix = tl.load(
                    w + (tap * CIN + first + c)[:, None] * COUT + n[None, :],
                    mask=(n < COUT)[None, :],
                    other=0.0,
                )
                total = tl.dot(patch, matrix, total, input_precision=PRECISION)
    else:
        for first in range(0, SIZE, K):
            k = first + tl.arange(0, K)
            tap = k // CIN
            step = (tap // KW * WIDTH + tap % KW) * CIN + k % CIN
            patch = tl.load(
                x + corner[:, None] + step[None, :],
                mask=real[:, None] & (k < SIZE)[None, :],
                other=0.0,
            )
            matrix = tl.load(
                w + k[:, None] * COUT + n[None, :],
                mask=(k < SIZE)[:, None] & (n < COUT)[None, :],
                other=0.0,
            )
            total = tl.dot(patch, matrix, total, input_precision=PRECISION)
    if BIASED:
        total += tl.load(b + problem * COUT + n, mask=n < COUT, other=0.0)[None, :]
    y += problem * images * AREA * COUT
    tl.store(y + m[:, None] * COUT + n[None, :], total, mask=real[:, None] & (n < COUT)[None, :])


@triton.jit
def correlate(
    x,
    g,
    w,
    images,
    span,
    spans,
    HEIGHT: tl.constexpr,
    WIDTH: tl.constexpr,
    CIN: tl.constexpr,
    COUT: tl.constexpr,
    KH: tl.constexpr,
    KW: tl.constexpr,
    M: tl.constexpr,
    N: tl.constexpr,
    K: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """The gradient of weights and biases: K rows of one problem's patches^T g, over one span.

    x is (problems, images, HEIGHT, WIDTH, CIN), g (problems, images, HEIGHT - KH + 1,
    WIDTH - KW + 1, COUT), w (problems, spans, KH * KW * CIN + 1, COUT), whose last row is the
    gradient of the biases; `span` places are summed, a multiple of M.
    """
    SIZE: tl.constexpr = KH * KW * CIN
    WIDE: tl.constexpr = WIDTH - KW + 1
    AREA: tl.constexpr = (HEIGHT - KH + 1) * WIDE
    BLOCKS: tl.constexpr = (SIZE + K - 1) // K
    block = tl.program_id(0) % BLOCKS
    part = tl.program_id(0) // BLOCKS
    problem = (part // spans).to(tl.int64)
    k = block * K + tl.arange(0, K)
    n = tl.arange(0, N)
    x += problem * images * HEIGHT * WIDTH * CIN
    g += problem * images * AREA * COUT
    tap = k // CIN
    step = tl.where(k < SIZE, (tap // KW * WIDTH + tap % KW) * CIN + k % CIN, 0)
    total = tl.zeros((K, N), dtype=tl.float32)
    bias_sums = tl.zeros((M, N), dtype=tl.float32)
    begin = (part % spans) * span
    for first in range(0, span, M):
        m = begin + first + tl.arange(0, M)
        real = m < images * AREA
        place = m % AREA
        corner = ((m // AREA * HEIGHT + place // WIDE) * WIDTH + place % WIDE) * CIN
        patch = tl.load(x + corner[:, None] + step[None, :], mask=real[:, None], other=0.0)
        grad_output = tl.load(
            g + m[:, None] * COUT + n[None, :],
            mask=real[:, None] & (n < COUT)[None, :],
            other=0.0,
        )
        bias_sums += grad_output
        total = tl.dot(tl.trans(patch), grad_output, total, input_precision=PRECISION)
    w += part.to(tl.int64) * (SIZE + 1) * COUT
    tl.store(
        w + k[:, None] * COUT + n[None, :], total, mask=(k < SIZE)[:, None] & (n < COUT)[None, :]
    )
    if block == 0:
        tl.store(w + SIZE * COUT + n, tl.sum(bias_sums, 0), mask=n < COUT)


@triton.jit
def rectify_and_pool(
    x,
    y,
    winner,
    count,
    HEIGHT: tl.constexpr,
    WIDTH: tl.constexpr,
    C: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """y = the greatest of 0 and 2 x 2 values; winner says which, 4 where it is 0."""
    place = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    real = place < count
    at = _first_corner(place, HEIGHT, WIDTH, C)
    best = tl.load(x + at, mask=real, other=0.0)
    which = tl.zeros((BLOCK,), dtype=tl.int8)
    for corner in tl.static_range(1, 4):
        value = tl.load(x + at + ((corner // 2) * WIDTH + corner % 2) * C, mask=real, other=0.0)
        better = (value > best) | (value != value)
        which = tl.where(better, corner, which).to(tl.int8)
        best = tl.where(better, value, best)
    tl.store(winner + place, tl.where(best <= 0.0, 4, which).to(tl.int8), mask=real)
    tl.store(y + place, tl.where(best <= 0.0, 0.0, best), mask=real)


@triton.jit
def relu_pool_backward(
    g,
    winner,
    x,
    count,
    HEIGHT: tl.constexpr,
    WIDTH: tl.constexpr,
    C: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """The gradient of `rectify_and_pool`: g at the winner's position, 0 elsewhere."""
    place = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    real = place < count
    at = _first_corner(place, HEIGHT, WIDTH, C)
    grad_output = tl.load(g + place, mask=real, other=0.0)
    which = tl.load(winner + place, mask=real, other=4)
    for corner in tl.static_range(0, 4):
        tl.store(
            x + at + ((corner // 2) * WIDTH + corner % 2) * C,
            tl.where(which == corner, grad_output, 0.0),
            mask=real,
        )


@triton.jit
def _first_corner(place, HEIGHT: tl.constexpr, WIDTH: tl.constexpr, C: tl.constexpr):
    """Where the first of the four values of a pooled place lies."""
    c, rest = place % C, place // C
    column, rest = rest % (WIDTH // 2), rest // (WIDTH // 2)
    row, image = rest % (HEIGHT // 2), rest // (HEIGHT // 2)
    return ((image * HEIGHT + 2 * row) * WIDTH + 2 * column) * C + c
