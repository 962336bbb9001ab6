"""Evidence batched over pairs of a model and a client, each pair once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from bcfl.architecture.evaluation import CHUNK
from bcfl.architecture.model import Model
from bcfl.executors.arithmetic import in_full
from bcfl.executors.executor import Outcomes
from bcfl.executors.stacked.curvature import Curvatures
from bcfl.executors.stacked.network import Network, Stacked, weights_of
from bcfl.executors.stacked.samples import PaddedBatch, Samples, padded_batches
from bcfl.hypotheses.posterior import Posterior
from bcfl.protocol.requests import Score
from bcfl.protocol.statistics.evidence import EvidenceSum
from posteriors.curvature.likelihood import loss_gradient, negative_log_likelihood


@dataclass(frozen=True, eq=False)
class _Pair:
    """A model on the samples of a client."""

    request: Score
    key: str
    rows: Tensor


@dataclass(frozen=True, eq=False, kw_only=True)
class BatchedEvidence:
    """Expands log-likelihoods around models: value, gradient and curvature.

    Attributes:
        network: batched over models.
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

    def answer(self, rows_of: Mapping[Score, Tensor], models: Mapping[str, Posterior]) -> Outcomes:
        """Answer scores of the statistic `Evidence`.

        Args:
            rows_of: indices of the samples (count,) of each request.
            models: posteriors by key.
        """
        pairs = [
            _Pair(request, key, rows)
            for request, rows in sorted(rows_of.items(), key=lambda item: item[0].client)
            for key in dict.fromkeys(request.models)
        ]
        evidence_of: dict[Score, dict[str, EvidenceSum]] = {request: {} for request in rows_of}
        for batch in padded_batches(pairs, lambda pair: pair.rows, self._bytes, self.memory):
            for pair, evidence in zip(batch.items, self._of(batch, models), strict=True):
                evidence_of[pair.request][pair.key] = evidence
        return {
            request: {key: parts[key] for key in request.models}
            for request, parts in evidence_of.items()
        }

    def _bytes(self, length: int) -> int:
        number = self.samples.inputs.element_size()
        parameters = 4 * number * self.model.layout.num_parameters
        return parameters + min(length, CHUNK) * self.bytes_per_sample

    def _of(self, batch: PaddedBatch[_Pair], models: Mapping[str, Posterior]) -> list[EvidenceSum]:
        pairs = batch.items
        posteriors = [models[pair.key] for pair in pairs]
        means = torch.stack([posterior.mean(self.model) for posterior in posteriors])
        buffers = torch.stack([posterior.buffers(self.model).to(means) for posterior in posteriors])
        with in_full(means.device), torch.no_grad():
            losses, gradients = self._sums(batch, means, buffers)
            work = Curvatures(
                network=self.network,
                model=self.model,
                samples=self.samples,
                kind="ggn",
                memory=self.memory,
            )
            curvatures = work.of(means, buffers, [pair.rows for pair in pairs])
        evidences = []
        for pair, loss, gradient, curvature in zip(
            pairs, losses.tolist(), gradients, curvatures, strict=True
        ):
            full = self.samples.count[pair.request.client]
            scale = full / len(pair.rows)
            evidences.append(EvidenceSum(-scale * loss, -scale * gradient, scale * curvature, full))
        return evidences

    def _sums(
        self, batch: PaddedBatch[_Pair], means: Tensor, buffers: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Losses (pairs,) float64 and their gradients (pairs, parameters)."""
        layout, device = self.model.layout, self.samples.inputs.device
        stacked = Stacked.of(layout, means, buffers)
        loss = torch.zeros(len(batch.items), dtype=torch.float64, device=device)
        total, part = torch.zeros_like(means), torch.empty_like(means)
        for rows, mask in batch.slices(CHUNK, device):
            targets = self.samples.targets[rows]

            def grad_output(
                outputs: Tensor, targets: Tensor = targets, mask: Tensor = mask
            ) -> Tensor:
                flat = negative_log_likelihood(
                    outputs.flatten(0, 1).double(), targets.flatten(0, 1), self.model.likelihood
                )
                loss.add_(flat.view(mask.shape).where(mask, 0.0).sum(1))
                return loss_gradient(outputs, targets, self.model.likelihood, mask.to(outputs))

            inputs = self.samples.inputs[rows]
            self.network.gradients(stacked, inputs, grad_output, weights_of(layout, part))
            total.add_(part)
        return loss, total
