"""How much of one client's evidence a cluster should borrow: the power prior.

Ibrahim and Chen, "Power Prior Distributions for Regression Models" (2000): other data enter a prior
with their likelihood raised to a power in [0, 1]. The power follows from the evidence of the
cluster's own data. Borrowing is directed: of many samples that are a little different a small share
is borrowed, so many as the difference is worth, while few such samples are borrowed whole.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from posteriors import quadratic_log_evidence

Expansion = tuple[NDArray[np.float64], NDArray[np.float64]]
"""Gradient and curvature (parameters,) of a summed log-likelihood at the prior's mean."""


def borrowing_gains(
    own: Expansion,
    other: Expansion,
    prior_precision: NDArray[np.float64],
    powers: Sequence[float],
) -> NDArray[np.float64]:
    """Gain of the own data's log evidence from other data, for each power, nats.

    log p(own | other^power, prior) - log p(own | prior), where p(own | other^power, prior) is the
    evidence of both over that of the other data alone. With log-likelihoods that are quadratic
    around the prior's mean it is exact.

    Args:
        own: of the data whose evidence counts.
        other: of the data that may be borrowed.
        prior_precision: (parameters,) of the prior.
        powers: at least 0; power 0 gains nothing.

    Returns:
        (powers,) gains.
    """
    gradient, curvature = own
    alone = quadratic_log_evidence(0.0, gradient, curvature, prior_precision)
    gains = []
    for power in powers:
        slope, bend = power * other[0], power * other[1]
        both = quadratic_log_evidence(0.0, gradient + slope, curvature + bend, prior_precision)
        lent = quadratic_log_evidence(0.0, slope, bend, prior_precision)
        gains.append(float(both - lent - alone))
    return np.array(gains)


def expected_power(gains: NDArray[np.float64], powers: Sequence[float]) -> float:
    """The posterior mean of the power, when all powers are equally probable beforehand.

    Args:
        gains: (powers,) log evidence for each power, nats.
        powers: the powers.
    """
    shares = np.exp(gains - np.logaddexp.reduce(gains))
    return float(shares @ np.asarray(powers))
