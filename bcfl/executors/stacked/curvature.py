"""Diagonal curvatures of many models, each on samples of its own."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from bcfl.architecture.model import Model
from bcfl.executors.arithmetic import in_full
from bcfl.executors.batches import slices
from bcfl.executors.memory import chunks
from bcfl.executors.stacked.network import Network, Stacked, weights_of
from bcfl.executors.stacked.samples import Samples, padded, padded_length
from posteriors.curvature.likelihood import CurvatureKind, output_factors


@dataclass(frozen=True, eq=False)
class Curvatures:
    """Computes diagonal curvatures of a model at many parameters.

    Attributes:
        network: evaluated for many models at one time.
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
        groups: dict[int, list[int]] = defaultdict(list)
        for index, rows in enumerate(chosen):
            groups[padded_length(len(rows))].append(index)
        each = self._bytes_per_sample(means, buffers)
        found: dict[int, Tensor] = {}
        for length, group in groups.items():
            size = min(length, max(1, self.memory // each))
            models = 2 * means[0].nbytes
            for part in chunks(group, size * each + models, self.memory):
                rows = torch.stack([padded(chosen[index], length) for index in part])
                counts = torch.tensor([len(chosen[index]) for index in part])
                real = torch.arange(length) < counts.unsqueeze(1)
                some = list(part)
                stacked = Stacked.of(self.model.layout, means[some], buffers[some])
                total = torch.zeros_like(means[some])
                with in_full(means.device):
                    for samples in slices(length, size):
                        self._add(total, stacked, rows[:, samples], real[:, samples])
                found |= dict(zip(part, total, strict=True))
        return [found[index] for index in range(len(chosen))]

    def _bytes_per_sample(self, means: Tensor, buffers: Tensor) -> int:
        one = Stacked.of(self.model.layout, means[:1], buffers[:1])
        numbers = self.network.peak_numel(one, self.samples.inputs[:1].unsqueeze(0))
        return numbers * self.samples.inputs.element_size()

    def _add(self, total: Tensor, stacked: Stacked, rows: Tensor, real: Tensor) -> None:
        """Add to total (problems, parameters) for samples (problems, batch), if they are real."""
        device = self.samples.inputs.device
        rows, real = rows.to(device), real.to(device)
        part = torch.empty_like(total)
        self.network.diag_ggn(
            stacked,
            self.samples.inputs[rows],
            self._factors(self.samples.targets[rows], real),
            weights_of(self.model.layout, part),
        )
        total.add_(part)

    def _factors(self, targets: Tensor, real: Tensor) -> Callable[[Tensor], Tensor]:
        """Columns of the curvature at the outputs, 0 for padding."""

        def factors(outputs: Tensor) -> Tensor:
            flat = outputs.flatten(0, 1)
            classes = self.model.likelihood == "categorical"
            labels = targets.flatten(0, 1) if classes else targets.reshape(flat.shape)
            columns = output_factors(flat, labels, self.kind, self.model.likelihood)
            return columns.view(len(columns), *outputs.shape) * real.unsqueeze(2)

        return factors
