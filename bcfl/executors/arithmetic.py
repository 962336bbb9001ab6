"""How exactly clients compute: in full, or faster with fewer digits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass

import torch

from bcfl.executors.config import Arithmetic
from bcfl.executors.executor import Executor, Outcomes
from bcfl.hypotheses.posterior import Posterior
from bcfl.protocol.requests import Request


@contextmanager
def computing(kind: Arithmetic, device: torch.device) -> Iterator[None]:
    """Compute in that way for a while; torch's switches are put back afterwards.

    Casts of parameters are not kept, since training changes parameters in place. A GPU is the
    current one meanwhile: streams, recorded steps and kernels of our own go to that.

    Args:
        kind: of arithmetic; the switch of TF32 is set either way, for torch leaves it on for
            convolutions.
        device: where.
    """
    products, convolutions = torch.backends.cuda.matmul, torch.backends.cudnn
    before = products.allow_tf32, convolutions.allow_tf32
    mixed = kind == "bfloat16"
    try:
        products.allow_tf32 = convolutions.allow_tf32 = kind == "tf32"
        with (
            torch.cuda.device(device) if device.type == "cuda" else nullcontext(),
            torch.autocast(device.type, torch.bfloat16, cache_enabled=False)
            if mixed
            else nullcontext(),
        ):
            yield
    finally:
        products.allow_tf32, convolutions.allow_tf32 = before


def in_full(device: torch.device) -> torch.autocast:
    """Where mixed precision does not reach: curvatures, local posteriors and evidence."""
    return torch.autocast(device.type, enabled=False)


@dataclass(frozen=True, eq=False)
class Computing:
    """Lets another executor answer with some arithmetic.

    Attributes:
        executor: answers.
        kind: of arithmetic.
        device: where it works.
    """

    executor: Executor
    kind: Arithmetic
    device: torch.device

    def answer(
        self, requests: Sequence[Request], models: Mapping[str, Posterior], round: int
    ) -> Outcomes:
        """Answer as the executor does; see `Executor`."""
        with computing(self.kind, self.device):
            return self.executor.answer(requests, models, round)
