"""The objective of local training."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil
from reprlib import repr as shortened
from typing import Literal, get_args

from bcfl.protocol.loss_terms import Regularizer
from bcfl.protocol.upload import Upload
from bcfl.runtime import check_whole, is_real
from posteriors import LocalPosteriorName

Curvature = Literal["samples", "uniform", "ggn", "mc_ggn", "empirical_fisher"]


@dataclass(frozen=True, kw_only=True)
class Objective:
    """How a client trains: SGD on its own samples, then the curvature of its likelihood.

    Attributes:
        local_steps: SGD steps per round, and per phase where there are several.
        local_epochs: passes over the client's samples in place of `local_steps`, so that steps grow
            with the number of samples, see `bcfl.Objective.steps`; None leaves it at the steps.
        batch_size: samples per step; a client with fewer samples uses all of them in each step.
        learning_rate: step size.
        momentum: classical momentum, in [0, 1); the velocity starts at zero in each round.
        weight_decay: added to the gradient as weight_decay x parameters.
        prior_weight: strength of the prior that the client was sent, as a term of the training
            loss; 0 leaves it out, 1 makes the optimum the mode of the local posterior. Its steps
            are implicit: however sharp the prior, training does not diverge.
        curvature: precision that the client reports of its likelihood. `samples`: the number of
            its samples for each parameter (a flat posterior; fusion is then the sample-weighted
            mean); `uniform`: 1; `ggn`: exact diagonal Gauss-Newton; `mc_ggn`: the same with one
            target drawn per sample, cheaper the more classes there are; `empirical_fisher`.
        curvature_samples: at most so many samples are used for the last three, rescaled
            to all samples; None uses all.
        posterior: how the local posterior is fitted, where curvature is `ggn`; see
            `posteriors.local`. `laplace-diag` is the curvature itself. The others fit on all
            samples under the prior that the client was sent, and report the mean and the diagonal
            precision of the likelihood. `laplace-full` fits all parameters jointly, `laplace-kron`
            in Kronecker form. `laplace-last-layer` fits the last layer alone, `laplace-subnetwork`
            the least determined parameters; the rest reports no precision. `variational`, and
            `nuts` by draws for tiny networks, also move the mean away from where SGD ended.
        regularizers: further terms of the training loss.
        phases: names of the blocks that are trained together, phase after phase; empty trains
            all blocks together. Blocks in no phase are not trained.
        upload: which of the trained parameters are sent; None is all.
        against: what the other blocks are while a phase trains: as they were at the `start`, or
            as earlier phases `updated` them.

    Raises:
        TypeError: regularisers, phases or upload are of another type.
        ValueError: another value is not allowed.

    Example:
        >>> import bcfl
        >>> objective = bcfl.Objective(local_epochs=2, learning_rate=0.05)
        >>> objective.steps(100)
        7
        >>> bcfl.methods.ifca(num_clusters=3, objective=objective).name
        'ifca'
    """

    local_steps: int = 10
    local_epochs: float | None = None
    batch_size: int = 32
    learning_rate: float = 0.1
    momentum: float = 0.9
    weight_decay: float = 0.0
    prior_weight: float = 0.0
    curvature: Curvature = "samples"
    curvature_samples: int | None = 128
    posterior: LocalPosteriorName = "laplace-diag"
    regularizers: tuple[Regularizer, ...] = ()
    phases: tuple[tuple[str, ...], ...] = ()
    against: Literal["start", "updated"] = "start"
    upload: Upload | None = None

    def __post_init__(self) -> None:
        self._check_length()
        for name in ("learning_rate", "weight_decay", "prior_weight"):
            value = getattr(self, name)
            if not (is_real(value) and 0 <= value < float("inf")):
                raise ValueError(f"{name} must be finite and at least 0, got {value!r}")
        if not (is_real(self.momentum) and 0 <= self.momentum < 1):
            raise ValueError(f"momentum must be at least 0 and below 1, got {self.momentum!r}")
        if self.curvature not in get_args(Curvature):
            raise ValueError(
                f"curvature must be one of {', '.join(get_args(Curvature))}, got {self.curvature!r}"
            )
        if self.curvature_samples is not None:
            check_whole("curvature_samples", self.curvature_samples, other=" or None")
        self._check_posterior()
        self._check_terms()
        if self.against not in ("start", "updated"):
            raise ValueError(f"against must be 'start' or 'updated', got {self.against!r}")

    def _check_length(self) -> None:
        for name, least in (("local_steps", 1), ("batch_size", 1)):
            check_whole(name, getattr(self, name), least)
        epochs = self.local_epochs
        if epochs is not None and not (is_real(epochs) and 0 < epochs < float("inf")):
            raise ValueError(f"local_epochs must be positive and finite, or None, got {epochs!r}")

    def _check_terms(self) -> None:
        terms, phases = self.regularizers, self.phases
        if not isinstance(terms, tuple) or not all(hasattr(one, "penalty") for one in terms):
            raise TypeError(
                f"regularizers must be a tuple of terms with `penalty`, got {shortened(terms)}"
            )
        named = isinstance(phases, tuple) and all(isinstance(phase, tuple) for phase in phases)
        if not named or not all(isinstance(name, str) for phase in phases for name in phase):
            raise TypeError(
                "phases must be a tuple of tuples of names of blocks, such as (('body',), "
                f"('head',)), got {shortened(phases)}"
            )
        if self.upload is not None and not hasattr(self.upload, "sent"):
            raise TypeError(
                f"upload must have `sent` and `overhead`, or be None, got {shortened(self.upload)}"
            )

    def _check_posterior(self) -> None:
        if self.posterior not in get_args(LocalPosteriorName):
            raise ValueError(
                f"posterior must be one of {', '.join(get_args(LocalPosteriorName))}, got "
                f"{self.posterior!r}"
            )
        if self.fits_posterior and self.curvature not in ("ggn", "samples", "uniform"):
            raise ValueError(
                f"curvature must be 'ggn' where posterior is {self.posterior!r}, "
                f"got {self.curvature!r}"
            )

    @property
    def reports_precision(self) -> bool:
        """Whether the reply holds a precision vector, not just a number."""
        return self.curvature not in ("samples", "uniform")

    @property
    def fits_posterior(self) -> bool:
        """Whether a local posterior is fitted that is more than a diagonal curvature."""
        return self.reports_precision and self.posterior != "laplace-diag"

    def steps(self, num_samples: int) -> int:
        """SGD steps of a client in a round.

        Mini-batches have one size, so an epoch that does not divide by it ends within a batch: the
        steps are those that see every sample `local_epochs` times, rounded up.

        Args:
            num_samples: training samples of the client.
        """
        if self.local_epochs is None:
            return self.local_steps
        batch = min(self.batch_size, num_samples)
        return max(ceil(round(self.local_epochs * num_samples / batch, 9)), 1)

    def longer(self, times: int) -> Objective:
        """The same for so many rounds' worth of steps or epochs."""
        epochs = None if self.local_epochs is None else times * self.local_epochs
        return replace(self, local_steps=times * self.local_steps, local_epochs=epochs)

    def trains(self, block: str) -> bool:
        """Whether the parameters of a block are trained."""
        return not self.phases or any(block in phase for phase in self.phases)
