"""Evidence of many models on many clients' samples at one time, each pair once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from bcfl.architecture.evaluation import CHUNK
from bcfl.architecture.model import Model
from bcfl.executors.arithmetic import in_full
from bcfl.executors.batches import slices
from bcfl.executors.executor import Outcomes
from bcfl.executors.memory import chunks
from bcfl.executors.stacked.curvature import Curvatures
from bcfl.executors.stacked.descent import loss_grad
from bcfl.executors.stacked.network import Network, Stacked, weights_of
from bcfl.executors.stacked.samples import Samples, padded, padded_length
from bcfl.hypotheses.posterior import Posterior
from bcfl.protocol.requests import Score
from bcfl.protocol.statistics.evidence import EvidenceSum
from bcfl.protocol.statistics.sample_values import sample_losses


@dataclass(frozen=True, eq=False)
class _Pair:
    """A model on the samples of a client."""

    request: Score
    key: str
    rows: Tensor


@dataclass(frozen=True, eq=False)
class BatchedEvidence:
    """Expands log-likelihoods around models: value, gradient and curvature.

    Attributes:
        network: evaluated for many models at one time.
        model: its architecture.
        samples: all clients' samples of one view.
        memory: bytes that the work may take.
        bytes_per_sample: of activations, for one sample.
    """

    network: Network
    model: Model
    samples: Samples
    memory: int
    bytes_per_sample: int

    def answer(self, asked: Mapping[Score, Tensor], models: Mapping[str, Posterior]) -> Outcomes:
        """Answer scores of the statistic `Evidence`.

        Args:
            asked: rows of the samples (count,) of each request.
            models: posteriors by key.
        """
        groups: dict[int, list[_Pair]] = defaultdict(list)
        for request, rows in sorted(asked.items(), key=lambda item: item[0].client):
            for key in dict.fromkeys(request.models):
                groups[padded_length(len(rows))].append(_Pair(request, key, rows))
        found: dict[Score, dict[str, EvidenceSum]] = {request: {} for request in asked}
        number = self.samples.inputs.element_size()
        for length, group in groups.items():
            each = 4 * number * self.model.layout.num_parameters
            each += min(length, CHUNK) * self.bytes_per_sample
            for part in chunks(group, each, self.memory):
                for pair, evidence in zip(part, self._of(part, models, length), strict=True):
                    found[pair.request][pair.key] = evidence
        return {
            request: {key: parts[key] for key in request.models} for request, parts in found.items()
        }

    def _of(
        self, pairs: Sequence[_Pair], models: Mapping[str, Posterior], length: int
    ) -> list[EvidenceSum]:
        posteriors = [models[pair.key] for pair in pairs]
        means = torch.stack([posterior.mean(self.model) for posterior in posteriors])
        buffers = torch.stack([posterior.buffers(self.model).to(means) for posterior in posteriors])
        with in_full(means.device), torch.no_grad():
            losses, slopes = self._sums(pairs, means, buffers, length)
            work = Curvatures(self.network, self.model, self.samples, "ggn", self.memory)
            curvatures = work.of(means, buffers, [pair.rows for pair in pairs])
        evidences = []
        for pair, loss, grad_output, curvature in zip(
            pairs, losses.tolist(), slopes, curvatures, strict=True
        ):
            full = self.samples.count[pair.request.client]
            scale = full / len(pair.rows)
            evidences.append(
                EvidenceSum(-scale * loss, -scale * grad_output, scale * curvature, full)
            )
        return evidences

    def _sums(
        self, pairs: Sequence[_Pair], means: Tensor, buffers: Tensor, length: int
    ) -> tuple[Tensor, Tensor]:
        """Losses (pairs,) float64 and their gradients (pairs, parameters)."""
        layout, device = self.model.layout, self.samples.inputs.device
        counts = torch.tensor([len(pair.rows) for pair in pairs])
        real = (torch.arange(length) < counts.unsqueeze(1)).to(device)
        rows = torch.stack([padded(pair.rows, length) for pair in pairs]).to(device)
        stacked = Stacked.of(layout, means, buffers)
        loss = torch.zeros(len(pairs), dtype=torch.float64, device=device)
        total, part = torch.zeros_like(means), torch.empty_like(means)
        for some in slices(length, CHUNK):
            targets, counted = self.samples.targets[rows[:, some]], real[:, some]

            def grad_output(
                outputs: Tensor, targets: Tensor = targets, counted: Tensor = counted
            ) -> Tensor:
                flat = sample_losses(
                    self.model.likelihood, outputs.flatten(0, 1), targets.flatten(0, 1)
                )
                loss.add_(flat.view(counted.shape).where(counted, 0.0).sum(1))
                return loss_grad(self.model.likelihood, outputs, targets, counted.to(outputs))

            inputs = self.samples.inputs[rows[:, some]]
            self.network.gradients(stacked, inputs, grad_output, weights_of(layout, part))
            total.add_(part)
        return loss, total
