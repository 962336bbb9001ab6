"""Decomposed cosine similarity of updates: what FedGroup clusters by.

Duan et al., "FedGroup: Efficient Federated Learning via Decomposed Similarity-Based Clustering"
(2021). All of it follows from the inner products of the updates: with D Dᵀ = U Σ² Uᵀ, the rows of D
being the updates, the cosine of update i with the j-th right singular vector is Σ_j U_ij / ‖D_i‖.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bcfl.policies.update_similarity import cosine_similarities, norms

NEGLIGIBLE = 1e-14
"""Squared singular values below this share of the largest are zero."""


def decomposed_cosines(products: NDArray[np.float64], directions: int) -> NDArray[np.float64]:
    """(updates, directions) cosines of the updates with their main directions.

    The sign of a column is such that its largest entry is positive. There are fewer columns where
    the updates span fewer directions; an update of length zero has cosine 0 with all.

    Args:
        products: (updates, updates) inner products.
        directions: how many right singular vectors, at least 1.
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


def decomposed_distances(cosines: NDArray[np.float64]) -> NDArray[np.float64]:
    """(updates, updates) Euclidean distance of decomposed cosine similarity (EDC).

    Args:
        cosines: (updates, directions) from `decomposed_cosines`.
    """
    apart: NDArray[np.float64] = np.linalg.norm(cosines[:, None] - cosines[None], axis=2)
    apart /= np.sqrt(max(cosines.shape[1], 1))
    return apart


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
