"""Mini-batches and random subsets of samples: functions of (seed, round, client) alone."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from bcfl.runtime.seeds import generator


def training_batches(
    num_samples: int, batch_size: int, steps: int, seed: int, round: int, client: str
) -> Tensor:
    """Indices of the samples of each SGD step, (steps, min(batch_size, num_samples)) int64.

    The samples are shuffled anew for each epoch, and the stream of epochs is cut into mini-batches
    of equal size, so each sample is used equally often to within one.

    Args:
        num_samples: training samples of the client.
        batch_size: samples per mini-batch.
        steps: number of SGD steps.
        seed: of the federation.
        round: number of the server round.
        client: name of the client.
    """
    random = generator(seed, round, client, "batches")
    size = min(batch_size, num_samples)
    passes = -(-steps * size // num_samples)
    stream = torch.cat([torch.from_numpy(random.permutation(num_samples)) for _ in range(passes)])
    return stream[: steps * size].view(steps, size)


def subset(
    num_samples: int, limit: int | None, seed: int, round: int, client: str, purpose: str
) -> Tensor | None:
    """A uniform random subset (limit,) of sample indices, or None where all fit in the limit.

    Args:
        num_samples: samples to choose from.
        limit: size of the subset; None is all.
        seed: of the federation.
        round: number of the server round.
        client: name of the client.
        purpose: name of the random stream, so that subsets for different uses are independent.
    """
    if limit is None or num_samples <= limit:
        return None
    random = generator(seed, round, client, purpose)
    return torch.from_numpy(random.permutation(num_samples)[:limit]).sort().values


def slices(num_samples: int, size: int) -> Iterator[slice]:
    """Consecutive slices of at most `size` samples.

    Args:
        num_samples: samples in all.
        size: largest length of a slice.
    """
    for start in range(0, num_samples, size):
        yield slice(start, min(start + size, num_samples))
