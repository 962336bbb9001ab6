"""Set-up of worker processes, and the error for one that died."""

from __future__ import annotations

import os
import pickle
import signal
import threading
import time
from collections.abc import Callable

SECONDS_BETWEEN_CHECKS = 1.0


def become_worker(parent: int) -> None:
    """Leave Ctrl-C to the parent process, and end when the parent has ended, however it did.

    An orphaned worker would keep writing to files that other processes take over.

    Args:
        parent: process id of the parent.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def died(worker: str, cause: object, option: str) -> ChildProcessError:
    """The error for a worker process that died.

    Args:
        worker: which process it was, in words.
        cause: how it ended.
        option: what to lower where memory ran out.
    """
    words = " ".join(str(cause).split())
    return ChildProcessError(
        f"{worker} died; code -9 or SIGKILL often means that memory ran out: try fewer {option} "
        f"({words})"
    )


def portable(error: BaseException, packed: Callable[[object], bytes] = pickle.dumps) -> Exception:
    """The error where another process can read it, or else one with its type and words.

    Exceptions whose constructor takes several arguments often cannot be unpickled; one that ends
    a process is no error elsewhere.

    Args:
        error: what was raised here.
        packed: how it will be sent.
    """
    try:
        if isinstance(error, Exception) and str(pickle.loads(packed(error))) == str(error):
            return error
    except Exception:
        pass
    substitute = RuntimeError(f"{type(error).__name__}: {error}")
    for note in getattr(error, "__notes__", ()):
        substitute.add_note(note)
    return substitute


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(SECONDS_BETWEEN_CHECKS)
    os._exit(1)
