"""Gaussian posteriors over network parameters: fit, fuse, merge, evaluate.

gaussians    `DiagonalGaussian`; fusion and merging of posteriors, memory over rounds, divergences
curvature    diagonal and full Gauss-Newton curvature of a network's likelihood
networks     networks as functions of flat parameter vectors, BatchNorm statistics
local        local posteriors by name: Laplace approximations, variational inference, NUTS
evidence     log association weights and log evidence, temperature of model weights
predictive   predictive distributions, entropy decompositions, tuning, feature densities
pyro_bridge  posteriors as Pyro distributions and networks as Pyro programs

The package does not depend on clusters or clients. Pyro and laplace-torch are imported where they
are used, to keep the import of this package fast.
"""

from posteriors.curvature.diagonal import diagonal_curvature
from posteriors.curvature.gauss_newton import gauss_newton_matrix
from posteriors.curvature.layers.rules import UnsupportedLayerError
from posteriors.curvature.likelihood import network_log_likelihood
from posteriors.evidence.closed_form import log_association_weight, quadratic_log_evidence
from posteriors.evidence.sampling import (
    EvidenceEstimate,
    importance_log_evidence,
    monte_carlo_log_evidence,
)
from posteriors.gaussians.divergence import kl
from posteriors.gaussians.fusion import Fused, FusionRule, fuse, fuse_without
from posteriors.gaussians.gaussian import DiagonalGaussian
from posteriors.gaussians.local_posterior import LocalPosterior
from posteriors.gaussians.memory import Memory, carry
from posteriors.gaussians.merge import MergeRule, merge, merge_by
from posteriors.local import (
    LOCAL_POSTERIORS,
    LocalFit,
    LocalPosteriorFit,
    LocalPosteriorName,
    UnsupportedFitError,
    local_posterior_fit,
)
from posteriors.local.mode import Mode, find_mode
from posteriors.networks.batchnorm import pool_running_statistics
from posteriors.predictive import (
    Linearised,
    MixturePrediction,
    MonteCarlo,
    PlugIn,
    Predictive,
    predict_mixture,
)
from posteriors.predictive.entropy import EntropySplit, GroupedSplit, split_by_group, split_entropy
from posteriors.pyro_bridge import mixture_to_pyro, network_program, to_pyro

__all__ = [
    "LOCAL_POSTERIORS",
    "DiagonalGaussian",
    "EntropySplit",
    "EvidenceEstimate",
    "Fused",
    "FusionRule",
    "GroupedSplit",
    "Linearised",
    "LocalFit",
    "LocalPosterior",
    "LocalPosteriorFit",
    "LocalPosteriorName",
    "Memory",
    "MergeRule",
    "MixturePrediction",
    "Mode",
    "MonteCarlo",
    "PlugIn",
    "Predictive",
    "UnsupportedFitError",
    "UnsupportedLayerError",
    "carry",
    "diagonal_curvature",
    "find_mode",
    "fuse",
    "fuse_without",
    "gauss_newton_matrix",
    "importance_log_evidence",
    "kl",
    "local_posterior_fit",
    "log_association_weight",
    "merge",
    "merge_by",
    "mixture_to_pyro",
    "monte_carlo_log_evidence",
    "network_log_likelihood",
    "network_program",
    "pool_running_statistics",
    "predict_mixture",
    "quadratic_log_evidence",
    "split_by_group",
    "split_entropy",
    "to_pyro",
]
