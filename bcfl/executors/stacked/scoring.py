"""Scoring batched over pairs of a model and a client, each pair once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bcfl.architecture.evaluation import rows_at_once
from bcfl.architecture.model import Model
from bcfl.executors.batches import slices, subset
from bcfl.executors.executor import Outcome, Outcomes
from bcfl.executors.sequential.scoring import combined
from bcfl.executors.stacked.evidence import BatchedEvidence
from bcfl.executors.stacked.network import Network, Stacked
from bcfl.executors.stacked.samples import Samples, padded_batches
from bcfl.hypotheses.posterior import Posterior
from bcfl.protocol.requests import Score
from bcfl.protocol.statistics.evidence import Evidence
from bcfl.protocol.statistics.sample_values import SampleValues
from bcfl.protocol.statistics.statistic import OutputStatistic, Statistic

Array = NDArray[np.float64]


def is_batched(statistic: Statistic, network: Network) -> bool:
    """Whether a statistic is computed for many models and clients at a time.

    True for statistics of outputs that allow it, and for `Evidence` of networks without batch
    normalisation, whose batched gradients are those of training mode.

    Args:
        statistic: what clients report.
        network: the architecture, batched over models.
    """
    if isinstance(statistic, Evidence):
        return not network.mixes_samples
    return isinstance(statistic, OutputStatistic) and statistic.batched


@dataclass(frozen=True, eq=False)
class _Piece:
    """Samples of one client, at most `rows_at_once`."""

    request: Score
    rows: Tensor


@dataclass(frozen=True, eq=False, kw_only=True)
class BatchedScoring:
    """Scores models on all clients' samples.

    Attributes:
        network: batched over models.
        model: its architecture.
        samples: of all clients, by view.
        seed: of the run, which picks the subsets.
        memory: bytes that the work may take.
        bytes_per_sample: of activations, for one sample.
    """

    network: Network
    model: Model
    samples: Mapping[str, Samples]
    seed: int
    memory: int
    bytes_per_sample: int

    def answer(self, requests: Sequence[Score], models: Mapping[str, Posterior]) -> Outcomes:
        """Answer scores of clients that have the samples; see `score_models`.

        Args:
            requests: of statistics of which `is_batched` is true.
            models: posteriors by key.
        """
        rows_of = {request: self._rows(request) for request in requests}
        expanded = {r: rows for r, rows in rows_of.items() if isinstance(r.statistic, Evidence)}
        chosen = {r: rows for r, rows in rows_of.items() if r not in expanded}
        return self._evidence(expanded, models) | self._from_outputs(chosen, models)

    def _evidence(
        self, rows_of: Mapping[Score, Tensor], models: Mapping[str, Posterior]
    ) -> Outcomes:
        outcomes: Outcomes = {}
        for view in dict.fromkeys(request.view for request in rows_of):
            of_view = {request: rows for request, rows in rows_of.items() if request.view == view}
            work = BatchedEvidence(
                network=self.network,
                model=self.model,
                samples=self.samples[view],
                memory=self.memory,
                bytes_per_sample=self.bytes_per_sample,
            )
            outcomes |= work.answer(of_view, models)
        return outcomes

    def _from_outputs(
        self, chosen: Mapping[Score, Tensor], models: Mapping[str, Posterior]
    ) -> Outcomes:
        """Answers to statistics of outputs."""
        pieces = [
            _Piece(request, rows[part])
            for request, rows in sorted(chosen.items(), key=lambda item: item[0].client)
            for part in slices(len(rows), rows_at_once(self.samples[request.view].inputs))
        ]
        values_of: dict[Score, dict[str, list[Array]]] = {request: {} for request in chosen}
        with torch.no_grad():
            for piece, key, values in self._values(pieces, models):
                values_of[piece.request].setdefault(key, []).append(values)
        return {
            request: self._answer(request, rows, values_of[request])
            for request, rows in chosen.items()
        }

    def _rows(self, request: Score) -> Tensor:
        """Indices of the scored samples, the same as in the loop."""
        samples = self.samples[request.view]
        count, first = samples.count[request.client], samples.first[request.client]
        some = subset(count, request.samples, self.seed, 0, request.client, "score")
        return first + (torch.arange(count) if some is None else some)

    def _answer(
        self, request: Score, rows: Tensor, values: Mapping[str, Sequence[Array]]
    ) -> Outcome:
        samples = self.samples[request.view]
        parts = {key: np.concatenate(arrays) for key, arrays in values.items()}
        statistic = request.statistic
        read = isinstance(statistic, OutputStatistic) and statistic.reads_targets
        targets = samples.targets[rows.to(samples.targets.device)] if read else samples.targets[:0]
        return combined(request, parts, targets, samples.count[request.client])

    def _values(
        self, pieces: Sequence[_Piece], models: Mapping[str, Posterior]
    ) -> Iterator[tuple[_Piece, str, Array]]:
        """The values of the statistic for each piece and model, (samples, ...)."""
        for batch in padded_batches(
            pieces,
            lambda piece: piece.rows,
            lambda length: length * self.bytes_per_sample,
            self.memory,
            key=lambda piece: (piece.request.view, _values_of(piece)),
        ):
            needed = _values_of(batch.items[0])
            yield from self._shared(batch.items, batch.rows, needed, models)

    def _shared(
        self,
        pieces: Sequence[_Piece],
        rows: Tensor,
        needed: SampleValues,
        models: Mapping[str, Posterior],
    ) -> Iterator[tuple[_Piece, str, Array]]:
        """The values of pieces of one length: their samples are gathered once for all models."""
        samples = self.samples[pieces[0].request.view]
        rows = rows.to(samples.inputs.device)
        inputs, targets = samples.inputs[rows], samples.targets[rows]
        asking: dict[str, list[int]] = defaultdict(list)
        for index, piece in enumerate(pieces):
            for key in dict.fromkeys(piece.request.models):
                asking[key].append(index)
        outputs = []
        for key, which in asking.items():
            some = inputs if len(which) == len(pieces) else inputs[which]
            outputs.append(self.network.outputs_of_one(self._stacked(models[key]), some))
        all_outputs = torch.cat([part.flatten(0, 1) for part in outputs])
        owners = [(index, key) for key, which in asking.items() for index in which]
        owned_targets = targets[[index for index, _ in owners]].flatten(0, 1)
        values = needed(self.model.likelihood, all_outputs, owned_targets)
        arrays = values.view(len(owners), -1, *values.shape[1:]).cpu().numpy()
        for (index, key), array in zip(owners, arrays, strict=True):
            yield pieces[index], key, array[: len(pieces[index].rows)]

    def _stacked(self, posterior: Posterior) -> Stacked:
        """One model, at the mean."""
        mean, buffers = posterior.mean(self.model), posterior.buffers(self.model)
        return Stacked.of(self.model.layout, mean.unsqueeze(0), buffers.to(mean).unsqueeze(0))


def _values_of(piece: _Piece) -> SampleValues:
    statistic = piece.request.statistic
    assert isinstance(statistic, OutputStatistic)
    return statistic.values
