"""Numerical precision of the clients' computations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass

import torch

from bcfl.executors.config import Arithmetic
from bcfl.executors.executor import Executor, Outcomes
from bcfl.hypotheses.posterior import Posterior
from bcfl.protocol.requests import Request
from posteriors.global_state import TemporaryChanges, Undo

_TF32 = TemporaryChanges()


@contextmanager
def computing(arithmetic: Arithmetic, device: torch.device) -> Iterator[None]:
    """Context in which torch computes with some precision; its switches are restored afterwards.

    Casts of parameters are not cached, since training changes parameters in place. A GPU is made
    the current device, which streams, CUDA graphs and Triton kernels use.

    Args:
        arithmetic: numerical precision; the TF32 switches are set in every case, since torch
            enables TF32 for convolutions by default.
        device: of the computations.
    """
    mixed = arithmetic == "bfloat16"
    with (
        _TF32.made(lambda: _set_tf32(arithmetic == "tf32")),
        torch.cuda.device(device) if device.type == "cuda" else nullcontext(),
        torch.autocast(device.type, torch.bfloat16, cache_enabled=False)
        if mixed
        else nullcontext(),
    ):
        yield


def _set_tf32(allowed: bool) -> Undo:
    products, convolutions = torch.backends.cuda.matmul, torch.backends.cudnn
    before = products.allow_tf32, convolutions.allow_tf32
    products.allow_tf32 = convolutions.allow_tf32 = allowed

    def restore() -> None:
        products.allow_tf32, convolutions.allow_tf32 = before

    return restore


def in_full(device: torch.device) -> torch.autocast:
    """Context without mixed precision, for curvatures, local posteriors and evidence."""
    return torch.autocast(device.type, enabled=False)


@dataclass(frozen=True, eq=False)
class Computing:
    """Wraps an executor so that it computes with some precision.

    Attributes:
        executor: the wrapped one.
        arithmetic: numerical precision.
        device: of the executor.
    """

    executor: Executor
    arithmetic: Arithmetic
    device: torch.device

    def answer(
        self, requests: Sequence[Request], models: Mapping[str, Posterior], round: int
    ) -> Outcomes:
        """Answer as the executor does; see `Executor`."""
        with computing(self.arithmetic, self.device):
            return self.executor.answer(requests, models, round)
