"""Association policies: given one hypothesis, rank the associations that may follow it.

One folder per family of methods. Which hypotheses are kept is decided by `bcfl.trackers`; names and
options of methods are in `bcfl.methods`.
"""

from bcfl.policies.baselines.apd import APD
from bcfl.policies.baselines.centralised import Centralised
from bcfl.policies.baselines.ensemble import Ensemble
from bcfl.policies.baselines.ewc import EWC
from bcfl.policies.baselines.fedavg import FedAvg
from bcfl.policies.baselines.feddrift import FedDrift
from bcfl.policies.baselines.fedsoft import FedSoft
from bcfl.policies.baselines.fedweit import FedWeIT
from bcfl.policies.baselines.local_training import LocalTraining
from bcfl.policies.baselines.side_by_side import SideBySide
from bcfl.policies.baselines.stable_sgd import StableSGD
from bcfl.policies.bayes.association_prior import AssociationPrior
from bcfl.policies.bayes.borrowing import AsymmetricBCFL
from bcfl.policies.bayes.likelihood import LikelihoodAssociation
from bcfl.policies.capacity import ClusterSize
from bcfl.policies.context import RoundContext
from bcfl.policies.faacl.continual import ContinualFAACL
from bcfl.policies.faacl.faacl import FAACL
from bcfl.policies.policy import (
    Candidate,
    Continue,
    Costs,
    Given,
    Origin,
    Policy,
    Ranking,
    candidate,
)
from bcfl.policies.ranking import ranked
from bcfl.policies.updates.bipartition import RecursiveBipartition
from bcfl.policies.updates.fedgroup import FedGroup
from bcfl.policies.updates.kmeans import KMeansAssociation
from bcfl.policies.updates.one_shot import OneShotClustering
from bcfl.policies.updates.update_clustering import (
    AffinityClustering,
    AgglomerativeClustering,
    HDBSCANClustering,
    KMeansClustering,
    MeanShiftClustering,
)
from bcfl.policies.wrappers.additive_warm_up import LocalFirst, SharedFirst
from bcfl.policies.wrappers.frozen import Frozen
from bcfl.policies.wrappers.partial import Partial
from bcfl.policies.wrappers.warm_up import WarmUp

__all__ = [
    "APD",
    "EWC",
    "FAACL",
    "AffinityClustering",
    "AgglomerativeClustering",
    "AssociationPrior",
    "AsymmetricBCFL",
    "Candidate",
    "Centralised",
    "ClusterSize",
    "ContinualFAACL",
    "Continue",
    "Costs",
    "Ensemble",
    "FedAvg",
    "FedDrift",
    "FedGroup",
    "FedSoft",
    "FedWeIT",
    "Frozen",
    "Given",
    "HDBSCANClustering",
    "KMeansAssociation",
    "KMeansClustering",
    "LikelihoodAssociation",
    "LocalFirst",
    "LocalTraining",
    "MeanShiftClustering",
    "OneShotClustering",
    "Origin",
    "Partial",
    "Policy",
    "Ranking",
    "RecursiveBipartition",
    "RoundContext",
    "SharedFirst",
    "SideBySide",
    "StableSGD",
    "WarmUp",
    "candidate",
    "ranked",
]
