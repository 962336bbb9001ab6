"""Gaussian posteriors over network parameters: fit, fuse, merge, weigh.

gaussian     `DiagonalGaussian`, the posterior over a flat parameter vector
divergence   Kullback-Leibler and Bhattacharyya divergences between posteriors
fusion       `fuse`: local posteriors of one model -> its server posterior
memory       `carry` and sites: what the next round's prior remembers
merge        `merge`, `merge_by`: a mixture of posteriors -> one posterior
bounds       `bound_precision`: precisions within stated bounds, counted
batchnorm    `pool_running_statistics`: buffers, which have no posterior
curvature    `diagonal_curvature`: Gauss-Newton matrix, exact or drawn, or empirical Fisher
gauss_newton `gauss_newton_matrix`: all of it, over all or some parameters
mode         `find_mode`: the most probable parameters of a small network
local        local posteriors by name: Laplace in five structures, `variational`, `nuts`
evidence     log association weights and quadratic log evidence
sampled_evidence, sigma_points
             log evidence by draws, or by a handful of points in a subspace
temperature  temperature of model weights from held-out sums
predictive   plug-in, Monte Carlo and linearised predictions, mixtures, tuning
feature_density
             Gaussian densities of features, from sums that data holders add up
entropy      `split_entropy`, `split_by_group`: uncertainty due to data, model and association
pyro_bridge  posteriors and mixtures as Pyro distributions, networks as Pyro programs

It knows nothing of clusters or clients. Pyro and laplace-torch are imported where they are used, so
that importing this package stays cheap.
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
from posteriors.evidence.sigma_points import (
    SigmaPointEvidence,
    sharpest_directions,
    sigma_point_log_evidence,
)
from posteriors.evidence.temperature import TunedTemperature, choose_temperature, mixture_log_loss
from posteriors.gaussians.bounds import Bounded, bound_precision
from posteriors.gaussians.divergence import bhattacharyya, kl
from posteriors.gaussians.fusion import Fused, FusionRule, LocalPosterior, fuse
from posteriors.gaussians.gaussian import DiagonalGaussian
from posteriors.gaussians.memory import Memory, Site, carry, cavity, damp, product, site_of
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
    "Bounded",
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
    "SigmaPointEvidence",
    "Site",
    "TunedTemperature",
    "UnsupportedFitError",
    "UnsupportedLayerError",
    "bhattacharyya",
    "bound_precision",
    "carry",
    "cavity",
    "choose_temperature",
    "damp",
    "diagonal_curvature",
    "find_mode",
    "fuse",
    "gauss_newton_matrix",
    "importance_log_evidence",
    "kl",
    "local_posterior_fit",
    "log_association_weight",
    "merge",
    "merge_by",
    "mixture_log_loss",
    "mixture_to_pyro",
    "monte_carlo_log_evidence",
    "network_log_likelihood",
    "network_program",
    "pool_running_statistics",
    "predict_mixture",
    "product",
    "quadratic_log_evidence",
    "sharpest_directions",
    "sigma_point_log_evidence",
    "site_of",
    "split_by_group",
    "split_entropy",
    "to_pyro",
]
