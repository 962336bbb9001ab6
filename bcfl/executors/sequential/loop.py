"""The reference executor: a sequential loop over requests in this process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch

from bcfl.architecture.model import Model
from bcfl.data.clients import ClientData
from bcfl.data.names import TRAIN
from bcfl.data.view import View
from bcfl.executors.attempts import attempted
from bcfl.executors.executor import Outcome, Outcomes
from bcfl.executors.sequential.flat_module import FlatModule, aligned
from bcfl.executors.sequential.scoring import score_models
from bcfl.executors.sequential.training import train_locally
from bcfl.hypotheses.posterior import Posterior
from bcfl.protocol.answers import ClientInfo, Failure
from bcfl.protocol.requests import Describe, Request, Score, Train
from bcfl.runtime.suggestions import counted


@dataclass(frozen=True, eq=False, kw_only=True)
class LoopExecutor:
    """Local training and scoring in this process, one model at a time, on one device.

    What goes wrong while a client trains or scores is that client's `Failure`.

    Attributes:
        clients: the clients' data by name, on `device` in `dtype`.
        model: the architecture.
        seed: seed of the run.
        device: of the computations.
        dtype: floating-point type of parameters and inputs.
    """

    clients: Mapping[str, ClientData]
    model: Model
    seed: int
    device: torch.device
    dtype: torch.dtype

    def __repr__(self) -> str:
        number = counted(len(self.clients), "client")
        return f"LoopExecutor({number}, {self.model.name}, {self.device}, {self.dtype})"

    @classmethod
    def on(
        cls,
        clients: Sequence[ClientData],
        model: Model,
        seed: int,
        device: torch.device,
        dtype: torch.dtype,
    ) -> LoopExecutor:
        """Put the clients' data on a device.

        Args:
            clients: clients with their samples.
            model: architecture.
            seed: of the federation.
            device: where samples and models are put.
            dtype: of the models' parameters.
        """
        placed = {
            data.client: ClientData(
                data.client,
                {
                    name: View(
                        aligned(view.inputs, device, dtype), aligned(view.targets, device, dtype)
                    )
                    for name, view in data.views.items()
                },
                data.group,
            )
            for data in clients
        }
        return cls(clients=placed, model=model, seed=seed, device=device, dtype=dtype)

    @cached_property
    def _workspace(self) -> FlatModule:
        return FlatModule(self.model, self.device, self.dtype, channels_last=True)

    def answer(
        self, requests: Sequence[Request], models: Mapping[str, Posterior], round: int
    ) -> Outcomes:
        """Answer the requests; see `bcfl.executors.Executor`."""
        known = [request for request in requests if request.client in self.clients]
        outcomes: dict[Request, Outcome] = {
            request: Failure("missing", f"no client {request.client!r} here")
            for request in requests
            if request.client not in self.clients
        }
        scores = []
        for request in known:
            match request:
                case Describe():
                    outcomes[request] = self._describe(request)
                case Train():
                    outcomes[request] = attempted(self._train, request, models, round)
                case Score():
                    scores.append(request)
        outcomes |= score_models(
            self._workspace, self.model, models, self.clients, scores, self.seed
        )
        return outcomes

    def _train(self, request: Train, models: Mapping[str, Posterior], round: int) -> Outcome:
        view = self.clients[request.client].joined(request.views)
        if view is None:
            views = ", ".join(request.views)
            return Failure("refused", f"client {request.client!r} has no samples in {views}")
        seed_and_round = (self.seed, round)
        return train_locally(self._workspace, self.model, models, view, request, seed_and_round)

    def _describe(self, request: Describe) -> ClientInfo:
        data = self.clients[request.client]
        return ClientInfo(data.num_samples, tuple(data.views[TRAIN].inputs.shape[1:]))
