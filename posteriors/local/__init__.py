"""Local posteriors: one protocol, chosen by name.

fit                `LocalPosteriorFit`, `LocalFit` and `UnsupportedFitError`
diagonal_laplace   `laplace-diag`: networks of any size
dense_laplace      `laplace-last-layer`, `laplace-full`, `laplace-subnetwork`
kronecker_laplace  `laplace-kron`, by laplace-torch
variational        `variational`, by Pyro
nuts               `nuts`, by Pyro: draws from the exact posterior of tiny networks
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

from posteriors.curvature.likelihood import Likelihood
from posteriors.local.dense_laplace import FullLaplace, LastLayerLaplace, SubnetworkLaplace
from posteriors.local.diagonal_laplace import DiagonalLaplace
from posteriors.local.fit import LocalFit, LocalPosteriorFit, UnsupportedFitError
from posteriors.local.kronecker_laplace import KroneckerLaplace
from posteriors.local.nuts import NoUTurn
from posteriors.local.variational import Variational

__all__ = [
    "LOCAL_POSTERIORS",
    "DiagonalLaplace",
    "FullLaplace",
    "KroneckerLaplace",
    "LastLayerLaplace",
    "LocalFit",
    "LocalPosteriorFit",
    "LocalPosteriorName",
    "NoUTurn",
    "SubnetworkLaplace",
    "UnsupportedFitError",
    "Variational",
    "local_posterior_fit",
]

LOCAL_POSTERIORS: Mapping[str, type[LocalPosteriorFit]] = MappingProxyType(
    {
        "laplace-diag": DiagonalLaplace,
        "laplace-last-layer": LastLayerLaplace,
        "laplace-kron": KroneckerLaplace,
        "laplace-full": FullLaplace,
        "laplace-subnetwork": SubnetworkLaplace,
        "variational": Variational,
        "nuts": NoUTurn,
    }
)


LocalPosteriorName = Literal[
    "laplace-diag",
    "laplace-last-layer",
    "laplace-kron",
    "laplace-full",
    "laplace-subnetwork",
    "variational",
    "nuts",
]


def local_posterior_fit(name: str, likelihood: Likelihood = "categorical") -> LocalPosteriorFit:
    """The method of this name with its default hyperparameters.

    Args:
        name: Key of `LOCAL_POSTERIORS`.
        likelihood: Of the network's outputs.

    Raises:
        ValueError: If there is no such method.
    """
    if name not in LOCAL_POSTERIORS:
        raise ValueError(f"name must be one of {', '.join(LOCAL_POSTERIORS)}, got {name!r}")
    return LOCAL_POSTERIORS[name](likelihood=likelihood)  # type: ignore[call-arg]
