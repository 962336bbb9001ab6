"""Log-weights of hypotheses: normalise, prune, cap, effective number and captured mass.

Probabilities come from differences between log-weights, which stay exact where their totals are
large.
"""

from __future__ import annotations

from fractions import Fraction
from math import fsum

import numpy as np
import numpy.typing as npt

from assignment.arrays import FloatArray, IntArray, logsumexp, refuse_mask, validate_count


def normalise(log_weights: npt.ArrayLike) -> FloatArray:
    """Scale weights to sum to one, in the log domain.

    Args:
        log_weights: unnormalised log-weights in nats, shape (hypotheses,); -inf is no weight.

    Returns:
        Log-weights in nats, float64 of shape (hypotheses,), whose exponentials sum to one.

    Raises:
        ValueError: no hypothesis, another shape, NaN, +inf, or no hypothesis with any weight.

    Example:
        >>> import assignment
        >>> import numpy as np
        >>> np.exp(assignment.normalise([-1000.0, -1000.0, -np.inf])).round(2)
        array([0.5, 0.5, 0. ])
    """
    below = below_largest(_validate(log_weights))
    return below - logsumexp(below)


def prune(log_weights: npt.ArrayLike, threshold: float) -> tuple[IntArray, FloatArray]:
    """Drop hypotheses below a probability threshold and renormalise the others.

    The most probable hypothesis is always kept.

    Args:
        log_weights: unnormalised log-weights in nats, shape (hypotheses,).
        threshold: smallest probability (after normalisation) that is kept, in [0, 1].

    Returns:
        kept: indices of the survivors in ascending order, int64 of shape (kept,).
        log_weights: their normalised log-weights in nats, float64 of shape (kept,).

    Raises:
        ValueError: bad log-weights (see `assignment.normalise`) or a threshold outside [0, 1].

    Example:
        >>> import assignment
        >>> import numpy as np
        >>> kept, log_weights = assignment.prune(np.log([0.7, 0.29, 0.01]), 0.05)
        >>> kept, np.exp(log_weights).round(3)
        (array([0, 1]), array([0.707, 0.293]))
    """
    if not 0.0 <= threshold <= 1.0:
        raise ValueError(f"threshold must be a probability in [0, 1], got {threshold}")
    values = normalise(log_weights)
    with np.errstate(divide="ignore"):
        survives = (values >= np.log(threshold)) & (values > -np.inf)
    survives[np.argmax(_validate(log_weights))] = True
    kept = np.flatnonzero(survives).astype(np.int64)
    return kept, normalise(values[kept])


def cap(log_weights: npt.ArrayLike, m: int) -> tuple[IntArray, FloatArray]:
    """Keep the m most probable hypotheses; ties go to the lower index.

    Args:
        log_weights: unnormalised log-weights in nats, shape (hypotheses,).
        m: largest number of hypotheses kept, at least 1. Those without any weight are dropped.

    Returns:
        kept: indices of the survivors in ascending order, int64 of shape (kept,).
        log_weights: their normalised log-weights in nats, float64 of shape (kept,).

    Raises:
        ValueError: bad log-weights (see `assignment.normalise`), or m is no integer of at least 1.
    """
    count = validate_count(m)
    values = _validate(log_weights)
    heaviest = np.argsort(-values, kind="stable")[:count]
    kept = np.sort(heaviest[values[heaviest] > -np.inf]).astype(np.int64)
    return kept, normalise(values[kept])


def effective_number(log_weights: npt.ArrayLike) -> float:
    """Effective number of hypotheses: one over the sum of squared probabilities (Kish, 1965).

    Args:
        log_weights: unnormalised log-weights in nats, shape (hypotheses,).

    Returns:
        A number from 1 (one hypothesis holds everything) to the number of hypotheses.

    Raises:
        ValueError: bad log-weights (see `assignment.normalise`).
    """
    with np.errstate(over="ignore"):
        squared = 2.0 * normalise(log_weights)
    return max(1.0, float(np.exp(-logsumexp(squared))))


def log_captured_mass(kept: npt.ArrayLike, log_total: float) -> float:
    """Log of the probability mass that the kept hypotheses capture.

    Args:
        kept: unnormalised log-weights of the kept hypotheses in nats, shape (kept,).
        log_total: log of the sum of the weights of all hypotheses in nats.

    Returns:
        Log probability in nats, at most 0.

    Raises:
        ValueError: bad log-weights (see `assignment.normalise`) or a `log_total` that is not
            finite.
    """
    if not np.isfinite(log_total):
        raise ValueError(f"log_total must be finite, got {log_total}")
    return min(0.0, float(logsumexp(_validate(kept) - log_total)))


def pseudo_bma_weights(
    log_scores: npt.ArrayLike, random: np.random.Generator, *, draws: int = 500
) -> FloatArray:
    """Weights of models by out-of-sample log scores that allow for misspecification: pseudo-BMA+.

    The exponentiated sum of log scores, averaged over Bayesian bootstrap draws of the units (Yao,
    Vehtari, Simpson and Gelman, 2018, section 3.4): a model that is better by the luck of a few
    units does not take all weight.

    Args:
        log_scores: out-of-sample log score of each unit under each model, nats, shape (models,
            units).
        random: source of the bootstrap draws.
        draws: number of draws.

    Returns:
        Weights that sum to one, float64 of shape (models,).

    Raises:
        ValueError: no model, no unit, another shape, or a score that is not finite.
    """
    scores = np.asarray(refuse_mask("log_scores", log_scores), dtype=np.float64)
    if scores.ndim != 2 or scores.size == 0 or not np.isfinite(scores).all():
        raise ValueError(
            f"log_scores must be finite and of shape (models, units), got shape {scores.shape}"
        )
    units = scores.shape[1]
    shares = random.dirichlet(np.ones(units), size=draws) * units
    totals = shares @ (scores - scores.max(axis=0)).T
    weights = np.exp(totals - totals.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    mean: FloatArray = weights.mean(axis=0)
    return mean


def below_largest(values: FloatArray) -> FloatArray:
    """Differences from the largest value, at most 0, float64 of the shape of `values`.

    Args:
        values: log-weights in nats, of any shape; -inf stays -inf, at least one is finite.
    """
    with np.errstate(over="ignore"):
        below: FloatArray = values - values.max()
    return below


def exact_sum(values: npt.ArrayLike) -> Fraction:
    """Sum of numbers without any rounding, for totals whose differences matter.

    Args:
        values: finite numbers of any shape, summed as float64.

    Returns:
        The sum, 0 for no numbers.
    """
    rest = np.asarray(refuse_mask("values", values), dtype=np.float64).ravel().tolist()
    total = Fraction(0)
    while part := fsum(rest):  # correctly rounded, so that each pass adds 53 bits
        total += Fraction(part)
        rest.append(-part)
    return total


def _validate(log_weights: npt.ArrayLike) -> FloatArray:
    values = np.asarray(refuse_mask("log_weights", log_weights), dtype=np.float64)
    if values.ndim != 1 or values.size == 0:
        raise ValueError(f"log_weights must have shape (hypotheses,), got shape {values.shape}")
    if np.isnan(values).any() or np.isposinf(values).any():
        raise ValueError("log_weights must be below +inf and not NaN")
    if np.isneginf(values).all():
        raise ValueError("log_weights are all -inf: no hypothesis has any weight")
    return values
