"""Partial uploads: which trained parameters a client sends."""

from __future__ import annotations

from typing import Protocol

from torch import Tensor

from bcfl.architecture.model import Model


class Upload(Protocol):
    """Chooses the parameters that a client sends after its training."""

    def sent(self, model: Model, parameters: Tensor) -> Tensor:
        """(parameters,) bool, which ones are sent.

        Args:
            model: the architecture.
            parameters: (parameters,) as they were trained.
        """
        ...

    def overhead(self, model: Model) -> int:
        """Bytes that say which ones these are, where that does not follow from the rest."""
        ...
