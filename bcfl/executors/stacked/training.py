"""Local training batched over models; the same steps as `train_locally`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor

from bcfl.architecture.model import Model
from bcfl.executors.batches import subset, training_batches
from bcfl.executors.executor import Outcomes
from bcfl.executors.regularization import references_of
from bcfl.executors.sgd import prior_pull
from bcfl.executors.stacked.curvature import Curvatures
from bcfl.executors.stacked.descent import Descent, StackedTraining, descend
from bcfl.executors.stacked.network import Network
from bcfl.executors.stacked.samples import PaddedBatch, Samples, padded_batches, padded_length
from bcfl.hypotheses.posterior import Posterior
from bcfl.protocol.answers import Trained
from bcfl.protocol.requests import Train
from posteriors.curvature.likelihood import CurvatureKind


@dataclass(frozen=True, eq=False, kw_only=True)
class BatchedTraining:
    """Trains from many models on the samples of many clients in batches.

    Attributes:
        network: batched over models.
        model: its architecture.
        samples: all clients' training samples.
        memory: bytes that the work may take.
        bytes_per_sample: of activations, for one sample.
        descent: runs the SGD steps of a batch.
    """

    network: Network
    model: Model
    samples: Samples
    memory: int
    bytes_per_sample: int
    descent: Descent = descend

    def answer(
        self,
        requests: Sequence[Train],
        models: Mapping[str, Posterior],
        seed_and_round: tuple[int, int],
    ) -> Outcomes:
        """Answer trainings; batching changes the results by rounding alone.

        Args:
            requests: of objectives that are batched and of clients in `samples`.
            models: posteriors by key.
            seed_and_round: seed of the run and number of the round.
        """
        answers: Outcomes = {}
        ordered = sorted(requests, key=lambda request: (request.client, request.start))
        for batch in padded_batches(
            ordered,
            self._rows(seed_and_round),
            self._bytes(requests),
            self.memory,
            key=lambda request: (
                request.objective,
                self._steps(request),
                tuple(map(len, request.references)),
            ),
            length_of=int if self.network.mixes_samples else padded_length,
        ):
            with torch.no_grad():
                problems = self._problems(batch, models)
                means, buffers = self.descent(problems, batch.items[0].objective)
                answers |= self._answers(batch.items, means, buffers, seed_and_round)
        return answers

    def _rows(self, seed_and_round: tuple[int, int]) -> Callable[[Train], Tensor]:
        """From a training to the sample indices of its mini-batches, (steps, batch)."""

        @cache
        def drawn(client: str, batch_size: int, steps: int) -> Tensor:
            rows = training_batches(
                self.samples.count[client], batch_size, steps, *seed_and_round, client
            )
            return rows + self.samples.first[client]

        def rows_of(request: Train) -> Tensor:
            objective = request.objective
            return drawn(request.client, objective.batch_size, self._steps(request))

        return rows_of

    def _steps(self, request: Train) -> int:
        return request.objective.steps(self.samples.count[request.client])

    def _bytes(self, requests: Sequence[Train]) -> Callable[[int], int]:
        references = max(sum(map(len, request.references)) for request in requests)
        number = self.samples.inputs.element_size()
        vectors = (6 + references) * number * self.model.layout.num_parameters
        return lambda length: vectors + length * self.bytes_per_sample

    def _problems(
        self, batch: PaddedBatch[Train], models: Mapping[str, Posterior]
    ) -> StackedTraining:
        requests, device = batch.items, self.samples.inputs.device
        starts = [models[request.start] for request in requests]
        parameters = torch.stack([start.mean(self.model) for start in starts])
        buffers = torch.stack([start.buffers(self.model) for start in starts])
        pulls = [
            prior_pull(request.objective, start, self.model, self.samples.count[request.client])
            for request, start in zip(requests, starts, strict=True)
        ]
        pulled = [pull for pull in pulls if pull is not None]
        references = [references_of(each, self.model, models, parameters) for each in requests]
        sizes = batch.mask.sum(1, keepdim=True)
        return StackedTraining(
            network=self.network,
            model=self.model,
            samples=self.samples,
            parameters=parameters,
            buffers=buffers.to(parameters),
            pull=torch.stack(pulled) if pulled else None,
            references=[torch.stack(of_term) for of_term in zip(*references, strict=True)],
            rows=batch.rows.transpose(0, 1).contiguous().to(device),
            shares=(batch.mask.to(parameters.dtype) / sizes).to(device),
        )

    def _answers(
        self,
        requests: Sequence[Train],
        means: Tensor,
        buffers: Tensor,
        seed_and_round: tuple[int, int],
    ) -> Outcomes:
        counts = [self.samples.count[request.client] for request in requests]
        curvatures = self._curvatures(requests, means, buffers, seed_and_round)
        return {
            request: Trained(
                mean=mean.clone(),
                buffers=statistics.clone(),
                curvature=curvature.to(mean),
                num_samples=count,
            )
            for request, mean, statistics, curvature, count in zip(
                requests, means, buffers, curvatures, counts, strict=True
            )
        }

    def _curvatures(
        self,
        requests: Sequence[Train],
        means: Tensor,
        buffers: Tensor,
        seed_and_round: tuple[int, int],
    ) -> Sequence[Tensor]:
        """The precision that each client reports, by the common objective."""
        objective = requests[0].objective
        counts = [self.samples.count[request.client] for request in requests]
        if not objective.reports_precision:
            same = objective.curvature == "uniform"
            return [torch.tensor(1.0 if same else float(count)) for count in counts]
        chosen = []
        for request, count in zip(requests, counts, strict=True):
            name, limit = request.client, objective.curvature_samples
            drawn = subset(count, limit, *seed_and_round, name, "curvature")
            rows = torch.arange(count) if drawn is None else drawn
            chosen.append(rows + self.samples.first[name])
        kind: CurvatureKind = "ggn" if objective.curvature == "ggn" else "empirical_fisher"
        work = Curvatures(
            network=self.network,
            model=self.model,
            samples=self.samples,
            kind=kind,
            memory=self.memory,
        )
        scales = [count / len(rows) for count, rows in zip(counts, chosen, strict=True)]
        curvatures = work.of(means, buffers, chosen)
        return [curvature * scale for curvature, scale in zip(curvatures, scales, strict=True)]
