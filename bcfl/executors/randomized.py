"""An executor whose clients randomise what they send."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from types import MappingProxyType

import torch
from torch import Tensor

from bcfl.architecture.model import Model
from bcfl.data.names import TEST
from bcfl.executors.executor import Executor, Outcome, Outcomes
from bcfl.executors.privacy import Privacy
from bcfl.hypotheses.posterior import Posterior
from bcfl.protocol.answers import Failure, Trained
from bcfl.protocol.objective import Objective
from bcfl.protocol.requests import Describe, Request, Score, Train
from bcfl.protocol.statistics.loss import Loss, LossSum
from bcfl.runtime.seeds import derive_seed

NOT_PRIVATE = "has no stated sensitivity, so a client with differential privacy does not send it"
STAYS = "stay with clients cannot be randomised"
OTHERS = "methods such as fedavg, ifca, wecfl and feddrift send no more than models and losses"
"""What to do where an option does not help."""


@dataclass(frozen=True, eq=False)
class Randomized:
    """Clips and noises the answers of an executor before they leave it, or refuses to give them.

    Trained models and mean losses are randomised. Numbers of samples are sent as they are: they are
    taken to be known. So are answers about test samples, which the guarantee does not cover. Any
    other statistic is refused.

    Attributes:
        executor: answers for the clients.
        privacy: how much is cut off and added.
        model: the architecture.
        secret: seed of the noise. Who knows it can take the noise away: a simulation takes the seed
            of the run, so that it can be repeated; a client of its own keeps one.
        by_content: whether noise depends on the numbers of the models that are asked about besides
            their keys. A server elsewhere may send other numbers under the same key: with equal
            noise, the difference of the two answers would be exact.
    """

    executor: Executor
    privacy: Privacy
    model: Model
    secret: int
    by_content: bool = False

    def answer(
        self, requests: Sequence[Request], models: Mapping[str, Posterior], round: int
    ) -> Outcomes:
        """Answer requests; see `bcfl.executors.Executor`."""
        troubles = {request: self._trouble(request) for request in requests}
        allowed = [request for request, trouble in troubles.items() if not trouble]
        answers = self.executor.answer(allowed, models, round)
        refused: Outcomes = {r: Failure("refused", why) for r, why in troubles.items() if why}
        return refused | {r: self._randomised(r, a, models, round) for r, a in answers.items()}

    def _trouble(self, request: Request) -> str:
        """Why a request is refused; empty if it is not."""
        match request:
            case Train(objective=objective):
                return private_trouble(self.model, objective)
            case Score(view=view, statistic=statistic) if (
                view != TEST and type(statistic) is not Loss
            ):
                return f"{statistic.name} {NOT_PRIVATE}"
        return ""

    def _randomised(
        self, request: Request, answer: Outcome, models: Mapping[str, Posterior], round: int
    ) -> Outcome:
        if isinstance(answer, Trained) and isinstance(request, Train):
            start = models[request.start].mean(self.model)
            seed = self._seed(request, round, repr(request), request.models, models)
            return self._model(request, answer, start, seed)
        if isinstance(answer, dict) and isinstance(request, Score) and request.view != TEST:
            of = f"{request.view} {request.samples}"
            return {
                key: self._loss(one, self._seed(request, round, f"{of} {key}", (key,), models))
                for key, one in answer.items()
            }
        return answer

    def _model(self, request: Train, answer: Trained, start: Tensor, seed: int) -> Trained:
        """The trained model after a clipped and noised step.

        What local training cannot change gets no noise. A step that is not a number counts as none.
        """
        free = _changed(self.model, request.objective).to(start.device)
        step = (answer.mean - start).double() * free
        norm = float(step.norm())
        step = step * min(1.0, self.privacy.clip / norm) if 0 < norm < float("inf") else 0 * free
        noise = _standard_normal(step.numel(), seed).to(start.device)
        moved = start.double() + step + self.privacy.update_noise * noise * free
        return replace(answer, mean=moved.to(answer.mean))

    def _loss(self, loss: LossSum, seed: int) -> LossSum:
        """The summed loss, from a mean that is clipped and noised."""
        count, bound = loss.num_samples, self.privacy.loss_bound
        mean = loss.total / count
        clipped = bound if math.isnan(mean) else min(max(mean, 0.0), bound)
        drawn = _standard_normal(1, seed)
        noisy = clipped + self.privacy.loss_noise * float(drawn)
        return LossSum(count * noisy, count * self.privacy.loss_noise, count)

    def _seed(
        self,
        request: Request,
        round: int,
        purpose: str,
        keys: Sequence[str],
        models: Mapping[str, Posterior],
    ) -> int:
        """Seed of the noise: the same whenever the same is asked in a round."""
        contents = [_digest(models[key]) for key in keys] if self.by_content else []
        return derive_seed(self.secret, round, request.client, "privacy", purpose, *contents)


def _standard_normal(length: int, seed: int) -> Tensor:
    """(length,) float64."""
    draw = torch.Generator().manual_seed(seed)
    return torch.randn(length, generator=draw, dtype=torch.float64)


def _digest(posterior: Posterior) -> str:
    """A hash of all numbers of a model."""
    content = blake2b(digest_size=16)
    for block in posterior.blocks:
        gaussians = (block.gaussian, block.prior, block.base)
        for tensor in (block.gaussian.mean, *(g.precision for g in gaussians), block.buffers):
            content.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return content.hexdigest()


def releases(request: Request) -> int:
    """How often a client that answers it releases something of its training samples.

    Args:
        request: to a client with differential privacy.
    """
    match request:
        case Describe():
            return 0
        case Train():
            return 1
    return 0 if request.view == TEST else len(request.models)


def private_trouble(model: Model, objective: Objective) -> str:
    """Why trained models of an objective cannot be randomised; empty if they can.

    Args:
        model: the architecture.
        objective: of local training.
    """
    if any(block.scope == "client" for block in model.blocks):
        return f"blocks of {model.name!r} that {STAYS}"
    if objective.upload is not None:
        return f"the choice of parameters that are sent {NOT_PRIVATE}"
    if model.layout.num_buffers:
        return f"the running statistics of {model.name!r} cannot be randomised; use GroupNorm"
    if objective.reports_precision:
        return f"curvature {objective.curvature!r} {NOT_PRIVATE}; set it to 'samples' or 'uniform'"
    return ""


def check_private(
    model: Model, objective: Objective, asked: Mapping[str, str] = MappingProxyType({})
) -> None:
    """Check that clients can randomise the models that they train, and all else that they send.

    Args:
        model: the architecture.
        objective: of local training.
        asked: statistics that the method asks for besides losses, each with the option that avoids
            it, or with empty text where none does; see
            `bcfl.policies.wrappers.policy_wrapper.asked_by`.

    Raises:
        ValueError: they cannot.
    """
    troubles = [f"{name} {NOT_PRIVATE}; set {option}" for name, option in asked.items()]
    always = [f"{name} {NOT_PRIVATE}" for name, option in asked.items() if not option]
    found = always[:1] or [*troubles, *filter(None, [private_trouble(model, objective)])]
    if found:
        others = f"; {OTHERS}" * any(NOT_PRIVATE in one or STAYS in one for one in found)
        raise ValueError(f"privacy: {'; and '.join(found)}{others}")


def check_covered(failures: Iterable[str]) -> None:
    """Check that no client refused a request for its privacy.

    Args:
        failures: of a round.

    Raises:
        ValueError: one did.
    """
    refused = next((text for text in failures if NOT_PRIVATE in text), None)
    if refused is not None:
        raise ValueError(
            f"privacy: the method asks for more than trained models and losses: {refused}; {OTHERS}"
        )


def _changed(model: Model, objective: Objective) -> Tensor:
    """(parameters,) bool, which parameters local training may change."""
    names = [block.name for block in model.blocks if objective.trains(block.name)]
    return model.trained & ~model.outside(names)
