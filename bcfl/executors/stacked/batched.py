"""An executor that batches the work of many clients."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

import torch

from bcfl.architecture.model import Model
from bcfl.data.clients import ClientData
from bcfl.data.names import TRAIN
from bcfl.executors.config import checked_memory
from bcfl.executors.executor import Outcomes
from bcfl.executors.memory import budget
from bcfl.executors.regularization import sees_parameters
from bcfl.executors.sequential.loop import LoopExecutor
from bcfl.executors.stacked.dense import DenseNetwork
from bcfl.executors.stacked.descent import Descent, descend
from bcfl.executors.stacked.grouped import GroupedNetwork
from bcfl.executors.stacked.network import Network
from bcfl.executors.stacked.samples import Samples
from bcfl.executors.stacked.scoring import BatchedScoring, is_batched
from bcfl.executors.stacked.training import BatchedTraining
from bcfl.hypotheses.posterior import Posterior
from bcfl.protocol.objective import Objective
from bcfl.protocol.requests import TRAINING, Request, Score, Train
from posteriors.networks.functional import own_copy

SUPPORTED = (
    "local_steps",
    "local_epochs",
    "batch_size",
    "learning_rate",
    "momentum",
    "weight_decay",
    "prior_weight",
    "curvature",
    "curvature_samples",
    "regularizers",
)
"""Fields of an objective that the batched executor supports."""


def network_of(model: Model) -> Network | None:
    """The architecture batched over models, or None where it is unsupported."""
    return DenseNetwork.of(model) or GroupedNetwork.of(model)


def _trains_batched(objective: Objective) -> bool:
    """Whether trainings by an objective are batched."""
    others = [entry for entry in fields(objective) if entry.name not in SUPPORTED]
    return (
        all(getattr(objective, entry.name) == entry.default for entry in others)
        and all(map(sees_parameters, objective.regularizers))
        and objective.curvature != "mc_ggn"
    )


@dataclass(frozen=True, eq=False, kw_only=True)
class BatchedExecutor:
    """Local training and scoring in this process, batched over models and clients.

    Mini-batches and subsets are those of `LoopExecutor`, and so are the answers, up to rounding.
    An answer does not depend on the other requests or on the memory allowed, up to rounding, and
    not at all on the order of the requests. Unsupported requests (see
    `bcfl.executors.BatchedExecutor.supports`) go to the loop.

    Attributes:
        loop: answers unsupported requests.
        samples: of all clients, by view.
        network: the architecture batched over models; None leaves all to the loop.
        memory: bytes of working memory besides data and models; None takes what suits the device.
        descent: runs the SGD steps of a batch of trainings.
    """

    loop: LoopExecutor
    samples: Mapping[str, Samples]
    network: Network | None
    memory: int | None = None
    descent: Descent = descend
    _joined: dict[tuple[str, ...], Samples | None] = field(default_factory=dict, init=False)

    def __repr__(self) -> str:
        return f"BatchedExecutor({self.loop!r})"

    def __post_init__(self) -> None:
        checked_memory(self.memory)

    @classmethod
    def on(
        cls,
        clients: Sequence[ClientData],
        model: Model,
        seed: int,
        device: torch.device,
        dtype: torch.dtype,
        *,
        memory: int | None = None,
    ) -> BatchedExecutor:
        """Put the clients' data on a device, once.

        Args:
            clients: clients with their samples.
            model: architecture.
            seed: of the federation.
            device: where samples and models are put.
            dtype: of the models' parameters.
            memory: working memory, bytes; None takes what suits the device.
        """
        names = sorted({name for data in clients for name in data.views})
        laid_out = {name: Samples.of(clients, name, device, dtype) for name in names}
        samples = {name: held for name, held in laid_out.items() if held is not None}
        placed = {
            data.client: ClientData(
                data.client,
                {
                    name: samples[name].view(data.client) if len(view) else view
                    for name, view in data.views.items()
                },
                data.group,
            )
            for data in clients
        }
        loop = LoopExecutor(clients=placed, model=model, seed=seed, device=device, dtype=dtype)
        return cls(loop=loop, samples=samples, network=network_of(model), memory=memory)

    def supports(self, request: Request) -> bool:
        """Whether a request is answered in batches.

        Trainings are unless their objective draws the targets of its curvature, has regularisers of
        the outputs or with proximal operators, or has anything beyond `SUPPORTED`, such as phases
        or a local posterior; scores are where `is_batched` says so of their statistic.
        """
        if self.network is None or request.client not in self.loop.clients:
            return False
        match request:
            case Train(objective=objective, views=views):
                samples = self._training_samples(views) if _trains_batched(objective) else None
                return samples is not None and request.client in samples.count
            case Score(statistic=statistic, view=view, models=keys):
                held = view in self.samples and request.client in self.samples[view].count
                fits = held and statistic.fits(self.loop.model, len(keys))
                return fits and is_batched(statistic, self.network)
        return False

    def answer(
        self, requests: Sequence[Request], models: Mapping[str, Posterior], round: int
    ) -> Outcomes:
        """Answer the requests; see `bcfl.executors.Executor`."""
        supported = [request for request in requests if self.supports(request)]
        trains = [request for request in supported if isinstance(request, Train)]
        scores = [request for request in supported if isinstance(request, Score)]
        rest = [request for request in requests if not self.supports(request)]
        outcomes = self.loop.answer(rest, models, round)
        for some, work in ((trains, self._train), (scores, self._score)):
            if some:
                outcomes |= self._together(work, some, models, round)
        return outcomes

    def _together(
        self,
        work: Callable[[Sequence[Any], Mapping[str, Posterior], int], Outcomes],
        requests: Sequence[Request],
        models: Mapping[str, Posterior],
        round: int,
    ) -> Outcomes:
        """Batched answers; one at a time where that fails, so that a failure is one client's."""
        try:
            return work(requests, models, round)
        except Exception as error:
            warnings.warn(
                f"batched work failed and is done one client at a time: {error!r}",
                RuntimeWarning,
                stacklevel=2,
            )
            return self.loop.answer(requests, models, round)

    def _train(
        self, requests: Sequence[Train], models: Mapping[str, Posterior], round: int
    ) -> Outcomes:
        outcomes: Outcomes = {}
        for views in dict.fromkeys(train.views for train in requests):
            alike = [train for train in requests if train.views == views]
            outcomes |= self._training(views).answer(alike, models, (self.loop.seed, round))
        return outcomes

    def _score(
        self, requests: Sequence[Score], models: Mapping[str, Posterior], round: int
    ) -> Outcomes:
        del round
        return self._scoring.answer(requests, models)

    @property
    def _work(self) -> tuple[Network, Model, int]:
        """Network, architecture and bytes of working memory."""
        assert self.network is not None
        return self.network, self.loop.model, budget(self.memory, self.loop.device)

    def _training_samples(self, views: tuple[str, ...]) -> Samples | None:
        """The samples of views that are trained on together, of all clients that have some."""
        if views == TRAINING:
            return self.samples[TRAIN]
        if views not in self._joined:
            joined = {c: data.joined(views) for c, data in self.loop.clients.items()}
            held = [ClientData(c, {TRAIN: view}) for c, view in joined.items() if view is not None]
            self._joined[views] = Samples.of(held, TRAIN, self.loop.device, self.loop.dtype)
        return self._joined[views]

    def _training(self, views: tuple[str, ...]) -> BatchedTraining:
        network, model, memory = self._work
        samples = self._training_samples(views)
        assert samples is not None
        return BatchedTraining(
            network=network,
            model=model,
            samples=samples,
            memory=memory,
            bytes_per_sample=self._bytes_per_sample,
            descent=self.descent,
        )

    @property
    def _scoring(self) -> BatchedScoring:
        network, model, memory = self._work
        return BatchedScoring(
            network=network,
            model=model,
            samples=self.samples,
            seed=self.loop.seed,
            memory=memory,
            bytes_per_sample=self._bytes_per_sample,
        )

    @cached_property
    def _bytes_per_sample(self) -> int:
        """Of inputs and activations while a network trains on one sample."""
        numbers = 0

        def count(module: torch.nn.Module, inputs: object, outputs: torch.Tensor) -> None:
            nonlocal numbers
            numbers += outputs.numel()

        module = self.loop.model.module().eval()
        for part in module.modules():
            part.register_forward_hook(count)
        sample = self.samples[TRAIN].inputs[:1].cpu()
        with torch.no_grad():
            module(own_copy(sample, next(module.parameters(), None)))
        return self.samples[TRAIN].inputs.element_size() * (sample.numel() + 3 * numbers)
