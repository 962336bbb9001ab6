"""Association policies: given one hypothesis, rank the associations that may follow it."""

from bcfl.policies.capacity import ClusterSize
from bcfl.policies.kmeans import KMeansAssociation
from bcfl.policies.likelihood import LikelihoodAssociation
from bcfl.policies.policy import (
    Candidate,
    Continue,
    Given,
    Origin,
    Policy,
    Ranking,
    RoundContext,
    candidate,
)
from bcfl.policies.single import SingleCluster
from bcfl.policies.warm_up import WarmUp

__all__ = [
    "Candidate",
    "ClusterSize",
    "Continue",
    "Given",
    "KMeansAssociation",
    "LikelihoodAssociation",
    "Origin",
    "Policy",
    "Ranking",
    "RoundContext",
    "SingleCluster",
    "WarmUp",
    "candidate",
]
