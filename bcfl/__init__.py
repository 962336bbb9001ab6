"""Clustered federated learning as probabilistic data association.

Which client belongs with which cluster model is an unknown with a posterior: association
hypotheses and their weights are values that trackers manage. See `Federation` for running, `Run`
for what comes out, `methods` for the recipes, and `policies` for writing one's own.
"""

from bcfl.aggregation.aggregation import Aggregation
from bcfl.analysis.predictions import Prediction, PredictionRule
from bcfl.analysis.run import Run
from bcfl.architecture.model import BlockSpec, Model
from bcfl.data.clients import ClientData
from bcfl.federation import Federation
from bcfl.hypotheses.association import Association
from bcfl.hypotheses.hypothesis import Hypothesis, HypothesisSet
from bcfl.protocol.objective import Objective
from bcfl.rounds.method import Method
from bcfl.rounds.state import FederationState, RoundRecord

__all__ = [
    "Aggregation",
    "Association",
    "BlockSpec",
    "ClientData",
    "Federation",
    "FederationState",
    "Hypothesis",
    "HypothesisSet",
    "Method",
    "Model",
    "Objective",
    "Prediction",
    "PredictionRule",
    "RoundRecord",
    "Run",
]
