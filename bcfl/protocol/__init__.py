"""The messages between server and clients: requests, answers, objectives, statistics.

Plain values that can be sent over a network. Executors, which answer them, are in `bcfl.executors`;
policies, which make the requests, in `bcfl.policies`.
"""

from bcfl.protocol.adaptive_terms import Retention, Sparsity
from bcfl.protocol.answers import ClientInfo, Failure, Trained
from bcfl.protocol.loss_terms import Regularizer
from bcfl.protocol.objective import Curvature, Objective
from bcfl.protocol.prediction_rule import PredictionRule, PredictiveName
from bcfl.protocol.regularizers import (
    Attraction,
    Consolidation,
    Contrast,
    Proximal,
    Sharing,
)
from bcfl.protocol.requests import (
    Describe,
    Exchange,
    ProtocolError,
    Replies,
    Request,
    Result,
    Score,
    Steps,
    Train,
    loss_matrix,
    together,
)
from bcfl.protocol.statistics.best_counts import BestCounts, BestModels
from bcfl.protocol.statistics.evidence import Evidence, EvidenceSum
from bcfl.protocol.statistics.features import Features
from bcfl.protocol.statistics.held_out import HeldOutLosses
from bcfl.protocol.statistics.label_predictions import LabelSums
from bcfl.protocol.statistics.loss import Loss, LossSum
from bcfl.protocol.statistics.predictions import NUM_BINS, Pooling, Predictions, PredictionSums
from bcfl.protocol.statistics.statistic import FLOAT_BYTES, Statistic
from bcfl.protocol.statistics.support import PairedSupport, SampleFit, SupportTest, TestedLoss
from bcfl.protocol.upload import Upload

__all__ = [
    "FLOAT_BYTES",
    "NUM_BINS",
    "Attraction",
    "BestCounts",
    "BestModels",
    "ClientInfo",
    "Consolidation",
    "Contrast",
    "Curvature",
    "Describe",
    "Evidence",
    "EvidenceSum",
    "Exchange",
    "Failure",
    "Features",
    "HeldOutLosses",
    "LabelSums",
    "Loss",
    "LossSum",
    "Objective",
    "PairedSupport",
    "Pooling",
    "PredictionRule",
    "PredictionSums",
    "Predictions",
    "PredictiveName",
    "ProtocolError",
    "Proximal",
    "Regularizer",
    "Replies",
    "Request",
    "Result",
    "Retention",
    "SampleFit",
    "Score",
    "Sharing",
    "Sparsity",
    "Statistic",
    "Steps",
    "SupportTest",
    "TestedLoss",
    "Train",
    "Trained",
    "Upload",
    "loss_matrix",
    "together",
]
