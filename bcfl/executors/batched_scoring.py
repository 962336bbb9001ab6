"""Scoring many models on many clients' samples at one time, each pair once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bcfl.executors.batches import slices, subset
from bcfl.executors.executor import Outcome, Outcomes
from bcfl.executors.memory import chunks
from bcfl.executors.network import Network, weights_of
from bcfl.executors.samples import Samples, padded, padded_length
from bcfl.executors.scoring import CHUNK, loss_sum, losses_of, together
from bcfl.model import Model
from bcfl.posterior import Posterior
from bcfl.requests import Score

Array = NDArray[np.float64]
BATCHED = ("loss", "prediction", "best_counts")
"""Statistics that follow from the outputs alone."""


@dataclass(frozen=True, eq=False)
class _Piece:
    """At most `CHUNK` samples of one client, for one model."""

    request: Score
    model: str
    rows: Tensor


@dataclass(frozen=True, eq=False)
class BatchedScoring:
    """Scores models on all clients' samples.

    Attributes:
        network: evaluated for many models at one time.
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
            requests: of the statistics in `BATCHED`.
            models: posteriors by key.
        """
        chosen = {request: self._rows(request) for request in requests}
        pieces = [
            _Piece(request, key, rows[part])
            for request, rows in sorted(chosen.items(), key=lambda item: item[0].client)
            for key in dict.fromkeys(request.models)
            for part in slices(len(rows), CHUNK)
        ]
        found: dict[Score, dict[str, list[Array]]] = {request: {} for request in requests}
        with torch.no_grad():
            for piece, values in self._values(pieces, models):
                found[piece.request].setdefault(piece.model, []).append(values)
        return {
            request: self._answer(request, rows, found[request]) for request, rows in chosen.items()
        }

    def _rows(self, request: Score) -> Tensor:
        """Which samples are scored, the same as in the loop."""
        samples = self.samples[request.view]
        count, first = samples.count[request.client], samples.first[request.client]
        some = subset(count, request.samples, self.seed, 0, request.client, "score")
        return first + (torch.arange(count) if some is None else some)

    def _answer(
        self, request: Score, rows: Tensor, values: Mapping[str, Sequence[Array]]
    ) -> Outcome:
        samples = self.samples[request.view]
        parts = {key: np.concatenate(arrays) for key, arrays in values.items()}
        if request.statistic == "loss":
            full = samples.count[request.client]
            return {key: loss_sum(losses, full) for key, losses in parts.items()}
        return together(request, parts, samples.targets[rows.to(samples.targets.device)])

    def _values(
        self, pieces: Sequence[_Piece], models: Mapping[str, Posterior]
    ) -> Iterator[tuple[_Piece, Array]]:
        """What each piece needs: losses (samples,), probabilities or logits (samples, classes)."""
        groups: dict[tuple[str, bool, str, int], list[_Piece]] = defaultdict(list)
        for piece in pieces:
            asked, length = piece.request, padded_length(len(piece.rows))
            predicts = asked.statistic == "prediction"
            groups[asked.view, predicts, asked.pooling, length].append(piece)
        for (view, _, _, length), group in groups.items():
            for part in chunks(group, self._bytes(length), self.memory):
                outputs, targets = self._outputs(part, models, self.samples[view], length)
                values = self._needed(part[0].request, outputs.flatten(0, 1), targets.flatten(0, 1))
                arrays = values.view(len(part), length, *values.shape[1:]).cpu().numpy()
                for piece, array in zip(part, arrays, strict=True):
                    yield piece, array[: len(piece.rows)]

    def _needed(self, request: Score, outputs: Tensor, targets: Tensor) -> Tensor:
        if request.statistic != "prediction":
            return losses_of(self.model.likelihood, outputs, targets)
        logits = outputs.double()
        return logits if request.pooling == "logits" else logits.softmax(1)

    def _outputs(
        self,
        pieces: Sequence[_Piece],
        models: Mapping[str, Posterior],
        samples: Samples,
        length: int,
    ) -> tuple[Tensor, Tensor]:
        """Outputs (pieces, length, outputs) and their targets (pieces, length, ...)."""
        keys = list(dict.fromkeys(piece.model for piece in pieces))
        places = {key: index for index, key in enumerate(keys)}
        means = torch.stack([models[key].mean(self.model) for key in keys])
        device = samples.inputs.device
        which = torch.tensor([places[piece.model] for piece in pieces], device=device)
        rows = torch.stack([padded(piece.rows, length) for piece in pieces]).to(device)
        weights = weights_of(self.model.layout, means[which])
        return self.network.outputs(weights, samples.inputs[rows]), samples.targets[rows]

    def _bytes(self, length: int) -> int:
        number = 8  # what is summed up is float64
        return number * self.model.layout.num_parameters + length * self.bytes_per_sample
