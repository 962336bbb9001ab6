"""Changes of a process's global state for a while, by several threads that overlap in any order."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import RLock

Undo = Callable[[], None]


class TemporaryChanges:
    """Changes of one piece of global state, of which the last to end restores what was found first.

    Nested changes are undone in reverse order. One that ends before another that began later
    leaves its undoing to that one: the other still needs what it has set.
    """

    def __init__(self) -> None:
        self._lock = RLock()
        self._undos: list[list[Undo]] = []

    @contextmanager
    def made(self, change: Callable[[], Undo]) -> Iterator[None]:
        """Context in which a change holds.

        Args:
            change: Makes the change, and returns what restores the state that it found.
        """
        with self._lock:
            own = [change()]
            self._undos.append(own)
        try:
            yield
        finally:
            with self._lock:
                place = next(i for i, undo in enumerate(self._undos) if undo is own)
                del self._undos[place]
                if place == len(self._undos):
                    own[0]()
                else:
                    self._undos[place][:] = own


_FILTERS = TemporaryChanges()


@contextmanager
def without_warnings() -> Iterator[None]:
    """Context that ignores warnings; a user's filters hold again afterwards."""
    with _FILTERS.made(_ignore_warnings):
        yield


def _ignore_warnings() -> Undo:
    before = warnings.catch_warnings()
    before.__enter__()
    warnings.simplefilter("ignore")
    return lambda: before.__exit__(None, None, None)
