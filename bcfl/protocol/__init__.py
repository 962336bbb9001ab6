"""What server and clients say to each other: requests, answers, objectives, statistics.

Plain values, fit to be sent over a network. Who answers is in `bcfl.executors`; what is requested,
and why, in `bcfl.policies`.
"""

from bcfl.protocol.answers import Answer, ClientInfo, EvidenceSum, Failure, LossSum, Scores, Trained
from bcfl.protocol.comparison import BestCounts, SampleFit, SupportTest, TestedLoss
from bcfl.protocol.objective import Curvature, Objective
from bcfl.protocol.prediction_sums import NUM_BINS, Pooling, PredictionSums
from bcfl.protocol.regularizers import (
    Attraction,
    Consolidation,
    Contrast,
    Proximal,
    Regularizer,
    Sharing,
    Sparsity,
)
from bcfl.protocol.requests import (
    Describe,
    Exchange,
    Replies,
    Request,
    Result,
    Score,
    Statistic,
    Steps,
    Train,
    loss_matrix,
    together,
)
from bcfl.protocol.upload import Upload

__all__ = [
    "NUM_BINS",
    "Answer",
    "Attraction",
    "BestCounts",
    "ClientInfo",
    "Consolidation",
    "Contrast",
    "Curvature",
    "Describe",
    "EvidenceSum",
    "Exchange",
    "Failure",
    "LossSum",
    "Objective",
    "Pooling",
    "PredictionSums",
    "Proximal",
    "Regularizer",
    "Replies",
    "Request",
    "Result",
    "SampleFit",
    "Score",
    "Scores",
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
