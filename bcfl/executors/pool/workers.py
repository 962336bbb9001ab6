"""A pool of processes of one thread each."""

from __future__ import annotations

import io
import os
import pickle
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import cached_property
from typing import Any

import torch
from cloudpickle import CloudPickler
from joblib import cpu_count
from joblib.externals.loky import BrokenProcessPool, ProcessPoolExecutor
from torch import Tensor

from bcfl.executors.config import checked_workers
from bcfl.runtime.workers import become_worker, died, portable


class _Packer(CloudPickler):  # type: ignore[misc]
    """Serialises a view of a tensor without the rest of its storage."""

    def reducer_override(self, value: object) -> Any:  # noqa: ANN401 - what pickle asks for
        if type(value) is Tensor:
            return torch.from_numpy, (value.detach().contiguous().numpy(),)
        return super().reducer_override(value)


def packed(value: object) -> bytes:
    """The value as bytes for `unpacked`, with functions and classes that scripts define.

    Raises:
        TypeError: something in it is bound to this process, such as an open file.
    """
    buffer = io.BytesIO()
    _Packer(buffer, protocol=pickle.HIGHEST_PROTOCOL).dump(value)
    return buffer.getvalue()


def unpacked(data: bytes) -> Any:  # noqa: ANN401 - any value
    """The value that was packed by another process of this program."""
    return pickle.loads(data)


IDLE_SECONDS = 300.0
ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS"), "1"
)


class Workers:
    """Processes started on first use and ended by `close` or with this object.

    They also end after five idle minutes, or when this process is killed.

    Attributes:
        count: number of processes.
    """

    def __init__(self, count: int | None = None) -> None:
        """Args: count: number of processes; None is one for each available processor."""
        self.count = checked_workers(count) or cpu_count()

    @classmethod
    def shared(cls, count: int | None = None) -> Workers:
        """The process-wide pool of this size, created if needed."""
        many = checked_workers(count) or cpu_count()
        return _shared.setdefault(many, _shared.get(many) or cls(many))

    def do(self, work: Callable[..., Any], tasks: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Results of `work(*task)` for each task, in order.

        Args:
            work: a function of a module.
            tasks: its arguments.

        Raises:
            ChildProcessError: a process died.
            Exception: the error of the first task that failed.
        """
        waiting: list[Future[bytes]] = []
        try:
            waiting += [self._pool.submit(_done, packed((work, task))) for task in tasks]
            return [unpacked(future.result()) for future in waiting]
        except BrokenProcessPool as error:
            self.close()
            raise died(f"one of {self.count} worker processes", error, "workers") from None
        finally:
            for future in waiting:
                future.cancel()

    def close(self) -> None:
        """End the processes; the next work starts others."""
        if "_pool" in self.__dict__:
            del self._pool
            self._end()

    @cached_property
    def _pool(self) -> ProcessPoolExecutor:
        pool = ProcessPoolExecutor(
            self.count,
            timeout=IDLE_SECONDS,
            initializer=_begin,
            initargs=(os.getpid(),),
            env=ONE_THREAD,
        )
        self._end = weakref.finalize(self, pool.shutdown, kill_workers=True)
        return pool


_shared: weakref.WeakValueDictionary[int, Workers] = weakref.WeakValueDictionary()


def _begin(parent: int) -> None:
    become_worker(parent)
    torch.set_num_threads(1)


def _done(payload: bytes) -> bytes:
    work, task = unpacked(payload)
    try:
        return packed(work(*task))
    except (Exception, SystemExit) as error:
        raise portable(error, packed) from None
