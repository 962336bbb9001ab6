"""Association policies: rank the associations that may follow one hypothesis."""

from bcfl.policies.baselines.fedavg import FedAvg
from bcfl.policies.bayes.likelihood import LikelihoodAssociation
from bcfl.policies.capacity import ClusterSize
from bcfl.policies.context import RoundContext
from bcfl.policies.policy import Candidate, Continue, Given, Origin, Policy, Ranking, candidate
from bcfl.policies.updates.kmeans import KMeansAssociation
from bcfl.policies.wrappers.warm_up import WarmUp

__all__ = [
    "Candidate",
    "ClusterSize",
    "Continue",
    "FedAvg",
    "Given",
    "KMeansAssociation",
    "LikelihoodAssociation",
    "Origin",
    "Policy",
    "Ranking",
    "RoundContext",
    "WarmUp",
    "candidate",
]
