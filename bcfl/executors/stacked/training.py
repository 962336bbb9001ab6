"""Local training of many models at one time; the same steps as `train_locally`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from bcfl.architecture.model import Model
from bcfl.executors.batches import subset, training_batches
from bcfl.executors.executor import Outcomes
from bcfl.executors.memory import chunks
from bcfl.executors.sgd import prior_pull
from bcfl.executors.stacked.curvature import Curvatures
from bcfl.executors.stacked.descent import Descent, StackedTraining, descend
from bcfl.executors.stacked.network import Network
from bcfl.executors.stacked.samples import Samples, padded, padded_length
from bcfl.hypotheses.posterior import Posterior
from bcfl.protocol.answers import Trained
from bcfl.protocol.objective import Objective
from bcfl.protocol.requests import Train
from posteriors.curvature.likelihood import CurvatureKind


@dataclass(frozen=True, eq=False)
class BatchedTraining:
    """Trains from many models on many clients' samples, side by side.

    Attributes:
        network: evaluated for many models at one time.
        model: its architecture.
        samples: all clients' training samples.
        memory: bytes that the work may take.
        bytes_per_sample: of activations, for one sample.
        descent: does the steps of all problems.
    """

    network: Network
    model: Model
    samples: Samples
    memory: int
    bytes_per_sample: int
    descent: Descent = descend

    def answer(
        self, requests: Sequence[Train], models: Mapping[str, Posterior], when: tuple[int, int]
    ) -> Outcomes:
        """Answer trainings; which are asked together changes nothing but the time it takes.

        Args:
            requests: of plain objectives, of clients that are here.
            models: posteriors by key.
            when: seed of the run and number of the round.
        """
        answers: Outcomes = {}
        for objective, length, group in self._groups(requests):
            each = self._bytes(length)
            with torch.no_grad():
                for part in chunks(group, each, self.memory):
                    problems = self._problems(part, models, objective, length, when)
                    means, buffers = self.descent(problems, objective)
                    answers |= self._answers(part, means, buffers, when)
        return answers

    def _groups(
        self, requests: Sequence[Train]
    ) -> Iterator[tuple[Objective, int, Sequence[Train]]]:
        """Trainings of one objective and batch length, in an order that depends on them alone.

        Batches are padded, except where padding would change what a network gives.
        """
        groups: dict[tuple[Objective, int], list[Train]] = defaultdict(list)
        for request in sorted(requests, key=lambda one: (one.client, one.start)):
            size = min(request.objective.batch_size, self.samples.count[request.client])
            length = size if self.network.mixes_samples else padded_length(size)
            groups[request.objective, length].append(request)
        for (objective, length), group in groups.items():
            yield objective, length, group

    def _bytes(self, length: int) -> int:
        number = self.samples.inputs.element_size()
        return 6 * number * self.model.layout.num_parameters + length * self.bytes_per_sample

    def _problems(
        self,
        requests: Sequence[Train],
        models: Mapping[str, Posterior],
        objective: Objective,
        length: int,
        when: tuple[int, int],
    ) -> StackedTraining:
        device = self.samples.inputs.device
        counts = [self.samples.count[request.client] for request in requests]
        sizes = torch.tensor([min(objective.batch_size, count) for count in counts])
        drawn: dict[str, Tensor] = {}
        for request, count in zip(requests, counts, strict=True):
            if request.client not in drawn:
                rows = training_batches(
                    count, objective.batch_size, objective.local_steps, *when, request.client
                )
                drawn[request.client] = padded(rows + self.samples.first[request.client], length)
        starts = [models[request.start] for request in requests]
        parameters = torch.stack([start.mean(self.model) for start in starts])
        buffers = torch.stack([start.buffers(self.model) for start in starts])
        pulls = [
            prior_pull(objective, start, self.model, count)
            for start, count in zip(starts, counts, strict=True)
        ]
        pull = torch.stack(given) if (given := [p for p in pulls if p is not None]) else None
        real = torch.arange(length) < sizes.unsqueeze(1)
        return StackedTraining(
            network=self.network,
            model=self.model,
            samples=self.samples,
            parameters=parameters,
            buffers=buffers.to(parameters),
            pull=pull,
            rows=torch.stack([drawn[request.client] for request in requests], dim=1).to(device),
            shares=(real.to(parameters.dtype) / sizes.unsqueeze(1)).to(device),
        )

    def _answers(
        self,
        requests: Sequence[Train],
        means: Tensor,
        buffers: Tensor,
        when: tuple[int, int],
    ) -> Outcomes:
        counts = [self.samples.count[request.client] for request in requests]
        curvatures = self._curvatures(requests, means, buffers, when)
        return {
            request: Trained(mean.clone(), statistics.clone(), curvature.to(mean), count)
            for request, mean, statistics, curvature, count in zip(
                requests, means, buffers, curvatures, counts, strict=True
            )
        }

    def _curvatures(
        self, requests: Sequence[Train], means: Tensor, buffers: Tensor, when: tuple[int, int]
    ) -> Sequence[Tensor]:
        """What each client reports of its likelihood, by the objective that all share."""
        objective = requests[0].objective
        counts = [self.samples.count[request.client] for request in requests]
        if not objective.reports_precision:
            same = objective.curvature == "uniform"
            return [torch.tensor(1.0 if same else float(count)) for count in counts]
        chosen = []
        for request, count in zip(requests, counts, strict=True):
            name, limit = request.client, objective.curvature_samples
            some = subset(count, limit, *when, name, "curvature")
            rows = torch.arange(count) if some is None else some
            chosen.append(rows + self.samples.first[name])
        kind: CurvatureKind = "ggn" if objective.curvature == "ggn" else "empirical_fisher"
        work = Curvatures(self.network, self.model, self.samples, kind, self.memory)
        scales = [count / len(rows) for count, rows in zip(counts, chosen, strict=True)]
        found = work.of(means, buffers, chosen)
        return [curvature * scale for curvature, scale in zip(found, scales, strict=True)]
