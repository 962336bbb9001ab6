"""Global state of torch that computations rely on, set for a while and left as it was found.

The default generator and the default dtype belong to all threads of a process, so that one thread
at a time draws from a seed, and the last one out restores the dtype. Grad mode is a thread's own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from threading import RLock

import torch

from posteriors.global_state import TemporaryChanges, Undo

_DRAWING = RLock()
_DTYPES = TemporaryChanges()


@contextmanager
def seeded(seed: int, device: torch.device | None = None) -> Iterator[None]:
    """Context that draws from a seed by torch's default generators, which are restored afterwards.

    Other threads that want to draw so wait until it ends.

    Args:
        seed: Seed of the generators.
        device: CUDA device whose generator is seeded and restored as well as the CPU's.
    """
    devices = [device] if device is not None and device.type == "cuda" else []
    with _DRAWING, torch.random.fork_rng(devices=devices):
        torch.default_generator.manual_seed(seed)
        for one in devices:
            with torch.cuda.device(one):
                torch.cuda.manual_seed(seed)
        yield


@contextmanager
def standard_switches() -> Iterator[None]:
    """Context with gradients, float32 and the CPU as defaults, without inference mode and autocast.

    A user's switches do not change what is computed in it, and hold again afterwards.
    """
    with ExitStack() as switches:
        switches.enter_context(torch.inference_mode(False))
        switches.enter_context(torch.enable_grad())
        switches.enter_context(_DTYPES.made(_single_precision))
        if torch.get_default_device().type != "cpu":
            switches.enter_context(torch.device("cpu"))
        for kind in ("cpu", "cuda"):
            if torch.is_autocast_enabled(kind):
                switches.enter_context(torch.autocast(kind, enabled=False))
        yield


def _single_precision() -> Undo:
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float32)
    return lambda: torch.set_default_dtype(before)
