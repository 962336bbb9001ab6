"""How alike local updates are, from their inner products.

An update is what a local training changed: trained parameters minus those that it started from,
trainable parameters only (running statistics would drown them), in float64. Norms, cosines and
means of updates all follow from their inner products, so no copy of all updates is needed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

SLICE = 2**16
"""Parameters that are read at a time."""


def inner_products(starts: Sequence[Tensor], ends: Sequence[Tensor]) -> NDArray[np.float64]:
    """(updates, updates) inner products of the updates end - start.

    Args:
        starts: (parameters,) model that each training started from.
        ends: (parameters,) model that each training ended at.
    """
    if not starts:
        return np.zeros((0, 0))
    total = torch.zeros((len(starts), len(starts)), dtype=torch.float64, device=ends[0].device)
    for begin in range(0, ends[0].shape[-1], SLICE):
        part = slice(begin, begin + SLICE)
        rows = [
            end[part].double() - start[part].double()
            for start, end in zip(starts, ends, strict=True)
        ]
        slab = torch.stack(rows)
        total += slab @ slab.T
    products: NDArray[np.float64] = total.cpu().numpy()
    return products


def norms(products: NDArray[np.float64]) -> NDArray[np.float64]:
    """(updates,) Euclidean lengths."""
    lengths: NDArray[np.float64] = np.sqrt(np.diagonal(products))
    return lengths


def norm_of_mean(products: NDArray[np.float64]) -> float:
    """Euclidean length of the unweighted mean update."""
    return float(np.sqrt(max(products.sum(), 0.0))) / len(products)


def cosine_similarities(products: NDArray[np.float64]) -> NDArray[np.float64]:
    """(updates, updates) cosines; an update of length zero has cosine 0 with every other."""
    lengths = norms(products)
    scale = np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0)
    cosines = np.clip(products * scale[:, None] * scale, -1.0, 1.0)
    np.fill_diagonal(cosines, 1.0)
    return cosines


def cosine_distances(products: NDArray[np.float64]) -> NDArray[np.float64]:
    """(updates, updates) 1 - cosine, in [0, 2], zero on the diagonal (OCFL, equation 1)."""
    return 1.0 - cosine_similarities(products)


def cosine_with_mean(products: NDArray[np.float64], row: int, members: Sequence[int]) -> float:
    """Cosine of one update with the mean update of others; 0 where either has length zero."""
    inside = products[np.ix_(members, members)].sum()
    squared = products[row, row] * inside
    return float(products[row, members].sum() / np.sqrt(squared)) if squared > 0 else 0.0
