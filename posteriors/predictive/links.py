"""Class probabilities from Gaussian logits in closed form, and temperature scaling."""

from __future__ import annotations

import math
from typing import Literal, get_args

import torch
from torch import Tensor

Link = Literal["probit", "bridge"]


def apply_link(link: Link, mean: Tensor, covariance: Tensor) -> Tensor:
    """Expected class probabilities under Gaussian logits: the softmax of `link_logits`.

    Args:
        link: Name of the approximation.
        mean: Mean logits, (samples, classes).
        covariance: Covariances of the logits, (samples, classes, classes).

    Returns:
        Probabilities, (samples, classes), float64.

    Raises:
        ValueError: See `posteriors.predictive.link_logits`.
    """
    return link_logits(link, mean, covariance).softmax(1)


def link_logits(link: Link, mean: Tensor, covariance: Tensor) -> Tensor:
    """Logits of the expected class probabilities under Gaussian logits, by a named approximation.

    `probit` divides each logit by sqrt(1 + pi/8 x its variance) before the softmax (MacKay, 1992a;
    Lu et al., 2020, for several classes). `bridge` takes the mean of the Dirichlet distribution
    whose Laplace approximation in logit space is the Gaussian (Hobbhahn et al., 2022, equations 9
    and 13), after conditioning the Gaussian on logits that sum to 0; it is inaccurate where the
    variances of the classes differ strongly.

    A constant added to all mean logits of a sample changes no softmax, but it changes both
    approximations where the classes' variances differ: `probit` divides each logit by a root of its
    own, and `bridge` conditions on the sum. A shift of 100 can move a probability by .5 and more.

    Args:
        link: Name of the approximation.
        mean: Mean logits, (samples, classes).
        covariance: Covariances of the logits, (samples, classes, classes).

    Returns:
        Logits, (samples, classes), float64.

    Raises:
        ValueError: If the link is unknown, shapes do not match, or a logit has zero variance under
            `bridge`.
    """
    if link not in get_args(Link):
        raise ValueError(f"link must be one of {', '.join(get_args(Link))}, got {link!r}")
    if mean.ndim != 2 or covariance.shape != (*mean.shape, mean.shape[1]):
        raise ValueError(
            "mean and covariance must have shapes (samples, classes) and (samples, classes, "
            f"classes), got {tuple(mean.shape)} and {tuple(covariance.shape)}"
        )
    mean, covariance = mean.double(), covariance.double()
    if link == "bridge":
        return _bridge(*_summing_to_zero(mean, covariance))
    variance = covariance.diagonal(dim1=1, dim2=2)
    return mean / (1 + math.pi / 8 * variance).sqrt()


def temper(logits: Tensor, temperature: float) -> Tensor:
    """Softmax of logits divided by a temperature (Guo et al., 2017).

    That raises the probabilities to 1 / temperature, those included that round to 0.

    Args:
        logits: Logits or log probabilities, (..., classes).
        temperature: Positive temperature.

    Returns:
        Probabilities, (..., classes), float64.

    Raises:
        ValueError: If the temperature is not positive and finite.
    """
    if not (math.isfinite(temperature) and temperature > 0):
        raise ValueError(f"temperature must be positive and finite, got {temperature}")
    return (logits.double() / temperature).softmax(-1)


def _summing_to_zero(mean: Tensor, covariance: Tensor) -> tuple[Tensor, Tensor]:
    """Condition Gaussian logits on a sum of 0."""
    with_sum = covariance.sum(2)
    total = with_sum.sum(1, keepdim=True)
    if not bool((total > 0).all()):
        raise ValueError("covariance must give every logit some variance for the link 'bridge'")
    gain = with_sum / total
    outer = gain.unsqueeze(2) * with_sum.unsqueeze(1)
    return mean - gain * mean.sum(1, keepdim=True), covariance - outer


def _bridge(mean: Tensor, covariance: Tensor) -> Tensor:
    classes = mean.shape[1]
    variance = covariance.diagonal(dim1=1, dim2=2)
    if not bool((variance > 0).all()):
        raise ValueError("covariance must give every logit some variance for the link 'bridge'")
    constant = math.log(1 - 2 / classes) if classes > 2 else -math.inf
    growing = mean + (-mean).logsumexp(1, keepdim=True) - 2 * math.log(classes)
    logs = torch.logaddexp(growing, torch.full_like(growing, constant)) - variance.log()
    return logs
