"""Laplace approximation with Kronecker-factored blocks, one per parameter tensor."""

from __future__ import annotations

import copy
import importlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from posteriors.curvature.layers.rules import WITHOUT_RULES, layers_with_parameters, named
from posteriors.curvature.likelihood import Likelihood, check_targets
from posteriors.curvature.recording import require_exact_rules
from posteriors.gaussians.covariance import standard_normal
from posteriors.gaussians.gaussian import DiagonalGaussian
from posteriors.global_state import without_warnings
from posteriors.local.fit import LocalFit, UnsupportedFitError, check_prior, copied
from posteriors.local.laplace_fit import laplace_fit
from posteriors.networks.alterations import is_altered
from posteriors.networks.functional import eval_mode, outputs_of
from posteriors.predictive import Link
from posteriors.torch_state import seeded


@dataclass(frozen=True)
class KroneckerLaplace:
    """`laplace-kron`: a Kronecker product of two factors per weight matrix (Ritter et al., 2018).

    The factors come from laplace-torch on its curvlinops backend: on convolutions its other
    backends are wrong by a factor, and none has a rule for normalisation layers. The prior may
    have any mean, but only one precision per parameter tensor: the posterior of a fusion has more
    and is refused. Sums of Kronecker products aren't Kronecker products, so only the diagonal is
    fused.

    Attributes:
        likelihood: `categorical` (logits) or `gaussian` (means, unit variance); laplace-torch has
            no factors for labels.
        link: How its predictive turns logits into probabilities.
    """

    likelihood: Likelihood = "categorical"
    link: Link = "probit"

    def check(self, module: nn.Module, inputs: Tensor, prior: DiagonalGaussian) -> None:
        """Check that network and prior are supported, see `posteriors.LocalPosteriorFit.check`."""
        if self.likelihood == "bernoulli":
            raise UnsupportedFitError(
                "laplace-kron takes classes and numbers, got labels; laplace-diag, -last-layer and "
                "-full take these"
            )
        check_prior(module, prior)
        _check_layers(module, inputs)
        sizes = [value.numel() for value in module.parameters()]
        _one_per_block(prior.precision.expand(prior.mean.shape), sizes)

    def fit(
        self,
        module: nn.Module,
        inputs: Tensor,
        targets: Tensor,
        prior: DiagonalGaussian,
        *,
        seed: int = 0,
    ) -> LocalFit:
        """Fit at the module's parameters, see `posteriors.LocalPosteriorFit.fit`."""
        if len(inputs) == 0:
            raise ValueError("inputs must hold at least one sample")
        self.check(module, inputs, prior)
        twin = copied(module, inputs).double().eval()
        inputs = inputs.double() if inputs.is_floating_point() else inputs
        with torch.no_grad():
            check_targets(outputs_of(twin, inputs[:1]), targets, self.likelihood)
        factors = _fitted_factors(copy.deepcopy(twin), inputs, targets, self.likelihood)
        sizes = tuple(value.numel() for value in twin.parameters())
        structure = KroneckerCurvature(factors, sizes)
        return laplace_fit("laplace-kron", twin, (inputs, targets), prior, structure, self)


@dataclass(frozen=True, eq=False)
class KroneckerCurvature:
    """Eigendecomposed Kronecker factors of the blocks, in laplace-torch's form.

    Attributes:
        factors: A `laplace.utils.matrix.KronDecomposed`.
        sizes: Number of parameters of each block.
    """

    factors: Any
    sizes: tuple[int, ...]

    @property
    def indices(self) -> None:
        """All parameters are uncertain."""
        return

    def diagonal(self) -> Tensor:
        """Diagonal over all parameters, (parameters,)."""
        blocks = zip(self.factors.eigenvectors, self.factors.eigenvalues, strict=True)
        return torch.cat([_block_diagonal(vectors, values) for vectors, values in blocks])

    def under(self, prior_precision: Tensor) -> KroneckerCovariance:
        """Posterior covariance under one prior precision per block.

        Raises:
            UnsupportedFitError: If the precision varies inside a block.
        """
        return KroneckerCovariance(self.factors + self._per_block(prior_precision), self.sizes)

    def log_determinant_ratio(self, prior_precision: Tensor) -> float:
        """Log of det(posterior precision) / det(prior precision), in nats."""
        posterior = self.factors + self._per_block(prior_precision)
        return float(posterior.logdet() - prior_precision.double().log().sum())

    def _per_block(self, prior_precision: Tensor) -> Tensor:
        return _one_per_block(prior_precision, self.sizes)


@dataclass(frozen=True, eq=False)
class KroneckerCovariance:
    """Covariance with Kronecker-factored blocks, in laplace-torch's form.

    Attributes:
        precision: A `laplace.utils.matrix.KronDecomposed`, the inverse covariance.
        sizes: Number of parameters of each block.
    """

    precision: Any
    sizes: tuple[int, ...]

    @property
    def indices(self) -> None:
        """All parameters are uncertain."""
        return

    def of_outputs(self, jacobians: Tensor) -> Tensor:
        """Covariances (samples, outputs, outputs) of the maps (samples, outputs, uncertain)."""
        covariances: Tensor = self.precision.inv_square_form(jacobians.double())
        return covariances

    def deviations(self, count: int, generator: torch.Generator) -> Tensor:
        """Draw deviations from the mean, (count, uncertain), float64.

        Args:
            count: Number of draws.
            generator: Source of the draws.
        """
        noise = standard_normal((count, sum(self.sizes)), generator, self.precision.deltas)
        drawn: Tensor = self.precision.bmm(noise, exponent=-0.5)
        return drawn.reshape(count, -1)

    def log_density(self, deviations: Tensor) -> Tensor:
        """Log density of deviations (count, uncertain): float64 nats, (count,)."""
        deviations = deviations.double()
        scaled = self.precision.bmm(deviations, exponent=1).reshape(deviations.shape)
        normaliser = 0.5 * (self.precision.logdet() - sum(self.sizes) * math.log(2 * math.pi))
        nats: Tensor = normaliser - 0.5 * (deviations * scaled).sum(1)
        return nats


def _one_per_block(precision: Tensor, sizes: Sequence[int]) -> Tensor:
    """The prior precision of each block, (blocks,), float64."""
    blocks = torch.split(precision.double(), list(sizes))
    if not all(bool((block == block[0]).all()) for block in blocks):
        raise UnsupportedFitError(
            "laplace-kron needs one prior precision per parameter tensor, but the prior's "
            "varies inside a tensor; laplace-diag, -full and -last-layer take such priors"
        )
    return torch.stack([block[0] for block in blocks])


def _block_diagonal(vectors: list[Tensor], values: list[Tensor]) -> Tensor:
    """Diagonal of a Kronecker product of one or two symmetric factors."""
    diagonals = [v.square() @ value for v, value in zip(vectors, values, strict=True)]
    whole = diagonals[0]
    for other in diagonals[1:]:
        whole = torch.outer(whole, other).flatten()
    return whole.clamp(min=0)


def _check_layers(module: nn.Module, inputs: Tensor) -> None:
    """Check that all parameters are those of layers with factors, each used once by its layer."""
    if not all(value.requires_grad for value in module.parameters()):
        raise UnsupportedFitError("laplace-kron needs all parameters to be trainable")
    for name, layer in module.named_modules():
        has_own = any(True for _ in layer.parameters(recurse=False))
        if has_own and not isinstance(layer, nn.Linear | nn.Conv2d):
            raise UnsupportedFitError(
                f"laplace-kron has no rule for {named(name, layer)}; "
                "it takes Linear and Conv2d layers, and layers without parameters; local "
                f"posteriors that need no rule are {WITHOUT_RULES}"
            )
        if has_own and is_altered(layer):
            raise UnsupportedFitError(
                f"laplace-kron needs layers without hooks, {named(name, layer)} has some"
            )
    with eval_mode(module), torch.enable_grad():
        require_exact_rules(module, layers_with_parameters(module), inputs)
    copied(module, inputs)


def _fitted_factors(
    module: nn.Module, inputs: Tensor, targets: Tensor, likelihood: Likelihood
) -> Any:  # noqa: ANN401 - laplace has no types
    """Factors from all samples in one batch; the module may change, global random state doesn't."""
    targets = targets.double() if likelihood == "gaussian" else targets
    loader = DataLoader(TensorDataset(inputs, targets), batch_size=len(inputs))
    with seeded(0, inputs.device), without_warnings():
        laplace: Any = importlib.import_module("laplace")
        curvature: Any = importlib.import_module("laplace.curvature")
        fitted = laplace.Laplace(
            module,
            "classification" if likelihood == "categorical" else "regression",
            subset_of_weights="all",
            hessian_structure="kron",
            backend=curvature.CurvlinopsGGN,
        )
        try:
            fitted.fit(loader)
        except SystemExit:  # how laplace-torch ends where an eigendecomposition fails
            raise ValueError("the Kronecker factors of the curvature must be finite") from None
    return fitted.H
