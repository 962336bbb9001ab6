"""Similarities of local updates: cosines, EDC and MADC (FedGroup), from inner products.

An update is the difference of trained and initial parameters, in float64, without running
statistics, which would dominate it. Norms, cosines and means of updates follow from their inner
products, so no copy of all updates is needed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

NEGLIGIBLE = 1e-14
"""Squared singular values below this share of the largest are zero."""


def decomposed_cosines(products: NDArray[np.float64], directions: int) -> NDArray[np.float64]:
    """Cosines of the updates with their leading singular directions, (updates, directions).

    The largest entry of each column is positive. There are fewer columns where the updates have a
    lower rank; an update of norm zero has cosine 0 with all.

    Args:
        products: (updates, updates) inner products.
        directions: number of right singular vectors, at least 1.
    """
    squared, vectors = np.linalg.eigh(products)
    order = np.argsort(-squared, kind="stable")[:directions]
    order = order[squared[order] > NEGLIGIBLE * max(squared.max(), 0.0)]
    lengths = norms(products)[:, None]
    columns = vectors[:, order] * np.sqrt(squared[order])
    cosines = np.divide(columns, lengths, out=np.zeros_like(columns), where=lengths > 0)
    largest = np.abs(cosines).argmax(axis=0)
    signed: NDArray[np.float64] = cosines * np.sign(cosines[largest, np.arange(len(order))])
    return signed


def mean_cosine_differences(products: NDArray[np.float64]) -> NDArray[np.float64]:
    """(updates, updates) mean absolute difference of cosines with all others (MADC).

    Zero between two updates if there are no others.

    Args:
        products: (updates, updates) inner products.
    """
    cosines = cosine_similarities(products)
    count = len(cosines)
    differences = np.zeros((count, count))
    for i in range(count):
        for j in range(i):
            others = np.delete(np.arange(count), [i, j])
            if len(others):
                value = np.abs(cosines[i, others] - cosines[j, others]).mean()
                differences[i, j] = differences[j, i] = value
    return differences


SLICE = 2**16
"""Parameters processed at a time."""


def inner_products(
    starts: Sequence[Tensor], ends: Sequence[Tensor], dtype: torch.dtype = torch.float64
) -> NDArray[np.float64]:
    """(updates, updates) inner products of the updates end - start.

    Args:
        starts: (parameters,) model that each training started from.
        ends: (parameters,) model that each training ended at.
        dtype: of the differences and of sums over `SLICE` parameters.
    """
    if not starts:
        return np.zeros((0, 0))
    total = torch.zeros((len(starts), len(starts)), dtype=torch.float64, device=ends[0].device)
    distinct = {id(start): start for start in starts}
    row = {name: index for index, name in enumerate(distinct)}
    rows = torch.tensor([row[id(start)] for start in starts], device=ends[0].device)
    for begin in range(0, ends[0].shape[-1], SLICE):
        part = slice(begin, begin + SLICE)
        before = torch.stack([start[part] for start in distinct.values()]).to(dtype)
        slab = torch.stack([end[part] for end in ends]).to(dtype) - before[rows]
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
    """(updates, updates) cosines; an update of norm zero has cosine 0 with every other."""
    lengths = norms(products)
    scale = np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0)
    cosines = np.clip(products * scale[:, None] * scale, -1.0, 1.0)
    np.fill_diagonal(cosines, 1.0)
    return cosines


def cosine_distances(products: NDArray[np.float64]) -> NDArray[np.float64]:
    """(updates, updates) 1 - cosine, in [0, 2], zero on the diagonal (OCFL, equation 1)."""
    return 1.0 - cosine_similarities(products)


def cosine_with_mean(products: NDArray[np.float64], row: int, members: Sequence[int]) -> float:
    """Cosine of one update with the mean of others; 0 where either has norm zero.

    Args:
        products: (updates, updates) inner products.
        row: index of the update.
        members: indices of the others.
    """
    inside = products[np.ix_(members, members)].sum()
    squared = products[row, row] * inside
    return float(products[row, members].sum() / np.sqrt(squared)) if squared > 0 else 0.0
