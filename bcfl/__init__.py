"""Clustered federated learning as probabilistic data association.

Which client belongs with which cluster model is an unknown with a posterior: association
hypotheses and their weights are values that trackers manage. See `Federation` for running, `Run`
for what comes out, `methods` for the recipes, and `policies` for writing one's own.
"""

from bcfl.aggregation import Aggregation
from bcfl.association import Association
from bcfl.clients import ClientData
from bcfl.federation import (
    Federation,
    FederationState,
    Method,
    Prediction,
    PredictionRule,
    RoundRecord,
    Run,
)
from bcfl.hypothesis import Hypothesis, HypothesisSet
from bcfl.model import BlockSpec, Model
from bcfl.requests import Objective

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
