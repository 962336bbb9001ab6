"""Diagonal curvatures batched over models, each on samples of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from bcfl.architecture.model import Model
from bcfl.executors.arithmetic import in_full
from bcfl.executors.stacked.network import Network, Stacked, weights_of
from bcfl.executors.stacked.samples import PaddedBatch, Samples, padded_batches
from posteriors.curvature.likelihood import CurvatureKind, output_factors


@dataclass(frozen=True, eq=False, kw_only=True)
class Curvatures:
    """Computes diagonal curvatures of a model at many parameters.

    Attributes:
        network: batched over models.
        model: its architecture.
        samples: all clients' samples.
        kind: of curvature, see `posteriors.diagonal_curvature`.
        memory: bytes that the work may take.
    """

    network: Network
    model: Model
    samples: Samples
    kind: CurvatureKind
    memory: int

    def of(self, means: Tensor, buffers: Tensor, chosen: Sequence[Tensor]) -> list[Tensor]:
        """Curvatures (parameters,), summed over each problem's samples.

        Args:
            means: (problems, parameters).
            buffers: (problems, buffers) running statistics, which stay frozen.
            chosen: rows of the samples of each problem.
        """
        each = self._bytes_per_sample(means, buffers)
        models = 2 * means[0].nbytes

        def samples_at_once(length: int) -> int:
            return min(length, max(1, self.memory // each))

        curvatures = torch.zeros_like(means)
        for batch in padded_batches(
            range(len(chosen)),
            chosen.__getitem__,
            lambda length: samples_at_once(length) * each + models,
            self.memory,
        ):
            indices = list(batch.items)
            stacked = Stacked.of(self.model.layout, means[indices], buffers[indices])
            with in_full(means.device):
                curvatures[indices] = self._of_batch(batch, stacked, samples_at_once(batch.length))
        return list(curvatures)

    def _bytes_per_sample(self, means: Tensor, buffers: Tensor) -> int:
        first = Stacked.of(self.model.layout, means[:1], buffers[:1])
        numel = self.network.peak_numel(first, self.samples.inputs[:1].unsqueeze(0))
        return numel * self.samples.inputs.element_size()

    def _of_batch(self, batch: PaddedBatch[int], stacked: Stacked, size: int) -> Tensor:
        """Curvatures (items, parameters), from at most `size` samples of each item at a time."""
        inputs, targets = self.samples.inputs, self.samples.targets
        shape = len(batch.items), self.model.layout.num_parameters
        weight = stacked.weights[0]
        total, part = weight.new_zeros(shape), weight.new_empty(shape)
        views = weights_of(self.model.layout, part)
        for rows, mask in batch.slices(size, inputs.device):
            factors = self._factors(targets[rows], mask)
            self.network.diag_ggn(stacked, inputs[rows], factors, views)
            total.add_(part)
        return total

    def _factors(self, targets: Tensor, mask: Tensor) -> Callable[[Tensor], Tensor]:
        """Columns of the curvature at the outputs, 0 for padding."""

        def factors(outputs: Tensor) -> Tensor:
            flat = outputs.flatten(0, 1)
            classes = self.model.likelihood == "categorical"
            labels = targets.flatten(0, 1) if classes else targets.reshape(flat.shape)
            columns = output_factors(flat, labels, self.kind, self.model.likelihood)
            return columns.view(len(columns), *outputs.shape) * mask.unsqueeze(2)

        return factors
