"""Diagonal curvatures of many models, each on samples of its own."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from bcfl.executors.dense import DenseNetwork
from bcfl.executors.flat_module import FlatModule
from bcfl.executors.memory import chunks
from bcfl.executors.network import Network, Stacked, weights_of
from bcfl.executors.samples import Samples, padded, padded_length
from bcfl.model import Model
from posteriors import diagonal_curvature
from posteriors.output_factors import CurvatureKind, output_factors


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

        Side by side where all layers are fully connected, else one after the other.

        Args:
            means: (problems, parameters).
            buffers: (problems, buffers) running statistics, which stay frozen.
            chosen: rows of the samples of each problem.
        """
        if not isinstance(self.network, DenseNetwork):
            return self._one_by_one(means, buffers, chosen)
        groups: dict[int, list[int]] = defaultdict(list)
        for index, rows in enumerate(chosen):
            groups[padded_length(len(rows))].append(index)
        found: dict[int, Tensor] = {}
        for length, group in groups.items():
            for part in chunks(group, self._bytes(self.network, length), self.memory):
                rows = torch.stack([padded(chosen[index], length) for index in part])
                counts = torch.tensor([len(chosen[index]) for index in part])
                squares = self._squares(self.network, means[list(part)], rows, counts)
                found |= dict(zip(part, squares, strict=True))
        return [found[index] for index in range(len(chosen))]

    def _bytes(self, network: DenseNetwork, length: int) -> int:
        widest = max(self.model.layout.parameters[one.weight].shape[0] for one in network.layers)
        numbers = 4 * self.model.num_outputs * length * widest + self.model.layout.num_parameters
        return numbers * self.samples.inputs.element_size()

    def _squares(
        self, network: DenseNetwork, means: Tensor, rows: Tensor, counts: Tensor
    ) -> Tensor:
        """(problems, parameters) for rows (problems, batch), of which the first `counts` count."""
        device = self.samples.inputs.device
        real = (torch.arange(rows.shape[1]) < counts.unsqueeze(1)).to(device)
        rows = rows.to(device)
        total = torch.empty_like(means)
        network.squares(
            Stacked(weights_of(self.model.layout, means)),
            self.samples.inputs[rows],
            self._factors(self.samples.targets[rows], real),
            weights_of(self.model.layout, total),
        )
        return total

    def _factors(self, targets: Tensor, real: Tensor) -> Callable[[Tensor], Tensor]:
        """Columns of the curvature at the outputs, 0 for padding."""

        def factors(outputs: Tensor) -> Tensor:
            flat = outputs.flatten(0, 1)
            classes = self.model.likelihood == "categorical"
            labels = targets.flatten(0, 1) if classes else targets.reshape(flat.shape)
            columns = output_factors(flat, labels, self.kind, self.model.likelihood)
            return columns.view(len(columns), *outputs.shape) * real.unsqueeze(2)

        return factors

    def _one_by_one(self, means: Tensor, buffers: Tensor, chosen: Sequence[Tensor]) -> list[Tensor]:
        workspace = FlatModule(self.model, means.device, means.dtype)
        found = []
        for mean, statistics, rows in zip(means, buffers, chosen, strict=True):
            module = workspace.load(mean, statistics, training=False)
            place = rows.to(means.device)
            inputs, targets = self.samples.inputs[place], self.samples.targets[place]
            likelihood = self.model.likelihood
            found.append(
                diagonal_curvature(module, inputs, targets, kind=self.kind, likelihood=likelihood)
            )
        return found
