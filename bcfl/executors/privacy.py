"""Local differential privacy of clients: its parameters and its budget. Importing needs no torch.

Two neighbouring federations differ in all training samples of one client, of which there are as
many. Each client randomises what it sends, so that the guarantee holds against the server. What is
released is a vector within a ball of known radius plus Gaussian noise in proportion to it, so that
a number of releases is all that the accountant needs. Dwork and Roth, "The Algorithmic Foundations
of Differential Privacy" (2014), appendix A; Balle and Wang, "Improving the Gaussian Mechanism for
Differential Privacy" (2018), theorem 8.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from importlib.util import find_spec

from bcfl.runtime import is_real


class MissingAccountantError(OSError):
    """The accountant's library is not installed."""


@dataclass(frozen=True, kw_only=True)
class Privacy:
    """How clients randomise what they send about their training samples.

    Attributes:
        clip: largest Euclidean norm of the difference between a trained model and the one that was
            sent; longer ones are scaled to it.
        noise_multiplier: standard deviation of the noise over the sensitivity, the largest distance
            between what a client can send of two sets of samples: twice `clip` for a trained model,
            `loss_bound` for a mean loss.
        loss_bound: largest mean loss of a model over a client's samples that is told apart, nats;
            smaller ones than 0 count as 0.
        delta: probability with which the bound epsilon may fail, in (0, 1).

    Raises:
        ValueError: one of them is not a number, or out of range.
    """

    clip: float = 1.0
    noise_multiplier: float = 1.0
    loss_bound: float = 4.0
    delta: float = 1e-5

    def __post_init__(self) -> None:
        for name in ("clip", "noise_multiplier", "loss_bound"):
            value = getattr(self, name)
            if not (is_real(value) and 0 < value < math.inf):
                raise ValueError(f"{name} must be positive and finite, got {value!r}")
        if not (is_real(self.delta) and 0 < self.delta < 1):
            raise ValueError(f"delta must lie in (0, 1), got {self.delta!r}")

    @property
    def update_noise(self) -> float:
        """Standard deviation of the noise on each parameter of a trained model."""
        return self.noise_multiplier * 2 * self.clip

    @property
    def loss_noise(self) -> float:
        """Standard deviation of the noise on a mean loss, nats."""
        return self.noise_multiplier * self.loss_bound

    def epsilon(self, releases: int) -> float:
        """The smallest epsilon of (epsilon, delta) differential privacy after some releases.

        Releases of one noise multiplier compose to one whose multiplier is smaller by the square
        root of their number, whatever each was chosen by.

        Args:
            releases: of one client.

        Raises:
            MissingAccountantError: dp-accounting is not installed.
        """
        check_accountant()
        from dp_accounting import get_epsilon_gaussian

        if releases == 0:
            return 0.0
        return float(get_epsilon_gaussian(self.noise_multiplier / math.sqrt(releases), self.delta))


def check_accountant() -> None:
    """Check that epsilon can be computed.

    Raises:
        MissingAccountantError: dp-accounting is not installed.
    """
    if find_spec("dp_accounting") is None:
        raise MissingAccountantError(
            "epsilon is computed by dp-accounting, which is not installed: "
            "pip install 'bcfl[privacy]'"
        )
