"""Gaussian posteriors over network parameters: fit, fuse, merge, weigh.

gaussian     `DiagonalGaussian`, the posterior over a flat parameter vector
divergence   Kullback-Leibler and Bhattacharyya divergences between posteriors
fusion       `fuse`: local posteriors of one model -> its server posterior
memory       `carry` and sites: what the next round's prior remembers
merge        `merge`, `merge_by`: a mixture of posteriors -> one posterior
bounds       `bound_precision`: precisions within stated bounds, counted
batchnorm    `pool_running_statistics`: buffers, which have no posterior
curvature    `diagonal_curvature`: Gauss-Newton matrix, exact or drawn, or empirical Fisher
evidence     log association weights and quadratic log evidence
entropy      `split_entropy`: uncertainty due to data and due to not knowing the model

It knows nothing of clusters or clients.
"""

from posteriors.batchnorm import pool_running_statistics
from posteriors.bounds import Bounded, bound_precision
from posteriors.curvature import UnsupportedLayerError, diagonal_curvature
from posteriors.divergence import bhattacharyya, kl
from posteriors.entropy import EntropySplit, split_entropy
from posteriors.evidence import log_association_weight, quadratic_log_evidence
from posteriors.fusion import Fused, FusionRule, LocalPosterior, fuse
from posteriors.gaussian import DiagonalGaussian
from posteriors.memory import Memory, Site, carry, cavity, damp, product, site_of
from posteriors.merge import MergeRule, merge, merge_by

__all__ = [
    "Bounded",
    "DiagonalGaussian",
    "EntropySplit",
    "Fused",
    "FusionRule",
    "LocalPosterior",
    "Memory",
    "MergeRule",
    "Site",
    "UnsupportedLayerError",
    "bhattacharyya",
    "bound_precision",
    "carry",
    "cavity",
    "damp",
    "diagonal_curvature",
    "fuse",
    "kl",
    "log_association_weight",
    "merge",
    "merge_by",
    "pool_running_statistics",
    "product",
    "quadratic_log_evidence",
    "site_of",
    "split_entropy",
]
