"""Laplace approximations with a dense covariance: last layer, subnetwork or all parameters."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.autograd.graph import Node

from posteriors.curvature.diagonal import diagonal_curvature
from posteriors.curvature.gauss_newton import gauss_newton_matrix
from posteriors.curvature.layers.rules import named
from posteriors.curvature.likelihood import Likelihood
from posteriors.curvature.likelihood_curvature import DenseCurvature
from posteriors.curvature.recording import require_separate_samples, uses
from posteriors.gaussians.gaussian import DiagonalGaussian
from posteriors.local.fit import (
    LocalFit,
    UnsupportedFitError,
    check_prior,
    copied,
    some_targets,
)
from posteriors.local.laplace_fit import LaplaceOptions, laplace_fit
from posteriors.networks.functional import eval_mode, free_indices, indices_of, outputs_of
from posteriors.predictive import Link


@dataclass(frozen=True)
class LastLayerLaplace:
    """`laplace-last-layer`: the last layer jointly Gaussian, the features known.

    The last layer is a Linear layer through which alone the outputs depend on any trainable
    parameter, so that they are linear in its own; a weight that is also used before it, as that of
    a tied embedding, is refused, and so is a layer or parameter after or beside it, as in a skip
    connection. Takes any diagonal prior, of which only the last layer's part is used.

    Attributes:
        likelihood: What the network's outputs are parameters of.
        link: How its predictive turns logits into probabilities.
        max_parameters: Largest last layer that is fitted.
    """

    likelihood: Likelihood = "categorical"
    link: Link = "probit"
    max_parameters: int = 3000

    def check(self, module: nn.Module, inputs: Tensor, prior: DiagonalGaussian) -> None:
        """Check that network and prior are supported, see `posteriors.LocalPosteriorFit.check`."""
        check_prior(module, prior)
        self._indices(module, inputs)
        _check_copy(module, inputs)

    def _indices(self, module: nn.Module, inputs: Tensor) -> Tensor:
        """Places of the last layer's parameters."""
        name, layer = _last_layer(module, inputs)
        own = {id(value) for _, value in _own(layer)}
        if not all(value.requires_grad for _, value in _own(layer)):
            raise UnsupportedFitError(
                f"laplace-last-layer needs {named(name, layer)} to be trainable"
            )
        indices = indices_of(
            module, {name for name, value in module.named_parameters() if id(value) in own}
        )
        _refuse_many("laplace-last-layer", len(indices), self.max_parameters)
        return indices

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
        check_prior(module, prior)
        indices = self._indices(module, inputs)
        return _dense_fit("laplace-last-layer", module, (inputs, targets), prior, indices, self)


@dataclass(frozen=True)
class FullLaplace:
    """`laplace-full`: all trainable parameters jointly Gaussian, for small networks.

    Takes any diagonal prior.

    Attributes:
        likelihood: What the network's outputs are parameters of.
        link: How its predictive turns logits into probabilities.
        max_parameters: Most parameters that are fitted; the matrix has their square in entries.
    """

    likelihood: Likelihood = "categorical"
    link: Link = "probit"
    max_parameters: int = 3000

    def check(self, module: nn.Module, inputs: Tensor, prior: DiagonalGaussian) -> None:
        """Check that network and prior are supported, see `posteriors.LocalPosteriorFit.check`."""
        check_prior(module, prior)
        _refuse_frozen("laplace-full", module)
        _refuse_many("laplace-full", len(free_indices(module)), self.max_parameters)
        _check_copy(module, inputs)
        _check_curvature(module, inputs, self.likelihood)

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
        self.check(module, inputs, prior)
        indices = free_indices(module)
        return _dense_fit("laplace-full", module, (inputs, targets), prior, indices, self)


@dataclass(frozen=True)
class SubnetworkLaplace:
    """`laplace-subnetwork`: the least determined parameters jointly Gaussian, the rest known.

    The parameters with the largest variance under the diagonal Laplace approximation are chosen
    (Daxberger et al., 2021, "Bayesian deep learning via subnetwork inference"). Under an isotropic
    prior those that no sample touches come first, and a small subnetwork may then predict like the
    plug-in. Takes any diagonal prior, of which only the chosen part is used.

    Attributes:
        size: Number of parameters to choose; all of them if there are fewer.
        likelihood: What the network's outputs are parameters of.
        link: How its predictive turns logits into probabilities.
    """

    size: int = 200
    likelihood: Likelihood = "categorical"
    link: Link = "probit"

    def __post_init__(self) -> None:
        """Check the size."""
        if self.size < 1:
            raise ValueError(f"size must be at least 1, got {self.size}")

    def check(self, module: nn.Module, inputs: Tensor, prior: DiagonalGaussian) -> None:
        """Check that network and prior are supported, see `posteriors.LocalPosteriorFit.check`."""
        check_prior(module, prior)
        _refuse_frozen("laplace-subnetwork", module)
        targets = some_targets(module, inputs, self.likelihood)
        diagonal_curvature(module, inputs, targets, likelihood=self.likelihood)
        copied(module, inputs)

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
        check_prior(module, prior)
        _refuse_frozen("laplace-subnetwork", module)
        curvature = diagonal_curvature(module, inputs, targets, likelihood=self.likelihood)
        free = free_indices(module)
        precision = prior.precision.expand(prior.mean.shape).double() + curvature.double()
        order = precision.cpu()[free].argsort(stable=True)
        indices = free[order[: self.size]].sort().values
        return _dense_fit("laplace-subnetwork", module, (inputs, targets), prior, indices, self)


def _check_copy(module: nn.Module, inputs: Tensor) -> None:
    """Check that samples don't mix, and that a copy computes the same."""
    with eval_mode(module):
        require_separate_samples(module, inputs)
    copied(module, inputs)


def _check_curvature(module: nn.Module, inputs: Tensor, likelihood: Likelihood) -> None:
    """Check that the curvature of one parameter can be computed, on a float64 copy."""
    twin = copied(module, inputs[:1]).double()
    few = torch.cat([inputs[:1]] * 3)  # some layers have a rule for a single sample alone
    few = few.double() if few.is_floating_point() else few
    targets = some_targets(twin, few, likelihood)
    try:
        gauss_newton_matrix(twin, few, targets, likelihood, free_indices(module)[:1])
    except RuntimeError as error:
        raise UnsupportedFitError(
            f"laplace-full needs second derivatives of the network by its parameters: {error}"
        ) from error


def _dense_fit(
    method: str,
    module: nn.Module,
    data: tuple[Tensor, Tensor],
    prior: DiagonalGaussian,
    indices: Tensor,
    options: LaplaceOptions,
) -> LocalFit:
    """Fit the chosen parameters jointly, on a float64 copy of the network."""
    inputs, targets = data
    twin = copied(module, inputs).double()
    inputs = inputs.double() if inputs.is_floating_point() else inputs
    indices = indices.to(prior.mean.device)
    matrix = gauss_newton_matrix(twin, inputs, targets, options.likelihood, indices)
    structure = DenseCurvature(matrix, indices)
    return laplace_fit(method, twin, (inputs, targets), prior, structure, options)


def _last_layer(module: nn.Module, inputs: Tensor) -> tuple[str, nn.Module]:
    """Name and layer of the last fully connected layer, which must be the last with parameters.

    Modules that call others may have parameters of their own, such as a positional embedding.
    """
    called: list[nn.Module] = []
    names = {layer: name for name, layer in module.named_modules() if _own(layer)}
    hooks = [layer.register_forward_hook(lambda layer, *_: called.append(layer)) for layer in names]
    try:
        with eval_mode(module), torch.no_grad():
            outputs_of(module, inputs[:1])
    finally:
        for hook in hooks:
            hook.remove()
    layers = [layer for layer in called if not any(one in called for one in _inside(layer))]
    if not layers or not isinstance(layers[-1], nn.Linear):
        found = type(layers[-1]).__name__ if layers else "none"
        raise UnsupportedFitError(
            f"laplace-last-layer needs a Linear layer as the last with parameters, found {found}"
        )
    name, last = names[layers[-1]], layers[-1]
    if {own for own, _ in _own(last)} - {"bias"} != {"weight"}:
        raise UnsupportedFitError(
            "laplace-last-layer needs a last layer with a weight and a bias, not reparameterised, "
            f"{named(name, last)} has {', '.join(own for own, _ in _own(last))}"
        )
    _refuse_other_ways(module, inputs, name, last)
    return name, last


def _inside(layer: nn.Module) -> list[nn.Module]:
    return [inner for inner in layer.modules() if inner is not layer]


def _refuse_other_ways(module: nn.Module, inputs: Tensor, name: str, last: nn.Module) -> None:
    """Refuse parameters after or beside the last layer, and features that depend on its own."""
    calls: list[tuple[Tensor, Node | None]] = []

    def note(
        _: nn.Module, arguments: tuple[Tensor, ...], options: dict[str, Tensor], output: Tensor
    ) -> None:
        calls.append(((*arguments, *options.values())[0], output.grad_fn))

    hook = last.register_forward_hook(note, with_kwargs=True)
    try:
        with eval_mode(module), torch.enable_grad():
            outputs = outputs_of(module, inputs[:1])
    finally:
        hook.remove()
    names = {id(value): name for name, value in module.named_parameters()}
    of_last = {id(value) for _, value in _own(last)}
    made = {node for _, node in calls if node is not None}
    beside = [names[leaf] for leaf in uses([outputs], made) if leaf in names]
    if beside:
        owner, _, own = beside[0].rpartition(".")
        raise UnsupportedFitError(
            "laplace-last-layer needs a Linear layer as the last with parameters, "
            f"{named(owner, module.get_submodule(owner))} uses its {own!r} after or beside it"
        )
    before = [names[leaf] for leaf in uses(features for features, _ in calls) if leaf in of_last]
    if before:
        raise UnsupportedFitError(
            f"laplace-last-layer needs features that do not depend on {named(name, last)}, which "
            f"shares {before[0]!r} with what comes before it"
        )


def _own(layer: nn.Module) -> list[tuple[str, nn.Parameter]]:
    return list(layer.named_parameters(recurse=False))


def _refuse_frozen(method: str, module: nn.Module) -> None:
    if len(free_indices(module)) == 0:
        raise UnsupportedFitError(f"{method} needs a trainable parameter, all are frozen")


def _refuse_many(method: str, count: int, most: int) -> None:
    if count > most:
        raise UnsupportedFitError(
            f"{method} fits at most max_parameters={most} parameters jointly, got {count}"
        )
